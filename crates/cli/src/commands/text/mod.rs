//! `leakscope text`: what fine-tuning a language model on a text gives away.

mod canary;

use leakscope::Result;
use std::process::ExitCode;

/// What fine-tuning a language model on a text gives away.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug, Clone)]
enum Command {
    /// Play the extraction game: can a secret be pulled out of a model that was fine-tuned on it?
    Canary(Box<canary::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Canary(args) => canary::run(args),
    }
}
