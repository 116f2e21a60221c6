//! η of points that were not in the training set: how far a record is from what the model was made from (AM207 §7).

use super::Request;
use super::measure::{Measured, id_name};
use super::names::Names;
use super::scaling::Prepared;
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::fisher::Records;
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::measure::{Extremes, Score, Scores, SoftmaxScore, SoftmaxScores};
use leakscope_core::num::Distribution;
use leakscope_core::pass::{Merge, Pass};
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{
    Dataset, DatasetOptions, Encoding, Hooks, Labels, PartMaker, RecordsPart, RecordsSchema,
};
use leakscope_table::{Subset, Table};
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

struct State<S> {
    scores: S,
    names: Names,
    part: Option<RecordsPart>,
}

/// What scores points: a model of one kind or the other.
pub(super) trait Scoring: Sync {
    /// Scores so far.
    type Scores: Send;
    /// None yet; `labelled` where the points have labels.
    fn start(&self, labelled: bool) -> Self::Scores;
    /// Adds the points of a block.
    fn step(&self, labelled: bool, scores: &mut Self::Scores, block: &Block) -> leakscope_core::Result<()>;
    /// Adds later points.
    fn merge(scores: &mut Self::Scores, later: Self::Scores);
    /// η of all, and the points of largest η.
    fn found(scores: &Self::Scores) -> (&Distribution, &Extremes);
    /// η, dFIL, loss and gradient norm of the points of the last block.
    fn last(scores: &Self::Scores) -> [&[f64]; 4];
}

/// A model with one vector of coefficients.
pub(super) struct OfGlm<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) two_class: bool,
}

impl OfGlm<'_> {
    fn pass(&self, labelled: bool) -> Score<'_> {
        Score {
            geometry: Cow::Borrowed(&self.prepared.geometry),
            counting: self.prepared.counting.as_ref().map(Cow::Borrowed),
            labelled,
            two_class: self.two_class,
            most: SHOWN,
        }
    }
}

impl Scoring for OfGlm<'_> {
    type Scores = Scores;

    fn start(&self, labelled: bool) -> Scores {
        self.pass(labelled).start()
    }

    fn step(&self, labelled: bool, scores: &mut Scores, block: &Block) -> leakscope_core::Result<()> {
        self.pass(labelled).step(scores, block)
    }

    fn merge(scores: &mut Scores, later: Scores) {
        scores.merge(later);
    }

    fn found(scores: &Scores) -> (&Distribution, &Extremes) {
        (&scores.eta, &scores.most)
    }

    fn last(scores: &Scores) -> [&[f64]; 4] {
        let Records { eta, dfil, loss, gradient_norm, .. } = scores.last();
        [eta, dfil, loss, gradient_norm]
    }
}

/// A model with one vector of coefficients for each class.
pub(super) struct OfClasses<'a> {
    pub(super) geometry: &'a SoftmaxGeometry,
    /// Whether there is a scaling of columns to count, and whether records are measured by it.
    pub(super) counting: Option<bool>,
}

impl OfClasses<'_> {
    fn pass(&self, labelled: bool) -> SoftmaxScore<'_> {
        SoftmaxScore {
            geometry: self.geometry,
            counted: self.counting.unwrap_or(false),
            labelled,
            most: SHOWN,
        }
    }
}

impl Scoring for OfClasses<'_> {
    type Scores = SoftmaxScores;

    fn start(&self, labelled: bool) -> SoftmaxScores {
        self.pass(labelled).start()
    }

    fn step(&self, labelled: bool, scores: &mut SoftmaxScores, block: &Block) -> leakscope_core::Result<()> {
        self.pass(labelled).step(scores, block)
    }

    fn merge(scores: &mut SoftmaxScores, later: SoftmaxScores) {
        scores.merge(later);
    }

    fn found(scores: &SoftmaxScores) -> (&Distribution, &Extremes) {
        (&scores.eta, &scores.most)
    }

    fn last(scores: &SoftmaxScores) -> [&[f64]; 4] {
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, .. } = scores.last();
        [eta, dfil, loss, gradient_norm]
    }
}

/// Scores the points of `--score`, if any; their table is `scores`.
pub(super) fn score<P: Scoring>(
    request: &Request,
    encoding: &Encoding,
    scoring: &P,
    measured: &Measured,
    folder: Option<&Folder>,
    pending: &mut Pending,
    hooks: &Hooks,
) -> Result<Option<Scored>> {
    let Some(read) = &request.score else { return Ok(None) };
    let table = Table::open(read)?;
    let options = DatasetOptions { allow_missing_target: true, ..DatasetOptions::default() };
    let rows = Dataset::with_options(&table, encoding, Subset::All, options, hooks)?;
    if rows.is_empty() {
        return Err(Failure::option("score", "there are no rows to score"));
    }
    let labelled = rows.has_target();
    let training = training_quantiles(&measured.eta);
    let numbers = ["eta", "dfil", "loss", "gradient_norm", "training_rank"].map(String::from).into();
    let mut writer = match folder {
        Some(folder) => {
            let schema = RecordsSchema { id: id_name(encoding), texts: vec![], numbers };
            Some(folder.table("scores", schema)?)
        }
        None => None,
    };
    let parts = writer.as_ref().map(|w| w.parts());
    let start = || scoring.start(labelled);
    let rows_of =
        |scores: &P::Scores| P::found(scores).1.records().iter().map(|r| r.row).collect::<Vec<u64>>();
    let (mut total, mut names) = (start(), Names::default());
    rows.fold_labelled(
        || State { scores: start(), names: Names::default(), part: parts.as_ref().map(PartMaker::part) },
        |state, block, labels| {
            scoring.step(labelled, &mut state.scores, block)?;
            state.names.note(rows_of(&state.scores).into_iter(), block, labels);
            write(state.part.as_mut(), P::last(&state.scores), labels, &training).map_err(CoreError::from)
        },
        |state| {
            P::merge(&mut total, state.scores);
            names.merge(state.names, rows_of(&total).into_iter());
            if let (Some(writer), Some(part)) = (writer.as_mut(), state.part) {
                writer.append(part).map_err(CoreError::from)?;
            }
            Ok(())
        },
    )?;
    pending.tables(writer);
    let (eta, most) = P::found(&total);
    let (eta, most) = (eta.clone(), most.clone());
    Ok(Some(Scored { files: file_names(&table), labelled, eta, most, names, dropped: rows.rows_dropped() }))
}

fn file_names(table: &Table) -> Vec<String> {
    table.paths().map(leakscope_table::shown).collect()
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
