//! Pooling. All kinds are linear in the input (the maximum wherever the choice does not change), so tangents take the
//! same road as values.

use super::{Context, Flow, Layer, Moving, Tape};
use crate::{
    Real,
    device::Buf,
    shape::{Adaptive, Window},
};

/// What is made of the values under a window.
#[derive(Debug)]
pub(crate) enum Pool {
    /// Their mean.
    Average(Window),
    /// The largest.
    Max(Window),
    /// Their mean, with windows that follow from the output.
    Adaptive(Adaptive),
}

impl Pool {
    /// Values of an image before and after.
    fn sizes(&self) -> (usize, usize) {
        match self {
            Self::Average(w) | Self::Max(w) => (w.image(), w.positions() * w.channels),
            Self::Adaptive(a) => (a.image(), a.pooled()),
        }
    }

    fn down<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, x: Buf<T>) -> Buf<T> {
        let (image, pooled) = self.sizes();
        let mut y = cx.dev.take(x.len() / image * pooled);
        match (self, &tape.index) {
            (Self::Max(window), Some(index)) => cx.dev.gather(window, index, x.all(), &mut y),
            (Self::Average(window) | Self::Max(window), _) => cx.dev.average_pool(window, x.all(), &mut y),
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
            (Self::Average(window) | Self::Max(window), _) => {
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

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        tape.index = match self {
            Self::Max(window) => Some(cx.dev.max_index(window, x.all())),
            Self::Average(_) | Self::Adaptive(_) => None,
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
        Some(self.up(cx, tape, delta))
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, .. } = at;
        x.map(|x| self.down(cx, tape, x))
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        _: bool,
    ) -> Flow<T> {
        let Moving { tape, .. } = at;
        Some(self.up(cx, tape, delta))
    }
}
