//! What every document of a command says about its model.

use leakscope_core::glm::ModelKind;
use serde::{Deserialize, Serialize};

/// The data and the model that a command worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// File names, without folders.
    pub files: Vec<String>,
    /// Name of the target column.
    pub target: String,
    /// Records that the model was fitted to.
    pub n: u64,
    /// Encoded data columns (without the intercept).
    pub d: usize,
    /// Its family.
    pub family: ModelKind,
    /// Penalty λ.
    pub l2: f64,
    /// Whether there is an intercept.
    pub intercept: bool,
}
