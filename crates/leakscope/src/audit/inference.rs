//! Standard errors of the coefficients as they would be released: sampling and noise together.

use super::Request;
use super::noise::Chosen;
use crate::Result;
use crate::failure::explain;
use crate::model::{Loaded, class_names};
use leakscope_core::fisher::noise::{
    Noise, Sampling, class_covariances, sampling_covariance, softmax_sampling_covariances,
};
use leakscope_core::glm::Fitted;
use leakscope_core::linalg::{matmul, matmul_by_transposed};
use leakscope_core::special::{normal_cdf, normal_quantile};
use leakscope_report::audit::SigmaSource;
use leakscope_report::noise::{Coefficient, Inference};
use leakscope_table::Encoding;

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// One vector of coefficients as encoded, with the covariances of its two errors.
struct Vector {
    /// The class it belongs to, where each has one.
    class: Option<String>,
    w: Vec<f64>,
    sampled: Vec<f64>,
    noisy: Vec<f64>,
}

/// Standard errors in original units where there are such; none where no noise was chosen, or where the coefficients were not
/// fitted here.
pub(super) fn inference(
    request: &Request,
    loaded: &Loaded,
    fit: Option<Fitted<'_>>,
    chosen: &Chosen,
) -> Result<Option<Inference>> {
    let Some(fit) = fit.filter(|_| chosen.source != SigmaSource::Default) else { return Ok(None) };
    let (encoding, sampling) = (&loaded.encoding, Sampling::Sandwich);
    let explained = |e| explain(e, encoding, request.l2);
    let noisy = chosen.gaussian(fit.free())?.covariance();
    let vectors = match fit {
        Fitted::Glm(fit) => {
            let sampled = sampling_covariance(&loaded.rows, fit, sampling).map_err(explained)?;
            vec![Vector { class: None, w: fit.w.clone(), sampled, noisy }]
        }
        Fitted::Softmax(fit) => {
            let p = fit.width;
            let sampled = softmax_sampling_covariances(&loaded.rows, fit).map_err(explained)?;
            let noisy = match &chosen.shaped {
                Some(_) => class_covariances(&noisy, fit.classes, p),
                // On every coefficient of every class, in their common direction too.
                None => vec![Noise::isotropic(chosen.sigma, p)?.covariance(); fit.classes],
            };
            let names = class_names(encoding).unwrap_or_default();
            let mut vectors = vec![];
            for (((class, w), sampled), noisy) in
                names.into_iter().zip(fit.w.chunks_exact(p)).zip(sampled).zip(noisy)
            {
                vectors.push(Vector { class: Some(class), w: w.to_vec(), sampled, noisy });
            }
            vectors
        }
    };
    let mut original_units = true;
    let mut coefficients = vec![];
    for vector in &vectors {
        let original = encoding.original_units(&vector.w);
        original_units &= original.is_some();
        coefficients.extend(of_vector(encoding, vector, original));
    }
    Ok(Some(Inference { sampling, level: LEVEL, original_units, coefficients }))
}

/// The coefficients of a vector in original units, where there are such.
fn of_vector(encoding: &Encoding, vector: &Vector, original: Option<Vec<(String, f64)>>) -> Vec<Coefficient> {
    let p = vector.w.len();
    let (names, estimates): (Vec<String>, Vec<f64>) = match &original {
        Some(named) => named.iter().cloned().unzip(),
        None => (encoding.columns(), vector.w.clone()),
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
    let (of_sampling, of_noise) = (variances(&vector.sampled), variances(&vector.noisy));
    let z = normal_quantile(0.5 + 0.5 * LEVEL);
    let of = |(i, column): (usize, String)| {
        let (estimate, standard_error) = (estimates[i], (of_sampling[i] + of_noise[i]).sqrt());
        Coefficient {
            name: vector.class.as_ref().map_or_else(|| column.clone(), |c| format!("{c}: {column}")),
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
    };
    names.into_iter().enumerate().map(of).collect()
}
