//! One linear layer is a generalised linear model: what is measured on it equals what core measures.
//!
//! Core releases `w* + noise`, where record i moves w* by `H⁻¹[a x wᵀ + r I, c x]`; a network releases its gradient,
//! which record i moves by the bracket alone. So at equal parameters a network's measures are those of core's geometry
//! with the identity in place of H, and at the minimiser both agree on the model itself.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_core::{
    fisher::{Directions, Geometry, Records, Release},
    glm::{Family, Fit, Penalty, evaluate, fit},
    rows::InMemory,
};
use leakscope_net::{
    Clip, Data, LayerSpec, Loss, NetSpec, Network, Shape,
    engine::clipped_gradient,
    leak::{Label, Measure, Plis, Spectral, Trace, measure},
    random::{Generator, Purpose},
    train::{Optimizer, Sampling, TrainConfig, Trainer},
};

const N: usize = 60;
const D: usize = 5;

/// The same records as a table of core (an intercept last) and as data of a network.
struct Both {
    family: Family,
    penalty: Penalty,
    rows: InMemory,
    spec: NetSpec,
    data: Data<f64>,
}

fn both(loss: Loss, bias: bool) -> Both {
    let mut rng = Generator::new(4, Purpose::Other, 0);
    let x: Vec<f64> = (0..N * D).map(|_| rng.normal()).collect();
    let y: Vec<f64> = x
        .chunks(D)
        .map(|x| x[0] - 0.5 * x[3] + 0.3 + rng.normal())
        .map(|z| if loss == Loss::SquaredError { z } else { f64::from(u8::from(z > 0.0)) })
        .collect();
    let table: Vec<f64> =
        x.chunks(D).flat_map(|x| x.iter().copied().chain(bias.then_some(1.0)).collect::<Vec<_>>()).collect();
    let layers = vec![LayerSpec::Dense { outputs: 1, bias, frozen: false }];
    Both {
        family: if loss == Loss::SquaredError { Family::Linear } else { Family::Logistic },
        penalty: Penalty::new(0.0, bias),
        rows: InMemory::from_matrix(&table, &y, &[], 16),
        spec: NetSpec::sequential(Shape::Vector([D]), layers, loss),
        data: Data::new(Shape::Vector([D]), x, 1, y).unwrap(),
    }
}

const LOSSES: [Loss; 2] = [Loss::SquaredError, Loss::BinaryCrossEntropy];

fn close(a: f64, b: f64, tolerance: f64, subject: &str) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1e-3), "{subject}: {a} of the network, {b} of core");
}

/// Leakage of all records by core, with the identity for H.
fn of_gradients(at: &Fit, rows: &InMemory, release: Release) -> Vec<[f64; 4 + D]> {
    let p = at.w.len();
    let mut at = at.clone();
    at.hessian = (0..p * p).map(|ij| f64::from(u8::from(ij / p == ij % p))).collect();
    let attributes: Vec<Directions> = (0..D).map(|j| Directions::columns(j..j + 1, p)).collect();
    let geometry = Geometry::new(&at, &attributes, release).unwrap();
    let mut records = Records::default();
    let mut out = Vec::new();
    for block in rows.blocks() {
        geometry.records(block, &mut records);
        for i in 0..block.len() {
            let first = [records.loss[i], records.gradient_norm[i], records.eta[i], records.dfil[i]];
            let all = first.into_iter().chain(records.attribute_eta[i * D..(i + 1) * D].iter().copied());
            out.push(all.collect::<Vec<_>>().try_into().unwrap());
        }
    }
    out
}

#[test]
fn at_any_parameters_the_gradient_leaks_what_core_says() {
    for loss in LOSSES {
        for bias in [false, true] {
            let b = both(loss, bias);
            let mut rng = Generator::new(7, Purpose::Other, 1);
            let w: Vec<f64> = (0..D + usize::from(bias)).map(|_| rng.normal()).collect();
            let net = Network::with_parameters(b.spec.clone(), &w).unwrap();
            let at = evaluate(&b.rows, b.family, b.penalty, &w).unwrap();
            let ids: Vec<usize> = (0..N).collect();
            for label in [Label::Public, Label::Secret] {
                let sigma = 0.6;
                let request = Measure {
                    label,
                    trace: Trace::Elements,
                    eta: Some(Spectral { tolerance: 1e-13, iterations: 60 }),
                    plis: Plis::Skip,
                    ..Measure::new(Clip::None, sigma, 1)
                };
                let release = Release { sigma, releases: 1, label_secret: label == Label::Secret };
                let expected = of_gradients(&at, &b.rows, release);
                for (actual, core) in measure(&net, &b.data, &ids, &request).unwrap().iter().zip(&expected) {
                    let who = format!("{loss:?}, bias {bias}, {label:?}, record {}", actual.record);
                    close(actual.loss, core[0], 1e-12, &format!("loss of {who}"));
                    close(actual.gradient_norm, core[1], 1e-12, &format!("gradient norm of {who}"));
                    close(actual.eta.unwrap().value, core[2], 1e-7, &format!("η of {who}"));
                    close(actual.dfil.unwrap().value, core[3], 1e-11, &format!("dFIL of {who}"));
                    for (j, eta) in core[4..].iter().enumerate() {
                        close(
                            actual.information[j].sqrt(),
                            *eta,
                            1e-10,
                            &format!("η of column {j} of {who}"),
                        );
                    }
                }
            }
            let batch = clipped_gradient(&net, &b.data, &ids, Clip::None).unwrap();
            for (actual, core) in batch.sum.iter().zip(&at.gradient) {
                close(*actual, *core, 1e-11, "the gradient of the objective");
            }
            close(batch.losses.iter().sum::<f64>() / N as f64, at.mean_loss, 1e-12, "the mean loss");
        }
    }
}

#[test]
fn training_in_the_open_ends_at_the_minimiser_of_core() {
    for loss in LOSSES {
        let b = both(loss, true);
        let best = fit(&b.rows, b.family, b.penalty).unwrap();
        let config = TrainConfig {
            seed: 1,
            randomness: leakscope_net::train::Randomness::default(),
            ..TrainConfig::open(
                Optimizer::Sgd { momentum: 0.9 },
                if loss == Loss::SquaredError { 0.1 } else { 0.8 },
                Sampling::Shuffle { batch: N },
            )
        };
        let mut run = Trainer::new(Network::new(b.spec.clone(), 3).unwrap(), &b.data, config).unwrap();
        for _ in 0..1500 {
            run.step().unwrap();
        }
        for (actual, core) in run.network().parameters().unwrap().iter().zip(&best.w) {
            close(*actual, *core, 1e-9, "a coefficient");
        }
    }
}
