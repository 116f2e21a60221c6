//! A convolution in groups: the channels of the input and of the output fall into G groups, and every group has a
//! convolution of its own. Parameters of groups are disjoint, so norms and products of gradients add up.

#[cfg(test)]
use super::Single;
use super::{Context, Direction, Flow, Layer, Linear, Moving, Own, Tangent, Tape, Tensor};
#[cfg(test)]
use crate::device::Device;
use crate::{
    Real,
    device::{Buf, Products, Scalars},
};

/// The convolutions of the groups, in order. Their weights follow one another, so that together they are one tensor
/// `[outputs, height, width, channels/G]`.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(crate) groups: Vec<Linear>,
    /// Channels of the input, of all groups.
    pub(crate) channels: usize,
}

impl Grouped {
    fn inputs(&self) -> usize {
        self.channels / self.groups.len()
    }

    fn outputs(&self) -> usize {
        self.groups.first().map_or(0, |g| g.outputs)
    }

    /// The channels of one group.
    fn part<T: Real>(&self, cx: &mut Context<'_, T>, x: &Buf<T>, width: usize, group: usize) -> Buf<T> {
        let mut part = cx.dev.take(x.len() / self.groups.len());
        cx.dev.take_channels(width * self.groups.len(), group * width, width, x.all(), &mut part);
        part
    }

    /// Puts what groups return side by side; absent where they return nothing.
    fn join<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        parts: Vec<Option<Buf<T>>>,
        width: usize,
    ) -> Option<Buf<T>> {
        let len = parts.iter().flatten().next()?.len();
        let mut all = cx.dev.zeros(len * self.groups.len());
        for (group, part) in parts.into_iter().enumerate() {
            if let Some(part) = part {
                cx.dev.put_channels(width * self.groups.len(), group * width, width, part.all(), &mut all);
                cx.dev.put(part);
            }
        }
        Some(all)
    }

    /// A direction as one group sees it: the tangents of its own.
    fn direction<'a, T: Real>(
        direction: Option<&Direction<'a, T>>,
        group: usize,
    ) -> Option<Direction<'a, T>> {
        let own = |own: Own<'a, T>| Own { tangent: own.tangent.and_then(|t| t.parts.get(group)), ..own };
        direction.map(|d| match *d {
            Direction::Own(o) => Direction::Own(own(o)),
            Direction::Shared(s) => Direction::Shared(s),
            Direction::Sum(o, s) => Direction::Sum(own(o), s),
        })
    }
}

impl<T: Real> Layer<T> for Grouped {
    fn tensors(&self) -> Vec<Tensor> {
        let Some(first) = self.groups.first() else { return Vec::new() };
        let each: Vec<Tensor> = Layer::<T>::tensors(first);
        let all = |mut t: Tensor| {
            t.shape[0] *= self.groups.len();
            t
        };
        each.into_iter().map(all).collect()
    }

    fn pieces(&self) -> Vec<(usize, usize)> {
        self.groups.iter().flat_map(Layer::<T>::pieces).collect()
    }

    fn set_masked(&mut self) {
        self.groups.iter_mut().for_each(Layer::<T>::set_masked);
    }

    fn footprint(&self, length: usize) -> usize {
        self.groups.iter().map(|g| Layer::<T>::footprint(g, length)).sum()
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        let mut parts = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let part = self.part(cx, &x, self.inputs(), i);
            let mut own = Tape::default();
            parts.push(Some(group.forward(cx, part, &mut own)));
            tape.parts.push(own);
        }
        let z = self.join(cx, parts, self.outputs());
        match z {
            Some(z) => {
                cx.dev.put(x);
                z
            }
            None => x,
        }
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        input: bool,
    ) -> Option<Buf<T>> {
        let mut parts = Vec::new();
        for (i, (group, own)) in self.groups.iter().zip(&mut tape.parts).enumerate() {
            let part = self.part(cx, &delta, self.outputs(), i);
            parts.push(group.backward(cx, own, part, input));
        }
        cx.dev.put(delta);
        self.join(cx, parts, self.inputs())
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, tangent, direction } = at;
        let mut parts = Vec::new();
        for (i, (group, own)) in self.groups.iter().zip(&tape.parts).enumerate() {
            let part = x.as_ref().map(|x| self.part(cx, x, self.inputs(), i));
            let dir = Self::direction(direction, i);
            let mut moved = Tangent::default();
            let at = Moving { tape: own, tangent: &mut moved, direction: dir.as_ref() };
            parts.push(group.tangent_forward(cx, at, part));
            tangent.parts.push(moved);
        }
        cx.dev.put_some(x);
        self.join(cx, parts, self.outputs())
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        input: bool,
    ) -> Flow<T> {
        let Moving { tape, tangent, direction } = at;
        let mut parts = Vec::new();
        for (i, group) in self.groups.iter().enumerate() {
            let part = self.part(cx, &delta, self.outputs(), i);
            let dir = Self::direction(direction, i);
            let (tape, tangent) = (&tape.parts[i], &mut tangent.parts[i]);
            let at = Moving { tape, tangent, direction: dir.as_ref() };
            parts.push(group.tangent_backward(cx, at, part, input));
        }
        cx.dev.put(delta);
        self.join(cx, parts, self.inputs())
    }

    fn add_square(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, square: &mut Scalars) {
        for (group, own) in self.groups.iter().zip(&mut tape.parts) {
            group.add_square(cx, own, square);
        }
    }

    fn add_products(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, sums: &mut Products) {
        let Moving { tape, tangent, .. } = at;
        for ((group, own), moved) in self.groups.iter().zip(&tape.parts).zip(&mut tangent.parts) {
            group.add_products(cx, Moving { tape: own, tangent: moved, direction: None }, sums);
        }
    }

    fn add_weighted(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, weights: &Scalars, out: &mut Buf<T>) {
        for (group, own) in self.groups.iter().zip(&tape.parts) {
            group.add_weighted(cx, own, weights, out);
        }
    }

    fn add_weighted_tangent(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &Tangent<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        for (group, (own, moved)) in self.groups.iter().zip(tape.parts.iter().zip(&tangent.parts)) {
            group.add_weighted_tangent(cx, own, moved, weights, out);
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
        for (i, group) in self.groups.iter().enumerate() {
            let moved = tangent.map(|t| &t.parts[i]);
            group.materialise(dev, &tape.parts[i], moved, at, out);
        }
    }
}
