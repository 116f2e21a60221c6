//! Perturbing gradients so that they give less away (Edmunds ch. 2, MATHS §5.3 and §11).
//!
//! A step releases `clip(g + c)` of a record instead of `clip(g)`, with a constant c that follows from public records and the
//! released parameters alone, so that it costs no record anything: a record that is absent adds nothing, not even c. With
//! `h = g + c`, `n = ‖h‖`, all that [`crate::leak`] measures is of h: `‖J‖² = s²‖J_g‖² + (2ss'/n + s'²)‖J_gᵀh‖²`.
//!
//! Here `c = a ḡ`, ḡ the average gradient of the public records, and a minimises over them, labels known,
//!
//! `‖c‖² + λ mean ‖J clip(g + c)‖²/‖clip(g + c)‖²`,
//!
//! a function of one number, known from five products of each record and the trace of its Jacobian.

use crate::{
    Clip, Data, Network, Real,
    clip::Clipped,
    device::{Buf, Device},
    engine::{Combination, Workers, pullback},
    error::{Error, Result, check},
    leak::{Measure, Plis, Probe, Trace},
    pass::Primal,
};
use serde::{Deserialize, Serialize};

/// How the perturbation is learned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Perturbing {
    /// λ: what the relative size of the Jacobian weighs against the size of the perturbation; published: 1000.
    pub lambda: f64,
    /// Gaussian probes of the Jacobian of each public record, at least 2; published: 2.
    pub probes: usize,
}

impl Default for Perturbing {
    fn default() -> Self {
        Self { lambda: 1e3, probes: 2 }
    }
}

impl Perturbing {
    pub(crate) fn check(self) -> Result<()> {
        let lambda = self.lambda;
        check(
            lambda > 0.0 && lambda.is_finite(),
            "lambda of the perturbation",
            lambda,
            "positive and finite",
        )?;
        check(self.probes >= 2, "the probes of the perturbation", self.probes as f64, "at least 2")
    }
}

/// What was learned for one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perturbed {
    /// a.
    pub scale: f64,
    /// `‖c‖`.
    pub norm: f64,
    /// Cosine of c with ḡ; 0 where either is 0.
    pub cosine: f64,
    /// Mean of `‖J‖²/‖·‖²` of what is released of the public records, without c.
    pub without: f64,
    /// The same with c.
    pub with: f64,
}

/// A perturbation on a device.
pub(crate) struct Shift<T> {
    pub(crate) array: Buf<T>,
    /// `‖c‖²`.
    square: f64,
}

impl<T: Real> Shift<T> {
    pub(crate) fn upload(dev: &mut Device<T>, values: &[f64]) -> Self {
        let rounded: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
        let square = rounded.iter().map(|v| v.to_f64() * v.to_f64()).sum();
        Self { array: dev.upload(&rounded), square }
    }

    /// `‖g + c‖` of every record, rounded up: where g nearly cancels c, products of rounded numbers must not make a long
    /// sum look short, or it would not be clipped.
    pub(crate) fn lengths(
        &self,
        net: &Network<T>,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        (records, norms): (&[usize], &[f64]),
    ) -> Result<Vec<f64>> {
        let along = net.along(dev, primal, &self.array, 1);
        let products = dev.download_scalars(&along)?;
        let rounding = 16.0 * if T::BYTES == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let length = |(g, p): (&f64, &f64)| {
            let sizes = g * g + self.square;
            ((sizes + 2.0 * p).max(0.0) + rounding * sizes).sqrt()
        };
        let lengths: Vec<f64> = norms.iter().zip(&products).map(length).collect();
        match lengths.iter().position(|n| !n.is_finite()) {
            None => Ok(lengths),
            Some(i) => Err(Error::NotFinite { what: "the gradient of a record", position: records[i] }),
        }
    }
}

/// What the objective needs of one public record: products of g and ḡ, and of `J_gᵀg` and `J_gᵀḡ`.
#[derive(Debug, Clone, Copy)]
struct Products {
    gg: f64,
    gm: f64,
    trace: f64,
    jgg: f64,
    jgm: f64,
    jmm: f64,
}

impl Products {
    /// `‖J clip(g + aḡ)‖²/‖clip(g + aḡ)‖²`.
    fn relative(&self, a: f64, mm: f64, clip: Clip) -> f64 {
        let n = (self.gg + 2.0 * a * self.gm + a * a * mm).max(0.0).sqrt();
        if n == 0.0 {
            return f64::INFINITY;
        }
        let c = Clipped::new(clip, n);
        let pulled = (self.jgg + 2.0 * a * self.jgm + a * a * self.jmm).max(0.0);
        // a trace from few probes may be below the part of it along h
        (c.s * c.s * self.trace + c.bend * pulled).max(0.0) / (c.s * n).powi(2)
    }
}

