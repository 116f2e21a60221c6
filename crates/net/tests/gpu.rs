//! A GPU gives the numbers of the processor. Without one these tests say so and pass; LEAKSCOPE_REQUIRE_GPU=1 makes that a
//! failure. The conformance suite of the layers runs on a GPU too where there is one.

#![allow(clippy::unwrap_used)] // a test may fail where it stands

use leakscope_net::{
    Backend, Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::{clipped_gradient, evaluate, pullback},
    leak::{Measure, Plis, Probe, RecordLeak, Spectral, Trace, measure},
    preset::Preset,
    random::{Generator, Purpose},
    text::Gpt2,
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

fn gpu() -> Option<Backend> {
    match Backend::cuda(0) {
        Ok(backend) => Some(backend),
        Err(e) => {
            assert!(std::env::var_os("LEAKSCOPE_REQUIRE_GPU").is_none(), "a GPU is required: {e}");
            eprintln!("SKIPPED: {e}");
            None
        }
    }
}

fn spec() -> NetSpec {
    Preset::CnnMnist.spec(Shape::Image([28, 28, 1]), 10)
}

macro_rules! data {
    ($t:ty, $n:expr) => {{
        let mut rng = Generator::new(1, Purpose::Other, 0);
        let x: Vec<$t> = (0..$n * 784).map(|_| rng.uniform() as $t).collect();
        let labels: Vec<u32> = (0..$n as u32).map(|i| i % 10).collect();
        Data::classes(Shape::Image([28, 28, 1]), x, 10, &labels).unwrap()
    }};
}

/// Relative difference of two arrays, in the largest value of the second.
fn off(actual: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(actual.len(), expected.len());
    let size = expected.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
    actual.iter().zip(expected).fold(0.0_f64, |a, (f, e)| a.max((f - e).abs())) / size.max(1e-300)
}

const CLIP: Clip = Clip::Gelu { bound: 0.7 };

/// Sums in another order: about √n ulps of f64 over a few thousand terms; f32 by the same count.
const TOLERANCE: [f64; 2] = [1e-10, 2e-4];

macro_rules! parity {
    ($name:ident, $t:ty, $tolerance:expr) => {
        #[test]
        fn $name() {
            let Some(gpu) = gpu() else { return };
            let near = Network::<$t>::new(spec(), 3).unwrap();
            let far = Network::<$t>::new(spec(), 3).unwrap().on(gpu).unwrap();
            let data: Data<$t> = data!($t, 40);
            let some: Vec<usize> = (3..37).collect();
            let wide = |v: &[$t]| v.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
            let [a, b] = [&far, &near].map(|net| clipped_gradient(net, &data, &some, CLIP).unwrap());
            assert!(off(&wide(&a.sum), &wide(&b.sum)) < $tolerance, "clipped gradients");
            assert!(off(&a.norms, &b.norms) < $tolerance && off(&a.losses, &b.losses) < $tolerance);
            let [a, b] = [&far, &near].map(|net| evaluate(net, &data).unwrap());
            assert!((a.loss - b.loss).abs() < $tolerance * b.loss && a.accuracy == b.accuracy);
            let all = Measure {
                // so many that the pass is captured and repeated
                trace: Trace::Estimate { probes: 40, probe: Probe::Rademacher },
                plis: Plis::Elements,
                eta: Some(Spectral { iterations: 60, tolerance: 1e-6 }),
                ..Measure::new(CLIP, 0.5, 1)
            };
            let exact = Measure { trace: Trace::Exact, plis: Plis::Skip, eta: None, ..all.clone() };
            for (request, records) in [(&all, &some[..]), (&exact, &some[..3])] {
                let [a, b] = [&far, &near].map(|net| measure(net, &data, records, request).unwrap());
                let each = |rows: &[RecordLeak], f: &dyn Fn(&RecordLeak) -> Vec<f64>| {
                    rows.iter().flat_map(|r| f(r)).collect::<Vec<f64>>()
                };
                let values: [&dyn Fn(&RecordLeak) -> Vec<f64>; 4] = [
                    &|r| r.trace.iter().map(|t| t.value).collect(),
                    &|r| r.plis_parts.clone(),
                    &|r| vec![r.gradient_norm, r.released_norm, r.loss],
                    // to the tolerance of the iteration
                    &|r| r.eta.iter().map(|e| (1e4 * e.value).round() / 1e4).collect(),
                ];
                for (i, f) in values.into_iter().enumerate() {
                    let slack = if i == 3 { 2e-4 } else { $tolerance };
                    assert!(off(&each(&a, f), &each(&b, f)) <= slack, "measure {i}");
                }
            }
            let mut rng = Generator::new(5, Purpose::Other, 0);
            let v: Vec<$t> = (0..near.parameter_count()).map(|_| rng.normal() as $t).collect();
            let [a, b] = [&far, &near].map(|net| {
                pullback(net, &data, &some, &v, |_, _| leakscope_net::engine::Combination {
                    own: 0.3,
                    shared: 1.0,
                })
                .unwrap()
            });
            assert!(off(&a.input, &b.input) < $tolerance && off(&a.products, &b.products) < $tolerance);
        }
    };
}

parity!(a_gpu_measures_what_the_processor_does_in_f64, f64, TOLERANCE[0]);
parity!(a_gpu_measures_what_the_processor_does_in_f32, f32, TOLERANCE[1]);

/// Convolutions of shapes that kernels treat apart: few positions (Gram matrices) or many (arrays), channels and outputs that are
/// no multiple of four, padding on one side or both, a stride that divides the kernel or does not, one position.
#[test]
fn convolutions_of_all_shapes_are_those_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    for (image, [outputs, kernel, stride, padding], pooled) in [
        ([6, 6, 8], [16, 4, 2, 0], true),
        ([7, 5, 3], [6, 3, 1, 1], true),
        ([4, 4, 3], [18, 2, 2, 1], true),
        ([5, 4, 6], [13, 3, 3, 2], false),
        ([8, 8, 4], [20, 3, 2, 1], true),
        ([5, 5, 16], [24, 3, 1, 1], true),
        ([4, 4, 5], [8, 4, 4, 0], false),
        ([12, 12, 16], [32, 4, 2, 0], true),
    ] {
        let pool = pooled.then(|| L::average_pool(2, 1));
        let layers: Vec<L> = [L::conv(outputs, kernel, stride, padding), L::Tanh]
            .into_iter()
            .chain(pool)
            .chain([L::Flatten, L::dense(3)])
            .collect();
        let shape = Shape::Image(image);
        let spec = NetSpec::sequential(shape, layers, Loss::SoftmaxCrossEntropy);
        let near = Network::<f64>::new(spec.clone(), 3).unwrap();
        let far = Network::<f64>::new(spec, 3).unwrap().on(gpu).unwrap();
        let mut rng = Generator::new(1, Purpose::Other, 0);
        let n = 11;
        let x: Vec<f64> = (0..n * image.iter().product::<usize>()).map(|_| rng.uniform() - 0.3).collect();
        let labels: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
        let data = Data::classes(shape, x, 3, &labels).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let subject = format!("{image:?} {outputs} {kernel} {stride} {padding}");
        let [a, b] = [&far, &near].map(|net| clipped_gradient(net, &data, &all, CLIP).unwrap());
        assert!(off(&a.sum, &b.sum) < TOLERANCE[0] && off(&a.norms, &b.norms) < TOLERANCE[0], "{subject}");
        let measures = Measure {
            trace: Trace::Estimate { probes: 2, probe: Probe::Rademacher },
            plis: Plis::Elements,
            eta: Some(Spectral { iterations: 4, tolerance: 1e-12 }),
            ..Measure::new(CLIP, 0.5, 1)
        };
        let [a, b] = [&far, &near].map(|net| measure(net, &data, &all, &measures).unwrap());
        for (a, b) in a.iter().zip(&b) {
            assert!(off(&a.plis_parts, &b.plis_parts) < 1e-9, "{subject}: PLIS");
            let (ta, tb) = (a.trace.unwrap().value, b.trace.unwrap().value);
            assert!((ta - tb).abs() < 1e-9 * tb, "{subject}: {ta} {tb}");
            let (ea, eb) = (a.eta.unwrap().value, b.eta.unwrap().value);
            assert!((ea - eb).abs() < 1e-7 * eb, "{subject}: {ea} {eb}");
        }
    }
}

