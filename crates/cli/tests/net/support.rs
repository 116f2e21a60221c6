//! Running `leakscope net` as a user does, on tiny images.

use super::schemas;
use leakscope_net::random::{Generator, Purpose};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const SIDE: usize = 8;
pub(crate) const CLASSES: usize = 3;

/// Runs the programme.
pub(crate) fn leakscope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leakscope")).arg("net").args(args).output().unwrap()
}

/// Runs it and expects an answer.
pub(crate) fn answered(args: &[&str]) -> Output {
    let out = leakscope(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out
}

/// Compares a result with itself: it is of this kind, and nothing got worse.
pub(crate) fn compared_with_itself(out: &Path, kind: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leakscope"));
    let done = command
        .args(["compare", text(out), text(out), "--json", "--fail-on", "regression"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let answer = schemas::checked(serde_json::from_slice(&done.stdout).unwrap());
    assert_eq!(answer["kind"], kind);
    assert!(answer["sections"].as_array().unwrap().len() >= 2, "{answer:#}");
}

/// Runs it and expects no answer; returns what it says.
pub(crate) fn refused(args: &[&str]) -> String {
    let out = leakscope(args);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
    assert!(out.stdout.is_empty(), "{args:?} printed something");
    assert!(message.starts_with("error: ") && !message.contains("panicked"), "{args:?}: {message}");
    message
}

/// A document, which is what its schema says.
pub(crate) fn json(path: &Path) -> Value {
    schemas::checked(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
}

/// An idx file of bytes.
pub(crate) fn idx(extents: &[usize], values: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 8, extents.len() as u8];
    extents.iter().for_each(|e| out.extend_from_slice(&(*e as u32).to_be_bytes()));
    out.extend_from_slice(values);
    out
}

/// Images of three kinds: a bright row, a bright column, a bright corner, and noise.
pub(crate) fn images(n: usize, noise: f64, seed: u64) -> (Vec<u8>, Vec<u8>) {
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
pub(crate) fn folder(n: usize) -> tempfile::TempDir {
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

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A CSV file as columns by name; the texts here hold no commas.
pub(crate) fn csv(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

pub(crate) fn column(table: &(Vec<String>, Vec<Vec<String>>), name: &str) -> Vec<f64> {
    let at = table.0.iter().position(|c| c == name).unwrap_or_else(|| panic!("no column {name}"));
    table.1.iter().map(|row| row[at].parse().unwrap()).collect()
}

/// A page asks for nothing from elsewhere and shows no number that is none.
pub(crate) fn check_page(page: &str) {
    let mut words = String::new();
    for (i, part) in page.split("base64,").enumerate() {
        words.push_str(if i == 0 { part } else { part.split_once('"').unwrap().1 });
    }
    for bad in ["http://", "https://", "NaN", "inf\""] {
        assert!(!words.contains(bad), "{bad}");
    }
}

/// A small convolutional network as a file.
pub(crate) fn network(dir: &Path) -> PathBuf {
    let path = dir.join("small.json");
    let spec = r#"{"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": [
        {"kind": "conv", "outputs": 3, "kernel": [3, 3], "stride": [2, 2]}, {"kind": "tanh"},
        {"kind": "flatten"}, {"kind": "dense", "outputs": 3}]}"#;
    fs::write(&path, spec).unwrap();
    path
}

/// Trains a small private network; returns its folder.
pub(crate) fn private(data: &Path, out: &Path, more: &[&str]) -> Output {
    let net = network(data);
    let mut args = vec!["train", "--data", text(data), "--network", text(&net), "--out", text(out)];
    args.extend([
        "--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--seed", "5", "--format", "csv",
    ]);
    args.extend(more);
    answered(&args)
}
