//! The three kinds of number that Leakscope shows, as three types: what is *measured* from the model and the
//! data, what is *proved* for every attacker of a stated kind, and what one attack was *observed* to achieve.
//! They do not convert into one another, so no report can print an attack's success as a guarantee.

use serde::{Deserialize, Serialize};

/// A number computed from the model and the data: exact, or an estimate with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Standard error of an estimate; absent where the value is exact.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub standard_error: Option<f64>,
}

impl Measured {
    /// An exactly computed number.
    pub fn exact(value: f64) -> Self {
        Self { value, standard_error: None }
    }
}

/// Which side of the truth a bound lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The true value is never below: the attacker's error is at least this.
    AtLeast,
    /// The true value is never above: the attacker's success is at most this.
    AtMost,
}

/// The theorem a bound rests on. Everything a reader must know to use the number hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theorem {
    /// Variance of an unbiased estimate of one attribute.
    CramerRao,
    /// Mean squared error over a whole record of an unbiased estimate.
    CramerRaoRecord,
    /// Mean squared error over a whole record of an unbiased estimate from one noisy sum of gradients.
    CramerRaoGradient,
    /// Error of any estimate, biased or not, averaged over a prior.
    VanTrees,
    /// Fano's inequality with the exact mutual information.
    FanoExact,
    /// Fano's inequality with a confidence limit on simulated mutual information.
    FanoMonteCarlo,
    /// Fano's inequality with the information of a Gaussian mixture bounded pair by pair.
    FanoPairwise,
    /// Fano's inequality with the information of a Gaussian mixture bounded by its largest distance.
    FanoTheorem2,
    /// Fano's inequality, generalised, with Rényi differential privacy.
    FanoRdp,
    /// The same, with divergences from one reference instead of between candidates.
    FanoReference,
    /// Closed form of Fano's inequality.
    Salamatian,
    /// Reconstruction robustness from Rényi differential privacy.
    Balle,
    /// Hypothesis tests against one Gaussian at equal distance from all candidates.
    OneCentre,
    /// Hypothesis tests against the best Gaussian found.
    BestCentre,
    /// The trade-off function of a private mechanism.
    TradeOff,
    /// Total variation: the membership advantage added to the prior.
    TotalVariation,
    /// The likelihood ratio of two models, each fitted with one of two values in place.
    TwoValues,
    /// Right guesses of canaries in one run: a lower bound on ε.
    OneRun,
    /// True against false positives of a test under (ε, δ).
    EpsilonDelta,
}

