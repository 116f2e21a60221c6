//! The game where the output layer alone is trained.
//!
//! The layers before it stay as they are, so a context (all tokens before a place) has one vector h for good, and the
//! gradient of a text is `G = (1/n) Σ_t (π_t − e_{y_t}) ⊗ h_t`, π the softmax of `W h_t`. Nothing leaves the span of the h: with
//! an orthonormal basis of it, `k = Qh`, everything is said by the r rows of `W Qᵀ`, and noise is drawn there alone. Secret
//! places are nodes of a tree of contexts, so M candidates with common beginnings share their work, and what the optimal
//! attack must know of a candidate m, `⟨G_m, y⟩` and `‖G_m‖`, are sums over its places.

use super::{Canary, FineTuning, Played, Rounds, draw, largest, sums};
use crate::{
    Data, Error, Real, Result,
    error::check_len,
    random::{Generator, Purpose},
    text::LanguageModel,
};
use leakscope_core::{
    bound::{Prior, optimal::Success},
    linalg::{axpy, dot, norm},
    special::ln_sum_exp,
};
use rayon::prelude::*;
use std::collections::HashMap;

/// A candidate as places: its context and its token at each.
#[derive(Debug, Clone)]
struct Path {
    /// The context of the last place; those before it are its ancestors.
    last: usize,
    /// Tokens, first to last.
    tokens: Vec<u32>,
}

/// The game where the output layer is trained. Arrays over the vocabulary are `(r, V)`, row-major.
#[derive(Debug)]
pub struct LastLayer {
    vocabulary: usize,
    rank: usize,
    /// Public places: context and token.
    public: Vec<(usize, u32)>,
    /// Coordinates of every context, `(contexts, r)`. Public places come first.
    contexts: Vec<f64>,
    /// Contexts of secret places from the first on, first to last.
    chains: Vec<Vec<usize>>,
    paths: Vec<Path>,
    /// The output layer before fine-tuning.
    weights: Vec<f64>,
    tuning: FineTuning,
}

/// What one game tells.
#[derive(Debug, Clone, PartialEq)]
pub struct GameOutcome {
    /// Logarithm of the probability that the fine-tuned model gives to each candidate.
    pub after: Vec<f64>,
    /// Logarithm of the likelihood of each candidate, up to what all have in common, for somebody who saw what every step
    /// released.
    pub evidence: Vec<f64>,
}

/// The softmax of every context.
struct Softmax {
    /// `(contexts, V)`.
    pi: Vec<f64>,
    /// `(contexts, V)`, logarithms.
    ln: Vec<f64>,
}

/// What the gradients of all candidates share at some weights.
struct Gradients {
    softmax: Softmax,
    /// Sum over public places, `(r, V)`.
    public: Vec<f64>,
    public_square: f64,
    /// `π_u·(G_public k_u)` and `G_public k_u` of each secret context.
    across: ContextView,
    /// `π_u·π_v` of a secret context with each of its chain.
    pairs: Vec<Vec<f64>>,
}

/// An array `(r, V)` as secret contexts see it.
struct ContextView {
    /// `A k_u`, `(secret contexts, V)`.
    along: Vec<f64>,
    /// `π_u·(A k_u)`.
    mean: Vec<f64>,
}

