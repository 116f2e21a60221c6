//! Going on from a checkpoint: only as the run was started, so that what is said about the run stays true.

use super::public::PublicStart;
use super::run::CHECKPOINT;
use crate::{Failure, Result};
use leakscope_net::{
    NetSpec,
    io::Tensors,
    train::{Filter, Optimizer, Randomness, Sampling, StepReport, TrainConfig},
};
use leakscope_report::net::{Perturbation, Point, PublicUse};
use leakscope_table::SplitKey;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where in a checkpoint's metadata [`Progress`] stands.
const PROGRESS: &str = "progress";

/// How a run started, as far as its settings and its network do not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// SHA-256 of the file of given weights; absent where they were drawn.
    pub(crate) pretrained: Option<String>,
    /// The share of the given weights that stays as it is.
    pub(crate) freeze_smallest: Option<f64>,
    /// The same as the share that is trained, where it was given so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) density: Option<f64>,
    /// Training on public records before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) public: Option<PublicStart>,
    /// Steps asked for.
    pub(crate) steps: u64,
    /// What decided which rows are held out, where it is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) split: Option<SplitKey>,
}

impl Start {
    /// What the run took from public records, for its document.
    pub(crate) fn public_use(&self, perturbation: Option<Perturbation>) -> Option<PublicUse> {
        let pretraining = self.public.as_ref().map(|p| p.facts.clone());
        let used = PublicUse { pretraining, density: self.density, perturbation };
        (used != PublicUse::default()).then_some(used)
    }
}

/// What a checkpoint keeps beside the trainer's state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) start: Start,
    pub(crate) history: Vec<Point>,
    /// Sum of the mean losses since the last point, and how many there were.
    pub(crate) losses: (f64, u64),
    /// What only the owner may know of the steps.
    #[serde(default)]
    pub(crate) exact: Exact,
}

/// What steps showed that no noise covers: it decides nothing in a private run, and is said to its owner alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Exact {
    /// How often a drawn record had no finite gradient.
    pub(crate) not_finite: u64,
    /// The first step whose loss was out of all proportion.
    pub(crate) out_of_proportion: Option<u64>,
}

impl Exact {
    /// Takes in a step.
    pub(crate) fn add(&mut self, step: &StepReport) {
        self.not_finite += step.not_finite as u64;
        if step.out_of_proportion {
            self.out_of_proportion.get_or_insert(step.step);
        }
    }
}

impl Progress {
    /// That of a run before its first step.
    pub(crate) fn new(start: Start) -> Self {
        Self { start, history: Vec::new(), losses: (0.0, 0), exact: Exact::default() }
    }

    /// Its entry in a checkpoint.
    pub(crate) fn entry(&self) -> Result<(&'static str, String)> {
        let text =
            serde_json::to_string(self).map_err(|e| Failure::Message(format!("the checkpoint: {e}")))?;
        Ok((PROGRESS, text))
    }

    /// Takes it from a checkpoint.
    pub(crate) fn read(file: &Tensors) -> std::result::Result<Self, String> {
        let text = file.metadata.get(PROGRESS).ok_or("it does not say how the run started")?;
        serde_json::from_str(text).map_err(|e| format!("it does not say how the run started: {e}"))
    }
}

/// A checkpoint to go on from.
pub(crate) struct Resumed {
    /// The file.
    pub(crate) bytes: Vec<u8>,
    /// What it keeps beside the trainer's state.
    pub(crate) progress: Progress,
    config: TrainConfig,
    network: NetSpec,
}

impl Resumed {
    /// Reads the checkpoint of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(CHECKPOINT);
        let bad = |reason: String| Failure::option("resume", format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(&path).map_err(|e| bad(format!("cannot read it: {e}")))?;
        let file = Tensors::from_bytes(&bytes).map_err(|e| bad(e.to_string()))?;
        let field = |name: &str| {
            file.metadata.get(name).ok_or_else(|| bad(format!("it has no {name}: no checkpoint")))
        };
        let config = serde_json::from_str(field("config")?).map_err(|e| bad(e.to_string()))?;
        let network = NetSpec::from_json(field("network")?).map_err(|e| bad(e.to_string()))?;
        let progress = Progress::read(&file).map_err(bad)?;
        Ok(Self { progress, config, network, bytes })
    }

    /// Seed of the run.
    pub(crate) fn seed(&self) -> u64 {
        self.config.seed
    }

