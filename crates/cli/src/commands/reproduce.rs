//! `leakscope reproduce`: tables and figures of the papers.

use super::run_args::RunArgs;
use crate::progress::Display;
use leakscope::net::Device;
use leakscope::output::Folder;
use leakscope::{Failure, Result};
use leakscope_papers::{self as papers, Origin, Size};
use leakscope_table::RecordsFormat;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a table or figure of a paper, beside the published one.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Its name, a paper (all of its tables and figures) or `all`
    name: Option<String>,
    /// Name all there are, with the data they need
    #[arg(long)]
    list: bool,
    /// Folder with the data as published (see `leakscope data list`); some need none (see --list)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Run on small made-up data of the same shape, where data are needed
    #[arg(long, conflicts_with = "data")]
    synthetic: bool,
    /// Folder for the page, the numbers and the figures; several names get a folder each in it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Noise vectors for every point of an attack [default: 100, on made-up data 10]
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Training runs whose mean each row of a table shows, where training is random [default: 3 and more, as the table says]
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Run what takes hours at the published size; without it, such tables are made from a part of the data in minutes
    #[arg(long)]
    full: bool,
    /// Seed of splits, noise and toy data
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where networks compute: cpu, cuda, cuda:1 (a GPU by its number), or auto (a GPU where one can be used)
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some(name) = &args.name else {
        return match args.list {
            true => list(args),
            false => Err(Failure::Message(
                "say what to reproduce: a table or figure, a paper or `all`; `leakscope reproduce --list` names them".into(),
            )),
        };
    };
    for (option, is_zero) in [("trials", args.trials == Some(0)), ("runs", args.runs == Some(0))] {
        if is_zero {
            return Err(Failure::number(option, 0, "expected at least 1"));
        }
    }
    args.run.start()?;
    let chosen = papers::chosen(name)?;
    let origin = origin(args, &chosen)?;
    let open = |folder: PathBuf| Folder::open(&folder, RecordsFormat::Csv);
    let folders: Vec<Option<Folder>> = chosen
        .iter()
        .map(|e| match &args.out {
            None => Ok(None),
            Some(out) if chosen.len() == 1 => open(out.clone()).map(Some),
            Some(out) => open(out.join(e.name)).map(Some),
        })
        .collect::<Result<_>>()?;
    let mut display = Display::start(args.run.quiet || args.run.json, args.out.clone())?;
    let size = Size { trials: args.trials, runs: args.runs, seed: args.seed, full: args.full };
    let mut all = vec![];
    for (experiment, folder) in chosen.iter().zip(&folders) {
        if chosen.len() > 1 && !args.run.json {
            display.remark(&format!("{} …", experiment.name));
        }
        if all.is_empty() {
            // nothing is written yet: what is learned before a step may take minutes, and need not be waited for
            display = display.may_end();
        }
        let reproduction = papers::run(experiment, &origin, size, args.device, &display.hooks)?;
        display.settle();
        let written =
            folder.as_ref().map(|f| papers::write(&reproduction, f)).transpose()?.unwrap_or_default();
        all.push((reproduction, written));
    }
    display.finish();
    let index = match &args.out {
        Some(out) if chosen.len() > 1 => papers::write_index(out)?,
        Some(_) | None => vec![],
    };
    if args.run.json {
        let text = match all.as_slice() {
            [(one, _)] => leakscope_report::document(one),
            several => leakscope_report::document(&several.iter().map(|a| &a.0).collect::<Vec<_>>()),
        };
        args.run.show(&text, "", &[]);
        return Ok(ExitCode::SUCCESS);
    }
    for (reproduction, written) in &all {
        let pages: Vec<PathBuf> =
            written.iter().filter(|p| p.extension().is_some_and(|e| e == "html")).cloned().collect();
        args.run.show("", &format!("{}\n", papers::summary(reproduction)), &pages);
    }
    args.run.show("", "", &index);
    Ok(ExitCode::SUCCESS)
}

/// Where the data come from.
fn origin<'a>(args: &'a Args, chosen: &[&papers::Experiment]) -> Result<Origin<'a>> {
    Ok(match &args.data {
        Some(path) if !path.is_dir() => {
            return Err(Failure::option(
                "data",
                format!("{} is no folder: name the one with the data", path.display()),
            ));
        }
        Some(path) => Origin::Folder(path),
        None if args.synthetic => Origin::Synthetic,
        None => match chosen.iter().find(|e| !e.needs.is_empty()) {
            Some(e) => {
                let needs: Vec<&str> = e.needs.iter().map(|s| s.folder()).collect();
                return Err(Failure::option(
                    "data",
                    format!(
                        "{} needs {}: name the folder with the data (`leakscope data list` tells where they are \
                         published), or try ⟨synthetic⟩, which needs none",
                        e.name,
                        needs.join(" and ")
                    ),
                ));
            }
            None => Origin::Nowhere,
        },
    })
}

fn list(args: &Args) -> Result<ExitCode> {
    let all = papers::experiments();
    let width = all.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let line = |e: &papers::Experiment| {
        let needs: Vec<&str> = e.needs.iter().map(|s| s.folder()).collect();
        let needs = if needs.is_empty() { "no data".into() } else { needs.join(", ") };
        format!("{:width$}  {} ({needs})\n", e.name, e.title)
    };
    let text: String = all.iter().map(line).collect();
    let json: Vec<serde_json::Value> = all
        .iter()
        .map(|e| {
            let needs: Vec<&str> = e.needs.iter().map(|s| s.folder()).collect();
            serde_json::json!({ "name": e.name, "title": e.title, "source": e.source, "needs": needs })
        })
        .collect();
    args.run.show(&leakscope_report::document(&json), &text, &[]);
    Ok(ExitCode::SUCCESS)
}
