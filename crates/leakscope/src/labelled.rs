//! Passes over rows with their labels: rows get their names, and records go to a table.
//!
//! They are plain data, as the passes of core are, so that whoever reads a part of a table runs the same.

use leakscope_core::error::Damage;
use leakscope_core::pass::{Merge, Tree, bytes};
use leakscope_core::rows::{Block, Elsewhere, Rows, States};
use leakscope_core::{Error, Result};
use leakscope_table::{Dataset, Labels, PartMaker, RecordsFormat, RecordsPart, RecordsSchema, RecordsWriter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A pass whose step also gets the labels of the rows.
pub(crate) trait LabelledPass: Serialize + DeserializeOwned + Sync {
    /// What its bytes are called.
    const NAME: &'static str;

    /// What its table is called.
    const TABLE: &'static str;

    /// What is summed.
    type State: Merge + Serialize + DeserializeOwned + Send;

    /// Columns of its table, where one is to be written by whoever reads a part.
    fn schema(&self) -> Option<&RecordsSchema>;

    /// The state of no rows.
    fn start(&self) -> Self::State;

    /// Adds the rows of a block, which come after those that the state has; their records go to `table`.
    fn step(
        &self,
        state: &mut Self::State,
        block: &Block,
        labels: &Labels,
        table: Option<&mut RecordsPart>,
    ) -> Result<()>;

    /// Whether a state that was read from bytes has the sizes that this pass gives its own.
    fn fits(&self, state: &Self::State) -> bool;
}

/// Runs a pass over rows: here, their table going to `writer`; or where they are.
pub(crate) fn run<P: LabelledPass>(
    pass: &P,
    rows: &Dataset,
    writer: Option<&mut RecordsWriter>,
) -> Result<P::State> {
    match (rows.away(), writer) {
        (Some(away), None) => elsewhere(pass, away),
        (_, writer) => here(pass, rows, writer),
    }
}

fn here<P: LabelledPass>(
    pass: &P,
    rows: &Dataset,
    mut writer: Option<&mut RecordsWriter>,
) -> Result<P::State> {
    let parts: Option<PartMaker> = writer.as_ref().map(|w| w.parts());
    let mut tree = Tree::new(rows.split_sizes());
    rows.fold_labelled(
        || (pass.start(), parts.as_ref().map(PartMaker::part)),
        |(state, part), block, labels| pass.step(state, block, labels, part.as_mut()),
        |(state, part)| {
            if let (Some(writer), Some(part)) = (writer.as_deref_mut(), part) {
                writer.append(part).map_err(Error::from)?;
            }
            tree.add(state);
            Ok(())
        },
    )?;
    Ok(tree.finish().unwrap_or_else(|| pass.start()))
}

fn elsewhere<P: LabelledPass>(pass: &P, away: &dyn Elsewhere) -> Result<P::State> {
    let message = bytes::write(P::NAME, 0, pass)?;
    let mut tree = Tree::new(vec![]);
    match away.states(&[], &message)? {
        States::Merged(state) => return state_of(pass, &message, &state),
        States::Splits(states) => {
            for state in &states {
                tree.add_split(state_of(pass, &message, state)?);
            }
        }
    }
    let total = tree.finish().unwrap_or_else(|| pass.start());
    away.keep(&[], &message, &bytes::write(P::NAME, key(&message), &total)?)?;
    Ok(total)
}

fn state_of<P: LabelledPass>(pass: &P, message: &[u8], state: &[u8]) -> Result<P::State> {
    let state: P::State = bytes::read(P::NAME, key(message), state)?;
    if pass.fits(&state) {
        return Ok(state);
    }
    Err(Error::Bytes { subject: P::NAME, damage: Damage::Content("the state has other sizes".into()) })
}

/// Runs the pass that came as bytes over a part of a table; its records go to the file of that table, where they are wanted.
pub(crate) fn run_part<P: LabelledPass>(
    rows: &Dataset,
    message: &[u8],
    file: &dyn Fn(&str) -> Option<PathBuf>,
) -> leakscope_table::Result<Vec<u8>> {
    let pass: P = bytes::read(P::NAME, 0, message)?;
    let wanted = pass.schema().and_then(|schema| Some((file(P::TABLE)?, schema.clone())));
    let mut writer = wanted
        .map(|(file, schema)| RecordsWriter::create(&file, RecordsFormat::Parquet, schema))
        .transpose()?;
    let state = here(&pass, rows, writer.as_mut())?;
    // The records are there whole before the state is.
    writer.map(RecordsWriter::finish).transpose()?;
    Ok(bytes::write(P::NAME, key(message), &state)?)
}

/// What tells the state of a pass from that of any other.
fn key(message: &[u8]) -> u64 {
    bytes::checksum_of(message) | 1
}

/// Ids of some rows: a pass keeps rows by number, and this keeps the ids of those that will be spoken of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Names(BTreeMap<u64, String>);

impl Names {
    /// Keeps the ids of those of `rows` that are in this block.
    pub(crate) fn note(&mut self, rows: impl Iterator<Item = u64>, block: &Block, labels: &Labels) {
        for row in rows {
            let place = row.checked_sub(block.first_row).and_then(|i| labels.ids.get(i as usize));
            if let Some(id) = place {
                self.0.entry(row).or_insert_with(|| id.clone());
            }
        }
    }

    /// Takes up the ids of later rows, and lets go of all but those of `rows`.
    pub(crate) fn merge(&mut self, later: Self, rows: impl Iterator<Item = u64>) {
        self.0.extend(later.0);
        let rows: BTreeSet<u64> = rows.collect();
        self.0.retain(|row, _| rows.contains(row));
    }

    /// The id of a row that was kept.
    pub(crate) fn of(&self, row: u64) -> String {
        self.0.get(&row).cloned().unwrap_or_default()
    }
}

/// The pass that reads the labels of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Labelling;

/// Labels of rows, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowLabels {
    /// What each is called.
    pub(crate) ids: Vec<String>,
    /// Where in the table it is, from 0.
    pub(crate) positions: Vec<u64>,
}

