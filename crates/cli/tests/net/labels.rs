//! Labels of several values, regressions by preset, batch norms: what suits the labels is chosen, or said.

use super::support::*;
use leakscope_net::io::Tensors;
use leakscope_net::random::{Generator, Purpose};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const WIDTH: usize = 4;

/// Records of normal values with labels of `each` values.
fn records(dir: &Path, name: &str, n: usize, each: usize, label: &dyn Fn(&[f64]) -> Vec<f64>) -> PathBuf {
    let mut rng = Generator::new(3, Purpose::Other, 0);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let row: Vec<f64> = (0..WIDTH).map(|_| rng.normal()).collect();
        y.extend(label(&row));
        x.extend(row);
    }
    let mut file = Tensors::default();
    file.insert("x", &[n, WIDTH], &x);
    file.insert("y", &[n, each], &y);
    let path = dir.join(format!("{name}.safetensors"));
    fs::write(&path, file.to_bytes().unwrap()).unwrap();
    path
}

fn sign(v: f64) -> f64 {
    f64::from(u8::from(v > 0.0))
}

fn train<'a>(data: &'a Path, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["train", "--data", text(data), "--network", "linear", "--seed", "1", "--out", text(out)];
    let steps = ["--batch", "50", "--steps", "150", "--format", "csv"];
    [&base[..], &steps, more].concat()
}

#[test]
fn several_labels_are_learnt_each_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let data = records(dir.path(), "several", 200, 3, &|x| vec![sign(x[0]), sign(x[1]), sign(x[0] + x[2])]);
    let run = answered(&train(&data, &out, &["--lr", "0.5"]));
    let t = json(&out.join("training.json"));
    assert_eq!(t["network"]["loss"], "binary-cross-entropy");
    let last = t["history"].as_array().unwrap().last().unwrap().clone();
    let share = |name: &str| last[name].as_f64().unwrap();
    let (all, each) = (share("accuracy"), share("label_accuracy"));
    // a record is right where its three labels are
    assert!(each > 0.9 && all <= each && all >= 1.0 - 3.0 * (1.0 - each) - 1e-12, "{all} {each}");
    let message = String::from_utf8_lossy(&run.stdout);
    assert!(message.contains("in all their labels"), "{message}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("records in all labels right") && page.contains("of their labels right"));
    check_page(&page);

    // in an audit a record's label names all that hold, and points without labels get the network's own answers
    let audit = dir.path().join("audit");
    let mut points = Tensors::default();
    points.insert("x", &[2, WIDTH], &[3.0, -3.0, 0.0, 0.0, -3.0, -3.0, -3.0, 0.0]);
    let points_file = dir.path().join("points.safetensors");
    fs::write(&points_file, points.to_bytes().unwrap()).unwrap();
    let base = ["audit", "--model", text(&out), "--data", text(&data), "--trace", "exact", "--format", "csv"];
    let run =
        answered(&[&base[..], &["--score", text(&points_file), "--out", text(&audit), "--json"]].concat());
    let answer: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!((answer["accuracy"].as_f64().unwrap() - all).abs() < 1e-9);
    let labels = |name: &str| -> Vec<String> {
        csv(&audit.join(name)).1.into_iter().map(|row| row[1].clone()).collect()
    };
    let known = Tensors::from_bytes(&fs::read(&data).unwrap()).unwrap().get::<f64>("y").unwrap().1;
    for (row, label) in known.chunks(3).zip(labels("records.csv")) {
        let hold: Vec<String> = (0..3).filter(|&j| row[j] == 1.0).map(|j| j.to_string()).collect();
        assert_eq!(label, if hold.is_empty() { "none".to_owned() } else { hold.join("+") });
    }
    assert_eq!(labels("scores.csv"), ["0+2", "none"]);
}

#[test]
fn the_loss_of_a_preset_suits_the_labels_or_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let loss = || json(&out.join("training.json"))["network"]["loss"].clone();
    // one-hot labels are classes
    let one_hot = records(dir.path(), "one-hot", 100, 2, &|x| vec![sign(x[0]), 1.0 - sign(x[0])]);
    answered(&train(&one_hot, &out, &[]));
    assert_eq!(loss(), "softmax-cross-entropy");
    assert!(json(&out.join("training.json"))["history"][0].get("label_accuracy").is_none());
    answered(&train(&one_hot, &out, &["--loss", "binary-cross-entropy"]));
    assert_eq!(loss(), "binary-cross-entropy");

    // values: refused with what to do, and done
    let dose = records(dir.path(), "dose", 100, 1, &|x| vec![2.0 * x[0] - x[1] + 0.25]);
    let message = refused(&train(&dose, &out, &[]));
    assert!(message.contains("expected a class") && message.contains("--loss squared-error"), "{message}");
    answered(&train(&dose, &out, &["--loss", "squared-error", "--precision", "f64"]));
    let t = json(&out.join("training.json"));
    assert_eq!((&t["network"]["loss"], &t["network"]["outputs"]), (&"squared-error".into(), &1.into()));
    let weights = Tensors::from_bytes(&fs::read(out.join("model.safetensors")).unwrap()).unwrap();
    let w = weights.names().find(|n| n.ends_with("weight")).unwrap().to_owned();
    let w = weights.get::<f64>(&w).unwrap().1;
    assert!((w[0] - 2.0).abs() < 0.05 && (w[1] + 1.0).abs() < 0.05, "{w:?}");
    let two = records(dir.path(), "two", 100, 2, &|x| vec![3.0 * x[0], x[1] - 9.0]);
    let message = refused(&train(&two, &out, &[]));
    assert!(
        message.contains("a label of record 0 is") && message.contains("--loss squared-error"),
        "{message}"
    );
    answered(&train(&two, &out, &["--loss", "squared-error"]));
    assert_eq!(json(&out.join("training.json"))["network"]["outputs"], 2);

    let file = dir.path().join("net.json");
    fs::write(&file, r#"{"version": 1, "input": [4], "loss": "squared-error", "layers": [{"kind": "dense", "outputs": 1}]}"#)
        .unwrap();
    let base = ["train", "--data", text(&dose), "--network", text(&file), "--out", text(&out)];
    let message =
        refused(&[&base[..], &["--loss", "squared-error", "--steps", "1", "--batch", "9"]].concat());
    assert!(message.contains("--loss: the network file says its loss"), "{message}");
}

