//! The average public gradient times one learned number, `c = a ḡ`: the objective is a function of one number, known from
//! five products of each record and the trace of its Jacobian.

use super::{Lesson, Perturbed};
use crate::{
    Clip, Real,
    clip::Clipped,
    engine::{Combination, pullback},
    error::Result,
};

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

/// The perturbation `a ḡ` for a step at the network's parameters.
pub(super) fn learn<T: Real>(lesson: &Lesson<'_, T>) -> Result<(Vec<f64>, Perturbed)> {
    let mean = lesson.mean()?;
    let mm: f64 = mean.iter().map(|v| v * v).sum();
    let each = products(lesson, &mean)?;
    let (clip, lambda) = (lesson.clip, lesson.lambda());
    let objective = |a: f64| {
        let relative = each.iter().map(|p| p.relative(a, mm, clip)).sum::<f64>() / each.len() as f64;
        (a * a * mm + lambda * relative, relative)
    };
    let typical = (each.iter().map(|p| p.gg).sum::<f64>() / each.len() as f64).sqrt();
    let unit = if mm > 0.0 { typical / mm.sqrt() } else { 0.0 };
    let a = if unit > 0.0 { least(|a| objective(a).0, unit) } else { 0.0 };
    let c: Vec<f64> = mean.iter().map(|v| a * v).collect();
    let report = Perturbed { without: objective(0.0).1, with: objective(a).1, ..Perturbed::of(&c, &mean) };
    Ok((c, report))
}

fn products<T: Real>(lesson: &Lesson<'_, T>, mean: &[f64]) -> Result<Vec<Products>> {
    let (net, public, all) = (lesson.net, lesson.public, lesson.all());
    let rounded: Vec<T> = mean.iter().map(|&v| T::from_f64(v)).collect();
    let own = pullback(net, public, &all, &rounded, |_, _| Combination { own: 1.0, shared: 0.0 })?;
    let shared = pullback(net, public, &all, &rounded, |_, _| Combination { own: 0.0, shared: 1.0 })?;
    let traces = lesson.traces()?;
    let d = own.input.len() / all.len().max(1);
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
    let of = |i: usize| {
        let (g, m) = (&own.input[i * d..(i + 1) * d], &shared.input[i * d..(i + 1) * d]);
        Products {
            gg: own.norms[i] * own.norms[i],
            gm: own.products[i],
            trace: traces[i],
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
