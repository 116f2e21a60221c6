//! The one pass that measures: every record to the table of records, and what the page needs of them all.

use super::collect::{Extremes, Kept, Sample};
use super::{AttributeSlot, two_class};
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::fisher::{Geometry, Records, SetSums};
use leakscope_core::num::Distribution;
use leakscope_core::rows::{Block, Rows};
use leakscope_report::audit::SamplePoint;
use leakscope_report::choice::SeriesBy;
use leakscope_table::TargetCoding;
use leakscope_table::{Dataset, Encoding, Labels, PartMaker, RecordsPart, RecordsSchema, RecordsWriter};

/// Records kept at either end of η.
pub(super) const EXTREMES: usize = 100;
const SAMPLE: usize = 1500;

/// What the records of a chart are told apart by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesNames {
    /// `group`, `class` or `all`.
    pub(super) by: SeriesBy,
    pub(super) names: Vec<String>,
}

impl SeriesNames {
    pub(super) fn of(encoding: &Encoding) -> Self {
        if let Some(group) = &encoding.group {
            return Self { by: SeriesBy::Group, names: group.levels.clone() };
        }
        match &encoding.target.coding {
            TargetCoding::TwoClass { low, high } => {
                Self { by: SeriesBy::Class, names: vec![low.name.clone(), high.name.clone()] }
            }
            TargetCoding::Number | TargetCoding::Count => {
                Self { by: SeriesBy::All, names: vec!["all records".into()] }
            }
        }
    }

    /// Index of the series of row `i`.
    pub(super) fn index(&self, block: &Block, i: usize) -> u32 {
        match self.by {
            SeriesBy::Group => block.group.get(i).copied().unwrap_or(0),
            SeriesBy::Class => u32::from(block.y[i] > 0.0),
            SeriesBy::All => 0,
        }
    }
}

/// One variant of one attribute over all records.
#[derive(Debug, Clone, Default)]
pub(super) struct AttributeTotals {
    pub(super) sum: f64,
    pub(super) squares: f64,
    pub(super) max: f64,
    pub(super) max_record: String,
}

/// Sums over the encoded columns and the target, for the spread of a prior.
#[derive(Debug, Clone, Default)]
pub(super) struct Spread {
    sums: Vec<f64>,
    squares: Vec<f64>,
    weight: f64,
}

/// What a pass over the records found, at the geometry's noise.
pub(super) struct Measured {
    pub(super) series: SeriesNames,
    pub(super) eta: Distribution,
    pub(super) dfil: Distribution,
    pub(super) loss: Distribution,
    pub(super) gradient_norm: Distribution,
    /// η by series.
    pub(super) by_series: Vec<Distribution>,
    pub(super) most: Extremes,
    pub(super) least: Extremes,
    pub(super) sample: Sample,
    /// By index of the geometry's attributes.
    pub(super) attributes: Vec<AttributeTotals>,
    /// η of the label alone.
    pub(super) label: AttributeTotals,
    pub(super) whole: SetSums,
    /// Sums by group; empty without groups.
    pub(super) groups: Vec<SetSums>,
    pub(super) spread: Spread,
}

struct State {
    found: Measured,
    records: Records,
    part: Option<RecordsPart>,
    numbers: Vec<f64>,
    rows_of: Vec<Vec<usize>>,
    of_block: Vec<OfBlock>,
}

/// One variant of one attribute over the records of a block.
#[derive(Clone, Copy, Default)]
struct OfBlock {
    sum: f64,
    squares: f64,
    max: f64,
    at: usize,
}

