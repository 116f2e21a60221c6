//! The trained half of normalisation, `z = γ x̂ + β`. Its per-sample gradient is small, `(Σ_t δ_t ⊙ x̂_t, Σ_t δ_t)`, and
//! is formed.

#[cfg(test)]
use super::Single;
use super::{Context, Direction, Gradient, Moving, Products, Start, Tangent, Tape, Tensor, Width};
use crate::{
    Real,
    device::{Buf, Device, Scalars},
};

/// The affine half of both: γ and β over `channels`, at `positions` of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affine {
    pub(crate) channels: usize,
    pub(crate) positions: Width,
    pub(crate) gamma: usize,
    /// RMS norm has none.
    pub(crate) beta: Option<usize>,
}

impl Affine {
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        let tensor = |name, offset, value| Tensor {
            name,
            shape: vec![self.channels],
            offset,
            start: Start::Constant(value),
        };
        let beta = self.beta.map(|beta| tensor("beta", beta, 0.0));
        std::iter::once(tensor("gamma", self.gamma, 1.0)).chain(beta).collect()
    }

    /// `γ x̂ + β` (β left out for tangents).
    pub(super) fn apply<T: Real>(&self, cx: &mut Context<'_, T>, normal: &Buf<T>, beta: bool) -> Buf<T> {
        let mut z = cx.dev.copy(normal.all());
        cx.dev.mul(&mut z, cx.theta.part(self.gamma, self.channels));
        if let (true, Some(beta)) = (beta, self.beta) {
            cx.dev.add(&mut z, cx.theta.part(beta, self.channels));
        }
        z
    }

    /// A direction `(γ̇, β̇)` per record, each value repeated over the positions.
    fn direction<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
    ) -> (Buf<T>, Buf<T>) {
        let (len, positions) = (cx.records * self.channels, self.positions.at(cx.length));
        let (mut gamma, mut beta) = (cx.dev.zeros(len), cx.dev.zeros(len));
        if let Some(own) = dir.own() {
            let kept = [Some((own.beta, &tape.gradient)), own.tangent.map(|tan| (own.alpha, &tan.gradient))];
            for (weights, gradient) in kept.into_iter().flatten() {
                let Gradient::Whole(g, gb) = gradient else { continue };
                cx.dev.add_scaled_blocks(weights, g.all(), &mut gamma);
                if let Some(gb) = gb {
                    cx.dev.add_scaled_blocks(weights, gb.all(), &mut beta);
                }
            }
        }
        if let Some(shared) = dir.shared() {
            cx.dev.add_scaled_blocks(shared.weights, shared.part(self.gamma, self.channels), &mut gamma);
            if let Some(at) = self.beta {
                cx.dev.add_scaled_blocks(shared.weights, shared.part(at, self.channels), &mut beta);
            }
        }
        let wide = |v: Buf<T>, dev: &mut Device<T>| {
            let mut wide = dev.take(v.len() * positions);
            dev.repeat_rows(self.channels, positions, v.all(), &mut wide);
            dev.put(v);
            wide
        };
        (wide(gamma, cx.dev), wide(beta, cx.dev))
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
        let (gamma, beta) = self.direction(cx, tape, dir);
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
        square: &mut Scalars,
    ) {
        let (Some(x), Some(d)) = (&tape.input, &tape.delta) else { return };
        let (c, t) = (self.channels, self.positions.at(cx.length));
        let mut g = cx.dev.take(cx.records * c);
        cx.dev.sum_rows_product(t, c, d.all(), x.all(), &mut g);
        cx.mask(&mut g, self.gamma, c);
        cx.dev.add_dots(1.0, c, g.all(), g.all(), square);
        let gb = self.beta.map(|beta| {
            let mut gb = cx.dev.take(cx.records * c);
            cx.dev.sum_rows(t, c, d.all(), &mut gb);
            cx.mask(&mut gb, beta, c);
            cx.dev.add_dots(1.0, c, gb.all(), gb.all(), square);
            gb
        });
        tape.gradient = Gradient::Whole(g, gb);
    }

    pub(super) fn add_products<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        sums: &mut Products,
    ) {
        let Moving { tape, tangent, .. } = at;
        let Gradient::Whole(g, gb) = &tape.gradient else { return };
        let (Some(x), Some(d), Some(dd)) = (&tape.input, &tape.delta, &tangent.delta) else { return };
        let (c, t) = (self.channels, self.positions.at(cx.length));
        let rows = dd.len() / t;
        let mut gd = cx.dev.take(rows);
        cx.dev.sum_rows_product(t, c, dd.all(), x.all(), &mut gd);
        if let Some(xd) = &tangent.input {
            let mut extra = cx.dev.take(rows);
            cx.dev.sum_rows_product(t, c, d.all(), xd.all(), &mut extra);
            cx.dev.add(&mut gd, extra.all());
            cx.dev.put(extra);
        }
        cx.mask(&mut gd, self.gamma, c);
        let gbd = self.beta.map(|beta| {
            let mut gbd = cx.dev.take(rows);
            cx.dev.sum_rows(t, c, dd.all(), &mut gbd);
            cx.mask(&mut gbd, beta, c);
            gbd
        });
        for (g, gd) in [(Some(g), Some(&gd)), (gb.as_ref(), gbd.as_ref())] {
            if let (Some(g), Some(gd)) = (g, gd) {
                cx.dev.add_dots(1.0, c, g.all(), gd.all(), &mut sums.cross);
                cx.dev.add_dots(1.0, c, gd.all(), gd.all(), &mut sums.square);
            }
        }
        let kept = Gradient::Whole(gd, gbd);
        if sums.keep { tangent.gradient = kept } else { kept.recycle(cx.dev) }
    }

    pub(super) fn add_weighted<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let Gradient::Whole(g, gb) = &tape.gradient else { return };
        cx.dev.add_weighted_sum(weights, g.all(), out, self.gamma);
        if let (Some(gb), Some(beta)) = (gb, self.beta) {
            cx.dev.add_weighted_sum(weights, gb.all(), out, beta);
        }
    }

    pub(super) fn add_weighted_tangent<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tangent: &Tangent<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let Gradient::Whole(g, gb) = &tangent.gradient else { return };
        cx.dev.add_weighted_sum(weights, g.all(), out, self.gamma);
        if let (Some(gb), Some(beta)) = (gb, self.beta) {
            cx.dev.add_weighted_sum(weights, gb.all(), out, beta);
        }
    }

    #[cfg(test)]
    pub(super) fn materialise<T: Real>(
        &self,
        dev: &Device<T>,
        tape: &Tape<T>,
        tangent: Option<&Tangent<T>>,
        at: Single,
        out: &mut [f64],
    ) {
        let n = self.channels * self.positions.at(at.length);
        let row = |b: &Buf<T>, i: usize| -> Vec<f64> {
            let all = dev.download(b).unwrap_or_default();
            all[i * n..(i + 1) * n].iter().map(|v| v.to_f64()).collect()
        };
        let (Some(x), Some(d)) = (&tape.input, &tape.delta) else { return };
        let (x, d) = (row(x, at.record), row(d, at.record));
        let mut add = |d: &[f64], x: &[f64], beta: bool| {
            for i in 0..n {
                out[self.gamma + i % self.channels] += d[i] * x[i];
                if let (true, Some(beta)) = (beta, self.beta) {
                    out[beta + i % self.channels] += d[i];
                }
            }
        };
        match tangent {
            None => add(&d, &x, true),
            Some(tan) => {
                if let Some(dd) = &tan.delta {
                    add(&row(dd, at.row), &x, true);
                }
                if let Some(xd) = &tan.input {
                    add(&d, &row(xd, at.row), false);
                }
            }
        }
    }
}
