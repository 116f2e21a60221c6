//! `leakscope net audit`: what one gradient step of a trained network gives away about every record.

use super::{OverArgs, ReleaseArgs, normalize, trace};
use crate::progress::Display;
use leakscope::Result;
use leakscope::net::audit::{NetAuditRequest, TraceRequest, run as audit};
use leakscope_net::leak::{Label, Signal};
use leakscope_report::net::{summary, to_json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure what one gradient step of a trained network gives away about every record.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// A folder that `net train` left: network.json, model.safetensors and, where there is one, training.json
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The training records: a folder, two idx files (images, labels), or a safetensors file with x and y; where the model
    /// was trained on a table, its files
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Use only the first records of --data
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How many records to measure, drawn by the seed, or `all`
    #[arg(long, value_name = "N|all", default_value = "1000")]
    #[arg(value_parser = records)]
    records: Records,
    /// The trace of the information: `exact`, `elements` (exact, and what each value of a record adds to it), a number of
    /// random probes, or `skip`
    #[arg(long, value_name = "exact|elements|PROBES|skip", default_value = "10")]
    #[arg(value_parser = trace)]
    trace: TraceRequest,
    /// Measure η and JacSens too (Lanczos: the most costly part)
    #[arg(long)]
    eta: bool,
    /// Measure PLIS too, and draw its maps: of the gradient that is released (clipped, as published), or of the raw one
    #[arg(long, value_enum, value_name = "OF", num_args = 0..=1, default_missing_value = "released")]
    plis: Option<Signal>,
    /// Draw PLIS over squares of so many pixels instead of every pixel, and list that of each with the records
    #[arg(long, value_name = "PIXELS", requires = "plis")]
    grid: Option<usize>,
    /// The same over regions: an idx file (or an npz file with one array) of height × width region numbers
    #[arg(long, value_name = "FILE", requires = "plis", conflicts_with = "grid")]
    superpixels: Option<PathBuf>,
    /// Whether the label is part of the secret [default: as in training, else public]
    #[arg(long, value_enum)]
    label: Option<Label>,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Another model (for example one trained without noise): its PLIS maps beside this one's
    #[arg(long, value_name = "DIR", requires = "plis")]
    compare: Option<PathBuf>,
    /// Points that were not trained on: are they out of distribution?
    #[arg(long, num_args = 1.., value_name = "PATH")]
    score: Vec<PathBuf>,
    #[command(flatten)]
    over: OverArgs,
}

/// How many records are measured; absent: all.
#[derive(Debug, Clone, Copy)]
struct Records(Option<usize>);

fn records(text: &str) -> std::result::Result<Records, String> {
    match text {
        "all" => Ok(Records(None)),
        text => match text.parse::<usize>() {
            Ok(k) if k > 0 => Ok(Records(Some(k))),
            _ => Err("expected a number from 1, or all".into()),
        },
    }
}

impl Args {
    fn request(&self) -> Result<NetAuditRequest> {
        Ok(NetAuditRequest {
            model: self.model.clone(),
            data: self.data.clone(),
            limit: self.limit,
            records: self.records.0,
            trace: self.trace,
            eta: self.eta,
            plis: self.plis,
            grid: self.grid,
            superpixels: self.superpixels.clone(),
            label: self.label,
            release: self.release.request(),
            compare: self.compare.clone(),
            score: self.score.clone(),
            normalize: normalize(self.over.normalize.as_deref())?,
            pictures: !self.over.no_pictures,
            seed: self.over.seed,
            format: self.over.format,
            precision: self.over.precision,
            device: self.over.device,
            redact: self.over.redact.redact,
        })
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let OverArgs { run, out, .. } = &args.over;
    run.start()?;
    let request = args.request()?;
    let display = Display::start(run.quiet || run.json, out.clone())?;
    let on_seed = args.over.on_seed(&display, "audit");
    let outcome = audit(&request, out.as_deref(), &display.hooks, &on_seed)?;
    drop(on_seed);
    display.finish();
    run.show(&to_json(&outcome.audit), &summary(&outcome.audit), &outcome.written);
    Ok(ExitCode::SUCCESS)
}
