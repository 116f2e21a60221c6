//! All bounds that apply to a secret behind a mechanism, the tightest first, beside the optimal attack.

use super::{Encodings, Prior, baseline, fano, information, optimal, testing};
use crate::Result;
use crate::claim::{Bound, Observed, Theorem};
use crate::dp::{Accountant, Adjacency, Mechanism, rdp};
use crate::error::Setting;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// What the attacker sees.
#[derive(Debug, Clone, Copy)]
pub enum Channel<'a> {
    /// The encoding of the secret plus `N(0, sigma² I)`.
    Gaussian {
        /// One vector per candidate.
        encodings: &'a Encodings,
        /// Standard deviation of the noise.
        sigma: f64,
    },
    /// The secret itself with probability 1 − noise, else a uniform draw.
    RandomisedResponse {
        /// Probability of a uniform draw.
        noise: f64,
    },
    /// The output of a private computation over a data set that holds the secret's record.
    Private(&'a Accountant),
    /// The output of anything with this Rényi divergence between two values, or between each value and one reference.
    Renyi {
        /// Order α, at least 1.
        alpha: f64,
        /// The divergence, in nats.
        epsilon: f64,
    },
}

/// Monte Carlo, where the caller allows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Draws for the information and trials of the attack.
    pub trials: u64,
    /// Seed of the generator.
    pub seed: u64,
    /// Confidence of the limit on the information.
    pub confidence: f64,
}

/// A bound on the success of any attacker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SuccessBound {
    /// Probability of guessing the secret, at most.
    pub success: Bound,
    /// The same over a guess without looking: `(success − p*)/(1 − p*)`.
    pub advantage: f64,
    /// The Rényi order used, where one was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alpha: Option<f64>,
    /// Confidence, where the bound holds only with one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confidence: Option<f64>,
}

/// What the optimal attack achieves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimal {
    /// In closed form.
    Exact(f64),
    /// Simulated.
    Observed(Observed),
}

/// Every bound that applies, the tightest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Number of candidates M.
    pub candidates: u64,
    /// Prior probability of the likeliest, p*.
    pub most_likely: f64,
    /// The bounds.
    pub bounds: Vec<SuccessBound>,
    /// The optimal attack, where it is known or was simulated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub optimal: Option<Optimal>,
}

impl Bounds {
    /// The tightest bound.
    pub fn tightest(&self) -> Option<&SuccessBound> {
        self.bounds.first()
    }
}

struct Rows<'a> {
    prior: &'a Prior,
    rows: Vec<SuccessBound>,
}

impl Rows<'_> {
    fn push(&mut self, theorem: Theorem, success: f64) -> &mut SuccessBound {
        self.rows.push(success_bound(self.prior, theorem, success));
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// The two bounds that need a Rényi divergence alone.
    fn renyi(&mut self, divergence: impl Fn(f64) -> Result<f64>) -> Result<()> {
        let (success, alpha) = fano::success_from_rdp(self.prior, &divergence)?;
        self.push(Theorem::FanoRdp, success).alpha = Some(alpha);
        let (success, alpha) = baseline::balle(self.prior, &divergence)?;
        self.push(Theorem::Balle, success).alpha = Some(alpha);
        Ok(())
    }
}

/// A bound on success, held between a guess without looking and certainty.
pub(super) fn success_bound(prior: &Prior, theorem: Theorem, success: f64) -> SuccessBound {
    let bound = Bound::share_at_most(success.clamp(prior.most_likely(), 1.0), theorem);
    SuccessBound { success: bound, advantage: prior.advantage(bound.value), alpha: None, confidence: None }
}

