//! Named arrays in one file: the safetensors format, eight bytes of length, a JSON header, the bytes. Files are read by
//! the crate of that name, and written here: its header is in the order of a hash map, so that the same arrays would
//! give other bytes each time.

use crate::{
    Real,
    error::{Error, Result},
};
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the files of this crate, kept in their metadata.
pub const FILE_VERSION: u32 = 1;

/// A file of named arrays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tensors {
    /// Free text by name.
    pub metadata: BTreeMap<String, String>,
    arrays: BTreeMap<String, Array>,
}

#[derive(Debug, Clone, PartialEq)]
struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Serialize)]
struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

pub(super) fn bad(reason: impl Into<String>) -> Error {
    Error::Format { subject: "the weights file", reason: reason.into() }
}

/// Little-endian whole numbers of N bytes.
fn whole<T: Real, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| T::from_f64(read(*b))).collect()
}

/// A number of 16 bits: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

impl Tensors {
    /// Adds an array.
    pub fn insert<T: Real>(&mut self, name: &str, shape: &[usize], values: &[T]) {
        let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
        values.iter().for_each(|v| v.write(&mut bytes));
        let dtype = if T::BYTES == 4 { Dtype::F32 } else { Dtype::F64 };
        self.arrays.insert(name.to_owned(), Array { dtype, shape: shape.to_vec(), bytes });
    }

    /// Names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// Whether an array holds bytes, as pictures do.
    pub fn is_bytes(&self, name: &str) -> bool {
        self.arrays.get(name).is_some_and(|a| a.dtype == Dtype::U8)
    }

    /// Whether all arrays of numbers are in double precision: what a network of this file was trained in.
    pub fn is_double(&self) -> bool {
        !self.arrays.is_empty() && self.arrays.values().all(|a| a.dtype == Dtype::F64)
    }

    /// Shape and values of an array, converted from other types where needed (whole numbers too: labels are often
    /// stored as such; beyond 2⁵³ they would be rounded).
    pub fn get<T: Real>(&self, name: &str) -> Result<(&[usize], Vec<T>)> {
        let a = self.arrays.get(name).ok_or_else(|| bad(format!("there is no array called {name}")))?;
        let values: Vec<T> = match a.dtype {
            Dtype::F32 => a.bytes.chunks_exact(4).map(|b| T::from_f64(f64::from(f32::read(b)))).collect(),
            Dtype::F64 => a.bytes.chunks_exact(8).map(|b| T::from_f64(f64::read(b))).collect(),
            Dtype::U8 | Dtype::BOOL => a.bytes.iter().map(|&b| T::from_f64(f64::from(b))).collect(),
            Dtype::I32 => whole(&a.bytes, |b| f64::from(i32::from_le_bytes(b))),
            Dtype::I64 => whole(&a.bytes, |b| i64::from_le_bytes(b) as f64),
            Dtype::BF16 => {
                whole(&a.bytes, |b| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)))
            }
            Dtype::F16 => whole(&a.bytes, |b| half(u16::from_le_bytes(b))),
            other => {
                return Err(bad(format!(
                    "{name} has type {other}: convert it to F32, F64, F16, BF16, U8, I32 or I64"
                )));
            }
        };
        if crate::shape::product(&a.shape) != Some(values.len()) {
            return Err(bad(format!("{name} has {} values and shape {:?}", values.len(), a.shape)));
        }
        Ok((&a.shape, values))
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut header = BTreeMap::new();
        let mut offset = 0;
        for (name, a) in &self.arrays {
            let end = offset + a.bytes.len();
            let entry = Entry { dtype: a.dtype, shape: a.shape.clone(), data_offsets: [offset, end] };
            header.insert(name.as_str(), serde_json::to_value(entry).map_err(|e| bad(e.to_string()))?);
            offset = end;
        }
        if !self.metadata.is_empty() {
            let value = serde_json::to_value(&self.metadata).map_err(|e| bad(e.to_string()))?;
            header.insert("__metadata__", value);
        }
        let mut text = serde_json::to_string(&header).map_err(|e| bad(e.to_string()))?;
        // the arrays start at a multiple of eight
        text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
        let mut out = Vec::with_capacity(8 + text.len() + offset);
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        self.arrays.values().for_each(|a| out.extend_from_slice(&a.bytes));
        Ok(out)
    }

    /// Reads a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let broken = |e| bad(format!("it is cut off, or no safetensors file: {e}"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let mut out = Self::default();
        out.metadata.extend(header.metadata().clone().unwrap_or_default());
        for (name, view) in file.iter() {
            let array =
                Array { dtype: view.dtype(), shape: view.shape().to_vec(), bytes: view.data().to_vec() };
            out.arrays.insert(name.to_owned(), array);
        }
        if let Some(v) = out.metadata.get("version") {
            let version = v.parse().map_err(|_| bad("its version is no number"))?;
            if version != FILE_VERSION {
                return Err(Error::Version {
                    subject: "the weights file",
                    actual: version,
                    expected: FILE_VERSION,
                });
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn numbers_of_16_bits_are_those_of_the_standard() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0400, 2f64.powi(-14)),
            (0x0001, 2f64.powi(-24)),
            (0x3555, 0.333251953125),
            (0xfc00, f64::NEG_INFINITY),
            (0x8000, 0.0),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
