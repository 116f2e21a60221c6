//! What is behind the last batch norm of the thesis's network, with the moments of Adam, all where the perturbed network is.

use super::{Coordinates, WIDTH};
use crate::{
    LayerSpec as L, Loss, NetSpec, Network, Real, Shape,
    device::{Buf, Device, Flags},
    engine::Workers,
    error::Result,
    optimizer::Optimizer,
    perturb::{Carried, Lesson, Perturbing},
};

/// Parameters, moments, and the updates that they are of. They outlive a step, as parameters do: it is one training that goes on.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    theta: Buf<T>,
    moments: Vec<Buf<T>>,
    updates: u64,
}

impl<T: Real> Kept<T> {
    fn buffers(&self) -> Vec<&Buf<T>> {
        std::iter::once(&self.theta).chain(&self.moments).collect()
    }

    /// All of it one behind the other, as [`Head::new`] takes it.
    pub(in crate::perturb) fn values(&self, workers: &Workers<T>) -> Result<Vec<f64>> {
        let mut out = Vec::new();
        for buffer in self.buffers() {
            let values = workers.with(|dev| dev.download(buffer))?;
            out.extend(values.iter().map(|v| v.to_f64()));
        }
        out.push(self.updates as f64);
        Ok(out)
    }

    pub(in crate::perturb) fn is_finite(&self, workers: &Workers<T>) -> Result<bool> {
        Ok(workers.with(|dev| dev.all_finite(&self.buffers()))?.iter().all(|f| *f))
    }
}

/// `c(φ)`, in training.
pub(super) struct Head<T> {
    /// Of one value that is always 0, so that the bias of its first layer is β.
    net: Network<T>,
    moments: Vec<Buf<T>>,
    updates: u64,
    learned: Flags,
}

impl<T: Real> Head<T> {
    /// As the step before left it, or new.
    pub(super) fn new(lesson: &Lesson<'_, T>, outputs: usize) -> Result<Self> {
        let layers = vec![L::dense(WIDTH), L::dense(WIDTH), L::Gelu, L::dense(outputs)];
        let spec = NetSpec::sequential(Shape::Vector([1]), layers, Loss::SquaredError);
        let rounded = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        let p = 2 * WIDTH + (WIDTH + 1) * WIDTH + (WIDTH + 1) * outputs;
        let values = lesson.start(3 * p + 1);
        let kept = match lesson.before {
            Carried::Head(kept) if !lesson.how.fresh && kept.theta.len() == p => Some(kept),
            _ => None,
        };
        let net = match (&values, kept) {
            (Some(values), _) => Network::with_parameters(spec, &rounded(&values[..p]))?,
            // the values follow
            (None, Some(_)) => Network::with_parameters(spec, &vec![T::ZERO; p])?,
            (None, None) => Network::new(spec, 0)?,
        };
        let mut net = net.on(lesson.net.backend())?;
        let (moments, learned) = lesson.workers.with(|dev| {
            if let Some(kept) = kept {
                dev.overwrite(&kept.theta, &mut net.theta);
            }
            let moment = |dev: &mut Device<T>, i: usize| match (&values, kept) {
                (Some(values), _) => dev.upload(&rounded(&values[(i + 1) * p..][..p])),
                (None, Some(kept)) => dev.copy(kept.moments[i].all()),
                (None, None) => dev.zeros(p),
            };
            ((0..2).map(|i| moment(dev, i)).collect(), dev.upload_flags(&vec![true; p]))
        });
        let updates = values.map_or(kept.map_or(0, |k| k.updates), |v| v[3 * p] as u64);
        Ok(Self { net, moments, updates, learned })
    }

    pub(super) fn into_kept(self) -> Kept<T> {
        Kept { theta: self.net.theta, moments: self.moments, updates: self.updates }
    }
}

impl<T: Real> Coordinates<T> for Head<T> {
    fn constant(&self, dev: &mut Device<T>) -> Buf<T> {
        let x = dev.zeros(1);
        self.net.outputs_at(dev, x, &[0])
    }

    fn gradient(&self, dev: &mut Device<T>, r: Buf<T>) -> Buf<T> {
        let x = dev.zeros(1);
        let (primal, back) = self.net.primal_from(dev, x, 1, r);
        dev.put(back);
        let mut sum = dev.zeros(self.net.parameter_count());
        let one = dev.upload_scalars(&[1.0]);
        self.net.add_weighted(dev, &primal, &one, &mut sum);
        primal.recycle(dev);
        sum
    }

    fn update(&mut self, dev: &Device<T>, (sum, unit): (&mut Buf<T>, f64), how: &Perturbing) {
        let Self { net, moments, updates, learned } = self;
        dev.add_decay(unit, how.weight_decay, &net.theta, sum);
        let (rule, rate) = (Optimizer::adam(), how.learning_rate);
        dev.update(rule, *updates, rate, sum, learned, moments, &mut net.theta);
        *updates += 1;
    }
}
