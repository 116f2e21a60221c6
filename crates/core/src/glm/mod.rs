//! Generalised linear models: the three families and their derivatives, the minimiser, and what noise costs.

mod fit;
mod minimiser;
pub mod softmax;
mod sums;
mod utility;

pub use fit::{Fit, Penalty, TOLERANCE, distance, evaluate, evaluate_by, fit, fit_by};
pub use minimiser::{Fitted, Minimiser};
pub use sums::{Newton, PoissonStart, Sums};
pub use utility::{Metric, Utility, UtilityCurve};

use serde::{Deserialize, Serialize};

/// A family of generalised linear models with its canonical loss `ℓ(z, y)`, `z = wᵀx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Least squares, `½(z − y)²`
    #[default]
    Linear,
    /// Two classes, `log(1 + eᶻ) − yz`, y ∈ {0, 1}
    Logistic,
    /// Counts, `eᶻ − yz`, y ≥ 0
    Poisson,
}

/// A kind of model: a family with one vector of coefficients, or softmax regression with one for each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Least squares, `½(z − y)²`
    #[default]
    Linear,
    /// Two classes, `log(1 + eᶻ) − yz`, y ∈ {0, 1}
    Logistic,
    /// Counts, `eᶻ − yz`, y ≥ 0
    Poisson,
    /// Two or more classes, `−log π_y`, `π = softmax(Wx)`
    Softmax,
}

impl ModelKind {
    /// The family, where the model has one vector of coefficients.
    pub fn family(self) -> Option<Family> {
        match self {
            Self::Linear => Some(Family::Linear),
            Self::Logistic => Some(Family::Logistic),
            Self::Poisson => Some(Family::Poisson),
            Self::Softmax => None,
        }
    }

    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        self.family().map_or("softmax", Family::name)
    }
}

impl From<Family> for ModelKind {
    fn from(family: Family) -> Self {
        match family {
            Family::Linear => Self::Linear,
            Family::Logistic => Self::Logistic,
            Family::Poisson => Self::Poisson,
        }
    }
}

/// The loss of one record and its derivatives at `z`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// `ℓ(z, y)`.
    pub loss: f64,
    /// `r = ∂ℓ/∂z`.
    pub r: f64,
    /// `a = ∂²ℓ/∂z²`.
    pub a: f64,
}

/// `c = ∂²ℓ/∂z∂y`: the label enters every one of these losses as `−yz`.
pub const C: f64 = -1.0;

impl Family {
    /// Loss and derivatives at linear predictor `z` and target `y`.
    pub fn terms(self, z: f64, y: f64) -> Terms {
        match self {
            Self::Linear => {
                let r = z - y;
                Terms { loss: 0.5 * r * r, r, a: 1.0 }
            }
            Self::Logistic => {
                // With e = e^{−|z|}, s(|z|) = 1/(1+e) and s(−|z|) = e/(1+e): neither loses digits, so r stays
                // exact to rounding where the fit is nearly perfect.
                let e = (-z.abs()).exp();
                let (high, low) = (1.0 / (1.0 + e), e / (1.0 + e));
                let (s, one_minus_s) = if z >= 0.0 { (high, low) } else { (low, high) };
                let r = if y == 1.0 { -one_minus_s } else { s - y };
                // The loss likewise: log(1 + e^{−z}) for y = 1, where log(1 + eᶻ) − z would cancel.
                let loss = if y == 1.0 { (-z).max(0.0) } else { z.max(0.0) - y * z } + e.ln_1p();
                Terms { loss, r, a: high * low }
            }
            Self::Poisson => {
                let mu = z.exp();
                Terms { loss: mu - y * z, r: mu - y, a: mu }
            }
        }
    }

    /// What `r` at label `y` is a sum of, in size, `reach` being `‖x‖‖w‖`: a rounding of `r` is this much times ε.
    ///
    /// Where `r` is formed from complements it carries a rounding of its own size alone, and what the rounding of z
    /// makes of it; elsewhere prediction and label cancel.
    pub(crate) fn slope_size(self, t: Terms, y: f64, reach: f64) -> f64 {
        match self {
            Self::Logistic if y == 0.0 || y == 1.0 => t.r.abs() + t.a * reach,
            Self::Linear | Self::Logistic | Self::Poisson => (t.r + y).abs() + y.abs(),
        }
    }

    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Poisson => "poisson",
        }
    }

    /// Whether the curvature `a` is the same for every record and every `w`.
    pub fn constant_curvature(self) -> bool {
        match self {
            Self::Linear => true,
            Self::Logistic | Self::Poisson => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every family passes: derivatives against central differences of the loss.
    #[test]
    fn derivatives_match_finite_differences() {
        for family in [Family::Linear, Family::Logistic, Family::Poisson] {
            for z in [-3.0, -0.4, 0.0, 0.7, 2.5] {
                for y in [0.0, 1.0] {
                    let h = 1e-5;
                    let t = family.terms(z, y);
                    let (up, down) = (family.terms(z + h, y), family.terms(z - h, y));
                    assert!((t.r - (up.loss - down.loss) / (2.0 * h)).abs() < 1e-8, "{family:?} r at {z}");
                    assert!((t.a - (up.r - down.r) / (2.0 * h)).abs() < 1e-8, "{family:?} a at {z}");
                    let c = (family.terms(z, y + h).r - family.terms(z, y - h).r) / (2.0 * h);
                    assert!((C - c).abs() < 1e-8, "{family:?} c at {z}");
                }
            }
        }
    }

    #[test]
    fn logistic_keeps_its_digits_far_out() {
        let t = Family::Logistic.terms(40.0, 1.0);
        assert!((t.r / -(-40.0_f64).exp() - 1.0).abs() < 1e-15);
        assert!((t.loss / (-40.0_f64).exp() - 1.0).abs() < 1e-15);
        assert!((Family::Logistic.terms(-40.0, 0.0).loss / (-40.0_f64).exp() - 1.0).abs() < 1e-15);
        assert!(Family::Logistic.terms(-800.0, 1.0).loss.is_finite());
    }
}
