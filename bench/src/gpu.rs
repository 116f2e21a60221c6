//! Networks on a GPU: the CNN of Edmunds table B.7 at batch 8,192 with the GELU clip in f32, beside JAX as published on
//! the same card.

use crate::{
    best,
    net::{CLIP, jax, records},
};
use leakscope_net::{
    Backend, Clip, Data, LayerSpec, Loss, NetSpec, Network, Result, Shape,
    engine::{clipped_gradient, gradient},
    leak::{Label, Measure, Plis, Probe, Spectral, Trace, measure},
    preset::preset,
    random::{Generator, Purpose},
    text::Gpt2,
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};
use std::time::Instant;

const BATCH: usize = 8192;

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Ours, then JAX run by `python` where one is named.
pub(crate) fn run(python: Option<&str>) -> Any<()> {
    let backend = Backend::cuda(0)?;
    let Backend::Cuda(card) = backend else { return Err("no GPU".into()) };
    let input = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(preset("cnn-mnist", input, 10)?, 1)?.on(backend)?;
    let data: Data<f32> = records(BATCH, input)?;
    let batch: Vec<usize> = (0..BATCH).collect();
    let n = BATCH as f64;
    println!("{}: {} parameters, batch {BATCH}, f32", card.name(), net.parameter_count());
    let of = |trace, plis, eta| {
        let what = Measure { trace, plis, eta, ..Measure::new(CLIP, 0.5, 1) };
        measure(&net, &data, &batch, &what).map(|_| ())
    };
    let ten = Trace::Estimate { probes: 10, probe: Probe::Rademacher };
    let gradients = rate("clipped gradients", n, || clipped_gradient(&net, &data, &batch, CLIP).map(|_| ()))?;
    rate("PLIS", n, || of(Trace::Skip, Plis::Record, None))?;
    let probes = rate("dFIL, each of 10 probes", 10.0 * n, || of(ten, Plis::Skip, None))?;
    let spectral = Spectral { iterations: 20, tolerance: 1e-15 };
    rate("eta, each of 20 iterations", 20.0 * n, || of(Trace::Skip, Plis::Skip, Some(spectral)))?;
    let Some(python) = python else {
        println!("no Python with JAX was named: nothing to compare with");
        return Ok(());
    };
    let theirs = jax(python, BATCH)?;
    for (name, ours) in [("clipped gradients", gradients), ("dFIL probe", probes)] {
        let Some((_, jax)) = theirs.iter().find(|(theirs, _)| theirs == name) else {
            return Err(format!("the peer did not measure {name}").into());
        };
        println!(
            "{:26} {:12.0} a second: ours is {:.1} times that",
            format!("JAX: {name}"),
            jax.clock,
            ours / jax.clock
        );
    }
    Ok(())
}

/// The private run of the README over records of that size, with accounts of every record at every step.
pub(crate) fn track(steps: u64) -> Any<()> {
    let (backend, input, n) = (Backend::cuda(0)?, Shape::Image([28, 28, 1]), 60_000);
    let data: Data<f32> = records(n, input)?;
    let config = TrainConfig {
        optimizer: Optimizer::Sgd { momentum: 0.0 },
        learning_rate: 0.5,
        weight_decay: 0.0,
        sampling: Sampling::Poisson { rate: 1024.0 / n as f64 },
        privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 2.0 }),
        tracking: Tracking::Every { probes: 2 },
        label: Label::Public,
        delta: 1e-5,
        seed: 1,
        randomness: Randomness::System,
        divisor: None,
        filter: None,
    };
    let net = Network::<f32>::new(preset("cnn-mnist", input, 10)?, 1)?.on(backend)?;
    let clock = Instant::now();
    let mut run = Trainer::new(net, &data, config)?;
    run.step()?;
    let first = clock.elapsed().as_secs_f64();
    let rest = Instant::now();
    for _ in 1..steps {
        run.step()?;
    }
    run.budgets()?;
    let each = rest.elapsed().as_secs_f64() / steps.saturating_sub(1).max(1) as f64;
    println!(
        "accounts of {n} records, 2 probes: {steps} steps in {:.1} s; the first {first:.2} s, each other {:.1} ms",
        clock.elapsed().as_secs_f64(),
        1e3 * each
    );
    Ok(())
}

