//! What ARCHITECTURE.md, CONTRIBUTING.md and README.md name is there: files, folders, and names of the code.

use std::path::{Path, PathBuf};

/// What a programme writes, or a build: not among the files of the repository.
const WRITTEN: [&str; 4] = ["private/", "release-N/", "target/", "crates/py/python/leakscope/_native"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).expect("the workspace can be read");
    all.map(|e| e.expect("the workspace can be read").path()).collect()
}

/// What stands between back ticks outside of blocks of code, without spaces.
fn quoted(text: &str) -> Vec<String> {
    let prose: Vec<&str> = text.split("```").step_by(2).collect();
    let words = prose.iter().flat_map(|part| part.split('`').skip(1).step_by(2));
    words.filter(|word| !word.contains([' ', '=', '⟨', '\n'])).map(str::to_owned).collect()
}

/// `render/{html,terminal}` as two paths.
fn paths(word: &str) -> Vec<String> {
    match word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (inside, after))) => {
            inside.split(',').map(|one| format!("{before}{one}{after}")).collect()
        }
        None => vec![word.to_owned()],
    }
}

/// Whether a path is there: from the root, or as people name it who are in a crate already.
fn is_there(path: &str, bases: &[PathBuf]) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    bases.iter().any(|base| match file.split_once('*') {
        // `*.cu`, `make_*.py`
        Some((begin, end)) => {
            base.join(folder).is_dir().then(|| entries(&base.join(folder))).is_some_and(|all| {
                let names = all.iter().filter_map(|p| p.file_name()?.to_str());
                names.filter(|name| name.starts_with(begin) && name.ends_with(end)).count() > 0
            })
        }
        None => base.join(path).exists() || base.join(format!("{path}.rs")).exists(),
    })
}

/// All Rust sources of the crates as one text.
fn sources(folder: &Path, text: &mut String) {
    for path in entries(folder) {
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&std::fs::read_to_string(path).expect("the workspace can be read"));
        }
    }
}

fn defines(sources: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait", "mod", "type", "const", "static"].iter().any(|keyword| {
        let spelled = format!("{keyword} {name}");
        sources.match_indices(&spelled).any(|(at, _)| {
            let after = sources[at + spelled.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    })
}

#[test]
fn what_the_documents_name_is_there() {
    let root = root();
    let crates: Vec<PathBuf> = entries(&root.join("crates")).into_iter().filter(|p| p.is_dir()).collect();
    let inside: Vec<PathBuf> = crates.iter().map(|p| p.join("src")).filter(|p| p.is_dir()).collect();
    let modules = inside.iter().flat_map(|p| entries(p)).filter(|p| p.is_dir());
    let mut bases: Vec<PathBuf> = vec![root.clone(), root.join("crates")];
    bases.extend(modules);
    bases.extend(crates.iter().chain(&inside).cloned());
    let mut code = String::new();
    crates.iter().for_each(|p| sources(p, &mut code));
    let (mut files, mut names) = (0, 0);
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = std::fs::read_to_string(root.join(document)).expect("the document");
        for word in quoted(&text) {
            if WRITTEN.iter().any(|w| word.starts_with(w)) {
                continue;
            }
            if word.contains('/') {
                files += 1;
                let missing: Vec<String> =
                    paths(&word).into_iter().filter(|p| !is_there(p, &bases)).collect();
                assert!(missing.is_empty(), "{document} names {missing:?}, which is nowhere");
            } else if let Some((_, name)) = word.rsplit_once("::") {
                names += 1;
                assert!(defines(&code, name), "{document} names `{word}`, and nothing defines `{name}`");
            }
        }
    }
    // A reader that sees nothing does not pass.
    assert!(files > 40 && names > 15, "{files} files and {names} names");
}

#[test]
fn what_is_not_there_is_seen() {
    let bases = [root()];
    assert!(is_there("crates/core", &bases) && is_there("testdata/make_*.py", &bases));
    assert!(!is_there("crates/nowhere", &bases) && !is_there("testdata/made_*.py", &bases));
    assert_eq!(paths("render/{html,terminal}"), ["render/html", "render/terminal"]);
    assert_eq!(quoted("a `b/c` ```\n`no`\n``` `d::E` `f g`"), ["b/c", "d::E"]);
    assert!(defines("pub fn decide(x: u8)", "decide") && !defines("pub fn decided()", "decide"));
}