/// Columns of the table of records.
pub(super) fn schema(encoding: &Encoding, slots: &[AttributeSlot]) -> Result<RecordsSchema> {
    let mut numbers: Vec<String> = ["eta", "dfil", "loss", "gradient_norm"].map(String::from).into();
    for slot in slots {
        numbers.push(format!("eta_{}", encoding.attributes[slot.attribute].name));
    }
    for slot in slots.iter().filter(|s| s.constrained.is_some()) {
        numbers.push(format!("eta_{}_sum_to_one", encoding.attributes[slot.attribute].name));
    }
    let schema = RecordsSchema { id: id_name(encoding), texts: series_column(encoding), numbers };
    let mut names: Vec<&String> =
        [&schema.id].into_iter().chain(&schema.texts).chain(&schema.numbers).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::Message(format!(
            "the table of records would have two columns `{}`: rename that column of the input",
            pair[0]
        )));
    }
    Ok(schema)
}

pub(super) fn id_name(encoding: &Encoding) -> String {
    encoding.id.clone().unwrap_or_else(|| "row".into())
}

fn series_column(encoding: &Encoding) -> Vec<String> {
    match (&encoding.group, two_class(encoding)) {
        (Some(group), _) => vec![group.name.clone()],
        (None, true) => vec![encoding.target.name.clone()],
        (None, false) => vec![],
    }
}

impl Measured {
    fn new(geometry: &Geometry, encoding: &Encoding) -> Self {
        let p = geometry.fit().w.len();
        let series = SeriesNames::of(encoding);
        let groups = encoding.group.as_ref().map_or(0, |g| g.levels.len());
        Self {
            by_series: vec![Distribution::default(); series.names.len()],
            series,
            eta: Distribution::default(),
            dfil: Distribution::default(),
            loss: Distribution::default(),
            gradient_norm: Distribution::default(),
            most: Extremes::new(EXTREMES, true),
            least: Extremes::new(EXTREMES, false),
            sample: Sample::new(SAMPLE),
            attributes: vec![AttributeTotals::default(); geometry.attribute_count()],
            label: AttributeTotals::default(),
            whole: SetSums::new(p, true),
            groups: vec![SetSums::new(p, false); groups],
            spread: Spread { sums: vec![0.0; p + 1], squares: vec![0.0; p + 1], weight: 0.0 },
        }
    }

    fn merge(&mut self, other: Self) {
        self.eta.merge(other.eta);
        self.dfil.merge(other.dfil);
        self.loss.merge(other.loss);
        self.gradient_norm.merge(other.gradient_norm);
        self.by_series.iter_mut().zip(other.by_series).for_each(|(a, b)| a.merge(b));
        self.most.merge(other.most);
        self.least.merge(other.least);
        self.sample.merge(other.sample);
        for (a, b) in self.attributes.iter_mut().zip(other.attributes) {
            a.sum += b.sum;
            a.squares += b.squares;
            if b.max > a.max || a.max_record.is_empty() {
                (a.max, a.max_record) = (b.max, b.max_record);
            }
        }
        self.label.sum += other.label.sum;
        self.label.max = self.label.max.max(other.label.max);
        self.whole.merge(&other.whole);
        self.groups.iter_mut().zip(&other.groups).for_each(|(a, b)| a.merge(b));
        for (a, b) in self.spread.sums.iter_mut().zip(other.spread.sums) {
            *a += b;
        }
        for (a, b) in self.spread.squares.iter_mut().zip(other.spread.squares) {
            *a += b;
        }
        self.spread.weight += other.spread.weight;
    }
}

impl Spread {
    fn add(&mut self, block: &Block) {
        let p = block.width;
        for i in 0..block.len() {
            let columns = block.row(i).iter().chain(std::iter::once(&block.y[i]));
            for ((sum, square), x) in self.sums.iter_mut().zip(&mut self.squares).zip(columns) {
                *sum += x;
                *square += x * x;
            }
        }
        debug_assert_eq!(self.sums.len(), p + 1);
        self.weight += block.len() as f64;
    }