impl LastLayer {
    /// The game of a model that was read with its last layer trained.
    ///
    /// # Errors
    /// Tokens outside the vocabulary, texts longer than the context, bad settings.
    pub fn new<T: Real>(model: &LanguageModel<T>, canary: &Canary, tuning: FineTuning) -> Result<Self> {
        tuning.check()?;
        for m in 0..canary.candidates.len() {
            // whether the whole text fits, its last token included
            model.texts(&[&canary.text(m)])?;
        }
        let n = canary.prompt.len();
        let public: Vec<(usize, u32)> = (0..n - 1).map(|t| (t, canary.prompt[t + 1])).collect();
        // contexts of secret places: the prompt, then the prompt with beginnings of candidates
        let mut numbers: HashMap<&[u32], usize> = HashMap::from([(&[][..], n - 1)]);
        let mut beginnings: Vec<&[u32]> = vec![&[]];
        let mut chains = vec![vec![n - 1]];
        let mut paths = Vec::new();
        for tokens in &canary.candidates {
            let mut last = n - 1;
            for end in 1..tokens.len() {
                let before = last;
                last = *numbers.entry(&tokens[..end]).or_insert_with(|| {
                    beginnings.push(&tokens[..end]);
                    // added before it is taken away: a prompt may be a single token
                    let number = n + beginnings.len() - 2;
                    chains.push([&chains[before + 1 - n][..], &[number]].concat());
                    number
                });
            }
            paths.push(Path { last, tokens: tokens.clone() });
        }
        let features = features(model, &canary.prompt, &beginnings)?;
        let net = model.network();
        let (v, d) = (model.vocabulary(), model.width());
        let tensors = net.tensors();
        let alone = net.trained().iter().filter(|t| **t).count() == v * d;
        let output = tensors.last().filter(|t| t.shape == [v, d] && alone).ok_or_else(|| Error::Format {
            subject: "the model",
            reason: "its last layer is no output layer of its own: read it with the last layer trained"
                .to_owned(),
        })?;
        let theta = net.parameters()?;
        let w: Vec<f64> = theta[output.offset..][..v * d].iter().map(|x| x.to_f64()).collect();
        let basis = basis(&features, d);
        let rank = basis.len() / d;
        let contexts = features
            .chunks_exact(d)
            .flat_map(|h| basis.chunks_exact(d).map(|q| dot(q, h)).collect::<Vec<f64>>())
            .collect();
        let weights = basis
            .chunks_exact(d)
            .flat_map(|q| w.chunks_exact(d).map(|row| dot(row, q)).collect::<Vec<f64>>());
        let weights = weights.collect();
        Ok(Self { vocabulary: v, rank, public, contexts, chains, paths, weights, tuning })
    }

    /// Number of candidates.
    pub fn candidates(&self) -> usize {
        self.paths.len()
    }

    /// How likely the model, before fine-tuning, holds each candidate to be.
    ///
    /// # Errors
    /// Where it is certain of one.
    pub fn prior(&self) -> Result<Prior> {
        let ln = self.likelihoods(&self.softmax(&self.weights));
        let all = ln_sum_exp(ln.iter().copied());
        Ok(Prior::from_probabilities(ln.iter().map(|l| (l - all).exp()).collect())?)
    }

    /// Logarithm of the probability that the model, before fine-tuning, gives to each candidate.
    pub fn log_likelihoods(&self) -> Vec<f64> {
        self.likelihoods(&self.softmax(&self.weights))
    }

    /// `‖g‖` of every candidate before fine-tuning.
    pub fn norms(&self) -> Vec<f64> {
        let g = self.gradients(&self.weights);
        (0..self.paths.len()).map(|m| self.norm(&g, m)).collect()
    }

    /// How far the clipped gradient of each candidate is, at the first step, from their mean with these weights.
    ///
    /// # Errors
    /// Another number of weights than candidates, or a sum that is not positive.
    pub fn distances(&self, weights: &[f64]) -> Result<Vec<f64>> {
        check_len("the weights of the candidates", weights.len(), self.paths.len())?;
        let total: f64 = weights.iter().sum();
        crate::error::check(total > 0.0 && total.is_finite(), "the sum of the weights", total, "positive")?;
        let g = self.gradients(&self.weights);
        let norms: Vec<f64> = (0..self.paths.len()).map(|m| self.norm(&g, m)).collect();
        let centre = self.mean(&g, &norms, weights, total);
        let view = self.view(&g.softmax, &centre);
        let (with_public, square) = (dot(&g.public, &centre), dot(&centre, &centre));
        let each = norms.iter().enumerate().map(|(m, n)| {
            let c = self.clip(*n);
            let cross = c * self.product(m, &view, with_public);
            let length = (c * n).powi(2);
            // rounding of the difference, to the safe side
            (length - 2.0 * cross + square).max(0.0).sqrt() + 1e-7 * (length + square).sqrt()
        });
        Ok(each.map(|d| d.min(2.0 * self.tuning.clip)).collect())
    }

