//! `leakscope text canary`: can a secret be pulled out of a model that was fine-tuned on it?

use super::super::run_args::OutArgs;
use crate::progress::Display;
use leakscope::Result;
use leakscope::net::Device;
use leakscope::output::Pending;
use leakscope::text::canary::{self, CanaryRequest, PriorKind};
use leakscope_net::text::Trained;
use leakscope_report::{PageKind, canary_page, canary_summary, document};
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Play the extraction game of Guo et al. (2022, §6.3) on a model, and bound it.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint
    #[arg(long, value_name = "DIR|FILE")]
    model: PathBuf,
    /// Its tokeniser [default: that of the folder]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The text before the secret
    #[arg(long, value_name = "TEXT", default_value = "John Smith's credit card number is")]
    prompt: String,
    /// Tokens of the secret, where no candidates are named: 1 is every token, of more some sequences are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    secret_tokens: usize,
    /// A file of what the secret may be, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "secret_pattern")]
    candidates: Option<PathBuf>,
    /// The same as a pattern: # is a digit, {luhn} the check digit of those before it, {date:1980-1989} a day, {a|b} a choice
    #[arg(long, alias = "pattern", value_name = "PATTERN")]
    secret_pattern: Option<String>,
    /// How likely each candidate is beforehand
    #[arg(long, value_enum, default_value_t = PriorKind::Uniform)]
    prior: PriorKind,
    /// Clip gradients at this norm, C
    #[arg(long, value_name = "C", default_value_t = 1.0, allow_negative_numbers = true)]
    clip: f64,
    /// Learning rate
    #[arg(long, value_name = "R", default_value_t = 0.1, allow_negative_numbers = true)]
    lr: f64,
    /// Noise multipliers [default: eight, so that 2T/σ² is 1 to 1000]
    #[arg(long, alias = "sigma", value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    sigmas: Vec<f64>,
    /// Numbers of steps, T
    #[arg(long, value_name = "T,…", value_delimiter = ',', default_value = "1,2,5")]
    steps: Vec<u64>,
    /// What is fine-tuned: the last layer, all of them, adapters, or one after the other
    #[arg(long, value_enum, value_name = "PART,…", value_delimiter = ',', default_value = "last")]
    layers: Vec<Trained>,
    /// Rank of adapters
    #[arg(long, value_name = "R", default_value_t = 8)]
    rank: usize,
    /// Games played for every noise and number of steps; 0 for bounds alone
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    trials: u64,
    /// Seed of secrets and noise [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where the model computes: cpu, cuda, cuda:1 (the number of a GPU) or auto
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    #[command(flatten)]
    output: OutArgs,
}

impl Args {
    fn request(&self) -> CanaryRequest {
        CanaryRequest {
            model: self.model.clone(),
            tokenizer: self.tokenizer.clone(),
            prompt: self.prompt.clone(),
            secret_tokens: self.secret_tokens,
            candidates: self.candidates.clone(),
            list: vec![],
            secret_pattern: self.secret_pattern.clone(),
            prior: self.prior,
            clip: self.clip,
            lr: self.lr,
            sigmas: self.sigmas.clone(),
            steps: self.steps.clone(),
            layers: self.layers.clone(),
            rank: self.rank,
            trials: self.trials,
            seed: self.seed,
            device: self.device,
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.output.run.start()?;
    let folder = args.output.folder(RecordsFormat::Parquet)?;
    let display = Display::start(args.output.run.quiet || args.output.run.json, args.output.out.clone())?;
    let canary_document = canary::run(&args.request(), &display.hooks)?;
    display.finish();
    let mut written = vec![];
    if let Some(folder) = &folder {
        let mut pending = Pending::default();
        folder.page(&mut pending, PageKind::Canary, &canary_page(&canary_document))?;
        folder.text(&mut pending, "canary.json", &document(&canary_document))?;
        written = folder.publish(pending)?;
    }
    args.output.run.warn(&canary_document.warnings);
    args.output.run.show(&document(&canary_document), &canary_summary(&canary_document), &written);
    if !args.output.run.quiet && args.seed.is_none() {
        crate::note!("seed {} (drawn; give it with --seed to repeat this)", canary_document.seed);
    }
    Ok(ExitCode::SUCCESS)
}
