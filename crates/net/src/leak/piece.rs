//! The measures of one piece of a batch.

use super::{
    Eta, Label, Measure, Plis, RecordLeak, Signal, Spectral, Trace,
    repeat::{Repeat, Tangents},
    trace,
};
use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    device::{Accounts, Buf, Clips, Device, Mark, Pulled, Scalars, StepMeasures, Stop},
    error::{Error, Result},
    lanczos::Bases,
    layer::Draws,
    pass::{OwnDirection, Primal, SharedDirection, Shift},
};
use rayon::prelude::*;
use std::cell::OnceCell;

/// One piece of a batch: its primal pass and its clips.
pub(super) struct Piece<'a, T> {
    pub(super) net: &'a Network<T>,
    pub(super) primal: Primal<T>,
    pub(super) records: Vec<usize>,
    /// Positions of every record, without padding.
    lengths: Vec<usize>,
    clip: Clip,
    /// `‖g‖` and losses of the records, once they were downloaded.
    downloaded: OnceCell<(Vec<f64>, Vec<f64>)>,
    /// Numbers of the records, once the host needs them.
    near: OnceCell<Near>,
    /// The clips on a GPU; absent on the processor, and with a perturbation.
    pub(super) far: Option<Clips>,
    /// The end of the primal pass in the queue of a GPU.
    primal_end: Option<Mark>,
    /// `1/s²`.
    precision: f64,
    shift: Option<Shift<T>>,
    /// `J_gᵀc` with respect to the record and to its label, once it was asked for.
    tilt: OnceCell<(Vec<f64>, Vec<f64>)>,
}

/// Numbers of the records of a piece.
pub(super) struct Near {
    /// `‖g‖`, or `‖g + c‖`.
    pub(super) norms: Vec<f64>,
    losses: Vec<f64>,
    pub(super) clips: Vec<Clipped>,
}

