//! Batches over worker threads. What a batch is cut into depends on the network and the batch alone, and results
//! are put together in order: the same numbers come out whatever the number of threads.

mod grouped;
mod steps;

use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    data::{Batch, Input, Label},
    device::{Backend, Buf, Device, Target},
    error::{Error, Result, check_finite, check_len},
    layer::Draws,
    loss::Agreement,
    pass::{OwnDirection, SharedDirection, Shift, check_records},
};
use rayon::prelude::*;
use std::sync::Mutex;
use steps::Steps;

/// The devices of the workers, with their pools of buffers.
#[derive(Debug)]
pub(crate) struct Workers<T> {
    idle: Mutex<Vec<Device<T>>>,
    backend: Backend,
    /// Whether a sum of gradients stays on the device, and steps that were captured there.
    leaves_sums: Option<Steps<T>>,
}

impl<T: Real> Workers<T> {
    /// Workers for a network, where it is.
    pub(crate) fn of(net: &Network<T>) -> Self {
        Self { idle: Mutex::new(Vec::new()), backend: net.backend(), leaves_sums: None }
    }

    /// Workers of a GPU that leave sums of gradients there ([`BatchGradient::far`]); absent on the processor.
    pub(crate) fn leaving_sums(net: &Network<T>) -> Option<Self> {
        match net.backend() {
            Backend::Cpu => None,
            Backend::Cuda(_) => Some(Self { leaves_sums: Some(Steps::default()), ..Self::of(net) }),
        }
    }

    /// Whether captured work rests on where the parameters are.
    pub(crate) fn holds_parameters(&self) -> bool {
        self.leaves_sums.as_ref().is_some_and(Steps::any)
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Device<T>) -> R) -> R {
        let lock = || self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut dev = lock().pop().unwrap_or_else(|| self.backend.device());
        let out = f(&mut dev);
        lock().push(dev);
        out
    }

    /// [`Workers::map`] over records of a data set that `f` copies to the device: where they do not stay on a GPU, the next piece
    /// is copied while one is computed on.
    pub(crate) fn map_data<R: Send>(
        &self,
        data: &Data<T>,
        records: &[usize],
        size: usize,
        f: impl Fn(&mut Device<T>, &[usize]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if self.backend == Backend::Cpu {
            return self.map(records, size, f);
        }
        let pieces: Vec<&[usize]> = records.chunks(size.max(1)).collect();
        let next = |i: usize| pieces.get(i + 1).filter(|_| data.is_streamed());
        self.with(|dev| {
            let each = pieces.iter().enumerate().map(|(i, piece)| match next(i) {
                None => f(dev, piece),
                Some(next) => std::thread::scope(|scope| {
                    scope.spawn(|| data.ahead(next));
                    f(dev, piece)
                }),
            });
            each.collect()
        })
    }

    /// Runs `f` over pieces of the batch of `size`, in parallel; results in order.
    pub(crate) fn map<R: Send>(
        &self,
        records: &[usize],
        size: usize,
        f: impl Fn(&mut Device<T>, &[usize]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        match self.backend {
            Backend::Cpu => {
                records.par_chunks(size.max(1)).map(|piece| self.with(|dev| f(dev, piece))).collect()
            }
            // one queue of work: more threads would only wait for one another
            Backend::Cuda(_) => {
                self.with(|dev| records.chunks(size.max(1)).map(|piece| f(dev, piece)).collect())
            }
        }
    }
}

/// The sum of clipped gradients over a batch.
#[derive(Debug, Clone)]
pub struct BatchGradient<T> {
    /// `Σ clip(gᵢ)`, all parameters; empty where it was left on a GPU.
    pub sum: Vec<T>,
    /// The sum where it was left on a GPU.
    pub(crate) far: Option<Buf<T>>,
    /// Loss of every record; where records are grouped, the mean of every unit.
    pub losses: Vec<f64>,
    /// `‖gᵢ‖` of every record or unit, before clipping; with a perturbation c, `‖gᵢ + c‖`.
    pub norms: Vec<f64>,
}

/// The sum of the clipped gradients of records, or of units where records are grouped. Memory: a few arrays of parameters,
/// whatever the batch.
pub fn clipped_gradient<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    clip: Clip,
) -> Result<BatchGradient<T>> {
    data.check(net)?;
    data.check_units(records)?;
    clip.check()?;
    T::clipped_gradient(&Workers::of(net), net, data, records, clip, None, None)
}

