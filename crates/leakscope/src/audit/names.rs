//! What rows are called: a pass keeps rows by number, and this keeps the ids of those that will be spoken of.

use leakscope_core::rows::Block;
use leakscope_table::Labels;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Ids of some rows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Names(BTreeMap<u64, String>);

impl Names {
    /// Keeps the ids of those of `rows` that are in this block.
    pub(super) fn note(&mut self, rows: impl Iterator<Item = u64>, block: &Block, labels: &Labels) {
        for row in rows {
            let place = row.checked_sub(block.first_row).and_then(|i| labels.ids.get(i as usize));
            if let Some(id) = place {
                self.0.entry(row).or_insert_with(|| id.clone());
            }
        }
    }

    /// Takes up the ids of later rows, and lets go of all but those of `rows`.
    pub(super) fn merge(&mut self, later: Self, rows: impl Iterator<Item = u64>) {
        self.0.extend(later.0);
        let rows: BTreeSet<u64> = rows.collect();
        self.0.retain(|row, _| rows.contains(row));
    }

    /// The id of a row that was kept.
    pub(super) fn of(&self, row: u64) -> String {
        self.0.get(&row).cloned().unwrap_or_default()
    }
}
