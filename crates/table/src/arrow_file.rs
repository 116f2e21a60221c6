//! Arrow IPC files (Feather, version 2): their batches are taken into memory as they are.

use crate::content::Content;
use crate::memory::{Memory, MemoryColumn};
use crate::parquet_file::guarded;
use crate::{Error, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{FileReader, read_footer_length};
use arrow_ipc::{MessageHeader, root_as_footer, root_as_message};
use std::io::{Cursor, Read};
use std::path::Path;

/// How an Arrow IPC file starts.
pub(crate) const MAGIC: &[u8] = b"ARROW1";
/// How the first version of Feather started.
pub(crate) const MAGIC_FEATHER_1: &[u8] = b"FEA1";

/// Bytes that one compressed byte can stand for at most: more than any block of zstd or LZ4 reaches.
const MAX_RATIO: u64 = 1 << 16;

/// Reads the whole file.
pub(crate) fn open(content: &Content, path: &Path) -> Result<Memory> {
    let damaged = |message: String| Error::Arrow { path: content.path.clone(), message };
    let mut bytes = Vec::new();
    content.stream(0)?.read_to_end(&mut bytes).map_err(|source| content.failed(source))?;
    check_sizes(&bytes).map_err(|message| damaged(message.into()))?;
    let mut reader = guarded(|| FileReader::try_new(Cursor::new(&bytes), None)).map_err(damaged)?;
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

/// Whether every size in the file can be true. The decoder allocates what a file says before it looks: a damaged size
/// would end the programme, not the reading.
fn check_sizes(bytes: &[u8]) -> std::result::Result<(), &'static str> {
    const SHORT: &str = "it is cut short";
    let (rest, tail) = bytes.split_last_chunk::<10>().ok_or(SHORT)?;
    let length = read_footer_length(*tail).map_err(|_| "its end is damaged")?;
    let start = rest.len().checked_sub(length).ok_or(SHORT)?;
    let footer = root_as_footer(&rest[start..]).map_err(|_| "its footer is damaged")?;
    let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
    for block in blocks {
        let part = |from: i64, length: i64| -> Option<&[u8]> {
            let (from, length) = (usize::try_from(from).ok()?, usize::try_from(length).ok()?);
            bytes.get(from..from.checked_add(length)?)
        };
        let metadata = part(block.offset(), block.metaDataLength().into()).ok_or(SHORT)?;
        let body_start = block.offset().checked_add(block.metaDataLength().into()).ok_or(SHORT)?;
        let body = part(body_start, block.bodyLength()).ok_or(SHORT)?;
        let skip = if metadata.starts_with(&[0xFF; 4]) { 8 } else { 4 };
        let message = metadata.get(skip..).and_then(|m| root_as_message(m).ok());
        let message = message.ok_or("the description of a batch is damaged")?;
        let batch = match message.header_type() {
            MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|d| d.data()),
            _ => message.header_as_record_batch(),
        };
        let Some(batch) = batch.filter(|b| b.compression().is_some()) else { continue };
        for buffer in batch.buffers().into_iter().flatten().filter(|b| b.length() > 0) {
            let from = usize::try_from(buffer.offset()).map_err(|_| SHORT)?;
            let prefix = body.get(from..).and_then(|b| b.first_chunk::<8>()).ok_or(SHORT)?;
            // −1 says that the buffer is not compressed.
            let size = i64::from_le_bytes(*prefix);
            let most = buffer.length().unsigned_abs().saturating_mul(MAX_RATIO);
            if size < -1 || size.max(0).unsigned_abs() > most {
                return Err("the size of a buffer is damaged");
            }
        }
    }
    Ok(())
}
