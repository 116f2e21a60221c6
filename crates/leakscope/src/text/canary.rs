//! Can a secret be pulled out of a model that was fine-tuned on a text with it? Request in, [`Canary`] out.

use super::candidates::{Candidates, candidates};
use super::model::{described, language_model, tokenizer};
use crate::net::Device;
use crate::{Failure, Result};
use leakscope_core::bound::{Prior, fano, testing};
use leakscope_core::claim::{Bound, Observed};
use leakscope_core::error::numeral;
use leakscope_net::text::canary::{self as game, AllLayers, FineTuning, LastLayer, Rounds, around_centre};
use leakscope_net::text::{LanguageModel, Trained, Tuned};
use leakscope_report::canary::{
    Canary, Guesser, Limit, LimitKind, Played, Point, SCHEMA, Secret, Source, Variant, figures,
};
use leakscope_table::{Hooks, Stage};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

pub use leakscope_report::canary::PriorKind;

/// The extraction game of Guo et al. (2022, §6.3), as a user asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CanaryRequest {
    /// A folder of transformers (GPT-2, Llama) or a llama2.c checkpoint.
    pub model: PathBuf,
    /// Its tokeniser, where it is not in the folder.
    pub tokenizer: Option<PathBuf>,
    /// The text before the secret.
    pub prompt: String,
    /// Tokens of the secret, where no candidates are named: 1 is every token of the vocabulary.
    pub secret_tokens: usize,
    /// A file of candidates, one a line.
    pub candidates: Option<PathBuf>,
    /// Candidates in memory.
    pub list: Vec<String>,
    /// Candidates as a pattern (`leakscope_net::text::canary::pattern`).
    pub secret_pattern: Option<String>,
    /// How likely each is.
    pub prior: PriorKind,
    /// C.
    pub clip: f64,
    /// Learning rate.
    pub lr: f64,
    /// Noise multipliers; none: eight, so that 2T/σ² is 1 to 1000.
    pub sigmas: Vec<f64>,
    /// Numbers of steps.
    pub steps: Vec<u64>,
    /// What is trained.
    pub layers: Vec<Trained>,
    /// Rank of adapters.
    pub rank: usize,
    /// Games played at every point; 0: bounds alone.
    pub trials: u64,
    /// Seed of secrets and noise; drawn where there is none.
    pub seed: Option<u64>,
    /// Where the model computes.
    pub device: Device,
}

impl Default for CanaryRequest {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            tokenizer: None,
            prompt: "John Smith's credit card number is".into(),
            secret_tokens: 1,
            candidates: None,
            list: vec![],
            secret_pattern: None,
            prior: PriorKind::Uniform,
            clip: 1.0,
            lr: 0.1,
            sigmas: vec![],
            steps: vec![1, 2, 5],
            layers: vec![Trained::Last],
            rank: 8,
            trials: 1_000,
            seed: None,
            device: Device::default(),
        }
    }
}

/// 2T/σ² where no noise is named.
const RDP: [f64; 8] = [1.0, 3.0, 6.0, 15.0, 40.0, 100.0, 300.0, 1000.0];
/// More points than this are a mistake.
const MOST_POINTS: usize = 10_000;

impl CanaryRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        let positive = |name: &str, x: f64| match x > 0.0 && x.is_finite() {
            true => Ok(()),
            false => Err(Failure::number(name, numeral(x), "expected a positive number")),
        };
        positive("clip", self.clip)?;
        positive("lr", self.lr)?;
        self.sigmas.iter().try_for_each(|s| positive("sigmas", *s))?;
        if self.prompt.trim().is_empty() {
            return Err(Failure::option("prompt", "empty: give the text before the secret"));
        }
        if self.steps.is_empty() || self.steps.contains(&0) {
            return Err(Failure::option("steps", "expected numbers of steps from 1"));
        }
        if self.layers.is_empty() {
            return Err(Failure::option("layers", "expected last, all, adapters or several"));
        }
        if self.rank == 0 {
            return Err(Failure::number("rank", 0, "expected at least 1"));
        }
        let points = self.steps.len() * self.layers.len() * self.sigmas.len().max(RDP.len());
        if points > MOST_POINTS {
            let message =
                format!("{points} combinations with ⟨steps⟩ and ⟨layers⟩: expected at most {MOST_POINTS}");
            return Err(Failure::option("sigmas", message));
        }
        Ok(())
    }

    fn noises(&self, steps: u64) -> Vec<f64> {
        let mut all = match self.sigmas.is_empty() {
            true => RDP.iter().map(|rdp| (2.0 * steps as f64 / rdp).sqrt()).collect(),
            false => self.sigmas.clone(),
        };
        all.sort_by(|a, b| b.total_cmp(a));
        all.dedup();
        all
    }
}

