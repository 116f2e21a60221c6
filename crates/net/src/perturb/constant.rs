//! A constant c that is learned by descent, directly or as the thesis has it.
//!
//! With `h = g + c`, `n = ‖h‖`, `w = J_gᵀh`, `T = ‖J_g‖²` and r the relative bend of the clip, a record's share of the
//! objective is `λ(T/n² + r‖w‖²)`, with the derivative `λ(ψ h + 2r J_g w)` in c, `ψ = −2T/n⁴ + r'‖w‖²/n`: one adjoint and
//! one tangent pass a record. T does not move with c, and is found once a step.
//!
//! **The thesis.** Its g_φ reads image, label, parameters and gradient, and ends in batch norm, dense, GELU, dense. It runs
//! record by record, and a batch norm over a batch of one returns its bias β whatever went in (the value less its mean, which
//! is itself). What is before the last batch norm has no part in the output and no gradient; what remains is
//! `c(φ) = W₂ GELU(W₁ β + b₁) + b₂`, a constant in other coordinates. This is what is trained here.

use super::{Adam, Added, Learned, Lesson, Perturbed, Perturbing};
use crate::{
    Clip, LayerSpec as L, Loss, NetSpec, Network, Real, Shape,
    device::{Buf, Device, Flags, Pulled},
    engine::Workers,
    error::Result,
    leak::Label,
    optimizer::Optimizer,
    pass::{OwnDirection, Primal, SharedDirection, Shift},
};

/// Width of the layers behind the last batch norm, as published.
const WIDTH: usize = 256;

/// The mean over records of their relative size of the Jacobian, and its derivative in c.
pub(super) struct Value {
    pub(super) relative: f64,
    pub(super) slope: Vec<f64>,
}

/// Learns c itself.
pub(super) fn learn<T: Real>(lesson: &Lesson<'_, T>) -> Result<Learned<T>> {
    let p = lesson.net.parameter_count();
    let traces = lesson.traces()?;
    let mut c = lesson.start(p).unwrap_or_else(|| vec![0.0; p]);
    let mut adam = Adam::new(p);
    for epoch in 0..lesson.how.epochs_at(lesson.step) {
        for batch in lesson.batches(epoch) {
            let gradient = gradient(lesson, &batch, &traces, &c)?;
            adam.update(&lesson.how, &gradient, &mut c);
        }
    }
    let report = report(lesson, &traces, &c)?;
    Ok(Learned { state: c.clone(), added: Added::Constant(c), report })
}

/// Learns c as what the thesis's network says.
pub(super) fn learn_thesis<T: Real>(lesson: &Lesson<'_, T>) -> Result<Learned<T>> {
    let trained = lesson.net.trained();
    let places: Vec<usize> = (0..trained.len()).filter(|&i| trained[i]).collect();
    let mut head = Head::<T>::new(lesson, places.len())?;
    let traces = lesson.traces()?;
    let all = |own: Vec<f64>| {
        let mut c = vec![0.0; trained.len()];
        places.iter().zip(own).for_each(|(&i, v)| c[i] = v);
        c
    };
    let mut c = all(head.constant()?);
    for epoch in 0..lesson.how.epochs_at(lesson.step) {
        for batch in lesson.batches(epoch) {
            let gradient = gradient(lesson, &batch, &traces, &c)?;
            let own: Vec<f64> = places.iter().map(|&i| gradient[i]).collect();
            head.update(&own, &lesson.how);
            c = all(head.constant()?);
        }
    }
    let report = report(lesson, &traces, &c)?;
    Ok(Learned { added: Added::Constant(c), report, state: head.state()? })
}

/// The derivative of the objective over a batch.
fn gradient<T: Real>(lesson: &Lesson<'_, T>, batch: &[usize], traces: &[f64], c: &[f64]) -> Result<Vec<f64>> {
    let value = value(lesson, batch, traces, c)?;
    let lambda = lesson.lambda();
    Ok(value.slope.iter().zip(c).map(|(s, c)| 2.0 * c + lambda * s).collect())
}

