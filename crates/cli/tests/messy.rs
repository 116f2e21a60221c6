//! Tables as people have them: copies of a row, one row, texts for missing values, pipes, other people's pages.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use leakscope_core::random::Seeded;
use std::fmt::Write;
use std::io::Write as _;

/// Measurements of 400 people, and so many more copies of the first row.
fn people(copies: usize) -> String {
    let mut random = Seeded::new(11);
    let mut rows: Vec<String> = (0..400)
        .map(|_| {
            let z = random.normals(3);
            format!("{:.3},{:.3},{:.3}", 170.0 + 8.0 * z[0], 70.0 + 12.0 * z[1], z[0] + z[1] + z[2])
        })
        .collect();
    rows.extend(vec![rows[0].clone(); copies]);
    format!("height,weight,y\n{}\n", rows.join("\n"))
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Thirty equal rows may be one person's, who is told thirty times over: no page is green by calling them thirty people.
#[test]
fn copies_of_a_row_are_no_crowd() {
    let folder = Folder::new();
    folder.write("one.csv", people(0));
    folder.write("copies.csv", people(30));
    let line = "--target y --l2 0.01 --sigma 2";
    let calm = folder.run(&format!("audit one.csv {line} --out calm")).expect(0);
    assert!(flat(&calm.stdout).contains("PROTECTED AT THIS NOISE"), "{}", calm.stdout);
    let json = folder.json("calm/audit.json");
    assert_eq!(json["verdict"]["colour"], "green");
    assert!(json["data"].get("duplicates").is_none());
    let run = folder.run(&format!("audit copies.csv {line} --out out")).expect(0);
    let text = flat(&run.stdout);
    assert!(text.contains("NOT SHOWN TO BE PROTECTED") && text.contains("31 rows are equal"), "{text}");
    assert!(text.contains("told 31 times over") && text.contains("--id"), "{text}");
    let json = folder.json("out/audit.json");
    assert_eq!(json["data"]["duplicates"]["rows"], 30);
    assert_eq!(json["data"]["duplicates"]["largest"], 31);
    assert_eq!(json["verdict"]["colour"], "amber");
    assert!(json["verdict"]["text"].as_str().unwrap().contains("31 rows are equal"));
    // A release says so to its owner alone.
    let run = folder.run("release copies.csv --target y --l2 0.01 --sigma 64 --out r").expect_released();
    let owned = folder.json("r/private/release-1.json");
    assert_eq!(owned["measured"]["duplicates"]["largest"], 31);
    assert_ne!(owned["verdict"]["colour"], "green");
    assert!(flat(&run.stdout).contains("31 rows are equal"), "{}", run.stdout);
    for (path, bytes) in folder.files("r/release-1") {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("rows are equal") && !text.contains("duplicates"), "{}", path.display());
    }
}

/// In a table of a few codes equal rows are what there is.
#[test]
fn equal_rows_of_a_few_codes_keep_no_page_from_green() {
    let folder = Folder::new();
    let mut random = Seeded::new(2);
    let mut text = String::from("sex,smoker,visits,y\n");
    for i in 0..400 {
        let z = random.normals(1)[0];
        writeln!(text, "{},{},{},{}", i % 2, (i / 2) % 2, (i / 4) % 3, u8::from(z > 0.0)).unwrap();
    }
    folder.write("codes.csv", text);
    let run = folder.run("audit codes.csv --target y --model linear --l2 0.01 --sigma 2 --out out").expect(0);
    assert!(flat(&run.stdout).contains("PROTECTED AT THIS NOISE"), "{}", run.stdout);
    assert_eq!(folder.json("out/audit.json")["data"]["duplicates"]["beyond_chance"], false);
}

#[test]
fn one_row_is_no_table() {
    let folder = Folder::new();
    folder.write("one.csv", "a,b,y\n1,2,3\n");
    for command in ["audit one.csv --target y --l2 0.1", "balance one.csv --target y --l2 0.1"] {
        let run = folder.run(command).expect(2);
        assert!(run.stderr.contains("one row") && run.stderr.contains("more rows"), "{}", run.stderr);
    }
}

/// All spellings of missing values are named at once, with the option that takes them.
#[test]
fn texts_for_missing_values_are_named_together() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y\n");
    for i in 0..60 {
        let a = if i == 7 { "unknown".into() } else { format!("{}.5", i % 7) };
        let b = match i {
            9 => "refused".into(),
            30 => "unknown".into(),
            _ => (i % 11).to_string(),
        };
        writeln!(text, "{a},{b},{}", i % 5).unwrap();
    }
    folder.write("gaps.csv", text);
    let run = folder.run("audit gaps.csv --target y --l2 0.1").expect(2);
    assert!(run.stderr.contains("--na refused,unknown") && run.stderr.contains("`b`"), "{}", run.stderr);
    folder.run("audit gaps.csv --target y --l2 0.1 --na refused,unknown --missing drop").expect(0);
}

