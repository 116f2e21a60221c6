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
//! so a block of records costs two products (pairs of residuals with the blocks of G, rows with G: `crossed`) and O(Kd²)
//! each. No Jacobian of size (K−1)p × d is formed. The largest eigenvalue comes from Lanczos, run until it stands.
//!
//! Two classes reproduce the logistic model: η there at noise `√2σ`, since its coefficients are `W₁ − W₀`.
//!
//! Columns that are scaled by their own data move the penalty too ([`super::scaling`]): `ωρ̂_a I` becomes the diagonal matrix
//! `ωρ̂_a I + diag(t ∘ φ_a)`, with `φ_aj = 2λΘ_aj` and `t_j = x_j − m_j`. That is still one d × d matrix a record, so it is counted
//! exactly, always: with `F_l = Σ_a diag(φ_a) G_al` and `T = Σ_l F_l diag(φ_l)`, prepared once, `B = Σ_l ωρ̂_l F_l` adds
//! `t_iB_ij + t_jB_ji + t_it_jT_ij` to the pairs of residuals, and `t ∘ F_l x` to `c_l`.

mod crossed;
mod eta;
mod gram;
mod records;
mod set;

pub use eta::{SoftmaxEta, SoftmaxEtaState};
pub use records::SoftmaxRecords;
pub use set::{AttributeSets, SoftmaxSet};

use super::noise::Noise;
use super::{Directions, Release};
use crate::glm::softmax::{SoftmaxFit, contrasts, pairs};
use crate::linalg::{Cholesky, condition, matmul_parallel, mirror_lower};
use crate::rows::Block;
use crate::units::Units;
use crate::{Error, Result};
use crossed::Blocks;
use gram::VECTOR;
use serde::{Deserialize, Serialize};

/// Distance of two one-hot labels: what a label's η is measured by, as that of a label coded 0 or 1 is.
pub const SWITCH: f64 = std::f64::consts::SQRT_2;

/// Everything about a fitted softmax model that leakage needs, computed once. It serialises bit for bit, as [`super::Geometry`]
/// does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxGeometry {
    fit: SoftmaxFit,
    release: Release,
    /// `N = WH⁻¹` (W the whitener of the noise), q × q.
    n: Vec<f64>,
    /// `G = NᵀN`.
    g: Blocks,
    /// Lower triangles of `G_aa` and `G_ab + G_ba`, d × d, one row a pair.
    packed: Vec<f64>,
    attributes: Vec<Sparse>,
    u: Vec<f64>,
    /// Θ of the data columns, its rows filled up with zeros to whole vectors.
    theta: Vec<f64>,
    /// Condition number of H, and the columns of its smallest eigenvector that matter.
    condition: (f64, Vec<usize>),
    /// What scaling by the data itself adds, where columns are.
    own: Option<Own>,
}

/// What is needed to count that columns are scaled by their own data.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Own {
    /// Mean of each data column that is, by column.
    means: Vec<(usize, f64)>,
    /// `F_l = Σ_a diag(φ_a) G_al`, (K−1) × d × p.
    f: Vec<f64>,
    /// `T = Σ_l F_l diag(φ_l)`, d × d.
    t: Vec<f64>,
}

/// The directions of one attribute, of which most entries are zero.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sparse {
    /// Data column, direction, value.
    entries: Vec<(usize, usize, f64)>,
    count: usize,
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
            let (actual, expected) = (noise.len(), fit.coefficients());
            return Err(Error::Shape { subject: "the noise", actual, expected });
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
        release.check()?;
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
        let width = d.next_multiple_of(VECTOR);
        let mut theta = vec![0.0; k * width];
        for (padded, row) in theta.chunks_exact_mut(width.max(1)).zip(fit.theta.chunks_exact(p)) {
            padded[..d].copy_from_slice(&row[..d]);
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
                let (actual, expected) = (attribute.basis.len(), p * m);
                return Err(Error::Shape { subject: "the directions of an attribute", actual, expected });
            }
            let entries = attribute.basis.iter().enumerate().filter(|(_, v)| **v != 0.0);
            let data = entries.map(|(ij, v)| (ij / m, ij % m, *v)).filter(|(j, _, _)| *j < d);
            sparse.push(Sparse { entries: data.collect(), count: m });
        }
        Ok(Self {
            fit: fit.clone(),
            release,
            n,
            g: Blocks::new(&g, k, p),
            packed,
            attributes: sparse,
            u: contrasts(fit.classes),
            theta,
            condition: (number, columns),
            own: None,
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
            let (actual, expected) = (units.len(), self.data_width());
            return Err(Error::Shape { subject: "the units of columns", actual, expected });
        }
        let means = (0..units.len()).filter(|j| units.is_own(*j)).map(|j| (j, units.offset(j)));
        let means: Vec<(usize, f64)> = means.collect();
        self.own = (!means.is_empty() && self.fit.penalty.l2 > 0.0).then(|| self.own(means));
        Ok(self)
    }

    fn own(&self, means: Vec<(usize, f64)>) -> Own {
        let (p, k, d) = (self.fit.width, self.fit.classes - 1, self.data_width());
        let phi = |a: usize, i: usize| 2.0 * self.fit.penalty.l2 * self.fit.theta[a * p + i];
        let (mut f, mut t) = (vec![0.0; k * d * p], vec![0.0; d * d]);
        for &(i, _) in &means {
            for (l, j) in (0..k).flat_map(|l| (0..p).map(move |j| (l, j))) {
                f[(l * d + i) * p + j] = (0..k).map(|a| phi(a, i) * self.g.at((a, i), (l, j))).sum();
            }
            for &(j, _) in &means {
                t[i * d + j] = (0..k).map(|l| f[(l * d + i) * p + j] * phi(l, j)).sum();
            }
        }
        Own { means, f, t }
    }

    /// Data columns d.
    pub fn data_width(&self) -> usize {
        self.fit.penalty.data_width(self.fit.width)
    }

    /// Checks that rows have the width of the model.
    pub(crate) fn check_width(&self, block: &Block) -> Result<()> {
        if block.width == self.fit.width {
            return Ok(());
        }
        Err(Error::Shape { subject: "a row", actual: block.width, expected: self.fit.width })
    }

    /// Data columns filled up to whole vectors.
    fn padded_width(&self) -> usize {
        self.data_width().next_multiple_of(VECTOR)
    }

    fn gain(&self) -> f64 {
        f64::from(self.release.releases).sqrt() / self.release.sigma
    }
}
