//! The splits of a table as plain data: what another machine needs to read one of them, and nothing of the others.

use crate::column::ColumnSchema;
use crate::content::TextEncoding;
use crate::notation::Decimal;
use crate::stored::{Fingerprint, Stored};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A table of files, cut into the splits that passes read on their own, in row order.
///
/// Splits depend on the files alone. The state of a pass over the table is that of its splits, merged in this order, so
/// it does not matter where each of them was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splits {
    /// The columns of the table.
    pub columns: Vec<ColumnSchema>,
    /// What means "missing" besides the usual markers.
    pub na: Vec<String>,
    /// The splits.
    pub splits: Vec<FileSplit>,
}

/// Consecutive rows of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSplit {
    /// The file.
    pub path: PathBuf,
    /// First row, counted from 0 over the whole table.
    pub first_row: u64,
    /// Number of rows.
    pub rows: u64,
    /// Its place among the splits of the whole table, from 0.
    pub number: usize,
    /// Runs with a state of their own.
    pub runs: usize,
    /// The file as it was.
    pub file: Fingerprint,
    /// Checksum of the bytes, where they are a range of the file.
    pub content: Option<u64>,
    /// First row, counted from 0 in the file.
    pub row_in_file: u64,
    /// Where in the file they are.
    pub extent: Extent,
}

/// Where in a file the rows of a split are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Records of a CSV file.
    Bytes {
        /// First byte; of a compressed file, in the uncompressed stream.
        start: u64,
        /// One past the last.
        end: u64,
        /// What separates cells.
        delimiter: u8,
        /// The encoding of its text.
        encoding: TextEncoding,
        /// What separates fractions.
        decimal: Decimal,
        /// Whether the first line is a row of data.
        no_header: bool,
        /// Whether the file is compressed.
        gzip: bool,
        /// Size of the whole file, to notice that it has changed.
        file_bytes: u64,
    },
    /// A row group of a Parquet file.
    RowGroup {
        /// Its number, from 0.
        group: usize,
    },
    /// A partition of a data frame, which whoever reads it is given.
    Partition {
        /// Its number, from 0, partitions without rows included.
        index: usize,
    },
}

impl Splits {
    /// One split alone, as a task is told of it; it keeps its number.
    pub fn only(&self, at: usize) -> Result<Self> {
        let count = self.splits.len();
        let split = self.splits.get(at).ok_or(Error::NoSplit { number: at, count })?;
        Ok(Self { columns: self.columns.clone(), na: self.na.clone(), splits: vec![split.clone()] })
    }
}

/// Checksum of what a split holds, where it is a range of the file as it stands and no tag tells its version; Parquet has its own,
/// and gzip too.
pub(crate) fn content_of(file: &Stored, extent: &Extent) -> Result<Option<u64>> {
    match extent {
        Extent::Bytes { start, end, gzip: false, .. } => file.checksum(*start, *end),
        Extent::Bytes { gzip: true, .. } | Extent::RowGroup { .. } | Extent::Partition { .. } => Ok(None),
    }
}
