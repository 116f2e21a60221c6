//! `leakscope bound`: what any attacker can guess of a discrete secret at most, by every bound that applies.

use super::machines_args::MachinesArgs;
use super::noise_args::ShapeArgs;
use super::privacy_args::{ShowArgs, step, whole};
use super::run_args::RedactArgs;
use super::table_args::DataArgs;
use crate::progress::Display;
use leakscope::bound::{self, BoundRequest, CurveKind, MechanismKind};
use leakscope::request::Request;
use leakscope::{Failure, Result};
use leakscope_core::attack::Attack;
use leakscope_core::dp::Adjacency;
use leakscope_report::PageKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What any attacker can guess of a discrete secret at most.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Number of values the secret can take, all equally likely (several with --curve epsilon)
    #[arg(long, value_name = "M,…", value_delimiter = ',', value_parser = whole, allow_negative_numbers = true, conflicts_with = "prior")]
    candidates: Vec<u64>,
    /// Probabilities of the values instead; with --secret in the order in which its values are listed
    #[arg(long, value_name = "P,…", value_delimiter = ',', allow_negative_numbers = true)]
    prior: Vec<f64>,
    /// What the attacker sees
    #[arg(long, value_enum)]
    mechanism: Option<MechanismKind>,
    /// What the secret becomes before noise, with --mechanism gaussian: one-hot, line (evenly from 0 to 1), or a CSV or
    /// JSON file with one vector per value
    #[arg(long, value_name = "one-hot|line|FILE")]
    encoding: Option<String>,
    /// Standard deviation of the noise; for dp-sgd over the clipping norm
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Probability of a uniform draw in randomised response
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Scale of the Laplace mechanism, over the ℓ₁ sensitivity
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    laplace: Option<f64>,
    /// Sampling rate of dp-sgd
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Steps of dp-sgd, or releases of Laplace noise
    #[arg(long, value_name = "T", value_parser = whole, allow_negative_numbers = true)]
    steps: Option<u64>,
    /// A kind of release of a composition, as in `account`; may be given often
    #[arg(long, value_name = "NAME=VALUE,…")]
    step: Vec<String>,
    /// Adjacency of private releases: values of one record that is known to be there are told apart under replace
    #[arg(long, value_enum)]
    adjacency: Option<Adjacency>,
    /// Order of a stated Rényi divergence, at least 1
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// The stated Rényi divergence, in nats
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Draw curves: advantage against ε for several --candidates, or every bound against the noise
    #[arg(long, value_enum)]
    curve: Option<CurveKind>,
    /// Values of the curve's horizontal axis [default: those of the paper's figures]
    #[arg(
        long,
        value_name = "V,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        requires = "curve"
    )]
    at: Vec<f64>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// A column of --data as the secret: the model is refitted with each of its values in every record's place
    #[arg(long, value_name = "COLUMN", requires = "data")]
    secret: Option<String>,
    /// Bins of a numeric secret with more values than that
    #[arg(long, value_name = "N", default_value_t = 4)]
    bins: usize,
    /// Noise scales of the curve over --data [default with --out: sixteen around what the secret leaks]
    #[arg(
        long,
        value_name = "S,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        requires = "secret"
    )]
    sigmas: Vec<f64>,
    /// Bound guesses under noise that is made for this largest η; its σ is that of isotropic noise of the same cost
    #[arg(long, value_name = "E", allow_negative_numbers = true, requires = "secret")]
    target_eta: Option<f64>,
    /// Bound guesses under noise that lets no unbiased estimate of an attribute be closer than this; may be repeated
    #[arg(long, value_name = "ATTRIBUTE=VALUE", requires = "secret")]
    target_sd: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Play attacks beside the bounds [default: white-box-prior, white-box, informed]
    #[arg(long, value_enum, value_name = "ATTACK,…", num_args = 0.., value_delimiter = ',', requires = "secret")]
    attacks: Option<Vec<Attack>>,
    /// Noise vectors for every scale of the attacks
    #[arg(long, value_name = "N", default_value_t = 100)]
    noise_vectors: usize,
    /// η of a number, for bounds on estimates of it (Cramér–Rao)
    #[arg(long, value_name = "E", allow_negative_numbers = true, conflicts_with_all = ["mechanism", "data", "curve"])]
    eta: Option<f64>,
    /// What is known of that number beforehand, as a standard deviation (van Trees)
    #[arg(long, value_name = "SD", allow_negative_numbers = true, requires = "eta")]
    prior_sd: Option<f64>,
    /// The δ of ε, where a curve shows it
    #[arg(long, value_name = "D", default_value_t = 1e-5, allow_negative_numbers = true)]
    delta: f64,
    /// Draws for the information and the simulated attack; 0 simulates nothing
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    trials: u64,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    redact: RedactArgs,
    #[command(flatten)]
    machines: MachinesArgs,
    #[command(flatten)]
    show: ShowArgs,
}

