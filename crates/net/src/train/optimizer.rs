//! Optimisers: how a gradient moves the parameters.

use crate::{
    Real,
    error::{Result, check},
};
use serde::{Deserialize, Serialize};

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Optimizer {
    /// `m ← μ m + g`, `θ ← θ − lr·m`.
    Sgd {
        /// μ; 0 for none.
        momentum: f64,
    },
    /// Kingma and Ba 2015, with bias correction.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
    },
}

impl Optimizer {
    /// Adam with its usual constants.
    pub fn adam() -> Self {
        Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    pub(crate) fn check(self) -> Result<()> {
        let unit = |what, v: f64| check((0.0..1.0).contains(&v), what, v, "at least 0, below 1");
        match self {
            Self::Sgd { momentum } => unit("the momentum", momentum),
            Self::Adam { beta1, beta2, epsilon } => {
                unit("beta1", beta1)?;
                unit("beta2", beta2)?;
                check(epsilon > 0.0 && epsilon.is_finite(), "epsilon of Adam", epsilon, "positive")
            }
        }
    }

    /// Arrays of moments it keeps.
    pub(crate) fn moments(self) -> usize {
        match self {
            Self::Sgd { momentum } => usize::from(momentum > 0.0),
            Self::Adam { .. } => 2,
        }
    }

    /// One update of the trained parameters; `step` counts from 0.
    pub(crate) fn update<T: Real>(
        self,
        step: u64,
        learning_rate: f64,
        gradient: &[T],
        trained: &[bool],
        moments: &mut [Vec<T>],
        theta: &mut [T],
    ) {
        let lr = T::from_f64(learning_rate);
        let each = (0..theta.len()).filter(|&i| trained[i]);
        match (self, moments) {
            (Self::Sgd { momentum }, [m]) => {
                let mu = T::from_f64(momentum);
                for i in each {
                    m[i] = mu * m[i] + gradient[i];
                    theta[i] -= lr * m[i];
                }
            }
            (Self::Adam { beta1, beta2, epsilon }, [m, v]) => {
                let t = (step + 1).min(i32::MAX as u64) as i32;
                let (c1, c2) = (1.0 - beta1.powi(t), 1.0 - beta2.powi(t));
                let lr = T::from_f64(learning_rate / c1);
                let root = T::from_f64(1.0 / c2.sqrt());
                let (b1, b2, e) = (T::from_f64(beta1), T::from_f64(beta2), T::from_f64(epsilon));
                for i in each {
                    m[i] = b1 * m[i] + (T::ONE - b1) * gradient[i];
                    v[i] = b2 * v[i] + (T::ONE - b2) * gradient[i] * gradient[i];
                    theta[i] -= lr * m[i] / (v[i].sqrt() * root + e);
                }
            }
            // no moments: plain gradient descent
            _ => each.for_each(|i| theta[i] -= lr * gradient[i]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adam_makes_its_first_step_by_the_learning_rate() {
        let (mut m, mut theta) = (vec![vec![0.0; 3]; 2], [1.0, 1.0, 1.0]);
        Optimizer::adam().update(0, 0.1, &[5.0, -0.01, 3.0], &[true, true, false], &mut m, &mut theta);
        assert!((theta[0] - 0.9).abs() < 1e-6 && (theta[1] - 1.1).abs() < 1e-6);
        assert_eq!(theta[2], 1.0);
    }

    #[test]
    fn momentum_adds_up_as_a_geometric_series() {
        let o = Optimizer::Sgd { momentum: 0.5 };
        let (mut m, mut theta) = (vec![vec![0.0]; o.moments()], [0.0]);
        for t in 0..3 {
            o.update(t, 1.0, &[1.0], &[true], &mut m, &mut theta);
        }
        // 1 + 1.5 + 1.75
        assert_eq!(theta[0], -4.25);
    }
}
