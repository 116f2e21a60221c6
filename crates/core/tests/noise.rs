//! Shapes of noise against dense definitions, against an optimiser that knows nothing of duality, and attacked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
mod designs;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Dense, Draws, beside, inverse, spectral_norm};
use designs::*;
use faer::Mat;
use leakscope_core::Error;
use leakscope_core::fisher::noise::{
    Factor, Noise, Protected, Request, Sampling, Shape, Target, design, design_with_shape, standard_errors,
};
use leakscope_core::fisher::{Directions, Geometry, Records, Release, SetSums};
use leakscope_core::glm::{Family, fit};
use leakscope_core::random::Seeded;

#[test]
fn optimal_noise_is_what_a_blind_optimiser_finds() {
    for (model, targets) in cases() {
        let (p, a, jacobians) = (model.p, cost_matrix(&model), constrained(&model, &targets));
        let actual = designed(&model, &targets, Shape::Optimal);
        let objective = |v: &[f64]| scaled_cost(&covariance_of(v, p), &a, &jacobians);
        let start = vec![0.0; p * (p + 1) / 2];
        let blind = nelder_mead(&objective, &start);
        let name = (model.family, model.intercept, targets.len());
        assert!(actual.gap <= 0.004, "{name:?}: gap {}", actual.gap);
        // Nothing feasible is below the certificate; the design is within its gap of the best there is.
        assert!(blind >= actual.lower_bound_on_cost * (1.0 - 1e-9), "{name:?}");
        assert!(actual.exact_cost <= blind * 1.005, "{name:?}: {} against {blind}", actual.exact_cost);
        assert!(blind <= actual.exact_cost * 1.02, "{name:?}: the optimiser is stuck at {blind}");
    }
}

#[test]
fn no_covariance_beats_the_certificate() {
    for (model, targets) in cases() {
        let (p, a, jacobians) = (model.p, cost_matrix(&model), constrained(&model, &targets));
        let shaped = designed(&model, &targets, Shape::Shaped);
        let optimal = designed(&model, &targets, Shape::Optimal);
        assert!(
            shaped.lower_bound_on_cost <= optimal.exact_cost
                && optimal.exact_cost <= shaped.exact_cost * 1.003
        );
        let mut draws = Draws(77);
        let centre = matrix(&optimal.noise.covariance(), p);
        for k in 0..200 {
            // Near the best one and far from it.
            let spread = if k % 2 == 0 { 0.02 } else { 1.0 };
            let factor = Mat::from_fn(p, p, |i, j| f64::from(u8::from(i == j)) + spread * draws.normal());
            let candidate = &factor * &centre * factor.transpose();
            let cost = scaled_cost(&candidate, &a, &jacobians);
            assert!(cost >= optimal.lower_bound_on_cost * (1.0 - 1e-9), "{cost}");
            assert!(cost >= shaped.lower_bound_on_cost * (1.0 - 1e-9), "{cost}");
        }
    }
}

#[test]
fn figures_of_a_design_are_those_of_their_definitions() {
    for (model, targets) in cases() {
        let (p, a, jacobians) = (model.p, cost_matrix(&model), constrained(&model, &targets));
        let identity = Mat::<f64>::identity(p, p);
        for shape in [Shape::Isotropic, Shape::Shaped, Shape::Optimal] {
            let actual = designed(&model, &targets, shape);
            let isotropic = scaled_cost(&identity, &a, &jacobians);
            assert!((actual.cost_isotropic / isotropic - 1.0).abs() < 1e-9);
            let covariance = matrix(&actual.noise.covariance(), p);
            assert!((actual.cost / trace(&(&covariance * &a)) - 1.0).abs() < 1e-10);
            let precision = inverse(&covariance).unwrap();
            let worst = jacobians
                .iter()
                .map(|j| spectral_norm(&(j.transpose() * &precision * j)))
                .fold(0.0, f64::max);
            assert!((worst.sqrt() / actual.largest_eta - 1.0).abs() < 1e-9);
            // What the mean and what the covariance give away stay within the target together.
            assert!(
                worst + actual.covariance_information <= 1.0 + 1e-9,
                "{worst} {}",
                actual.covariance_information
            );
            assert!(actual.cost >= actual.lower_bound_on_cost);
            assert!((actual.gain * actual.exact_cost / actual.cost_isotropic - 1.0).abs() < 1e-12);
            let scaled = scaled_cost(&covariance, &a, &jacobians);
            // The factor is rounded to eight binary places.
            assert!((scaled / actual.exact_cost - 1.0).abs() < 0.03, "{scaled} {}", actual.exact_cost);
            match shape {
                Shape::Isotropic => assert!(actual.covariance_information == 0.0 && actual.gain == 1.0),
                Shape::Shaped | Shape::Optimal => assert!(actual.covariance_information > 0.0),
            }
            assert_eq!(actual.factor.noise().unwrap(), actual.noise);
            assert_eq!(actual, designed(&model, &targets, shape), "the same input gives the same design");
        }
    }
}

