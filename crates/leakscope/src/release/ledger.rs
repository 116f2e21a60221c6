//! The ledger of releases: whose data, how many, how much in all; one process at a time, sealed.
//!
//! A release is a folder of its own, `release-1`, `release-2`, …, and charged exactly when it is there. Its files are
//! written under a temporary name; the ledger then holds the *intention*; the folder gets its name; the intention becomes
//! a line. A process that dies in between leaves one of these states, and the next one that opens the ledger puts it
//! right and says so: no folder of that name, nothing was released and nothing is charged; the folder is there, it is.
//!
//! Folders of releases may leave the house. The ledger, its key and the owner's copies of statements lie in `private/` beside
//! them.

use super::seal::{Key, UNSEALED};
use super::unit::Unit;
use crate::{Failure, Result};
use leakscope_report::format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Folder for what only the owner may see, in the output folder.
pub const PRIVATE: &str = "private";
/// Name of the ledger in the output folder.
pub const FILE: &str = "private/ledger.json";
const LOCK: &str = "private/ledger.lock";
/// Where the ledger was before it had a folder of its own.
const FORMER_FILE: &str = "ledger.json";
const SCHEMA: &str = "leakscope.ledger/2";
/// What ledgers were before they were sealed.
const UNSEALED_SCHEMA: &str = "leakscope.ledger/1";
/// Before the name of a folder that is not released yet.
const TEMPORARY: &str = ".release-";
/// How long another process may take to write its line.
const PATIENCE: Duration = Duration::from_secs(5);

/// All releases of one data set into one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Name and version of this schema.
    pub schema: String,
    /// SHA-256 over the contents of the data files, whatever their names and order.
    pub fingerprint: String,
    /// Largest η of all releases together that was ever asked for.
    #[serde(default)]
    pub budget_eta: Option<f64>,
    /// When the data became others by decision of their owner, oldest first.
    #[serde(default)]
    pub data_changes: Vec<DataChange>,
    /// Every release, oldest first.
    pub releases: Vec<Entry>,
    /// Releases that by decision of their owner never left the house, and do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawals: Vec<Withdrawal>,
    /// A release that is being made: charged if its folder is there.
    #[serde(default)]
    pub intention: Option<Entry>,
    /// HMAC-SHA256 over this file with zeros here.
    #[serde(default)]
    pub seal: String,
}

/// A decision of the owner: the data grew or lost rows, and what was released of them before still counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataChange {
    /// When, RFC 3339, UTC.
    pub when: String,
    /// Why, in the owner's words.
    pub reason: String,
    /// Fingerprint before.
    pub before: String,
    /// Releases before.
    pub releases: usize,
}

/// A decision of the owner: the files of a release were never published, and never will be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// When, RFC 3339, UTC.
    pub when: String,
    /// Why, in the owner's words.
    pub reason: String,
    /// What was withdrawn.
    pub release: Entry,
}

/// One release.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Folder of its files; absent in ledgers that were kept before releases had one.
    #[serde(default)]
    pub folder: Option<String>,
    /// When, RFC 3339, UTC.
    pub when: String,
    /// The target of the model.
    pub target: String,
    /// The column of its weights, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Its family.
    pub family: String,
    /// Its penalty.
    pub l2: f64,
    /// Noise on every coefficient.
    pub sigma: f64,
    /// Mean of η.
    pub eta_mean: f64,
    /// Largest η, as it was stated.
    pub eta_max: f64,
    /// What η is counted in; absent in ledgers that were kept before it was written down.
    #[serde(default)]
    pub unit: Option<Unit>,
    /// How far apart two values of each attribute are; absent where that was not computed for every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<BTreeMap<String, Line>>,
}

/// Two values of an attribute (or all levels of it) in one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The values, as they are written.
    pub values: Vec<String>,
    /// The largest distance of two of them over records, in standard deviations of the noise; absent where they show for
    /// certain.
    pub distance: Option<f64>,
}

/// Whether a folder has a ledger, or what is left of one.
pub(super) fn is_kept(folder: &Path) -> bool {
    folder.join(PRIVATE).exists() || folder.join(FORMER_FILE).exists()
}

