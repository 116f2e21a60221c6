//! Public records: training on them first, freezing the smallest weights after it, and what is refused.

use super::support::*;
use leakscope_net::io::Tensors;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Two idx files of images in a folder of their own.
fn public(dir: &Path, name: &str, n: usize) -> [PathBuf; 2] {
    let (x, y) = images(n, 15.0, 77);
    let (a, b) = (dir.join(format!("{name}-images")), dir.join(format!("{name}-labels")));
    fs::write(&a, idx(&[n, SIDE, SIDE], &x)).unwrap();
    fs::write(&b, idx(&[n], &y)).unwrap();
    [a, b]
}

fn weights(folder: &Path) -> Vec<f32> {
    let file = Tensors::from_bytes(&fs::read(folder.join("model.safetensors")).unwrap()).unwrap();
    let mut names: Vec<String> =
        file.names().filter(|n| n.starts_with("layers.")).map(str::to_owned).collect();
    names.sort();
    names.iter().flat_map(|n| file.get::<f32>(n).unwrap().1).collect()
}

const FIRST: [&str; 8] =
    ["--public-steps", "7", "--public-batch", "10", "--public-lr", "0.2", "--public-optimizer", "sgd"];

/// The same steps as a run of its own on the public records are its oracle: what is frozen stays at exactly those
/// values, the smallest of them, and the rest moves.
#[test]
fn a_run_starts_from_public_training_and_freezes_its_smallest_weights() {
    let data = folder(48);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let net = network(dir);
    let alone = dir.join("alone");
    let base =
        ["train", "--network", text(&net), "--seed", "5", "--out", text(&alone), "--data", text(&images)];
    let rest = ["--sampling", "shuffle", "--batch", "10", "--steps", "7", "--lr", "0.2", "--momentum", "0"];
    answered(&[&base[..], &[text(&labels)], &rest].concat());
    let before = weights(&alone);

    let shared = ["--public", text(&images), text(&labels), "--steps", "4"];
    let whole = dir.join("whole");
    private(dir, &whole, &[&shared[..], &FIRST].concat());
    // Noise lies on a grid of a thousandth of it, and four steps come back to where they began once in a while.
    let unmoved = weights(&whole).iter().zip(&before).filter(|(a, b)| a == b).count();
    assert!(unmoved <= 3 + before.len() / 200, "every weight is trained in private, not {unmoved}");
    let half = dir.join("half");
    private(dir, &half, &[&shared[..], &FIRST, &["--density", "0.5", "--track", "every"]].concat());
    let after = weights(&half);
    let n = before.len();
    let mut by_size: Vec<usize> = (0..n).collect();
    by_size.sort_by(|&a, &b| before[a].abs().total_cmp(&before[b].abs()));
    let (kept, trained) = by_size.split_at((0.5 * n as f64).round() as usize);
    assert!(kept.iter().all(|&i| after[i] == before[i]), "the smallest stay");
    let unmoved = trained.iter().filter(|&&i| after[i] == before[i]).count();
    assert!(unmoved <= 3 + n / 200, "the others move, not {unmoved}");

    let run = json(&half.join("training.json"));
    assert_eq!(run["public"]["density"], 0.5);
    let first = &run["public"]["pretraining"];
    assert_eq!((&first["records"], &first["steps"], &first["batch"]), (&30.into(), &7.into(), &10.into()));
    assert_eq!(first["optimizer"], "SGD with momentum 0");
    let open = json(&alone.join("training.json"));
    let last = open["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(first["accuracy"], last["accuracy"], "measured on the same records");
    assert!(first["watched_accuracy"].as_f64().is_some());
    assert_eq!(run["network"]["trained"], n - kept.len());
    let statement = run["privacy"]["statement"].as_str().unwrap();
    assert!(
        statement.contains("public-images") && statement.contains("nothing is promised to them"),
        "{statement}"
    );
    // no step on public records is counted
    let plain = dir.join("plain");
    private(dir, &plain, &["--steps", "4"]);
    let plain = json(&plain.join("training.json"));
    assert_eq!(run["privacy"]["epsilon"], plain["privacy"]["epsilon"]);
    assert!(plain.get("public").is_none());
    let page = fs::read_to_string(half.join("report.html")).unwrap();
    check_page(&page);
    for message in ["first trained on public records", "public-images", "stay at their public values"] {
        assert!(page.contains(message), "{message}");
    }
}

/// Public training moves the layers that the run leaves as they are; a density of 1 freezes nothing more.
#[test]
fn layers_are_frozen_after_public_training() {
    let data = folder(48);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let shared = [&["--public", text(&images), text(&labels), "--density", "1"][..], &FIRST].concat();
    let (one, two) = (dir.join("one"), dir.join("two"));
    private(dir, &one, &[&shared[..], &["--steps", "1", "--freeze", "0"]].concat());
    private(dir, &two, &[&shared[..], &["--steps", "5", "--freeze", "0"]].concat());
    let random = dir.join("random");
    private(dir, &random, &["--steps", "1", "--freeze", "0"]);
    let conv = |dir: &Path| {
        let file = Tensors::from_bytes(&fs::read(dir.join("model.safetensors")).unwrap()).unwrap();
        file.get::<f32>("layers.0.weight").unwrap().1
    };
    assert_eq!(conv(&one), conv(&two));
    assert!(conv(&one).iter().zip(conv(&random)).all(|(a, b)| *a != b));
}

#[test]
fn a_run_goes_on_only_as_it_started() {
    let data = folder(48);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let [other_images, other_labels] = public(dir, "other", 27);
    let (halves, straight) = (dir.join("given"), dir.join("straight"));
    let from = [&["--public", text(&images), text(&labels), "--density", "0.5"][..], &FIRST].concat();
    let seeded = ["--not-private-noise-from-seed"];
    private(dir, &straight, &[&from[..], &seeded, &["--steps", "8"]].concat());
    private(dir, &halves, &[&from[..], &seeded, &["--steps", "4"]].concat());
    let net = network(dir);
    let resume = [
        "train",
        "--data",
        text(dir),
        "--network",
        text(&net),
        "--out",
        text(&halves),
        "--batch",
        "12",
        "--lr",
        "0.3",
        "--sigma",
        "0.8",
        "--clip",
        "1",
        "--seed",
        "5",
        "--format",
        "csv",
        "--resume",
        "--steps",
        "8",
        "--not-private-noise-from-seed",
    ];
    let replaced = |was: &str, is: &'static str| -> Vec<&str> {
        from.iter().map(|a| if *a == was { is } else { a }).collect()
    };
    let others =
        [&["--public", text(&other_images), text(&other_labels), "--density", "0.5"][..], &FIRST].concat();
    for (more, says) in [
        (vec![], "--public-steps: none; the run was started with 7"),
        (others, "--public: the run was first trained on other public records"),
        (replaced("0.2", "0.1"), "--public-lr: 0.1; the run was started with 0.2"),
        (replaced("0.5", "0.25"), "--density: 0.25; the run was started with 0.5"),
    ] {
        let message = refused(&[&resume[..], &more].concat());
        assert!(message.contains(says), "{more:?}: {message}");
    }
    answered(&[&resume[..], &from].concat());
    assert_eq!(weights(&halves), weights(&straight));
    let run = json(&halves.join("training.json"));
    assert_eq!(run["public"], json(&straight.join("training.json"))["public"]);
    // and one that did not start so
    let plain = dir.join("plain");
    private(dir, &plain, &["--steps", "2"]);
    let at: Vec<&str> = resume.iter().map(|a| if *a == text(&halves) { text(&plain) } else { a }).collect();
    let message = refused(&[&at[..at.len() - 1], &from].concat());
    assert!(message.contains("--public-epochs: the run started without"), "{message}");
}

