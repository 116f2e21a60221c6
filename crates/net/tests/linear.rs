//! One linear layer is a generalised linear model: its gradient's Jacobian is that of MATHS §1 without the Hessian,
//! `J = [a x wᵀ + r I, c x]`, and everything measured on it has a dense formula.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_core::{fisher::Directions, special::normal_cdf};
use leakscope_net::{
    Clip, Data, LayerSpec, Loss, NetSpec, Network, Shape,
    leak::{Label, Measure, Plis, RecordLeak, Spectral, Trace, information_along, measure},
    random::{Generator, Purpose},
};

const D: usize = 6;

struct Model {
    net: Network<f64>,
    data: Data<f64>,
    w: Vec<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
}

fn model(loss: Loss) -> Model {
    let mut rng = Generator::new(5, Purpose::Other, 0);
    let w: Vec<f64> = (0..D).map(|_| rng.normal()).collect();
    let x: Vec<f64> = (0..8 * D).map(|_| rng.normal()).collect();
    let y: Vec<f64> = match loss {
        Loss::SquaredError => (0..8).map(|_| rng.normal()).collect(),
        _ => (0..8).map(|i| f64::from(i % 2)).collect(),
    };
    let layers = vec![LayerSpec::Dense { outputs: 1, bias: false, frozen: false }];
    let spec = NetSpec::sequential(Shape::Vector([D]), layers, loss);
    let net = Network::with_parameters(spec, &w).unwrap();
    let data = Data::new(Shape::Vector([D]), x.clone(), 1, y.clone()).unwrap();
    Model { net, data, w, x, y }
}

/// `r`, `a` and c = −1 of the families in MATHS §1.
fn derivatives(loss: Loss, z: f64, y: f64) -> (f64, f64) {
    match loss {
        Loss::SquaredError => (z - y, 1.0),
        _ => {
            let s = 1.0 / (1.0 + (-z).exp());
            (s - y, s * (1.0 - s))
        }
    }
}

/// `D × (D+1)`, row-major.
fn jacobian(loss: Loss, w: &[f64], x: &[f64], y: f64) -> Vec<f64> {
    let z: f64 = w.iter().zip(x).map(|(w, x)| w * x).sum();
    let (r, a) = derivatives(loss, z, y);
    let mut j = vec![0.0; D * (D + 1)];
    for i in 0..D {
        for k in 0..D {
            j[i * (D + 1) + k] = a * x[i] * w[k] + if i == k { r } else { 0.0 };
        }
        j[i * (D + 1) + D] = -x[i];
    }
    j
}

/// The largest eigenvalue of `JᵀJ` over the first `n` columns, by ten thousand plain power iterations.
fn spectral(j: &[f64], n: usize) -> f64 {
    let mut v = vec![1.0; n];
    let mut norm = 0.0;
    for _ in 0..10_000 {
        let u: Vec<f64> = (0..D).map(|i| (0..n).map(|k| j[i * (D + 1) + k] * v[k]).sum()).collect();
        let t: Vec<f64> = (0..n).map(|k| (0..D).map(|i| j[i * (D + 1) + k] * u[i]).sum()).collect();
        norm = t.iter().map(|t| t * t).sum::<f64>().sqrt();
        v = t.iter().map(|t| t / norm).collect();
    }
    norm
}

