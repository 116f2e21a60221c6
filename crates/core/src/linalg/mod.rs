//! Dense linear algebra on row-major slices: products by `gemm`, decompositions by `faer`.
//!
//! Products run on the calling thread: parallelism lives one level up, over blocks of rows, which is what
//! scales on tall and narrow tables.

mod cholesky;
mod divide;
mod eigen;
mod tridiagonal;

use crate::{Error, Result};
use faer::{MatRef, Par};
use gemm::Parallelism;
use rayon::prelude::*;
use std::num::NonZeroUsize;

pub use cholesky::Cholesky;
pub(crate) use cholesky::solve2;
pub use eigen::{condition, largest_eigenvalue, symmetric_eigen};

/// Shape and stride of a row-major operand inside a longer slice.
#[derive(Clone, Copy)]
struct View {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl View {
    fn last(self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }

    fn transposed(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride }
    }
}

/// `out = (accumulate ? out : 0) + a b`.
fn product(a: &[f64], va: View, b: &[f64], vb: View, out: &mut [f64], vo: View, accumulate: bool) {
    product_on(Parallelism::None, a, va, b, vb, out, vo, accumulate);
}

#[allow(clippy::too_many_arguments)] // three operands with their views
fn product_on(
    parallelism: Parallelism,
    a: &[f64],
    va: View,
    b: &[f64],
    vb: View,
    out: &mut [f64],
    vo: View,
    accumulate: bool,
) {
    assert!(va.cols == vb.rows && vo.rows == va.rows && vo.cols == vb.cols, "shapes of a product");
    assert!(va.last() <= a.len() && vb.last() <= b.len() && vo.last() <= out.len(), "operands in bounds");
    if vo.rows == 0 || vo.cols == 0 {
        return;
    }
    // SAFETY: the three views were just checked to lie inside their slices, and `out` is borrowed exclusively,
    // so it aliases neither operand.
    unsafe {
        gemm::gemm(
            vo.rows,
            vo.cols,
            va.cols,
            out.as_mut_ptr(),
            vo.col_stride as isize,
            vo.row_stride as isize,
            accumulate,
            a.as_ptr(),
            va.col_stride as isize,
            va.row_stride as isize,
            b.as_ptr(),
            vb.col_stride as isize,
            vb.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn row_major(rows: usize, cols: usize) -> View {
    View { rows, cols, row_stride: cols, col_stride: 1 }
}

/// `out = a b` with `a` n × k, `b` k × m, `out` n × m.
pub fn matmul(a: &[f64], b: &[f64], (n, k, m): (usize, usize, usize), out: &mut [f64]) {
    product(a, row_major(n, k), b, row_major(k, m), out, row_major(n, m), false);
}

/// `out = a b` on all threads: for products of square matrices, which are made once a model. Results do not depend on
/// the number of threads: each entry is summed by one of them.
pub fn matmul_parallel(a: &[f64], b: &[f64], (n, k, m): (usize, usize, usize), out: &mut [f64]) {
    let all = Parallelism::Rayon(0);
    product_on(all, a, row_major(n, k), b, row_major(k, m), out, row_major(n, m), false);
}

/// `out = aᵀ b` on all threads, with `a` k × n, `b` k × m, `out` n × m.
pub fn matmul_transposed_parallel(a: &[f64], b: &[f64], (n, k, m): (usize, usize, usize), out: &mut [f64]) {
    let all = Parallelism::Rayon(0);
    product_on(all, a, row_major(k, n).transposed(), b, row_major(k, m), out, row_major(n, m), false);
}

/// `out = a bᵀ` with `a` n × k, `b` m × k, `out` n × m.
pub fn matmul_by_transposed(a: &[f64], b: &[f64], (n, k, m): (usize, usize, usize), out: &mut [f64]) {
    product(a, row_major(n, k), b, row_major(m, k).transposed(), out, row_major(n, m), false);
}

/// `out += xᵀ c` for the rows of `x`, each of the length of `out`.
pub fn add_transposed_times(x: &[f64], c: &[f64], out: &mut [f64]) {
    let (n, p) = (c.len(), out.len());
    product(x, row_major(n, p).transposed(), c, row_major(n, 1), out, row_major(p, 1), true);
}

/// `out = aᵀ b` with `a` k × n, `b` k × m, `out` n × m.
pub fn matmul_transposed(a: &[f64], b: &[f64], (n, k, m): (usize, usize, usize), out: &mut [f64]) {
    product(a, row_major(k, n).transposed(), b, row_major(k, m), out, row_major(n, m), false);
}

/// Columns of one panel of a Gram matrix: narrow enough to skip half of the work, wide enough for the kernel.
const PANEL: usize = 128;

/// Adds `xᵀ diag(weights) x` to the lower triangle of `out` (p × p); `x` has rows of length p.
///
/// Only entries on and below the diagonal are meaningful afterwards: call [`mirror_lower`] once all is added.
/// `scratch` holds the weighted copy of `x` and is reused between calls.
pub fn gram_add_lower(x: &[f64], weights: Option<&[f64]>, p: usize, scratch: &mut Vec<f64>, out: &mut [f64]) {
    if p == 0 {
        return;
    }
    let n = x.len() / p;
    let right = match weights {
        None => x,
        Some(weights) => {
            scratch.clear();
            scratch.reserve(x.len());
            for (row, &omega) in x.chunks_exact(p).zip(weights) {
                scratch.extend(row.iter().map(|v| v * omega));
            }
            scratch.as_slice()
        }
    };
    for j in (0..p).step_by(PANEL) {
        let width = PANEL.min(p - j);
        let left_view = View { rows: n, cols: p - j, row_stride: p, col_stride: 1 }.transposed();
        let right_view = View { rows: n, cols: width, row_stride: p, col_stride: 1 };
        let out_view = View { rows: p - j, cols: width, row_stride: p, col_stride: 1 };
        if n > 0 {
            product(&x[j..], left_view, &right[j..], right_view, &mut out[j * p + j..], out_view, true);
        }
    }
}

/// Adds `xᵀ diag(weights) x` to `out` (p × p), both triangles.
pub fn gram_add(x: &[f64], weights: Option<&[f64]>, p: usize, out: &mut [f64]) {
    gram_add_lower(x, weights, p, &mut Vec::new(), out);
    mirror_lower(out, p);
}

/// Copies the lower triangle of a p × p matrix onto its upper one.
pub fn mirror_lower(a: &mut [f64], p: usize) {
    for i in 0..p {
        for j in i + 1..p {
            a[i * p + j] = a[j * p + i];
        }
    }
}

/// Inner product, in eight independent sums that the compiler can keep in vector registers.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut acc = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for lane in 0..8 {
            acc[lane] += x[lane] * y[lane];
        }
    }
    ((acc[0] + acc[4]) + (acc[1] + acc[5])) + ((acc[2] + acc[6]) + (acc[3] + acc[7])) + tail
}

