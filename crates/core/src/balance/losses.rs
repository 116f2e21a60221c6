//! η of every record without the factor ω of its own weight: what weights are divided by.

use super::Level;
use crate::fisher::noise::Noise;
use crate::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use crate::fisher::{Geometry, Records, Release};
use crate::glm::softmax::SoftmaxFit;
use crate::glm::{Fit, Minimiser};
use crate::pass::{Merge, Pass, Runner};
use crate::rows::{Block, Rows};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass for η of every row without the factor ω of its own weight: of the whole record where the geometry has no
/// attributes, else of its first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Losses<'a> {
    /// The model, its release, and the attribute that is balanced, if it is one.
    pub geometry: Cow<'a, Geometry>,
}

/// η of every row so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LossesState {
    /// In row order.
    pub eta: Vec<f64>,
    #[serde(skip)]
    records: Records,
    #[serde(skip)]
    unweighted: Block,
}

impl Merge for LossesState {
    fn merge(&mut self, later: Self) {
        self.eta.extend(later.eta);
    }
}

impl Pass for Losses<'_> {
    const NAME: &'static str = "the losses of records without their weights";
    type State = LossesState;

    fn start(&self) -> LossesState {
        LossesState::default()
    }

    fn step(&self, state: &mut LossesState, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let mut own = std::mem::take(&mut state.unweighted);
        let block = if block.weight.is_empty() {
            block
        } else {
            own.clone_from(block);
            own.weight.clear();
            &own
        };
        let records = &mut state.records;
        match self.geometry.attribute_count() {
            0 => {
                self.geometry.eta(block, records);
                state.eta.extend_from_slice(&records.eta);
            }
            count => {
                self.geometry.records(block, records);
                state.eta.extend(records.attribute_eta.iter().step_by(count));
            }
        }
        let n = block.len();
        state.unweighted = own;
        finite(&state.eta[state.eta.len() - n..])
    }

    fn fits(&self, _: &LossesState) -> bool {
        true
    }
}

/// η of every row at σ and level of `release`, without the factor ω of its own weight.
pub fn losses(rows: &(impl Runner + ?Sized), fit: &Fit, level: &Level, release: Release) -> Result<Vec<f64>> {
    losses_under(rows, fit, level, release, None)
}

/// [`losses`] under noise with covariance `σ²Σ`, Σ that of `shape`.
pub fn losses_under(
    rows: &(impl Runner + ?Sized),
    fit: &Fit,
    level: &Level,
    release: Release,
    shape: Option<&Noise>,
) -> Result<Vec<f64>> {
    let attributes = level.attributes();
    let geometry = match shape {
        Some(shape) => Geometry::under(fit, &attributes, release, shape)?,
        None => Geometry::new(fit, &attributes, release)?,
    };
    Ok(rows.run(&Losses { geometry: Cow::Owned(geometry) })?.eta)
}

/// [`losses_under`] of a model of either kind.
///
/// # Errors
/// As [`losses`].
pub fn losses_of(
    rows: &dyn Rows,
    fit: &Minimiser,
    level: &Level,
    release: Release,
    shape: Option<&Noise>,
) -> Result<Vec<f64>> {
    match fit {
        Minimiser::Glm(fit) => losses_under(rows, fit, level, release, shape),
        Minimiser::Softmax(fit) => losses_of_classes(rows, fit, level, release, shape),
    }
}

fn losses_of_classes(
    rows: &dyn Rows,
    fit: &SoftmaxFit,
    level: &Level,
    release: Release,
    shape: Option<&Noise>,
) -> Result<Vec<f64>> {
    let attributes = level.attributes();
    let geometry = match shape {
        Some(shape) => SoftmaxGeometry::under(fit, &attributes, release, shape)?,
        None => SoftmaxGeometry::new(fit, &attributes, release)?,
    };
    Ok(rows.run(&SoftmaxLosses { geometry: Cow::Owned(geometry) })?.eta)
}

/// [`Losses`] of a softmax model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxLosses<'a> {
    /// The model, its release, and the attribute that is balanced, if it is one.
    pub geometry: Cow<'a, SoftmaxGeometry>,
}

/// η of every row so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SoftmaxLossesState {
    /// In row order.
    pub eta: Vec<f64>,
    #[serde(skip)]
    records: SoftmaxRecords,
}

impl Merge for SoftmaxLossesState {
    fn merge(&mut self, later: Self) {
        self.eta.extend(later.eta);
    }
}

impl Pass for SoftmaxLosses<'_> {
    const NAME: &'static str = "the losses of records of a softmax model without their weights";
    type State = SoftmaxLossesState;

    fn start(&self) -> SoftmaxLossesState {
        SoftmaxLossesState::default()
    }

    fn step(&self, state: &mut SoftmaxLossesState, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let SoftmaxLossesState { eta, records } = state;
        let unweighted = Block { weight: vec![], ..block.clone() };
        self.geometry.records(&unweighted, records)?;
        let first = eta.len();
        match self.geometry.attribute_count() {
            0 => eta.extend_from_slice(&records.eta),
            count => eta.extend(records.attribute_eta.iter().step_by(count)),
        }
        finite(&eta[first..])
    }

    fn fits(&self, _: &SoftmaxLossesState) -> bool {
        true
    }
}

fn finite(eta: &[f64]) -> Result<()> {
    match eta.iter().find(|e| !e.is_finite()) {
        Some(&value) => Err(Error::OutOfRange { subject: "η of a record", value, expected: "a finite number" }),
        None => Ok(()),
    }
}
