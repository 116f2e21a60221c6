//! The three passes over a batch, for any graph of layers: primal (forward, backward, norms), tangent (the same in
//! a direction of the record) and adjoint (in a direction of the parameters, back to the record). Nodes are visited in
//! their order, and backwards in its reverse.

mod from_delta;
mod moving;
mod plain;
mod shift;
mod statistics;
mod values;

pub(crate) use shift::Shift;
use values::{Back, Values};

use crate::{
    Real,
    data::{Batch, Input, Label},
    device::{Buf, Device, LossTape, Mark, Products, Pulled, Scalars},
    error::{Error, Result},
    layer::{Context, Direction, Draws, Embedding, Moving, Own, Shared, Tangent, Tape},
    network::{Network, Op},
};

/// In the place of a node: the embedding, which stands before them.
const EMBEDDING: usize = usize::MAX;

/// Everything the primal pass leaves.
#[derive(Debug)]
pub(crate) struct Primal<T> {
    pub(crate) records: usize,
    /// Positions of every record.
    pub(crate) length: usize,
    /// Values of one record that tangents are of.
    pub(crate) values: usize,
    /// What comes back in them is in units of [`LossTape::units`].
    pub(crate) tapes: Vec<Tape<T>>,
    /// What the embedding keeps.
    embedded: Tape<T>,
    pub(crate) loss: LossTape<T>,
    /// Outputs z, `(records, outputs)`, or as many rows for a record as it has positions.
    pub(crate) outputs: Buf<T>,
    /// `‖g‖²` of every record over the trained parameters.
    pub(crate) square: Scalars,
}

/// A direction of the parameters that is every record's own: `α ġ + β g`, ġ that of a tangent pass made with `keep`.
#[derive(Debug)]
pub(crate) struct OwnDirection<'a, T> {
    pub(crate) tangent: Option<&'a TangentPass<T>>,
    pub(crate) alpha: &'a Scalars,
    pub(crate) beta: &'a Scalars,
}

/// A direction of the parameters that is the same array for all records, or an array for each ([`Network::interleaved`]),
/// times a number for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedDirection<'a, T> {
    pub(crate) array: &'a Buf<T>,
    /// How many arrays: 1, or one for each record.
    pub(crate) copies: usize,
    pub(crate) weights: &'a Scalars,
}

/// What a tangent pass leaves.
#[derive(Debug)]
pub(crate) struct TangentPass<T> {
    tangents: Vec<Tangent<T>>,
    embedded: Tangent<T>,
    /// `g·ġ`, probe-major.
    pub(crate) cross: Scalars,
    /// `‖ġ‖²`, probe-major.
    pub(crate) square: Scalars,
}

impl<T: Real> Primal<T> {
    /// `‖g‖` and the loss of every record of a batch, both finite.
    pub(crate) fn norms(&self, dev: &Device<T>, records: &[usize]) -> Result<(Vec<f64>, Vec<f64>)> {
        self.norms_at(dev, records, None)
    }

    /// The same while a GPU goes on with what was queued after a mark, which is behind this pass.
    pub(crate) fn norms_at(
        &self,
        dev: &Device<T>,
        records: &[usize],
        mark: Option<&Mark>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let squares = dev.download_scalars_at(&self.square, mark)?;
        let norms: Vec<f64> = squares.iter().map(|s| s.max(0.0).sqrt()).collect();
        let losses = dev.download_scalars_at(&self.loss.losses, mark)?;
        check_records(&norms, &losses, records)?;
        Ok((norms, losses))
    }

    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        self.tapes.into_iter().chain([self.embedded]).for_each(|t| t.recycle(dev));
        dev.put(self.outputs);
    }
}

/// Checks norms and losses of records: both finite.
pub(crate) fn check_records(norms: &[f64], losses: &[f64], records: &[usize]) -> Result<()> {
    match norms.iter().zip(losses).position(|(n, l)| !n.is_finite() || !l.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::NotFinite { subject: "the gradient of a record", position: records[i] }),
    }
}

impl<T: Real> TangentPass<T> {
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        self.tangents.into_iter().chain([self.embedded]).for_each(|t| t.recycle(dev));
    }
}

impl<T: Real> Network<T> {
    fn context<'a>(&'a self, dev: &'a mut Device<T>, records: usize, length: usize) -> Context<'a, T> {
        let (theta, constants, mask) = (&self.theta, &self.constants, self.mask.as_ref());
        Context { dev, theta, constants, mask, records, length, dropout: None }
    }

    /// Outputs of a batch, and nothing kept.
    pub(crate) fn outputs_of(&self, dev: &mut Device<T>, batch: Batch<'_, T>) -> Buf<T> {
        self.value_of(dev, batch, self.nodes.len())
    }

