//! A training run of a network, as plain data: `training.json` of `leakscope net train`.

use super::choice::{AccuracyOn, ClipKind, Neighbours, Precision, Sampling, Tracked};
use super::net::{DataFacts, Histogram, NetworkFacts};
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;
use serde::{Deserialize, Serialize};

/// Schema of [`Training`].
pub const TRAINING_SCHEMA: &str = "leakscope.net-training/1";

/// A training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// [`TRAINING_SCHEMA`].
    pub schema: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The network.
    pub network: NetworkFacts,
    /// Numbers it computed with.
    pub precision: Precision,
    /// The records.
    pub data: DataFacts,
    /// The optimiser in words.
    pub optimizer: String,
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Expected records in a batch.
    pub batch: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Clipping, noise and what they promise; absent for training without noise.
    pub privacy: Option<PrivacyFacts>,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// What was kept of every record.
    pub tracking: Option<Tracking>,
    /// Steps asked for.
    pub planned_steps: u64,
    /// Steps made.
    pub steps: u64,
    /// How it ended.
    pub stopped: Stopped,
    /// What accuracies are measured on.
    pub accuracy_on: AccuracyOn,
    /// The run so far, oldest first.
    pub history: Vec<Point>,
    /// What every record has given away, where it was kept.
    pub accounts: Option<Accounts>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Wall time of this process.
    pub seconds: f64,
}

/// Clipping, noise and what they promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrivacyFacts {
    /// How gradients are clipped.
    pub clip_kind: ClipKind,
    /// C.
    pub clip: f64,
    /// Noise multiplier σ.
    pub sigma: f64,
    /// What the noise promises; absent where it follows from a seed, so that whoever knows that takes it off.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

/// What a private run promises to every record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// δ.
    pub delta: f64,
    /// ε of the run so far: the smaller of the two below.
    pub epsilon: f64,
    /// By privacy loss distributions: the worst case lies inside. Absent where they do not fit into memory.
    pub epsilon_pld: Option<Interval>,
    /// By Rényi divergences.
    pub epsilon_rdp: f64,
    /// The order of the latter.
    pub rdp_order: f64,
    /// Which two data sets cannot be told apart; for shuffled batches a record is there, or an empty one in its place.
    pub adjacency: Neighbours,
    /// At most so much larger is the true- than the false-positive rate of any test whether a record took part; absent
    /// where nothing is known of it.
    pub advantage: Option<f64>,
    /// What the statement rests on: sampling, and neighbours in words.
    pub statement: String,
    /// Records that the filter dropped, where there is one: no record's own ε passes `epsilon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

/// What was kept of every record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracking {
    /// Whose accounts.
    pub records: Tracked,
    /// Probes of each trace.
    pub probes: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// All steps were made.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// Numbers were no longer finite, or the loss was out of all proportion.
    Diverged,
}

/// Where a run stands after a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Steps made.
    pub step: u64,
    /// Passes over the data made.
    pub epoch: f64,
    /// Mean loss of the drawn records since the last point.
    pub loss: Option<f64>,
    /// Share of records that the network gets right; where a record has several labels, all of them.
    pub accuracy: Option<f64>,
    /// Share of labels that are right, where a record has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_accuracy: Option<f64>,
    /// ε so far.
    pub epsilon: Option<f64>,
    /// Median accumulated dFIL of a record.
    pub dfil_median: Option<f64>,
    /// Largest accumulated dFIL of a record.
    pub dfil_max: Option<f64>,
}

/// What every record has given away over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// dFIL, exact for an attacker who knows which other records every step drew, otherwise from above (up to the standard
    /// errors of probes and, where only drawn records are looked at, of drawing them).
    pub dfil: Summary,
    /// Where the largest dFIL lies, with 95% confidence over all records at once: the largest of noisy estimates is too
    /// large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Interval>,
    /// Records that were never drawn, of which nothing was measured.
    #[serde(default)]
    pub not_drawn: u64,
    /// dFIL with the published factor instead (Edmunds eq. 2.3).
    pub published_dfil: Summary,
    /// Each record's own ε at the run's δ, from its gradient norms at every step: no guarantee to others. Absent where
    /// norms were not taken of every record at every step, or nothing is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Summary>,
    /// Histogram of dFIL.
    pub histogram: Option<Histogram>,
    /// Records with most, most first: number, label (see [`super::net::Record::label`]), dFIL, own ε where it is known.
    pub most: Vec<(u64, Option<String>, Measured, Option<f64>)>,
}
