//! What one record's gradient gives away at given parameters (MATHS §5).
//!
//! `J = ∂clip(g)/∂x` is the Jacobian of the released gradient, `s = σC` the noise (σ where nothing is clipped). One
//! release without sampling has the information `JᵀJ/s²`:
//!
//! | measure | formula |
//! |---|---|
//! | trace | `‖J‖²_F/s²`, exactly or by random probes; dFIL is the trace over the dimension |
//! | along | `‖Jᵀĝ‖²/s²`, the share of the trace along the gradient: what Poisson sampling needs |
//! | η | `‖J‖₂/s` |
//! | PLIS | `∇ₓ ‖clip(g)‖²/s²` |
//! | JacSens | `‖J‖₂`, nothing clipped, no noise: [`Measure::jacobian_sensitivity`] |

use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    device::{Buf, Device},
    engine::{Workers, is_right},
    error::{Error, Result, check, check_finite, check_len},
    lanczos::{Lanczos, largest},
    pass::Primal,
    random::{Generator, Purpose},
};
use leakscope_core::claim::Measured;
use serde::{Deserialize, Serialize};

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// How gradients are clipped before release.
    pub clip: Clip,
    /// Noise multiplier σ.
    pub sigma: f64,
    /// Whether the label is part of the record.
    pub label: Label,
    /// The trace of the information.
    pub trace: Trace,
    /// η.
    pub eta: Option<Spectral>,
    /// PLIS.
    pub plis: Plis,
    /// Seed of probes and starting vectors.
    pub seed: u64,
}

/// Whether the label is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The attacker knows it.
    Public,
    /// It is part of the record: its values (one-hot entries, or the target) are coordinates like those of x.
    Secret,
}

/// How the trace is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Trace {
    /// Not at all.
    Skip,
    /// All basis tangents.
    Exact,
    /// All basis tangents, and what each element of the record adds: the diagonal of the information.
    Elements,
    /// Hutchinson's estimate from independent probes, with its standard error.
    Estimate {
        /// At least 2.
        probes: usize,
        /// Distribution of the probes.
        probe: Probe,
    },
}

/// Distribution of random probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Signs.
    Rademacher,
    /// Normals.
    Gaussian,
}

/// How η is found: Lanczos on `JᵀJ`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spectral {
    /// Stop when the residual is below this share of the eigenvalue.
    pub tolerance: f64,
    /// Stop after this many products in any case.
    pub iterations: usize,
}

impl Default for Spectral {
    fn default() -> Self {
        Self { tolerance: 1e-4, iterations: 60 }
    }
}

/// What of PLIS to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plis {
    /// Nothing.
    Skip,
    /// Its norm per record.
    Record,
    /// Every input element (and the norm).
    Elements,
    /// The norm over groups of input elements: a group number per element, counted from 0. See [`grid`].
    Superpixels(Vec<u32>),
}

/// Groups of a regular grid of `size × size` pixels over an image, all channels of a pixel together.
pub fn grid(input: crate::Shape, size: usize) -> Result<Vec<u32>> {
    let crate::Shape::Image([h, w, c]) = input else {
        let need = "a grid of superpixels needs an image";
        return Err(Error::DoesNotChain { layer: 0, kind: "grid", found: input.dims(), need });
    };
    check(size > 0, "the size of a superpixel", size as f64, "at least 1")?;
    let across = w.div_ceil(size);
    Ok((0..h * w * c).map(|i| (i / c / w / size * across + i / c % w / size) as u32).collect())
}

/// What one record gives away.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordLeak {
    /// Its number in the data.
    pub record: usize,
    /// Its loss.
    pub loss: f64,
    /// Whether the network's answer is its label.
    pub right: bool,
    /// `‖g‖`.
    pub gradient_norm: f64,
    /// `‖clip(g)‖`.
    pub released_norm: f64,
    /// Trace of the information of one release without sampling.
    pub trace: Option<Measured>,
    /// The diagonal of the information, `η²` of every input element on its own (and of the label's values where it is
    /// secret); with [`Trace::Elements`].
    pub information: Vec<f64>,
    /// The trace over the dimension of the record.
    pub dfil: Option<Measured>,
    /// `‖Jᵀĝ‖²/s²`; with PLIS.
    pub along: Option<f64>,
    /// η with the residual it was found to.
    pub eta: Option<Eta>,
    /// Norm of PLIS; with the label secret, the label's part included.
    pub plis: Option<f64>,
    /// PLIS per element, or its norm per superpixel.
    pub plis_parts: Vec<f64>,
}

