//! Gradients of units of several records: the mean over their records, clipped as one.
//!
//! The gradients of a unit's records overlap in every parameter, so that its norm is not that of its parts: a unit's gradient
//! is summed into one array, measured there and added. That array is used again for the next unit, so memory does not grow
//! with their number.

use super::{BatchGradient, Workers, added, lanes};
use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    data::Label,
    error::{Error, Result},
    layer::Draws,
};

/// `Σ clip(ḡ_u)` over units, `ḡ_u` the mean gradient of the records of unit u.
pub(super) fn clipped_gradient<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    data: &Data<T>,
    (units, members): (&[usize], &[Vec<usize>]),
    (clip, shift): (Clip, Option<&[f64]>),
    draws: Option<Draws>,
) -> Result<BatchGradient<T>> {
    if shift.is_some() {
        let reason = "records that belong together are clipped as one, without a perturbation".to_owned();
        return Err(Error::Format { subject: "the perturbation", reason });
    }
    let (p, size) = (net.parameter_count(), net.records_at_a_time(data.input().length()));
    let lane = units.len().div_ceil(lanes(net)).max(1);
    let parts = workers.map(units, lane, |dev, units| {
        let (mut sum, mut losses, mut norms) = (dev.zeros(p), Vec::new(), Vec::new());
        for &unit in units {
            let mut own = dev.zeros(p);
            let share = 1.0 / members[unit].len() as f64;
            let mut loss = 0.0;
            for piece in members[unit].chunks(size) {
                let batch = data.upload(dev, net, piece, Label::Public);
                let primal = net.primal(dev, batch, Label::Public, draws);
                loss += share * primal.norms(dev, piece)?.1.iter().sum::<f64>();
                let weights = dev.upload_scalars(&vec![share; piece.len()]);
                net.add_weighted(dev, &primal, &weights, &mut own);
                primal.recycle(dev);
            }
            let norm = dev.download_scalars(&dev.dots(p, own.all(), own.all()))?[0].sqrt();
            if !norm.is_finite() {
                return Err(Error::NotFinite { subject: "the gradient of a unit", position: unit });
            }
            let weight = dev.upload_scalars(&[Clipped::new(clip, norm).s]);
            dev.add_scaled_blocks(&weight, own.all(), &mut sum);
            dev.put(own);
            losses.push(loss);
            norms.push(norm);
        }
        Ok(BatchGradient { sum: dev.unload(sum)?, far: None, losses, norms })
    })?;
    Ok(added(parts, p))
}
