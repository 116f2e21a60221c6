//! Softmax models with a candidate in place, `Δ = Θ_m − Θ*`.
//!
//! With record (x, y, ω) replaced by x' the Hessian becomes `H' = H + BCBᵀ`, B with the 2(K−1) columns `e_a ⊗ x` and
//! `e_a ⊗ x'`, `C = diag(−ωŜ, ωŜ')`, so that with `G = BᵀH⁻¹B`
//!
//! ```text
//! H'⁻¹ = H⁻¹ − H⁻¹B K BᵀH⁻¹,   (I + CG)K = C
//! ```
//!
//! A column that was scaled by its own records has τ more penalty with another value in place: with `t = τ/s²`, s the way between the
//! values, `[[t, −t], [−t, t]] ⊗ I` more in C.
//!
//! Steps use that inverse, blocks of candidates share every pass over the data, and they go on until a step moves nothing any
//! more. A candidate for which they do not contract is fitted from scratch: none is left half-way.

use super::super::Secret;
use super::super::refits::Refits;
use super::super::secret::Change;
use super::super::whitebox::collected;
use crate::glm::softmax::{SoftmaxFit, contrasts, fit_from, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{Cholesky, axpy, dot, matmul, matmul_by_transposed, norm, times};
use crate::rows::{Block, Replaced, Rows};
use crate::tell::{reduced_gradients, solve};
use crate::{Error, Result};

/// Candidates that share a pass over the data.
const TOGETHER: usize = 96;
const MAX_STEPS: usize = 40;
/// The last step of a candidate, relative to its coefficients; steps shrink by two at least, so what is left is no longer.
const LAST_STEP: f64 = 1e-11;
/// The same where steps shrink no more: they are rounding.
const LAST_STEP_ROUNDED: f64 = 1e-7;

/// What does not depend on the record.
pub(super) struct Models<'a> {
    pub(super) fit: &'a SoftmaxFit,
    pub(super) secret: &'a Secret,
    pub(super) u: Vec<f64>,
    inverse: Vec<f64>,
}

/// One replacement on its way.
struct Candidate {
    /// record · M + m.
    at: usize,
    y: f64,
    omega: f64,
    x: [Vec<f64>; 2],
    /// H⁻¹B, 2(K−1) × q, and K.
    hb: Vec<f64>,
    k: Vec<f64>,
    theta: Vec<f64>,
    change: Option<Change>,
    /// Length of its last step.
    last: f64,
}

/// Hands every record with its candidate models to `step`, a block at a time; deltas are those of Θ, M × (K−1)p.
///
/// # Errors
/// As for [`super::attack_classes`].
pub fn for_each_record_of_classes<S: Send>(
    rows: &dyn Rows,
    fit: &SoftmaxFit,
    secret: &Secret,
    start: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, Refits<'_>) -> Result<()> + Sync,
    mut merge: impl FnMut(S) -> Result<()>,
) -> Result<()> {
    secret.check(rows.width())?;
    let models = Models::new(fit, secret)?;
    let mut state = start();
    for block in collected(rows)? {
        let delta = models.of_block(rows, &block)?;
        for (i, delta) in delta.chunks_exact(secret.len() * fit.coefficients()).enumerate() {
            step(&mut state, Refits { row: block.first_row + i as u64, x: block.row(i), delta })?;
        }
    }
    merge(state)
}

impl<'a> Models<'a> {
    pub(super) fn new(fit: &'a SoftmaxFit, secret: &'a Secret) -> Result<Self> {
        let inverse = Cholesky::new(&fit.hessian, fit.coefficients())?.inverse();
        Ok(Self { fit, secret, u: contrasts(fit.classes), inverse })
    }

    fn k(&self) -> usize {
        self.fit.classes - 1
    }

    /// π at a row, from Θ.
    pub(super) fn probabilities(&self, theta: &[f64], x: &[f64]) -> Vec<f64> {
        let (p, k) = (self.fit.width, self.k());
        let reduced: Vec<f64> = theta.chunks_exact(p).map(|row| dot(row, x)).collect();
        let mut z: Vec<f64> = self.u.chunks_exact(k).map(|u| dot(u, &reduced)).collect();
        softmax(&mut z);
        z
    }

