//! A table cut into splits, and one split opened as a table of its own.

use crate::content::Content;
use crate::csv_file::{CsvFile, CsvRange, TextOptions};
use crate::hooks::Hooks;
use crate::machines::{Away, Machines, Partition};
use crate::memory::Memory;
use crate::parquet_file::ParquetFile;
use crate::source::Source;
use crate::splits::{Extent, FileSplit, Splits, content_of};
use crate::stored::{Fingerprint, Stored};
use crate::table::{Part, ReadOptions, Split, Table, runs_of};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Table {
    /// Cuts the table into splits, as its own passes do.
    ///
    /// # Errors
    /// [`Error::NotInFiles`] where rows are in memory, as those of standard input, JSON lines, UTF-16 text and Arrow
    /// files are too: nobody else can read a part of them there.
    pub fn cut(&self, hooks: &Hooks) -> Result<Splits> {
        let mut files = Vec::new();
        for path in self.paths() {
            // What is held in memory has no file, and is refused below.
            let file = Stored::find(path).and_then(|file| Ok((file.fingerprint()?, file)));
            files.push(file.ok());
        }
        let describe = |(number, split): (usize, &Split)| {
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
            let (first_row, rows, runs) = (split.first_row, split.rows, split.runs);
            let (file, stored) = files[split.file].as_ref().ok_or_else(not_in_files)?;
            let path = source.path().to_path_buf();
            let content = content_of(stored, &extent)?;
            Ok(FileSplit { path, first_row, rows, number, runs, file: *file, content, row_in_file, extent })
        };
        let splits = self.splits(hooks)?.iter().enumerate().map(describe).collect::<Result<_>>()?;
        Ok(Splits { columns: self.columns().to_vec(), na: self.inner.markers.own.clone(), splits })
    }

    /// Takes the splits that were cut before, without reading the files through again.
    ///
    /// # Errors
    /// [`Error::ChangedSincePlanned`] where a file is not the one that was cut.
    pub(crate) fn resume(&self, cut: &Splits) -> Result<()> {
        let paths: Vec<PathBuf> = self.paths().map(PathBuf::from).collect();
        let mut splits = Vec::with_capacity(cut.splits.len());
        let mut checked: Option<&Path> = None;
        for split in &cut.splits {
            let changed =
                || Error::ChangedSincePlanned { path: split.path.clone() }.in_part(split.number, &split.path);
            if checked != Some(&*split.path) && Stored::find(&split.path)?.fingerprint()? != split.file {
                return Err(changed());
            }
            checked = Some(&split.path);
            let file = paths.iter().position(|path| *path == split.path).ok_or_else(changed)?;
            let (first_row, rows, runs, part) = (split.first_row, split.rows, split.runs, split.part());
            splits.push(Split { file, first_row, rows, runs, part });
        }
        self.take_splits(splits);
        Ok(())
    }

    /// Opens one split of a table on its own: only its file is touched, and of that only the header or footer.
    ///
    /// # Errors
    /// [`Error::ChangedSincePlanned`] where the file is not the one that was cut, [`Error::NoSplit`] for a number beyond the last.
    pub fn of_split(splits: &Splits, number: usize) -> Result<Self> {
        let count = splits.splits.len();
        let split = splits.splits.get(number).ok_or(Error::NoSplit { number, count })?;
        let changed = || Error::ChangedSincePlanned { path: split.path.clone() };
        let (first_row, rows, runs) = (split.first_row, split.rows, split.runs);
        if let Extent::Partition { .. } = split.extent {
            return Err(Error::OnlyAway { name: split.path.clone() });
        }
        let stored = Stored::find(&split.path)?;
        if stored.fingerprint()? != split.file || content_of(&stored, &split.extent)? != split.content {
            return Err(changed());
        }
        let source = match split.extent {
            Extent::Bytes { start, end, delimiter, encoding, decimal, no_header, gzip, file_bytes } => {
                let (content, _) = Content::of(stored)?;
                if content.bytes != file_bytes || content.gzip != gzip || start > end {
                    return Err(changed());
                }
                let delimiter = Some(delimiter);
                let options = TextOptions { delimiter, encoding, decimal, no_header };
                let mut csv = CsvFile::with_known_columns(content, options)?;
                csv.set_notations(&splits.columns);
                Source::Csv(csv)
            }
            Extent::RowGroup { group } => {
                let parquet = ParquetFile::open(&stored)?;
                if parquet.group_rows().get(group) != Some(&rows) {
                    return Err(changed());
                }
                Source::Parquet(parquet)
            }
            Extent::Partition { .. } => return Err(Error::OnlyAway { name: split.path.clone() }),
        };
        let part = split.part();
        Self::of_one_split(
            source,
            &splits.columns,
            &splits.na,
            Split { file: 0, first_row, rows, runs, part },
        )
    }

    /// Opens one split of a table whose rows are partitions of an engine, with the rows of that partition.
    ///
    /// # Errors
    /// [`Error::Changed`] where they are not those that were counted, [`Error::NoSplit`] for a number beyond the last.
    pub fn of_partition(splits: &Splits, number: usize, rows: &Memory) -> Result<Self> {
        let count = splits.splits.len();
        let split = splits.splits.get(number).ok_or(Error::NoSplit { number, count })?;
        let partition = Partition::of(rows);
        if (partition.rows, partition.ends) != (split.rows, split.file.ends) {
            return Err(Error::Changed { path: split.path.clone() });
        }
        let part = Part::Rows { first: 0 };
        let split = Split { file: 0, first_row: split.first_row, rows: split.rows, runs: split.runs, part };
        Self::of_one_split(Source::Memory(rows.clone()), &splits.columns, &splits.na, split)
    }
}

