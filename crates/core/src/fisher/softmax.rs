//! Fisher information loss of softmax regression.
//!
//! In the coordinates Θ of [`crate::glm::softmax`] (classes without their common direction; noise `N(0, σ²I)` on all K × p
//! coefficients is `N(0, σ²I)` on Θ) record i moves the minimiser by
//!
//! ```text
//! Jᵢ = −ωᵢ H⁻¹( ρ̂ᵢ ⊗ I + ŜᵢΘ ⊗ xᵢ ),   and its label by  ωᵢ H⁻¹(I ⊗ xᵢ)
//! ```
//!
//! the label one-hot, its changes restricted to sums of zero. `JᵢᵀJᵢ` is only d × d. With `G = H⁻²` in blocks `G_ab`,
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

use super::lanczos::Lanczos;
use super::noise::Noise;
use super::{Directions, Release};
use crate::glm::softmax::{SoftmaxFit, contrasts, pairs, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{
    Cholesky, axpy, dot, gram_add_lower, largest_eigenvalue, matmul, matmul_by_transposed, matmul_parallel,
    matmul_transposed, mirror_lower,
};
use crate::rows::Block;
use crate::{Error, Result};

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
    /// η of the label alone.
    pub label_eta: Vec<f64>,
    /// η of every attribute, records × attributes.
    pub attribute_eta: Vec<f64>,
    scratch: Scratch,
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    pi: Vec<f64>,
    rho: Vec<f64>,
    rho_pairs: Vec<f64>,
    /// `ŜΘ` of each record, (K−1) × d.
    s: Vec<f64>,
    packed: Vec<f64>,
    e: Vec<f64>,
    gram: Vec<f64>,
    product: Vec<f64>,
    lanczos: Lanczos,
}

/// Sums over a set of records from which its leakage follows; mergeable, O(q²) numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxSet {
    /// The sum between `H⁻¹` and `H⁻¹`, q × q, both triangles.
    inner: Vec<f64>,
    records: u64,
}

