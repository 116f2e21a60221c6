//! `JᵀJ` of one record from its parts.

use crate::vector::dispatch;
use pulp::{Simd, WithSimd};

/// Rows of the product that are formed together.
const ROWS: usize = 4;

/// Lengths of rows are multiples of this, so that vectors of every machine fill them.
pub(super) const VECTOR: usize = 8;

/// One record's `JᵀJ`, and the space to compute it in.
#[derive(Debug, Clone, Default)]
pub(super) struct Gram {
    /// m rows, `stride` apart, both triangles, then zeros.
    pub(super) values: Vec<f64>,
    /// Rows and columns: d, and the contrasts of the label where it is secret.
    pub(super) m: usize,
    /// m filled up to whole vectors.
    pub(super) stride: usize,
    qs: Vec<f64>,
    half: Vec<f64>,
    product: Vec<f64>,
}

/// What is known of a record: rows of c and ŝ are `width` apart, the rest of them zeros.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    /// Lower triangle of `Σ_ab ρ̂_aρ̂_b G_ab`.
    pub(super) packed: &'a [f64],
    pub(super) c: &'a [f64],
    pub(super) s: &'a [f64],
    pub(super) quadratic: &'a [f64],
    /// Contrasts k, data columns d and d filled up to whole vectors.
    pub(super) shape: (usize, usize, usize),
}

impl Gram {
    /// The diagonal.
    pub(super) fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.m).map(|j| self.values[j * self.stride + j])
    }

    /// Forms the matrix, the label's part last where it is `secret`, each of its contrasts so long.
    pub(super) fn fill(&mut self, parts: Parts<'_>, secret: Option<f64>) {
        let (k, d, width) = parts.shape;
        self.m = d + if secret.is_some() { k } else { 0 };
        self.stride = self.m.next_multiple_of(VECTOR);
        let (m, stride) = (self.m, self.stride);
        self.qs.resize(k * width, 0.0);
        self.half.resize(k * width, 0.0);
        self.product.resize(width * width, 0.0);
        dispatch(Product { parts, qs: &mut self.qs, half: &mut self.half, product: &mut self.product });
        if self.values.len() != m * stride {
            self.values.clear();
            self.values.resize(m * stride, 0.0);
        }
        let mut first = 0;
        for i in 0..d {
            let (row, product) = (&parts.packed[first..=first + i], &self.product[i * width..]);
            first += i + 1;
            for (j, (g, product)) in row.iter().zip(product).enumerate() {
                self.values[i * stride + j] = g + product;
                self.values[j * stride + i] = g + product;
            }
        }
        let Some(switch) = secret else { return };
        for l in 0..k {
            for j in 0..d {
                // The label enters the gradient with the other sign.
                let value = -switch * (parts.c[l * width + j] + self.qs[l * width + j]);
                self.values[(d + l) * stride + j] = value;
                self.values[j * stride + d + l] = value;
            }
            let of_label = &mut self.values[(d + l) * stride + d..][..k];
            of_label.iter_mut().zip(&parts.quadratic[l * k..]).for_each(|(v, q)| *v = switch * switch * q);
        }
    }
}

/// `Σ_l half_l ŝ_lᵀ + ŝ_l half_lᵀ`, lower triangle, with `half_l = c_l + ½Σ_a Q_al ŝ_a`: all but the pairs of residuals.
struct Product<'a> {
    parts: Parts<'a>,
    qs: &'a mut [f64],
    half: &'a mut [f64],
    product: &'a mut [f64],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Parts { c, s, quadratic, shape: (k, d, width), .. } = self.parts;
        let vectors = width / S::F64_LANES;
        let rows = S::as_simd_f64s(s).0;
        {
            let (qs, half) = (S::as_mut_simd_f64s(self.qs).0, S::as_mut_simd_f64s(self.half).0);
            let c = S::as_simd_f64s(c).0;
            for (l, v) in (0..k).flat_map(|l| (0..vectors).map(move |v| (l, v))) {
                let mut sum = simd.splat_f64s(0.0);
                for a in 0..k {
                    let q = simd.splat_f64s(quadratic[l * k + a]);
                    sum = simd.mul_add_e_f64s(q, rows[a * vectors + v], sum);
                }
                qs[l * vectors + v] = sum;
                half[l * vectors + v] = simd.mul_add_e_f64s(simd.splat_f64s(0.5), sum, c[l * vectors + v]);
            }
        }
        let (half, halves) = (&*self.half, S::as_simd_f64s(self.half).0);
        let product = S::as_mut_simd_f64s(self.product).0;
        // Rows are a multiple of eight long, so four of them never reach past their end.
        for first in (0..d).step_by(ROWS) {
            for v in 0..(first + ROWS).div_ceil(S::F64_LANES) {
                let mut sum = [simd.splat_f64s(0.0); ROWS];
                for l in 0..k {
                    let (row, halved) = (rows[l * vectors + v], halves[l * vectors + v]);
                    let (left, right) = (&half[l * width + first..][..ROWS], &s[l * width + first..][..ROWS]);
                    for i in 0..ROWS {
                        sum[i] = simd.mul_add_e_f64s(simd.splat_f64s(left[i]), row, sum[i]);
                        sum[i] = simd.mul_add_e_f64s(simd.splat_f64s(right[i]), halved, sum[i]);
                    }
                }
                for i in 0..ROWS {
                    product[(first + i) * vectors + v] = sum[i];
                }
            }
        }
    }
}
