//! `--open`: the page in the reader's browser, when the command is done.

use clap::ArgMatches;
use leakscope::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Tenths of a second in which a program that cannot open pages has said so.
const PATIENCE_TENTHS: u32 = 10;

/// Where the page will be.
pub(super) struct Page {
    folder: PathBuf,
    before: SystemTime,
}

impl Page {
    /// In the folder of `--out`.
    pub(super) fn of(matches: &ArgMatches) -> Result<Self> {
        let mut deepest = matches;
        while let Some((_, sub)) = deepest.subcommand() {
            deepest = sub;
        }
        match deepest.try_get_one::<PathBuf>("out") {
            Ok(Some(folder)) => Ok(Self { folder: folder.clone(), before: SystemTime::now() }),
            Ok(None) => Err(Failure::option("open", "there is no page without a folder: name one by ⟨out⟩")),
            Err(_) => Err(Failure::option("open", "this command leaves no page")),
        }
    }

    /// The page that the command has written: of the folder, of a release in it, or the one that lists several folders.
    fn page(&self) -> Option<PathBuf> {
        let inner = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|e| e.path());
        let pages = std::iter::once(self.folder.clone()).chain(inner).map(|f| f.join("report.html"));
        let fresh = |page: &PathBuf| {
            let time = std::fs::metadata(page).and_then(|m| m.modified()).ok()?;
            // Clocks of files are coarse.
            (time + std::time::Duration::from_secs(2) >= self.before).then_some(time)
        };
        let mut pages: Vec<(SystemTime, PathBuf)> =
            pages.filter_map(|page| Some((fresh(&page)?, page))).collect();
        pages.sort();
        let list = self.folder.join("index.html");
        let own = self.folder.join("report.html").exists();
        if pages.len() > 1 && !own && fresh(&list).is_some() {
            return Some(list);
        }
        pages.pop().map(|(_, page)| page)
    }

    /// Opens it; where there is no browser the page is still there.
    pub(super) fn open(&self) -> Result<()> {
        let Some(page) = self.page() else { return Ok(()) };
        if !start(&page) {
            crate::note!("{} could not be opened from here: open it in a browser", page.display());
        }
        Ok(())
    }
}

/// `BROWSER` where it is set, else what the system opens files with.
fn start(page: &Path) -> bool {
    let browser = std::env::var("BROWSER").ok();
    let opener = match &browser {
        Some(browser) => browser.as_str(),
        None if cfg!(target_os = "macos") => "open",
        None if cfg!(target_os = "windows") => "explorer",
        None => "xdg-open",
    };
    let mut command = Command::new(opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut browser) = command.spawn() else { return false };
    // What fails does so at once; a browser that stays open must not hold the command up.
    for _ in 0..PATIENCE_TENTHS {
        match browser.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(100)),
            Err(_) => return false,
        }
    }
    true
}
