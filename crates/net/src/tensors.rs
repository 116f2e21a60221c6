//! Named arrays in one file: the safetensors format (eight bytes of length, a JSON header, the bytes), written and
//! read here because it is small. A file from elsewhere is not trusted: every length is checked.

use crate::{
    Network, Real,
    error::{Error, Result},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::{io, path::Path};

/// Version of the files of this crate, kept in their metadata.
pub const FILE_VERSION: u32 = 1;
/// Before the name of an array: which of its parameters are frozen.
const FROZEN: &str = "frozen.";
/// A header longer than this is no header.
const LONGEST_HEADER: usize = 100 << 20;

/// A file of named arrays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tensors {
    /// Free text by name.
    pub metadata: BTreeMap<String, String>,
    arrays: BTreeMap<String, Array>,
}

#[derive(Debug, Clone, PartialEq)]
struct Array {
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

fn bad(reason: impl Into<String>) -> Error {
    Error::Format { what: "the weights file", reason: reason.into() }
}

/// Checks that every value of a named array is finite.
fn finite<T: Real>(name: &str, values: &[T]) -> Result<()> {
    match values.iter().map(|v| v.to_f64()).enumerate().find(|(_, v)| !v.is_finite()) {
        None => Ok(()),
        Some((i, v)) => Err(bad(format!("value {i} of {name} is {v}, not finite: train or export it again"))),
    }
}

/// Little-endian whole numbers of N bytes.
fn whole<T: Real, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| T::from_f64(read(*b))).collect()
}

impl Tensors {
    /// Adds an array.
    pub fn insert<T: Real>(&mut self, name: &str, shape: &[usize], values: &[T]) {
        let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
        values.iter().for_each(|v| v.write(&mut bytes));
        self.arrays
            .insert(name.to_owned(), Array { dtype: T::DTYPE.to_owned(), shape: shape.to_vec(), bytes });
    }

    /// Names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// Type of an array as the format names it, for example `F32`; absent where there is no such array.
    pub fn dtype(&self, name: &str) -> Option<&str> {
        self.arrays.get(name).map(|a| a.dtype.as_str())
    }

