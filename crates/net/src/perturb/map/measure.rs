//! What records give away when f is added to their gradients, which moves with them too.

use super::{Map, Tangents, added, length, own};
use crate::{
    Data, Network, Real,
    clip::Clipped,
    device::Device,
    engine::Workers,
    error::{Error, Result},
    layer::Draws,
    leak::{Label, Measure, Plis, Probe, RecordLeak, Signal, Trace},
    pass::{OwnDirection, SharedDirection},
    perturb::dot,
    random::{Generator, Purpose},
};
use leakscope_core::claim::Measured;

/// What records give away when f is added to their gradients: norms, and the trace and PLIS where they are asked for.
pub(crate) fn measure<T: Real>(
    (workers, net): (&Workers<T>, &Network<T>),
    data: &Data<T>,
    records: &[usize],
    (measures, map): (&Measure, &Map<T>),
    draws: Option<Draws>,
) -> Result<Vec<RecordLeak>> {
    workers.map(records, 1, |dev, ids| one(net, data, dev, ids[0], (measures, map), draws))
}

/// The directions that the trace is asked for in.
fn directions<T: Real>(measures: &Measure, record: usize, d: usize, k: usize) -> Vec<Tangents<T>> {
    let secret = measures.label == Label::Secret;
    match measures.trace {
        Trace::Skip => Vec::new(),
        Trace::Exact | Trace::Elements => {
            let unit = |n: usize, j: Option<usize>| -> Vec<T> {
                (0..n).map(|i| if Some(i) == j { T::ONE } else { T::ZERO }).collect()
            };
            let x = (0..d).map(|j| Tangents { x: unit(d, Some(j)), y: secret.then(|| unit(k, None)) });
            let y = (0..if secret { k } else { 0 })
                .map(|j| Tangents { x: unit(d, None), y: Some(unit(k, Some(j))) });
            x.chain(y).collect()
        }
        Trace::Estimate { probes, probe } => {
            let mut rng = Generator::new(measures.seed, Purpose::Probes, record as u64);
            let mut draw = |n: usize| -> Vec<T> {
                let one = |rng: &mut Generator| match probe {
                    Probe::Gaussian => rng.normal(),
                    Probe::Rademacher => rng.sign(),
                };
                (0..n).map(|_| T::from_f64(one(&mut rng))).collect()
            };
            (0..probes).map(|_| Tangents { x: draw(d), y: secret.then(|| draw(k)) }).collect()
        }
    }
}

fn one<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    dev: &mut Device<T>,
    record: usize,
    (measures, map): (&Measure, &Map<T>),
    draws: Option<Draws>,
) -> Result<RecordLeak> {
    let (d, k) = (data.input().len(), data.outputs() * data.places());
    let tangents = directions(measures, record, d, k);
    let (primal, own) = own((net, map), dev, (data, record), &tangents, (measures.label, draws))?;
    let x = data.record(record);
    let f = map.values(dev, data, &[record])?;
    let h = added(&own.g, &f);
    let n = length::<T>(dot(&own.g, &own.g), dot(&own.g, &f), dot(&f, &f));
    let clip = Clipped::new(measures.clip, n);
    let precision = 1.0 / (measures.noise() * measures.noise());
    let z: Vec<f64> = dev.download(&primal.outputs)?.iter().map(|v| v.to_f64()).collect();
    let mut out = RecordLeak {
        record,
        loss: own.loss,
        right: data.judge(net, record, &z).1.is_some_and(|a| a.right == a.labels),
        gradient_norm: n,
        released_norm: n * clip.s,
        trace: None,
        information: Vec::new(),
        dfil: None,
        dfil_half_width: None,
        along: None,
        eta: None,
        plis: None,
        plis_parts: Vec::new(),
    };
    if !tangents.is_empty() {
        let us: Vec<Vec<T>> = tangents.iter().map(|u| u.x.clone()).collect();
        let moved = map.along(dev, x, 1, &us)?;
        let square = |(g, f): (&Vec<f64>, &Vec<f64>)| {
            let k = added(g, f);
            precision * clip.square(dot(&h, &k), dot(&k, &k))
        };
        let squares: Vec<f64> = own.tangents.iter().zip(&moved).map(square).collect();
        let dimension = if measures.label == Label::Secret { d + k } else { d };
        set_trace(&mut out, &squares, measures.trace, dimension as f64);
    }
    if measures.plis != Plis::Skip {
        let (alpha, beta) = (dev.scalars(1), dev.upload_scalars(&[1.0]));
        let array = dev.upload(&map.spread(&f));
        let direction = OwnDirection { tangent: None, alpha: &alpha, beta: &beta };
        let shared = SharedDirection { array: &array, copies: 1, weights: &beta };
        let (wx, wy) = net.adjoint(dev, &primal, Some(&direction), Some(&shared))?;
        dev.put(array);
        let w = added(&wx, &map.pulled(dev, x, &h)?);
        let mut square = dot(&w, &w);
        if measures.label == Label::Secret {
            square += dot(&wy, &wy);
        }
        let along = if n > 0.0 { clip.slope * square.sqrt() / n } else { 0.0 };
        out.along = Some(precision * along * along);
        let scale = match measures.signal {
            Signal::Released => clip.s * clip.slope,
            Signal::Raw => 1.0,
        };
        out.plis = Some(2.0 * precision * scale.abs() * square.sqrt());
    }
    primal.recycle(dev);
    let numbers = [out.trace.map(|t| t.value), out.along, out.plis, Some(n)];
    match numbers.into_iter().flatten().all(f64::is_finite) {
        true => Ok(out),
        false => Err(Error::NotFinite { subject: "the leakage of a record", position: record }),
    }
}

fn set_trace(out: &mut RecordLeak, squares: &[f64], kind: Trace, dimension: f64) {
    let (sum, m) = (squares.iter().sum::<f64>(), squares.len() as f64);
    let (value, standard_error) = match kind {
        Trace::Estimate { .. } => {
            let mean = sum / m;
            let variance = squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (m - 1.0);
            (mean, Some((variance / m).sqrt()))
        }
        Trace::Skip | Trace::Exact | Trace::Elements => (sum, None),
    };
    if kind == Trace::Elements {
        out.information = squares.to_vec();
    }
    out.trace = Some(Measured { value, standard_error });
    out.dfil =
        Some(Measured { value: value / dimension, standard_error: standard_error.map(|e| e / dimension) });
}
