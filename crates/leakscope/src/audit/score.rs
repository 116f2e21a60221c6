//! η of points that were not in the training set: how far a record is from what the model was made from (AM207 §7).

use super::Request;
use super::measure::{Measured, id_name};
use super::scaling::Prepared;
use crate::labelled::{self, LabelledPass, Names};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::fisher::Records;
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::measure::{Extremes, Score, SoftmaxScore};
use leakscope_core::num::Distribution;
use leakscope_core::pass::{Merge, Pass};
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{Dataset, DatasetOptions, Encoding, Hooks, Labels, RecordsPart, RecordsSchema};
use leakscope_table::{Subset, Table};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const SHOWN: usize = 10;

/// Scores of points, before they become part of the audit.
pub(super) struct Scored {
    pub(super) files: Vec<String>,
    pub(super) labelled: bool,
    pub(super) eta: Distribution,
    pub(super) most: Extremes,
    pub(super) names: Names,
    pub(super) dropped: u64,
}

/// A pass of core that scores points, as their table sees it.
pub(crate) trait Scores: Pass {
    /// What the bytes of the pass with labels are called.
    const LABELLED: &'static str;

    /// η of all, and the points of largest η.
    fn eta_and_extremes(state: &Self::State) -> (&Distribution, &Extremes);

    /// η, dFIL, loss and gradient norm of the points of the last block.
    fn last(state: &Self::State) -> [&[f64]; 4];
}

impl Scores for Score<'_> {
    const LABELLED: &'static str = "points, scored and named";

    fn eta_and_extremes(state: &Self::State) -> (&Distribution, &Extremes) {
        (&state.eta, &state.most)
    }

    fn last(state: &Self::State) -> [&[f64]; 4] {
        let Records { eta, dfil, loss, gradient_norm, .. } = state.last();
        [eta, dfil, loss, gradient_norm]
    }
}

impl Scores for SoftmaxScore<'_> {
    const LABELLED: &'static str = "points of a softmax model, scored and named";

    fn eta_and_extremes(state: &Self::State) -> (&Distribution, &Extremes) {
        (&state.eta, &state.most)
    }

    fn last(state: &Self::State) -> [&[f64]; 4] {
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, .. } = state.last();
        [eta, dfil, loss, gradient_norm]
    }
}

/// The pass, and what names and writes points.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scoring<P> {
    pass: P,
    /// Quantiles of the training records' η, to rank points against.
    training: Vec<f64>,
    /// Columns of the table of a part, where there is to be one.
    schema: Option<RecordsSchema>,
}

/// What the pass found, with the names of the points of largest η.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct NamedScores<P: Scores> {
    scores: P::State,
    names: Names,
}

impl<P: Scores> NamedScores<P> {
    fn rows(&self) -> Vec<u64> {
        P::eta_and_extremes(&self.scores).1.records().iter().map(|r| r.row).collect()
    }
}

impl<P: Scores> Merge for NamedScores<P> {
    fn merge(&mut self, later: Self) {
        self.scores.merge(later.scores);
        let rows = self.rows();
        self.names.merge(later.names, rows.into_iter());
    }
}

impl<P: Scores> LabelledPass for Scoring<P> {
    const NAME: &'static str = P::LABELLED;
    const TABLE: &'static str = "scores";
    type State = NamedScores<P>;

    fn schema(&self) -> Option<&RecordsSchema> {
        self.schema.as_ref()
    }

    fn start(&self) -> NamedScores<P> {
        NamedScores { scores: self.pass.start(), names: Names::default() }
    }

    fn step(
        &self,
        state: &mut NamedScores<P>,
        block: &Block,
        labels: &Labels,
        table: Option<&mut RecordsPart>,
    ) -> leakscope_core::Result<()> {
        self.pass.step(&mut state.scores, block)?;
        let rows = state.rows();
        state.names.note(rows.into_iter(), block, labels);
        Ok(write(table, P::last(&state.scores), labels, &self.training)?)
    }

