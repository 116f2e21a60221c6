//! Standard errors of released coefficients, in original units.
//!
//! The part from noise is exact and public: a function of the published covariance. The part from sampling is read off the
//! records; published with its digits it would be one more equation for the last record, so it stays with the owner.

use super::fitted::Fitted;
use crate::Result;
use leakscope_core::fisher::noise::{Noise, Sampling, standard_errors};
use leakscope_core::special::{normal_cdf, normal_quantile};
use leakscope_report::noise::{Coefficient, Inference};
use leakscope_report::release::{Counting, Precision};
use std::collections::BTreeMap;

/// Level of intervals.
const LEVEL: f64 = 0.95;

/// How well released coefficients tell the fitted ones.
pub(super) fn precision(
    fitted: &Fitted,
    noise: &Noise,
    released: &[(String, f64)],
) -> Result<BTreeMap<String, Precision>> {
    let covariance = fitted.units.published_covariance(&noise.covariance())?;
    let (p, z) = (noise.len(), normal_quantile(0.5 + 0.5 * LEVEL));
    let of = |(j, (name, value)): (usize, &(String, f64))| {
        let noise_error = covariance[j * p + j].sqrt();
        let precision = Precision {
            noise_error,
            low: value - z * noise_error,
            high: value + z * noise_error,
            p_value: 2.0 * normal_cdf(-(value / noise_error).abs()),
        };
        (name.clone(), precision)
    };
    Ok(released.iter().enumerate().map(of).collect())
}

/// Standard errors with sampling, for the owner: those of a sandwich, which hold whether or not the family is the true one.
/// None for a balanced model, whose weights are functions of the data.
pub(super) fn with_sampling(
    fitted: &Fitted,
    noise: &Noise,
    released: &[(String, f64)],
) -> Result<Option<Inference>> {
    let rows = fitted.units.rows(&fitted.loaded.rows);
    let fit = match fitted.counting {
        Counting::Weights => return Ok(None),
        Counting::Units => fitted.fit.clone(),
        Counting::Exact | Counting::Bounded => fitted.units.fit(&fitted.fit)?.fit,
    };
    // Estimates are put in below: in public units they do not matter.
    let found = standard_errors(&rows, &fit, noise, &fit.w, (Sampling::Sandwich, LEVEL))?;
    let (all, noisy) = (
        fitted.units.published_covariance(&found.covariance)?,
        fitted.units.published_covariance(&noise.covariance())?,
    );
    let (p, z) = (noise.len(), normal_quantile(0.5 + 0.5 * LEVEL));
    let coefficients = released
        .iter()
        .enumerate()
        .map(|(j, (name, estimate))| {
            let (both, noise) = (all[j * p + j], noisy[j * p + j]);
            let standard_error = both.sqrt();
            Coefficient {
                name: name.clone(),
                estimate: *estimate,
                sampling_error: (both - noise).max(0.0).sqrt(),
                noise_error: noise.sqrt(),
                standard_error,
                low: estimate - z * standard_error,
                high: estimate + z * standard_error,
                p_value: 2.0 * normal_cdf(-(estimate / standard_error).abs()),
            }
        })
        .collect();
    Ok(Some(Inference { sampling: found.sampling, level: LEVEL, original_units: true, coefficients }))
}
