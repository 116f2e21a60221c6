//! Leakage of a balanced model with its weights counted: they are functions of the data.
//!
//! With weights held fixed, record i moves the model by `Jᵢ = −ωᵢH⁻¹(ρᵢ ⊗ I + SᵢΘ ⊗ xᵢ)`. But the weights of *all* records move with
//! it, through every iteration `ω ← S(1/e)/Σ(1/e)` (S their sum, e the loss without the factor ω), so what a release gives away is the
//! derivative of the whole iteration. It is taken backwards ([`super::derivative`]): from each of the q coefficients of the last
//! model through weights, losses, models and Hessians to every value of every record at once, which costs O(nq³) an iteration and
//! nothing of size n × n. Scaling is taken as given here, and so is the shape of the noise: one that is public, not read off the records.

use super::derivative::{Backwards, Model, Secret, Table};
use super::{Level, NOTHING, Options, Sharing, Start, Update, Variant, losses_of};
use crate::fisher::Directions;
use crate::glm::{Minimiser, ModelKind, Penalty};
use crate::linalg::{axpy, dot, largest_eigenvalue};
use crate::rows::{Altered, Rows};
use crate::{Error, Result};

/// Counted leakage of a balanced model.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedBalance {
    /// The weights of the iteration that was counted.
    pub weights: Vec<f64>,
    /// η of each record, with how the weights depend on it.
    pub eta: Vec<f64>,
    /// η of each record with the weights held fixed: what was stated before.
    pub eta_fixed: Vec<f64>,
    /// η of every attribute, records × attributes, counted.
    pub attribute_eta: Vec<f64>,
    /// η of each record's label alone, counted.
    pub label_eta: Vec<f64>,
}

/// Numbers that the derivative may keep in memory: n(d + k)q.
const MOST_NUMBERS: usize = 1 << 27;

impl CountedBalance {
    /// Standard deviation over mean of the counted η of records: zero where all leak the same.
    pub fn spread(&self) -> f64 {
        let n = self.eta.len().max(1) as f64;
        let mean = self.eta.iter().sum::<f64>() / n;
        let variance = self.eta.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
        if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
    }
}

/// η of every record of the model after `iterations` reweightings of [`super::balance`] (its `best`), counted.
///
/// The shape of the noise is taken as public. `None` where it is not known: weights that are shared or clamped, the unweighted
/// variant, the accelerated update, a record that leaks nothing or whose loss has no derivative, more numbers than fit in memory.
/// Then no statement can be made.
///
/// # Errors
/// Those of the fits.
pub fn counted(
    rows: &dyn Rows,
    model: (impl Into<ModelKind>, Penalty),
    options: &Options,
    attributes: &[Directions],
    iterations: usize,
) -> Result<Option<CountedBalance>> {
    match Forwards::run(rows, (model.0.into(), model.1), options, iterations)? {
        Some(way) => way.counted(attributes, iterations),
        None => Ok(None),
    }
}

/// The iteration, up to `iterations`, after which the counted η of records is most even, and its leakage; `None` as for
/// [`counted`].
///
/// The published fixed point makes η equal with the weights held fixed, not what a release gives away. Weights that divide by
/// the *counted* η would be another function of the data, whose derivative is not the one that was counted. How often
/// to reweight, though, is a whole number: locally constant, so that choosing it adds nothing to what is counted.
pub fn most_even(
    rows: &dyn Rows,
    model: (impl Into<ModelKind>, Penalty),
    options: &Options,
    attributes: &[Directions],
    iterations: usize,
) -> Result<Option<(usize, CountedBalance)>> {
    let model = (model.0.into(), model.1);
    let Some(way) = Forwards::run(rows, model, options, iterations)? else { return Ok(None) };
    let mut best: Option<(usize, CountedBalance)> = None;
    for number in 0..=iterations {
        let Some(candidate) = way.counted(&[], number)? else { return Ok(None) };
        if best.as_ref().is_none_or(|(_, b)| candidate.spread() < b.spread()) {
            best = Some((number, candidate));
        }
    }
    let Some((number, _)) = best else { return Ok(None) };
    Ok(way.counted(attributes, number)?.map(|candidate| (number, candidate)))
}

/// The weights after exactly `iterations` reweightings of the published kind; `None` where they are of another kind, or a record
/// on the way leaks nothing.
///
/// # Errors
/// Those of the fits.
pub fn weights_after(
    rows: &dyn Rows,
    model: (impl Into<ModelKind>, Penalty),
    options: &Options,
    iterations: usize,
) -> Result<Option<Vec<f64>>> {
    let start = Start::read(rows)?;
    options.check(&start, false)?;
    if !is_published(options) {
        return Ok(None);
    }
    let (model, mut weights) = ((model.0.into(), model.1), start.weights.clone());
    for _ in 0..iterations {
        let (_, e) = measure(rows, model, options, &weights)?;
        let Some(next) = reweighted(&e, start.total) else { return Ok(None) };
        weights = next;
    }
    Ok(Some(weights))
}

/// Whether weights are those of Hannun's algorithm 1.
fn is_published(options: &Options) -> bool {
    options.update == Update::Published
        && options.sharing == Sharing::Sample
        && options.variant == Variant::Weighted
        && options.clamp.is_none()
}

/// `S(1/e)/Σ(1/e)`; `None` where a record leaks nothing.
fn reweighted(e: &[f64], total: f64) -> Option<Vec<f64>> {
    let least = NOTHING * e.iter().sum::<f64>() / e.len() as f64;
    if e.iter().any(|e| *e <= least) {
        return None;
    }
    let mut next: Vec<f64> = e.iter().map(|e| 1.0 / e).collect();
    let factor = total / next.iter().sum::<f64>();
    next.iter_mut().for_each(|w| *w *= factor);
    Some(next)
}

