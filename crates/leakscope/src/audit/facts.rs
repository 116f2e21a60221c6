//! What an audit says of its model that depends on the kind of model, as plain numbers: one function makes them for each kind.

use super::measure::Sets;
use super::remarks::away_from_minimiser;
use super::{Model, Result};
use crate::remarks::{at_kinks, nearly_singular};
use leakscope_core::fisher::{Geometry, Release};
use leakscope_core::glm::{self, TOLERANCE};
use leakscope_report::audit as report;
use leakscope_table::Encoding;

/// A model and its leakage, as far as they depend on the kind of model.
pub(super) struct Facts {
    /// Records that it was fitted to.
    pub(super) n: u64,
    pub(super) release: Release,
    pub(super) model: report::Model,
    /// η of all records together.
    pub(super) whole: f64,
    /// Records and η of each group.
    pub(super) groups: Vec<(u64, f64)>,
    /// η of every attribute of the geometry over all records, where that could be had.
    pub(super) over_all: Option<Vec<f64>>,
    /// Mean information about each data column and, where it is secret, the label.
    pub(super) information: Vec<f64>,
    /// Variances of the coordinates of the label, where they are not that of the coded target.
    pub(super) label_variances: Option<Vec<f64>>,
    /// Leakage by class.
    pub(super) classes: Vec<report::Class>,
    /// What to know of the fit, in whole sentences.
    pub(super) warnings: Vec<String>,
}

/// Those of a model with one vector of coefficients.
pub(super) fn of_glm(encoding: &Encoding, model: &Model, geometry: &Geometry, sets: &Sets) -> Result<Facts> {
    let fit = geometry.fit();
    let mut warnings: Vec<String> =
        nearly_singular(encoding, geometry).into_iter().chain(at_kinks(fit)).collect();
    if let Some(best) = &model.best {
        warnings.extend(away_from_minimiser(glm::distance(fit, best).0));
    }
    let groups = sets.groups.iter().map(|set| Ok((set.records(), geometry.set_eta(set)?)));
    Ok(Facts {
        n: fit.n,
        release: geometry.release(),
        model: described(encoding, model, geometry),
        whole: geometry.set_eta(&sets.whole)?,
        groups: groups.collect::<Result<_>>()?,
        over_all: Some(geometry.attributes_over_set(&sets.whole)?),
        information: geometry.mean_information(&sets.whole),
        label_variances: None,
        classes: vec![],
        warnings,
    })
}

fn described(encoding: &Encoding, model: &Model, geometry: &Geometry) -> report::Model {
    let fit = geometry.fit();
    let names = encoding.columns();
    report::Model {
        family: fit.family.into(),
        l2: fit.penalty.l2,
        intercept: fit.penalty.intercept,
        coefficients: names.iter().cloned().zip(fit.w.iter().copied()).collect(),
        coefficients_original_units: encoding.original_units(&fit.w).map(|c| c.into_iter().collect()),
        iterations: fit.iterations,
        gradient: fit.relative_gradient,
        tolerance: TOLERANCE,
        condition: geometry.condition(),
        loss: fit.mean_loss,
        distance: model.best.as_ref().map(|best| {
            let (relative, excess_objective) = glm::distance(fit, best);
            distance(&names, (&fit.w, &best.w), relative, excess_objective)
        }),
    }
}

/// How far given coefficients are from the minimiser, and which of them most.
pub(super) fn distance(
    names: &[String],
    (used, best): (&[f64], &[f64]),
    relative: f64,
    excess_objective: f64,
) -> report::Distance {
    let differences = used.iter().zip(best).map(|(a, b)| (a - b).abs());
    let (at, largest) =
        differences.enumerate().fold((0, 0.0), |most, (j, d)| if d > most.1 { (j, d) } else { most });
    report::Distance { relative, largest, largest_name: names[at].clone(), excess_objective }
}