    /// What reaches a node, its first input.
    pub(crate) fn values_before(&self, dev: &mut Device<T>, batch: Batch<'_, T>, node: usize) -> Buf<T> {
        self.value_of(dev, batch, self.nodes[node].inputs[0])
    }

    /// The value of a number: 0 is the record, i + 1 what node i returns.
    pub(crate) fn value_of(&self, dev: &mut Device<T>, batch: Batch<'_, T>, value: usize) -> Buf<T> {
        let mut cx = self.context(dev, batch.records.len(), batch.length);
        let (x, embedded) = self.embed(&mut cx, batch.x);
        let (z, tapes) = self.forward(&mut cx, x, value);
        tapes.into_iter().chain([embedded]).for_each(|t| t.recycle(dev));
        z
    }

    /// The values of the records, and what the embedding keeps where they are tokens.
    fn embed(&self, cx: &mut Context<'_, T>, input: Input<T>) -> (Buf<T>, Tape<T>) {
        let mut tape = Tape::default();
        let x = match (input, &self.embedding) {
            (Input::Values(x), _) => x,
            (Input::Tokens(tokens), Some(embedding)) => embedding.forward(cx, tokens, &mut tape),
            #[cfg(test)]
            (Input::Moved(tokens, x), Some(embedding)) => {
                embedding.forward(cx, tokens, &mut tape);
                x
            }
            // data are checked against the network before
            (_, None) => Buf::default(),
        };
        (x, tape)
    }

