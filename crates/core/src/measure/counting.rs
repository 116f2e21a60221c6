//! Measuring with the scaling of columns counted, or beside what it adds.

use crate::fisher::scaling::{Counted, CountedRecords, Depth};
use crate::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use crate::fisher::{Geometry, Records};
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A model whose columns are scaled by their own data: its counted leakage is measured beside the plain one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counting {
    /// The model, in the units of the rows.
    pub counted: Counted,
    /// How η of whole records is counted.
    pub depth: Depth,
    /// Whether records and attributes are measured by it; otherwise only the largest η is kept.
    pub replaces: bool,
}

/// Largest η of a record with the scaling taken as given, and counted; zero where it was not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Largest {
    /// As given.
    pub plain: f64,
    /// Counted.
    pub counted: f64,
}

impl Largest {
    pub(super) fn merge(&mut self, later: Self) {
        self.plain = self.plain.max(later.plain);
        self.counted = self.counted.max(later.counted);
    }
}

/// Leakage of every record of a block, as it is to be measured, and the largest η either way.
///
/// # Errors
/// [`crate::Error::Overflow`] where a record's leakage is no finite number.
pub fn records(
    geometry: &Geometry,
    counting: Option<&Counting>,
    block: &Block,
    (records, scratch): (&mut Records, &mut CountedRecords),
) -> Result<Largest> {
    let Some(counting) = counting else {
        geometry.records(block, records);
        records.check()?;
        return Ok(Largest::default());
    };
    counting.counted.records(block, counting.depth, scratch)?;
    scratch.plain.check()?;
    let most = |eta: &[f64]| eta.iter().copied().fold(0.0, f64::max);
    let largest = Largest { plain: most(&scratch.plain.eta), counted: most(&scratch.eta) };
    std::mem::swap(records, &mut scratch.plain);
    if counting.replaces {
        std::mem::swap(&mut records.eta, &mut scratch.eta);
        std::mem::swap(&mut records.dfil, &mut scratch.dfil);
        std::mem::swap(&mut records.attribute_eta, &mut scratch.attribute_eta);
    }
    Ok(largest)
}

/// The pass for the distribution of η of whole records, with the scaling of columns counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedEta<'a> {
    /// The model and its release, with the scaling counted.
    pub counting: Cow<'a, Counting>,
}

/// η so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CountedEtaState {
    /// Their distribution.
    pub eta: Distribution,
    #[serde(skip)]
    scratch: (Records, CountedRecords),
}

impl Merge for CountedEtaState {
    fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
    }
}

impl Pass for CountedEta<'_> {
    const NAME: &'static str = "the distribution of η with the scaling counted";
    type State = CountedEtaState;

    fn start(&self) -> CountedEtaState {
        CountedEtaState::default()
    }

    fn step(&self, state: &mut CountedEtaState, block: &Block) -> Result<()> {
        let (geometry, (plain, counted)) = (self.counting.counted.geometry(), &mut state.scratch);
        geometry.check_width(block)?;
        records(geometry, Some(&self.counting), block, (plain, counted))?;
        state.eta.extend(&plain.eta);
        Ok(())
    }

    fn fits(&self, _: &CountedEtaState) -> bool {
        true
    }
}

/// A model of either kind with the scaling of its columns counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum CountedModel {
    /// One vector of coefficients.
    Glm(Box<Counted>),
    /// One for each class, with its units ([`SoftmaxGeometry::with_units`]).
    Softmax(Box<SoftmaxGeometry>),
}

/// The pass for η of one attribute of every row, with the scaling of columns counted: the first that the model was prepared for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedAttribute<'a> {
    /// The model and its release.
    pub model: Cow<'a, CountedModel>,
}

/// η of every row so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CountedAttributeState {
    /// In row order.
    pub eta: Vec<f64>,
    #[serde(skip)]
    scratch: (CountedRecords, SoftmaxRecords),
}

impl Merge for CountedAttributeState {
    fn merge(&mut self, later: Self) {
        self.eta.extend(later.eta);
    }
}

impl Pass for CountedAttribute<'_> {
    const NAME: &'static str = "η of an attribute with the scaling counted";
    type State = CountedAttributeState;

    fn start(&self) -> CountedAttributeState {
        CountedAttributeState::default()
    }

    fn step(&self, state: &mut CountedAttributeState, block: &Block) -> Result<()> {
        let CountedAttributeState { eta, scratch: (of_one, of_classes) } = state;
        let (first, etas, count) = (
            eta.len(),
            match &*self.model {
                CountedModel::Glm(counted) => {
                    counted.geometry().check_width(block)?;
                    // Whole records are not asked for, attributes are exact at either depth.
                    counted.records(block, Depth::Bounded, of_one)?;
                    &of_one.attribute_eta
                }
                CountedModel::Softmax(geometry) => {
                    geometry.check_width(block)?;
                    geometry.counted(block, of_classes)?;
                    &of_classes.attribute_eta
                }
            },
            block.len(),
        );
        let attributes = etas.len().checked_div(count).unwrap_or(0).max(1);
        eta.extend(etas.iter().step_by(attributes));
        match eta[first..].iter().find(|e| !e.is_finite()) {
            Some(&value) => {
                let expected = "a finite number: is a column very large?";
                Err(Error::OutOfRange { subject: "the leakage of a record", value, expected })
            }
            None => Ok(()),
        }
    }

    fn fits(&self, _: &CountedAttributeState) -> bool {
        true
    }
}
