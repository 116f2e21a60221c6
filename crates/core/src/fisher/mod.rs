//! Fisher information loss of a generalised linear model that is released with Gaussian noise.
//!
//! Record i moves the minimiser by `Jᵢ = −ωᵢ H⁻¹[aᵢ xᵢwᵀ + rᵢ I, cᵢ xᵢ]` per unit change of its values; with noise
//! `N(0, σ²I)` on the coefficients the Fisher information of the release about it is `JᵢᵀJᵢ/σ²`, and
//! `ηᵢ = ‖Jᵢ‖₂/σ` (Hannun §3–4). Nothing of size d × d is ever formed per record: in the eigenbasis Q of `H⁻¹PH⁻¹`
//! (P projects on the columns that are data, not on an intercept) each `JᵢJᵢᵀ` is diagonal plus rank two.

mod secular;
mod sets;

pub use sets::SetSums;

use crate::glm::{C, Fit};
use crate::linalg::{Cholesky, condition, dot, largest_eigenvalue, matmul, matmul_transposed, norm};
use crate::linalg::{symmetric_eigen, times};
use crate::rows::Block;
use crate::{Error, Result};
use secular::{Problem, top_eigenvalues};

/// Directions in the space of model columns that belong to one attribute: `basis` is p × m, row-major.
///
/// A number is one unit vector; a category the unit vectors of its indicators, or (indicators that sum to one) an
/// orthonormal basis of the changes that keep the sum; a pixel behind principal components its image under them.
#[derive(Debug, Clone, PartialEq)]
pub struct Directions {
    /// p × m, row-major.
    pub basis: Vec<f64>,
    /// Number of directions m.
    pub count: usize,
}

impl Directions {
    /// The unit vectors of the given columns out of p.
    pub fn columns(columns: std::ops::Range<usize>, p: usize) -> Self {
        let count = columns.len();
        let mut basis = vec![0.0; p * count];
        for (k, j) in columns.enumerate() {
            basis[j * count + k] = 1.0;
        }
        Self { basis, count }
    }
}

/// What is released and what is secret.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Release {
    /// Standard deviation σ of the noise on every coefficient.
    pub sigma: f64,
    /// Independent releases of the same model: their information adds up.
    pub releases: u32,
    /// Whether the label is part of the record's secret.
    pub label_secret: bool,
}

impl Release {
    /// `√K/σ`: what a norm of J is multiplied with to give η.
    fn gain(self) -> f64 {
        f64::from(self.releases).sqrt() / self.sigma
    }
}

/// One attribute, prepared: the eigenbasis of `BᵀH⁻²B` and what each record needs to be projected on.
#[derive(Debug, Clone)]
struct Prepared {
    /// Eigenvalues of `BᵀH⁻²B`, largest first.
    gamma: Vec<f64>,
    /// `QᵀBᵀw`.
    w: Vec<f64>,
    /// First of its m columns in the product `X · H⁻²BQ`.
    offset: usize,
    /// `H⁻¹BQ`, p × m.
    hb: Vec<f64>,
}

/// What a record needs of an attribute with one direction, close together in memory.
#[derive(Debug, Clone, Copy)]
struct Single {
    /// Its place among the attributes.
    index: usize,
    offset: usize,
    w: f64,
    gamma: f64,
}

/// Everything about a fitted model that leakage needs, computed once: O(p²) numbers.
#[derive(Debug, Clone)]
pub struct Geometry {
    fit: Fit,
    release: Release,
    /// Coefficients with the intercept's set to zero: `w_S`.
    w_data: Vec<f64>,
    w_data_squared: f64,
    inverse: Vec<f64>,
    condition: f64,
    weakest: Vec<f64>,
    /// Poles g, largest first, and `T = H⁻¹Q`.
    g: Vec<f64>,
    t: Vec<f64>,
    u: Vec<f64>,
    g_sum: f64,
    attributes: Vec<Prepared>,
    singles: Vec<Single>,
    /// `H⁻²BQ` of all attributes side by side, p × Σm.
    projections: Vec<f64>,
    projections_width: usize,
}

/// Leakage of the records of one block, and the space to compute it in; reused from block to block.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Fisher information loss η of each record.
    pub eta: Vec<f64>,
    /// dFIL, the mean information per dimension of each record.
    pub dfil: Vec<f64>,
    /// Loss of each record.
    pub loss: Vec<f64>,
    /// Norm of the gradient of each record's loss.
    pub gradient_norm: Vec<f64>,
    /// η of every attribute, records × attributes.
    pub attribute_eta: Vec<f64>,
    omega: Vec<f64>,
    r: Vec<f64>,
    a: Vec<f64>,
    h2: Vec<f64>,
    v: Vec<f64>,
    projected: Vec<f64>,
}

