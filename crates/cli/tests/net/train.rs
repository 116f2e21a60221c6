//! `net train`: what a run leaves, how it stops and goes on.

use super::support::*;
use leakscope_net::io::Tensors;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_private_run_leaves_model_accounts_and_page() {
    let data = folder(48);
    let out = data.path().join("run");
    let run = private(data.path(), &out, &["--steps", "40", "--track", "every", "--json"]);
    assert!(run.stderr.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed: Value = serde_json::from_slice(&run.stdout).unwrap();
    let t = json(&out.join("training.json"));
    assert_eq!(printed, t);
    assert_eq!(t["schema"], "leakscope.net-training/1");
    assert_eq!(
        (&t["steps"], &t["stopped"], &t["accuracy_on"]),
        (&40.into(), &"finished".into(), &"test".into())
    );
    let history = t["history"].as_array().unwrap();
    assert_eq!(history.len(), 20);
    for (a, b) in history.iter().zip(&history[1..]) {
        for grows in ["epsilon", "dfil_median", "dfil_p90"] {
            assert!(a[grows].as_f64().unwrap() < b[grows].as_f64().unwrap(), "{grows}");
        }
    }
    let last = history.last().unwrap();
    // the noise is another one every time
    assert!(last["accuracy"].as_f64().unwrap() > 0.5, "{last}");
    assert_eq!(last["epsilon"], t["privacy"]["epsilon"]);
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("Poisson"));

    let table = csv(&out.join("records.csv"));
    assert_eq!(table.1.len(), 48);
    let (dfil, published) = (column(&table, "dfil"), column(&table, "published_dfil"));
    assert!(
        dfil.iter().zip(&published).all(|(a, b)| 0.0 < *a && a < b),
        "the published factor is an upper bound"
    );
    let largest = dfil.iter().copied().fold(0.0, f64::max);
    assert!(last.get("dfil_max").is_none() && last["dfil_p90"].as_f64().unwrap() <= largest);
    // no extreme without its interval
    let within = &t["accounts"]["largest"];
    assert!(within["lower"].as_f64().unwrap() < largest && largest < within["upper"].as_f64().unwrap());
    // no record's own budget is above that of the run
    let epsilon = t["privacy"]["epsilon"].as_f64().unwrap();
    assert!(column(&table, "epsilon").iter().all(|e| *e <= 1.01 * epsilon && *e > 0.0));

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["id=\"over\"", "id=\"accounts\"", "id=\"settings\"", "differentially private"] {
        assert!(page.contains(part), "{part}");
    }
    check_page(&page);
    #[cfg(unix)]
    for file in
        ["model.safetensors", "training.json", "records.csv", "report.html", "private/checkpoint.safetensors"]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(out.join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn epsilon_is_that_of_the_gaussian_mechanism_where_every_record_is_drawn() {
    let data = folder(24);
    let out = data.path().join("run");
    let (sigma, steps, delta) = (4.0, 7.0_f64, 1e-4_f64);
    let net = network(data.path());
    let base =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    answered(&[&base[..], &["--batch", "24", "--steps", "7", "--sigma", "4", "--delta", "1e-4"]].concat());
    let p = &json(&out.join("training.json"))["privacy"];
    let actual = p["epsilon"].as_f64().unwrap();
    // the definition, δ(ε) = ∫ (p − e^ε q)₊ of two unit Gaussians μ = √T/σ apart, by the trapezoidal rule
    let mu = steps.sqrt() / sigma;
    let density = |y: f64| (-0.5 * y * y).exp() * 0.398_942_280_401_432_7;
    let delta_at = |e: f64| -> f64 {
        let each = (-200_000..200_000).map(|i| f64::from(i) * 1e-4);
        each.map(|y| (density(y - mu) - e.exp() * density(y)).max(0.0) * 1e-4).sum()
    };
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..30 {
        let mid = 0.5 * (low + high);
        if delta_at(mid) > delta { low = mid } else { high = mid }
    }
    assert!(actual >= high * (1.0 - 1e-5) && actual < high * 1.002, "{actual} {high}");
    assert!(p["epsilon_pld"]["lower"].as_f64().unwrap() <= high * (1.0 + 1e-5));
    // Mironov 2017: T steps have α T/(2σ²); Canonne, Kamath, Steinke 2020, proposition 12, over real orders
    let of = |a: f64| a * steps / (2.0 * sigma * sigma) + (1.0 - 1.0 / a).ln() - (delta * a).ln() / (a - 1.0);
    let best = (110..100_000).map(|i| of(f64::from(i) / 100.0)).fold(f64::INFINITY, f64::min);
    let rdp = p["epsilon_rdp"].as_f64().unwrap();
    assert!((rdp / best - 1.0).abs() < 1e-3, "{rdp} {best}");
    assert_eq!(p["adjacency"], "zero-out");
}

/// A target instead of σ: the run ends just below it, and says so with both accountants and their assumptions.
#[test]
fn the_noise_for_an_epsilon_is_found() {
    let data = folder(48);
    let out = data.path().join("run");
    let net = network(data.path());
    let base =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    let run = answered(
        &[
            &base[..],
            &["--batch", "6", "--steps", "30", "--clip", "2", "--clip-kind", "gelu", "--epsilon", "1.5"],
        ]
        .concat(),
    );
    let t = json(&out.join("training.json"));
    let epsilon = t["privacy"]["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.5 && epsilon > 1.48, "{epsilon}");
    let message = String::from_utf8_lossy(&run.stdout);
    for word in ["privacy loss distributions", "Rényi accounting", "Poisson sampling", "zero-out adjacency"]
    {
        assert!(message.contains(word), "{word}: {message}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("By privacy loss distributions") && page.contains("by Rényi accounting"));
}

#[test]
fn double_precision_is_kept_from_the_records_to_the_audit() {
    let data = folder(24);
    let (single, double) = (data.path().join("f32"), data.path().join("f64"));
    let same = ["--not-private-noise-from-seed", "--steps", "5", "--track"];
    private(data.path(), &single, &same);
    private(data.path(), &double, &[&same[..], &["--precision", "f64"]].concat());
    let read = |dir: &Path| Tensors::from_bytes(&fs::read(dir.join("model.safetensors")).unwrap()).unwrap();
    let (a, b) = (read(&single), read(&double));
    assert_eq!((a.is_double(), b.is_double()), (false, true));
    for name in a.names() {
        let (x, y) = (a.get::<f64>(name).unwrap().1, b.get::<f64>(name).unwrap().1);
        let far = x.iter().zip(&y).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(far < 1e-5 && far > 0.0, "{name}: {far}");
    }
    assert_eq!(json(&double.join("training.json"))["precision"], "f64");
    // the audit takes the precision of the run, and one in f32 differs in the last digits alone
    let audit = |more: &[&str]| {
        let base =
            ["audit", "--model", text(&double), "--data", text(data.path()), "--trace", "exact", "--json"];
        let run = answered(&[&base[..], &["--seed", "1"], more].concat());
        let audit: Value = serde_json::from_slice(&run.stdout).unwrap();
        audit["dfil"]["max"].as_f64().unwrap()
    };
    let (trained, f64_, f32_) = (audit(&[]), audit(&["--precision", "f64"]), audit(&["--precision", "f32"]));
    assert_eq!(trained, f64_);
    assert!(trained != f32_ && (trained / f32_ - 1.0).abs() < 1e-5, "{trained} {f32_}");
    // weights alone keep theirs too
    let bare = data.path().join("bare");
    fs::create_dir(&bare).unwrap();
    for name in ["network.json", "model.safetensors"] {
        fs::copy(double.join(name), bare.join(name)).unwrap();
    }
    let bare_audit = |more: &[&str]| {
        let base =
            ["audit", "--model", text(&bare), "--data", text(data.path()), "--trace", "exact", "--json"];
        let audit: Value = serde_json::from_slice(&answered(&[&base[..], more].concat()).stdout).unwrap();
        audit["dfil"]["max"].as_f64().unwrap()
    };
    let kept = bare_audit(&[]);
    assert!(kept == bare_audit(&["--precision", "f64"]) && kept != bare_audit(&["--precision", "f32"]));
    // a checkpoint of the other precision is another run
    let net = network(data.path());
    let again =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&double), "--resume"];
    let same = ["--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--track", "--steps", "9"];
    let seeded = ["--not-private-noise-from-seed"];
    assert!(refused(&[&again[..], &same, &seeded].concat()).contains("another precision"));
}

#[test]
fn a_run_that_is_resumed_gives_the_same_numbers() {
    let data = folder(36);
    let (whole, halves) = (data.path().join("whole"), data.path().join("halves"));
    let more = ["--track", "--momentum", "0.9", "--not-private-noise-from-seed"];
    private(data.path(), &whole, &[&more[..], &["--steps", "14"]].concat());
    private(data.path(), &halves, &[&more[..], &["--steps", "6"]].concat());
    private(data.path(), &halves, &[&more[..], &["--steps", "14", "--resume"]].concat());
    for file in ["model.safetensors", "records.csv"] {
        assert!(
            fs::read(whole.join(file)).unwrap() == fs::read(halves.join(file)).unwrap(),
            "{file} differs"
        );
    }
    let last =
        |dir: &Path| json(&dir.join("training.json"))["history"].as_array().unwrap().last().unwrap().clone();
    for number in ["step", "accuracy", "dfil_median", "dfil_p90"] {
        assert_eq!(last(&whole)[number], last(&halves)[number], "{number}");
    }
    for run in [&whole, &halves] {
        let t = json(&run.join("training.json"));
        assert!(
            last(run)["epsilon"].is_null() && t["privacy"]["epsilon"].is_null(),
            "an ε of noise from a seed"
        );
    }
    // other settings, or fewer steps than were made, are refused
    let net = network(data.path());
    let again =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&halves), "--resume"];
    assert!(refused(&[&again[..], &["--steps", "20", "--batch", "6"]].concat()).contains("--lr: 0.1"));
    let same = ["--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--track", "--steps", "3"];
    let seeded = ["--not-private-noise-from-seed"];
    assert!(refused(&[&again[..], &same, &seeded].concat()).contains("beyond"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_after_the_step_and_the_run_goes_on() {
    let data = folder(36);
    let (net, out) = (network(data.path()), data.path().join("run"));
    let args = |steps: &'static str| {
        let (net, data, out) = (text(&net).to_owned(), text(data.path()).to_owned(), text(&out).to_owned());
        let fixed =
            ["--batch", "6", "--sigma", "1", "--seed", "2", "--checkpoint-every", "1", "--steps", steps];
        let mut all: Vec<String> = ["net", "train", "--data"].map(str::to_owned).to_vec();
        all.extend([data, "--network".into(), net, "--out".into(), out]);
        all.extend(fixed.map(str::to_owned));
        all
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_leakscope"))
        .args(args("100000000"))
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let started = std::time::Instant::now();
    while !out.join("private/checkpoint.safetensors").is_file() && started.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let t = json(&out.join("training.json"));
    assert_eq!(t["stopped"], "interrupted");
    let made = t["steps"].as_u64().unwrap();
    assert!(made >= 1);
    let steps: &'static str = Box::leak((made + 2).to_string().into_boxed_str());
    let mut more = args(steps);
    more.push("--resume".into());
    let done = Command::new(env!("CARGO_BIN_EXE_leakscope")).args(more).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(json(&out.join("training.json"))["steps"], made + 2);
}

#[test]
fn divergence_stops_and_keeps_the_last_good_model() {
    let data = folder(24);
    let (net, out) = (network(data.path()), data.path().join("run"));
    let args =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    let run = leakscope(&[&args[..], &["--steps", "50", "--batch", "24", "--lr", "1e37", "--json"]].concat());
    let message = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{message}");
    assert!(run.stdout.is_empty());
    assert!(
        message.contains("diverged") && message.contains("last good") && message.contains("lower --lr"),
        "{message}"
    );
    let t = json(&out.join("training.json"));
    assert_eq!(t["stopped"], "diverged");
    assert!(t["steps"].as_u64().unwrap() < 50);
    // what is kept can be used
    answered(&["audit", "--model", text(&out), "--data", text(data.path()), "--trace", "skip", "--json"]);
    assert!(out.join("private/checkpoint.safetensors").is_file());
}

/// Clipped gradients keep all numbers finite, however large the loss: that is no run that went well, and its owner is told. To stop
/// for it would tell of the records, for a loss has no noise.
#[test]
fn a_runaway_loss_is_said_and_stops_no_private_run() {
    let data = folder(24);
    let (net, out) = (network(data.path()), data.path().join("run"));
    let args =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    answered(&[&args[..], &["--steps", "20", "--batch", "12", "--lr", "1e12", "--sigma", "1"]].concat());
    let t = json(&out.join("training.json"));
    assert_eq!((&t["stopped"], &t["steps"]), (&"finished".into(), &20.into()));
    assert!(t["notes"].to_string().contains("over a million times that at the start"), "{t}");
    // in the open it is divergence
    let run = leakscope(&[&args[..], &["--steps", "20", "--batch", "12", "--lr", "1e12"]].concat());
    let message = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{message}");
    assert_eq!(json(&out.join("training.json"))["stopped"], "diverged");
}

/// Parameters with noise that are not finite stop a private run, and what is stated counts every step that was made.
#[test]
fn steps_that_a_private_run_takes_back_are_counted() {
    let data = folder(24);
    let (net, out) = (network(data.path()), data.path().join("run"));
    let args =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    let run = leakscope(
        &[&args[..], &["--steps", "20", "--batch", "12", "--lr", "1e38", "--sigma", "40"]].concat(),
    );
    let message = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{message}");
    let t = json(&out.join("training.json"));
    assert_eq!((&t["stopped"], &t["steps"]), (&"diverged".into(), &0.into()));
    assert!(t["privacy"]["epsilon"].as_f64().unwrap() > 0.0, "{}", t["privacy"]);
    assert!(t["notes"].to_string().contains("those that were taken back too"), "{}", t["notes"]);
}

/// All values are 0 but one label: whether a loss is a million times that at the start is decided on it. Both runs make all steps,
/// state the same ε and differ in noise alone.
#[test]
fn when_a_private_run_stops_tells_no_label() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("d.csv"), dir.path().join("run"));
    let stated = ["0", "1"].map(|label| {
        fs::write(&file, format!("x,y\n0,{label}\n{}", "0,0\n".repeat(99))).unwrap();
        let bounds = ["--bounds", "x=-1..1", "--bounds", "y=-1000..1000", "--scale", "bounds"];
        let noise = ["--sigma", "40", "--clip", "1", "--lr", "1", "--delta", "1e-5", "--batch", "100"];
        let of = ["train", "--data", text(&file), "--target", "y", "--network", "linear", "--steps", "8"];
        answered(&[&of[..], &bounds, &noise, &["--out", text(&out)]].concat());
        let t = json(&out.join("training.json"));
        (t["stopped"].clone(), t["steps"].clone(), t["privacy"]["epsilon"].clone())
    });
    assert_eq!(stated[0], stated[1]);
    assert!(
        stated[0].0 == "finished" && stated[0].1 == 8 && stated[0].2.as_f64().unwrap() > 0.1,
        "{stated:?}"
    );
}

#[test]
fn the_clip_that_nobody_chose_is_said() {
    let data = folder(24);
    let (net, out) = (network(data.path()), data.path().join("run"));
    let args = [
        "train",
        "--data",
        text(data.path()),
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
    let message =
        |more: &[&str]| String::from_utf8_lossy(&answered(&[&args[..], more].concat()).stdout).into_owned();
    let assumed = message(&[]);
    assert!(assumed.contains("hard clip at C = 1, σ = 1"), "{assumed}");
    assert!(assumed.contains("No --clip was given: gradients were clipped at C = 1"), "{assumed}");
    let chosen = message(&["--clip", "1", "--clip-kind", "gelu"]);
    assert!(chosen.contains("smooth (GELU) clip at C = 1") && !chosen.contains("No --clip"), "{chosen}");
    let help = String::from_utf8_lossy(&answered(&["train", "--help"]).stdout).into_owned();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("default: 1 in training where there is noise"), "{help}");
}

/// `--freeze` and the names of tensors count layers alike, through residual blocks.
#[test]
fn layers_are_frozen_by_the_number_in_their_tensors_names() {
    let data = folder(24);
    let net = data.path().join("residual.json");
    let spec = r#"{"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": [
        {"kind": "flatten"}, {"kind": "dense", "outputs": 6},
        {"kind": "residual", "layers": [{"kind": "dense", "outputs": 6}, {"kind": "tanh"}, {"kind": "dense", "outputs": 6}]},
        {"kind": "dense", "outputs": 3}]}"#;
    fs::write(&net, spec).unwrap();
    let base = [
        "train",
        "--data",
        text(data.path()),
        "--network",
        text(&net),
        "--seed",
        "1",
        "--batch",
        "8",
        "--steps",
    ];
    let read = |dir: &Path| Tensors::from_bytes(&fs::read(dir.join("model.safetensors")).unwrap()).unwrap();
    let start = data.path().join("start");
    answered(&[&base[..], &["1", "--out", text(&start)]].concat());
    let weights = start.join("model.safetensors");
    for (freeze, frozen) in [("5", &["5"][..]), ("3", &["3"]), ("2", &["3", "5"]), ("1,6", &["1", "6"])] {
        let out = data.path().join(format!("frozen-{freeze}"));
        let more = ["3", "--pretrain", text(&weights), "--freeze", freeze, "--out", text(&out)];
        answered(&[&base[..], &more].concat());
        let (before, after) = (read(&start), read(&out));
        for name in before.names() {
            let same = before.get::<f32>(name).unwrap() == after.get::<f32>(name).unwrap();
            assert_eq!(same, frozen.contains(&name.split('.').nth(1).unwrap()), "--freeze {freeze}: {name}");
        }
    }
    let message = refused(&[&base[..], &["1", "--freeze", "4", "--out", text(&start)]].concat());
    let layers = "layers with parameters are 1 (dense), 2 (residual), 3 (dense), 5 (dense), 6 (dense)";
    assert!(message.contains("layer 4 (tanh) has no parameters") && message.contains(layers), "{message}");
}

