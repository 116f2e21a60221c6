//! The informed adversary: all records but one are known, what do the parameters say of the last?

use super::super::data::{Part, Reading, Source};
use super::super::memory::NetArrays;
use super::super::{ReleaseRequest, clip_facts};
use super::inversion::lpips;
use super::models::Models;
use super::statistics::mean;
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::claim::Observed;
use leakscope_core::error::numeral;
use leakscope_net::{
    Clip, Loss, Network, Shape,
    attack::informed::{Examples, Learning, Rest, by_label, by_network, by_ridge, projected},
    preset::Preset,
    quality::{Lpips, Quality, Range, mse, quality},
    random::{Generator, Purpose},
    train::{Privacy, Sampling, TrainConfig, account},
};
use leakscope_report::PageKind;
use leakscope_report::informed::{Adversary, Informed, InformedAttack, ModelTraining, SCHEMA};
use leakscope_report::net::{DataFacts, InformedPictures, Picture, informed_page, to_json};
use leakscope_table::{Hooks, RecordsFormat, Stage};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Targets shown on the page.
const SHOWN: usize = 10;
/// Principal components of the parameters that an adversary against networks reads, at most.
const COMPONENTS: usize = 512;

/// The attack as a user asks for it. The defaults are those of the thesis (Edmunds 2024, §3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InformedRequest {
    /// The records: those known, those learned from and those attacked are drawn from them in file order.
    pub data: Vec<PathBuf>,
    /// Use only the first records of them.
    pub limit: Option<usize>,
    /// The models that are trained: a preset or a network file, a chain of dense layers.
    pub network: String,
    /// Use only records of these classes; none: all.
    pub classes: Vec<u32>,
    /// Records that the adversary knows.
    pub known: usize,
    /// Targets to learn from, one model each.
    pub learn: usize,
    /// Targets to attack, one model each.
    pub targets: usize,
    /// Steps of every model, full batches.
    pub steps: u64,
    /// Learning rate of every model.
    pub lr: f64,
    /// Weight decay of every model.
    pub weight_decay: f64,
    /// Whether models are trained by plain gradient descent, not Adam.
    pub sgd: bool,
    /// Clip and noise; absent: none.
    pub release: ReleaseRequest,
    /// Share of the parameters that are trained, the largest at the start.
    pub density: f64,
    /// δ of the statement.
    pub delta: f64,
    /// Passes of the adversary's network over its models; 0: no network.
    pub epochs: u64,
    /// Its learning rate.
    pub attack_lr: f64,
    /// Its weight decay.
    pub attack_decay: f64,
    /// Mean and standard deviation that values are scaled by.
    pub normalize: Option<[f64; 2]>,
    /// The weights of LPIPS (safetensors); absent: it is not measured.
    pub lpips: Option<PathBuf>,
    /// Whether records are shown on the page.
    pub pictures: bool,
    /// Seed of start and noise; drawn where there is none.
    pub seed: Option<u64>,
    /// Whether the page names and shows no record.
    pub redact: bool,
}

impl Default for InformedRequest {
    fn default() -> Self {
        Self {
            data: vec![],
            limit: None,
            // that of the thesis
            network: Preset::Linear.name().into(),
            classes: vec![],
            known: 1000,
            learn: 9500,
            targets: 500,
            steps: 5,
            lr: 0.1,
            weight_decay: 0.0,
            sgd: false,
            release: ReleaseRequest::default(),
            density: 1.0,
            delta: 1e-9,
            epochs: 100,
            attack_lr: 1e-3,
            attack_decay: 0.01,
            normalize: None,
            lpips: None,
            pictures: true,
            seed: None,
            redact: false,
        }
    }
}

