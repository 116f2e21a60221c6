//! What the mathematics is told of a table that failed under it.

use super::Error;

impl From<Error> for leakscope_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(inner) => inner,
            Error::Interrupted => Self::Interrupted,
            other => Self::Source(other.to_string()),
        }
    }
}
