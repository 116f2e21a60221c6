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
//! | PLIS | `∇ₓ ‖clip(g)‖²/s²`, or of the raw gradient, `∇ₓ ‖g‖²/s²` ([`Signal`]) |
//! | JacSens | `‖J‖₂`, nothing clipped, no noise: [`Measure::jacobian_sensitivity`] |

mod along;
mod interval;
mod piece;
mod repeat;
mod trace;

pub use along::information_along;
pub(crate) use along::information_along_generic;
pub use interval::half_width;

pub(crate) use piece::dimension;

pub use crate::data::Label;
pub use leakscope_core::choice::Signal;

use crate::{
    Clip, Data, Network, Real,
    device::{Accounts, Device},
    engine::Workers,
    error::{Error, Result, check, check_finite, check_len},
    layer::Draws,
};
use leakscope_core::claim::Measured;
use piece::Piece;
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
    /// Of which gradient PLIS is.
    pub signal: Signal,
    /// Seed of probes and starting vectors.
    pub seed: u64,
    /// A perturbation c, for every parameter: what is released and measured is `clip(g + c)`. 0 where a parameter is frozen.
    pub shift: Option<Vec<f64>>,
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

impl Spectral {
    /// To what numbers of a precision allow. The eigenvalue is wrong by about the square of the residual: 1e-8 of it, or 1e-12
    /// in double precision, where a few more products bring it as near as anybody's.
    pub fn of<T: Real>() -> Self {
        let tolerance = if T::BYTES == 4 { Self::default().tolerance } else { 1e-6 };
        Self { tolerance, ..Self::default() }
    }
}

impl Default for Spectral {
    fn default() -> Self {
        Self { tolerance: 1e-4, iterations: 60 }
    }
}

/// What of PLIS to return. Beyond a hard clip the released norm no longer moves, and PLIS is zero; the smooth clip
/// leaves a little.
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
        return Err(Error::DoesNotChain { layer: 0, kind: "grid", actual: input.dims(), need });
    };
    check(size > 0, "the size of a superpixel", size as f64, "at least 1")?;
    let across = w.div_ceil(size);
    Ok((0..h * w * c).map(|i| (i / c / w / size * across + i / c % w / size) as u32).collect())
}

/// Groups of the values of a sequence by position: PLIS of every token.
pub fn by_position(length: usize, features: usize) -> Vec<u32> {
    (0..length * features).map(|i| (i / features) as u32).collect()
}

/// What one record gives away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordLeak {
    /// Its number in the data.
    pub record: usize,
    /// Its loss.
    pub loss: f64,
    /// Whether the network's answer is its label.
    pub right: bool,
    /// `‖g‖`; with a perturbation, `‖g + c‖`.
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
    /// Half of the 95% interval of `dfil`, by Student's t; absent where it is exact. See [`half_width`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dfil_half_width: Option<f64>,
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
            signal: Signal::default(),
            seed,
            shift: None,
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

    fn check<T: Real>(&self, net: &Network<T>, length: usize) -> Result<()> {
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
        if let Some(c) = &self.shift {
            check_len("the perturbation", c.len(), net.parameter_count())?;
            check_finite("the perturbation", c)?;
            let stray = c.iter().zip(net.trained()).position(|(c, trained)| *c != 0.0 && !trained);
            if let Some(at) = stray {
                let reason = format!("it moves parameter {at}, which is frozen: expected 0 there");
                return Err(Error::Format { subject: "the perturbation", reason });
            }
        }
        if let Plis::Superpixels(groups) = &self.plis {
            check_len("the superpixels", groups.len(), net.values(length))?;
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
    measures: &Measure,
) -> Result<Vec<RecordLeak>> {
    data.check(net)?;
    data.check_records(records)?;
    T::measure(&Workers::of(net), net, data, records, measures, None)
}

pub(crate) fn measure_generic<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    measures: &Measure,
    draws: Option<Draws>,
) -> Result<Vec<RecordLeak>> {
    let length = data.input().length();
    measures.check(net, length)?;
    // what speaks of every value of a record needs records of one size
    if measures.trace == Trace::Elements || !matches!(measures.plis, Plis::Skip | Plis::Record) {
        data.check_even()?;
    }
    let size = net.records_at_a_time(length);
    let mut parts = workers
        .map_data(data, records, size, |dev, ids| piece::measure(net, data, dev, ids, measures, draws))?;
    match parts.len() {
        1 => Ok(parts.remove(0)),
        _ => Ok(parts.into_iter().flatten().collect()),
    }
}

/// Adds what records give away to accounts on a GPU. The first record whose numbers are not finite is an error.
pub(crate) fn account<T: Real>(
    dev: &mut Device<T>,
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    (measures, draws): (&Measure, Option<Draws>),
    accounts: &mut Accounts,
) -> Result<()> {
    let length = data.input().length();
    measures.check(net, length)?;
    for ids in records.chunks(net.records_at_a_time(length).max(1)) {
        piece::account(net, data, dev, ids, (measures, draws), accounts)?;
    }
    match dev.bad_account(accounts)? {
        None => Ok(()),
        Some(position) => Err(Error::NotFinite { subject: "the leakage of a record", position }),
    }
}

/// `‖J u‖²/s²` of given tangents of the records, `(probes, records, d)`: probe-major, as is the answer.
pub fn tangent_squares<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    tangents: &[T],
    measures: &Measure,
) -> Result<Vec<f64>> {
    data.check(net)?;
    data.check_even()?;
    data.check_records(records)?;
    let length = data.input().length();
    measures.check(net, length)?;
    check_finite("the tangents", tangents)?;
    let (n, d) = (records.len(), net.values(length));
    if n == 0 {
        return Err(Error::Empty);
    }
    let probes = tangents.len() / (n * d);
    check_len("the tangents", tangents.len(), probes * n * d)?;
    let size = net.records_at_a_time(length);
    let starts: Vec<usize> = (0..n).collect();
    let parts = Workers::of(net).map(&starts, size, |dev, at| {
        let ids: Vec<usize> = at.iter().map(|&i| records[i]).collect();
        let p = Piece::new(net, data, dev, &ids, measures, None)?;
        let mut out = Vec::new();
        for probe in 0..probes {
            let u = dev.upload(&tangents[(probe * n + at[0]) * d..][..at.len() * d]);
            out.push(p.squares(dev, Some(u), None)?);
        }
        p.primal.recycle(dev);
        Ok(out)
    })?;
    let out: Vec<f64> =
        (0..probes).flat_map(|probe| parts.iter().flat_map(move |p| p[probe].iter().copied())).collect();
    check_finite("the square of a tangent", &out)?;
    Ok(out)
}
