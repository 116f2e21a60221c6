//! Nodes that read several others and have no parameters: the same four rules, over a list of inputs.
//!
//! | join | z | δ of input i | tangent of it |
//! |---|---|---|---|
//! | add | `Σ aᵢ` | `δ` | `δ̇` |
//! | multiply | `a ⊙ b` | `δ ⊙ b` | `δ̇ ⊙ b + δ ⊙ ḃ` |

use super::{Context, Tangent, Tape, Width};
use crate::{
    Real,
    device::{Buf, Device},
};

/// One join. Tangents that are zero are absent; at least one is there.
pub(crate) trait Join<T: Real>: std::fmt::Debug + Send + Sync {
    /// Values per record that a pass keeps, of sequences of this length.
    fn footprint(&self, length: usize) -> usize;

    fn forward(&self, cx: &mut Context<'_, T>, inputs: Vec<Buf<T>>, tape: &mut Tape<T>) -> Buf<T>;

    /// What comes back at every input.
    fn backward(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, delta: Buf<T>) -> Vec<Buf<T>>;

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        inputs: Vec<Option<Buf<T>>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>>;

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        tangent: &mut Tangent<T>,
    ) -> Vec<Buf<T>>;
}

/// The sum of so many inputs.
#[derive(Debug)]
pub(crate) struct Add {
    pub(crate) inputs: usize,
}

impl Add {
    fn sum<T: Real>(dev: &mut Device<T>, inputs: impl IntoIterator<Item = Buf<T>>) -> Option<Buf<T>> {
        inputs.into_iter().reduce(|mut sum, x| {
            dev.add(&mut sum, x.all());
            dev.put(x);
            sum
        })
    }

    fn same<T: Real>(&self, dev: &mut Device<T>, delta: Buf<T>) -> Vec<Buf<T>> {
        let mut all: Vec<Buf<T>> = (1..self.inputs).map(|_| dev.copy(delta.all())).collect();
        all.push(delta);
        all
    }
}

impl<T: Real> Join<T> for Add {
    fn footprint(&self, _: usize) -> usize {
        0
    }

    fn forward(&self, cx: &mut Context<'_, T>, inputs: Vec<Buf<T>>, _: &mut Tape<T>) -> Buf<T> {
        Self::sum(cx.dev, inputs).unwrap_or_default()
    }

    fn backward(&self, cx: &mut Context<'_, T>, _: &mut Tape<T>, delta: Buf<T>) -> Vec<Buf<T>> {
        self.same(cx.dev, delta)
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        _: &Tape<T>,
        inputs: Vec<Option<Buf<T>>>,
        _: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        Self::sum(cx.dev, inputs.into_iter().flatten())
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        _: &Tape<T>,
        delta: Buf<T>,
        _: &mut Tangent<T>,
    ) -> Vec<Buf<T>> {
        self.same(cx.dev, delta)
    }
}

/// The product of two inputs of so many values per record. The tape keeps `[a, b]` and δ, a tangent `[ȧ, ḃ]`.
#[derive(Debug)]
pub(crate) struct Multiply {
    pub(crate) width: Width,
}

impl<T: Real> Join<T> for Multiply {
    fn footprint(&self, length: usize) -> usize {
        3 * self.width.at(length)
    }

    fn forward(&self, cx: &mut Context<'_, T>, inputs: Vec<Buf<T>>, tape: &mut Tape<T>) -> Buf<T> {
        let mut z = cx.dev.copy(inputs[0].all());
        cx.dev.mul(&mut z, inputs[1].all());
        tape.kept = inputs;
        z
    }

    fn backward(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, delta: Buf<T>) -> Vec<Buf<T>> {
        let back = [1, 0].map(|other| {
            let mut d = cx.dev.copy(delta.all());
            cx.dev.mul(&mut d, tape.kept[other].all());
            d
        });
        tape.delta = Some(delta);
        back.into()
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        inputs: Vec<Option<Buf<T>>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let len = inputs.iter().flatten().next()?.len();
        let mut z = cx.dev.zeros(len);
        for (moved, other) in inputs.iter().zip([1, 0]) {
            if let Some(moved) = moved {
                cx.dev.add_product(&mut z, moved.all(), tape.kept[other].all());
            }
        }
        tangent.kept = inputs;
        Some(z)
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        tangent: &mut Tangent<T>,
    ) -> Vec<Buf<T>> {
        let back = [1, 0].map(|other| {
            let mut d = cx.dev.copy(delta.all());
            cx.dev.mul(&mut d, tape.kept[other].all());
            if let (Some(Some(moved)), Some(delta)) = (tangent.kept.get(other), &tape.delta) {
                cx.dev.add_product(&mut d, moved.all(), delta.all());
            }
            d
        });
        cx.dev.put(delta);
        back.into()
    }
}
