//! The pass for the distribution of η alone.

use super::{SoftmaxGeometry, SoftmaxRecords};
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass for the distribution of η of whole records of a softmax model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxEta<'a> {
    /// The model and its release.
    pub geometry: Cow<'a, SoftmaxGeometry>,
    /// Whether what records do to the scaling of their columns is counted.
    pub counted: bool,
}

/// η so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SoftmaxEtaState {
    /// Their distribution.
    pub eta: Distribution,
    #[serde(skip)]
    records: SoftmaxRecords,
}

impl Merge for SoftmaxEtaState {
    fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
    }
}

impl Pass for SoftmaxEta<'_> {
    const NAME: &'static str = "the distribution of η of a softmax model";
    type State = SoftmaxEtaState;

    fn start(&self) -> SoftmaxEtaState {
        SoftmaxEtaState::default()
    }

    fn step(&self, state: &mut SoftmaxEtaState, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        match self.counted {
            true => self.geometry.counted(block, &mut state.records)?,
            false => self.geometry.records(block, &mut state.records)?,
        }
        state.records.check()?;
        state.eta.extend(&state.records.eta);
        Ok(())
    }

    fn fits(&self, _: &SoftmaxEtaState) -> bool {
        true
    }
}

impl SoftmaxRecords {
    /// Whether every η is a number.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where one is not.
    pub fn check(&self) -> Result<()> {
        match self.eta.iter().find(|eta| !eta.is_finite()) {
            None => Ok(()),
            Some(&value) => {
                let (subject, expected) =
                    ("the leakage of a record", "a finite number: is a column very large?");
                Err(Error::OutOfRange { subject, value, expected })
            }
        }
    }
}
