//! The measuring pass with labels: rows that the page speaks of get their names, and every record goes to a table.
//!
//! It is plain data, as the passes of core are, so that whoever reads a part of a table runs the same.

use super::names::Names;
use leakscope_core::error::Damage;
use leakscope_core::measure::{self as core, Measure, Series};
use leakscope_core::pass::{Merge, Pass, Tree, bytes};
use leakscope_core::rows::{Block, Elsewhere, Rows, States};
use leakscope_core::{Error, Result};
use leakscope_table::{
    AwayRows, Dataset, Labels, PartMaker, RecordsFormat, RecordsPart, RecordsSchema, RecordsWriter,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The pass, and what names and writes records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measuring<'a> {
    pub(super) pass: Measure<'a>,
    /// Of every attribute: its place in the geometry, and that of its variant under the constraint.
    pub(super) slots: Vec<(usize, Option<usize>)>,
    /// Names of the series.
    pub(super) series: Vec<String>,
    /// Columns of the table of a part, where there is to be one.
    pub(super) schema: Option<RecordsSchema>,
}

/// What the pass found, with the names of the rows to speak of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) found: core::Measured,
    pub(super) names: Names,
}

impl Merge for Named {
    fn merge(&mut self, later: Self) {
        self.found.merge(later.found);
        self.names.merge(later.names, self.found.rows_to_name());
    }
}

/// The state of a run of blocks.
struct State {
    named: Named,
    part: Option<RecordsPart>,
    numbers: Vec<f64>,
}

impl Measuring<'_> {
    /// What its bytes are called.
    pub(crate) const NAME: &'static str = "records, measured and named";

    fn start(&self) -> Named {
        Named { found: self.pass.start(), names: Names::default() }
    }

    /// Measures rows that are read here; their table goes to `writer`.
    pub(super) fn here(&self, rows: &Dataset, mut writer: Option<&mut RecordsWriter>) -> Result<Named> {
        let parts: Option<PartMaker> = writer.as_ref().map(|w| w.parts());
        let mut tree = Tree::new(rows.split_sizes());
        rows.fold_labelled(
            || State { named: self.start(), part: parts.as_ref().map(PartMaker::part), numbers: vec![] },
            |state, block, labels| {
                let Named { found, names } = &mut state.named;
                self.pass.step(found, block)?;
                names.note(found.rows_to_name(), block, labels);
                self.write(state, block, labels).map_err(Error::from)
            },
            |state| {
                if let (Some(writer), Some(part)) = (writer.as_deref_mut(), state.part) {
                    writer.append(part).map_err(Error::from)?;
                }
                tree.add(state.named);
                Ok(())
            },
        )?;
        Ok(tree.finish().unwrap_or_else(|| self.start()))
    }

    /// Measures rows that others read.
    pub(super) fn elsewhere(&self, away: &AwayRows) -> Result<Named> {
        let sent = bytes::write(Self::NAME, 0, self)?;
        let mut tree = Tree::new(vec![]);
        match away.states(&sent)? {
            States::Merged(state) => return self.state(&sent, &state),
            States::Splits(states) => {
                for state in &states {
                    tree.add_split(self.state(&sent, state)?);
                }
            }
        }
        let total = tree.finish().unwrap_or_else(|| self.start());
        away.keep(&sent, &bytes::write(Self::NAME, key(&sent), &total)?)?;
        Ok(total)
    }

    fn state(&self, sent: &[u8], state: &[u8]) -> Result<Named> {
        let named: Named = bytes::read(Self::NAME, key(sent), state)?;
        if self.pass.fits(&named.found) {
            return Ok(named);
        }
        Err(Error::Bytes { what: Self::NAME, damage: Damage::Content("the state has other sizes".into()) })
    }

    fn write(&self, state: &mut State, block: &Block, labels: &Labels) -> leakscope_table::Result<()> {
        let Some(part) = &mut state.part else { return Ok(()) };
        let (found, geometry, series) = (&state.named.found, &self.pass.geometry, self.pass.series);
        let (records, count) = (found.last(), found.attributes.len());
        for i in 0..block.len() {
            let of_record = &records.attribute_eta[i * count..(i + 1) * count];
            let numbers = &mut state.numbers;
            numbers.clear();
            numbers.extend([records.eta[i], records.dfil[i], records.loss[i], records.gradient_norm[i]]);
            numbers.extend(self.slots.iter().map(|s| of_record[s.0]));
            numbers.extend(self.slots.iter().filter_map(|s| s.1).map(|k| of_record[k]));
            if geometry.release().label_secret {
                numbers.push(geometry.label_eta(records, i));
            }
            let name = self.series.get(series.index(block, i) as usize).map_or("", String::as_str);
            let texts: &[&str] = if series == Series::All { &[] } else { &[name] };
            part.push_at(labels.positions[i], &labels.ids[i], texts, numbers)?;
        }
        Ok(())
    }
}

/// Runs the pass that came as bytes over a part of a table; its records go to a file of that name, where they are wanted.
pub(crate) fn measure_part(
    rows: &Dataset,
    sent: &[u8],
    file: Option<&Path>,
) -> leakscope_table::Result<Vec<u8>> {
    let measuring: Measuring<'static> = bytes::read(Measuring::NAME, 0, sent)?;
    let mut writer = match (file, &measuring.schema) {
        (Some(file), Some(schema)) => {
            Some(RecordsWriter::create(file, RecordsFormat::Parquet, schema.clone())?)
        }
        (Some(_), None) | (None, _) => None,
    };
    let named = measuring.here(rows, writer.as_mut())?;
    // The records are there whole before the state is.
    writer.map(RecordsWriter::finish).transpose()?;
    Ok(bytes::write(Measuring::NAME, key(sent), &named)?)
}

/// What tells the state of a pass from that of any other.
fn key(sent: &[u8]) -> u64 {
    bytes::checksum_of(sent) | 1
}
