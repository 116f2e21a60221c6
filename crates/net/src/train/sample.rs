//! Which records a step draws.

use super::key::Source;
use crate::{
    error::{Result, check},
    random::Purpose,
};
use serde::{Deserialize, Serialize};

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sampling {
    /// Every record with probability `rate`, independently: what accountants assume.
    Poisson {
        /// q.
        rate: f64,
    },
    /// Batches of a fixed size from a new random order in every epoch. No amplification by sampling is claimed.
    Shuffle {
        /// Records in a batch; what is left over at the end of an epoch is not used in it.
        batch: usize,
    },
}

impl Sampling {
    pub(crate) fn check(self, records: usize) -> Result<()> {
        match self {
            Self::Poisson { rate } => {
                check(rate > 0.0 && rate <= 1.0, "the sampling rate", rate, "above 0, at most 1")
            }
            Self::Shuffle { batch } => {
                let expected = "at least 1 and at most the number of records";
                check((1..=records).contains(&batch), "the batch size", batch as f64, expected)
            }
        }
    }

    /// Expected number of records of a step: what the sum of gradients is divided by.
    pub fn expected(self, records: usize) -> f64 {
        match self {
            Self::Poisson { rate } => rate * records as f64,
            Self::Shuffle { batch } => batch as f64,
        }
    }

    /// The records of a step, in ascending order for Poisson sampling; may be empty.
    pub(crate) fn draw(self, source: &Source, step: u64, records: usize) -> Vec<usize> {
        match self {
            Self::Poisson { rate } => {
                let mut rng = source.generator(Purpose::Sampling, step);
                (0..records).filter(|_| rng.uniform() < rate).collect()
            }
            Self::Shuffle { batch } => {
                let per_epoch = (records / batch).max(1) as u64;
                let order = source.generator(Purpose::Sampling, step / per_epoch).permutation(records);
                let from = (step % per_epoch) as usize * batch;
                order[from..(from + batch).min(records)].to_vec()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_batches_have_the_binomial_spread() {
        let s = Sampling::Poisson { rate: 0.1 };
        let sizes: Vec<f64> = (0..400).map(|t| s.draw(&Source::Seed(3), t, 500).len() as f64).collect();
        let mean = sizes.iter().sum::<f64>() / 400.0;
        let variance = sizes.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((mean - 50.0).abs() < 5.0 * (45.0f64 / 400.0).sqrt(), "{mean}");
        assert!((variance / 45.0 - 1.0).abs() < 5.0 * (2.0f64 / 400.0).sqrt(), "{variance}");
        assert_eq!(s.draw(&Source::Seed(3), 7, 500), s.draw(&Source::Seed(3), 7, 500));
    }

    #[test]
    fn a_shuffled_epoch_visits_every_record_once() {
        let s = Sampling::Shuffle { batch: 10 };
        let epoch = |e: u64| (0..5).flat_map(|t| s.draw(&Source::Seed(3), 5 * e + t, 50)).collect::<Vec<_>>();
        let (mut first, second) = (epoch(0), epoch(1));
        assert_ne!(first, second);
        first.sort_unstable();
        assert_eq!(first, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn rates_and_sizes_outside_their_range_are_refused() {
        for rate in [0.0, -0.5, 1.5, f64::NAN] {
            assert!(Sampling::Poisson { rate }.check(10).is_err());
        }
        assert!(Sampling::Shuffle { batch: 0 }.check(10).is_err());
        assert!(Sampling::Shuffle { batch: 11 }.check(10).is_err());
    }
}