pub(crate) fn clipped_gradient_generic<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    clip: Clip,
    shift: Option<&[f64]>,
    draws: Option<Draws>,
) -> Result<BatchGradient<T>> {
    if let Some(members) = data.members() {
        return grouped::clipped_gradient(workers, net, data, (records, members), (clip, shift), draws);
    }
    let (n, p) = (records.len(), net.parameter_count());
    let (lane, size) = cut(net, n, data.input().length());
    // a shift is added on the host
    let leaves = workers.leaves_sums.is_some() && shift.is_none();
    if let (Some(steps), None) = (&workers.leaves_sums, shift)
        && let Some(made) = workers.with(|dev| steps.clipped_gradient(dev, net, data, (records, clip)))
    {
        return made;
    }
    let parts = workers.map(records, lane, |dev, records| {
        let mut sum = dev.zeros(p);
        let (mut losses, mut norms, mut shares) = (Vec::new(), Vec::new(), 0.0);
        let shift = shift.map(|c| Shift::upload(dev, c));
        let mut later = Vec::new();
        for piece in records.chunks(size) {
            let batch = data.upload(dev, net, piece, Label::Public);
            let mut primal = net.primal(dev, batch, Label::Public, draws);
            // a GPU clips without being waited for
            if let (None, Some(clips)) = (&shift, dev.clips(clip, &primal.square, 1.0)) {
                net.add_weighted(dev, &primal, &clips.s, &mut sum);
                later.push((clips.norm, std::mem::take(&mut primal.loss.losses), piece));
                primal.recycle(dev);
                continue;
            }
            let (mut n, l) = primal.norms(dev, piece)?;
            if let Some(shift) = &shift {
                n = shift.lengths(net, dev, &primal, (piece, &n))?;
            }
            let weights: Vec<f64> =
                n.par_iter().with_min_len(512).map(|&n| Clipped::new(clip, n).s).collect();
            shares += weights.iter().sum::<f64>();
            let weights = dev.upload_scalars(&weights);
            net.add_weighted(dev, &primal, &weights, &mut sum);
            losses.extend(l);
            norms.extend(n);
            primal.recycle(dev);
        }
        for (n, l, piece) in later {
            let (n, l) = (dev.download_scalars(&n)?, dev.download_scalars(&l)?);
            check_records(&n, &l, piece)?;
            norms.extend(n);
            losses.extend(l);
        }
        if let Some(shift) = shift {
            dev.put(shift.array);
        }
        let (sum, far) = if leaves { (Vec::new(), Some(sum)) } else { (dev.unload(sum)?, None) };
        Ok((BatchGradient { sum, far, losses, norms }, shares))
    })?;
    let (parts, shares): (Vec<BatchGradient<T>>, Vec<f64>) = parts.into_iter().unzip();
    let (mut out, share) = (added(parts, p), shares.iter().sum::<f64>());
    if let Some(c) = shift {
        // Σ sᵢ (gᵢ + c)
        out.sum.iter_mut().zip(c).for_each(|(o, &c)| *o += T::from_f64(share * T::from_f64(c).to_f64()));
    }
    Ok(out)
}

/// The sum of the gradients of records as they are, without their norms: what training in the open computes, and what the cost
/// of clipping is measured against.
pub fn gradient<T: Real>(net: &Network<T>, data: &Data<T>, records: &[usize]) -> Result<BatchGradient<T>> {
    data.check(net)?;
    data.check_records(records)?;
    T::gradient(net, data, records)
}

