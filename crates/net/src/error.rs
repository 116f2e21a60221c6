//! What can go wrong with networks, as data: fields, not strings, and what to do about it.

/// The result of a computation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two neighbouring layers do not fit.
    #[error("layer {layer} ({kind}) cannot follow an output of shape {actual:?}: {need}")]
    DoesNotChain {
        /// Position of the layer in the file, counted from 0.
        layer: usize,
        /// What kind of layer it is.
        kind: &'static str,
        /// Shape it would receive.
        actual: Vec<usize>,
        /// What it needs, in words.
        need: &'static str,
    },
    /// A number is outside its range.
    #[error("{subject} is {}: expected {expected}", leakscope_core::error::numeral(*value))]
    OutOfRange {
        /// Name of the quantity, as the user knows it.
        subject: &'static str,
        /// What it was.
        value: f64,
        /// What it should be, in words.
        expected: &'static str,
    },
    /// An array has the wrong length.
    #[error("{subject} has length {actual}, expected {expected}")]
    Length {
        /// Name of the array.
        subject: &'static str,
        /// Its length.
        actual: usize,
        /// The length it must have.
        expected: usize,
    },
    /// An array holds a NaN or an infinity.
    #[error("{subject}: not finite at position {position}; repair or remove it")]
    NotFinite {
        /// Name of the array.
        subject: &'static str,
        /// First offending position.
        position: usize,
    },
    /// A file is of a version this programme does not read.
    #[error("{subject} is of version {actual}; this programme reads version {expected}")]
    Version {
        /// Which file.
        subject: &'static str,
        /// Its version.
        actual: u32,
        /// Version understood.
        expected: u32,
    },
    /// A file is not what it should be.
    #[error("{subject}: {reason}")]
    Format {
        /// Which file or part.
        subject: &'static str,
        /// Why it cannot be read.
        reason: String,
    },
    /// A GPU cannot be used, or failed.
    #[error("cuda:{ordinal}: {reason}")]
    Device {
        /// Its number.
        ordinal: u32,
        /// Why, and what to do.
        reason: String,
    },
    /// A file cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// Where it is.
        path: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A checkpoint belongs to another run.
    #[error("the checkpoint was written by a run with another {setting}: resume with the original one")]
    OtherRun {
        /// Which setting differs.
        setting: &'static str,
    },
    /// Training produced numbers that are not finite, or a loss out of all proportion; the parameters of the last good
    /// step are kept.
    #[error(
        "training diverged at step {step}: {symptom}. The parameters of step {step} before the update are kept; lower the \
         learning rate or clip gradients"
    )]
    Diverged {
        /// The step that failed, counted from 0.
        step: u64,
        /// What is wrong, in words.
        symptom: &'static str,
    },
    /// A label is not one of the network's loss.
    #[error("the label of record {record} does not suit the loss {loss}: {advice}")]
    Label {
        /// The first such record.
        record: usize,
        /// The loss, as files name it.
        loss: &'static str,
        /// What it takes, and what to do.
        advice: &'static str,
    },
    /// A token is not in the vocabulary of the network.
    #[error(
        "token {token} at position {position} of record {record} is outside the vocabulary of {vocabulary}: take the \
         tokens of the model's own tokeniser"
    )]
    Token {
        /// The first such record.
        record: usize,
        /// Its position there.
        position: usize,
        /// The token.
        token: u32,
        /// Number of tokens there are.
        vocabulary: usize,
    },
    /// A batch norm has no statistics, and private training cannot take them from the records.
    #[error(
        "layer {layer} (batch-norm) has no statistics, and taking them from private records would give these away: \
         compute them from public data (Network::calibrate_statistics), load weights that bring them, or take a \
         group-norm or layer-norm instead"
    )]
    NoStatistics {
        /// Position of the layer in the file.
        layer: usize,
    },
    /// There are no records.
    #[error("there are no records")]
    Empty,
    /// The mathematics of core had no answer.
    #[error(transparent)]
    Core(#[from] leakscope_core::Error),
}

/// Checks that a number lies in a range.
pub(crate) fn check(ok: bool, subject: &'static str, value: f64, expected: &'static str) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::OutOfRange { subject, value, expected }) }
}

/// Checks a length.
pub(crate) fn check_len(subject: &'static str, actual: usize, expected: usize) -> Result<()> {
    if actual == expected { Ok(()) } else { Err(Error::Length { subject, actual, expected }) }
}

/// Checks that every value is finite.
pub(crate) fn check_finite<T: crate::Real>(subject: &'static str, values: &[T]) -> Result<()> {
    match values.iter().position(|v| !v.to_f64().is_finite()) {
        None => Ok(()),
        Some(position) => Err(Error::NotFinite { subject, position }),
    }
}
