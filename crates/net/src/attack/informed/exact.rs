//! A linear model at the minimum of its mean loss plus `½ λ‖θ‖²` has `Σ gᵢ + n λ θ = 0`. Whoever knows all records but one has
//! the gradient of the last, `δ ⊗ (x, 1)`, and with it the record (Balle 2022, §4).

use super::many::{Linear, Row};
use super::training::Rest;
use crate::error::{Result, check_finite, check_len};

/// The last record of a linear model that was trained to its minimum without noise; absent where its gradient is zero, and
/// says nothing.
pub fn last_record(model: &Linear, rest: &Rest, theta: &[f64], l2: f64) -> Result<Option<Vec<f64>>> {
    let n = model.check(rest)?;
    check_len("the parameters", theta.len(), model.parameters())?;
    check_finite("the parameters", theta)?;
    let (d, k, w) = (model.inputs, model.outputs, model.inputs + 1);
    // minus the gradient of the last record
    let mut g: Vec<f64> = theta.iter().map(|t| (n + 1) as f64 * l2 * t).collect();
    let mut row = Row::new(model);
    for (x, y) in rest.x.chunks_exact(d).zip(rest.y.chunks_exact(k)) {
        for o in 0..k {
            let weights = &theta[o * w..][..w];
            row.z[o] = weights[d] + weights[..d].iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        }
        row.slope(model.loss, y);
        for o in 0..k {
            let r = row.delta[o];
            g[o * w..][..d].iter_mut().zip(x).for_each(|(s, v)| *s += r * v);
            g[o * w + d] += r;
        }
    }
    let square: f64 = (0..k).map(|o| g[o * w + d].powi(2)).sum();
    let at = |j: usize| (0..k).map(|o| g[o * w + d] * g[o * w + j]).sum::<f64>() / square;
    Ok((square > 0.0).then(|| (0..d).map(at).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::many::{
        tests::{model, records},
        train_many,
    };
    use super::super::training::Training;
    use super::*;
    use crate::{Loss, train::Optimizer};

    /// Models trained to their minimum, without noise: every record comes back; with noise it does not.
    #[test]
    fn the_last_record_of_a_model_at_its_minimum_comes_back() {
        let (d, n, m, l2) = (5, 20, 6, 0.05);
        for (k, loss) in
            [(1, Loss::BinaryCrossEntropy), (3, Loss::SoftmaxCrossEntropy), (2, Loss::SquaredError)]
        {
            let start = model(d, k, loss).training.start;
            let training = Training {
                optimizer: Optimizer::Sgd { momentum: 0.0 },
                learning_rate: 0.2,
                weight_decay: l2,
                steps: 6000,
                ..Training::new(start)
            };
            let model = Linear { training, ..model(d, k, loss) };
            let (rest, targets) = (records(n, d, k, 1), records(m, d, k, 2));
            let theta = train_many(&model, &rest, &targets, 1, &|_| true).unwrap();
            for j in 0..m {
                let own = &theta[j * model.parameters()..][..model.parameters()];
                let actual = last_record(&model, &rest, own, l2).unwrap().unwrap();
                let target = &targets.x[j * d..][..d];
                assert!(
                    actual.iter().zip(target).all(|(a, b)| (a - b).abs() < 1e-6),
                    "{loss:?} {actual:?} {target:?}"
                );
            }
        }
    }
}
