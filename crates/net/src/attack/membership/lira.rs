//! The likelihood ratio attack (Carlini, Chien, Nasr, Song, Terzis, Tramèr 2022): confidences of a record under models that
//! were trained on it and under models that were not are two normals; which of them explains the attacked model better?

use super::shadow::Shadow;
use crate::error::{Result, check, check_len};

/// Fewer models than this on either side, and the spread is that of all records together (as published).
const OWN_SPREAD: usize = 32;

/// `log N(φ; in) − log N(φ; out)` of every record of the pool, φ its confidence under the attacked model.
pub fn lira(target: &[f64], shadows: &[Shadow]) -> Result<Vec<f64>> {
    check(shadows.len() >= 2, "the number of shadow models", shadows.len() as f64, "at least 2")?;
    for s in shadows {
        check_len("the confidences of a shadow model", s.confidences.len(), target.len())?;
        check_len("who was in a shadow model", s.included.len(), target.len())?;
    }
    let of = |i: usize, inside: bool| -> Vec<f64> {
        shadows.iter().filter(|s| s.included[i] == inside).map(|s| s.confidences[i]).collect()
    };
    let spread = |inside: bool| {
        let (mut sum, mut degrees) = (0.0, 0.0);
        for i in 0..target.len() {
            let values = of(i, inside);
            let mean = average(&values);
            sum += values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            degrees += (values.len() as f64 - 1.0).max(0.0);
        }
        if degrees > 0.0 { sum / degrees } else { 1.0 }
    };
    let shared = [spread(true), spread(false)];
    let score = |(i, &phi): (usize, &f64)| {
        let log_density = |inside: bool| {
            let values = of(i, inside);
            let mean = average(&values);
            let variance = match values.len() {
                n if n >= OWN_SPREAD => {
                    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0)
                }
                _ => shared[usize::from(!inside)],
            };
            let variance = variance.max(1e-12);
            -0.5 * ((phi - mean).powi(2) / variance + variance.ln())
        };
        log_density(true) - log_density(false)
    };
    Ok(target.iter().enumerate().map(score).collect())
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attack::membership::Roc,
        random::{Generator, Purpose},
    };

    /// Normals of known means, other for every record: the ratio is the optimal test, whose area is Φ(d/√2), and no global
    /// threshold comes near it.
    #[test]
    fn the_ratio_is_the_best_test_of_two_normals() {
        let (n, models, d) = (4000, 64, 2.0);
        let mut rng = Generator::new(8, Purpose::Other, 0);
        let base: Vec<f64> = (0..n).map(|_| 5.0 * rng.normal()).collect();
        let mut model = |k: usize| {
            let included: Vec<bool> = (0..n).map(|i| (i + k).is_multiple_of(2)).collect();
            let confidences =
                (0..n).map(|i| base[i] + if included[i] { d } else { 0.0 } + rng.normal()).collect();
            Shadow { included, confidences }
        };
        let shadows: Vec<Shadow> = (0..models).map(&mut model).collect();
        let target = model(0);
        let split = |scores: &[f64]| {
            let side = |inside: bool| -> Vec<f64> {
                (0..n).filter(|&i| target.included[i] == inside).map(|i| scores[i]).collect()
            };
            Roc::new(&side(true), &side(false)).unwrap()
        };
        let best = leakscope_core::special::normal_cdf(d / 2f64.sqrt());
        let area = split(&lira(&target.confidences, &shadows).unwrap()).area();
        assert!((area - best).abs() < 0.02, "{area} {best}");
        assert!(split(&target.confidences).area() < 0.65);
        assert!(lira(&target.confidences, &shadows[..1]).is_err());
        assert!(lira(&target.confidences[1..], &shadows).is_err());
    }
}
