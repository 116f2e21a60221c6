//! Reweighting against Hannun's algorithm 1 spelled out with dense Jacobians, and what must hold of its result.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;

use dense::{Dense, Draws, families, inverse, label, place, spectral_norm};
use faer::Mat;
use leakscope_core::balance::{Level, Options, Sharing, Stopped, Update, Variant, balance};
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::{Family, fit};
use leakscope_core::{Error, Result};

const RELEASE: Release = Release { sigma: 0.5, releases: 1, label_secret: true };

fn table(family: Family, n: usize, p: usize) -> Dense {
    let mut draws = Draws(place(family) + 11);
    let x: Vec<f64> = (0..n * p).map(|i| if i % p == p - 1 { 1.0 } else { draws.normal() }).collect();
    let y = (0..n)
        .map(|i| {
            let z = 0.7 * x[i * p] - 0.4 * x[i * p + 1] + 0.6 * draws.normal();
            match family {
                Family::Linear => z,
                Family::Logistic => f64::from(u8::from(z > 0.0)),
                Family::Poisson => (z * 0.5).exp().round(),
                Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                    let (u, e) = (draws.uniform(), draws.normal());
                    label(family, i, z, u, e)
                }
            }
        })
        .collect();
    Dense { family, intercept: true, l2: 0.02, p, x, y, weight: vec![], w: vec![] }
}

fn options(level: Level) -> Options {
    Options {
        level,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations: 10,
        tolerance: 0.0,
        release: RELEASE,
        shape: None,
    }
}

fn quiet(_: &leakscope_core::balance::Iteration, _: &leakscope_core::glm::Fit, _: &[f64]) -> Result<()> {
    Ok(())
}

/// ω after `iterations` rounds of algorithm 1, with Jacobians as dense matrices; `columns` is what is balanced.
fn algorithm_1(data: &Dense, columns: Option<usize>, variant: Variant, iterations: usize) -> Vec<f64> {
    let n = data.n();
    let mut data = Dense { weight: vec![1.0; n], ..data.clone() };
    for _ in 0..iterations {
        data.w = fit(&data.rows(n), data.family, data.penalty()).unwrap().w;
        let h = inverse(&data.hessian()).unwrap();
        let eta: Vec<f64> = (0..n)
            .map(|i| {
                let j = data.jacobian(i, columns.is_none(), &h);
                let j = match columns {
                    None => j,
                    Some(c) => Mat::from_fn(data.p, 1, |r, _| j[(r, c)]),
                };
                let weighted = spectral_norm(&j) / RELEASE.sigma;
                if variant == Variant::Weighted { weighted } else { weighted / data.weight[i] }
            })
            .collect();
        let ratio: Vec<f64> = data.weight.iter().zip(&eta).map(|(w, e)| w / e).collect();
        let sum: f64 = ratio.iter().sum();
        data.weight = ratio.iter().map(|r| n as f64 * r / sum).collect();
    }
    data.weight
}

#[test]
fn weights_are_those_of_algorithm_1_for_every_family_level_and_variant() {
    for family in families() {
        let data = table(family, 60, 4);
        for column in [None, Some(1)] {
            if family == Family::SquaredHinge && column.is_some() {
                // Beyond the margin an attribute leaks nothing, and the published weights are not finite.
                continue;
            }
            for variant in [Variant::Weighted, Variant::Unweighted] {
                let level =
                    column.map_or(Level::Record, |c| Level::Attribute(Directions::columns(c..c + 1, 4)));
                let mut seen = vec![];
                let o = Options { iterations: 3, variant, ..options(level) };
                balance(&data.rows(17), (family, data.penalty()), &o, |_, _, weights| {
                    seen.push(weights.to_vec());
                    Ok(())
                })
                .unwrap();
                for (k, weights) in seen.iter().enumerate() {
                    let expected = algorithm_1(&data, column, variant, k);
                    for (a, b) in weights.iter().zip(&expected) {
                        assert!((a - b).abs() < 1e-9 * b.max(1.0), "{family:?} {column:?} {variant:?} {k}");
                    }
                }
            }
        }
    }
}

#[test]
fn records_end_up_with_the_same_loss_and_acceleration_gets_there_sooner() {
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        let data = table(family, 400, 5);
        let run = |update, iterations| {
            let o = Options { update, iterations, ..options(Level::Record) };
            balance(&data.rows(100), (family, data.penalty()), &o, quiet).unwrap()
        };
        let plain = run(Update::Published, 12);
        assert!(plain.history[0].spread > 0.2 && plain.history[plain.best].spread < 0.02, "{family:?}");
        let sum: f64 = plain.weights.iter().sum();
        assert!((sum / 400.0 - 1.0).abs() < 1e-12);
        let fast = run(Update::Accelerated, 12);
        let (a, b) = (fast.history[fast.best].spread, plain.history[plain.best].spread);
        assert!(a < 0.1 * b, "{family:?}: {a} {b}");
        // The same fixed point: the plain update leaves the accelerated weights alone.
        let again = algorithm_1_once(&data, &fast.weights);
        let moved = again.iter().zip(&fast.weights).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        assert!(moved < 20.0 * a + 1e-9, "{family:?} {moved}");
        assert_eq!(fast.eta_before, plain.eta_before);
    }
}

