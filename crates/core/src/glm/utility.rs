//! What noise on the coefficients costs on held-out rows, as an exact expectation over the noise.
//!
//! With `w' = w + N(0, s²I)` the predictor of a row is `z' ~ N(z, s²‖x‖²)`, so every expectation has a closed form
//! and no draw is needed: `E(z' − y)² = (z − y)² + s²‖x‖²`, `P(sign right) = Φ(±z / s‖x‖)`,
//! `E e^{tz'} = e^{tz + t²s²‖x‖²/2}`. Noise with a covariance `s²Σ`, `Σ = FFᵀ`, has `‖Fᵀx‖` in place of `‖x‖`.

use super::{Family, Parameter};
use crate::linalg::{dot, matmul, norm};
use crate::pass::{Merge, Pass, overflowing};
use crate::rows::Block;
use crate::special::normal_cdf;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is measured on held-out rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Metric {
    /// Share of rows whose class is predicted right; `threshold` classes are coded low/high.
    Accuracy,
    /// Mean squared error.
    MeanSquaredError,
    /// Mean Poisson deviance.
    Deviance,
    /// Mean gamma deviance.
    GammaDeviance,
    /// Mean Tweedie deviance of a power.
    TweedieDeviance(Parameter),
}

impl Metric {
    /// The metric of a family; `two_class` is a linear regression on two coded classes.
    pub fn of(family: Family, two_class: bool) -> Self {
        match family {
            Family::Linear if !two_class => Self::MeanSquaredError,
            Family::Huber(_) => Self::MeanSquaredError,
            Family::Linear | Family::Logistic | Family::SquaredHinge => Self::Accuracy,
            Family::Poisson => Self::Deviance,
            Family::Gamma => Self::GammaDeviance,
            Family::Tweedie(power) => Self::TweedieDeviance(power),
        }
    }

    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::MeanSquaredError => "mse",
            Self::Deviance | Self::GammaDeviance | Self::TweedieDeviance(_) => "deviance",
        }
    }

    /// What the deviance of a constant needs of every label besides their mean.
    fn of_label(self, y: f64) -> f64 {
        match self {
            Self::Accuracy | Self::MeanSquaredError => 0.0,
            Self::Deviance => {
                if y > 0.0 {
                    y * y.ln()
                } else {
                    0.0
                }
            }
            Self::GammaDeviance => y.ln(),
            Self::TweedieDeviance(power) => y.powf(2.0 - power.value()),
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self == Self::Accuracy
    }
}

/// The pass over held-out rows for a [`UtilityCurve`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utility<'a> {
    /// What is measured.
    pub metric: Metric,
    /// Noise scales; 0 is without noise.
    pub sigmas: Cow<'a, [f64]>,
    /// The coefficients.
    pub w: Cow<'a, [f64]>,
    /// Factor F of the noise's covariance at scale one, p × p; empty for isotropic noise.
    pub factor: Cow<'a, [f64]>,
}

impl Pass for Utility<'_> {
    const NAME: &'static str = "the utility under noise";
    type State = UtilityCurve;

    fn start(&self) -> UtilityCurve {
        UtilityCurve::new(self.metric, &self.sigmas)
    }

    fn step(&self, curve: &mut UtilityCurve, block: &Block) -> Result<()> {
        if block.width != self.w.len() {
            let (actual, expected) = (block.width, self.w.len());
            return Err(Error::Shape { subject: "a held-out row", actual, expected });
        }
        if !self.factor.is_empty() && self.factor.len() != block.width * block.width {
            let (actual, expected) = (self.factor.len(), block.width * block.width);
            return Err(Error::Shape { subject: "the factor of the noise", actual, expected });
        }
        curve.add_under(&self.w, &self.factor, block);
        Ok(())
    }

    fn fits(&self, curve: &UtilityCurve) -> bool {
        curve.metric == self.metric
            && curve.sigmas == *self.sigmas
            && curve.sums.len() == self.sigmas.len()
            && curve.high <= curve.rows
    }
}