#[test]
fn bad_public_records_and_densities_are_explained() {
    let data = folder(24);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let file = |name: &str, bytes: Vec<u8>| {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let wide = file("wide-images", idx(&[30, 4, 16], &vec![9; 30 * 64]));
    let odd = file("odd-labels", idx(&[30], &[7; 30]));
    let net = network(dir);
    let out = dir.join("out");
    let base = [
        "train",
        "--data",
        text(dir),
        "--network",
        text(&net),
        "--out",
        text(&out),
        "--seed",
        "1",
        "--steps",
        "2",
        "--batch",
        "8",
        "--sigma",
        "1",
    ];
    let epochs = ["--public-epochs", "1"];
    let good = ["--public", text(&images), text(&labels)];
    let with = |more: &[&'static str]| [&good[..], more].concat();
    for (more, says) in [
        (
            [&["--public", text(&wide), text(&labels)][..], &epochs].concat(),
            "--public: wide-images, public-labels: records have shape [4, 16, 1]",
        ),
        (
            [&["--public", text(&images), text(&odd)][..], &epochs].concat(),
            "--public: public-images, odd-labels: the label of record 0 is 7",
        ),
        (
            [&["--public", text(&images)][..], &epochs].concat(),
            "--public: public-images: there are no labels",
        ),
        (epochs.to_vec(), "--public-epochs: name the public records to train on with --public"),
        (with(&[]), "--public: the network has no batch-norm"),
        (with(&["--public-lr", "0.1"]), "--public-lr: say how long"),
        (with(&["--public-epochs", "0"]), "--public-epochs: 0: expected a positive number"),
        (with(&["--public-epochs", "-1"]), "--public-epochs: -1"),
        (with(&["--public-steps", "0"]), "--public-steps: 0"),
        (with(&["--public-epochs", "1", "--public-steps", "1"]), "--public-steps"),
        (with(&["--public-epochs", "1", "--public-lr", "nan"]), "--public-lr: NaN"),
        (
            with(&["--public-epochs", "1", "--public-batch", "31"]),
            "--public-batch: 31 records a step: there are only 30",
        ),
        (with(&["--public-epochs", "1", "--public-weight-decay", "-1"]), "--public-weight-decay: -1"),
        (
            with(&["--public-epochs", "9", "--public-lr", "1e30"]),
            "--public-lr: 1000000000000000000000000000000: training",
        ),
        (
            with(&["--public-epochs", "1", "--density", "0"]),
            "--density: 0: expected the share of the weights to train",
        ),
        (with(&["--public-epochs", "1", "--density", "1.5"]), "--density: 1.5"),
        (with(&["--public-epochs", "1", "--density", "nan"]), "--density: NaN"),
        (
            with(&["--public-epochs", "1", "--density", "0.5", "--freeze-smallest", "0.5"]),
            "--density: --freeze-smallest",
        ),
        (with(&["--public-epochs", "1", "--freeze", "9"]), "there is no layer 9"),
        (vec!["--density", "0.5"], "--density: it is a share of given weights: name them with --pretrain"),
    ] {
        let message = refused(&[&base[..], &more].concat());
        assert!(message.contains(says), "{more:?}: {message}");
        assert!(!out.join("model.safetensors").exists());
    }
}

/// The perturbation costs no ε, the run says what it was, and goes on only with the same.
#[test]
fn gradients_are_perturbed_by_what_public_records_tell() {
    let data = folder(48);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let from = ["--public", text(&images), text(&labels), "--track", "every", "--clip-kind", "gelu"];
    let (plain, out) = (dir.join("plain"), dir.join("out"));
    let perturbed = [&from[..], &["--perturb", "average"]].concat();
    private(dir, &plain, &["--track", "every", "--clip-kind", "gelu", "--steps", "4"]);
    private(dir, &out, &[&perturbed[..], &["--steps", "3"]].concat());
    let resumed = |more: &[&'static str]| [&perturbed[..], &["--steps", "4", "--resume"], more].concat();
    private(dir, &out, &resumed(&[]));
    let (plain, run) = (json(&plain.join("training.json")), json(&out.join("training.json")));
    assert_eq!(run["privacy"]["epsilon"], plain["privacy"]["epsilon"]);
    let p = &run["public"]["perturbation"];
    assert_eq!((&p["variant"], &p["records"]), (&"average".into(), &30.into()));
    assert_eq!(p["lambda"], 1000.0);
    assert!((p["cosine"].as_f64().unwrap().abs() - 1.0).abs() < 1e-6, "{p}");
    assert!(p["norm"].as_f64().unwrap() > 0.0 && p["with"].as_f64() < p["without"].as_f64(), "{p}");
    assert!(
        run["accounts"]["dfil"]["max"].as_f64().unwrap() < plain["accounts"]["dfil"]["max"].as_f64().unwrap()
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    check_page(&page);
    for message in ["the average public gradient times a number", "cosine with the average public gradient"] {
        assert!(page.contains(message), "{message}");
    }
    let net = network(dir);
    let base = ["train", "--data", text(dir), "--network", text(&net), "--out", text(&out), "--batch", "12"];
    let rest = ["--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--seed", "5", "--format", "csv"];
    let common = [&base[..], &rest, &["--track", "every", "--clip-kind", "gelu", "--steps", "6"]].concat();
    let others = ["--public", text(&labels), text(&images)];
    let public = ["--public", text(&images), text(&labels)];
    let with = |more: &[&'static str]| [&common[..], &public, more].concat();
    for (args, says) in [
        (with(&["--resume", "--perturb", "average", "--perturb-lambda", "5"]), "--perturb: "),
        ([&common[..], &["--resume"]].concat(), "--perturb: "),
        ([&common[..], &["--perturb", "average"]].concat(), "--perturb: it is learned on public records"),
        (with(&["--perturb", "average", "--perturb-lambda", "0"]), "--perturb-lambda: 0"),
        (with(&["--perturb-lambda", "5"]), "--perturb-lambda: it belongs to --perturb"),
        ([&common[..], &others, &["--perturb", "average"]].concat(), "images first"),
        (
            [&base[..], &public, &["--perturb", "average", "--steps", "1"]].concat(),
            "--perturb: without noise",
        ),
    ] {
        let message = refused(&args);
        assert!(message.contains(says), "{args:?}: {message}");
    }
}

/// Every variant costs no ε, says what it was, and goes on from its checkpoint; `compare` shows them beside one another.
#[test]
fn variants_of_the_perturbation_run_and_are_compared() {
    let data = folder(48);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 30);
    let from = ["--public", text(&images), text(&labels), "--track", "every", "--clip-kind", "gelu"];
    let plain = dir.join("plain");
    private(dir, &plain, &["--track", "every", "--clip-kind", "gelu", "--steps", "3"]);
    let epsilon = json(&plain.join("training.json"))["privacy"]["epsilon"].clone();
    let mut folders = vec![plain];
    for variant in ["average", "constant", "network", "thesis"] {
        let out = dir.join(variant);
        let mut how = [&from[..], &["--perturb", variant]].concat();
        if variant != "average" {
            how.extend(["--perturb-epochs", "8", "--perturb-lr", "0.02"]);
        }
        private(dir, &out, &[&how[..], &["--steps", "2"]].concat());
        private(dir, &out, &[&how[..], &["--steps", "3", "--resume"]].concat());
        let run = json(&out.join("training.json"));
        assert_eq!(run["privacy"]["epsilon"], epsilon, "{variant}");
        let p = &run["public"]["perturbation"];
        assert_eq!(p["variant"], variant);
        assert!(p["with"].as_f64().unwrap() < p["without"].as_f64().unwrap(), "{variant}: {p}");
        let spread = p["spread"].as_f64().unwrap();
        assert_eq!(spread > 0.0, variant == "network", "{variant}: {p}");
        check_page(&fs::read_to_string(out.join("report.html")).unwrap());
        folders.push(out);
    }
    let together = dir.join("together");
    let mut args: Vec<&str> = vec!["compare", "--kind", "training", "--json", "--out", text(&together)];
    args.extend(folders.iter().map(|f| text(f)));
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_leakscope")).args(&args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let c = json(&together.join("compare.json"));
    assert_eq!((&c["results"][0]["added"], &c["results"][2]["added"]), (&Value::Null, &"constant".into()));
    let page = fs::read_to_string(together.join("report.html")).unwrap();
    check_page(&page);
    for message in [
        "Accuracy against what records give away",
        "against the largest dFIL",
        "against the median dFIL",
        "cosine with the average public gradient",
        "adds to gradients: thesis",
    ] {
        assert!(page.contains(message), "{message}");
    }
}

#[test]
fn a_perturbation_that_cannot_be_learned_is_refused() {
    let data = folder(30);
    let dir = data.path();
    let [images, labels] = public(dir, "public", 12);
    let (net, out) = (network(dir), dir.join("out"));
    let base = ["train", "--data", text(dir), "--network", text(&net), "--out", text(&out), "--sigma", "1"];
    let with = |more: &[&'static str]| {
        [&base[..], &["--public", text(&images), text(&labels), "--steps", "1"], more].concat()
    };
    for (args, says) in [
        (
            with(&["--perturb", "constant", "--perturb-epochs", "0"]),
            "--perturb-epochs: 0: expected at least 1",
        ),
        (with(&["--perturb", "network", "--perturb-batch", "0"]), "--perturb-batch: 0: expected at least 1"),
        (
            with(&["--perturb", "thesis", "--perturb-lr", "-1"]),
            "--perturb-lr: -1: expected a positive number",
        ),
        (with(&["--perturb", "thesis", "--perturb-weight-decay", "nan"]), "--perturb-weight-decay: "),
        (with(&["--perturb", "average", "--perturb-epochs", "5"]), "found by search"),
        (with(&["--perturb-epochs", "5"]), "--perturb-epochs: it belongs to --perturb"),
    ] {
        let message = refused(&args);
        assert!(message.contains(says), "{args:?}: {message}");
        assert!(!out.join("model.safetensors").exists());
    }
}
