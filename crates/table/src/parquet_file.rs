//! Parquet: types, row groups, and decoding of a row group into batches.

use crate::arrow_column::{Dictionary, check_reading, kind_of, notation_of, read_cells};
use crate::batch::{Batch, Reading, Want};
use crate::column::Kind;
use crate::csv_file::Markers;
use crate::notation::Notation;
use crate::place::Place;
use crate::stored::{Chunks, Stored};
use crate::{Error, Result};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use std::fmt::Display;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// A Parquet file whose footer was read.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    stored: Stored,
    metadata: ArrowReaderMetadata,
    pub(crate) names: Vec<String>,
    /// Kind of each column, or the name of a type that has none.
    pub(crate) kinds: Vec<std::result::Result<Kind, String>>,
}

impl ParquetFile {
    pub(crate) fn open(stored: &Stored) -> Result<Self> {
        let path = stored.path();
        let chunks = stored.chunks(&[stored.footer()?])?;
        let metadata = guarded(|| ArrowReaderMetadata::load(&chunks, ArrowReaderOptions::new()))
            .map_err(|message| Error::Parquet { path: path.into(), message })?;
        let fields = metadata.schema().fields();
        let names: Vec<String> = fields.iter().map(|f| f.name().trim().to_string()).collect();
        let kinds = fields.iter().map(|f| kind_of(f.data_type())).collect();
        if names.is_empty() {
            return Err(Error::EmptyFile { path: path.into() });
        }
        Ok(Self { path: path.into(), stored: stored.clone(), metadata, names, kinds })
    }

    /// How the numbers of a column are written.
    pub(crate) fn notation(&self, field: usize) -> Notation {
        notation_of(self.metadata.schema().field(field).data_type())
    }

    /// Rows of each row group.
    pub(crate) fn group_rows(&self) -> Vec<u64> {
        self.metadata.metadata().row_groups().iter().map(|g| g.num_rows().max(0) as u64).collect()
    }

    fn failed(&self, message: String) -> Error {
        Error::Parquet { path: self.path.clone(), message }
    }

    /// Whether every wanted column can be read as wanted.
    pub(crate) fn check(&self, wants: &[Want], fields: &[usize]) -> Result<()> {
        for want in wants {
            let field = fields[want.column];
            let (name, kind) = (&self.names[field], &self.kinds[field]);
            let data_type = self.metadata.schema().field(field).data_type();
            check_reading(&self.path, (name, kind, data_type), want.reading)?;
        }
        Ok(())
    }

    /// Levels keep the dictionary of the file, so that no text is compared twice.
    fn schema_for(&self, wants: &[Want], fields: &[usize]) -> SchemaRef {
        let schema = self.metadata.schema();
        let changed = schema.fields().iter().enumerate().map(|(i, field)| {
            let text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            let level = wants.iter().any(|w| fields[w.column] == i && w.reading == Reading::Level);
            let unique = wants.iter().any(|w| fields[w.column] == i && w.reading == Reading::Text);
            if text && level && !unique {
                let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
                Field::clone(field).with_data_type(dictionary)
            } else {
                Field::clone(field)
            }
        });
        Arc::new(Schema::new_with_metadata(changed.collect::<Vec<_>>(), schema.metadata().clone()))
    }

    /// The bytes of a row group's columns.
    fn chunks(&self, group: usize, mask: &ProjectionMask) -> Result<Chunks> {
        let of_group = self.metadata.metadata().row_group(group).columns().iter().enumerate();
        let wanted = of_group.filter(|(leaf, _)| mask.leaf_included(*leaf)).map(|(_, column)| {
            let (start, length) = column.byte_range();
            start..start.saturating_add(length)
        });
        self.stored.chunks(&wanted.collect::<Vec<Range<u64>>>())
    }

    /// Decodes row group `group` into batches of `batch_rows`. `fields` maps columns of the table to fields
    /// of this file; `batch.first_row` and `batch.row_in_file` are those of the group.
    pub(crate) fn read(
        &self,
        (group, rows): (usize, u64),
        (wants, fields): (&[Want], &[usize]),
        markers: &Markers,
        batch: &mut Batch,
        batch_rows: usize,
        each: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let options = ArrowReaderOptions::new().with_schema(self.schema_for(wants, fields));
        let metadata = ArrowReaderMetadata::try_new(self.metadata.metadata().clone(), options)
            .unwrap_or_else(|_| self.metadata.clone());
        // Fields of a projection keep the order of the file.
        let mut roots: Vec<usize> = wants.iter().map(|w| fields[w.column]).collect();
        roots.sort_unstable();
        roots.dedup();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), roots.iter().copied());
        let chunks = self.chunks(group, &mask)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, metadata)
            .with_projection(mask)
            .with_row_groups(vec![group])
            .with_batch_size(batch_rows);
        let mut reader = guarded(|| builder.build()).map_err(|e| self.failed(e))?;
        let position = |want: &Want| roots.partition_point(|r| *r < fields[want.column]);
        let mut dictionaries: Vec<Dictionary> = wants.iter().map(|_| Dictionary::default()).collect();
        let (table_row, row_in_file) = (batch.first_row, batch.row_in_file);
        let mut done = 0;
        while let Some(decoded) = guarded(|| reader.next().transpose()).map_err(|e| self.failed(e))? {
            batch.len = decoded.num_rows();
            batch.first_row = table_row + done;
            batch.row_in_file = row_in_file + done;
            for ((want, cells), dictionary) in wants.iter().zip(&mut batch.cells).zip(&mut dictionaries) {
                cells.clear();
                let array = decoded.column(position(want));
                read_cells(array, cells, dictionary, markers, true).map_err(|i| Error::Infinite {
                    place: Place::in_file(&self.path, batch.row_in_file + i as u64 + 1),
                    column: self.names[fields[want.column]].clone(),
                })?;
            }
            done += batch.len as u64;
            each(batch)?;
        }
        if done == rows { Ok(()) } else { Err(Error::Changed { path: self.path.clone() }) }
    }
}

/// Runs the decoder, which panics on some damaged files; a panic is an error like the others here.
pub(crate) fn guarded<T, E: Display>(
    decode: impl FnOnce() -> std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|e| e.to_string()),
        Err(_) => Err("the decoder gave up".into()),
    }
}
