//! Input that has no answer: exit code 2, a message that names column, row or flag and says what to do, and earlier
//! results as they were, byte for byte.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, Run};
use std::fmt::Write;

/// A hash to [0, 1).
fn noise(i: usize) -> f64 {
    let mut h = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (h >> 11) as f64 / (1_u64 << 53) as f64
}

/// Sixty rows of `id,a,b,c,y,k`: two numbers, a category, a number to predict, a class. `change` edits a row's cells.
fn rows(change: impl Fn(usize, &mut Vec<String>)) -> String {
    let mut text = String::from("id,a,b,c,y,k\n");
    for i in 0..60 {
        let [a, b, y] = [0, 1, 2].map(|j| (1000.0 * noise(10 * i + j)).round() / 100.0 - 5.0);
        let c = if noise(10 * i + 3) < 0.5 { "u" } else { "v" };
        let k = if noise(10 * i + 4) < 0.5 { "no" } else { "yes" };
        let mut cells =
            vec![format!("r{i}"), a.to_string(), b.to_string(), c.into(), y.to_string(), k.into()];
        change(i, &mut cells);
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

/// Sets column `j` of row `i`, or of every row.
fn cell(row: Option<usize>, j: usize, value: &str) -> String {
    rows(|i, cells| {
        if row.is_none_or(|r| r == i) {
            cells[j] = value.into();
        }
    })
}

/// A folder with the results of an earlier audit in `out`.
fn with_earlier_results() -> Folder {
    let folder = Folder::new();
    folder.write("ok.csv", rows(|_, _| {}));
    folder.run("audit ok.csv --target y --id id --score ok.csv --out out -q").expect(0);
    assert_eq!(folder.files("out").len(), 4);
    folder
}

/// Runs the audit of `file` with `more`, which must fail without a trace but its message.
#[track_caller]
fn refused(folder: &Folder, file: &str, more: &str, parts: &[&str]) -> Run {
    let before = folder.files("out");
    let run = folder.run(&format!("audit {file} --id id --out out {more}")).expect(2);
    for part in parts {
        assert!(run.stderr.contains(part), "{file} {more}: no “{part}” in: {}", run.stderr);
    }
    assert_eq!(run.stdout, "", "{file} {more}");
    // The message is the last line, and a line.
    let message = run.stderr.lines().find(|l| l.starts_with("error: ")).unwrap_or_default();
    assert!(message.len() > 20, "{file} {more}: {}", run.stderr);
    assert!(before == folder.files("out"), "{file} {more}: earlier results changed");
    run
}

/// One table after the other: file, its text, the arguments, what the message says.
#[test]
fn tables_without_an_answer() {
    let collinear = rows(|_, cells| {
        cells[2] = (2.0 * cells[1].parse::<f64>().unwrap() - 1.0).to_string();
    });
    let separable = rows(|_, cells| {
        cells[5] = if cells[1].starts_with('-') { "no" } else { "yes" }.into();
    });
    let nearly_separable = rows(|i, cells| {
        // Level v occurs with one class only: some coefficients have no finite best value.
        cells[3] = if i % 4 == 0 { "v" } else { "u" }.into();
        if i % 4 == 0 {
            cells[5] = "yes".into();
        }
    });
    let few: String = rows(|_, _| {}).lines().take(4).map(|l| format!("{l}\n")).collect();
    let gaps = rows(|i, cells| {
        if i % 20 == 0 {
            cells[1] = "".into();
        }
        if i == 7 {
            cells[3] = "NA".into();
        }
    });
    let late = format!("{}bad,oops,1,u,1,no\n", rows(|_, _| {}) + &many(12_000));
    let header_twice = rows(|_, _| {}).replacen("id,a,b", "id,a,a", 1);
    let cases: &[(&str, String, &str, &[&str])] = &[
        ("empty", String::new(), "--target y", &["empty.csv is empty", "header line"]),
        ("blank", "\n\n\n".into(), "--target y", &["blank.csv is empty"]),
        ("header", "id,a,b,c,y,k\n".into(), "--target y", &["header.csv has column names but no rows"]),
        (
            "unknown",
            rows(|_, _| {}),
            "--target yy",
            &["--target: there is no column `yy`", "closest names are `y`"],
        ),
        ("unknown", rows(|_, _| {}), "--target y --drop q", &["--drop: there is no column `q`"]),
        ("unknown", rows(|_, _| {}), "--target y --group z", &["--group: there is no column `z`"]),
        ("unknown", rows(|_, _| {}), "--target y --weights q", &["--weights: there is no column `q`"]),
        ("constant", cell(None, 2, "7"), "--target y", &["column `b` is constant", "--drop", "--l2"]),
        (
            "word",
            cell(Some(50), 1, "abc"),
            "--target y",
            &["data row 51", "column `a` holds numbers, but here `abc`", "--na", "--categorical a"],
        ),
        ("late", late, "--target y", &["data row 12061", "column `a` holds numbers, but here `oops`"]),
        ("inf", cell(Some(5), 1, "inf"), "--target y", &["data row 6", "column `a` is infinite"]),
        ("minus_inf", cell(Some(5), 1, "-Infinity"), "--target y", &["data row 6", "column `a` is infinite"]),
        ("overflow", cell(Some(5), 1, "1e999"), "--target y", &["data row 6", "column `a` is infinite"]),
        ("inf_target", cell(Some(5), 4, "inf"), "--target y", &["data row 6", "column `y` is infinite"]),
        (
            "huge",
            cell(Some(5), 1, "1e200"),
            "--target y",
            &["column `a`", "squares overflow", "larger units"],
        ),
        ("huge_target", cell(Some(5), 4, "1e200"), "--target y", &["column `y`", "squares overflow"]),
        (
            "one_class",
            cell(None, 5, "yes"),
            "--target k --model logistic",
            &["target `k` has one class only, `yes`", "choose another --target"],
        ),
        ("one_class", cell(None, 5, "yes"), "--target k", &["target `k` has one class only"]),
        (
            "three",
            cell(Some(3), 5, "maybe"),
            "--target k --model logistic",
            &["target `k` has the classes `maybe`, `no`, `yes`", "expected two"],
        ),
        (
            "three",
            cell(Some(3), 5, "maybe"),
            "--target k",
            &["target `k` is text", "choose another --target"],
        ),
        (
            "separable",
            separable,
            "--target k --model logistic",
            &["the classes of `k` can be told apart exactly", "--l2 1e-3"],
        ),
        ("nearly", nearly_separable, "--target k --model logistic", &["did not converge", "--l2 1e-3"]),
        (
            "collinear",
            collinear,
            "--target y",
            &["column `b` is a linear combination of `a`", "--drop", "--l2 1e-3"],
        ),
        (
            "full",
            rows(|_, _| {}),
            "--target y --one-hot full --drop k",
            &["columns `c=u`, `c=v` add up to a constant", "--one-hot drop-last"],
        ),
        ("few", few, "--target y", &["3 rows for 5 coefficients", "--l2 1e-3", "--drop", "--pca"]),
        (
            "gaps",
            gaps.clone(),
            "--target y",
            &["missing values: `a` 3, `c` 1", "--missing drop", "--missing mean"],
        ),
        (
            "gaps",
            gaps,
            "--target a --missing mean",
            &["column `a` (target) has 3 missing values", "--missing drop"],
        ),
        (
            "all_gone",
            cell(None, 1, ""),
            "--target y --missing mean",
            &["column `a` has no value", "--drop a"],
        ),
        (
            "all_gone",
            cell(None, 1, ""),
            "--target y --missing drop",
            &["all 60 rows have a missing value", "--missing mean"],
        ),
        (
            "ragged",
            rows(|_, _| {}) + "r99,1,2\n",
            "--target y",
            &["data row 61", "3 fields, but the header has 6"],
        ),
        ("same_name", header_twice, "--target y", &["column `a` occurs twice in the header"]),
        (
            "negative",
            cell(Some(4), 2, "-1"),
            "--target y --weights b",
            &["data row", "weights must be zero or more"],
        ),
        ("weightless", cell(None, 2, "0"), "--target y --weights b", &["all weights in column `b` are zero"]),
        ("weights", rows(|_, _| {}), "--target y --weights c", &["--weights: column `c` holds text"]),
        (
            "counts",
            rows(|_, _| {}),
            "--target y --model poisson",
            &["target `y` is", "counts must be zero or more"],
        ),
        (
            "amounts",
            rows(|_, _| {}),
            "--target y --model tweedie",
            &["data row", "target `y` is", "must be zero or more"],
        ),
        (
            "positive",
            rows(|i, cells| cells[4] = if i == 7 { "0".into() } else { "2.5".into() }),
            "--target y --model gamma",
            &["data row 8", "target `y` is 0", "above zero", "--model tweedie"],
        ),
        (
            "power",
            rows(|_, _| {}),
            "--target y --model tweedie --power 3",
            &["--power", "3: expected a number from 1 to 2"],
        ),
        (
            "powerless",
            rows(|_, _| {}),
            "--target y --power 1.5",
            &["--power", "a tweedie model, which alone has one"],
        ),
        (
            "threshold",
            rows(|_, _| {}),
            "--target y --model huber --huber-threshold 0",
            &["--huber-threshold", "0: expected a positive number"],
        ),
        (
            "classes_of_hinge",
            rows(|_, _| {}),
            "--target c --model huber",
            &["target `c` is text", "--model logistic"],
        ),
        ("id_only", "id,y\na,1\nb,2\nc,5\n".into(), "--target y", &["no feature columns are left"]),
        (
            "roles",
            rows(|_, _| {}),
            "--target y --weights y",
            &["`y` is given both as --target and as --weights"],
        ),
        ("levels", identifiers(), "--target y", &["no feature columns are left", "--categorical"]),
        (
            "clash",
            rows(|_, _| {}).replacen("id,a", "id,id_", 1).replacen("c,y", "eta,y", 1),
            "--target y --group eta",
            &["two columns `eta`", "rename"],
        ),
    ];
    let folder = with_earlier_results();
    for (name, text, more, parts) in cases {
        let file = format!("{name}.csv");
        folder.write(&file, text);
        refused(&folder, &file, more, parts);
    }
}

fn many(rows: usize) -> String {
    (0..rows).map(|i| format!("s{i},{},{},u,{},no\n", noise(i), noise(i + 1), noise(i + 2))).collect()
}

fn identifiers() -> String {
    let mut text = String::from("id,a,y\n");
    for i in 0..10_500 {
        writeln!(text, "r{i},name{i},{}", noise(i)).unwrap();
    }
    text
}

#[test]
fn files_that_cannot_be_read() {
    let folder = with_earlier_results();
    let bytes: Vec<u8> = (0..3000).map(|i| (256.0 * noise(i)) as u8).collect();
    folder.write("soup.csv", &bytes);
    folder.write(
        "latin.csv",
        rows(|_, _| {}).replace(",u,", ",\u{fc},").chars().map(|c| c as u8).collect::<Vec<_>>(),
    );
    folder.write("cut.csv.gz", &gzip(&rows(|_, _| {}))[..300]);
    std::fs::create_dir(folder.path("folder")).unwrap();
    folder.write("columns.csv", "id,a,b,c,z,k\nr1,1,2,u,1,no\n");
    refused(&folder, "absent.csv", "--target y", &["cannot read absent.csv"]);
    refused(&folder, "folder", "--target y", &["folder is a folder", "name the files in it"]);
    refused(&folder, "soup.csv", "--target y", &["neither CSV nor JSON lines in UTF-8", "nor Parquet"]);
    refused(&folder, "latin.csv", "--target y", &["data row", "column `c` is not UTF-8"]);
    refused(&folder, "cut.csv.gz", "--target y", &["cannot read cut.csv.gz"]);
    refused(&folder, "ok.csv columns.csv", "--target y", &["columns.csv: column `z` is not in ok.csv"]);
}

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn damaged_parquet_files() {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use std::sync::Arc;
    let folder = with_earlier_results();
    let numbers =
        |k: usize| -> ArrayRef { Arc::new((0..500).map(|i| noise(3 * i + k)).collect::<Float64Array>()) };
    let ids: ArrayRef = Arc::new((0..500).map(|i| Some(format!("r{i}"))).collect::<StringArray>());
    let batch =
        RecordBatch::try_from_iter([("id", ids), ("a", numbers(0)), ("b", numbers(1)), ("y", numbers(2))])
            .unwrap();
    let mut whole = vec![];
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut whole, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    folder.write("whole.parquet", &whole);
    folder.run("audit whole.parquet --target y --id id -q").expect(0);
    for cut in [4, 8, 100, whole.len() / 2, whole.len() - 20, whole.len() - 1] {
        folder.write("cut.parquet", &whole[..cut]);
        refused(
            &folder,
            "cut.parquet",
            "--target y",
            &["cut.parquet cannot be read as Parquet", "write it again"],
        );
    }
    // Bytes that are wrong must never be a panic: an error, or values that happen to be read.
    for seed in 0..60 {
        let mut damaged = whole.clone();
        for k in 0..4 {
            let at = (noise(1000 * seed + 2 * k) * whole.len() as f64) as usize;
            damaged[at] ^= 1 + (noise(1000 * seed + 2 * k + 1) * 255.0) as u8;
        }
        folder.write("damaged.parquet", &damaged);
        let run = folder.run("audit damaged.parquet --target y --id id --threads 1");
        assert!([0, 2].contains(&run.code), "{seed}: {}", run.stderr);
        assert!(!run.stderr.contains("Leakscope itself failed"), "{seed}: {}", run.stderr);
    }
}

#[test]
fn folders_that_cannot_be_written() {
    let folder = with_earlier_results();
    folder.write("file", "mine");
    let out =
        |out: &str| folder.run(&format!("audit ok.csv --target y --id id --out {out}")).expect(2).stderr;
    assert!(out("file").contains("--out: file is a file: name a folder"), "{}", out("file"));
    assert!(out("file/below").contains("--out: cannot write to file/below"), "{}", out("file/below"));
    assert_eq!(folder.read("file"), "mine");
    // A folder stands where the page should: nothing is replaced, not even what could be.
    let before = folder.files("out");
    std::fs::remove_file(folder.path("out/report.html")).unwrap();
    std::fs::create_dir(folder.path("out/report.html")).unwrap();
    let message = out("out");
    assert!(message.contains("report.html is a folder"), "{message}");
    let after = folder.files("out");
    assert!(before.iter().filter(|(p, _)| !p.ends_with("report.html")).all(|(p, bytes)| after[p] == *bytes));
    assert_eq!(after.len(), before.len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir(folder.path("locked")).unwrap();
        let lock =
            |mode| std::fs::set_permissions(folder.path("locked"), PermissionsExt::from_mode(mode)).unwrap();
        lock(0o500);
        // The superuser may write anywhere.
        if std::fs::write(folder.path("locked/probe"), "").is_err() {
            assert!(out("locked").contains("choose a folder that you may write to"), "{}", out("locked"));
        }
        lock(0o700);
    }
}

#[test]
fn points_and_test_rows_that_do_not_fit() {
    let folder = with_earlier_results();
    folder.write("level.csv", cell(Some(2), 3, "w"));
    folder.write("word.csv", cell(Some(2), 1, "many"));
    folder.write("less.csv", "id,a,c,y,k\nr1,1,u,1,no\n");
    folder.write("empty.csv", "");
    folder.write("header.csv", "id,a,b,c,y,k\n");
    folder.write("gap.csv", cell(Some(2), 1, ""));
    for flag in ["--score", "--test"] {
        let refused = |file: &str, parts: &[&str]| {
            refused(&folder, "ok.csv", &format!("--target y {flag} {file}"), parts);
        };
        refused(
            "level.csv",
            &["level.csv, data row 3", "column `c` is `w`, which the training rows do not have"],
        );
        refused("word.csv", &["word.csv, data row 3", "column `a` holds numbers, but here `many`"]);
        refused("less.csv", &["less.csv: column `b` is missing"]);
        refused("empty.csv", &["empty.csv is empty"]);
        refused("header.csv", &["header.csv has column names but no rows"]);
        refused("gap.csv", &["gap.csv, data row 3", "column `a` has no value"]);
        refused("absent.csv", &["cannot read absent.csv"]);
    }
    folder.write("no_target.csv", "id,a,b,c,k\nr1,1,2,u,no\n");
    refused(&folder, "ok.csv", "--target y --test no_target.csv", &["no_target.csv: column `y` is missing"]);
}

#[test]
fn flags_that_make_no_sense() {
    let folder = with_earlier_results();
    folder.write("names.json", r#"{"a": 1, "zz": 2}"#);
    folder.write("list.json", "[1, 2]");
    folder.write("words.json", "a = 1");
    folder.write("part.json", r#"{"a": 1}"#);
    folder.write("text.json", r#"{"a": "x"}"#);
    folder.write("huge.json", r#"{"a":1e200,"b":1e200,"c=u":0,"k=no":0,"(intercept)":0}"#);
    folder.write("twice.json", r#"{"coefficients": {"a": 1, "b": 2, "a": 3}}"#);
    folder.write(
        "beside.json",
        r#"{"coefficients": {"a": 1, "b": 2, "c=u": 0, "k=no": 0}, "intercept": 23.4}"#,
    );
    folder.write("none.json", r#"{"coefficients": {"a": 1, "b": 2, "c=u": 0, "k=no": 0}, "intercept": 0}"#);
    for (more, part) in [
        ("--sigma 1 --statistic mean", "--statistic"),
        ("--target-sd a=1 --statistic mean", "--statistic"),
        ("--coefficients twice.json", "twice.json: `a` is there twice: keep one of them"),
        (
            "--coefficients beside.json --no-intercept",
            "the given model has an intercept, which --no-intercept",
        ),
        ("--sigma 0", "--sigma: 0: a model released without noise"),
        ("--sigma -1", "--sigma: -1: expected a positive number"),
        ("--sigma nan", "--sigma: NaN: expected a positive number"),
        ("--sigma 1e-320", "choose a larger --sigma"),
        ("--target-eta 0", "--target-eta: 0: expected a positive number"),
        ("--target-sd a", "--target-sd: `a`: expected NAME=VALUE"),
        ("--target-sd a=-2", "--target-sd: -2: expected a positive number"),
        (
            "--target-sd zz=1",
            "--target-sd: `zz` is not an attribute of this model; they are `a`, `b`, `c`, `k`",
        ),
        (
            "--label public --target-sd y=1",
            "--target-sd: `y` is the target, which --label public takes as known",
        ),
        ("--prior-sd c=1", "--prior-sd: `c` is a category"),
        ("--prior-sd a=0", "--prior-sd: a=0: expected a positive number"),
        ("--unit zz=cm", "--unit: `zz` is not an attribute"),
        ("--fail-above p50=1", "--fail-above: `p50`: expected max, p99 or mean"),
        ("--fail-above eta=x", "--fail-above: `eta=x`: expected NAME=VALUE with a finite number"),
        ("--releases 0", "--releases: 0: expected at least 1"),
        ("--holdout 1.5", "--holdout 1.5: expected a share between 0 and 1"),
        ("--holdout 0.999999 --seed 1", "--holdout 0.999999 leaves no rows to train on"),
        ("--holdout 0.2 --test ok.csv", "--test names rows to test on already"),
        ("--pca 0", "--pca 0: expected between 1 and 4"),
        ("--pca 9", "--pca 9: expected between 1 and 4"),
        ("--l2 -1", "--l2: -1: expected zero or a positive number"),
        ("--threads 0", "--threads: 0: expected at least 1"),
        ("--delimiter ab", "--delimiter: `ab`: expected one ASCII character"),
        ("--positive yes", "--positive yes: target `y` is not coded as two classes"),
        (
            "--coefficients names.json",
            "--coefficients: `zz` is no column of this model; its columns are `a`, `b`",
        ),
        ("--coefficients list.json", "list.json: expected an object of column names and values"),
        ("--coefficients words.json", "words.json: not JSON"),
        ("--coefficients part.json", "no value for `b`, `c=u`, `k=no`, `(intercept)`"),
        ("--coefficients text.json", "text.json: `a` is \"x\": expected a finite number"),
        ("--coefficients absent.json", "absent.json: cannot read it"),
        ("--coefficients huge.json", "the loss at the given coefficients"),
    ] {
        refused(&folder, "ok.csv", &format!("--target y {more}"), &[part]);
    }
    refused(
        &folder,
        "ok.csv",
        "--target k --positive maybe --model logistic",
        &["has the classes `no` and `yes`"],
    );
    // What clap refuses has the same exit code.
    for line in
        ["net", "audit", "audit ok.csv", "audit ok.csv --target y --nonsense", "audit --target y", "nonsense"]
    {
        let run = folder.run(line).expect(2);
        assert!(run.stderr.contains("Usage: leakscope"), "{line}: {}", run.stderr);
    }
    // An intercept beside the coefficients is one of them; one of zero is none.
    folder.run("audit ok.csv --target y --id id --coefficients beside.json").expect(0);
    folder.run("audit ok.csv --target y --id id --coefficients none.json --no-intercept").expect(0);
    folder.run("--version").expect(0);
    folder.run("audit --help").expect(0);
}

/// Not errors: answers that are documented.
#[test]
fn unusual_tables_that_do_have_an_answer() {
    let folder = Folder::new();
    folder.write("few.csv", rows(|_, _| {}).lines().take(4).map(|l| format!("{l}\n")).collect::<String>());
    folder.write("constant.csv", cell(None, 2, "7"));
    folder.write("flat.csv", cell(None, 4, "3.5"));
    let audit = |line: &str| folder.run(&format!("audit {line} --id id --json")).expect(0).json();
    let warned = |audit: &serde_json::Value, text: &str| {
        let all = audit["warnings"].to_string();
        assert!(all.contains(text), "{all}");
    };
    // Fewer rows than columns, and a constant column, have one minimiser with a penalty.
    assert_eq!(audit("few.csv --target y --l2 0.1")["n"], 3);
    warned(&audit("constant.csv --target y --l2 0.1"), "Constant in the training rows: `b`");
    warned(&audit("flat.csv --target y"), "`y` is constant in the training rows");
    // One text among numbers is a category where the user says so.
    folder.write("word.csv", cell(Some(5), 1, "abc"));
    assert_eq!(audit("word.csv --target y --na abc --missing drop")["n"], 59);
    assert!(audit("word.csv --target y --categorical a --l2 1")["d"].as_u64().is_some_and(|d| d > 50));
}

#[test]
fn what_a_command_reads_it_neither_overwrites_nor_removes() {
    let folder = Folder::new();
    let table = rows(|_, _| {});
    for name in ["out", "private"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    for name in ["records.csv", "weights.csv", "private/ledger.json", "mine.csv"] {
        folder.write(name, &table);
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("records.csv", folder.path("linked.csv")).unwrap();
    let before = folder.files(".");
    let lines = [
        ("audit records.csv --out . --format csv", "records.csv"),
        ("audit linked.csv --out out/.. --format csv", "records.csv"),
        ("audit mine.csv --score records.csv --out . --format csv", "records.csv"),
        ("audit mine.csv --test records.csv --out . --format csv", "records.csv"),
        ("balance weights.csv --out . --format csv", "weights.csv"),
        ("release private/ledger.json --sigma 1 --out .", "ledger.json"),
    ];
    for (line, name) in lines {
        let run = folder.run(&format!("{line} --target y --id id")).expect(2);
        let message = &run.stderr;
        assert!(message.contains(name) && message.contains("choose another folder"), "{line}: {message}");
        assert_eq!(folder.files("."), before, "{line}");
    }
    // What nobody reads but nobody of us wrote stays, too: only what an earlier document lists goes.
    folder.write("scores.csv", "the user's own");
    folder.run("audit mine.csv --target y --id id --out .").expect(0);
    assert_eq!(folder.read("scores.csv"), "the user's own");
    assert_eq!(folder.read("records.csv"), table);
    assert_eq!(folder.json("audit.json")["tables"], serde_json::json!(["records.parquet"]));
    // A table that an earlier audit left, and that would go now, is read: refused as well.
    folder.run("audit mine.csv --target y --id id --out out --format csv").expect(0);
    let kept = folder.files("out");
    let run = folder.run("audit out/records.csv --target eta --id id --out out").expect(2);
    assert!(run.stderr.contains("records.csv is read by this command"), "{}", run.stderr);
    assert_eq!(folder.files("out"), kept);
}

/// A path that leads nowhere is told with the option that named it, before any work.
#[test]
fn a_path_that_leads_nowhere_is_named_with_its_option() {
    let folder = Folder::new();
    folder.write("t.csv", "x,z,y\n1,a,2\n2,b,3.9\n3,a,6.2\n4,b,7.8\n5,a,10.1\n");
    folder.write("t.txt", "one text\n");
    let gpt2 = common::root().join("testdata/text/gpt2").display().to_string();
    let net = "net train --network linear --steps 1 --batch 2 --lr 0.1 --out out";
    for (line, option) in [
        (format!("{net} --outputs 2 --data nowhere"), "data"),
        (format!("{net} --data nowhere.csv --target y"), "data"),
        (format!("{net} --data t.csv --target y --test nowhere.csv"), "test"),
        (format!("{net} --data t.csv --target y --public nowhere.csv --public-epochs 1"), "public"),
        ("net attack --method informed --data nowhere.npz --out out".into(), "data"),
        ("bound --data nowhere.csv --target y --secret z".into(), "data"),
        ("calibrate --data nowhere.csv --target y --target-eta 1".into(), "data"),
        ("audit t.csv --target y --sigma 1 --test nowhere.csv --out out".into(), "test"),
        ("audit t.csv --target y --sigma 1 --score nowhere.csv --out out".into(), "score"),
        (
            format!(
                "text train t.txt --model {gpt2} --test nowhere.txt --batch 1 --steps 1 --layers last --out out"
            ),
            "test",
        ),
    ] {
        let run = folder.run(&line).expect(2);
        assert!(
            run.stderr.contains(&format!("error: --{option}: cannot read nowhere"))
                && run.stderr.contains("no such file or folder"),
            "{line}: {}",
            run.stderr
        );
        assert!(!folder.path("out").exists(), "{line}");
    }
}
