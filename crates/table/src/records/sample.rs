//! Records that stay in memory while all go to a file: every one of a small table; of a large one a fair sample, and those at
//! either end of the first number.

use super::Columns;
use std::collections::BTreeSet;

/// Records that are kept at either end.
const EXTREMES: usize = 100;

/// How many records there will be, and how many of them may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keep {
    pub(super) rows: u64,
    pub(super) most: usize,
}

impl Keep {
    /// Whether a record belongs to the sample: that depends on where it stood alone, not on how rows were cut into parts.
    fn is_sampled(self, position: u64) -> bool {
        let room = self.most.saturating_sub(2 * EXTREMES) as u64;
        self.rows <= self.most as u64 || scrambled(position) % self.rows.max(1) < room
    }
}

/// A bijection of 64-bit numbers without visible pattern (splitmix64's finaliser).
fn scrambled(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The first numbers at one end, sorted, the most extreme first.
#[derive(Debug, Clone, Default)]
struct End(Vec<f64>);

impl End {
    /// Whether a number is among the most extreme so far; `sign` is 1 for the largest, −1 for the smallest.
    fn takes(&mut self, x: f64, sign: f64) -> bool {
        let x = sign * x;
        if x.is_nan() || self.0.len() >= EXTREMES && self.0.last().is_some_and(|last| x <= *last) {
            return false;
        }
        let at = self.0.partition_point(|kept| *kept >= x);
        self.0.insert(at, x);
        self.0.truncate(EXTREMES);
        true
    }
}

/// What a part, or a whole table, keeps.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    rows: Columns,
    ends: [End; 2],
}

impl Sample {
    pub(super) fn new(texts: usize, numbers: usize) -> Self {
        Self { rows: Columns::of_sizes(texts, numbers), ends: Default::default() }
    }

    pub(super) fn note(&mut self, keep: Keep, position: u64, id: &str, texts: &[&str], numbers: &[f64]) {
        let first = numbers.first().copied().unwrap_or(f64::NAN);
        // Both ends look at every record.
        let ends = [self.ends[0].takes(first, 1.0), self.ends[1].takes(first, -1.0)];
        if keep.is_sampled(position) || ends.contains(&true) {
            self.rows.positions.push(position);
            self.rows.add(id, texts, numbers);
        }
    }

    pub(super) fn append(&mut self, later: Self) {
        self.rows.append(later.rows);
    }

    /// The records, without those that were extreme only in their part.
    pub(super) fn into_rows(self, keep: Keep) -> Columns {
        let rows = self.rows;
        if keep.rows <= keep.most as u64 {
            return rows;
        }
        let first = rows.numbers.first().map_or(&[][..], Vec::as_slice);
        let mut order: Vec<usize> = (0..first.len()).filter(|&i| !first[i].is_nan()).collect();
        order.sort_by(|&a, &b| first[b].total_cmp(&first[a]));
        let ends: BTreeSet<usize> =
            order.iter().take(EXTREMES).chain(order.iter().rev().take(EXTREMES)).copied().collect();
        let stays: Vec<bool> =
            (0..rows.ids.len()).map(|i| ends.contains(&i) || keep.is_sampled(rows.positions[i])).collect();
        rows.filtered(&stays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: u64, most: usize, cut: u64) -> Columns {
        let keep = Keep { rows, most };
        let mut total = Sample::new(0, 1);
        for start in (0..rows).step_by(cut as usize) {
            let mut part = Sample::new(0, 1);
            for row in start..(start + cut).min(rows) {
                part.note(keep, row, &row.to_string(), &[], &[((row * 7919) % 100_003) as f64]);
            }
            total.append(part);
        }
        total.into_rows(keep)
    }

    #[test]
    fn all_of_a_small_table_and_the_ends_of_a_large_one_however_it_is_cut() {
        assert_eq!(sample(500, 1_000, 70).ids.len(), 500);
        let (a, b) = (sample(50_000, 2_000, 50_000), sample(50_000, 2_000, 333));
        assert_eq!(a, b);
        assert!((1_500..=2_200).contains(&a.ids.len()), "{}", a.ids.len());
        let mut values: Vec<f64> = (0..50_000_u64).map(|row| ((row * 7919) % 100_003) as f64).collect();
        values.sort_by(f64::total_cmp);
        for end in values[..100].iter().chain(&values[49_900..]) {
            assert!(a.numbers[0].contains(end), "{end}");
        }
    }
}
