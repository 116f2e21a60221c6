//! What `leakscope release` did, as plain data: the statement that goes with a released model.

use super::subject::Subject;
use super::tell::Tell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the schema of `release.json`.
pub const SCHEMA: &str = "leakscope.release/1";

/// The statement of one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Data and model.
    pub subject: Subject,
    /// The noise.
    pub mechanism: Mechanism,
    /// Whether the label counts as part of the record's secret.
    pub label_secret: bool,
    /// η of this release alone.
    pub eta: Eta,
    /// How often somebody who knows all else tells two values of an attribute apart, where that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell: Option<Tell>,
    /// η of all releases of these data so far, this one included.
    pub composed: Composed,
    /// What an attacker is taken to know, in whole sentences.
    pub known: Vec<String>,
    /// What the numbers rest on, in whole sentences.
    pub assumed: Vec<String>,
    /// The released coefficients by column, noise included.
    pub coefficients: BTreeMap<String, f64>,
    /// The same predictor for the columns in their own units, where there is one.
    pub coefficients_original_units: Option<BTreeMap<String, f64>>,
    /// Things the user should know, in whole sentences.
    pub warnings: Vec<String>,
}

/// The noise that was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    /// Its name.
    pub name: String,
    /// Standard deviation of the noise on every coefficient.
    pub sigma: f64,
    /// Distance of the points that coefficients lie on.
    pub grid: f64,
    /// Where the randomness came from.
    pub generator: String,
}

/// η of one release over records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Eta {
    /// Mean.
    pub mean: f64,
    /// Largest.
    pub max: f64,
}

/// Several releases of the same data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Composed {
    /// Releases so far.
    pub releases: usize,
    /// Upper bound of the largest η of all together, `√Σ η²`.
    pub eta_max: f64,
    /// What it may be at most.
    pub budget_eta: Option<f64>,
}
