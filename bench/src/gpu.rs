//! Networks on a GPU: the CNN of Edmunds table B.7 at batch 8,192 with the GELU clip in f32, beside JAX as published on
//! the same card.

use crate::net::{CLIP, jax, peer, records};
use leakscope_net::{
    Backend, Clip, Data, LayerSpec, Loss, NetSpec, Network, Result, Shape,
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, Spectral, Trace, measure},
    preset::Preset,
    random::{Generator, Purpose},
    text::Gpt2,
    train::{Optimizer, Privacy, Sampling, Tracking, TrainConfig, Trainer},
};
use std::time::Instant;

const BATCH: usize = 8192;

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Ours, then JAX run by `python` where one is named.
pub(crate) fn run(python: Option<&str>) -> Any<()> {
    let seed = Seed::new()?;
    let gradients = seed.rate(Work::Gradients)?;
    seed.rate(Work::Plis)?;
    let probes = seed.rate(Work::Probes)?;
    seed.rate(Work::Eta)?;
    let Some(python) = python else {
        println!("no Python with JAX and PyTorch was named: nothing to compare with");
        return Ok(());
    };
    let of_jax = jax(python, BATCH)?;
    let of_torch = peer(python, include_str!("../gpu_torch.py"), "torch", BATCH)?;
    let all = of_jax.iter().map(|r| ("JAX", r)).chain(of_torch.iter().map(|r| ("PyTorch", r)));
    for (peer, (name, rate)) in all {
        let ours = if name.starts_with("clipped gradients") { gradients } else { probes };
        println!(
            "{:44} {:12.0} a second: ours is {:.1} times that",
            format!("{peer}: {name}"),
            rate.clock,
            ours / rate.clock
        );
    }
    Ok(())
}

/// Small batches, where the host's part shows: private steps by Poisson sampling, and measures of few records.
pub(crate) fn small() -> Any<()> {
    let (backend, input) = (Backend::cuda(0)?, Shape::Image([28, 28, 1]));
    let spec = Preset::CnnMnist.spec(input, 10);
    let data: Data<f32> = records(60_000, input)?;
    let privacy = Some(Privacy { clip: CLIP, sigma: 1.0 });
    for batch in [64, 256, 1024, 4096] {
        let sampling = Sampling::Poisson { rate: f64::from(batch) / 60_000.0 };
        let net = Network::<f32>::new(spec.clone(), 1)?.on(backend)?;
        let mut run = Trainer::new(net, &data, TrainConfig { sampling, ..training(privacy) })?;
        (0..20).try_for_each(|_| run.step().map(|_| ()))?;
        let (clock, steps) = (Instant::now(), 200);
        (0..steps).try_for_each(|_| run.step().map(|_| ()))?;
        let each = clock.elapsed().as_secs_f64() / f64::from(steps);
        println!("a private step of about {batch:5} records {:8.3} ms", 1e3 * each);
    }
    let net = Network::<f32>::new(spec, 1)?.on(backend)?;
    let base = Measure { trace: Trace::Skip, plis: Plis::Skip, ..Measure::new(CLIP, 0.5, 1) };
    let probes = |probes| Trace::Estimate { probes, probe: Probe::Rademacher };
    let kinds = [
        ("exact trace", Measure { trace: Trace::Exact, ..base.clone() }),
        ("ten probes", Measure { trace: probes(10), ..base.clone() }),
        ("a hundred probes", Measure { trace: probes(100), ..base.clone() }),
        ("eta to 1e-4", Measure { eta: Some(Spectral::default()), ..base.clone() }),
        ("PLIS", Measure { plis: Plis::Record, ..base }),
    ];
    for (name, measures) in kinds {
        for n in [8, 128, 1024, 4096] {
            let some: Vec<usize> = (0..n).collect();
            let (best, done) = crate::best(4, || measure(&net, &data, &some, &measures).map(|_| ()));
            done?;
            println!("{name:18} of {n:5} records {:10.3} ms", 1e3 * best);
        }
    }
    Ok(())
}