/// Networks whose layers take norms in every way: of dots and of arrays; by Gram matrices, with a tied embedding.
fn short_networks() -> Vec<(&'static str, NetSpec, Data<f32>)> {
    let mut rng = Generator::new(2, Purpose::Other, 0);
    let shape = Shape::Image([12, 12, 16]);
    let layers = vec![
        L::conv(64, 3, 1, 1),
        L::Relu,
        L::conv(48, 3, 2, 1),
        L::Tanh,
        L::Flatten,
        L::dense(40),
        L::Tanh,
        L::dense(5),
    ];
    let n = 24;
    let x = (0..n * shape.len()).map(|_| rng.uniform() as f32 - 0.4).collect();
    let labels: Vec<u32> = (0..n as u32).map(|i| i % 5).collect();
    let images = Data::classes(shape, x, 5, &labels).unwrap();
    let model = Gpt2 { vocabulary: 100, context: 32, width: 48, blocks: 2, heads: 4 };
    let mut draw = || (rng.uniform() * 100.0) as u32;
    let (x, y): (Vec<u32>, Vec<u32>) = (0..8 * 32).map(|_| (draw(), draw())).unzip();
    let texts = Data::tokens(32, x, 100, &y).unwrap();
    let spec = NetSpec::sequential(shape, layers, Loss::SoftmaxCrossEntropy);
    vec![("convolutions", spec, images), ("a transformer", model.network(), texts)]
}