/// The model under the weights, and `e`: η without the factor ω. How many classes there may be was asked when the table was read.
fn measure(
    rows: &dyn Rows,
    (kind, penalty): (ModelKind, Penalty),
    options: &Options,
    weights: &[f64],
) -> Result<(Minimiser, Vec<f64>)> {
    let fit = Minimiser::fit(&Altered::weighted(rows, weights)?, kind, penalty, rows.len() as usize)?;
    let e = losses_of(rows, &fit, &options.level, options.release, options.shape.as_ref())?;
    Ok((fit, e))
}

/// Every model of the iteration with its weights, and what they were made of.
struct Forwards<'a> {
    table: Table,
    models: Vec<(Model, Vec<f64>)>,
    total: f64,
    directions: Directions,
    options: &'a Options,
}

impl<'a> Forwards<'a> {
    fn run(
        rows: &dyn Rows,
        model: (ModelKind, Penalty),
        options: &'a Options,
        iterations: usize,
    ) -> Result<Option<Self>> {
        if !is_published(options) {
            return Ok(None);
        }
        let start = Start::read(rows)?;
        options.check(&start, false)?;
        let p = rows.width();
        let d = model.1.data_width(p);
        let directions = match &options.level {
            Level::Record => Directions::columns(0..d, p),
            Level::Attribute(directions) => directions.clone(),
        };
        let (mut models, mut weights) = (vec![], start.weights.clone());
        for number in 0..=iterations {
            let (fit, e) = measure(rows, model, options, &weights)?;
            let fit = Model::new(fit)?;
            let numbers = (rows.len() as usize).saturating_mul((d + fit.k).saturating_mul(fit.q()));
            if numbers > MOST_NUMBERS {
                return Ok(None);
            }
            models.push((fit, std::mem::take(&mut weights)));
            if number < iterations {
                let Some(next) = reweighted(&e, start.total) else { return Ok(None) };
                weights = next;
            }
        }
        Ok(Some(Self { table: Table::read(rows)?, models, total: start.total, directions, options }))
    }

    /// Backwards from the model after `number` reweightings.
    fn counted(&self, attributes: &[Directions], number: usize) -> Result<Option<CountedBalance>> {
        let (table, p, release) = (&self.table, self.table.p, self.options.release);
        let (last, weights) = self.models.get(number).ok_or(Error::Empty)?;
        let (d, k, q) = (last.d, last.k, last.q());
        if let Some(a) = attributes.iter().find(|a| a.basis.len() != p * a.count) {
            let (actual, expected) = (a.basis.len(), p * a.count);
            return Err(Error::Shape { subject: "the directions of an attribute", actual, expected });
        }
        let label = release.label_secret && self.options.level == Level::Record;
        let shape = self.options.shape.as_ref();
        let secret = Secret { directions: &self.directions, label, shape };
        let mut back = Backwards::new(table, last, weights);
        let mut fixed = back.jacobian.clone();
        let mut after = weights;
        for (fit, before) in self.models[..number].iter().rev() {
            if !back.through(table, fit, (before, after), secret, self.total)? {
                return Ok(None);
            }
            after = before;
        }
        let gain = f64::from(release.releases).sqrt() / release.sigma;
        let own = d + if release.label_secret { k } else { 0 };
        let norm = |rows: &[f64]| -> Result<f64> {
            Ok(gain * if let Some(shape) = shape { top(&shape.whiten_rows(rows), q)? } else { top(rows, q)? })
        };
        let (mut eta, mut eta_fixed, mut attribute_eta, mut label_eta) = (vec![], vec![], vec![], vec![]);
        let all = (d + k) * q;
        for (j, fixed) in back.jacobian.chunks_exact_mut(all).zip(fixed.chunks_exact_mut(all)) {
            for a in attributes {
                attribute_eta.push(norm(&projected(j, a, (d, q)))?);
            }
            for label in [&mut j[d * q..], &mut fixed[d * q..]] {
                label.iter_mut().for_each(|v| *v *= last.switch);
            }
            label_eta.push(norm(&j[d * q..])?);
            eta.push(norm(&j[..own * q])?);
            eta_fixed.push(norm(&fixed[..own * q])?);
        }
        match eta.iter().chain(&attribute_eta).chain(&label_eta).find(|e| !e.is_finite()) {
            Some(&value) => {
                Err(Error::OutOfRange { subject: "η of a record", value, expected: "a finite number" })
            }
            None => {
                let weights = weights.clone();
                Ok(Some(CountedBalance { weights, eta, eta_fixed, attribute_eta, label_eta }))
            }
        }
    }
}

/// Largest singular value of a matrix of rows of p numbers.
fn top(rows: &[f64], p: usize) -> Result<f64> {
    let m = rows.len() / p.max(1);
    let gram: Vec<f64> =
        (0..m * m).map(|ij| dot(&rows[ij / m * p..][..p], &rows[ij % m * p..][..p])).collect();
    Ok(largest_eigenvalue(&gram, m)?.sqrt())
}

/// `(JB)ᵀ` from the rows of `Jᵀ`.
fn projected(jacobian: &[f64], attribute: &Directions, (d, p): (usize, usize)) -> Vec<f64> {
    let m = attribute.count;
    let mut out = vec![0.0; m * p];
    for (c, row) in out.chunks_exact_mut(p).enumerate() {
        for j in 0..d {
            axpy(attribute.basis[j * m + c], &jacobian[j * p..(j + 1) * p], row);
        }
    }
    out
}
