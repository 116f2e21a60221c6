//! Attacks against themselves played the slow way: one refit per candidate, one model per trial, definitions only.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;

use dense::{Dense, Draws, families, label, place};
use leakscope_core::Error;
use leakscope_core::attack::{Attack, Options, Secret, attack, candidate_models};
use leakscope_core::bound::{Channel, Encodings, Prior, RecordBounds, bounds};
use leakscope_core::error::Setting;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::glm::{Family, Fit, fit};
use leakscope_core::random::Seeded;

/// Two numbers, a category of three levels (last one dropped), an intercept if asked for.
fn table(family: Family, n: usize, intercept: bool, weighted: bool) -> (Dense, Secret) {
    let mut draws = Draws(place(family) + 31);
    let p = 4 + usize::from(intercept);
    let (mut x, mut y, mut counts) = (vec![], vec![], [0; 3]);
    for i in 0..n {
        let level = (draws.uniform() * draws.uniform() * 3.0) as usize;
        counts[level] += 1;
        let row = [draws.normal(), draws.normal(), f64::from(level == 0), f64::from(level == 1), 1.0];
        let z = 0.6 * row[0] - 0.3 * row[1] + [0.9, -0.5, 0.2][level] + 0.5 * draws.normal();
        y.push(match family {
            Family::Linear => z,
            Family::Logistic => f64::from(u8::from(z > 0.2)),
            Family::Poisson => (0.6 * z).exp().round(),
            Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                let (u, e) = (draws.uniform(), draws.normal());
                label(family, i, 0.6 * z, u, e)
            }
        });
        x.extend_from_slice(&row[..p]);
    }
    let weight = if weighted { (0..n).map(|_| 0.3 + 2.0 * draws.uniform()).collect() } else { vec![] };
    let data = Dense { family, intercept, l2: 0.01, p, x, y, weight, w: vec![] };
    let secret = Secret::category(2..4, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0], &counts).unwrap();
    (data, secret)
}

fn model(data: &Dense) -> Fit {
    fit(&data.rows(64), data.family, data.penalty()).unwrap()
}

fn with_candidate(data: &Dense, secret: &Secret, i: usize, m: usize) -> Dense {
    let mut changed = data.clone();
    changed.x[i * data.p + 2..i * data.p + 4].copy_from_slice(secret.candidate(m));
    changed
}

#[test]
fn models_with_a_candidate_in_place_are_those_of_refits() {
    for family in families() {
        for (intercept, weighted) in [(true, false), (false, true)] {
            let (data, secret) = table(family, 90, intercept, weighted);
            let best = model(&data);
            let models = candidate_models(&data.rows(40), &best, &secret).unwrap();
            assert_eq!(models.len(), 90 * 3);
            for i in 0..90 {
                for m in 0..3 {
                    let refit = model(&with_candidate(&data, &secret, i, m));
                    for (a, b) in models[i * 3 + m].iter().zip(&refit.w) {
                        assert!(
                            (a - b).abs() < 1e-9,
                            "{family:?} {intercept} record {i} candidate {m}: {a} {b}"
                        );
                    }
                }
            }
        }
    }
}