/// In tf32 operands are rounded to eleven bits, 2⁻¹¹ of each at most (2⁻¹⁰ where a card cuts off), so that a product of two is off by
/// 2⁻¹⁰ (2⁻⁹) of what its terms add up to. A gradient is behind at most ten products here, forwards and back, and its tangent
/// behind twice as many: 20·2⁻¹⁰ is 2e-2 if all errors had one sign.
const SHORTENED: f64 = 2e-2;

/// Passes in tf32 are near those in f32, and other numbers; norms and sums stay as exact as they were: what a record adds to the sum
/// of clipped gradients is as long as the clip allows, to the digits of f32, so that no promise rests on tf32.
#[test]
fn tf32_changes_passes_a_little_and_no_clip() {
    let Some(gpu) = gpu() else { return };
    let short = gpu.in_tf32().unwrap();
    assert_ne!(gpu, short);
    for (name, spec, data) in short_networks() {
        let exact = Network::<f32>::new(spec.clone(), 3).unwrap().on(gpu).unwrap();
        let rounded = Network::<f32>::new(spec, 3).unwrap().on(short).unwrap();
        let all: Vec<usize> = (0..data.len()).collect();
        let clip = Clip::Hard { bound: 0.05 };
        let wide = |v: &[f32]| v.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let [a, b] = [&rounded, &exact].map(|net| clipped_gradient(net, &data, &all, clip).unwrap());
        let gap = off(&wide(&a.sum), &wide(&b.sum));
        assert!(gap > 1e-6 && gap < SHORTENED, "{name}: {gap}");
        assert!(off(&a.norms, &b.norms) < SHORTENED && off(&a.losses, &b.losses) < SHORTENED, "{name}");
        for &i in &all {
            let one = clipped_gradient(&rounded, &data, &[i], clip).unwrap();
            let length = wide(&one.sum).iter().map(|v| v * v).sum::<f64>().sqrt();
            // every gradient here is longer than the clip
            assert!(one.norms[0] > 0.05 && (length / 0.05 - 1.0).abs() < 1e-5, "{name}: {length}");
        }
        let measures = Measure {
            trace: Trace::Estimate { probes: 4, probe: Probe::Rademacher },
            plis: Plis::Record,
            ..Measure::new(clip, 0.5, 1)
        };
        let [a, b] = [&rounded, &exact].map(|net| measure(net, &data, &all[..4], &measures).unwrap());
        let trace = |rows: &[RecordLeak]| rows.iter().map(|r| r.trace.unwrap().value).collect::<Vec<f64>>();
        let gap = off(&trace(&a), &trace(&b));
        assert!(gap > 1e-7 && gap < 2.0 * SHORTENED, "{name}: {gap}");
    }
    // double precision stays what it is
    let data: Data<f64> = data!(f64, 12);
    let all: Vec<usize> = (0..12).collect();
    let [a, b] = [gpu, short].map(|backend| {
        let net = Network::<f64>::new(spec(), 3).unwrap().on(backend).unwrap();
        clipped_gradient(&net, &data, &all, CLIP).unwrap().sum
    });
    assert_eq!(a, b);
}

