//! What it adds to η that columns are scaled by their own data (`--scaling`).
//!
//! A standardised model is the same in every unit, but for its penalty: with λ > 0 a record moves the model also through the
//! spread of its columns. Core counts that in any units; here they are those of the encoding, in which an audit's noise is.

use super::{Request, measure};
use crate::Result;
use crate::failure::explain;
use crate::request::ScalingChoice;
use leakscope_core::fisher::scaling::{Counted, CountedRecords, Depth};
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::Fit;
use leakscope_core::measure::{self as core, Counting, Largest};
use leakscope_core::num::Distribution;
use leakscope_core::rows::Rows;
use leakscope_core::units::{FitInUnits, Scaling, Units};
use leakscope_report::audit::ScalingEffect;
use leakscope_report::choice::ScalingMode;
use leakscope_table::{Attribute, Dataset, Encoding, Kind, Missing, Origin, Scale};

/// Up to this many multiplications (n p²) η of every record is counted exactly; above, it is bounded.
const EXACT_UP_TO: f64 = 5e6;

/// A model at a noise: its geometry, and where that makes a difference the same with the scaling counted.
pub(super) struct Prepared {
    pub(super) geometry: Geometry,
    pub(super) counting: Option<Counting>,
}

/// Whether the scale of a column is a statistic of its values that core knows how to count.
fn is_own(encoding: &Encoding, a: &Attribute) -> bool {
    encoding.scale == Scale::Standard
        && a.kind == Kind::Number
        && a.scale_origin == Origin::ReadOffData
        && a.population_sd > 0.0
}

/// Whether values of a column were filled in: they move with its mean, which is not counted.
fn is_filled(encoding: &Encoding, a: &Attribute) -> bool {
    encoding.missing == Missing::Mean && encoding.profile.iter().any(|c| c.name == a.name && c.missing > 0)
}

/// Whether the scaling of any column makes a difference: without a penalty it does not, and without an intercept (or behind
/// principal components) nothing here counts it.
fn matters(encoding: &Encoding, l2: f64) -> bool {
    l2 > 0.0
        && encoding.intercept
        && encoding.pca.is_none()
        && encoding.attributes.iter().any(|a| is_own(encoding, a) && !is_filled(encoding, a))
}

/// The model in the units of its encoding, in which those columns are scaled by their own data whose scaling counts.
pub(super) fn in_encoding(request: &Request, encoding: &Encoding, fit: &Fit) -> Result<(FitInUnits, Units)> {
    let counts = request.scaling == ScalingChoice::Counted && matters(encoding, request.l2);
    units(encoding, fit, counts).map_err(|e| explain(e, encoding, request.l2))
}

fn units(encoding: &Encoding, fit: &Fit, counts: bool) -> leakscope_core::Result<(FitInUnits, Units)> {
    let mut scaling = vec![Scaling::NONE; encoding.data_width()];
    for a in encoding.attributes.iter().filter(|a| counts && is_own(encoding, a) && !is_filled(encoding, a)) {
        scaling[a.columns.start] = Scaling::Own { mean: a.mean, deviation: a.population_sd };
    }
    let units = Units::of_encoding(scaling, encoding.intercept)?;
    Ok((units.fit(fit)?, units))
}

/// Everything that passes over the records need, at a noise.
pub(super) fn prepare(
    request: &Request,
    encoding: &Encoding,
    fit: &Fit,
    directions: &[Directions],
    sigma: f64,
) -> Result<Prepared> {
    let release = Release { sigma, releases: request.releases, label_secret: request.label_secret };
    let explained = |e| explain(e, encoding, request.l2);
    let geometry = Geometry::new(fit, directions, release).map_err(explained)?;
    if !matters(encoding, request.l2) {
        return Ok(Prepared { geometry, counting: None });
    }
    let (model, units) = units(encoding, fit, true).map_err(explained)?;
    let counted = Counted::new(&model, &units, directions, release).map_err(explained)?;
    let work = fit.n as f64 * (fit.w.len() as f64).powi(2);
    let depth = if work <= EXACT_UP_TO { Depth::Exact } else { Depth::Bounded };
    let replaces = request.scaling == ScalingChoice::Counted;
    Ok(Prepared { geometry, counting: Some(Counting { counted, depth, replaces }) })
}

impl Prepared {
    /// η alone, for solving for σ.
    pub(super) fn eta_distribution(&self, rows: &Dataset) -> Result<Distribution> {
        let Some(counting) = self.counting.as_ref().filter(|c| c.replaces) else {
            return measure::eta_distribution(rows, &self.geometry);
        };
        let mut total = Distribution::default();
        rows.fold(
            || (Distribution::default(), CountedRecords::default(), Records::default()),
            |(eta, scratch, records), block| {
                core::records(&self.geometry, Some(counting), block, (records, scratch))?;
                eta.extend(&records.eta);
                Ok(())
            },
            |(eta, _, _)| {
                total.merge(eta);
                Ok(())
            },
        )?;
        Ok(total)
    }

    /// What the scaling added.
    pub(super) fn effect(&self, encoding: &Encoding, largest: Largest) -> Option<ScalingEffect> {
        let counting = self.counting.as_ref()?;
        let uncounted = encoding.attributes.iter().filter(|a| is_own(encoding, a) && is_filled(encoding, a));
        Some(ScalingEffect {
            mode: if counting.replaces { ScalingMode::Counted } else { ScalingMode::Given },
            exact: counting.depth == Depth::Exact,
            eta_max_given: largest.given,
            eta_max_counted: largest.counted,
            uncounted: uncounted.map(|a| a.name.clone()).collect(),
        })
    }
}
