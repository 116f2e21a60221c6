//! Bounds are attacked: real attackers on real releases, and none does better than its theorem allows. The
//! attackers refit the model with a candidate value in place; they know nothing of Fisher information.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Dense, Draws};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::{Family, fit};

const TRIALS: usize = 4_000;

/// A ridge regression of eight records on two columns and an intercept.
fn model() -> Dense {
    let mut draws = Draws(2);
    let (mut x, mut y) = (vec![], vec![]);
    for _ in 0..8 {
        let (a, b) = (draws.normal(), draws.normal());
        x.extend([a, b, 1.0]);
        y.push(1.3 * a - 0.8 * b + 0.4 + 0.6 * draws.normal());
    }
    Dense { family: Family::Linear, intercept: true, l2: 0.05, p: 3, x, y, weight: vec![], w: vec![] }
}

/// The minimiser with `value` in column `j` of record `i`.
fn refit(model: &Dense, (i, j): (usize, usize), value: f64) -> Vec<f64> {
    let mut changed = model.clone();
    changed.x[i * model.p + j] = value;
    fit(&changed.rows(64), model.family, model.penalty()).unwrap().w
}

/// η of one attribute with `value` in its place, as the library reports it.
fn eta(model: &Dense, (i, j): (usize, usize), value: f64, sigma: f64) -> f64 {
    let mut changed = model.clone();
    changed.x[i * model.p + j] = value;
    let rows = changed.rows(64);
    let fitted = fit(&rows, model.family, model.penalty()).unwrap();
    let release = Release { sigma, releases: 1, label_secret: false };
    let geometry = Geometry::new(&fitted, &[Directions::columns(j..j + 1, model.p)], release).unwrap();
    let mut records = Records::default();
    geometry.records(&rows.blocks()[0], &mut records);
    records.attribute_eta[i]
}

fn noisy(w: &[f64], sigma: f64, draws: &mut Draws) -> Vec<f64> {
    w.iter().map(|w| w + sigma * draws.normal()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The attacker's estimate: `argmin_v ‖w' − w(v)‖²`, which is maximum likelihood, by Gauss–Newton on refits
/// from a start that is not the truth.
fn most_likely_value(model: &Dense, at: (usize, usize), released: &[f64], start: f64) -> f64 {
    let (mut value, h) = (start, 1e-5);
    for _ in 0..20 {
        let (up, down) = (refit(model, at, value + h), refit(model, at, value - h));
        let slope: Vec<f64> = minus(&up, &down).iter().map(|v| v / (2.0 * h)).collect();
        let middle: Vec<f64> = up.iter().zip(&down).map(|(u, d)| 0.5 * (u + d)).collect();
        let step = dot(&slope, &minus(released, &middle)) / dot(&slope, &slope);
        value += step;
        if step.abs() < 1e-6 {
            break;
        }
    }
    value
}

#[test]
fn no_unbiased_estimate_of_an_attribute_beats_cramer_rao_and_the_likeliest_value_reaches_it() {
    let model = model();
    for at in [(1, 0), (4, 1)] {
        let truth = model.x[at.0 * model.p + at.1];
        // Noise that leaves an uncertainty of 0.02, where the model is straight.
        let sigma = 0.02 * eta(&model, at, truth, 1.0);
        let bound = Bound::at_least(1.0 / eta(&model, at, truth, sigma), Theorem::CramerRao).value;
        assert!((bound / 0.02 - 1.0).abs() < 1e-9, "η ∝ 1/σ");
        let (w, mut draws) = (refit(&model, at, truth), Draws(11));
        let estimates: Vec<f64> = (0..TRIALS)
            .map(|_| most_likely_value(&model, at, &noisy(&w, sigma, &mut draws), truth + 0.1))
            .collect();
        let mean = estimates.iter().sum::<f64>() / TRIALS as f64;
        let sd = (estimates.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (TRIALS - 1) as f64).sqrt();
        // Standard error of a normal standard deviation: sd/√(2N).
        let error = tolerance::STANDARD_ERRORS * sd / (2.0 * TRIALS as f64).sqrt();
        assert!(sd + error >= bound, "{at:?}: {sd} beats {bound}");
        assert!(sd <= bound * (1.0 + tolerance::EFFICIENT), "{at:?}: {sd} is far above {bound}");
        // The theorem speaks of unbiased estimates: this is one, to a small part of its spread.
        let error = tolerance::STANDARD_ERRORS * sd / (TRIALS as f64).sqrt();
        assert!((mean - truth).abs() <= error + tolerance::BIAS * sd, "{at:?}: bias {}", mean - truth);
    }
}

#[test]
fn no_estimate_beats_van_trees_and_the_posterior_mean_comes_close() {
    let (model, at, s) = (model(), (1, 0), 0.25);
    let centre = model.x[at.0 * model.p + at.1];
    // Candidates over ±5 standard deviations of the prior: the integrals below are sums over them.
    let values: Vec<f64> = (0..=400).map(|k| centre + s * (k as f64 - 200.0) / 40.0).collect();
    let prior: Vec<f64> = values.iter().map(|v| (-0.5 * ((v - centre) / s).powi(2)).exp()).collect();
    let total: f64 = prior.iter().sum();
    let minimisers: Vec<Vec<f64>> = values.iter().map(|&v| refit(&model, at, v)).collect();
    // From noise that hides the attribute to noise that hides nothing: the release adds a ninth, as much,
    // nine times as much information as the prior.
    for ratio in [1.0 / 9.0, 1.0, 9.0_f64] {
        let sigma = s * eta(&model, at, centre, 1.0) / ratio.sqrt();
        let information: f64 =
            values.iter().zip(&prior).map(|(&v, p)| p * eta(&model, at, v, sigma).powi(2)).sum::<f64>()
                / total;
        let bound = Bound::at_least((information + 1.0 / (s * s)).recip().sqrt(), Theorem::VanTrees).value;
        let mut draws = Draws(5);
        let squares: Vec<f64> = (0..TRIALS)
            .map(|_| {
                let secret = centre + s * draws.normal();
                let released = noisy(&refit(&model, at, secret), sigma, &mut draws);
                let (mut mass, mut moment) = (0.0, 0.0);
                for ((v, p), w) in values.iter().zip(&prior).zip(&minimisers) {
                    let distance = minus(&released, w);
                    let posterior = p * (-0.5 * dot(&distance, &distance) / (sigma * sigma)).exp();
                    mass += posterior;
                    moment += posterior * v;
                }
                (moment / mass - secret).powi(2)
            })
            .collect();
        let mse = squares.iter().sum::<f64>() / TRIALS as f64;
        let spread = squares.iter().map(|v| (v - mse).powi(2)).sum::<f64>() / (TRIALS - 1) as f64;
        let error = tolerance::STANDARD_ERRORS * (spread / TRIALS as f64).sqrt();
        assert!((mse + error).sqrt() >= bound, "{ratio}: {} beats {bound}", mse.sqrt());
        assert!(
            (mse - error).max(0.0).sqrt() <= bound * (1.0 + tolerance::EFFICIENT),
            "{ratio}: {} is far above {bound}",
            mse.sqrt()
        );
        assert!(bound < s, "the release tells something");
    }
}
