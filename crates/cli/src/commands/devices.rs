//! `leakscope devices`: what networks can compute on, and why a GPU cannot be used.

use leakscope::Result;
use leakscope::net::device::{Devices, devices};
use leakscope_report::document;
use std::io::Write;
use std::process::ExitCode;

/// What there is.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let inventory = devices();
    let text = if args.json { document(&inventory.listed()) } else { lines(&inventory) };
    // whoever reads may stop early: that is no failure
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn lines(inventory: &Devices) -> String {
    let threads = match inventory.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    };
    let mut text = format!("cpu      the processor, {threads}\n");
    match &inventory.gpus {
        Err(reason) => text += &format!("cuda     cannot be used: {reason}\n"),
        Ok(gpus) if gpus.is_empty() => text += "cuda     there is no GPU\n",
        Ok(gpus) => {
            for (card, reason) in gpus {
                let [major, minor] = card.capability;
                text += &format!(
                    "cuda:{}   {}, {} GiB, compute capability {major}.{minor}{}\n",
                    card.ordinal,
                    card.name,
                    card.memory >> 30,
                    reason.as_ref().map_or_else(String::new, |r| format!("; cannot be used: {r}"))
                );
            }
        }
    }
    text
}