pub(crate) fn gradient_generic<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
) -> Result<BatchGradient<T>> {
    let (n, p) = (records.len(), net.parameter_count());
    let (lane, size) = cut(net, n, data.input().length());
    let parts = Workers::of(net).map(records, lane, |dev, records| {
        let (mut sum, mut losses) = (dev.zeros(p), Vec::new());
        for piece in records.chunks(size) {
            let batch = data.upload(dev, net, piece, Label::Public);
            losses.extend(net.add_gradient(dev, batch, &mut sum)?);
        }
        Ok(BatchGradient { sum: dev.unload(sum)?, far: None, losses, norms: Vec::new() })
    })?;
    let out = added(parts, p);
    check_finite("the sum of gradients", &out.sum)?;
    Ok(out)
}

/// Arrays of parameters that a batch is summed into at the same time: few where they are large.
fn lanes<T: Real>(net: &Network<T>) -> usize {
    ((64 << 20) / (net.parameter_count() * T::BYTES).max(1)).clamp(2, 32)
}

/// Records that one array of parameters sums up, and how many of them at a time: even shares, so that no thread waits long for
/// the last. A GPU has one queue, which is fullest with even shares as large as fit, and one sum.
fn cut<T: Real>(net: &Network<T>, n: usize, length: usize) -> (usize, usize) {
    let most = net.records_at_a_time(length);
    match net.backend() {
        Backend::Cuda(_) => (n.max(1), n.div_ceil(n.div_ceil(most).max(1)).max(1)),
        Backend::Cpu => {
            // shares of less than half as many as go at a time would make slow products
            let lane = n.div_ceil(lanes(net).min(n.div_ceil(most.div_ceil(2)).max(1))).max(1);
            (lane, lane.div_ceil(lane.div_ceil(most)))
        }
    }
}

/// The parts of a batch put together, in their order and in the array of the first.
pub(crate) fn added<T: Real>(parts: Vec<BatchGradient<T>>, parameters: usize) -> BatchGradient<T> {
    let mut parts = parts.into_iter();
    let nothing =
        || BatchGradient { sum: vec![T::ZERO; parameters], far: None, losses: Vec::new(), norms: Vec::new() };
    let mut out = parts.next().unwrap_or_else(nothing);
    for BatchGradient { sum, losses, norms, .. } in parts {
        out.sum.par_iter_mut().with_min_len(1 << 16).zip(sum).for_each(|(o, s)| *o += s);
        out.losses.extend(losses);
        out.norms.extend(norms);
    }
    out
}

/// How well a network does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean loss.
    pub loss: f64,
    /// Share of records all of whose labels are right: the likeliest class of a softmax, every output's side of ½
    /// otherwise. Absent for squared error.
    pub accuracy: Option<f64>,
    /// Share of labels that are right, over all records; the same as `accuracy` where a record has one label.
    pub label_accuracy: Option<f64>,
}

/// Mean loss and accuracy over all records.
pub fn evaluate<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Evaluation> {
    data.check(net)?;
    let (mut loss, mut records, mut labels, mut of) = (0.0, 0, 0, 0);
    let mut predicts_classes = true;
    for (value, agreement) in T::judged(net, data)? {
        loss += value;
        match agreement {
            Some(Agreement { right, labels: all }) => {
                records += usize::from(right == all);
                labels += right;
                of += all;
            }
            None => predicts_classes = false,
        }
    }
    let n = data.len() as f64;
    let loss = loss / n;
    if !loss.is_finite() {
        return Err(Error::NotFinite { subject: "the loss", position: 0 });
    }
    let share = |right: usize, of: f64| predicts_classes.then_some(right as f64 / of);
    Ok(Evaluation { loss, accuracy: share(records, n), label_accuracy: share(labels, of as f64) })
}

