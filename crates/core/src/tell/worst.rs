//! Every record of a table: the worst and the median, with the worst ones refitted.

use super::glance::{Limits, glance};
use super::refit::{Job, Refit};
use super::{Candidate, Models, Noise, Question, any_level, two_values};
use crate::claim::Bound;
use crate::fisher::check_releases;
use crate::rows::Rows;
use crate::units::{FitInUnits, Units};
use crate::{Error, Result};
use std::borrow::Cow;

/// How far apart two values of a record can be, over a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Separation {
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
    /// Why the worst record is told for certain, where it is: no noise on the coefficients helps against that.
    pub certain: Option<Certainty>,
}

impl Separation {
    /// Whether more refits could still say less: the largest δ is not known to a hundredth of a probability, or nothing but
    /// that it may be as large as it likes.
    pub fn is_open(&self, releases: u32) -> bool {
        let largest = self.delta.iter().copied().fold(0.0, f64::max);
        let gap = self.worst.value - two_values(self.at_least, releases).value;
        // Beyond what a probability shows, the noise that is needed is proportional to δ itself.
        let far = self.worst.value > 0.5 + 2.0 * OPEN && largest > 1.5 * self.at_least;
        self.certain.is_none() && (gap > OPEN || far)
    }
}

/// A bound that is this close to what a refit shows leaves nothing open.
const OPEN: f64 = 0.01;

/// Why two values are told apart for certain, whatever the noise on the coefficients is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// A public unit, rounded from the data, would have been another.
    Units,
    /// With one of the values there is no model.
    NoModel,
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
pub fn told_apart(
    rows: &dyn Rows,
    (model, units): (&FitInUnits, &Units),
    (noise, releases): (&Noise, u32),
    question: &Question,
    refits: usize,
) -> Result<Separation> {
    Telling::new(rows, (model, units), (noise, releases))?.ask(question, refits)
}

/// What questions about the records of one table share: the model with its inverse, and how far rows reach.
#[derive(Debug)]
pub struct Telling<'a> {
    rows: &'a dyn Rows,
    models: Models<'a>,
    releases: u32,
}

impl<'a> Telling<'a> {
    /// Prepares a table for any number of questions: one pass over it.
    ///
    /// # Errors
    /// Those of [`told_apart`] that do not depend on the question.
    pub fn new(
        rows: &'a dyn Rows,
        (model, units): (&'a FitInUnits, &'a Units),
        (noise, releases): (&Noise, u32),
    ) -> Result<Self> {
        check_releases(releases)?;
        Ok(Self { rows, models: Models::new(rows, model, units, noise)?, releases })
    }

    /// [`told_apart`] for one question.
    ///
    /// # Guarantee
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub fn ask(&self, question: &Question, refits: usize) -> Result<Separation> {
        let mut looks = self.look(std::slice::from_ref(question))?;
        let look = looks.first_mut().ok_or(Error::Empty)?;
        self.refine(look, refits)?;
        self.answer(look)
    }

    /// Looks at every record for several questions in one pass: limits that hold, before anything is refitted. Takes a few
    /// dozen bytes a record and question.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::OutOfRange`] for a question that does not fit the model.
    pub fn look(&self, questions: &[Question]) -> Result<Vec<Look>> {
        let width = self.models.units.len();
        let candidates: Vec<Vec<Candidate>> =
            questions.iter().map(|q| q.candidates(width)).collect::<Result<_>>()?;
        let limits = glance(self.rows, &self.models, &candidates)?;
        let looks = candidates.into_iter().zip(limits);
        Ok(looks.map(|(candidates, limits)| Look { candidates, limits, refitted: 0 }).collect())
    }

