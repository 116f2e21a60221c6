//! Questions on many machines: the passes are cut into parts that any machine computes, and merged in the order of the rows.
//!
//! | who | does |
//! |---|---|
//! | [`part`] | one part of a pass: bytes in, bytes out; what a task of Dask or Spark calls |
//! | [`Plan`] | an audit through a folder that all machines see: planned, run part by part, merged |
//! | [`Shared`] | any question through such a folder, by whoever asks it and waits for the answer |
//! | [`worker`] | runs parts of either until none is left |
//!
//! The answers have the digits of one machine, whatever the number of machines, the order of the parts and how often each was
//! computed: both cut the rows in the same way and merge in the same order.

mod board;
mod folder;
mod passes;
mod plan;
mod shared;
mod worker;

pub use board::Due;
pub use plan::{Plan, Progress};
pub use shared::Shared;
pub use worker::{Working, worker};

use crate::Result;
use leakscope_table::{Hooks, Memory, answer_part};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version that both sides must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Computes one part of a pass: `work` and `part` as they came ([`leakscope_table::Work`]), the rows of the partition where it is one of a
/// data frame, and the folders of tables, by their names, where they are wanted.
///
/// # Errors
/// They name the part.
pub fn part(
    work: &[u8],
    part: &[u8],
    rows: Option<&Memory>,
    tables: &BTreeMap<String, PathBuf>,
    hooks: &Hooks,
) -> Result<Vec<u8>> {
    let run: &dyn Fn(usize, &_, _, &[u8]) -> _ = &|number, rows, alterations, sent: &[u8]| {
        let file = |table: &str| tables.get(table).map(|folder: &PathBuf| folder.join(records_of(number)));
        passes::run(rows, alterations, sent, &file)
    };
    Ok(answer_part(work, part, rows, hooks, run)?)
}

/// What the table of a part's records is called.
pub fn records_of(part: usize) -> PathBuf {
    format!("part-{part:05}.parquet").into()
}

/// What a pass is called in a few letters.
pub fn short_name(work: &leakscope_table::Work) -> Result<String> {
    Ok(passes::short(work.name()?).into())
}

/// What a file of a folder says, or why it cannot be read.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path, kind: &str) -> Result<T> {
    let failed = |e: &dyn std::fmt::Display| {
        crate::Failure::Message(format!("{} is no {kind} of a plan: {e}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|e| failed(&e))?;
    serde_json::from_str(&text).map_err(|e| failed(&e))
}
