//! Gradient inversion: what can be seen of records in their gradients.

use super::super::audit::clip_of;
use super::super::model::{Model, trained_precision};
use super::super::{Device, Precision, ReleaseRequest, clip_facts};
use super::levels::{Attacks, level, matched};
use super::showing;
use super::subject::{Reads, Records, Subject, range};
use crate::output::Results;
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_net::{
    Clip, Loss, Network, Real, Shape,
    attack::inversion::{
        self as search, Inversion, Reconstruction, UnknownLabels, first_layer, invert, recovered_labels,
    },
    attack::sight::{Mechanism, Sight, gradients, half_way, local_steps},
    io::Tensors,
    quality::{Lpips, Range},
};
use leakscope_report::inversion as document;
use leakscope_report::net::InversionPictures;
use leakscope_table::{Hooks, RecordsFormat, Stage};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use leakscope_report::inversion::{Labels, Objective};

/// Gradient inversion as a user asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InversionRequest {
    /// A folder that a run left.
    pub model: PathBuf,
    /// The records whose gradients are attacked.
    pub data: Vec<PathBuf>,
    /// Use only the first records of them.
    pub limit: Option<usize>,
    /// How many to attack, drawn by the seed; absent: all.
    pub records: Option<usize>,
    /// A gradient to attack instead: a safetensors file with the names of the network's tensors.
    pub gradient: Option<PathBuf>,
    /// A model folder with the weights after local steps, to attack instead.
    pub after: Option<PathBuf>,
    /// Records in one gradient.
    pub batch: usize,
    /// Simulate so many steps of gradient descent on each batch, and show the attacker the weights before and after.
    pub local_steps: Option<u64>,
    /// Their learning rate.
    pub local_lr: f64,
    /// How gradients are clipped; absent: as in the run. Its noise is one of the levels.
    pub release: ReleaseRequest,
    /// Noise multipliers; 0 is none. Absent: none, and that of the run where it had one.
    pub sigmas: Vec<f64>,
    /// What is made small.
    pub objective: Objective,
    /// What the attacker knows of labels.
    pub labels: Labels,
    /// Steps of the attack (published: 4,000).
    pub iterations: usize,
    /// Starts.
    pub restarts: usize,
    /// Length of its first steps, in widths of the range.
    pub lr: f64,
    /// Weight of the total variation; absent: 1e-4 for the cosine, as published, 1 for the likelihood.
    pub total_variation: Option<f64>,
    /// Values that records can have; absent: those of the data, else 0 to 1.
    pub range: Option<[f64; 2]>,
    /// Mean and standard deviation that values are scaled by; absent: as in training.
    pub normalize: Option<[f64; 2]>,
    /// The weights of LPIPS (safetensors); absent: it is not measured.
    pub lpips: Option<PathBuf>,
    /// Whether records are shown on the page.
    pub pictures: bool,
    /// Seed of records, starts and noise; drawn where there is none.
    pub seed: Option<u64>,
    /// Format of the table of records.
    pub format: RecordsFormat,
    /// Numbers to compute with; absent: those of the run.
    pub precision: Option<Precision>,
    /// Where the network computes.
    pub device: Device,
    /// Whether the page names and shows no record.
    pub redact: bool,
}

impl Default for InversionRequest {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            data: vec![],
            limit: None,
            records: Some(50),
            gradient: None,
            after: None,
            batch: 1,
            local_steps: None,
            local_lr: 0.1,
            release: ReleaseRequest::default(),
            sigmas: vec![],
            objective: Objective::default(),
            labels: Labels::default(),
            iterations: 1000,
            restarts: 1,
            lr: 0.1,
            total_variation: None,
            range: None,
            normalize: None,
            lpips: None,
            pictures: true,
            seed: None,
            format: RecordsFormat::default(),
            precision: None,
            device: Device::default(),
            redact: false,
        }
    }
}

