//! `leakscope bound`, `calibrate` and `audit --secret` on a table.

mod common;

use common::{Folder, number, patients, text};
use serde_json::Value;

/// Folder with 300 patients.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("p.csv", text(&patients(300), ","));
    folder
}

const TABLE: &str = "--data p.csv --target dose --id patient --drop high,count,w --l2 0.01";

fn row<'a>(answer: &'a Value, name: &str, largest: bool) -> &'a Value {
    let all = answer["bounds"].as_array().expect("bounds");
    let is = |b: &&Value| b["name"] == name && b["largest_distance"].as_bool().unwrap_or(false) == largest;
    all.iter().find(is).unwrap_or_else(|| panic!("no bound {name}"))
}

/// Theorem 2 and algorithm 1 of the paper as they stand there, by bisection on the error t.
fn guo(p: &[f64], distance: f64, sigma: f64) -> f64 {
    let m = p.len() as f64;
    let information: f64 = p
        .iter()
        .map(|p| -p * (p + (1.0 - p) * (-distance * distance / (2.0 * sigma * sigma)).exp()).ln())
        .sum();
    let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
    let f = |t: f64| entropy - information + t * t.ln() + (1.0 - t) * (1.0 - t).ln() - t * (m - 1.0).ln();
    let (mut lo, mut hi) = (1e-12, 1.0 - 1.0 / m);
    for _ in 0..200 {
        let mid = 0.5 * (lo + hi);
        if f(mid) > 0.0 { lo = mid } else { hi = mid }
    }
    1.0 - lo
}

#[test]
fn every_record_gets_a_bound_and_attacks_stay_below() {
    let folder = folder();
    let line = format!(
        "bound {TABLE} --secret vkorc1 --sigma 0.5 --sigmas 0.05,0.2,1 --attacks --holdout 0.2 --trials 20000 --out o --json"
    );
    let answer = folder.run(&line).expect(0).json();
    assert_eq!(answer, folder.json("o/bound.json"));
    let data = &answer["data"];
    let p: Vec<f64> = data["secret"]["candidates"]
        .as_array()
        .expect("values")
        .iter()
        .map(|c| number(c, "/prior"))
        .collect();
    assert_eq!(p.len(), 3);
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let largest = number(data, "/distance/max");
    let expected = guo(&p, largest, 0.5);
    assert!((number(row(&answer, "fano-theorem2", true), "/success") - expected).abs() < 1e-9);
    // One number for all is the loosest, the records' own the tighter, in every quantile.
    let own = row(&answer, "fano-theorem2", false);
    assert!((number(own, "/worst/success") - expected).abs() < 1e-9);
    assert!(number(own, "/success") < expected);
    let centre = row(&answer, "best-centre", false);
    assert!(number(centre, "/worst/success") <= number(own, "/worst/success"));
    for quantile in ["p50", "p90", "p99", "max"] {
        let at = |b: &Value| number(b, &format!("/over_records/{quantile}"));
        assert!(at(centre) <= at(own) + 1e-9, "{quantile}");
    }
    assert!(
        answer["bounds"]
            .as_array()
            .expect("bounds")
            .iter()
            .all(|b| b["assumptions"].is_array() && b["source"].is_string())
    );
    // The curve: four noises, falling bounds, and no optimal attack above a mean.
    let curve = data["curve"].as_array().expect("curve");
    assert_eq!(curve.len(), 4);
    let best = |at: &Value| number(at, "/bounds/0/success");
    assert!(curve.windows(2).all(|w| best(&w[0]) >= best(&w[1])));
    for at in curve {
        let low = number(at, "/optimal/ci_low");
        assert!(
            at["bounds"].as_array().expect("bounds").iter().all(|b| number(b, "/success") >= low),
            "{at}"
        );
        assert!(number(at, "/epsilon_removal") > number(at, "/epsilon_secret"));
    }
    // Observed is marked as observed, bounds as bounds, in the same axes.
    let figure = &answer["figures"][0];
    let claims = |claim: &str| {
        figure["series"].as_array().expect("series").iter().filter(|s| s["claim"] == claim).count()
    };
    assert!(claims("bound") >= 4 && claims("observed") == 4 && claims("measured") == 0);
    assert_eq!(number(figure, "/chosen"), 0.5);
    assert_eq!(data["attacks"].as_array().expect("attacks").len(), 3 * 4);
    assert!(number(data, "/utility/without_noise") > 0.0);
    let page = folder.read("o/report.html");
    assert!(page.contains("easiest record") && page.contains("observed") && !page.contains("http://"));
    // The same seed gives the same numbers, whatever the threads.
    let again = folder.run(&line).expect(0).json();
    assert_eq!(answer["bounds"], again["bounds"]);
}