    fn fits(&self, state: &NamedScores<P>) -> bool {
        self.pass.fits(&state.scores)
    }
}

/// Scores points by a model with one vector of coefficients; to be told whether they have labels.
pub(super) fn of_glm<'a>(prepared: &'a Prepared, two_class: bool) -> impl FnOnce(bool) -> Score<'a> {
    move |labelled| Score {
        geometry: Cow::Borrowed(&prepared.geometry),
        counting: prepared.counting.as_ref().map(Cow::Borrowed),
        labelled,
        two_class,
        most: SHOWN,
    }
}

/// The same by a model with one vector of coefficients for each class; `counting` says whether there is a scaling of columns to
/// count, and whether records are measured by it.
pub(super) fn of_classes<'a>(
    geometry: &'a SoftmaxGeometry,
    counting: Option<bool>,
) -> impl FnOnce(bool) -> SoftmaxScore<'a> {
    move |labelled| SoftmaxScore {
        geometry: Cow::Borrowed(geometry),
        counted: counting.unwrap_or(false),
        labelled,
        most: SHOWN,
    }
}

/// Scores the points of `--score`, if any; their table is `scores`.
pub(super) fn score<P: Scores>(
    request: &Request,
    encoding: &Encoding,
    scoring: impl FnOnce(bool) -> P,
    measured: &Measured,
    folder: Option<&Folder>,
    pending: &mut Pending,
    hooks: &Hooks,
) -> Result<Option<Scored>> {
    let Some(read) = &request.score else { return Ok(None) };
    let table = Table::open_with(read, hooks)?;
    let options = DatasetOptions { allow_missing_target: true, ..DatasetOptions::default() };
    let rows = Dataset::with_options(&table, encoding, Subset::All, options, hooks)?;
    if rows.is_empty() {
        return Err(Failure::option("score", "there are no rows to score"));
    }
    let labelled = rows.has_target();
    let numbers = ["eta", "dfil", "loss", "gradient_norm", "training_rank"].map(String::from).into();
    let schema = RecordsSchema { id: id_name(encoding), texts: vec![], numbers };
    let mut writer = match folder {
        Some(folder) if rows.away().is_none() => Some(folder.table("scores", schema.clone())?),
        Some(_) | None => None,
    };
    let schema = folder.filter(|_| rows.away().is_some()).map(|_| schema);
    let scoring = Scoring { pass: scoring(labelled), training: training_quantiles(&measured.eta), schema };
    let NamedScores { scores, names } = labelled::run(&scoring, &rows, writer.as_mut())?;
    pending.tables(writer);
    let (eta, most) = P::eta_and_extremes(&scores);
    let (eta, most) = (eta.clone(), most.clone());
    Ok(Some(Scored { files: file_names(&table), labelled, eta, most, names, dropped: rows.rows_dropped() }))
}

fn file_names(table: &Table) -> Vec<String> {
    table.paths().map(leakscope_table::display_name).collect()
}

/// A thousand quantiles of the training records' η, to rank points against.
fn training_quantiles(eta: &Distribution) -> Vec<f64> {
    let shares: Vec<f64> = (0..=1000).map(|k| f64::from(k) / 1000.0).collect();
    eta.quantiles(&shares)
}

fn write(
    part: Option<&mut RecordsPart>,
    [all_eta, dfil, loss, gradient_norm]: [&[f64]; 4],
    labels: &Labels,
    training: &[f64],
) -> leakscope_table::Result<()> {
    let Some(part) = part else { return Ok(()) };
    for (i, &eta) in all_eta.iter().enumerate() {
        let rank = training.partition_point(|&q| q <= eta) as f64 / training.len() as f64;
        let numbers = [eta, dfil[i], loss[i], gradient_norm[i], rank];
        part.push_at(labels.positions[i], &labels.ids[i], &[], &numbers)?;
    }
    Ok(())
}