fn algorithm_1_once(data: &Dense, weights: &[f64]) -> Vec<f64> {
    let n = data.n();
    let mut data = Dense { weight: weights.to_vec(), ..data.clone() };
    data.w = fit(&data.rows(n), data.family, data.penalty()).unwrap().w;
    let h = inverse(&data.hessian()).unwrap();
    let ratio: Vec<f64> =
        (0..n).map(|i| weights[i] * RELEASE.sigma / spectral_norm(&data.jacobian(i, true, &h))).collect();
    let sum: f64 = ratio.iter().sum();
    ratio.iter().map(|r| n as f64 * r / sum).collect()
}

#[test]
fn the_unweighted_variant_has_no_fixed_point_so_weights_vanish_and_the_best_is_kept() {
    let data = table(Family::Linear, 80, 3);
    let o = Options { variant: Variant::Unweighted, iterations: 400, ..options(Level::Record) };
    let actual = balance(&data.rows(80), (Family::Linear, data.penalty()), &o, quiet).unwrap();
    let Stopped::Vanished { row, weight } = actual.stopped else { panic!("{:?}", actual.stopped) };
    assert!(weight < 1e-9 && row < 80);
    assert!(actual.history.iter().all(|i| i.spread >= actual.history[actual.best].spread));
    assert!(actual.weights.iter().all(|w| w.is_finite() && *w > 0.0));
}

#[test]
fn classes_share_a_weight_and_clamped_weights_stay_inside() {
    let data = table(Family::Logistic, 120, 3);
    let model = (Family::Logistic, data.penalty());
    let per_class = Options { sharing: Sharing::Class, iterations: 2, ..options(Level::Record) };
    let mut last = vec![];
    balance(&data.rows(50), model, &per_class, |_, _, w| {
        last = w.to_vec();
        Ok(())
    })
    .unwrap();
    for i in 0..120 {
        let same = (0..120).find(|&j| data.y[j] == data.y[i]).unwrap();
        assert_eq!(last[i], last[same]);
    }
    let hybrid = Options { sharing: Sharing::Hybrid, iterations: 1, ..options(Level::Record) };
    let (mut product, own) = (vec![], algorithm_1(&data, None, Variant::Weighted, 1));
    balance(&data.rows(50), model, &hybrid, |_, _, w| {
        product = w.to_vec();
        Ok(())
    })
    .unwrap();
    for i in 0..120 {
        let of_class: Vec<f64> = (0..120).filter(|&j| data.y[j] == data.y[i]).map(|j| own[j]).collect();
        let expected = own[i] * of_class.iter().sum::<f64>() / of_class.len() as f64;
        assert!((product[i] - expected).abs() < 1e-9);
    }
    for sharing in [Sharing::Sample, Sharing::Class, Sharing::Hybrid] {
        let clamped = Options { clamp: Some((0.8, 1.2)), sharing, ..options(Level::Record) };
        balance(&data.rows(50), model, &clamped, |i, _, w| {
            assert!(i.number == 0 || w.iter().all(|w| (0.8..=1.2).contains(w)), "{sharing:?}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let data = table(Family::Linear, 30, 3);
    let model = (Family::Linear, data.penalty());
    let refused = |o: Options| {
        matches!(
            balance(&data.rows(9), model, &o, quiet),
            Err(Error::OutOfRange { .. } | Error::Setting { .. })
        )
    };
    assert!(refused(Options { sharing: Sharing::Class, ..options(Level::Record) }));
    assert!(refused(Options { clamp: Some((2.0, 1.0)), ..options(Level::Record) }));
    assert!(refused(Options { tolerance: f64::NAN, ..options(Level::Record) }));
    let release = Release { sigma: 0.0, ..RELEASE };
    assert!(refused(Options { release, ..options(Level::Record) }));
    let fast =
        Options { update: Update::Accelerated, variant: Variant::Unweighted, ..options(Level::Record) };
    assert!(refused(fast));
    let zero = Dense { weight: (0..30).map(|i| f64::from(i % 2)).collect(), ..data.clone() };
    let error = balance(&zero.rows(9), model, &options(Level::Record), quiet).unwrap_err();
    assert!(matches!(error, Error::Weight { .. }));
}
