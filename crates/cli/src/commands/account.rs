//! `leakscope account`: what a sequence of noisy releases costs, by every accountant that applies.

use super::privacy_args::{ShowArgs, step, whole};
use leakscope::Result;
use leakscope::account::{self, AccountRequest};
use leakscope::mechanism::ReleaseStep;
use leakscope_core::dp::Adjacency;
use leakscope_report::{PageKind, account_summary};
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

impl Args {
    fn request(&self) -> Result<AccountRequest> {
        let mut steps = self.step.iter().map(|s| step(s)).collect::<Result<Vec<_>>>()?;
        let alone = ReleaseStep {
            sigma: self.sigma,
            laplace: self.laplace,
            randomised_response: self.randomised_response,
            noise: self.noise,
            rate: self.rate,
            steps: self.steps,
        };
        if !alone.is_empty() {
            steps.push(alone);
        }
        Ok(AccountRequest { steps, delta: self.delta, adjacency: self.adjacency })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.show.folder()?;
    let costs = account::run(&args.request()?)?;
    let page = || leakscope_report::account_page(&costs);
    args.show.show(folder.as_ref(), (PageKind::Account, &costs.json()), page, &account_summary(&costs))?;
    Ok(ExitCode::SUCCESS)
}
