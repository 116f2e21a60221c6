//! A table that is already in memory: Arrow arrays as they are, and matrices that somebody else owns.
//!
//! Nothing is copied here but the cells of one batch at a time, and of those only what Arrow does not already hold
//! as `f64` in a column of its own.

use crate::arrow_column::{Dictionary, check_reading, kind_of, notation_of, read_cells, text_at};
use crate::batch::{Batch, Cells, Want};
use crate::column::Kind;
use crate::csv_file::{Markers, SPLIT_ROWS};
use crate::matrix::Matrix;
use crate::notation::Notation;
use crate::place::Place;
use crate::{Error, Result};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use leakscope_core::pass::bytes::crc_of;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A column of a [`Memory`].
#[derive(Debug, Clone)]
pub enum MemoryColumn {
    /// Arrays of one type, end to end.
    Arrow(Vec<ArrayRef>),
    /// Column `column` of a matrix.
    Matrix {
        /// The matrix.
        matrix: Arc<Matrix>,
        /// Which of its columns.
        column: usize,
    },
}

impl MemoryColumn {
    /// Number of cells.
    pub fn rows(&self) -> usize {
        match self {
            Self::Arrow(chunks) => chunks.iter().map(|c| c.len()).sum(),
            Self::Matrix { matrix, .. } => matrix.rows(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Arrow(chunks) => chunks.first().map_or(DataType::Null, |c| c.data_type().clone()),
            Self::Matrix { .. } => DataType::Float64,
        }
    }
}

/// Named columns of one length, in memory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// What messages call it, in the place of a file's name.
    name: PathBuf,
    names: Vec<String>,
    kinds: Vec<std::result::Result<Kind, String>>,
    columns: Vec<MemoryColumn>,
    rows: usize,
}

