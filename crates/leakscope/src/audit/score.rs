//! η of points that were not in the training set: how far a record is from what the model was made from (AM207 §7).

use super::collect::{Extremes, Kept};
use super::measure::{Measured, finite, id_name};
use super::{Request, two_class};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::fisher::{Geometry, Records};
use leakscope_core::glm::Family;
use leakscope_core::linalg::dot;
use leakscope_core::num::Distribution;
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{
    Dataset, DatasetOptions, Encoding, Hooks, Labels, PartMaker, RecordsPart, RecordsSchema,
};
use leakscope_table::{Subset, Table};

const SHOWN: usize = 10;

/// Scores of points, before they become part of the audit.
pub(super) struct Scored {
    pub(super) files: Vec<String>,
    pub(super) labelled: bool,
    pub(super) eta: Distribution,
    pub(super) most: Extremes,
    pub(super) dropped: u64,
}

struct State {
    eta: Distribution,
    most: Extremes,
    records: Records,
    part: Option<RecordsPart>,
    block: Block,
}

/// Scores the points of `--score`, if any; their table is `scores`.
pub(super) fn score(
    request: &Request,
    encoding: &Encoding,
    geometry: &Geometry,
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
    let mut total = Scored {
        files: file_names(&table),
        labelled,
        eta: Distribution::default(),
        most: extremes(),
        dropped: 0,
    };
    let classes = two_class(encoding);
    rows.fold_labelled(
        || State {
            eta: Distribution::default(),
            most: extremes(),
            records: Records::default(),
            part: parts.as_ref().map(PartMaker::part),
            block: Block::default(),
        },
        |state, block, labels| {
            let block = if labelled {
                block
            } else {
                state.block.clone_from(block);
                predict(&mut state.block, request.family, classes, &geometry.fit().w);
                &state.block
            };
            geometry.eta(block, &mut state.records);
            finite(&state.records)?;
            state.eta.extend(&state.records.eta);
            keep(&mut state.most, &state.records, block, labels);
            write(state.part.as_mut(), &state.records, labels, &training).map_err(CoreError::from)
        },
        |state| {
            total.eta.merge(state.eta);
            total.most.merge(state.most);
            if let (Some(writer), Some(part)) = (writer.as_mut(), state.part) {
                writer.append(part).map_err(CoreError::from)?;
            }
            Ok(())
        },
    )?;
    total.dropped = rows.rows_dropped();
    pending.tables(writer);
    Ok(Some(total))
}

fn extremes() -> Extremes {
    Extremes::new(SHOWN, true)
}

fn file_names(table: &Table) -> Vec<String> {
    table.paths().map(leakscope_table::shown).collect()
}

/// Without a label the model's own prediction stands in: the class it would give, or the value.
fn predict(block: &mut Block, family: Family, two_class: bool, w: &[f64]) {
    for i in 0..block.len() {
        let z = dot(block.row(i), w);
        block.y[i] = match family {
            Family::Linear if !two_class => z,
            Family::Linear => {
                if z >= 0.0 {
                    1.0
                } else {
                    -1.0
                }
            }
            Family::Logistic => f64::from(u8::from(z >= 0.0)),
            Family::Poisson => z.exp(),
        };
    }
}

fn keep(most: &mut Extremes, records: &Records, block: &Block, labels: &Labels) {
    for (i, &eta) in records.eta.iter().enumerate() {
        if most.wants(eta) {
            most.add(Kept {
                row: block.first_row + i as u64,
                id: labels.ids[i].clone(),
                series: 0,
                eta,
                dfil: records.dfil[i],
                loss: records.loss[i],
                gradient_norm: records.gradient_norm[i],
                attribute: None,
            });
        }
    }
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
