//! Convolutions without patches, where the device has kernels for them: what goes in is kept as images, and the gradient
//! of every record as arrays.

use super::{Context, Gradient, Linear, Moving, Own, Shared, Tape};
use crate::{
    Real,
    device::{Buf, Convolution, Device, OwnWeights, Pair, Products, Scalars},
};

impl Linear {
    /// The device's kernels for this convolution.
    pub(super) fn direct<T: Real>(&self, dev: &Device<T>) -> Option<Convolution> {
        let window = self.window.as_ref().filter(|_| !self.masked)?;
        dev.convolution(window, self.outputs)
    }

    pub(super) fn direct_square<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &mut Tape<T>,
        square: &mut Scalars,
    ) {
        let (Some(input), Some(delta)) = (&tape.input, &tape.delta) else { return };
        let (pair, bias) = (Pair { delta, input }, self.bias.is_some());
        tape.gradient = if conv.has_gram() {
            let (ga, gd) = cx.dev.convolution_gram(conv, pair, bias, square);
            Gradient::Gram(ga, gd)
        } else {
            let (g, gb) = cx.dev.convolution_gradient(conv, pair, bias, square);
            Gradient::Whole(g, gb)
        };
    }

    /// The gradients as arrays; where the layer keeps Gram matrices, made when a tangent first asks for them.
    fn arrays<'a, T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &'a Tape<T>,
    ) -> Option<(&'a Buf<T>, Option<&'a Buf<T>>)> {
        match &tape.gradient {
            Gradient::Whole(g, gb) => Some((g, gb.as_ref())),
            Gradient::Gram(..) => {
                let (Some(input), Some(delta)) = (&tape.input, &tape.delta) else { return None };
                let arrays = tape.arrays.get_or_init(|| {
                    let mut square = cx.dev.scalars(cx.records);
                    let pair = Pair { delta, input };
                    cx.dev.convolution_gradient(conv, pair, self.bias.is_some(), &mut square)
                });
                Some((&arrays.0, arrays.1.as_ref()))
            }
            Gradient::None | Gradient::Dots(..) => None,
        }
    }

    /// Adds the weighted sum of the gradients of all records.
    pub(super) fn direct_sum<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &Tape<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let (Some(input), Some(delta)) = (&tape.input, &tape.delta) else { return };
        let places = (self.weight, self.bias);
        cx.dev.add_convolution_sum(conv, Pair { delta, input }, weights, out, places);
    }

    pub(super) fn direct_products<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        at: Moving<'_, T>,
        sums: &mut Products,
    ) {
        let Moving { tape, tangent, .. } = at;
        let Some(still) = self.arrays(cx, conv, tape) else { return };
        let (Some(input), Some(delta), Some(moved)) = (&tape.input, &tape.delta, &tangent.delta) else {
            return;
        };
        let first = Pair { delta: moved, input };
        let second = tangent.input.as_ref().map(|input| Pair { delta, input });
        let kept = cx.dev.convolution_tangent(conv, [Some(first), second], still, sums);
        if let Some((g, gb)) = kept {
            tangent.gradient = Gradient::Whole(g, gb);
        }
    }

    /// Adds what a direction of the parameters makes of the images, or its transpose of what came back.
    fn along<T: Real>(
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &Tape<T>,
        own: &OwnWeights<'_, T>,
        (back, out): (bool, &mut Buf<T>),
    ) {
        let (Some(a), Some(d)) = (&tape.input, &tape.delta) else { return };
        match back {
            false => cx.dev.convolve_own(conv, a, own, out),
            true => cx.dev.convolve_back_own(conv, d, own, out),
        }
    }

    pub(super) fn direct_own<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &Tape<T>,
        dir: &Own<'_, T>,
        to: (bool, &mut Buf<T>),
    ) {
        // g itself is a product with a Gram matrix
        if let (None, Gradient::Gram(ga, gd), Some(a), Some(d)) =
            (dir.tangent, &tape.gradient, &tape.input, &tape.delta)
        {
            return match to {
                (false, out) => cx.dev.gram_forward(conv, (ga, d), dir.beta, out),
                (true, out) => cx.dev.gram_backward(conv, (gd, a), dir.beta, out),
            };
        }
        let Some((g, gb)) = self.arrays(cx, conv, tape) else { return };
        let moved = match dir.tangent.map(|tan| &tan.gradient) {
            Some(Gradient::Whole(g, gb)) => Some((g.all(), gb.as_ref().map(Buf::all))),
            Some(Gradient::None | Gradient::Dots(..) | Gradient::Gram(..)) | None => None,
        };
        let own =
            OwnWeights { still: (g.all(), gb.map(Buf::all)), moved, alpha: Some(dir.alpha), beta: dir.beta };
        Self::along(cx, conv, tape, &own, to);
    }

    pub(super) fn direct_shared<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        conv: &Convolution,
        tape: &Tape<T>,
        dir: &Shared<'_, T>,
        (back, out): (bool, &mut Buf<T>),
    ) {
        let v = dir.part(self.weight, self.inputs * self.outputs);
        let vb = self.bias.map(|bias| dir.part(bias, self.outputs));
        if dir.copies > 1 {
            // a copy starts where the kernels can read several values at a time
            let v = cx.dev.copy(v);
            let own = OwnWeights { still: (v.all(), vb), moved: None, alpha: None, beta: dir.weights };
            Self::along(cx, conv, tape, &own, (back, out));
            cx.dev.put(v);
            return;
        }
        let moved = match (back, &tape.input, &tape.delta) {
            (false, Some(a), _) => cx.dev.convolve(conv, a, v, vb),
            (true, _, Some(d)) => cx.dev.convolve_back(conv, d, v),
            _ => return,
        };
        cx.dev.add_scaled_blocks(dir.weights, moved.all(), out);
        cx.dev.put(moved);
    }
}
