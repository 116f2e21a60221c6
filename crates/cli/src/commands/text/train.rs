//! `leakscope text train`: a language model fine-tuned on texts, in private where there is noise.

use super::super::net::ReleaseArgs;
use super::super::net::train::shown;
use super::super::run_args::{RedactArgs, RunArgs};
use leakscope::Result;
use leakscope::net::train::Track;
use leakscope::net::{Device, Precision};
use leakscope::text::Long;
use leakscope::text::train::{TextTrainRequest, run as train};
use leakscope_net::text::Trained;
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Fine-tune a language model on texts, with DP-SGD where there is noise.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Files of texts, one a line; of JSON lines (.jsonl) the field that --field names
    #[arg(required = true, value_name = "TEXTS")]
    texts: Vec<PathBuf>,
    /// A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint; taken to be public
    #[arg(long, value_name = "DIR|FILE")]
    model: PathBuf,
    /// Its tokeniser [default: that of the folder]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The field with the text, of JSON lines
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// The field that says whose a text is, of JSON lines: users are drawn and clipped with all their texts, and ε is for a
    /// user [default: for a text]
    #[arg(long, value_name = "NAME")]
    user_field: Option<String>,
    /// What becomes of a text that is longer than the context of the model; one that is cut is still clipped whole
    #[arg(long, value_enum, default_value_t = Long::Refuse)]
    long: Long,
    /// Files of texts that are not trained on: how well such are predicted. Nothing is promised to them
    #[arg(long, alias = "holdout", num_args = 1.., value_name = "FILE")]
    test: Vec<PathBuf>,
    /// What is fine-tuned
    #[arg(long, value_enum, value_name = "PART", default_value = "all")]
    layers: Trained,
    /// Rank of adapters
    #[arg(long, value_name = "R", default_value_t = 8)]
    rank: usize,
    /// Passes over the texts
    #[arg(long, value_name = "N", conflicts_with = "steps", allow_negative_numbers = true)]
    epochs: Option<f64>,
    /// Steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Texts (or users) that a step is expected to draw
    #[arg(long, value_name = "N", default_value_t = 32.0, allow_negative_numbers = true)]
    batch: f64,
    /// Probability of each text (or user) to be drawn in a step; the sum of gradients is then divided by --batch, and their
    /// number stays private [default: --batch over their number, which is taken to be public]
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
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
    /// Weight decay
    #[arg(long, value_name = "W", default_value_t = 0.0, allow_negative_numbers = true)]
    weight_decay: f64,
    /// Keep what texts give away: of a random panel at every step and besides of those drawn, of those drawn alone, or of every
    /// one at every step
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "panel")]
    track: Option<Track>,
    /// Random probes of each trace that --track keeps
    #[arg(long, value_name = "N", default_value_t = 4, requires = "track")]
    probes: usize,
    /// Drop a text (or user) from further steps before the run would cost it more than this ε (at --delta); costs a pass over
    /// the texts a step
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    filter_epsilon: Option<f64>,
    /// Write a checkpoint after every so many steps [default: twenty times in a run, or once an epoch]
    #[arg(long, value_name = "STEPS")]
    checkpoint_every: Option<u64>,
    /// Go on from the checkpoint in --out, with the same flags; --steps may be larger (with --epsilon it may not: the noise
    /// was solved for it)
    #[arg(long)]
    resume: bool,
    /// Seed of first adapters and of probes, in a run without noise also of its batches [default: drawn from the system, and
    /// printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let batches and noise of a run with noise follow from the seed too, so that it can be repeated. Whoever knows the
    /// seed can take the noise off: no ε is stated
    #[arg(long)]
    not_private_noise_from_seed: bool,
    /// Folder for the model (in model/), training.json, records.parquet, report.html and the checkpoint
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = RecordsFormat::Parquet)]
    format: RecordsFormat,
    /// Numbers that the model computes with
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    /// Where the model computes: cpu, cuda, cuda:1 (the number of a GPU) or auto
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    fn request(&self) -> TextTrainRequest {
        TextTrainRequest {
            model: self.model.clone(),
            tokenizer: self.tokenizer.clone(),
            texts: self.texts.clone(),
            list: vec![],
            field: self.field.clone(),
            user_field: self.user_field.clone(),
            users: vec![],
            long: self.long,
            test: self.test.clone(),
            test_list: vec![],
            layers: self.layers,
            rank: self.rank,
            epochs: self.epochs,
            steps: self.steps,
            batch: self.batch,
            rate: self.rate,
            lr: self.lr,
            momentum: self.momentum,
            adam: self.adam,
            release: self.release.request(),
            epsilon: self.epsilon,
            delta: self.delta,
            weight_decay: self.weight_decay,
            track: self.track,
            probes: self.probes,
            filter_epsilon: self.filter_epsilon,
            checkpoint_every: self.checkpoint_every,
            resume: self.resume,
            seed: self.seed,
            not_private_noise_from_seed: self.not_private_noise_from_seed,
            format: self.format,
            precision: self.precision,
            device: self.device,
            redact: self.redact.redact,
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.run.start()?;
    let request = args.request();
    let noisy = request.release.sigma.is_some() || request.epsilon.is_some();
    let private = noisy && !request.not_private_noise_from_seed;
    shown(&args.run, &args.out, private, |listener| train(&request, &args.out, listener).map(|done| done.run))
}
