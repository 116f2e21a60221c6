//! The ledger of releases: whose data, how many, how much in all; one process at a time.

use crate::audit::{Request, target_unit};
use crate::{Failure, Result};
use leakscope_report::format;
use leakscope_table::{Encoding, OneHot, ReadOptions, Scale};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the ledger in the output folder.
pub const FILE: &str = "ledger.json";
const LOCK: &str = "ledger.lock";
const SCHEMA: &str = "leakscope.ledger/1";
/// How long another process may take to write its line.
const PATIENCE: Duration = Duration::from_secs(5);

/// Units this close (relative) are the same: what is left is the order of a sum.
const SAME: f64 = 1e-9;
/// Differences that are named.
const SHOWN: usize = 4;

/// All releases of one data set into one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Name and version of this schema.
    pub schema: String,
    /// SHA-256 over the contents of the data files, whatever their names and order.
    pub fingerprint: String,
    /// Every release, oldest first.
    pub releases: Vec<Entry>,
}

/// One release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, RFC 3339, UTC.
    pub when: String,
    /// The target of the model.
    pub target: String,
    /// Its family.
    pub family: String,
    /// Its penalty.
    pub l2: f64,
    /// Noise on every coefficient.
    pub sigma: f64,
    /// Mean of η.
    pub eta_mean: f64,
    /// Largest η.
    pub eta_max: f64,
    /// What η is counted in; absent in ledgers that were kept before it was written down.
    #[serde(default)]
    pub unit: Option<Unit>,
}

/// What η of a release is counted in. `√Σ η²` bounds the η of several releases together only where one step of a column
/// is the same step in all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// How numbers are scaled.
    pub scale: Scale,
    /// Which levels of a category have a column.
    pub one_hot: OneHot,
    /// Principal components instead of columns.
    pub pca: Option<usize>,
    /// `secret` or `public`.
    pub label: String,
    /// Own units of every column (and of a secret label) in one encoded unit.
    pub columns: BTreeMap<String, f64>,
}

impl Unit {
    /// That of a model.
    pub fn of(request: &Request, encoding: &Encoding) -> Self {
        let mut columns: BTreeMap<String, f64> =
            encoding.attributes.iter().map(|a| (a.name.clone(), a.scale)).collect();
        if request.label_secret {
            columns.insert(encoding.target.name.clone(), target_unit(encoding));
        }
        let label = if request.label_secret { "secret" } else { "public" };
        Self {
            scale: request.scale,
            one_hot: request.one_hot,
            pca: request.pca,
            label: label.into(),
            columns,
        }
    }

    /// What differs from another, in the words of the command line; empty where η may be added up.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = vec![];
        let mut compare = |flag: &str, a: String, b: String| {
            if a != b {
                all.push(format!("{flag} was {a}, now {b}"));
            }
        };
        let pca = |u: &Self| u.pca.map_or_else(|| "absent".into(), |k| k.to_string());
        compare("scale", word(&self.scale), word(&other.scale));
        compare("one_hot", word(&self.one_hot), word(&other.one_hot));
        compare("pca", pca(self), pca(other));
        compare("label", self.label.clone(), other.label.clone());
        if !all.is_empty() {
            return all;
        }
        for (name, theirs) in &other.columns {
            match self.columns.get(name) {
                Some(ours) if (ours - theirs).abs() > SAME * ours.abs().max(theirs.abs()) => {
                    all.push(format!(
                        "one unit of `{name}` was {}, now {}",
                        format::number(*ours),
                        format::number(*theirs)
                    ))
                }
                Some(_) => {}
                // Components mix all columns: they are the same only over the same ones.
                None if self.pca.is_some() => all.push(format!("`{name}` was not among the columns")),
                None => {}
            }
        }
        if self.pca.is_some() {
            let gone = self.columns.keys().filter(|name| !other.columns.contains_key(*name));
            all.extend(gone.map(|name| format!("`{name}` is not among the columns any more")));
        }
        if all.len() > SHOWN {
            let more = all.len() - SHOWN;
            all.truncate(SHOWN);
            all.push(format!("and {more} more"));
        }
        all
    }
}

/// A choice as it is written on the command line.
fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default()
}

impl Ledger {
    /// Largest η of all releases together, at most: `√Σ η²` (independent releases add their information).
    pub fn eta_max(&self) -> f64 {
        self.releases.iter().map(|r| r.eta_max * r.eta_max).sum::<f64>().sqrt()
    }
}

/// The ledger of a folder, held by this process alone until dropped.
#[derive(Debug)]
pub struct Held {
    folder: PathBuf,
    /// What it holds.
    pub ledger: Ledger,
}

