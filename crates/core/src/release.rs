//! The noise of a release: an exact discrete Gaussian on a grid, without floating point in the sampler.
//!
//! Noise that is drawn as a floating-point number gives the value under it away through its low digits (Mironov
//! 2012). Here the coefficients are rounded to a grid of step g, a power of two about σ/2²⁰, and multiples of g are
//! added that follow the discrete Gaussian `P(k) ∝ e^{−k²/2s²}`, `s = σ/g`, drawn with integers alone by the
//! algorithm of Canonne, Kamath and Steinke (2020, alg. 1–3) from a generator that the caller hands in. σ is rounded *up* so
//! that s is whole.
//!
//! Why not OpenDP's crate (0.16.0), which has the same sampler: its default features build OpenSSL from C sources,
//! without them it still brings a framework with its macros, big-number arithmetic and a second version of `rand`, and
//! its measurements are made to compose inside that framework. What a release needs of it are the hundred lines below,
//! which 128-bit integers carry exactly and which the tests hold against exact probabilities.

use crate::error::Setting;
use crate::random::Bits;
use crate::{Error, Result};

/// σ is at least this many grid steps: rounding to the grid moves a coefficient by at most σ/2²¹.
const STEPS: f64 = (1_u64 << 20) as f64;

/// A grid and the discrete Gaussian on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// Distance of neighbouring points, a power of two.
    pub step: f64,
    /// Standard deviation parameter in steps.
    pub scale: u64,
}

impl Grid {
    /// The grid for noise of standard deviation `sigma`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a σ that is not positive or so small or large that the grid leaves the numbers.
    pub fn new(sigma: f64) -> Result<Self> {
        let expected = "a positive number between 1e-280 and 1e280";
        if !(sigma > 1e-280 && sigma < 1e280) {
            return Err(Error::Setting { setting: Setting::Sigma, value: sigma, expected });
        }
        // g = 2^k with 2²⁰ ≤ σ/g < 2²¹; division by a power of two is exact.
        let mut step = 2_f64.powi((sigma / STEPS).log2().floor() as i32);
        while sigma / step < STEPS {
            step /= 2.0;
        }
        while sigma / step >= 2.0 * STEPS {
            step *= 2.0;
        }
        Ok(Self { step, scale: (sigma / step).ceil() as u64 })
    }

    /// The σ that is really used: that asked for, rounded up by less than a part in a million.
    pub fn sigma(self) -> f64 {
        self.scale as f64 * self.step
    }

    /// `w` with noise, on the grid.
    ///
    /// # Guarantee
    /// The noise is exactly discrete Gaussian if `bits` are uniform and independent. For coefficients on the grid its
    /// Rényi divergences are at most those of continuous Gaussian noise of the same σ (Canonne et al., where they show
    /// concentrated differential privacy); rounding to the grid moves each coefficient by at most g/2 first.
    pub fn release(self, w: &[f64], bits: &mut impl Bits) -> Result<Vec<f64>> {
        w.iter().map(|&w| self.perturb(w, bits)).collect()
    }

    fn perturb(self, w: f64, bits: &mut impl Bits) -> Result<f64> {
        let expected =
            "a coefficient within 2³⁰ standard deviations of zero: choose more noise, or scale the columns";
        let k = (w / self.step).round();
        // Sum and product below are exact as long as k + noise stays below 2⁵³.
        if k.is_nan() || k.abs() >= (1_u64 << 50) as f64 {
            return Err(Error::OutOfRange { subject: "a coefficient", value: w, expected });
        }
        let noise = discrete_gaussian(self.scale, bits)?;
        Ok((k as i64).saturating_add(noise) as f64 * self.step)
    }
}

