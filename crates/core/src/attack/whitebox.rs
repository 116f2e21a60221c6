//! Models with a candidate in place, `Δ = w_m − w*`: what the white box compares with.
//!
//! With record (x, y, ω) replaced by x' the gradient of the objective at w* is `−ωr x + ωr' x'` and its Hessian
//! `H' = H + U C Uᵀ`, `U = [x, x']`, `C = diag(−ωa, ωa')`. One Newton step from w* is
//!
//! ```text
//! Δ = −H'⁻¹ U (−ωr, ωr')ᵀ = −[h, h'] (I + C G)⁻¹ (−ωr, ωr')ᵀ,   h = H⁻¹x, h' = H⁻¹x', G = Uᵀ[h, h']
//! ```
//!
//! A column that was scaled by its own records has τ more penalty with another value in place ([`Secret::scaled_by_its_records`]), and
//! its unit vector is `(x' − x)/s`, s the way between the values: with `t = τ/s²` that adds `[[t, −t], [−t, t]]` to C and `±τw_j/s` to
//! the gradient's two numbers.
//!
//! The step costs O(d) and *is* the answer for linear regression. For the other families it is where Newton starts:
//! blocks of candidates share every pass over the data (two products, `X W` and `Xᵀ R`), steps use the rank-two
//! update above of the Hessian at w*, and they go on until the exact gradient is at the solver's tolerance and a step
//! moves nothing any more. Each candidate is judged by its own gradient, its own size and its own steps, whichever others
//! share its passes. One for which that does not contract is fitted from scratch, and where that fit has no answer there
//! is an error: no candidate is left half-way.

use super::Secret;
use super::secret::Change;
use crate::glm::{Family, Fit, TOLERANCE, fit as fit_model};
use crate::linalg::{Cholesky, axpy, dot, matmul, matmul_transposed, norm, solve2};
use crate::rows::{Block, Replaced, Rows};
use crate::{Error, Result};
use std::borrow::Cow;

/// Candidates that share a pass over the data.
const TOGETHER: usize = 192;
const MAX_STEPS: usize = 40;
/// The last step of a candidate, relative to its coefficients. Steps shrink by two at least (a candidate that does not
/// is fitted from scratch), so what is left after it is no longer than the step itself.
const LAST_STEP: f64 = 1e-11;
/// The same where the gradient is at its rounding and improves no more, as it is where columns nearly depend on one
/// another: the solver would stop there too.
const LAST_STEP_ROUNDED: f64 = 1e-7;

/// What does not depend on the record.
pub(super) struct Models<'a> {
    pub(super) fit: &'a Fit,
    pub(super) secret: &'a Secret,
    pub(super) inverse: Cow<'a, [f64]>,
}

/// `Δ` of every candidate of some records: (records · M) × p, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deltas {
    pub(super) delta: Vec<f64>,
    h: Vec<f64>,
}

/// One replacement: rank two in the Hessian.
struct Replacement {
    /// H⁻¹x and H⁻¹x'.
    h: [Vec<f64>; 2],
    x: [Vec<f64>; 2],
    /// `C (I + G C)⁻¹`, 2 × 2, row-major: H'⁻¹ = H⁻¹ − [h, h'] K [h, h']ᵀ.
    k: [f64; 4],
    change: Option<Change>,
}

/// C of a replacement, row-major, from `−ωa` and `ωa'`.
fn curvature(change: Option<Change>, [c1, c2]: [f64; 2]) -> [f64; 4] {
    let t = change.map_or(0.0, |c| c.penalty / (c.way * c.way));
    [c1 + t, -t, -t, c2 + t]
}

/// `I + C G` with G by its three numbers.
fn with_gram(c: [f64; 4], [g11, g12, g22]: [f64; 3]) -> [f64; 4] {
    [
        1.0 + c[0] * g11 + c[1] * g12,
        c[0] * g12 + c[1] * g22,
        c[2] * g11 + c[3] * g12,
        1.0 + c[2] * g12 + c[3] * g22,
    ]
}

impl<'a> Models<'a> {
    pub(super) fn new(fit: &'a Fit, secret: &'a Secret) -> Result<Self> {
        let inverse = Cholesky::new(&fit.hessian, fit.w.len())?.inverse();
        Ok(Self { fit, secret, inverse: Cow::Owned(inverse) })
    }

    fn p(&self) -> usize {
        self.fit.w.len()
    }

    /// What a candidate does to the scale of its column.
    fn change(&self, x: &[f64], m: usize) -> Result<Option<Change>> {
        self.secret.penalty_change(x, m, (self.fit.n as f64, self.fit.penalty.l2))
    }

