//! Sums over the rows that a change of Θ moves: of third order.
//!
//! With `Θ_cj` change `ρ̂_a` by `x_j Ŝ_ac`, `Ŝ` by `x_j T_c`, and the rows `ŝ_b` of `ŜΘ` by `x_j (T_cΘ)_b + Ŝ_bc e_j`. So blocks (a, b) of dH, dA
//! and of the four parts of dK are contractions of a vector of length p with `xxᵀ`, a row each of one product.

use super::Terms;
use crate::Result;
use crate::glm::softmax::{SoftmaxFit, contrasts, pairs};
use crate::linalg::{axpy, dot, matmul, matmul_transposed};
use crate::rows::{Block, Rows};

/// Rows whose products of pairs are formed together.
const TOGETHER: usize = 64;

/// Sums over the rows that a change of Θ moves.
pub(super) struct Sums {
    p: usize,
    k: usize,
    pub(super) n: u64,
    /// `Σω²ρ̂_aŜ_bc x` at (a, b, c), k³ × p.
    first: Vec<f64>,
    /// Rows of length p(p+1)/2, one a vector that `xxᵀ` is multiplied with, in the order of [`lefts`].
    cubes: Vec<f64>,
}

/// Vectors that `xxᵀ` is multiplied with for contrast c, in this order: three a pair `b ≤ a` (of H, A and the symmetric part of
/// K) and one for every (a, b) of the mixed part of K.
fn lefts(k: usize) -> usize {
    3 * k * (k + 1) / 2 + k * k
}

/// The change of H, of A (a sum, not a mean) and of K without its weight, for one coefficient.
pub(super) struct Change {
    pub(super) h: Vec<f64>,
    pub(super) a: Vec<f64>,
    pub(super) k: Vec<f64>,
}

impl Sums {
    fn new(p: usize, k: usize) -> Self {
        let cubes = vec![0.0; k * lefts(k) * p * (p * (p + 1) / 2)];
        Self { p, k, n: 0, first: vec![0.0; k * k * k * p], cubes }
    }

    pub(super) fn of(rows: &dyn Rows, fit: &SoftmaxFit, c: &[f64]) -> Result<Self> {
        let (p, k) = (fit.width, fit.classes - 1);
        let u = contrasts(fit.classes);
        let mut total = Self::new(p, k);
        rows.fold(
            || Self::new(p, k),
            |sums, block| {
                for first in (0..block.len()).step_by(TOGETHER) {
                    sums.add(fit, &u, c, block, first..(first + TOGETHER).min(block.len()));
                }
                Ok(())
            },
            |sums| {
                total.n += sums.n;
                axpy(1.0, &sums.first, &mut total.first);
                axpy(1.0, &sums.cubes, &mut total.cubes);
                Ok(())
            },
        )?;
        Ok(total)
    }

    fn add(&mut self, fit: &SoftmaxFit, u: &[f64], c: &[f64], block: &Block, rows: std::ops::Range<usize>) {
        let (p, k, n) = (self.p, self.k, rows.len());
        let width = p * (p + 1) / 2;
        let (mut pairs_of, mut all) =
            (Vec::with_capacity(n * width), Vec::with_capacity(n * k * lefts(k) * p));
        for i in rows {
            let (x, omega) = (block.row(i), block.weight_of(i));
            (0..p).for_each(|j| pairs_of.extend(x[..=j].iter().map(|v| v * x[j])));
            let terms = Terms::of(fit, u, x, block.y[i]);
            for (abc, row) in self.first.chunks_exact_mut(p).enumerate() {
                let (a, bc) = (abc / (k * k), abc % (k * k));
                axpy(omega * omega * terms.rho[a] * terms.s[bc], x, row);
            }
            vectors(fit, u, c, (x, omega), &terms, &mut all);
        }
        let count = k * lefts(k) * p;
        let mut part = vec![0.0; count * width];
        matmul_transposed(&all, &pairs_of, (count, n, width), &mut part);
        axpy(1.0, &part, &mut self.cubes);
        self.n += n as u64;
    }

