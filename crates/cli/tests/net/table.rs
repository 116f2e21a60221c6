//! Networks on the rows of a table: encoded as an audit does it, with attributes and their units.

use super::support::*;
use leakscope_net::io::Tensors;
use leakscope_net::random::{Generator, Purpose};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Patients: two numbers, a category of three levels, a target that depends on all, a budget.
fn patients(dir: &Path, n: usize) -> PathBuf {
    let mut rng = Generator::new(3, Purpose::Other, 0);
    let mut text = String::from("who,age,weight,race,budget,dose,high\n");
    for i in 0..n {
        let (age, weight) = (50.0 + 15.0 * rng.normal(), 70.0 + 12.0 * rng.normal());
        let race = ["asian", "black", "white"][i % 3];
        let dose = 20.0 - 0.2 * (age - 50.0) + 3.0 * (i % 3) as f64 + rng.normal();
        let high = if dose > 23.0 { "yes" } else { "no" };
        let budget = if i % 2 == 0 { 0.8 } else { 50.0 };
        writeln!(text, "p{i},{age:.3},{weight:.3},{race},{budget},{dose:.3},{high}").unwrap();
    }
    let path = dir.join("patients.csv");
    fs::write(&path, text).unwrap();
    path
}

/// Trains a linear network without noise in double precision.
fn trained(data: &Path, out: &Path, more: &[&str]) {
    let args = ["train", "--data", text(data), "--network", "linear", "--precision", "f64", "--seed", "2"];
    let about = [
        "--id",
        "who",
        "--out",
        text(out),
        "--batch",
        "20",
        "--epochs",
        "3",
        "--lr",
        "0.05",
        "--format",
        "csv",
    ];
    answered(&[&args[..], &about, more].concat());
}

/// A linear network with squared error: `∂g/∂x = [x wᵀ + r I; wᵀ]` (weights, then the bias), so that η² of a value on its
/// own is `(‖x‖² + 1) w² + 2 r w x + r²` over the noise, and that of a block is the largest eigenvalue of
/// `(‖x‖² + 1) w wᵀ + r (w xᵀ + x wᵀ) + r² I`. The test encodes the table itself.
#[test]
fn attributes_of_a_linear_network_have_the_closed_form() {
    let dir = tempfile::tempdir().unwrap();
    let (data, model, out) = (patients(dir.path(), 90), dir.path().join("model"), dir.path().join("audit"));
    trained(&data, &model, &["--target", "dose", "--drop", "budget,high", "--unit", "age=years"]);
    answered(&[
        "audit",
        "--model",
        text(&model),
        "--data",
        text(&data),
        "--sigma",
        "2",
        "--clip-kind",
        "none",
        "--trace",
        "exact",
        "--eta",
        "--records",
        "all",
        "--format",
        "csv",
        "--seed",
        "1",
        "--out",
        text(&out),
    ]);
    let weights = Tensors::from_bytes(&fs::read(model.join("model.safetensors")).unwrap()).unwrap();
    let w = weights.get::<f64>("layers.1.weight").unwrap().1;
    let b = weights.get::<f64>("layers.1.bias").unwrap().1[0];
    assert_eq!(w.len(), 4, "age, weight, asian, black");
    let (names, rows) = csv(&data);
    let numbers = |name: &str| column(&(names.clone(), rows.clone()), name);
    let standard = |v: &[f64]| {
        let n = v.len() as f64;
        let mean = v.iter().sum::<f64>() / n;
        let sd = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        (v.iter().map(|x| (x - mean) / sd).collect::<Vec<f64>>(), sd)
    };
    let ((age, age_sd), (weight, _), (dose, _)) =
        (standard(&numbers("age")), standard(&numbers("weight")), standard(&numbers("dose")));
    let table = csv(&out.join("records.csv"));
    assert_eq!(table.0[0], "who");
    assert_eq!(table.1[4][0], "p4");
    let found = ["eta_age", "eta_weight", "eta_race", "eta"].map(|name| column(&table, name));
    let mut most = 0.0_f64;
    for i in 0..90 {
        let is = |level: &str| f64::from(u8::from(rows[i][3] == level));
        let x = [age[i], weight[i], is("asian"), is("black")];
        let r = w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + b - dose[i];
        let square = x.iter().map(|v| v * v).sum::<f64>() + 1.0;
        let entry = |j: usize, k: usize| {
            let own = if j == k { r * r } else { 0.0 };
            (square * w[j] * w[k] + r * (w[j] * x[k] + x[j] * w[k]) + own) / 4.0
        };
        let (a, d, o) = (entry(2, 2), entry(3, 3), entry(2, 3));
        let race = 0.5 * (a + d) + (0.25 * (a - d).powi(2) + o * o).sqrt();
        for (found, wanted) in found.iter().zip([entry(0, 0).sqrt(), entry(1, 1).sqrt(), race.sqrt()]) {
            assert!((found[i] - wanted).abs() < 1e-9 * (1.0 + wanted), "{i}: {} {wanted}", found[i]);
        }
        // no attribute gives away more than the record
        assert!((0..3).all(|k| found[k][i] <= found[3][i] * (1.0 + 1e-3)));
        most = most.max(entry(0, 0).sqrt());
    }
    let audit = json(&out.join("audit.json"));
    let attributes = audit["attributes"].as_array().unwrap();
    assert_eq!(attributes.len(), 3);
    let of = |name: &str| attributes.iter().find(|a| a["name"] == name).unwrap();
    assert_eq!(of("age")["unit"], "years");
    // in years: sd/η of the most exposed record, never above
    let sd = of("age")["min_sd"].as_f64().unwrap();
    assert!(sd <= age_sd / most && sd > 0.999 * age_sd / most, "{sd} {}", age_sd / most);
    assert!((of("age")["eta_max"].as_f64().unwrap() - most).abs() < 1e-9);
    let ranking: Vec<f64> = attributes.iter().map(|a| a["eta_max"].as_f64().unwrap()).collect();
    assert!(ranking.is_sorted_by(|a, b| a >= b), "{ranking:?}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["id=\"attributes\"", "years", "p4", "race"] {
        assert!(page.contains(part), "{part}");
    }
    check_page(&page);
}