#[test]
fn tf32_is_no_choice_on_the_processor() {
    let error = Backend::Cpu.in_tf32().unwrap_err().to_string();
    assert!(error.contains("tf32") && error.contains("processor"), "{error}");
}

/// Records that do not stay on the card are copied there in pieces, while it computes: every digit is the same.
#[test]
fn records_in_pieces_give_the_digits_of_resident_ones() {
    let Some(gpu) = gpu() else { return };
    let net = Network::<f32>::new(spec(), 3).unwrap().on(gpu).unwrap();
    // three pieces, in no order
    let n = 20_000;
    let mut data: Data<f32> = data!(f32, n);
    let some: Vec<usize> = (0..n).map(|i| (i * 7919) % n).collect();
    let measures = Measure { trace: Trace::Skip, plis: Plis::Record, ..Measure::new(CLIP, 0.5, 1) };
    let mut found = |most: usize| {
        data.keep_at_most(most);
        let gradient = clipped_gradient(&net, &data, &some, CLIP).unwrap();
        let leaks = measure(&net, &data, &some, &measures).unwrap();
        let seen = evaluate(&net, &data).unwrap();
        let config = config(Optimizer::Sgd { momentum: 0.0 }, Some(Privacy { clip: CLIP, sigma: 0.6 }));
        let mut run =
            Trainer::new(Network::<f32>::new(spec(), 3).unwrap().on(gpu).unwrap(), &data, config).unwrap();
        (0..3).for_each(|_| _ = run.step().unwrap());
        (gradient.sum, gradient.norms, leaks, seen, run.network().parameters().unwrap())
    };
    let resident = found(usize::MAX);
    for most in [0, n * 784 * 4 - 1] {
        assert_eq!(found(most), resident);
    }
}

fn config(optimizer: Optimizer, privacy: Option<Privacy>) -> TrainConfig {
    TrainConfig {
        weight_decay: 1e-3,
        privacy,
        label: leakscope_net::leak::Label::Public,
        seed: 9,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(optimizer, 0.05, Sampling::Poisson { rate: 0.4 })
    }
}