/// Bounds the success of any attacker who guesses a secret with this prior.
pub fn bounds(prior: &Prior, channel: Channel, simulation: Option<Simulation>) -> Result<Bounds> {
    let mut rows = Rows { prior, rows: vec![] };
    let optimal = match channel {
        Channel::Gaussian { encodings, sigma } => gaussian(&mut rows, encodings, sigma, simulation)?,
        Channel::RandomisedResponse { noise } => randomised_response(&mut rows, noise)?,
        Channel::Private(accountant) => {
            rows.renyi(|alpha| rdp::total(accountant.steps(), accountant.adjacency(), alpha))?;
            rows.push(Theorem::TradeOff, testing::from_trade_off(prior, accountant)?);
            let advantage = accountant.advantage()?.upper;
            rows.push(Theorem::TotalVariation, prior.most_likely() + advantage);
            None
        }
        Channel::Renyi { alpha, epsilon } => {
            Setting::Alpha.in_range(alpha, alpha >= 1.0 && alpha.is_finite(), "a number, at least 1")?;
            Setting::Epsilon.in_range(
                epsilon,
                epsilon >= 0.0 && epsilon.is_finite(),
                "a number, not negative",
            )?;
            // Divergences grow with the order, so algorithm 1 applies at any; its order is 1.
            let first = fano::success(prior, epsilon);
            if alpha > 1.0 {
                let own = fano::success_of_order(prior, alpha, epsilon)?;
                let best = if first < own { (first, 1.0) } else { (own, alpha) };
                rows.push(Theorem::FanoRdp, best.0).alpha = Some(best.1);
                rows.push(Theorem::Balle, baseline::balle_of_order(prior, alpha, epsilon)).alpha =
                    Some(alpha);
            } else {
                rows.push(Theorem::FanoRdp, first).alpha = Some(1.0);
            }
            rows.push(Theorem::Salamatian, baseline::salamatian(prior, epsilon));
            None
        }
    };
    let mut bounds = rows.rows;
    bounds.sort_by(|a, b| a.success.value.total_cmp(&b.success.value));
    Ok(Bounds { candidates: prior.candidates(), most_likely: prior.most_likely(), bounds, optimal })
}

fn gaussian(
    rows: &mut Rows,
    encodings: &Encodings,
    sigma: f64,
    simulation: Option<Simulation>,
) -> Result<Option<Optimal>> {
    Setting::Sigma.positive(sigma)?;
    let prior = rows.prior;
    encodings.check(prior)?;
    let m = prior.candidates();
    let few = m <= optimal::SIMULATED_UP_TO;
    let diameter = encodings.diameter(m);
    let radius = match encodings {
        Encodings::OneHot => (1.0 - 1.0 / m as f64).sqrt(),
        Encodings::Vectors { .. } => encodings.ball(m as usize).1,
    };
    let information = information::theorem_2(prior, diameter, sigma)?;
    rows.push(Theorem::FanoTheorem2, fano::success(prior, information));
    rows.push(Theorem::Salamatian, baseline::salamatian(prior, information));
    if let Some(information) = information::pairwise(prior, encodings, sigma)? {
        rows.push(Theorem::FanoPairwise, fano::success(prior, information));
    }
    rows.renyi(|alpha| Ok(rdp::gaussian(diameter / sigma, alpha)))?;
    let (success, alpha) = fano::success_from_rdp(prior, |alpha| Ok(rdp::gaussian(radius / sigma, alpha)))?;
    rows.push(Theorem::FanoReference, success).alpha = Some(alpha);
    rows.push(Theorem::OneCentre, testing::one_centre(prior, radius, sigma)?);
    if let Some(success) = testing::best_centre(prior, encodings, sigma)? {
        rows.push(Theorem::BestCentre, success);
    }
    if let (true, Some(s)) = (few, simulation) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(s.seed);
        let estimate =
            information::gaussian_by_monte_carlo(prior, encodings, sigma, s.trials, s.confidence, &mut rng)?;
        rows.push(Theorem::FanoMonteCarlo, fano::success(prior, estimate.upper)).confidence =
            Some(s.confidence);
    }
    Ok(match (prior, encodings, simulation) {
        (Prior::Uniform(m), Encodings::OneHot, _) => Some(Optimal::Exact(optimal::one_hot(*m, sigma)?)),
        (_, _, Some(s)) if few => {
            Some(Optimal::Observed(optimal::gaussian_attack(prior, encodings, sigma, s.trials, s.seed)?))
        }
        _ => None,
    })
}