/// The perturbation for a step at the network's parameters.
pub(crate) fn learn<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    public: &Data<T>,
    clip: Clip,
    how: Perturbing,
    seed: u64,
) -> Result<(Vec<f64>, Perturbed)> {
    let all: Vec<usize> = (0..public.len()).collect();
    let sum = T::clipped_gradient(workers, net, public, &all, Clip::None, None, None)?.sum;
    let mean: Vec<f64> = sum.iter().map(|v| v.to_f64() / all.len() as f64).collect();
    let mm: f64 = mean.iter().map(|v| v * v).sum();
    let each = products(workers, net, public, &all, &mean, how, seed)?;
    let objective = |a: f64| {
        let relative = each.iter().map(|p| p.relative(a, mm, clip)).sum::<f64>() / each.len() as f64;
        (a * a * mm + how.lambda * relative, relative)
    };
    let typical = (each.iter().map(|p| p.gg).sum::<f64>() / each.len() as f64).sqrt();
    let unit = if mm > 0.0 { typical / mm.sqrt() } else { 0.0 };
    let a = if unit > 0.0 { least(|a| objective(a).0, unit) } else { 0.0 };
    let c: Vec<f64> = mean.iter().map(|v| a * v).collect();
    let norm = c.iter().map(|v| v * v).sum::<f64>().sqrt();
    let inner: f64 = c.iter().zip(&mean).map(|(c, m)| c * m).sum();
    let cosine = if norm > 0.0 { (inner / (norm * mm.sqrt())).clamp(-1.0, 1.0) } else { 0.0 };
    let report = Perturbed { scale: a, norm, cosine, without: objective(0.0).1, with: objective(a).1 };
    match [norm, report.with].iter().all(|v| v.is_finite()) {
        true => Ok((c, report)),
        false => Err(Error::NotFinite { what: "the perturbation learned on public records", position: 0 }),
    }
}

fn products<T: Real>(
    workers: &Workers<T>,
    net: &Network<T>,
    public: &Data<T>,
    all: &[usize],
    mean: &[f64],
    how: Perturbing,
    seed: u64,
) -> Result<Vec<Products>> {
    let rounded: Vec<T> = mean.iter().map(|&v| T::from_f64(v)).collect();
    let own = pullback(net, public, all, &rounded, |_, _| Combination { own: 1.0, shared: 0.0 })?;
    let shared = pullback(net, public, all, &rounded, |_, _| Combination { own: 0.0, shared: 1.0 })?;
    let what = Measure {
        trace: Trace::Estimate { probes: how.probes, probe: Probe::Gaussian },
        plis: Plis::Skip,
        ..Measure::new(Clip::None, 1.0, seed)
    };
    let leaks = T::measure(workers, net, public, all, &what, None)?;
    let d = own.input.len() / all.len().max(1);
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
    let of = |i: usize| {
        let (g, m) = (&own.input[i * d..(i + 1) * d], &shared.input[i * d..(i + 1) * d]);
        Products {
            gg: own.norms[i] * own.norms[i],
            gm: own.products[i],
            trace: leaks[i].trace.map_or(0.0, |t| t.value),
            jgg: dot(g, g),
            jgm: dot(g, m),
            jmm: dot(m, m),
        }
    };
    Ok((0..all.len()).map(of).collect())
}

/// Where a function is least: the best of 0 and of both signs of a logarithmic grid of three decades around `unit`, refined
/// by golden section between its neighbours.
fn least(f: impl Fn(f64) -> f64, unit: f64) -> f64 {
    let half: Vec<f64> = (-30..=30).map(|k| unit * 10f64.powf(f64::from(k) / 10.0)).collect();
    let mut grid: Vec<f64> = half.iter().rev().map(|v| -v).collect();
    grid.push(0.0);
    grid.extend(&half);
    let values: Vec<f64> = grid.iter().map(|&a| f(a)).collect();
    let best = (0..grid.len()).fold(0, |b, i| if values[i] < values[b] { i } else { b });
    let (mut low, mut high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..80 {
        let (x, y) = (high - ratio * (high - low), low + ratio * (high - low));
        if f(x) <= f(y) { high = y } else { low = x }
    }
    let refined = 0.5 * (low + high);
    if f(refined) < values[best] { refined } else { grid[best] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_value_is_found_on_either_side_of_zero() {
        for at in [-40.0, -0.3, 0.002, 7.0] {
            let a = least(|a| (a - at) * (a - at) + 1.0, 1.0);
            assert!((a - at).abs() < 1e-6 * (1.0 + at.abs()), "{a} {at}");
        }
        assert!(least(f64::abs, 1.0).abs() < 1e-9);
        // a minimum beyond a worse one
        let two = |a: f64| (a - 2.0).powi(2).min((a + 9.0).powi(2) + 0.1);
        assert!((least(two, 1.0) - 2.0).abs() < 1e-6);
    }
}