impl InversionRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        let at_least_one = |name: &str, n: usize| match n {
            0 => Err(Failure::number(name, 0, "expected at least 1")),
            _ => Ok(()),
        };
        at_least_one("iterations", self.iterations)?;
        at_least_one("restarts", self.restarts)?;
        at_least_one("batch", self.batch)?;
        let positive = |name: &str, x: f64| match x > 0.0 && x.is_finite() {
            true => Ok(()),
            false => Err(Failure::number(name, numeral(x), "expected a positive number")),
        };
        positive("lr", self.lr)?;
        positive("local_lr", self.local_lr)?;
        if let Some(w) = self.total_variation.filter(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(Failure::number("total_variation", w, "expected 0 or more"));
        }
        if let Some(s) = self.sigmas.iter().find(|s| !(**s >= 0.0 && s.is_finite())) {
            return Err(Failure::number("sigmas", s, "expected 0 (no noise) or more"));
        }
        if self.gradient.is_some() && self.after.is_some() {
            return Err(Failure::option("after", "⟨gradient⟩ is attacked already: give one of the two"));
        }
        if self.local_steps == Some(0) {
            return Err(Failure::number("local_steps", 0, "expected at least 1"));
        }
        if self.local_steps.is_some() && (self.release.sigma.is_some() || !self.sigmas.is_empty()) {
            return Err(Failure::option(
                "local_steps",
                "weights are seen as they are, without noise: leave ⟨sigmas⟩ out",
            ));
        }
        Ok(())
    }

    fn how(&self, range: Range, clip: Clip, seed: u64) -> Inversion {
        let default = match self.objective {
            Objective::Cosine => 1e-4,
            Objective::Likelihood => 1.0,
        };
        Inversion {
            clip,
            total_variation: self.total_variation.unwrap_or(default),
            iterations: self.iterations,
            restarts: self.restarts,
            learning_rate: self.lr,
            labels: match self.labels {
                Labels::Try => UnknownLabels::Try,
                Labels::Known | Labels::Recover => UnknownLabels::Recover,
            },
            ..Inversion::published(range, seed)
        }
    }
}

/// The measure with the weights of a file, for records of a shape.
pub(super) fn lpips(file: &Path, shape: Shape) -> Result<Lpips> {
    let wrong = |e: &dyn std::fmt::Display| Failure::option("lpips", format!("{}: {e}", file.display()));
    if !matches!(shape, Shape::Image([_, _, 1 | 3])) {
        let message = "it is of images with 1 or 3 channels, and these records are none: leave it out";
        return Err(Failure::option("lpips", message));
    }
    let bytes = std::fs::read(file).map_err(|e| wrong(&e))?;
    let tensors = Tensors::from_bytes(&bytes).map_err(|e| wrong(&e))?;
    Lpips::from_tensors(&tensors).map_err(|e| wrong(&e))
}

/// What an attack found.
#[derive(Debug, Clone)]
pub struct InversionOutcome {
    /// The document.
    pub document: document::Inversion,
    /// What goes onto its page alone.
    pub pictures: InversionPictures,
    /// `records`.
    pub tables: Vec<Arc<Results>>,
    /// The reconstructions `(levels, records, d)`.
    pub reconstructions: Vec<f64>,
    /// The records they are of; empty where a gradient was given.
    pub records: Vec<usize>,
    /// What was written.
    pub written: Vec<PathBuf>,
}

/// What is attacked where no records are known.
#[derive(Debug)]
pub enum Update<T> {
    /// A gradient, in the order of the network's tensors.
    Gradient(Vec<T>),
    /// Weights after local steps.
    After(Vec<T>),
}

/// Attacks as the request says; `out` receives the document, the page and the tables.
pub fn run(
    request: &InversionRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<InversionOutcome> {
    request.check()?;
    match request.precision.unwrap_or_else(|| trained_precision(&request.model)) {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, hooks, on_seed),
        Precision::F64 => run_in::<f64>(request, out, hooks, on_seed),
    }
}