impl SoftmaxSet {
    /// Records added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds another set.
    pub fn merge(&mut self, other: &Self) {
        self.records += other.records;
        axpy(1.0, &other.inner, &mut self.inner);
    }
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
        Self::prepared(fit, attributes, release, Some(noise))
    }

    fn prepared(
        fit: &SoftmaxFit,
        attributes: &[Directions],
        release: Release,
        noise: Option<&Noise>,
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
        let (n, g) = {
            let (mut n, mut g) = (inverse, vec![0.0; q * q]);
            if let Some(noise) = noise {
                let mut white = vec![0.0; q * q];
                matmul_parallel(noise.whitener(), &n, (q, q, q), &mut white);
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
        })
    }

    /// The model that was prepared.
    pub fn fit(&self) -> &SoftmaxFit {
        &self.fit
    }

    /// Data columns d.
    pub fn data_width(&self) -> usize {
        self.fit.penalty.data_width(self.fit.width)
    }

    fn gain(&self) -> f64 {
        f64::from(self.release.releases).sqrt() / self.release.sigma
    }

    /// Leakage of every record of a block.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where an eigenvalue cannot be had: numbers that are not finite.
    pub fn records(&self, block: &Block, out: &mut SoftmaxRecords) -> Result<()> {
        for buffer in [&mut out.eta, &mut out.dfil, &mut out.loss, &mut out.label_eta, &mut out.attribute_eta]
        {
            buffer.clear();
        }
        for first in (0..block.len()).step_by(TOGETHER) {
            self.some(block, first..(first + TOGETHER).min(block.len()), out)?;
        }
        Ok(())
    }

    /// π, ρ̂ and ŜΘ of some rows.
    fn terms(
        &self,
        block: &Block,
        rows: std::ops::Range<usize>,
        scratch: &mut Scratch,
        mut loss: impl FnMut(f64),
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
            loss(softmax(pi) - own);
            scratch.rho.extend(reduced_residual(pi, class, &self.u));
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

    fn some(&self, block: &Block, rows: std::ops::Range<usize>, out: &mut SoftmaxRecords) -> Result<()> {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let (d, n) = (self.data_width(), rows.len());
        let x = &block.x[rows.start * p..rows.end * p];
        let SoftmaxRecords { eta, dfil, loss, label_eta, attribute_eta, scratch } = out;
        self.terms(block, rows.clone(), scratch, |v| loss.push(v));
        // Σ ρ̂_aρ̂_b G_ab of every record, and E.
        let (pair_count, triangle) = (k * (k + 1) / 2, d * (d + 1) / 2);
        scratch.rho_pairs.clear();
        for rho in scratch.rho.chunks_exact(k) {
            scratch.rho_pairs.extend(pairs(k).map(|(a, b)| rho[a] * rho[b]));
        }
        scratch.packed.resize(n * triangle, 0.0);
        matmul(&scratch.rho_pairs, &self.packed, (n, pair_count, triangle), &mut scratch.packed);
        scratch.e.resize(n * k * q, 0.0);
        matmul(x, &self.right, (n, p, k * q), &mut scratch.e);

        let with_label = self.release.label_secret;
        let m = d + if with_label { k } else { 0 };
        let gain = self.gain();
        let (mut c, mut quadratic) = (vec![0.0; k * d], vec![0.0; k * k]);
        for i in 0..n {
            let (x, e) = (&x[i * p..(i + 1) * p], &scratch.e[i * k * q..(i + 1) * k * q]);
            let (rho, s) = (&scratch.rho[i * k..(i + 1) * k], &scratch.s[i * k * d..(i + 1) * k * d]);
            for l in 0..k {
                let c_l = &mut c[l * d..(l + 1) * d];
                c_l.fill(0.0);
                for a in 0..k {
                    let e_al = &e[l * q + a * p..][..p];
                    axpy(rho[a], &e_al[..d], c_l);
                    quadratic[a * k + l] = dot(x, e_al);
                }
            }
            gram_of_record(
                &scratch.packed[i * triangle..],
                (&c, s, &quadratic),
                (k, d, m),
                &mut scratch.gram,
                &mut scratch.product,
            );
            let omega = block.weight_of(rows.start + i) * gain;
            let gram = &scratch.gram;
            let trace: f64 = (0..m).map(|j| gram[j * m + j]).sum();
            eta.push(omega * scratch.lanczos.top(gram, m)?.sqrt());
            dfil.push(omega * omega * trace.max(0.0) / m.max(1) as f64);
            label_eta.push(omega * largest_eigenvalue(&quadratic, k)?.sqrt());
            for Sparse { entries, count } in &self.attributes {
                attribute_eta.push(omega * attribute_top(entries, *count, gram, m)?.sqrt());
            }
        }
        Ok(())
    }

    /// An empty set.
    pub fn set(&self) -> SoftmaxSet {
        let q = self.fit.coefficients();
        SoftmaxSet { inner: vec![0.0; q * q], records: 0 }
    }

    /// Adds records of a block to a set; `picked` names some of them, `None` takes all.
    ///
    /// Block (a, b) of the sum is `Σω²[ρ̂_aρ̂_b P + ρ̂_a ŝ_b xᵀ + ρ̂_b x ŝ_aᵀ + (ŝ_a·ŝ_b + [a = b, label secret]) xxᵀ]`.
    pub fn add_to_set(&self, block: &Block, picked: Option<&[usize]>, set: &mut SoftmaxSet) {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let (d, n) = (self.data_width(), block.len());
        let mut scratch = Scratch::default();
        self.terms(block, 0..n, &mut scratch, |_| ());
        let mut weight: Vec<f64> = vec![if picked.is_some() { 0.0 } else { 1.0 }; n];
        picked.iter().flat_map(|p| p.iter()).for_each(|&i| weight[i] = 1.0);
        (0..n).for_each(|i| weight[i] *= block.weight_of(i).powi(2));
        set.records += picked.map_or(n, <[usize]>::len) as u64;
        // Z[(b, j), (a, i)] = Σω² ŝ_bj ρ̂_a x_i
        let mut spread = Vec::with_capacity(n * q);
        for (i, weight) in weight.iter().enumerate() {
            for a in 0..k {
                let factor = weight * scratch.rho[i * k + a];
                spread.extend(block.row(i).iter().map(|x| factor * x));
            }
        }
        let mut z = vec![0.0; k * d * q];
        matmul_transposed(&scratch.s, &spread, (k * d, n, q), &mut z);
        let (mut gram, mut weighted, mut weights) = (vec![0.0; p * p], vec![], vec![0.0; n]);
        for (a, b) in pairs(k) {
            let mut rho2 = 0.0;
            for i in 0..n {
                let s = &scratch.s[i * k * d..(i + 1) * k * d];
                let label = if self.release.label_secret && a == b { 1.0 } else { 0.0 };
                weights[i] = weight[i] * (dot(&s[a * d..(a + 1) * d], &s[b * d..(b + 1) * d]) + label);
                rho2 += weight[i] * scratch.rho[i * k + a] * scratch.rho[i * k + b];
            }
            gram.fill(0.0);
            gram_add_lower(&block.x, Some(&weights), p, &mut weighted, &mut gram);
            mirror_lower(&mut gram, p);
            for i in 0..p {
                for j in 0..p {
                    let mut value = gram[i * p + j];
                    if i < d {
                        value += z[(b * d + i) * q + a * p + j] + if i == j { rho2 } else { 0.0 };
                    }
                    if j < d {
                        value += z[(a * d + j) * q + b * p + i];
                    }
                    set.inner[(a * p + i) * q + b * p + j] += value;
                    if a != b {
                        set.inner[(b * p + j) * q + a * p + i] += value;
                    }
                }
            }
        }
    }

    /// η of a set of records as a whole.
    pub fn set_eta(&self, set: &SoftmaxSet) -> Result<f64> {
        let q = self.fit.coefficients();
        let (mut half, mut out) = (vec![0.0; q * q], vec![0.0; q * q]);
        matmul_parallel(&self.n, &set.inner, (q, q, q), &mut half);
        matmul_by_transposed(&half, &self.n, (q, q, q), &mut out);
        mirror_lower(&mut out, q);
        Ok(self.gain() * largest_eigenvalue(&out, q)?.sqrt())
    }
}

/// `JᵀJ/ω²` of one record, m × m, the label's part last where m > d.
fn gram_of_record(
    packed: &[f64],
    (c, s, quadratic): (&[f64], &[f64], &[f64]),
    (k, d, m): (usize, usize, usize),
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
            let value = -(c[l * d + j] + qs[l * d + j]);
            gram[(d + l) * m + j] = value;
            gram[j * m + d + l] = value;
        }
        (0..k).for_each(|a| gram[(d + l) * m + d + a] = quadratic[a * k + l]);
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
