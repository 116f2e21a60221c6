//! The one pass that measures: leakage of every record, attribute, group and the whole, and what a page needs of them.
//!
//! Nothing here has a name: series, attributes and rows are numbers, and whoever knows the table names them. The
//! leakage of the records of the last block stays in the state ([`Measured::last`]), for whoever writes a table of
//! records while the pass runs.

mod collect;
mod columns;
mod counting;
mod score;
mod softmax;
mod softmax_score;
mod tally;

pub use collect::{Extreme, Extremes, Point, Sample};
pub use columns::{ColumnDistributions, ColumnValues, Distributions, Values};
pub use counting::{
    CountedAttribute, CountedAttributeState, CountedEta, CountedEtaState, CountedModel, Counting, Largest,
    records,
};
pub use score::{Score, Scores};
pub use softmax::{OfClass, SoftmaxMeasure, SoftmaxMeasured, SoftmaxSums};
pub use softmax_score::{SoftmaxScore, SoftmaxScores};
pub use tally::{AttributeTotals, LabelTotals, Leaks, Spread, Tally};

use crate::fisher::scaling::CountedRecords;
use crate::fisher::{Geometry, Records, SetSums};
use crate::pass::{Merge, Pass, Runner};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Records kept at either end of η.
pub const EXTREMES: usize = 100;

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
    /// The classes of the target, coded from 0.
    Classes {
        /// How many there are.
        classes: usize,
    },
    /// Nothing: all records are one series.
    All,
}

impl Series {
    /// How many series there are.
    pub fn count(self) -> usize {
        match self {
            Self::Group { groups } => groups,
            Self::Class => 2,
            Self::Classes { classes } => classes,
            Self::All => 1,
        }
    }

    /// Index of the series of row `i`. Classes are coded 0/1 or −1/1, which both read as `y > 0`.
    pub fn index(self, block: &Block, i: usize) -> u32 {
        match self {
            Self::Group { .. } => block.group.get(i).copied().unwrap_or(0),
            Self::Class => u32::from(block.y[i] > 0.0),
            Self::Classes { classes } => (block.y[i] as u32).min(classes.saturating_sub(1) as u32),
            Self::All => 0,
        }
    }

    fn groups(self) -> usize {
        match self {
            Self::Group { groups } => groups,
            Self::Class | Self::Classes { .. } | Self::All => 0,
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

/// What a pass over the records found, at the geometry's noise; what does not depend on the kind of model is its [`Tally`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    tally: Tally,
    /// All records as one set.
    pub whole: SetSums,
    /// Sums by group; empty without groups.
    pub groups: Vec<SetSums>,
    #[serde(skip)]
    scratch: Scratch,
}

impl std::ops::Deref for Measured {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        &self.tally
    }
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    records: Records,
    counted: CountedRecords,
    label_eta: Vec<f64>,
    rows_of: Vec<Vec<usize>>,
}

impl Measured {
    /// Leakage of the records of the last block that was added.
    pub fn last(&self) -> &Records {
        &self.scratch.records
    }

    /// What does not depend on the kind of model, and the sums of all records and of groups.
    pub fn into_parts(self) -> (Tally, SetSums, Vec<SetSums>) {
        (self.tally, self.whole, self.groups)
    }
}

impl Merge for Measured {
    fn merge(&mut self, later: Self) {
        self.tally.merge(later.tally);
        self.whole.merge(&later.whole);
        self.groups.iter_mut().zip(&later.groups).for_each(|(a, b)| a.merge(b));
    }
}

/// Measures every record.
pub fn measure(rows: &(impl Runner + ?Sized), pass: &Measure<'_>) -> Result<Measured> {
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
            let shape = Error::Shape { subject: "the list of groups", actual: group as usize + 1, expected };
            of_group.ok_or(shape)?.push(i);
        }
        for (set, rows) in state.groups.iter_mut().zip(&*rows_of).filter(|(_, rows)| !rows.is_empty()) {
            geometry.add_to_set(block, records, Some(rows), set);
        }
        Ok(())
    }
}

impl Pass for Measure<'_> {
    const NAME: &'static str = "the leakage of records";
    type State = Measured;

    fn start(&self) -> Measured {
        let p = self.geometry.fit().w.len();
        Measured {
            tally: Tally::new(self.series, self.geometry.fit().n, (self.geometry.attribute_count(), p)),
            whole: SetSums::new(p, true),
            groups: vec![SetSums::new(p, false); self.series.groups()],
            scratch: Scratch::default(),
        }
    }

    fn step(&self, state: &mut Measured, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let counting = self.counting.as_deref();
        let Scratch { records: plain, counted, .. } = &mut state.scratch;
        let largest = records(&self.geometry, counting, block, (plain, counted))?;
        state.tally.scaling.merge(largest);
        self.sets(state, block)?;
        let Scratch { records, label_eta, .. } = &mut state.scratch;
        label_eta.clear();
        label_eta.extend((0..block.len()).map(|i| self.geometry.label_eta(records, i)));
        let leaks = Leaks {
            eta: &records.eta,
            dfil: &records.dfil,
            loss: &records.loss,
            gradient_norm: &records.gradient_norm,
            attribute_eta: &records.attribute_eta,
            label_eta,
            label_secret: self.geometry.release().label_secret,
        };
        state.tally.add(block, &leaks, self.series, &self.compared);
        Ok(())
    }

    fn fits(&self, state: &Measured) -> bool {
        let p = self.geometry.fit().w.len();
        let like = Tally::new(self.series, self.geometry.fit().n, (self.geometry.attribute_count(), p));
        state.tally.has_sizes(&like, self.series, self.compared.len())
            && state.whole.has_sizes(p, true)
            && state.groups.len() == self.series.groups()
            && state.groups.iter().all(|set| set.has_sizes(p, false))
    }
}