fn run_in<T: Real>(
    request: &InversionRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<InversionOutcome> {
    let reads = Reads { data: &request.data, limit: request.limit, normalize: request.normalize };
    let backend = request.device.backend_in(request.precision)?;
    let subject = Subject::<T>::open(&request.model, backend, &reads, hooks)?;
    let update = match (&request.gradient, &request.after) {
        (Some(file), _) => Some(Update::Gradient(read_gradient(&subject.model.net, file)?)),
        (None, Some(folder)) => {
            let after = Model::<T>::open(folder, "after", backend)?;
            if after.net.spec() != subject.model.net.spec() {
                let message =
                    "it is another network than that of ⟨model⟩: give the same one after some steps";
                return Err(Failure::option("after", message));
            }
            Some(Update::After(after.net.parameters()?))
        }
        (None, None) => None,
    };
    let folder = out.map(|dir| crate::output::Folder::open(dir, request.format)).transpose()?;
    if let Some(folder) = &folder {
        let read: Vec<&Path> = request.data.iter().chain(&request.gradient).map(PathBuf::as_path).collect();
        folder.spare(
            &read,
            &["inversion.json", "report.html", "reconstruction.safetensors"],
            &["records"],
        )?;
    }
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let drawn = request.seed.is_none();
    let request = InversionRequest { seed: Some(seed), ..request.clone() };
    let mut outcome = attack(&request, subject, update, hooks)?;
    if drawn {
        on_seed(seed);
    }
    if let Some(folder) = &folder {
        outcome.written = showing::write(&mut outcome, folder)?;
    }
    Ok(outcome)
}

/// Writes into a folder what `leakscope net attack --method inversion` leaves there.
///
/// # Errors
/// A folder that cannot be written to.
pub fn write(outcome: &InversionOutcome, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
    showing::write(&mut outcome.clone(), &crate::output::Folder::open(out, format)?)
}

/// Attacks a network over arrays, or a gradient that was given; files that the request names are not read.
///
/// # Errors
/// What is wrong with the request, the gradient or the records.
pub fn attack<T: Real>(
    request: &InversionRequest,
    subject: Subject<T>,
    update: Option<Update<T>>,
    hooks: &Hooks,
) -> Result<InversionOutcome> {
    request.check()?;
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    match (update, &subject.records) {
        (Some(update), _) => of_given(request, &subject.model, update, seed, hooks),
        (None, Some(records)) => of_records(request, &subject.model, records, seed, hooks),
        (None, None) => {
            Err(Failure::option("data", "give the records whose gradients are attacked, or ⟨gradient⟩"))
        }
    }
}

/// The noise that gradients of the run have, or the one asked for.
fn own_noise<T>(request: &InversionRequest, model: &Model<T>) -> Result<Option<f64>> {
    let trained = model.training.as_ref().and_then(|t| t.privacy.as_ref()).map(|p| p.sigma);
    Ok(request.release.sigma()?.or(trained.filter(|_| request.local_steps.is_none())))
}

/// The noises to try, least first: those asked for, or none and that of the run.
fn noises<T>(request: &InversionRequest, model: &Model<T>) -> Result<Vec<f64>> {
    let own = own_noise(request, model)?;
    let mut all = match request.sigmas.is_empty() {
        true => std::iter::once(0.0).chain(own).collect(),
        false => request.sigmas.iter().copied().chain(request.release.sigma()?).collect::<Vec<f64>>(),
    };
    all.sort_by(f64::total_cmp);
    all.dedup();
    Ok(all)
}

fn of_records<T: Real>(
    request: &InversionRequest,
    model: &Model<T>,
    records: &Records<T>,
    seed: u64,
    hooks: &Hooks,
) -> Result<InversionOutcome> {
    let net = &model.net;
    let clip = request.release.clip()?.unwrap_or_else(|| clip_of(model.training.as_ref()));
    let range = range(request.range, Some(records.range))?;
    let sigmas = noises(request, model)?;
    let mut ids = records.chosen(request.records, seed)?;
    ids.truncate(ids.len() / request.batch * request.batch);
    if ids.is_empty() {
        return Err(Failure::number("batch", request.batch, "there are not so many records"));
    }
    let batches: Vec<&[usize]> = ids.chunks(request.batch).collect();
    let how = request.how(range, clip, seed);
    let started = Instant::now();
    let steps = (sigmas.len() * batches.len() * request.restarts * request.iterations) as u64;
    let mut attacks = Attacks::new(net, records, &ids, clip, range, seed)?;
    attacks.lpips = request.lpips.as_deref().map(|file| lpips(file, net.input())).transpose()?;
    let mut levels = Vec::new();
    for (k, &sigma) in sigmas.iter().enumerate() {
        let mechanism = Mechanism { clip, sigma };
        let objective = objective(request.objective, mechanism);
        let how = Inversion { objective, ..how.clone() };
        let done = steps / sigmas.len() as u64 * k as u64;
        let watch = |d: u64| {
            hooks.report(Stage::Records, (done + d).min(steps), steps);
            !hooks.interrupted()
        };
        let hidden = |s: Sight<T>| match request.labels {
            Labels::Known => s,
            Labels::Recover | Labels::Try => Sight { labels: None, ..s },
        };
        let (reconstructions, first) = match request.local_steps {
            None => {
                let sights = gradients(net, &records.data, &batches, mechanism, seed)?;
                let sights: Vec<Sight<T>> = sights.into_iter().map(hidden).collect();
                reconstructions(net, &sights, &how, &watch)?
            }
            Some(steps) => {
                let mut reconstructions = Vec::new();
                for batch in &batches {
                    let (half, sight) = local_steps(net, &records.data, batch, steps, request.local_lr)?;
                    reconstructions.extend(invert(&half, &[hidden(sight)], &how, &watch)?);
                }
                (reconstructions, vec![None; batches.len()])
            }
        };
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        let matched = matched(&attacks, &reconstructions, request.batch);
        levels.push(level(&mut attacks, mechanism, &matched, &first, request.labels != Labels::Known)?);
    }
    let settings =
        document::Settings { sigma: own_noise(request, model)?, ..settings(request, clip, range, &how) };
    let seconds = started.elapsed().as_secs_f64();
    showing::of_records(request, model, records, attacks, levels, settings, (seed, seconds))
}

/// Reconstructions by search, and by the first layer alone where it tells.
type Reconstructions = (Vec<Reconstruction>, Vec<Option<Vec<f64>>>);

/// Reconstructions by search and by the first layer alone. Of a gradient that is zero nothing can be found, and the middle of the range
/// is guessed; where all are, there is nothing to attack.
fn reconstructions<T: Real>(
    net: &Network<T>,
    sights: &[Sight<T>],
    how: &Inversion,
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Reconstructions> {
    let blank: Vec<bool> = sights.iter().map(|s| s.is_zero(net)).collect();
    if blank.iter().all(|b| *b) {
        return Err(Failure::option(
            "data",
            "every gradient is zero: the network fits these records so well that no step of them moves it, and nothing can be found; \
             attack other records, or a network that is trained less",
        ));
    }
    let seen: Vec<Sight<T>> =
        sights.iter().zip(&blank).filter(|(_, b)| !**b).map(|(s, _)| s.clone()).collect();
    let mut inverted = invert(net, &seen, how, watch)?.into_iter();
    let middle = vec![0.5 * (how.range.low + how.range.high); net.input().len()];
    let of_nothing = |s: &Sight<T>| Reconstruction {
        records: middle.repeat(s.records),
        labels: s.labels.as_ref().map_or_else(
            || vec![0.0; s.records * net.outputs()],
            |labels| labels.iter().map(|v| v.to_f64()).collect(),
        ),
        cost: 0.0,
        cosine: 0.0,
        restart: 0,
    };
    let reconstructions = sights.iter().zip(&blank).filter_map(|(s, b)| match b {
        true => Some(of_nothing(s)),
        false => inverted.next(),
    });
    let reconstructions = reconstructions.collect();
    let first = |(s, b): (&Sight<T>, &bool)| if *b { Ok(None) } else { first_layer(net, s) };
    let mut first: Vec<Option<Vec<f64>>> =
        sights.iter().zip(&blank).map(first).collect::<std::result::Result<_, _>>()?;
    // One record without says nothing of the others.
    if first.iter().any(Option::is_some) {
        first.iter_mut().for_each(|f| *f = f.take().or_else(|| Some(middle.clone())));
    }
    Ok((reconstructions, first))
}

fn objective(choice: Objective, mechanism: Mechanism) -> search::Objective {
    match choice {
        Objective::Likelihood if mechanism.sigma > 0.0 => {
            search::Objective::Likelihood { noise: mechanism.noise() }
        }
        Objective::Likelihood | Objective::Cosine => search::Objective::Cosine,
    }
}

fn settings(request: &InversionRequest, clip: Clip, range: Range, how: &Inversion) -> document::Settings {
    let (clip_kind, clip) = clip_facts(clip);
    document::Settings {
        objective: request.objective,
        labels: request.labels,
        batch: request.batch as u64,
        local_steps: request.local_steps,
        iterations: request.iterations as u64,
        restarts: request.restarts as u64,
        learning_rate: request.lr,
        total_variation: how.total_variation,
        range: [range.low, range.high],
        clip_kind,
        clip,
        sigma: None,
    }
}

/// A gradient file: an array for each tensor of the network.
fn read_gradient<T: Real>(net: &Network<T>, file: &Path) -> Result<Vec<T>> {
    let bad = |reason: String| Failure::option("gradient", format!("{}: {reason}", file.display()));
    let bytes = std::fs::read(file).map_err(|e| bad(format!("cannot read it: {e}")))?;
    let tensors = Tensors::from_bytes(&bytes).map_err(|e| bad(e.to_string()))?;
    let mut out = vec![T::ZERO; net.parameter_count()];
    for tensor in net.tensors() {
        if !tensors.has(&tensor.name) {
            return Err(bad(format!(
                "there is no array {}: it is the gradient of another network, or its arrays have other names",
                tensor.name
            )));
        }
        let (shape, values) = tensors.get::<T>(&tensor.name).map_err(|e| bad(e.to_string()))?;
        if shape != tensor.shape {
            return Err(bad(format!(
                "{} has shape {shape:?}, the network’s has {:?}: it is the gradient of another network",
                tensor.name, tensor.shape
            )));
        }
        out[tensor.offset..tensor.offset + values.len()].copy_from_slice(&values);
    }
    Ok(out)
}

fn of_given<T: Real>(
    request: &InversionRequest,
    model: &Model<T>,
    update: Update<T>,
    seed: u64,
    hooks: &Hooks,
) -> Result<InversionOutcome> {
    let flag = if matches!(update, Update::Gradient(_)) { "gradient" } else { "after" };
    let named = |e: leakscope_net::Error| Failure::option(flag, e);
    let clip = request.release.clip()?.unwrap_or_else(|| clip_of(model.training.as_ref()));
    let scale = model.training.as_ref().map(|t| t.data.normalize);
    let scale = request.normalize.or(scale).unwrap_or([0.0, 1.0]);
    let unit = [0.0, 1.0].map(|v| (v - scale[0]) / scale[1]);
    let range = range(request.range, Some(unit))?;
    let sigma = request.release.sigma()?.unwrap_or(0.0);
    let mechanism = Mechanism { clip, sigma };
    let how =
        Inversion { objective: objective(request.objective, mechanism), ..request.how(range, clip, seed) };
    let half;
    let (net, gradient) = match update {
        Update::Gradient(gradient) => (&model.net, gradient),
        Update::After(after) => {
            let (middle, moved) = half_way(&model.net, &after).map_err(named)?;
            half = middle;
            (&half, moved)
        }
    };
    let sight = Sight { gradient, records: request.batch, labels: None };
    sight.check(net).map_err(named)?;
    if net.loss() == Loss::SquaredError {
        return Err(Failure::option(
            flag,
            "the network predicts values, which its gradient does not tell: attack records whose labels are known, as ⟨data⟩",
        ));
    }
    let started = Instant::now();
    let steps = (request.restarts * request.iterations) as u64;
    let watch = |done: u64| {
        hooks.report(Stage::Records, done.min(steps), steps);
        !hooks.interrupted()
    };
    let mut reconstruction = invert(net, std::slice::from_ref(&sight), &how, &watch)?.remove(0);
    if hooks.interrupted() {
        return Err(Failure::Interrupted);
    }
    // a first dense layer gives the record at once; which of the two is nearer, its gradient tells
    let mut first = false;
    if let Some(guess) = first_layer(net, &sight)? {
        let labels = recovered_labels(net, &sight)?;
        let cosine = super::levels::cosine(net, &sight, &guess, &labels)?;
        if cosine > reconstruction.cosine {
            first = true;
            (reconstruction.records, reconstruction.cosine) = (guess, cosine);
        }
    }
    let settings = settings(request, clip, range, &how);
    let seconds = started.elapsed().as_secs_f64();
    showing::of_given(request, model, reconstruction, first, settings, (seed, seconds))
}
