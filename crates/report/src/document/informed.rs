//! What `leakscope net attack --method informed` found, as plain data: the last record, from the parameters of models that were
//! trained on it and on records that the adversary knows.

use super::net::{DataFacts, NetworkFacts};
use crate::document::choice::ClipKind;
use leakscope_core::claim::Observed;
use serde::{Deserialize, Serialize};

/// Schema of [`Informed`].
pub const SCHEMA: &str = "leakscope.net-informed/1";

/// The attack of the informed adversary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Informed {
    /// [`SCHEMA`].
    pub schema: String,
    /// The models that are attacked.
    pub network: NetworkFacts,
    /// The records.
    pub data: DataFacts,
    /// How many records the adversary knows.
    pub known: u64,
    /// Targets of the models that the adversary learned from.
    pub learned: u64,
    /// Targets of the models that were attacked.
    pub attacked: u64,
    /// Principal components of the parameters that the adversaries read; absent where they read all parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<u64>,
    /// How the models were trained.
    pub training: ModelTraining,
    /// ε of such a training at δ; absent without noise.
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// By adversary.
    pub attacks: Vec<InformedAttack>,
    /// Mean squared error of guessing the mean of all targets.
    pub spread: f64,
    /// The targets that the page shows.
    pub shown: Vec<u64>,
    /// Seed of the choice of records, the starts and the noise.
    pub seed: u64,
    /// Seconds for training all models.
    pub training_seconds: f64,
    /// Seconds for all of it.
    pub seconds: f64,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// How every model was trained: full batches, all from the same start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelTraining {
    /// The optimiser in words.
    pub optimizer: String,
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Steps.
    pub steps: u64,
    /// How gradients were clipped.
    pub clip_kind: ClipKind,
    /// C; absent where nothing is clipped.
    pub clip: Option<f64>,
    /// σ; 0 where there is no noise.
    pub sigma: f64,
    /// Share of the parameters that were trained, the largest at the start.
    pub density: f64,
}

/// Who reconstructs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adversary {
    /// The mean record of the label: what is known without parameters.
    Labels,
    /// Ridge regression on the parameters, by class.
    Ridge,
    /// A network of the parameters and the label.
    Network,
}

/// What an adversary achieved on models that were not learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InformedAttack {
    /// Who.
    pub adversary: Adversary,
    /// Mean squared error.
    pub mse: Observed,
    /// By how much the squared error of the label alone is larger, target by target.
    pub gain: Observed,
    /// Structural similarity; absent where records are no images of 11 × 11 and more.
    pub ssim: Option<Observed>,
    /// Haar wavelet similarity; absent where records are no images of 16 × 16 and more.
    pub haar_psi: Option<Observed>,
    /// LPIPS, 0 where they look the same; absent without its weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lpips: Option<Observed>,
    /// How often a reconstruction is nearer to its own record than to another of the same label.
    pub identified: Observed,
}

impl Informed {
    /// One of the attacks.
    pub fn by(&self, adversary: Adversary) -> Option<&InformedAttack> {
        self.attacks.iter().find(|a| a.adversary == adversary)
    }
}