    /// No candidate is further than this from a reference that does not know the secret, at any step and whatever came
    /// before: C around 0; and where the secret is one token, candidates differ by `e_X ⊗ h/n` alone before they are
    /// clipped, clipping is the projection onto a ball and brings nothing further apart, so around the clipped mean
    /// `√(1 − 1/M) ‖h‖/n`.
    pub fn radius(&self) -> f64 {
        let clip = self.tuning.clip;
        if self.paths.iter().any(|p| p.tokens.len() > 1) {
            return clip;
        }
        let (m, n) = (self.paths.len() as f64, self.length(0));
        let h = norm(self.context(self.public.len()));
        clip.min((1.0 - 1.0 / m).sqrt() * h / n * (1.0 + 1e-12))
    }

    /// Plays games: a secret by the prior, fine-tuning, both attacks.
    ///
    /// # Errors
    /// Bad settings, or a prior of other candidates.
    pub fn play(&self, prior: &[f64], rounds: Rounds) -> Result<Played> {
        rounds.check()?;
        check_len("the prior", prior.len(), self.paths.len())?;
        let below = sums(prior);
        let ln_prior: Vec<f64> = prior.iter().map(|p| p.ln()).collect();
        let before = self.log_likelihoods();
        let game = |trial: u64| {
            let mut random = Generator::new(rounds.seed, Purpose::Other, trial);
            let secret = draw(&below, random.uniform());
            let told = self.tell(secret, (rounds.sigma, rounds.steps), &mut random);
            let guess = largest(told.after.iter().zip(&before).map(|(a, b)| a - b));
            let scores: Vec<f64> = told.evidence.iter().zip(&ln_prior).map(|(e, p)| e + p).collect();
            let mut optimal = Success::default();
            optimal.add(&scores, ln_sum_exp(scores.iter().copied()));
            Played { trials: 1, difference: u64::from(guess == secret), optimal: Some(optimal) }
        };
        // in order within fixed pieces, so that sums do not depend on the number of threads
        let pieces = rounds.trials.div_ceil(16);
        let parts: Vec<Played> = (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let games = (piece * 16..rounds.trials.min((piece + 1) * 16)).map(game);
                games.fold(Played::default(), Played::merged)
            })
            .collect();
        Ok(parts.into_iter().fold(Played::default(), Played::merged))
    }

    /// One game: the model fine-tuned on the text with a secret, and what that tells of each candidate.
    pub fn tell(&self, secret: usize, (sigma, steps): (f64, u64), random: &mut Generator) -> GameOutcome {
        let mut weights = self.weights.clone();
        let mut evidence = vec![0.0; self.paths.len()];
        for _ in 0..steps {
            self.step(&mut weights, secret, sigma, random, &mut evidence);
        }
        GameOutcome { after: self.likelihoods(&self.softmax(&weights)), evidence }
    }

    /// One step of fine-tuning; adds to `scores` what it tells of each candidate, `(⟨y, ḡ_m⟩ − ‖ḡ_m‖²/2)/(σC)²`.
    fn step(
        &self,
        weights: &mut [f64],
        secret: usize,
        sigma: f64,
        random: &mut Generator,
        scores: &mut [f64],
    ) {
        let (g, s) = (self.gradients(weights), sigma * self.tuning.clip);
        let mut released = self.gradient(&g, secret);
        let c = self.clip(self.norm(&g, secret));
        released.iter_mut().for_each(|x| *x = c * *x + s * random.normal());
        let view = self.view(&g.softmax, &released);
        let with_public = dot(&g.public, &released);
        for (m, score) in scores.iter_mut().enumerate() {
            let norm = self.norm(&g, m);
            let c = self.clip(norm);
            *score += (c * self.product(m, &view, with_public) - 0.5 * (c * norm).powi(2)) / (s * s);
        }
        axpy(-self.tuning.learning_rate, &released, weights);
    }

    fn clip(&self, norm: f64) -> f64 {
        if norm > self.tuning.clip { self.tuning.clip / norm } else { 1.0 }
    }

    fn context(&self, u: usize) -> &[f64] {
        &self.contexts[u * self.rank..][..self.rank]
    }

    /// Contexts of secret places.
    fn secret(&self) -> std::ops::Range<usize> {
        self.public.len()..self.public.len() + self.chains.len()
    }

    /// Places of a candidate, each with its context and token.
    fn places(&self, m: usize) -> impl Iterator<Item = (usize, u32)> {
        let path = &self.paths[m];
        self.chains[path.last - self.public.len()].iter().copied().zip(path.tokens.iter().copied())
    }

    /// n, the places that the loss of a candidate's text is the mean over.
    fn length(&self, m: usize) -> f64 {
        (self.public.len() + self.paths[m].tokens.len()) as f64
    }

    /// `A k`, of an array `(r, V)`.
    fn applied(&self, array: &[f64], k: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; self.vocabulary];
        for (row, k) in array.chunks_exact(self.vocabulary).zip(k) {
            axpy(*k, row, &mut z);
        }
        z
    }

    fn softmax(&self, weights: &[f64]) -> Softmax {
        let (mut pi, mut ln) = (Vec::new(), Vec::new());
        for k in self.contexts.chunks_exact(self.rank) {
            let z = self.applied(weights, k);
            let all = ln_sum_exp(z.iter().copied());
            ln.extend(z.iter().map(|z| z - all));
            pi.extend(z.iter().map(|z| (z - all).exp()));
        }
        Softmax { pi, ln }
    }

    /// Logarithm of each candidate's probability.
    fn likelihoods(&self, softmax: &Softmax) -> Vec<f64> {
        let v = self.vocabulary;
        let of = |m: usize| self.places(m).map(|(u, y)| softmax.ln[u * v + y as usize]).sum();
        (0..self.paths.len()).map(of).collect()
    }

    fn view(&self, softmax: &Softmax, array: &[f64]) -> ContextView {
        let v = self.vocabulary;
        let (mut along, mut mean) = (Vec::new(), Vec::new());
        for u in self.secret() {
            let z = self.applied(array, self.context(u));
            mean.push(dot(&softmax.pi[u * v..][..v], &z));
            along.extend(z);
        }
        ContextView { along, mean }
    }

    fn gradients(&self, weights: &[f64]) -> Gradients {
        let v = self.vocabulary;
        let softmax = self.softmax(weights);
        let mut public = vec![0.0; self.rank * v];
        for &(u, y) in &self.public {
            self.add(&mut public, u, 1.0, &softmax, y);
        }
        let across = self.view(&softmax, &public);
        let pi = |u: usize| &softmax.pi[u * v..][..v];
        let pairs = self
            .secret()
            .zip(&self.chains)
            .map(|(u, chain)| chain.iter().map(|&w| dot(pi(u), pi(w))).collect())
            .collect();
        Gradients { public_square: dot(&public, &public), public, across, pairs, softmax }
    }

    /// Adds `(π − e_y) ⊗ k` of a place.
    fn add(&self, array: &mut [f64], u: usize, factor: f64, softmax: &Softmax, y: u32) {
        let v = self.vocabulary;
        for (row, k) in array.chunks_exact_mut(v).zip(self.context(u)) {
            axpy(factor * k, &softmax.pi[u * v..][..v], row);
            row[y as usize] -= factor * k;
        }
    }

    /// `G_m`, in full.
    fn gradient(&self, g: &Gradients, m: usize) -> Vec<f64> {
        let mut array = g.public.clone();
        for (u, y) in self.places(m) {
            self.add(&mut array, u, 1.0, &g.softmax, y);
        }
        let n = self.length(m);
        array.iter_mut().for_each(|x| *x /= n);
        array
    }

    /// `⟨G_m, A⟩` of an array as secret contexts see it, given `⟨G_public, A⟩`.
    fn product(&self, m: usize, view: &ContextView, with_public: f64) -> f64 {
        let (v, first) = (self.vocabulary, self.public.len());
        let of = |(u, y): (usize, u32)| view.mean[u - first] - view.along[(u - first) * v + y as usize];
        (with_public + self.places(m).map(of).sum::<f64>()) / self.length(m)
    }

    /// `‖G_m‖`.
    fn norm(&self, g: &Gradients, m: usize) -> f64 {
        let (v, first) = (self.vocabulary, self.public.len());
        let pi = |u: usize, y: u32| g.softmax.pi[u * v + y as usize];
        let of =
            |(u, y): (usize, u32)| g.across.mean[u - first] - g.across.along[(u - first) * v + y as usize];
        let cross: f64 = self.places(m).map(of).sum();
        let mut own = 0.0;
        for (j, (u, y)) in self.places(m).enumerate() {
            for (l, (w, x)) in self.places(m).enumerate().take(j + 1) {
                let same = f64::from(u8::from(x == y));
                let delta = g.pairs[u - first][l] - pi(u, x) - pi(w, y) + same;
                let twice = if l == j { 1.0 } else { 2.0 };
                own += twice * delta * dot(self.context(u), self.context(w));
            }
        }
        (g.public_square + 2.0 * cross + own).max(0.0).sqrt() / self.length(m)
    }

    /// `Σ w_m ḡ_m / Σ w`, in full.
    fn mean(&self, g: &Gradients, norms: &[f64], weights: &[f64], total: f64) -> Vec<f64> {
        let v = self.vocabulary;
        let mut of_public = 0.0;
        let mut of_context = vec![0.0; self.chains.len()];
        let mut array = vec![0.0; self.rank * v];
        for (m, w) in weights.iter().enumerate() {
            let share = w / total * self.clip(norms[m]) / self.length(m);
            of_public += share;
            for (u, y) in self.places(m) {
                of_context[u - self.public.len()] += share;
                for (j, k) in self.context(u).iter().enumerate() {
                    array[j * v + y as usize] -= share * k;
                }
            }
        }
        axpy(of_public, &g.public, &mut array);
        for (u, share) in self.secret().zip(of_context) {
            for (row, k) in array.chunks_exact_mut(v).zip(self.context(u)) {
                axpy(share * k, &g.softmax.pi[u * v..][..v], row);
            }
        }
        array
    }
}

