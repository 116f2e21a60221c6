//! `leakscope account`: what a sequence of noisy releases costs, by every accountant that applies.

use super::privacy_args::{ShowArgs, composed, five_digits, mechanism, step, whole};
use leakscope::{Failure, Result};
use leakscope_core::dp::{Adjacency, Mechanism, account};
use leakscope_report::account::Costs;
use leakscope_report::format::number;
use leakscope_report::words::adjacency as in_words;
use std::fmt::Write;
use std::process::ExitCode;

/// What a sequence of noisy releases costs.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Noise multiplier of the Gaussian mechanism: standard deviation over the clipping norm
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Probability of each record to take part in a step (Poisson sampling) [default: 1]
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Number of steps [default: 1]
    #[arg(long, value_name = "T", value_parser = whole, allow_negative_numbers = true)]
    steps: Option<u64>,
    /// The δ at which ε is asked for
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Scale of the Laplace mechanism, over the ℓ₁ sensitivity, instead of --sigma
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    laplace: Option<f64>,
    /// Randomised response over this many categories, with --noise, instead of --sigma
    #[arg(long, value_name = "M", value_parser = whole, allow_negative_numbers = true)]
    randomised_response: Option<u64>,
    /// Probability of a uniform draw in randomised response
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// One of several kinds of release: sigma=S,rate=Q,steps=T or laplace=B,steps=T or
    /// randomised-response=M,noise=P,steps=T; may be given often
    #[arg(long, value_name = "NAME=VALUE,…")]
    step: Vec<String>,
    /// Which neighbours must not be told apart [default: add-remove, by which σ is defined; randomised response knows
    /// replace alone]
    #[arg(long, value_enum)]
    adjacency: Option<Adjacency>,
    #[command(flatten)]
    show: ShowArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.show.folder()?;
    let costs = costs(args)?;
    let page = || leakscope_report::account_page(&costs);
    args.show.show(folder.as_ref(), ("account.json", &costs.json()), page, &text(&costs))?;
    Ok(ExitCode::SUCCESS)
}

fn costs(args: &Args) -> Result<Costs> {
    let steps = steps(args)?;
    // The noise multiplier of DP-SGD is defined by its clipping norm, the sensitivity under add/remove; randomised
    // response has no record to add.
    let responses = steps.iter().filter(|s| matches!(s.0, Mechanism::RandomisedResponse { .. })).count();
    let adjacency: Adjacency = match args.adjacency {
        Some(said) => said,
        None if responses == 0 => Adjacency::AddRemove,
        None if responses == steps.len() => Adjacency::Replace,
        None => {
            let why = "randomised response knows replace alone, and noise is given for add-remove: say --adjacency replace \
                       (the noise then counts for twice the sensitivity)";
            return Err(Failure::flag("--adjacency", why));
        }
    };
    Ok(Costs::of(account(&composed(&steps, adjacency)?, args.delta)?, args.adjacency.is_none()))
}

fn steps(args: &Args) -> Result<Vec<(Mechanism, u64)>> {
    let mut steps = args.step.iter().map(|s| step(s)).collect::<Result<Vec<_>>>()?;
    let alone = args.sigma.is_some()
        || args.laplace.is_some()
        || args.randomised_response.is_some()
        || args.noise.is_some()
        || args.rate.is_some()
        || args.steps.is_some();
    if alone || steps.is_empty() {
        let one = mechanism(args.sigma, args.laplace, args.randomised_response, args.noise, args.rate)
            .map_err(|(flag, why)| Failure::flag(flag, why))?;
        steps.push((one, args.steps.unwrap_or(1)));
    }
    Ok(steps)
}

fn text(costs: &Costs) -> String {
    let (mut text, a) = (String::new(), &costs.account);
    let pld = a.epsilon.pld;
    let assumed = if costs.adjacency_assumed { " (assumed: --adjacency says another)" } else { "" };
    let _ = writeln!(text, "ε at δ = {:e}, {}{assumed}\n", a.delta, in_words(a.adjacency));
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
        five_digits(a.epsilon.rdp.epsilon, true),
        &format!("order {}", number(a.epsilon.rdp.alpha)),
    );
    let others = [
        ("Gaussian, analytically", a.epsilon.analytic_gaussian, "exact"),
        ("zCDP", a.epsilon.zcdp, ""),
        ("pure DP", a.epsilon.pure, "at δ = 0"),
    ];
    for (name, value, note) in others {
        if let Some(value) = value {
            row(name, five_digits(value, true), note);
        }
    }
    row(
        "membership advantage",
        five_digits(a.advantage.upper, true),
        "true- less false-positive rate of any test",
    );
    text
}
