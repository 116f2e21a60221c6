//! Normalisation over channels, `z = γ x̂ + β`: batch norm with frozen statistics, `x̂ = (a − μ)/s` with constants,
//! and layer norm, whose μ and s are those of the record itself at each position. The two differ in [`Standardise`]
//! alone.

use super::{Affine, Context, Direction, Layer, Tangent, Tape, Tensor};
#[cfg(test)]
use crate::device::Device;
use crate::{Real, device::Buf};

/// Normalisation: what standardises, and what is trained.
#[derive(Debug)]
pub(crate) struct Norm<S> {
    pub(crate) affine: Affine,
    pub(crate) standardise: S,
}

/// How x̂ comes from a: forward, backward, and the tangents of both, each in place.
pub(crate) trait Standardise: std::fmt::Debug + Send + Sync {
    /// Arrays of a record's size that a pass keeps, the affine half's included.
    const KEPT: usize;

    /// a → x̂.
    fn forward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &mut Buf<T>, tape: &mut Tape<T>);

    /// `h = ∂ℓ/∂x̂` → `∂ℓ/∂a`.
    fn backward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, tape: &mut Tape<T>, h: &mut Buf<T>);

    /// ȧ → the tangent of x̂.
    fn tangent_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &Tape<T>,
        x: &mut Buf<T>,
        tangent: &mut Tangent<T>,
    );

    /// ḣ → the tangent of `∂ℓ/∂a`.
    fn tangent_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &Tape<T>,
        tangent: &Tangent<T>,
        h: &mut Buf<T>,
    );
}

/// Batch norm: statistics that are constants.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// Where `1/√(variance + ε)` per channel starts among the constants; `−mean/√(variance + ε)` follows.
    pub(crate) constants: usize,
}

impl Frozen {
    fn scale<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &mut Buf<T>) {
        cx.dev.mul(x, cx.constants.part(self.constants, affine.channels));
    }
}

impl Standardise for Frozen {
    const KEPT: usize = 3;

    fn forward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &mut Buf<T>, _: &mut Tape<T>) {
        self.scale(cx, affine, x);
        cx.dev.add(x, cx.constants.part(self.constants + affine.channels, affine.channels));
    }

    fn backward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, _: &mut Tape<T>, h: &mut Buf<T>) {
        self.scale(cx, affine, h);
    }

    fn tangent_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        _: &Tape<T>,
        x: &mut Buf<T>,
        _: &mut Tangent<T>,
    ) {
        self.scale(cx, affine, x);
    }

    fn tangent_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        _: &Tape<T>,
        _: &Tangent<T>,
        h: &mut Buf<T>,
    ) {
        self.scale(cx, affine, h);
    }
}

/// Layer norm: mean and spread over the channels of each position of the record itself.
#[derive(Debug)]
pub(crate) struct PerPosition {
    pub(crate) epsilon: f64,
}

impl Standardise for PerPosition {
    const KEPT: usize = 4;

    fn forward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &mut Buf<T>, tape: &mut Tape<T>) {
        let mut inverse = cx.dev.take(x.len() / affine.channels);
        cx.dev.standardise(affine.channels, self.epsilon, x, &mut inverse);
        tape.first = Some(inverse);
    }

    fn backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &mut Tape<T>,
        h: &mut Buf<T>,
    ) {
        if let (Some(x), Some(inverse)) = (&tape.input, &tape.first) {
            cx.dev.standardise_tangent(affine.channels, x.all(), inverse.all(), h, None);
        }
        tape.second = Some(cx.dev.copy(h.all()));
    }

    fn tangent_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &Tape<T>,
        x: &mut Buf<T>,
        tangent: &mut Tangent<T>,
    ) {
        let mut scale = cx.dev.take(x.len() / affine.channels);
        if let (Some(normal), Some(inverse)) = (&tape.input, &tape.first) {
            cx.dev.standardise_tangent(affine.channels, normal.all(), inverse.all(), x, Some(&mut scale));
        }
        tangent.scale = Some(scale);
    }

    fn tangent_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &Tape<T>,
        tangent: &Tangent<T>,
        out: &mut Buf<T>,
    ) {
        let (Some(x), Some(inverse)) = (&tape.input, &tape.first) else { return };
        let (c, x, inverse) = (affine.channels, x.all(), inverse.all());
        cx.dev.standardise_tangent(c, x, inverse, out, None);
        if let (Some(xd), Some(sd), Some(d), Some(din)) =
            (&tangent.input, &tangent.scale, &tape.delta, &tape.second)
        {
            let h = affine.apply(cx, d, false);
            cx.dev.standardise_second(c, x, xd.all(), inverse, sd.all(), h.all(), din.all(), out);
            cx.dev.put(h);
        }
    }
}

impl<T: Real, S: Standardise> Layer<T> for Norm<S> {
    fn tensors(&self) -> Vec<Tensor> {
        self.affine.tensors()
    }

    fn footprint(&self) -> usize {
        S::KEPT * self.affine.channels * self.affine.positions
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        self.standardise.forward(cx, &self.affine, &mut x, tape);
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
            self.standardise.backward(cx, &self.affine, tape, &mut h);
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
            self.standardise.tangent_forward(cx, &self.affine, tape, &mut x, tangent);
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
            self.standardise.tangent_backward(cx, &self.affine, tape, tangent, &mut h);
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
