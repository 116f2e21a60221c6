//! A folder that all machines see, as [`Machines`]: passes and the answers of their parts are files in it.
//!
//! ```text
//! plan/plan.json                 what is asked, of which files
//!      passes/03-fit/work        the pass, as bytes
//!                    part-00017  the answer of a part; whole, or not there
//!                    merged      what all answers come to
//!      records/part-00017.parquet
//!      audit/                    the result
//! ```

use super::passes::short;
use crate::Failure;
use leakscope_table::{
    Answers, Error, Machines, ReadOptions, Result, Splits, Work, check_answer, temporary_file,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A table as it was when the plan was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedTable {
    pub(super) read: ReadOptions,
    pub(super) splits: Splits,
}

/// A pass of which answers are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// What it is called: `03-fit`.
    pub pass: String,
    /// Number of its parts.
    pub parts: usize,
    /// Those without an answer.
    pub missing: Vec<usize>,
}

/// The answers in a folder, as they are asked for in the order of the passes.
#[derive(Debug)]
pub(super) struct AnswerFolder {
    passes: PathBuf,
    tables: Vec<PlannedTable>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Keys of the passes so far, with their folders.
    seen: Vec<(u64, PathBuf)>,
    due: Option<Due>,
}

/// Which table a pass reads.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) table: usize,
    pub(super) parts: usize,
}

pub(super) const WORK: &str = "work";
pub(super) const ABOUT: &str = "pass.json";
const MERGED: &str = "merged";

/// The file of a part's answer.
pub(super) fn part_file(folder: &Path, part: usize) -> PathBuf {
    folder.join(format!("part-{part:05}"))
}

impl AnswerFolder {
    pub(super) fn new(plan: &Path, tables: &[PlannedTable]) -> Self {
        Self { passes: plan.join("passes"), tables: tables.to_vec(), state: Mutex::default() }
    }

    /// The pass that the answers end at.
    pub(super) fn due(&self) -> Option<Due> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).due.clone()
    }

    fn begin(&self, folder: &Path, splits: &Splits, work: &Work) -> Result<()> {
        let bytes = work.to_bytes()?;
        match fs::read(folder.join(WORK)) {
            Ok(there) if there == bytes => return Ok(()),
            Ok(_) => {
                return Err(Error::Elsewhere(format!(
                    "{} holds another pass than this plan comes to: was it made by another version, or were files of it \
                     changed? Plan again into an empty folder",
                    folder.display()
                )));
            }
            Err(_) => {}
        }
        let table = self.tables.iter().position(|t| t.splits == *splits).unwrap_or(0);
        let about = About { table, parts: splits.splits.len() };
        let text = serde_json::to_string(&about).map_err(|e| Error::Elsewhere(e.to_string()))?;
        fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
        write_whole(&folder.join(ABOUT), text.as_bytes())?;
        write_whole(&folder.join(WORK), &bytes)
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Write { path: path.into(), message: error.to_string() }
}

/// Writes a file under a temporary name, makes it durable and renames it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = temporary_file(folder).map_err(|e| failed(path, e))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| failed(path, e))?;
    file.persist(path).map_err(|e| failed(path, e.error))?;
    Ok(())
}

impl Machines for AnswerFolder {
    fn splits(&self, paths: &[PathBuf]) -> Result<Option<Splits>> {
        let same = |t: &&PlannedTable| t.read.paths == paths;
        Ok(self.tables.iter().find(same).map(|t| t.splits.clone()))
    }

    fn answers(&self, splits: &Splits, work: &Work) -> Result<Answers> {
        let name = short(work.name()?).to_owned();
        let folder = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = self.passes.join(format!("{:02}-{name}", state.seen.len() + 1));
            state.seen.push((work.key()?, folder.clone()));
            folder
        };
        self.begin(&folder, splits, work)?;
        if let Ok(kept) = fs::read(folder.join(MERGED)) {
            return Ok(Answers::Kept(kept));
        }
        let (mut parts, mut missing) = (vec![], vec![]);
        for at in 0..splits.splits.len() {
            match fs::read(part_file(&folder, at)) {
                Ok(bytes) => {
                    check_answer(work, splits, at, &bytes)?;
                    parts.push(bytes);
                }
                Err(_) => missing.push(at),
            }
        }
        if missing.is_empty() {
            return Ok(Answers::Parts(parts));
        }
        let pass = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let due = Due { pass, parts: splits.splits.len(), missing };
        let message = format!("pass {} is due", due.pass);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).due = Some(due);
        Err(Error::Elsewhere(message))
    }

    fn keep(&self, work: &Work, merged: Vec<u8>) -> Result<()> {
        let key = work.key()?;
        let folder = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.seen.iter().rev().find(|(seen, _)| *seen == key).map(|(_, folder)| folder.clone())
        };
        match folder {
            Some(folder) => write_whole(&folder.join(MERGED), &merged),
            None => Ok(()),
        }
    }
}

/// What a file says of itself, or why it cannot be read.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path, what: &str) -> crate::Result<T> {
    let failed = |e: &dyn std::fmt::Display| {
        Failure::Message(format!("{} is no {what} of a plan: {e}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|e| failed(&e))?;
    serde_json::from_str(&text).map_err(|e| failed(&e))
}
