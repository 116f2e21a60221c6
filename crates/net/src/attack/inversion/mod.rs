//! Gradient inversion: the records whose gradient looks like the one that was seen (Geiping, Bauermeister, Dröge, Moeller
//! 2020; as in Mueller 2022).
//!
//! | file | what |
//! |---|---|
//! | `objective` | how far a gradient is from the one seen, and its derivative: `α v + β g` |
//! | `smooth` | total variation |
//! | `descent` | many records at once: passes, signed Adam, the box |
//! | `label` | labels read off the last layer |
//! | `first` | a first dense layer, inverted in one step |
//!
//! With v what was seen and `t = Σ s(‖gᵢ‖) gᵢ` what the guess would have released, every objective has a derivative
//! `u = α v + β t` by t, and that by a record is `J_gᵀ D u` with `D = s I + (s'/n) g gᵀ`: one adjoint pass in a direction that is
//! the sum of an array and of the record's own pair (MATHS §11). No gradient of a gradient is recorded.

mod descent;
mod first;
mod label;
mod objective;
mod smooth;

pub(crate) use descent::invert_generic;
pub use first::first_layer;
pub use label::recovered_labels;
pub use objective::Objective;
pub use smooth::total_variation;

use super::sight::Sight;
use crate::{
    Clip, Network, Real, Shape,
    error::{Error, Result, check},
    quality::Range,
};
use serde::{Deserialize, Serialize};

/// What to do about labels that are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownLabels {
    /// Read them off the gradient of the last layer
    #[default]
    Recover,
    /// Try each, and keep the one that fits best; for gradients of one record
    Try,
}

/// How records are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Inversion {
    /// What is made small.
    pub objective: Objective,
    /// How every record's gradient was clipped before it was seen.
    pub clip: Clip,
    /// Weight of the total variation; of no use to records that are no images.
    pub total_variation: f64,
    /// Steps.
    pub iterations: usize,
    /// Length of the first steps, in widths of the range. It falls to a tenth at 3/8, 5/8 and 7/8 of the steps.
    pub learning_rate: f64,
    /// Whether Adam is given the sign of the derivative alone, as published.
    pub signed: bool,
    /// How often to start anew; the guess of the least cost is kept.
    pub restarts: usize,
    /// Values that a record can have: guesses stay inside.
    pub range: Range,
    /// What to do about labels that are not known.
    pub labels: UnknownLabels,
    /// Seed of the starts.
    pub seed: u64,
}

impl Inversion {
    /// As published: cosine, total variation 1e-4, 4,000 steps of signed Adam from 0.1, one start.
    pub fn published(range: Range, seed: u64) -> Self {
        Self {
            objective: Objective::Cosine,
            clip: Clip::None,
            total_variation: 1e-4,
            iterations: 4000,
            learning_rate: 0.1,
            signed: true,
            restarts: 1,
            range,
            labels: UnknownLabels::Recover,
            seed,
        }
    }

    fn check<T: Real>(&self, net: &Network<T>) -> Result<()> {
        self.objective.check()?;
        self.clip.check()?;
        self.range.check()?;
        let rate = self.learning_rate;
        check(
            rate > 0.0 && rate.is_finite(),
            "the learning rate of the attack",
            rate,
            "positive and finite",
        )?;
        let weight = self.total_variation;
        check(weight >= 0.0 && weight.is_finite(), "the weight of the total variation", weight, "0 or more")?;
        check(self.iterations > 0, "the iterations of the attack", 0.0, "at least 1")?;
        check(self.restarts > 0, "the restarts of the attack", 0.0, "at least 1")?;
        match net.input() {
            Shape::Image(_) | Shape::Vector(_) => Ok(()),
            Shape::Sequence(_) | Shape::Tokens { .. } => {
                let reason = "records are sequences: inversion is of vectors and images".to_owned();
                Err(Error::Format { subject: "the network", reason })
            }
        }
    }
}

/// What was found for one gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconstruction {
    /// The records `(records, d)`.
    pub records: Vec<f64>,
    /// The labels that were known, recovered or tried, `(records, outputs)`.
    pub labels: Vec<f64>,
    /// The objective there, with the total variation.
    pub cost: f64,
    /// Cosine of its gradient and the one seen.
    pub cosine: f64,
    /// Which start it came from.
    pub restart: usize,
}

/// Reconstructs the records of every gradient. What is found for one does not depend on the others.
///
/// `watch` hears now and then how many steps of single gradients are done, and says whether to go on; where not, guesses
/// are those of the last step.
pub fn invert<T: Real>(
    net: &Network<T>,
    sights: &[Sight<T>],
    how: &Inversion,
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Reconstruction>> {
    how.check(net)?;
    sights.iter().try_for_each(|s| s.check(net))?;
    T::invert(net, sights, how, watch)
}
