//! The trained half of normalisation, `z = γ x̂ + β`. Its per-sample gradient is small, `(Σ_t δ_t ⊙ x̂_t, Σ_t δ_t)`, and
//! is formed.

use super::{Context, Direction, Gradient, Start, Tangent, Tape, Tensor, add_to};
use crate::{
    Real,
    device::{Buf, Device},
};

/// The affine half of both: γ and β over `channels`, at `positions` of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affine {
    pub(crate) channels: usize,
    pub(crate) positions: usize,
    pub(crate) gamma: usize,
    pub(crate) beta: usize,
}

impl Affine {
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let tensor = |name, offset, value| Tensor {
            name,
            shape: vec![self.channels],
            offset,
            start: Start::Constant(value),
        };
        vec![tensor("gamma", self.gamma, 1.0), tensor("beta", self.beta, 0.0)]
    }

    /// `γ x̂ + β` (β left out for tangents).
    pub(super) fn apply<T: Real>(&self, cx: &mut Context<'_, T>, normal: &Buf<T>, beta: bool) -> Buf<T> {
        let mut z = cx.dev.copy(normal.all());
        cx.dev.mul(&mut z, cx.theta.part(self.gamma, self.channels));
        if beta {
            cx.dev.add(&mut z, cx.theta.part(self.beta, self.channels));
        }
        z
    }

    /// A direction `(γ̇, β̇)` per record, each value repeated over the positions.
    pub(super) fn direction<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
    ) -> Option<(Buf<T>, Buf<T>)> {
        let Gradient::Whole(g, Some(gb)) = &tape.gradient else { return None };
        let moved = match dir.tangent.map(|tan| &tan.gradient) {
            Some(Gradient::Whole(gd, Some(gbd))) => Some((gd, gbd)),
            _ => None,
        };
        let (alpha, beta) = (cx.dev.upload_f64(dir.alpha), cx.dev.upload_f64(dir.beta));
        let one = |g: &Buf<T>, gd: Option<&Buf<T>>, dev: &mut Device<T>| {
            let mut v = dev.take(g.len());
            dev.scale_blocks(beta.all(), g.all(), &mut v);
            if let Some(gd) = gd {
                dev.add_scaled_blocks(alpha.all(), gd.all(), &mut v);
            }
            let mut wide = dev.take(v.len() * self.positions);
            dev.repeat_rows(self.channels, self.positions, v.all(), &mut wide);
            dev.put(v);
            wide
        };
        let wide = (one(g, moved.map(|m| m.0), cx.dev), one(gb, moved.map(|m| m.1), cx.dev));
        cx.dev.put(alpha);
        cx.dev.put(beta);
        Some(wide)
    }

    /// Adds `γ̇ x̂ + β̇` to ż and keeps γ̇.
    pub(super) fn direction_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
        z: Option<Buf<T>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let Some((gamma, beta)) = self.direction(cx, tape, dir) else { return z };
        let mut z = z.unwrap_or_else(|| cx.dev.zeros(beta.len()));
        cx.dev.add(&mut z, beta.all());
        if let Some(normal) = &tape.input {
            cx.dev.add_product(&mut z, gamma.all(), normal.all());
        }
        cx.dev.put(beta);
        tangent.direction = Gradient::Whole(gamma, None);
        Some(z)
    }

    /// `ḣ = γ δ̇ + γ̇ δ`.
    pub(super) fn moved<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: &Buf<T>,
        tan: &Tangent<T>,
    ) -> Buf<T> {
        let mut h = self.apply(cx, delta, false);
        if let (Gradient::Whole(gamma, _), Some(d)) = (&tan.direction, &tape.delta) {
            cx.dev.add_product(&mut h, gamma.all(), d.all());
        }
        h
    }

    pub(super) fn add_square<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        square: &mut [f64],
    ) {
        let (Some(x), Some(d)) = (&tape.input, &tape.delta) else { return };
        let (c, t) = (self.channels, self.positions);
        let (mut g, mut gb) = (cx.dev.take(cx.records * c), cx.dev.take(cx.records * c));
        cx.dev.sum_rows_product(t, c, d.all(), x.all(), &mut g);
        cx.dev.sum_rows(t, c, d.all(), &mut gb);
        cx.mask(&mut g, self.gamma, c);
        cx.mask(&mut gb, self.beta, c);
        add_to(square, cx.dev.dots(c, g.all(), g.all()));
        add_to(square, cx.dev.dots(c, gb.all(), gb.all()));
        tape.gradient = Gradient::Whole(g, Some(gb));
    }

    pub(super) fn add_products<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &mut Tangent<T>,
        keep: bool,
        cross: &mut [f64],
        square: &mut [f64],
    ) {
        let Gradient::Whole(g, Some(gb)) = &tape.gradient else { return };
        let (Some(x), Some(d), Some(dd)) = (&tape.input, &tape.delta, &tangent.delta) else { return };
        let (c, t) = (self.channels, self.positions);
        let rows = dd.len() / t;
        let (mut gd, mut gbd) = (cx.dev.take(rows), cx.dev.take(rows));
        cx.dev.sum_rows_product(t, c, dd.all(), x.all(), &mut gd);
        cx.dev.sum_rows(t, c, dd.all(), &mut gbd);
        if let Some(xd) = &tangent.input {
            let mut extra = cx.dev.take(rows);
            cx.dev.sum_rows_product(t, c, d.all(), xd.all(), &mut extra);
            cx.dev.add(&mut gd, extra.all());
            cx.dev.put(extra);
        }
        cx.mask(&mut gd, self.gamma, c);
        cx.mask(&mut gbd, self.beta, c);
        for (g, gd) in [(g, &gd), (gb, &gbd)] {
            add_to(cross, cx.dev.dots(c, g.all(), gd.all()));
            add_to(square, cx.dev.dots(c, gd.all(), gd.all()));
        }
        let kept = Gradient::Whole(gd, Some(gbd));
        if keep { tangent.gradient = kept } else { kept.recycle(cx.dev) }
    }

    pub(super) fn add_weighted<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        weights: &Buf<T>,
        out: &mut Buf<T>,
    ) {
        if let Gradient::Whole(g, Some(gb)) = &tape.gradient {
            cx.dev.add_weighted_sum(weights.all(), g.all(), out, self.gamma);
            cx.dev.add_weighted_sum(weights.all(), gb.all(), out, self.beta);
        }
    }

    #[cfg(test)]
    pub(super) fn materialise<T: Real>(
        &self,
        dev: &Device<T>,
        tape: &Tape<T>,
        tangent: Option<&Tangent<T>>,
        record: usize,
        probe_row: usize,
        out: &mut [f64],
    ) {
        let n = self.channels * self.positions;
        let row = |b: &Buf<T>, i: usize| -> Vec<f64> {
            dev.download(b)[i * n..(i + 1) * n].iter().map(|v| v.to_f64()).collect()
        };
        let (Some(x), Some(d)) = (&tape.input, &tape.delta) else { return };
        let (x, d) = (row(x, record), row(d, record));
        let mut add = |d: &[f64], x: &[f64], beta: bool| {
            for i in 0..n {
                out[self.gamma + i % self.channels] += d[i] * x[i];
                if beta {
                    out[self.beta + i % self.channels] += d[i];
                }
            }
        };
        match tangent {
            None => add(&d, &x, true),
            Some(tan) => {
                if let Some(dd) = &tan.delta {
                    add(&row(dd, probe_row), &x, true);
                }
                if let Some(xd) = &tan.input {
                    add(&d, &row(xd, probe_row), false);
                }
            }
        }
    }
}
