//! Two values of every attribute and of a secret label, told apart: those of an audit, most exposed first. The colour of the page
//! rests on it.

use super::measure::Measured;
use super::noise::Chosen;
use super::scaling::{in_encoding, units_of_encoding};
use super::{AttributeSlot, Request};
use crate::Result;
use crate::failure::explain;
use crate::telling::{self, Subject, TYPICAL, candidates, label_candidates, target_spread};
use leakscope_core::glm::Fit;
use leakscope_core::glm::softmax::SoftmaxFit;
use leakscope_report::tell::Tell;
use leakscope_table::{Dataset, Encoding, Kind, TargetCoding};

/// Tries two values of every attribute and of a secret label.
pub(super) fn tell(
    request: &Request,
    rows: &Dataset,
    fitted: Fitted<'_>,
    slots: &[AttributeSlot],
    measured: &Measured,
    chosen: &Chosen,
) -> Result<Tell> {
    let encoding = rows.encoding();
    let subjects = subjects(request, encoding, slots, measured);
    match fitted {
        Fitted::Glm(fit) => {
            let (in_units, units) = in_encoding(request, encoding, fit)?;
            let noise = chosen.for_telling();
            let model = telling::Model { rows, fit: (&in_units, &units), noise: &noise };
            // They come ranked.
            Ok(telling::tried(request, rows, (subjects, |_: &mut Vec<_>| Ok(())), &model)?.1)
        }
        Fitted::Softmax(fit) => {
            let units = units_of_encoding(request, encoding)?;
            let in_units = units.softmax(fit).map_err(|e| explain(e, encoding, request.l2))?;
            let noise = chosen.for_telling();
            let model = telling::ModelOfClasses { rows, fit: (&in_units, &units), noise: &noise };
            Ok(telling::tried_softmax(request, rows, subjects, &model)?.1)
        }
    }
}

/// The minimiser whose candidates are refitted: distances are those of minimisers, also where the model was given.
#[derive(Clone, Copy)]
pub(super) enum Fitted<'a> {
    /// One vector of coefficients.
    Glm(&'a Fit),
    /// One for each class.
    Softmax(&'a SoftmaxFit),
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
            TargetCoding::Classes(_) => 1.0,
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
                TYPICAL * target_spread(encoding).unwrap_or(1.0)
            }
        };
        let name = encoding.target.name.as_str();
        let exposure = distance * measured.label.max;
        let chosen = chosen(name);
        let candidates = label_candidates(&encoding.target.coding, chosen);
        all.push(Subject { attribute: None, name, exposure, candidates, chosen });
    }
    all.sort_by(|a, b| b.chosen.cmp(&a.chosen).then(b.exposure.total_cmp(&a.exposure)));
    all
}
