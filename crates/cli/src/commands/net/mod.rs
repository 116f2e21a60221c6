//! `leakscope net`: private training of networks, and what their gradients give away.

mod attack;
mod audit;
mod demo;
pub(super) mod train;

use super::run_args::{RedactArgs, RunArgs};
use crate::progress::Display;
use leakscope::net::audit::TraceRequest;
use leakscope::net::{ClipKind, Device, Precision, ReleaseRequest};
use leakscope::{Failure, Result};
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Train networks in private, and measure what their gradients give away.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug, Clone)]
enum Command {
    /// Train a network (DP-SGD with --sigma), keeping what every record gives away (--track)
    Train(Box<train::Args>),
    /// Measure what a gradient step of a trained network gives away about every record
    Audit(Box<audit::Args>),
    /// Attack a network: what its gradients give away
    Attack(Box<attack::Args>),
    /// A private regression on synthetic records: which of their values it gives away
    Demo(demo::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Train(args) => train::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Attack(args) => attack::run(args),
        Command::Demo(args) => demo::run(args),
    }
}

/// How gradients are clipped, and the noise.
#[derive(clap::Args, Debug, Clone)]
pub(super) struct ReleaseArgs {
    /// Clip gradients at this norm, C [default: 1 in training where there is noise; in an audit that of the run, of texts not at all]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// How they are clipped [default: hard where there is a --clip]
    #[arg(long, value_enum, value_name = "KIND")]
    clip_kind: Option<ClipKind>,
    /// Noise multiplier: the noise on the sum of gradients has standard deviation σC (σ where nothing is clipped)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
}

impl ReleaseArgs {
    pub(super) fn request(&self) -> ReleaseRequest {
        ReleaseRequest { clip: self.clip, clip_kind: self.clip_kind, sigma: self.sigma }
    }
}

/// `MEAN,SD`.
fn normalize(text: Option<&str>) -> Result<Option<[f64; 2]>> {
    let Some(text) = text else { return Ok(None) };
    let parts: Vec<Option<f64>> = text.split(',').map(|p| p.trim().parse().ok()).collect();
    match parts[..] {
        [Some(mean), Some(sd)] if f64::is_finite(mean) && f64::is_finite(sd) && sd > 0.0 => {
            Ok(Some([mean, sd]))
        }
        _ => Err(Failure::option("normalize", format!("`{text}`: expected MEAN,SD such as 0.1307,0.3081"))),
    }
}

/// Options of every question about a network that was trained.
#[derive(clap::Args, Debug, Clone)]
struct OverArgs {
    /// Scale values to (x − mean)/sd [default: as in training, else not]
    #[arg(long, value_name = "MEAN,SD", allow_hyphen_values = true)]
    normalize: Option<String>,
    /// No pictures of records on the page
    #[arg(long)]
    no_pictures: bool,
    /// Seed of what is drawn: records, probes, starts and noise of attacks [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for the document, records.parquet and report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = RecordsFormat::Parquet)]
    format: RecordsFormat,
    /// Numbers that the network computes with [default: as in training, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Where the network computes: cpu, cuda, cuda:1 (the number of a GPU) or auto
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl OverArgs {
    /// Says which seed was drawn, where one was.
    fn on_seed<'a>(&self, display: &'a Display, question: &'a str) -> impl Fn(u64) + use<'a> {
        let is_shown = !(self.run.quiet || self.run.json) && self.seed.is_none();
        move |seed: u64| {
            if is_shown {
                display
                    .remark(&format!("seed {seed} (drawn; give it with --seed to repeat this {question})"));
            }
        }
    }
}

/// `exact`, `elements`, `skip` or a number of probes.
pub(super) fn trace(text: &str) -> std::result::Result<TraceRequest, String> {
    match text {
        "exact" => Ok(TraceRequest::Exact),
        "elements" => Ok(TraceRequest::Elements),
        "skip" => Ok(TraceRequest::Skip),
        text => match text.parse::<usize>() {
            Ok(probes) if probes >= 2 => Ok(TraceRequest::Probes(probes)),
            _ => Err("expected exact, elements, skip, or a number of probes from 2".into()),
        },
    }
}
