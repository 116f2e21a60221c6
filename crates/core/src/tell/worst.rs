//! Every record of a table: the worst and the median, with the worst ones refitted.

use super::refit::{Job, Refit};
use super::{Candidate, Models, Noise, Question, any_level, two_values};
use crate::claim::Bound;
use crate::linalg::matmul;
use crate::rows::{Block, Rows};
use crate::units::{FitInUnits, Units};
use crate::{Error, Result};

/// How far apart two values of a record can be, over a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// What an attacker who asks between two values is right with at most, on the record for which that is largest.
    pub worst: Bound,
    /// Its row, from 0.
    pub worst_row: u64,
    /// Which two of the question's values those are: the furthest apart.
    pub worst_pair: [usize; 2],
    /// The same for the record in the middle.
    pub median: Bound,
    /// Between all levels of a category at once, equally likely, on the worst record; `worst` where there are two values.
    pub worst_among_all: Bound,
    /// δ of every record: exact for linear models and refitted records, never too small for the others.
    pub delta: Vec<f64>,
    /// The largest δ is known to be no less than this: a model was fitted that shows it.
    pub at_least: f64,
    /// Records that were refitted.
    pub refitted: usize,
}

/// Records that are refitted together.
const ROUND: usize = 32;
/// A limit this close to what is certain is not worth a refit.
const CLOSE: f64 = 1e-3;

/// Bounds how often somebody who knows all else can answer `question` about each record, `releases` releases seen.
///
/// Linear models are exact for every record. For the others every record has a proven limit from one Newton step, and up to
/// `refits` records, those with the largest limits first, are fitted exactly, until the worst is known. The result bounds the
/// worst record whatever `refits` is: it may only be too large.
///
/// # Guarantee
/// [`two_values`], for every record of `rows` (in public units) and any two of the values of `question`.
///
/// # Errors
/// [`Error::Shape`] and [`Error::OutOfRange`] for a question or noise that does not fit the model, and those of a fit.
pub fn told_apart<R: Rows>(
    rows: &R,
    (model, units): (&FitInUnits, &Units),
    (noise, releases): (&Noise, u32),
    question: &Question,
    refits: usize,
) -> Result<Told> {
    Telling::new(rows, (model, units), (noise, releases))?.ask(question, refits)
}

/// What questions about the records of one table share: the model with its inverse, and how far rows reach.
#[derive(Debug)]
pub struct Telling<'a, R> {
    rows: &'a R,
    models: Models<'a>,
    releases: u32,
}

impl<'a, R: Rows> Telling<'a, R> {
    /// Prepares a table for any number of questions: one pass over it.
    ///
    /// # Errors
    /// Those of [`told_apart`] that do not depend on the question.
    pub fn new(
        rows: &'a R,
        (model, units): (&'a FitInUnits, &'a Units),
        (noise, releases): (&Noise, u32),
    ) -> Result<Self> {
        if releases == 0 {
            return Err(Error::OutOfRange { what: "releases", value: 0.0, expected: "at least 1" });
        }
        Ok(Self { rows, models: Models::new(rows, model, units, noise)?, releases })
    }

    /// [`told_apart`] for one question.
    ///
    /// # Guarantee
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub fn ask(&self, question: &Question, refits: usize) -> Result<Told> {
        ask(self.rows, &self.models, question, refits, self.releases)
    }
}

/// A kind of model that says how candidates move it: by a limit for every record, and by refits.
pub(super) trait Movable: Sync {
    /// Data columns.
    fn data_width(&self) -> usize;

    /// Whether the first look is exact already.
    fn exact(&self) -> bool;

    /// How much lengths are rounded up by.
    fn slack(&self) -> f64;

    /// `√(vᵀΣ⁻¹v)`, rounded up.
    fn length(&self, v: &[f64]) -> f64;

    /// How the candidates of each row of a block move the model, with a limit on the error; `None` shows for certain.
    fn look(&self, block: &Block, candidates: &[Candidate], each: &mut dyn FnMut(&[Option<Refit>]));

