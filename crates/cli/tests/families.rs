//! Gamma, Tweedie, squared hinge and Huber models through every command, and audits against refits by the command line itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use serde_json::Value;

/// A table with a target for each family, from a plain generator: the same for everybody.
fn table(rows: usize, seed: u64, nudge: Option<(usize, f64)>) -> String {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut text = String::from("age,dose,site,cost,claim,class,far\n");
    for i in 0..rows {
        let (mut age, dose, site) = (uniform() * 4.0 - 2.0, -uniform().ln(), i % 3);
        let z = 0.5 * age - 0.3 * dose + [0.0, 0.4, -0.3][site];
        let noise = uniform() + uniform() + uniform() - 1.5;
        let class = if z + 1.5 * noise > 0.0 { "yes" } else { "no" };
        let claim = ((z + noise).exp() - 0.5).max(0.0);
        let far = z + if i % 9 == 0 { 20.0 } else { 0.4 } * noise;
        if let Some((row, by)) = nudge.filter(|n| n.0 == i) {
            assert_eq!(row, i);
            age += by;
        }
        let site = ["north", "south", "west"][site];
        text +=
            &format!("{age:.12},{dose:.12},{site},{:.12},{claim:.12},{class},{far:.12}\n", (z + noise).exp());
    }
    text
}

const MODELS: [(&str, &str); 4] = [
    ("cost", "--model gamma"),
    ("claim", "--model tweedie --power 1.4"),
    ("class", "--model squared-hinge"),
    ("far", "--model huber --huber-threshold 0.3"),
];

fn others(target: &str) -> String {
    ["cost", "claim", "class", "far"]
        .iter()
        .filter(|t| **t != target)
        .map(|t| format!("--drop {t} "))
        .collect()
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn json(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("{line} --json")).expect_released().json()
}

#[test]
fn every_command_takes_every_family() {
    let folder = Folder::new();
    folder.write("t.csv", table(120, 5, None));
    folder.write("more.csv", table(60, 6, None));
    for (target, model) in MODELS {
        let common = format!("t.csv --target {target} {}{model} --l2 0.05", others(target));
        let audit = json(&folder, &format!("audit {common} --sigma 0.5 --test more.csv --seed 1"));
        assert!(number(&audit["records"]["eta"]["max"]) > 0.0, "{target}");
        assert!(number(&audit["utility"]["at_sigma"]).is_finite(), "{target}");
        let family = audit["model"]["family"].as_str().unwrap();
        assert!(model.contains(family.split('(').next().unwrap()), "{family}");
        let tell = &audit["tell"];
        let refused = ["class", "far"].contains(&target);
        assert_eq!(tell["attributes"].as_array().unwrap().is_empty(), refused, "{target}: {tell}");

        let balanced = json(&folder, &format!("balance {common} --iterations 4"));
        let spread = |k: usize| number(&balanced["iterations"][k]["eta_std"]);
        assert!(spread(4) < spread(0), "{target}");
        let attacked =
            json(&folder, &format!("attack {common} --secret site --sigmas 0.001 --trials 5 --seed 2"));
        for result in attacked["results"].as_array().unwrap() {
            assert!((0.0..=1.0).contains(&number(&result["accuracy"])), "{target}: {result}");
        }
        json(&folder, &format!("bound --data {common} --secret site --sigma 0.5 --seed 1"));
        json(&folder, &format!("calibrate --data {common} --target-eta 0.5"));
        let released =
            folder.run(&format!("release {common} --sigma 0.5 --out out-{target} --tell-budget 1"));
        assert!([0, 1].contains(&released.code), "{target}: {}", released.stderr);
        assert!(folder.read(&format!("out-{target}/release-1/model.json")).contains(family), "{target}");
    }
}

/// η of an attribute is how far the printed coefficients move when the table is changed and fitted again.
#[test]
fn leakage_is_how_refits_move() {
    let (row, h) = (17, 1e-5);
    for (target, model) in MODELS {
        let folder = Folder::new();
        let mut moved: Vec<Vec<f64>> = vec![];
        let mut eta = 0.0;
        for (name, nudge) in [("at", 0.0), ("up", h), ("down", -h)] {
            folder.write(&format!("{name}.csv"), table(60, 5, Some((row, nudge))));
            let line = format!(
                "audit {name}.csv --target {target} {}{model} --l2 0.05 --scale none --sigma 0.5 --tell-budget 0 --label public \
                 --out {name} --format csv",
                others(target)
            );
            let audit = json(&folder, &line);
            let coefficients = audit["model"]["coefficients"].as_object().unwrap();
            moved.push(coefficients.values().map(number).collect());
            if name == "at" {
                let text = folder.read("at/records.csv");
                let mut lines = text.lines();
                let at = lines.next().unwrap().split(',').position(|c| c == "eta_age").unwrap();
                eta = lines.nth(row).unwrap().split(',').nth(at).unwrap().parse().unwrap();
            }
        }
        let step: f64 =
            moved[1].iter().zip(&moved[2]).map(|(a, b)| ((a - b) / (2.0 * h)).powi(2)).sum::<f64>().sqrt();
        assert!((step / 0.5 - eta).abs() <= 2e-4 * eta + 1e-6, "{target}: η {eta}, by refits {}", step / 0.5);
    }
}