impl InformedRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        for (name, n) in [
            ("known", self.known),
            ("learn", self.learn),
            ("targets", self.targets),
            ("steps", self.steps as usize),
        ] {
            if n == 0 {
                return Err(Failure::number(name, 0, "expected at least 1"));
            }
        }
        for (name, v) in [("lr", self.lr), ("attack_lr", self.attack_lr)] {
            if !(v > 0.0 && v.is_finite()) {
                return Err(Failure::number(name, numeral(v), "expected a positive number"));
            }
        }
        for (name, v) in [("weight_decay", self.weight_decay), ("attack_decay", self.attack_decay)] {
            if !(v >= 0.0 && v.is_finite()) {
                return Err(Failure::number(name, numeral(v), "expected 0 or more"));
            }
        }
        if !(self.density > 0.0 && self.density <= 1.0) {
            return Err(Failure::number("density", self.density, "expected above 0, at most 1"));
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Failure::number("delta", self.delta, "expected above 0, below 1"));
        }
        if self.release.sigma()?.is_some() && matches!(self.release.clip()?, None | Some(Clip::None)) {
            return Err(Failure::option(
                "sigma",
                "noise hides nothing where nothing is clipped: give ⟨clip⟩ too",
            ));
        }
        Ok(())
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct InformedOutcome {
    /// The document.
    pub document: Informed,
    /// What goes onto its page alone.
    pub pictures: InformedPictures,
    /// Reconstructions `(attacks, targets, d)`.
    pub reconstructions: Vec<f64>,
    /// The targets `(targets, d)`.
    pub targets: Vec<f64>,
    /// What was written.
    pub written: Vec<PathBuf>,
}

/// Records as the attack takes them.
struct Pool {
    shape: Shape,
    files: Vec<String>,
    scale: [f64; 2],
    range: [f64; 2],
    /// k.
    outputs: usize,
    x: Vec<f64>,
    y: Vec<f64>,
}

