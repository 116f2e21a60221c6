//! A network f of the record's values, one output for each trained parameter, standardised by constants from the public
//! records.
//!
//! `h = g + f` moves with the record in two ways, `k = ġ + ḟ` in a direction u, and `‖D k‖²` of the clip counts both. What is
//! released of one record is all that is computed of it, so its gradient is an array here: p numbers a record, one record at
//! a time.

mod learn;
mod measure;

pub(super) use learn::learn;
#[cfg(test)]
pub(super) use learn::objective;
pub(crate) use measure::measure;

use super::dot;
use crate::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Real, Shape,
    clip::Clipped,
    device::Device,
    engine::{BatchGradient, Workers},
    error::{Error, Result},
    layer::Draws,
    leak::Label,
    pass::Primal,
};

/// Width of the hidden layer.
const WIDTH: usize = 64;
/// Records that go through f at a time.
const TOGETHER: usize = 32;

/// f.
#[derive(Debug)]
pub(crate) struct Map<T> {
    pub(super) net: Network<T>,
    /// The trained parameters of the network whose gradients it is added to.
    pub(super) places: Vec<usize>,
    /// How many parameters that has.
    pub(super) parameters: usize,
}

/// The gradient of one record and its tangents, over the trained parameters.
struct Own {
    loss: f64,
    g: Vec<f64>,
    tangents: Vec<Vec<f64>>,
}

/// One direction of a record and of its label.
struct Tangents<T> {
    x: Vec<T>,
    y: Option<Vec<T>>,
}

impl<T: Real> Map<T> {
    /// A network that adds nothing yet, for the gradients of another.
    pub(super) fn new(net: &Network<T>, public: &Data<T>) -> Result<Self> {
        let trained = net.trained();
        let places: Vec<usize> = (0..trained.len()).filter(|&i| trained[i]).collect();
        // γ and β would only scale what the next layer scales
        let standardise = L::BatchNorm { epsilon: 1e-3, frozen: true };
        let dense = vec![L::dense(WIDTH), L::Gelu, L::dense(places.len())];
        let first = match public.input() {
            Shape::Image(_) => vec![standardise, L::Flatten],
            Shape::Vector(_) => vec![standardise],
            Shape::Sequence(_) | Shape::Tokens { .. } => {
                let reason = "a network of the record reads images or rows of values, not sequences: take another variant";
                return Err(Error::Format { subject: "the perturbation", reason: reason.to_owned() });
            }
        };
        let spec =
            NetSpec::sequential(public.input(), first.into_iter().chain(dense).collect(), Loss::SquaredError);
        let mut f = Network::new(spec, 0)?;
        let mut phi = f.parameters()?;
        let last = WIDTH * places.len() + places.len();
        let from = phi.len() - last;
        phi[from..].fill(T::ZERO);
        f.set_parameters(&phi)?;
        let width = vec![T::ZERO; public.len() * places.len()];
        let unlabelled = Data::new(public.input(), public.records().to_vec(), places.len(), width)?;
        f.calibrate_statistics(&unlabelled)?;
        f.move_to(net.backend())?;
        Ok(Self { net: f, places, parameters: net.parameter_count() })
    }

    pub(super) fn set(&mut self, phi: &[f64]) -> Result<()> {
        self.net.set_parameters(&phi.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>())
    }

    /// `f(x)` of records, `(records, trained parameters)`.
    pub(super) fn values(&self, dev: &mut Device<T>, data: &Data<T>, ids: &[usize]) -> Result<Vec<f64>> {
        let x = dev.upload(&rows(data, ids));
        let z = self.net.outputs_at(dev, x, ids);
        Ok(dev.unload(z)?.iter().map(|v| v.to_f64()).collect())
    }

    /// An array of all parameters from one of the trained ones.
    fn spread(&self, own: &[f64]) -> Vec<T> {
        let mut all = vec![T::ZERO; self.parameters];
        self.places.iter().zip(own).for_each(|(&i, &v)| all[i] = T::from_f64(v));
        all
    }

    fn gathered(&self, all: &[T]) -> Vec<f64> {
        self.places.iter().map(|&i| all[i].to_f64()).collect()
    }

    /// `J_fᵀr` of one record.
    fn pulled(&self, dev: &mut Device<T>, x: &[T], r: &[f64]) -> Result<Vec<f64>> {
        let (x, delta) = (dev.upload(x), r.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>());
        let delta = dev.upload(&delta);
        let (primal, back) = self.net.primal_from(dev, x, 1, delta);
        primal.recycle(dev);
        Ok(dev.unload(back)?.iter().map(|v| v.to_f64()).collect())
    }

