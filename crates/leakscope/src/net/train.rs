//! Training of a network, in private where there is noise: a request in, a run in a folder out.

use super::config::{config, plan, wanted};
use super::data::Source;
use super::inputs::{Inputs, covered, inputs, split_key};
use super::public::{self, PerturbTraining, Public, PublicStart, PublicTraining};
use super::resume::{Resumed, Start};
use super::run::{CHECKPOINT, train, watched};
use super::table::{ENCODING, TableRequest};
use super::{Device, Precision, ReleaseRequest, account, model};
use crate::output::Folder;
use crate::{Failure, Result};
use leakscope_core::error::shown;
use leakscope_net::{Loss, NetSpec, Network, Real, leak::Label, perturb::Variant};
use leakscope_report::net::{Point, Training};
use leakscope_table::{Hooks, RecordsFormat};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a run is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainRequest {
    /// The training records: a folder, two idx files, a safetensors or an npz file, or the files of a table.
    pub data: Vec<PathBuf>,
    /// What the columns are for, where the records are rows of a table.
    pub table: Option<TableRequest>,
    /// Records to measure accuracy on; empty: the test records beside the data, else training records.
    pub test: Vec<PathBuf>,
    /// A preset or a network file in JSON.
    pub network: String,
    /// Outputs of a preset; absent: one more than the largest class.
    pub outputs: Option<usize>,
    /// Loss of a preset; absent: the softmax for classes, the binary cross-entropy for one output or several labels.
    pub loss: Option<LossKind>,
    /// Passes over the data.
    pub epochs: Option<f64>,
    /// Steps, instead.
    pub steps: Option<u64>,
    /// Records in a batch; with Poisson sampling the expected number.
    pub batch: f64,
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
    /// How batches are drawn.
    pub sampling: SamplingKind,
    /// Weight decay.
    pub weight_decay: f64,
    /// Layers whose parameters stay as they are, by position.
    pub freeze: Vec<usize>,
    /// Share of the given weights, the smallest in size, that stays as it is.
    pub freeze_smallest: Option<f64>,
    /// The same by the share that is trained, the largest in size: above 0, at most 1.
    pub density: Option<f64>,
    /// Weights to start from, taken to be public (safetensors).
    pub pretrain: Option<PathBuf>,
    /// Public records, from which the statistics of batch norms are taken, and which the network is trained on before the
    /// run where `public_training` says so: no accountant counts them.
    pub public: Vec<PathBuf>,
    /// Training on the public records before the run.
    pub public_training: PublicTraining,
    /// Adds to every gradient, before the clip, what the public records show to make it give less away.
    pub perturb: Option<Variant>,
    /// How that is learned.
    pub perturb_training: PerturbTraining,
    /// Whether what records give away is kept at every step, and of which.
    pub track: Option<Track>,
    /// Random probes of each trace that tracking keeps.
    pub probes: usize,
    /// Whether the label is part of the secret.
    pub label: Label,
    /// A checkpoint after every so many steps.
    pub checkpoint_every: Option<u64>,
    /// Whether to go on from the checkpoint in the folder.
    pub resume: bool,
    /// Seed of what is no secret: the initial weights, probes. In a run without noise also of its batches.
    pub seed: Option<u64>,
    /// Whether the noise follows from the seed too, so that the run can be repeated: it is not private then.
    pub not_private_noise_from_seed: bool,
    /// The most that the run may cost a record, as ε: it drops out of further steps before it would cost more.
    pub filter_epsilon: Option<f64>,
    /// The same by record: a file with one number a line, in the order of the records, or a column of the table.
    pub filter_budgets: Option<PathBuf>,
    /// The same as numbers, where there is no file.
    pub budgets: Vec<f64>,
    /// Use only the first records.
    pub limit: Option<usize>,
    /// Mean and standard deviation that values are scaled by.
    pub normalize: Option<[f64; 2]>,
    /// Format of the table of records.
    pub format: RecordsFormat,
    /// Numbers that the network computes with.
    pub precision: Precision,
    /// Where the network computes.
    pub device: Device,
    /// Whether the page names and shows no record.
    pub redact: bool,
}