/// η of a record. The largest eigenvalue is never below η², and some eigenvalue lies within `residual·η²` of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Eta {
    /// `‖J‖₂/s`.
    pub value: f64,
    /// Relative residual of η² as an eigenvalue of `JᵀJ/s²`.
    pub residual: f64,
}

impl Measure {
    /// Trace by ten probes, η and PLIS norms of a gradient clipped at `clip` under noise σ.
    pub fn new(clip: Clip, sigma: f64, seed: u64) -> Self {
        Self {
            clip,
            sigma,
            label: Label::Public,
            trace: Trace::Estimate { probes: 10, probe: Probe::Rademacher },
            eta: None,
            plis: Plis::Record,
            seed,
        }
    }

    /// JacSens: the norms of the Jacobian itself. `eta` is the spectral norm, `trace` the squared Frobenius norm.
    pub fn jacobian_sensitivity(seed: u64) -> Self {
        Self { eta: Some(Spectral::default()), plis: Plis::Skip, ..Self::new(Clip::None, 1.0, seed) }
    }

    /// `s = σC`.
    pub fn noise(&self) -> f64 {
        self.sigma * self.clip.unit()
    }

    fn check<T: Real>(&self, net: &Network<T>) -> Result<()> {
        self.clip.check()?;
        check(self.sigma > 0.0 && self.sigma.is_finite(), "sigma", self.sigma, "positive and finite")?;
        if let Trace::Estimate { probes, .. } = self.trace {
            check(probes >= 2, "the number of probes", probes as f64, "at least 2, for a standard error")?;
        }
        if let Some(s) = self.eta {
            check(
                s.tolerance > 0.0 && s.tolerance < 1.0,
                "the tolerance of eta",
                s.tolerance,
                "between 0 and 1",
            )?;
            check(s.iterations >= 1, "the iterations of eta", s.iterations as f64, "at least 1")?;
        }
        if let Plis::Superpixels(groups) = &self.plis {
            check_len("the superpixels", groups.len(), net.input().len())?;
            let largest = groups.iter().max().copied().unwrap_or(0);
            check(
                (largest as usize) < groups.len(),
                "a superpixel number",
                f64::from(largest),
                "below the input size",
            )?;
        }
        Ok(())
    }
}

/// Measures records. The numbers of a record do not depend on which others are measured with it.
pub fn measure<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    what: &Measure,
) -> Result<Vec<RecordLeak>> {
    data.check(net)?;
    data.check_records(records)?;
    measure_with(&Workers::new(), net, data, records, what)
}

pub(crate) fn measure_with<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    what: &Measure,
) -> Result<Vec<RecordLeak>> {
    what.check(net)?;
    let parts = workers.map(records, net.records_at_a_time(), |dev, ids| piece(net, data, dev, ids, what))?;
    Ok(parts.into_iter().flatten().collect())
}

/// `‖J u‖²/s²` of given tangents of the records, `(probes, records, d)`: probe-major, as is the answer.
pub fn tangent_squares<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    tangents: &[T],
    what: &Measure,
) -> Result<Vec<f64>> {
    data.check(net)?;
    data.check_records(records)?;
    what.check(net)?;
    check_finite("the tangents", tangents)?;
    let (n, d) = (records.len(), net.input().len());
    if n == 0 {
        return Err(Error::Empty);
    }
    let probes = tangents.len() / (n * d);
    check_len("the tangents", tangents.len(), probes * n * d)?;
    let size = net.records_at_a_time();
    let starts: Vec<usize> = (0..n).collect();
    let parts = Workers::new().map(&starts, size, |dev, at| {
        let ids: Vec<usize> = at.iter().map(|&i| records[i]).collect();
        let p = Piece::new(net, data, dev, &ids, what)?;
        let mut out = Vec::new();
        for probe in 0..probes {
            let u = dev.upload(&tangents[(probe * n + at[0]) * d..][..at.len() * d]);
            out.push(p.squares(dev, Some(u), None));
        }
        p.primal.recycle(dev);
        Ok(out)
    })?;
    Ok((0..probes).flat_map(|probe| parts.iter().flat_map(move |p| p[probe].iter().copied())).collect())
}

/// One piece of a batch: its primal pass and its clips.
struct Piece<'a, T> {
    net: &'a Network<T>,
    primal: Primal<T>,
    norms: Vec<f64>,
    clips: Vec<Clipped>,
    /// `1/s²`.
    precision: f64,
}

