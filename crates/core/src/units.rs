//! Units that may be published: what a release is measured in, when the model was scaled by its own data.
//!
//! Coefficients in the units of the encoding (`(x − m)/s`, m and s read off the data) cannot be published beside those in
//! original units: their quotient is s, exactly. Nor can noise that is isotropic there: it lies on a lattice of step g/s.
//! So a release is made in *public units*, `x̃ = (x − c)/u`, with u a power of two and c a whole multiple of u. Both are
//! either given or rounded from the data; rounded ones are locally constant, so they add no Fisher information, and
//! give away at most a few bits in all (the logarithm of how many values were possible). One σ for all columns makes sense in
//! them, as every column has a spread of about one, and what is published in original units,
//!
//! ```text
//! w_j = ṽ_j/u_j,   b = ṽ₀ − Σ (c_j/u_j) ṽ_j
//! ```
//!
//! lies on a lattice of steps `g/u_j` and `g`, which depend on σ and the public units alone.
//!
//! The model is the same in all units. In public ones it minimises `Σ ωℓ + (nλ/2) Σ t_j² w̃_j²` with `t = s/u` (Given an
//! intercept that is not penalised, m drops out): the penalty carries all that is left of the scaling.

mod softmax;

pub use softmax::SoftmaxInUnits;

use crate::error::Setting;
use crate::glm::{Fit, Penalty};
use crate::linalg::{matmul, matmul_by_transposed, mirror_lower};
use crate::rows::{Alteration, Altered, Rows};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How the encoding scales one data column: `(x − centre)/scale`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// By numbers that do not depend on the data: bounds, a schema, or 0 and 1 of a column taken as it is.
    Given {
        /// What is subtracted.
        centre: f64,
        /// What is divided by.
        scale: f64,
    },
    /// By the mean and the population standard deviation of the column itself, every row counting once whatever its
    /// weight (as the encoder of tables does it for numbers; indicators it takes as they are).
    Own {
        /// Mean over the rows.
        mean: f64,
        /// Standard deviation, `√(Σ(x − m)²/n)`.
        deviation: f64,
    },
}

impl Scaling {
    /// A column taken as it is.
    pub const NONE: Self = Self::Given { centre: 0.0, scale: 1.0 };

    fn parts(self) -> (f64, f64) {
        match self {
            Self::Given { centre, scale } => (centre, scale),
            Self::Own { mean, deviation } => (mean, deviation),
        }
    }
}

/// The unit of one column that may be published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublicUnit {
    /// A whole multiple of the unit.
    pub centre: f64,
    /// A power of two.
    pub unit: f64,
}

impl PublicUnit {
    /// The unit and centre nearest to a centre and a scale: a power of two and a whole multiple of it.
    pub fn rounded(centre: f64, scale: f64) -> Self {
        let unit = public_scale(scale);
        let multiple = (centre / unit).round();
        // Plus zero: a mean just below zero would be published as −0, and its sign with it.
        Self { centre: if multiple.is_finite() { multiple * unit + 0.0 } else { 0.0 }, unit }
    }
}

/// The power of two nearest to `scale` (by ratio); 1 for what is no positive number.
///
/// Locally constant: published instead of a standard deviation it adds no Fisher information.
pub fn public_scale(scale: f64) -> f64 {
    if scale > 0.0 && scale.is_finite() {
        2_f64.powi(scale.log2().round().clamp(-1000.0, 1000.0) as i32)
    } else {
        1.0
    }
}

/// `2^{k/4}`, k = 0..4.
const QUARTERS: [f64; 5] = [1.0, 1.189_207_115_002_721, std::f64::consts::SQRT_2, 1.681_792_830_507_429, 2.0];

