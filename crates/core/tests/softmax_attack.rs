//! Attacks, bounds and balancing of softmax models: against refits of every candidate, a plain replay of every attacker, and the
//! logistic model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;

use dense::Draws;
use leakscope_core::attack::{
    Attack, Options, Secret, attack, attack_classes, candidate_models, for_each_record_of_classes,
};
use leakscope_core::balance::{
    Level, Options as Balancing, Sharing, Update, Variant, balance, balance_model, losses_of,
};
use leakscope_core::bound::{Prior, RecordBounds};
use leakscope_core::fisher::noise::{Sampling, sampling_covariance, softmax_sampling_covariances};
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::softmax::{SoftmaxFit, contrasts, evaluate, fit};
use leakscope_core::glm::{self, Family, Minimiser, ModelKind, Penalty};
use leakscope_core::measure::SoftmaxScore;
use leakscope_core::pass::Pass as _;
use leakscope_core::random::Seeded;
use leakscope_core::rows::{Altered, InMemory, Rows};

use std::borrow::Cow;

/// Two numbers, an indicator and an intercept.
const P: usize = 4;

#[derive(Clone)]
struct Table {
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(classes: usize, n: usize, weighted: bool, seed: u64) -> Self {
        let mut draws = Draws(seed);
        let (mut x, mut y) = (vec![], vec![]);
        for i in 0..n {
            let (a, b, level) = (draws.normal(), draws.normal(), f64::from(u8::from(i % 3 == 0)));
            let z = 0.8 * a - 0.3 * b + 0.5 * level + 0.9 * draws.normal();
            x.extend([a, b, level, 1.0]);
            y.push(match i < 2 * classes {
                true => (i % classes) as f64,
                false => ((z + 1.2) * classes as f64 / 2.4).floor().clamp(0.0, (classes - 1) as f64),
            });
        }
        let weight = if weighted { (0..n).map(|i| 0.6 + 0.1 * (i % 9) as f64).collect() } else { vec![] };
        Self { x, y, weight }
    }

    fn rows(&self) -> InMemory {
        InMemory::from_matrix(&self.x, &self.y, &self.weight, 13)
    }

    fn with(&self, i: usize, value: f64) -> Self {
        let mut other = self.clone();
        other.x[i * P + 2] = value;
        other
    }
}

fn penalty(l2: f64) -> Penalty {
    Penalty::new(l2, true)
}

fn secret(table: &Table) -> Secret {
    let ones = table.x.iter().skip(2).step_by(P).filter(|v| **v == 1.0).count() as u64;
    let n = table.y.len() as u64;
    Secret::category(2..3, vec![0.0, 1.0], &[n - ones, ones]).unwrap()
}

fn deltas(rows: &InMemory, fit: &SoftmaxFit, secret: &Secret) -> Vec<f64> {
    let mut all = vec![];
    for_each_record_of_classes(
        rows,
        fit,
        secret,
        Vec::new,
        |part: &mut Vec<f64>, refits| {
            part.extend_from_slice(refits.delta);
            Ok(())
        },
        |part| {
            all.extend(part);
            Ok(())
        },
    )
    .unwrap();
    all
}

#[test]
fn candidates_are_refits() {
    for (classes, weighted, l2) in [(2, false, 0.05), (3, true, 0.02), (4, false, 1e-4)] {
        let table = Table::new(classes, 60, weighted, 3);
        let rows = table.rows();
        let model = fit(&rows, penalty(l2), 10).unwrap();
        let (secret, q) = (secret(&table), model.coefficients());
        let actual = deltas(&rows, &model, &secret);
        for i in [0, 1, 17, 59] {
            for (m, value) in [0.0, 1.0].into_iter().enumerate() {
                let refit = fit(&table.with(i, value).rows(), penalty(l2), 10).unwrap();
                let delta = &actual[(i * 2 + m) * q..(i * 2 + m + 1) * q];
                for (j, d) in delta.iter().enumerate() {
                    let truth = refit.theta[j] - model.theta[j];
                    assert!((d - truth).abs() < 1e-9, "{classes} classes, record {i}: {d} {truth}");
                }
            }
        }
    }
}

