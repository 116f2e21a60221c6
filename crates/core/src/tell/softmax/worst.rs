//! Every record of a table: the worst and the median, with the worst ones refitted.

use super::Models;
use crate::Result;
use crate::rows::Rows;
use crate::tell::glance::Limits;
use crate::tell::refit::Refit;
use crate::tell::worst::{Certainty, Separation, jobs, placed, records, summed_up};
use crate::tell::{Candidate, Question};

/// Records that are refitted together.
const ROUND: usize = 32;
/// A limit this close to what is certain is not worth a refit.
const CLOSE: f64 = 1e-3;

/// Limits of every record, and refits of those that may be the worst.
pub(super) fn ask(
    rows: &dyn Rows,
    models: &Models<'_>,
    question: &Question,
    refits: usize,
    releases: u32,
) -> Result<Separation> {
    let candidates = question.candidates(models.units.len())?;
    let mut limits = first_look(rows, models, &candidates)?;
    let refitted = refine(rows, models, &candidates, &mut limits, refits)?;
    let told = summed_up(&limits, candidates.len(), releases)?;
    Ok(Separation { refitted, ..told })
}

/// The largest distance of two candidates, from models with their errors; `None` shows for certain.
fn limits(models: &Models<'_>, moved: &[Option<Refit>]) -> Limits {
    let (mut least, mut most, mut pair) = (0.0_f64, 0.0_f64, [0, moved.len().clamp(1, 2) as u32 - 1]);
    for (i, a) in moved.iter().enumerate() {
        for (j, b) in moved[..i].iter().enumerate() {
            let apart = match (a, b) {
                (Some(a), Some(b)) => {
                    let difference: Vec<f64> = a.delta.iter().zip(&b.delta).map(|(a, b)| a - b).collect();
                    let (length, error) = (models.length(&difference), a.error + b.error);
                    least = least.max(length * (2.0 - models.slack) - error);
                    if length.is_nan() { f64::INFINITY } else { length + error }
                }
                // Somebody may see it; nobody need.
                (None, _) | (_, None) => f64::INFINITY,
            };
            if apart > most {
                (most, pair) = (apart, [j as u32, i as u32]);
            }
        }
    }
    // Before anything is refitted, all that shows for certain is in the units.
    let certain = moved.iter().any(Option::is_none).then_some(Certainty::Units);
    Limits { least, most, pair, refitted: false, certain }
}

fn first_look(rows: &dyn Rows, models: &Models<'_>, candidates: &[Candidate]) -> Result<Vec<Limits>> {
    let mut all = Vec::with_capacity(rows.len() as usize);
    rows.fold(
        Vec::new,
        |part, block| {
            models.look(block, candidates, &mut |moved| part.push(limits(models, moved)));
            Ok(())
        },
        |part: Vec<Limits>| {
            all.extend(part);
            Ok(())
        },
    )?;
    Ok(all)
}

/// Refits records, those with the largest limits first, until no other can be worse; how many it were.
fn refine(
    rows: &dyn Rows,
    models: &Models<'_>,
    candidates: &[Candidate],
    of_records: &mut [Limits],
    refits: usize,
) -> Result<usize> {
    let mut refitted = 0;
    let mut order: Vec<usize> = (0..of_records.len()).collect();
    order.sort_by(|&a, &b| of_records[b].most.total_cmp(&of_records[a].most));
    while refitted < refits {
        if of_records.iter().any(|l| l.certain.is_some()) {
            break;
        }
        let certain = of_records.iter().fold(0.0_f64, |m, l| m.max(l.least));
        let round: Vec<usize> = order
            .iter()
            .copied()
            .filter(|&i| !of_records[i].refitted && of_records[i].most > certain * (1.0 + CLOSE))
            .take(ROUND.min(refits - refitted))
            .collect();
        if round.is_empty() {
            break;
        }
        let records = records(rows, &round)?;
        let placed = placed(&records, candidates);
        let jobs = jobs(&records, &placed);
        let moved = models.refit(rows, &jobs)?;
        for ((row, ..), moved) in records.iter().zip(moved.chunks_exact(candidates.len())) {
            let exact = limits(models, moved);
            // What showed in the units was not refitted.
            let certain = exact.most.is_infinite().then_some(Certainty::NoModel);
            of_records[*row as usize] = Limits { refitted: true, certain, ..exact };
        }
        refitted += round.len();
    }
    Ok(refitted)
}
