//! A direction of the parameters of a dense layer or a convolution: as pairs, `θ̇ = α ġ + β g` per record, never an
//! array of parameters where the layer's form is dots or Gram; or arrays, one for all records or one for each.

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
                let along = dir.tangent.and_then(|tan| match &tan.gradient {
                    Gradient::Dots(ax, _) => Some((dir.alpha, ax)),
                    Gradient::None | Gradient::Gram(..) | Gradient::Whole(..) => None,
                });
                let c = cx.dev.combined((dir.beta, na), along);
                cx.dev.add_scaled_blocks(&c, d.all(), z);
                if let Some(dd) = dir.tangent.and_then(|tan| tan.delta.as_ref()) {
                    let c = cx.dev.combined((na, dir.alpha), None);
                    cx.dev.add_scaled_blocks(&c, dd.all(), z);
                }
            }
            Gradient::Gram(ga, _) => {
                let (alpha, beta) = (dir.alpha, dir.beta);
                let mut e = cx.dev.take(d.len());
                cx.dev.scale_blocks(beta, d.all(), &mut e);
                if let Some(tan) = dir.tangent
                    && let (Some(dd), Gradient::Gram(xa, _)) = (&tan.delta, &tan.gradient)
                {
                    cx.dev.add_scaled_blocks(alpha, dd.all(), &mut e);
                    let mut f = cx.dev.take(d.len());
                    cx.dev.scale_blocks(alpha, d.all(), &mut f);
                    cx.dev.gemm_batched(Gemm::nn(t, o, t).of_pass().adding(), xa.all(), f.all(), z);
                    cx.dev.put(f);
                }
                cx.dev.gemm_batched(Gemm::nn(t, o, t).of_pass().adding(), ga.all(), e.all(), z);
                cx.dev.put(e);
            }
            Gradient::Whole(g, gb) => {
                let (alpha, beta) = (dir.alpha, dir.beta);
                let mut v = cx.dev.take(g.len());
                cx.dev.scale_blocks(beta, g.all(), &mut v);
                let mut vb = gb.as_ref().map(|gb| {
                    let mut vb = cx.dev.take(gb.len());
                    cx.dev.scale_blocks(beta, gb.all(), &mut vb);
                    vb
                });
                if let Some(Gradient::Whole(gd, gbd)) = dir.tangent.map(|tan| &tan.gradient) {
                    cx.dev.add_scaled_blocks(alpha, gd.all(), &mut v);
                    if let (Some(vb), Some(gbd)) = (&mut vb, gbd) {
                        cx.dev.add_scaled_blocks(alpha, gbd.all(), vb);
                    }
                }
                cx.dev.gemm_batched(Gemm::nt(t, o, k).of_pass().adding(), a.all(), v.all(), z);
                if let Some(vb) = &vb {
                    // the same bias at every position: a product with a column of ones
                    let mut ones = cx.dev.zeros(t);
                    cx.dev.add_constant(&mut ones, T::ONE);
                    cx.dev.gemm_batched(Gemm::nn(t, o, 1).of_pass().adding(), ones.all(), vb.all(), z);
                    cx.dev.put(ones);
                }
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
                let along = dir.tangent.and_then(|tan| match &tan.gradient {
                    Gradient::Dots(_, dx) => Some((dir.alpha, dx)),
                    Gradient::None | Gradient::Gram(..) | Gradient::Whole(..) => None,
                });
                let c = cx.dev.combined((dir.beta, nd), along);
                cx.dev.add_scaled_blocks(&c, a.all(), cols);
                if let Some(ad) = moved {
                    let c = cx.dev.combined((nd, dir.alpha), None);
                    cx.dev.add_scaled_blocks(&c, ad.all(), cols);
                }
            }
            Gradient::Gram(_, gd) => {
                let (alpha, beta) = (dir.alpha, dir.beta);
                let mut m = cx.dev.take(gd.len());
                cx.dev.scale_blocks(beta, gd.all(), &mut m);
                if let Some(Gradient::Gram(_, xd)) = dir.tangent.map(|tan| &tan.gradient) {
                    cx.dev.add_scaled_blocks(alpha, xd.all(), &mut m);
                }
                cx.dev.gemm_batched(Gemm::nn(t, k, t).of_pass().adding(), m.all(), a.all(), cols);
                if let Some(ad) = moved {
                    cx.dev.scale_blocks(alpha, gd.all(), &mut m);
                    cx.dev.gemm_batched(Gemm::nn(t, k, t).of_pass().adding(), m.all(), ad.all(), cols);
                }
                cx.dev.put(m);
            }
            Gradient::Whole(..) => {
                if let Gradient::Whole(v, _) = &keep.direction {
                    cx.dev.gemm_batched(Gemm::nn(t, k, o).of_pass().adding(), d.all(), v.all(), cols);
                }
            }
        }
    }

    /// Adds `w (V a + v)` to ż, V the record's own or that of all.
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
        let v = dir.part(self.weight, o * k);
        if dir.copies > 1 {
            let t = self.positions.at(cx.length);
            cx.dev.gemm_batched(Gemm::nt(t, o, k).of_pass(), a.all(), v, &mut moved);
            if let Some(bias) = self.bias {
                let mut each = cx.dev.take(dir.copies * t * o);
                cx.dev.repeat_rows(o, t, dir.part(bias, o), &mut each);
                cx.dev.add(&mut moved, each.all());
                cx.dev.put(each);
            }
        } else {
            let mut product = Gemm::nt(rows, o, k).of_pass();
            if let Some(bias) = self.bias {
                cx.dev.set_rows(&mut moved, dir.part(bias, o));
                product = product.adding();
            }
            cx.dev.gemm(product, a.all(), v, &mut moved, 0);
        }
        cx.dev.add_scaled_blocks(dir.weights, moved.all(), z);
        cx.dev.put(moved);
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
        let mut scaled = cx.dev.take(d.len());
        cx.dev.scale_blocks(dir.weights, d.all(), &mut scaled);
        let v = dir.part(self.weight, o * k);
        if dir.copies > 1 {
            let t = self.positions.at(cx.length);
            cx.dev.gemm_batched(Gemm::nn(t, k, o).of_pass().adding(), scaled.all(), v, cols);
        } else {
            cx.dev.gemm(Gemm::nn(rows, k, o).of_pass().adding(), scaled.all(), v, cols, 0);
        }
        cx.dev.put(scaled);
    }
}