/// The smallest power of `2^¼` that is not below `sigma`: at most 19% more noise, and locally constant, where σ itself,
/// solved for a target from the data, gives away the record that attains the maximum.
///
/// # Errors
/// [`Error::Setting`] for a σ that is not a positive number of ordinary size.
pub fn public_sigma(sigma: f64) -> Result<f64> {
    if !(sigma > 1e-280 && sigma < 1e280) {
        let expected = "a positive number between 1e-280 and 1e280";
        return Err(Error::Setting { setting: Setting::Sigma, value: sigma, expected });
    }
    let mut octave = 2_f64.powi(sigma.log2().floor() as i32);
    if octave > sigma {
        octave /= 2.0;
    }
    let above = QUARTERS.iter().map(|q| q * octave).find(|grid| *grid >= sigma);
    Ok(above.unwrap_or(2.0 * octave))
}

/// A coefficient count above which k = c/u would not be exact in the intercept's sum.
const LARGEST_MULTIPLE: f64 = (1_u64 << 40) as f64;

/// The scaling of every data column of a model, and its public units.
#[derive(Debug, Clone, PartialEq)]
pub struct Units {
    scaling: Vec<Scaling>,
    public: Vec<PublicUnit>,
    /// Whether the public unit of a column was rounded from its own data.
    rounded: Vec<bool>,
    /// Mean and variance in public units of the columns whose unit or scale hangs on them.
    watched: Vec<Option<Moments>>,
    /// Whether the model was fitted in these units themselves, so that its penalty does not follow the scales of columns.
    fitted_in: bool,
    /// `s/u` and `(m − c)/u` of each column: `x̃ = t x + o` of an encoded x.
    stretch: Vec<f64>,
    offset: Vec<f64>,
    intercept: bool,
}

/// Mean and variance of a column in public units.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moments {
    mean: f64,
    variance: f64,
    /// Whether the centre of its public unit was rounded from the mean.
    centred: bool,
}

/// A model in public units.
#[derive(Debug, Clone, PartialEq)]
pub struct FitInUnits {
    /// Coefficients, Hessian and gradient in public units. Its `penalty.l2` is λ; the strength of the penalty on each
    /// column is not λ but in `strength`, and stands in the Hessian.
    pub fit: Fit,
    /// `nλt²` of each data column.
    pub strength: Vec<f64>,
}

/// A model as it may be published, on a lattice that does not depend on the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// A coefficient a data column, in original units.
    pub coefficients: Vec<f64>,
    /// The intercept in original units.
    pub intercept: f64,
}

impl Units {
    /// Units rounded from the scalings themselves.
    ///
    /// # Errors
    /// As [`Units::new`].
    pub fn rounded(scaling: Vec<Scaling>, intercept: bool) -> Result<Self> {
        let none = vec![None; scaling.len()];
        Self::partly(scaling, &none, intercept)
    }

    /// Units that are given for some columns, and rounded from the scaling itself for the others.
    ///
    /// # Errors
    /// As [`Units::new`].
    pub fn partly(scaling: Vec<Scaling>, units: &[Option<PublicUnit>], intercept: bool) -> Result<Self> {
        if units.len() != scaling.len() {
            let (actual, expected) = (units.len(), scaling.len());
            return Err(Error::Shape { subject: "the public units", actual, expected });
        }
        let of = |(s, unit): (&Scaling, &Option<PublicUnit>)| {
            unit.unwrap_or_else(|| PublicUnit::rounded(s.parts().0, s.parts().1))
        };
        let public = scaling.iter().zip(units).map(of).collect();
        let own =
            |(s, unit): (&Scaling, &Option<PublicUnit>)| matches!(s, Scaling::Own { .. }) && unit.is_none();
        let rounded = scaling.iter().zip(units).map(own).collect();
        Ok(Self { rounded, ..Self::new(scaling, public, intercept)? })
    }