fn report<T: Real>(lesson: &Lesson<'_, T>, traces: &[f64], c: &[f64]) -> Result<Perturbed> {
    let all = lesson.all();
    let mean = lesson.mean()?;
    let without = value(lesson, &all, traces, &vec![0.0; c.len()])?.relative;
    let with = value(lesson, &all, traces, c)?.relative;
    Ok(Perturbed { without, with, ..Perturbed::of(c, &mean) })
}

/// The mean relative size and its slope, over given public records.
pub(super) fn value<T: Real>(
    lesson: &Lesson<'_, T>,
    records: &[usize],
    traces: &[f64],
    c: &[f64],
) -> Result<Value> {
    let (net, public) = (lesson.net, lesson.public);
    let size = net.records_at_a_time(public.input().length());
    let parts = lesson.workers.map(records, size, |dev, piece| {
        let batch = public.upload(dev, net, piece, Label::Public);
        let primal = net.primal(dev, batch, Label::Public, None);
        let (norms, _) = primal.norms(dev, piece)?;
        let shift = Shift::upload(dev, c);
        let lengths = shift.lengths(net, dev, &primal, (piece, &norms))?;
        let traces: Vec<f64> = piece.iter().map(|&i| traces[i]).collect();
        let part = part(net, dev, &primal, &shift, (&lengths, &traces), lesson.clip)?;
        dev.put(shift.array);
        primal.recycle(dev);
        Ok(part)
    })?;
    let n = records.len().max(1) as f64;
    let mut out = Value { relative: 0.0, slope: vec![0.0; c.len()] };
    for (relative, sum, psi) in parts {
        out.relative += relative / n;
        out.slope.iter_mut().zip(sum.iter().zip(c)).for_each(|(o, (s, c))| *o += (s + psi * c) / n);
    }
    Ok(out)
}

/// Over one piece: the sum of the relative sizes, `Σ ψ g + 2r J_g w`, and `Σ ψ`.
fn part<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    primal: &Primal<T>,
    shift: &Shift<T>,
    (lengths, traces): (&[f64], &[f64]),
    clip: Clip,
) -> Result<(f64, Vec<f64>, f64)> {
    let k = primal.records;
    let (alpha, beta) = (dev.scalars(k), dev.upload_scalars(&vec![1.0; k]));
    let own = OwnDirection { tangent: None, alpha: &alpha, beta: &beta };
    let shared = SharedDirection { array: &shift.array, copies: 1, weights: &beta };
    // w stays where it is, each record's in a unit of its own: J_g w is linear in it
    let pulled = net.pulled(dev, primal, Some(&own), Some(&shared));
    let [squares, _] = pulled.squares_there(dev);
    let (squares, units) = (dev.download_scalars(&squares)?, dev.download_scalars(&pulled.units)?);
    let (mut relative, mut psi, mut bends) = (0.0, vec![0.0; k], vec![0.0; k]);
    for i in (0..k).filter(|&i| lengths[i] > 0.0) {
        let (n, (r, r1)) = (lengths[i], clip.relative_bend(lengths[i]));
        relative += (traces[i] / (n * n) + r * squares[i]).max(0.0);
        psi[i] = -2.0 * traces[i] / n.powi(4) + r1 * squares[i] / n;
        bends[i] = 2.0 * r * units[i];
    }
    let Pulled { input, label, .. } = pulled;
    dev.put(label);
    let pass = net.tangent(dev, primal, Some(input), None, true);
    let mut sum = dev.zeros(net.parameter_count());
    let weights = dev.upload_scalars(&bends);
    net.add_weighted_tangent(dev, primal, &pass, &weights, &mut sum);
    pass.recycle(dev);
    let weights = dev.upload_scalars(&psi);
    net.add_weighted(dev, primal, &weights, &mut sum);
    let sum = dev.unload(sum)?.iter().map(|v| v.to_f64()).collect();
    Ok((relative, sum, psi.iter().sum()))
}

