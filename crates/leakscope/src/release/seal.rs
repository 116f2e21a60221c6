//! The seal of a ledger: HMAC-SHA256 over all of its bytes, under a key that lies beside it (0600), or where its owner keeps
//! keys (`--ledger-key`). Any changed byte is seen; who can read the key could seal again, so a key beside the ledger keeps
//! mistakes and outsiders out, and one that lies elsewhere also those who may write to the folder.

use crate::{Failure, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Name of the key beside the ledger.
pub(crate) const KEY: &str = "ledger.key";
/// What stands in the place of the seal while it is taken.
pub(crate) const UNSEALED: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// A key of 32 random bytes.
#[derive(Debug, Clone)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// The key in a file, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) if bytes.len() == 32 => Ok(Some(Self(bytes))),
            Ok(_) => Err(Failure::Message(format!(
                "the key {} of the ledger is damaged: restore it from a copy; without it nobody can tell whether the \
                 ledger was changed",
                path.display()
            ))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Failure::Message(format!("cannot read {}: {e}", path.display()))),
        }
    }

    /// A new key, written where only its owner reads it.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let fail = |e: String| Failure::Message(format!("cannot write {}: {e}", path.display()));
        let mut bytes = vec![0; 32];
        getrandom::fill(&mut bytes).map_err(|e| fail(e.to_string()))?;
        let mut file = leakscope_table::temporary_file(folder).map_err(|e| fail(e.to_string()))?;
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| fail(e.to_string()))?;
        file.persist_noclobber(path).map_err(|e| fail(e.error.to_string()))?;
        Ok(Self(bytes))
    }

    /// HMAC-SHA256 (RFC 2104) in hexadecimal.
    pub(crate) fn seal(&self, bytes: &[u8]) -> String {
        let padded = |with: u8| {
            let mut block = [with; BLOCK];
            block.iter_mut().zip(&self.0).for_each(|(b, k)| *b ^= k);
            block
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(bytes).finalize();
        let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
        outer.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Whether `text`, which holds `seal` somewhere, is what was sealed.
    pub(crate) fn holds(&self, text: &str, seal: &str) -> bool {
        seal.len() == UNSEALED.len()
            && text.matches(seal).count() == 1
            && self.seal(text.replace(seal, UNSEALED).as_bytes()) == seal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2 with its short key.
    #[test]
    fn the_seal_is_the_published_hmac() {
        let key = Key(b"Jefe".to_vec());
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(key.seal(b"what do ya want for nothing?"), expected);
    }
}
