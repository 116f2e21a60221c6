//! Mutual information between a secret and what is released, in nats: exact, bounded, or estimated with a
//! confidence limit that is itself a bound.

use super::optimal::Sampler;
use super::prior::PAIRWISE_UP_TO;
use super::{Encodings, Prior};
use crate::dp::{Mechanism, in_range, positive};
use crate::special::{entropy_term, ln_sum_exp};
use crate::{Error, Result};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Exact information of randomised response (Guo eq. 9), as a sum of positive terms.
pub fn randomised_response(prior: &Prior, noise: f64) -> Result<f64> {
    in_range("noise", noise, noise > 0.0 && noise <= 1.0, "a probability above 0, at most 1")?;
    let (a, b) = Mechanism::response(prior.candidates(), noise);
    // Σ_y p_y KL(a, P_y) + (1−p_y) KL(b, P_y) with P_y = b + (a−b)p_y: the added terms −x + y cancel over x.
    Ok(prior.sum(|p| {
        let y = b + (a - b) * p;
        p * entropy_term(a, y) + (1.0 - p) * entropy_term(b, y)
    }))
}

/// Upper bound for the Gaussian mechanism whose encodings are at most `diameter` apart (Guo thm. 2, eq. 19).
pub fn theorem_2(prior: &Prior, diameter: f64, sigma: f64) -> Result<f64> {
    positive("sigma", sigma)?;
    let gone = -(-0.5 * (diameter / sigma).powi(2)).exp_m1();
    // −ln(p + (1−p)(1−gone)) = −ln(1 − (1−p) gone)
    Ok(prior.sum(|p| -p * (-(1.0 - p) * gone).ln_1p()))
}

/// The bound of Theorem 2 before all distances are replaced by the largest,
/// `−Σ_m p_m ln Σ_l p_l e^{−‖e_m−e_l‖²/2σ²}`; none where the pairs are too many.
pub fn pairwise(prior: &Prior, encodings: &Encodings, sigma: f64) -> Result<Option<f64>> {
    positive("sigma", sigma)?;
    encodings.check(prior)?;
    let p = match prior {
        Prior::Given(p) if p.len() <= PAIRWISE_UP_TO => p.clone(),
        Prior::Uniform(m) if *m as usize <= PAIRWISE_UP_TO => vec![1.0 / *m as f64; *m as usize],
        _ => return Ok(None),
    };
    let of = |m: usize| {
        let terms = (0..p.len()).filter(|&l| p[l] > 0.0);
        ln_sum_exp(terms.map(|l| p[l].ln() - 0.5 * (encodings.between(m, l) / sigma).powi(2)))
    };
    Ok(Some((0..p.len()).filter(|&m| p[m] > 0.0).map(|m| -p[m] * of(m)).sum::<f64>().max(0.0)))
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

/// Draws are cut off here from below.
const FLOOR: f64 = -8.0;

/// Information of the Gaussian mechanism by Monte Carlo, `E[−ln Σ_l p_l e^{−(‖y−e_l‖²−‖y−e_k‖²)/2σ²}]`, `y = e_k + σz`.
///
/// # Guarantee
/// `upper` is an empirical Bernstein limit (Maurer & Pontil 2009, thm. 4): each draw is at most `−ln p_k`, and is
/// cut off from below at −8, which can only raise the mean, and by at most `e^{−8}` since `E[e^{−draw}] = 1`. It needs
/// no normal approximation.
pub fn gaussian_by_monte_carlo(
    prior: &Prior,
    encodings: &Encodings,
    sigma: f64,
    draws: u64,
    confidence: f64,
    rng: &mut impl Rng,
) -> Result<Estimate> {
    in_range("draws", draws as f64, draws >= 100, "at least 100")?;
    in_range("confidence", confidence, confidence > 0.0 && confidence < 1.0, "above 0, below 1")?;
    let mut sampler = Sampler::new(prior, encodings, sigma)?;
    let (mut mean, mut m2) = (0.0, 0.0);
    let floor = FLOOR;
    for i in 0..draws {
        let k = sampler.draw(rng);
        let scores = sampler.scores();
        let x = (scores[k] - sampler.ln_prior(k) - ln_sum_exp(scores.iter().copied())).max(floor);
        let d = x - mean;
        mean += d / (i + 1) as f64;
        m2 += d * (x - mean);
    }
    let n = draws as f64;
    let variance = m2 / (n - 1.0);
    let ln = (2.0 / (1.0 - confidence)).ln();
    let range = -sampler.least_ln_prior() - floor;
    let upper = mean + (2.0 * variance * ln / n).sqrt() + 7.0 * range * ln / (3.0 * (n - 1.0));
    if !upper.is_finite() {
        return Err(Error::OutOfRange {
            what: "sigma",
            value: sigma,
            expected: "noise the encodings can be seen in",
        });
    }
    Ok(Estimate { value: mean, standard_error: (variance / n).sqrt(), upper, confidence, draws })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    #[test]
    fn randomised_response_is_the_double_sum_of_its_definition() {
        let p = [0.5, 0.2, 0.3];
        let prior = Prior::given(p.to_vec()).unwrap();
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
