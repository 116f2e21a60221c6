//! Every record of a table: the worst and the median, with the worst ones refitted.

use super::Models;
use crate::rows::Rows;
use crate::tell::refit::Refit;
use crate::tell::worst::{Told, jobs, placed, records};
use crate::tell::{Candidate, Question, any_level, two_values};
use crate::{Error, Result};

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
) -> Result<Told> {
    let candidates = question.candidates(models.units.len())?;
    let mut limits = first_look(rows, models, &candidates)?;
    let refitted = refine(rows, models, &candidates, &mut limits, refits)?;
    let delta: Vec<f64> = limits.iter().map(|l| l.most).collect();
    let (worst_row, largest) =
        delta.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).ok_or(Error::Empty)?;
    let mut sorted = delta.clone();
    sorted.sort_by(f64::total_cmp);
    Ok(Told {
        worst: two_values(largest, releases),
        worst_row: worst_row as u64,
        worst_pair: limits[worst_row].pair,
        median: two_values(sorted[sorted.len() / 2], releases),
        worst_among_all: any_level(candidates.len(), largest, releases),
        at_least: limits.iter().fold(0.0, |m, l| m.max(l.least)),
        delta,
        refitted,
        shows_in_units: false,
    })
}

/// Between which numbers δ of a record lies.
#[derive(Debug, Clone, Copy)]
struct Limits {
    least: f64,
    most: f64,
    /// The two values that `most` is about.
    pair: [usize; 2],
    refitted: bool,
}

/// The largest distance of two candidates, from models with their errors; `None` shows for certain.
fn limits(models: &Models<'_>, moved: &[Option<Refit>]) -> Limits {
    let (mut least, mut most, mut pair) = (0.0_f64, 0.0_f64, [0, moved.len().min(2) - 1]);
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
                (most, pair) = (apart, [j, i]);
            }
        }
    }
    Limits { least, most, pair, refitted: false }
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
            of_records[*row as usize] = Limits { refitted: true, ..limits(models, moved) };
        }
        refitted += round.len();
    }
    Ok(refitted)
}
