//! What a model is called, and how it is written in a request or a document.

use super::family::{Family, Parameter};
use crate::error::Setting;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kind of model: a family with one vector of coefficients, or softmax regression with one for each class. It is written as
/// its name, with its parameter in brackets where it has one: `linear`, `tweedie(1.5)`, `huber(1.35)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ModelKind {
    /// [`Family::Linear`].
    #[default]
    Linear,
    /// [`Family::Logistic`].
    Logistic,
    /// [`Family::Poisson`].
    Poisson,
    /// [`Family::Gamma`].
    Gamma,
    /// [`Family::Tweedie`].
    Tweedie(Parameter),
    /// [`Family::SquaredHinge`].
    SquaredHinge,
    /// [`Family::Huber`].
    Huber(Parameter),
    /// Two or more classes, `−log π_y`, `π = softmax(Wx)`.
    Softmax,
}

/// The name of a kind, without its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ModelName {
    /// Least squares, `½(z − y)²`
    #[default]
    Linear,
    /// Two classes, `log(1 + eᶻ) − yz`, y ∈ {0, 1}
    Logistic,
    /// Counts, `eᶻ − yz`, y ≥ 0
    Poisson,
    /// Positive numbers whose spread grows with their mean, `z + ye⁻ᶻ`
    Gamma,
    /// Numbers ≥ 0 between counts and gamma: half the deviance of `--power`
    Tweedie,
    /// Two classes, a linear support vector machine: `½(1 − z)₊²` or `½(1 + z)₊²`
    SquaredHinge,
    /// Least squares within `--huber-threshold`, the size of the error beyond
    Huber,
    /// Two or more classes, `−log π_y`, `π = softmax(Wx)`
    Softmax,
}

impl ModelName {
    const ALL: [Self; 8] = [
        Self::Linear,
        Self::Logistic,
        Self::Poisson,
        Self::Gamma,
        Self::Tweedie,
        Self::SquaredHinge,
        Self::Huber,
        Self::Softmax,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Poisson => "poisson",
            Self::Gamma => "gamma",
            Self::Tweedie => "tweedie",
            Self::SquaredHinge => "squared-hinge",
            Self::Huber => "huber",
            Self::Softmax => "softmax",
        }
    }

    /// The kind of this name. Powers 1 and 2 are Poisson and gamma regression, power 0 least squares.
    ///
    /// # Errors
    /// [`Error::Setting`] for a power or a threshold that is missing, of another kind, or outside its range.
    pub fn kind(self, power: Option<f64>, threshold: Option<f64>) -> Result<ModelKind> {
        let stray = match self {
            Self::Tweedie => threshold.map(|v| (Setting::Threshold, v, "a huber model, which alone has one")),
            Self::Huber => power.map(|v| (Setting::Power, v, "a tweedie model, which alone has one")),
            Self::Linear
            | Self::Logistic
            | Self::Poisson
            | Self::Gamma
            | Self::SquaredHinge
            | Self::Softmax => power
                .map(|v| (Setting::Power, v, "a tweedie model, which alone has one"))
                .or(threshold.map(|v| (Setting::Threshold, v, "a huber model, which alone has one"))),
        };
        if let Some((setting, value, expected)) = stray {
            return Err(Error::Setting { setting, value, expected });
        }
        Ok(match self {
            Self::Linear => ModelKind::Linear,
            Self::Logistic => ModelKind::Logistic,
            Self::Poisson => ModelKind::Poisson,
            Self::Gamma => ModelKind::Gamma,
            Self::SquaredHinge => ModelKind::SquaredHinge,
            Self::Softmax => ModelKind::Softmax,
            Self::Tweedie => ModelKind::tweedie(power.unwrap_or(ModelKind::POWER))?,
            Self::Huber => ModelKind::huber(threshold.unwrap_or(ModelKind::THRESHOLD))?,
        })
    }
}

impl ModelKind {
    /// Power of a Tweedie model where none is given.
    pub const POWER: f64 = 1.5;
    /// Threshold of Huber's loss where none is given: 95% as good as least squares where errors are normal with deviation one.
    pub const THRESHOLD: f64 = 1.35;

    /// A Tweedie model with a logarithmic link. Powers 1 and 2 are Poisson and gamma regression.
    ///
    /// # Errors
    /// [`Error::Setting`] for other powers: those between 0 and 1 are of no distribution, and above 2 the loss is not convex
    /// in z, so that a minimiser need not be the only one.
    pub fn tweedie(power: f64) -> Result<Self> {
        let expected = "a number from 1 to 2 (0 is linear regression; above 2 the loss is not convex)";
        match (power, Parameter::new(power)) {
            (1.0, _) => Ok(Self::Poisson),
            (2.0, _) => Ok(Self::Gamma),
            (power, Some(p)) if power > 1.0 && power < 2.0 => Ok(Self::Tweedie(p)),
            _ => Err(Error::Setting { setting: Setting::Power, value: power, expected }),
        }
    }

    /// A model of Huber's loss.
    ///
    /// # Errors
    /// [`Error::Setting`] for a threshold that is not positive.
    pub fn huber(threshold: f64) -> Result<Self> {
        let expected = "a positive number, in the unit of the target";
        let wrong = Error::Setting { setting: Setting::Threshold, value: threshold, expected };
        Parameter::new(threshold).map(Self::Huber).ok_or(wrong)
    }

