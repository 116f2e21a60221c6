//! Two values told apart: the numbers against refits of whole tables, the words against the numbers, and what is left out.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, assert_close, number, patients, text, without_scripts};
use leakscope_core::special::normal_cdf;
use serde_json::Value;

const BASE: &str =
    "--target dose --id patient --drop high,count,w,race,vkorc1,amiodarone,enzyme_inducer,cyp2c9";

fn told<'a>(audit: &'a Value, name: &str) -> &'a Value {
    let all = audit["tell"]["attributes"].as_array().unwrap();
    all.iter().find(|t| t["attribute"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

fn column(table: &[Vec<String>], name: &str) -> usize {
    table[0].iter().position(|n| n == name).unwrap()
}

/// Mean and standard deviation of a column.
fn moments(table: &[Vec<String>], j: usize) -> (f64, f64) {
    let x: Vec<f64> = table[1..].iter().map(|row| row[j].parse().unwrap()).collect();
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
}

/// Coefficients of the table fitted anew, in the encoded units of `base`.
fn refitted(folder: &Folder, table: &[Vec<String>], base: &[Vec<String>], options: &str) -> Vec<f64> {
    folder.write("changed.csv", text(table, ","));
    let audit = folder.run(&format!("audit changed.csv {options} --json")).expect(0).json();
    let original = audit["model"]["coefficients_original_units"].as_object().unwrap();
    let mut intercept = original["(intercept)"].as_f64().unwrap();
    let mut w = vec![];
    for (name, value) in original.iter().filter(|(name, _)| *name != "(intercept)") {
        let (mean, sd) = moments(base, column(base, name));
        let value = value.as_f64().unwrap();
        w.push(value * sd);
        intercept += value * mean;
    }
    w.push(intercept);
    w
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn a_table_whose_eta_is_zero_is_not_called_protected() {
    // Two values of y are coded ±1: w = 1/(1 + λ) = 0.5, and x w + (w x − y) = 0, so η is zero; x = 1 in place of −1 moves w
    // by 2/(n(1 + λ)).
    let n = 40;
    let rows: String = (0..n).map(|i| if i % 2 == 0 { "1,3\n" } else { "-1,-3\n" }).collect();
    let folder = Folder::new();
    folder.write("table.csv", format!("x,y\n{rows}"));
    let line = "audit table.csv --target y --l2 1 --no-intercept --scale none --label public --sigma 0.01";
    let run = folder.run(line).expect(0);
    assert!(run.stdout.contains("NOT PROTECTED"), "{}", run.stdout);
    let audit = folder.run(&format!("{line} --json")).expect(0).json();
    assert!(number(&audit, "/records/eta/max") < 1e-9);
    let x = told(&audit, "x");
    assert_eq!((&x["from"], &x["to"]), (&"-1".into(), &"1".into()));
    let truth = normal_cdf(0.5 * 2.0 / (f64::from(n) * 2.0) / 0.01);
    let worst = number(x, "/worst");
    assert!(worst >= truth && worst < truth + 1e-6, "{worst} {truth}");
}

#[test]
fn two_values_of_a_number_are_as_far_apart_as_refits_of_the_whole_table() {
    let table = patients(60);
    let folder = Folder::new();
    folder.write("patients.csv", text(&table, ","));
    let options = format!("{BASE} --l2 0.2 --sigma 0.3");
    let line = format!("audit patients.csv {options} --tell age=30,65 --json");
    let audit = folder.run(&line).expect(0).json();
    let age = told(&audit, "age");
    assert_eq!((&age["from"], &age["to"]), (&"30".into(), &"65".into()));
    let [id, j] = ["patient", "age"].map(|name| column(&table, name));
    let row = table.iter().position(|r| r[id] == age["worst_record"].as_str().unwrap()).unwrap();
    let with = |value: &str| {
        let mut changed = table.clone();
        changed[row][j] = value.into();
        refitted(&folder, &changed, &table, &options)
    };
    let truth = normal_cdf(0.5 * distance(&with("30"), &with("65")) / 0.3);
    let worst = number(age, "/worst");
    assert!(worst >= truth - 1e-9 && worst < truth + 1e-5, "{worst} {truth}");
    assert!(number(age, "/median") <= worst);
    // The label, by its quantiles: changing it changes no scaling.
    let dose = told(&audit, "dose");
    assert_eq!(dose["label"], true);
    let j = column(&table, "dose");
    let row = table.iter().position(|r| r[id] == dose["worst_record"].as_str().unwrap()).unwrap();
    let with = |value: &Value| {
        let mut changed = table.clone();
        changed[row][j] = value.as_str().unwrap().into();
        refitted(&folder, &changed, &table, &options)
    };
    let truth = normal_cdf(0.5 * distance(&with(&dose["from"]), &with(&dose["to"])) / 0.3);
    let worst = number(dose, "/worst");
    assert!(worst >= truth - 1e-9 && worst < truth + 1e-5, "{worst} {truth}");
}

/// Numbers between −1 and 1, without pattern.
fn noise(i: usize, j: usize) -> f64 {
    let mut x =
        (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// As the table of breast cancer: 30 columns that share a factor, a few records far out, classes nearly separable.
fn diagnoses() -> Vec<Vec<String>> {
    let mut table = vec![(0..30).map(|j| format!("x{j}")).chain(["diagnosis".into()]).collect::<Vec<_>>()];
    for i in 0..569 {
        let factor = 2.0 * noise(i, 100) + noise(i, 101);
        let far = 1.0 + 3.0 * noise(i, 102).abs().powi(8);
        let mut row: Vec<String> = (0..30).map(|j| format!("{:.4}", far * (factor + noise(i, j)))).collect();
        row.push(if factor + 0.4 * noise(i, 103) > 0.5 { "malignant" } else { "benign" }.into());
        table.push(row);
    }
    table
}

#[test]
fn a_diagnosis_that_can_be_told_is_not_green() {
    let table = diagnoses();
    let folder = Folder::new();
    folder.write("cancer.csv", text(&table, ","));
    let options = "--target diagnosis --model logistic --l2 0.1 --sigma 0.06";
    let run = folder.run(&format!("audit cancer.csv {options} --out out")).expect(0);
    let audit = folder.json("out/audit.json");
    assert!(number(&audit, "/label/min_sd") < 0.5, "{}", audit["label"]);
    let label = told(&audit, "diagnosis");
    let worst = number(label, "/worst");
    assert!(worst > 0.6, "{worst}");
    assert!(!run.stdout.starts_with("PROTECTED") && !run.stdout.contains("\nPROTECTED"), "{}", run.stdout);
    let page = folder.read("out/report.html");
    assert!(
        page.contains("diagnosis<br><span class=\"say\">the label</span>"),
        "the label is in the ranking"
    );
    // The truth, by fitting the table with the other class in place: 1e-6 is what the refits leave.
    let row = label["worst_record"].as_str().unwrap().parse::<usize>().unwrap();
    let mut changed = table.clone();
    let class = &mut changed[row][30];
    *class = if class == "benign" { "malignant" } else { "benign" }.into();
    let moved =
        distance(&refitted(&folder, &changed, &table, options), &refitted(&folder, &table, &table, options));
    let truth = normal_cdf(0.5 * moved / 0.06);
    assert!(worst >= truth - 1e-6 && worst < truth + 1e-4, "{worst} {truth}");
}

/// A table of ordinary incomes and one far out, at a noise that hides the ordinary ones: the one far out is told for certain by
/// whoever knows the rest, and the page says so. The models with either value in place are fitted by hand.
#[test]
fn a_value_far_out_is_told_where_typical_ones_are_not() {
    let folder = Folder::new();
    let far = 4000.0;
    let income = |i: usize| if i == 700 { far } else { (40.0 + 8.0 * noise(i, 1)).round() };
    // What goes with the one far out is as ordinary as can be.
    let y = |i: usize| if i == 700 { 50.0 } else { (30.0 + 0.5 * income(i) + 3.0 * noise(i, 2)).round() };
    let table = |value: f64| {
        let line = |i: usize| format!("p{i},{},{}\n", if i == 700 { value } else { income(i) }, y(i));
        "who,income,y\n".to_owned() + &(0..1000).map(line).collect::<String>()
    };
    folder.write("t.csv", table(far));
    let line = "audit t.csv --target y --id who --label public --l2 0.01 --sigma 1";
    let named = folder.run(&format!("{line} --tell income=35,45 --json")).expect(0).json();
    assert!(told(&named, "income")["worst"].as_f64().unwrap() < 0.6, "{}", told(&named, "income"));
    let audit = folder.run(&format!("{line} --json --out out")).expect(0).json();
    let entry = told(&audit, "income");
    assert_eq!((&entry["from"], &entry["worst_record"]), (&"4000".into(), &"p700".into()), "{entry}");
    let page = without_scripts(&folder.read("out/report.html"));
    assert!(!page.contains("Protected at this noise"), "the page is not green");
    // Ridge on the standardised column, coefficients in the units of the table as it is: an independent fit.
    let ridge = |value: f64| {
        let x: Vec<f64> = (0..1000).map(|i| if i == 700 { value } else { income(i) }).collect();
        let n = 1000.0;
        let mean = |v: &dyn Fn(usize) -> f64| (0..1000).map(v).sum::<f64>() / n;
        let (mx, my) = (mean(&|i| x[i]), mean(&y));
        let (vx, cov) = (mean(&|i| (x[i] - mx).powi(2)), mean(&|i| (x[i] - mx) * (y(i) - my)));
        let slope = cov / (vx * 1.01);
        (slope, my - slope * mx)
    };
    let median: f64 = entry["to"].as_str().unwrap().parse().unwrap();
    let (a, b) = (ridge(far), ridge(median));
    let (mean, sd) = {
        let all: Vec<f64> = (0..1000).map(income).collect();
        let mean = all.iter().sum::<f64>() / 1000.0;
        (mean, (all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1000.0).sqrt())
    };
    let apart = [(a.0 - b.0) * sd, (a.1 + a.0 * mean) - (b.1 + b.0 * mean)];
    let truth = leakscope_core::special::normal_cdf(0.5 * apart[0].hypot(apart[1]));
    let worst = entry["worst"].as_f64().unwrap();
    assert!((worst - truth).abs() < 1e-6 && truth > 0.99, "{worst} for {truth}");
}

/// A ridge without an intercept moves up and down as one value grows: its ends are told less often than values between them.
#[test]
fn values_between_the_ends_are_tried_too() {
    let x = [0.04, -0.92, -0.08, -0.34, 5.96, 107.2, 0.6, 4.51, 3.58, 0.42];
    let y = [0.1, 1.03, 0.02, 0.44, -6.8, -124.06, -0.65, -5.24, -4.22, -0.53];
    let table: String = x.iter().zip(y).map(|(x, y)| format!("{x},{y}\n")).collect();
    let folder = Folder::new();
    folder.write("b.csv", format!("x,y\n{table}"));
    let line = "audit b.csv --target y --scale none --no-intercept --l2 1 --sigma 3.4 --json";
    let answer = folder.run(line).expect(0).json();
    let of = |answer: &Value| number(told(answer, "x"), "/distance");
    // By hand: every record, any two of the values that are put in place and its own.
    let slope = |i: usize, value: f64| {
        let mut x = x;
        x[i] = value;
        let (xy, xx) = x.iter().zip(y).fold((0.0, 0.0), |(a, b), (x, y)| (a + x * y, b + x * x));
        xy / (xx + 10.0)
    };
    let named = folder.run(&format!("{line} --tell x=-0.34,5.96")).expect(0).json();
    assert!(of(&answer) > 0.9 * of(&named), "{} {}", of(&answer), of(&named));
    let quantiles = [-0.92, 107.0, 0.0, 0.5, 5.0];
    let mut most = 0.0_f64;
    for (i, own) in x.iter().enumerate() {
        let of_record: Vec<f64> = quantiles.iter().chain([own]).map(|v| slope(i, *v)).collect();
        let (low, high) = of_record.iter().fold((f64::MAX, f64::MIN), |(a, b), w| (a.min(*w), b.max(*w)));
        most = most.max((high - low) / 3.4);
    }
    // The quantiles of the tool are rounded; these are near them.
    assert!(of(&answer) > 0.7 * most, "{} {most}", of(&answer));
}

#[test]
fn enough_noise_is_green_and_the_threshold_is_the_users() {
    let folder = Folder::new();
    folder.write("patients.csv", text(&patients(200), ","));
    // Of these one alone takes an enzyme inducer, so that the column itself would show who.
    let line = "audit patients.csv --target dose --id patient --drop high,count,w,enzyme_inducer --l2 0.01 --sigma 30";
    let calm = folder.run(line).expect(0).stdout;
    assert!(calm.contains("PROTECTED AT THIS NOISE"), "{calm}");
    // Values that were named decide only where they are as far apart as records differ.
    let far = folder.run(&format!("{line} --tell age=30,65")).expect(0).stdout;
    assert!(far.contains("PROTECTED AT THIS NOISE"), "{far}");
    let near = folder.run(&format!("{line} --tell age=40,41")).expect(0).stdout;
    let near = near.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(near.contains("NOT SHOWN TO BE PROTECTED"), "{near}");
    assert!(
        near.contains("The values that were named are nearer to one another than records differ"),
        "{near}"
    );
    let audit = folder.run(&format!("{line} --json")).expect(0).json();
    // Of a category any two levels, and all of them.
    let race = told(&audit, "race");
    assert_ne!(race["from"], race["to"]);
    let (levels, among) = (number(race, "/among_all/levels"), number(race, "/among_all/worst"));
    assert!(levels > 2.0 && among >= 1.0 / levels && among < 0.6, "{race}");
    assert!(number(&audit, "/timings/tell") > 0.0);
    let strict = folder.run(&format!("{line} --protect-at 0.501")).expect(0).stdout;
    assert!(strict.contains("NOT SHOWN TO BE PROTECTED"), "{strict}");
    // Nothing was chosen: what a model without noise gives away is said.
    let none =
        folder.run("audit patients.csv --target dose --id patient --drop high,count,w").expect(0).stdout;
    let flat = none.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("Released without any, the model lets somebody who knows everything else"),
        "{none}"
    );
}

#[test]
fn wrong_questions_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("patients.csv", text(&patients(60), ","));
    let line = "audit patients.csv --target high --model logistic --l2 0.1 --id patient --drop dose,count,w";
    for (options, message) in [
        ("--tell weigh=40,60", "`weigh` is not an attribute of this model; they are `age`"),
        ("--tell age=40", "expected NAME=A,B, such as age=40,60"),
        ("--tell age=40,old", "`age` is a number: expected two finite numbers"),
        ("--tell age=40,40", "`age` needs two different values"),
        ("--tell age=40,60 --tell age=30,50", "`age` is given twice"),
        ("--tell age=40,160 --bounds age=0..120", "`age` lies between 0 and 120 by its bounds"),
        ("--tell race=asian,martian", "`race` has no level `martian`; its levels are `"),
        ("--tell high=maybe,yes", "`high` has no level `maybe`"),
        ("--label public --tell high=no,yes", "is the target, which --label public takes as known"),
        (
            "--protect-at 0.4",
            "expected a share above 0.5, a coin toss that no noise goes below, and at most 0.75",
        ),
        (
            "--protect-at 0.8",
            "expected a share above 0.5, a coin toss that no noise goes below, and at most 0.75",
        ),
        (
            "--sigma 0",
            "a model released without noise lets somebody who knows everything else compute each value",
        ),
    ] {
        let run = folder.run(&format!("{line} {options}")).expect(2);
        assert!(run.stderr.contains(message), "{options}: {}", run.stderr);
    }
}

#[test]
fn the_label_is_an_attribute_of_every_record() {
    let folder = Folder::new();
    folder.write("patients.csv", text(&patients(120), ","));
    let line = "audit patients.csv --target dose --id patient --drop high,count,w --sigma 0.5 --format csv --out out -q";
    folder.run(line).expect(0);
    let (audit, records) = (folder.json("out/audit.json"), folder.csv("out/records.csv"));
    let eta = |name: &str| records.iter().map(|r| r[name].parse::<f64>().unwrap()).fold(0.0, f64::max);
    assert_close(eta("eta_dose"), number(&audit, "/label/eta_max"), 1e-12, "η of the label");
    let most = records
        .iter()
        .max_by(|a, b| a["eta_dose"].parse::<f64>().unwrap().total_cmp(&b["eta_dose"].parse().unwrap()));
    assert_eq!(audit["label"]["eta_max_record"], most.unwrap()["patient"].as_str());
    // In standard deviations it is what leaks most of some record.
    let attributes: Vec<&Value> = audit["records"]["most"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["most_exposed_attribute"][0])
        .collect();
    assert!(attributes.iter().all(|a| a.is_string()));
    folder.run(&format!("{line} --label public")).expect(0);
    let (audit, records) = (folder.json("out/audit.json"), folder.csv("out/records.csv"));
    assert!(audit.get("label").is_none() && !records[0].contains_key("eta_dose"));
    assert!(audit["tell"]["attributes"].as_array().unwrap().iter().all(|t| t["attribute"] != "dose"));
}

#[test]
fn scaling_by_ones_own_data_is_counted_as_refits_show() {
    let table = patients(50);
    let folder = Folder::new();
    folder.write("patients.csv", text(&table, ","));
    let options = format!("{BASE} --l2 0.3 --sigma 0.3");
    let audit = |more: &str| {
        let line = format!("audit patients.csv {options} --format csv --out out -q {more}");
        folder.run(&line).expect(0);
        folder.json("out/audit.json")
    };
    let plain = audit("--scaling given");
    assert_eq!(plain["scaling"]["mode"], "given");
    assert_close(
        number(&plain, "/scaling/eta_max_given"),
        number(&plain, "/records/eta/max"),
        1e-12,
        "given",
    );
    let counted = audit("");
    assert_eq!(
        (&counted["scaling"]["mode"], &counted["scaling"]["exact"]),
        (&"counted".into(), &true.into())
    );
    let largest = number(&counted, "/scaling/eta_max_counted");
    assert_close(largest, number(&counted, "/records/eta/max"), 1e-12, "counted");
    assert_close(number(&plain, "/scaling/eta_max_counted"), largest, 1e-9, "either way");
    assert!((largest / number(&counted, "/scaling/eta_max_given") - 1.0).abs() > 1e-3);
    // η of age of one record, by moving its age and fitting again.
    let records = folder.csv("out/records.csv");
    let j = column(&table, "age");
    let (_, sd) = moments(&table, j);
    for row in [1, 17, 33] {
        let at = |change: f64| {
            let mut changed = table.clone();
            changed[row][j] = format!("{}", changed[row][j].parse::<f64>().unwrap() + change);
            refitted(&folder, &changed, &table, &options)
        };
        let h = 1e-3 * sd;
        let slope = distance(&at(h), &at(-h)) / (2.0 * h) * sd / 0.3;
        assert_close(records[row - 1]["eta_age"].parse().unwrap(), slope, 1e-5, "η of age");
    }
    // Targets are met as they are counted, and without a penalty there is nothing to count.
    let line = format!("audit patients.csv {BASE} --l2 0.3 --target-eta 0.2 --json");
    assert_close(number(&folder.run(&line).expect(0).json(), "/records/eta/max"), 0.2, 1e-9, "target");
    let line = format!("audit patients.csv {BASE} --sigma 0.3 --json");
    assert!(folder.run(&line).expect(0).json().get("scaling").is_none());
}

#[test]
fn what_is_left_out_is_named_and_never_green() {
    let mut table = vec![(0..150).map(|j| format!("x{j}")).chain(["y".into()]).collect::<Vec<_>>()];
    for i in 0..40 {
        table.push((0..151).map(|j| format!("{:.4}", noise(i, j))).collect());
    }
    let folder = Folder::new();
    folder.write("wide.csv", text(&table, ","));
    for (more, left_out) in [("", 51), (" --pca 3", 150)] {
        let line = format!("audit wide.csv --target y --l2 1 --sigma 1000{more}");
        let audit = folder.run(&format!("{line} --json")).expect(0).json();
        assert_eq!(audit["tell"]["left_out"].as_array().unwrap().len(), left_out);
        assert!(audit["tell"]["left_out_because"].as_str().unwrap().ends_with('.'));
        let stdout = folder.run(&line).expect(0).stdout;
        assert!(stdout.contains("NOT SHOWN TO BE PROTECTED"), "{stdout}");
        assert!(stdout.contains(&format!("{left_out} attributes were not tried")), "{stdout}");
    }
    // What was asked for is tried first.
    let audit = folder.run("audit wide.csv --target y --l2 1 --tell x7=-0.5,0.5 --json").expect(0).json();
    assert_eq!(told(&audit, "x7")["from"], "-0.5");
}

/// A random table: two numbers with a few far out, a category, two classes or a number to predict.
fn drawn(seed: usize, rows: usize, classes: bool) -> String {
    let mut text = String::from("who,age,income,race,y\n");
    for i in 0..rows {
        let z = |j: usize| noise(1000 * seed + i, j);
        let age = (48.0 + 12.0 * z(0)).round();
        let income = (30.0 * (0.5 * z(1)).exp() * if i % 97 == 5 { 8.0 } else { 1.0 }).round();
        let race = ["asian", "black", "other people", "white"][(i * 7 + seed) % 4];
        let score = 0.05 * (age - 48.0) + 0.01 * income + z(2);
        let y =
            if classes { ["no", "yes"][usize::from(score > 0.4)].to_owned() } else { format!("{score:.3}") };
        text += &format!("p{i},{age},{income},{race},{y}\n");
    }
    text
}

/// A number as pages write it.
fn written(text: &str) -> Option<f64> {
    let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let number: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || "., ×⁻".contains(*c) || digits.contains(*c))
        .collect();
    let plain = |t: &str| t.trim().trim_end_matches([',', '.', ' ']).replace([',', ' '], "");
    let number = number.split(", ").next()?.to_owned();
    match number.split_once('×') {
        None => plain(&number).parse().ok(),
        Some((front, power)) => {
            let power: String = power
                .chars()
                .skip(2)
                .filter_map(|c| match digits.chars().position(|d| d == c) {
                    Some(d) => char::from_digit(d as u32, 10),
                    None => (c == '⁻').then_some('-'),
                })
                .collect();
            format!("{}e{power}", plain(front)).parse().ok()
        }
    }
}

/// The σ that a verdict advises.
fn advised(text: &str) -> Option<f64> {
    written(text.split("σ = ").last()?)
}

/// Whoever takes the advice of a page ends at a green one, by the rule that colours: audits and releases, whatever the noise was.
#[test]
fn advice_that_is_taken_ends_green() {
    use leakscope_report::verdict::{Colour, of_audit, of_release};
    let folder = Folder::new();
    let mut taken = 0;
    for (seed, model, label) in [
        (1, "linear", "secret"),
        (2, "linear", "public"),
        (3, "logistic --l2 0.1", "secret"),
        (4, "logistic", "secret"),
        (5, "logistic", "public"),
    ] {
        folder.write("t.csv", drawn(seed, 240, model.starts_with("logistic")));
        let l2 = if model.contains("l2") { "" } else { "--l2 0.02" };
        let line = format!("t.csv --target y --model {model} {l2} --label {label}");
        for sigma in ["0.0001", "0.02", "0.3"] {
            let audit = |sigma: &str| -> leakscope_report::Audit {
                let run = folder.run(&format!("audit {line} --id who --sigma {sigma} --json")).expect(0);
                serde_json::from_value(run.json()).unwrap()
            };
            let first = of_audit(&audit(sigma));
            if first.colour == Colour::Green {
                continue;
            }
            let better = advised(&first.text()).unwrap_or_else(|| panic!("{line}: {}", first.text()));
            if sigma == "0.0001" {
                // Where all can be read off, by how much the noise must grow is said.
                assert!(first.text().contains("as much)"), "{}", first.text());
            }
            let second = of_audit(&audit(&better.to_string()));
            assert_eq!(
                second.colour,
                Colour::Green,
                "{line} at {better}: {} / {}",
                first.text(),
                second.text()
            );
            taken += 1;
        }
        // A release asks in its own units, and keeps its own advice.
        let bounds = "--drop who --bounds age=0..120 --bounds income=0..1024 --scale bounds";
        let release = |sigma: f64, out: &str| -> leakscope_report::Release {
            let run = folder.run(&format!("release {line} {bounds} --sigma {sigma} --json --out {out}"));
            serde_json::from_value(run.expect_released().json()).unwrap()
        };
        let first = of_release(&release(0.001, &format!("a{seed}")));
        let better = advised(&first.text()).unwrap_or_else(|| panic!("{line}: {}", first.text()));
        let second = of_release(&release(better, &format!("b{seed}")));
        assert_eq!(second.colour, Colour::Green, "{line}: {} / {}", first.text(), second.text());
    }
    assert!(taken >= 8, "{taken}");
}

/// A person behind several rows moves the model with all of them: a page that is green for rows is not for people.
#[test]
fn a_person_with_several_rows_is_not_called_protected() {
    use leakscope_report::verdict::{Colour, of_audit};
    let folder = Folder::new();
    let rows = |i: usize| (40.0 + 9.0 * noise(i, 3)).round();
    let line = |i: usize, who: usize, x: f64| format!("p{who},{x},{:.3}\n", 0.02 * rows(i) + noise(i, 4));
    let table = |of: &dyn Fn(usize) -> usize| {
        "who,age,y\n".to_owned() + &(0..200).map(|i| line(i, of(i), rows(i))).collect::<String>()
    };
    let audit = |text: String, sigma: &str| -> leakscope_report::Audit {
        folder.write("t.csv", text);
        let run = folder
            .run(&format!("audit t.csv --target y --id who --label public --l2 0.05 --sigma {sigma} --json"));
        serde_json::from_value(run.expect(0).json()).unwrap()
    };
    let alone = audit(table(&|i| i), "0.2");
    assert_eq!(of_audit(&alone).colour, Colour::Green, "{}", of_audit(&alone).text());
    let ten = |i: usize| if i < 10 { 0 } else { i };
    let together = audit(table(&ten), "0.2");
    let verdict = of_audit(&together);
    assert_ne!(verdict.colour, Colour::Green);
    assert!(verdict.text().contains("Up to 10 rows have one who: changed together"), "{}", verdict.text());
    // Other commands do not count it, and do not advise to look away.
    for command in ["release", "balance"] {
        let noise = if command == "release" { "--sigma 1" } else { "" };
        let run = folder.run(&format!("{command} t.csv --target y --id who --l2 0.05 {noise} --out o"));
        assert!(run.code == 2 && run.stderr.contains("occurs twice"), "{}", run.stderr);
        assert!(!run.stderr.contains("leave") && run.stderr.contains("join the rows"), "{}", run.stderr);
    }
}

/// Balancing advises what can be carried out: the release that it names says which σ ends green, and that one does, label and all.
#[test]
fn the_advice_of_balancing_ends_green() {
    use leakscope_report::verdict::{Colour, of_balance, of_release};
    let folder = Folder::new();
    folder.write("t.csv", drawn(7, 60, false));
    let table = "t.csv --target y --l2 0.05 --drop who";
    let run = folder.run(&format!("balance {table} --iterations 2 --sigma 0.01 --json")).expect(0);
    let advice = of_balance(&serde_json::from_value(run.json()).unwrap()).text();
    assert!(!advice.contains("--target-eta"), "{advice}");
    // One command that runs as it stands, but for its folder and what is left out of the table.
    assert_eq!(advice.matches("leakscope release").count(), 1, "{advice}");
    let line = advice.split("run leakscope ").nth(1).unwrap().split(" --out").next().unwrap();
    assert!(line.contains("t.csv --target y") && line.contains("--l2 0.05"), "{line}");
    let bounds = "--bounds age=0..128 --bounds income=0..1024";
    let release = |line: &str, out: &str| -> leakscope_report::Release {
        let run = folder.run(&format!("{line} --drop who {bounds} --json --out {out}"));
        serde_json::from_value(run.expect_released().json()).unwrap()
    };
    let first = of_release(&release(line, "a"));
    let sigma = advised(&first.text()).unwrap_or_else(|| panic!("{}", first.text()));
    let again = format!("{} --sigma {sigma}", line.split(" --sigma").next().unwrap());
    let second = of_release(&release(&again, "b"));
    assert_eq!(second.colour, Colour::Green, "{} / {}", first.text(), second.text());
}
