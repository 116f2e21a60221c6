//! Rows that repeat others: eight bytes a row.

use crate::batch::{Cells, MISSING};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Rows above which copies are not looked for: their hashes would take more than 128 MiB.
pub(crate) const MAX_ROWS: u64 = 1 << 24;

/// Hashes of rows, column by column.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RowHashes {
    /// Of all training rows so far.
    hashes: Vec<u64>,
    /// Where the current batch starts.
    #[serde(skip)]
    first: usize,
}

/// One step of a hash: for a given state a permutation of the values, so that two rows that differ in one column
/// never meet; elsewhere they meet by chance, which has 64 bits.
fn mix(state: u64, bits: u64) -> u64 {
    let h = (state.rotate_left(23) ^ bits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    h ^ (h >> 32)
}

/// The hash of a text, for [`RowHashes::add`].
pub(crate) fn hash_text(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl RowHashes {
    /// Begins a batch with this many training rows.
    pub(crate) fn begin(&mut self, rows: usize) {
        self.first = self.hashes.len();
        self.hashes.resize(self.first + rows, 0);
    }

    /// Adds a column of the batch; `levels` are the hashes of the levels by code.
    pub(crate) fn add(&mut self, cells: &Cells, training: &[u32], levels: &[u64]) {
        let hashes = self.hashes[self.first..].iter_mut().zip(training);
        match cells {
            Cells::Number(numbers) => {
                let values = numbers.values();
                for (h, r) in hashes {
                    // −0 is 0, and one NaN is like the other.
                    let x = values[*r as usize] + 0.0;
                    *h = mix(*h, if x.is_nan() { u64::MAX } else { x.to_bits() });
                }
            }
            Cells::Level(column) => {
                for (h, r) in hashes {
                    let code = column.codes[*r as usize];
                    *h = mix(*h, if code == MISSING { u64::MAX } else { levels[code as usize] });
                }
            }
            Cells::Text(_) => {}
        }
    }

    /// With the rows of another part of the table.
    pub(crate) fn merged(mut self, other: Self) -> Self {
        self.hashes.extend(other.hashes);
        self
    }

    /// How many rows repeat an earlier one.
    pub(crate) fn copies(mut self) -> u64 {
        self.hashes.par_sort_unstable();
        self.hashes.windows(2).filter(|w| w[0] == w[1]).count() as u64
    }
}
