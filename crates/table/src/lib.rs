//! Files and tables in memory to encoded blocks of rows, and per-record results back to files.
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
//! | [`Schema`], [`Public`] | what is known of the columns before anybody looks: kinds, bounds, levels, units |
//! | [`Encoding`] | levels, scales, components, each with its [`Origin`]; directions of attributes; the way back to original units |
//! | [`Remark`] | what was guessed about the table, and what was done about it |
//! | [`Dataset`] | the encoded rows of a [`Subset`], as `leakscope_core::rows::Rows` |
//! | [`Splits`] | a table cut into parts that others can read on their own |
//! | [`RecordsWriter`] | records from parallel parts, in order; [`record_numbers`] reads a column of them back |
//! | [`Hooks`] | a request to stop, and progress |
//!
//! Every cell that is used is checked in the first pass; an [`Error`] names file, column and row and says
//! what to do. Splits and blocks depend on the data alone, so the same input gives the same bits with any
//! number of threads. Rows are numbered from 1, the header not counted.
//!
//! Inside: `dates` ← `notation` ← `batch`, `content` ← `arrow_column`, `csv_file`, `json_lines` ← `parquet_file`, `memory`
//! (over `matrix`), `arrow_file` ← `source` ← `table` ← `split`, `schema`, `public` ← `layout` ← `profile`, `plan` ←
//! `encoder` ← `fit`, `dataset`, `draft`; `records` stands alone.

mod answer;
mod arrow_column;
mod arrow_file;
mod away;
mod batch;
mod column;
mod content;
mod csv_file;
mod dataset;
mod dates;
mod directions;
mod draft;
mod duplicates;
mod encoder;
mod encoding;
mod error;
mod fit;
mod holdout;
mod hooks;
mod json_lines;
mod layout;
mod machines;
mod matrix;
mod memory;
mod moments;
mod notation;
mod parquet_file;
mod place;
mod plan;
mod profile;
mod public;
mod rare;
mod records;
mod records_file;
mod remark;
mod runs;
mod schema;
mod source;
mod split;
mod splits;
mod stored;
mod table;
mod temporary;
mod words;

pub use answer::{RunPass, answer, answer_part};
pub use away::AwayRows;
pub use column::{ColumnSchema, Kind, Origin, Role, Roles};
pub use content::{TextEncoding, read_once, standard_input};
pub use dataset::{CACHE_BYTES, Dataset, DatasetOptions, Labels, RowCount};
pub use dates::DateOrder;
pub use duplicates::EqualRows;
pub use encoding::{
    Attribute, Class, ColumnProfile, EncodeOptions, Encoding, Group, Guess, MIN_LEVEL_COUNT, Missing, OneHot,
    Pca, ReadOff, Scale, Target, TargetCoding, TargetKind,
};
pub use error::{Error, OddCells, Result, TargetError};
pub use fit::Profiled;
pub use holdout::{Holdout, SplitKey};
pub use hooks::{Hooks, OnProgress, Progress, Stage};
pub use machines::{Answers, Machines, Partition, Work, check_answer};
pub use matrix::{Element, Matrix};
pub use memory::{Memory, MemoryColumn};
pub use notation::{Decimal, Notation};
pub use place::Place;
pub use plan::Subset;
pub use profile::{Counts, Profile, Profiling};
pub use public::Public;
pub use rare::HangingLevels;
pub use records::{
    Columns, CompleteRecords, PartMaker, RecordsFormat, RecordsPart, RecordsSchema, RecordsWriter,
};
pub use records_file::{RecordNumbers, record_numbers};
pub use remark::Remark;
pub use schema::{Bounds, Edge, Schema, SchemaColumn, SchemaError, SchemaKind};
pub use splits::{Extent, FileSplit, Splits};
pub use stored::{Fingerprint, is_remote, open_bytes};
pub use table::{ReadOptions, Table, display_name};
pub use temporary::{is_temporary, remove_temporary_files, temporary_file};
pub use words::{closest, known_names};
