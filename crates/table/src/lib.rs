//! CSV and Parquet to encoded blocks of rows, and per-record results back to files.
//!
//! ```text
//! files ─Table→ typed batches ─Encoding::fit→ Encoding (plain data)
//!       ─Dataset→ blocks of encoded rows, in memory or streamed, in parallel, merged in row order
//! results ─RecordsWriter→ one Parquet or CSV file, private, complete or absent
//! ```
//!
//! | type | what it is |
//! |---|---|
//! | [`Table`] | one or several files with the same columns, or tables in memory ([`Memory`]) |
//! | [`Roles`], [`EncodeOptions`] | what each column is for, and how it is to be encoded |
//! | [`Encoding`] | levels, scales, components; directions of attributes; the way back to original units |
//! | [`Dataset`] | the encoded rows of a [`Subset`], as `leakscope_core::rows::Rows` |
//! | [`Splits`] | a table cut into parts that others can read on their own |
//! | [`RecordsWriter`] | records from parallel parts, in order |
//! | [`Hooks`] | a request to stop, and progress |
//!
//! Every cell that is used is checked in the first pass; an [`Error`] names file, column and row and says
//! what to do. Splits and blocks depend on the data alone, so the same input gives the same bits with any
//! number of threads. Rows are numbered from 1, the header not counted.
//!
//! Inside: `batch` ← `arrow_column`, `csv_file` ← `parquet_file`, `memory` (over `matrix`) ← `table` ← `split`, `layout` ← `profile`, `plan` ← `encoder` ← `fit`,
//! `dataset`; `records` stands alone.

mod arrow_column;
mod batch;
mod csv_file;
mod dataset;
mod directions;
mod encoder;
mod encoding;
mod error;
mod fit;
mod holdout;
mod hooks;
mod layout;
mod matrix;
mod memory;
mod parquet_file;
mod plan;
mod profile;
mod records;
mod split;
mod table;
mod temporary;
mod words;

pub use dataset::{CACHE_BYTES, Dataset, DatasetOptions, Labels};
pub use encoding::{
    Attribute, Class, ColumnProfile, EncodeOptions, Encoding, Group, Missing, OneHot, Pca, Roles, Scale,
    Target, TargetCoding, TargetKind,
};
pub use error::{Error, Place, Result};
pub use holdout::Holdout;
pub use hooks::{Hooks, OnProgress, Progress, Stage};
pub use matrix::{Element, Matrix};
pub use memory::{Memory, MemoryColumn};
pub use plan::Subset;
pub use profile::{Counts, Profile, Profiling};
pub use records::{
    Columns, CompleteRecords, PartMaker, RecordsFormat, RecordsPart, RecordsSchema, RecordsWriter,
};
pub use split::{Extent, FileSplit, Splits};
pub use table::{ColumnSchema, Kind, ReadOptions, Table, shown};
pub use temporary::{remove_temporary_files, temporary_file};