    fn with_candidate(&self, x: &[f64], m: usize) -> Vec<f64> {
        let mut changed = x.to_vec();
        changed[self.secret.columns()].copy_from_slice(self.secret.candidate(m));
        changed
    }

    /// The first Newton step of every candidate of rows `range` of a block: for linear regression, the answer.
    pub(super) fn first_steps(
        &self,
        block: &Block,
        range: std::ops::Range<usize>,
        out: &mut Deltas,
    ) -> Result<()> {
        let (p, m_count, n) = (self.p(), self.secret.len(), range.len());
        if block.width != p || self.inverse.len() != p * p {
            return Err(Error::Shape {
                subject: "rows of the model's width",
                actual: block.width,
                expected: p,
            });
        }
        let columns = self.secret.columns();
        let x = &block.x[range.start * p..range.end * p];
        out.h.resize(n * p, 0.0);
        matmul(x, &self.inverse, (n, p, p), &mut out.h);
        out.delta.clear();
        out.delta.resize(n * m_count * p, 0.0);
        let mut h2 = vec![0.0; p];
        for i in 0..n {
            let (x, h, omega) =
                (&x[i * p..(i + 1) * p], &out.h[i * p..(i + 1) * p], block.weight_of(range.start + i));
            let y = block.y[range.start + i];
            let z = dot(x, &self.fit.w);
            let t = self.fit.family.terms(z, y);
            let g11 = dot(x, h);
            for m in 0..m_count {
                // x' differs from x in a few columns: h' = h + Σ (x'_j − x_j) H⁻¹e_j.
                h2.copy_from_slice(h);
                let (mut z2, mut changed) = (z, false);
                for (j, c) in columns.clone().zip(self.secret.candidate(m)) {
                    let shift = c - x[j];
                    if shift != 0.0 {
                        changed = true;
                        axpy(shift, &self.inverse[j * p..(j + 1) * p], &mut h2);
                        z2 += shift * self.fit.w[j];
                    }
                }
                if !changed {
                    continue;
                }
                let t2 = self.fit.family.terms(z2, y);
                let g12 = dot(x, &h2);
                let mut g22 = g12;
                for (j, c) in columns.clone().zip(self.secret.candidate(m)) {
                    g22 += (c - x[j]) * h2[j];
                }
                // (I + C G) (α, β)ᵀ = (ωr + τw_j/s, −ωr' − τw_j/s)ᵀ
                let change = self.change(x, m)?;
                let c = curvature(change, [-omega * t.a, omega * t2.a]);
                let pulled = change.map_or(0.0, |c| c.penalty * self.fit.w[c.column] / c.way);
                let solved =
                    solve2(with_gram(c, [g11, g12, g22]), [omega * t.r + pulled, -omega * t2.r - pulled]);
                let [alpha, beta] = match (solved, self.fit.family) {
                    (Some(steps), _) => steps,
                    (None, Family::Linear) => return Err(leverage()),
                    // Only a start here: these are fitted from scratch.
                    (
                        None,
                        Family::Logistic
                        | Family::Poisson
                        | Family::Gamma
                        | Family::Tweedie(_)
                        | Family::SquaredHinge
                        | Family::Huber(_),
                    ) => continue,
                };
                let delta = &mut out.delta[(i * m_count + m) * p..][..p];
                axpy(alpha, h, delta);
                axpy(beta, &h2, delta);
            }
        }
        Ok(())
    }

    /// None where the Hessian with the candidate in place is too near to singular for a rank-two update.
    fn replacement(&self, x: &[f64], y: f64, omega: f64, m: usize) -> Result<Option<Replacement>> {
        let (p, change) = (self.p(), self.change(x, m)?);
        let x2 = self.with_candidate(x, m);
        let apply = |x: &[f64]| {
            let mut h = vec![0.0; p];
            matmul(x, &self.inverse, (1, p, p), &mut h);
            h
        };
        let (h, h2) = (apply(x), apply(&x2));
        let a = |x: &[f64]| self.fit.family.terms(dot(x, &self.fit.w), y).a;
        let c = curvature(change, [-omega * a(x), omega * a(&x2)]);
        // K = C (I + G C)⁻¹ = (I + C G)⁻¹ C, column by column.
        let a = with_gram(c, [dot(x, &h), dot(x, &h2), dot(&x2, &h2)]);
        let (Some(first), Some(second)) = (solve2(a, [c[0], c[2]]), solve2(a, [c[1], c[3]])) else {
            return Ok(None);
        };
        let k = [first[0], second[0], first[1], second[1]];
        Ok(Some(Replacement { h: [h, h2], x: [x.to_vec(), x2], k, change }))
    }