    /// Units that are given for each data column.
    ///
    /// # Errors
    /// [`Error::Unscaled`] for a column that is scaled by a deviation of zero; [`Error::OutOfRange`] for scales and units that
    /// are no numbers of ordinary size; [`Error::NotApplicable`] where columns are centred and there is no intercept to
    /// take the centre up.
    pub fn new(scaling: Vec<Scaling>, public: Vec<PublicUnit>, intercept: bool) -> Result<Self> {
        if public.len() != scaling.len() {
            let (actual, expected) = (public.len(), scaling.len());
            return Err(Error::Shape { subject: "the public units", actual, expected });
        }
        let (mut stretch, mut offset) = (vec![], vec![]);
        for (column, (s, unit)) in scaling.iter().zip(&public).enumerate() {
            let (centre, scale) = s.parts();
            if !(scale > 0.0 && scale.is_finite() && centre.is_finite()) {
                return Err(Error::Unscaled { column });
            }
            let exact = unit.unit > 0.0 && public_scale(unit.unit) == unit.unit;
            let multiple = unit.centre / unit.unit;
            if !exact || multiple.fract() != 0.0 || multiple.abs() > LARGEST_MULTIPLE {
                let expected = "a power of two, and a centre that is a whole multiple of it, at most 2⁴⁰ units from zero";
                return Err(Error::OutOfRange {
                    subject: "the unit of a column",
                    value: unit.unit,
                    expected,
                });
            }
            stretch.push(scale / unit.unit);
            offset.push((centre - unit.centre) / unit.unit);
            let moves = offset[column] != 0.0 || matches!(s, Scaling::Own { .. });
            if !intercept && moves {
                return Err(Error::NotApplicable {
                    subject: "a release in original units",
                    setting: "columns that are centred and no intercept",
                    advice: "fit an intercept, or leave the columns as they are",
                });
            }
        }
        Ok(Self::assembled(scaling, public, (stretch, offset), intercept))
    }

    fn assembled(
        scaling: Vec<Scaling>,
        public: Vec<PublicUnit>,
        (stretch, offset): (Vec<f64>, Vec<f64>),
        intercept: bool,
    ) -> Self {
        let rounded = vec![false; scaling.len()];
        let own = |j: usize| match scaling[j] {
            Scaling::Own { .. } => {
                Some(Moments { mean: offset[j], variance: stretch[j] * stretch[j], centred: true })
            }
            Scaling::Given { .. } => None,
        };
        let watched = (0..scaling.len()).map(own).collect();
        Self { scaling, public, rounded, watched, fitted_in: false, stretch, offset, intercept }
    }

    /// The same units, where that of column `j`, which is not scaled by its own data, was still rounded from their mean and
    /// standard deviation in original units: the centre too if `centred`.
    #[must_use]
    pub fn rounded_from(mut self, j: usize, (mean, deviation): (f64, f64), centred: bool) -> Self {
        let PublicUnit { centre, unit } = self.public[j];
        self.rounded[j] = true;
        self.watched[j] =
            Some(Moments { mean: (mean - centre) / unit, variance: (deviation / unit).powi(2), centred });
        self
    }

    /// The same units for a model that is fitted in them: its penalty is on columns in public units, so that their own scales
    /// are no part of it, and a record shows in the units where these were rounded from the data, or not at all.
    #[must_use]
    pub fn fitted_in(mut self) -> Self {
        self.fitted_in = true;
        self.watched.iter_mut().zip(&self.rounded).filter(|(_, r)| !**r).for_each(|(w, _)| *w = None);
        self
    }

    /// The units of the encoding itself, for measuring a model as it was fitted: nothing in them may be published, but what
    /// a record does to the scaling of its columns can be counted in them.
    ///
    /// # Errors
    /// [`Error::Unscaled`] for a column that is scaled by a deviation of zero; [`Error::NotApplicable`] where columns are
    /// scaled by their own data and there is no intercept to take their means up.
    pub fn of_encoding(scaling: Vec<Scaling>, intercept: bool) -> Result<Self> {
        let mut public = vec![];
        for (column, s) in scaling.iter().enumerate() {
            let (centre, unit) = s.parts();
            if !(unit > 0.0 && unit.is_finite() && centre.is_finite()) {
                return Err(Error::Unscaled { column });
            }
            if !intercept && matches!(s, Scaling::Own { .. }) {
                return Err(Error::NotApplicable {
                    subject: "counting the scaling of columns",
                    setting: "columns that are centred and no intercept",
                    advice: "fit an intercept, or take the scaling as given",
                });
            }
            public.push(PublicUnit { centre, unit });
        }
        let d = scaling.len();
        Ok(Self::assembled(scaling, public, (vec![1.0; d], vec![0.0; d]), intercept))
    }

