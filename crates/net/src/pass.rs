//! The three passes over a batch, for any stack of layers: primal (forward, backward, norms), tangent (the same in
//! a direction of the record) and adjoint (in a direction of the parameters, back to the record).

use crate::{
    Real,
    device::{Buf, Device},
    layer::{Context, Direction, Tangent, Tape},
    network::{Network, Op},
};

/// Everything the primal pass leaves.
#[derive(Debug)]
pub(crate) struct Primal<T> {
    pub(crate) records: usize,
    pub(crate) tapes: Vec<Tape<T>>,
    /// Loss of every record.
    pub(crate) losses: Vec<f64>,
    /// Outputs z, `(records, outputs)`.
    pub(crate) outputs: Buf<T>,
    prob: Buf<T>,
    y: Buf<T>,
    /// `‖g‖²` of every record over the trained parameters.
    pub(crate) square: Vec<f64>,
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
        for b in [self.outputs, self.prob, self.y] {
            dev.put(b);
        }
    }
}

impl<T: Real> TangentPass<T> {
    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        self.tangents.into_iter().for_each(|t| t.recycle(dev));
    }
}

impl<T: Real> Network<T> {
    fn context<'a>(&'a self, dev: &'a mut Device<T>, records: usize) -> Context<'a, T> {
        Context { dev, theta: &self.theta, constants: &self.constants, mask: self.mask.as_ref(), records }
    }

    /// Outputs of a batch, and nothing kept.
    pub(crate) fn outputs_of(&self, dev: &mut Device<T>, x: Buf<T>, records: usize) -> Buf<T> {
        let (z, tapes) = self.forward(dev, x, records);
        tapes.into_iter().for_each(|t| t.recycle(dev));
        z
    }

    fn forward(&self, dev: &mut Device<T>, mut x: Buf<T>, records: usize) -> (Buf<T>, Vec<Tape<T>>) {
        let mut cx = self.context(dev, records);
        let mut tapes: Vec<Tape<T>> = Vec::with_capacity(self.nodes.len());
        let mut saved = Vec::new();
        for node in &self.nodes {
            let mut tape = Tape::default();
            match &node.op {
                Op::Layer(layer) => x = layer.forward(&mut cx, x, &mut tape),
                Op::Save => saved.push(cx.dev.copy(x.all())),
                Op::Add => {
                    if let Some(s) = saved.pop() {
                        cx.dev.add(&mut x, s.all());
                        cx.dev.put(s);
                    }
                }
            }
            tapes.push(tape);
        }
        (x, tapes)
    }

    /// Forward, backward and the norms. `x` is `(records, d)`, `y` is `(records, outputs)`.
    pub(crate) fn primal(&self, dev: &mut Device<T>, x: Buf<T>, y: Buf<T>, records: usize) -> Primal<T> {
        let (outputs, mut tapes) = self.forward(dev, x, records);
        let (losses, mut delta, prob) = dev.loss(self.loss(), self.outputs(), outputs.all(), y.all());
        let mut square = vec![0.0; records];
        let mut cx = self.context(dev, records);
        let mut saved = Vec::new();
        for (i, node) in self.nodes.iter().enumerate().skip(self.first).rev() {
            match &node.op {
                Op::Layer(layer) => {
                    let back = layer.backward(&mut cx, &mut tapes[i], delta, i > self.first);
                    if node.trained {
                        layer.add_square(&mut cx, &mut tapes[i], &mut square);
                    }
                    match back {
                        Some(b) => delta = b,
                        None => break,
                    }
                }
                Op::Add => saved.push(cx.dev.copy(delta.all())),
                Op::Save => {
                    if let Some(s) = saved.pop() {
                        cx.dev.add(&mut delta, s.all());
                        cx.dev.put(s);
                    }
                }
            }
        }
        saved.into_iter().for_each(|s| cx.dev.put(s));
        Primal { records, tapes, losses, outputs, prob, y, square }
    }

    /// `Σᵢ wᵢ gᵢ` added to `out`, an array of all parameters.
    pub(crate) fn add_weighted(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        weights: &[f64],
        out: &mut Buf<T>,
    ) {
        let weights = dev.upload_f64(weights);
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
        let (prob, y) = (primal.prob.all(), primal.y.all());
        let delta = dev.loss_tangent(self.loss(), self.outputs(), prob, y, z.as_ref(), y_dot.as_ref());
        dev.put_some(z);
        dev.put_some(y_dot);
        let back =
            self.tangent_backward(dev, primal, delta, None, &mut tangents, self.first, |cx, i, tangent| {
                if let (true, Op::Layer(layer)) = (self.nodes[i].trained, &self.nodes[i].op) {
                    layer.add_products(cx, &primal.tapes[i], tangent, keep, &mut cross, &mut square);
                }
            });
        dev.put_some(back);
        TangentPass { tangents, cross, square }
    }

