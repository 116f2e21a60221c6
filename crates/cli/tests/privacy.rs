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
    let c = json("calibrate --advantage 0.1 --rate 0.002 --steps 10000");
    assert!((number(&c["sigma"]) / 1.0251 - 1.0).abs() < 1e-3, "{c}");
    assert!(number(&c["achieved"]) <= 0.1);
    let c = json("calibrate --epsilon 2 --delta 1e-5 --sigma 1 --rate 0.01");
    let steps = c["steps"].as_u64().unwrap();
    let at = |steps: u64| {
        let a = json(&format!("account --sigma 1 --rate 0.01 --steps {steps} --delta 1e-5"));
        number(&a["epsilon"]["pld"]["lower"])
    };
    assert!(at(steps) <= 2.0 && at(steps + steps / 100) > 2.0);
}

#[test]
fn bad_input_is_refused_with_advice() {
    for (line, said) in [
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
        ("calibrate --advantage 0.1 --rate 0.1", "third"),
        ("calibrate --rate 0.1 --steps 10", "target"),
        ("calibrate --success 0.05 --candidates 10 --rate 0.1 --steps 10", "0.05"),
    ] {
        let output = leakscope(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(said), "{line}: {stderr}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}
