//! A shape where its noise is white and A diagonal: `W⁻ᵀAW⁻¹ = diag(α) = WMWᵀ`, in which `ΣAΣ = M` is solved entry by entry.

use super::generate::{Dual, Generator};
use super::weights::Spectrum;
use crate::Result;
use crate::linalg::{matmul, matmul_by_transposed, matmul_transposed};

/// The basis, and what changes of A and M are divided by there.
pub(super) struct White {
    /// Free coefficients.
    pub(super) q: usize,
    /// `N = WH⁻¹` and `R = W⁻ᵀ`.
    pub(super) n: Vec<f64>,
    pub(super) r: Vec<f64>,
    /// The diagonal of `WMWᵀ` without the floor δ that was added to M as `δA⁻¹`.
    pub(super) m: Vec<f64>,
    /// `1/(αᵢ + αⱼ)` and what dA is multiplied with, `(1 + δ/αᵢαⱼ)`.
    pub(super) over: Vec<f64>,
    pub(super) raised: Vec<f64>,
}

impl White {
    pub(super) fn new(generator: &Generator<'_>, dual: &Dual) -> Result<Self> {
        let (q, spectrum) = (generator.p(), generator.spectrum_of(dual)?);
        let (whitener, r) = (spectrum.whitener(&generator.lower), unwhitener(&spectrum, &generator.lower));
        let mut n = vec![0.0; q * q];
        matmul(&whitener, &generator.inverse, (q, q, q), &mut n);
        let alpha: Vec<f64> = spectrum.mu.iter().map(|mu| mu.sqrt()).collect();
        let floor = spectrum.floor;
        Ok(Self {
            q,
            n,
            r,
            m: alpha.iter().map(|a| a - floor / a).collect(),
            over: pairwise(&alpha, |a, b| 1.0 / (a + b)),
            raised: pairwise(&alpha, |a, b| 1.0 + floor / (a * b)),
        })
    }

    /// `X` from `dH`, `dA`, `dK` as matrices.
    pub(super) fn solved(&self, dh: &[f64], da: &[f64], dk: &[f64]) -> Vec<f64> {
        let q = self.q;
        let transposed: Vec<f64> = (0..q * q).map(|ij| self.r[ij % q * q + ij / q]).collect();
        // N dH W⁻¹ · WMWᵀ
        let (mut half, mut moved) = (vec![0.0; q * q], vec![0.0; q * q]);
        matmul(&self.n, dh, (q, q, q), &mut half);
        matmul(&half, &transposed, (q, q, q), &mut moved);
        let (k, a) = (sandwich(&self.n, dk, q), sandwich(&self.r, da, q));
        let mut x = vec![0.0; q * q];
        for i in 0..q {
            for j in 0..q {
                let ij = i * q + j;
                let dm = k[ij] - moved[ij] * self.m[j] - moved[j * q + i] * self.m[i];
                x[ij] = (dm - a[ij] * self.raised[ij]) * self.over[ij];
            }
        }
        x
    }
}

/// A function of every pair.
fn pairwise(values: &[f64], of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    values.iter().flat_map(|a| values.iter().map(|b| of(*a, *b)).collect::<Vec<_>>()).collect()
}

/// `out += c(uvᵀ + vuᵀ)`.
pub(super) fn add_pair(out: &mut [f64], c: f64, u: &[f64], v: &[f64]) {
    let p = u.len();
    for i in 0..p {
        for j in 0..p {
            out[i * p + j] += c * (u[i] * v[j] + v[i] * u[j]);
        }
    }
}

/// `N m Nᵀ`.
pub(super) fn sandwich(n: &[f64], m: &[f64], p: usize) -> Vec<f64> {
    let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
    matmul(n, m, (p, p, p), &mut half);
    matmul_by_transposed(&half, n, (p, p, p), &mut out);
    out
}

/// `R = W⁻ᵀ = diag(μ^¼) VᵀL⁻¹`.
fn unwhitener(spectrum: &Spectrum, lower: &[f64]) -> Vec<f64> {
    let p = spectrum.mu.len();
    let inverse = super::gaussian::triangular_inverse(lower, p);
    let mut out = vec![0.0; p * p];
    matmul_transposed(&spectrum.v, &inverse, (p, p, p), &mut out);
    for (row, mu) in out.chunks_exact_mut(p.max(1)).zip(&spectrum.mu) {
        row.iter_mut().for_each(|v| *v *= mu.sqrt().sqrt());
    }
    out
}
