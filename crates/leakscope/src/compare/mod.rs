//! Results of one kind side by side: what changed for whom, the first result being the reference.
//!
//! | file | idea |
//! |---|---|
//! | [`reading`] | paths to documents of one kind, about one table |
//! | `numbers` and below | the numbers of a document, each with the way in which it gets worse |
//! | `records` | what changed for whom, by the tables of records |
//! | [`demand`] | what a pipeline fails on |

pub mod demand;
mod networks;
mod numbers;
mod papers;
mod promises;
pub mod reading;
mod records;
mod secrets;
mod tables;

pub use demand::FailOn;

use crate::{Failure, Result, clock};
use leakscope_report::comparison::{Compared, Comparison, Kind, Row, SCHEMA, Section};
use numbers::Numbers;
use reading::Source;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is compared, and what is demanded of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompareRequest {
    /// Folders of results, or documents; the first is the reference.
    pub results: Vec<PathBuf>,
    /// Which kind, where folders hold several.
    pub kind: Option<Kind>,
    /// What a pipeline fails on.
    pub fail_on: Vec<FailOn>,
}

/// How a comparison is told to another programme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum SummaryFormat {
    /// A table in Markdown, for a comment
    Md,
    /// JUnit XML, a test case for every number
    Junit,
    /// SARIF 2.1.0, a result for every regression
    Sarif,
}

impl SummaryFormat {
    /// The comparison in this format. It names no record and no value of the data.
    pub fn of(self, comparison: &Comparison) -> String {
        match self {
            Self::Md => leakscope_report::comparison_markdown(comparison),
            Self::Junit => leakscope_report::comparison_junit(comparison),
            Self::Sarif => leakscope_report::comparison_sarif(comparison),
        }
    }
}

/// Compares results.
pub fn run(request: &CompareRequest) -> Result<Comparison> {
    if request.results.len() < 2 {
        return Err(Failure::Message(format!(
            "{} to compare: name at least two folders of results, the reference first",
            if request.results.is_empty() { "nothing" } else { "one result alone is nothing" }
        )));
    }
    let (kind, sources) = reading::sources(&request.results, request.kind)?;
    let mut warnings = vec![];
    let records = records::changes(&sources, &mut warnings)?;
    let results = sources.iter().map(compared).collect();
    let all: Vec<Vec<Numbers>> = sources.iter().map(|s| s.document.numbers()).collect();
    let mut comparison = Comparison {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: clock::now(),
        kind,
        results,
        sections: side_by_side(&all),
        records,
        demands: vec![],
        warnings,
    };
    comparison.demands =
        request.fail_on.iter().map(|fail_on| fail_on.demand(&comparison)).collect::<Result<_>>()?;
    crate::output::complete(comparison)
}

fn compared(source: &Source) -> Compared {
    let verdict = source.document.verdict();
    Compared {
        name: source.name.clone(),
        file: source.file.display().to_string(),
        created: source.document.created(),
        colour: verdict.colour,
        headline: verdict.headline,
        eta: source.document.eta(),
        added: source.document.added(),
    }
}

/// The numbers of all documents as rows: those of the first document in its order, then what others have besides.
fn side_by_side(all: &[Vec<Numbers>]) -> Vec<Section> {
    let mut sections: Vec<Section> = vec![];
    for (i, numbers) in all.iter().enumerate() {
        for part in numbers {
            let at = sections.iter().position(|s| s.title == part.title).unwrap_or_else(|| {
                sections.push(Section {
                    title: part.title.clone(),
                    about: part.about.into(),
                    named_by_values: part.named_by_values,
                    rows: vec![],
                });
                sections.len() - 1
            });
            let rows = &mut sections[at].rows;
            for entry in &part.entries {
                // Two numbers of one name in a document are two rows.
                let free = |r: &Row| r.name == entry.name && r.values[i].is_none();
                let row = rows.iter().position(free).unwrap_or_else(|| {
                    let (name, values) = (entry.name.clone(), vec![None; all.len()]);
                    rows.push(Row { name, worse: entry.worse, form: entry.form, values });
                    rows.len() - 1
                });
                rows[row].values[i] = Some(entry.value);
            }
        }
    }
    sections.retain(|s| !s.rows.is_empty());
    sections
}
