//! Which data a ledger is about: their contents, whatever their names.

use crate::{Failure, Result};
use leakscope_table::ReadOptions;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;

/// SHA-256 over the files' own digests in sorted order.
pub(super) fn fingerprint(read: &ReadOptions) -> Result<String> {
    let mut digests = vec![];
    for memory in &read.memory {
        let mut hash = Sha256::new();
        memory.feed(&mut |bytes| hash.update(bytes));
        digests.push(hash.finalize());
    }
    for path in &read.paths {
        let fail = |e: std::io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
        if path.as_os_str() == "-" {
            digests.push(Sha256::digest(leakscope_table::standard_input()?));
            continue;
        }
        let (mut file, mut hash, mut buffer) =
            (File::open(path).map_err(fail)?, Sha256::new(), vec![0; 1 << 16]);
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