impl Default for TrainRequest {
    fn default() -> Self {
        Self {
            data: vec![],
            table: None,
            test: vec![],
            network: String::new(),
            outputs: None,
            loss: None,
            epochs: None,
            steps: None,
            batch: 256.0,
            rate: None,
            lr: 0.1,
            momentum: 0.9,
            adam: false,
            release: ReleaseRequest::default(),
            epsilon: None,
            delta: None,
            sampling: SamplingKind::default(),
            weight_decay: 0.0,
            freeze: vec![],
            freeze_smallest: None,
            density: None,
            pretrain: None,
            public: vec![],
            public_training: PublicTraining::default(),
            perturb: None,
            perturb_training: PerturbTraining::default(),
            track: None,
            probes: 4,
            label: Label::Public,
            checkpoint_every: None,
            resume: false,
            seed: None,
            not_private_noise_from_seed: false,
            filter_epsilon: None,
            filter_budgets: None,
            budgets: vec![],
            limit: None,
            normalize: None,
            format: RecordsFormat::default(),
            precision: Precision::default(),
            device: Device::default(),
            redact: false,
        }
    }
}

impl TrainRequest {
    /// The loss that was asked for by name or in the network's file; absent where the labels decide.
    pub(super) fn target_loss(&self) -> Result<Option<Loss>> {
        match self.loss {
            Some(kind) => Ok(Some(kind.into())),
            None if model::is_file(&self.network) => Ok(Some(model::loss_of_file(&self.network)?)),
            None => Ok(None),
        }
    }
}

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum SamplingKind {
    /// Every record with the same probability, independently: what accountants assume
    #[default]
    Poisson,
    /// Fixed batches from a shuffled order; no amplification is claimed
    Shuffle,
}

/// The loss of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// One class of several
    SoftmaxCrossEntropy,
    /// Labels that hold or do not, each on its own
    BinaryCrossEntropy,
    /// Values to predict
    SquaredError,
}

impl From<LossKind> for Loss {
    fn from(kind: LossKind) -> Self {
        match kind {
            LossKind::SoftmaxCrossEntropy => Self::SoftmaxCrossEntropy,
            LossKind::BinaryCrossEntropy => Self::BinaryCrossEntropy,
            LossKind::SquaredError => Self::SquaredError,
        }
    }
}

/// Of which records accounts are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Track {
    /// A panel of 370 (all of no more) at every step, and besides all that a step draws
    Panel,
    /// Those drawn
    Drawn,
    /// All of them, at the cost of a pass over the data a step
    Every,
}

/// A run that has ended, with its files written.
#[derive(Debug, Clone)]
pub struct TrainOutcome {
    /// The run.
    pub training: Training,
    /// What was written.
    pub written: Vec<PathBuf>,
    /// Whether the seed was drawn, so that whoever wants to repeat the run must be told it.
    pub seed_drawn: bool,
    /// Why it diverged, and what to do; the last good model is written.
    pub diverged: Option<String>,
}

/// What a caller hears while a run goes on.
pub struct Listener<'a> {
    /// Progress in steps, and whether to stop.
    pub hooks: &'a Hooks,
    /// Told every point of the history.
    pub on_point: &'a dyn Fn(&Point),
    /// Told the seed before the first step, where it was drawn.
    pub on_seed: &'a dyn Fn(u64),
}

/// Trains as the request says; `out` receives the model, the run and its page.
pub fn run(request: &TrainRequest, out: &Path, listener: &Listener<'_>) -> Result<TrainOutcome> {
    check(request)?;
    match request.precision {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, listener),
        Precision::F64 => run_in::<f64>(request, out, listener),
    }
}

