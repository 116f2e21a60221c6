//! Balance, attack and release as a user runs them: files, JSON, exit codes, and what bad input is answered with.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Place {
    dir: tempfile::TempDir,
}

/// Whether there is an answer; a release whose page is red has one too, and exits with 1.
fn answered(output: &Output) -> bool {
    let message = String::from_utf8_lossy(&output.stderr);
    output.status.success() || (output.status.code() == Some(1) && message.contains("this release is red"))
}

impl Place {
    /// A folder with a table of 400 synthetic patients.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("patients.csv"), leakscope_papers::patients::table(3, 400)).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, line: &str) -> Output {
        let binary = env!("CARGO_BIN_EXE_leakscope");
        Command::new(binary).args(line.split(' ')).current_dir(self.dir.path()).output().unwrap()
    }

    /// Runs a line that must succeed and reads its JSON from stdout.
    fn json(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --json"));
        assert!(answered(&output), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a line that must fail with a code, and gives what it said.
    fn refused(&self, line: &str, code: i32) -> String {
        let output = self.run(line);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{line}: {message}");
        assert!(!message.contains("panicked"), "{line}: {message}");
        message
    }
}

const MODEL: &str = "patients.csv --target dose --id patient --l2 0.01";

fn numbers(value: &Value, key: &str) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v[key].as_f64().unwrap()).collect()
}

fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0
}

#[test]
fn balance_equalises_and_writes_weights_model_and_page() {
    let place = Place::new();
    let answer = place.json(&format!("balance {MODEL} --holdout 0.2 --seed 4 --out out --format csv"));
    let steps = &answer["iterations"];
    for key in ["eta_mean", "eta_std", "eta_max", "train_score", "test_score"] {
        assert_eq!(numbers(steps, key).len(), 11, "{key}");
    }
    let (mean, std) = (numbers(steps, "eta_mean"), numbers(steps, "eta_std"));
    assert!(std[0] / mean[0] > 0.2 && std[10] / mean[10] < 0.02, "{std:?}");
    assert_eq!(answer["comparisons"][0]["variant"], "unweighted");
    let weights = std::fs::read_to_string(place.path("out/weights.csv")).unwrap();
    assert!(weights.starts_with("patient,weight,eta_before,eta,eta_unweighted\n"), "{}", &weights[..80]);
    let column: Vec<f64> =
        weights.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!((column.iter().sum::<f64>() / column.len() as f64 - 1.0).abs() < 1e-9);
    let page = std::fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(page.contains("Equal for whom") && page.contains("AM207") && !page.contains("NaN"));
    for file in ["weights.csv", "model.json", "balance.json", "report.html"] {
        assert!(is_private(&place.path(&format!("out/{file}"))), "{file}");
    }
    // The model that was written is the minimiser under the weights that were written.
    let dose = std::fs::read_to_string(place.path("patients.csv")).unwrap();
    let mut lines = dose.lines();
    let mut joined = format!("{},omega\n", lines.next().unwrap());
    let of: std::collections::HashMap<&str, &str> = weights
        .lines()
        .skip(1)
        .map(|l| (l.split(',').next().unwrap(), l.split(',').nth(1).unwrap()))
        .collect();
    for line in lines.filter(|l| of.contains_key(l.split(',').next().unwrap())) {
        joined.push_str(&format!("{line},{}\n", of[line.split(',').next().unwrap()]));
    }
    place.write("joined.csv", &joined);
    let audit = place.json("audit joined.csv --target dose --id patient --l2 0.01 --weights omega");
    let model: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out/model.json")).unwrap()).unwrap();
    for (name, value) in model["coefficients"].as_object().unwrap() {
        let refit = audit["model"]["coefficients"][name].as_f64().unwrap();
        assert!((refit - value.as_f64().unwrap()).abs() < 1e-9, "{name}");
    }
}

