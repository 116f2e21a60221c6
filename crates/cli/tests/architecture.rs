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

/// Crates whose top-level modules use one another one way only.
const ACYCLIC: [&str; 7] = [
    "crates/core",
    "crates/table",
    "crates/net",
    "crates/report",
    "crates/leakscope",
    "crates/papers",
    "crates/cli",
];

/// Outside the order, as the front page is: the list of what is compiled once for each precision names every module, and each
/// reaches it through `Real`.
const LISTS: [(&str, &str); 1] = [("crates/net", "compiled")];

/// Arrows between modules that no cycle would show: a crate, a module, and what it must not use.
const FORBIDDEN: [(&str, &str, &[&str]); 8] = [
    ("crates/core", "claim", &["glm", "fisher", "dp", "bound", "attack"]),
    ("crates/core", "dp", &["glm", "fisher", "attack", "balance", "measure"]),
    ("crates/core", "pass", &["glm", "fisher", "measure"]),
    ("crates/report", "document", &["verdict", "words", "render"]),
    ("crates/report", "figure", &["document", "verdict", "words", "render"]),
    ("crates/report", "verdict", &["render"]),
    ("crates/leakscope", "request", &["model", "audit", "balance", "attack", "bound", "release", "net"]),
    ("crates/leakscope", "model", &["audit", "balance", "attack", "bound", "release", "net"]),
];

const TESTS: &str = "#[cfg(test)]\nmod ";

/// What a file holds beside comments and its unit tests.
fn code(text: &str) -> String {
    let is_inline =
        |at: usize| text[at + TESTS.len()..].lines().next().is_some_and(|line| line.contains('{'));
    let end = text.match_indices(TESTS).map(|(at, _)| at).find(|at| is_inline(*at)).unwrap_or(text.len());
    let built = &text[..end];
    built.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The first names of what stands after `crate::`: one of a path, several of a list in braces.
fn first_names(rest: &str) -> Vec<&str> {
    let name =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').len();
    let Some(list) = rest.strip_prefix('{') else {
        let name = &rest[..name(rest)];
        // A function of the crate's front page may be called as a module is.
        return if rest[name.len()..].starts_with('(') { vec![] } else { vec![name] };
    };
    let (mut names, mut depth, mut at_start) = (vec![], 0, true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && !c.is_whitespace() => {
                names.push(&list[at..at + name(&list[at..])]);
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

/// The paths after each `prefix` in a file, where it begins a path.
fn paths<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let begins = |at: usize| {
        !code[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
    };
    code.match_indices(prefix)
        .filter(|(at, _)| begins(*at))
        .map(|(at, _)| &code[at + prefix.len()..])
        .collect()
}

/// Which top-level module each item of the front page comes from: `pub use failure::{Failure, Result};`.
fn front_page(lib: &str) -> BTreeMap<&str, &str> {
    let mut from = BTreeMap::new();
    for rest in paths(lib, "pub use ") {
        let path = rest.split(';').next().unwrap_or_default();
        let Some((module, _)) = path.split_once("::") else { continue };
        for name in path.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            from.insert(name, module);
        }
    }
    from
}

/// Which top-level modules of a crate use which others.
fn module_arrows(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = root().join(folder).join("src");
    let files: Vec<(String, usize, String)> = sources(folder)
        .into_iter()
        .filter(|(path, _)| path.file_name().is_some_and(|name| name != "tests.rs"))
        .map(|(path, text)| {
            let inside = path.strip_prefix(&source).expect("a source").with_extension("");
            let parts: Vec<String> = inside
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .filter(|p| p != "mod")
                .collect();
            (parts[0].clone(), parts.len(), code(&text))
        })
        .collect();
    let is_list = |module: &str| LISTS.contains(&(folder, module));
    let modules: BTreeSet<String> =
        files.iter().map(|f| f.0.clone()).filter(|m| m != "lib" && m != "main" && !is_list(m)).collect();
    let lib = files.iter().find(|f| f.0 == "lib").map_or("", |f| f.2.as_str());
    let from = front_page(lib);
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, depth, text) in files.iter().filter(|f| modules.contains(&f.0)) {
        let up = "super::".repeat(*depth);
        for rest in paths(text, "crate::").into_iter().chain(paths(text, &up)) {
            for name in first_names(rest) {
                let to = if modules.contains(name) { Some(name) } else { from.get(name).copied() };
                if let Some(to) = to.filter(|to| to != module && modules.contains(*to)) {
                    arrows.entry(module.clone()).or_default().insert(to.into());
                }
            }
        }
    }
    assert!(!arrows.is_empty(), "{folder}: no module uses another");
    arrows
}

/// A way from a module back to itself, if there is one.
fn cycle(arrows: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        arrows: &'a BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> bool {
        let Some(&here) = path.last() else { return false };
        for next in arrows.get(here).into_iter().flatten() {
            if let Some(at) = path.iter().position(|m| m == next) {
                path.drain(..at);
                path.push(next);
                return true;
            }
            if !done.contains(next.as_str()) {
                path.push(next);
                if walk(arrows, path, done) {
                    return true;
                }
                path.pop();
            }
        }
        done.insert(here);
        false
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|module| {
        let mut path = vec![module.as_str()];
        walk(arrows, &mut path, &mut done).then(|| path.into_iter().map(String::from).collect())
    })
}

#[test]
fn modules_use_one_another_one_way_only() {
    for folder in ACYCLIC {
        let arrows = module_arrows(folder);
        assert_eq!(cycle(&arrows), None, "{folder}: modules that use one another in a circle");
        for (_, module, others) in FORBIDDEN.iter().filter(|f| f.0 == folder) {
            let uses = arrows.get(*module).cloned().unwrap_or_default();
            for other in *others {
                assert!(!uses.contains(*other), "{folder}: `{module}` must not use `{other}`");
            }
        }
    }
}

/// The orders of ARCHITECTURE.md: `figure ← document, words` as its steps from left to right, the modules of each.
fn orders(text: &str) -> Vec<Vec<Vec<&str>>> {
    let chains = text.split('`').skip(1).step_by(2).filter(|chain| chain.contains('←'));
    chains
        .map(|chain| chain.split('←').map(|step| step.split(',').map(str::trim).collect()).collect())
        .collect()
}

#[test]
fn modules_stand_in_the_order_that_architecture_gives() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    for krate in ["core", "net", "report", "leakscope"] {
        let (_, rest) = text.split_once(&format!("Inside {krate}")).expect("every crate has an order");
        let orders = orders(
            rest.split("\n\n").next().unwrap_or_default().split(". Inside").next().unwrap_or_default(),
        );
        assert!(!orders.is_empty(), "{krate}: no order");
        let arrows = module_arrows(&format!("crates/{krate}"));
        for order in &orders {
            let place = |module: &str| order.iter().position(|step| step.contains(&module));
            for module in order.iter().flatten() {
                let uses = arrows.get(*module);
                assert!(
                    uses.is_some() || arrows.values().any(|all| all.contains(*module)),
                    "{krate}: `{module}` of ARCHITECTURE.md is no module"
                );
                for used in uses.into_iter().flatten() {
                    assert!(
                        place(used).is_none_or(|at| Some(at) <= place(module)),
                        "{krate}: `{module}` uses `{used}`, which stands right of it in ARCHITECTURE.md"
                    );
                }
            }
        }
    }
}