    /// `Δ` of every candidate of the rows of a block in memory, exact to the solver's tolerance.
    pub(super) fn by_newton(&self, rows: &dyn Rows, block: &Block, out: &mut Deltas) -> Result<()> {
        self.first_steps(block, 0..block.len(), out)?;
        if self.fit.family == Family::Linear {
            return Ok(());
        }
        let (m_count, columns) = (self.secret.len(), self.secret.columns());
        let differs =
            |c: &usize| block.row(c / m_count)[columns.clone()] != *self.secret.candidate(c % m_count);
        let changed: Vec<usize> = (0..block.len() * m_count).filter(differs).collect();
        for together in changed.chunks(TOGETHER) {
            self.newton(rows, block, together, &mut out.delta)?;
        }
        Ok(())
    }

    /// Newton steps for candidates `together` (record · M + m), which share every pass.
    fn newton(&self, rows: &dyn Rows, block: &Block, together: &[usize], delta: &mut [f64]) -> Result<()> {
        let (p, m_count) = (self.p(), self.secret.len());
        let mut going: Vec<Candidate> = vec![];
        for &at in together {
            let i = at / m_count;
            let (y, omega) = (block.y[i], block.weight_of(i));
            match self.replacement(block.row(i), y, omega, at % m_count)? {
                Some(replaced) => {
                    let w = self.fit.w.iter().zip(&delta[at * p..]).map(|(w, delta)| w + delta).collect();
                    going.push(Candidate { at, y, omega, replaced, w, relative: f64::INFINITY });
                }
                None => self.fit_anew(rows, block, at, delta)?,
            }
        }
        for _ in 0..MAX_STEPS {
            if going.is_empty() {
                return Ok(());
            }
            let sums = gradients(rows, self.fit.family, &going, p)?;
            let mut still = vec![];
            for (candidate, (gradient, size)) in going.into_iter().zip(sums) {
                match self.step(candidate, gradient, size) {
                    Progress::Going(candidate) => still.push(candidate),
                    Progress::Arrived(candidate) => {
                        let out = &mut delta[candidate.at * p..][..p];
                        (0..p).for_each(|j| out[j] = candidate.w[j] - self.fit.w[j]);
                    }
                    Progress::Lost(at) => self.fit_anew(rows, block, at, delta)?,
                }
            }
            going = still;
        }
        going.iter().try_for_each(|candidate| self.fit_anew(rows, block, candidate.at, delta))
    }

    /// One step of one candidate, from the sums of the training data at its coefficients.
    fn step(&self, mut candidate: Candidate, mut g: Vec<f64>, mut size: f64) -> Progress {
        let d = self.fit.penalty.data_width(self.p());
        let strength = self.fit.n as f64 * self.fit.penalty.l2;
        let w = &candidate.w;
        axpy(strength, &w[..d], &mut g[..d]);
        size += strength * norm(&w[..d]);
        if let Some(strength) = self.fit.penalty.on_intercept(self.fit.n) {
            g[d] += strength * w[d];
            size += strength * w[d].abs();
        }
        for (x, sign) in candidate.replaced.x.iter().zip([-candidate.omega, candidate.omega]) {
            let t = self.fit.family.terms(dot(x, w), candidate.y);
            axpy(sign * t.r, x, &mut g);
            size += candidate.omega * self.fit.family.slope_size(t, candidate.y, norm(x) * norm(w)) * norm(x);
        }
        if let Some(Change { column, penalty, .. }) = candidate.replaced.change {
            g[column] += penalty * w[column];
            size += (penalty * w[column]).abs();
        }
        let relative = norm(&g) / size.max(f64::MIN_POSITIVE);
        let step = self.solve(&candidate.replaced, &g);
        let (length, before) = (norm(&step), norm(w));
        if !(relative.is_finite() && length.is_finite()) {
            return Progress::Lost(candidate.at);
        }
        if relative <= TOLERANCE && length <= LAST_STEP * before {
            return Progress::Arrived(candidate);
        }
        if relative >= 0.5 * candidate.relative {
            let rounded = candidate.relative <= TOLERANCE
                && relative <= TOLERANCE
                && length <= LAST_STEP_ROUNDED * before;
            return if rounded { Progress::Arrived(candidate) } else { Progress::Lost(candidate.at) };
        }
        candidate.relative = relative;
        axpy(-1.0, &step, &mut candidate.w);
        Progress::Going(candidate)
    }

