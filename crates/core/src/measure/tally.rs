//! What is kept of every record, whatever the model: distributions, extremes, a sample, totals of attributes and label.

use super::counting::Largest;
use super::{EXTREMES, Extreme, Extremes, Point, Sample, Series};
use crate::num::Distribution;
use crate::rows::Block;
use serde::{Deserialize, Serialize};

/// Records of the sample.
const SAMPLE: usize = 1500;

/// One of the geometry's attributes over all records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributeTotals {
    /// `Σ η`.
    pub sum: f64,
    /// `Σ η²`.
    pub squares: f64,
    /// Largest η.
    pub max: f64,
    /// The row that has it.
    pub max_row: Option<u64>,
}

/// The label over all records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelTotals {
    /// `Σ η`.
    pub sum: f64,
    /// Largest η.
    pub max: f64,
    /// The row that has it.
    pub max_row: Option<u64>,
}

/// Sums over the encoded columns and the target, for the spread of a prior.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    sums: Vec<f64>,
    squares: Vec<f64>,
    weight: f64,
}

/// What is kept of the records of a pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// Information loss of records.
    pub eta: Distribution,
    /// dFIL of records.
    pub dfil: Distribution,
    /// Loss of records.
    pub loss: Distribution,
    /// Norm of the gradient of records.
    pub gradient_norm: Distribution,
    /// η by series.
    pub by_series: Vec<Distribution>,
    /// Records of largest η.
    pub most: Extremes,
    /// Records of smallest η.
    pub least: Extremes,
    /// A fair sample.
    pub sample: Sample,
    /// By index of the geometry's attributes.
    pub attributes: Vec<AttributeTotals>,
    /// η of the label alone.
    pub label: LabelTotals,
    /// Spread of the columns.
    pub spread: Spread,
    /// Largest η with the scaling of columns counted and not.
    pub scaling: Largest,
}

/// Leakage of the records of one block.
#[derive(Debug, Clone, Copy)]
pub struct Leaks<'a> {
    /// η.
    pub eta: &'a [f64],
    /// dFIL.
    pub dfil: &'a [f64],
    /// Loss.
    pub loss: &'a [f64],
    /// Norm of the gradient.
    pub gradient_norm: &'a [f64],
    /// η of every attribute, records × attributes.
    pub attribute_eta: &'a [f64],
    /// η of the label.
    pub label_eta: &'a [f64],
    /// Whether the label is part of the secret.
    pub label_secret: bool,
}

/// One attribute over the records of a block.
#[derive(Debug, Clone, Copy, Default)]
struct OfBlock {
    sum: f64,
    squares: f64,
    max: f64,
    at: usize,
}

impl Tally {
    /// Nothing yet, of so many records in all, attributes and columns.
    pub(super) fn new(series: Series, records: u64, (attributes, p): (usize, usize)) -> Self {
        let of_all = Distribution::of_stream(records);
        let of_series = match series {
            Series::All => of_all.clone(),
            Series::Group { .. } | Series::Class | Series::Classes { .. } => Distribution::default(),
        };
        Self {
            eta: of_all.clone(),
            dfil: of_all.clone(),
            loss: of_all.clone(),
            gradient_norm: of_all,
            by_series: vec![of_series; series.count()],
            most: Extremes::new(EXTREMES, true),
            least: Extremes::new(EXTREMES, false),
            sample: Sample::new(SAMPLE),
            attributes: vec![AttributeTotals::default(); attributes],
            label: LabelTotals::default(),
            spread: Spread { sums: vec![0.0; p + 1], squares: vec![0.0; p + 1], weight: 0.0 },
            scaling: Largest::default(),
        }
    }

    /// Whether a state that was read from bytes is one of this pass.
    pub(super) fn has_sizes(&self, like: &Self, series: Series, compared: usize) -> bool {
        let count = series.count();
        let spread = |s: &Spread, like: &Spread| {
            s.sums.len() == like.sums.len() && s.squares.len() == like.squares.len()
        };
        self.by_series.len() == count
            && self.most.has_sizes(&like.most, count, compared)
            && self.least.has_sizes(&like.least, count, compared)
            && self.sample.has_sizes(&like.sample, count)
            && self.attributes.len() == like.attributes.len()
            && spread(&self.spread, &like.spread)
    }

