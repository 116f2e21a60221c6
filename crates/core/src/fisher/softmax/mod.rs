//! Fisher information loss of softmax regression.
//!
//! In the coordinates Θ of [`crate::glm::softmax`] (classes without their common direction; noise `N(0, σ²I)` on all K × p
//! coefficients is `N(0, σ²I)` on Θ) record i moves the minimiser by
//!
//! ```text
//! Jᵢ = −ωᵢ H⁻¹( ρ̂ᵢ ⊗ I + ŜᵢΘ ⊗ xᵢ ),   and its label by  ωᵢ H⁻¹(I ⊗ xᵢ)
//! ```
//!
//! the label one-hot, its changes restricted to sums of zero and measured by the switch from one class to another, whose
//! length is √2 there ([`SWITCH`]). `JᵢᵀJᵢ` is only d × d. With `G = H⁻²` in blocks `G_ab`,
//! `E_l = G(e_l ⊗ x)`, `c_l = Σ_a ρ̂_a (E_l)_a`, `Q_al = xᵀ(E_l)_a` and `ŝ` the rows of `ŜΘ`,
//!
//! ```text
//! JᵀJ/ω² = Σ_ab ρ̂_aρ̂_b G_ab + Σ_l (c_l ŝ_lᵀ + ŝ_l c_lᵀ) + Σ_al Q_al ŝ_a ŝ_lᵀ
//! ```
//!
//! so a block of records costs two products (pairs of residuals with the blocks of G, rows with G) and O(Kd²) each. No
//! Jacobian of size (K−1)p × d is formed. The largest eigenvalue comes from Lanczos, run until it stands.
//!
//! Two classes reproduce the logistic model: η there at noise `√2σ`, since its coefficients are `W₁ − W₀`.
//!
//! Columns that are scaled by their own data move the penalty too ([`super::scaling`]): `ρ̂_a I` becomes the diagonal matrix
//! `ρ̂_a I + diag(2λ Θ_aj (x_j − m_j))/ω`. That is still one d × d matrix a record, so it is counted exactly, always.

mod set;

pub use set::{AttributeSets, SoftmaxSet};