impl FileSplit {
    fn part(&self) -> Part {
        let (rows, row_in_file) = (self.rows, self.row_in_file);
        match self.extent {
            Extent::Bytes { start, end, .. } => {
                Part::Range(CsvRange { start, end, first_row: row_in_file, rows })
            }
            Extent::RowGroup { group } => Part::Group { group, row_in_file },
            Extent::Partition { .. } => Part::Rows { first: 0 },
        }
    }
}

/// Records of a CSV file; `None` where its bytes are in memory.
fn bytes_of(csv: &CsvFile, range: &CsvRange) -> Option<Extent> {
    let TextOptions { delimiter, encoding, decimal, no_header } = csv.text_options()?;
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

impl Table {
    /// The same table, with its splits read by machines, in passes that are sent to them.
    pub(crate) fn read_by(
        self,
        machines: &Arc<dyn Machines>,
        options: &ReadOptions,
        hooks: &Hooks,
    ) -> Result<Self> {
        let splits = match options.memory.as_slice() {
            [memory] if options.paths.is_empty() => {
                let name = memory.name();
                let partitions = machines.partitions(name)?;
                self.of_partitions(name, &partitions.ok_or_else(|| Error::NotInFiles { name: name.into() })?)?
            }
            _ => self.of_files(machines, &options.paths, hooks)?,
        };
        Ok(Self { away: Some(Arc::new(Away::new(machines, splits))), ..self })
    }

    fn of_files(&self, machines: &Arc<dyn Machines>, paths: &[PathBuf], hooks: &Hooks) -> Result<Splits> {
        let splits = match machines.splits(paths)? {
            Some(splits) => {
                self.resume(&splits)?;
                splits
            }
            None => self.cut(hooks)?,
        };
        match self.paths().find(|path| !splits.splits.iter().any(|s| s.path == *path)) {
            Some(empty) => Err(Error::NoRows { path: empty.into() }),
            None => Ok(splits),
        }
    }

    /// The splits of a table whose rows are partitions of an engine: one for each that has rows.
    fn of_partitions(&self, name: &Path, partitions: &[Partition]) -> Result<Splits> {
        let (mut splits, mut first_row) = (vec![], 0);
        let count = partitions.iter().filter(|p| p.rows > 0).count();
        for (index, Partition { rows, ends }) in partitions.iter().enumerate().filter(|(_, p)| p.rows > 0) {
            splits.push(FileSplit {
                path: format!("partition {index} of {}", name.display()).into(),
                first_row,
                rows: *rows,
                number: splits.len(),
                runs: runs_of(*rows, count),
                file: Fingerprint { bytes: 0, ends: *ends },
                content: None,
                row_in_file: 0,
                extent: Extent::Partition { index },
            });
            first_row += rows;
        }
        if splits.is_empty() {
            return Err(Error::NoRows { path: name.into() });
        }
        let of = |s: &FileSplit| {
            let part = Part::Rows { first: s.first_row };
            Split { file: 0, first_row: s.first_row, rows: s.rows, runs: s.runs, part }
        };
        self.take_splits(splits.iter().map(of).collect());
        Ok(Splits { columns: self.columns().to_vec(), na: self.inner.markers.own.clone(), splits })
    }
}
