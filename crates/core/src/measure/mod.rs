//! The one pass that measures: leakage of every record, attribute, group and the whole, and what a page needs of them.
//!
//! Nothing here has a name: series, attributes and rows are numbers, and whoever knows the table names them. The
//! leakage of the records of the last block stays in the state ([`Measured::last`]), for whoever writes a table of
//! records while the pass runs.

mod collect;
mod columns;
mod counting;
mod score;

pub use collect::{Extreme, Extremes, Point, Sample};
pub use columns::{ColumnDistributions, ColumnValues, Distributions, Values};
pub use counting::{Counting, Largest, records};
pub use score::{Score, Scores};

use crate::fisher::scaling::CountedRecords;
use crate::fisher::{Geometry, Records, SetSums};
use crate::num::Distribution;
use crate::pass::{Merge, Pass, Runner};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Records kept at either end of η.
pub const EXTREMES: usize = 100;
/// Records of the sample.
const SAMPLE: usize = 1500;

/// What records are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Series {
    /// The groups of the table.
    Group {
        /// How many there are.
        groups: usize,
    },
    /// The two classes of the target: 0 low, 1 high.
    Class,
    /// Nothing: all records are one series.
    All,
}

impl Series {
    /// How many series there are.
    pub fn count(self) -> usize {
        match self {
            Self::Group { groups } => groups,
            Self::Class => 2,
            Self::All => 1,
        }
    }

    /// Index of the series of row `i`. Classes are coded 0/1 or −1/1, which both read as `y > 0`.
    pub fn index(self, block: &Block, i: usize) -> u32 {
        match self {
            Self::Group { .. } => block.group.get(i).copied().unwrap_or(0),
            Self::Class => u32::from(block.y[i] > 0.0),
            Self::All => 0,
        }
    }

    fn groups(self) -> usize {
        match self {
            Self::Group { groups } => groups,
            Self::Class | Self::All => 0,
        }
    }
}

/// The pass that measures records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measure<'a> {
    /// The model and its release.
    pub geometry: Cow<'a, Geometry>,
    /// What records are told apart by.
    pub series: Series,
    /// The geometry's attributes among which the most exposed of a record is sought.
    pub compared: Cow<'a, [usize]>,
    /// The same model with the scaling of its columns counted, where there is anything to count.
    pub counting: Option<Cow<'a, Counting>>,
}

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

/// What a pass over the records found, at the geometry's noise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
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
    /// All records as one set.
    pub whole: SetSums,
    /// Sums by group; empty without groups.
    pub groups: Vec<SetSums>,
    /// Spread of the columns.
    pub spread: Spread,
    /// Largest η with the scaling of columns counted and not.
    pub scaling: Largest,
    #[serde(skip)]
    scratch: Scratch,
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    records: Records,
    counted: CountedRecords,
    rows_of: Vec<Vec<usize>>,
    of_block: Vec<OfBlock>,
}

/// One attribute over the records of a block.
#[derive(Debug, Clone, Copy, Default)]
struct OfBlock {
    sum: f64,
    squares: f64,
    max: f64,
    at: usize,
}

impl Measured {
    /// Leakage of the records of the last block that was added.
    pub fn last(&self) -> &Records {
        &self.scratch.records
    }

    /// Every row that a page names: the extreme ones, and those with the largest η of an attribute or the label.
    pub fn rows_to_name(&self) -> impl Iterator<Item = u64> + '_ {
        let extremes = self.most.records().iter().chain(self.least.records()).map(|r| r.row);
        extremes.chain(self.attributes.iter().filter_map(|a| a.max_row)).chain(self.label.max_row)
    }
}

