//! `leakscope text train`: a language model fine-tuned on texts, in private where there is noise.

use super::super::training_args::TrainingArgs;
use super::SourceArgs;
use leakscope::Result;
use leakscope::text::train::{TextTrainRequest, run as train};
use std::path::PathBuf;
use std::process::ExitCode;

/// Fine-tune a language model on texts, with DP-SGD where there is noise.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// The field that says whose a text is, of JSON lines: users are drawn and clipped with all their texts, and ε is for a
    /// user [default: for a text]
    #[arg(long, value_name = "NAME")]
    user_field: Option<String>,
    /// Files of texts that are not trained on: how well such are predicted. Nothing is promised to them
    #[arg(long, alias = "holdout", num_args = 1.., value_name = "FILE")]
    test: Vec<PathBuf>,
    /// Texts (or users) that a step is expected to draw
    #[arg(long, value_name = "N", default_value_t = 32.0, allow_negative_numbers = true)]
    batch: f64,
    #[command(flatten)]
    training: TrainingArgs,
}

impl Args {
    fn request(&self) -> TextTrainRequest {
        TextTrainRequest {
            source: self.source.request(),
            user_field: self.user_field.clone(),
            users: vec![],
            test: self.test.clone(),
            test_list: vec![],
            batch: self.batch,
            run: self.training.request(),
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.training.run.start()?;
    let request = args.request();
    args.training.train(|out, listener| train(&request, out, listener).map(|done| done.run))
}
