//! Per-record results to one file (or to memory), in row order, from parts that are filled in parallel.
//!
//! A part keeps its rows in memory up to [`GROUP_ROWS`] and spills beyond into a file without a name, which
//! the system removes whatever happens. Parts are appended in order; Parquet row groups are spliced as they
//! are, without encoding them again. The result is written under a temporary name, readable by its owner
//! alone, and renamed when it is complete: until then an earlier file stays as it was.

mod sample;

use crate::temporary::temporary_file;
use crate::{Error, Result};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use sample::{Keep, Sample};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Rows of a full row group, and of what a part keeps in memory.
const GROUP_ROWS: usize = 1 << 16;

/// The format of a file of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RecordsFormat {
    /// Parquet with zstd
    #[default]
    Parquet,
    /// CSV with a header line
    Csv,
}

/// The columns of a file of records, in this order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RecordsSchema {
    /// Name of the id column (text).
    pub id: String,
    /// Names of further text columns: group, class.
    pub texts: Vec<String>,
    /// Names of the number columns.
    pub numbers: Vec<String>,
}

#[derive(Debug)]
struct Shape {
    path: PathBuf,
    folder: PathBuf,
    format: RecordsFormat,
    columns: RecordsSchema,
    schema: SchemaRef,
    properties: WriterPropertiesPtr,
    /// Whether records stay in memory, and no file is written.
    in_memory: bool,
    /// Which records stay in memory besides.
    keep: Option<Keep>,
}

impl Shape {
    fn failed(&self, error: impl std::fmt::Display) -> Error {
        Error::Write { path: self.path.clone(), message: error.to_string() }
    }
}

/// Writes one file of records; made complete by [`RecordsWriter::finish`], removed if dropped before.
#[derive(Debug)]
pub struct RecordsWriter {
    shape: Arc<Shape>,
    output: Output,
    pending: Columns,
    rows: u64,
    sample: Sample,
}

#[derive(Debug)]
enum Output {
    Parquet(SerializedFileWriter<NamedTempFile>),
    Csv(BufWriter<NamedTempFile>),
    Memory(Vec<Columns>),
}

/// Makes parts, from any thread.
#[derive(Debug, Clone)]
pub struct PartMaker {
    shape: Arc<Shape>,
}

/// Consecutive records on their way into a file.
#[derive(Debug)]
pub struct RecordsPart {
    shape: Arc<Shape>,
    rows: Columns,
    spill: Option<Spill>,
    spilled: u64,
    sample: Sample,
}

#[derive(Debug)]
enum Spill {
    Parquet(Box<ArrowWriter<File>>),
    Csv(BufWriter<File>),
}

/// Records as columns, one entry a record in each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// Position of the record in the table it came from, from 0; empty where it was not said.
    pub positions: Vec<u64>,
    /// Ids.
    pub ids: Vec<String>,
    /// Further texts, in the order of the schema.
    pub texts: Vec<Vec<String>>,
    /// Numbers, in the order of the schema; NaN is missing.
    pub numbers: Vec<Vec<f64>>,
}

impl PartMaker {
    /// An empty part.
    pub fn part(&self) -> RecordsPart {
        let rows = Columns::new(&self.shape.columns);
        let sample = Sample::new(rows.texts.len(), rows.numbers.len());
        RecordsPart { shape: Arc::clone(&self.shape), rows, spill: None, spilled: 0, sample }
    }
}

impl RecordsPart {
    /// Adds a record, and where it was in its table.
    pub fn push_at(&mut self, position: u64, id: &str, texts: &[&str], numbers: &[f64]) -> Result<()> {
        if self.shape.in_memory {
            self.rows.positions.push(position);
        }
        if let Some(keep) = self.shape.keep {
            self.sample.note(keep, position, id, texts, numbers);
        }
        self.push(id, texts, numbers)
    }

