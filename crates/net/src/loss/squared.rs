//! Squared error, `ℓ = ½‖z − y‖²`.

use super::{Agreement, Rule, Value};

pub(super) struct Squared;

impl Rule for Squared {
    fn primal(&self, z: &[f64], y: &[f64], delta: &mut [f64], kept: &mut [f64]) -> Value {
        kept.fill(1.0);
        for (d, (z, y)) in delta.iter_mut().zip(z.iter().zip(y)) {
            *d = z - y;
        }
        Value { loss: 0.5 * delta.iter().map(|d| d * d).sum::<f64>(), curvature: 1.0 }
    }

    fn output_tangent(&self, _: &[f64], _: &[f64], z_dot: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(z_dot).for_each(|(o, z)| *o += z);
    }

    fn label_tangent(&self, _: &[f64], y_dot: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(y_dot).for_each(|(o, y)| *o -= y);
    }

    fn label_adjoint(&self, _: &[f64], z_dot: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(z_dot).for_each(|(o, z)| *o = -z);
    }

    fn scores(&self, z: &[f64], out: &mut [f64]) {
        out.copy_from_slice(z);
    }

    fn agreement(&self, _: &[f64], _: &[f64]) -> Option<Agreement> {
        None
    }

    fn label_fault(&self, _: &[f64]) -> Option<&'static str> {
        None
    }
}
