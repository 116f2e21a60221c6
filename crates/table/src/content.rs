//! The bytes of a text file: where they are, in which encoding, and how they become text.

use crate::stored::{self, Stored};
use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub(crate) const BUFFER: usize = 1 << 18;
/// Bytes that tell what a file is.
const HEAD: u64 = 1024;
pub(crate) const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The encoding of text files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum TextEncoding {
    /// UTF-8; a file that starts with the mark of UTF-16 is read as that.
    #[default]
    #[serde(rename = "utf-8")]
    #[cfg_attr(feature = "clap", value(name = "utf-8"))]
    Utf8,
    /// One byte a character: ISO 8859-1, with what Windows puts into its gaps (code page 1252).
    #[serde(rename = "latin-1")]
    #[cfg_attr(feature = "clap", value(name = "latin-1"))]
    Latin1,
    /// Two bytes a unit; little-endian unless a mark says otherwise. Such a file is held in memory.
    #[serde(rename = "utf-16")]
    #[cfg_attr(feature = "clap", value(name = "utf-16"))]
    Utf16,
}

/// What code page 1252 has where ISO 8859-1 has control characters.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

impl TextEncoding {
    /// A cell as text; `None` where its bytes are none in this encoding.
    pub(crate) fn text(self, cell: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            // UTF-16 was turned into UTF-8 when the file was opened.
            Self::Utf8 | Self::Utf16 => std::str::from_utf8(cell).ok().map(Cow::Borrowed),
            Self::Latin1 => Some(match std::str::from_utf8(cell) {
                Ok(text) if cell.is_ascii() => Cow::Borrowed(text),
                Ok(_) | Err(_) => Cow::Owned(cell.iter().map(|b| latin_1(*b)).collect()),
            }),
        }
    }
}

