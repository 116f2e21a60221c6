//! Files: arrays of records, and weights. A file from elsewhere is not trusted: every length is checked before it is
//! believed, and whatever the bytes are, the answer is an array or an error that names the file and says what to do.
//!
//! | file | what it reads |
//! |---|---|
//! | `array` | what all of them give: extents and values; which shape a record has |
//! | `npy`, `npz` | NumPy's arrays, alone or several in a zip file (by the `zip` crate) |
//! | `idx` | MNIST's files, gzipped or not |
//! | `tensors` | safetensors (by the `safetensors` crate), for weights, checkpoints and records |
//! | `weights` | the weights of a network as such a file |
//! | `foreign` | files of others that are often handed over by mistake: what they are, and what to do |

mod array;
mod foreign;
#[cfg(test)]
mod fuzz;
mod idx;
mod npy;
mod npz;
mod tensors;
mod weights;

pub use array::Array;
pub use idx::Idx;
pub use npz::Npz;
pub use tensors::{FILE_VERSION, Tensors};
pub use weights::write_private;

pub use foreign::advice;

use crate::{
    Real,
    error::{Error, Result},
};
use std::path::Path;

/// An error about a file.
pub(crate) fn fault(path: &Path, reason: impl Into<String>) -> Error {
    Error::File { path: path.display().to_string(), reason: reason.into() }
}

/// A whole file.
fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    if let Some(advice) = advice(path) {
        return Err(fault(path, advice));
    }
    std::fs::read(path).map_err(|e| fault(path, format!("cannot read it: {e}")))
}

/// Reads an npy file; at most `limit` records of it.
pub fn read_npy<T: Real>(path: &Path, limit: Option<usize>) -> Result<Array<T>> {
    let bytes = bytes_of(path)?;
    npy::read(&bytes[..], limit).map_err(|reason| fault(path, format!("it {reason}")))
}

/// Reads an npz file and its directory.
pub fn read_npz(path: &Path) -> Result<Npz> {
    Npz::from_bytes(bytes_of(path)?).map_err(|reason| fault(path, reason))
}

/// Reads an idx file, gzipped or not; at most `limit` records of it.
pub fn read_idx(path: &Path, limit: Option<usize>) -> Result<Idx> {
    if let Some(advice) = advice(path) {
        return Err(fault(path, advice));
    }
    let file = std::fs::File::open(path).map_err(|e| fault(path, format!("cannot read it: {e}")))?;
    Idx::read(std::io::BufReader::new(file), limit).map_err(|reason| fault(path, reason))
}

/// Reads a safetensors file.
pub fn read_tensors(path: &Path) -> Result<Tensors> {
    Tensors::from_bytes(&bytes_of(path)?).map_err(|e| match e {
        Error::Format { reason, .. } => fault(path, reason),
        other => fault(path, other.to_string()),
    })
}
