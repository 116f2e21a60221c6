//! `leakscope compare`: two results side by side, for people and for pipelines.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, number, patients, text};
use serde_json::Value;

/// Names that no summary may show.
fn secret_name(i: usize) -> String {
    format!("patient-<{i}>&\"x\"")
}

/// Patients with ids that no summary may show; one row fewer where `without` says so.
fn table(without: Option<usize>) -> String {
    let mut rows = patients(60);
    for (i, row) in rows.iter_mut().enumerate() {
        let id = if i == 0 { "pid".into() } else { format!("\"{}\"", secret_name(i).replace('"', "\"\"")) };
        row.insert(0, id);
    }
    if let Some(i) = without {
        rows.remove(i);
    }
    text(&rows, ",")
}

const AUDIT: &str =
    "--target dose --id pid --drop patient,high,count,w --group race --holdout 0.2 --seed 1 --l2 0.01 -q";

/// Two audits of the same patients: `quiet` with much noise, `loud` with little, and `fewer` without one record.
fn audits() -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", table(None));
    folder.run(&format!("audit t.csv {AUDIT} --sigma 40 --out quiet")).expect(0);
    folder.run(&format!("audit t.csv {AUDIT} --sigma 5 --out loud --format csv")).expect(0);
    folder
}

fn names_a_record(text: &str) -> bool {
    (1..=60).any(|i| {
        text.contains(&secret_name(i))
            || text.contains(&format!("patient-&lt;{i}&gt;"))
            || text.contains(&format!("patient-<{i}>"))
    })
}

#[test]
fn less_noise_is_worse_for_everybody() {
    let folder = audits();
    let run = folder.run("compare quiet loud --out out").expect(0);
    assert!(run.stdout.contains("WORSE") && !names_a_record(&run.stdout), "{}", run.stdout);
    let c = folder.json("out/compare.json");
    assert_eq!(c["schema"], "leakscope.compare/1");
    assert_eq!(c["kind"], "audit");
    assert_eq!(
        (c["results"][0]["name"].as_str(), c["results"][1]["name"].as_str()),
        (Some("quiet"), Some("loud"))
    );
    // The colour is that of the result's own page.
    for (i, name) in ["quiet", "loud"].iter().enumerate() {
        let page = folder.read(&format!("{name}/report.html"));
        let class = match c["results"][i]["colour"].as_str().unwrap() {
            "green" => "good",
            "amber" => "care",
            _ => "bad",
        };
        assert!(page.contains(&format!("<section class=\"verdict {class}\"")), "{name}");
        assert!(page.contains(c["results"][i]["headline"].as_str().unwrap()), "{name}");
    }
    // η is proportional to 1/σ: eight times for everybody.
    let (quiet, loud) = (folder.json("quiet/audit.json"), folder.json("loud/audit.json"));
    let ratio = number(&loud, "/records/eta/max") / number(&quiet, "/records/eta/max");
    assert!((ratio - 8.0).abs() < 1e-6, "{ratio}");
    let records = &c["records"][0];
    assert_eq!(records["matched"], loud["n"]);
    assert_eq!((&records["worse"], &records["new"], &records["gone"]), (&loud["n"], &0.into(), &0.into()));
    let most = &records["increases"][0];
    assert_eq!(most["id"], loud["records"]["most"][0]["id"]);
    let page = folder.read("out/report.html");
    assert!(
        page.contains("What got worse")
            && page.contains("Two values told apart")
            && page.contains("Groups of race")
    );
    assert!(page.contains("patient-&lt;"), "the owner sees for whom");
    // The other way round, nothing gets worse but what noise costs.
    let back = folder.run("compare loud quiet --json").expect(0).json();
    assert_eq!((&back["records"][0]["better"], &back["records"][0]["worse"]), (&loud["n"], &0.into()));
    let run = folder.run("compare loud quiet").expect(0);
    assert!(run.stdout.contains("Utility") && !run.stdout.contains("Least error"), "{}", run.stdout);
}

#[test]
fn the_same_result_twice_has_not_changed() {
    let folder = audits();
    let run =
        folder.run("compare quiet quiet/audit.json --fail-on worse,regression,eta=0% --summary md").expect(0);
    assert!(
        run.stdout.contains("No number changed") && run.stdout.contains("No number is worse"),
        "{}",
        run.stdout
    );
}

