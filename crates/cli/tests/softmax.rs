//! Softmax regression through every command: two classes are the logistic model, three end to end, and what is published of
//! a release lies on the public lattice.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, number, without_scripts};
use serde_json::Value;

/// A table of two numbers and a category with classes by name, from a plain generator: the same for everybody.
fn table(classes: &[&str], rows: usize, seed: u64) -> String {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut text = String::from("age,dose,site,species\n");
    for i in 0..rows {
        let (age, dose, site) = (20.0 + 60.0 * uniform(), -10.0 * uniform().ln(), i % 3);
        let score: Vec<f64> = (0..classes.len())
            .map(|k| {
                let pull = (age - 50.0) / 17.0 * (k as f64 - 0.5) + if site == k { 0.7 } else { 0.0 };
                pull - (-uniform().ln()).ln()
            })
            .collect();
        let best = (0..classes.len()).fold(0, |b, k| if score[k] > score[b] { k } else { b });
        text += &format!("{age:.1},{dose:.2},{},{}\n", ["north", "south", "west"][site], classes[best]);
    }
    text
}

const TREES: [&str; 3] = ["ash", "birch", "cedar"];

fn folder(classes: usize, rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("t.csv", table(&TREES[..classes], rows, 9));
    folder.write("more.csv", table(&TREES[..classes], 80, 10));
    folder
}

fn json(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("{line} --json")).expect_released().json()
}

