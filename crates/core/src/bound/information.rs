//! Mutual information between a secret and what is released, in nats: exact, bounded, or estimated with a
//! confidence limit that is itself a bound.

use super::optimal::{Sampler, Success};
use super::prior::PAIRWISE_UP_TO;
use super::{Encodings, Prior};
use crate::claim::Observed;
use crate::dp::{Mechanism, in_range};
use crate::error::Setting;
use crate::num::Moments;
use crate::special::{entropy_term, ln_sum_exp};
use crate::{Error, Result};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Exact information of randomised response (Guo eq. 9), as a sum of positive terms.
pub fn randomised_response(prior: &Prior, noise: f64) -> Result<f64> {
    Setting::ResponseNoise.probability(noise)?;
    let (a, b) = Mechanism::response(prior.candidates(), noise);
    // Σ_y p_y KL(a, P_y) + (1−p_y) KL(b, P_y) with P_y = b + (a−b)p_y: the added terms −x + y cancel over x.
    Ok(prior.sum(|p| {
        let y = b + (a - b) * p;
        p * entropy_term(a, y) + (1.0 - p) * entropy_term(b, y)
    }))
}

/// Upper bound for the Gaussian mechanism whose encodings are at most `diameter` apart (Guo thm. 2, eq. 19).
pub fn theorem_2(prior: &Prior, diameter: f64, sigma: f64) -> Result<f64> {
    Setting::Sigma.positive(sigma)?;
    let gone = -(-0.5 * (diameter / sigma).powi(2)).exp_m1();
    // −ln(p + (1−p)(1−gone)) = −ln(1 − (1−p) gone)
    Ok(prior.sum(|p| -p * (-(1.0 - p) * gone).ln_1p()))
}

/// The bound of Theorem 2 before all distances are replaced by the largest,
/// `−Σ_m p_m ln Σ_l p_l e^{−‖e_m−e_l‖²/2σ²}`; none where the pairs are too many.
pub fn pairwise(prior: &Prior, encodings: &Encodings, sigma: f64) -> Result<Option<f64>> {
    Setting::Sigma.positive(sigma)?;
    encodings.check(prior)?;
    if prior.candidates() as usize > PAIRWISE_UP_TO {
        return Ok(None);
    }
    Ok(Some(pairwise_of(&prior.probabilities(), encodings, sigma)))
}

/// [`pairwise`] with everything checked.
pub(crate) fn pairwise_of(p: &[f64], encodings: &Encodings, sigma: f64) -> f64 {
    let of = |m: usize| {
        let terms = (0..p.len()).filter(|&l| p[l] > 0.0);
        ln_sum_exp(terms.map(|l| p[l].ln() - 0.5 * (encodings.between(m, l) / sigma).powi(2)))
    };
    (0..p.len()).filter(|&m| p[m] > 0.0).map(|m| -p[m] * of(m)).sum::<f64>().max(0.0)
}

/// An estimate of the information and what it cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over draws.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The information is not above this, with probability `confidence` over the draws.
    pub upper: f64,
    /// Confidence of `upper`.
    pub confidence: f64,
    /// Number of draws.
    pub draws: u64,
}

/// Draws of the information density and what follows from them; mergeable.
///
/// A draw is `x = −ln Σ_l p_l e^{−(‖y−e_l‖²−‖y−e_k‖²)/2σ²}` with `y = e_k + σz`, whose mean over k and z is the information.
/// Draws are cut off at both ends, chosen before any is made, with ρ the largest distance over σ:
/// from below at `−min(8, 8ρ)`, which can only raise the mean; from above at `min(−ln p_min, ρ²/2 + 8ρ)`, which loses
/// nothing or, by Jensen `x ≤ Σ_l p_l (d²/2 + d·z)` with `‖d‖ ≤ ρ`, at most `ρ E[(z−8)₊] < ρ·1e-16`, which is added.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draws {
    low: f64,
    high: f64,
    lost: f64,
    of: Moments,
    success: Success,
}

impl Draws {
    /// None yet; `rho` bounds the distances over σ of every sampler that is drawn from.
    pub(crate) fn new(prior: &Prior, rho: f64) -> Self {
        let least = match prior {
            Prior::Uniform(m) => -(*m as f64).ln(),
            Prior::Given(p) => p.iter().filter(|x| **x > 0.0).fold(0.0, |a, x| x.ln().min(a)),
        };
        let (possible, likely) = (-least, 0.5 * rho * rho + 8.0 * rho);
        let lost = if likely < possible { rho * 1e-16 } else { 0.0 };
        Self { low: -(8.0 * rho).min(8.0), high: possible.min(likely), lost, ..Self::none() }
    }

    /// None yet, to merge others into.
    pub(crate) fn none() -> Self {
        Self { low: 0.0, high: 0.0, lost: 0.0, of: Moments::default(), success: Success::default() }
    }

