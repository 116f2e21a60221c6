//! One or several files (or tables in memory) as one table: opening, columns, splits, and the pass over raw batches.

use crate::arrow_column::Dictionary;
use crate::batch::{Batch, Want};
use crate::column::{ColumnSchema, Kind, stands_for_none};
use crate::content::TextEncoding;
use crate::csv_file::{CsvRange, Markers, TextOptions};
use crate::hooks::{Hooks, Stage, Watch};
use crate::machines::{Away, Machines};
use crate::matrix::Matrix;
use crate::memory::Memory;
use crate::notation::{Decimal, Notation, Verdict};
use crate::place::Place;
use crate::source::{Source, common_notation, is_index_name};
use crate::{Error, Result, words};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Which files to read, and how.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// The files; several form one table, in this order. `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Delimiter of CSV files; `None` guesses it from the header line among `, ; tab |`.
    pub delimiter: Option<u8>,
    /// Tables in memory; they come after the files.
    #[serde(skip)]
    pub memory: Vec<Memory>,
    /// What means "missing" besides an empty cell, `NA`, `N/A`, `NaN`, `nan`, `null`, `NULL`, `None` and `?`.
    pub na: Vec<String>,
    /// Encoding of text files.
    pub encoding: TextEncoding,
    /// What separates fractions in text files.
    pub decimal: Decimal,
    /// Whether CSV files have no line of names: columns are then called `c1`, `c2`, ….
    pub no_header: bool,
    /// Who reads the rows, where that is not this machine.
    #[serde(skip)]
    pub machines: Option<Arc<dyn Machines>>,
}

impl ReadOptions {
    /// Names of the files without their folders, and of tables in memory, for display.
    pub fn names(&self) -> Vec<String> {
        let memory = self.memory.iter().map(Memory::name);
        let files = self.paths.iter().map(PathBuf::as_path);
        files.chain(memory).map(display_name).collect()
    }
}

/// The name of a file without its folder, for display.
pub fn display_name(path: &Path) -> String {
    if crate::content::is_standard_input(path) {
        return crate::content::STANDARD_INPUT.into();
    }
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// An opened table. Cheap to clone; reading starts with a pass.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) inner: Arc<Inner>,
    /// Who reads its splits, where that is not this machine.
    pub(crate) away: Option<Arc<Away>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) files: Vec<TableFile>,
    columns: Vec<ColumnSchema>,
    pub(crate) markers: Markers,
    index: OnceLock<Index>,
    /// Whether this is one split of a larger table.
    is_split: bool,
}

#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) source: Source,
    /// Field of this file for each column of the table.
    fields: Vec<usize>,
}

#[derive(Debug)]
struct Index {
    splits: Vec<Split>,
    rows: u64,
}

/// A part of the table that is read on its own.
#[derive(Debug, Clone)]
pub(crate) struct Split {
    pub(crate) file: usize,
    /// First row, counted from 0 over the whole table.
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
    /// Runs with a state of their own.
    pub(crate) runs: usize,
    pub(crate) part: Part,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Range(CsvRange),
    Group { group: usize, row_in_file: u64 },
    Rows { first: u64 },
}

/// A table has about this many runs at least, if each still has [`RUN_ROWS`].
const RUNS: u64 = 16;
const RUN_ROWS: u64 = 256;

/// How many runs a split of so many rows has, one of `count`.
pub(crate) fn runs_of(rows: u64, count: usize) -> usize {
    (rows / RUN_ROWS).clamp(1, RUNS.div_ceil(count.max(1) as u64)) as usize
}

/// States of at least this many splits are made before they are merged.
const WAVE: usize = 8;

/// Runs `work` over `items` in parallel and `merge` over the results in order. The first error in order
/// wins, so messages do not depend on scheduling.
pub(crate) fn in_order<T: Sync, S: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<S> + Sync,
    mut merge: impl FnMut(S) -> Result<()>,
) -> Result<()> {
    for wave in items.chunks(WAVE.max(rayon::current_num_threads())) {
        let states: Vec<Result<S>> = wave.par_iter().with_max_len(1).map(&work).collect();
        for state in states {
            merge(state?)?;
        }
    }
    Ok(())
}

