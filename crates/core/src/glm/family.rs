//! The families: a loss of the linear predictor and the label, with its derivatives.
//!
//! | family | loss `ℓ(z, y)` | `r = ∂ℓ/∂z` | `a = ∂r/∂z` | `c = ∂r/∂y` |
//! |---|---|---|---|---|
//! | linear | `½(z − y)²` | `z − y` | 1 | −1 |
//! | logistic | `log(1 + eᶻ) − yz` | `s(z) − y` | `s(z)s(−z)` | −1 |
//! | Poisson | `eᶻ − yz` | `eᶻ − y` | `eᶻ` | −1 |
//! | gamma | `z + ye⁻ᶻ` | `1 − ye⁻ᶻ` | `ye⁻ᶻ` | `−e⁻ᶻ` |
//! | Tweedie, power p | `e^{(2−p)z}/(2−p) + ye^{(1−p)z}/(p−1)` | `e^{(2−p)z} − ye^{(1−p)z}` | `(2−p)e^{(2−p)z} + (p−1)ye^{(1−p)z}` | `−e^{(1−p)z}` |
//! | squared hinge | `½y(1−z)₊² + ½(1−y)(1+z)₊²` | `−y(1−z)₊ + (1−y)(1+z)₊` | `y[z<1] + (1−y)[z>−1]` | `−(1−z)₊ − (1+z)₊` |
//! | Huber, threshold δ | `½(z−y)²` within δ, `δ\|z−y\| − ½δ²` beyond | `z − y`, held within ±δ | 1 within, 0 beyond | `−a` |
//!
//! A label of two classes is 0 or 1, and what a change of it means is the same for both losses of two classes: they are linear
//! in y between the two. Squared hinge and Huber's loss have no second derivative at a kink (`z = ±1`, `|z − y| = δ`): the
//! curvature there is that of the side where it is smaller, one element of the generalised Hessian, and the model has a
//! directional derivative but no Jacobian with respect to such a record. [`Family::kink`] tells how near a record is to one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A positive number that tells one member of a family from another: a power, or a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Parameter(f64);

// No NaN is one.
impl Eq for Parameter {}

impl Parameter {
    /// One.
    pub(super) const ONE: Self = Self(1.0);

