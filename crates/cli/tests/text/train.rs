//! `leakscope text train`: what is promised to whom, models that are read again, runs that go on, and what the published files
//! give away.

use super::common::{Folder, Run};
use super::testdata;
use leakscope_net::io::Tensors;
use leakscope_net::text::{LanguageModel, Tokenizer, Trained};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Ten texts of different lengths.
fn texts() -> String {
    let one = |i: usize| format!("The patient number {i} was given {i} mg{}.", " of warfarin".repeat(i % 3));
    (1..=10).map(|i| one(i) + "\n").collect()
}

/// The same by three users.
fn by_user() -> String {
    let line = |(i, text): (usize, &str)| format!("{{\"note\": \"{text}\", \"who\": \"u{}\"}}\n", i % 3);
    texts().lines().enumerate().map(line).collect()
}

fn train(folder: &Folder, model: &str, more: &[&str]) -> Run {
    let model = testdata(model);
    let base = ["text", "train", "--model", &model, "--batch", "4", "--clip", "1"];
    folder.run_words([&base[..], more].concat())
}

fn with_texts() -> Folder {
    let folder = Folder::new();
    folder.write("texts.txt", texts());
    folder.write("users.jsonl", by_user());
    folder.write("held.txt", "The code of Anna is 4812.\nThe patient number 1 was given 1 mg of warfarin.\n");
    folder
}

/// All values of a model's files, in the order of their names.
fn weights(out: &Path) -> Vec<f64> {
    let mut files: Vec<_> = fs::read_dir(out.join("model")).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "safetensors"));
    files.sort();
    let read = |path: &Path| Tensors::from_bytes(&fs::read(path).unwrap()).unwrap();
    let values = |file: Tensors| -> Vec<f64> {
        file.names().flat_map(|name| file.get::<f64>(name).unwrap().1).collect()
    };
    files.iter().flat_map(|path| values(read(path))).collect()
}

