//! Gaussian noise with a covariance: the type that measurements, attacks, bounds and releases share.

use crate::linalg::{Cholesky, axpy, dot, matmul, matmul_by_transposed, times};
use crate::random::Bits;
use crate::release::Grid;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A factor of a covariance on a public grid, as a model file carries it: entry (i, j) of the lower triangle is
/// `entries[i(i+1)/2 + j] · 2^exponents[i] · 2^(quarters/4)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The scale: a power of `2^¼`.
    pub quarters: i32,
    /// Grid step of each row, as a power of two.
    pub exponents: Vec<i32>,
    /// The lower triangle row by row, in steps of its row's grid.
    pub entries: Vec<i64>,
}

impl Factor {
    /// A lower triangular factor (p × p) rounded to the grid whose step in row i is the power of two `bits` places
    /// below its diagonal entry; the scale is one.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a diagonal that is not positive or entries that are not finite.
    pub(super) fn rounded(lower: &[f64], p: usize, bits: u32) -> Result<Self> {
        let (mut exponents, mut entries) = (Vec::with_capacity(p), Vec::with_capacity(p * (p + 1) / 2));
        for i in 0..p {
            check_diagonal(lower[i * p + i])?;
            let exponent = lower[i * p + i].log2().floor() as i32 - bits as i32;
            let step = 2_f64.powi(exponent);
            exponents.push(exponent);
            for &value in &lower[i * p..=i * p + i] {
                let steps = (value / step).round();
                if steps.is_nan() || steps.abs() >= (1_u64 << 53) as f64 {
                    return Err(out_of_range(value));
                }
                entries.push(steps as i64);
            }
        }
        Ok(Self { quarters: 0, exponents, entries })
    }

    /// `I` for p coefficients.
    pub fn isotropic(p: usize) -> Self {
        let entries = (0..p).flat_map(|i| (0..=i).map(move |j| i64::from(i == j))).collect();
        Self { quarters: 0, exponents: vec![0; p], entries }
    }

    /// The same shape on the smallest scale `2^(k/4)` that is at least `scale`.
    ///
    /// # Guarantee
    /// The scale depends on the data only through the k that was chosen, so it is locally constant and adds no
    /// Fisher information.
    pub(super) fn with_scale(mut self, scale: f64) -> Self {
        let mut quarters = (4.0 * scale.log2()).floor() as i32;
        while quarter_power(quarters) < scale {
            quarters += 1;
        }
        self.quarters = quarters;
        self
    }

    /// `2^(quarters/4)`.
    pub fn scale(&self) -> f64 {
        quarter_power(self.quarters)
    }

    /// The noise with this covariance.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::OutOfRange`] where the entries are not those of a factor.
    pub fn noise(&self) -> Result<Noise> {
        let p = self.exponents.len();
        if self.entries.len() != p * (p + 1) / 2 {
            let (actual, expected) = (self.entries.len(), p * (p + 1) / 2);
            return Err(Error::Shape { subject: "the factor of the noise", actual, expected });
        }
        let scale = quarter_power(self.quarters);
        let mut lower = vec![0.0; p * p];
        let mut next = self.entries.iter();
        for i in 0..p {
            let step = 2_f64.powi(self.exponents[i]) * scale;
            for (slot, entry) in lower[i * p..=i * p + i].iter_mut().zip(&mut next) {
                *slot = *entry as f64 * step;
            }
        }
        Noise::from_factor(lower, p)
    }

    /// Bits it takes to write the grid points down: what publishing the shape can tell in all, beyond any derivative.
    pub fn bits(&self) -> u64 {
        self.entries.iter().map(|e| u64::from(65 - e.unsigned_abs().leading_zeros())).sum()
    }
}

/// `2^(quarters/4)`.
fn quarter_power(quarters: i32) -> f64 {
    let whole = 2_f64.powi(quarters.div_euclid(4));
    whole
        * [1.0, 1.189_207_115_002_721, std::f64::consts::SQRT_2, 1.681_792_830_507_429]
            [quarters.rem_euclid(4) as usize]
}

