//! Machines that read the splits of a table: what they are sent, and what they answer.
//!
//! ```text
//! here   Table::open_on ─ Work ─────────────→ any machine, for every split:  answer(work, splits, k)
//!        merged in row order, as here ←────── bytes with a checksum, the number of the split and its rows
//! ```
//!
//! What is sent are passes as values, so that both sides run the same compiled code; what is no such pass (a fold with a
//! closure) reads the files here.

use crate::column::Roles;
use crate::dataset::{Dataset, DatasetOptions, RowCount};
use crate::encoding::{EncodeOptions, Encoding};
use crate::hooks::Hooks;
use crate::plan::Subset;
use crate::profile::{Profile, Profiling};
use crate::split::Splits;
use crate::table::{ReadOptions, Table};
use crate::{Error, Result};
use leakscope_core::error::Damage;
use leakscope_core::pass::bytes;
use leakscope_core::rows::{Elsewhere, States};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Whoever has the splits of tables read: a folder of answers, a cluster.
pub trait Machines: fmt::Debug + Send + Sync {
    /// The splits of a table, where they were found before.
    fn splits(&self, _: &ReadOptions) -> Result<Option<Splits>> {
        Ok(None)
    }

    /// What [`answer`] gives for every split, in their order, wherever that was; or what was kept.
    fn answers(&self, splits: &Splits, work: &Work) -> Result<Answers>;

    /// Is told what all answers come to, so that nobody need merge them again.
    fn keep(&self, _: &Work, _: Vec<u8>) -> Result<()> {
        Ok(())
    }
}

/// What machines answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// For every split.
    Parts(Vec<Vec<u8>>),
    /// What [`Machines::keep`] was told.
    Kept(Vec<u8>),
}

/// What the bytes of work, of an answer and of what is kept are called.
const WORK: &str = "a pass to run";
const ANSWER: &str = "the answer of a part";
const KEPT: &str = "the answers of all parts";

/// Bytes as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> std::result::Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes).map_err(D::Error::custom)
    }
}

/// Which encoded rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Rows {
    encoding: Encoding,
    subset: Subset,
    target_optional: bool,
}

/// What is to be done with every split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    Profile { roles: Roles, options: Box<EncodeOptions>, left_out: Vec<String> },
    Count(Box<Rows>),
    Pass(Box<Rows>),
}

/// Work that is the same for every split of a table, as bytes that any machine with the same version reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The task as text, which leaves nothing open where fields are left out.
    task: String,
    /// First row and number of rows of every split, where they are known.
    places: Option<Vec<(u64, u64)>>,
    pass: Raw,
}

impl Work {
    pub(crate) fn profile(roles: &Roles, options: &EncodeOptions, left_out: &[String]) -> Result<Self> {
        let (roles, options) = (roles.clone(), Box::new(options.clone()));
        Self::new(&Task::Profile { roles, options, left_out: left_out.to_vec() }, None, &[])
    }

    fn new(task: &Task, places: Option<Vec<(u64, u64)>>, pass: &[u8]) -> Result<Self> {
        let task = serde_json::to_string(task).map_err(|e| unreadable(WORK, e))?;
        Ok(Self { task, places, pass: Raw(pass.to_vec()) })
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(bytes::write(WORK, 0, self)?)
    }

    /// The work that [`Work::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(bytes::read(WORK, 0, bytes)?)
    }

    /// What the pass is called where it is one over encoded rows, otherwise what is read.
    pub fn name(&self) -> Result<&str> {
        Ok(match self.task()? {
            Task::Profile { .. } => "profile",
            Task::Count(_) => "count",
            Task::Pass(_) => bytes::kind_of(&self.pass.0)?,
        })
    }

    /// Tells it from all other work.
    pub fn key(&self) -> Result<u64> {
        Ok(bytes::checksum_of(&self.to_bytes()?) | 1)
    }

    fn task(&self) -> Result<Task> {
        serde_json::from_str(&self.task).map_err(|e| unreadable(WORK, e))
    }
}

fn unreadable(what: &'static str, problem: impl fmt::Display) -> Error {
    Error::Core(leakscope_core::Error::Bytes { what, damage: Damage::Content(problem.to_string()) })
}

/// What a machine found in a split.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    part: usize,
    rows: u64,
    state: Raw,
}

