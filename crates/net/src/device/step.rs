//! A step of training: noise, the optimiser's update, and whether all is finite.

use super::{Buf, Device, Flags};
use crate::{Real, error::Result, optimizer::Optimizer, random::Generator};

impl<T: Real> Device<T> {
    /// Copies truth values to the device.
    pub(crate) fn upload_flags(&self, values: &[bool]) -> Flags {
        Flags { data: values.to_vec() }
    }

    /// Whether every value is finite.
    pub(crate) fn all_finite(&self, x: &Buf<T>) -> Result<bool> {
        Ok(x.data.iter().all(|v| v.to_f64().is_finite()))
    }

    /// `x ← x + s·N(0, 1)` where a flag is set, one normal for each of them.
    pub(crate) fn add_noise(&self, rng: &mut Generator, s: f64, flags: &Flags, x: &mut Buf<T>) {
        for (x, _) in x.data.iter_mut().zip(&flags.data).filter(|(_, f)| **f) {
            *x += T::from_f64(s * rng.normal());
        }
    }

    /// `g ← scale·g + decay·θ`.
    pub(crate) fn add_decay(&self, scale: f64, decay: f64, theta: &Buf<T>, g: &mut Buf<T>) {
        let (scale, decay) = (T::from_f64(scale), T::from_f64(decay));
        g.data.iter_mut().zip(&theta.data).for_each(|(g, &t)| *g = *g * scale + decay * t);
    }

    /// One update of the trained parameters; `step` counts from 0.
    #[allow(clippy::too_many_arguments)] // the state of one update
    pub(crate) fn update(
        &self,
        rule: Optimizer,
        step: u64,
        learning_rate: f64,
        gradient: &Buf<T>,
        trained: &Flags,
        moments: &mut [Buf<T>],
        theta: &mut Buf<T>,
    ) {
        let lr = T::from_f64(learning_rate);
        let (g, theta) = (&gradient.data, &mut theta.data);
        let each = (0..theta.len()).filter(|&i| trained.data[i]);
        match (rule, moments) {
            (Optimizer::Sgd { momentum }, [m]) => {
                let (mu, m) = (T::from_f64(momentum), &mut m.data);
                for i in each {
                    m[i] = mu * m[i] + g[i];
                    theta[i] -= lr * m[i];
                }
            }
            (Optimizer::Adam { beta1, beta2, epsilon }, [m, v]) => {
                let (m, v) = (&mut m.data, &mut v.data);
                let t = (step + 1).min(i32::MAX as u64) as i32;
                let (c1, c2) = (1.0 - beta1.powi(t), 1.0 - beta2.powi(t));
                let lr = T::from_f64(learning_rate / c1);
                let root = T::from_f64(1.0 / c2.sqrt());
                let (b1, b2, e) = (T::from_f64(beta1), T::from_f64(beta2), T::from_f64(epsilon));
                for i in each {
                    m[i] = b1 * m[i] + (T::ONE - b1) * g[i];
                    v[i] = b2 * v[i] + (T::ONE - b2) * g[i] * g[i];
                    theta[i] -= lr * m[i] / (v[i].sqrt() * root + e);
                }
            }
            // no moments: plain gradient descent
            _ => each.for_each(|i| theta[i] -= lr * g[i]),
        }
    }
}