    /// ḟ of records in given directions, `(records, trained parameters)` for each.
    fn along(&self, dev: &mut Device<T>, x: &[T], n: usize, directions: &[Vec<T>]) -> Result<Vec<Vec<f64>>> {
        let x = dev.upload(x);
        let primal = self.net.primal_of(dev, x, n);
        let mut out = Vec::new();
        for u in directions {
            let u = dev.upload(u);
            let z = self.net.outputs_along(dev, &primal, u);
            out.push(dev.unload(z)?.iter().map(|v| v.to_f64()).collect());
        }
        primal.recycle(dev);
        Ok(out)
    }
}

fn rows<T: Real>(data: &Data<T>, ids: &[usize]) -> Vec<T> {
    ids.iter().flat_map(|&i| data.record(i)).copied().collect()
}

/// `‖g + f‖` from products, rounded up: a long sum must not look short, or it would not be clipped.
fn length<T: Real>(gg: f64, gf: f64, ff: f64) -> f64 {
    let rounding = 16.0 * if T::BYTES == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    ((gg + 2.0 * gf + ff).max(0.0) + rounding * (gg + ff)).sqrt()
}

/// `Σ clip(gᵢ + f(xᵢ))` over records.
pub(crate) fn clipped_gradient<T: Real>(
    (workers, net): (&Workers<T>, &Network<T>),
    data: &Data<T>,
    records: &[usize],
    (clip, map): (Clip, &Map<T>),
    draws: Option<Draws>,
) -> Result<BatchGradient<T>> {
    let size = net.records_at_a_time(data.input().length()).min(TOGETHER);
    let p = net.parameter_count();
    let parts = workers.map(records, size, |dev, piece| {
        let batch = data.upload(dev, net, piece, Label::Public);
        let primal = net.primal(dev, batch, Label::Public, draws);
        let (norms, losses) = primal.norms(dev, piece)?;
        let f = map.values(dev, data, piece)?;
        let each: Vec<&[f64]> = f.chunks_exact(map.places.len()).collect();
        let arrays: Vec<Vec<T>> = each.iter().map(|f| map.spread(f)).collect();
        let arrays: Vec<&[T]> = arrays.iter().map(Vec::as_slice).collect();
        let v = dev.upload(&net.interleaved(&arrays));
        let along = net.along(dev, &primal, &v, piece.len());
        let products = dev.download_scalars(&along)?;
        dev.put(v);
        let lengths: Vec<f64> = (0..piece.len())
            .map(|i| length::<T>(norms[i].powi(2), products[i], dot(each[i], each[i])))
            .collect();
        if let Some(i) = lengths.iter().position(|n| !n.is_finite()) {
            return Err(Error::NotFinite { subject: "the gradient of a record", position: piece[i] });
        }
        let shares: Vec<f64> = lengths.iter().map(|&n| Clipped::new(clip, n).s).collect();
        let mut sum = dev.zeros(p);
        let weights = dev.upload_scalars(&shares);
        net.add_weighted(dev, &primal, &weights, &mut sum);
        primal.recycle(dev);
        let mut sum = dev.unload(sum)?;
        for (j, &at) in map.places.iter().enumerate() {
            let own: f64 = each.iter().zip(&shares).map(|(f, s)| s * T::from_f64(f[j]).to_f64()).sum();
            sum[at] += T::from_f64(own);
        }
        Ok((sum, losses, lengths))
    })?;
    let mut out = BatchGradient { sum: vec![T::ZERO; p], far: None, losses: Vec::new(), norms: Vec::new() };
    for (sum, losses, norms) in parts {
        out.sum.iter_mut().zip(sum).for_each(|(o, s)| *o += s);
        out.losses.extend(losses);
        out.norms.extend(norms);
    }
    Ok(out)
}

/// The gradient of one record, its tangents, and the pass they are of.
fn own<T: Real>(
    (net, map): (&Network<T>, &Map<T>),
    dev: &mut Device<T>,
    (data, record): (&Data<T>, usize),
    tangents: &[Tangents<T>],
    (label, draws): (Label, Option<Draws>),
) -> Result<(Primal<T>, Own)> {
    let ids = [record];
    let batch = data.upload(dev, net, &ids, label);
    let primal = net.primal(dev, batch, label, draws);
    let (_, losses) = primal.norms(dev, &ids)?;
    let one = dev.upload_scalars(&[1.0]);
    let mut sum = dev.zeros(net.parameter_count());
    net.add_weighted(dev, &primal, &one, &mut sum);
    let g = map.gathered(&dev.unload(sum)?);
    let mut moved = Vec::new();
    for u in tangents {
        let (x, y) = (dev.upload(&u.x), u.y.as_ref().map(|y| dev.upload(y)));
        let pass = net.tangent(dev, &primal, Some(x), y, true);
        let mut sum = dev.zeros(net.parameter_count());
        net.add_weighted_tangent(dev, &primal, &pass, &one, &mut sum);
        pass.recycle(dev);
        moved.push(map.gathered(&dev.unload(sum)?));
    }
    Ok((primal, Own { loss: losses[0], g, tangents: moved }))
}

fn added(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}
