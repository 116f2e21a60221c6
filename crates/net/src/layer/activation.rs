//! Activations: `z = φ(a)`, so `ż = φ'(a) ȧ` and the tangent of `φ'(a) δ` is `φ'(a) δ̇ + φ''(a) δ ȧ`.

use super::{Context, Flow, Layer, Moving, Tape, Width};
use crate::{Activation, Real, device::Buf};

/// An activation over so many values per record.
#[derive(Debug)]
pub(crate) struct Nonlinear {
    pub(crate) kind: Activation,
    pub(crate) width: Width,
}

impl<T: Real> Layer<T> for Nonlinear {
    fn footprint(&self, length: usize) -> usize {
        3 * self.width.at(length)
    }

    fn forward(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
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
        if let (Some(d1), Some(d2)) = (&tape.first, &mut tape.second) {
            cx.dev.mul(d2, delta.all());
            cx.dev.mul(&mut delta, d1.all());
        }
        Some(delta)
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        let x = x?;
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
