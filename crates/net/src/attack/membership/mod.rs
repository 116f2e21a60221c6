//! Was a record among those that a model was trained on?
//!
//! | file | what |
//! |---|---|
//! | `roc` | true against false positives of any score |
//! | `shadow` | models trained as the one attacked was, on half of the records each |
//! | `lira` | the likelihood ratio of being in and out (Carlini et al. 2022) |
//! | `canary` | one run with canaries, for a lower bound on its ε (Steinke, Nasr, Jagielski 2023) |
//!
//! Scores are larger for records that look like members.

mod canary;
mod lira;
mod roc;
mod shadow;

pub use canary::{CanaryRun, canary_run};
pub use lira::lira;
pub use roc::{Operating, Roc};
pub use shadow::{Recipe, Shadow, shadows};

use crate::{
    Clip, Data, Loss, Network, Real,
    engine::{Workers, clipped_gradient},
    error::Result,
    leak::Label,
};

/// What an attacker knows of records from one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Signals {
    /// Loss of every record.
    pub losses: Vec<f64>,
    /// `‖g‖` of every record.
    pub norms: Vec<f64>,
    /// How sure the model is of the label: `log p/(1 − p)` of its probability; minus the loss where there is none.
    pub confidences: Vec<f64>,
}

/// What a model says of records.
pub fn signals<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Signals> {
    let all: Vec<usize> = (0..data.len()).collect();
    let gradient = clipped_gradient(net, data, &all, Clip::None)?;
    let confidence = |loss: &f64| match net.loss() {
        // p = e^{−ℓ}
        Loss::SoftmaxCrossEntropy | Loss::BinaryCrossEntropy => {
            let l = loss.max(1e-300);
            -l - (-(-l).exp_m1()).ln()
        }
        Loss::SquaredError => -loss,
    };
    let confidences = gradient.losses.iter().map(confidence).collect();
    Ok(Signals { losses: gradient.losses, norms: gradient.norms, confidences })
}

/// `g·v/‖g‖` of records, for a direction v of the parameters; 0 where the gradient is.
pub(crate) fn alignments_generic<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    v: &[T],
) -> Result<Vec<f64>> {
    let trained = net.trained();
    let v: Vec<T> = v.iter().zip(&trained).map(|(&v, t)| if *t { v } else { T::ZERO }).collect();
    let size = net.records_at_a_time(data.input().length());
    let parts = Workers::of(net).map(records, size, |dev, piece| {
        let batch = data.upload(dev, net, piece, Label::Public);
        let primal = net.primal(dev, batch, Label::Public, None);
        let (norms, _) = primal.norms(dev, piece)?;
        let array = dev.upload(&v);
        let along = net.along(dev, &primal, &array, 1);
        let along = dev.download_scalars(&along)?;
        primal.recycle(dev);
        dev.put(array);
        Ok(norms.iter().zip(along).map(|(&n, a)| if n > 0.0 { a / n } else { 0.0 }).collect::<Vec<f64>>())
    })?;
    Ok(parts.concat())
}
