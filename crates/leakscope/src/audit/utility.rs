//! What noise costs on rows that the model was not fitted to.

use super::measure::Measured;
use super::noise::Chosen;
use super::{Request, two_class};
use crate::remarks;
use crate::{Failure, Result};
use leakscope_core::fisher::Geometry;
use leakscope_core::glm::{Metric, Utility as UtilityPass};
use leakscope_core::pass::Runner;
use leakscope_core::rows::Rows;
use leakscope_report::audit::{Utility, UtilityPoint};
use leakscope_table::{Dataset, Encoding, Hooks, Subset, Table};
use std::borrow::Cow;

const POINTS: usize = 49;

/// The utility curve and remarks on how it was measured.
pub(super) struct Cost {
    pub(super) utility: Utility,
    pub(super) warnings: Vec<String>,
}

/// Rows to test on, and whether they are a file of their own.
pub(super) struct TestRows {
    pub(super) rows: Dataset,
    pub(super) own_file: bool,
}

/// The `--test` or `--holdout` rows, if either was asked for.
pub(super) fn test_rows(
    request: &Request,
    table: &Table,
    encoding: &Encoding,
    hooks: &Hooks,
) -> Result<Option<TestRows>> {
    let (rows, flag) = if let Some(read) = &request.test {
        (Dataset::new(&Table::open_with(read, hooks)?, encoding, Subset::All, hooks)?, "test")
    } else if request.holdout.is_some() {
        (Dataset::new(table, encoding, Subset::HeldOut, hooks)?, "holdout")
    } else {
        return Ok(None);
    };
    if rows.is_empty() {
        return Err(Failure::option(flag, "there are no rows to test on"));
    }
    Ok(Some(TestRows { rows, own_file: request.test.is_some() }))
}

/// The curve on rows to test on.
pub(super) fn utility(
    request: &Request,
    test: &TestRows,
    geometry: &Geometry,
    measured: &Measured,
    chosen: &Chosen,
) -> Result<Cost> {
    let (rows, encoding) = (&test.rows, test.rows.encoding());
    let sigma = chosen.sigma;
    // Largest η at σ = 1.
    let mut sigmas = grid(sigma, measured.eta.max() * sigma);
    let on_grid = sigmas.len();
    sigmas.extend([0.0, sigma]);
    let metric = Metric::of(request.glm()?, two_class(encoding));
    let (w, factor) = (Cow::Borrowed(&*geometry.fit().w), Cow::Owned(chosen.factor()));
    let pass = UtilityPass { metric, sigmas: Cow::Borrowed(&sigmas), w, factor };
    let total = rows.run(&pass)?;
    let values = total.values();
    let points = points(&sigmas[..on_grid], &values, sigma, measured);
    let warnings = remarks::of_test(rows, test.own_file);
    let utility = Utility {
        metric: metric.into(),
        higher_is_better: metric.higher_is_better(),
        rows: total.rows(),
        without_noise: values[on_grid],
        at_sigma: values[on_grid + 1],
        constant_model: total.constant_model(),
        points,
    };
    Ok(Cost { utility, warnings })
}

/// The curve: a value at each noise scale, with η there.
pub(super) fn points(sigmas: &[f64], values: &[f64], sigma: f64, measured: &Measured) -> Vec<UtilityPoint> {
    let point = |(&at, &value): (&f64, &f64)| UtilityPoint {
        sigma: at,
        value,
        eta_mean: measured.eta.mean() * sigma / at,
        eta_max: measured.eta.max() * sigma / at,
    };
    sigmas.iter().zip(values).map(point).collect()
}

/// Noise scales, evenly spaced in the logarithm: a decade beyond both the chosen one and the one at which the most
/// exposed record has η = 1.
pub(super) fn grid(sigma: f64, largest_norm: f64) -> Vec<f64> {
    let other = if largest_norm > 0.0 { largest_norm } else { sigma };
    let (low, high) = (sigma.min(other) / 10.0, sigma.max(other) * 10.0);
    (0..POINTS).map(|k| low * (high / low).powf(k as f64 / (POINTS - 1) as f64)).collect()
}
