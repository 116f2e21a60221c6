//! Binary cross-entropy over one or several labels that do not exclude one another, `ℓ = Σ log(1 + eᶻ) − yz`.
//!
//! With `e = e^{−|z|}`: `s(z)` and `1 − s(z)` are `1/(1+e)` and `e/(1+e)` in one order or the other, and δ takes the one
//! that does not cancel against y.

use super::{Agreement, Rule, Value};

pub(super) struct Binary;

impl Rule for Binary {
    fn primal(&self, z: &[f64], y: &[f64], delta: &mut [f64], kept: &mut [f64]) -> Value {
        let (mut loss, mut curvature) = (0.0, 0.0_f64);
        for i in 0..z.len() {
            let e = (-z[i].abs()).exp();
            let small = e / (1.0 + e);
            if z[i] < 0.0 {
                delta[i] = small - y[i];
                loss += e.ln_1p() - y[i] * z[i];
            } else {
                delta[i] = (1.0 - y[i]) - small;
                loss += (1.0 - y[i]) * z[i] + e.ln_1p();
            }
            kept[i] = small / (1.0 + e);
            curvature = curvature.max(kept[i]);
        }
        Value { loss, curvature }
    }

    fn output_tangent(&self, kept: &[f64], _: &[f64], z_dot: &[f64], out: &mut [f64]) {
        for i in 0..out.len() {
            out[i] += kept[i] * z_dot[i];
        }
    }

    fn label_tangent(&self, _: &[f64], y_dot: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(y_dot).for_each(|(o, y)| *o -= y);
    }

    fn label_adjoint(&self, _: &[f64], z_dot: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(z_dot).for_each(|(o, z)| *o = -z);
    }

    fn scores(&self, z: &[f64], out: &mut [f64]) {
        for (o, z) in out.iter_mut().zip(z) {
            let e = (-z.abs()).exp();
            *o = if *z < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
        }
    }

    fn agreement(&self, z: &[f64], y: &[f64]) -> Option<Agreement> {
        let right = z.iter().zip(y).filter(|(z, y)| (**z > 0.0) == (**y > 0.5)).count();
        Some(Agreement { right, labels: z.len() })
    }

    fn label_fault(&self, y: &[f64]) -> Option<&'static str> {
        y.iter().any(|v| !(0.0..=1.0).contains(v)).then_some("expected values between 0 and 1")
    }
}