    /// A finite number above zero; `None` for any other.
    pub fn new(value: f64) -> Option<Self> {
        (value > 0.0 && value.is_finite()).then_some(Self(value))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Parameter {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        Self::new(value).ok_or("expected a finite number above zero")
    }
}

impl From<Parameter> for f64 {
    fn from(parameter: Parameter) -> Self {
        parameter.value()
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A family of generalised linear models with its loss `ℓ(z, y)`, `z = wᵀx`. It is written as its name, with its parameter in
/// brackets where it has one: `linear`, `tweedie(1.5)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "super::ModelKind", into = "super::ModelKind")]
pub enum Family {
    /// Least squares, `½(z − y)²`.
    #[default]
    Linear,
    /// Two classes, `log(1 + eᶻ) − yz`, y ∈ {0, 1}.
    Logistic,
    /// Counts, `eᶻ − yz`, y ≥ 0.
    Poisson,
    /// Positive numbers whose spread grows with their mean, `z + ye⁻ᶻ`, y > 0.
    Gamma,
    /// Numbers that are zero or positive, between Poisson and gamma: half the deviance of power p, 1 < p < 2, y ≥ 0.
    Tweedie(Parameter),
    /// Two classes, `½(1 − z)₊²` for y = 1 and `½(1 + z)₊²` for y = 0: a linear support vector machine.
    SquaredHinge,
    /// Least squares within a threshold δ, the size of the error beyond: numbers of which some are far out.
    Huber(Parameter),
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
    /// `c = ∂²ℓ/∂z∂y`.
    pub c: f64,
}

impl Family {
    /// Loss and derivatives at linear predictor `z` and target `y`.
    pub fn terms(self, z: f64, y: f64) -> Terms {
        match self {
            Self::Linear => {
                let r = z - y;
                Terms { loss: 0.5 * r * r, r, a: 1.0, c: -1.0 }
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
                Terms { loss, r, a: high * low, c: -1.0 }
            }
            Self::Poisson => {
                let mu = z.exp();
                Terms { loss: mu - y * z, r: mu - y, a: mu, c: -1.0 }
            }
            Self::Gamma => {
                let e = (-z).exp();
                Terms { loss: z + y * e, r: 1.0 - y * e, a: y * e, c: -e }
            }
            Self::Tweedie(power) => {
                let (k, l) = (2.0 - power.value(), power.value() - 1.0);
                let (mean, weight) = ((k * z).exp(), (-l * z).exp());
                let own = if y == 0.0 { 0.0 } else { y * weight };
                Terms { loss: mean / k + own / l, r: mean - own, a: k * mean + l * own, c: -weight }
            }
            Self::SquaredHinge => {
                let (high, low) = ((1.0 - z).max(0.0), (1.0 + z).max(0.0));
                let is = |inside: bool| f64::from(u8::from(inside));
                Terms {
                    loss: 0.5 * (y * high * high + (1.0 - y) * low * low),
                    r: (1.0 - y) * low - y * high,
                    a: y * is(z < 1.0) + (1.0 - y) * is(z > -1.0),
                    c: -high - low,
                }
            }
            Self::Huber(threshold) => {
                let (r, delta) = (z - y, threshold.value());
                if r.abs() < delta {
                    Terms { loss: 0.5 * r * r, r, a: 1.0, c: -1.0 }
                } else {
                    Terms { loss: delta * (r.abs() - 0.5 * delta), r: delta.copysign(r), a: 0.0, c: 0.0 }
                }
            }
        }
    }

    /// `∂a/∂z` and `∂a/∂y = ∂c/∂z`, from the terms at the same place; zero at kinks.
    pub fn third(self, z: f64, t: Terms) -> (f64, f64) {
        match self {
            Self::Linear | Self::Huber(_) => (0.0, 0.0),
            // a(1 − 2s) = −a tanh(z/2)
            Self::Logistic => (-t.a * (0.5 * z).tanh(), 0.0),
            Self::Poisson => (t.a, 0.0),
            Self::Gamma => (-t.a, -t.c),
            Self::Tweedie(power) => {
                let (k, l) = (2.0 - power.value(), power.value() - 1.0);
                let (mean, own) = Self::parts(k, t);
                (k * k * mean - l * l * own, -l * t.c)
            }
            Self::SquaredHinge if z.abs() > 1.0 => (0.0, -z.signum()),
            Self::SquaredHinge => (0.0, 0.0),
        }
    }

    /// `e^{(2−p)z}` and `ye^{(1−p)z}` of a Tweedie model, `k = 2 − p`: `r` is their difference and `a = k(first) + (1−k)(second)`.
    fn parts(k: f64, t: Terms) -> (f64, f64) {
        let own = (t.a - k * t.r).max(0.0);
        ((t.r + own).max(0.0), own)
    }

    /// What `r` at label `y` is a sum of, in size, `reach` being `‖x‖‖w‖`: a rounding of `r` is this much times ε.
    ///
    /// Where `r` is formed from complements it carries a rounding of its own size alone, and what the rounding of z
    /// makes of it; elsewhere prediction and label cancel.
    pub(crate) fn slope_size(self, t: Terms, y: f64, reach: f64) -> f64 {
        match self {
            Self::Logistic if y == 0.0 || y == 1.0 => t.r.abs() + t.a * reach,
            Self::Linear | Self::Logistic | Self::Poisson => (t.r + y).abs() + y.abs(),
            Self::Gamma => 1.0 + t.a,
            Self::Tweedie(power) => {
                let (mean, own) = Self::parts(2.0 - power.value(), t);
                mean + own
            }
            // Beyond a kink r is held, or zero.
            Self::SquaredHinge | Self::Huber(_) if t.a == 0.0 => t.r.abs(),
            Self::SquaredHinge => 2.0 + t.r.abs(),
            Self::Huber(_) => (t.r + y).abs() + y.abs(),
        }
    }

    /// Whether the curvature `a` is the same for every record and every `w`.
    pub fn constant_curvature(self) -> bool {
        match self {
            Self::Linear => true,
            Self::Logistic
            | Self::Poisson
            | Self::Gamma
            | Self::Tweedie(_)
            | Self::SquaredHinge
            | Self::Huber(_) => false,
        }
    }

    /// Whether the label acts on the slope as much for every record: `c = −1`.
    pub fn constant_coupling(self) -> bool {
        match self {
            Self::Linear | Self::Logistic | Self::Poisson => true,
            Self::Gamma | Self::Tweedie(_) | Self::SquaredHinge | Self::Huber(_) => false,
        }
    }

    /// Whether `|∂a/∂z| ≤ a`, on which limits of the error of a Newton step rest; false where the curvature jumps.
    pub fn self_concordant(self) -> bool {
        match self {
            // Tweedie: |k²m − l²o| ≤ max(k, l)(km + lo), both at most 1.
            Self::Linear | Self::Logistic | Self::Poisson | Self::Gamma | Self::Tweedie(_) => true,
            Self::SquaredHinge | Self::Huber(_) => false,
        }
    }

    /// Whether the label is one of two classes, 0 or 1.
    pub fn two_classes(self) -> bool {
        match self {
            Self::Logistic | Self::SquaredHinge => true,
            Self::Linear | Self::Poisson | Self::Gamma | Self::Tweedie(_) | Self::Huber(_) => false,
        }
    }

    /// Distance of a record's predictor from the nearest place where the curvature jumps; none where it never does.
    pub fn kink(self, z: f64, y: f64) -> Option<f64> {
        match self {
            Self::Linear | Self::Logistic | Self::Poisson | Self::Gamma | Self::Tweedie(_) => None,
            // The side that the label is on; the other half of the loss has weight zero.
            Self::SquaredHinge => Some(if y > 0.5 { (z - 1.0).abs() } else { (z + 1.0).abs() }),
            Self::Huber(threshold) => Some(((z - y).abs() - threshold.value()).abs()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One member of each family.
    pub(crate) fn every() -> Vec<Family> {
        let parameter = |v| Parameter::new(v).unwrap();
        vec![
            Family::Linear,
            Family::Logistic,
            Family::Poisson,
            Family::Gamma,
            Family::Tweedie(parameter(1.5)),
            Family::Tweedie(parameter(1.15)),
            Family::SquaredHinge,
            Family::Huber(parameter(0.8)),
        ]
    }

    /// Every family passes: derivatives against central differences of the loss, away from kinks.
    #[test]
    fn derivatives_match_finite_differences() {
        for family in every() {
            for z in [-3.0, -0.4, 0.0, 0.7, 2.5] {
                for y in [0.0, 1.0] {
                    let h = 1e-5;
                    let t = family.terms(z, y);
                    let (up, down) = (family.terms(z + h, y), family.terms(z - h, y));
                    let size = 1.0 + t.loss.abs() + t.a;
                    let near = |a: f64, b: f64, name: &str| {
                        assert!((a - b).abs() < 1e-8 * size, "{family:?} {name} at {z}, {y}: {a} and {b}");
                    };
                    near(t.r, (up.loss - down.loss) / (2.0 * h), "r");
                    near(t.a, (up.r - down.r) / (2.0 * h), "a");
                    let (more, less) = (family.terms(z, y + h), family.terms(z, y - h));
                    near(t.c, (more.r - less.r) / (2.0 * h), "c");
                    let (a1, c1) = family.third(z, t);
                    near(a1, (up.a - down.a) / (2.0 * h), "∂a/∂z");
                    near(c1, (up.c - down.c) / (2.0 * h), "∂c/∂z");
                    near(c1, (more.a - less.a) / (2.0 * h), "∂a/∂y");
                }
            }
        }
    }

    #[test]
    fn self_concordance_holds_where_it_is_claimed() {
        for family in every().into_iter().filter(|f| f.self_concordant()) {
            for k in -60..=60 {
                for y in [0.0, 1.0, 7.5] {
                    let z = f64::from(k) / 10.0;
                    let t = family.terms(z, y);
                    assert!(family.third(z, t).0.abs() <= t.a * (1.0 + 1e-9) + 1e-12, "{family:?} {z} {y}");
                }
            }
        }
    }

    #[test]
    fn kinks_are_where_the_curvature_jumps() {
        let huber = Family::Huber(Parameter::new(0.8).unwrap());
        for (family, z, y) in [
            (Family::SquaredHinge, 1.0, 1.0),
            (Family::SquaredHinge, -1.0, 0.0),
            (huber, 2.8, 2.0),
            (huber, 1.2, 2.0),
        ] {
            let h = 1e-9;
            assert!(family.kink(z, y).unwrap() < 1e-12);
            assert!((family.kink(z + h, y).unwrap() - h).abs() < 1e-12);
            let (up, down) = (family.terms(z + h, y), family.terms(z - h, y));
            assert_eq!((up.a - down.a).abs(), 1.0, "{family:?}");
            assert!((up.loss - down.loss).abs() < 1e-8 && (up.r - down.r).abs() < 1e-8, "{family:?}");
        }
        assert_eq!(Family::Gamma.kink(1.0, 1.0), None);
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