    /// The family, where the model has one vector of coefficients.
    pub fn family(self) -> Option<Family> {
        match self {
            Self::Linear => Some(Family::Linear),
            Self::Logistic => Some(Family::Logistic),
            Self::Poisson => Some(Family::Poisson),
            Self::Gamma => Some(Family::Gamma),
            Self::Tweedie(power) => Some(Family::Tweedie(power)),
            Self::SquaredHinge => Some(Family::SquaredHinge),
            Self::Huber(threshold) => Some(Family::Huber(threshold)),
            Self::Softmax => None,
        }
    }

    /// Its name without a parameter.
    pub fn name(self) -> &'static str {
        self.model_name().name()
    }

    fn model_name(self) -> ModelName {
        match self {
            Self::Linear => ModelName::Linear,
            Self::Logistic => ModelName::Logistic,
            Self::Poisson => ModelName::Poisson,
            Self::Gamma => ModelName::Gamma,
            Self::Tweedie(_) => ModelName::Tweedie,
            Self::SquaredHinge => ModelName::SquaredHinge,
            Self::Huber(_) => ModelName::Huber,
            Self::Softmax => ModelName::Softmax,
        }
    }

    /// Its parameter with the option that says it.
    pub fn parameter(self) -> Option<(&'static str, f64)> {
        match self {
            Self::Tweedie(power) => Some(("power", power.value())),
            Self::Huber(threshold) => Some(("huber-threshold", threshold.value())),
            Self::Linear
            | Self::Logistic
            | Self::Poisson
            | Self::Gamma
            | Self::SquaredHinge
            | Self::Softmax => None,
        }
    }

    /// What the model is, in words.
    pub fn title(self) -> String {
        match self {
            Self::SquaredHinge => "linear support vector machine (squared hinge)".into(),
            Self::Tweedie(power) => format!("Tweedie regression of power {power}"),
            Self::Huber(threshold) => format!("Huber regression with threshold {threshold}"),
            Self::Linear | Self::Logistic | Self::Poisson | Self::Gamma | Self::Softmax => {
                format!("{} regression", self.name())
            }
        }
    }
}

impl From<Family> for ModelKind {
    fn from(family: Family) -> Self {
        match family {
            Family::Linear => Self::Linear,
            Family::Logistic => Self::Logistic,
            Family::Poisson => Self::Poisson,
            Family::Gamma => Self::Gamma,
            Family::Tweedie(power) => Self::Tweedie(power),
            Family::SquaredHinge => Self::SquaredHinge,
            Family::Huber(threshold) => Self::Huber(threshold),
        }
    }
}

impl TryFrom<ModelKind> for Family {
    type Error = &'static str;

    fn try_from(kind: ModelKind) -> std::result::Result<Self, Self::Error> {
        kind.family().ok_or("softmax has a vector of coefficients for each class: expected a family with one")
    }
}

impl Family {
    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        ModelKind::from(self).name()
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter() {
            Some((_, value)) => write!(f, "{}({value})", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

impl From<ModelKind> for String {
    fn from(kind: ModelKind) -> Self {
        kind.to_string()
    }
}

impl FromStr for ModelKind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let unknown = || {
            let names: Vec<&str> = ModelName::ALL.iter().map(|n| n.name()).collect();
            format!("`{text}`: expected one of {}", names.join(", "))
        };
        let (name, value) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some((name, value)) => (name, Some(value.trim().parse::<f64>().map_err(|_| unknown())?)),
            None => (text, None),
        };
        let named = ModelName::ALL.into_iter().find(|n| n.name() == name).ok_or_else(unknown)?;
        let (power, threshold) = if named == ModelName::Huber { (None, value) } else { (value, None) };
        named.kind(power, threshold).map_err(|e| e.to_string())
    }
}

impl TryFrom<String> for ModelKind {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_and_read_back() {
        for family in crate::glm::every_family() {
            let kind = ModelKind::from(family);
            let written = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<ModelKind>(&written).unwrap(), kind, "{written}");
            assert_eq!(serde_json::from_str::<Family>(&written).unwrap(), family, "{written}");
            assert_eq!(kind.family(), Some(family));
        }
        assert_eq!(ModelKind::huber(0.1 + 0.2).unwrap().to_string(), "huber(0.30000000000000004)");
        assert_eq!("tweedie".parse(), Ok(ModelKind::tweedie(1.5).unwrap()));
        assert!(serde_json::from_str::<Family>("\"softmax\"").is_err());
    }

    #[test]
    fn parameters_outside_their_range_or_of_other_kinds_are_refused() {
        for power in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.5, 2.1, 3.0] {
            assert!(ModelKind::tweedie(power).is_err(), "{power}");
        }
        for threshold in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(ModelKind::huber(threshold).is_err(), "{threshold}");
        }
        assert_eq!(ModelKind::tweedie(1.0), Ok(ModelKind::Poisson));
        assert_eq!(ModelKind::tweedie(2.0), Ok(ModelKind::Gamma));
        for text in
            ["linear(1)", "gamma(2)", "tweedie(x)", "tweedie(3)", "huber(-1)", "ridge", "", "huber(1", "()"]
        {
            let error = text.parse::<ModelKind>().unwrap_err();
            assert!(error.contains("expected"), "{text}: {error}");
        }
        assert!(ModelName::Huber.kind(Some(1.5), None).is_err());
        assert!(ModelName::Tweedie.kind(None, Some(1.5)).is_err());
    }
}
