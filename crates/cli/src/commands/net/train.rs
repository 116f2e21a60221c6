//! `leakscope net train`: a network, in private where there is noise.

use super::data::{Part, Reading, Source, test_beside};
use super::resume::{Resumed, Start};
use super::run::{CHECKPOINT, Plan, train};
use super::{Precision, ReleaseArgs, account, model, normalize, random_seed, records_format, use_threads};
use crate::commands::audit::{FormatArg, LabelArg};
use crate::output::Folder;
use crate::{Failure, Result};
use clap::ValueEnum;
use leakscope_net::{
    Clip, Network, Real,
    leak::Label,
    train::{Optimizer, Privacy, Sampling, Tracking, TrainConfig, sigma_for},
};
use leakscope_report::net::Stopped;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Train a network, with DP-SGD where there is noise.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// A folder (MNIST's idx files, train.safetensors or train.npz), two idx files (images, labels), a safetensors file
    /// with x and y, or an npz file with train_images and train_labels (or x_train and y_train, or x and y)
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Measure accuracy on these [default: the test records of the --data folder or npz file, else training records]
    #[arg(long, num_args = 1.., value_name = "PATH")]
    test: Vec<PathBuf>,
    /// A preset (linear, mlp, mlp-attack, cnn-mnist, cnn-cifar) or a network file in JSON
    #[arg(long, value_name = "NAME|FILE")]
    network: String,
    /// Outputs of a preset (a network file says its own) [default: one more than the largest class; 1 is one output for
    /// two classes]
    #[arg(long, value_name = "K")]
    outputs: Option<usize>,
    /// Passes over the data
    #[arg(long, value_name = "N", conflicts_with = "steps", allow_negative_numbers = true)]
    epochs: Option<f64>,
    /// Steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Records in a batch; with Poisson sampling the expected number
    #[arg(long, value_name = "N", default_value_t = 256.0, allow_negative_numbers = true)]
    batch: f64,
    /// Learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.1, allow_negative_numbers = true)]
    lr: f64,
    /// Momentum of SGD
    #[arg(
        long,
        value_name = "MU",
        default_value_t = 0.9,
        allow_negative_numbers = true,
        conflicts_with = "adam"
    )]
    momentum: f64,
    /// Adam instead of SGD
    #[arg(long)]
    adam: bool,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Instead of --sigma: the noise for which the whole run has this ε at --delta
    #[arg(long, value_name = "E", conflicts_with = "sigma", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ of the privacy statement [default: 1e-5]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// How batches are drawn
    #[arg(long, value_enum, default_value_t = SamplingArg::Poisson)]
    sampling: SamplingArg,
    /// Weight decay
    #[arg(long, value_name = "W", default_value_t = 0.0, allow_negative_numbers = true)]
    weight_decay: f64,
    /// Layers whose parameters stay as they are, by number: the N of layers.N in model.safetensors, which counts all
    /// layers from 0, a residual block before those inside it; the number of a block freezes all of it
    #[arg(long, value_name = "LAYER,…", value_delimiter = ',')]
    freeze: Vec<usize>,
    /// Train only the largest of the given weights: this share of them, the smallest in size, stays as it is
    #[arg(long, value_name = "SHARE", requires = "pretrain", allow_negative_numbers = true)]
    freeze_smallest: Option<f64>,
    /// Start from these weights, taken to be public (safetensors)
    #[arg(long, value_name = "FILE")]
    pretrain: Option<PathBuf>,
    /// Keep what records give away at every step: of those drawn (unbiased) or of every one
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "drawn")]
    track: Option<TrackArg>,
    /// Random probes of each trace that --track keeps
    #[arg(long, value_name = "N", default_value_t = 4, requires = "track")]
    probes: usize,
    /// Whether the label is part of the secret that --track keeps account of
    #[arg(long, value_enum, default_value_t = LabelArg::Public)]
    label: LabelArg,
    /// Write a checkpoint after every so many steps [default: twenty times in a run, or once an epoch]
    #[arg(long, value_name = "STEPS")]
    checkpoint_every: Option<u64>,
    /// Go on from the checkpoint in --out, with the same flags; --steps may be larger (with --epsilon it may not: the noise
    /// was solved for it)
    #[arg(long)]
    resume: bool,
    /// Seed of everything random [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Use only the first records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Scale values to (x − mean)/sd; bytes are divided by 255 first. MNIST: 0.1307,0.3081
    #[arg(long, value_name = "MEAN,SD", allow_hyphen_values = true)]
    normalize: Option<String>,
    /// Folder for model.safetensors, network.json, training.json, records.parquet, report.html and the checkpoint
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = FormatArg::Parquet)]
    format: FormatArg,
    /// Print training.json to stdout, and nothing else there
    #[arg(long)]
    json: bool,
    /// No remarks and no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Numbers that the network computes with
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum SamplingArg {
    /// Every record with the same probability, independently: what accountants assume
    Poisson,
    /// Fixed batches from a shuffled order; no amplification is claimed
    Shuffle,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum TrackArg {
    /// Those drawn, weighted by 1/q
    Drawn,
    /// All of them, at the cost of a pass over the data a step
    Every,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    use_threads(args.threads)?;
    check(args)?;
    match args.precision {
        Precision::F32 => run_in::<f32>(args),
        Precision::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &Args) -> Result<ExitCode> {
    let wanted = wanted(args)?;
    let scale = normalize(args.normalize.as_deref())?.unwrap_or([0.0, 1.0]);
    let folder = Folder::open(&args.out, records_format(args.format))?;
    let read = args.data.iter().chain(&args.test).chain(&args.pretrain).map(PathBuf::as_path);
    let read: Vec<&Path> = read.chain([Path::new(&args.network)]).collect();
    let texts = [model::NETWORK, model::WEIGHTS, model::TRAINING, CHECKPOINT, "report.html"];
    folder.spare(&read, &texts, &["records"])?;
    let resumed = if args.resume { Some(Resumed::read(folder.path())?) } else { None };
    let stored = resumed.as_ref().map(Resumed::seed);
    let seed = args.seed.or(stored).unwrap_or_else(random_seed);

    let reading = Reading { flag: "--data", part: Part::Train, normalize: scale, limit: args.limit };
    let mut source = Source::<T>::read(&args.data, reading)?;
    let outputs = match args.outputs {
        Some(0) => return Err(Failure::flag("--outputs", "0: expected at least 1")),
        Some(k) => k,
        None => source.outputs().unwrap_or(1),
    };
    let mut spec = model::spec(&args.network, source.shape, outputs)?;
    model::freeze(&mut spec, &args.freeze)?;
    let mut net = Network::<T>::new(spec, seed)?;
    let pretrained =
        args.pretrain.as_ref().map(|weights| model::load_weights(&mut net, weights)).transpose()?;
    if let Some(share) = args.freeze_smallest {
        model::freeze_smallest(&mut net, share)?;
    }
    let data = source.take_data(&net)?;
    let test_files = if args.test.is_empty() { test_beside(&args.data) } else { Some(args.test.clone()) };
    let test = match &test_files {
        Some(files) => {
            let reading = Reading { flag: "--test", part: Part::Test, normalize: scale, limit: None };
            Some(Source::read(files, reading)?.take_data(&net)?)
        }
        None => None,
    };

    let plan = plan(args, data.len(), folder.path().to_path_buf())?;
    let config = config(args, wanted, plan.steps, data.len(), seed)?;
    let start = Start { pretrained, freeze_smallest: args.freeze_smallest, steps: plan.steps };
    if let Some(resumed) = &resumed {
        resumed.check(&config, net.spec(), &start, args.epsilon.is_some())?;
    }
    if args.seed.is_none() && stored.is_none() && !args.quiet && !args.json {
        eprintln!("seed {seed} (drawn; give it with --seed to repeat this run)");
    }
    let ended = train(net, &data, test.as_ref(), config, &plan, start, resumed)?;
    let facts = account::Facts {
        name: model::name_of(&args.network),
        files: source.files.clone(),
        normalize: scale,
        test_records: test.as_ref().map(|t| t.len() as u64),
        clip_assumed: args.release.clip.is_none(),
        precision: args.precision,
    };
    account::finish(&ended, &data, &facts, &plan, &folder, args.json, args.quiet)?;
    match (ended.stopped, ended.failure) {
        (Stopped::Finished, _) => Ok(ExitCode::SUCCESS),
        (Stopped::Interrupted, _) => {
            let (at, of) = (ended.run.steps(), plan.steps);
            eprintln!("stopped after step {at} of {of}; go on with --resume");
            Ok(ExitCode::from(130))
        }
        (Stopped::Diverged, failure) => {
            let (why, at, kept) = (failure.unwrap_or_default(), ended.run.steps(), folder.path().display());
            let advice = if wanted.is_some() { "lower --lr" } else { "lower --lr, or clip gradients" };
            Err(Failure::Message(format!(
                "{why}; the last good checkpoint and model, of step {at}, are in {kept}: {advice}"
            )))
        }
    }
}

fn check(args: &Args) -> Result<()> {
    let positive = |flag: &str, v: f64| match v > 0.0 && v.is_finite() {
        true => Ok(()),
        false => Err(Failure::flag(flag, format!("{v}: expected a positive number"))),
    };
    positive("--batch", args.batch)?;
    positive("--lr", args.lr)?;
    if let Some(epochs) = args.epochs {
        positive("--epochs", epochs)?;
    }
    if !(0.0..1.0).contains(&args.momentum) {
        return Err(Failure::flag("--momentum", format!("{}: expected at least 0, below 1", args.momentum)));
    }
    if let Some(epsilon) = args.epsilon {
        positive("--epsilon", epsilon)?;
    }
    if let Some(delta) = args.delta {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Failure::flag("--delta", format!("{delta}: expected between 0 and 1")));
        }
        if args.release.sigma.is_none() && args.epsilon.is_none() {
            let message = "without noise nothing is promised: give --sigma or --epsilon too, or leave it out";
            return Err(Failure::flag("--delta", message));
        }
    }
    if args.outputs.is_some() && model::is_file(&args.network) {
        let message = "the network file says how many outputs it has: change it there, or name a preset";
        return Err(Failure::flag("--outputs", message));
    }
    for (flag, value) in [("--checkpoint-every", args.checkpoint_every), ("--steps", args.steps)] {
        if value == Some(0) {
            return Err(Failure::flag(flag, "0: expected at least 1"));
        }
    }
    if args.limit == Some(0) {
        return Err(Failure::flag("--limit", "0: expected at least 1"));
    }
    Ok(())
}