/// λ halves, since two opposite vectors share it, and noise σ on both is √2σ on their difference.
#[test]
fn two_classes_are_the_logistic_model_in_every_command() {
    let folder = folder(2, 120);
    let root = 2_f64.sqrt();
    let both = |softmax: &str, logistic: &str| {
        let common = "t.csv --target species --test more.csv --seed 3";
        let of = |(command, rest): (&str, &str)| {
            let (command, data) = match command {
                "bound" | "calibrate" => (command, "--data "),
                _ => (command, ""),
            };
            json(&folder, &format!("{command} {data}{common} {rest}"))
        };
        let (command, rest) = softmax.split_once(' ').unwrap();
        let a = of((command, &format!("--model softmax --l2 0.08 {rest}")));
        let (command, rest) = logistic.split_once(' ').unwrap();
        (a, of((command, &format!("--model logistic --l2 0.04 {rest}"))))
    };
    let same = |a: &Value, b: &Value, path: &str, factor: f64, tolerance: f64| {
        let (a, b) = (number(a, path), number(b, path));
        assert!((a / b / factor - 1.0).abs() < tolerance, "{path}: {a} {b}");
    };
    let sigmas = [0.05, 0.4];
    let list = |factor: f64| sigmas.map(|s| format!("{}", s * factor)).join(",");
    let attacks = "--secret site --attacks white-box,white-box-prior,informed --trials 40 --balance 3";
    let (a, b) = both(
        &format!("attack {attacks} --sigmas {}", list(1.0)),
        &format!("attack {attacks} --sigmas {}", list(root)),
    );
    for results in ["results", "results_balanced"] {
        for i in 0..6 {
            same(&a, &b, &format!("/{results}/{i}/accuracy"), 1.0, 5e-3);
            same(&a, &b, &format!("/{results}/{i}/eta_mean"), 1.0, 1e-5);
        }
    }
    same(&a, &b, "/utility/points/0/1", 1.0, 1e-5);
    let (a, b) =
        both("bound --secret site --sigma 0.2", &format!("bound --secret site --sigma {}", 0.2 * root));
    let of = |v: &Value, i: usize| v["bounds"][i]["name"].as_str().unwrap().to_owned();
    for i in 0..4 {
        assert_eq!(of(&a, i), of(&b, i));
        same(&a, &b, &format!("/bounds/{i}/success"), 1.0, 2e-3);
    }
    same(&a, &b, "/data/most_exposed/distance", 1.0 / root, 1e-6);
    let (a, b) = both("calibrate --target-eta 0.5", "calibrate --target-eta 0.5");
    same(&a, &b, "/sigma", 1.0 / root, 1e-6);
    same(&a, &b, "/utility/at_sigma", 1.0, 1e-6);
    let (a, b) = both("calibrate --secret site --success 0.5", "calibrate --secret site --success 0.5");
    same(&a, &b, "/sigma", 1.0 / root, 2e-3);
    let (a, b) = both("balance --iterations 4 --out s", "balance --iterations 4 --out l");
    for i in 0..5 {
        same(&a, &b, &format!("/iterations/{i}/eta_mean"), 1.0 / root, 1e-6);
        same(&a, &b, &format!("/iterations/{i}/weight_max"), 1.0, 1e-6);
        same(&a, &b, &format!("/iterations/{i}/test_score"), 1.0, 1e-9);
    }
    let (a, b) = both(
        "audit --secret site --sigma 0.3 --out u",
        &format!("audit --secret site --sigma {} --out v", 0.3 * root),
    );
    same(&a, &b, "/secret/bounds/0/success", 1.0, 2e-3);
    let (a, b) = both(
        "audit --score more.csv --sigma 0.3 --out u",
        &format!("audit --score more.csv --sigma {} --out v", 0.3 * root),
    );
    same(&a, &b, "/score/eta/max", 1.0, 1e-6);
    same(&a, &b, "/score/eta/mean", 1.0, 1e-6);
    for rest in
        ["--noise-shape shaped --target-eta 3", "--noise-shape optimal --protect age,species --target-eta 2"]
    {
        let one_hot = "--one-hot drop-last";
        let (a, b) =
            both(&format!("audit {one_hot} {rest} --out u"), &format!("audit {one_hot} {rest} --out v"));
        for name in ["cost", "cost_isotropic", "gain", "lower_bound_on_cost"] {
            same(&a, &b, &format!("/noise/{name}"), 1.0, 2e-2);
        }
        same(&a, &b, "/records/eta/max", 1.0, 0.2);
        same(&a, &b, "/utility/at_sigma", 1.0, 1e-2);
    }
    let common = "release t.csv --target species";
    let a = json(&folder, &format!("{common} --model softmax --l2 0.08 --target-eta 0.5 --out r"));
    let b = json(&folder, &format!("{common} --model logistic --l2 0.04 --target-eta 0.5 --out q"));
    // σ is rounded up to a power of 2^¼, of which √2 is one.
    same(&a, &b, "/mechanism/sigma", 1.0 / root, 1e-5);
    same(&a, &b, "/measured/eta_max", 1.0, 1e-5);
    same(&a, &b, "/measured/eta_mean", 1.0, 1e-5);
    for i in 0..3 {
        same(&a, &b, &format!("/measured/tell/attributes/{i}/worst"), 1.0, 1e-4);
    }
    // W₁ − W₀ is the logistic vector: the noise of the difference is √2 of either, sampling errors are twice those of W₁.
    let error = |v: &Value, name: &str, quantity: &str| {
        let all = v["measured"]["inference"]["coefficients"].as_array().unwrap().clone();
        let entry = all.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("{name}"));
        entry[quantity].as_f64().unwrap()
    };
    for column in ["age", "dose", "(intercept)"] {
        let (ours, theirs) = (format!("birch: {column}"), column);
        let sampled = error(&a, &ours, "sampling_error") / error(&b, theirs, "sampling_error");
        assert!((sampled - 0.5).abs() < 1e-5, "{column}: {sampled}");
        let noise = error(&a, &ours, "noise_error") / error(&b, theirs, "noise_error");
        assert!((noise * root - 1.0).abs() < 1e-5, "{column}: {noise}");
    }
}

