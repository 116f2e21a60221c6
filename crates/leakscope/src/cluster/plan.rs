//! A plan: what is asked of which files, and how far it has come.

use super::board::{Board, Due, write_whole};
use super::folder::{AnswerFolder, PlannedTable};
use super::{VERSION, read_json, records_of};
use crate::audit::{self, Request};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_report::{Audit, PageKind};
use leakscope_table::{Hooks, Machines, RecordsFormat, Table};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `plan.json` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Written {
    /// Version of Leakscope that wrote it: every machine must have the same.
    pub(super) version: String,
    /// The audit; absent where somebody asks and waits.
    pub(super) request: Option<Request>,
    /// The tables that are read, each with its parts.
    pub(super) tables: Vec<PlannedTable>,
}

impl Written {
    /// That of a folder.
    pub(super) fn open(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            version: String,
        }
        let file = path.join(FILE);
        let Head { version } = read_json(&file, "description")?;
        if version != VERSION {
            return Err(Failure::Message(format!(
                "{} was made by version {version}, this is {VERSION}: use one version everywhere",
                file.display()
            )));
        }
        read_json(&file, "description")
    }
}

/// An audit in a folder that all machines see.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    board: Board,
    request: Request,
    tables: Vec<PlannedTable>,
}

/// How far a plan has come.
#[derive(Debug)]
pub enum Progress {
    /// A pass lacks answers.
    Due(Due),
    /// All is there: the audit, and the files that were written.
    Done(Box<Audit>, Vec<PathBuf>),
}

/// Where the answers that are there end.
enum Replayed {
    Due(Due),
    Audit(Box<Audit>),
}

pub(super) const FILE: &str = "plan.json";

impl Plan {
    /// Plans an audit: checks the request, finds the splits of the tables and writes the first pass.
    ///
    /// # Errors
    /// Those of an audit that need no row; for a folder that holds another plan.
    pub fn new(path: &Path, request: &Request, hooks: &Hooks) -> Result<Self> {
        request.check()?;
        // All must draw the same.
        let request = Request { seed: request.seed.or_else(|| Some(crate::seed::draw())), ..request.clone() };
        let request = absolute(request)?;
        // A folder that stays empty goes again.
        let _folder = Folder::open(path, RecordsFormat::Parquet)?;
        if path.join(FILE).exists() {
            let there = Self::open(path)?;
            let same = |a: &Request, b: &Request| {
                let text = |r: &Request| serde_json::to_string(&Request { seed: None, ..r.clone() }).ok();
                text(a) == text(b)
            };
            if same(&there.request, &request) {
                return Ok(there);
            }
            let message = format!("{} holds another plan: choose an empty folder", path.display());
            return Err(Failure::option("out", message));
        }
        let mut tables = vec![];
        for read in std::iter::once(&request.read).chain(&request.test).chain(&request.score) {
            let splits = Table::open(read)?.cut(hooks)?;
            tables.push(PlannedTable { read: read.clone(), splits });
        }
        let plan = Self { path: path.into(), board: Board::new(path), request, tables };
        let (request, tables) = (Some(plan.request.clone()), plan.tables.clone());
        let written = Written { version: VERSION.into(), request, tables };
        let text = serde_json::to_string_pretty(&written).map_err(|e| Failure::Message(e.to_string()))?;
        // The plan is there once its first pass is known to make sense.
        let Replayed::Due(_) = plan.replay(hooks)? else {
            let message =
                format!("{} holds the answers of another plan: choose an empty folder", path.display());
            return Err(Failure::option("out", message));
        };
        write_whole(&path.join(FILE), text.as_bytes())?;
        Ok(plan)
    }