impl Ledger {
    /// Largest η of all releases together, at most: `√Σ η²` (independent releases add their information).
    pub fn eta_max(&self) -> f64 {
        self.releases.iter().map(|r| r.eta_max * r.eta_max).sum::<f64>().sqrt()
    }
}

/// The ledger of a folder, held by this process alone until dropped or dead.
#[derive(Debug)]
pub struct Held {
    pub(super) folder: PathBuf,
    /// What it holds.
    pub ledger: Ledger,
    /// What was put right on opening, in whole sentences.
    pub remarks: Vec<String>,
    key: Option<Key>,
    key_file: PathBuf,
    _lock: File,
}

/// What the owner says about the ledger itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Keeping<'a> {
    /// Why the data are others than before, and what was released of them still counts.
    pub data_changed: Option<&'a str>,
    /// The file of the key that seals the ledger; `private/ledger.key` without one.
    pub key: Option<&'a Path>,
}

impl Held {
    /// Locks and reads the ledger of `folder`, or starts one; what a process that died left is put right. Where the data
    /// are others, the owner needs a reason to go on.
    ///
    /// # Errors
    /// Where another process holds it, where it cannot be read or was changed, and where it is about other data.
    pub fn open(folder: &Path, fingerprint: &str, keeping: Keeping<'_>) -> Result<Self> {
        make_private(folder)?;
        let lock = lock(&folder.join(LOCK))?;
        let empty = Ledger {
            schema: SCHEMA.into(),
            fingerprint: fingerprint.into(),
            budget_eta: None,
            data_changes: vec![],
            releases: vec![],
            withdrawals: vec![],
            intention: None,
            seal: String::new(),
        };
        let mut held = Self::locked(folder, keeping.key, lock, empty)?;
        if held.ledger.fingerprint != fingerprint {
            let Some(reason) = keeping.data_changed else { return Err(held.other_data()) };
            let change = DataChange {
                when: crate::clock::now(),
                reason: reason.into(),
                before: std::mem::replace(&mut held.ledger.fingerprint, fingerprint.into()),
                releases: held.ledger.releases.len(),
            };
            held.ledger.data_changes.push(change);
        }
        Ok(held)
    }