/// Dropping the first level is dropping the last one of levels in reverse order, whatever is asked.
#[test]
fn drop_first_gives_what_drop_last_gives_of_reversed_levels() {
    let place = Place::new();
    let table = std::fs::read_to_string(place.path("patients.csv")).unwrap();
    // Race and genotypes in reverse; those with two levels or one need none.
    let reversed = [
        ("asian", "z"),
        ("black", "m"),
        ("white", "b"),
        (",AA,", ",g9,"),
        (",AG,", ",g5,"),
        (",GG,", ",g1,"),
        (",yes,", ",1no,"),
    ];
    let reversed = reversed.iter().fold(table, |t, (from, to)| t.replace(from, to));
    place.write("reversed.csv", &reversed);
    let model = "--target dose --id patient --l2 0.01 --drop cyp2c9";
    let of = |command: &str, rest: &str| {
        let last = place.json(&format!("{command} patients.csv {model} {rest}"));
        let first = place.json(&format!("{command} reversed.csv {model} --one-hot drop-first {rest}"));
        (last, first)
    };
    let same = |a: &Value, b: &Value, pointer: &str| {
        let at =
            |v: &Value| v.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
        assert!((at(a) - at(b)).abs() <= 1e-9 * at(a).abs(), "{pointer}: {} against {}", at(a), at(b));
    };
    let (last, first) = of("audit", "--sigma 0.1");
    assert_eq!(
        (&last["data"]["one_hot"], &first["data"]["one_hot"]),
        (&"drop-last".into(), &"drop-first".into())
    );
    for pointer in ["/records/eta/mean", "/records/eta/max", "/dataset/eta"] {
        same(&last, &first, pointer);
    }
    let attribute = |audit: &Value, name: &str| {
        audit["attributes"].as_array().unwrap().iter().find(|a| a["name"] == name).unwrap().clone()
    };
    for name in ["race", "vkorc1", "age"] {
        let (a, b) = (attribute(&last, name), attribute(&first, name));
        assert_eq!(a["columns"].as_array().unwrap().len(), b["columns"].as_array().unwrap().len());
        for pointer in ["/eta_mean", "/eta_max", "/min_sd"] {
            same(&a, &b, pointer);
        }
        if name != "age" {
            same(&a, &b, "/sum_to_one/eta_max");
        }
    }
    let (last, first) = of("balance", "--attribute race --iterations 3");
    same(&last, &first, "/iterations/3/eta_std");
    // With next to no noise the attacker finds every value, so candidates are coded as the rows are.
    let (last, first) = of("attack", "--secret race --sigmas 1e-9 --trials 3 --attacks white-box --seed 1");
    same(&last, &first, "/eta_mean_at_unit_noise");
    same(&last, &first, "/results/0/accuracy");
    assert!(first["results"][0]["accuracy"].as_f64().unwrap() > 0.99, "{}", first["results"]);
}

#[test]
fn balance_of_an_attribute_accelerated_shows_the_published_one_beside_it() {
    let place = Place::new();
    let line = format!("balance {MODEL} --attribute race --update accelerated --iterations 14");
    let answer = place.json(&line);
    let published =
        answer["comparisons"].as_array().unwrap().iter().find(|c| c["variant"] == "weighted").unwrap();
    let spread = |steps: &Value| {
        let (mean, std) = (numbers(steps, "eta_mean"), numbers(steps, "eta_std"));
        std.last().unwrap() / mean.last().unwrap()
    };
    assert!(spread(&answer["iterations"]) < 0.3 * spread(&published["iterations"]));
    assert_eq!(published["update"], "published");
}

