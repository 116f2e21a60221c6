//! Fisher information loss of a generalised linear model that is released with Gaussian noise.
//!
//! Record i moves the minimiser by `Jᵢ = −ωᵢ H⁻¹[aᵢ xᵢwᵀ + rᵢ I, cᵢ xᵢ]` per unit change of its values; with noise
//! `N(0, σ²I)` on the coefficients the Fisher information of the release about it is `JᵢᵀJᵢ/σ²`, and
//! `ηᵢ = ‖Jᵢ‖₂/σ` (Hannun §3–4). Nothing of size d × d is ever formed per record: in the eigenbasis Q of `H⁻¹PH⁻¹`
//! (P projects on the columns that are data, not on an intercept) each `JᵢJᵢᵀ` is diagonal plus rank two.

mod basis;
mod eta;
mod lanczos;
pub mod noise;
pub mod scaling;
mod secular;
mod sets;
pub mod softmax;

pub use eta::{Eta, EtaState};
pub use sets::SetSums;

use crate::error::Setting;
use crate::glm::Fit;
use crate::linalg::{
    Cholesky, dot, largest_eigenvalue, matmul, matmul_by_transposed, matmul_parallel, matmul_transposed,
    times,
};
use crate::rows::Block;
use crate::vector::{Norms, RowProducts, dispatch};
use crate::{Error, Result};
use basis::{Basis, Prepared, prepare};
use secular::{Problem, top_eigenvalues};
use serde::{Deserialize, Serialize};

/// Directions in the space of model columns that belong to one attribute: `basis` is p × m, row-major.
///
/// A number is one unit vector; a category the unit vectors of its indicators, or (indicators that sum to one) an
/// orthonormal basis of the changes that keep the sum; a pixel behind principal components its image under them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

    /// # Errors
    /// [`Error::Setting`] for a σ that is no positive number, [`Error::OutOfRange`] for no release at all.
    fn check(self) -> Result<()> {
        Setting::Sigma.positive(self.sigma)?;
        check_releases(self.releases)
    }
}

/// Refuses a number of releases that is none.
pub(crate) fn check_releases(releases: u32) -> Result<()> {
    match releases {
        0 => Err(Error::OutOfRange { subject: "releases", value: 0.0, expected: "at least 1" }),
        1.. => Ok(()),
    }
}

/// The attributes with one direction: their projections come first, in this order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Singles {
    /// Place of each among the attributes.
    index: Vec<usize>,
    w: Vec<f64>,
    gamma: Vec<f64>,
}

/// Everything about a fitted model that leakage needs, computed once: O(p²) numbers. It serialises bit for bit, so that
/// whoever measures rows elsewhere has the very same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Geometry {
    fit: Fit,
    release: Release,
    /// Coefficients with the intercept's set to zero: `w_S`.
    w_data: Vec<f64>,
    w_data_squared: f64,
    /// `H⁻¹` over `unit`, and `unit`: a power of two of its size, so that squares of H⁻¹ are numbers whatever the units
    /// of the columns and the penalty, and nothing is rounded by it. Where the noise has a shape, `N = WH⁻¹` stands for
    /// `H⁻¹` (see [`Geometry::under`]).
    inverse: Vec<f64>,
    /// Its transpose, the same without a shape.
    adjoint: Vec<f64>,
    shaped: bool,
    unit: f64,
    /// `√K/σ`, and the unit of H⁻¹: what a norm of J is multiplied with to give η.
    gain: f64,
    condition: f64,
    weakest: Vec<f64>,
    /// Poles g, largest first, and `T = H⁻¹Q`.
    g: Vec<f64>,
    t: Vec<f64>,
    u: Vec<f64>,
    g_sum: f64,
    attributes: Vec<Prepared>,
    singles: Singles,
    /// `QᵀBᵀH⁻²` of all attributes one below the other, Σm × p.
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
    c: Vec<f64>,
    z: Vec<f64>,
    x2: Vec<f64>,
    h2: Vec<f64>,
    vu: Vec<f64>,
    v: Vec<f64>,
    norms: Vec<f64>,
    norm_scale: Vec<f64>,
    check: Vec<usize>,
    projected: Vec<f64>,
}

