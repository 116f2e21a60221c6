//! `leakscope audit` and `leakscope demo` as a user runs them, one test for each thing they promise.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;
mod deviation;
mod encoding;
mod softmax;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use common::{Folder, assert_close, attribute, number, patients, root, text, timeless};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

const BASE: &str = "--target dose --id patient --drop high,count,w";

fn with_patients(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("patients.csv", text(&patients(rows), ","));
    folder
}

/// Fails where two audits differ by more than rounding.
fn assert_same(actual: &Value, expected: &Value, path: &str) {
    match (actual, expected) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{path}");
            // The gradient is what rounding left of zero.
            for (key, value) in a
                .iter()
                .filter(|(k, _)| !["created", "timings", "files", "gradient", "tables"].contains(&k.as_str()))
            {
                assert_same(value, &b[key], &format!("{path}/{key}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                assert_same(x, y, &format!("{path}/{i}"));
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            assert_close(a.as_f64().unwrap(), b.as_f64().unwrap(), 1e-9, path);
        }
        _ => assert_eq!(actual, expected, "{path}"),
    }
}

/// Writes a table as Parquet with row groups of `group` rows; columns that parse are numbers.
fn parquet(folder: &Folder, name: &str, table: &[Vec<String>], group: usize) {
    let columns: Vec<(String, ArrayRef)> = (0..table[0].len())
        .map(|j| {
            let cells: Vec<&str> = table[1..].iter().map(|row| row[j].as_str()).collect();
            let numbers: Result<Vec<f64>, _> = cells.iter().map(|c| c.parse()).collect();
            let array: ArrayRef = match numbers {
                Ok(numbers) => Arc::new(Float64Array::from(numbers)),
                Err(_) => Arc::new(StringArray::from(cells)),
            };
            (table[0][j].clone(), array)
        })
        .collect();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_format_gives_the_same_numbers() {
    let table = patients(240);
    let folder = Folder::new();
    folder.write("comma.csv", text(&table, ","));
    folder.write("tab.tsv", text(&table, "\t"));
    folder.write("semicolon.csv", text(&table, ";"));
    folder.write("bar.txt", text(&table, "|"));
    folder.write("bom.csv", format!("\u{feff}{}", text(&table, ",").replace('\n', "\r\n")));
    let quoted: Vec<Vec<String>> =
        table.iter().map(|row| row.iter().map(|c| format!("\"{c}\"")).collect()).collect();
    folder.write("quoted.csv", text(&quoted, ","));
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(text(&table, ",").as_bytes()).unwrap();
    folder.write("comma.csv.gz", gzip.finish().unwrap());
    parquet(&folder, "one.parquet", &table, 1 << 20);
    parquet(&folder, "groups.parquet", &table, 50);
    let (head, rest) = table.split_at(101);
    let rest: Vec<Vec<String>> = std::iter::once(&table[0]).chain(rest).cloned().collect();
    folder.write("first.csv", text(head, ","));
    folder.write("second.csv", text(&rest, ";"));
    parquet(&folder, "second.parquet", &rest, 64);

    let audit =
        |files: &str| folder.run(&format!("audit {files} {BASE} --group race --json")).expect(0).json();
    let expected = audit("comma.csv");
    for files in [
        "tab.tsv",
        "tab.tsv --delimiter tab",
        "semicolon.csv",
        "bar.txt",
        "bom.csv",
        "quoted.csv",
        "comma.csv.gz",
        "one.parquet",
        "groups.parquet",
        "first.csv second.csv",
        "first.csv second.parquet",
    ] {
        assert_same(&audit(files), &expected, files);
    }
}

#[test]
fn json_has_every_path_that_was_promised_and_stands_alone() {
    let folder = with_patients(200);
    let run = folder.run(&format!("audit patients.csv {BASE} --group race --json --out out")).expect(0);
    assert_eq!(run.stderr, "", "--json prints nothing else");
    let audit = run.json();
    for statistic in ["mean", "std", "min", "max", "p50", "p99"] {
        assert!(number(&audit, &format!("/records/eta/{statistic}")) > 0.0);
    }
    assert!(number(&audit, "/dataset/eta") >= number(&audit, "/records/eta/max"));
    for name in ["age", "height", "weight", "race", "amiodarone", "enzyme_inducer", "cyp2c9", "vkorc1"] {
        let a = attribute(&audit, name);
        for field in ["eta_mean", "eta_max", "eta_over_all_records", "min_sd"] {
            assert!(a[field].as_f64().is_some_and(|v| v > 0.0), "{name} {field}: {a}");
        }
    }
    let groups = audit["groups"].as_array().unwrap();
    assert_eq!(
        groups.iter().map(|g| g["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["asian", "black", "white"]
    );
    assert_eq!(groups.iter().map(|g| g["n"].as_u64().unwrap()).sum::<u64>(), 200);
    for field in ["eta", "eta_mean", "eta_median", "eta_max"] {
        assert!(groups.iter().all(|g| g[field].as_f64().unwrap() > 0.0));
    }
    let means: Vec<f64> = groups.iter().map(|g| g["eta_mean"].as_f64().unwrap()).collect();
    let ratio = means.iter().fold(0.0_f64, |m, v| m.max(*v)) / means.iter().fold(f64::MAX, |m, v| m.min(*v));
    assert_close(number(&audit, "/group_ratio"), ratio, 1e-12, "ratio between groups");
    assert_eq!((number(&audit, "/sigma"), number(&audit, "/n")), (1.0, 200.0));
    assert!(number(&audit, "/model/coefficients/age").is_finite());
    assert!(audit["model"]["coefficients"].get("(intercept)").is_some());
    for stage in ["read", "fit", "leakage", "report"] {
        assert!(number(&audit, &format!("/timings/{stage}")) >= 0.0);
    }
    assert_eq!(audit["schema"], "leakscope.audit/2");
    // What is printed is what is kept.
    assert_eq!(folder.json("out/audit.json"), audit);
}

#[test]
fn columns_are_listed_with_their_roles_and_types() {
    let folder = with_patients(200);
    let line = "audit patients.csv --target high --id patient --weights w --drop count,dose --model logistic --group \
                race --l2 0.01 --categorical age";
    let run = folder.run(&line.replace("--categorical age", "")).expect(0);
    let listing: String = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        listing.starts_with(
            "columns: numbers age, height, weight; categories race (3 levels), amiodarone (2 levels), \
             enzyme_inducer (2 levels), cyp2c9 (4 levels), vkorc1 (3 levels); target high (no = 0, yes = 1); \
             groups race (3); weights w; id patient; left out count, dose"
        ),
        "{listing}"
    );
    assert!(
        listing.ends_with("--out DIR keeps the report, the audit as JSON and a table of records"),
        "{listing}"
    );
    assert!(run.stdout.ends_with('\n'));
    assert_eq!(folder.run(&format!("{line} --quiet")).expect(0).stderr, "");
    let audit = folder.run(&format!("{line} --json")).expect(0).json();
    let roles: Vec<(&str, &str, &str)> = audit["data"]["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["kind"].as_str().unwrap(), c["role"].as_str().unwrap()))
        .collect();
    for expected in [
        ("age", "category", "feature"),
        ("height", "number", "feature"),
        ("race", "category", "feature, group"),
        ("high", "category", "target"),
        ("w", "number", "weights"),
        ("patient", "category", "id"),
        ("dose", "unread", "dropped"),
    ] {
        assert!(roles.contains(&expected), "{expected:?} in {roles:?}");
    }
}

#[test]
fn a_target_fixes_the_noise() {
    let folder = with_patients(200);
    let audit = |more: &str| folder.run(&format!("audit patients.csv {BASE} --json {more}")).expect(0).json();
    let unit = audit("");
    for statistic in ["max", "mean", "p99"] {
        let met = audit(&format!("--target-eta 0.25 --statistic {statistic}"));
        let actual = number(&met, &format!("/records/eta/{statistic}"));
        assert_close(actual, 0.25, 1e-11, statistic);
        assert!(actual <= 0.25, "{statistic} must be met: {actual}");
        // η is proportional to 1/σ.
        let sigma = number(&unit, &format!("/records/eta/{statistic}")) / 0.25;
        assert_close(number(&met, "/sigma"), sigma, 1e-11, statistic);
        assert_eq!(met["sigma_source"]["statistic"], statistic);
    }
    for (name, value) in [("age", 12.0), ("race", 3.0)] {
        let met = audit(&format!("--target-sd {name}={value}"));
        let actual = attribute(&met, name)["min_sd"].as_f64().unwrap();
        assert_close(actual, value, 1e-11, name);
        let sigma = value / attribute(&unit, name)["min_sd"].as_f64().unwrap();
        assert_close(number(&met, "/sigma"), sigma, 1e-11, name);
        // Four releases need twice the noise.
        let four = audit(&format!("--target-sd {name}={value} --releases 4"));
        assert_close(number(&four, "/sigma"), 2.0 * sigma, 1e-11, name);
    }
}

#[test]
fn limits_set_the_exit_code() {
    let folder = with_patients(200);
    let line = format!("audit patients.csv {BASE} --sigma 100");
    let eta = folder.run(&format!("{line} --json")).expect(0).json()["records"]["eta"].clone();
    for (name, field) in [("eta", "max"), ("p99", "p99"), ("mean", "mean")] {
        let value = eta[field].as_f64().unwrap();
        folder.run(&format!("{line} --fail-above {name}={}", value * 1.01)).expect(0);
        let over =
            folder.run(&format!("{line} --json --out {name} --fail-above {name}={}", value * 0.99)).expect(1);
        assert_eq!(over.json()["limits"][0]["ok"], false);
        assert_eq!(over.json()["limits"][0]["statistic"], name);
        // An audit over its limit is an answer: it is written.
        assert!(folder.read(&format!("{name}/report.html")).contains("Over the limit"));
    }
    // One of several is enough.
    let run = folder.run(&format!("{line} --fail-above eta=1000 --fail-above mean=1e-9")).expect(1);
    assert!(run.stdout.contains("OVER THE LIMIT"), "{}", run.stdout);
}

#[test]
fn results_are_private_complete_and_of_one_run() {
    let folder = with_patients(200);
    folder
        .run(&format!("audit patients.csv {BASE} --out out/deep --score patients.csv --format csv"))
        .expect(0);
    let names = |folder: &Folder| -> Vec<String> {
        let files = folder.files("out/deep");
        files.keys().map(|p| p.file_name().unwrap().to_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&folder), ["audit.json", "records.csv", "report.html", "scores.csv"]);
    let run = folder.run(&format!("audit patients.csv {BASE} --out out/deep")).expect(0);
    // Neither the table in the other format nor the scores belong to this audit.
    assert_eq!(names(&folder), ["audit.json", "records.parquet", "report.html"]);
    assert!(run.stderr.contains("wrote out/deep/report.html\n"), "{}", run.stderr);
    #[cfg(unix)]
    for path in folder.files("out/deep").keys() {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    let file = std::fs::File::open(folder.path("out/deep/records.parquet")).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let columns: Vec<String> = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(
        columns[..6],
        ["patient", "eta", "dfil", "loss", "gradient_norm", "eta_age"].map(String::from)
    );
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(|b| b.unwrap()).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 200);
    // The page is one file that shows no value of the table and asks nothing of the network.
    let page = folder.read("out/deep/report.html");
    for outside in ["src=\"http", "href=\"http", "@import", "url(http", "fetch("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn threads_change_no_bit() {
    let folder = Folder::new();
    let table = folder.run("demo --table --rows 20000 --seed 5").expect(0).stdout;
    folder.write("many.csv", table);
    for (model, more) in [("linear", ""), ("logistic", "--l2 1e-3 --holdout 0.1 --seed 3")] {
        let target = if model == "linear" { "dose" } else { "enzyme_inducer" };
        let line = format!(
            "audit many.csv --target {target} --id patient --group race --model {model} {more} --format csv -q"
        );
        for threads in [1, 2] {
            folder.run(&format!("{line} --threads {threads} --out {model}{threads}")).expect(0);
        }
        let one = |name: &str| folder.read(&format!("{model}1/{name}"));
        let two = |name: &str| folder.read(&format!("{model}2/{name}"));
        assert!(one("records.csv") == two("records.csv"), "{model}");
        let audits =
            [one("audit.json"), two("audit.json")].map(|t| timeless(serde_json::from_str(&t).unwrap()));
        assert_eq!(audits[0], audits[1], "{model}");
    }
}

/// Points are compared with the training records, so they are measured as these are: with the scaling of columns counted, or given.
#[test]
fn points_count_the_scaling_as_records_do() {
    let folder = with_patients(200);
    for more in ["--l2 0.05", "--l2 0.05 --scaling given"] {
        folder
            .run(&format!("audit patients.csv {BASE} {more} --format csv --out out -q --score patients.csv"))
            .expect(0);
        for (record, score) in folder.csv("out/records.csv").iter().zip(&folder.csv("out/scores.csv")) {
            let [a, b] = [record, score].map(|r| r["eta"].parse::<f64>().unwrap());
            assert_close(b, a, 1e-12, &format!("{more} {}", record["patient"]));
        }
    }
}

#[test]
fn points_are_scored_as_records_are() {
    let folder = with_patients(200);
    let line = format!("audit patients.csv {BASE} --scale none --format csv --out out -q");
    // Training records scored as points have the η they have as records.
    folder.run(&format!("{line} --score patients.csv")).expect(0);
    let (records, scores) = (folder.csv("out/records.csv"), folder.csv("out/scores.csv"));
    assert_eq!((records.len(), scores.len()), (200, 200));
    for (record, score) in records.iter().zip(&scores) {
        assert_eq!(record["patient"], score["patient"]);
        let [a, b] = [record, score].map(|r| r["eta"].parse::<f64>().unwrap());
        assert_close(b, a, 1e-12, &record["patient"]);
    }
    let audit = folder.json("out/audit.json");
    assert_eq!((&audit["score"]["labelled"], &audit["score"]["n"]), (&true.into(), &200.into()));

    // Without the target the model's prediction stands in: the same as a file that has it as the target.
    let table = patients(200);
    let weights = &audit["model"]["coefficients_original_units"];
    let predicted = |row: &[String]| -> f64 {
        let mut z = weights["(intercept)"].as_f64().unwrap();
        for (name, cell) in table[0].iter().zip(row) {
            match weights.get(name) {
                Some(w) => z += w.as_f64().unwrap() * cell.parse::<f64>().unwrap(),
                None => z += weights.get(format!("{name}={cell}")).map_or(0.0, |w| w.as_f64().unwrap()),
            }
        }
        z
    };
    let dose = table[0].iter().position(|n| n == "dose").unwrap();
    let mut with = table.clone();
    let mut without = table.clone();
    for (i, row) in table.iter().enumerate() {
        if i > 0 {
            with[i][dose] = predicted(row).to_string();
        }
        without[i].remove(dose);
    }
    folder.write("with.csv", text(&with, ","));
    folder.write("without.csv", text(&without, ","));
    folder.run(&format!("{line} --score with.csv")).expect(0);
    let labelled = folder.csv("out/scores.csv");
    let run = folder.run(&format!("{} --score without.csv", line.replace(" -q", ""))).expect(0);
    assert!(run.stdout.contains("η of scored points, median"), "{}", run.stdout);
    assert_eq!(folder.json("out/audit.json")["score"]["labelled"], false);
    for (a, b) in labelled.iter().zip(&folder.csv("out/scores.csv")) {
        let [x, y] = [a, b].map(|r| r["eta"].parse::<f64>().unwrap());
        assert_close(y, x, 1e-8, &a["patient"]);
    }
}

#[test]
fn utility_is_the_expected_error_on_rows_apart() {
    // E[(x'(w + b) − y)²] = (x'w − y)² + σ²‖x‖², with the intercept's one in x.
    let folder = with_patients(300);
    let table = patients(600);
    let test: Vec<Vec<String>> = std::iter::once(&table[0]).chain(&table[301..]).cloned().collect();
    folder.write("test.csv", text(&test, ","));
    let audit = folder
        .run(
            "audit patients.csv --target dose --id patient --scale none --sigma 0.01 --test test.csv --json --drop \
             high,count,w,race,amiodarone,enzyme_inducer,cyp2c9,vkorc1",
        )
        .expect(0)
        .json();
    let column = |name: &str| table[0].iter().position(|n| n == name).unwrap();
    let value = |row: &[String], name: &str| row[column(name)].parse::<f64>().unwrap();
    let w = |name: &str| audit["model"]["coefficients"][name].as_f64().unwrap();
    let (mut error, mut square) = (0.0, 0.0);
    for row in &test[1..] {
        let x = ["age", "height", "weight"].map(|n| (w(n), value(row, n)));
        let z = w("(intercept)") + x.iter().map(|(w, x)| w * x).sum::<f64>();
        error += (z - value(row, "dose")).powi(2) / 300.0;
        square += (1.0 + x.iter().map(|(_, x)| x * x).sum::<f64>()) / 300.0;
    }
    let utility = &audit["utility"];
    assert_eq!((&utility["metric"], &utility["rows"]), (&"mse".into(), &300.into()));
    assert_close(number(utility, "/without_noise"), error, 1e-9, "without noise");
    assert_close(number(utility, "/at_sigma"), error + 1e-4 * square, 1e-9, "with noise");
    let points = utility["points"].as_array().unwrap();
    assert!(points.iter().all(|p| {
        let expected = error + number(p, "/sigma").powi(2) * square;
        (number(p, "/value") / expected - 1.0).abs() < 1e-9
    }));
    let (low, high) = (number(&points[0], "/sigma"), number(points.last().unwrap(), "/sigma"));
    assert!(low < 0.01 && 0.01 < high, "the chosen noise is on the curve: {low} to {high}");

    // Held-out rows are not fitted to; a seed repeats the split, and one that was drawn is printed.
    let held =
        folder.run(&format!("audit patients.csv {BASE} --holdout 0.25 --seed 4 --json")).expect(0).json();
    let again =
        folder.run(&format!("audit patients.csv {BASE} --holdout 0.25 --seed 4 --json")).expect(0).json();
    assert_eq!(timeless(held.clone()), timeless(again));
    assert_eq!(number(&held, "/n") + number(&held, "/data/rows_held_out"), 300.0);
    assert_eq!(held["utility"]["rows"], held["data"]["rows_held_out"]);
    let drawn = folder.run(&format!("audit patients.csv {BASE} --holdout 0.25")).expect(0);
    assert!(drawn.stderr.contains("(drawn; give it with --seed to repeat this split)"), "{}", drawn.stderr);
}

#[test]
fn a_model_from_elsewhere_is_audited_as_it_stands() {
    let folder = with_patients(200);
    let line = format!("audit patients.csv {BASE} --l2 0.01 --group race");
    folder.run(&format!("{line} --out own -q")).expect(0);
    let own = folder.json("own/audit.json");
    let mut elsewhere = folder.run(&format!("{line} --coefficients own/audit.json --json")).expect(0).json();
    assert!(number(&elsewhere, "/model/distance/relative") < 1e-12);
    assert_eq!(elsewhere["warnings"], own["warnings"]);
    elsewhere["model"] = own["model"].clone();
    assert_same(&elsewhere, &own, "given");

    // A model that is off by a tenth in one coefficient says so, and by how much.
    let mut coefficients = own["model"]["coefficients"].clone();
    let age = coefficients["age"].as_f64().unwrap();
    coefficients["age"] = (age + 0.1).into();
    folder.write("off.json", coefficients.to_string());
    let off = folder.run(&format!("{line} --coefficients off.json --json")).expect(0).json();
    let norm =
        own["model"]["coefficients"].as_object().unwrap().values().map(|w| w.as_f64().unwrap().powi(2));
    assert_close(number(&off, "/model/distance/relative"), 0.1 / norm.sum::<f64>().sqrt(), 1e-8, "distance");
    assert_close(number(&off, "/model/distance/largest"), 0.1, 1e-8, "largest difference");
    assert_eq!(off["model"]["distance"]["largest_name"], "age");
    assert!(off["warnings"][0].as_str().unwrap().contains("away from the minimiser"));
    assert_eq!(number(&off, "/model/coefficients/age"), age + 0.1);
}

#[test]
fn classes_are_coded_as_asked() {
    let folder = with_patients(200);
    let line = "audit patients.csv --target high --id patient --drop dose,count,w --l2 0.01 --json";
    for model in ["logistic", "linear"] {
        let usual = folder.run(&format!("{line} --model {model}")).expect(0).json();
        let turned = folder.run(&format!("{line} --model {model} --positive no")).expect(0).json();
        assert_eq!(usual["data"]["classes"], serde_json::json!(["no", "yes"]));
        assert_eq!(turned["data"]["classes"], serde_json::json!(["yes", "no"]));
        // The mirrored problem has the mirrored solution and the same leakage.
        let w = |audit: &Value| number(audit, "/model/coefficients/age");
        assert_close(w(&turned), -w(&usual), 1e-9, model);
        for statistic in ["mean", "max"] {
            let pointer = format!("/records/eta/{statistic}");
            assert_close(number(&turned, &pointer), number(&usual, &pointer), 1e-9, model);
        }
        assert_eq!(usual["records"]["histogram"]["by"], "class");
    }
}

#[test]
fn missing_values_are_left_out_or_filled_in_where_asked() {
    let mut table = patients(200);
    let column = |name: &str| table[0].iter().position(|n| n == name).unwrap();
    let (age, race, dropped) = (column("age"), column("race"), column("count"));
    (table[3][age], table[9][age], table[12][race]) = ("".into(), "NA".into(), "unknown".into());
    table[20][dropped] = "".into(); // a column that is not used
    let folder = Folder::new();
    folder.write("gaps.csv", text(&table, ","));
    let complete: Vec<Vec<String>> = table
        .iter()
        .enumerate()
        .filter(|(i, _)| ![3, 9, 12].contains(i))
        .map(|(_, row)| row.clone())
        .collect();
    folder.write("complete.csv", text(&complete, ","));
    let line = format!("{BASE} --na unknown --json");
    let drop = folder.run(&format!("audit gaps.csv {line} --missing drop")).expect(0).json();
    assert_eq!((number(&drop, "/n"), number(&drop, "/data/rows_dropped")), (197.0, 3.0));
    let expected = folder.run(&format!("audit complete.csv {line}")).expect(0).json();
    assert_same(&drop["records"], &expected["records"], "records");
    assert_same(&drop["attributes"], &expected["attributes"], "attributes");
    assert!(drop["warnings"][0].as_str().unwrap().starts_with("3 rows have missing values"));
    let mean = folder.run(&format!("audit gaps.csv {line} --missing mean")).expect(0).json();
    assert_eq!(number(&mean, "/n"), 200.0);
    assert!(mean["warnings"][0].as_str().unwrap().contains("`age` 2, `race` 1"), "{}", mean["warnings"]);
}

#[test]
fn a_prior_and_a_unit_are_used() {
    let folder = with_patients(200);
    let line = format!("audit patients.csv {BASE} --sigma 5 --prior-sd age=2 --unit age=years");
    let audit = folder.run(&format!("{line} --json")).expect(0).json();
    let age = attribute(&audit, "age");
    assert_eq!((&age["prior_sd"], &age["unit"]), (&2.0.into(), &"years".into()));
    // Whoever knows it to ±2 is never worse than that, and gains something from the model.
    let rmse = number(age, "/min_rmse_with_prior/value");
    assert!(rmse < 2.0 && rmse > 1.0, "{rmse}");
    // The error over a whole record knows it, too: every attribute is its own coordinate.
    let without = folder.run(&format!("audit patients.csv {BASE} --sigma 5 --json")).expect(0).json();
    let [with, without] = [&audit, &without].map(|a| number(a, "/records/min_mse_with_prior/value"));
    assert!(with < without * 0.999, "{with} {without}");
    assert!(folder.run(&line).expect(0).stdout.contains(" years"));
}

#[test]
fn nearly_singular_columns_are_named_in_a_warning() {
    let mut table = patients(200);
    table[0].push("age_again".into());
    for (i, row) in table.iter_mut().enumerate().skip(1) {
        // The same up to a millionth that alternates.
        let nearly = row[1].parse::<f64>().unwrap() + 1e-5 * if i % 2 == 0 { 1.0 } else { -1.0 };
        row.push(nearly.to_string());
    }
    let folder = Folder::new();
    folder.write("near.csv", text(&table, ","));
    let audit = folder.run(&format!("audit near.csv {BASE} --json")).expect(0).json();
    assert!(number(&audit, "/model/condition") > 1e10);
    let warning = audit["warnings"][0].as_str().unwrap();
    assert!(warning.contains("along `age`, `age_again`:"), "{warning}");
}

#[test]
fn the_demo_leaves_a_report_and_spares_other_peoples_files() {
    let folder = Folder::new();
    let run = folder.run("demo --rows 500 --seed 9").expect(0);
    assert!(run.stderr.starts_with("$ leakscope audit "), "{}", run.stderr);
    assert!(run.stderr.ends_with("Open leakscope-demo/report.html in a browser.\n"), "{}", run.stderr);
    // The command that it shows is the command that gives the same audit.
    let shown = run.stderr.lines().next().unwrap().strip_prefix("$ leakscope ").unwrap().to_string();
    let demo = folder.json("leakscope-demo/audit.json");
    folder.run(&shown).expect(0);
    assert_eq!(timeless(folder.json("leakscope-demo/audit.json")), timeless(demo));
    folder.run("demo --rows 500 --seed 10").expect(0);

    let shipped = std::fs::read_to_string(root().join("examples/patients.csv")).unwrap();
    assert!(folder.run("demo --table").expect(0).stdout == shipped);
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.write("mine/patients.csv", "name,secret\nA,1\n");
    let run = folder.run("demo --out mine").expect(2);
    assert!(run.stderr.contains("not of the demo"), "{}", run.stderr);
    assert_eq!(folder.read("mine/patients.csv"), "name,secret\nA,1\n");
    assert_eq!(folder.files("mine").len(), 1);
}