/// Shifts and divides a column so that its mean is 0 and its standard deviation 1; what was taken off and divided by.
fn standardise(data: &mut Dense, column: usize) -> (f64, f64) {
    let (p, n) = (data.p, data.y.len() as f64);
    let of_column = || (0..data.y.len()).map(|i| data.x[i * p + column]);
    let mean = of_column().sum::<f64>() / n;
    let sd = (of_column().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    data.x.iter_mut().skip(column).step_by(p).for_each(|v| *v = (*v - mean) / sd);
    (mean, sd)
}

/// A column that is scaled by its records is scaled anew with each candidate in place, and the model taken back to the units before.
#[test]
fn a_number_that_is_scaled_by_its_records_is_scaled_anew_for_every_candidate() {
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        for (n, weighted, l2) in [(60, false, 0.3), (60, true, 0.02), (24, false, 1.0), (60, false, 0.0)] {
            let (mut data, _) = table(family, n, true, weighted);
            if l2 == 0.0 && family != Family::Linear {
                continue;
            }
            data.l2 = l2;
            standardise(&mut data, 1);
            let secret = Secret::bins(1, vec![-1.5, 0.1, 2.5], vec![-0.5, 1.0], &[1, 1, 1]).unwrap();
            let secret = secret.scaled_by_its_records().unwrap();
            let models = candidate_models(&data.rows(20), &model(&data), &secret).unwrap();
            for (i, m) in (0..n).flat_map(|i| (0..3).map(move |m| (i, m))) {
                let mut changed = data.clone();
                changed.x[i * data.p + 1] = secret.candidate(m)[0];
                let (mean, sd) = standardise(&mut changed, 1);
                let mut truth = model(&changed).w;
                truth[1] /= sd;
                truth[data.p - 1] -= truth[1] * mean;
                for (a, b) in models[i * 3 + m].iter().zip(&truth) {
                    let near = 1e-8 * (1.0 + b.abs());
                    assert!((a - b).abs() < near, "{family:?} {n} {l2} record {i} candidate {m}: {a} {b}");
                }
            }
        }
    }
    let category = Secret::category(2..4, vec![1.0, 0.0, 0.0, 1.0], &[1, 1]).unwrap();
    assert!(matches!(category.scaled_by_its_records(), Err(Error::NotApplicable { .. })));
    // Two records that would be the same.
    let data = Dense {
        family: Family::Linear,
        intercept: true,
        l2: 0.1,
        p: 2,
        x: vec![-1.0, 1.0, 1.0, 1.0],
        y: vec![0.0, 1.0],
        weight: vec![],
        w: vec![],
    };
    let secret = Secret::category(0..1, vec![-1.0, 1.0], &[1, 1]).unwrap().scaled_by_its_records().unwrap();
    let refused = candidate_models(&data.rows(2), &model(&data), &secret);
    assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{refused:?}");
}

/// A handful of records, strong leverage: rank-two Newton need not contract there, and the answer must still be right.
#[test]
fn candidates_of_influential_records_are_exact_too() {
    let x = [8.0, 1.0, 0.0, -6.0, 0.0, 1.0, 0.5, 0.0, 0.0, 7.0, 0.0, 1.0, -0.5, 1.0, 0.0, 0.1, 0.0, 0.0];
    let y = [3.0, 0.0, 1.0, 9.0, 0.0, 2.0];
    let data = Dense {
        family: Family::Poisson,
        intercept: false,
        l2: 0.05,
        p: 3,
        x: x.to_vec(),
        y: y.to_vec(),
        weight: vec![],
        w: vec![],
    };
    let secret = Secret::category(1..3, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0], &[2, 2, 2]).unwrap();
    let models = candidate_models(&data.rows(6), &model(&data), &secret).unwrap();
    for i in 0..6 {
        for m in 0..3 {
            let mut changed = data.clone();
            changed.x[i * 3 + 1..i * 3 + 3].copy_from_slice(secret.candidate(m));
            let refit = model(&changed);
            assert!(models[i * 3 + m].iter().zip(&refit.w).all(|(a, b)| (a - b).abs() < 1e-8), "{i} {m}");
        }
    }
}

fn identity(p: usize) -> Vec<f64> {
    (0..p * p).map(|ij| f64::from(u8::from(ij / p == ij % p))).collect()
}

/// A lower factor with correlations and a hundred between the largest and the smallest scale.
fn correlated(p: usize) -> Noise {
    let entry = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 10_f64.powf(1.0 - 2.0 * i as f64 / (p - 1) as f64),
        std::cmp::Ordering::Greater => 0.4 - 0.3 * ((i + 2 * j) % 3) as f64,
    };
    Noise::from_factor((0..p * p).map(|ij| entry(ij / p, ij % p)).collect(), p).unwrap()
}

/// Accuracy of every attacker by its definition.
/// How the variance grows with the mean.
fn power(family: Family) -> f64 {
    match family {
        Family::Linear | Family::Logistic | Family::SquaredHinge | Family::Huber(_) => 0.0,
        Family::Poisson => 1.0,
        Family::Gamma => 2.0,
        Family::Tweedie(power) => power.value(),
    }
}

