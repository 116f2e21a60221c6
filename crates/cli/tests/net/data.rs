//! Where records come from.

use super::support::*;
use leakscope_net::{
    io::Tensors,
    random::{Generator, Purpose},
};
use serde_json::Value;
use std::fs;

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

/// Targets of several values are no classes: nothing is said of a label, or of being right.
#[test]
fn regressions_with_several_outputs_have_no_label() {
    let dir = tempfile::tempdir().unwrap();
    let (file, net) = (dir.path().join("points.safetensors"), dir.path().join("two.json"));
    let (model, out) = (dir.path().join("model"), dir.path().join("audit"));
    let mut rng = Generator::new(4, Purpose::Other, 0);
    let x: Vec<f64> = (0..60).map(|_| rng.normal()).collect();
    let y: Vec<f64> = x.chunks(3).flat_map(|r| [2.0 * r[0], r[1] - r[2]]).collect();
    let mut points = Tensors::default();
    points.insert("x", &[20, 3], &x);
    points.insert("y", &[20, 2], &y);
    fs::write(&file, points.to_bytes().unwrap()).unwrap();
    let spec = r#"{"version": 1, "input": [3], "loss": "squared-error", "layers": [{"kind": "dense", "outputs": 2}]}"#;
    fs::write(&net, spec).unwrap();
    let train = ["train", "--data", text(&file), "--network", text(&net), "--steps", "5", "--batch", "10"];
    let more = ["--sigma", "1", "--track", "--seed", "1", "--format", "csv", "--out", text(&model)];
    answered(&[&train[..], &more].concat());
    let audit =
        ["audit", "--model", text(&model), "--data", text(&file), "--trace", "exact", "--eta", "--seed", "1"];
    answered(&[&audit[..], &["--score", text(&file), "--format", "csv", "--out", text(&out)]].concat());
    for table in [model.join("records.csv"), out.join("records.csv"), out.join("scores.csv")] {
        let (names, rows) = csv(&table);
        assert!(!names.iter().any(|n| n == "label" || n == "right"), "{names:?}");
        assert!(rows.len() == 20 && rows.iter().all(|r| r.len() == names.len()));
    }
    let audit = json(&out.join("audit.json"));
    assert!(audit["most_dfil"][0]["label"].is_null() && audit["most_dfil"][0]["right"].is_null());
    assert!(json(&model.join("training.json"))["accounts"]["most"][0]["label"].is_null());
    for page in [model.join("report.html"), out.join("report.html")] {
        let page = fs::read_to_string(page).unwrap();
        assert!(!page.contains("class=\"flag\"") && !page.contains(">label</th>"));
        check_page(&page);
    }
}

/// The checksum of zip files.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// A zip file of stored npy files, as `numpy.savez` writes it.
fn npz(arrays: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, kind, shape, values) in arrays {
        let extents: String = shape.iter().map(|e| format!("{e},")).collect();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
        let mut data = b"\x93NUMPY\x01\x00".to_vec();
        data.extend((header.len() as u16).to_le_bytes());
        data.extend(header.bytes());
        data.extend(values);
        let (name, size) = (format!("{name}.npy"), (data.len() as u32).to_le_bytes());
        // version, flags, method, time, date, checksum, sizes, lengths
        let (checksum, lengths) = (crc32(&data).to_le_bytes(), [name.len() as u8, 0, 0, 0]);
        let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &checksum, &size, &size, &lengths].concat();
        let offset = (file.len() as u32).to_le_bytes();
        file.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &data].concat());
        directory.extend([b"PK\x01\x02\x14\x00", &common[..], &[0; 10], &offset, name.as_bytes()].concat());
    }
    let (many, at) = (arrays.len() as u8, (file.len() as u32).to_le_bytes());
    let length = (directory.len() as u32).to_le_bytes();
    file.extend(&directory);
    file.extend([b"PK\x05\x06\0\0\0\0", &[many, 0, many, 0][..], &length, &at, &[0, 0]].concat());
    file
}

/// The same images as idx files and as one npz file, as MedMNIST has them: the runs are the same, byte by byte.
#[test]
fn npz_files_hold_records_too() {
    let data = folder(24);
    let net = network(data.path());
    let ((x, y), (u, v)) = (images(24, 15.0, 1), images(30, 15.0, 2));
    let whole = |labels: &[u8]| labels.iter().flat_map(|&l| i64::from(l).to_le_bytes()).collect::<Vec<u8>>();
    let file = data.path().join("images.npz");
    let arrays = [
        ("train_images", "|u1", &[24, SIDE, SIDE][..], x),
        ("train_labels", "<i8", &[24, 1], whole(&y)),
        ("test_images", "|u1", &[30, SIDE, SIDE], u),
        ("test_labels", "<i8", &[30, 1], whole(&v)),
    ];
    fs::write(&file, npz(&arrays)).unwrap();
    let run = |records: &str, out: &std::path::Path| {
        let args = ["train", "--data", records, "--network", text(&net), "--seed", "1", "--out", text(out)];
        answered(&[&args[..], &["--batch", "8", "--steps", "6"]].concat());
        (fs::read(out.join("model.safetensors")).unwrap(), json(&out.join("training.json")))
    };
    let (a, b) = (data.path().join("a"), data.path().join("b"));
    let ((one, first), (two, second)) = (run(text(data.path()), &a), run(text(&file), &b));
    assert!(one == two, "the models differ");
    assert_eq!(first["history"], second["history"]);
    assert_eq!((&second["accuracy_on"], &second["data"]["test_records"]), (&"test".into(), &30.into()));
    // points to score are the test images
    let audit = ["audit", "--model", text(&b), "--data", text(&file), "--score", text(&file), "--json"];
    let audit: Value = serde_json::from_slice(&answered(&audit).stdout).unwrap();
    assert_eq!((&audit["measured"], &audit["score"]["n"]), (&24.into(), &30.into()));

    let message = |bytes: Vec<u8>| {
        fs::write(&file, bytes).unwrap();
        refused(&["train", "--data", text(&file), "--network", text(&net), "--out", text(&a)])
    };
    let whole_file = npz(&arrays);
    assert!(message(whole_file[..whole_file.len() / 2].to_vec()).contains("images.npz: it is cut off"));
    assert!(
        message(npz(&arrays[2..]))
            .contains("none of the arrays train_images, x_train, x; it has test_images")
    );
    assert!(message(npz(&arrays[..1])).contains("there are no labels"));
    assert!(message(npz(&[("x", "<c8", &[1, 64], vec![0; 512])])).contains("type <c8: save it as uint8"));
    assert!(message(npz(&[("x", "<f4", &[2, 64], vec![0; 256])])).contains("cut off: 64 of 128 values"));
    let few = ("y", "|u1", &[1][..], vec![0]);
    assert!(
        message(npz(&[("x", "|u1", &[2, 64], vec![0; 128]), few])).contains("a label for each of 2 records")
    );
    let broken = [f32::NAN; 128].iter().flat_map(|v| v.to_le_bytes()).collect();
    let labels = ("y", "|u1", &[2][..], vec![0, 1]);
    assert!(message(npz(&[("x", "<f4", &[2, 8, 8, 1], broken), labels])).contains("not finite in record 0"));
    assert!(message(npz(&[("x", "<f8", &[1 << 40, 1 << 40], vec![])])).contains("it is broken"));
}
