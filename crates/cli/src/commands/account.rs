//! `leakscope account`: what a sequence of noisy releases costs, by every accountant that applies.

use super::privacy_args::{AdjacencyArg, five_digits, in_words, show};
use crate::{Failure, Result};
use leakscope_core::dp::{Accountant, Mechanism, account};
use leakscope_report::format::number;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// What a sequence of noisy releases costs.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Noise multiplier of the Gaussian mechanism: standard deviation over the clipping norm
    #[arg(long, value_name = "S", conflicts_with_all = ["laplace", "randomised_response"], allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Probability of each record to take part in a step (Poisson sampling)
    #[arg(long, value_name = "Q", default_value_t = 1.0, allow_negative_numbers = true)]
    rate: f64,
    /// Number of steps
    #[arg(long, value_name = "T", default_value_t = 1)]
    steps: u64,
    /// The δ at which ε is asked for
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Scale of the Laplace mechanism, over the ℓ₁ sensitivity, instead of --sigma
    #[arg(long, value_name = "B", conflicts_with = "randomised_response", allow_negative_numbers = true)]
    laplace: Option<f64>,
    /// Randomised response over this many categories, with --noise, instead of --sigma
    #[arg(long, value_name = "M", requires = "noise")]
    randomised_response: Option<u64>,
    /// Probability of a uniform draw in randomised response
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Which neighbours must not be told apart; randomised response knows replace alone
    #[arg(long, value_enum)]
    adjacency: Option<AdjacencyArg>,
    /// Print JSON to stdout, and nothing else there
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mechanism = mechanism(args)?;
    // The noise multiplier of DP-SGD is defined by its clipping norm, the sensitivity under add/remove; randomised
    // response has no record to add.
    let default = match mechanism {
        Mechanism::RandomisedResponse { .. } => AdjacencyArg::Replace,
        Mechanism::Gaussian { .. } | Mechanism::Laplace { .. } => AdjacencyArg::AddRemove,
    };
    let adjacency = args.adjacency.unwrap_or(default).into();
    let found = account(&Accountant::new(adjacency).with(mechanism, args.steps)?, args.delta)?;
    let mut document = serde_json::to_value(&found)
        .map_err(|e| Failure::Message(format!("cannot write the account as JSON: {e}")))?;
    document["schema"] = json!("leakscope.account/1");
    document["epsilon"]["rdp"] = json!(found.epsilon.rdp.epsilon);
    document["epsilon"]["rdp_order"] = json!(found.epsilon.rdp.alpha);

    let mut text = String::new();
    let pld = found.epsilon.pld;
    let _ = writeln!(text, "ε at δ = {:e}, {}\n", args.delta, in_words(adjacency));
    let mut row = |name: &str, value: String, note: &str| {
        let _ = writeln!(text, "  {name:<28} {value:>12}   {note}");
    };
    row(
        "privacy loss distribution",
        five_digits(pld.upper, true),
        &format!("certified; not below {}", five_digits(pld.lower, false)),
    );
    row(
        "Rényi DP",
        five_digits(found.epsilon.rdp.epsilon, true),
        &format!("order {}", number(found.epsilon.rdp.alpha)),
    );
    let others = [
        ("Gaussian, analytically", found.epsilon.analytic_gaussian, "exact"),
        ("zCDP", found.epsilon.zcdp, ""),
        ("pure DP", found.epsilon.pure, "at δ = 0"),
    ];
    for (name, value, note) in others {
        if let Some(value) = value {
            row(name, five_digits(value, true), note);
        }
    }
    row(
        "membership advantage",
        five_digits(found.advantage.upper, true),
        "true- less false-positive rate of any test",
    );
    show(args.json, &document, &text);
    Ok(ExitCode::SUCCESS)
}

fn mechanism(args: &Args) -> Result<Mechanism> {
    match (args.sigma, args.laplace, args.randomised_response, args.noise) {
        (Some(sigma), None, None, None) => Ok(Mechanism::gaussian(sigma, args.rate)),
        (None, Some(scale), None, None) if args.rate == 1.0 => Ok(Mechanism::Laplace { scale }),
        (None, None, Some(categories), Some(noise)) if args.rate == 1.0 => {
            Ok(Mechanism::RandomisedResponse { categories, noise })
        }
        (None, None, None, _) => Err(Failure::flag(
            "--sigma",
            "say what is released: --sigma S, --laplace B or --randomised-response M",
        )),
        (Some(_), _, _, Some(_)) | (_, Some(_), _, Some(_)) => {
            Err(Failure::flag("--noise", "it belongs to --randomised-response"))
        }
        _ => Err(Failure::flag("--rate", "sampling is accounted for with --sigma only")),
    }
}
