//! `leakscope bound`: what any attacker can guess of a discrete secret at most, by every bound that applies.

use super::privacy_args::{AdjacencyArg, show};
use crate::{Failure, Result};
use clap::ValueEnum;
use leakscope_core::bound::table::{Optimal, Simulation};
use leakscope_core::bound::{Channel, Encodings, Prior, bounds};
use leakscope_core::dp::Accountant;
use leakscope_report::format::share;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// What any attacker can guess of a discrete secret at most.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Number of values the secret can take, all equally likely
    #[arg(long, value_name = "M", conflicts_with = "prior", required_unless_present = "prior")]
    candidates: Option<u64>,
    /// Probabilities of the values instead
    #[arg(long, value_name = "P,…", value_delimiter = ',', allow_negative_numbers = true)]
    prior: Vec<f64>,
    /// What the attacker sees
    #[arg(long, value_enum)]
    mechanism: MechanismArg,
    /// How the secret becomes a vector, with --mechanism gaussian
    #[arg(long, value_enum, default_value_t = EncodingArg::OneHot)]
    encoding: EncodingArg,
    /// Standard deviation of the noise; for dp-sgd over the clipping norm
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Probability of a uniform draw in randomised response
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Sampling rate of dp-sgd
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Steps of dp-sgd
    #[arg(long, value_name = "T")]
    steps: Option<u64>,
    /// Adjacency of dp-sgd: values of one record that is known to be there are told apart under replace
    #[arg(long, value_enum)]
    adjacency: Option<AdjacencyArg>,
    /// Draws for the information and the simulated attack; 0 simulates nothing
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    trials: u64,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON to stdout, and nothing else there
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum MechanismArg {
    /// The encoding of the secret plus Gaussian noise
    Gaussian,
    /// The secret, or with some probability a uniform draw
    RandomisedResponse,
    /// A model trained with DP-SGD on a data set that holds the secret
    DpSgd,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum EncodingArg {
    /// One indicator a value
    OneHot,
}

/// Confidence of bounds that rest on an estimate of the information.
const CONFIDENCE: f64 = 0.99;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let prior = match args.candidates {
        Some(candidates) => Prior::uniform(candidates)?,
        None => Prior::given(args.prior.clone())?,
    };
    let need =
        |flag: &str, value: Option<f64>| value.ok_or_else(|| Failure::flag(flag, "this mechanism needs it"));
    let encodings = match args.encoding {
        EncodingArg::OneHot => Encodings::OneHot,
    };
    let accountant;
    let channel = match args.mechanism {
        MechanismArg::Gaussian => {
            Channel::Gaussian { encodings: &encodings, sigma: need("--sigma", args.sigma)? }
        }
        MechanismArg::RandomisedResponse => {
            Channel::RandomisedResponse { noise: need("--noise", args.noise)? }
        }
        MechanismArg::DpSgd => {
            let adjacency = args.adjacency.ok_or_else(|| {
                Failure::flag("--adjacency", "say add-remove or replace: the bound depends on it")
            })?;
            let steps = args.steps.ok_or_else(|| Failure::flag("--steps", "this mechanism needs it"))?;
            let (sigma, rate) = (need("--sigma", args.sigma)?, need("--rate", args.rate)?);
            accountant = Accountant::dp_sgd(sigma, rate, steps, adjacency.into())?;
            Channel::Private(&accountant)
        }
    };
    let simulation = (args.trials > 0).then_some(Simulation {
        trials: args.trials,
        seed: args.seed,
        confidence: CONFIDENCE,
    });
    let found = bounds(&prior, channel, simulation)?;
    let rows: Vec<_> = found
        .bounds
        .iter()
        .map(|b| {
            let theorem = b.success.theorem;
            json!({
                "name": theorem,
                "success": b.success.value,
                "advantage": b.advantage,
                "alpha": b.alpha,
                "confidence": b.confidence,
                "assumptions": theorem.assumptions(),
                "source": theorem.source(),
            })
        })
        .collect();
    let document = json!({
        "schema": "leakscope.bound/1",
        "candidates": found.candidates,
        "most_likely": found.most_likely,
        "bounds": rows,
        "optimal": found.optimal,
        "seed": simulation.map(|s| s.seed),
    });
    let mut text = format!(
        "Guessing one of {} values; without looking {}.\nNo attacker guesses more often than, tightest first:\n\n",
        found.candidates,
        share(found.most_likely)
    );
    for b in &found.bounds {
        let _ = writeln!(text, "  {:>7}   {}", share(b.success.value), b.success.theorem.source());
    }
    let seen = match &found.optimal {
        Some(Optimal::Exact(value)) => format!("\nThe best attack achieves {}.\n", share(*value)),
        Some(Optimal::Observed(o)) => format!(
            "\nThe best attack was observed at {} ({} to {}, {} trials).\n",
            share(o.value),
            share(o.ci_low),
            share(o.ci_high),
            o.trials
        ),
        None => String::new(),
    };
    text.push_str(&seen);
    show(args.json, &document, &text);
    Ok(ExitCode::SUCCESS)
}