#[test]
fn one_linear_layer_equals_the_dense_formulas() {
    for loss in [Loss::SquaredError, Loss::BinaryCrossEntropy] {
        let m = model(loss);
        for (label, columns) in [(Label::Public, D), (Label::Secret, D + 1)] {
            let sigma = 0.7;
            let request = Measure {
                label,
                trace: Trace::Elements,
                eta: Some(Spectral { tolerance: 1e-12, iterations: 50 }),
                plis: Plis::Elements,
                ..Measure::new(Clip::None, sigma, 1)
            };
            let actual: Vec<RecordLeak> =
                measure(&m.net, &m.data, &(0..8).collect::<Vec<_>>(), &request).unwrap();
            for (i, f) in actual.iter().enumerate() {
                let x = &m.x[i * D..(i + 1) * D];
                let j = jacobian(loss, &m.w, x, m.y[i]);
                let z: f64 = m.w.iter().zip(x).map(|(w, x)| w * x).sum();
                let (r, _) = derivatives(loss, z, m.y[i]);
                let columns_of = |i: usize| j[i * (D + 1)..i * (D + 1) + columns].iter();
                let trace: f64 = (0..D).flat_map(columns_of).map(|v| v * v).sum::<f64>() / (sigma * sigma);
                assert!((f.trace.unwrap().value / trace - 1.0).abs() < 1e-11);
                assert!((f.dfil.unwrap().value * columns as f64 / trace - 1.0).abs() < 1e-11);
                for (k, actual) in f.information.iter().enumerate() {
                    let square: f64 =
                        (0..D).map(|i| j[i * (D + 1) + k].powi(2)).sum::<f64>() / (sigma * sigma);
                    assert!((actual / square - 1.0).abs() < 1e-11, "element {k}");
                }
                assert_eq!(f.information.len(), columns);
                let eta = spectral(&j, columns).sqrt() / sigma;
                assert!((f.eta.unwrap().value / eta - 1.0).abs() < 1e-6, "{} {eta}", f.eta.unwrap().value);
                // PLIS = 2 gᵀJ/σ², g = r x
                for k in 0..D {
                    let plis: f64 =
                        (0..D).map(|i| 2.0 * r * x[i] * j[i * (D + 1) + k]).sum::<f64>() / (sigma * sigma);
                    assert!((f.plis_parts[k] - plis).abs() < 1e-10 * plis.abs().max(1.0));
                }
            }
        }
    }
}

/// Mueller fig. 1: in a private linear regression the informative features have high FIL and PLIS, the others nearly
/// none. Fifteen features, three of them informative; (0.2, 1e-3).
#[test]
fn informative_features_of_a_private_regression_stand_out() {
    use leakscope_net::train::{
        Optimizer, Privacy, Randomness, Sampling, TrainConfig, Trainer, account, sigma_for,
    };
    let (n, d) = (2000, 15);
    let informative = [2, 6, 9];
    let mut rng = Generator::new(9, Purpose::Other, 0);
    let x: Vec<f64> = (0..n * d).map(|_| rng.normal()).collect();
    let y: Vec<f64> = x
        .chunks(d)
        .map(|x| informative.iter().map(|&j| 2.0 * x[j]).sum::<f64>() + 0.1 * rng.normal())
        .collect();
    let layers = vec![LayerSpec::Dense { outputs: 1, bias: false, frozen: false }];
    let spec = NetSpec::sequential(Shape::Vector([d]), layers, Loss::SquaredError);
    let data = Data::new(Shape::Vector([d]), x, 1, y).unwrap();
    let (clip, sampling, steps) = (Clip::Gelu { bound: 5.0 }, Sampling::Poisson { rate: 0.25 }, 20);
    let privacy = Privacy { clip, sigma: sigma_for(0.2, 1e-3, clip, sampling, steps, n).unwrap() };
    let config = TrainConfig {
        privacy: Some(privacy),
        delta: 1e-3,
        seed: 2,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.3, sampling)
    };
    let mut run = Trainer::new(Network::<f64>::new(spec, 1).unwrap(), &data, config.clone()).unwrap();
    for _ in 0..steps {
        run.step().unwrap();
    }
    // what the run would state with noise from the system
    let stated = TrainConfig { randomness: Randomness::System, ..config };
    let epsilon = account(&stated, steps, n).unwrap().unwrap().epsilon();
    assert!(epsilon <= 0.2 && epsilon > 0.19, "{epsilon}");
    let request = Measure {
        trace: Trace::Elements,
        plis: Plis::Elements,
        ..Measure::new(privacy.clip, privacy.sigma, 1)
    };
    let leaks = measure(run.network(), &data, &(0..n).collect::<Vec<_>>(), &request).unwrap();
    let mean = |f: &dyn Fn(&RecordLeak, usize) -> f64| -> Vec<f64> {
        (0..d).map(|j| leaks.iter().map(|l| f(l, j)).sum::<f64>() / n as f64).collect()
    };
    for values in [mean(&|l, j| l.information[j]), mean(&|l, j| l.plis_parts[j].abs())] {
        let (yes, no): (Vec<_>, Vec<_>) = (0..d).partition(|j| informative.contains(j));
        let least = yes.iter().map(|&j| values[j]).fold(f64::INFINITY, f64::min);
        let most = no.iter().map(|&j| values[j]).fold(0.0, f64::max);
        assert!(least > 1.5 * most, "least informative {least}, most uninformative {most}: {values:?}");
    }
}

