//! The measures of one piece of a batch.

use super::{Eta, Label, Measure, Plis, RecordLeak, Signal, Spectral, Trace, trace};
use crate::{
    Data, Network, Real,
    clip::Clipped,
    device::{Buf, Device},
    error::{Error, Result},
    lanczos::{Bases, Tridiagonal, unit},
    layer::Draws,
    pass::{OwnDirection, Primal, Pulled, SharedDirection},
    perturb::Shift,
    random::{Generator, Purpose},
};
use rayon::prelude::*;
use std::cell::OnceCell;

/// One piece of a batch: its primal pass and its clips.
pub(super) struct Piece<'a, T> {
    pub(super) net: &'a Network<T>,
    pub(super) primal: Primal<T>,
    /// Positions of every record, without padding.
    lengths: Vec<usize>,
    /// `‖g‖`, or `‖g + c‖`.
    norms: Vec<f64>,
    losses: Vec<f64>,
    clips: Vec<Clipped>,
    /// `1/s²`.
    precision: f64,
    shift: Option<Shift<T>>,
    /// `J_gᵀc` with respect to the record and to its label, once it was asked for.
    tilt: OnceCell<(Vec<f64>, Vec<f64>)>,
}

impl<'a, T: Real> Piece<'a, T> {
    pub(super) fn new(
        net: &'a Network<T>,
        data: &Data<T>,
        dev: &mut Device<T>,
        ids: &[usize],
        what: &Measure,
        draws: Option<Draws>,
    ) -> Result<Self> {
        let batch = data.upload(dev, net, ids, what.label);
        let primal = net.primal(dev, batch, what.label, draws);
        let (mut norms, losses) = primal.norms(dev, ids)?;
        let shift = what.shift.as_ref().map(|c| Shift::upload(dev, c));
        if let Some(shift) = &shift {
            norms = shift.lengths(net, dev, &primal, (ids, &norms))?;
        }
        let clips = norms.par_iter().with_min_len(512).map(|&n| Clipped::new(what.clip, n)).collect();
        let precision = 1.0 / (what.noise() * what.noise());
        let lengths = ids.iter().map(|&i| data.length_of(i)).collect();
        Ok(Self { net, primal, lengths, norms, losses, clips, precision, shift, tilt: OnceCell::new() })
    }

    /// `c·ġ = (J_gᵀc)·u` for tangents of records and labels, probe-major; absent without a perturbation.
    fn tilted(
        &self,
        dev: &mut Device<T>,
        x: Option<&Buf<T>>,
        y: Option<&Buf<T>>,
    ) -> Result<Option<Vec<f64>>> {
        let Some(shift) = &self.shift else { return Ok(None) };
        let (n, d, k) = (self.norms.len(), self.primal.values, self.labels());
        if self.tilt.get().is_none() {
            let weights = dev.upload_scalars(&vec![1.0; n]);
            let shared = SharedDirection { array: &shift.array, copies: 1, weights: &weights };
            let pulled = self.net.adjoint(dev, &self.primal, None, Some(&shared))?;
            // nobody else can have set it
            self.tilt.set(pulled).ok();
        }
        let Some((wx, wy)) = self.tilt.get() else { return Ok(None) };
        let mut out = Vec::new();
        for (w, u, width) in [(wx, x, d), (wy, y, k)] {
            let Some(u) = u else { continue };
            let u = dev.download(u)?;
            out.resize(u.len() / width, 0.0);
            for (row, (o, u)) in out.iter_mut().zip(u.chunks_exact(width)).enumerate() {
                let w = &w[row % n * width..][..width];
                *o += w.iter().zip(u).map(|(w, u)| w * u.to_f64()).sum::<f64>();
            }
        }
        Ok(Some(out))
    }

    /// Values of one record's label.
    pub(super) fn labels(&self) -> usize {
        self.primal.outputs.len() / self.primal.records.max(1)
    }

    /// Dimension of the secret of every record, padding included.
    pub(super) fn dimension(&self, label: Label) -> usize {
        dimension(self.net, self.primal.length, label)
    }

    /// Dimension of the secret of record i of the piece.
    pub(super) fn own_dimension(&self, i: usize, label: Label) -> usize {
        dimension(self.net, self.lengths[i], label)
    }

