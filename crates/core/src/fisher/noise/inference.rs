//! Standard errors, intervals and tests of released coefficients: sampling and noise together.
//!
//! A released coefficient is `w'_j = ŵ_j + b_j`, so its variance about the truth is that of ŵ over samples plus `Σ_jj`, which is
//! public. The first part is read off the data: published with many digits it would be one equation for the last
//! record, so publish it rounded, or publish Σ alone.

use super::Noise;
use crate::glm::softmax::{SoftmaxFit, contrasts, reduced_residual};
use crate::glm::{Family, Fit};
use crate::linalg::{Cholesky, axpy, dot, gram_add_lower, matmul, matmul_parallel, mirror_lower};
use crate::pass::{Merge, Pass, overflowing};
use crate::rows::{Block, Rows};
use crate::special::{normal_cdf, normal_quantile};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How the spread of the minimiser over samples is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// `H⁻¹(Σω²r²xxᵀ)H⁻¹`: holds whether or not the family is the true one.
    Sandwich,
    /// `φH⁻¹(Σω²a xxᵀ)H⁻¹`, `φ = Σωr²/(Σω − p)` for linear models and 1 for the others: holds where the family is true.
    Model,
}

/// One released coefficient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// As released.
    pub estimate: f64,
    /// Standard error from sampling alone.
    pub sampling_error: f64,
    /// Standard deviation of its noise: public.
    pub noise_error: f64,
    /// Both together.
    pub standard_error: f64,
    /// Interval at the level asked for.
    pub interval: (f64, f64),
    /// `estimate/standard_error`.
    pub statistic: f64,
    /// Two-sided p-value of the hypothesis that the coefficient is zero (normal).
    pub p_value: f64,
}

/// All released coefficients.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    /// How sampling was estimated.
    pub sampling: Sampling,
    /// Confidence level of the intervals.
    pub level: f64,
    /// One a coefficient, the intercept last.
    pub coefficients: Vec<Coefficient>,
    /// Covariance of the released coefficients, p × p: sampling plus noise.
    pub covariance: Vec<f64>,
}

/// Standard errors of `released` coefficients of a model fitted to `rows`, `N(0, Σ)` noise included.
///
/// With a penalty they are about the penalised coefficients of the population, towards which the estimate is shrunk.
///
/// # Errors
/// [`Error::Shape`] or [`Error::OutOfRange`] for sizes or a level that do not fit; [`Error::Singular`] where H has no inverse.
pub fn standard_errors(
    rows: &dyn Rows,
    fit: &Fit,
    noise: &Noise,
    released: &[f64],
    (sampling, level): (Sampling, f64),
) -> Result<Inference> {
    let p = fit.w.len();
    for (subject, actual) in [("the released coefficients", released.len()), ("the noise", noise.len())] {
        if actual != p {
            return Err(Error::Shape { subject, actual, expected: p });
        }
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::OutOfRange {
            subject: "the level",
            value: level,
            expected: "a number between 0 and 1",
        });
    }
    let sampled = sampling_covariance(rows, fit, sampling)?;
    let noisy = noise.covariance();
    let covariance: Vec<f64> = sampled.iter().zip(&noisy).map(|(s, n)| s + n).collect();
    let z = normal_quantile(0.5 + 0.5 * level);
    let coefficients = (0..p)
        .map(|j| {
            let (estimate, at) = (released[j], j * p + j);
            let standard_error = covariance[at].sqrt();
            let statistic = estimate / standard_error;
            Coefficient {
                estimate,
                sampling_error: sampled[at].max(0.0).sqrt(),
                noise_error: noisy[at].sqrt(),
                standard_error,
                interval: (estimate - z * standard_error, estimate + z * standard_error),
                statistic,
                p_value: 2.0 * normal_cdf(-statistic.abs()),
            }
        })
        .collect();
    Ok(Inference { sampling, level, coefficients, covariance })
}

/// Covariance of the coefficients of a softmax model over samples, one p × p a class: the sandwich
/// `H⁻¹(Σω²ρ̂ρ̂ᵀ ⊗ xxᵀ)H⁻¹` of Θ, as it falls on each class.
///
/// # Errors
/// [`Error::Shape`] for rows of another width; [`Error::Singular`] where H has no inverse.
pub fn softmax_sampling_covariances(rows: &dyn Rows, fit: &SoftmaxFit) -> Result<Vec<Vec<f64>>> {
    let (p, q) = (fit.width, fit.coefficients());
    if rows.width() != p {
        return Err(Error::Shape { subject: "the rows", actual: rows.width(), expected: p });
    }
    let u = contrasts(fit.classes);
    let mut middle = vec![0.0; q * q];
    rows.fold(
        || (vec![0.0; q * q], vec![], vec![]),
        |(middle, scores, scratch), block| {
            scores.clear();
            let pi = fit.probabilities(&block.x);
            for (i, pi) in pi.chunks_exact(fit.classes).enumerate() {
                let (omega, class) = (block.weight_of(i), (block.y[i] as usize).min(fit.classes - 1));
                for rho in reduced_residual(pi, class, &u) {
                    scores.extend(block.row(i).iter().map(|x| omega * rho * x));
                }
            }
            gram_add_lower(scores, None, q, scratch, middle);
            Ok(())
        },
        |(part, ..)| {
            axpy(1.0, &part, &mut middle);
            Ok(())
        },
    )?;
    mirror_lower(&mut middle, q);
    let inverse = Cholesky::new(&fit.hessian, q)?.inverse();
    let (mut half, mut out) = (vec![0.0; q * q], vec![0.0; q * q]);
    matmul(&inverse, &middle, (q, q, q), &mut half);
    matmul(&half, &inverse, (q, q, q), &mut out);
    mirror_lower(&mut out, q);
    Ok(class_covariances(&out, fit.classes, p))
}

