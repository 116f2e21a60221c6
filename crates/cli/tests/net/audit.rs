//! `net audit`: measures against their definition, and the page.

use super::support::*;
use leakscope_net::io::Tensors;
use serde_json::Value;
use std::fs;
use std::path::Path;

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
    // PLIS before the clip, by name, and over the four quarters of the image
    let raw_out = data.path().join("raw");
    let raw =
        ["--plis", "raw", "--grid", "4", "--trace", "elements", "--format", "csv", "--out", text(&raw_out)];
    let base_raw = ["audit", "--model", text(&model), "--data", shown, "--clip", &c, "--sigma", "0.4"];
    answered(&[&base_raw[..], &raw].concat());
    let raw_table = csv(&raw_out.join("records.csv"));
    assert_eq!(
        (&printed["plis_of"], &json(&raw_out.join("audit.json"))["plis_of"]),
        (&"released".into(), &"raw".into())
    );
    assert!(printed["warnings"].to_string().contains("longer than the hard clip"), "{}", printed["warnings"]);
    for i in 0..30 {
        let squares: f64 = (0..4).map(|g| column(&raw_table, &format!("plis_region_{g}"))[i].powi(2)).sum();
        assert!((squares.sqrt() / column(&raw_table, "plis")[i] - 1.0).abs() < 1e-9, "regions of {i}");
    }
    assert!(!table.0.iter().any(|c| c.starts_with("plis_region")), "regions that nobody asked for");
    // van Trees: coordinate by coordinate, at least as much as from the trace alone; never above guessing
    let (by_value, by_trace) =
        (&json(&raw_out.join("audit.json"))["typical_error"]["value"], &printed["typical_error"]["value"]);
    let (by_value, by_trace) = (by_value.as_f64().unwrap(), by_trace.as_f64().unwrap());
    let spread = printed["spread"].as_f64().unwrap();
    assert!(
        0.0 < by_trace && by_trace <= by_value && by_value <= spread * (1.0 + 1e-12),
        "{by_trace} {by_value} {spread}"
    );

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
        let raw: Vec<f64> = columns(&|x| vec![norm(&gradient(&w, &b, x, class)).powi(2)]).concat();
        let (raw, s) = (norm(&raw) / (noise * noise), (clip / norm(&g)).min(1.0));
        let squares: Vec<f64> = columns(&|x| vec![norm(&released(x, class)).powi(2)]).concat();
        // beyond the clip nothing moves, and differences are rounding
        let of_released = if s < 1.0 { 0.0 } else { norm(&squares) / (noise * noise) };
        assert!((norm(&squares) / (noise * noise) - of_released).abs() < 1e-6 * raw);
        assert!((column(&raw_table, "plis")[i] / raw - 1.0).abs() < 1e-4);
        let trace: f64 = inside.iter().map(|c| norm(c).powi(2)).sum::<f64>() / (noise * noise);
        for (name, expected, tolerance) in [
            ("gradient_norm", norm(&g), 1e-5),
            ("released_norm", norm(&g).min(clip), 1e-5),
            ("trace", trace, 1e-4),
            ("dfil", trace / d as f64, 1e-4),
            ("eta", spectral(&inside) / noise, 1e-3),
            ("jacobian_sensitivity", spectral(&outside), 1e-3),
            ("plis", of_released, 1e-4),
        ] {
            let actual = column(&table, name)[i];
            assert!(
                (actual - expected).abs() <= tolerance * expected.abs(),
                "{i} {name}: {actual}, expected {expected}"
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
    let first = &audit["most_dfil"][0];
    assert!(first["dfil"]["standard_error"].as_f64().unwrap() > 0.0);
    // who is the largest of 40 estimates is not known to be the largest: intervals over all of them
    let (value, low) =
        (first["dfil"]["value"].as_f64().unwrap(), first["dfil_interval"]["lower"].as_f64().unwrap());
    let largest = &audit["dfil_extremes"]["largest"];
    assert!(
        low < value
            && largest["lower"].as_f64().unwrap() < value
            && largest["upper"].as_f64().unwrap() > value
    );
    let candidates = audit["dfil_extremes"]["candidates"].as_u64().unwrap();
    assert!((1..=40).contains(&candidates));
    assert_eq!((&audit["score"]["n"], &audit["score"]["labelled"]), (&20.into(), &false.into()));
    let by: Vec<&str> =
        audit["score"]["by"].as_array().unwrap().iter().map(|b| b["measure"].as_str().unwrap()).collect();
    assert_eq!(by, ["gradient_norm", "dfil", "eta", "plis"]);
    let counts = audit["score"]["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|c| c.as_u64().unwrap()).sum::<u64>(), 20);
    // Pure noise without labels: its gradients are longer than most of the training records' in the open model, whose training the seed
    // repeats; the noise of the private one is another every time.
    let other = data.path().join("open-audit");
    let scored = ["--records", "40", "--seed", "1", "--score", text(&noise), "--out", text(&other)];
    answered(
        &[&["audit", "--model", text(&open), "--data", shown, "--clip", "1", "--sigma", "1"][..], &scored]
            .concat(),
    );
    let of_open = json(&other.join("audit.json"));
    let by = of_open["score"]["by"].as_array().unwrap().iter().find(|b| b["measure"] == "gradient_norm");
    let exceeds = by.unwrap()["exceeds_training"].as_f64().unwrap();
    assert!(exceeds > 0.55, "{exceeds}");
    assert!(out.join("records.parquet").is_file() && out.join("scores.parquet").is_file());

    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for part in [
        "id=\"who\"",
        "id=\"extremes\"",
        "id=\"plis\"",
        "id=\"over\"",
        "id=\"score\"",
        "PLIS, open",
        "Largest estimates of dFIL",
        "95% over all measured",
        "Where in the point: PLIS",
        "van Trees",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let told = if candidates > 1 {
        "which record has it is not known"
    } else {
        "The most exposed record of one step is number"
    };
    assert!(page.contains(told), "{candidates}");
    assert!(page.matches("<img ").count() > 40);
    check_page(&page);
    // the data file holds no pictures, and the page need not
    assert!(!fs::read_to_string(out.join("audit.json")).unwrap().contains("base64"));
    answered(&[&base[..], &["--no-pictures", "--out", text(&out)]].concat());
    assert!(!fs::read_to_string(out.join("report.html")).unwrap().contains("<img "));
    assert!(!out.join("scores.parquet").is_file(), "a table of an earlier audit is left");

    // two halves as regions: a map has two shades; a file of another size is refused
    let halves = data.path().join("halves");
    let regions: Vec<u8> = (0..SIDE * SIDE).map(|i| u8::from(i % SIDE >= SIDE / 2)).collect();
    fs::write(&halves, idx(&[SIDE, SIDE], &regions)).unwrap();
    answered(&[&base[..], &["--superpixels", text(&halves), "--out", text(&out)]].concat());
    fs::write(&halves, idx(&[SIDE, 2], &regions[..2 * SIDE])).unwrap();
    let message = refused(&[&base[..], &["--superpixels", text(&halves)]].concat());
    assert!(message.contains("it has shape [8, 2], expected [8, 8]"), "{message}");

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
