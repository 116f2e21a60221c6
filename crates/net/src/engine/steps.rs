//! Steps over batches of nearly one size, on a GPU: passes, clips and sums captured once and started as a whole from then on.
//!
//! Poisson sampling draws another number of records at every step, so batches are filled up to a size that repeats, with a record of
//! their own that counts with weight zero. That is done whether or not the work is captured, so that digits do not depend on it.

use super::{BatchGradient, check_records};
use crate::{
    Clip, Data, Network, Real,
    data::{Batch, Input, Label},
    device::{Buf, Device, Graph, Scalars, Target},
    error::{Error, Result},
    network::Op,
};
use std::sync::{Mutex, PoisonError};

/// Records up to which starting kernels takes longer than they do.
const RECORDS: usize = 2048;
/// Sizes that are kept at a time.
const KEPT: usize = 4;

/// Captured steps, the last used at the end.
#[derive(Debug)]
pub(crate) struct Steps<T>(Mutex<Vec<Step<T>>>);

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

/// What a step is captured for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Key {
    /// Records, those that fill up included.
    records: usize,
    length: usize,
    clip: Clip,
    /// Where the parameters are.
    theta: u64,
}

#[derive(Debug)]
struct Step<T> {
    key: Key,
    work: Option<Work<T>>,
}

/// Captured work, what it reads and what it leaves.
#[derive(Debug)]
struct Work<T> {
    graph: Graph,
    inputs: Inputs<T>,
    outputs: Outputs<T>,
}

#[derive(Debug)]
struct Inputs<T> {
    x: Buf<T>,
    y: Target<T>,
    /// 1 for records of the batch, 0 for those that fill it up.
    live: Scalars,
}

#[derive(Debug)]
struct Outputs<T> {
    sum: Buf<T>,
    /// Norms, losses, and the square of the sum, one behind the other: one download.
    report: Scalars,
}

impl<T: Real> Steps<T> {
    /// Whether there is work that has the parameters' address in it, or will be.
    pub(crate) fn any(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The clipped gradients of a batch, left on the GPU; absent where a step like this is better made otherwise.
    pub(super) fn clipped_gradient(
        &self,
        dev: &mut Device<T>,
        net: &Network<T>,
        data: &Data<T>,
        (records, clip): (&[usize], Clip),
    ) -> Option<Result<BatchGradient<T>>> {
        let draws = |op: &Op<T>| matches!(op, Op::Layer(layer) if layer.draws());
        let (n, most) = (records.len(), RECORDS.min(net.records_at_a_time(data.input().length())));
        // tokens and labels of positions are other ones in every batch, and so would be what is uploaded for them
        let plain = !data.records().is_empty() && data.places() == 1;
        if n == 0 || n > most || !plain || net.nodes.iter().any(|node| draws(&node.op)) {
            return None;
        }
        let padded = n.next_multiple_of((n.next_power_of_two() / 16).max(16)).min(most);
        let filled: Vec<usize> =
            records.iter().copied().chain(std::iter::repeat(records[0])).take(padded).collect();
        let Batch { length, x, y, weights, .. } = data.upload(dev, net, &filled, Label::Public);
        let (Input::Values(x), None) = (x, weights) else { return None };
        let live: Vec<f64> = (0..padded).map(|i| if i < n { 1.0 } else { 0.0 }).collect();
        let inputs = Inputs { x, y, live: dev.upload_scalars(&live) };
        let key = Key { records: padded, length, clip, theta: net.theta.at() };
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = steps.iter().position(|s| s.key == key);
        let mut step = match at {
            Some(at) => steps.remove(at),
            None => {
                if steps.len() >= KEPT {
                    steps.remove(0);
                }
                steps.push(Step { key, work: None });
                // the first step of a size compiles kernels
                let outputs = passes(dev, net, (&filled, length), &inputs, clip);
                return Some(finish(dev, outputs, records, padded));
            }
        };
        let out = match &mut step.work {
            Some(work) => {
                dev.overwrite(&inputs.x, &mut work.inputs.x);
                dev.overwrite_target(&inputs.y, &mut work.inputs.y);
                dev.overwrite_scalars(&inputs.live, &mut work.inputs.live);
                dev.replay(&work.graph);
                let outputs =
                    Outputs { sum: dev.copy(work.outputs.sum.all()), report: work.outputs.report.clone() };
                finish(dev, outputs, records, padded)
            }
            None => {
                let captured = dev.capture(|dev| passes(dev, net, (&filled, length), &inputs, clip));
                match captured {
                    Some((graph, outputs)) => {
                        dev.replay(&graph);
                        let own =
                            Outputs { sum: dev.copy(outputs.sum.all()), report: outputs.report.clone() };
                        step.work = Some(Work { graph, inputs, outputs });
                        finish(dev, own, records, padded)
                    }
                    None => {
                        let outputs = passes(dev, net, (&filled, length), &inputs, clip);
                        finish(dev, outputs, records, padded)
                    }
                }
            }
        };
        steps.push(step);
        Some(out)
    }
}

/// Passes over a batch, its clips and sums; nothing is waited for.
fn passes<T: Real>(
    dev: &mut Device<T>,
    net: &Network<T>,
    (records, length): (&[usize], usize),
    inputs: &Inputs<T>,
    clip: Clip,
) -> Outputs<T> {
    let (x, y) = (Input::Values(dev.copy(inputs.x.all())), dev.copy_target(&inputs.y));
    let batch = Batch { records, length, x, y, weights: None };
    let primal = net.primal(dev, batch, Label::Public, None);
    let mut sum = dev.zeros(net.parameter_count());
    let report = match dev.clips(clip, &primal.square, 1.0) {
        None => Scalars::default(),
        Some(clips) => {
            let weights = dev.combined((&clips.s, &inputs.live), None);
            net.add_weighted(dev, &primal, &weights, &mut sum);
            let square = dev.dots(sum.len(), sum.all(), sum.all());
            dev.joined(&[&clips.norm, &primal.loss.losses, &square])
        }
    };
    primal.recycle(dev);
    Outputs { sum, report }
}

/// What a step left, with its numbers on the host.
fn finish<T: Real>(
    dev: &Device<T>,
    outputs: Outputs<T>,
    records: &[usize],
    padded: usize,
) -> Result<BatchGradient<T>> {
    let report = dev.download_scalars(&outputs.report)?;
    let n = records.len();
    let (norms, losses) = (report[..n].to_vec(), report[padded..padded + n].to_vec());
    check_records(&norms, &losses, records)?;
    match report.last() {
        Some(square) if square.is_finite() => {
            Ok(BatchGradient { sum: Vec::new(), far: Some(outputs.sum), losses, norms })
        }
        // finite norms whose products are not: no clip has bounded these
        _ => Err(Error::NotFinite { subject: "the sum of gradients", position: 0 }),
    }
}
