//! Where the bytes of a file are: on a disk, or in an object store that is asked for ranges of them. Tables are read through this alone,
//! and nothing else knows the difference.

#[cfg(feature = "object-store")]
mod hdfs;
#[cfg(feature = "object-store")]
mod object;

use crate::{Error, Result};
use bytes::Bytes;
use leakscope_core::pass::bytes::crc_of;
use parquet::file::reader::{ChunkReader, Length};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file that was found.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    Disk(PathBuf),
    #[cfg(feature = "object-store")]
    Object(std::sync::Arc<object::Object>),
}

/// What tells that a file has changed, at the cost of reading its two ends: the last bytes of a Parquet file say where
/// everything else is, and how large. A store's own tag of the version is as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Size in bytes.
    pub bytes: u64,
    /// Checksum of the first and the last 64 KiB, or of the tag of an object.
    pub ends: u64,
}

/// Bytes at either end of a file that its fingerprint is taken of, and at the end of one where Parquet has its footer.
const END: u64 = 1 << 16;

impl Stored {
    /// The file of this name.
    ///
    /// # Errors
    /// [`Error::Read`] where it is not there, [`Error::NoStore`] for a name that this build cannot follow.
    pub(crate) fn find(path: &Path) -> Result<Self> {
        match scheme_of(path) {
            None => Ok(Self::Disk(path.into())),
            #[cfg(feature = "object-store")]
            Some("s3" | "s3a" | "http" | "https" | "webhdfs" | "swebhdfs") => {
                object::Object::find(path).map(|object| Self::Object(object.into()))
            }
            Some(scheme) => Err(Error::NoStore {
                path: path.into(),
                scheme: scheme.into(),
                possible: !cfg!(feature = "object-store"),
            }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Disk(path) => path,
            #[cfg(feature = "object-store")]
            Self::Object(object) => object.path(),
        }
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> Result<u64> {
        match self {
            Self::Disk(path) => Ok(std::fs::metadata(path).map_err(|e| self.failed(e))?.len()),
            #[cfg(feature = "object-store")]
            Self::Object(object) => Ok(object.bytes()),
        }
    }

    /// What tells one version of the file from another, where whoever keeps it says so.
    fn tag(&self) -> Option<&str> {
        match self {
            Self::Disk(_) => None,
            #[cfg(feature = "object-store")]
            Self::Object(object) => object.tag(),
        }
    }

    /// Its bytes from `start`, up to `end` where that is known.
    pub(crate) fn reader(&self, start: u64, end: Option<u64>) -> Result<Box<dyn Read>> {
        match self {
            Self::Disk(path) => {
                let mut file = File::open(path).map_err(|e| self.failed(e))?;
                file.seek(SeekFrom::Start(start)).map_err(|e| self.failed(e))?;
                Ok(match end {
                    Some(end) => Box::new(file.take(end.saturating_sub(start))),
                    None => Box::new(file),
                })
            }
            #[cfg(feature = "object-store")]
            Self::Object(object) => Ok(Box::new(object::Requests::new(object, start, end))),
        }
    }

    /// Its bytes as the decoder of Parquet takes them; the `wanted` ranges of an object are fetched at once.
    #[cfg_attr(not(feature = "object-store"), allow(unused_variables))] // a disk is read where it is needed
    pub(crate) fn chunks(&self, wanted: &[Range<u64>]) -> Result<Chunks> {
        match self {
            Self::Disk(path) => Ok(Chunks::File(File::open(path).map_err(|e| self.failed(e))?)),
            #[cfg(feature = "object-store")]
            Self::Object(object) => {
                object::Held::fetch(object, wanted).map(Chunks::Object).map_err(|e| self.failed(e))
            }
        }
    }

    /// The range in which the footer of a Parquet file is, if it is no larger than most.
    pub(crate) fn footer(&self) -> Result<Range<u64>> {
        let bytes = self.bytes()?;
        Ok(bytes.saturating_sub(END)..bytes)
    }

    /// What tells that the file has changed.
    pub(crate) fn fingerprint(&self) -> Result<Fingerprint> {
        let bytes = self.bytes()?;
        if let Some(tag) = self.tag() {
            return Ok(Fingerprint { bytes, ends: crc_of(tag.as_bytes()) });
        }
        let mut ends = vec![];
        for (start, end) in [(0, END.min(bytes)), (bytes.saturating_sub(END), bytes)] {
            self.reader(start, Some(end))?.read_to_end(&mut ends).map_err(|e| self.failed(e))?;
        }
        Ok(Fingerprint { bytes, ends: crc_of(&ends) })
    }

    /// A quick checksum of a range, eight bytes at a time; it finds that something changed, not who changed it. `None` where a
    /// tag tells that of the whole file.
    pub(crate) fn checksum(&self, start: u64, end: u64) -> Result<Option<u64>> {
        if self.tag().is_some() {
            return Ok(None);
        }
        let mut rest = self.reader(start, Some(end))?;
        let (mut sum, mut buffer) = (0_u64, vec![0; 1 << 18]);
        loop {
            // Full buffers, so that the sum does not depend on how much a read gives.
            let mut filled = 0;
            while filled < buffer.len() {
                match rest.read(&mut buffer[filled..]).map_err(|e| self.failed(e))? {
                    0 => break,
                    more => filled += more,
                }
            }
            for chunk in buffer[..filled].chunks(8) {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                // Odd multipliers lose nothing; the shift lets high bits come back down.
                sum = (sum ^ u64::from_le_bytes(eight)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                sum ^= sum >> 29;
            }
            if filled < buffer.len() {
                return Ok(Some(sum));
            }
        }
    }

    pub(crate) fn failed(&self, source: std::io::Error) -> Error {
        failed(self.path(), source)
    }
}

/// Why bytes could not be read.
pub(crate) fn failed(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::StaleNetworkFileHandle => Error::Changed { path: path.into() },
        _ => Error::Read { path: path.into(), source },
    }
}

/// What a name such as `s3://bucket/key` begins with; `None` for a path of the file system.
fn scheme_of(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    // One letter is a drive.
    let is_scheme =
        scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-'));
    is_scheme.then_some(scheme)
}

/// Whether a name is that of an object in a store, and no path of the file system.
pub fn is_remote(path: &Path) -> bool {
    scheme_of(path).is_some()
}

/// The bytes of a file, wherever it is.
///
/// # Errors
/// [`Error::Read`] where it is not there, [`Error::NoStore`] for a name that this build cannot follow.
pub fn open_bytes(path: &Path) -> Result<Box<dyn Read>> {
    Stored::find(path)?.reader(0, None)
}

/// The bytes of a file for the decoder of Parquet.
pub(crate) enum Chunks {
    File(File),
    #[cfg(feature = "object-store")]
    Object(object::Held),
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => Length::len(file),
            #[cfg(feature = "object-store")]
            Self::Object(held) => held.bytes(),
        }
    }
}

