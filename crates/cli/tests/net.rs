//! `leakscope net train` and `net audit`, end to end, on tiny images.

#![allow(clippy::unwrap_used)]

use leakscope_net::{
    Network, Shape,
    preset::preset,
    random::{Generator, Purpose},
    tensors::Tensors,
};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SIDE: usize = 8;
const CLASSES: usize = 3;

/// Runs the programme.
fn leakscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leakscope")).arg("net").args(args).output().unwrap()
}

/// Runs it and expects an answer.
fn answered(args: &[&str]) -> Output {
    let out = leakscope(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out
}

/// Runs it and expects no answer; returns what it says.
fn refused(args: &[&str]) -> String {
    let out = leakscope(args);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?} printed something");
    assert!(said.starts_with("error: ") && !said.contains("panicked"), "{args:?}: {said}");
    said
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// An idx file of bytes.
fn idx(extents: &[usize], values: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 8, extents.len() as u8];
    extents.iter().for_each(|e| out.extend_from_slice(&(*e as u32).to_be_bytes()));
    out.extend_from_slice(values);
    out
}

/// Images of three kinds: a bright row, a bright column, a bright corner, and noise.
fn images(n: usize, noise: f64, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let class = i % CLASSES;
        labels.push(class as u8);
        for at in 0..SIDE * SIDE {
            let (y, x) = (at / SIDE, at % SIDE);
            let bright = [y == 3, x == 5, y < 3 && x < 3][class];
            let value = f64::from(u8::from(bright)) * 180.0 + 20.0 + noise * rng.normal();
            pixels.push(value.clamp(0.0, 255.0) as u8);
        }
    }
    (pixels, labels)
}

/// A folder with training images (gzipped) and test images (plain), as MNIST has them.
fn folder(n: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let zipped = |name: &str, bytes: &[u8]| {
        let file = fs::File::create(dir.path().join(name)).unwrap();
        let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap();
    };
    let (x, y) = images(n, 15.0, 1);
    zipped("train-images-idx3-ubyte.gz", &idx(&[n, SIDE, SIDE], &x));
    zipped("train-labels-idx1-ubyte.gz", &idx(&[n], &y));
    let (x, y) = images(30, 15.0, 2);
    fs::write(dir.path().join("t10k-images-idx3-ubyte"), idx(&[30, SIDE, SIDE], &x)).unwrap();
    fs::write(dir.path().join("t10k-labels-idx1-ubyte"), idx(&[30], &y)).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A CSV file as columns by name; the texts here hold no commas.
fn csv(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

fn column(table: &(Vec<String>, Vec<Vec<String>>), name: &str) -> Vec<f64> {
    let at = table.0.iter().position(|c| c == name).unwrap_or_else(|| panic!("no column {name}"));
    table.1.iter().map(|row| row[at].parse().unwrap()).collect()
}

/// A page asks for nothing from elsewhere and shows no number that is none.
fn check_page(page: &str) {
    let mut words = String::new();
    for (i, part) in page.split("base64,").enumerate() {
        words.push_str(if i == 0 { part } else { part.split_once('"').unwrap().1 });
    }
    for bad in ["http://", "https://", "NaN", "inf\""] {
        assert!(!words.contains(bad), "{bad}");
    }
}

/// A small convolutional network as a file.
fn network(dir: &Path) -> PathBuf {
    let path = dir.join("small.json");
    let spec = r#"{"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": [
        {"kind": "conv", "outputs": 3, "kernel": [3, 3], "stride": [2, 2]}, {"kind": "tanh"},
        {"kind": "flatten"}, {"kind": "dense", "outputs": 3}]}"#;
    fs::write(&path, spec).unwrap();
    path
}

