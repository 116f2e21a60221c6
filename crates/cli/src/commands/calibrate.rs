//! `leakscope calibrate`: the noise, the sampling rate or the number of steps that meets a target.

use super::noise_args::ShapeArgs;
use super::privacy_args::whole;
use super::table_args::{DataArgs, name_and_number};
use crate::progress::Display;
use leakscope::audit::Statistic;
use leakscope::calibrate::{self, CalibrateRequest, Over};
use leakscope::noise::NoiseOptions;
use leakscope::{Failure, Result};
use leakscope_core::dp::Adjacency;
use leakscope_table::ReadOptions;
use std::io::Write;
use std::process::ExitCode;

/// The noise, rate or number of steps that meets a target. For DP-SGD the one of --sigma, --rate and --steps that is not
/// given is solved for; with --data, or for a secret's --encoding, the noise.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Target: ε, at --delta
    #[arg(long, value_name = "E", requires = "delta", group = "aim", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// The δ of --epsilon
    #[arg(long, value_name = "D", requires = "epsilon", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Target: membership advantage
    #[arg(long, value_name = "A", group = "aim", allow_negative_numbers = true)]
    advantage: Option<f64>,
    /// Target: true-positive rate of a membership test, at --fpr
    #[arg(long, value_name = "P", requires = "fpr", group = "aim", allow_negative_numbers = true)]
    tpr: Option<f64>,
    /// The false-positive rate of --tpr
    #[arg(long, value_name = "P", requires = "tpr", allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Target: probability of guessing a secret: of --candidates or a --prior, or the column --secret of --data
    #[arg(long, value_name = "P", group = "aim", allow_negative_numbers = true)]
    success: Option<f64>,
    /// Number of values of the secret, all equally likely
    #[arg(long, value_name = "M", requires = "success", value_parser = whole, allow_negative_numbers = true, conflicts_with = "prior")]
    candidates: Option<u64>,
    /// Probabilities of the values instead
    #[arg(
        long,
        value_name = "P,…",
        value_delimiter = ',',
        requires = "success",
        allow_negative_numbers = true
    )]
    prior: Vec<f64>,
    /// Noise on the secret itself instead of DP-SGD: one-hot, line, or a file with one vector per value
    #[arg(long, value_name = "one-hot|line|FILE", requires = "success", conflicts_with_all = ["sigma", "rate", "steps", "data"])]
    encoding: Option<String>,
    /// Target on --data: a statistic of η over records
    #[arg(long, alias = "eta", value_name = "E", requires = "data", allow_negative_numbers = true)]
    #[arg(conflicts_with = "aim")]
    target_eta: Option<f64>,
    /// The statistic of --target-eta
    #[arg(long, value_enum, default_value_t = Statistic::Max, requires = "target_eta")]
    statistic: Statistic,
    /// Target on --data: least standard deviation of any unbiased estimate of an attribute, in its own units; may be repeated
    #[arg(long, alias = "sd", value_name = "ATTRIBUTE=VALUE", requires = "data", conflicts_with = "aim")]
    target_sd: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Noise multiplier
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Sampling rate
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Number of steps
    #[arg(long, value_name = "T", value_parser = whole, allow_negative_numbers = true)]
    steps: Option<u64>,
    /// Which neighbours must not be told apart
    #[arg(long, value_enum)]
    adjacency: Option<Adjacency>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The column of --data that must not be guessed
    #[arg(long, value_name = "COLUMN", requires_all = ["data", "success"])]
    secret: Option<String>,
    /// Bins of a numeric secret with more values than that
    #[arg(long, value_name = "N", default_value_t = 4)]
    bins: usize,
    /// Whether --success is for every record, or on average over them
    #[arg(long, value_enum, default_value_t = Over::EveryRecord, requires = "secret")]
    over: Over,
    /// Seed of the split of --holdout
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON to stdout, and nothing else there
    #[arg(long)]
    json: bool,
    /// No remarks and no progress on stderr
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    fn request(&self) -> Result<CalibrateRequest> {
        let table = self.data.request(Some(self.seed))?;
        let noise = self.noise(table.as_ref().map(|t| &t.read))?;
        let target_sd = match (&noise, self.target_sd.first()) {
            (None, Some(text)) => Some(name_and_number("target_sd", text)?),
            (Some(_), _) | (None, None) => None,
        };
        Ok(CalibrateRequest {
            epsilon: self.epsilon,
            delta: self.delta,
            advantage: self.advantage,
            tpr: self.tpr,
            fpr: self.fpr,
            success: self.success,
            candidates: self.candidates,
            prior: self.prior.clone(),
            encoding: self.encoding.clone(),
            target_eta: self.target_eta.filter(|_| noise.is_none()),
            statistic: self.statistic,
            target_sd,
            noise,
            sigma: self.sigma,
            rate: self.rate,
            steps: self.steps,
            adjacency: self.adjacency,
            table: table.map(Box::new),
            secret: self.secret.clone(),
            bins: self.bins,
            over: self.over,
            seed: self.seed,
        })
    }
}

impl Args {
    /// Noise with a shape, or for several targets.
    fn noise(&self, read: Option<&ReadOptions>) -> Result<Option<Box<NoiseOptions>>> {
        if !self.shape.is_needed(self.target_eta, &self.target_sd) {
            return Ok(None);
        }
        if self.statistic != Statistic::Max {
            let message = "a target of noise with a shape is for every record: leave it out";
            return Err(Failure::option("statistic", message));
        }
        let read = read.cloned().unwrap_or_default();
        Ok(Some(Box::new(self.shape.options_like(&read, self.target_eta, &self.target_sd)?)))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let request = args.request()?;
    let display = Display::start(args.quiet || args.json, None)?.may_end();
    let calibration_document = calibrate::run(&request, &display.hooks)?;
    display.finish();
    let printed = match args.json {
        true => calibrate::document(&calibration_document),
        false => leakscope::spelling::for_reader(&leakscope_report::calibration(&calibration_document)),
    };
    // Whoever reads may stop early (`| head`): that is no failure.
    let _ = std::io::stdout().lock().write_all(printed.as_bytes());
    Ok(ExitCode::SUCCESS)
}
