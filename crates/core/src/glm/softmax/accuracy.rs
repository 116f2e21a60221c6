//! How often a softmax model is right under noise, as an expectation over the noise.
//!
//! With `N(0, s²I)` on all coefficients the K predictors of a row are `z + s‖x‖ε`, ε standard normal and independent, so that
//!
//! ```text
//! P(class y is largest) = ∫ φ(t) Π_{k≠y} Φ(t + (z_y − z_k)/s‖x‖) dt
//! ```
//!
//! No draw is needed: the integrand is analytic and no narrower than about a quarter, where the trapezium rule of step ⅛ has
//! no error that a double could hold.

use crate::linalg::{matmul_by_transposed, norm};
use crate::rows::{Block, Rows};
use crate::special::normal_cdf;
use crate::{Error, Result};

const STEP: f64 = 0.125;
const REACH: f64 = 8.5;

/// Accuracy on some rows at each of several noise scales.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracies {
    /// Expected share of rows whose class is predicted right, at each noise scale.
    pub values: Vec<f64>,
    /// Rows.
    pub rows: u64,
    /// What naming the most frequent class gets.
    pub constant_model: f64,
}

/// Expected accuracy of coefficients W (K × p) under noise of each scale (0: without noise), over rows whose target is the
/// class from 0.
///
/// # Errors
/// [`Error::Shape`] for rows of another width, [`Error::OutOfRange`] for a target that is no class, [`Error::Empty`].
pub fn expected_accuracy(rows: &dyn Rows, w: &[f64], classes: usize, sigmas: &[f64]) -> Result<Accuracies> {
    let p = rows.width();
    if w.len() != classes * p {
        return Err(Error::Shape { what: "the coefficients", found: w.len(), expected: classes * p });
    }
    let (mut sums, mut counts, mut n) = (vec![0.0; sigmas.len()], vec![0_u64; classes], 0_u64);
    rows.fold(
        || (vec![0.0; sigmas.len()], vec![0_u64; classes]),
        |(sums, counts), block| add(block, (w, classes), sigmas, (sums, counts)),
        |(part, seen)| {
            sums.iter_mut().zip(part).for_each(|(a, b)| *a += b);
            counts.iter_mut().zip(&seen).for_each(|(a, b)| *a += b);
            n += seen.iter().sum::<u64>();
            Ok(())
        },
    )?;
    if n == 0 {
        return Err(Error::Empty);
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    Ok(Accuracies {
        values: sums.into_iter().map(|v| (v / n as f64).clamp(0.0, 1.0)).collect(),
        rows: n,
        constant_model: most as f64 / n as f64,
    })
}

fn add(
    block: &Block,
    (w, classes): (&[f64], usize),
    sigmas: &[f64],
    (sums, counts): (&mut [f64], &mut [u64]),
) -> Result<()> {
    let (n, p) = (block.len(), block.width);
    let mut z = vec![0.0; n * classes];
    matmul_by_transposed(&block.x, w, (n, p, classes), &mut z);
    for (i, z) in z.chunks_exact(classes).enumerate() {
        let y = block.y[i];
        if !(y >= 0.0 && y.fract() == 0.0 && y < classes as f64) {
            let expected = "a class of the model";
            return Err(Error::OutOfRange { what: "a target", value: y, expected });
        }
        counts[y as usize] += 1;
        let length = norm(block.row(i));
        for (sum, sigma) in sums.iter_mut().zip(sigmas) {
            *sum += right(z, y as usize, sigma * length);
        }
    }
    Ok(())
}

/// Probability that class y has the largest predictor, with noise of this deviation on each; of equals the first is named.
fn right(z: &[f64], y: usize, deviation: f64) -> f64 {
    let rivals = || (0..z.len()).filter(move |k| *k != y);
    if deviation <= 0.0 {
        let ahead = |k: usize| if k < y { z[y] > z[k] } else { z[y] >= z[k] };
        return f64::from(u8::from(rivals().all(ahead)));
    }
    let gaps: Vec<f64> = rivals().map(|k| (z[y] - z[k]) / deviation).collect();
    let steps = (2.0 * REACH / STEP) as usize;
    let density = |t: f64| (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt();
    let at = |t: f64| density(t) * gaps.iter().map(|gap| normal_cdf(t + gap)).product::<f64>();
    STEP * (0..=steps).map(|k| at(STEP * k as f64 - REACH)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::InMemory;

    /// Two classes have a closed form, `Φ(gap/√2s)`; equal predictors share; a finer rule says the same.
    #[test]
    fn probabilities_of_the_largest() {
        for gap in [-6.0, -1.0, 0.0, 0.3, 2.0, 9.0] {
            let truth = normal_cdf(gap / (2_f64.sqrt() * 0.7));
            assert!((right(&[0.0, gap], 1, 0.7) - truth).abs() < 1e-12);
        }
        for classes in [2, 3, 10, 100] {
            assert!((right(&vec![0.4; classes], 0, 0.2) - 1.0 / classes as f64).abs() < 1e-12);
        }
        let z = [0.3, -0.2, 1.1, 0.9];
        let all: f64 = (0..4).map(|y| right(&z, y, 0.5)).sum();
        assert!((all - 1.0).abs() < 1e-12);
        assert_eq!(right(&z, 2, 0.0), 1.0);
        assert_eq!((right(&[1.0, 1.0], 0, 0.0), right(&[1.0, 1.0], 1, 0.0)), (1.0, 0.0));
        assert!((right(&z, 2, 1e-9) - 1.0).abs() < 1e-12);
    }

    /// Against draws of the noise on the coefficients themselves.
    #[test]
    fn expectations_are_means_over_noise() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let (x, y) = ([0.5, 1.0, -1.0, 1.0, 2.0, 1.0, 0.1, 1.0], [0.0, 1.0, 2.0, 1.0]);
        let w = [-0.5, 0.2, 0.1, 0.3, 0.4, -0.5];
        let rows = InMemory::from_matrix(&x, &y, &[], 3);
        let found = expected_accuracy(&rows, &w, 3, &[0.0, 0.4]).unwrap();
        assert_eq!((found.rows, found.constant_model), (4, 0.5));
        let (draws, mut right) = (40_000, 0_u32);
        for _ in 0..draws {
            let noisy: Vec<f64> = w.iter().map(|w| w + 0.4 * normal()).collect();
            for (x, y) in x.chunks_exact(2).zip(y) {
                let z: Vec<f64> = noisy.chunks_exact(2).map(|w| w[0] * x[0] + w[1] * x[1]).collect();
                let best = (0..3).fold(0, |b, k| if z[k] > z[b] { k } else { b });
                right += u32::from(best as f64 == y);
            }
        }
        let share = f64::from(right) / (4.0 * f64::from(draws));
        assert!((found.values[1] - share).abs() < 0.005, "{} {share}", found.values[1]);
        assert!(expected_accuracy(&rows, &w, 2, &[0.0]).is_err());
        assert!(
            expected_accuracy(&InMemory::from_matrix(&x, &[0.0, 1.0, 3.0, 0.0], &[], 3), &w, 3, &[0.0])
                .is_err()
        );
    }
}
