//! `leakscope text audit`: what one noisy step of fine-tuning tells about every text.

use super::super::net::{self, ReleaseArgs};
use super::super::run_args::{OutArgs, RedactArgs};
use super::SourceArgs;
use crate::progress::Display;
use leakscope::Result;
use leakscope::net::audit::TraceRequest;
use leakscope::net::{Device, Precision};
use leakscope::text::audit::{self, TextAuditRequest};
use leakscope_net::leak::Signal;
use leakscope_report::{owners_document, text_audit_summary};
use leakscope_table::RecordsFormat;
use std::process::ExitCode;

/// Measure what one noisy step of fine-tuning on texts tells about each of them, and which words.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    release: ReleaseArgs,
    /// The trace of the information: `exact`, a number of random probes, or `skip`
    #[arg(long, value_name = "exact|PROBES|skip", default_value = "10", value_parser = trace)]
    trace: TraceRequest,
    /// Leave η out (Lanczos: the most costly part)
    #[arg(long)]
    no_eta: bool,
    /// Of which gradient PLIS is
    #[arg(long, value_enum, default_value_t = Signal::Raw)]
    plis: Signal,
    /// A secret in the texts whose exposure is asked for; may be given often
    #[arg(long = "secret", value_name = "TEXT", requires = "secret_pattern")]
    secrets: Vec<String>,
    /// What secrets might be: # is a digit, {luhn} the check digit of those before it, {date:1980-1989} a day, {a|b} a choice
    #[arg(long, value_name = "PATTERN", requires = "secrets")]
    secret_pattern: Option<String>,
    /// No texts on the page
    #[arg(long)]
    no_texts: bool,
    /// Seed of probes and adapters [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
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
    output: OutArgs,
}

fn trace(text: &str) -> std::result::Result<TraceRequest, String> {
    match net::trace(text) {
        Ok(TraceRequest::Elements) | Err(_) => {
            Err("expected exact, skip, or a number of probes from 2".into())
        }
        of => of,
    }
}

impl Args {
    fn request(&self) -> TextAuditRequest {
        TextAuditRequest {
            source: self.source.request(),
            release: self.release.request(),
            trace: self.trace,
            eta: !self.no_eta,
            plis: self.plis,
            secrets: self.secrets.clone(),
            secret_pattern: self.secret_pattern.clone(),
            show: !self.no_texts,
            seed: self.seed,
            precision: self.precision,
            device: self.device,
            redact: self.redact.redact,
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.output.run.start()?;
    let display = Display::start(args.output.run.quiet || args.output.run.json, args.output.out.clone())?;
    let folder = args.output.folder(args.format)?;
    let outcome = audit::run(&args.request(), folder.as_ref(), &display.hooks)?;
    display.finish();
    let (audit, written) = match &folder {
        Some(folder) => audit::publish(folder, outcome)?,
        None => (outcome.audit, vec![]),
    };
    args.output.run.warn(&audit.warnings);
    args.output.run.show(&owners_document(&audit), &text_audit_summary(&audit), &written);
    if !args.output.run.quiet && args.seed.is_none() {
        crate::note!("seed {} (drawn; give it with --seed to repeat this)", audit.seed);
    }
    Ok(ExitCode::SUCCESS)
}
