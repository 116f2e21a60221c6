//! Which data a ledger is about: their contents, whatever their names.

use super::seal::Key;
use crate::{Failure, Result};
use leakscope_table::ReadOptions;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// The key of the fingerprints on pages of a folder.
const PAGE_KEY: &str = "private/page.key";

/// The fingerprint under a key of the folder, made where there is none: the first half of its seal.
pub fn keyed_fingerprint(folder: &Path, read: &ReadOptions) -> Result<String> {
    let path = folder.join(PAGE_KEY);
    let key = match Key::read(&path)? {
        Some(key) => key,
        None => Key::create(&path)?,
    };
    let mut seal = key.seal(fingerprint(read)?.as_bytes());
    seal.truncate(32);
    Ok(seal)
}

/// SHA-256 over the files' own digests in sorted order.
pub(super) fn fingerprint(read: &ReadOptions) -> Result<String> {
    let mut digests = vec![];
    if let (Some(_), Some(memory)) = (&read.machines, read.memory.first()) {
        return Err(Failure::Data(format!(
            "a release keeps its ledger by the contents of the data, and the rows of {} are with an engine: write them to Parquet \
             files, and give the names of the files",
            memory.name().display()
        )));
    }
    for memory in &read.memory {
        let mut hash = Sha256::new();
        memory.feed(&mut |bytes| hash.update(bytes));
        digests.push(hash.finalize());
    }
    for path in &read.paths {
        let fail = |e: std::io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
        if let Some(bytes) = leakscope_table::read_once(path)? {
            digests.push(Sha256::digest(bytes));
            continue;
        }
        let (mut file, mut hash, mut buffer) =
            (leakscope_table::open_bytes(path)?, Sha256::new(), vec![0; 1 << 16]);
        loop {
            let read = file.read(&mut buffer).map_err(fail)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
        digests.push(hash.finalize());
    }
    digests.sort();
    let mut all = Sha256::new();
    digests.iter().for_each(|d| all.update(d));
    Ok(all.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