    /// Number of data columns.
    pub fn len(&self) -> usize {
        self.scaling.len()
    }

    /// Number of coefficients of one vector: data columns, and an intercept.
    pub fn width(&self) -> usize {
        self.len() + usize::from(self.intercept)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scaling.is_empty()
    }

    /// The public unit of each column.
    pub fn public(&self) -> &[PublicUnit] {
        &self.public
    }

    /// Whether column `j` is scaled by its own data, and the model's penalty with it.
    pub fn is_own(&self, j: usize) -> bool {
        !self.fitted_in && matches!(self.scaling.get(j), Some(Scaling::Own { .. }))
    }

    /// Whether the public unit of column `j` was rounded from its own data.
    pub fn is_rounded(&self, j: usize) -> bool {
        self.rounded.get(j).copied().unwrap_or(false)
    }

    /// `t = s/u` of column `j`: its standard deviation in public units, where it is scaled by its own data.
    pub fn stretch(&self, j: usize) -> f64 {
        self.stretch[j]
    }

    /// What column `j` in public units is divided by in the penalty: [`Units::stretch`], or 1 where the model is fitted in them.
    pub fn penalty_scale(&self, j: usize) -> f64 {
        if self.fitted_in { 1.0 } else { self.stretch[j] }
    }

    /// `o = (m − c)/u` of column `j`: its mean in public units, where it is scaled by its own data.
    pub fn offset(&self, j: usize) -> f64 {
        self.offset[j]
    }

    /// A value of column `j` in public units.
    pub fn of_value(&self, j: usize, value: f64) -> f64 {
        (value - self.public[j].centre) / self.public[j].unit
    }

    /// Whether a table of n rows would have had the same public units with `to` in place of `from` (in public units) in column
    /// `j`, and a spread to scale by where it is scaled by it. If not, whoever sees the units sees which.
    pub fn survive(&self, j: usize, n: f64, from: f64, to: f64) -> bool {
        let Some(Moments { centred, .. }) = self.watched[j].filter(|_| from != to) else { return true };
        let (mean, variance) = self.moments_after(j, n, from, to);
        if variance <= 0.0 {
            return false;
        }
        let PublicUnit { centre, unit } = self.public[j];
        let near = if centred { centre + unit * mean } else { 0.0 };
        let after = PublicUnit::rounded(near, unit * variance.sqrt());
        !self.rounded[j] || after == self.public[j]
    }

    /// Mean and variance of column `j` in public units, with `to` in place of `from`.
    pub fn moments_after(&self, j: usize, n: f64, from: f64, to: f64) -> (f64, f64) {
        let (o, variance) =
            self.watched[j].map_or((self.offset[j], self.stretch[j].powi(2)), |m| (m.mean, m.variance));
        let change = to - from;
        // (to − o)² − (from − o)² without the difference of squares
        let squares = change * (to + from - 2.0 * o) / n;
        (o + change / n, variance + squares - (change / n).powi(2))
    }