fn slowly(data: &Dense, secret: &Secret, options: &Options) -> Vec<f64> {
    let (n, p, t) = (data.n(), data.p, options.trials);
    let best = model(data);
    let normals = Seeded::new(options.seed).normals(p * t);
    // Fb, entry by entry, and Σ⁻¹ by elimination: what the noise really is, and distance by it.
    let factor = options.shape.as_ref().map_or_else(|| identity(p), |shape| shape.factor().to_vec());
    let noise: Vec<f64> =
        (0..p * t).map(|jt| (0..p).map(|k| factor[jt / t * p + k] * normals[k * t + jt % t]).sum()).collect();
    let covariance =
        faer::Mat::from_fn(p, p, |i, j| (0..p).map(|k| factor[i * p + k] * factor[j * p + k]).sum::<f64>());
    let precision = dense::inverse(&covariance).unwrap();
    let refits: Vec<Vec<f64>> =
        (0..n * 3).map(|c| model(&with_candidate(data, secret, c / 3, c % 3)).w).collect();
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let log_prior: Vec<f64> = secret.prior().iter().map(|p| p.ln()).collect();
    let classes = data.family.two_classes();
    let mut accuracies = vec![];
    for &attack in &options.attacks {
        for &sigma in &options.sigmas {
            let mut hits = 0;
            for trial in 0..t {
                let w: Vec<f64> = (0..p).map(|j| best.w[j] + sigma * noise[j * t + trial]).collect();
                let released = Dense { w: w.clone(), ..data.clone() };
                let squares: f64 = (0..n).map(|i| (dot(data.row(i), &w) - data.y[i]).powi(2)).sum();
                let pearson: f64 = (0..n)
                    .map(|i| {
                        let (mu, power) = (dot(data.row(i), &w).exp(), power(data.family));
                        (data.y[i] - mu).powi(2) / mu.powf(power)
                    })
                    .sum();
                let mut confusion = [[0.0_f64; 2]; 2];
                for i in 0..n {
                    confusion[usize::from(data.y[i] > 0.0)][usize::from(dot(data.row(i), &w) >= 0.0)] += 1.0;
                }
                for i in 0..n {
                    let scores: Vec<f64> = (0..3)
                        .map(|m| {
                            let model = &refits[i * 3 + m];
                            let apart: Vec<f64> = w.iter().zip(model).map(|(a, b)| a - b).collect();
                            let distance: f64 = (0..p * p)
                                .map(|jk| apart[jk / p] * precision[(jk / p, jk % p)] * apart[jk % p])
                                .sum();
                            match attack {
                                Attack::WhiteBox => -distance,
                                Attack::WhiteBoxPrior => log_prior[m] - distance / (2.0 * sigma * sigma),
                                Attack::BlackBox => {
                                    let z = dot(with_candidate(data, secret, i, m).row(i), &w);
                                    log_prior[m]
                                        + match data.family {
                                            _ if classes => {
                                                let row = confusion[usize::from(data.y[i] > 0.0)];
                                                (row[usize::from(z >= 0.0)] / (row[0] + row[1])).ln()
                                            }
                                            Family::Poisson => data.y[i] * z - z.exp(),
                                            // Over the dispersion, by Pearson's statistic.
                                            Family::Gamma => {
                                                -(z + data.y[i] / z.exp()) / (pearson / n as f64)
                                            }
                                            Family::Tweedie(power) => {
                                                let (p, mu, y) = (power.value(), z.exp(), data.y[i]);
                                                let loss = mu.powf(2.0 - p) / (2.0 - p)
                                                    - y * mu.powf(1.0 - p) / (1.0 - p);
                                                -loss / (pearson / n as f64)
                                            }
                                            _ => -(z - data.y[i]).powi(2) / (2.0 * squares / n as f64),
                                        }
                                }
                                Attack::Informed => {
                                    // The gradient of everybody else, and the record that cancels it.
                                    let mut g = vec![0.0; p];
                                    for j in (0..n).filter(|&j| j != i) {
                                        let r = released.omega(j) * released.terms(j).0;
                                        (0..p).for_each(|k| g[k] -= r * data.row(j)[k]);
                                    }
                                    (0..data.d()).for_each(|k| g[k] -= n as f64 * data.l2 * w[k]);
                                    let distance = |scale: f64| -> f64 {
                                        let c = secret.candidate(m);
                                        (0..2).map(|k| (g[2 + k] / scale - c[k]).powi(2)).sum()
                                    };
                                    if data.intercept {
                                        -distance(g[p - 1])
                                    } else {
                                        // (g/s) must have residual s/ω: both roots, the better for each candidate.
                                        let (o, y) = (data.omega(i), data.y[i]);
                                        let root = (o * o * y * y + 4.0 * o * dot(&w, &g)).max(0.0).sqrt();
                                        let roots = [(-o * y + root) / 2.0, (-o * y - root) / 2.0];
                                        -distance(roots[0]).min(distance(roots[1]))
                                    }
                                }
                            }
                        })
                        .collect();
                    let guess = (0..3).rev().max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
                    hits += usize::from(Some(guess) == secret.truth(data.row(i)));
                }
            }
            accuracies.push(hits as f64 / (n * t) as f64);
        }
    }
    accuracies
}