#[test]
fn training_on_a_gpu_is_that_on_the_processor_and_the_same_every_time() {
    let Some(gpu) = gpu() else { return };
    let data: Data<f64> = data!(f64, 60);
    for optimizer in [Optimizer::Sgd { momentum: 0.0 }, Optimizer::Sgd { momentum: 0.9 }, Optimizer::adam()] {
        let run = |backend: Backend| {
            let net = Network::<f64>::new(spec(), 3).unwrap().on(backend).unwrap();
            let mut trainer = Trainer::new(net, &data, config(optimizer, None)).unwrap();
            (0..5).for_each(|_| {
                trainer.step().unwrap();
            });
            trainer.network().parameters().unwrap()
        };
        let (near, far) = (run(Backend::Cpu), run(gpu));
        // Adam divides by square roots of small moments
        assert!(off(&far, &near) < 1e-8, "{optimizer:?}: {}", off(&far, &near));
        assert_eq!(run(gpu), far);
    }
}

/// Accounts kept on a GPU are those of the processor, whatever is sampled, measured or secret; and a run that began on a GPU
/// goes on on the processor from its checkpoint.
#[test]
fn accounts_on_a_gpu_are_those_of_the_processor() {
    let Some(gpu) = gpu() else { return };
    let data: Data<f64> = data!(f64, 60);
    let privacy = Privacy { clip: CLIP, sigma: 0.6 };
    let every = Tracking::Every { probes: 3 };
    let panel = Tracking::Panel { records: 7, probes: 2 };
    let (poisson, shuffle) = (Sampling::Poisson { rate: 0.4 }, Sampling::Shuffle { batch: 20 });
    let (public, secret) = (leakscope_net::leak::Label::Public, leakscope_net::leak::Label::Secret);
    for (tracking, sampling, label) in [
        (every, poisson, public),
        (every, poisson, secret),
        (panel, poisson, public),
        (every, shuffle, public),
    ] {
        let config = TrainConfig { tracking, sampling, label, ..config(Optimizer::adam(), Some(privacy)) };
        let started = |backend: Backend| {
            let net = Network::<f64>::new(spec(), 3).unwrap().on(backend).unwrap();
            let mut run = Trainer::new(net, &data, config.clone()).unwrap();
            run.step().unwrap();
            run
        };
        // noise is drawn elsewhere on a GPU, so that runs are the same for one step
        let (near, mut far) = (started(Backend::Cpu), started(gpu));
        let (a, b) = (far.budgets().unwrap(), near.budgets().unwrap());
        for (a, b) in a.iter().zip(&b) {
            assert_eq!((a.followed, a.measured, a.degrees), (b.followed, b.measured, b.degrees));
            for (a, b) in [(a.trace, b.trace), (a.dfil, b.dfil), (a.published, b.published)] {
                assert_eq!(a.is_some(), b.is_some());
                let (Some(a), Some(b)) = (a, b) else { continue };
                let (ea, eb) = (a.standard_error.unwrap(), b.standard_error.unwrap());
                // nothing is told of a record that was not drawn
                let near = (a.value - b.value).abs() <= 1e-8 * b.value && (ea - eb).abs() <= 1e-7 * b.value;
                assert!(near, "{tracking:?} {sampling:?} {label:?}: {a:?} {b:?}");
            }
            let pairs = a.renyi.iter().flatten().zip(b.renyi.iter().flatten());
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs()), "{a:?} {b:?}");
        }
        assert!(off(&far.dfil().unwrap(), &near.dfil().unwrap()) < 1e-8);

        far.step().unwrap();
        let bytes = far.checkpoint().unwrap();
        let mut resumed = Trainer::resume(&bytes, &data, config.clone()).unwrap();
        assert_eq!(resumed.network().backend(), Backend::Cpu);
        assert_eq!(resumed.budgets().unwrap(), far.budgets().unwrap());
        assert_eq!(resumed.network().parameters().unwrap(), far.network().parameters().unwrap());
        // the next step measures the same on both, at the same parameters
        resumed.step().unwrap();
        far.step().unwrap();
        assert!(off(&far.dfil().unwrap(), &resumed.dfil().unwrap()) < 1e-8);
        let moved = far.on(Backend::Cpu).unwrap();
        assert!(off(&moved.dfil().unwrap(), &resumed.dfil().unwrap()) < 1e-8);
    }
}

