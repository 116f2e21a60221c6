//! Where in a table something is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

/// A row of a file or of a table in memory: rows of data counted from 1, a header not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or what a table in memory is called.
    pub path: PathBuf,
    /// Data row, from 1.
    pub row: u64,
    /// Whether there is a header that somebody might have counted.
    pub header: bool,
}

impl Place {
    /// A row of a file.
    pub(crate) fn in_file(path: &Path, row: u64) -> Self {
        Self { path: path.into(), row, header: true }
    }

    /// A row of a table in memory.
    pub(crate) fn in_memory(name: &Path, row: u64) -> Self {
        Self { path: name.into(), row, header: false }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, row) = (self.path.display(), self.row);
        match self.header {
            true => write!(f, "{path}, data row {row} (the header is not counted)"),
            false => write!(f, "{path}, row {row} (counted from 1)"),
        }
    }
}
