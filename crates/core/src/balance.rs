//! Iteratively reweighted Fisher information loss: weights under which every record leaks the same (Hannun alg. 1).
//!
//! ```text
//! w* ← argmin Σ ωᵢ ℓ(wᵀxᵢ, yᵢ) + (nλ/2)‖w‖²      ηᵢ = ωᵢ eᵢ(ω)      ωᵢ ← n (ωᵢ/ηᵢ) / Σ (ω/η)
//! ```
//!
//! `eᵢ`, the loss without the factor ωᵢ, depends on the weights through the model alone. The published update is then
//! `ω ∝ 1/e(ω)`: a fixed-point iteration, which [`Update::Accelerated`] speeds up (Anderson's method on log ω). AM207
//! §6.3 objects that an attacker who does not know the weights faces `e`, not η: [`Variant::Unweighted`] divides by `e`
//! instead, which has no fixed point, and every [`Iteration`] carries both.
//!
//! Memory is O(n): one weight and one loss per record, times six with acceleration.

mod counted;
mod derivative;
mod losses;
mod row_space;

pub use counted::{CountedBalance, counted, most_even, weights_after};
pub use losses::{Losses, LossesState, SoftmaxLosses, losses, losses_of, losses_under};
pub use row_space::RowSpace;

use crate::fisher::noise::Noise;
use crate::fisher::{Directions, Release};
use crate::glm::{Family, Fit, Minimiser, ModelKind, Penalty, fit};
use crate::linalg::{Cholesky, axpy, dot};
use crate::num::{Distribution, Summary};
use crate::pass::{Merge, Pass, Runner};
use crate::rows::{Altered, Block, Rows};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is balanced: the loss of whole records, or of one attribute of each.
#[derive(Debug, Clone, PartialEq)]
pub enum Level {
    /// η of the whole record.
    Record,
    /// η of the attribute with these directions.
    Attribute(Directions),
}

impl Level {
    fn attributes(&self) -> Vec<Directions> {
        match self {
            Self::Record => vec![],
            Self::Attribute(directions) => vec![directions.clone()],
        }
    }
}

/// Which records share a weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// One weight per record
    #[default]
    Sample,
    /// One per class of the target: the mean of what its records' own weights would be
    Class,
    /// The product of both (its mean need not be 1)
    Hybrid,
}

/// Which loss the weights are divided by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The attacker knows the weights: η with the factor ω (Hannun)
    #[default]
    Weighted,
    /// The attacker knows the model but not the weights: η without it (AM207 §6.3)
    Unweighted,
}

/// How the next weights follow from the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// Line 7 of Hannun's algorithm 1
    #[default]
    Published,
    /// The same fixed point in fewer iterations (Anderson), for weights per sample and the weighted variant
    Accelerated,
}

/// What to balance and when to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is balanced.
    pub level: Level,
    /// Which records share a weight.
    pub sharing: Sharing,
    /// Which loss the weights are divided by.
    pub variant: Variant,
    /// How weights are updated.
    pub update: Update,
    /// Smallest and largest weight.
    pub clamp: Option<(f64, f64)>,
    /// Reweightings at most.
    pub iterations: usize,
    /// Stop when the standard deviation of η is at most this share of its mean.
    pub tolerance: f64,
    /// Noise and secret of the release.
    pub release: Release,
    /// The noise at σ = 1, held while weights move; `N(0, I)` without one.
    pub shape: Option<Noise>,
}

/// One model on the way; iteration 0 is before reweighting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// Reweightings so far.
    pub number: usize,
    /// η with the factor ω.
    pub eta: Summary,
    /// η without it.
    pub eta_unweighted: Summary,
    /// Standard deviation over mean of the η that is balanced.
    pub spread: f64,
    /// Smallest weight; their mean is one (without clamping and given weights).
    pub weight_min: f64,
    /// Largest weight.
    pub weight_max: f64,
}

/// Why it stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// The spread is within the tolerance.
    Converged,
    /// All iterations were used.
    Iterations,
    /// A weight has vanished: the record hardly takes part in the model any more.
    Vanished {
        /// Its row, from 0.
        row: usize,
        /// Its weight over the mean weight.
        weight: f64,
    },
    /// The reweighted model has no fit.
    NoFit(Error),
}

