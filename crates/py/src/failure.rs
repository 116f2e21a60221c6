//! Failures as exceptions: the library's message with options spelled as keywords, and a class to catch it by.

use leakscope::{Failure, Spelling};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    leakscope,
    LeakscopeError,
    PyValueError,
    "There is no answer; the message says why and what to do. The others are kinds of it."
);
create_exception!(
    leakscope,
    OptionError,
    LeakscopeError,
    "An option has no such value; the message names it."
);
create_exception!(
    leakscope,
    DataError,
    LeakscopeError,
    "Something is wrong with the table; the message says where."
);
create_exception!(
    leakscope,
    FitError,
    LeakscopeError,
    "The model has no unique minimiser, or none was found."
);
create_exception!(
    leakscope,
    BudgetError,
    LeakscopeError,
    "A release was refused: it would go past the budget."
);

/// The exception for a failure.
pub(crate) fn exception(failure: &Failure) -> PyErr {
    let text = failure.spelled(Spelling::Python);
    match failure {
        Failure::Message(_) => LeakscopeError::new_err(text),
        Failure::Option { .. } => OptionError::new_err(text),
        Failure::Data(_) => DataError::new_err(text),
        Failure::Fit(_) => FitError::new_err(text),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(text),
    }
}
