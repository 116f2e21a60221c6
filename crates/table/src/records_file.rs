//! One number of every record, read back from a file that [`crate::RecordsWriter`] wrote.

use crate::parquet_file::guarded;
use crate::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::io;
use std::path::Path;

/// A number of every record, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordNumbers {
    /// Ids: the first column of the file.
    pub ids: Vec<String>,
    /// The numbers; NaN is missing.
    pub numbers: Vec<f64>,
}

/// Reads a column of numbers with the ids, which stand first in every file of records; `None` where there is no such column.
pub fn record_numbers(path: &Path, column: &str) -> Result<Option<RecordNumbers>> {
    match path.extension().is_some_and(|e| e == "csv") {
        true => from_csv(path, column),
        false => from_parquet(path, column),
    }
}

fn failed(path: &Path, message: impl Into<String>) -> Error {
    Error::Read { path: path.into(), source: io::Error::new(io::ErrorKind::InvalidData, message.into()) }
}

fn from_csv(path: &Path, column: &str) -> Result<Option<RecordNumbers>> {
    let mut reader = csv::Reader::from_path(path).map_err(|e| failed(path, e.to_string()))?;
    let headers = reader.headers().map_err(|e| failed(path, e.to_string()))?;
    let Some(at) = headers.iter().position(|name| name == column) else { return Ok(None) };
    let mut all = RecordNumbers::default();
    for (i, row) in reader.records().enumerate() {
        let row = row.map_err(|e| failed(path, e.to_string()))?;
        let cell = row.get(at).unwrap_or_default();
        let number = match cell.is_empty() {
            true => f64::NAN,
            false => cell.parse().map_err(|_| {
                failed(path, format!("column `{column}` of record {} is `{cell}`, which is no number", i + 1))
            })?,
        };
        all.ids.push(row.get(0).unwrap_or_default().to_owned());
        all.numbers.push(number);
    }
    Ok(Some(all))
}

fn from_parquet(path: &Path, column: &str) -> Result<Option<RecordNumbers>> {
    let broken = |message: String| Error::Parquet { path: path.into(), message };
    let file = File::open(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file)).map_err(broken)?;
    let Some(at) = builder.schema().fields().iter().position(|f| f.name() == column) else { return Ok(None) };
    let mask = ProjectionMask::roots(builder.parquet_schema(), [0, at]);
    let batches = guarded(|| {
        builder.with_projection(mask).build()?.collect::<std::result::Result<Vec<_>, _>>().map_err(Into::into)
            as std::result::Result<Vec<RecordBatch>, parquet::errors::ParquetError>
    })
    .map_err(broken)?;
    let mut all = RecordNumbers::default();
    for batch in batches {
        let last = batch.num_columns().saturating_sub(1);
        let ids = batch.column(0).as_string_opt::<i32>();
        let numbers = batch.column(last).as_primitive_opt::<Float64Type>();
        let (Some(ids), Some(numbers)) = (ids, numbers) else {
            return Err(broken(format!(
                "it is no table of records: expected ids, and numbers in `{column}`"
            )));
        };
        for i in 0..batch.num_rows() {
            all.ids.push(ids.value(i).to_owned());
            all.numbers.push(if numbers.is_null(i) { f64::NAN } else { numbers.value(i) });
        }
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordsFormat, RecordsSchema, RecordsWriter};

    #[test]
    fn what_was_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        for (format, name) in [(RecordsFormat::Parquet, "r.parquet"), (RecordsFormat::Csv, "r.csv")] {
            let path = dir.path().join(name);
            let schema = RecordsSchema {
                id: "row".into(),
                texts: vec!["class".into()],
                numbers: vec!["loss".into(), "eta".into()],
            };
            let mut writer = RecordsWriter::create(&path, format, schema).unwrap();
            let mut part = writer.parts().part();
            part.push("a,\"b\"", &["x"], &[1.0, 0.1]).unwrap();
            part.push("7", &["y"], &[2.0, f64::NAN]).unwrap();
            writer.append(part).unwrap();
            writer.finish().unwrap();
            let back = record_numbers(&path, "eta").unwrap().unwrap();
            assert_eq!(back.ids, ["a,\"b\"", "7"], "{name}");
            assert!(back.numbers[0] == 0.1 && back.numbers[1].is_nan(), "{name}");
            assert_eq!(record_numbers(&path, "dfil").unwrap(), None, "{name}");
            // A column of text is no column of numbers.
            assert!(record_numbers(&path, "class").is_err(), "{name}");
        }
        std::fs::write(dir.path().join("no.parquet"), "not a table").unwrap();
        assert!(record_numbers(&dir.path().join("no.parquet"), "eta").is_err());
        assert!(record_numbers(&dir.path().join("absent.csv"), "eta").is_err());
    }
}
