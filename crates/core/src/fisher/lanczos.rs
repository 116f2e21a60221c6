//! Largest eigenvalue of one small positive semidefinite matrix after another, by Lanczos with full
//! reorthogonalisation.

use crate::Result;
use crate::linalg::{axpy, dot, largest_eigenvalue, matmul, norm};

/// Lanczos for the largest eigenvalue of one small matrix after another, its buffers kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanczos {
    basis: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

/// Steps between two looks at the Ritz value.
const BETWEEN: usize = 4;
/// Relative change of the Ritz value between two looks that counts as none.
const STANDS: f64 = 1e-14;

impl Lanczos {
    pub(super) fn top(&mut self, a: &[f64], m: usize) -> Result<f64> {
        if m == 0 {
            return Ok(0.0);
        }
        // From the column of the largest diagonal entry, bent off any symmetry.
        let widest = (0..m).max_by(|&i, &j| a[i * m + i].total_cmp(&a[j * m + j])).unwrap_or(0);
        if !a[widest * m + widest].is_finite() || a[widest * m + widest] <= 0.0 {
            return largest_eigenvalue(a, m);
        }
        self.basis.clear();
        self.alpha.clear();
        self.beta.clear();
        let column = &a[widest * m..(widest + 1) * m];
        let bend = 0.05 * norm(column) / (m as f64).sqrt();
        self.basis.extend(
            column.iter().enumerate().map(|(i, v)| v + bend * (0.5 + ((i * 7919 + 13) % 101) as f64 / 101.0)),
        );
        let length = norm(&self.basis);
        self.basis.iter_mut().for_each(|v| *v /= length);
        let mut last = 0.0_f64;
        let mut next = vec![0.0; m];
        for step in 0..m {
            let q = &self.basis[step * m..(step + 1) * m];
            matmul(a, q, (m, m, 1), &mut next);
            self.alpha.push(dot(&next, q));
            for b in self.basis.chunks_exact(m) {
                axpy(-dot(&next, b), b, &mut next);
            }
            let length = norm(&next);
            let exhausted = step + 1 == m || length <= 1e-14 * last.max(self.alpha[0]);
            if exhausted || step % BETWEEN == BETWEEN - 1 {
                let value = tridiagonal_top(&self.alpha, &self.beta);
                if exhausted || (value - last).abs() <= STANDS * value {
                    return Ok(value.max(0.0));
                }
                last = value;
            }
            self.beta.push(length);
            let first = self.basis.len();
            self.basis.extend(next.iter().map(|v| v / length));
            // A second time, since what is left after cancellation is not orthogonal.
            let (before, now) = self.basis.split_at_mut(first);
            before.chunks_exact(m).for_each(|b| axpy(-dot(now, b), b, now));
            let again = norm(now);
            now.iter_mut().for_each(|v| *v /= again);
        }
        largest_eigenvalue(a, m)
    }
}

/// Largest eigenvalue of a symmetric tridiagonal matrix: Newton from above on its characteristic polynomial, which is
/// convex there, so that it falls monotonically onto the root.
fn tridiagonal_top(alpha: &[f64], beta: &[f64]) -> f64 {
    let m = alpha.len();
    let radius = |i: usize| if i < m - 1 { beta[i] } else { 0.0 } + if i > 0 { beta[i - 1] } else { 0.0 };
    let mut theta = (0..m).map(|i| alpha[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..200 {
        // d_i = θ − α_i − β²/d_{i−1} are the ratios of the leading minors; all positive above the root.
        let (mut d, mut slope, mut sum) = (theta - alpha[0], 1.0, 0.0);
        for i in 0..m {
            if i > 0 {
                let ratio = beta[i - 1] / d;
                (d, slope) = (theta - alpha[i] - beta[i - 1] * ratio, 1.0 + ratio * ratio * slope);
            }
            if d.is_nan() || d <= 0.0 {
                return theta;
            }
            sum += slope / d;
        }
        let step = 1.0 / sum;
        theta -= step;
        if step <= 1e-16 * theta.abs() || !step.is_finite() {
            return theta;
        }
    }
    theta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::matmul_by_transposed;
    use crate::random::Seeded;

    #[test]
    fn it_is_the_eigenvalue_of_a_full_decomposition() {
        let (mut random, mut lanczos) = (Seeded::new(3), Lanczos::default());
        for (m, rank) in [(1, 1), (2, 2), (5, 1), (9, 9), (30, 4), (50, 80), (60, 60)] {
            let x = random.normals(m * rank);
            let mut a = vec![0.0; m * m];
            matmul_by_transposed(&x, &x, (m, rank, m), &mut a);
            let truth = largest_eigenvalue(&a, m).unwrap();
            assert!((lanczos.top(&a, m).unwrap() / truth - 1.0).abs() < 1e-12, "{m}, rank {rank}");
        }
        // Repeated and diagonal: every start is as good as exhausted after a few steps.
        let diagonal: Vec<f64> =
            (0..36).map(|ij| if ij % 7 == 0 { f64::from(ij / 7 % 3) } else { 0.0 }).collect();
        assert!((lanczos.top(&diagonal, 6).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(lanczos.top(&[0.0; 9], 3).unwrap(), 0.0);
        assert_eq!(lanczos.top(&[], 0).unwrap(), 0.0);
        assert!(lanczos.top(&[f64::NAN; 4], 2).is_err());
    }
}
