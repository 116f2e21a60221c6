//! Small mergeable collections for one pass: the most extreme records, and a fair sample.

use serde::{Deserialize, Serialize};

/// A record at one end of η. It is known by its row; what the row is called is known to whoever reads the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extreme {
    /// Its row, from 0 among the rows measured.
    pub row: u64,
    /// Its series.
    pub series: u32,
    /// Information loss of the whole record.
    pub eta: f64,
    /// dFIL.
    pub dfil: f64,
    /// Its loss under the model.
    pub loss: f64,
    /// Norm of the gradient of its loss.
    pub gradient_norm: f64,
    /// Place of its most exposed attribute among those compared, and its η.
    pub attribute: Option<(usize, f64)>,
    /// η of its label in units of the code, where that is secret.
    pub label: Option<f64>,
}

/// The `limit` records with the largest (or smallest) η; ties go to the earlier row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extremes {
    limit: usize,
    largest: bool,
    records: Vec<Extreme>,
}

impl Extremes {
    /// None yet.
    pub fn new(limit: usize, largest: bool) -> Self {
        Self { limit, largest, records: vec![] }
    }

    /// Whether a record with this η would be kept: asked before the record is made.
    pub fn wants(&self, eta: f64) -> bool {
        match self.records.last() {
            Some(last) if self.records.len() >= self.limit => {
                if self.largest {
                    eta > last.eta
                } else {
                    eta < last.eta
                }
            }
            _ => true,
        }
    }

    /// Takes up those of some points, in the order of their rows: η, dFIL, loss and norm of the gradient of each.
    pub(crate) fn add_points(&mut self, first_row: u64, [eta, dfil, loss, gradient_norm]: [&[f64]; 4]) {
        for (i, &own) in eta.iter().enumerate() {
            if self.wants(own) {
                self.add(Extreme {
                    row: first_row + i as u64,
                    series: 0,
                    eta: own,
                    dfil: dfil[i],
                    loss: loss[i],
                    gradient_norm: gradient_norm[i],
                    attribute: None,
                    label: None,
                });
            }
        }
    }

    /// Takes up a record, if it is extreme enough.
    pub fn add(&mut self, record: Extreme) {
        let before = |k: &Extreme| {
            let further = if self.largest { k.eta > record.eta } else { k.eta < record.eta };
            further || (k.eta == record.eta && k.row < record.row)
        };
        let at = self.records.partition_point(before);
        self.records.insert(at, record);
        self.records.truncate(self.limit);
    }

    /// Takes up the records of another collection.
    pub fn merge(&mut self, other: Self) {
        other.records.into_iter().for_each(|record| self.add(record));
    }

    /// The records, most extreme first.
    pub fn records(&self) -> &[Extreme] {
        &self.records
    }

    pub(super) fn has_sizes(&self, like: &Self, series: usize, attributes: usize) -> bool {
        let known =
            |r: &Extreme| (r.series as usize) < series && r.attribute.is_none_or(|(k, _)| k < attributes);
        (self.limit, self.largest) == (like.limit, like.largest)
            && self.records.len() <= self.limit
            && self.records.iter().all(known)
    }
}

/// A record of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Information loss.
    pub eta: f64,
    /// Loss.
    pub loss: f64,
    /// Gradient norm.
    pub gradient_norm: f64,
    /// Its series.
    pub series: u32,
}

/// A sample without replacement that does not depend on how rows are cut into blocks: the rows whose hashes are
/// smallest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    limit: usize,
    /// Hashes from here on are not among the smallest.
    threshold: u64,
    points: Vec<(u64, Point)>,
}

impl Sample {
    /// None yet.
    pub fn new(limit: usize) -> Self {
        Self { limit, threshold: u64::MAX, points: vec![] }
    }

    /// Takes up a row, if it falls into the sample.
    pub fn add(&mut self, row: u64, point: impl FnOnce() -> Point) {
        let hash = scramble(row);
        if hash < self.threshold {
            self.points.push((hash, point()));
            if self.points.len() >= 2 * self.limit {
                self.shrink();
            }
        }
    }

    fn shrink(&mut self) {
        self.points.sort_unstable_by_key(|p| p.0);
        if self.points.len() > self.limit {
            self.threshold = self.points[self.limit].0;
            self.points.truncate(self.limit);
        }
    }

    /// Takes up the sample of other rows.
    pub fn merge(&mut self, other: Self) {
        self.points.extend(other.points);
        self.shrink();
    }

    /// The records of the sample.
    pub fn into_points(mut self) -> Vec<Point> {
        self.shrink();
        self.points.into_iter().map(|p| p.1).collect()
    }

    pub(super) fn has_sizes(&self, like: &Self, series: usize) -> bool {
        self.limit == like.limit
            && self.points.len() <= 2 * self.limit
            && self.points.iter().all(|(_, p)| (p.series as usize) < series)
    }
}

/// A bijection of 64-bit numbers without visible pattern (splitmix64's finaliser).
fn scramble(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(row: u64, eta: f64) -> Extreme {
        Extreme {
            row,
            series: 0,
            eta,
            dfil: 0.0,
            loss: 0.0,
            gradient_norm: 0.0,
            attribute: None,
            label: None,
        }
    }

    #[test]
    fn extremes_are_those_of_a_sort_however_merged() {
        let eta = |i: u64| ((i * 7919) % 101) as f64;
        for largest in [true, false] {
            let (mut a, mut b) = (Extremes::new(10, largest), Extremes::new(10, largest));
            for i in 0..500 {
                let side = if i < 200 { &mut a } else { &mut b };
                if side.wants(eta(i)) {
                    side.add(record(i, eta(i)));
                }
            }
            a.merge(b);
            let mut all: Vec<u64> = (0..500).collect();
            all.sort_by(|&i, &j| {
                let order = eta(i).total_cmp(&eta(j));
                (if largest { order.reverse() } else { order }).then(i.cmp(&j))
            });
            let rows: Vec<u64> = a.records().iter().map(|k| k.row).collect();
            assert_eq!(rows, all[..10]);
        }
    }

    #[test]
    fn a_sample_is_the_same_however_the_rows_are_cut() {
        let point = |i: u64| Point { eta: i as f64, loss: 0.0, gradient_norm: 0.0, series: 0 };
        let whole = {
            let mut s = Sample::new(50);
            (0..1000).for_each(|i| s.add(i, || point(i)));
            s.into_points()
        };
        let mut cut = Sample::new(50);
        for start in (0..1000).step_by(130) {
            let mut part = Sample::new(50);
            (start..(start + 130).min(1000)).for_each(|i| part.add(i, || point(i)));
            cut.merge(part);
        }
        assert_eq!(cut.into_points(), whole);
        assert_eq!(whole.len(), 50);
    }
}
