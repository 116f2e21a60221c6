//! `leakscope plan`, `run`, `merge` and `worker`: the audit of one machine to the last digit, and what may go wrong.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn noise(i: usize, j: usize) -> f64 {
    let z = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (j as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let z = (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

/// Several CSV files of one table: numbers, a category, groups, weights, ids, missing cells, and targets of every family.
fn table(folder: &Folder, sizes: &[usize]) -> Vec<String> {
    let mut first = 0;
    let mut names = vec![];
    for (k, size) in sizes.iter().enumerate() {
        let mut text = String::from("id,age,dose,site,w,sex,y,sick,visits\n");
        for i in first..first + size {
            let (age, dose) = (20.0 + 60.0 * noise(i, 0), 5.0 * noise(i, 1));
            let dose_cell = if noise(i, 2) < 0.01 { String::new() } else { dose.to_string() };
            let y = 0.03 * age - 0.4 * dose + noise(i, 3);
            let sick = if y + 0.5 * noise(i, 4) > 1.0 { "yes" } else { "no" };
            let (site, sex) = ((noise(i, 5) * 3.0) as u32, (noise(i, 6) * 2.0) as u32);
            let visits = (0.5 * y + 2.0 * noise(i, 7)).exp().floor();
            text +=
                &format!("p{i},{age},{dose_cell},s{site},{},x{sex},{y},{sick},{visits}\n", 0.5 + noise(i, 8));
        }
        let name = format!("part{k}.csv");
        folder.write(&name, text);
        names.push(name);
        first += size;
    }
    names
}

/// The audit of a document, without clocks and without the names of what lies beside it.
fn numbers(mut audit: Value) -> Value {
    let fields = audit.as_object_mut().unwrap();
    for field in ["created", "timings", "tables", "seed"] {
        fields.remove(field);
    }
    audit
}

/// Plans, runs every part of every pass in some order (some of them twice), and merges until the audit is there.
fn by_parts(
    folder: &Folder,
    words: &[String],
    plan: &str,
    order: impl Fn(usize) -> Vec<usize>,
) -> Vec<String> {
    let planning = ["plan"].into_iter().map(String::from).chain(words.iter().cloned());
    let planning = planning.chain(["--out".into(), plan.into(), "--json".into()]);
    let mut next = folder.run_words(planning).expect(0).json();
    let mut passes = vec![];
    while let Some(pass) = next["pass"].as_str() {
        passes.push(pass.to_owned());
        for part in order(next["parts"].as_u64().unwrap() as usize) {
            folder.run_words(["run", plan, "--pass", pass, "--part", &part.to_string()]).expect(0);
        }
        let merged = folder.run_words(["merge", plan, "--pass", pass, "--json"]);
        assert!(merged.code < 2, "{}", merged.stderr);
        next = merged.json();
    }
    is_documented(folder, plan, &passes);
    passes
}

/// What a plan keeps in its folder is as the schemas say: what was asked, every pass, every table.
fn is_documented(folder: &Folder, plan: &str, passes: &[String]) {
    common::schemas::is_a("plan", &folder.json(&format!("{plan}/plan.json")));
    assert!(!passes.is_empty());
    for pass in passes {
        let pass = folder.json(&format!("{plan}/passes/{pass}/pass.json"));
        common::schemas::is_a("plan-pass", &pass);
        let table = folder.json(&format!("{plan}/tables/{}", pass["table"].as_str().unwrap()));
        common::schemas::is_a("plan-table", &table);
    }
}

/// Records of a folder of Parquet files, or of one file, row by row.
fn records(folder: &Folder, path: &str) -> Vec<String> {
    let mut files: Vec<PathBuf> = match folder.path(path).is_dir() {
        true => std::fs::read_dir(folder.path(path)).unwrap().map(|e| e.unwrap().path()).collect(),
        false => vec![folder.path(path)],
    };
    files.sort();
    let mut rows = vec![];
    for file in files {
        let file = std::fs::File::open(file).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            for i in 0..batch.num_rows() {
                rows.push(format!("{:?}", batch.slice(i, 1).columns()));
            }
        }
    }
    rows
}

fn same_as_one_machine(sizes: &[usize], options: &str) -> Vec<String> {
    let folder = Folder::new();
    let words: Vec<String> =
        table(&folder, sizes).into_iter().chain(options.split_whitespace().map(String::from)).collect();
    let whole = ["audit"].into_iter().map(String::from).chain(words.iter().cloned());
    assert!(folder.run_words(whole.chain(["--out".into(), "whole".into()])).code < 2);
    // Backwards, and every third part a second time.
    let order = |parts: usize| (0..parts).rev().chain((0..parts).filter(|k| k % 3 == 0)).collect();
    let passes = by_parts(&folder, &words, "plan", order);
    let (here, there) = (folder.json("whole/audit.json"), folder.json("plan/audit/audit.json"));
    assert_eq!(numbers(here), numbers(there), "{options}");
    assert_eq!(records(&folder, "whole/records.parquet"), records(&folder, "plan/audit/records"));
    passes
}

const SIZES: &[usize] = &[700, 1, 260, 1500];

#[test]
fn a_linear_model_has_the_digits_of_one_machine() {
    let passes = same_as_one_machine(
        SIZES,
        "--target y --id id --group site --weights w --drop sick,visits --missing drop --l2 0.01 --sigma 0.3 --tell-budget 1",
    );
    assert!(passes.iter().any(|p| p.ends_with("-count")), "{passes:?}");
    assert!(passes.iter().any(|p| p.ends_with("-records")), "{passes:?}");
}

#[test]
fn a_logistic_model_of_components_with_a_holdout_has_the_digits_of_one_machine() {
    let passes = same_as_one_machine(
        &[500, 900, 800],
        "--target sick --model logistic --drop id,y,visits --missing mean --l2 0.01 --pca 3 --holdout 0.25 --seed 3 \
         --target-eta 0.2",
    );
    assert!(passes.iter().any(|p| p.ends_with("-components")), "{passes:?}");
    assert!(passes.iter().any(|p| p.ends_with("-utility")), "{passes:?}");
    assert!(passes.iter().any(|p| p.ends_with("-eta")), "{passes:?}");
}

#[test]
fn a_poisson_model_in_the_unit_ball_has_the_digits_of_one_machine() {
    let passes = same_as_one_machine(
        &[2000],
        "--target visits --model poisson --drop id,y,sick --missing drop --scale unit-ball --l2 0.05 --target-sd age=5 \
         --tell-budget 0",
    );
    assert!(passes.iter().any(|p| p.ends_with("-norm")), "{passes:?}");
    assert!(passes.iter().any(|p| p.ends_with("-start")), "{passes:?}");
}

#[test]
fn a_softmax_model_with_groups_weights_a_holdout_and_scores_has_the_digits_of_one_machine() {
    let passes = same_as_one_machine(
        SIZES,
        "--target site --model softmax --id id --group sex --weights w --drop sick,visits --missing drop --l2 0.02 --holdout 0.2 \
         --seed 5 --target-eta 0.5 --score part2.csv --tell-budget 0",
    );
    for pass in ["-classes", "-fit", "-eta", "-records", "-utility", "-scores"] {
        assert!(passes.iter().any(|p| p.ends_with(pass)), "{passes:?}");
    }
}

#[test]
fn scores_of_points_have_the_digits_of_one_machine() {
    let folder = Folder::new();
    let files = table(&folder, &[500, 400]);
    folder.write("points.csv", folder.read("part1.csv").lines().take(150).collect::<Vec<_>>().join("\n"));
    let words = format!(
        "{} --target y --id id --drop sick,visits --missing drop --l2 0.01 --sigma 0.3 --tell-budget 0 --score points.csv",
        files.join(" ")
    );
    let words: Vec<String> = words.split_whitespace().map(String::from).collect();
    let whole = ["audit"].into_iter().map(String::from).chain(words.iter().cloned());
    folder.run_words(whole.chain(["--out".into(), "whole".into()])).expect(0);
    by_parts(&folder, &words, "plan", |parts| (0..parts).rev().collect());
    assert_eq!(numbers(folder.json("whole/audit.json")), numbers(folder.json("plan/audit/audit.json")));
    assert_eq!(records(&folder, "whole/scores.parquet"), records(&folder, "plan/audit/scores"));
    assert_eq!(folder.json("plan/audit/audit.json")["tables"], serde_json::json!(["records", "scores"]));
}

/// A command that asks and waits, with a worker that helps and one that was killed before: the document of one machine.
fn with_machines(command: &str, document: &str, options: &str) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let files = table(&folder, &[700, 300, 600]).join(" ");
    let words = |out: &str, more: &str| {
        let named = if command == "bound" {
            format!("--data {}", files.replace(' ', " --data "))
        } else {
            files.clone()
        };
        let words = format!("{command} {named} {options} --out {out} {more}");
        words.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    assert!(folder.run_words(words("whole", "")).code < 2);
    let mut helper = None;
    let mut asking = folder.command(words("there", "--machines shared --patience 0.5")).spawn().unwrap();
    let seen = Instant::now();
    while helper.is_none() && seen.elapsed() < Duration::from_secs(30) {
        if folder.path("shared/plan.json").exists() {
            helper = Some(folder.command(["worker", "shared", "--quiet"]).spawn().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(asking.wait().unwrap().code().unwrap() < 2);
    assert!(helper.unwrap().wait().unwrap().success(), "the worker goes home");
    let mut passes: Vec<String> = std::fs::read_dir(folder.path("shared/passes"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    passes.sort();
    let (here, there) =
        (folder.json(&format!("whole/{document}")), folder.json(&format!("there/{document}")));
    assert_eq!(without_clock(here), without_clock(there), "{options}");
    // Asked again, it repeats nothing: every pass is there, merged.
    for pass in &passes {
        for part in 0..3 {
            let _ = std::fs::remove_file(folder.path(&format!("shared/passes/{pass}/part-0000{part}")));
        }
    }
    assert!(folder.run_words(words("again", "--machines shared")).code < 2);
    assert!(!folder.path(&format!("shared/passes/{}/part-00000", passes[0])).exists());
    (folder, passes)
}

fn without_clock(document: Value) -> Value {
    let mut document = numbers(document);
    let fields = document.as_object_mut().unwrap();
    fields.remove("seconds");
    if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
        data.remove("seconds");
    }
    document
}

#[test]
fn balancing_with_machines_has_the_digits_of_one() {
    let (folder, passes) = with_machines(
        "balance",
        "balance.json",
        "--target y --id id --weights w --drop sick,visits --missing drop --l2 0.05 --iterations 3 --holdout 0.2 --seed 2",
    );
    for pass in ["-weights", "-fit", "-losses", "-utility", "-labels"] {
        assert!(passes.iter().any(|p| p.ends_with(pass)), "{passes:?}");
    }
    assert_eq!(records(&folder, "whole/weights.parquet"), records(&folder, "there/weights.parquet"));
}

#[test]
fn balancing_a_softmax_model_with_machines_has_the_digits_of_one() {
    let (folder, _) = with_machines(
        "balance",
        "balance.json",
        "--target site --model softmax --id id --drop sick,visits --missing drop --l2 0.05 --iterations 2",
    );
    assert_eq!(records(&folder, "whole/weights.parquet"), records(&folder, "there/weights.parquet"));
}

#[test]
fn bounds_on_guesses_with_machines_have_the_digits_of_one() {
    let (_, passes) = with_machines(
        "bound",
        "bound.json",
        "--target y --drop id,sick,visits,w --missing drop --l2 0.01 --secret sex --sigma 0.05 --trials 2000 --attacks \
         white-box --noise-vectors 5",
    );
    for pass in ["-guesses", "-removals"] {
        assert!(passes.iter().any(|p| p.ends_with(pass)), "{passes:?}");
    }
}

/// Noise is drawn by whoever asks, and nowhere else: what a release with machines measured is what one without did.
#[test]
fn a_release_with_machines_measures_the_digits_of_one() {
    for model in
        ["--target y --drop id,sick,visits,w", "--target site --model softmax --drop id,sick,visits,w"]
    {
        let folder = Folder::new();
        let files = table(&folder, &[700, 300, 600]).join(" ");
        let release = |out: &str, more: &str| {
            let words = format!(
                "release {files} {model} --missing drop --l2 0.05 --target-eta 0.2 --tell-budget 0 --out {out} {more} --json"
            );
            folder.run_words(words.split_whitespace().map(String::from).collect::<Vec<_>>())
        };
        let (here, there) = (release("whole", ""), release("there", "--machines shared"));
        assert!(here.code < 2 && there.code < 2, "{} {}", here.stderr, there.stderr);
        let (here, there) = (here.json(), there.json());
        for field in ["eta_max", "eta_mean", "counting"] {
            assert_eq!(here["measured"][field], there["measured"][field], "{field}");
        }
        assert_eq!(here["mechanism"], there["mechanism"]);
        assert_eq!(here["eta"], there["eta"]);
        assert_ne!(here["coefficients"], there["coefficients"], "noise is fresh");
        // A second one is charged to the ledger as any other is.
        let second = release("there", "--machines shared").json();
        assert_eq!(second["composed"]["releases"], 2);
    }
}

/// How the same rows lie in files changes no digit of a table of one split each, and who read it changes none at all.
#[test]
fn workers_that_share_a_plan_and_one_that_is_killed_leave_the_audit_of_one_machine() {
    let folder = Folder::new();
    let files = table(&folder, &[400; 6]);
    let options = "--target y --drop id,sick,visits --missing drop --l2 0.01 --sigma 0.3 --tell-budget 1";
    let words: Vec<String> = files.into_iter().chain(options.split_whitespace().map(String::from)).collect();
    let run = |command: &str, out: &str| {
        let words = [command.to_owned()].into_iter().chain(words.clone());
        folder.run_words(words.chain(["--out".into(), out.into()])).expect(0)
    };
    run("audit", "whole");
    run("plan", "plan");
    // A worker that took a part and is gone.
    folder.write("plan/passes/01-profile/part-00003.claim", "");
    let mut killed = folder.command(["worker", "plan"]).spawn().unwrap();
    let seen = Instant::now();
    while !folder.path("plan/passes/01-profile/part-00001").exists()
        && seen.elapsed() < Duration::from_secs(20)
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut second = folder.command(["worker", "plan", "--patience", "0.5"]).spawn().unwrap();
    folder.run_words(["worker", "plan", "--patience", "0.5", "--quiet"]).expect(0);
    assert!(second.wait().unwrap().success());
    assert_eq!(numbers(folder.json("whole/audit.json")), numbers(folder.json("plan/audit/audit.json")));
    // Nothing of a killed worker is left under a temporary name that somebody could take for an answer.
    assert_eq!(records(&folder, "plan/audit/records").len(), records(&folder, "whole/records.parquet").len());
}

/// A driver that starts again repeats no pass that is finished; an answer that is gone is computed again.
#[test]
fn finished_passes_are_not_repeated_and_lost_answers_are_run_again() {
    let folder = Folder::new();
    let files = table(&folder, &[300, 300]);
    let words = |command: &str| {
        let options = format!(
            "{command} {} --target y --drop id,sick,visits --missing drop --sigma 1 --tell-budget 0 --out plan",
            files.join(" ")
        );
        options.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    folder.run_words(words("plan")).expect(0);
    let run =
        |pass: &str, part: &str| folder.run_words(["run", "plan", "--pass", pass, "--part", part]).expect(0);
    run("01-profile", "0");
    let lacking = folder.run_words(["merge", "plan", "--pass", "01-profile"]).expect(2);
    assert!(lacking.stderr.contains("part 1"), "{}", lacking.stderr);
    run("01-profile", "1");
    // The answer of a part is lost, and found missing.
    std::fs::remove_file(folder.path("plan/passes/01-profile/part-00000")).unwrap();
    let again = folder.run_words(["merge", "plan", "--json"]).expect(0).json();
    assert_eq!((again["pass"].as_str(), &again["missing"]), (Some("01-profile"), &serde_json::json!([0])));
    run("01-profile", "0");
    let next = folder.run_words(["merge", "plan", "--json"]).expect(0).json();
    assert_eq!(next["pass"], "02-count");
    // Once merged, the answers of parts are not needed, and planning again goes on where it was.
    for part in ["part-00000", "part-00001"] {
        std::fs::remove_file(folder.path("plan/passes/01-profile").join(part)).unwrap();
    }
    let resumed = folder.run_words(words("plan")).expect(0);
    assert!(resumed.stdout.contains("02-count"), "{}", resumed.stdout);
    folder.run_words(["worker", "plan", "--quiet"]).expect(0);
    // Another plan does not take its place.
    let other: Vec<String> =
        words("plan").into_iter().map(|w| if w == "--sigma" { "--target-eta".into() } else { w }).collect();
    assert!(folder.run_words(other).expect(2).stderr.contains("another plan"));
}

#[test]
fn what_is_wrong_with_a_part_is_said_of_that_part() {
    let folder = Folder::new();
    let files = table(&folder, &[300, 300, 300]);
    let options = "--target y --drop id,sick,visits --missing drop --sigma 1 --tell-budget 0 --out plan";
    let plan = |files: &str| {
        let words = format!("plan {files} {options}");
        folder.run_words(words.split_whitespace().map(String::from).collect::<Vec<_>>())
    };
    folder.write("empty.csv", "id,age,dose,site,w,sex,y,sick,visits\n");
    let empty = plan("part0.csv empty.csv").expect(2);
    assert!(empty.stderr.contains("empty.csv"), "{}", empty.stderr);
    folder.write("other.csv", "id,age,dose\n1,2,3\n");
    let other = plan("part0.csv other.csv").expect(2);
    assert!(other.stderr.contains("other.csv"), "{}", other.stderr);
    // A column of numbers that is one of texts in a later part.
    let texts = folder.read("part1.csv").lines().enumerate().fold(String::new(), |all, (i, line)| {
        let cells: Vec<&str> = line.split(',').collect();
        let age = if i == 0 { cells[1].to_owned() } else { format!("age{}", cells[1]) };
        format!("{all}{},{age},{}\n", cells[0], cells[2..].join(","))
    });
    folder.write("texts.csv", texts);
    let mixed = format!("plan part0.csv texts.csv {}", options.replace("--out plan", "--out mixed"));
    folder.run_words(mixed.split_whitespace().map(String::from).collect::<Vec<_>>()).expect(0);
    folder.run_words(["run", "mixed", "--part", "0"]).expect(0);
    let mixed = folder.run_words(["run", "mixed", "--part", "1"]).expect(2).stderr;
    assert!(mixed.contains("part 1") && mixed.contains("texts.csv") && mixed.contains("age"), "{mixed}");

    plan(&files.join(" ")).expect(0);
    let run = |part: &str| folder.run_words(["run", "plan", "--part", part]);
    assert!(run("3").expect(2).stderr.contains("0 to 2"));
    let unknown = folder.run_words(["run", "plan", "--pass", "09-fit", "--part", "0"]).expect(2);
    assert!(unknown.stderr.contains("01-profile"), "{}", unknown.stderr);
    // A digit in the middle of a file changes, nothing else.
    let text = folder.read("part1.csv");
    let middle = text[text.len() / 2..].find("0.").unwrap() + text.len() / 2 + 3;
    let other = if &text[middle..=middle] == "5" { "6" } else { "5" };
    folder.write("part1.csv", format!("{}{other}{}", &text[..middle], &text[middle + 1..]));
    let changed = run("1").expect(2);
    assert!(
        changed.stderr.contains("part 1") && changed.stderr.contains("part1.csv has changed"),
        "{}",
        changed.stderr
    );
    std::fs::remove_file(folder.path("part1.csv")).unwrap();
    let gone = run("1").expect(2);
    assert!(gone.stderr.contains("part 1") && gone.stderr.contains("part1.csv"), "{}", gone.stderr);
    folder.write("part1.csv", &text);
    (0..3).for_each(|k| drop(run(&k.to_string()).expect(0)));
    // An answer that is damaged, one in the place of another, one that was cut short.
    let answer = |part: usize| folder.path(&format!("plan/passes/01-profile/part-0000{part}"));
    let whole = std::fs::read(answer(2)).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    for bytes in [damaged, std::fs::read(answer(1)).unwrap(), whole[..whole.len() - 9].to_vec(), vec![]] {
        std::fs::write(answer(2), bytes).unwrap();
        let refused = folder.run_words(["merge", "plan"]).expect(2);
        assert!(refused.stderr.contains("part 2"), "{}", refused.stderr);
    }
    std::fs::write(answer(2), whole).unwrap();
    // Gone between passes, which the driver notices too.
    folder.run_words(["merge", "plan"]).expect(0);
    std::fs::remove_file(folder.path("part2.csv")).unwrap();
    assert!(folder.run_words(["run", "plan", "--part", "2"]).expect(2).stderr.contains("part 2"));
    assert!(folder.run_words(["merge", "plan"]).expect(2).stderr.contains("part2.csv"));
    // Another version.
    let plan = folder.read("plan/plan.json");
    let version = env!("CARGO_PKG_VERSION");
    folder.write("plan/plan.json", plan.replacen(&format!("\"{version}\""), "\"0.0.9\"", 1));
    let refused = folder.run_words(["run", "plan", "--part", "0"]).expect(2);
    assert!(refused.stderr.contains("0.0.9") && refused.stderr.contains(version), "{}", refused.stderr);
}
