//! What can be wrong with the column to predict.

use super::wording::more_classes;
use crate::place::Place;

/// Why a column cannot be predicted as was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The target has one class only.
    #[error(
        "target `{column}` has one class only, `{class}`, in the training rows: a model needs two; \
             choose another ⟨target⟩, or rows with both"
    )]
    OneClass {
        /// The target.
        column: String,
        /// The one class.
        class: String,
    },
    /// The target has more than two classes.
    #[error(
        "target `{column}` has {}, expected two classes: for all of them choose ⟨model=softmax⟩; or keep the rows of two, or join \
         them into two", more_classes(classes, *more)
    )]
    ManyClasses {
        /// The target.
        column: String,
        /// The first few classes, sorted.
        classes: Vec<String>,
        /// Whether there are more than the ones listed.
        more: bool,
    },
    /// The target has more classes than are allowed.
    #[error(
        "target `{column}` has {number} classes, expected at most {most}: join rare ones, raise ⟨max_classes⟩, or is it a \
         number, for ⟨model=linear⟩?"
    )]
    TooManyClasses {
        /// The target.
        column: String,
        /// How many there are.
        number: String,
        /// How many there may be.
        most: usize,
    },
    /// A class has too few records.
    #[error(
        "class `{class}` of target `{column}` has {} in the training rows, expected at least 2: nothing but that record \
         determines its coefficients, so join it with another class, or leave it out", if *count == 1 { "1 record".into() } else { format!("{count} records") }
    )]
    RareClass {
        /// The target.
        column: String,
        /// The class.
        class: String,
        /// Records of it.
        count: u64,
    },
    /// The target is text where numbers are needed.
    #[error("target `{column}` is text ({}), expected {expected}: choose another ⟨target⟩, or recode it", values.join(", "))]
    TextTarget {
        /// The target.
        column: String,
        /// The first few values.
        values: Vec<String>,
        /// What the model takes.
        expected: &'static str,
    },
    /// The positive class is not one of the two classes.
    #[error("⟨positive={value}⟩: target `{column}` has the classes `{low}` and `{high}`")]
    Positive {
        /// What was asked for.
        value: String,
        /// The target.
        column: String,
        /// One class.
        low: String,
        /// The other class.
        high: String,
    },
    /// A positive class was named for a target that has no classes.
    #[error(
        "⟨positive={value}⟩: target `{column}` is not coded as two classes, so no class can be the \
         positive one"
    )]
    PositiveUnused {
        /// What was asked for.
        value: String,
        /// The target.
        column: String,
    },
    /// A target that must be positive is not.
    #[error(
        "{place}: target `{column}` is {}: a gamma model takes numbers above zero alone: leave such rows out, or choose \
         ⟨model=tweedie⟩, which takes zeros",
        leakscope_core::error::numeral(*value)
    )]
    NotPositive {
        /// Where.
        place: Place,
        /// The target.
        column: String,
        /// The value.
        value: f64,
    },
    /// A count is negative.
    #[error(
        "{place}: target `{column}` is {}: counts must be zero or more (they need not be whole)",
        leakscope_core::error::numeral(*value)
    )]
    NegativeCount {
        /// Where.
        place: Place,
        /// The target.
        column: String,
        /// The value.
        value: f64,
    },
}