/// `out += factor · x`.
pub fn axpy(factor: f64, x: &[f64], out: &mut [f64]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o += factor * v;
    }
}

/// Numbers from which adding is worth more than one thread.
const MANY: usize = 1 << 16;

/// `out += x`, on all threads where these are many: sums of parts are merged while nobody else has work.
pub fn add(x: &[f64], out: &mut [f64]) {
    if out.len() < MANY {
        return axpy(1.0, x, out);
    }
    out.par_chunks_mut(MANY / 4).zip(x.par_chunks(MANY / 4)).for_each(|(out, x)| axpy(1.0, x, out));
}

/// A number from 0 to 1 for each place of a vector, another for every place: where an iteration starts that finds nothing its start
/// is orthogonal to. With a pattern in it, it would be orthogonal to the difference of two columns that are equal.
pub(crate) fn scattered(place: usize) -> f64 {
    let mut h = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((h ^ (h >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Euclidean norm.
pub fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// `a v` for a p × p matrix.
pub fn times(a: &[f64], v: &[f64]) -> Vec<f64> {
    if v.is_empty() {
        return vec![];
    }
    a.chunks_exact(v.len()).map(|row| dot(row, v)).collect()
}

/// How many pieces a decomposition is cut into: always the same, because the order of its sums follows from it and no
/// digit may depend on the machine. What is made of products gains from as many as there are cores, what runs at the speed of
/// memory from a few.
const PIECES: Par = Par::Rayon(NonZeroUsize::new(16).expect("sixteen"));
const FEW_PIECES: Par = Par::Rayon(NonZeroUsize::new(4).expect("four"));

fn view(a: &[f64], p: usize) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(a, p, p)
}

fn failed(subject: &'static str) -> Error {
    Error::OutOfRange { subject, value: f64::NAN, expected: "a matrix of finite numbers" }
}

fn check_finite(subject: &'static str, a: &[f64]) -> Result<()> {
    match a.iter().find(|v| !v.is_finite()) {
        Some(&value) => Err(Error::OutOfRange { subject, value, expected: "finite numbers" }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn example(n: usize, p: usize) -> Vec<f64> {
        (0..n * p).map(|i| ((i * 7919 + 17) % 1009) as f64 / 504.5 - 1.0).collect()
    }

    pub(super) fn dense_gram(x: &[f64], w: &[f64], p: usize) -> Vec<f64> {
        let mut g = vec![0.0; p * p];
        for (row, w) in x.chunks_exact(p).zip(w) {
            for i in 0..p {
                for j in 0..p {
                    g[i * p + j] += w * row[i] * row[j];
                }
            }
        }
        g
    }

    #[test]
    fn products_match_their_definition() {
        let (n, k, m) = (7, 5, 3);
        let (a, b) = (example(n, k), example(k, m));
        let mut out = vec![f64::NAN; n * m];
        matmul(&a, &b, (n, k, m), &mut out);
        for i in 0..n {
            for j in 0..m {
                let expected: f64 = (0..k).map(|l| a[i * k + l] * b[l * m + j]).sum();
                assert!((out[i * m + j] - expected).abs() < 1e-14);
            }
        }
        let mut transposed = vec![f64::NAN; k * m];
        let c = example(n, m);
        matmul_transposed(&a, &c, (k, n, m), &mut transposed);
        let expected: f64 = (0..n).map(|l| a[l * k + 1] * c[l * m + 2]).sum();
        assert!((transposed[m + 2] - expected).abs() < 1e-13);
    }

    #[test]
    fn gram_matches_its_definition_across_panels() {
        for p in [1, 3, 127, 128, 129, 300] {
            let (x, w) = (example(40, p), (0..40).map(|i| 0.1 + i as f64 / 40.0).collect::<Vec<_>>());
            let mut out = vec![0.0; p * p];
            gram_add(&x, Some(&w), p, &mut out);
            let expected = dense_gram(&x, &w, p);
            assert!(out.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "p = {p}");
        }
    }
}