#[test]
fn leakage_under_shaped_noise_is_that_of_dense_jacobians() {
    for family in dense::families() {
        for (intercept, weighted) in [(true, true), (false, false)] {
            let model = model(family, (20, 4), intercept, weighted, 3);
            let (p, d, fitted) = (model.p, model.d(), fitted(&model));
            let mut draws = Draws(9);
            let factor: Vec<f64> = (0..p * p)
                .map(|ij| {
                    if ij % p > ij / p {
                        0.0
                    } else if ij % p == ij / p {
                        0.5 + draws.uniform()
                    } else {
                        draws.normal()
                    }
                })
                .collect();
            let noise = Noise::from_factor(factor, p).unwrap();
            let white = matrix(noise.whitener(), p);
            let dense_inverse = inverse(&model.hessian()).unwrap();
            let bases: Vec<Directions> = (0..d)
                .map(|j| Directions::columns(j..j + 1, p))
                .chain([Directions::columns(1..d, p)])
                .collect();
            for label_secret in [true, false] {
                let release = Release { sigma: 0.7, releases: 2, label_secret };
                let geometry = Geometry::under(&fitted, &bases, release, &noise).unwrap();
                let gain = 2_f64.sqrt() / 0.7;
                let (mut out, mut set) = (Records::default(), SetSums::new(p, true));
                let rows = model.rows(64);
                geometry.records(&rows.blocks()[0], &mut out);
                geometry.add_to_set(&rows.blocks()[0], &out, None, &mut set);
                let jacobians: Vec<Mat<f64>> = (0..model.n())
                    .map(|i| &white * model.jacobian(i, label_secret, &dense_inverse))
                    .collect();
                let same = |actual: f64, truth: f64, size: f64| {
                    assert!(
                        (actual - gain * truth).abs() <= 1e-9 * gain * size,
                        "{family:?}: {actual} {}",
                        gain * truth
                    );
                };
                for (i, j) in jacobians.iter().enumerate() {
                    let size = spectral_norm(j);
                    same(out.eta[i], size, size);
                    for (k, basis) in bases.iter().enumerate() {
                        let part = j.subcols(0, d) * dense::basis_matrix(&basis.basis, d, basis.count);
                        same(out.attribute_eta[i * bases.len() + k], spectral_norm(&part), size);
                    }
                    let label = &white * model.jacobian(i, true, &dense_inverse).subcols(d, 1);
                    same(geometry.label_eta(&out, i), spectral_norm(&label), size.max(spectral_norm(&label)));
                    let dfil = dense::squared(j) * gain * gain / j.ncols() as f64;
                    assert!((out.dfil[i] / dfil - 1.0).abs() < 1e-8);
                }
                let whole = spectral_norm(&beside(&jacobians));
                same(geometry.set_eta(&set).unwrap(), whole, whole);
                let over = geometry.attributes_over_set(&set).unwrap();
                for (k, basis) in bases.iter().enumerate() {
                    let b = dense::basis_matrix(&basis.basis, d, basis.count);
                    let parts: Vec<Mat<f64>> = jacobians.iter().map(|j| j.subcols(0, d) * &b).collect();
                    same(over[k], spectral_norm(&beside(&parts)), whole);
                }
            }
        }
    }
}

