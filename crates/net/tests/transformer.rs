//! Language models against JAX in double precision (`testdata/net/transformer.py`): outputs, losses, gradients and what
//! they give away about the embedded values; and what is refused.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, Error, LayerSpec as L, Loss, NetSpec, Network, NodeSpec, Real, Shape,
    data::NO_LABEL,
    engine::{clipped_gradient, evaluate, predict_data},
    leak::{Label, Measure, Plis, Spectral, Trace, by_position, measure},
    random::{Generator, Purpose},
    spec::Reduction,
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    network: NetSpec,
    weights: BTreeMap<String, Vec<f64>>,
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    tokens: Vec<u32>,
    labels: Vec<u32>,
    logits: Vec<f64>,
    loss: f64,
    norm: f64,
    trace: f64,
    eta: f64,
    plis: Vec<f64>,
    gradient: BTreeMap<String, Vec<f64>>,
}

const LENGTH: usize = 6;
const VOCABULARY: usize = 11;

fn cases() -> BTreeMap<String, Case> {
    serde_json::from_str(include_str!("../../../testdata/net/transformer.json")).unwrap()
}

impl Case {
    fn network<T: Real>(&self) -> Network<T> {
        let mut net = Network::new(self.network.clone(), 1).unwrap();
        let mut theta = vec![T::ZERO; net.parameter_count()];
        let tensors = net.tensors();
        assert_eq!(tensors.len(), self.weights.len());
        for t in tensors {
            let values = &self.weights[&t.name];
            assert_eq!(values.len(), t.shape.iter().product::<usize>(), "{}", t.name);
            theta[t.offset..].iter_mut().zip(values).for_each(|(o, v)| *o = T::from_f64(*v));
        }
        net.set_parameters(&theta).unwrap();
        net
    }

    fn data<T: Real>(&self) -> Data<T> {
        let tokens = self.records.iter().flat_map(|r| r.tokens.clone()).collect();
        let labels: Vec<u32> = self.records.iter().flat_map(|r| r.labels.clone()).collect();
        Data::tokens(LENGTH, tokens, VOCABULARY, &labels).unwrap()
    }
}

fn close(actual: f64, exact: f64, tolerance: f64, subject: &str) {
    assert!(
        (actual - exact).abs() <= tolerance * exact.abs().max(1e-3),
        "{subject}: {actual} against {exact}"
    );
}

fn agrees<T: Real>(tolerance: f64) {
    for (name, case) in cases() {
        let (net, data) = (case.network::<T>(), case.data::<T>());
        let z = predict_data(&net, &data).unwrap();
        let all: Vec<usize> = (0..case.records.len()).collect();
        let request = Measure {
            trace: Trace::Exact,
            eta: Some(Spectral { tolerance: 1e-10, iterations: 60 }),
            plis: Plis::Superpixels(by_position(LENGTH, 8)),
            ..Measure::new(Clip::None, 1.0, 1)
        };
        let leaks = measure(&net, &data, &all, &request).unwrap();
        for (i, (r, leak)) in case.records.iter().zip(&leaks).enumerate() {
            let largest = r.logits.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
            for (a, b) in z.outputs(i).iter().zip(&r.logits) {
                assert!((a - b).abs() <= tolerance * largest, "{name}: a logit of {i}: {a} against {b}");
            }
            close(leak.loss, r.loss, tolerance, &format!("{name}: loss of {i}"));
            close(leak.gradient_norm, r.norm, tolerance, &format!("{name}: gradient norm of {i}"));
            // squares double the error, and the third derivatives of PLIS have more of it
            close(leak.trace.unwrap().value, r.trace, 4.0 * tolerance, &format!("{name}: trace of {i}"));
            close(leak.eta.unwrap().value, r.eta, 4.0 * tolerance, &format!("{name}: eta of {i}"));
            assert_eq!(leak.plis_parts.len(), LENGTH);
            for (a, b) in leak.plis_parts.iter().zip(&r.plis) {
                close(*a, *b, 10.0 * tolerance, &format!("{name}: PLIS of a token of {i}"));
            }
            if !r.gradient.is_empty() {
                let sum = clipped_gradient(&net, &data, &[i], Clip::None).unwrap().sum;
                for t in net.tensors() {
                    for (a, b) in sum[t.offset..].iter().zip(&r.gradient[&t.name]) {
                        let error = (a.to_f64() - b).abs();
                        assert!(error <= tolerance * r.norm, "{name}, {}: {a} against {b}", t.name);
                    }
                }
            }
        }
    }
}

#[test]
fn decoders_agree_with_jax_in_double_precision() {
    agrees::<f64>(1e-11);
}