#[test]
fn an_unweighted_balance_says_that_it_does_not_converge_and_keeps_the_best() {
    let place = Place::new();
    let answer = place.json(&format!("balance {MODEL} --variant unweighted --iterations 200"));
    assert_eq!(answer["stopped"], "vanished");
    assert!(answer["warnings"][0].as_str().unwrap().contains("min_weight"));
    let (mean, std) = (
        numbers(&answer["iterations"], "eta_unweighted_mean"),
        numbers(&answer["iterations"], "eta_unweighted_std"),
    );
    let spreads: Vec<f64> = std.iter().zip(&mean).map(|(s, m)| s / m).collect();
    let best = answer["best"].as_u64().unwrap() as usize;
    assert!(spreads.iter().all(|s| *s >= spreads[best]));
}

#[test]
fn attacks_report_what_the_issue_names_and_repeat_with_their_seed() {
    let place = Place::new();
    let line = format!(
        "attack {MODEL} --secret race --sigmas 1e-6,0.01,100 --trials 20 --seed 9 --balance 5 --holdout 0.2"
    );
    let answer = place.json(&format!("{line} --out out"));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 12);
    let at = |attack: &str, sigma: f64| {
        results.iter().find(|r| r["attack"] == attack && r["sigma"].as_f64() == Some(sigma)).unwrap()
    };
    for r in results {
        let of = |key: &str| r[key].as_f64().unwrap();
        assert!(of("ci_low") <= of("accuracy") && of("accuracy") <= of("ci_high"));
        assert!(of("advantage") <= 1.0 && (0.0..=1.0).contains(&of("ci_low")) && of("ci_high") <= 1.0);
    }
    let baseline = answer["baseline"]["accuracy"].as_f64().unwrap();
    assert!(at("white-box", 1e-6)["accuracy"].as_f64().unwrap() > 0.99);
    assert!((at("white-box-prior", 100.0)["accuracy"].as_f64().unwrap() - baseline).abs() < 0.01);
    assert_eq!(answer["results_balanced"].as_array().unwrap().len(), 12);
    assert_eq!(answer["deciles"].as_array().unwrap().len(), 3 * 10 * 2);
    let again = place.json(&line);
    assert_eq!(answer["results"], again["results"]);
    let page = std::fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(page.contains("kind observed") && page.contains("no guarantee") && !page.contains("NaN"));
    assert!(!page.contains("kind proved"));
}

#[test]
fn numbers_are_secrets_in_bins_and_logistic_models_are_attacked_too() {
    let place = Place::new();
    let answer =
        place.json(&format!("attack {MODEL} --secret age --bins 3 --sigmas 1e-5 --trials 3 --seed 1"));
    assert_eq!(answer["secret"]["candidates"].as_array().unwrap().len(), 3);
    let mut table = "x,colour,y\n".to_owned();
    for i in 0..150_u64 {
        let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let colour = ["red", "green", "blue"][(noise % 3) as usize];
        let y = if (noise % 7 + i % 5) > 4 { "yes" } else { "no" };
        table.push_str(&format!("{},{colour},{y}\n", (noise % 1000) as f64 / 500.0 - 1.0));
    }
    place.write("colours.csv", &table);
    let line = "attack colours.csv --target y --model logistic --l2 0.05 --secret colour --sigmas 1e-7 --trials 2 --seed 1";
    let answer = place.json(line);
    for r in answer["results"].as_array().unwrap().iter().filter(|r| r["attack"] != "black-box") {
        assert!(r["accuracy"].as_f64().unwrap() > 0.9, "{r}");
    }
    let answer = place.json(&format!("{line} --candidates red,blue"));
    assert!(answer["left_out"].as_u64().unwrap() > 0);
}

