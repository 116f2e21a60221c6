//! Labels read off the last layer. Its bias has the gradient `Σ (p − y)`: of one record of a softmax the label is the only
//! negative entry (Zhao 2020); without a bias, the row of its weights with the smallest sum.

use super::super::sight::Sight;
use crate::{
    Loss, Network, Real,
    error::{Error, Result},
};

/// The labels `(records, outputs)` of a gradient, as its last layer tells them.
pub fn recovered_labels<T: Real>(net: &Network<T>, sight: &Sight<T>) -> Result<Vec<T>> {
    sight.check(net)?;
    let refuse = |reason: &str| Err(Error::Format { subject: "labels", reason: reason.to_owned() });
    let Some(mut slope) = slopes(net, sight) else {
        return refuse("the last layer is none of dense weights that are trained: give the labels");
    };
    let (k, n) = (net.outputs(), sight.records);
    match net.loss() {
        Loss::SquaredError => {
            refuse("values that a network predicts cannot be read off its gradient: give them")
        }
        // every output tells whether its label was 1: δ = p − y is negative then
        Loss::BinaryCrossEntropy if n == 1 => {
            Ok(slope.iter().map(|s| if *s < 0.0 { T::ONE } else { T::ZERO }).collect())
        }
        Loss::BinaryCrossEntropy => refuse("labels of a batch that do not exclude one another: give them"),
        Loss::SoftmaxCrossEntropy => {
            // each record of a class takes 1 of its entry, and together they cannot add more than that elsewhere
            let unit = slope.iter().filter(|s| **s < 0.0).map(|s| -s).sum::<f64>() / n as f64;
            let mut labels = vec![T::ZERO; n * k];
            for row in labels.chunks_exact_mut(k) {
                let least = (0..k).fold(0, |b, i| if slope[i] < slope[b] { i } else { b });
                row[least] = T::ONE;
                slope[least] += unit;
            }
            Ok(labels)
        }
    }
}

/// What stands for `Σ (p − y)`: the gradient of the last bias, or the sums of the rows of the last weights.
fn slopes<T: Real>(net: &Network<T>, sight: &Sight<T>) -> Option<Vec<f64>> {
    let node = net.nodes.last()?;
    let tensors = net.tensors();
    let named = |name: &str| {
        let name = format!("layers.{}.{name}", node.position);
        tensors.iter().find(|t| t.name == name)
    };
    let (k, trained) = (net.outputs(), net.trained());
    let rows = |at: usize, width: usize| {
        let values = &sight.gradient[at..at + k * width];
        let whole = trained[at..at + k * width].iter().all(|t| *t);
        whole.then(|| values.chunks(width).map(|row| row.iter().map(|v| v.to_f64()).sum()).collect())
    };
    match (named("bias"), named("weight")) {
        (Some(bias), _) if bias.shape == [k] => rows(bias.offset, 1),
        (None, Some(weight)) if weight.shape.len() == 2 && weight.shape[0] == k => {
            rows(weight.offset, weight.shape[1])
        }
        _ => None,
    }
}