/// Noise of a step on the device: moments and tails of a normal, other at every step, none where nothing is trained.
#[test]
fn noise_drawn_on_a_gpu_is_normal() {
    let Some(gpu) = gpu() else { return };
    let mut layers = vec![L::dense(400), L::Tanh, L::dense(500)];
    layers[0].set_frozen(true);
    let spec = NetSpec::sequential(Shape::Vector([100]), layers, Loss::SquaredError);
    let data = Data::<f64>::new(Shape::Vector([100]), vec![0.0; 100], 500, vec![0.0; 500]).unwrap();
    let privacy = Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 2.0 };
    // nothing is drawn, so a step adds noise alone: θ moves by −lr·σC·z/divisor
    let config = TrainConfig {
        sampling: Sampling::Poisson { rate: 1e-12 },
        weight_decay: 0.0,
        learning_rate: 1.0,
        divisor: Some(1.0),
        ..config(Optimizer::Sgd { momentum: 0.0 }, Some(privacy))
    };
    let net = Network::<f64>::new(spec, 1).unwrap().on(gpu).unwrap();
    let trained = net.trained();
    let mut trainer = Trainer::new(net, &data, config).unwrap();
    let mut draws: Vec<Vec<f64>> = Vec::new();
    for _ in 0..2 {
        let before = trainer.network().parameters().unwrap();
        trainer.step().unwrap();
        let after = trainer.network().parameters().unwrap();
        assert!(before.iter().zip(&after).zip(&trained).all(|((b, a), t)| *t || a == b));
        let moved = before.iter().zip(&after).zip(&trained).filter(|(_, t)| **t);
        draws.push(moved.map(|((b, a), _)| (b - a) / 2.0).collect());
    }
    let n = draws[0].len() as f64;
    for z in &draws {
        // on the grid of 2⁻⁹, the power of two just below 2/2¹⁰, and on no coarser one
        let cells: Vec<f64> = z.iter().map(|z| 2.0 * z * 512.0).collect();
        assert!(cells.iter().all(|c| (c - c.round()).abs() < 1e-6));
        assert!(cells.iter().filter(|c| c.round() % 2.0 != 0.0).count() > cells.len() / 3);
        let moment = |k: i32| z.iter().map(|z| z.powi(k)).sum::<f64>() / n;
        // five standard errors: 1, √2, √15, √96 over √n
        for (k, expected, error) in
            [(1, 0.0, 1.0), (2, 1.0, 2f64.sqrt()), (3, 0.0, 15f64.sqrt()), (4, 3.0, 96f64.sqrt())]
        {
            assert!((moment(k) - expected).abs() < 5.0 * error / n.sqrt(), "moment {k}: {}", moment(k));
        }
        let tail = z.iter().filter(|z| z.abs() > 3.0).count() as f64 / n;
        assert!((tail - 0.0027).abs() < 5.0 * (0.0027 / n).sqrt(), "{tail}");
        // neighbours are unrelated, also across the pairs and blocks of the cipher
        for lag in [1, 2, 7, 8] {
            let product = z.iter().zip(&z[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
            assert!(product.abs() < 5.0 / n.sqrt(), "lag {lag}: {product}");
        }
    }
    let product = draws[0].iter().zip(&draws[1]).map(|(a, b)| a * b).sum::<f64>() / n;
    assert!(product.abs() < 5.0 / n.sqrt(), "two steps: {product}");
}

#[test]
fn a_gpu_that_is_not_there_is_explained() {
    let error = Backend::cuda(99).unwrap_err().to_string();
    assert!(error.starts_with("cuda:99: "), "{error}");
    assert!(
        error.contains("counted from 0")
            || error.contains("not found")
            || error.contains("there is none")
            || error.contains("failed"),
        "{error}"
    );
}
