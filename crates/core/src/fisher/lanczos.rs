//! Largest eigenvalue of one small positive semidefinite matrix after another, by Lanczos.
//!
//! Vectors are not made orthogonal again: what they lose of it, they lose towards a Ritz vector that has converged, which
//! repeats that Ritz value and leaves the largest where it is (Paige). It is run until it stands; a matrix for which it
//! does not within a few dozen steps is decomposed whole. Where the two largest eigenvalues agree to seven digits, what is found
//! lies between them.

use crate::Result;
use crate::linalg::{largest_eigenvalue, norm, scattered};
use crate::vector::dispatch;
use pulp::{Simd, WithSimd};

/// Lanczos for the largest eigenvalue of one small matrix after another, its buffers kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanczos {
    before: Vec<f64>,
    now: Vec<f64>,
    next: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
}

/// Steps before the first look at the Ritz value, and between two looks.
const FIRST: usize = 8;
const BETWEEN: usize = 4;
/// Relative change of the Ritz value between two looks that counts as none.
const STANDS: f64 = 1e-14;
/// Steps after which the whole decomposition is cheaper.
const MOST_STEPS: usize = 64;

impl Lanczos {
    /// Of m × m numbers in rows that are `stride` apart, a multiple of eight, with zeros between them.
    pub(super) fn top(&mut self, a: &[f64], m: usize, stride: usize) -> Result<f64> {
        let whole = || {
            let compact: Vec<f64> =
                a.chunks_exact(stride).take(m).flat_map(|row| &row[..m]).copied().collect();
            largest_eigenvalue(&compact, m)
        };
        if m <= 1 {
            return if m == 0 { Ok(0.0) } else { whole() };
        }
        // From the column of the largest diagonal entry, bent off any symmetry.
        let widest = (0..m).max_by(|&i, &j| a[i * stride + i].total_cmp(&a[j * stride + j])).unwrap_or(0);
        if !a[widest * stride + widest].is_finite() || a[widest * stride + widest] <= 0.0 {
            return whole();
        }
        let column = &a[widest * stride..][..m];
        let bend = 0.05 * norm(column) / (m as f64).sqrt();
        self.now.clear();
        self.now.extend(column.iter().enumerate().map(|(i, v)| v + bend * (0.5 + scattered(i))));
        let length = norm(&self.now);
        self.now.iter_mut().for_each(|v| *v /= length);
        self.now.resize(stride, 0.0);
        self.before.clear();
        self.before.resize(stride, 0.0);
        self.next.resize(stride, 0.0);
        self.alpha.clear();
        self.beta.clear();
        dispatch(Steps { a, m, stride, lanczos: self }).map_or_else(whole, Ok)
    }
}

struct Steps<'a> {
    a: &'a [f64],
    m: usize,
    stride: usize,
    lanczos: &'a mut Lanczos,
}

impl WithSimd for Steps<'_> {
    type Output = Option<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<f64> {
        let Self { a, m, stride, lanczos: Lanczos { before, now, next, alpha, beta } } = self;
        let mut last = 0.0_f64;
        for step in 0..MOST_STEPS {
            product(simd, &a[..m * stride], now, next);
            let along = dot(simd, next, now);
            alpha.push(along);
            let behind = beta.last().copied().unwrap_or(0.0);
            let length = {
                let (minus_along, minus_behind) = (simd.splat_f64s(-along), simd.splat_f64s(-behind));
                let mut square = simd.splat_f64s(0.0);
                let vectors = S::as_mut_simd_f64s(next).0.iter_mut();
                let others = S::as_simd_f64s(now).0.iter().zip(S::as_simd_f64s(before).0);
                for (v, (now, before)) in vectors.zip(others) {
                    *v = simd.mul_add_e_f64s(minus_along, *now, *v);
                    *v = simd.mul_add_e_f64s(minus_behind, *before, *v);
                    square = simd.mul_add_e_f64s(*v, *v, square);
                }
                simd.reduce_sum_f64s(square).sqrt()
            };
            if !length.is_finite() {
                return None;
            }
            let exhausted = length <= 1e-14 * last.max(alpha[0]);
            if exhausted || (step + 1 >= FIRST && (step + 1 - FIRST).is_multiple_of(BETWEEN)) {
                if last > 0.0 && none_above(alpha, beta, last * (1.0 + STANDS)) {
                    return Some(last);
                }
                last = tridiagonal_top(alpha, beta);
                if exhausted {
                    return Some(last.max(0.0));
                }
            }
            beta.push(length);
            let shrink = simd.splat_f64s(1.0 / length);
            S::as_mut_simd_f64s(next).0.iter_mut().for_each(
                #[inline(always)]
                |v| *v = simd.mul_f64s(*v, shrink),
            );
            // The oldest vector's place is the next one's.
            std::mem::swap(before, now);
            std::mem::swap(now, next);
        }
        None
    }
}