#[test]
fn batch_norms_take_their_statistics_from_public_records() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let data = records(dir.path(), "data", 100, 1, &|x| vec![sign(x[0])]);
    // other records, far from those: the statistics tell which were used
    let n = 40;
    let x: Vec<f64> = (0..n * WIDTH).map(|i| 10.0 + f64::from(u8::from(i % 8 < 4))).collect();
    let mut file = Tensors::default();
    file.insert("x", &[n, WIDTH], &x);
    let public = dir.path().join("public.safetensors");
    fs::write(&public, file.to_bytes().unwrap()).unwrap();
    let net = dir.path().join("net.json");
    let spec = r#"{"version": 1, "input": [4], "loss": "softmax-cross-entropy", "layers": [
        {"kind": "batch-norm"}, {"kind": "dense", "outputs": 2}]}"#;
    fs::write(&net, spec).unwrap();
    let base = ["train", "--data", text(&data), "--network", text(&net), "--out", text(&out), "--steps", "3"];
    let private = [&base[..], &["--batch", "20", "--sigma", "1"]].concat();
    let message = refused(&private);
    for word in ["--public", "layer 0 of the network (batch-norm)", "--pretrain", "group-norm"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert!(!out.join("model.safetensors").exists());
    let from_public = [&private[..], &["--public", text(&public)]].concat();
    answered(&from_public);
    let statistics = || {
        let file = Tensors::from_bytes(&fs::read(out.join("model.safetensors")).unwrap()).unwrap();
        let get = |part: &str| {
            let name =
                file.names().find(|n| n.contains(part)).unwrap_or_else(|| panic!("no {part}")).to_owned();
            file.get::<f64>(&name).unwrap().1
        };
        (get("mean"), get("var"))
    };
    let (mean, variance) = statistics();
    assert!(mean.iter().all(|m| (m - 10.5).abs() < 1e-5), "{mean:?}");
    assert!(variance.iter().all(|v| (v - 0.25).abs() < 1e-5), "{variance:?}");
    assert!(json(&out.join("training.json"))["notes"].to_string().contains("public.safetensors"));
    // a run that goes on keeps them
    let again: Vec<&str> = from_public.iter().map(|a| if *a == "3" { "5" } else { a }).collect();
    let seed = json(&out.join("training.json"))["seed"].to_string();
    answered(&[&again[..], &["--resume", "--seed", &seed]].concat());
    assert_eq!(statistics().0, mean);
    // without noise there is nothing to protect: the training records themselves
    answered(&[&base[..], &["--batch", "20"]].concat());
    assert!(statistics().0.iter().all(|m| m.abs() < 0.5));
    // records that no layer asks for
    let linear = ["train", "--data", text(&data), "--network", "linear", "--out", text(&out), "--steps", "1"];
    let message = refused(&[&linear[..], &["--batch", "9", "--public", text(&public)]].concat());
    assert!(message.contains("--public: the network has no batch-norm"), "{message}");
}

/// How many outputs a preset has, and which loss, shows in the published network. Counted off the labels, one record may decide
/// it, and no noise of a step covers that: no ε without the options that say it.
#[test]
fn a_network_that_is_read_off_the_labels_has_no_epsilon() {
    let dir = tempfile::tempdir().unwrap();
    let class = |x: &[f64]| vec![if x[0] > 0.0 { 1.0 } else { 0.0 }];
    let several = |x: &[f64]| vec![f64::from(u8::from(x[0] > 0.0)), f64::from(u8::from(x[1] > 0.0))];
    let one = records(dir.path(), "one.safetensors", 60, 1, &class);
    let two = records(dir.path(), "two.safetensors", 60, 2, &several);
    let cases: [(&Path, &[&str], &str); 4] = [
        (&one, &[], "the number of outputs (give `outputs`)"),
        (&one, &["--outputs", "2"], ""),
        (&two, &[], "the loss (give `loss`)"),
        (&two, &["--loss", "binary-cross-entropy"], ""),
    ];
    let out = dir.path().join("out");
    for (data, more, read) in cases {
        let private = [&train(data, &out, more)[..], &["--sigma", "2"]].concat();
        answered(&private);
        let p = &json(&out.join("training.json"))["privacy"];
        assert_eq!(p["epsilon"].is_number(), read.is_empty(), "{p}");
        assert!(p["withheld"].to_string().contains(read), "{p}");
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert_eq!(page.contains("no ε is stated"), !read.is_empty());
        if !read.is_empty() {
            let flag = if read.contains("outputs") { "--outputs" } else { "--loss" };
            let message = refused(&[&train(data, &out, more)[..], &["--epsilon", "2"]].concat());
            assert!(message.contains("--epsilon") && message.contains(flag), "{message}");
        }
    }
}