/// Records that stay on the card against such that are copied to it in pieces, whenever they are needed.
pub(crate) fn streamed(gigabytes: f64) -> Any<()> {
    let (backend, input) = (Backend::cuda(0)?, Shape::Image([28, 28, 1]));
    let n = (gigabytes * 1e9 / (4.0 * input.len() as f64)) as usize;
    let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?.on(backend)?;
    let mut data: Data<f32> = records(n, input)?;
    let all: Vec<usize> = (0..n).collect();
    let measures = Measure { trace: Trace::Skip, ..Measure::new(CLIP, 0.5, 1) };
    for (name, most) in [("resident", usize::MAX), ("in pieces", 0)] {
        data.keep_at_most(most);
        clipped_gradient(&net, &data, &all[..20_000.min(n)], CLIP)?;
        let (gradient, done) = crate::best(3, || clipped_gradient(&net, &data, &all, CLIP).map(|_| ()));
        done?;
        let (plis, done) = crate::best(3, || measure(&net, &data, &all, &measures).map(|_| ()));
        done?;
        let rate = |seconds: f64| n as f64 * 4.0 * input.len() as f64 / seconds / 1e9;
        println!(
            "{n} records, {name:10} clipped gradients {:8.1} ms ({:5.1} GB/s), PLIS {:8.1} ms ({:5.1} GB/s)",
            1e3 * gradient,
            rate(gradient),
            1e3 * plis,
            rate(plis)
        );
    }
    Ok(())
}

/// What the seed CNN is measured at.
#[derive(Debug, Clone, Copy)]
enum Work {
    Gradients,
    Plis,
    Probes,
    Eta,
}

impl Work {
    const ALL: [Self; 4] = [Self::Gradients, Self::Plis, Self::Probes, Self::Eta];

    fn name(self) -> &'static str {
        match self {
            Self::Gradients => "clipped gradients",
            Self::Plis => "PLIS",
            Self::Probes => "dFIL, each of 10 probes",
            Self::Eta => "eta, each of 20 iterations",
        }
    }

    /// How often a record counts.
    fn times(self) -> f64 {
        match self {
            Self::Gradients | Self::Plis => 1.0,
            Self::Probes => 10.0,
            Self::Eta => 20.0,
        }
    }
}

/// The seed CNN on the card, and records for it.
struct Seed {
    net: Network<f32>,
    data: Data<f32>,
    batch: Vec<usize>,
}

impl Seed {
    fn new() -> Any<Self> {
        let backend = Backend::cuda(0)?;
        let Backend::Cuda(card) = backend else { return Err("no GPU".into()) };
        let input = Shape::Image([28, 28, 1]);
        let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?.on(backend)?;
        println!("{}: {} parameters, batch {BATCH}, f32", card.name(), net.parameter_count());
        Ok(Self { net, data: records(BATCH, input)?, batch: (0..BATCH).collect() })
    }

    fn make(&self, work: Work) -> Result<()> {
        let (net, data, batch) = (&self.net, &self.data, &self.batch);
        let (mut trace, mut plis, mut eta) = (Trace::Skip, Plis::Skip, None);
        match work {
            Work::Gradients => return clipped_gradient(net, data, batch, CLIP).map(|_| ()),
            Work::Plis => plis = Plis::Record,
            Work::Probes => trace = Trace::Estimate { probes: 10, probe: Probe::Rademacher },
            Work::Eta => eta = Some(Spectral { iterations: 20, tolerance: 1e-15 }),
        }
        let measures = Measure { trace, plis, eta, ..Measure::new(CLIP, 0.5, 1) };
        measure(net, data, batch, &measures).map(|_| ())
    }

    /// Records a second, the best of twenty runs.
    fn rate(&self, work: Work) -> Result<f64> {
        self.make(work)?;
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let clock = Instant::now();
            self.make(work)?;
            best = best.min(clock.elapsed().as_secs_f64());
        }
        let rate = work.times() * BATCH as f64 / best;
        println!("{:26} {rate:12.0} a second", work.name());
        Ok(rate)
    }
}

/// Each kind of work alone for so many seconds, for a profiler or for LEAKSCOPE_CUDA_TIMES=1.
pub(crate) fn profile(seconds: f64) -> Any<()> {
    let seed = Seed::new()?;
    for work in Work::ALL {
        eprintln!("--- {}", work.name());
        let (clock, mut runs) = (Instant::now(), 0);
        while clock.elapsed().as_secs_f64() < seconds {
            seed.make(work)?;
            runs += 1;
        }
        println!("{}: {:.0} us each", work.name(), 1e6 * clock.elapsed().as_secs_f64() / f64::from(runs));
    }
    Ok(())
}

