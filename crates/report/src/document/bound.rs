//! What `leakscope bound` found, as plain data.

use super::attack::{AttackResult, Secret, Utility};
use super::noise::Noise;
use super::subject::Subject;
use crate::figure::Figure;
use leakscope_core::bound::records::{AtSigma, RecordBound};
use leakscope_core::bound::table::{Bounds, Optimal, SuccessBound};
use leakscope_core::claim::{Bound, Measured, Observed, Theorem};
use leakscope_core::num::Summary;
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `bound.json`.
pub const SCHEMA: &str = "leakscope.bound/1";

/// Everything that `bound` found about one secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecretBounds {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// What the attacker sees, in words.
    pub setting: String,
    /// What curves say, in whole sentences, where there is no single answer.
    #[serde(rename = "said", default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<String>,
    /// Number of values of the secret; absent for a continuous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<u64>,
    /// Prior probability of the likeliest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_likely: Option<f64>,
    /// The noise that `bounds` are about, where there is one noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Every bound that applies, the tightest first. From data: on the share of records guessed right.
    pub bounds: Vec<Row>,
    /// What the optimal attack achieves, where it is known or was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimal: Option<Optimal>,
    /// Bounds on the error of estimates of a continuous secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimation: Vec<Estimation>,
    /// Errors of estimates that are estimates themselves: no bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typical: Vec<Typical>,
    /// ε at δ = 1e-5 of private releases, which no success on average shows: at a small sampling rate few records are drawn, and those
    /// may be laid bare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Whether the prior was counted from a column of a table, so that the answer tells how often its values occur.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// What was computed from a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<FromData>,
    /// Curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Seed of the draws, where there were any.
    pub seed: Option<u64>,
    /// Things the user should know, in whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

impl SecretBounds {
    /// Whether it tells about a table, and is for the owner of it alone.
    pub fn is_owners(&self) -> bool {
        self.counted || self.data.is_some()
    }
}

/// One bound with everything it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The theorem.
    pub name: Theorem,
    /// Probability of a right guess, at most.
    pub success: f64,
    /// The same over a guess without the model.
    pub advantage: f64,
    /// The Rényi order used, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Confidence, where the bound holds only with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// For the record that is easiest to guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
    /// Distribution of the records' own bounds on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_records: Option<Summary>,
    /// Whether every record was given the largest distance over all of them (Guo fig. 4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub largest_distance: bool,
    /// What must hold.
    pub assumptions: Vec<String>,
    /// Paper and equation.
    pub source: String,
}

/// A bound for the record that is easiest to guess.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// Probability of a right guess, at most.
    pub success: f64,
    /// The same over a guess without the model.
    pub advantage: f64,
}

impl Row {
    /// A bound of the table.
    pub fn of(b: &SuccessBound) -> Self {
        let theorem = b.success.theorem;
        Self {
            name: theorem,
            success: b.success.value,
            advantage: b.advantage,
            alpha: b.alpha,
            confidence: b.confidence,
            worst: None,
            over_records: None,
            largest_distance: false,
            assumptions: theorem.assumptions().iter().map(|a| (*a).to_owned()).collect(),
            source: theorem.source().into(),
        }
    }

    /// A bound over records.
    pub fn over_records(b: &RecordBound) -> Self {
        let mut row = Self::of(&b.mean);
        row.worst = b.worst.map(|w| Worst { success: w.success.value, advantage: w.advantage });
        row.over_records = b.over_records;
        row.largest_distance = b.largest_distance;
        row.assumptions.extend(
            [
                "each record's secret is drawn from the prior whatever its other values are: somebody who infers it from \
                 them, as a black box does, starts from a better prior",
                "encodings are the models refitted with each candidate, at their minimisers, and the noise is Gaussian",
            ]
            .map(String::from),
        );
        row
    }
}

