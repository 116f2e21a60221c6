//! `A = Q T Qᵀ` with T tridiagonal, and Q times vectors.
//!
//! Row by row, from the last to the first, a reflection clears what is beside the diagonal's neighbour. Half of the work is products
//! of the matrix with one vector, at the speed of memory: they read its lower triangle once, in pieces. The other half waits until
//! [`PANEL`] reflections have come together, and is then a product of matrices. Where pieces end follows from the size alone, and each
//! is summed by one thread, so that results do not depend on how many there are.

use super::{View, axpy, norm, product, row_major};
use crate::vector::dispatch;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// Reflections that are applied to the rest of the matrix together.
const PANEL: usize = 32;
/// Pieces of a product with a vector, and how many numbers a piece has at least: with fewer, starting it takes longer than it does.
const PIECES: usize = 4;
const PIECE: usize = 8192;
/// Pieces of what is products of matrices.
const MANY_PIECES: usize = 16;
/// A row of this norm is zero, beside numbers of about one.
const NOTHING: f64 = 1e-292;

/// A symmetric matrix made tridiagonal.
pub(super) struct Tridiagonal {
    p: usize,
    /// The diagonal of T, and what is beside it.
    pub(super) diagonal: Vec<f64>,
    pub(super) beside: Vec<f64>,
    /// Row i begins with the i numbers v of its reflection `I − τ vvᵀ`.
    vectors: Vec<f64>,
    tau: Vec<f64>,
}

impl Tridiagonal {
    /// Reduces a row-major symmetric p × p matrix with a largest number of about one; its lower triangle is read.
    pub(super) fn new(mut a: Vec<f64>, p: usize) -> Self {
        let (mut diagonal, mut beside) = (vec![0.0; p], vec![0.0; p.saturating_sub(1)]);
        let mut tau = vec![0.0; p];
        let mut waiting = Waiting::new(p);
        let mut sums = vec![0.0; PIECES * p];
        for i in (0..p).rev() {
            let (rest, row) = a.split_at_mut(i * p);
            dispatch(RowUpdate { waiting: &waiting, row: &mut row[..=i] });
            diagonal[i] = row[i];
            if i == 0 {
                break;
            }
            let v = &mut row[..i];
            (beside[i - 1], tau[i]) = reflection(v);
            if tau[i] == 0.0 {
                continue;
            }
            symmetric_product(rest, p, v, &mut sums);
            dispatch(Correction { waiting: &mut waiting, v, tau: tau[i], product: &mut sums[..i] });
            if waiting.count == PANEL {
                waiting.apply(rest, i);
            }
        }
        Self { p, diagonal, beside, vectors: a, tau }
    }

    /// Makes every row z of `rows` Qz.
    pub(super) fn rotate(&self, rows: &mut [f64]) {
        let p = self.p;
        let firsts: Vec<usize> = (1..p).step_by(PANEL).collect();
        let blocks: Vec<Reflections> =
            firsts.par_iter().map(|&first| Reflections::new(self, first..(first + PANEL).min(p))).collect();
        let in_piece = (rows.len() / p.max(1)).div_ceil(MANY_PIECES).max(1);
        rows.par_chunks_mut(in_piece * p).with_max_len(1).for_each(|rows| {
            let mut room = (vec![], vec![]);
            blocks.iter().for_each(|block| block.apply(rows, p, &mut room));
        });
    }
}

/// Makes `x` the v of the reflection that takes it to a multiple of the last unit vector; that multiple, and τ.
fn reflection(x: &mut [f64]) -> (f64, f64) {
    let last = x.len() - 1;
    let (pivot, rest) = (x[last], norm(&x[..last]));
    x[last] = 1.0;
    if rest <= NOTHING {
        x[..last].fill(0.0);
        return (pivot, 0.0);
    }
    let beta = -pivot.signum() * pivot.hypot(rest);
    let scale = 1.0 / (pivot - beta);
    x[..last].iter_mut().for_each(|v| *v *= scale);
    (beta, (beta - pivot) / beta)
}

/// Vectors of the reflections that wait: the matrix is to gain `vwᵀ + wvᵀ` of each.
struct Waiting {
    p: usize,
    count: usize,
    /// v of all, then w of all, and the other way round: the two sides of one product.
    vw: Vec<f64>,
    wv: Vec<f64>,
}

impl Waiting {
    fn new(p: usize) -> Self {
        Self { p, count: 0, vw: vec![0.0; 2 * PANEL * p], wv: vec![0.0; 2 * PANEL * p] }
    }

