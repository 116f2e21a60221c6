//! One way forward and one way back of tangents: what the tangent and the adjoint pass are made of.

use super::{
    EMBEDDING, Primal,
    values::{Back, Values},
};
use crate::{
    Real,
    device::{Buf, Device},
    layer::{Context, Direction, Embedding, Moving, Tangent},
    network::{Network, Op},
};

impl<T: Real> Network<T> {
    /// Tangents of all values, and of the outputs, for a tangent of the records or a direction of the parameters.
    pub(super) fn tangent_forward<'d>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        x: Option<Buf<T>>,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
    ) -> (Option<Buf<T>>, Vec<Tangent<T>>)
    where
        T: 'd,
    {
        let mut cx = self.context(dev, primal.records, primal.length);
        let mut tangents: Vec<Tangent<T>> = Vec::with_capacity(self.nodes.len());
        let x = match (direction.and_then(|d| d(EMBEDDING)), &self.embedding) {
            (Some(dir), Some(embedding)) => {
                let mut moved = embedding.along(&mut cx, &primal.embedded, &dir);
                if self.tied.is_some() {
                    embedding.along_output(&mut cx, &primal.embedded, &dir, &mut moved);
                }
                Some(moved)
            }
            _ => x,
        };
        let mut values = Values::new(&self.readers, x);
        for (i, node) in self.nodes.iter().enumerate() {
            let (mut tangent, tape) = (Tangent::default(), &primal.tapes[i]);
            let mut read = node.inputs.iter().map(|&v| values.read(cx.dev, v));
            let z = match &node.op {
                Op::Layer(layer) => {
                    let (x, dir) = (read.next().flatten(), direction.and_then(|d| d(i)));
                    let at = Moving { tape, tangent: &mut tangent, direction: dir.as_ref() };
                    let mut z = layer.tangent_forward(&mut cx, at, x);
                    if let Some((embedding, dir)) = self.tie(i, direction)
                        && let Some(z) = &mut z
                    {
                        embedding.tied_forward(&mut cx, &primal.embedded, &dir, tape, z);
                    }
                    z
                }
                Op::Join(join) => {
                    let inputs: Vec<Option<Buf<T>>> = read.collect();
                    let still = inputs.iter().all(Option::is_none);
                    if still { None } else { join.tangent_forward(&mut cx, tape, inputs, &mut tangent) }
                }
            };
            values.push(z);
            tangents.push(tangent);
        }
        (values.into_last(cx.dev, self.nodes.len()), tangents)
    }

    /// Back to the values that are `wanted`; returns what comes back at the record.
    #[allow(clippy::too_many_arguments)] // the state of one pass
    pub(super) fn tangent_backward<'d>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        delta: Buf<T>,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
        tangents: &mut [Tangent<T>],
        wanted: impl Fn(usize) -> bool,
        mut visit: impl FnMut(&mut Context<'_, T>, usize, &mut Tangent<T>),
    ) -> Option<Buf<T>>
    where
        T: 'd,
    {
        let mut cx = self.context(dev, primal.records, primal.length);
        let mut back = Back::new(self.nodes.len(), delta);
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(i, _)| wanted(i + 1)) {
            let (Some(delta), tape, tangent) = (back.take(i + 1), &primal.tapes[i], &mut tangents[i]) else {
                continue;
            };
            let input = node.inputs.iter().any(|&v| wanted(v));
            let deltas = match &node.op {
                Op::Layer(layer) => {
                    let dir = direction.and_then(|d| d(i));
                    let at = Moving { tape, tangent: &mut *tangent, direction: dir.as_ref() };
                    let mut d = layer.tangent_backward(&mut cx, at, delta, input);
                    if let Some((embedding, dir)) = self.tie(i, direction)
                        && let Some(d) = &mut d
                    {
                        embedding.tied_backward(&mut cx, &primal.embedded, &dir, tape, d);
                    }
                    d.into_iter().collect()
                }
                Op::Join(join) => join.tangent_backward(&mut cx, tape, delta, tangent),
            };
            visit(&mut cx, i, tangent);
            for (&v, d) in node.inputs.iter().zip(deltas) {
                back.add(cx.dev, v, wanted(v).then_some(d));
            }
        }
        back.take(0)
    }

    /// The embedding and a direction of its table, where a node shares it.
    fn tie<'d>(
        &self,
        node: usize,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
    ) -> Option<(&Embedding, Direction<'d, T>)> {
        let embedding = self.embedding.as_ref().filter(|_| self.tied == Some(node))?;
        Some((embedding, direction?(EMBEDDING)?))
    }
}