    /// The same for some jobs, by refits.
    fn refit<R: Rows>(&self, rows: &R, jobs: &[Job<'_>]) -> Result<Vec<Option<Refit>>>;
}

impl Movable for Models<'_> {
    fn data_width(&self) -> usize {
        self.units.len()
    }

    fn exact(&self) -> bool {
        self.model.fit.family.constant_curvature()
    }

    fn slack(&self) -> f64 {
        self.slack
    }

    fn length(&self, v: &[f64]) -> f64 {
        Models::length(self, v)
    }

    fn look(&self, block: &Block, candidates: &[Candidate], each: &mut dyn FnMut(&[Option<Refit>])) {
        let (n, p) = (block.len(), self.p());
        let mut h = vec![0.0; n * p];
        matmul(&block.x, &self.inverse, (n, p, p), &mut h);
        for i in 0..n {
            let record = (block.row(i), block.y[i], block.weight_of(i));
            let step = |c| self.step(record, &h[i * p..(i + 1) * p], c);
            let moved = |c| step(c).map(|s| Refit { delta: s.delta, error: s.error });
            each(&candidates.iter().map(moved).collect::<Vec<_>>());
        }
    }

    fn refit<R: Rows>(&self, rows: &R, jobs: &[Job<'_>]) -> Result<Vec<Option<Refit>>> {
        Models::refit(self, rows, jobs)
    }
}

/// [`told_apart`] for any kind of model.
pub(super) fn ask<R: Rows>(
    rows: &R,
    models: &impl Movable,
    question: &Question,
    refits: usize,
    releases: u32,
) -> Result<Told> {
    let candidates = question.candidates(models.data_width())?;
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
fn limits(models: &impl Movable, moved: &[Option<Refit>]) -> Limits {
    let (mut least, mut most, mut pair) = (0.0_f64, 0.0_f64, [0, moved.len().min(2) - 1]);
    for (i, a) in moved.iter().enumerate() {
        for (j, b) in moved[..i].iter().enumerate() {
            let apart = match (a, b) {
                (Some(a), Some(b)) => {
                    let difference: Vec<f64> = a.delta.iter().zip(&b.delta).map(|(a, b)| a - b).collect();
                    let (length, error) = (models.length(&difference), a.error + b.error);
                    least = least.max(length * (2.0 - models.slack()) - error);
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

fn first_look<R: Rows>(rows: &R, models: &impl Movable, candidates: &[Candidate]) -> Result<Vec<Limits>> {
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
fn refine<R: Rows>(
    rows: &R,
    models: &impl Movable,
    candidates: &[Candidate],
    of_records: &mut [Limits],
    refits: usize,
) -> Result<usize> {
    let mut refitted = 0;
    if models.exact() {
        return Ok(0);
    }
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
        let jobs: Vec<Job<'_>> = records
            .iter()
            .flat_map(|(row, x, y, omega)| {
                let job = |candidate| Job { row: *row, x, y: *y, omega: *omega, candidate };
                candidates.iter().map(job)
            })
            .collect();
        let moved = models.refit(rows, &jobs)?;
        for ((row, ..), moved) in records.iter().zip(moved.chunks_exact(candidates.len())) {
            of_records[*row as usize] = Limits { refitted: true, ..limits(models, moved) };
        }
        refitted += round.len();
    }
    Ok(refitted)
}

type Record = (u64, Vec<f64>, f64, f64);

/// The chosen rows: number, columns, target, weight.
fn records<R: Rows>(rows: &R, chosen: &[usize]) -> Result<Vec<Record>> {
    let mut all = vec![];
    rows.fold(
        Vec::new,
        |part, block| {
            let here = block.first_row as usize..block.first_row as usize + block.len();
            for &row in chosen.iter().filter(|row| here.contains(row)) {
                let i = row - here.start;
                part.push((row as u64, block.row(i).to_vec(), block.y[i], block.weight_of(i)));
            }
            Ok(())
        },
        |part: Vec<Record>| {
            all.extend(part);
            Ok(())
        },
    )?;
    Ok(all)
}
