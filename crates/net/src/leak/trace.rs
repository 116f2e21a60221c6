//! The trace of the information: all basis tangents, or Hutchinson's estimate.

use super::{Label, Measure, Probe, RecordLeak, Trace, half_width, piece::Piece};
use crate::{
    Real,
    device::Device,
    error::Result,
    random::{Generator, Purpose},
};
use leakscope_core::claim::Measured;

fn set_trace(out: &mut RecordLeak, value: f64, standard_error: Option<f64>, dimension: usize) {
    let d = dimension as f64;
    out.trace = Some(Measured { value, standard_error });
    out.dfil = Some(Measured { value: value / d, standard_error: standard_error.map(|e| e / d) });
}

/// Basis tangents that ride together.
fn together(records: usize) -> usize {
    (16 / records.max(1)).clamp(1, 8)
}

/// All basis tangents.
pub(super) fn exact<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (n, d, k) = (out.len(), p.primal.values, p.labels());
    let mut sums = vec![0.0; n];
    let mut add = |squares: Vec<f64>| {
        for (i, s) in squares.into_iter().enumerate() {
            sums[i % n] += s;
            if what.trace == Trace::Elements {
                out[i % n].information.push(s);
            }
        }
    };
    let group = together(n);
    for from in (0..d).step_by(group) {
        let to = (from + group).min(d);
        let mut u = vec![T::ZERO; (to - from) * n * d];
        for (probe, j) in (from..to).enumerate() {
            (0..n).for_each(|i| u[(probe * n + i) * d + j] = T::ONE);
        }
        let u = dev.upload(&u);
        add(p.squares(dev, Some(u), None)?);
    }
    if what.label == Label::Secret {
        for j in 0..k {
            let mut u = vec![T::ZERO; n * k];
            (0..n).for_each(|i| u[i * k + j] = T::ONE);
            let u = dev.upload(&u);
            add(p.squares(dev, None, Some(u))?);
        }
    }
    for (i, (r, s)) in out.iter_mut().zip(sums).enumerate() {
        set_trace(r, s, None, p.own_dimension(i, what.label));
    }
    Ok(())
}

/// Independent random probes, with the standard error of their mean.
pub(super) fn estimated<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    probes: usize,
    kind: Probe,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (n, d, k) = (out.len(), p.primal.values, p.labels());
    // a stream per record: its probes are its own, and the same in any batch
    let mut streams: Vec<Generator> =
        out.iter().map(|r| Generator::new(what.seed, Purpose::Probes, r.record as u64)).collect();
    let (mut sums, mut squares) = (vec![0.0; n], vec![0.0; n]);
    let group = together(n);
    for from in (0..probes).step_by(group) {
        let here = group.min(probes - from);
        let (mut u, mut uy) = (vec![T::ZERO; here * n * d], vec![T::ZERO; here * n * k]);
        for probe in 0..here {
            for (i, rng) in streams.iter_mut().enumerate() {
                let row = probe * n + i;
                fill(rng, kind, &mut u[row * d..(row + 1) * d]);
                if what.label == Label::Secret {
                    fill(rng, kind, &mut uy[row * k..(row + 1) * k]);
                }
            }
        }
        let u = dev.upload(&u);
        let uy = (what.label == Label::Secret).then(|| dev.upload(&uy));
        for (i, s) in p.squares(dev, Some(u), uy)?.into_iter().enumerate() {
            sums[i % n] += s;
            squares[i % n] += s * s;
        }
    }
    let m = probes as f64;
    let t = half_width(1.0, probes);
    for (i, r) in out.iter_mut().enumerate() {
        let mean = sums[i] / m;
        let variance = ((squares[i] / m - mean * mean) * m / (m - 1.0)).max(0.0);
        let dimension = p.own_dimension(i, what.label);
        let error = (variance / m).sqrt();
        set_trace(r, mean, Some(error), dimension);
        r.dfil_half_width = Some(t * (error / dimension as f64));
    }
    Ok(())
}

fn fill<T: Real>(rng: &mut Generator, kind: Probe, out: &mut [T]) {
    match kind {
        Probe::Gaussian => out.iter_mut().for_each(|o| *o = T::from_f64(rng.normal())),
        Probe::Rademacher => {
            for word in out.chunks_mut(32) {
                let bits = rng.bits();
                for (j, o) in word.iter_mut().enumerate() {
                    *o = if bits >> j & 1 == 0 { T::ONE } else { -T::ONE };
                }
            }
        }
    }
}
