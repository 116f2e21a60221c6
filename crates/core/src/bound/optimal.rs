//! What the best attacker does achieve, who guesses the likeliest value given what was released (Bayes): in closed
//! form where there is one, else simulated. Evidence for how tight a bound is, never a bound.

use super::{Encodings, Prior};
use crate::claim::Observed;
use crate::dp::Mechanism;
use crate::error::Setting;
use crate::num::Moments;
use crate::special::{ln_sum_exp, normal_cdf, normal_ln_cdf, normal_pdf};
use crate::{Error, Result};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// Candidates are simulated one by one up to this many.
pub const SIMULATED_UP_TO: u64 = 1_000_000;

/// Draws a secret and what the Gaussian mechanism releases about it.
pub(crate) struct Sampler<'a> {
    ln_p: Vec<f64>,
    /// Cumulative probabilities.
    below: Vec<f64>,
    encodings: &'a Encodings,
    sigma: f64,
    z: Vec<f64>,
    scores: Vec<f64>,
    spare: Option<f64>,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(prior: &Prior, encodings: &'a Encodings, sigma: f64) -> Result<Self> {
        Setting::Sigma.positive(sigma)?;
        encodings.check(prior)?;
        let m = prior.candidates();
        Setting::Candidates.in_range(m as f64, m <= SIMULATED_UP_TO, "at most 1e6 to be simulated")?;
        let p = prior.probabilities();
        let mut sum = 0.0;
        let below = p.iter().map(|x| (sum += x, sum).1).collect();
        let width = match encodings {
            Encodings::OneHot => p.len(),
            Encodings::Vectors { width, .. } => *width,
        };
        let ln_p = p.iter().map(|x| x.ln()).collect();
        Ok(Self {
            ln_p,
            below,
            encodings,
            sigma,
            z: vec![0.0; width],
            scores: vec![0.0; p.len()],
            spare: None,
        })
    }

    pub(crate) fn ln_prior(&self, k: usize) -> f64 {
        self.ln_p[k]
    }

    /// Draws a secret k and an output; afterwards [`Sampler::scores`] holds `ln p_l − (‖y−e_l‖² − ‖y−e_k‖²)/2σ²`.
    pub(crate) fn draw(&mut self, rng: &mut impl Rng) -> usize {
        let u = uniform(rng);
        let mut k = self.below.partition_point(|&b| b <= u).min(self.below.len() - 1);
        while self.ln_p[k] == f64::NEG_INFINITY && k > 0 {
            k -= 1;
        }
        for i in 0..self.z.len() {
            self.z[i] = self.normal(rng);
        }
        let s = self.sigma;
        match self.encodings {
            Encodings::OneHot => {
                let zk = self.z[k];
                for (l, score) in self.scores.iter_mut().enumerate() {
                    let away = if l == k { 0.0 } else { 1.0 / (s * s) + (zk - self.z[l]) / s };
                    *score = self.ln_p[l] - away;
                }
            }
            Encodings::Vectors { width, values } => {
                let e = &values[k * width..(k + 1) * width];
                for ((score, ln_p), f) in
                    self.scores.iter_mut().zip(&self.ln_p).zip(values.chunks_exact(*width))
                {
                    let away: f64 = e
                        .iter()
                        .zip(f)
                        .zip(&self.z)
                        .map(|((e, f), z)| (e - f) / s * (0.5 * (e - f) / s + z))
                        .sum();
                    *score = ln_p - away;
                }
            }
        }
        k
    }

    pub(crate) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// A standard normal number, by the polar method.
    fn normal(&mut self, rng: &mut impl Rng) -> f64 {
        if let Some(x) = self.spare.take() {
            return x;
        }
        loop {
            let (a, b) = (2.0 * uniform(rng) - 1.0, 2.0 * uniform(rng) - 1.0);
            let r = a * a + b * b;
            if r > 0.0 && r < 1.0 {
                let f = (-2.0 * r.ln() / r).sqrt();
                self.spare = Some(a * f);
                return b * f;
            }
        }
    }
}

