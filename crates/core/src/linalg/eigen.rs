//! Eigenvalues of symmetric matrices: all of them, or the largest by Lanczos.

use super::divide::{self, Eigen};
use super::tridiagonal::Tridiagonal;
use super::{FEW_PIECES, axpy, check_finite, dot, failed, norm, scattered, times, view};
use crate::Result;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

/// Eigenvalues of a symmetric p × p matrix, largest first, and its eigenvectors as columns of a row-major p × p
/// matrix.
pub fn symmetric_eigen(a: &[f64], p: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    if p == 0 {
        return Ok((vec![], vec![]));
    }
    check_finite("a symmetric matrix", a)?;
    if p >= STAGED_FROM {
        return in_stages(a, p);
    }
    let mut vectors = Mat::zeros(p, p);
    let values = at_once(view(a, p), Some(vectors.as_mut()))?;
    let ordered = values.into_iter().rev().collect();
    let mut q = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..p {
            q[i * p + j] = vectors[(i, p - 1 - j)];
        }
    }
    Ok((ordered, q))
}

/// Eigenvalues, smallest first, and the vectors where there is room for them.
fn at_once(a: MatRef<'_, f64>, vectors: Option<MatMut<'_, f64>>) -> Result<Vec<f64>> {
    let p = a.nrows();
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut memory =
        MemBuffer::new(self_adjoint_evd_scratch::<f64>(p, wanted, FEW_PIECES, Default::default()));
    let mut values = Diag::zeros(p);
    let stack = MemStack::new(&mut memory);
    self_adjoint_evd(a, values.as_mut(), vectors, FEW_PIECES, stack, Default::default())
        .map_err(|_| failed("an eigenvalue"))?;
    Ok(values.column_vector().iter().copied().collect())
}

/// From this size on eigenvectors are had in stages of our own: faer's spend most of the time on one core.
const STAGED_FROM: usize = 256;

/// The same with T tridiagonal between: `A = QTQᵀ`, the eigenvectors of T, and Q times these.
fn in_stages(a: &[f64], p: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    // In a unit of its own, so that squares are numbers; a power of two, so that nothing is rounded by it.
    let largest = a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let unit =
        if largest >= f64::MIN_POSITIVE { f64::from_bits(largest.to_bits() & (0x7ff << 52)) } else { 1.0 };
    let t = Tridiagonal::new(a.iter().map(|v| v / unit).collect(), p);
    let Eigen { values, mut vectors } = divide::tridiagonal(t.diagonal.clone(), &t.beside)?;
    t.rotate(&mut vectors);
    let mut q = vec![0.0; p * p];
    let rows = 16;
    q.par_chunks_mut(rows * p).enumerate().for_each(|(k, q)| {
        for (j, vector) in vectors.chunks_exact(p).rev().enumerate() {
            for (q, v) in q.chunks_exact_mut(p).zip(&vector[k * rows..]) {
                q[j] = *v;
            }
        }
    });
    Ok((values.iter().rev().map(|value| value * unit).collect(), q))
}

/// From this size on the largest eigenvalue is sought by Lanczos first.
const LANCZOS_FROM: usize = 256;

/// Largest eigenvalue of a symmetric positive semidefinite p × p matrix.
pub fn largest_eigenvalue(a: &[f64], p: usize) -> Result<f64> {
    if p == 0 {
        return Ok(0.0);
    }
    check_finite("a symmetric matrix", a)?;
    if p >= LANCZOS_FROM {
        let top = lanczos_top(a, p, 4 * LANCZOS_STEPS, 1e-13)?;
        // An eigenvalue lies within the residual of a Ritz value; the error of the extreme one is its square over
        // the gap.
        if top.residual <= 1e-12 * top.value {
            return Ok(top.value.max(0.0));
        }
    }
    let values = at_once(view(a, p), None)?;
    Ok(values.last().copied().unwrap_or(0.0).max(0.0))
}

/// Steps of Lanczos for [`condition`]: extreme eigenvalues settle to far better than the 1% that is asked of them.
const LANCZOS_STEPS: usize = 40;

/// Condition number λ₁/λ_p of a symmetric positive definite matrix from its inverse, to about 1%, and the
/// direction of its smallest eigenvalue.
pub fn condition(a: &[f64], inverse: &[f64], p: usize) -> Result<(f64, Vec<f64>)> {
    // Each in a unit of its own, so that squares are numbers whatever the units of the columns.
    let in_units = |a: &[f64]| -> Result<(f64, Vec<f64>)> {
        let unit = (0..p).map(|j| a[j * p + j].abs()).fold(f64::MIN_POSITIVE, f64::max);
        let scaled: Vec<f64> = a.iter().map(|v| v / unit).collect();
        let top = lanczos_top(&scaled, p, LANCZOS_STEPS, 1e-3)?;
        Ok((unit * top.value, top.vector))
    };
    let ((largest, _), (value, vector)) = (in_units(a)?, in_units(inverse)?);
    Ok(((largest * value).clamp(1.0, f64::MAX), vector))
}

struct Top {
    value: f64,
    vector: Vec<f64>,
    /// `‖A v − value·v‖`.
    residual: f64,
}