/// What is behind the last batch norm of the thesis's network, with the moments of Adam, all where the perturbed network is.
struct Head<T> {
    /// Of one value that is always 0, so that the bias of its first layer is β.
    net: Network<T>,
    workers: Workers<T>,
    /// Two arrays, and the updates that they are of. They outlive a step, as parameters do: it is one training that goes on.
    moments: Vec<Buf<T>>,
    updates: u64,
    learned: Flags,
}

impl<T: Real> Head<T> {
    /// As the step before left it, or new.
    fn new(lesson: &Lesson<'_, T>, outputs: usize) -> Result<Self> {
        let layers = vec![L::dense(WIDTH), L::dense(WIDTH), L::Gelu, L::dense(outputs)];
        let spec = NetSpec::sequential(Shape::Vector([1]), layers, Loss::SquaredError);
        let rounded = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        let p = 2 * WIDTH + (WIDTH + 1) * WIDTH + (WIDTH + 1) * outputs;
        let before = lesson.start(3 * p + 1);
        let net = match &before {
            Some(before) => Network::with_parameters(spec, &rounded(&before[..p]))?,
            None => Network::new(spec, 0)?,
        };
        let net = net.on(lesson.net.backend())?;
        let workers = Workers::of(&net);
        let (moments, learned) = workers.with(|dev| {
            let moment = |dev: &mut Device<T>, i: usize| match &before {
                Some(before) => dev.upload(&rounded(&before[i * p..][..p])),
                None => dev.zeros(p),
            };
            (vec![moment(dev, 1), moment(dev, 2)], dev.upload_flags(&vec![true; p]))
        });
        let updates = before.map_or(0, |b| b[3 * p] as u64);
        Ok(Self { net, workers, moments, updates, learned })
    }

    /// `c(φ)`, over the trained parameters.
    fn constant(&self) -> Result<Vec<f64>> {
        let z = self.workers.with(|dev| {
            let x = dev.zeros(1);
            let z = self.net.outputs_at(dev, x, &[0]);
            dev.unload(z)
        })?;
        Ok(z.iter().map(|z| z.to_f64()).collect())
    }

    /// One update of φ by `∇_φ rᵀc(φ)` and decay, r the derivative of the objective in c.
    fn update(&mut self, r: &[f64], how: &Perturbing) {
        let Self { net, workers, moments, updates, learned } = self;
        workers.with(|dev| {
            // a power of two keeps r inside the range of the type
            let size = r.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
            let unit =
                if size > 0.0 && size.is_finite() { 2f64.powi(size.log2().floor() as i32) } else { 1.0 };
            let (x, r) = (dev.zeros(1), r.iter().map(|v| T::from_f64(v / unit)).collect::<Vec<T>>());
            let delta = dev.upload(&r);
            let (primal, back) = net.primal_from(dev, x, 1, delta);
            dev.put(back);
            let mut sum = dev.zeros(net.parameter_count());
            let one = dev.upload_scalars(&[1.0]);
            net.add_weighted(dev, &primal, &one, &mut sum);
            primal.recycle(dev);
            dev.add_decay(unit, how.weight_decay, &net.theta, &mut sum);
            let (rule, rate) = (Optimizer::adam(), how.learning_rate);
            dev.update(rule, *updates, rate, &sum, learned, moments, &mut net.theta);
            dev.put(sum);
        });
        self.updates += 1;
    }

    /// Parameters, moments, and how many updates they are of.
    fn state(&self) -> Result<Vec<f64>> {
        let mut out: Vec<f64> = self.net.parameters()?.iter().map(|v| v.to_f64()).collect();
        for moment in &self.moments {
            let values = self.workers.with(|dev| dev.download(moment))?;
            out.extend(values.iter().map(|v| v.to_f64()));
        }
        out.push(self.updates as f64);
        Ok(out)
    }
}