    /// Entry (i, j) of the product of component l of a vector with `xxᵀ`.
    fn cube(&self, vector: usize, l: usize, i: usize, j: usize) -> f64 {
        let (high, low) = (i.max(j), i.min(j));
        self.cubes[(vector * self.p + l) * (self.p * (self.p + 1) / 2) + high * (high + 1) / 2 + low]
    }

    /// What a unit of `Θ_cj` changes; `bb` is C.
    pub(super) fn change(&self, bb: &[f64], c: usize, j: usize) -> Change {
        let (p, k) = (self.p, self.k);
        let (q, start, pair_count) = (k * p, c * lefts(k), k * (k + 1) / 2);
        let mut out = Change { h: vec![0.0; q * q], a: vec![0.0; q * q], k: vec![0.0; q * q] };
        let first = |a: usize, b: usize| &self.first[((a * k + b) * k + c) * p..][..p];
        for (at, (a, b)) in pairs(k).enumerate() {
            let (own, mirrored) = (first(a, b), first(b, a));
            let mixed = |a: usize, b: usize| start + 3 * pair_count + a * k + b;
            for ii in 0..p * p {
                let (i, l) = (ii / p, ii % p);
                let curved = self.cube(start + 3 * at + 2, j, i, l);
                let sloped = self.cube(mixed(a, b), i, j, l) + self.cube(mixed(b, a), l, j, i);
                let moved = bb[i * p + j] * own[l] + bb[l * p + j] * mirrored[i];
                let value = (own[j] + mirrored[j]) * bb[ii] + sloped + moved + curved;
                let (here, there) = ((a * p + i) * q + b * p + l, (b * p + l) * q + a * p + i);
                let (h, cost) = (self.cube(start + 3 * at, j, i, l), self.cube(start + 3 * at + 1, j, i, l));
                for at in [here, there] {
                    (out.h[at], out.a[at], out.k[at]) = (h, cost, value);
                }
            }
        }
        out
    }
}

/// The vectors of one record, see [`lefts`].
fn vectors(
    fit: &SoftmaxFit,
    u: &[f64],
    c: &[f64],
    (x, omega): (&[f64], f64),
    terms: &Terms,
    out: &mut Vec<f64>,
) {
    let (p, k, omega2) = (fit.width, fit.classes - 1, omega * omega);
    let third = terms.third(u);
    let slopes = terms.slopes(fit);
    let mut weighed = vec![0.0; k * p];
    matmul(&slopes, c, (k, p, p), &mut weighed);
    let (mut bent, mut bent_weighed) = (vec![0.0; k * p], vec![0.0; k * p]);
    for contrast in 0..k {
        let t = &third[contrast * k * k..(contrast + 1) * k * k];
        matmul(t, &fit.theta, (k, k, p), &mut bent);
        matmul(&bent, c, (k, p, p), &mut bent_weighed);
        let row = |a: usize| a * p..(a + 1) * p;
        for (a, b) in pairs(k) {
            out.extend(x.iter().map(|x| omega * t[a * k + b] * x));
            out.extend(x.iter().map(|x| t[a * k + b] * x));
            let (wa, wb) = (&weighed[row(a)], &weighed[row(b)]);
            let both = dot(&bent[row(a)], wb) + dot(&bent[row(b)], wa);
            let (sa, sb) = (terms.s[a * k + contrast], terms.s[b * k + contrast]);
            out.extend((0..p).map(|j| omega2 * (both * x[j] + sa * wb[j] + sb * wa[j])));
        }
        for a in 0..k {
            for b in 0..k {
                let (wb, tb) = (&weighed[row(b)], &bent_weighed[row(b)]);
                let s = terms.s[a * k + contrast];
                out.extend((0..p).map(|j| omega2 * (s * wb[j] + terms.rho[a] * tb[j])));
            }
        }
    }
}