impl Geometry {
    /// Prepares a model for `release`; `attributes` are reported in the order given.
    ///
    /// # Errors
    /// [`Error::Singular`] where H has no inverse; [`Error::OutOfRange`] for a σ that is not positive.
    pub fn new(fit: &Fit, attributes: &[Directions], release: Release) -> Result<Self> {
        if !(release.sigma > 0.0 && release.sigma.is_finite()) {
            return Err(Error::OutOfRange {
                what: "sigma",
                value: release.sigma,
                expected: "a positive number",
            });
        }
        if release.releases == 0 {
            return Err(Error::OutOfRange { what: "releases", value: 0.0, expected: "at least 1" });
        }
        let p = fit.w.len();
        let d = fit.penalty.data_width(p);
        let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
        let (condition, weakest) = condition(&fit.hessian, &inverse, p)?;
        let mut w_data = fit.w.clone();
        w_data[d..].fill(0.0);

        // H⁻¹PH⁻¹ = (PH⁻¹)ᵀ(PH⁻¹): H⁻¹ is symmetric, so PH⁻¹ is its first d rows.
        let mut sandwich = vec![0.0; p * p];
        let data_rows = &inverse[..d * p];
        matmul_transposed(data_rows, data_rows, (p, d, p), &mut sandwich);
        let (mut g, q) = symmetric_eigen(&sandwich, p)?;
        g.iter_mut().for_each(|v| *v = v.max(0.0));
        let mut t = vec![0.0; p * p];
        matmul(&inverse, &q, (p, p, p), &mut t);
        let mut u = vec![0.0; p];
        matmul_transposed(&t, &w_data, (p, p, 1), &mut u);

        let (attributes, projections, projections_width) = prepare(&inverse, &fit.w, attributes, p)?;
        let single = |(index, a): (usize, &Prepared)| {
            (a.gamma.len() == 1).then(|| Single { index, offset: a.offset, w: a.w[0], gamma: a.gamma[0] })
        };
        let singles = attributes.iter().enumerate().filter_map(single).collect();
        Ok(Self {
            fit: fit.clone(),
            release,
            w_data_squared: dot(&w_data, &w_data),
            w_data,
            condition,
            weakest,
            g_sum: g.iter().sum(),
            g,
            t,
            u,
            inverse,
            attributes,
            singles,
            projections,
            projections_width,
        })
    }

    /// Condition number of the Hessian, to about 1%.
    pub fn condition(&self) -> f64 {
        self.condition
    }

    /// Columns that make the condition number large: those of the direction that the data determine least.
    pub fn weakest_columns(&self) -> Vec<usize> {
        let largest = self.weakest.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        (0..self.weakest.len()).filter(|&j| self.weakest[j].abs() >= 0.1 * largest).collect()
    }

    /// Data columns d.
    pub fn data_width(&self) -> usize {
        self.fit.penalty.data_width(self.fit.w.len())
    }

    /// The model that was prepared.
    pub fn fit(&self) -> &Fit {
        &self.fit
    }

    /// What is released.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Number of attributes.
    pub fn attribute_count(&self) -> usize {
        self.attributes.len()
    }

    /// Leakage of every record of a block: one product `X·T`, one `X·H⁻²BQ`, and O(d) a record.
    pub fn records(&self, block: &Block, out: &mut Records) {
        let (n, p) = (block.len(), block.width);
        self.terms(block, out);
        out.v.resize(n * p, 0.0);
        matmul(&block.x, &self.t, (n, p, p), &mut out.v);
        self.whole_records(block, out);
        out.projected.resize(n * self.projections_width, 0.0);
        matmul(&block.x, &self.projections, (n, p, self.projections_width), &mut out.projected);
        self.attributes_of_records(block, out);
    }

    /// η alone of every record of a block: one product.
    pub fn eta(&self, block: &Block, out: &mut Records) {
        let (n, p) = (block.len(), block.width);
        self.terms(block, out);
        out.v.resize(n * p, 0.0);
        matmul(&block.x, &self.t, (n, p, p), &mut out.v);
        self.whole_records(block, out);
    }

