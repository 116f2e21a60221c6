//! What `leakscope text audit` found, as plain data: `audit.json` of a language model over texts.
//!
//! The texts themselves are no part of it: [`Texts`] is given to the page alone.

use super::choice::{Precision, Signal};
use super::net::{Release, TraceKind};
use super::text::{Model, Trained};
use leakscope_core::num::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the schema of `audit.json` of texts.
pub const SCHEMA: &str = "leakscope.text-audit/1";

/// What one noisy step of fine-tuning tells about every text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextAudit {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Names of the tables that were written beside it.
    pub tables: Vec<String>,
    /// The model.
    pub model: Model,
    /// What of it is trained.
    pub trained: Trained,
    /// Rank of adapters, where these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Parameters that are trained.
    pub trained_parameters: u64,
    /// Files that were read.
    pub files: Vec<String>,
    /// The release whose leakage is measured: one noisy sum of clipped gradients.
    pub release: Release,
    /// How the traces were found.
    pub trace: TraceKind,
    /// Of which gradient PLIS is.
    pub plis_of: Signal,
    /// Seed of probes and starting vectors.
    pub seed: u64,
    /// Numbers that the model computed with.
    #[serde(default = "single")]
    pub precision: Precision,
    /// Mean squared distance of an embedded value from its mean over the vocabulary: what guessing the mean achieves.
    pub spread: f64,
    /// Losses, means over the tokens of a text.
    pub loss: Summary,
    /// Norms of the gradients before clipping.
    pub gradient_norm: Summary,
    /// dFIL: trace of the information about the embedded values over their number.
    pub dfil: Option<Summary>,
    /// η of the embedded values.
    pub eta: Option<Summary>,
    /// Every text, in its order.
    pub records: Vec<Record>,
    /// Exposure of marked secrets.
    pub exposures: Vec<Exposure>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Seconds it took, without reading the model.
    pub seconds: f64,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// What one noisy step tells about a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its line, with the part of it where it was split: `12`, `12.2`.
    pub record: String,
    /// Its tokens.
    pub tokens: u64,
    /// Mean loss over its tokens.
    pub loss: f64,
    /// Norm of its gradient.
    pub gradient_norm: f64,
    /// Norm of what is released of it.
    pub released_norm: f64,
    /// dFIL.
    pub dfil: Option<f64>,
    /// Standard error of an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dfil_standard_error: Option<f64>,
    /// η.
    pub eta: Option<f64>,
    /// Norm of PLIS.
    pub plis: f64,
    /// PLIS of each token but the last, which is predicted and not read.
    pub plis_tokens: Vec<f64>,
}

/// How far a secret stands out among what it might be (Carlini et al. 2019): `log₂ M − log₂ rank` by likelihood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exposure {
    /// Which of the marked secrets, from 1.
    pub secret: u64,
    /// The text it is in.
    pub record: String,
    /// M, texts that the pattern stands for.
    pub candidates: u64,
    /// 1 where the model holds none of them to be likelier.
    pub rank: u64,
    /// In bits.
    pub exposure: f64,
}

/// The texts that a page shows, token by token, by their place in [`TextAudit::records`].
pub type Texts = BTreeMap<usize, Vec<String>>;

/// Texts drawn on a page at most.
const DRAWN: usize = 12;

fn single() -> Precision {
    Precision::F32
}

impl TextAudit {
    /// The places of the records that a page draws: those that leak most, most first.
    pub fn most_exposed(&self) -> Vec<usize> {
        let leak = |i: usize| self.records[i].dfil.or(self.records[i].eta).unwrap_or(self.records[i].plis);
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by(|&a, &b| leak(b).total_cmp(&leak(a)).then(a.cmp(&b)));
        order.truncate(DRAWN);
        order
    }
}
