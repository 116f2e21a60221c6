//! What it adds to η that columns are scaled by their own data (`--scaling`).
//!
//! A standardised model is the same in every unit, but for its penalty: with λ > 0 a record moves the model also through the
//! spread of its columns. Core counts that in any units; here they are those of the encoding, in which an audit's noise is.

use super::{Request, measure};
use crate::Result;
use crate::failure::explain;
use crate::noise::{Designed, Scaled, count_scaling};
use crate::request::ScalingMode;
use crate::scaling::{is_filled, is_own, matters, own_units, units};
use leakscope_core::fisher::noise::Noise as Gaussian;
use leakscope_core::fisher::scaling::{Counted, Depth};
use leakscope_core::fisher::{Directions, Geometry, Release};
use leakscope_core::glm::{Fit, Fitted};
use leakscope_core::measure::{CountedEta, Counting, Largest};
use leakscope_core::num::Distribution;
use leakscope_core::pass::Runner;
use leakscope_core::units::{FitInUnits, Units};
use leakscope_report::audit::ScalingEffect;
use leakscope_table::{Dataset, Encoding};
use std::borrow::Cow;

/// Up to this many multiplications (n p²) η of every record is counted exactly; above, it is bounded.
const EXACT_UP_TO: f64 = 5e6;

/// A model at a noise: its geometry, and where that makes a difference the same with the scaling counted.
pub(super) struct Prepared {
    pub(super) geometry: Geometry,
    pub(super) counting: Option<Counting>,
}

/// The units of the encoding, in which those columns are scaled by their own data whose scaling counts.
pub(super) fn units_of_encoding(request: &Request, encoding: &Encoding) -> Result<Units> {
    let counts = request.scaling == ScalingMode::Counted && matters(encoding, request.l2);
    own_units(encoding, counts).map_err(|e| explain(e, encoding, request.l2))
}

/// The units in which the scaling of columns is counted, where that makes a difference.
pub(super) fn units_that_count(request: &Request, encoding: &Encoding) -> Result<Option<Units>> {
    let units = matters(encoding, request.l2).then(|| own_units(encoding, true));
    units.transpose().map_err(|e| explain(e, encoding, request.l2))
}

/// The model in the units of its encoding, in which those columns are scaled by their own data whose scaling counts.
pub(super) fn in_encoding(request: &Request, encoding: &Encoding, fit: &Fit) -> Result<(FitInUnits, Units)> {
    let counts = request.scaling == ScalingMode::Counted && matters(encoding, request.l2);
    units(encoding, fit, counts).map_err(|e| explain(e, encoding, request.l2))
}

/// The noise on the coefficients as encoded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spread<'a> {
    /// The same standard deviation on every one.
    Isotropic(f64),
    /// A covariance.
    Shaped(&'a Gaussian),
}

impl Spread<'_> {
    /// What is released under it; a covariance has its own scale.
    pub(super) fn release(&self, request: &Request) -> Release {
        let sigma = match self {
            Self::Isotropic(sigma) => *sigma,
            Self::Shaped(_) => 1.0,
        };
        Release { sigma, releases: request.releases, label_secret: request.label_secret }
    }
}

fn depth(fit: &Fit) -> Depth {
    let work = fit.n as f64 * (fit.w.len() as f64).powi(2);
    if work <= EXACT_UP_TO { Depth::Exact } else { Depth::Bounded }
}

/// Makes room in noise with a shape for the scaling of columns, where that counts.
pub(crate) fn count(
    request: &Request,
    encoding: &Encoding,
    fit: Fitted<'_>,
    rows: &Dataset,
    designed: &mut Designed,
) -> Result<()> {
    if request.scaling != ScalingMode::Counted || !matters(encoding, request.l2) {
        return Ok(());
    }
    let explained = |e| explain(e, encoding, request.l2);
    match fit {
        Fitted::Glm(fit) => {
            let (model, units) = units(encoding, fit, true).map_err(explained)?;
            let model = Scaled::Glm(&model, depth(fit));
            count_scaling(designed, (model, &units), rows, request.releases)
        }
        Fitted::Softmax(fit) => {
            let units = own_units(encoding, true).map_err(explained)?;
            count_scaling(designed, (Scaled::Softmax(fit), &units), rows, request.releases)
        }
    }
}

/// Everything that passes over the records need, at a noise.
pub(super) fn prepare(
    request: &Request,
    encoding: &Encoding,
    fit: &Fit,
    directions: &[Directions],
    spread: Spread<'_>,
) -> Result<Prepared> {
    let release = spread.release(request);
    let explained = |e| explain(e, encoding, request.l2);
    let geometry = || {
        let geometry = match spread {
            Spread::Isotropic(_) => Geometry::new(fit, directions, release),
            Spread::Shaped(noise) => Geometry::under(fit, directions, release, noise),
        };
        geometry.map_err(explained)
    };
    if !matters(encoding, request.l2) {
        return Ok(Prepared { geometry: geometry()?, counting: None });
    }
    let (model, units) = units(encoding, fit, true).map_err(explained)?;
    let counted = match spread {
        Spread::Isotropic(_) => Counted::new(&model, &units, directions, release),
        Spread::Shaped(noise) => Counted::under(&model, &units, directions, release, noise),
    }
    .map_err(explained)?;
    // In units of the encoding it is the same model, and most of the work of a wide table is its geometry.
    let geometry = if model.fit == *fit { counted.geometry().clone() } else { geometry()? };
    let depth = depth(fit);
    let replaces = request.scaling == ScalingMode::Counted;
    Ok(Prepared { geometry, counting: Some(Counting { counted, depth, replaces }) })
}

impl Prepared {
    /// η alone, for solving for σ.
    pub(super) fn eta_distribution(&self, rows: &Dataset) -> Result<Distribution> {
        let Some(counting) = self.counting.as_ref().filter(|c| c.replaces) else {
            return measure::eta_distribution(rows, &self.geometry);
        };
        Ok(rows.run(&CountedEta { counting: Cow::Borrowed(counting) })?.eta)
    }

    /// What the scaling added.
    pub(super) fn effect(&self, encoding: &Encoding, largest: Largest) -> Option<ScalingEffect> {
        let counting = self.counting.as_ref()?;
        Some(effect(encoding, counting.replaces, counting.depth == Depth::Exact, largest))
    }
}

/// What the scaling added, `exact` or never too small.
pub(super) fn effect(encoding: &Encoding, replaces: bool, exact: bool, largest: Largest) -> ScalingEffect {
    let uncounted = encoding.attributes.iter().filter(|a| is_own(encoding, a) && is_filled(encoding, a));
    ScalingEffect {
        mode: if replaces { ScalingMode::Counted } else { ScalingMode::Given },
        exact,
        eta_max_given: largest.plain,
        eta_max_counted: largest.counted,
        uncounted: uncounted.map(|a| a.name.clone()).collect(),
    }
}
