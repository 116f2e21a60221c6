//! Schemas, bounds and levels, messy files and standard input, as a user meets them.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use common::*;
use std::io::Write;
use std::process::Stdio;

/// Sixty people whose outcome is no function of the rest.
fn people() -> String {
    let mut text = String::from("person,age,sex,seen,y\n");
    for i in 0..60 {
        let (age, month) = (18 + i * 7 % 60, 1 + i % 12);
        text += &format!("p{i},{age},{},2020-{month:02}-03,{}\n", ["f", "m"][i * 5 % 7 % 2], (i * i) % 23);
    }
    text
}

#[test]
fn a_draft_is_edited_and_used() {
    let folder = Folder::new();
    folder.write("people.csv", people());
    let run = folder.run("schema people.csv --out schema.json").expect(0);
    assert!(run.stderr.contains("a draft"), "{}", run.stderr);
    folder.run("schema people.csv --out schema.json").expect(2); // nothing is overwritten
    let drafted = folder.json("schema.json");
    assert_eq!(drafted["draft"], true);
    assert_eq!(drafted["columns"][0]["kind"], "id");
    let line = "audit people.csv --target y --schema schema.json --scale bounds --json";
    let audit = folder.run(line).expect(0).json();
    assert_eq!(audit["data"]["scale"].as_str().or(audit["model"]["scale"].as_str()), Some("bounds"));
    folder.write("wrong.json", folder.read("schema.json").replace("\"m\"", "\"x\""));
    let error = folder.run("audit people.csv --target y --schema wrong.json").expect(2).stderr;
    assert!(error.contains("`sex`") && error.contains("listed levels"), "{error}");
}

/// A column without a value is no number and no category: the draft leaves it out, and can be used once it is edited.
#[test]
fn a_draft_leaves_out_what_has_no_value() {
    let folder = Folder::new();
    let mut text = String::from("age,empty,y\n");
    (0..40).for_each(|i| text += &format!("{},,{}\n", 20 + i * 7 % 50, i % 9));
    folder.write("t.csv", text);
    folder.run("schema t.csv --out schema.json").expect(0);
    assert_eq!(folder.json("schema.json")["columns"][1]["kind"], "ignored");
    folder.run("audit t.csv --target y --l2 0.1 --schema schema.json").expect(0);
}

#[test]
fn bounds_levels_and_bad_ones() {
    let folder = Folder::new();
    folder.write("people.csv", people());
    folder.write("levels.json", r#"{"sex": ["f", "m"]}"#);
    let base = "audit people.csv --target y --id person --json";
    folder.run(&format!("{base} --levels levels.json --bounds age=0..100")).expect(0);
    let outside = folder.run(&format!("{base} --bounds age=20..30")).expect(2).stderr;
    assert!(outside.contains("`age`") && outside.contains("--clip-to-bounds"), "{outside}");
    let clipped = folder.run(&format!("{base} --bounds age=20..30 --clip-to-bounds")).expect(0).json();
    assert!(
        clipped["warnings"].to_string().contains("moved to the nearest bound"),
        "{}",
        clipped["warnings"]
    );
    for (more, word) in [
        ("--bounds age=30..20", "--bounds"),
        ("--bounds age", "--bounds"),
        ("--clip-to-bounds", "--clip-to-bounds"),
        ("--levels people.csv", "--levels"),
        ("--schema people.csv", "--schema"),
        ("--decimal ;", "--decimal"),
    ] {
        let error = folder.run(&format!("{base} {more}")).expect(2).stderr;
        assert!(error.contains(word), "{more}: {error}");
    }
}

#[test]
fn standard_input_is_a_file() {
    let folder = Folder::new();
    folder.write("people.csv", people());
    let line = "--target y --id person --json --sigma 0.5";
    let file = folder.run(&format!("audit people.csv {line}")).expect(0).json();
    let mut child =
        folder.command(format!("audit - {line}").split(' ')).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(people().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let piped: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(piped["records"], file["records"]);
    assert_eq!(piped["data"]["files"][0], "standard input");
}

#[test]
fn what_was_guessed_is_said_first() {
    let folder = Folder::new();
    folder.write("people.csv", people());
    let audit = folder.run("audit people.csv --target y --json").expect(0).json();
    // What was done and asks for nothing is no warning.
    assert_eq!(audit["warnings"].as_array().unwrap().len(), 0, "{}", audit["warnings"]);
    let notes: Vec<&str> = audit["notes"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
    assert!(notes.iter().any(|w| w.contains("`person` looks like an identifier")), "{notes:?}");
    assert!(notes.iter().any(|w| w.contains("`seen` holds dates")), "{notes:?}");
    folder.write("book.xlsx", b"PK\x03\x04");
    let error = folder.run("audit book.xlsx --target y").expect(2).stderr;
    assert!(error.contains("Excel") && error.contains("CSV"), "{error}");
}
