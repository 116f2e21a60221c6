//! Randomness of a release.

use leakscope_core::Error as CoreError;
use leakscope_core::random::Bits;

/// The operating system's generator, a page at a time.
#[derive(Debug, Default)]
pub(super) struct System {
    page: Vec<u64>,
}

impl Bits for System {
    fn next_u64(&mut self) -> leakscope_core::Result<u64> {
        if let Some(bits) = self.page.pop() {
            return Ok(bits);
        }
        let mut bytes = [0; 4096];
        getrandom::fill(&mut bytes)
            .map_err(|e| CoreError::Source(format!("the system gives no random numbers: {e}")))?;
        self.page = bytes
            .chunks_exact(8)
            .map(|c| c.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            .collect();
        self.next_u64()
    }
}
