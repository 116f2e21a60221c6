//! One run of the thesis: pre-trained on public records, then one private pass, in the open, by DP-SGD, pruned, or with what a
//! perturbation adds.

use super::super::data::Images;
use super::super::mueller::said;
use super::super::{Context, images::summary};
use leakscope::Result;
use leakscope_core::num::Summary;
use leakscope_net::engine::evaluate;
use leakscope_net::leak::Label;
use leakscope_net::perturb::{Perturbed, Perturbing, Variant};
use leakscope_net::poisson::published_factor;
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer};
use leakscope_net::{Clip, Data, NetSpec, Network, Shape};

/// δ of all tables.
pub(super) const DELTA: f64 = 1e-9;
/// Records in a batch, public and private.
pub(super) const BATCH: usize = 512;

/// How a network is trained on public records, and then on private ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    /// Passes over the public records, learning rate, weight decay.
    pub(super) first: (u64, f64, f64),
    /// Learning rate and weight decay of the private steps.
    pub(super) private: (f64, f64),
    pub(super) sigma: f64,
    pub(super) clip: f64,
    /// Learning rate and weight decay of the perturbation.
    pub(super) learned: (f64, f64),
}

/// What is done with the private records.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Method {
    /// Training in the open.
    Open,
    /// DP-SGD.
    Private,
    /// DP-SGD of the larger half of the parameters.
    Pruned,
    /// The same with a perturbation.
    Perturbed(Perturbing),
}

/// The records of a run.
pub(super) struct Split {
    pub(super) public: Data<f32>,
    pub(super) private: Data<f32>,
    pub(super) test: Data<f32>,
    /// Public records that a perturbation is learned on.
    pub(super) lesson: Data<f32>,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) accuracy: f64,
    /// dFIL as published, over the drawn records.
    pub(super) dfil: Option<Summary>,
    /// The perturbation of every step.
    pub(super) steps: Vec<Perturbed>,
}

/// How much is run: as published, or a part that takes minutes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Public records at most.
    pub(super) public: usize,
    /// Private records at most.
    pub(super) private: usize,
    /// Public records that a perturbation is learned on, at most.
    pub(super) lesson: usize,
    /// Passes over them before the first step.
    pub(super) epochs: u64,
    /// Probes of every trace.
    pub(super) probes: usize,
}

impl Effort {
    pub(super) fn of(context: &Context<'_>) -> Self {
        match (context.full, context.synthetic) {
            (true, _) => {
                Self { public: usize::MAX, private: usize::MAX, lesson: usize::MAX, epochs: 200, probes: 10 }
            }
            (false, false) => Self { public: 6000, private: 6 * BATCH, lesson: 256, epochs: 40, probes: 6 },
            (false, true) => Self { public: 300, private: 400, lesson: 64, epochs: 4, probes: 2 },
        }
    }

    /// In words, for the page.
    pub(super) fn said(self, context: &Context<'_>) -> String {
        match context.full {
            true => {
                "All records, epochs and steps as published; one run where the thesis has the mean of three."
                    .into()
            }
            false => format!(
                "A part of the published size: at most {} public and {} private records, perturbations learned on {} of the \
                 public records in {} epochs before the first step (published: 200), one run where the thesis has the mean of \
                 three. `--full` runs all of it.",
                self.public, self.private, self.lesson, self.epochs
            ),
        }
    }

    pub(super) fn perturbing(self, variant: Variant, recipe: &Recipe) -> Perturbing {
        let (learning_rate, weight_decay) = recipe.learned;
        Perturbing { variant, epochs: self.epochs, learning_rate, weight_decay, ..Perturbing::default() }
    }
}

/// Images as records, values between 0 and 1.
pub(super) fn records(images: &Images, from: usize, count: usize, outputs: usize) -> Result<Data<f32>> {
    let (size, to) = (images.size(), (from + count).min(images.labels.len()));
    let x = images.pixels[from * size..to * size].iter().map(|&b| f32::from(b) / 255.0).collect();
    let shape = Shape::Image(images.shape);
    match outputs {
        1 => {
            let y = images.labels[from..to].iter().map(|&l| f32::from(l)).collect();
            Data::new(shape, x, 1, y).map_err(said)
        }
        k => {
            let classes: Vec<u32> = images.labels[from..to].iter().map(|&l| u32::from(l)).collect();
            Data::classes(shape, x, k, &classes).map_err(said)
        }
    }
}

