//! Perturbing gradients so that they give less away (Edmunds ch. 2, MATHS §5.3 and §11).
//!
//! A step releases `clip(h)`, `h = g + f`, of a record instead of `clip(g)`. What is added, f, follows from public records,
//! the released parameters and at most the record itself, and the sum is clipped after it, so that a record still moves the
//! release by no more than the clip allows: every statement of ε holds as before. A record that is absent adds nothing, not
//! even f. Before every step f is learned again on the public records, labels known, to make least
//!
//! `mean ‖f‖² + λ ‖J clip(h)‖²/‖clip(h)‖²`, with `J = ∂/∂x`.
//!
//! | variant | f |
//! |---|---|
//! | average | `a ḡ`, ḡ the average public gradient and a one number |
//! | constant | an array, by Adam |
//! | network | a network of the record's values, standardised by constants: J counts that f moves with the record |
//! | thesis | the network of the thesis, which is a constant: its batch norm over one record returns its bias alone |
//!
//! With a constant f = c, all that [`crate::leak`] measures is of h: `‖J‖² = s²‖J_g‖² + (2ss'/n + s'²)‖J_gᵀh‖²`, `n = ‖h‖`.

mod average;
mod constant;
mod map;
#[cfg(test)]
mod tests;

pub(crate) use map::{Map, clipped_gradient as map_gradient, measure as map_measure};

use crate::{
    Clip, Data, Network, Real,
    engine::Workers,
    error::{Error, Result, check},
    leak::{Measure, Plis, Probe, Trace},
};
pub use leakscope_core::choice::PerturbationKind;
use serde::{Deserialize, Serialize};

/// How the perturbation is learned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Perturbing {
    /// What is added.
    pub variant: PerturbationKind,
    /// λ: what the relative size of the Jacobian weighs against the size of the perturbation; published: 1000.
    pub lambda: f64,
    /// What λ falls by after each step, to no less than a hundredth of it; published: 0, and 100 in the published code.
    pub lambda_fall: f64,
    /// Gaussian probes of the Jacobian of each public record, at least 2; published: 2.
    pub probes: usize,
    /// Passes over the public records before the first step; before each later one a quarter of them less, down to a tenth.
    /// Published: 200. For the average, whose number is found by search, they say nothing.
    pub epochs: u64,
    /// Public records in a batch; all where there are fewer.
    pub batch: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Added to the gradient times what is learned.
    pub weight_decay: f64,
    /// Whether each step starts from nothing, and not from what the one before it learned, with all its epochs.
    pub fresh: bool,
}

impl Default for Perturbing {
    fn default() -> Self {
        Self {
            variant: PerturbationKind::Average,
            lambda: 1e3,
            lambda_fall: 0.0,
            probes: 2,
            epochs: 200,
            batch: 512,
            learning_rate: 0.01,
            weight_decay: 0.1,
            fresh: false,
        }
    }
}

impl Perturbing {
    pub(crate) fn check(self) -> Result<()> {
        let (lambda, rate, decay) = (self.lambda, self.learning_rate, self.weight_decay);
        let positive = |v: f64| v > 0.0 && v.is_finite();
        check(positive(lambda), "lambda of the perturbation", lambda, "positive and finite")?;
        let fall = self.lambda_fall;
        check(fall >= 0.0 && fall.is_finite(), "the fall of lambda", fall, "at least 0")?;
        check(self.probes >= 2, "the probes of the perturbation", self.probes as f64, "at least 2")?;
        check(self.epochs >= 1, "the epochs of the perturbation", self.epochs as f64, "at least 1")?;
        check(self.batch >= 1, "the batch of the perturbation", self.batch as f64, "at least 1")?;
        check(positive(rate), "the learning rate of the perturbation", rate, "positive and finite")?;
        check(decay >= 0.0 && decay.is_finite(), "the weight decay of the perturbation", decay, "at least 0")
    }

    /// Epochs before a step, counted from 0.
    fn epochs_at(self, step: u64) -> u64 {
        let (first, less) = (self.epochs, self.epochs.div_ceil(4));
        match self.fresh {
            true => first,
            false => first.saturating_sub(less.saturating_mul(step)).max(first.div_ceil(10)),
        }
    }