#[test]
fn numbers_and_classes_are_secrets_too() {
    let folder = folder();
    let answer =
        folder.run(&format!("bound {TABLE} --secret age --bins 3 --sigma 0.2 --json")).expect(0).json();
    assert_eq!(answer["candidates"], 3);
    let names: Vec<&Value> =
        answer["estimation"].as_array().expect("estimates").iter().map(|e| &e["error"]["theorem"]).collect();
    // with the table's average information van Trees is an estimate, no bound
    assert_eq!(names, ["cramer-rao"]);
    // Logistic regression: models refitted by Newton.
    let logistic = "--data p.csv --target high --drop patient,dose,count,w --model logistic --l2 0.05";
    let answer = folder
        .run(&format!("bound {logistic} --secret vkorc1 --sigma 0.5 --trials 2000 --json"))
        .expect(0)
        .json();
    assert!(number(&answer, "/bounds/0/success") < number(row(&answer, "fano-theorem2", true), "/success"));
    assert!(answer["data"]["curve"][0]["epsilon_removal"].is_null());
    // A prior that is given, and one that is counted without a model.
    let alone = folder
        .run(&format!("bound {TABLE} --secret vkorc1 --sigma 0.5 --prior 0.2,0.2,0.6 --json"))
        .expect(0)
        .json();
    assert_eq!(number(&alone, "/most_likely"), 0.6);
    let counted = folder
        .run("bound --data p.csv --secret vkorc1 --mechanism gaussian --sigma 1 --json")
        .expect(0)
        .json();
    let plain = folder.run(&format!("bound {TABLE} --secret vkorc1 --sigma 0.5 --json")).expect(0).json();
    assert_eq!(counted["most_likely"], plain["most_likely"]);
}

/// Coefficients of x and z per unit and the intercept: ridge on both columns standardised by their own values, by elimination.
fn ridge(x: &[f64], z: &[f64], y: &[f64], l2: f64) -> [f64; 3] {
    let n = y.len() as f64;
    let moments = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / n;
        (mean, (v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
    };
    let ((mx, sx), (mz, sz)) = (moments(x), moments(z));
    let mut system = [[0.0; 4]; 3];
    for ((x, z), y) in x.iter().zip(z).zip(y) {
        let row = [(x - mx) / sx, (z - mz) / sz, 1.0];
        for (i, a) in row.iter().enumerate() {
            row.iter().chain([y]).enumerate().for_each(|(j, b)| system[i][j] += a * b);
        }
    }
    system[0][0] += n * l2;
    system[1][1] += n * l2;
    for i in 0..3 {
        for k in (0..3).filter(|&k| k != i) {
            let factor = system[k][i] / system[i][i];
            (0..4).for_each(|j| system[k][j] -= factor * system[i][j]);
        }
    }
    let [a, b, c] = [0, 1, 2].map(|i| system[i][3] / system[i][i]);
    [a / sx, b / sz, c - a * mx / sx - b * mz / sz]
}

/// Another value of a number moves the scale of its column: distances are those of models that were standardised anew.
#[test]
fn the_scale_of_a_secret_number_is_counted() {
    let x = [1.0, 5.0, 1.0, 1.0, 5.0, 1.0, 5.0, 1.0, 1.0];
    let z = [0.3, -1.0, 2.0, 0.7, 0.1, -0.4, 1.5, -2.2, 0.9];
    let y = [2.0, 7.5, 1.0, 2.5, 8.0, 1.0, 9.5, 0.5, 2.0];
    let rows: String = (0..9).map(|i| format!("{},{},{}\n", x[i], z[i], y[i])).collect();
    let folder = Folder::new();
    folder.write("t.csv", format!("x,z,y\n{rows}"));
    let line = "bound --data t.csv --target y --secret x --sigma 1 --l2 0.4 --trials 0 --json";
    let answer = folder.run(line).expect(0).json();
    assert_eq!(answer["data"]["scaling_given"], false);
    let text = answer["warnings"].to_string();
    assert!(!text.contains("taken as given"), "{text}");
    let spread = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / 9.0;
        (mean, (v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 9.0).sqrt())
    };
    let ((mx, sx), (mz, sz)) = (spread(&x), spread(&z));
    let mut largest = 0.0_f64;
    for i in 0..9 {
        let [one, other] = [1.0, 5.0].map(|value| {
            let mut changed = x;
            changed[i] = value;
            let [a, b, c] = ridge(&changed, &z, &y, 0.4);
            // In the units of the encoding, in which the noise is.
            [a * sx, b * sz, c + a * mx + b * mz]
        });
        let apart: f64 = one.iter().zip(&other).map(|(a, b)| (a - b).powi(2)).sum();
        largest = largest.max(apart.sqrt());
    }
    assert!((number(&answer, "/data/distance/max") / largest - 1.0).abs() < 1e-9, "{largest}");
    // Without an intercept nothing takes a moved mean up: that is said.
    let plain = folder.run(&format!("{line} --no-intercept")).expect(0).json();
    assert_eq!(plain["data"]["scaling_given"], true);
    assert!(plain["warnings"].to_string().contains("taken as given"));
}