/// The private run of the README over records of that size, with accounts of every record at every step.
pub(crate) fn track(steps: u64) -> Any<()> {
    let (backend, input, n) = (Backend::cuda(0)?, Shape::Image([28, 28, 1]), 60_000);
    let data: Data<f32> = records(n, input)?;
    let config = TrainConfig {
        learning_rate: 0.5,
        sampling: Sampling::Poisson { rate: 1024.0 / n as f64 },
        tracking: Tracking::Every { probes: 2 },
        ..training(Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 2.0 }))
    };
    let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?.on(backend)?;
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

/// Products of `f32` and of tf32 that this card was measured to make, a second.
const MOST: f64 = 51e12;
const MOST_SHORT: f64 = 393e12;

/// Larger networks against what the card's arithmetic allows: whole steps of training, in the open and private. Counted are the
/// operations of forward and backward passes, three times those forward; what norms of records cost comes on top of it.
pub(crate) fn large() -> Any<()> {
    let backend = Backend::cuda(0)?;
    let input = Shape::Image([32, 32, 3]);
    let positions = [(1024, 27, 64), (1024, 576, 64), (1024, 576, 64), (256, 576, 128)];
    let blocks = [(256, 1152, 128); 4];
    let forward: usize = positions.iter().chain(&blocks).map(|(t, k, o)| 2 * t * k * o).sum();
    let spec = NetSpec::sequential(input, residual(), Loss::SoftmaxCrossEntropy);
    let data: Data<f32> = records(1024, input)?;
    share("residual CNN, 32 x 32 x 3", &spec, backend, &data, forward as f64)?;

    let model = Gpt2::SMALL;
    let (length, texts) = (256, 32);
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let mut draw = || (rng.uniform() * model.vocabulary as f64) as u32;
    let (x, y): (Vec<u32>, Vec<u32>) = (0..texts * length).map(|_| (draw(), draw())).unzip();
    let data = Data::<f32>::tokens(length, x, model.vocabulary, &y)?;
    let (w, t) = (model.width as f64, length as f64);
    let block = 2.0 * 12.0 * w * w * t + 4.0 * t * t * w;
    let forward = model.blocks as f64 * block + 2.0 * w * model.vocabulary as f64 * t;
    share("GPT-2 small, 256 tokens", &model.network(), backend, &data, forward)
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

fn share(name: &str, spec: &NetSpec, backend: Backend, data: &Data<f32>, forward: f64) -> Any<()> {
    let n = data.len() as f64;
    let privacy = Some(Privacy { clip: CLIP, sigma: 1.0 });
    let short = backend.in_tf32()?;
    for (kind, privacy, backend, most) in [
        ("a step in the open", None, backend, MOST),
        ("a private step", privacy, backend, MOST),
        ("in the open, in tf32", None, short, MOST_SHORT),
        ("a private step, in tf32", privacy, short, MOST_SHORT),
    ] {
        let net = Network::<f32>::new(spec.clone(), 1)?.on(backend)?;
        if privacy.is_none() && most == MOST {
            println!("{name}: {} parameters, batch {}, f32", net.parameter_count(), data.len());
        }
        let config = TrainConfig { sampling: Sampling::Shuffle { batch: data.len() }, ..training(privacy) };
        let mut run = Trainer::new(net, data, config)?;
        eprintln!("--- {name}, {kind}");
        let mut best = f64::INFINITY;
        for _ in 0..6 {
            let clock = Instant::now();
            run.step()?;
            best = best.min(clock.elapsed().as_secs_f64());
        }
        let rate = 3.0 * forward * n / best;
        println!(
            "{kind:26} {:8.1} ms, {:10.1} records a second, {:5.1} TFLOP/s, {:3.0}% of what its products allow",
            1e3 * best,
            n / best,
            rate / 1e12,
            100.0 * rate / most
        );
    }
    Ok(())
}

/// Plain descent by small steps.
fn training(privacy: Option<Privacy>) -> TrainConfig {
    TrainConfig {
        privacy,
        seed: 1,
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 1e-6, Sampling::Poisson { rate: 1.0 })
    }
}