    /// Shape and values of an array, converted from other types where needed (whole numbers too: labels are often
    /// stored as such; beyond 2⁵³ they would be rounded).
    pub fn get<T: Real>(&self, name: &str) -> Result<(&[usize], Vec<T>)> {
        let a = self.arrays.get(name).ok_or_else(|| bad(format!("there is no array called {name}")))?;
        let values: Vec<T> = match a.dtype.as_str() {
            "F32" => a.bytes.chunks_exact(4).map(|b| T::from_f64(f64::from(f32::read(b)))).collect(),
            "F64" => a.bytes.chunks_exact(8).map(|b| T::from_f64(f64::read(b))).collect(),
            "U8" => a.bytes.iter().map(|&b| T::from_f64(f64::from(b))).collect(),
            "I32" => whole(&a.bytes, |b| f64::from(i32::from_le_bytes(b))),
            "I64" => whole(&a.bytes, |b| i64::from_le_bytes(b) as f64),
            other => {
                return Err(bad(format!("{name} has type {other}: convert it to F32, F64, U8, I32 or I64")));
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
            let entry = Entry { dtype: a.dtype.clone(), shape: a.shape.clone(), data_offsets: [offset, end] };
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
        let (length, rest) =
            bytes.split_first_chunk::<8>().ok_or_else(|| bad("it is shorter than 8 bytes"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > rest.len().min(LONGEST_HEADER) {
            return Err(bad("it is cut off, or no safetensors file"));
        }
        let (header, data) = rest.split_at(length);
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|e| bad(format!("its header cannot be read: {e}")))?;
        let mut out = Self::default();
        for (name, value) in header {
            if name == "__metadata__" {
                out.metadata =
                    serde_json::from_value(value).map_err(|e| bad(format!("its metadata: {e}")))?;
                continue;
            }
            let entry: Entry = serde_json::from_value(value).map_err(|e| bad(format!("{name}: {e}")))?;
            let [from, to] = entry.data_offsets;
            let size = match entry.dtype.as_str() {
                "F64" | "I64" | "U64" => 8,
                "F32" | "I32" | "U32" => 4,
                "F16" | "BF16" | "I16" | "U16" => 2,
                _ => 1,
            };
            let count = entry.shape.iter().try_fold(size, |n: usize, &d| n.checked_mul(d));
            let bytes = data.get(from..to).filter(|b| Some(b.len()) == count);
            let Some(bytes) = bytes else {
                return Err(bad(format!("{name}: its bytes do not agree with its shape")));
            };
            let array = Array { dtype: entry.dtype, shape: entry.shape, bytes: bytes.to_vec() };
            out.arrays.insert(name, array);
        }
        if let Some(v) = out.metadata.get("version") {
            let found = v.parse().map_err(|_| bad("its version is no number"))?;
            if found != FILE_VERSION {
                return Err(Error::Version { what: "the weights file", found, expected: FILE_VERSION });
            }
        }
        Ok(out)
    }
}

impl<T: Real> Network<T> {
    /// The weights and statistics as named arrays.
    pub fn to_tensors(&self) -> Tensors {
        let mut out = Tensors::default();
        out.metadata.insert("format".into(), "leakscope-net".into());
        out.metadata.insert("version".into(), FILE_VERSION.to_string());
        let (theta, frozen) = (self.parameters(), self.frozen());
        for t in self.tensors() {
            let len: usize = t.shape.iter().product();
            out.insert(&t.name, &t.shape, &theta[t.offset..t.offset + len]);
            let frozen = frozen.as_ref().map(|f| &f[t.offset..t.offset + len]).filter(|f| f.contains(&true));
            if let Some(frozen) = frozen {
                let values: Vec<f32> = frozen.iter().map(|f| f32::from(u8::from(*f))).collect();
                out.insert(&format!("{FROZEN}{}", t.name), &t.shape, &values);
            }
        }
        for (position, mean, variance) in self.statistics() {
            out.insert(&format!("layers.{position}.mean"), &[mean.len()], mean);
            out.insert(&format!("layers.{position}.variance"), &[variance.len()], variance);
        }
        out
    }

    /// Takes weights and statistics from named arrays; all must be there, with the right shapes and finite. An array
    /// `frozen.NAME` beside one freezes, on their own, the parameters at which it is not 0.
    pub fn load_tensors(&mut self, tensors: &Tensors) -> Result<()> {
        let mut theta = vec![T::ZERO; self.parameter_count()];
        let mut frozen = vec![false; theta.len()];
        for t in self.tensors() {
            let (shape, values) = tensors.get::<T>(&t.name)?;
            if shape != t.shape {
                return Err(bad(format!("{} has shape {shape:?}, expected {:?}", t.name, t.shape)));
            }
            finite(&t.name, &values)?;
            theta[t.offset..t.offset + values.len()].copy_from_slice(&values);
            let mask = format!("{FROZEN}{}", t.name);
            if tensors.names().any(|n| n == mask) {
                let (shape, values) = tensors.get::<f32>(&mask)?;
                if shape != t.shape {
                    return Err(bad(format!("{mask} has shape {shape:?}, expected {:?}", t.shape)));
                }
                let here = frozen[t.offset..].iter_mut();
                here.zip(values).for_each(|(f, v)| *f = v != 0.0);
            }
        }
        self.set_parameters(&theta)?;
        if frozen.contains(&true) {
            self.freeze(&frozen)?;
        }
        let positions: Vec<usize> = self.statistics().map(|(p, _, _)| p).collect();
        for p in positions {
            let statistic = |name: &str| {
                let name = format!("layers.{p}.{name}");
                let values = tensors.get::<f64>(&name)?.1;
                finite(&name, &values)?;
                Ok::<_, Error>(values)
            };
            let (mean, variance) = (statistic("mean")?, statistic("variance")?);
            self.set_statistics(p, &mean, &variance)?;
        }
        Ok(())
    }
}

/// Writes a file whole or not at all, readable by its owner alone: under a temporary name first, then renamed.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut name = path.file_name().map(std::ffi::OsStr::to_os_string).unwrap_or_default();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayerSpec, Loss, NetSpec, Shape};

    fn net(seed: u64) -> Network<f32> {
        let layers = vec![LayerSpec::dense(3), LayerSpec::batch_norm(), LayerSpec::Tanh, LayerSpec::dense(2)];
        let spec = NetSpec { version: 1, input: Shape::Vector([4]), layers, loss: Loss::SoftmaxCrossEntropy };
        Network::new(spec, seed).unwrap()
    }

    #[test]
    fn weights_come_back_as_they_were() {
        let mut a = net(1);
        a.set_statistics(1, &[0.5, -1.0, 2.0], &[1.0, 2.0, 0.25]).unwrap();
        let bytes = a.to_tensors().to_bytes().unwrap();
        let mut b = net(2);
        b.load_tensors(&Tensors::from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(a.parameters(), b.parameters());
        assert_eq!(a.statistics().collect::<Vec<_>>(), b.statistics().collect::<Vec<_>>());
    }

    #[test]
    fn broken_files_are_refused() {
        let good = net(1).to_tensors().to_bytes().unwrap();
        assert!(Tensors::from_bytes(&[]).is_err());
        assert!(Tensors::from_bytes(&[255; 16]).is_err());
        assert!(Tensors::from_bytes(&good[..good.len() - 1]).is_err());
        // one random byte after another: an error or a file, never a panic
        for i in 0..good.len().min(600) {
            let mut broken = good.clone();
            broken[i] ^= 0x15;
            let _ = Tensors::from_bytes(&broken).and_then(|t| net(1).load_tensors(&t));
        }
        let mut other = net(1).to_tensors();
        other.metadata.insert("version".into(), "7".into());
        let error = Tensors::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
        assert_eq!(error, Error::Version { what: "the weights file", found: 7, expected: 1 });
    }

    #[test]
    fn weights_that_are_not_finite_or_do_not_fit_are_refused() {
        let mut t = net(1).to_tensors();
        t.insert("layers.0.weight", &[3, 4], &[f32::NAN; 12]);
        let said = net(1).load_tensors(&t).unwrap_err().to_string();
        assert!(said.contains("value 0 of layers.0.weight is NaN, not finite"), "{said}");
        let mut t = net(1).to_tensors();
        t.insert("layers.1.variance", &[3], &[1.0, f64::INFINITY, 1.0]);
        let said = net(1).load_tensors(&t).unwrap_err().to_string();
        assert!(said.contains("value 1 of layers.1.variance is inf, not finite"), "{said}");
        t.insert("layers.0.weight", &[4, 3], &[0f32; 12]);
        assert!(matches!(net(1).load_tensors(&t), Err(Error::Format { .. })));
        let empty = Tensors::default();
        assert!(matches!(net(1).load_tensors(&empty), Err(Error::Format { .. })));
    }
}