impl Memory {
    /// Wraps columns; `name` is what messages call the table.
    pub fn new(name: &str, columns: Vec<(String, MemoryColumn)>) -> Result<Self> {
        let path = PathBuf::from(name);
        let Some(rows) = columns.first().map(|(_, c)| c.rows()) else {
            return Err(Error::EmptyFile { path });
        };
        if let Some((column, actual)) = columns.iter().find(|(_, c)| c.rows() != rows) {
            return Err(Error::Lengths {
                path,
                column: column.clone(),
                actual: actual.rows(),
                first: columns[0].0.clone(),
                expected: rows,
            });
        }
        let kinds = columns.iter().map(|(_, c)| kind_of(&c.data_type())).collect();
        let (names, columns) = columns.into_iter().map(|(n, c)| (n.trim().to_string(), c)).unzip();
        Ok(Self { inner: Arc::new(Inner { name: path, names, kinds, columns, rows }) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.inner.rows
    }

    /// What messages call it.
    pub fn name(&self) -> &Path {
        &self.inner.name
    }

    /// Feeds everything that is in the table to `each`, in an order of its own: what a fingerprint needs.
    pub fn feed(&self, each: &mut dyn FnMut(&[u8])) {
        for (name, column) in self.inner.names.iter().zip(&self.inner.columns) {
            each(name.as_bytes());
            each(&[0]);
            match column {
                MemoryColumn::Matrix { matrix, column } => {
                    let mut values = vec![];
                    matrix.read_column(*column, 0..matrix.rows(), &mut values);
                    values.iter().for_each(|x| each(&x.to_le_bytes()));
                }
                MemoryColumn::Arrow(chunks) => {
                    for chunk in chunks {
                        for i in 0..chunk.len() {
                            // What no cell can hold stands for a missing one.
                            each(text_at(chunk, i).as_deref().unwrap_or("\u{1}").as_bytes());
                            each(&[0]);
                        }
                    }
                }
            }
        }
    }

    /// A checksum of the first and the last rows, that tells that a table has changed at little cost.
    pub(crate) fn ends(&self) -> u64 {
        const END: usize = 32;
        let rows = self.inner.rows;
        let mut text = vec![];
        for (name, column) in self.inner.names.iter().zip(&self.inner.columns) {
            text.extend_from_slice(name.as_bytes());
            for row in (0..rows.min(END)).chain(rows.saturating_sub(END).max(END)..rows) {
                text.push(0);
                match column {
                    MemoryColumn::Matrix { matrix, column } => {
                        let mut value = vec![];
                        matrix.read_column(*column, row..row + 1, &mut value);
                        value.iter().for_each(|x| text.extend_from_slice(&x.to_le_bytes()));
                    }
                    MemoryColumn::Arrow(chunks) => {
                        let mut at = row;
                        for chunk in chunks {
                            if at < chunk.len() {
                                text.extend_from_slice(
                                    text_at(chunk, at).as_deref().unwrap_or("\u{1}").as_bytes(),
                                );
                                break;
                            }
                            at -= chunk.len();
                        }
                    }
                }
            }
        }
        crc_of(&text)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.inner.names
    }

    pub(crate) fn kind(&self, field: usize) -> &std::result::Result<Kind, String> {
        &self.inner.kinds[field]
    }

    /// How the numbers of a column are written.
    pub(crate) fn notation(&self, field: usize) -> Notation {
        notation_of(&self.inner.columns[field].data_type())
    }

    /// Rows of each split: those of a CSV file of the same length, so that both give the same digits.
    pub(crate) fn splits(&self) -> Vec<u64> {
        let rows = self.inner.rows as u64;
        (0..rows.div_ceil(SPLIT_ROWS)).map(|k| SPLIT_ROWS.min(rows - k * SPLIT_ROWS)).collect()
    }

    pub(crate) fn check(&self, wants: &[Want], fields: &[usize]) -> Result<()> {
        for want in wants {
            let field = fields[want.column];
            let (kind, data_type) = (&self.inner.kinds[field], self.inner.columns[field].data_type());
            check_reading(&self.inner.name, (&self.inner.names[field], kind, &data_type), want.reading)?;
        }
        Ok(())
    }

    /// Whether reading these columns again costs little: numbers, and levels that are codes already.
    pub(crate) fn is_quick(&self, wants: &[Want], fields: &[usize]) -> bool {
        wants.iter().all(|want| {
            let data_type = self.inner.columns[fields[want.column]].data_type();
            match want.reading {
                crate::batch::Reading::Number => !matches!(
                    data_type,
                    DataType::Decimal32(..)
                        | DataType::Decimal64(..)
                        | DataType::Decimal128(..)
                        | DataType::Decimal256(..)
                ),
                crate::batch::Reading::Level => matches!(data_type, DataType::Dictionary(..)),
                crate::batch::Reading::Text => true,
            }
        })
    }

    /// The matrix whose columns from the first on are these wants, in order, if there is one.
    pub(crate) fn matrix_of(&self, wants: &[Want], fields: &[usize]) -> Option<Arc<Matrix>> {
        let at = |k: usize| &self.inner.columns[fields[wants[k].column]];
        let MemoryColumn::Matrix { matrix: first, .. } = wants.first().map(|_| at(0))? else { return None };
        let in_order = (0..wants.len()).all(|k| match at(k) {
            MemoryColumn::Matrix { matrix, column } => *column == k && Arc::ptr_eq(matrix, first),
            MemoryColumn::Arrow(_) => false,
        });
        (in_order && first.columns() == wants.len()).then(|| Arc::clone(first))
    }

    /// Reads rows into a batch, leaving out the first `skip` wants. `batch.first_row` is that of the table.
    pub(crate) fn read_rows(
        &self,
        rows: Range<usize>,
        (wants, fields, skip): (&[Want], &[usize], usize),
        markers: &Markers,
        dictionaries: &mut Vec<Dictionary>,
        batch: &mut Batch,
    ) -> Result<()> {
        dictionaries.resize_with(wants.len(), Dictionary::default);
        batch.len = rows.len();
        batch.row_in_file = rows.start as u64;
        let cells_and_dictionaries = batch.cells.iter_mut().zip(dictionaries);
        for (want, (cells, dictionary)) in wants.iter().zip(cells_and_dictionaries).skip(skip) {
            cells.clear();
            let field = fields[want.column];
            self.read_column(field, &rows, cells, dictionary, markers).map_err(|i| Error::Infinite {
                place: Place::in_memory(&self.inner.name, (rows.start + i) as u64 + 1),
                column: self.inner.names[field].clone(),
            })?;
        }
        Ok(())
    }

    fn read_column(
        &self,
        field: usize,
        rows: &Range<usize>,
        cells: &mut Cells,
        dictionary: &mut Dictionary,
        markers: &Markers,
    ) -> std::result::Result<(), usize> {
        match (&self.inner.columns[field], cells) {
            (MemoryColumn::Arrow(chunks), cells) => {
                let mut start = 0;
                for chunk in chunks {
                    let (low, high) = (rows.start.max(start), rows.end.min(start + chunk.len()));
                    if low < high {
                        let piece = chunk.slice(low - start, high - low);
                        read_cells(&piece, cells, dictionary, markers, high - low == rows.len())?;
                    }
                    start += chunk.len();
                }
                Ok(())
            }
            (MemoryColumn::Matrix { matrix, column }, Cells::Number(numbers)) => {
                matrix.read_column(*column, rows.clone(), &mut numbers.own);
                numbers
                    .own
                    .iter_mut()
                    .filter(|x| markers.own_numbers.contains(x))
                    .for_each(|x| *x = f64::NAN);
                numbers.check()
            }
            (MemoryColumn::Matrix { matrix, column }, cells) => {
                let mut values = vec![];
                matrix.read_column(*column, rows.clone(), &mut values);
                let array: ArrayRef = Arc::new(arrow_array::Float64Array::from(values));
                read_cells(&array, cells, dictionary, markers, true)
            }
        }
    }

    /// Decodes rows into batches of `batch_rows`.
    pub(crate) fn read(
        &self,
        rows: Range<usize>,
        (wants, fields): (&[Want], &[usize]),
        markers: &Markers,
        batch: &mut Batch,
        batch_rows: usize,
        each: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let table_row = batch.first_row;
        let mut dictionaries = vec![];
        for first in rows.clone().step_by(batch_rows.max(1)) {
            let last = (first + batch_rows.max(1)).min(rows.end);
            batch.first_row = table_row + (first - rows.start) as u64;
            self.read_rows(first..last, (wants, fields, 0), markers, &mut dictionaries, batch)?;
            each(batch)?;
        }
        Ok(())
    }
}
