//! A lower bound on ε from one run (Steinke, Nasr, Jagielski 2023): m canaries, each in the data or not by a fair coin, and an
//! auditor who says of r of them whether they were in. Right more often than an (ε, δ)-private mechanism lets anybody be, the
//! mechanism is not (ε, δ)-private.
//!
//! With `W ~ Binomial(r, e^ε/(1 + e^ε))`, the probability of v or more right guesses is at most (theorem 5.2)
//!
//! `P[W ≥ v] + 2 m δ max_{1≤i≤v} (P[W ≥ v − i] − P[W ≥ v])/i`.

use super::in_range;
use crate::Result;
use crate::claim::{Bound, Theorem};
use crate::error::Setting;
use crate::special::{binomial_tail, ln_binomial};

/// What an auditor said of canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// m, canaries that were in or out by a fair coin.
    pub canaries: u64,
    /// r, those of which a guess was made.
    pub guessed: u64,
    /// v, right ones among these.
    pub right: u64,
}

impl Guesses {
    fn check(self) -> Result<()> {
        in_range("canaries", self.canaries as f64, self.canaries > 0, "at least 1")?;
        in_range(
            "guesses",
            self.guessed as f64,
            self.guessed <= self.canaries,
            "at most as many as canaries",
        )?;
        in_range("right guesses", self.right as f64, self.right <= self.guessed, "at most as many as guesses")
    }
}

/// Probability of as many right guesses or more under an (ε, δ)-private mechanism, at most; rounded up.
///
/// # Errors
/// Counts that do not fit, ε below 0, δ outside 0 to 1.
pub fn p_value(guesses: Guesses, epsilon: f64, delta: f64) -> Result<f64> {
    guesses.check()?;
    Setting::Epsilon.in_range(epsilon, epsilon >= 0.0, "at least 0")?;
    Setting::Delta.in_range(delta, (0.0..=1.0).contains(&delta), "between 0 and 1")?;
    let Guesses { canaries: m, guessed: r, right: v } = guesses;
    // the success of randomised response, and of its failure without cancellation
    let (q, miss) = (1.0 / (1.0 + (-epsilon).exp()), 1.0 / (1.0 + epsilon.exp()));
    let tail = binomial_tail(r, v, q, miss);
    let (mut most, mut sum) = (0.0_f64, 0.0);
    if delta > 0.0 {
        for i in 1..=v {
            let k = v - i;
            sum += (ln_binomial(r, k) + k as f64 * q.ln() + (r - k) as f64 * miss.ln()).exp();
            most = most.max(sum / i as f64);
        }
    }
    // the tails are right to twelve digits
    Ok(((tail + 2.0 * m as f64 * delta * most) * (1.0 + 1e-9)).min(1.0))
}

/// The largest ε that the guesses refute.
///
/// # Guarantee
/// If the mechanism is (ε, δ)-private under adding or removing one canary, the bound is above ε with a probability of at most
/// `1 − confidence`, over the coins and the mechanism. 0 where nothing is refuted.
///
/// # Errors
/// As [`p_value`]; confidence outside 0 to 1.
pub fn epsilon_at_least(guesses: Guesses, delta: f64, confidence: f64) -> Result<Bound> {
    in_range("confidence", confidence, confidence > 0.0 && confidence < 1.0, "above 0, below 1")?;
    let refuted =
        |epsilon: f64| Ok::<bool, crate::Error>(p_value(guesses, epsilon, delta)? <= 1.0 - confidence);
    if !refuted(0.0)? {
        return Ok(Bound::at_least(0.0, Theorem::OneRun));
    }
    // the p-value grows with ε: double until it is not refuted, then halve
    let (mut low, mut high) = (0.0, 1.0);
    while high < 700.0 && refuted(high)? {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if refuted(middle)? { low = middle } else { high = middle }
    }
    Ok(Bound::at_least(low, Theorem::OneRun))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    /// Against the definition with exact binomials, and against values computed in Python with 50 digits (mpmath).
    #[test]
    fn the_p_value_is_that_of_the_theorem() {
        let g = |canaries, guessed, right| Guesses { canaries, guessed, right };
        // r = 3, all right, ε = 0: 1/8
        assert!((p_value(g(3, 3, 3), 0.0, 0.0).unwrap() - 0.125).abs() < 1e-9);
        // ε = ln 3: ¾ each; P[W ≥ 2] of 3 = 27/64 + 27/64; δ: max of 9/64, (9 + 1)/128
        let e = 3f64.ln();
        let exact = 54.0 / 64.0 + 2.0 * 5.0 * 0.01 * (9.0 / 64.0);
        assert!((p_value(g(5, 3, 2), e, 0.01).unwrap() - exact).abs() < 1e-9);
        assert!((p_value(g(1000, 100, 75), 0.5, 0.0).unwrap() - 0.004_804_739_485_439_7).abs() < 1e-9);
        assert_eq!(p_value(g(10, 10, 0), 1.0, 0.0).unwrap(), 1.0);
        for (bad, epsilon, delta) in [
            (g(0, 0, 0), 1.0, 0.0),
            (g(5, 6, 1), 1.0, 0.0),
            (g(5, 3, 4), 1.0, 0.0),
            (g(5, 3, 2), -1.0, 0.0),
            (g(5, 3, 2), f64::NAN, 0.0),
            (g(5, 3, 2), 1.0, 1.5),
        ] {
            assert!(p_value(bad, epsilon, delta).is_err());
        }
        assert!(epsilon_at_least(g(5, 3, 2), 0.0, 1.0).is_err());
    }

    /// Randomised response of known ε on every canary: the bound exceeds ε in no more than the stated share of runs, and with
    /// many canaries comes near; a mechanism that hides nothing is found out.
    #[test]
    fn a_known_mechanism_is_not_overstated_and_nearly_reached() {
        let (epsilon, m, runs, confidence) = (1.0_f64, 2_000_u64, 400, 0.95);
        let keep = 1.0 / (1.0 + (-epsilon).exp());
        let mut rng = Seeded::new(5);
        let (mut above, mut sum) = (0, 0.0);
        for _ in 0..runs {
            let right = (0..m).filter(|_| rng.uniform() < keep).count() as u64;
            let actual =
                epsilon_at_least(Guesses { canaries: m, guessed: m, right }, 0.0, confidence).unwrap();
            above += usize::from(actual.value > epsilon);
            sum += actual.value;
        }
        // 5% wanted; four standard errors of 400 runs are 4.4%
        assert!(above <= 38, "{above}");
        let mean = sum / f64::from(runs);
        assert!(mean > 0.85 && mean < epsilon, "{mean}");
        let open =
            epsilon_at_least(Guesses { canaries: 1000, guessed: 1000, right: 1000 }, 1e-5, 0.95).unwrap();
        assert!(open.value > 4.0 && open.value < 8.0, "{open:?}");
        let blind =
            epsilon_at_least(Guesses { canaries: 1000, guessed: 1000, right: 500 }, 1e-5, 0.95).unwrap();
        assert_eq!(blind.value, 0.0);
        // δ only makes it weaker
        let g = Guesses { canaries: 1000, guessed: 200, right: 170 };
        let at = |delta| epsilon_at_least(g, delta, 0.95).unwrap().value;
        assert!(at(0.0) > at(1e-4) && at(1e-4) > at(1e-2));
    }
}