/// Noise `N(0, Σ)`, `Σ = FFᵀ` with a lower triangular factor F.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    p: usize,
    factor: Vec<f64>,
    /// `W = F⁻¹`, so that `WᵀW = Σ⁻¹`.
    whitener: Vec<f64>,
}

impl Noise {
    /// Noise with the lower triangular factor `factor` (p × p, row-major).
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::OutOfRange`] where that is no factor of a covariance.
    pub fn from_factor(factor: Vec<f64>, p: usize) -> Result<Self> {
        if factor.len() != p * p {
            return Err(Error::Shape {
                subject: "the factor of the noise",
                actual: factor.len(),
                expected: p * p,
            });
        }
        for i in 0..p {
            check_diagonal(factor[i * p + i])?;
            if let Some(&value) = factor[i * p..=i * p + i].iter().find(|v| !v.is_finite()) {
                return Err(out_of_range(value));
            }
        }
        let whitener = triangular_inverse(&factor, p);
        match whitener.iter().find(|v| !v.is_finite()) {
            Some(&value) => Err(out_of_range(value)),
            None => Ok(Self { p, factor, whitener }),
        }
    }

    /// Noise with covariance `covariance` (p × p, both triangles).
    ///
    /// # Errors
    /// [`Error::Singular`] where it is not positive definite.
    pub fn from_covariance(covariance: &[f64], p: usize) -> Result<Self> {
        Self::from_factor(Cholesky::new(covariance, p)?.lower(), p)
    }

    /// `N(0, σ²I)` on p coefficients.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a σ that is not positive.
    pub fn isotropic(sigma: f64, p: usize) -> Result<Self> {
        check_diagonal(sigma)?;
        check_diagonal(1.0 / sigma)?;
        // The inverse of a diagonal is known: by elimination it took O(p³).
        let diagonal = |value: f64| (0..p * p).map(|ij| if ij % p == ij / p { value } else { 0.0 }).collect();
        Ok(Self { p, factor: diagonal(sigma), whitener: diagonal(1.0 / sigma) })
    }

    /// Number of coefficients p.
    pub fn len(&self) -> usize {
        self.p
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.p == 0
    }

    /// `W = F⁻¹`, p × p, row-major: `WᵀW = Σ⁻¹`.
    pub fn whitener(&self) -> &[f64] {
        &self.whitener
    }

    /// F, p × p, row-major, lower triangular.
    pub fn factor(&self) -> &[f64] {
        &self.factor
    }

    /// Σ, p × p.
    pub fn covariance(&self) -> Vec<f64> {
        let p = self.p;
        let mut out = vec![0.0; p * p];
        let is_diagonal = (0..p).all(|i| self.factor[i * p..i * p + i].iter().all(|v| *v == 0.0));
        if is_diagonal {
            (0..p).for_each(|i| out[i * p + i] = self.factor[i * p + i].powi(2));
        } else {
            matmul_by_transposed(&self.factor, &self.factor, (p, p, p), &mut out);
        }
        out
    }

    /// `Wv`: a difference of coefficients in the units of the noise. Distances of whitened vectors are those by Σ⁻¹,
    /// so attacks and bounds made for isotropic noise of σ = 1 apply to them as they stand.
    pub fn whiten(&self, v: &[f64]) -> Vec<f64> {
        times(&self.whitener, v)
    }

    /// `Σ⁻¹v`.
    pub(crate) fn by_inverse_covariance(&self, v: &[f64]) -> Vec<f64> {
        let (p, white) = (self.p, self.whiten(v));
        let mut out = vec![0.0; p];
        for (row, w) in self.whitener.chunks_exact(p.max(1)).zip(&white) {
            axpy(*w, row, &mut out);
        }
        out
    }

    /// [`Noise::whiten`] of many vectors, one a row.
    pub fn whiten_rows(&self, rows: &[f64]) -> Vec<f64> {
        let (p, n) = (self.p, rows.len().checked_div(self.p).unwrap_or(0));
        let mut out = vec![0.0; n * p];
        matmul_by_transposed(rows, &self.whitener, (n, p, p), &mut out);
        out
    }

    /// `δ = √(vᵀΣ⁻¹v)`: two models that differ by v are told apart with probability at most `Φ(δ/2)`.
    pub fn distance(&self, v: &[f64]) -> f64 {
        let white = self.whiten(v);
        dot(&white, &white).sqrt()
    }

    /// `tr(ΣA)`: what the noise costs where A is the Hessian of the utility that is lost (p × p).
    pub fn cost(&self, a: &[f64]) -> f64 {
        let mut af = vec![0.0; self.p * self.p];
        matmul(a, &self.factor, (self.p, self.p, self.p), &mut af);
        dot(&af, &self.factor)
    }

    /// Noise with covariance `factor²·Σ`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a factor that is not positive.
    pub fn scaled(&self, factor: f64) -> Result<Self> {
        Self::from_factor(self.factor.iter().map(|f| f * factor).collect(), self.p)
    }

    /// Coefficients with exact discrete noise of covariance Σ.
    ///
    /// The *coordinates of the factor* lie on a grid of their own: `y = F⁻¹w` is rounded to multiples of `g = 2⁻²⁰`, each
    /// coordinate receives an independent discrete Gaussian of standard deviation one on that grid (integers alone, see
    /// [`crate::release`]), and what is returned is `F y'`.
    ///
    /// # Guarantee
    /// No low digit of w escapes. The only random object that depends on the data is the integer vector `k' = k + ξ`,
    /// `k = round(F⁻¹w/g)` and ξ exactly discrete Gaussian with independent coordinates: every point of ℤᵖ has positive
    /// probability whatever w is. The returned floats are a function of k' and F alone (the product is the same
    /// sequence of roundings for everybody), so by data processing they say about w what k' says and nothing more, and
    /// F must be public, hence on its public grid ([`Factor`]). The set of values that can be returned, `{F g k : k ∈ ℤᵖ}`,
    /// depends on F alone. Rounding *w itself* to a fixed grid and adding `F g ξ` would not do: the noise then moves inside
    /// the lattice `F g ℤᵖ` only, and the residue of w modulo that lattice would be published exactly.
    ///
    /// Two candidates' vectors k differ by `F⁻¹(w_a − w_b)/g` up to half a step a coordinate, so distances are those by Σ⁻¹ up
    /// to `√p·2⁻²⁰`, and Rényi divergences of the discrete noise are at most those of the continuous (Canonne et al. 2020).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where a coordinate is 2³⁰ standard deviations out; whatever the generator fails with.
    pub fn release(&self, w: &[f64], bits: &mut impl Bits) -> Result<Vec<f64>> {
        if w.len() != self.p {
            return Err(Error::Shape { subject: "the coefficients", actual: w.len(), expected: self.p });
        }
        let noisy = Grid::new(1.0)?.release(&self.whiten(w), bits)?;
        Ok(times(&self.factor, &noisy))
    }
}

fn check_diagonal(value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(out_of_range(value)) }
}

fn out_of_range(value: f64) -> Error {
    let expected = "finite numbers with a positive diagonal";
    Error::OutOfRange { subject: "the factor of the noise", value, expected }
}

/// Inverse of a lower triangular p × p matrix.
pub(super) fn triangular_inverse(lower: &[f64], p: usize) -> Vec<f64> {
    let mut out = vec![0.0; p * p];
    for i in 0..p {
        let (above, row) = out.split_at_mut(i * p);
        for k in 0..i {
            let factor = -lower[i * p + k];
            for j in 0..=k {
                row[j] += factor * above[k * p + j];
            }
        }
        row[i] = 1.0;
        row[..=i].iter_mut().for_each(|v| *v /= lower[i * p + i]);
    }
    out
}
