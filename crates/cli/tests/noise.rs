//! Noise with a shape: every target against the definition of η, costs against their certificates, and values told apart
//! against an attacker who knows everything else.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Folder, assert_close, attribute, number, patients, text};
use leakscope_core::random::Seeded;
use serde_json::Value;
use std::collections::BTreeMap;

/// Numbers alone: age, height and weight.
const NUMBERS: &str =
    "--target dose --id patient --drop high,count,w,race,vkorc1,amiodarone,enzyme_inducer,cyp2c9";
/// Everything but the columns that the tests add, and a category with levels that are too rare for a shape from the records.
const ALL: &str = "--target dose --id patient --drop high,count,w,cyp2c9";

fn folder(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", text(&patients(rows), ","));
    folder
}

fn audit(folder: &Folder, options: &str) -> Value {
    folder.run(&format!("audit table.csv {options} --json")).expect(0).json()
}

/// The covariance of a document: `FFᵀ` from the grid, in the order of its coefficients.
fn covariance(noise: &Value) -> Vec<Vec<f64>> {
    let whole = |v: &Value| v.as_i64().unwrap();
    let exponents: Vec<i64> = noise["factor"]["exponents"].as_array().unwrap().iter().map(whole).collect();
    let mut entries = noise["factor"]["entries"].as_array().unwrap().iter().map(whole);
    let scale = (whole(&noise["factor"]["quarters"]) as f64 / 4.0).exp2();
    let p = exponents.len();
    let mut f = vec![vec![0.0; p]; p];
    for (i, row) in f.iter_mut().enumerate() {
        for slot in row.iter_mut().take(i + 1) {
            *slot = entries.next().unwrap() as f64 * (exponents[i] as f64).exp2() * scale;
        }
    }
    let product = |i: usize, j: usize| (0..p).map(|k| f[i][k] * f[j][k]).sum();
    (0..p).map(|i| (0..p).map(|j| product(i, j)).collect()).collect()
}

/// The inverse by Gauss and Jordan, with pivots.
fn inverse(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let p = a.len();
    let unit = |i: usize| (0..p).map(move |j| f64::from(u8::from(i == j)));
    let mut rows: Vec<Vec<f64>> = (0..p).map(|i| a[i].iter().copied().chain(unit(i)).collect()).collect();
    for k in 0..p {
        let pivot = (k..p).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap();
        rows.swap(k, pivot);
        let lead = rows[k][k];
        rows[k].iter_mut().for_each(|v| *v /= lead);
        for i in (0..p).filter(|&i| i != k) {
            let (factor, source) = (rows[i][k], rows[k].clone());
            rows[i].iter_mut().zip(&source).for_each(|(v, s)| *v -= factor * s);
        }
    }
    rows.into_iter().map(|row| row[p..].to_vec()).collect()
}