impl<'a, T: Real> Piece<'a, T> {
    pub(super) fn new(
        net: &'a Network<T>,
        data: &Data<T>,
        dev: &mut Device<T>,
        ids: &[usize],
        measures: &Measure,
        draws: Option<Draws>,
    ) -> Result<Self> {
        let batch = data.upload(dev, net, ids, measures.label);
        let primal = net.primal(dev, batch, measures.label, draws);
        let primal_end = dev.mark();
        let shift = measures.shift.as_ref().map(|c| Shift::upload(dev, c));
        let precision = 1.0 / (measures.noise() * measures.noise());
        let far = match &shift {
            None => dev.clips(measures.clip, &primal.square, precision),
            Some(_) => None,
        };
        let lengths = ids.iter().map(|&i| data.length_of(i)).collect();
        let (records, clip) = (ids.to_vec(), measures.clip);
        let (downloaded, near, tilt) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Self {
            net,
            primal,
            records,
            lengths,
            clip,
            downloaded,
            near,
            far,
            primal_end,
            precision,
            shift,
            tilt,
        })
    }

    /// Number of records.
    pub(super) fn count(&self) -> usize {
        self.records.len()
    }

    /// `‖g‖` and losses; of a GPU the primal pass is waited for.
    fn download(&self, dev: &Device<T>) -> Result<(Vec<f64>, Vec<f64>)> {
        if self.downloaded.get().is_none() {
            let downloaded = self.primal.norms_at(dev, &self.records, self.primal_end.as_ref())?;
            // nobody else can have set it
            self.downloaded.set(downloaded).ok();
        }
        self.downloaded.get().cloned().ok_or(Error::Empty)
    }

    /// The numbers of the records.
    pub(super) fn near(&self, dev: &mut Device<T>) -> Result<&Near> {
        if self.near.get().is_none() {
            let (mut norms, losses) = self.download(dev)?;
            if let Some(shift) = &self.shift {
                norms = shift.lengths(self.net, dev, &self.primal, (&self.records, &norms))?;
            }
            let clip = self.clip;
            let clips = norms.par_iter().with_min_len(512).map(|&n| Clipped::new(clip, n)).collect();
            // nobody else can have set it
            self.near.set(Near { norms, losses, clips }).ok();
        }
        self.near.get().ok_or(Error::Empty)
    }

    /// `c·ġ = (J_gᵀc)·u` for tangents of records and labels, probe-major; absent without a perturbation.
    fn tilted(
        &self,
        dev: &mut Device<T>,
        x: Option<&Buf<T>>,
        y: Option<&Buf<T>>,
    ) -> Result<Option<Vec<f64>>> {
        let Some(shift) = &self.shift else { return Ok(None) };
        let (n, d, k) = (self.count(), self.primal.values, self.labels());
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

    /// `‖J u‖²/s²` for tangents, probe-major, left on a GPU.
    pub(super) fn far_squares(&self, dev: &mut Device<T>, clips: &Clips, (x, y): Tangents<T>) -> Scalars {
        let pass = self.net.tangent(dev, &self.primal, x, y, false);
        let squares = dev.released_squares(clips, &pass.cross, &pass.square);
        pass.recycle(dev);
        squares
    }

    /// `‖J u‖²/s²` for tangents, probe-major.
    pub(super) fn squares(
        &self,
        dev: &mut Device<T>,
        x: Option<Buf<T>>,
        y: Option<Buf<T>>,
    ) -> Result<Vec<f64>> {
        let tilted = self.tilted(dev, x.as_ref(), y.as_ref())?;
        if let Some(clips) = &self.far {
            let squares = self.far_squares(dev, clips, (x, y));
            return dev.download_scalars(&squares);
        }
        let pass = self.net.tangent(dev, &self.primal, x, y, false);
        let clips = &self.near(dev)?.clips;
        let (mut cross, square) = (dev.download_scalars(&pass.cross)?, dev.download_scalars(&pass.square)?);
        cross.iter_mut().zip(tilted.into_iter().flatten()).for_each(|(c, t)| *c += t);
        let both = cross.iter().zip(&square).enumerate();
        let out = both.map(|(i, (&c, &s))| self.precision * clips[i % clips.len()].square(c, s)).collect();
        pass.recycle(dev);
        Ok(out)
    }

    /// `JᵀJ u/s²` for one tangent per record.
    pub(super) fn information(&self, dev: &mut Device<T>, x: Buf<T>, y: Option<Buf<T>>) -> Result<Pulled<T>> {
        let tilted = self.tilted(dev, Some(&x), y.as_ref())?;
        let pass = self.net.tangent(dev, &self.primal, Some(x), y, true);
        let uploaded = match &self.far {
            Some(_) => None,
            None => {
                let clips = &self.near(dev)?.clips;
                let each = |f: &dyn Fn(&Clipped) -> f64| clips.iter().map(f).collect::<Vec<f64>>();
                let alpha = dev.upload_scalars(&each(&|c| self.precision * c.s * c.s));
                Some((alpha, dev.upload_scalars(&each(&|c| self.precision * c.bend))))
            }
        };
        let far = self.far.as_ref().map(|c| (&c.alpha, &c.bend));
        let Some((alpha, bend)) = uploaded.as_ref().map(|(a, b)| (a, b)).or(far) else {
            return Err(Error::Empty);
        };
        let beta = match tilted {
            None => dev.combined((bend, &pass.cross), None),
            Some(tilted) => {
                let cross = dev.download_scalars(&pass.cross)?;
                let both = cross.iter().zip(&tilted).zip(&self.near(dev)?.clips);
                dev.upload_scalars(
                    &both.map(|((c, t), clip)| self.precision * clip.bend * (c + t)).collect::<Vec<f64>>(),
                )
            }
        };
        let own = OwnDirection { tangent: Some(&pass), alpha, beta: &beta };
        // D²ġ = s²ġ + bend (h·ġ)(g + c)
        let shared =
            self.shift.as_ref().map(|s| SharedDirection { array: &s.array, copies: 1, weights: &beta });
        let pulled = self.net.pulled(dev, &self.primal, Some(&own), shared.as_ref());
        pass.recycle(dev);
        Ok(pulled)
    }

    /// `J_gᵀ g` of the unclipped gradient, or `J_gᵀ(g + c)`.
    pub(super) fn pullback(&self, dev: &mut Device<T>) -> Pulled<T> {
        let n = self.count();
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
    measures: &Measure,
    draws: Option<Draws>,
) -> Result<Vec<RecordLeak>> {
    let p = Piece::new(net, data, dev, ids, measures, draws)?;
    if p.far.is_none() {
        // numbers that are not finite are found before anything is made of them
        p.download(dev)?;
    }
    let probes = match measures.trace {
        Trace::Estimate { probes, probe } => trace::begin(&p, dev, measures, probes, probe)?,
        Trace::Skip | Trace::Exact | Trace::Elements => None,
    };
    let pulled = (measures.plis != Plis::Skip).then(|| p.pullback(dev));
    // what the host works on while a GPU computes all of that
    let outputs = dev.download_at(&p.primal.outputs, p.primal_end.as_ref())?;
    let mut out = leaks(&p, data, &outputs, dev)?;
    match (measures.trace, probes) {
        (Trace::Skip, _) => {}
        (Trace::Exact | Trace::Elements, _) => trace::exact(&p, dev, measures, &mut out)?,
        (Trace::Estimate { probes, .. }, Some(sums)) => {
            let (sum, square) = (dev.download_scalars(&sums.sum)?, dev.download_scalars(&sums.square)?);
            trace::finish(&p, measures, probes, (&sum, &square), &mut out);
        }
        (Trace::Estimate { probes, probe }, None) => {
            trace::estimated(&p, dev, measures, probes, probe, &mut out)?
        }
    }
    if let Some(pulled) = pulled {
        plis(&p, dev, measures, pulled, &mut out)?;
    }
    if let Some(spectral) = measures.eta {
        eta(&p, dev, measures, spectral, &mut out)?;
    }
    p.primal.recycle(dev);
    let finite = |r: &RecordLeak| {
        r.trace.is_none_or(|t| t.value.is_finite() && t.standard_error.is_none_or(f64::is_finite))
            && r.eta.is_none_or(|e| e.value.is_finite() && e.residual.is_finite())
            && [r.plis, r.along].into_iter().flatten().all(f64::is_finite)
            && r.plis_parts.iter().chain(&r.information).all(|v| v.is_finite())
    };
    match out.iter().find(|r| !finite(r)) {
        Some(r) => Err(Error::NotFinite { subject: "the leakage of a record", position: r.record }),
        None => Ok(out),
    }
}

/// Adds what a step of training tells of the records of one piece to accounts on the device; nothing is waited for.
pub(super) fn account<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    dev: &mut Device<T>,
    ids: &[usize],
    (measures, draws): (&Measure, Option<Draws>),
    accounts: &mut Accounts,
) -> Result<()> {
    let p = Piece::new(net, data, dev, ids, measures, draws)?;
    let Trace::Estimate { probes, probe } = measures.trace else { return Ok(()) };
    let sums = trace::begin(&p, dev, measures, probes, probe)?;
    let pulled = p.pullback(dev);
    let [input, label] = pulled.squares_there(dev);
    if let (Some(sums), Some(clips)) = (&sums, &p.far) {
        let records = dev.upload_index(&ids.iter().map(|&i| i as u32).collect::<Vec<u32>>());
        let label = (measures.label == Label::Secret).then_some(&label);
        let step_measures =
            StepMeasures { records: &records, probes: (sums, probes), pulled: (&input, label), clips };
        dev.account(&step_measures, accounts);
    }
    pulled.recycle(dev);
    p.primal.recycle(dev);
    Ok(())
}