#[test]
fn every_attack_is_its_definition() {
    for family in families() {
        for (intercept, shaped) in [(true, false), (false, false), (true, true), (false, true)] {
            let (data, secret) = table(family, 60, intercept, true);
            let shape = shaped.then(|| correlated(data.p));
            let mut attacks = Attack::ALL.to_vec();
            if !intercept && family != Family::Linear {
                attacks.pop();
            }
            let options = Options {
                attacks,
                sigmas: vec![0.003, 0.05, 0.6],
                trials: 7,
                seed: 5,
                two_class: false,
                shape,
            };
            let actual = attack(&data.rows(25), &model(&data), &secret, &options, &[]).unwrap();
            let expected = slowly(&data, &secret, &options);
            for (outcome, expected) in actual.results.iter().zip(&expected) {
                // A guess that is decided by rounding may differ: one in 420.
                assert!(
                    (outcome.accuracy.value - expected).abs() < 0.003,
                    "{family:?} {outcome:?} {expected}"
                );
            }
        }
    }
}

#[test]
fn without_noise_the_white_box_wins_and_under_much_noise_the_prior_is_all_there_is() {
    let (data, secret) = table(Family::Linear, 300, true, false);
    let options = Options {
        attacks: Attack::ALL.to_vec(),
        sigmas: vec![1e-7, 1e5],
        trials: 30,
        seed: 1,
        two_class: false,
        shape: None,
    };
    let parts: Vec<u8> = (0..300).map(|i| (i / 30) as u8).collect();
    let actual = attack(&data.rows(100), &model(&data), &secret, &options, &parts).unwrap();
    let at =
        |a: Attack, sigma: f64| actual.results.iter().find(|r| r.attack == a && r.sigma == sigma).unwrap();
    for a in [Attack::WhiteBox, Attack::WhiteBoxPrior, Attack::Informed] {
        assert!(at(a, 1e-7).accuracy.value > 0.99, "{a:?} {:?}", at(a, 1e-7));
    }
    assert!((at(Attack::WhiteBoxPrior, 1e5).accuracy.value - actual.baseline).abs() < 1e-12);
    let adv = &at(Attack::WhiteBoxPrior, 1e5).advantage;
    assert!(adv.value.abs() < 1e-12 && at(Attack::WhiteBox, 1e5).advantage.value < 0.0);
    let free = at(Attack::WhiteBox, 1e5);
    assert!(free.accuracy.ci_low <= free.accuracy.value && free.accuracy.value <= free.accuracy.ci_high);
    let p = actual.prior_max;
    assert!((free.advantage.value - (free.accuracy.value - p) / (1.0 - p)).abs() < 1e-12);
    // Parts add up to the whole.
    assert_eq!(actual.by_part.len(), 20);
    let of_parts: f64 =
        actual.by_part.iter().filter(|r| r.sigma == 1e5).map(|r| r.accuracy.value * r.records as f64).sum();
    assert!((of_parts / 300.0 - free.accuracy.value).abs() < 1e-12);
}

