//! What layers compute, against their definitions written out; how they behave in training and in audits.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, Error, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::{Combination, clipped_gradient, evaluate, predict, pullback},
    leak::{Measure, measure},
    random::{Generator, Purpose},
    spec::Padding,
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

const SIZE: [usize; 2] = [7, 6];
const CHANNELS: usize = 4;

fn network(input: Shape, layers: Vec<L>) -> Network<f64> {
    let spec = NetSpec::sequential(input, layers, Loss::SquaredError);
    let mut net = Network::new(spec, 1).unwrap();
    let mut rng = Generator::new(2, Purpose::Other, 0);
    let theta: Vec<f64> = net.parameters().unwrap().iter().map(|t| t + 0.2 * rng.normal()).collect();
    net.set_parameters(&theta).unwrap();
    net
}

fn draw(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Generator::new(seed, Purpose::Other, 9);
    (0..n).map(|_| rng.normal()).collect()
}

fn close(actual: &[f64], expected: &[f64], name: &str) {
    assert_eq!(actual.len(), expected.len(), "{name}");
    for (f, e) in actual.iter().zip(expected) {
        assert!((f - e).abs() < 1e-12 * (1.0 + e.abs()), "{name}: {f} against {e}");
    }
}

/// A convolution by its definition: output (y, x, o) sums over the kernel and the channels of its group.
#[allow(clippy::too_many_arguments)]
fn convolution(
    image: &[f64],
    weight: &[f64],
    bias: &[f64],
    kernel: [usize; 2],
    stride: [usize; 2],
    before: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    out: [usize; 2],
) -> Vec<f64> {
    let (outputs, each) = (bias.len(), CHANNELS / groups);
    let mut result = Vec::new();
    for oy in 0..out[0] {
        for ox in 0..out[1] {
            for o in 0..outputs {
                let group = o / (outputs / groups);
                let mut sum = bias[o];
                for ky in 0..kernel[0] {
                    for kx in 0..kernel[1] {
                        let y = (oy * stride[0] + ky * dilation[0]) as isize - before[0] as isize;
                        let x = (ox * stride[1] + kx * dilation[1]) as isize - before[1] as isize;
                        let inside = (0..SIZE[0] as isize).contains(&y) && (0..SIZE[1] as isize).contains(&x);
                        for c in (0..each).filter(|_| inside) {
                            let at = (y as usize * SIZE[1] + x as usize) * CHANNELS + group * each + c;
                            sum += image[at] * weight[((o * kernel[0] + ky) * kernel[1] + kx) * each + c];
                        }
                    }
                }
                result.push(sum);
            }
        }
    }
    result
}

#[test]
fn convolutions_are_their_definition() {
    // kernel, stride, padding, dilation, groups; zeros before and positions by hand
    for (kernel, stride, padding, dilation, groups, before, out) in [
        ([3, 2], [2, 1], Padding::Zeros([1, 0]), [1, 1], 1, [1, 0], [4, 5]),
        ([3, 2], [1, 2], Padding::Zeros([2, 1]), [2, 3], 1, [2, 1], [7, 3]),
        ([3, 3], [1, 1], Padding::SAME, [1, 1], 1, [1, 1], [7, 6]),
        // 7 rows by 2: 4 positions reach 3·2 + 4 = 10 rows, three zeros, the odd one after the image
        ([4, 4], [2, 2], Padding::SAME, [1, 1], 1, [1, 1], [4, 3]),
        ([2, 2], [1, 1], Padding::SAME, [2, 3], 2, [1, 1], [7, 6]),
        ([3, 3], [2, 2], Padding::Zeros([1, 1]), [1, 1], 2, [1, 1], [4, 3]),
        ([2, 3], [1, 1], Padding::Zeros([0, 0]), [3, 1], 4, [0, 0], [4, 4]),
    ] {
        let layer =
            L::Conv { outputs: 8, kernel, stride, padding, dilation, groups, bias: true, frozen: false };
        let net = network(Shape::Image([SIZE[0], SIZE[1], CHANNELS]), vec![layer]);
        let image = draw(SIZE[0] * SIZE[1] * CHANNELS, 3);
        let weights = 8 * kernel[0] * kernel[1] * CHANNELS / groups;
        let theta = net.parameters().unwrap();
        let (weight, bias) = theta.split_at(weights);
        let expected = convolution(&image, weight, bias, kernel, stride, before, dilation, groups, out);
        let name = format!("{kernel:?} {stride:?} {padding:?} {dilation:?} {groups}");
        close(predict(&net, &image).unwrap().outputs(0), &expected, &name);
        assert_eq!(net.tensors()[0].shape, [8, kernel[0], kernel[1], CHANNELS / groups]);
    }
}

