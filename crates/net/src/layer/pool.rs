//! Pooling. Both kinds are linear in the input (the maximum wherever the choice does not change), so tangents
//! take the same road as values.

use super::{Context, Direction, Layer, Tangent, Tape};
use crate::{Real, device::Buf, shape::Window};

/// Average or maximum under a window.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) window: Window,
    pub(crate) max: bool,
}

impl Pool {
    fn down<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, x: Buf<T>) -> Buf<T> {
        let images = x.len() / self.window.image();
        let mut y = cx.dev.take(images * self.window.positions() * self.window.channels);
        match &tape.index {
            Some(index) => cx.dev.gather(&self.window, index, x.all(), &mut y),
            None => cx.dev.average_pool(&self.window, x.all(), &mut y),
        }
        cx.dev.put(x);
        y
    }

    fn up<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, delta: Buf<T>) -> Buf<T> {
        let images = delta.len() / (self.window.positions() * self.window.channels);
        let mut y = cx.dev.take(images * self.window.image());
        match &tape.index {
            Some(index) => cx.dev.scatter(&self.window, index, delta.all(), &mut y),
            None => cx.dev.average_unpool(&self.window, delta.all(), &mut y),
        }
        cx.dev.put(delta);
        y
    }
}

impl<T: Real> Layer<T> for Pool {
    fn footprint(&self) -> usize {
        self.window.image()
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        tape.index = self.max.then(|| cx.dev.max_index(&self.window, x.all()));
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

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        x: Option<Buf<T>>,
        _: Option<&Direction<'_, T>>,
        _: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        x.map(|x| self.down(cx, tape, x))
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        _: Option<&Direction<'_, T>>,
        _: &mut Tangent<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        Some(self.up(cx, tape, delta))
    }
}
