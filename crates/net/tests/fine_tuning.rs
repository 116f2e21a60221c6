//! Fine-tuning of language models: clipped gradients of texts and of people against dense ones, what is trained, and models
//! that are stored as they came.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::{clipped_gradient, gradient, losses},
    leak::{Measure, Plis, Trace, measure},
    text::{LanguageModel, Trained, Tuned},
    train::{Filter, Optimizer, Privacy, Sampling, Tracking, TrainConfig, Trainer},
};
use std::path::{Path, PathBuf};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text").join(name)
}

fn model(name: &str, part: Trained) -> LanguageModel<f64> {
    LanguageModel::read(&testdata(name), Tuned { part, rank: 2, seed: 5 }).unwrap()
}

/// Texts of different lengths; some tokens stand in one text several times, and 0 is one of them.
const TEXTS: [&[u32]; 5] = [
    &[3, 17, 9, 250, 17, 0, 3, 17],
    &[40, 41, 42],
    &[7, 0, 7, 0, 7, 0, 7, 0, 7, 0, 7, 300, 301],
    &[100, 9],
    &[5, 6, 5, 6, 9, 33, 0],
];

/// The gradient of one text, dense: of nothing but itself, and nothing clipped.
fn dense(model: &LanguageModel<f64>, text: &[u32]) -> Vec<f64> {
    let alone = model.texts(&[text]).unwrap();
    clipped_gradient(model.network(), &alone, &[0], Clip::None).unwrap().sum
}

fn norm(g: &[f64]) -> f64 {
    g.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    let (far, scale) = (norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()), norm(b));
    assert!(far <= tolerance * scale, "{far} {scale}");
}

fn config(clip: f64, units: f64) -> TrainConfig {
    TrainConfig {
        // no number of double precision is as small as this noise beside a parameter
        privacy: Some(Privacy { clip: Clip::Hard { bound: clip }, sigma: 1e-200 }),
        seed: 3,
        divisor: Some(units),
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.5, Sampling::Poisson { rate: 1.0 })
    }
}

/// Every parameter moved by itself: the definition of a gradient, with nothing of the backward pass in it.
#[test]
fn the_dense_gradient_is_that_of_differences_with_a_tied_table_counted_once() {
    let model = model("gpt2", Trained::All);
    let text = TEXTS[0];
    let (data, g) = (model.texts(&[text]).unwrap(), dense(&model, text));
    let mut net = model.into_network();
    let theta = net.parameters().unwrap();
    assert_eq!(g.len(), theta.len());
    let mut loss_at = |i: usize, h: f64| {
        let mut moved = theta.clone();
        moved[i] += h;
        net.set_parameters(&moved).unwrap();
        losses(&net, &data).unwrap()[0]
    };
    let h = 1e-5;
    // all of the first layers and the table of both ends, and a share of the others
    for i in (0..theta.len()).filter(|i| i % 7 == 0 || *i < 600) {
        let slope = (loss_at(i, h) - loss_at(i, -h)) / (2.0 * h);
        assert!((slope - g[i]).abs() < 1e-8 + 1e-6 * g[i].abs(), "{i}: {slope} {}", g[i]);
    }
}