impl Records {
    /// Refuses numbers that are too large to be written: dFIL is η², and grows as 1/σ².
    pub fn check(&self) -> Result<()> {
        match self.eta.iter().chain(&self.dfil).find(|v| !v.is_finite()) {
            None => Ok(()),
            Some(&value) => Err(Error::Overflow { value }),
        }
    }
}

impl Geometry {
    /// Prepares a model for `release`; `attributes` are reported in the order given.
    ///
    /// # Errors
    /// [`Error::Singular`] where H has no inverse; [`Error::Setting`] for a σ that is not positive.
    pub fn new(fit: &Fit, attributes: &[Directions], release: Release) -> Result<Self> {
        Self::prepared(fit, attributes, release, None)
    }

    /// Prepares a model whose noise has a shape: covariance `σ²Σ`, Σ that of `noise`. Every figure then is the one
    /// under that noise: with `WᵀW = Σ⁻¹` the whitened coefficients `Ww` carry `N(0, σ²I)`, and `N = WH⁻¹` stands where
    /// `H⁻¹` stood.
    ///
    /// # Errors
    /// As for [`Geometry::new`]; [`Error::Shape`] for noise of another number of coefficients.
    pub fn under(
        fit: &Fit,
        attributes: &[Directions],
        release: Release,
        noise: &noise::Noise,
    ) -> Result<Self> {
        if noise.len() != fit.w.len() {
            let (actual, expected) = (noise.len(), fit.w.len());
            return Err(Error::Shape { subject: "the noise", actual, expected });
        }
        Self::prepared(fit, attributes, release, Some(noise.whitener()))
    }

