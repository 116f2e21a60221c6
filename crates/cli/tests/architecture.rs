//! What may depend on what: the arrows of ARCHITECTURE.md, read from the manifests and from the sources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate of the workspace, its folder, and the crates of the workspace that it may use.
const ARROWS: [(&str, &str, &[&str]); 9] = [
    ("leakscope-core", "crates/core", &[]),
    ("leakscope-table", "crates/table", &["leakscope-core"]),
    ("leakscope-net", "crates/net", &["leakscope-core"]),
    ("leakscope-report", "crates/report", &["leakscope-core"]),
    (
        "leakscope",
        "crates/leakscope",
        &["leakscope-core", "leakscope-table", "leakscope-net", "leakscope-report"],
    ),
    (
        "leakscope-papers",
        "crates/papers",
        &["leakscope", "leakscope-core", "leakscope-table", "leakscope-net", "leakscope-report"],
    ),
    (
        "leakscope-cli",
        "crates/cli",
        &[
            "leakscope",
            "leakscope-papers",
            "leakscope-core",
            "leakscope-table",
            "leakscope-net",
            "leakscope-report",
        ],
    ),
    (
        "leakscope-py",
        "crates/py",
        &["leakscope", "leakscope-core", "leakscope-table", "leakscope-net", "leakscope-report"],
    ),
    ("leakscope-bench", "bench", &["leakscope-core", "leakscope-table", "leakscope-net"]),
];

/// Crates of a terminal, of papers and of the command line: no part of the wheel.
const NOT_IN_THE_WHEEL: [&str; 5] = ["clap", "indicatif", "ctrlc", "leakscope-cli", "leakscope-papers"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(words: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
        .args(words)
        .arg("--offline")
        .current_dir(root())
        .output()
        .expect("the workspace can be read");
    assert!(done.status.success(), "cargo {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("the workspace can be read")
}

fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    ARROWS.iter().map(|(name, _, uses)| (*name, uses.iter().copied().collect())).collect()
}

/// The Rust files of a crate that are built into it.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder)
            .expect("the workspace can be read")
            .map(|e| e.expect("the workspace can be read").path())
        {
            match entry.is_dir() {
                true => walk(&entry, files),
                false if entry.extension().is_some_and(|e| e == "rs") => files.push(entry),
                false => {}
            }
        }
    }
    let mut files = vec![];
    walk(&root().join(folder).join("src"), &mut files);
    assert!(!files.is_empty(), "{folder} has no sources");
    files
        .into_iter()
        .map(|f| (f.clone(), std::fs::read_to_string(f).expect("the workspace can be read")))
        .collect()
}

#[test]
fn manifests_have_no_forbidden_arrow() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let allowed = allowed();
    let names: BTreeSet<&str> = packages.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, allowed.keys().copied().collect(), "a new crate needs its line here");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            // What only tests use is no arrow.
            if names.contains(to) && dependency["kind"] != "dev" {
                assert!(allowed[name].contains(to), "{name} must not depend on {to}");
            }
        }
    }
}

#[test]
fn sources_use_no_forbidden_crate() {
    let allowed = allowed();
    for (name, folder, _) in ARROWS {
        for (path, text) in sources(folder) {
            for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
                for (other, _, _) in ARROWS {
                    let spelled = format!("{}::", other.replace('-', "_"));
                    let used = line.match_indices(&spelled).any(|(at, _)| {
                        let before = line[..at].chars().next_back();
                        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
                    });
                    assert!(
                        !used || other == name || allowed[name].contains(other),
                        "{}: {name} must not use {other}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn the_wheel_links_no_command_line() {
    let tree = cargo(&["tree", "-p", "leakscope-py", "-e", "normal,build", "--prefix", "none"]);
    let linked: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(linked.contains("leakscope") && linked.contains("pyo3"), "{tree}");
    for name in NOT_IN_THE_WHEEL {
        assert!(!linked.contains(name), "leakscope-py links {name}");
    }
    let words = cargo(&["tree", "-p", "leakscope", "-e", "normal,build", "--prefix", "none"]);
    let linked: BTreeSet<&str> = words.lines().filter_map(|line| line.split(' ').next()).collect();
    for name in NOT_IN_THE_WHEEL {
        assert!(!linked.contains(name), "leakscope links {name}");
    }
}

#[test]
fn only_the_command_line_parses_words() {
    for folder in
        ["crates/core", "crates/table", "crates/net", "crates/report", "crates/leakscope", "crates/py"]
    {
        for (path, text) in sources(folder) {
            for line in text.lines().filter(|line| line.contains("clap::")) {
                assert!(
                    line.trim_start().starts_with("#[cfg_attr(feature = \"clap\""),
                    "{}: choices are options of a command line behind a feature alone: {line}",
                    path.display()
                );
            }
        }
    }
}