/// Does the work on split `at` of those given, which may be all or some of a table's; `run` runs a pass that came as bytes.
///
/// # Errors
/// [`Error::Part`] names the split, as it is numbered in the whole table.
pub fn answer(
    work: &[u8],
    (splits, at): (&Splits, usize),
    hooks: &Hooks,
    run: &dyn Fn(&Dataset, &[u8]) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let count = splits.splits.len();
    let split = splits.splits.get(at).ok_or(Error::NoSplit { number: at, count })?;
    let part = split.number;
    let found = || {
        let work = Work::from_bytes(work)?;
        let table = Table::of_split(splits, at)?;
        let options = |rows: &Rows| DatasetOptions {
            allow_missing_target: rows.target_optional,
            cache_bytes: 0,
            ..DatasetOptions::default()
        };
        let (rows, state) = match work.task()? {
            Task::Profile { roles, options, left_out } => {
                let profiling = Profiling::new(&table, &roles, &options)?.without(&left_out)?;
                let profile = profiling.run(&table, hooks)?;
                (Profiling::rows(&profile), profiling.to_bytes(&profile)?)
            }
            Task::Count(rows) => {
                let options = options(&rows);
                let data = Dataset::with_options(&table, &rows.encoding, rows.subset, options, hooks)?;
                let counted =
                    (leakscope_core::rows::Rows::len(&data), data.rows_dropped(), data.rows_unseen());
                (split.rows, bytes::write(COUNT, 0, &counted)?)
            }
            Task::Pass(rows) => {
                let place = work.places.as_ref().map(|p| p.get(part).copied());
                let place = place.map(|p| p.ok_or(Error::NoSplit { number: part, count })).transpose()?;
                let (first_row, count) = match place {
                    Some((first_row, rows)) => (first_row, RowCount::Known(rows)),
                    None => (0, RowCount::Open),
                };
                let options = DatasetOptions { first_row, rows: count, ..options(&rows) };
                let data = Dataset::with_options(&table, &rows.encoding, rows.subset, options, hooks)?;
                (place.map_or(split.rows, |p| p.1), run(&data, &work.pass.0)?)
            }
        };
        Ok(bytes::write(ANSWER, work.key()?, &Answer { part, rows, state: Raw(state) })?)
    };
    found().map_err(|error: Error| error.in_part(part, &split.path))
}

/// Whether bytes are the answer of a part to some work, without looking into the state.
///
/// # Errors
/// [`Error::Part`] says what is wrong with them.
pub fn check_answer(work: &Work, splits: &Splits, at: usize, bytes: &[u8]) -> Result<()> {
    state_of(work, splits, at, bytes).map(|_| ())
}

fn state_of(work: &Work, splits: &Splits, at: usize, bytes: &[u8]) -> Result<(u64, Vec<u8>)> {
    let split = &splits.splits[at];
    let read = || -> Result<(u64, Vec<u8>)> {
        let Answer { part, rows, state } = bytes::read(ANSWER, work.key()?, bytes)?;
        if part != split.number {
            return Err(unreadable(ANSWER, format_args!("they are of part {part}")));
        }
        let expected = work.places.as_ref().map_or(split.rows, |places| places[at].1);
        if rows != expected {
            return Err(unreadable(ANSWER, format_args!("they are of {rows} rows, not of {expected}")));
        }
        Ok((rows, state.0))
    };
    read().map_err(|error| error.in_part(split.number, &split.path))
}

/// A table whose splits are read by others.
#[derive(Debug)]
pub(crate) struct Away {
    machines: Arc<dyn Machines>,
    splits: Splits,
}

impl Away {
    fn states(&self, work: &Work) -> Result<States> {
        let parts = match self.machines.answers(&self.splits, work)? {
            Answers::Kept(kept) => {
                let Raw(state) = bytes::read(KEPT, work.key()?, &kept)?;
                return Ok(States::Merged(state));
            }
            Answers::Parts(parts) => parts,
        };
        let (found, expected) = (parts.len(), self.splits.splits.len());
        if found != expected {
            return Err(unreadable(ANSWER, format_args!("there are {found} for {expected} parts")));
        }
        let (mut states, mut rows) = (Vec::with_capacity(found), 0);
        for (at, bytes) in parts.iter().enumerate() {
            let (of_part, state) = state_of(work, &self.splits, at, bytes)?;
            rows += of_part;
            states.push(state);
        }
        let all: u64 = match &work.places {
            Some(places) => places.iter().map(|p| p.1).sum(),
            None => self.splits.splits.iter().map(|s| s.rows).sum(),
        };
        if rows != all {
            return Err(unreadable(ANSWER, format_args!("they are of {rows} rows in all, not of {all}")));
        }
        Ok(States::Splits(states))
    }

    fn keep(&self, work: &Work, merged: &[u8]) -> Result<()> {
        self.machines.keep(work, bytes::write(KEPT, work.key()?, &Raw(merged.to_vec()))?)
    }