/// Loss of every record.
pub fn losses<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Vec<f64>> {
    data.check(net)?;
    let losses: Vec<f64> = T::judged(net, data)?.into_iter().map(|(loss, _)| loss).collect();
    check_finite("the loss of a record", &losses)?;
    Ok(losses)
}

/// Loss of every record and how many of its labels are right; outputs are kept of one piece at a time.
pub(crate) fn judged_generic<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
) -> Result<Vec<(f64, Option<Agreement>)>> {
    let (all, length): (Vec<usize>, usize) = ((0..data.len()).collect(), data.input().length());
    let parts = Workers::of(net).map_data(data, &all, net.records_at_a_time(length), |dev, piece| {
        let batch = data.upload(dev, net, piece, Label::Public);
        let z = outputs_of(net, dev, batch)?;
        check_finite("the outputs", &z)?;
        let width = z.len() / piece.len();
        Ok(piece.iter().zip(z.chunks_exact(width)).map(|(&i, z)| data.judge(net, i, z)).collect::<Vec<_>>())
    })?;
    Ok(parts.concat())
}

/// What a network says about records.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    width: usize,
    outputs: Vec<f64>,
    scores: Vec<f64>,
}

impl Prediction {
    fn new<T: Real>(net: &Network<T>, places: usize, outputs: Vec<f64>) -> Result<Self> {
        check_finite("the outputs", &outputs)?;
        let k = net.outputs();
        let scores = outputs.chunks_exact(k).flat_map(|z| net.loss().scores(z)).collect();
        Ok(Self { width: k * places, outputs, scores })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.outputs.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// The outputs of record `i`, before the loss makes scores of them; all positions of a sequence one after another.
    pub fn outputs(&self, i: usize) -> &[f64] {
        &self.outputs[i * self.width..(i + 1) * self.width]
    }

    /// The scores of record `i`: probabilities of classes or labels, or the predicted values. See
    /// [`crate::Loss::scores`].
    pub fn scores(&self, i: usize) -> &[f64] {
        &self.scores[i * self.width..(i + 1) * self.width]
    }
}

/// What a network says about records `(n, input)`, row-major.
pub fn predict<T: Real>(net: &Network<T>, records: &[T]) -> Result<Prediction> {
    T::predict(net, records)
}

pub(crate) fn predict_generic<T: Real>(net: &Network<T>, records: &[T]) -> Result<Prediction> {
    let (d, length) = (net.values(net.input().length()), net.input().length());
    if net.vocabulary().is_some() {
        let reason = "the network reads tokens: take predict_data".to_owned();
        return Err(Error::Format { subject: "the records", reason });
    }
    let n = records.len() / d;
    check_len("the records", records.len(), n * d)?;
    check_finite("the records", records)?;
    let all: Vec<usize> = (0..n).collect();
    let parts = Workers::of(net).map(&all, net.records_at_a_time(length), |dev, piece| {
        let x = Input::Values(dev.upload(&records[piece[0] * d..][..piece.len() * d]));
        let y = Target::Classes(dev.upload_index(&[]));
        outputs_of(net, dev, Batch { records: piece, length, x, y, weights: None })
    })?;
    Prediction::new(net, net.places(length), parts.concat())
}

/// What a network says about the records of a data set, whose labels do not matter.
pub fn predict_data<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Prediction> {
    T::predict_data(net, data)
}

pub(crate) fn predict_data_generic<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Prediction> {
    data.check(net)?;
    data.check_even()?;
    let (all, length): (Vec<usize>, usize) = ((0..data.len()).collect(), data.input().length());
    let parts = Workers::of(net).map_data(data, &all, net.records_at_a_time(length), |dev, piece| {
        let batch = data.upload(dev, net, piece, Label::Public);
        outputs_of(net, dev, batch)
    })?;
    Prediction::new(net, net.places(length), parts.concat())
}

fn outputs_of<T: Real>(net: &Network<T>, dev: &mut Device<T>, batch: Batch<'_, T>) -> Result<Vec<f64>> {
    let z = net.outputs_of(dev, batch);
    let outputs = dev.download(&z)?.iter().map(|v| v.to_f64()).collect();
    dev.put(z);
    Ok(outputs)
}

/// What reaches the last layer of a network, `(records, places, width)`.
pub(crate) fn before_outputs<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Vec<f64>> {
    data.check(net)?;
    data.check_even()?;
    let (all, length): (Vec<usize>, usize) = ((0..data.len()).collect(), data.input().length());
    let parts = Workers::of(net).map(&all, net.records_at_a_time(length), |dev, piece| {
        let batch = data.upload(dev, net, piece, Label::Public);
        let values = net.values_before(dev, batch, net.nodes.len() - 1);
        let out: Vec<f64> = dev.download(&values)?.iter().map(|v| v.to_f64()).collect();
        dev.put(values);
        Ok(out)
    })?;
    Ok(parts.concat())
}

/// The gradient of every record seen from a given direction v of the parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Pullback {
    /// Loss of every record.
    pub losses: Vec<f64>,
    /// `‖g‖` of every record.
    pub norms: Vec<f64>,
    /// `g·v` of every record.
    pub products: Vec<f64>,
    /// `∂/∂x` of what was asked for, `(records, d)`.
    pub input: Vec<f64>,
}

