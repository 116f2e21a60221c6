//! One bound for every record of a table, and their distribution: the secret is a value of the record, and what the
//! noise is added to are the models refitted with each candidate in its place (Guo §6.2).
//!
//! The share of records that an attacker guesses right has an expectation of at most the *mean* of the records'
//! bounds; the record that is easiest to guess is bounded by the *largest*.

use super::information::{Draws, Estimate, pairwise_of, theorem_2};
use super::optimal::Sampler;
use super::table::{Simulation, SuccessBound, success_bound};
use super::testing::one_centre;
use super::{Encodings, Prior, centres, fano};
use crate::Result;
use crate::claim::{Observed, Theorem};
use crate::error::Setting;
use crate::num::{Distribution, Summary};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// The bounds that every record gets.
pub const PER_RECORD: [Theorem; 4] =
    [Theorem::FanoTheorem2, Theorem::FanoPairwise, Theorem::OneCentre, Theorem::BestCentre];

/// Bounds of records that have been looked at so far; mergeable. Memory is that of a few [`Distribution`]s.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordBounds {
    prior: Prior,
    p: Vec<f64>,
    sigmas: Vec<f64>,
    simulation: Option<Simulation>,
    /// Draws a record.
    draws: u64,
    distance: Distribution,
    /// sigmas × [`PER_RECORD`]: success.
    success: Vec<Distribution>,
    simulated: Vec<Draws>,
    most: Option<Exposed>,
}

/// The record whose candidates are furthest apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exposed {
    /// Its row, from 0.
    pub row: u64,
    /// The largest distance of two of its candidates.
    pub distance: f64,
    /// Its candidates, in few dimensions.
    pub encodings: Encodings,
}

/// All bounds at one noise scale, the smallest mean first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtSigma {
    /// Standard deviation of the noise.
    pub sigma: f64,
    /// The bounds.
    pub bounds: Vec<RecordBound>,
    /// Information about the secret, averaged over records, by Monte Carlo.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub information: Option<Estimate>,
    /// What the optimal attack achieved in the same draws, over records: secrets drawn from the prior.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub optimal: Option<Observed>,
}

/// One bound over all records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordBound {
    /// On the share of records guessed right, in expectation: the mean over records.
    pub mean: SuccessBound,
    /// On the record that is easiest to guess; absent where the theorem speaks of the mean alone.
    pub worst: Option<SuccessBound>,
    /// The distribution of success over records; absent where one number serves all.
    pub over_records: Option<Summary>,
    /// Whether all distances were replaced by the largest over all records, as in Guo's figure 4.
    pub largest_distance: bool,
}

impl RecordBounds {
    /// No records yet; `records` are about to come, over which the draws of a simulation are spread.
    pub fn new(prior: Prior, sigmas: &[f64], records: u64, simulation: Option<Simulation>) -> Result<Self> {
        for &sigma in sigmas {
            Setting::Sigma.positive(sigma)?;
        }
        let draws = simulation.map_or(0, |s| s.trials.div_ceil(records.max(1)));
        Ok(Self {
            p: prior.probabilities(),
            sigmas: sigmas.to_vec(),
            simulation,
            draws,
            distance: Distribution::default(),
            success: vec![Distribution::default(); sigmas.len() * PER_RECORD.len()],
            simulated: vec![Draws::none(); sigmas.len()],
            most: None,
            prior,
        })
    }

    /// Whether a state that was read from bytes is of the same prior and noise as `like`.
    pub fn has_sizes(&self, like: &Self) -> bool {
        let candidates = |most: &Exposed| match &most.encodings {
            Encodings::OneHot => false,
            Encodings::Vectors { width, values } => values.len() == width * self.p.len(),
        };
        (&self.prior, &self.p, &self.sigmas) == (&like.prior, &like.p, &like.sigmas)
            && (self.simulation, self.draws) == (like.simulation, like.draws)
            && self.success.len() == like.success.len()
            && self.simulated.len() == like.simulated.len()
            && self.most.as_ref().is_none_or(candidates)
    }