#[test]
fn one_step_over_texts_of_all_lengths_is_the_sum_of_clipped_dense_gradients() {
    for (name, part) in [
        ("gpt2", Trained::All),
        ("llama2", Trained::All),
        ("llama2.bin", Trained::All),
        ("gpt2", Trained::Last),
        ("llama2", Trained::Adapters),
    ] {
        let model = model(name, part);
        let v = model.vocabulary() as u32;
        let texts: Vec<Vec<u32>> = TEXTS.iter().map(|t| t.iter().map(|id| id % v).collect()).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let data = model.ragged(&texts).unwrap();
        let each: Vec<Vec<f64>> = texts.iter().map(|t| dense(&model, t)).collect();
        // some are clipped and some are not
        let mut sorted: Vec<f64> = each.iter().map(|g| norm(g)).collect();
        sorted.sort_by(f64::total_cmp);
        let c = 0.5 * (sorted[1] + sorted[2]);
        let mut expected = vec![0.0; each[0].len()];
        for g in &each {
            let s = (c / norm(g)).min(1.0);
            expected.iter_mut().zip(g).for_each(|(e, g)| *e += s * g);
        }
        let all: Vec<usize> = (0..texts.len()).collect();
        let batch = clipped_gradient(model.network(), &data, &all, Clip::Hard { bound: c }).unwrap();
        close(&batch.sum, &expected, 1e-10);
        batch.norms.iter().zip(&each).for_each(|(n, g)| assert!((n / norm(g) - 1.0).abs() < 1e-10));
        // and without a clip the plain sum, which keeps no norms
        let plain: Vec<f64> = (0..expected.len()).map(|j| each.iter().map(|g| g[j]).sum()).collect();
        close(&gradient(model.network(), &data, &all).unwrap().sum, &plain, 1e-12);
        let before = model.network().parameters().unwrap();
        let trained = model.network().trained();
        let mut run = Trainer::new(model.into_network(), &data, config(c, 5.0)).unwrap();
        assert_eq!(run.step().unwrap().drawn, 5);
        let after = run.network().parameters().unwrap();
        let moved: Vec<f64> = before.iter().zip(&after).map(|(b, a)| (b - a) * 5.0 / 0.5).collect();
        close(&moved, &expected, 1e-10);
        // what is not trained stays, to the last bit
        assert!(moved.iter().zip(&trained).all(|(m, t)| *t || *m == 0.0), "{name} {part:?}");
        assert!(trained.iter().zip(&expected).any(|(t, e)| *t && *e != 0.0));
    }
}

#[test]
fn people_are_clipped_by_the_mean_over_their_texts() {
    let model = model("gpt2", Trained::All);
    let units = vec![vec![0, 2, 4], vec![3], vec![1]];
    let data = model.ragged(&TEXTS).unwrap().grouped(units.clone()).unwrap();
    let each: Vec<Vec<f64>> = TEXTS.iter().map(|t| dense(&model, t)).collect();
    let means: Vec<Vec<f64>> = units
        .iter()
        .map(|members| {
            let of = |j: usize| members.iter().map(|&i| each[i][j]).sum::<f64>() / members.len() as f64;
            (0..each[0].len()).map(of).collect()
        })
        .collect();
    let c = 0.6 * norm(&means[0]);
    let mut expected = vec![0.0; each[0].len()];
    for g in &means {
        let s = (c / norm(g)).min(1.0);
        expected.iter_mut().zip(g).for_each(|(e, g)| *e += s * g);
    }
    let batch = clipped_gradient(model.network(), &data, &[0, 1, 2], Clip::Hard { bound: c }).unwrap();
    close(&batch.sum, &expected, 1e-10);
    batch.norms.iter().zip(&means).for_each(|(n, g)| assert!((n / norm(g) - 1.0).abs() < 1e-10));
    // who is left out moves the sum by no more than the clip, however many texts are theirs
    let without = clipped_gradient(model.network(), &data, &[1, 2], Clip::Hard { bound: c }).unwrap();
    let theirs: Vec<f64> = batch.sum.iter().zip(&without.sum).map(|(a, b)| a - b).collect();
    assert!(norm(&theirs) <= c * (1.0 + 1e-12));
    // the people are drawn, and their number is what the accountant is told
    let mut run = Trainer::new(model.into_network(), &data, config(c, 3.0)).unwrap();
    assert_eq!(run.step().unwrap().drawn, 3);
    let tracked = TrainConfig { tracking: Tracking::Drawn { probes: 2 }, ..config(c, 3.0) };
    let net = self::model("gpt2", Trained::All).into_network();
    assert!(Trainer::new(net, &data, tracked).unwrap_err().to_string().contains("clipped as one"));
    assert!(clipped_gradient(run.network(), &data, &[3], Clip::None).is_err());
}

#[test]
fn a_filter_by_person_drops_those_who_cannot_pay() {
    let data = || model("gpt2", Trained::Last).ragged(&TEXTS).unwrap();
    let data = data().grouped(vec![vec![0, 2], vec![1, 3], vec![4]]).unwrap();
    let privacy = Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 2.0 });
    let filter = Some(Filter { epsilon: 3.0, budgets: vec![] });
    let config = TrainConfig { privacy, filter, ..config(1.0, 3.0) };
    let mut run = Trainer::new(model("gpt2", Trained::Last).into_network(), &data, config).unwrap();
    for _ in 0..40 {
        run.step().unwrap();
    }
    let dropped = run.dropped();
    assert_eq!(dropped.len(), 3);
    assert!(dropped.iter().all(|d| d.is_some_and(|s| s > 0)), "{dropped:?}");
    assert!(run.account().unwrap().unwrap().epsilon() <= 3.0);
}