impl ChunkReader for Chunks {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        match self {
            Self::File(file) => {
                let reader: BufReader<File> = file.get_read(start)?;
                Ok(Box::new(reader))
            }
            #[cfg(feature = "object-store")]
            Self::Object(held) => Ok(held.reader(start)),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        match self {
            Self::File(file) => file.get_bytes(start, length),
            #[cfg(feature = "object-store")]
            Self::Object(held) => Ok(held.range(start..start + length as u64)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_stores_are_told_from_paths() {
        for name in ["s3://bucket/key.csv", "https://host/t.parquet", "hdfs://node:8020/t.csv"] {
            assert!(is_remote(Path::new(name)), "{name}");
        }
        for name in ["/data/t.csv", "t.csv", "C://t.csv", "folder/with://in.csv", "-", "://x"] {
            assert!(!is_remote(Path::new(name)), "{name}");
        }
        let error = Stored::find(Path::new("hdfs://node/t.csv")).unwrap_err().to_string();
        assert!(
            error.contains("hdfs://node/t.csv") && error.contains("webhdfs://node:9870/t.csv"),
            "{error}"
        );
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn without_the_feature_a_name_says_how_to_get_it() {
        let error = Stored::find(Path::new("s3://bucket/t.csv")).unwrap_err().to_string();
        assert!(error.contains("s3://bucket/t.csv") && error.contains("--features object-store"), "{error}");
    }
}
