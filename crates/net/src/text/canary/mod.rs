//! The extraction game of Guo et al. (2022, §6.3): a model is fine-tuned in private on one text, and whoever sees it guesses
//! the secret that the text ends with.
//!
//! | file | what it holds |
//! |---|---|
//! | `last` | the output layer alone is trained: candidates in closed form, every attack exact |
//! | `all` | all parameters are trained: candidates from their gradients |
//! | `pattern` | candidates from a pattern: dates, card numbers |
//!
//! The secret is one of M continuations of a public prompt. A step releases `clip(g) + N(0, (σC)²I)` of the loss of the whole
//! text, and the parameters move against it. The attacker knows prompt, candidates, prior, clip, noise and learning rate.

mod all;
mod last;
pub mod pattern;

pub use all::AllLayers;
pub use last::{GameOutcome, LastLayer};

use crate::{Error, Result, error::check};
use leakscope_core::bound::{
    Prior,
    optimal::Success,
    steps::{OverSteps, over_steps},
};
use std::collections::HashSet;

/// A text with a secret at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    prompt: Vec<u32>,
    candidates: Vec<Vec<u32>>,
}

impl Canary {
    /// A prompt and the ways it may go on, in tokens.
    ///
    /// # Errors
    /// An empty prompt, fewer than two candidates, an empty one, or two that are the same.
    pub fn new(prompt: Vec<u32>, candidates: Vec<Vec<u32>>) -> Result<Self> {
        let bad = |reason: String| Err(Error::Format { subject: "the canary", reason });
        if prompt.is_empty() {
            return bad("the prompt has no token: give a text before the secret".into());
        }
        check(candidates.len() >= 2, "the number of candidates", candidates.len() as f64, "at least 2")?;
        let mut seen = HashSet::new();
        for (i, candidate) in candidates.iter().enumerate() {
            if candidate.is_empty() {
                return bad(format!("candidate {i} has no token"));
            }
            if !seen.insert(candidate) {
                return bad(format!("candidate {i} has the tokens of another one: name each once"));
            }
        }
        Ok(Self { prompt, candidates })
    }

    /// The prompt.
    pub fn prompt(&self) -> &[u32] {
        &self.prompt
    }

    /// The candidates.
    pub fn candidates(&self) -> &[Vec<u32>] {
        &self.candidates
    }

    /// The whole text of a candidate.
    pub fn text(&self, candidate: usize) -> Vec<u32> {
        [&self.prompt[..], &self.candidates[candidate]].concat()
    }
}

/// How the model is fine-tuned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FineTuning {
    /// C, the norm that gradients are clipped to.
    pub clip: f64,
    /// How far the parameters move against what a step releases.
    pub learning_rate: f64,
}

impl FineTuning {
    fn check(self) -> Result<()> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        check(positive(self.clip), "the clipping bound C", self.clip, "positive and finite")?;
        check(positive(self.learning_rate), "the learning rate", self.learning_rate, "positive and finite")
    }
}

/// Noise and length of a game, and how often it is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// Noise multiplier: what a step releases has noise of standard deviation σC.
    pub sigma: f64,
    /// Steps of the fine-tuning.
    pub steps: u64,
    /// Games, each with a secret and noise of its own.
    pub trials: u64,
    /// Seed of secrets and noise.
    pub seed: u64,
}

impl Rounds {
    fn check(self) -> Result<()> {
        check(self.sigma > 0.0 && self.sigma.is_finite(), "sigma", self.sigma, "positive and finite")?;
        check(self.steps >= 1, "the number of steps", self.steps as f64, "at least 1")?;
        check(self.trials >= 1, "the number of trials", self.trials as f64, "at least 1")
    }
}

/// What the attacks achieved in some games; adds up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Played {
    /// Games.
    pub trials: u64,
    /// Right guesses of the candidate whose log-likelihood rose most (the attack of the paper).
    pub difference: u64,
    /// The attacker who saw every step and guesses the likeliest candidate; absent where it was not played.
    pub optimal: Option<Success>,
}

impl Played {
    fn merged(mut self, other: Self) -> Self {
        self.trials += other.trials;
        self.difference += other.difference;
        self.optimal = match (self.optimal, other.optimal) {
            (Some(mut a), Some(b)) => {
                a.merge(&b);
                Some(a)
            }
            (a, b) => a.or(b),
        };
        self
    }
}

/// Moves of the centre, at most.
const MOVES: usize = 8;

/// The bound around a centre of the candidates: at the first step they are as far from their weighted mean as `distances`
/// says, at each later one no further than `later` from some reference; the weights start with the prior and follow the pull
/// of the candidates as long as that helps. Noise is `sigma` times C.
///
/// # Guarantee
/// No attacker who sees every step succeeds more often: any centre is valid.
///
/// # Errors
/// Those of `distances`, and bad settings.
pub fn around_centre(
    prior: &Prior,
    p: &[f64],
    distances: impl Fn(&[f64]) -> Result<Vec<f64>>,
    later: f64,
    (steps, noise): (u64, f64),
) -> Result<f64> {
    let at = |weights: &[f64]| -> Result<OverSteps> {
        Ok(over_steps(prior, &distances(weights)?, later, steps, noise)?)
    };
    let mut best = at(p)?;
    for _ in 0..MOVES {
        if !best.pull.iter().any(|w| *w > 0.0) {
            break;
        }
        let next = at(&best.pull)?;
        let gain = best.success - next.success;
        if gain > 0.0 {
            best = next;
        }
        if gain < 1e-4 * best.success {
            break;
        }
    }
    Ok(best.success)
}

/// The place of the largest value.
fn largest(values: impl IntoIterator<Item = f64>) -> usize {
    let all = values.into_iter().enumerate();
    all.fold((0, f64::NEG_INFINITY), |best, now| if now.1 > best.1 { now } else { best }).0
}

/// A candidate drawn by its probability; `below[m]` is the sum of those up to m.
fn draw(below: &[f64], u: f64) -> usize {
    below
        .partition_point(|b| *b <= u * below.last().copied().unwrap_or(1.0))
        .min(below.len().saturating_sub(1))
}

fn sums(p: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    p.iter().map(|x| (sum += x, sum).1).collect()
}