impl Theorem {
    /// Paper and equation.
    pub fn source(self) -> &'static str {
        match self {
            Self::CramerRao => "Cramér–Rao; Hannun, Guo, van der Maaten 2021, eq. 11–12",
            Self::CramerRaoRecord => "Cramér–Rao; Edmunds 2024, eq. 1.2",
            Self::CramerRaoGradient => "Cramér–Rao; Guo, Karrer, Chaudhuri, van der Maaten 2022, theorem 1",
            Self::VanTrees => "van Trees inequality, in each coordinate; Edmunds 2024, eq. 1.3",
            Self::FanoExact => "Guo et al. 2022, algorithm 1 with eq. 9",
            Self::FanoMonteCarlo => "Guo et al. 2022, algorithm 1 with §5.2; Maurer, Pontil 2009, thm. 4",
            Self::FanoPairwise => "Guo et al. 2022, algorithm 1 with the first inequality of thm. 2",
            Self::FanoTheorem2 => "Guo et al. 2022, algorithm 1 with thm. 2, eq. 19",
            Self::FanoRdp => "Guo et al. 2022, algorithms 1 and 2 with thm. 1",
            Self::FanoReference => {
                "Guo et al. 2022, algorithm 2; Arimoto information as a minimum over references"
            }
            Self::Salamatian => "Salamatian et al. 2020, closed form of Fano's inequality",
            Self::Balle => "Balle, Cherubin, Hayes 2022, reconstruction robustness from Rényi DP",
            Self::OneCentre => "Neyman–Pearson against one reference: Φ(Φ⁻¹(p*) + r/σ)",
            Self::BestCentre => "Neyman–Pearson against the best references: max Σ p Φ(Φ⁻¹(q) + r/σ)",
            Self::TradeOff => "1 − f(p*), f from privacy loss distributions; Kulynych et al. 2024, thm. 3.3",
            Self::TwoValues => {
                "Neyman–Pearson between two refitted models: Φ(δ√K/2), δ² = (w_a − w_b)ᵀΣ⁻¹(w_a − w_b)"
            }
            Self::OneRun => "Steinke, Nasr, Jagielski 2023, theorem 5.2",
            Self::EpsilonDelta => {
                "Kairouz, Oh, Viswanath 2015, theorem 2.1: TPR ≤ e^ε FPR + δ, 1 − FPR ≤ e^ε (1 − TPR) + δ"
            }
            Self::TotalVariation => "p* plus the total variation distance, δ at ε = 0",
        }
    }

    /// What must hold for the bound to hold.
    pub fn assumptions(self) -> &'static [&'static str] {
        /// What every bound on guessing a discrete secret assumes.
        const GAME: &str = "the secret is drawn from the stated prior, and the attacker guesses once";
        const KNOWS: &str = "the attacker may know everything else: prior, mechanism, all other data";
        const NORMAL: &str = "the noise is Gaussian, independent in every coordinate";
        match self {
            Self::FanoExact => &[GAME, KNOWS],
            Self::FanoMonteCarlo => {
                &[GAME, KNOWS, NORMAL, "holds with the stated confidence over the simulation"]
            }
            Self::FanoPairwise | Self::OneCentre | Self::BestCentre | Self::FanoReference => {
                &[GAME, KNOWS, NORMAL]
            }
            Self::FanoTheorem2 => &[GAME, KNOWS, NORMAL, "no two encodings are further apart than stated"],
            Self::Salamatian => &[GAME, KNOWS, "the information is not above the bound it was given"],
            Self::FanoRdp | Self::Balle => {
                &[GAME, KNOWS, "the mechanism has the stated Rényi divergences under the stated adjacency"]
            }
            Self::TwoValues => &[
                "the attacker asks which of two values it is, and both are equally likely beforehand",
                KNOWS,
                "nothing is published of the model but its coefficients with Gaussian noise of the stated covariance, and what does \
                 not depend on the value",
            ],
            Self::OneRun => &[
                "each canary was in the data or not by a fair coin of its own, which nothing else saw",
                "the guesses were made from what the run gave out, and their number was fixed beforehand",
                "the run is private under adding or removing one record, as stated",
                "holds with the stated confidence over the coins and the run",
            ],
            Self::EpsilonDelta => {
                &["the run is (ε, δ)-private, as it states, for a record that is there or is not", KNOWS]
            }
            Self::TradeOff | Self::TotalVariation => {
                &[GAME, KNOWS, "the mechanism is private as accounted under the stated adjacency"]
            }
            Self::CramerRao => &[
                "the attacker sees the released coefficients and may know every other value of the table",
                "the estimate is unbiased",
                "the noise is Gaussian, independent in every coefficient, and the model is at its minimiser",
                "the encoding (levels, scaling, components) is public",
            ],
            Self::CramerRaoRecord => &[
                "the attacker sees the released coefficients and may know every other record",
                "the estimate of the record is unbiased",
                "the noise is Gaussian, independent in every coefficient, and the model is at its minimiser",
                "the encoding (levels, scaling, components) is public",
            ],
            Self::CramerRaoGradient => &[
                "the attacker sees the noisy sum of clipped gradients of one step, knows the parameters it was taken at \
                 and that the record took part, and may know every other record",
                "the estimate of the record is unbiased",
                "the noise is Gaussian with standard deviation σC, independent in every trained parameter",
            ],
            Self::VanTrees => &[
                "the attacker sees the released coefficients and may know every other value of the table",
                "the secret is drawn from a normal distribution with the stated spread",
                "the information it is computed from is the expected one over that distribution, not the average over the \
                 records of a table",
                "the noise is Gaussian, independent in every coefficient, and the model is at its minimiser",
            ],
        }
    }
}

/// A number proved for *every* attacker of a stated kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The bound, rounded to the safe side.
    pub value: f64,
    /// Which side of the truth it lies on.
    pub direction: Direction,
    /// What it rests on.
    pub theorem: Theorem,
}

/// Bounds give way by this much, relative, so that rounding in their computation never makes them too strong.
const SAFETY: f64 = 1e-12;

impl Bound {
    /// A lower bound, moved down by the safety margin.
    pub fn at_least(value: f64, theorem: Theorem) -> Self {
        Self {
            value: if value.is_finite() { value - value.abs() * SAFETY } else { value },
            direction: Direction::AtLeast,
            theorem,
        }
    }

    /// An upper bound, moved up by the safety margin.
    pub fn at_most(value: f64, theorem: Theorem) -> Self {
        Self {
            value: if value.is_finite() { value + value.abs() * SAFETY } else { value },
            direction: Direction::AtMost,
            theorem,
        }
    }