/// A uniform number in [0, 1) with 53 bits.
fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// The optimal attack on the Gaussian mechanism, simulated (`Success`).
pub fn gaussian_attack(
    prior: &Prior,
    encodings: &Encodings,
    sigma: f64,
    trials: u64,
    seed: u64,
) -> Result<Observed> {
    Setting::Trials.in_range(trials as f64, trials >= 1, "at least 1")?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sampler = Sampler::new(prior, encodings, sigma)?;
    let mut success = Success::default();
    for _ in 0..trials {
        sampler.draw(&mut rng);
        success.add(sampler.scores(), ln_sum_exp(sampler.scores().iter().copied()));
    }
    Ok(success.observed(seed))
}

/// How often the optimal attack is right, over simulated releases: of each, the probability that its guess is right
/// given what it saw, which has the same mean as the hits and far less chance in it.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Success(Moments);

impl Success {
    /// One release: logarithms of the candidates' posterior weights, and of their sum.
    pub fn add(&mut self, scores: &[f64], ln_sum: f64) {
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.0.add((best - ln_sum).exp().min(1.0));
    }

    /// Adds the releases of another state.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    /// The mean with a 95% interval: the normal one, and 4/n for what is too rare to have been seen (`e^{−4}` of a
    /// failure to see it).
    pub fn observed(&self, seed: u64) -> Observed {
        let Moments { count: trials, mean: value, m2 } = self.0;
        let n = trials.max(1) as f64;
        let half = 1.959_963_984_540_054 * (m2.max(0.0) / n / n).sqrt() + 4.0 / n;
        let (ci_low, ci_high) = ((value - half).max(0.0), (value + half).min(1.0));
        Observed { value, ci_low, ci_high, trials, seed }
    }
}

/// Success of the optimal attack on one-hot encodings under a uniform prior, `∫ φ(z − 1/σ) Φ(z)^{M−1} dz`: the
/// largest coordinate is guessed. Any M.
pub fn one_hot(candidates: u64, sigma: f64) -> Result<f64> {
    Setting::Sigma.positive(sigma)?;
    Setting::Candidates.in_range(candidates as f64, candidates >= 2, "at least 2")?;
    let (centre, others) = (1.0 / sigma, candidates as f64 - 1.0);
    // The trapezoidal rule on an analytic integrand with Gaussian decay: a step of 1/32 is far below rounding.
    let step = 1.0 / 32.0;
    let sum: f64 = (-400..=400)
        .map(|i| f64::from(i) * step)
        .map(|u| normal_pdf(u) * (others * normal_ln_cdf(u + centre)).exp())
        .sum();
    Ok((sum * step).clamp(1.0 / candidates as f64, 1.0))
}

/// The same attack played: of each game the secret's coordinate and the largest of all others are drawn, the latter as
/// `Φ⁻¹(U^{1/(M−1)})`, so that a million games cost a second whatever M.
pub fn one_hot_played(candidates: u64, sigma: f64, trials: u64, seed: u64) -> Result<Observed> {
    Setting::Sigma.positive(sigma)?;
    Setting::Candidates.in_range(candidates as f64, candidates >= 2, "at least 2")?;
    Setting::Trials.in_range(trials as f64, trials >= 1, "at least 1")?;
    let mut random = crate::random::Seeded::new(seed);
    let others = (candidates - 1) as f64;
    let mut hits = 0;
    let mut left = trials;
    while left > 0 {
        let some = left.min(4096);
        for z in random.normals(some as usize) {
            let largest = (random.uniform().ln() / others).exp();
            hits += u64::from(normal_cdf(z + 1.0 / sigma) > largest);
        }
        left -= some;
    }
    Ok(Observed::of_hits(hits, trials, seed))
}

