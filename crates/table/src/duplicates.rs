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

    /// How many rows repeat an earlier one, and how often.
    pub(crate) fn copies(mut self) -> EqualRows {
        self.hashes.par_sort_unstable();
        EqualRows::of(self.hashes.chunk_by(|a, b| a == b).map(|run| run.len() as u64))
    }
}

/// Rows that are equal in every column that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EqualRows {
    /// Rows that repeat an earlier one.
    pub copies: u64,
    /// The most rows that are equal.
    pub largest: u64,
    /// Whether that is more than rows that are drawn one by one would show.
    pub beyond_chance: bool,
}

impl EqualRows {
    /// What follows from how often each different row occurs.
    ///
    /// Rows that are drawn one by one are equal by chance with probability `Σ p²` over different rows, so that none of them is more
    /// likely than the root of it, and a row is expected no more often than the number of rows times that root. `Σ p²` is estimated from the
    /// pairs among all rows but the most frequent one, three more for those that chance left out. By the same token, drawn one by
    /// one, rows that occur twice go with rows that occur three times: `(2 f₂)² ≤ f₁ · 6 f₃` in expectation, for any
    /// probabilities (Cauchy and Schwarz). Where most other rows are equal to one another, as in tables of a few codes, equal
    /// rows are what such a table has, and nothing is said.
    pub(crate) fn of(times: impl Iterator<Item = u64>) -> Self {
        let (mut rows, mut different, mut largest, mut pairs) = (0_u64, 0_u64, 0_u64, 0.0_f64);
        let mut of_times = [0.0_f64; 4];
        let pairs_of = |k: u64| 0.5 * k as f64 * (k as f64 - 1.0);
        for k in times {
            (rows, different, largest) = (rows + k, different + 1, largest.max(k));
            pairs += pairs_of(k);
            if let Some(count) = of_times.get_mut(k as usize) {
                *count += 1.0;
            }
        }
        let (n, others) = (rows as f64, rows - largest);
        let usual = 2 * different.saturating_sub(1) < others;
        let chance = (pairs - pairs_of(largest) + 3.0) / pairs_of(others).max(1.0);
        let expected = n * chance.min(1.0).sqrt();
        let too_often = largest as f64 > expected + 3.0 * expected.sqrt() + 2.0;
        let [_, once, twice, thrice] = of_times;
        // Three standard deviations fewer, and three more.
        let twice = (twice - 3.0 * twice.sqrt()).max(0.0);
        let in_step = 4.0 * twice * twice
            <= 6.0 * (once + 3.0 * once.sqrt() + 3.0) * (thrice + 3.0 * thrice.sqrt() + 3.0);
        Self {
            copies: rows - different,
            largest,
            beyond_chance: largest > 1 && !usual && (too_often || !in_step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(times: &[(u64, usize)]) -> bool {
        let each = times.iter().flat_map(|&(k, count)| std::iter::repeat_n(k, count));
        EqualRows::of(each).beyond_chance
    }

    #[test]
    fn copies_of_one_row_are_no_chance_and_codes_are() {
        assert!(beyond(&[(1, 399), (31, 1)]));
        assert!(beyond(&[(1, 399), (1000, 1)]));
        // Every row twice, or half of them.
        assert!(beyond(&[(2, 400)]));
        assert!(beyond(&[(1, 200), (2, 200)]));
        // A table of few codes, one of them rare or nearly all there is; two hundred cells, twice each on average.
        assert!(!beyond(&[(16, 24)]));
        assert!(!beyond(&[(360, 1), (14, 1), (13, 2)]));
        assert!(!beyond(&[(1, 54), (2, 54), (3, 36), (4, 18), (5, 7), (6, 2)]));
        // Birthdays.
        assert!(!beyond(&[(1, 1000)]));
        assert!(!beyond(&[(1, 392), (2, 4)]));
        assert!(!beyond(&[]));
    }
}
