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

mod descent;
mod direct;
mod head;

pub(crate) use head::Kept;

use super::{Adam, Added, Carried, Learned, Lesson, Perturbed, Perturbing};
use crate::{
    Clip, Network, Real,
    device::{Buf, Device, Pulled, RelativeSlopes, Scalars, Shifted},
    error::{Error, Result},
    leak::Label,
    pass::{OwnDirection, Primal, SharedDirection},
};
use descent::Descent;
use direct::Direct;
use head::Head;

/// Width of the layers behind the last batch norm, as published.
const WIDTH: usize = 256;

/// The mean over records of their relative size of the Jacobian, and its derivative in c.
pub(super) struct Value {
    pub(super) relative: f64,
    pub(super) slope: Vec<f64>,
}

/// What c is a function of, as it is learned.
trait Coordinates<T> {
    /// c, over the parameters that it is learned at.
    fn constant(&self, dev: &mut Device<T>) -> Buf<T>;

    /// The derivative of rᵀc.
    fn gradient(&self, dev: &mut Device<T>, r: Buf<T>) -> Buf<T>;

    /// One update by that derivative, which is in the given unit, and decay.
    fn update(&mut self, dev: &Device<T>, derivative: (&mut Buf<T>, f64), how: &Perturbing);
}

/// Learns c itself.
pub(super) fn learn<T: Real>(lesson: &Lesson<'_, T>) -> Result<Learned<T>> {
    let p = lesson.net.parameter_count();
    let traces = lesson.traces()?;
    let c = match lesson.workers.with(|dev| dev.is_far()) {
        true => {
            let mut direct = Direct::new(lesson);
            descend(lesson, &traces, (&mut direct, &(0..p).collect::<Vec<usize>>()))?
        }
        // in double precision, whatever the network is in
        false => {
            let mut c = lesson.start(p).unwrap_or_else(|| vec![0.0; p]);
            let mut adam = Adam::new(p);
            for epoch in 0..lesson.how.epochs_at(lesson.step) {
                for batch in lesson.batches(epoch) {
                    let gradient = gradient(lesson, &batch, &traces, &c)?;
                    adam.update(&lesson.how, &gradient, &mut c);
                }
            }
            c
        }
    };
    let report = report(lesson, &traces, &c)?;
    Ok(Learned { state: Carried::Values(c.clone()), added: Added::Constant(c), report })
}

/// Learns c as what the thesis's network says.
pub(super) fn learn_thesis<T: Real>(lesson: &Lesson<'_, T>) -> Result<Learned<T>> {
    let places = places(lesson);
    let mut head = Head::<T>::new(lesson, places.len())?;
    let traces = lesson.traces()?;
    let c = descend(lesson, &traces, (&mut head, &places))?;
    let report = report(lesson, &traces, &c)?;
    Ok(Learned { added: Added::Constant(c), report, state: Carried::Head(Box::new(head.into_kept())) })
}

/// Where the trained parameters are.
fn places<T: Real>(lesson: &Lesson<'_, T>) -> Vec<usize> {
    let trained = lesson.net.trained();
    (0..trained.len()).filter(|&i| trained[i]).collect()
}

/// All epochs of a lesson; c over all parameters, as it is then.
fn descend<T: Real, C: Coordinates<T>>(
    lesson: &Lesson<'_, T>,
    traces: &[f64],
    (at, places): (&mut C, &[usize]),
) -> Result<Vec<f64>> {
    let workers = lesson.workers;
    let mut descent = workers.with(|dev| dev.is_far().then(|| Descent::new(dev, lesson, traces, places)));
    for epoch in 0..lesson.how.epochs_at(lesson.step) {
        for batch in lesson.batches(epoch) {
            let far = descent.as_mut();
            if far.is_some_and(|d| workers.with(|dev| d.update(dev, at, &batch))) {
                continue;
            }
            let gradient = gradient(lesson, &batch, traces, &constant(lesson, (at, places))?)?;
            let own: Vec<f64> = places.iter().map(|&i| gradient[i]).collect();
            update(lesson, at, &own);
        }
    }
    constant(lesson, (at, places))
}

/// c over all parameters.
fn constant<T: Real, C: Coordinates<T>>(
    lesson: &Lesson<'_, T>,
    (at, places): (&C, &[usize]),
) -> Result<Vec<f64>> {
    let mut c = vec![0.0; lesson.net.parameter_count()];
    let own = lesson.workers.with(|dev| {
        let own = at.constant(dev);
        dev.unload(own)
    })?;
    places.iter().zip(own).for_each(|(&i, v)| c[i] = v.to_f64());
    Ok(c)
}