    /// Adds the record of a row: its candidate models (or their differences from any one vector), M × `width`.
    pub fn add(&mut self, row: u64, width: usize, candidates: &[f64]) -> Result<()> {
        let encodings = Encodings::compact(width, candidates)?;
        encodings.check(&self.prior)?;
        let m = self.p.len();
        let distance = encodings.diameter(m as u64);
        let (ball, radius) = encodings.ball(m);
        let least = self.prior.most_likely();
        for (k, &sigma) in self.sigmas.iter().enumerate() {
            let bounds = [
                fano::success(&self.prior, theorem_2(&self.prior, distance, sigma)?),
                fano::success(&self.prior, pairwise_of(&self.p, &encodings, sigma)),
                one_centre(&self.prior, radius, sigma)?,
                centres::best(&self.p, &encodings, sigma, &ball),
            ];
            for (d, bound) in self.success[k * PER_RECORD.len()..].iter_mut().zip(bounds) {
                d.add(bound.clamp(least, 1.0));
            }
            if let Some(s) = self.simulation {
                // Numbers of a record depend on its row alone, so threads and splits do not matter.
                let seed = s.seed ^ row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                let mut sampler = Sampler::new(&self.prior, &encodings, sigma)?;
                let mut draws = Draws::new(&self.prior, distance / sigma);
                for _ in 0..self.draws {
                    draws.add(&mut sampler, &mut rng);
                }
                self.simulated[k].merge(&draws);
            }
        }
        self.distance.add(distance);
        let further = self.most.as_ref().is_none_or(|most| distance > most.distance);
        if further {
            self.most = Some(Exposed { row, distance, encodings });
        }
        Ok(())
    }

    /// Adds the records of another state, which come later.
    pub fn merge(&mut self, other: Self) {
        self.distance.merge(other.distance);
        self.success.iter_mut().zip(other.success).for_each(|(a, b)| a.merge(b));
        self.simulated.iter_mut().zip(&other.simulated).for_each(|(a, b)| a.merge(b));
        let mine = self.most.as_ref().map_or(-1.0, |m| m.distance);
        if let Some(most) = other.most.filter(|m| m.distance > mine) {
            self.most = Some(most);
        }
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.distance.count()
    }

    /// Largest distance of two candidates, over records.
    pub fn distances(&self) -> &Distribution {
        &self.distance
    }

    /// The record whose candidates are furthest apart; none where there are no records.
    pub fn most_exposed(&self) -> Option<&Exposed> {
        self.most.as_ref()
    }

    /// The bounds at every noise scale.
    ///
    /// # Guarantee
    /// If every secret is drawn from the prior, independently of the rest of the data, no attacker's expected share of
    /// records guessed right exceeds any `mean`, and none guesses any one record more often than `worst`. The
    /// Monte Carlo bound holds for the mean, with its confidence: success is concave in the information, so
    /// `mean success ≤ success(mean information)`.
    pub fn at_sigmas(&self) -> Result<Vec<AtSigma>> {
        let at = |(k, &sigma): (usize, &f64)| -> Result<AtSigma> {
            let bound = |theorem, success| success_bound(&self.prior, theorem, success);
            let mut bounds = vec![];
            for (theorem, d) in PER_RECORD.into_iter().zip(&self.success[k * PER_RECORD.len()..]) {
                bounds.push(RecordBound {
                    mean: bound(theorem, d.mean()),
                    worst: Some(bound(theorem, d.max())),
                    over_records: Some(d.summary()),
                    largest_distance: false,
                });
            }
            let largest = theorem_2(&self.prior, self.distance.max(), sigma)?;
            let guo = bound(Theorem::FanoTheorem2, fano::success(&self.prior, largest));
            bounds.push(RecordBound {
                mean: guo,
                worst: Some(guo),
                over_records: None,
                largest_distance: true,
            });
            let simulated = self.simulation.map(|s| (s, &self.simulated[k]));
            let information = simulated.map(|(s, draws)| draws.estimate(s.confidence)).transpose()?;
            if let Some(estimate) = &information {
                let mut mean = bound(Theorem::FanoMonteCarlo, fano::success(&self.prior, estimate.upper));
                mean.confidence = Some(estimate.confidence);
                bounds.push(RecordBound { mean, worst: None, over_records: None, largest_distance: false });
            }
            bounds.sort_by(|a, b| a.mean.success.value.total_cmp(&b.mean.success.value));
            Ok(AtSigma {
                sigma,
                bounds,
                information,
                optimal: simulated.map(|(s, draws)| draws.attack(s.seed)),
            })
        };
        self.sigmas.iter().enumerate().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Channel, bounds};
    use super::*;
    use crate::random::Seeded;

