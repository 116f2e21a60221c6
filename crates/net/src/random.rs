//! The generator: ChaCha20 (RFC 8439) run as a counter. A stream is named by a seed, a purpose and a step, so any
//! step of a run can be drawn again without drawing those before it; that is what makes checkpoints exact.

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
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Generator {
    state: [u32; 16],
    block: [u32; 16],
    used: usize,
    spare: Option<f64>,
}

impl Generator {
    /// The stream of a seed, a purpose and a step.
    pub fn new(seed: u64, purpose: Purpose, step: u64) -> Self {
        let mut key = [0; 8];
        (key[0], key[1], key[2]) = (seed as u32, (seed >> 32) as u32, purpose as u32);
        Self::with(key, [0, step as u32, (step >> 32) as u32])
    }

    /// The stream of a secret key, a purpose and a step.
    pub fn keyed(key: &[u8; 32], purpose: Purpose, step: u64) -> Self {
        let word = |i: usize| u32::from_le_bytes([key[i], key[i + 1], key[i + 2], key[i + 3]]);
        Self::with(std::array::from_fn(|i| word(4 * i)), [purpose as u32, step as u32, (step >> 32) as u32])
    }

    fn with(key: [u32; 8], nonce: [u32; 3]) -> Self {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        state[4..12].copy_from_slice(&key);
        state[13..].copy_from_slice(&nonce);
        Self { state, block: [0; 16], used: 16, spare: None }
    }

    fn refill(&mut self) {
        let mut x = self.state;
        for _ in 0..10 {
            for [a, b, c, d] in [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]] {
                quarter(&mut x, a, b, c, d);
            }
            for [a, b, c, d] in [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] {
                quarter(&mut x, a, b, c, d);
            }
        }
        for (o, (x, s)) in self.block.iter_mut().zip(x.iter().zip(&self.state)) {
            *o = x.wrapping_add(*s);
        }
        // 2³² blocks of one stream are 256 GiB; the carry into the nonce is for form
        self.state[12] = self.state[12].wrapping_add(1);
        if self.state[12] == 0 {
            self.state[13] = self.state[13].wrapping_add(1);
        }
        self.used = 0;
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        if self.used == 16 {
            self.refill();
        }
        self.used += 1;
        self.block[self.used - 1]
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

#[inline]
fn quarter(x: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (i, j, k, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        x[i] = x[i].wrapping_add(x[j]);
        x[k] = (x[k] ^ x[i]).rotate_left(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_that_of_rfc_8439_section_2_3_2() {
        let key = std::array::from_fn(|i| {
            let b = 4 * i as u32;
            b | (b + 1) << 8 | (b + 2) << 16 | (b + 3) << 24
        });
        let mut g = Generator::with(key, [0x0900_0000, 0x4a00_0000, 0]);
        g.state[12] = 1;
        let first: Vec<u32> = (0..4).map(|_| g.bits()).collect();
        assert_eq!(first, [0xe4e7_f110, 0x1559_3bd1, 0x1fdd_0f50, 0xc471_20a3]);
        let last = (4..16).map(|_| g.bits()).last();
        assert_eq!(last, Some(0x4e3c_50a2));
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let mut g = Generator::new(7, Purpose::Noise, 3);
        let n = 200_000;
        let (mut m1, mut m2, mut m4) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let z = g.normal();
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