/// What is known of every record without any tangent.
fn leaks<T: Real>(
    p: &Piece<'_, T>,
    data: &Data<T>,
    outputs: &[T],
    dev: &mut Device<T>,
) -> Result<Vec<RecordLeak>> {
    let z: Vec<f64> = outputs.iter().map(|v| v.to_f64()).collect();
    let (net, k, near) = (p.net, p.labels(), p.near(dev)?);
    let leak = |(i, &record): (usize, &usize)| RecordLeak {
        record,
        loss: near.losses[i],
        right: data.right(net, record, &z[i * k..(i + 1) * k]),
        gradient_norm: near.norms[i],
        released_norm: near.norms[i] * near.clips[i].s,
        trace: None,
        dfil: None,
        dfil_half_width: None,
        information: Vec::new(),
        along: None,
        eta: None,
        plis: None,
        plis_parts: Vec::new(),
    };
    Ok(p.records.par_iter().with_min_len(512).enumerate().map(leak).collect())
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
    measures: &Measure,
    pulled: Pulled<T>,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (d, near, precision) = (p.primal.values, p.near(dev)?, p.precision);
    let [squares, labels] = pulled.squares(dev)?;
    let xs = match &measures.plis {
        Plis::Skip | Plis::Record => Vec::new(),
        Plis::Elements | Plis::Superpixels(_) => pulled.download(dev)?.0,
    };
    pulled.recycle(dev);
    out.par_iter_mut().with_min_len(512).enumerate().for_each(|(i, r)| {
        let c = &near.clips[i];
        let square = match measures.label {
            Label::Public => squares[i],
            Label::Secret => squares[i] + labels[i],
        };
        // Jᵀĝ = (s + n s') J_gᵀ g/n
        let n = near.norms[i];
        let along = if n > 0.0 { c.slope * (square.sqrt() / n) } else { 0.0 };
        r.along = Some(precision * along * along);
        // ∇ₓ (s n)² = 2 s (s + n s') J_gᵀ g
        let scale = match measures.signal {
            Signal::Released => 2.0 * precision * c.s * c.slope,
            Signal::Raw => 2.0 * precision,
        };
        r.plis = Some(scale.abs() * square.sqrt());
        let row = xs.iter().skip(i * d).take(d);
        r.plis_parts = match &measures.plis {
            Plis::Skip | Plis::Record => Vec::new(),
            Plis::Elements => row.map(|v| scale * v).collect(),
            Plis::Superpixels(groups) => {
                let mut sums = vec![0.0; groups.iter().max().map_or(0, |m| *m as usize + 1)];
                row.zip(groups).for_each(|(v, &g)| sums[g as usize] += v * v);
                sums.into_iter().map(|s| scale.abs() * s.sqrt()).collect()
            }
        };
    });
    Ok(())
}