impl Merge for RowLabels {
    fn merge(&mut self, later: Self) {
        self.ids.extend(later.ids);
        self.positions.extend(later.positions);
    }
}

impl LabelledPass for Labelling {
    const NAME: &'static str = "the labels of rows";
    const TABLE: &'static str = "labels";
    type State = RowLabels;

    fn schema(&self) -> Option<&RecordsSchema> {
        None
    }

    fn start(&self) -> RowLabels {
        RowLabels::default()
    }

    fn step(
        &self,
        state: &mut RowLabels,
        _: &Block,
        labels: &Labels,
        _: Option<&mut RecordsPart>,
    ) -> Result<()> {
        state.ids.extend_from_slice(&labels.ids);
        state.positions.extend_from_slice(&labels.positions);
        Ok(())
    }

    fn fits(&self, state: &RowLabels) -> bool {
        state.ids.len() == state.positions.len()
    }
}

/// The pass that finds what one row is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameOfRow {
    /// Its number, from 0 among those that are read.
    pub(crate) row: u64,
}

/// What a row is called, once it was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundName {
    /// Its id.
    pub(crate) name: Option<String>,
}

impl Merge for FoundName {
    fn merge(&mut self, later: Self) {
        self.name = self.name.take().or(later.name);
    }
}

impl LabelledPass for NameOfRow {
    const NAME: &'static str = "the name of a row";
    const TABLE: &'static str = "names";
    type State = FoundName;

    fn schema(&self) -> Option<&RecordsSchema> {
        None
    }

    fn start(&self) -> FoundName {
        FoundName::default()
    }

    fn step(
        &self,
        state: &mut FoundName,
        block: &Block,
        labels: &Labels,
        _: Option<&mut RecordsPart>,
    ) -> Result<()> {
        let at = self.row.checked_sub(block.first_row).and_then(|i| labels.ids.get(i as usize));
        if let Some(id) = at {
            state.name = Some(id.clone());
        }
        Ok(())
    }

    fn fits(&self, _: &FoundName) -> bool {
        true
    }
}
