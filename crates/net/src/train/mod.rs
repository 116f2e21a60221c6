//! Training: SGD and Adam, in private by DP-SGD, with what every record gives away kept as it runs.
//!
//! A private step releases `Σ clip(gᵢ) + N(0, (σC)²I)` over the drawn records, divides it by the *expected* batch and
//! hands it to the optimiser. Which records are drawn and the noise follow from a secret key and the step ([`Randomness`]),
//! everything else from a seed and the step, so a run stopped anywhere and resumed from its checkpoint gives the same
//! numbers.
//!
//! Sum and noise (ChaCha20, Box–Muller) are added in double precision and rounded to a public grid (`grid`), so that
//! the last digits tell nothing (Mironov 2012); all that follows works from the rounded sum.
//!
//! What is not noisy decides nothing that can be seen: a private run stops on noisy numbers alone, and a record whose gradient is
//! not finite takes part with zero (`sift`).

mod account;
mod checkpoint;
mod filter;
mod key;
mod perturbed;
mod sample;
mod sift;
mod track;

pub use crate::optimizer::Optimizer;
pub use account::{Neighbours, RunAccount, account, sigma_for};
pub use filter::Filter;
pub use key::Randomness;
pub use sample::Sampling;
pub use track::{PANEL, RecordBudget, Tracking};

use crate::{
    Backend, Clip, Data, Network, Real,
    device::{Buf, Device, Flags},
    engine::Workers,
    error::{Error, Result, check},
    grid::Grid,
    layer::Draws,
    leak::{Label, dimension},
    perturb::{Carried, Learned, Perturbed, Perturbing},
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

impl TrainConfig {
    /// Training in the open: no clip, no noise, nothing kept of a record.
    pub fn open(optimizer: Optimizer, learning_rate: f64, sampling: Sampling) -> Self {
        Self {
            optimizer,
            learning_rate,
            weight_decay: 0.0,
            sampling,
            privacy: None,
            tracking: off(),
            label: public(),
            delta: usual_delta(),
            seed: 0,
            randomness: Randomness::default(),
            divisor: None,
            filter: None,
        }
    }
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
    /// Drawn records whose gradient was not finite: in a private run they take part with zero. Not covered by any noise.
    #[serde(default)]
    pub not_finite: usize,
    /// Whether the loss is over a million times that at the start. A run in the open stops then; a private one must not, for the
    /// loss is without noise.
    #[serde(default)]
    pub out_of_proportion: bool,
}

/// A training run over given data.
#[derive(Debug)]
pub struct Trainer<'d, T> {
    net: Network<T>,
    data: &'d Data<T>,
    config: TrainConfig,
    step: u64,
    /// Steps whose noisy sum was made and seen, where the last of them were taken back.
    seen: u64,
    moments: Vec<Buf<T>>,
    trained: Flags,
    tracker: Option<Tracker>,
    source: Source,
    spending: Option<Spending>,
    workers: Workers<T>,
    /// Those of a GPU, where the step is made.
    far: Option<Workers<T>>,
    /// The batch of a step that was drawn ahead.
    next: Option<(u64, Vec<usize>)>,
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
    perturbation: Carried<T>,
    /// What was added in the last step, where it was the same to all.
    added: Option<Vec<f64>>,
}

/// A loss beyond so many times that at the start is divergence: whatever is learned, it is not what was asked for.
const RUNAWAY: f64 = 1e6;

/// More records than any run sums up.
const SUMMED: f64 = (1_u64 << 40) as f64;
/// The grid of less noise would have steps that are no numbers.
const LEAST_NOISE: f64 = 1e-290;

/// Mean loss where all outputs are 0: what a network achieves that says nothing.
fn silent_loss<T: Real>(net: &Network<T>, data: &Data<T>) -> f64 {
    let silence = vec![0.0; net.outputs() * data.places()];
    // with a class at each position it is the same for all records, but for how many count: the first will do
    let records = if data.places() > 1 && data.label_classes(0).is_some() { 1 } else { data.len() };
    (0..records).map(|i| data.judge(net, i, &silence).0).sum::<f64>() / records as f64
}

