//! `leakscope attack`: how often is a secret attribute guessed?

use super::noise_args::ShapeArgs;
use super::run_args::{OutArgs, RedactArgs, TestArgs, request};
use super::table_args::{ModelArgs, TableArgs};
use crate::progress::Display;
use leakscope::Result;
use leakscope::attack::{self, Playing};
use leakscope::audit::Request;
use leakscope::output::Pending;
use leakscope::saving::{ATTACK, attack_texts};
use leakscope_core::attack::Attack;
use leakscope_table::RecordsFormat;
use std::process::ExitCode;

/// Play the attacks of the papers against the model, and see how often a secret attribute is guessed.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// The attribute to guess: a category, or a number (in bins)
    #[arg(long, value_name = "ATTRIBUTE")]
    secret: String,
    /// Values that the attackers consider [default: all that occur]
    #[arg(long, value_name = "VALUE,…", value_delimiter = ',')]
    pub(crate) candidates: Vec<String>,
    /// Bins of a numeric secret with more values than that
    #[arg(long, value_name = "N", default_value_t = 4)]
    bins: usize,
    /// Noise scales to try [default: sixteen, from mean η = 100 down to 0.01]
    #[arg(long, alias = "sigma", value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    sigmas: Vec<f64>,
    /// Noise vectors for every scale
    #[arg(long, value_name = "N", default_value_t = 100)]
    trials: usize,
    /// Attackers to play [default: all]
    #[arg(long, value_enum, value_name = "ATTACK,…", value_delimiter = ',')]
    attacks: Vec<Attack>,
    /// Play against noise that is made for this largest η; its σ is that of isotropic noise of the same cost
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    target_eta: Option<f64>,
    /// Play against noise under which no unbiased estimate of an attribute is closer than this; may be repeated
    #[arg(long, value_name = "ATTRIBUTE=VALUE")]
    target_sd: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Also attack the model after this many balancing iterations (for the secret)
    #[arg(long, value_name = "N", default_value_t = 0)]
    balance: usize,
    #[command(flatten)]
    test: TestArgs,
    /// Seed of the noise and of the split [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    output: OutArgs,
}

/// What is asked for.
pub(crate) fn request_of(args: &Args) -> Result<(Request, Playing)> {
    let base = request(&args.table, &args.model, &args.test, args.seed)?;
    let noise = args.shape.noise(&args.table, args.target_eta, &args.target_sd)?;
    let base = Request { noise, redact: args.redact.redact, ..base };
    let playing = Playing {
        secret: args.secret.clone(),
        candidates: args.candidates.clone(),
        bins: args.bins,
        attacks: args.attacks.clone(),
        sigmas: args.sigmas.clone(),
        trials: args.trials,
        balance: args.balance,
    };
    Ok((base, playing))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (base, playing) = request_of(args)?;
    args.output.run.start()?;
    let folder = args.output.folder(RecordsFormat::Parquet)?;
    if let Some(folder) = &folder {
        folder.spare(&base.inputs(), ATTACK.texts, ATTACK.tables)?;
    }
    let display =
        Display::start(args.output.run.quiet || args.output.run.json, args.output.out.clone())?.may_end();
    let mut attack_outcome = attack::run(&base, &playing, &display.hooks)?;
    display.finish();
    let json = leakscope_report::owners_document(&attack_outcome);
    let mut written = vec![];
    if let Some(folder) = &folder {
        let mut pending = Pending::default();
        attack_texts(folder, &mut pending, &attack_outcome)?;
        written = folder.publish(pending)?;
    }
    args.output.run.warn(&std::mem::take(&mut attack_outcome.warnings));
    args.output.run.show(&json, &attack::summary(&attack_outcome), &written);
    if !args.output.run.quiet && args.seed.is_none() {
        crate::note!("seed {} (drawn; give it with --seed to repeat this)", attack_outcome.seed);
    }
    Ok(ExitCode::SUCCESS)
}