/// `Σ a b`.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f64], b: &[f64]) -> f64 {
    let mut sum = simd.splat_f64s(0.0);
    for (a, b) in S::as_simd_f64s(a).0.iter().zip(S::as_simd_f64s(b).0) {
        sum = simd.mul_add_e_f64s(*a, *b, sum);
    }
    simd.reduce_sum_f64s(sum)
}

/// `out = A v`, as the sum of A's columns (its rows), a few vectors of each at a time.
#[inline(always)]
fn product<S: Simd>(simd: S, a: &[f64], v: &[f64], out: &mut [f64]) {
    let (a, out) = (S::as_simd_f64s(a).0, S::as_mut_simd_f64s(out).0);
    let (vectors, mut first) = (out.len(), 0);
    while first < vectors {
        match vectors - first {
            1 => first += some_rows::<S, 1>(simd, a, v, first, out),
            2 => first += some_rows::<S, 2>(simd, a, v, first, out),
            3 => first += some_rows::<S, 3>(simd, a, v, first, out),
            5 => first += some_rows::<S, 5>(simd, a, v, first, out),
            6 => first += some_rows::<S, 6>(simd, a, v, first, out),
            7 => first += some_rows::<S, 7>(simd, a, v, first, out),
            _ => first += some_rows::<S, 4>(simd, a, v, first, out),
        }
    }
}

#[inline(always)]
fn some_rows<S: Simd, const N: usize>(
    simd: S,
    a: &[S::f64s],
    v: &[f64],
    first: usize,
    out: &mut [S::f64s],
) -> usize {
    let mut sum = [simd.splat_f64s(0.0); N];
    for (row, v) in a.chunks_exact(out.len()).zip(v) {
        let (row, v) = (&row[first..first + N], simd.splat_f64s(*v));
        for n in 0..N {
            sum[n] = simd.mul_add_e_f64s(v, row[n], sum[n]);
        }
    }
    out[first..first + N].copy_from_slice(&sum);
    N
}

/// Whether no eigenvalue of a symmetric tridiagonal matrix lies above `bound`: all leading minors are positive there.
fn none_above(alpha: &[f64], beta: &[f64], bound: f64) -> bool {
    let (unit, mut p, mut before) = (1.0 / bound, 1.0, 0.0);
    for (i, alpha) in alpha.iter().enumerate() {
        let b = if i > 0 { beta[i - 1] * unit } else { 0.0 };
        (before, p) = (p, (1.0 - alpha * unit) * p - b * b * before);
        if p.is_nan() || p <= 0.0 {
            return false;
        }
    }
    true
}

