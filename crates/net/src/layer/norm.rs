//! Normalisation, `z = γ x̂ + β`: batch norm with frozen statistics, `x̂ = (a − μ)/s` with constants, and layer, group
//! and RMS norm, whose μ and s are those of the record itself. They differ in [`Standardise`] alone.

#[cfg(test)]
use super::Single;
use super::{Affine, Context, Flow, Layer, Moving, Tangent, Tape, Tensor};
#[cfg(test)]
use crate::device::Device;
use crate::{
    Real,
    device::{Buf, Products, Scalars},
};

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

/// Layer, group and RMS norm: mean and spread of the record's own values.
#[derive(Debug)]
pub(crate) struct OwnStatistics {
    pub(crate) epsilon: f64,
    /// Whether the mean is taken off.
    pub(crate) centred: bool,
    pub(crate) span: Span,
}

/// Which values share mean and spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// The channels of one position.
    Position,
    /// All positions of a group of channels, so many groups.
    Groups(usize),
}

impl OwnStatistics {
    /// Number of values that share statistics.
    fn width(&self, affine: &Affine, length: usize) -> usize {
        match self.span {
            Span::Position => affine.channels,
            Span::Groups(groups) => affine.channels / groups * affine.positions.at(length),
        }
    }

    /// Values that share statistics side by side.
    fn gather<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &Buf<T>) -> Buf<T> {
        let Span::Groups(groups) = self.span else { return cx.dev.copy(x.all()) };
        let mut out = cx.dev.take(x.len());
        cx.dev.regroup(affine.positions.at(cx.length), groups, affine.channels / groups, x.all(), &mut out);
        out
    }

    /// Values back in their places, into `out`.
    fn scatter<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: Buf<T>, out: &mut Buf<T>) {
        match self.span {
            Span::Position => cx.dev.put(std::mem::replace(out, x)),
            Span::Groups(groups) => {
                cx.dev.regroup(
                    groups,
                    affine.positions.at(cx.length),
                    affine.channels / groups,
                    x.all(),
                    out,
                );
                cx.dev.put(x);
            }
        }
    }

    /// The derivative of standardisation, in place; with `scale`, it receives ṡ.
    fn derivative<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &Tape<T>,
        v: &mut Buf<T>,
        scale: Option<&mut Buf<T>>,
    ) {
        let (Some(x), Some(inverse)) = (&tape.input, &tape.first) else { return };
        let width = self.width(affine, cx.length);
        if self.span == Span::Position {
            return cx.dev.standardise_tangent(width, self.centred, x.all(), inverse.all(), v, scale);
        }
        let (normal, mut moved) = (self.gather(cx, affine, x), self.gather(cx, affine, v));
        cx.dev.standardise_tangent(width, self.centred, normal.all(), inverse.all(), &mut moved, scale);
        cx.dev.put(normal);
        self.scatter(cx, affine, moved, v);
    }
}

impl Standardise for OwnStatistics {
    const KEPT: usize = 4;

    fn forward<T: Real>(&self, cx: &mut Context<'_, T>, affine: &Affine, x: &mut Buf<T>, tape: &mut Tape<T>) {
        let width = self.width(affine, cx.length);
        let mut inverse = cx.dev.take(x.len() / width);
        if self.span == Span::Position {
            cx.dev.standardise(width, self.epsilon, self.centred, x, &mut inverse);
        } else {
            let mut values = self.gather(cx, affine, x);
            cx.dev.standardise(width, self.epsilon, self.centred, &mut values, &mut inverse);
            self.scatter(cx, affine, values, x);
        }
        tape.first = Some(inverse);
    }

    fn backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        affine: &Affine,
        tape: &mut Tape<T>,
        h: &mut Buf<T>,
    ) {
        self.derivative(cx, affine, tape, h, None);
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
        let mut scale = cx.dev.take(x.len() / self.width(affine, cx.length));
        self.derivative(cx, affine, tape, x, Some(&mut scale));
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
        self.derivative(cx, affine, tape, out, None);
        let (Some(x), Some(inverse)) = (&tape.input, &tape.first) else { return };
        if let (Some(xd), Some(sd), Some(d), Some(din)) =
            (&tangent.input, &tangent.scale, &tape.delta, &tape.second)
        {
            let h = affine.apply(cx, d, false);
            let parts = [x, xd, &h, din].map(|v| self.gather(cx, affine, v));
            let [normal, moved, back, came] = &parts;
            let mut sum = self.gather(cx, affine, out);
            let (width, inverse) = (self.width(affine, cx.length), inverse.all());
            cx.dev.standardise_second(
                width,
                normal.all(),
                moved.all(),
                inverse,
                sd.all(),
                back.all(),
                came.all(),
                &mut sum,
            );
            self.scatter(cx, affine, sum, out);
            parts.into_iter().for_each(|p| cx.dev.put(p));
            cx.dev.put(h);
        }
    }
}

impl<T: Real, S: Standardise> Layer<T> for Norm<S> {
    fn tensors(&self) -> Vec<Tensor> {
        self.affine.tensors()
    }

    fn footprint(&self, length: usize) -> usize {
        S::KEPT * self.affine.channels * self.affine.positions.at(length)
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

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, direction } = at;
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
        at: Moving<'_, T>,
        delta: Buf<T>,
        input: bool,
    ) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        let back = input.then(|| {
            let mut h = self.affine.moved(cx, tape, &delta, tangent);
            self.standardise.tangent_backward(cx, &self.affine, tape, tangent, &mut h);
            h
        });
        tangent.delta = Some(delta);
        back
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut Scalars) {
        self.affine.add_square(cx, tape, square);
    }

    fn add_products(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, sums: &mut Products) {
        self.affine.add_products(cx, at, sums);
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Scalars, out: &mut Buf<T>) {
        self.affine.add_weighted(cx, tape, weights, out);
    }

    fn add_weighted_tangent(
        &self,
        cx: &mut Context<'_, T>,
        _: &Tape<T>,
        tangent: &Tangent<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        self.affine.add_weighted_tangent(cx, tangent, weights, out);
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
        self.affine.materialise(dev, tape, tangent, at, out);
    }
}