impl Table {
    /// Opens the files and reads their headers; the rows are read later, in passes: here, or where [`ReadOptions::machines`] are.
    ///
    /// # Errors
    /// Those of the files; [`Error::NotInFiles`] and [`Error::NoRows`] for a table that machines cannot read.
    pub fn open(options: &ReadOptions) -> Result<Self> {
        Self::open_with(options, &Hooks::default())
    }

    /// [`Table::open`], which can be told to stop: for machines, CSV files are read through once.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_with(options: &ReadOptions, hooks: &Hooks) -> Result<Self> {
        let table = Self::of_sources(options)?;
        match &options.machines {
            None => Ok(table),
            Some(machines) => table.read_by(machines, options, hooks),
        }
    }

    fn of_sources(options: &ReadOptions) -> Result<Self> {
        if options.delimiter.is_some_and(|d| matches!(d, b'"' | b'\n' | b'\r')) {
            return Err(Error::Delimiter);
        }
        let markers = Markers::new(&options.na);
        let text = TextOptions {
            delimiter: options.delimiter,
            encoding: options.encoding,
            decimal: options.decimal,
            no_header: options.no_header,
        };
        let mut sources = Vec::with_capacity(options.paths.len());
        for path in &options.paths {
            sources.push(Source::open(path, text, &markers)?);
        }
        sources.extend(options.memory.iter().cloned().map(Source::Memory));
        let Some(first) = sources.first() else { return Err(Error::NoFiles) };
        let names = first.names().to_vec();
        let first_path = first.path().to_path_buf();
        let mut columns = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            // A column that is empty at the start of one file may show its kind in the next.
            let known = sources.iter().find_map(|s| {
                let field = s.names().iter().position(|n| n == name)?;
                s.kind(field)
            });
            let (kind, unsupported) = match known {
                Some(Ok(kind)) => (kind, None),
                Some(Err(type_name)) => (Kind::Category, Some(type_name)),
                None => (Kind::Number, None),
            };
            if names[..i].contains(name) {
                let (column, header_is_data) = (name.clone(), first.header_is_data());
                return Err(Error::DuplicateColumn { path: first_path, column, header_is_data });
            }
            let notation = match kind {
                Kind::Number => common_notation(&sources, name)?,
                Kind::Category => Notation::Plain,
            };
            // What has no name and does not count rows is a column like others.
            let nameless = first.is_nameless(i) || stands_for_none(name);
            let index = is_index_name(name) || nameless && first.counts_up(i);
            columns.push(ColumnSchema { name: name.clone(), kind, unsupported, notation, index });
        }
        for source in &mut sources {
            if let Source::Csv(csv) = source {
                csv.set_notations(&columns);
            }
        }
        let files =
            sources.into_iter().map(|s| TableFile::matched(s, &names, &first_path)).collect::<Result<_>>()?;
        let inner = Inner { files, columns, markers, index: OnceLock::new(), is_split: false };
        Ok(Self { inner: Arc::new(inner), away: None })
    }

    /// One split of a table whose columns and markers are known.
    pub(crate) fn of_one_split(
        source: Source,
        columns: &[ColumnSchema],
        na: &[String],
        split: Split,
    ) -> Result<Self> {
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let path = source.path().to_path_buf();
        let files = vec![TableFile::matched(source, &names, &path)?];
        let rows = split.rows;
        let index = OnceLock::from(Index { splits: vec![split], rows });
        let (columns, markers) = (columns.to_vec(), Markers::new(na));
        Ok(Self { inner: Arc::new(Inner { files, columns, markers, index, is_split: true }), away: None })
    }

    /// Takes the splits as they were found before, so that nobody reads the files through to find them again.
    pub(crate) fn take_splits(&self, splits: Vec<Split>) {
        let rows = splits.iter().map(|s| s.rows).sum();
        // Whoever was first found the same.
        let _ = self.inner.index.set(Index { splits, rows });
    }

    /// Whether this is one split of a larger table.
    pub(crate) fn is_split(&self) -> bool {
        self.inner.is_split
    }

    /// The columns, in the order of the first file.
    pub fn columns(&self) -> &[ColumnSchema] {
        &self.inner.columns
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.inner.files.iter().map(|f| f.source.path())
    }

    /// Index of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|c| c.name == name)
    }

    /// Number of rows of all files. Reads CSV files through once, to find where records start; Parquet knows.
    pub fn rows(&self, hooks: &Hooks) -> Result<u64> {
        Ok(self.index(hooks)?.rows)
    }

    pub(crate) fn column(&self, flag: &'static str, name: &str) -> Result<usize> {
        self.position(name.trim()).ok_or_else(|| {
            let (names, header_is_data) =
                (self.columns().iter().map(|c| c.name.as_str()), self.header_is_data());
            // Values of a first row are no names to choose from.
            let known = if header_is_data { String::new() } else { words::known_names(name, names.clone()) };
            let closest = words::closest(name, names);
            Error::UnknownColumn { flag, column: name.into(), closest, known, header_is_data }
        })
    }

    /// Where a column of text is nearly all numbers, in every file that has text in it: its first cell that is none.
    pub(crate) fn odd_cell(&self, column: usize) -> Option<(Place, &str)> {
        let mut first = None;
        for TableFile { source, fields } in &self.inner.files {
            let field = fields[column];
            match source {
                Source::Csv(csv) => match &csv.verdicts[field] {
                    Verdict::Text { odd: Some((row, cell)), .. } => {
                        first = first.or(Some((csv.place(*row), cell.as_str())));
                    }
                    Verdict::Text { odd: None, .. } => return None,
                    Verdict::Numbers(_) | Verdict::Empty => {}
                },
                Source::Parquet(parquet) if parquet.kinds[field] == Ok(Kind::Category) => return None,
                Source::Memory(memory) if *memory.kind(field) == Ok(Kind::Category) => return None,
                Source::Parquet(_) | Source::Memory(_) => {}
            }
        }
        first
    }

    /// The first few different texts of a column, in all files, that are neither numbers nor dates.
    pub(crate) fn texts(&self, column: usize) -> Vec<String> {
        let of = |TableFile { source, fields }: &TableFile| match source {
            Source::Csv(csv) => csv.texts[fields[column]].clone(),
            Source::Parquet(_) | Source::Memory(_) => vec![],
        };
        self.inner.files.iter().flat_map(of).collect()
    }

    /// Whether what a column holds was guessed, and one cell decides the guess.
    pub(crate) fn hangs_on_one(&self, column: usize) -> bool {
        self.inner.files.iter().any(|TableFile { source, fields }| match source {
            Source::Csv(csv) => csv.hang_on_one[fields[column]],
            Source::Parquet(_) | Source::Memory(_) => false,
        })
    }

    /// Whether no file shows what a column holds.
    pub(crate) fn is_empty(&self, column: usize) -> bool {
        self.inner.files.iter().all(|f| f.source.kind(f.fields[column]).is_none())
    }

    /// The first cell with a decimal comma, in a column of text that would hold numbers with one.
    pub(crate) fn comma_cell(&self, column: usize) -> Option<(Place, &str)> {
        self.text_cell(column, |verdict| match verdict {
            Verdict::Text { comma, .. } => comma.as_ref(),
            Verdict::Numbers(_) | Verdict::Empty => None,
        })
    }

    /// The first cell that a verdict on a column of a text file points out.
    fn text_cell(
        &self,
        column: usize,
        of: impl Fn(&Verdict) -> Option<&(u64, String)>,
    ) -> Option<(Place, &str)> {
        self.inner.files.iter().find_map(|TableFile { source, fields }| match source {
            Source::Csv(csv) => {
                of(&csv.verdicts[fields[column]]).map(|(row, cell)| (csv.place(*row), cell.as_str()))
            }
            Source::Parquet(_) | Source::Memory(_) => None,
        })
    }

    /// The first cell of a column of dates that do not tell whether the day or the month comes first.
    pub(crate) fn date_cell(&self, column: usize) -> Option<(Place, &str)> {
        self.text_cell(column, |verdict| match verdict {
            Verdict::Text { date, .. } => date.as_ref(),
            Verdict::Numbers(_) | Verdict::Empty => None,
        })
    }

    /// Whether the names of the columns look like a row of data.
    pub fn header_is_data(&self) -> bool {
        self.inner.files.iter().any(|f| f.source.header_is_data())
    }

    pub(crate) fn first_path(&self) -> PathBuf {
        self.paths().next().map(PathBuf::from).unwrap_or_default()
    }

    pub(crate) fn splits(&self, hooks: &Hooks) -> Result<&[Split]> {
        Ok(&self.index(hooks)?.splits)
    }

    fn index(&self, hooks: &Hooks) -> Result<&Index> {
        if let Some(index) = self.inner.index.get() {
            return Ok(index);
        }
        let bytes = self.inner.files.iter().map(|f| f.source.bytes_to_index()).sum();
        let watch = hooks.watch(Stage::Index, bytes);
        let mut splits = Vec::new();
        let mut first_row = 0;
        for (file, TableFile { source, .. }) in self.inner.files.iter().enumerate() {
            match source {
                Source::Csv(csv) => {
                    for range in csv.index(&watch)? {
                        splits.push(Split {
                            file,
                            first_row,
                            rows: range.rows,
                            runs: 1,
                            part: Part::Range(range),
                        });
                        first_row += range.rows;
                    }
                }
                Source::Parquet(parquet) => {
                    let mut row_in_file = 0;
                    for (group, rows) in parquet.group_rows().into_iter().enumerate() {
                        if rows > 0 {
                            splits.push(Split {
                                file,
                                first_row,
                                rows,
                                runs: 1,
                                part: Part::Group { group, row_in_file },
                            });
                        }
                        first_row += rows;
                        row_in_file += rows;
                    }
                }
                Source::Memory(memory) => {
                    let mut first = 0;
                    for rows in memory.splits() {
                        splits.push(Split { file, first_row, rows, runs: 1, part: Part::Rows { first } });
                        first_row += rows;
                        first += rows;
                    }
                }
            }
        }
        if first_row == 0 {
            return Err(Error::NoRows { path: self.first_path() });
        }
        let count = splits.len();
        splits.iter_mut().for_each(|split| split.runs = runs_of(split.rows, count));
        Ok(self.inner.index.get_or_init(|| Index { splits, rows: first_row }))
    }

    /// Whether every wanted column can be read as wanted.
    pub(crate) fn check(&self, wants: &[Want]) -> Result<()> {
        for file in &self.inner.files {
            match &file.source {
                Source::Csv(_) => {}
                Source::Parquet(parquet) => parquet.check(wants, &file.fields)?,
                Source::Memory(memory) => memory.check(wants, &file.fields)?,
            }
        }
        Ok(())
    }

    /// One pass over raw batches: a state per split, merged in row order.
    pub(crate) fn fold<S: Send>(
        &self,
        (wants, batch_rows): (&[Want], usize),
        (hooks, stage): (&Hooks, Stage),
        start: impl Fn(usize) -> S + Sync,
        step: impl Fn(&mut S, &Batch) -> Result<()> + Sync,
        merge: impl FnMut(S) -> Result<()>,
    ) -> Result<()> {
        self.check(wants)?;
        let splits = self.splits(hooks)?;
        let watch = hooks.watch(stage, self.rows(hooks)?);
        let numbered: Vec<(usize, &Split)> = splits.iter().enumerate().collect();
        let work = |(number, split): &(usize, &Split)| {
            let mut state = start(*number);
            self.read_split(split, wants, batch_rows, &watch, &mut |batch| step(&mut state, batch))?;
            Ok(state)
        };
        in_order(&numbered, work, merge)
    }

    /// Reads one split after the other on this thread, for passes whose order matters.
    pub(crate) fn fold_in_sequence(
        &self,
        (wants, batch_rows): (&[Want], usize),
        (hooks, stage): (&Hooks, Stage),
        mut step: impl FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let watch = hooks.watch(stage, self.rows(hooks)?);
        for split in self.splits(hooks)? {
            self.read_split(split, wants, batch_rows, &watch, &mut step)?;
        }
        Ok(())
    }

    pub(crate) fn read_split(
        &self,
        split: &Split,
        wants: &[Want],
        batch_rows: usize,
        watch: &Watch<'_>,
        step: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let file = &self.inner.files[split.file];
        let mut batch = Batch::new(wants);
        (batch.file, batch.first_row) = (split.file, split.first_row);
        let markers = &self.inner.markers;
        let mut each = |batch: &Batch| {
            watch.advance(batch.len as u64)?;
            step(batch)
        };
        match (&file.source, &split.part) {
            (Source::Csv(csv), Part::Range(range)) => {
                csv.read(range, (wants, &file.fields), markers, &mut batch, batch_rows, &mut each)
            }
            (Source::Parquet(parquet), Part::Group { group, row_in_file }) => {
                batch.row_in_file = *row_in_file;
                let group = (*group, split.rows);
                parquet.read(group, (wants, &file.fields), markers, &mut batch, batch_rows, &mut each)
            }
            (Source::Memory(memory), Part::Rows { first }) => {
                if first + split.rows > memory.rows() as u64 {
                    return Err(Error::OnlyAway { name: memory.name().into() });
                }
                let rows = *first as usize..(first + split.rows) as usize;
                memory.read(rows, (wants, &file.fields), markers, &mut batch, batch_rows, &mut each)
            }
            _ => unreachable!("a split belongs to the format of its file"),
        }
    }

    /// Where row `i` of a batch is.
    pub(crate) fn place(&self, batch: &Batch, i: usize) -> Place {
        let (source, row) = (&self.inner.files[batch.file].source, batch.row_in_file + i as u64 + 1);
        match source {
            Source::Csv(csv) => csv.place(row - 1),
            Source::Parquet(_) => Place::in_file(source.path(), row),
            Source::Memory(memory) => Place::in_memory(memory.name(), row),
        }
    }

    /// A reader of any rows, where the whole table is one in memory.
    pub(crate) fn in_memory(&self) -> Option<RowsInMemory<'_>> {
        match self.inner.files.as_slice() {
            [TableFile { source: Source::Memory(memory), fields }] => {
                Some(RowsInMemory { memory, fields, markers: &self.inner.markers })
            }
            _ => None,
        }
    }
}

