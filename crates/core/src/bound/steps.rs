//! The hypothesis test over several adaptive steps: a fine-tuned model gives away one noisy gradient a step.
//!
//! At step t candidate m moves the mean of what is seen to `ḡ_m(θ_t)`, and the reference to a `c_t` that does not know the
//! secret. Gaussian differential privacy composes (Dong, Roth, Su 2022, thm. 4, which holds for adaptive steps as long as
//! each step's distance is bounded whatever came before), so against that reference
//!
//! `P_m(E) ≤ Φ(Φ⁻¹(Q(E)) + ρ_m)`, `ρ_m² = Σ_t sup ‖ḡ_m(θ_t) − c_t‖²/σ²`.

use super::Prior;
use super::testing::one_reference;
use crate::dp::in_range;
use crate::error::Setting;
use crate::{Error, Result};

/// What a test against one reference for each step allows.
#[derive(Debug, Clone, PartialEq)]
pub struct OverSteps {
    /// No attacker succeeds more often.
    pub success: f64,
    /// The weight with which each candidate pulls the reference: where the pulled mean is the reference, nothing is to be
    /// gained by moving it.
    pub pull: Vec<f64>,
}

/// The success of every guess after `steps` steps: at the first, whose parameters are public, candidate m is `first[m]` away
/// from the reference; at each later one no candidate is further away than `later`, whatever came before.
///
/// # Guarantee
/// Every attacker who sees what every step released, under the prior. Any references are valid.
///
/// # Errors
/// No step, no noise, distances that are none, or another number of them than candidates.
pub fn over_steps(prior: &Prior, first: &[f64], later: f64, steps: u64, sigma: f64) -> Result<OverSteps> {
    Setting::Sigma.positive(sigma)?;
    Setting::Steps.in_range(steps as f64, steps >= 1, "at least 1")?;
    let distance = |d: f64| in_range("distance", d, d >= 0.0 && d.is_finite(), "a finite number from 0 up");
    distance(later)?;
    first.iter().try_for_each(|d| distance(*d))?;
    let expected = prior.candidates() as usize;
    if first.len() != expected {
        return Err(Error::Shape { subject: "distances", actual: first.len(), expected });
    }
    let rest = (steps - 1) as f64 * later * later;
    let rho: Vec<f64> = first.iter().map(|d| (d * d + rest).sqrt() / sigma).collect();
    let bound = one_reference(&prior.probabilities(), &rho);
    Ok(OverSteps { success: bound.value.clamp(prior.most_likely(), 1.0), pull: bound.pull })
}

#[cfg(test)]
mod tests {
    use super::super::testing::one_centre;
    use super::*;
    use crate::random::Seeded;

    #[test]
    fn equal_distances_are_one_centre_and_steps_add_up_in_squares() {
        let prior = Prior::uniform(50).unwrap();
        for (radius, steps, sigma) in [(0.3, 1, 0.7), (1.0, 5, 2.0), (0.9, 2, 0.4)] {
            let actual = over_steps(&prior, &[radius; 50], radius, steps, sigma).unwrap().success;
            let exact = one_centre(&prior, radius * (steps as f64).sqrt(), sigma).unwrap();
            assert!((actual - exact).abs() < 1e-9 && actual >= exact - 1e-15, "{actual} {exact}");
        }
    }

    /// Adaptive steps, attacked: the direction of the second step depends on the first one's outcome, and the attacker, who
    /// saw both, takes the likeliest of three candidates.
    #[test]
    fn the_best_attack_on_adaptive_steps_stays_below() {
        let (sigma, trials) = (0.9, 40_000);
        let prior = Prior::from_probabilities(vec![0.5, 0.3, 0.2]).unwrap();
        let p = [0.5, 0.3, 0.2];
        let first = [0.4, 1.0, 0.8];
        let mut random = Seeded::new(5);
        let mut hits = 0;
        for _ in 0..trials {
            let u = random.uniform();
            let secret = if u < 0.5 {
                0
            } else if u < 0.8 {
                1
            } else {
                2
            };
            // candidates lie on axes of their own, at their distance from 0, the reference of every step
            let mut score = p.map(f64::ln);
            let mut reversed = false;
            for step in 0..3 {
                let at = |m: usize| {
                    if step == 0 {
                        first[m]
                    } else if reversed {
                        -1.0
                    } else {
                        1.0
                    }
                };
                let z = random.normals(3);
                let seen: Vec<f64> =
                    (0..3).map(|m| sigma * z[m] + if m == secret { at(m) } else { 0.0 }).collect();
                for m in 0..3 {
                    score[m] += (seen[m] * at(m) - 0.5 * at(m) * at(m)) / (sigma * sigma);
                }
                reversed = seen[0] > seen[1];
            }
            let guess = (0..3).max_by(|&a, &b| score[a].total_cmp(&score[b])).unwrap();
            hits += u32::from(guess == secret);
        }
        let (seen, bound) =
            (f64::from(hits) / f64::from(trials), over_steps(&prior, &first, 1.0, 3, sigma).unwrap());
        assert!(seen < bound.success && seen > 0.75, "{seen} {bound:?}");
        assert!(bound.pull.iter().all(|w| *w > 0.0));
    }

    #[test]
    fn bad_steps_are_errors() {
        let prior = Prior::uniform(2).unwrap();
        assert!(over_steps(&prior, &[1.0; 3], 1.0, 1, 1.0).is_err());
        assert!(over_steps(&prior, &[1.0; 2], 1.0, 0, 1.0).is_err());
        assert!(over_steps(&prior, &[1.0; 2], f64::NAN, 2, 1.0).is_err());
        assert!(over_steps(&prior, &[1.0, f64::INFINITY], 1.0, 2, 1.0).is_err());
        assert!(over_steps(&prior, &[1.0; 2], 1.0, 1, 0.0).is_err());
        assert!((over_steps(&prior, &[0.0; 2], 0.0, 9, 1.0).unwrap().success - 0.5).abs() < 1e-9);
    }
}