#[test]
fn three_classes_are_attacked_bounded_balanced_and_released() {
    let folder = folder(3, 150);
    let common = "t.csv --target species --model softmax --l2 0.05";
    let a = json(
        &folder,
        &format!("attack {common} --seed 4 --secret site --trials 40 --sigmas 0.01,0.1,10 --test more.csv"),
    );
    let at = |attack: &str, sigma: f64| {
        let all = a["results"].as_array().unwrap();
        let entry = all.iter().find(|r| r["attack"] == attack && r["sigma"] == sigma);
        number(entry.unwrap(), "/accuracy")
    };
    let baseline = number(&a, "/baseline/accuracy");
    assert!(at("white-box", 0.01) > baseline + 0.2 && at("informed", 0.01) > baseline + 0.1);
    assert!((at("white-box-prior", 10.0) - baseline).abs() < 0.1 && at("black-box", 0.01) >= baseline - 0.05);
    let b = json(
        &folder,
        &format!(
            "bound --data {common} --seed 4 --secret site --sigmas 0.03,0.3 --attacks white-box-prior,white-box,informed"
        ),
    );
    for point in b["data"]["curve"].as_array().unwrap() {
        let sigma = number(point, "/sigma");
        let least = |rows: &Value| {
            let all = rows.as_array().unwrap().iter().map(|r| r["success"].as_f64().unwrap());
            all.fold(1.0, f64::min)
        };
        let limit = least(&point["bounds"]);
        for r in b["data"]["attacks"].as_array().unwrap().iter().filter(|r| r["sigma"] == sigma) {
            assert!(number(r, "/ci_low") <= limit + 1e-12, "{r} beats {limit}");
        }
        assert!(number(&point["optimal"], "/value") <= limit + 0.05);
    }
    let c = json(
        &folder,
        &format!("balance {common} --attribute age --iterations 6 --weights-per hybrid --out b"),
    );
    let spread = |i: usize| {
        number(&c, &format!("/iterations/{i}/eta_std")) / number(&c, &format!("/iterations/{i}/eta_mean"))
    };
    let best = c["best"].as_u64().unwrap() as usize;
    assert!(best > 0 && spread(best) < spread(0));
    assert!(c["coefficients"].as_object().unwrap().contains_key("cedar: age"));
    // Published coefficients lie on the lattice of the public units, for every class.
    for k in 1..=2 {
        let r = json(&folder, &format!("release {common} --sigma 0.5 --budget-eta 100 --out r"));
        assert_eq!(r["composed"]["releases"], k);
        assert_eq!(r["subject"]["classes"], serde_json::json!(TREES));
        let (grid, units) = (number(&r, "/mechanism/grid"), &r["mechanism"]["units"]);
        let coefficients = r["coefficients"].as_object().unwrap();
        assert_eq!(coefficients.len(), 15);
        for tree in TREES {
            for (column, unit) in units.as_object().unwrap() {
                let steps = coefficients[&format!("{tree}: {column}")].as_f64().unwrap()
                    * number(unit, "/unit")
                    / grid;
                assert_eq!(steps.fract(), 0.0, "{tree}: {column}");
            }
        }
        let told = r["measured"]["tell"]["attributes"].as_array().unwrap();
        assert_eq!(told.len(), 4);
        assert!(told.iter().any(|t| t["label"] == true && t["among_all"]["levels"] == 3));
        let ours = number(&r, "/measured/eta_max");
        assert!(ours <= number(&r, "/eta/max"));
    }
    let model = folder.json("r/release-1/model.json");
    assert_eq!(model["family"], "softmax");
    assert_eq!(model["noise_error"].as_object().unwrap().len(), 15);
    let page = folder.read("r/release-2/report.html");
    assert!(page.contains("birch: age") && !page.contains("NaN"));
    let s = json(&folder, &format!("audit {common} --sigma 0.5 --secret site --score more.csv --out o"));
    assert!(number(&s, "/score/eta/max") > 0.0 && number(&s, "/secret/bounds/0/success") <= 1.0);
}

