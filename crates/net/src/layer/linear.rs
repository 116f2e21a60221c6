//! Dense layers and convolutions: `z_t = W a_t + b` at T positions (T = 1 for a dense layer of vectors).
//!
//! The per-sample gradient is `g = Σ_t δ_t ⊗ (a_t, 1)`, kept as the pair (δ, a). Its tangent is
//! `ġ = Σ_t δ̇_t ⊗ (a_t, 1) + δ_t ⊗ (ȧ_t, 0)`. Three forms, all the same numbers:
//!
//! | form | when | `‖g‖²` |
//! |---|---|---|
//! | dots | T = 1 | `‖δ‖²(‖a‖² + 1)` |
//! | Gram | 2T² ≤ size of W; on a GPU `T(K + O) ≤ K O` | `Σ_ts (δ_t·δ_s)(a_t·a_s + 1)` |
//! | whole | otherwise, and where single parameters are frozen | of the array itself |

#[cfg(test)]
use super::Single;
use super::{Context, Direction, Flow, Gradient, Layer, Moving, Start, Tangent, Tape, Tensor, Width};
use crate::{
    Real,
    device::{Buf, Convolution, Device, Gemm, Products, RankOne, Scalars},
    shape::Window,
};

/// A dense layer or a convolution.
#[derive(Debug)]
pub(crate) struct Linear {
    /// The patches of a convolution; absent for a dense layer.
    pub(crate) window: Option<Window>,
    /// K: values under the window.
    pub(crate) inputs: usize,
    /// O.
    pub(crate) outputs: usize,
    /// Where W, `(O, K)` row-major, starts among the parameters.
    pub(crate) weight: usize,
    /// Where b starts, if there is one.
    pub(crate) bias: Option<usize>,
    /// T.
    pub(crate) positions: Width,
    /// Whether W is the table of the embedding, and not its own.
    pub(crate) tied: bool,
    /// Whether some of its parameters are frozen on their own.
    pub(crate) masked: bool,
}

enum Form {
    Dots,
    Gram,
    Whole,
}

impl Linear {
    /// On the processor the form that takes less memory, on a GPU that which takes less arithmetic: `T²(K + O)` or `T K O`.
    fn form(&self, t: usize, far: bool) -> Form {
        let (k, o) = (self.inputs, self.outputs);
        let gram = if far { t * (k + o) <= k * o } else { 2 * t * t <= k * o };
        match t {
            _ if self.masked => Form::Whole,
            1 => Form::Dots,
            _ if gram => Form::Gram,
            _ => Form::Whole,
        }
    }

    /// Values that the gradient of a record takes.
    fn gradient_footprint(&self, t: usize, far: bool) -> usize {
        match self.form(t, far) {
            Form::Dots => 0,
            Form::Gram => 2 * t * t,
            Form::Whole => self.inputs * self.outputs,
        }
    }

    /// What the bias adds to every product `a_t·a_s`.
    fn one(&self) -> f64 {
        if self.bias.is_some() { 1.0 } else { 0.0 }
    }

    fn columns<T: Real>(&self, dev: &mut Device<T>, x: Buf<T>) -> Buf<T> {
        let Some(win) = &self.window else { return x };
        let mut cols = dev.take(x.len() / win.image() * win.positions() * win.patch());
        dev.im2col(win, x.all(), &mut cols);
        dev.put(x);
        cols
    }

    fn image<T: Real>(&self, dev: &mut Device<T>, cols: Buf<T>) -> Buf<T> {
        let Some(win) = &self.window else { return cols };
        let mut image = dev.take(cols.len() / (win.positions() * win.patch()) * win.image());
        dev.col2im(win, cols.all(), &mut image);
        dev.put(cols);
        image
    }

    /// `δ W`, as images.
    fn back_image<T: Real>(&self, cx: &mut Context<'_, T>, delta: &Buf<T>) -> Buf<T> {
        if let Some(conv) = self.direct(cx.dev) {
            let w = cx.theta.part(self.weight, self.outputs * self.inputs);
            return cx.dev.convolve_back(&conv, delta, w);
        }
        let cols = self.back(cx, delta);
        self.image(cx.dev, cols)
    }