#[test]
fn a_private_run_promises_to_texts_keeps_their_accounts_and_leaves_a_model() {
    let folder = with_texts();
    let more = ["texts.txt", "--epsilon", "2", "--steps", "8", "--track", "--test", "held.txt"];
    let run = train(&folder, "gpt2", &[&more[..], &["--out", "run", "--format", "csv"]].concat()).expect(0);
    assert!(run.stdout.contains("perplexity") && run.stdout.contains("10 texts of"), "{}", run.stdout);
    let t = folder.json("run/training.json");
    assert_eq!(t["schema"], "leakscope.net-training/1");
    let epsilon = t["privacy"]["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 2.0 && epsilon > 1.9, "{epsilon}");
    assert_eq!(t["privacy"]["adjacency"], "zero-out");
    let statement = t["privacy"]["statement"].as_str().unwrap();
    assert!(statement.contains("one text replaced") && statement.contains("texts of one person add up"));
    assert_eq!(t["data"]["records"], 10);
    assert_eq!((&t["text"]["unit"], &t["text"]["trained"]), (&"text".into(), &"all".into()));
    let held = &t["text"]["holdout"];
    assert_eq!((&held["texts"], &held["seen"]), (&2.into(), &1.into()));
    let (loss, perplexity) = (held["loss"].as_f64().unwrap(), held["perplexity"].as_f64().unwrap());
    assert!((loss.exp() / perplexity - 1.0).abs() < 1e-12);
    // accounts of all, by their lines, with an own ε that the run's ε bounds
    let records = folder.csv("run/records.csv");
    assert_eq!(
        records.iter().map(|r| r["record"].as_str()).collect::<Vec<_>>(),
        ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
    );
    for record in &records {
        let (dfil, own): (f64, f64) = (record["dfil"].parse().unwrap(), record["epsilon"].parse().unwrap());
        assert!(dfil > 0.0 && own > 0.0 && own <= epsilon && !record.contains_key("label"), "{record:?}");
    }
    let page = folder.read("run/report.html");
    assert!(page.contains("class=\"verdict ") && page.contains("perplexity of held-out texts"));
    assert!(page.contains("for every text") && !page.contains("Anna"));
    // what the verdict says of the loss before is the audit's of the first model
    let audit = ["text", "audit", "held.txt", "--no-eta", "--trace", "skip", "--json", "--model"];
    let mean = |model: &str| {
        let answer = folder.run_words([&audit[..], &[model]].concat()).expect(0).json();
        let of = |r: &Value| (r["loss"].as_f64().unwrap(), r["tokens"].as_f64().unwrap() - 1.0);
        let all: Vec<(f64, f64)> = answer["records"].as_array().unwrap().iter().map(of).collect();
        all.iter().map(|(l, n)| l * n).sum::<f64>() / all.iter().map(|(_, n)| n).sum::<f64>()
    };
    assert!((mean(&testdata("gpt2")) / held["loss_before"].as_f64().unwrap() - 1.0).abs() < 1e-5);
    assert!((mean("run/model") / loss - 1.0).abs() < 1e-5);
    let canary = ["text", "canary", "--model", "run/model", "--steps", "1", "--sigmas", "1", "--trials", "2"];
    folder.run_words(canary).expect(0);
}

/// A run in the open learns the texts: the held-out loss of texts like them falls, whatever part is trained.
#[test]
fn every_part_learns_and_is_read_again() {
    for (model, layers, stored) in [
        ("gpt2", "all", "run/model"),
        ("gpt2", "last", "run/model"),
        ("gpt2", "adapters", "run/model"),
        ("llama2", "adapters", "run/model"),
        ("llama2.bin", "last", "run/model/llama2.bin"),
    ] {
        let folder = with_texts();
        let tokenizer = testdata("llama2/tokenizer.json");
        let own = if model.ends_with(".bin") { vec!["--tokenizer", &tokenizer] } else { vec![] };
        let more = ["texts.txt", "--steps", "60", "--adam", "--lr", "0.01", "--seed", "3", "--out", "run"];
        let part = ["--layers", layers, "--rank", "2", "--test", "texts.txt"];
        let base = ["text", "train", "--batch", "4", "--model"];
        let name = testdata(model);
        let run = folder.run_words([&base[..], &[&name], &more, &part, &own].concat()).expect(0);
        assert!(run.stdout.contains("no noise was added"), "{}", run.stdout);
        let t = folder.json("run/training.json");
        let held = &t["text"]["holdout"];
        let (before, after) = (held["loss_before"].as_f64().unwrap(), held["loss"].as_f64().unwrap());
        assert!(after < 0.8 * before, "{model} {layers}: {before} {after}");
        assert_eq!(held["seen"], 10);
        assert!(t["privacy"].is_null());
        let tokenizer = Tokenizer::read(Path::new(&match own.last() {
            Some(_) => folder.path("run/model/tokenizer.json"),
            None => folder.path("run/model"),
        }));
        let ids = tokenizer.unwrap().encode("The patient number 3 was given 3 mg.").unwrap();
        let again = LanguageModel::<f32>::read(&folder.path(stored), Trained::All).unwrap();
        let first = LanguageModel::<f32>::read(Path::new(&name), Trained::All).unwrap();
        let loss = |m: &LanguageModel<f32>| {
            leakscope_net::engine::losses(m.network(), &m.texts(&[&ids]).unwrap()).unwrap()[0]
        };
        assert!(loss(&again) < 0.8 * loss(&first), "{model} {layers}");
    }
}

#[test]
fn users_are_drawn_and_promised_to_as_a_whole() {
    let folder = with_texts();
    let users = ["users.jsonl", "--field", "note", "--user-field", "who", "--sigma", "2", "--steps", "3"];
    // a rate that was given keeps the number of users private
    let more = ["--rate", "0.5", "--batch", "2", "--out", "run"];
    let model = testdata("gpt2");
    let base = ["text", "train", "--model", &model, "--clip", "1"];
    folder.run_words([&base[..], &users, &more].concat()).expect(0);
    let t = folder.json("run/training.json");
    assert_eq!((&t["data"]["records"], &t["text"]["unit"]), (&3.into(), &"user".into()));
    assert_eq!((&t["text"]["texts"], &t["privacy"]["adjacency"]), (&10.into(), &"add-remove".into()));
    let statement = t["privacy"]["statement"].as_str().unwrap();
    assert!(statement.contains("one user that is there or is not"), "{statement}");
    // the account is that of three steps at rate 1/2 with σ = 2
    let account = ["account", "--sigma", "2", "--rate", "0.5", "--steps", "3", "--delta", "1e-5", "--json"];
    let theirs = folder.run_words(account).expect(0).json();
    let actual = theirs.to_string();
    let epsilon = t["privacy"]["epsilon_pld"]["upper"].as_f64().unwrap();
    let upper = numbers(&theirs).into_iter().any(|v| (v / epsilon - 1.0).abs() < 1e-9);
    assert!(upper, "{epsilon}: {actual}");
    assert!(folder.read("run/report.html").contains("for every user"));
    let refused = folder.run_words([&base[..], &users, &["--track", "--batch", "2", "--out", "no"]].concat());
    assert!(refused.expect(2).stderr.contains("--track: accounts are of single texts"));
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(n) => n.as_f64().into_iter().collect(),
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        Value::Object(all) => all.values().flat_map(numbers).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => vec![],
    }
}