fn randomised_response(rows: &mut Rows, noise: f64) -> Result<Option<Optimal>> {
    let prior = rows.prior;
    let mechanism = Mechanism::RandomisedResponse { categories: prior.candidates(), noise };
    mechanism.check(Adjacency::Replace)?;
    let information = information::randomised_response(prior, noise)?;
    rows.push(Theorem::FanoExact, fano::success(prior, information));
    rows.push(Theorem::Salamatian, baseline::salamatian(prior, information));
    rows.renyi(|alpha| rdp::divergence(mechanism, Adjacency::Replace, alpha))?;
    let accountant = Accountant::new(Adjacency::Replace).with(mechanism, 1)?;
    rows.push(Theorem::TradeOff, testing::from_trade_off(prior, &accountant)?);
    Ok(Some(Optimal::Exact(optimal::randomised_response(prior, noise)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(b: &Bounds, theorem: Theorem) -> f64 {
        b.bounds.iter().find(|x| x.success.theorem == theorem).map(|x| x.success.value).unwrap()
    }

    #[test]
    fn ten_one_hot_encodings_as_published() {
        let prior = Prior::uniform(10).unwrap();
        let channel = Channel::Gaussian { encodings: &Encodings::OneHot, sigma: 1.0 };
        let simulation = Simulation { trials: 100_000, seed: 1, confidence: 0.99 };
        let b = bounds(&prior, channel, Some(simulation)).unwrap();
        assert!(matches!(b.optimal, Some(Optimal::Exact(x)) if (x - 0.341).abs() < 5e-4));
        assert!((value(&b, Theorem::OneCentre) - 0.3696).abs() < 5e-5);
        let exact_information = value(&b, Theorem::FanoMonteCarlo);
        assert!(exact_information > 0.459 && exact_information < 0.475, "{exact_information}");
        assert!((value(&b, Theorem::FanoTheorem2) - 0.6339).abs() < 5e-5);
        assert!((value(&b, Theorem::FanoRdp) - 0.6892).abs() < 5e-5);
        assert!((value(&b, Theorem::Balle) - 0.7651).abs() < 5e-5);
        assert!(b.bounds.windows(2).all(|w| w[0].success.value <= w[1].success.value));
        assert!(b.bounds.iter().all(|x| !x.success.theorem.source().is_empty()));
        let json = serde_json::to_value(&b).unwrap();
        assert_eq!(json["bounds"][0]["success"]["direction"], "at-most");
    }

    #[test]
    fn ten_thousand_million_candidates_need_no_memory() {
        let prior = Prior::uniform(10_000_000_000).unwrap();
        let channel = Channel::Gaussian { encodings: &Encodings::OneHot, sigma: 0.2 };
        let b = bounds(&prior, channel, None).unwrap();
        let Some(Optimal::Exact(best)) = b.optimal else { panic!("no closed form") };
        assert!(b.bounds.iter().all(|x| x.success.value >= best) && b.bounds.len() >= 6);
        let rr = bounds(&prior, Channel::RandomisedResponse { noise: 0.9 }, None).unwrap();
        assert!((rr.tightest().unwrap().success.value - 0.1).abs() < 1e-3);
    }

    #[test]
    fn private_training_is_bounded_better_by_its_trade_off() {
        let accountant = Accountant::dp_sgd(1.0, 0.01, 1000, Adjacency::AddRemove).unwrap();
        let prior = Prior::uniform(10).unwrap();
        let b = bounds(&prior, Channel::Private(&accountant), None).unwrap();
        assert_eq!(b.tightest().unwrap().success.theorem, Theorem::TradeOff);
        assert!(value(&b, Theorem::TradeOff) < value(&b, Theorem::FanoRdp));
        // Two values of one record are further apart than a record and its absence.
        let replace = Accountant::dp_sgd(1.0, 0.01, 1000, Adjacency::Replace).unwrap();
        let r = bounds(&prior, Channel::Private(&replace), None).unwrap();
        assert!(r.tightest().unwrap().success.value > b.tightest().unwrap().success.value);
    }

    #[test]
    fn a_stated_renyi_guarantee_is_never_better_than_the_best_order_of_its_mechanism() {
        // One-hot encodings at σ = 1: D_α = α.
        let prior = Prior::uniform(10).unwrap();
        let channel = Channel::Gaussian { encodings: &Encodings::OneHot, sigma: 1.0 };
        let all = bounds(&prior, channel, None).unwrap();
        let mut best = (1.0_f64, 1.0_f64);
        for k in 0..200 {
            let alpha = 1.0 + f64::from(k) / 50.0;
            let b = bounds(&prior, Channel::Renyi { alpha, epsilon: alpha }, None).unwrap();
            // The search over orders starts at 1.0001.
            assert!(value(&b, Theorem::FanoRdp) >= value(&all, Theorem::FanoRdp) - 1e-4);
            best.0 = best.0.min(value(&b, Theorem::FanoRdp));
            if alpha > 1.0 {
                best.1 = best.1.min(value(&b, Theorem::Balle));
            }
        }
        assert!((best.0 - 0.6892).abs() < 1e-3 && (best.1 - 0.7651).abs() < 1e-3, "{best:?}");
    }

    #[test]
    fn bad_channels_are_errors() {
        let prior = Prior::uniform(3).unwrap();
        let e = Encodings::vectors(1, vec![0.0, 1.0]).unwrap();
        assert!(bounds(&prior, Channel::Gaussian { encodings: &e, sigma: 1.0 }, None).is_err());
        assert!(
            bounds(&prior, Channel::Gaussian { encodings: &Encodings::OneHot, sigma: 0.0 }, None).is_err()
        );
        assert!(bounds(&prior, Channel::RandomisedResponse { noise: 0.0 }, None).is_err());
        for (alpha, epsilon) in [(0.0, 1.0), (-1.0, 1.0), (0.5, 1.0), (2.0, -1.0), (2.0, f64::NAN)] {
            assert!(bounds(&prior, Channel::Renyi { alpha, epsilon }, None).is_err(), "{alpha} {epsilon}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_optimal_attack_beats_any_bound(
            weights in proptest::collection::vec(0.01_f64..1.0, 2..8),
            values in proptest::collection::vec(-2.0_f64..2.0, 24),
            width in 1_usize..4,
            sigma in 0.1_f64..5.0,
            seed in 0_u64..1000,
        ) {
            let total: f64 = weights.iter().sum();
            let m = weights.len();
            let prior = Prior::from_probabilities(weights.iter().map(|w| w / total).collect()).unwrap();
            let e = Encodings::vectors(width, values[..m * width].to_vec()).unwrap();
            let simulation = Simulation { trials: 400, seed, confidence: 0.9999 };
            let b = bounds(&prior, Channel::Gaussian { encodings: &e, sigma }, Some(simulation)).unwrap();
            let Some(Optimal::Observed(seen)) = &b.optimal else { panic!("not simulated") };
            for x in &b.bounds {
                // Five standard errors of a success that is as likely as the bound allows: one false alarm in millions.
                let allowed = x.success.value;
                let slack = 5.0 * (allowed * (1.0 - allowed) / 400.0).sqrt() + 0.0125;
                prop_assert!(seen.value <= allowed + slack, "{x:?} {seen:?}");
            }
            // More noise, smaller bounds.
            let noisier = bounds(&prior, Channel::Gaussian { encodings: &e, sigma: 1.3 * sigma }, None).unwrap();
            for theorem in [Theorem::FanoTheorem2, Theorem::FanoRdp, Theorem::Balle, Theorem::OneCentre] {
                prop_assert!(value(&noisier, theorem) <= value(&b, theorem) * (1.0 + 1e-6));
            }
        }

        #[test]
        fn no_optimal_attack_beats_randomised_response(
            weights in proptest::collection::vec(0.001_f64..1.0, 2..12),
            noise in 0.01_f64..1.0,
        ) {
            let total: f64 = weights.iter().sum();
            let prior = Prior::from_probabilities(weights.iter().map(|w| w / total).collect()).unwrap();
            let b = bounds(&prior, Channel::RandomisedResponse { noise }, None).unwrap();
            let Some(Optimal::Exact(best)) = b.optimal else { panic!("no closed form") };
            for x in &b.bounds {
                prop_assert!(best <= x.success.value + 1e-12, "{x:?} {best}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// A projection of the output (less is seen), more Gaussian noise and another randomised response on top are
        /// post-processing: no bound may grow.
        #[test]
        fn post_processing_never_helps(
            weights in proptest::collection::vec(0.01_f64..1.0, 2..6),
            values in proptest::collection::vec(-2.0_f64..2.0, 18),
            sigma in 0.2_f64..4.0,
            noise in 0.05_f64..0.9,
            more in 0.05_f64..0.95,
        ) {
            let total: f64 = weights.iter().sum();
            let m = weights.len();
            let prior = Prior::from_probabilities(weights.iter().map(|w| w / total).collect()).unwrap();
            let compare = |before: &Bounds, after: &Bounds, slack: f64| {
                for b in &after.bounds {
                    let was = value(before, b.success.theorem);
                    // The best centres are the best of those that a search finds, which may miss better ones.
                    let slack = if b.success.theorem == Theorem::BestCentre { slack.max(0.01) } else { slack };
                    prop_assert!(b.success.value <= was + slack, "{:?}: {} after, {was} before", b.success.theorem, b.success.value);
                }
                Ok(())
            };
            let e = Encodings::vectors(3, values[..m * 3].to_vec()).unwrap();
            let seen = bounds(&prior, Channel::Gaussian { encodings: &e, sigma }, None).unwrap();
            let projected: Vec<f64> = values[..m * 3].chunks_exact(3).flat_map(|v| [v[0], v[1]]).collect();
            let p = Encodings::vectors(2, projected).unwrap();
            // Centres and balls come from iterations that stop at one per cent.
            compare(&seen, &bounds(&prior, Channel::Gaussian { encodings: &p, sigma }, None).unwrap(), 5e-3)?;
            let blurred = (sigma * sigma + more).sqrt();
            compare(&seen, &bounds(&prior, Channel::Gaussian { encodings: &e, sigma: blurred }, None).unwrap(), 5e-3)?;
            let rr = bounds(&prior, Channel::RandomisedResponse { noise }, None).unwrap();
            let twice = 1.0 - (1.0 - noise) * (1.0 - more);
            compare(&rr, &bounds(&prior, Channel::RandomisedResponse { noise: twice }, None).unwrap(), 2e-3)?;
        }
    }
}
