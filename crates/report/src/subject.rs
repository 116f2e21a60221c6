//! What every document of a command says about its model.

use crate::format;
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
    /// `linear`, `logistic` or `poisson`.
    pub family: String,
    /// Penalty λ.
    pub l2: f64,
    /// Whether there is an intercept.
    pub intercept: bool,
}

impl Subject {
    pub(crate) fn title(&self) -> String {
        format!("{} of {}", self.target, self.files.join(", "))
    }

    pub(crate) fn facts(&self) -> String {
        format!(
            "{} regression · {} · {} · λ = {}",
            self.family,
            format::counted(self.n, "record"),
            format::counted(self.d as u64, "column"),
            format::setting(self.l2)
        )
    }
}