    /// The first m numbers of v and w.
    fn pair(&self, k: usize, m: usize) -> (&[f64], &[f64]) {
        (&self.vw[k * self.p..][..m], &self.wv[k * self.p..][..m])
    }

    fn push(&mut self, v: &[f64], w: &[f64]) {
        let at = [self.count * self.p, (PANEL + self.count) * self.p];
        for (first, second, all) in [(v, w, &mut self.vw), (w, v, &mut self.wv)] {
            all[at[0]..][..v.len()].copy_from_slice(first);
            all[at[1]..][..v.len()].copy_from_slice(second);
        }
        self.count += 1;
    }

    /// Adds what waits to the leading m rows and columns, below the diagonal and a little above.
    fn apply(&mut self, a: &mut [f64], m: usize) {
        let p = self.p;
        let rows = m.div_ceil(MANY_PIECES).max(1);
        a[..m * p].par_chunks_mut(rows * p).with_max_len(1).enumerate().for_each(|(k, a)| {
            let (first, count) = (k * rows, a.len() / p);
            let width = first + count;
            let left = View { rows: count, cols: 2 * PANEL, row_stride: 1, col_stride: p };
            let right = View { rows: 2 * PANEL, cols: width, row_stride: p, col_stride: 1 };
            let out = View { rows: count, cols: width, row_stride: p, col_stride: 1 };
            product(&self.vw[first..], left, &self.wv, right, a, out, true);
        });
        self.count = 0;
    }
}

/// A row up to its diagonal, with what waits for it.
struct RowUpdate<'a> {
    waiting: &'a Waiting,
    row: &'a mut [f64],
}

impl WithSimd for RowUpdate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let m = self.row.len();
        for k in 0..self.waiting.count {
            let (v, w) = self.waiting.pair(k, m);
            add_two(simd, (v[m - 1], w), (w[m - 1], v), self.row);
        }
    }
}

/// From `Av` of the matrix without what waits to the w of the next reflection, which then waits too.
struct Correction<'a> {
    waiting: &'a mut Waiting,
    v: &'a [f64],
    tau: f64,
    product: &'a mut [f64],
}

impl WithSimd for Correction<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { waiting, v, tau, product } = self;
        for k in 0..waiting.count {
            let (other_v, other_w) = waiting.pair(k, v.len());
            let (along_v, along_w) = (inner(simd, other_v, v), inner(simd, other_w, v));
            add_two(simd, (along_w, other_v), (along_v, other_w), product);
        }
        // H(A)H = A − vwᵀ − wvᵀ with w = τ(Av − ½τ(vᵀAv)v); what waits is −w.
        let half = 0.5 * tau * inner(simd, product, v);
        product.iter_mut().zip(v).for_each(|(w, v)| *w = -tau * (*w - half * v));
        waiting.push(v, product);
    }
}

#[inline(always)]
fn inner<S: Simd>(simd: S, x: &[f64], y: &[f64]) -> f64 {
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f64s(x), S::as_simd_f64s(y));
    let mut sums = [simd.splat_f64s(0.0); 4];
    let (x4, y4) = (x.chunks_exact(4), y.chunks_exact(4));
    for (x, y) in x4.remainder().iter().zip(y4.remainder()) {
        sums[0] = simd.mul_add_e_f64s(*x, *y, sums[0]);
    }
    for (x, y) in x4.zip(y4) {
        for k in 0..4 {
            sums[k] = simd.mul_add_e_f64s(x[k], y[k], sums[k]);
        }
    }
    let sum = simd.add_f64s(simd.add_f64s(sums[0], sums[1]), simd.add_f64s(sums[2], sums[3]));
    x_rest.iter().zip(y_rest).fold(simd.reduce_sum_f64s(sum), |sum, (x, y)| sum + x * y)
}

/// `out += αx + βy`.
#[inline(always)]
fn add_two<S: Simd>(simd: S, (alpha, x): (f64, &[f64]), (beta, y): (f64, &[f64]), out: &mut [f64]) {
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f64s(x), S::as_simd_f64s(y));
    let (out, out_rest) = S::as_mut_simd_f64s(out);
    let (a, b) = (simd.splat_f64s(alpha), simd.splat_f64s(beta));
    for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
        *out = simd.mul_add_e_f64s(a, *x, simd.mul_add_e_f64s(b, *y, *out));
    }
    for ((out, x), y) in out_rest.iter_mut().zip(x_rest).zip(y_rest) {
        *out += alpha * x + beta * y;
    }
}