#[test]
fn bad_input_is_answered_in_words() {
    let place = Place::new();
    let table = "a,one,level,y\n1,5,x,1\n2,5,x,0\n3,5,x,1\n4,5,x,2\n5,5,x,1\n7,5,x,3\n";
    place.write("flat.csv", table);
    for (line, part) in [
        ("attack flat.csv --target y --l2 0.1 --secret one", "one value"),
        ("attack flat.csv --target y --l2 0.1 --secret level", "one value"),
        ("attack flat.csv --target y --l2 0.1 --secret y", "is the target"),
        ("attack flat.csv --target y --l2 0.1 --secret nobody", "not an attribute"),
        ("attack flat.csv --target y --l2 0.1 --secret a --sigmas 0", "--sigmas"),
        ("attack flat.csv --target y --l2 0.1 --secret a --sigmas 0.1,-1", "--sigmas"),
        ("attack flat.csv --target y --l2 0.1 --secret a --trials 0", "--trials"),
        ("attack flat.csv --target y --l2 0.1 --secret a --bins 1", "--bins"),
        ("attack flat.csv --target y --l2 0.1 --secret a --bins 9 --candidates 1,99", "`99` is no value"),
        ("attack flat.csv --target y --l2 0.1 --secret a --bins 9 --candidates 1", "at least two"),
        ("attack flat.csv --target y --l2 0.1 --secret a --pca 1", "--pca"),
        ("balance flat.csv --target y --l2 0.1 --attribute level", "one value"),
        ("balance flat.csv --target y --l2 0.1 --attribute y", "is the target"),
        ("balance flat.csv --target y --l2 0.1 --sigma 0", "--sigma"),
        ("balance flat.csv --target y --l2 0.1 --weights-per class", "is no class: use sample"),
        ("balance flat.csv --target y --l2 0.1 --min-weight 2 --max-weight 1", "--min-weight"),
        ("balance flat.csv --target y --l2 0.1 --update accelerated --variant unweighted", "--update"),
        ("balance flat.csv --target y --l2 0.1 --min-weight -1", "--min-weight: -1: expected zero or"),
        ("balance flat.csv --target y --l2 0.1 --tolerance -1", "--tolerance: -1: expected zero"),
        ("balance flat.csv --target y --l2 0.1 --sigma -1", "--sigma: -1: expected a positive"),
        ("balance flat.csv --target y --l2 0.1 --attribute a --sum-to-one", "`a` is a number"),
        ("attack flat.csv --target y --l2 0.1 --secret a --format csv", "--format"),
        ("release flat.csv --target y --l2 0.1 --sigma 1 --statistic mean --out o", "--statistic"),
        ("release flat.csv --target y --l2 0.1 --sigma 1 --attribute a --out o", "--attribute"),
        ("release flat.csv --target y --l2 0.1 --target-eta -1 --out o", "--target-eta: -1"),
        ("balance flat.csv --target y", "l2"),
        ("release flat.csv --target y --l2 0.1 --sigma 0 --out o", "--sigma"),
        ("release flat.csv --target y --l2 0.1 --sigma -1 --out o", "--sigma"),
        ("release flat.csv --target y --l2 0.1 --sigma 1 --budget-eta 0 --out o", "--budget-eta"),
    ] {
        let message = place.refused(line, 2);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert!(!place.path("o/model.json").exists() && !place.path("o/ledger.json").exists());
}

#[test]
fn releases_add_up_in_the_ledger_and_stop_at_the_budget() {
    let place = Place::new();
    let line = format!("release {MODEL} --target-eta 0.1 --budget-eta 0.15 --out out");
    let first = place.json(&line);
    // The target is said; σ comes from a grid, so that what was measured lies a little below it.
    assert_eq!(first["eta"]["max"], 0.1);
    let measured = first["measured"]["eta_max"].as_f64().unwrap();
    assert!(measured <= 0.1 && measured > 0.1 / 1.19, "{measured}");
    let second = place.json(&line);
    assert_eq!(second["composed"]["releases"], 2);
    let total = second["composed"]["eta_max"].as_f64().unwrap();
    assert!((total / (0.1 * 2_f64.sqrt()) - 1.0).abs() < 1e-5);
    // Fresh noise every time, on the grid, of the right size.
    let noise: Vec<f64> = first["mechanism"]["units"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, unit)| {
            let at = |r: &Value| r["coefficients"][name].as_f64().unwrap();
            (at(&first) - at(&second)) * unit["unit"].as_f64().unwrap()
        })
        .collect();
    let sigma = first["mechanism"]["sigma"].as_f64().unwrap();
    let grid = first["mechanism"]["grid"].as_f64().unwrap();
    let rms = (noise.iter().map(|v| v * v).sum::<f64>() / noise.len() as f64).sqrt();
    assert!(rms > 0.2 * sigma && rms < 5.0 * sigma, "{rms} {sigma}");
    assert!(noise.iter().all(|v| (v / grid).fract() == 0.0));
    // Each in a folder of its own; the second did not replace the first.
    for (folder, statement) in [("release-1", &first), ("release-2", &second)] {
        let text = std::fs::read_to_string(place.path(&format!("out/{folder}/model.json"))).unwrap();
        let model: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(model["coefficients"], statement["coefficients"]);
        assert!(is_private(&place.path(&format!("out/{folder}/model.json"))));
    }
    // The budget is in the ledger: leaving it out next time does not lift it, and asking for more is refused.
    for (line, code) in [
        (line.as_str(), 1),
        (&format!("release {MODEL} --target-eta 0.1 --out out"), 1),
        (&format!("release {MODEL} --target-eta 0.1 --budget-eta 9 --out out"), 2),
    ] {
        let message = place.refused(line, code);
        assert!(message.contains("budget"), "{message}");
    }
    assert!(!place.path("out/release-3").exists());
    let ledger: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out/private/ledger.json")).unwrap())
            .unwrap();
    assert_eq!(ledger["releases"].as_array().unwrap().len(), 2);
    assert!(
        is_private(&place.path("out/private/ledger.json"))
            && is_private(&place.path("out/private/ledger.key"))
    );
    let page = std::fs::read_to_string(place.path("out/release-1/report.html")).unwrap();
    assert!(page.contains("discrete Gaussian"));
}

