//! `leakscope text`: what fine-tuning a language model on a text gives away.

mod audit;
mod canary;
mod train;

use leakscope::Result;
use leakscope::text::{Long, TextSource};
use leakscope_net::text::Trained;
use std::path::PathBuf;
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

/// The model and the texts.
#[derive(clap::Args, Debug, Clone)]
struct SourceArgs {
    /// Files of texts, one a line; of JSON lines (.jsonl) the field that --field names
    #[arg(required = true, value_name = "TEXTS")]
    texts: Vec<PathBuf>,
    /// A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint; taken to be public
    #[arg(long, value_name = "DIR|FILE")]
    model: PathBuf,
    /// Its tokeniser [default: that of the folder]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The field with the text, of JSON lines
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// What becomes of a text that is longer than the context of the model; one that is cut is still clipped whole
    #[arg(long, value_enum, default_value_t = Long::Refuse)]
    long: Long,
    /// What is fine-tuned
    #[arg(long, value_enum, value_name = "PART", default_value = "all")]
    layers: Trained,
    /// Rank of adapters
    #[arg(long, value_name = "R", default_value_t = 8)]
    rank: usize,
}

impl SourceArgs {
    fn request(&self) -> TextSource {
        TextSource {
            model: self.model.clone(),
            tokenizer: self.tokenizer.clone(),
            texts: self.texts.clone(),
            list: vec![],
            field: self.field.clone(),
            long: self.long,
            layers: self.layers,
            rank: self.rank,
        }
    }
}
