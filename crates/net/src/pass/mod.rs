//! The three passes over a batch, for any graph of layers: primal (forward, backward, norms), tangent (the same in
//! a direction of the record) and adjoint (in a direction of the parameters, back to the record). Nodes are visited in
//! their order, and backwards in its reverse.

mod values;

use values::{Back, Values};

use crate::{
    Real,
    device::{Buf, Device, LossTape},
    layer::{Context, Direction, Draws, Own, Shared, Tangent, Tape},
    leak::Label,
    network::{Network, Op},
};

/// Everything the primal pass leaves.
#[derive(Debug)]
pub(crate) struct Primal<T> {
    pub(crate) records: usize,
    /// What comes back in them is in units of [`LossTape::units`].
    pub(crate) tapes: Vec<Tape<T>>,
    pub(crate) loss: LossTape,
    /// Outputs z, `(records, outputs)`.
    pub(crate) outputs: Buf<T>,
    /// `‖g‖²` of every record over the trained parameters.
    pub(crate) square: Vec<f64>,
}

/// A direction of the parameters that is every record's own: `α ġ + β g`, ġ that of a tangent pass made with `keep`.
#[derive(Debug)]
pub(crate) struct OwnDirection<'a, T> {
    pub(crate) tangent: Option<&'a TangentPass<T>>,
    pub(crate) alpha: &'a [f64],
    pub(crate) beta: &'a [f64],
}

/// A direction of the parameters that is the same array for all records, times a number for each.
#[derive(Debug)]
pub(crate) struct SharedDirection<'a, T> {
    pub(crate) array: &'a Buf<T>,
    pub(crate) weights: &'a [f64],
}

/// What a tangent pass leaves.
#[derive(Debug)]
pub(crate) struct TangentPass<T> {
    tangents: Vec<Tangent<T>>,
    /// `g·ġ`, probe-major.
    pub(crate) cross: Vec<f64>,
    /// `‖ġ‖²`, probe-major.
    pub(crate) square: Vec<f64>,
}

impl<T: Real> Primal<T> {
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        self.tapes.into_iter().for_each(|t| t.recycle(dev));
        dev.put(self.outputs);
    }
}

impl<T: Real> TangentPass<T> {
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        self.tangents.into_iter().for_each(|t| t.recycle(dev));
    }
}

impl<T: Real> Network<T> {
    fn context<'a>(&'a self, dev: &'a mut Device<T>, records: usize) -> Context<'a, T> {
        let (theta, constants, mask) = (&self.theta, &self.constants, self.mask.as_ref());
        Context { dev, theta, constants, mask, records, dropout: None }
    }

    /// Outputs of a batch, and nothing kept.
    pub(crate) fn outputs_of(&self, dev: &mut Device<T>, x: Buf<T>, records: usize) -> Buf<T> {
        let (z, tapes) = self.forward(dev, x, records, self.nodes.len(), None);
        tapes.into_iter().for_each(|t| t.recycle(dev));
        z
    }

    /// What reaches a node, its first input.
    pub(crate) fn values_before(
        &self,
        dev: &mut Device<T>,
        x: Buf<T>,
        records: usize,
        node: usize,
    ) -> Buf<T> {
        let (z, tapes) = self.forward(dev, x, records, self.nodes[node].inputs[0], None);
        tapes.into_iter().for_each(|t| t.recycle(dev));
        z
    }

    /// The value of a number, from the record.
    fn forward(
        &self,
        dev: &mut Device<T>,
        x: Buf<T>,
        records: usize,
        value: usize,
        dropout: Option<(Draws, &[usize])>,
    ) -> (Buf<T>, Vec<Tape<T>>) {
        let mut cx = Context { dropout, ..self.context(dev, records) };
        let mut tapes: Vec<Tape<T>> = Vec::with_capacity(self.nodes.len());
        let mut values = Values::new(&self.readers, Some(x));
        for node in &self.nodes[..value] {
            let mut tape = Tape::default();
            let mut read = node.inputs.iter().map(|&v| values.read(cx.dev, v).unwrap_or_default());
            let z = match &node.op {
                Op::Layer(layer) => {
                    let x = read.next().unwrap_or_default();
                    layer.forward(&mut cx, x, &mut tape)
                }
                Op::Join(join) => {
                    let inputs = read.collect();
                    join.forward(&mut cx, inputs, &mut tape)
                }
            };
            values.push(Some(z));
            tapes.push(tape);
        }
        (values.into_last(cx.dev, value).unwrap_or_default(), tapes)
    }