/// The first share of the file is public, the rest private.
pub(super) fn split((train, test): &(Images, Images), share: f64, effort: Effort) -> Result<Split> {
    let n = train.labels.len();
    let public = ((share * n as f64).round() as usize).clamp(1, n - 1);
    let used = public.min(effort.public);
    Ok(Split {
        public: records(train, 0, used, 10)?,
        private: records(train, public, effort.private.min(n - public), 10)?,
        test: records(test, 0, test.labels.len(), 10)?,
        lesson: records(train, 0, used.min(effort.lesson), 10)?,
    })
}

fn config(context: &Context<'_>, (rate, decay): (f64, f64), batch: usize) -> TrainConfig {
    TrainConfig {
        optimizer: Optimizer::adam(),
        learning_rate: rate,
        weight_decay: decay,
        sampling: Sampling::Shuffle { batch },
        privacy: None,
        tracking: Tracking::Off,
        label: Label::Public,
        delta: DELTA,
        // tables can be repeated: nothing here is released
        randomness: Randomness::SeededNotPrivate,
        seed: context.seed,
        divisor: None,
        filter: None,
    }
}

/// Public pre-training.
pub(super) fn pretrained(
    context: &Context<'_>,
    spec: &NetSpec,
    public: &Data<f32>,
    recipe: &Recipe,
) -> Result<Network<f32>> {
    let (epochs, rate, decay) = recipe.first;
    let batch = BATCH.min(public.len());
    let net = Network::new(spec.clone(), context.seed).map_err(said)?;
    let mut run = Trainer::new(net, public, config(context, (rate, decay), batch)).map_err(said)?;
    for _ in 0..epochs * (public.len() / batch) as u64 {
        context.check()?;
        run.step().map_err(said)?;
    }
    Ok(run.into_network())
}

/// The same network with the smaller half of its parameters frozen.
pub(super) fn halved(net: &Network<f32>) -> Result<Network<f32>> {
    let theta = net.parameters().map_err(said)?;
    let mut sizes: Vec<f32> = theta.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f32::total_cmp);
    let least = sizes[sizes.len() / 2];
    let mut out = Network::with_parameters(net.spec().clone(), &theta).map_err(said)?;
    out.freeze(&theta.iter().map(|v| v.abs() < least).collect::<Vec<bool>>()).map_err(said)?;
    Ok(out)
}

pub(super) fn accuracy(net: &Network<f32>, test: &Data<f32>) -> Result<f64> {
    Ok(evaluate(net, test).map_err(said)?.accuracy.unwrap_or(f64::NAN))
}

/// One pass over the private records from a network that was pre-trained.
pub(super) fn run(
    context: &Context<'_>,
    start: &Network<f32>,
    split: &Split,
    recipe: &Recipe,
    (method, probes): (Method, usize),
) -> Result<Outcome> {
    let batch = BATCH.min(split.private.len());
    let mut config = config(context, recipe.private, batch);
    if method != Method::Open {
        config.privacy = Some(Privacy { clip: Clip::Gelu { bound: recipe.clip }, sigma: recipe.sigma });
        config.tracking = Tracking::Drawn { probes };
    }
    let net = match method {
        Method::Open | Method::Private => {
            let theta = start.parameters().map_err(said)?;
            Network::with_parameters(start.spec().clone(), &theta).map_err(said)?
        }
        Method::Pruned | Method::Perturbed(_) => halved(start)?,
    };
    let mut trainer = Trainer::new(net, &split.private, config).map_err(said)?;
    if let Method::Perturbed(how) = method {
        trainer.perturb(how, &split.lesson).map_err(said)?;
    }
    let mut steps = Vec::new();
    for _ in 0..(split.private.len() / batch) as u64 {
        context.check()?;
        trainer.step().map_err(said)?;
        steps.extend(trainer.perturbed());
    }
    let rate = batch as f64 / split.private.len() as f64;
    let factor = published_factor(rate, recipe.sigma, DELTA).map_err(said)?;
    let d = split.private.input().len() as f64;
    let budgets = trainer.budgets().map_err(said)?;
    let all: Vec<f64> = budgets
        .iter()
        .filter(|b| b.measured > 0)
        .filter_map(|b| b.published.map(|p| factor * p.value / d))
        .collect();
    Ok(Outcome {
        accuracy: accuracy(trainer.network(), &split.test)?,
        dfil: (!all.is_empty()).then(|| summary(&all)),
        steps,
    })
}