/// Checks that a run of these settings can be made of a network and its records.
fn check_run<T: Real>(net: &Network<T>, data: &Data<T>, config: &TrainConfig) -> Result<()> {
    data.check(net)?;
    config.optimizer.check()?;
    config.sampling.check(data.units())?;
    let positive = |v: f64| v > 0.0 && v.is_finite();
    check(positive(config.learning_rate), "the learning rate", config.learning_rate, "positive and finite")?;
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
        let noise = sigma * clip.unit();
        // what a sum of any number of records and its noise can reach is finite, so that this never tells of records
        let fits = T::from_f64(SUMMED * (noise + clip.longest().unwrap_or(0.0))).to_f64().is_finite();
        let expected = "neither so small nor so large that sums of gradients with it are not finite";
        check(noise >= LEAST_NOISE && fits, "the noise sigma times C", noise, expected)?;
        if let Some(layer) = net.without_statistics() {
            return Err(Error::NoStatistics { layer });
        }
    }
    if let Some(probes) = config.tracking.probes() {
        check(probes >= 2, "the number of probes", probes as f64, "at least 2, for a standard error")?;
        if config.privacy.is_none() {
            let reason = "what records give away is only finite under noise: give clip and sigma".to_owned();
            return Err(Error::Format { subject: "tracking", reason });
        }
        if data.members().is_some() {
            let reason = "accounts are kept of records, and here several are clipped as one".to_owned();
            return Err(Error::Format { subject: "tracking", reason });
        }
    }
    if let Some(divisor) = config.divisor {
        check(positive(divisor), "the divisor of a step", divisor, "positive and finite")?;
    }
    Ok(())
}

impl<'d, T: Real> Trainer<'d, T> {
    /// Starts a run with the network's parameters: drawn, or from public pre-training.
    pub fn new(net: Network<T>, data: &'d Data<T>, config: TrainConfig) -> Result<Self> {
        check_run(&net, data, &config)?;
        let spending = match (&config.filter, config.privacy) {
            (Some(filter), Some(privacy)) => {
                Some(Spending::new(filter, privacy, config.sampling, config.delta, data.units())?)
            }
            (Some(_), None) => {
                let reason =
                    "without noise a record spends everything at once: give clip and sigma".to_owned();
                return Err(Error::Format { subject: "the filter", reason });
            }
            (None, _) => None,
        };
        let source = match (config.privacy, config.randomness) {
            (Some(_), Randomness::System) => Source::from_system()?,
            (Some(_), Randomness::SeededNotPrivate) | (None, _) => Source::Seed(config.seed),
        };
        let (workers, far) = (Workers::of(&net), Workers::leaving_sums(&net));
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
            seen: 0,
            moments,
            trained,
            tracker,
            source,
            spending,
            workers,
            far,
            next: None,
            first_loss,
            silent_loss,
            perturbing: None,
            perturbed_before: None,
            perturbed: None,
            perturbation: Carried::Nothing,
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
        self.perturbation = Carried::of(self.perturbation.values(&self.workers)?);
        self.net.move_to(backend)?;
        (self.workers, self.far) = (Workers::of(&self.net), Workers::leaving_sums(&self.net));
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
        let private = self.config.privacy.is_some();
        let diverged = |symptom| Error::Diverged { step, symptom };
        let stopped = |e| match e {
            Error::NotFinite { .. } => diverged("the gradient of a record is not finite"),
            other => other,
        };
        let mut drawn = match self.next.take() {
            Some((ahead, drawn)) if ahead == step => drawn,
            _ => self.config.sampling.draw(&self.source, step, n),
        };
        // texts of like lengths together, so that little is padded
        self.data.by_length(&mut drawn);
        let clip = self.config.privacy.map_or(Clip::None, |p| p.clip);
        // on public records and noisy parameters: that it stops here tells nothing of others
        let learned = self.learn_perturbation().map_err(stopped)?;
        let added = learned.as_ref().map(|l| &l.added);
        let mut silent = Vec::new();
        let spending = self.spend(added, &mut silent)?;
        if let Some(spending) = &spending {
            drawn.retain(|&i| spending.dropped[i].is_infinite());
        }
        let m = drawn.len();
        // what was not charged must not take part; it is in ascending order
        drawn.retain(|i| silent.binary_search(i).is_err());
        let (batch, next) = self.while_drawing(|| match private {
            true => self.released_by_finite(&drawn, clip, added),
            false => self.released(&drawn, clip, added).map_err(stopped),
        });
        let mut batch = batch?;
        let finite = batch.losses.len();
        let loss = (finite > 0).then(|| batch.losses.iter().sum::<f64>() / finite as f64);
        let out_of_proportion = loss.is_some_and(|loss| !self.in_proportion(loss));
        if out_of_proportion && !private {
            return Err(diverged("the loss is over a million times that at the start"));
        }
        let step_leak = self.step_leak(&drawn, spending.as_ref(), added)?;
        let updated = self.workers.with(|dev| {
            let gradient = batch.far.take().unwrap_or_else(|| dev.upload(&batch.sum));
            self.updated(dev, gradient)
        });
        if private {
            // also where it is taken back: that it was is seen
            self.seen = self.released_steps().max(step + 1);
        }
        let (theta, moments) = updated?;
        self.moments = moments;
        if self.far.as_ref().is_some_and(Workers::holds_parameters) {
            // captured work reads them where they were
            self.workers.with(|dev| dev.overwrite(&theta, &mut self.net.theta));
        } else {
            self.net.theta = theta;
        }
        if let Some(tracker) = &mut self.tracker {
            step_leak.keep(tracker);
        }
        self.spending = spending.or_else(|| self.spending.take());
        self.step += 1;
        self.next = next.map(|drawn| (self.step, drawn));
        if let Some(Learned { report, state, added }) = learned {
            (self.perturbed, self.perturbation) = (Some(report), state);
            self.added = added.into_constant();
        }
        self.first_loss = self.first_loss.or(loss);
        let over = batch.norms.iter().filter(|n| clip != Clip::None && **n > clip.unit()).count();
        let clipped = if finite == 0 { 0.0 } else { over as f64 / finite as f64 };
        Ok(StepReport { step, drawn: m, loss, clipped, not_finite: m - finite, out_of_proportion })
    }

