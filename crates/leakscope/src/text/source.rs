//! The model and the texts that a question about fine-tuning is about.

use super::Long;
use crate::{Failure, Result};
use leakscope_net::text::Trained;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A language model, what of it is fine-tuned, and the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextSource {
    /// A folder of transformers (GPT-2, Llama) or a llama2.c checkpoint; taken to be public.
    pub model: PathBuf,
    /// Its tokeniser, where it is not in the folder.
    pub tokenizer: Option<PathBuf>,
    /// Files of texts, one a line.
    pub texts: Vec<PathBuf>,
    /// Texts in memory.
    pub list: Vec<String>,
    /// The field with the text, of JSON lines.
    pub field: Option<String>,
    /// What becomes of texts that are too long.
    pub long: Long,
    /// What is trained.
    pub layers: Trained,
    /// Rank of adapters.
    pub rank: usize,
}

impl Default for TextSource {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            tokenizer: None,
            texts: vec![],
            list: vec![],
            field: None,
            long: Long::Refuse,
            layers: Trained::All,
            rank: 8,
        }
    }
}

impl TextSource {
    pub(super) fn check(&self) -> Result<()> {
        match self.rank {
            0 => Err(Failure::number("rank", 0, "expected at least 1")),
            _ => Ok(()),
        }
    }
}