/// A text that was cut is one text: its pieces are drawn together, and ε is for all of it.
#[test]
fn a_text_that_is_cut_is_promised_to_whole() {
    let folder = with_texts();
    folder.write("long.txt", format!("{}\nA short note.\n", "word and ".repeat(80)));
    let more = ["long.txt", "--sigma", "1", "--steps", "2", "--batch", "1", "--out", "run"];
    let model = testdata("gpt2");
    let base = ["text", "train", "--model", &model, "--clip", "1"];
    let refused = folder.run_words([&base[..], &more].concat()).expect(2).stderr;
    assert!(refused.contains("long.txt, line 1") && refused.contains("--long split"), "{refused}");
    folder.run_words([&base[..], &more, &["--long", "split"]].concat()).expect(0);
    let t = folder.json("run/training.json");
    assert_eq!((&t["data"]["records"], &t["text"]["texts"]), (&2.into(), &2.into()));
    assert!(t["text"]["pieces"].as_u64().unwrap() > 2);
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("clipped whole"));
}

#[test]
fn a_run_goes_on_from_its_checkpoint_as_if_it_had_not_stopped() {
    let folder = with_texts();
    let noise = ["--sigma", "1", "--seed", "5", "--not-private-noise-from-seed", "--adam", "--lr", "0.01"];
    let same =
        [&["users.jsonl", "--field", "note", "--user-field", "who", "--layers", "adapters"][..], &noise];
    let run = |out: &str, steps: &str, more: &[&str]| {
        let model = testdata("gpt2");
        let base = ["text", "train", "--model", &model, "--batch", "2", "--clip", "1", "--rank", "2"];
        let end = ["--steps", steps, "--out", out];
        folder.run_words([&base[..], &same.concat(), &end, more].concat())
    };
    run("whole", "6", &[]).expect(0);
    run("halves", "3", &[]).expect(0);
    run("halves", "6", &["--resume"]).expect(0);
    let model = |out: &str| fs::read(folder.path(out).join("model/model.safetensors")).unwrap();
    assert!(model("whole") == model("halves"));
    assert!(folder.json("whole/training.json")["privacy"]["epsilon"].is_null());
    // another model, part or clip is another run
    for (more, says) in [
        (&["--layers", "all"][..], "--model: the run started from another model"),
        (&["--rank", "3"], "--model: the run started from another model"),
        (&["--clip", "2"], "--clip"),
        (&["--lr", "0.02"], "--lr: 0.02; the run to go on with has 0.01"),
    ] {
        // the last of two equal flags counts
        let model = testdata("gpt2");
        let mut words: Vec<&str> =
            vec!["text", "train", "--model", &model, "--steps", "8", "--out", "halves"];
        let all = [&["--batch", "2", "--clip", "1", "--rank", "2"][..], &same.concat()].concat();
        let mut options = all.clone();
        let at = options.iter().position(|w| *w == more[0]).unwrap();
        options[at + 1] = more[1];
        words.extend(options);
        words.push("--resume");
        let message = folder.run_words(words).expect(2).stderr;
        assert!(message.contains(says), "{more:?}: {message}");
    }
    // a damaged checkpoint is no start
    let path = folder.path("halves/private/checkpoint.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let message = run("halves", "8", &["--resume"]).expect(2).stderr;
    assert!(message.contains("damaged"), "{message}");
}

/// The attacker knows every text but one, every setting and all files outside `private/`. Where the noise follows from the seed, a
/// run without the text has the same noise, and the difference of the models is that text's gradient alone; in a private run it
/// is the noise of two runs, whatever numbers were published.
#[test]
fn the_published_files_do_not_take_the_noise_off() {
    let folder = with_texts();
    let text = texts();
    let neighbour: Vec<&str> = text.lines().take(9).collect();
    folder.write("neighbour.txt", neighbour.join("\n"));
    let step = |file: &str, out: &str, more: &[&str]| {
        let model = testdata("gpt2");
        let base = ["text", "train", file, "--model", &model, "--out", out, "--precision", "f64"];
        let one = ["--steps", "1", "--rate", "1", "--batch", "10", "--lr", "1", "--momentum", "0"];
        let noise = ["--clip", "1", "--sigma", "1"];
        folder.run_words([&base[..], &one, &noise, more].concat()).expect(0);
        weights(&folder.path(out))
    };
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let seeded = ["--seed", "5", "--not-private-noise-from-seed"];
    let (open, without) = (step("texts.txt", "open", &seeded), step("neighbour.txt", "without", &seeded));
    let told = distance(&open, &without);
    // one clipped gradient, and what rounding to the grid of the noise adds
    assert!(told > 0.0 && told <= 0.1 * 1.1, "{told}: the attack has no force");

    let published = step("texts.txt", "run", &["--seed", "5"]);
    // a coordinate of a difference of two noises has variance 2(σC/10)²; p is over nine thousand
    let expected = (2.0 * published.len() as f64).sqrt() * 0.1;
    for other in [
        open,
        without,
        step("texts.txt", "again", &["--seed", "5"]),
        step("neighbour.txt", "again-without", &["--seed", "5"]),
    ] {
        let left = distance(&published, &other);
        assert!((left / expected - 1.0).abs() < 0.1, "{left} {expected}");
    }
    // the key is in private/ alone
    let checkpoint = fs::read(folder.path("run/private/checkpoint.safetensors")).unwrap();
    let key = Tensors::from_bytes(&checkpoint).unwrap().metadata["secret-key"].clone();
    assert_eq!(key.len(), 64);
    let raw: Vec<u8> = (0..32).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).unwrap()).collect();
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|w| w == part);
    assert!(has(&checkpoint, key.as_bytes()));
    let mut seen = 0;
    for (path, bytes) in folder.files("run").into_iter().chain(folder.files("run/model")) {
        assert!(!has(&bytes, key.as_bytes()) && !has(&bytes, &raw), "{}", path.display());
        seen += 1;
    }
    // the document, the page and whatever is in model/
    assert!(seen >= 7, "{seen}");
}

