//! Running the programme as a user does, in a folder of its own.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "helpers; every binary uses its own part")]

pub mod schemas;

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A page without its scripts and what they read: what somebody sees who has not touched it.
pub fn without_scripts(page: &str) -> String {
    let mut parts = page.split("<script");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once("</script>").map_or("", |p| p.1))
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The run, which must have ended with this exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stderr: {}\nstdout: {}", self.stderr, self.stdout);
        self
    }

    /// The run of a release that was written, whatever the colour of its page (a red one exits with 1).
    #[track_caller]
    pub fn expect_released(self) -> Self {
        let red = self.code == 1 && self.stderr.contains("this release is red");
        assert!(self.code == 0 || red, "{}, stderr: {}\nstdout: {}", self.code, self.stderr, self.stdout);
        self
    }

    /// Standard output as JSON, which is what its schema says.
    #[track_caller]
    pub fn json(&self) -> Value {
        schemas::checked(
            serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout)),
        )
    }
}

/// A temporary folder to run in.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A document of this folder, which is what its schema says.
    #[track_caller]
    pub fn json(&self, name: &str) -> Value {
        schemas::checked(serde_json::from_str(&self.read(name)).unwrap())
    }

    /// Every file below a folder with its bytes; empty where there is none.
    pub fn files(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(self.path(name)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let bytes = if path.is_dir() { vec![] } else { std::fs::read(&path).unwrap() };
            files.insert(path, bytes);
        }
        files
    }

    /// The programme, not yet started, with this folder as its working directory.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leakscope"));
        command.args(arguments).current_dir(&self.0).env_remove("RUST_BACKTRACE").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `leakscope` with words separated by blanks.
    #[track_caller]
    pub fn run(&self, line: &str) -> Run {
        self.run_words(line.split_whitespace())
    }

    #[track_caller]
    pub fn run_words<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Run {
        let output = self.command(words).output().unwrap();
        let run = Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        run
    }

    /// Rows of a CSV file of this folder, by column name.
    pub fn csv(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        reader.deserialize().map(|row| row.unwrap()).collect()
    }
}

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first rows of the patients that ship with the project, with three columns more: `high` (yes where the dose
/// is above 30), `count` (the dose, rounded) and `w` (weights ½, 1, 1½, 2 in turn).
pub fn patients(rows: usize) -> Vec<Vec<String>> {
    let path = root().join("examples/patients.csv");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    let mut table: Vec<Vec<String>> = vec![];
    for (i, record) in reader.records().take(rows + 1).enumerate() {
        let mut cells: Vec<String> = record.unwrap().iter().map(String::from).collect();
        if i == 0 {
            cells.extend(["high", "count", "w"].map(String::from));
        } else {
            let dose: f64 = cells.last().unwrap().parse().unwrap();
            cells.push(if dose > 30.0 { "yes" } else { "no" }.into());
            cells.push(dose.round_ties_even().to_string());
            cells.push((0.5 + ((i - 1) % 4) as f64 / 2.0).to_string());
        }
        table.push(cells);
    }
    table
}

/// A table as text.
pub fn text(table: &[Vec<String>], delimiter: &str) -> String {
    table.iter().map(|row| row.join(delimiter) + "\n").collect()
}

/// A number at a JSON pointer.
#[track_caller]
pub fn number(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {pointer}"))
}

/// Fails unless `actual` is `expected` to a relative tolerance.
#[track_caller]
pub fn assert_close(actual: f64, expected: f64, tolerance: f64, subject: &str) {
    let error = (actual - expected).abs() / expected.abs().max(1e-300);
    assert!(error <= tolerance, "{subject}: {actual}, expected {expected} (relative error {error:.1e})");
}

/// An attribute of an audit by name.
#[track_caller]
pub fn attribute<'a>(audit: &'a Value, name: &str) -> &'a Value {
    let all = audit["attributes"].as_array().unwrap();
    all.iter().find(|a| a["name"] == name).unwrap_or_else(|| panic!("no attribute {name}"))
}

/// An audit without what differs between two runs of the same.
pub fn timeless(mut audit: Value) -> Value {
    let object = audit.as_object_mut().unwrap();
    object.remove("created").unwrap();
    object.remove("timings").unwrap();
    audit
}