    /// `‖J u‖²/s²` for tangents, probe-major.
    pub(super) fn squares(
        &self,
        dev: &mut Device<T>,
        x: Option<Buf<T>>,
        y: Option<Buf<T>>,
    ) -> Result<Vec<f64>> {
        let tilted = self.tilted(dev, x.as_ref(), y.as_ref())?;
        let pass = self.net.tangent(dev, &self.primal, x, y, false);
        let (mut cross, square) = (dev.download_scalars(&pass.cross)?, dev.download_scalars(&pass.square)?);
        cross.iter_mut().zip(tilted.into_iter().flatten()).for_each(|(c, t)| *c += t);
        let both = cross.iter().zip(&square).enumerate();
        let out = both
            .map(|(i, (&c, &s))| self.precision * self.clips[i % self.norms.len()].square(c, s))
            .collect();
        pass.recycle(dev);
        Ok(out)
    }

    /// `JᵀJ u/s²` for one tangent per record.
    pub(super) fn information(&self, dev: &mut Device<T>, x: Buf<T>, y: Option<Buf<T>>) -> Result<Pulled<T>> {
        let tilted = self.tilted(dev, Some(&x), y.as_ref())?;
        let pass = self.net.tangent(dev, &self.primal, Some(x), y, true);
        let each = |f: &dyn Fn(&Clipped) -> f64| self.clips.iter().map(f).collect::<Vec<f64>>();
        let alpha = dev.upload_scalars(&each(&|c| self.precision * c.s * c.s));
        let bend = dev.upload_scalars(&each(&|c| self.precision * c.bend));
        let beta = match tilted {
            None => dev.combined((&bend, &pass.cross), None),
            Some(tilted) => {
                let cross = dev.download_scalars(&pass.cross)?;
                let both = cross.iter().zip(&tilted).zip(&self.clips);
                dev.upload_scalars(
                    &both.map(|((c, t), clip)| self.precision * clip.bend * (c + t)).collect::<Vec<f64>>(),
                )
            }
        };
        let own = OwnDirection { tangent: Some(&pass), alpha: &alpha, beta: &beta };
        // D²ġ = s²ġ + bend (h·ġ)(g + c)
        let shared =
            self.shift.as_ref().map(|s| SharedDirection { array: &s.array, copies: 1, weights: &beta });
        let pulled = self.net.pulled(dev, &self.primal, Some(&own), shared.as_ref());
        pass.recycle(dev);
        Ok(pulled)
    }

    /// `J_gᵀ g` of the unclipped gradient, or `J_gᵀ(g + c)`.
    fn pullback(&self, dev: &mut Device<T>) -> Pulled<T> {
        let n = self.norms.len();
        let (alpha, beta) = (dev.scalars(n), dev.upload_scalars(&vec![1.0; n]));
        let own = OwnDirection { tangent: None, alpha: &alpha, beta: &beta };
        let shared =
            self.shift.as_ref().map(|s| SharedDirection { array: &s.array, copies: 1, weights: &beta });
        self.net.pulled(dev, &self.primal, Some(&own), shared.as_ref())
    }
}

/// Everything asked for, for the records of one piece.
pub(super) fn measure<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    dev: &mut Device<T>,
    ids: &[usize],
    what: &Measure,
    draws: Option<Draws>,
) -> Result<Vec<RecordLeak>> {
    let p = Piece::new(net, data, dev, ids, what, draws)?;
    let z: Vec<f64> = dev.download(&p.primal.outputs)?.iter().map(|v| v.to_f64()).collect();
    let k = p.labels();
    let mut out: Vec<RecordLeak> = ids
        .iter()
        .enumerate()
        .map(|(i, &record)| RecordLeak {
            record,
            loss: p.losses[i],
            right: data.judge(net, record, &z[i * k..(i + 1) * k]).1.is_some_and(|a| a.right == a.labels),
            gradient_norm: p.norms[i],
            released_norm: p.norms[i] * p.clips[i].s,
            trace: None,
            dfil: None,
            dfil_half_width: None,
            information: Vec::new(),
            along: None,
            eta: None,
            plis: None,
            plis_parts: Vec::new(),
        })
        .collect();
    match what.trace {
        Trace::Skip => {}
        Trace::Exact | Trace::Elements => trace::exact(&p, dev, what, &mut out)?,
        Trace::Estimate { probes, probe } => trace::estimated(&p, dev, what, probes, probe, &mut out)?,
    }
    if what.plis != Plis::Skip {
        plis(&p, dev, what, &mut out)?;
    }
    if let Some(spectral) = what.eta {
        eta(&p, dev, what, spectral, &mut out)?;
    }
    p.primal.recycle(dev);
    let finite = |r: &RecordLeak| {
        r.trace.is_none_or(|t| t.value.is_finite() && t.standard_error.is_none_or(f64::is_finite))
            && r.eta.is_none_or(|e| e.value.is_finite() && e.residual.is_finite())
            && [r.plis, r.along].into_iter().flatten().all(f64::is_finite)
            && r.plis_parts.iter().chain(&r.information).all(|v| v.is_finite())
    };
    match out.iter().find(|r| !finite(r)) {
        Some(r) => Err(Error::NotFinite { what: "the leakage of a record", position: r.record }),
        None => Ok(out),
    }
}