    /// Derivatives, loss and gradient norm.
    fn terms(&self, block: &Block, out: &mut Records) {
        for buffer in [&mut out.omega, &mut out.r, &mut out.a, &mut out.loss, &mut out.gradient_norm] {
            buffer.clear();
            buffer.reserve(block.len());
        }
        for i in 0..block.len() {
            let x = block.row(i);
            let t = self.fit.family.terms(dot(x, &self.fit.w), block.y[i]);
            out.omega.push(block.weight_of(i));
            out.r.push(t.r);
            out.a.push(t.a);
            out.loss.push(t.loss);
            out.gradient_norm.push(t.r.abs() * norm(x));
        }
    }

    fn c2(&self) -> f64 {
        if self.release.label_secret { C * C } else { 0.0 }
    }

    fn whole_records(&self, block: &Block, out: &mut Records) {
        let (n, p, d) = (block.len(), block.width, self.data_width());
        let (c2, gain) = (self.c2(), self.release.gain());
        let dimensions = (d + usize::from(self.release.label_secret)).max(1) as f64;
        let (v, r, a, omega) = (&out.v, &out.r, &out.a, &out.omega);
        let (eta, dfil, h2) = (&mut out.eta, &mut out.dfil, &mut out.h2);
        for buffer in [&mut *eta, &mut *dfil, &mut *h2] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        let problem = |i: usize| Problem {
            r2: r[i] * r[i],
            alpha: a[i] * a[i] * self.w_data_squared + c2,
            beta: a[i] * r[i],
            v: &v[i * p..(i + 1) * p],
            u: &self.u,
        };
        top_eigenvalues(&self.g, n, problem, |i, top| eta[i] = top.max(0.0));
        for i in 0..n {
            let Problem { r2, alpha, beta, v, u } = problem(i);
            h2[i] = dot(v, v);
            let mut trace = r2 * self.g_sum + 2.0 * beta * dot(v, u) + alpha * h2[i];
            // ‖u‖² ≤ g₁‖w_S‖², so these two bound the third part, 2β‖v‖‖u‖, as well.
            if eta[i] < CANCELLED * (r2 * self.g.first().copied().unwrap_or(0.0) + alpha * h2[i]) {
                let data_columns: Vec<f64> =
                    self.inverse.chunks_exact(p).flat_map(|row| &row[..d]).copied().collect();
                let parts = (a[i], r[i], c2.sqrt());
                let careful = self.carefully(parts, &self.w_data[..d], &data_columns, block.row(i));
                (eta[i], trace) = careful.unwrap_or((eta[i], trace));
            }
            eta[i] = omega[i] * gain * eta[i].sqrt();
            dfil[i] = (omega[i] * gain).powi(2) * trace.max(0.0) / dimensions;
        }
    }

    fn attributes_of_records(&self, block: &Block, out: &mut Records) {
        let (n, width, count) = (block.len(), self.projections_width, self.attributes.len());
        let gain = self.release.gain();
        let Records { r, a, omega, h2, projected, attribute_eta, .. } = out;
        attribute_eta.clear();
        attribute_eta.resize(n * count, 0.0);
        // Records outside, attributes inside: both tables lie in memory by records.
        for i in 0..n {
            let of_record = &projected[i * width..(i + 1) * width];
            let etas = &mut attribute_eta[i * count..(i + 1) * count];
            let (ai, ri, scale) = (a[i], r[i], omega[i] * gain);
            for single in &self.singles {
                let aw = ai * single.w;
                let sum = aw * aw * h2[i] + ri * ri * single.gamma;
                let square = sum + 2.0 * aw * ri * of_record[single.offset];
                let square = if square > CANCELLED * sum {
                    square
                } else {
                    self.one_direction_carefully(aw, ri, &self.attributes[single.index], block.row(i))
                };
                etas[single.index] = scale * square.sqrt();
            }
        }
        for (k, attribute) in self.attributes.iter().enumerate().filter(|(_, a)| a.gamma.len() != 1) {
            let m = attribute.gamma.len();
            let problem = |i: usize| Problem {
                r2: r[i] * r[i],
                alpha: a[i] * a[i] * h2[i],
                beta: a[i] * r[i],
                v: &attribute.w,
                u: &projected[i * width + attribute.offset..][..m],
            };
            let w2 = dot(&attribute.w, &attribute.w);
            top_eigenvalues(&attribute.gamma, n, problem, |i, top| {
                let Problem { r2, alpha, .. } = problem(i);
                let size = r2 * attribute.gamma.first().copied().unwrap_or(0.0) + alpha * w2;
                let careful = (top < CANCELLED * size)
                    .then(|| self.carefully((a[i], r[i], 0.0), &attribute.w, &attribute.hb, block.row(i)))
                    .flatten();
                let top = careful.map_or(top.max(0.0), |(top, _)| top);
                attribute_eta[i * count + k] = omega[i] * gain * top.sqrt();
            });
        }
    }

