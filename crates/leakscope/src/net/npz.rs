//! NumPy's npz: a zip file (stored or deflated) of npy files, each a header in Python's notation and the values.
//! A file from elsewhere is not trusted: every length is checked before it is believed.

use super::array::{Array, MOST, count};
use crate::{Failure, Result};
use leakscope_net::Real;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// An npz file: where its arrays are.
#[derive(Debug)]
pub struct Npz {
    bytes: Vec<u8>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// 0: stored, 8: deflated.
    method: u16,
    /// Compressed size.
    size: u64,
    /// Where its local header starts.
    offset: u64,
}

/// Little-endian numbers at a position; none beyond the end.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

impl Npz {
    /// Reads the file and its directory.
    pub fn open(path: &Path) -> Result<Self> {
        let bad = |reason: &str| Failure::Message(format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| bad(&format!("cannot read it: {e}")))?;
        let entries =
            directory(&bytes).ok_or_else(|| bad("it is cut off, or no npz file (zip of npy files)"))?;
        Ok(Self { bytes, entries })
    }

    /// Names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// An array; at most `limit` records of it.
    pub fn array<T: Real>(&self, name: &str, limit: Option<usize>) -> std::result::Result<Array<T>, String> {
        let entry = self.entries.get(name).ok_or_else(|| format!("there is no array {name}"))?;
        let cut = || format!("array {name} is cut off");
        let at = usize::try_from(entry.offset).ok().filter(|at| *at < self.bytes.len()).ok_or_else(cut)?;
        // the local header repeats the name, with an extra field of its own length
        let skip = u16_at(&self.bytes, at + 26).zip(u16_at(&self.bytes, at + 28)).ok_or_else(cut)?;
        let from = at + 30 + usize::from(skip.0) + usize::from(skip.1);
        let end = usize::try_from(entry.size).ok().and_then(|size| from.checked_add(size)).ok_or_else(cut)?;
        let data = self.bytes.get(from..end).ok_or_else(cut)?;
        match entry.method {
            0 => npy(data, name, limit),
            8 => npy(flate2::read::DeflateDecoder::new(data), name, limit),
            other => Err(format!("array {name} is compressed by method {other}: save it with numpy.savez")),
        }
    }
}

/// The directory at the end of a zip file.
fn directory(bytes: &[u8]) -> Option<BTreeMap<String, Entry>> {
    // the end record: 22 bytes and a comment of at most 65,535
    let first = bytes.len().saturating_sub(22 + 65_535);
    let end =
        (first..=bytes.len().checked_sub(22)?).rev().find(|&i| bytes[i..].starts_with(b"PK\x05\x06"))?;
    let (mut many, mut at) = (u64::from(u16_at(bytes, end + 10)?), u64::from(u32_at(bytes, end + 16)?));
    // zip64: twenty bytes before, a pointer to a longer record
    if let Some(locator) = end.checked_sub(20).filter(|&l| bytes[l..].starts_with(b"PK\x06\x07")) {
        let record = usize::try_from(u64_at(bytes, locator + 8)?).ok()?;
        (many, at) = (u64_at(bytes, record.checked_add(32)?)?, u64_at(bytes, record.checked_add(48)?)?);
    }
    let mut at = usize::try_from(at).ok()?;
    let mut entries = BTreeMap::new();
    for _ in 0..many {
        if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
            return None;
        }
        let lengths =
            [u16_at(bytes, at + 28)?, u16_at(bytes, at + 30)?, u16_at(bytes, at + 32)?].map(usize::from);
        let name = bytes.get(at + 46..at + 46 + lengths[0])?;
        let extra = bytes.get(at + 46 + lengths[0]..at + 46 + lengths[0] + lengths[1])?;
        let mut entry = Entry {
            method: u16_at(bytes, at + 10)?,
            size: u64::from(u32_at(bytes, at + 20)?),
            offset: u64::from(u32_at(bytes, at + 42)?),
        };
        let full = u32_at(bytes, at + 24)? == u32::MAX;
        wide(extra, full, &mut entry)?;
        let name = String::from_utf8_lossy(name);
        entries.insert(name.strip_suffix(".npy").unwrap_or(&name).to_owned(), entry);
        at += 46 + lengths.iter().sum::<usize>();
    }
    Some(entries)
}

/// The zip64 field of an entry holds, in this order, what does not fit into 32 bits: the size, the compressed size, the
/// offset.
fn wide(mut extra: &[u8], full_size: bool, entry: &mut Entry) -> Option<()> {
    let wanted = entry.size == u64::from(u32::MAX) || entry.offset == u64::from(u32::MAX);
    while wanted && extra.len() >= 4 {
        let (id, length) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        let field = extra.get(4..4 + length)?;
        if id == 1 {
            let mut at = if full_size { 8 } else { 0 };
            for number in [&mut entry.size, &mut entry.offset] {
                if *number == u64::from(u32::MAX) {
                    *number = u64_at(field, at)?;
                    at += 8;
                }
            }
            return Some(());
        }
        extra = &extra[4 + length..];
    }
    (!wanted).then_some(())
}

