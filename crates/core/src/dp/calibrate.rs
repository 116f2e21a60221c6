//! The noise, the sampling rate or the number of steps of DP-SGD that meets a target.

use super::{Accountant, Adjacency, Mechanism, check_delta, in_range};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Relative precision of the answer.
pub const TIGHT: f64 = 2e-4;
/// Precision of each certified number near the answer, and far from it, where it need only lead there.
const PRECISION: f64 = 2e-4;
const COARSE: f64 = 2e-3;
/// Range of noise multipliers searched.
const SIGMA: (f64, f64) = (1e-2, 1e6);
/// Most steps searched.
const STEPS: u64 = 1 << 32;

/// What must not be exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Target {
    /// ε at δ.
    Epsilon {
        /// The most it may be.
        epsilon: f64,
        /// At this δ.
        delta: f64,
    },
    /// Membership advantage, true- minus false-positive rate of the best test.
    Advantage {
        /// The most it may be.
        advantage: f64,
    },
    /// True-positive rate of the best membership test at a false-positive rate.
    TruePositiveRate {
        /// The most it may be.
        true_positive: f64,
        /// At this false-positive rate.
        false_positive: f64,
    },
    /// Probability of guessing a secret, whose likeliest value has probability `most_likely` (1/M if uniform).
    Reconstruction {
        /// The most it may be.
        success: f64,
        /// Prior probability of the likeliest value.
        most_likely: f64,
    },
}

/// What is to be chosen; the others are given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Unknown {
    /// The noise multiplier: the smallest that suffices.
    Sigma {
        /// Sampling rate.
        rate: f64,
        /// Number of steps.
        steps: u64,
    },
    /// The sampling rate: the largest allowed.
    Rate {
        /// Noise multiplier.
        sigma: f64,
        /// Number of steps.
        steps: u64,
    },
    /// The number of steps: the most allowed.
    Steps {
        /// Noise multiplier.
        sigma: f64,
        /// Sampling rate.
        rate: f64,
    },
}

/// The answer, on the safe side of the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Noise multiplier.
    pub sigma: f64,
    /// Sampling rate.
    pub rate: f64,
    /// Number of steps.
    pub steps: u64,
    /// Certified upper end of the target's quantity there: at most the target.
    pub achieved: f64,
    /// The adjacency it is about.
    pub adjacency: Adjacency,
}

impl Target {
    fn check(self) -> Result<()> {
        let probability =
            |name, p: f64| in_range(name, p, p > 0.0 && p < 1.0, "a probability above 0, below 1");
        match self {
            Self::Epsilon { epsilon, delta } => {
                check_delta(delta)?;
                super::positive("target epsilon", epsilon)
            }
            Self::Advantage { advantage } => probability("target advantage", advantage),
            Self::TruePositiveRate { true_positive, false_positive } => {
                probability("false-positive rate", false_positive)?;
                let above = true_positive > false_positive && true_positive < 1.0;
                in_range(
                    "target true-positive rate",
                    true_positive,
                    above,
                    "above the false-positive rate, below 1",
                )
            }
            Self::Reconstruction { success, most_likely } => {
                probability("probability of the likeliest value", most_likely)?;
                let above = success > most_likely && success < 1.0;
                in_range(
                    "target success",
                    success,
                    above,
                    "above the prior probability of the likeliest value",
                )
            }
        }
    }

    fn name(self) -> (&'static str, f64) {
        match self {
            Self::Epsilon { epsilon, .. } => ("epsilon", epsilon),
            Self::Advantage { advantage } => ("membership advantage", advantage),
            Self::TruePositiveRate { true_positive, .. } => ("true-positive rate", true_positive),
            Self::Reconstruction { success, .. } => ("reconstruction success", success),
        }
    }