use super::lanczos::Lanczos;
use super::noise::Noise;
use super::{Directions, Release};
use crate::glm::softmax::{SoftmaxFit, contrasts, loss, pairs, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{
    Cholesky, axpy, condition, dot, largest_eigenvalue, matmul, matmul_by_transposed, matmul_parallel,
    matmul_transposed, mirror_lower, norm,
};
use crate::rows::Block;
use crate::units::Units;
use crate::{Error, Result};

/// Distance of two one-hot labels: what a label's η is measured by, as that of a label coded 0 or 1 is.
pub const SWITCH: f64 = std::f64::consts::SQRT_2;

/// Records whose products are formed together.
const TOGETHER: usize = 64;

/// Everything about a fitted softmax model that leakage needs, computed once.
#[derive(Debug, Clone)]
pub struct SoftmaxGeometry {
    fit: SoftmaxFit,
    release: Release,
    /// `N = WH⁻¹` (W the whitener of the noise), q × q.
    n: Vec<f64>,
    /// `G = NᵀN` as p × (K−1)q: row j holds `G[(l, j), ·]` of all l.
    right: Vec<f64>,
    /// Lower triangles of `G_aa` and `G_ab + G_ba`, d × d, one row a pair.
    packed: Vec<f64>,
    attributes: Vec<Sparse>,
    u: Vec<f64>,
    /// Condition number of H, and the columns of its smallest eigenvector that matter.
    condition: (f64, Vec<usize>),
    /// Mean of each data column that is scaled by its own data.
    own: Vec<Option<f64>>,
}

/// The directions of one attribute, of which most entries are zero.
#[derive(Debug, Clone)]
struct Sparse {
    /// Data column, direction, value.
    entries: Vec<(usize, usize, f64)>,
    count: usize,
}

/// Leakage of the records of one block, and the space to compute it in.
#[derive(Debug, Clone, Default)]
pub struct SoftmaxRecords {
    /// Fisher information loss η of each record.
    pub eta: Vec<f64>,
    /// dFIL, the mean information per dimension.
    pub dfil: Vec<f64>,
    /// Loss of each record.
    pub loss: Vec<f64>,
    /// Norm of the gradient of each record's loss by the K × p coefficients.
    pub gradient_norm: Vec<f64>,
    /// η of the label alone, by the switch between two classes.
    pub label_eta: Vec<f64>,
    /// η of every attribute, records × attributes.
    pub attribute_eta: Vec<f64>,
    /// Sum over the records of the information about each data column and, where it is secret, about each contrast of the
    /// label.
    pub information: Vec<f64>,
    scratch: Scratch,
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    pi: Vec<f64>,
    rho: Vec<f64>,
    /// The diagonal in the place of `ω ρ̂_a I`, (K−1) × d.
    diagonal: Vec<f64>,
    rho_pairs: Vec<f64>,
    /// `ŜΘ` of each record, (K−1) × d.
    s: Vec<f64>,
    packed: Vec<f64>,
    e: Vec<f64>,
    gram: Vec<f64>,
    product: Vec<f64>,
    lanczos: Lanczos,
}

impl SoftmaxGeometry {
    /// Prepares a model for isotropic noise; directions of attributes are p × m as for [`super::Geometry`].
    ///
    /// # Errors
    /// [`Error::Singular`] where H has no inverse; [`Error::OutOfRange`] or [`Error::Shape`] for nonsense.
    pub fn new(fit: &SoftmaxFit, attributes: &[Directions], release: Release) -> Result<Self> {
        Self::prepared(fit, attributes, release, None)
    }

    /// Prepares a model for noise of covariance `σ²Σ` on Θ.
    ///
    /// # Errors
    /// As for [`SoftmaxGeometry::new`].
    pub fn under(
        fit: &SoftmaxFit,
        attributes: &[Directions],
        release: Release,
        noise: &Noise,
    ) -> Result<Self> {
        if noise.len() != fit.coefficients() {
            let (found, expected) = (noise.len(), fit.coefficients());
            return Err(Error::Shape { what: "the noise", found, expected });
        }
        Self::prepared(fit, attributes, release, Some(noise.whitener()))
    }

    /// Prepares a model for noise that W makes white, q × q.
    pub(super) fn whitened(
        fit: &SoftmaxFit,
        attributes: &[Directions],
        release: Release,
        whitener: &[f64],
    ) -> Result<Self> {
        Self::prepared(fit, attributes, release, Some(whitener))
    }

    fn prepared(
        fit: &SoftmaxFit,
        attributes: &[Directions],
        release: Release,
        whitener: Option<&[f64]>,
    ) -> Result<Self> {
        let out_of_range = |what, value, expected| Err(Error::OutOfRange { what, value, expected });
        if !(release.sigma > 0.0 && release.sigma.is_finite()) {
            return out_of_range("sigma", release.sigma, "a positive number");
        }
        if release.releases == 0 {
            return out_of_range("releases", 0.0, "at least 1");
        }
        let (p, k, q) = (fit.width, fit.classes - 1, fit.coefficients());
        let d = fit.penalty.data_width(p);
        let inverse = Cholesky::new(&fit.hessian, q)?.inverse();
        let (number, weakest) = condition(&fit.hessian, &inverse, q)?;
        let largest = weakest.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let matters = |j: &usize| (0..k).any(|a| weakest[a * p + j].abs() >= 0.1 * largest);
        let columns: Vec<usize> = (0..p).filter(matters).collect();
        let (n, g) = {
            let (mut n, mut g) = (inverse, vec![0.0; q * q]);
            if let Some(whitener) = whitener {
                let mut white = vec![0.0; q * q];
                matmul_parallel(whitener, &n, (q, q, q), &mut white);
                n = white;
            }
            crate::linalg::matmul_transposed_parallel(&n, &n, (q, q, q), &mut g);
            mirror_lower(&mut g, q);
            (n, g)
        };
        let mut right = Vec::with_capacity(p * k * q);
        for j in 0..p {
            (0..k).for_each(|l| right.extend_from_slice(&g[(l * p + j) * q..][..q]));
        }
        let mut packed = Vec::with_capacity(k * (k + 1) / 2 * d * (d + 1) / 2);
        for (a, b) in pairs(k) {
            let at = |i: usize, j: usize| g[(a * p + i) * q + b * p + j];
            for i in 0..d {
                packed.extend((0..=i).map(|j| if a == b { at(i, j) } else { at(i, j) + at(j, i) }));
            }
        }
        let mut sparse = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let m = attribute.count;
            if attribute.basis.len() != p * m {
                let (found, expected) = (attribute.basis.len(), p * m);
                return Err(Error::Shape { what: "the directions of an attribute", found, expected });
            }
            let entries = attribute.basis.iter().enumerate().filter(|(_, v)| **v != 0.0);
            let data = entries.map(|(ij, v)| (ij / m, ij % m, *v)).filter(|(j, _, _)| *j < d);
            sparse.push(Sparse { entries: data.collect(), count: m });
        }
        Ok(Self {
            fit: fit.clone(),
            release,
            n,
            right,
            packed,
            attributes: sparse,
            u: contrasts(fit.classes),
            condition: (number, columns),
            own: vec![None; d],
        })
    }

    /// The model that was prepared.
    pub fn fit(&self) -> &SoftmaxFit {
        &self.fit
    }

    /// What is released, how often.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Condition number of H, and the columns that its weakest direction lies in.
    pub fn condition(&self) -> (f64, &[usize]) {
        (self.condition.0, &self.condition.1)
    }

    /// Number of attributes that were prepared.
    pub fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// Counts in [`SoftmaxGeometry::counted`] what records do to the scaling of their columns; the model must be in these units.
    ///
    /// # Errors
    /// [`Error::Shape`] for units of another number of columns.
    pub fn with_units(mut self, units: &Units) -> Result<Self> {
        if units.len() != self.data_width() {
            let (found, expected) = (units.len(), self.data_width());
            return Err(Error::Shape { what: "the units of columns", found, expected });
        }
        self.own = (0..units.len()).map(|j| units.is_own(j).then(|| units.offset(j))).collect();
        Ok(self)
    }

    /// Data columns d.
    pub fn data_width(&self) -> usize {
        self.fit.penalty.data_width(self.fit.width)
    }

    fn gain(&self) -> f64 {
        f64::from(self.release.releases).sqrt() / self.release.sigma
    }

    /// Leakage of every record of a block, the scaling of columns taken as given.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where an eigenvalue cannot be had: numbers that are not finite.
    pub fn records(&self, block: &Block, out: &mut SoftmaxRecords) -> Result<()> {
        self.all(block, false, out)
    }

    /// Leakage of every record of a block, with what it does to the scaling of its columns
    /// ([`SoftmaxGeometry::with_units`]): exact.
    ///
    /// # Errors
    /// As for [`SoftmaxGeometry::records`].
    pub fn counted(&self, block: &Block, out: &mut SoftmaxRecords) -> Result<()> {
        self.all(block, self.own.iter().any(Option::is_some) && self.fit.penalty.l2 > 0.0, out)
    }

    fn all(&self, block: &Block, count: bool, out: &mut SoftmaxRecords) -> Result<()> {
        if block.width != self.fit.width {
            let (found, expected) = (block.width, self.fit.width);
            return Err(Error::Shape { what: "a row", found, expected });
        }
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information, .. } =
            out;
        for buffer in [eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information] {
            buffer.clear();
        }
        for first in (0..block.len()).step_by(TOGETHER) {
            self.some(block, first..(first + TOGETHER).min(block.len()), count, out)?;
        }
        Ok(())
    }

    /// π, ρ̂ and ŜΘ of some rows.
    fn terms(
        &self,
        block: &Block,
        rows: std::ops::Range<usize>,
        scratch: &mut Scratch,
        mut note: impl FnMut(f64, f64),
    ) {
        let (p, classes) = (self.fit.width, self.fit.classes);
        let (k, d, n) = (classes - 1, self.data_width(), rows.len());
        scratch.pi.resize(n * classes, 0.0);
        matmul_by_transposed(
            &block.x[rows.start * p..rows.end * p],
            &self.fit.w,
            (n, p, classes),
            &mut scratch.pi,
        );
        scratch.rho.clear();
        scratch.s.clear();
        for (i, pi) in scratch.pi.chunks_exact_mut(classes).enumerate() {
            let class = (block.y[rows.start + i] as usize).min(k);
            let own = pi[class];
            let normaliser = softmax(pi);
            let first = scratch.rho.len();
            scratch.rho.extend(reduced_residual(pi, class, &self.u));
            note(
                loss(pi, class, normaliser - own),
                norm(&scratch.rho[first..]) * norm(block.row(rows.start + i)),
            );
            let curvature = reduced_curvature(pi, &self.u);
            for row in curvature.chunks_exact(k) {
                let first = scratch.s.len();
                scratch.s.resize(first + d, 0.0);
                for (c, theta) in row.iter().zip(self.fit.theta.chunks_exact(p)) {
                    axpy(*c, &theta[..d], &mut scratch.s[first..]);
                }
            }
        }
    }

    /// `ω ρ̂_a I` of a record as a diagonal, with `2λ Θ_aj (x_j − m_j)` of its columns where `count`.
    fn diagonal(&self, x: &[f64], rho: &[f64], count: bool, out: &mut [f64]) {
        let (p, d) = (self.fit.width, self.data_width());
        for ((row, rho), theta) in out.chunks_exact_mut(d).zip(rho).zip(self.fit.theta.chunks_exact(p)) {
            row.fill(*rho);
            for (j, mean) in self.own.iter().enumerate() {
                if let (true, Some(mean)) = (count, mean) {
                    row[j] += 2.0 * self.fit.penalty.l2 * theta[j] * (x[j] - mean);
                }
            }
        }
    }

    /// `Σ_ab diag(δ_a) G_ab diag(δ_b)` of every record, lower triangles.
    fn diagonal_terms(&self, rows: usize, count: bool, scratch: &mut Scratch) {
        let (p, k, q, d) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients(), self.data_width());
        let (pair_count, triangle) = (k * (k + 1) / 2, d * (d + 1) / 2);
        scratch.packed.resize(rows * triangle, 0.0);
        if !count {
            scratch.rho_pairs.clear();
            for rho in scratch.rho.chunks_exact(k) {
                scratch.rho_pairs.extend(pairs(k).map(|(a, b)| rho[a] * rho[b]));
            }
            matmul(&scratch.rho_pairs, &self.packed, (rows, pair_count, triangle), &mut scratch.packed);
            return;
        }
        for (delta, packed) in
            scratch.diagonal.chunks_exact(k * d).zip(scratch.packed.chunks_exact_mut(triangle.max(1)))
        {
            let mut next = packed.iter_mut();
            for i in 0..d {
                for (j, slot) in (0..=i).zip(&mut next) {
                    *slot = (0..k)
                        .map(|a| {
                            let row = &self.right[(i * k + a) * q..(i * k + a + 1) * q];
                            let inner: f64 = (0..k).map(|b| row[b * p + j] * delta[b * d + j]).sum();
                            delta[a * d + i] * inner
                        })
                        .sum();
                }
            }
        }
    }

    fn some(
        &self,
        block: &Block,
        rows: std::ops::Range<usize>,
        count: bool,
        out: &mut SoftmaxRecords,
    ) -> Result<()> {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let (d, n) = (self.data_width(), rows.len());
        let x = &block.x[rows.start * p..rows.end * p];
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information, scratch } =
            out;
        self.terms(block, rows.clone(), scratch, |l, g| {
            loss.push(l);
            gradient_norm.push(g);
        });
        // From here on ρ̂ and ŝ carry the weight.
        scratch.diagonal.resize(n * k * d, 0.0);
        for i in 0..n {
            let omega = block.weight_of(rows.start + i);
            scratch.rho[i * k..(i + 1) * k].iter_mut().for_each(|v| *v *= omega);
            scratch.s[i * k * d..(i + 1) * k * d].iter_mut().for_each(|v| *v *= omega);
            let (rho, diagonal) =
                (&scratch.rho[i * k..(i + 1) * k], &mut scratch.diagonal[i * k * d..(i + 1) * k * d]);
            if d > 0 {
                self.diagonal(&x[i * p..(i + 1) * p], rho, count, diagonal);
            }
        }
        self.diagonal_terms(n, count, scratch);
        scratch.e.resize(n * k * q, 0.0);
        matmul(x, &self.right, (n, p, k * q), &mut scratch.e);

        let m = d + if self.release.label_secret { k } else { 0 };
        let (gain, triangle) = (self.gain(), d * (d + 1) / 2);
        information.resize(m, 0.0);
        let (mut c, mut quadratic) = (vec![0.0; k * d], vec![0.0; k * k]);
        for i in 0..n {
            let (x, e) = (&x[i * p..(i + 1) * p], &scratch.e[i * k * q..(i + 1) * k * q]);
            let (delta, s) =
                (&scratch.diagonal[i * k * d..(i + 1) * k * d], &scratch.s[i * k * d..(i + 1) * k * d]);
            for l in 0..k {
                let c_l = &mut c[l * d..(l + 1) * d];
                c_l.fill(0.0);
                for a in 0..k {
                    let e_al = &e[l * q + a * p..][..p];
                    let terms = delta[a * d..(a + 1) * d].iter().zip(e_al);
                    c_l.iter_mut().zip(terms).for_each(|(c, (delta, e))| *c += delta * e);
                    quadratic[a * k + l] = dot(x, e_al);
                }
            }
            let switch = block.weight_of(rows.start + i) * SWITCH;
            gram_of_record(
                &scratch.packed[i * triangle..],
                (&c, s, &quadratic),
                (k, d, m, switch),
                &mut scratch.gram,
                &mut scratch.product,
            );
            let gram = &scratch.gram;
            let mut trace = 0.0;
            for j in 0..m {
                trace += gram[j * m + j];
                information[j] += gain * gain * gram[j * m + j].max(0.0);
            }
            eta.push(gain * scratch.lanczos.top(gram, m)?.sqrt());
            dfil.push(gain * gain * trace.max(0.0) / m.max(1) as f64);
            label_eta.push(gain * switch * scratch.lanczos.top(&quadratic, k)?.sqrt());
            for Sparse { entries, count } in &self.attributes {
                attribute_eta.push(gain * attribute_top(entries, *count, gram, m)?.sqrt());
            }
        }
        Ok(())
    }
}