    /// Refuses to go on with other settings, or from another start, than the run had. `solved` where the noise asked
    /// for follows from an ε and the number of steps.
    pub(crate) fn check(
        &self,
        config: &TrainConfig,
        network: &NetSpec,
        start: &Start,
        solved: bool,
    ) -> Result<()> {
        check_network(&self.network, network)?;
        let was = &self.progress.start;
        check_start(was, start)?;
        let sigmas = (sigma(&self.config), sigma(config));
        if let (true, (Some(before), Some(now))) = (solved && sigmas.0 != sigmas.1, sigmas) {
            return Err(Failure::option(
                "epsilon",
                format!(
                    "the noise follows from the number of steps: the run has σ = {before} and was started for {} steps, \
                     {} steps would need σ = {now}. Go on with ⟨sigma={before}⟩ instead of ⟨epsilon⟩ (more steps cost a \
                     larger ε), or with ⟨steps={}⟩",
                    was.steps, start.steps, was.steps
                ),
            ));
        }
        match settings(&self.config).into_iter().zip(settings(config)).find(|(a, b)| a != b) {
            None => Ok(()),
            Some(((flag, before), (_, now))) => Err(Failure::option(
                flag,
                format!(
                    "{now}; the run to go on with has {before}: give its settings and its records again, or start anew \
                     without ⟨resume⟩"
                ),
            )),
        }
    }
}

fn sigma(c: &TrainConfig) -> Option<f64> {
    c.privacy.map(|p| p.sigma)
}

fn check_network(was: &NetSpec, is: &NetSpec) -> Result<()> {
    let thawed = |spec: &NetSpec| {
        let mut spec = spec.clone();
        spec.layers.iter_mut().for_each(|n| n.layer.set_frozen(false));
        spec
    };
    if was == is {
        return Ok(());
    }
    Err(match thawed(was) == thawed(is) {
        true => Failure::option("freeze", "the run froze other layers: go on with the same"),
        false => Failure::option("network", "the checkpoint is of another network: give the original one"),
    })
}

fn check_start(was: &Start, is: &Start) -> Result<()> {
    let wrong = |message: &str| Err(Failure::option("pretrain", message));
    match (&was.pretrained, &is.pretrained) {
        (None, Some(_)) => {
            return wrong(
                "the run started from random weights and goes on from its checkpoint: leave these out, or start anew \
                 without ⟨resume⟩",
            );
        }
        (Some(_), None) => return wrong("the run started from given weights: name the same file again"),
        (Some(a), Some(b)) if a != b => {
            return wrong("the run started from other weights: name the same file again");
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
    for (flag, before, now) in
        [("freeze_smallest", was.freeze_smallest, is.freeze_smallest), ("density", was.density, is.density)]
    {
        if before != now {
            let share = |s: Option<f64>| s.map_or("none".to_owned(), |v| v.to_string());
            let (before, now) = (share(before), share(now));
            return Err(Failure::option(
                flag,
                format!("{now}; the run was started with {before}: give the same"),
            ));
        }
    }
    Ok(())
}

/// The settings as flags and their values in words, always in the same order.
fn settings(c: &TrainConfig) -> [(&'static str, String); 14] {
    let none = || "none".to_owned();
    let (adam, momentum) = match c.optimizer {
        Optimizer::Adam { .. } => ("Adam", none()),
        Optimizer::Sgd { momentum } => ("SGD", momentum.to_string()),
    };
    let batch = match c.sampling {
        Sampling::Poisson { rate } => format!("every record drawn with probability {rate}"),
        Sampling::Shuffle { batch } => format!("shuffled batches of {batch}"),
    };
    [
        ("seed", c.seed.to_string()),
        ("adam", adam.to_owned()),
        ("momentum", momentum),
        ("lr", c.learning_rate.to_string()),
        ("weight_decay", c.weight_decay.to_string()),
        ("batch", batch),
        ("clip", c.privacy.map_or_else(none, |p| format!("{:?}", p.clip))),
        ("sigma", sigma(c).map_or_else(none, |s| s.to_string())),
        ("track", format!("{:?}", c.tracking)),
        ("label", format!("{:?}", c.label).to_lowercase()),
        ("delta", c.delta.to_string()),
        ("rate", c.divisor.map_or_else(none, |divisor| format!("given, with sums over {divisor}"))),
        ("not_private_noise_from_seed", format!("noise from {}", noise(c.randomness))),
        ("filter_epsilon", filter(c.filter.as_ref())),
    ]
}

/// Where noise comes from, in words.
fn noise(randomness: Randomness) -> &'static str {
    match randomness {
        Randomness::System => "the system",
        Randomness::SeededNotPrivate => "the seed",
    }
}

/// What records may spend, in words.
fn filter(filter: Option<&Filter>) -> String {
    match filter {
        None => "none".to_owned(),
        Some(f) if f.budgets.is_empty() => f.epsilon.to_string(),
        Some(f) => format!("a budget for each of {} records", f.budgets.len()),
    }
}
