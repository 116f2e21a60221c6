//! Sequences and tokens: blocks of the decoders people use.

use super::{L, N, case, case_of, conforms};
use crate::{
    Loss, NetSpec, Shape,
    spec::{Rotary, RotaryPairs},
};

/// A block of the decoders people use: norm, attention, residual, norm, gated or plain multilayer perceptron, residual.
fn block(from: &str, width: usize, attention: L, kind: Decoder) -> Vec<N> {
    let n = N::named;
    let reading = N::reading;
    let (norm, groups) = match kind {
        Decoder::Gpt => (L::layer_norm(), width),
        Decoder::Llama => (L::rms_norm(), width / 2),
    };
    let dense = |outputs: usize| L::Dense { outputs, bias: kind == Decoder::Gpt, frozen: false };
    let mut nodes = vec![
        n("norm", norm.clone()),
        n("q", dense(width)),
        reading(n("k", dense(groups)), &["norm"]),
        reading(n("v", dense(groups)), &["norm"]),
        reading(n("mix", attention), &["q", "k", "v"]),
        n("out", dense(width)),
        reading(n("mid", L::Add), &["out", from]),
        n("second", norm),
    ];
    nodes.extend(match kind {
        Decoder::Gpt => vec![n("up", dense(5)), n("act", L::GeluTanh)],
        Decoder::Llama => vec![
            n("gate", dense(5)),
            n("open", L::Silu),
            reading(n("up", dense(5)), &["second"]),
            reading(n("act", L::Multiply), &["open", "up"]),
        ],
    });
    nodes.extend([n("down", dense(width)), reading(n("end", L::Add), &["down", "mid"])]);
    nodes
}

#[derive(Clone, Copy, PartialEq)]
enum Decoder {
    Gpt,
    Llama,
}

#[test]
fn sequences_conform() {
    let ce = Loss::SoftmaxCrossEntropy;
    let dense = |outputs| L::dense(outputs);
    let chains: Vec<(&str, Vec<usize>, Vec<L>, Loss)> = vec![
        ("dense over positions, whole", vec![5, 3], vec![dense(4)], ce),
        ("dense over positions, Gram", vec![3, 6], vec![dense(7), L::Tanh, dense(8)], ce),
        ("squared error over positions", vec![4, 3], vec![dense(4), L::Gelu, dense(2)], Loss::SquaredError),
        (
            "binary losses over positions",
            vec![4, 3],
            vec![dense(4), L::Tanh, dense(2)],
            Loss::BinaryCrossEntropy,
        ),
        (
            "norms over positions",
            vec![4, 3],
            vec![dense(6), L::layer_norm(), dense(6), L::rms_norm(), dense(3)],
            ce,
        ),
        ("group norm over positions", vec![4, 3], vec![dense(6), L::group_norm(2), L::Tanh, dense(3)], ce),
        ("learned positions first", vec![4, 3], vec![L::Positions { frozen: false }, dense(3)], ce),
        (
            "learned positions",
            vec![4, 3],
            vec![dense(4), L::Positions { frozen: false }, L::Tanh, dense(3)],
            ce,
        ),
        ("dropout over positions", vec![4, 3], vec![dense(4), L::Dropout { rate: 0.3 }, dense(3)], ce),
        ("flattened", vec![4, 3], vec![dense(2), L::Tanh, L::Flatten, dense(3)], ce),
    ];
    for (seed, (name, input, layers, loss)) in chains.into_iter().enumerate() {
        conforms(name, case(&input, layers, loss, 100 + seed as u64));
    }
}

