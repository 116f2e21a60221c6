//! The trace of the information: all basis tangents, or Hutchinson's estimate.

use super::{
    Label, Measure, Probe, RecordLeak, Trace, half_width,
    piece::Piece,
    repeat::{Repeat, Tangents},
};
use crate::{
    Real,
    device::{Buf, Device, ProbeSums, Scalars, Streams},
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
    measures: &Measure,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (n, d, k) = (out.len(), p.primal.values, p.labels());
    let mut sums = vec![0.0; n];
    let mut add = |squares: Vec<f64>| {
        for (i, s) in squares.into_iter().enumerate() {
            sums[i % n] += s;
            if measures.trace == Trace::Elements {
                out[i % n].information.push(s);
            }
        }
    };
    let group = together(n);
    let mut pass = Repeat::new(dev, n, d.div_ceil(group), p.far.is_none());
    for from in (0..d).step_by(group) {
        let to = (from + group).min(d);
        let u = dev.unit_rows(d, n, from, to);
        add(repeated(p, dev, &mut pass, (Some(u), None))?);
    }
    if measures.label == Label::Secret {
        for j in 0..k {
            let u = dev.unit_rows(k, n, j, j + 1);
            add(p.squares(dev, None, Some(u))?);
        }
    }
    for (i, (r, s)) in out.iter_mut().zip(sums).enumerate() {
        set_trace(r, s, None, p.own_dimension(i, measures.label));
    }
    Ok(())
}

/// [`Piece::squares`] of a pass that is repeated.
fn repeated<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    pass: &mut Repeat<T, Scalars>,
    tangents: Tangents<T>,
) -> Result<Vec<f64>> {
    match &p.far {
        None => p.squares(dev, tangents.0, tangents.1),
        Some(clips) => {
            let made = |dev: &mut Device<T>, tangents: Tangents<T>| Ok(p.far_squares(dev, clips, tangents));
            pass.run(dev, tangents, made, |dev, squares| dev.download_scalars(squares), |_, _| {})
        }
    }
}

/// Random probes on a GPU, whose signs are drawn there: the same as those of the processor. Absent where they are not.
pub(super) fn begin<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    measures: &Measure,
    probes: usize,
    kind: Probe,
) -> Result<Option<ProbeSums>> {
    let (Some(clips), Probe::Rademacher) = (&p.far, kind) else { return Ok(None) };
    let (n, d, k) = (p.records.len(), p.primal.values, p.labels());
    let secret = measures.label == Label::Secret;
    let records = dev.upload_index(&p.records.iter().map(|&i| i as u32).collect::<Vec<u32>>());
    let streams = Streams { seed: measures.seed, records: &records };
    let words = |width: usize| width.div_ceil(32);
    let apart = words(d) + if secret { words(k) } else { 0 };
    let mut sums = ProbeSums { sum: dev.scalars(n), square: dev.scalars(n) };
    let group = together(n);
    let mut pass = Repeat::new(dev, n, probes.div_ceil(group), false);
    for from in (0..probes).step_by(group) {
        let here = group.min(probes - from);
        let x = dev.random_signs(&streams, d, here, (from * apart, apart));
        let label = (from * apart + words(d), apart);
        let y = if secret { dev.random_signs(&streams, k, here, label) } else { None };
        let made = |dev: &mut Device<T>, tangents: Tangents<T>| Ok(p.far_squares(dev, clips, tangents));
        let add = |dev: &mut Device<T>, squares: &Scalars| {
            dev.add_probes(squares, &mut sums);
            Ok(())
        };
        pass.run(dev, (x, y), made, add, |_, _| {})?;
    }
    Ok(Some(sums))
}

/// Independent random probes, with the standard error of their mean.
pub(super) fn estimated<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    measures: &Measure,
    probes: usize,
    kind: Probe,
    out: &mut [RecordLeak],
) -> Result<()> {
    let (n, d, k) = (out.len(), p.primal.values, p.labels());
    // a stream per record: its probes are its own, and the same in any batch
    let mut streams: Vec<Generator> =
        out.iter().map(|r| Generator::new(measures.seed, Purpose::Probes, r.record as u64)).collect();
    let (mut sums, mut squares) = (vec![0.0; n], vec![0.0; n]);
    let group = together(n);
    for from in (0..probes).step_by(group) {
        let here = group.min(probes - from);
        let secret = measures.label == Label::Secret;
        let (mut x, mut y) = (Draws::new(kind, d), Draws::new(kind, k));
        for _ in 0..here {
            for rng in &mut streams {
                x.add(rng);
                if secret {
                    y.add(rng);
                }
            }
        }
        let u = x.upload(dev);
        let uy = secret.then(|| y.upload(dev));
        for (i, s) in p.squares(dev, Some(u), uy)?.into_iter().enumerate() {
            sums[i % n] += s;
            squares[i % n] += s * s;
        }
    }
    finish(p, measures, probes, (&sums, &squares), out);
    Ok(())
}

/// Mean and standard error from sums over probes of `‖J u‖²` and of its square.
pub(super) fn finish<T: Real>(
    p: &Piece<'_, T>,
    measures: &Measure,
    probes: usize,
    (sums, squares): (&[f64], &[f64]),
    out: &mut [RecordLeak],
) {
    let m = probes as f64;
    let t = half_width(1.0, probes);
    for (i, r) in out.iter_mut().enumerate() {
        let mean = sums[i] / m;
        let variance = ((squares[i] / m - mean * mean) * m / (m - 1.0)).max(0.0);
        let dimension = p.own_dimension(i, measures.label);
        let error = (variance / m).sqrt();
        set_trace(r, mean, Some(error), dimension);
        r.dfil_half_width = Some(t * (error / dimension as f64));
    }
}

/// Rows of random values, drawn one after another.
enum Draws {
    Gaussian(usize, Vec<f64>),
    /// 32 signs to a word: they become values on the device.
    Rademacher(usize, Vec<u32>),
}

impl Draws {
    fn new(kind: Probe, width: usize) -> Self {
        match kind {
            Probe::Gaussian => Self::Gaussian(width, Vec::new()),
            Probe::Rademacher => Self::Rademacher(width, Vec::new()),
        }
    }

    /// One more row.
    fn add(&mut self, rng: &mut Generator) {
        match self {
            Self::Gaussian(width, values) => values.extend((0..*width).map(|_| rng.normal())),
            Self::Rademacher(width, words) => words.extend((0..width.div_ceil(32)).map(|_| rng.bits())),
        }
    }

    fn upload<T: Real>(self, dev: &mut Device<T>) -> Buf<T> {
        match self {
            Self::Gaussian(_, values) => dev.upload(&values.into_iter().map(T::from_f64).collect::<Vec<T>>()),
            Self::Rademacher(width, words) => dev.signs(width, &words),
        }
    }
}
