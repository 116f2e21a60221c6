//! `leakscope text canary`: the document, its page, and what goes wrong.

use super::common::{Folder, Run};
use super::testdata;
use serde_json::Value;

fn canary(folder: &Folder, more: &[&str]) -> Run {
    let model = testdata("gpt2");
    let base = ["text", "canary", "--model", &model, "--seed", "3"];
    folder.run_words([&base[..], more].concat())
}

fn success(point: &Value, list: &str, name: &str, kind: &str) -> Option<f64> {
    let one = point[list].as_array().unwrap().iter().find(|b| b[name] == kind)?;
    one["success"]["value"].as_f64()
}

#[test]
fn bounds_and_attacks_of_both_variants_are_in_order() {
    let folder = Folder::new();
    let run = canary(
        &folder,
        &[
            "--prompt",
            "The patient was",
            "--layers",
            "last,all",
            "--steps",
            "1,2",
            "--sigmas",
            "0.3,2",
            "--trials",
            "60",
            "--out",
            "out",
        ],
    )
    .expect(0);
    assert!(run.stdout.contains("2T/σ²") && run.stderr.contains("canary.json"), "{run:?}");
    let document = folder.json("out/canary.json");
    assert_eq!(document["schema"], "leakscope.text-canary/1");
    assert_eq!(document["secret"]["candidates"], document["model"]["vocabulary"]);
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 8);
    let p = document["secret"]["most_likely"].as_f64().unwrap();
    for point in points {
        let bound = |kind| success(point, "bounds", "kind", kind);
        let (fano, zero, centre) =
            (bound("fano-rdp").unwrap(), bound("around-zero").unwrap(), bound("around-centre").unwrap());
        assert!(centre <= zero && zero < fano && centre >= p, "{point}");
        let t = point["steps"].as_f64().unwrap();
        let sigma = point["sigma"].as_f64().unwrap();
        assert!((point["rdp"].as_f64().unwrap() - 2.0 * t / (sigma * sigma)).abs() < 1e-12);
        for attack in point["attacks"].as_array().unwrap() {
            assert!(attack["success"]["ci_low"].as_f64().unwrap() <= centre, "{point}");
        }
        // the optimal attack is known where the last layer is trained, and at one step of all
        let optimal = success(point, "attacks", "attack", "optimal").is_some();
        assert_eq!(optimal, point["trained"] == "last" || point["steps"] == 1, "{point}");
        assert!(success(point, "attacks", "attack", "difference").is_some());
    }
    let page = folder.read("out/report.html");
    assert!(page.contains("The patient was") && page.contains("class=\"verdict "));
    // the same seed plays the same games
    let again = canary(
        &folder,
        &[
            "--prompt",
            "The patient was",
            "--layers",
            "last,all",
            "--steps",
            "1,2",
            "--sigmas",
            "0.3,2",
            "--trials",
            "60",
            "--json",
        ],
    );
    assert_eq!(again.expect(0).json()["points"], document["points"]);
}

#[test]
fn secrets_of_several_tokens_come_from_files_patterns_and_draws() {
    let folder = Folder::new();
    folder.write("names.txt", "Anna Berg\nBoris Dahl\n\nCarla Eden\nAnna Berg\n");
    let few = ["--steps", "1", "--sigmas", "0.5", "--trials", "20", "--json"];
    let listed =
        canary(&folder, &[&few[..], &["--candidates", "names.txt", "--prior", "model"]].concat()).expect(0);
    let document = listed.json();
    assert_eq!(
        (&document["secret"]["candidates"], &document["secret"]["source"]),
        (&3.into(), &"list".into())
    );
    assert!(document["secret"]["most_likely"].as_f64().unwrap() > 1.0 / 3.0);
    assert!(listed.stderr.contains("counts once"), "{}", listed.stderr);
    let cards = canary(&folder, &[&few[..], &["--pattern", "4539 1#{luhn}"]].concat()).expect(0).json();
    assert_eq!((&cards["secret"]["candidates"], &cards["secret"]["source"]), (&10.into(), &"pattern".into()));
    let drawn = canary(
        &folder,
        &["--secret-tokens", "2", "--trials", "0", "--steps", "1", "--sigmas", "1", "--json"],
    );
    let drawn = drawn.expect(0).json();
    assert_eq!(drawn["secret"]["source"], "drawn");
    assert!(drawn["points"][0]["attacks"].as_array().unwrap().is_empty());
}

#[test]
fn bad_input_is_explained() {
    let folder = Folder::new();
    folder.write("one.txt", "Anna\n");
    folder.write("empty.txt", "\n\n");
    std::fs::create_dir(folder.path("bert")).unwrap();
    folder.write("bert/config.json", r#"{"model_type": "bert"}"#);
    let long = "word ".repeat(400);
    for (more, says) in [
        (&["--clip", "0"][..], "--clip: 0"),
        (&["--sigmas", "1,-2"], "--sigmas: -2"),
        (&["--steps", "0"], "--steps"),
        (&["--lr", "nan"], "--lr: NaN"),
        (&["--prompt", "  "], "--prompt: empty"),
        (&["--prompt", &long], "--prompt: "),
        (&["--secret-tokens", "0"], "--secret-tokens: 0"),
        (&["--candidates", "nowhere.txt"], "--candidates: nowhere.txt"),
        (&["--candidates", "one.txt"], "expected at least 2"),
        (&["--candidates", "empty.txt"], "0 different candidates"),
        (&["--pattern", "{date:1-x}"], "expected years"),
        (&["--pattern", "######"], "more than 100000"),
        (&["--tokenizer", "one.txt"], "--tokenizer"),
    ] {
        let run = canary(&folder, &[more, &["--trials", "1"]].concat()).expect(2);
        assert!(run.stderr.contains(says) && run.stdout.is_empty(), "{more:?}: {}", run.stderr);
    }
    let of = |model: &str| {
        folder.run_words(["text", "canary", "--model", model, "--trials", "1"]).expect(2).stderr
    };
    assert!(of("nowhere").contains("--model: nowhere does not exist"));
    assert!(of("bert").contains("bert") && of("bert").contains("gpt2 and llama"));
    assert!(of(&testdata("llama2.bin")).contains("--tokenizer"), "{}", of(&testdata("llama2.bin")));
}