    /// Adds a record. A number that is NaN is written as missing.
    pub fn push(&mut self, id: &str, texts: &[&str], numbers: &[f64]) -> Result<()> {
        let check = |subject, actual, expected| {
            if actual == expected { Ok(()) } else { Err(Error::RecordShape { subject, actual, expected }) }
        };
        check("texts", texts.len(), self.rows.texts.len())?;
        check("numbers", numbers.len(), self.rows.numbers.len())?;
        self.rows.add(id, texts, numbers);
        if self.rows.ids.len() >= GROUP_ROWS && !self.shape.in_memory { self.spill() } else { Ok(()) }
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.spilled + self.rows.ids.len() as u64
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn spill(&mut self) -> Result<()> {
        let shape = Arc::clone(&self.shape);
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => {
                let file = tempfile::tempfile_in(&shape.folder).map_err(|e| shape.failed(e))?;
                none.insert(match shape.format {
                    RecordsFormat::Parquet => {
                        let properties = Some(WriterProperties::clone(&shape.properties));
                        let writer = ArrowWriter::try_new(file, Arc::clone(&shape.schema), properties);
                        Spill::Parquet(Box::new(writer.map_err(|e| shape.failed(e))?))
                    }
                    RecordsFormat::Csv => Spill::Csv(BufWriter::new(file)),
                })
            }
        };
        self.spilled += self.rows.ids.len() as u64;
        match spill {
            Spill::Parquet(writer) => {
                let batch = self.rows.take_batch(&shape)?;
                writer.write(&batch).and_then(|()| writer.flush()).map_err(|e| shape.failed(e))
            }
            Spill::Csv(writer) => self.rows.drain_csv(writer).map_err(|e| shape.failed(e)),
        }
    }
}

impl Columns {
    fn new(columns: &RecordsSchema) -> Self {
        Self::of_sizes(columns.texts.len(), columns.numbers.len())
    }

    /// No records, with so many columns.
    fn of_sizes(texts: usize, numbers: usize) -> Self {
        Self { positions: vec![], ids: vec![], texts: vec![vec![]; texts], numbers: vec![vec![]; numbers] }
    }

    /// Adds a record; where it was is the caller's to say.
    fn add(&mut self, id: &str, texts: &[&str], numbers: &[f64]) {
        self.ids.push(id.into());
        self.texts.iter_mut().zip(texts).for_each(|(column, text)| column.push((*text).into()));
        self.numbers.iter_mut().zip(numbers).for_each(|(column, x)| column.push(*x));
    }

    /// The records that stay.
    fn filtered(self, stays: &[bool]) -> Self {
        fn of<T>(column: Vec<T>, stays: &[bool]) -> Vec<T> {
            column.into_iter().zip(stays).filter(|(_, stays)| **stays).map(|(value, _)| value).collect()
        }
        Self {
            positions: of(self.positions, stays),
            ids: of(self.ids, stays),
            texts: self.texts.into_iter().map(|column| of(column, stays)).collect(),
            numbers: self.numbers.into_iter().map(|column| of(column, stays)).collect(),
        }
    }

    fn shrink_to_fit(&mut self) {
        self.positions.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.texts.iter_mut().for_each(Vec::shrink_to_fit);
        self.numbers.iter_mut().for_each(Vec::shrink_to_fit);
    }

    fn append(&mut self, mut other: Self) {
        self.positions.append(&mut other.positions);
        self.ids.append(&mut other.ids);
        self.texts.iter_mut().zip(&mut other.texts).for_each(|(a, b)| a.append(b));
        self.numbers.iter_mut().zip(&mut other.numbers).for_each(|(a, b)| a.append(b));
    }

