//! Training: SGD and Adam, in private by DP-SGD, with what every record gives away kept as it runs.
//!
//! A private step releases `Σ clip(gᵢ) + N(0, (σC)²I)` over the drawn records, divides it by the *expected* batch and
//! hands it to the optimiser. Which records are drawn and the noise follow from a secret key and the step ([`Randomness`]),
//! everything else from a seed and the step, so a run stopped anywhere and resumed from its checkpoint gives the same
//! numbers.
//!
//! The noise is drawn in double precision (ChaCha20, Box–Muller) and rounded to the type of the parameters. Attacks on
//! the last bits of floating-point noise (Mironov 2012) are outside the guarantee.

mod account;
mod checkpoint;
mod filter;
mod key;
mod perturbed;
mod sample;
mod track;

pub use crate::optimizer::Optimizer;
pub use account::{Neighbours, RunAccount, account, sigma_for};
pub use filter::Filter;
pub use key::Randomness;
pub use sample::Sampling;
pub use track::{PANEL, RecordBudget, Tracking};

use crate::{
    Backend, Clip, Data, Network, Real,
    clip::Clipped,
    device::{Accounts, Buf, Device, Flags},
    engine::Workers,
    error::{Error, Result, check},
    layer::Draws,
    leak::{Label, Measure, Plis, Probe, RecordLeak, Trace, dimension},
    perturb::{Added, Learned, Perturbed, Perturbing},
    random::Purpose,
};
use filter::Spending;
use key::Source;
use serde::{Deserialize, Serialize};
use track::Tracker;

/// How to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The rule of the updates.
    pub optimizer: Optimizer,
    /// Learning rate.
    pub learning_rate: f64,
    /// Added to the gradient times the parameters, after the noise.
    #[serde(default)]
    pub weight_decay: f64,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Clipping and noise; absent for training in the open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// What is kept of every record; needs `privacy`.
    #[serde(default = "off")]
    pub tracking: Tracking,
    /// Whether the label counts as part of the record in `tracking`.
    #[serde(default = "public")]
    pub label: Label,
    /// δ of the statements.
    #[serde(default = "usual_delta")]
    pub delta: f64,
    /// Seed of what is no secret: probes; in a run that is not private also of sampling and noise.
    pub seed: u64,
    /// Where sampling and noise of a private run come from.
    #[serde(default)]
    pub randomness: Randomness,
    /// What the sum of gradients is divided by; absent: the expected batch, which makes the number of records public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divisor: Option<f64>,
    /// The most that a record may spend; it drops out before it would spend more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

fn off() -> Tracking {
    Tracking::Off
}

fn public() -> Label {
    Label::Public
}

fn usual_delta() -> f64 {
    1e-5
}

/// Clipping and noise of a private run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// How gradients are clipped; not at all is refused.
    pub clip: Clip,
    /// Noise multiplier: the noise has standard deviation σC.
    pub sigma: f64,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// The step, counted from 0.
    pub step: u64,
    /// Records (or units) drawn; an empty batch happens, and still releases its noise.
    pub drawn: usize,
    /// Mean loss over the drawn records before the update; absent for an empty batch.
    pub loss: Option<f64>,
    /// Share of drawn records whose gradient was longer than C.
    pub clipped: f64,
}

/// A training run over given data.
#[derive(Debug)]
pub struct Trainer<'d, T> {
    net: Network<T>,
    data: &'d Data<T>,
    config: TrainConfig,
    step: u64,
    moments: Vec<Buf<T>>,
    trained: Flags,
    tracker: Option<Tracker>,
    source: Source,
    spending: Option<Spending>,
    workers: Workers<T>,
    /// Mean loss of the first records drawn.
    first_loss: Option<f64>,
    /// Mean loss of a network that says 0 about every record.
    silent_loss: f64,
    /// How gradients are perturbed, and by which public records.
    perturbing: Option<(Perturbing, &'d Data<T>)>,
    /// The same of the checkpoint that the run goes on from: settings and the fingerprint of the records.
    perturbed_before: Option<(Perturbing, u64)>,
    /// The perturbation of the last step.
    perturbed: Option<Perturbed>,
    /// What it was learned as, which the next step starts from.
    perturbation: Vec<f64>,
    /// What was added in the last step, where it was the same to all.
    added: Option<Vec<f64>>,
}

/// What a step told of records: measures, or the accounts with them added on a GPU.
enum Told {
    Near(Vec<RecordLeak>),
    Far(Box<Accounts>),
}

/// A loss beyond so many times that at the start is divergence: whatever is learned, it is not what was asked for.
const RUNAWAY: f64 = 1e6;