/// One npy file: magic, version, length of the header, header, values.
fn npy<T: Real>(
    mut reader: impl Read,
    name: &str,
    limit: Option<usize>,
) -> std::result::Result<Array<T>, String> {
    let cut = |_: std::io::Error| format!("array {name} is cut off, or no npy file");
    let mut magic = [0; 8];
    reader.read_exact(&mut magic).map_err(cut)?;
    if !magic.starts_with(b"\x93NUMPY") {
        return Err(format!("array {name} is no npy file"));
    }
    let length = match magic[6] {
        1 => {
            let mut l = [0; 2];
            reader.read_exact(&mut l).map_err(cut)?;
            u32::from(u16::from_le_bytes(l))
        }
        2 | 3 => {
            let mut l = [0; 4];
            reader.read_exact(&mut l).map_err(cut)?;
            u32::from_le_bytes(l)
        }
        other => return Err(format!("array {name} is an npy file of version {other}: expected 1 to 3")),
    };
    let mut header = Vec::new();
    reader.by_ref().take(u64::from(length)).read_to_end(&mut header).map_err(cut)?;
    let header = String::from_utf8_lossy(&header);
    let Header { kind, fortran, shape } = Header::parse(&header)
        .ok_or_else(|| format!("array {name} has a header that cannot be read: {header}"))?;
    let (size, read) = reader_of(&kind).ok_or_else(|| {
        format!("array {name} has values of type {kind}: save it as uint8, int64, float32 or float64")
    })?;
    let total = count(&shape).filter(|n| n.saturating_mul(size) <= 8 * MOST);
    let total = total.ok_or_else(|| format!("array {name} says it has shape {shape:?}: it is broken"))?;
    // in C order the first records come first, the rest need not be read
    let keep = match (fortran, limit, shape.first()) {
        (false, Some(limit), Some(&n)) if n > limit => total / n * limit,
        _ => total,
    };
    let mut bytes = Vec::new();
    reader.take((keep * size) as u64).read_to_end(&mut bytes).map_err(cut)?;
    if bytes.len() < keep * size {
        return Err(format!("array {name} is cut off: {} of {total} values are there", bytes.len() / size));
    }
    let mut values: Vec<T> = bytes.chunks_exact(size).map(|b| T::from_f64(read(b))).collect();
    if fortran {
        values = row_major(&values, &shape);
    }
    let mut shape = shape;
    if let (false, Some(limit), Some(n)) = (fortran, limit, shape.first_mut()) {
        *n = (*n).min(limit);
    }
    let bytes = matches!(kind.as_str(), "|u1" | "u1");
    Ok(Array { shape, values, bytes }.truncate(limit))
}

/// Column-major values in row-major order: the first index of the file runs fastest.
fn row_major<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut out = Vec::with_capacity(values.len());
    let mut strides = Vec::new();
    shape.iter().fold(1, |stride, &e| {
        strides.push(stride);
        stride * e
    });
    let mut at = vec![0; shape.len()];
    for _ in 0..values.len() {
        out.push(values[at.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()]);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    out
}

/// A number from its bytes.
type Read1 = fn(&[u8]) -> f64;

/// Size of a value and how to read it, of the types that records and labels are stored in.
fn reader_of(kind: &str) -> Option<(usize, Read1)> {
    fn array<const N: usize>(b: &[u8]) -> [u8; N] {
        b.try_into().unwrap_or([0; N])
    }
    let (order, kind) = kind.split_at_checked(1)?;
    let little = match order {
        "<" | "|" | "=" => true,
        ">" => false,
        _ => return None,
    };
    Some(match (kind, little) {
        ("u1" | "b1", _) => (1, |b| f64::from(b[0])),
        ("i1", _) => (1, |b| f64::from(b[0].cast_signed())),
        ("u2", true) => (2, |b| f64::from(u16::from_le_bytes(array(b)))),
        ("u2", false) => (2, |b| f64::from(u16::from_be_bytes(array(b)))),
        ("i2", true) => (2, |b| f64::from(i16::from_le_bytes(array(b)))),
        ("i2", false) => (2, |b| f64::from(i16::from_be_bytes(array(b)))),
        ("i4", true) => (4, |b| f64::from(i32::from_le_bytes(array(b)))),
        ("i4", false) => (4, |b| f64::from(i32::from_be_bytes(array(b)))),
        ("i8", true) => (8, |b| i64::from_le_bytes(array(b)) as f64),
        ("i8", false) => (8, |b| i64::from_be_bytes(array(b)) as f64),
        ("u8", true) => (8, |b| u64::from_le_bytes(array(b)) as f64),
        ("u8", false) => (8, |b| u64::from_be_bytes(array(b)) as f64),
        ("f4", true) => (4, |b| f64::from(f32::from_le_bytes(array(b)))),
        ("f4", false) => (4, |b| f64::from(f32::from_be_bytes(array(b)))),
        ("f8", true) => (8, |b| f64::from_le_bytes(array(b))),
        ("f8", false) => (8, |b| f64::from_be_bytes(array(b))),
        _ => return None,
    })
}