    /// Opens a plan that was made before.
    ///
    /// # Errors
    /// Where there is none, or where it was made by another version.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of_worker(path)?.ok_or_else(|| {
            let place = path.display();
            Failure::Message(format!(
                "{place} is no plan: somebody asks there and waits; start `leakscope worker {place}`"
            ))
        })
    }

    /// The same; `None` where somebody asks and waits.
    pub(super) fn of_worker(path: &Path) -> Result<Option<Self>> {
        let Written { request, tables, .. } = Written::open(path)?;
        let board = Board::new(path);
        Ok(request.map(|request| Self { path: path.into(), board, request, tables }))
    }

    /// The folder of the result.
    pub fn result(&self) -> PathBuf {
        self.path.join("audit")
    }

    /// Names of the passes so far, in their order.
    pub fn passes(&self) -> Vec<String> {
        self.board.passes()
    }

    /// Parts of a pass that have no answer yet.
    ///
    /// # Errors
    /// For a pass that is not there.
    pub fn missing(&self, pass: &str) -> Result<Vec<usize>> {
        self.board.missing(pass)
    }

    /// Computes a part of a pass, and leaves its answer in the folder.
    ///
    /// # Errors
    /// They name the part.
    pub fn run(&self, pass: &str, part: usize, hooks: &Hooks) -> Result<()> {
        self.board.run(pass, part, hooks)
    }

    /// Merges what is there, and says what is due; the result is written when nothing is.
    ///
    /// # Errors
    /// Those of the audit; a damaged answer names its part.
    pub fn merge(&self, hooks: &Hooks) -> Result<Progress> {
        match self.replay(hooks)? {
            Replayed::Due(due) => Ok(Progress::Due(due)),
            Replayed::Audit(audit) => {
                let (audit, written) = self.publish(*audit)?;
                Ok(Progress::Done(Box::new(audit), written))
            }
        }
    }

    /// The audit, with the answers of the passes in the place of passes: what is there is not computed again.
    fn replay(&self, hooks: &Hooks) -> Result<Replayed> {
        let folder = Arc::new(AnswerFolder::new(&self.path, &self.tables));
        let machines: Arc<dyn Machines> = Arc::<AnswerFolder>::clone(&folder);
        // Its tables stay in memory: records are written part by part.
        let results = Folder::in_memory();
        let request = self.request.clone().on(&machines);
        let audit_outcome = audit::run(&request, Some(&results), hooks, &|_| {});
        match (audit_outcome, folder.due()) {
            (_, Some(due)) => Ok(Replayed::Due(due)),
            (Ok(outcome), None) => Ok(Replayed::Audit(Box::new(outcome.audit))),
            (Err(failure), None) => Err(failure),
        }
    }

    fn publish(&self, mut audit: Audit) -> Result<(Audit, Vec<PathBuf>)> {
        let folder = Folder::open(&self.result(), RecordsFormat::Parquet)?;
        audit.tables.clear();
        let mut tables = vec![("records", 0)];
        tables.extend(self.request.score.is_some().then(|| ("scores", self.tables.len() - 1)));
        let mut moved = vec![];
        for (name, table) in tables {
            let parts = self.tables.get(table).map_or(0, |t| t.splits.splits.len());
            moved.push(self.publish_table(name, parts)?);
            audit.tables.push(name.into());
        }
        let mut pending = Pending::default();
        folder.page(&mut pending, PageKind::Audit, &leakscope_report::page(&audit))?;
        folder.text(&mut pending, "audit.json", &leakscope_report::json(&audit))?;
        let mut written = folder.publish(pending)?;
        written.extend(moved);
        Ok((audit, written))
    }

    /// Moves what the parts left of a table to the result.
    fn publish_table(&self, name: &str, parts: usize) -> Result<PathBuf> {
        let (from, to) = (self.path.join(name), self.result().join(name));
        fs::create_dir_all(&to).map_err(|e| Failure::Message(format!("{}: {e}", to.display())))?;
        for part in 0..parts {
            let (new, old) = (from.join(records_of(part)), to.join(records_of(part)));
            match fs::rename(&new, &old) {
                Err(_) if old.exists() => {}
                Err(e) => {
                    let path = new.display();
                    return Err(Failure::Message(format!(
                        "part {part}: its {name} are gone ({path}: {e}): run that part of the pass `{name}` again"
                    )));
                }
                Ok(()) => {}
            }
        }
        let _ = fs::remove_dir(from);
        Ok(to)
    }
}

/// The request with names of files that hold in any folder: whoever runs a part may be in another.
pub(super) fn absolute(mut request: Request) -> Result<Request> {
    for read in std::iter::once(&mut request.read).chain(&mut request.test).chain(&mut request.score) {
        for path in read.paths.iter_mut().filter(|p| p.as_os_str() != "-" && !leakscope_table::is_remote(p)) {
            *path = fs::canonicalize(&path)
                .map_err(|e| Failure::Data(format!("cannot read {}: {e}", path.display())))?;
        }
    }
    Ok(request)
}
