//! An audit as it may be shared: what few records have in common is left out or merged, and no number is more exact than three
//! digits, rounded so that a page is never calmer for it.
//!
//! | part | becomes |
//! |---|---|
//! | the most and the least exposed records, dots, records one by one, scored points | left out |
//! | groups and classes of fewer than [`FEW`] records | left out, their bars merged into one of "others" |
//! | a bar of fewer than [`FEW`] records | merged with its neighbours |
//! | two values of an attribute | numbers to about the size of their difference, levels unnamed |
//! | coefficients as fitted, which undo the noise and name levels | left out |
//! | remarks, which may name values | counted |
//! | ranges of columns, names of one-hot columns | left out |

use super::Numbers;
use super::histogram::coarsened;
use crate::document::audit::{Attribute, Audit, Histogram, Series, SigmaSource};
use crate::document::choice::SeriesBy;
use crate::document::tell::ValuePair;
use crate::format;
use leakscope_core::num::Summary;

/// What fewer records than this have in common could single out a person.
pub(super) const FEW: u64 = 10;
const DIGITS: i32 = 3;
const OTHERS: &str = "others";

/// Three digits, none smaller.
pub(super) fn up(x: f64) -> f64 {
    rounded(x, f64::ceil)
}

/// Three digits, none larger.
fn down(x: f64) -> f64 {
    rounded(x, f64::floor)
}

fn rounded(x: f64, whole: fn(f64) -> f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let power = DIGITS - 1 - x.abs().log10().floor() as i32;
    // A number that has three digits already keeps them.
    let near = (x * 10_f64.powi(power)).round() / 10_f64.powi(power);
    if (near - x).abs() <= 1e-12 * x.abs() {
        return near;
    }
    let short = whole(x * 10_f64.powi(power)) / 10_f64.powi(power);
    if short.is_finite() { short } else { x }
}

pub(super) fn summary(s: &mut Summary) {
    for x in [&mut s.mean, &mut s.std, &mut s.p50, &mut s.p90, &mut s.p95, &mut s.p99, &mut s.max] {
        *x = up(*x);
    }
    s.min = down(s.min);
}

/// The audit as it may be shared.
pub(super) fn shared(a: &mut Audit, numbers: &mut Numbers) {
    for x in &mut a.attributes {
        attribute(x);
        numbers.replace(&mut x.eta_max_record);
    }
    if let Some(label) = &mut a.label {
        (label.eta_mean, label.eta_max) = (up(label.eta_mean), up(label.eta_max));
        label.min_sd.value = down(label.min_sd.value);
        label.population_sd = label.population_sd.map(up);
        numbers.replace(&mut label.eta_max_record);
    }
    for told in a.tell.iter_mut().flat_map(|t| &mut t.attributes) {
        pair(told);
        numbers.replace(&mut told.worst_record);
    }
    records(a);
    groups(a);
    a.dataset.eta = up(a.dataset.eta);
    if let Some(s) = &mut a.scaling {
        (s.eta_max_given, s.eta_max_counted) = (up(s.eta_max_given), up(s.eta_max_counted));
    }
    match a.sigma_source {
        SigmaSource::Default | SigmaSource::Given => {}
        // Solved for on the data.
        SigmaSource::TargetEta { .. } | SigmaSource::TargetSd { .. } | SigmaSource::Targets => {
            a.sigma = up(a.sigma);
        }
    }
    a.limits.iter_mut().for_each(|l| l.value = up(l.value));
    let m = &mut a.model;
    m.coefficients.clear();
    (m.coefficients_original_units, m.distance) = (None, None);
    (m.loss, m.gradient, m.condition) = (up(m.loss), up(m.gradient), up(m.condition));
    a.inference = None;
    a.utility = a.utility.take().filter(|u| u.rows >= FEW);
    if let Some(u) = &mut a.utility {
        for x in [&mut u.without_noise, &mut u.at_sigma, &mut u.constant_model] {
            *x = up(*x);
        }
        for p in &mut u.points {
            (p.value, p.eta_mean, p.eta_max) = (up(p.value), up(p.eta_mean), up(p.eta_max));
        }
    }
    a.score = None;
    a.data.columns.iter_mut().for_each(|c| c.range = None);
    remarks(&mut a.warnings);
    remarks(&mut a.notes);
}

/// Remarks may name values and rows: that there are some is all that is said.
pub(super) fn remarks(warnings: &mut Vec<String>) {
    if warnings.is_empty() {
        return;
    }
    let all = format::counted(warnings.len() as u64, "remark");
    *warnings = vec![format!("{all} about the data and the model: on the owner’s page alone.")];
}

fn attribute(x: &mut Attribute) {
    (x.eta_mean, x.eta_max) = (up(x.eta_mean), up(x.eta_max));
    x.eta_over_all_records = x.eta_over_all_records.map(up);
    if let Some(s) = &mut x.sum_to_one {
        (s.eta_mean, s.eta_max) = (up(s.eta_mean), up(s.eta_max));
        s.eta_over_all_records = s.eta_over_all_records.map(up);
    }
    (x.min_sd.value, x.min_sd_typical) = (down(x.min_sd.value), down(x.min_sd_typical));
    x.population_sd = x.population_sd.map(up);
    x.prior_sd = x.prior_sd.map(up);
    x.min_rmse_with_prior.iter_mut().for_each(|e| e.value = down(e.value));
    // How many there are is shown; their names are levels.
    x.columns.iter_mut().for_each(String::clear);
}

