//! The derivative of a shape for classes.
//!
//! Where the noise is white, with `N_a` the columns of N of contrast a, `P = Σρ̂_aN_a`, `X = N(I ⊗ x)`, `E = N(I ⊗ ε)`, and
//! `Q = (P + XŜΘ)C`, a change of a record by ε and of its label by v, which moves its predictors by `z = Θε`, does
//!
//! ```text
//! N dK Nᵀ = ω²[ Σ dρ̂_a N_aQᵀ + X dŜΘQᵀ + E(ŜΘQᵀ + lXᵀ) ] + transposed,   dρ̂ = Ŝz − v,   dŜ = Σ T_c z_c
//! ```
//!
//! The first sum has rank p, but only k different terms a record, which all its directions share; the rest has rank 2k.

use super::super::generate::{Dual, Generator};
use super::super::group::{Group, squares};
use super::super::information::{Derivative, Through};
use super::super::white::{White, add_pair};
use super::super::worst::{Record, jacobian};
use super::moved::Sums;
use super::{Terms, label_squares, predicted};
use crate::Result;
use crate::glm::softmax::{SoftmaxFit, contrasts};
use crate::linalg::{axpy, matmul, matmul_by_transposed, matmul_transposed, norm, times};

/// An atom with what its derivative needs: `g = ω(ρ̂ ⊗ β + (ŜΘβ − υ) ⊗ x)`.
struct Bound {
    row: u64,
    weight: f64,
    beta: Vec<f64>,
    /// `Θβ`.
    predicted: Vec<f64>,
    upsilon: Vec<f64>,
}

/// The derivative of a shape with respect to any record.
pub(in super::super) struct Contrasts<'a> {
    fit: &'a SoftmaxFit,
    u: Vec<f64>,
    inverse: &'a [f64],
    white: White,
    /// `C = ΣBBᵀ` over groups, and the sum of the squares of the labels' scales.
    c: Vec<f64>,
    l2: f64,
    /// Weight of the equal weights on one record and direction.
    share: f64,
    atoms: Vec<Bound>,
    /// One over n where A is that of the training rows, zero where it is public.
    cost_share: f64,
    through: Through,
}

/// A record where the noise is white; vectors of length q are rows, one a contrast.
pub(in super::super) struct Local<'a> {
    omega: f64,
    terms: Terms,
    third: Vec<f64>,
    /// `N(I ⊗ x)` and `R(I ⊗ x)`, transposed.
    xh: Vec<f64>,
    xr: Vec<f64>,
    /// `N_aQᵀ` of every contrast, q × q each.
    spread: Vec<f64>,
    /// `ΘQᵀ`, and `ŜΘQᵀ + lXᵀ`.
    bent: Vec<f64>,
    moved: Vec<f64>,
    /// `ŜR(I ⊗ x)`, transposed.
    curved: Vec<f64>,
    /// Atoms of this record, with `Ng` and `N_aβ` of every contrast.
    atoms: Vec<(&'a Bound, Vec<f64>, Vec<f64>)>,
}

impl<'a> Contrasts<'a> {
    pub(in super::super) fn new(
        generator: &'a Generator<'_>,
        fit: &'a SoftmaxFit,
        dual: &Dual,
        public_cost: bool,
    ) -> Result<Self> {
        let groups = generator.groups;
        let c = squares(groups, fit.width);
        let sums = Sums::of(generator.rows, fit, &c)?;
        let dimensions: f64 = groups.iter().map(|g| g.dimensions() as f64).sum();
        let atoms = dual.atoms.iter().map(|(atom, _)| {
            let group = &groups[atom.target];
            let length = norm(&atom.direction);
            let u: Vec<f64> = atom.direction.iter().map(|v| v / length).collect();
            let beta = group.combined(&u[..group.count]);
            let label = u[group.count..].iter().map(|v| group.label * v);
            let upsilon = match group.labels {
                0 => vec![0.0; fit.classes - 1],
                _ => label.collect(),
            };
            Bound { row: atom.row, weight: atom.weight, predicted: predicted(fit, &beta), beta, upsilon }
        });
        let mut derivative = Self {
            fit,
            u: contrasts(fit.classes),
            inverse: &generator.inverse,
            white: White::new(generator, dual)?,
            c,
            l2: label_squares(groups),
            share: dual.uniform / (sums.n as f64 * dimensions),
            atoms: atoms.collect(),
            cost_share: if public_cost { 0.0 } else { 1.0 / sums.n as f64 },
            through: Through::new(vec![], 0),
        };
        let each = derivative.of_coefficients(&sums, dual);
        derivative.through = Through::new(each, fit.coefficients());
        Ok(derivative)
    }

