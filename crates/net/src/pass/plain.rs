//! The gradient of a batch as training in the open needs it: no norms of records, and nothing is kept behind the backward pass.
//! What clipping costs is measured against it.

use super::values::Back;
use crate::{
    Real,
    data::Batch,
    device::{Buf, Device},
    error::Result,
    network::{Network, Op},
};

impl<T: Real> Network<T> {
    /// Adds `Σᵢ gᵢ` of a batch; returns the loss of every record.
    pub(crate) fn add_gradient(
        &self,
        dev: &mut Device<T>,
        batch: Batch<'_, T>,
        out: &mut Buf<T>,
    ) -> Result<Vec<f64>> {
        let Batch { records: numbers, length, x, y, weights } = batch;
        let records = numbers.len();
        let mut cx = self.context(dev, records, length);
        let (x, mut embedded) = self.embed(&mut cx, x);
        let (outputs, mut tapes) = self.forward(&mut cx, x, self.nodes.len());
        let loss_kind = (self.loss(), self.outputs());
        let (delta, loss) = dev.loss(loss_kind, outputs.all(), (y, weights), records, false);
        dev.put(outputs);
        // a backward pass carries δ in the record's own unit
        let units = &loss.units;
        let mut square = dev.scalars(records);
        let mut cx = self.context(dev, records, length);
        let mut back = Back::new(self.nodes.len(), delta);
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(i, _)| self.moves[i + 1]) {
            let Some(delta) = back.take(i + 1) else { continue };
            let mut tape = std::mem::take(&mut tapes[i]);
            let wanted = node.inputs.iter().any(|&v| self.moves[v]);
            let deltas: Vec<Buf<T>> = match &node.op {
                Op::Layer(layer) => layer.backward(&mut cx, &mut tape, delta, wanted).into_iter().collect(),
                Op::Join(join) => join.backward(&mut cx, &mut tape, delta),
            };
            if let (true, Op::Layer(layer)) = (node.trained, &node.op) {
                if !layer.sums_from_pair() {
                    layer.add_square(&mut cx, &mut tape, &mut square);
                }
                layer.add_weighted(&mut cx, &tape, units, out);
            }
            tape.recycle(cx.dev);
            for (&v, d) in node.inputs.iter().zip(deltas) {
                back.add(cx.dev, v, self.moves[v].then_some(d));
            }
        }
        if let (Some(embedding), Some(delta)) = (self.trained_embedding(), back.take(0)) {
            embedding.backward(&mut cx, &mut embedded, delta, &mut square);
            embedding.add_weighted(&mut cx, &embedded, units, out);
        }
        embedded.recycle(dev);
        tapes.into_iter().for_each(|t| t.recycle(dev));
        dev.download_scalars(&loss.losses)
    }
}
