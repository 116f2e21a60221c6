//! The idx format of MNIST: four bytes (two zeros, the type, the number of extents), the extents, the values.

use super::array::{Array, count};
use crate::Real;
use std::io::{BufRead, Read};

/// An idx file of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Reads a file, gzipped or not; at most `limit` records of it. In words what is wrong with it.
    pub(super) fn read(mut plain: impl BufRead, limit: Option<usize>) -> Result<Self, String> {
        let gone = |e: std::io::Error| format!("cannot read it: {e}");
        let zipped = plain.fill_buf().map_err(gone)?.starts_with(&[0x1f, 0x8b]);
        if zipped { values(flate2::bufread::MultiGzDecoder::new(plain), limit) } else { values(plain, limit) }
    }
}

fn values(mut reader: impl Read, limit: Option<usize>) -> Result<Idx, String> {
    let short = |_: std::io::Error| "it is cut off, or no idx file".to_owned();
    let mut magic = [0; 4];
    reader.read_exact(&mut magic).map_err(short)?;
    let [0, 0, kind, extents @ 1..=4] = magic else {
        return Err("no idx file: expected one of MNIST, such as train-images-idx3-ubyte.gz".into());
    };
    if kind != 8 {
        return Err(format!("its values are of type {kind:#04x}: expected bytes (0x08)"));
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
        return Err(format!("its header says {shape:?} values: it is broken"));
    };
    let mut bytes = Vec::new();
    let read = reader.take(total as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|e| format!("cannot read it: {e}"))?;
    if bytes.len() < total {
        return Err(format!("it is cut off: {} of {total} values are there", bytes.len()));
    }
    if bytes.len() > total && shape[0] == all {
        return Err(format!("it has more than the {total} values that its header says"));
    }
    bytes.truncate(total);
    Ok(Idx { shape, bytes })
}
