//! Ctrl-C: exit code 130, no half-written file, earlier results as they were.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const AUDIT: [&str; 10] =
    ["audit", "long.csv", "--target", "dose", "--id", "patient", "--out", "out", "--threads", "1"];

/// A folder with earlier results in `out` and a table that takes seconds to audit.
fn prepared() -> Folder {
    let folder = Folder::new();
    folder.write("short.csv", folder.run("demo --table --rows 200 --seed 1").expect(0).stdout);
    folder.run("audit short.csv --target dose --id patient --out out -q").expect(0);
    folder.write("long.csv", folder.run("demo --table --rows 300000 --seed 2").expect(0).stdout);
    folder
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits for the end, which must come soon after a signal.
fn end(mut child: Child) -> (Option<i32>, String) {
    let clock = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(clock.elapsed() < Duration::from_secs(20), "it does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut message = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut message).unwrap();
    }
    (child.wait().unwrap().code(), message)
}

/// Whether a file under a temporary name is there.
fn writing(folder: &Folder) -> bool {
    folder.files("out").keys().any(|p| p.extension().is_some_and(|e| e == "part"))
}

#[test]
fn an_interrupted_audit_leaves_what_was_there() {
    let folder = prepared();
    let before = folder.files("out");
    for signal in ["-INT", "-TERM"] {
        // While records are written.
        let child = folder.command(AUDIT).arg("--quiet").spawn().unwrap();
        let clock = Instant::now();
        while !writing(&folder) {
            assert!(clock.elapsed() < Duration::from_secs(60), "no record was written");
            std::thread::sleep(Duration::from_millis(1));
        }
        send(signal, &child);
        let (code, message) = end(child);
        assert_eq!(code, Some(130), "{message}");
        assert_eq!(message, "error: stopped; nothing was written\n");
        assert!(before == folder.files("out"), "{signal}: earlier results changed");
    }
    // As soon as the columns are known, before anything is fitted.
    let mut child = folder.command(AUDIT).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("columns: "), "{line}");
    send("-INT", &child);
    assert_eq!(end(child).0, Some(130));
    assert!(before == folder.files("out"));
}

#[test]
fn a_second_ctrl_c_leaves_no_temporary_file_either() {
    let folder = prepared();
    let before = folder.files("out");
    let child = folder.command(AUDIT).arg("--quiet").spawn().unwrap();
    let clock = Instant::now();
    while !writing(&folder) {
        assert!(clock.elapsed() < Duration::from_secs(60), "no record was written");
        std::thread::sleep(Duration::from_millis(1));
    }
    send("-INT", &child);
    send("-INT", &child);
    assert_eq!(end(child).0, Some(130));
    assert!(before == folder.files("out"));
}

#[test]
fn nobody_reading_what_is_said_stops_nothing() {
    let folder = Folder::new();
    folder.write("short.csv", folder.run("demo --table --rows 200 --seed 1").expect(0).stdout);
    let mut child =
        folder.command("audit short.csv --target dose --id patient --out out".split(' ')).spawn().unwrap();
    // As `leakscope … 2>&1 | head` does.
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(folder.path("out/audit.json").is_file());
}
