//! The candidate models of every record, handed out one record at a time: what bounds on guessing are made from.

use super::Secret;
pub use super::whitebox::Deltas;
use super::whitebox::{Models, collected, leverage};
use crate::fisher::noise::Noise;
use crate::glm::{Family, Fit};
use crate::linalg::{Cholesky, dot, matmul, norm, times};
use crate::pass::{Merge, Pass, Runner};
use crate::rows::{Block, Rows};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Records whose candidates of a linear regression are made together.
const RECORDS: usize = 64;

/// The candidates of one record, as [`for_each_record`] hands them out.
#[derive(Debug, Clone, Copy)]
pub struct Refits<'a> {
    /// Its row, from 0.
    pub row: u64,
    /// Its encoded values.
    pub x: &'a [f64],
    /// `w_m − w*` of every candidate, M × p, row-major.
    pub delta: &'a [f64],
}

/// Hands every record with its candidate models to `step`, in states that merge in row order: a few records at a time
/// for linear regression, a block at a time for the other families.
///
/// # Errors
/// As for [`attack`](super::attack).
pub fn for_each_record<S: Send>(
    rows: &dyn Rows,
    fit: &Fit,
    secret: &Secret,
    start: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, Refits) -> Result<()> + Sync,
    mut merge: impl FnMut(S) -> Result<()>,
) -> Result<()> {
    secret.check(rows.width())?;
    let models = Models::new(fit, secret)?;
    let per_record = secret.len() * fit.w.len();
    let each = |state: &mut S, block: &Block, first: usize, delta: &[f64]| -> Result<()> {
        for (k, delta) in delta.chunks_exact(per_record).enumerate() {
            let i = first + k;
            step(state, Refits { row: block.first_row + i as u64, x: block.row(i), delta })?;
        }
        Ok(())
    };
    if fit.family == Family::Linear {
        let inverse = &models.inverse;
        return rows.fold(
            || (start(), Deltas::default()),
            |(state, deltas), block| {
                refits_of_block((fit, inverse), secret, block, deltas, |refits| step(state, refits))
            },
            |(state, _)| merge(state),
        );
    }
    let (mut state, mut deltas) = (start(), Deltas::default());
    for block in collected(rows)? {
        models.by_newton(rows, &block, &mut deltas)?;
        each(&mut state, &block, 0, &deltas.delta)?;
    }
    merge(state)
}

/// Hands every record of a block with its candidate models to `step`: of a linear regression, whose candidates need no other
/// rows. `inverse` is its `H⁻¹`.
///
/// # Errors
/// As for [`attack`](super::attack); [`Error::NotApplicable`] for another family.
pub fn refits_of_block(
    (fit, inverse): (&Fit, &[f64]),
    secret: &Secret,
    block: &Block,
    deltas: &mut Deltas,
    mut step: impl FnMut(Refits<'_>) -> Result<()>,
) -> Result<()> {
    if fit.family != Family::Linear {
        return Err(Error::NotApplicable {
            subject: "candidate models from one block",
            setting: "a family that is not linear",
            advice: "use for_each_record, which reads all rows for each",
        });
    }
    secret.check(block.width)?;
    let models = Models { fit, secret, inverse: Cow::Borrowed(inverse) };
    let per_record = secret.len() * fit.w.len();
    for first in (0..block.len()).step_by(RECORDS) {
        let last = (first + RECORDS).min(block.len());
        models.first_steps(block, first..last, deltas)?;
        for (k, delta) in deltas.delta.chunks_exact(per_record).enumerate() {
            let i = first + k;
            step(Refits { row: block.first_row + i as u64, x: block.row(i), delta })?;
        }
    }
    Ok(())
}

/// `w_m` of every candidate of every row: rows · M models of p coefficients, for those who want the models themselves.
///
/// # Errors
/// As for [`attack`](super::attack).
pub fn candidate_models(rows: &dyn Rows, fit: &Fit, secret: &Secret) -> Result<Vec<Vec<f64>>> {
    let mut out = vec![];
    for_each_record(
        rows,
        fit,
        secret,
        Vec::new,
        |part: &mut Vec<Vec<f64>>, refits| {
            let models = refits.delta.chunks_exact(fit.w.len());
            part.extend(
                models.map(|delta| fit.w.iter().zip(delta).map(|(w, d)| w + d).collect::<Vec<f64>>()),
            );
            Ok(())
        },
        |part| {
            out.extend(part);
            Ok(())
        },
    )?;
    Ok(out)
}

/// The pass that finds how far a linear regression moves when a record is left out, for every row: `ω r h/(1 − ω h·x)` exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Removals<'a> {
    /// `H⁻¹`, p × p.
    pub inverse: Cow<'a, [f64]>,
    /// The coefficients.
    pub w: Cow<'a, [f64]>,
    /// W of the noise by which distances are measured, p × p; empty for isotropic noise of σ = 1.
    pub whitener: Cow<'a, [f64]>,
}

/// How far the model moves without each record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RemovalDistances {
    /// One a row.
    pub distances: Vec<f64>,
    #[serde(skip)]
    h: Vec<f64>,
}

impl Merge for RemovalDistances {
    fn merge(&mut self, later: Self) {
        self.distances.extend(later.distances);
    }
}

impl Pass for Removals<'_> {
    const NAME: &'static str = "distances of models without a record";
    type State = RemovalDistances;

    fn start(&self) -> RemovalDistances {
        RemovalDistances::default()
    }

    fn step(&self, state: &mut RemovalDistances, block: &Block) -> Result<()> {
        let p = self.w.len();
        let white = self.whitener.is_empty() || self.whitener.len() == p * p;
        if block.width != p || self.inverse.len() != p * p || !white {
            return Err(Error::Shape {
                subject: "rows of the model's width",
                actual: block.width,
                expected: p,
            });
        }
        state.h.resize(block.len() * p, 0.0);
        matmul(&block.x, &self.inverse, (block.len(), p, p), &mut state.h);
        for i in 0..block.len() {
            let (x, h, omega) = (block.row(i), &state.h[i * p..(i + 1) * p], block.weight_of(i));
            let left = 1.0 - omega * dot(x, h);
            if left <= 1e-13 {
                return Err(leverage());
            }
            let length = match self.whitener.is_empty() {
                true => norm(h),
                false => norm(&times(&self.whitener, h)),
            };
            state.distances.push(omega * (dot(x, &self.w) - block.y[i]).abs() * length / left);
        }
        Ok(())
    }

    fn fits(&self, state: &RemovalDistances) -> bool {
        state.distances.iter().all(|distance| *distance >= 0.0)
    }
}

/// How far the model moves when a record is left out, for every row; linear regression only. Distances are those by the noise at
/// σ = 1, `shape`, or `N(0, I)` without one.
///
/// # Errors
/// As for [`attack`](super::attack).
pub fn removal_distances(
    rows: &(impl Runner + ?Sized),
    fit: &Fit,
    shape: Option<&Noise>,
) -> Result<Vec<f64>> {
    let inverse = Cholesky::new(&fit.hessian, fit.w.len())?.inverse();
    let whitener = Cow::Borrowed(shape.map(Noise::whitener).unwrap_or_default());
    let pass = Removals { inverse: Cow::Owned(inverse), w: Cow::Borrowed(&fit.w), whitener };
    Ok(rows.run(&pass)?.distances)
}