    /// `Jᵀ(α ġ + β g)` per record: with respect to the record `(records, d)`, and to its label. `ġ` is that of
    /// `tangent`, which was made with `keep`.
    pub(crate) fn adjoint(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        tangent: Option<&TangentPass<T>>,
        alpha: &[f64],
        beta: &[f64],
    ) -> (Buf<T>, Buf<T>) {
        let direction = |i: usize| {
            self.nodes[i].trained.then(|| Direction { tangent: tangent.map(|t| &t.tangents[i]), alpha, beta })
        };
        let (z, mut tangents) = self.tangent_forward(dev, primal, None, Some(&direction));
        let (prob, y) = (primal.prob.all(), primal.y.all());
        let delta = dev.loss_tangent(self.loss(), self.outputs(), prob, y, z.as_ref(), None);
        let label = match &z {
            Some(z) => dev.loss_label_tangent(self.loss(), self.outputs(), prob, z),
            None => dev.zeros(primal.records * self.outputs()),
        };
        dev.put_some(z);
        let back =
            self.tangent_backward(dev, primal, delta, Some(&direction), &mut tangents, 0, |_, _, _| {});
        tangents.into_iter().for_each(|t| t.recycle(dev));
        let input = back.unwrap_or_else(|| dev.zeros(primal.records * self.input().len()));
        (input, label)
    }

    fn tangent_forward<'d>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        mut x: Option<Buf<T>>,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
    ) -> (Option<Buf<T>>, Vec<Tangent<T>>)
    where
        T: 'd,
    {
        let mut cx = self.context(dev, primal.records);
        let mut tangents: Vec<Tangent<T>> = Vec::with_capacity(self.nodes.len());
        let mut saved: Vec<Option<Buf<T>>> = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let mut tangent = Tangent::default();
            match &node.op {
                Op::Layer(layer) => {
                    let dir = direction.and_then(|d| d(i));
                    x = layer.tangent_forward(&mut cx, &primal.tapes[i], x, dir.as_ref(), &mut tangent);
                }
                Op::Save => saved.push(x.as_ref().map(|x| cx.dev.copy(x.all()))),
                Op::Add => {
                    x = match (x, saved.pop().flatten()) {
                        (Some(mut x), Some(s)) => {
                            cx.dev.add(&mut x, s.all());
                            cx.dev.put(s);
                            Some(x)
                        }
                        (x, s) => x.or(s),
                    }
                }
            }
            tangents.push(tangent);
        }
        (x, tangents)
    }

    /// Down to node `last`, whose input is asked for only where `last` is 0 and a direction is given.
    #[allow(clippy::too_many_arguments)] // the state of one pass
    fn tangent_backward<'d>(
        &self,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        mut delta: Buf<T>,
        direction: Option<&dyn Fn(usize) -> Option<Direction<'d, T>>>,
        tangents: &mut [Tangent<T>],
        last: usize,
        mut visit: impl FnMut(&mut Context<'_, T>, usize, &mut Tangent<T>),
    ) -> Option<Buf<T>>
    where
        T: 'd,
    {
        let mut cx = self.context(dev, primal.records);
        let mut saved = Vec::new();
        for (i, node) in self.nodes.iter().enumerate().skip(last).rev() {
            match &node.op {
                Op::Layer(layer) => {
                    let dir = direction.and_then(|d| d(i));
                    let input = i > last || direction.is_some();
                    let tape = &primal.tapes[i];
                    let back =
                        layer.tangent_backward(&mut cx, tape, delta, dir.as_ref(), &mut tangents[i], input);
                    visit(&mut cx, i, &mut tangents[i]);
                    match back {
                        Some(b) => delta = b,
                        None => {
                            saved.into_iter().for_each(|s| cx.dev.put(s));
                            return None;
                        }
                    }
                }
                Op::Add => saved.push(cx.dev.copy(delta.all())),
                Op::Save => {
                    if let Some(s) = saved.pop() {
                        cx.dev.add(&mut delta, s.all());
                        cx.dev.put(s);
                    }
                }
            }
        }
        saved.into_iter().for_each(|s| cx.dev.put(s));
        Some(delta)
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
        if let Some(mask) = &self.mask {
            out.iter_mut().zip(dev.download(mask)).for_each(|(o, m)| *o *= m.to_f64());
        }
        out
    }
}
