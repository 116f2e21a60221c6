//! Machines that read the splits of a table: what they are sent, and what they answer.
//!
//! ```text
//! here   Table::open_on ─ Work ─────────────→ any machine, for every split:  answer(work, splits, k)
//!        merged in row order, as here ←────── bytes with a checksum, the number of the split and its rows
//! ```
//!
//! What is sent are passes as values, so that both sides run the same compiled code; what is no such pass (a fold with a
//! closure) reads the files here.

use crate::memory::Memory;
use crate::splits::Splits;
use crate::{Error, Result};
use leakscope_core::error::Damage;
use leakscope_core::pass::bytes;
use leakscope_core::rows::States;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whoever has the splits of tables read: a folder of answers, a cluster.
pub trait Machines: fmt::Debug + Send + Sync {
    /// The splits of a table, where they were found before.
    fn splits(&self, _: &[PathBuf]) -> Result<Option<Splits>> {
        Ok(None)
    }

    /// The partitions of a data frame of this name, in their order; `None` where there is no such frame.
    fn partitions(&self, _: &Path) -> Result<Option<Vec<Partition>>> {
        Ok(None)
    }

    /// What [`answer`](crate::answer) gives for every split, in their order, wherever that was; or what was kept.
    fn answers(&self, splits: &Splits, work: &Work) -> Result<Answers>;

    /// Is told what all answers come to, so that nobody need merge them again.
    fn keep(&self, _: &Work, _: Vec<u8>) -> Result<()> {
        Ok(())
    }
}

/// A partition of a data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Number of its rows.
    pub rows: u64,
    /// Checksum of the first and the last of them.
    pub ends: u64,
}

impl Partition {
    /// Of rows in memory.
    pub fn of(rows: &Memory) -> Self {
        Self { rows: rows.rows() as u64, ends: rows.ends() }
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
const PART: &str = "a part to read";

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

/// What is done with every split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Profile,
    Count,
    Pass,
}

/// Work that is the same for every split of a table, as bytes that any machine with the same version reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub(crate) kind: Kind,
    /// What it is about, as text, which leaves nothing open where fields are left out.
    task: String,
    /// First row and number of rows of every split, where they are known.
    pub(crate) places: Option<Vec<(u64, u64)>>,
    pub(crate) pass: Raw,
    /// What is done to the rows of every split before the pass, as bytes; empty where nothing is. Each split is sent its own.
    #[serde(skip)]
    pub(crate) own: Vec<Raw>,
}

impl Work {
    pub(crate) fn new(kind: Kind, task: &impl Serialize) -> Result<Self> {
        let task = serde_json::to_string(task).map_err(|e| unreadable(WORK, e))?;
        Ok(Self { kind, task, places: None, pass: Raw::default(), own: vec![] })
    }

    /// What it is about.
    pub(crate) fn task<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.task).map_err(|e| unreadable(WORK, e))
    }

    /// As bytes, the same for every split.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(bytes::write(WORK, 0, self)?)
    }

    /// The work that [`Work::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(bytes::read(WORK, 0, bytes)?)
    }

    /// What the pass is called where it is one over encoded rows, otherwise what is read.
    pub fn name(&self) -> Result<&str> {
        Ok(match self.kind {
            Kind::Profile => "profile",
            Kind::Count => "count",
            Kind::Pass => bytes::kind_of(&self.pass.0)?,
        })
    }

    /// Tells it from all other work.
    pub fn key(&self) -> Result<u64> {
        let shared = bytes::checksum_of(&self.to_bytes()?);
        Ok(self.own.iter().fold(shared, |key, own| combined(key, &own.0)) | 1)
    }

    /// What is sent to whoever reads split `at`, and to nobody else; empty where there is nothing.
    pub fn own(&self, at: usize) -> &[u8] {
        self.own.get(at).map_or(&[], |own| &own.0)
    }

    /// The same together with the split, as bytes for [`answer_part`](crate::answer_part).
    ///
    /// # Errors
    /// [`Error::NoSplit`] where there is none of that number.
    pub fn part(&self, splits: &Splits, at: usize) -> Result<Vec<u8>> {
        let splits = serde_json::to_string(&splits.only(at)?).map_err(|e| unreadable(PART, e))?;
        Ok(bytes::write(PART, 0, &SentPart { splits, own: Raw(self.own(at).to_vec()) })?)
    }

    /// Tells the answer of a part from that to all other work.
    fn key_of_part(&self, own: &[u8]) -> Result<u64> {
        let shared = bytes::checksum_of(&self.to_bytes()?);
        Ok(if own.is_empty() { shared } else { combined(shared, own) } | 1)
    }
}

/// A key that depends on more bytes.
fn combined(key: u64, bytes: &[u8]) -> u64 {
    key.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ bytes::crc_of(bytes)
}

/// A split as it is sent, with what concerns it alone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentPart {
    splits: String,
    pub(crate) own: Raw,
}

impl SentPart {
    /// The part that [`Work::part`] wrote.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<(Splits, Self)> {
        let sent: Self = bytes::read(PART, 0, bytes)?;
        let splits: Splits = serde_json::from_str(&sent.splits).map_err(|e| unreadable(PART, e))?;
        Ok((splits, sent))
    }
}

fn unreadable(subject: &'static str, problem: impl fmt::Display) -> Error {
    Error::Core(leakscope_core::Error::Bytes { subject, damage: Damage::Content(problem.to_string()) })
}

/// What a machine found in a split.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) part: usize,
    pub(crate) rows: u64,
    pub(crate) state: Raw,
}

impl Answer {
    pub(crate) fn to_bytes(&self, work: &Work, own: &[u8]) -> Result<Vec<u8>> {
        Ok(bytes::write(ANSWER, work.key_of_part(own)?, self)?)
    }
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
        let Answer { part, rows, state } = bytes::read(ANSWER, work.key_of_part(work.own(at))?, bytes)?;
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
    pub(crate) fn new(machines: &Arc<dyn Machines>, splits: Splits) -> Self {
        Self { machines: Arc::clone(machines), splits }
    }

    /// The splits.
    pub(crate) fn splits(&self) -> &Splits {
        &self.splits
    }

    pub(crate) fn states(&self, work: &Work) -> Result<States> {
        let parts = match self.machines.answers(&self.splits, work)? {
            Answers::Kept(kept) => {
                let Raw(state) = bytes::read(KEPT, work.key()?, &kept)?;
                return Ok(States::Merged(state));
            }
            Answers::Parts(parts) => parts,
        };
        let (actual, expected) = (parts.len(), self.splits.splits.len());
        if actual != expected {
            return Err(unreadable(ANSWER, format_args!("there are {actual} for {expected} parts")));
        }
        let (mut states, mut rows) = (Vec::with_capacity(actual), 0);
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

    pub(crate) fn keep(&self, work: &Work, merged: &[u8]) -> Result<()> {
        self.machines.keep(work, bytes::write(KEPT, work.key()?, &Raw(merged.to_vec()))?)
    }
}