    fn state(records: u64, simulation: Option<Simulation>) -> RecordBounds {
        let prior = Prior::from_probabilities(vec![0.4, 0.35, 0.25]).unwrap();
        let mut all = RecordBounds::new(prior, &[0.5, 2.0], records, simulation).unwrap();
        let mut random = Seeded::new(3);
        for row in 0..records {
            all.add(row, 5, &random.normals(15)).unwrap();
        }
        all
    }

    #[test]
    fn every_record_has_the_bounds_of_its_own_channel() {
        let all = state(40, None);
        let prior = Prior::from_probabilities(vec![0.4, 0.35, 0.25]).unwrap();
        let mut random = Seeded::new(3);
        for (k, sigma) in [0.5, 2.0].into_iter().enumerate() {
            let mut random = random.clone();
            let mut each = vec![vec![]; PER_RECORD.len()];
            for _ in 0..40 {
                let e = Encodings::vectors(5, random.normals(15)).unwrap();
                let b = bounds(&prior, Channel::Gaussian { encodings: &e, sigma }, None).unwrap();
                for (theorem, out) in PER_RECORD.into_iter().zip(&mut each) {
                    out.push(b.bounds.iter().find(|b| b.success.theorem == theorem).unwrap().success.value);
                }
            }
            let actual = &all.at_sigmas().unwrap()[k];
            for (theorem, each) in PER_RECORD.into_iter().zip(&each) {
                let row =
                    actual.bounds.iter().find(|b| b.mean.success.theorem == theorem && !b.largest_distance);
                let row = row.unwrap();
                let mean = each.iter().sum::<f64>() / 40.0;
                let max = each.iter().copied().fold(0.0, f64::max);
                assert!((row.mean.success.value - mean).abs() < 2e-5, "{theorem:?} {row:?} {mean}");
                assert!((row.worst.unwrap().success.value - max).abs() < 2e-5, "{theorem:?} {row:?} {max}");
            }
            let guo = actual.bounds.iter().find(|b| b.largest_distance).unwrap();
            assert!(guo.mean.success.value >= each[0].iter().copied().fold(0.0, f64::max) - 1e-9);
        }
        random.bits();
    }

    #[test]
    fn no_attack_over_records_beats_a_mean_and_merging_changes_nothing() {
        let simulation = Simulation { trials: 40_000, seed: 9, confidence: 0.999 };
        let all = state(100, Some(simulation));
        for at in all.at_sigmas().unwrap() {
            let seen = at.optimal.clone().unwrap();
            assert_eq!((seen.trials, seen.seed), (40_000, 9));
            for b in &at.bounds {
                assert!(seen.ci_low <= b.mean.success.value, "{b:?} {seen:?}");
            }
            assert!(at.bounds.iter().any(|b| b.mean.success.theorem == Theorem::FanoMonteCarlo));
            assert!(at.bounds.windows(2).all(|w| w[0].mean.success.value <= w[1].mean.success.value));
        }
        let prior = Prior::from_probabilities(vec![0.4, 0.35, 0.25]).unwrap();
        let part = || RecordBounds::new(prior.clone(), &[0.5, 2.0], 100, Some(simulation)).unwrap();
        let (mut a, mut b, mut random) = (part(), part(), Seeded::new(3));
        for row in 0..100 {
            let record = random.normals(15);
            if row < 37 { a.add(row, 5, &record).unwrap() } else { b.add(row, 5, &record).unwrap() }
        }
        a.merge(b);
        assert_eq!(a.most_exposed(), all.most_exposed());
        assert_eq!(a.records(), 100);
        for (x, y) in a.at_sigmas().unwrap().iter().zip(all.at_sigmas().unwrap()) {
            let (seen, also) = (x.optimal.as_ref().unwrap(), y.optimal.unwrap());
            assert!((seen.value - also.value).abs() < 1e-12 && seen.trials == also.trials);
            for (x, y) in x.bounds.iter().zip(&y.bounds) {
                assert!((x.mean.success.value - y.mean.success.value).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn candidates_must_match_the_prior() {
        let mut all = state(1, None);
        assert!(all.add(1, 5, &[0.0; 10]).is_err() && all.add(1, 4, &[f64::NAN; 12]).is_err());
        assert!(RecordBounds::new(Prior::uniform(2).unwrap(), &[0.0], 1, None).is_err());
    }
}