    /// One draw.
    pub(crate) fn add(&mut self, sampler: &mut Sampler, rng: &mut impl Rng) {
        let k = sampler.draw(rng);
        let scores = sampler.scores();
        let ln_sum = ln_sum_exp(scores.iter().copied());
        self.success.add(scores, ln_sum);
        let x = scores[k] - sampler.ln_prior(k) - ln_sum;
        self.of.add(x.clamp(self.low, self.high));
    }

    /// Adds the draws of another state; the ends are those that hold all.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.of.count == 0 {
            return;
        }
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
        self.lost = self.lost.max(other.lost);
        self.of.merge(&other.of);
        self.success.merge(&other.success);
    }

    /// How often the likeliest candidate is right.
    pub(crate) fn attack(&self, seed: u64) -> Observed {
        self.success.observed(seed)
    }

    /// The mean and what the information, averaged over whatever was drawn from, cannot exceed.
    ///
    /// # Guarantee
    /// `upper` is an empirical Bernstein limit (Maurer & Pontil 2009, thm. 4) and needs no normal approximation. Draws
    /// must be independent; they need not be alike: the theorem's two parts, Bennett's inequality with the mean
    /// variance and thm. 10 for the sample variance, which is at least that on average, hold for each on its own.
    pub(crate) fn estimate(&self, confidence: f64) -> Result<Estimate> {
        let Moments { count, mean, m2 } = self.of;
        in_range("draws", count as f64, count >= 100, "at least 100")?;
        in_range("confidence", confidence, confidence > 0.0 && confidence < 1.0, "above 0, below 1")?;
        let n = count as f64;
        let variance = m2 / (n - 1.0);
        let ln = (2.0 / (1.0 - confidence)).ln();
        let range = self.high - self.low;
        let upper =
            mean + (2.0 * variance * ln / n).sqrt() + 7.0 * range * ln / (3.0 * (n - 1.0)) + self.lost;
        if !upper.is_finite() {
            let expected = "noise the encodings can be seen in";
            return Err(Error::OutOfRange { subject: "the estimated information", value: upper, expected });
        }
        let standard_error = (variance / n).sqrt();
        Ok(Estimate { value: mean, standard_error, upper: upper.max(0.0), confidence, draws: count })
    }
}

/// Information of the Gaussian mechanism by Monte Carlo, with a one-sided confidence limit.
pub fn gaussian_by_monte_carlo(
    prior: &Prior,
    encodings: &Encodings,
    sigma: f64,
    draws: u64,
    confidence: f64,
    rng: &mut impl Rng,
) -> Result<Estimate> {
    let mut sampler = Sampler::new(prior, encodings, sigma)?;
    let mut sum = Draws::new(prior, encodings.diameter(prior.candidates()) / sigma);
    for _ in 0..draws {
        sum.add(&mut sampler, rng);
    }
    sum.estimate(confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    #[test]
    fn randomised_response_is_the_double_sum_of_its_definition() {
        let p = [0.5, 0.2, 0.3];
        let prior = Prior::from_probabilities(p.to_vec()).unwrap();
        for q in [0.1, 0.7, 1.0] {
            let channel = |x: usize, y: usize| q / 3.0 + if x == y { 1.0 - q } else { 0.0 };
            let py = |y: usize| (0..3).map(|x| p[x] * channel(x, y)).sum::<f64>();
            let exact: f64 = (0..9)
                .map(|i| (i / 3, i % 3))
                .map(|(x, y)| p[x] * channel(x, y) * (channel(x, y) / py(y)).ln())
                .sum();
            assert!((randomised_response(&prior, q).unwrap() - exact).abs() < 1e-14);
        }
    }

    #[test]
    fn monte_carlo_agrees_with_quadrature_for_two_points() {
        // Two points 2 apart, σ = 1: I = ln 2 − E[ln(1 + e^{−2(1+z)})], z normal.
        let prior = Prior::uniform(2).unwrap();
        let e = Encodings::vectors(1, vec![-1.0, 1.0]).unwrap();
        let n = 20_000;
        let exact: f64 = (0..n)
            .map(|i| -9.0 + 18.0 * (f64::from(i) + 0.5) / f64::from(n))
            .map(|z: f64| {
                let value = 2.0_f64.ln() - (-2.0 * (1.0 + z)).exp().ln_1p();
                crate::special::normal_pdf(z) * value * 18.0 / f64::from(n)
            })
            .sum();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let i = gaussian_by_monte_carlo(&prior, &e, 1.0, 40_000, 0.999, &mut rng).unwrap();
        assert!((i.value - exact).abs() < 4.0 * i.standard_error + 4e-4 && i.upper > exact, "{i:?} {exact}");
        let bound = theorem_2(&prior, 2.0, 1.0).unwrap();
        assert!(bound > exact && (pairwise(&prior, &e, 1.0).unwrap().unwrap() - bound).abs() < 1e-14);
    }
}