#[test]
fn classes_holdout_points_and_a_secret_label() {
    let dir = tempfile::tempdir().unwrap();
    let (data, model, out) = (patients(dir.path(), 300), dir.path().join("model"), dir.path().join("audit"));
    let more = [
        "--target",
        "high",
        "--drop",
        "budget,dose",
        "--holdout",
        "0.25",
        "--epsilon",
        "3",
        "--label",
        "secret",
        "--track",
        "--bounds",
        "age=0..120",
        "--bounds",
        "weight=20..200",
        "--scale",
        "bounds",
    ];
    let bounds: Vec<&str> = more.to_vec();
    trained(&data, &model, &bounds);
    let t = json(&model.join("training.json"));
    let (n, held) = (t["data"]["records"].as_u64().unwrap(), t["data"]["test_records"].as_u64().unwrap());
    assert!(n + held == 300 && (40..110).contains(&held), "{n} {held}");
    assert_eq!(t["data"]["target"], "high");
    // nothing was read off numbers; the levels were, and the statement says so
    let statement = t["privacy"]["statement"].as_str().unwrap();
    assert!(statement.contains("the levels of race") && !statement.contains("spread"), "{statement}");
    let records = csv(&model.join("records.csv"));
    assert_eq!(records.1.len() as u64, n);
    assert!(records.1.iter().all(|r| r[1] == "yes" || r[1] == "no"));
    assert!(model.join("private/encoding.json").is_file() && !model.join("encoding.json").exists());

    answered(&[
        "audit",
        "--model",
        text(&model),
        "--data",
        text(&data),
        "--score",
        text(&data),
        "--records",
        "all",
        "--trace",
        "exact",
        "--format",
        "csv",
        "--seed",
        "1",
        "--out",
        text(&out),
    ]);
    let audit = json(&out.join("audit.json"));
    // the rows that were trained on, by the same split
    assert_eq!(audit["data"]["records"].as_u64().unwrap(), n);
    assert_eq!(audit["warnings"].as_array().unwrap().len(), 0, "{}", audit["warnings"]);
    let names: Vec<&str> =
        audit["attributes"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert!(names.len() == 4 && names.contains(&"high"), "{names:?}");
    let label = audit["attributes"].as_array().unwrap().iter().find(|a| a["is_label"] == true).unwrap();
    assert_eq!(label["name"], "high");
    assert_eq!(csv(&out.join("scores.csv")).1.len(), 300);
    check_page(&fs::read_to_string(out.join("report.html")).unwrap());
}

/// A table of results is a table: Parquet in, a number to predict.
#[test]
fn parquet_and_budgets_by_column() {
    let dir = tempfile::tempdir().unwrap();
    let (data, model, out) = (patients(dir.path(), 80), dir.path().join("model"), dir.path().join("audit"));
    let about = ["--target", "dose", "--drop", "high", "--filter-budgets", "budget", "--sigma", "1.2"];
    trained(&data, &model, &about);
    let t = json(&model.join("training.json"));
    let filter = &t["filter"];
    // budgets come back from a column of weights over their mean: some units in the last place are lost, and none is gained
    for (at, given) in [(0, 0.8), (1, 50.0)] {
        let most = filter["budgets"][at].as_f64().unwrap();
        assert!(most <= given && given - most < 1e-14 * given, "{most} of {given}");
    }
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("budget that was given for it"));
    // those with little to spend drop out, the others stay; the table says when
    let records = csv(&model.join("records.csv"));
    let at = records.0.iter().position(|c| c == "dropped_after_steps").unwrap();
    let dropped: Vec<bool> = records.1.iter().map(|r| !r[at].is_empty()).collect();
    assert!(dropped.iter().enumerate().all(|(i, d)| *d <= (i % 2 == 0)), "{dropped:?}");
    assert_eq!(dropped.iter().filter(|d| **d).count() as u64, filter["dropped"].as_u64().unwrap());
    assert!(filter["dropped"].as_u64().unwrap() > 0, "{filter}");
    let curve: Vec<u64> =
        filter["taking_part"].as_array().unwrap().iter().map(|p| p[1].as_u64().unwrap()).collect();
    assert_eq!((curve[0], *curve.last().unwrap()), (80, 80 - filter["dropped"].as_u64().unwrap()));
    assert!(curve.is_sorted_by(|a, b| a >= b));
    let page = fs::read_to_string(model.join("report.html")).unwrap();
    assert!(page.contains("id=\"dropouts\"") && page.contains("Feldman and Zrnic"));
    check_page(&page);

    let columns =
        ["audit", "--model", text(&model), "--data", text(&data), "--seed", "1", "--out", text(&out)];
    answered(&columns);
    let (parquet, again) = (out.join("records.parquet"), dir.path().join("again"));
    trained(&parquet, &again, &["--target", "loss", "--drop", "label"]);
    assert_eq!(json(&again.join("training.json"))["data"]["records"], 80);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (data, out) = (patients(dir.path(), 40), dir.path().join("model"));
    let base = ["train", "--data", text(&data), "--network", "linear", "--out", text(&out), "--batch", "10"];
    let with = |more: &[&str]| refused(&[&base[..], more].concat());
    for (more, wanted) in [
        (&[][..], "--target: say which column"),
        (&["--id", "who"], "--id: it belongs to a table"),
        (&["--target", "dosis"], "dosis"),
        (&["--target", "race", "--id", "who"], "race"),
        (&["--target", "dose", "--id", "who", "--weights", "weight"], "--weights"),
        (&["--target", "dose", "--id", "who", "--group", "race"], "--group"),
        (&["--target", "dose", "--id", "who", "--limit", "5"], "--limit"),
        (&["--target", "dose", "--id", "who", "--normalize", "0,1"], "--normalize"),
        (&["--target", "dose", "--id", "who", "--holdout", "1.5"], "--holdout"),
        (&["--target", "dose", "--id", "who", "--unit", "size=cm"], "--unit"),
        (&["--target", "dose", "--id", "who", "--sigma", "1", "--filter-budgets", "nothing"], "nothing"),
    ] {
        let said = with(more);
        assert!(said.contains(wanted), "{more:?}: {said}");
    }
    // a model of arrays does not take a table
    let images = folder(24);
    let arrays = images.path().join("run");
    private(images.path(), &arrays, &["--steps", "2"]);
    let said = refused(&["audit", "--model", text(&arrays), "--data", text(&data)]);
    assert!(said.contains("encoding.json") && said.contains("--target"), "{said}");
    // nor the other way round
    trained(&data, &out, &["--target", "dose"]);
    let said = refused(&["audit", "--model", text(&out), "--data", text(images.path())]);
    assert!(said.contains("rows of a table"), "{said}");
}
