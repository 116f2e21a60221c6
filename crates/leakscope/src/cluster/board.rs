//! What hangs in a folder that all machines see: passes, and the answers of their parts.
//!
//! ```text
//! plan/plan.json                 who asks what
//!      tables/8a….json           the splits of a table
//!      passes/03-fit/work        the pass, as bytes
//!                    pass.json   which table, how many parts
//!                    part-00017  the answer of a part; whole, or not there
//!                    merged      what all answers come to
//!                    own-00017   what is sent to that part alone, where there is anything
//!      records/part-00017.parquet
//!      audit/                    the result
//! ```

use super::{passes, read_json, records_of};
use crate::{Failure, Result};
use leakscope_core::pass::bytes::crc_of;
use leakscope_table::{Error, Hooks, Splits, Work, answer, temporary_file};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const WORK: &str = "work";
const ABOUT: &str = "pass.json";
const MERGED: &str = "merged";

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

/// What is said of a pass.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// The file of its table.
    table: String,
    /// Number of its parts.
    parts: usize,
    /// Tells it from every other.
    key: u64,
}

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct Board {
    pub(super) root: PathBuf,
}

impl Board {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Names of the passes so far, in their order.
    pub(super) fn passes(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("passes")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|e| e.path().join(WORK).exists())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        let number = |name: &String| name.split('-').next().and_then(|n| n.parse::<usize>().ok());
        names.sort_by_key(number);
        names
    }

    /// The folder of a pass.
    pub(super) fn pass(&self, pass: &str) -> PathBuf {
        self.root.join("passes").join(pass)
    }

    /// The file of a part's answer.
    pub(super) fn part(&self, pass: &str, part: usize) -> PathBuf {
        self.pass(pass).join(format!("part-{part:05}"))
    }

    fn own(&self, pass: &str, part: usize) -> PathBuf {
        self.pass(pass).join(format!("own-{part:05}"))
    }

    fn about(&self, pass: &str) -> Result<About> {
        if !self.passes().iter().any(|name| name == pass) {
            let known = self.passes().join(", ");
            let message = format!("`{pass}` is no pass of this plan yet; it has {known}");
            return Err(Failure::option("pass", message));
        }
        read_json(&self.pass(pass).join(ABOUT), "pass")
    }

    /// Parts of a pass that have no answer yet.
    pub(super) fn missing(&self, pass: &str) -> Result<Vec<usize>> {
        let about = self.about(pass)?;
        if self.pass(pass).join(MERGED).exists() {
            return Ok(vec![]);
        }
        Ok((0..about.parts).filter(|part| !self.part(pass, *part).exists()).collect())
    }

    /// Hangs up a pass, unless it is there.
    pub(super) fn begin(&self, pass: &str, splits: &Splits, work: &Work) -> leakscope_table::Result<()> {
        let (folder, key) = (self.pass(pass), work.key()?);
        if folder.join(WORK).exists() {
            return match read_json::<About>(&folder.join(ABOUT), "pass") {
                Ok(about) if about.key == key => Ok(()),
                Ok(_) | Err(_) => Err(Error::Elsewhere(format!(
                    "{} holds another pass than this question comes to: was it made by another version or with other \
                     options, or were files of it changed? Choose an empty folder",
                    folder.display()
                ))),
            };
        }
        let table = self.keep_table(splits)?;
        let about = About { table, parts: splits.splits.len(), key };
        let text = serde_json::to_string(&about).map_err(|e| Error::Elsewhere(e.to_string()))?;
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        for at in (0..splits.splits.len()).filter(|at| !work.own(*at).is_empty()) {
            write_whole(&self.own(pass, at), work.own(at))?;
        }
        write_whole(&folder.join(ABOUT), text.as_bytes())?;
        // Last: a pass is there once its work is.
        write_whole(&folder.join(WORK), &work.to_bytes()?)
    }

    /// Writes down the splits of a table, and gives the name of the file.
    fn keep_table(&self, splits: &Splits) -> leakscope_table::Result<String> {
        let text = serde_json::to_string(splits).map_err(|e| Error::Elsewhere(e.to_string()))?;
        let (folder, name) = (self.tables(), format!("{:016x}.json", crc_of(text.as_bytes())));
        if !folder.join(&name).exists() {
            fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
            write_whole(&folder.join(&name), text.as_bytes())?;
        }
        Ok(name)
    }

    fn tables(&self) -> PathBuf {
        self.root.join("tables")
    }

    /// The splits of a table of these files, where they were written down.
    pub(super) fn table_of(&self, paths: &[PathBuf]) -> Option<Splits> {
        let entries = fs::read_dir(self.tables()).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        names.sort();
        names.iter().filter_map(|file| read_json::<Splits>(file, "table").ok()).find(|splits| {
            let mut files: Vec<&PathBuf> = splits.splits.iter().map(|s| &s.path).collect();
            files.dedup();
            files.into_iter().eq(paths)
        })
    }

    /// What the answers of a pass came to, once they were merged.
    pub(super) fn merged(&self, pass: &str) -> Option<Vec<u8>> {
        fs::read(self.pass(pass).join(MERGED)).ok()
    }

    /// Keeps what the answers of a pass come to.
    pub(super) fn keep(&self, pass: &str, merged: &[u8]) -> leakscope_table::Result<()> {
        write_whole(&self.pass(pass).join(MERGED), merged)
    }

    /// Computes a part of a pass, and leaves its answer in the folder.
    pub(super) fn run(&self, pass: &str, part: usize, hooks: &Hooks) -> Result<()> {
        let about = self.about(pass)?;
        if part >= about.parts {
            let last = about.parts.saturating_sub(1);
            return Err(Failure::number("part", part, format!("pass {pass} has the parts 0 to {last}")));
        }
        let splits: Splits = read_json(&self.tables().join(&about.table), "table")?;
        let read = |file: &Path| {
            fs::read(file).map_err(|e| Failure::Message(format!("part {part}: {}: {e}", file.display())))
        };
        let work = read(&self.pass(pass).join(WORK))?;
        let own = self.own(pass, part);
        let own = if own.exists() { read(&own)? } else { vec![] };
        let file = |table: &str| {
            let folder = self.root.join(table);
            fs::create_dir_all(&folder).ok().map(|()| folder.join(records_of(part)))
        };
        let run: &dyn Fn(&_, _, &[u8]) -> _ =
            &|rows, alterations, sent: &[u8]| passes::run(rows, alterations, sent, &file);
        let answer = answer((&work, &own), (&splits, part), hooks, run)?;
        Ok(write_whole(&self.part(pass, part), &answer)?)
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Write { path: path.into(), message: error.to_string() }
}

/// Writes a file under a temporary name, makes it durable and renames it.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> leakscope_table::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = temporary_file(folder).map_err(|e| failed(path, e))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| failed(path, e))?;
    file.persist(path).map_err(|e| failed(path, e.error))?;
    Ok(())
}
