//! One suite that every layer and every loss passes, in f64. Oracles: central differences of the loss (gradients)
//! and of materialised gradients (tangents); everything written on pairs against the arrays it stands for.

mod sequences;

use crate::{
    LayerSpec as L, Loss, NetSpec, Network, Shape,
    data::{Batch, Input, Label},
    device::{Backend, Device, Target},
    layer::Draws,
    pass::{OwnDirection, SharedDirection},
    random::{Generator, Purpose},
    spec::{NodeSpec as N, Padding},
};
use std::sync::OnceLock;

const RECORDS: usize = 3;
/// Draws of dropout, as in a training step.
const DRAWS: Option<Draws> = Some(Draws { seed: 3, step: 5 });

struct Case {
    net: Network<f64>,
    /// Values of the records; of tokens, those they are embedded as.
    x: Vec<f64>,
    y: Vec<f64>,
    /// What the embedding reads, where there is one.
    tokens: Vec<u32>,
    weights: Option<Vec<f64>>,
    length: usize,
    rng: Generator,
    seed: u64,
}

impl Case {
    /// The records at other values.
    fn batch(&self, dev: &mut Device<f64>, x: &[f64], y: &[f64]) -> Batch<'static, f64> {
        let moved = dev.upload(x);
        let x = match self.net.vocabulary() {
            Some(_) => Input::Moved(dev.upload_index(&self.tokens), moved),
            None => Input::Values(moved),
        };
        let y = Target::Vectors(dev.upload(y));
        Batch { records: &[0, 1, 2], length: self.length, x, y, weights: self.weights.clone() }
    }

    /// Values of the records at the network's present parameters: those of tokens move with the table.
    fn values(&self) -> Vec<f64> {
        let Some(embedding) = &self.net.embedding else { return self.x.clone() };
        let table = &self.net.parameters().unwrap()[embedding.table..];
        let row = |&t: &u32| &table[t as usize * embedding.width..][..embedding.width];
        self.tokens.iter().flat_map(row).copied().collect()
    }
}

fn case(input: &[usize], layers: Vec<L>, loss: Loss, seed: u64) -> Case {
    let input = match *input {
        [n] => Shape::Vector([n]),
        [t, c] => Shape::Sequence([t, c]),
        [h, w, c] => Shape::Image([h, w, c]),
        _ => unreachable!(),
    };
    case_of(NetSpec::sequential(input, layers, loss), seed)
}

fn case_of(spec: NetSpec, seed: u64) -> Case {
    case_on(Backend::Cpu, spec, seed)
}

/// A GPU, where there is one; said aloud where there is none.
fn gpu() -> Option<Backend> {
    static GPU: OnceLock<Option<Backend>> = OnceLock::new();
    *GPU.get_or_init(|| match Backend::cuda(0) {
        Ok(backend) => Some(backend),
        Err(e) => {
            assert!(std::env::var_os("LEAKSCOPE_REQUIRE_GPU").is_none(), "a GPU is required: {e}");
            eprintln!("SKIPPED on a GPU: {e}");
            None
        }
    })
}

fn case_on(backend: Backend, spec: NetSpec, seed: u64) -> Case {
    let loss = spec.loss;
    let mut net = Network::<f64>::new(spec, seed).unwrap().on(backend).unwrap();
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    // biases, γ and β away from their starting values
    let theta: Vec<f64> = net.parameters().unwrap().iter().map(|t| t + 0.2 * rng.normal()).collect();
    net.set_parameters(&theta).unwrap();
    let stats: Vec<(usize, usize)> = net.statistics().map(|(p, m, _)| (p, m.len())).collect();
    for (p, c) in stats {
        let mean: Vec<f64> = (0..c).map(|_| 0.3 * rng.normal()).collect();
        let variance: Vec<f64> = (0..c).map(|_| 0.5 + rng.uniform()).collect();
        net.set_statistics(p, &mean, &variance).unwrap();
    }
    // sequences shorter than the file allows
    let length = match net.input() {
        Shape::Image(_) | Shape::Vector(_) => 1,
        Shape::Sequence([t, _]) | Shape::Tokens { tokens: t } if net.takes(shorter(net.input())) => t - 1,
        Shape::Sequence([t, _]) | Shape::Tokens { tokens: t } => t,
    };
    let (k, places) = (net.outputs(), net.places(length));
    let mut x: Vec<f64> = (0..RECORDS * net.values(length)).map(|_| rng.normal()).collect();
    let rows = RECORDS * places;
    let y = match loss {
        Loss::SoftmaxCrossEntropy => {
            (0..rows * k).map(|i| if i % k == i / k % k { 1.0 } else { 0.0 }).collect()
        }
        Loss::BinaryCrossEntropy => (0..rows * k).map(|i| (i % 2) as f64).collect(),
        Loss::SquaredError => (0..rows * k).map(|_| rng.normal()).collect(),
    };
    // positions count differently, one not at all
    let weights = (places > 1).then(|| (0..rows).map(|i| [0.5, 0.0, 0.25][i % 3]).collect());
    // few different tokens, so that some stand twice
    let vocabulary = net.vocabulary().unwrap_or(1) as u64;
    let tokens: Vec<u32> = (0..RECORDS * length).map(|_| rng.below(vocabulary.min(4)) as u32).collect();
    let mut case = Case { net, x: Vec::new(), y, tokens, weights, length, rng, seed };
    if case.net.vocabulary().is_some() {
        x = case.values();
    }
    case.x = x;
    case
}

