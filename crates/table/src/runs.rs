//! The one way of cutting rows: a split is read in batches of one size, and a few consecutive batches are a run with a state
//! of its own.
//!
//! It depends on the number of rows, of splits and of columns alone. Rows that are kept in memory, rows that are read again
//! in every pass and rows that another machine reads are therefore summed in the same order, and give the same bits.

use crate::Result;
use crate::batch::{Batch, Want};
use crate::hooks::{Hooks, Stage};
use crate::table::{Split, Table, in_order};
use std::ops::Range;

/// How a split is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    rows: u64,
    pub(crate) batch_rows: usize,
    batches_in_run: usize,
}

impl Cut {
    /// For batches of at most so many rows.
    pub(crate) fn new(split: &Split, most: usize) -> Self {
        let runs = split.runs.max(1) as u64;
        let batches_in_run = split.rows.div_ceil(runs).div_ceil(most.max(1) as u64).max(1);
        let batch_rows = split.rows.div_ceil(runs * batches_in_run).max(1) as usize;
        Self { rows: split.rows, batch_rows, batches_in_run: batches_in_run as usize }
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        (self.rows.div_ceil(self.batch_rows as u64) as usize).div_ceil(self.batches_in_run)
    }

    /// The rows of every batch of every run, counted from the first of the split.
    pub(crate) fn ranges(&self) -> Vec<Vec<Range<usize>>> {
        let rows = self.rows as usize;
        let batches: Vec<Range<usize>> =
            (0..rows).step_by(self.batch_rows).map(|i| i..(i + self.batch_rows).min(rows)).collect();
        batches.chunks(self.batches_in_run).map(<[_]>::to_vec).collect()
    }
}

impl Table {
    /// How many runs each split has.
    pub(crate) fn run_counts(&self, most: usize, hooks: &Hooks) -> Result<Vec<usize>> {
        Ok(self.splits(hooks)?.iter().map(|split| Cut::new(split, most).runs()).collect())
    }

    /// One pass over raw batches: a state for every run. `context` is what a split shares; `merge` gets it with the states
    /// of the split, in row order.
    pub(crate) fn fold_runs<C: Send, S: Send>(
        &self,
        (wants, most): (&[Want], usize),
        (hooks, stage): (&Hooks, Stage),
        (context, start): (impl Fn(usize) -> C + Sync, impl Fn() -> S + Sync),
        step: impl Fn(&mut C, &mut S, &Batch) -> Result<()> + Sync,
        mut merge: impl FnMut(C, Vec<S>) -> Result<()>,
    ) -> Result<()> {
        self.check(wants)?;
        let splits: Vec<(usize, &Split)> = self.splits(hooks)?.iter().enumerate().collect();
        let watch = hooks.watch(stage, self.rows(hooks)?);
        let work = |(number, split): &(usize, &Split)| {
            let cut = Cut::new(split, most);
            let (mut shared, mut states, mut batches) = (context(*number), Vec::with_capacity(cut.runs()), 0);
            self.read_split(split, wants, cut.batch_rows, &watch, &mut |batch| {
                if batches % cut.batches_in_run == 0 {
                    states.push(start());
                }
                batches += 1;
                match states.last_mut() {
                    Some(state) => step(&mut shared, state, batch),
                    None => Ok(()),
                }
            })?;
            Ok((shared, states))
        };
        in_order(&splits, work, |(shared, states)| merge(shared, states))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Part, runs_of};

    #[test]
    fn every_row_is_in_one_batch_and_runs_are_even() {
        for rows in [1, 2, 255, 256, 257, 511, 512, 4097, 30_162, 65_536, 100_003] {
            for (count, most) in [(1, 8192), (1, 256), (2, 1524), (3, 8192), (40, 2621)] {
                let runs = runs_of(rows, count);
                let split = Split { file: 0, first_row: 0, rows, runs, part: Part::Rows { first: 0 } };
                let cut = Cut::new(&split, most);
                let ranges = cut.ranges();
                assert_eq!(ranges.len(), cut.runs());
                assert!(ranges.len() <= runs && 2 * ranges.len() > runs, "{rows} {count} {most}");
                let flat: Vec<usize> = ranges.iter().flatten().flat_map(Clone::clone).collect();
                assert!(flat.iter().copied().eq(0..rows as usize), "{rows} {count} {most}");
                assert!(ranges.iter().flatten().all(|r| r.len() <= most));
            }
        }
        assert_eq!(
            (runs_of(100_000, 1), runs_of(1000, 1), runs_of(65_536, 5), runs_of(65_536, 16)),
            (16, 3, 4, 1)
        );
    }
}
