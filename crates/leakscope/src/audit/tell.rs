//! Two values of every attribute and of a secret label, told apart: those of an audit, most exposed first. The colour of the page
//! rests on it.

use super::measure::Measured;
use super::scaling::in_encoding;
use super::{AttributeSlot, Model, Request};
use crate::Result;
use crate::telling::{self, Subject, TYPICAL, candidates, target_spread};
use leakscope_core::tell::Noise;
use leakscope_report::tell::Tell;
use leakscope_table::{Dataset, Encoding, Kind, TargetCoding};

/// Tries two values of every attribute and of a secret label.
pub(super) fn tell(
    request: &Request,
    rows: &Dataset,
    model: &Model,
    slots: &[AttributeSlot],
    measured: &Measured,
    sigma: f64,
) -> Result<Tell> {
    let encoding = rows.encoding();
    let subjects = subjects(request, encoding, slots, measured);
    // Distances are those of minimisers, also where the model was given.
    let fit = model.best.as_ref().unwrap_or(&model.fit);
    let (in_units, units) = in_encoding(request, encoding, fit)?;
    let noise = Noise::Isotropic(sigma);
    let model = telling::Model { rows, fit: (&in_units, &units), noise: &noise };
    Ok(telling::tried(request, rows, subjects, &model)?.1)
}

/// Everything that could be asked about, given values first, then by how exposed η says it is.
fn subjects<'a>(
    request: &Request,
    encoding: &'a Encoding,
    slots: &[AttributeSlot],
    measured: &Measured,
) -> Vec<Subject<'a>> {
    let chosen = |name: &str| request.tell.iter().any(|p| p.attribute == name);
    let mut all: Vec<Subject<'_>> = slots
        .iter()
        .map(|slot| {
            let a = &encoding.attributes[slot.attribute];
            let distance = match a.kind {
                Kind::Number => TYPICAL * a.population_sd / a.scale,
                Kind::Category => 1.0 / a.scale,
            };
            let eta = slot.exposure(|k| measured.attributes[k].max);
            let (name, chosen) = (a.name.as_str(), chosen(&a.name));
            let candidates = candidates(a, chosen);
            Subject { attribute: Some(a), name, exposure: distance * eta, candidates, chosen }
        })
        .collect();
    if request.label_secret {
        let distance = match &encoding.target.coding {
            TargetCoding::TwoClass { low, high } => high.code - low.code,
            TargetCoding::Number | TargetCoding::Count => TYPICAL * target_spread(encoding).unwrap_or(1.0),
        };
        let name = encoding.target.name.as_str();
        let exposure = distance * measured.label.max;
        all.push(Subject { attribute: None, name, exposure, candidates: 2, chosen: chosen(name) });
    }
    all.sort_by(|a, b| b.chosen.cmp(&a.chosen).then(b.exposure.total_cmp(&a.exposure)));
    all
}
