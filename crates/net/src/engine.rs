//! Batches over worker threads. What a batch is cut into depends on the network and the batch alone, and results
//! are put together in order: the same numbers come out whatever the number of threads.

use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    device::Device,
    error::{Error, Result},
};
use rayon::prelude::*;
use std::sync::Mutex;

/// The devices of the workers, with their pools of buffers.
#[derive(Debug, Default)]
pub(crate) struct Workers<T>(Mutex<Vec<Device<T>>>);

impl<T: Real> Workers<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn with<R>(&self, f: impl FnOnce(&mut Device<T>) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut dev = lock().pop().unwrap_or_default();
        let out = f(&mut dev);
        lock().push(dev);
        out
    }

    /// Runs `f` over pieces of the batch of `size`, in parallel; results in order.
    pub(crate) fn map<R: Send>(
        &self,
        records: &[usize],
        size: usize,
        f: impl Fn(&mut Device<T>, &[usize]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        records.par_chunks(size.max(1)).map(|piece| self.with(|dev| f(dev, piece))).collect()
    }
}

/// The sum of clipped gradients over a batch.
#[derive(Debug, Clone)]
pub struct BatchGradient<T> {
    /// `Σ clip(gᵢ)`, all parameters.
    pub sum: Vec<T>,
    /// Loss of every record.
    pub losses: Vec<f64>,
    /// `‖gᵢ‖` of every record, before clipping.
    pub norms: Vec<f64>,
}

/// The sum of the clipped gradients of records. Memory: a few arrays of parameters, whatever the batch.
pub fn clipped_gradient<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    clip: Clip,
) -> Result<BatchGradient<T>> {
    data.check(net)?;
    data.check_records(records)?;
    clip.check()?;
    clipped_gradient_with(&Workers::new(), net, data, records, clip)
}

pub(crate) fn clipped_gradient_with<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    clip: Clip,
) -> Result<BatchGradient<T>> {
    let (n, size, p) = (records.len(), net.records_at_a_time(), net.parameter_count());
    // Each lane sums its own pieces into its own array; few lanes where arrays are large.
    let lanes = ((64 << 20) / (p * T::BYTES).max(1)).clamp(2, 16);
    let lane = n.div_ceil(size).div_ceil(lanes).max(1) * size;
    let parts = workers.map(records, lane, |dev, records| {
        let mut sum = dev.zeros(p);
        let (mut losses, mut norms) = (Vec::new(), Vec::new());
        for piece in records.chunks(size) {
            let (x, y) = data.upload(dev, piece);
            let primal = net.primal(dev, x, y, piece.len());
            let n: Vec<f64> = primal.square.iter().map(|s| s.max(0.0).sqrt()).collect();
            if let Some(i) = n.iter().zip(&primal.losses).position(|(n, l)| !n.is_finite() || !l.is_finite())
            {
                return Err(Error::NotFinite { what: "the gradient of a record", position: piece[i] });
            }
            let weights: Vec<f64> = n.iter().map(|&n| Clipped::new(clip, n).s).collect();
            net.add_weighted(dev, &primal, &weights, &mut sum);
            losses.extend_from_slice(&primal.losses);
            norms.extend(n);
            primal.recycle(dev);
        }
        let values = dev.download(&sum).to_vec();
        dev.put(sum);
        Ok((values, losses, norms))
    })?;
    let mut out = BatchGradient { sum: vec![T::ZERO; p], losses: Vec::new(), norms: Vec::new() };
    for (sum, losses, norms) in parts {
        out.sum.iter_mut().zip(sum).for_each(|(o, s)| *o += s);
        out.losses.extend(losses);
        out.norms.extend(norms);
    }
    Ok(out)
}

/// How well a network does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Mean loss.
    pub loss: f64,
    /// Share of records whose largest output (or sign, with one output) is the label's; absent for squared error.
    pub accuracy: Option<f64>,
}

/// Mean loss and accuracy over all records.
pub fn evaluate<T: Real>(net: &Network<T>, data: &Data<T>) -> Result<Evaluation> {
    data.check(net)?;
    let records: Vec<usize> = (0..data.len()).collect();
    let k = net.outputs();
    let parts = Workers::new().map(&records, net.records_at_a_time(), |dev, piece| {
        let (x, y) = data.upload(dev, piece);
        let z = net.outputs_of(dev, x, piece.len());
        let (losses, delta, prob) = dev.loss(net.loss(), k, z.all(), y.all());
        let pairs = dev.download(&z).chunks_exact(k).zip(dev.download(&y).chunks_exact(k));
        let right = pairs.filter(|(z, y)| is_right(z, y)).count();
        for b in [delta, prob, z, y] {
            dev.put(b);
        }
        Ok((losses.iter().sum::<f64>(), right))
    })?;
    let n = data.len() as f64;
    let loss = parts.iter().map(|p| p.0).sum::<f64>() / n;
    if !loss.is_finite() {
        return Err(Error::NotFinite { what: "the loss", position: 0 });
    }
    let accuracy = parts.iter().map(|p| p.1).sum::<usize>() as f64 / n;
    let accuracy = match net.loss() {
        crate::Loss::SquaredError => None,
        crate::Loss::SoftmaxCrossEntropy | crate::Loss::BinaryCrossEntropy => Some(accuracy),
    };
    Ok(Evaluation { loss, accuracy })
}

/// Whether outputs point at the label: the largest of several, the sign of one.
pub(crate) fn is_right<T: Real>(z: &[T], y: &[T]) -> bool {
    let largest = |v: &[T]| (0..v.len()).fold(0, |best, i| if v[i] > v[best] { i } else { best });
    match (z, y) {
        ([z], [y]) => (*z > T::ZERO) == (y.to_f64() > 0.5),
        _ => largest(z) == largest(y),
    }
}
