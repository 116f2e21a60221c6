//! `leakscope calibrate`: the noise, the sampling rate or the number of steps of DP-SGD that meets a target.

use super::privacy_args::{AdjacencyArg, five_digits, in_words, show};
use crate::{Failure, Result};
use leakscope_core::dp::{Target, Unknown, calibrate};
use serde_json::json;
use std::process::ExitCode;

/// The noise, rate or number of steps that meets a target; the one of the three that is not given is solved for.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Target: ε, at --delta
    #[arg(long, value_name = "E", requires = "delta", group = "target", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// The δ of --epsilon
    #[arg(long, value_name = "D", requires = "epsilon", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Target: membership advantage
    #[arg(long, value_name = "A", group = "target", allow_negative_numbers = true)]
    advantage: Option<f64>,
    /// Target: true-positive rate of a membership test, at --fpr
    #[arg(long, value_name = "P", requires = "fpr", group = "target", allow_negative_numbers = true)]
    tpr: Option<f64>,
    /// The false-positive rate of --tpr
    #[arg(long, value_name = "P", requires = "tpr", allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Target: probability of guessing a secret of --candidates equally likely values
    #[arg(long, value_name = "P", requires = "candidates", group = "target", allow_negative_numbers = true)]
    success: Option<f64>,
    /// Number of values of the secret
    #[arg(long, value_name = "M", requires = "success")]
    candidates: Option<u64>,
    /// Noise multiplier
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Sampling rate
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Number of steps
    #[arg(long, value_name = "T")]
    steps: Option<u64>,
    /// Which neighbours must not be told apart
    #[arg(long, value_enum, default_value_t = AdjacencyArg::AddRemove)]
    adjacency: AdjacencyArg,
    /// Print JSON to stdout, and nothing else there
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
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
    let found = calibrate(target, unknown, args.adjacency.into())?;
    let document = json!({
        "schema": "leakscope.calibrate/1",
        "target": target,
        "solved_for": match unknown {
            Unknown::Sigma { .. } => "sigma",
            Unknown::Rate { .. } => "rate",
            Unknown::Steps { .. } => "steps",
        },
        "sigma": found.sigma,
        "rate": found.rate,
        "steps": found.steps,
        "achieved": found.achieved,
        "adjacency": found.adjacency,
    });
    let text = format!(
        "sigma {}, rate {}, {} steps: {} is at most {} ({})\n",
        five_digits(found.sigma, true),
        five_digits(found.rate, false),
        found.steps,
        match target {
            Target::Epsilon { delta, .. } => format!("ε at δ = {delta:e}"),
            Target::Advantage { .. } => "membership advantage".into(),
            Target::TruePositiveRate { false_positive, .. } =>
                format!("the true-positive rate at {false_positive}"),
            Target::Reconstruction { .. } => "the probability of guessing the secret".into(),
        },
        five_digits(found.achieved, true),
        in_words(found.adjacency)
    );
    show(args.json, &document, &text);
    Ok(ExitCode::SUCCESS)
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
    if let (Some(success), Some(candidates)) = (args.success, args.candidates) {
        if candidates < 2 {
            return Err(Failure::flag("--candidates", format!("{candidates}: expected at least 2")));
        }
        return Ok(Target::Reconstruction { success, most_likely: 1.0 / candidates as f64 });
    }
    let message = "say the target: --epsilon E --delta D, --advantage A, --tpr P --fpr P, or --success P --candidates M";
    Err(Failure::Message(message.into()))
}
