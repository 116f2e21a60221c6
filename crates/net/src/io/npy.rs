//! NumPy's npy: magic, version, length of the header, a header in Python's notation, the values.

use super::array::{Array, MOST, count};
use crate::Real;
use std::io::Read;

/// Reads a file; at most `limit` records of it. What is wrong with it in words that follow its name.
pub(super) fn read<T: Real>(mut reader: impl Read, limit: Option<usize>) -> Result<Array<T>, String> {
    let cut = |_: std::io::Error| "is cut off, or no npy file".to_owned();
    let mut magic = [0; 8];
    reader.read_exact(&mut magic).map_err(cut)?;
    if !magic.starts_with(b"\x93NUMPY") {
        return Err("is no npy file".into());
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
        other => return Err(format!("is an npy file of version {other}: expected 1 to 3")),
    };
    let mut header = Vec::new();
    reader.by_ref().take(u64::from(length)).read_to_end(&mut header).map_err(cut)?;
    let header = String::from_utf8_lossy(&header);
    let Header { kind, fortran, shape } =
        Header::parse(&header).ok_or_else(|| format!("has a header that cannot be read: {header}"))?;
    let (size, read) = reader_of(&kind)
        .ok_or_else(|| format!("has values of type {kind}: save it as uint8, int64, float32 or float64"))?;
    let total = count(&shape).filter(|n| n.saturating_mul(size) <= 8 * MOST);
    let total = total.ok_or_else(|| format!("says it has shape {shape:?}: it is broken"))?;
    // in C order the first records come first, the rest need not be read
    let keep = match (fortran, limit, shape.first()) {
        (false, Some(limit), Some(&n)) if n > limit => total / n * limit,
        _ => total,
    };
    let mut bytes = Vec::new();
    reader.take((keep * size) as u64).read_to_end(&mut bytes).map_err(cut)?;
    if bytes.len() < keep * size {
        return Err(format!("is cut off: {} of {total} values are there", bytes.len() / size));
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
}