/// A table in memory, as passes see it that read its rows in an order of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsInMemory<'a> {
    memory: &'a Memory,
    fields: &'a [usize],
    markers: &'a Markers,
}

impl RowsInMemory<'_> {
    /// Whether reading these columns again and again costs little.
    pub(crate) fn is_quick(self, wants: &[Want]) -> bool {
        self.memory.is_quick(wants, self.fields)
    }

    /// The matrix whose columns are these wants, in order; not where some numbers stand for missing values.
    pub(crate) fn matrix_of(self, wants: &[Want]) -> Option<Arc<Matrix>> {
        self.memory.matrix_of(wants, self.fields).filter(|_| self.markers.own_numbers.is_empty())
    }

    /// Reads rows into a batch, leaving out the first `skip` wants.
    pub(crate) fn read(
        self,
        rows: std::ops::Range<usize>,
        (wants, skip): (&[Want], usize),
        dictionaries: &mut Vec<Dictionary>,
        batch: &mut Batch,
    ) -> Result<()> {
        batch.first_row = rows.start as u64;
        self.memory.read_rows(rows, (wants, self.fields, skip), self.markers, dictionaries, batch)
    }
}

impl TableFile {
    /// Matches the columns of a file with those of the table by name.
    fn matched(source: Source, names: &[String], first: &Path) -> Result<Self> {
        let path = || source.path().to_path_buf();
        let own = source.names();
        for (i, name) in own.iter().enumerate() {
            if own[..i].contains(name) {
                let header_is_data = source.header_is_data();
                return Err(Error::DuplicateColumn { path: path(), column: name.clone(), header_is_data });
            }
            if !names.contains(name) {
                let column = name.clone();
                return Err(Error::ColumnsDiffer {
                    path: path(),
                    first: first.into(),
                    column,
                    missing: false,
                });
            }
        }
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            fields.push(own.iter().position(|n| n == name).ok_or_else(|| Error::ColumnsDiffer {
                path: path(),
                first: first.into(),
                column: name.clone(),
                missing: true,
            })?);
        }
        Ok(Self { source, fields })
    }
}
