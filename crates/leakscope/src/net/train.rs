//! Training of a network, in private where there is noise: a request in, a run in a folder out.

use super::config::{config, plan, wanted};
use super::data::Source;
use super::inputs::{Inputs, covered, inputs, split_key};
use super::public::{self, PerturbTraining, Public, PublicStart, PublicTraining};
use super::resume::{Resumed, Start};
use super::run::{CHECKPOINT, train, watched};
use super::run_request::positive;
use super::table::{ENCODING, TableRequest};
use super::{Precision, account, model};
use crate::output::Folder;
use crate::{Failure, Result};
use leakscope_net::{Loss, NetSpec, Network, Real, leak::Label, perturb::PerturbationKind, preset::Preset};
use leakscope_report::net::{Point, Training};
use leakscope_table::Hooks;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub use super::run_request::{RunRequest, Tracked};
pub use leakscope_report::choice::Sampling;

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
    pub loss: Option<Loss>,
    /// Records in a batch; with Poisson sampling the expected number.
    pub batch: f64,
    /// How batches are drawn.
    pub sampling: Sampling,
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
    pub perturb: Option<PerturbationKind>,
    /// How that is learned.
    pub perturb_training: PerturbTraining,
    /// Whether the label is part of the secret.
    pub label: Label,
    /// The same by record: a file with one number a line, in the order of the records, or a column of the table.
    pub filter_budgets: Option<PathBuf>,
    /// The same as numbers, where there is no file.
    pub budgets: Vec<f64>,
    /// Use only the first records.
    pub limit: Option<usize>,
    /// Mean and standard deviation that values are scaled by.
    pub normalize: Option<[f64; 2]>,
    /// How the run goes.
    pub run: RunRequest,
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
            batch: 256.0,
            sampling: Sampling::default(),
            freeze: vec![],
            freeze_smallest: None,
            density: None,
            pretrain: None,
            public: vec![],
            public_training: PublicTraining::default(),
            perturb: None,
            perturb_training: PerturbTraining::default(),
            label: Label::Public,
            filter_budgets: None,
            budgets: vec![],
            limit: None,
            normalize: None,
            run: RunRequest::default(),
        }
    }
}

impl TrainRequest {
    /// The loss that was asked for by name or in the network's file; absent where the labels decide.
    pub(super) fn target_loss(&self) -> Result<Option<Loss>> {
        match self.loss {
            Some(loss) => Ok(Some(loss)),
            None if model::is_file(&self.network) => Ok(Some(model::loss_of_file(&self.network)?)),
            None => Ok(None),
        }
    }
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
    match request.run.precision {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, listener),
        Precision::F64 => run_in::<f64>(request, out, listener),
    }
}

fn run_in<T: Real>(args: &TrainRequest, out: &Path, listener: &Listener<'_>) -> Result<TrainOutcome> {
    let wanted = wanted(args)?;
    let scale = args.normalize.unwrap_or([0.0, 1.0]);
    let folder = folder(args, out)?;
    let resumed = if args.run.resume { Some(Resumed::read(folder.path())?) } else { None };
    let replaced = if args.run.resume { None } else { account::replaced(folder.path()) };
    let stored = resumed.as_ref().map(Resumed::seed);
    let seed = args.run.seed.or(stored).unwrap_or_else(crate::seed::draw);

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
    let mut net =
        Network::<T>::new(spec, seed)?.on(args.run.device.backend_in(Some(args.run.precision))?)?;
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
        resumed.check(&config, net.spec(), &start, args.run.epsilon.is_some())?;
    }
    let seed_drawn = args.run.seed.is_none() && stored.is_none();
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
    let folder = Folder::open(out, args.run.format)?;
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
        clip_assumed: args.run.release.clip.is_none(),
        public: args.public.iter().map(|p| model::name_of(&p.to_string_lossy())).collect(),
        precision: args.run.precision,
        leaves: LEAVES.to_owned(),
        text: None,
        replaced,
        redact: args.run.redact,
    }
}

/// What of a run's folder may leave the house.
pub(super) const LEAVES: &str = "model.safetensors and network.json";

/// The network that was asked for; a preset gets outputs and loss that suit the labels.
pub(super) fn spec<T: Real>(args: &TrainRequest, source: &mut Source<T>) -> Result<NetSpec> {
    if Preset::of_name(&args.network).is_none() {
        return model::spec(&args.network, source.shape, 1, None);
    }
    let loss = match args.loss {
        Some(loss) => Some(loss),
        None => {
            if source.guesses_loss() {
                source.names.guessed.push("the loss (give ⟨loss⟩)");
            }
            source.own_loss()?
        }
    };
    let outputs = match args.outputs {
        Some(0) => return Err(Failure::number("outputs", 0, "expected at least 1")),
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
        return Err(Failure::number("limit", 0, "expected at least 1"));
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
    positive("batch", args.batch)?;
    args.run.check()?;
    if args.run.rate.is_some() {
        if args.sampling == Sampling::Shuffle {
            return Err(Failure::option("rate", "shuffled batches have a size, no rate: leave it out"));
        }
        if args.limit.is_some() && args.run.is_noisy() {
            let message = "with ⟨rate⟩ and noise neighbouring data sets differ in a record that is there or is not, and one more \
                           among the first would push another out: cut the file, or leave ⟨rate⟩ out, which makes the number of \
                           records public";
            return Err(Failure::option("limit", message));
        }
    }
    if args.loss.is_some() && model::is_file(&args.network) {
        let message = "the network file says its loss: change it there, or name a preset";
        return Err(Failure::option("loss", message));
    }
    Ok(())
}
