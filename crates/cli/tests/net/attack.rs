//! `net attack`: what attacks find, and what is refused.

use super::support::*;
use leakscope_net::engine::clipped_gradient;
use leakscope_net::io::Tensors;
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::{Clip, Data, NetSpec, Network};
use std::fs;
use std::path::Path;

fn trained(data: &Path, network: &str, out: &Path) {
    answered(&[
        "train",
        "--data",
        text(data),
        "--network",
        network,
        "--steps",
        "4",
        "--lr",
        "0.05",
        "--batch",
        "10",
        "--seed",
        "2",
        "--out",
        text(out),
    ]);
}

/// A model whose first layer is dense gives every record away in one step, and the page says so; pictures stay off the JSON.
#[test]
fn inversion_reconstructs_compares_and_shows() {
    let data = folder(30);
    let (model, out) = (data.path().join("model"), data.path().join("attack"));
    trained(data.path(), "mlp", &model);
    let message = answered(&[
        "attack",
        "--method",
        "inversion",
        "--model",
        text(&model),
        "--data",
        text(data.path()),
        "--records",
        "6",
        "--iterations",
        "40",
        "--sigmas",
        "0,0.001,0.5",
        "--clip",
        "1",
        "--labels",
        "recover",
        "--seed",
        "1",
        "--format",
        "csv",
        "--out",
        text(&out),
    ]);
    let message = String::from_utf8(message.stdout).unwrap();
    assert!(message.contains("first layer") && message.contains("known again"), "{message}");
    let answer = json(&out.join("inversion.json"));
    compared_with_itself(&out, "inversion");
    let levels = answer["levels"].as_array().unwrap();
    let first = |k: usize| levels[k]["first_layer"]["value"].as_f64().unwrap();
    assert!(first(0) < 1e-8 && first(1) > first(0) && first(2) > first(1), "{levels:?}");
    assert_eq!(levels[0]["labels_right"]["value"], 1.0);
    assert!(levels[0]["cramer_rao"].is_null() && levels[1]["cramer_rao"].as_f64().unwrap() > 0.0);
    let trees = |k: usize| levels[k]["van_trees"]["value"].as_f64().unwrap();
    assert!(trees(2) > trees(1) && trees(2) <= answer["spread"].as_f64().unwrap());
    for (k, level) in levels.iter().enumerate().skip(1) {
        for attack in ["mse", "first_layer"] {
            assert!(level[attack]["ci_high"].as_f64().unwrap() >= trees(k), "{attack} beats the bound");
        }
    }
    // images of 8 × 8 are too small for both similarities
    assert!(levels[0]["ssim"].is_null() && levels[0]["haar_psi"].is_null());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    check_page(&page);
    assert!(page.contains("data:image/png") && page.contains("Original, reconstruction, PLIS"));
    assert!(!fs::read_to_string(out.join("inversion.json")).unwrap().contains("base64"));
    let table = csv(&out.join("records.csv"));
    assert_eq!(column(&table, "mse_at_sigma_0").len(), 6);
    assert!(column(&table, "dfil").iter().all(|d| *d > 0.0));
}

/// One record that is attacked alone: what its first layer gives away is held against what all records differ by.
#[test]
fn one_record_is_no_calmer_than_several() {
    let data = folder(30);
    let (model, out) = (data.path().join("model"), data.path().join("attack"));
    trained(data.path(), "mlp", &model);
    let (model, shown, out_shown) = (text(&model).to_owned(), text(data.path()), text(&out));
    let message = answered(&[
        "attack",
        "--method",
        "inversion",
        "--model",
        &model,
        "--data",
        shown,
        "--records",
        "1",
        "--iterations",
        "3",
        "--sigma",
        "1e-6",
        "--sigmas",
        "1e-6",
        "--clip",
        "1",
        "--seed",
        "1",
        "--out",
        out_shown,
    ]);
    let message = String::from_utf8(message.stdout).unwrap();
    let answer = json(&out.join("inversion.json"));
    assert!(answer["levels"][0]["first_layer"]["value"].as_f64().unwrap() < 1e-4);
    assert!(answer["spread"].as_f64().unwrap() > 0.01, "{}", answer["spread"]);
    assert!(message.contains("gives a record in one step"), "{message}");
    assert!(message.contains("What makes it red"), "{message}");
}