#[test]
fn decoders_agree_with_jax_in_single_precision() {
    agrees::<f32>(2e-5);
}

/// A class and its one-hot vector are the same label, to the last digit; as are a mask and the absence of a label.
#[test]
fn classes_and_vectors_give_the_same_numbers() {
    let case = &cases()["llama"];
    let (net, data) = (case.network::<f64>(), case.data::<f64>());
    let of =
        |label| Measure { label, trace: Trace::Exact, ..Measure::new(Clip::Gelu { bound: 1.0 }, 0.5, 1) };
    let classes = measure(&net, &data, &[0, 1, 2], &of(Label::Public)).unwrap();
    // a secret label travels as a vector
    let vectors =
        measure(&net, &data, &[0, 1, 2], &Measure { trace: Trace::Skip, ..of(Label::Secret) }).unwrap();
    for (a, b) in classes.iter().zip(&vectors) {
        assert_eq!((a.loss, a.gradient_norm, a.right), (b.loss, b.gradient_norm, b.right));
    }
    // dFIL is over the embedded values: six tokens of eight
    let dfil = classes[0].dfil.unwrap().value;
    assert!((dfil * 48.0 / classes[0].trace.unwrap().value - 1.0).abs() < 1e-12);
}

#[test]
fn the_sum_over_positions_is_as_many_times_the_mean() {
    let case = &cases()["gpt2"];
    let data = case.data::<f64>();
    let mut sum = case.network.clone();
    sum.reduction = Reduction::Sum;
    assert!(
        sum.to_json().contains("\"reduction\": \"sum\"") && !case.network.to_json().contains("reduction")
    );
    let mean = case.network::<f64>();
    let sum = Network::with_parameters(sum, &mean.parameters().unwrap()).unwrap();
    let of = |net| clipped_gradient(net, &data, &[0, 1, 2], Clip::None).unwrap();
    let (mean, sum) = (of(&mean), of(&sum));
    for (i, r) in case.records.iter().enumerate() {
        let counted = r.labels.iter().filter(|l| **l != NO_LABEL).count() as f64;
        close(sum.losses[i], counted * mean.losses[i], 1e-13, "the loss");
        close(sum.norms[i], counted * mean.norms[i], 1e-13, "the norm");
    }
}

/// A network of whole sequences and shorter ones: a record is measured alike in any batch, and positions without a label
/// at the end might as well not be there.
#[test]
fn what_comes_after_the_last_label_does_not_matter() {
    let case = &cases()["gpt2"];
    let net = case.network::<f64>();
    let tokens: Vec<u32> = vec![3, 1, 4, 1, 5, 9];
    let labels: Vec<u32> = vec![1, 4, 1, 5, NO_LABEL, NO_LABEL];
    let long = Data::<f64>::tokens(6, tokens.clone(), VOCABULARY, &labels).unwrap();
    let short = Data::<f64>::tokens(4, tokens[..4].to_vec(), VOCABULARY, &labels[..4]).unwrap();
    let request = Measure { trace: Trace::Exact, ..Measure::new(Clip::None, 1.0, 1) };
    let (a, b) =
        (measure(&net, &long, &[0], &request).unwrap(), measure(&net, &short, &[0], &request).unwrap());
    close(a[0].loss, b[0].loss, 1e-13, "loss");
    close(a[0].gradient_norm, b[0].gradient_norm, 1e-12, "norm");
    close(a[0].trace.unwrap().value, b[0].trace.unwrap().value, 1e-11, "trace");
    assert_eq!(evaluate(&net, &long).unwrap().label_accuracy, evaluate(&net, &short).unwrap().label_accuracy);
}

#[test]
fn private_training_on_tokens_learns_keeps_accounts_and_resumes() {
    let case = &cases()["llama"];
    let mut rng = Generator::new(3, Purpose::Other, 0);
    // every text counts upwards from a random token
    let tokens: Vec<u32> = (0..40)
        .flat_map(|_| {
            let first = rng.below(VOCABULARY as u64) as u32;
            (0..LENGTH as u32).map(move |t| (first + t) % VOCABULARY as u32).collect::<Vec<_>>()
        })
        .collect();
    let labels: Vec<u32> = tokens.iter().map(|t| (t + 1) % VOCABULARY as u32).collect();
    let data = Data::<f32>::tokens(LENGTH, tokens, VOCABULARY, &labels).unwrap();
    let config = TrainConfig {
        privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 0.3 }),
        tracking: Tracking::Every { probes: 2 },
        delta: 1e-3,
        seed: 1,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::adam(), 0.02, Sampling::Poisson { rate: 0.5 })
    };
    let start = case.network::<f32>();
    let before = evaluate(&start, &data).unwrap();
    let mut run = Trainer::new(start, &data, config.clone()).unwrap();
    for _ in 0..30 {
        run.step().unwrap();
    }
    let bytes = run.checkpoint().unwrap();
    let mut again = Trainer::resume(&bytes, &data, config).unwrap();
    for _ in 0..30 {
        assert_eq!(run.step().unwrap(), again.step().unwrap());
    }
    assert_eq!(run.network().parameters().unwrap(), again.network().parameters().unwrap());
    let after = evaluate(run.network(), &data).unwrap();
    assert!(after.loss < 0.7 * before.loss, "{} {}", before.loss, after.loss);
    assert!(run.dfil().unwrap().iter().all(|v| v.is_finite() && *v > 0.0) && run.dfil().unwrap().len() == 40);
}

