//! NumPy's npz: a zip file (stored or deflated) of npy files.

use super::{array::Array, npy};
use crate::Real;
use std::io::Cursor;
use zip::ZipArchive;

/// An npz file: its bytes, and where its arrays are.
#[derive(Debug, Clone)]
pub struct Npz {
    archive: ZipArchive<Cursor<Vec<u8>>>,
    /// Names of the arrays and their positions in the archive.
    arrays: Vec<(String, usize)>,
}

impl Npz {
    /// Reads the directory of a file. In words what is wrong with it.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes))
            .map_err(|e| format!("it is cut off, or no npz file (zip of npy files): {e}"))?;
        let named = |i: usize| {
            let name = archive.name_for_index(i)?.ok()?;
            Some((name.strip_suffix(".npy").unwrap_or(&name).to_owned(), i))
        };
        let mut arrays: Vec<(String, usize)> = (0..archive.len()).filter_map(named).collect();
        arrays.sort();
        Ok(Self { archive, arrays })
    }

    /// Names of the arrays.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(|(name, _)| name.as_str())
    }

    /// An array; at most `limit` records of it. In words what is wrong with it.
    pub fn array<T: Real>(&self, name: &str, limit: Option<usize>) -> Result<Array<T>, String> {
        let known = self.arrays.iter().find(|(n, _)| n == name);
        let (_, index) = known.ok_or_else(|| format!("there is no array {name}"))?;
        // a reader of its own: arrays are read through a shared reference
        let mut archive = self.archive.clone();
        let file = archive
            .by_index(*index)
            .map_err(|e| format!("array {name} cannot be unpacked: {e}; save it with numpy.savez"))?;
        npy::read(file, limit).map_err(|reason| format!("array {name} {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by testdata/net/npz.py with NumPy: the same 3 × 2 × 2 values in every type, order and compression.
    #[test]
    fn every_type_and_order_reads_the_same() {
        let file = Npz::from_bytes(include_bytes!("../../../../testdata/net/arrays.npz").to_vec()).unwrap();
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