fn eta<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    measures: &Measure,
    spectral: Spectral,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (d, k) = (p.primal.values, p.labels());
    let (secret, dim) = (measures.label == Label::Secret, p.dimension(measures.label));
    // a little above the rounding of products
    let rounding = if T::BYTES == 4 { 1e-7 } else { 1e-14 };
    let iterations = spectral.iterations.min(dim);
    // streams apart from those of the probes
    let seed = measures.seed ^ 0x6574_6100;
    let stop = Stop { rounding, dimension: dim, tolerance: spectral.tolerance };
    let widths = [d, if secret { k } else { 0 }];
    let mut bases = Bases::new(dev, &p.records, widths, (iterations, stop), seed);
    let mut pass = Repeat::new(dev, p.count(), iterations, p.far.is_none());
    for _ in 0..iterations {
        let (x, y) = bases.current(dev);
        let settled = pass.run(
            dev,
            (Some(x), y),
            |dev, (x, y)| p.information(dev, x.unwrap_or_default(), y),
            |dev, products| bases.advance(dev, products),
            |dev, products: Pulled<T>| products.recycle(dev),
        )?;
        if settled {
            break;
        }
    }
    for (r, (value, residual)) in out.iter_mut().zip(bases.largest(dev)?) {
        // NaN is caught by the caller; `max` would hide it
        let value = if value < 0.0 { 0.0 } else { value.sqrt() };
        r.eta = Some(Eta { value, residual });
    }
    Ok(())
}