    /// `whitener` is W, p × p.
    fn prepared(
        fit: &Fit,
        attributes: &[Directions],
        release: Release,
        whitener: Option<&[f64]>,
    ) -> Result<Self> {
        release.check()?;
        let p = fit.w.len();
        let d = fit.penalty.data_width(p);
        let mut inverse = Cholesky::new(&fit.hessian, p)?.inverse();
        let unit = unit_of(&inverse, p);
        inverse.iter_mut().for_each(|v| *v /= unit);
        let mut w_data = fit.w.clone();
        w_data[d..].fill(0.0);
        let whitened = whitener.map(|whitener| {
            let (mut n, mut adjoint) = (vec![0.0; p * p], vec![0.0; p * p]);
            matmul_parallel(whitener, &inverse, (p, p, p), &mut n);
            let unit = power_of_two(n.iter().fold(0.0, |m, v| v.abs().max(m)));
            n.iter_mut().for_each(|v| *v /= unit);
            (0..p * p).for_each(|ij| adjoint[ij] = n[ij % p * p + ij / p]);
            (n, adjoint, unit)
        });
        let adjoint = whitened.as_ref().map(|(_, adjoint, _)| adjoint.as_slice());
        let hessian: Vec<f64> = fit.hessian.iter().map(|v| v * unit).collect();
        let Basis { g, t, condition, weakest } = Basis::new(&hessian, &inverse, adjoint, (p, d))?;
        let shaped = whitened.is_some();
        let (inverse, adjoint, of_shape) = whitened.unwrap_or_else(|| (inverse.clone(), inverse, 1.0));
        let unit = unit * of_shape;
        let gain = release.gain() * unit;
        if gain.is_infinite() {
            return Err(Error::Overflow { value: gain });
        }
        if !(gain > 0.0 && gain.is_finite()) {
            let expected = "noise and a penalty whose η is a number";
            return Err(Error::OutOfRange {
                subject: "the size of H⁻¹ over sigma", value: gain, expected
            });
        }
        let mut u = vec![0.0; p];
        matmul_transposed(&t, &w_data, (p, p, 1), &mut u);

        let (attributes, projections, projections_width) = prepare(&inverse, &adjoint, &fit.w, attributes)?;
        let mut singles = Singles::default();
        for (index, a) in attributes.iter().enumerate().filter(|(_, a)| a.gamma.len() == 1) {
            singles.index.push(index);
            singles.w.push(a.w[0]);
            singles.gamma.push(a.gamma[0]);
        }
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
            adjoint,
            shaped,
            unit,
            gain,
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

    /// Relative error of the η of a record, estimated to the safe side: a few hundred roundings, what inverting a Hessian
    /// of this condition number costs, and what the fit left undone ([`Fit::unsettled`]), of which a slope, the Hessian
    /// and the coefficients take one part each.
    pub fn error(&self) -> f64 {
        1e-12 + 100.0 * self.condition * f64::EPSILON + 4.0 * self.fit.unsettled
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

    /// Refuses rows that are not of this model.
    pub(crate) fn check_width(&self, block: &Block) -> Result<()> {
        if block.width == self.fit.w.len() {
            return Ok(());
        }
        Err(Error::Shape { subject: "a row", actual: block.width, expected: self.fit.w.len() })
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
        matmul_by_transposed(&block.x, &self.projections, (n, p, self.projections_width), &mut out.projected);
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

    /// η of the label alone of record `i`, once [`Geometry::records`] or [`Geometry::eta`] has measured it:
    /// `ω|c|‖H⁻¹x‖/σ`.
    pub fn label_eta(&self, measured: &Records, i: usize) -> f64 {
        measured.omega[i] * self.gain * measured.c[i].abs() * measured.h2[i].sqrt()
    }

    /// Derivatives, loss and gradient norm.
    fn terms(&self, block: &Block, out: &mut Records) {
        let Records { omega, r, a, c, loss, gradient_norm, .. } = out;
        for buffer in [omega, r, a, c, loss, gradient_norm] {
            buffer.clear();
            buffer.reserve(block.len());
        }
        let Records { z, x2, .. } = out;
        dispatch(RowProducts { x: &block.x, w: &self.fit.w, dots: z, squares: x2 });
        for i in 0..block.len() {
            let t = self.fit.family.terms(out.z[i], block.y[i]);
            out.omega.push(block.weight_of(i));
            out.r.push(t.r);
            out.a.push(t.a);
            out.c.push(t.c);
            out.loss.push(t.loss);
            out.gradient_norm.push(t.r.abs() * out.x2[i].sqrt());
        }
    }

    /// `c²` of a record, zero where the label is no secret.
    fn c2(&self, c: f64) -> f64 {
        if self.release.label_secret { c * c } else { 0.0 }
    }

    fn whole_records(&self, block: &Block, out: &mut Records) {
        let (n, p, d) = (block.len(), block.width, self.data_width());
        let gain = self.gain;
        let dimensions = (d + usize::from(self.release.label_secret)).max(1) as f64;
        let (v, r, a, c, omega) = (&out.v, &out.r, &out.a, &out.c, &out.omega);
        let (eta, dfil, h2, vu) = (&mut out.eta, &mut out.dfil, &mut out.h2, &mut out.vu);
        for buffer in [&mut *eta, &mut *dfil] {
            buffer.clear();
            buffer.resize(n, 0.0);
        }
        dispatch(RowProducts { x: v, w: &self.u, dots: vu, squares: h2 });
        let problem = |i: usize| Problem {
            r2: r[i] * r[i],
            alpha: a[i] * a[i] * self.w_data_squared + self.c2(c[i]),
            beta: a[i] * r[i],
            v: &v[i * p..(i + 1) * p],
            u: &self.u,
        };
        top_eigenvalues(&self.g, n, problem, |i, top| eta[i] = top.max(0.0));
        for i in 0..n {
            let Problem { r2, alpha, beta, .. } = problem(i);
            let mut trace = r2 * self.g_sum + 2.0 * beta * vu[i] + alpha * h2[i];
            // ‖u‖² ≤ g₁‖w_S‖², so these two bound the third part, 2β‖v‖‖u‖, as well.
            if eta[i] < CANCELLED * (r2 * self.g.first().copied().unwrap_or(0.0) + alpha * h2[i]) {
                let parts = (a[i], r[i], self.c2(c[i]).sqrt());
                let careful = self.carefully(parts, &self.w_data[..d], &self.adjoint[..d * p], block.row(i));
                (eta[i], trace) = careful.unwrap_or((eta[i], trace));
            }
            eta[i] = omega[i] * gain * eta[i].sqrt();
            dfil[i] = (omega[i] * gain).powi(2) * trace.max(0.0) / dimensions;
        }
    }

    fn attributes_of_records(&self, block: &Block, out: &mut Records) {
        let n = block.len();
        let (width, count) = (self.projections_width, self.attributes.len());
        let gain = self.gain;
        let Records { r, a, omega, h2, projected, attribute_eta, norms, norm_scale, check, .. } = out;
        attribute_eta.resize(n * count, 0.0);
        let singles = &self.singles;
        let count_of_singles = singles.index.len();
        norm_scale.clear();
        norm_scale.extend(omega.iter().map(|omega| omega * gain));
        // Where every attribute is a single direction, their norms are the result as they stand.
        let only_singles = count_of_singles == count;
        let mut single_etas = std::mem::take(if only_singles { &mut *attribute_eta } else { &mut *norms });
        single_etas.resize(n * count_of_singles, 0.0);
        check.clear();
        dispatch(Norms {
            scale: norm_scale,
            a,
            r,
            h2,
            w: &singles.w,
            gamma: &singles.gamma,
            t: projected,
            stride: width,
            cancelled: CANCELLED,
            out: &mut single_etas,
            check,
        });
        for &i in check.iter() {
            // ‖a w H⁻¹x + r H⁻¹b‖ as a norm.
            let h = times(&self.inverse, block.row(i));
            for (s, &k) in singles.index.iter().enumerate() {
                let (aw, ri) = (a[i] * singles.w[s], r[i]);
                let parts = aw * aw * h2[i] + ri * ri * singles.gamma[s];
                if parts + 2.0 * aw * ri * projected[i * width + s] <= CANCELLED * parts {
                    let hb = &self.attributes[k].hb;
                    let square: f64 = h.iter().zip(hb).map(|(h, b)| (aw * h + ri * b).powi(2)).sum();
                    single_etas[i * count_of_singles + s] = norm_scale[i] * square.sqrt();
                }
            }
        }
        if only_singles {
            *attribute_eta = single_etas;
            return;
        }
        for (i, of_record) in single_etas.chunks_exact(count_of_singles.max(1)).enumerate() {
            let etas = &mut attribute_eta[i * count..(i + 1) * count];
            singles.index.iter().zip(of_record).for_each(|(&k, norm)| etas[k] = *norm);
        }
        *norms = single_etas;
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

    /// Square of the spectral and of the Frobenius norm of `J = [a H⁻¹x wᵀ + r H⁻¹B, c H⁻¹x]`, formed before
    /// it is squared: for the rare record where its parts cancel (one column and no intercept, `a x w ≈ −r`;
    /// or H far from a multiple of the identity), and the square of what is left drowns in the rounding of
    /// theirs. `hb` is `BᵀH⁻¹`, m × p.
    fn carefully(&self, (a, r, c): (f64, f64, f64), w: &[f64], hb: &[f64], x: &[f64]) -> Option<(f64, f64)> {
        let (h, m) = (times(&self.inverse, x), w.len());
        if m == 0 {
            return None;
        }
        // Jᵀ, row by row.
        let mut jacobian = Vec::with_capacity(x.len() * (m + 1));
        for (w, hb) in w.iter().zip(hb.chunks_exact(x.len())) {
            jacobian.extend(h.iter().zip(hb).map(|(h, b)| a * h * w + r * b));
        }
        jacobian.extend(h.iter().map(|h| c * h));
        let mut gram = vec![0.0; (m + 1) * (m + 1)];
        matmul_by_transposed(&jacobian, &jacobian, (m + 1, x.len(), m + 1), &mut gram);
        Some((largest_eigenvalue(&gram, m + 1).ok()?, dot(&jacobian, &jacobian)))
    }
}

/// The largest power of two that is not above the largest entry of the diagonal of `H⁻¹`.
fn unit_of(inverse: &[f64], p: usize) -> f64 {
    power_of_two((0..p).map(|j| inverse[j * p + j]).fold(0.0, f64::max))
}

/// The largest power of two that is not above `largest`; one where that is zero.
fn power_of_two(largest: f64) -> f64 {
    if largest >= f64::MIN_POSITIVE { f64::from_bits(largest.to_bits() & (0x7ff << 52)) } else { 1.0 }
}

/// Share of the parts of a sum of squares that may be left before it is computed again without cancellation:
/// a rounding of the parts is then 2ε/1e-3 = 4e-13 of the square and half as much of η.
const CANCELLED: f64 = 1e-3;
