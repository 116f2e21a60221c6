//! `leakscope audit --model softmax`.

use crate::common::{Folder, number};
use serde_json::Value;

/// A table of two numbers and a category with classes by name, from a plain generator: the same for everybody.
fn table(classes: &[&str], rows: usize, seed: u64) -> String {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut text = String::from("id,age,dose,site,ward,species\n");
    for i in 0..rows {
        let (age, dose, site) = (20.0 + 60.0 * uniform(), -10.0 * uniform().ln(), i % 3);
        let score: Vec<f64> = (0..classes.len())
            .map(|k| {
                let pull = (age - 50.0) / 17.0 * (k as f64 - 0.5) + if site == k { 0.7 } else { 0.0 };
                (pull - (-uniform().ln()).ln()).max(-50.0)
            })
            .collect();
        let best = (0..classes.len()).fold(0, |b, k| if score[k] > score[b] { k } else { b });
        let (site, ward) = (["north", "south", "west"][site], ["a", "b"][i / 3 % 2]);
        text += &format!("p{i},{age:.1},{dose:.2},{site},{ward},{}\n", classes[best]);
    }
    text
}

const TREES: [&str; 3] = ["ash", "birch", "cedar"];

fn audited(folder: &Folder, line: &str) -> Value {
    folder.run(&format!("audit {line} --out o")).expect(0);
    folder.json("o/audit.json")
}

