//! Optimisers: how a gradient moves the parameters.

use crate::error::{Result, check};
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
        let unit = |name, v: f64| check((0.0..1.0).contains(&v), name, v, "at least 0, below 1");
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    /// Updates by given gradients, from zero moments.
    fn updated(
        rule: Optimizer,
        rate: f64,
        gradients: &[&[f64]],
        trained: &[bool],
        theta: &[f64],
    ) -> Vec<f64> {
        let mut dev = Device::new();
        let mut moments: Vec<_> = (0..rule.moments()).map(|_| dev.zeros(theta.len())).collect();
        let (mut theta, trained) = (dev.upload(theta), dev.upload_flags(trained));
        for (step, g) in gradients.iter().enumerate() {
            let g = dev.upload(g);
            dev.update(rule, step as u64, rate, &g, &trained, &mut moments, &mut theta);
        }
        dev.download(&theta).unwrap()
    }

    #[test]
    fn adam_makes_its_first_step_by_the_learning_rate() {
        let trained = [true, true, false];
        let theta = updated(Optimizer::adam(), 0.1, &[&[5.0, -0.01, 3.0]], &trained, &[1.0; 3]);
        assert!((theta[0] - 0.9).abs() < 1e-6 && (theta[1] - 1.1).abs() < 1e-6);
        assert_eq!(theta[2], 1.0);
    }

    #[test]
    fn momentum_adds_up_as_a_geometric_series() {
        let theta = updated(Optimizer::Sgd { momentum: 0.5 }, 1.0, &[&[1.0][..]; 3], &[true], &[0.0]);
        // 1 + 1.5 + 1.75
        assert_eq!(theta[0], -4.25);
    }
}