/// Sums over held-out rows of the expected metric at each noise scale; mergeable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UtilityCurve {
    metric: Metric,
    sigmas: Vec<f64>,
    #[serde(serialize_with = "overflowing::numbers")]
    sums: Vec<f64>,
    rows: u64,
    #[serde(serialize_with = "overflowing::number")]
    y_sum: f64,
    #[serde(serialize_with = "overflowing::number")]
    y_squares: f64,
    #[serde(serialize_with = "overflowing::number")]
    y_own: f64,
    high: u64,
}

impl UtilityCurve {
    /// An empty curve over noise scales (0 is allowed: without noise).
    pub fn new(metric: Metric, sigmas: &[f64]) -> Self {
        Self {
            metric,
            sigmas: sigmas.to_vec(),
            sums: vec![0.0; sigmas.len()],
            rows: 0,
            y_sum: 0.0,
            y_squares: 0.0,
            y_own: 0.0,
            high: 0,
        }
    }

    /// Adds the rows of a block under coefficients `w`. Classes are coded 0/1 or −1/1: above ½ or 0 is high,
    /// which both read as `y > 0`.
    pub fn add(&mut self, w: &[f64], block: &Block) {
        self.add_under(w, &[], block);
    }

    /// The same under noise with covariance `s²FFᵀ` (F p × p; empty for isotropic noise).
    pub fn add_under(&mut self, w: &[f64], factor: &[f64], block: &Block) {
        let (n, p) = (block.len(), block.width);
        let mut shaped = vec![];
        if !factor.is_empty() {
            shaped.resize(n * p, 0.0);
            matmul(&block.x, factor, (n, p, p), &mut shaped);
        }
        let moved = if factor.is_empty() { &block.x } else { &shaped };
        for i in 0..n {
            let (x, y) = (block.row(i), block.y[i]);
            let (z, length) = (dot(x, w), norm(&moved[i * p..(i + 1) * p]));
            for (sum, &sigma) in self.sums.iter_mut().zip(&self.sigmas) {
                let s = sigma * length;
                *sum += match self.metric {
                    Metric::Accuracy => {
                        let margin = if y > 0.0 { z } else { -z };
                        if s > 0.0 {
                            normal_cdf(margin / s)
                        } else {
                            // A tie goes to the high class, as `z >= 0` does.
                            f64::from(u8::from(margin > 0.0 || (z == 0.0 && y > 0.0)))
                        }
                    }
                    Metric::MeanSquaredError => (z - y).powi(2) + s * s,
                    Metric::Deviance => {
                        let log_term = if y > 0.0 { y * y.ln() - y } else { 0.0 };
                        2.0 * (log_term - y * z + (z + 0.5 * s * s).exp())
                    }
                    Metric::GammaDeviance => 2.0 * (z - y.ln() - 1.0 + y * (0.5 * s * s - z).exp()),
                    Metric::TweedieDeviance(power) => {
                        let (k, l) = (2.0 - power.value(), power.value() - 1.0);
                        // E e^{tz'} = e^{tz + t²s²/2}
                        let mean = (k * z + 0.5 * (k * s).powi(2)).exp() / k;
                        let own = if y > 0.0 { y * (0.5 * (l * s).powi(2) - l * z).exp() / l } else { 0.0 };
                        2.0 * (mean + own - y.powf(k) / (k * l))
                    }
                };
            }
            self.rows += 1;
            self.y_sum += y;
            self.y_squares += y * y;
            self.y_own += self.metric.of_label(y);
            self.high += u64::from(y > 0.0);
        }
    }

    /// Adds the rows of another curve over the same noise scales.
    pub fn merge(&mut self, other: &Self) {
        crate::linalg::axpy(1.0, &other.sums, &mut self.sums);
        self.rows += other.rows;
        self.y_sum += other.y_sum;
        self.y_squares += other.y_squares;
        self.y_own += other.y_own;
        self.high += other.high;
    }

    /// Rows added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Expected metric at each noise scale; an expectation that overflows is capped at the largest float.
    pub fn values(&self) -> Vec<f64> {
        let n = self.rows.max(1) as f64;
        self.sums.iter().map(|s| (s / n).min(f64::MAX)).collect()
    }