/// Trains a small private network; returns its folder.
fn private(data: &Path, out: &Path, more: &[&str]) -> Output {
    let net = network(data);
    let mut args = vec!["train", "--data", text(data), "--network", text(&net), "--out", text(out)];
    args.extend([
        "--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--seed", "5", "--format", "csv",
    ]);
    args.extend(more);
    answered(&args)
}

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
        for grows in ["epsilon", "dfil_median", "dfil_max"] {
            assert!(a[grows].as_f64().unwrap() < b[grows].as_f64().unwrap(), "{grows}");
        }
    }
    let last = history.last().unwrap();
    assert!(last["accuracy"].as_f64().unwrap() > 0.8, "{last}");
    assert_eq!(last["epsilon"], t["privacy"]["epsilon"]);
    assert!(t["privacy"]["statement"].as_str().unwrap().contains("Poisson"));

    let table = csv(&out.join("records.csv"));
    assert_eq!(table.1.len(), 48);
    let (dfil, published) = (column(&table, "dfil"), column(&table, "published_dfil"));
    assert!(
        dfil.iter().zip(&published).all(|(a, b)| 0.0 < *a && a < b),
        "the published factor is an upper bound"
    );
    assert!((dfil.iter().copied().fold(0.0, f64::max) - last["dfil_max"].as_f64().unwrap()).abs() < 1e-9);
    // no record's own budget is above that of the run
    let epsilon = t["privacy"]["epsilon"].as_f64().unwrap();
    assert!(column(&table, "epsilon").iter().all(|e| *e <= 1.01 * epsilon && *e > 0.0));

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["id=\"over\"", "id=\"accounts\"", "id=\"settings\"", "differentially private"] {
        assert!(page.contains(part), "{part}");
    }
    check_page(&page);
    #[cfg(unix)]
    for file in ["model.safetensors", "training.json", "records.csv", "report.html", "checkpoint.safetensors"]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(out.join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn epsilon_is_that_of_the_gaussian_mechanism_where_every_record_is_drawn() {
    let data = folder(24);
    let out = data.path().join("run");
    let (sigma, steps, delta) = (4.0, 7.0, 1e-4_f64);
    let net = network(data.path());
    let base =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&out), "--seed", "1"];
    answered(&[&base[..], &["--batch", "24", "--steps", "7", "--sigma", "4", "--delta", "1e-4"]].concat());
    let found = json(&out.join("training.json"))["privacy"]["epsilon"].as_f64().unwrap();
    // Mironov 2017: T steps have α T/(2σ²); Canonne, Kamath, Steinke 2020, proposition 12, over real orders
    let of = |a: f64| a * steps / (2.0 * sigma * sigma) + (1.0 - 1.0 / a).ln() - (delta * a).ln() / (a - 1.0);
    let best = (110..100_000).map(|i| of(f64::from(i) / 100.0)).fold(f64::INFINITY, f64::min);
    assert!(found >= best - 1e-9 && found < 1.02 * best, "{found} {best}");
}