/// JSON lines that are compressed are JSON lines, and what can be read only once is read once.
#[test]
fn compressed_lines_and_pipes_are_read() {
    let folder = Folder::new();
    let (mut lines, mut table) = (String::new(), String::from("a,y\n"));
    for i in 0..40 {
        writeln!(lines, "{{\"a\": {i}.5, \"y\": {}}}", i % 7).unwrap();
        writeln!(table, "{i}.5,{}", i % 7).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(lines.as_bytes()).unwrap();
    let compressed = gzip.finish().unwrap();
    folder.write("t.jsonl.gz", &compressed);
    folder.write("t.csv", &table);
    let read = |line: &str| folder.run(line).expect(0).json()["records"]["eta"]["max"].clone();
    let expected = read("audit t.csv --target y --l2 0.1 --sigma 1 --json");
    assert_eq!(read("audit t.jsonl.gz --target y --l2 0.1 --sigma 1 --json"), expected);
    folder.write("cut.csv.gz", &compressed[..compressed.len() / 2]);
    let run = folder.run("audit cut.csv.gz --target y --l2 0.1").expect(2);
    assert!(run.stderr.contains("cut off") && run.stderr.contains("again"), "{}", run.stderr);
}

/// A page that nobody here wrote stays where it is.
#[test]
fn a_page_of_somebody_else_is_not_replaced() {
    let folder = Folder::new();
    folder.write("one.csv", people(0));
    std::fs::create_dir(folder.path("out")).unwrap();
    folder.write("out/report.html", "<h1>Sales of the third quarter</h1>");
    let line = "audit one.csv --target y --l2 0.01 --sigma 1 --out out";
    let run = folder.run(line).expect(2);
    assert!(run.stderr.contains("no page of Leakscope"), "{}", run.stderr);
    assert!(folder.read("out/report.html").contains("Sales"));
    std::fs::remove_file(folder.path("out/report.html")).unwrap();
    folder.run(line).expect(0);
    folder.run(line).expect(0);
}

/// Names of columns are not listed by the thousand, and where there is no line of names they are listed at all.
#[test]
fn a_name_that_is_none_is_answered_with_a_few() {
    let folder = Folder::new();
    let names: Vec<String> = (0..40).map(|j| format!("gene_{j:03}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for i in 0..60 {
        let row: Vec<String> = (0..=40).map(|j| ((i * 37 + j * j * 11 + i * j) % 101).to_string()).collect();
        writeln!(text, "{}", row.join(",")).unwrap();
    }
    folder.write("genes.csv", &text);
    for (line, named) in [
        ("balance genes.csv --target y --l2 1 --attribute zzz", "and 32 more up to `gene_039`"),
        ("balance genes.csv --target y --l2 1 --attribute gene_3", "`gene_003`"),
        ("audit genes.csv --target y --l2 1 --unit weight=kg", "and 32 more"),
        ("audit genes.csv --target outcome_of_all", "and 33 more"),
    ] {
        let said = folder.run(line).expect(2).stderr;
        assert!(said.contains(named) && said.len() < 400, "{line}: {said}");
    }
    folder.write("bare.csv", "5,7,2\n1,8,4\n3,1,1\n2,2,9\n4,5,6\n");
    let said = folder.run("audit bare.csv --no-header --target outcome --l2 1").expect(2).stderr;
    assert!(said.contains("they are `c1`, `c2`, `c3`"), "{said}");
}

/// Dates are named as dates, by whoever asks and by whoever answers; what becomes of them inside is nobody's business.
#[test]
fn dates_are_said_as_dates() {
    let folder = Folder::new();
    let mut random = Seeded::new(5);
    let mut text = String::from("joined,age,y\n");
    for i in 0..200 {
        let (z, year) = (random.normals(2), 2000 + i % 20);
        let (month, day) = (1 + i * 7 % 12, 1 + i * 11 % 28);
        let y = f64::from(year) / 4.0 + z[0];
        writeln!(text, "{year}-{month:02}-{day:02},{:.1},{y:.2}", 40.0 + 9.0 * z[1]).unwrap();
    }
    folder.write("joined.csv", &text);
    let line = "audit joined.csv --target y --l2 0.01 --sigma 1 --json";
    let told = |json: &serde_json::Value| {
        let all = json["tell"]["attributes"].as_array().unwrap();
        all.iter().find(|t| t["attribute"] == "joined").unwrap().clone()
    };
    let found = told(&folder.run(line).expect(0).json());
    for value in [&found["from"], &found["to"]] {
        let value = value.as_str().unwrap();
        assert!(value.starts_with("20") && value.len() == 10 && value.matches('-').count() == 2, "{value}");
    }
    let asked = told(&folder.run(&format!("{line} --tell joined=2003-05-01,2012-05-01")).expect(0).json());
    assert_eq!((&asked["from"], &asked["to"]), (&"2003-05-01".into(), &"2012-05-01".into()));
    // The same two days by number.
    let counted = told(&folder.run(&format!("{line} --tell joined=12173,15461")).expect(0).json());
    assert_eq!(counted, asked);
    let text = flat(&folder.run("audit joined.csv --target y --l2 0.01 --sigma 0.01").expect(0).stdout);
    assert!(!text.contains("days rightly"), "{text}");
    let said = folder.run(&format!("{line} --tell joined=May,June")).expect(2).stderr;
    assert!(said.contains("holds dates") && said.contains("2024-12-31"), "{said}");
}

/// A table with far more columns than rows is balanced in the space of its rows: what is measured before the first reweighting is
/// what an audit measures in all columns, and the model has all of them.
#[test]
fn a_wide_table_is_balanced_in_all_its_columns() {
    let folder = Folder::new();
    let mut random = Seeded::new(3);
    let (n, d) = (24, 60);
    let names: Vec<String> = (0..d).map(|j| format!("g{j}")).collect();
    let mut text = format!("{},y,kind\n", names.join(","));
    for i in 0..n {
        let z = random.normals(d + 1);
        let row: Vec<String> = z[..d].iter().map(|v| format!("{v:.4}")).collect();
        writeln!(text, "{},{:.4},{}", row.join(","), z[0] + z[1] + z[d], ["a", "b", "c"][i % 3]).unwrap();
    }
    folder.write("wide.csv", &text);
    let close = |a: &serde_json::Value, b: &serde_json::Value| {
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a / b - 1.0).abs() < 1e-8, "{a} {b}");
    };
    for (model, columns) in [
        ("--target y --drop kind --l2 0.1", d + 1),
        ("--target kind --drop y --model softmax --l2 0.1", 3 * (d + 1)),
    ] {
        let audit = folder
            .run(&format!("audit wide.csv {model} --scaling given --sigma 1 --tell-budget 0 --json"))
            .expect(0)
            .json();
        let run = folder.run(&format!("balance wide.csv {model} --iterations 2 --sigma 1 --json")).expect(0);
        let balance = run.json();
        close(&balance["iterations"][0]["eta_max"], &audit["records"]["eta"]["max"]);
        close(&balance["iterations"][0]["eta_mean"], &audit["records"]["eta"]["mean"]);
        assert_eq!(balance["coefficients"].as_object().unwrap().len(), columns);
        let spread = |k: usize| {
            let step = &balance["iterations"][k];
            step["eta_std"].as_f64().unwrap() / step["eta_mean"].as_f64().unwrap()
        };
        assert!(spread(2) < spread(0), "{balance}");
    }
    // Of one attribute, and with the attackers of the papers looking on.
    let attribute = "balance wide.csv --target y --drop kind --l2 0.1 --attribute g7 --iterations 2 --json";
    let balance = folder.run(attribute).expect(0).json();
    let audit = folder.run(
        "audit wide.csv --target y --drop kind --l2 0.1 --scaling given --sigma 1 --tell-budget 0 --json",
    );
    let of_audit = audit.expect(0).json()["attributes"].as_array().unwrap().clone();
    let own = of_audit.iter().find(|a| a["name"] == "g7").unwrap();
    close(&balance["iterations"][0]["eta_max"], &own["eta_max"]);
    folder
        .run("attack wide.csv --target y --l2 0.1 --secret kind --balance 2 --trials 4 --sigmas 1 --out att")
        .expect(0);
}

