//! The passes that may come as bytes, each with the name of its folder: what reads a part is compiled from the same code as
//! what reads a whole table.

use crate::audit::{Measuring, Scoring};
use crate::bound::Guesses;
use crate::labelled::{self, LabelledPass, Labelling, NameOfRow};
use leakscope_core::attack::Removals;
use leakscope_core::balance::{Losses, OwnWeights, SoftmaxLosses};
use leakscope_core::fisher::Eta;
use leakscope_core::fisher::noise::Scores;
use leakscope_core::fisher::softmax::SoftmaxEta;
use leakscope_core::glm::softmax::{Accuracy, ClassCounts, SoftmaxNewton};
use leakscope_core::glm::{HuberStart, LogStart, Newton, Utility};
use leakscope_core::measure::{
    ColumnDistributions, ColumnValues, CountedEta, Measure, Score, SoftmaxMeasure, SoftmaxScore,
};
use leakscope_core::pass::{self, Covariance, LargestNorm, Pass, bytes};
use leakscope_core::rows::{Alteration, Altered, Rows};
use leakscope_table::{Dataset, Error, Result};
use std::path::PathBuf;

/// The file for the records of a part, by the name of their table; none where they are not wanted.
pub(super) type TableFile<'a> = dyn Fn(&str) -> Option<PathBuf> + 'a;

/// Runs a pass over a part, after what is done to its rows.
type Run = fn(&Dataset, Vec<Alteration<'static>>, &[u8], &TableFile<'_>) -> Result<Vec<u8>>;

/// What the bytes of each pass are called, what its folder is, who runs it.
const PASSES: [(&str, &str, Run); 26] = [
    (LargestNorm::NAME, "norm", state::<LargestNorm>),
    (Covariance::NAME, "components", state::<Covariance<'static>>),
    (LogStart::NAME, "start", state::<LogStart>),
    (HuberStart::NAME, "start", state::<HuberStart<'static>>),
    (Newton::NAME, "fit", state::<Newton<'static>>),
    (ClassCounts::NAME, "classes", state::<ClassCounts>),
    (SoftmaxNewton::NAME, "fit", state::<SoftmaxNewton<'static>>),
    (Eta::NAME, "eta", state::<Eta<'static>>),
    (CountedEta::NAME, "eta", state::<CountedEta<'static>>),
    (SoftmaxEta::NAME, "eta", state::<SoftmaxEta<'static>>),
    (Measuring::<Measure<'_>>::NAME, "records", records::<Measuring<Measure<'static>>>),
    (Measuring::<SoftmaxMeasure<'_>>::NAME, "records", records::<Measuring<SoftmaxMeasure<'static>>>),
    (Scoring::<Score<'_>>::NAME, "scores", records::<Scoring<Score<'static>>>),
    (Scoring::<SoftmaxScore<'_>>::NAME, "scores", records::<Scoring<SoftmaxScore<'static>>>),
    (Labelling::NAME, "labels", records::<Labelling>),
    (NameOfRow::NAME, "name", records::<NameOfRow>),
    (Utility::NAME, "utility", state::<Utility<'static>>),
    (Accuracy::NAME, "utility", state::<Accuracy<'static>>),
    (Scores::NAME, "sandwich", state::<Scores<'static>>),
    (ColumnDistributions::NAME, "columns", state::<ColumnDistributions<'static>>),
    (ColumnValues::NAME, "values", state::<ColumnValues>),
    (OwnWeights::NAME, "weights", state::<OwnWeights>),
    (<Losses<'_>>::NAME, "losses", state::<Losses<'static>>),
    (SoftmaxLosses::NAME, "losses", state::<SoftmaxLosses<'static>>),
    (Removals::NAME, "removals", state::<Removals<'static>>),
    (Guesses::NAME, "guesses", state::<Guesses<'static>>),
];

fn state<P: Pass>(
    rows: &Dataset,
    alterations: Vec<Alteration<'static>>,
    message: &[u8],
    _: &TableFile<'_>,
) -> Result<Vec<u8>> {
    let pass: P = pass::from_bytes(message)?;
    let altered = Altered::new(rows, alterations);
    Ok(pass::state_to_bytes(&pass, &pass::run(&pass, altered.as_rows())?)?)
}

fn records<P: LabelledPass>(
    rows: &Dataset,
    alterations: Vec<Alteration<'static>>,
    message: &[u8],
    file: &TableFile<'_>,
) -> Result<Vec<u8>> {
    if !alterations.is_empty() {
        return Err(Error::Elsewhere(format!(
            "{} are of rows as they stand: use one version everywhere",
            P::NAME
        )));
    }
    labelled::run_part::<P>(rows, message, file)
}

fn pass_named(name: &str) -> Option<&'static (&'static str, &'static str, Run)> {
    PASSES.iter().find(|(kind, ..)| *kind == name)
}

/// Runs a pass that came as bytes.
pub(super) fn run(
    rows: &Dataset,
    alterations: Vec<Alteration<'static>>,
    message: &[u8],
    file: &TableFile<'_>,
) -> Result<Vec<u8>> {
    let kind = bytes::kind_of(message)?;
    let unknown = || Error::Elsewhere(format!("there is no pass for {kind}: use one version everywhere"));
    let (_, _, run) = pass_named(kind).ok_or_else(unknown)?;
    run(rows, alterations, message, file)
}

/// The short name of work.
pub(super) fn short(name: &str) -> &str {
    pass_named(name).map_or(name, |(_, short, _)| short)
}