#[test]
fn a_balanced_model_is_released_with_less_noise_for_the_same_loss() {
    let place = Place::new();
    let plain = place.json(&format!("release {MODEL} --target-eta 0.1 --out plain"));
    let after = |iterations: usize, out: &str| {
        let line =
            format!("release {MODEL} --target-eta 0.1 --balance {iterations} --tell-budget 0 --out {out}");
        place.json(&line)
    };
    // How often is given; the owner is told when leakage would be most even.
    let remarks = after(10, "ten")["remarks"].to_string();
    let most_even = remarks.split_once("would be most even after ").unwrap().1;
    let most_even: usize = most_even.split(' ').next().unwrap().parse().unwrap();
    assert!(most_even < 10);
    let balanced = after(most_even, "balanced");
    assert!(!balanced["remarks"].to_string().contains("would be most even"));
    let sigma = |r: &Value| r["mechanism"]["sigma"].as_f64().unwrap();
    assert!(sigma(&balanced) < 0.5 * sigma(&plain), "{} {}", sigma(&balanced), sigma(&plain));
    let measured = |r: &Value, key: &str| r["measured"][key].as_f64().unwrap();
    let (mean, max) = (measured(&balanced, "eta_mean"), measured(&balanced, "eta_max"));
    // Counted, weights make leakage even, though not equal.
    assert!(
        mean > 0.75 * max && measured(&plain, "eta_mean") < 0.3 * measured(&plain, "eta_max"),
        "{mean} {max}"
    );
}