#[test]
fn records_come_and_go_and_results_stand_in_columns() {
    let folder = audits();
    folder.write("u.csv", table(Some(7)));
    folder.run(&format!("audit u.csv {AUDIT} --sigma 40 --out fewer")).expect(0);
    let c = folder.run("compare quiet loud fewer --json").expect(0).json();
    assert_eq!(c["results"].as_array().unwrap().len(), 3);
    let row = &c["sections"][1]["rows"][0];
    assert_eq!(row["values"].as_array().unwrap().len(), 3);
    let counts = |i: usize, kind: &str| c["records"][i][kind].as_u64().unwrap();
    let n = |name: &str| folder.json(&format!("{name}/audit.json"))["n"].as_u64().unwrap();
    assert_eq!((counts(0, "matched"), counts(0, "gone")), (n("quiet"), 0));
    assert_eq!(counts(1, "matched") + counts(1, "gone"), n("quiet"));
    assert_eq!(counts(1, "matched") + counts(1, "new"), n("fewer"));
    assert!(counts(1, "gone") > 0);
}

#[test]
fn a_pipeline_fails_on_what_was_demanded() {
    let folder = audits();
    let failed =
        |demand: &str| folder.run(&format!("compare quiet loud -q --fail-on {demand}")).expect(1).stderr;
    assert!(failed("eta=10%").contains("failed: the mean η of loud is up by 700%, more than 10%"));
    assert!(failed("worse").contains("failed: loud is red, the reference is"));
    assert!(failed("red").contains("failed: loud is red"));
    assert!(failed("regression").contains("worse in loud"));
    folder.run("compare quiet loud --fail-on eta=701%").expect(0);
    folder.run("compare loud quiet --fail-on worse,eta=0%").expect(0);
    // What was found is written all the same.
    folder.run("compare quiet loud --fail-on red --out out").expect(1);
    assert!(folder.json("out/compare.json")["demands"][0]["unmet"].is_string());
    let run = folder.run("compare quiet loud --fail-on blue --out no").expect(2);
    assert!(run.stderr.contains("--fail-on: `blue`: expected red, amber"), "{}", run.stderr);
    assert!(!folder.path("no").exists());
    every_demand(
        &folder,
        "audit",
        ["quiet", "loud"],
        &folder.run("compare quiet loud --json").expect(0).json(),
    );
}

/// Reads XML to its end: tags that match, attributes in quotes, no stray sign. Gives the names of tags with their attributes.
fn read_xml(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let (mut open, mut all) = (vec![], vec![]);
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").unwrap();
    while let Some(start) = rest.find('<') {
        assert!(rest[..start].trim().is_empty(), "text between tags: {}", &rest[..start]);
        let end = rest.find('>').unwrap();
        let inside = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (inside, closed) = inside.strip_suffix('/').map_or((inside, false), |i| (i, true));
        let (name, mut words) = inside.split_once(' ').unwrap();
        let mut attributes = vec![];
        while let Some((key, after)) = words.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            assert!(key.bytes().all(|b| b.is_ascii_alphabetic()) && !value.contains('<'), "{key}={value}");
            for entity in value.split('&').skip(1) {
                assert!(
                    ["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|e| entity.starts_with(e)),
                    "{value}"
                );
            }
            attributes.push((key.to_owned(), value.to_owned()));
            words = after;
        }
        assert!(words.trim().is_empty(), "{words}");
        if !closed {
            open.push(name.to_owned());
        }
        all.push((name.to_owned(), attributes));
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    all
}

#[test]
fn summaries_are_well_formed_and_name_no_record() {
    let folder = audits();
    // A name that would break what does not escape.
    let odd = "lo ud & \"more\" <b>|'";
    std::fs::rename(folder.path("loud"), folder.path(odd)).unwrap();
    let summary = |format: &str| {
        let words = ["compare", "quiet", odd, "--fail-on", "worse", "--summary", format];
        let out = folder.run_words(words).expect(1).stdout;
        assert!(!names_a_record(&out), "{format}: {out}");
        // Groups are values of records: their names stay with the owner.
        for group in folder.json("quiet/audit.json")["groups"].as_array().unwrap() {
            assert!(!out.contains(group["name"].as_str().unwrap()), "{format}: {group}");
        }
        out
    };
    let md = summary("md");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = md.lines().filter(|l| l.starts_with('|')).collect();
    assert!(lines.len() > 20 && lines.iter().all(|l| columns(l) == 4), "{md}");
    assert!(md.contains("**worse, ×8.00**"), "{md}");

    let xml = read_xml(&summary("junit"));
    let count = |name: &str| xml.iter().filter(|(n, _)| n == name).count();
    let told = |key: &str| xml[0].1.iter().find(|(k, _)| k == key).unwrap().1.parse::<usize>().unwrap();
    assert_eq!(xml[0].0, "testsuites");
    assert_eq!((told("tests"), told("failures")), (count("testcase"), count("failure")));
    assert!(count("failure") > 5 && count("testcase") > count("failure"));

    let sarif: Value = serde_json::from_str(&summary("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(sarif["$schema"].as_str().unwrap().contains("sarif-schema-2.1.0"));
    let driver = &sarif["runs"][0]["tool"]["driver"];
    assert!(driver["name"] == "leakscope" && driver["version"].is_string());
    let rules: Vec<&str> =
        driver["rules"].as_array().unwrap().iter().map(|r| r["id"].as_str().unwrap()).collect();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() > 5);
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()));
        assert!(["error", "warning"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && !uri.contains([' ', '"', '<', '|']), "{uri}");
    }

    // To a file, beside what people read.
    let words = ["compare", "quiet", odd, "--summary", "junit", "--summary-out", "l.xml", "--json"];
    folder.run_words(words).expect(0).json();
    read_xml(&folder.read("l.xml"));
    folder.run_words(["compare", "quiet", odd, "--summary", "md", "--json"]).expect(2);
    folder.run_words(["compare", "quiet", odd, "--summary-out", "x"]).expect(2);
}