    fn lambda_at(self, step: u64) -> f64 {
        (self.lambda - self.lambda_fall * step as f64).max(0.01 * self.lambda)
    }
}

/// What was learned for one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Perturbed {
    /// The multiple of ḡ nearest to the perturbation, of a network to its mean over the public records.
    pub scale: f64,
    /// Its norm; of a network, the root of the mean square over the public records.
    pub norm: f64,
    /// Its cosine with ḡ, of a network the mean over the public records; 0 where either is 0.
    pub cosine: f64,
    /// How far it differs between public records, in shares of its norm: 0 for a constant.
    #[serde(default)]
    pub spread: f64,
    /// Mean of `‖J‖²/‖·‖²` of what is released of the public records, without the perturbation.
    pub without: f64,
    /// The same with it.
    pub with: f64,
}

impl Perturbed {
    /// Of a constant, but for what it achieves.
    fn of(c: &[f64], mean: &[f64]) -> Self {
        let (cc, cm, mm) = (dot(c, c), dot(c, mean), dot(mean, mean));
        let scale = if mm > 0.0 { cm / mm } else { 0.0 };
        Self { scale, norm: cc.sqrt(), cosine: cosine(cm, cc, mm), spread: 0.0, without: 0.0, with: 0.0 }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `ab/(‖a‖‖b‖)` from products; 0 where either is 0.
fn cosine(ab: f64, aa: f64, bb: f64) -> f64 {
    if aa > 0.0 && bb > 0.0 { (ab / (aa.sqrt() * bb.sqrt())).clamp(-1.0, 1.0) } else { 0.0 }
}

/// What is added to the gradients of one step.
#[derive(Debug)]
pub(crate) enum Added<T> {
    /// The same to all.
    Constant(Vec<f64>),
    /// What a network says of each.
    Map(Box<Map<T>>),
}

impl<T> Added<T> {
    pub(crate) fn constant(&self) -> Option<&Vec<f64>> {
        match self {
            Self::Constant(c) => Some(c),
            Self::Map(_) => None,
        }
    }

    pub(crate) fn into_constant(self) -> Option<Vec<f64>> {
        match self {
            Self::Constant(c) => Some(c),
            Self::Map(_) => None,
        }
    }

    pub(crate) fn map(&self) -> Option<&Map<T>> {
        match self {
            Self::Constant(_) => None,
            Self::Map(map) => Some(map.as_ref()),
        }
    }
}

/// Everything that a perturbation is learned from, before one step.
#[derive(Debug)]
pub(crate) struct Lesson<'a, T> {
    pub(crate) workers: &'a Workers<T>,
    pub(crate) net: &'a Network<T>,
    pub(crate) public: &'a Data<T>,
    pub(crate) clip: Clip,
    pub(crate) how: Perturbing,
    /// The step of the run, counted from 0.
    pub(crate) step: u64,
    /// Of probes and batches; another at every step.
    pub(crate) seed: u64,
    /// What the step before learned.
    pub(crate) before: &'a Carried<T>,
}

/// What a lesson comes to.
#[derive(Debug)]
pub(crate) struct Learned<T> {
    pub(crate) added: Added<T>,
    pub(crate) report: Perturbed,
    /// What the next step starts from.
    pub(crate) state: Carried<T>,
}

/// What one step's lesson leaves to the next one's.
#[derive(Debug, Default)]
pub(crate) enum Carried<T> {
    #[default]
    Nothing,
    /// Numbers; what a checkpoint holds.
    Values(Vec<f64>),
    /// The network of the thesis, where it was learned: millions of numbers that no step needs elsewhere.
    Head(Box<constant::Kept<T>>),
}

impl<T: Real> Carried<T> {
    /// Its numbers; none of nothing.
    pub(crate) fn values(&self, workers: &Workers<T>) -> Result<Vec<f64>> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Values(values) => Ok(values.clone()),
            Self::Head(kept) => kept.values(workers),
        }
    }

    /// Those numbers again.
    pub(crate) fn of(values: Vec<f64>) -> Self {
        if values.is_empty() { Self::Nothing } else { Self::Values(values) }
    }

    fn is_finite(&self, workers: &Workers<T>) -> Result<bool> {
        match self {
            Self::Nothing => Ok(true),
            Self::Values(values) => Ok(values.iter().all(|v| v.is_finite())),
            Self::Head(kept) => kept.is_finite(workers),
        }
    }
}