#[test]
fn empty_batches_shuffling_adam_frozen_layers_and_given_weights() {
    let data = folder(24);
    let shown = text(data.path());
    let net = network(data.path());
    let (a, b) = (data.path().join("a"), data.path().join("b"));
    let base = ["train", "--data", shown, "--network", text(&net), "--seed", "1", "--out"];
    // a tenth of a record a step: most batches are empty
    answered(
        &[&base[..], &[text(&a), "--batch", "0.1", "--steps", "12", "--sigma", "1", "--track"]].concat(),
    );
    let t = json(&a.join("training.json"));
    assert_eq!(t["steps"], 12);
    assert!(t["history"].as_array().unwrap().iter().any(|p| p["loss"].is_null()), "no batch was empty");

    let weights = a.join("model.safetensors");
    let more =
        [text(&b), "--pretrain", text(&weights), "--freeze", "0", "--adam", "--lr", "0.01", "--epochs", "2"];
    let shuffled =
        ["--batch", "8", "--sampling", "shuffle", "--sigma", "1", "--clip", "1", "--clip-kind", "gelu"];
    answered(&[&base[..], &more, &shuffled].concat());
    let t = json(&b.join("training.json"));
    assert_eq!(t["steps"], 6);
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("no amplification"));
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("zero-out adjacency"));
    assert_eq!(t["privacy"]["adjacency"], "zero-out");
    assert!(t["network"]["trained"].as_u64() < t["network"]["parameters"].as_u64());
    let read = |dir: &Path| Tensors::from_bytes(&fs::read(dir.join("model.safetensors")).unwrap()).unwrap();
    // nine tenths of the weights, the smallest, stay; an audit of the model knows it
    let c = data.path().join("c");
    let more =
        [text(&c), "--pretrain", text(&weights), "--freeze-smallest", "0.9", "--sigma", "1", "--steps", "3"];
    answered(&[&base[..], &more, &["--batch", "8"]].concat());
    let audited = answered(&["audit", "--model", text(&c), "--data", shown, "--trace", "skip", "--json"]);
    let audited: Value = serde_json::from_slice(&audited.stdout).unwrap();
    let (all, trained) = (&audited["network"]["parameters"], &audited["network"]["trained"]);
    assert_eq!(trained.as_f64().unwrap(), (0.1 * all.as_f64().unwrap()).round());
    let (old, new) = (read(&a), read(&c));
    let mut moved = 0;
    for name in old.names() {
        let (x, y) = (old.get::<f32>(name).unwrap().1, new.get::<f32>(name).unwrap().1);
        moved += x.iter().zip(&y).filter(|(x, y)| x != y).count();
    }
    assert_eq!(moved as u64, trained.as_u64().unwrap());
    let (before, after) = (read(&a), read(&b));
    for name in before.names() {
        let same = before.get::<f32>(name).unwrap() == after.get::<f32>(name).unwrap();
        assert_eq!(same, name.starts_with("layers.0."), "{name}");
    }
}

/// The demonstration parses what it shows, and says which values a private regression gives away.
#[test]
fn the_demonstration_runs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("demo");
    let run = answered(&["demo", "--records", "200", "--out", text(&out)]);
    let message = String::from_utf8_lossy(&run.stderr);
    assert!(
        message.contains("$ leakscope net train --data") && message.contains("$ leakscope net audit --model"),
        "{message}"
    );
    assert!(json(&out.join("model/training.json"))["privacy"]["epsilon"].as_f64().unwrap() <= 0.2);
    let audit = json(&out.join("audit/audit.json"));
    assert!(!audit["elements"].as_array().unwrap().is_empty());
    assert_eq!(audit["plis_of"], "released");
}