#[test]
fn activations_are_their_definition() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    type Function<'a> = &'a dyn Fn(f64) -> f64;
    let all: [(L, Function<'_>); 4] = [
        (L::Silu, &|x| x * sigmoid(x)),
        (L::Softplus, &|x: f64| x.exp().ln_1p()),
        (L::LeakyRelu { slope: 0.01 }, &|x| if x > 0.0 { x } else { 0.01 * x }),
        (L::Elu { alpha: 1.5 }, &|x: f64| if x > 0.0 { x } else { 1.5 * x.exp_m1() }),
    ];
    for (layer, f) in all {
        let name = layer.kind();
        let mut net = network(Shape::Vector([1]), vec![L::dense(1), layer]);
        net.set_parameters(&[1.0, 0.0]).unwrap();
        for x in [-700.0, -30.0, -2.0, -1e-9, 0.0, 1e-9, 0.5, 3.0, 40.0, 700.0] {
            close(predict(&net, &[x]).unwrap().outputs(0), &[f(x)], name);
        }
    }
}

#[test]
fn norms_and_pools_are_their_definition() {
    let shape = Shape::Image([SIZE[0], SIZE[1], CHANNELS]);
    let image = draw(shape.len(), 4);
    let at = |t: usize, c: usize| image[t * CHANNELS + c];
    let positions = SIZE[0] * SIZE[1];

    let net = network(shape, vec![L::GroupNorm { groups: 2, epsilon: 1e-3, frozen: false }]);
    let theta = net.parameters().unwrap();
    let (gamma, beta) = theta.split_at(CHANNELS);
    let mut expected = vec![0.0; image.len()];
    for group in 0..2 {
        let values = || (0..positions).flat_map(|t| (2 * group..2 * group + 2).map(move |c| (t, c)));
        let n = 2.0 * positions as f64;
        let mean = values().map(|(t, c)| at(t, c)).sum::<f64>() / n;
        let variance = values().map(|(t, c)| (at(t, c) - mean).powi(2)).sum::<f64>() / n;
        for (t, c) in values() {
            expected[t * CHANNELS + c] = gamma[c] * (at(t, c) - mean) / (variance + 1e-3).sqrt() + beta[c];
        }
    }
    close(predict(&net, &image).unwrap().outputs(0), &expected, "group norm");

    let net = network(shape, vec![L::RmsNorm { epsilon: 1e-3, frozen: false }]);
    assert_eq!(net.parameter_count(), CHANNELS);
    let gamma = net.parameters().unwrap();
    let root = |t| ((0..CHANNELS).map(|c| at(t, c).powi(2)).sum::<f64>() / CHANNELS as f64 + 1e-3).sqrt();
    let expected: Vec<f64> = (0..positions)
        .flat_map(|t| (0..CHANNELS).map(move |c| (t, c)))
        .map(|(t, c)| gamma[c] * at(t, c) / root(t))
        .collect();
    close(predict(&net, &image).unwrap().outputs(0), &expected, "rms norm");

    // 7 rows to 3: rows 0–2, 2–4, 4–6; 6 columns to 4: 0–1, 1–2, 3–4, 4–5
    let spans = [vec![0..3, 2..5, 4..7], vec![0..2, 1..3, 3..5, 4..6]];
    let layers =
        vec![L::AdaptiveAveragePool { outputs: [3, 4] }, L::RmsNorm { epsilon: 1e-3, frozen: false }];
    let net = network(shape, layers);
    let gamma = net.parameters().unwrap();
    let mut expected = Vec::new();
    for ys in &spans[0] {
        for xs in &spans[1] {
            let mean = |c: usize| {
                let sum: f64 = ys
                    .clone()
                    .flat_map(|y| xs.clone().map(move |x| (y, x)))
                    .map(|(y, x)| at(y * SIZE[1] + x, c))
                    .sum();
                sum / (ys.len() * xs.len()) as f64
            };
            let means: Vec<f64> = (0..CHANNELS).map(mean).collect();
            let root = (means.iter().map(|m| m * m).sum::<f64>() / CHANNELS as f64 + 1e-3).sqrt();
            expected.extend((0..CHANNELS).map(|c| gamma[c] * means[c] / root));
        }
    }
    close(predict(&net, &image).unwrap().outputs(0), &expected, "adaptive average pool");
}

