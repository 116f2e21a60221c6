//! A split into training and held-out rows that needs no memory: a hash of seed and row number decides, or a coin that a secret
//! key tosses for each row.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows to hold out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Holdout {
    /// Share of rows, between 0 and 1; each row is drawn on its own, so the share is met on average.
    pub fraction: f64,
    /// Another seed holds out other rows.
    pub seed: u64,
    /// A secret that decides in place of the seed: nobody who lacks it knows which rows are held out, nor what a row more or
    /// less would change about the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SplitKey>,
}

/// 256 secret bits that split rows.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitKey(pub [u8; 32]);

impl fmt::Debug for SplitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret stays out of logs.
        f.write_str("SplitKey(…)")
    }
}

impl Holdout {
    /// A split that everybody who knows the seed can repeat.
    pub fn seeded(fraction: f64, seed: u64) -> Self {
        Self { fraction, seed, key: None }
    }

    /// Whether the row (counted from 0 in file order, over all files) is held out.
    pub fn holds(&self, row: u64) -> bool {
        let bits = match self.key {
            None => mix(mix(self.seed) ^ row),
            Some(SplitKey(key)) => {
                let mut coins = ChaCha20Rng::from_seed(key);
                coins.set_word_pos(u128::from(row) * 16); // a block of the cipher for each row
                coins.next_u64()
            }
        };
        // 53 bits, uniform on [0, 1).
        let u = (bits >> 11) as f64 / (1_u64 << 53) as f64;
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
            for key in [None, Some(SplitKey([seed as u8; 32]))] {
                let h = Holdout { key, ..Holdout::seeded(fraction, seed) };
                let n = 100_000;
                let held = (0..n).filter(|r| h.holds(*r)).count() as f64;
                let sd = (n as f64 * fraction * (1.0 - fraction)).sqrt();
                assert!((held - n as f64 * fraction).abs() < 5.0 * sd);
            }
        }
    }

    #[test]
    fn a_key_decides_alone_and_stays_out_of_logs() {
        let with = |seed, byte| Holdout { key: Some(SplitKey([byte; 32])), ..Holdout::seeded(0.5, seed) };
        let rows = |h: Holdout| (0..200).filter(|r| h.holds(*r)).collect::<Vec<_>>();
        assert_eq!(rows(with(1, 9)), rows(with(2, 9)));
        assert_ne!(rows(with(1, 9)), rows(with(1, 8)));
        assert!(!format!("{:?}", with(1, 9)).contains("9, 9"));
    }

    #[test]
    fn seeds_give_different_rows() {
        let rows = |seed| (0..200).filter(|r| Holdout::seeded(0.3, seed).holds(*r)).collect::<Vec<_>>();
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1), rows(2));
    }
}