/// The best weights found, with their model.
#[derive(Debug, Clone)]
pub struct Balanced<M = Fit> {
    /// The weights, one per row.
    pub weights: Vec<f64>,
    /// The model under them.
    pub fit: M,
    /// η per row before reweighting.
    pub eta_before: Vec<f64>,
    /// η per row under the weights.
    pub eta: Vec<f64>,
    /// η without the factor ω, per row.
    pub eta_unweighted: Vec<f64>,
    /// Every iteration, 0 first.
    pub history: Vec<Iteration>,
    /// Number of the best iteration: that of the weights.
    pub best: usize,
    /// Why it stopped.
    pub stopped: Stopped,
}

/// A weight below this share of the mean has vanished.
const VANISHED: f64 = 1e-9;
/// A record whose loss is below this share of the mean leaks nothing, and gets the weight of one at that share.
const NOTHING: f64 = 1e-9;
/// Past steps that the accelerated update looks at.
const MEMORY: usize = 5;

/// Balances the leakage of `rows`; `watch` sees every iteration with its model and weights, and may stop it.
///
/// The weights of the rows themselves are where it starts. The best iteration is kept, whatever comes later.
///
/// # Errors
/// Those of the first fit and [`Error::OutOfRange`] for options or weights that make no sense; later trouble ends the
/// iteration with its reason in [`Balanced::stopped`].
pub fn balance(
    rows: &dyn Rows,
    (family, penalty): (Family, Penalty),
    options: &Options,
    watch: impl FnMut(&Iteration, &Fit, &[f64]) -> Result<()>,
) -> Result<Balanced> {
    let start = Start::read(rows)?;
    options.check(&start, false)?;
    balance_by(&start, options, |weights| measure(rows, (family, penalty), options, weights), watch)
}

/// [`balance`] of a model of either kind; softmax regression has at most `most_classes`, and its weights may be shared by any number
/// of them.
///
/// # Errors
/// As [`balance`].
pub fn balance_model(
    rows: &dyn Rows,
    (kind, penalty, most_classes): (ModelKind, Penalty, usize),
    options: &Options,
    watch: impl FnMut(&Iteration, &Minimiser, &[f64]) -> Result<()>,
) -> Result<Balanced<Minimiser>> {
    let start = Start::read(rows)?;
    options.check(&start, kind == ModelKind::Softmax)?;
    let measure = |weights: &[f64]| {
        let fit = Minimiser::fit(&Altered::weighted(rows, weights)?, kind, penalty, most_classes)?;
        let e = losses_of(rows, &fit, &options.level, options.release, options.shape.as_ref())?;
        Ok((fit, e))
    };
    balance_by(&start, options, measure, watch)
}

/// The iteration, whatever is fitted.
fn balance_by<M>(
    start: &Start,
    options: &Options,
    measure: impl Fn(&[f64]) -> Result<(M, Vec<f64>)>,
    mut watch: impl FnMut(&Iteration, &M, &[f64]) -> Result<()>,
) -> Result<Balanced<M>> {
    let mut own = start.weights.clone();
    let mut weights = start.weights.clone();
    let mut latest: Option<Balanced<M>> = None;
    let mut accelerate = Anderson::default();
    for number in 0..=options.iterations {
        let (fit, e) = match measure(&weights) {
            Ok(measured) => measured,
            Err(error) => match latest {
                Some(mut best) if !matches!(error, Error::Interrupted) => {
                    best.stopped = Stopped::NoFit(error);
                    return Ok(best);
                }
                _ => return Err(error),
            },
        };
        let eta: Vec<f64> = weights.iter().zip(&e).map(|(omega, e)| omega * e).collect();
        let iteration = describe(number, options, &weights, &eta, &e);
        watch(&iteration, &fit, &weights)?;
        let better = latest.as_ref().is_none_or(|b| iteration.spread < b.history[b.best].spread);
        let history = latest.as_mut().map_or_else(Vec::new, |b| std::mem::take(&mut b.history));
        let eta_before = latest.as_mut().map_or_else(|| eta.clone(), |b| std::mem::take(&mut b.eta_before));
        let mut best = match latest.take().filter(|_| !better) {
            Some(best) => best,
            None => Balanced {
                weights: weights.clone(),
                fit,
                eta_before: vec![],
                eta,
                eta_unweighted: e.clone(),
                history: vec![],
                best: number,
                stopped: Stopped::Iterations,
            },
        };
        (best.history, best.eta_before) = (history, eta_before);
        best.history.push(iteration);
        if iteration.spread <= options.tolerance {
            best.stopped = Stopped::Converged;
            return Ok(best);
        }
        if let Some((row, weight)) = vanished(&weights) {
            best.stopped = Stopped::Vanished { row, weight };
            return Ok(best);
        }
        latest = Some(best);
        next(options, start, &mut own, &weights, e, &mut accelerate);
        weights = shared(options.sharing, start, &own);
        options.hold(&mut weights);
    }
    latest.ok_or(Error::Empty)
}

