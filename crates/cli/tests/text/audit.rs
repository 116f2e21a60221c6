//! `leakscope text audit`: PyTorch's losses and norms, the page, and what goes wrong.

use super::common::{Folder, Run};
use super::testdata;
use serde_json::Value;

fn audit(folder: &Folder, model: &str, more: &[&str]) -> Run {
    let model = testdata(model);
    let base = ["text", "audit", "--model", &model, "--seed", "3"];
    folder.run_words([&base[..], more].concat())
}

/// The texts that PyTorch was given, with what it made of them (testdata/text/make_models.py).
fn golden(name: &str) -> Vec<Value> {
    let all: Value =
        serde_json::from_str(&std::fs::read_to_string(testdata("models.json")).unwrap()).unwrap();
    let of = all[name].as_array().unwrap();
    of.iter().filter(|t| !t["text"].as_str().unwrap().contains('\n')).cloned().collect()
}

#[test]
fn losses_and_norms_are_those_of_pytorch() {
    for name in ["gpt2", "llama2"] {
        let folder = Folder::new();
        let golden = golden(name);
        assert!(!golden.is_empty());
        let lines: Vec<&str> = golden.iter().map(|t| t["text"].as_str().unwrap()).collect();
        folder.write("texts.txt", lines.join("\n"));
        let run = audit(&folder, name, &["texts.txt", "--no-eta", "--json"]).expect(0);
        let document = run.json();
        assert_eq!(document["schema"], "leakscope.text-audit/1");
        for (record, exact) in document["records"].as_array().unwrap().iter().zip(&golden) {
            for field in ["loss", "gradient_norm"] {
                let (ours, theirs) = (record[field].as_f64().unwrap(), exact[field].as_f64().unwrap());
                assert!((ours - theirs).abs() <= 1e-5 * theirs.abs(), "{name} {field}: {ours} {theirs}");
            }
            let tokens = record["tokens"].as_u64().unwrap();
            assert_eq!(tokens as usize, exact["ids"].as_array().unwrap().len());
            assert_eq!(record["plis_tokens"].as_array().unwrap().len() as u64, tokens - 1);
            assert!(record["dfil"].as_f64().unwrap() > 0.0);
            // the norm over all values is that of the norms over tokens
            let of = |v: &Value| v.as_f64().unwrap();
            let parts: f64 = record["plis_tokens"].as_array().unwrap().iter().map(|p| of(p).powi(2)).sum();
            assert!((parts.sqrt() / of(&record["plis"]) - 1.0).abs() < 1e-5, "{record}");
        }
    }
}

/// In double precision the figures are PyTorch's to the digits that are left after so many products.
#[test]
fn in_double_precision_they_are_those_of_pytorch_to_ten_digits() {
    for name in ["gpt2", "llama2"] {
        let folder = Folder::new();
        let golden = golden(name);
        let lines: Vec<&str> = golden.iter().map(|t| t["text"].as_str().unwrap()).collect();
        folder.write("texts.txt", lines.join("\n"));
        let more = ["texts.txt", "--no-eta", "--trace", "skip", "--precision", "f64", "--json"];
        let document = audit(&folder, name, &more).expect(0).json();
        assert_eq!(document["precision"], "f64");
        let records = document["records"].as_array().unwrap();
        assert!(records.len() == golden.len() && !golden.is_empty());
        for (record, exact) in records.iter().zip(&golden) {
            for field in ["loss", "gradient_norm"] {
                let (ours, theirs) = (record[field].as_f64().unwrap(), exact[field].as_f64().unwrap());
                assert!((ours - theirs).abs() <= 1e-10 * theirs.abs(), "{name} {field}: {ours} {theirs}");
            }
        }
    }
}