    /// The metric of the best constant prediction: majority class, or the mean.
    pub fn constant_model(&self) -> f64 {
        let n = self.rows.max(1) as f64;
        let mean = self.y_sum / n;
        match self.metric {
            Metric::Accuracy => self.high.max(self.rows - self.high) as f64 / n,
            Metric::MeanSquaredError => (self.y_squares / n - mean * mean).max(0.0),
            // The mean is the best constant of every one of these deviances.
            Metric::Deviance if mean > 0.0 => 2.0 * (self.y_own / n - mean * mean.ln()),
            Metric::GammaDeviance if mean > 0.0 => (2.0 * (mean.ln() - self.y_own / n)).max(0.0),
            Metric::TweedieDeviance(power) if mean > 0.0 => {
                let (k, l) = (2.0 - power.value(), power.value() - 1.0);
                (2.0 * (mean.powf(k) - self.y_own / n) / (k * l)).max(0.0)
            }
            Metric::Deviance | Metric::GammaDeviance | Metric::TweedieDeviance(_) => 0.0,
        }
    }
}

impl Merge for UtilityCurve {
    fn merge(&mut self, later: Self) {
        Self::merge(self, &later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::InMemory;

    /// The closed forms against a plain average over draws.
    #[test]
    fn expectations_match_simulation() {
        let x = [0.5, -1.0, 1.5, 0.3, -0.2, 0.9, 1.1, -0.4];
        let w = [0.7, -0.2];
        let mut seed = 9_u64;
        let mut normal = || {
            // Sum of 12 uniforms would be too light in the tails; Box–Muller on a 64-bit LCG is enough here.
            let mut uniform = || {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((seed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
            };
            let (a, b) = (uniform(), uniform());
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        for (metric, y) in [
            (Metric::Accuracy, [1.0, 0.0, 1.0, 0.0]),
            (Metric::MeanSquaredError, [0.2, 1.5, -1.0, 0.0]),
            (Metric::Deviance, [0.0, 2.0, 1.0, 4.0]),
            (Metric::GammaDeviance, [0.3, 2.0, 1.0, 4.0]),
            (Metric::TweedieDeviance(Parameter::new(1.3).unwrap()), [0.0, 2.0, 1.0, 4.0]),
        ] {
            for factor in [vec![], vec![1.5, 0.0, -0.8, 0.3]] {
                let rows = InMemory::from_matrix(&x, &y, &[], 4);
                let mut curve = UtilityCurve::new(metric, &[0.4]);
                curve.add_under(&w, &factor, &rows.blocks()[0]);
                let draws = 200_000;
                let mut total = 0.0;
                let mut squares = 0.0;
                for _ in 0..draws {
                    let [a, b] = [0.4 * normal(), 0.4 * normal()];
                    let noise = match &factor[..] {
                        [f, _, g, h] => [f * a, g * a + h * b],
                        _ => [a, b],
                    };
                    let noisy = [w[0] + noise[0], w[1] + noise[1]];
                    let mut one = UtilityCurve::new(metric, &[0.0]);
                    one.add(&noisy, &rows.blocks()[0]);
                    total += one.values()[0];
                    squares += one.values()[0].powi(2);
                }
                let mean = total / f64::from(draws);
                let error = ((squares / f64::from(draws) - mean * mean) / f64::from(draws)).sqrt();
                assert!((curve.values()[0] - mean).abs() < 4.5 * error, "{metric:?} {factor:?}");
            }
        }
    }

    #[test]
    fn the_constant_model_is_the_best_constant() {
        let tweedie = Metric::TweedieDeviance(Parameter::new(1.3).unwrap());
        for metric in [Metric::MeanSquaredError, Metric::Deviance, Metric::GammaDeviance, tweedie] {
            let first = if metric == Metric::GammaDeviance { 0.25 } else { 0.0 };
            let y = [first, 2.0, 1.0, 4.0];
            let rows = InMemory::from_matrix(&[1.0; 4], &y, &[], 4);
            let at = |z: f64| {
                let mut curve = UtilityCurve::new(metric, &[0.0]);
                curve.add(&[z], &rows.blocks()[0]);
                (curve.values()[0], curve.constant_model())
            };
            let best = (-200..200).map(|i| at(f64::from(i) / 100.0).0).fold(f64::INFINITY, f64::min);
            assert!((best - at(0.0).1).abs() < 1e-4, "{metric:?}");
        }
    }
}