#[derive(Debug, PartialEq)]
struct Header {
    /// Byte order and type, for example `<f4`.
    kind: String,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }`.
    fn parse(text: &str) -> Option<Self> {
        let after = |key: &str| {
            let from = text.find(&format!("'{key}'"))? + key.len() + 2;
            Some(text[from..].trim_start().strip_prefix(':')?.trim_start())
        };
        let kind = after("descr")?.strip_prefix('\'')?.split('\'').next()?.to_owned();
        let order = after("fortran_order")?;
        let fortran = order.starts_with("True");
        if !fortran && !order.starts_with("False") {
            return None;
        }
        let extents = after("shape")?.strip_prefix('(')?.split(')').next()?;
        let shape: Option<Vec<usize>> =
            extents.split(',').map(str::trim).filter(|e| !e.is_empty()).map(|e| e.parse().ok()).collect();
        Some(Self { kind, fortran, shape: shape? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_numpy_are_understood() {
        let h = Header::parse("{'descr': '|u1', 'fortran_order': False, 'shape': (4708, 28, 28), }   \n")
            .unwrap();
        assert_eq!(h, Header { kind: "|u1".into(), fortran: false, shape: vec![4708, 28, 28] });
        let h = Header::parse("{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }").unwrap();
        assert_eq!((h.fortran, h.shape), (true, vec![3]));
        let scalar = Header::parse("{'descr': '<f8', 'fortran_order': False, 'shape': (), }").unwrap();
        assert!(scalar.shape.is_empty());
        for broken in [
            "",
            "{'descr': 3}",
            "{'descr': '<f8', 'fortran_order': Perhaps, 'shape': (1,)}",
            "{'shape': (a,)}",
        ] {
            assert_eq!(Header::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn fortran_order_is_turned_round() {
        // the matrix [[0, 1, 2], [3, 4, 5]] by columns
        assert_eq!(row_major(&[0, 3, 1, 4, 2, 5], &[2, 3]), [0, 1, 2, 3, 4, 5]);
        // extents 2 × 2 × 2: index (i, j, k) lies at i + 2j + 4k
        assert_eq!(row_major(&[0, 4, 2, 6, 1, 5, 3, 7], &[2, 2, 2]), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_file_with_any_byte_changed_is_an_array_or_an_error() {
        let good = include_bytes!("../../../../testdata/net/arrays.npz");
        for i in 0..good.len() {
            let mut broken = good.to_vec();
            broken[i] ^= 0x91;
            let Some(entries) = directory(&broken) else { continue };
            let file = Npz { bytes: broken, entries };
            for name in file.names() {
                let _ = file.array::<f32>(name, Some(2));
            }
        }
        for cut in 0..good.len() {
            assert!(directory(&good[..cut]).is_none(), "cut at {cut}");
        }
    }

    /// Written by testdata/net/npz.py with NumPy: the same 3 × 2 × 2 values in every type, order and compression.
    #[test]
    fn every_type_and_order_reads_the_same() {
        let bytes = include_bytes!("../../../../testdata/net/arrays.npz").to_vec();
        let entries = directory(&bytes).unwrap();
        let file = Npz { bytes, entries };
        let expected: Vec<f64> = (0..12).map(|i| f64::from(i * 20)).collect();
        assert!(file.names().count() >= 8);
        for name in file.names() {
            if name == "strings" || name == "complex" {
                assert!(file.array::<f64>(name, None).unwrap_err().contains(name));
                continue;
            }
            let a = file.array::<f64>(name, None).unwrap();
            assert_eq!((&a.shape[..], &a.values), (&[3, 2, 2][..], &expected), "{name}");
            assert_eq!(a.bytes, name.starts_with("uint8"), "{name}");
            let a = file.array::<f64>(name, Some(2)).unwrap();
            assert_eq!((&a.shape[..], &a.values[..]), (&[2, 2, 2][..], &expected[..8]), "{name}");
        }
    }
}
