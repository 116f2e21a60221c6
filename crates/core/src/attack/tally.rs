//! Hits by attacker, noise scale and trial, and the intervals that follow.

use super::{Attack, Options, Outcome, Outcomes, PartOutcome, Secret};
use crate::claim::Observed;
use crate::rows::Block;
use std::ops::Range;

/// Parts that an index of `parts` may name.
const PARTS: usize = 10;

/// Records of a block that are worked on together: their products with the noise stay in the cache.
const TOGETHER: usize = 64;

/// The rows of a block in ranges that are worked on together.
pub(super) fn ranges(block: &Block) -> impl Iterator<Item = Range<usize>> + use<> {
    let rows = block.len();
    (0..rows).step_by(TOGETHER).map(move |first| first..(first + TOGETHER).min(rows))
}

/// What is guessed, by whom, and the part of the rows that each row belongs to, where it is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Players<'a> {
    pub(super) secret: &'a Secret,
    pub(super) options: &'a Options,
    pub(super) parts: &'a [u8],
}

impl Players<'_> {
    /// Where their hits are counted.
    pub(super) fn tally(self) -> Tally {
        let parts = if self.parts.is_empty() { 0 } else { PARTS };
        let (s, t) = (self.options.sigmas.len(), self.options.trials);
        Tally {
            hits: vec![0; self.options.attacks.len() * s * t],
            part_hits: vec![0; s * parts * t],
            part_records: vec![0; parts],
            ..Tally::default()
        }
    }
}

/// Hits of the attacks; mergeable.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// attacks × sigmas × trials.
    pub(super) hits: Vec<u32>,
    /// sigmas × parts × trials, of the white box.
    pub(super) part_hits: Vec<u32>,
    /// Records attacked in each part.
    pub(super) part_records: Vec<u64>,
    pub(super) baseline_hits: u64,
    pub(super) records: u64,
    pub(super) left_out: u64,
}