/// Records whose gradient is zero: nothing can be found of them, and the others are attacked all the same.
#[test]
fn a_record_that_moves_nothing_stops_no_attack() {
    let data = folder(30);
    let model = data.path().join("model");
    trained(data.path(), "linear", &model);
    // With weights this large the softmax is 0 and 1 to the last digit, and the first class is never guessed: its records move the
    // network, and others, which are right, nothing.
    let file = model.join("model.safetensors");
    let (tensors, spec) = (
        Tensors::from_bytes(&fs::read(&file).unwrap()).unwrap(),
        fs::read_to_string(model.join("network.json")).unwrap(),
    );
    let net = Network::<f32>::new(NetSpec::from_json(&spec).unwrap(), 0).unwrap();
    let mut large = Tensors::default();
    for t in net.tensors() {
        let (shape, values) = tensors.get::<f32>(&t.name).unwrap();
        let mut values: Vec<f32> = values.iter().map(|v| 1e6 * v).collect();
        match shape[..] {
            [_, inputs] => values[..inputs].fill(0.0),
            _ => values[0] = -1e9,
        }
        large.insert(&t.name, shape, &values);
    }
    fs::write(&file, large.to_bytes().unwrap()).unwrap();
    let out = data.path().join("attack");
    answered(&[
        "attack",
        "--method",
        "inversion",
        "--model",
        text(&model),
        "--data",
        text(data.path()),
        "--records",
        "30",
        "--iterations",
        "3",
        "--sigmas",
        "0",
        "--seed",
        "1",
        "--format",
        "csv",
        "--out",
        text(&out),
    ]);
    let table = csv(&out.join("records.csv"));
    let norms = column(&table, "gradient_norm");
    let zero = norms.iter().filter(|g| **g == 0.0).count();
    assert!(zero > 0 && zero < 30, "{zero} of 30 records move nothing");
    let answer = json(&out.join("inversion.json"));
    // Those that are seen come back by the first layer; of the others the middle of the range is guessed.
    assert!(answer["levels"][0]["first_layer"]["value"].as_f64().unwrap() > 0.0);
}