#[test]
fn padding_gives_nothing_away_and_is_no_part_of_the_dimension() {
    let model = model("gpt2", Trained::All);
    let data = model.ragged(&TEXTS).unwrap();
    let request = Measure { trace: Trace::Exact, ..Measure::new(Clip::Gelu { bound: 3.0 }, 1.0, 4) };
    let together = measure(model.network(), &data, &[1, 2, 3], &request).unwrap();
    for leak in together {
        let alone = model.texts(&[TEXTS[leak.record]]).unwrap();
        let exact = &measure(model.network(), &alone, &[0], &request).unwrap()[0];
        for (a, b) in [
            (leak.dfil.unwrap().value, exact.dfil.unwrap().value),
            (leak.plis.unwrap(), exact.plis.unwrap()),
            (leak.gradient_norm, exact.gradient_norm),
            (leak.loss, exact.loss),
        ] {
            assert!((a / b - 1.0).abs() < 1e-9, "{}: {a} {b}", leak.record);
        }
    }
    // what speaks of every value needs texts of one length
    let parts = Measure { plis: Plis::Elements, ..request };
    assert!(measure(model.network(), &data, &[1], &parts).is_err());
    // a layer that reads behind a position would read the padding
    let layers = vec![
        L::Embedding { vocabulary: 9, outputs: 4, frozen: false },
        L::Attention { heads: 2, key_value_heads: None, causal: false, rotary: None },
        L::dense(9),
    ];
    let mut nodes: Vec<_> = layers.into_iter().map(leakscope_net::NodeSpec::from).collect();
    nodes[0].name = Some("x".into());
    nodes[1].inputs = vec!["x".into(), "x".into(), "x".into()];
    let spec = NetSpec::graph(Shape::Tokens { tokens: 8 }, nodes, Loss::SoftmaxCrossEntropy);
    let net = Network::<f64>::new(spec, 1).unwrap();
    let ragged = Data::sequences(&[(&[1, 2, 3], &[2, 3, 4]), (&[4], &[0])], 9).unwrap();
    assert!(ragged.check(&net).unwrap_err().to_string().contains("reads behind"));
}

#[test]
fn stored_models_are_read_again_as_they_were_trained() {
    let folder = tempfile::tempdir().unwrap();
    for (name, part) in [
        ("gpt2", Trained::All),
        ("gpt2", Trained::Last),
        ("gpt2", Trained::Adapters),
        ("llama2", Trained::All),
        ("llama2", Trained::Adapters),
        ("llama2.bin", Trained::Last),
        ("llama2.bin", Trained::All),
    ] {
        let model = LanguageModel::<f32>::read(&testdata(name), Tuned { part, rank: 2, seed: 5 }).unwrap();
        let v = model.vocabulary() as u32;
        let text: Vec<u32> = TEXTS[2].iter().map(|id| id % v).collect();
        let data = model.texts(&[&text]).unwrap();
        let (mut net, layout) = model.split();
        let start = losses(&net, &data).unwrap()[0];
        // as training might leave it: what is trained has moved
        let mut theta = net.parameters().unwrap();
        for (i, t) in net.trained().iter().enumerate().filter(|(_, t)| **t).map(|(i, t)| (i, *t)) {
            assert!(t);
            theta[i] += 0.02 * ((i * 37 % 19) as f32 / 19.0 - 0.4);
        }
        net.set_parameters(&theta).unwrap();
        let trained = losses(&net, &data).unwrap()[0];
        assert!((trained - start).abs() > 1e-4, "{name} {part:?}");
        let out = folder.path().join(format!("{name}-{part:?}"));
        std::fs::create_dir(&out).unwrap();
        for file in layout.files(&net).unwrap() {
            std::fs::write(out.join(file.name), file.bytes).unwrap();
        }
        let stored = if name.ends_with(".bin") { out.join(name) } else { out };
        let again = LanguageModel::<f32>::read(&stored, Trained::All).unwrap();
        let read = losses(again.network(), &data).unwrap()[0];
        assert!((read / trained - 1.0).abs() < 2e-6, "{name} {part:?}: {read} {trained}");
    }
}
