//! `leakscope withdraw`: a release that never left the house does not count.

use super::release::ledger_key;
use super::run_args::RunArgs;
use leakscope::Result;
use leakscope::output::{Folder, Pending};
use leakscope::release::withdraw;
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Put on record that a release was never passed on, so that it does not count any more.
///
/// The reason goes into the ledger, under its seal; the files of the release are moved to private/.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Folder of the releases, as given to `release --out`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Which one: 2 for release-2
    #[arg(value_name = "N")]
    release: usize,
    /// How you know that none of its files left the house
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// File of the key that seals the ledger [default: private/ledger.key]
    #[arg(long, value_name = "FILE")]
    ledger_key: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let key = ledger_key(args.ledger_key.clone());
    let done = withdraw(&args.folder, args.release, &args.reason, key.as_deref())?;
    // It is done: what lists releases must not make that look like a failure.
    let listed = Folder::open(&args.folder, RecordsFormat::Parquet).and_then(|folder| {
        let mut pending = Pending::default();
        folder.list_releases(&mut pending).and_then(|()| folder.publish(pending))
    });
    if let Err(why) = listed {
        crate::tell!("the list of pages of the folder could not be brought up to date: {why}");
    }
    args.run.warn(&done.remarks);
    let json = leakscope_report::owners_document(&done);
    args.run.show(&json, &done.summary(), &[]);
    Ok(ExitCode::SUCCESS)
}
