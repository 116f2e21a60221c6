//! `leakscope reproduce` and `leakscope data`, as a user runs them.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn leakscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leakscope")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names() -> Vec<String> {
    let out = leakscope(&["reproduce", "--list", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let list: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    list.as_array().expect("a list").iter().map(|e| e["name"].as_str().expect("a name").to_owned()).collect()
}

fn paper(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a name");
    let out = leakscope(&["reproduce", name, "--synthetic", "--trials", "3", "--out", path, "--quiet"]);
    assert!(out.status.success(), "{name}: {}", text(&out.stderr));
    for experiment in names().iter().filter(|n| n.starts_with(&format!("{name}-"))) {
        check(experiment, &folder.path().join(experiment));
    }
}

/// Text without the pictures in it, whose base 64 may spell anything.
fn without_pictures(text: &str) -> String {
    let mut parts = text.split(";base64,");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('"').map_or("", |p| p.1))
}

/// The page, the numbers, and for every panel a drawing and its numbers.
fn check(name: &str, folder: &Path) {
    let read = |file: &str| {
        std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{name}: {file}: {e}"))
    };
    let json: Value = serde_json::from_str(&read("reproduce.json")).expect("JSON");
    assert_eq!(json["name"], name);
    let rows = json["rows"].as_array().expect("rows");
    assert!(!rows.is_empty(), "{name} has no numbers");
    for row in rows {
        assert!(row["name"].is_string() && row["ours"].is_f64(), "{name}: {row}");
        assert!(row["paper"].is_f64() || row["paper"].is_null(), "{name}: {row}");
    }
    assert!(
        !json["claims"].as_array().expect("claims").is_empty(),
        "{name}: nothing the paper says is checked"
    );
    let page = read("report.html");
    assert!(page.contains("</html>") && !without_pictures(&page).contains("NaN"), "{name}");
    for figure in json["figures"].as_array().expect("figures") {
        let stem = figure["file"].as_str().expect("a name");
        let first = [stem.to_owned(), format!("{stem}a")];
        let stem = first.iter().find(|s| folder.join(format!("{s}.svg")).exists()).expect("a drawing");
        let svg = read(&format!("{stem}.svg"));
        assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"), "{stem}");
        assert!(!without_pictures(&svg).contains("NaN"), "{stem}");
        assert!(read(&format!("{stem}.csv")).lines().count() > 1, "{stem}");
        assert!(page.contains(&format!("{stem}.svg")), "{stem} is not on the page");
    }
}

#[test]
fn hannun_runs_on_made_up_data() {
    paper("hannun");
}

#[test]
fn am207_runs_on_made_up_data() {
    paper("am207");
}

#[test]
fn guo_runs_on_made_up_data() {
    paper("guo");
}

#[test]
fn mueller_runs_on_made_up_data() {
    paper("mueller");
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let rows = |seed: &str| {
        let out = leakscope(&["reproduce", "am207-toy", "--synthetic", "--json", "--seed", seed]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let json: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        json["rows"].clone()
    };
    assert_eq!(rows("5"), rows("5"));
    assert_ne!(rows("5"), rows("6"));
}

#[test]
fn what_is_missing_is_named_with_where_it_is_published() {
    let empty = tempfile::tempdir().expect("a folder");
    let path = empty.path().to_str().expect("a name");
    for (name, file, advice) in [
        ("hannun-table1", "data_batch_1.bin", "leakscope data get cifar10"),
        ("hannun-fig4", "train-images-idx3-ubyte", "leakscope data get mnist"),
        ("hannun-fig6", "iwpc-scaled.csv", "Yeom"),
        ("hannun-fig7", "iwpc-scaled.csv", "--synthetic"),
    ] {
        let out = leakscope(&["reproduce", name, "--data", path]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(file) && said.contains(advice) && said.contains(path), "{said}");
    }
    // Files that are not what they say.
    let mnist = empty.path().join("mnist");
    std::fs::create_dir(&mnist).expect("a folder");
    std::fs::write(
        mnist.join("train-images-idx3-ubyte"),
        [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7],
    )
    .expect("written");
    std::fs::write(mnist.join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 1, 7]).expect("written");
    let out = leakscope(&["reproduce", "hannun-fig4", "--data", path]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("1 images") && said.contains("60000"), "{said}");
    let adult = empty.path().join("adult");
    std::fs::create_dir(&adult).expect("a folder");
    std::fs::write(adult.join("adult.data"), "39, State-gov\n").expect("written");
    std::fs::create_dir(empty.path().join("iwpc")).expect("a folder");
    std::fs::write(empty.path().join("iwpc/iwpc-scaled.csv"), "race,age\n").expect("written");
    let out = leakscope(&["reproduce", "hannun-fig7", "--data", path]);
    assert!(text(&out.stderr).contains("expected the columns race,age,height"), "{}", text(&out.stderr));
}

#[test]
fn bad_names_and_flags_are_errors() {
    for (args, part) in [
        (&["reproduce", "hannun-fig99", "--synthetic"][..], "hannun-fig7"),
        (&["reproduce", "am207-toy"][..], "--data"),
        (&["reproduce", "am207-toy", "--data", "/nowhere/at/all"][..], "is no folder"),
        (&["reproduce", "am207-toy", "--synthetic", "--trials", "0"][..], "--trials"),
        (&["data", "get", "imagenet"][..], "mnist"),
        (&["data", "get", "iwpc"][..], "Yeom"),
    ] {
        let out = leakscope(args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
    let out = leakscope(&["data", "list"]);
    assert!(text(&out.stdout).contains("cifar10") && out.status.success());
}