/// What reaches the output layer after each token of the prompt, then after the prompt and each beginning (the first is
/// empty), `(contexts, d)`.
fn features<T: Real>(model: &LanguageModel<T>, prompt: &[u32], beginnings: &[&[u32]]) -> Result<Vec<f64>> {
    let d = model.width();
    let of = |beginning: &&[u32]| {
        let text = [prompt, beginning].concat();
        let data = Data::tokens(text.len(), text.clone(), model.vocabulary(), &vec![0; text.len()])?;
        crate::engine::before_outputs(model.network(), &data)
    };
    let all: Vec<Vec<f64>> = beginnings.par_iter().map(of).collect::<Result<_>>()?;
    let mut out = Vec::new();
    for (i, h) in all.iter().enumerate() {
        out.extend_from_slice(if i == 0 { h } else { &h[h.len() - d..] });
    }
    Ok(out)
}

/// An orthonormal basis of what vectors of width d span, by rows: modified Gram–Schmidt, twice; all directions where there
/// are as many vectors.
fn basis(vectors: &[f64], d: usize) -> Vec<f64> {
    if vectors.len() >= d * d {
        return (0..d * d).map(|i| f64::from(u8::from(i / d == i % d))).collect();
    }
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for h in vectors.chunks_exact(d) {
        let (size, mut rest) = (norm(h), h.to_vec());
        for _ in 0..2 {
            for q in &rows {
                let c = dot(q, &rest);
                axpy(-c, q, &mut rest);
            }
        }
        let left = norm(&rest);
        if left > 1e-13 * size {
            rest.iter_mut().for_each(|x| *x /= left);
            rows.push(rest);
        }
    }
    if rows.is_empty() {
        rows.push((0..d).map(|i| f64::from(u8::from(i == 0))).collect());
    }
    rows.concat()
}