    /// Refits records, those with the largest limits first, until no other can be worse or `refits` of them were.
    ///
    /// # Errors
    /// Those of a fit.
    pub fn refine(&self, look: &mut Look, refits: usize) -> Result<()> {
        match self.models.model.fit.family.constant_curvature() {
            true => sharpen(self.rows, &self.models, look),
            false => {
                let Look { candidates, limits, refitted } = look;
                let exact = |numbers: &[usize]| self.models.exact(self.rows, candidates, numbers);
                refine(limits, (refitted, refits), exact)
            }
        }
    }

    /// What a look has come to.
    ///
    /// # Guarantee
    /// As [`told_apart`].
    ///
    /// # Errors
    /// [`Error::Empty`] for a table without rows.
    pub fn answer(&self, look: &Look) -> Result<Separation> {
        let told = summed_up(&look.limits, look.candidates.len(), self.releases)?;
        Ok(Separation { refitted: look.refitted, ..told })
    }
}

/// What the limits of every record come to.
pub(super) fn summed_up(limits: &[Limits], levels: usize, releases: u32) -> Result<Separation> {
    let delta: Vec<f64> = limits.iter().map(|l| l.most).collect();
    // Of records that may be told for certain one that is, and the first of those.
    let rank = |l: &Limits| (l.most, l.certain.is_some());
    let larger = |a: &Limits, b: &Limits| {
        let ((a, certain), (b, other)) = (rank(a), rank(b));
        a.total_cmp(&b).then(certain.cmp(&other)).is_gt()
    };
    let worst_row = (1..limits.len()).fold(0, |w, i| if larger(&limits[i], &limits[w]) { i } else { w });
    let Some(Limits { most: largest, certain, .. }) = limits.get(worst_row).copied() else {
        return Err(Error::Empty);
    };
    let mut sorted = delta.clone();
    let middle = sorted.len() / 2;
    let (_, median, _) = sorted.select_nth_unstable_by(middle, f64::total_cmp);
    Ok(Separation {
        worst: two_values(largest, releases),
        worst_row: worst_row as u64,
        worst_pair: limits[worst_row].pair.map(|k| k as usize),
        median: two_values(*median, releases),
        worst_among_all: any_level(levels, largest, releases),
        at_least: limits.iter().fold(0.0, |m, l| m.max(l.least)),
        delta,
        refitted: 0,
        certain,
    })
}

/// One question with what is known about every record.
#[derive(Debug)]
pub struct Look {
    candidates: Vec<Candidate>,
    limits: Vec<Limits>,
    refitted: usize,
}

impl Look {
    /// How many values the question puts in place.
    pub fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// How many records were refitted so far.
    pub fn refitted(&self) -> usize {
        self.refitted
    }
}