#[test]
fn trained_parts_pages_tables_and_exposure() {
    let folder = Folder::new();
    folder.write("notes.jsonl", "{\"note\": \"The code of Anna is 4812.\"}\n{\"note\": \"A short note.\"}\n");
    let more = [
        "notes.jsonl",
        "--field",
        "note",
        "--sigma",
        "2",
        "--clip",
        "1",
        "--trace",
        "4",
        "--secret",
        "4812",
        "--secret-pattern",
        "####",
        "--out",
        "out",
        "--format",
        "csv",
    ];
    let mut norms = vec![];
    for layers in ["all", "last", "adapters"] {
        let run =
            audit(&folder, "gpt2", &[&more[..], &["--layers", layers, "--rank", "2"]].concat()).expect(0);
        assert!(run.stdout.contains("exposure"), "{}", run.stdout);
        let document = folder.json("out/audit.json");
        assert_eq!((&document["trained"], &document["release"]["noise"]), (&layers.into(), &2.0.into()));
        let exposure = &document["exposures"][0];
        assert_eq!(
            (&exposure["secret"], &exposure["record"], &exposure["candidates"]),
            (&1.into(), &"1".into(), &10_000.into())
        );
        let (rank, bits) = (exposure["rank"].as_f64().unwrap(), exposure["exposure"].as_f64().unwrap());
        assert!((bits - (10_000_f64.log2() - rank.log2())).abs() < 1e-9);
        assert!(!folder.read("out/audit.json").contains("Anna"), "texts are on the page alone");
        norms.push(document["records"][0]["gradient_norm"].as_f64().unwrap());
        assert!(document["eta"]["max"].as_f64().unwrap() > 0.0);
    }
    // all parameters hold those of the last layer
    assert!(norms[0] > norms[1] && norms[2] > 0.0, "{norms:?}");
    assert_eq!(folder.csv("out/records.csv").len(), 2);
    let page = folder.read("out/report.html");
    // a word may be several tokens, each with its own colour
    assert!(page.contains("predicted, not read") && page.contains("rgba(214,96,60,"));
    audit(&folder, "gpt2", &[&more[..], &["--no-texts"]].concat()).expect(0);
    assert!(!folder.read("out/report.html").contains("predicted, not read"));
}

#[test]
fn long_texts_are_refused_or_split() {
    let folder = Folder::new();
    folder.write("long.txt", format!("{}\nshort text\n", "word and ".repeat(80)));
    let refused = audit(&folder, "gpt2", &["long.txt"]).expect(2).stderr;
    assert!(refused.contains("long.txt, line 1") && refused.contains("--long split"), "{refused}");
    let split =
        audit(&folder, "gpt2", &["long.txt", "--long", "split", "--no-eta", "--trace", "skip", "--json"]);
    let document = split.expect(0).json();
    let records = document["records"].as_array().unwrap();
    assert!(records.len() > 2 && records[0]["record"] == "1.1" && records.last().unwrap()["record"] == "2");
    let context = document["model"]["context"].as_u64().unwrap();
    assert!(records.iter().all(|r| r["tokens"].as_u64().unwrap() <= context && r["dfil"].is_null()));
    assert!(document["warnings"][0].as_str().unwrap().contains("cut"));
}

#[test]
fn bad_input_is_explained() {
    let folder = Folder::new();
    folder.write("a.txt", "The code is 4812.\n");
    folder.write("gap.txt", "one two\n\nthree four\n");
    folder.write("a.jsonl", "{\"note\": 3}\n");
    for (more, says) in [
        (&["nowhere.txt"][..], "nowhere.txt: cannot read it"),
        (&["gap.txt"], "gap.txt, line 2: the text is empty"),
        (&["a.jsonl"], "--field"),
        (&["a.jsonl", "--field", "note"], "line 1: `note` is no text"),
        (&["a.txt", "--clip", "-1", "--sigma", "1"], "--clip"),
        (&["a.txt", "--sigma", "0"], "--sigma: 0"),
        (&["a.txt", "--rank", "0"], "--rank: 0"),
        (
            &["a.txt", "--secret", "9999", "--secret-pattern", "####"],
            "--secret: `9999` is in none of the texts",
        ),
        (&["a.txt", "--secret", "code", "--secret-pattern", "####"], "is none of the 10000 texts"),
        (&["a.txt", "--secret", "4812", "--secret-pattern", "{x}"], "--secret-pattern"),
        (&["a.txt", "--tokenizer", "a.txt"], "--tokenizer"),
    ] {
        let run = audit(&folder, "gpt2", more).expect(2);
        assert!(run.stderr.contains(says) && run.stdout.is_empty(), "{more:?}: {}", run.stderr);
    }
}
