//! A direction of the parameters of a dense layer or a convolution: as pairs, `θ̇ = α ġ + β g` per record, never an
//! array of parameters where the layer's form is dots or Gram; or one array for all records.

use super::{Context, Gradient, Linear, Own, Shared, Tangent, Tape};
use crate::{
    Real,
    device::{Buf, Gemm},
};

impl Linear {
    /// Adds `(θ̇ a)` to ż: `Σ_s (αδ̇_s + βδ_s)(a_s·a_t + 1) + αδ_s(ȧ_s·a_t)`.
    pub(super) fn own_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Own<'_, T>,
        keep: &mut Tangent<T>,
        z: &mut Buf<T>,
    ) {
        let (t, k, o) = (self.positions.at(cx.length), self.inputs, self.outputs);
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        match &tape.gradient {
            Gradient::None => {}
            Gradient::Dots(na, _) => {
                let along = dir.tangent.map(|tan| match &tan.gradient {
                    Gradient::Dots(ax, _) => &ax[..],
                    _ => &[],
                });
                let at = |i: usize| along.and_then(|v| v.get(i)).copied().unwrap_or(0.0);
                let c: Vec<f64> =
                    na.iter().enumerate().map(|(i, n)| dir.beta[i] * n + dir.alpha[i] * at(i)).collect();
                let c = cx.dev.upload_f64(&c);
                cx.dev.add_scaled_blocks(c.all(), d.all(), z);
                cx.dev.put(c);
                if let Some(dd) = dir.tangent.and_then(|tan| tan.delta.as_ref()) {
                    let c: Vec<f64> = na.iter().zip(dir.alpha).map(|(n, a)| n * a).collect();
                    let c = cx.dev.upload_f64(&c);
                    cx.dev.add_scaled_blocks(c.all(), dd.all(), z);
                    cx.dev.put(c);
                }
            }
            Gradient::Gram(ga, _) => {
                let (alpha, beta) = (cx.dev.upload_f64(dir.alpha), cx.dev.upload_f64(dir.beta));
                let mut e = cx.dev.take(d.len());
                cx.dev.scale_blocks(beta.all(), d.all(), &mut e);
                if let Some(tan) = dir.tangent
                    && let (Some(dd), Gradient::Gram(xa, _)) = (&tan.delta, &tan.gradient)
                {
                    cx.dev.add_scaled_blocks(alpha.all(), dd.all(), &mut e);
                    let mut f = cx.dev.take(d.len());
                    cx.dev.scale_blocks(alpha.all(), d.all(), &mut f);
                    cx.dev.gemm_batched(Gemm::nn(t, o, t).adding(), xa.all(), f.all(), z);
                    cx.dev.put(f);
                }
                cx.dev.gemm_batched(Gemm::nn(t, o, t).adding(), ga.all(), e.all(), z);
                for b in [e, alpha, beta] {
                    cx.dev.put(b);
                }
            }
            Gradient::Whole(g, gb) => {
                let (alpha, beta) = (cx.dev.upload_f64(dir.alpha), cx.dev.upload_f64(dir.beta));
                let mut v = cx.dev.take(g.len());
                cx.dev.scale_blocks(beta.all(), g.all(), &mut v);
                let mut vb = gb.as_ref().map(|gb| {
                    let mut vb = cx.dev.take(gb.len());
                    cx.dev.scale_blocks(beta.all(), gb.all(), &mut vb);
                    vb
                });
                if let Some(Gradient::Whole(gd, gbd)) = dir.tangent.map(|tan| &tan.gradient) {
                    cx.dev.add_scaled_blocks(alpha.all(), gd.all(), &mut v);
                    if let (Some(vb), Some(gbd)) = (&mut vb, gbd) {
                        cx.dev.add_scaled_blocks(alpha.all(), gbd.all(), vb);
                    }
                }
                cx.dev.gemm_batched(Gemm::nt(t, o, k).adding(), a.all(), v.all(), z);
                if let Some(vb) = &vb {
                    // the same bias at every position: a product with a column of ones
                    let mut ones = cx.dev.zeros(t);
                    cx.dev.add_constant(&mut ones, T::ONE);
                    cx.dev.gemm_batched(Gemm::nn(t, o, 1).adding(), ones.all(), vb.all(), z);
                    cx.dev.put(ones);
                }
                cx.dev.put(alpha);
                cx.dev.put(beta);
                keep.direction = Gradient::Whole(v, vb);
            }
        }
    }

    /// Adds `θ̇ᵀδ` to the columns of what comes back: `Σ_s a_s((αδ̇_s + βδ_s)·δ_t) + ȧ_s(αδ_s·δ_t)`.
    pub(super) fn own_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Own<'_, T>,
        keep: &Tangent<T>,
        cols: &mut Buf<T>,
    ) {
        let (t, k, o) = (self.positions.at(cx.length), self.inputs, self.outputs);
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        let moved = dir.tangent.and_then(|tan| tan.input.as_ref());
        match &tape.gradient {
            Gradient::None => {}
            Gradient::Dots(_, nd) => {
                let along = dir.tangent.map(|tan| match &tan.gradient {
                    Gradient::Dots(_, dx) => &dx[..],
                    _ => &[],
                });
                let at = |i: usize| along.and_then(|v| v.get(i)).copied().unwrap_or(0.0);
                let c: Vec<f64> =
                    nd.iter().enumerate().map(|(i, n)| dir.beta[i] * n + dir.alpha[i] * at(i)).collect();
                let c = cx.dev.upload_f64(&c);
                cx.dev.add_scaled_blocks(c.all(), a.all(), cols);
                cx.dev.put(c);
                if let Some(ad) = moved {
                    let c: Vec<f64> = nd.iter().zip(dir.alpha).map(|(n, a)| n * a).collect();
                    let c = cx.dev.upload_f64(&c);
                    cx.dev.add_scaled_blocks(c.all(), ad.all(), cols);
                    cx.dev.put(c);
                }
            }
            Gradient::Gram(_, gd) => {
                let (alpha, beta) = (cx.dev.upload_f64(dir.alpha), cx.dev.upload_f64(dir.beta));
                let mut m = cx.dev.take(gd.len());
                cx.dev.scale_blocks(beta.all(), gd.all(), &mut m);
                if let Some(Gradient::Gram(_, xd)) = dir.tangent.map(|tan| &tan.gradient) {
                    cx.dev.add_scaled_blocks(alpha.all(), xd.all(), &mut m);
                }
                cx.dev.gemm_batched(Gemm::nn(t, k, t).adding(), m.all(), a.all(), cols);
                if let Some(ad) = moved {
                    cx.dev.scale_blocks(alpha.all(), gd.all(), &mut m);
                    cx.dev.gemm_batched(Gemm::nn(t, k, t).adding(), m.all(), ad.all(), cols);
                }
                for b in [m, alpha, beta] {
                    cx.dev.put(b);
                }
            }
            Gradient::Whole(..) => {
                if let Gradient::Whole(v, _) = &keep.direction {
                    cx.dev.gemm_batched(Gemm::nn(t, k, o).adding(), d.all(), v.all(), cols);
                }
            }
        }
    }

    /// Adds `w (V a + v)` to ż.
    pub(super) fn shared_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Shared<'_, T>,
        z: &mut Buf<T>,
    ) {
        let (k, o) = (self.inputs, self.outputs);
        let Some(a) = &tape.input else { return };
        let rows = a.len() / k;
        let mut moved = cx.dev.take(rows * o);
        let mut product = Gemm::nt(rows, o, k);
        if let Some(bias) = self.bias {
            cx.dev.set_rows(&mut moved, dir.array.part(bias, o));
            product = product.adding();
        }
        cx.dev.gemm(product, a.all(), dir.array.part(self.weight, o * k), &mut moved, 0);
        let weights = cx.dev.upload_f64(dir.weights);
        cx.dev.add_scaled_blocks(weights.all(), moved.all(), z);
        cx.dev.put(moved);
        cx.dev.put(weights);
    }

    /// Adds `w Vᵀδ` to the columns of what comes back.
    pub(super) fn shared_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Shared<'_, T>,
        cols: &mut Buf<T>,
    ) {
        let (k, o) = (self.inputs, self.outputs);
        let Some(d) = &tape.delta else { return };
        let rows = d.len() / o;
        let weights = cx.dev.upload_f64(dir.weights);
        let mut scaled = cx.dev.take(d.len());
        cx.dev.scale_blocks(weights.all(), d.all(), &mut scaled);
        cx.dev.gemm(Gemm::nn(rows, k, o).adding(), scaled.all(), dir.array.part(self.weight, o * k), cols, 0);
        cx.dev.put(scaled);
        cx.dev.put(weights);
    }
}
