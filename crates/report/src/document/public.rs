//! What a training run took from public records, as plain data: a part of `training.json`.

use super::choice::Optimizer;
pub use leakscope_core::choice::PerturbationKind;
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
    /// What was added to every record’s gradient before the clip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perturbation: Option<Perturbation>,
}

/// What was added to every record’s gradient before the clip, learned on public records again before each step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perturbation {
    /// What it is.
    pub variant: PerturbationKind,
    /// λ: what the relative size of the Jacobian weighed against the size of the perturbation.
    pub lambda: f64,
    /// Number of public records.
    pub records: u64,
    /// Its norm in the last step.
    pub norm: f64,
    /// Its cosine with the average public gradient in the last step; where it differs between records, the mean.
    pub cosine: f64,
    /// How far it differs between public records, in shares of its norm: 0 for a constant.
    #[serde(default)]
    pub spread: f64,
    /// Mean over the public records of the squared norm of the released gradient’s Jacobian over that of the gradient, in the
    /// last step: without the perturbation.
    pub without: f64,
    /// The same with it.
    pub with: f64,
}

/// Training on public records before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pretraining {
    /// Names of the files, without folders.
    pub files: Vec<String>,
    /// Number of public records.
    pub records: u64,
    /// The optimiser in words.
    pub optimizer: Optimizer,
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
