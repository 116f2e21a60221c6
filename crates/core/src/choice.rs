//! Choices that more than one crate makes or records: options, what they do, and the documents that hold them have one type.

use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Numbers.
    Number,
    /// One of a limited number of texts.
    Category,
}

impl Kind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Category => "category",
        }
    }
}

/// Which levels of a category get a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum OneHot {
    /// All but the last in sorted order: no collinearity with an intercept. A category with one level has
    /// no column.
    #[default]
    DropLast,
    /// All but the first in sorted order.
    DropFirst,
    /// All.
    Full,
}

impl OneHot {
    /// Name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DropLast => "drop-last",
            Self::DropFirst => "drop-first",
            Self::Full => "full",
        }
    }

    /// Places of the levels that get a column, out of `levels`.
    pub fn places(self, levels: usize) -> std::ops::Range<usize> {
        match self {
            Self::DropLast => 0..levels.saturating_sub(1),
            Self::DropFirst => levels.min(1)..levels,
            Self::Full => 0..levels,
        }
    }
}

/// How encoded columns are scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Numbers become (x − mean)/sd with the population sd; indicators stay 0 and 1; constants become 0.
    #[default]
    Standard,
    /// All columns are divided by the largest row norm of the training rows; no centring (Hannun §5).
    UnitBall,
    /// Numbers become (x − centre)/half-range of their public bounds, so between −1 and 1; every number needs bounds.
    /// Nothing is read off the data.
    Bounds,
    /// Numbers stay as they are.
    None,
}

impl Scale {
    /// Name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::UnitBall => "unit-ball",
            Self::Bounds => "bounds",
            Self::None => "none",
        }
    }
}

/// The gradient whose signal-to-noise ratio PLIS is the derivative of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// The one that is released, clipped: `∇ₓ‖clip(g)‖²/s²`, as published
    #[default]
    Released,
    /// The record's own before the clip: `∇ₓ‖g‖²/s²`
    Raw,
}

impl Signal {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Raw => "raw",
        }
    }
}

/// What is added to gradients so that they give less away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum PerturbationKind {
    /// The average public gradient times one number
    #[default]
    Average,
    /// A constant, learned directly
    Constant,
    /// A network of the record's values, standardised by constants
    Network,
    /// The network of the thesis: with a batch norm over single records it is a constant
    Thesis,
}

impl PerturbationKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Constant => "constant",
            Self::Network => "network",
            Self::Thesis => "thesis",
        }
    }
}

/// Which parameters of a language model are trained, and so take part in the released gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Trained {
    /// All of them
    #[default]
    All,
    /// Those of the output layer; where it has the embedding's table, a copy of it is trained and the embedding stays
    Last,
    /// Low-rank adapters beside every dense layer of the blocks (LoRA), and nothing else
    Adapters,
}

impl Trained {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Last => "last",
            Self::Adapters => "adapters",
        }
    }
}