    /// Forward, backward and the norms. `x` is `(records, d)`, `y` is `(records, outputs)`; `label` says whether
    /// tangents of the labels will be asked for; `draws` are those of dropout in a training step, which the numbers of
    /// the records tell apart.
    pub(crate) fn primal(
        &self,
        dev: &mut Device<T>,
        x: Buf<T>,
        y: Buf<T>,
        records: &[usize],
        label: Label,
        draws: Option<Draws>,
    ) -> Primal<T> {
        let (dropout, records) = (draws.map(|d| (d, records)), records.len());
        let (outputs, mut tapes) = self.forward(dev, x, records, self.nodes.len(), dropout);
        let moves = label == Label::Secret;
        let (delta, loss) = dev.loss(self.loss(), self.outputs(), outputs.all(), y.all(), moves);
        dev.put(y);
        let mut square = vec![0.0; records];
        let mut cx = self.context(dev, records);
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
        square.iter_mut().zip(&loss.units).for_each(|(s, c)| *s *= c * c);
        Primal { records, tapes, loss, outputs, square }
    }

    /// `Σᵢ wᵢ gᵢ` added to `out`, an array of all parameters.
    pub(crate) fn add_weighted(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        weights: &[f64],
        out: &mut Buf<T>,
    ) {
        let weights: Vec<f64> = weights.iter().zip(&primal.loss.units).map(|(w, c)| w * c).collect();
        let weights = dev.upload_f64(&weights);
        let mut cx = self.context(dev, primal.records);
        for (node, tape) in self.nodes.iter().zip(&primal.tapes).filter(|(n, _)| n.trained) {
            if let Op::Layer(layer) = &node.op {
                layer.add_weighted(&mut cx, tape, &weights, out);
            }
        }
        dev.put(weights);
    }