fn run_in<T: Real>(args: &TrainRequest, out: &Path, listener: &Listener<'_>) -> Result<TrainOutcome> {
    let wanted = wanted(args)?;
    let scale = args.normalize.unwrap_or([0.0, 1.0]);
    let folder = folder(args, out)?;
    let resumed = if args.resume { Some(Resumed::read(folder.path())?) } else { None };
    let replaced = if args.resume { None } else { account::replaced(folder.path()) };
    let stored = resumed.as_ref().map(Resumed::seed);
    let seed = args.seed.or(stored).unwrap_or_else(crate::seed::drawn);

    let split = match &resumed {
        Some(resumed) => resumed.progress.start.split,
        None => split_key(args, wanted.is_some())?,
    };
    let Inputs { mut source, test, budgets } = inputs::<T>(args, (seed, split), listener.hooks)?;
    let mut spec = spec(args, &mut source)?;
    covered(args, &source.names)?;
    let pretrains = args.public_training.is_wanted();
    let thawed = spec.clone();
    model::freeze(&mut spec, &args.freeze)?;
    // public training moves the layers too that the run leaves as they are
    let spec = if pretrains && resumed.is_none() { thawed } else { spec };
    let mut net = Network::<T>::new(spec, seed)?.on(args.device.backend_in(Some(args.precision))?)?;
    let pretrained =
        args.pretrain.as_ref().map(|weights| model::load_weights(&mut net, weights)).transpose()?;
    let data = source.take_data(&net)?;
    let test = test.map(|mut test| test.take_data(&net)).transpose()?;
    let (perturbing, labelled) = (public::perturbing(args), pretrains || args.perturb.is_some());
    let public = match resumed.is_none() || labelled {
        true => Public::read(args, &net, &source.names, labelled, listener.hooks)?,
        false => None,
    };
    let public_start = match &resumed {
        Some(resumed) => {
            let start = resumed.progress.start.public.clone();
            PublicStart::check(start.as_ref(), public.as_ref(), &args.public_training)?;
            start
        }
        None => {
            public::statistics(&mut net, public.as_ref(), &data, (wanted.is_some(), !labelled))?;
            match public.as_ref().filter(|_| pretrains) {
                Some(public) => {
                    let watched = watched(&data, test.as_ref())?;
                    Some(public::trained_on(public, &mut net, &watched, args, seed, listener.hooks)?)
                }
                None => None,
            }
        }
    };
    if let Some(share) = public::frozen_share(args)? {
        model::freeze_smallest(&mut net, share)?;
    }

    let plan = plan(args, &source.names, data.len(), folder.path().to_path_buf());
    let config = config(args, budgets, wanted, plan.steps, data.len(), seed)?;
    let start = Start {
        pretrained,
        freeze_smallest: args.freeze_smallest,
        density: args.density,
        public: public_start,
        steps: plan.steps,
        split,
    };
    if let Some(resumed) = &resumed {
        resumed.check(&config, net.spec(), &start, args.epsilon.is_some())?;
    }
    let seed_drawn = args.seed.is_none() && stored.is_none();
    if seed_drawn {
        (listener.on_seed)(seed);
    }
    let perturbing = perturbing.zip(public.as_ref().map(|p| &p.data));
    let ended = train(net, &data, (test.as_ref(), perturbing), config, &plan, (start, resumed), listener)?;
    let facts = facts(args, &source, scale, test.as_ref().map(|t| t.len() as u64), replaced);
    let stored = model::files(ended.run.network())?;
    let (training, written) = account::finish(&ended, &data, &facts, &plan, (&folder, &stored))?;
    let diverged = ended.diverged(folder.path());
    Ok(TrainOutcome { training, written, seed_drawn, diverged })
}

/// The folder of the run, which is none of the files that are read.
fn folder(args: &TrainRequest, out: &Path) -> Result<Folder> {
    let folder = Folder::open(out, args.format)?;
    let read = args.data.iter().chain(&args.test).chain(&args.public).chain(&args.pretrain);
    let read = read.map(PathBuf::as_path);
    let read: Vec<&Path> = read.chain([Path::new(&args.network)]).collect();
    let texts = [model::NETWORK, model::WEIGHTS, model::TRAINING, CHECKPOINT, ENCODING, "report.html"];
    folder.spare(&read, &texts, &["records"])?;
    Ok(folder)
}

fn facts<T: Real>(
    args: &TrainRequest,
    source: &Source<T>,
    normalize: [f64; 2],
    test_records: Option<u64>,
    replaced: Option<String>,
) -> account::Facts {
    account::Facts {
        name: model::name_of(&args.network),
        files: source.files.clone(),
        names: source.names.clone(),
        normalize,
        test_records,
        clip_assumed: args.release.clip.is_none(),
        public: args.public.iter().map(|p| model::name_of(&p.to_string_lossy())).collect(),
        precision: args.precision,
        leaves: LEAVES.to_owned(),
        text: None,
        replaced,
        redact: args.redact,
    }
}

/// What of a run's folder may leave the house.
pub(super) const LEAVES: &str = "model.safetensors and network.json";

/// The network that was asked for; a preset gets outputs and loss that suit the labels.
pub(super) fn spec<T: Real>(args: &TrainRequest, source: &mut Source<T>) -> Result<NetSpec> {
    if !model::is_preset(&args.network) {
        return model::spec(&args.network, source.shape, 1, None);
    }
    let loss = match args.loss {
        Some(kind) => Some(kind.into()),
        None => {
            if source.guesses_loss() {
                source.names.guessed.push("the loss (give ⟨loss⟩)");
            }
            source.own_loss()?
        }
    };
    let outputs = match args.outputs {
        Some(0) => return Err(Failure::option("outputs", "0: expected at least 1")),
        Some(k) => k,
        None => {
            if source.counts_classes(loss) {
                source.names.guessed.push("the number of outputs (give ⟨outputs⟩)");
            }
            source.outputs(loss)?
        }
    };
    model::spec(&args.network, source.shape, outputs, loss)
}