#[test]
fn calibration_on_a_table_meets_its_target_from_the_safe_side_and_says_what_it_costs() {
    let folder = folder();
    let audit = |sigma: f64| {
        folder
            .run(&format!("audit p.csv {} --sigma {sigma} --json", TABLE.replace("--data p.csv ", "")))
            .expect(0)
            .json()
    };
    for (statistic, pointer) in
        [("max", "/records/eta/max"), ("mean", "/records/eta/mean"), ("p99", "/records/eta/p99")]
    {
        let c = folder
            .run(&format!("calibrate {TABLE} --eta 0.3 --statistic {statistic} --json"))
            .expect(0)
            .json();
        let sigma = number(&c, "/sigma");
        assert!(number(&audit(sigma), pointer) <= 0.3, "{statistic}");
        assert!(number(&audit(0.999 * sigma), pointer) > 0.3, "{statistic}");
        assert_eq!(c["utility"]["on"], "training");
    }
    let c = folder.run(&format!("calibrate {TABLE} --sd age=40 --json")).expect(0).json();
    let sd = |sigma: f64| number(common::attribute(&audit(sigma), "age"), "/min_sd");
    let sigma = number(&c, "/sigma");
    assert!(sd(sigma) >= 40.0 * (1.0 - 1e-9) && sd(0.999 * sigma) < 40.0, "{sigma}");
    // A secret that nobody guesses more often, for every record and on average.
    for (over, pointer) in [("every-record", "/worst/success"), ("mean", "/success")] {
        let line = format!("calibrate {TABLE} --success 0.5 --secret vkorc1 --over {over} --json");
        let sigma = number(&folder.run(&line).expect(0).json(), "/sigma");
        let best = |sigma: f64| {
            let answer = folder
                .run(&format!("bound {TABLE} --secret vkorc1 --sigma {sigma} --trials 0 --json"))
                .expect(0)
                .json();
            let all = answer["bounds"].as_array().expect("bounds");
            all.iter().filter_map(|b| b.pointer(pointer).and_then(Value::as_f64)).fold(1.0, f64::min)
        };
        assert!(best(sigma) <= 0.5 && best(0.999 * sigma) > 0.5, "{over} {sigma}");
    }
    let c = folder.run(&format!("calibrate {TABLE} --eta 0.3 --holdout 0.25 --json")).expect(0).json();
    assert!(number(&c, "/utility/at_sigma") > number(&c, "/utility/without_noise"));
    assert_eq!(c["utility"]["on"], "held-out");
    let refused = folder.run(&format!("calibrate {TABLE} --sd nosuch=5")).expect(2);
    assert!(refused.stderr.contains("--target-sd"), "{}", refused.stderr);
}

#[test]
fn the_audit_shows_the_bound_and_the_attacks_in_the_same_axes() {
    let folder = folder();
    let line = format!(
        "audit p.csv {} --sigma 0.3 --secret vkorc1 --seed 1 --out o",
        TABLE.replace("--data p.csv ", "")
    );
    folder.run(&line).expect(0);
    let audit = folder.json("o/audit.json");
    assert_eq!(number(&audit, "/secret/figures/0/chosen"), 0.3);
    assert!(audit["secret"]["data"]["attacks"].as_array().expect("attacks").len() >= 3);
    let page = folder.read("o/report.html");
    assert!(page.contains("Guessing vkorc1: the bound and the attacks") && page.contains("chosen: 0.3"));
    let with_coefficients = format!("{line}2 --coefficients o/audit.json");
    let refused = folder.run(&with_coefficients).expect(2);
    assert!(refused.stderr.contains("--secret"), "{}", refused.stderr);
}