impl Merge for Measured {
    fn merge(&mut self, later: Self) {
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
        self.label.sum += later.label.sum;
        if later.label.max > self.label.max || self.label.max_row.is_none() {
            (self.label.max, self.label.max_row) = (later.label.max, later.label.max_row);
        }
        self.scaling.merge(later.scaling);
        self.whole.merge(&later.whole);
        self.groups.iter_mut().zip(&later.groups).for_each(|(a, b)| a.merge(b));
        self.spread.sums.iter_mut().zip(later.spread.sums).for_each(|(a, b)| *a += b);
        self.spread.squares.iter_mut().zip(later.spread.squares).for_each(|(a, b)| *a += b);
        self.spread.weight += later.spread.weight;
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

/// Measures every record.
pub fn measure(rows: &impl Runner, pass: &Measure<'_>) -> Result<Measured> {
    let mut measured = rows.run(pass)?;
    pass.finish(&mut measured);
    Ok(measured)
}

impl Measure<'_> {
    /// Completes the state of all rows: the Gram matrix of the whole set is taken from the Hessian where it is there.
    pub fn finish(&self, measured: &mut Measured) {
        if self.geometry.gram_is_in_hessian() {
            self.geometry.take_gram_from_hessian(&mut measured.whole);
        }
    }

    fn sets(&self, state: &mut Measured, block: &Block) -> Result<()> {
        let (geometry, Scratch { records, rows_of, .. }) = (&*self.geometry, &mut state.scratch);
        // The Gram matrix of the whole set is known already, or must be added up.
        if geometry.gram_is_in_hessian() {
            geometry.add_to_set_without_gram(block, records, &mut state.whole);
        } else {
            geometry.add_to_set(block, records, None, &mut state.whole);
        }
        if state.groups.is_empty() {
            return Ok(());
        }
        rows_of.resize(state.groups.len(), vec![]);
        rows_of.iter_mut().for_each(Vec::clear);
        for (i, &group) in block.group.iter().enumerate() {
            let expected = state.groups.len();
            let of_group = rows_of.get_mut(group as usize);
            let shape = Error::Shape { what: "the list of groups", found: group as usize + 1, expected };
            of_group.ok_or(shape)?.push(i);
        }
        for (set, rows) in state.groups.iter_mut().zip(&*rows_of).filter(|(_, rows)| !rows.is_empty()) {
            geometry.add_to_set(block, records, Some(rows), set);
        }
        Ok(())
    }

    fn distributions(&self, state: &mut Measured, block: &Block) {
        let records = &state.scratch.records;
        state.eta.extend(&records.eta);
        state.dfil.extend(&records.dfil);
        state.loss.extend(&records.loss);
        state.gradient_norm.extend(&records.gradient_norm);
        if state.by_series.len() == 1 {
            state.by_series[0].extend(&records.eta);
            return;
        }
        let mut split = vec![vec![]; state.by_series.len()];
        for (i, &eta) in records.eta.iter().enumerate() {
            split[self.series.index(block, i) as usize].push(eta);
        }
        state.by_series.iter_mut().zip(split).for_each(|(d, etas)| d.extend(&etas));
    }

    fn attributes(&self, state: &mut Measured, block: &Block) {
        let Scratch { records, of_block, .. } = &mut state.scratch;
        let count = state.attributes.len();
        of_block.clear();
        of_block.resize(count, OfBlock::default());
        // Records outside, attributes inside: the table of η lies in memory by records.
        for (i, of_record) in records.attribute_eta.chunks_exact(count.max(1)).enumerate() {
            for (totals, &eta) in of_block.iter_mut().zip(of_record) {
                totals.sum += eta;
                totals.squares += eta * eta;
                if eta > totals.max {
                    (totals.max, totals.at) = (eta, i);
                }
            }
        }
        for (totals, of_block) in state.attributes.iter_mut().zip(&*of_block) {
            totals.sum += of_block.sum;
            totals.squares += of_block.squares;
            if of_block.max > totals.max || (totals.max_row.is_none() && !block.is_empty()) {
                totals.max = of_block.max;
                totals.max_row = Some(block.first_row + of_block.at as u64);
            }
        }
    }

    fn extremes_and_sample(&self, state: &mut Measured, block: &Block) {
        let (records, count) = (&state.scratch.records, state.attributes.len());
        let secret = self.geometry.release().label_secret;
        for i in 0..block.len() {
            let (eta, row) = (records.eta[i], block.first_row + i as u64);
            let series = self.series.index(block, i);
            let (loss, gradient_norm) = (records.loss[i], records.gradient_norm[i]);
            state.sample.add(row, || Point { eta, loss, gradient_norm, series });
            for extremes in [&mut state.most, &mut state.least] {
                if extremes.wants(eta) {
                    let of_record = &records.attribute_eta[i * count..(i + 1) * count];
                    let attribute = most_exposed(of_record, &self.compared);
                    let dfil = records.dfil[i];
                    let label = secret.then(|| self.geometry.label_eta(records, i));
                    extremes.add(Extreme { row, series, eta, dfil, loss, gradient_norm, attribute, label });
                }
            }
        }
    }

    fn label(&self, state: &mut Measured, block: &Block) {
        for i in 0..block.len() {
            let eta = self.geometry.label_eta(&state.scratch.records, i);
            state.label.sum += eta;
            if eta > state.label.max || state.label.max_row.is_none() {
                (state.label.max, state.label.max_row) = (eta, Some(block.first_row + i as u64));
            }
        }
    }
}

/// The compared attribute with the largest η, and that; of equals the first.
fn most_exposed(of_record: &[f64], compared: &[usize]) -> Option<(usize, f64)> {
    let etas = compared.iter().enumerate().map(|(k, &at)| (k, of_record[at]));
    etas.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

impl Pass for Measure<'_> {
    const NAME: &'static str = "the leakage of records";
    type State = Measured;

    fn start(&self) -> Measured {
        let p = self.geometry.fit().w.len();
        Measured {
            eta: Distribution::default(),
            dfil: Distribution::default(),
            loss: Distribution::default(),
            gradient_norm: Distribution::default(),
            by_series: vec![Distribution::default(); self.series.count()],
            most: Extremes::new(EXTREMES, true),
            least: Extremes::new(EXTREMES, false),
            sample: Sample::new(SAMPLE),
            attributes: vec![AttributeTotals::default(); self.geometry.attribute_count()],
            label: LabelTotals::default(),
            whole: SetSums::new(p, true),
            groups: vec![SetSums::new(p, false); self.series.groups()],
            spread: Spread { sums: vec![0.0; p + 1], squares: vec![0.0; p + 1], weight: 0.0 },
            scaling: Largest::default(),
            scratch: Scratch::default(),
        }
    }

    fn step(&self, state: &mut Measured, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let counting = self.counting.as_deref();
        let Scratch { records: plain, counted, .. } = &mut state.scratch;
        state.scaling.merge(records(&self.geometry, counting, block, (plain, counted))?);
        state.spread.add(block);
        self.sets(state, block)?;
        self.distributions(state, block);
        self.attributes(state, block);
        self.extremes_and_sample(state, block);
        self.label(state, block);
        Ok(())
    }

    fn fits(&self, state: &Measured) -> bool {
        let like = self.start();
        let (p, series, compared) = (self.geometry.fit().w.len(), self.series.count(), self.compared.len());
        let spread = |s: &Spread| s.sums.len() == p + 1 && s.squares.len() == p + 1;
        state.by_series.len() == series
            && state.most.has_sizes(&like.most, series, compared)
            && state.least.has_sizes(&like.least, series, compared)
            && state.sample.has_sizes(&like.sample, series)
            && state.attributes.len() == like.attributes.len()
            && state.whole.has_sizes(p, true)
            && state.groups.len() == like.groups.len()
            && state.groups.iter().all(|set| set.has_sizes(p, false))
            && spread(&state.spread)
    }
}
