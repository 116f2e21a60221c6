//! What a user is told when there is no answer: where, what was expected, what to do.

use crate::spelling::{Spelling, Value, spell};
use leakscope_core::Error as CoreError;
use leakscope_core::error::{Setting, numeral};
use leakscope_table::{Encoding, Error as TableError};
use std::path::PathBuf;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command has no answer.
#[derive(Debug)]
pub enum Failure {
    /// The message, complete: exit code 2.
    Message(String),
    /// The same, about an option.
    Option {
        /// Its name, as in requests.
        name: String,
        /// The value that is wrong, where one is.
        value: Option<Value>,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// The same, about the table.
    Data(String),
    /// The same, about a model that has no unique minimiser, or none that was found.
    Fit(String),
    /// The user asked to stop: exit code 130.
    Interrupted,
}

/// Refuses a file or folder that is not there, by the option that named it. Standard input always is; of an object in a store reading
/// it tells.
///
/// # Errors
/// For the first path that leads nowhere.
pub fn present(option: &str, paths: &[PathBuf]) -> Result<()> {
    let missing = |p: &&PathBuf| p.as_os_str() != "-" && !leakscope_table::is_remote(p) && !p.exists();
    match paths.iter().find(missing) {
        Some(path) => {
            let message = format!("cannot read {}: there is no such file or folder", path.display());
            Err(Failure::option(option, message))
        }
        None => Ok(()),
    }
}

impl Failure {
    /// A message about an option, by its name in requests.
    pub fn option(name: &str, message: impl std::fmt::Display) -> Self {
        Self::Option { name: name.into(), value: None, message: message.to_string() }
    }

    /// A message about the number that an option was given.
    pub fn number(name: &str, value: impl std::fmt::Display, message: impl std::fmt::Display) -> Self {
        let value = Some(Value::Number(value.to_string()));
        Self::Option { name: name.into(), value, message: message.to_string() }
    }

    /// A message about the text that an option was given.
    pub fn text(name: &str, value: impl std::fmt::Display, message: impl std::fmt::Display) -> Self {
        let value = Some(Value::Text(value.to_string()));
        Self::Option { name: name.into(), value, message: message.to_string() }
    }

    /// The message as an interface spells its options.
    pub fn spelled(&self, spelling: Spelling) -> String {
        match self {
            Self::Message(text) | Self::Data(text) | Self::Fit(text) => spell(text, spelling),
            Self::Option { name, value, message } => spelling.complaint(name, value.as_ref(), message),
            Self::Interrupted => "stopped; nothing was written".into(),
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Message(_) | Self::Option { .. } | Self::Data(_) | Self::Fit(_) => 2,
            Self::Interrupted => 130,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.spelled(Spelling::Rust))
    }
}

impl std::error::Error for Failure {}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Interrupted | TableError::Core(CoreError::Interrupted) => Self::Interrupted,
            other => Self::Data(other.to_string()),
        }
    }
}

impl From<leakscope_report::NotFinite> for Failure {
    fn from(number: leakscope_report::NotFinite) -> Self {
        Self::Data(number.to_string())
    }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Self {
        match error {
            CoreError::Interrupted => Self::Interrupted,
            CoreError::Overflow { value } => Self::Message(format!(
                "leakage at this noise is {}: expected a finite number: choose a larger ⟨sigma⟩, or other units \
                 with ⟨scale=standard⟩",
                numeral(value)
            )),
            CoreError::Setting { setting, value, expected } => {
                Self::number(option_of(setting), numeral(value), format!("expected {expected}"))
            }
            CoreError::Weight { .. } => {
                Self::option("weights", "balancing needs positive weights: leave rows of weight zero out")
            }
            other => Self::Message(other.to_string()),
        }
    }
}

/// The option by which a number reaches core.
fn option_of(setting: Setting) -> &'static str {
    match setting {
        Setting::Sigma => "sigma",
        Setting::LaplaceScale => "laplace",
        Setting::Categories => "randomised_response",
        Setting::ResponseNoise => "noise",
        Setting::Rate => "rate",
        Setting::Steps => "steps",
        Setting::Epsilon => "epsilon",
        Setting::Delta => "delta",
        Setting::Alpha => "alpha",
        Setting::Candidates => "candidates",
        Setting::Trials => "trials",
        Setting::Power => "power",
        Setting::Threshold => "huber_threshold",
    }
}

/// A failure of the fit in words: core speaks of column numbers, users of names and flags.
pub fn explain(error: CoreError, encoding: &Encoding, l2: f64) -> Failure {
    let names = encoding.columns();
    let name = |j: usize| format!("`{}`", names[j]);
    let intercept = encoding.intercept.then(|| names.len() - 1);
    let remedy = if l2 > 0.0 { "or raise ⟨l2⟩" } else { "or add a penalty, for example ⟨l2=1e-3⟩" };
    let rows = encoding.rows_training;
    if let CoreError::Singular { .. } = &error
        && rows <= names.len() as u64
    {
        return Failure::Fit(format!(
            "there {} for {} coefficients, so the minimiser is not unique: add a penalty (for example \
             ⟨l2=1e-3⟩), use fewer columns (⟨drop⟩), or keep some components (⟨pca=10⟩)",
            if rows == 1 { "is 1 row".into() } else { format!("are {rows} rows") },
            names.len()
        ));
    }
    let text = match error {
        CoreError::Singular { column, of } => {
            let others: Vec<usize> = of.iter().copied().filter(|&j| Some(j) != intercept).collect();
            let list = others.iter().map(|&j| name(j)).collect::<Vec<_>>().join(", ");
            let full = encoding.one_hot == leakscope_table::OneHot::Full && encoding.intercept;
            let hint = if full { ", use ⟨one_hot=drop-last⟩" } else { "" };
            let constant = match others.as_slice() {
                [only] if Some(column) == intercept => Some(*only),
                [] => Some(column),
                _ => None,
            };
            if let Some(j) = constant {
                return Failure::Fit(format!(
                    "column {} is constant in the training rows, so its coefficient is not unique: remove it with \
                     ⟨drop⟩, {remedy}",
                    name(j)
                ));
            }
            let subject = if Some(column) == intercept {
                format!("columns {list} add up to a constant, like the intercept")
            } else {
                format!("column {} is a linear combination of {list}", name(column))
            };
            format!(
                "{subject}, so the coefficients are not unique: remove one of them with ⟨drop⟩{hint}, {remedy}"
            )
        }
        CoreError::Separable => format!(
            "the classes of `{}` can be told apart exactly by these columns, so without a penalty the coefficients \
             are infinite: add one, for example ⟨l2=1e-3⟩",
            encoding.target.name
        ),
        CoreError::NoConvergence { iterations, gradient, tolerance } => {
            let why = if l2 > 0.0 {
                "the problem is badly scaled: use ⟨scale=standard⟩, or raise ⟨l2⟩"
            } else {
                "the classes (or counts) may be separable in some direction, so that coefficients grow without \
                 end: add a penalty, for example ⟨l2=1e-3⟩"
            };
            let how = if gradient <= tolerance {
                "the coefficients do not settle, although the gradient is all but zero".into()
            } else {
                format!("relative gradient {gradient:.1e}, tolerance {tolerance:.0e}")
            };
            format!("the fit did not converge in {iterations} iterations ({how}): {why}")
        }
        other => return other.into(),
    };
    Failure::Fit(text)
}
