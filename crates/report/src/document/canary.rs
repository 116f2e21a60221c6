//! What `leakscope text canary` found, as plain data: a secret at the end of one text, and who can pull it out of a model that
//! was fine-tuned on that text.

use super::text::{Model, Trained};
use crate::figure::{Axis, Figure, Series};
use leakscope_core::claim::{Bound, Observed, Theorem};
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `canary.json`.
pub const SCHEMA: &str = "leakscope.text-canary/1";

/// The extraction game, played and bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// The model before fine-tuning.
    pub model: Model,
    /// What is public of the text.
    pub prompt: String,
    /// Its tokens.
    pub prompt_tokens: u64,
    /// What is secret.
    pub secret: Secret,
    /// C, the norm that gradients are clipped to.
    pub clip: f64,
    /// Learning rate of the fine-tuning.
    pub learning_rate: f64,
    /// Games played at every point.
    pub trials: u64,
    /// Seed of secrets and noise.
    pub seed: u64,
    /// What is trained, each with the candidates' gradients.
    pub variants: Vec<Variant>,
    /// By what is trained, steps and noise.
    pub points: Vec<Point>,
    /// Advantage against 2T/σ².
    pub figures: Vec<Figure>,
    /// Things the user should know, in whole sentences.
    pub warnings: Vec<String>,
    /// Seconds it took, without reading the model.
    pub seconds: f64,
}

/// Where the candidates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Every token of the vocabulary.
    Vocabulary,
    /// Sequences of tokens that were drawn by the seed.
    Drawn,
    /// A list.
    List,
    /// A pattern.
    Pattern,
}

/// How likely each candidate is beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum PriorKind {
    /// All alike.
    #[default]
    Uniform,
    /// As likely as the model holds it to be before fine-tuning.
    Model,
}

/// The secret.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// Where its candidates come from.
    pub source: Source,
    /// M, how many there are.
    pub candidates: u64,
    /// Tokens of the shortest.
    pub tokens_min: u64,
    /// Tokens of the longest.
    pub tokens_max: u64,
    /// How likely each is.
    pub prior: PriorKind,
    /// p*, success of a guess without the model.
    pub most_likely: f64,
}

/// The candidates' gradients before fine-tuning, where a part of the model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// What is trained.
    pub trained: Trained,
    /// Parameters that are trained.
    pub parameters: u64,
    /// Smallest norm of a candidate's gradient; absent with the others where they were too many to compute.
    pub norm_min: Option<f64>,
    /// Largest norm.
    pub norm_max: Option<f64>,
    /// Share of candidates whose gradient is clipped.
    pub clipped: Option<f64>,
    /// Largest distance of a clipped gradient from their mean by the prior.
    pub distance: Option<f64>,
    /// No candidate is further than this from some reference at any later step, whatever came before.
    pub radius: f64,
}

/// One number of steps and one noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What is trained.
    pub trained: Trained,
    /// T, steps.
    pub steps: u64,
    /// Noise multiplier σ.
    pub sigma: f64,
    /// `2T/σ²`, the Rényi divergence of order 1 of two candidates at most.
    pub rdp: f64,
    /// What no attacker exceeds, by each bound.
    pub bounds: Vec<Limit>,
    /// What attacks achieved.
    pub attacks: Vec<Played>,
}

/// Which bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Fano's inequality with Rényi differential privacy, as published.
    FanoRdp,
    /// A test against a reference without the text.
    AroundZero,
    /// A test against the candidates' centre.
    AroundCentre,
}

impl LimitKind {
    /// The theorem that it rests on.
    pub fn theorem(self) -> Theorem {
        match self {
            Self::FanoRdp => Theorem::FanoRdp,
            Self::AroundZero => Theorem::OneCentre,
            Self::AroundCentre => Theorem::BestCentre,
        }
    }
}

/// A bound on success and advantage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Which.
    pub kind: LimitKind,
    /// Probability of naming the secret, at most.
    pub success: Bound,
    /// `(success − p*)/(1 − p*)`.
    pub advantage: Bound,
}

/// Who guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guesser {
    /// The candidate whose log-likelihood rose most, by the models before and after (the attack of the paper).
    Difference,
    /// The likeliest candidate for somebody who saw what every step released: no attack does better.
    Optimal,
}

/// What an attack achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Who guessed.
    pub attack: Guesser,
    /// Share of right guesses.
    pub success: Observed,
    /// The same as advantage.
    pub advantage: Observed,
}

