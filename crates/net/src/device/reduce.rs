//! Sums over the positions of a record, weighted sums over records, and the two reductions of layer normalisation.

use super::{Buf, Device, Scalars, View, cuda::ColumnSums};
use crate::{Real, real::vectorised};

impl<T: Real> Device<T> {
    /// Sums groups of `rows` rows of `width` values: `(n·rows, width)` → `(n, width)`.
    pub(crate) fn sum_rows(&self, rows: usize, width: usize, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let groups = out.len().checked_div(width).unwrap_or(0);
            let sums = ColumnSums { rows, width, groups, ..ColumnSums::of(x.far(), out.at()) };
            return gpu.column_sums::<T>(&sums);
        }
        out.data.fill(T::ZERO);
        let groups = x.0.chunks_exact((rows * width).max(1));
        for (out, group) in out.data.chunks_exact_mut(width.max(1)).zip(groups) {
            for row in group.chunks_exact(width) {
                out.iter_mut().zip(row).for_each(|(o, &v)| *o += v);
            }
        }
    }

    /// As [`Device::sum_rows`] of the product `x ⊙ y`; the shorter operand repeats.
    pub(crate) fn sum_rows_product(
        &self,
        rows: usize,
        width: usize,
        x: View<'_, T>,
        y: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let groups = out.len().checked_div(width).unwrap_or(0);
            let sums =
                ColumnSums { y: Some(y.far()), rows, width, groups, ..ColumnSums::of(x.far(), out.at()) };
            return gpu.column_sums::<T>(&sums);
        }
        out.data.fill(T::ZERO);
        let len = (rows * width).max(1);
        let (xs, ys) = (x.0.chunks_exact(len).cycle(), y.0.chunks_exact(len).cycle());
        for ((out, x), y) in out.data.chunks_exact_mut(width.max(1)).zip(xs).zip(ys) {
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact(width)) {
                out.iter_mut().zip(x).zip(y).for_each(|((o, &x), &y)| *o += x * y);
            }
        }
    }

    /// `out[offset..] += Σᵢ w[i]·x[i]` over equal blocks of `width`.
    pub(crate) fn add_weighted_sum(
        &self,
        weights: &Scalars,
        x: View<'_, T>,
        out: &mut Buf<T>,
        offset: usize,
    ) {
        if let Some(gpu) = self.gpu {
            let rows = weights.len();
            let width = x.len() / rows.max(1);
            assert!(offset + width <= out.len(), "a sum fits where it goes");
            let target = out.at() + (offset * T::BYTES) as u64;
            let sums = ColumnSums {
                weights: weights.at(),
                rows,
                width,
                groups: 1,
                adding: true,
                ..ColumnSums::of(x.far(), target)
            };
            return gpu.column_sums::<T>(&sums);
        }
        let width = x.0.len() / weights.data.len().max(1);
        if width == 0 {
            return;
        }
        let out = &mut out.data[offset..offset + width];
        for (x, &w) in x.0.chunks_exact(width).zip(&weights.data) {
            let w = T::from_f64(w);
            vectorised(
                #[inline(always)]
                || out.iter_mut().zip(x).for_each(|(o, &x)| *o += w * x),
            );
        }
    }

    /// `y ← (x − mean)/s` row by row, and `1/s`, `s = √(variance + ε)`. Where rows are not `centred`, the mean counts
    /// as 0 and the variance is the mean square.
    pub(crate) fn standardise(
        &self,
        width: usize,
        epsilon: f64,
        centred: bool,
        x: &mut Buf<T>,
        inverse: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let args = [x.at(), inverse.at(), width as u64, epsilon.to_bits(), u64::from(centred)];
            return gpu.rows::<T>("standardise", x.len() / width, width, &args);
        }
        let n = T::from_f64(width as f64);
        for (row, inv) in x.data.chunks_exact_mut(width).zip(&mut inverse.data) {
            let mean = if centred { sum(row) / n } else { T::ZERO };
            row.iter_mut().for_each(|v| *v -= mean);
            let variance = T::from_f64(dot(row, row)) / n;
            *inv = T::ONE / (variance + T::from_f64(epsilon)).sqrt();
            row.iter_mut().for_each(|v| *v *= *inv);
        }
    }

    /// The derivative of standardisation, which is its own transpose: `v ← (v − mean v − x̂·mean(x̂ v))/s`.
    /// `scale`, where given, receives `mean(x̂ v)` of every row. `x̂` and `1/s` repeat over probes.
    pub(crate) fn standardise_tangent(
        &self,
        width: usize,
        centred: bool,
        normal: View<'_, T>,
        inverse: View<'_, T>,
        v: &mut Buf<T>,
        mut scale: Option<&mut Buf<T>>,
    ) {
        if let Some(gpu) = self.gpu {
            let scale = scale.map_or(0, |s| s.at());
            let args = [
                v.at(),
                normal.at(),
                inverse.at(),
                scale,
                width as u64,
                u64::from(centred),
                inverse.len() as u64,
            ];
            return gpu.rows::<T>("standardise_tangent", v.len() / width, width, &args);
        }
        let n = T::from_f64(width as f64);
        let primal = normal.0.chunks_exact(width).zip(inverse.0).cycle();
        for (i, (row, (x, &inv))) in v.data.chunks_exact_mut(width).zip(primal).enumerate() {
            let mean = if centred { sum(row) / n } else { T::ZERO };
            let along = T::from_f64(dot(row, x)) / n;
            row.iter_mut().zip(x).for_each(|(v, &x)| *v = (*v - mean - x * along) * inv);
            if let Some(s) = &mut scale {
                s.data[i] = along;
            }
        }
    }

    /// The rest of the tangent of layer norm's backward pass: with `h = γδ`, its tangent's share already in `out`
    /// through [`Device::standardise_tangent`], subtracts what comes from moving x̂ and s:
    /// `(x̂̇·mean(x̂h) + x̂·mean(x̂̇h))/s + δ_in·ṡ/s`, `ṡ = mean(x̂ẋ)`.
    #[allow(clippy::too_many_arguments)] // the eight arrays of one formula
    pub(crate) fn standardise_second(
        &self,
        width: usize,
        normal: View<'_, T>,
        normal_dot: View<'_, T>,
        inverse: View<'_, T>,
        scale_dot: View<'_, T>,
        h: View<'_, T>,
        delta_in: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let args = [
                out.at(),
                normal.at(),
                normal_dot.at(),
                inverse.at(),
                scale_dot.at(),
                h.at(),
                delta_in.at(),
                width as u64,
                inverse.len() as u64,
            ];
            return gpu.rows::<T>("standardise_second", out.len() / width, width, &args);
        }
        let n = T::from_f64(width as f64);
        let rows = inverse.0.len().max(1);
        let each = out.data.chunks_exact_mut(width).zip(normal_dot.0.chunks_exact(width)).zip(scale_dot.0);
        for (i, ((out, xd), &sd)) in each.enumerate() {
            let r = i % rows;
            let at = r * width..(r + 1) * width;
            let (x, h, din, inv) = (&normal.0[at.clone()], &h.0[at.clone()], &delta_in.0[at], inverse.0[r]);
            let (along, moved) = (T::from_f64(dot(x, h)) / n, T::from_f64(dot(xd, h)) / n);
            for j in 0..width {
                out[j] -= (xd[j] * along + x[j] * moved + din[j] * sd) * inv;
            }
        }
    }
}

/// Dot product in sixteen lanes of f64.
#[inline]
pub(super) fn dot<T: Real>(x: &[T], y: &[T]) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let mut lanes = [0.0; 16];
            let (xs, ys) = (x.chunks_exact(16), y.chunks_exact(16));
            let wide = |(a, b): (&T, &T)| a.to_f64() * b.to_f64();
            let tail: f64 = xs.remainder().iter().zip(ys.remainder()).map(wide).sum();
            for (a, b) in xs.zip(ys) {
                for i in 0..16 {
                    lanes[i] += a[i].to_f64() * b[i].to_f64();
                }
            }
            tail + lanes.iter().sum::<f64>()
        },
    )
}

#[inline]
fn sum<T: Real>(x: &[T]) -> T {
    T::from_f64(x.iter().map(|v| v.to_f64()).sum())
}
