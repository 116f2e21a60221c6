//! Normalisation over channels, `z = γ x̂ + β`: batch norm with frozen statistics, `x̂ = (a − μ)/s` with constants,
//! and layer norm, whose μ and s are those of the record itself at each position.

use super::{Affine, Context, Direction, Layer, Tangent, Tape, Tensor};
#[cfg(test)]
use crate::device::Device;
use crate::{Real, device::Buf};

/// Batch norm with frozen statistics.
#[derive(Debug)]
pub(crate) struct BatchNorm {
    pub(crate) affine: Affine,
    /// Where `1/√(variance + ε)` per channel starts among the constants; `−mean/√(variance + ε)` follows.
    pub(crate) constants: usize,
}

impl<T: Real> Layer<T> for BatchNorm {
    fn tensors(&self) -> Vec<Tensor> {
        self.affine.tensors()
    }

    fn footprint(&self) -> usize {
        3 * self.affine.channels * self.affine.positions
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        let c = self.affine.channels;
        cx.dev.mul(&mut x, cx.constants.part(self.constants, c));
        cx.dev.add(&mut x, cx.constants.part(self.constants + c, c));
        let z = self.affine.apply(cx, &x, true);
        tape.input = Some(x);
        z
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let back = input.then(|| {
            let mut h = self.affine.apply(cx, &delta, false);
            cx.dev.mul(&mut h, cx.constants.part(self.constants, self.affine.channels));
            h
        });
        tape.delta = Some(delta);
        back
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        x: Option<Buf<T>>,
        direction: Option<&Direction<'_, T>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let z = x.map(|mut x| {
            cx.dev.mul(&mut x, cx.constants.part(self.constants, self.affine.channels));
            let z = self.affine.apply(cx, &x, false);
            tangent.input = Some(x);
            z
        });
        match direction {
            Some(dir) => self.affine.direction_forward(cx, tape, dir, z, tangent),
            None => z,
        }
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        _: Option<&Direction<'_, T>>,
        tangent: &mut Tangent<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let back = input.then(|| {
            let mut h = self.affine.moved(cx, tape, &delta, tangent);
            cx.dev.mul(&mut h, cx.constants.part(self.constants, self.affine.channels));
            h
        });
        tangent.delta = Some(delta);
        back
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut [f64]) {
        self.affine.add_square(cx, tape, square);
    }

    fn add_products(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &mut Tangent<T>,
        keep: bool,
        cross: &mut [f64],
        square: &mut [f64],
    ) {
        self.affine.add_products(cx, tape, tangent, keep, cross, square);
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Buf<T>, out: &mut Buf<T>) {
        self.affine.add_weighted(cx, tape, weights, out);
    }

    #[cfg(test)]
    fn materialise(
        &self,
        dev: &Device<T>,
        tape: &Tape<T>,
        tangent: Option<&Tangent<T>>,
        record: usize,
        probe_row: usize,
        out: &mut [f64],
    ) {
        self.affine.materialise(dev, tape, tangent, record, probe_row, out);
    }
}

/// Layer norm over the channels of each position.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    pub(crate) affine: Affine,
    pub(crate) epsilon: f64,
}

impl<T: Real> Layer<T> for LayerNorm {
    fn tensors(&self) -> Vec<Tensor> {
        self.affine.tensors()
    }

    fn footprint(&self) -> usize {
        4 * self.affine.channels * self.affine.positions
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        let c = self.affine.channels;
        let mut inverse = cx.dev.take(x.len() / c);
        cx.dev.standardise(c, self.epsilon, &mut x, &mut inverse);
        let z = self.affine.apply(cx, &x, true);
        (tape.input, tape.first) = (Some(x), Some(inverse));
        z
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let back = input.then(|| {
            let mut h = self.affine.apply(cx, &delta, false);
            if let (Some(x), Some(inverse)) = (&tape.input, &tape.first) {
                cx.dev.standardise_tangent(self.affine.channels, x.all(), inverse.all(), &mut h, None);
            }
            h
        });
        tape.second = back.as_ref().map(|b| cx.dev.copy(b.all()));
        tape.delta = Some(delta);
        back
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        x: Option<Buf<T>>,
        direction: Option<&Direction<'_, T>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let c = self.affine.channels;
        let z = x.map(|mut x| {
            let mut scale = cx.dev.take(x.len() / c);
            if let (Some(normal), Some(inverse)) = (&tape.input, &tape.first) {
                cx.dev.standardise_tangent(c, normal.all(), inverse.all(), &mut x, Some(&mut scale));
            }
            let z = self.affine.apply(cx, &x, false);
            (tangent.input, tangent.scale) = (Some(x), Some(scale));
            z
        });
        match direction {
            Some(dir) => self.affine.direction_forward(cx, tape, dir, z, tangent),
            None => z,
        }
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        _: Option<&Direction<'_, T>>,
        tangent: &mut Tangent<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let c = self.affine.channels;
        let back = input.then(|| {
            let mut out = self.affine.moved(cx, tape, &delta, tangent);
            if let (Some(x), Some(inverse)) = (&tape.input, &tape.first) {
                cx.dev.standardise_tangent(c, x.all(), inverse.all(), &mut out, None);
                if let (Some(xd), Some(sd), Some(d), Some(din)) =
                    (&tangent.input, &tangent.scale, &tape.delta, &tape.second)
                {
                    let h = self.affine.apply(cx, d, false);
                    let (x, inverse) = (x.all(), inverse.all());
                    cx.dev.standardise_second(
                        c,
                        x,
                        xd.all(),
                        inverse,
                        sd.all(),
                        h.all(),
                        din.all(),
                        &mut out,
                    );
                    cx.dev.put(h);
                }
            }
            out
        });
        tangent.delta = Some(delta);
        back
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut [f64]) {
        self.affine.add_square(cx, tape, square);
    }

    fn add_products(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &mut Tangent<T>,
        keep: bool,
        cross: &mut [f64],
        square: &mut [f64],
    ) {
        self.affine.add_products(cx, tape, tangent, keep, cross, square);
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Buf<T>, out: &mut Buf<T>) {
        self.affine.add_weighted(cx, tape, weights, out);
    }

    #[cfg(test)]
    fn materialise(
        &self,
        dev: &Device<T>,
        tape: &Tape<T>,
        tangent: Option<&Tangent<T>>,
        record: usize,
        probe_row: usize,
        out: &mut [f64],
    ) {
        self.affine.materialise(dev, tape, tangent, record, probe_row, out);
    }
}