#[test]
fn a_run_that_is_resumed_gives_the_same_numbers() {
    let data = folder(36);
    let (whole, halves) = (data.path().join("whole"), data.path().join("halves"));
    let more = ["--track", "--momentum", "0.9"];
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
    for number in ["step", "epsilon", "accuracy", "dfil_median", "dfil_max"] {
        assert_eq!(last(&whole)[number], last(&halves)[number], "{number}");
    }
    // other settings, or fewer steps than were made, are refused
    let net = network(data.path());
    let again =
        ["train", "--data", text(data.path()), "--network", text(&net), "--out", text(&halves), "--resume"];
    assert!(
        refused(&[&again[..], &["--steps", "20", "--batch", "6"]].concat()).contains("another configuration")
    );
    let same = ["--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--track", "--steps", "3"];
    assert!(refused(&[&again[..], &same].concat()).contains("beyond"));
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
    while !out.join("checkpoint.safetensors").is_file() && started.elapsed().as_secs() < 60 {
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
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(run.stdout.is_empty());
    assert!(said.contains("diverged") && said.contains("last good") && said.contains("lower --lr"), "{said}");
    let t = json(&out.join("training.json"));
    assert_eq!(t["stopped"], "diverged");
    assert!(t["steps"].as_u64().unwrap() < 50);
    // what is kept can be used
    answered(&["audit", "--model", text(&out), "--data", text(data.path()), "--trace", "skip", "--json"]);
    assert!(out.join("checkpoint.safetensors").is_file());
}

/// Softmax regression in f64, by definition: the gradient of all parameters at x.
fn gradient(w: &[f64], b: &[f64], x: &[f64], class: usize) -> Vec<f64> {
    let d = x.len();
    let z: Vec<f64> = (0..CLASSES).map(|k| b[k] + (0..d).map(|j| w[k * d + j] * x[j]).sum::<f64>()).collect();
    let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = z.iter().map(|v| (v - top).exp()).sum();
    let mut g = Vec::new();
    for (k, z) in z.iter().enumerate() {
        let r = (z - top).exp() / total - f64::from(u8::from(k == class));
        g.extend(x.iter().map(|v| r * v));
        g.push(r);
    }
    g
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn measures_of_softmax_regression_are_those_of_the_definition() {
    let data = folder(30);
    let (model, out) = (data.path().join("model"), data.path().join("audit"));
    let shown = text(data.path());
    answered(&[
        "train",
        "--data",
        shown,
        "--network",
        "linear",
        "--steps",
        "12",
        "--lr",
        "0.05",
        "--seed",
        "3",
        "--batch",
        "10",
        "--out",
        text(&model),
    ]);
    // clipped at the median, so that half the gradients are
    let first = answered(&["audit", "--model", text(&model), "--data", shown, "--trace", "skip", "--json"]);
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    let (clip, sigma) = (first["gradient_norm"]["p50"].as_f64().unwrap(), 0.4);
    let c = clip.to_string();
    let base = [
        "audit",
        "--model",
        text(&model),
        "--data",
        shown,
        "--records",
        "all",
        "--trace",
        "exact",
        "--eta",
        "--plis",
    ];
    let release =
        ["--clip", &c, "--sigma", "0.4", "--seed", "1", "--format", "csv", "--out", text(&out), "--json"];
    let printed: Value = serde_json::from_slice(&answered(&[&base[..], &release].concat()).stdout).unwrap();
    assert_eq!(printed["schema"], "leakscope.net-audit/1");
    let table = csv(&out.join("records.csv"));

    let file = Tensors::from_bytes(&fs::read(model.join("model.safetensors")).unwrap()).unwrap();
    let get = |part: &str| {
        let name = file.names().find(|n| n.ends_with(part)).unwrap().to_owned();
        file.get::<f64>(&name).unwrap().1
    };
    let (w, b) = (get("weight"), get("bias"));
    let (pixels, labels) = images(30, 15.0, 1);
    let d = SIDE * SIDE;
    let released = |x: &[f64], class: usize| {
        let g = gradient(&w, &b, x, class);
        let s = (clip / norm(&g)).min(1.0);
        g.iter().map(|v| s * v).collect::<Vec<f64>>()
    };
    let (mut clipped, mut free) = (0, 0);
    for i in 0..30 {
        let x: Vec<f64> = pixels[i * d..(i + 1) * d].iter().map(|&v| f64::from(v) / 255.0).collect();
        let class = usize::from(labels[i]);
        // Jacobians by central differences, a column per pixel
        let h = 1e-5;
        let columns = |f: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<Vec<f64>> {
            (0..d)
                .map(|j| {
                    let at = |e: f64| {
                        let mut x = x.clone();
                        x[j] += e;
                        f(&x)
                    };
                    at(h).iter().zip(at(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect()
                })
                .collect()
        };
        let spectral = |j: &[Vec<f64>]| {
            let mut v = vec![1.0; d];
            let mut value = 0.0;
            for _ in 0..3000 {
                let mut u = vec![0.0; j[0].len()];
                j.iter().zip(&v).for_each(|(c, s)| u.iter_mut().zip(c).for_each(|(u, c)| *u += s * c));
                v = j.iter().map(|c| c.iter().zip(&u).map(|(a, b)| a * b).sum()).collect();
                value = norm(&v);
                v.iter_mut().for_each(|x| *x /= value);
            }
            value.sqrt()
        };
        let g = gradient(&w, &b, &x, class);
        if norm(&g) > clip {
            clipped += 1;
        } else {
            free += 1;
        }
        let noise = sigma * clip;
        let inside = columns(&|x| released(x, class));
        let outside = columns(&|x| gradient(&w, &b, x, class));
        let plis: Vec<f64> = columns(&|x| vec![norm(&gradient(&w, &b, x, class)).powi(2)]).concat();
        let trace: f64 = inside.iter().map(|c| norm(c).powi(2)).sum::<f64>() / (noise * noise);
        for (name, expected, tolerance) in [
            ("gradient_norm", norm(&g), 1e-5),
            ("released_norm", norm(&g).min(clip), 1e-5),
            ("trace", trace, 1e-4),
            ("dfil", trace / d as f64, 1e-4),
            ("eta", spectral(&inside) / noise, 1e-3),
            ("jacobian_sensitivity", spectral(&outside), 1e-3),
            ("plis", norm(&plis) / (noise * noise), 1e-4),
        ] {
            let found = column(&table, name)[i];
            assert!(
                (found - expected).abs() <= tolerance * expected.abs(),
                "{i} {name}: {found}, expected {expected}"
            );
        }
    }
    assert!(clipped > 0 && free > 0, "{clipped} {free}: the clip is not tested");

    let dfil = column(&table, "dfil");
    let most = dfil.iter().copied().fold(0.0, f64::max);
    assert!((printed["dfil"]["max"].as_f64().unwrap() - most).abs() < 1e-12);
    let bound = printed["min_mse"]["value"].as_f64().unwrap();
    assert!(bound <= 1.0 / most && bound > 0.999_999 / most);
    let first = &printed["most_dfil"][0];
    assert_eq!(dfil[first["record"].as_u64().unwrap() as usize], most);
}

#[test]
fn the_page_shows_records_maps_and_points_from_elsewhere() {
    let data = folder(48);
    let (model, open, out) =
        (data.path().join("private"), data.path().join("open"), data.path().join("audit"));
    let shown = text(data.path());
    private(data.path(), &model, &["--steps", "40", "--track"]);
    let net = network(data.path());
    answered(&[
        "train",
        "--data",
        shown,
        "--network",
        text(&net),
        "--steps",
        "60",
        "--batch",
        "12",
        "--seed",
        "5",
        "--out",
        text(&open),
    ]);
    // pure noise, without labels, and labels that do not fit
    let noise = data.path().join("noise-images");
    let (pixels, _) = images(20, 400.0, 9);
    fs::write(&noise, idx(&[20, SIDE, SIDE], &pixels)).unwrap();
    let base =
        ["audit", "--model", text(&model), "--data", shown, "--records", "40", "--seed", "1", "--plis"];
    let more =
        ["--eta", "--compare", text(&open), "--score", text(&noise), "--grid", "2", "--out", text(&out)];
    answered(&[&base[..], &more].concat());
    let audit = json(&out.join("audit.json"));
    // clip and noise are those of the run
    assert_eq!((&audit["release"]["clip"], &audit["release"]["sigma"]), (&1.0.into(), &0.8.into()));
    assert_eq!(audit["measured"], 40);
    assert_eq!(audit["compared"]["private"], false);
    assert!(audit["min_mse"].is_null(), "an estimate is no bound");
    let estimate = &audit["most_dfil"][0]["dfil"];
    assert!(estimate["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!((&audit["score"]["n"], &audit["score"]["labelled"]), (&20.into(), &false.into()));
    let by: Vec<&str> =
        audit["score"]["by"].as_array().unwrap().iter().map(|b| b["measure"].as_str().unwrap()).collect();
    assert_eq!(by, ["gradient_norm", "dfil", "eta", "plis"]);
    let counts = audit["score"]["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|c| c.as_u64().unwrap()).sum::<u64>(), 20);
    assert!(out.join("records.parquet").is_file() && out.join("scores.parquet").is_file());

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["id=\"who\"", "id=\"extremes\"", "id=\"plis\"", "id=\"over\"", "id=\"score\"", "PLIS, open"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.matches("<img ").count() > 40);
    check_page(&page);
    // the data file holds no pictures, and the page need not
    assert!(!fs::read_to_string(out.join("audit.json")).unwrap().contains("base64"));
    answered(&[&base[..], &["--no-pictures", "--out", text(&out)]].concat());
    assert!(!fs::read_to_string(out.join("report.html")).unwrap().contains("<img "));
    assert!(!out.join("scores.parquet").is_file(), "a table of an earlier audit is left");

    let wrong = data.path().join("wrong-labels");
    fs::write(&wrong, idx(&[30], &(1..=30).map(|i| (i % 3) as u8).collect::<Vec<u8>>())).unwrap();
    let images = data.path().join("t10k-images-idx3-ubyte");
    let scored = |labels: &Path| {
        let points = ["--score", text(&images), text(labels), "--json"];
        let run = answered(&[&base[..], &points].concat());
        let audit: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(audit["score"]["labelled"], true);
        audit["score"]["by"][0]["above_training_p99"].as_f64().unwrap()
    };
    let (right, wrong) = (scored(&data.path().join("t10k-labels-idx1-ubyte")), scored(&wrong));
    assert!(right < 0.3 && wrong > 0.9, "{right} {wrong}");
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
    assert!(t["network"]["trained"].as_u64() < t["network"]["parameters"].as_u64());
    let read = |dir: &Path| Tensors::from_bytes(&fs::read(dir.join("model.safetensors")).unwrap()).unwrap();
    let (before, after) = (read(&a), read(&b));
    for name in before.names() {
        let same = before.get::<f32>(name).unwrap() == after.get::<f32>(name).unwrap();
        assert_eq!(same, name.starts_with("layers.0."), "{name}");
    }
}

#[test]
fn safetensors_hold_records_too() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("points.safetensors"), dir.path().join("run"));
    let mut rng = Generator::new(4, Purpose::Other, 0);
    let x: Vec<f64> = (0..60).map(|_| rng.normal()).collect();
    let y: Vec<f64> = x.chunks(3).map(|r| 2.0 * r[0] - r[1]).collect();
    let mut points = Tensors::default();
    points.insert("x", &[20, 3], &x);
    points.insert("y", &[20], &y);
    fs::write(&file, points.to_bytes().unwrap()).unwrap();
    let net = dir.path().join("regression.json");
    let spec = r#"{"version": 1, "input": [3], "loss": "squared-error", "layers": [{"kind": "dense", "outputs": 1}]}"#;
    fs::write(&net, spec).unwrap();
    answered(&[
        "train",
        "--data",
        text(&file),
        "--network",
        text(&net),
        "--steps",
        "300",
        "--batch",
        "20",
        "--lr",
        "0.05",
        "--seed",
        "1",
        "--out",
        text(&out),
    ]);
    // the least-squares solution is the truth: weights 2, −1, 0
    let model = Tensors::from_bytes(&fs::read(out.join("model.safetensors")).unwrap()).unwrap();
    let w = model.get::<f64>("layers.0.weight").unwrap().1;
    assert!(w.iter().zip([2.0, -1.0, 0.0]).all(|(a, b)| (a - b).abs() < 1e-3), "{w:?}");
    let run = answered(&[
        "audit",
        "--model",
        text(&out),
        "--data",
        text(&file),
        "--trace",
        "exact",
        "--sigma",
        "1",
        "--json",
    ]);
    let audit: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(audit["accuracy"].is_null() && audit["dfil"]["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn bad_input_is_explained() {
    let data = folder(24);
    let dir = data.path();
    let (shown, net, out) = (text(dir).to_owned(), network(dir), dir.join("out"));
    let train = |network: &str, more: &[&str]| {
        let base = [
            "train",
            "--data",
            &shown,
            "--network",
            network,
            "--out",
            text(&out),
            "--seed",
            "1",
            "--steps",
            "2",
            "--batch",
            "8",
        ];
        refused(&[&base[..], more].concat())
    };
    let small = text(&net);
    for (more, says) in [
        (&["--clip", "0", "--sigma", "1"][..], "--clip: the clipping bound C is 0"),
        (&["--clip", "-1", "--sigma", "1"], "positive"),
        (&["--clip", "1"], "--sigma"),
        (&["--sigma", "0"], "--sigma: 0"),
        (&["--sigma", "1", "--clip-kind", "none"], "no privacy"),
        (&["--track"], "--track: "),
        (&["--lr", "0"], "--lr: 0"),
        (&["--lr", "nan"], "--lr: NaN"),
        (&["--delta", "2"], "--delta"),
        (&["--momentum", "1"], "--momentum"),
        (&["--freeze", "9"], "there is no layer 9"),
        (&["--pretrain", "nowhere.safetensors"], "nowhere.safetensors"),
        (&["--normalize", "1"], "MEAN,SD"),
        (&["--resume"], "--resume"),
        (&["--limit", "0"], "--limit"),
    ] {
        let said = train(small, more);
        assert!(said.contains(says), "{more:?}: {said}");
    }
    assert!(train(small, &["--limit", "4"]).contains("there are only 4 records"));
    assert!(train("cnn-mnits", &[]).contains("cnn-mnist"));

    // networks
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let spec = fs::read_to_string(&net).unwrap();
    for (name, changed, says) in [
        ("version.json", spec.replace("\"version\": 1", "\"version\": 9"), "version 9"),
        ("broken.json", spec.replace("\"layers\"", "\"layer\""), "broken.json"),
        ("chain.json", spec.replace("[3, 3]", "[30, 3]"), "larger than the padded image"),
        ("shape.json", spec.replace("[8, 8, 1]", "[9, 9, 1]"), "shape [8, 8, 1]"),
        (
            "outputs.json",
            spec.replace("\"dense\", \"outputs\": 3", "\"dense\", \"outputs\": 2"),
            "below the number of outputs",
        ),
    ] {
        let said = train(text(&file(name, &changed)), &[]);
        assert!(said.contains(says), "{name}: {said}");
    }

    // records
    let (x, y) = images(24, 15.0, 1);
    let images_of = |name: &str, bytes: Vec<u8>| {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let good = images_of("good-images", idx(&[24, 8, 8], &x));
    let labels = images_of("good-labels", idx(&[24], &y));
    let few = images_of("few-labels", idx(&[23], &y[..23]));
    let cut = images_of("cut-images", idx(&[25, 8, 8], &x));
    let huge = images_of("huge-images", idx(&[4_000_000_000, 60_000, 60_000], &x));
    let long = images_of("long-images", idx(&[23, 8, 8], &x));
    let empty = images_of("no-images", idx(&[0, 8, 8], &[]));
    let none = images_of("no-labels", idx(&[0], &[]));
    let other = images_of("other-file", b"hello, world, this is no image".to_vec());
    for (images, labels, says) in [
        (&good, &few, "expected a label for each of 24 images"),
        (&cut, &labels, "cut off"),
        (&huge, &labels, "broken"),
        (&long, &labels, "more than"),
        (&empty, &none, "no records"),
        (&other, &labels, "no idx file"),
        (&labels, &good, "images first"),
    ] {
        let said = refused(&[
            "train",
            "--data",
            text(images),
            text(labels),
            "--network",
            small,
            "--out",
            text(&out),
        ]);
        assert!(said.contains(says), "{images:?}: {said}");
    }
    assert!(
        refused(&["train", "--data", text(&good), "--network", small, "--out", text(&out)])
            .contains("no labels")
    );
    let bare = tempfile::tempdir().unwrap();
    let said = refused(&["train", "--data", text(bare.path()), "--network", small, "--out", text(&out)]);
    assert!(said.contains("train-images-idx3-ubyte"));
    assert!(
        refused(&["train", "--data", "nowhere", "--network", small, "--out", text(&out)]).contains("nowhere")
    );

    // models
    let model = dir.join("model");
    answered(&[
        "train",
        "--data",
        &shown,
        "--network",
        small,
        "--steps",
        "2",
        "--batch",
        "8",
        "--seed",
        "1",
        "--out",
        text(&model),
    ]);
    let audit =
        |more: &[&str]| refused(&[&["audit", "--model", text(&model), "--data", &shown][..], more].concat());
    for (more, says) in [
        (&["--trace", "1"][..], "--trace"),
        (&["--records", "0"], "--records"),
        (&["--plis", "--grid", "0"], "superpixel"),
        (&["--sigma", "-1"], "--sigma"),
        (&["--clip", "0"], "--clip"),
        (&["--plis", "--compare", "nowhere"], "--compare"),
        (&["--score", "nowhere"], "nowhere"),
    ] {
        let out = [more, &["--out", text(&out)]].concat();
        let said = audit(&out);
        assert!(said.contains(says), "{more:?}: {said}");
    }
    let wide = Network::<f32>::new(preset("linear", Shape::Image([9, 9, 1]), 3).unwrap(), 1).unwrap();
    let elsewhere = dir.join("wide");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("network.json"), wide.spec().to_json()).unwrap();
    fs::write(elsewhere.join("model.safetensors"), wide.to_tensors().to_bytes().unwrap()).unwrap();
    let said = refused(&["audit", "--model", text(&elsewhere), "--data", &shown]);
    assert!(said.contains("records have shape [8, 8, 1], the network was made for [9, 9, 1]"), "{said}");
    // weights that are NaN, or of another version
    let weights = model.join("model.safetensors");
    let original = Tensors::from_bytes(&fs::read(&weights).unwrap()).unwrap();
    let mut broken = original.clone();
    let shape = original.get::<f32>("layers.0.weight").unwrap().0.to_vec();
    broken.insert("layers.0.weight", &shape, &vec![f32::NAN; shape.iter().product()]);
    fs::write(&weights, broken.to_bytes().unwrap()).unwrap();
    assert!(audit(&[]).contains("not finite"));
    let mut later = original.clone();
    later.metadata.insert("version".into(), "7".into());
    fs::write(&weights, later.to_bytes().unwrap()).unwrap();
    assert!(audit(&[]).contains("version 7"));
    fs::write(&weights, original.to_bytes().unwrap()).unwrap();
    let training = fs::read_to_string(model.join("training.json")).unwrap();
    fs::write(model.join("training.json"), training.replace("net-training/1", "net-training/2")).unwrap();
    assert!(audit(&[]).contains("leakscope.net-training/2"));
}
