//! A column: what it holds, what it is for, and where what is known of it comes from.

use crate::notation::Notation;
pub use leakscope_core::choice::Kind;
use serde::{Deserialize, Serialize};

/// Name and kind of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSchema {
    /// Name, trimmed.
    pub name: String,
    /// What it holds: in CSV inferred from the first 10,000 rows, in Parquet from its type.
    pub kind: Kind,
    /// The Parquet type, where it has no encoding: such a column must be dropped.
    pub unsupported: Option<String>,
    /// How its numbers are written.
    pub notation: Notation,
    /// Whether it numbers the rows: a column without a name, or one that pandas writes for its index.
    pub index: bool,
}

/// What each column is for. Columns without a role are features.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// The column to predict.
    pub target: String,
    /// The column that names a row; it must be unique.
    pub id: Option<String>,
    /// The column whose groups are compared; it stays a feature unless it is dropped too.
    pub group: Option<String>,
    /// The column of sample weights.
    pub weights: Option<String>,
    /// Columns that are not used.
    pub drop: Vec<String>,
    /// Columns that are categories although they look like numbers.
    pub categorical: Vec<String>,
}

/// Where something that an encoding uses comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Somebody gave it, or it does not depend on the data: it is public.
    Given,
    /// It was read off the training rows, and tells about them.
    #[default]
    ReadOffData,
}

/// Whether a name stands in for none: `Unnamed: 0` of pandas, or our own `unnamed_1`.
pub(crate) fn stands_for_none(name: &str) -> bool {
    is_numbered(name, "Unnamed: ", "") || is_numbered(name, "unnamed_", "")
}

/// Whether a name is a number between the two.
pub(crate) fn is_numbered(name: &str, prefix: &str, suffix: &str) -> bool {
    let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An attribute that the model reads.
    Feature,
    /// What is predicted.
    Target,
    /// Whose record a row is.
    Id,
    /// Weights of records.
    Weights,
    /// The group of a record.
    Group,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Target => "target",
            Self::Id => "id",
            Self::Weights => "weights",
            Self::Group => "group",
        }
    }
}
