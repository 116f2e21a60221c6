//! `leakscope bound`: what any attacker can guess of a discrete secret at most, by every bound that applies.

use super::privacy_args::{ShowArgs, composed, encodings, mechanism, said, step, whole};
use super::table_args::DataArgs;
use crate::progress::Display;
use clap::ValueEnum;
use leakscope::bound::curve::{FIG_2, Varied, against_epsilon, against_noise};
use leakscope::bound::data::{self, Bounding, FIG_4};
use leakscope::bound::{self, Seen};
use leakscope::{Failure, Result};
use leakscope_core::attack::Attack;
use leakscope_core::bound::Prior;
use leakscope_core::bound::table::Simulation;
use leakscope_core::dp::Adjacency;
use leakscope_report::bound::Found;
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
    mechanism: Option<MechanismArg>,
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
    curve: Option<CurveArg>,
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
    show: ShowArgs,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum MechanismArg {
    /// The encoding of the secret plus Gaussian noise
    Gaussian,
    /// The secret, or with some probability a uniform draw
    RandomisedResponse,
    /// A model trained with DP-SGD on a data set that holds the secret
    DpSgd,
    /// Sums over such a data set plus Laplace noise
    Laplace,
    /// Several kinds of private releases: --step
    Composition,
    /// Anything with a stated Rényi divergence: --alpha and --epsilon
    Renyi,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum CurveArg {
    /// Advantage against ε for several numbers of values
    Epsilon,
    /// Every bound and the optimal attack against the noise
    Noise,
}

/// Confidence of bounds that rest on an estimate of the information.
const CONFIDENCE: f64 = 0.99;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let folder = args.show.folder()?;
    if let Some(folder) = &folder {
        let read = args.data.data.iter().chain(&args.data.test.test).map(PathBuf::as_path);
        let read: Vec<&Path> = read.chain(args.encoding.as_deref().map(Path::new)).collect();
        folder.spare(&read, &["bound.json", "report.html"], &[])?;
    }
    let found = found(args)?;
    let json = leakscope_report::document(&found);
    let page = || leakscope_report::bound_page(&found);
    args.show.show(folder.as_ref(), ("bound.json", &json), page, &bound::summary(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// What is found.
fn found(args: &Args) -> Result<Found> {
    let counted = counted(args)?;
    let request = if counted.is_some() { None } else { args.data.request(Some(args.seed))? };
    let simulation = (args.trials > 0).then_some(Simulation {
        trials: args.trials,
        seed: args.seed,
        confidence: CONFIDENCE,
    });
    if let Some(request) = request {
        let secret = args.secret.clone();
        let secret =
            secret.ok_or_else(|| Failure::flag("--secret", "say which column of --data is the secret"))?;
        let misplaced = [
            ("--mechanism", args.mechanism.is_some()),
            ("--candidates", !args.candidates.is_empty()),
            ("--encoding", args.encoding.is_some()),
            ("--curve", args.curve.is_some()),
        ];
        let of_mechanisms = of_mechanisms(args).into_iter().filter(|f| f.0 != "--sigma");
        if let Some((flag, _)) = misplaced.into_iter().chain(of_mechanisms).find(|m| m.1) {
            return Err(Failure::flag(flag, "with --data the refitted models are what noise is added to"));
        }
        let bounding = Bounding {
            secret,
            bins: args.bins,
            prior: (!args.prior.is_empty()).then(|| args.prior.clone()),
            sigma: args.sigma,
            sigmas: args.sigmas.clone(),
            curve: args.show.out.is_some() || !args.sigmas.is_empty() || args.sigma.is_none(),
            attacks: match &args.attacks {
                None => vec![],
                Some(all) if all.is_empty() => FIG_4.to_vec(),
                Some(all) => all.clone(),
            },
            noise_vectors: args.noise_vectors,
            draws: args.trials,
            confidence: CONFIDENCE,
            delta: args.delta,
        };
        let display = Display::start(args.show.quiet || args.show.json, args.show.out.clone())?;
        return data::run(&request, &bounding, &display.hooks);
    }
    if let Some(eta) = args.eta {
        for (flag, value) in [("--eta", Some(eta)), ("--prior-sd", args.prior_sd)] {
            if let Some(x) = value.filter(|x| !(*x > 0.0 && x.is_finite())) {
                return Err(Failure::flag(flag, format!("{x}: expected a positive number")));
            }
        }
        return Ok(bound::of_eta(eta, args.prior_sd));
    }
    if args.curve.is_some()
        && let Some((flag, _)) = of_mechanisms(args).iter().find(|f| f.1)
    {
        return Err(Failure::flag(flag, "a curve has its values on the axis: --at V,…"));
    }
    if args.curve == Some(CurveArg::Epsilon) {
        let misplaced = [
            ("--mechanism", args.mechanism.is_some(), "the curve holds for every mechanism with that ε"),
            ("--encoding", args.encoding.is_some(), "the curve holds for every encoding"),
            ("--prior", !args.prior.is_empty(), "the curves are drawn for uniform priors: --candidates M,…"),
        ];
        if let Some((flag, _, why)) = misplaced.iter().find(|m| m.1) {
            return Err(Failure::flag(flag, *why));
        }
        let candidates = if args.candidates.is_empty() { FIG_2.to_vec() } else { args.candidates.clone() };
        let at =
            if args.at.is_empty() { (0..=50).map(|k| f64::from(k) / 2.0).collect() } else { args.at.clone() };
        return against_epsilon(&candidates, &at);
    }
    let mut warnings = vec![];
    let given = || match (args.candidates.as_slice(), args.prior.as_slice()) {
        ([m], []) => Ok(Prior::uniform(*m)?),
        ([], [_, ..]) => Ok(Prior::given(args.prior.clone())?),
        ([], []) => Err(Failure::flag(
            "--candidates",
            "say how many values the secret has, or --prior P,… or --data FILE",
        )),
        _ => Err(Failure::flag("--candidates", "one number; several are for --curve epsilon")),
    };
    let prior = match counted {
        Some((prior, warning)) => {
            warnings.extend(warning);
            prior
        }
        None => given()?,
    };
    let kind = args.mechanism.ok_or_else(|| {
        Failure::flag(
            "--mechanism",
            "say what the attacker sees: gaussian, randomised-response, dp-sgd, laplace, composition, renyi",
        )
    })?;
    if kind != MechanismArg::Gaussian && args.encoding.is_some() {
        return Err(Failure::flag("--encoding", "it belongs to --mechanism gaussian"));
    }
    if args.curve == Some(CurveArg::Noise) {
        let varied = match kind {
            MechanismArg::Gaussian => {
                Varied::Sigma(encodings(args.encoding.as_deref().unwrap_or("one-hot"), &prior)?)
            }
            MechanismArg::RandomisedResponse => Varied::Noise,
            _ => return Err(Failure::flag("--curve", "noise is drawn for gaussian and randomised-response")),
        };
        let at = if args.at.is_empty() { varied.grid() } else { args.at.clone() };
        let found = against_noise(&prior, &varied, &at, args.delta, simulation)?;
        return Ok(Found { warnings, ..found });
    }
    Ok(Found { warnings, ..bound::run(&prior, &seen(args, kind, &prior)?, simulation)? })
}

/// The prior counted from a column, where a mechanism says what is released: no model is fitted.
fn counted(args: &Args) -> Result<Option<(Prior, Option<String>)>> {
    if args.mechanism.is_none() || args.data.data.is_empty() || args.data.target.is_some() {
        return Ok(None);
    }
    if !args.candidates.is_empty() || !args.prior.is_empty() {
        return Err(Failure::flag("--data", "the prior is counted from it, or given: say one of the two"));
    }
    let Some(column) = &args.secret else {
        return Err(Failure::flag("--secret", "say which column of --data the prior is counted from"));
    };
    let table = leakscope_table::Table::open(&args.data.read_alone()?)?;
    let counts = table.counts("--secret", column, &leakscope_table::Hooks::default())?;
    if counts.values.len() < 2 {
        return Err(Failure::flag(
            "--secret",
            format!("`{column}` has one value only: there is nothing to guess"),
        ));
    }
    let prior = Prior::counted(&counts.values.iter().map(|v| v.1).collect::<Vec<u64>>())?;
    let missing = (counts.missing > 0).then(|| {
        let rows = leakscope_report::format::counted(counts.missing, "row");
        format!("{rows} without a value of {column} are not counted in the prior.")
    });
    Ok(Some((prior, missing)))
}

/// Flags that belong to one mechanism or another, and whether they were given.
fn of_mechanisms(args: &Args) -> [(&'static str, bool); 9] {
    [
        ("--sigma", args.sigma.is_some()),
        ("--noise", args.noise.is_some()),
        ("--laplace", args.laplace.is_some()),
        ("--rate", args.rate.is_some()),
        ("--steps", args.steps.is_some()),
        ("--step", !args.step.is_empty()),
        ("--alpha", args.alpha.is_some()),
        ("--epsilon", args.epsilon.is_some()),
        ("--adjacency", args.adjacency.is_some()),
    ]
}

/// What the attacker sees, from flags that belong to it and no others.
fn seen(args: &Args, kind: MechanismArg, prior: &Prior) -> Result<Seen> {
    let need =
        |flag: &str, value: Option<f64>| value.ok_or_else(|| Failure::flag(flag, "this mechanism needs it"));
    let given = of_mechanisms(args);
    let own: &[&str] = match kind {
        MechanismArg::Gaussian => &["--sigma"],
        MechanismArg::RandomisedResponse => &["--noise"],
        MechanismArg::DpSgd => &["--sigma", "--rate", "--steps", "--adjacency"],
        MechanismArg::Laplace => &["--laplace", "--steps", "--adjacency"],
        MechanismArg::Composition => &["--step", "--adjacency"],
        MechanismArg::Renyi => &["--alpha", "--epsilon"],
    };
    if let Some((flag, _)) = given.iter().find(|(flag, is)| *is && !own.contains(flag)) {
        return Err(Failure::flag(flag, format!("this mechanism has {}", own.join(", "))));
    }
    Ok(match kind {
        MechanismArg::Gaussian => Seen::Gaussian {
            encodings: encodings(args.encoding.as_deref().unwrap_or("one-hot"), prior)?,
            sigma: need("--sigma", args.sigma)?,
        },
        MechanismArg::RandomisedResponse => Seen::RandomisedResponse { noise: need("--noise", args.noise)? },
        MechanismArg::DpSgd => {
            let adjacency = said(args.adjacency)?;
            let steps = args.steps.ok_or_else(|| Failure::flag("--steps", "this mechanism needs it"))?;
            let (sigma, rate) = (need("--sigma", args.sigma)?, need("--rate", args.rate)?);
            let step =
                mechanism(Some(sigma), None, None, None, Some(rate)).map_err(|(f, w)| Failure::flag(f, w))?;
            Seen::Private(composed(&[(step, steps)], adjacency)?)
        }
        MechanismArg::Laplace => {
            let adjacency = said(args.adjacency)?;
            let scale = need("--laplace", args.laplace)?;
            let step =
                mechanism(None, Some(scale), None, None, None).map_err(|(f, w)| Failure::flag(f, w))?;
            Seen::Private(composed(&[(step, args.steps.unwrap_or(1))], adjacency)?)
        }
        MechanismArg::Renyi => {
            Seen::Renyi { alpha: need("--alpha", args.alpha)?, epsilon: need("--epsilon", args.epsilon)? }
        }
        MechanismArg::Composition => {
            if args.step.is_empty() {
                return Err(Failure::flag(
                    "--step",
                    "say the releases, such as --step sigma=1,rate=0.01,steps=1000",
                ));
            }
            let steps = args.step.iter().map(|s| step(s)).collect::<Result<Vec<_>>>()?;
            Seen::Private(composed(&steps, said(args.adjacency)?)?)
        }
    })
}