/// How much noise was asked for.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Sigma(f64),
    /// As much as makes the whole run cost this ε.
    Epsilon(f64),
}

/// Clipping and noise, or neither.
fn wanted(args: &Args) -> Result<Option<(Clip, Noise)>> {
    let noise = args.release.sigma()?.map(Noise::Sigma).or(args.epsilon.map(Noise::Epsilon));
    match (noise, args.release.clip()?) {
        (Some(_), Some(Clip::None)) => Err(Failure::flag(
            "--clip-kind",
            "none: without a clip there is no privacy; give --clip, or no noise",
        )),
        (Some(noise), clip) => Ok(Some((clip.unwrap_or(Clip::Hard { bound: 1.0 }), noise))),
        (None, None | Some(Clip::None)) if args.track.is_some() => Err(Failure::flag(
            "--track",
            "what records give away is only finite under noise: give --sigma or --epsilon",
        )),
        (None, None | Some(Clip::None)) => Ok(None),
        (None, Some(_)) => {
            Err(Failure::flag("--clip", "give the noise too, for example --sigma 1 or --epsilon 1"))
        }
    }
}

fn config(
    args: &Args,
    wanted: Option<(Clip, Noise)>,
    steps: u64,
    records: usize,
    seed: u64,
) -> Result<TrainConfig> {
    let (n, delta) = (records as f64, args.delta.unwrap_or(1e-5));
    if args.batch > n {
        return Err(Failure::flag("--batch", format!("{}: there are only {records} records", args.batch)));
    }
    let sampling = match args.sampling {
        SamplingArg::Poisson => Sampling::Poisson { rate: args.batch / n },
        SamplingArg::Shuffle if args.batch.fract() != 0.0 => {
            return Err(Failure::flag(
                "--batch",
                format!("{}: shuffled batches hold whole records", args.batch),
            ));
        }
        SamplingArg::Shuffle => Sampling::Shuffle { batch: args.batch as usize },
    };
    let privacy = match wanted {
        None => None,
        Some((clip, Noise::Sigma(sigma))) => Some(Privacy { clip, sigma }),
        Some((clip, Noise::Epsilon(epsilon))) => {
            let sigma = sigma_for(epsilon, delta, clip, sampling, steps, records)
                .map_err(|e| Failure::flag("--epsilon", e))?;
            Some(Privacy { clip, sigma })
        }
    };
    let probes = args.probes;
    Ok(TrainConfig {
        optimizer: if args.adam { Optimizer::adam() } else { Optimizer::Sgd { momentum: args.momentum } },
        learning_rate: args.lr,
        weight_decay: args.weight_decay,
        sampling,
        privacy,
        tracking: match args.track {
            None => Tracking::Off,
            Some(TrackArg::Drawn) => Tracking::Drawn { probes },
            Some(TrackArg::Every) => Tracking::Every { probes },
        },
        label: match args.label {
            LabelArg::Secret => Label::Secret,
            LabelArg::Public => Label::Public,
        },
        delta,
        seed,
    })
}

fn plan(args: &Args, records: usize, folder: PathBuf) -> Result<Plan> {
    let epoch = (records as f64 / args.batch).round().max(1.0) as u64;
    let steps = match (args.steps, args.epochs) {
        (Some(steps), _) => steps,
        // `as` saturates
        (None, epochs) => ((epochs.unwrap_or(1.0) * records as f64 / args.batch).round() as u64).max(1),
    };
    let report_every = epoch.min(steps.div_ceil(20)).max(1);
    let checkpoint_every = args.checkpoint_every.unwrap_or(report_every);
    Ok(Plan { steps, report_every, checkpoint_every, folder, quiet: args.quiet || args.json })
}
