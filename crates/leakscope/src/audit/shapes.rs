//! Noise with a shape beside the others: what each costs for the same targets, and what it leaves of the model's utility.

use super::Request;
use super::noise::{Chosen, fitted};
use super::utility::TestRows;
use crate::Result;
use crate::model::{Loaded, scores_of};
use crate::noise::{alternatives, cost_of, described as in_words};
use leakscope_core::fisher::noise::Design;
use leakscope_core::glm::{Fitted, Metric};
use leakscope_report::noise::{Noise, ShapeCost, ShapePoint};

/// Points of a curve, and how many times stricter and laxer than asked its ends are.
const POINTS: usize = 41;
const FEW_POINTS: usize = 13;
const WIDEST: f64 = 100.0;

/// The noise as the audit tells of it; none where it was not made for targets.
pub(super) fn described(
    request: &Request,
    loaded: &Loaded,
    fit: Fitted<'_>,
    chosen: &Chosen,
    test: Option<&TestRows>,
) -> Result<Option<Noise>> {
    let (Some(options), Some(designed)) = (request.noise.options(), &chosen.shaped) else { return Ok(None) };
    let encoding = &loaded.encoding;
    let others = alternatives(options, &fitted(request, encoding, fit), &loaded.rows, designed)?;
    let mut shapes = vec![];
    for design in &others {
        let points = match test {
            Some(test) => curve(fit, loaded.metric(request), design, test)?,
            None => vec![],
        };
        shapes.push(ShapeCost { points, ..cost_of(design) });
    }
    Ok(Some(in_words(options, designed, encoding, shapes)?))
}

/// Utility where the targets are met exactly, at the η asked for and at multiples of it.
fn curve(fit: Fitted<'_>, metric: Metric, design: &Design, test: &TestRows) -> Result<Vec<ShapePoint>> {
    let points = match fit {
        Fitted::Glm(_) => POINTS,
        // An integral over all classes, for every row and point.
        Fitted::Softmax(_) => FEW_POINTS,
    };
    let at = |k: usize| WIDEST.powf(2.0 * k as f64 / (points - 1) as f64 - 1.0);
    let multiples: Vec<f64> = (0..points).map(at).collect();
    // The published noise meets its targets with room to spare.
    let scales: Vec<f64> = multiples.iter().map(|m| design.largest_eta / m).collect();
    let (values, _) = scores_of(&test.rows, fit, metric, &scales, design.noise.factor())?;
    Ok(multiples.iter().zip(values).map(|(&multiple, value)| ShapePoint { multiple, value }).collect())
}
