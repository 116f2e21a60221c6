//! A training run of a network, as plain data: `training.json` of `leakscope net train` and `leakscope text train`.

use super::choice::{AccuracyOn, ClipKind, Neighbours, Optimizer, Precision, Sampling, Tracked};
use super::net::{DataFacts, Histogram, NetworkFacts};
use super::public::PublicUse;
use super::text::TextTraining;
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
    pub optimizer: Optimizer,
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
    /// Who dropped out when, where a filter drops records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// What the run took from public records, where it took more than the statistics of batch norms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<PublicUse>,
    /// What it says of texts, where it fine-tuned a language model; `data.records` counts its units then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextTraining>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Wall time of this process.
    pub seconds: f64,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

impl Training {
    /// What is drawn and clipped as one, and so promised to, in a word.
    pub fn unit(&self) -> &'static str {
        self.text.as_ref().map_or("record", |t| t.unit.name())
    }

    /// What accuracies and losses beside those of the drawn are measured on, in a word.
    pub fn watched_name(&self) -> &'static str {
        if self.text.is_some() { "held-out" } else { self.accuracy_on.name() }
    }
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
    /// What the noise promises; absent where it promises nothing.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// Why nothing is promised, where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// What the steps alone would promise, were all that was read off the records public: no promise, and never a reason to be
    /// calm, but one to be alarmed. Where nothing is promised because of what was read off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_alone: Option<Promise>,
}

/// Why a run with noise states no ε.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Withheld {
    /// The noise follows from a seed, so that whoever knows that takes it off.
    NoiseFromSeed,
    /// What the network is fed depends on all records at once: of these parts of the encoding, in words. One record more
    /// or less moves every other record's values, which the clip of a step does not bound.
    ReadOffRecords(Vec<String>),
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
    /// Records in the panel, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<u64>,
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
    /// Mean loss of the records that accuracy is measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_loss: Option<f64>,
    /// ε so far.
    pub epsilon: Option<f64>,
    /// Median accumulated dFIL of the records that are followed at every step.
    pub dfil_median: Option<f64>,
    /// Nine in ten of them have no more. The largest of many estimates is no estimate of the largest, so there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dfil_p90: Option<f64>,
}

/// What records have given away over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// Records that were measured at every step that they could take part in; where there are any, `dfil`, `largest`,
    /// `published_dfil`, `histogram` and `most` speak of these alone, otherwise of all that were drawn often
    /// enough for an interval.
    pub followed: u64,
    /// How many records these numbers speak of.
    pub accounted: u64,
    /// dFIL, exact for an attacker who knows which other records every step drew, otherwise from above (up to the standard
    /// errors of probes and, where only drawn records are looked at, of drawing them).
    pub dfil: Summary,
    /// Where the largest of these dFIL lies, with 95% confidence over all of them at once: the largest of noisy estimates
    /// is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Interval>,
    /// What most of all records lie below; absent where all were followed, or the followed are no random choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Below>,
    /// Records that were never measured, of which nothing is known.
    #[serde(default)]
    pub not_drawn: u64,
    /// dFIL with the published factor instead (Edmunds eq. 2.3).
    pub published_dfil: Summary,
    /// The own ε at the run's δ of each followed record, from its gradient norms at every step: no guarantee to others.
    /// Absent where none was followed, or nothing is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Summary>,
    /// Histogram of dFIL.
    pub histogram: Option<Histogram>,
    /// Records with the largest estimates, largest first.
    pub most: Vec<Account>,
}

/// The account of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Its number in the data, counted from 0.
    pub record: u64,
    /// The caller's id, where the records are rows of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its label, see [`super::net::Record::label`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// dFIL over the run.
    pub dfil: Measured,
    /// Where it lies: 95% over all of these records at once.
    pub interval: Interval,
    /// Its own ε, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
}

/// With a confidence of 95%, at least this share of all records lies below a value: by the largest of a random panel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Below {
    /// The share.
    pub share: f64,
    /// The value.
    pub value: f64,
}

/// Who dropped out of a filtered run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filtered {
    /// The smallest and the largest ε that a record may reach; the same where all have one.
    pub budgets: [f64; 2],
    /// Records that dropped out.
    pub dropped: u64,
    /// Records that take part after so many steps, oldest first.
    pub taking_part: Vec<(u64, u64)>,
    /// The records that dropped out first.
    pub first: Vec<Dropout>,
}

/// A record that dropped out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropout {
    /// Its number in the data, counted from 0.
    pub record: u64,
    /// The caller's id, where the records are rows of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its label, see [`super::net::Record::label`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Steps it could take part in.
    pub steps: u64,
}