    /// The candidate by the solver itself, which converges or says that it does not.
    fn fit_anew(&self, rows: &dyn Rows, block: &Block, at: usize, delta: &mut [f64]) -> Result<()> {
        let (p, i, m) = (self.p(), at / self.secret.len(), at % self.secret.len());
        let x = self.with_candidate(block.row(i), m);
        // A column divided by its new standard deviation turns the penalty into that of a plain fit.
        let mut scale = vec![1.0; self.fit.penalty.data_width(p)];
        if let Some(change) = self.change(block.row(i), m)? {
            scale[change.column] = change.scale;
        }
        let replaced = Replaced { rows, row: block.first_row + i as u64, x: &x, y: None, scale: &scale };
        let best = fit_model(&replaced, self.fit.family, self.fit.penalty)?;
        let out = &mut delta[at * p..][..p];
        let scales = scale.iter().copied().chain(std::iter::repeat(1.0));
        out.iter_mut().zip(scales).enumerate().for_each(|(j, (o, s))| *o = best.w[j] / s - self.fit.w[j]);
        Ok(())
    }

    /// `H'⁻¹ g = H⁻¹g − [h, h'] K [h, h']ᵀ g`.
    fn solve(&self, replaced: &Replacement, g: &[f64]) -> Vec<f64> {
        let p = self.p();
        let mut step = vec![0.0; p];
        matmul(g, &self.inverse, (1, p, p), &mut step);
        let [h, h2] = &replaced.h;
        let (u, v, k) = (dot(h, g), dot(h2, g), &replaced.k);
        axpy(-(k[0] * u + k[1] * v), h, &mut step);
        axpy(-(k[2] * u + k[3] * v), h2, &mut step);
        step
    }
}

/// A candidate on its way.
struct Candidate {
    /// record · M + m.
    at: usize,
    y: f64,
    omega: f64,
    replaced: Replacement,
    w: Vec<f64>,
    /// Relative norm of its last gradient.
    relative: f64,
}

/// What a step made of a candidate.
enum Progress {
    Going(Candidate),
    Arrived(Candidate),
    /// Steps do not contract: to be fitted from scratch.
    Lost(usize),
}

/// `Xᵀ diag(ω) r(Xw, y)` of every candidate, and its size if nothing cancelled, each with the candidate's own
/// predictions.
fn gradients(
    rows: &dyn Rows,
    family: Family,
    candidates: &[Candidate],
    p: usize,
) -> Result<Vec<(Vec<f64>, f64)>> {
    let k = candidates.len();
    // p × k, one column per candidate.
    let mut w = vec![0.0; p * k];
    for (c, candidate) in candidates.iter().enumerate() {
        (0..p).for_each(|j| w[j * k + c] = candidate.w[j]);
    }
    let lengths: Vec<f64> = candidates.iter().map(|candidate| norm(&candidate.w)).collect();
    let (mut total, mut sizes) = (vec![0.0; p * k], vec![0.0; k]);
    rows.fold(
        || (vec![0.0; p * k], vec![0.0; k], vec![], vec![0.0; p * k]),
        |(gradient, sizes, r, part), block| {
            let n = block.len();
            r.resize(n * k, 0.0);
            matmul(&block.x, &w, (n, p, k), r);
            for i in 0..n {
                let (y, omega, length) = (block.y[i], block.weight_of(i), norm(block.row(i)));
                for ((z, size), w) in r[i * k..(i + 1) * k].iter_mut().zip(sizes.iter_mut()).zip(&lengths) {
                    let t = family.terms(*z, y);
                    *size += omega * family.slope_size(t, y, length * w) * length;
                    *z = omega * t.r;
                }
            }
            matmul_transposed(&block.x, r, (p, n, k), part);
            axpy(1.0, part, gradient);
            Ok(())
        },
        |(gradient, part, _, _)| {
            axpy(1.0, &gradient, &mut total);
            axpy(1.0, &part, &mut sizes);
            Ok(())
        },
    )?;
    let column = |c: usize| (0..p).map(|j| total[j * k + c]).collect();
    Ok(sizes.iter().enumerate().map(|(c, size)| (column(c), *size)).collect())
}

pub(super) fn leverage() -> Error {
    let expected = "less than one: without this record a coefficient is undetermined, so add a penalty (l2)";
    Error::OutOfRange { subject: "the leverage of a record", value: 1.0, expected }
}

/// All blocks, in order, in memory.
pub(super) fn collected(rows: &dyn Rows) -> Result<Vec<Block>> {
    let mut blocks = vec![];
    rows.fold(
        Vec::new,
        |part, block| {
            part.push(block.clone());
            Ok(())
        },
        |part: Vec<Block>| {
            blocks.extend(part);
            Ok(())
        },
    )?;
    Ok(blocks)
}