/// What [`pullback`] takes the derivative of, by record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Combination {
    /// Weight of the record's own gradient g.
    pub own: f64,
    /// Weight of v.
    pub shared: f64,
}

/// `Jᵀ(a g + b v)` of every record, `J = ∂g/∂x`, for a direction v of the parameters that all records share: with a = 0
/// and b = 1 the derivative of `g·v`; for that of `cos(g, v)`, which attacks by gradient inversion climb, a and b depend
/// on `‖g‖` and `g·v`, which `combine` is given. Frozen parameters of v count as 0.
pub fn pullback<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    v: &[T],
    combine: impl Fn(f64, f64) -> Combination + Sync,
) -> Result<Pullback> {
    data.check(net)?;
    data.check_even()?;
    data.check_records(records)?;
    check_len("the direction", v.len(), net.parameter_count())?;
    check_finite("the direction", v)?;
    let trained = net.trained();
    let v: Vec<T> = v.iter().zip(&trained).map(|(&v, t)| if *t { v } else { T::ZERO }).collect();
    let parts =
        Workers::of(net).map(records, net.records_at_a_time(data.input().length()), |dev, piece| {
            let batch = data.upload(dev, net, piece, Label::Public);
            let primal = net.primal(dev, batch, Label::Public, None);
            let (norms, losses) = primal.norms(dev, piece)?;
            let v = dev.upload(&v);
            let along = net.along(dev, &primal, &v, 1);
            let products = dev.download_scalars(&along)?;
            let each: Vec<Combination> = norms.iter().zip(&products).map(|(n, p)| combine(*n, *p)).collect();
            let beta = dev.upload_scalars(&each.iter().map(|c| c.own).collect::<Vec<f64>>());
            let weights = dev.upload_scalars(&each.iter().map(|c| c.shared).collect::<Vec<f64>>());
            let alpha = dev.scalars(piece.len());
            let own = OwnDirection { tangent: None, alpha: &alpha, beta: &beta };
            let shared = SharedDirection { array: &v, copies: 1, weights: &weights };
            let (input, _) = net.adjoint(dev, &primal, Some(&own), Some(&shared))?;
            primal.recycle(dev);
            dev.put(v);
            Ok(Pullback { losses, norms, products, input })
        })?;
    let mut out = Pullback { losses: Vec::new(), norms: Vec::new(), products: Vec::new(), input: Vec::new() };
    for part in parts {
        out.losses.extend(part.losses);
        out.norms.extend(part.norms);
        out.products.extend(part.products);
        out.input.extend(part.input);
    }
    check_finite("the derivative of a gradient", &out.input)?;
    Ok(out)
}
