//! `leakscope completions` and `leakscope man`: what a shell and a reader need to know of the options.

use super::groups::grouped;
use clap_complete::Shell;
use leakscope::output::write_text;
use leakscope::{Failure, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A script for a shell.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Manual pages.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ManArgs {
    /// Folder for the pages of all commands, `leakscope.1`, `leakscope-audit.1` and so on
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut super::command(), "leakscope", &mut script);
    // Whoever reads may stop early: that is no failure.
    let _ = std::io::stdout().lock().write_all(&script);
    Ok(ExitCode::SUCCESS)
}

/// Prints the page of the program, or writes all pages.
pub(crate) fn man(args: &ManArgs) -> Result<ExitCode> {
    let mut command = grouped(super::command());
    command.build();
    match &args.out {
        None => {
            let _ = std::io::stdout().lock().write_all(&page(command)?);
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|e| Failure::option("out", format!("cannot write to {}: {e}", folder.display())))?;
            write_pages(&command, folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The name that a built command has among all, such as `leakscope-net-train`.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = folder.join(format!("{name}.1"));
    write_text(&path, &String::from_utf8_lossy(&page(command.clone())?))?;
    crate::note!("wrote {}", path.display());
    command.get_subcommands().filter(|s| s.get_name() != "help").try_for_each(|s| write_pages(s, folder))
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut text = vec![];
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|e| Failure::Message(format!("the manual page could not be written: {e}")))?;
    Ok(text)
}