/// Largest eigenvalue and its vector of a symmetric positive semidefinite matrix by Lanczos with full
/// reorthogonalisation from a fixed start; stops early where the residual is below `enough`, relative.
fn lanczos_top(a: &[f64], p: usize, most_steps: usize, enough: f64) -> Result<Top> {
    let steps = most_steps.min(p);
    // A fixed start without symmetries that a structured matrix could be orthogonal to.
    let mut q: Vec<f64> = (0..p).map(|i| 1.0 + scattered(i)).collect();
    let length = norm(&q);
    q.iter_mut().for_each(|v| *v /= length);
    let mut basis = vec![q];
    let (mut alpha, mut beta) = (vec![], vec![]);
    for k in 0..steps {
        let mut next = times(a, &basis[k]);
        alpha.push(dot(&next, &basis[k]));
        for _ in 0..2 {
            for b in &basis {
                let overlap = dot(&next, b);
                axpy(-overlap, b, &mut next);
            }
        }
        let length = norm(&next);
        let exhausted = k + 1 == steps || length <= 1e-14 * alpha[0].abs();
        if exhausted
            || (k % 10 == 9 && {
                // The residual of a Ritz pair is the next β times the last entry of its vector.
                let (values, vectors) = tridiagonal_eigen(&alpha, &beta)?;
                length * vectors[k * (k + 1)].abs() <= enough * values[0]
            })
        {
            break;
        }
        beta.push(length);
        next.iter_mut().for_each(|v| *v /= length);
        basis.push(next);
    }
    let m = alpha.len();
    let (values, vectors) = tridiagonal_eigen(&alpha, &beta)?;
    let mut top = vec![0.0; p];
    for (k, b) in basis.iter().take(m).enumerate() {
        axpy(vectors[k * m], b, &mut top);
    }
    let value = values.first().copied().unwrap_or(0.0);
    let residual = norm(&times(a, &top).iter().zip(&top).map(|(av, v)| av - value * v).collect::<Vec<_>>());
    Ok(Top { value, vector: top, residual })
}

/// Eigenvalues and vectors of the symmetric tridiagonal matrix with diagonal `alpha` and off-diagonal `beta`.
fn tridiagonal_eigen(alpha: &[f64], beta: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let m = alpha.len();
    let mut t = vec![0.0; m * m];
    for i in 0..m {
        t[i * m + i] = alpha[i];
        if i + 1 < m {
            t[i * m + i + 1] = beta[i];
            t[(i + 1) * m + i] = beta[i];
        }
    }
    symmetric_eigen(&t, m)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dense_gram, example};
    use super::super::{Cholesky, gram_add, matmul, matmul_transposed};
    use super::*;

    /// A Gram matrix of random numbers.
    fn random_gram(p: usize) -> Vec<f64> {
        let mut x = vec![0.0; 2 * p * p];
        let mut h = 1_u64;
        for v in &mut x {
            h = h.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *v = (h >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        }
        let mut a = vec![0.0; p * p];
        gram_add(&x, None, p, &mut a);
        a
    }

    #[test]
    fn a_decomposition_in_stages_is_one_and_the_same_on_any_number_of_threads() {
        let p = STAGED_FROM + 17;
        let a = random_gram(p);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| symmetric_eigen(&a, p).unwrap())
        };
        let (values, q) = on(1);
        for threads in [2, 5] {
            assert!((&values, &q) == (&on(threads).0, &on(threads).1), "{threads} threads");
        }
        let at_once = at_once(view(&a, p), None).unwrap();
        assert!(values.iter().rev().zip(&at_once).all(|(x, y)| (x - y).abs() < 1e-12 * values[0]));
        let (mut product, mut inner) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&a, &q, (p, p, p), &mut product);
        matmul_transposed(&q, &q, (p, p, p), &mut inner);
        for i in 0..p {
            for j in 0..p {
                let expected = q[i * p + j] * values[j];
                assert!((product[i * p + j] - expected).abs() < 1e-12 * values[0]);
                assert!((inner[i * p + j] - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_largest_eigenvalue_of_a_large_matrix_is_that_of_a_full_decomposition() {
        let p = LANCZOS_FROM + 40;
        let a = random_gram(p);
        let all = view(&a, p).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        assert!((largest_eigenvalue(&a, p).unwrap() / all[p - 1] - 1.0).abs() < 1e-12);
    }

    /// Two columns that are one and the same: their difference is the top vector, and nothing else leads to it. Whatever is between them,
    /// the start must not be equal at both.
    #[test]
    fn the_difference_of_two_equal_columns_is_found_however_far_apart_they_are() {
        let p = LANCZOS_FROM + 40;
        for between in [1, 50, 101, 202, 256] {
            let mut a = vec![0.0; p * p];
            (0..p).for_each(|i| a[i * p + i] = 1.0 + i as f64 / p as f64);
            a[between * p + between] = a[0];
            for (i, j, sign) in [(0, 0, 1.0), (between, between, 1.0), (0, between, -1.0), (between, 0, -1.0)]
            {
                a[i * p + j] += 20.0 * sign;
            }
            let actual = largest_eigenvalue(&a, p).unwrap();
            assert!((actual / 41.0 - 1.0).abs() < 1e-12, "{between} between: {actual}");
        }
    }

    #[test]
    fn eigenvalues_come_largest_first_with_their_vectors() {
        let p = 9;
        let a = dense_gram(&example(20, p), &[1.0; 20], p);
        let (values, q) = symmetric_eigen(&a, p).unwrap();
        assert!(values.windows(2).all(|w| w[0] >= w[1]));
        for j in 0..p {
            let v: Vec<f64> = (0..p).map(|i| q[i * p + j]).collect();
            let av = times(&a, &v);
            assert!(av.iter().zip(&v).all(|(x, y)| (x - values[j] * y).abs() < 1e-12 * values[0]));
        }
        assert!((largest_eigenvalue(&a, p).unwrap() / values[0] - 1.0).abs() < 1e-13);
        let inverse = Cholesky::new(&a, p).unwrap().inverse();
        let (cond, direction) = condition(&a, &inverse, p).unwrap();
        assert!((cond / (values[0] / values[p - 1]) - 1.0).abs() < 0.01);
        let overlap: f64 = (0..p).map(|i| direction[i] * q[i * p + p - 1]).sum();
        assert!(overlap.abs() > 0.999);
    }
}
