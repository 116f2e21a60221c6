//! Arrow IPC files (Feather, version 2): their batches are taken into memory as they are.

use crate::content::Content;
use crate::memory::{Memory, MemoryColumn};
use crate::parquet_file::guarded;
use crate::{Error, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// How an Arrow IPC file starts.
pub(crate) const MAGIC: &[u8] = b"ARROW1";
/// How the first version of Feather started.
pub(crate) const MAGIC_FEATHER_1: &[u8] = b"FEA1";

/// Reads the whole file.
pub(crate) fn open(content: &Content, path: &Path) -> Result<Memory> {
    if content.is_held() {
        return Err(Error::BinaryInput { format: "Arrow" });
    }
    let damaged = |message: String| Error::Arrow { path: path.into(), message };
    let file = File::open(path).map_err(|source| content.failed(source))?;
    let mut reader = guarded(|| FileReader::try_new(BufReader::new(file), None)).map_err(damaged)?;
    let schema = reader.schema();
    let mut batches: Vec<RecordBatch> = Vec::new();
    while let Some(batch) = guarded(|| reader.next().transpose()).map_err(damaged)? {
        batches.push(batch);
    }
    let column = |i: usize| -> Vec<ArrayRef> { batches.iter().map(|b| b.column(i).clone()).collect() };
    let fields = schema.fields().iter().enumerate();
    let columns = fields.map(|(i, f)| {
        let mut chunks = column(i);
        if chunks.is_empty() {
            chunks.push(arrow_array::new_empty_array(f.data_type())); // keeps the type of a column without rows
        }
        (f.name().clone(), MemoryColumn::Arrow(chunks))
    });
    Memory::new(&path.to_string_lossy(), columns.collect())
}