impl<'a, T: Real> Piece<'a, T> {
    fn new(
        net: &'a Network<T>,
        data: &Data<T>,
        dev: &mut Device<T>,
        ids: &[usize],
        what: &Measure,
    ) -> Result<Self> {
        let (x, y) = data.upload(dev, ids);
        let primal = net.primal(dev, x, y, ids.len());
        let norms: Vec<f64> = primal.square.iter().map(|s| s.max(0.0).sqrt()).collect();
        if let Some(i) = norms.iter().zip(&primal.losses).position(|(n, l)| !n.is_finite() || !l.is_finite())
        {
            return Err(Error::NotFinite { what: "the gradient of a record", position: ids[i] });
        }
        let clips = norms.iter().map(|&n| Clipped::new(what.clip, n)).collect();
        Ok(Self { net, primal, norms, clips, precision: 1.0 / (what.noise() * what.noise()) })
    }

    /// `‖J u‖²/s²` for tangents, probe-major.
    fn squares(&self, dev: &mut Device<T>, x: Option<Buf<T>>, y: Option<Buf<T>>) -> Vec<f64> {
        let pass = self.net.tangent(dev, &self.primal, x, y, false);
        let both = pass.cross.iter().zip(&pass.square).enumerate();
        let out = both
            .map(|(i, (&c, &s))| self.precision * self.clips[i % self.norms.len()].square(c, s))
            .collect();
        pass.recycle(dev);
        out
    }

    /// `JᵀJ u/s²` for one tangent per record.
    fn information(&self, dev: &mut Device<T>, x: Buf<T>, y: Option<Buf<T>>) -> (Buf<T>, Buf<T>) {
        let pass = self.net.tangent(dev, &self.primal, Some(x), y, true);
        let alpha: Vec<f64> = self.clips.iter().map(|c| self.precision * c.s * c.s).collect();
        let beta: Vec<f64> =
            self.clips.iter().zip(&pass.cross).map(|(c, x)| self.precision * c.bend * x).collect();
        let out = self.net.adjoint(dev, &self.primal, Some(&pass), &alpha, &beta);
        pass.recycle(dev);
        out
    }

    /// `J_gᵀ g` of the unclipped gradient.
    fn pullback(&self, dev: &mut Device<T>) -> (Buf<T>, Buf<T>) {
        let n = self.norms.len();
        self.net.adjoint(dev, &self.primal, None, &vec![0.0; n], &vec![1.0; n])
    }
}

fn piece<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    dev: &mut Device<T>,
    ids: &[usize],
    what: &Measure,
) -> Result<Vec<RecordLeak>> {
    let p = Piece::new(net, data, dev, ids, what)?;
    let k = net.outputs();
    let z = dev.download(&p.primal.outputs);
    let mut out: Vec<RecordLeak> = ids
        .iter()
        .enumerate()
        .map(|(i, &record)| RecordLeak {
            record,
            loss: p.primal.losses[i],
            right: is_right(&z[i * k..(i + 1) * k], data.label(record)),
            gradient_norm: p.norms[i],
            released_norm: p.norms[i] * p.clips[i].s,
            trace: None,
            dfil: None,
            information: Vec::new(),
            along: None,
            eta: None,
            plis: None,
            plis_parts: Vec::new(),
        })
        .collect();
    match what.trace {
        Trace::Skip => {}
        Trace::Exact | Trace::Elements => exact_trace(&p, dev, what, &mut out),
        Trace::Estimate { probes, probe } => estimated_trace(&p, dev, what, probes, probe, &mut out),
    }
    if what.plis != Plis::Skip {
        plis(&p, dev, what, &mut out);
    }
    if let Some(spectral) = what.eta {
        eta(&p, dev, what, spectral, &mut out);
    }
    p.primal.recycle(dev);
    let finite = |r: &RecordLeak| {
        r.trace.is_none_or(|t| t.value.is_finite())
            && r.eta.is_none_or(|e| e.value.is_finite() && e.residual.is_finite())
            && r.plis.is_none_or(f64::is_finite)
    };
    match out.iter().find(|r| !finite(r)) {
        Some(r) => Err(Error::NotFinite { what: "the leakage of a record", position: r.record }),
        None => Ok(out),
    }
}

/// Dimension of the secret.
fn dimension<T: Real>(net: &Network<T>, label: Label) -> usize {
    let d = net.input().len();
    match label {
        Label::Public => d,
        Label::Secret => d + net.outputs(),
    }
}

fn set_trace(out: &mut RecordLeak, value: f64, standard_error: Option<f64>, dimension: usize) {
    let d = dimension as f64;
    out.trace = Some(Measured { value, standard_error });
    out.dfil = Some(Measured { value: value / d, standard_error: standard_error.map(|e| e / d) });
}

