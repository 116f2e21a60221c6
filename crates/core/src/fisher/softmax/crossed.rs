//! What a record's row meets of G: `c_l = Σ_a ρ̂_a G_al x` and `Q_al = xᵀG_al x`.
//!
//! `(K−1)²p²` multiplications a record, more than everything else about it. So they are laid out for registers: a vector
//! holds one number each of several records, two such vectors meet [`ROWS`] rows of a block of G at a time, and what they give,
//! `G_al x`, is used up before it leaves the registers.

use crate::vector::dispatch;
use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};

/// Rows of a block of G that are multiplied together: with two vectors each, ten sums in registers.
const ROWS: usize = 5;
/// Vectors of records that are multiplied together.
const VECTORS: usize = 2;

/// A symmetric matrix in (K−1)² blocks of p × p, in the order in which they are multiplied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Blocks {
    k: usize,
    p: usize,
    /// By l, a, [`ROWS`] rows i (filled up with zeros), j: `G[(a, i), (l, j)]`.
    values: Vec<f64>,
}

impl Blocks {
    /// From `g`, kp × kp.
    pub(super) fn new(g: &[f64], k: usize, p: usize) -> Self {
        let q = k * p;
        let mut values = Vec::with_capacity(k * k * p.next_multiple_of(ROWS) * p);
        for (l, a) in (0..k * k).map(|la| (la / k, la % k)) {
            for first in (0..p).step_by(ROWS) {
                for j in 0..p {
                    let at = |i: usize| if i < p { g[(a * p + i) * q + l * p + j] } else { 0.0 };
                    values.extend((first..first + ROWS).map(at));
                }
            }
        }
        Self { k, p, values }
    }

    /// `G[(a, i), (l, j)]`.
    pub(super) fn at(&self, (a, i): (usize, usize), (l, j): (usize, usize)) -> f64 {
        let block = (l * self.k + a) * self.p.next_multiple_of(ROWS) * self.p;
        self.values[block + (i / ROWS * self.p + j) * ROWS + i % ROWS]
    }
}

/// c and Q of some records, and the space to compute them in.
#[derive(Debug, Clone, Default)]
pub(super) struct Crossed {
    /// Records × (K−1) × the width asked for.
    pub(super) c: Vec<f64>,
    /// Records × (K−1) × (K−1).
    pub(super) quadratic: Vec<f64>,
    lanes: Lanes,
}

/// The same and what goes in, several records side by side.
#[derive(Debug, Clone, Default)]
struct Lanes {
    x: Vec<f64>,
    rho: Vec<f64>,
    c: Vec<f64>,
    quadratic: Vec<f64>,
}

impl Crossed {
    /// Of rows `x`, n × p, with residuals `rho`, n × (K−1); of each `c_l` the first `d` entries, `width` apart.
    pub(super) fn fill(&mut self, g: &Blocks, x: &[f64], rho: &[f64], (d, width): (usize, usize)) {
        let n = x.len().checked_div(g.p).unwrap_or(0);
        self.c.clear();
        self.c.resize(n * g.k * width, 0.0);
        self.quadratic.resize(n * g.k * g.k, 0.0);
        dispatch(Products { g, x, rho, n, d, width, out: self });
    }
}

struct Products<'a> {
    g: &'a Blocks,
    x: &'a [f64],
    rho: &'a [f64],
    n: usize,
    d: usize,
    width: usize,
    out: &'a mut Crossed,
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { g: Blocks { k, p, values }, x, rho, n, d, width, out } = self;
        let (k, p, together) = (*k, *p, VECTORS * S::F64_LANES);
        let (rows, groups) = (p.next_multiple_of(ROWS), n.div_ceil(together));
        let lanes = &mut out.lanes;
        side_by_side(x, (n, p, rows), together, &mut lanes.x);
        side_by_side(rho, (n, k, k), together, &mut lanes.rho);
        lanes.c.clear();
        lanes.c.resize(groups * k * rows * together, 0.0);
        lanes.quadratic.resize(groups * k * k * together, 0.0);
        let (x, rho) = (S::as_simd_f64s(&lanes.x).0, S::as_simd_f64s(&lanes.rho).0);
        let c = S::as_mut_simd_f64s(&mut lanes.c).0;
        let quadratic = S::as_mut_simd_f64s(&mut lanes.quadratic).0;
        // A block of G stays in the cache while all records meet it.
        for (la, block) in values.chunks_exact((rows * p).max(1)).enumerate() {
            let (l, a) = (la / k, la % k);
            for group in 0..groups {
                let x = &x[group * rows * VECTORS..][..rows * VECTORS];
                let rho = &rho[(group * k + a) * VECTORS..][..VECTORS];
                let c = &mut c[(group * k + l) * rows * VECTORS..][..rows * VECTORS];
                let q = one_block(simd, block, p, x, rho, c);
                quadratic[((group * k + l) * k + a) * VECTORS..][..VECTORS].copy_from_slice(&q);
            }
        }
        apart(&lanes.c, (k, rows), together, n, (d, width), &mut out.c);
        apart(&lanes.quadratic, (1, k * k), together, n, (k * k, k * k), &mut out.quadratic);
    }
}

