//! Randomness that callers hand in: a seeded generator for experiments, and the door through which a
//! cryptographic one comes for releases. Nothing in this crate draws from anywhere else.

use crate::Result;

/// A source of independent uniform bits.
///
/// [`Seeded`] repeats and is for experiments and tests; a release takes the system's generator, which may fail.
pub trait Bits {
    /// The next 64 bits.
    fn next_u64(&mut self) -> Result<u64>;
}

/// xoshiro256++ (Blackman, Vigna 2019), seeded by splitmix64: fast, the same on every machine, not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeded {
    state: [u64; 4],
}

impl Seeded {
    /// A generator that always gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        let mut s = seed;
        let mut splitmix = || {
            s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (s ^ (s >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self { state: [splitmix(), splitmix(), splitmix(), splitmix()] }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in the open interval (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// `count` independent standard normals, by Marsaglia's polar method.
    pub fn normals(&mut self, count: usize) -> Vec<f64> {
        let mut out = Vec::with_capacity(count + 1);
        while out.len() < count {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let factor = (-2.0 * s.ln() / s).sqrt();
                out.extend([u * factor, v * factor]);
            }
        }
        out.truncate(count);
        out
    }
}

impl Bits for Seeded {
    fn next_u64(&mut self) -> Result<u64> {
        Ok(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_cdf;

    /// Kolmogorov–Smirnov against the normal distribution function, and the first moments.
    #[test]
    fn normals_are_normal() {
        let mut xs = Seeded::new(7).normals(100_001);
        let n = xs.len() as f64;
        let mean = xs.iter().sum::<f64>() / n;
        let fourth = xs.iter().map(|x| x.powi(4)).sum::<f64>() / n;
        assert!(mean.abs() < 4.0 / n.sqrt() && (fourth - 3.0).abs() < 4.0 * (96.0 / n).sqrt());
        xs.sort_by(f64::total_cmp);
        let distance = xs
            .iter()
            .enumerate()
            .map(|(i, &x)| (normal_cdf(x) - (i as f64 + 0.5) / n).abs())
            .fold(0.0, f64::max);
        assert!(distance * n.sqrt() < 1.63, "{distance}"); // 1% point of Kolmogorov's distribution
    }

    /// The first outputs for the state {1, 2, 3, 4}, as the authors' C code gives them.
    #[test]
    fn the_generator_is_xoshiro() {
        let mut g = Seeded { state: [1, 2, 3, 4] };
        assert_eq!([g.bits(), g.bits(), g.bits()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
        assert_eq!(Seeded::new(3), Seeded::new(3));
        assert_ne!(Seeded::new(3).bits(), Seeded::new(4).bits());
    }
}
