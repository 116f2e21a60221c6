//! Updates of what is learned on a GPU that wait for no number: what one needs of the one before stays there. Batches of a size
//! repeat thousands of times, so that passes over them are captured once and started as a whole. What is not finite stays so, and is
//! seen when the lesson ends.

use super::{Coordinates, Parts, parts};
use crate::{
    Real,
    data::{Batch, Input, Label},
    device::{Buf, Device, Graph, Index, Scalars, Target},
    perturb::Lesson,
};

/// The updates of a lesson.
pub(super) struct Descent<'l, T> {
    lesson: &'l Lesson<'l, T>,
    traces: &'l [f64],
    places: Index,
    /// Of each size of a batch that was seen.
    sizes: Vec<(usize, Option<Work<T>>)>,
}

/// Captured passes, what they read and the gradient that they leave.
struct Work<T> {
    graph: Graph,
    inputs: Inputs<T>,
    sum: Buf<T>,
}

/// A batch.
struct Inputs<T> {
    x: Buf<T>,
    y: Target<T>,
    traces: Scalars,
}

impl<'l, T: Real> Descent<'l, T> {
    /// For a network with trained parameters at these places.
    pub(super) fn new(
        dev: &Device<T>,
        lesson: &'l Lesson<'l, T>,
        traces: &'l [f64],
        places: &[usize],
    ) -> Self {
        let places: Vec<u32> = places.iter().map(|&i| i as u32).collect();
        Self { lesson, traces, places: dev.upload_index(&places), sizes: Vec::new() }
    }

    /// One update by a batch. False, and nothing done, where the batch does not go at once.
    pub(super) fn update<C: Coordinates<T>>(
        &mut self,
        dev: &mut Device<T>,
        at: &mut C,
        batch: &[usize],
    ) -> bool {
        let Some(inputs) = self.inputs(dev, batch) else { return false };
        let (lesson, places, size) = (self.lesson, &self.places, batch.len());
        let plainly = |dev: &mut Device<T>, at: &mut C, inputs: &Inputs<T>| {
            let mut sum = gradient(dev, (lesson, places), at, (batch, inputs));
            at.update(dev, (&mut sum, 1.0), &lesson.how);
            dev.put(sum);
            true
        };
        let Some(place) = self.sizes.iter().position(|s| s.0 == size) else {
            // the first of a size compiles kernels
            self.sizes.push((size, None));
            return plainly(dev, at, &inputs);
        };
        let work = &mut self.sizes[place].1;
        match work {
            Some(work) => inputs.copy_to(dev, &mut work.inputs),
            None => match dev.capture(|dev| gradient(dev, (lesson, places), at, (batch, &inputs))) {
                Some((graph, sum)) => *work = Some(Work { graph, inputs, sum }),
                None => return plainly(dev, at, &inputs),
            },
        }
        if let Some(Work { graph, sum, .. }) = work {
            dev.replay(graph);
            at.update(dev, (sum, 1.0), &lesson.how);
        }
        true
    }

    fn inputs(&self, dev: &mut Device<T>, batch: &[usize]) -> Option<Inputs<T>> {
        let (net, public) = (self.lesson.net, self.lesson.public);
        // tokens and labels of positions are other ones in every batch, and so would be what is uploaded for them
        let plain = !public.records().is_empty() && public.places() == 1;
        if !plain || batch.len() > net.records_at_a_time(public.input().length()) {
            return None;
        }
        let Batch { x, y, weights, .. } = public.upload(dev, net, batch, Label::Public);
        let (Input::Values(x), None) = (x, weights) else { return None };
        let traces: Vec<f64> = batch.iter().map(|&i| self.traces[i]).collect();
        Some(Inputs { x, y, traces: dev.upload_scalars(&traces) })
    }
}

impl<T: Real> Inputs<T> {
    fn copy_to(&self, dev: &Device<T>, to: &mut Self) {
        dev.overwrite(&self.x, &mut to.x);
        dev.overwrite_target(&self.y, &mut to.y);
        dev.overwrite_scalars(&self.traces, &mut to.traces);
    }
}

/// The derivative of the objective over a batch in what is learned; nothing is waited for.
fn gradient<T: Real, C: Coordinates<T>>(
    dev: &mut Device<T>,
    (lesson, places): (&Lesson<'_, T>, &Index),
    at: &C,
    (records, inputs): (&[usize], &Inputs<T>),
) -> Buf<T> {
    let net = lesson.net;
    let (own, mut c) = (at.constant(dev), dev.zeros(net.parameter_count()));
    dev.set_places(places, &own, &mut c);
    dev.put(own);
    let (x, y) = (Input::Values(dev.copy(inputs.x.all())), dev.copy_target(&inputs.y));
    let batch = Batch { records, length: 1, x, y, weights: None };
    let primal = net.primal(dev, batch, Label::Public, None);
    let Parts { slopes, sum } = parts(net, dev, &primal, (&c, &inputs.traces), lesson.clip);
    primal.recycle(dev);
    let share = lesson.lambda() / records.len() as f64;
    let r = dev.descent(places, (&sum, &c), (&slopes.psi, share));
    dev.put(sum);
    dev.put(c);
    at.gradient(dev, r)
}