#[test]
fn a_ledger_of_other_data_a_damaged_one_and_a_locked_one_are_refused_and_kept() {
    let place = Place::new();
    place.json(&format!("release {MODEL} --sigma 1 --out out"));
    std::fs::write(place.path("other.csv"), leakscope_papers::patients::table(5, 200)).unwrap();
    let ledger = std::fs::read(place.path("out/private/ledger.json")).unwrap();
    let message = place.refused("release other.csv --target dose --id patient --sigma 1 --out out", 2);
    assert!(message.contains("other data"), "{message}");
    assert_eq!(std::fs::read(place.path("out/private/ledger.json")).unwrap(), ledger);
    // The owner may say that the data became others: on record, and the release before still counts.
    let changed = "release other.csv --target dose --id patient --sigma 1 --out out --data-changed joined";
    let answer = place.json(changed);
    assert_eq!(answer["composed"]["releases"], 2);
    assert!(answer["composed"]["eta_max"].as_f64() > answer["eta"]["max"].as_f64());
    let text = std::fs::read_to_string(place.path("out/private/ledger.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["data_changes"][0]["reason"], "joined");
    // A file that a killed process left is no lock.
    place.write("out/private/ledger.lock", "4711\n");
    place.json("release other.csv --target dose --id patient --sigma 1 --out out");
    // One that is held by a process that lives is.
    let lock = std::fs::File::open(place.path("out/private/ledger.lock")).unwrap();
    lock.lock().unwrap();
    let message = place.refused("release other.csv --target dose --id patient --sigma 1 --out out", 2);
    assert!(message.contains("another release holds the ledger"), "{message}");
    drop(lock);
    place.write("out/private/ledger.json", "{");
    let message = place.refused("release other.csv --target dose --id patient --sigma 1 --out out", 2);
    assert!(message.contains("damaged"), "{message}");
}

#[test]
fn releases_at_the_same_time_lose_no_line_of_the_ledger() {
    let place = Place::new();
    let line = format!("release {MODEL} --sigma 1 --out out --json");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| place.run(&line))).collect();
        for run in runs {
            let output = run.join().unwrap();
            assert!(answered(&output), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });
    let ledger: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out/private/ledger.json")).unwrap())
            .unwrap();
    assert_eq!(ledger["releases"].as_array().unwrap().len(), 6);
}

#[test]
fn a_ledger_adds_up_one_unit_of_loss_only() {
    let place = Place::new();
    place.json(&format!("release {MODEL} --sigma 1 --out out"));
    let kept = |name: &str| std::fs::read(place.path(&format!("out/{name}"))).unwrap();
    let names = ["private/ledger.json", "release-1/model.json", "release-1/release.json"];
    let before: Vec<_> = names.map(kept).into();
    for (more, part) in [
        ("--scale none", "scale was standard, now none"),
        ("--one-hot full", "one_hot was drop-last, now full"),
        ("--label public", "label was secret, now public"),
    ] {
        let line = format!("release {MODEL} --sigma 1 --out out {more}");
        let answer = place.refused(&line, 2);
        assert!(answer.contains(part) && answer.contains("another folder"), "{more}: {answer}");
        assert_eq!(names.map(kept).to_vec(), before, "{more}");
    }
    // A column less, another family or penalty: the steps of what is left are the same.
    let again =
        place.json("release patients.csv --target dose --id patient --drop height --sigma 1 --out out");
    assert_eq!(again["composed"]["releases"], 2);
    // The target of one model is a scaled column of the other.
    let swapped = place.refused("release patients.csv --target age --id patient --sigma 1 --out out", 2);
    assert!(swapped.contains("one unit of `age` was"), "{swapped}");
    // Ledgers from before do not say, and had no seal.
    let mut ledger: Value = serde_json::from_slice(&kept("private/ledger.json")).unwrap();
    ledger["releases"][0].as_object_mut().unwrap().remove("unit");
    ledger["schema"] = "leakscope.ledger/1".into();
    place.write("out/private/ledger.json", &ledger.to_string());
    let answer = place.refused(&format!("release {MODEL} --sigma 1 --out out"), 2);
    assert!(answer.contains("damaged"), "{answer}");
    std::fs::remove_file(place.path("out/private/ledger.key")).unwrap();
    let answer = place.refused(&format!("release {MODEL} --sigma 1 --out out"), 2);
    assert!(answer.contains("release 1") && answer.contains("does not say"), "{answer}");
}

