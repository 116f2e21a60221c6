//! `leakscope release`: the private model, with its statement and a ledger.

use super::audit::{pair, tell_budget};
use super::machines_args::MachinesArgs;
use super::noise_args::ShapeArgs;
use super::run_args::{RunArgs, TestArgs, request};
use super::table_args::{ModelArgs, TableArgs};
use crate::progress::Display;
use leakscope::audit::{Request, Statistic};
use leakscope::output::{Folder, Pending};
use leakscope::release::{self, Amount, Outcome, Terms};
use leakscope::saving::RELEASE;
use leakscope::spelling::spell;
use leakscope::{Failure, Result, Spelling};
use leakscope_net::leak::Label;
use leakscope_report::format;
use leakscope_report::verdict::{Colour, PROTECT_AT, of_owned};
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where the key of ledgers is, for all commands of a session.
const LEDGER_KEY: &str = "LEAKSCOPE_LEDGER_KEY";

/// Add the noise and write the private model with its statement and a ledger of releases.
///
/// Exit code 1: refused by the budget, or written with a page that is red, and so not to be passed on.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Standard deviation of the noise on every coefficient in public units, rounded up to a grid (four steps to a factor of two)
    #[arg(long, value_name = "S", required_unless_present_any = ["target_eta", "target_sd"])]
    #[arg(allow_negative_numbers = true, conflicts_with_all = ["target_eta", "target_sd"])]
    sigma: Option<f64>,
    /// Solve for the noise at which a statistic of η is this
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    target_eta: Option<f64>,
    /// The statistic of --target-eta
    #[arg(long, value_enum, default_value_t = Statistic::Max, requires = "target_eta")]
    #[arg(conflicts_with = "sigma")]
    statistic: Statistic,
    /// Make noise under which no unbiased estimate of an attribute (or of a secret target) is closer than this, in its own
    /// units; may be repeated
    #[arg(long, value_name = "ATTRIBUTE=VALUE")]
    target_sd: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Refuse (exit code 1) if the largest η of all releases of these data together would be above this
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    budget_eta: Option<f64>,
    /// Balance leakage first, in this many iterations
    #[arg(long, value_name = "N", default_value_t = 0)]
    balance: usize,
    /// Balance what leaks about this attribute [default: about whole records]
    #[arg(long, value_name = "ATTRIBUTE", requires = "balance")]
    attribute: Option<String>,
    /// The data grew or lost rows since the releases in the ledger: why; it goes on record, and what was released before
    /// still counts
    #[arg(long, value_name = "REASON")]
    data_changed: Option<String>,
    /// The file of the key that seals the ledger, made where it is not there [default: $LEAKSCOPE_LEDGER_KEY, or ledger.key
    /// in private/]
    #[arg(long, value_name = "FILE")]
    ledger_key: Option<PathBuf>,
    /// Two values of an attribute to tell apart, instead of its 10% and 90% quantiles and of each
    /// record's own value and the median; they are published
    #[arg(long, value_name = "ATTRIBUTE=A,B")]
    tell: Vec<String>,
    /// Values that are told apart at most this often count as protected
    #[arg(long, value_name = "SHARE", default_value_t = PROTECT_AT, allow_negative_numbers = true)]
    protect_at: f64,
    /// About how long telling values apart may take, in seconds, or `all`: as long as it takes
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true)]
    tell_budget: String,
    /// Whether the target is part of the record's secret
    #[arg(long, value_enum, default_value_t = Label::Secret)]
    label: Label,
    /// Folder for the releases, in a folder of its own each, which may be published: model.json, release.json, report.html;
    /// and for private/, which may not: the ledger and what was measured
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    machines: MachinesArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// The file of the key of the ledger, where one was named.
pub(super) fn ledger_key(path: Option<PathBuf>) -> Option<PathBuf> {
    path.or_else(|| std::env::var_os(LEDGER_KEY).map(PathBuf::from))
}

