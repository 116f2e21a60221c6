//! The shape of the noise: the options that commands share, and the noise that meets their targets on a fitted model.
//!
//! | file | holds |
//! |---|---|
//! | here | [`NoiseOptions`], checked once |
//! | `target` | names and units of users → targets of [`leakscope_core::fisher::noise`] |
//! | `shaped` | [`design`]: the noise, and what is taken instead where its shape would give too much away |
//! | `public` | rows that are public: another table, or made up from the bounds of columns alone |
//! | `counted` | room for what a record does to the scaling of its columns |
//! | `unit` | the noise on the axis of isotropic noise, for attacks and bounds |
//! | `describe` | the noise as a document, with the directions that carry it |
//!
//! A shape has no σ: it is made for a target, and its scale is the smallest on a public grid that meets it for every
//! record. What it costs is `tr(ΣA)`, the error that it adds to predictions.

mod counted;
mod describe;
pub(crate) mod public;
mod shaped;
mod target;
mod unit;

pub use counted::{Scaled, count_scaling};
pub(crate) use describe::isotropic_sigma;
pub use describe::{cost_of, described};
pub use shaped::{Designed, Model, ShapeSource, alternatives, design};
pub(crate) use shaped::{failed, of_all_classes};
pub use target::GoalTargets;
pub use unit::UnitShape;

use crate::{Failure, Result};
use leakscope_core::fisher::noise::Shape;
use leakscope_table::ReadOptions;
use serde::{Deserialize, Serialize};

/// The smallest gap that is looked for.
const LEAST_GAP: f64 = 1e-4;

/// What shape the noise has, and what it must achieve.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseOptions {
    /// The shape.
    pub shape: Shape,
    /// Attributes (or the target) that `target_eta` is for; whole records without any.
    pub protect: Vec<String>,
    /// Largest η of every record, or of what `protect` names of every record.
    pub target_eta: Option<f64>,
    /// Attributes (or the target), each with the smallest standard deviation that an unbiased estimate of it may have for any
    /// record, in its own units.
    pub target_sd: Vec<(String, f64)>,
    /// Share of `η²` that the covariance itself may give away.
    pub shape_budget: f64,
    /// A public table of the same columns, from which the shape is taken.
    pub shape_from: Option<ReadOptions>,
    /// Relative gap between cost and certificate at which an optimal shape is good enough.
    pub gap: f64,
}

impl Default for NoiseOptions {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            protect: vec![],
            target_eta: None,
            target_sd: vec![],
            shape_budget: 0.05,
            shape_from: None,
            gap: 0.01,
        }
    }
}

impl NoiseOptions {
    /// Whether the noise has a shape.
    pub fn is_shaped(&self) -> bool {
        match self.shape {
            Shape::Isotropic => false,
            Shape::Shaped | Shape::Optimal => true,
        }
    }

    /// Whether anything is said about a target.
    pub fn has_target(&self) -> bool {
        self.target_eta.is_some() || !self.target_sd.is_empty()
    }

    /// Checks what needs no table.
    pub fn check(&self) -> Result<()> {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        if !self.has_target() {
            let message = "noise with a shape needs to know what it must achieve: give ⟨target_eta⟩, or ⟨target_sd⟩ for an \
                           attribute";
            return Err(Failure::option("noise_shape", message));
        }
        if let Some(eta) = self.target_eta.filter(|eta| !is_positive(*eta)) {
            return Err(Failure::number("target_eta", eta, "expected a positive number"));
        }
        for (k, (name, sd)) in self.target_sd.iter().enumerate() {
            if !is_positive(*sd) {
                return Err(Failure::option("target_sd", format!("{name}={sd}: expected a positive number")));
            }
            if self.target_sd[..k].iter().any(|(other, _)| other == name) {
                return Err(Failure::option("target_sd", format!("`{name}` has a target already")));
            }
        }
        if !self.protect.is_empty() && self.target_eta.is_none() {
            let message = "say how well with ⟨target_eta⟩, or give ⟨target_sd⟩ for each attribute instead";
            return Err(Failure::option("protect", message));
        }
        for (k, name) in self.protect.iter().enumerate() {
            if self.protect[..k].contains(name) || self.target_sd.iter().any(|(other, _)| other == name) {
                return Err(Failure::option("protect", format!("`{name}` has a target already")));
            }
        }
        if !(self.shape_budget > 0.0 && self.shape_budget <= 1.0) {
            let expected = "expected a share above 0, at most 1";
            return Err(Failure::number("shape_budget", self.shape_budget, expected));
        }
        if !(self.gap >= LEAST_GAP && self.gap.is_finite()) {
            return Err(Failure::number(
                "gap",
                self.gap,
                format!("expected a number of at least {LEAST_GAP}"),
            ));
        }
        if self.shape_from.is_some() && !self.is_shaped() {
            let message = "isotropic noise has no shape to take from a table: add ⟨noise_shape=shaped⟩ or ⟨noise_shape=optimal⟩";
            return Err(Failure::option("shape_from", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(options: NoiseOptions) -> Option<String> {
        match options.check() {
            Err(Failure::Option { name, .. }) => Some(name),
            Err(other) => panic!("no option is named: {other}"),
            Ok(()) => None,
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_named() {
        let eta = || NoiseOptions { target_eta: Some(1.0), shape: Shape::Shaped, ..Default::default() };
        assert_eq!(named(eta()), None);
        assert_eq!(named(NoiseOptions { target_eta: None, ..eta() }).as_deref(), Some("noise_shape"));
        assert_eq!(named(NoiseOptions { target_eta: Some(-1.0), ..eta() }).as_deref(), Some("target_eta"));
        assert_eq!(
            named(NoiseOptions { target_eta: Some(f64::NAN), ..eta() }).as_deref(),
            Some("target_eta")
        );
        let twice = vec![("age".to_owned(), 1.0), ("age".to_owned(), 2.0)];
        assert_eq!(named(NoiseOptions { target_sd: twice, ..eta() }).as_deref(), Some("target_sd"));
        let sd = vec![("age".to_owned(), 0.0)];
        assert_eq!(named(NoiseOptions { target_sd: sd, ..eta() }).as_deref(), Some("target_sd"));
        let both =
            NoiseOptions { protect: vec!["age".into()], target_sd: vec![("age".into(), 1.0)], ..eta() };
        assert_eq!(named(both).as_deref(), Some("protect"));
        let no_eta = NoiseOptions {
            protect: vec!["age".into()],
            target_eta: None,
            target_sd: vec![("bmi".into(), 1.0)],
            ..eta()
        };
        assert_eq!(named(no_eta).as_deref(), Some("protect"));
        assert_eq!(named(NoiseOptions { shape_budget: 0.0, ..eta() }).as_deref(), Some("shape_budget"));
        assert_eq!(named(NoiseOptions { gap: 0.0, ..eta() }).as_deref(), Some("gap"));
        let from =
            NoiseOptions { shape: Shape::Isotropic, shape_from: Some(ReadOptions::default()), ..eta() };
        assert_eq!(named(from).as_deref(), Some("shape_from"));
    }
}