/// The second column to mean 0 and standard deviation 1; what was taken off and divided by.
fn standardise(table: &mut Table) -> (f64, f64) {
    let n = table.y.len() as f64;
    let column: Vec<f64> = table.x.iter().skip(1).step_by(P).copied().collect();
    let mean = column.iter().sum::<f64>() / n;
    let sd = (column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    table.x.iter_mut().skip(1).step_by(P).for_each(|v| *v = (*v - mean) / sd);
    (mean, sd)
}

#[test]
fn a_number_that_is_scaled_by_its_records_is_scaled_anew_for_every_candidate() {
    for (classes, weighted, l2) in [(2, false, 0.5), (3, true, 0.1)] {
        let mut table = Table::new(classes, 40, weighted, 3);
        standardise(&mut table);
        let rows = table.rows();
        let model = fit(&rows, penalty(l2), 10).unwrap();
        let values = vec![-2.0, 0.3, 3.0];
        let secret = Secret::bins(1, values.clone(), vec![-1.0, 1.0], &[1, 1, 1]).unwrap();
        let (secret, q) = (secret.scaled_by_its_records().unwrap(), model.coefficients());
        let actual = deltas(&rows, &model, &secret);
        for i in [0, 1, 17, 39] {
            for (m, value) in values.iter().enumerate() {
                let mut changed = table.clone();
                changed.x[i * P + 1] = *value;
                let (mean, sd) = standardise(&mut changed);
                let mut theta = fit(&changed.rows(), penalty(l2), 10).unwrap().theta;
                for of_class in theta.chunks_exact_mut(P) {
                    of_class[1] /= sd;
                    of_class[P - 1] -= of_class[1] * mean;
                }
                let delta = &actual[(i * 3 + m) * q..(i * 3 + m + 1) * q];
                for (j, d) in delta.iter().enumerate() {
                    let truth = theta[j] - model.theta[j];
                    assert!((d - truth).abs() < 1e-9, "{classes} classes, record {i}: {d} {truth}");
                }
            }
        }
    }
}

fn options(attacks: &[Attack], sigmas: &[f64]) -> Options {
    Options {
        attacks: attacks.to_vec(),
        sigmas: sigmas.to_vec(),
        shape: None,
        trials: 60,
        seed: 5,
        two_class: false,
    }
}

/// λ halves, noise σ on both vectors is √2σ on their difference, and Θ is that difference over √2.
#[test]
fn two_classes_are_the_logistic_model() {
    let table = Table::new(2, 150, true, 8);
    let (rows, secret, two) = (table.rows(), secret(&table), 2_f64.sqrt());
    let model = fit(&rows, penalty(0.08), 10).unwrap();
    let logistic = glm::fit(&rows, Family::Logistic, penalty(0.04)).unwrap();
    let truth: Vec<f64> = candidate_models(&rows, &logistic, &secret)
        .unwrap()
        .iter()
        .flat_map(|w| w.iter().zip(&logistic.w).map(|(w, best)| (w - best) / two).collect::<Vec<_>>())
        .collect();
    let actual = deltas(&rows, &model, &secret);
    assert_eq!(actual.len(), truth.len());
    assert!(actual.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-9));
    let played = [Attack::WhiteBox, Attack::WhiteBoxPrior, Attack::Informed];
    let sigmas = [0.01, 0.05, 0.3];
    let parts: Vec<u8> = (0..150).map(|i| (i % 4) as u8).collect();
    let a = attack_classes(&rows, &model, &secret, &options(&played, &sigmas), &parts).unwrap();
    let b = attack(&rows, &logistic, &secret, &options(&played, &sigmas.map(|s| two * s)), &parts).unwrap();
    assert_eq!((a.baseline, a.records, a.prior_max), (b.baseline, b.records, b.prior_max));
    for (x, y) in a.results.iter().zip(&b.results) {
        assert_eq!(x.attack, y.attack);
        // A tie may fall to either side of rounding.
        assert!((x.accuracy.value - y.accuracy.value).abs() < 1e-3, "{:?} {:?}", x, y);
    }
    assert!(
        a.by_part.iter().zip(&b.by_part).all(|(x, y)| (x.accuracy.value - y.accuracy.value).abs() < 5e-3)
    );
    // Balancing finds the same weights.
    let release = Release { sigma: 1.0, releases: 1, label_secret: true };
    let balancing = Balancing {
        level: Level::Attribute(Directions::columns(2..3, P)),
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations: 5,
        tolerance: 0.0,
        release,
        shape: None,
    };
    let kind = (ModelKind::Softmax, penalty(0.08), 10);
    let a = balance_model(&rows, kind, &balancing, |_, _, _| Ok(())).unwrap();
    let b = balance(&rows, (Family::Logistic, penalty(0.04)), &balancing, |_, _, _| Ok(())).unwrap();
    assert_eq!(a.best, b.best);
    assert!(a.weights.iter().zip(&b.weights).all(|(x, y)| (x / y - 1.0).abs() < 1e-6));
    assert!(a.eta.iter().zip(&b.eta).all(|(x, y)| (two * x / y - 1.0).abs() < 1e-6));
    // Sampling errors: W₁ is half the logistic vector.
    let sampled = softmax_sampling_covariances(&rows, &model).unwrap();
    let truth = sampling_covariance(&rows, &logistic, Sampling::Sandwich).unwrap();
    for class in &sampled {
        assert!(class.iter().zip(&truth).all(|(a, b)| (4.0 * a - b).abs() < 1e-7 * truth[0]));
    }
}

