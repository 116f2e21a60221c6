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
//!
//! Noise with a covariance makes the predictors dependent ([`shaped`]).

mod shaped;

use crate::linalg::{matmul_by_transposed, norm};
use crate::pass::{self, Merge, Pass};
use crate::rows::{Block, Rows};
use crate::special::normal_cdf;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

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

/// The pass for the expected accuracy of coefficients under noise of several scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accuracy<'a> {
    /// Coefficients W, K × p.
    pub w: Cow<'a, [f64]>,
    /// Number of classes K.
    pub classes: usize,
    /// Scales of the noise; 0 for none.
    pub scales: Cow<'a, [f64]>,
    /// Factor of the covariance of the noise on the contrasts, q × q, q = (K−1)p; empty where every coefficient of every class has
    /// noise of the same scale.
    pub factor: Cow<'a, [f64]>,
}

/// Probabilities of being right so far, summed at each scale, and records by class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AccuracySums {
    sums: Vec<f64>,
    counts: Vec<u64>,
}

impl Merge for AccuracySums {
    fn merge(&mut self, later: Self) {
        self.sums.iter_mut().zip(later.sums).for_each(|(a, b)| *a += b);
        self.counts.iter_mut().zip(later.counts).for_each(|(a, b)| *a += b);
    }
}

impl Pass for Accuracy<'_> {
    const NAME: &'static str = "the expected accuracy of a softmax model";
    type State = AccuracySums;

    fn start(&self) -> AccuracySums {
        AccuracySums { sums: vec![0.0; self.scales.len()], counts: vec![0; self.classes] }
    }

    fn step(&self, AccuracySums { sums, counts }: &mut AccuracySums, block: &Block) -> Result<()> {
        let (p, q) = (block.width, self.classes.saturating_sub(1) * block.width);
        if self.w.len() != self.classes * p {
            let (actual, expected) = (self.w.len(), self.classes * p);
            return Err(Error::Shape { subject: "the coefficients", actual, expected });
        }
        if self.factor.is_empty() {
            return of_block(block, (&self.w, self.classes), counts, |x, z, y| {
                let length = norm(x);
                let all = sums.iter_mut().zip(self.scales.iter());
                all.for_each(|(sum, sigma)| *sum += right(z, y, sigma * length));
            });
        }
        if self.factor.len() != q * q {
            let (actual, expected) = (self.factor.len(), q * q);
            return Err(Error::Shape { subject: "the factor of the noise", actual, expected });
        }
        let quadrature = shaped::Quadrature::new(self.classes, &self.factor, q);
        of_block(block, (&self.w, self.classes), counts, |x, z, y| {
            let rivals = quadrature.rivals(x, z, y);
            for (sum, &scale) in sums.iter_mut().zip(self.scales.iter()) {
                *sum += if scale > 0.0 { rivals.behind(scale) } else { right(z, y, 0.0) };
            }
        })
    }

    fn fits(&self, state: &AccuracySums) -> bool {
        state.sums.len() == self.scales.len() && state.counts.len() == self.classes
    }
}

/// Expected accuracy of coefficients W (K × p) under noise of each scale (0: without noise), over rows whose target is the
/// class from 0.
///
/// # Errors
/// [`Error::Shape`] for rows of another width, [`Error::OutOfRange`] for a target that is no class, [`Error::Empty`].
pub fn expected_accuracy(rows: &dyn Rows, w: &[f64], classes: usize, sigmas: &[f64]) -> Result<Accuracies> {
    let (w, scales) = (Cow::Borrowed(w), Cow::Borrowed(sigmas));
    over_rows(rows, &Accuracy { w, classes, scales, factor: Cow::Borrowed(&[]) })
}

/// The same under noise on the contrasts Θ with covariance `s²FFᵀ` for each scale s (`factor`, q × q, q = (K−1)p): exact with two
/// classes, a quadrature to about three digits a row with more.
///
/// # Errors
/// As [`expected_accuracy`]; [`Error::Shape`] for a factor of another size.
pub fn expected_accuracy_under(
    rows: &dyn Rows,
    w: &[f64],
    classes: usize,
    (scales, factor): (&[f64], &[f64]),
) -> Result<Accuracies> {
    let q = classes.saturating_sub(1) * rows.width();
    if factor.len() != q * q {
        return Err(Error::Shape {
            subject: "the factor of the noise",
            actual: factor.len(),
            expected: q * q,
        });
    }
    let (w, scales, factor) = (Cow::Borrowed(w), Cow::Borrowed(scales), Cow::Borrowed(factor));
    over_rows(rows, &Accuracy { w, classes, scales, factor })
}

