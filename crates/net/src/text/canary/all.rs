//! The game where all parameters are trained, or any part of them: candidates from their gradients at the first step, attacks from runs.

use super::{Canary, FineTuning, Played, Rounds, draw, largest, sums};
use crate::{
    Clip, Data, Network, Real, Result,
    engine::{clipped_gradient, predict_data},
    error::{check, check_len},
    random::{Generator, Purpose},
    text::LanguageModel,
};
use leakscope_core::{
    bound::{Encodings, Prior, optimal},
    claim::Observed,
    linalg::{gram_add, symmetric_eigen, times},
    special::ln_sum_exp,
};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Values of all candidates' gradients that are held at a time, at most: 1 GiB in single precision.
const MOST_VALUES: usize = 1 << 28;
/// Parameters whose products are summed at a time.
const BLOCK: usize = 4096;

/// The game where all parameters are trained, or those of adapters.
#[derive(Debug)]
pub struct AllLayers<T> {
    network: Network<T>,
    parameters: Vec<T>,
    /// Which of them are trained.
    trained: Vec<usize>,
    /// Candidates whose texts have one length, with these.
    groups: Vec<(Vec<usize>, Data<T>)>,
    /// Of each candidate: its group, and where in it.
    places: Vec<(usize, usize)>,
    /// The prompt alone, where every secret is one token.
    prompt: Option<Data<T>>,
    /// The token of each candidate then.
    tokens: Vec<u32>,
    vocabulary: usize,
    /// Products of the candidates' clipped gradients at the first step; absent where they are too many to hold.
    gram: Option<Vec<f64>>,
    norms: Option<Vec<f64>>,
    tuning: FineTuning,
}

impl<T: Real> AllLayers<T> {
    /// The game of a model that was read with all parameters trained.
    ///
    /// # Errors
    /// Tokens outside the vocabulary, texts longer than the context, bad settings.
    pub fn new(model: &LanguageModel<T>, canary: &Canary, tuning: FineTuning) -> Result<Self> {
        tuning.check()?;
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (m, candidate) in canary.candidates.iter().enumerate() {
            by_length.entry(candidate.len()).or_default().push(m);
        }
        let mut places = vec![(0, 0); canary.candidates.len()];
        let mut groups = Vec::new();
        for (group, members) in by_length.into_values().enumerate() {
            let texts: Vec<Vec<u32>> = members.iter().map(|&m| canary.text(m)).collect();
            let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
            members.iter().enumerate().for_each(|(row, &m)| places[m] = (group, row));
            groups.push((members, model.texts(&texts)?));
        }
        let one_token = canary.candidates.iter().all(|c| c.len() == 1);
        let (n, vocabulary) = (canary.prompt.len(), model.vocabulary());
        let prompt = one_token.then(|| Data::tokens(n, canary.prompt.clone(), vocabulary, &vec![0; n]));
        let network = model.network();
        let parameters = network.parameters()?;
        let trained = network.trained().iter().enumerate().filter(|(_, t)| **t).map(|(i, _)| i).collect();
        let mut game = Self {
            network: Network::with_parameters(network.spec().clone(), &parameters)?,
            parameters,
            trained,
            groups,
            places,
            prompt: prompt.transpose()?,
            tokens: canary.candidates.iter().map(|c| c[0]).collect(),
            vocabulary,
            gram: None,
            norms: None,
            tuning,
        };
        game.measure()?;
        Ok(game)
    }

    /// Number of parameters that are trained.
    pub fn parameters(&self) -> usize {
        self.trained.len()
    }

    /// `‖g‖` of every candidate before fine-tuning; absent where they are too many to hold.
    pub fn norms(&self) -> Option<&[f64]> {
        self.norms.as_deref()
    }

    /// The candidates' gradients, and from them all products.
    fn measure(&mut self) -> Result<()> {
        let (m, p) = (self.places.len(), self.trained.len());
        if m.saturating_mul(p) > MOST_VALUES {
            return Ok(());
        }
        let clip = Clip::Hard { bound: self.tuning.clip };
        let of = |&(group, row): &(usize, usize)| {
            let gradient = clipped_gradient(&self.network, &self.groups[group].1, &[row], clip)?;
            Ok((self.trained.iter().map(|&i| gradient.sum[i]).collect(), gradient.norms[0]))
        };
        let all: Vec<(Vec<T>, f64)> = self.places.par_iter().map(of).collect::<Result<_>>()?;
        let mut gram = vec![0.0; m * m];
        let mut block = Vec::new();
        for start in (0..p).step_by(BLOCK) {
            let end = p.min(start + BLOCK);
            block.clear();
            (start..end).for_each(|i| block.extend(all.iter().map(|g| g.0[i].to_f64())));
            gram_add(&block, None, m, &mut gram);
        }
        self.norms = Some(all.into_iter().map(|g| g.1).collect());
        self.gram = Some(gram);
        Ok(())
    }