/// Two records, two coefficients, two values of the secret: what an attacker can know is an integral over the plane.
#[test]
fn the_white_box_of_two_records_is_brute_force_under_shaped_noise() {
    let (x, y) = (vec![1.0, 0.0, 1.0, 1.0], vec![0.3, 1.7]);
    let data =
        Dense { family: Family::Linear, intercept: false, l2: 0.2, p: 2, x, y, weight: vec![], w: vec![] };
    let shape = Noise::from_factor(vec![0.3, 0.0, -0.5, 0.15], 2).unwrap();
    let secret = Secret::category(1..2, vec![0.0, 1.0], &[1, 1]).unwrap();
    let best = model(&data);
    let models = candidate_models(&data.rows(2), &best, &secret).unwrap();
    let covariance = shape.covariance();
    let determinant = covariance[0] * covariance[3] - covariance[1] * covariance[2];
    let density = |at: [f64; 2], centre: &[f64], sigma: f64| {
        let d = [at[0] - centre[0], at[1] - centre[1]];
        let square = (covariance[3] * d[0] * d[0] - 2.0 * covariance[1] * d[0] * d[1]
            + covariance[0] * d[1] * d[1])
            / determinant;
        let s2 = sigma * sigma;
        (-0.5 * square / s2).exp() / (2.0 * std::f64::consts::PI * s2 * determinant.sqrt())
    };
    for sigma in [0.5, 1.5] {
        // Success of the best attacker with even odds, record by record, over a grid of the plane.
        let (half, steps) = (6.0 * sigma * 0.6, 700);
        let cell = 2.0 * half / f64::from(steps);
        let mut best_possible = vec![];
        for i in 0..2 {
            let (a, b) = (&models[2 * i], &models[2 * i + 1]);
            let middle = [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])];
            let mut mass = 0.0;
            for u in 0..steps {
                for v in 0..steps {
                    let place = |k: i32, c: f64| c - half + (f64::from(k) + 0.5) * cell;
                    let at = [place(u, middle[0]), place(v, middle[1])];
                    mass += 0.5 * density(at, a, sigma).max(density(at, b, sigma)) * cell * cell;
                }
            }
            best_possible.push(mass);
        }
        let options = Options {
            attacks: vec![Attack::WhiteBox],
            sigmas: vec![sigma],
            trials: 40_000,
            seed: 3,
            two_class: false,
            shape: Some(shape.clone()),
        };
        let actual = attack(&data.rows(2), &best, &secret, &options, &[0, 1]).unwrap();
        for (i, expected) in best_possible.iter().enumerate() {
            // With two candidates and even odds the truth does not matter: success is the same for both.
            let seen = &actual.by_part.iter().find(|r| r.part == i).unwrap().accuracy;
            assert!((seen.value - expected).abs() < 0.01, "record {i}, σ = {sigma}: {seen:?} {expected}");
            let white = shape.whiten_rows(&models[2 * i..2 * i + 2].concat());
            let e = Encodings::vectors(2, white).unwrap();
            let channel = Channel::Gaussian { encodings: &e, sigma };
            for bound in bounds(&Prior::uniform(2).unwrap(), channel, None).unwrap().bounds {
                let success = bound.success.value;
                assert!(success >= expected - 1e-4, "{:?}: {success} {expected}", bound.success.theorem);
            }
        }
    }
}

