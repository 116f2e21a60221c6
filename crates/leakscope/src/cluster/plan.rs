//! A plan: what is asked of which files, and how far it has come.

use super::folder::{ABOUT, About, AnswerFolder, PlannedTable, WORK, part_file, read_json, write_whole};
use super::{VERSION, part_of, records_of};
use crate::audit::{self, Request};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_report::Audit;
use leakscope_table::{Hooks, Machines, ReadOptions, RecordsFormat, Table};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::folder::Due;

/// What `plan.json` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    version: String,
    request: Request,
    tables: Vec<PlannedTable>,
}

/// An audit in a folder that all machines see.
#[derive(Debug)]
pub struct Plan {
    path: PathBuf,
    written: Written,
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

const FILE: &str = "plan.json";

impl Plan {
    /// Plans an audit: checks the request, finds the splits of the tables and writes the first pass.
    ///
    /// # Errors
    /// Those of an audit that need no row; for a folder that holds another plan.
    pub fn new(path: &Path, request: &Request, hooks: &Hooks) -> Result<Self> {
        request.check()?;
        let mut request = request.clone();
        // Whoever runs a part may be in another folder, and all must draw the same.
        request.seed = request.seed.or_else(|| Some(crate::seed::drawn()));
        for read in std::iter::once(&mut request.read).chain(&mut request.test).chain(&mut request.score) {
            absolute(read)?;
        }
        // A folder that stays empty goes again.
        let _folder = Folder::open(path, RecordsFormat::Parquet)?;
        if path.join(FILE).exists() {
            let there = Self::open(path)?;
            let same = |a: &Request, b: &Request| {
                let text = |r: &Request| serde_json::to_string(&Request { seed: None, ..r.clone() }).ok();
                text(a) == text(b)
            };
            if same(&there.written.request, &request) {
                return Ok(there);
            }
            let message = format!("{} holds another plan: choose an empty folder", path.display());
            return Err(Failure::option("out", message));
        }
        let mut tables = vec![];
        for read in std::iter::once(&request.read).chain(&request.test) {
            let splits = Table::open(read)?.cut(hooks)?;
            tables.push(PlannedTable { read: read.clone(), splits });
        }
        let written = Written { version: VERSION.into(), request, tables };
        let text = serde_json::to_string_pretty(&written).map_err(|e| Failure::Message(e.to_string()))?;
        let plan = Self { path: path.into(), written };
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
        Ok(Self { path: path.into(), written: read_json(&file, "description")? })
    }

    /// The folder of the result.
    pub fn result(&self) -> PathBuf {
        self.path.join("audit")
    }

    /// Names of the passes so far, in their order.
    pub fn passes(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path.join("passes")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|e| e.path().join(WORK).exists())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        let number = |name: &String| name.split('-').next().and_then(|n| n.parse::<usize>().ok());
        names.sort_by_key(number);
        names
    }

    pub(super) fn pass_folder(&self, pass: &str) -> PathBuf {
        self.path.join("passes").join(pass)
    }

    pub(super) fn about(&self, pass: &str) -> Result<About> {
        if !self.passes().iter().any(|name| name == pass) {
            let known = self.passes().join(", ");
            let message = format!("`{pass}` is no pass of this plan yet; it has {known}");
            return Err(Failure::option("pass", message));
        }
        read_json(&self.pass_folder(pass).join(ABOUT), "pass")
    }

    /// Parts of a pass that have no answer yet.
    pub fn missing(&self, pass: &str) -> Result<Vec<usize>> {
        let (about, folder) = (self.about(pass)?, self.pass_folder(pass));
        if folder.join("merged").exists() {
            return Ok(vec![]);
        }
        Ok((0..about.parts).filter(|part| !part_file(&folder, *part).exists()).collect())
    }

    /// Computes a part of a pass, and leaves its answer in the folder.
    ///
    /// # Errors
    /// They name the part.
    pub fn run(&self, pass: &str, part: usize, hooks: &Hooks) -> Result<()> {
        let (about, folder) = (self.about(pass)?, self.pass_folder(pass));
        if part >= about.parts {
            let last = about.parts - 1;
            let message = format!("{part}: pass {pass} has the parts 0 to {last}");
            return Err(Failure::option("part", message));
        }
        let table = self.written.tables.get(about.table);
        let splits = &table.ok_or_else(|| Failure::Message("the plan has no such table".into()))?.splits;
        let file = folder.join(WORK);
        let work = fs::read(&file).map_err(|e| Failure::Message(format!("{}: {e}", file.display())))?;
        let records = self.records();
        fs::create_dir_all(&records).map_err(|e| Failure::Message(format!("{}: {e}", records.display())))?;
        let answer = part_of(&work, splits, part, Some(&records), hooks)?;
        Ok(write_whole(&part_file(&folder, part), &answer)?)
    }

    fn records(&self) -> PathBuf {
        self.path.join("records")
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
        let folder = Arc::new(AnswerFolder::new(&self.path, &self.written.tables));
        let machines: Arc<dyn Machines> = Arc::<AnswerFolder>::clone(&folder);
        // Its tables stay in memory: records are written part by part.
        let results = Folder::in_memory();
        let found = audit::run_on(&self.written.request, Some(&machines), Some(&results), hooks, &|_| {});
        match (found, folder.due()) {
            (_, Some(due)) => Ok(Replayed::Due(due)),
            (Ok(outcome), None) => Ok(Replayed::Audit(Box::new(outcome.audit))),
            (Err(failure), None) => Err(failure),
        }
    }

    fn publish(&self, mut audit: Audit) -> Result<(Audit, Vec<PathBuf>)> {
        let folder = Folder::open(&self.result(), RecordsFormat::Parquet)?;
        let (from, to) = (self.records(), self.result().join("records"));
        let parts = self.written.tables.first().map_or(0, |t| t.splits.splits.len());
        let failed = |path: &Path, e: std::io::Error| Failure::Message(format!("{}: {e}", path.display()));
        fs::create_dir_all(&to).map_err(|e| failed(&to, e))?;
        for part in 0..parts {
            let (new, old) = (from.join(records_of(part)), to.join(records_of(part)));
            match fs::rename(&new, &old) {
                Err(_) if old.exists() => {}
                Err(e) => {
                    let path = new.display();
                    return Err(Failure::Message(format!(
                        "part {part}: its records are gone ({path}: {e}): run that part of the pass `records` again"
                    )));
                }
                Ok(()) => {}
            }
        }
        let mut pending = Pending::default();
        audit.tables = vec!["records".into()];
        folder.page(&mut pending, "audit", &leakscope_report::page(&audit))?;
        folder.text(&mut pending, "audit.json", &leakscope_report::json(&audit))?;
        let mut written = folder.publish(pending)?;
        written.push(to);
        let _ = fs::remove_dir(from);
        Ok((audit, written))
    }
}

fn absolute(read: &mut ReadOptions) -> Result<()> {
    for path in &mut read.paths {
        if path.as_os_str() != "-" {
            *path = fs::canonicalize(&path)
                .map_err(|e| Failure::Data(format!("cannot read {}: {e}", path.display())))?;
        }
    }
    Ok(())
}
