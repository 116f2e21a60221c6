//! An audit at another noise, without measuring anything again.
//!
//! With `k = (σ₀/σ)√(R/R₀)` for a noise of σ and R releases in place of the audited σ₀ and R₀:
//!
//! | what | becomes |
//! |---|---|
//! | η of anything | `kη` |
//! | dFIL | `k²` of it |
//! | least error of an unbiased estimate | `1/k` of it |
//! | two values told apart, distance δ | `Φ(kδ/2)`; all m levels `Φ(Φ⁻¹(1/m) + kδ√((m−1)/2m))` |
//! | errors of coefficients | their part from noise `σ/σ₀` of it |
//! | expected utility | read off its curve, which one release alone decides |
//! | a secret guessed | as at the nearest noise on its curve that is no larger |
//!
//! Nothing here is calmer than an audit at that noise would be: what has no closed form is taken from less noise, and where
//! there is none, as certain. [`Moving`] is what a page needs to do the same.

mod moving;
mod shapes;

pub use moving::Moving;
pub use shapes::{Shapes, facts_at};

use crate::document::attack::AttackResult;
use crate::document::audit::{Audit, Label, Limit, Record, SigmaSource};
use crate::document::bound::SecretBounds;
use crate::document::noise::Inference;
use crate::document::tell::{AmongAll, ValuePair};
use crate::words;
use leakscope_core::claim::{Bound, Measured};
use leakscope_core::num::Summary;
use leakscope_core::special::{normal_cdf, normal_quantile};
use leakscope_core::tell::{any_level, two_values};

/// Noise that is this close to one on a curve is that one.
const SAME: f64 = 1e-9;

/// The audit with noise `sigma`, chosen, and `releases` of it.
///
/// Nothing where the noise was made for targets (its shape would have been another), or where `sigma` is no noise.
pub fn audit_at(audit: &Audit, sigma: f64, releases: u32) -> Option<Audit> {
    if audit.noise.is_some() || releases == 0 || !(sigma > 0.0 && sigma.is_finite() && audit.sigma > 0.0) {
        return None;
    }
    let k = factor(audit, sigma, releases);
    let mut a = audit.clone();
    (a.sigma, a.releases, a.sigma_source) = (sigma, releases, SigmaSource::Given);
    a.inference.iter_mut().for_each(|document| move_inference(document, sigma / audit.sigma));
    let r = &mut a.records;
    r.eta = scaled(r.eta, k);
    r.dfil = scaled(r.dfil, k * k);
    r.min_mse = moved(r.min_mse, k * k);
    (r.histogram.low, r.histogram.high) = (k * r.histogram.low, k * r.histogram.high);
    r.histogram.series.iter_mut().for_each(|s| s.mean *= k);
    r.most.iter_mut().chain(&mut r.least).for_each(|record| move_record(record, k));
    r.sample.iter_mut().for_each(|p| p.eta *= k);
    a.dataset.eta *= k;
    for x in &mut a.attributes {
        for eta in [&mut x.eta_mean, &mut x.eta_max].into_iter().chain(&mut x.eta_over_all_records) {
            *eta *= k;
        }
        if let Some(s) = &mut x.sum_to_one {
            (s.eta_mean, s.eta_max) = (k * s.eta_mean, k * s.eta_max);
            s.eta_over_all_records.iter_mut().for_each(|eta| *eta *= k);
        }
        x.min_sd = moved(x.min_sd, k);
        x.min_sd_typical /= k;
        x.min_rmse_with_prior = x
            .min_rmse_with_prior
            .zip(x.prior_sd.or(x.population_sd))
            .map(|(error, prior)| Measured { value: with_prior(error.value, prior, k), ..error });
    }
    a.label.iter_mut().for_each(|label| move_label(label, k));
    for group in &mut a.groups {
        for eta in [&mut group.eta, &mut group.eta_mean, &mut group.eta_median, &mut group.eta_max] {
            *eta *= k;
        }
    }
    for class in &mut a.classes {
        for eta in [&mut class.eta_mean, &mut class.eta_median, &mut class.eta_max] {
            *eta *= k;
        }
        class.label_eta_mean.iter_mut().chain(&mut class.label_eta_max).for_each(|eta| *eta *= k);
    }
    if let Some(s) = &mut a.scaling {
        (s.eta_max_given, s.eta_max_counted) = (k * s.eta_max_given, k * s.eta_max_counted);
    }
    if let Some(score) = &mut a.score {
        score.eta = scaled(score.eta, k);
        score.most.iter_mut().for_each(|record| move_record(record, k));
    }
    a.limits.iter_mut().for_each(|limit| move_limit(limit, k));
    a.tell.iter_mut().flat_map(|t| &mut t.attributes).for_each(|told| move_told(told, k));
    if let Some(u) = &mut a.utility {
        let times = (f64::from(releases) / f64::from(audit.releases.max(1))).sqrt();
        for point in &mut u.points {
            (point.eta_mean, point.eta_max) = (times * point.eta_mean, times * point.eta_max);
        }
        u.at_sigma = match (sigma / audit.sigma - 1.0).abs() < SAME {
            true => u.at_sigma,
            // Off its curve nothing is known of it.
            false => words::metric_at(u, sigma).unwrap_or(f64::INFINITY),
        };
    }
    if let Some(document) = &mut a.secret {
        move_secret(document, sigma * (f64::from(audit.releases) / f64::from(releases)).sqrt());
    }
    Some(a)
}

