//! Attribute inference against a generalised linear model: what attackers of the papers achieve in trials.
//!
//! The model is released as `w' = w* + σb`, `b ~ N(0, I)`; one attribute of a record is secret, one of M candidates.
//!
//! | attack | knows | guesses |
//! |---|---|---|
//! | [`Attack::WhiteBox`] | all other values, the training, w' | `argmin_m ‖w' − w_m‖` (Hannun eq. 30) |
//! | [`Attack::WhiteBoxPrior`] | and the prior p | `argmin_m ‖w' − w_m‖²/2σ² − log p_m` (Guo A.3) |
//! | [`Attack::BlackBox`] | the record's other values, p, predictions and their errors | `argmax_m p_m π(φ(w', x_m), y)` (Hannun eq. 31) |
//! | [`Attack::Informed`] | all *other records*, w' | the record that makes w' stationary, then the nearest candidate (Balle) |
//! | baseline | p | `argmax_m p_m` |
//!
//! With `Δ_im = w_m − w*` (see [`whitebox`](self)), `‖w' − w_m‖² = ‖Δ‖² − 2σ b·Δ + const`: all records, candidates, trials and
//! noise scales come out of one product `Δ·B`. Where the noise has a shape ([`Options::shape`], `w' = w* + σFb`, `Σ = FFᵀ`), attackers
//! measure distance by `Σ⁻¹`: the same with `F⁻¹Δ` in place of Δ. All records of a trial share one noise vector, so they are not
//! independent and every confidence interval is over trials. Results are [`Observed`]: evidence, never a guarantee.

mod game;
mod refits;
mod secret;
mod softmax;
mod tally;
mod whitebox;

pub use refits::{
    Deltas, Refits, RemovalDistances, Removals, candidate_models, for_each_record, refits_of_block,
    removal_distances,
};
pub use secret::Secret;
pub use softmax::{attack_classes, for_each_record_of_classes};
pub use tally::student_975;

use crate::claim::Observed;
use crate::error::Setting;
use crate::fisher::noise::Noise;
use crate::glm::{Family, Fit};
use crate::random::Seeded;
use crate::rows::Rows;
use crate::{Error, Result};
use game::Game;
use serde::{Deserialize, Serialize};

/// An attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// The candidate whose refitted model is nearest
    WhiteBox,
    /// The same, weighed by how frequent values are
    WhiteBoxPrior,
    /// The candidate that explains the label best through predictions alone
    BlackBox,
    /// The record solved from the stationarity condition
    Informed,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::WhiteBox, Self::WhiteBoxPrior, Self::BlackBox, Self::Informed];

    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::WhiteBox => "white-box",
            Self::WhiteBoxPrior => "white-box-prior",
            Self::BlackBox => "black-box",
            Self::Informed => "informed",
        }
    }
}

/// Which attacks are played, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The attackers.
    pub attacks: Vec<Attack>,
    /// Noise scales σ.
    pub sigmas: Vec<f64>,
    /// The noise at σ = 1, known to the attackers; `N(0, I)` without one.
    pub shape: Option<Noise>,
    /// Noise vectors drawn; the same ones serve every σ.
    pub trials: usize,
    /// Seed of the noise.
    pub seed: u64,
    /// Whether the target is two classes: the black box then sees predicted classes and the confusion matrix.
    pub two_class: bool,
}

impl Options {
    /// Whether any attacker needs models with candidates in place.
    fn white_box(&self) -> bool {
        let needs = |attack: &Attack| match attack {
            Attack::WhiteBox | Attack::WhiteBoxPrior => true,
            Attack::BlackBox | Attack::Informed => false,
        };
        self.attacks.iter().any(needs)
    }
}

/// What one attacker achieved at one noise scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The attacker.
    pub attack: Attack,
    /// σ.
    pub sigma: f64,
    /// Share of records whose secret was guessed.
    pub accuracy: Observed,
    /// `(accuracy − p*)/(1 − p*)` (Guo eq. 1).
    pub advantage: Observed,
}

/// What the white box achieved at one noise scale on the records of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartOutcome {
    /// σ.
    pub sigma: f64,
    /// Index of the part.
    pub part: usize,
    /// Records in it that were attacked.
    pub records: u64,
    /// Share of them whose secret was guessed.
    pub accuracy: Observed,
}

/// What all attackers achieved.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcomes {
    /// By attacker and noise scale.
    pub results: Vec<Outcome>,
    /// The white box by part of the records (say, deciles of η); empty without parts.
    pub by_part: Vec<PartOutcome>,
    /// Share of records for which the most probable candidate is right: what a guess without the model achieves.
    pub baseline: f64,
    /// Largest prior probability p*.
    pub prior_max: f64,
    /// Records attacked.
    pub records: u64,
    /// Records whose value is none of the candidates: not attacked.
    pub left_out: u64,
}

/// Plays the attacks on every record of `rows`, whose minimiser `fit` must be.
///
/// `parts` cuts the records for [`Outcomes::by_part`]: an index per row, or empty. Memory is a few blocks for linear
/// regression; other families also keep the encoded rows.
///
/// # Errors
/// [`Error::Setting`] for noise scales that are not positive and for no trials; [`Error::OutOfRange`] for an informed
/// adversary without an intercept to scale the record by (other than linear regression); [`Error::NoConvergence`] where a
/// candidate has no model.
pub fn attack(
    rows: &dyn Rows,
    fit: &Fit,
    secret: &Secret,
    options: &Options,
    parts: &[u8],
) -> Result<Outcomes> {
    options.check(fit)?;
    secret.check(rows.width())?;
    if !parts.is_empty() && parts.len() as u64 != rows.len() {
        let (actual, expected) = (parts.len(), rows.len() as usize);
        return Err(Error::Shape { subject: "the parts of the records", actual, expected });
    }
    let (p, trials) = (rows.width(), options.trials);
    let noise = Seeded::new(options.seed).normals(p * trials);
    let game = Game::new(rows, fit, secret, options, noise, parts)?;
    Ok(game.play(rows)?.outcomes(options, secret))
}

impl Options {
    /// Checks what does not depend on the kind of model; noise is on `free` coordinates.
    fn check_noise(&self, free: usize) -> Result<()> {
        if let Some(&value) = self.sigmas.iter().find(|s| !(**s > 0.0 && s.is_finite())) {
            return Err(Error::Setting { setting: Setting::Sigma, value, expected: "a positive number" });
        }
        Setting::Trials.in_range(self.trials as f64, self.trials > 0, "at least 1")?;
        match self.shape.as_ref().filter(|shape| shape.len() != free) {
            Some(shape) => Err(Error::Shape { subject: "the noise", actual: shape.len(), expected: free }),
            None => Ok(()),
        }
    }

    fn check(&self, fit: &Fit) -> Result<()> {
        self.check_noise(fit.w.len())?;
        let scaled = fit.penalty.intercept || fit.family == Family::Linear;
        if self.attacks.contains(&Attack::Informed) && !scaled {
            let expected = "a model with an intercept, or linear regression";
            return Err(Error::OutOfRange { subject: "the informed adversary", value: 0.0, expected });
        }
        Ok(())
    }
}