#[test]
fn layers_that_cannot_be_are_refused_with_their_reason() {
    let shape = Shape::Image([5, 5, 4]);
    let conv = |groups, outputs, dilation| L::Conv {
        outputs,
        kernel: [3, 3],
        stride: [1, 1],
        padding: Padding::default(),
        dilation,
        groups,
        bias: true,
        frozen: false,
    };
    for (layer, says) in [
        (conv(3, 6, [1, 1]), "divide the channels"),
        (conv(2, 5, [1, 1]), "divide the channels"),
        (conv(0, 4, [1, 1]), "divide the channels"),
        (conv(1, 4, [0, 1]), "at least 1"),
        (conv(1, 4, [3, 1]), "larger than the padded image"),
        (L::group_norm(3), "divide the channels"),
        (L::group_norm(0), "divide the channels"),
        (L::AdaptiveAveragePool { outputs: [0, 2] }, "at least 1"),
        (L::Dropout { rate: 1.0 }, "below 1"),
        (L::Dropout { rate: -0.1 }, "at least 0"),
        (L::LeakyRelu { slope: f64::NAN }, "finite"),
        (L::Elu { alpha: f64::INFINITY }, "finite"),
        (L::RmsNorm { epsilon: 0.0, frozen: false }, "positive"),
    ] {
        let spec = NetSpec::sequential(shape, vec![layer, L::Flatten, L::dense(2)], Loss::SquaredError);
        let message = Network::<f64>::new(spec, 1).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
    let text = r#"{"version": 1, "input": [5, 5, 4], "loss": "squared-error", "layers": [
        {"kind": "conv", "outputs": 4, "kernel": [3, 3], "padding": "same", "dilation": [2, 2], "groups": 4},
        {"kind": "leaky-relu"}, {"kind": "elu", "alpha": 2.0}, {"kind": "group-norm", "groups": 2},
        {"kind": "dropout", "rate": 0.5}, {"kind": "adaptive-average-pool", "outputs": [1, 1]}]}"#;
    let spec = NetSpec::from_json(text).unwrap();
    assert_eq!(NetSpec::from_json(&spec.to_json()).unwrap(), spec);
    assert_eq!(Network::<f32>::new(spec, 1).unwrap().outputs(), 4);
    assert!(NetSpec::from_json(&text.replace("\"same\"", "\"valid\"")).is_err());
}

fn private(seed: u64) -> TrainConfig {
    TrainConfig {
        privacy: Some(Privacy { clip: Clip::Gelu { bound: 1.0 }, sigma: 1.0 }),
        tracking: Tracking::Drawn { probes: 2 },
        label: leakscope_net::leak::Label::Public,
        seed,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.1, Sampling::Poisson { rate: 0.5 })
    }
}

fn classes(n: usize, d: usize) -> Data<f64> {
    let labels: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
    Data::classes(Shape::Vector([d]), draw(n * d, 5), 3, &labels).unwrap()
}

fn classifier(layers: Vec<L>) -> Network<f64> {
    let spec = NetSpec::sequential(Shape::Vector([6]), layers, Loss::SoftmaxCrossEntropy);
    Network::new(spec, 1).unwrap()
}

#[test]
fn dropout_is_in_training_steps_and_nowhere_else() {
    let data = classes(30, 6);
    let layers = |rate| vec![L::dense(40), L::Tanh, L::Dropout { rate }, L::dense(3)];
    let (with, without) = (classifier(layers(0.5)), classifier(layers(0.0)));
    let request = Measure::new(Clip::Hard { bound: 1.0 }, 1.0, 1);
    let records: Vec<usize> = (0..30).collect();
    assert_eq!(measure(&with, &data, &records, &request), measure(&without, &data, &records, &request));
    assert_eq!(evaluate(&with, &data), evaluate(&without, &data));
    let run = |net: Network<f64>| {
        let mut run = Trainer::new(net, &data, private(3)).unwrap();
        for _ in 0..3 {
            run.step().unwrap();
        }
        run.network().parameters().unwrap()
    };
    let first = run(classifier(layers(0.5)));
    assert_eq!(first, run(classifier(layers(0.5))), "a step can be made again");
    assert_ne!(first, run(without));
}

#[test]
fn batch_norm_takes_its_statistics_from_public_data_alone() {
    let data = classes(50, 6);
    let layers = vec![L::dense(4), L::batch_norm(), L::Tanh, L::dense(5), L::batch_norm(), L::dense(3)];
    let refused = Trainer::new(classifier(layers.clone()), &data, private(1)).unwrap_err();
    assert_eq!(refused, Error::NoStatistics { layer: 1 });
    assert!(refused.to_string().contains("public data") && refused.to_string().contains("group-norm"));
    // in the open there is nothing to protect
    let open = TrainConfig { privacy: None, tracking: Tracking::Off, ..private(1) };
    Trainer::new(classifier(layers.clone()), &data, open).unwrap();

    let mut net = classifier(layers.clone());
    net.calibrate_statistics(&data).unwrap();
    Trainer::new(classifier(layers.clone()), &data, private(1)).unwrap_err();
    // oracle: the first layers as a network of their own, mean and variance of what they say
    for (end, position) in [(1, 1), (4, 4)] {
        let spec = NetSpec::sequential(Shape::Vector([6]), layers[..end].to_vec(), Loss::SquaredError);
        let mut head = Network::<f64>::with_parameters(
            spec.clone(),
            &net.parameters().unwrap()[..Network::<f64>::new(spec, 1).unwrap().parameter_count()],
        )
        .unwrap();
        let all: Vec<_> = net.statistics().map(|(p, m, v)| (p, m.to_vec(), v.to_vec())).collect();
        for (p, mean, variance) in all.iter().filter(|s| s.0 < end) {
            head.set_statistics(*p, mean, variance).unwrap();
        }
        let z = predict(&head, data.records()).unwrap();
        let (_, mean, variance) = all.iter().find(|s| s.0 == position).unwrap();
        for c in 0..mean.len() {
            let values: Vec<f64> = (0..50).map(|i| z.outputs(i)[c]).collect();
            let m = values.iter().sum::<f64>() / 50.0;
            let v = values.iter().map(|x| (x - m).powi(2)).sum::<f64>() / 50.0;
            close(&[mean[c], variance[c]], &[m, v], "statistics");
        }
    }
    Trainer::new(net, &data, private(1)).unwrap().step().unwrap();
}

