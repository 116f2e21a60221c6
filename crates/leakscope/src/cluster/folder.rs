//! A folder that all machines see, as [`Machines`]: passes and the answers of their parts are files in it.

use super::board::{Board, Due};
use super::passes::short;
use leakscope_table::{Answers, Error, Machines, ReadOptions, Result, Splits, Work, check_answer};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A table as it was when the plan was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedTable {
    /// Its files, and how they are read.
    pub(super) read: ReadOptions,
    /// The parts that it is cut into.
    pub(super) splits: Splits,
}

/// The passes of a question, in the order in which they are asked for.
#[derive(Debug, Default)]
pub(super) struct PassNames(Mutex<Vec<(u64, String)>>);

impl PassNames {
    /// Takes up a pass, and gives it its name.
    pub(super) fn name(&self, work: &Work) -> Result<String> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{:02}-{}", seen.len() + 1, short(work.name()?));
        seen.push((work.key()?, name.clone()));
        Ok(name)
    }

    /// Keeps what the answers of a pass come to.
    pub(super) fn keep(&self, board: &Board, work: &Work, merged: &[u8]) -> Result<()> {
        let key = work.key()?;
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.iter().rev().find(|(seen, _)| *seen == key) {
            Some((_, pass)) => board.keep(pass, merged),
            None => Ok(()),
        }
    }
}

/// The answers of a pass that are there, checked, and the parts that have none.
pub(super) fn collect(
    board: &Board,
    pass: &str,
    (splits, work): (&Splits, &Work),
) -> Result<(Vec<Vec<u8>>, Vec<usize>)> {
    let (mut parts, mut missing) = (vec![], vec![]);
    for at in 0..splits.splits.len() {
        match fs::read(board.part(pass, at)) {
            Ok(bytes) => {
                check_answer(work, splits, at, &bytes)?;
                parts.push(bytes);
            }
            Err(_) => missing.push(at),
        }
    }
    Ok((parts, missing))
}

/// The answers in a folder, up to the first pass that lacks some.
#[derive(Debug)]
pub(super) struct AnswerFolder {
    board: Board,
    tables: Vec<PlannedTable>,
    pass_names: PassNames,
    due: Mutex<Option<Due>>,
}

impl AnswerFolder {
    pub(super) fn new(plan: &Path, tables: &[PlannedTable]) -> Self {
        let (pass_names, due) = (PassNames::default(), Mutex::default());
        Self { board: Board::new(plan), tables: tables.to_vec(), pass_names, due }
    }

    /// The pass that the answers end at.
    pub(super) fn due(&self) -> Option<Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Machines for AnswerFolder {
    fn splits(&self, paths: &[PathBuf]) -> Result<Option<Splits>> {
        let same = |t: &&PlannedTable| t.read.paths == paths;
        Ok(self.tables.iter().find(same).map(|t| t.splits.clone()))
    }

    fn answers(&self, splits: &Splits, work: &Work) -> Result<Answers> {
        let pass = self.pass_names.name(work)?;
        self.board.begin(&pass, splits, work)?;
        if let Some(kept) = self.board.merged(&pass) {
            return Ok(Answers::Kept(kept));
        }
        let (parts, missing) = collect(&self.board, &pass, (splits, work))?;
        if missing.is_empty() {
            return Ok(Answers::Parts(parts));
        }
        let message = format!("pass {pass} is due");
        let due = Due { pass, parts: splits.splits.len(), missing };
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(due);
        Err(Error::Elsewhere(message))
    }

    fn keep(&self, work: &Work, merged: Vec<u8>) -> Result<()> {
        self.pass_names.keep(&self.board, work, &merged)
    }
}
