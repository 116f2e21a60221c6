//! What can be wrong with a table, as data. Every message says where, what was expected and what to do.

mod as_core;
mod target;
mod wording;

use crate::place::Place;
use leakscope_core::error::numeral;
use std::path::PathBuf;
pub use target::TargetError;
use wording::{
    closest_names, how_to_correct, missing_advice, missing_columns, missing_markers, missing_or_extra,
    no_header, no_store, other_columns, row_or_header,
};

/// The result of reading, encoding or writing a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Cells that are no numbers in columns of numbers, among the first rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OddCells {
    /// As they are written, as far as they differ.
    pub texts: Vec<String>,
    /// Other columns that have such cells.
    pub others: Vec<String>,
}

/// Why a table cannot be read, encoded or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The delimiter cannot separate fields.
    #[error("a delimiter must not be a quote or a line break: choose one such as , ; tab or |")]
    Delimiter,
    /// A schema, bounds or levels are wrong, or contradict the table.
    #[error(transparent)]
    Schema(#[from] crate::schema::SchemaError),
    /// No file was named.
    #[error("no file was given: name at least one CSV, JSON lines, Parquet or Feather file")]
    NoFiles,
    /// Rows in memory cannot be read elsewhere.
    #[error(
        "{} is held in memory as a whole, so that no other machine can read a part of it: write it to a Parquet file",
        name.display()
    )]
    NotInFiles {
        /// What the table is called.
        name: PathBuf,
    },
    /// Rows that only other machines have were to be read here.
    #[error(
        "the rows of {} are with the engine that made them, and this question reads them on one machine: write them to Parquet \
         files, and give the names of the files",
        name.display()
    )]
    OnlyAway {
        /// What the table is called.
        name: PathBuf,
    },
    /// A split was asked for that is not there.
    #[error("there is no split {number}: the table has {count}, counted from 0")]
    NoSplit {
        /// Its number.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// The file cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The name of an object in a store that is not read.
    #[error("cannot read {}: {}", path.display(), no_store(scheme, *possible))]
    NoStore {
        /// Its name.
        path: PathBuf,
        /// What the name begins with.
        scheme: String,
        /// Whether another build might read it.
        possible: bool,
    },
    /// A folder was named where a file is needed.
    #[error(
        "{} is a folder: name the files in it (a shell pattern such as {}/*.parquet does)",
        path.display(),
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The file has no bytes, or only blank lines.
    #[error("{} is empty: expected a header line with column names, then rows", path.display())]
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// There is a header but not one row.
    #[error("{} has column names but no rows of data", path.display())]
    NoRows {
        /// The first file of the table.
        path: PathBuf,
    },
    /// The bytes are neither Parquet, gzip nor text.
    #[error(
        "{} is neither CSV nor JSON lines in UTF-8 (nor such a file compressed with gzip), nor Parquet, nor Feather: \
         convert it to one of them, or say ⟨encoding=utf-16⟩ if it is text in that encoding",
        path.display()
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The file is that of a spreadsheet or of another programme.
    #[error(
        "{} is {workbook}, which is not read: save the table as CSV in UTF-8 (in Excel: Save As, CSV UTF-8), or read it \
         with pandas and hand the frame to the Python package",
        path.display()
    )]
    Workbook {
        /// The file.
        path: PathBuf,
        /// What it is.
        workbook: &'static str,
    },
    /// The first version of Feather.
    #[error("{} is a Feather file of version 1: write it again with a current pyarrow or pandas", path.display())]
    OldFeather {
        /// The file.
        path: PathBuf,
    },
    /// A format that cannot come through standard input.
    #[error("standard input is in {format}, which is read in place: name the file")]
    BinaryInput {
        /// The format.
        format: &'static str,
    },
    /// The file is no UTF-16.
    #[error("{} is not UTF-16: leave ⟨encoding⟩ away for UTF-8, or say ⟨encoding=latin-1⟩", path.display())]
    NotUtf16 {
        /// The file.
        path: PathBuf,
    },
    /// The Arrow file is damaged.
    #[error("{} cannot be read as Feather or Arrow (truncated or damaged? write it again): {message}", path.display())]
    Arrow {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        message: String,
    },
    /// A line is no JSON object.
    #[error("{place}: no JSON object: {message}")]
    Json {
        /// Where.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// One array where lines are needed.
    #[error(
        "{} is one JSON array: write one object a line (pandas: to_json(…, orient=\"records\", lines=True))",
        path.display()
    )]
    JsonArray {
        /// The file.
        path: PathBuf,
    },
    /// A list or an object where a value is needed.
    #[error(
        "{place}: column `{column}` holds a list or an object: expected a number, a text, true, false or null"
    )]
    Nested {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// The Parquet file is damaged, truncated or uses something unsupported.
    #[error("{} cannot be read as Parquet (truncated or damaged? write it again): {message}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        message: String,
    },
    /// The CSV parser failed.
    #[error("{place}: cannot be read as CSV: {message}")]
    Csv {
        /// Where.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// The first line is unlike those after it.
    #[error(
        "{}: the first line, `{line}`, is unlike those after it, which have {fields} fields separated by `{delimiter}`: if it does \
         not name the columns, remove it from the file, and where no other line names them read the rest with ⟨no_header⟩",
        path.display()
    )]
    FirstLine {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
        /// Fields of the second line.
        fields: usize,
        /// What separates them.
        delimiter: char,
    },
    /// A row has more or fewer fields than the header.
    #[error("{place}: {actual} fields, but the header has {expected}: check the delimiter and the quoting")]
    Fields {
        /// Where.
        place: Place,
        /// Fields of the row.
        actual: usize,
        /// Columns of the header.
        expected: usize,
    },
    /// A quote that nobody closed took the rows after it into its field.
    #[error(
        "{place}: a field that begins with a quote runs over the end of its line and does not end with one: close it, or take the \
         quote away; a quote that belongs to a text is written twice, in a field between quotes"
    )]
    Torn {
        /// Where the row begins.
        place: Place,
    },
    /// A cell, or the header, is not UTF-8.
    #[error(
        "{}, {}: column `{column}` is not UTF-8: save the file as UTF-8, or read it with ⟨encoding=latin-1⟩", path.display(), row_or_header(*row)
    )]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Data row from 1; 0 for the header.
        row: u64,
        /// The column.
        column: String,
    },
    /// Two columns have one name.
    #[error(
        "{}: column `{column}` occurs twice in the header: rename one of them{}",
        path.display(),
        no_header(*header_is_data)
    )]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Whether the header looks like a row of data.
        header_is_data: bool,
    },
    /// The columns of a table in memory differ in length.
    #[error(
        "{}: column `{column}` has {actual} values, but `{first}` has {expected}: every column needs one value a row",
        path.display()
    )]
    Lengths {
        /// The table.
        path: PathBuf,
        /// The column that is longer or shorter.
        column: String,
        /// Its length.
        actual: usize,
        /// The first column.
        first: String,
        /// The length of that.
        expected: usize,
    },
    /// The files of one table have different columns.
    #[error(
        "{}: column `{column}` {}: files of one table need the same columns",
        path.display(),
        missing_or_extra(*missing, first)
    )]
    ColumnsDiffer {
        /// The file that differs.
        path: PathBuf,
        /// The file it is compared with.
        first: PathBuf,
        /// The column.
        column: String,
        /// Whether `path` lacks the column (otherwise it has one too many).
        missing: bool,
    },
    /// A column holds numbers in one file and text in another.
    #[error(
        "{}: column `{column}` is {actual}, but numbers are expected there: convert it, \
         or name it with ⟨categorical={column}⟩",
        path.display()
    )]
    KindsDiffer {
        /// The file that differs.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type in this file.
        actual: String,
    },
    /// A column is written in one way in one file and in another elsewhere.
    #[error(
        "{}: column `{column}` is in {notation}, but in another file in {expected}: write it in one way",
        path.display()
    )]
    NotationsDiffer {
        /// The file that differs.
        path: PathBuf,
        /// The column.
        column: String,
        /// What another file has.
        expected: String,
        /// What this file has.
        notation: String,
    },
    /// A column of text would hold numbers with a decimal comma.
    #[error(
        "{place}: column `{column}` holds numbers with a decimal comma, such as `{value}`: read them with ⟨decimal=,⟩ \
         or treat the column as categories with ⟨categorical={column}⟩"
    )]
    DecimalComma {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The first such cell.
        value: String,
    },
    /// A flag names a column that is not there.
    #[error("⟨{flag}⟩: there is no column `{column}`{}{}", closest_names(closest, known), no_header(*header_is_data))]
    UnknownColumn {
        /// The flag.
        flag: &'static str,
        /// The name that was given.
        column: String,
        /// The names that are closest to it.
        closest: Vec<String>,
        /// Those there are, in a clause, where none is close.
        known: String,
        /// Whether the header looks like a row of data.
        header_is_data: bool,
    },
    /// One column has two roles that exclude each other.
    #[error("column `{column}` is given both as ⟨{first}⟩ and as ⟨{second}⟩: it can be only one of them")]
    RoleConflict {
        /// The column.
        column: String,
        /// A flag.
        first: &'static str,
        /// Another flag.
        second: &'static str,
    },
    /// No column is left to be a feature.
    #[error(
        "no feature columns are left besides the target, the id, the weights, what ⟨drop⟩ removes and what was taken for an \
         identifier because nearly all its values differ (name such a column with ⟨categorical⟩ to keep it)"
    )]
    NoFeatures,
    /// The features have no encoded column: each is a category with a single level.
    #[error(
        "every feature has one level only, so none is left when one is dropped: use ⟨one_hot=full⟩, \
         or other features"
    )]
    NoColumns,
    /// A used column has a type that has no encoding.
    #[error(
        "column `{column}` of {} has type {type_name}, which has no encoding as number or category: \
         remove it with ⟨drop={column}⟩, or convert it to numbers or text",
        path.display()
    )]
    UnsupportedType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type, as Arrow names it.
        type_name: String,
    },
    /// There are missing values and no rule for them.
    #[error(
        "missing values: {}. {}{}",
        missing_columns(columns),
        missing_advice(columns, needed, empty),
        no_header(*header_is_data)
    )]
    Missing {
        /// Columns with their number of missing values.
        columns: Vec<(String, u64)>,
        /// Those of them that are no features: a row without them is of no use.
        needed: Vec<String>,
        /// Those that have no value at all.
        empty: Vec<String>,
        /// Whether the names of the columns look like a row of data.
        header_is_data: bool,
    },
    /// The target, a weight, an id or a group is missing, which no mean can fill.
    #[error(
        "column `{column}` ({role}) has {count} missing {}, which ⟨missing=mean⟩ cannot fill in: \
         use ⟨missing=drop⟩, or complete the column",
        if *count == 1 { "value" } else { "values" }
    )]
    MissingRole {
        /// The column.
        column: String,
        /// What it is for.
        role: &'static str,
        /// How many values are missing.
        count: u64,
    },
    /// A value is missing in a table that is encoded with a fitted encoding.
    #[error(
        "{place}: column `{column}` has no value: complete it, or choose ⟨missing=drop⟩ (or, for a \
         feature and where nothing is released, ⟨missing=mean⟩)"
    )]
    MissingAt {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// A column has no value in any training row.
    #[error("column `{column}` has no value in any training row: remove it with ⟨drop={column}⟩")]
    NoValues {
        /// The column.
        column: String,
    },
    /// A numeric column has a cell that is no number.
    #[error(
        "{place}: column `{column}` holds numbers, but here `{value}`{}: correct it, declare it missing \
         with {}, or treat the column as categories with ⟨categorical={column}⟩",
        other_columns(&all.others),
        missing_markers(value, &all.texts)
    )]
    TextInNumber {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The cell, truncated.
        value: String,
        /// All such cells among the first rows.
        all: Box<OddCells>,
    },
    /// A cell is ±infinity.
    #[error("{place}: column `{column}` is infinite: expected a finite number; correct it or remove the row")]
    Infinite {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// The values are finite but their spread is not.
    #[error(
        "column `{column}`: the values reach {value:e}, and their squares overflow: correct them, or express the column in \
         larger units"
    )]
    TooLarge {
        /// The column.
        column: String,
        /// The value of largest magnitude.
        value: f64,
    },
    /// The values differ, but not by numbers whose squares are above zero.
    #[error(
        "column `{column}`: the values lie within {spread:e} of each other, and the squares of that are zero: express it in smaller \
         units, or leave it out with ⟨drop={column}⟩"
    )]
    TooSmall {
        /// The column.
        column: String,
        /// Largest less smallest value.
        spread: f64,
    },
    /// A categorical column has too many levels.
    #[error(
        "column `{column}` has more than {limit} distinct values, like an identifier: remove it with \
         ⟨drop={column}⟩, or make it the id with ⟨id={column}⟩"
    )]
    TooManyLevels {
        /// The column.
        column: String,
        /// The most that is allowed.
        limit: usize,
    },
    /// A category that training did not have.
    #[error(
        "{place}: column `{column}` is `{value}`, which the training rows do not have{}",
        how_to_correct(closest)
    )]
    UnseenLevel {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// The level, truncated.
        value: String,
        /// The level that training has and that was perhaps meant.
        closest: Option<String>,
    },
    /// Two rows have one id.
    #[error(
        "column `{column}`: id `{id}` occurs twice, in {first} and in {second}: every number here is about one row, and whoever \
         stands behind several is exposed more, which this command does not count; join the rows of each into one (an audit counts \
         them together)"
    )]
    DuplicateId {
        /// The id column.
        column: String,
        /// The id.
        id: String,
        /// Its first row.
        first: Box<Place>,
        /// Its second row.
        second: Box<Place>,
    },
    /// The weights are text.
    #[error("⟨weights⟩: column `{column}` holds text, expected numbers that are zero or more")]
    TextWeights {
        /// The weights column.
        column: String,
    },
    /// A weight is negative.
    #[error("{place}: weight `{column}` is {}: weights must be zero or more", numeral(*value))]
    Weight {
        /// Where.
        place: Place,
        /// The weights column.
        column: String,
        /// The weight.
        value: f64,
    },
    /// No training row has a positive weight.
    #[error("all weights in column `{column}` are zero: at least one row needs a positive weight")]
    ZeroWeights {
        /// The weights column.
        column: String,
    },
    /// The target cannot be predicted as was asked.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The share of rows to hold out makes no sense.
    #[error("⟨holdout={}⟩: expected a share between 0 and 1, such as 0.2", numeral(*fraction))]
    Holdout {
        /// The share.
        fraction: f64,
    },
    /// The split leaves one side without rows.
    #[error("⟨holdout={}⟩ leaves no rows {side} of {rows}: choose another share or seed", numeral(*fraction))]
    HoldoutEmpty {
        /// The share.
        fraction: f64,
        /// Which side is empty.
        side: &'static str,
        /// Rows that were there to be split.
        rows: u64,
    },
    /// Every row was dropped.
    #[error(
        "all {rows} rows have a missing value and were dropped: ⟨drop⟩ the emptiest columns, or, where nothing is \
         released, use ⟨missing=mean⟩"
    )]
    AllDropped {
        /// Rows read.
        rows: u64,
    },
    /// The number of principal components is out of range.
    #[error("⟨pca={components}⟩: expected between 1 and {columns}, the number of encoded columns")]
    Components {
        /// What was asked for.
        components: usize,
        /// Encoded columns.
        columns: usize,
    },
    /// A table that is encoded with a fitted encoding lacks a column.
    #[error("{}: column `{column}` is missing, but the model was trained with it", path.display())]
    AbsentColumn {
        /// The first file of the table.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A part of a table that another machine was to read, or read, has no answer.
    #[error("part {part} ({}): {message}", path.display())]
    Part {
        /// Its number, from 0.
        part: usize,
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Whoever has parts read elsewhere gave up: its own message.
    #[error("{0}")]
    Elsewhere(String),
    /// The file changed between two passes.
    #[error("{} changed while it was read: run again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not the one that was cut into parts.
    #[error(
        "{} has changed since it was planned, and what was computed of it does not hold any more: plan again into an empty folder",
        path.display()
    )]
    ChangedSincePlanned {
        /// The file.
        path: PathBuf,
    },
    /// A result file cannot be written.
    #[error("cannot write {}: {message}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        message: String,
    },
    /// A record has another number of values than the file has columns.
    #[error("a record has {actual} {subject}, the file has {expected} such columns")]
    RecordShape {
        /// Which columns.
        subject: &'static str,
        /// Values of the record.
        actual: usize,
        /// Columns of the file.
        expected: usize,
    },
    /// The caller asked to stop.
    #[error("stopped on request")]
    Interrupted,
    /// The mathematics failed.
    #[error(transparent)]
    Core(#[from] leakscope_core::Error),
}

impl Error {
    /// The same, said of a part of a table.
    pub(crate) fn in_part(self, part: usize, path: &std::path::Path) -> Self {
        match self {
            Self::Interrupted | Self::Core(leakscope_core::Error::Interrupted) => Self::Interrupted,
            Self::Part { .. } => self,
            other => Self::Part { part, path: path.into(), message: other.to_string() },
        }
    }
}
