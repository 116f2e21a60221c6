//! One run of the thesis: pre-trained on public records, then one private pass, in the open, by DP-SGD, pruned, or with what a
//! perturbation adds.

use super::super::Context;
use super::super::data::Images;
use super::super::mueller::failure_of;
use super::leaked::{Leaked, mean_and_deviation};
use leakscope::Result;
use leakscope_net::engine::evaluate;
use leakscope_net::perturb::{PerturbationKind, Perturbed, Perturbing};
use leakscope_net::poisson::published_factor;
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer};
use leakscope_net::{Clip, Data, NetSpec, Network, Shape};
use leakscope_report::format;

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
    /// Public records that the thesis's perturbation is learned on.
    lesson: Data<f32>,
    /// Those that this project's are learned on.
    part: Data<f32>,
    /// Those that a network of the record is learned on: it costs an array of all parameters for each of them.
    few: Data<f32>,
}

/// Public records that a constant or an average is learned on, at most.
const PART: usize = 2048;
/// Public records that a network of the record is learned on, and its epochs, at most.
const FEW: (usize, u64) = (128, 20);

/// What came of a run, or the mean over runs.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Of every run.
    pub(super) accuracies: Vec<f64>,
    /// dFIL by the published formula, over the drawn records.
    pub(super) dfil: Option<Leaked>,
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
    /// Runs whose means are taken: of what is not perturbed, of what the thesis perturbs, and of this project's perturbations.
    pub(super) runs: [u64; 3],
}

/// Gaussian probes of every trace, as published.
const PROBES: usize = 2;

impl Effort {
    /// Of linear models: all records, of which perturbations are learned on a part.
    pub(super) fn of(context: &Context<'_>) -> Self {
        let all = usize::MAX;
        let usual = match (context.full, context.synthetic) {
            (true, _) => Self { public: all, private: all, lesson: all, epochs: 200, runs: [3, 3, 1] },
            (false, false) => Self { public: all, private: all, lesson: PART, epochs: 200, runs: [3, 1, 1] },
            (false, true) => Self { public: 300, private: 400, lesson: 64, epochs: 4, runs: [1; 3] },
        };
        Self { runs: context.runs.map_or(usual.runs, |n| [n, n, usual.runs[2].min(n)]), ..usual }
    }

    /// Of sweeps, which are many runs.
    pub(super) fn sweep(context: &Context<'_>) -> Self {
        Self { runs: [1; 3], ..Self::small(context) }
    }

    /// Of convolutional networks, whose records cost ten times as much: one batch of public records.
    pub(super) fn small(context: &Context<'_>) -> Self {
        let usual = Self::of(context);
        Self { lesson: if context.full { usual.lesson } else { usual.lesson.min(BATCH) }, ..usual }
    }

    /// In words, for the page.
    pub(super) fn description(self, context: &Context<'_>) -> String {
        let runs = |n: u64| if n == 1 { "one run".to_owned() } else { format!("the mean of {n} runs") };
        let count = |n: usize| if n == usize::MAX { "all".to_owned() } else { format!("at most {n}") };
        match context.full {
            true => format!(
                "All records, epochs and steps as published (there three runs): what is not perturbed is {}, FIM as in the \
                 thesis {}. This project’s perturbations, learned on {} public records, are {}.",
                runs(self.runs[0]),
                runs(self.runs[1]),
                format::count(PART as u64),
                runs(self.runs[2])
            ),
            false => format!(
                "{} public and {} private records. What is not perturbed is {}. Perturbations are learned on {} of the public \
                 records in {} epochs before the first step (published: all of them, 200) and are {}. The thesis has the mean \
                 of three runs; `--full` runs all of it.",
                count(self.public),
                count(self.private),
                runs(self.runs[0]),
                self.lesson,
                self.epochs,
                runs(self.runs[1])
            ),
        }
    }

    pub(super) fn perturbing(self, variant: PerturbationKind, recipe: &Recipe) -> Perturbing {
        let (learning_rate, weight_decay) = recipe.learned;
        let epochs = match variant {
            PerturbationKind::Network => self.epochs.min(FEW.1),
            PerturbationKind::Average | PerturbationKind::Constant | PerturbationKind::Thesis => self.epochs,
        };
        Perturbing { variant, epochs, learning_rate, weight_decay, ..Perturbing::default() }
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
            Data::new(shape, x, 1, y).map_err(failure_of)
        }
        k => {
            let classes: Vec<u32> = images.labels[from..to].iter().map(|&l| u32::from(l)).collect();
            Data::classes(shape, x, k, &classes).map_err(failure_of)
        }
    }
}

/// Means and standard deviations that photographs are standardised by, of each channel, values between 0 and 1: those that examples of
/// training on CIFAR-10 have been handing on. Its pixels have 0.247, 0.243 and 0.262; the smaller ones are the mean over images of each image's
/// own. The thesis says "standardized" and no number; a record's √dFIL falls with its size here, and by the deviations of the pixels all of
/// ours would be a quarter above what is printed.
const PHOTOGRAPHS: [[f64; 2]; 3] = [[0.4914, 0.2023], [0.4822, 0.1994], [0.4465, 0.2010]];