impl Tally {
    /// Plays every attack on some rows of a block and counts who is right. `guesses` leaves those of an attacker at a noise
    /// scale in every trial, about row `i` of the block, `k` of those here.
    pub(super) fn rows<Space>(
        &mut self,
        players: Players<'_>,
        (block, range): (&Block, Range<usize>),
        space: &mut Space,
        guesses: impl for<'s> Fn(Attack, usize, (usize, usize), &'s mut Space) -> &'s [u32],
    ) {
        for (k, i) in range.enumerate() {
            self.row(players, (block, i), space, |attack, s, space| guesses(attack, s, (i, k), space));
        }
    }

    /// The same for one row. A row whose value is no candidate is left out.
    fn row<Space>(
        &mut self,
        players: Players<'_>,
        (block, i): (&Block, usize),
        space: &mut Space,
        guesses: impl for<'s> Fn(Attack, usize, &'s mut Space) -> &'s [u32],
    ) {
        let Players { secret, options, parts } = players;
        let Some(truth) = secret.truth(block.row(i)) else {
            self.left_out += 1;
            return;
        };
        self.records += 1;
        self.baseline_hits += u64::from(truth == secret.most_probable());
        let part = parts.get(block.first_row as usize + i).map(|&part| usize::from(part).min(PARTS - 1));
        if let Some(part) = part {
            self.part_records[part] += 1;
        }
        let (s, t) = (options.sigmas.len(), options.trials);
        for (a, &attack) in options.attacks.iter().enumerate() {
            for k in 0..s {
                let guesses = guesses(attack, k, space);
                count(&mut self.hits[(a * s + k) * t..][..t], guesses, truth);
                if let Some(part) = part.filter(|_| attack == Attack::WhiteBox) {
                    count(&mut self.part_hits[(k * PARTS + part) * t..][..t], guesses, truth);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.hits.iter_mut().zip(&other.hits).for_each(|(a, b)| *a += b);
        self.part_hits.iter_mut().zip(&other.part_hits).for_each(|(a, b)| *a += b);
        self.part_records.iter_mut().zip(&other.part_records).for_each(|(a, b)| *a += b);
        self.baseline_hits += other.baseline_hits;
        self.records += other.records;
        self.left_out += other.left_out;
    }

    pub(super) fn outcomes(&self, options: &Options, secret: &Secret) -> Outcomes {
        let (s, t, parts) = (options.sigmas.len(), options.trials, self.part_records.len());
        let prior_max = secret.prior()[secret.most_probable()];
        let observed = |hits: &[u32], records: u64, offset: f64, scale: f64| {
            let share = |h: &u32| (f64::from(*h) / records.max(1) as f64 - offset) / scale;
            let shares: Vec<f64> = hits.iter().map(share).collect();
            interval(&shares, (0.0 - offset) / scale, (1.0 - offset) / scale, options.seed)
        };
        let mut results = vec![];
        for (a, &attack) in options.attacks.iter().enumerate() {
            for (k, &sigma) in options.sigmas.iter().enumerate() {
                let hits = &self.hits[(a * s + k) * t..][..t];
                results.push(Outcome {
                    attack,
                    sigma,
                    accuracy: observed(hits, self.records, 0.0, 1.0),
                    advantage: observed(hits, self.records, prior_max, 1.0 - prior_max),
                });
            }
        }
        let mut by_part = vec![];
        for (k, &sigma) in options.sigmas.iter().enumerate() {
            for part in (0..parts).filter(|&part| self.part_records[part] > 0) {
                let records = self.part_records[part];
                let accuracy = observed(&self.part_hits[(k * parts + part) * t..][..t], records, 0.0, 1.0);
                by_part.push(PartOutcome { sigma, part, records, accuracy });
            }
        }
        let (records, left_out) = (self.records, self.left_out);
        let baseline = self.baseline_hits as f64 / records.max(1) as f64;
        Outcomes { results, by_part, baseline, prior_max, records, left_out }
    }
}

fn count(hits: &mut [u32], guesses: &[u32], truth: usize) {
    for (hit, guess) in hits.iter_mut().zip(guesses) {
        *hit += u32::from(*guess == truth as u32);
    }
}

/// Mean over trials with Student's 95% interval, inside what is possible; of one trial nothing is known.
fn interval(values: &[f64], low: f64, high: f64, seed: u64) -> Observed {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let trials = values.len() as u64;
    if values.len() < 2 {
        return Observed { value: mean, ci_low: low, ci_high: high, trials, seed };
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_975(trials - 1) * (variance / n).sqrt();
    Observed { value: mean, ci_low: (mean - half).max(low), ci_high: (mean + half).min(high), trials, seed }
}

/// 97.5% point of Student's distribution with `freedom` degrees, to 1e-3: a table up to 10, then its expansion in
/// 1/freedom around the normal one (Fisher, Cornish 1960).
pub fn student_975(freedom: u64) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => TABLE[freedom as usize - 1],
        _ => {
            let (z, v) = (1.959_963_985_f64, freedom as f64);
            let g1 = (z.powi(3) + z) / 4.0;
            let g2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let g3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + g1 / v + g2 / (v * v) + g3 / v.powi(3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, value) in [(1, 12.7062), (5, 2.5706), (11, 2.2010), (20, 2.0860), (99, 1.9842)] {
            assert!((student_975(freedom) - value).abs() < 1e-3, "{freedom}");
        }
    }

    #[test]
    fn intervals_stay_inside_what_is_possible() {
        let of = |values: &[f64]| interval(values, 0.0, 1.0, 3);
        let one = of(&[0.4]);
        assert_eq!((one.ci_low, one.ci_high, one.trials), (0.0, 1.0, 1));
        let two = of(&[0.9, 1.0]);
        assert_eq!(two.ci_high, 1.0);
        let same = of(&[0.5; 9]);
        assert_eq!((same.value, same.ci_low, same.ci_high), (0.5, 0.5, 0.5));
    }
}