/// Integers with `P(k) ∝ exp(−k²/2s²)`, by rejection from the discrete Laplace distribution of scale `t = s + 1`.
///
/// s is at most 2²¹ here: the acceptance exponent `(|y|t − s²)²/(2s²t²)` then fits 128 bits for |y| < 2⁴¹; a
/// |y| beyond is 2²⁰ scales out, where the acceptance probability is below `e^{−2³⁸}`, and is rejected.
fn discrete_gaussian(s: u64, bits: &mut impl Bits) -> Result<i64> {
    let (s2, t) = (u128::from(s) * u128::from(s), s + 1);
    loop {
        let y = discrete_laplace(t, bits)?;
        if y.unsigned_abs() >= 1 << 41 {
            continue;
        }
        let gap = (u128::from(y.unsigned_abs()) * u128::from(t)).abs_diff(s2);
        if bernoulli_exp(gap * gap, 2 * s2 * u128::from(t) * u128::from(t), bits)? {
            return Ok(y);
        }
    }
}

/// Integers with `P(k) ∝ exp(−|k|/t)`.
fn discrete_laplace(t: u64, bits: &mut impl Bits) -> Result<i64> {
    loop {
        let u = below(u128::from(t), bits)?;
        if !bernoulli_exp(u, u128::from(t), bits)? {
            continue;
        }
        let mut v: u64 = 0;
        while bernoulli_exp(1, 1, bits)? {
            v += 1;
        }
        let magnitude = u + u128::from(t) * u128::from(v);
        let negative = below(2, bits)? == 1;
        // Zero would come up twice, once with each sign.
        if negative && magnitude == 0 {
            continue;
        }
        // v is geometric: a magnitude beyond 2⁶² needs 2⁴⁰ successes in a row.
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        return Ok(if negative { -magnitude } else { magnitude });
    }
}

/// True with probability `exp(−numerator/denominator)`.
fn bernoulli_exp(numerator: u128, denominator: u128, bits: &mut impl Bits) -> Result<bool> {
    for _ in 0..numerator / denominator {
        if !bernoulli_exp_small(1, 1, bits)? {
            return Ok(false);
        }
    }
    bernoulli_exp_small(numerator % denominator, denominator, bits)
}

/// The same for an exponent of at most one, by von Neumann's alternating series: k counts successes of
/// `Bernoulli(γ/k)`.
fn bernoulli_exp_small(numerator: u128, denominator: u128, bits: &mut impl Bits) -> Result<bool> {
    let mut k: u128 = 1;
    // Bernoulli(γ/k) = Bernoulli(γ) and Bernoulli(1/k), which keeps the numbers small.
    while below(denominator, bits)? < numerator && below(k, bits)? == 0 {
        k += 1;
    }
    Ok(k % 2 == 1)
}