    /// `‖a w H⁻¹x + r H⁻¹b‖²` as a norm, for the rare record where the three terms cancel.
    fn one_direction_carefully(&self, aw: f64, r: f64, attribute: &Prepared, x: &[f64]) -> f64 {
        let h = times(&self.inverse, x);
        h.iter().zip(&attribute.hb).map(|(h, b)| (aw * h + r * b).powi(2)).sum()
    }

    /// Square of the spectral and of the Frobenius norm of `J = [a H⁻¹x wᵀ + r H⁻¹B, c H⁻¹x]`, formed before
    /// it is squared: for the rare record where its parts cancel (one column and no intercept, `a x w ≈ −r`;
    /// or H far from a multiple of the identity), and the square of what is left drowns in the rounding of
    /// theirs. `hb` is p × m.
    fn carefully(&self, (a, r, c): (f64, f64, f64), w: &[f64], hb: &[f64], x: &[f64]) -> Option<(f64, f64)> {
        let (h, m) = (times(&self.inverse, x), w.len());
        if m == 0 {
            return None;
        }
        let mut jacobian = Vec::with_capacity(x.len() * (m + 1));
        for (h, hb) in h.iter().zip(hb.chunks_exact(m)) {
            jacobian.extend(hb.iter().zip(w).map(|(b, w)| a * h * w + r * b));
            jacobian.push(c * h);
        }
        let mut gram = vec![0.0; (m + 1) * (m + 1)];
        matmul_transposed(&jacobian, &jacobian, (m + 1, x.len(), m + 1), &mut gram);
        Some((largest_eigenvalue(&gram, m + 1).ok()?, dot(&jacobian, &jacobian)))
    }
}

/// Share of the parts of a sum of squares that may be left before it is computed again without cancellation:
/// a rounding of the parts is then 2ε/1e-3 = 4e-13 of the square and half as much of η.
const CANCELLED: f64 = 1e-3;

fn prepare(
    inverse: &[f64],
    w: &[f64],
    attributes: &[Directions],
    p: usize,
) -> Result<(Vec<Prepared>, Vec<f64>, usize)> {
    let width: usize = attributes.iter().map(|a| a.count).sum();
    let mut projections = vec![0.0; p * width];
    let mut prepared = Vec::with_capacity(attributes.len());
    let mut offset = 0;
    // H⁻¹ and H⁻² times all directions at once; H⁻² itself is never needed.
    let mut all = vec![0.0; p * width];
    for attribute in attributes {
        let m = attribute.count;
        if attribute.basis.len() != p * m {
            let (found, expected) = (attribute.basis.len(), p * m);
            return Err(Error::Shape { what: "the directions of an attribute", found, expected });
        }
        for j in 0..p {
            all[j * width + offset..][..m].copy_from_slice(&attribute.basis[j * m..(j + 1) * m]);
        }
        offset += m;
    }
    let mut h_all = vec![0.0; p * width];
    matmul(inverse, &all, (p, p, width), &mut h_all);
    let mut h2_all = vec![0.0; p * width];
    matmul(inverse, &h_all, (p, p, width), &mut h2_all);
    offset = 0;
    for attribute in attributes {
        let m = attribute.count;
        let cut = |from: &[f64]| -> Vec<f64> {
            (0..p).flat_map(|j| from[j * width + offset..][..m].iter().copied()).collect()
        };
        let (hb, h2b) = (cut(&h_all), cut(&h2_all));
        let mut inner = vec![0.0; m * m];
        matmul_transposed(&hb, &hb, (m, p, m), &mut inner);
        let (mut gamma, q) = symmetric_eigen(&inner, m)?;
        gamma.iter_mut().for_each(|v| *v = v.max(0.0));
        let mut bw = vec![0.0; m];
        matmul_transposed(&attribute.basis, w, (m, p, 1), &mut bw);
        let mut rotated_w = vec![0.0; m];
        matmul_transposed(&q, &bw, (m, m, 1), &mut rotated_w);
        let mut rotated = vec![0.0; p * m];
        matmul(&h2b, &q, (p, m, m), &mut rotated);
        for j in 0..p {
            projections[j * width + offset..][..m].copy_from_slice(&rotated[j * m..(j + 1) * m]);
        }
        let mut rotated_hb = vec![0.0; p * m];
        matmul(&hb, &q, (p, m, m), &mut rotated_hb);
        prepared.push(Prepared { gamma, w: rotated_w, offset, hb: rotated_hb });
        offset += m;
    }
    Ok((prepared, projections, width))
}
