//! Options that every training run has, of a network or of a language model, and what is shown of it.

use super::net::ReleaseArgs;
use super::run_args::{RedactArgs, RunArgs};
use crate::progress::Display;
use leakscope::net::train::{Listener, RunRequest, Tracked, TrainOutcome};
use leakscope::net::{Device, Precision};
use leakscope::{Failure, Result};
use leakscope_report::format;
use leakscope_report::net::{Point, Stopped, to_json, training_summary};
use leakscope_table::RecordsFormat;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a run goes.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct TrainingArgs {
    /// Passes over the data
    #[arg(long, value_name = "N", conflicts_with = "steps", allow_negative_numbers = true)]
    epochs: Option<f64>,
    /// Steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Probability of each record (text or user, of a language model) to be drawn in a step; the sum of gradients is then
    /// divided by --batch, and their number stays private [default: --batch over their number, which is taken to be public]
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
    /// Keep what records (or texts) give away: of a random panel at every step and besides of those drawn, of those drawn alone,
    /// or of every one at every step
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, default_missing_value = "panel")]
    track: Option<Tracked>,
    /// Random probes of each trace that --track keeps
    #[arg(long, value_name = "N", default_value_t = 4, requires = "track")]
    probes: usize,
    /// Drop a record (text or user) from further steps before the run would cost it more than this ε (at --delta); costs a pass
    /// over the data a step
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    filter_epsilon: Option<f64>,
    /// Write a checkpoint after every so many steps [default: twenty times in a run, or once an epoch]
    #[arg(long, value_name = "STEPS")]
    checkpoint_every: Option<u64>,
    /// Go on from the checkpoint in --out, with the same flags; --steps may be larger (with --epsilon it may not: the noise
    /// was solved for it)
    #[arg(long)]
    resume: bool,
    /// Seed of the initial weights (or adapters) and of probes, in a run without noise also of its batches [default: drawn from
    /// the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Let batches and noise of a run with noise follow from the seed too, so that it can be repeated. Whoever knows the
    /// seed can take the noise off: no ε is stated
    #[arg(long)]
    not_private_noise_from_seed: bool,
    /// Folder for the model, training.json, records.parquet, report.html and the checkpoint
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = RecordsFormat::Parquet)]
    format: RecordsFormat,
    /// Numbers that the network computes with
    #[arg(long, value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    /// Where the network computes: cpu, cuda, cuda:1 (the number of a GPU) or auto
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl TrainingArgs {
    pub(crate) fn request(&self) -> RunRequest {
        RunRequest {
            epochs: self.epochs,
            steps: self.steps,
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

    /// Trains, with progress, and shows what came of it.
    pub(crate) fn train(
        &self,
        train: impl FnOnce(&Path, &Listener<'_>) -> Result<TrainOutcome>,
    ) -> Result<ExitCode> {
        let run = &self.run;
        let (silent, private) = (run.quiet || run.json, self.request().is_private());
        let display = Display::start(silent, Some(self.out.clone()))?;
        let listener = Listener {
            hooks: &display.hooks,
            on_point: &|point| display.note(|| line(point)),
            on_seed: &|seed| {
                if !silent {
                    display.remark(&match private {
                        true => format!(
                            "seed {seed} (drawn; of first weights and probes: noise and batches are not repeated)"
                        ),
                        false => format!("seed {seed} (drawn; give it with --seed to repeat this run)"),
                    });
                }
            },
        };
        let outcome = train(&self.out, &listener)?;
        display.finish();
        let training = &outcome.training;
        if !(run.json && outcome.diverged.is_some()) {
            run.show(&to_json(training), &training_summary(training), &outcome.written);
        }
        if let Some(why) = outcome.diverged {
            return Err(Failure::Message(why));
        }
        match training.stopped {
            Stopped::Finished | Stopped::Diverged => Ok(ExitCode::SUCCESS),
            Stopped::Interrupted => {
                let (at, of) = (training.steps, training.planned_steps);
                crate::note!("stopped after step {at} of {of}; go on with --resume");
                Ok(ExitCode::from(130))
            }
        }
    }
}

/// Where the run stands, in one line: dFIL is the median record's, since the largest of noisy estimates is too large.
fn line(p: &Point) -> String {
    let each = [
        p.loss.map(|v| format!("loss {}", format::number(v))),
        p.accuracy.map(|v| format!("accuracy {}", format::share(v))),
        p.watched_loss
            .filter(|_| p.accuracy.is_none())
            .map(|v| format!("evaluated loss {}", format::number(v))),
        p.epsilon.map(|v| format!("ε {}", format::at_most(v))),
        p.dfil_median.map(|v| format!("median dFIL {}", format::number(v))),
    ];
    each.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
