//! How often somebody who knows all else tells two values of an attribute apart.

use serde::{Deserialize, Serialize};

/// Every attribute, and the label where it is secret, with the two values that are told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tell {
    /// One entry an attribute.
    pub attributes: Vec<Told>,
    /// Told apart at most this often, an attribute counts as protected (`--protect-at`).
    #[serde(default = "protect_at")]
    pub protect_at: f64,
}

/// Two values of one attribute: the probability of naming the right one, both being equally likely beforehand. A coin
/// toss has ½.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The column, or the target.
    pub attribute: String,
    /// One value, as it is written.
    pub from: String,
    /// The other.
    pub to: String,
    /// For the record that is told apart most often.
    pub worst: f64,
    /// For the median record.
    pub median: f64,
    /// Id of the former.
    pub worst_record: String,
    /// Whether the attribute is the label.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub label: bool,
}

fn protect_at() -> f64 {
    crate::verdict::PROTECT_AT
}

impl Tell {
    /// The attribute that is told apart most often.
    pub fn worst(&self) -> Option<&Told> {
        self.attributes.iter().max_by(|a, b| a.worst.total_cmp(&b.worst))
    }
}
