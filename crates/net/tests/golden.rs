//! Whole networks against JAX: loss, norms, `‖Ju‖²`, trace, η, PLIS of the clipped gradient. The script that made the
//! numbers, by automatic differentiation of materialised gradients, is `testdata/net/golden.py`.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Real, Shape,
    leak::{Label, Measure, Plis, RecordLeak, Spectral, Trace, measure, tangent_squares},
    preset::Preset,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    name: String,
    parameters: usize,
    sigma: f64,
    clip: f64,
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    loss: f64,
    gradient_norm: f64,
    released_norm: f64,
    tangent_square: f64,
    trace: f64,
    trace_with_label: f64,
    eta: f64,
    eta_with_label: f64,
    along: f64,
    plis: f64,
    plis_with_label: f64,
    plis_first: Vec<f64>,
}

/// The formula of the script.
fn wave<T: Real>(n: usize, salt: usize, scale: f64) -> Vec<T> {
    let value = |i: usize| (0.7 + 1.3 * salt as f64 + 0.37 * i as f64 + 0.011 * (i * i % 1009) as f64).sin();
    (0..n).map(|i| T::from_f64(scale * value(i))).collect()
}

fn golden(name: &str) -> Golden {
    let all: Vec<Golden> = serde_json::from_str(include_str!("../../../testdata/net/golden.json")).unwrap();
    all.into_iter().find(|g| g.name == name).unwrap()
}

fn data<T: Real>(net: &Network<T>) -> Data<T> {
    let (d, k) = (net.input().len(), net.outputs());
    let x = (0..2).flat_map(|r| wave::<T>(d, 10 + r, 1.0)).collect();
    let mut y = vec![T::ZERO; 2 * k];
    (0..2).for_each(|r| y[r * k + 3 * r % k] = T::ONE);
    Data::new(net.input(), x, k, y).unwrap()
}

fn agrees<T: Real>(net: &Network<T>, g: &Golden, tolerance: f64, traces: bool) {
    assert_eq!(net.parameter_count(), g.parameters);
    let data = data(net);
    let close = |request: &str, actual: f64, exact: f64| {
        let ok = (actual - exact).abs() <= tolerance * exact.abs().max(1e-9);
        assert!(ok, "{} {request}: {actual} against {exact}", g.name);
    };
    let clip = Clip::Gelu { bound: g.clip };
    for label in [Label::Public, Label::Secret] {
        let request = Measure {
            label,
            trace: if traces { Trace::Exact } else { Trace::Skip },
            eta: Some(Spectral { tolerance: 1e-9, iterations: 60 }),
            plis: Plis::Elements,
            ..Measure::new(clip, g.sigma, 1)
        };
        let actual: Vec<RecordLeak> = measure(net, &data, &[0, 1], &request).unwrap();
        for (f, r) in actual.iter().zip(&g.records) {
            close("loss", f.loss, r.loss);
            close("gradient norm", f.gradient_norm, r.gradient_norm);
            close("released norm", f.released_norm, r.released_norm);
            let secret = label == Label::Secret;
            if traces {
                close("trace", f.trace.unwrap().value, if secret { r.trace_with_label } else { r.trace });
                assert_eq!(f.trace.unwrap().standard_error, None);
            }
            close("eta", f.eta.unwrap().value, if secret { r.eta_with_label } else { r.eta });
            close("plis", f.plis.unwrap(), if secret { r.plis_with_label } else { r.plis });
            if !secret {
                close("along", f.along.unwrap(), r.along);
            }
            for (f, e) in f.plis_parts.iter().zip(&r.plis_first) {
                assert!((f - e).abs() <= tolerance * r.plis, "{} plis element: {f} against {e}", g.name);
            }
        }
    }
    let d = net.input().len();
    let u: Vec<T> = (0..2).flat_map(|r| wave::<T>(d, 20 + r, 1.0)).collect();
    let squares = tangent_squares(net, &data, &[0, 1], &u, &Measure::new(clip, g.sigma, 1)).unwrap();
    for (s, r) in squares.iter().zip(&g.records) {
        close("‖Ju‖²", *s, r.tangent_square);
    }
}

fn cnn<T: Real>() -> Network<T> {
    let spec = Preset::CnnMnist.spec(Shape::Image([28, 28, 1]), 10);
    Network::with_parameters(spec, &wave(26_010, 1, 0.2)).unwrap()
}

#[test]
fn the_cnn_of_table_b7_has_its_parameters_and_agrees_in_f64() {
    agrees(&cnn::<f64>(), &golden("cnn-mnist"), 1e-9, true);
}

#[test]
fn the_cnn_agrees_in_f32_to_its_precision() {
    agrees(&cnn::<f32>(), &golden("cnn-mnist"), 2e-4, false);
}

#[test]
fn every_other_kind_of_layer_agrees() {
    let residual = L::Residual { layers: vec![L::conv(6, 3, 1, 1), L::layer_norm(), L::Sigmoid] };
    let layers = vec![
        L::conv(6, 3, 1, 1),
        L::batch_norm(),
        L::Gelu,
        residual,
        L::max_pool(2, 2),
        L::Flatten,
        L::dense(8),
        L::Relu,
        L::dense(4),
    ];
    let spec = NetSpec::sequential(Shape::Image([5, 5, 2]), layers, Loss::BinaryCrossEntropy);
    let golden = golden("mix");
    let mut net = Network::<f64>::with_parameters(spec, &wave(golden.parameters, 1, 0.4)).unwrap();
    let variance: Vec<f64> = wave::<f64>(6, 51, 0.5).iter().map(|v| 1.0 + v).collect();
    net.set_statistics(1, &wave::<f64>(6, 50, 0.3), &variance).unwrap();
    agrees(&net, &golden, 1e-9, true);
}