/// The same sequences, one position shorter.
fn shorter(shape: Shape) -> Shape {
    match shape {
        Shape::Sequence([t, c]) => Shape::Sequence([t - 1, c]),
        Shape::Tokens { tokens } => Shape::Tokens { tokens: tokens - 1 },
        Shape::Image(_) | Shape::Vector(_) => shape,
    }
}

/// Losses, all gradients (records × parameters), at given data.
fn gradients(case: &Case, x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut dev = case.net.backend().device();
    let batch = case.batch(&mut dev, x, y);
    let primal = case.net.primal(&mut dev, batch, Label::Secret, DRAWS);
    let g = (0..RECORDS).map(|i| case.net.materialise(&dev, &primal, None, i)).collect();
    (dev.download_scalars(&primal.loss.losses).unwrap(), g)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn close(value: f64, expected: f64, scale: f64, tolerance: f64, name: &str) {
    assert!((value - expected).abs() <= tolerance * scale.max(1e-12), "{name}: {value} against {expected}");
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The derivative from values at −2h, −h, h, 2h: error O(h⁴).
fn difference(h: f64, f: impl Fn(usize) -> f64) -> f64 {
    (8.0 * (f(2) - f(1)) - (f(3) - f(0))) / (12.0 * h)
}

/// Checks a network on the processor, and on a GPU where there is one.
fn conforms(name: &str, case: Case) {
    let (spec, seed) = (case.net.spec().clone(), case.seed);
    conforms_where_it_is(name, case);
    if let Some(gpu) = gpu() {
        conforms_where_it_is(&format!("{name}, on a GPU"), case_on(gpu, spec, seed));
    }
}

fn conforms_where_it_is(name: &str, mut c: Case) {
    let mut dev = c.net.backend().device();
    let (d, p) = (c.net.values(c.length), c.net.parameter_count());
    let k = c.net.outputs() * c.net.places(c.length);
    let (_, g) = gradients(&c, &c.x, &c.y);
    let trained = c.net.trained();

    // 1. the gradient is the derivative of the loss: along random directions of the trained parameters
    let theta = c.net.parameters().unwrap();
    let h = 1e-4;
    for _ in 0..4 {
        let v: Vec<f64> = (0..p).map(|i| if trained[i] { c.rng.normal() } else { 0.0 }).collect();
        let mut at = |s: f64| {
            let moved: Vec<f64> = theta.iter().zip(&v).map(|(t, v)| t + s * v).collect();
            c.net.set_parameters(&moved).unwrap();
            gradients(&c, &c.values(), &c.y).0
        };
        let f = [at(-2.0 * h), at(-h), at(h), at(2.0 * h)];
        c.net.set_parameters(&theta).unwrap();
        for i in 0..RECORDS {
            let fd = difference(h, |j| f[j][i]);
            close(dot(&g[i], &v), fd, norm(&g[i]) * norm(&v), 1e-7, &format!("{name}: gradient"));
        }
        for gi in &g {
            assert!(
                gi.iter().zip(&trained).all(|(g, t)| *t || *g == 0.0),
                "{name}: frozen parameters take no part"
            );
        }
    }

    // 2. norms and weighted sums of pairs are those of the arrays
    let batch = c.batch(&mut dev, &c.x, &c.y);
    let primal = c.net.primal(&mut dev, batch, Label::Secret, DRAWS);
    for (square, g) in dev.download_scalars(&primal.square).unwrap().iter().zip(&g) {
        close(*square, dot(g, g), dot(g, g), 1e-12, &format!("{name}: norm"));
    }
    let weights: Vec<f64> = (0..RECORDS).map(|_| c.rng.normal()).collect();
    let mut sum = dev.zeros(p);
    let factors = dev.upload_scalars(&weights);
    c.net.add_weighted(&mut dev, &primal, &factors, &mut sum);
    for (j, &s) in dev.download(&sum).unwrap().iter().enumerate() {
        let expected: f64 = (0..RECORDS).map(|i| weights[i] * g[i][j]).sum();
        close(s, expected, 1.0, 1e-11, &format!("{name}: weighted sum"));
    }

    // 3. tangents with respect to the record and its label, two probes at once
    let u: Vec<f64> = (0..2 * RECORDS * d).map(|_| c.rng.normal()).collect();
    let uy: Vec<f64> = (0..2 * RECORDS * k).map(|_| c.rng.normal()).collect();
    let (ub, uyb) = (dev.upload(&u), dev.upload(&uy));
    let pass = c.net.tangent(&mut dev, &primal, Some(ub), Some(uyb), true);
    let mut g_dot = Vec::new();
    let (cross, square) =
        (dev.download_scalars(&pass.cross).unwrap(), dev.download_scalars(&pass.square).unwrap());
    for probe in 0..2 {
        let at = |s: f64| {
            let (u, uy) = (&u[probe * RECORDS * d..], &uy[probe * RECORDS * k..]);
            let x: Vec<f64> = c.x.iter().zip(u).map(|(x, u)| x + s * u).collect();
            let y: Vec<f64> = c.y.iter().zip(uy).map(|(y, u)| y + s * u).collect();
            gradients(&c, &x, &y).1
        };
        let f = [at(-2.0 * h), at(-h), at(h), at(2.0 * h)];
        for i in 0..RECORDS {
            let fd: Vec<f64> = (0..p).map(|q| difference(h, |j| f[j][i][q])).collect();
            let gd = c.net.materialise(&dev, &primal, Some((&pass, probe)), i);
            let err: Vec<f64> = gd.iter().zip(&fd).map(|(a, b)| a - b).collect();
            close(norm(&err), 0.0, norm(&gd), 2e-7, &format!("{name}: tangent of the gradient"));
            let row = probe * RECORDS + i;
            let scale = norm(&g[i]) * norm(&gd);
            close(cross[row], dot(&g[i], &gd), scale, 1e-12, &format!("{name}: g·ġ"));
            close(square[row], dot(&gd, &gd), dot(&gd, &gd), 1e-12, &format!("{name}: ‖ġ‖²"));
            g_dot.push(gd);
        }
    }

    // 4. the adjoint: Jᵀθ̇·w = θ̇·(Jw), w probe 1, for θ̇ = αġ + βg (ġ of probe 0), βg, κv and αġ + βg + κv
    let ub = dev.upload(&u[..RECORDS * d]);
    let uyb = dev.upload(&uy[..RECORDS * k]);
    let one = c.net.tangent(&mut dev, &primal, Some(ub), Some(uyb), true);
    let mut sum = dev.zeros(p);
    c.net.add_weighted_tangent(&mut dev, &primal, &one, &factors, &mut sum);
    for (j, &s) in dev.download(&sum).unwrap().iter().enumerate() {
        let expected: f64 = (0..RECORDS).map(|i| weights[i] * g_dot[i][j]).sum();
        let scale = (0..RECORDS).map(|i| norm(&g_dot[i])).fold(1.0, f64::max);
        close(s, expected, scale, 1e-11, &format!("{name}: weighted sum of tangents"));
    }
    let mut draw = || (0..RECORDS).map(|_| c.rng.normal()).collect::<Vec<f64>>();
    let (alpha, beta, kappa, zero) = (draw(), draw(), draw(), vec![0.0; RECORDS]);
    let v: Vec<f64> = (0..p).map(|i| if trained[i] { c.rng.normal() } else { 0.0 }).collect();
    let vb = dev.upload(&v);
    let along = c.net.along(&mut dev, &primal, &vb, 1);
    let along = dev.download_scalars(&along).unwrap();
    for i in 0..RECORDS {
        close(along[i], dot(&g[i], &v), norm(&g[i]) * norm(&v), 1e-12, &format!("{name}: g·v"));
    }
    for (with_tangent, own, shared) in
        [(true, true, false), (false, true, false), (false, false, true), (true, true, true)]
    {
        let alpha = if with_tangent { &alpha } else { &zero };
        let [on_alpha, on_beta, weights] = [alpha, &beta, &kappa].map(|v| dev.upload_scalars(v));
        let pairs = OwnDirection { tangent: with_tangent.then_some(&one), alpha: &on_alpha, beta: &on_beta };
        let array = SharedDirection { array: &vb, copies: 1, weights: &weights };
        let adjoint = c.net.adjoint(&mut dev, &primal, own.then_some(&pairs), shared.then_some(&array));
        let (back, label) = adjoint.unwrap();
        for i in 0..RECORDS {
            let w = &u[(RECORDS + i) * d..][..d];
            let wy = &uy[(RECORDS + i) * k..][..k];
            let adjoint = dot(&back[i * d..][..d], w) + dot(&label[i * k..][..k], wy);
            let gd = &g_dot[RECORDS + i];
            let (mut expected, mut scale) = (0.0, 0.0);
            if own {
                expected += alpha[i] * dot(&g_dot[i], gd) + beta[i] * dot(&g[i], gd);
                scale += norm(gd) * (norm(&g_dot[i]) + norm(&g[i]));
            }
            if shared {
                expected += kappa[i] * dot(&v, gd);
                scale += norm(gd) * norm(&v);
            }
            close(adjoint, expected, scale, 1e-11, &format!("{name}: adjoint"));
        }
    }

    // 5. an array for each record: what it gives alone
    if c.net.vocabulary().is_some() || c.length > 1 {
        return;
    }
    let each: Vec<Vec<f64>> = (0..RECORDS).map(|_| (0..p).map(|_| c.rng.normal()).collect()).collect();
    let all = c.net.interleaved(&each.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (all, weights) = (dev.upload(&all), dev.upload_scalars(&kappa));
    let products = c.net.along(&mut dev, &primal, &all, RECORDS);
    let products = dev.download_scalars(&products).unwrap();
    let array = SharedDirection { array: &all, copies: RECORDS, weights: &weights };
    let (back, _) = c.net.adjoint(&mut dev, &primal, None, Some(&array)).unwrap();
    for (i, v) in each.iter().enumerate() {
        let one = dev.upload(v);
        let array = SharedDirection { array: &one, copies: 1, weights: &weights };
        let alone = c.net.along(&mut dev, &primal, &one, 1);
        let alone = dev.download_scalars(&alone).unwrap()[i];
        close(products[i], alone, norm(&g[i]) * norm(v), 1e-12, &format!("{name}: g·v of each"));
        let (expected, _) = c.net.adjoint(&mut dev, &primal, None, Some(&array)).unwrap();
        let (adjoint, expected) = (&back[i * d..][..d], &expected[i * d..][..d]);
        let off: Vec<f64> = adjoint.iter().zip(expected).map(|(a, b)| a - b).collect();
        close(norm(&off), 0.0, norm(expected), 1e-11, &format!("{name}: adjoint of each"));
    }
}

/// Networks with every layer: name, shape of a record, layers.
fn layers() -> Vec<(&'static str, Vec<usize>, Vec<L>)> {
    let image = |layer: Vec<L>| {
        let mut all = vec![L::conv(3, 3, 1, 1), L::Tanh];
        all.extend(layer);
        all.extend([L::Flatten, L::dense(4)]);
        all
    };
    let vector = |layer: Vec<L>| {
        let mut all = vec![L::dense(6)];
        all.extend(layer);
        all.extend([L::dense(5), L::Tanh, L::dense(4)]);
        all
    };
    let no_bias = |spec: L| match spec {
        L::Dense { outputs, frozen, .. } => L::Dense { outputs, bias: false, frozen },
        L::Conv { outputs, kernel, stride, padding, dilation, groups, frozen, .. } => {
            L::Conv { outputs, kernel, stride, padding, dilation, groups, bias: false, frozen }
        }
        other => other,
    };
    let wide = L::Conv {
        outputs: 7,
        kernel: [3, 2],
        stride: [2, 1],
        padding: Padding::Zeros([1, 0]),
        dilation: [1, 1],
        groups: 1,
        bias: true,
        frozen: false,
    };
    let with = |spec: L, change: (Padding, [usize; 2], usize)| match spec {
        L::Conv { outputs, kernel, stride, bias, frozen, .. } => {
            let (padding, dilation, groups) = change;
            L::Conv { outputs, kernel, stride, padding, dilation, groups, bias, frozen }
        }
        other => other,
    };
    let zeros = |n: usize| Padding::Zeros([n; 2]);
    let padded_pool = L::AveragePool { kernel: [3, 2], stride: [2, 1], padding: [1, 1] };
    let padded_max = L::MaxPool { kernel: [3, 2], stride: [2, 1], padding: [1, 1] };
    vec![
        ("dense", vec![5], vec![L::dense(4)]),
        ("dense without bias", vec![5], vec![no_bias(L::dense(3)), L::Tanh, no_bias(L::dense(4))]),
        ("tanh", vec![5], vector(vec![L::Tanh])),
        ("relu", vec![5], vector(vec![L::Relu])),
        ("gelu", vec![5], vector(vec![L::Gelu])),
        ("sigmoid", vec![5], vector(vec![L::Sigmoid])),
        ("silu", vec![5], vector(vec![L::Silu])),
        ("softplus", vec![5], vector(vec![L::Softplus])),
        ("leaky relu", vec![5], vector(vec![L::LeakyRelu { slope: 0.1 }])),
        ("elu", vec![5], vector(vec![L::Elu { alpha: 0.7 }])),
        ("dropout", vec![5], vector(vec![L::Tanh, L::Dropout { rate: 0.4 }])),
        ("dropout first", vec![5], vec![L::Dropout { rate: 0.4 }, L::dense(4)]),
        ("rms norm", vec![5], vector(vec![L::rms_norm(), L::Tanh])),
        ("rms norm first", vec![5], vec![L::rms_norm(), L::dense(4)]),
        ("group norm", vec![5], vector(vec![L::group_norm(2), L::Tanh])),
        ("layer norm", vec![5], vector(vec![L::layer_norm(), L::Tanh])),
        ("layer norm first", vec![5], vec![L::layer_norm(), L::dense(4)]),
        ("batch norm", vec![5], vector(vec![L::batch_norm(), L::Tanh])),
        ("batch norm first", vec![5], vec![L::batch_norm(), L::dense(4)]),
        // whole form: many positions, few weights
        ("conv, whole", vec![6, 5, 2], image(vec![])),
        ("conv without bias", vec![6, 5, 2], vec![no_bias(L::conv(3, 3, 1, 1)), L::Flatten, L::dense(4)]),
        // Gram form: few positions, many weights
        // rows that a GPU cuts into pieces
        ("conv, wide", vec![3, 33, 1], vec![L::conv(2, 3, 1, 1), L::Tanh, L::Flatten, L::dense(4)]),
        ("conv, long strides", vec![7, 23, 2], vec![L::conv(4, 5, 3, 2), L::Gelu, L::Flatten, L::dense(4)]),
        ("conv, Gram", vec![6, 5, 2], image(vec![L::conv(8, 4, 2, 1), L::Tanh])),
        ("conv, Gram, no bias", vec![6, 5, 2], image(vec![no_bias(L::conv(8, 4, 2, 1)), L::Tanh])),
        ("conv, uneven", vec![6, 5, 2], image(vec![wide, L::Gelu])),
        (
            "conv, dilated",
            vec![6, 5, 2],
            image(vec![with(L::conv(4, 2, 1, 0), (zeros(1), [2, 3], 1)), L::Tanh]),
        ),
        ("conv, same", vec![6, 5, 2], image(vec![with(L::conv(4, 4, 2, 0), (Padding::SAME, [1, 1], 1))])),
        (
            "conv, same and dilated",
            vec![6, 5, 2],
            image(vec![with(L::conv(3, 2, 1, 0), (Padding::SAME, [2, 2], 1))]),
        ),
        (
            "conv in groups",
            vec![6, 5, 2],
            vec![
                L::conv(4, 3, 1, 1),
                L::Tanh,
                with(L::conv(6, 3, 1, 0), (zeros(1), [1, 1], 2)),
                L::Flatten,
                L::dense(4),
            ],
        ),
        (
            "conv in groups, Gram, no bias",
            vec![6, 5, 2],
            vec![
                L::conv(4, 3, 1, 1),
                L::Tanh,
                no_bias(with(L::conv(12, 4, 3, 0), (zeros(0), [1, 1], 2))),
                L::Gelu,
                L::Flatten,
                L::dense(4),
            ],
        ),
        (
            "conv by channel, first",
            vec![6, 5, 2],
            vec![with(L::conv(2, 3, 1, 0), (zeros(1), [1, 1], 2)), L::Flatten, L::dense(4)],
        ),
        ("adaptive average pool", vec![6, 5, 2], image(vec![L::AdaptiveAveragePool { outputs: [4, 2] }])),
        ("adaptive pool to one", vec![6, 5, 2], image(vec![L::AdaptiveAveragePool { outputs: [1, 1] }])),
        ("adaptive pool to more", vec![3, 2, 2], image(vec![L::AdaptiveAveragePool { outputs: [5, 2] }])),
        (
            "group norm of an image",
            vec![6, 5, 2],
            vec![L::conv(4, 3, 1, 1), L::group_norm(2), L::Tanh, L::Flatten, L::dense(4)],
        ),
        ("instance norm", vec![6, 5, 2], image(vec![L::group_norm(3), L::Tanh])),
        (
            "rms norm of an image",
            vec![6, 5, 2],
            vec![L::conv(8, 3, 1, 1), L::rms_norm(), L::Tanh, L::Flatten, L::dense(4)],
        ),
        ("average pool", vec![6, 5, 2], image(vec![L::average_pool(2, 1)])),
        ("average pool, padded", vec![6, 5, 2], image(vec![padded_pool])),
        ("max pool", vec![6, 5, 2], image(vec![L::max_pool(2, 2)])),
        ("max pool, padded", vec![6, 5, 2], image(vec![padded_max])),
        ("layer norm of an image", vec![6, 5, 2], image(vec![L::layer_norm(), L::Tanh])),
        ("batch norm of an image", vec![6, 5, 2], image(vec![L::batch_norm(), L::Tanh])),
        ("residual", vec![5], vector(vec![L::Residual { layers: vec![L::dense(6), L::Tanh, L::dense(6)] }])),
        (
            "residual of an image, nested",
            vec![6, 5, 2],
            // layer norm over few channels is sharply curved where they nearly agree: eight of them
            vec![
                L::conv(8, 3, 1, 1),
                L::Residual {
                    layers: vec![L::conv(8, 3, 1, 1), L::Residual { layers: vec![L::layer_norm(), L::Gelu] }],
                },
                L::Flatten,
                L::dense(4),
            ],
        ),
        ("residual first", vec![5], vec![L::Residual { layers: vec![L::dense(5), L::Tanh] }, L::dense(4)]),
        (
            "pool and activation first",
            vec![6, 5, 2],
            vec![L::average_pool(2, 1), L::Tanh, L::Flatten, L::dense(4)],
        ),
        ("gelu by tanh", vec![5], vector(vec![L::GeluTanh])),
    ]
}

/// Tests of every eighth of the layers: tools that watch a GPU take minutes for one, and run beside each other.
macro_rules! eighths {
    ($($name:ident: $at:literal),*) => {$(
        #[test]
        fn $name() {
            for (i, (name, input, layers)) in layers().into_iter().enumerate().filter(|(i, _)| i % 8 == $at) {
                conforms(name, case(&input, layers, Loss::SoftmaxCrossEntropy, i as u64 + 1));
            }
        }
    )*};
}

eighths!(
    every_layer_conforms_1: 0,
    every_layer_conforms_2: 1,
    every_layer_conforms_3: 2,
    every_layer_conforms_4: 3,
    every_layer_conforms_5: 4,
    every_layer_conforms_6: 5,
    every_layer_conforms_7: 6,
    every_layer_conforms_8: 7
);

#[test]
fn every_loss_conforms() {
    for (seed, loss) in
        [Loss::SoftmaxCrossEntropy, Loss::BinaryCrossEntropy, Loss::SquaredError].into_iter().enumerate()
    {
        let layers = vec![L::dense(6), L::Tanh, L::dense(3)];
        conforms(&format!("{loss:?}"), case(&[4], layers, loss, 50 + seed as u64));
    }
}

#[test]
fn frozen_layers_take_no_part() {
    let mut layers = vec![
        L::conv(3, 3, 1, 1),
        L::layer_norm(),
        L::Tanh,
        L::Residual { layers: vec![L::conv(3, 3, 1, 1), L::Tanh, L::conv(3, 3, 1, 1)] },
        L::Flatten,
        L::dense(6),
        L::Gelu,
        L::dense(4),
    ];
    layers[0].set_frozen(true);
    layers[1].set_frozen(true);
    if let L::Residual { layers } = &mut layers[3] {
        layers[0].set_frozen(true);
    }
    conforms("frozen below", case(&[5, 5, 1], layers.clone(), Loss::SoftmaxCrossEntropy, 60));
    layers[3].set_frozen(true);
    layers[5].set_frozen(true);
    conforms("all but the last frozen", case(&[5, 5, 1], layers.clone(), Loss::SoftmaxCrossEntropy, 61));
    layers[7].set_frozen(true);
    layers[5].set_frozen(false);
    conforms("the last frozen", case(&[5, 5, 1], layers, Loss::SoftmaxCrossEntropy, 62));
}

/// Layers that name what they read: sums of several, a value with three readers, products, a branch that is frozen.
#[test]
fn graphs_conform() {
    let frozen = |mut layer: L| {
        layer.set_frozen(true);
        layer
    };
    let graphs: Vec<(&str, Vec<N>)> = vec![
        (
            "sum of three",
            vec![
                N::named("a", L::dense(6)),
                N::named("b", L::Tanh),
                N::named("c", L::dense(6)).reading(&["a"]),
                N::from(L::Add).reading(&["a", "b", "c"]),
                L::Gelu.into(),
                L::dense(4).into(),
            ],
        ),
        (
            "gated",
            vec![
                N::named("norm", L::layer_norm()),
                N::named("gate", L::dense(6)),
                N::named("open", L::Silu),
                N::named("up", L::dense(6)).reading(&["norm"]),
                N::from(L::Multiply).reading(&["open", "up"]),
                N::named("down", L::dense(5)),
                N::from(L::Add).reading(&["down", "input"]),
                L::dense(4).into(),
            ],
        ),
        ("square", vec![N::named("a", L::dense(4)), N::from(L::Multiply).reading(&["a", "a"])]),
        ("doubled", vec![N::named("a", L::dense(4)), N::from(L::Add).reading(&["a", "a"]), L::Tanh.into()]),
        (
            "a frozen branch",
            vec![
                N::named("still", frozen(L::dense(6))),
                N::named("moves", L::dense(6)).reading(&["input"]),
                N::named("curved", L::Tanh),
                N::named("beside", L::Gelu).reading(&["still"]),
                N::from(L::Multiply).reading(&["curved", "beside"]),
                frozen(L::dense(4)).into(),
            ],
        ),
    ];
    for (seed, (name, layers)) in graphs.into_iter().enumerate() {
        let spec = NetSpec::graph(Shape::Vector([5]), layers, Loss::SoftmaxCrossEntropy);
        conforms(name, case_of(spec, 80 + seed as u64));
    }
}

/// A residual block is short for a chain and a sum: the same numbers.
#[test]
fn a_residual_block_is_a_sum_with_names() {
    let (input, loss) = (Shape::Vector([5]), Loss::SoftmaxCrossEntropy);
    let block = vec![L::dense(5), L::Residual { layers: vec![L::dense(5), L::Tanh] }, L::dense(4)];
    let short = case_of(NetSpec::sequential(input, block, loss), 90);
    let long = vec![
        N::named("x", L::dense(5)),
        L::dense(5).into(),
        N::named("f", L::Tanh),
        N::from(L::Add).reading(&["f", "x"]),
        L::dense(4).into(),
    ];
    let long = case_of(NetSpec::graph(input, long, loss), 90);
    assert_eq!(gradients(&short, &short.x, &short.y), gradients(&long, &long.x, &long.y));
}
