//! A dense layer that reads the record gives it away in one step: its gradient is `δ aᵀ`, that of its bias δ, so
//! `a = Wᵍᵀ b / ‖b‖²`, the least squares of `δ aᵀ ≈ Wᵍ` (Phong 2018). Clipping scales both alike and changes nothing.

use super::super::sight::Sight;
use crate::{LayerSpec, Network, Real, error::Result};

/// The record, from the gradient of a first dense layer with a bias: exact where nothing was added to it. Absent where the
/// network has no such layer, its parameters are not all trained, no gradient reaches it or the gradient is of several records.
pub fn first_layer<T: Real>(net: &Network<T>, sight: &Sight<T>) -> Result<Option<Vec<f64>>> {
    sight.check(net)?;
    let Some((weight, bias, outputs)) = place(net) else { return Ok(None) };
    let inputs = net.input().len();
    let v = |i: usize| sight.gradient[i].to_f64();
    let square: f64 = (0..outputs).map(|i| v(bias + i).powi(2)).sum();
    if square == 0.0 || sight.records > 1 {
        return Ok(None);
    }
    let at = |j: usize| (0..outputs).map(|i| v(bias + i) * v(weight + i * inputs + j)).sum::<f64>() / square;
    Ok(Some((0..inputs).map(at).collect()))
}

/// Where its weights and its bias start, and how many outputs it has.
fn place<T: Real>(net: &Network<T>) -> Option<(usize, usize, usize)> {
    let layers = net.spec().positions();
    let dense = |position: usize| match layers.get(position)?.1 {
        LayerSpec::Dense { outputs, bias: true, .. } => Some(*outputs),
        _ => None,
    };
    let node = net.nodes.iter().find(|n| n.inputs == [0] && n.trained && dense(n.position).is_some())?;
    let tensors = net.tensors();
    let offset = |name: &str| {
        let name = format!("layers.{}.{name}", node.position);
        tensors.iter().find(|t| t.name == name).map(|t| t.offset)
    };
    let (outputs, weight, bias) = (dense(node.position)?, offset("weight")?, offset("bias")?);
    let trained = net.trained();
    let whole = |at: usize, len: usize| trained[at..at + len].iter().all(|t| *t);
    (whole(weight, outputs * net.input().len()) && whole(bias, outputs)).then_some((weight, bias, outputs))
}
