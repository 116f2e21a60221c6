//! The probability that one of several dependent normal predictors is the largest.
//!
//! With noise `N(0, s²FFᵀ)` on Θ the reduced predictors of a row are `Θx + s(I ⊗ xᵀ)Fε`, so what rivals gain on class y is normal
//! with a covariance `s²LLᵀ`, and that all stay behind is an orthant's probability. Separation of variables (Genz 1992) turns it
//! into an integral over the unit cube of K − 2 dimensions, here over the points of one fixed lattice, folded so that its integrand is
//! periodic: no draw, and the same digits for everybody. Two classes need no point.

use crate::glm::softmax::contrasts;
use crate::linalg::dot;
use crate::special::{normal_cdf, normal_quantile};

/// Points of the lattice.
const POINTS: usize = 128;
/// A rival whose noise given the others is less than this share of its own moves with them.
const DEPENDENT: f64 = 1e-12;

/// What rows share.
pub(super) struct Quadrature<'a> {
    classes: usize,
    factor: &'a [f64],
    q: usize,
    u: Vec<f64>,
    /// Points, POINTS × (K − 2).
    points: Vec<f64>,
}

/// The rivals of one row's class.
pub(super) struct Rivals<'a> {
    points: &'a [f64],
    /// How far ahead of each the class is, and L, m × m.
    ahead: Vec<f64>,
    lower: Vec<f64>,
}

impl<'a> Quadrature<'a> {
    pub(super) fn new(classes: usize, factor: &'a [f64], q: usize) -> Self {
        let dimensions = classes.saturating_sub(2);
        // Square roots of primes, folded: Richtmyer's lattice with the tent that makes functions periodic.
        let steps: Vec<f64> = primes(dimensions).into_iter().map(|p| (p as f64).sqrt()).collect();
        let mut points = Vec::with_capacity(POINTS * dimensions);
        for k in 0..POINTS {
            let folded = |(d, step): (usize, &f64)| {
                // One dimension has its own best rule: points evenly spaced.
                let at = match dimensions {
                    1 => (k as f64 + 0.5) / POINTS as f64,
                    _ => ((k as f64 + 0.5) * step + 0.5 * d as f64).fract(),
                };
                (2.0 * at - 1.0).abs()
            };
            points.extend(steps.iter().enumerate().map(folded));
        }
        Self { classes, factor, q, u: contrasts(classes), points }
    }

    pub(super) fn rivals(&self, x: &[f64], z: &[f64], y: usize) -> Rivals<'_> {
        let (k, p, q) = (self.classes - 1, x.len(), self.q);
        // (I ⊗ xᵀ)F, k × q.
        let mut moved = vec![0.0; k * q];
        for a in 0..k {
            let out = &mut moved[a * q..(a + 1) * q];
            for (j, x) in x.iter().enumerate() {
                // Rows of a lower triangle end at their diagonal.
                let row = &self.factor[(a * p + j) * q..][..=a * p + j];
                row.iter().zip(&mut *out).for_each(|(f, o)| *o += x * f);
            }
        }
        let mut others: Vec<usize> = (0..self.classes).filter(|c| *c != y).collect();
        // The closest first: the integrand varies most where the first rivals decide.
        others.sort_by(|a, b| z[*b].total_cmp(&z[*a]));
        let gains: Vec<f64> = others
            .iter()
            .flat_map(|&c| {
                let weights: Vec<f64> = (0..k).map(|a| self.u[c * k + a] - self.u[y * k + a]).collect();
                let moved = &moved;
                (0..q).map(move |i| (0..k).map(|a| weights[a] * moved[a * q + i]).sum::<f64>())
            })
            .collect();
        let m = others.len();
        let mut lower = vec![0.0; m * m];
        for i in 0..m {
            for j in 0..=i {
                let own = dot(&gains[i * q..(i + 1) * q], &gains[j * q..(j + 1) * q]);
                let rest = own - dot(&lower[i * m..i * m + j], &lower[j * m..j * m + j]);
                lower[i * m + j] = match i == j {
                    true if rest > DEPENDENT * own => rest.sqrt(),
                    true => 0.0,
                    false if lower[j * m + j] > 0.0 => rest / lower[j * m + j],
                    false => 0.0,
                };
            }
        }
        Rivals { points: &self.points, ahead: others.iter().map(|&c| z[y] - z[c]).collect(), lower }
    }
}

impl Rivals<'_> {
    /// Probability that no rival passes at this scale of the noise.
    pub(super) fn behind(&self, scale: f64) -> f64 {
        let m = self.ahead.len();
        if m == 1 {
            return self.stays(0, 0.0, scale);
        }
        let mut e = vec![0.0; m];
        let mut sum = 0.0;
        for point in self.points.chunks_exact(m - 1) {
            let mut mass = 1.0;
            for i in 0..m {
                let shift = dot(&self.lower[i * m..i * m + i], &e[..i]);
                let below = self.stays(i, shift, scale);
                mass *= below;
                if mass == 0.0 {
                    break;
                }
                if i + 1 < m {
                    // The quantile of a normal number that is known to stay below.
                    let at = (point[i] * below).clamp(1e-300, 1.0 - 1e-16);
                    e[i] = normal_quantile(at);
                }
            }
            sum += mass;
        }
        sum / POINTS as f64
    }

    /// Probability that rival i stays behind, given what the ones before it did.
    fn stays(&self, i: usize, shift: f64, scale: f64) -> f64 {
        let (spread, room) = (self.lower[i * self.ahead.len() + i], self.ahead[i] / scale - shift);
        match spread > 0.0 {
            true => normal_cdf(room / spread),
            false => f64::from(u8::from(room >= 0.0)),
        }
    }
}

/// The first primes.
fn primes(count: usize) -> Vec<usize> {
    (2_usize..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).take(count).collect()
}
