//! Learned positions: `z_t = a_t + P_t`. The per-sample gradient is what comes back itself, so the pair is δ alone.

#[cfg(test)]
use super::Single;
use super::{Context, Direction, Layer, Start, Tangent, Tape, Tensor, add_to};
#[cfg(test)]
use crate::device::Device;
use crate::{Real, device::Buf};

/// A table of rows of `width` values for sequences of at most `most` positions.
#[derive(Debug)]
pub(crate) struct PositionTable {
    pub(crate) most: usize,
    pub(crate) width: usize,
    /// Where the table starts among the parameters.
    pub(crate) table: usize,
}

impl PositionTable {
    fn len<T: Real>(&self, cx: &Context<'_, T>) -> usize {
        cx.length * self.width
    }
}

impl<T: Real> Layer<T> for PositionTable {
    fn tensors(&self) -> Vec<Tensor> {
        let (shape, start) = (vec![self.most, self.width], Start::Normal(self.width));
        vec![Tensor { name: "weight", shape, offset: self.table, start }]
    }

    fn footprint(&self, length: usize) -> usize {
        2 * length * self.width
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, _: &mut Tape<T>) -> Buf<T> {
        cx.dev.add(&mut x, cx.theta.part(self.table, self.len(cx)));
        x
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        tape.delta = Some(cx.dev.copy(delta.all()));
        Some(delta)
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        x: Option<Buf<T>>,
        direction: Option<&Direction<'_, T>>,
        _: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let Some(dir) = direction else { return x };
        let len = self.len(cx);
        let mut z = x.unwrap_or_else(|| cx.dev.zeros(cx.records * len));
        let mut add = |weights: &[f64], values: crate::device::View<'_, T>| {
            let w = cx.dev.upload_f64(weights);
            cx.dev.add_scaled_blocks(w.all(), values, &mut z);
            cx.dev.put(w);
        };
        if let (Some(own), Some(d)) = (dir.own(), &tape.delta) {
            add(own.beta, d.all());
            if let Some(dd) = own.tangent.and_then(|t| t.delta.as_ref()) {
                add(own.alpha, dd.all());
            }
        }
        if let Some(shared) = dir.shared() {
            add(shared.weights, shared.array.part(self.table, len));
        }
        Some(z)
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        _: &Tape<T>,
        delta: Buf<T>,
        _: Option<&Direction<'_, T>>,
        tangent: &mut Tangent<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        tangent.delta = Some(cx.dev.copy(delta.all()));
        Some(delta)
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut [f64]) {
        let (len, Some(d)) = (self.len(cx), &mut tape.delta) else { return };
        cx.mask(d, self.table, len);
        add_to(square, cx.dev.dots(len, d.all(), d.all()));
    }

    fn add_products(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &mut Tangent<T>,
        _: bool,
        cross: &mut [f64],
        square: &mut [f64],
    ) {
        let (len, Some(d), Some(dd)) = (self.len(cx), &tape.delta, &mut tangent.delta) else { return };
        cx.mask(dd, self.table, len);
        add_to(cross, cx.dev.dots(len, d.all(), dd.all()));
        add_to(square, cx.dev.dots(len, dd.all(), dd.all()));
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Buf<T>, out: &mut Buf<T>) {
        if let Some(d) = &tape.delta {
            cx.dev.add_weighted_sum(weights.all(), d.all(), out, self.table);
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
        let (delta, row) = match tangent {
            None => (&tape.delta, at.record),
            Some(tan) => (&tan.delta, at.row),
        };
        let (len, Some(delta)) = (at.length * self.width, delta) else { return };
        for (o, d) in out[self.table..].iter_mut().zip(&dev.download(delta)[row * len..][..len]) {
            *o += d.to_f64();
        }
    }
}
