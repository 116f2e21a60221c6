//! What an attacker can do with the files that a private run publishes: everything outside `private/`.

use super::support::*;
use leakscope_net::io::Tensors;
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, TrainConfig, Trainer};
use leakscope_net::{Clip, Data, NetSpec, Network};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const RECORDS: usize = 24;
const SIGMA: f64 = 1.0;

/// A folder of images, one of which may be another.
fn records(dir: &Path, name: &str, changed: Option<usize>) -> PathBuf {
    let (mut x, y) = images(RECORDS, 15.0, 1);
    let size = SIDE * SIDE;
    if let Some(i) = changed {
        x[i * size..(i + 1) * size].iter_mut().enumerate().for_each(|(j, v)| *v = 255 * (j % 2) as u8);
    }
    let folder = dir.join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("train-images-idx3-ubyte"), idx(&[RECORDS, SIDE, SIDE], &x)).unwrap();
    fs::write(folder.join("train-labels-idx1-ubyte"), idx(&[RECORDS], &y)).unwrap();
    folder
}

/// One step over all records: the model moves by the noisy mean of clipped gradients. Returns its parameters.
fn step(data: &Path, out: &Path, seed: &str, more: &[&str]) -> Vec<f64> {
    let all = RECORDS.to_string();
    let base = ["train", "--data", text(data), "--network", "linear", "--precision", "f64", "--seed", seed];
    let one = ["--steps", "1", "--batch", &all, "--lr", "1", "--momentum", "0", "--clip", "1"];
    let noise = ["--sigma", "1", "--out", text(out)];
    answered(&[&base[..], &one, &noise, more].concat());
    weights(out)
}

/// The parameters of a model.
fn weights(out: &Path) -> Vec<f64> {
    let file = Tensors::from_bytes(&fs::read(out.join("model.safetensors")).unwrap()).unwrap();
    file.names().flat_map(|name| file.get::<f64>(name).unwrap().1).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The attacker knows all records but one, the settings and the seed, which is printed. Where the noise follows from the
/// seed, a run over the neighbouring records has the same noise, and the difference is the record's gradient alone. In a
/// private run it is the noise of two runs, whatever the seed.
#[test]
fn the_seed_does_not_take_the_noise_off() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (data, neighbour) = (records(dir.path(), "data", None), records(dir.path(), "neighbour", Some(7)));
    let seeded = ["--not-private-noise-from-seed"];
    // two gradients of norm 1 at most, over the number of records
    let record = 2.0 / RECORDS as f64;
    let open = step(&data, &at("open"), "5", &seeded);
    let known = step(&neighbour, &at("open-neighbour"), "5", &seeded);
    let told = distance(&open, &known);
    assert!(told > 0.0 && told <= record * (1.0 + 1e-9), "{told}: the attack has no force");

    let published = step(&data, &at("run"), "5", &[]);
    let seed = json(&at("run").join("training.json"))["seed"].to_string();
    assert_eq!(seed, "5");
    let again = step(&data, &at("again"), &seed, &[]);
    let private_neighbour = step(&neighbour, &at("private-neighbour"), &seed, &[]);
    // a coordinate of a difference of two noises has variance 2(σC/n)²; its norm over p of them is within a half of √(2p)σC/n
    // but for a chance below 1e-11 for the 195 of this network
    let expected = (2.0 * published.len() as f64).sqrt() * SIGMA / RECORDS as f64;
    for (other, name) in [
        (&open, "noise from the seed, same records"),
        (&known, "noise from the seed, neighbouring records"),
        (&again, "the same command again"),
        (&private_neighbour, "the same command over neighbouring records"),
    ] {
        let left = distance(&published, other);
        assert!(left > 0.5 * expected && left < 1.5 * expected + record, "{name}: {left}, noise {expected}");
    }
}

/// Whole numbers that stand in a text, in digits or as the bits, the whole or the shifted part of a decimal number: what a
/// generator could have been started from.
fn numbers(text: &str) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))) {
        numbers.extend(word.parse::<u64>());
        numbers.extend(u64::from_str_radix(word, 16));
        if let Ok(value) = word.parse::<f64>() {
            numbers.extend([value.to_bits(), value as u64]);
            // a time in seconds as milli-, micro- and nanoseconds
            numbers.extend([1e3, 1e6, 1e9].map(|unit| (value * unit).round() as u64));
        }
        numbers.extend(word.split(['.', '-', '+']).filter_map(|part| part.parse::<u64>().ok()));
    }
    numbers
}