    /// Does some work, and where a GPU does it draws the next batch meanwhile: to draw from many records takes as long as a small step.
    fn while_drawing<R>(&self, work: impl FnOnce() -> R) -> (R, Option<Vec<usize>>) {
        const MANY: usize = 10_000;
        let (n, next) = (self.data.units(), self.step + 1);
        if self.far.is_none() || n < MANY {
            return (work(), None);
        }
        let (sampling, source) = (self.config.sampling, &self.source);
        std::thread::scope(|scope| {
            let drawing = scope.spawn(move || sampling.draw(source, next, n));
            let done = work();
            (done, drawing.join().ok())
        })
    }

    /// Parameters and moments after this step, given the sum of the clipped gradients; all of it on the device.
    fn updated(&self, dev: &mut Device<T>, mut gradient: Buf<T>) -> Result<(Buf<T>, Vec<Buf<T>>)> {
        let (config, step) = (&self.config, self.step);
        if let Some(p) = config.privacy {
            let mut rng = self.source.generator(Purpose::Noise, step);
            dev.add_noise(&mut rng, Grid::of(p.sigma * p.clip.unit()), &self.trained, &mut gradient);
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
            (false, _) => Err(Error::Diverged { step, symptom: "the gradient is not finite" }),
            (true, false) => Err(Error::Diverged { step, symptom: "the parameters are not finite" }),
        }
    }

    /// What dropout leaves out in this step. A guarantee holds whatever is left out of a record, but a record more or less moves
    /// those behind it to other numbers: from the key, what is left out of all others is distributed as before.
    fn draws(&self) -> Option<Draws> {
        let seed = match self.source {
            Source::Seed(_) => self.config.seed,
            Source::Key(_) => {
                let mut stream = self.source.generator(Purpose::Dropout, self.step);
                u64::from(stream.bits()) | u64::from(stream.bits()) << 32
            }
        };
        Some(Draws { seed, step: self.step })
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

    /// Steps whose noisy sum was made and may have been seen, those that were taken back too: what a private run costs.
    pub fn released_steps(&self) -> u64 {
        self.seen.max(self.step)
    }

    /// Counts steps of this run that were made before it was taken back to where it stands.
    pub fn count_seen(&mut self, steps: u64) {
        self.seen = self.released_steps().max(steps);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayerSpec, Loss, NetSpec, Shape};

    /// One record more moves those behind it to other numbers: what dropout leaves out of them must not follow from those numbers
    /// and a seed that anybody knows.
    #[test]
    fn what_dropout_leaves_out_of_a_private_run_follows_from_its_key() {
        let data = Data::new(Shape::Vector([1]), vec![0.5_f32; 4], 1, vec![1.0; 4]).unwrap();
        let spec = || NetSpec::sequential(Shape::Vector([1]), vec![LayerSpec::dense(1)], Loss::SquaredError);
        let config = |randomness| TrainConfig {
            privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 1.0 }),
            seed: 3,
            randomness,
            ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 1.0, Sampling::Poisson { rate: 1.0 })
        };
        let run = |randomness| {
            Trainer::new(Network::<f32>::new(spec(), 1).unwrap(), &data, config(randomness)).unwrap()
        };
        let seeds = [run(Randomness::System), run(Randomness::System)].map(|r| r.draws().unwrap().seed);
        assert!(seeds[0] != seeds[1] && !seeds.contains(&3));
        assert_eq!(run(Randomness::SeededNotPrivate).draws().unwrap().seed, 3);
        let first = run(Randomness::System);
        let again =
            Trainer::<f32>::resume(&first.checkpoint().unwrap(), &data, config(Randomness::System)).unwrap();
        assert_eq!(first.draws(), again.draws());
    }
}
