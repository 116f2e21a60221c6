//! `leakscope text`: what fine-tuning a language model on a text gives away.

mod audit;
mod canary;
mod train;

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
    /// Fine-tune a model on texts, in private where there is noise
    Train(Box<train::Args>),
    /// Measure what one noisy step of fine-tuning tells about every text, and which words
    Audit(Box<audit::Args>),
    /// Play the extraction game: can a secret be pulled out of a model that was fine-tuned on it?
    Canary(Box<canary::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Train(args) => train::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Canary(args) => canary::run(args),
    }
}
