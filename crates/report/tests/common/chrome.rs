//! A real browser without a network. Where none is installed tests say so and pass; with `CI=true` they fail.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

pub(crate) fn browser() -> Option<&'static str> {
    let works = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let present = BROWSERS.into_iter().find(|name| works(name));
    if present.is_none() {
        let ci = std::env::var("CI").is_ok_and(|v| v == "true");
        assert!(!ci, "no browser for the test of the page: install chromium");
        // Past the harness, which keeps what passing tests print to itself.
        let tried = BROWSERS.join(", ");
        let text = format!("SKIPPED: no browser is installed (tried {tried}); the page was not opened\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    present
}

/// Opens a page without a network and gives its document once scripts have run.
pub(crate) fn open(browser: &str, profile: &Path, page: &Path) -> Output {
    Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

/// What the browser complained about, if anything.
pub(crate) fn complaint(opened: &Output) -> Option<String> {
    let log = String::from_utf8_lossy(&opened.stderr);
    let bad = ["CONSOLE", "Uncaught", "net::ERR"].iter().any(|c| log.contains(c));
    (bad || !opened.status.success()).then(|| log.into_owned())
}
