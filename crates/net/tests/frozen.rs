//! Parameters frozen one by one: they take no part in what is released, and do not move.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::clipped_gradient,
    io::Tensors,
    leak::{Measure, Plis, Spectral, Trace, measure},
    random::{Generator, Purpose},
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

const SIDE: usize = 5;
const D: usize = SIDE * SIDE;

/// Every kind of layer that has parameters, convolutions in both forms.
fn network() -> Network<f64> {
    let layers = vec![
        L::conv(3, 2, 1, 0),
        L::batch_norm(),
        L::Tanh,
        L::conv(6, 3, 2, 0),
        L::Gelu,
        L::Flatten,
        L::dense(7),
        L::layer_norm(),
        L::Tanh,
        L::dense(3),
    ];
    let spec = NetSpec::sequential(Shape::Image([SIDE, SIDE, 1]), layers, Loss::SoftmaxCrossEntropy);
    let mut net = Network::new(spec, 3).unwrap();
    net.set_statistics(1, &[0.0; 3], &[1.0; 3]).unwrap();
    net
}

fn data(n: usize) -> Data<f64> {
    let mut rng = Generator::new(6, Purpose::Other, 0);
    let x = (0..n * D).map(|_| rng.normal()).collect();
    let labels: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
    Data::classes(Shape::Image([SIDE, SIDE, 1]), x, 3, &labels).unwrap()
}

/// Two of three parameters, by chance.
fn mask(n: usize) -> Vec<bool> {
    let mut rng = Generator::new(2, Purpose::Other, 3);
    (0..n).map(|_| rng.uniform() < 0.66).collect()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn measures_are_those_of_the_gradient_without_the_frozen_parameters() {
    let (whole, mut net, data) = (network(), network(), data(4));
    let frozen = mask(net.parameter_count());
    net.freeze(&frozen).unwrap();
    assert_eq!(net.frozen().unwrap(), frozen);
    let of = |net: &Network<f64>, data: &Data<f64>, i: usize| {
        clipped_gradient(net, data, &[i], Clip::None).unwrap().sum
    };
    let sigma = 0.8;
    let request = Measure {
        trace: Trace::Elements,
        eta: Some(Spectral { tolerance: 1e-10, iterations: 60 }),
        plis: Plis::Elements,
        ..Measure::new(Clip::None, sigma, 1)
    };
    for (i, actual) in measure(&net, &data, &[0, 1, 2, 3], &request).unwrap().iter().enumerate() {
        let g = of(&net, &data, i);
        let expected: Vec<f64> =
            of(&whole, &data, i).iter().zip(&frozen).map(|(g, f)| if *f { 0.0 } else { *g }).collect();
        assert!(g.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "the gradient of record {i}");
        assert!((actual.gradient_norm - norm(&expected)).abs() < 1e-12);
        // the Jacobian by central differences of the masked gradient of the whole network
        let h = 1e-5;
        let column = |j: usize| -> Vec<f64> {
            let at = |e: f64| {
                let mut x = data.record(i).to_vec();
                x[j] += e;
                let one = Data::new(data.input(), x, 3, data.label(i).to_vec()).unwrap();
                of(&whole, &one, 0)
            };
            let both = at(h).into_iter().zip(at(-h)).zip(&frozen);
            both.map(|((a, b), f)| if *f { 0.0 } else { (a - b) / (2.0 * h) }).collect()
        };
        let j: Vec<Vec<f64>> = (0..D).map(column).collect();
        for (k, c) in j.iter().enumerate() {
            let information = norm(c).powi(2) / (sigma * sigma);
            assert!((actual.information[k] - information).abs() < 1e-6 * information.max(1.0), "{i} {k}");
            let plis = 2.0 * c.iter().zip(&expected).map(|(a, b)| a * b).sum::<f64>() / (sigma * sigma);
            assert!((actual.plis_parts[k] - plis).abs() < 1e-6 * plis.abs().max(1.0), "PLIS of {i} {k}");
        }
        let mut v = vec![1.0; D];
        let mut value = 0.0;
        for _ in 0..4000 {
            let mut u = vec![0.0; g.len()];
            j.iter().zip(&v).for_each(|(c, s)| u.iter_mut().zip(c).for_each(|(u, c)| *u += s * c));
            v = j.iter().map(|c| c.iter().zip(&u).map(|(a, b)| a * b).sum()).collect();
            value = norm(&v);
            v.iter_mut().for_each(|x| *x /= value);
        }
        let eta = value.sqrt() / sigma;
        assert!((actual.eta.unwrap().value / eta - 1.0).abs() < 1e-5, "η of {i}");
    }
}

#[test]
fn frozen_parameters_stay_and_travel_with_the_weights() {
    let data = data(40);
    let mut net = network();
    let frozen = mask(net.parameter_count());
    net.freeze(&frozen).unwrap();
    let start = net.parameters().unwrap();
    let config = TrainConfig {
        weight_decay: 0.1,
        privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 1.0 }),
        tracking: Tracking::Drawn { probes: 2 },
        seed: 1,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::adam(), 0.01, Sampling::Poisson { rate: 0.2 })
    };
    let mut run = Trainer::new(net, &data, config.clone()).unwrap();
    for _ in 0..3 {
        run.step().unwrap();
    }
    let mut again = Trainer::resume(&run.checkpoint().unwrap(), &data, config).unwrap();
    run.step().unwrap();
    again.step().unwrap();
    assert_eq!(run.network().parameters().unwrap(), again.network().parameters().unwrap());
    for (i, (a, b)) in start.iter().zip(&run.network().parameters().unwrap()).enumerate() {
        assert_eq!(a == b, frozen[i], "parameter {i}");
    }
    // the file says what is frozen
    let bytes = run.network().to_tensors().unwrap().to_bytes().unwrap();
    let mut other = network();
    other.load_tensors(&Tensors::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!(other.frozen(), run.network().frozen());
    assert_eq!(other.trained(), run.network().trained());
}

#[test]
fn masks_that_leave_nothing_or_do_not_fit_are_refused_and_whole_layers_are_left_out() {
    let mut net = network();
    let n = net.parameter_count();
    assert!(net.freeze(&vec![true; n]).is_err());
    assert!(net.freeze(&vec![true; n - 1]).is_err());
    assert_eq!(net.frozen(), None);
    // all but the last layer: the same as freezing those layers
    let last = net.tensors().iter().rev().nth(1).unwrap().offset;
    net.freeze(&(0..n).map(|i| i < last).collect::<Vec<_>>()).unwrap();
    let mut spec = network().spec().clone();
    spec.layers[..9].iter_mut().for_each(|n| n.layer.set_frozen(true));
    let layers = Network::with_parameters(spec, &net.parameters().unwrap()).unwrap();
    let (data, subject) = (data(3), Measure::new(Clip::Gelu { bound: 0.5 }, 1.0, 1));
    let (a, b) = (measure(&net, &data, &[0, 1, 2], &subject), measure(&layers, &data, &[0, 1, 2], &subject));
    for (a, b) in a.unwrap().iter().zip(&b.unwrap()) {
        assert!((a.gradient_norm - b.gradient_norm).abs() < 1e-12);
        assert!((a.trace.unwrap().value / b.trace.unwrap().value - 1.0).abs() < 1e-10);
        assert!((a.plis.unwrap() / b.plis.unwrap() - 1.0).abs() < 1e-10);
    }
}