/// A gradient in a file: the record comes back; those of other networks, of zeros and of NaN are refused.
#[test]
fn a_given_gradient_is_inverted_or_refused() {
    let data = folder(30);
    let model = data.path().join("model");
    trained(data.path(), "linear", &model);
    let spec = fs::read_to_string(model.join("network.json")).unwrap();
    let mut net = Network::<f32>::new(NetSpec::from_json(&spec).unwrap(), 0).unwrap();
    net.load_tensors(&Tensors::from_bytes(&fs::read(model.join("model.safetensors")).unwrap()).unwrap())
        .unwrap();
    let mut rng = Generator::new(5, Purpose::Other, 0);
    let x: Vec<f32> = (0..64).map(|_| rng.uniform() as f32).collect();
    let record = Data::classes(net.input(), x.clone(), 3, &[2]).unwrap();
    let gradient = clipped_gradient(&net, &record, &[0], Clip::None).unwrap().sum;
    let file = |name: &str, scale: f32, d: usize| {
        let mut file = Tensors::default();
        for t in net.tensors() {
            let len: usize = t.shape.iter().product();
            let g: Vec<f32> = gradient[t.offset..][..len].iter().map(|v| scale * v).collect();
            match t.shape[..] {
                [outputs, _] => file.insert(&t.name, &[outputs, d], &g[..outputs * d]),
                _ => file.insert(&t.name, &t.shape, &g),
            }
        }
        let path = data.path().join(name);
        fs::write(&path, file.to_bytes().unwrap()).unwrap();
        path
    };
    let out = data.path().join("found");
    let attack = |gradient: &Path| {
        let words =
            ["attack", "--method", "inversion", "--model", text(&model), "--gradient", text(gradient)];
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        words
    };
    let with = |words: &[String], more: &[&str]| {
        let mut all: Vec<String> = words.to_vec();
        all.extend(more.iter().map(|w| (*w).to_owned()));
        all
    };
    let good = with(
        &attack(&file("g.safetensors", 1.0, 64)),
        &["--iterations", "20", "--seed", "1", "--out", text(&out)],
    );
    answered(&good.iter().map(String::as_str).collect::<Vec<_>>());
    let answer = json(&out.join("inversion.json"));
    assert_eq!(
        (answer["given"]["first_layer"].as_bool(), answer["given"]["labels"][0].as_str()),
        (Some(true), Some("2"))
    );
    let back = Tensors::from_bytes(&fs::read(out.join("reconstruction.safetensors")).unwrap()).unwrap();
    let (shape, values) = back.get::<f64>("x").unwrap();
    assert_eq!(shape, [1, 8, 8, 1]);
    assert!(values.iter().zip(&x).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-4));
    check_page(&fs::read_to_string(out.join("report.html")).unwrap());
    let refuse = |gradient: &Path| {
        let words = attack(gradient);
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert!(refuse(&file("other.safetensors", 1.0, 60)).contains("gradient of another network"));
    assert!(refuse(&file("zero.safetensors", 0.0, 64)).contains("zero everywhere"));
    let nan = refuse(&file("nan.safetensors", f32::NAN, 64));
    assert!(nan.contains("--gradient") && nan.contains("not finite"), "{nan}");
    assert!(refuse(&model.join("network.json")).contains("safetensors"));
}

#[test]
fn attacks_that_make_no_sense_are_refused() {
    let data = folder(12);
    let model = data.path().join("model");
    trained(data.path(), "linear", &model);
    let refuse = |more: &[&str]| {
        let mut words = vec!["attack", "--method", "inversion", "--model", text(&model)];
        words.extend(more);
        refused(&words)
    };
    let shown = text(data.path());
    assert!(refuse(&[]).contains("--gradient"));
    assert!(refuse(&["--data", shown, "--sigmas", "-1"]).contains("--sigmas"));
    assert!(refuse(&["--data", shown, "--iterations", "0"]).contains("--iterations"));
    assert!(refuse(&["--data", shown, "--batch", "40"]).contains("--batch"));
    assert!(refuse(&["--data", shown, "--range", "1,0"]).contains("--range"));
    assert!(refuse(&["--data", shown, "--total-variation", "-1"]).contains("--total-variation"));
    assert!(refuse(&["--data", shown, "--local-steps", "2", "--sigmas", "1"]).contains("--local-steps"));
}