/// How many times η grows.
fn factor(audit: &Audit, sigma: f64, releases: u32) -> f64 {
    audit.sigma / sigma * (f64::from(releases) / f64::from(audit.releases.max(1))).sqrt()
}

fn scaled(s: Summary, k: f64) -> Summary {
    let Summary { mean, std, min, p50, p90, p95, p99, max } = s;
    Summary {
        mean: k * mean,
        std: k * std,
        min: k * min,
        p50: k * p50,
        p90: k * p90,
        p95: k * p95,
        p99: k * p99,
        max: k * max,
    }
}

/// A least error, which has its margin already.
fn moved(bound: Bound, k: f64) -> Bound {
    Bound { value: bound.value / k, ..bound }
}

/// Errors of coefficients: the noise of each release alone is on them.
fn move_inference(inference: &mut Inference, times: f64) {
    let z = normal_quantile(0.5 + 0.5 * inference.level);
    for c in &mut inference.coefficients {
        c.noise_error *= times;
        c.standard_error = c.sampling_error.hypot(c.noise_error);
        (c.low, c.high) = (c.estimate - z * c.standard_error, c.estimate + z * c.standard_error);
        c.p_value = match c.standard_error > 0.0 {
            true => 2.0 * normal_cdf(-(c.estimate / c.standard_error).abs()),
            false => 1.0,
        };
    }
}

fn move_record(record: &mut Record, k: f64) {
    record.eta *= k;
    record.dfil *= k * k;
    record.most_exposed_attribute.iter_mut().for_each(|(_, eta)| *eta *= k);
}

fn move_label(label: &mut Label, k: f64) {
    (label.eta_mean, label.eta_max) = (k * label.eta_mean, k * label.eta_max);
    label.min_sd = moved(label.min_sd, k);
}

fn move_limit(limit: &mut Limit, k: f64) {
    limit.value *= k;
    limit.ok = limit.value <= limit.limit;
}

/// `1/√(k²I + 1/p²)`, with the information I that an error and the prior p tell.
fn with_prior(error: f64, prior: f64, k: f64) -> f64 {
    let information = (error.powi(-2) - prior.powi(-2)).max(0.0);
    (k * k * information + prior.powi(-2)).powf(-0.5)
}

/// The distance that the median record's probability tells; nothing where that is too close to certainty to tell it.
pub(crate) fn median_distance(pair: &ValuePair) -> Option<f64> {
    (pair.median < 1.0 - 1e-9).then(|| 2.0 * normal_quantile(pair.median.max(0.5)))
}

fn move_told(pair: &mut ValuePair, k: f64) {
    let certain_unless_more_noise = |p: f64| if k <= 1.0 { p } else { 1.0 };
    pair.median = match median_distance(pair) {
        Some(distance) => two_values(k * distance, 1).value,
        None => certain_unless_more_noise(pair.median),
    };
    pair.at_least = pair.at_least.map(|distance| k * distance);
    if let (Some(distance), None) = (pair.distance, pair.shows) {
        pair.distance = Some(k * distance);
        pair.worst = two_values(k * distance, 1).value;
        pair.among_all =
            pair.among_all.map(|all| AmongAll { worst: any_level(all.levels, k * distance, 1).value, ..all });
    } else {
        pair.worst = certain_unless_more_noise(pair.worst);
        pair.among_all =
            pair.among_all.map(|all| AmongAll { worst: certain_unless_more_noise(all.worst), ..all });
    }
}

/// A secret at the nearest noise on its curve that is no larger.
fn move_secret(bounds: &mut SecretBounds, seen: f64) {
    let Some(data) = &mut bounds.data else {
        bounds.bounds.iter_mut().for_each(|b| {
            b.success = 1.0;
            b.worst.iter_mut().for_each(|w| w.success = 1.0);
        });
        return;
    };
    let reached = |s: f64| s <= seen * (1.0 + SAME);
    let point = data.curve.iter().filter(|p| reached(p.sigma)).max_by(|a, b| a.sigma.total_cmp(&b.sigma));
    match point {
        Some(point) => bounds.bounds.clone_from(&point.bounds),
        None => bounds.bounds.iter_mut().for_each(|b| {
            b.success = 1.0;
            b.worst.iter_mut().for_each(|w| w.success = 1.0);
        }),
    }
    let played = data.attacks.iter().map(|a| a.sigma);
    let level = played.clone().filter(|s| reached(*s)).max_by(f64::total_cmp);
    let least = played.min_by(f64::total_cmp);
    let of = |a: &AttackResult| Some(a.sigma) == level.or(least);
    data.attacks.retain(of);
    for attack in &mut data.attacks {
        attack.sigma = seen;
        if level.is_none() {
            attack.accuracy.value = 1.0;
        }
    }
    bounds.sigma = Some(seen);
}