/// What is asked for.
pub(crate) fn request_of(args: &Args) -> Result<(Request, Terms)> {
    let test = TestArgs { test: vec![], holdout: None, label: args.label };
    let base = request(&args.table, &args.model, &test, None)?;
    let tell = args.tell.iter().map(|t| pair(t)).collect::<Result<_>>()?;
    let tell_budget = tell_budget(&args.tell_budget)?;
    let base = Request { tell, protect_at: args.protect_at, tell_budget, ..base };
    let shaped = args.shape.is_needed(args.target_eta, &args.target_sd) || !args.target_sd.is_empty();
    let noise = match (args.sigma, args.target_eta) {
        (Some(_), _) if shaped => {
            let message = "noise with a shape has no σ: say what it must achieve with ⟨target_eta⟩ or ⟨target_sd⟩, or take \
                           ⟨noise_shape=isotropic⟩";
            return Err(Failure::option("sigma", message));
        }
        _ if shaped && args.statistic != Statistic::Max => {
            let message = "a target of noise with a shape is for every record: leave it out";
            return Err(Failure::option("statistic", message));
        }
        (_, eta) if shaped => {
            Amount::Shaped(Box::new(args.shape.options(&args.table, eta, &args.target_sd)?))
        }
        (Some(sigma), _) => Amount::Sigma(sigma),
        (None, Some(eta)) => Amount::TargetEta(eta, args.statistic),
        (None, None) => return Err(Failure::option("sigma", "how much noise? give ⟨sigma⟩ or ⟨target_eta⟩")),
    };
    let terms = Terms {
        noise,
        budget_eta: args.budget_eta,
        balance: args.balance,
        attribute: args.attribute.clone(),
        data_changed: args.data_changed.clone(),
        ledger_key: ledger_key(args.ledger_key.clone()),
    };
    Ok((base, terms))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (base, terms) = request_of(args)?;
    args.run.start()?;
    let folder = Folder::open(&args.out, RecordsFormat::Parquet)?;
    folder.spare(&base.inputs(), RELEASE.texts, RELEASE.tables)?;
    let display = Display::start(args.run.quiet || args.run.json, Some(args.out.clone()))?.may_end();
    let outcome = args
        .machines
        .ask(base, &display.hooks, |base| release::run(&base, &terms, folder.path(), &display.hooks))?;
    display.finish();
    let (mut owned, ready) = match outcome {
        Outcome::Ready(owned, ready) => (owned, ready),
        Outcome::Refused(why) => {
            crate::tell!("refused: {}", spell(&why, Spelling::CommandLine));
            return Ok(ExitCode::from(1));
        }
    };
    let written = ready.publish(&owned)?;
    // The release is out: what lists it must not make that look like a failure.
    let mut pending = Pending::default();
    if let Err(why) = folder.list_releases(&mut pending).and_then(|()| folder.publish(pending)) {
        crate::tell!("the release could not be listed with the other pages of the folder: {why}");
    }
    let json = leakscope_report::owners_document(&*owned);
    args.run.warn(&std::mem::take(&mut owned.remarks));
    args.run.warn(&std::mem::take(&mut owned.statement.warnings));
    let sigma = owned.statement.mechanism.sigma;
    // What is shown alike is not said to have been rounded.
    let is_other = |s: &f64| (sigma / s - 1.0).abs() > 1e-9 && format::setting(*s) != format::setting(sigma);
    if let (false, Some(other)) = (args.run.quiet, args.sigma.filter(is_other)) {
        crate::tell!(
            "σ = {other} was rounded up to {}, on a grid of four steps to a factor of two: no digit of it tells of the data",
            format::setting(sigma)
        );
    }
    args.run.show(&json, &release::summary(&owned), &written);
    // For the owner alone: the page that may be published has no colour that depends on the data.
    if of_owned(&owned).colour == Colour::Red {
        crate::note!("this release is red: keep it to yourself (exit code 1)");
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}