#[test]
fn attention_conforms() {
    let of =
        |heads, shared, causal, rotary| L::Attention { heads, key_value_heads: Some(shared), causal, rotary };
    let halves = Some(Rotary { base: 50.0, pairs: RotaryPairs::Halves });
    let neighbours = Some(Rotary { base: 50.0, pairs: RotaryPairs::Neighbours });
    for (seed, (name, attention)) in [
        ("one head", of(1, 1, true, None)),
        ("two heads", of(2, 2, true, None)),
        ("seeing all", of(2, 2, false, None)),
        ("two heads over one", of(2, 1, true, None)),
        ("four heads over two", of(4, 2, true, None)),
        ("rotary, halves", of(2, 2, true, halves)),
        ("rotary, neighbours, shared", of(2, 1, true, neighbours)),
    ]
    .into_iter()
    .enumerate()
    {
        let L::Attention { heads, key_value_heads, .. } = attention else { unreachable!() };
        let narrow = 8 / heads * key_value_heads.unwrap();
        let layers = vec![
            N::named("q", L::dense(8)).reading(&["input"]),
            N::named("k", L::dense(narrow)).reading(&["input"]),
            N::named("v", L::dense(narrow)).reading(&["input"]),
            N::from(attention).reading(&["q", "k", "v"]),
            L::dense(3).into(),
        ];
        let ce = Loss::SoftmaxCrossEntropy;
        conforms(name, case_of(NetSpec::graph(Shape::Sequence([5, 4]), layers, ce), 120 + seed as u64));
    }
}

/// Models of tokens: embeddings, and the decoders people use.
fn models() -> Vec<(&'static str, Vec<N>)> {
    let embedding = |frozen| L::Embedding { vocabulary: 7, outputs: 4, frozen };
    let heads = |rotary, shared| L::Attention { heads: 2, key_value_heads: shared, causal: true, rotary };
    let rotary = Some(Rotary { base: 100.0, pairs: RotaryPairs::Halves });
    let gpt = |frozen| {
        let mut nodes = vec![N::from(embedding(frozen)), N::named("placed", L::Positions { frozen })];
        nodes.extend(block("placed", 4, heads(None, None), Decoder::Gpt));
        nodes.push(L::layer_norm().into());
        nodes
    };
    let llama = || {
        let mut nodes = vec![N::from(embedding(false))];
        nodes.extend(block("input", 4, heads(rotary, Some(1)), Decoder::Llama));
        nodes.push(L::rms_norm().into());
        nodes
    };
    let with = |mut nodes: Vec<N>, last: L| {
        nodes.push(last.into());
        nodes
    };
    let frozen = |mut nodes: Vec<N>| {
        let last = nodes.len() - 1;
        nodes[..last].iter_mut().for_each(|n| n.layer.set_frozen(true));
        nodes
    };
    vec![
        ("embedding", vec![N::from(embedding(false)), L::Tanh.into(), L::dense(7).into()]),
        ("embedding alone", vec![N::from(embedding(false)), L::Tanh.into()]),
        ("tied", vec![N::from(embedding(false)), L::Tanh.into(), L::Unembed.into()]),
        ("tied at once", vec![N::from(embedding(false)), L::Unembed.into()]),
        ("GPT-2", with(gpt(false), L::Unembed)),
        ("GPT-2 with a frozen table", with(gpt(true), L::dense(7))),
        ("GPT-2, tied and frozen", with(gpt(true), L::Unembed)),
        ("Llama", with(llama(), L::dense(7))),
        ("Llama, tied", with(llama(), L::Unembed)),
        ("Llama, the last layer", frozen(with(llama(), L::dense(7)))),
    ]
}

/// Tests of every fourth of them, as of layers.
macro_rules! fourths {
    ($($name:ident: $at:literal),*) => {$(
        #[test]
        fn $name() {
            for (i, (name, layers)) in models().into_iter().enumerate().filter(|(i, _)| i % 4 == $at) {
                let spec = NetSpec::graph(Shape::Tokens { tokens: 5 }, layers, Loss::SoftmaxCrossEntropy);
                conforms(name, case_of(spec, 140 + i as u64));
            }
        }
    )*};
}

fourths!(tokens_conform_1: 0, tokens_conform_2: 1, tokens_conform_3: 2, tokens_conform_4: 3);