/// The pass that reads the weights and targets that rows come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnWeights;

/// Weight and target of every row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WeightsAndTargets {
    /// ω.
    pub weights: Vec<f64>,
    /// y.
    pub targets: Vec<f64>,
}

impl Merge for WeightsAndTargets {
    fn merge(&mut self, later: Self) {
        self.weights.extend(later.weights);
        self.targets.extend(later.targets);
    }
}

impl Pass for OwnWeights {
    const NAME: &'static str = "the weights of rows";
    type State = WeightsAndTargets;

    fn start(&self) -> WeightsAndTargets {
        WeightsAndTargets::default()
    }

    fn step(&self, state: &mut WeightsAndTargets, block: &Block) -> Result<()> {
        state.weights.extend((0..block.len()).map(|i| block.weight_of(i)));
        state.targets.extend_from_slice(&block.y);
        Ok(())
    }

    fn fits(&self, state: &WeightsAndTargets) -> bool {
        state.weights.len() == state.targets.len()
    }
}

/// What a first pass reads: the given weights and the classes.
struct Start {
    weights: Vec<f64>,
    total: f64,
    y: Vec<f64>,
}

impl Start {
    fn read(rows: &dyn Rows) -> Result<Self> {
        let WeightsAndTargets { weights, targets } = rows.run(&OwnWeights)?;
        if weights.is_empty() {
            return Err(Error::Empty);
        }
        let total = weights.iter().sum();
        Ok(Self { weights, total, y: targets })
    }

    fn two_classes(&self) -> bool {
        let first = self.y[0];
        let second = self.y.iter().find(|&&y| y != first);
        second.is_some_and(|&second| self.y.iter().all(|&y| y == first || y == second))
    }
}

impl Options {
    /// Keeps weights between the smallest and the largest allowed: those of every record, and what sharing makes of them
    /// (the product of two weights within the limits need not be).
    fn hold(&self, weights: &mut [f64]) {
        if let Some((low, high)) = self.clamp {
            weights.iter_mut().for_each(|w| *w = w.clamp(low, high));
        }
    }

    fn check(&self, start: &Start, classes: bool) -> Result<()> {
        if let Some(&value) = start.weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(Error::Weight { value });
        }
        if let Some((low, high)) = self.clamp
            && !(low >= 0.0 && high.is_finite() && low < high)
        {
            let expected = "0 ≤ smallest < largest";
            return Err(Error::OutOfRange { subject: "the smallest weight", value: low, expected });
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let expected = "zero or a positive number";
            return Err(Error::OutOfRange { subject: "tolerance", value: self.tolerance, expected });
        }
        if self.sharing != Sharing::Sample && !classes && !start.two_classes() {
            let expected = "a target of two classes, for weights per class";
            return Err(Error::OutOfRange { subject: "the target", value: start.y[0], expected });
        }
        if self.update == Update::Accelerated
            && (self.variant == Variant::Unweighted || self.sharing != Sharing::Sample)
        {
            let expected =
                "weights per sample and the weighted variant, where there is a fixed point to find";
            return Err(Error::OutOfRange { subject: "the accelerated update", value: 1.0, expected });
        }
        Ok(())
    }
}

/// The model under the weights, and `e`: η without the factor ω.
fn measure(
    rows: &dyn Rows,
    (family, penalty): (Family, Penalty),
    options: &Options,
    weights: &[f64],
) -> Result<(Fit, Vec<f64>)> {
    let fit = fit(&Altered::weighted(rows, weights)?, family, penalty)?;
    let e = losses_under(rows, &fit, &options.level, options.release, options.shape.as_ref())?;
    Ok((fit, e))
}

fn describe(number: usize, options: &Options, weights: &[f64], eta: &[f64], e: &[f64]) -> Iteration {
    let summary = |xs: &[f64]| {
        let mut d = Distribution::default();
        d.extend(xs);
        d.summary()
    };
    let (eta, eta_unweighted) = (summary(eta), summary(e));
    let balanced = match options.variant {
        Variant::Weighted => &eta,
        Variant::Unweighted => &eta_unweighted,
    };
    let spread = if balanced.mean > 0.0 { balanced.std / balanced.mean } else { 0.0 };
    let (weight_min, weight_max) =
        weights.iter().fold((f64::INFINITY, 0.0_f64), |(lo, hi), &w| (lo.min(w), hi.max(w)));
    Iteration { number, eta, eta_unweighted, spread, weight_min, weight_max }
}