    fn take_batch(&mut self, shape: &Shape) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from(std::mem::take(&mut self.ids)))];
        for texts in &mut self.texts {
            arrays.push(Arc::new(StringArray::from(std::mem::take(texts))));
        }
        for numbers in &mut self.numbers {
            let values = std::mem::take(numbers);
            let array: Float64Array = if values.iter().any(|x| x.is_nan()) {
                values.into_iter().map(|x| Some(x).filter(|x| !x.is_nan())).collect()
            } else {
                values.into()
            };
            arrays.push(Arc::new(array));
        }
        RecordBatch::try_new(Arc::clone(&shape.schema), arrays).map_err(|e| shape.failed(e))
    }

    fn drain_csv(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        for i in 0..self.ids.len() {
            writer.write_field(&self.ids[i])?;
            for texts in &self.texts {
                writer.write_field(&texts[i])?;
            }
            for numbers in &self.numbers {
                // The shortest digits that read back as the same number.
                let x = numbers[i];
                writer.write_field(if x.is_nan() { String::new() } else { format!("{x:?}") })?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()?;
        drop(writer);
        self.ids.clear();
        self.texts.iter_mut().for_each(Vec::clear);
        self.numbers.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

impl RecordsWriter {
    /// Starts a table that stays in memory, under a name that tells it from others.
    pub fn in_memory(name: &str, columns: RecordsSchema) -> Self {
        let shape = Shape {
            path: name.into(),
            folder: PathBuf::new(),
            format: RecordsFormat::Csv,
            schema: Arc::new(Schema::empty()),
            properties: Arc::new(WriterProperties::default()),
            columns,
            in_memory: true,
            keep: None,
        };
        let pending = Columns::new(&shape.columns);
        Self {
            shape: Arc::new(shape),
            output: Output::Memory(vec![]),
            pending,
            rows: 0,
            sample: Sample::default(),
        }
    }

    /// Starts a file. Nothing is at `path`, or what was there stays there, until [`RecordsWriter::finish`].
    pub fn create(path: &Path, format: RecordsFormat, columns: RecordsSchema) -> Result<Self> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let text = |name: &String| Field::new(name, DataType::Utf8, false);
        let mut fields = vec![text(&columns.id)];
        fields.extend(columns.texts.iter().map(text));
        fields.extend(columns.numbers.iter().map(|name| Field::new(name, DataType::Float64, true)));
        let schema = Arc::new(Schema::new(fields));
        // Ids and measurements hardly repeat: a dictionary would only cost time.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS));
        for name in &columns.texts {
            properties = properties.set_column_dictionary_enabled(ColumnPath::new(vec![name.clone()]), true);
        }
        let mut properties = properties.build();
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let properties = Arc::new(properties);
        let path = path.into();
        let shape = Shape { path, folder, format, columns, schema, properties, in_memory: false, keep: None };
        let file = temporary_file(&shape.folder).map_err(|e| shape.failed(e))?;
        let output = match format {
            RecordsFormat::Parquet => {
                let descriptor =
                    ArrowSchemaConverter::new().convert(&shape.schema).map_err(|e| shape.failed(e))?;
                let root = descriptor.root_schema_ptr();
                let properties = Arc::clone(&shape.properties);
                Output::Parquet(
                    SerializedFileWriter::new(file, root, properties).map_err(|e| shape.failed(e))?,
                )
            }
            RecordsFormat::Csv => {
                let mut out = BufWriter::new(file);
                let names = shape.schema.fields().iter().map(|f| f.name().as_bytes().to_vec());
                let mut header = csv::Writer::from_writer(&mut out);
                header.write_record(names).map_err(|e| shape.failed(e))?;
                header.flush().map_err(|e| shape.failed(e))?;
                drop(header);
                Output::Csv(out)
            }
        };
        let pending = Columns::new(&shape.columns);
        Ok(Self { shape: Arc::new(shape), output, pending, rows: 0, sample: Sample::default() })
    }

    /// Keeps records in memory besides, for whoever shows them: of `rows` records all, or a fair sample with those at either end
    /// of the first number, about `most` in all. To be asked before any part is made; a table in memory keeps all as it is.
    #[must_use]
    pub fn keeping(mut self, rows: u64, most: usize) -> Self {
        if let Some(shape) = Arc::get_mut(&mut self.shape).filter(|s| !s.in_memory) {
            shape.keep = Some(Keep { rows, most });
            self.sample = Sample::new(shape.columns.texts.len(), shape.columns.numbers.len());
        }
        self
    }

    /// The records that were kept, and their schema; those of a table in memory stay there, and are none of these.
    pub fn take_sample(&mut self) -> Option<(RecordsSchema, Columns)> {
        let keep = self.shape.keep?;
        Some((self.shape.columns.clone(), std::mem::take(&mut self.sample).into_rows(keep)))
    }

    /// A maker of parts that borrows nothing from the writer, so that parts can be filled while others are
    /// appended.
    pub fn parts(&self) -> PartMaker {
        PartMaker { shape: Arc::clone(&self.shape) }
    }

    /// Appends the records of a part after all that were appended before.
    pub fn append(&mut self, mut part: RecordsPart) -> Result<()> {
        self.rows += part.len();
        self.sample.append(std::mem::take(&mut part.sample));
        if let Output::Memory(parts) = &mut self.output {
            let mut rows = part.rows;
            rows.shrink_to_fit();
            parts.push(rows);
            return Ok(());
        }
        if let Some(spill) = part.spill {
            self.flush()?;
            self.splice(spill)?;
        }
        self.pending.append(part.rows);
        if self.pending.ids.len() >= GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// The name that the table was started under.
    pub fn path(&self) -> &Path {
        &self.shape.path
    }

    /// The records of a table in memory, in parts that follow one another, with their schema.
    pub fn into_parts(self) -> (RecordsSchema, Vec<Columns>) {
        let parts = match self.output {
            Output::Memory(parts) => parts,
            Output::Parquet(_) | Output::Csv(_) => vec![],
        };
        (self.shape.columns.clone(), parts)
    }

    /// Writes what small parts left behind.
    fn flush(&mut self) -> Result<()> {
        if self.pending.ids.is_empty() {
            return Ok(());
        }
        let shape = &self.shape;
        match &mut self.output {
            Output::Memory(_) => Ok(()),
            Output::Csv(out) => self.pending.drain_csv(out).map_err(|e| shape.failed(e)),
            Output::Parquet(out) => {
                let batch = self.pending.take_batch(shape)?;
                let properties = Some(WriterProperties::clone(&shape.properties));
                let mut bytes = Vec::new();
                let encode = |bytes: &mut Vec<u8>| {
                    let mut writer = ArrowWriter::try_new(bytes, Arc::clone(&shape.schema), properties)?;
                    writer.write(&batch)?;
                    writer.close()
                };
                encode(&mut bytes)
                    .and_then(|_| append_groups(out, &bytes::Bytes::from(bytes)))
                    .map_err(|e| shape.failed(e))
            }
        }
    }

    fn splice(&mut self, spill: Spill) -> Result<()> {
        let shape = &self.shape;
        match (&mut self.output, spill) {
            (Output::Parquet(out), Spill::Parquet(writer)) => {
                let file = writer.into_inner().map_err(|e| shape.failed(e))?;
                append_groups(out, &file).map_err(|e| shape.failed(e))
            }
            (Output::Csv(out), Spill::Csv(writer)) => {
                let mut file = writer.into_inner().map_err(|e| shape.failed(e))?;
                file.seek(SeekFrom::Start(0)).map_err(|e| shape.failed(e))?;
                std::io::copy(&mut file, out).map_err(|e| shape.failed(e))?;
                Ok(())
            }
            _ => unreachable!("a part has the format of its writer"),
        }
    }

    /// Completes the file, makes it durable and gives it its name. Returns the number of records.
    pub fn finish(self) -> Result<u64> {
        self.complete()?.persist()
    }

    /// Completes the file and makes it durable, still under its temporary name: what is left to do can hardly fail.
    pub fn complete(mut self) -> Result<CompleteRecords> {
        self.flush()?;
        let Self { shape, output, rows, .. } = self;
        let file = match output {
            Output::Parquet(writer) => writer.into_inner().map_err(|e| shape.failed(e))?,
            Output::Csv(out) => out.into_inner().map_err(|e| shape.failed(e))?,
            Output::Memory(_) => return Err(shape.failed("its records are kept in memory")),
        };
        file.as_file().sync_all().map_err(|e| shape.failed(e))?;
        Ok(CompleteRecords { shape, file, rows })
    }
}

/// A complete file that does not have its name yet; dropped, it is gone.
#[derive(Debug)]
pub struct CompleteRecords {
    shape: Arc<Shape>,
    file: NamedTempFile,
    rows: u64,
}

impl CompleteRecords {
    /// The name it is to have.
    pub fn path(&self) -> &Path {
        &self.shape.path
    }

    /// Gives the file its name, in the place of an earlier one. Returns the number of records.
    pub fn persist(self) -> Result<u64> {
        let Self { shape, file, rows } = self;
        file.persist(&shape.path).map_err(|e| shape.failed(e.error))?;
        // The name is durable once its folder is; not every system lets a folder be opened.
        if let Ok(folder) = File::open(&shape.folder) {
            let _ = folder.sync_all();
        }
        Ok(rows)
    }
}

/// Copies the row groups of a Parquet file, bytes as they are.
fn append_groups<W: Write + Send, R: ChunkReader>(
    out: &mut SerializedFileWriter<W>,
    file: &R,
) -> parquet::errors::Result<()> {
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .parse_and_finish(file)?;
    for (g, group) in metadata.row_groups().iter().enumerate() {
        let mut copy = out.next_row_group()?;
        for (c, column) in group.columns().iter().enumerate() {
            let index = metadata.page_index();
            copy.append_column(
                file,
                ColumnCloseResult {
                    bytes_written: column.compressed_size().max(0) as u64,
                    rows_written: group.num_rows().max(0) as u64,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: index.and_then(|i| i.column_index(g, c)).cloned(),
                    offset_index: index.and_then(|i| i.offset_index(g, c)).cloned(),
                },
            )?;
        }
        copy.close()?;
    }
    Ok(())
}
