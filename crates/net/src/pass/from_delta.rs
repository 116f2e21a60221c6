//! Passes that start from a given δ at the outputs in the place of a loss: for networks whose outputs enter an objective of
//! their own, here what is added to gradients ([`crate::perturb`]).

use super::{Primal, TangentPass, values::Back};
use crate::{
    Loss, Real,
    data::{Batch, Input},
    device::{Buf, Device, Products, Target},
    layer::{Moving, Tangent, Tape},
    network::{Network, Op},
};

impl<T: Real> Network<T> {
    /// The outputs of records `(records, d)` on the device.
    pub(crate) fn outputs_at(&self, dev: &mut Device<T>, x: Buf<T>, records: &[usize]) -> Buf<T> {
        let y = Target::Classes(dev.upload_index(&[]));
        self.outputs_of(dev, Batch { records, length: 1, x: Input::Values(x), y, weights: None })
    }

    /// The way forward of records `(records, d)`, from which tangents of the outputs can be taken.
    pub(crate) fn primal_of(&self, dev: &mut Device<T>, x: Buf<T>, records: usize) -> Primal<T> {
        let values = x.len() / records.max(1);
        let mut cx = self.context(dev, records, 1);
        let (outputs, tapes) = self.forward(&mut cx, x, self.nodes.len());
        // squared error from the outputs themselves: its units are 1
        let target = Target::Vectors(dev.copy(outputs.all()));
        let loss_kind = (Loss::SquaredError, self.outputs());
        let (zero, loss) = dev.loss(loss_kind, outputs.all(), (target, None), records, true);
        dev.put(zero);
        let (square, embedded) = (dev.scalars(records), Tape::default());
        Primal { records, length: 1, values, tapes, embedded, loss, outputs, square }
    }

    /// A primal pass over records `(records, d)` whose δ at the outputs is given, `(records, outputs)`: its gradient is
    /// `∇_θ δᵀz`, and what comes back at the records is `∇ₓ δᵀz`.
    pub(crate) fn primal_from(
        &self,
        dev: &mut Device<T>,
        x: Buf<T>,
        records: usize,
        delta: Buf<T>,
    ) -> (Primal<T>, Buf<T>) {
        let mut primal = self.primal_of(dev, x, records);
        let mut cx = self.context(dev, records, 1);
        let mut back = Back::new(self.nodes.len(), delta);
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let (Some(delta), tape) = (back.take(i + 1), &mut primal.tapes[i]) else { continue };
            let deltas: Vec<Buf<T>> = match &node.op {
                Op::Layer(layer) => layer.backward(&mut cx, tape, delta, true).into_iter().collect(),
                Op::Join(join) => join.backward(&mut cx, tape, delta),
            };
            if let (true, Op::Layer(layer)) = (node.trained, &node.op) {
                layer.add_square(&mut cx, tape, &mut primal.square);
            }
            for (&v, d) in node.inputs.iter().zip(deltas) {
                back.add(cx.dev, v, Some(d));
            }
        }
        let input = back.take(0).unwrap_or_else(|| dev.zeros(records * primal.values));
        (primal, input)
    }

    /// The tangent of the outputs, `(records, outputs)`, in the direction of tangents of the records.
    pub(crate) fn outputs_along(&self, dev: &mut Device<T>, primal: &Primal<T>, x_dot: Buf<T>) -> Buf<T> {
        let (z, tangents) = self.tangent_forward(dev, primal, Some(x_dot), None);
        tangents.into_iter().for_each(|t| t.recycle(dev));
        z.unwrap_or_else(|| dev.zeros(primal.outputs.len()))
    }

    /// The tangent of the gradient of [`Network::primal_from`] in the direction of tangents of the records, δ held fixed.
    pub(crate) fn tangent_from(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        x_dot: Buf<T>,
    ) -> TangentPass<T> {
        let rows = primal.records;
        let mut sums = Products { cross: dev.scalars(rows), square: dev.scalars(rows), keep: true };
        let (z, mut tangents) = self.tangent_forward(dev, primal, Some(x_dot), None);
        dev.put_some(z);
        let still = dev.zeros(primal.outputs.len());
        let wanted = |v: usize| self.moves[v];
        self.tangent_backward(dev, primal, still, None, &mut tangents, wanted, |cx, i, tangent| {
            if let (true, Op::Layer(layer)) = (self.nodes[i].trained, &self.nodes[i].op) {
                let at = Moving { tape: &primal.tapes[i], tangent, direction: None };
                layer.add_products(cx, at, &mut sums);
            }
        });
        let Products { cross, square, .. } = sums;
        TangentPass { tangents, embedded: Tangent::default(), cross, square }
    }
}
