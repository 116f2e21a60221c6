//! `leakscope data`: what the papers' data sets are called, and how to get them.

use leakscope::{Failure, Result};
use leakscope_papers::{Set, fetch};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The data sets of the papers.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand, Debug, Clone)]
enum Action {
    /// Name the data sets, where they are published and what files they have
    List,
    /// Fetch a data set, going on where an earlier try stopped, and check it
    Get(GetArgs),
}

#[derive(clap::Args, Debug, Clone)]
struct GetArgs {
    /// The data set: mnist, cifar10 or adult
    name: String,
    /// Folder for all data; the set gets its own in it
    #[arg(long, value_name = "DIR", default_value = "data")]
    out: PathBuf,
    /// Fetch the files from this address instead of where they are published
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// No remarks on stderr
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.action {
        Action::List => {
            let mut text = String::new();
            for set in Set::ALL {
                text.push_str(&format!(
                    "{:8}  {}, published {}\n",
                    set.folder(),
                    set.title(),
                    set.published()
                ));
            }
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
        }
        Action::Get(get) => {
            let Some(set) = Set::ALL.into_iter().find(|s| s.folder() == get.name) else {
                let known: Vec<&str> = Set::ALL.iter().map(|s| s.folder()).collect();
                return Err(Failure::Message(format!(
                    "there is no data set `{}`: they are {}",
                    get.name,
                    known.join(", ")
                )));
            };
            let say = |text: &str| {
                if !get.quiet {
                    crate::note!("{text}");
                }
            };
            fetch::get(set, &get.out, get.from.as_deref(), say)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