fn check(args: &TrainRequest) -> Result<()> {
    check_numbers(args)?;
    if args.outputs.is_some() && model::is_file(&args.network) {
        let message = "the network file says how many outputs it has: change it there, or name a preset";
        return Err(Failure::option("outputs", message));
    }
    if args.limit == Some(0) {
        return Err(Failure::option("limit", "0: expected at least 1"));
    }
    public::check(args)?;
    public::frozen_share(args)?;
    let starts_public = args.pretrain.is_some() || args.public_training.is_wanted();
    for (flag, share) in [("freeze_smallest", args.freeze_smallest), ("density", args.density)] {
        if share.is_some() && !starts_public {
            let message = "it is a share of given weights: name them with ⟨pretrain⟩, or train them on public records with \
                           ⟨public⟩ and ⟨public_epochs⟩";
            return Err(Failure::option(flag, message));
        }
    }
    Ok(())
}

/// Checks what needs no file.
pub(crate) fn check_numbers(args: &TrainRequest) -> Result<()> {
    let positive = |flag: &str, v: f64| match v > 0.0 && v.is_finite() {
        true => Ok(()),
        false => Err(Failure::option(flag, format!("{}: expected a positive number", shown(v)))),
    };
    positive("batch", args.batch)?;
    positive("lr", args.lr)?;
    if let Some(epochs) = args.epochs {
        positive("epochs", epochs)?;
    }
    if let Some(rate) = args.rate {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(Failure::option("rate", format!("{}: expected above 0, at most 1", shown(rate))));
        }
        if args.sampling == SamplingKind::Shuffle {
            return Err(Failure::option("rate", "shuffled batches have a size, no rate: leave it out"));
        }
        if args.limit.is_some() && (args.release.sigma.is_some() || args.epsilon.is_some()) {
            let message = "with ⟨rate⟩ and noise neighbouring data sets differ in a record that is there or is not, and one more \
                           among the first would push another out: cut the file, or leave ⟨rate⟩ out, which makes the number of \
                           records public";
            return Err(Failure::option("limit", message));
        }
    }
    if let Some(epsilon) = args.filter_epsilon {
        positive("filter_epsilon", epsilon)?;
    }
    if args.not_private_noise_from_seed && args.release.sigma.is_none() && args.epsilon.is_none() {
        let message = "there is no noise in this run: leave it out";
        return Err(Failure::option("not_private_noise_from_seed", message));
    }
    if !(0.0..1.0).contains(&args.momentum) {
        return Err(Failure::option("momentum", format!("{}: expected at least 0, below 1", args.momentum)));
    }
    if let Some(epsilon) = args.epsilon {
        positive("epsilon", epsilon)?;
    }
    if let Some(delta) = args.delta {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Failure::option("delta", format!("{}: expected between 0 and 1", shown(delta))));
        }
        if args.release.sigma.is_none() && args.epsilon.is_none() {
            let message = "without noise nothing is promised: give ⟨sigma⟩ or ⟨epsilon⟩ too, or leave it out";
            return Err(Failure::option("delta", message));
        }
    }
    if !(args.weight_decay >= 0.0 && args.weight_decay.is_finite()) {
        let message = format!("{}: expected zero or a positive number", args.weight_decay);
        return Err(Failure::option("weight_decay", message));
    }
    if args.steps.is_some() && args.epochs.is_some() {
        return Err(Failure::option("epochs", "⟨steps⟩ says how long already: give one of the two"));
    }
    if args.release.sigma.is_some() && args.epsilon.is_some() {
        return Err(Failure::option("epsilon", "⟨sigma⟩ is the noise already: give one of the two"));
    }
    if args.track.is_some() && args.probes == 0 {
        return Err(Failure::option("probes", "0: expected at least 1"));
    }
    if args.loss.is_some() && model::is_file(&args.network) {
        let message = "the network file says its loss: change it there, or name a preset";
        return Err(Failure::option("loss", message));
    }
    for (flag, value) in [("checkpoint_every", args.checkpoint_every), ("steps", args.steps)] {
        if value == Some(0) {
            return Err(Failure::option(flag, "0: expected at least 1"));
        }
    }
    Ok(())
}
