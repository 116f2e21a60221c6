//! Softmax cross-entropy, `ℓ = −Σ y log p`, `p = softmax(z)`. `Y = Σ y` is 1 for the labels a record may have and stays
//! in the formulas because a label that is secret may move in any direction.
//!
//! With m the likeliest class and `r = Σ_{k≠m} e^{z_k − z_m}`: `p_m = 1/(1+r)`, `−log p_m = ln_1p(r)`. Since δ sums to
//! zero, `δ_m = −Σ_{k≠m} δ_k`; and `ż_j − p·ż = (ż_j − ż_m) − Σ_{k≠m} p_k(ż_k − ż_m)`, in which nothing cancels for
//! j = m however close p_m is to 1.

use super::{Agreement, Rule, Value, largest};

pub(super) struct Softmax;

/// `Σ_{k≠m} p_k(ż_k − ż_m)`.
fn mean_from(p: &[f64], z_dot: &[f64], m: usize) -> f64 {
    (0..p.len()).filter(|&k| k != m).map(|k| p[k] * (z_dot[k] - z_dot[m])).sum()
}

/// Sets `v_m = −Σ_{k≠m} v_k`, with the others in place.
fn close(v: &mut [f64], m: usize) {
    v[m] = 0.0;
    v[m] = -v.iter().sum::<f64>();
}

impl Rule for Softmax {
    fn primal(&self, z: &[f64], y: &[f64], delta: &mut [f64], p: &mut [f64]) -> Value {
        let m = largest(z);
        for (p, z_k) in p.iter_mut().zip(z) {
            *p = (z_k - z[m]).exp();
        }
        // without m: added to 1 it would lose its digits
        p[m] = 0.0;
        let r: f64 = p.iter().sum();
        p[m] = 1.0;
        p.iter_mut().for_each(|p| *p /= 1.0 + r);
        let mass: f64 = y.iter().sum();
        for k in 0..z.len() {
            delta[k] = mass * p[k] - y[k];
        }
        close(delta, m);
        let from_top = r.ln_1p();
        let loss =
            z.iter().zip(y).map(|(z_k, y_k)| if *y_k == 0.0 { 0.0 } else { y_k * (z[m] - z_k + from_top) });
        Value { loss: loss.sum(), curvature: (mass * p[m] * r / (1.0 + r)).abs() }
    }

    fn output_tangent(&self, p: &[f64], y: &[f64], z_dot: &[f64], out: &mut [f64]) {
        let (m, mass) = (largest(p), y.iter().sum::<f64>());
        let mean = mean_from(p, z_dot, m);
        for j in 0..p.len() {
            out[j] += mass * p[j] * ((z_dot[j] - z_dot[m]) - mean);
        }
    }

    fn label_tangent(&self, p: &[f64], y_dot: &[f64], out: &mut [f64]) {
        let (m, mass) = (largest(p), y_dot.iter().sum::<f64>());
        // Ẏ p − ẏ sums to zero, as δ does
        let mut rest = 0.0;
        for k in (0..p.len()).filter(|&k| k != m) {
            let v = mass * p[k] - y_dot[k];
            out[k] += v;
            rest += v;
        }
        out[m] -= rest;
    }

    fn label_adjoint(&self, p: &[f64], z_dot: &[f64], out: &mut [f64]) {
        let m = largest(p);
        let mean = mean_from(p, z_dot, m);
        for j in 0..p.len() {
            out[j] = mean - (z_dot[j] - z_dot[m]);
        }
    }

    fn scores(&self, z: &[f64], out: &mut [f64]) {
        let m = largest(z);
        for (o, z_k) in out.iter_mut().zip(z) {
            *o = (z_k - z[m]).exp();
        }
        let total: f64 = out.iter().sum();
        out.iter_mut().for_each(|o| *o /= total);
    }

    fn agreement(&self, z: &[f64], y: &[f64]) -> Option<Agreement> {
        Some(Agreement { right: usize::from(largest(z) == largest(y)), labels: 1 })
    }

    fn label_fault(&self, y: &[f64]) -> Option<&'static str> {
        let mass: f64 = y.iter().sum();
        if y.iter().any(|v| !(0.0..=1.0).contains(v)) {
            return Some("expected probabilities between 0 and 1");
        }
        // labels written with a few digits still sum to 1 within them
        ((mass - 1.0).abs() > 1e-3).then_some(
            "classes of a softmax exclude one another, so its values must sum to 1: take the loss \
             binary-cross-entropy for records with several labels or none",
        )
    }
}
