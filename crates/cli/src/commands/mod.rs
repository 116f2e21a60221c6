//! The commands, one file each. Exit codes: 0 an answer (within the budget), 1 above the budget, 2 no answer.

mod audit;
mod demo;
mod net;
mod table_args;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

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
enum Command {
    /// Fit a generalised linear model to a table and measure what its release gives away
    Audit(Box<audit::Args>),
    /// Run the audit on synthetic patients that ship with Leakscope, and leave a report to open
    Demo(demo::Args),
    /// Train networks in private, and measure what their gradients give away
    Net(net::Args),
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Audit(args) => audit::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Net(args) => net::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
