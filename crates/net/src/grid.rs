//! What is released lies on a public grid, so that the low digits of a noisy number say nothing about the number under it.
//!
//! A normal drawn as a floating-point number has gaps, and which sums of it and a given number can be represented depends on that
//! number (Mironov 2012): without rounding, the last digits of weights that start at zero tell whether a record took part. Rounded
//! to multiples of g, which follows from the noise alone, all that is left are the probabilities of the cells of the grid, and
//! rounding what is noisy already costs no privacy.

use crate::random::Generator;

/// Normal noise of a given size, rounded to a grid that follows from its size.
///
/// # Guarantee
/// [`Grid::release`] gives a multiple of [`Grid::step`], which depends on the standard deviation alone. Its probabilities are
/// those of a normal number rounded to the grid but for the double precision that both are computed in: in the bulk a cell of
/// `g ≥ 2⁻¹¹ s` is off by about 2⁻⁴² of its own (two edges, each moved by the 2⁻⁵³ between two uniforms), and beyond 9.4 s, which a
/// pair of normals reaches with a probability of 2⁻⁶⁴, there is nothing. Neither is counted in δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    /// s, the standard deviation of the noise.
    pub(crate) deviation: f64,
    /// g: the power of two nearest below `2⁻¹⁰ s`. It adds `g²/12` to the variance, a ten-millionth of it.
    pub(crate) step: f64,
}

/// Steps in a standard deviation, as a power of two.
const FINENESS: i32 = 10;

impl Grid {
    /// The grid of noise with this standard deviation.
    pub(crate) fn of(deviation: f64) -> Self {
        // the exponent as it is stored: a logarithm could round across a power of two
        let exponent = ((deviation.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        Self { deviation, step: 2f64.powi((exponent - FINENESS).max(-1022)) }
    }

    /// The number plus noise, rounded to the grid. Dividing and multiplying by a power of two is exact.
    pub(crate) fn release(&self, exact: f64, rng: &mut Generator) -> f64 {
        ((exact + self.deviation * rng.noise()) / self.step).round_ties_even() * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use leakscope_core::special::{normal_cdf, normal_quantile};

    #[test]
    fn the_step_is_a_power_of_two_just_below_a_thousandth_of_the_noise() {
        for s in [1.0, 0.999, 1.001, 3.7, 4.0, 1e-12, 1e12, 2.5e-300] {
            let g = Grid::of(s).step;
            assert!(g <= s / 1024.0 && g > s / 2048.0, "{s}: {g}");
            assert_eq!(g.to_bits() << 12, 0, "{g} is a power of two");
        }
    }

    /// Chi-square over 64 sets of whole cells, and the distance of Kolmogorov and Smirnov, against a normal number rounded to the
    /// grid; for sums on and off the grid, and for one that is large beside the noise.
    #[test]
    fn cells_have_the_probabilities_of_a_rounded_normal() {
        let (n, s) = (100_000, 3.3);
        let grid = Grid::of(s);
        for (seed, exact) in [(1, 0.0), (2, 0.123_456_789), (3, -7.7e5)] {
            let mut rng = Generator::new(seed, Purpose::Noise, 0);
            let mut cells: Vec<f64> = (0..n).map(|_| grid.release(exact, &mut rng) / grid.step).collect();
            assert!(cells.iter().all(|c| c.fract() == 0.0));
            cells.sort_by(f64::total_cmp);
            // the probability of a cell up to k, its upper edge being k + ½
            let below = |k: f64| normal_cdf(((k + 0.5) * grid.step - exact) / s);
            let count = |k: f64| cells.partition_point(|c| *c <= k) as f64;
            let edges: Vec<f64> = (1..64)
                .map(|i| ((exact + s * normal_quantile(f64::from(i) / 64.0)) / grid.step).floor())
                .collect();
            let (mut chi, mut before) = (0.0, (0.0, 0.0));
            for (p, c) in edges.iter().map(|&k| (below(k), count(k))).chain([(1.0, n as f64)]) {
                let expected = n as f64 * (p - before.0);
                chi += (c - before.1 - expected).powi(2) / expected;
                before = (p, c);
            }
            // 63 degrees of freedom: one in ten thousand is above 113
            assert!(chi < 113.0, "{exact}: {chi}");
            let at = |(i, c): (usize, &f64)| (below(*c) - (i + 1) as f64 / n as f64).abs();
            let distance = cells.iter().enumerate().map(at).fold(0.0, f64::max);
            // one in a thousand is above 1.95/√n; a cell holds 0.0004
            assert!(distance < 1.95 / (n as f64).sqrt() + 4e-4, "{exact}: {distance}");
        }
    }

    /// The attack of Mironov on what was before: sums of a number and a normal of the same sign and size keep its low digits.
    #[test]
    fn the_low_digits_of_noise_in_floating_point_tell_a_number_and_those_of_the_grid_do_not() {
        let (s, c) = (4.0, 0.01_f32);
        let grid = Grid::of(s);
        // small results are a difference of two numbers near c: multiples of what c is a multiple of
        let told = |values: Vec<f64>, unit: f64| values.iter().filter(|v| (*v / unit).fract() != 0.0).count();
        let mut rng = Generator::new(5, Purpose::Noise, 0);
        let mut plain = |exact: f32| -> Vec<f64> {
            let all = (0..200_000).map(|_| f64::from(exact + (s * rng.noise()) as f32));
            all.filter(|v| v.abs() < f64::from(c) / 8.0).collect()
        };
        let unit = 2f64.powi(-30);
        assert!(told(plain(0.0), unit) > 20, "without the record, the digits of the noise alone");
        assert_eq!(told(plain(c), unit), 0, "with it, multiples of the last digit of c");
        for exact in [0.0, f64::from(c)] {
            let released = (0..10_000).map(|_| grid.release(exact, &mut rng)).collect();
            assert_eq!(told(released, grid.step), 0);
        }
    }
}