    /// `X⁽ˡ⁾` for every coefficient l.
    fn of_coefficients(&self, sums: &Sums, dual: &Dual) -> Vec<f64> {
        let (p, k, q) = (self.fit.width, self.u.len() / self.fit.classes, self.fit.coefficients());
        let records: Vec<(Terms, Vec<f64>)> = dual
            .atoms
            .iter()
            .map(|(_, record)| {
                let terms = Terms::of(self.fit, &self.u, &record.x, record.y);
                let third = terms.third(&self.u);
                (terms, third)
            })
            .collect();
        let mut out = Vec::with_capacity(q * q * q);
        for l in 0..q {
            let (c, j) = (l / p, l % p);
            let mut change = sums.change(&self.c, c, j);
            change.a.iter_mut().for_each(|v| *v *= self.cost_share);
            change.k.iter_mut().for_each(|v| *v *= self.share);
            for ((bound, (_, record)), (terms, third)) in self.atoms.iter().zip(&dual.atoms).zip(&records) {
                let kernel = kernel(bound, record, terms);
                // dρ̂ = x_jŜ_c, d(ŜΘβ) = x_jT_cΘβ + Ŝ_cβ_j
                let bent = times(&third[c * k * k..(c + 1) * k * k], &bound.predicted);
                let mut moved = vec![0.0; q];
                for (a, part) in moved.chunks_exact_mut(p).enumerate() {
                    let s = terms.s[a * k + c];
                    axpy(record.omega * record.x[j] * s, &bound.beta, part);
                    axpy(record.omega * (record.x[j] * bent[a] + s * bound.beta[j]), &record.x, part);
                }
                add_pair(&mut change.k, bound.weight, &kernel, &moved);
            }
            out.extend(self.white.solved(&change.h, &change.a, &change.k));
        }
        out
    }

    /// `M(I ⊗ v)`, transposed: one row of length q a contrast, for a q × q matrix M.
    fn spread(&self, m: &[f64], v: &[f64]) -> Vec<f64> {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let mut out = vec![0.0; k * q];
        for (i, row) in m.chunks_exact(q).enumerate() {
            for (a, part) in row.chunks_exact(p).enumerate() {
                out[a * q + i] = crate::linalg::dot(part, v);
            }
        }
        out
    }

