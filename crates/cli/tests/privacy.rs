//! `leakscope account`, `bound` and `calibrate` as a user types them.

use serde_json::Value;
use std::process::{Command, Output};

fn leakscope(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leakscope"))
        .args(line.split_whitespace())
        .output()
        .expect("the binary runs")
}

fn json(line: &str) -> Value {
    let output = leakscope(&format!("{line} --json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on stdout")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn an_account_holds_the_published_epsilon() {
    // Google's dp-accounting, PLD at a grid of 1e-4.
    let a = json("account --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5");
    let (lower, upper) = (number(&a["epsilon"]["pld"]["lower"]), number(&a["epsilon"]["pld"]["upper"]));
    assert!(lower <= 1.8282 && 1.8282 <= upper && upper / lower < 1.001, "{lower} {upper}");
    assert!(number(&a["epsilon"]["rdp"]) <= 2.101);
    assert!(a["trade_off"].as_array().unwrap().len() > 20);
    assert_eq!(a["adjacency"], "add-remove");
    let replace = json("account --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5 --adjacency replace");
    assert!(number(&replace["epsilon"]["pld"]["lower"]) > upper);
    assert_eq!(number(&json("account --laplace 2 --delta 1e-9")["epsilon"]["pure"]), 0.5);
    let text = leakscope("account --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5");
    assert!(String::from_utf8_lossy(&text.stdout).contains("certified"));
}

#[test]
fn bounds_come_tightest_first_beside_the_best_attack() {
    let b = json("bound --candidates 10 --mechanism gaussian --encoding one-hot --sigma 1");
    let rows = b["bounds"].as_array().unwrap();
    let success: Vec<f64> = rows.iter().map(|r| number(&r["success"])).collect();
    assert!(success.windows(2).all(|w| w[0] <= w[1]) && success[0] < 0.3700);
    assert!(
        rows.iter().all(|r| r["source"].is_string() && r["assumptions"].is_array() && r["name"].is_string())
    );
    let best = number(&b["optimal"]["exact"]);
    assert!((best - 0.341).abs() < 1e-3 && best <= success[0]);
    assert!(rows.iter().all(|r| number(&r["advantage"]) < number(&r["success"])));
    json("bound --candidates 10000000000 --mechanism randomised-response --noise 0.9");
    json(
        "bound --prior 0.5,0.3,0.2 --mechanism dp-sgd --sigma 1 --rate 0.01 --steps 100 --adjacency replace",
    );
}

#[test]
fn calibration_is_on_the_safe_side_and_tight() {
    let c = json("calibrate --advantage 0.1 --rate 0.002 --steps 10000 --adjacency add-remove");
    assert!((number(&c["sigma"]) / 1.0251 - 1.0).abs() < 1e-3, "{c}");
    assert!(number(&c["achieved"]) <= 0.1);
    let c = json("calibrate --epsilon 2 --delta 1e-5 --sigma 1 --rate 0.01 --adjacency add-remove");
    let steps = c["steps"].as_u64().unwrap();
    let at = |steps: u64| {
        let a = json(&format!("account --sigma 1 --rate 0.01 --steps {steps} --delta 1e-5"));
        number(&a["epsilon"]["pld"]["lower"])
    };
    assert!(at(steps) <= 2.0 && at(steps + steps / 100) > 2.0);
}

#[test]
fn releases_of_several_kinds_compose_in_any_order() {
    let of = |steps: &str| json(&format!("account {steps} --delta 1e-5"));
    let (gaussian, laplace) = ("--step sigma=1,rate=0.01,steps=1000", "--step laplace=20,steps=3");
    let (a, b) = (of(&format!("{gaussian} {laplace}")), of(&format!("{laplace} {gaussian}")));
    let upper = |a: &Value| number(&a["epsilon"]["pld"]["upper"]);
    assert!((upper(&a) - upper(&b)).abs() < 1e-9 && upper(&a) > upper(&of(gaussian)));
    assert_eq!(a["releases"].as_array().unwrap().len(), 2);
    assert_eq!(a["adjacency_assumed"], true);
    assert_eq!(of("--sigma 1 --adjacency replace")["adjacency_assumed"], false);
    assert_eq!(of("--step randomised-response=4,noise=0.5")["adjacency"], "replace");
}

#[test]
fn the_papers_curves_come_from_one_command_each() {
    // Fig. 2: more candidates, less advantage at the same ε; ten thousand million of them too.
    let f = json("bound --curve epsilon --candidates 2,100,10^10 --at 0.5,2,8");
    let series = f["figures"][0]["series"].as_array().unwrap();
    assert_eq!(series.len(), 3);
    let y = |s: usize, k: usize| number(&series[s]["points"][k]["y"]);
    for k in 0..3 {
        assert!(y(0, k) >= y(1, k) && y(1, k) > y(2, k), "{k}");
    }
    assert!(series.iter().all(|s| s["claim"] == "bound"));
    // Fig. 3: no bound under the optimal attack, and Fano with exact information meets it for randomised response.
    for line in [
        "bound --candidates 10 --mechanism randomised-response --curve noise --at 0.2,0.5,0.9",
        "bound --candidates 10 --mechanism gaussian --curve noise --at 0.5,1,3 --trials 20000",
        "bound --prior 0.5,0.3,0.2 --mechanism gaussian --encoding line --curve noise --at 0.5,2 --trials 20000",
    ] {
        let f = json(line);
        let series = f["figures"][0]["series"].as_array().unwrap();
        let attack = series.iter().find(|s| s["claim"] != "bound").expect("the attack is there");
        for s in series.iter().filter(|s| s["claim"] == "bound") {
            for (p, best) in s["points"].as_array().unwrap().iter().zip(attack["points"].as_array().unwrap())
            {
                let low = best["interval"][0].as_f64().unwrap_or(number(&best["y"]));
                assert!(number(&p["y"]) >= low - 1e-9, "{line}: {} {p} {best}", s["name"]);
            }
        }
        if let Some(exact) = series.iter().find(|s| s["name"] == "Fano, exact information") {
            assert!((number(&exact["points"][1]["y"]) - number(&attack["points"][1]["y"])).abs() < 1e-8);
        }
        assert!(f["figures"].as_array().unwrap().len() == 2, "ε beside it");
    }
}

#[test]
fn estimates_of_a_number_are_bounded_by_its_eta() {
    let b = json("bound --eta 0.5 --prior-sd 3");
    let e = b["estimation"].as_array().unwrap();
    assert!((number(&e[0]["error"]["value"]) - 2.0).abs() < 1e-9);
    assert!((number(&e[1]["error"]["value"]) - 1.0 / (0.25_f64 + 1.0 / 9.0).sqrt()).abs() < 1e-9);
    assert_eq!(
        (&e[0]["error"]["theorem"], &e[1]["error"]["theorem"]),
        (&"cramer-rao".into(), &"van-trees".into())
    );
}

#[test]
fn noise_on_a_secret_is_calibrated_from_both_sides() {
    for (secret, encoding) in [("--candidates 10", "one-hot"), ("--prior 0.5,0.3,0.2", "line")] {
        let c = json(&format!("calibrate --success 0.6 {secret} --encoding {encoding}"));
        let at = |sigma: f64| {
            let b = json(&format!(
                "bound {secret} --mechanism gaussian --encoding {encoding} --sigma {sigma} --trials 0"
            ));
            number(&b["bounds"][0]["success"])
        };
        let sigma = number(&c["sigma"]);
        assert!(at(sigma) <= 0.6 && at(0.999 * sigma) > 0.6, "{sigma}");
    }
}

#[test]
fn bad_input_is_refused_with_advice() {
    for (line, message) in [
        ("account --delta 1e-5", "--sigma"),
        ("account --sigma 0 --delta 1e-5", "sigma"),
        ("account --sigma -1 --delta 1e-5", "sigma"),
        ("account --sigma 1 --delta 2", "delta"),
        ("account --laplace 1 --rate 0.1 --delta 1e-5", "--rate"),
        ("account --randomised-response 4 --noise 0.5 --delta 1e-5 --adjacency add-remove", "replace"),
        ("bound --candidates 1 --mechanism gaussian --sigma 1", "2"),
        ("bound --prior 0.5,0.3 --mechanism gaussian --sigma 1", "1"),
        ("bound --candidates 4 --mechanism gaussian", "--sigma"),
        ("bound --candidates 4 --mechanism dp-sgd --sigma 1 --rate 0.1 --steps 10", "--adjacency"),
        ("bound --candidates 4 --mechanism laplace --laplace 1", "--adjacency"),
        ("bound --candidates 4 --mechanism gaussian --sigma 0", "sigma"),
        ("bound --candidates 4 --mechanism gaussian --sigma 1 --rate 0.1", "--rate"),
        ("bound --candidates 4 --mechanism randomised-response --noise 0.5 --encoding line", "--encoding"),
        ("bound --candidates 4,5 --mechanism gaussian --sigma 1", "--curve"),
        ("bound --candidates 4 --sigma 1", "--mechanism"),
        ("bound --mechanism gaussian --sigma 1", "--candidates"),
        ("bound --candidates 4 --mechanism gaussian --sigma 1 --encoding no-such-file.csv", "one-hot"),
        ("bound --candidates 4 --mechanism gaussian --sigma 1 --l2 0.1", "--data"),
        (
            "bound --candidates 4 --mechanism composition --step sigma=1 --step q=3 --adjacency replace",
            "--step",
        ),
        ("bound --candidates 1 --curve epsilon", "at least 2"),
        ("bound --curve epsilon --at -1", "--at"),
        ("bound --candidates 4 --mechanism dp-sgd --curve noise", "--curve"),
        ("bound --candidates 4 --mechanism renyi --alpha 0 --epsilon 1", "alpha"),
        ("bound --candidates 4 --mechanism renyi --alpha -2 --epsilon 1", "alpha"),
        ("bound --candidates 4 --mechanism renyi --alpha 2", "--epsilon"),
        ("bound --candidates 4 --mechanism gaussian --sigma 1 --alpha 2", "--alpha"),
        ("bound --eta 0", "--eta"),
        ("account --step sigma=1,rate=2 --delta 1e-5", "--rate: 2: expected a probability"),
        ("account --step sigma=1 --step randomised-response=4,noise=0.5 --delta 1e-5", "--adjacency"),
        ("account --sigma 1 --laplace 2 --delta 1e-5", "--step"),
        ("calibrate --advantage 0.1 --rate 0.1 --steps 10", "--adjacency"),
        ("calibrate --success 0.2 --rate 0.1 --steps 10 --adjacency replace", "--candidates"),
        ("calibrate --success 0.05 --candidates 10 --encoding one-hot", "0.05"),
        (
            "calibrate --epsilon 0.001 --delta 1e-9 --sigma 0.3 --rate 0.5 --adjacency add-remove",
            "reaches the target",
        ),
        ("calibrate --eta 0.1", "--data"),
        ("calibrate --advantage 0.1 --rate 0.1", "third"),
        ("calibrate --rate 0.1 --steps 10 --adjacency replace", "target"),
        ("calibrate --success 0.05 --candidates 10 --rate 0.1 --steps 10 --adjacency replace", "0.05"),
    ] {
        let output = leakscope(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(message), "{line}: {stderr}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}