    /// `δ W`, rows of patches.
    fn back<T: Real>(&self, cx: &mut Context<'_, T>, delta: &Buf<T>) -> Buf<T> {
        let (k, o) = (self.inputs, self.outputs);
        let rows = delta.len() / o;
        let mut cols = cx.dev.take(rows * k);
        let w = cx.theta.part(self.weight, o * k);
        cx.dev.gemm(Gemm::nn(rows, k, o).of_pass(), delta.all(), w, &mut cols, 0);
        cols
    }
}

impl Linear {
    /// Adds `Σ w δ ⊗ a` to the weights, and `Σ w δ` to the bias where it takes part.
    fn add_pairs<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        (d, a): (&Buf<T>, &Buf<T>),
        weights: &Scalars,
        with_bias: bool,
        out: &mut Buf<T>,
    ) {
        let (k, o) = (self.inputs, self.outputs);
        let mut scaled = cx.dev.take(d.len());
        cx.dev.scale_blocks(weights, d.all(), &mut scaled);
        let rows = d.len() / o;
        // of images, the columns that are not kept
        let cols = self.direct(cx.dev).map(|_| {
            let image = cx.dev.copy(a.all());
            self.columns(cx.dev, image)
        });
        let a = cols.as_ref().unwrap_or(a);
        cx.dev.gemm(Gemm::tn(o, k, rows).adding(), scaled.all(), a.all(), out, self.weight);
        cx.dev.put_some(cols);
        let bias = self.bias.filter(|_| with_bias);
        // on a GPU in one sum; the processor keeps its order of sums
        if let (Some(bias), true) = (bias, cx.dev.is_far() && rows == weights.len()) {
            cx.dev.add_weighted_sum(weights, d.all(), out, bias);
        } else if let Some(bias) = bias {
            let mut sum = cx.dev.take(o);
            cx.dev.sum_rows(rows, o, scaled.all(), &mut sum);
            let one = cx.dev.upload_scalars(&[1.0]);
            cx.dev.add_weighted_sum(&one, sum.all(), out, bias);
            cx.dev.put(sum);
        }
        cx.dev.put(scaled);
    }
}

impl<T: Real> Layer<T> for Linear {
    fn tensors(&self) -> Vec<Tensor> {
        let shape = match &self.window {
            Some(w) => vec![self.outputs, w.kernel[0], w.kernel[1], w.channels],
            None => vec![self.outputs, self.inputs],
        };
        let start = Start::Normal(self.inputs);
        let weight = Tensor { name: "weight", shape, offset: self.weight, start };
        let bias = self.bias.map(|offset| Tensor {
            name: "bias",
            shape: vec![self.outputs],
            offset,
            start: Start::Constant(0.0),
        });
        (!self.tied).then_some(weight).into_iter().chain(bias).collect()
    }

    fn set_masked(&mut self) {
        self.masked = true;
    }

    fn sums_from_pair(&self) -> bool {
        !self.masked
    }

    fn footprint(&self, length: usize) -> usize {
        let t = self.positions.at(length);
        2 * t * (self.inputs + self.outputs) + self.gradient_footprint(t, false)
    }