#[test]
fn what_cannot_be_compared_is_refused_and_nothing_is_written() {
    let folder = audits();
    let refused = |line: &str, words: &[&str]| {
        let run = folder.run(&format!("compare {line} --out out")).expect(2);
        for word in words {
            assert!(run.stderr.contains(word), "{line}: no `{word}` in: {}", run.stderr);
        }
        assert!(run.stdout.is_empty() && !folder.path("out").exists(), "{line}");
    };
    refused("quiet", &["at least two folders"]);
    refused("quiet nowhere", &["nowhere does not exist", "--out"]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    refused("quiet empty", &["empty holds no result", "audit.json"]);
    folder.write("broken.json", "{\"schema\": 3");
    refused("quiet broken.json", &["broken.json is no document of Leakscope"]);
    let edited = |name: &str, from: &str, to: &str| {
        folder.write(name, folder.read("loud/audit.json").replacen(from, to, 1));
    };
    edited("old.json", "leakscope.audit/2", "leakscope.audit/1");
    refused(
        "quiet old.json",
        &["old.json was written by another version", "leakscope.audit/2", "run the command"],
    );
    edited("other.json", "leakscope.audit/2", "leakscope.nothing/1");
    refused("quiet other.json", &["other.json is `leakscope.nothing/1`", "net-audit"]);
    edited("cut.json", "\"sigma\": ", "\"sigmas\": ");
    refused("quiet cut.json", &["cut.json was edited or cut off", "sigma"]);
    // Another target, another table, another kind.
    let other = AUDIT.replace("dose", "age");
    folder.run(&format!("audit t.csv {other} --sigma 4 --out age")).expect(0);
    refused("quiet age", &["its target is `age`, there it is `dose`", "age/audit.json"]);
    folder.write("v.csv", folder.read("t.csv").replacen("weight", "mass", 1));
    folder.run(&format!("audit v.csv {AUDIT} --sigma 4 --out mass")).expect(0);
    refused("quiet mass", &["another table", "column `weight` is in quiet/audit.json"]);
    folder.run("attack t.csv --target dose --drop pid,patient,high,count,w --secret race --l2 0.01 --sigmas 0.1,1 --trials 20 --seed 1 -q --out guessed").expect(0);
    refused("quiet guessed", &["different kinds", "quiet holds audit", "guessed holds attack"]);
    // A folder with both needs a word on which.
    folder.run("attack t.csv --target dose --drop pid,patient,high,count,w --secret race --l2 0.01 --sigmas 0.1,1 --trials 20 --seed 2 -q --out quiet").expect(0);
    folder.run("compare quiet guessed").expect(0);
    std::fs::copy(folder.path("loud/audit.json"), folder.path("guessed/audit.json")).unwrap();
    refused("quiet guessed", &["several kinds (audit, attack)", "--kind audit"]);
    let c = folder.run("compare quiet guessed --kind audit --json").expect(0).json();
    // The table of records stayed where it was.
    assert!(
        c["records"].is_null() && c["warnings"][0].as_str().unwrap().contains("is not beside it any more")
    );
    refused("quiet guessed --kind bound", &["--kind", "holds audit, attack only"]);
    refused("guessed guessed --kind attack --fail-on eta=1%", &["states no η", "regression"]);
}

/// Every demand on a comparison of a result and one with less noise: it fails where the document says so, and nowhere else. One on η is refused,
/// with what to use instead, where the kind states none.
fn every_demand(folder: &Folder, kind: &str, [a, b]: [&str; 2], c: &Value) {
    let rank =
        |i: usize| ["green", "amber", "red"].iter().position(|n| c["results"][i]["colour"] == *n).unwrap();
    let (before, after) = (rank(0), rank(1));
    let line = |demand: &str| format!("compare {a} {b} -q --fail-on {demand}");
    for (demand, fails) in [("red", after == 2), ("amber", after >= 1), ("worse", after > before)] {
        let run = folder.run(&line(demand)).expect(i32::from(fails));
        assert_eq!(run.stderr.contains("failed: "), fails, "{kind}, {demand}: {}", run.stderr);
    }
    let eta = |i: usize, of: &str| c["results"][i]["eta"][of].as_f64();
    let ups: Vec<f64> =
        ["mean", "largest"].iter().filter_map(|of| Some(eta(1, of)? / eta(0, of)? - 1.0)).collect();
    let Some(most) = ups.iter().copied().reduce(f64::max) else {
        let run = folder.run(&line("eta=10%")).expect(2);
        assert!(
            run.stderr.contains("--fail-on") && run.stderr.contains("regression"),
            "{kind}: {}",
            run.stderr
        );
        return;
    };
    assert!(most > 0.1, "{kind}: less noise gives more away: {most}");
    folder.run(&line("eta=10%")).expect(1);
    folder.run(&line(&format!("eta={}", 1.01 * most))).expect(0);
    folder.run(&line(&format!("eta={:.4}%", 101.0 * most))).expect(0);
}

#[test]
fn every_kind_of_result_can_be_compared() {
    let folder = Folder::new();
    folder.write("t.csv", text(&patients(60), ","));
    folder.write("t.txt", "hello my name is anna\nthe patient was ill\nhe was given 4 mg\n");
    let model = "t.csv --target dose --drop patient,high,count,w --l2 0.01 -q";
    let gpt2 = common::root().join("testdata/text/gpt2").display().to_string();
    let net = "--data t.csv --target dose --drop patient,high,count,w --network linear --batch 20 --steps 10 --lr 0.01 --seed 2";
    let commands = [
        (
            "attack",
            format!("attack {model} --secret race --trials 40 --seed 3 --sigmas 1000"),
            "--sigmas 0.0001",
        ),
        ("balance", format!("balance {model} --iterations 3 --sigma 1"), "--sigma 0.1"),
        ("bound", "bound -q --candidates 10 --mechanism gaussian --sigma 4".into(), "--sigma 1"),
        ("training", format!("net train {net} --clip 1 --sigma 4 --delta 1e-5 --track"), "--sigma 0.6"),
        (
            "net-audit",
            "net audit --model training-a --data t.csv --eta --seed 1 --clip 1 --sigma 4".into(),
            "--sigma 0.5",
        ),
        (
            "canary",
            format!(
                "text canary --model {gpt2} --prompt P --layers last --steps 1 --sigmas 9 --trials 20 --seed 3"
            ),
            "--sigmas 0.2",
        ),
        (
            "text-audit",
            format!("text audit t.txt --model {gpt2} --layers last --clip 1 --seed 1 --sigma 4"),
            "--sigma 0.5",
        ),
        ("account", "account -q --delta 1e-5 --adjacency add-remove --sigma 4".into(), "--sigma 1"),
    ];
    for (kind, line, less_noise) in &commands {
        let option = less_noise.split(' ').next().unwrap();
        let before = line.split(&format!("{option} ")).nth(1).unwrap().split(' ').next().unwrap();
        let louder = line.replace(&format!("{option} {before}"), less_noise);
        folder.run(&format!("{line} --out {kind}-a")).expect(0);
        folder.run(&format!("{louder} --out {kind}-b")).expect(0);
        let c = folder.run(&format!("compare {kind}-a {kind}-b --json --out {kind}-c")).expect(0).json();
        assert_eq!(c["kind"], *kind);
        assert!(c["sections"].as_array().unwrap().len() >= 2, "{kind}");
        assert!(folder.read(&format!("{kind}-c/report.html")).contains("What got worse"), "{kind}");
        folder.run(&format!("compare {kind}-a {kind}-b --fail-on regression")).expect(1);
        every_demand(&folder, kind, [&format!("{kind}-a"), &format!("{kind}-b")], &c);
        let same =
            folder.run(&format!("compare {kind}-b {kind}-b --summary md --fail-on regression")).expect(0);
        assert!(same.stdout.contains("No number changed"), "{kind}: {}", same.stdout);
    }
    folder.run("compare balance-a balance-b --fail-on eta=10%").expect(1);
    folder.run("compare text-audit-a text-audit-b --fail-on eta=10%").expect(1);
    // Accounts at another δ are no worse or better, and a calibration is printed alone.
    folder.run("account -q --delta 1e-6 --adjacency add-remove --sigma 4 --out other").expect(0);
    let run = folder.run("compare account-a other").expect(2);
    assert!(run.stderr.contains("its δ is `1×10⁻⁶`, there it is `1×10⁻⁵`"), "{}", run.stderr);
    for (name, epsilon) in [("strict", 1), ("lax", 8)] {
        let line = "calibrate --delta 1e-5 --rate 0.1 --steps 10 --adjacency add-remove --json";
        let json = folder.run(&format!("{line} --epsilon {epsilon}")).expect(0).stdout;
        folder.write(&format!("{name}.json"), json);
    }
    let c = folder.run("compare strict.json lax.json --json --fail-on regression").expect(1).json();
    assert_eq!((&c["kind"], &c["results"][0]["colour"]), (&"calibrate".into(), &"green".into()));
    every_demand(&folder, "calibrate", ["strict.json", "lax.json"], &c);
    // Tables and figures of papers, made with two seeds; another figure is about something else.
    for (name, figure, seed) in
        [("seed-1", "guo-fig2", 1), ("seed-2", "guo-fig2", 2), ("figure-3", "guo-fig3", 1)]
    {
        folder
            .run(&format!("reproduce {figure} --synthetic --trials 1 --seed {seed} -q --out {name}"))
            .expect(0);
    }
    let c = folder.run("compare seed-1 seed-2 --json --out seeds").expect(0).json();
    assert_eq!((&c["kind"], &c["results"][1]["headline"]), (&"reproduce".into(), &"Reproduced".into()));
    every_demand(&folder, "reproduce", ["seed-1", "seed-2"], &c);
    let run = folder.run("compare seed-1 figure-3").expect(2);
    assert!(
        run.stderr.contains("its table or figure is `guo-fig3`, there it is `guo-fig2`"),
        "{}",
        run.stderr
    );
    let run = folder.run("compare account-a bound-a").expect(2);
    assert!(
        run.stderr.contains("different kinds")
            && run.stderr.contains("account-a holds account")
            && run.stderr.contains("bound-a holds bound"),
        "{}",
        run.stderr
    );
}

#[test]
fn releases_of_one_folder_are_compared_by_their_own_folders() {
    let folder = Folder::new();
    folder.write("t.csv", text(&patients(80), ","));
    let model = "t.csv --target dose --drop patient,race,amiodarone,enzyme_inducer,cyp2c9,vkorc1,high,count,w --l2 0.1 -q";
    let bounds = "--bounds age=0..120 --bounds height=100..250 --bounds weight=20..200 --bounds dose=0..100 --clip-to-bounds";
    for sigma in [8, 2] {
        folder.run(&format!("release {model} {bounds} --sigma {sigma} --out r")).expect_released();
    }
    let run = folder.run("compare r r/release-1").expect(2);
    assert!(
        run.stderr.contains("folder of releases") && run.stderr.contains("r/release-2"),
        "{}",
        run.stderr
    );
    let c = folder.run("compare r/release-1 r/release-2 --json").expect(0).json();
    assert_eq!((&c["kind"], &c["results"][1]["name"]), (&"release".into(), &"release-2".into()));
    every_demand(&folder, "release", ["r/release-1", "r/release-2"], &c);
    let settings = c["sections"].as_array().unwrap().iter().find(|s| s["title"] == "Settings").unwrap();
    let sigma = &settings["rows"][0]["values"];
    assert!(number(sigma, "/0/value") > 3.0 * number(sigma, "/1/value"), "{sigma}");
}