/// Success of the optimal attack on randomised response, `Σ_y max_x p_x P(y|x)`.
pub fn randomised_response(prior: &Prior, noise: f64) -> Result<f64> {
    Setting::ResponseNoise.probability(noise)?;
    let (a, b) = Mechanism::response(prior.candidates(), noise);
    let Prior::Given(p) = prior else { return Ok(a) };
    let (mut first, mut second) = (0.0, 0.0);
    for &x in p {
        if x > first {
            (first, second) = (x, first);
        } else if x > second {
            second = x;
        }
    }
    // The likeliest other value: the second for the likeliest itself, and a tie makes the two equal.
    let total: f64 = p.iter().map(|&x| (a * x).max(b * if x == first { second } else { first })).sum();
    if total.is_finite() { Ok(total.min(1.0)) } else { Err(Error::Empty) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hot_agrees_with_quadrature_at_high_precision_and_with_simulation() {
        for row in crate::dp::golden("one_hot_optimal") {
            let s = one_hot(row[0] as u64, row[1]).unwrap();
            assert!((s / row[2] - 1.0).abs() < 1e-8, "{row:?}: {s}");
        }
        let prior = Prior::uniform(10).unwrap();
        let seen = gaussian_attack(&prior, &Encodings::OneHot, 1.0, 20_000, 7).unwrap();
        let exact = one_hot(10, 1.0).unwrap();
        assert!(seen.ci_low - 0.01 < exact && exact < seen.ci_high + 0.01, "{seen:?} {exact}");
        assert_eq!(gaussian_attack(&prior, &Encodings::OneHot, 1.0, 500, 7).unwrap().seed, 7);
    }

    /// The figure of the language models: a million games at M = 50,256 and 2T/σ² = 6, none above the bound around 0.
    #[test]
    fn a_million_games_over_a_vocabulary_stay_below_the_bound() {
        let (m, sigma) = (50_256, (1.0_f64 / 3.0).sqrt());
        let played = one_hot_played(m, sigma, 1_000_000, 4).unwrap();
        let (exact, prior) = (one_hot(m, sigma).unwrap(), Prior::uniform(m).unwrap());
        let bound = super::super::testing::one_centre(&prior, 1.0, sigma).unwrap();
        assert!(played.ci_low < exact && exact < played.ci_high, "{played:?} {exact}");
        assert!(played.value < bound && bound < 0.01 && played.value > 0.5 * bound, "{played:?} {bound}");
        let (fano, _) = super::super::fano::success_from_rdp(&prior, |alpha| Ok(6.0 * alpha)).unwrap();
        assert!((fano - 0.482).abs() < 2e-3, "{fano}");
        assert!(one_hot_played(1, 1.0, 1, 1).is_err() && one_hot_played(2, 1.0, 0, 1).is_err());
    }

    #[test]
    fn vectors_and_one_hot_are_the_same_game() {
        let eye: Vec<f64> = (0..16).map(|i| f64::from(u8::from(i % 5 == 0))).collect();
        let prior = Prior::from_probabilities(vec![0.4, 0.3, 0.2, 0.1]).unwrap();
        let a = gaussian_attack(&prior, &Encodings::OneHot, 0.8, 2_000, 3).unwrap();
        let b = gaussian_attack(&prior, &Encodings::vectors(4, eye).unwrap(), 0.8, 2_000, 3).unwrap();
        assert_eq!(a, b);
    }

    #[test]
    fn randomised_response_is_the_sum_of_its_definition() {
        for p in [vec![0.5, 0.2, 0.3], vec![0.4, 0.4, 0.2], vec![0.9, 0.05, 0.05]] {
            for q in [0.2, 0.9] {
                let channel = |x: usize, y: usize| q / 3.0 + if x == y { 1.0 - q } else { 0.0 };
                let exact: f64 =
                    (0..3).map(|y| (0..3).map(|x| p[x] * channel(x, y)).fold(0.0, f64::max)).sum();
                let s = randomised_response(&Prior::from_probabilities(p.clone()).unwrap(), q).unwrap();
                assert!((s - exact).abs() < 1e-14, "{p:?} {q}: {s} {exact}");
            }
        }
    }
}
