//! Convolutions without patches, on a GPU alone: kernels that hold whole records at a time. Where there are none for a
//! shape, a convolution is made of patches and products of matrices.

use super::{
    Buf, Device, Products, Scalars, View,
    cuda::{Convolution, Step},
};
use crate::{Real, shape::Window};

/// Weights of every record's own, `α ġ + β g`; of weights and biases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnWeights<'a, T> {
    /// g, `(records, weights)`, and the part of it that belongs to biases.
    pub(crate) still: (View<'a, T>, Option<View<'a, T>>),
    /// ġ, likewise; absent where α is 0.
    pub(crate) moved: Option<(View<'a, T>, Option<View<'a, T>>)>,
    pub(crate) alpha: Option<&'a Scalars>,
    pub(crate) beta: &'a Scalars,
}

/// A pair (δ, a) whose products are a gradient; the shorter operand repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a, T> {
    pub(crate) delta: &'a Buf<T>,
    pub(crate) input: &'a Buf<T>,
}

fn at<T>(view: Option<View<'_, T>>) -> u64 {
    view.map_or(0, |v| v.at())
}

impl<T: Real> Device<T> {
    /// The kernels of a convolution; absent on the processor, and where patches are better.
    pub(crate) fn convolution(&self, window: &Window, outputs: usize) -> Option<Convolution> {
        self.gpu?.convolution::<T>(window, outputs)
    }

    /// Images convolved with weights that all share, and the bias added.
    pub(crate) fn convolve(
        &mut self,
        conv: &Convolution,
        x: &Buf<T>,
        weights: View<'_, T>,
        bias: Option<View<'_, T>>,
    ) -> Buf<T> {
        let n = x.len() / conv.window.image();
        let out = self.take(n * conv.window.positions() * conv.outputs);
        if let Some(gpu) = self.gpu {
            let arguments = [out.at(), x.at(), weights.at(), at(bias), n as u64, n as u64];
            gpu.convolve::<T>(conv, Step::Forward, n, &arguments);
        }
        out
    }

    /// Adds images convolved with weights of their own.
    pub(crate) fn convolve_own(
        &self,
        conv: &Convolution,
        x: &Buf<T>,
        own: &OwnWeights<'_, T>,
        out: &mut Buf<T>,
    ) {
        let n = out.len() / (conv.window.positions() * conv.outputs);
        let repeat = x.len() / conv.window.image();
        let (gd, gbd) = own.moved.map_or((0, 0), |(g, b)| (g.at(), at(b)));
        let arguments = [
            out.at(),
            x.at(),
            own.still.0.at(),
            at(own.still.1),
            gd,
            gbd,
            own.alpha.map_or(0, Scalars::at),
            own.beta.at(),
            n as u64,
            repeat as u64,
        ];
        if let Some(gpu) = self.gpu {
            gpu.convolve::<T>(conv, Step::ForwardOwn, n, &arguments);
        }
    }

    /// The transpose of [`Device::convolve`].
    pub(crate) fn convolve_back(
        &mut self,
        conv: &Convolution,
        delta: &Buf<T>,
        weights: View<'_, T>,
    ) -> Buf<T> {
        let n = delta.len() / (conv.window.positions() * conv.outputs);
        let out = self.take(n * conv.window.image());
        if let Some(gpu) = self.gpu {
            let arguments = [out.at(), delta.at(), weights.at(), n as u64, n as u64];
            gpu.convolve::<T>(conv, Step::Backward, n, &arguments);
        }
        out
    }

    /// Adds the transpose of [`Device::convolve_own`].
    pub(crate) fn convolve_back_own(
        &self,
        conv: &Convolution,
        delta: &Buf<T>,
        own: &OwnWeights<'_, T>,
        out: &mut Buf<T>,
    ) {
        let n = out.len() / conv.window.image();
        let repeat = delta.len() / (conv.window.positions() * conv.outputs);
        let arguments = [
            out.at(),
            delta.at(),
            own.still.0.at(),
            own.moved.map_or(0, |(g, _)| g.at()),
            own.alpha.map_or(0, Scalars::at),
            own.beta.at(),
            n as u64,
            repeat as u64,
        ];
        if let Some(gpu) = self.gpu {
            gpu.convolve::<T>(conv, Step::BackwardOwn, n, &arguments);
        }
    }

    /// The gradients of all records, weights and biases; adds their squares.
    pub(crate) fn convolution_gradient(
        &mut self,
        conv: &Convolution,
        pair: Pair<'_, T>,
        bias: bool,
        square: &mut Scalars,
    ) -> (Buf<T>, Option<Buf<T>>) {
        let n = square.len();
        let g = self.take(n * conv.outputs * conv.window.patch());
        let gb = bias.then(|| self.take(n * conv.outputs));
        let still = Still { reference: None, cross: 0 };
        self.gradients(conv, [Some(pair), None], (Some(&g), gb.as_ref()), still, square, bias);
        (g, gb)
    }

    /// The Gram matrices of what went in (and one more for a bias) and of what came back, T × T of every record; adds the
    /// squares of the gradients.
    pub(crate) fn convolution_gram(
        &mut self,
        conv: &Convolution,
        pair: Pair<'_, T>,
        bias: bool,
        square: &mut Scalars,
    ) -> (Buf<T>, Buf<T>) {
        let (n, t) = (square.len(), conv.window.positions());
        let (ga, gd) = (self.take(n * t * t), self.take(n * t * t));
        let one = if bias { 1.0_f64 } else { 0.0 };
        let arguments =
            [ga.at(), gd.at(), pair.delta.at(), pair.input.at(), n as u64, square.at(), one.to_bits()];
        if let Some(gpu) = self.gpu {
            gpu.convolve::<T>(conv, Step::Gram, n, &arguments);
        }
        (ga, gd)
    }