/// One update, r the derivative of the objective in c.
fn update<T: Real, C: Coordinates<T>>(lesson: &Lesson<'_, T>, at: &mut C, r: &[f64]) {
    // a power of two keeps r inside the range of the type
    let size = r.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
    let unit = if size > 0.0 && size.is_finite() { 2f64.powi(size.log2().floor() as i32) } else { 1.0 };
    let r: Vec<T> = r.iter().map(|v| T::from_f64(v / unit)).collect();
    lesson.workers.with(|dev| {
        let r = dev.upload(&r);
        let mut sum = at.gradient(dev, r);
        at.update(dev, (&mut sum, unit), &lesson.how);
        dev.put(sum);
    });
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
    let rounded: Vec<T> = c.iter().map(|&v| T::from_f64(v)).collect();
    let pieces = lesson.workers.map(records, size, |dev, piece| {
        let batch = public.upload(dev, net, piece, Label::Public);
        let primal = net.primal(dev, batch, Label::Public, None);
        let c = dev.upload(&rounded);
        let traces = dev.upload_scalars(&piece.iter().map(|&i| traces[i]).collect::<Vec<f64>>());
        let Parts { slopes, sum } = parts(net, dev, &primal, (&c, &traces), lesson.clip);
        dev.put(c);
        primal.recycle(dev);
        let (relative, psi) = (dev.download_scalars(&slopes.relative)?, dev.download_scalars(&slopes.psi)?);
        if let Some(i) = relative.iter().zip(&psi).position(|(r, psi)| !(r + psi).is_finite()) {
            return Err(Error::NotFinite { subject: "the gradient of a record", position: piece[i] });
        }
        Ok((relative.iter().sum::<f64>(), dev.unload(sum)?, psi.iter().sum::<f64>()))
    })?;
    let n = records.len().max(1) as f64;
    let mut out = Value { relative: 0.0, slope: vec![0.0; c.len()] };
    for (relative, sum, psi) in pieces {
        out.relative += relative / n;
        let each = sum.iter().zip(c);
        out.slope.iter_mut().zip(each).for_each(|(o, (s, c))| *o += (s.to_f64() + psi * c) / n);
    }
    Ok(out)
}

/// What a piece of records tells of c, on the device.
struct Parts<T> {
    slopes: RelativeSlopes,
    /// `Σ ψ g + 2r J_g w`.
    sum: Buf<T>,
}

/// Over a piece, of which the traces are known; nothing is waited for.
fn parts<T: Real>(
    net: &Network<T>,
    dev: &mut Device<T>,
    primal: &Primal<T>,
    (c, traces): (&Buf<T>, &Scalars),
    clip: Clip,
) -> Parts<T> {
    let k = primal.records;
    let along = net.along(dev, primal, c, 1);
    let shift = dev.dots(c.len(), c.all(), c.all());
    let (alpha, beta) = (dev.scalars(k), dev.upload_scalars(&vec![1.0; k]));
    let own = OwnDirection { tangent: None, alpha: &alpha, beta: &beta };
    let shared = SharedDirection { array: c, copies: 1, weights: &beta };
    // w stays where it is, each record's in a unit of its own: J_g w is linear in it
    let pulled = net.pulled(dev, primal, Some(&own), Some(&shared));
    let [squares, _] = pulled.squares_there(dev);
    let Pulled { input, label, units, .. } = pulled;
    dev.put(label);
    let of =
        Shifted { square: &primal.square, along: &along, shift: &shift, traces, pulled: (&squares, &units) };
    let slopes = dev.relative_slopes(clip, &of);
    let pass = net.tangent(dev, primal, Some(input), None, true);
    let mut sum = dev.zeros(net.parameter_count());
    net.add_weighted_tangent(dev, primal, &pass, &slopes.bend, &mut sum);
    pass.recycle(dev);
    net.add_weighted(dev, primal, &slopes.psi, &mut sum);
    Parts { slopes, sum }
}

/// [`learn_thesis`], or [`learn`] in the network's precision, with no number through the host until the end.
#[cfg(test)]
pub(super) fn learn_there<T: Real>(lesson: &Lesson<'_, T>) -> Result<Vec<f64>> {
    use super::PerturbationKind;

    fn all<T: Real, C: Coordinates<T>>(
        lesson: &Lesson<'_, T>,
        (mut at, places): (C, &[usize]),
    ) -> Result<Vec<f64>> {
        let traces = lesson.traces()?;
        lesson.workers.with(|dev| {
            let mut descent = Descent::new(dev, lesson, &traces, places);
            for epoch in 0..lesson.how.epochs_at(lesson.step) {
                for batch in lesson.batches(epoch) {
                    assert!(descent.update(dev, &mut at, &batch));
                }
            }
        });
        constant(lesson, (&at, places))
    }
    match lesson.how.variant {
        PerturbationKind::Thesis => {
            let places = places(lesson);
            all(lesson, (Head::new(lesson, places.len())?, &places))
        }
        PerturbationKind::Average | PerturbationKind::Constant | PerturbationKind::Network => {
            let places: Vec<usize> = (0..lesson.net.parameter_count()).collect();
            all(lesson, (Direct::new(lesson), &places))
        }
    }
}
