//! The models that the informed adversary trains: all of them as one computation, linear ones by their own short cut.

use super::super::model::{facts, name_of, spec};
use super::informed::InformedRequest;
use crate::{Failure, Result};
use leakscope_net::{
    Clip, Loss, Network, Shape,
    attack::informed::{Dense, Linear, Rest, Training, train_many},
    preset::Preset,
    random::{Generator, Purpose},
    train::Optimizer,
};
use leakscope_report::net::NetworkFacts;

/// Models of one kind, and how they are trained.
pub(super) struct Models {
    kind: Kind,
    name: String,
    outputs: usize,
    loss: Loss,
}

enum Kind {
    Linear(Box<Linear>),
    Dense(Box<Dense>),
}

/// Which parameters are trained: a share of them, the largest at the start.
fn largest(start: &[f64], share: f64) -> Vec<bool> {
    let mut sizes: Vec<f64> = start.iter().map(|v| v.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let kept = ((share * sizes.len() as f64).round() as usize).clamp(1, sizes.len());
    let least = sizes[kept - 1];
    start.iter().map(|v| v.abs() >= least).collect()
}

impl Models {
    /// One start for all, for records of a shape and so many outputs.
    pub(super) fn new(request: &InformedRequest, (shape, k): (Shape, usize), seed: u64) -> Result<Self> {
        let loss = if k == 1 { Loss::BinaryCrossEntropy } else { Loss::SoftmaxCrossEntropy };
        let kind = match Preset::of_name(&request.network) {
            Some(Preset::Linear) => Kind::Linear(Box::new(linear(request, shape.len(), k, loss, seed)?)),
            Some(Preset::Mlp | Preset::MlpAttack | Preset::CnnMnist | Preset::CnnCifar) | None => {
                Kind::Dense(Box::new(dense(request, (&request.network, shape), k, loss, seed)?))
            }
        };
        Ok(Self { kind, name: name_of(&request.network), outputs: k, loss })
    }

    pub(super) fn is_linear(&self) -> bool {
        matches!(self.kind, Kind::Linear(_))
    }

    /// How all models are trained.
    pub(super) fn training(&self) -> &Training {
        match &self.kind {
            Kind::Linear(m) => &m.training,
            Kind::Dense(m) => &m.training,
        }
    }

    /// Which parameters are trained, and released.
    pub(super) fn trained(&self) -> &[bool] {
        &self.training().trained
    }

    /// A model for each target.
    pub(super) fn train(
        &self,
        known: &Rest,
        targets: &Rest,
        seed: u64,
        watch: &(dyn Fn(u64) -> bool + Sync),
    ) -> std::result::Result<Vec<f64>, leakscope_net::Error> {
        match &self.kind {
            Kind::Linear(m) => train_many(m, known, targets, seed, watch),
            Kind::Dense(m) => m.train_many(known, targets, seed, watch),
        }
    }

    pub(super) fn facts(&self, shape: Shape) -> NetworkFacts {
        NetworkFacts {
            name: self.name.clone(),
            parameters: self.trained().len() as u64,
            trained: self.trained().iter().filter(|t| **t).count() as u64,
            input: shape.dims().into_iter().map(|v| v as u64).collect(),
            outputs: self.outputs as u64,
            loss: self.loss.name().to_owned(),
            device: None,
        }
    }
}

/// How all models are trained, from their start.
fn training(request: &InformedRequest, start: Vec<f64>) -> Result<Training> {
    Ok(Training {
        trained: largest(&start, request.density),
        start,
        optimizer: if request.sgd { Optimizer::Sgd { momentum: 0.0 } } else { Optimizer::adam() },
        learning_rate: request.lr,
        weight_decay: request.weight_decay,
        clip: request.release.clip()?.unwrap_or(Clip::None),
        sigma: request.release.sigma()?.unwrap_or(0.0),
        steps: request.steps,
    })
}

fn linear(request: &InformedRequest, d: usize, k: usize, loss: Loss, seed: u64) -> Result<Linear> {
    let mut rng = Generator::new(seed, Purpose::Weights, 0);
    // Glorot and Bengio 2010 for weights, N(0, 0.01²) for biases
    let scale = (2.0 / (d + k) as f64).sqrt();
    let start: Vec<f64> =
        (0..k * (d + 1)).map(|i| rng.normal() * if i % (d + 1) == d { 1e-2 } else { scale }).collect();
    Ok(Linear { inputs: d, outputs: k, loss, training: training(request, start)?, shifts: vec![] })
}

fn dense(
    request: &InformedRequest,
    (network, shape): (&str, Shape),
    k: usize,
    loss: Loss,
    seed: u64,
) -> Result<Dense> {
    let wrong = |e: &dyn std::fmt::Display| Failure::option("network", format!("{network}: {e}"));
    let spec = spec(network, shape, k, Some(loss))?;
    Dense::supports(&spec).map_err(|e| wrong(&e))?;
    if spec.loss != loss {
        let message = format!("its loss is {}, and {k} outputs need {}", spec.loss.name(), loss.name());
        return Err(wrong(&message));
    }
    let net = Network::<f64>::new(spec.clone(), seed).map_err(|e| wrong(&e))?;
    let own = facts(&net, network);
    if net.input() != shape || own.outputs != k as u64 {
        let message = format!(
            "it reads {:?} and has {} outputs: these records are {:?} and need {k}",
            net.input().dims(),
            own.outputs,
            shape.dims()
        );
        return Err(wrong(&message));
    }
    let mut model = Dense::new(&spec, net.parameters()?).map_err(|e| wrong(&e))?;
    model.training = training(request, net.parameters()?)?;
    // layers that are frozen stay so
    for (trained, own) in model.training.trained.iter_mut().zip(net.trained()) {
        *trained &= own;
    }
    if !model.training.trained.contains(&true) {
        return Err(Failure::option("density", "no parameter is left to train"));
    }
    Ok(model)
}
