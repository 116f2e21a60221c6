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

/// The rows of T for `m` coefficients in original units, each as places and values of what is not zero: `Encoding::original_units`
/// as a matrix.
fn original_units(encoding: &Encoding, m: usize) -> Vec<Vec<(usize, f64)>> {
    let (mut rows, mut constant) = (Vec::with_capacity(m), vec![]);
    for a in &encoding.attributes {
        for j in a.columns.clone() {
            rows.push(vec![(j, 1.0 / a.scale)]);
            if a.centre != 0.0 {
                constant.push((j, -a.centre / a.scale));
            }
        }
    }
    if encoding.intercept {
        constant.push((encoding.data_width(), 1.0));
    }
    if rows.len() < m {
        rows.push(constant);
    }
    rows
}

/// The coefficients of a vector in original units, where there are such.
fn of_vector(encoding: &Encoding, vector: &Vector, original: Option<Vec<(String, f64)>>) -> Vec<Coefficient> {
    let p = vector.w.len();
    let (names, estimates): (Vec<String>, Vec<f64>) = match &original {
        Some(named) => named.iter().cloned().unzip(),
        None => (encoding.columns(), vector.w.clone()),
    };
    // Coefficients in original units are T w, and T has one number in every row but that of the intercept.
    let transform = match original {
        Some(_) => original_units(encoding, names.len()),
        None => (0..p).map(|j| vec![(j, 1.0)]).collect(),
    };
    let variances = |covariance: &[f64]| -> Vec<f64> {
        let variance = |row: &Vec<(usize, f64)>| {
            let sum =
                |&(a, t): &(usize, f64)| t * row.iter().map(|(b, u)| u * covariance[a * p + b]).sum::<f64>();
            row.iter().map(sum).sum::<f64>().max(0.0)
        };
        transform.iter().map(variance).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;
    use leakscope_table::{Hooks, ReadOptions, Roles};

    /// The matrix is what the encoding does to one coefficient after the other.
    #[test]
    fn rows_of_the_matrix_are_those_of_the_encoding() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut text = String::from("age,income,sex,y\n");
        for i in 0..40_u32 {
            let (sex, y) = (["f", "m", "x"][(i % 3) as usize], f64::from(i) * 0.3 + f64::from(i * i % 5));
            text += &format!("{},{},{sex},{y}\n", 20 + i * 7 % 50, 1000 + i * 131 % 900);
        }
        std::fs::write(&path, text).unwrap();
        for intercept in [true, false] {
            let request = Request {
                read: ReadOptions { paths: vec![path.clone()], ..ReadOptions::default() },
                roles: Roles { target: "y".into(), ..Roles::default() },
                intercept,
                ..Request::default()
            };
            let encoding = model::load(&request, &Hooks::default()).unwrap().encoding;
            let p = encoding.width();
            let unit = |j: usize| (0..p).map(|k| f64::from(u8::from(j == k))).collect::<Vec<f64>>();
            let m = encoding.original_units(&unit(0)).unwrap().len();
            let rows = original_units(&encoding, m);
            assert_eq!((rows.len(), m), (m, p + usize::from(!intercept)));
            for j in 0..p {
                for (i, (name, expected)) in
                    encoding.original_units(&unit(j)).unwrap().into_iter().enumerate()
                {
                    let value: f64 = rows[i].iter().filter(|(k, _)| *k == j).map(|(_, t)| t).sum();
                    assert!(
                        (value - expected).abs() <= 1e-15 * expected.abs(),
                        "{name} {j}: {value} {expected}"
                    );
                }
            }
        }
    }
}
