//! Dense linear algebra on row-major slices: products by `gemm`, decompositions by `faer`.
//!
//! Products run on the calling thread: parallelism lives one level up, over blocks of rows, which is what
//! scales on tall and narrow tables.

use crate::{Error, Result};
use faer::{MatRef, Side};
use gemm::Parallelism;

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

fn view(a: &[f64], p: usize) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(a, p, p)
}

fn failed(what: &'static str) -> Error {
    Error::OutOfRange { what, value: f64::NAN, expected: "a matrix of finite numbers" }
}

/// Eigenvalues of a symmetric p × p matrix, largest first, and its eigenvectors as columns of a row-major p × p
/// matrix.
pub fn symmetric_eigen(a: &[f64], p: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    if p == 0 {
        return Ok((vec![], vec![]));
    }
    check_finite("a symmetric matrix", a)?;
    let eigen = view(a, p).self_adjoint_eigen(Side::Lower).map_err(|_| failed("an eigenvalue"))?;
    let (values, vectors) = (eigen.S(), eigen.U());
    let ordered = (0..p).rev().map(|j| values[j]).collect();
    let mut q = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..p {
            q[i * p + j] = vectors[(i, p - 1 - j)];
        }
    }
    Ok((ordered, q))
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
    let values = view(a, p).self_adjoint_eigenvalues(Side::Lower).map_err(|_| failed("an eigenvalue"))?;
    Ok(values.last().copied().unwrap_or(0.0).max(0.0))
}

fn check_finite(what: &'static str, a: &[f64]) -> Result<()> {
    match a.iter().find(|v| !v.is_finite()) {
        Some(&value) => Err(Error::OutOfRange { what, value, expected: "finite numbers" }),
        None => Ok(()),
    }
}

/// A column counts as a combination of the others when at most this share of its square is left without them,
/// times the number of columns: rounding in a Gram matrix leaves about that much of an exactly dependent one.
const DEPENDENT: f64 = 64.0 * f64::EPSILON;

/// Cholesky factor of a symmetric positive definite matrix, with its rows and columns scaled to a unit diagonal
/// first, so that columns in very different units do not look dependent.
#[derive(Debug, Clone)]
pub struct Cholesky {
    p: usize,
    /// Lower factor of `D⁻¹AD⁻¹`, row-major.
    lower: Vec<f64>,
    /// `D`, the square roots of the diagonal.
    scale: Vec<f64>,
}

impl Cholesky {
    /// Factors `a` (p × p, both triangles); a dependent column is named with the columns it depends on.
    pub fn new(a: &[f64], p: usize) -> Result<Self> {
        check_finite("the Hessian", a)?;
        let mut scale = Vec::with_capacity(p);
        for j in 0..p {
            let diagonal = a[j * p + j];
            if diagonal <= 0.0 {
                return Err(Error::Singular { column: j, of: vec![] });
            }
            scale.push(diagonal.sqrt());
        }
        let mut unit = a.to_vec();
        for i in 0..p {
            for j in 0..p {
                unit[i * p + j] /= scale[i] * scale[j];
            }
        }
        let tolerance = DEPENDENT * p as f64;
        let mut lower = vec![0.0; p * p];
        let complete = match view(&unit, p).llt(Side::Lower) {
            Ok(factor) => {
                let l = factor.L();
                for i in 0..p {
                    for j in 0..=i {
                        lower[i * p + j] = l[(i, j)];
                    }
                }
                (0..p).all(|j| lower[j * p + j].powi(2) > tolerance)
            }
            Err(_) => false,
        };
        if complete { Ok(Self { p, lower, scale }) } else { Err(dependent_column(&unit, p, tolerance)) }
    }

    /// The lower factor L of `A = LLᵀ` in the units of A, row-major.
    pub fn lower(&self) -> Vec<f64> {
        let p = self.p;
        (0..p * p).map(|ij| self.lower[ij] * self.scale[ij / p]).collect()
    }

    /// `A⁻¹ b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let p = self.p;
        let mut x: Vec<f64> = b.iter().zip(&self.scale).map(|(v, d)| v / d).collect();
        forward(&self.lower, p, &mut x);
        backward(&self.lower, p, &mut x);
        x.iter().zip(&self.scale).map(|(v, d)| v / d).collect()
    }

    /// `A⁻¹`, both triangles.
    pub fn inverse(&self) -> Vec<f64> {
        let p = self.p;
        let mut inverse_lower = faer::Mat::<f64>::identity(p, p);
        faer::linalg::triangular_solve::solve_lower_triangular_in_place(
            view(&self.lower, p),
            inverse_lower.as_mut(),
            faer::get_global_parallelism(),
        );
        // A⁻¹ = D⁻¹ L⁻ᵀ L⁻¹ D⁻¹
        let product = inverse_lower.transpose() * &inverse_lower;
        let mut out = vec![0.0; p * p];
        for i in 0..p {
            for j in 0..p {
                out[i * p + j] = product[(i.max(j), i.min(j))] / (self.scale[i] * self.scale[j]);
            }
        }
        out
    }
}

