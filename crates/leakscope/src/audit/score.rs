//! η of points that were not in the training set: how far a record is from what the model was made from (AM207 §7).

use super::measure::{Measured, id_name};
use super::names::Names;
use super::scaling::Prepared;
use super::{Request, two_class};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::fisher::Records;
use leakscope_core::measure::{Extremes, Score, Scores};
use leakscope_core::num::Distribution;
use leakscope_core::pass::{Merge, Pass};
use leakscope_core::rows::Rows;
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

struct State {
    scores: Scores,
    names: Names,
    part: Option<RecordsPart>,
}

/// Scores the points of `--score`, if any; their table is `scores`.
pub(super) fn score(
    request: &Request,
    encoding: &Encoding,
    prepared: &Prepared,
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
    let pass = Score {
        geometry: Cow::Borrowed(&prepared.geometry),
        counting: prepared.counting.as_ref().map(Cow::Borrowed),
        labelled,
        two_class: two_class(encoding),
        most: SHOWN,
    };
    let rows_of = |scores: &Scores| scores.most.records().iter().map(|r| r.row).collect::<Vec<u64>>();
    let (mut total, mut names) = (pass.start(), Names::default());
    rows.fold_labelled(
        || State { scores: pass.start(), names: Names::default(), part: parts.as_ref().map(PartMaker::part) },
        |state, block, labels| {
            pass.step(&mut state.scores, block)?;
            state.names.note(rows_of(&state.scores).into_iter(), block, labels);
            write(state.part.as_mut(), state.scores.last(), labels, &training).map_err(CoreError::from)
        },
        |state| {
            total.merge(state.scores);
            names.merge(state.names, rows_of(&total).into_iter());
            if let (Some(writer), Some(part)) = (writer.as_mut(), state.part) {
                writer.append(part).map_err(CoreError::from)?;
            }
            Ok(())
        },
    )?;
    pending.tables(writer);
    Ok(Some(Scored {
        files: file_names(&table),
        labelled,
        eta: total.eta,
        most: total.most,
        names,
        dropped: rows.rows_dropped(),
    }))
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
    records: &Records,
    labels: &Labels,
    training: &[f64],
) -> leakscope_table::Result<()> {
    let Some(part) = part else { return Ok(()) };
    for (i, &eta) in records.eta.iter().enumerate() {
        let rank = training.partition_point(|&q| q <= eta) as f64 / training.len() as f64;
        let numbers = [eta, records.dfil[i], records.loss[i], records.gradient_norm[i], rank];
        part.push_at(labels.positions[i], &labels.ids[i], &[], &numbers)?;
    }
    Ok(())
}