/// Bounds from whitened differences hold against the white box under shaped noise, over all records of a table.
#[test]
fn no_white_box_beats_its_bounds_under_shaped_noise() {
    for family in [Family::Linear, Family::Logistic] {
        let (data, secret) = table(family, 120, true, false);
        let (best, shape) = (model(&data), correlated(data.p));
        let sigmas = vec![0.02, 0.06, 0.2];
        let options = Options {
            attacks: vec![Attack::WhiteBox, Attack::WhiteBoxPrior],
            sigmas: sigmas.clone(),
            trials: 300,
            seed: 7,
            two_class: false,
            shape: Some(shape.clone()),
        };
        let actual = attack(&data.rows(50), &best, &secret, &options, &[]).unwrap();
        let prior = Prior::from_probabilities(secret.prior().to_vec()).unwrap();
        let mut all = RecordBounds::new(prior, &sigmas, 120, None).unwrap();
        for (i, models) in candidate_models(&data.rows(50), &best, &secret).unwrap().chunks(3).enumerate() {
            all.add(i as u64, data.p, &shape.whiten_rows(&models.concat())).unwrap();
        }
        let (mut beaten_without, mut told) = (false, false);
        for at in all.at_sigmas().unwrap() {
            for outcome in actual.results.iter().filter(|r| r.sigma == at.sigma) {
                told |= outcome.accuracy.ci_low > actual.baseline + 0.1;
                for bound in &at.bounds {
                    assert!(
                        outcome.accuracy.ci_low <= bound.mean.success.value,
                        "{family:?} {outcome:?} {bound:?}"
                    );
                }
            }
        }
        assert!(told, "{family:?}: the attacker must learn something for the bounds to be tried");
        // Distances that ignore the shape give no bound: the attack beats what they say.
        let mut blind = RecordBounds::new(
            Prior::from_probabilities(secret.prior().to_vec()).unwrap(),
            &sigmas,
            120,
            None,
        )
        .unwrap();
        for (i, models) in candidate_models(&data.rows(50), &best, &secret).unwrap().chunks(3).enumerate() {
            blind.add(i as u64, data.p, &models.concat()).unwrap();
        }
        for at in blind.at_sigmas().unwrap() {
            for outcome in actual.results.iter().filter(|r| r.sigma == at.sigma) {
                beaten_without |= outcome.accuracy.ci_low > at.bounds[0].mean.success.value;
            }
        }
        assert!(beaten_without, "{family:?}");
    }
}

#[test]
fn a_number_in_bins_is_a_secret_too() {
    let (data, _) = table(Family::Linear, 200, true, false);
    let counts = (0..200).fold([0, 0], |mut c, i| {
        c[usize::from(data.row(i)[0] >= 0.0)] += 1;
        c
    });
    let secret = Secret::bins(0, vec![-0.8, 0.8], vec![0.0], &counts).unwrap();
    let options = Options {
        attacks: vec![Attack::WhiteBox],
        sigmas: vec![1e-9],
        trials: 2,
        seed: 1,
        two_class: false,
        shape: None,
    };
    let actual = attack(&data.rows(200), &model(&data), &secret, &options, &[]).unwrap();
    assert_eq!((actual.records, actual.left_out), (200, 0));
    assert!(actual.results[0].accuracy.value > 0.9, "{:?}", actual.results[0]);
}

#[test]
fn nonsense_is_refused() {
    let (data, secret) = table(Family::Logistic, 40, false, false);
    let best = model(&data);
    let options = Options {
        attacks: vec![Attack::WhiteBox],
        sigmas: vec![0.1],
        trials: 2,
        seed: 1,
        two_class: true,
        shape: None,
    };
    let run = |o: &Options, s: &Secret, parts: &[u8]| attack(&data.rows(9), &best, s, o, parts);
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let o = Options { sigmas: vec![sigma], ..options.clone() };
        assert!(matches!(run(&o, &secret, &[]), Err(Error::Setting { setting: Setting::Sigma, .. })));
    }
    assert!(run(&Options { trials: 0, ..options.clone() }, &secret, &[]).is_err());
    let other = Options { shape: Some(Noise::isotropic(1.0, 3).unwrap()), ..options.clone() };
    assert!(matches!(run(&other, &secret, &[]), Err(Error::Shape { subject: "the noise", .. })));
    assert!(run(&Options { attacks: vec![Attack::Informed], ..options.clone() }, &secret, &[]).is_err());
    assert!(run(&options, &secret, &[0; 3]).is_err());
    assert!(Secret::category(2..4, vec![1.0, 0.0], &[40]).is_err());
    assert!(Secret::category(2..4, vec![1.0, 0.0, 0.0, 1.0], &[40, 0]).is_err());
    assert!(Secret::bins(0, vec![0.0, 1.0], vec![], &[1, 1]).is_err());
    let beyond = Secret::category(3..5, vec![1.0, 0.0, 0.0, 1.0], &[20, 20]).unwrap();
    assert!(matches!(run(&options, &beyond, &[]), Err(Error::Shape { .. })));
    // Two of the three levels as candidates: the third's records are left out, not guessed wrong.
    let two = Secret::category(2..4, vec![1.0, 0.0, 0.0, 1.0], &[20, 20]).unwrap();
    let actual = run(&options, &two, &[]).unwrap();
    assert!(actual.left_out > 0 && actual.left_out + actual.records == 40);
}
