//! An audit on many machines: the passes are cut into parts that any machine computes, and merged in the order of the rows.
//!
//! | who | does |
//! |---|---|
//! | [`part`] | one part of a pass: bytes in, bytes out; what a task of Dask or Spark calls |
//! | [`Plan`] | the same through a folder that all machines see: planned, run part by part, merged |
//! | [`worker`] | runs parts of a plan until none is left |
//!
//! The answers have the digits of [`crate::audit::run`] on one machine, whatever the number of machines, the order of the
//! parts and how often each was computed: both cut the rows in the same way and merge in the same order.

mod folder;
mod passes;
mod plan;
mod worker;

pub use plan::{Due, Plan, Progress};
pub use worker::{Working, worker};

use crate::{Failure, Result};
use leakscope_table::{Hooks, Splits, answer};
use std::path::{Path, PathBuf};

/// The version that both sides must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Computes one part of a pass: `work` as it came, `splits` as text ([`Splits`], all of a table or the one alone), the place
/// in them, and the folder for its records where they are wanted.
///
/// # Errors
/// They name the part.
pub fn part(work: &[u8], splits: &str, at: usize, records: Option<&Path>, hooks: &Hooks) -> Result<Vec<u8>> {
    let splits: Splits = serde_json::from_str(splits)
        .map_err(|e| Failure::Message(format!("the description of a part cannot be read: {e}")))?;
    part_of(work, &splits, at, records, hooks)
}

fn part_of(
    work: &[u8],
    splits: &Splits,
    at: usize,
    records: Option<&Path>,
    hooks: &Hooks,
) -> Result<Vec<u8>> {
    let number = splits.splits.get(at).map_or(at, |split| split.number);
    let file = records.map(|folder| folder.join(records_of(number)));
    Ok(answer(work, (splits, at), hooks, &|rows, sent| passes::run(rows, sent, file.as_deref()))?)
}

/// What the table of a part's records is called.
pub fn records_of(part: usize) -> PathBuf {
    format!("part-{part:05}.parquet").into()
}

/// What a pass is called in a few letters.
pub fn short_name(work: &leakscope_table::Work) -> Result<String> {
    Ok(passes::short(work.name()?).into())
}