impl Limits {
    /// Of the largest distance of two candidates, from their models with errors; `None` shows for certain. `length` is that of
    /// a difference in the noise's units, up to `slack` times too long.
    pub(super) fn of(models: &[Option<Refit>], slack: f64, length: impl Fn(&[f64]) -> f64) -> Self {
        let (mut least, mut most, mut pair) = (0.0_f64, 0.0_f64, [0, models.len().clamp(1, 2) as u32 - 1]);
        for (i, a) in models.iter().enumerate() {
            for (j, b) in models[..i].iter().enumerate() {
                let apart = match (a, b) {
                    (Some(a), Some(b)) => {
                        let difference: Vec<f64> = a.delta.iter().zip(&b.delta).map(|(a, b)| a - b).collect();
                        let (length, error) = (length(&difference), a.error + b.error);
                        least = least.max(length * (2.0 - slack) - error);
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
        Self { least, most, pair, refitted: false, certain: None }
    }
}

impl Models<'_> {
    /// Limits of some rows by exact models: what is told for certain then is.
    fn exact(&self, rows: &dyn Rows, candidates: &[Candidate], numbers: &[usize]) -> Result<Vec<Exact>> {
        let records = records(rows, numbers)?;
        let placed = placed(&records, candidates);
        let models = self.refit(rows, &jobs(&records, &placed))?;
        let of = |((row, x, y, _), models): (&Record, &[Option<Refit>])| {
            let limits = Limits::of(models, self.slack, |v| self.length(v));
            let certain = limits.most.is_infinite().then(|| match self.shows_in_units(x, *y, candidates) {
                true => Certainty::Units,
                false => Certainty::NoModel,
            });
            (*row, Limits { refitted: true, certain, ..limits })
        };
        Ok(records.iter().zip(models.chunks_exact(candidates.len())).map(of).collect())
    }

    /// Whether a public unit would be another with one of the candidates.
    pub(super) fn shows_in_units(&self, x: &[f64], y: f64, candidates: &[Candidate]) -> bool {
        candidates.iter().any(|c| self.penalty_change(x, &c.of(x, y)).is_none())
    }
}

/// Records that a glance leaves room for being the worst by rounding alone, and are looked at in full.
const SHARPENED: usize = 64;

/// Linear models: distances of the records that may be the worst from whole vectors, without what a sum of products lost.
fn sharpen(rows: &dyn Rows, models: &Models<'_>, look: &mut Look) -> Result<()> {
    let certain = look.limits.iter().fold(0.0_f64, |m, l| m.max(l.least));
    let open = |l: &Limits| !l.refitted && l.most > certain;
    let mut order: Vec<usize> = (0..look.limits.len()).filter(|&i| open(&look.limits[i])).collect();
    order.sort_by(|&a, &b| look.limits[b].most.total_cmp(&look.limits[a].most));
    order.truncate(SHARPENED);
    if order.is_empty() {
        return Ok(());
    }
    for (row, limits) in models.exact(rows, &look.candidates, &order)? {
        look.limits[row as usize] = limits;
    }
    Ok(())
}

/// A row and its limits by exact models.
pub(super) type Exact = (u64, Limits);

/// Refits records, those with the largest limits first, until no other can be worse or `refits` of them were; `exact` refits
/// some rows.
pub(super) fn refine(
    limits: &mut [Limits],
    (refitted, refits): (&mut usize, usize),
    exact: impl Fn(&[usize]) -> Result<Vec<Exact>>,
) -> Result<()> {
    let mut order: Vec<usize> = (0..limits.len()).collect();
    order.sort_by(|&a, &b| limits[b].most.total_cmp(&limits[a].most));
    while *refitted < refits {
        if limits.iter().any(|l| l.certain.is_some()) {
            break;
        }
        let certain = limits.iter().fold(0.0_f64, |m, l| m.max(l.least));
        let round: Vec<usize> = order
            .iter()
            .copied()
            .filter(|&i| !limits[i].refitted && limits[i].most > certain * (1.0 + CLOSE))
            .take(ROUND.min(refits - *refitted))
            .collect();
        if round.is_empty() {
            break;
        }
        for (row, exact) in exact(&round)? {
            limits[row as usize] = exact;
        }
        *refitted += round.len();
    }
    Ok(())
}

/// The candidates of each record.
pub(super) fn placed<'c>(records: &[Record], candidates: &'c [Candidate]) -> Vec<Vec<Cow<'c, Candidate>>> {
    records.iter().map(|(_, x, y, _)| candidates.iter().map(|c| c.of(x, *y)).collect()).collect()
}

/// A job for every record and candidate.
pub(super) fn jobs<'r>(records: &'r [Record], placed: &'r [Vec<Cow<'_, Candidate>>]) -> Vec<Job<'r>> {
    let of = |((row, x, y, omega), candidates): (&'r Record, &'r Vec<Cow<'_, Candidate>>)| {
        let job =
            move |candidate: &'r Cow<'_, Candidate>| Job { row: *row, x, y: *y, omega: *omega, candidate };
        candidates.iter().map(job)
    };
    records.iter().zip(placed).flat_map(of).collect()
}

pub(super) type Record = (u64, Vec<f64>, f64, f64);

/// The chosen rows: number, columns, target, weight.
pub(super) fn records(rows: &dyn Rows, chosen: &[usize]) -> Result<Vec<Record>> {
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