/// Membership: attackers beside what ε allows, and canaries that do not refute a correct training code.
#[test]
fn membership_is_attacked_and_epsilon_bounded_from_below() {
    let data = folder(60);
    let (model, out) = (data.path().join("model"), data.path().join("members"));
    private(data.path(), &model, &["--steps", "6"]);
    let words = ["attack", "--method", "membership", "--model", text(&model), "--data", text(data.path())];
    let with = |more: &[&'static str]| {
        let mut all = words.to_vec();
        all.extend(more);
        all
    };
    let mut arguments =
        with(&["--shadows", "4", "--canaries", "40", "--seed", "3", "--format", "csv", "--out"]);
    let shown = text(&out).to_owned();
    arguments.push(&shown);
    let message = String::from_utf8(answered(&arguments).stdout).unwrap();
    assert!(message.contains("likelihood ratio attack") && message.contains("no guarantee"), "{message}");
    let answer = json(&out.join("membership.json"));
    compared_with_itself(&out, "membership");
    assert!(answer["for"].as_str().unwrap().contains("the owner of the data only"));
    assert_eq!((answer["members"].as_u64(), answer["others"].as_u64()), (Some(30), Some(30)));
    let (epsilon, delta) =
        (answer["promise"]["epsilon"].as_f64().unwrap(), answer["promise"]["delta"].as_f64().unwrap());
    for attack in answer["attacks"].as_array().unwrap() {
        for p in attack["points"].as_array().unwrap() {
            let allowed = p["allowed"]["value"].as_f64().unwrap();
            let rate = p["rate"].as_f64().unwrap();
            assert!(allowed <= (epsilon.exp() * rate + delta) * (1.0 + 1e-9));
            assert!(p["true_positive"]["ci_low"].as_f64().unwrap() <= allowed, "{attack}: {p}");
        }
    }
    let canaries = &answer["canaries"];
    assert!(canaries["epsilon"]["value"].as_f64().unwrap() <= canaries["promised"].as_f64().unwrap());
    check_page(&fs::read_to_string(out.join("report.html")).unwrap());
    let table = csv(&out.join("records.csv"));
    assert_eq!(column(&table, "member").iter().sum::<f64>(), 30.0);
    assert_eq!(column(&table, "log_likelihood_ratio").len(), 60);
    assert!(refused(&with(&["--shadows", "3"])).contains("--shadows"));
    assert!(refused(&with(&["--confidence", "2"])).contains("--confidence"));
    assert!(refused(&with(&["--shadows", "0", "--canaries", "60"])).contains("--canaries"));
    assert!(refused(&with(&["--sigmas", "1"])).contains("--method inversion"));
    let empty = tempfile::tempdir().unwrap();
    for name in ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"] {
        fs::copy(data.path().join(name), empty.path().join(name)).unwrap();
    }
    let alone = ["attack", "--method", "membership", "--model", text(&model), "--data", text(empty.path())];
    assert!(refused(&alone).contains("--test"));
}

/// Beside what (ε, δ) allows stands what the attacked records' own accounts allow: less, and no attack passes it.
#[test]
fn membership_stays_within_the_records_own_accounts() {
    let data = folder(60);
    let (model, out) = (data.path().join("model"), data.path().join("members"));
    private(data.path(), &model, &["--steps", "6", "--track", "every"]);
    let words = ["attack", "--method", "membership", "--model", text(&model), "--data", text(data.path())];
    let rest = ["--shadows", "4", "--seed", "3", "--format", "csv", "--out", text(&out)];
    let message = String::from_utf8(answered(&[&words[..], &rest].concat()).stdout).unwrap();
    assert!(message.contains("own accounts"), "{message}");
    let answer = json(&out.join("membership.json"));
    assert_eq!(answer["own"]["accounted"].as_u64(), Some(30));
    let promised = answer["promise"]["epsilon"].as_f64().unwrap();
    assert!(answer["own"]["epsilon"]["max"].as_f64().unwrap() <= promised);
    assert!(answer["own"]["epsilon"]["mean"].as_f64().unwrap() < promised);
    for attack in answer["attacks"].as_array().unwrap() {
        for p in attack["points"].as_array().unwrap() {
            let own = p["own_allowed"].as_f64().unwrap();
            assert!(own <= p["allowed"]["value"].as_f64().unwrap() * (1.0 + 1e-9), "{p}");
            assert!(own >= p["rate"].as_f64().unwrap(), "{p}");
            assert!(p["true_positive"]["ci_low"].as_f64().unwrap() <= own, "{attack}: {p}");
        }
    }
    let table = csv(&out.join("records.csv"));
    // others have none
    let at = table.0.iter().position(|c| c == "own_epsilon").unwrap();
    assert_eq!(table.1.iter().filter(|row| row[at].parse::<f64>().is_ok()).count(), 30);
    check_page(&fs::read_to_string(out.join("report.html")).unwrap());
    // the table is gone: said, not an error
    fs::remove_file(model.join("records.csv")).unwrap();
    answered(&[&words[..], &rest].concat());
    let answer = json(&out.join("membership.json"));
    assert!(answer["own"].is_null() && answer["warnings"].to_string().contains("records.csv"), "{answer:#}");
}