    fn far_footprint(&self, length: usize) -> usize {
        let t = self.positions.at(length);
        let whole = match &self.window {
            Some(window) if Convolution::suits(window, self.outputs) => 3 * self.inputs * self.outputs,
            _ => 0,
        };
        (2 * t * (self.inputs + self.outputs) + self.gradient_footprint(t, true)).max(whole)
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        let (k, o) = (self.inputs, self.outputs);
        if let Some(conv) = self.direct(cx.dev) {
            let bias = self.bias.map(|bias| cx.theta.part(bias, o));
            let z = cx.dev.convolve(&conv, &x, cx.theta.part(self.weight, o * k), bias);
            tape.input = Some(x);
            return z;
        }
        let cols = self.columns(cx.dev, x);
        let rows = cols.len() / k;
        let mut z = cx.dev.take(rows * o);
        let mut g = Gemm::nt(rows, o, k).of_pass();
        if let Some(bias) = self.bias {
            cx.dev.set_rows(&mut z, cx.theta.part(bias, o));
            g = g.adding();
        }
        cx.dev.gemm(g, cols.all(), cx.theta.part(self.weight, o * k), &mut z, 0);
        tape.input = Some(cols);
        z
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let back = input.then(|| self.back_image(cx, &delta));
        tape.delta = Some(delta);
        back
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, direction } = at;
        let (k, o) = (self.inputs, self.outputs);
        let direct = self.direct(cx.dev);
        let mut z = x.map(|x| {
            if let Some(conv) = &direct {
                let z = cx.dev.convolve(conv, &x, cx.theta.part(self.weight, o * k), None);
                tangent.input = Some(x);
                return z;
            }
            let cols = self.columns(cx.dev, x);
            let rows = cols.len() / k;
            let mut z = cx.dev.take(rows * o);
            let product = Gemm::nt(rows, o, k).of_pass();
            cx.dev.gemm(product, cols.all(), cx.theta.part(self.weight, o * k), &mut z, 0);
            tangent.input = Some(cols);
            z
        });
        if let Some(dir) = direction {
            let mut sum = z.unwrap_or_else(|| cx.dev.zeros(cx.records * self.positions.at(cx.length) * o));
            match (dir.own(), &direct) {
                (Some(own), Some(conv)) => self.direct_own(cx, conv, tape, own, (false, &mut sum)),
                (Some(own), None) => self.own_forward(cx, tape, own, tangent, &mut sum),
                (None, _) => {}
            }
            match (dir.shared(), &direct) {
                (Some(shared), Some(conv)) => self.direct_shared(cx, conv, tape, shared, (false, &mut sum)),
                (Some(shared), None) => self.shared_forward(cx, tape, shared, &mut sum),
                (None, _) => {}
            }
            z = Some(sum);
        }
        z
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        input: bool,
    ) -> Flow<T> {
        let Moving { tape, tangent, direction } = at;
        let direct = self.direct(cx.dev);
        let back = input.then(|| {
            if let Some(conv) = &direct {
                let mut image = self.back_image(cx, &delta);
                if let Some(own) = direction.and_then(Direction::own) {
                    self.direct_own(cx, conv, tape, own, (true, &mut image));
                }
                if let Some(shared) = direction.and_then(Direction::shared) {
                    self.direct_shared(cx, conv, tape, shared, (true, &mut image));
                }
                return image;
            }
            let mut cols = self.back(cx, &delta);
            if let Some(own) = direction.and_then(Direction::own) {
                self.own_backward(cx, tape, own, tangent, &mut cols);
            }
            if let Some(shared) = direction.and_then(Direction::shared) {
                self.shared_backward(cx, tape, shared, &mut cols);
            }
            self.image(cx.dev, cols)
        });
        tangent.delta = Some(delta);
        back
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut Scalars) {
        if let Some(conv) = self.direct(cx.dev) {
            return self.direct_square(cx, &conv, tape, square);
        }
        let (t, k, o, b) = (self.positions.at(cx.length), self.inputs, self.outputs, cx.records);
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        tape.gradient = match self.form(t, cx.dev.is_far()) {
            Form::Dots => {
                let mut na = cx.dev.dots(k, a.all(), a.all());
                cx.dev.shift(&mut na, self.one());
                let nd = cx.dev.dots(o, d.all(), d.all());
                cx.dev.add_scalar_products(&na, &nd, square);
                Gradient::Dots(na, nd)
            }
            Form::Gram => {
                let (mut ga, mut gd) = (cx.dev.take(b * t * t), cx.dev.take(b * t * t));
                cx.dev.gemm_batched(Gemm::nt(t, t, k), a.all(), a.all(), &mut ga);
                cx.dev.add_constant(&mut ga, T::from_f64(self.one()));
                cx.dev.gemm_batched(Gemm::nt(t, t, o), d.all(), d.all(), &mut gd);
                cx.dev.add_dots(1.0, t * t, ga.all(), gd.all(), square);
                Gradient::Gram(ga, gd)
            }
            Form::Whole => {
                let mut g = cx.dev.take(b * o * k);
                // norm and sum are those of this array, whatever it was rounded to
                cx.dev.gemm_batched(Gemm::tn(o, k, t).of_pass(), d.all(), a.all(), &mut g);
                cx.mask(&mut g, self.weight, o * k);
                cx.dev.add_dots(1.0, o * k, g.all(), g.all(), square);
                let gb = self.bias.map(|bias| {
                    let mut gb = cx.dev.take(b * o);
                    cx.dev.sum_rows(t, o, d.all(), &mut gb);
                    cx.mask(&mut gb, bias, o);
                    cx.dev.add_dots(1.0, o, gb.all(), gb.all(), square);
                    gb
                });
                Gradient::Whole(g, gb)
            }
        };
    }

    fn add_products(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, sums: &mut Products) {
        if let Some(conv) = self.direct(cx.dev) {
            return self.direct_products(cx, &conv, at, sums);
        }
        let Moving { tape, tangent, .. } = at;
        let (t, k, o) = (self.positions.at(cx.length), self.inputs, self.outputs);
        let (Some(a), Some(d), Some(dd)) = (&tape.input, &tape.delta, &tangent.delta) else { return };
        let ad = tangent.input.as_ref();
        let kept = match &tape.gradient {
            Gradient::None => Gradient::None,
            Gradient::Dots(na, nd) => {
                let (dx, dy) = (cx.dev.dots(o, d.all(), dd.all()), cx.dev.dots(o, dd.all(), dd.all()));
                let moved =
                    ad.map(|ad| (cx.dev.dots(k, a.all(), ad.all()), cx.dev.dots(k, ad.all(), ad.all())));
                let a_moved = moved.as_ref().map(|(x, y)| (x, y));
                let pair = RankOne { a: na, d: nd, d_cross: &dx, d_square: &dy, a_moved };
                cx.dev.add_rank_one(&pair, sums);
                let ax = moved.map_or_else(|| cx.dev.scalars(dd.len() / o), |(x, _)| x);
                Gradient::Dots(ax, dx)
            }
            Gradient::Gram(ga, gd) => {
                let n = dd.len() / (t * o) * t * t;
                let (mut m, mut xd) = (cx.dev.take(n), cx.dev.take(n));
                // XD[t,s] = δ_t·δ̇_s, and YD[t,s] = δ̇_t·δ̇_s
                cx.dev.gemm_batched(Gemm::nt(t, t, o), d.all(), dd.all(), &mut xd);
                cx.dev.gemm_batched(Gemm::nt(t, t, o), dd.all(), dd.all(), &mut m);
                cx.dev.add_dots(1.0, t * t, xd.all(), ga.all(), &mut sums.cross);
                cx.dev.add_dots(1.0, t * t, m.all(), ga.all(), &mut sums.square);
                let mut xa = cx.dev.zeros(n);
                if let Some(ad) = ad {
                    cx.dev.gemm_batched(Gemm::nt(t, t, k), ad.all(), ad.all(), &mut m);
                    cx.dev.add_dots(1.0, t * t, m.all(), gd.all(), &mut sums.square);
                    // XAᵀ first: ȧ_t·a_s meets δ_t·δ̇_s in 2 Σ (δ̇_s·δ_t)(a_s·ȧ_t)
                    cx.dev.gemm_batched(Gemm::nt(t, t, k), ad.all(), a.all(), &mut m);
                    cx.dev.add_dots(2.0, t * t, m.all(), xd.all(), &mut sums.square);
                    cx.dev.add_dots(1.0, t * t, m.all(), gd.all(), &mut sums.cross);
                    if sums.keep {
                        cx.dev.gemm_batched(Gemm::nt(t, t, k), a.all(), ad.all(), &mut xa);
                    }
                }
                cx.dev.put(m);
                Gradient::Gram(xa, xd)
            }
            Gradient::Whole(g, gb) => {
                let rows = dd.len() / (t * o);
                let mut gd = cx.dev.take(rows * o * k);
                let product = Gemm::tn(o, k, t).of_pass();
                cx.dev.gemm_batched(product, dd.all(), a.all(), &mut gd);
                if let Some(ad) = ad {
                    cx.dev.gemm_batched(product.adding(), d.all(), ad.all(), &mut gd);
                }
                cx.mask(&mut gd, self.weight, o * k);
                cx.dev.add_dots(1.0, o * k, g.all(), gd.all(), &mut sums.cross);
                cx.dev.add_dots(1.0, o * k, gd.all(), gd.all(), &mut sums.square);
                let gbd = gb.as_ref().zip(self.bias).map(|(gb, bias)| {
                    let mut gbd = cx.dev.take(rows * o);
                    cx.dev.sum_rows(t, o, dd.all(), &mut gbd);
                    cx.mask(&mut gbd, bias, o);
                    cx.dev.add_dots(1.0, o, gb.all(), gbd.all(), &mut sums.cross);
                    cx.dev.add_dots(1.0, o, gbd.all(), gbd.all(), &mut sums.square);
                    gbd
                });
                Gradient::Whole(gd, gbd)
            }
        };
        if sums.keep {
            tangent.gradient = kept;
        } else {
            kept.recycle(cx.dev);
        }
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Scalars, out: &mut Buf<T>) {
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        if let Gradient::Whole(g, gb) = &tape.gradient {
            cx.dev.add_weighted_sum(weights, g.all(), out, self.weight);
            if let (Some(gb), Some(bias)) = (gb, self.bias) {
                cx.dev.add_weighted_sum(weights, gb.all(), out, bias);
            }
            return;
        }
        if let (Gradient::Gram(..), Some(conv)) = (&tape.gradient, self.direct(cx.dev)) {
            return self.direct_sum(cx, &conv, tape, weights, out);
        }
        self.add_pairs(cx, (d, a), weights, true, out);
    }

    fn add_weighted_tangent(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &Tangent<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        if let Gradient::Whole(g, gb) = &tangent.gradient {
            cx.dev.add_weighted_sum(weights, g.all(), out, self.weight);
            if let (Some(gb), Some(bias)) = (gb, self.bias) {
                cx.dev.add_weighted_sum(weights, gb.all(), out, bias);
            }
            return;
        }
        // Σ w (δ̇ ⊗ (a, 1) + δ ⊗ (ȧ, 0))
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        if let Some(dd) = &tangent.delta {
            self.add_pairs(cx, (dd, a), weights, true, out);
        }
        if let Some(ad) = &tangent.input {
            self.add_pairs(cx, (d, ad), weights, false, out);
        }
    }

    #[cfg(test)]
    fn materialise(
        &self,
        dev: &Device<T>,
        tape: &Tape<T>,
        tangent: Option<&Tangent<T>>,
        at: Single,
        out: &mut [f64],
    ) {
        let (t, k, o) = (self.positions.at(at.length), self.inputs, self.outputs);
        let rows = |b: &Buf<T>, record: usize, width: usize, patches: bool| -> Vec<f64> {
            let mut all = dev.download(b).unwrap_or_default();
            if patches && self.direct(dev).is_some() {
                // images: their columns, by the processor
                let mut near = Device::new();
                let images = near.upload(&all);
                let cols = self.columns(&mut near, images);
                all = near.download(&cols).unwrap_or_default();
            }
            all[record * t * width..(record + 1) * t * width].iter().map(|v| v.to_f64()).collect()
        };
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        let (a, d) = (rows(a, at.record, k, true), rows(d, at.record, o, false));
        // pairs (δ, a, whether the bias takes part) to add up
        let mut pairs = Vec::new();
        match tangent {
            None => pairs.push((d, a, true)),
            Some(tan) => {
                if let Some(dd) = &tan.delta {
                    pairs.push((rows(dd, at.row, o, false), a, true));
                }
                if let Some(ad) = &tan.input {
                    pairs.push((d, rows(ad, at.row, k, true), false));
                }
            }
        }
        for (d, a, bias) in pairs {
            for p in 0..t {
                for i in 0..o {
                    for j in 0..k {
                        out[self.weight + i * k + j] += d[p * o + i] * a[p * k + j];
                    }
                    if let (true, Some(b)) = (bias, self.bias) {
                        out[b + i] += d[p * o + i];
                    }
                }
            }
        }
    }
}
