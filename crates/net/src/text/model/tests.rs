use super::*;
use crate::{
    Clip,
    engine::clipped_gradient,
    io::{Tensors, read_tensors},
    leak::{Measure, Plis, Trace, by_position, measure},
    text::Tokenizer,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    loss: f64,
    gradient_norm: f64,
    logits: Vec<f64>,
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text").join(name)
}

fn golden() -> BTreeMap<String, Vec<Text>> {
    serde_json::from_str(&std::fs::read_to_string(testdata("models.json")).unwrap()).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(format!("leakscope-model-{name}-{}-{}", unique.0, unique.1));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A copy of a model's folder, to be spoiled.
fn copied(from: &str, name: &str) -> PathBuf {
    let dir = scratch(name);
    for entry in std::fs::read_dir(testdata(from)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    dir
}

fn close(value: f64, exact: f64, tolerance: f64, of: &str) {
    assert!((value - exact).abs() <= tolerance * exact.abs(), "{of}: {value} against {exact}");
}

/// What PyTorch made of the same files (testdata/text/make_models.py).
fn agrees<T: Real>(tolerance: f64) {
    for (file, name) in [("gpt2", "gpt2"), ("llama2", "llama2"), ("llama2.bin", "llama2")] {
        let model = LanguageModel::<T>::read(&testdata(file), Trained::All).unwrap();
        for t in &golden()[name] {
            let of = format!("{file}, {:?}", t.text);
            let data = model.texts(&[&t.ids]).unwrap();
            let batch = clipped_gradient(model.network(), &data, &[0], Clip::None).unwrap();
            close(batch.losses[0], t.loss, tolerance, &of);
            close(batch.norms[0], t.gradient_norm, tolerance, &of);
            let z = predict_data(model.network(), &data).unwrap();
            let last = &z.outputs(0)[z.outputs(0).len() - model.vocabulary()..];
            let largest = t.logits.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
            for (a, b) in last.iter().zip(&t.logits) {
                assert!((a - b).abs() <= tolerance * largest, "{of}: a logit is {a} against {b}");
            }
        }
    }
    assert!(golden().values().all(|texts| texts[0].logits.len() > 400));
}

#[test]
fn models_agree_with_pytorch_in_double_precision() {
    agrees::<f64>(1e-10);
}

#[test]
fn models_agree_with_pytorch_in_single_precision() {
    agrees::<f32>(1e-5);
}

#[test]
fn tokens_of_the_folder_are_those_of_its_model() {
    for (name, texts) in golden() {
        let tokenizer = Tokenizer::read(&testdata(&name)).unwrap();
        for t in texts {
            assert_eq!(tokenizer.encode(&t.text).unwrap(), t.ids, "{name}");
        }
    }
}

/// The gradient of the output layer alone, and from it what a text gives away, by the definition: Σ (π − e_y) hᵀ.
#[test]
fn with_the_last_layer_trained_the_gradient_is_the_output_layers() {
    let t = &golden()["gpt2"][2];
    let all = LanguageModel::<f64>::read(&testdata("gpt2"), Trained::All).unwrap();
    let last = LanguageModel::<f64>::read(&testdata("gpt2"), Trained::Last).unwrap();
    let data = last.texts(&[&t.ids]).unwrap();
    let (v, d) = (last.vocabulary(), last.width());
    assert_eq!(last.network().trained().iter().filter(|t| **t).count(), v * d);
    let (a, b) = (predict_data(all.network(), &data).unwrap(), predict_data(last.network(), &data).unwrap());
    for (a, b) in a.outputs(0).iter().zip(b.outputs(0)) {
        assert!((a - b).abs() < 1e-12);
    }
    // finite differences of the loss in one entry of the output layer
    let batch = clipped_gradient(last.network(), &data, &[0], Clip::None).unwrap();
    let theta = last.network().parameters().unwrap();
    let entry = theta.len() - v * d + t.ids[1] as usize * d + 3;
    let loss = |by: f64| {
        let mut theta = theta.clone();
        theta[entry] += by;
        let net = Network::with_parameters(last.network().spec().clone(), &theta).unwrap();
        clipped_gradient(&net, &data, &[0], Clip::None).unwrap().losses[0]
    };
    let slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
    assert!((slope - batch.sum[entry]).abs() < 1e-8 && slope.abs() > 1e-6, "{slope} {}", batch.sum[entry]);
    assert!(batch.sum[..theta.len() - v * d].iter().all(|g| *g == 0.0));
    // dFIL and PLIS of every token are measured
    let length = t.ids.len() - 1;
    let request = Measure {
        trace: Trace::Exact,
        plis: Plis::Superpixels(by_position(length, d)),
        ..Measure::new(Clip::None, 1.0, 1)
    };
    let leak = &measure(last.network(), &data, &[0], &request).unwrap()[0];
    assert!(leak.dfil.unwrap().value > 0.0);
    assert!(leak.plis_parts.len() == length && leak.plis_parts.iter().all(|p| *p > 0.0));
}

/// Without an output layer of its own, a llama2.c file is that of a model whose output layer is its embedding.
#[test]
fn a_checkpoint_with_a_shared_table_has_the_embeddings() {
    let dir = scratch("tied");
    let bytes = std::fs::read(testdata("llama2.bin")).unwrap();
    let read = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.join(name), bytes).unwrap();
        LanguageModel::<f64>::read(&dir.join(name), Trained::All)
    };
    let own = LanguageModel::<f64>::read(&testdata("llama2.bin"), Trained::All).unwrap();
    let table = own.vocabulary() * own.width() * 4;
    let mut tied = bytes[..bytes.len() - table].to_vec();
    tied[20..24].copy_from_slice(&(own.vocabulary() as i32).to_le_bytes());
    let mut copy = bytes.clone();
    let end = copy.len();
    copy.copy_within(28..28 + table, end - table);
    let (tied, copy) = (read("tied.bin", &tied).unwrap(), read("copy.bin", &copy).unwrap());
    assert_eq!(tied.network().parameter_count() + table / 4, copy.network().parameter_count());
    let data = tied.texts(&[&golden()["llama2"][1].ids]).unwrap();
    let of = |m: &LanguageModel<f64>| predict_data(m.network(), &data).unwrap().outputs(0).to_vec();
    for (a, b) in of(&tied).iter().zip(of(&copy)) {
        assert!((a - b).abs() < 1e-12);
    }

    let with = |at: usize, value: i32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    for (bytes, says) in [
        (bytes[..20].to_vec(), "shorter than the header"),
        (bytes[..bytes.len() - 4].to_vec(), "bytes of weights"),
        (with(0, -8), "the width is"),
        (with(0, 14), "3 heads do not divide a width of 14"),
        (with(0, i32::MAX - 1), "more than fits bytes of weights"),
        (with(4, i32::MAX), "bytes of weights"),
        (with(8, i32::MAX), "number of blocks"),
        (with(12, 0), "number of heads is 0"),
        (with(16, 2), "do not divide 3 heads"),
        (with(20, i32::MIN), "the vocabulary is"),
        (with(0, 0x616b_3432), "version 0"),
    ] {
        let error = read("bad.bin", &bytes).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("bad.bin"), "{error}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// Files of older models: names without the prefix, the base of the angles as `rope_theta`.
#[test]
fn other_spellings_are_read() {
    let dir = copied("gpt2", "prefix");
    let file = dir.join("model.safetensors");
    let tensors = read_tensors(&file).unwrap();
    let mut plain = Tensors::default();
    for name in tensors.names() {
        let (shape, values) = tensors.get::<f32>(name).unwrap();
        plain.insert(name.strip_prefix("transformer.").unwrap(), shape, &values);
    }
    std::fs::write(&file, plain.to_bytes().unwrap()).unwrap();
    let parameters = |dir: &Path| {
        LanguageModel::<f32>::read(dir, Trained::All).unwrap().into_network().parameters().unwrap()
    };
    assert_eq!(parameters(&dir), parameters(&testdata("gpt2")));
    std::fs::remove_dir_all(dir).unwrap();

    let dir = copied("llama2", "theta");
    let config = dir.join("config.json");
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    let map = value.as_object_mut().unwrap();
    map.remove("rope_parameters");
    map.insert("rope_theta".to_owned(), 10_000.0.into());
    map.insert("rope_scaling".to_owned(), serde_json::Value::Null);
    std::fs::write(&config, value.to_string()).unwrap();
    let (a, b) = (
        LanguageModel::<f32>::read(&dir, Trained::All).unwrap(),
        LanguageModel::<f32>::read(&testdata("llama2"), Trained::All).unwrap(),
    );
    assert_eq!(a.network().spec(), b.network().spec());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn folders_that_are_no_model_are_refused_with_the_file_and_the_tensor() {
    let changed = |from: &str, field: &str, value: serde_json::Value| {
        let dir = copied(from, field);
        let config = dir.join("config.json");
        let mut json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
        json[field] = value;
        std::fs::write(config, json.to_string()).unwrap();
        dir
    };
    let without = |from: &str, file: &str| {
        let dir = copied(from, file);
        std::fs::remove_file(dir.join(file)).unwrap();
        dir
    };
    let shard = "model-00003-of-00003.safetensors";
    let spoiled = |file: &str, text: &str, name: &str| {
        let dir = copied("llama2", name);
        std::fs::write(dir.join(file), text).unwrap();
        dir
    };
    let index = "model.safetensors.index.json";
    for (dir, file, says) in [
        (
            changed("gpt2", "model_type", "bert".into()),
            "config.json",
            "`bert`, an architecture that is not known",
        ),
        (changed("gpt2", "n_embd", "wide".into()), "config.json", "not the configuration"),
        (changed("gpt2", "n_layer", 0.into()), "config.json", "number of blocks is 0"),
        (changed("gpt2", "n_layer", 3.into()), "model.safetensors", "no tensor transformer.h.2.ln_1.weight"),
        (changed("gpt2", "n_head", 5.into()), "config.json", "5 heads do not divide a width of 12"),
        (changed("gpt2", "activation_function", "mish".into()), "config.json", "`mish`"),
        (changed("gpt2", "scale_attn_weights", false.into()), "config.json", "scale_attn_weights is false"),
        (changed("gpt2", "n_positions", 49.into()), "model.safetensors", "wpe.weight has shape [48, 12]"),
        (
            changed("gpt2", "vocab_size", 2_000_000_000.into()),
            "model.safetensors",
            "wte.weight has shape [420, 12]",
        ),
        (
            changed("gpt2", "tie_word_embeddings", false.into()),
            "model.safetensors",
            "no tensor lm_head.weight",
        ),
        (changed("llama2", "head_dim", 3.into()), "config.json", "an even number"),
        (changed("llama2", "hidden_act", "gelu".into()), "config.json", "`gelu`"),
        (changed("llama2", "rope_scaling", serde_json::json!({"type": "linear"})), "config.json", "`linear`"),
        (changed("llama2", "intermediate_size", 21.into()), shard, "gate_proj.weight has shape [20, 12]"),
        (
            changed("llama2", "attention_bias", true.into()),
            index,
            "no tensor model.layers.0.self_attn.q_proj.bias",
        ),
        (without("gpt2", "config.json"), "config", "no config.json"),
        (without("gpt2", "model.safetensors"), "model", "no weights in this folder"),
        (without("llama2", shard), shard, "missing"),
        (spoiled(index, "{}", "index"), index, "no index of shards"),
        (spoiled(index, r#"{"weight_map": {"a": "../b"}}"#, "outside"), index, "`../b`"),
        (spoiled(shard, "cut", "cut"), shard, "safetensors"),
        (spoiled("config.json", "{", "brace"), "config.json", "no JSON"),
    ] {
        let error = LanguageModel::<f32>::read(&dir, Trained::All).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(file), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
    }
    let error = LanguageModel::<f32>::read(Path::new("nowhere.bin"), Trained::All).unwrap_err().to_string();
    assert!(error.contains("nowhere.bin: cannot read it"), "{error}");
}

#[test]
fn texts_that_the_model_cannot_take_are_refused() {
    let model = LanguageModel::<f32>::read(&testdata("gpt2"), Trained::All).unwrap();
    for (texts, says) in [
        (&[][..], "no records"),
        (&[&[][..]][..], "number of tokens of a text is 0"),
        (&[&[1][..]], "number of tokens of a text is 1"),
        (&[&[1; 49]], "number of tokens of a text is 49"),
        (&[&[1, 2], &[1, 420]], "token 420 at position 1 of record 1"),
        (&[&[1, 2], &[1, 2, 3]], "a text among others of one length"),
    ] {
        let error = model.texts(texts).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(model.texts(&[&[1; 48]]).unwrap().len(), 1);
    assert!(model.continuation(&[], 3).is_err() && model.continuation(&[420], 3).is_err());
    assert_eq!(model.continuation(&[1; 46], 9).unwrap().len(), 2);
    assert_eq!(model.continuation(&[1; 46], 0).unwrap(), Vec::<u32>::new());
}

/// A model that was trained on stories: 260,000 parameters, tokeniser of 512.
#[test]
#[ignore = "needs LEAKSCOPE_DATA with lm/stories260K.bin"]
fn the_model_of_stories_tells_one() {
    let lm = PathBuf::from(std::env::var("LEAKSCOPE_DATA").unwrap()).join("lm");
    let model = LanguageModel::<f32>::read(&lm.join("stories260K.bin"), Trained::All).unwrap();
    let tokenizer = Tokenizer::read(&lm.join("tok512.bin")).unwrap();
    assert_eq!((model.vocabulary(), tokenizer.len(), model.context()), (512, 512, 512));
    let mut ids = tokenizer.encode("Once upon a time").unwrap();
    ids.extend(model.continuation(&ids, 60).unwrap());
    let story = tokenizer.decode(&ids).unwrap();
    println!("{story}");
    assert!(story.contains("there was a little girl named Lily"), "{story}");
    // English costs it about a nat a token, letters in no order far more
    let loss = |text: &str| {
        let ids = tokenizer.encode(text).unwrap();
        let data = model.texts(&[&ids]).unwrap();
        clipped_gradient(model.network(), &data, &[0], Clip::None).unwrap().losses[0]
    };
    let (story, noise) =
        (loss("Lily and Tom went to the park to play."), loss("qx vzzk jjw pq, wqk zx vvv kqj."));
    assert!(story < 2.5 && noise > story + 2.0, "{story} {noise}");
}

/// Adapters change nothing at first; their gradients are those that finite differences of the loss give.
#[test]
fn adapters_start_as_nothing_and_have_their_gradients() {
    for file in ["gpt2", "llama2"] {
        let all = LanguageModel::<f64>::read(&testdata(file), Trained::All).unwrap();
        let tuned = Tuned { part: Trained::Adapters, rank: 3, seed: 5 };
        let adapted = LanguageModel::<f64>::read(&testdata(file), tuned).unwrap();
        let text = &golden()[file][0].ids;
        let data = all.texts(&[text]).unwrap();
        let loss = |net: &Network<f64>| crate::engine::evaluate(net, &data).unwrap().loss;
        close(loss(adapted.network()), loss(all.network()), 1e-12, file);
        let net = adapted.network();
        let theta = net.parameters().unwrap();
        let trained = net.trained();
        let count = trained.iter().filter(|t| **t).count();
        // the base is all there is of the plain model, but for the table that an output layer shares
        assert_eq!(theta.len() - count, all.network().parameter_count(), "{file}");
        let g = clipped_gradient(net, &data, &[0], Clip::None).unwrap();
        assert!(g.sum.iter().zip(&trained).all(|(g, t)| *t || *g == 0.0));
        // away from the start, where both factors have gradients
        let mut random = crate::random::Generator::new(2, crate::random::Purpose::Other, 0);
        let moved: Vec<f64> = theta
            .iter()
            .zip(&trained)
            .map(|(v, t)| if *t { v + 0.3 * random.normal() } else { *v })
            .collect();
        let at = |theta: &[f64]| Network::with_parameters(net.spec().clone(), theta).unwrap();
        let g = clipped_gradient(&at(&moved), &data, &[0], Clip::None).unwrap();
        let u: Vec<f64> = trained.iter().map(|t| if *t { random.normal() } else { 0.0 }).collect();
        let along: f64 = g.sum.iter().zip(&u).map(|(g, u)| g * u).sum();
        let step = |h: f64| loss(&at(&moved.iter().zip(&u).map(|(m, u)| m + h * u).collect::<Vec<_>>()));
        let h = 1e-5;
        close(along, (step(h) - step(-h)) / (2.0 * h), 1e-6, file);
        let norm: f64 = g.sum.iter().map(|g| g * g).sum::<f64>().sqrt();
        close(g.norms[0], norm, 1e-10, file);
    }
    let none = Tuned { part: Trained::Adapters, rank: 0, seed: 0 };
    assert!(LanguageModel::<f32>::read(&testdata("gpt2"), none).unwrap_err().to_string().contains("rank"));
}
