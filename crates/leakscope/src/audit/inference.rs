//! Standard errors of the coefficients as they would be released: sampling and noise together.

use super::noise::Chosen;
use super::{Model, Request};
use crate::Result;
use crate::failure::explain;
use crate::model::Loaded;
use leakscope_core::fisher::noise::{Sampling, standard_errors};
use leakscope_core::linalg::{matmul, matmul_by_transposed};
use leakscope_core::special::{normal_cdf, normal_quantile};
use leakscope_report::audit::SigmaSource;
use leakscope_report::noise::{Coefficient, Inference};

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// Standard errors in original units where there are such; none where no noise was chosen, or where the coefficients were not
/// fitted here.
pub(super) fn inference(
    request: &Request,
    loaded: &Loaded,
    model: &Model,
    chosen: &Chosen,
) -> Result<Option<Inference>> {
    if chosen.source == SigmaSource::Default || model.best.is_some() {
        return Ok(None);
    }
    let (encoding, fit) = (&loaded.encoding, &model.fit);
    let p = fit.w.len();
    let noise = chosen.gaussian(p)?;
    let sampling = Sampling::Sandwich;
    let found = standard_errors(&loaded.rows, fit, &noise, &fit.w, (sampling, LEVEL))
        .map_err(|e| explain(e, encoding, request.l2))?;
    let noisy = noise.covariance();
    let sampled: Vec<f64> = found.covariance.iter().zip(&noisy).map(|(all, noise)| all - noise).collect();
    let original = encoding.original_units(&fit.w);
    let (names, estimates): (Vec<String>, Vec<f64>) = match &original {
        Some(named) => named.iter().cloned().unzip(),
        None => (encoding.columns(), fit.w.clone()),
    };
    // Coefficients in original units are T w: column j of T is what a coefficient of one gives.
    let m = names.len();
    let mut transform = vec![0.0; m * p];
    for j in 0..p {
        let unit: Vec<f64> = (0..p).map(|k| f64::from(u8::from(j == k))).collect();
        match original.as_ref().and_then(|_| encoding.original_units(&unit)) {
            Some(column) => (0..m).for_each(|i| transform[i * p + j] = column[i].1),
            None => transform[j * p + j] = 1.0,
        }
    }
    let variances = |covariance: &[f64]| -> Vec<f64> {
        let (mut half, mut out) = (vec![0.0; m * p], vec![0.0; m * m]);
        matmul(&transform, covariance, (m, p, p), &mut half);
        matmul_by_transposed(&half, &transform, (m, p, m), &mut out);
        (0..m).map(|i| out[i * m + i].max(0.0)).collect()
    };
    let (of_sampling, of_noise) = (variances(&sampled), variances(&noisy));
    let z = normal_quantile(0.5 + 0.5 * LEVEL);
    let coefficients = names.into_iter().enumerate().map(|(i, name)| {
        let (estimate, standard_error) = (estimates[i], (of_sampling[i] + of_noise[i]).sqrt());
        Coefficient {
            name,
            estimate,
            sampling_error: of_sampling[i].sqrt(),
            noise_error: of_noise[i].sqrt(),
            standard_error,
            low: estimate - z * standard_error,
            high: estimate + z * standard_error,
            p_value: if standard_error > 0.0 {
                2.0 * normal_cdf(-(estimate / standard_error).abs())
            } else {
                1.0
            },
        }
    });
    let coefficients = coefficients.collect();
    Ok(Some(Inference { sampling, level: LEVEL, original_units: original.is_some(), coefficients }))
}
