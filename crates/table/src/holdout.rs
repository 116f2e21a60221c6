//! A split into training and held-out rows that needs no memory: a hash of seed and row number decides.

use serde::{Deserialize, Serialize};

/// Rows to hold out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Holdout {
    /// Share of rows, between 0 and 1; each row is drawn on its own, so the share is met on average.
    pub fraction: f64,
    /// Another seed holds out other rows.
    pub seed: u64,
}

impl Holdout {
    /// Whether the row (counted from 0 in file order, over all files) is held out.
    pub fn holds(&self, row: u64) -> bool {
        // 53 bits, uniform on [0, 1).
        let u = (mix(mix(self.seed) ^ row) >> 11) as f64 / (1_u64 << 53) as f64;
        u < self.fraction
    }
}

/// The output function of splitmix64 (Steele, Lea, Flood 2014) after one step of its counter.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_splitmix64() {
        // First outputs of the reference generator for seed 1234567 (as listed with its published C code).
        let golden = [6457827717110365317_u64, 3203168211198807973, 9817491932198370423];
        for (i, expected) in golden.into_iter().enumerate() {
            let state = 1234567_u64.wrapping_add((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            assert_eq!(mix(state), expected);
        }
    }

    #[test]
    fn the_share_is_met_within_chance() {
        for (fraction, seed) in [(0.2, 1), (0.5, 2), (0.01, 3)] {
            let h = Holdout { fraction, seed };
            let n = 100_000;
            let held = (0..n).filter(|r| h.holds(*r)).count() as f64;
            let sd = (n as f64 * fraction * (1.0 - fraction)).sqrt();
            assert!((held - n as f64 * fraction).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn seeds_give_different_rows() {
        let rows = |seed| (0..200).filter(|r| Holdout { fraction: 0.3, seed }.holds(*r)).collect::<Vec<_>>();
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1), rows(2));
    }
}