/// Shaped noise for three classes through every command: targets met, attacks within bounds, a covariance that says what the noise of
/// every coefficient is, coefficients that sum to zero.
#[test]
fn noise_for_classes_has_a_shape_in_every_command() {
    let folder = folder(3, 400);
    let common = "t.csv --target species --model softmax --l2 0.05 --one-hot drop-last";
    for shape in ["shaped", "optimal"] {
        let noise = format!("--noise-shape {shape} --target-eta 6");
        let a = json(&folder, &format!("audit {common} {noise} --test more.csv --out a"));
        assert!(number(&a, "/records/eta/max") <= 6.0 && number(&a, "/noise/largest_eta") <= 1.0 + 1e-9);
        assert!(number(&a, "/noise/cost") >= number(&a, "/noise/lower_bound_on_cost"));
        // Equal weights can cost more than round noise, where one record stands out; the cheapest cannot.
        let least = if shape == "optimal" { 2.0 } else { 0.5 };
        assert!(
            number(&a, "/noise/gain") > least
                && number(&a, "/noise/programme_gap") <= number(&a, "/noise/gap")
        );
        assert!(number(&a, "/noise/covariance_information") > 0.0);
        assert_eq!(a["noise"]["shapes"].as_array().unwrap().len(), 3);
        assert_eq!(a["noise"]["deviations"].as_object().unwrap().len(), 15);
        assert_eq!(a["noise"]["coefficients"][0], "birch against ash: age");
        assert_eq!(a["inference"]["coefficients"].as_array().unwrap().len(), 15);
        let page = without_scripts(&folder.read("a/report.html"));
        assert!(
            page.contains("What each shape costs") && page.contains("of the noise") && !page.contains("NaN")
        );
        let c = json(&folder, &format!("calibrate --data {common} {noise}"));
        assert!(number(&c, "/noise/gain") > least);
        let b = json(
            &folder,
            &format!("bound --data {common} {noise} --secret site --attacks white-box-prior --seed 1"),
        );
        let best = number(&b, "/bounds/0/success");
        for at in b["data"]["attacks"].as_array().unwrap() {
            let curve = b["data"]["curve"].as_array().unwrap();
            let here = curve.iter().find(|p| p["sigma"] == at["sigma"]).unwrap();
            let bound = here["bounds"].as_array().unwrap().iter().map(|r| r["success"].as_f64().unwrap());
            // An attack that is always right has an interval of no width.
            assert!(at["ci_low"].as_f64().unwrap() <= bound.fold(1.0, f64::min) + 1e-3, "{at}");
        }
        assert!(best <= 1.0);
        let seen = json(&folder, &format!("balance {common} {noise} --iterations 2 --out w"));
        assert_eq!(seen["bought"]["gains"].as_array().unwrap().len(), 4);
    }
    let sd = json(
        &folder,
        &format!("audit {common} --noise-shape optimal --target-sd age=20 --target-sd species=0.4 --out d"),
    );
    let age = sd["attributes"].as_array().unwrap().iter().find(|a| a["name"] == "age").unwrap();
    assert!(age["min_sd"].as_f64().unwrap() >= 20.0 && number(&sd, "/label/min_sd") >= 0.4);
    let line = format!("release {common} --noise-shape shaped --target-eta 3 --shape-from more.csv --out r");
    json(&folder, &line);
    let model = folder.json("r/release-1/model.json");
    assert_eq!(model["noise"]["coefficients"].as_array().unwrap().len(), 10);
    let sum: f64 = TREES.iter().map(|t| model["coefficients"][format!("{t}: age")].as_f64().unwrap()).sum();
    assert!(sum.abs() < 1e-9, "{sum}");
    // Ash has half of what birch has against ash and a third of the rest, by the covariance of the file: U Σ Uᵀ.
    let error = |t: &str| model["noise_error"][format!("{t}: age")].as_f64().unwrap();
    let f = &model["noise"]["factor"];
    let entry = |i: usize, j: usize| {
        let steps = f["entries"][i * (i + 1) / 2 + j].as_f64().unwrap();
        let scale = f["exponents"][i].as_f64().unwrap() + f["quarters"].as_f64().unwrap() / 4.0;
        steps * scale.exp2()
    };
    let covariance = |i: usize, j: usize| (0..=i.min(j)).map(|k| entry(i, k) * entry(j, k)).sum::<f64>();
    // age is the first column of five, in each of two contrasts.
    let (v11, v12, v22) = (covariance(0, 0), covariance(0, 5), covariance(5, 5));
    let (a, b) = (0.5_f64.sqrt(), 6_f64.sqrt().recip());
    let in_units = |u1: f64, u2: f64| u1 * u1 * v11 + 2.0 * u1 * u2 * v12 + u2 * u2 * v22;
    let [ash, birch, cedar] = [in_units(-a, -b), in_units(a, -b), in_units(0.0, 2.0 * b)].map(f64::sqrt);
    assert!((error("birch") / error("ash") / (birch / ash) - 1.0).abs() < 1e-9);
    assert!((error("cedar") / error("ash") / (cedar / ash) - 1.0).abs() < 1e-9);
    let page = folder.read("r/release-1/report.html");
    assert!(page.contains("contrasts of the classes") && !page.contains("NaN"));
}

