//! The idx format of MNIST: four bytes (two zeros, the type, the number of extents), the extents, the values.

use super::array::{Array, count};
use crate::{Failure, Result};
use leakscope_net::Real;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// An idx file of bytes.
#[derive(Debug)]
pub struct Idx {
    /// Extents, records first.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub bytes: Vec<u8>,
}

impl Idx {
    /// The values as numbers.
    pub fn array<T: Real>(self) -> Array<T> {
        let values = self.bytes.iter().map(|&b| T::from_f64(f64::from(b))).collect();
        Array { shape: self.shape, values, bytes: true }
    }
}

/// Reads a file, gzipped or not; at most `limit` records of it.
pub fn read(path: &Path, limit: Option<usize>) -> Result<Idx> {
    let bad = |reason: String| Failure::Message(format!("{}: {reason}", path.display()));
    let gone = |e: std::io::Error| bad(format!("cannot read it: {e}"));
    let mut plain = BufReader::new(File::open(path).map_err(gone)?);
    let zipped = std::io::BufRead::fill_buf(&mut plain).map_err(gone)?.starts_with(&[0x1f, 0x8b]);
    let mut reader: Box<dyn Read> =
        if zipped { Box::new(flate2::read::MultiGzDecoder::new(plain)) } else { Box::new(plain) };
    let short = |_: std::io::Error| bad("it is cut off, or no idx file".into());
    let mut magic = [0; 4];
    reader.read_exact(&mut magic).map_err(short)?;
    let [0, 0, kind, extents @ 1..=4] = magic else {
        return Err(bad("no idx file: expected one of MNIST, such as train-images-idx3-ubyte.gz".into()));
    };
    if kind != 8 {
        return Err(bad(format!("its values are of type {kind:#04x}: expected bytes (0x08)")));
    }
    let mut shape = Vec::new();
    for _ in 0..extents {
        let mut word = [0; 4];
        reader.read_exact(&mut word).map_err(short)?;
        shape.push(u32::from_be_bytes(word) as usize);
    }
    let all = shape[0];
    shape[0] = all.min(limit.unwrap_or(usize::MAX));
    let Some(total) = count(&shape) else {
        return Err(bad(format!("its header says {shape:?} values: it is broken")));
    };
    let mut bytes = Vec::new();
    reader.take(total as u64 + 1).read_to_end(&mut bytes).map_err(gone)?;
    if bytes.len() < total {
        return Err(bad(format!("it is cut off: {} of {total} values are there", bytes.len())));
    }
    if bytes.len() > total && shape[0] == all {
        return Err(bad(format!("it has more than the {total} values that its header says")));
    }
    bytes.truncate(total);
    Ok(Idx { shape, bytes })
}