/// Products of `f32` that this card was measured to make, a second.
const MOST: f64 = 51e12;

/// Larger networks against what the card's arithmetic allows. Counted are the operations of forward and backward passes of
/// training in the open, three times those forward; what norms of records cost comes on top of it.
pub(crate) fn large() -> Any<()> {
    let backend = Backend::cuda(0)?;
    let input = Shape::Image([32, 32, 3]);
    let layers = residual();
    let positions = [(1024, 27, 64), (1024, 576, 64), (1024, 576, 64), (256, 576, 128)];
    let blocks = [(256, 1152, 128); 4];
    let forward: usize = positions.iter().chain(&blocks).map(|(t, k, o)| 2 * t * k * o).sum();
    let net = Network::<f32>::new(NetSpec::sequential(input, layers, Loss::SoftmaxCrossEntropy), 1)?;
    let data: Data<f32> = records(1024, input)?;
    share("residual CNN, 32 x 32 x 3", &net.on(backend)?, &data, forward as f64)?;

    let model = Gpt2::SMALL;
    let (length, texts) = (256, 32);
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let mut draw = || (rng.uniform() * model.vocabulary as f64) as u32;
    let (x, y): (Vec<u32>, Vec<u32>) = (0..texts * length).map(|_| (draw(), draw())).unzip();
    let data = Data::<f32>::tokens(length, x, model.vocabulary, &y)?;
    let (w, t) = (model.width as f64, length as f64);
    let block = 2.0 * 12.0 * w * w * t + 4.0 * t * t * w;
    let forward = model.blocks as f64 * block + 2.0 * w * model.vocabulary as f64 * t;
    share("GPT-2 small, 256 tokens", &Network::<f32>::new(model.network(), 1)?.on(backend)?, &data, forward)
}

/// A residual CNN of 0.8 million parameters.
fn residual() -> Vec<LayerSpec> {
    use LayerSpec as L;
    let block = |c: usize| L::Residual { layers: vec![L::conv(c, 3, 1, 1), L::Relu, L::conv(c, 3, 1, 1)] };
    vec![
        L::conv(64, 3, 1, 1),
        L::Relu,
        block(64),
        L::Relu,
        L::average_pool(2, 2),
        L::conv(128, 3, 1, 1),
        L::Relu,
        block(128),
        L::Relu,
        block(128),
        L::Relu,
        L::average_pool(2, 2),
        L::Flatten,
        L::dense(10),
    ]
}

fn share(name: &str, net: &Network<f32>, data: &Data<f32>, forward: f64) -> Any<()> {
    let all: Vec<usize> = (0..data.len()).collect();
    let n = all.len() as f64;
    println!("{name}: {} parameters, batch {}, f32", net.parameter_count(), all.len());
    for (kind, seconds) in [
        ("plain gradient", best(5, || gradient(net, data, &all).map(|_| ())).0),
        ("clipped gradients", best(5, || clipped_gradient(net, data, &all, CLIP).map(|_| ())).0),
    ] {
        let rate = 3.0 * forward * n / seconds;
        println!(
            "{kind:26} {:12.1} a second, {:5.1} TFLOP/s, {:3.0}% of what f32 allows",
            n / seconds,
            rate / 1e12,
            100.0 * rate / MOST
        );
    }
    Ok(())
}

/// Records a second, the best of twenty runs.
fn rate(name: &str, each: f64, f: impl Fn() -> Result<()>) -> Result<f64> {
    f()?;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let clock = Instant::now();
        f()?;
        best = best.min(clock.elapsed().as_secs_f64());
    }
    println!("{name:26} {:12.0} a second", each / best);
    Ok(each / best)
}
