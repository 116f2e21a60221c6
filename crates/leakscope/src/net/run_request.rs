//! How a run goes, of a network or of a language model: how long, by which rule, with which clip and noise, what is kept of it.

use super::{Device, Precision, ReleaseRequest};
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_table::RecordsFormat;
use serde::{Deserialize, Serialize};

pub use leakscope_report::choice::Tracked;

/// What every run is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunRequest {
    /// Passes over the data.
    pub epochs: Option<f64>,
    /// Steps, instead.
    pub steps: Option<u64>,
    /// Probability of each record to be drawn in a step; absent: `batch` over the number of records, which is public then.
    /// Where it is given, `batch` is what the sum of gradients is divided by, and the number of records stays private.
    pub rate: Option<f64>,
    /// Learning rate.
    pub lr: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Adam instead of SGD.
    pub adam: bool,
    /// Clip and noise.
    pub release: ReleaseRequest,
    /// Instead of σ: the noise for which the whole run has this ε.
    pub epsilon: Option<f64>,
    /// δ of the privacy statement.
    pub delta: Option<f64>,
    /// Weight decay.
    pub weight_decay: f64,
    /// Whether what records give away is kept at every step, and of which.
    pub track: Option<Tracked>,
    /// Random probes of each trace that tracking keeps.
    pub probes: usize,
    /// The most that the run may cost a record, as ε: it drops out of further steps before it would cost more.
    pub filter_epsilon: Option<f64>,
    /// A checkpoint after every so many steps.
    pub checkpoint_every: Option<u64>,
    /// Whether to go on from the checkpoint in the folder.
    pub resume: bool,
    /// Seed of what is no secret: the initial weights, probes. In a run without noise also of its batches.
    pub seed: Option<u64>,
    /// Whether the noise follows from the seed too, so that the run can be repeated: it is not private then.
    pub not_private_noise_from_seed: bool,
    /// Format of the table of records.
    pub format: RecordsFormat,
    /// Numbers that the network computes with.
    pub precision: Precision,
    /// Where the network computes.
    pub device: Device,
    /// Whether the page names and shows no record.
    pub redact: bool,
}

impl Default for RunRequest {
    fn default() -> Self {
        Self {
            epochs: None,
            steps: None,
            rate: None,
            lr: 0.1,
            momentum: 0.9,
            adam: false,
            release: ReleaseRequest::default(),
            epsilon: None,
            delta: None,
            weight_decay: 0.0,
            track: None,
            probes: 4,
            filter_epsilon: None,
            checkpoint_every: None,
            resume: false,
            seed: None,
            not_private_noise_from_seed: false,
            format: RecordsFormat::default(),
            precision: Precision::default(),
            device: Device::default(),
            redact: false,
        }
    }
}

pub(crate) fn positive(flag: &str, value: f64) -> Result<()> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Failure::number(flag, numeral(value), "expected a positive number")),
    }
}

impl RunRequest {
    /// Whether there is noise.
    pub fn is_noisy(&self) -> bool {
        self.release.sigma.is_some() || self.epsilon.is_some()
    }

    /// Whether the noise is the system's: nobody can repeat it then.
    pub fn is_private(&self) -> bool {
        self.is_noisy() && !self.not_private_noise_from_seed
    }

    /// Whether the numbers make sense.
    pub(crate) fn check(&self) -> Result<()> {
        positive("lr", self.lr)?;
        if let Some(epochs) = self.epochs {
            positive("epochs", epochs)?;
        }
        if let Some(rate) = self.rate.filter(|rate| !(*rate > 0.0 && *rate <= 1.0)) {
            return Err(Failure::number("rate", numeral(rate), "expected above 0, at most 1"));
        }
        if let Some(epsilon) = self.filter_epsilon {
            positive("filter_epsilon", epsilon)?;
        }
        if self.not_private_noise_from_seed && !self.is_noisy() {
            let message = "there is no noise in this run: leave it out";
            return Err(Failure::option("not_private_noise_from_seed", message));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(Failure::number("momentum", self.momentum, "expected at least 0, below 1"));
        }
        if let Some(epsilon) = self.epsilon {
            positive("epsilon", epsilon)?;
        }
        if let Some(delta) = self.delta {
            if !(delta > 0.0 && delta < 1.0) {
                return Err(Failure::number("delta", numeral(delta), "expected between 0 and 1"));
            }
            if !self.is_noisy() {
                let message =
                    "without noise nothing is promised: give ⟨sigma⟩ or ⟨epsilon⟩ too, or leave it out";
                return Err(Failure::option("delta", message));
            }
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            let expected = "expected zero or a positive number";
            return Err(Failure::number("weight_decay", self.weight_decay, expected));
        }
        if self.steps.is_some() && self.epochs.is_some() {
            return Err(Failure::option("epochs", "⟨steps⟩ says how long already: give one of the two"));
        }
        if self.release.sigma.is_some() && self.epsilon.is_some() {
            return Err(Failure::option("epsilon", "⟨sigma⟩ is the noise already: give one of the two"));
        }
        if self.track.is_some() && self.probes == 0 {
            return Err(Failure::number("probes", 0, "expected at least 1"));
        }
        for (flag, value) in [("checkpoint_every", self.checkpoint_every), ("steps", self.steps)] {
            if value == Some(0) {
                return Err(Failure::number(flag, 0, "expected at least 1"));
            }
        }
        Ok(())
    }
}