/// `sums[..m] = Av` with the leading m rows and columns of A, whose lower triangle is read; `sums` has room for [`PIECES`] vectors.
fn symmetric_product(a: &[f64], p: usize, v: &[f64], sums: &mut [f64]) {
    let m = v.len();
    let pieces = (m * m / 2 / PIECE).clamp(1, PIECES);
    // rows up to the end of a piece: each has as much of the triangle
    let end = |k: usize| {
        let rows = (m as f64 * (k as f64 / pieces as f64).sqrt()) as usize;
        if k == pieces { m } else { rows / TOGETHER * TOGETHER }
    };
    let compute = |k: usize, out: &mut [f64]| {
        dispatch(TriangleRows { a, p, v, rows: end(k)..end(k + 1), out: &mut out[..end(k + 1)] });
    };
    if pieces == 1 {
        return compute(0, sums);
    }
    sums.par_chunks_mut(p).take(pieces).enumerate().with_max_len(1).for_each(|(k, out)| compute(k, out));
    let (first, others) = sums.split_at_mut(p);
    first[end(1)..m].fill(0.0);
    for (k, other) in others.chunks_exact(p).enumerate().take(pieces - 1) {
        let rows = end(k + 2);
        axpy(1.0, &other[..rows], &mut first[..rows]);
    }
}

/// What some rows of the lower triangle add to `Av`: each times v, and its transpose times the row's number of v.
struct TriangleRows<'a> {
    a: &'a [f64],
    p: usize,
    v: &'a [f64],
    rows: Range<usize>,
    /// As long as the last row.
    out: &'a mut [f64],
}

/// Rows that are read side by side.
const TOGETHER: usize = 4;

impl WithSimd for TriangleRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, p, v, rows, out } = self;
        out.fill(0.0);
        let even = rows.start + (rows.len() / TOGETHER) * TOGETHER;
        for first in (rows.start..even).step_by(TOGETHER) {
            triangle_rows::<S, TOGETHER>(simd, a, p, v, first, out);
        }
        for first in even..rows.end {
            triangle_rows::<S, 1>(simd, a, p, v, first, out);
        }
    }
}

/// The same for `K` rows: left of the first one's diagonal with vectors, the triangle between them one by one.
#[inline(always)]
fn triangle_rows<S: Simd, const K: usize>(
    simd: S,
    a: &[f64],
    p: usize,
    v: &[f64],
    first: usize,
    out: &mut [f64],
) {
    let mut rows: [(&[S::f64s], &[f64]); K] = [(&[], &[]); K];
    let (mut factors, mut dots) = ([simd.splat_f64s(0.0); K], [simd.splat_f64s(0.0); K]);
    for k in 0..K {
        rows[k] = S::as_simd_f64s(&a[(first + k) * p..][..first]);
        factors[k] = simd.splat_f64s(v[first + k]);
    }
    let (left, right) = out.split_at_mut(first);
    let ((whole, rest), (out, out_rest)) = (S::as_simd_f64s(&v[..first]), S::as_mut_simd_f64s(left));
    for (j, (v, out)) in whole.iter().zip(out).enumerate() {
        let mut sum = *out;
        for k in 0..K {
            let x = rows[k].0[j];
            dots[k] = simd.mul_add_e_f64s(x, *v, dots[k]);
            sum = simd.mul_add_e_f64s(x, factors[k], sum);
        }
        *out = sum;
    }
    for k in 0..K {
        right[k] += simd.reduce_sum_f64s(dots[k]);
        for ((x, other), out) in rows[k].1.iter().zip(rest).zip(&mut *out_rest) {
            right[k] += x * other;
            *out += x * v[first + k];
        }
        let row = &a[(first + k) * p + first..][..=k];
        for j in 0..k {
            right[k] += row[j] * v[first + j];
            right[j] += row[j] * v[first + k];
        }
        right[k] += row[k] * v[first + k];
    }
}

/// `H_a H_{a+1} ⋯ H_b = I − Vᵀ T V` of some reflections, with T above the diagonal.
struct Reflections {
    count: usize,
    /// Numbers of a v.
    width: usize,
    v: Vec<f64>,
    t: Vec<f64>,
}

