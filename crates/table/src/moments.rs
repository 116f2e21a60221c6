//! What is kept of the numbers of a column: moments that merge, and the first few distinct values.

use leakscope_core::pass::overflowing;
use serde::{Deserialize, Serialize};

/// Distinct numbers of the target that are remembered: enough to tell two classes, and to name a few.
pub(crate) const FEW: usize = 6;
/// Distinct numbers of the target that are counted: more than any model of classes takes.
const COUNTED: usize = 1000;

/// Count, mean, squared deviations and range, by the pairwise formulas of Chan, Golub and LeVeque. The mean
/// is kept as a value of the data and an offset from it, so that a large common offset costs no digits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    base: f64,
    #[serde(serialize_with = "overflowing::number")]
    offset: f64,
    #[serde(serialize_with = "overflowing::number")]
    m2: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Moments {
    pub(crate) fn of(values: &[f64]) -> Self {
        let Some(&x0) = values.first() else { return Self::default() };
        let n = values.len() as f64;
        let offset = sum(values, |x| x - x0) / n;
        let deviation = |x: f64| (x - x0) - offset;
        let drift = sum(values, deviation);
        let m2 = sum(values, |x| deviation(x) * deviation(x)) - drift * drift / n;
        // ∞ − ∞: squares that overflow are a spread without bound, not none.
        let m2 = if m2.is_nan() { f64::INFINITY } else { m2.max(0.0) };
        let (min, max) = values.iter().fold((x0, x0), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
        Self { count: values.len() as u64, base: x0, offset, m2, min, max }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = other;
            }
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let delta = (other.base - self.base) + (other.offset - self.offset);
        self.offset += delta * m / (n + m);
        self.m2 += other.m2 + delta * delta * n * m / (n + m);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
    }

    pub(crate) fn is_constant(&self) -> bool {
        self.min == self.max
    }

    /// A constant has exactly its value as its mean.
    pub(crate) fn mean(&self) -> f64 {
        if self.is_constant() { self.min } else { self.base + self.offset }
    }

    /// Population standard deviation; exactly 0 for a constant.
    pub(crate) fn sd(&self) -> f64 {
        if self.is_constant() || self.count == 0 { 0.0 } else { (self.m2 / self.count as f64).sqrt() }
    }

    /// The range of numbers that differ by so little that the squares of it are lost in rounding to 0.
    pub(crate) fn lost_spread(&self) -> Option<f64> {
        const LEAST: f64 = 1e-154;
        (self.count > 0 && !self.is_constant() && self.sd() < LEAST).then_some(self.max - self.min)
    }
}

/// Sum of `f(x)` in eight lanes, so that it vectorises and its order is fixed.
fn sum(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let chunks = values.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().map(|x| f(*x)).sum();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += f(*x));
    }
    lanes.iter().sum::<f64>() + rest
}

/// The first few distinct numbers with their counts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Distinct {
    pub(crate) values: Vec<(f64, u64)>,
    /// Whether there are more.
    pub(crate) more: bool,
}

impl Distinct {
    pub(crate) fn add(&mut self, value: f64, count: u64) {
        if self.more {
            return;
        }
        match self.values.iter().position(|(v, _)| *v == value) {
            Some(i) => self.values[i].1 += count,
            None if self.values.len() < COUNTED => self.values.push((value, count)),
            None => self.more = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_their_digits_under_a_large_offset() {
        let values: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i % 10)).collect();
        let mut m = Moments::default();
        values.chunks(37).for_each(|c| m.merge(Moments::of(c)));
        // 0..9 have the population variance (10² − 1)/12.
        assert!((m.sd() - (99.0_f64 / 12.0).sqrt()).abs() < 1e-9);
        assert_eq!((m.min, m.max, m.count), (1e9, 1e9 + 9.0, 1000));
        assert!((m.mean() - (1e9 + 4.5)).abs() < 1e-6);
    }

    #[test]
    fn squares_that_overflow_are_no_constant() {
        let m = Moments::of(&[1e200, -3e200, 2e200]);
        assert!(m.sd().is_infinite() && m.mean().is_finite(), "{m:?}");
    }

    #[test]
    fn a_constant_has_no_spread_at_all() {
        let mut m = Moments::of(&[0.1; 7]);
        m.merge(Moments::of(&[0.1; 1000]));
        assert_eq!((m.sd(), m.mean()), (0.0, 0.1));
    }
}