    /// The same of a ledger that is there already, whatever its data.
    ///
    /// # Errors
    /// As [`Held::open`], and where there is none.
    pub fn of_folder(folder: &Path, key: Option<&Path>) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            let message = format!("there is no ledger {}: name the folder of the releases", path.display());
            return Err(Failure::Message(message));
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let damaged = |e| Failure::Message(format!("the ledger {} is damaged ({e})", path.display()));
        let unread: Ledger = serde_json::from_str(&text).map_err(damaged)?;
        Self::locked(folder, key, lock(&folder.join(LOCK))?, unread)
    }

    /// Reads the ledger in place of `otherwise`, where there is one, and puts it right.
    fn locked(folder: &Path, key: Option<&Path>, lock: File, otherwise: Ledger) -> Result<Self> {
        let key_file = key.map_or_else(|| folder.join(PRIVATE).join(super::seal::KEY), Path::to_owned);
        let key = Key::read(&key_file)?;
        let mut held =
            Self { folder: folder.into(), ledger: otherwise, remarks: vec![], key, key_file, _lock: lock };
        if let Some(ledger) = held.read()? {
            held.ledger = ledger;
        }
        held.put_right()?;
        held.all_known()?;
        Ok(held)
    }

    /// Whether every release that lies in the folder stands in the ledger: one from an older copy would forget the others.
    fn all_known(&self) -> Result<()> {
        let Ledger { releases, withdrawals, .. } = &self.ledger;
        let entries = releases.iter().chain(withdrawals.iter().map(|w| &w.release));
        let known: Vec<&str> = entries.filter_map(|e| e.folder.as_deref()).collect();
        let lost: Vec<String> =
            released(&self.folder).into_iter().filter(|name| !known.contains(&name.as_str())).collect();
        match lost.is_empty() {
            true => Ok(()),
            false => Err(Failure::Message(format!(
                "the ledger {} does not know {}: it is older than the folder, and what was released since would not be counted; \
                 restore the newest copy of the ledger, or release into a folder of its own and count both by hand",
                self.folder.join(FILE).display(),
                lost.join(", ")
            ))),
        }
    }

    fn read(&self) -> Result<Option<Ledger>> {
        let path = self.folder.join(FILE);
        let shown = path.display();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                // Folders of releases, and what their owner keeps of them, come after the first ledger.
                let before =
                    [self.folder.clone(), self.folder.join(PRIVATE)].iter().any(|f| !released(f).is_empty());
                let message =
                    format!("the ledger {shown} is gone, and there are releases: restore its newest copy");
                return if before { Err(Failure::Message(message)) } else { Ok(None) };
            }
            Err(e) => return Err(Failure::Message(format!("cannot read the ledger {shown}: {e}"))),
        };
        let damaged = |why: String| {
            Failure::Message(format!(
                "the ledger {shown} is damaged ({why}): restore it from a copy; without it releases cannot be added up"
            ))
        };
        let ledger: Ledger = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
        match (&self.key, ledger.schema.as_str()) {
            (Some(key), SCHEMA) if key.holds(&text, &ledger.seal) => {
                Ok(Some(Ledger { seal: String::new(), ..ledger }))
            }
            (Some(_), SCHEMA | UNSEALED_SCHEMA) => Err(damaged("it was changed since it was sealed".into())),
            (None, SCHEMA) => Err(damaged(format!("its key {} is missing", self.key_file.display()))),
            // From before there were seals: sealed from the next release on.
            (None, UNSEALED_SCHEMA) => Ok(Some(Ledger { schema: SCHEMA.into(), ..ledger })),
            (_, other) => {
                let message = format!("the ledger {shown} has schema {other}, expected {SCHEMA}");
                Err(Failure::Message(message))
            }
        }
    }

    /// Finishes or drops what a process that died was doing, and removes what it had not released.
    fn put_right(&mut self) -> Result<()> {
        if let Some(entry) = self.ledger.intention.take() {
            let name = entry.folder.clone().unwrap_or_default();
            if self.folder.join(&name).is_dir() {
                self.remarks.push(format!(
                    "The process that made {name} ended before its line was in the ledger: it is released, and is charged \
                     now."
                ));
                self.ledger.releases.push(entry);
            } else {
                self.remarks.push(format!(
                    "The process that was to make {name} ended before anything was released: nothing is charged for it."
                ));
            }
            self.write()?;
        }
        let unreleased = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for left in unreleased.filter(|e| e.file_name().to_string_lossy().starts_with(TEMPORARY)) {
            let _ = fs::remove_dir_all(left.path());
        }
        let private = fs::read_dir(self.folder.join(PRIVATE)).into_iter().flatten().flatten();
        for left in private.filter(|e| leakscope_table::is_temporary(&e.path())) {
            let _ = fs::remove_file(left.path());
        }
        Ok(())
    }

    fn other_data(&self) -> Failure {
        Failure::option(
            "out",
            format!(
                "the ledger in {} is about other data ({}): every data set needs its own folder; if these are the same \
                 data in another file, release from the file used before; if they grew or lost rows, say so with \
                 ⟨data_changed⟩ and the reason, and what was released before still counts",
                self.folder.display(),
                format::counted(self.ledger.releases.len() as u64, "release")
            ),
        )
    }

    /// The budget that holds: the smaller of the one given and the one in the ledger, where it stays.
    ///
    /// # Errors
    /// Where the one given is larger: a budget is not raised by asking for more.
    pub fn budget(&mut self, limit: Option<f64>) -> Result<Option<f64>> {
        if let (Some(limit), Some(held)) = (limit, self.ledger.budget_eta)
            && limit > held
        {
            return Err(Failure::option(
                "budget_eta",
                format!(
                    "the ledger in {} holds a budget of {}, and {} is more: a budget can be lowered, not raised",
                    self.folder.display(),
                    format::setting(held),
                    format::setting(limit)
                ),
            ));
        }
        self.ledger.budget_eta = limit.or(self.ledger.budget_eta);
        Ok(self.ledger.budget_eta)
    }

    /// Largest η of all releases so far, at most, counted in `unit`: data that changed by decision may have other scales,
    /// and then a step of a column is as many of the earlier steps as its scales are apart, at most.
    ///
    /// # Errors
    /// As [`Held::check_unit`], which holds for releases of the same data.
    pub fn spent(&self, unit: &Unit) -> Result<f64> {
        self.check_unit(unit)?;
        let of = |entry: &Entry| entry.eta_max * entry.unit.as_ref().map_or(1.0, |before| before.steps(unit));
        Ok(self.ledger.releases.iter().map(|entry| of(entry).powi(2)).sum::<f64>().sqrt())
    }

    /// Refuses to add up η of different units.
    ///
    /// # Errors
    /// Where an earlier release was measured in another unit, or does not say in which.
    pub fn check_unit(&self, unit: &Unit) -> Result<()> {
        let alone = "a ledger in another folder does not add up with this one, so with it the total of both is yours \
                     to keep. Nothing was written";
        let changed = self.ledger.data_changes.last().map_or(0, |change| change.releases);
        for (i, entry) in self.ledger.releases.iter().enumerate() {
            let why = match &entry.unit {
                Some(before) if i < changed && before.convertible(unit) => continue,
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

    /// Publishes a release: `files` (names and contents) become a new folder, and the ledger its line, both or neither. The
    /// owner's copies (how their names end, and contents) are private.
    /// Returns the names of what was written, the owner's first.
    pub fn publish(
        &mut self,
        entry: Entry,
        files: &[(&str, &str)],
        owners: &[(&str, &str)],
    ) -> Result<Vec<PathBuf>> {
        let staged = self.stage(files)?;
        let name = self.intend(entry)?;
        let mut copies = vec![];
        let undo = |copies: &[PathBuf]| {
            for copy in copies {
                let _ = fs::remove_file(copy);
            }
        };
        for (ending, text) in owners {
            copies.push(self.folder.join(PRIVATE).join(format!("{name}.{ending}")));
            if let Err(e) = copies.last().map_or(Ok(()), |copy| crate::output::write_text(copy, text)) {
                undo(&copies);
                self.ledger.intention = None;
                self.write()?;
                return Err(e);
            }
        }
        let target = self.folder.join(&name);
        let fail = |e: std::io::Error| Failure::Message(format!("cannot write {}: {e}", target.display()));
        let staged = staged.keep();
        if let Err(e) = fs::rename(&staged, &target) {
            let _ = fs::remove_dir_all(&staged);
            undo(&copies);
            self.ledger.intention = None;
            self.write()?;
            return Err(fail(e));
        }
        // The name itself reaches the disk before the line that relies on it.
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        self.charge()?;
        copies.extend(files.iter().map(|(name, _)| target.join(name)));
        Ok(copies)
    }

    /// The files of a release under a temporary name.
    fn stage(&self, files: &[(&str, &str)]) -> Result<tempfile::TempDir> {
        let fail = |e: std::io::Error| {
            Failure::Message(format!("cannot write a release to {}: {e}", self.folder.display()))
        };
        let staged = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(&self.folder).map_err(fail)?;
        for (name, text) in files {
            let mut file = leakscope_table::temporary_file(staged.path()).map_err(fail)?;
            file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
            file.persist(staged.path().join(name)).map_err(|e| fail(e.error))?;
        }
        Ok(staged)
    }

    /// Writes down what is about to be released, under a name that no release has; returns the name.
    fn intend(&mut self, entry: Entry) -> Result<String> {
        let mut number = self.ledger.releases.len() + self.ledger.withdrawals.len() + 1;
        while self.folder.join(folder_name(number)).exists() {
            number += 1;
        }
        let name = folder_name(number);
        self.ledger.intention = Some(Entry { folder: Some(name.clone()), ..entry });
        self.write()?;
        Ok(name)
    }

    /// The intention becomes a line.
    fn charge(&mut self) -> Result<()> {
        self.ledger.releases.extend(self.ledger.intention.take());
        self.write()
    }

    /// Writes the ledger, sealed, whole or not at all.
    pub(super) fn write(&mut self) -> Result<()> {
        let path = self.folder.join(FILE);
        let fail =
            |e: std::io::Error| Failure::Message(format!("cannot write the ledger {}: {e}", path.display()));
        let key = match self.key.take() {
            Some(key) => key,
            None => Key::create(&self.key_file)?,
        };
        let unsealed = Ledger { seal: UNSEALED.into(), ..self.ledger.clone() };
        let seal = key.seal(leakscope_report::document(&unsealed).as_bytes());
        self.key = Some(key);
        let text = leakscope_report::document(&Ledger { seal, ..unsealed });
        let private = self.folder.join(PRIVATE);
        let mut file = leakscope_table::temporary_file(&private).map_err(fail)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
        file.persist(&path).map_err(|e| fail(e.error))?;
        File::open(&private).and_then(|folder| folder.sync_all()).map_err(fail)
    }
}

/// The folder that only the owner may look into, made where it is not there; a ledger that still lies in the open is
/// refused.
fn make_private(folder: &Path) -> Result<()> {
    let private = folder.join(PRIVATE);
    let fail = |e: std::io::Error| Failure::Message(format!("cannot make {}: {e}", private.display()));
    let former = fs::read_to_string(folder.join(FORMER_FILE)).unwrap_or_default();
    if former.contains("\"leakscope.ledger/") {
        return Err(Failure::option(
            "out",
            format!(
                "the ledger in {} is where releases are published: move ledger.json and ledger.key into {}",
                folder.display(),
                private.display()
            ),
        ));
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&private).map_err(fail)
}

pub(super) fn folder_name(number: usize) -> String {
    format!("release-{number}")
}

/// Names of the releases that lie in a folder, as folders or as documents.
fn released(folder: &Path) -> Vec<String> {
    let number = |name: &str| name.strip_prefix("release-")?.parse::<u64>().ok();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<(u64, String)> = entries
        .filter_map(|e| {
            let name = e.file_name().to_string_lossy().trim_end_matches(".json").to_owned();
            Some((number(&name)?, name))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, name)| name).collect()
}

/// Locks the file, waiting a little for another process that is at it; the system unlocks it when this one ends.
fn lock(path: &Path) -> Result<File> {
    let fail =
        |e: std::io::Error| Failure::Message(format!("cannot lock the ledger {}: {e}", path.display()));
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(fail)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Message(format!(
                    "another release holds the ledger ({}): wait for it to end",
                    path.display()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            folder: None,
            when: "2026-01-01T00:00:00Z".into(),
            target: "y".into(),
            family: "linear".into(),
            l2: 0.1,
            sigma: 1.0,
            eta_mean: 0.1,
            eta_max: 0.3,
            unit: None,
            told: None,
            weights: None,
        }
    }

    const FILES: [(&str, &str); 2] = [("model.json", "{}\n"), ("release.json", "{}\n")];

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != PRIVATE)
            .collect();
        names.sort();
        names
    }

    /// A process that dies leaves one of these states: whichever, there is no release or one that is charged.
    #[test]
    fn a_release_is_there_and_charged_or_neither() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let open = || Held::open(folder, "f", Keeping::default()).unwrap();
        // Staged alone.
        let held = open();
        let _ = held.stage(&FILES).unwrap().keep();
        drop(held);
        let held = open();
        assert!(held.ledger.releases.is_empty() && held.remarks.is_empty() && names(folder).is_empty());
        drop(held);
        // Staged and intended.
        let mut held = open();
        let _ = held.stage(&FILES).unwrap().keep();
        held.intend(entry()).unwrap();
        drop(held);
        let held = open();
        assert!(held.ledger.releases.is_empty() && names(folder).is_empty());
        assert!(held.remarks[0].contains("nothing is charged"), "{:?}", held.remarks);
        drop(held);
        // Intended and named.
        let mut held = open();
        let staged = held.stage(&FILES).unwrap().keep();
        let name = held.intend(entry()).unwrap();
        fs::rename(staged, folder.join(name)).unwrap();
        drop(held);
        let held = open();
        assert_eq!((held.ledger.releases.len(), names(folder)), (1, vec!["release-1".to_owned()]));
        assert!(held.remarks[0].contains("charged"), "{:?}", held.remarks);
        drop(held);
        // The next one has its own folder, and nothing is left to say.
        let mut held = open();
        assert!(held.remarks.is_empty());
        held.publish(entry(), &FILES, &[("json", "{}\n")]).unwrap();
        drop(held);
        assert_eq!((open().ledger.releases.len(), names(folder).len()), (2, 2));
    }

    #[test]
    fn any_changed_byte_of_a_ledger_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let mut held = Held::open(folder, "f", Keeping::default()).unwrap();
        held.budget(Some(1.0)).unwrap();
        held.publish(entry(), &FILES, &[("json", "{}\n")]).unwrap();
        drop(held);
        let path = folder.join(FILE);
        let whole = fs::read(&path).unwrap();
        for i in 0..whole.len() {
            for mask in [1 << (i % 8), 0xff] {
                let mut changed = whole.clone();
                changed[i] ^= mask;
                fs::write(&path, &changed).unwrap();
                assert!(Held::open(folder, "f", Keeping::default()).is_err(), "byte {i}");
            }
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(Held::open(folder, "f", Keeping::default()).unwrap().ledger.budget_eta, Some(1.0));
        // Without its key nobody can tell, and without the ledger nothing can be added up.
        let key = folder.join(PRIVATE).join(super::super::seal::KEY);
        fs::rename(&key, folder.join("kept")).unwrap();
        assert!(Held::open(folder, "f", Keeping::default()).is_err());
        fs::rename(folder.join("kept"), &key).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(Held::open(folder, "f", Keeping::default()).is_err());
    }

    #[test]
    fn a_budget_stays_and_data_change_by_decision_only() {
        let place = tempfile::tempdir().unwrap();
        let mut held = Held::open(place.path(), "f", Keeping::default()).unwrap();
        assert_eq!(held.budget(Some(1.0)).unwrap(), Some(1.0));
        held.publish(entry(), &FILES, &[("json", "{}\n")]).unwrap();
        drop(held);
        assert!(Held::open(place.path(), "g", Keeping::default()).is_err());
        let joined = Keeping { data_changed: Some("40 patients joined"), key: None };
        let mut held = Held::open(place.path(), "g", joined).unwrap();
        assert_eq!(held.budget(None).unwrap(), Some(1.0));
        assert!(held.budget(Some(2.0)).is_err() && held.budget(Some(0.5)).unwrap() == Some(0.5));
        held.publish(entry(), &FILES, &[("json", "{}\n")]).unwrap();
        drop(held);
        let held = Held::open(place.path(), "g", Keeping::default()).unwrap();
        assert_eq!((held.ledger.releases.len(), held.ledger.data_changes.len()), (2, 1));
        assert_eq!(held.ledger.data_changes[0].reason, "40 patients joined");
    }

    #[test]
    fn a_key_may_lie_elsewhere() {
        let (place, safe) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = safe.path().join("leakscope.key");
        let keeping = Keeping { key: Some(&file), ..Keeping::default() };
        let mut held = Held::open(place.path(), "f", keeping).unwrap();
        held.publish(entry(), &FILES, &[("json", "{}\n")]).unwrap();
        drop(held);
        assert!(file.exists() && !place.path().join(PRIVATE).join(super::super::seal::KEY).exists());
        assert_eq!(Held::open(place.path(), "f", keeping).unwrap().ledger.releases.len(), 1);
        let why = Held::open(place.path(), "f", Keeping::default()).unwrap_err().to_string();
        assert!(why.contains("ledger.key is missing"), "{why}");
    }
}
