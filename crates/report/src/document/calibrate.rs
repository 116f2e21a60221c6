//! What `leakscope calibrate` solved for, as plain data.

use super::choice::{Metric, Statistic};
use super::noise::{Goal, Noise};
use super::subject::Subject;
use leakscope_core::dp::{Adjacency, Calibration as Solved, Target, Unknown};
use serde::{Deserialize, Serialize};

/// Name and version of the schema.
pub const SCHEMA: &str = "leakscope.calibrate/1";

/// The answer of one calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: String,
    /// What had to be met.
    pub target: Aim,
    /// What was solved for.
    pub solved_for: SolvedFor,
    /// The noise.
    pub sigma: f64,
    /// Sampling rate and steps, for private training.
    #[serde(flatten)]
    pub training: Option<Steps>,
    /// What is achieved: on the safe side of the target.
    pub achieved: f64,
    /// ε at δ = 1e-5 of private training whose target is another: at a small sampling rate few records are drawn, and those may
    /// be laid bare where an advantage on average is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// The model, what the noise costs and the seed of the split, for the noise on a table's model.
    #[serde(flatten)]
    pub model: Option<OnModel>,
    /// Noise with a shape, and what each shape costs; `sigma` is then that of isotropic noise which costs as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
}

/// What had to be met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Aim {
    /// A target of private training.
    Training(Target),
    /// A target on a secret or on a table's model.
    Leakage(Leakage),
}

/// A target on a secret or on a table's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Leakage {
    /// A statistic of η over records.
    Eta {
        /// The most it may be.
        eta: f64,
        /// The statistic.
        statistic: Statistic,
    },
    /// Least standard deviation of any unbiased estimate.
    Sd {
        /// Of this attribute.
        attribute: String,
        /// In its own units.
        sd: f64,
    },
    /// Goals of noise with a shape, met for every record; what is achieved is the largest η over its target.
    Goals {
        /// The goals.
        goals: Vec<Goal>,
    },
    /// Probability of guessing a secret.
    Guessing {
        /// The column, where there is a table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        /// The most it may be.
        success: f64,
        /// Whether that is for every record, or on average over them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_record: Option<bool>,
        /// Prior probability of the likeliest value, where there is no table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most_likely: Option<f64>,
    },
}

/// What was solved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SolvedFor {
    /// The noise.
    Sigma,
    /// The sampling rate.
    Rate,
    /// The number of steps.
    Steps,
}

/// Private training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Sampling rate.
    pub rate: f64,
    /// Number of steps.
    pub steps: u64,
    /// Which two data sets are not told apart.
    pub adjacency: Adjacency,
}

/// Noise on the coefficients of a table's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnModel {
    /// Data and model.
    pub subject: Subject,
    /// What the noise costs.
    pub utility: Utility,
    /// Seed of the held-out split, where there was one.
    pub seed: Option<u64>,
    /// What the target is not met for, in whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What noise costs; the expectation is exact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Utility {
    /// The rows.
    pub on: Scored,
    /// What is measured.
    pub metric: Metric,
    /// Without noise.
    pub without_noise: f64,
    /// At the noise that was solved for.
    pub at_sigma: f64,
    /// Of a model without columns.
    pub constant_model: f64,
}

/// Which rows a score is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scored {
    /// Rows that the model was not fitted to.
    HeldOut,
    /// The rows that it was fitted to, where there are no others: what noise costs shows, how good the model is does
    /// not.
    Training,
}

impl Calibration {
    /// Private training that meets a target.
    pub fn of_training(target: Target, unknown: Unknown, solved: &Solved) -> Self {
        Self {
            schema: SCHEMA.into(),
            target: Aim::Training(target),
            solved_for: match unknown {
                Unknown::Sigma { .. } => SolvedFor::Sigma,
                Unknown::Rate { .. } => SolvedFor::Rate,
                Unknown::Steps { .. } => SolvedFor::Steps,
            },
            sigma: solved.sigma,
            training: Some(Steps { rate: solved.rate, steps: solved.steps, adjacency: solved.adjacency }),
            achieved: solved.achieved,
            epsilon: None,
            model: None,
            noise: None,
        }
    }

    /// Noise that meets a target on a secret or on a table's model.
    pub fn of_noise(target: Leakage, sigma: f64, achieved: f64, model: Option<OnModel>) -> Self {
        Self {
            schema: SCHEMA.into(),
            target: Aim::Leakage(target),
            solved_for: SolvedFor::Sigma,
            sigma,
            training: None,
            achieved,
            epsilon: None,
            model,
            noise: None,
        }
    }
}
