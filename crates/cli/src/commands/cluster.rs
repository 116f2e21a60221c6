//! `leakscope plan`, `run`, `merge` and `worker`: an audit in parts, on machines that see one folder; a worker also helps whoever asks
//! with `--machines`.

use super::audit;
use super::machines_args::patience;
use super::run_args::ThreadArgs;
use crate::progress::Display;
use leakscope::cluster::{Due, Plan, Progress};
use leakscope::{Failure, Result, cluster};
use leakscope_table::RecordsFormat;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Computes one part of a pass of a plan, and leaves its answer in the folder.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct RunArgs {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The pass, as `merge` names it [default: the one that is due]
    #[arg(long, value_name = "NAME")]
    pass: Option<String>,
    /// The part, from 0
    #[arg(long, value_name = "K")]
    part: usize,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Merges the parts of a plan that are there, and says which pass comes next; the last merge writes the audit.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct MergeArgs {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// A pass whose parts must all be there
    #[arg(long, value_name = "NAME")]
    pass: Option<String>,
    /// Print the pass that comes next as JSON: its name, the number of its parts and those that are missing
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Computes parts of a plan, and merges them, until the audit is done; or those of a command with --machines. Any number of workers
/// share the parts.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct WorkerArgs {
    /// Folder of the plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// A part that another worker took and did not finish for so long is taken over, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    patience: f64,
    /// Say nothing of single parts
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Plans an audit.
pub(crate) fn plan(args: &audit::Args) -> Result<ExitCode> {
    let request = audit::request(args)?;
    args.output.run.start()?;
    let Some(out) = &args.output.out else {
        return Err(Failure::option("out", "a plan is a folder that all machines see: name one"));
    };
    if args.output.format != RecordsFormat::Parquet {
        return Err(Failure::option(
            "format",
            "the records of a plan are a folder of Parquet files: leave it out",
        ));
    }
    let display = Display::start(args.output.run.quiet || args.output.run.json, Some(out.clone()))?;
    let plan = Plan::new(out, &request, &display.hooks)?;
    let progress = plan.merge(&display.hooks)?;
    display.finish();
    tell(out, &progress, args.output.run.json)
}

/// Runs a part.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    args.threads.start()?;
    let plan = Plan::open(&args.plan)?;
    let display = Display::start(true, Some(args.plan.clone()))?;
    let pass = match &args.pass {
        Some(pass) => pass.clone(),
        None => {
            plan.passes().pop().ok_or_else(|| Failure::option("pass", "the plan has none: plan again"))?
        }
    };
    plan.run(&pass, args.part, &display.hooks)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges.
pub(crate) fn merge(args: &MergeArgs) -> Result<ExitCode> {
    args.threads.start()?;
    let plan = Plan::open(&args.plan)?;
    if let Some(pass) = &args.pass {
        let missing = plan.missing(pass)?;
        if !missing.is_empty() {
            let message = format!("{pass} lacks {}", parts(&missing));
            return Err(Failure::option("pass", message));
        }
    }
    let display = Display::start(args.json, Some(args.plan.clone()))?;
    let progress = plan.merge(&display.hooks)?;
    display.finish();
    tell(&args.plan, &progress, args.json)
}

/// Works until the audit is done.
pub(crate) fn worker(args: &WorkerArgs) -> Result<ExitCode> {
    args.threads.start()?;
    let working = patience(args.patience)?;
    let display = Display::start(true, Some(args.plan.clone()))?;
    let on_part = |pass: &str, part: usize| {
        if !args.quiet {
            crate::note!("{pass} part {part}");
        }
    };
    let progress = cluster::worker(&args.plan, working, &display.hooks, &on_part)?;
    display.finish();
    match progress {
        Some(progress) => tell(&args.plan, &progress, false),
        // Another worker wrote the result.
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Says what comes next, or what was found.
fn tell(plan: &Path, progress: &Progress, json: bool) -> Result<ExitCode> {
    let stdout = std::io::stdout();
    let (text, code) = match progress {
        Progress::Due(Due { pass, parts, missing }) if json => {
            let next = serde_json::json!({ "pass": pass, "parts": parts, "missing": missing });
            (format!("{next}\n"), 0)
        }
        Progress::Due(Due { pass, parts: count, missing }) => {
            let of = if missing.len() == *count { String::new() } else { format!(" of {count}") };
            let lacking = parts(missing);
            (
                format!(
                    "next: pass {pass}, {lacking}{of}: leakscope run {} --pass {pass} --part K\n",
                    plan.display()
                ),
                0,
            )
        }
        Progress::Done(audit, _) if json => (leakscope_report::json(audit), breached(audit)),
        Progress::Done(audit, written) => {
            let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
            for path in written {
                crate::note!("wrote {}", path.display());
            }
            (leakscope_report::summary(audit, 80, colour), breached(audit))
        }
    };
    // Whoever reads may stop early: that is no failure.
    let _ = stdout.lock().write_all(text.as_bytes());
    Ok(ExitCode::from(code))
}

fn breached(audit: &leakscope_report::Audit) -> u8 {
    u8::from(audit.limits.iter().any(|l| !l.ok))
}

/// Numbers of parts, in words.
fn parts(numbers: &[usize]) -> String {
    match numbers {
        [one] => format!("part {one}"),
        [first, .., last] if last - first + 1 == numbers.len() => format!("parts {first} to {last}"),
        _ => {
            const NAMED: usize = 10;
            let shown: Vec<String> = numbers.iter().take(NAMED).map(usize::to_string).collect();
            let more = if numbers.len() > NAMED { ", …" } else { "" };
            format!("parts {}{more}", shown.join(", "))
        }
    }
}
