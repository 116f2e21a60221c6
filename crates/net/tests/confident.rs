//! Records that a network is sure about: losses from 1 to 1e-30, every loss, every clip, both precisions, against
//! gradients written out and differentiated at 200 digits (`testdata/net/confident.py`).

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Real, Shape,
    leak::{Label, Measure, Spectral, Trace, measure},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    networks: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    net: Weights,
    x: Vec<f64>,
    y: Vec<f64>,
    clip: String,
    bound: f64,
    value: f64,
    norm: f64,
    released: f64,
    trace: f64,
    trace_with_label: f64,
    eta: f64,
    eta_with_label: f64,
    plis: f64,
    plis_with_label: f64,
}

#[derive(Deserialize)]
struct Weights {
    loss: Loss,
    w1: Vec<f64>,
    b1: Vec<f64>,
    w2: Vec<f64>,
    b2: Vec<f64>,
}

impl Case {
    fn clip(&self) -> Clip {
        match self.clip.as_str() {
            "none" => Clip::None,
            "hard" => Clip::Hard { bound: self.bound },
            "gelu" => Clip::Gelu { bound: self.bound },
            other => panic!("no clip is called {other}"),
        }
    }

    fn network<T: Real>(&self) -> Network<T> {
        let layers = vec![L::dense(3), L::Tanh, L::dense(3)];
        let spec = NetSpec::sequential(Shape::Vector([3]), layers, self.net.loss);
        let n = &self.net;
        let theta: Vec<T> =
            [&n.w1, &n.b1, &n.w2, &n.b2].into_iter().flatten().map(|v| T::from_f64(*v)).collect();
        Network::with_parameters(spec, &theta).unwrap()
    }
}

/// The worst error seen, relative to the exact value and to what the clip makes of a rounded norm.
fn worst<T: Real>(label: Label) -> f64 {
    let golden: Golden = serde_json::from_str(include_str!("../../../testdata/net/confident.json")).unwrap();
    assert_eq!(golden.networks.len(), 27 * 9);
    let mut worst = 0.0_f64;
    for case in &golden.networks {
        let net = case.network::<T>();
        let of = |v: &[f64]| v.iter().map(|v| T::from_f64(*v)).collect::<Vec<T>>();
        let data = Data::new(Shape::Vector([3]), of(&case.x), 3, of(&case.y)).unwrap();
        let request = Measure {
            label,
            trace: Trace::Exact,
            eta: Some(Spectral { tolerance: 1e-12, iterations: 60 }),
            // the noise is 1 whatever the bound
            ..Measure::new(case.clip(), 1.0 / case.clip().unit(), 1)
        };
        let actual = &measure(&net, &data, &[0], &request).unwrap()[0];
        let (trace, eta, plis) = match label {
            Label::Public => (case.trace, case.eta, case.plis),
            Label::Secret => (case.trace_with_label, case.eta_with_label, case.plis_with_label),
        };
        // near C the hard clip is not differentiable, far out the smooth one turns δ into h²δ
        let h = case.norm / case.clip().unit() - 1.0;
        let bend = if matches!(case.clip(), Clip::Gelu { .. }) { 1.0 + h * h } else { 1.0 };
        for (name, actual, exact) in [
            ("loss", actual.loss, case.value),
            ("norm", actual.gradient_norm, case.norm),
            ("released norm", actual.released_norm, case.released),
            ("trace", actual.trace.unwrap().value, trace),
            ("eta", actual.eta.unwrap().value, eta),
            ("plis", actual.plis.unwrap(), plis),
        ] {
            // beyond a hard clip nothing is left of PLIS but what differences of 1e-60 leave in the reference
            let scale = exact.abs().max(1e-40 * case.released * eta);
            // η is found to the residual that was asked for
            let slack = if name == "eta" { 1e-12 } else { 0.0 };
            let error = ((actual - exact).abs() / (scale * bend) - slack).max(0.0);
            if error > worst {
                eprintln!(
                    "{:?} {} at loss {:e}: {name} {actual:e}, exactly {exact:e}: {error:e}",
                    case.net.loss, case.clip, case.value
                );
            }
            worst = worst.max(error);
        }
    }
    worst
}

#[test]
fn confident_records_are_right_in_double_precision() {
    // logits of 70 are rounded to 1e-14, which δ has as a relative error; squares double it
    assert!(worst::<f64>(Label::Public) < 2e-13);
    assert!(worst::<f64>(Label::Secret) < 2e-13);
}

#[test]
fn confident_records_are_right_in_single_precision() {
    // logits of 70 are rounded to 4e-6
    assert!(worst::<f32>(Label::Public) < 4e-5);
    assert!(worst::<f32>(Label::Secret) < 4e-5);
}