#[test]
fn predictions_are_scores_of_outputs() {
    let data = classes(300, 6);
    let net = classifier(vec![L::dense(3)]);
    let z = predict(&net, data.records()).unwrap();
    assert_eq!(z.len(), 300);
    let theta = net.parameters().unwrap();
    for i in [0, 17, 299] {
        let expected: Vec<f64> = (0..3)
            .map(|o| theta[18 + o] + (0..6).map(|j| theta[o * 6 + j] * data.record(i)[j]).sum::<f64>())
            .collect();
        close(z.outputs(i), &expected, "outputs");
        let total: f64 = expected.iter().map(|v| v.exp()).sum();
        close(z.scores(i), &expected.iter().map(|v| v.exp() / total).collect::<Vec<f64>>(), "scores");
    }
    assert!(predict(&net, &[1.0; 7]).is_err() && predict(&net, &[f64::NAN; 6]).is_err());
}

#[test]
fn several_labels_have_an_accuracy_each_and_no_softmax() {
    let spec = |loss| NetSpec::sequential(Shape::Vector([2]), vec![L::dense(2)], loss);
    // outputs are the record itself
    let theta = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let net = Network::<f64>::with_parameters(spec(Loss::BinaryCrossEntropy), &theta).unwrap();
    let x = vec![1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0];
    let y = vec![1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0];
    let data = Data::new(Shape::Vector([2]), x, 2, y).unwrap();
    let actual = evaluate(&net, &data).unwrap();
    // both right, one, both, none
    assert_eq!((actual.accuracy, actual.label_accuracy), (Some(0.5), Some(0.625)));
    let softmax = Network::<f64>::with_parameters(spec(Loss::SoftmaxCrossEntropy), &theta).unwrap();
    let message = evaluate(&softmax, &data).unwrap_err().to_string();
    assert!(
        message.contains("the label of record 0") && message.contains("binary-cross-entropy"),
        "{message}"
    );
    let values = Network::<f64>::with_parameters(spec(Loss::SquaredError), &theta).unwrap();
    let actual = evaluate(&values, &data).unwrap();
    assert_eq!((actual.accuracy, actual.label_accuracy), (None, None));
}

/// What an attack by gradient inversion climbs: the cosine between a record's gradient and one that was seen.
#[test]
fn the_cosine_of_a_gradient_has_the_derivative_of_its_differences() {
    let net = classifier(vec![L::dense(5), L::Tanh, L::layer_norm(), L::dense(3)]);
    let data = classes(4, 6);
    let v = draw(net.parameter_count(), 8);
    let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let cosine = |x: &[f64], i: usize| {
        let moved = Data::new(data.input(), x.to_vec(), 3, data.label(i).to_vec()).unwrap();
        let g = clipped_gradient(&net, &moved, &[0], Clip::None).unwrap();
        g.sum.iter().zip(&v).map(|(g, v)| g * v).sum::<f64>() / (g.norms[0] * length)
    };
    let actual = pullback(&net, &data, &[0, 1, 2, 3], &v, |n, product| Combination {
        own: -product / (n * n * n * length),
        shared: 1.0 / (n * length),
    })
    .unwrap();
    for i in 0..4 {
        let exact = cosine(data.record(i), i);
        close(&[actual.products[i] / (actual.norms[i] * length)], &[exact], "cosine");
        for j in 0..6 {
            let at = |s: f64| {
                let mut x = data.record(i).to_vec();
                x[j] += s;
                cosine(&x, i)
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((actual.input[i * 6 + j] - difference).abs() < 1e-8, "{i} {j}");
        }
    }
    assert!(pullback(&net, &data, &[0], &v[1..], |_, _| Combination { own: 0.0, shared: 1.0 }).is_err());
}