fn vanished(weights: &[f64]) -> Option<(usize, f64)> {
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let (row, least) = weights.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))?;
    (*least < VANISHED * mean).then(|| (row, if mean > 0.0 { least / mean } else { 0.0 }))
}

/// Line 7: every record's own weight is divided by its loss; then normalised, then clamped.
fn next(
    options: &Options,
    start: &Start,
    own: &mut [f64],
    weights: &[f64],
    mut e: Vec<f64>,
    accelerate: &mut Anderson,
) {
    let least = NOTHING * e.iter().sum::<f64>() / e.len() as f64;
    // All losses zero: nothing leaks, and any weights are balanced.
    e.iter_mut().for_each(|e| *e = e.max(least).max(f64::MIN_POSITIVE));
    match options.update {
        Update::Published => {
            for ((own, &e), &omega) in own.iter_mut().zip(&e).zip(weights) {
                *own /= match options.variant {
                    Variant::Weighted => omega * e,
                    Variant::Unweighted => e,
                };
            }
        }
        Update::Accelerated => {
            // G(u) = −log e(exp u), made to have mean zero: the constant is the normalisation's.
            let now: Vec<f64> = own.iter().map(|w| w.ln()).collect();
            let target: Vec<f64> = e.iter().map(|e| -e.ln()).collect();
            for (own, u) in own.iter_mut().zip(accelerate.step(centred(now), centred(target))) {
                *own = u.exp();
            }
        }
    }
    let factor = start.total / own.iter().sum::<f64>();
    own.iter_mut().for_each(|w| *w *= factor);
    options.hold(own);
}

fn centred(mut u: Vec<f64>) -> Vec<f64> {
    let mean = u.iter().sum::<f64>() / u.len() as f64;
    u.iter_mut().for_each(|v| *v -= mean);
    u
}

fn shared(sharing: Sharing, start: &Start, own: &[f64]) -> Vec<f64> {
    if sharing == Sharing::Sample {
        return own.to_vec();
    }
    let mut classes: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (w, y) in own.iter().zip(&start.y) {
        let (sum, count) = classes.entry(y.to_bits()).or_default();
        *sum += w;
        *count += 1.0;
    }
    let mean = |y: &f64| classes.get(&y.to_bits()).map_or(1.0, |(sum, count)| sum / count);
    let of_class = start.y.iter().map(mean);
    match sharing {
        Sharing::Hybrid => of_class.zip(own).map(|(class, own)| class * own).collect(),
        Sharing::Sample | Sharing::Class => of_class.collect(),
    }
}

/// Anderson's method for `u = G(u)`: the combination of past steps that would have left the smallest residual.
#[derive(Debug, Default)]
struct Anderson {
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// Differences of residuals `f = G(u) − u`, and of `G`, newest last.
    df: Vec<Vec<f64>>,
    dg: Vec<Vec<f64>>,
}

impl Anderson {
    fn step(&mut self, u: Vec<f64>, g: Vec<f64>) -> Vec<f64> {
        let minus = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let f = minus(&g, &u);
        if let Some((last_f, last_g)) = &self.last {
            self.df.push(minus(&f, last_f));
            self.dg.push(minus(&g, last_g));
            if self.df.len() > MEMORY {
                self.df.remove(0);
                self.dg.remove(0);
            }
        }
        let mut next = g.clone();
        let m = self.df.len();
        if m > 0 {
            let gram: Vec<f64> = (0..m * m).map(|ij| dot(&self.df[ij / m], &self.df[ij % m])).collect();
            let right: Vec<f64> = self.df.iter().map(|d| dot(d, &f)).collect();
            match Cholesky::new(&gram, m) {
                Ok(factor) => {
                    for (gamma, dg) in factor.solve(&right).iter().zip(&self.dg) {
                        axpy(-gamma, dg, &mut next);
                    }
                }
                // The past says nothing new: start again from the plain step.
                Err(_) => {
                    self.df.clear();
                    self.dg.clear();
                }
            }
        }
        self.last = Some((f, g));
        next
    }
}