    /// The value of a number, from the values of the records.
    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, value: usize) -> (Buf<T>, Vec<Tape<T>>) {
        let mut tapes: Vec<Tape<T>> = Vec::with_capacity(self.nodes.len());
        let mut values = Values::new(&self.readers, Some(x));
        for node in &self.nodes[..value] {
            let mut tape = Tape::default();
            let mut read = node.inputs.iter().map(|&v| values.read(cx.dev, v).unwrap_or_default());
            let z = match &node.op {
                Op::Layer(layer) => {
                    let x = read.next().unwrap_or_default();
                    layer.forward(cx, x, &mut tape)
                }
                Op::Join(join) => {
                    let inputs = read.collect();
                    join.forward(cx, inputs, &mut tape)
                }
            };
            values.push(Some(z));
            tapes.push(tape);
        }
        (values.into_last(cx.dev, value).unwrap_or_default(), tapes)
    }

    /// Forward, backward and the norms. `label` says whether tangents of the labels will be asked for; `draws` are those
    /// of dropout in a training step, which the numbers of the records tell apart.
    pub(crate) fn primal(
        &self,
        dev: &mut Device<T>,
        batch: Batch<'_, T>,
        label: Label,
        draws: Option<Draws>,
    ) -> Primal<T> {
        let Batch { records: numbers, length, x, y, weights } = batch;
        let records = numbers.len();
        let dropout = draws.map(|d| (d, numbers));
        let mut cx = Context { dropout, ..self.context(dev, records, length) };
        let (x, mut embedded) = self.embed(&mut cx, x);
        let values = x.len() / records.max(1);
        let (outputs, mut tapes) = self.forward(&mut cx, x, self.nodes.len());
        let (loss_kind, moves) = ((self.loss(), self.outputs()), label == Label::Secret);
        let (delta, loss) = dev.loss(loss_kind, outputs.all(), (y, weights), records, moves);
        let mut square = dev.scalars(records);
        let mut cx = self.context(dev, records, length);
        let mut back = Back::new(self.nodes.len(), delta);
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(i, _)| self.moves[i + 1]) {
            let (Some(delta), tape) = (back.take(i + 1), &mut tapes[i]) else { continue };
            let wanted = node.inputs.iter().any(|&v| self.moves[v]);
            let deltas = match &node.op {
                Op::Layer(layer) => layer.backward(&mut cx, tape, delta, wanted).into_iter().collect(),
                Op::Join(join) => join.backward(&mut cx, tape, delta),
            };
            if let (true, Op::Layer(layer)) = (node.trained, &node.op) {
                layer.add_square(&mut cx, tape, &mut square);
            }
            for (&v, d) in node.inputs.iter().zip(deltas) {
                back.add(cx.dev, v, self.moves[v].then_some(d));
            }
        }
        if let (Some(embedding), Some(delta)) = (self.trained_embedding(), back.take(0)) {
            embedding.backward(&mut cx, &mut embedded, delta, &mut square);
            if let Some(output) = self.tied {
                embedding.add_tied_square(&mut cx, &mut embedded, &tapes[output], &mut square);
            }
        }
        dev.scale_squares(&loss.units, &mut square);
        Primal { records, length, values, tapes, embedded, loss, outputs, square }
    }

    fn trained_embedding(&self) -> Option<&Embedding> {
        self.embedding.as_ref().filter(|e| e.trained)
    }

    /// `Σᵢ wᵢ gᵢ` added to `out`, an array of all parameters.
    pub(crate) fn add_weighted(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let weights = dev.combined((weights, &primal.loss.units), None);
        let mut cx = self.context(dev, primal.records, primal.length);
        for (node, tape) in self.nodes.iter().zip(&primal.tapes).filter(|(n, _)| n.trained) {
            if let Op::Layer(layer) = &node.op {
                layer.add_weighted(&mut cx, tape, &weights, out);
            }
        }
        if let Some(embedding) = self.trained_embedding() {
            embedding.add_weighted(&mut cx, &primal.embedded, &weights, out);
        }
    }

    /// `Σᵢ wᵢ ġᵢ` added to `out`, ġ that of a tangent pass of one probe made with `keep`.
    pub(crate) fn add_weighted_tangent(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        pass: &TangentPass<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let weights = dev.combined((weights, &primal.loss.units), None);
        let mut cx = self.context(dev, primal.records, primal.length);
        for (i, node) in self.nodes.iter().enumerate().filter(|(_, n)| n.trained) {
            if let Op::Layer(layer) = &node.op {
                layer.add_weighted_tangent(&mut cx, &primal.tapes[i], &pass.tangents[i], &weights, out);
            }
        }
        if let Some(embedding) = self.trained_embedding() {
            embedding.add_weighted_tangent(&mut cx, &primal.embedded, &pass.embedded, &weights, out);
        }
    }

    /// The gradient in the direction of tangents of the records' values, `(probes·records, d)` probe-major, and of
    /// their labels, `(probes·records, outputs)`; either may be zero. With `keep` (one probe), the pass can be the
    /// direction of an [`Network::adjoint`].
    pub(crate) fn tangent(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        x_dot: Option<Buf<T>>,
        y_dot: Option<Buf<T>>,
        keep: bool,
    ) -> TangentPass<T> {
        let rows = match (&x_dot, &y_dot) {
            (Some(x), _) => x.len() / primal.values,
            (None, Some(y)) => y.len() / (primal.outputs.len() / primal.records),
            (None, None) => primal.records,
        };
        let mut sums = Products { cross: dev.scalars(rows), square: dev.scalars(rows), keep };
        let (z, mut tangents) = self.tangent_forward(dev, primal, x_dot, None);
        let delta = dev.loss_tangent(&primal.loss, primal.outputs.all(), z.as_ref(), y_dot.as_ref());
        dev.put_some(z);
        dev.put_some(y_dot);
        let wanted = |v: usize| self.moves[v];
        let back =
            self.tangent_backward(dev, primal, delta, None, &mut tangents, wanted, |cx, i, tangent| {
                if let (true, Op::Layer(layer)) = (self.nodes[i].trained, &self.nodes[i].op) {
                    layer.add_products(
                        cx,
                        Moving { tape: &primal.tapes[i], tangent, direction: None },
                        &mut sums,
                    );
                }
            });
        let mut embedded = Tangent::default();
        if let (Some(embedding), Some(delta)) = (self.trained_embedding(), back) {
            let mut cx = self.context(dev, primal.records, primal.length);
            let tape = &primal.embedded;
            embedding.tangent_backward(&mut cx, tape, delta, &mut embedded, &mut sums);
            if let Some(output) = self.tied {
                let layer = (&primal.tapes[output], &tangents[output]);
                embedding.add_tied_products(&mut cx, tape, &mut embedded, layer, &mut sums);
            }
        }
        let Products { mut cross, mut square, .. } = sums;
        for products in [&mut cross, &mut square] {
            dev.scale_squares(&primal.loss.units, products);
        }
        TangentPass { tangents, embedded, cross, square }
    }

    /// `Jᵀθ̇` per record for a direction of the parameters that is its own, shared, or the sum of the two: with respect
    /// to the record `(records, d)`, and to its label.
    pub(crate) fn adjoint<'a>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        own: Option<&OwnDirection<'a, T>>,
        shared: Option<&SharedDirection<'a, T>>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let pulled = self.pulled(dev, primal, own, shared);
        let out = pulled.download(dev)?;
        pulled.recycle(dev);
        Ok(out)
    }

    /// [`Network::adjoint`], left on the device.
    pub(crate) fn pulled<'a>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        own: Option<&OwnDirection<'a, T>>,
        shared: Option<&SharedDirection<'a, T>>,
    ) -> Pulled<T> {
        // θ̇ is carried in units m of its own, so that it neither leaves the range of the type nor its digits
        let c = &primal.loss.units;
        let mut m = dev.scalars(primal.records);
        if let Some(o) = own {
            dev.raise(o.alpha, Some(c), &mut m);
            dev.raise(o.beta, Some(c), &mut m);
        }
        if let Some(s) = shared {
            dev.raise(s.weights, None, &mut m);
        }
        dev.fill_zeros(&mut m);
        let scaled = |v: Option<&Scalars>| v.map(|v| dev.in_units(v, Some(c), &m)).unwrap_or_default();
        let (alpha, beta) = (scaled(own.map(|o| o.alpha)), scaled(own.map(|o| o.beta)));
        let weights = shared.map(|s| dev.in_units(s.weights, None, &m)).unwrap_or_default();
        let direction = |i: usize| {
            let tangent = |t: &'a TangentPass<T>| if i == EMBEDDING { &t.embedded } else { &t.tangents[i] };
            let own = own.map(|o| Own { tangent: o.tangent.map(tangent), alpha: &alpha, beta: &beta });
            let shared = shared.map(|s| Shared { array: s.array, copies: s.copies, weights: &weights });
            let trained = if i == EMBEDDING { self.moves[0] } else { self.nodes[i].trained };
            trained.then(|| Direction::of(own, shared)).flatten()
        };
        let (z, mut tangents) = self.tangent_forward(dev, primal, None, Some(&direction));
        let delta = dev.loss_tangent(&primal.loss, primal.outputs.all(), z.as_ref(), None);
        let label = match &z {
            Some(z) => dev.loss_label_tangent(&primal.loss, primal.outputs.all(), z),
            None => dev.zeros(primal.outputs.len()),
        };
        dev.put_some(z);
        let back = self.tangent_backward(
            dev,
            primal,
            delta,
            Some(&direction),
            &mut tangents,
            |_| true,
            |_, _, _| {},
        );
        tangents.into_iter().for_each(|t| t.recycle(dev));
        let input = back.unwrap_or_else(|| dev.zeros(primal.records * primal.values));
        Pulled { input, label, units: dev.combined((c, &m), None), label_units: m }
    }

    /// Arrays of all parameters, one for each record, in the order that layers read them as a [`SharedDirection`].
    pub(crate) fn interleaved(&self, arrays: &[&[T]]) -> Vec<T> {
        let copies = arrays.len();
        let mut out = vec![T::ZERO; copies * self.parameter_count()];
        let layers = self.nodes.iter().filter_map(|n| match &n.op {
            Op::Layer(layer) => Some(layer.pieces()),
            Op::Join(_) => None,
        });
        for (offset, len) in layers.flatten() {
            let rows = out[copies * offset..][..copies * len].chunks_exact_mut(len);
            rows.zip(arrays).for_each(|(row, array)| row.copy_from_slice(&array[offset..][..len]));
        }
        out
    }

    /// `g·v` of every record for a direction v of the parameters, one for all or one for each: `Σ δ ż`, the derivative
    /// of the loss along it.
    pub(crate) fn along(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        v: &Buf<T>,
        copies: usize,
    ) -> Scalars {
        let ones = dev.upload_scalars(&vec![1.0; primal.records]);
        let direction = |i: usize| {
            let shared = Shared { array: v, copies, weights: &ones };
            let trained = if i == EMBEDDING { self.moves[0] } else { self.nodes[i].trained };
            trained.then_some(Direction::Shared(shared))
        };
        let (z, tangents) = self.tangent_forward(dev, primal, None, Some(&direction));
        tangents.into_iter().for_each(|t| t.recycle(dev));
        let Some(z) = z else { return dev.scalars(primal.records) };
        let inner = dev.loss_along(&primal.loss, primal.outputs.all(), &z);
        dev.put(z);
        inner
    }

    /// One record's gradient over all parameters, or the tangent of it for one row of a pass: for tests.
    #[cfg(test)]
    pub(crate) fn materialise(
        &self,
        dev: &Device<T>,
        primal: &Primal<T>,
        tangent: Option<(&TangentPass<T>, usize)>,
        record: usize,
    ) -> Vec<f64> {
        let mut out = vec![0.0; self.parameter_count()];
        let units = dev.download_scalars(&primal.loss.units).unwrap_or_default();
        let row = tangent.map_or(record, |(_, p)| p * primal.records + record);
        let at = crate::layer::Single { length: primal.length, record, row };
        for (i, node) in self.nodes.iter().enumerate().filter(|(_, n)| n.trained) {
            if let Op::Layer(layer) = &node.op {
                let tan = tangent.map(|(t, _)| &t.tangents[i]);
                layer.materialise(dev, &primal.tapes[i], tan, at, &mut out);
            }
        }
        if let Some(embedding) = self.trained_embedding() {
            let gradient = tangent.map_or(&primal.embedded.gradient, |(t, _)| &t.embedded.gradient);
            embedding.materialise(dev, &primal.embedded, gradient, at.length, [record, row], &mut out);
        }
        out.iter_mut().for_each(|o| *o *= units[record]);
        if let Some(mask) = &self.mask {
            out.iter_mut().zip(dev.download(mask).unwrap_or_default()).for_each(|(o, m)| *o *= m.to_f64());
        }
        out
    }
}