    /// The certified upper end of the quantity.
    fn evaluate(self, sigma: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Result<f64> {
        self.evaluate_to(PRECISION, (sigma, rate, steps), adjacency)
    }

    fn evaluate_to(
        self,
        precision: f64,
        (sigma, rate, steps): (f64, f64, u64),
        adjacency: Adjacency,
    ) -> Result<f64> {
        let accountant =
            Accountant::dp_sgd(sigma, rate, steps, adjacency)?.precision(precision)?.upper_only();
        Ok(match self {
            Self::Epsilon { delta, .. } => accountant.epsilon(delta)?.upper,
            Self::Advantage { .. } => accountant.advantage()?.upper,
            Self::TruePositiveRate { false_positive, .. } => accountant.power(false_positive)?.upper,
            Self::Reconstruction { most_likely, .. } => accountant.power_of_presence(most_likely)?.upper,
        })
    }
}

/// Finds the unknown.
///
/// # Guarantee
/// At the answer the certified upper end of the target's quantity is at most the target; a noise multiplier
/// smaller, or a rate or number of steps larger, by 0.1% is not certified to be. An error where nothing in
/// range meets the target.
pub fn calibrate(target: Target, unknown: Unknown, adjacency: Adjacency) -> Result<Calibration> {
    target.check()?;
    let (subject, most) = target.name();
    let unreachable = |unknown, lowest, highest, advice| {
        Err(Error::Unreachable { subject, target: most, unknown, lowest, highest, advice })
    };
    let answer = |sigma, rate, steps, achieved| Ok(Calibration { sigma, rate, steps, achieved, adjacency });
    match unknown {
        Unknown::Sigma { rate, steps } => {
            Mechanism::gaussian(1.0, rate).check(adjacency)?;
            let f = |ln: f64, to: f64| target.evaluate_to(to, (ln.exp(), rate, steps), adjacency);
            let range = (SIGMA.0.ln(), SIGMA.1.ln());
            match in_two_rounds(f, most, 1.0_f64.ln(), range)? {
                Some((ln, achieved)) if ln <= range.0 && achieved < (1.0 - 1e-3) * most => unreachable(
                    "sigma",
                    SIGMA.0,
                    SIGMA.1,
                    "every noise searched is within it, so it asks for next to none",
                ),
                Some((ln, achieved)) => answer(ln.exp(), rate, steps, achieved),
                None => unreachable("sigma", SIGMA.0, SIGMA.1, "allow more or take fewer steps"),
            }
        }
        Unknown::Rate { sigma, steps } => {
            Mechanism::gaussian(sigma, 1.0).check(adjacency)?;
            // In −ln q, so that larger is safer here too.
            let f = |x: f64, to: f64| target.evaluate_to(to, (sigma, (-x).exp().min(1.0), steps), adjacency);
            match in_two_rounds(f, most, 4.0, (0.0, 1e-9_f64.recip().ln()))? {
                Some((x, achieved)) => answer(sigma, (-x).exp().min(1.0), steps, achieved),
                None => unreachable("sampling rate", 1e-9, 1.0, "allow more, or add noise"),
            }
        }
        Unknown::Steps { sigma, rate } => {
            Mechanism::gaussian(sigma, rate).check(adjacency)?;
            let f = |steps: u64| target.evaluate(sigma, rate, steps, adjacency);
            let (mut good, mut bad) = (0, 1);
            let mut achieved = 0.0;
            loop {
                let value = f(bad)?;
                if value > most {
                    break;
                }
                (good, achieved) = (bad, value);
                if bad >= STEPS {
                    return unreachable(
                        "number of steps",
                        1.0,
                        STEPS as f64,
                        "every number searched is within it",
                    );
                }
                bad *= 2;
            }
            // The whole number itself where it is small, to 1e-4 where it is large.
            while bad - good > 1 + good / 10_000 {
                let mid = good + (bad - good) / 2;
                let value = f(mid)?;
                if value <= most { (good, achieved) = (mid, value) } else { bad = mid }
            }
            if good == 0 {
                return unreachable("number of steps", 1.0, STEPS as f64, "one step is too much: add noise");
            }
            answer(sigma, rate, good, achieved)
        }
    }
}

/// The smallest x (to within `tolerance`) with `f(x) ≤ most`, for a falling f; none where the upper end fails.
/// Brackets by growing steps from `start`, then false position in `ln f` guarded by bisection.
pub fn search(
    f: impl FnMut(f64) -> Result<f64>,
    most: f64,
    start: f64,
    range: (f64, f64),
    tolerance: f64,
) -> Result<Option<(f64, f64)>> {
    search_from(f, most, (start, 0.3), range, tolerance)
}

/// [`search`] with numbers of a coarse precision first, whose answer is where the fine ones start.
fn in_two_rounds(
    f: impl Fn(f64, f64) -> Result<f64>,
    most: f64,
    start: f64,
    range: (f64, f64),
) -> Result<Option<(f64, f64)>> {
    let near = search_from(|x| f(x, COARSE), most, (start, 0.3), range, COARSE)?;
    // Where the coarse numbers do not reach the target the fine ones may, at the end of the range.
    let from = near.map_or((range.1, 0.3), |(x, _)| (x, 0.5 * COARSE));
    search_from(|x| f(x, PRECISION), most, from, range, TIGHT)
}

fn search_from(
    mut f: impl FnMut(f64) -> Result<f64>,
    most: f64,
    (start, step): (f64, f64),
    (lowest, highest): (f64, f64),
    tolerance: f64,
) -> Result<Option<(f64, f64)>> {
    let mut g = |x: f64| -> Result<f64> { Ok(f(x)?.max(1e-300).ln() - most.ln()) };
    let (mut x, mut step) = (start.clamp(lowest, highest), step);
    let mut value = g(x)?;
    let upwards = value > 0.0;
    let (mut bad, mut good);
    loop {
        let next = if upwards { x + step } else { x - step }.clamp(lowest, highest);
        if next == x {
            // The whole range on one side of the target.
            return Ok((!upwards).then(|| (x, most * value.exp())));
        }
        let next_value = g(next)?;
        if (next_value > 0.0) != upwards {
            (bad, good) =
                if upwards { ((x, value), (next, next_value)) } else { ((next, next_value), (x, value)) };
            break;
        }
        (x, value) = (next, next_value);
        step *= 2.0;
    }
    let mut i = 0;
    while good.0 - bad.0 > tolerance {
        let width = good.0 - bad.0;
        let chord = bad.0 + width * bad.1 / (bad.1 - good.1);
        // A little to the safe side of the chord, so that both ends close in.
        let lean = if i % 3 == 2 {
            bad.0 + 0.5 * width
        } else {
            chord + 0.3 * tolerance * if i % 2 == 0 { 1.0 } else { -1.0 }
        };
        let mid = lean.clamp(bad.0 + 0.05 * tolerance, good.0 - 0.05 * tolerance);
        let value = g(mid)?;
        if value > 0.0 {
            bad = (mid, value)
        } else {
            good = (mid, value)
        }
        i += 1;
    }
    Ok(Some((good.0, most * good.1.exp())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dp::gaussian;

    #[test]
    fn the_published_advantage_is_met_with_the_published_noise() {
        let target = Target::Advantage { advantage: 0.1 };
        let c =
            calibrate(target, Unknown::Sigma { rate: 0.002, steps: 10_000 }, Adjacency::AddRemove).unwrap();
        assert!((c.sigma / 1.0251 - 1.0).abs() < 1e-3, "{c:?}");
        assert!(c.achieved <= 0.1 && c.achieved > 0.0995);
    }

    #[test]
    fn answers_are_safe_and_tight_for_every_target_and_unknown() {
        let targets = [
            Target::Epsilon { epsilon: 2.0, delta: 1e-5 },
            Target::TruePositiveRate { true_positive: 0.05, false_positive: 0.01 },
            Target::Reconstruction { success: 0.2, most_likely: 0.1 },
        ];
        let unknowns = [
            Unknown::Sigma { rate: 0.01, steps: 1000 },
            Unknown::Rate { sigma: 1.0, steps: 1000 },
            Unknown::Steps { sigma: 1.0, rate: 0.01 },
        ];
        for target in targets {
            for unknown in unknowns {
                let c = calibrate(target, unknown, Adjacency::AddRemove).unwrap();
                let most = target.name().1;
                assert!(c.achieved <= most, "{target:?} {unknown:?} {c:?}");
                let at = |s: f64, r: f64, t: u64| target.evaluate(s, r, t, Adjacency::AddRemove).unwrap();
                assert!(at(c.sigma, c.rate, c.steps) <= most);
                let worse = match unknown {
                    Unknown::Sigma { .. } => at(c.sigma * 0.999, c.rate, c.steps),
                    Unknown::Rate { .. } => at(c.sigma, c.rate * 1.001, c.steps),
                    Unknown::Steps { .. } => at(c.sigma, c.rate, c.steps + c.steps / 1000 + 1),
                };
                assert!(worse > most, "{target:?} {unknown:?} {c:?} {worse}");
            }
        }
    }

    #[test]
    fn the_plain_gaussian_is_calibrated_as_in_closed_form() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            let target = Target::Epsilon { epsilon: 1.0, delta: 1e-6 };
            let c = calibrate(target, Unknown::Sigma { rate: 1.0, steps: 1 }, adjacency).unwrap();
            let e = gaussian::epsilon(adjacency.sensitivity() / c.sigma, 1e-6).unwrap();
            assert!(e <= 1.0 && e > 0.998, "{c:?} {e}");
        }
    }

    #[test]
    fn out_of_reach_is_an_error() {
        let steps = Unknown::Steps { sigma: 0.3, rate: 0.5 };
        let r = calibrate(Target::Epsilon { epsilon: 0.1, delta: 1e-9 }, steps, Adjacency::AddRemove);
        assert!(matches!(r, Err(Error::Unreachable { .. })), "{r:?}");
        let below = Target::Reconstruction { success: 0.05, most_likely: 0.1 };
        assert!(calibrate(below, steps, Adjacency::AddRemove).is_err());
        let below = Target::TruePositiveRate { true_positive: 0.01, false_positive: 0.01 };
        assert!(calibrate(below, steps, Adjacency::AddRemove).is_err());
        assert!(
            calibrate(Target::Epsilon { epsilon: -1.0, delta: 1e-5 }, steps, Adjacency::AddRemove).is_err()
        );
    }
}