    /// `ρ̂` at a row.
    pub(super) fn residual(&self, theta: &[f64], x: &[f64], y: f64) -> Vec<f64> {
        let pi = self.probabilities(theta, x);
        reduced_residual(&pi, (y as usize).min(self.k()), &self.u).collect()
    }

    /// `Δ` of every candidate of the rows of a block, (rows · M) × q.
    pub(super) fn of_block(&self, rows: &dyn Rows, block: &Block) -> Result<Vec<f64>> {
        let (m_count, q, columns) = (self.secret.len(), self.fit.coefficients(), self.secret.columns());
        let mut delta = vec![0.0; block.len() * m_count * q];
        let differs =
            |c: &usize| block.row(c / m_count)[columns.clone()] != *self.secret.candidate(c % m_count);
        let changed: Vec<usize> = (0..block.len() * m_count).filter(differs).collect();
        for together in changed.chunks(TOGETHER) {
            self.newton(rows, block, together, &mut delta)?;
        }
        Ok(delta)
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

    /// None where the Hessian with the candidate in place is too near to singular for an update.
    fn candidate(&self, block: &Block, at: usize) -> Result<Option<Candidate>> {
        let (p, k, q) = (self.fit.width, self.k(), self.fit.coefficients());
        let (i, m) = (at / self.secret.len(), 2 * k);
        let (y, omega) = (block.y[i], block.weight_of(i));
        let x = [block.row(i).to_vec(), self.with_candidate(block.row(i), at % self.secret.len())];
        let change = self.change(block.row(i), at % self.secret.len())?;
        let (mut b, mut hb) = (vec![0.0; m * q], vec![0.0; m * q]);
        for (side, x) in x.iter().enumerate() {
            for a in 0..k {
                b[(side * k + a) * q + a * p..][..p].copy_from_slice(x);
            }
        }
        matmul(&b, &self.inverse, (m, q, q), &mut hb);
        let (mut g, mut c, mut system) = (vec![0.0; m * m], vec![0.0; m * m], vec![0.0; m * m]);
        matmul_by_transposed(&b, &hb, (m, q, m), &mut g);
        for (side, (x, sign)) in x.iter().zip([-omega, omega]).enumerate() {
            let s = reduced_curvature(&self.probabilities(&self.fit.theta, x), &self.u);
            for (al, s) in s.iter().enumerate() {
                c[(side * k + al / k) * m + side * k + al % k] = sign * s;
            }
        }
        if let Some(Change { way, penalty, .. }) = change {
            let t = penalty / (way * way);
            for (a, b) in (0..k).flat_map(|a| [(a, a), (k + a, k + a)]) {
                c[a * m + b] += t;
            }
            for (a, b) in (0..k).flat_map(|a| [(a, k + a), (k + a, a)]) {
                c[a * m + b] -= t;
            }
        }
        matmul(&c, &g, (m, m, m), &mut system);
        (0..m).for_each(|i| system[i * m + i] += 1.0);
        // The solver takes one column more than there are rows.
        let mut right: Vec<f64> =
            c.chunks_exact(m).flat_map(|row| std::iter::once(0.0).chain(row.iter().copied())).collect();
        if !solve(&mut system, &mut right, m) {
            return Ok(None);
        }
        let k_matrix = (0..m * m).map(|ij| right[ij / m * (m + 1) + 1 + ij % m]).collect();
        let theta = self.fit.theta.clone();
        Ok(Some(Candidate { at, y, omega, x, hb, k: k_matrix, theta, change, last: f64::INFINITY }))
    }

    /// Newton steps for candidates `together`, which share every pass.
    fn newton(&self, rows: &dyn Rows, block: &Block, together: &[usize], delta: &mut [f64]) -> Result<()> {
        let q = self.fit.coefficients();
        let mut going: Vec<Candidate> = vec![];
        for &at in together {
            match self.candidate(block, at)? {
                // At Θ* the gradient of the rows as they are is that of the fit.
                Some(mut candidate) => {
                    let g = self.with_replacement(&candidate, self.fit.gradient.clone(), false);
                    axpy(-1.0, &self.solved(&candidate, &g), &mut candidate.theta);
                    going.push(candidate);
                }
                None => self.fit_anew(rows, block, at, delta)?,
            }
        }
        for _ in 0..MAX_STEPS {
            if going.is_empty() {
                return Ok(());
            }
            let at: Vec<Vec<f64>> = going.iter().map(|c| c.theta.clone()).collect();
            let sums = reduced_gradients(rows, self.fit.classes, &self.u, &at)?;
            let mut still = vec![];
            for (mut candidate, sum) in going.into_iter().zip(sums) {
                let g = self.with_replacement(&candidate, sum, true);
                let step = self.solved(&candidate, &g);
                let (length, size) = (norm(&step), norm(&candidate.theta));
                let contracts = length < 0.5 * candidate.last;
                let arrived =
                    length <= LAST_STEP * size || (!contracts && length <= LAST_STEP_ROUNDED * size);
                if arrived {
                    let out = &mut delta[candidate.at * q..][..q];
                    (0..q).for_each(|j| out[j] = candidate.theta[j] - self.fit.theta[j]);
                } else if contracts && length.is_finite() {
                    candidate.last = length;
                    axpy(-1.0, &step, &mut candidate.theta);
                    still.push(candidate);
                } else {
                    self.fit_anew(rows, block, candidate.at, delta)?;
                }
            }
            going = still;
        }
        going.iter().try_for_each(|candidate| self.fit_anew(rows, block, candidate.at, delta))
    }

    /// The gradient with the candidate in place, from that of the rows as they are; `penalise` adds the penalty's.
    fn with_replacement(&self, candidate: &Candidate, mut g: Vec<f64>, penalise: bool) -> Vec<f64> {
        let (p, d) = (self.fit.width, self.fit.penalty.data_width(self.fit.width));
        let strength = self.fit.n as f64 * self.fit.penalty.l2;
        if penalise {
            for (g, theta) in g.chunks_exact_mut(p).zip(candidate.theta.chunks_exact(p)) {
                axpy(strength, &theta[..d], &mut g[..d]);
            }
        }
        for (x, sign) in candidate.x.iter().zip([-candidate.omega, candidate.omega]) {
            let rho = self.residual(&candidate.theta, x, candidate.y);
            g.chunks_exact_mut(p).zip(&rho).for_each(|(g, rho)| axpy(sign * rho, x, g));
        }
        if let Some(Change { column, penalty, .. }) = candidate.change {
            let of_column = g.iter_mut().skip(column).step_by(p);
            of_column
                .zip(candidate.theta.iter().skip(column).step_by(p))
                .for_each(|(g, theta)| *g += penalty * theta);
        }
        g
    }

    /// `H'⁻¹g`.
    fn solved(&self, candidate: &Candidate, g: &[f64]) -> Vec<f64> {
        let q = g.len();
        let mut out = times(&self.inverse, g);
        let along: Vec<f64> = candidate.hb.chunks_exact(q).map(|h| dot(h, g)).collect();
        let back = times(&candidate.k, &along);
        candidate.hb.chunks_exact(q).zip(&back).for_each(|(h, v)| axpy(-v, h, &mut out));
        out
    }

    /// The candidate by the solver itself, which converges or says that it does not.
    fn fit_anew(&self, rows: &dyn Rows, block: &Block, at: usize, delta: &mut [f64]) -> Result<()> {
        let (q, i, m) = (self.fit.coefficients(), at / self.secret.len(), at % self.secret.len());
        let x = self.with_candidate(block.row(i), m);
        let mut scale = vec![1.0; self.fit.penalty.data_width(self.fit.width)];
        if let Some(change) = self.change(block.row(i), m)? {
            scale[change.column] = change.scale;
        }
        let replaced = Replaced { rows, row: block.first_row + i as u64, x: &x, y: None, scale: &scale };
        let mut best = fit_from(&replaced, self.fit.classes, self.fit.penalty, &self.fit.theta)?;
        for theta in best.theta.chunks_exact_mut(self.fit.width) {
            theta.iter_mut().zip(&scale).for_each(|(theta, s)| *theta /= s);
        }
        if let Some(&value) = best.theta.iter().find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange { subject: "a coefficient", value, expected: "a finite number" });
        }
        let out = &mut delta[at * q..][..q];
        (0..q).for_each(|j| out[j] = best.theta[j] - self.fit.theta[j]);
        Ok(())
    }
}
