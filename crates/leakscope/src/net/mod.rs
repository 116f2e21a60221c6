//! Networks: private training, and what their gradients give away.
//!
//! | module | what |
//! |---|---|
//! | [`train`] | a [`train::TrainRequest`] in, a run in a folder out |
//! | `inputs` | the records that a run reads |
//! | [`run_request`] | what every run is asked, of a network or a language model |
//! | `run` | the loop: steps, checkpoints, divergence, interruption |
//! | `resume` | going on from a checkpoint, as the run was started |
//! | `account` | a run that has ended → `training.json`, `records.*`, its page |
//! | [`audit`] | an [`audit::NetAuditRequest`] in, what is measured out |
//! | `config` | a request's numbers as the trainer takes them |
//! | [`device`] | where networks compute |
//! | [`attack`] | attacks: records from gradients |
//! | `measuring` | the measures of an audit, over records, another model, points |
//! | [`memory`], [`training`] | audit and training over arrays |
//! | `elements` | means of every value of a record |
//! | [`elsewhere`], [`tracked`] | what another framework measured, as the same documents |
//! | `exceeds` | how often points exceed training records, with its interval |
//! | `extremes` | where the largest of many estimates lies |
//! | `prior` | what an attacker with a prior can do (van Trees) |
//! | [`public`] | public records: statistics of batch norms, training before the run, what is frozen after it |
//! | `assemble` | measures → `audit.json`, pictures |
//! | [`table`], `attributes` | rows of a table as records, and what a network gives away of their attributes |
//! | `data` | images and labels from files, checked once; the formats are `leakscope_net::io` |
//! | `model` | networks by name or file, models in folders |

pub(crate) mod account;
mod assemble;
pub mod attack;
mod attributes;
pub mod audit;
pub(crate) mod config;
pub(crate) mod data;
pub mod device;
mod elements;
pub mod elsewhere;
mod exceeds;
mod extremes;
mod inputs;
mod measuring;
pub mod memory;
mod model;
mod notes;
mod prior;
pub mod public;
pub(crate) mod resume;
pub(crate) mod run;
pub mod run_request;
pub mod table;
pub mod tracked;
pub mod train;
pub mod training;

use crate::{Failure, Result};
use leakscope_net::Clip;
use leakscope_net::train::Optimizer;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub use device::Device;
pub use run::Plan;

pub use leakscope_report::choice::{ClipKind, Precision};

/// How gradients are clipped, and the noise.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Clip gradients at this norm, C.
    pub clip: Option<f64>,
    /// How they are clipped.
    pub clip_kind: Option<ClipKind>,
    /// Noise multiplier: the noise on the sum of gradients has standard deviation σC (σ where nothing is clipped).
    pub sigma: Option<f64>,
}

impl ReleaseRequest {
    /// The clip that was asked for; absent where nothing was said.
    pub(crate) fn clip(&self) -> Result<Option<Clip>> {
        let clip = match (self.clip_kind, self.clip) {
            (None, None) => return Ok(None),
            (Some(ClipKind::None), None) => Clip::None,
            (Some(ClipKind::None), Some(c)) => {
                return Err(Failure::number("clip", c, "⟨clip_kind=none⟩ clips nothing, leave one out"));
            }
            (Some(_), None) => {
                return Err(Failure::option("clip_kind", "give the bound too, for example ⟨clip=1⟩"));
            }
            (Some(ClipKind::Hard) | None, Some(bound)) => Clip::Hard { bound },
            (Some(ClipKind::Gelu), Some(bound)) => Clip::Gelu { bound },
        };
        clip.check().map_err(|_| Failure::number("clip", clip.unit(), "expected a positive number"))?;
        Ok(Some(clip))
    }

    pub(crate) fn sigma(&self) -> Result<Option<f64>> {
        match self.sigma {
            Some(s) if !(s > 0.0 && s.is_finite()) => {
                Err(Failure::number("sigma", s, "expected a positive number"))
            }
            other => Ok(other),
        }
    }
}

/// The name of a clip and its bound.
pub(crate) fn clip_facts(clip: Clip) -> (ClipKind, Option<f64>) {
    match clip {
        Clip::None => (ClipKind::None, None),
        Clip::Hard { bound } => (ClipKind::Hard, Some(bound)),
        Clip::Gelu { bound } => (ClipKind::Gelu, Some(bound)),
    }
}

impl From<leakscope_net::Error> for Failure {
    fn from(error: leakscope_net::Error) -> Self {
        match error {
            leakscope_net::Error::Core(core) => core.into(),
            other => Self::Message(other.to_string()),
        }
    }
}

/// An optimiser as documents have it.
fn optimizer_facts(optimizer: Optimizer) -> leakscope_report::net::Optimizer {
    match optimizer {
        Optimizer::Sgd { momentum } => leakscope_report::net::Optimizer::Sgd { momentum },
        Optimizer::Adam { .. } => leakscope_report::net::Optimizer::Adam,
    }
}

/// Writes a file whole or not at all, readable by its owner alone.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    leakscope_net::io::write_private(path, bytes)
        .map_err(|e| Failure::Message(format!("cannot write {}: {e}", path.display())))
}
