//! A release that was made and never left the house: its owner says so, on record, and it does not count any more.
//!
//! The line stays in the ledger among the withdrawals, with the reason, under its seal. The folder of the release goes to
//! `private/`, where nothing is published from, before the line moves: a process that dies in between leaves a release that
//! still counts.

use super::ledger::{Entry, Held, PRIVATE, Withdrawal, folder_name};
use crate::{Failure, Result};
use leakscope_report::format;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// What a withdrawal leaves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Withdrawn {
    /// The folder that was published from.
    pub name: String,
    /// Where its files are now, in the folder of the releases.
    pub kept_in: String,
    /// Releases that still count.
    pub releases: usize,
    /// Largest η of those together, at most.
    pub eta_max: f64,
    /// What it may be at most.
    pub budget_eta: Option<f64>,
    /// What was put right on opening the ledger.
    pub remarks: Vec<String>,
}

/// Withdraws release `number` of a folder (`release-1` is number 1), for a reason in the owner's words.
///
/// # Errors
/// Where there is no such release, where the reason is empty, and as [`Held::of_folder`].
pub fn withdraw(folder: &Path, number: usize, reason: &str, key: Option<&Path>) -> Result<Withdrawn> {
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Failure::option(
            "reason",
            "it goes on record: say how you know that the files were never passed on",
        ));
    }
    let mut held = Held::of_folder(folder, key)?;
    let name = folder_name(number);
    let named = |entry: &Entry| entry.folder.as_deref() == Some(name.as_str());
    let Some(place) = held.ledger.releases.iter().position(named) else {
        let gone = held.ledger.withdrawals.iter().any(|w| named(&w.release));
        let known: Vec<&str> = held.ledger.releases.iter().filter_map(|e| e.folder.as_deref()).collect();
        let why = match (gone, known.as_slice()) {
            (true, _) => "it was withdrawn before".to_owned(),
            (false, []) => "there is none".to_owned(),
            (false, known) => format!("there are {}", known.join(", ")),
        };
        let message = format!("N = {number}: the ledger in {} has no {name}: {why}", folder.display());
        return Err(Failure::Message(message));
    };
    let kept_in = format!("{PRIVATE}/withdrawn-{number}");
    let (from, to) = (folder.join(&name), folder.join(&kept_in));
    // What an earlier attempt moved is there already.
    if from.is_dir() {
        fs::rename(&from, &to).map_err(|e| {
            Failure::Message(format!(
                "cannot move {} to {}: {e}. Nothing was withdrawn",
                from.display(),
                to.display()
            ))
        })?;
    }
    let release = held.ledger.releases.remove(place);
    // Data changes say how many releases there were before them.
    held.ledger.data_changes.iter_mut().filter(|c| place < c.releases).for_each(|c| c.releases -= 1);
    held.ledger.withdrawals.push(Withdrawal { when: crate::clock::now(), reason: reason.into(), release });
    held.write()?;
    Ok(Withdrawn {
        name,
        kept_in,
        releases: held.ledger.releases.len(),
        eta_max: held.ledger.eta_max(),
        budget_eta: held.ledger.budget_eta,
        remarks: std::mem::take(&mut held.remarks),
    })
}

impl Withdrawn {
    /// A few lines for the owner.
    pub fn summary(&self) -> String {
        let budget =
            self.budget_eta.map(|b| format!(" of a budget of {}", format::setting(b))).unwrap_or_default();
        let counted = match self.releases {
            0 => "no release of these data counts any more".to_owned(),
            n => format!(
                "{} of these data still {}: largest η of all together at most {}{budget}",
                format::counted(n as u64, "release"),
                if n == 1 { "counts" } else { "count" },
                format::at_most(self.eta_max)
            ),
        };
        format!(
            "Withdrew {}: it is on record that its files were never passed on, and {counted}.\nIts files are in {} now: if one of \
             them leaves the house after all, every number of later releases is wrong.\n",
            self.name, self.kept_in
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{FILE, Keeping};
    use super::*;

    fn entry(eta_max: f64) -> Entry {
        Entry { when: "2026-01-01T00:00:00Z".into(), eta_max, ..Entry::default() }
    }

    fn publish(folder: &Path, eta: f64) {
        let mut held = Held::open(folder, "f", Keeping::default()).unwrap();
        held.publish(entry(eta), &[("model.json", "{}\n")], &[("json", "{}\n")]).unwrap();
    }

    #[test]
    fn what_is_withdrawn_stays_on_record_and_counts_no_more() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for eta in [0.3, 0.4, 1.2] {
            publish(folder, eta);
        }
        let done = withdraw(folder, 2, "never sent", None).unwrap();
        assert_eq!((done.name.as_str(), done.releases), ("release-2", 2));
        assert!((done.eta_max - 0.3_f64.hypot(1.2)).abs() < 1e-12);
        assert!(!folder.join("release-2").exists() && folder.join("private/withdrawn-2/model.json").exists());
        let ledger = Held::of_folder(folder, None).unwrap().ledger;
        assert_eq!(ledger.withdrawals[0].reason, "never sent");
        assert_eq!(ledger.withdrawals[0].release.eta_max, 0.4);
        // Its number is not given again, and it is not withdrawn twice.
        publish(folder, 0.1);
        assert!(folder.join("release-4").exists() && !folder.join("release-2").exists());
        let again = withdraw(folder, 2, "never sent", None).unwrap_err().to_string();
        assert!(again.contains("withdrawn before"), "{again}");
        let none = withdraw(folder, 9, "never sent", None).unwrap_err().to_string();
        assert!(none.contains("release-1, release-3, release-4"), "{none}");
        assert!(withdraw(folder, 1, "  ", None).is_err());
        assert!(withdraw(&folder.join("elsewhere"), 1, "never sent", None).is_err());
        // Nobody withdraws by editing the file.
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        std::fs::write(folder.join(FILE), text.replace("never sent", "never seen")).unwrap();
        assert!(withdraw(folder, 1, "never sent", None).is_err());
    }

    #[test]
    fn releases_before_a_change_of_the_data_are_still_known() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        publish(folder, 0.3);
        publish(folder, 0.4);
        let joined = Keeping { data_changed: Some("40 patients joined"), key: None };
        let mut held = Held::open(folder, "g", joined).unwrap();
        held.publish(entry(0.1), &[("model.json", "{}\n")], &[("json", "{}\n")]).unwrap();
        drop(held);
        withdraw(folder, 1, "never sent", None).unwrap();
        let ledger = Held::of_folder(folder, None).unwrap().ledger;
        assert_eq!((ledger.data_changes[0].releases, ledger.releases.len()), (1, 2));
        withdraw(folder, 3, "never sent", None).unwrap();
        assert_eq!(Held::of_folder(folder, None).unwrap().ledger.data_changes[0].releases, 1);
    }
}