    /// Every row that a page names: the extreme ones, and those with the largest η of an attribute or the label.
    pub fn rows_to_name(&self) -> impl Iterator<Item = u64> + '_ {
        let extremes = self.most.records().iter().chain(self.least.records()).map(|r| r.row);
        extremes.chain(self.attributes.iter().filter_map(|a| a.max_row)).chain(self.label.max_row)
    }

    /// Adds the records of a block; the most exposed attribute of each is sought among `compared`.
    pub(super) fn add(&mut self, block: &Block, leaks: &Leaks<'_>, series: Series, compared: &[usize]) {
        self.spread.add(block);
        self.distributions(block, leaks, series);
        self.attributes(block, leaks);
        self.extremes_and_sample(block, leaks, series, compared);
        for (i, &eta) in leaks.label_eta.iter().enumerate() {
            self.label.add(eta, block.first_row + i as u64);
        }
    }

    fn distributions(&mut self, block: &Block, leaks: &Leaks<'_>, series: Series) {
        self.eta.extend(leaks.eta);
        self.dfil.extend(leaks.dfil);
        self.loss.extend(leaks.loss);
        self.gradient_norm.extend(leaks.gradient_norm);
        if self.by_series.len() == 1 {
            self.by_series[0].extend(leaks.eta);
            return;
        }
        let mut split = vec![vec![]; self.by_series.len()];
        for (i, &eta) in leaks.eta.iter().enumerate() {
            split[series.index(block, i) as usize].push(eta);
        }
        self.by_series.iter_mut().zip(split).for_each(|(d, etas)| d.extend(&etas));
    }

    fn attributes(&mut self, block: &Block, leaks: &Leaks<'_>) {
        let count = self.attributes.len();
        let mut of_block = vec![OfBlock::default(); count];
        // Records outside, attributes inside: the table of η lies in memory by records.
        for (i, of_record) in leaks.attribute_eta.chunks_exact(count.max(1)).enumerate() {
            for (totals, &eta) in of_block.iter_mut().zip(of_record) {
                totals.sum += eta;
                totals.squares += eta * eta;
                if eta > totals.max {
                    (totals.max, totals.at) = (eta, i);
                }
            }
        }
        for (totals, of_block) in self.attributes.iter_mut().zip(&of_block) {
            totals.sum += of_block.sum;
            totals.squares += of_block.squares;
            if of_block.max > totals.max || (totals.max_row.is_none() && !block.is_empty()) {
                totals.max = of_block.max;
                totals.max_row = Some(block.first_row + of_block.at as u64);
            }
        }
    }

    fn extremes_and_sample(&mut self, block: &Block, leaks: &Leaks<'_>, series: Series, compared: &[usize]) {
        let count = self.attributes.len();
        for i in 0..block.len() {
            let (eta, row) = (leaks.eta[i], block.first_row + i as u64);
            let series = series.index(block, i);
            let (loss, gradient_norm) = (leaks.loss[i], leaks.gradient_norm[i]);
            self.sample.add(row, || Point { eta, loss, gradient_norm, series });
            for extremes in [&mut self.most, &mut self.least] {
                if extremes.wants(eta) {
                    let of_record = &leaks.attribute_eta[i * count..(i + 1) * count];
                    let attribute = most_exposed(of_record, compared);
                    let dfil = leaks.dfil[i];
                    let label = leaks.label_secret.then(|| leaks.label_eta[i]);
                    extremes.add(Extreme { row, series, eta, dfil, loss, gradient_norm, attribute, label });
                }
            }
        }
    }

    /// Adds the records of later rows.
    pub(super) fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
        self.dfil.merge(later.dfil);
        self.loss.merge(later.loss);
        self.gradient_norm.merge(later.gradient_norm);
        self.by_series.iter_mut().zip(later.by_series).for_each(|(a, b)| a.merge(b));
        self.most.merge(later.most);
        self.least.merge(later.least);
        self.sample.merge(later.sample);
        for (a, b) in self.attributes.iter_mut().zip(later.attributes) {
            a.sum += b.sum;
            a.squares += b.squares;
            if b.max > a.max || a.max_row.is_none() {
                (a.max, a.max_row) = (b.max, b.max_row);
            }
        }
        self.label.merge(later.label);
        self.scaling.merge(later.scaling);
        self.spread.sums.iter_mut().zip(later.spread.sums).for_each(|(a, b)| *a += b);
        self.spread.squares.iter_mut().zip(later.spread.squares).for_each(|(a, b)| *a += b);
        self.spread.weight += later.spread.weight;
    }
}

impl LabelTotals {
    /// Adds the label of one record.
    pub(super) fn add(&mut self, eta: f64, row: u64) {
        self.sum += eta;
        if eta > self.max || self.max_row.is_none() {
            (self.max, self.max_row) = (eta, Some(row));
        }
    }

    /// Adds those of later rows.
    pub(super) fn merge(&mut self, later: Self) {
        self.sum += later.sum;
        if later.max > self.max || self.max_row.is_none() {
            (self.max, self.max_row) = (later.max, later.max_row);
        }
    }
}

impl Spread {
    fn add(&mut self, block: &Block) {
        for i in 0..block.len() {
            let columns = block.row(i).iter().chain(std::iter::once(&block.y[i]));
            for ((sum, square), x) in self.sums.iter_mut().zip(&mut self.squares).zip(columns) {
                *sum += x;
                *square += x * x;
            }
        }
        self.weight += block.len() as f64;
    }

    /// Variances of the first `d` columns and, last, of the target.
    pub fn variances(&self, d: usize) -> Vec<f64> {
        let target = self.sums.len() - 1;
        (0..d)
            .chain([target])
            .map(|j| {
                let mean = self.sums[j] / self.weight;
                let raw = self.squares[j] / self.weight;
                let variance = raw - mean * mean;
                // What is left of a constant column is rounding.
                if variance > 1e-14 * raw { variance } else { 0.0 }
            })
            .collect()
    }
}

/// The compared attribute with the largest η, and that; of equals the first.
fn most_exposed(of_record: &[f64], compared: &[usize]) -> Option<(usize, f64)> {
    let etas = compared.iter().enumerate().map(|(k, &at)| (k, of_record[at]));
    etas.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}