    fn prepared(&self, row: u64, record: &Record) -> Local<'_> {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let terms = Terms::of(self.fit, &self.u, &record.x, record.y);
        let (xh, xr) = (self.spread(&self.white.n, &record.x), self.spread(&self.white.r, &record.x));
        let slopes = terms.slopes(self.fit);
        // P + XŜΘ, q × p.
        let mut sum = vec![0.0; q * p];
        matmul_transposed(&xh, &slopes, (q, k, p), &mut sum);
        for (row, out) in self.white.n.chunks_exact(q).zip(sum.chunks_exact_mut(p)) {
            row.chunks_exact(p).zip(&terms.rho).for_each(|(part, rho)| axpy(*rho, part, out));
        }
        let mut weighed = vec![0.0; q * p];
        matmul(&sum, &self.c, (q, p, p), &mut weighed);
        let mut spread = vec![0.0; k * q * q];
        let mut columns = Vec::with_capacity(q * p);
        for (a, out) in spread.chunks_exact_mut(q * q).enumerate() {
            columns.clear();
            self.white.n.chunks_exact(q).for_each(|row| columns.extend_from_slice(&row[a * p..(a + 1) * p]));
            matmul_by_transposed(&columns, &weighed, (q, p, q), out);
        }
        let (mut bent, mut moved, mut curved) = (vec![0.0; k * q], vec![0.0; k * q], vec![0.0; k * q]);
        matmul_by_transposed(&self.fit.theta, &weighed, (k, p, q), &mut bent);
        matmul(&terms.s, &bent, (k, k, q), &mut moved);
        axpy(self.l2, &xh, &mut moved);
        matmul(&terms.s, &xr, (k, k, q), &mut curved);
        let own = self.atoms.iter().filter(|b| b.row == row);
        let atoms = own
            .map(|b| {
                (b, times(&self.white.n, &kernel(b, record, &terms)), self.spread(&self.white.n, &b.beta))
            })
            .collect();
        let third = terms.third(&self.u);
        Local { omega: record.omega, terms, third, xh, xr, spread, bent, moved, curved, atoms }
    }

    /// What a change ε of the record's values and v of its label (in contrasts) does with Θ held.
    fn add_change(&self, local: &Local<'_>, (epsilon, v): (&[f64], &[f64]), x: &mut [f64]) {
        let (k, q, white) = (self.fit.classes - 1, self.fit.coefficients(), &self.white);
        let (omega, share) = (local.omega, self.share * local.omega * local.omega);
        let z = predicted(self.fit, epsilon);
        let mut rho = times(&local.terms.s, &z);
        axpy(-1.0, v, &mut rho);
        let mut ds = vec![0.0; k * k];
        local.third.chunks_exact(k * k).zip(&z).for_each(|(t, z)| axpy(*z, t, &mut ds));
        let (eh, er) = (self.spread(&white.n, epsilon), self.spread(&white.r, epsilon));
        let product = |m: &[f64], rows: &[f64]| {
            let mut out = vec![0.0; k * q];
            matmul(m, rows, (k, k, q), &mut out);
            out
        };
        // N dH W⁻¹ = ω(X(dŜ Xᵣᵀ + Ŝ Eᵣᵀ) + E Ŝ Xᵣᵀ), and likewise of A.
        let (bent, turned) = (product(&ds, &local.bent), product(&ds, &local.xr));
        let flexed = product(&local.terms.s, &er);
        let masked = |at: usize, value: f64| value * white.m[at % q];
        let mut right: Vec<f64> =
            (0..k * q).map(|at| share * bent[at] - omega * masked(at, turned[at] + flexed[at])).collect();
        right.extend((0..k * q).map(|at| share * local.moved[at] - omega * masked(at, local.curved[at])));
        let left = [local.xh.as_slice(), &eh].concat();
        let mut half = vec![0.0; q * q];
        matmul_transposed(&left, &right, (q, 2 * k, q), &mut half);
        local.spread.chunks_exact(q * q).zip(&rho).for_each(|(f, rho)| axpy(share * rho, f, &mut half));
        for (bound, kernel, betas) in &local.atoms {
            let (bent, sloped) = (times(&ds, &bound.predicted), times(&local.terms.s, &bound.predicted));
            let mut moved = vec![0.0; q];
            for a in 0..k {
                axpy(omega * rho[a], &betas[a * q..(a + 1) * q], &mut moved);
                axpy(omega * bent[a], &local.xh[a * q..(a + 1) * q], &mut moved);
                axpy(omega * (sloped[a] - bound.upsilon[a]), &eh[a * q..(a + 1) * q], &mut moved);
            }
            half.chunks_exact_mut(q).zip(kernel).for_each(|(row, g)| axpy(bound.weight * g, &moved, row));
        }
        let mut cost = vec![0.0; q * q];
        if self.cost_share > 0.0 {
            let left = [local.xr.as_slice(), &er].concat();
            let mut right: Vec<f64> = turned.iter().map(|v| 0.5 * self.cost_share * v).collect();
            right.extend(local.curved.iter().map(|v| self.cost_share * v));
            matmul_transposed(&left, &right, (q, 2 * k, q), &mut cost);
        }
        for i in 0..q {
            for j in 0..=i {
                let (at, mirrored) = (i * q + j, j * q + i);
                let cost = (cost[at] + cost[mirrored]) * white.raised[at];
                x[at] += (half[at] + half[mirrored] - cost) * white.over[at];
            }
        }
    }
}

/// `g` of an atom.
fn kernel(bound: &Bound, record: &Record, terms: &Terms) -> Vec<f64> {
    let (p, sloped) = (record.x.len(), times(&terms.s, &bound.predicted));
    let mut out = vec![0.0; terms.rho.len() * p];
    for (a, part) in out.chunks_exact_mut(p).enumerate() {
        axpy(record.omega * terms.rho[a], &bound.beta, part);
        axpy(record.omega * (sloped[a] - bound.upsilon[a]), &record.x, part);
    }
    out
}

impl Derivative for Contrasts<'_> {
    type Local<'l>
        = Local<'l>
    where
        Self: 'l;

    fn size(&self) -> usize {
        self.fit.coefficients()
    }

    fn through(&self) -> &Through {
        &self.through
    }

    fn jacobian(&self, record: &Record, group: &Group) -> Vec<f64> {
        jacobian(self.fit.into(), self.inverse, group, record)
    }

    fn local<'l>(&'l self, row: u64, record: &'l Record) -> Local<'l> {
        self.prepared(row, record)
    }

    fn add_direct(&self, local: &Local<'_>, group: &Group, k: usize, x: &mut [f64]) {
        let mut v = vec![0.0; self.fit.classes - 1];
        if k >= group.count {
            v[k - group.count] = group.label;
        }
        self.add_change(local, (&group.values(k), &v), x);
    }
}
