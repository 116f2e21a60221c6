//! The side of the machine that reads a split: work in, an answer out, both bytes.

use crate::away::{ALTERED, COUNT, RowsOf};
use crate::dataset::{Dataset, DatasetOptions, RowCount};
use crate::hooks::Hooks;
use crate::machines::{Answer, Kind, Raw, SentPart, Work};
use crate::memory::Memory;
use crate::profile::{ProfileTask, Profiling};
use crate::splits::{FileSplit, Splits};
use crate::table::Table;
use crate::{Error, Result};
use leakscope_core::pass::bytes;
use leakscope_core::rows::{Alteration, Rows};

/// Who computes the bytes of a part: of its number, its rows, what alters them, and the pass.
type Answering<'a> = dyn Fn(usize, &Dataset, Vec<Alteration<'static>>, &[u8]) -> Result<Vec<u8>> + 'a;

/// Runs a pass that came as bytes over the rows of a split, with what is done to them before.
pub type RunPass<'a> = dyn Fn(&Dataset, Vec<Alteration<'static>>, &[u8]) -> Result<Vec<u8>> + 'a;

/// Does the work on a part that came as bytes ([`Work::part`]); `rows` are those of the partition, where it is one of a data frame.
///
/// # Errors
/// [`Error::Part`] names the split, as it is numbered in the whole table.
pub fn answer_part(
    work: &[u8],
    part: &[u8],
    rows: Option<&Memory>,
    hooks: &Hooks,
    run: &Answering<'_>,
) -> Result<Vec<u8>> {
    let (splits, sent) = SentPart::from_bytes(part)?;
    let number = splits.splits.first().map_or(0, |split| split.number);
    let run: &RunPass<'_> = &|data, alterations, pass| run(number, data, alterations, pass);
    answer_of((work, &sent.own.0), (&splits, 0), rows, hooks, run)
}

/// Does the work on split `at` of those given, which may be all or some of a table's; `own` is what was sent with it
/// ([`Work::own`]).
///
/// # Errors
/// [`Error::Part`] names the split, as it is numbered in the whole table.
pub fn answer(
    (work, own): (&[u8], &[u8]),
    (splits, at): (&Splits, usize),
    hooks: &Hooks,
    run: &RunPass<'_>,
) -> Result<Vec<u8>> {
    answer_of((work, own), (splits, at), None, hooks, run)
}

fn answer_of(
    (work, own): (&[u8], &[u8]),
    (splits, at): (&Splits, usize),
    rows: Option<&Memory>,
    hooks: &Hooks,
    run: &RunPass<'_>,
) -> Result<Vec<u8>> {
    let count = splits.splits.len();
    let split = splits.splits.get(at).ok_or(Error::NoSplit { number: at, count })?;
    let answered = || {
        let work = Work::from_bytes(work)?;
        let table = match rows {
            Some(rows) => Table::of_partition(splits, at, rows)?,
            None => Table::of_split(splits, at)?,
        };
        let (rows, state) = match work.kind {
            Kind::Profile => {
                let ProfileTask { roles, options, left_out } = work.task()?;
                let profiling = Profiling::new(&table, &roles, &options)?.without(&left_out)?;
                let profile = profiling.run(&table, hooks)?;
                (profile.rows, profiling.to_bytes(&profile)?)
            }
            Kind::Count => {
                let data = dataset(&work, &table, DatasetOptions::default(), hooks)?;
                let counted = (data.len(), data.rows_dropped(), data.rows_unseen());
                (split.rows, bytes::write(COUNT, 0, &counted)?)
            }
            Kind::Pass => {
                let place = place(&work, split)?;
                let (first_row, rows) = match place {
                    Some((first_row, rows)) => (first_row, RowCount::Known(rows)),
                    None => (0, RowCount::Open),
                };
                let options = DatasetOptions { first_row, rows, ..DatasetOptions::default() };
                let data = dataset(&work, &table, options, hooks)?;
                let alterations = if own.is_empty() { vec![] } else { bytes::read(ALTERED, 0, own)? };
                (place.map_or(split.rows, |p| p.1), run(&data, alterations, &work.pass.0)?)
            }
        };
        Answer { part: split.number, rows, state: Raw(state) }.to_bytes(&work, own)
    };
    answered().map_err(|error: Error| error.in_part(split.number, &split.path))
}

/// Where the rows of a split begin, and how many there are, where that is known.
fn place(work: &Work, split: &FileSplit) -> Result<Option<(u64, u64)>> {
    let Some(places) = &work.places else { return Ok(None) };
    let (number, count) = (split.number, places.len());
    places.get(number).copied().map(Some).ok_or(Error::NoSplit { number, count })
}

/// The encoded rows that work is about.
fn dataset(work: &Work, table: &Table, options: DatasetOptions, hooks: &Hooks) -> Result<Dataset> {
    let RowsOf { encoding, subset, target_optional } = work.task()?;
    let options = DatasetOptions { allow_missing_target: target_optional, cache_bytes: 0, ..options };
    Dataset::with_options(table, &encoding, subset, options, hooks)
}