#[test]
fn bad_input_is_explained() {
    let folder = with_texts();
    folder.write("gap.txt", "one two\n\nthree four\n");
    folder.write("empty.txt", "");
    folder.write("nobody.jsonl", "{\"note\": \"one two three\", \"who\": null}\n");
    fs::create_dir(folder.path("bert")).unwrap();
    folder.write("bert/config.json", r#"{"model_type": "bert"}"#);
    // a tokeniser with more tokens than the model has
    let tokenizer = testdata("llama2/tokenizer.json");
    for (more, says) in [
        (&["nowhere.txt"][..], "nowhere.txt: cannot read it"),
        (&["gap.txt"], "gap.txt, line 2: the text is empty"),
        (&["empty.txt"], "there is no text"),
        (&["users.jsonl"], "--field"),
        (&["texts.txt", "--user-field", "who"], "--field"),
        (&["nobody.jsonl", "--field", "note", "--user-field", "who"], "line 1: `who` names nobody"),
        (&["users.jsonl", "--field", "note", "--user-field", "whom"], "there is no field `whom`"),
        (&["texts.txt", "--tokenizer", &tokenizer], "--tokenizer: texts.txt, line 1: the text has token"),
        (&["texts.txt", "--rank", "0"], "--rank: 0"),
        (&["texts.txt", "--sigma", "0"], "--sigma: 0"),
        (&["texts.txt", "--sigma", "1", "--clip-kind", "none"], "--clip"),
        (&["texts.txt", "--rate", "2"], "--rate: 2"),
        (&["texts.txt", "--lr", "nan"], "--lr"),
        (&["texts.txt", "--delta", "1e-5"], "--delta"),
        (&["texts.txt", "--holdout", "empty.txt"], "there is no text"),
        (&["texts.txt", "--resume"], "--resume"),
        (&["texts.txt", "--sigma", "1", "--batch", "11"], "--batch: 11: there are only 10"),
    ] {
        let model = testdata("gpt2");
        let clip: &[&str] = if more.contains(&"--sigma") { &["--clip", "1"] } else { &[] };
        let batch: &[&str] = if more.contains(&"--batch") { &[] } else { &["--batch", "4"] };
        let none = more.contains(&"--clip-kind");
        let clip = if none { &[] } else { clip };
        let words = [&["text", "train", "--model", &model, "--out", "out"][..], batch, clip, more].concat();
        let run = folder.run_words(words).expect(2);
        assert!(run.stderr.contains(says) && run.stdout.is_empty(), "{more:?}: {}", run.stderr);
    }
    let of = |model: &str| {
        folder.run_words(["text", "train", "texts.txt", "--model", model, "--out", "out"]).expect(2).stderr
    };
    assert!(of("nowhere").contains("--model: nowhere does not exist"));
    assert!(of("bert").contains("gpt2 and llama"));
    // results never take the place of the model that is read
    train(&folder, "gpt2", &["texts.txt", "--sigma", "1", "--steps", "1", "--out", "run"]).expect(0);
    let words = ["text", "train", "texts.txt", "--model", "run/model", "--batch", "4", "--out", "run"];
    let message = folder.run_words(words).expect(2).stderr;
    assert!(message.contains("is read by this command"), "{message}");
    // nor stay old weights beside new ones
    let message = train(&folder, "llama2", &["texts.txt", "--sigma", "1", "--out", "run"]).expect(2).stderr;
    assert!(message.contains("of another model"), "{message}");
}