/// The attack on the published files: the attacker knows all records and settings, starts a generator from every number
/// that is printed anywhere, makes the step with that noise, and compares. Noise that follows from the seed is rebuilt to the
/// last digits; that of a private run by none.
#[test]
fn no_published_number_rebuilds_the_noise() {
    let dir = tempfile::tempdir().unwrap();
    let data = records(dir.path(), "data", None);
    let (x, y) = images(RECORDS, 15.0, 1);
    let x: Vec<f64> = x.into_iter().map(|v| f64::from(v) / 255.0).collect();
    let y: Vec<u32> = y.into_iter().map(u32::from).collect();
    for (more, rebuilt) in [(&["--not-private-noise-from-seed"][..], true), (&[], false)] {
        let out = dir.path().join(format!("run-{rebuilt}"));
        let all = RECORDS.to_string();
        let args =
            ["train", "--data", text(&data), "--network", "linear", "--precision", "f64", "--steps", "1"];
        let step =
            ["--batch", &all, "--lr", "1", "--momentum", "0", "--clip", "1", "--sigma", "1", "--track"];
        let run = answered(&[&args[..], &step, &["--out", text(&out)], more].concat());
        let published = weights(&out);
        let mut candidates = BTreeSet::new();
        for path in files(&out).into_iter().filter(|p| !p.starts_with(out.join("private"))) {
            let bytes = fs::read(path).unwrap();
            candidates.extend(numbers(&String::from_utf8_lossy(&bytes)));
            // as they stand in files of numbers
            candidates.extend(bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())));
        }
        candidates.extend(numbers(&String::from_utf8_lossy(&run.stdout)));
        candidates.extend(numbers(&String::from_utf8_lossy(&run.stderr)));
        let seed = json(&out.join("training.json"))["seed"].as_u64().unwrap();
        assert!(candidates.contains(&seed) && candidates.len() > 200, "{}", candidates.len());

        let spec = NetSpec::from_json(&fs::read_to_string(out.join("network.json")).unwrap()).unwrap();
        let start = || Network::<f64>::new(spec.clone(), seed).unwrap();
        let data = Data::classes(start().input(), x.clone(), CLASSES, &y).unwrap();
        let closest = candidates.into_iter().map(|seed| {
            let config = TrainConfig {
                privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: SIGMA }),
                seed,
                randomness: Randomness::SeededNotPrivate,
                ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 1.0, Sampling::Poisson { rate: 1.0 })
            };
            let mut run = Trainer::new(start(), &data, config).unwrap();
            run.step().unwrap();
            let file = run.into_network().to_tensors().unwrap();
            let guess: Vec<f64> = file.names().flat_map(|name| file.get::<f64>(name).unwrap().1).collect();
            distance(&published, &guess)
        });
        let closest = closest.fold(f64::INFINITY, f64::min);
        // the difference of two noises, see above; the closest of some thousands is not below half of what it is expected to be
        let noise = (2.0 * published.len() as f64).sqrt() * SIGMA / RECORDS as f64;
        assert!(
            if rebuilt { closest < 1e-9 * noise } else { closest > 0.5 * noise },
            "{rebuilt}: {closest} {noise}"
        );
    }
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path) } else { vec![path] }
        })
        .collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

/// The key stands in the private checkpoint, and in no other form, whole or in part, in what is published, printed or
/// found by an audit.
#[test]
fn the_key_of_the_noise_is_in_no_published_file() {
    let data = folder(24);
    let (out, audit) = (data.path().join("run"), data.path().join("audit"));
    let run = private(data.path(), &out, &["--steps", "4", "--track", "--checkpoint-every", "1"]);
    let audited =
        answered(&["audit", "--model", text(&out), "--data", text(data.path()), "--out", text(&audit)]);
    let checkpoint = fs::read(out.join("private/checkpoint.safetensors")).unwrap();
    let hex = Tensors::from_bytes(&checkpoint).unwrap().metadata["secret-key"].clone();
    assert_eq!(hex.len(), 64);
    assert!(contains(&checkpoint, hex.as_bytes()));
    let key: Vec<u8> = (0..32).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    let reversed: Vec<u8> = key.iter().rev().copied().collect();
    let published: Vec<PathBuf> = files(&out)
        .into_iter()
        .filter(|p| !p.starts_with(out.join("private")))
        .chain(files(&audit))
        .collect();
    assert!(published.len() >= 8, "{published:?}");
    let mut all: Vec<(String, Vec<u8>)> =
        published.iter().map(|p| (p.display().to_string(), fs::read(p).unwrap())).collect();
    for (name, bytes) in [("train", run), ("audit", audited)] {
        all.push((format!("stdout of {name}"), bytes.stdout));
        all.push((format!("stderr of {name}"), bytes.stderr));
    }
    for (name, bytes) in &all {
        let lower = bytes.to_ascii_lowercase();
        // sixteen digits, eight bytes: by chance in a file of a megabyte once in 1e13
        for at in (0..=hex.len() - 16).step_by(8) {
            assert!(!contains(&lower, &hex.as_bytes()[at..at + 16]), "{name} has digits of the key");
        }
        for key in [&key, &reversed] {
            for at in (0..=key.len() - 8).step_by(4) {
                assert!(!contains(bytes, &key[at..at + 8]), "{name} has bytes of the key");
                // as eight bytes of a JSON array, or as a number
                let word: [u8; 8] = key[at..at + 8].try_into().unwrap();
                let number = u64::from_le_bytes(word).to_string();
                assert!(!contains(bytes, number.as_bytes()), "{name} has a word of the key");
            }
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(out.join("private")).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