#[test]
fn three_classes_end_to_end() {
    let folder = Folder::new();
    folder.write("t.csv", table(&TREES, 300, 5));
    folder.write("more.csv", table(&TREES, 120, 6));
    let line = "t.csv --target species --model softmax --l2 0.01 --id id --drop ward --group ward --test more.csv \
                --target-eta 0.5 --format csv";
    let a = audited(&folder, line);
    assert_eq!(a["model"]["family"], "softmax");
    assert_eq!(a["data"]["classes"], serde_json::json!(TREES));
    assert!((number(&a, "/records/eta/max") - 0.5).abs() < 1e-9);
    // By class: as many records as there are, and the largest η is that of one of them.
    let classes = a["classes"].as_array().unwrap();
    assert_eq!(classes.iter().map(|c| c["n"].as_u64().unwrap()).sum::<u64>(), 300);
    let most = classes.iter().map(|c| c["eta_max"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!((most - 0.5).abs() < 1e-9);
    assert!(classes.iter().all(|c| c["label_eta_max"].as_f64().unwrap() > 0.0));
    assert_eq!(a["groups"].as_array().unwrap().len(), 2);
    // Coefficients by class and column, which sum to zero over classes.
    let coefficients = a["model"]["coefficients"].as_object().unwrap();
    assert_eq!(coefficients.len(), 3 * 5);
    for column in ["age", "dose", "(intercept)"] {
        let sum: f64 = TREES.iter().map(|t| coefficients[&format!("{t}: {column}")].as_f64().unwrap()).sum();
        assert!(sum.abs() < 1e-9, "{column}");
    }
    // Attributes and the label, told apart by refits; the label between any two of its classes.
    let told = a["tell"]["attributes"].as_array().unwrap();
    let label = told.iter().find(|t| t["label"] == true).unwrap();
    assert_eq!(label["attribute"], "species");
    assert_eq!(label["among_all"]["levels"], 3);
    assert!(told.iter().all(|t| (0.5..=1.0).contains(&t["worst"].as_f64().unwrap())));
    assert_eq!(told.len(), 4);
    let utility = &a["utility"];
    assert_eq!((utility["metric"].as_str(), utility["rows"].as_u64()), (Some("accuracy"), Some(120)));
    assert!(number(utility, "/without_noise") > number(utility, "/constant_model"));
    assert!(number(utility, "/at_sigma") <= number(utility, "/without_noise") + 0.02);
    // The scaling of columns is counted, exactly.
    assert_eq!((&a["scaling"]["mode"], &a["scaling"]["exact"]), (&"counted".into(), &true.into()));
    let page = folder.read("o/report.html");
    for words in ["softmax regression", "Leakage by class", "birch"] {
        assert!(page.contains(words), "{words}");
    }
    let records = folder.csv("o/records.csv");
    assert_eq!(records.len(), 300);
    let largest = records.iter().map(|r| r["eta"].parse::<f64>().unwrap()).fold(0.0, f64::max);
    assert!((largest - 0.5).abs() < 1e-9);
    assert!(records.iter().all(|r| r["eta_species"].parse::<f64>().unwrap() > 0.0));
    // The same model, given: the same leakage, at no distance.
    let line = line.replace("--target-eta 0.5", &format!("--sigma {}", number(&a, "/sigma")));
    std::fs::copy(folder.path("o/audit.json"), folder.path("given.json")).unwrap();
    let again = audited(&folder, &format!("{line} --coefficients given.json"));
    assert!(number(&again, "/model/distance/relative") < 1e-6);
    assert!((number(&again, "/records/eta/mean") / number(&a, "/records/eta/mean") - 1.0).abs() < 1e-5);
}

/// Two classes are the logistic model: λ halves, since two opposite vectors share it, and noise σ on both is √2σ on their
/// difference.
#[test]
fn two_classes_reproduce_the_logistic_page() {
    let folder = Folder::new();
    folder.write("t.csv", table(&TREES[..2], 200, 9));
    folder.write("more.csv", table(&TREES[..2], 80, 10));
    for rest in ["", "--label public", "--scaling given"] {
        let common = format!("t.csv --target species --id id --drop ward --test more.csv {rest}");
        let answer = audited(&folder, &format!("{common} --model softmax --l2 0.08 --sigma 0.5"));
        let sigma = 0.5 * 2_f64.sqrt();
        let truth = audited(&folder, &format!("{common} --model logistic --l2 0.04 --sigma {sigma}"));
        let same = |path: &str| {
            let (a, b) = (number(&answer, path), number(&truth, path));
            assert!((a / b - 1.0).abs() < 1e-5, "{rest} {path}: {a} {b}");
        };
        for path in [
            "/records/eta/mean",
            "/records/eta/max",
            "/records/dfil/mean",
            "/records/loss/mean",
            "/records/min_mse/value",
            "/records/min_mse_with_prior/value",
            "/dataset/eta",
            "/attributes/0/eta_max",
            "/attributes/0/eta_over_all_records",
            "/attributes/2/eta_mean",
            "/model/loss",
            "/utility/without_noise",
            "/utility/at_sigma",
            "/utility/constant_model",
            "/tell/attributes/0/worst",
        ] {
            same(path);
        }
        if rest != "--label public" {
            ["/label/eta_max", "/label/eta_mean", "/label/min_sd"].into_iter().for_each(same);
        }
        if rest != "--scaling given" {
            same("/scaling/eta_max_given");
        }
        for (a, b) in [(&answer, &truth)].map(|(a, b)| (a["tell"]["attributes"].as_array().unwrap(), b)) {
            assert_eq!(a.len(), b["tell"]["attributes"].as_array().unwrap().len());
        }
    }
}

#[test]
fn degenerate_tables() {
    let folder = Folder::new();
    // One column, with a constant beside it; few rows and many columns; classes that can be told apart exactly.
    let mut one = String::from("x,c,y\n");
    let mut wide = String::from("y");
    (0..12).for_each(|j| wide += &format!(",v{j}"));
    wide += "\n";
    let mut apart = String::from("x,y\n");
    for i in 0..30_u64 {
        one += &format!("{},7,{}\n", (i * 7 % 13) as f64 / 3.0, ["a", "b", "c"][(i * i % 3) as usize % 3]);
        apart += &format!("{},{}\n", i as f64 / 3.0, ["a", "b", "c"][i as usize / 10]);
    }
    for i in 0..9_u64 {
        wide += ["a", "b", "c"][i as usize % 3];
        (0..12).for_each(|j| wide += &format!(",{}", (i * 31 + j * j * 17) % 23));
        wide += "\n";
    }
    folder.write("one.csv", one.replace(",c,y", ",k,y"));
    folder.write("wide.csv", wide);
    folder.write("apart.csv", apart);
    for (file, l2) in [("one.csv", "0.1"), ("wide.csv", "0.05"), ("apart.csv", "1e-7")] {
        let a = audited(&folder, &format!("{file} --target y --model softmax --l2 {l2} --sigma 0.5"));
        assert!(number(&a, "/records/eta/max") > 0.0, "{file}");
        assert!(!folder.read("o/audit.json").contains("NaN"));
    }
    let e = folder.run("audit apart.csv --target y --model softmax --out o").expect(2);
    assert!(e.stderr.contains("l2"), "{}", e.stderr);
}

#[test]
fn what_makes_no_model_is_said() {
    let folder = Folder::new();
    folder.write("t.csv", table(&TREES, 60, 5));
    let mut rare = table(&TREES, 60, 5);
    rare += "q1,30,2.0,north,a,yew\n";
    folder.write("rare.csv", rare);
    for (line, words) in [
        ("audit rare.csv --target species --drop id --model softmax", vec!["`yew`", "1 record", "join"]),
        (
            "audit t.csv --target species --drop id --model softmax --max-classes 2",
            vec!["3 classes", "--max-classes"],
        ),
        (
            "audit t.csv --target age --drop id --model softmax --max-classes 20",
            vec!["classes", "at most 20"],
        ),
        (
            "audit t.csv --target species --drop id --model softmax --max-classes 1",
            vec!["--max-classes", "at least 2"],
        ),
        ("audit t.csv --target species --drop id --model softmax --positive ash", vec!["ash"]),
    ] {
        let run = folder.run(&format!("{line} --out o")).expect(2);
        for word in words {
            assert!(run.stderr.contains(word), "{line}: {}", run.stderr);
        }
        assert!(!folder.path("o/report.html").exists(), "{line}");
    }
}

#[test]
fn noise_too_small_for_numbers_is_an_error() {
    let folder = Folder::new();
    let rows: String = (0..30).map(|i| format!("{},{}\n", i * 37 % 11, ["a", "b", "c"][i % 3])).collect();
    folder.write("t.csv", format!("x,y\n{rows}"));
    // η is a number at this noise, and its square is none.
    let run =
        folder.run("audit t.csv --target y --model softmax --l2 0.1 --sigma 1e-250 --json --quiet").expect(2);
    assert!(run.stderr.contains("--sigma"), "{}", run.stderr);
}
