//! Fano's inequality and its generalisation to Arimoto information (Guo algorithms 1 and 2).

use super::Prior;
use crate::Result;
use crate::dp::rdp::best_order;
use crate::error::Setting;
use crate::special::{entropy_term, ln_add_exp};

/// Algorithm 1: the largest success probability compatible with `I(X;Y) ≤ information` (nats).
///
/// # Guarantee
/// No attacker succeeds more often, if the secret follows the prior and the information is as stated.
pub fn success(prior: &Prior, information: f64) -> f64 {
    let m = prior.possible();
    // H(p) − μ − ln M + d(x ‖ 1/M) ≤ 0, with d the binary relative entropy in the success x: f of Guo eq. 6 with
    // the large numbers taken together.
    let level = information.max(0.0) - prior.entropy_deficit(1.0);
    solve(m, level, |x| entropy_term(x, 1.0 / m) + entropy_term(1.0 - x, 1.0 - 1.0 / m))
        .max(prior.most_likely())
}

/// Algorithm 2: the same from `I_α(X;Y) ≤ information`, of an order above 1.
pub fn success_of_order(prior: &Prior, alpha: f64, information: f64) -> Result<f64> {
    Setting::Alpha.in_range(alpha, alpha > 1.0 && alpha.is_finite(), "a number above 1")?;
    let m = prior.possible();
    let level = information.max(0.0) - prior.entropy_deficit(alpha);
    let (ln_rest, ln_m) = ((-1.0 / m).ln_1p(), m.ln());
    // D_α(Bern(1−x) ‖ Bern(1−1/M))
    let divergence = |x: f64| {
        let miss = alpha * (-x).ln_1p() + (1.0 - alpha) * ln_rest;
        let hit = alpha * x.ln() + (alpha - 1.0) * ln_m;
        ln_add_exp(miss, hit) / (alpha - 1.0)
    };
    Ok(solve(m, level, divergence).max(prior.most_likely()))
}

/// Largest x in [1/M, 1] where a divergence that rises from 0 there is at most `level`, rounded up.
fn solve(m: f64, level: f64, divergence: impl Fn(f64) -> f64) -> f64 {
    let (mut lo, mut hi) = (1.0 / m, 1.0);
    if divergence(1.0) <= level {
        return 1.0;
    }
    if level <= 0.0 {
        return lo;
    }
    while hi > lo * (1.0 + 1e-14) {
        // Geometric while the bracket spans magnitudes: x may be 1e-10.
        let mid = if hi > 2.0 * lo { (lo * hi).sqrt() } else { 0.5 * (lo + hi) };
        if mid <= lo || mid >= hi {
            break;
        }
        if divergence(mid) > level { hi = mid } else { lo = mid }
    }
    hi
}

/// Both algorithms with Rényi DP: `I_α ≤ D_α` (Guo thm. 1), at the best order.
///
/// `divergence` gives `D_α` of any two candidates, or of any candidate from one fixed reference: Arimoto's
/// information is `min_Q D_α(P_{Y|X}‖Q | p_α)`, so no pair of candidates needs to be compared. Returns the success
/// and the order.
pub fn success_from_rdp(prior: &Prior, divergence: impl Fn(f64) -> Result<f64>) -> Result<(f64, f64)> {
    // D₁ ≤ D_α for α > 1, so the smallest order serves Algorithm 1 as well.
    let smallest = 1.0 + 1e-4;
    let first = success(prior, divergence(smallest)?);
    let (alpha, best) = best_order(|alpha| success_of_order(prior, alpha, divergence(alpha)?))?;
    Ok(if first < best { (first, 1.0) } else { (best, alpha) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn randomised_response_attains_equality_under_a_uniform_prior() {
        // Guo A.2: the bound from the exact information is the success of the best attack.
        for (m, q) in [(2_u64, 0.5), (10, 0.3), (1000, 0.9)] {
            let prior = Prior::uniform(m).unwrap();
            let i = super::super::information::randomised_response(&prior, q).unwrap();
            let best = 1.0 - q + q / m as f64;
            let s = success(&prior, i);
            assert!((s - best).abs() < 1e-9 && s >= best - 1e-12, "{m} {q}: {s} {best}");
        }
    }

    #[test]
    fn the_published_values_for_ten_one_hot_encodings() {
        let prior = Prior::uniform(10).unwrap();
        // Δ² = 2, σ = 1: D_α = α.
        let (rdp, _) = success_from_rdp(&prior, Ok).unwrap();
        assert!((rdp - 0.6892).abs() < 1e-4, "{rdp}");
        let theorem2 =
            success(&prior, super::super::information::theorem_2(&prior, 2.0_f64.sqrt(), 1.0).unwrap());
        assert!((theorem2 - 0.6339).abs() < 1e-4, "{theorem2}");
    }

    #[test]
    fn order_one_is_the_limit_and_infinity_is_pure_privacy() {
        let prior = Prior::from_probabilities(vec![0.5, 0.3, 0.2]).unwrap();
        let (a, b) = (success(&prior, 0.2), success_of_order(&prior, 1.0 + 1e-7, 0.2).unwrap());
        assert!((a - b).abs() < 1e-5);
        // I_∞ ≤ ε allows p* e^ε.
        let s = success_of_order(&prior, 1e5, 0.2).unwrap();
        assert!((s - 0.5 * 0.2_f64.exp()).abs() < 1e-3, "{s}");
        for alpha in [1.0, 0.5, 0.0, -2.0, f64::NAN, f64::INFINITY] {
            assert!(success_of_order(&prior, alpha, 0.2).is_err(), "{alpha}");
        }
    }

    #[test]
    fn ten_thousand_million_candidates_work() {
        let prior = Prior::uniform(10_000_000_000).unwrap();
        let half = success(&prior, 0.5 * 1e10_f64.ln());
        assert!(half > 0.4 && half < 0.6, "{half}");
        assert!((success(&prior, 0.0) - 1e-10).abs() < 1e-16);
        assert_eq!(success(&prior, 30.0), 1.0);
        // More information, more success; more candidates, less.
        let more = Prior::uniform(10_000).unwrap();
        assert!(success(&prior, 3.0) < success(&prior, 5.0) && success(&prior, 3.0) < success(&more, 3.0));
    }
}