/// A part of the model that is trained, with the game on it.
enum Game<'a> {
    Last(&'a LastLayer),
    All(Box<AllLayers<f32>>),
}

/// What all points share.
struct Setting<'a> {
    request: &'a CanaryRequest,
    prior: Prior,
    p: Vec<f64>,
    seed: u64,
    hooks: &'a Hooks,
}

/// Plays the game and bounds it.
///
/// # Errors
/// Options that make no sense, models, tokenisers and candidates that cannot be read.
pub fn run(request: &CanaryRequest, hooks: &Hooks) -> Result<Canary> {
    request.check()?;
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let model: LanguageModel<f32> = language_model(&request.model, Trained::Last, request.device.backend()?)?;
    let (text, source, mut warnings) = text(request, &model, seed)?;
    let clock = Instant::now();
    let tuning = FineTuning { clip: request.clip, learning_rate: request.lr };
    let last = LastLayer::new(&model, &text, tuning)?;
    let (prior, p) = prior(request.prior, &last)?;
    let setting = Setting { request, prior, p, seed, hooks };
    let (mut variants, mut points) = (vec![], vec![]);
    let mut layers = request.layers.clone();
    layers.dedup();
    for (done, &trained) in layers.iter().enumerate() {
        let game = match trained {
            Trained::Last => Game::Last(&last),
            Trained::All | Trained::Adapters => {
                let tuned = Tuned { part: trained, rank: request.rank, seed };
                let whole: LanguageModel<f32> =
                    language_model(&request.model, tuned, request.device.backend()?)?;
                Game::All(Box::new(AllLayers::new(&whole, &text, tuning)?))
            }
        };
        if let Game::All(g) = &game
            && g.norms().is_none()
        {
            warnings.push(TOO_MANY.into());
        }
        variants.push(setting.variant(trained, &game, model.vocabulary() * model.width())?);
        setting.points(trained, &game, (done, layers.len()), &mut points)?;
    }
    let lengths = || text.candidates().iter().map(|c| c.len() as u64);
    crate::output::complete(Canary {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: crate::clock::now(),
        model: described(&request.model, &model),
        prompt: request.prompt.clone(),
        prompt_tokens: text.prompt().len() as u64,
        secret: Secret {
            source,
            candidates: last.candidates() as u64,
            tokens_min: lengths().min().unwrap_or(0),
            tokens_max: lengths().max().unwrap_or(0),
            prior: request.prior,
            most_likely: setting.prior.most_likely(),
        },
        clip: request.clip,
        learning_rate: request.lr,
        trials: request.trials,
        seed,
        variants,
        figures: figures(&points),
        points,
        warnings,
        seconds: clock.elapsed().as_secs_f64(),
    })
}

const TOO_MANY: &str = "The candidates' gradients over all layers are too many to hold: the bound around their centre and the \
                        optimal attack are left out there.";

/// Prompt and candidates in tokens, where these come from, and what the user should know of them.
fn text(
    request: &CanaryRequest,
    model: &LanguageModel<f32>,
    seed: u64,
) -> Result<(game::Canary, Source, Vec<String>)> {
    let tokenizer = tokenizer(&request.model, request.tokenizer.as_deref())?;
    if tokenizer.len() > model.vocabulary() {
        let (its, own) = (tokenizer.len(), model.vocabulary());
        let message = format!("it has {its} tokens, and the model {own}: name the model's own");
        return Err(Failure::option("tokenizer", message));
    }
    let prompt = tokenizer.encode(&request.prompt).map_err(|e| Failure::option("prompt", e))?;
    let Candidates { tokens, source, warnings } =
        candidates(request, &tokenizer, tokenizer.len().min(model.vocabulary()), seed)?;
    let most = tokens.iter().map(Vec::len).max().unwrap_or(0);
    if prompt.len() + most > model.context() {
        let message = format!(
            "{} tokens with the longest secret of {most}, and the model takes {}: shorten it",
            prompt.len() + most,
            model.context()
        );
        return Err(Failure::option("prompt", message));
    }
    Ok((game::Canary::new(prompt, tokens)?, source, warnings))
}

/// The prior, as core knows it and by candidate.
fn prior(kind: PriorKind, last: &LastLayer) -> Result<(Prior, Vec<f64>)> {
    let m = last.candidates();
    let prior = match kind {
        PriorKind::Uniform => Prior::uniform(m as u64)?,
        PriorKind::Model => last.prior()?,
    };
    let p = match &prior {
        Prior::Given(p) => p.clone(),
        Prior::Uniform(m) => vec![1.0 / *m as f64; *m as usize],
    };
    Ok((prior, p))
}

