//! The secret: which columns it occupies, what values it may have, and how probable they are.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A row has a candidate's value if it lies this close to it, as a share of the way to the next candidate: columns may be
/// of any size, and what differs below that is rounding.
const OWN: f64 = 1e-6;

/// A variance below this share of the one before is rounding.
const CONSTANT: f64 = 1e-12;

/// What a candidate does to the scale of its column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) column: usize,
    /// From the record's value to the candidate's.
    pub(super) way: f64,
    /// How much more penalty there is on the column.
    pub(super) penalty: f64,
    /// The new standard deviation, 1 before.
    pub(super) scale: f64,
}

/// A categorical attribute, or a numeric one in bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    columns: Range<usize>,
    /// M × columns: what each candidate is encoded as.
    candidates: Vec<f64>,
    /// Between neighbouring bins of a number; empty for a category.
    edges: Vec<f64>,
    prior: Vec<f64>,
    /// Whether the column has mean 0 and standard deviation 1 because it was scaled by its own records.
    #[serde(default)]
    rescales: bool,
}

impl Secret {
    /// A category: `candidates` is M × columns, `counts` how often each occurs (the attacker's prior).
    pub fn category(columns: Range<usize>, candidates: Vec<f64>, counts: &[u64]) -> Result<Self> {
        Self::new(columns, candidates, vec![], counts)
    }

    /// A number in bins: bin m lies between edges m − 1 and m and is tried at `centres[m]`.
    pub fn bins(column: usize, centres: Vec<f64>, edges: Vec<f64>, counts: &[u64]) -> Result<Self> {
        if edges.len() + 1 != centres.len() {
            let (actual, expected) = (edges.len(), centres.len().saturating_sub(1));
            return Err(Error::Shape { subject: "the edges of bins", actual, expected });
        }
        Self::new(column..column + 1, centres, edges, counts)
    }

    fn new(columns: Range<usize>, candidates: Vec<f64>, edges: Vec<f64>, counts: &[u64]) -> Result<Self> {
        let (m, k) = (counts.len(), columns.len());
        if m < 2 {
            let expected = "at least two values: there is nothing to guess";
            return Err(Error::OutOfRange { subject: "the number of candidates", value: m as f64, expected });
        }
        if candidates.len() != m * k {
            return Err(Error::Shape {
                subject: "the candidates",
                actual: candidates.len(),
                expected: m * k,
            });
        }
        if counts.contains(&0) {
            let expected = "a candidate that some record has";
            return Err(Error::OutOfRange { subject: "the count of a candidate", value: 0.0, expected });
        }
        if let Some(&value) = candidates.iter().find(|v| !v.is_finite()) {
            return Err(Error::OutOfRange { subject: "a candidate", value, expected: "a finite number" });
        }
        let total: u64 = counts.iter().sum();
        let prior = counts.iter().map(|&c| c as f64 / total as f64).collect();
        Ok(Self { columns, candidates, edges, prior, rescales: false })
    }

    /// The same secret where its column was scaled by its own records, to mean 0 and standard deviation 1: another value moves that
    /// scale, and with it the penalty on the column.
    ///
    /// # Errors
    /// [`Error::NotApplicable`] for a secret of several columns: only numbers are scaled.
    pub fn scaled_by_its_records(self) -> Result<Self> {
        match self.columns.len() {
            1 => Ok(Self { rescales: true, ..self }),
            _ => Err(Error::NotApplicable {
                subject: "a scale of its own",
                setting: "a secret of several columns",
                advice: "only a number is scaled by its records",
            }),
        }
    }