/// Uniform over `0..bound`, by rejection.
fn below(bound: u128, bits: &mut impl Bits) -> Result<u128> {
    if bound <= 1 {
        return Ok(0);
    }
    let width = 128 - (bound - 1).leading_zeros();
    loop {
        let mut value = u128::from(bits.next_u64()?);
        if width > 64 {
            value = value << 64 | u128::from(bits.next_u64()?);
        }
        let value = if width > 64 { value >> (128 - width) } else { value >> (64 - width) };
        if value < bound {
            return Ok(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    /// χ² of counts against exact probabilities, cells with little expectation pooled into the last.
    fn chi_square(counts: &[f64], probabilities: &[f64]) -> (f64, f64) {
        let n: f64 = counts.iter().sum();
        let (mut chi, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
        for (c, p) in counts.iter().zip(probabilities) {
            if n * p >= 10.0 {
                chi += (c - n * p).powi(2) / (n * p);
                cells += 1.0;
            } else {
                rest = (rest.0 + c, rest.1 + n * p);
            }
        }
        if rest.1 > 0.0 {
            chi += (rest.0 - rest.1).powi(2) / rest.1.max(1.0);
            cells += 1.0;
        }
        (chi, cells - 1.0)
    }

    /// Below the 99.99% point of χ² (Wilson–Hilferty).
    fn plausible((chi, freedom): (f64, f64)) -> bool {
        let spread = 2.0 / (9.0 * freedom);
        chi < freedom * (1.0 - spread + 3.72 * spread.sqrt()).powi(3)
    }

    fn counted(range: i64, draws: usize, mut draw: impl FnMut() -> i64) -> Vec<f64> {
        let mut counts = vec![0.0; 2 * range as usize + 1];
        for _ in 0..draws {
            let k = draw().clamp(-range, range);
            counts[(k + range) as usize] += 1.0;
        }
        counts
    }

    fn normalised(range: i64, log_mass: impl Fn(f64) -> f64) -> Vec<f64> {
        let mass: Vec<f64> = (-range..=range).map(|k| log_mass(k as f64).exp()).collect();
        let total: f64 = mass.iter().sum();
        mass.iter().map(|m| m / total).collect()
    }

    #[test]
    fn small_scales_follow_their_exact_probabilities() {
        for s in [1_u64, 2, 5, 13] {
            let mut bits = Seeded::new(s);
            let range = 12 * s as i64;
            let counts = counted(range, 100_000, || discrete_gaussian(s, &mut bits).unwrap());
            let exact = normalised(range, |k| -k * k / (2.0 * (s * s) as f64));
            assert!(plausible(chi_square(&counts, &exact)), "Gaussian of scale {s}");
            let range = 40 * s as i64;
            let counts = counted(range, 100_000, || discrete_laplace(s, &mut bits).unwrap());
            let exact = normalised(range, |k| -k.abs() / s as f64);
            assert!(plausible(chi_square(&counts, &exact)), "Laplace of scale {s}");
        }
    }

    #[test]
    fn bernoullis_have_their_probability() {
        for (numerator, denominator) in
            [(0, 7), (1, 7), (1, 1), (5, 2), (3, 1_u128 << 90), (1 << 89, 1 << 90)]
        {
            let mut bits = Seeded::new(5);
            let n = 50_000;
            let mut hits = 0.0;
            for _ in 0..n {
                hits += f64::from(u8::from(bernoulli_exp(numerator, denominator, &mut bits).unwrap()));
            }
            let p = (-(numerator as f64) / denominator as f64).exp();
            let error = (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!((hits / f64::from(n) - p).abs() <= 4.0 * error + 1e-12, "{numerator}/{denominator}");
        }
    }

    #[test]
    fn at_the_scale_of_releases_it_is_the_gaussian_and_its_low_bits_are_uniform() {
        let grid = Grid::new(0.37).unwrap();
        assert!(grid.sigma() >= 0.37 && grid.sigma() < 0.37 * (1.0 + 1e-6));
        let mut bits = Seeded::new(1);
        let draws = grid.release(&vec![0.0; 20_000], &mut bits).unwrap();
        let cells = 20;
        let mut counts = vec![0.0; cells];
        let mut low = vec![0.0; 16];
        for x in &draws {
            let u = crate::special::normal_cdf(x / grid.sigma());
            counts[((u * cells as f64) as usize).min(cells - 1)] += 1.0;
            low[((x / grid.step) as i64).rem_euclid(16) as usize] += 1.0;
        }
        assert!(plausible(chi_square(&counts, &vec![1.0 / cells as f64; cells])));
        assert!(plausible(chi_square(&low, &[1.0 / 16.0; 16])));
    }

    #[test]
    fn a_release_lies_on_its_grid_and_nonsense_is_refused() {
        let grid = Grid::new(1e-3).unwrap();
        let mut bits = Seeded::new(2);
        let w = [0.1234567890123, -7.0, 0.0];
        let noisy = grid.release(&w, &mut bits).unwrap();
        assert!(noisy.iter().all(|v| (v / grid.step).fract() == 0.0));
        assert!(noisy.iter().zip(&w).all(|(a, b)| (a - b).abs() < 1e-2 && a != b));
        for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Grid::new(sigma).is_err(), "{sigma}");
        }
        assert!(grid.release(&[1e12], &mut bits).is_err());
        assert!(grid.release(&[f64::NAN], &mut bits).is_err());
        for sigma in [1e-270, 1.0, 2.0, 3e270] {
            let grid = Grid::new(sigma).unwrap();
            assert!(grid.sigma() >= sigma && grid.scale >= 1 << 20 && grid.scale <= 1 << 21);
        }
    }
}