/// `a⁻¹ b` for a 2 × 2 matrix; none where its determinant is rounding alone.
pub(crate) fn solve2(a: [f64; 4], b: [f64; 2]) -> Option<[f64; 2]> {
    let det = a[0] * a[3] - a[1] * a[2];
    let size = (a[0] * a[3]).abs() + (a[1] * a[2]).abs();
    if det.is_nan() || det.abs() <= 1e-13 * size {
        return None;
    }
    Some([(b[0] * a[3] - a[1] * b[1]) / det, (a[0] * b[1] - b[0] * a[2]) / det])
}

/// `x ← L⁻¹x` with the leading rows of a factor whose rows are p long.
fn forward(lower: &[f64], p: usize, x: &mut [f64]) {
    for i in 0..x.len() {
        let row = &lower[i * p..i * p + i];
        x[i] = (x[i] - dot(row, &x[..i])) / lower[i * p + i];
    }
}

/// `x ← L⁻ᵀx`, likewise.
fn backward(lower: &[f64], p: usize, x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        x[i] /= lower[i * p + i];
        let (head, tail) = x.split_at_mut(i);
        axpy(-tail[0], &lower[i * p..i * p + i], head);
    }
}

/// The first column of a unit-diagonal matrix that depends on earlier ones, and those it depends on.
fn dependent_column(unit: &[f64], p: usize, tolerance: f64) -> Error {
    let mut lower = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..=i {
            let s = unit[i * p + j] - dot(&lower[i * p..i * p + j], &lower[j * p..j * p + j]);
            if j < i {
                lower[i * p + j] = s / lower[j * p + j];
            } else if s > tolerance {
                lower[i * p + i] = s.sqrt();
            } else {
                // Row i is L₁₁⁻¹a; the combination itself is c = L₁₁⁻ᵀ(L₁₁⁻¹a).
                let mut c = lower[i * p..i * p + i].to_vec();
                backward(&lower, p, &mut c);
                let of = (0..i).filter(|&k| c[k].abs() > 1e-6).collect();
                return Error::Singular { column: i, of };
            }
        }
    }
    // Unreachable in exact arithmetic: the blocked factorisation found a bad pivot where this one did not.
    Error::Singular { column: p - 1, of: (0..p - 1).collect() }
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
    let mut q: Vec<f64> = (0..p).map(|i| 1.0 + ((i * 7919 + 13) % 101) as f64 / 101.0).collect();
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
    use super::*;

    fn example(n: usize, p: usize) -> Vec<f64> {
        (0..n * p).map(|i| ((i * 7919 + 17) % 1009) as f64 / 504.5 - 1.0).collect()
    }

    fn dense_gram(x: &[f64], w: &[f64], p: usize) -> Vec<f64> {
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

    #[test]
    fn cholesky_solves_and_inverts_even_in_wild_units() {
        let p = 12;
        let mut x = example(60, p);
        for row in x.chunks_exact_mut(p) {
            row[0] *= 1e9;
            row[5] *= 1e-7;
        }
        let a = dense_gram(&x, &[1.0; 60], p);
        let factor = Cholesky::new(&a, p).unwrap();
        let truth: Vec<f64> = (0..p).map(|i| (i as f64 - 3.0) / a[i * p + i].sqrt()).collect();
        let solved = factor.solve(&times(&a, &truth));
        assert!((0..p).all(|i| (solved[i] - truth[i]).abs() * a[i * p + i].sqrt() < 1e-11));
        let inverse = factor.inverse();
        let mut identity = vec![0.0; p * p];
        matmul(&a, &inverse, (p, p, p), &mut identity);
        for i in 0..p {
            for j in 0..p {
                let unit = identity[i * p + j] * (a[j * p + j] / a[i * p + i]).sqrt();
                assert!((unit - f64::from(u8::from(i == j))).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn a_dependent_column_is_named_with_what_it_depends_on() {
        let p = 5;
        let mut x = example(30, p);
        for row in x.chunks_exact_mut(p) {
            row[3] = 2.0 * row[0] - row[2];
        }
        let a = dense_gram(&x, &[1.0; 30], p);
        assert_eq!(Cholesky::new(&a, p).unwrap_err(), Error::Singular { column: 3, of: vec![0, 2] });
        for row in x.chunks_exact_mut(p) {
            row[3] = 0.0;
        }
        let a = dense_gram(&x, &[1.0; 30], p);
        assert_eq!(Cholesky::new(&a, p).unwrap_err(), Error::Singular { column: 3, of: vec![] });
    }

    #[test]
    fn the_largest_eigenvalue_of_a_large_matrix_is_that_of_a_full_decomposition() {
        let p = LANCZOS_FROM + 40;
        let mut x = vec![0.0; 2 * p * p];
        let mut h = 1_u64;
        for v in &mut x {
            h = h.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *v = (h >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        }
        let mut a = vec![0.0; p * p];
        gram_add(&x, None, p, &mut a);
        let all = view(&a, p).self_adjoint_eigenvalues(Side::Lower).unwrap();
        assert!((largest_eigenvalue(&a, p).unwrap() / all[p - 1] - 1.0).abs() < 1e-12);
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