/// Covariance of each class's coefficients, p × p, from that of Θ, q × q: `Σ_ab U_ca U_cb Σ_ab`.
pub fn class_covariances(covariance: &[f64], classes: usize, p: usize) -> Vec<Vec<f64>> {
    let (k, q, u) = (classes - 1, (classes - 1) * p, contrasts(classes));
    let of_class = |c: usize| {
        let mut out = vec![0.0; p * p];
        for (a, b) in (0..k).flat_map(|a| (0..k).map(move |b| (a, b))) {
            let factor = u[c * k + a] * u[c * k + b];
            for (i, row) in out.chunks_exact_mut(p).enumerate() {
                axpy(factor, &covariance[(a * p + i) * q + b * p..][..p], row);
            }
        }
        out
    };
    (0..classes).map(of_class).collect()
}

/// The pass for the middle of the sandwich: squares of the scores of a fitted model, or what they should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scores<'a> {
    /// The family.
    pub family: Family,
    /// The coefficients.
    pub w: Cow<'a, [f64]>,
    /// What stands in the middle.
    pub sampling: Sampling,
}

/// Sums of the scores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreSums {
    /// `Σω²r²xxᵀ`, or with the curvature in the place of r², lower triangle.
    #[serde(serialize_with = "overflowing::numbers")]
    middle: Vec<f64>,
    /// `Σωr²`.
    #[serde(serialize_with = "overflowing::number")]
    squares: f64,
    /// `Σω`.
    #[serde(serialize_with = "overflowing::number")]
    weight: f64,
    #[serde(skip)]
    scratch: Vec<f64>,
}

impl Merge for ScoreSums {
    fn merge(&mut self, later: Self) {
        axpy(1.0, &later.middle, &mut self.middle);
        self.squares += later.squares;
        self.weight += later.weight;
    }
}

impl Pass for Scores<'_> {
    const NAME: &'static str = "the scores of a model";
    type State = ScoreSums;

    fn start(&self) -> ScoreSums {
        ScoreSums { middle: vec![0.0; self.w.len() * self.w.len()], ..ScoreSums::default() }
    }

    fn step(&self, s: &mut ScoreSums, block: &Block) -> Result<()> {
        let p = self.w.len();
        if block.width != p {
            return Err(Error::Shape { subject: "the rows", actual: block.width, expected: p });
        }
        let weights: Vec<f64> = (0..block.len())
            .map(|i| {
                let omega = block.weight_of(i);
                let t = self.family.terms(dot(block.row(i), &self.w), block.y[i]);
                s.squares += omega * t.r * t.r;
                s.weight += omega;
                match self.sampling {
                    Sampling::Sandwich => (omega * t.r).powi(2),
                    Sampling::Model => omega * omega * t.a,
                }
            })
            .collect();
        gram_add_lower(&block.x, Some(&weights), p, &mut s.scratch, &mut s.middle);
        Ok(())
    }

    fn fits(&self, state: &ScoreSums) -> bool {
        state.middle.len() == self.w.len() * self.w.len()
    }
}

/// Covariance of the minimiser over samples.
///
/// # Errors
/// [`Error::OutOfRange`] where model-based errors have no degrees of freedom; [`Error::Singular`] where H has no inverse.
pub fn sampling_covariance(rows: &dyn Rows, fit: &Fit, sampling: Sampling) -> Result<Vec<f64>> {
    let p = fit.w.len();
    let pass = Scores { family: fit.family, w: Cow::Borrowed(&fit.w), sampling };
    let ScoreSums { mut middle, squares, weight, .. } = crate::pass::run(&pass, rows)?;
    mirror_lower(&mut middle, p);
    let dispersion = match (sampling, fit.family) {
        (Sampling::Model, Family::Linear) => {
            if weight <= p as f64 {
                let expected = "more than there are coefficients: model-based errors need degrees of freedom";
                return Err(Error::OutOfRange { subject: "the number of rows", value: weight, expected });
            }
            squares / (weight - p as f64)
        }
        (Sampling::Sandwich, _) | (Sampling::Model, Family::Logistic | Family::Poisson) => 1.0,
        (Sampling::Model, Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_)) => {
            return Err(Error::NotApplicable {
                subject: "model-based standard errors",
                setting: "a loss that is no likelihood with a known dispersion",
                advice: "take those of a sandwich",
            });
        }
    };
    let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
    let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
    matmul_parallel(&inverse, &middle, (p, p, p), &mut half);
    matmul_parallel(&half, &inverse, (p, p, p), &mut out);
    mirror_lower(&mut out, p);
    out.iter_mut().for_each(|v| *v *= dispersion);
    Ok(out)
}
