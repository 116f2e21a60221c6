//! What can go wrong in the mathematics, as data: callers that know column names turn these into advice.

/// The result of a computation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a computation has no answer. Columns are indices into the encoded columns of the model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that must be finite, or inside a range, is not.
    #[error("{subject} is {}: expected {expected}", numeral(*value))]
    OutOfRange {
        /// Name of the quantity, as the user knows it.
        subject: &'static str,
        /// What it was.
        value: f64,
        /// What it should have been, in words.
        expected: &'static str,
    },
    /// A number that the caller chooses is outside its range.
    #[error("{setting} is {}: expected {expected}", numeral(*value))]
    Setting {
        /// Which one: whoever asks people knows under what name.
        setting: Setting,
        /// What it was.
        value: f64,
        /// What it should have been, in words.
        expected: &'static str,
    },
    /// A weight is zero, negative or no number where weights are made of one another.
    #[error("a weight is {}: expected positive weights: leave rows of weight zero out before balancing", numeral(*value))]
    Weight {
        /// What it was.
        value: f64,
    },
    /// A shape of noise from the data has too many coefficients for what it gives away to be counted.
    #[error(
        "a shape from the data has {coefficients} coefficients: expected at most {most}: take isotropic noise or a shape from a \
         public table"
    )]
    ShapeTooLarge {
        /// How many it has.
        coefficients: usize,
        /// The most that are counted.
        most: usize,
    },
    /// Two things that must agree in size do not.
    #[error("{subject} has length {actual}, expected {expected}")]
    Shape {
        /// Name of the quantity.
        subject: &'static str,
        /// Its length.
        actual: usize,
        /// The length it must have.
        expected: usize,
    },
    /// The Hessian is singular: `column` is a linear combination of `of` (empty: it is zero or constant).
    #[error("column {column} is a linear combination of columns {of:?}: the minimiser is not unique")]
    Singular {
        /// The dependent column.
        column: usize,
        /// The columns it depends on.
        of: Vec<usize>,
    },
    /// A column is to be scaled by its own spread and has none.
    #[error(
        "column {column} is constant (or its spread no finite number): it cannot be scaled by its own data"
    )]
    Unscaled {
        /// The column.
        column: usize,
    },
    /// A hyperplane separates the two classes, so the unregularised minimiser is infinite.
    #[error("the classes are separable: without l2 the minimiser is infinite")]
    Separable,
    /// The solver stopped short of its tolerance.
    #[error(
        "no convergence after {iterations} iterations: relative gradient {gradient:.2e}, tolerance {tolerance:.0e}"
    )]
    NoConvergence {
        /// Newton iterations made.
        iterations: usize,
        /// Relative norm of the gradient where it stopped.
        gradient: f64,
        /// What it should have been.
        tolerance: f64,
    },
    /// A question that has no meaning under the stated assumptions.
    #[error("{subject} under {setting} has no meaning: {advice}")]
    NotApplicable {
        /// What was asked for.
        subject: &'static str,
        /// The assumption it clashes with.
        setting: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// No value of the unknown meets the target.
    #[error(
        "no {unknown} between {} and {} reaches the target {} for {subject}: {advice}",
        numeral(*lowest),
        numeral(*highest),
        numeral(*target)
    )]
    Unreachable {
        /// What the target is about.
        subject: &'static str,
        /// The target.
        target: f64,
        /// What was to be chosen.
        unknown: &'static str,
        /// Smallest value tried.
        lowest: f64,
        /// Largest value tried.
        highest: f64,
        /// What to do.
        advice: &'static str,
    },
    /// Leakage is too large for a number: it grows as 1/σ, and dFIL as its square.
    #[error(
        "leakage at this noise is {}: expected a finite number: choose a larger sigma, or other units of the columns",
        numeral(*value)
    )]
    Overflow {
        /// What it came to.
        value: f64,
    },
    /// Bytes that are not what they should be.
    #[error("the bytes of {subject} cannot be read: {damage}")]
    Bytes {
        /// What they should hold.
        subject: &'static str,
        /// What is wrong with them.
        damage: Damage,
    },
    /// A class has too few records for a model of it.
    #[error(
        "class {class} has {records} record(s): expected at least 2, so merge it with another or leave it out"
    )]
    RareClass {
        /// The class, counted from 0.
        class: usize,
        /// Its records.
        records: u64,
    },
    /// There are no rows to compute with.
    #[error("there are no rows")]
    Empty,
    /// The caller asked to stop (Ctrl-C).
    #[error("stopped on request")]
    Interrupted,
    /// The source of the rows failed: its own message, passed through.
    #[error("{0}")]
    Source(String),
}

/// A number that the caller chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Setting {
    /// Standard deviation of Gaussian noise.
    #[error("sigma")]
    Sigma,
    /// Scale b of Laplace noise.
    #[error("scale")]
    LaplaceScale,
    /// Number of values of a randomised response.
    #[error("categories")]
    Categories,
    /// Probability with which a randomised response answers at random.
    #[error("noise")]
    ResponseNoise,
    /// Probability of each record to take part in a step.
    #[error("sampling rate")]
    Rate,
    /// Number of steps.
    #[error("steps")]
    Steps,
    /// ε.
    #[error("epsilon")]
    Epsilon,
    /// δ.
    #[error("delta")]
    Delta,
    /// Rényi order α.
    #[error("alpha")]
    Alpha,
    /// Number of values that a secret may have.
    #[error("candidates")]
    Candidates,
    /// Noise vectors that an attack is played with.
    #[error("trials")]
    Trials,
    /// Power of a Tweedie model.
    #[error("the power")]
    Power,
    /// Threshold of Huber's loss.
    #[error("the threshold")]
    Threshold,
}

impl Setting {
    /// Refuses a value that is not `ok`.
    pub(crate) fn in_range(self, value: f64, ok: bool, expected: &'static str) -> Result<()> {
        if ok { Ok(()) } else { Err(Error::Setting { setting: self, value, expected }) }
    }

    /// Refuses a value that is not positive, or infinite.
    pub(crate) fn positive(self, value: f64) -> Result<()> {
        self.in_range(value, value > 0.0 && value.is_finite(), "a positive number")
    }

    /// Refuses a value that is no probability, or zero.
    pub(crate) fn probability(self, value: f64) -> Result<()> {
        self.in_range(value, value > 0.0 && value <= 1.0, "a probability above 0, at most 1")
    }
}

/// What is wrong with bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Fewer than a value needs.
    #[error("there are only {bytes} of them; were they cut off?")]
    Short {
        /// How many there are.
        bytes: usize,
    },
    /// They were not written by Leakscope.
    #[error("they are of something else")]
    Foreign,
    /// They are not those that were written.
    #[error("their checksum is wrong, so some were changed or lost on the way: compute them again")]
    Checksum,
    /// They were written by another version.
    #[error("they are of version {actual}, this is {expected}: use one version everywhere")]
    Version {
        /// Of the bytes.
        actual: String,
        /// Of this crate.
        expected: String,
    },
    /// They hold another kind of value.
    #[error("they hold {kind}")]
    Kind {
        /// What they hold.
        kind: String,
    },
    /// They belong to another pass: the same sums at other coefficients, say.
    #[error("they belong to another pass over the data")]
    Key,
    /// What is inside makes no sense.
    #[error("{0}")]
    Content(String),
}

/// A number with all its digits, and without hundreds of zeros.
pub fn numeral(x: f64) -> String {
    let plain = x == 0.0 || !x.is_finite() || (1e-5..1e15).contains(&x.abs());
    if plain { x.to_string() } else { format!("{x:e}") }
}
