//! The pass for the distribution of η alone.

use super::{Geometry, Records};
use crate::Result;
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass for the distribution of η of whole records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Eta<'a> {
    /// The model and its release.
    pub geometry: Cow<'a, Geometry>,
}

/// η so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EtaState {
    /// Their distribution.
    pub eta: Distribution,
    #[serde(skip)]
    records: Records,
}

impl<'a> Eta<'a> {
    /// η under a model and its release.
    pub fn new(geometry: &'a Geometry) -> Self {
        Self { geometry: Cow::Borrowed(geometry) }
    }
}

impl Merge for EtaState {
    fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
    }
}

impl Pass for Eta<'_> {
    const NAME: &'static str = "the distribution of η";
    type State = EtaState;

    fn start(&self) -> EtaState {
        EtaState::default()
    }

    fn step(&self, state: &mut EtaState, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        self.geometry.eta(block, &mut state.records);
        state.records.check()?;
        state.eta.extend(&state.records.eta);
        Ok(())
    }

    fn fits(&self, _: &EtaState) -> bool {
        true
    }
}
