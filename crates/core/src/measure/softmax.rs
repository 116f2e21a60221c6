//! The pass that measures the records of a softmax model: what every model tells, and what varies by class.

use super::tally::{LabelTotals, Leaks, Tally};
use super::{Largest, Series};
use crate::fisher::softmax::{AttributeSets, SoftmaxGeometry, SoftmaxRecords, SoftmaxSet};
use crate::linalg::axpy;
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Work up to which attributes over all records are summed, and numbers that their sums may hold.
const MOST_WORK: f64 = 4e9;
const MOST_NUMBERS: usize = 16_000_000;

/// The pass that measures records of a softmax model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxMeasure<'a> {
    /// The model and its release, in the units of the rows.
    pub geometry: Cow<'a, SoftmaxGeometry>,
    /// What records are told apart by.
    pub series: Series,
    /// The geometry's attributes among which the most exposed of a record is sought.
    pub compared: Cow<'a, [usize]>,
    /// Whether there is a scaling of columns to count, and if so whether records and attributes are measured by it; otherwise
    /// only the largest η is kept.
    pub counting: Option<bool>,
}

/// One class of a softmax model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OfClass {
    /// η of its records.
    pub eta: Distribution,
    /// Loss of its records.
    pub loss: Distribution,
    /// η of their labels.
    pub label: LabelTotals,
}

/// Sums over the records of a softmax model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxSums {
    /// All records as one set.
    pub whole: SoftmaxSet,
    /// Sums by group; empty without groups.
    pub groups: Vec<SoftmaxSet>,
    /// By class.
    pub by_class: Vec<OfClass>,
    /// Every attribute over all records; absent where that is too much work.
    pub over_all: Option<AttributeSets>,
    /// Sum over records of the information about each data column and, where it is secret, each contrast of the label.
    pub information: Vec<f64>,
}

/// What a pass over the records of a softmax model found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxMeasured {
    tally: Tally,
    sums: SoftmaxSums,
    #[serde(skip)]
    records: SoftmaxRecords,
    #[serde(skip)]
    plain: SoftmaxRecords,
}

impl std::ops::Deref for SoftmaxMeasured {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        &self.tally
    }
}

impl SoftmaxMeasured {
    /// Leakage of the records of the last block that was added.
    pub fn last(&self) -> &SoftmaxRecords {
        &self.records
    }

    /// What does not depend on the kind of model, and what does.
    pub fn into_parts(self) -> (Tally, SoftmaxSums) {
        (self.tally, self.sums)
    }
}

impl Merge for SoftmaxMeasured {
    fn merge(&mut self, later: Self) {
        self.tally.merge(later.tally);
        let (sums, later) = (&mut self.sums, later.sums);
        sums.whole.merge(&later.whole);
        sums.groups.iter_mut().zip(&later.groups).for_each(|(a, b)| a.merge(b));
        for (a, b) in sums.by_class.iter_mut().zip(later.by_class) {
            a.eta.merge(b.eta);
            a.loss.merge(b.loss);
            a.label.merge(b.label);
        }
        if let (Some(a), Some(b)) = (&mut sums.over_all, &later.over_all) {
            a.merge(b);
        }
        axpy(1.0, &later.information, &mut sums.information);
    }
}

