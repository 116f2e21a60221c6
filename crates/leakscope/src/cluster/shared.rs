//! One who asks, and machines that help: whoever asks hangs passes up in a folder that all machines see, computes parts itself
//! and takes those that workers have computed.
//!
//! Everything that is not a pass stays with whoever asks: decompositions, noise, ledgers. Whoever dies and asks the same again
//! with the same folder goes on where it stopped.

use super::VERSION;
use super::board::{Board, write_whole};
use super::folder::{PassNames, collect};
use super::plan::{FILE, Written, absolute};
use super::worker::{Working, take_parts};
use crate::output::Folder;
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_table::{Answers, Error, Hooks, Machines, RecordsFormat, Splits, Work};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, thread};

/// The file that tells workers that nothing more will come.
pub(super) const DONE: &str = "done";

/// A folder through which workers help.
pub struct Shared {
    board: Board,
    pass_names: PassNames,
    working: Working,
    hooks: Hooks,
    /// Why a part failed, in the words of whoever computed it.
    failure: Mutex<Option<Failure>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "workers at {}", self.board.root.display())
    }
}

impl Shared {
    /// Opens the folder, making it if needed.
    ///
    /// # Errors
    /// Where it cannot be written to, holds a plan, or was left by another version.
    pub fn open(path: &Path, working: Working, hooks: &Hooks) -> Result<Arc<Self>> {
        let _folder = Folder::open(path, RecordsFormat::Parquet)?;
        let file = path.join(FILE);
        if file.exists() {
            if Written::open(path)?.request.is_some() {
                let message = format!("{} holds the plan of an audit: choose another folder", path.display());
                return Err(Failure::option("machines", message));
            }
            let _ = fs::remove_file(path.join(DONE));
        } else {
            let written = Written { version: VERSION.into(), request: None, tables: vec![] };
            let text = serde_json::to_string_pretty(&written).map_err(|e| Failure::Message(e.to_string()))?;
            write_whole(&file, text.as_bytes())?;
        }
        let (board, pass_names, failure) = (Board::new(path), PassNames::default(), Mutex::default());
        Ok(Arc::new(Self { board, pass_names, working, hooks: hooks.clone(), failure }))
    }

    /// The request with its tables read with the help of workers, who may be in another folder.
    ///
    /// # Errors
    /// For a file that is not there.
    pub fn read(self: &Arc<Self>, request: Request) -> Result<Request> {
        let machines: Arc<dyn Machines> = Arc::<Self>::clone(self);
        Ok(absolute(request)?.on(&machines))
    }

    /// Sends the workers home, and gives what was found, or why a part failed.
    ///
    /// # Errors
    /// Those of `found`, in the words of whoever computed the part.
    pub fn finish<T>(&self, outcome: Result<T>) -> Result<T> {
        // Whoever was interrupted may ask again, and the workers wait for that.
        if !matches!(outcome, Err(Failure::Interrupted)) {
            write_whole(&self.board.root.join(DONE), b"")?;
        }
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(failure) if outcome.is_err() => Err(failure),
            Some(_) | None => outcome,
        }
    }
}

impl Machines for Shared {
    fn splits(&self, paths: &[PathBuf]) -> leakscope_table::Result<Option<Splits>> {
        Ok(self.board.table_of(paths))
    }

    fn answers(&self, splits: &Splits, work: &Work) -> leakscope_table::Result<Answers> {
        let pass = self.pass_names.name(work)?;
        self.board.begin(&pass, splits, work)?;
        if let Some(kept) = self.board.merged(&pass) {
            return Ok(Answers::Kept(kept));
        }
        loop {
            if self.hooks.interrupted() {
                return Err(Error::Interrupted);
            }
            let missing = (0..splits.splits.len()).filter(|at| !self.board.part(&pass, *at).exists());
            let missing: Vec<usize> = missing.collect();
            if missing.is_empty() {
                let (parts, lost) = collect(&self.board, &pass, (splits, work))?;
                if lost.is_empty() {
                    return Ok(Answers::Parts(parts));
                }
                continue;
            }
            let taken = take_parts(&self.board, &pass, &missing, self.working, &self.hooks, &|_, _| {});
            match taken {
                Ok(0) => thread::sleep(self.working.pause),
                Ok(_) => {}
                Err(failure) => {
                    let message = failure.to_string();
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                    return Err(Error::Elsewhere(message));
                }
            }
        }
    }

    fn keep(&self, work: &Work, merged: Vec<u8>) -> leakscope_table::Result<()> {
        self.pass_names.keep(&self.board, work, &merged)
    }
}