    /// An upper bound on a probability or an advantage: moved up by the safety margin, and never above 1, which needs no
    /// proof.
    pub fn share_at_most(value: f64, theorem: Theorem) -> Self {
        let bound = Self::at_most(value, theorem);
        Self { value: bound.value.min(1.0), ..bound }
    }
}

/// What one attack achieved in trials: evidence, never a guarantee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The average over trials.
    pub value: f64,
    /// Lower end of the 95% interval over trials.
    pub ci_low: f64,
    /// Upper end of the 95% interval over trials.
    pub ci_high: f64,
    /// Number of independent trials (noise draws).
    pub trials: u64,
    /// Seed of the generator.
    pub seed: u64,
}

impl Observed {
    /// The share of hits in independent trials, with Wilson's 95% interval, which is none of length zero where there was no
    /// hit or no miss.
    pub fn of_hits(hits: u64, trials: u64, seed: u64) -> Self {
        let (n, value) = (trials.max(1) as f64, hits.min(trials) as f64 / trials.max(1) as f64);
        let z = 1.959_963_984_540_054_f64;
        let centre = (value + 0.5 * z * z / n) / (1.0 + z * z / n);
        let half = z * (value * (1.0 - value) / n + 0.25 * z * z / (n * n)).sqrt() / (1.0 + z * z / n);
        let (ci_low, ci_high) = ((centre - half).clamp(0.0, value), (centre + half).clamp(value, 1.0));
        Self { value, ci_low, ci_high, trials, seed }
    }

    /// The share of hits with the exact 95% interval of Clopper and Pearson (1934), which covers at least as often as it says,
    /// however rare hits are.
    pub fn of_rare_hits(hits: u64, trials: u64, seed: u64) -> Self {
        let (n, k) = (trials.max(1), hits.min(trials));
        // P[X ≥ k] grows in p: where it is this is found by halving
        let where_tail_is = |k: u64, level: f64| {
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                if crate::special::binomial_tail(n, k, middle, 1.0 - middle) < level {
                    low = middle
                } else {
                    high = middle
                }
            }
            (low, high)
        };
        let ci_low = if k == 0 { 0.0 } else { where_tail_is(k, 0.025).0 };
        let ci_high = if k == n { 1.0 } else { where_tail_is(k + 1, 0.975).1 };
        Self { value: k as f64 / n as f64, ci_low, ci_high, trials, seed }
    }

    /// The same on another scale, `(value − offset)/scale`, scale positive: an advantage from a success.
    #[must_use]
    pub fn rescaled(&self, offset: f64, scale: f64) -> Self {
        let of = |x: f64| (x - offset) / scale;
        Self {
            value: of(self.value),
            ci_low: of(self.ci_low),
            ci_high: of(self.ci_high),
            trials: self.trials,
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson 1927, as textbooks print it: 10 of 20 gives 0.299 to 0.701, none of 20 up to 0.161.
    #[test]
    fn intervals_of_hits_are_wilsons() {
        let half = Observed::of_hits(10, 20, 1);
        assert!(
            (half.ci_low - 0.299_298).abs() < 1e-6 && (half.ci_high - 0.700_702).abs() < 1e-6,
            "{half:?}"
        );
        let none = Observed::of_hits(0, 20, 1);
        assert!(none.ci_low == 0.0 && (none.ci_high - 0.161_125).abs() < 1e-6, "{none:?}");
        let all = Observed::of_hits(20, 20, 1);
        assert!(all.ci_high == 1.0 && all.value == 1.0 && all.ci_low < 0.84);
        assert_eq!(Observed::of_hits(0, 0, 1).value, 0.0);
        // Clopper and Pearson, by mpmath to 40 digits
        let rare = Observed::of_rare_hits(3, 20, 1);
        assert!(
            (rare.ci_low - 0.032_070_937_185_46).abs() < 1e-9
                && (rare.ci_high - 0.378_926_826_545_31).abs() < 1e-9,
            "{rare:?}"
        );
        let none = Observed::of_rare_hits(0, 20, 1);
        assert!(none.ci_low == 0.0 && (none.ci_high - 0.168_433_470_98).abs() < 1e-9, "{none:?}");
        assert_eq!(Observed::of_rare_hits(20, 20, 1).ci_high, 1.0);
        let advantage = half.rescaled(0.1, 0.9);
        assert!((advantage.value - 4.0 / 9.0).abs() < 1e-15 && advantage.trials == 20);
    }
}