#[test]
fn what_is_no_text_of_the_model_is_refused() {
    let net = cases()["gpt2"].network::<f64>();
    let check = |data: Result<Data<f64>, Error>| data.and_then(|d| d.check(&net)).unwrap_err().to_string();
    for (data, says) in [
        (Data::tokens(2, vec![1, 11], VOCABULARY, &[1, 2]), "token 11 at position 1 of record 0"),
        (Data::tokens(9, vec![1; 9], VOCABULARY, &[1; 9]), "the shape the network was made for"),
        (Data::tokens(3, vec![1; 3], VOCABULARY, &[1]), "the labels of a record"),
        (Data::tokens(3, vec![1; 4], VOCABULARY, &[1]), "the tokens has length 4"),
        (Data::tokens(2, vec![1; 2], VOCABULARY, &[1, 11]), "a label is 11"),
        (Data::tokens(2, vec![1; 4], VOCABULARY, &[1, 1, NO_LABEL, NO_LABEL]), "none of its positions"),
        (Data::tokens(2, vec![], VOCABULARY, &[]), "no records"),
        (
            Data::new(Shape::Sequence([2, 8]), vec![0.0; 16], VOCABULARY, vec![0.0; 22]),
            "the shape the network",
        ),
        (Data::new(Shape::Tokens { tokens: 2 }, vec![0.0; 2], 2, vec![0.0; 2]), "Data::tokens"),
    ] {
        let error = check(data);
        assert!(error.contains(says), "{error}");
    }
    assert!(leakscope_net::engine::predict(&net, &[0.0; 48]).is_err());
}

#[test]
fn networks_over_tokens_that_make_no_sense_are_refused() {
    let build = |input: Shape, layers: Vec<NodeSpec>| {
        let spec = NetSpec::graph(input, layers, Loss::SoftmaxCrossEntropy);
        Network::<f64>::new(spec, 1).unwrap_err().to_string()
    };
    let tokens = Shape::Tokens { tokens: 4 };
    let embedding = || NodeSpec::from(L::Embedding { vocabulary: 5, outputs: 6, frozen: false });
    let heads = |heads, key_value_heads| L::Attention { heads, key_value_heads, causal: true, rotary: None };
    let rotary = |base| {
        let rotary = Some(leakscope_net::spec::Rotary { base, pairs: Default::default() });
        L::Attention { heads: 2, key_value_heads: None, causal: true, rotary }
    };
    let read = |layer: L| NodeSpec::from(layer).reading(&["input", "input", "input"]);
    for (layers, says) in [
        (vec![L::dense(3).into()], "put an embedding first"),
        (vec![L::Tanh.into(), embedding()], "put an embedding first"),
        (vec![embedding(), embedding()], "it comes first"),
        (vec![embedding(), heads(2, None).into()], "the names of three layers"),
        (vec![embedding(), read(heads(4, None))], "must divide the features"),
        (vec![embedding(), read(heads(2, Some(1)))], "as many positions as queries"),
        (vec![embedding(), read(rotary(100.0))], "an even number of values"),
        (vec![embedding(), read(rotary(-1.0))], "must be positive"),
        (vec![embedding(), L::dense(3).into(), L::Unembed.into()], "as many features as the embedding's"),
    ] {
        let error = build(tokens, layers);
        assert!(error.contains(says), "{error}");
    }
    let vector = Shape::Vector([4]);
    assert!(build(vector, vec![embedding()]).contains("it comes first"));
    assert!(build(vector, vec![L::Unembed.into()]).contains("a network with an embedding"));
    assert!(build(vector, vec![L::Positions { frozen: false }.into()]).contains("a sequence"));
    // part of a table that two layers share
    let mut net = cases()["gpt2"].network::<f64>();
    let mut frozen = vec![false; net.parameter_count()];
    frozen[3] = true;
    assert!(net.freeze(&frozen).unwrap_err().to_string().contains("all of it or nothing"));
}