impl Setting<'_> {
    fn variant(&self, trained: Trained, game: &Game<'_>, output: usize) -> Result<Variant> {
        let (norms, distances, radius) = match game {
            Game::Last(g) => (Some(g.norms()), Some(g.distances(&self.p)?), g.radius()),
            Game::All(g) => (g.norms().map(<[f64]>::to_vec), g.distances(&self.p)?, g.radius()),
        };
        let parameters = match game {
            Game::Last(_) => output,
            Game::All(g) => g.parameters(),
        };
        let over =
            |f: fn(f64, f64) -> f64, start: f64| norms.as_ref().map(|n| n.iter().copied().fold(start, f));
        let clip = self.request.clip;
        Ok(Variant {
            trained,
            parameters: parameters as u64,
            norm_min: over(f64::min, f64::INFINITY),
            norm_max: over(f64::max, 0.0),
            clipped: norms.as_ref().map(|n| n.iter().filter(|n| **n > clip).count() as f64 / n.len() as f64),
            distance: distances.map(|d| d.into_iter().fold(0.0, f64::max)),
            radius,
        })
    }

    fn points(
        &self,
        trained: Trained,
        game: &Game<'_>,
        (variant, variants): (usize, usize),
        out: &mut Vec<Point>,
    ) -> Result<()> {
        let all: Vec<(u64, f64)> = self
            .request
            .steps
            .iter()
            .flat_map(|&t| self.request.noises(t).into_iter().map(move |s| (t, s)))
            .collect();
        let total = (variants * all.len()) as u64;
        for (i, (steps, sigma)) in all.into_iter().enumerate() {
            if self.hooks.interrupted() {
                return Err(Failure::Interrupted);
            }
            self.hooks.report(Stage::Pass, out.len() as u64, total);
            // every point draws anew
            let seed = self
                .seed
                .wrapping_add((((variant as u64) << 32) + i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let rounds = Rounds { sigma, steps, trials: self.request.trials, seed };
            out.push(Point {
                trained,
                steps,
                sigma,
                rdp: 2.0 * steps as f64 / (sigma * sigma),
                bounds: self.bounds(game, steps, sigma)?,
                attacks: if self.request.trials == 0 { vec![] } else { self.attacks(game, rounds)? },
            });
        }
        Ok(())
    }

    fn bounds(&self, game: &Game<'_>, steps: u64, sigma: f64) -> Result<Vec<Limit>> {
        let t = steps as f64;
        let limit = |kind: LimitKind, success: f64| Limit {
            kind,
            success: Bound::share_at_most(success, kind.theorem()),
            advantage: Bound::share_at_most(self.prior.advantage(success), kind.theorem()),
        };
        let (published, _) =
            fano::success_from_rdp(&self.prior, |alpha| Ok(2.0 * alpha * t / (sigma * sigma)))?;
        let zero = testing::one_centre(&self.prior, t.sqrt(), sigma)?;
        let mut all = vec![limit(LimitKind::FanoRdp, published), limit(LimitKind::AroundZero, zero)];
        let at = (steps, sigma * self.request.clip);
        let centre = match game {
            Game::Last(g) => {
                let exact = around_centre(&self.prior, &self.p, |w| g.distances(w), g.radius(), at)?;
                let always = vec![g.radius(); self.p.len()];
                Some(exact.min(around_centre(&self.prior, &self.p, |_| Ok(always.clone()), g.radius(), at)?))
            }
            Game::All(g) if g.norms().is_some() => {
                let distances = |w: &[f64]| Ok(g.distances(w)?.unwrap_or_default());
                Some(around_centre(&self.prior, &self.p, distances, g.radius(), at)?)
            }
            Game::All(_) => None,
        };
        all.extend(centre.map(|c| limit(LimitKind::AroundCentre, c.min(zero))));
        Ok(all)
    }

    fn attacks(&self, game: &Game<'_>, rounds: Rounds) -> Result<Vec<Played>> {
        let (played, optimal) = match game {
            Game::Last(g) => {
                let played = g.play(&self.p, rounds)?;
                (played, played.optimal.map(|o| o.observed(self.seed)))
            }
            Game::All(g) => {
                let optimal = if rounds.steps == 1 { g.optimal(&self.prior, rounds)? } else { None };
                (g.play(&self.p, rounds)?, optimal)
            }
        };
        let p = self.prior.most_likely();
        let of = |attack: Guesser, success: Observed| Played {
            attack,
            advantage: success.rescaled(p, 1.0 - p),
            success: Observed { seed: self.seed, ..success },
        };
        let difference = Observed::of_hits(played.difference, played.trials, self.seed);
        Ok([Some(of(Guesser::Difference, difference)), optimal.map(|o| of(Guesser::Optimal, o))]
            .into_iter()
            .flatten()
            .collect())
    }
}
