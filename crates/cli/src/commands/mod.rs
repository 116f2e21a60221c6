//! The commands, one file each. Exit codes: 0 an answer (within the budget), 1 above the budget, 2 no answer.

mod account;
mod attack;
mod audit;
mod balance;
mod bound;
mod calibrate;
mod cluster;
mod columns;
mod compare;
mod completions;
mod config;
mod data;
mod demo;
mod devices;
mod groups;
mod machines_args;
mod net;
mod noise_args;
mod opener;
mod privacy_args;
mod public_args;
mod release;
mod release_line;
mod reproduce;
mod run_args;
mod schema;
mod table_args;
mod text;
pub(crate) mod training_args;
mod withdraw;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use leakscope::Spelling;
use leakscope::unexpected::guarded;
use std::io::Write;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "leakscope", version, about, long_about = LONG_ABOUT, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Take options from this file: a section for each command, such as [audit], with the options as keys
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Open the page when it is done
    #[arg(long, global = true)]
    open: bool,
}

/// What somebody sees who asks for nothing.
const FIRST: &str = "Leakscope: how much does a trained model give away about the records it was trained on?

Three things to do first:
  leakscope demo --open                             see a page, on patients that never lived
  leakscope audit TABLE.csv --target COLUMN \\
      --sigma 1 --out audit/                        audit a model of your own table
  leakscope net demo --open                         the same for a network trained in private

`leakscope --help` lists all commands, `leakscope audit --help` the options of one.
";

const LONG_ABOUT: &str = "How much does a trained model give away about the records it was trained on?

Leakscope measures the Fisher information loss of every record, attribute and group in a model that is \
released with noise, says what follows for any attacker, and writes a page to look at.

Start with `leakscope demo`.";

#[derive(Subcommand)]
enum Command {
    /// Fit a generalised linear model to a table and measure what its release gives away
    Audit(Box<audit::Args>),
    /// Reweight records until all leak the same, and write the weights and the balanced model
    Balance(Box<balance::Args>),
    /// Play the attacks of the papers against the model, and see how often a secret attribute is guessed
    Attack(Box<attack::Args>),
    /// Add the noise and write the private model with its statement and a ledger of releases
    Release(Box<release::Args>),
    /// Put on record that a release was never passed on, so that it does not count any more
    Withdraw(withdraw::Args),
    /// What a sequence of noisy releases costs: ε by each accountant, advantage, trade-off curve
    Account(Box<account::Args>),
    /// What any attacker can guess of a discrete secret at most, by each bound that applies
    Bound(Box<bound::Args>),
    /// The noise, sampling rate or number of steps that meets a target, and what it costs
    Calibrate(Box<calibrate::Args>),
    /// Plan an audit of parts, for any number of machines that see one folder
    Plan(Box<audit::Args>),
    /// Compute one part of a pass of a plan
    Run(cluster::RunArgs),
    /// Merge the parts of a plan that are there, and say which pass comes next
    Merge(cluster::MergeArgs),
    /// Compute parts of a plan, and merge them, until the audit is done
    Worker(cluster::WorkerArgs),
    /// Show results of one kind side by side, what got worse first; for pipelines too
    Compare(compare::Args),
    /// Run the audit on synthetic patients that ship with Leakscope, and leave a report to open
    Demo(demo::Args),
    /// Make a table or figure of a paper, beside the published one
    Reproduce(reproduce::Args),
    /// Draft a schema of a table: kinds, bounds, levels, for a person to edit
    Schema(schema::Args),
    /// Name and fetch the data sets of the papers
    Data(data::Args),
    /// Train networks in private, and measure what their gradients give away
    Net(net::Args),
    /// What fine-tuning a language model on a text gives away
    Text(text::Args),
    /// List what networks can compute on, and why a GPU cannot be used
    Devices(devices::Args),
    /// Print a script that completes commands and options in a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write one for every command into a folder
    Man(completions::ManArgs),
}

/// The command line as a whole.
fn command() -> clap::Command {
    Cli::command()
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> ExitCode {
    leakscope::spelling::speak(Spelling::CommandLine);
    let outcome = guarded(|| {
        let words = config::expanded(std::env::args_os().collect(), &command())?;
        let matches = groups::grouped(command()).try_get_matches_from(words).unwrap_or_else(|e| refused(&e));
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
        let Some(command) = cli.command else {
            let _ = std::io::stdout().lock().write_all(FIRST.as_bytes());
            return Ok(ExitCode::SUCCESS);
        };
        let page = cli.open.then(|| opener::Page::of(&matches)).transpose()?;
        let code = run(command)?;
        if let Some(page) = page {
            page.open()?;
        }
        Ok(code)
    });
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            crate::tell!("error: {}", failure.spelled(Spelling::CommandLine));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Ends the process with what is wrong about the command line: clap's words, but for numbers, where it passes on those that
/// programmers read.
fn refused(error: &clap::Error) -> ! {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        Some(_) | None => None,
    };
    if let (Some(expected), Some(option), Some(value)) =
        (expected_number(error), named(ContextKind::InvalidArg), named(ContextKind::InvalidValue))
    {
        crate::note!(
            "error: invalid value '{value}' for '{option}': expected {expected}\n\nFor more information, try '--help'."
        );
        std::process::exit(error.exit_code());
    }
    error.exit();
}

/// What was expected where a text is no number.
fn expected_number(error: &clap::Error) -> Option<&'static str> {
    let source = std::error::Error::source(error)?;
    if source.is::<ParseFloatError>() {
        return Some("a number");
    }
    match source.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow => Some("a smaller whole number"),
        _ => Some("a whole number"),
    }
}

fn run(command: Command) -> leakscope::Result<ExitCode> {
    match command {
        Command::Audit(args) => audit::run(&args),
        Command::Balance(args) => balance::run(&args),
        Command::Attack(args) => attack::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Withdraw(args) => withdraw::run(&args),
        Command::Account(args) => account::run(&args),
        Command::Bound(args) => bound::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Plan(args) => cluster::plan(&args),
        Command::Run(args) => cluster::run(&args),
        Command::Merge(args) => cluster::merge(&args),
        Command::Worker(args) => cluster::worker(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Text(args) => text::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    }
}