/// The information along directions against the dense Jacobian of the clipped gradient: single values, a block, directions
/// that are no unit vectors, the label among them.
#[test]
fn parts_of_a_record_have_the_dense_information() {
    for loss in [Loss::SquaredError, Loss::BinaryCrossEntropy] {
        let m = model(loss);
        for (label, clip) in [
            (Label::Public, Clip::None),
            (Label::Secret, Clip::None),
            (Label::Secret, Clip::Hard { bound: 0.4 }),
            (Label::Public, Clip::Gelu { bound: 2.0 }),
        ] {
            let rows = if label == Label::Secret { D + 1 } else { D };
            let skewed: Vec<f64> = (0..rows * 2).map(|i| ((i * 7 + 3) % 5) as f64 - 1.5).collect();
            let sets = [
                Directions::columns(2..3, rows),
                Directions::columns(1..4, rows),
                Directions::columns(rows - 1..rows, rows),
                Directions { basis: skewed, count: 2 },
            ];
            let request = Measure { label, ..Measure::new(clip, 1.5, 1) };
            let actual = information_along(&m.net, &m.data, &[0, 3, 7], &sets, &request).unwrap();
            assert_eq!(actual.len(), 3);
            for (at, i) in [0, 3, 7].into_iter().enumerate() {
                let j = clipped_jacobian(&m, loss, i, clip);
                let s2 = request.noise() * request.noise();
                for (set, matrix) in sets.iter().zip(&actual[at]) {
                    let c = set.count;
                    // J B, then its Gram matrix
                    let mut jb = vec![0.0; D * c];
                    for (a, b, k) in
                        (0..D).flat_map(|a| (0..c).flat_map(move |b| (0..rows).map(move |k| (a, b, k))))
                    {
                        jb[a * c + b] += j[a * (D + 1) + k] * set.basis[k * c + b];
                    }
                    for (a, b) in (0..c).flat_map(|a| (0..c).map(move |b| (a, b))) {
                        let dense: f64 = (0..D).map(|k| jb[k * c + a] * jb[k * c + b]).sum::<f64>() / s2;
                        let error = (matrix[a * c + b] - dense).abs();
                        // the slope of a clip is by differences: nine digits
                        let digits = if clip == Clip::None { 1e-11 } else { 1e-8 };
                        assert!(
                            error < digits * (1.0 + dense.abs()),
                            "{loss:?} {clip:?} {i}: {matrix:?} {dense}"
                        );
                    }
                }
            }
            // alone or with others
            let alone = information_along(&m.net, &m.data, &[3], &sets, &request).unwrap();
            assert_eq!(alone[0], actual[1]);
        }
        let wrong = [Directions { basis: vec![1.0; D - 1], count: 1 }];
        assert!(information_along(&m.net, &m.data, &[0], &wrong, &Measure::new(Clip::None, 1.0, 1)).is_err());
    }
}

/// The Jacobian of the clipped gradient, `D × (D+1)`: `s J + (slope − s) ĝ ĝᵀ J`, the slope of the length by differences.
fn clipped_jacobian(m: &Model, loss: Loss, i: usize, clip: Clip) -> Vec<f64> {
    let x = &m.x[i * D..(i + 1) * D];
    let j = jacobian(loss, &m.w, x, m.y[i]);
    if clip == Clip::None {
        return j;
    }
    let z: f64 = m.w.iter().zip(x).map(|(w, x)| w * x).sum();
    let g: Vec<f64> = x.iter().map(|x| derivatives(loss, z, m.y[i]).0 * x).collect();
    // the clip's own derivative, along the gradient, by differences of the length it lets through
    let length = g.iter().map(|v| v * v).sum::<f64>().sqrt();
    let let_through = |n: f64| match clip {
        Clip::None => n,
        Clip::Hard { bound } => n.min(bound),
        // n/(GELU(n/C − 1) + 1)
        Clip::Gelu { bound } => {
            let h = n / bound - 1.0;
            n / (h * normal_cdf(h) + 1.0)
        }
    };
    let (s, e) = (let_through(length) / length, 1e-5 * length);
    let slope = (let_through(length + e) - let_through(length - e)) / (2.0 * e);
    let mut out = vec![0.0; D * (D + 1)];
    for k in 0..=D {
        let along: f64 = (0..D).map(|a| g[a] * j[a * (D + 1) + k]).sum::<f64>() / (length * length);
        for a in 0..D {
            out[a * (D + 1) + k] = s * j[a * (D + 1) + k] + (slope - s) * along * g[a];
        }
    }
    out
}
