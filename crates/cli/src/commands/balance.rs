//! `leakscope balance`: reweight until every record leaks the same.

use super::machines_args::MachinesArgs;
use super::noise_args::ShapeArgs;
use super::run_args::{OutArgs, RedactArgs, TestArgs, request};
use super::table_args::{ModelArgs, TableArgs};
use crate::progress::Display;
use leakscope::Result;
use leakscope::audit::Request;
use leakscope::balance::{self, Balancing, Outcome};
use leakscope::request::Noise;
use leakscope::saving::{BALANCE, balance_texts};
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_table::RecordsFormat;
use std::process::ExitCode;

/// Reweight records until all leak the same, and write the weights and the balanced model.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Balance what leaks about this attribute [default: about whole records]
    #[arg(long, value_name = "ATTRIBUTE")]
    attribute: Option<String>,
    /// Take the indicators of a category to sum to one
    #[arg(long, requires = "attribute")]
    sum_to_one: bool,
    /// Which records share a weight
    #[arg(long, value_enum, default_value_t = Sharing::Sample)]
    weights_per: Sharing,
    /// Which loss is equalised: with the weights as a factor (Hannun), or without (AM207)
    #[arg(long, value_enum, default_value_t = Variant::Weighted)]
    variant: Variant,
    /// How weights follow from one iteration to the next
    #[arg(long, value_enum, default_value_t = Update::Published)]
    update: Update,
    /// Smallest weight of a record; weights are clamped after their mean was set to 1, and may have another one then
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    min_weight: Option<f64>,
    /// Largest weight of a record
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    max_weight: Option<f64>,
    /// Reweightings at most
    #[arg(long, value_name = "N", default_value_t = 10)]
    iterations: usize,
    /// Stop when the standard deviation of η is at most this share of its mean
    #[arg(long, value_name = "SHARE", default_value_t = 1e-6, allow_negative_numbers = true)]
    tolerance: f64,
    /// Standard deviation of the noise on every coefficient
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_negative_numbers = true)]
    sigma: f64,
    #[command(flatten)]
    test: TestArgs,
    /// Seed of the split [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Format of the table of weights
    #[arg(long, value_enum, default_value_t = RecordsFormat::Parquet)]
    format: RecordsFormat,
    /// Compare what balancing and a shape of the noise buy for this largest η
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    target_eta: Option<f64>,
    /// Compare them for noise that lets no unbiased estimate of an attribute be closer than this; may be repeated
    #[arg(long, value_name = "ATTRIBUTE=VALUE")]
    target_sd: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    machines: MachinesArgs,
    #[command(flatten)]
    output: OutArgs,
}

/// What is asked for.
pub(crate) fn request_of(args: &Args) -> Result<(Request, Balancing)> {
    let base =
        Request { redact: args.redact.redact, ..request(&args.table, &args.model, &args.test, args.seed)? };
    let shaped = args.shape.noise(&args.table, args.target_eta, &args.target_sd)?;
    let base = match shaped {
        Noise::Shaped(_) => Request { noise: shaped, ..base },
        Noise::Default | Noise::Given(_) | Noise::TargetEta { .. } | Noise::TargetSd { .. } => {
            leakscope::model::plain(base, Some(args.sigma))
        }
    };
    let clamp = match (args.min_weight, args.max_weight) {
        (None, None) => None,
        (low, high) => Some((low.unwrap_or(0.0), high.unwrap_or(f64::MAX))),
    };
    let balancing = Balancing {
        attribute: args.attribute.clone(),
        sum_to_one: args.sum_to_one,
        sharing: args.weights_per,
        variant: args.variant,
        update: args.update,
        clamp,
        iterations: args.iterations,
        tolerance: args.tolerance,
        sigma: args.sigma,
    };
    Ok((base, balancing))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (base, balancing) = request_of(args)?;
    args.output.run.start()?;
    let folder = args.output.folder(args.format)?;
    if let Some(folder) = &folder {
        folder.spare(&base.inputs(), BALANCE.texts, BALANCE.tables)?;
    }
    let display =
        Display::start(args.output.run.quiet || args.output.run.json, args.output.out.clone())?.may_end();
    let Outcome { mut balance, mut pending } = args.machines.ask(base, &display.hooks, |base| {
        balance::run(&base, &balancing, folder.as_ref(), &display.hooks, |text| display.line(text))
    })?;
    display.finish();
    let json = leakscope_report::owners_document(&balance);
    let mut written = vec![];
    if let Some(folder) = &folder {
        balance_texts(folder, &mut pending, &balance)?;
        written = folder.publish(pending)?;
    }
    args.output.run.warn(&std::mem::take(&mut balance.warnings));
    args.output.run.show(&json, &balance::summary(&balance), &written);
    if let (false, None, Some(seed)) = (args.output.run.quiet, args.seed, balance.seed) {
        crate::note!("seed {seed} (drawn; give it with --seed to repeat this split)");
    }
    Ok(ExitCode::SUCCESS)
}