/// `JᵀJ` of one record, m × m, the label's part last where m > d, each of its contrasts `switch` long.
fn gram_of_record(
    packed: &[f64],
    (c, s, quadratic): (&[f64], &[f64], &[f64]),
    (k, d, m, switch): (usize, usize, usize, f64),
    gram: &mut Vec<f64>,
    product: &mut Vec<f64>,
) {
    // half_l = c_l + ½Σ_a Q_al ŝ_a: the sum is Σ_l half_l ŝ_lᵀ + ŝ_l half_lᵀ.
    let mut half = c.to_vec();
    let mut qs = vec![0.0; k * d];
    matmul(quadratic, s, (k, k, d), &mut qs);
    axpy(0.5, &qs, &mut half);
    product.resize(d * d, 0.0);
    matmul_transposed(&half, s, (d, k, d), product);
    gram.clear();
    gram.resize(m * m, 0.0);
    let mut next = packed.iter();
    for i in 0..d {
        for (j, g) in (0..=i).zip(&mut next) {
            let value = g + product[i * d + j] + product[j * d + i];
            gram[i * m + j] = value;
            gram[j * m + i] = value;
        }
    }
    for l in 0..m - d {
        for j in 0..d {
            // The label enters the gradient with the other sign.
            let value = -switch * (c[l * d + j] + qs[l * d + j]);
            gram[(d + l) * m + j] = value;
            gram[j * m + d + l] = value;
        }
        (0..k).for_each(|a| gram[(d + l) * m + d + a] = switch * switch * quadratic[a * k + l]);
    }
}

/// `λ₁(BᵀJᵀJB)` for the directions of one attribute.
fn attribute_top(entries: &[(usize, usize, f64)], count: usize, gram: &[f64], m: usize) -> Result<f64> {
    if let ([(j, _, v)], 1) = (entries, count) {
        return Ok((v * v * gram[j * m + j]).max(0.0));
    }
    let mut small = vec![0.0; count * count];
    for (i, a, v) in entries {
        for (j, b, w) in entries {
            small[a * count + b] += v * w * gram[i * m + j];
        }
    }
    largest_eigenvalue(&small, count)
}
