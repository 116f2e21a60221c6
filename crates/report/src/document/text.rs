//! What documents about language models share.

pub use leakscope_core::choice::Trained;
use serde::{Deserialize, Serialize};

/// A language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its folder or file, without what stands before it.
    pub name: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Number of tokens there are.
    pub vocabulary: u64,
    /// Tokens of the longest text.
    pub context: u64,
    /// Values that a token is embedded as.
    pub width: u64,
}

/// What is drawn and clipped as one, so that a promise is to it as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A text, with all its pieces where it was cut.
    Text,
    /// A user, with all their texts.
    User,
}

impl Unit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::User => "user",
        }
    }
}

/// What a run says of itself that fine-tuned a language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextTraining {
    /// What was trained.
    pub trained: Trained,
    /// Rank of adapters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// What is drawn and clipped as one.
    pub unit: Unit,
    /// Texts.
    pub texts: u64,
    /// Their pieces: more than texts where long ones were cut.
    pub pieces: u64,
    /// Their tokens.
    pub tokens: u64,
    /// How well texts are predicted that were not trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<Holdout>,
}

/// How well texts are predicted that were not trained on: per token, over all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holdout {
    /// Their files.
    pub files: Vec<String>,
    /// Texts.
    pub texts: u64,
    /// Tokens that are predicted.
    pub tokens: u64,
    /// Mean loss of a token, in nats, before the run.
    pub loss_before: f64,
    /// And after it.
    pub loss: f64,
    /// `e` to the loss, before the run.
    pub perplexity_before: f64,
    /// And after it.
    pub perplexity: f64,
    /// Texts among them that were trained on too.
    #[serde(default)]
    pub seen: u64,
}
