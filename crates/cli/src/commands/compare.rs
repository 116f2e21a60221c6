//! `leakscope compare`: results of one kind side by side, and a verdict for a pipeline.

use super::privacy_args::ShowArgs;
use leakscope::compare::{self, CompareRequest, FailOn, SummaryFormat};
use leakscope::output::write_text;
use leakscope::{Failure, Result};
use leakscope_report::comparison::Kind;
use leakscope_report::{PageKind, comparison_page, comparison_summary, owners_document};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows results of one kind side by side: what changed for whom, what got worse first.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Folders of results, or the JSON documents in them; the first is the reference
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Which results, where folders hold several kinds: audit, balance, attack, bound, release, training, net-audit, canary,
    /// text-audit, account, calibrate, inversion, membership, informed, reproduce
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// Exit with 1 on: red, amber, worse (a worse colour than the reference), regression (any number worse) or eta=10% (mean
    /// or largest η up by more); several by commas
    #[arg(long, value_name = "DEMAND,…", value_delimiter = ',')]
    fail_on: Vec<String>,
    /// Print a summary for other programmes instead; it names no record and no value of the data
    #[arg(long, value_enum, value_name = "FORMAT")]
    summary: Option<SummaryFormat>,
    /// Write that summary to a file
    #[arg(long, value_name = "FILE", requires = "summary")]
    summary_out: Option<PathBuf>,
    #[command(flatten)]
    show: ShowArgs,
}

fn kind(text: &str) -> std::result::Result<Kind, String> {
    let names: Vec<&str> = Kind::ALL.into_iter().map(Kind::name).collect();
    let kind_named = Kind::ALL.into_iter().find(|k| k.name() == text);
    kind_named.ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

impl Args {
    fn request(&self) -> Result<CompareRequest> {
        let demand = |text: &String| text.parse::<FailOn>().map_err(|e| Failure::option("fail_on", e));
        Ok(CompareRequest {
            results: self.results.clone(),
            kind: self.kind,
            fail_on: self.fail_on.iter().map(demand).collect::<Result<_>>()?,
        })
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.show.json && args.summary.is_some() && args.summary_out.is_none() {
        return Err(Failure::option(
            "summary",
            "the JSON goes to stdout as well: name a file by ⟨summary_out⟩",
        ));
    }
    let comparison = compare::run(&args.request()?)?;
    let folder = args.show.folder()?;
    let summary = args.summary.map(|format| format.of(&comparison));
    if let (Some(path), Some(text)) = (&args.summary_out, &summary) {
        write_text(path, text)?;
    }
    let text = match summary.filter(|_| args.summary_out.is_none()) {
        Some(summary) => summary,
        None => {
            let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            comparison_summary(&comparison, 100, colour)
        }
    };
    let json = owners_document(&comparison);
    args.show.show(folder.as_ref(), (PageKind::Comparison, &json), || comparison_page(&comparison), &text)?;
    let unmet: Vec<&str> = comparison.unmet().collect();
    unmet.iter().for_each(|why| crate::tell!("failed: {}", leakscope::spelling::for_reader(why)));
    Ok(ExitCode::from(u8::from(!unmet.is_empty())))
}