impl Held {
    /// Locks and reads the ledger of `folder`, or starts one.
    ///
    /// # Errors
    /// Where another process holds it, where it cannot be read, and where it is about other data.
    pub fn open(folder: &Path, fingerprint: &str) -> Result<Self> {
        lock(&folder.join(LOCK))?;
        // From here on dropping `held` unlocks, whatever goes wrong.
        let empty = Ledger { schema: SCHEMA.into(), fingerprint: fingerprint.into(), releases: vec![] };
        let mut held = Self { folder: folder.into(), ledger: empty };
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(held),
            Err(e) => {
                return Err(Failure::Message(format!("cannot read the ledger {}: {e}", path.display())));
            }
        };
        let found: Ledger = serde_json::from_str(&text).map_err(|e| {
            Failure::Message(format!(
                "the ledger {} is damaged ({e}): restore it from a copy; without it releases cannot be added up",
                path.display()
            ))
        })?;
        if found.schema != SCHEMA {
            let message =
                format!("the ledger {} has schema {}, expected {SCHEMA}", path.display(), found.schema);
            return Err(Failure::Message(message));
        }
        if found.fingerprint != fingerprint {
            return Err(Failure::option(
                "out",
                format!(
                    "the ledger in {} is about other data ({}): every data set needs its own folder; if \
                     these are the same data in another file, release from the file used before",
                    folder.display(),
                    format::counted(found.releases.len() as u64, "release")
                ),
            ));
        }
        held.ledger = found;
        Ok(held)
    }

    /// Refuses to add up η of different units.
    ///
    /// # Errors
    /// Where an earlier release was measured in another unit, or does not say in which.
    pub fn check_unit(&self, unit: &Unit) -> Result<()> {
        let alone = "a ledger in another folder does not add up with this one, so with it the total of both is yours \
                     to keep. Nothing was written";
        for (i, entry) in self.ledger.releases.iter().enumerate() {
            let why = match &entry.unit {
                None => "does not say in which unit its η is (an older version wrote it)".to_owned(),
                Some(before) => {
                    let differences = before.differences(unit);
                    if differences.is_empty() {
                        continue;
                    }
                    format!("has its η in another unit ({})", differences.join("; "))
                }
            };
            return Err(Failure::option(
                "out",
                format!(
                    "release {} of the ledger in {} {why}, so the two cannot be added up: release with the same \
                     encoding, or choose another folder; {alone}",
                    i + 1,
                    self.folder.display()
                ),
            ));
        }
        Ok(())
    }

    /// Adds a release and writes the ledger, whole or not at all, before anything is released.
    pub fn add(&mut self, entry: Entry) -> Result<()> {
        self.ledger.releases.push(entry);
        let path = self.folder.join(FILE);
        let fail =
            |e: std::io::Error| Failure::Message(format!("cannot write the ledger {}: {e}", path.display()));
        let text = leakscope_report::document(&self.ledger);
        let mut file = leakscope_table::temporary_file(&self.folder).map_err(fail)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
        file.persist(&path).map_err(|e| fail(e.error))?;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(LOCK));
    }
}

/// Creates the lock file, waiting a little for another process that is at it.
fn lock(path: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(mut file) => {
                let _ = writeln!(file, "{}", std::process::id());
                return Ok(());
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let holder = fs::read_to_string(path).unwrap_or_default();
                return Err(Failure::Message(format!(
                    "another release (process {}) holds the ledger: wait for it; if that process is gone, remove {}",
                    holder.trim(),
                    path.display()
                )));
            }
            Err(e) => {
                return Err(Failure::Message(format!("cannot lock the ledger {}: {e}", path.display())));
            }
        }
    }
}

/// SHA-256 over the files' own digests in sorted order.
pub fn fingerprint(read: &ReadOptions) -> Result<String> {
    let mut digests = vec![];
    for memory in &read.memory {
        let mut hash = Sha256::new();
        memory.feed(&mut |bytes| hash.update(bytes));
        digests.push(hash.finalize());
    }
    for path in &read.paths {
        let fail = |e: std::io::Error| Failure::Message(format!("cannot read {}: {e}", path.display()));
        let (mut file, mut hash, mut buffer) =
            (File::open(path).map_err(fail)?, Sha256::new(), vec![0; 1 << 16]);
        loop {
            let read = file.read(&mut buffer).map_err(fail)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
        digests.push(hash.finalize());
    }
    digests.sort();
    let mut all = Sha256::new();
    digests.iter().for_each(|d| all.update(d));
    Ok(all.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