/// Two values: quantiles are values of records, and a level may be one that few have.
fn pair(pair: &mut ValuePair) {
    (pair.from, pair.to) = match (pair.from.parse::<f64>(), pair.to.parse::<f64>()) {
        (Ok(a), Ok(b)) if a.is_finite() && b.is_finite() && a != b => {
            let step = 10_f64.powf((b - a).abs().log10().floor());
            let near = |x: f64| format!("about {}", format::setting((x / step).round() * step));
            (near(a), near(b))
        }
        (_, _) => ("one value".into(), "another".into()),
    };
    for p in [&mut pair.worst, &mut pair.median] {
        *p = up(*p).min(1.0);
    }
    pair.among_all.iter_mut().for_each(|all| all.worst = up(all.worst).min(1.0));
    pair.distance = pair.distance.map(up);
    pair.at_least = pair.at_least.map(down);
    pair.levels_shown.clear();
}

fn records(a: &mut Audit) {
    let r = &mut a.records;
    for s in [&mut r.eta, &mut r.dfil, &mut r.loss, &mut r.gradient_norm] {
        summary(s);
    }
    r.min_mse.value = down(r.min_mse.value);
    r.min_mse_with_prior.value = down(r.min_mse_with_prior.value);
    r.most.clear();
    r.least.clear();
    r.sample.clear();
    few_series(&mut r.histogram);
    coarsened(&mut r.histogram);
    (r.missed_by_loss, r.missed_by_gradient) = (up(r.missed_by_loss), up(r.missed_by_gradient));
}

/// Series of few records become one; where that is small too, it joins the largest.
fn few_series(h: &mut Histogram) {
    let total = |s: &Series| s.counts.iter().sum::<u64>();
    let (few, mut kept): (Vec<Series>, Vec<Series>) =
        std::mem::take(&mut h.series).into_iter().partition(|s| total(s) > 0 && total(s) < FEW);
    let bins = few.iter().chain(&kept).map(|s| s.counts.len()).max().unwrap_or(0);
    let mut others = Series { name: OTHERS.into(), mean: 0.0, counts: vec![0; bins] };
    let all: u64 = few.iter().map(total).sum();
    for s in &few {
        others.mean += s.mean * total(s) as f64 / all.max(1) as f64;
        others.counts.iter_mut().zip(&s.counts).for_each(|(sum, c)| *sum += c);
    }
    match kept.iter_mut().max_by_key(|s| total(s)) {
        Some(largest) if all < FEW => {
            largest.counts.resize(bins, 0);
            largest.counts.iter_mut().zip(&others.counts).for_each(|(sum, c)| *sum += c);
        }
        Some(_) | None if all > 0 => kept.push(others),
        Some(_) | None => {}
    }
    kept.iter_mut().for_each(|s| s.mean = up(s.mean));
    h.series = kept;
}

fn groups(a: &mut Audit) {
    let rare: Vec<String> = a.classes.iter().filter(|c| c.n < FEW).map(|c| c.name.clone()).collect();
    a.classes.retain(|c| c.n >= FEW);
    for c in &mut a.classes {
        for x in [&mut c.eta_mean, &mut c.eta_median, &mut c.eta_max, &mut c.loss_mean] {
            *x = up(*x);
        }
        c.label_eta_mean = c.label_eta_mean.map(up);
        c.label_eta_max = c.label_eta_max.map(up);
    }
    let by_class = a.records.histogram.by == SeriesBy::Class;
    for name in a.data.classes.iter_mut().flatten() {
        let known = a.records.histogram.series.iter().any(|s| s.name == *name);
        if rare.contains(name) || (by_class && !known) {
            *name = "a rare class".into();
        }
    }
    a.groups.retain(|g| g.n >= FEW);
    for g in &mut a.groups {
        for x in [&mut g.eta, &mut g.eta_mean, &mut g.eta_median, &mut g.eta_max] {
            *x = up(*x);
        }
    }
    let means = || a.groups.iter().map(|g| g.eta_mean);
    let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    a.group_ratio = (a.groups.len() > 1 && low > 0.0).then(|| up(high / low));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_to_the_safe_side() {
        assert_eq!((up(0.123_401), down(0.123_499)), (0.124, 0.123));
        assert_eq!((up(0.123), down(0.123)), (0.123, 0.123));
        assert_eq!((up(98_765.0), down(98_765.0)), (98_800.0, 98_700.0));
        assert_eq!((up(0.0), up(f64::INFINITY)), (0.0, f64::INFINITY));
        assert!(up(1e-300) >= 1e-300 * (1.0 - 1e-12) && up(f64::MAX) >= 1e308 && up(5e-324) > 0.0);
    }
}