impl Args {
    /// The table whose model is refitted, with the noise that its coefficients have.
    fn table(&self) -> Result<Option<Request>> {
        let Some(base) = self.data.request(Some(self.seed))? else {
            return match self.shape.is_needed(self.target_eta, &self.target_sd) {
                true => {
                    Err(Failure::option("noise_shape", "it belongs to a table: name one with ⟨data⟩ FILE"))
                }
                false => Ok(None),
            };
        };
        let noise = self.shape.noise(&self.data.table()?, self.target_eta, &self.target_sd)?;
        Ok(Some(Request { noise, redact: self.redact.redact, ..base }))
    }

    fn request(&self) -> Result<BoundRequest> {
        // A table without a target only says how frequent the values of the secret are.
        let counted = self.mechanism.is_some() && !self.data.data.is_empty() && self.data.target.is_none();
        Ok(BoundRequest {
            candidates: self.candidates.clone(),
            prior: self.prior.clone(),
            mechanism: self.mechanism,
            encoding: self.encoding.clone(),
            sigma: self.sigma,
            noise: self.noise,
            laplace: self.laplace,
            rate: self.rate,
            steps: self.steps,
            step: self.step.iter().map(|s| step(s)).collect::<Result<_>>()?,
            adjacency: self.adjacency,
            alpha: self.alpha,
            epsilon: self.epsilon,
            curve: self.curve,
            at: self.at.clone(),
            table: if counted { None } else { self.table()?.map(Box::new) },
            column: if counted { Some(self.data.read_alone()?) } else { None },
            secret: self.secret.clone(),
            bins: self.bins,
            sigmas: self.sigmas.clone(),
            over_noise: self.show.out.is_some(),
            attacks: self.attacks.clone(),
            noise_vectors: self.noise_vectors,
            eta: self.eta,
            prior_sd: self.prior_sd,
            delta: self.delta,
            trials: self.trials,
            seed: self.seed,
        })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.show.folder()?;
    if let Some(folder) = &folder {
        let read = args.data.data.iter().chain(&args.data.test.test).map(PathBuf::as_path);
        let read: Vec<&Path> = read.chain(args.encoding.as_deref().map(Path::new)).collect();
        folder.spare(&read, &["bound.json", "report.html"], &[])?;
    }
    let request = args.request()?;
    let display = Display::start(args.show.quiet || args.show.json, args.show.out.clone())?.may_end();
    let bounds = match request.table.clone() {
        Some(table) => args.machines.ask(*table, &display.hooks, |table| {
            bound::answer(&BoundRequest { table: Some(Box::new(table)), ..request.clone() }, &display.hooks)
        })?,
        None => bound::answer(&request, &display.hooks)?,
    };
    display.finish();
    let json = leakscope::bound::document(&bounds);
    let page = || leakscope_report::bound_page(&bounds);
    args.show.show(folder.as_ref(), (PageKind::Bound, &json), page, &bound::summary(&bounds))?;
    Ok(ExitCode::SUCCESS)
}
