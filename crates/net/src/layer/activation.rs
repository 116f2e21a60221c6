//! Activations: `z = φ(a)`, so `ż = φ'(a) ȧ` and the tangent of `φ'(a) δ` is `φ'(a) δ̇ + φ''(a) δ ȧ`. The processor keeps φ'
//! and φ''·δ; a GPU keeps a and δ, and computes the derivatives again.

use super::{Context, Flow, Layer, Moving, Tape, Width};
use crate::{Activation, Real, device::Buf};

/// An activation over so many values per record.
#[derive(Debug)]
pub(crate) struct Nonlinear {
    pub(crate) kind: Activation,
    pub(crate) width: Width,
    /// Whether the layer behind it computes it too, on a GPU: values pass through.
    pub(crate) deferred: bool,
}

impl<T: Real> Layer<T> for Nonlinear {
    fn activation(&self) -> Option<Activation> {
        Some(self.kind)
    }

    fn defer(&mut self) {
        self.deferred = true;
    }

    fn footprint(&self, length: usize) -> usize {
        3 * self.width.at(length)
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        if self.deferred && cx.dev.is_far() {
            return x;
        }
        if let Some(y) = cx.dev.far_activate(self.kind, &x) {
            tape.input = Some(x);
            return y;
        }
        let (mut d1, mut d2) = (cx.dev.take(x.len()), cx.dev.take(x.len()));
        cx.dev.activate(self.kind, &mut x, &mut d1, &mut d2);
        (tape.first, tape.second) = (Some(d1), Some(d2));
        x
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        mut delta: Buf<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        if self.deferred && cx.dev.is_far() {
            return Some(delta);
        }
        if let Some(z) = &tape.input {
            let back = cx.dev.far_slope(self.kind, z, &delta);
            tape.delta = Some(delta);
            return back;
        }
        if let (Some(d1), Some(d2)) = (&tape.first, &mut tape.second) {
            cx.dev.mul(d2, delta.all());
            cx.dev.mul(&mut delta, d1.all());
        }
        Some(delta)
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        let x = x?;
        if self.deferred && cx.dev.is_far() {
            return Some(x);
        }
        if let Some(z) = &tape.input {
            let moved = cx.dev.far_slope(self.kind, z, &x);
            tangent.input = Some(x);
            return moved;
        }
        let mut z = cx.dev.copy(x.all());
        if let Some(d1) = &tape.first {
            cx.dev.mul(&mut z, d1.all());
        }
        tangent.input = Some(x);
        Some(z)
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        mut delta: Buf<T>,
        _: bool,
    ) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        if self.deferred && cx.dev.is_far() {
            return Some(delta);
        }
        if let Some(z) = &tape.input {
            return match (&tangent.input, &tape.delta) {
                (Some(z_dot), Some(d)) if self.kind.is_curved() => {
                    cx.dev.far_bend(self.kind, (z, d), z_dot, &delta)
                }
                _ => cx.dev.far_slope(self.kind, z, &delta),
            };
        }
        if let Some(d1) = &tape.first {
            match (&tangent.input, &tape.second) {
                (Some(z), Some(e)) if self.kind.is_curved() => {
                    cx.dev.mul_add(&mut delta, d1.all(), e.all(), z.all());
                }
                _ => cx.dev.mul(&mut delta, d1.all()),
            }
        }
        Some(delta)
    }
}