#[test]
fn composed_loss_is_rounded_up() {
    let place = Place::new();
    let line = format!("release {MODEL} --sigma 0.1 --out out");
    for number in 1..=3_usize {
        let output = place.run(&line);
        let summary = String::from_utf8(output.stdout).unwrap();
        let ledger: Value =
            serde_json::from_str(&std::fs::read_to_string(place.path("out/private/ledger.json")).unwrap())
                .unwrap();
        let charged = ledger["releases"].as_array().unwrap();
        assert_eq!(charged.len(), number);
        let total = charged.iter().map(|r| r["eta_max"].as_f64().unwrap().powi(2)).sum::<f64>().sqrt();
        let shown = summary.split("of all together at most ").nth(1).unwrap();
        let shown: f64 = shown.split(".\n").next().unwrap().replace(',', "").parse().unwrap();
        assert!(shown >= total && shown <= 1.01 * total, "{shown} {total}");
        // It was measured, and so is not published.
        let page = std::fs::read_to_string(place.path(&format!("out/release-{number}/report.html"))).unwrap();
        assert!(!page.contains("η of a record is at most") && page.contains("stays in the owner"));
    }
}

#[test]
fn every_command_says_what_became_of_rows_and_columns() {
    let place = Place::new();
    let whole = std::fs::read_to_string(place.path("patients.csv")).unwrap();
    let mut lines: Vec<String> = whole.lines().map(|l| format!("{l},k")).collect();
    lines[0].push_str("onst,five");
    lines.iter_mut().skip(1).for_each(|l| l.push_str("x,5"));
    let mut cells: Vec<&str> = lines[7].split(',').collect();
    cells[1] = "";
    lines[7] = cells.join(",");
    place.write("gaps.csv", &lines.join("\n"));
    let line = "gaps.csv --target dose --id patient --l2 0.01 --missing drop --group race";
    for command in [
        format!("balance {line} --iterations 1"),
        format!("attack {line} --secret vkorc1 --trials 2"),
        format!("release {line} --sigma 1 --scale none --out out"),
    ] {
        // What is said of a release is for its owner: the statement itself says nothing about rows.
        let answer = place.json(&command);
        let warnings = answer.get("remarks").unwrap_or(&answer["warnings"]).to_string();
        for part in [
            "1 row has missing values and was left out",
            "One level only in the training rows: `konst`",
            "Constant in the training rows: `five`",
            "compared by an audit only",
        ] {
            assert!(warnings.contains(part), "{command}: no “{part}” in {warnings}");
        }
        // On stderr, unless nothing is wanted there.
        let message = place.run(&command);
        assert!(String::from_utf8_lossy(&message.stderr).contains("warning: Constant"), "{command}");
        let quiet = place.run(&format!("{command} -q"));
        assert!(answered(&quiet));
        // Why a release exits with 1 is no remark.
        let message = String::from_utf8_lossy(&quiet.stderr);
        assert!(message.lines().all(|line| line.starts_with("this release is red")), "{message}");
        assert!(!String::from_utf8_lossy(&quiet.stdout).contains("warning"), "{command}");
    }
}

#[test]
fn a_record_whose_weight_vanishes_is_called_by_its_name() {
    let place = Place::new();
    // One record that is all there is to a column, beside many that are alike.
    let mut table = String::from("id,x,z,y\n");
    for i in 0..40 {
        let x = f64::from(i % 7) - 3.0;
        let z = if i == 17 { 1e6 } else { 0.0 };
        table.push_str(&format!("rec-{i},{x},{z},{}\n", 2.0 * x + f64::from(i % 3)));
    }
    place.write("lone.csv", &table);
    let answer =
        place.json("balance lone.csv --target y --id id --l2 0.01 --variant unweighted --iterations 400");
    assert_eq!(answer["stopped"], "vanished");
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("The weight of record rec-17 fell"), "{warnings}");
}