/// Basis tangents that ride together.
fn together(records: usize) -> usize {
    (16 / records.max(1)).clamp(1, 8)
}

fn exact_trace<T: Real>(p: &Piece<'_, T>, dev: &mut Device<T>, what: &Measure, out: &mut [RecordLeak]) {
    let (n, d, k) = (out.len(), p.net.input().len(), p.net.outputs());
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
        add(p.squares(dev, Some(u), None));
    }
    if what.label == Label::Secret {
        for j in 0..k {
            let mut u = vec![T::ZERO; n * k];
            (0..n).for_each(|i| u[i * k + j] = T::ONE);
            let u = dev.upload(&u);
            add(p.squares(dev, None, Some(u)));
        }
    }
    for (r, s) in out.iter_mut().zip(sums) {
        set_trace(r, s, None, dimension(p.net, what.label));
    }
}

fn estimated_trace<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    probes: usize,
    kind: Probe,
    out: &mut [RecordLeak],
) {
    let (n, d, k) = (out.len(), p.net.input().len(), p.net.outputs());
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
        for (i, s) in p.squares(dev, Some(u), uy).into_iter().enumerate() {
            sums[i % n] += s;
            squares[i % n] += s * s;
        }
    }
    let m = probes as f64;
    for (i, r) in out.iter_mut().enumerate() {
        let mean = sums[i] / m;
        let variance = ((squares[i] / m - mean * mean) * m / (m - 1.0)).max(0.0);
        set_trace(r, mean, Some((variance / m).sqrt()), dimension(p.net, what.label));
    }
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

fn plis<T: Real>(p: &Piece<'_, T>, dev: &mut Device<T>, what: &Measure, out: &mut [RecordLeak]) {
    let (d, k) = (p.net.input().len(), p.net.outputs());
    let (x, y) = p.pullback(dev);
    let (xs, ys) = (dev.download(&x), dev.download(&y));
    for (i, r) in out.iter_mut().enumerate() {
        let c = &p.clips[i];
        let row = xs[i * d..(i + 1) * d].iter().map(|v| v.to_f64());
        let label = match what.label {
            Label::Public => 0.0,
            Label::Secret => ys[i * k..(i + 1) * k].iter().map(|v| v.to_f64().powi(2)).sum(),
        };
        let square = row.clone().map(|v| v * v).sum::<f64>() + label;
        // Jᵀĝ = (s + n s') J_gᵀ g/n
        let n = p.norms[i];
        r.along = Some(if n > 0.0 { p.precision * c.slope * c.slope * square / (n * n) } else { 0.0 });
        // ∇ₓ (s n)² = 2 s (s + n s') J_gᵀ g
        let scale = 2.0 * p.precision * c.s * c.slope;
        r.plis = Some(scale.abs() * square.sqrt());
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
    dev.put(x);
    dev.put(y);
}

fn eta<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    what: &Measure,
    spectral: Spectral,
    out: &mut [RecordLeak],
) {
    let (n, d, k) = (out.len(), p.net.input().len(), p.net.outputs());
    let (secret, dim) = (what.label == Label::Secret, dimension(p.net, what.label));
    // streams apart from those of the probes
    let mut states: Vec<Lanczos> = out
        .iter()
        .map(|r| {
            let mut rng = Generator::new(what.seed ^ 0x6574_6100, Purpose::Probes, r.record as u64);
            Lanczos::new((0..dim).map(|_| rng.normal()).collect())
        })
        .collect();
    for _ in 0..spectral.iterations.min(dim) {
        let mut x = Vec::with_capacity(n * d);
        let mut y = Vec::with_capacity(n * k);
        for s in &states {
            x.extend(s.current()[..d].iter().map(|&v| T::from_f64(v)));
            y.extend(s.current()[d..].iter().map(|&v| T::from_f64(v)));
        }
        let (x, y) = (dev.upload(&x), secret.then(|| dev.upload(&y)));
        let (bx, by) = p.information(dev, x, y);
        let (xs, ys) = (dev.download(&bx), dev.download(&by));
        for (i, s) in states.iter_mut().enumerate() {
            let label = if secret { &ys[i * k..(i + 1) * k] } else { &[] };
            s.advance(xs[i * d..(i + 1) * d].iter().chain(label).map(|v| v.to_f64()).collect());
        }
        dev.put(bx);
        dev.put(by);
        if states.iter().all(|s| s.done() || largest(s).1 <= spectral.tolerance) {
            break;
        }
    }
    for (r, s) in out.iter_mut().zip(&states) {
        let (value, residual) = largest(s);
        r.eta = Some(Eta { value: value.max(0.0).sqrt(), residual });
    }
}