    /// Adds images convolved with `β g` of their own, from the Gram matrix of what went in.
    pub(crate) fn gram_forward(
        &self,
        conv: &Convolution,
        (ga, delta): (&Buf<T>, &Buf<T>),
        beta: &Scalars,
        out: &mut Buf<T>,
    ) {
        let arguments = [out.at(), ga.at(), delta.at(), beta.at(), beta.len() as u64];
        if let Some(gpu) = self.gpu {
            gpu.convolve::<T>(conv, Step::GramForward, beta.len(), &arguments);
        }
    }

    /// Adds the transpose of that, from the Gram matrix of what came back.
    pub(crate) fn gram_backward(
        &self,
        conv: &Convolution,
        (gd, input): (&Buf<T>, &Buf<T>),
        beta: &Scalars,
        out: &mut Buf<T>,
    ) {
        let arguments = [out.at(), gd.at(), input.at(), beta.at(), beta.len() as u64];
        if let Some(gpu) = self.gpu {
            gpu.convolve::<T>(conv, Step::GramBackward, beta.len(), &arguments);
        }
    }

    /// Adds the weighted sum of the gradients of all records to the weights and biases that stand at given places.
    pub(crate) fn add_convolution_sum(
        &self,
        conv: &Convolution,
        pair: Pair<'_, T>,
        weights: &Scalars,
        out: &mut Buf<T>,
        (weight, bias): (usize, Option<usize>),
    ) {
        let Some(gpu) = self.gpu else { return };
        let (n, width) = (weights.len(), conv.outputs * conv.window.patch());
        assert!(weight + width <= out.len(), "a sum fits where it goes");
        let blocks = gpu.convolution_blocks::<T>(conv, Step::Sum, n);
        let part = gpu.take::<f64>(blocks * width);
        let of_bias = bias.map(|bias| (gpu.take::<f64>(blocks * conv.outputs), bias));
        let arguments = [
            part.address(),
            of_bias.as_ref().map_or(0, |(part, _)| part.address()),
            pair.delta.at(),
            pair.input.at(),
            weights.at(),
            n as u64,
        ];
        gpu.convolve::<T>(conv, Step::Sum, n, &arguments);
        let place = |offset: usize| out.at() + (offset * T::BYTES) as u64;
        gpu.add_slabs::<T>(&part, (blocks, width, 1), place(weight), true);
        if let Some((part, bias)) = &of_bias {
            assert!(bias + conv.outputs <= out.len(), "a sum fits where it goes");
            gpu.add_slabs::<T>(part, (blocks, conv.outputs, 1), place(*bias), true);
        }
    }

    /// The tangents of all gradients, from (δ̇, a) and (δ, ȧ); adds their products with the gradients and their squares.
    /// They are returned where the sums say to keep them.
    pub(crate) fn convolution_tangent(
        &mut self,
        conv: &Convolution,
        pairs: [Option<Pair<'_, T>>; 2],
        still: (&Buf<T>, Option<&Buf<T>>),
        sums: &mut Products,
    ) -> Option<(Buf<T>, Option<Buf<T>>)> {
        let (n, bias) = (sums.square.len(), still.1.is_some());
        let kept = sums.keep.then(|| {
            let g = self.take(n * conv.outputs * conv.window.patch());
            (g, bias.then(|| self.take(n * conv.outputs)))
        });
        let out = kept.as_ref().map_or((None, None), |(g, b)| (Some(g), b.as_ref()));
        let still = Still { reference: Some(still), cross: sums.cross.at() };
        self.gradients(conv, pairs, out, still, &mut sums.square, bias);
        kept
    }

    fn gradients(
        &self,
        conv: &Convolution,
        [first, second]: [Option<Pair<'_, T>>; 2],
        out: (Option<&Buf<T>>, Option<&Buf<T>>),
        still: Still<'_, T>,
        square: &mut Scalars,
        bias: bool,
    ) {
        let (Some(gpu), Some(pair)) = (self.gpu, first) else { return };
        let n = square.len();
        let deltas = |b: &Buf<T>| (b.len() / (conv.window.positions() * conv.outputs)) as u64;
        let images = |b: &Buf<T>| (b.len() / conv.window.image()) as u64;
        let of = |b: Option<&Buf<T>>| b.map_or(0, Buf::at);
        let reference = still.reference.map(|(g, _)| g);
        let arguments = [
            of(out.0),
            of(out.1),
            pair.delta.at(),
            pair.input.at(),
            n as u64,
            deltas(pair.delta),
            images(pair.input),
            of(second.map(|p| p.delta)),
            of(second.map(|p| p.input)),
            second.map_or(1, |p| deltas(p.delta)),
            of(reference),
            of(still.reference.and_then(|(_, b)| b)),
            reference.map_or(1, |g| (g.len() / (conv.outputs * conv.window.patch())) as u64),
            square.at(),
            still.cross,
            u64::from(bias),
        ];
        gpu.convolve::<T>(conv, Step::Gradient, n, &arguments);
    }
}

/// The gradients that tangents are of, and where products with them are added.
struct Still<'a, T> {
    reference: Option<(&'a Buf<T>, Option<&'a Buf<T>>)>,
    cross: u64,
}
