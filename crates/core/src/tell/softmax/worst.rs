//! Every record of a table: the worst and the median, with the worst ones refitted.

use super::Models;
use crate::Result;
use crate::rows::Rows;
use crate::tell::glance::Limits;
use crate::tell::refit::Refit;
use crate::tell::worst::{Certainty, Exact, Record, Separation, jobs, placed, records, refine, summed_up};
use crate::tell::{Candidate, Question};

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
    let mut refitted = 0;
    refine(&mut limits, (&mut refitted, refits), |numbers| exact(rows, models, &candidates, numbers))?;
    let told = summed_up(&limits, candidates.len(), releases)?;
    Ok(Separation { refitted, ..told })
}

fn first_look(rows: &dyn Rows, models: &Models<'_>, candidates: &[Candidate]) -> Result<Vec<Limits>> {
    let mut all = Vec::with_capacity(rows.len() as usize);
    rows.fold(
        Vec::new,
        |part, block| {
            models.look(block, candidates, &mut |moved| {
                // Before anything is refitted, all that shows for certain is in the units.
                let certain = moved.iter().any(Option::is_none).then_some(Certainty::Units);
                let limits = Limits::of(moved, models.slack, |v| models.length(v));
                part.push(Limits { certain, ..limits });
            });
            Ok(())
        },
        |part: Vec<Limits>| {
            all.extend(part);
            Ok(())
        },
    )?;
    Ok(all)
}

/// Limits of some rows by exact models.
fn exact(
    rows: &dyn Rows,
    models: &Models<'_>,
    candidates: &[Candidate],
    numbers: &[usize],
) -> Result<Vec<Exact>> {
    let records = records(rows, numbers)?;
    let placed = placed(&records, candidates);
    let moved = models.refit(rows, &jobs(&records, &placed))?;
    let of = |((row, ..), moved): (&Record, &[Option<Refit>])| {
        let limits = Limits::of(moved, models.slack, |v| models.length(v));
        // What showed in the units was not refitted.
        let certain = limits.most.is_infinite().then_some(Certainty::NoModel);
        (*row, Limits { refitted: true, certain, ..limits })
    };
    Ok(records.iter().zip(moved.chunks_exact(candidates.len())).map(of).collect())
}