impl<T: Real> Lesson<'_, T> {
    /// The perturbation of the step.
    pub(crate) fn learn(&self) -> Result<Learned<T>> {
        let learned = match self.how.variant {
            PerturbationKind::Average => {
                let (c, report) = average::learn(self)?;
                Learned { added: Added::Constant(c), report, state: Carried::Nothing }
            }
            PerturbationKind::Constant => constant::learn(self)?,
            PerturbationKind::Thesis => constant::learn_thesis(self)?,
            PerturbationKind::Network => map::learn(self)?,
        };
        let r = &learned.report;
        let numbers = [r.scale, r.norm, r.cosine, r.spread, r.without, r.with];
        match numbers.iter().all(|v| v.is_finite()) && learned.state.is_finite(self.workers)? {
            true => Ok(learned),
            false => {
                Err(Error::NotFinite { subject: "the perturbation learned on public records", position: 0 })
            }
        }
    }

    fn all(&self) -> Vec<usize> {
        (0..self.public.len()).collect()
    }

    fn lambda(&self) -> f64 {
        self.how.lambda_at(self.step)
    }

    /// ḡ.
    fn mean(&self) -> Result<Vec<f64>> {
        let all = self.all();
        let sum = T::clipped_gradient(self.workers, self.net, self.public, &all, Clip::None, None, None)?.sum;
        Ok(sum.iter().map(|v| v.to_f64() / all.len() as f64).collect())
    }

    /// `‖J_g‖²` of every public record, by probes.
    fn traces(&self) -> Result<Vec<f64>> {
        let request = Measure {
            trace: Trace::Estimate { probes: self.how.probes, probe: Probe::Gaussian },
            plis: Plis::Skip,
            ..Measure::new(Clip::None, 1.0, self.seed)
        };
        let leaks = T::measure(self.workers, self.net, self.public, &self.all(), &request, None)?;
        Ok(leaks.iter().map(|l| l.trace.map_or(0.0, |t| t.value)).collect())
    }

    /// The numbers that the step before left, where they count.
    fn start(&self, length: usize) -> Option<Vec<f64>> {
        match self.before {
            Carried::Values(values) if !self.how.fresh && values.len() == length => Some(values.clone()),
            Carried::Nothing | Carried::Values(_) | Carried::Head(_) => None,
        }
    }

    /// The batches of one epoch: all public records in a new order.
    fn batches(&self, epoch: u64) -> Vec<Vec<usize>> {
        let mut rng = crate::random::Generator::new(self.seed, crate::random::Purpose::Other, epoch);
        let order = rng.permutation(self.public.len());
        order.chunks(self.how.batch.max(1)).map(<[usize]>::to_vec).collect()
    }
}

/// Adam in double precision, with its usual constants.
#[derive(Debug)]
struct Adam {
    m: Vec<f64>,
    v: Vec<f64>,
    step: i32,
}

impl Adam {
    fn new(length: usize) -> Self {
        Self { m: vec![0.0; length], v: vec![0.0; length], step: 0 }
    }

    /// One update of θ by its gradient and its decay.
    fn update(&mut self, how: &Perturbing, gradient: &[f64], theta: &mut [f64]) {
        let (b1, b2, e) = (0.9, 0.999, 1e-8);
        self.step = self.step.saturating_add(1);
        let (c1, c2) = (1.0 - f64::powi(b1, self.step), 1.0 - f64::powi(b2, self.step));
        let moments = self.m.iter_mut().zip(&mut self.v);
        for ((t, g), (m, v)) in theta.iter_mut().zip(gradient).zip(moments) {
            let g = g + how.weight_decay * *t;
            *m = b1 * *m + (1.0 - b1) * g;
            *v = b2 * *v + (1.0 - b2) * g * g;
            *t -= how.learning_rate * (*m / c1) / ((*v / c2).sqrt() + e);
        }
    }
}
