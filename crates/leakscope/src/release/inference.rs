//! Standard errors of released coefficients, in original units.
//!
//! The part from noise is exact and public: a function of the published covariance. The part from sampling is read off the
//! records; published with its digits it would be one more equation for the last record, so it stays with the owner.

use super::fitted::Fitted;
use crate::Result;
use leakscope_core::fisher::noise::{Sampling, sampling_covariance, softmax_sampling_covariances};
use leakscope_core::glm::Minimiser;
use leakscope_core::special::{normal_cdf, normal_quantile};
use leakscope_report::noise::{Coefficient, Inference};
use leakscope_report::release::{Counting, Precision};
use std::collections::BTreeMap;

/// Level of intervals.
const LEVEL: f64 = 0.95;

/// How well released coefficients tell the fitted ones.
pub(super) fn precision(
    fitted: &Fitted,
    noise: &[Vec<f64>],
    released: &[(String, f64)],
) -> Result<BTreeMap<String, Precision>> {
    let (variances, z) = (published_variances(fitted, noise)?, normal_quantile(0.5 + 0.5 * LEVEL));
    let of = |((name, value), variance): (&(String, f64), &f64)| {
        let noise_error = variance.sqrt();
        let precision = Precision {
            noise_error,
            low: value - z * noise_error,
            high: value + z * noise_error,
            p_value: 2.0 * normal_cdf(-(value / noise_error).abs()),
        };
        (name.clone(), precision)
    };
    Ok(released.iter().zip(&variances).map(of).collect())
}

/// Variances of the published coefficients, from the covariance of each vector in public units.
fn published_variances(fitted: &Fitted, covariances: &[Vec<f64>]) -> Result<Vec<f64>> {
    let p = fitted.units.width();
    let mut all = Vec::with_capacity(covariances.len() * p);
    for covariance in covariances {
        let published = fitted.units.published_covariance(covariance)?;
        all.extend((0..p).map(|j| published[j * p + j]));
    }
    Ok(all)
}

/// Standard errors with sampling, for the owner: those of a sandwich, which hold whether or not the family is the true one.
/// None for a balanced model, whose weights are functions of the data.
pub(super) fn with_sampling(
    fitted: &Fitted,
    noise: &[Vec<f64>],
    released: &[(String, f64)],
) -> Result<Option<Inference>> {
    let rows = fitted.units.rows(&fitted.loaded.rows);
    let sampled = match (&fitted.fit, fitted.counting) {
        (_, Counting::Weights) => return Ok(None),
        (Minimiser::Glm(fit), Counting::Units) => {
            vec![sampling_covariance(&rows, fit, Sampling::Sandwich)?]
        }
        (Minimiser::Glm(fit), Counting::Exact | Counting::Bounded) => {
            vec![sampling_covariance(&rows, &fitted.units.fit(fit)?.fit, Sampling::Sandwich)?]
        }
        (Minimiser::Softmax(fit), Counting::Units) => softmax_sampling_covariances(&rows, fit)?,
        (Minimiser::Softmax(fit), Counting::Exact | Counting::Bounded) => {
            softmax_sampling_covariances(&rows, &fitted.units.softmax(fit)?.fit)?
        }
    };
    let (sampled, noisy) = (published_variances(fitted, &sampled)?, published_variances(fitted, noise)?);
    let z = normal_quantile(0.5 + 0.5 * LEVEL);
    let coefficients = released
        .iter()
        .zip(sampled.iter().zip(&noisy))
        .map(|((name, estimate), (sampled, noise))| {
            let standard_error = (sampled.max(0.0) + noise).sqrt();
            Coefficient {
                name: name.clone(),
                estimate: *estimate,
                sampling_error: sampled.max(0.0).sqrt(),
                noise_error: noise.sqrt(),
                standard_error,
                low: estimate - z * standard_error,
                high: estimate + z * standard_error,
                p_value: 2.0 * normal_cdf(-(estimate / standard_error).abs()),
            }
        })
        .collect();
    Ok(Some(Inference { sampling: Sampling::Sandwich, level: LEVEL, original_units: true, coefficients }))
}