/// Networks of dense layers are attacked too; others are refused by the layer.
#[test]
fn the_informed_adversary_attacks_perceptrons() {
    let data = folder(300);
    let out = data.path().join("informed");
    let small = data.path().join("small.json");
    let layers = r#"[{"kind": "flatten"}, {"kind": "dense", "outputs": 16}, {"kind": "tanh"}, {"kind": "dense", "outputs": 3}]"#;
    let file = format!(
        r#"{{"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": {layers}}}"#
    );
    fs::write(&small, &file).unwrap();
    let base =
        ["attack", "--method", "informed", "--data", text(data.path()), "--known", "20", "--learn", "240"];
    let rest = ["--targets", "30", "--epochs", "0", "--sgd", "--lr", "1", "--seed", "1", "--out", text(&out)];
    let with = |network: &str| -> Vec<String> {
        let all = [&base[..], &rest, &["--network", network]].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let words = with(text(&small));
    answered(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let answer = json(&out.join("informed.json"));
    assert_eq!(answer["network"]["parameters"].as_u64(), Some(16 * 65 + 3 * 17));
    assert!(answer["components"].as_u64().unwrap() > 10);
    let error = |k: usize| answer["attacks"][k]["mse"]["value"].as_f64().unwrap();
    assert!(error(1) < 0.2 * error(0), "ridge {} labels {}", error(1), error(0));
    check_page(&fs::read_to_string(out.join("report.html")).unwrap());
    let refuse = |network: &str| {
        let words = with(network);
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let cnn = refuse("cnn-mnist");
    assert!(cnn.contains("--network") && cnn.contains("layer 0 (conv)"), "{cnn}");
    assert!(refuse("nothing.json").contains("neither a file nor one of"));
    let other = data.path().join("other.json");
    fs::write(&other, file.replace(r#""outputs": 3"#, r#""outputs": 5"#)).unwrap();
    assert!(refuse(text(&other)).contains("5 outputs"));
    fs::write(&other, file.replace("[8, 8, 1]", "[9, 8, 1]")).unwrap();
    assert!(refuse(text(&other)).contains("these records are [8, 8, 1]"));
    fs::write(&other, file.replace("softmax-cross-entropy", "squared-error")).unwrap();
    assert!(refuse(text(&other)).contains("its loss is squared-error"));
    let wrong = refused(
        &[
            &["attack", "--method", "membership", "--network", "mlp", "--model", text(data.path())][..],
            &["--data", text(data.path())],
        ]
        .concat(),
    );
    assert!(wrong.contains("--network") && wrong.contains("--method informed"), "{wrong}");
}

/// The informed adversary: without noise the parameters tell the last record, and the page shows it.
#[test]
fn the_informed_adversary_learns_the_last_record() {
    let data = folder(300);
    let out = data.path().join("informed");
    let shown = text(data.path()).to_owned();
    let with = |more: &[&'static str]| {
        let mut all: Vec<&str> = vec!["attack", "--method", "informed", "--data"];
        all.push(&shown);
        all.extend(more);
        all
    };
    let small: [&'static str; 8] = ["--known", "20", "--learn", "240", "--targets", "30", "--epochs", "4"];
    let mut arguments = with(&small);
    arguments.extend(["--sgd", "--lr", "1", "--seed", "1", "--out", text(&out)]);
    let message = String::from_utf8(answered(&arguments).stdout).unwrap();
    assert!(message.contains("label alone") && message.contains("270 models trained at once"), "{message}");
    let answer = json(&out.join("informed.json"));
    compared_with_itself(&out, "informed");
    assert!(answer["for"].as_str().unwrap().contains("the owner of the data only"));
    let error = |k: usize| answer["attacks"][k]["mse"]["value"].as_f64().unwrap();
    assert!(error(1) < 0.8 * error(0), "ridge {} labels {}", error(1), error(0));
    assert!(answer["epsilon"].is_null());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    check_page(&page);
    assert!(page.contains("data:image/png"));
    let mut private = with(&["--known", "20", "--learn", "240", "--targets", "30", "--epochs", "0"]);
    private.extend(["--clip", "1", "--sigma", "5", "--seed", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&answered(&private).stdout).unwrap();
    assert!(json["epsilon"].as_f64().unwrap() > 0.0);
    for (more, flag) in [
        (&["--learn", "20", "--known", "20", "--targets", "5"][..], "--learn"),
        (&["--known", "400"][..], "--learn"),
        (&["--density", "0"][..], "--density"),
        (&["--density", "1.5"][..], "--density"),
        (&["--sigma", "1"][..], "--sigma"),
        (&["--classes", "1"][..], "--classes"),
        (&["--canaries", "5"][..], "--canaries"),
    ] {
        let mut words = with(&[]);
        words.extend(more);
        let message = refused(&words);
        assert!(message.contains(flag), "{message}");
    }
}

/// LPIPS where weights are given, and a clear word where they do not fit.
#[test]
fn lpips_is_measured_with_weights_that_fit() {
    let data = folder(20);
    let (model, out, weights) =
        (data.path().join("model"), data.path().join("attack"), data.path().join("lpips.safetensors"));
    trained(data.path(), "linear", &model);
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let mut file = Tensors::default();
    let convolutions =
        [(64, 3, 11, 0), (192, 64, 5, 3), (384, 192, 3, 6), (256, 384, 3, 8), (256, 256, 3, 10)];
    for (l, (o, i, side, at)) in convolutions.into_iter().enumerate() {
        let weight: Vec<f32> = (0..o * i * side * side).map(|_| 0.05 * rng.normal() as f32).collect();
        file.insert(&format!("features.{at}.weight"), &[o, i, side, side], &weight);
        file.insert(&format!("features.{at}.bias"), &[o], &vec![0.0_f32; o]);
        file.insert(&format!("lin{l}.model.1.weight"), &[1, o, 1, 1], &vec![0.1_f32; o]);
    }
    fs::write(&weights, file.to_bytes().unwrap()).unwrap();
    let base = ["attack", "--method", "inversion", "--model", text(&model), "--data", text(data.path())];
    let rest = ["--records", "3", "--iterations", "5", "--seed", "1", "--format", "csv", "--out", text(&out)];
    answered(&[&base[..], &rest, &["--lpips", text(&weights)]].concat());
    let answer = json(&out.join("inversion.json"));
    let lpips = answer["levels"][0]["lpips"]["value"].as_f64().unwrap();
    assert!(lpips > 0.0 && lpips < 1.0, "{lpips}");
    let table = csv(&out.join("records.csv"));
    let each = column(&table, "lpips_at_sigma_0");
    assert!(each.len() == 3 && each.iter().all(|v| *v >= 0.0));
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("LPIPS"));
    let nothing = data.path().join("nothing.safetensors");
    fs::write(&nothing, Tensors::default().to_bytes().unwrap()).unwrap();
    for (path, says) in [
        (text(&nothing), "there is no array features.0.weight"),
        (text(&model.join("network.json")), "--lpips: "),
        ("missing.safetensors", "--lpips: missing.safetensors"),
    ] {
        let message = refused(&[&base[..], &rest, &["--lpips", path]].concat());
        assert!(message.contains(says), "{path}: {message}");
    }
}