#[test]
fn the_reader_of_modules_sees_every_kind_of_use() {
    assert_eq!(first_names("audit::{self, Request};"), ["audit"]);
    assert_eq!(first_names("{Failure, bound::{a, b}, model};"), ["Failure", "bound", "model"]);
    assert_eq!(first_names("{\n    a::B,\n    c,\n};"), ["a", "c"]);
    assert_eq!(first_names("document(&value)"), Vec::<&str>::new());
    let text = code(
        "// use crate::a;\nuse crate::b::C;\nfn f() { crate::d::g() }\n#[cfg(test)]\nmod tests { use crate::e; }\n",
    );
    let seen: Vec<_> = paths(&text, "crate::").into_iter().flat_map(first_names).collect();
    assert_eq!(seen, ["b", "d"]);
    assert!(code("#[cfg(test)]\nmod conformance;\npub use data::Data;\n").contains("Data"));
    assert_eq!(front_page("pub use failure::{Failure, Result};")["Result"], "failure");
    let arrows = |list: &[(&str, &str)]| {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (a, b) in list {
            arrows.entry((*a).into()).or_default().insert((*b).into());
        }
        arrows
    };
    assert_eq!(cycle(&arrows(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let round =
        cycle(&arrows(&[("z", "audit"), ("audit", "bound"), ("bound", "attack"), ("attack", "audit")]));
    assert_eq!(round.unwrap(), ["attack", "audit", "bound", "attack"]);
    // Seen in this workspace, so that a reader that finds nothing does not pass.
    assert!(module_arrows("crates/leakscope")["audit"].contains("bound"));
    assert!(module_arrows("crates/leakscope")["audit"].contains("failure"));
}

/// Features of the README, where a newcomer would look first, and a name that must be defined there.
const FIRST_GUESSES: [(&str, &str, &str); 15] = [
    ("η of every record", "crates/core/src/fisher/eta.rs", "Eta"),
    ("linear, logistic and Poisson models", "crates/core/src/glm/fit.rs", "fit"),
    ("what noise costs, in accuracy or error", "crates/core/src/glm/utility.rs", "Utility"),
    ("two values of an attribute told apart", "crates/core/src/tell/mod.rs", "two_values"),
    ("records reweighted until all leak the same", "crates/core/src/balance.rs", "balance"),
    ("exact discrete Gaussian noise", "crates/core/src/release.rs", "Grid"),
    ("ε by each accountant", "crates/core/src/dp/account.rs", "account"),
    ("what any attacker can guess", "crates/core/src/bound/table.rs", "bounds"),
    ("CSV files", "crates/table/src/csv_file.rs", "CsvFile"),
    ("`leakscope schema` drafts a schema", "crates/table/src/draft.rs", "draft"),
    ("the ledger of releases", "crates/leakscope/src/release/ledger.rs", "Ledger"),
    ("the colour of a page", "crates/report/src/verdict/mod.rs", "decide"),
    ("idx files of MNIST", "crates/net/src/io/idx.rs", "Idx"),
    ("records of a network: dFIL", "crates/net/src/leak/mod.rs", "measure"),
    ("scikit-learn models", "crates/py/python/leakscope/_sklearn.py", "translated"),
];

#[test]
fn a_newcomers_first_guess_is_right() {
    for (feature, file, name) in FIRST_GUESSES {
        let text =
            std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{feature}: {file}: {e}"));
        let defines = ["fn ", "struct ", "enum ", "trait ", "def ", "class "].iter().any(|keyword| {
            let spelled = format!("{keyword}{name}");
            text.match_indices(&spelled).any(|(at, _)| {
                let after = text[at + spelled.len()..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        });
        assert!(defines, "{feature}: {file} does not define `{name}`");
    }
}