fn latin_1(byte: u8) -> char {
    match byte {
        0x80..=0x9F => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// The path that stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What messages call standard input.
pub(crate) const STANDARD_INPUT: &str = "standard input";

/// All of standard input; it is read once and kept, since a table is read in several passes.
pub fn standard_input() -> Result<Arc<[u8]>> {
    static BYTES: OnceLock<std::result::Result<Arc<[u8]>, String>> = OnceLock::new();
    let read = || {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes.into())
    };
    BYTES.get_or_init(read).clone().map_err(|message| Error::Read {
        path: STANDARD_INPUT.into(),
        source: std::io::Error::other(message),
    })
}

/// All bytes of what can be read only once: standard input, a pipe (`/dev/stdin`, `<(…)`), a device. They are kept, since a table is
/// read in several passes; `None` for a file.
pub fn read_once(path: &Path) -> Result<Option<Arc<[u8]>>> {
    static PIPES: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    if is_standard_input(path) {
        return standard_input().map(Some);
    }
    if stored::is_remote(path) {
        return Ok(None);
    }
    let failed = |source| Error::Read { path: path.into(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok(None);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = pipes.get(path) {
        return Ok(Some(Arc::clone(bytes)));
    }
    let bytes: Arc<[u8]> = std::fs::read(path).map_err(failed)?.into();
    pipes.insert(path.into(), Arc::clone(&bytes));
    Ok(Some(bytes))
}

/// The bytes of a file, in memory or where it is stored, compressed or not.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// What messages call it.
    pub(crate) path: PathBuf,
    source: Bytes,
    pub(crate) gzip: bool,
    /// Bytes, compressed as they are.
    pub(crate) bytes: u64,
}

/// Where bytes are.
#[derive(Debug, Clone)]
enum Bytes {
    Held(Arc<[u8]>),
    Stored(Stored),
}

impl Content {
    /// A file, or standard input, that is not empty; with its first bytes.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<u8>)> {
        if path.is_dir() {
            return Err(Error::Folder { path: path.into() });
        }
        let Some(held) = read_once(path)? else { return Self::of(Stored::find(path)?) };
        let path = if is_standard_input(path) { STANDARD_INPUT.as_ref() } else { path };
        Self { path: path.into(), bytes: held.len() as u64, source: Bytes::Held(held), gzip: false }
            .with_head()
    }

    /// A file that was found and is not empty, with its first bytes.
    pub(crate) fn of(stored: Stored) -> Result<(Self, Vec<u8>)> {
        let (path, bytes) = (stored.path().into(), stored.bytes()?);
        Self { path, source: Bytes::Stored(stored), gzip: false, bytes }.with_head()
    }

    fn with_head(self) -> Result<(Self, Vec<u8>)> {
        let (mut content, mut head) = (self, Vec::new());
        let first = content.raw(0, Some(HEAD))?;
        first.take(HEAD).read_to_end(&mut head).map_err(|source| content.failed(source))?;
        if head.is_empty() {
            return Err(Error::EmptyFile { path: content.path });
        }
        content.gzip = head.starts_with(&[0x1F, 0x8B]);
        Ok((content, head))
    }

    /// Bytes that are in memory already.
    pub(crate) fn of_memory(path: &Path, bytes: Vec<u8>) -> Self {
        let (path, length) = (path.into(), bytes.len() as u64);
        Self { path, source: Bytes::Held(bytes.into()), gzip: false, bytes: length }
    }

    /// Whether the bytes are in memory.
    pub(crate) fn is_held(&self) -> bool {
        self.stored().is_none()
    }

    /// The file; `None` where the bytes are in memory.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        match &self.source {
            Bytes::Held(_) => None,
            Bytes::Stored(stored) => Some(stored),
        }
    }

    pub(crate) fn failed(&self, source: std::io::Error) -> Error {
        let damaged = match source.kind() {
            ErrorKind::UnexpectedEof if self.gzip => Some("its gzip data end early: the file was cut off"),
            ErrorKind::InvalidInput | ErrorKind::InvalidData if self.gzip => {
                Some("its gzip data are damaged")
            }
            _ => None,
        };
        let source = match damaged {
            Some(how) => std::io::Error::other(format!("{how}. Copy or download it again ({source})")),
            None => source,
        };
        stored::failed(&self.path, source)
    }

    /// The bytes as they are, from `start`; more than those up to `end` need not come.
    fn raw(&self, start: u64, end: Option<u64>) -> Result<Box<dyn Read>> {
        match &self.source {
            Bytes::Held(bytes) => {
                let mut cursor = Cursor::new(Arc::clone(bytes));
                cursor.set_position(start);
                Ok(Box::new(cursor))
            }
            Bytes::Stored(stored) => stored.reader(start, end),
        }
    }

    /// The uncompressed bytes from `start`, without a byte order mark.
    pub(crate) fn stream(&self, start: u64) -> Result<Box<dyn BufRead>> {
        self.stream_to(start, None)
    }

    /// The uncompressed bytes from `start` to `end`.
    pub(crate) fn range(&self, start: u64, end: u64) -> Result<impl Read> {
        Ok(self.stream_to(start, Some(end))?.take(end - start))
    }

    fn stream_to(&self, start: u64, end: Option<u64>) -> Result<Box<dyn BufRead>> {
        let failed = |source| self.failed(source);
        let mut reader: Box<dyn BufRead> = if self.gzip {
            let mut stream = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(self.raw(0, None)?));
            std::io::copy(&mut (&mut stream).take(start), &mut std::io::sink()).map_err(failed)?;
            Box::new(stream)
        } else {
            Box::new(BufReader::with_capacity(BUFFER, self.raw(start, end)?))
        };
        if start == 0 && reader.fill_buf().map_err(failed)?.starts_with(&BOM) {
            reader.consume(BOM.len());
        }
        Ok(reader)
    }

    /// Whether the uncompressed bytes start with the byte order mark of UTF-8.
    pub(crate) fn starts_with_bom(&self) -> Result<bool> {
        let mut head = Vec::new();
        let raw = self.raw(0, None)?;
        let read = match self.gzip {
            true => MultiGzDecoder::new(raw).take(3).read_to_end(&mut head),
            false => raw.take(3).read_to_end(&mut head),
        };
        read.map_err(|source| self.failed(source))?;
        Ok(head == BOM)
    }

    /// The same text in UTF-8, in memory.
    pub(crate) fn utf16_as_utf8(&self) -> Result<Self> {
        let mut bytes = Vec::new();
        self.stream(0)?.read_to_end(&mut bytes).map_err(|source| self.failed(source))?;
        let (body, big) = match bytes.as_slice() {
            [0xFF, 0xFE, body @ ..] => (body, false),
            [0xFE, 0xFF, body @ ..] => (body, true),
            body => (body, false),
        };
        let unit = |pair: &[u8]| match big {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let units: Vec<u16> = body.chunks_exact(2).map(unit).collect();
        let text = String::from_utf16(&units).ok().filter(|_| body.len() % 2 == 0);
        let text = text.ok_or_else(|| Error::NotUtf16 { path: self.path.clone() })?;
        Ok(Self::of_memory(&self.path, text.into_bytes()))
    }
}

/// Whether text starts with a byte order mark of UTF-16.
pub(crate) fn is_marked_utf16(head: &[u8]) -> bool {
    head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_1_is_read_byte_by_byte() {
        let text = |bytes: &'static [u8]| TextEncoding::Latin1.text(bytes).map(Cow::into_owned);
        assert_eq!(text(b"caf\xe9").as_deref(), Some("café"));
        assert_eq!(text(b"5 \x80 \x93q\x94").as_deref(), Some("5 € “q”"));
        // Two bytes that UTF-8 would take as one letter are two letters.
        assert_eq!(text(b"\xc3\xa9").as_deref(), Some("Ã©"));
        assert_eq!(TextEncoding::Utf8.text(b"caf\xe9"), None);
    }

    #[test]
    fn utf_16_in_both_orders() {
        let text = "a;ü;😀\n";
        for big in [false, true] {
            let order = |u: u16| if big { u.to_be_bytes() } else { u.to_le_bytes() };
            let bytes: Vec<u8> =
                "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(order).collect();
            let content = Content::of_memory(Path::new("t"), bytes.clone());
            let mut out = String::new();
            content.utf16_as_utf8().unwrap().stream(0).unwrap().read_to_string(&mut out).unwrap();
            assert_eq!(out, text);
            let cut = Content::of_memory(Path::new("t"), bytes[..bytes.len() - 1].to_vec());
            assert!(matches!(cut.utf16_as_utf8(), Err(Error::NotUtf16 { .. })));
        }
    }
}