/// Adds `ρ̂_a G_al x` to `c` and gives `xᵀG_al x`, of two vectors of records.
#[inline(always)]
fn one_block<S: Simd>(
    simd: S,
    block: &[f64],
    p: usize,
    x: &[S::f64s],
    rho: &[S::f64s],
    c: &mut [S::f64s],
) -> [S::f64s; VECTORS] {
    let mut q = [simd.splat_f64s(0.0); VECTORS];
    for (tile, part) in block.chunks_exact(p * ROWS).enumerate() {
        let mut sum = [[simd.splat_f64s(0.0); VECTORS]; ROWS];
        for (g, x) in part.chunks_exact(ROWS).zip(x.chunks_exact(VECTORS)) {
            for i in 0..ROWS {
                let g = simd.splat_f64s(g[i]);
                for v in 0..VECTORS {
                    sum[i][v] = simd.mul_add_e_f64s(g, x[v], sum[i][v]);
                }
            }
        }
        for (i, of_row) in sum.into_iter().enumerate() {
            for v in 0..VECTORS {
                let at = (tile * ROWS + i) * VECTORS + v;
                q[v] = simd.mul_add_e_f64s(of_row[v], x[at], q[v]);
                c[at] = simd.mul_add_e_f64s(of_row[v], rho[v], c[at]);
            }
        }
    }
    q
}

/// Rows of `from`, n × `columns`, `together` of them side by side: groups × `padded` × `together`.
#[inline(always)]
fn side_by_side(
    from: &[f64],
    (n, columns, padded): (usize, usize, usize),
    together: usize,
    to: &mut Vec<f64>,
) {
    to.clear();
    to.resize(n.div_ceil(together) * padded * together, 0.0);
    for (i, row) in from.chunks_exact(columns.max(1)).take(n).enumerate() {
        let group = &mut to[i / together * padded * together..];
        row.iter().enumerate().for_each(|(j, v)| group[j * together + i % together] = *v);
    }
}

/// The other way: of each of `parts` × `rows` numbers a record the first `count` of each part, `width` apart.
#[inline(always)]
fn apart(
    from: &[f64],
    (parts, rows): (usize, usize),
    together: usize,
    n: usize,
    (count, width): (usize, usize),
    to: &mut [f64],
) {
    for (group, numbers) in from.chunks_exact((parts * rows * together).max(1)).enumerate() {
        let (first, most) = (group * together, together.min(n - group * together));
        for (part, i) in (0..parts).flat_map(|part| (0..count).map(move |i| (part, i))) {
            let side = &numbers[(part * rows + i) * together..][..most];
            for (r, v) in side.iter().enumerate() {
                to[((first + r) * parts + part) * width + i] = *v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{dot, matmul_by_transposed};
    use crate::random::Seeded;

    #[test]
    fn they_are_products_with_the_dense_matrix() {
        let mut random = Seeded::new(5);
        for (k, p, d, n) in
            [(1, 1, 1, 1), (2, 3, 3, 7), (3, 6, 5, 16), (9, 11, 10, 33), (2, 5, 5, 0), (4, 1, 0, 3)]
        {
            let (q, width) = (k * p, 12);
            let root = random.normals(q * q);
            let mut g = vec![0.0; q * q];
            matmul_by_transposed(&root, &root, (q, q, q), &mut g);
            let (x, rho) = (random.normals(n * p), random.normals(n * k));
            let (blocks, mut crossed) = (Blocks::new(&g, k, p), Crossed::default());
            for _ in 0..2 {
                crossed.fill(&blocks, &x, &rho, (d, width));
            }
            for (row, column) in (0..q).flat_map(|r| (0..q).map(move |c| (r, c))) {
                assert_eq!(blocks.at((row / p, row % p), (column / p, column % p)), g[row * q + column]);
            }
            for i in 0..n {
                let (x, rho) = (&x[i * p..(i + 1) * p], &rho[i * k..(i + 1) * k]);
                for (l, j) in (0..k).flat_map(|l| (0..width).map(move |j| (l, j))) {
                    let of_class = |a: usize| rho[a] * dot(&g[(a * p + j) * q + l * p..][..p], x);
                    let truth = if j < d { (0..k).map(of_class).sum::<f64>() } else { 0.0 };
                    let near = 1e-12 * (1.0 + truth.abs());
                    assert!((crossed.c[(i * k + l) * width + j] - truth).abs() <= near, "{k} {p} {n}");
                }
                for (l, a) in (0..k).flat_map(|l| (0..k).map(move |a| (l, a))) {
                    let pairs = (0..p * p).map(|ij| (ij / p, ij % p));
                    let truth: f64 = pairs.map(|(i, j)| x[i] * g[(a * p + i) * q + l * p + j] * x[j]).sum();
                    let near = 1e-12 * (1.0 + truth.abs());
                    assert!((crossed.quadratic[(i * k + l) * k + a] - truth).abs() <= near, "{k} {p} {n}");
                }
            }
        }
    }
}
