//! The commands, one file each. Exit codes: 0 an answer (within the budget), 1 above the budget, 2 no answer.

mod account;
mod attack;
mod audit;
mod balance;
mod bound;
mod calibrate;
mod coefficients;
mod columns;
mod data;
mod demo;
pub(crate) mod net;
mod privacy_args;
mod release;
mod reproduce;
mod run_args;
mod table_args;

use crate::audit::Request;
use crate::calls::{COMMA, Tables};
use crate::unexpected::guarded;
use crate::{Failure, Result};
use clap::{CommandFactory, Parser, Subcommand};
use leakscope_table::Hooks;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use attack::{TEXTS as ATTACK_TEXTS, asked as attack_asked, texts as attack_texts};
pub(crate) use audit::{TEXTS as AUDIT_TEXTS, request as audit_request, tables as audit_tables};
pub(crate) use balance::{
    TABLES as BALANCE_TABLES, TEXTS as BALANCE_TEXTS, asked as balance_asked, texts as balance_texts,
};
pub use privacy_args::Answer;
pub(crate) use release::{TEXTS as RELEASE_TEXTS, publish as release_publish};

#[derive(Parser)]
#[command(name = "leakscope", version, about, long_about = LONG_ABOUT, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "How much does a trained model give away about the records it was trained on?

Leakscope measures the Fisher information loss of every record, attribute and group in a model that is \
released with noise, says what follows for any attacker, and writes a page to look at.

Start with `leakscope demo`.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Fit a generalised linear model to a table and measure what its release gives away
    Audit(Box<audit::Args>),
    /// Reweight records until all leak the same, and write the weights and the balanced model
    Balance(Box<balance::Args>),
    /// Play the attacks of the papers against the model, and see how often a secret attribute is guessed
    Attack(Box<attack::Args>),
    /// Add the noise and write the private model with its statement and a ledger of releases
    Release(Box<release::Args>),
    /// What a sequence of noisy releases costs: ε by each accountant, advantage, trade-off curve
    Account(Box<account::Args>),
    /// What any attacker can guess of a discrete secret at most, by each bound that applies
    Bound(Box<bound::Args>),
    /// The noise, sampling rate or number of steps that meets a target, and what it costs
    Calibrate(Box<calibrate::Args>),
    /// Run the audit on synthetic patients that ship with Leakscope, and leave a report to open
    Demo(demo::Args),
    /// Make a table or figure of a paper, beside the published one
    Reproduce(reproduce::Args),
    /// Name and fetch the data sets of the papers
    Data(data::Args),
    /// Train networks in private, and measure what their gradients give away
    Net(net::Args),
}

/// The parser, for questions about its options.
pub(crate) fn parser() -> clap::Command {
    Cli::command()
}

/// Reads the words of a command line, without the programme's name; what is wrong with them is a failure.
pub(crate) fn parse(words: &[String]) -> Result<Command> {
    let words = std::iter::once("leakscope").chain(words.iter().map(String::as_str));
    let mut command = Cli::try_parse_from(words).map_err(|e| Failure::Option(complaint(&e)))?.command;
    let columns = match &mut command {
        Command::Audit(args) => Some(&mut args.table.columns),
        Command::Balance(args) => Some(&mut args.table.columns),
        Command::Attack(args) => {
            commas(&mut args.candidates);
            Some(&mut args.table.columns)
        }
        Command::Release(args) => Some(&mut args.table.columns),
        Command::Bound(args) => Some(&mut args.data.columns),
        Command::Calibrate(args) => Some(&mut args.data.columns),
        _ => None,
    };
    if let Some(columns) = columns {
        [&mut columns.drop, &mut columns.categorical, &mut columns.na]
            .into_iter()
            .for_each(|names| commas(names));
    }
    Ok(command)
}

fn commas(names: &mut [String]) {
    names.iter_mut().for_each(|name| *name = name.replace(COMMA, ","));
}

/// What the parser says, without its advice on how to call the programme.
fn complaint(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let said = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    said.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What a release is asked to do, and where to.
pub(crate) fn release_asked(args: &release::Args) -> Result<(Request, crate::release::Terms, PathBuf)> {
    let (request, terms) = release::asked(args)?;
    Ok((request, terms, args.out.clone()))
}

/// What `account`, `bound` or `calibrate` answer.
pub(crate) fn answer(words: &[String], tables: &Tables, hooks: &Hooks) -> Result<Answer> {
    match parse(words)? {
        Command::Account(args) => account::answer(&args),
        Command::Bound(args) => bound::answer(&args, tables, hooks),
        Command::Calibrate(args) => calibrate::answer(&args, tables, hooks),
        _ => Err(Failure::Message("these words are those of another command".into())),
    }
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    let outcome = guarded(|| match command {
        Command::Audit(args) => audit::run(&args),
        Command::Balance(args) => balance::run(&args),
        Command::Attack(args) => attack::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Account(args) => account::run(&args),
        Command::Bound(args) => bound::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Net(args) => net::run(&args),
    });
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
