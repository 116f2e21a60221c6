//! Columns whose public unit hangs on one record: units that are rounded from the data are locally constant, but a record at the
//! edge of a power of two shows in them, to whoever knows the others.
//!
//! A release finds such a record where it tries two values of every attribute ([`super::tell`]). A model without a ledger tries none,
//! so it is looked for here, and wider: every record's value against the smallest and the largest of its column, and the mean of the
//! others. In place of it, a value t moves the mean monotonously, and the variance is convex in t with its minimum at the mean of
//! the others: where unit and centre stay the same at these three, they do at every value in between.

use crate::Result;
use leakscope_core::rows::{Altered, Block, Rows as _};
use leakscope_core::units::Units;
use leakscope_table::{Dataset, Encoding};

/// Names of the attributes whose unit, or spread to be scaled by, would be another if one record had another of the values in its column.
pub(super) fn columns(rows: &Dataset, units: &Units) -> Result<Vec<String>> {
    let n = rows.len() as f64;
    let in_units = units.rows(rows);
    let columns = ranges(&in_units, units.len())?;
    let mut shows = vec![false; units.len()];
    in_units.as_rows().fold(
        || vec![false; units.len()],
        |shows: &mut Vec<bool>, block: &Block| {
            for row in (0..block.len()).map(|i| block.row(i)) {
                for (j, shows) in shows.iter_mut().enumerate().filter(|(_, shows)| !**shows) {
                    let Column { low, high, .. } = columns[j];
                    let candidates = [low, columns[j].mean_of_others(n, row[j]), high];
                    *shows = candidates.iter().any(|to| !units.survive(j, n, row[j], *to));
                }
            }
            Ok(())
        },
        |part| {
            shows.iter_mut().zip(part).for_each(|(all, part)| *all |= part);
            Ok(())
        },
    )?;
    Ok(names(rows.encoding(), &shows))
}

/// The range of a column and its sum, in public units.
#[derive(Clone, Copy)]
struct Column {
    low: f64,
    high: f64,
    sum: f64,
}

impl Column {
    const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY, sum: 0.0 };

    fn merged(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), sum: self.sum + other.sum }
    }

    fn mean_of_others(&self, n: f64, x: f64) -> f64 {
        (self.sum - x) / (n - 1.0).max(1.0)
    }
}

fn ranges(rows: &Altered<'_>, columns: usize) -> Result<Vec<Column>> {
    let mut all = vec![Column::EMPTY; columns];
    rows.as_rows().fold(
        || vec![Column::EMPTY; columns],
        |ranges: &mut Vec<Column>, block: &Block| {
            for row in (0..block.len()).map(|i| block.row(i)) {
                for (column, x) in ranges.iter_mut().zip(row) {
                    *column = column.merged(Column { low: *x, high: *x, sum: *x });
                }
            }
            Ok(())
        },
        |part| {
            all.iter_mut().zip(part).for_each(|(all, part)| *all = all.merged(part));
            Ok(())
        },
    )?;
    Ok(all)
}

fn names(encoding: &Encoding, shows: &[bool]) -> Vec<String> {
    let of = |columns: std::ops::Range<usize>| columns.into_iter().any(|j| shows.get(j) == Some(&true));
    encoding.attributes.iter().filter(|a| of(a.columns.clone())).map(|a| a.name.clone()).collect()
}