#[test]
fn what_is_not_counted_for_classes_is_refused_with_what_to_do() {
    let folder = folder(3, 60);
    let common = "t.csv --target species --model softmax --l2 0.05";
    for (line, words) in [
        (
            format!("audit {common} --target-eta 1e-200 --noise-shape optimal"),
            vec!["--target-eta", "no shape"],
        ),
        (
            format!("audit {common} --target-eta 1e200 --noise-shape shaped"),
            vec!["--target-eta", "ask for more"],
        ),
        (format!("release {common} --sigma 1 --min-level-count 50"), vec!["class", "--min-level-count"]),
        (format!("attack {common} --seed 4 --secret species"), vec!["--secret", "target"]),
    ] {
        let run = folder.run(&format!("{line} --out o")).expect(2);
        for word in words {
            assert!(run.stderr.contains(word), "{line}: {}", run.stderr);
        }
        assert!(!folder.path("o/report.html").exists(), "{line}");
    }
}

#[test]
fn a_balanced_release_of_classes_counts_its_weights() {
    let folder = folder(3, 60);
    let common = "release t.csv --target species --model softmax --l2 0.05 --sigma 8";
    let code = |line: &str| folder.run(line);
    let plain = code(&format!("{common} --out plain"));
    let balanced = code(&format!("{common} --balance 2 --out balanced"));
    for run in [&plain, &balanced] {
        assert!(run.stdout.contains("largest η of a record at most"), "{}{}", run.stdout, run.stderr);
    }
    let statement = std::fs::read_to_string(folder.path("balanced/release-1/release.json")).unwrap();
    assert!(statement.contains("the weights of all records depend on each record, exactly"), "{statement}");
    assert!(statement.contains("2 iterations of balancing"), "{statement}");
    let model =
        |name: &str| std::fs::read_to_string(folder.path(&format!("{name}/release-1/model.json"))).unwrap();
    assert!(model("balanced").contains("softmax") && model("balanced") != model("plain"));
    // With targets for noise that would have a shape too: met with the weights counted.
    let line = "release t.csv --target species --model softmax --l2 0.05 --noise-shape optimal --target-eta 1 --balance 2 \
                --out isotropic";
    let run = code(line);
    assert!(run.stdout.contains("largest η of a record at most 1"), "{}{}", run.stdout, run.stderr);
    let measured = folder.json("isotropic/private/release-1.json")["measured"]["eta_max"].as_f64().unwrap();
    assert!(measured <= 1.0 && measured > 0.999 / 2_f64.powf(0.25), "{measured}");
}

/// The published fixed point makes equal what leaks with the weights held; what a release gives away is shown beside it.
#[test]
fn balancing_shows_leakage_with_its_weights_counted() {
    let folder = folder(3, 90);
    let common = "t.csv --target species --model softmax --l2 0.05 --scale none --sigma 1";
    let held = json(&folder, &format!("balance {common} --iterations 8 --out b"));
    let last = &held["iterations"][held["best"].as_u64().unwrap() as usize];
    let (counted, spread) =
        (&held["counted"], last["eta_std"].as_f64().unwrap() / last["eta_mean"].as_f64().unwrap());
    let of = |which: &str| counted[which]["spread"].as_f64().unwrap();
    assert!(of("kept") > 2.0 * spread, "{counted}, {spread}");
    assert!(of("at_most_even") <= of("kept"));
    let page = without_scripts(&folder.read("b/report.html"));
    assert!(page.contains("weights counted") && page.contains("most even after"), "{counted}");
    // Weights that are shared are not counted, and nothing is said.
    let shared = json(&folder, &format!("balance {common} --iterations 2 --weights-per class --out s"));
    assert!(shared["counted"].is_null());
}