#[test]
fn released_noise_has_its_covariance_and_a_lattice_of_the_factor_alone() {
    let factor = Factor { quarters: 3, exponents: vec![-3, -1, 0], entries: vec![8, -3, 9, 2, -5, 17] };
    let noise = factor.noise().unwrap();
    let (p, draws) = (3, 20_000);
    let truth = noise.covariance();
    let mut sums = vec![0.0; p * p];
    let mut bits = Seeded::new(4);
    let step = 2_f64.powi(-20);
    for (k, w) in
        [[0.1234567891234, -2.0, 1e3], [1.0 / 3.0, 1e-9, 0.0]].iter().cycle().take(draws).enumerate()
    {
        let released = noise.release(w, &mut bits).unwrap();
        // Whatever w is, the released point is F·g·(integers).
        let integers: Vec<f64> = noise.whiten(&released).iter().map(|y| y / step).collect();
        if k < 50 {
            assert!(integers.iter().all(|y| (y - y.round()).abs() < 1e-3), "{integers:?}");
        }
        let d: Vec<f64> = released.iter().zip(w).map(|(r, w)| r - w).collect();
        (0..p * p).for_each(|ij| sums[ij] += d[ij / p] * d[ij % p] / draws as f64);
    }
    for ij in 0..p * p {
        let spread = (truth[ij / p * (p + 1)] * truth[ij % p * (p + 1)] * 2.0 / draws as f64).sqrt();
        assert!((sums[ij] - truth[ij]).abs() < 4.5 * spread, "{ij}: {} {}", sums[ij], truth[ij]);
    }
    assert!(noise.release(&[0.0], &mut bits).is_err());
    assert!(noise.release(&[f64::NAN; 3], &mut bits).is_err());
    assert!(Factor { quarters: 0, exponents: vec![0], entries: vec![0] }.noise().is_err());
    assert!(Factor { quarters: 0, exponents: vec![0, 0], entries: vec![1] }.noise().is_err());
    assert!(Noise::isotropic(0.0, 2).is_err() && Noise::isotropic(f64::NAN, 2).is_err());
}

#[test]
fn distances_are_those_by_the_inverse_covariance() {
    let noise = Noise::from_covariance(&[4.0, 1.0, 1.0, 9.0], 2).unwrap();
    // (1, −2) Σ⁻¹ (1, −2)ᵀ, Σ⁻¹ = [[9, −1], [−1, 4]]/35
    assert!((noise.distance(&[1.0, -2.0]).powi(2) - (9.0 + 4.0 + 16.0) / 35.0).abs() < 1e-14);
    let white = noise.whiten_rows(&[1.0, -2.0, 0.0, 0.0]);
    assert!((white[0].powi(2) + white[1].powi(2) - 29.0 / 35.0).abs() < 1e-14 && white[2..] == [0.0, 0.0]);
}

/// Somebody who knows all other records tells two values of one apart no better than Φ(δ/2) under shaped noise.
#[test]
fn the_white_box_does_not_beat_its_bound_under_shaped_noise() {
    let model = model(Family::Linear, (40, 3), true, false, 8);
    let actual = designed(&model, &records(6.0, false), Shape::Optimal);
    let changed = |value: f64| {
        let mut other = model.clone();
        other.x[5 * model.p + 1] = value;
        fitted(&other).w
    };
    let (wa, wb) = (changed(-1.5), changed(1.5));
    let gap: Vec<f64> = wa.iter().zip(&wb).map(|(a, b)| a - b).collect();
    let delta = actual.noise.distance(&gap);
    let (mut bits, trials) = (Seeded::new(6), 8_000);
    let mut right = 0.0;
    for k in 0..trials {
        let truth = if k % 2 == 0 { &wa } else { &wb };
        let seen = actual.noise.release(truth, &mut bits).unwrap();
        let distance =
            |w: &[f64]| actual.noise.distance(&seen.iter().zip(w).map(|(s, w)| s - w).collect::<Vec<_>>());
        right += f64::from(u8::from((distance(&wa) < distance(&wb)) == (k % 2 == 0)));
    }
    let (rate, bound) = (right / f64::from(trials), leakscope_core::special::normal_cdf(0.5 * delta));
    let error = (bound * (1.0 - bound) / f64::from(trials)).sqrt();
    assert!(delta > 0.3, "a test that could fail: {delta}");
    assert!(rate <= bound + tolerance::STANDARD_ERRORS * error, "{rate} beats {bound}");
    assert!(rate >= bound - 4.0 * error, "the optimal attack attains it: {rate} {bound}");
}