/// A release that would count the weights of a wide table for hours says so at once, and leaves nothing behind.
#[test]
fn a_balanced_release_that_cannot_be_counted_is_refused_at_once() {
    let folder = Folder::new();
    let mut random = Seeded::new(9);
    let names: Vec<String> = (0..1200).map(|j| format!("g{j}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for _ in 0..40 {
        let row: Vec<String> = random.normals(1201).iter().map(|v| format!("{v:.2}")).collect();
        writeln!(text, "{}", row.join(",")).unwrap();
    }
    folder.write("wide.csv", &text);
    let run = folder.run("release wide.csv --target y --l2 1 --sigma 1 --balance 5 --out out").expect(2);
    let said = &run.stderr;
    assert!(said.contains("--balance") && said.contains("columns"), "{said}");
    assert!(said.contains("release without --balance") && !folder.path("out").exists(), "{said}");
}

/// A test file that writes its classes with a full stop, as UCI's Adult does: the message says what they were meant for.
#[test]
fn a_level_that_is_nearly_another_is_named_with_it() {
    let folder = Folder::new();
    let rows = |stop: &str| {
        let mut text = String::from("age,income\n");
        for i in 0..80_u32 {
            let class = if i * 37 % 11 > 5 { ">50K" } else { "<=50K" };
            writeln!(text, "{},{class}{stop}", 20 + i * 7 % 50).unwrap();
        }
        text
    };
    folder.write("train.csv", rows(""));
    folder.write("test.csv", rows("."));
    let line = "audit train.csv --target income --model logistic --l2 0.1 --test test.csv";
    let said = folder.run(line).expect(2).stderr;
    assert!(said.contains("`<=50K.`") && said.contains("they have `<=50K`"), "{said}");
    assert!(said.contains("in every row"), "{said}");
}

/// Advice about levels that one record decides ends where it says: with the count that is named nothing hangs on a record.
#[test]
fn the_count_that_a_warning_names_ends_it() {
    let folder = Folder::new();
    let mut random = Seeded::new(8);
    let mut text = String::from("town,age,y\n");
    for (town, n) in [("a", 220), ("b", 160), ("c", 10), ("d", 9), ("e", 1)] {
        for _ in 0..n {
            let z = random.normals(2);
            writeln!(text, "{town},{:.2},{:.3}", 50.0 + 9.0 * z[0], z[0] + z[1]).unwrap();
        }
    }
    folder.write("towns.csv", text);
    let line = "audit towns.csv --target y --l2 0.1 --sigma 4 --json";
    for before in ["", "--min-level-count 10"] {
        let json = folder.run(&format!("{line} {before}")).expect(0).json();
        assert_eq!(json["data"]["read_off"], serde_json::json!(["levels"]));
        let warnings = json["warnings"].to_string();
        let named = warnings.split("min_level_count = ").nth(1).expect(&warnings);
        let count: String = named.chars().take_while(char::is_ascii_digit).collect();
        assert!(warnings.contains("`town`"), "{warnings}");
        let json = folder.run(&format!("{line} --min-level-count {count}")).expect(0).json();
        assert!(json["data"].get("read_off").is_none(), "{count}: {}", json["data"]);
        assert!(!json["warnings"].to_string().contains("One record decides"), "{}", json["warnings"]);
    }
}

/// What a person reads in a terminal is laid out for it; behind a pipe a paragraph is a line.
#[test]
fn long_sentences_are_laid_out_in_a_terminal_alone() {
    let folder = Folder::new();
    folder.write("p.csv", folder.run("demo --table --rows 200 --seed 4").expect(0).stdout);
    let line = "release p.csv --target dose --id patient --l2 0.1 --sigma 1 --out";
    let longest = |text: &str| text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
    let piped = folder.run(&format!("{line} piped")).expect_released();
    assert!(longest(&piped.stdout) > 200, "{}", piped.stdout);
    // `script` of util-linux runs a command in a terminal.
    let shell = format!("{} {line} shown", env!("CARGO_BIN_EXE_leakscope"));
    let run = std::process::Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .current_dir(folder.path(""))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(run.stdout).unwrap();
    // The last that progress showed is its end.
    let last = shown.rsplit_once("done in").expect(&shown).0;
    assert!(last.ends_with("100%  ") && !shown.rsplit("done in").next().unwrap().contains("left"), "{shown}");
    // What progress drew stands before what is left on a line.
    let left =
        |l: &str| l.trim_end_matches('\r').rsplit(['\r', '\u{1b}']).next().unwrap_or_default().to_owned();
    let report: Vec<String> = shown.lines().map(left).skip_while(|l| !l.contains("Released")).collect();
    let report = report.join("\n");
    assert!(longest(&report) <= 84 && report.contains("What makes it"), "{report}");
    let words = |text: &str| flat(text).replace(|c: char| !c.is_alphanumeric(), "");
    assert!(words(&report).contains(&words("The folder private never leaves the house")), "{report}");
}