    /// The model in public units: no pass over the data.
    ///
    /// With `x̃ = M x` (intercepts included) `w̃ = M⁻ᵀw` and `H̃ = M H Mᵀ`, the penalty included.
    pub fn fit(&self, encoded: &Fit) -> Result<FitInUnits> {
        let (p, d) = (encoded.w.len(), self.len());
        let expected = encoded.penalty.data_width(p);
        if d != expected || encoded.penalty.intercept != self.intercept {
            return Err(Error::Shape { subject: "the scalings of columns", actual: d, expected });
        }
        let (t, o) = (&self.stretch, &self.offset);
        let mut w: Vec<f64> = (0..d).map(|j| encoded.w[j] / t[j]).collect();
        let mut gradient: Vec<f64> = (0..d).map(|j| t[j] * encoded.gradient[j]).collect();
        let mut hessian = vec![0.0; p * p];
        let h = |i: usize, j: usize| encoded.hessian[i * p + j];
        for i in 0..d {
            for j in 0..d {
                hessian[i * p + j] = t[i] * t[j] * h(i, j);
                if self.intercept {
                    hessian[i * p + j] +=
                        t[i] * o[j] * h(i, d) + o[i] * t[j] * h(d, j) + o[i] * o[j] * h(d, d);
                }
            }
        }
        if self.intercept {
            for i in 0..d {
                gradient[i] += o[i] * encoded.gradient[d];
                let value = t[i] * h(i, d) + o[i] * h(d, d);
                (hessian[i * p + d], hessian[d * p + i]) = (value, value);
            }
            hessian[d * p + d] = h(d, d);
            gradient.push(encoded.gradient[d]);
            w.push(encoded.w[d] - o.iter().zip(&w).map(|(o, w)| o * w).sum::<f64>());
        }
        let base = encoded.n as f64 * encoded.penalty.l2;
        let mut strength: Vec<f64> = t.iter().map(|t| base * t * t).collect();
        if let Some(of_intercept) = encoded.penalty.on_intercept(encoded.n) {
            if o.iter().any(|o| *o != 0.0) {
                return Err(Error::NotApplicable {
                    subject: "a penalty on the intercept",
                    setting: "columns that are centred",
                    advice: "take the columns as they are (scale none)",
                });
            }
            strength.push(of_intercept);
        }
        let penalty = Penalty { intercept: self.intercept, ..encoded.penalty };
        Ok(FitInUnits { fit: Fit { w, hessian, gradient, penalty, ..encoded.clone() }, strength })
    }

    /// Covariance of coefficients in public units (p × p, the intercept last) as that of the published ones: `TΣTᵀ`, T the
    /// matrix of [`Units::published`].
    ///
    /// # Errors
    /// [`Error::Shape`] for a covariance of another size.
    pub fn published_covariance(&self, covariance: &[f64]) -> Result<Vec<f64>> {
        let d = self.len();
        let p = d + usize::from(self.intercept);
        if covariance.len() != p * p {
            return Err(Error::Shape {
                subject: "the covariance of coefficients",
                actual: covariance.len(),
                expected: p * p,
            });
        }
        let mut t = vec![0.0; p * p];
        for (j, u) in self.public.iter().enumerate() {
            t[j * p + j] = 1.0 / u.unit;
            if self.intercept {
                t[d * p + j] = -u.centre / u.unit;
            }
        }
        if self.intercept {
            t[d * p + d] = 1.0;
        }
        let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&t, covariance, (p, p, p), &mut half);
        matmul_by_transposed(&half, &t, (p, p, p), &mut out);
        mirror_lower(&mut out, p);
        Ok(out)
    }

    /// Encoded rows in public units.
    pub fn rows<'a>(&'a self, rows: &'a dyn Rows) -> Altered<'a> {
        let Self { stretch, offset, .. } = self;
        let units = Alteration::Units { stretch: Cow::Borrowed(stretch), offset: Cow::Borrowed(offset) };
        Altered::new(rows, vec![units])
    }

    /// Coefficients in public units as they are published: in original units.
    ///
    /// Exact where the coefficients lie on one grid within 2⁵³ of its steps, weighted by the multiples `c/u`: powers of two
    /// divide exactly, and whole multiples add up on the grid.
    pub fn published(&self, w: &[f64]) -> Result<Published> {
        let d = self.len();
        let expected = d + usize::from(self.intercept);
        if w.len() != expected {
            return Err(Error::Shape { subject: "the coefficients", actual: w.len(), expected });
        }
        let coefficients = w.iter().zip(&self.public).map(|(w, u)| w / u.unit).collect();
        let own = if self.intercept { w[d] } else { 0.0 };
        let intercept = w.iter().zip(&self.public).fold(own, |b, (w, u)| b - w * (u.centre / u.unit));
        Ok(Published { coefficients, intercept })
    }
}