    /// How far the clipped gradient of each candidate is, at the first step, from their mean with these weights; absent
    /// where candidates are too many to hold.
    ///
    /// # Errors
    /// Another number of weights than candidates, or a sum that is not positive.
    pub fn distances(&self, weights: &[f64]) -> Result<Option<Vec<f64>>> {
        check_len("the weights of the candidates", weights.len(), self.places.len())?;
        let total: f64 = weights.iter().sum();
        check(total > 0.0 && total.is_finite(), "the sum of the weights", total, "positive")?;
        let Some(gram) = &self.gram else { return Ok(None) };
        let m = self.places.len();
        let w: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let with_mean = times(gram, &w);
        let square: f64 = with_mean.iter().zip(&w).map(|(a, b)| a * b).sum();
        let distance = |i: usize| {
            let own = gram[i * m + i];
            // rounding of the difference, to the safe side
            let d = (own - 2.0 * with_mean[i] + square).max(0.0).sqrt() + 1e-7 * (own + square).sqrt();
            d.min(2.0 * self.tuning.clip)
        };
        Ok(Some((0..m).map(distance).collect()))
    }

    /// No candidate is further than this from 0, at any step.
    pub fn radius(&self) -> f64 {
        self.tuning.clip
    }

    /// The optimal attack on one step: candidates and noise in the coordinates of the candidates' span. Absent where
    /// candidates are too many to hold.
    ///
    /// # Errors
    /// Bad settings, or a prior of other candidates.
    pub fn optimal(&self, prior: &Prior, rounds: Rounds) -> Result<Option<Observed>> {
        rounds.check()?;
        let Some(encodings) = self.encodings()? else { return Ok(None) };
        let s = rounds.sigma * self.tuning.clip;
        Ok(Some(optimal::gaussian_attack(prior, &encodings, s, rounds.trials, rounds.seed)?))
    }

    /// `E` with `EEᵀ` the products.
    fn encodings(&self) -> Result<Option<Encodings>> {
        let Some(gram) = &self.gram else { return Ok(None) };
        let m = self.places.len();
        let (values, vectors) = symmetric_eigen(gram, m)?;
        let most = values.iter().copied().fold(0.0, f64::max);
        let kept: Vec<usize> = (0..m).filter(|&j| values[j] > 1e-13 * most).collect();
        let of = |i: usize| kept.iter().map(move |&j| (i, j));
        let coordinates = (0..m).flat_map(of).map(|(i, j)| vectors[i * m + j] * values[j].sqrt()).collect();
        Ok(Some(Encodings::vectors(kept.len().max(1), coordinates)?))
    }

    /// Plays games: a secret by the prior, fine-tuning, the guess whose log-likelihood rose most.
    ///
    /// # Errors
    /// Bad settings, a prior of other candidates, or a run that diverges.
    pub fn play(&self, prior: &[f64], rounds: Rounds) -> Result<Played> {
        rounds.check()?;
        check_len("the prior", prior.len(), self.places.len())?;
        let below = sums(prior);
        let before = self.likelihoods(&self.network)?;
        let clip = Clip::Hard { bound: self.tuning.clip };
        let s = rounds.sigma * self.tuning.clip;
        let game = |net: &mut Network<T>, trial: u64| -> Result<Played> {
            let mut random = Generator::new(rounds.seed, Purpose::Other, trial);
            let secret = draw(&below, random.uniform());
            let (group, row) = self.places[secret];
            let mut theta = self.parameters.clone();
            net.set_parameters(&theta)?;
            for _ in 0..rounds.steps {
                let g = clipped_gradient(net, &self.groups[group].1, &[row], clip)?.sum;
                for &i in &self.trained {
                    let released = g[i].to_f64() + s * random.normal();
                    theta[i] = T::from_f64(theta[i].to_f64() - self.tuning.learning_rate * released);
                }
                net.set_parameters(&theta)?;
            }
            let after = self.likelihoods(net)?;
            let guess = largest(after.iter().zip(&before).map(|(a, b)| a - b));
            Ok(Played { trials: 1, difference: u64::from(guess == secret), optimal: None })
        };
        let copy = || Network::with_parameters(self.network.spec().clone(), &self.parameters);
        let each: Vec<Played> = (0..rounds.trials)
            .into_par_iter()
            .map_init(copy, |net, trial| match net {
                Ok(net) => game(net, trial),
                Err(e) => Err(e.clone()),
            })
            .collect::<Result<_>>()?;
        Ok(each.into_iter().fold(Played::default(), Played::merged))
    }

    /// Logarithm of each candidate's probability, up to what all have in common.
    fn likelihoods(&self, net: &Network<T>) -> Result<Vec<f64>> {
        if let Some(prompt) = &self.prompt {
            let prediction = predict_data(net, prompt)?;
            let z = prediction.outputs(0);
            let last = &z[z.len() - self.vocabulary..];
            let all = ln_sum_exp(last.iter().copied());
            return Ok(self.tokens.iter().map(|&y| last[y as usize] - all).collect());
        }
        let mut out = vec![0.0; self.places.len()];
        for (members, data) in &self.groups {
            let (prediction, n) = (predict_data(net, data)?, data.input().length() as f64);
            for (row, &m) in members.iter().enumerate() {
                out[m] = -n * data.judge(net, row, prediction.outputs(row)).0;
            }
        }
        Ok(out)
    }
}
