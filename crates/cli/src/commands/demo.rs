//! `leakscope demo`: the main job on a table that ships with Leakscope.

use super::audit;
use clap::Parser;
use leakscope::{Failure, Result};
use leakscope_papers::patients;
pub(super) use leakscope_report::quoted;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run the audit on synthetic patients that ship with Leakscope, and leave a report to open.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Folder for the table and the results
    #[arg(long, value_name = "DIR", default_value = "leakscope-demo")]
    out: PathBuf,
    /// Only print the table as CSV
    #[arg(long)]
    table: bool,
    /// Number of patients
    #[arg(long, value_name = "N", default_value_t = patients::SHIPPED.1)]
    rows: usize,
    /// Seed of the patients
    #[arg(long, value_name = "N", default_value_t = patients::SHIPPED.0)]
    seed: u64,
}

/// The audit's arguments as a user would type them.
const AUDIT: &[&str] = &[
    "--target",
    "dose",
    "--id",
    "patient",
    "--group",
    "race",
    "--model",
    "linear",
    "--l2",
    "0.01",
    "--target-sd",
    "age=50",
    "--holdout",
    "0.2",
    "--seed",
    "1",
    "--unit",
    "age=years",
    "--unit",
    "height=cm",
    "--unit",
    "weight=kg",
];

#[derive(Parser)]
struct Shell {
    #[command(flatten)]
    audit: audit::Args,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.rows < 100 {
        return Err(Failure::option("rows", format!("{}: expected at least 100", args.rows)));
    }
    let table = patients::table(args.seed, args.rows);
    if args.table {
        let _ = std::io::stdout().lock().write_all(table.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    let fail = |e: std::io::Error| {
        Failure::option("out", format!("cannot write to {}: {e}; choose another folder", args.out.display()))
    };
    std::fs::create_dir_all(&args.out).map_err(fail)?;
    let file = args.out.join("patients.csv");
    refuse_other_patients(&file, &table)?;
    std::fs::write(&file, table).map_err(fail)?;
    let mut words: Vec<OsString> = vec![file.into()];
    words.extend(AUDIT.iter().map(OsString::from));
    words.extend(["--out".into(), args.out.clone().into()]);
    let shown: Vec<String> = words.iter().map(|w| quoted(&w.to_string_lossy())).collect();
    crate::note!("$ leakscope audit {}\n", shown.join(" "));
    let shell = Shell::try_parse_from(std::iter::once(OsString::from("leakscope")).chain(words))
        .map_err(|e| Failure::Message(e.to_string()))?;
    let code = audit::run(&shell.audit)?;
    crate::note!("\nOpen {} in a browser.", args.out.join("report.html").display());
    Ok(code)
}

/// Somebody's own table of patients is not overwritten.
fn refuse_other_patients(file: &Path, table: &str) -> Result<()> {
    let first_line = |text: &str| text.lines().next().map(str::to_owned);
    match std::fs::read(file) {
        Ok(bytes) if first_line(&String::from_utf8_lossy(&bytes)) != first_line(table) => {
            let message =
                format!("{} is there already and not of the demo: choose another folder", file.display());
            Err(Failure::option("out", message))
        }
        _ => Ok(()),
    }
}
