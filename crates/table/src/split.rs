//! A table cut into splits, as plain data: what another machine needs to read one of them, and nothing of the others.

use crate::column::ColumnSchema;
use crate::content::{Content, TextEncoding};
use crate::csv_file::{CsvFile, CsvRange, TextOptions};
use crate::hooks::Hooks;
use crate::notation::Decimal;
use crate::parquet_file::ParquetFile;
use crate::source::Source;
use crate::table::{Part, Split, Table};
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
}

impl Table {
    /// Cuts the table into splits, as its own passes do.
    ///
    /// # Errors
    /// [`Error::NotInFiles`] where rows are in memory, as those of standard input, JSON lines, UTF-16 text and Arrow
    /// files are too: nobody else can read a part of them there.
    pub fn cut(&self, hooks: &Hooks) -> Result<Splits> {
        let describe = |split: &Split| {
            let source = &self.inner.files[split.file].source;
            let place = match (source, &split.part) {
                (Source::Csv(csv), Part::Range(range)) => {
                    bytes_of(csv, range).map(|extent| (range.first_row, extent))
                }
                (Source::Parquet(_), Part::Group { group, row_in_file }) => {
                    Some((*row_in_file, Extent::RowGroup { group: *group }))
                }
                (Source::Csv(_) | Source::Parquet(_) | Source::Memory(_), _) => None,
            };
            let not_in_files = || Error::NotInFiles { name: source.path().into() };
            let (row_in_file, extent) = place.ok_or_else(not_in_files)?;
            let (first_row, rows) = (split.first_row, split.rows);
            Ok(FileSplit { path: source.path().into(), first_row, rows, row_in_file, extent })
        };
        let splits = self.splits(hooks)?.iter().map(describe).collect::<Result<_>>()?;
        Ok(Splits { columns: self.columns().to_vec(), na: self.inner.markers.own.clone(), splits })
    }

    /// Opens one split of a table on its own: only its file is touched, and of that only the header or footer.
    ///
    /// # Errors
    /// [`Error::Changed`] where the file is not the one that was cut, [`Error::NoSplit`] for a number beyond the last.
    pub fn of_split(splits: &Splits, number: usize) -> Result<Self> {
        let count = splits.splits.len();
        let split = splits.splits.get(number).ok_or(Error::NoSplit { number, count })?;
        let changed = || Error::Changed { path: split.path.clone() };
        let (first_row, rows, row_in_file) = (split.first_row, split.rows, split.row_in_file);
        let (source, part) = match split.extent {
            Extent::Bytes { start, end, delimiter, encoding, decimal, no_header, gzip, file_bytes } => {
                let (content, _) = Content::open(&split.path)?;
                if content.bytes != file_bytes || content.gzip != gzip || content.is_held() || start > end {
                    return Err(changed());
                }
                let delimiter = Some(delimiter);
                let options = TextOptions { delimiter, encoding, decimal, no_header };
                let mut csv = CsvFile::with_known_columns(content, options)?;
                csv.set_notations(&splits.columns);
                (Source::Csv(csv), Part::Range(CsvRange { start, end, first_row: row_in_file, rows }))
            }
            Extent::RowGroup { group } => {
                let parquet = ParquetFile::open(&split.path)?;
                if parquet.group_rows().get(group) != Some(&rows) {
                    return Err(changed());
                }
                (Source::Parquet(parquet), Part::Group { group, row_in_file })
            }
        };
        Self::of_one_split(source, &splits.columns, &splits.na, Split { file: 0, first_row, rows, part })
    }
}

/// Records of a CSV file; `None` where its bytes are in memory.
fn bytes_of(csv: &CsvFile, range: &CsvRange) -> Option<Extent> {
    let TextOptions { delimiter, encoding, decimal, no_header } = csv.written()?;
    Some(Extent::Bytes {
        start: range.start,
        end: range.end,
        delimiter: delimiter?,
        encoding,
        decimal,
        no_header,
        gzip: csv.is_compressed(),
        file_bytes: csv.bytes(),
    })
}