/// Dimension of the secret, of records of a length.
pub(crate) fn dimension<T: Real>(net: &Network<T>, length: usize, label: Label) -> usize {
    let d = net.values(length);
    match label {
        Label::Public => d,
        Label::Secret => d + net.outputs() * net.places(length),
    }
}

fn plis<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    out: &mut [RecordLeak],
) -> Result<()> {
    let d = p.primal.values;
    let pulled = p.pullback(dev);
    let [squares, labels] = pulled.squares(dev)?;
    let xs = match &what.plis {
        Plis::Skip | Plis::Record => Vec::new(),
        Plis::Elements | Plis::Superpixels(_) => pulled.download(dev)?.0,
    };
    pulled.recycle(dev);
    for (i, r) in out.iter_mut().enumerate() {
        let c = &p.clips[i];
        let square = match what.label {
            Label::Public => squares[i],
            Label::Secret => squares[i] + labels[i],
        };
        // Jᵀĝ = (s + n s') J_gᵀ g/n
        let n = p.norms[i];
        let along = if n > 0.0 { c.slope * (square.sqrt() / n) } else { 0.0 };
        r.along = Some(p.precision * along * along);
        // ∇ₓ (s n)² = 2 s (s + n s') J_gᵀ g
        let scale = match what.signal {
            Signal::Released => 2.0 * p.precision * c.s * c.slope,
            Signal::Raw => 2.0 * p.precision,
        };
        r.plis = Some(scale.abs() * square.sqrt());
        let row = xs.iter().skip(i * d).take(d);
        r.plis_parts = match &what.plis {
            Plis::Skip | Plis::Record => Vec::new(),
            Plis::Elements => row.map(|v| scale * v).collect(),
            Plis::Superpixels(groups) => {
                let mut sums = vec![0.0; groups.iter().max().map_or(0, |m| *m as usize + 1)];
                row.zip(groups).for_each(|(v, &g)| sums[g as usize] += v * v);
                sums.into_iter().map(|s| scale.abs() * s.sqrt()).collect()
            }
        };
    }
    Ok(())
}

fn eta<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    spectral: Spectral,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (n, d, k) = (out.len(), p.primal.values, p.labels());
    let (secret, dim) = (what.label == Label::Secret, p.dimension(what.label));
    // a little above the rounding of products
    let rounding = if T::BYTES == 4 { 1e-7 } else { 1e-14 };
    // streams apart from those of the probes
    let starts = out.par_iter().flat_map_iter(|r| {
        let mut rng = Generator::new(what.seed ^ 0x6574_6100, Purpose::Probes, r.record as u64);
        unit((0..dim).map(|_| rng.normal()).collect())
    });
    let iterations = spectral.iterations.min(dim);
    let mut bases = Bases::new(dev, n, [d, if secret { k } else { 0 }], iterations, starts.collect());
    let mut states: Vec<Tridiagonal> = vec![Tridiagonal::new(rounding, dim); n];
    let mut settled = vec![false; n];
    for _ in 0..iterations {
        let (x, y) = bases.current(dev);
        let products = p.information(dev, x, y)?;
        let numbers = bases.advance(dev, products, &settled)?;
        states.par_iter_mut().zip(&mut settled).zip(&numbers).for_each(|((s, settled), &(a, b))| {
            if !*settled {
                s.push(a, b);
                // each stops where it would alone: its η does not depend on the others of the piece
                *settled = s.done() || s.largest().1 <= spectral.tolerance;
            }
        });
        if !settled.contains(&false) {
            break;
        }
    }
    for (r, s) in out.iter_mut().zip(&states) {
        let (value, residual) = s.largest();
        // NaN is caught by the caller; `max` would hide it
        let value = if value < 0.0 { 0.0 } else { value.sqrt() };
        r.eta = Some(Eta { value, residual });
    }
    Ok(())
}