    /// How candidate `m` moves the penalty of a record's column, n records penalised with λ: column, the way from the record's value
    /// to the candidate's, and `nλ(t'² − 1)` with t' the new standard deviation. `None` where nothing moves.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where the column would be constant.
    pub(super) fn penalty_change(&self, x: &[f64], m: usize, (n, l2): (f64, f64)) -> Result<Option<Change>> {
        let (column, to) = (self.columns.start, self.candidate(m));
        let way = match to {
            [to] if self.rescales => to - x[column],
            _ => 0.0,
        };
        if way == 0.0 || l2 == 0.0 {
            return Ok(None);
        }
        // The mean moves from 0 to way/n, the mean square by way(to + from)/n.
        let growth = way * (to[0] + x[column]) / n - (way / n).powi(2);
        if growth <= -1.0 + CONSTANT {
            return Err(Error::OutOfRange {
                subject: "the variance of the secret's column with a candidate in place",
                value: 1.0 + growth,
                expected: "more than nothing: the column would be constant, so scale it by public bounds",
            });
        }
        Ok(Some(Change { column, way, penalty: n * l2 * growth, scale: (1.0 + growth).sqrt() }))
    }

    pub(super) fn check(&self, width: usize) -> Result<()> {
        if self.columns.end > width {
            let (actual, expected) = (self.columns.end, width);
            return Err(Error::Shape { subject: "the columns of the secret", actual, expected });
        }
        Ok(())
    }

    /// Whether its candidates are bins, each tried at one value of many.
    pub fn is_binned(&self) -> bool {
        !self.edges.is_empty()
    }

    /// Number of candidates M.
    pub fn len(&self) -> usize {
        self.prior.len()
    }

    /// Never: there are at least two.
    pub fn is_empty(&self) -> bool {
        self.prior.is_empty()
    }

    /// What the attacker knows beforehand.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }

    /// Its columns.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Values of candidate `m` in its columns.
    pub fn candidate(&self, m: usize) -> &[f64] {
        let k = self.columns.len();
        &self.candidates[m * k..(m + 1) * k]
    }

    /// Index of the most probable candidate, of equals the first.
    pub fn most_probable(&self) -> usize {
        (0..self.len()).rev().max_by(|&a, &b| self.prior[a].total_cmp(&self.prior[b])).unwrap_or(0)
    }

    /// The candidate that an encoded row has, if it is one of them.
    pub fn truth(&self, x: &[f64]) -> Option<usize> {
        let value = &x[self.columns.clone()];
        if self.edges.is_empty() {
            let (m, squared) = self.nearest(|j| value[j])?;
            let apart = (0..self.len()).filter(|&k| k != m).map(|k| self.squared_distance(k, m));
            let closest = apart.filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
            (squared <= OWN * OWN * closest).then_some(m)
        } else {
            Some(self.edges.partition_point(|e| *e <= value[0]))
        }
    }

    fn squared_distance(&self, a: usize, b: usize) -> f64 {
        self.candidate(a).iter().zip(self.candidate(b)).map(|(x, y)| (x - y).powi(2)).sum()
    }

    /// Index of the nearest candidate; `None` where no distance is a number.
    pub(super) fn nearest(&self, value: impl Fn(usize) -> f64) -> Option<(usize, f64)> {
        let distance = |m: usize| -> f64 {
            self.candidate(m).iter().enumerate().map(|(j, c)| (value(j) - c).powi(2)).sum()
        };
        (0..self.len())
            .map(|m| (m, distance(m)))
            .filter(|(_, d)| d.is_finite())
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_row_is_told_at_any_size_of_its_columns() {
        for size in [1.0, 1e-10, 1e-120, 1e12] {
            let secret = Secret::category(1..3, vec![size, 0.0, 0.0, size, 0.0, 0.0], &[5, 3, 2]).unwrap();
            for (row, truth) in [([9.0, size, 0.0], 0), ([9.0, 0.0, size], 1), ([9.0, 0.0, 0.0], 2)] {
                assert_eq!(secret.truth(&row), Some(truth), "{size}");
                let rounded = row.map(|v| v * (1.0 + 1e-12));
                assert_eq!(secret.truth(&rounded), Some(truth), "{size}");
            }
            assert_eq!(secret.truth(&[9.0, size, size]), None);
            assert_eq!(secret.truth(&[9.0, 0.5 * size, 0.0]), None);
        }
    }
}
