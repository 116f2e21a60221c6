//! What documents about language models share.

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

/// Which part of a model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All parameters.
    All,
    /// Those of the output layer.
    Last,
    /// Those of low-rank adapters beside the dense layers.
    Adapters,
}

impl Part {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Last => "last",
            Self::Adapters => "adapters",
        }
    }
}