/// Mean loss where all outputs are 0: what a network achieves that says nothing.
fn silent_loss<T: Real>(net: &Network<T>, data: &Data<T>) -> f64 {
    let silence = vec![0.0; net.outputs() * data.places()];
    // with a class at each position it is the same for all records, but for how many count: the first will do
    let records = if data.places() > 1 && data.label_classes(0).is_some() { 1 } else { data.len() };
    (0..records).map(|i| data.judge(net, i, &silence).0).sum::<f64>() / records as f64
}

impl<'d, T: Real> Trainer<'d, T> {
    /// Starts a run with the network's parameters: drawn, or from public pre-training.
    pub fn new(net: Network<T>, data: &'d Data<T>, config: TrainConfig) -> Result<Self> {
        data.check(&net)?;
        config.optimizer.check()?;
        config.sampling.check(data.units())?;
        let positive = |v: f64| v > 0.0 && v.is_finite();
        check(
            positive(config.learning_rate),
            "the learning rate",
            config.learning_rate,
            "positive and finite",
        )?;
        let decay = config.weight_decay;
        check(decay >= 0.0 && decay.is_finite(), "the weight decay", decay, "at least 0")?;
        if let Some(Privacy { clip, sigma }) = config.privacy {
            clip.check()?;
            check(positive(sigma), "sigma", sigma, "positive and finite")?;
            check(
                clip != Clip::None,
                "the clipping bound C",
                0.0,
                "a positive bound: without one there is no privacy",
            )?;
            if let Some(layer) = net.without_statistics() {
                return Err(Error::NoStatistics { layer });
            }
        }
        if let Some(probes) = config.tracking.probes() {
            check(probes >= 2, "the number of probes", probes as f64, "at least 2, for a standard error")?;
            if config.privacy.is_none() {
                let reason =
                    "what records give away is only finite under noise: give clip and sigma".to_owned();
                return Err(Error::Format { what: "tracking", reason });
            }
            if data.members().is_some() {
                let reason = "accounts are kept of records, and here several are clipped as one".to_owned();
                return Err(Error::Format { what: "tracking", reason });
            }
        }
        if let Some(divisor) = config.divisor {
            check(positive(divisor), "the divisor of a step", divisor, "positive and finite")?;
        }
        let spending = match (&config.filter, config.privacy) {
            (Some(filter), Some(privacy)) => {
                Some(Spending::new(filter, privacy, config.sampling, config.delta, data.units())?)
            }
            (Some(_), None) => {
                let reason =
                    "without noise a record spends everything at once: give clip and sigma".to_owned();
                return Err(Error::Format { what: "the filter", reason });
            }
            (None, _) => None,
        };
        let source = match (config.privacy, config.randomness) {
            (Some(_), Randomness::System) => Source::from_system()?,
            (Some(_), Randomness::SeededNotPrivate) | (None, _) => Source::Seed(config.seed),
        };
        let workers = Workers::of(&net);
        let (moments, trained) = workers.with(|dev| {
            let zeros = |_| dev.zeros(net.parameter_count());
            let moments: Vec<Buf<T>> = (0..config.optimizer.moments()).map(zeros).collect();
            (moments, dev.upload_flags(&net.trained()))
        });
        let tracker = Tracker::new(&config, data.units())?;
        let silent_loss = silent_loss(&net, data);
        let first_loss = None;
        Ok(Self {
            net,
            data,
            config,
            step: 0,
            moments,
            trained,
            tracker,
            source,
            spending,
            workers,
            first_loss,
            silent_loss,
            perturbing: None,
            perturbed_before: None,
            perturbed: None,
            perturbation: Vec::new(),
            added: None,
        })
    }

    /// Goes on elsewhere.
    pub fn on(mut self, backend: Backend) -> Result<Self> {
        if backend == self.net.backend() {
            return Ok(self);
        }
        if let Some(tracker) = &self.tracker {
            let near = self.workers.with(|dev| tracker.current(dev))?.into_owned();
            self.tracker = Some(near);
        }
        let moments: Vec<Vec<T>> =
            self.workers.with(|dev| self.moments.iter().map(|m| dev.download(m)).collect::<Result<_>>())?;
        self.net.move_to(backend)?;
        self.workers = Workers::of(&self.net);
        (self.moments, self.trained) = self.workers.with(|dev| {
            let moments = moments.iter().map(|m| dev.upload(m)).collect();
            (moments, dev.upload_flags(&self.net.trained()))
        });
        Ok(self)
    }

    /// Makes one step. After an error the run stands where it stood before the step.
    pub fn step(&mut self) -> Result<StepReport> {
        T::train_step(self)
    }

