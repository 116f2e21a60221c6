//! Pooling. A GPU computes an activation and the average pool behind it at once ([`Pool::Activated`]). All kinds are linear in the input (the maximum wherever the choice does not change), so tangents take the
//! same road as values.

use super::{Context, Flow, Layer, Moving, Tape};
use crate::{
    Activation, Real,
    device::{Buf, Pooling},
    shape::{Adaptive, Window},
};

/// What is made of the values under a window.
#[derive(Debug)]
pub(crate) enum Pool {
    /// Their mean.
    Average(Window),
    /// The mean of an activation, which the layer before computes on the processor and this one on a GPU.
    Activated(Pooling),
    /// The largest.
    Max(Window),
    /// Their mean, with windows that follow from the output.
    Adaptive(Adaptive),
}

impl Pool {
    /// Values of an image before and after.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::Average(w) | Self::Max(w) | Self::Activated(Pooling { window: w, .. }) => {
                (w.image(), w.positions() * w.channels)
            }
            Self::Adaptive(a) => (a.image(), a.pooled()),
        }
    }

    fn down<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, x: Buf<T>) -> Buf<T> {
        let (image, pooled) = self.sizes();
        let mut y = cx.dev.take(x.len() / image * pooled);
        match (self, &tape.index) {
            (Self::Max(window), Some(index)) => cx.dev.gather(window, index, x.all(), &mut y),
            (Self::Average(window) | Self::Max(window) | Self::Activated(Pooling { window, .. }), _) => {
                cx.dev.average_pool(window, x.all(), &mut y);
            }
            (Self::Adaptive(pool), _) => cx.dev.adaptive_pool(pool, x.all(), &mut y),
        }
        cx.dev.put(x);
        y
    }

    fn up<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, delta: Buf<T>) -> Buf<T> {
        let (image, pooled) = self.sizes();
        let mut y = cx.dev.take(delta.len() / pooled * image);
        match (self, &tape.index) {
            (Self::Max(window), Some(index)) => cx.dev.scatter(window, index, delta.all(), &mut y),
            (Self::Average(window) | Self::Max(window) | Self::Activated(Pooling { window, .. }), _) => {
                cx.dev.average_unpool(window, delta.all(), &mut y);
            }
            (Self::Adaptive(pool), _) => cx.dev.adaptive_unpool(pool, delta.all(), &mut y),
        }
        cx.dev.put(delta);
        y
    }
}

impl<T: Real> Layer<T> for Pool {
    fn footprint(&self, _: usize) -> usize {
        self.sizes().0
    }

    fn take_activation(&mut self, activation: Activation) -> bool {
        let Self::Average(window) = *self else { return false };
        let both = Pooling { activation, window };
        if both.fits() {
            *self = Self::Activated(both);
        }
        both.fits()
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        if let Self::Activated(both) = self
            && let Some(y) = cx.dev.far_activate_pool(both, &x, None)
        {
            tape.input = Some(x);
            return y;
        }
        tape.index = match self {
            Self::Max(window) => Some(cx.dev.max_index(window, x.all())),
            Self::Average(_) | Self::Activated(_) | Self::Adaptive(_) => None,
        };
        self.down(cx, tape, x)
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        if let (Self::Activated(both), Some(z)) = (self, &tape.input) {
            let back = cx.dev.far_activate_unpool(both, z, &delta, None);
            tape.delta = Some(delta);
            return back;
        }
        Some(self.up(cx, tape, delta))
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        let x = x?;
        if let (Self::Activated(both), Some(z)) = (self, &tape.input) {
            let moved = cx.dev.far_activate_pool(both, z, Some(&x));
            tangent.input = Some(x);
            return moved;
        }
        Some(self.down(cx, tape, x))
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        _: bool,
    ) -> Flow<T> {
        let Moving { tape, tangent, .. } = at;
        if let (Self::Activated(both), Some(z)) = (self, &tape.input) {
            let curved = tape.delta.as_ref().zip(tangent.input.as_ref());
            let curved = curved.filter(|_| both.activation.is_curved());
            return cx.dev.far_activate_unpool(both, z, &delta, curved);
        }
        Some(self.up(cx, tape, delta))
    }
}
