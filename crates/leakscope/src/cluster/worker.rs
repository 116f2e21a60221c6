//! A worker: takes parts of a plan, and merges when there are none, until the result is there.
//!
//! A part that a worker takes is claimed by a file, so that others take other parts. A claim is a courtesy, not a lock: where
//! one grows old (its worker was killed) somebody else computes the part too, and both come to the same bytes.

use super::board::Board;
use super::plan::{FILE, Plan, Progress};
use super::shared::DONE;
use crate::{Failure, Result};
use leakscope_table::Hooks;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How a worker works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Working {
    /// A claim that is older than this is nobody's.
    pub patience: Duration,
    /// How long to wait before looking again.
    pub pause: Duration,
}

impl Default for Working {
    fn default() -> Self {
        Self { patience: Duration::from_secs(60), pause: Duration::from_millis(200) }
    }
}

/// Runs parts until the result is there; `on_part` is told of every part before it is run. A plan is merged too; what somebody asks
/// and waits for ([`super::Shared`]) is merged by whoever asks.
///
/// # Errors
/// Those of a part, which name it, and those of the audit.
pub fn worker(
    path: &Path,
    working: Working,
    hooks: &Hooks,
    on_part: &dyn Fn(&str, usize),
) -> Result<Option<Progress>> {
    let began = Instant::now();
    // Workers may be started before whoever asks.
    while !path.join(FILE).exists() && began.elapsed() < working.patience && !hooks.interrupted() {
        sleep(working.pause);
    }
    let (board, plan) = (Board::new(path), Plan::of_worker(path)?);
    loop {
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        let done = match &plan {
            Some(plan) => plan.result().join("audit.json").exists(),
            None => path.join(DONE).exists(),
        };
        if done {
            return Ok(None);
        }
        let Some(pass) = board.passes().pop() else {
            if plan.is_some() {
                return Err(Failure::Message(format!("{} has no pass: plan again", path.display())));
            }
            sleep(working.pause);
            continue;
        };
        let missing = board.missing(&pass)?;
        let Some(plan) = plan.as_ref().filter(|_| missing.is_empty()) else {
            if missing.is_empty() || take_parts(&board, &pass, &missing, working, hooks, on_part)? == 0 {
                sleep(working.pause);
            }
            continue;
        };
        let Some(claim) = Claim::take(&board.pass(&pass).join("merge"), working.patience) else {
            sleep(working.pause);
            continue;
        };
        let progress = plan.merge(hooks);
        drop(claim);
        match progress? {
            Progress::Due(_) => {}
            done @ Progress::Done(..) => return Ok(Some(done)),
        }
    }
}

/// Computes those of the missing parts that nobody else has taken, and says how many.
pub(super) fn take_parts(
    board: &Board,
    pass: &str,
    missing: &[usize],
    working: Working,
    hooks: &Hooks,
    on_part: &dyn Fn(&str, usize),
) -> Result<usize> {
    let mut taken = 0;
    for &part in missing {
        let file = board.part(pass, part);
        let Some(_claim) = Claim::take(&file, working.patience) else { continue };
        if !file.exists() {
            on_part(pass, part);
            board.run(pass, part, hooks)?;
        }
        taken += 1;
    }
    Ok(taken)
}

/// A file that says that somebody is at it; it goes when they are done.
struct Claim(PathBuf);

impl Claim {
    fn take(file: &Path, patience: Duration) -> Option<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".claim");
        let path = PathBuf::from(name);
        let old = fs::metadata(&path)
            .and_then(|m| m.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > patience));
        if old {
            let _ = fs::remove_file(&path);
        }
        OpenOptions::new().write(true).create_new(true).open(&path).ok().map(|_| Self(path))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
