//! Bad input: an error that names the flag, file or record, and earlier results untouched.

use super::support::*;
use leakscope_net::{Network, Shape, io::Tensors, preset::Preset};
use std::fs;

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
        (&["--clip", "0", "--sigma", "1"][..], "--clip: 0: expected a positive number"),
        (&["--clip", "-1", "--sigma", "1"], "positive"),
        (&["--clip", "1"], "--sigma"),
        (&["--sigma", "0"], "--sigma: 0"),
        (&["--sigma", "1", "--clip-kind", "none"], "no privacy"),
        (&["--track"], "--track: "),
        (&["--epsilon", "0"], "--epsilon: 0"),
        (&["--epsilon", "-1", "--clip", "1"], "--epsilon: -1"),
        (&["--lr", "0"], "--lr: 0"),
        (&["--lr", "nan"], "--lr: NaN"),
        (&["--delta", "2"], "--delta"),
        (&["--momentum", "1"], "--momentum"),
        (&["--freeze", "9"], "there is no layer 9"),
        (
            &["--freeze", "1"],
            "layer 1 (tanh) has no parameters: layers with parameters are 0 (conv), 3 (dense)",
        ),
        (&["--adam", "--momentum", "0.5"], "--momentum"),
        (&["--outputs", "7"], "--outputs: the network file says"),
        (&["--delta", "1e-4"], "--delta: without noise nothing is promised"),
        (&["--pretrain", "nowhere.safetensors"], "nowhere.safetensors"),
        (&["--freeze-smallest", "0.5"], "--pretrain"),
        (&["--normalize", "1"], "MEAN,SD"),
        (&["--resume"], "--resume"),
        (&["--limit", "0"], "--limit"),
        (&["--precision", "tf32"], "--precision: tf32: the processor has none"),
        // one record more among the first would push another out
        (&["--limit", "8", "--rate", "0.5", "--sigma", "1"], "--limit: with --rate and noise"),
    ] {
        let message = train(small, more);
        assert!(message.contains(says), "{more:?}: {message}");
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
            "the label of record 2 is 2: expected a class below the number of outputs, 2",
        ),
        (
            "one.json",
            spec.replace("\"dense\", \"outputs\": 3", "\"dense\", \"outputs\": 1"),
            "a softmax over one output is 1",
        ),
    ] {
        let message = train(text(&file(name, &changed)), &[]);
        assert!(message.contains(says), "{name}: {message}");
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
        (&good, &few, "expected a label for each of 24 records"),
        (&cut, &labels, "cut off"),
        (&huge, &labels, "broken"),
        (&long, &labels, "more than"),
        (&empty, &none, "no records"),
        (&other, &labels, "no idx file"),
        (&labels, &good, "images first"),
    ] {
        let message = refused(&[
            "train",
            "--data",
            text(images),
            text(labels),
            "--network",
            small,
            "--out",
            text(&out),
        ]);
        assert!(message.contains(says), "{images:?}: {message}");
    }
    assert!(
        refused(&["train", "--data", text(&good), "--network", small, "--out", text(&out)])
            .contains("no labels")
    );
    let bare = tempfile::tempdir().unwrap();
    let message = refused(&["train", "--data", text(bare.path()), "--network", small, "--out", text(&out)]);
    assert!(message.contains("train-images-idx3-ubyte"));
    assert!(
        refused(&["train", "--data", "nowhere", "--network", small, "--out", text(&out)]).contains("nowhere")
    );

    // whatever was refused, an earlier run's results are untouched
    assert!(fs::read_dir(&out).map_or(true, |mut d| d.next().is_none()), "a refused run left something");

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
        let message = audit(&out);
        assert!(message.contains(says), "{more:?}: {message}");
    }
    let wide = Network::<f32>::new(Preset::Linear.spec(Shape::Image([9, 9, 1]), 3), 1).unwrap();
    let elsewhere = dir.join("wide");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("network.json"), wide.spec().to_json()).unwrap();
    fs::write(elsewhere.join("model.safetensors"), wide.to_tensors().unwrap().to_bytes().unwrap()).unwrap();
    let message = refused(&["audit", "--model", text(&elsewhere), "--data", &shown]);
    assert!(
        message.contains("records have shape [8, 8, 1], the network was made for [9, 9, 1]"),
        "{message}"
    );
    let message = audit(&["--plis", "--compare", text(&elsewhere)]);
    let (theirs, ours) = ("[9, 9, 1] and 3 outputs", "[8, 8, 1] and 3 outputs");
    let says = format!(
        "--compare: it was made for records of shape {theirs}, the model of --model for records of shape {ours}"
    );
    assert!(message.contains(&says), "{message}");
    // weights that are NaN, or of another version
    let weights = model.join("model.safetensors");
    let original = Tensors::from_bytes(&fs::read(&weights).unwrap()).unwrap();
    let mut broken = original.clone();
    let shape = original.get::<f32>("layers.0.weight").unwrap().0.to_vec();
    broken.insert("layers.0.weight", &shape, &vec![f32::NAN; shape.iter().product()]);
    fs::write(&weights, broken.to_bytes().unwrap()).unwrap();
    assert!(audit(&[]).contains("value 0 of layers.0.weight is NaN, not finite"));
    let mut later = original.clone();
    later.metadata.insert("version".into(), "7".into());
    fs::write(&weights, later.to_bytes().unwrap()).unwrap();
    assert!(audit(&[]).contains("version 7"));
    fs::write(&weights, original.to_bytes().unwrap()).unwrap();
    let training = fs::read_to_string(model.join("training.json")).unwrap();
    fs::write(model.join("training.json"), training.replace("net-training/1", "net-training/2")).unwrap();
    assert!(audit(&[]).contains("leakscope.net-training/2"));

    // and so is everything in the folder of a run that goes wrong later
    let before: Vec<_> =
        ["model.safetensors", "training.json", "report.html", "private/checkpoint.safetensors"]
            .map(|f| (f, fs::read(model.join(f)).unwrap()))
            .to_vec();
    refused(&[
        "train",
        "--data",
        &shown,
        "--network",
        small,
        "--batch",
        "8",
        "--clip",
        "0",
        "--sigma",
        "1",
        "--out",
        text(&model),
    ]);
    refused(&["train", "--data", "nowhere", "--network", small, "--out", text(&model)]);
    for (file, bytes) in before {
        assert!(fs::read(model.join(file)).unwrap() == bytes, "{file} was changed");
    }
}