/// Every attacker, played by hand: models are refitted, probabilities computed from all K classes.
#[test]
fn attackers_are_what_they_say() {
    let (classes, n, l2) = (3, 36, 0.03);
    let table = Table::new(classes, n, true, 21);
    let (rows, secret) = (table.rows(), secret(&table));
    let model = fit(&rows, penalty(l2), 10).unwrap();
    let (q, k, options) = (model.coefficients(), classes - 1, options(&Attack::ALL, &[0.03, 0.2]));
    let actual = attack_classes(&rows, &model, &secret, &options, &[]).unwrap();
    let noise = Seeded::new(options.seed).normals(q * options.trials);
    let u = contrasts(classes);
    let lift = |theta: &[f64]| -> Vec<f64> {
        (0..classes * P).map(|cj| (0..k).map(|a| u[cj / P * k + a] * theta[a * P + cj % P]).sum()).collect()
    };
    let refits: Vec<Vec<SoftmaxFit>> = (0..n)
        .map(|i| [0.0, 1.0].map(|v| fit(&table.with(i, v).rows(), penalty(l2), 10).unwrap()).into())
        .collect();
    for (attack, sigma) in options.attacks.iter().flat_map(|a| options.sigmas.iter().map(move |s| (*a, *s))) {
        let mut hits = 0;
        for trial in 0..options.trials {
            let theta: Vec<f64> =
                (0..q).map(|j| model.theta[j] + sigma * noise[j * options.trials + trial]).collect();
            let released = evaluate(&rows, penalty(l2), &lift(&theta), 10).unwrap();
            for i in 0..n {
                let truth = usize::from(table.x[i * P + 2] == 1.0);
                let score = |m: usize| -> f64 {
                    let apart: f64 =
                        refits[i][m].theta.iter().zip(&theta).map(|(a, b)| (a - b).powi(2)).sum();
                    match attack {
                        Attack::WhiteBox => apart,
                        Attack::WhiteBoxPrior => apart / (2.0 * sigma * sigma) - secret.prior()[m].ln(),
                        Attack::BlackBox => {
                            let mut x = table.x[i * P..(i + 1) * P].to_vec();
                            x[2] = m as f64;
                            let pi = released.probabilities(&x);
                            -secret.prior()[m].ln() - pi[table.y[i] as usize].ln()
                        }
                        // ωρ̂ ⊗ x of the missing record: its own part, less what the gradient is.
                        Attack::Informed => {
                            let x = &table.x[i * P..(i + 1) * P];
                            let mut rho = released.probabilities(x);
                            rho[table.y[i] as usize] -= 1.0;
                            let rho = (0..k)
                                .map(|a| (0..classes).map(|c| u[c * k + a] * rho[c]).sum::<f64>())
                                .collect::<Vec<_>>();
                            let g = |a: usize, j: usize| {
                                table.weight[i] * rho[a] * x[j] - released.gradient[a * P + j]
                            };
                            let scale: f64 = (0..k).map(|a| g(a, P - 1).powi(2)).sum();
                            let value = (0..k).map(|a| g(a, 2) * g(a, P - 1)).sum::<f64>() / scale;
                            (value - m as f64).powi(2)
                        }
                    }
                };
                hits += usize::from(usize::from(score(1) < score(0)) == truth);
            }
        }
        let share = hits as f64 / (n * options.trials) as f64;
        let ours = actual.results.iter().find(|r| r.attack == attack && r.sigma == sigma).unwrap();
        assert!(
            (ours.accuracy.value - share).abs() < 2e-3,
            "{attack:?} {sigma}: {} {share}",
            ours.accuracy.value
        );
    }
}

/// The white box with the true prior is the optimal attack: on average over records it stays below every bound on the mean.
#[test]
fn no_attack_beats_its_bound() {
    let table = Table::new(3, 80, false, 4);
    let (rows, secret) = (table.rows(), secret(&table));
    let model = fit(&rows, penalty(0.02), 10).unwrap();
    let sigmas = [0.01, 0.03, 0.1, 0.4];
    let prior = Prior::from_probabilities(secret.prior().to_vec()).unwrap();
    let mut bounds = RecordBounds::new(prior, &sigmas, rows.len(), None).unwrap();
    let q = model.coefficients();
    for (row, delta) in deltas(&rows, &model, &secret).chunks_exact(2 * q).enumerate() {
        bounds.add(row as u64, q, delta).unwrap();
    }
    let played = Options { trials: 400, ..options(&[Attack::WhiteBoxPrior, Attack::WhiteBox], &sigmas) };
    let actual = attack_classes(&rows, &model, &secret, &played, &[]).unwrap();
    let mut informative = 0;
    for (at, sigma) in bounds.at_sigmas().unwrap().iter().zip(sigmas) {
        let least = at.bounds.iter().map(|b| b.mean.success.value).fold(1.0, f64::min);
        informative += usize::from(least < 0.99);
        for r in actual.results.iter().filter(|r| r.sigma == sigma) {
            assert!(
                r.accuracy.ci_low <= least,
                "{:?} at {sigma}: {} beats {least}",
                r.attack,
                r.accuracy.value
            );
        }
    }
    assert!(informative >= 2, "the bounds say something");
}