impl Point {
    /// The smallest bound.
    pub fn best(&self) -> Option<&Limit> {
        self.bounds.iter().min_by(|a, b| a.success.value.total_cmp(&b.success.value))
    }

    /// One of the bounds.
    pub fn bound(&self, kind: LimitKind) -> Option<&Limit> {
        self.bounds.iter().find(|b| b.kind == kind)
    }

    /// One of the attacks.
    pub fn played(&self, attack: Guesser) -> Option<&Played> {
        self.attacks.iter().find(|a| a.attack == attack)
    }
}

/// How many curves of one kind a chart shows.
const CURVES: usize = 3;

/// Advantage against 2T/σ², for each part that is trained: bounds with the published attack, and the optimal attack under
/// the closest bound.
pub fn figures(points: &[Point]) -> Vec<Figure> {
    let (mut parts, mut steps): (Vec<Trained>, Vec<u64>) = (vec![], vec![]);
    for p in points {
        if !parts.contains(&p.trained) {
            parts.push(p.trained);
        }
        if !steps.contains(&p.steps) {
            steps.push(p.steps);
        }
    }
    steps.truncate(CURVES);
    let both = |part: Trained| [published(points, part, &steps), closest(points, part, &steps)];
    parts.into_iter().flat_map(both).filter(|f| !f.series.is_empty()).collect()
}

/// The points of a part, with some number of steps or with any, by 2T/σ².
fn of(points: &[Point], part: Trained, steps: Option<u64>) -> Vec<&Point> {
    let mut some: Vec<&Point> =
        points.iter().filter(|p| p.trained == part && steps.is_none_or(|t| p.steps == t)).collect();
    some.sort_by(|a, b| a.rdp.total_cmp(&b.rdp));
    some.dedup_by(|a, b| steps.is_none() && a.rdp == b.rdp);
    some
}

fn limits(name: &str, some: &[&Point], kind: LimitKind) -> Series {
    Series::bound(name, some.iter().filter_map(|p| p.bound(kind).map(|b| (p.rdp, b.advantage))))
}

fn plays(name: &str, some: &[&Point], attack: Guesser) -> Series {
    Series::observed(name, some.iter().filter_map(|p| p.played(attack).map(|a| (p.rdp, a.advantage.clone()))))
}

fn counted(steps: u64) -> String {
    if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") }
}

fn figure(id: String, title: String, caption: &str, mut series: Vec<Series>) -> Figure {
    series.retain(|s| !s.points.is_empty());
    Figure {
        id,
        title,
        caption: caption.into(),
        x: Axis::log("2T/σ²"),
        y: Axis::linear("advantage").of_shares(),
        series,
        levels: vec![],
        chosen: None,
    }
}

fn trained(part: Trained) -> &'static str {
    match part {
        Trained::All => "all layers",
        Trained::Last => "last layer",
        Trained::Adapters => "adapters",
    }
}

/// Figure 5 of the paper.
fn published(points: &[Point], part: Trained, steps: &[u64]) -> Figure {
    let any = of(points, part, None);
    let mut series = vec![
        limits("Fano with Rényi DP, as published", &any, LimitKind::FanoRdp),
        limits("test around 0", &any, LimitKind::AroundZero),
    ];
    for &t in steps {
        let name = format!("rise in log-likelihood, {}", counted(t));
        series.push(plays(&name, &of(points, part, Some(t)), Guesser::Difference));
    }
    let title = format!("Advantage against 2T/σ², {} trained", trained(part));
    let caption = "Figure 5 of the paper: the published bound and attack, with the bound by a test. 0 is a guess without the \
                   model, 1 is certainty.";
    figure(format!("advantage-{}", part.name()), title, caption, series)
}

/// The best that anybody can do, and what no one can do.
fn closest(points: &[Point], part: Trained, steps: &[u64]) -> Figure {
    let mut series = vec![];
    for &t in steps {
        let some = of(points, part, Some(t));
        let named = |attack: &str| format!("{attack}, {}", counted(t));
        series.push(limits(&named("test around the centre"), &some, LimitKind::AroundCentre));
        series.push(plays(&named("optimal attack"), &some, Guesser::Optimal));
    }
    let title = format!("How close the bound is, {} trained", trained(part));
    let caption = "The best that anybody can do who saw what every step released, and what no one can do.";
    figure(format!("closest-{}", part.name()), title, caption, series)
}