fn times(a: &[Vec<f64>], v: &[f64]) -> Vec<f64> {
    a.iter().map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Numbers of the table by column.
fn columns(table: &[Vec<String>], names: &[String]) -> Vec<Vec<f64>> {
    let of = |name: &String| {
        let j = table[0].iter().position(|n| n == name).unwrap();
        table[1..].iter().map(|row| row[j].parse().unwrap()).collect()
    };
    names.iter().map(of).collect()
}

fn moments(x: &[f64]) -> (f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
}

/// A linear model on numbers that are scaled to spread one, from its definition.
struct Dense {
    names: Vec<String>,
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    w: Vec<f64>,
    inverse_hessian: Vec<Vec<f64>>,
}

impl Dense {
    fn new(table: &[Vec<String>], audit: &Value) -> Self {
        let names: Vec<String> = audit["noise"]["coefficients"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_str().unwrap().to_owned())
            .filter(|n| n != "(intercept)")
            .collect();
        let raw = columns(table, &names);
        let scaled: Vec<Vec<f64>> = raw
            .iter()
            .map(|x| {
                let (mean, sd) = moments(x);
                x.iter().map(|v| (v - mean) / sd).collect()
            })
            .collect();
        let n = table.len() - 1;
        let x: Vec<Vec<f64>> = (0..n).map(|i| scaled.iter().map(|c| c[i]).chain([1.0]).collect()).collect();
        let y = columns(table, &["dose".into()]).remove(0);
        let p = names.len() + 1;
        let gram = |a: usize, b: usize| x.iter().map(|row| row[a] * row[b]).sum::<f64>();
        let hessian: Vec<Vec<f64>> = (0..p).map(|a| (0..p).map(|b| gram(a, b)).collect()).collect();
        let inverse_hessian = inverse(&hessian);
        let xy: Vec<f64> = (0..p).map(|a| x.iter().zip(&y).map(|(row, y)| row[a] * y).sum()).collect();
        let w = times(&inverse_hessian, &xy);
        Self { names, x, y, w, inverse_hessian }
    }

    /// `√λ₁(JᵀΣ⁻¹J)` of a record, its label included, by the power method.
    fn eta(&self, precision: &[Vec<f64>], i: usize) -> f64 {
        let (x, d) = (&self.x[i], self.names.len());
        let r = dot(x, &self.w) - self.y[i];
        let unit = |k: usize| (0..=d).map(|j| f64::from(u8::from(j == k))).collect::<Vec<f64>>();
        // Columns of −J: H⁻¹(x w_k + r e_k), and −H⁻¹x for the label.
        let columns: Vec<Vec<f64>> = (0..=d)
            .map(|k| match k < d {
                true => {
                    let inner: Vec<f64> = x.iter().zip(unit(k)).map(|(x, e)| x * self.w[k] + r * e).collect();
                    times(&self.inverse_hessian, &inner)
                }
                false => times(&self.inverse_hessian, x).iter().map(|v| -v).collect(),
            })
            .collect();
        let information: Vec<Vec<f64>> =
            columns.iter().map(|a| columns.iter().map(|b| dot(a, &times(precision, b))).collect()).collect();
        let mut v = vec![1.0; d + 1];
        for _ in 0..5000 {
            let next = times(&information, &v);
            let length = dot(&next, &next).sqrt();
            v = next.iter().map(|x| x / length).collect();
        }
        dot(&v, &times(&information, &v)).sqrt()
    }
}

#[test]
fn every_record_meets_its_target_by_the_definition_of_eta() {
    let folder = folder(400);
    let table = patients(400);
    for shape in ["shaped", "optimal"] {
        let line = format!(
            "audit table.csv {NUMBERS} --noise-shape {shape} --target-eta 1.5 --format csv --out {shape}"
        );
        folder.run(&line).expect(0);
        let audit = folder.json(&format!("{shape}/audit.json"));
        let noise = &audit["noise"];
        let precision = inverse(&covariance(noise));
        let dense = Dense::new(&table, &audit);
        let records = folder.csv(&format!("{shape}/records.csv"));
        assert_eq!(records.len(), 400);
        let mut largest = 0.0_f64;
        for (i, record) in records.iter().enumerate() {
            let eta: f64 = record["eta"].parse().unwrap();
            assert!(eta <= 1.5, "{shape}: record {i} has {eta}");
            largest = largest.max(eta);
            if i % 40 == 0 {
                assert_close(eta, dense.eta(&precision, i), 1e-6, "η by its definition");
            }
        }
        assert_close(largest, number(&audit, "/records/eta/max"), 1e-9, "largest");
        let share = number(noise, "/covariance_information");
        assert!(share > 0.0 && share <= 0.05, "{share}");
        assert!(largest.powi(2) <= 2.25 * (1.0 - share), "no room for the covariance: {largest}, {share}");
        assert!(number(noise, "/largest_eta") <= 1.0);
    }
}

#[test]
fn shapes_cost_less_and_say_how_much() {
    let folder = folder(3000);
    let optimal = audit(
        &folder,
        &format!("{ALL} --noise-shape optimal --target-eta 2 --holdout 0.25 --seed 1 --shape-budget 1"),
    );
    let noise = &optimal["noise"];
    assert_eq!(noise["shape"], "optimal");
    assert_eq!(noise["source"]["kind"], "records");
    let at = |name: &str| number(noise, &format!("/{name}"));
    assert!(at("gain") > 1.5, "{}", at("gain"));
    assert!(at("gap") <= 0.01, "{}", at("gap"));
    assert_close(at("gain"), at("cost_isotropic") / at("cost"), 1e-12, "gain");
    assert_close(at("gap"), at("cost") / at("lower_bound_on_cost") - 1.0, 1e-6, "gap");
    assert!(at("cost_published") >= at("cost") && at("lower_bound_on_cost") > 0.0);
    // Gain, utility and certificate of the three shapes beside one another.
    let shapes: BTreeMap<&str, &Value> =
        noise["shapes"].as_array().unwrap().iter().map(|s| (s["shape"].as_str().unwrap(), s)).collect();
    let cost = |name: &str| number(shapes[name], "/cost");
    assert!(cost("optimal") <= cost("shaped") * 1.01 && cost("shaped") < cost("isotropic"));
    assert_close(cost("isotropic"), at("cost_isotropic"), 1e-9, "isotropic");
    assert_close(number(shapes["isotropic"], "/gain"), 1.0, 1e-9, "gain of isotropic noise");
    let utility = |name: &str| {
        let points = shapes[name]["points"].as_array().unwrap();
        let at = points.iter().find(|p| (number(p, "/multiple") - 1.0).abs() < 1e-9).unwrap();
        number(at, "/value")
    };
    assert!(utility("optimal") < utility("isotropic"), "the error that is left");
    // What the noise adds to the squared error of held-out rows is about what it costs on training rows.
    let added = number(&optimal, "/utility/at_sigma") - number(&optimal, "/utility/without_noise");
    assert_close(added, at("cost_published"), 0.3, "what the noise adds");
    let page = folder.run(&format!("audit table.csv {ALL} --noise-shape optimal --target-eta 2 --out out"));
    page.expect(0);
    let html = folder.read("out/report.html");
    for words in [
        "Shape of the noise",
        "of the noise",
        "No noise whatever meets the targets for less",
        "isotropic noise for the same targets",
    ] {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn targets_on_attributes_hold_in_their_own_units() {
    let folder = folder(500);
    let line =
        format!("{ALL} --noise-shape shaped --target-sd age=3 --target-sd vkorc1=0.8 --target-sd dose=9");
    let audit_ = audit(&folder, &line);
    assert!(number(attribute(&audit_, "age"), "/min_sd") >= 3.0);
    assert!(number(attribute(&audit_, "vkorc1"), "/min_sd") >= 0.8);
    assert!(number(&audit_, "/label/min_sd") >= 9.0);
    assert_eq!(audit_["sigma_source"]["kind"], "targets");
    let goals = audit_["noise"]["goals"].as_array().unwrap();
    assert_eq!(goals.len(), 3);
    // Scale is the smallest on its grid of 2^¼: one of the targets is nearly met.
    let reached = number(&audit_["noise"], "/largest_eta");
    assert!(reached <= 1.0 && reached > 0.8, "{reached}");
    let protected = audit(
        &folder,
        &format!("{ALL} --noise-shape optimal --protect age,race --target-eta 0.5 --shape-budget 1"),
    );
    for name in ["age", "race"] {
        let eta = number(attribute(&protected, name), "/eta_max");
        assert!(eta <= 0.5, "{name}: {eta}");
    }
    // Noise for two attributes costs less than for whole records.
    let whole = audit(&folder, &format!("{ALL} --noise-shape optimal --target-eta 0.5 --shape-budget 1"));
    assert!(number(&protected, "/noise/cost") < number(&whole, "/noise/cost"));
    // Several targets of isotropic noise.
    let several = audit(&folder, &format!("{ALL} --target-sd age=3 --target-sd vkorc1=0.8"));
    assert_eq!(several["noise"]["shape"], "isotropic");
    assert!(number(attribute(&several, "age"), "/min_sd") >= 3.0);
    assert!(number(attribute(&several, "vkorc1"), "/min_sd") >= 0.8);
}

#[test]
fn every_family_weights_and_a_counted_scaling_meet_their_targets() {
    let folder = folder(1500);
    for options in [
        "--target high --model logistic --drop dose,count,w,cyp2c9 --l2 0.01",
        "--target count --model poisson --drop dose,high,w,cyp2c9 --l2 0.01",
        "--target dose --drop high,count,cyp2c9 --weights w --l2 0.1",
        "--target dose --drop high,count,w,cyp2c9 --no-intercept --scale none",
        "--target dose --drop high,count,w,cyp2c9 --pca 3",
        "--target dose --drop high,count,w,cyp2c9 --label public",
    ] {
        let answer = audit(&folder, &format!("{options} --id patient --noise-shape shaped --target-eta 5"));
        let eta = number(&answer, "/records/eta/max");
        let share = number(&answer, "/noise/covariance_information");
        assert!(eta.powi(2) / 25.0 + share <= 1.0 + 1e-9, "{options}: {eta} and {share}");
        assert!(number(&answer, "/noise/gain") > 1.0, "{options}");
    }
}

#[test]
fn an_attacker_who_knows_all_else_does_not_beat_the_bound() {
    let rows = 120;
    let folder = folder(rows);
    let table = patients(rows);
    let audit_ = audit(
        &folder,
        &format!("{NUMBERS} --noise-shape shaped --target-eta 1 --shape-budget 1 --tell age=30,80"),
    );
    let told =
        audit_["tell"]["attributes"].as_array().unwrap().iter().find(|t| t["attribute"] == "age").unwrap();
    let sigma = covariance(&audit_["noise"]);
    let precision = inverse(&sigma);
    let dense = Dense::new(&table, &audit_);
    let p = dense.names.len() + 1;
    // The models with either value in the place of the worst record's, in the encoded units of the table as it is.
    let id = told["worst_record"].as_str().unwrap();
    let (ids, age) = (0, table[0].iter().position(|n| n == "age").unwrap());
    let raw = columns(&table, &dense.names);
    let scale: Vec<(f64, f64)> = raw.iter().map(|x| moments(x)).collect();
    let models: Vec<Vec<f64>> = ["30", "80"]
        .iter()
        .map(|value| {
            let mut changed = table.clone();
            let row = changed.iter_mut().find(|row| row[ids] == id).unwrap();
            row[age] = (*value).into();
            folder.write("changed.csv", text(&changed, ","));
            let fitted = folder.run(&format!("audit changed.csv {NUMBERS} --json")).expect(0).json();
            let original = &fitted["model"]["coefficients_original_units"];
            let mut intercept = original["(intercept)"].as_f64().unwrap();
            let mut w: Vec<f64> = vec![];
            for (name, (mean, sd)) in dense.names.iter().zip(&scale) {
                let value = original[name].as_f64().unwrap();
                w.push(value * sd);
                intercept += value * mean;
            }
            w.push(intercept);
            w
        })
        .collect();
    // The likelihood ratio is the best test there is: whichever model is nearer by Σ⁻¹.
    let lower = cholesky(&sigma);
    let mut random = Seeded::new(7);
    let (draws, mut right) = (40_000, 0);
    for k in 0..draws {
        let truth = k % 2;
        let z = random.normals(p);
        let released: Vec<f64> = models[truth].iter().zip(times(&lower, &z)).map(|(w, b)| w + b).collect();
        let distance = |w: &[f64]| {
            let difference: Vec<f64> = released.iter().zip(w).map(|(a, b)| a - b).collect();
            dot(&difference, &times(&precision, &difference))
        };
        let guess = usize::from(distance(&models[1]) < distance(&models[0]));
        right += usize::from(guess == truth);
    }
    let (share, bound) = (right as f64 / draws as f64, number(told, "/worst"));
    assert!(share <= bound + 4.0 * (0.25 / draws as f64).sqrt(), "{share} above the bound {bound}");
    assert!(share >= bound - 0.02, "the attack should come close: {share}, bound {bound}");
    // The covariance was read off the records, so that no page is green on it.
    let run = folder
        .run(&format!("audit table.csv {NUMBERS} --noise-shape shaped --target-eta 0.05 --shape-budget 1"));
    if run.code == 0 {
        assert!(
            run.stdout.contains("NOT SHOWN TO BE PROTECTED") || run.stdout.contains("NOT PROTECTED"),
            "{}",
            run.stdout
        );
    }
}

fn cholesky(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let p = a.len();
    let mut l = vec![vec![0.0; p]; p];
    for i in 0..p {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = if i == j { (a[i][i] - sum).sqrt() } else { (a[i][j] - sum) / l[j][j] };
        }
    }
    l
}

#[test]
fn a_shape_that_says_too_much_is_taken_from_elsewhere() {
    let folder = folder(60);
    let strict = format!("{NUMBERS} --noise-shape shaped --target-eta 0.05");
    let answer = audit(&folder, &strict);
    assert_eq!(answer["noise"]["shape"], "isotropic");
    assert_eq!(answer["noise"]["requested"], "shaped");
    assert_eq!(answer["noise"]["source"]["kind"], "nowhere");
    let why = answer["noise"]["instead"].as_str().unwrap();
    assert!(why.contains("Isotropic noise is safer") && why.contains("give away"), "{why}");
    assert!(answer["warnings"].to_string().contains("Isotropic noise is safer"));
    assert!(number(&answer, "/records/eta/max") <= 0.05);
    // A public table of the same columns says nothing about these records.
    let others: Vec<Vec<String>> =
        patients(500).into_iter().enumerate().filter(|(i, _)| *i == 0 || *i > 60).map(|(_, r)| r).collect();
    folder.write("public.csv", text(&others, ","));
    let public = audit(&folder, &format!("{strict} --shape-from public.csv"));
    assert_eq!(public["noise"]["source"]["kind"], "table");
    assert_eq!(public["noise"]["source"]["files"][0], "public.csv");
    assert_eq!(number(&public, "/noise/covariance_information"), 0.0);
    assert!(number(&public, "/noise/gain") > 1.0, "{}", public["noise"]["gain"]);
    assert!(number(&public, "/records/eta/max") <= 0.05);
    assert!(number(&public, "/noise/cost") < number(&answer, "/noise/cost"));
    // Bounds alone.
    let bounds = "--bounds age=10..99 --bounds height=120..220 --bounds weight=30..250 --bounds dose=0..120";
    let bounded = audit(&folder, &format!("{strict} {bounds}"));
    let kind = bounded["noise"]["source"]["kind"].as_str().unwrap();
    assert!(kind == "bounds" || kind == "nowhere", "{kind}");
    assert!(number(&bounded, "/records/eta/max") <= 0.05);
    assert!(number(&bounded, "/noise/cost") <= number(&answer, "/noise/cost") * 1.0001);
}

#[test]
fn standard_errors_account_for_the_noise() {
    let folder = folder(400);
    let answer = audit(&folder, &format!("{NUMBERS} --noise-shape optimal --target-eta 1.5"));
    let all = answer["inference"]["coefficients"].as_array().unwrap();
    assert_eq!(answer["inference"]["original_units"], true);
    let sigma = covariance(&answer["noise"]);
    let names = answer["noise"]["coefficients"].as_array().unwrap();
    let table = patients(400);
    for c in all.iter().filter(|c| c["name"] != "(intercept)") {
        let name = c["name"].as_str().unwrap().to_owned();
        let k = names.iter().position(|n| *n == c["name"]).unwrap();
        let (_, sd) = moments(&columns(&table, &[name])[0]);
        assert_close(number(c, "/noise_error"), sigma[k][k].sqrt() / sd, 1e-9, "noise in original units");
        let both = number(c, "/noise_error").hypot(number(c, "/sampling_error"));
        assert_close(number(c, "/standard_error"), both, 1e-9, "both");
        let half = 0.5 * (number(c, "/high") - number(c, "/low"));
        assert_close(half, 1.959_963_984_540_054 * both, 1e-9, "interval");
    }
    // White's sandwich with the same H, from its definition.
    let dense = Dense::new(&table, &answer);
    let p = dense.names.len() + 1;
    let mut middle = vec![vec![0.0; p]; p];
    for (x, y) in dense.x.iter().zip(&dense.y) {
        let r = dot(x, &dense.w) - y;
        (0..p).for_each(|a| (0..p).for_each(|b| middle[a][b] += r * r * x[a] * x[b]));
    }
    let c = all.iter().find(|c| c["name"] == "age").unwrap();
    let k = names.iter().position(|n| *n == "age").unwrap();
    let row = &dense.inverse_hessian[k];
    let (_, sd) = moments(&columns(&table, &["age".into()])[0]);
    assert_close(number(c, "/sampling_error"), dot(row, &times(&middle, row)).sqrt() / sd, 1e-6, "sandwich");
    // Isotropic noise too, where some was chosen; per unit of noise there is nothing to account for.
    assert!(audit(&folder, &format!("{NUMBERS} --sigma 0.3"))["inference"].is_object());
    assert!(audit(&folder, NUMBERS)["inference"].is_null());
}

#[test]
fn calibrate_says_what_each_shape_costs() {
    let folder = folder(3000);
    let line = "calibrate --data table.csv --target dose --id patient --drop high,count,w,cyp2c9 --holdout 0.25 --seed 1";
    let answer = folder.run(&format!("{line} --target-eta 2 --noise-shape optimal --json")).expect(0).json();
    assert_eq!(answer["target"]["kind"], "goals");
    let shapes = answer["noise"]["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 3);
    assert!(number(&answer, "/achieved") <= 1.0);
    assert!(number(&answer, "/noise/gain") > 1.0);
    for s in shapes {
        assert!(number(s, "/points/0/value") > number(&answer, "/utility/without_noise"));
    }
    let text = folder
        .run(&format!("{line} --target-sd age=3 --target-sd weight=10 --noise-shape shaped"))
        .expect(0)
        .stdout;
    for words in ["shaped noise", "age", "weight", "isotropic", "optimal", "isotropic noise costs"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The old names still work.
    let old = folder.run(&format!("{line} --eta 0.5 --json")).expect(0).json();
    let new = folder.run(&format!("{line} --target-eta 0.5 --json")).expect(0).json();
    assert_eq!(old, new);
}

#[test]
fn bad_input_is_named() {
    let folder = folder(200);
    folder.write("empty.csv", text(&patients(0), ","));
    folder.write("other.csv", "a,b\n1,2\n");
    for (options, words) in [
        ("--noise-shape optimal", &["--noise-shape", "--target-eta"][..]),
        ("--noise-shape optimal --sigma 1", &["--sigma", "no σ"]),
        ("--noise-shape shaped --target-eta -1", &["--target-eta", "positive"]),
        ("--noise-shape shaped --target-eta 1 --statistic mean", &["--statistic", "every record"]),
        ("--noise-shape shaped --target-sd aeg=3", &["--target-sd", "`aeg`", "closest names are `age`"]),
        ("--noise-shape shaped --protect wieght --target-eta 1", &["--protect", "`weight`"]),
        ("--noise-shape shaped --protect age", &["--noise-shape", "--target-eta"]),
        ("--noise-shape shaped --protect age --target-sd weight=3", &["--protect", "--target-eta"]),
        ("--noise-shape shaped --target-sd dose=3 --label public", &["--target-sd", "--label public"]),
        (
            "--noise-shape shaped --protect dose --target-eta 1 --label public",
            &["--protect", "--label public"],
        ),
        ("--noise-shape shaped --target-eta 1 --shape-budget 2", &["--shape-budget", "at most 1"]),
        ("--noise-shape optimal --target-eta 1 --gap 0", &["--gap", "0.0001"]),
        ("--target-eta 1 --shape-from table.csv", &["--shape-from", "isotropic"]),
        ("--noise-shape shaped --target-eta 1 --shape-from nosuch.csv", &["--shape-from", "nosuch.csv"]),
        ("--noise-shape shaped --target-eta 1 --shape-from empty.csv", &["--shape-from"]),
        ("--noise-shape shaped --target-eta 1 --shape-from other.csv", &["--shape-from"]),
        ("--noise-shape shaped --target-eta 1 --one-hot full --l2 0.1", &["--noise-shape", "drop-last"]),
    ] {
        let run = folder.run(&format!("audit table.csv {ALL} {options}")).expect(2);
        for word in words {
            assert!(run.stderr.contains(word), "{options}: `{word}` in {}", run.stderr);
        }
    }
}