#[test]
fn pages_of_curves_and_accounts_are_written_whole_or_not_at_all() {
    let folder = folder();
    folder.run("account --sigma 1 --rate 0.01 --steps 100 --delta 1e-5 --out a").expect(0);
    assert!(folder.read("a/report.html").contains("assumed"));
    assert_eq!(folder.json("a/account.json")["schema"], "leakscope.account/1");
    folder.run("bound --curve epsilon --out b").expect(0);
    assert!(folder.read("b/report.html").contains("M = 10,000,000,000"));
    let before = folder.files("b");
    folder.run("bound --curve epsilon --candidates 1 --out b").expect(2);
    // A curve is drawn for what it says, and for nothing else.
    for ignored in ["epsilon --alpha 2", "epsilon --prior 0.5,0.5", "epsilon --mechanism gaussian --sigma 3"]
    {
        assert!(folder.run(&format!("bound --curve {ignored} --out b")).expect(2).stderr.contains("--"));
    }
    folder.run("bound --curve noise --mechanism gaussian --candidates 10 --sigma 3 --out b").expect(2);
    let above = folder.run("bound --curve epsilon --candidates 10 --at 5,6").expect(0).stdout;
    assert!(above.contains("not below one half"), "{above}");
    assert_eq!(before, folder.files("b"));
    folder.write("file", "x");
    assert!(folder.run("bound --curve epsilon --out file").expect(2).stderr.contains("--out"));
}

#[test]
fn bad_questions_about_tables_are_refused_with_advice() {
    let folder = folder();
    folder.write("e.csv", "1,0\n0,1\n0,x\n");
    folder.write("e2.json", "[[1, 0], [0]]");
    for (line, part) in [
        (format!("bound {TABLE} --sigma 1"), "--secret"),
        (format!("bound {TABLE} --secret vkorc1"), ""),
        (format!("bound {TABLE} --secret nothing --sigma 1"), "vkorc1"),
        (format!("bound {TABLE} --secret dose --sigma 1"), "target"),
        (format!("bound {TABLE} --secret vkorc1 --sigma 0"), "--sigma"),
        (format!("bound {TABLE} --secret vkorc1 --sigma 1 --candidates 3"), "--candidates"),
        (format!("bound {TABLE} --secret vkorc1 --sigma 1 --mechanism gaussian"), "--mechanism"),
        (format!("bound {TABLE} --secret vkorc1 --sigma 1 --prior 0.5,0.5"), "--prior"),
        (format!("bound {TABLE} --secret vkorc1 --sigma 1 --pca 2"), "--pca"),
        ("bound --data p.csv --secret vkorc1 --sigma 1".into(), "--target"),
        ("bound --data p.csv --secret vkorc1 --mechanism gaussian --sigma 1 --l2 1".into(), "--l2"),
        ("bound --candidates 3 --mechanism gaussian --sigma 1 --encoding e.csv".into(), "line 3"),
        ("bound --candidates 2 --mechanism gaussian --sigma 1 --encoding e2.json".into(), "vector 2"),
        (format!("calibrate {TABLE} --eta 0.1 --rate 0.1"), "--rate"),
        (format!("calibrate {TABLE} --advantage 0.1"), "--target-eta"),
        (format!("calibrate {TABLE} --success 0.1 --secret vkorc1"), "without the model"),
        (format!("calibrate {TABLE} --sd nothing=3"), "nothing"),
        (format!("audit p.csv {} --secret nothing", TABLE.replace("--data p.csv ", "")), "--secret"),
    ] {
        let run = folder.run(&line);
        if part.is_empty() {
            // Without a noise there is a curve over the default ones.
            assert_eq!(run.code, 0, "{line}: {}", run.stderr);
            continue;
        }
        assert_eq!(run.code, 2, "{line}: {} {}", run.stderr, run.stdout);
        assert!(run.stderr.contains(part), "{line}: {}", run.stderr);
        assert!(run.stdout.is_empty(), "{line}");
    }
}

#[test]
fn the_noise_that_a_page_of_bounds_names_makes_it_green() {
    let folder = folder();
    let page = |sigma: &str| {
        folder
            .run(&format!("bound {TABLE} --secret vkorc1 --sigma {sigma} --trials 0 --out o"))
            .expect(0)
            .stdout
    };
    let before = page("0.05");
    assert!(before.starts_with("Not protected"), "{before}");
    let (_, after) = before.split_once("run it again with --sigma ").expect("a recommendation");
    let sigma = after.split_whitespace().next().expect("a number").trim_end_matches('.');
    assert!(page(sigma).starts_with("Little to gain"), "{sigma}: {}", page(sigma));
    assert!(!page(sigma).contains("run it again"));
}