/// The first share of the file is public, the rest private. Photographs are standardised by channel, as in the thesis.
pub(super) fn split((train, test): &(Images, Images), share: f64, effort: Effort) -> Result<Split> {
    let n = train.labels.len();
    let public = ((share * n as f64).round() as usize).clamp(1, n - 1);
    let used = public.min(effort.public);
    let part = |images: &Images, from: usize, count: usize| -> Result<Data<f32>> {
        let plain = records(images, from, count, 10)?;
        if train.shape[2] == 1 {
            return Ok(plain);
        }
        let x = plain.records().iter().zip(PHOTOGRAPHS.iter().cycle());
        let x = x.map(|(v, [m, s])| (f64::from(*v) - m) / s).map(|v| v as f32).collect();
        let classes: Vec<u32> = images.labels[from..(from + count).min(images.labels.len())]
            .iter()
            .map(|&l| u32::from(l))
            .collect();
        Data::classes(plain.input(), x, 10, &classes).map_err(failure_of)
    };
    Ok(Split {
        public: part(train, 0, used)?,
        private: part(train, public, effort.private.min(n - public))?,
        test: part(test, 0, test.labels.len())?,
        lesson: part(train, 0, used.min(effort.lesson))?,
        part: part(train, 0, used.min(effort.lesson).min(PART))?,
        few: part(train, 0, used.min(effort.lesson).min(FEW.0))?,
    })
}

fn config(seed: u64, (rate, decay): (f64, f64), batch: usize) -> TrainConfig {
    TrainConfig {
        weight_decay: decay,
        delta: DELTA,
        // tables can be repeated: nothing here is released
        randomness: Randomness::SeededNotPrivate,
        seed,
        ..TrainConfig::open(Optimizer::adam(), rate, Sampling::Shuffle { batch })
    }
}

/// Public pre-training.
pub(super) fn pretrained(
    context: &Context<'_>,
    spec: &NetSpec,
    (public, recipe): (&Data<f32>, &Recipe),
    seed: u64,
) -> Result<Network<f32>> {
    let (epochs, rate, decay) = recipe.first;
    let batch = BATCH.min(public.len());
    let net = Network::new(spec.clone(), seed).map_err(failure_of)?;
    let net = net.on(context.device.backend()?).map_err(failure_of)?;
    let mut run = Trainer::new(net, public, config(seed, (rate, decay), batch)).map_err(failure_of)?;
    for _ in 0..epochs * (public.len() / batch) as u64 {
        context.check()?;
        run.step().map_err(failure_of)?;
    }
    Ok(run.into_network())
}

/// The same network once more, on the same device.
fn copied(net: &Network<f32>) -> Result<Network<f32>> {
    let theta = net.parameters().map_err(failure_of)?;
    Network::with_parameters(net.spec().clone(), &theta)
        .and_then(|out| out.on(net.backend()))
        .map_err(failure_of)
}

/// The same network with the smaller half of its parameters frozen.
pub(super) fn halved(net: &Network<f32>) -> Result<Network<f32>> {
    let theta = net.parameters().map_err(failure_of)?;
    let mut sizes: Vec<f32> = theta.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f32::total_cmp);
    let least = sizes[sizes.len() / 2];
    let mut out = copied(net)?;
    out.freeze(&theta.iter().map(|v| v.abs() < least).collect::<Vec<bool>>()).map_err(failure_of)?;
    Ok(out)
}

pub(super) fn accuracy(net: &Network<f32>, test: &Data<f32>) -> Result<f64> {
    Ok(evaluate(net, test).map_err(failure_of)?.accuracy.unwrap_or(f64::NAN))
}

/// One pass over the private records from a network that was pre-trained.
pub(super) fn run(
    context: &Context<'_>,
    start: &Network<f32>,
    split: &Split,
    recipe: &Recipe,
    (method, seed): (Method, u64),
) -> Result<Outcome> {
    let batch = BATCH.min(split.private.len());
    let mut config = config(seed, recipe.private, batch);
    if method != Method::Open {
        config.privacy = Some(Privacy { clip: Clip::Gelu { bound: recipe.clip }, sigma: recipe.sigma });
        config.tracking = Tracking::Drawn { probes: PROBES };
    }
    let net = match method {
        Method::Open | Method::Private => copied(start)?,
        Method::Pruned | Method::Perturbed(_) => halved(start)?,
    };
    let mut trainer = Trainer::new(net, &split.private, config).map_err(failure_of)?;
    if let Method::Perturbed(how) = method {
        let lesson = match how.variant {
            PerturbationKind::Thesis => &split.lesson,
            PerturbationKind::Average | PerturbationKind::Constant => &split.part,
            PerturbationKind::Network => &split.few,
        };
        trainer.perturb(how, lesson).map_err(failure_of)?;
    }
    let mut steps = Vec::new();
    for _ in 0..(split.private.len() / batch) as u64 {
        context.check()?;
        trainer.step().map_err(failure_of)?;
        steps.extend(trainer.perturbed());
    }
    let rate = batch as f64 / split.private.len() as f64;
    let factor = published_factor(rate, recipe.sigma, DELTA).map_err(failure_of)?;
    let d = split.private.input().len() as f64;
    let budgets = trainer.budgets().map_err(failure_of)?;
    let all: Vec<f64> = budgets
        .iter()
        .filter(|b| b.measured > 0)
        .filter_map(|b| b.published.map(|p| factor * p.value / d))
        .collect();
    let accuracies = vec![accuracy(trainer.network(), &split.test)?];
    Ok(Outcome { accuracies, dfil: Leaked::of(&all), steps })
}

impl Outcome {
    /// The mean over runs, with the perturbation of the first.
    pub(super) fn mean(runs: Vec<Self>) -> Self {
        let leaked: Vec<Leaked> = runs.iter().filter_map(|o| o.dfil).collect();
        let accuracies = runs.iter().flat_map(|o| o.accuracies.clone()).collect();
        let steps = runs.into_iter().next().map(|o| o.steps).unwrap_or_default();
        Self { accuracies, dfil: Leaked::mean(&leaked), steps }
    }

    /// The mean of the accuracies.
    pub(super) fn accuracy(&self) -> f64 {
        mean_and_deviation(&self.accuracies).0
    }
}
