//! Every number of an audit against dense Jacobians: `testdata/make_audit_golden.py` encodes the table, fits the model
//! and forms every Jacobian on its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, assert_close, attribute, number, patients, root, text};
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

#[track_caller]
fn compare(actual: &Value, expected: &Value, names: &[&str], subject: &str) {
    for name in names {
        if let Some(expected) = expected.get(*name) {
            // A bound is a number with its theorem.
            let actual = actual[*name].get("value").unwrap_or(&actual[*name]);
            let actual = actual.as_f64().unwrap_or_else(|| panic!("{subject}: no {name}"));
            assert_close(actual, expected.as_f64().unwrap(), TOLERANCE, &format!("{subject}, {name}"));
        }
    }
}

/// The word after a flag.
fn number_after(line: &str, flag: &str) -> Option<String> {
    let rest = line.split(flag).nth(1)?;
    rest.split_whitespace().next().map(str::to_owned)
}

#[test]
fn audits_agree_with_dense_jacobians() {
    let text_of = std::fs::read_to_string(root().join("testdata/audit_golden.json")).unwrap();
    let golden: Value = serde_json::from_str(&text_of).unwrap();
    let (rows, every) = (golden["rows"].as_u64().unwrap(), golden["every"].as_u64().unwrap() as usize);
    let folder = Folder::new();
    folder.write("patients.csv", text(&patients(rows as usize), ","));
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let mut arguments = case["arguments"].as_str().unwrap().to_owned();
        if let (true, Some(l2)) = (arguments.contains("--weights"), number_after(&arguments, "--l2 ")) {
            // Weights are divided by their mean, the penalty is not.
            let mean = (1..=rows).map(|i| 0.5 + ((i - 1) % 4) as f64 / 2.0).sum::<f64>() / rows as f64;
            arguments = arguments
                .replace(&format!("--l2 {l2}"), &format!("--l2 {}", l2.parse::<f64>().unwrap() / mean));
        }
        folder
            // Jacobians of the papers take the scaling as given; `tell.rs` holds the counted ones against refits.
            .run(&format!(
                "audit patients.csv --id patient --format csv --out out -q --scaling given {arguments}"
            ))
            .expect(0);
        let audit = folder.json("out/audit.json");
        assert_eq!((audit["n"].as_u64(), &audit["d"]), (Some(rows), &case["d"]), "{name}");
        let coefficients = case["coefficients"].as_object().unwrap();
        assert_eq!(audit["model"]["coefficients"].as_object().unwrap().len(), coefficients.len(), "{name}");
        for (column, expected) in coefficients {
            let actual = audit["model"]["coefficients"][column].as_f64().unwrap();
            assert_close(actual, expected.as_f64().unwrap(), TOLERANCE, &format!("{name}, {column}"));
        }
        compare(
            &audit["records"]["eta"],
            &case["eta"],
            &["mean", "std", "min", "max", "p50", "p99"],
            &format!("{name}, η"),
        );
        compare(&audit["records"], case, &["min_mse", "min_mse_with_prior"], name);
        assert_close(number(&audit, "/dataset/eta"), number(case, "/dataset_eta"), TOLERANCE, name);
        let records = folder.csv("out/records.csv");
        assert_eq!(records.len(), rows as usize, "{name}");
        let column = |column: &str, expected: &Value| {
            for (record, expected) in records.iter().step_by(every).zip(expected.as_array().unwrap()) {
                let subject = format!("{name}, {column} of {}", record["patient"]);
                let actual: f64 = record[column].parse().unwrap();
                assert_close(actual, expected.as_f64().unwrap(), TOLERANCE, &subject);
            }
        };
        for measure in ["eta", "dfil", "loss", "gradient_norm"] {
            column(measure, &case["records"][measure]);
        }
        let attributes = case["attributes"].as_object().unwrap();
        assert_eq!(audit["attributes"].as_array().unwrap().len(), attributes.len(), "{name}");
        for (a, expected) in attributes {
            let actual = attribute(&audit, a);
            let subject = format!("{name}, {a}");
            let whole = ["eta_mean", "eta_max", "eta_over_all_records", "min_sd", "min_sd_typical"];
            compare(actual, expected, &whole, &subject);
            compare(actual, expected, &["population_sd", "min_rmse_with_prior"], &subject);
            column(&format!("eta_{a}"), &expected["eta"]);
            if let Some(constrained) = expected.get("sum_to_one") {
                compare(&actual["sum_to_one"], constrained, &whole[..3], &format!("{subject}, sum to one"));
                column(&format!("eta_{a}_sum_to_one"), &constrained["eta"]);
            }
        }
        let groups = case.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
        assert_eq!(audit["groups"].as_array().unwrap().len(), groups.len(), "{name}");
        for (actual, expected) in audit["groups"].as_array().unwrap().iter().zip(&groups) {
            assert_eq!((&actual["name"], &actual["n"]), (&expected["name"], &expected["n"]), "{name}");
            compare(actual, expected, &["eta", "eta_mean", "eta_median", "eta_max"], name);
        }
    }
}