#[test]
fn a_public_shape_gives_nothing_away_and_meets_its_target() {
    let (public, private) =
        (model(Family::Logistic, (60, 3), true, false, 1), model(Family::Logistic, (40, 3), true, false, 2));
    let targets = records(5.0, true);
    let shape = designed(&public, &targets, Shape::Optimal).factor;
    let request = Request::new(targets, Shape::Optimal);
    let actual = design_with_shape(&private.rows(9), &fitted(&private), &request, &shape).unwrap();
    assert!(actual.covariance_information == 0.0 && actual.largest_eta <= 1.0);
    assert!(actual.exact_cost >= actual.lower_bound_on_cost && actual.factor.entries == shape.entries);
    let narrow = Factor { quarters: 0, exponents: vec![0], entries: vec![1] };
    let error = design_with_shape(&private.rows(9), &fitted(&private), &request, &narrow).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
}

#[test]
fn a_budget_for_the_shape_is_kept_at_some_cost() {
    let model = model(Family::Logistic, (80, 3), true, false, 12);
    let (rows, fitted) = (model.rows(8), fitted(&model));
    let free = Request { shape_budget: 1.0, ..Request::new(records(6.0, true), Shape::Optimal) };
    let best = design(&rows, &fitted, &free).unwrap();
    let budget = 0.3 * best.covariance_information;
    let kept = design(&rows, &fitted, &Request { shape_budget: budget, ..free.clone() }).unwrap();
    let shaped = design(&rows, &fitted, &Request { shape: Shape::Shaped, ..free.clone() }).unwrap();
    assert!(kept.covariance_information <= budget && kept.largest_eta <= 1.0);
    assert!(best.exact_cost <= kept.exact_cost * 1.01 && kept.exact_cost <= shaped.exact_cost);
    assert!(kept.lower_bound_on_cost >= best.lower_bound_on_cost * (1.0 - 1e-12));
    let error = design(&rows, &fitted, &Request { shape_budget: 0.0, ..free }).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
}

#[test]
fn two_releases_need_twice_the_variance() {
    let model = model(Family::Linear, (30, 2), true, false, 4);
    let once = Request::new(records(2.0, true), Shape::Shaped);
    let twice = Request { releases: 4, ..once.clone() };
    let (rows, fitted) = (model.rows(8), fitted(&model));
    let (once, twice) = (design(&rows, &fitted, &once).unwrap(), design(&rows, &fitted, &twice).unwrap());
    assert!((twice.exact_cost / once.exact_cost - 4.0).abs() < 1e-9);
}

#[test]
fn nonsense_and_targets_out_of_reach_are_refused() {
    let model = model(Family::Linear, (25, 2), true, false, 6);
    let (rows, fitted, p) = (model.rows(8), fitted(&model), model.p);
    let ask = |request: &Request| design(&rows, &fitted, request).unwrap_err();
    let good = Request::new(records(4.0, true), Shape::Shaped);
    assert!(matches!(ask(&Request { targets: vec![], ..good.clone() }), Error::NotApplicable { .. }));
    for eta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            ask(&Request { targets: records(eta, true), ..good.clone() }),
            Error::OutOfRange { .. }
        ));
    }
    let empty = Target { protected: Protected::Attribute(Directions { basis: vec![], count: 0 }), eta: 1.0 };
    assert!(matches!(ask(&Request { targets: vec![empty], ..good.clone() }), Error::NotApplicable { .. }));
    assert!(matches!(ask(&Request { releases: 0, ..good.clone() }), Error::OutOfRange { .. }));
    assert!(matches!(ask(&Request { gap: 0.0, ..good.clone() }), Error::OutOfRange { .. }));
    assert!(matches!(ask(&Request { cost: Some(vec![1.0]), ..good.clone() }), Error::Shape { .. }));
    let singular = Request { cost: Some(vec![1.0; p * p]), ..good.clone() };
    assert!(matches!(ask(&singular), Error::Singular { .. }));
    // The covariance's own information does not shrink as noise grows.
    let strict = Request { targets: records(1e-6, true), ..good.clone() };
    assert!(matches!(ask(&strict), Error::Unreachable { .. }), "{}", ask(&strict));
    let isotropic = Request { shape: Shape::Isotropic, ..strict };
    assert!(design(&rows, &fitted, &isotropic).unwrap().largest_eta <= 1.0);
    // A constant column beside an intercept makes A singular; the penalty keeps H regular.
    let mut constant = model.clone();
    (0..constant.n()).for_each(|i| constant.x[i * p] = 2.0);
    let refitted = fit(&constant.rows(8), constant.family, constant.penalty()).unwrap();
    assert!(matches!(design(&constant.rows(8), &refitted, &good).unwrap_err(), Error::Singular { .. }));
}