impl Pass for SoftmaxMeasure<'_> {
    const NAME: &'static str = "the leakage of records of a softmax model";
    type State = SoftmaxMeasured;

    fn start(&self) -> SoftmaxMeasured {
        let geometry = &*self.geometry;
        let (fit, count) = (geometry.fit(), geometry.attribute_count());
        let label = if geometry.release().label_secret { fit.classes - 1 } else { 0 };
        let sums = SoftmaxSums {
            whole: geometry.set(),
            groups: vec![geometry.set(); self.series.groups()],
            by_class: vec![OfClass::default(); fit.classes],
            over_all: self.sums_attributes().then(|| geometry.attribute_sets()),
            information: vec![0.0; geometry.data_width() + label],
        };
        SoftmaxMeasured {
            tally: Tally::new(self.series, fit.n, (count, fit.width)),
            sums,
            records: SoftmaxRecords::default(),
            plain: SoftmaxRecords::default(),
        }
    }

    fn step(&self, state: &mut SoftmaxMeasured, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let (geometry, most) = (&*self.geometry, |eta: &[f64]| eta.iter().copied().fold(0.0, f64::max));
        match self.counting {
            None => geometry.records(block, &mut state.records)?,
            Some(replaces) => {
                geometry.counted(block, &mut state.records)?;
                geometry.records(block, &mut state.plain)?;
                let (counted, plain) = (most(&state.records.eta), most(&state.plain.eta));
                state.tally.scaling.merge(Largest { plain, counted });
                if !replaces {
                    std::mem::swap(&mut state.records, &mut state.plain);
                }
            }
        }
        state.records.check()?;
        self.sets(state, block)?;
        let records = &state.records;
        for (i, &y) in block.y.iter().enumerate() {
            let class = (y as usize).min(state.sums.by_class.len() - 1);
            let of_class = &mut state.sums.by_class[class];
            of_class.eta.extend(&[records.eta[i]]);
            of_class.loss.extend(&[records.loss[i]]);
            of_class.label.add(records.label_eta[i], block.first_row + i as u64);
        }
        axpy(1.0, &records.information, &mut state.sums.information);
        let leaks = Leaks {
            eta: &records.eta,
            dfil: &records.dfil,
            loss: &records.loss,
            gradient_norm: &records.gradient_norm,
            attribute_eta: &records.attribute_eta,
            label_eta: &records.label_eta,
            label_secret: geometry.release().label_secret,
        };
        state.tally.add(block, &leaks, self.series, &self.compared);
        Ok(())
    }

    fn fits(&self, state: &SoftmaxMeasured) -> bool {
        let (geometry, sums) = (&*self.geometry, &state.sums);
        let (fit, count) = (geometry.fit(), geometry.attribute_count());
        let q = fit.coefficients();
        let label = if geometry.release().label_secret { fit.classes - 1 } else { 0 };
        let like = Tally::new(self.series, fit.n, (count, fit.width));
        state.tally.has_sizes(&like, self.series, self.compared.len())
            && sums.whole.has_sizes(q)
            && sums.groups.len() == self.series.groups()
            && sums.groups.iter().all(|set| set.has_sizes(q))
            && sums.by_class.len() == fit.classes
            && sums.over_all.is_some() == self.sums_attributes()
            && sums.over_all.as_ref().is_none_or(|sets| sets.has_sizes(count, q))
            && sums.information.len() == geometry.data_width() + label
    }
}

impl SoftmaxMeasure<'_> {
    /// Whether attributes over all records are summed: where that is not too much work.
    fn sums_attributes(&self) -> bool {
        let (geometry, fit) = (&*self.geometry, self.geometry.fit());
        fit.n as f64 * geometry.attribute_set_work() <= MOST_WORK
            && geometry.attribute_count() * fit.coefficients().pow(2) <= MOST_NUMBERS
    }

    fn sets(&self, state: &mut SoftmaxMeasured, block: &Block) -> Result<()> {
        self.geometry.add_to_set(block, None, &mut state.sums.whole);
        if let Some(sets) = &mut state.sums.over_all {
            self.geometry.add_to_attribute_sets(block, sets);
        }
        let expected = state.sums.groups.len();
        let mut rows_of = vec![vec![]; expected];
        for (i, &group) in block.group.iter().enumerate().filter(|_| expected > 0) {
            let shape = Error::Shape { subject: "the list of groups", actual: group as usize + 1, expected };
            rows_of.get_mut(group as usize).ok_or(shape)?.push(i);
        }
        for (set, rows) in state.sums.groups.iter_mut().zip(&rows_of).filter(|(_, rows)| !rows.is_empty()) {
            self.geometry.add_to_set(block, Some(rows), set);
        }
        Ok(())
    }
}