/// Attacks as the request says; `out` receives the document and the page.
pub fn run(
    request: &InformedRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<InformedOutcome> {
    request.check()?;
    if request.data.is_empty() {
        return Err(Failure::option("data", "give the records: some are known, some are targets"));
    }
    let scale = request.normalize.unwrap_or([0.0, 1.0]);
    let reading = Reading { flag: "data", part: Part::Train, normalize: scale, limit: request.limit };
    let source = Source::<f64>::read(&request.data, reading)?;
    let pool = pool(request, source, scale)?;
    let folder = out.map(|dir| Folder::open(dir, RecordsFormat::Parquet)).transpose()?;
    if let Some(folder) = &folder {
        let read: Vec<&Path> = request.data.iter().map(PathBuf::as_path).collect();
        folder.spare(&read, &["informed.json", "report.html"], &[])?;
    }
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let mut outcome = attacked(request, &pool, seed, hooks)?;
    if request.seed.is_none() {
        on_seed(seed);
    }
    if let Some(folder) = &folder {
        outcome.written = write_into(&outcome, folder)?;
    }
    Ok(outcome)
}

fn write_into(outcome: &InformedOutcome, folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut pending = Pending::default();
    folder.text(&mut pending, "informed.json", &to_json(&outcome.document))?;
    folder.page(&mut pending, PageKind::Informed, &informed_page(&outcome.document, &outcome.pictures))?;
    folder.publish(pending)
}

/// Writes into a folder what `leakscope net attack --method informed` leaves there.
///
/// # Errors
/// A folder that cannot be written to.
pub fn write(outcome: &InformedOutcome, out: &Path) -> Result<Vec<PathBuf>> {
    write_into(outcome, &Folder::open(out, RecordsFormat::Parquet)?)
}

/// The same over arrays.
///
/// # Errors
/// What is wrong with the request or the records.
pub fn attack(request: &InformedRequest, arrays: NetArrays<f64>, hooks: &Hooks) -> Result<InformedOutcome> {
    request.check()?;
    let pool = pool(request, arrays.source("x, y")?, [0.0, 1.0])?;
    attacked(request, &pool, request.seed.unwrap_or_else(crate::seed::draw), hooks)
}

/// Records of the wanted classes; two classes have one output.
fn pool(request: &InformedRequest, mut source: Source<f64>, scale: [f64; 2]) -> Result<Pool> {
    let (shape, range, files) = (source.shape, source.range, source.files.clone());
    let most = source.outputs(Some(Loss::SoftmaxCrossEntropy))?;
    let net = Network::<f64>::new(Preset::Linear.spec(shape, most.max(2)), 0)?;
    let data = source.take_data(&net)?;
    let class = |i: usize| {
        let label = data.label(i);
        (0..label.len()).fold(0, |b, j| if label[j] > label[b] { j } else { b }) as u32
    };
    let mut classes: Vec<u32> = request.classes.clone();
    if classes.is_empty() {
        classes = (0..most as u32).collect();
    }
    classes.sort_unstable();
    classes.dedup();
    if classes.len() < 2 {
        return Err(Failure::option("classes", "expected two classes or more"));
    }
    let outputs = if classes.len() == 2 { 1 } else { classes.len() };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..data.len() {
        let Some(at) = classes.iter().position(|c| *c == class(i)) else { continue };
        x.extend_from_slice(data.record(i));
        match outputs {
            1 => y.push(at as f64),
            k => y.extend((0..k).map(|o| f64::from(u8::from(o == at)))),
        }
    }
    Ok(Pool { shape, files, scale, range, outputs, x, y })
}

impl Pool {
    fn len(&self) -> usize {
        self.y.len() / self.outputs
    }

    fn part(&self, from: usize, count: usize) -> Rest {
        let (d, k) = (self.shape.len(), self.outputs);
        Rest { x: self.x[from * d..][..count * d].to_vec(), y: self.y[from * k..][..count * k].to_vec() }
    }
}

fn attacked(request: &InformedRequest, pool: &Pool, seed: u64, hooks: &Hooks) -> Result<InformedOutcome> {
    let started = Instant::now();
    let (known, learn, targets) = (request.known, request.learn, request.targets);
    let (n, d) = (pool.len(), pool.shape.len());
    check_counts((known, learn, targets), n, d)?;
    let lpips = request.lpips.as_deref().map(|file| lpips(file, pool.shape)).transpose()?;
    let model = Models::new(request, (pool.shape, pool.outputs), seed)?;
    let all = pool.part(known, learn + targets);
    let total = (learn + targets) as u64;
    let watch = |done: u64| {
        hooks.report(Stage::Pass, done.min(total), total);
        !hooks.interrupted()
    };
    let features = match model.train(&pool.part(0, known), &all, seed, &watch) {
        Err(_) if hooks.interrupted() => return Err(Failure::Interrupted),
        other => other?,
    };
    let training_seconds = started.elapsed().as_secs_f64();
    let (mut train, mut test) =
        (examples(&features, &all, &model, 0, learn), examples(&features, &all, &model, learn, targets));
    let mut components = None;
    if !model.is_linear() {
        let (a, b, kept) = projected(&train, &test, COMPONENTS)?;
        (train, test, components) = (a, b, Some(kept as u64));
    }
    let guesses = guesses(request, &train, &test, seed, hooks)?;
    if hooks.interrupted() {
        return Err(Failure::Interrupted);
    }
    let range = Range { low: pool.range[0], high: pool.range[1] };
    let attacks: Vec<InformedAttack> = guesses
        .iter()
        .map(|(who, f)| judged(*who, (f, &guesses[0].1), &test, pool, (range, seed, lpips.as_ref())))
        .collect::<Result<_>>()?;
    let document = Informed {
        schema: SCHEMA.into(),
        network: model.facts(pool.shape),
        data: DataFacts {
            files: pool.files.clone(),
            records: n as u64,
            test_records: None,
            normalize: pool.scale,
            target: None,
        },
        known: known as u64,
        learned: learn as u64,
        attacked: targets as u64,
        components,
        training: training(request, &model),
        epsilon: epsilon(request, &model, known + 1)?,
        delta: request.delta,
        attacks,
        spread: spread(&test.records, d),
        shown: (0..SHOWN.min(targets) as u64).collect(),
        seed,
        training_seconds,
        seconds: started.elapsed().as_secs_f64(),
        warnings: vec![],
        redact: request.redact,
    };
    let document = crate::output::complete(document)?;
    let pictures = if request.pictures {
        pictures(&document, &guesses, &test.records, pool)
    } else {
        InformedPictures::new()
    };
    let reconstructions = guesses.into_iter().flat_map(|(_, f)| f).collect();
    Ok(InformedOutcome { document, pictures, reconstructions, targets: test.records, written: vec![] })
}

/// Whether there are records enough, and targets enough to learn the map from.
fn check_counts((known, learn, targets): (usize, usize, usize), n: usize, d: usize) -> Result<()> {
    if known + learn + targets > n {
        let message = format!(
            "{known} known, {learn} to learn from and {targets} to attack are {} records, and there are {n} of these classes",
            known + learn + targets
        );
        return Err(Failure::option("learn", message));
    }
    if learn < d {
        let expected = format!(
            "expected at least {d}, as many targets as a record has values, which are the outputs of the map"
        );
        return Err(Failure::number("learn", learn, expected));
    }
    Ok(())
}

/// What each adversary takes the targets to be; the labels' own means first.
fn guesses(
    request: &InformedRequest,
    train: &Examples,
    test: &Examples,
    seed: u64,
    hooks: &Hooks,
) -> Result<Vec<(Adversary, Vec<f64>)>> {
    let mut guesses =
        vec![(Adversary::Labels, by_label(train, test)?), (Adversary::Ridge, by_ridge(train, test)?)];
    if request.epochs > 0 {
        let how = Learning {
            epochs: request.epochs,
            learning_rate: request.attack_lr,
            weight_decay: request.attack_decay,
            seed,
        };
        let watch = |done: u64, steps: u64| {
            hooks.report(Stage::Steps, done, steps);
            !hooks.interrupted()
        };
        guesses.push((Adversary::Network, by_network(train, test, &how, &watch)?));
    }
    Ok(guesses)
}

/// What was released of some models: the parameters that were trained.
fn examples(features: &[f64], all: &Rest, model: &Models, from: usize, count: usize) -> Examples {
    let trained = model.trained();
    let (p, n) = (trained.len(), (features.len() / trained.len().max(1)).max(1));
    let (d, k) = (all.x.len() / n, all.y.len() / n);
    let released =
        |row: &[f64]| -> Vec<f64> { row.iter().zip(trained).filter(|(_, t)| **t).map(|(v, _)| *v).collect() };
    Examples {
        features: features[from * p..][..count * p].chunks_exact(p).flat_map(released).collect(),
        labels: all.y[from * k..][..count * k].to_vec(),
        records: all.x[from * d..][..count * d].to_vec(),
        count,
    }
}

fn spread(records: &[f64], d: usize) -> f64 {
    let n = (records.len() / d) as f64;
    let mean: Vec<f64> = (0..d).map(|j| records.chunks_exact(d).map(|r| r[j]).sum::<f64>() / n).collect();
    records.iter().zip(mean.iter().cycle()).map(|(v, m)| (v - m).powi(2)).sum::<f64>() / records.len() as f64
}

fn judged(
    adversary: Adversary,
    (guesses, by_label): (&[f64], &[f64]),
    test: &Examples,
    pool: &Pool,
    (range, seed, lpips): (Range, u64, Option<&Lpips>),
) -> Result<InformedAttack> {
    let (d, k) = (pool.shape.len(), pool.outputs);
    let pairs = || test.records.chunks_exact(d).zip(guesses.chunks_exact(d));
    let each: Vec<Quality> =
        pairs().map(|(r, f)| quality(pool.shape, r, f, range)).collect::<std::result::Result<_, _>>()?;
    let all = |of: fn(&Quality) -> Option<f64>| -> Vec<f64> { each.iter().filter_map(of).collect() };
    let mut rng = Generator::new(seed, Purpose::Attack, 0);
    let (mut hits, mut trials) = (0, 0);
    for (i, (record, guess)) in pairs().enumerate() {
        let label = &test.labels[i * k..][..k];
        let alike: Vec<usize> =
            (0..test.count).filter(|&j| j != i && test.labels[j * k..][..k] == *label).collect();
        if alike.is_empty() {
            continue;
        }
        let other = alike[rng.below(alike.len() as u64) as usize];
        trials += 1;
        hits += u64::from(mse(record, guess)? < mse(&test.records[other * d..][..d], guess)?);
    }
    let errors = all(|q| Some(q.mse));
    let of_label = test.records.chunks_exact(d).zip(by_label.chunks_exact(d));
    let of_label: Vec<f64> = of_label.map(|(r, f)| mse(r, f)).collect::<std::result::Result<_, _>>()?;
    let gains: Vec<f64> = of_label.iter().zip(&errors).map(|(label, own)| label - own).collect();
    let seen = |lpips: &Lpips| -> std::result::Result<Vec<f64>, leakscope_net::Error> {
        pairs().map(|(r, f)| lpips.distance(pool.shape, r, f, range)).collect()
    };
    let seen = lpips.map(seen).transpose()?;
    let none = Observed { value: 0.0, ci_low: 0.0, ci_high: 0.0, trials: 0, seed };
    Ok(InformedAttack {
        adversary,
        mse: mean(&errors, seed).unwrap_or_else(|| none.clone()),
        gain: mean(&gains, seed).unwrap_or(none),
        ssim: mean(&all(|q| q.ssim), seed),
        haar_psi: mean(&all(|q| q.haar_psi), seed),
        lpips: seen.and_then(|each| mean(&each, seed)),
        identified: Observed::of_hits(hits, trials, seed),
    })
}

fn training(request: &InformedRequest, model: &Models) -> ModelTraining {
    let how = model.training();
    let (clip_kind, clip) = clip_facts(how.clip);
    ModelTraining {
        optimizer: if request.sgd { "gradient descent".into() } else { "Adam".into() },
        learning_rate: how.learning_rate,
        weight_decay: how.weight_decay,
        steps: how.steps,
        clip_kind,
        clip,
        sigma: how.sigma,
        density: request.density,
    }
}

/// ε of such a training, for the last record: it is there, or an empty one.
fn epsilon(request: &InformedRequest, model: &Models, records: usize) -> Result<Option<f64>> {
    let how = model.training();
    if how.sigma <= 0.0 {
        return Ok(None);
    }
    let config = TrainConfig {
        weight_decay: how.weight_decay,
        privacy: Some(Privacy { clip: how.clip, sigma: how.sigma }),
        delta: request.delta,
        ..TrainConfig::open(how.optimizer, how.learning_rate, Sampling::Poisson { rate: 1.0 })
    };
    Ok(account(&config, how.steps, records)?.map(|a| a.epsilon()))
}

fn pictures(
    document: &Informed,
    guesses: &[(Adversary, Vec<f64>)],
    records: &[f64],
    pool: &Pool,
) -> InformedPictures {
    let Shape::Image(shape) = pool.shape else { return InformedPictures::new() };
    let d = pool.shape.len();
    let of = |target: &u64| {
        let row = |values: &[f64]| Picture::image(shape, &values[*target as usize * d..][..d], pool.range);
        let all: Option<Vec<Picture>> =
            std::iter::once(row(records)).chain(guesses.iter().map(|(_, f)| row(f))).collect();
        all.map(|all| (*target, all))
    };
    document.shown.iter().filter_map(of).collect()
}