#[test]
fn balanced_leakage_is_even_and_points_score_as_records() {
    let table = Table::new(3, 90, false, 15);
    let rows = table.rows();
    let release = Release { sigma: 0.7, releases: 1, label_secret: true };
    let balancing = |sharing, update| Balancing {
        level: Level::Record,
        sharing,
        variant: Variant::Weighted,
        update,
        clamp: None,
        iterations: 60,
        tolerance: 1e-8,
        release,
        shape: None,
    };
    let kind = (ModelKind::Softmax, penalty(0.05), 10);
    let actual =
        balance_model(&rows, kind, &balancing(Sharing::Sample, Update::Accelerated), |_, _, _| Ok(()))
            .unwrap();
    let Minimiser::Softmax(model) = &actual.fit else { panic!("a model of classes") };
    // Measured anew, with the weights in place.
    let weighted = Altered::weighted(&rows, &actual.weights).unwrap();
    let geometry = SoftmaxGeometry::new(model, &[], release).unwrap();
    let mut eta = vec![];
    weighted
        .as_rows()
        .fold(
            || (vec![], SoftmaxRecords::default()),
            |(eta, records), block| {
                geometry.records(block, records)?;
                eta.extend_from_slice(&records.eta);
                Ok(())
            },
            |(part, _): (Vec<f64>, _)| {
                eta.extend(part);
                Ok(())
            },
        )
        .unwrap();
    let (least, most) = eta.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), e| (a.min(*e), b.max(*e)));
    assert!(most / least - 1.0 < 1e-5, "{least} {most}");
    let mean = actual.eta_before.iter().sum::<f64>() / 90.0;
    assert!(actual.eta_before.iter().any(|e| (e / mean - 1.0).abs() > 0.2), "it was uneven before");
    let plain = losses_of(&rows, &actual.fit, &Level::Record, release, None).unwrap();
    assert!(
        plain.iter().zip(&actual.weights).zip(&eta).all(|((e, w), eta)| (e * w / eta - 1.0).abs() < 1e-9)
    );
    // One weight a class, for three of them.
    let shared =
        balance_model(&rows, kind, &balancing(Sharing::Class, Update::Published), |_, _, _| Ok(())).unwrap();
    let mut distinct = shared.weights.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    assert!(distinct.len() == 3 || shared.best == 0, "{distinct:?}");
    // The training records as points: what they leak as records, with and without labels.
    let model = fit(&rows, penalty(0.05), 10).unwrap();
    let geometry = SoftmaxGeometry::new(&model, &[], release).unwrap();
    let (mut records, score) = (SoftmaxRecords::default(), |labelled| SoftmaxScore {
        geometry: Cow::Borrowed(&geometry),
        counted: false,
        labelled,
        most: 5,
    });
    let (mut told, mut guessed) = (score(true).start(), score(false).start());
    for block in rows.blocks() {
        score(true).step(&mut told, block).unwrap();
        score(false).step(&mut guessed, block).unwrap();
        geometry.records(block, &mut records).unwrap();
        assert_eq!(told.last().eta, records.eta);
    }
    assert_eq!(told.most.records().len(), 5);
    assert!(guessed.eta.mean() < told.eta.mean(), "a predicted class has the smallest residual");
}

#[test]
fn what_cannot_be_played_is_said() {
    let table = Table::new(3, 30, false, 2);
    let (rows, secret) = (table.rows(), secret(&table));
    let model = fit(&rows, penalty(0.1), 10).unwrap();
    let play = |options: &Options, parts: &[u8]| attack_classes(&rows, &model, &secret, options, parts);
    assert!(play(&options(&[Attack::WhiteBox], &[0.0]), &[]).is_err());
    assert!(play(&Options { trials: 0, ..options(&[Attack::WhiteBox], &[1.0]) }, &[]).is_err());
    assert!(play(&options(&[Attack::WhiteBox], &[1.0]), &[0; 3]).is_err());
    let without = fit(&rows, Penalty::new(0.1, false), 10).unwrap();
    let informed = options(&[Attack::Informed], &[1.0]);
    assert!(attack_classes(&rows, &without, &secret, &informed, &[]).is_err());
    let outside = Secret::category(9..10, vec![0.0, 1.0], &[3, 4]).unwrap();
    assert!(attack_classes(&rows, &model, &outside, &informed, &[]).is_err());
}
