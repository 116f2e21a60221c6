//! The passes that may come as bytes, each with the name of its folder: what reads a part is compiled from the same code as
//! what reads a whole table.

use crate::audit::{Measuring, measure_part};
use leakscope_core::fisher::Eta;
use leakscope_core::fisher::noise::Scores;
use leakscope_core::glm::{HuberStart, LogStart, Newton, Utility};
use leakscope_core::measure::{ColumnDistributions, ColumnValues, CountedEta};
use leakscope_core::pass::{self, Covariance, LargestNorm, Pass, bytes};
use leakscope_table::{Dataset, Error, Result};
use std::path::Path;

/// Runs a pass over a part; the file is for its records.
type Run = fn(&Dataset, &[u8], Option<&Path>) -> Result<Vec<u8>>;

/// What the bytes of each pass are called, what its folder is, who runs it.
const PASSES: [(&str, &str, Run); 12] = [
    (LargestNorm::NAME, "norm", state::<LargestNorm>),
    (Covariance::NAME, "components", state::<Covariance<'static>>),
    (LogStart::NAME, "start", state::<LogStart>),
    (HuberStart::NAME, "start", state::<HuberStart<'static>>),
    (Newton::NAME, "fit", state::<Newton<'static>>),
    (Eta::NAME, "eta", state::<Eta<'static>>),
    (CountedEta::NAME, "eta", state::<CountedEta<'static>>),
    (Measuring::NAME, "records", measure_part),
    (Utility::NAME, "utility", state::<Utility<'static>>),
    (Scores::NAME, "scores", state::<Scores<'static>>),
    (ColumnDistributions::NAME, "columns", state::<ColumnDistributions<'static>>),
    (ColumnValues::NAME, "values", state::<ColumnValues>),
];

fn state<P: Pass>(rows: &Dataset, sent: &[u8], _: Option<&Path>) -> Result<Vec<u8>> {
    let pass: P = pass::from_bytes(sent)?;
    Ok(pass::state_to_bytes(&pass, &pass::run(&pass, rows)?)?)
}

fn known(name: &str) -> Option<&'static (&'static str, &'static str, Run)> {
    PASSES.iter().find(|(kind, ..)| *kind == name)
}

/// Runs a pass that came as bytes.
pub(super) fn run(rows: &Dataset, sent: &[u8], records: Option<&Path>) -> Result<Vec<u8>> {
    let kind = bytes::kind_of(sent)?;
    let unknown = || Error::Elsewhere(format!("there is no pass for {kind}: use one version everywhere"));
    let (_, _, run) = known(kind).ok_or_else(unknown)?;
    run(rows, sent, records)
}

/// The short name of work.
pub(super) fn short(name: &str) -> &str {
    known(name).map_or(name, |(_, short, _)| short)
}