impl Reflections {
    fn new(of: &Tridiagonal, rows: Range<usize>) -> Self {
        let (count, width) = (rows.len(), rows.end - 1);
        let mut v = vec![0.0; count * width];
        for (k, i) in rows.clone().enumerate() {
            v[k * width..][..i].copy_from_slice(&of.vectors[i * of.p..][..i]);
        }
        let mut inner = vec![0.0; count * count];
        product(
            &v,
            row_major(count, width),
            &v,
            row_major(count, width).transposed(),
            &mut inner,
            row_major(count, count),
            false,
        );
        let mut t = vec![0.0; count * count];
        for (k, i) in rows.enumerate() {
            let tau = of.tau[i];
            for row in 0..k {
                t[row * count + k] =
                    -tau * (row..k).map(|j| t[row * count + j] * inner[j * count + k]).sum::<f64>();
            }
            t[k * count + k] = tau;
        }
        // what is added is then a product without a sign
        t.iter_mut().for_each(|t| *t = -*t);
        Self { count, width, v, t }
    }

    /// `rows` times these, from the right.
    fn apply(&self, rows: &mut [f64], p: usize, room: &mut (Vec<f64>, Vec<f64>)) {
        let (n, count, width) = (rows.len() / p, self.count, self.width);
        let (along, turned) = room;
        along.resize(n * count, 0.0);
        turned.resize(n * count, 0.0);
        let of_rows = View { rows: n, cols: width, row_stride: p, col_stride: 1 };
        let (v, small) = (row_major(count, width), row_major(n, count));
        product(rows, of_rows, &self.v, v.transposed(), along, small, false);
        product(along, small, &self.t, row_major(count, count), turned, small, false);
        product(turned, small, &self.v, v, rows, of_rows, true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::super::{matmul, matmul_by_transposed};
    use super::*;

    /// Every number of `A − QTQᵀ` and of `QᵀQ − 1` is rounding.
    fn check(a: &[f64], p: usize, case: &str) {
        let t = Tridiagonal::new(a.to_vec(), p);
        // rows are Qe₁, Qe₂ …
        let mut q = vec![0.0; p * p];
        (0..p).for_each(|i| q[i * p + i] = 1.0);
        t.rotate(&mut q);
        let mut tq = vec![0.0; p * p];
        for i in 0..p {
            for j in 0..p {
                let beside = |k: usize, other: usize| t.beside[k] * q[other * p + j];
                tq[i * p + j] = t.diagonal[i] * q[i * p + j]
                    + if i > 0 { beside(i - 1, i - 1) } else { 0.0 }
                    + if i + 1 < p { beside(i, i + 1) } else { 0.0 };
            }
        }
        let (mut again, mut inner) = (vec![0.0; p * p], vec![0.0; p * p]);
        super::super::matmul_transposed(&q, &tq, (p, p, p), &mut again);
        matmul_by_transposed(&q, &q, (p, p, p), &mut inner);
        for i in 0..p {
            for j in 0..=i {
                let (one, slack) = (f64::from(u8::from(i == j)), 1e-14 * (p as f64).sqrt());
                assert!((again[i * p + j] - a[i * p + j]).abs() < slack, "{case}: {i} {j}");
                assert!((inner[i * p + j] - one).abs() < slack, "{case}: {i} {j}");
            }
        }
    }

    #[test]
    fn the_matrix_is_that_of_its_tridiagonal_form() {
        // around panels, vectors, rows side by side, and pieces
        for p in [1, 2, 3, 5, 31, 33, 64, 97, 130, 261, 300] {
            let x = example(p, p);
            let mut a = vec![0.0; p * p];
            matmul(&x, &x, (p, p, p), &mut a);
            let largest = a.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
            a.iter_mut().for_each(|v| *v /= largest);
            for i in 0..p {
                (0..i).for_each(|j| a[j * p + i] = a[i * p + j]);
            }
            check(&a, p, "dense");
            // rows that are done already, and numbers whose squares are none
            for (name, keep) in [("diagonal", 0), ("tridiagonal", 1), ("band", 7)] {
                let of = |ij: usize| if (ij / p).abs_diff(ij % p) <= keep { a[ij] } else { 0.0 };
                check(&(0..p * p).map(of).collect::<Vec<_>>(), p, name);
                let tiny = |ij: usize| if ij / p == ij % p { 1.0 } else { 1e-170 * of(ij) };
                check(&(0..p * p).map(tiny).collect::<Vec<_>>(), p, name);
            }
        }
        check(&vec![0.0; 40 * 40], 40, "zero");
    }
}