fn over_rows(rows: &dyn Rows, accuracy: &Accuracy<'_>) -> Result<Accuracies> {
    let expected = accuracy.classes * rows.width();
    if accuracy.w.len() != expected {
        return Err(Error::Shape { subject: "the coefficients", actual: accuracy.w.len(), expected });
    }
    let AccuracySums { sums, counts } = pass::run(accuracy, rows)?;
    let n: u64 = counts.iter().sum();
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

fn of_block(
    block: &Block,
    (w, classes): (&[f64], usize),
    counts: &mut [u64],
    mut add: impl FnMut(&[f64], &[f64], usize),
) -> Result<()> {
    let (n, p) = (block.len(), block.width);
    let mut z = vec![0.0; n * classes];
    matmul_by_transposed(&block.x, w, (n, p, classes), &mut z);
    for (i, z) in z.chunks_exact(classes).enumerate() {
        let y = block.y[i];
        if !(y >= 0.0 && y.fract() == 0.0 && y < classes as f64) {
            let expected = "a class of the model";
            return Err(Error::OutOfRange { subject: "a target", value: y, expected });
        }
        counts[y as usize] += 1;
        add(block.row(i), z, y as usize);
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
        let actual = expected_accuracy(&rows, &w, 3, &[0.0, 0.4]).unwrap();
        assert_eq!((actual.rows, actual.constant_model), (4, 0.5));
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
        assert!((actual.values[1] - share).abs() < 0.005, "{} {share}", actual.values[1]);
        assert!(expected_accuracy(&rows, &w, 2, &[0.0]).is_err());
        assert!(
            expected_accuracy(&InMemory::from_matrix(&x, &[0.0, 1.0, 3.0, 0.0], &[], 3), &w, 3, &[0.0])
                .is_err()
        );
    }

    /// A factor of the identity is isotropic noise on the contrasts, which is isotropic noise on the classes.
    #[test]
    fn a_round_covariance_is_isotropic_noise() {
        for classes in [2_usize, 3, 4, 6] {
            let (p, q) = (2, 2 * (classes - 1));
            let x = [0.5, 1.0, -1.0, 1.0, 2.0, 1.0, 0.1, 1.0];
            let y: Vec<f64> = (0..4).map(|i| (i % classes) as f64).collect();
            let w: Vec<f64> = (0..classes * p).map(|i| 0.7 * ((i * 5 % 7) as f64 - 3.0)).collect();
            let rows = InMemory::from_matrix(&x, &y, &[], 3);
            let factor: Vec<f64> = (0..q * q).map(|ij| if ij % q == ij / q { 1.0 } else { 0.0 }).collect();
            let scales = [0.0, 0.1, 0.7, 3.0, 100.0];
            let truth = expected_accuracy(&rows, &w, classes, &scales).unwrap();
            let actual = expected_accuracy_under(&rows, &w, classes, (&scales, &factor)).unwrap();
            for (actual, truth) in actual.values.iter().zip(&truth.values) {
                let close = if classes == 2 { 1e-12 } else { 2e-3 };
                assert!((actual - truth).abs() < close, "{classes} classes: {actual} {truth}");
            }
            assert!(expected_accuracy_under(&rows, &w, classes, (&scales, &[1.0])).is_err());
        }
    }

    /// Against draws of noise with a covariance far from round, a coefficient without noise among them.
    #[test]
    fn expectations_under_a_covariance_are_means_over_noise() {
        let (classes, p, q) = (3, 2, 4);
        let (x, y) = ([0.5, 1.0, -1.0, 1.0, 2.0, 1.0, 0.1, 1.0], [0.0, 1.0, 2.0, 1.0]);
        let w = [-0.5, 0.2, 0.1, 0.3, 0.4, -0.5];
        let factor = [
            1.0, 0.0, 0.0, 0.0, //
            0.9, 0.3, 0.0, 0.0, //
            -0.8, 0.1, 0.4, 0.0, //
            0.0, 0.5, -0.2, 1e-6,
        ];
        let rows = InMemory::from_matrix(&x, &y, &[], 3);
        let actual = expected_accuracy_under(&rows, &w, classes, (&[0.8], &factor)).unwrap();
        let u = crate::glm::softmax::contrasts(classes);
        let mut random = crate::random::Seeded::new(8);
        let (draws, mut right) = (40_000, 0_u32);
        for _ in 0..draws {
            let e = random.normals(q);
            let theta: Vec<f64> =
                (0..q).map(|i| 0.8 * (0..q).map(|j| factor[i * q + j] * e[j]).sum::<f64>()).collect();
            for (x, y) in x.chunks_exact(p).zip(y) {
                let z = |c: usize| {
                    (0..p)
                        .map(|j| x[j] * (w[c * p + j] + u[c * 2] * theta[j] + u[c * 2 + 1] * theta[p + j]))
                        .sum::<f64>()
                };
                let best = (0..classes).fold(0, |b, k| if z(k) > z(b) { k } else { b });
                right += u32::from(best as f64 == y);
            }
        }
        let share = f64::from(right) / (4.0 * f64::from(draws));
        assert!((actual.values[0] - share).abs() < 0.006, "{} {share}", actual.values[0]);
    }
}