    /// The gradient in the direction of tangents of the records, `(probes·records, d)` probe-major, and of their
    /// labels, `(probes·records, outputs)`; either may be zero. With `keep` (one probe), the pass can be the
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
            (Some(x), _) => x.len() / self.input().len(),
            (None, Some(y)) => y.len() / self.outputs(),
            (None, None) => primal.records,
        };
        let (mut cross, mut square) = (vec![0.0; rows], vec![0.0; rows]);
        let (z, mut tangents) = self.tangent_forward(dev, primal, x_dot, None);
        let delta = dev.loss_tangent(&primal.loss, z.as_ref(), y_dot.as_ref());
        dev.put_some(z);
        dev.put_some(y_dot);
        let wanted = |v: usize| self.moves[v];
        let back =
            self.tangent_backward(dev, primal, delta, None, &mut tangents, wanted, |cx, i, tangent| {
                if let (true, Op::Layer(layer)) = (self.nodes[i].trained, &self.nodes[i].op) {
                    layer.add_products(cx, &primal.tapes[i], tangent, keep, &mut cross, &mut square);
                }
            });
        dev.put_some(back);
        for products in [&mut cross, &mut square] {
            let units = primal.loss.units.iter().cycle();
            products.iter_mut().zip(units).for_each(|(v, c)| *v *= c * c);
        }
        TangentPass { tangents, cross, square }
    }

    /// `Jᵀθ̇` per record for a direction of the parameters that is its own, shared, or the sum of the two: with respect
    /// to the record `(records, d)`, and to its label.
    pub(crate) fn adjoint(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        own: Option<&OwnDirection<'_, T>>,
        shared: Option<&SharedDirection<'_, T>>,
    ) -> (Vec<f64>, Vec<f64>) {
        // θ̇ is carried in units m of its own, so that it neither leaves the range of the type nor its digits
        let c = &primal.loss.units;
        let m: Vec<f64> = (0..primal.records)
            .map(|i| {
                let size = own.map_or(0.0, |o| c[i] * o.alpha[i].abs().max(o.beta[i].abs()));
                let size = shared.map_or(size, |s| size.max(s.weights[i].abs()));
                if size > 0.0 { size } else { 1.0 }
            })
            .collect();
        let scaled = |v: &[f64]| v.iter().zip(c.iter().zip(&m)).map(|(v, (c, m))| v * (c / m)).collect();
        let (alpha, beta): (Vec<f64>, Vec<f64>) = match own {
            Some(o) => (scaled(o.alpha), scaled(o.beta)),
            None => (Vec::new(), Vec::new()),
        };
        let weights: Vec<f64> =
            shared.map_or_else(Vec::new, |s| s.weights.iter().zip(&m).map(|(w, m)| w / m).collect());
        let direction = |i: usize| {
            let own =
                own.map(|o| Own { tangent: o.tangent.map(|t| &t.tangents[i]), alpha: &alpha, beta: &beta });
            let shared = shared.map(|s| Shared { array: s.array, weights: &weights });
            self.nodes[i].trained.then(|| Direction::of(own, shared)).flatten()
        };
        let (z, mut tangents) = self.tangent_forward(dev, primal, None, Some(&direction));
        let delta = dev.loss_tangent(&primal.loss, z.as_ref(), None);
        let label = match &z {
            Some(z) => dev.loss_label_tangent(&primal.loss, z),
            None => dev.zeros(primal.records * self.outputs()),
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
        let input = back.unwrap_or_else(|| dev.zeros(primal.records * self.input().len()));
        let out = (
            rows(dev.download(&input), c.iter().zip(&m).map(|(c, m)| c * m)),
            rows(dev.download(&label), m.iter().copied()),
        );
        dev.put(input);
        dev.put(label);
        out
    }

    /// `g·v` of every record for a direction v of the parameters: `Σ δ ż`, the derivative of the loss along it.
    pub(crate) fn along(&self, dev: &mut Device<T>, primal: &Primal<T>, v: &Buf<T>) -> Vec<f64> {
        let ones = vec![1.0; primal.records];
        let direction = |i: usize| {
            let shared = Shared { array: v, weights: &ones };
            self.nodes[i].trained.then_some(Direction::Shared(shared))
        };
        let (z, tangents) = self.tangent_forward(dev, primal, None, Some(&direction));
        tangents.into_iter().for_each(|t| t.recycle(dev));
        let Some(z) = z else { return vec![0.0; primal.records] };
        let inner = dev.loss_along(&primal.loss, &z);
        dev.put(z);
        inner
    }

    fn tangent_forward<'d>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        x: Option<Buf<T>>,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
    ) -> (Option<Buf<T>>, Vec<Tangent<T>>)
    where
        T: 'd,
    {
        let mut cx = self.context(dev, primal.records);
        let mut tangents: Vec<Tangent<T>> = Vec::with_capacity(self.nodes.len());
        let mut values = Values::new(&self.readers, x);
        for (i, node) in self.nodes.iter().enumerate() {
            let (mut tangent, tape) = (Tangent::default(), &primal.tapes[i]);
            let mut read = node.inputs.iter().map(|&v| values.read(cx.dev, v));
            let z = match &node.op {
                Op::Layer(layer) => {
                    let (x, dir) = (read.next().flatten(), direction.and_then(|d| d(i)));
                    layer.tangent_forward(&mut cx, tape, x, dir.as_ref(), &mut tangent)
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
    fn tangent_backward<'d>(
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
        let mut cx = self.context(dev, primal.records);
        let mut back = Back::new(self.nodes.len(), delta);
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(i, _)| wanted(i + 1)) {
            let (Some(delta), tape, tangent) = (back.take(i + 1), &primal.tapes[i], &mut tangents[i]) else {
                continue;
            };
            let input = node.inputs.iter().any(|&v| wanted(v));
            let deltas = match &node.op {
                Op::Layer(layer) => {
                    let dir = direction.and_then(|d| d(i));
                    let d = layer.tangent_backward(&mut cx, tape, delta, dir.as_ref(), tangent, input);
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
        for (i, node) in self.nodes.iter().enumerate().filter(|(_, n)| n.trained) {
            if let Op::Layer(layer) = &node.op {
                let tan = tangent.map(|(t, _)| &t.tangents[i]);
                let probe = tangent.map_or(0, |(_, p)| p * primal.records + record);
                layer.materialise(dev, &primal.tapes[i], tan, record, probe, &mut out);
            }
        }
        out.iter_mut().for_each(|o| *o *= primal.loss.units[record]);
        if let Some(mask) = &self.mask {
            out.iter_mut().zip(dev.download(mask)).for_each(|(o, m)| *o *= m.to_f64());
        }
        out
    }
}

/// Rows in double precision, each times its number.
fn rows<T: Real>(values: &[T], scales: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let width = values.len() / scales.len().max(1);
    let each = values.chunks_exact(width.max(1)).zip(scales);
    each.flat_map(|(row, s)| row.iter().map(move |v| v.to_f64() * s)).collect()
}
