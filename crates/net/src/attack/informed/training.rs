//! How many models are trained at once: full batches of the same records and one target, the mean of the clipped gradients with
//! noise of every model's own.

use crate::{
    Clip,
    error::{Error, Result, check, check_finite, check_len},
    grid::Grid,
    random::{Generator, Purpose},
    train::Optimizer,
};
use rayon::prelude::*;
use std::ops::Range;

/// Records: those that the adversary knows, or the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Rest {
    /// Values `(n, d)`.
    pub x: Vec<f64>,
    /// Labels `(n, k)`.
    pub y: Vec<f64>,
}

impl Rest {
    /// Their number, where there are some and all are of d values and k labels.
    pub(super) fn check(&self, [d, k]: [usize; 2], [records, labels]: [&'static str; 2]) -> Result<usize> {
        let n = self.x.len() / d.max(1);
        if n == 0 || d == 0 || k == 0 {
            return Err(Error::Empty);
        }
        check_len(records, self.x.len(), n * d)?;
        check_len(labels, self.y.len(), n * k)?;
        check_finite(records, &self.x)?;
        check_finite(labels, &self.y)?;
        Ok(n)
    }

    fn part(&self, records: &Range<usize>, [d, k]: [usize; 2]) -> Self {
        Self {
            x: self.x[records.start * d..records.end * d].to_vec(),
            y: self.y[records.start * k..records.end * k].to_vec(),
        }
    }
}

/// What the known records are called in errors.
pub(super) const KNOWN: [&str; 2] = ["the known records", "the labels of the known records"];
const TARGETS: [&str; 2] = ["the targets", "the labels of the targets"];

/// How every model is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// Where all models start.
    pub start: Vec<f64>,
    /// Which parameters are trained; the others stay as they start.
    pub trained: Vec<bool>,
    /// The rule of the updates.
    pub optimizer: Optimizer,
    /// Learning rate.
    pub learning_rate: f64,
    /// Added to the gradient times the parameters.
    pub weight_decay: f64,
    /// How every record's gradient is clipped.
    pub clip: Clip,
    /// σ: noise of standard deviation σC on the sum; 0 for none.
    pub sigma: f64,
    /// Steps.
    pub steps: u64,
}

/// The models of some targets.
pub(super) struct Batch<'a> {
    /// Their parameters, `(c, p)`.
    pub(super) theta: &'a [f64],
    /// Their targets.
    pub(super) own: &'a Rest,
    /// The step that they make.
    pub(super) step: u64,
}

impl Training {
    /// All parameters by five steps of Adam, without clip and noise.
    pub fn new(start: Vec<f64>) -> Self {
        Self {
            trained: vec![true; start.len()],
            start,
            optimizer: Optimizer::adam(),
            learning_rate: 0.1,
            weight_decay: 0.0,
            clip: Clip::None,
            sigma: 0.0,
            steps: 5,
        }
    }

    pub(super) fn check(&self, parameters: usize) -> Result<()> {
        check_len("the start", self.start.len(), parameters)?;
        check_finite("the start", &self.start)?;
        check_len("the trained parameters", self.trained.len(), parameters)?;
        self.clip.check()?;
        self.optimizer.check()?;
        let rate = self.learning_rate;
        check(rate > 0.0 && rate.is_finite(), "the learning rate", rate, "positive and finite")?;
        check(self.sigma >= 0.0 && self.sigma.is_finite(), "sigma", self.sigma, "0 or more, and finite")
    }

    /// One model for each target, `together` at a time: parameters `(targets, p)`. `sums` are those of the clipped gradients of
    /// `n` records, `(c, p)`; `watch` hears how many models are done, and says whether to go on.
    pub(super) fn run(
        &self,
        (targets, size): (&Rest, [usize; 2]),
        (together, n): (usize, usize),
        seed: u64,
        watch: &(dyn Fn(u64) -> bool + Sync),
        sums: &(dyn Fn(&Batch<'_>) -> Result<Vec<f64>> + Sync),
    ) -> Result<Vec<f64>> {
        let m = targets.check(size, TARGETS)?;
        let pieces: Vec<Range<usize>> =
            (0..m).step_by(together).map(|from| from..(from + together).min(m)).collect();
        let parts: Vec<Vec<f64>> = pieces
            .into_par_iter()
            .map(|piece| {
                if !watch(piece.start as u64) {
                    return Err(Error::Format { subject: "the attack", reason: "it was stopped".into() });
                }
                let own = targets.part(&piece, size);
                let mut models = Together::new(&self.start, piece.len());
                for step in 0..self.steps {
                    let mut sums = sums(&Batch { theta: &models.theta, own: &own, step })?;
                    self.add_noise(&mut sums, &piece, seed, step);
                    models.update(self, &sums, n, step);
                }
                Ok(models.theta)
            })
            .collect::<Result<_>>()?;
        let theta = parts.concat();
        check_finite("the parameters of the models", &theta)?;
        Ok(theta)
    }

    /// Adds noise of its own to the sums of every model: noise that models share would be learned.
    fn add_noise(&self, sums: &mut [f64], models: &Range<usize>, seed: u64, step: u64) {
        let deviation = self.sigma * self.clip.unit();
        if deviation <= 0.0 || models.is_empty() {
            return;
        }
        let (p, grid) = (sums.len() / models.len(), Grid::of(deviation));
        for (sum, model) in sums.chunks_exact_mut(p).zip(models.clone()) {
            // every model and step has a stream of its own
            let mut rng = Generator::new(seed, Purpose::Noise, model as u64 * self.steps.max(1) + step);
            sum.iter_mut().for_each(|s| *s = grid.release(*s, &mut rng));
        }
    }
}

/// Some models on their way.
struct Together {
    theta: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Together {
    /// So many, all from one start.
    fn new(start: &[f64], count: usize) -> Self {
        let zeros = || vec![0.0; count * start.len()];
        Self { theta: start.repeat(count), first: zeros(), second: zeros() }
    }

    /// A step of all models along the sums of their gradients over so many records.
    fn update(&mut self, model: &Training, sum: &[f64], records: usize, step: u64) {
        let p = model.trained.len();
        let t = (step + 1).min(i32::MAX as u64) as i32;
        for i in (0..sum.len()).filter(|i| model.trained[i % p]) {
            let g = sum[i] / records as f64 + model.weight_decay * self.theta[i];
            self.theta[i] -= model.learning_rate
                * match model.optimizer {
                    Optimizer::Sgd { momentum } => {
                        self.first[i] = momentum * self.first[i] + g;
                        self.first[i]
                    }
                    Optimizer::Adam { beta1, beta2, epsilon } => {
                        self.first[i] = beta1 * self.first[i] + (1.0 - beta1) * g;
                        self.second[i] = beta2 * self.second[i] + (1.0 - beta2) * g * g;
                        let root = (self.second[i] / (1.0 - beta2.powi(t))).sqrt() + epsilon;
                        self.first[i] / (1.0 - beta1.powi(t)) / root
                    }
                };
        }
    }
}