/// Largest eigenvalue of a symmetric tridiagonal matrix: Laguerre's iteration from above on its characteristic polynomial,
/// whose roots are real, so that it falls monotonically onto the largest.
fn tridiagonal_top(alpha: &[f64], beta: &[f64]) -> f64 {
    let m = alpha.len();
    let radius = |i: usize| if i < m - 1 { beta[i] } else { 0.0 } + if i > 0 { beta[i - 1] } else { 0.0 };
    let most = (0..m).map(|i| alpha[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
    if m == 1 || !(most > 0.0 && most.is_finite()) {
        return alpha[0];
    }
    // In units of `most` the minors of a few dozen rows stay within the numbers.
    let (unit, degree) = (1.0 / most, m as f64);
    let mut theta = 1.0;
    for _ in 0..60 {
        // p, p' and p'' of one leading minor after another, and of the one before; all p positive above the root.
        let (mut p, mut before) = ([1.0, 0.0, 0.0], [0.0; 3]);
        for i in 0..m {
            let z = theta - alpha[i] * unit;
            let b = if i > 0 { beta[i - 1] * unit } else { 0.0 };
            let next = [
                z * p[0] - b * b * before[0],
                z * p[1] + p[0] - b * b * before[1],
                z * p[2] + 2.0 * p[1] - b * b * before[2],
            ];
            (before, p) = (p, next);
            if p[0].is_nan() || p[0] <= 0.0 {
                return most * theta;
            }
        }
        let slope = p[1] / p[0];
        let bend = slope * slope - p[2] / p[0];
        let step = degree / (slope + ((degree - 1.0) * (degree * bend - slope * slope)).max(0.0).sqrt());
        if !step.is_finite() || step <= 1e-16 * theta {
            return most * theta;
        }
        theta -= step;
    }
    most * theta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::matmul_by_transposed;
    use crate::random::Seeded;

    fn top(lanczos: &mut Lanczos, a: &[f64], m: usize) -> Result<f64> {
        let stride = m.next_multiple_of(8);
        let mut rows = vec![0.0; m * stride];
        (0..m * m).for_each(|ij| rows[ij / m * stride + ij % m] = a[ij]);
        lanczos.top(&rows, m, stride)
    }

    #[test]
    fn it_is_the_eigenvalue_of_a_full_decomposition() {
        let (mut random, mut lanczos) = (Seeded::new(3), Lanczos::default());
        let shapes = [(1, 1), (2, 2), (5, 1), (9, 9), (30, 4), (50, 80), (60, 60), (70, 500), (130, 20)];
        for ((m, rank), unit) in shapes.into_iter().flat_map(|shape| [1.0, 1e-140, 1e140].map(|u| (shape, u)))
        {
            let x: Vec<f64> = random.normals(m * rank).iter().map(|v| v * unit).collect();
            let mut a = vec![0.0; m * m];
            matmul_by_transposed(&x, &x, (m, rank, m), &mut a);
            let truth = largest_eigenvalue(&a, m).unwrap();
            assert!((top(&mut lanczos, &a, m).unwrap() / truth - 1.0).abs() < 1e-12, "{m}, rank {rank}");
        }
        // Repeated and diagonal: every start is as good as exhausted after a few steps.
        let diagonal: Vec<f64> =
            (0..36).map(|ij| if ij % 7 == 0 { f64::from(ij / 7 % 3) } else { 0.0 }).collect();
        assert!((top(&mut lanczos, &diagonal, 6).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(top(&mut lanczos, &[0.0; 9], 3).unwrap(), 0.0);
        assert_eq!(top(&mut lanczos, &[], 0).unwrap(), 0.0);
        assert!(top(&mut lanczos, &[f64::NAN; 4], 2).is_err());
    }

    #[test]
    fn the_difference_of_two_equal_columns_is_found_however_far_apart_they_are() {
        let (m, mut lanczos) = (120, Lanczos::default());
        for between in [1, 17, 50, 101] {
            // The column that it starts from is another.
            let mut a = vec![0.0; m * m];
            (0..m).for_each(|i| a[i * m + i] = if i == 7 { 30.0 } else { 1.0 });
            for (i, j, sign) in [(0, 0, 1.0), (between, between, 1.0), (0, between, -1.0), (between, 0, -1.0)]
            {
                a[i * m + j] += 20.0 * sign;
            }
            let actual = top(&mut lanczos, &a, m).unwrap();
            assert!((actual / 41.0 - 1.0).abs() < 1e-12, "{between} between: {actual}");
        }
    }

    #[test]
    fn eigenvalues_that_almost_meet_are_told_apart() {
        let (mut random, mut lanczos) = (Seeded::new(8), Lanczos::default());
        let m = 40;
        for gap in [1e-3, 1e-5, 1e-7, 1e-9, 0.0] {
            // Reflections of a diagonal matrix whose two largest entries are so close.
            let mut a = vec![0.0; m * m];
            (0..m).for_each(|i| {
                a[i * m + i] = if i == 0 { 1.0 } else { (1.0 - gap) * 0.97_f64.powi(i as i32 - 1) }
            });
            for _ in 0..3 {
                let v = random.normals(m);
                let square: f64 = v.iter().map(|v| v * v).sum();
                let reflect = |a: &[f64]| -> Vec<f64> {
                    let along: Vec<f64> =
                        (0..m).map(|j| (0..m).map(|i| v[i] * a[i * m + j]).sum::<f64>()).collect();
                    (0..m * m).map(|ij| a[ij] - 2.0 / square * v[ij / m] * along[ij % m]).collect()
                };
                let half = reflect(&a);
                let turned: Vec<f64> = (0..m * m).map(|ij| half[ij % m * m + ij / m]).collect();
                a = reflect(&turned);
            }
            let truth = largest_eigenvalue(&a, m).unwrap();
            let value = top(&mut lanczos, &a, m).unwrap();
            // Between two that agree to seven digits it may stop.
            let apart = if gap <= 1e-7 { gap } else { 0.0 };
            assert!((value / truth - 1.0).abs() < apart + 1e-11, "gap {gap}: {value} {truth}");
        }
    }
}