    /// Variances of the first `d` columns and, last, of the target.
    pub(super) fn variances(&self, d: usize) -> Vec<f64> {
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

/// Measures every record; their table goes to `writer`.
pub(super) fn measure(
    rows: &Dataset,
    geometry: &Geometry,
    slots: &[AttributeSlot],
    mut writer: Option<&mut RecordsWriter>,
) -> Result<Measured> {
    let encoding = rows.encoding();
    let parts: Option<PartMaker> = writer.as_ref().map(|w| w.parts());
    let mut total = Measured::new(geometry, encoding);
    // The Gram matrix of the whole set is known already, or is the sum over groups, or must be added up.
    let gram_known = geometry.gram_is_in_hessian();
    let start = || State {
        found: Measured::new(geometry, encoding),
        records: Records::default(),
        part: parts.as_ref().map(PartMaker::part),
        numbers: vec![],
        rows_of: vec![vec![]; total_groups(encoding)],
        of_block: vec![],
    };
    let step = |state: &mut State, block: &Block, labels: &Labels| {
        geometry.records(block, &mut state.records);
        finite(&state.records)?;
        state.found.spread.add(block);
        state.sets(geometry, block, gram_known);
        state.distributions(block);
        state.keep(block, labels, slots);
        state.label(geometry, block);
        state.write(block, labels, slots).map_err(CoreError::from)
    };
    let merge = |state: State| {
        total.merge(state.found);
        if let (Some(writer), Some(part)) = (writer.as_deref_mut(), state.part) {
            writer.append(part).map_err(CoreError::from)?;
        }
        Ok(())
    };
    rows.fold_labelled(start, step, merge)?;
    if gram_known {
        geometry.take_gram_from_hessian(&mut total.whole);
    }
    Ok(total)
}

fn total_groups(encoding: &Encoding) -> usize {
    encoding.group.as_ref().map_or(0, |g| g.levels.len())
}

/// Refuses numbers that are too large to be written: dFIL is η², and grows as 1/σ².
pub(super) fn finite(records: &Records) -> leakscope_core::Result<()> {
    match records.eta.iter().chain(&records.dfil).find(|v| !v.is_finite()) {
        None => Ok(()),
        Some(&value) => Err(CoreError::OutOfRange {
            what: "leakage at this noise",
            value,
            expected: "a finite number: choose a larger ⟨sigma⟩, or other units with ⟨scale=standard⟩",
        }),
    }
}

/// η alone, for solving for σ.
pub(crate) fn eta_distribution(rows: &impl Rows, geometry: &Geometry) -> Result<Distribution> {
    let mut total = Distribution::default();
    rows.fold(
        || (Distribution::default(), Records::default()),
        |(eta, records), block| {
            geometry.eta(block, records);
            finite(records)?;
            eta.extend(&records.eta);
            Ok(())
        },
        |(eta, _)| {
            total.merge(eta);
            Ok(())
        },
    )?;
    Ok(total)
}

impl State {
    fn sets(&mut self, geometry: &Geometry, block: &Block, gram_known: bool) {
        let found = &mut self.found;
        if gram_known {
            geometry.add_to_set_without_gram(block, &self.records, &mut found.whole);
        } else {
            geometry.add_to_set(block, &self.records, None, &mut found.whole);
        }
        if found.groups.is_empty() {
            return;
        }
        self.rows_of.iter_mut().for_each(Vec::clear);
        for (i, &group) in block.group.iter().enumerate() {
            self.rows_of[group as usize].push(i);
        }
        for (set, rows) in found.groups.iter_mut().zip(&self.rows_of) {
            if !rows.is_empty() {
                geometry.add_to_set(block, &self.records, Some(rows), set);
            }
        }
    }

    fn distributions(&mut self, block: &Block) {
        let (found, records) = (&mut self.found, &self.records);
        found.eta.extend(&records.eta);
        found.dfil.extend(&records.dfil);
        found.loss.extend(&records.loss);
        found.gradient_norm.extend(&records.gradient_norm);
        if found.by_series.len() == 1 {
            found.by_series[0].extend(&records.eta);
            return;
        }
        let mut split = vec![vec![]; found.by_series.len()];
        for (i, &eta) in records.eta.iter().enumerate() {
            split[found.series.index(block, i) as usize].push(eta);
        }
        found.by_series.iter_mut().zip(split).for_each(|(d, etas)| d.extend(&etas));
    }

    fn label(&mut self, geometry: &Geometry, block: &Block) {
        for i in 0..block.len() {
            let eta = geometry.label_eta(&self.records, i);
            self.found.label.sum += eta;
            self.found.label.max = self.found.label.max.max(eta);
        }
    }

    fn keep(&mut self, block: &Block, labels: &Labels, slots: &[AttributeSlot]) {
        let (found, records) = (&mut self.found, &self.records);
        let count = found.attributes.len();
        let block_totals = &mut self.of_block;
        block_totals.clear();
        block_totals.resize(count, OfBlock::default());
        // Records outside, attributes inside: the table of η lies in memory by records.
        for (i, of_record) in records.attribute_eta.chunks_exact(count.max(1)).enumerate() {
            for (totals, &eta) in block_totals.iter_mut().zip(of_record) {
                totals.sum += eta;
                totals.squares += eta * eta;
                if eta > totals.max {
                    (totals.max, totals.at) = (eta, i);
                }
            }
        }
        for (totals, of_block) in found.attributes.iter_mut().zip(&*block_totals) {
            totals.sum += of_block.sum;
            totals.squares += of_block.squares;
            if of_block.max > totals.max || (totals.max_record.is_empty() && !block.is_empty()) {
                totals.max = of_block.max;
                totals.max_record.clone_from(&labels.ids[of_block.at]);
            }
        }
        for i in 0..block.len() {
            let (eta, row) = (records.eta[i], block.first_row + i as u64);
            let series = found.series.index(block, i);
            let (loss, gradient_norm) = (records.loss[i], records.gradient_norm[i]);
            found.sample.add(row, || SamplePoint { eta, loss, gradient_norm, series });
            for extremes in [&mut found.most, &mut found.least] {
                if extremes.wants(eta) {
                    let of_record = &records.attribute_eta[i * count..(i + 1) * count];
                    extremes.add(Kept {
                        row,
                        id: labels.ids[i].clone(),
                        series,
                        eta,
                        dfil: records.dfil[i],
                        loss,
                        gradient_norm,
                        attribute: most_exposed(of_record, slots),
                    });
                }
            }
        }
    }

    fn write(
        &mut self,
        block: &Block,
        labels: &Labels,
        slots: &[AttributeSlot],
    ) -> leakscope_table::Result<()> {
        let Some(part) = &mut self.part else { return Ok(()) };
        let (records, count) = (&self.records, self.found.attributes.len());
        let with_series = self.found.series.by != SeriesBy::All;
        for i in 0..block.len() {
            let of_record = &records.attribute_eta[i * count..(i + 1) * count];
            self.numbers.clear();
            self.numbers.extend([records.eta[i], records.dfil[i], records.loss[i], records.gradient_norm[i]]);
            self.numbers.extend(slots.iter().map(|s| of_record[s.free]));
            self.numbers.extend(slots.iter().filter_map(|s| s.constrained).map(|k| of_record[k]));
            let series = self.found.series.index(block, i) as usize;
            let name = self.found.series.names.get(series).map_or("", String::as_str);
            let texts: &[&str] = if with_series { &[name] } else { &[] };
            part.push_at(labels.positions[i], &labels.ids[i], texts, &self.numbers)?;
        }
        Ok(())
    }
}

/// The attribute with the largest η, and that.
pub(super) fn most_exposed(of_record: &[f64], slots: &[AttributeSlot]) -> Option<(usize, f64)> {
    slots
        .iter()
        .enumerate()
        .map(|(k, slot)| (k, of_record[slot.free]))
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}