    pub(crate) fn step_generic(&mut self) -> Result<StepReport> {
        let (step, n) = (self.step, self.data.units());
        let diverged = |what| Error::Diverged { step, what };
        let stopped = |e| match e {
            Error::NotFinite { .. } => diverged("the gradient of a record is not finite"),
            other => other,
        };
        let mut drawn = self.config.sampling.draw(&self.source, step, n);
        // texts of like lengths together, so that little is padded
        self.data.by_length(&mut drawn);
        let clip = self.config.privacy.map_or(Clip::None, |p| p.clip);
        let learned = self.learn_perturbation().map_err(stopped)?;
        let added = learned.as_ref().map(|l| &l.added);
        let spending = self.spend(added).map_err(stopped)?;
        if let Some(spending) = &spending {
            drawn.retain(|&i| spending.dropped[i].is_infinite());
        }
        let mut batch = self.released(&drawn, clip, added).map_err(stopped)?;
        let loss = (!drawn.is_empty()).then(|| batch.losses.iter().sum::<f64>() / drawn.len() as f64);
        if loss.is_some_and(|loss| !self.in_proportion(loss)) {
            return Err(diverged("the loss is over a million times that at the start"));
        }
        let told = self.told(&drawn, spending.as_ref(), added).map_err(stopped)?;
        let (theta, moments) = self.workers.with(|dev| {
            let gradient = batch.far.take().unwrap_or_else(|| dev.upload(&batch.sum));
            self.updated(dev, gradient)
        })?;
        self.net.theta = theta;
        self.moments = moments;
        match (&mut self.tracker, told) {
            (Some(t), Told::Near(leaks)) => t.add(&leaks),
            (Some(t), Told::Far(accounts)) => t.keep(*accounts),
            (None, _) => {}
        }
        self.spending = spending.or_else(|| self.spending.take());
        self.step += 1;
        if let Some(Learned { report, state, added }) = learned {
            (self.perturbed, self.perturbation) = (Some(report), state);
            self.added = added.into_constant();
        }
        self.first_loss = self.first_loss.or(loss);
        let (m, c) = (drawn.len(), clip.unit());
        let over = batch.norms.iter().filter(|n| clip != Clip::None && **n > c).count();
        let share = |v: f64| if m == 0 { 0.0 } else { v / m as f64 };
        Ok(StepReport { step, drawn: m, loss, clipped: share(over as f64) })
    }

    /// What this step tells of the records that are followed or drawn.
    fn told(&self, drawn: &[usize], spending: Option<&Spending>, added: Option<&Added<T>>) -> Result<Told> {
        let (Some(tracker), Some(privacy), Some(probes)) =
            (&self.tracker, self.config.privacy, self.config.tracking.probes())
        else {
            return Ok(Told::Near(Vec::new()));
        };
        // other probes at every step
        let seed = self.config.seed ^ self.step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let what = Measure {
            trace: Trace::Estimate { probes, probe: Probe::Rademacher },
            plis: Plis::Record,
            label: self.config.label,
            ..Measure::new(privacy.clip, privacy.sigma, seed)
        };
        // a record that dropped out takes no part, and gives nothing away
        let takes_part = |i: usize| spending.is_none_or(|s| s.dropped[i].is_infinite());
        let wanted = tracker.wants(drawn, takes_part);
        let far = match added {
            None => self.workers.with(|dev| tracker.accounts(dev)),
            Some(_) => None,
        };
        match far {
            Some(mut accounts) => {
                // with the values that dropout left out in this step: whoever knows them learns no less
                let (workers, draws) = (&self.workers, self.draws());
                T::account(workers, &self.net, self.data, &wanted, (&what, draws), &mut accounts)?;
                Ok(Told::Far(Box::new(accounts)))
            }
            None => self.measured(&wanted, what, added).map(Told::Near),
        }
    }

