//! What `leakscope balance` found, as plain data.

use super::choice::{Metric, Stopped};
use super::noise::Goal;
use super::subject::Subject;
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_core::fisher::noise::Shape;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the schema of `balance.json`.
pub const SCHEMA: &str = "leakscope.balance/1";

/// Everything that one balancing found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Data and model.
    pub subject: Subject,
    /// Standard deviation of the noise on every coefficient.
    pub sigma: f64,
    /// The attribute whose η is balanced; absent for whole records.
    pub attribute: Option<String>,
    /// Which records share a weight.
    pub sharing: Sharing,
    /// Which η the weights are divided by.
    pub variant: Variant,
    /// How weights are updated.
    pub update: Update,
    /// Smallest and largest weight allowed.
    pub clamp: Option<(f64, f64)>,
    /// The spread at which it stops.
    pub tolerance: f64,
    /// Seed of the held-out split, where there was one.
    pub seed: Option<u64>,
    /// What the scores are.
    pub metric: Metric,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// Every iteration; 0 is before reweighting.
    pub iterations: Vec<Step>,
    /// The same data under the other variant, and under the published update beside an accelerated one.
    pub comparisons: Vec<Comparison>,
    /// The iteration whose weights and model are written: that of the smallest spread.
    pub best: usize,
    /// Why it stopped.
    pub stopped: Stopped,
    /// Whether the spread came down and the last iteration is the best.
    pub converging: bool,
    /// Coefficients of the best model by column.
    pub coefficients: BTreeMap<String, f64>,
    /// Things the user should know, in whole sentences.
    pub warnings: Vec<String>,
    /// What was done with the table and asks for nothing, in whole sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What balancing and the shape of the noise buy for the same targets, where noise was made for some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought: Option<Bought>,
    /// What a release gives away: η that counts how the weights depend on the records. Absent where it is not known (shared or
    /// clamped weights, the accelerated update, noise with a shape) or would take too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Seconds in all.
    pub seconds: f64,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// The balanced model alone: `model.json` beside the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BalancedModel {
    /// Coefficients of the encoded columns, by name; the intercept is `(intercept)`.
    pub coefficients: BTreeMap<String, f64>,
}

/// Leakage with the weights counted as the functions of the data that they are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Of the iteration that is kept.
    pub kept: CountedEta,
    /// The iteration up to that whose counted η is most even.
    pub most_even: usize,
    /// Of that one.
    pub at_most_even: CountedEta,
}

/// Counted η over the records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CountedEta {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation over mean.
    pub spread: f64,
}

/// What balancing and the shape of the noise buy, alone and together. η is measured with weights and shape held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bought {
    /// What the noise protects.
    pub goals: Vec<Goal>,
    /// How often weights and shape were found in turn.
    pub rounds: usize,
    /// Neither, balancing alone, the shape alone, both.
    pub gains: Vec<Gain>,
}

/// The error that one way adds to predictions: exact for squared error, to second order for other families.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Whether weights balance leakage.
    pub balanced: bool,
    /// Shape of the noise.
    pub shape: Shape,
    /// What the weights add, by moving the model.
    pub weights: f64,
    /// What the noise adds at the targets, `tr(ΣA)`.
    pub noise: f64,
}

impl Gain {
    /// Both together.
    pub fn error(&self) -> f64 {
        self.weights + self.noise
    }

    /// In words.
    pub fn name(&self) -> &'static str {
        match (self.balanced, self.shape) {
            (false, Shape::Isotropic) => "isotropic noise",
            (true, Shape::Isotropic) => "balancing alone",
            (false, Shape::Shaped | Shape::Optimal) => "shape alone",
            (true, Shape::Shaped | Shape::Optimal) => "balancing and shape",
        }
    }
}

/// One model on the way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Reweightings so far.
    pub iteration: usize,
    /// Mean of η (with the factor ω).
    pub eta_mean: f64,
    /// Standard deviation of η.
    pub eta_std: f64,
    /// Largest η.
    pub eta_max: f64,
    /// Mean of η without the factor ω: what an attacker faces who does not know the weights.
    pub eta_unweighted_mean: f64,
    /// Its standard deviation.
    pub eta_unweighted_std: f64,
    /// Its largest value.
    pub eta_unweighted_max: f64,
    /// Score on the training rows.
    pub train_score: Option<f64>,
    /// Score on the held-out or test rows.
    pub test_score: Option<f64>,
    /// Smallest weight.
    pub weight_min: f64,
    /// Largest weight.
    pub weight_max: f64,
}

impl Step {
    /// Standard deviation over mean of η.
    pub fn spread(&self) -> f64 {
        if self.eta_mean > 0.0 { self.eta_std / self.eta_mean } else { 0.0 }
    }

    /// The same without the factor ω.
    pub fn spread_unweighted(&self) -> f64 {
        if self.eta_unweighted_mean > 0.0 { self.eta_unweighted_std / self.eta_unweighted_mean } else { 0.0 }
    }
}

/// Another way to balance the same data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Which η the weights are divided by.
    pub variant: Variant,
    /// How weights are updated.
    pub update: Update,
    /// Its iterations.
    pub iterations: Vec<Step>,
}