    /// The profile of all splits.
    pub(crate) fn profile(&self, profiling: &Profiling, work: Result<Work>) -> Result<Profile> {
        let work = work?;
        match self.states(&work)? {
            States::Merged(profile) => profiling.from_bytes(&profile),
            States::Splits(states) => {
                let mut total = profiling.start();
                for (split, state) in self.splits.splits.iter().zip(&states) {
                    let merged = profiling.from_bytes(state).and_then(|p| profiling.merge(&mut total, p));
                    merged.map_err(|error| error.in_part(split.number, &split.path))?;
                }
                self.keep(&work, &profiling.to_bytes(&total)?)?;
                Ok(total)
            }
        }
    }
}

const COUNT: &str = "the number of rows";

/// Rows of a subset in every split, and those that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) rows: Vec<u64>,
    pub(crate) dropped: u64,
    pub(crate) unseen: u64,
}

impl Counted {
    pub(crate) fn of(rows: Vec<u64>) -> Self {
        Self { rows, ..Self::default() }
    }
}

/// Encoded rows that other machines read.
#[derive(Debug)]
pub struct AwayRows {
    away: Arc<Away>,
    table: Table,
    rows: Rows,
    places: Option<Vec<(u64, u64)>>,
    options: DatasetOptions,
    /// The same, read here.
    here: OnceLock<Box<Dataset>>,
}

impl AwayRows {
    pub(crate) fn new(
        table: &Table,
        (encoding, subset): (&Encoding, Subset),
        options: DatasetOptions,
    ) -> Option<Self> {
        let away = Arc::clone(table.away.as_ref()?);
        let target_optional = options.allow_missing_target;
        let rows = Rows { encoding: encoding.clone(), subset, target_optional };
        let table = Table { away: None, ..table.clone() };
        Some(Self { away, table, rows, places: None, options, here: OnceLock::new() })
    }

    /// Rows for passes that count by themselves.
    pub(crate) fn open(table: &Table, encoding: &Encoding, subset: Subset) -> Option<Self> {
        Self::new(table, (encoding, subset), DatasetOptions::default())
    }

    pub(crate) fn with_places(self, first_rows: &[u64], rows: &[u64]) -> Self {
        let places = first_rows.iter().copied().zip(rows.iter().copied()).collect();
        Self { places: Some(places), ..self }
    }

    /// Counts the rows by reading them.
    pub(crate) fn count(&self, _: &Hooks) -> Result<Counted> {
        let work = Work::new(&Task::Count(Box::new(self.rows.clone())), None, &[])?;
        match self.away.states(&work)? {
            States::Merged(counted) => Ok(bytes::read(COUNT, 0, &counted)?),
            States::Splits(states) => {
                let mut counted = Counted::default();
                for state in &states {
                    let (rows, dropped, unseen): (u64, u64, u64) = bytes::read(COUNT, 0, state)?;
                    counted.rows.push(rows);
                    counted.dropped += dropped;
                    counted.unseen += unseen;
                }
                self.away.keep(&work, &bytes::write(COUNT, 0, &counted)?)?;
                Ok(counted)
            }
        }
    }

    pub(crate) fn here(&self, hooks: &Hooks) -> Result<&Dataset> {
        if let Some(here) = self.here.get() {
            return Ok(here);
        }
        let (table, rows) = (&self.table, &self.rows);
        let data = Dataset::with_options(table, &rows.encoding, rows.subset, self.options, hooks)?;
        Ok(self.here.get_or_init(|| Box::new(data)))
    }

    fn work(&self, pass: &[u8]) -> Result<Work> {
        Work::new(&Task::Pass(Box::new(self.rows.clone())), self.places.clone(), pass)
    }
}

impl Elsewhere for AwayRows {
    fn states(&self, pass: &[u8]) -> leakscope_core::Result<States> {
        Ok(self.away.states(&self.work(pass)?)?)
    }

    fn keep(&self, pass: &[u8], merged: &[u8]) -> leakscope_core::Result<()> {
        Ok(self.away.keep(&self.work(pass)?, merged)?)
    }
}

impl Table {
    /// Opens a table whose splits other machines read, in passes that are sent to them.
    ///
    /// # Errors
    /// Those of [`Table::open`] and [`Table::cut`]; [`Error::NoRows`] names a file without rows.
    pub fn open_on(options: &ReadOptions, machines: &Arc<dyn Machines>, hooks: &Hooks) -> Result<Self> {
        let table = Self::open(options)?;
        let splits = match machines.splits(options)? {
            Some(splits) => {
                table.resume(&splits)?;
                splits
            }
            None => table.cut(hooks)?,
        };
        if let Some(empty) = table.paths().find(|path| !splits.splits.iter().any(|s| s.path == *path)) {
            return Err(Error::NoRows { path: empty.into() });
        }
        let away = Away { machines: Arc::clone(machines), splits };
        Ok(Self { away: Some(Arc::new(away)), ..table })
    }
}