/// A bound on the error of an estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimation {
    /// Whose error is bounded, in words.
    #[serde(rename = "what")]
    pub attacker: String,
    /// The bound: a standard deviation or root mean squared error, at least.
    #[serde(with = "crate::unbounded::claim")]
    pub error: Bound,
    /// Unit, in words.
    pub unit: String,
    /// What must hold.
    pub assumptions: Vec<String>,
    /// Paper and equation.
    pub source: String,
}

/// The error of an estimate, estimated over the records of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Typical {
    /// Whose error is estimated, in words.
    #[serde(rename = "what")]
    pub attacker: String,
    /// The root mean squared error, about.
    pub error: Measured,
    /// Unit, in words.
    pub unit: String,
}

impl Estimation {
    /// A bound with what it rests on.
    pub fn of(attacker: &str, error: Bound, unit: &str) -> Self {
        Self {
            attacker: attacker.into(),
            error,
            unit: unit.into(),
            assumptions: error.theorem.assumptions().iter().map(|a| (*a).to_owned()).collect(),
            source: error.theorem.source().into(),
        }
    }
}

/// What was computed from a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FromData {
    /// Whether the columns are scaled by what was read off the records, and candidates are compared in that scaling: it would
    /// move with the secret, which the bounds leave out.
    #[serde(default)]
    pub scaling_given: bool,
    /// Whether the values are bins of a number, each tried at its mean: values elsewhere in a bin may be guessed more often.
    #[serde(default)]
    pub binned: bool,
    /// Data and model.
    pub subject: Subject,
    /// The secret and its values.
    pub secret: Secret,
    /// Records bounded.
    pub records: u64,
    /// Records whose value is none of the candidates.
    pub left_out: u64,
    /// Distance of the two candidate models of a record that are furthest apart, over records.
    pub distance: Summary,
    /// The record for which it is largest.
    pub most_exposed: Option<MostExposed>,
    /// Share of records for which the most frequent value is right.
    pub baseline: f64,
    /// Bounds at every noise, smallest first.
    pub curve: Vec<CurvePoint>,
    /// What attacks achieved, where they were played.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<AttackResult>,
    /// What noise costs on held-out rows.
    pub utility: Option<Utility>,
    /// The noise, where it has a shape: σ is that of isotropic noise of the same cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// The δ of every ε.
    pub delta: f64,
    /// Seconds, without reading and fitting.
    pub seconds: f64,
}

/// The record whose candidate models are furthest apart, at the noise asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MostExposed {
    /// Its row among the training rows, from 1.
    pub row: u64,
    /// Distance of two of its candidate models, at most.
    pub distance: f64,
    /// Every bound that applies to it, the tightest first.
    pub bounds: Vec<Row>,
    /// What the optimal attack on it achieves.
    pub optimal: Option<Optimal>,
}

impl MostExposed {
    /// A record and its bounds.
    pub fn of(row: u64, distance: f64, table: &Bounds) -> Self {
        let bounds = table.bounds.iter().map(Row::of).collect();
        Self { row: row + 1, distance, bounds, optimal: table.optimal.clone() }
    }
}

/// All bounds over records at one noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Standard deviation of the noise on every coefficient.
    pub sigma: f64,
    /// The bounds, the smallest mean first.
    pub bounds: Vec<Row>,
    /// What the optimal attack achieved over records in simulation, with secrets drawn from the prior.
    pub optimal: Option<Observed>,
    /// ε of telling apart two values of the most exposed record: of this table, not of every table.
    pub epsilon_secret: f64,
    /// ε of telling apart this table with and without its most influential record; linear regression only.
    pub epsilon_removal: Option<f64>,
}

impl CurvePoint {
    /// The bounds at one noise.
    pub fn of(at: &AtSigma, epsilon_secret: f64, epsilon_removal: Option<f64>) -> Self {
        Self {
            sigma: at.sigma,
            bounds: at.bounds.iter().map(Row::over_records).collect(),
            optimal: at.optimal.clone(),
            epsilon_secret,
            epsilon_removal,
        }
    }
}
