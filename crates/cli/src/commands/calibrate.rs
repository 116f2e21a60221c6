//! `leakscope calibrate`: the noise, the sampling rate or the number of steps that meets a target.

use super::privacy_args::{encodings, said, whole};
use super::table_args::{DataArgs, name_and_number};
use crate::progress::Display;
use clap::ValueEnum;
use leakscope::audit::{Noise, Request, Statistic};
use leakscope::bound::data::Bounding;
use leakscope::calibrate::{Aim, on_data, on_encodings};
use leakscope::{Failure, Result};
use leakscope_core::bound::Prior;
use leakscope_core::dp::Adjacency;
use leakscope_core::dp::{Target, Unknown, calibrate};
use leakscope_report::Calibration;
use leakscope_report::calibrate::Leakage;
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
    #[arg(long, value_name = "E", requires = "data", group = "aim", allow_negative_numbers = true)]
    eta: Option<f64>,
    /// The statistic of --eta
    #[arg(long, value_enum, default_value_t = Statistic::Max, requires = "eta")]
    statistic: Statistic,
    /// Target on --data: least standard deviation of any unbiased estimate of an attribute, in its own units
    #[arg(long, value_name = "ATTRIBUTE=VALUE", requires = "data", group = "aim")]
    sd: Option<String>,
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
    #[arg(long, value_enum, default_value_t = OverArg::EveryRecord, requires = "secret")]
    over: OverArg,
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

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum OverArg {
    /// The record that is easiest to guess
    EveryRecord,
    /// The mean over records
    Mean,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let found = match (args.data.request(Some(args.seed))?, &args.encoding) {
        (Some(request), _) => with_data(args, request)?,
        (None, Some(encoding)) => with_encoding(args, encoding)?,
        (None, None) => dp_sgd(args)?,
    };
    let printed = match args.json {
        true => leakscope_report::sorted_document(&found),
        false => leakscope_report::calibration(&found),
    };
    // Whoever reads may stop early (`| head`): that is no failure.
    let _ = std::io::stdout().lock().write_all(printed.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn dp_sgd(args: &Args) -> Result<Calibration> {
    let target = target(args)?;
    let unknown = match (args.sigma, args.rate, args.steps) {
        (None, Some(rate), Some(steps)) => Unknown::Sigma { rate, steps },
        (Some(sigma), None, Some(steps)) => Unknown::Rate { sigma, steps },
        (Some(sigma), Some(rate), None) => Unknown::Steps { sigma, rate },
        _ => {
            let message = "give two of --sigma, --rate and --steps: the third is solved for";
            return Err(Failure::Message(message.into()));
        }
    };
    let found = calibrate(target, unknown, said(args.adjacency)?)?;
    Ok(Calibration::of_training(target, unknown, &found))
}

fn target(args: &Args) -> Result<Target> {
    if let (Some(epsilon), Some(delta)) = (args.epsilon, args.delta) {
        return Ok(Target::Epsilon { epsilon, delta });
    }
    if let Some(advantage) = args.advantage {
        return Ok(Target::Advantage { advantage });
    }
    if let (Some(true_positive), Some(false_positive)) = (args.tpr, args.fpr) {
        return Ok(Target::TruePositiveRate { true_positive, false_positive });
    }
    if let Some(success) = args.success {
        return Ok(Target::Reconstruction { success, most_likely: prior(args)?.most_likely() });
    }
    Err(Failure::Message(
        "name a target: --epsilon E --delta D, --advantage A, --tpr P --fpr P or --success P --candidates M; with --data \
         also --eta E, --sd ATTRIBUTE=VALUE or --success P --secret COLUMN"
            .into(),
    ))
}

fn prior(args: &Args) -> Result<Prior> {
    match args.candidates {
        Some(m) => Ok(Prior::uniform(m)?),
        None if args.prior.is_empty() => {
            Err(Failure::flag("--candidates", "say how many values the secret has, or --prior P,…"))
        }
        None => Ok(Prior::given(args.prior.clone())?),
    }
}

fn with_encoding(args: &Args, encoding: &str) -> Result<Calibration> {
    let success = args.success.ok_or_else(|| Failure::flag("--success", "--encoding is for this target"))?;
    if args.adjacency.is_some() {
        return Err(Failure::flag("--adjacency", "noise on an encoding tells values apart, no neighbours"));
    }
    let prior = prior(args)?;
    let (sigma, achieved) = on_encodings(&prior, &encodings(encoding, &prior)?, success)?;
    let most_likely = Some(prior.most_likely());
    let target = Leakage::Guessing { secret: None, success, every_record: None, most_likely };
    Ok(Calibration::of_noise(target, sigma, achieved, None))
}

fn with_data(args: &Args, mut request: Request) -> Result<Calibration> {
    let dp = [
        ("--sigma", args.sigma.is_some()),
        ("--rate", args.rate.is_some()),
        ("--steps", args.steps.is_some()),
        ("--adjacency", args.adjacency.is_some()),
        ("--candidates", args.candidates.is_some()),
    ];
    if let Some((flag, _)) = dp.iter().find(|d| d.1) {
        return Err(Failure::flag(flag, "with --data the noise on the model's coefficients is solved for"));
    }
    let (aim, target) = if let Some(eta) = args.eta {
        let statistic = args.statistic;
        request.noise = Noise::TargetEta { eta, statistic };
        (Aim::Leakage, Leakage::Eta { eta, statistic: statistic.named() })
    } else if let Some(text) = &args.sd {
        let (attribute, sd) = name_and_number("--sd", text)?;
        request.noise = Noise::TargetSd { attribute: attribute.clone(), sd };
        (Aim::Leakage, Leakage::Sd { attribute, sd })
    } else if let (Some(success), Some(secret)) = (args.success, &args.secret) {
        let bounding = Bounding {
            secret: secret.clone(),
            bins: args.bins,
            prior: (!args.prior.is_empty()).then(|| args.prior.clone()),
            sigma: None,
            sigmas: vec![],
            curve: false,
            attacks: vec![],
            noise_vectors: 1,
            draws: 0,
            confidence: 0.99,
            delta: 1e-5,
        };
        let every_record = args.over == OverArg::EveryRecord;
        let secret = Some(secret.clone());
        let target =
            Leakage::Guessing { secret, success, every_record: Some(every_record), most_likely: None };
        (Aim::Guessing { bounding, success, every_record }, target)
    } else {
        let message =
            "with --data the targets are --eta E, --sd ATTRIBUTE=VALUE and --success P --secret COLUMN";
        return Err(Failure::Message(message.into()));
    };
    let solved = on_data(&request, &aim, &Display::start(args.quiet || args.json, None)?.hooks);
    // The audit's names of the same targets are not the ones that were typed.
    let solved = solved.map_err(|failure| match failure {
        Failure::Option(text) => {
            Failure::Option(text.replacen("--target-sd", "--sd", 1).replacen("--target-eta", "--eta", 1))
        }
        other => other,
    })?;
    Ok(Calibration::of_noise(target, solved.sigma, solved.achieved, Some(solved.model)))
}
