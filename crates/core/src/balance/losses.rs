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
pub struct Losses<'a, G: Clone = Geometry> {
    /// The model, its release, and the attribute that is balanced, if it is one.
    pub geometry: Cow<'a, G>,
}

/// [`Losses`] of a softmax model.
pub type SoftmaxLosses<'a> = Losses<'a, SoftmaxGeometry>;

/// η of every row so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LossesState<R> {
    /// In row order.
    pub eta: Vec<f64>,
    #[serde(skip)]
    records: R,
    #[serde(skip)]
    unweighted: Block,
}

impl<R> Merge for LossesState<R> {
    fn merge(&mut self, later: Self) {
        self.eta.extend(later.eta);
    }
}

impl<R: Default> LossesState<R> {
    /// Adds what `eta` appends for a block, as if all its weights were one.
    fn add(
        &mut self,
        block: &Block,
        eta: impl FnOnce(&Block, &mut R, &mut Vec<f64>) -> Result<()>,
    ) -> Result<()> {
        let first = self.eta.len();
        if block.weight.is_empty() {
            eta(block, &mut self.records, &mut self.eta)?;
        } else {
            self.unweighted.clone_from(block);
            self.unweighted.weight.clear();
            eta(&self.unweighted, &mut self.records, &mut self.eta)?;
        }
        match self.eta[first..].iter().find(|e| !e.is_finite()) {
            Some(&value) => {
                Err(Error::OutOfRange { subject: "η of a record", value, expected: "a finite number" })
            }
            None => Ok(()),
        }
    }
}

impl Pass for Losses<'_> {
    const NAME: &'static str = "the losses of records without their weights";
    type State = LossesState<Records>;

    fn start(&self) -> Self::State {
        LossesState::default()
    }

    fn step(&self, state: &mut Self::State, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        state.add(block, |block, records, eta| {
            match self.geometry.attribute_count() {
                0 => {
                    self.geometry.eta(block, records);
                    eta.extend_from_slice(&records.eta);
                }
                count => {
                    self.geometry.records(block, records);
                    eta.extend(records.attribute_eta.iter().step_by(count));
                }
            }
            Ok(())
        })
    }

    fn fits(&self, _: &Self::State) -> bool {
        true
    }
}

impl Pass for SoftmaxLosses<'_> {
    const NAME: &'static str = "the losses of records of a softmax model without their weights";
    type State = LossesState<SoftmaxRecords>;

    fn start(&self) -> Self::State {
        LossesState::default()
    }

    fn step(&self, state: &mut Self::State, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        state.add(block, |block, records, eta| {
            self.geometry.records(block, records)?;
            match self.geometry.attribute_count() {
                0 => eta.extend_from_slice(&records.eta),
                count => eta.extend(records.attribute_eta.iter().step_by(count)),
            }
            Ok(())
        })
    }

    fn fits(&self, _: &Self::State) -> bool {
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
    let pass: Losses<'_> = Losses { geometry: Cow::Owned(geometry) };
    Ok(rows.run(&pass)?.eta)
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