#[test]
fn degenerate_tables_have_designs() {
    // One column; duplicate rows; wild units.
    let mut single = model(Family::Linear, (20, 1), false, false, 3);
    let actual = designed(&single, &records(6.0, true), Shape::Optimal);
    assert!((actual.gain - 1.0).abs() < 1e-3, "with one coefficient there is one shape: {}", actual.gain);
    let copy = single.x.clone();
    single.x.extend(copy);
    let copy = single.y.clone();
    single.y.extend(copy);
    single.w = fitted(&single).w;
    assert!(designed(&single, &records(6.0, true), Shape::Optimal).gap < 0.01);
    let mut wild = model(Family::Linear, (40, 3), true, false, 3);
    wild.l2 = 0.0;
    (0..wild.n()).for_each(|i| {
        wild.x[i * 4] *= 1e6;
        wild.x[i * 4 + 1] *= 1e-5;
    });
    wild.w = fitted(&wild).w;
    // A target in the units of the columns.
    let mut basis = vec![0.0; 12];
    [1e6, 1e-5, 1.0].into_iter().enumerate().for_each(|(j, unit)| basis[j * 3 + j] = unit);
    let directions = Directions { basis, count: 3 };
    let target = Target { protected: Protected::Attribute(directions), eta: 6.0 };
    let actual = designed(&wild, &[target], Shape::Optimal);
    assert!(
        actual.gap < 0.01 && actual.gain > 1.0 && actual.largest_eta <= 1.0,
        "{} {}",
        actual.gap,
        actual.gain
    );
}

/// Intervals of released coefficients cover the truth as often as they say, over samples and noise.
#[test]
fn intervals_cover_the_truth() {
    let (n, p, truth) = (400, 3, [0.8, -0.5, 0.3]);
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        for sampling in [Sampling::Sandwich, Sampling::Model] {
            let (mut draws, mut bits) = (Draws(31), Seeded::new(2));
            let noise = Noise::from_covariance(&[0.01, 0.004, 0.0, 0.004, 0.02, 0.001, 0.0, 0.001, 0.005], p)
                .unwrap();
            let (mut covered, trials) = (0.0, 400);
            for _ in 0..trials {
                let (mut x, mut y) = (vec![], vec![]);
                for _ in 0..n {
                    let row = [draws.normal(), draws.normal(), 1.0];
                    let z: f64 = row.iter().zip(&truth).map(|(x, w)| x * w).sum();
                    x.extend(row);
                    y.push(match family {
                        Family::Linear => z + 0.7 * draws.normal(),
                        Family::Logistic => f64::from(u8::from(draws.uniform() < 1.0 / (1.0 + (-z).exp()))),
                        Family::Poisson => poisson(z.exp(), &mut draws),
                        Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                            unreachable!("not drawn here")
                        }
                    });
                }
                let sample = Dense { family, intercept: true, l2: 0.0, p, x, y, weight: vec![], w: vec![] };
                let (rows, fitted) = (sample.rows(128), fitted(&sample));
                let released = noise.release(&fitted.w, &mut bits).unwrap();
                let actual = standard_errors(&rows, &fitted, &noise, &released, (sampling, 0.9)).unwrap();
                for (coefficient, truth) in actual.coefficients.iter().zip(&truth) {
                    let (low, high) = coefficient.interval;
                    covered += f64::from(u8::from(low <= *truth && *truth <= high)) / 3.0;
                    assert!(coefficient.standard_error >= coefficient.noise_error);
                }
            }
            let rate = covered / f64::from(trials);
            assert!((rate - 0.9).abs() < 0.04, "{family:?} {sampling:?}: {rate}");
        }
    }
}

/// By inversion; means here are below 20.
fn poisson(mean: f64, draws: &mut Draws) -> f64 {
    let (mut k, mut mass, mut u) = (0.0, (-mean).exp(), draws.uniform());
    while u > mass && k < 1000.0 {
        u -= mass;
        k += 1.0;
        mass *= mean / k;
    }
    k
}
