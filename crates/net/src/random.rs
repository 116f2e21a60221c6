//! The generator: ChaCha20 run as a counter (`rand_chacha`). A stream is named by a seed, a purpose and a step, so any
//! step of a run can be drawn again without drawing those before it; that is what makes checkpoints exact.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

/// What a stream is drawn for; streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Initial weights.
    Weights = 1,
    /// Which records a step draws.
    Sampling = 2,
    /// The noise of a private step.
    Noise = 3,
    /// Probes of trace estimates and starting vectors.
    Probes = 4,
    /// Anything else: tests, synthetic data.
    Other = 5,
    /// Which values dropout leaves out.
    Dropout = 6,
    /// Where attacks start, and the noise that they are shown.
    Attack = 7,
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Generator {
    stream: ChaCha20Rng,
    spare: Option<f64>,
}

impl Generator {
    /// The stream of a seed, a purpose and a step.
    pub fn new(seed: u64, purpose: Purpose, step: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&(purpose as u32).to_le_bytes());
        let mut stream = ChaCha20Rng::from_seed(key);
        stream.set_stream(step);
        Self { stream, spare: None }
    }

    /// The stream of a secret key, a purpose and a step.
    pub fn keyed(key: &[u8; 32], purpose: Purpose, step: u64) -> Self {
        let mut stream = ChaCha20Rng::from_seed(*key);
        stream.set_stream(step);
        // the purpose in the upper half of the counter of blocks, sixteen words each
        stream.set_word_pos(u128::from(purpose as u32) << 36);
        Self { stream, spare: None }
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.stream.next_u32()
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let wide = (u64::from(self.bits()) << 32) | u64::from(self.bits());
        (wide >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(z) = self.spare.take() {
            return z;
        }
        let radius = (-2.0 * (-self.uniform()).ln_1p()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Standard normal for noise that protects: as [`Generator::normal`], with all 64 bits in the radius. Uniforms of 53 bits
    /// end at 8.6 and are coarse long before; these are 2⁻⁵³ apart in the bulk and reach 9.4, and what the radius leaves out has
    /// a probability of 2⁻⁶⁴.
    pub fn noise(&mut self) -> f64 {
        if let Some(z) = self.spare.take() {
            return z;
        }
        let wide = (u64::from(self.bits()) << 32) | u64::from(self.bits());
        // in (0, 1]: a conversion rounds to 53 bits, wherever the first of them stands
        let u = (wide as f64 + 1.0) * (1.0 / (1u128 << 64) as f64);
        let radius = (-2.0 * u.ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Plus or minus one.
    pub fn sign(&mut self) -> f64 {
        if self.bits() & 1 == 0 { 1.0 } else { -1.0 }
    }

    /// Uniform among `0..n`, without bias; 0 for `n` of 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let wide = (u64::from(self.bits()) << 32) | u64::from(self.bits());
            if wide < limit {
                return wide % n;
            }
        }
    }

    /// A random order of `0..n` (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key is the seed and the purpose, the nonce the step: the first block of the cipher of RFC 8439, computed by
    /// another implementation. A crate that changed its layout would change every run.
    #[test]
    fn a_stream_is_the_cipher_of_its_key_and_step() {
        let mut g = Generator::new(1, Purpose::Other, 2);
        assert_eq!(
            (0..4).map(|_| g.bits()).collect::<Vec<_>>(),
            [0x2e52_5bfb, 0xdb3e_facc, 0x18c9_b57e, 0x265e_c01f]
        );
        // of a secret key, with the purpose in the nonce
        let key = std::array::from_fn(|i| i as u8);
        let mut g = Generator::keyed(&key, Purpose::Noise, 7);
        assert_eq!(
            (0..4).map(|_| g.bits()).collect::<Vec<_>>(),
            [0x11e1_0f05, 0x6c99_0450, 0x34a0_1c0f, 0x543b_e724]
        );
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        for draw in [Generator::normal, Generator::noise] {
            let mut g = Generator::new(7, Purpose::Noise, 3);
            let n = 200_000;
            let (mut m1, mut m2, mut m4) = (0.0, 0.0, 0.0);
            for _ in 0..n {
                let z = draw(&mut g);
                m1 += z;
                m2 += z * z;
                m4 += z.powi(4);
            }
            let n = f64::from(n);
            // five standard errors: 1, √2, √96 over √n
            assert!((m1 / n).abs() < 5.0 / n.sqrt());
            assert!((m2 / n - 1.0).abs() < 5.0 * 2f64.sqrt() / n.sqrt());
            assert!((m4 / n - 3.0).abs() < 5.0 * 96f64.sqrt() / n.sqrt());
        }
    }

    #[test]
    fn streams_of_other_purposes_and_steps_differ_and_repeat() {
        let draw = |purpose, step| Generator::new(1, purpose, step).bits();
        assert_eq!(draw(Purpose::Noise, 5), draw(Purpose::Noise, 5));
        assert_ne!(draw(Purpose::Noise, 5), draw(Purpose::Noise, 6));
        assert_ne!(draw(Purpose::Noise, 5), draw(Purpose::Sampling, 5));
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut p = Generator::new(1, Purpose::Other, 0).permutation(100);
        assert_ne!(p, (0..100).collect::<Vec<_>>());
        p.sort_unstable();
        assert_eq!(p, (0..100).collect::<Vec<_>>());
    }
}