    /// Parameters and moments after this step, given the sum of the clipped gradients; all of it on the device.
    fn updated(&self, dev: &mut Device<T>, mut gradient: Buf<T>) -> Result<(Buf<T>, Vec<Buf<T>>)> {
        let (config, step) = (&self.config, self.step);
        if let Some(p) = config.privacy {
            let mut rng = self.source.generator(Purpose::Noise, step);
            dev.add_noise(&mut rng, p.sigma * p.clip.unit(), &self.trained, &mut gradient);
        }
        let divisor = config.divisor.unwrap_or_else(|| config.sampling.expected(self.data.units()));
        dev.add_decay(1.0 / divisor, config.weight_decay, &self.net.theta, &mut gradient);
        let mut theta = dev.copy(self.net.theta.all());
        let mut moments: Vec<Buf<T>> = self.moments.iter().map(|m| dev.copy(m.all())).collect();
        let (rule, rate) = (config.optimizer, config.learning_rate);
        dev.update(rule, step, rate, &gradient, &self.trained, &mut moments, &mut theta);
        dev.put(gradient);
        // all answers in one download
        let mut finite = dev.all_finite(&moments.iter().chain([&theta]).collect::<Vec<_>>())?;
        let parameters = finite.pop().unwrap_or(true);
        match (finite.iter().all(|f| *f), parameters) {
            (true, true) => Ok((theta, moments)),
            (false, _) => Err(Error::Diverged { step, what: "the gradient is not finite" }),
            (true, false) => Err(Error::Diverged { step, what: "the parameters are not finite" }),
        }
    }

    /// What dropout leaves out in this step. It is no secret: a guarantee holds whatever is left out.
    fn draws(&self) -> Option<Draws> {
        Some(Draws { seed: self.config.seed, step: self.step })
    }

    /// The records' spending with this step charged to those that can pay it; absent without a filter.
    fn spend(&self, added: Option<&Added<T>>) -> Result<Option<Spending>> {
        let (Some(spending), Some(p)) = (&self.spending, self.config.privacy) else { return Ok(None) };
        let active = spending.active();
        let mut spending = spending.clone();
        if self.data.members().is_some() {
            let (workers, net, data) = (&self.workers, &self.net, self.data);
            let units = T::clipped_gradient(workers, net, data, &active, p.clip, None, self.draws())?;
            let released = |n: f64| n * Clipped::new(p.clip, n).s;
            let norms = active.into_iter().zip(units.norms);
            spending.charge(self.step, norms.map(|(unit, n)| (unit, released(n))));
            return Ok(Some(spending));
        }
        let norms = Measure {
            trace: Trace::Skip,
            plis: Plis::Skip,
            label: self.config.label,
            ..Measure::new(p.clip, p.sigma, self.config.seed)
        };
        let leaks = self.measured(&active, norms, added)?;
        spending.charge(self.step, leaks.iter().map(|leak| (leak.record, leak.released_norm)));
        Ok(Some(spending))
    }

    /// The step before which each record dropped out of a filtered run; `None` for one that takes part. Empty without a
    /// filter.
    pub fn dropped(&self) -> Vec<Option<u64>> {
        let of = |d: &f64| d.is_finite().then_some(*d as u64);
        self.spending.iter().flat_map(|s| s.dropped.iter().map(of)).collect()
    }

    /// Whether sampling and noise are secret, so that a statement of privacy holds.
    pub fn is_private(&self) -> bool {
        self.config.privacy.is_some() && matches!(self.source, Source::Key(_))
    }

    /// Whether a loss is one of a run that may still learn. The clip keeps a gradient finite however large the loss is,
    /// so that this alone tells of a learning rate far too high. A run from good weights starts with hardly a loss:
    /// hence not below what saying nothing costs.
    fn in_proportion(&self, loss: f64) -> bool {
        let start = self.first_loss.map_or(loss, |first| first.max(self.silent_loss));
        start == 0.0 || loss <= RUNAWAY * start
    }

    /// The network as it stands.
    pub fn network(&self) -> &Network<T> {
        &self.net
    }

    /// Ends the run.
    pub fn into_network(self) -> Network<T> {
        self.net
    }

    /// The run's settings.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// Steps made.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Accounts of all records; empty without tracking.
    pub fn budgets(&self) -> Result<Vec<RecordBudget>> {
        let Some(tracker) = &self.tracker else { return Ok(Vec::new()) };
        let tracker = self.workers.with(|dev| tracker.current(dev))?;
        // a record that dropped out took part in the steps before
        let steps = |i: usize| match self.spending.as_ref().map(|s| s.dropped[i]) {
            Some(dropped) if dropped.is_finite() => dropped as u64,
            Some(_) | None => self.step,
        };
        let of = |i: usize| tracker.budget(i, self.dimension(i), steps(i));
        Ok((0..self.data.units()).map(of).collect())
    }

    /// Dimension of the secret of a record.
    pub fn dimension(&self, record: usize) -> usize {
        dimension(&self.net, self.data.length_of(record), self.config.label)
    }

    /// dFIL so far of every record that is followed: cheap enough for every step. Empty where none is.
    pub fn dfil(&self) -> Result<Vec<f64>> {
        match &self.tracker {
            Some(t) => self.workers.with(|dev| t.followed_dfil(dev, |i| self.dimension(i))),
            None => Ok(Vec::new()),
        }
    }
}
