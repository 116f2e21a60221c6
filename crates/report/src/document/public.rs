//! What a training run took from public records, as plain data: a part of `training.json`.

use serde::{Deserialize, Serialize};

/// What a run took from public records. None of it costs a private record anything, and nothing is promised to the public
/// ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicUse {
    /// Training before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretraining: Option<Pretraining>,
    /// Share of the weights that the run trains, the largest in size; the others stay at their public values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
}

/// Training on public records before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pretraining {
    /// Names of the files, without folders.
    pub files: Vec<String>,
    /// Number of public records.
    pub records: u64,
    /// The optimiser in words.
    pub optimizer: String,
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Records in a batch.
    pub batch: u64,
    /// Steps made.
    pub steps: u64,
    /// Mean loss of the public records after it.
    pub loss: f64,
    /// Share of the public records right after it; absent for regressions.
    pub accuracy: Option<f64>,
    /// The same of the records that the run’s accuracy is measured on.
    pub watched_accuracy: Option<f64>,
}
