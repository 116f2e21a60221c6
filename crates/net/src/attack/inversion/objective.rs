//! How far what a guess would have released, t, is from what was seen, v. Everything follows from `n = ‖t‖`, `p = t·v`,
//! `m = ‖v‖`.

use crate::error::{Result, check};

/// What is made small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// `1 − cos(t, v)`: direction alone, as published.
    Cosine,
    /// `‖v − t‖²/2s²`: the log-likelihood of what was seen under noise of standard deviation s, for somebody who knows the
    /// mechanism.
    Likelihood {
        /// s = σC.
        noise: f64,
    },
}

/// The objective at a guess, and its derivative by t, `α v + β t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Objective {
    pub(super) fn check(self) -> Result<()> {
        match self {
            Self::Cosine => Ok(()),
            Self::Likelihood { noise } => check(
                noise > 0.0 && noise.is_finite(),
                "the noise of the likelihood",
                noise,
                "positive: without noise take the cosine",
            ),
        }
    }

    pub(super) fn slope(self, n: f64, p: f64, m: f64) -> Slope {
        match self {
            Self::Cosine if n == 0.0 || m == 0.0 => Slope { value: 1.0, alpha: 0.0, beta: 0.0 },
            Self::Cosine => {
                Slope { value: 1.0 - p / (n * m), alpha: -1.0 / (n * m), beta: p / (n * m) / n / n }
            }
            Self::Likelihood { noise } => {
                let precision = 1.0 / (noise * noise);
                Slope {
                    value: 0.5 * precision * (m * m - 2.0 * p + n * n).max(0.0),
                    alpha: -precision,
                    beta: precision,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against central differences of the definition, on vectors.
    #[test]
    fn the_slope_is_the_derivative() {
        let v = [0.3, -1.2, 0.7];
        let t = [0.5, 0.1, -0.4];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        for objective in [Objective::Cosine, Objective::Likelihood { noise: 0.6 }] {
            let value = |t: &[f64]| match objective {
                Objective::Cosine => 1.0 - dot(t, &v) / (dot(t, t) * dot(&v, &v)).sqrt(),
                Objective::Likelihood { noise } => {
                    let r: Vec<f64> = v.iter().zip(t).map(|(v, t)| v - t).collect();
                    dot(&r, &r) / (2.0 * noise * noise)
                }
            };
            let s = objective.slope(dot(&t, &t).sqrt(), dot(&t, &v), dot(&v, &v).sqrt());
            assert!((s.value - value(&t)).abs() < 1e-14);
            for i in 0..3 {
                let h = 1e-6;
                let at = |e: f64| {
                    let mut moved = t;
                    moved[i] += e;
                    value(&moved)
                };
                let difference = (at(h) - at(-h)) / (2.0 * h);
                assert!((s.alpha * v[i] + s.beta * t[i] - difference).abs() < 1e-8, "{objective:?}");
            }
        }
        assert_eq!(Objective::Cosine.slope(0.0, 0.0, 1.0), Slope { value: 1.0, alpha: 0.0, beta: 0.0 });
        for noise in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Objective::Likelihood { noise }.check().is_err());
        }
    }
}
