//! Membership: who was among the records that a model was trained on, and does a run keep what it promises?

use super::super::account::summary;
use super::super::data::{Part, Reading, Source, test_beside};
use super::super::model::{Model, trained_precision};
use super::super::{Device, Precision, memory::NetArrays};
use super::own::OwnEpsilons;
use super::subject::{Reads, Records, Subject};
use crate::output::{Folder, Pending, Results, results, write_tables};
use crate::{Failure, Result};
use leakscope_core::claim::Observed;
use leakscope_net::{
    Clip, Data, Real,
    attack::membership::{Recipe, Roc, Signals, canary_run, lira, shadows, signals},
    random::{Generator, Purpose},
    train::{Optimizer, Privacy, Sampling, TrainConfig, account},
};
use leakscope_report::PageKind;
use leakscope_report::membership::{
    CanaryAudit, Membership, MembershipAttack, MembershipAttacker, OwnAccounts, Rate, SCHEMA, Stated,
    allowed_to_all, figures,
};
use leakscope_report::net::{self as page, Training, membership_page, to_json};
use leakscope_table::{Hooks, RecordsFormat, RecordsSchema, Stage};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// False-positive rates that are looked at.
const RATES: [f64; 3] = [0.001, 0.01, 0.1];
/// δ of canaries where the run states none.
const DELTA: f64 = 1e-5;

/// Membership attacks as a user asks for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MembershipRequest {
    /// A folder that a run left.
    pub model: PathBuf,
    /// The training records.
    pub data: Vec<PathBuf>,
    /// Records that were not trained on; absent: the test records beside the data.
    pub test: Vec<PathBuf>,
    /// Use only the first records of the data: as in training.
    pub limit: Option<usize>,
    /// How many of each to attack, drawn by the seed; absent: as many as there are of the fewer.
    pub records: Option<usize>,
    /// Shadow models of the likelihood ratio, an even number; 0: loss and gradient alone.
    pub shadows: usize,
    /// Train once more with so many canaries, each in or out by a fair coin; 0: not.
    pub canaries: usize,
    /// Confidence of the bound on ε.
    pub confidence: f64,
    /// Mean and standard deviation that values are scaled by; absent: as in training.
    pub normalize: Option<[f64; 2]>,
    /// Seed of shadow models and canaries; drawn where there is none.
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

impl Default for MembershipRequest {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            data: vec![],
            test: vec![],
            limit: None,
            records: None,
            shadows: 16,
            canaries: 0,
            confidence: 0.95,
            normalize: None,
            seed: None,
            format: RecordsFormat::default(),
            precision: None,
            device: Device::default(),
            redact: false,
        }
    }
}

impl MembershipRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        if self.shadows % 2 == 1 {
            let expected = "expected an even number, half of them with a record and half without";
            return Err(Failure::number("shadows", self.shadows, expected));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(Failure::number("confidence", self.confidence, "expected above 0, below 1"));
        }
        if self.records == Some(0) {
            return Err(Failure::number("records", 0, "expected at least 1"));
        }
        Ok(())
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct MembershipOutcome {
    /// The document.
    pub document: Membership,
    /// `records`.
    pub tables: Vec<Arc<Results>>,
    /// What was written.
    pub written: Vec<PathBuf>,
}

/// Attacks as the request says; `out` receives the document, the page and the table.
pub fn run(
    request: &MembershipRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<MembershipOutcome> {
    request.check()?;
    match request.precision.unwrap_or_else(|| trained_precision(&request.model)) {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, hooks, on_seed),
        Precision::F64 => run_in::<f64>(request, out, hooks, on_seed),
    }
}

fn run_in<T: Real>(
    request: &MembershipRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<MembershipOutcome> {
    if request.data.is_empty() {
        return Err(Failure::option("data", "give the records that the model was trained on"));
    }
    let reads = Reads { data: &request.data, limit: request.limit, normalize: request.normalize };
    let backend = request.device.backend_in(request.precision)?;
    let subject = Subject::<T>::open(&request.model, backend, &reads, hooks)?;
    let Some(members) = subject.records else {
        return Err(Failure::option("data", "give the records that the model was trained on"));
    };
    let files = match request.test.is_empty() {
        true => test_beside(&request.data),
        false => Some(request.test.clone()),
    };
    // Records cannot be told from themselves.
    if !request.test.is_empty() && request.test == request.data {
        let message =
            "these are the records of ⟨data⟩: give records of the same kind that were not trained on";
        return Err(Failure::option("test", message));
    }
    let files = files.ok_or_else(|| {
        Failure::option(
            "test",
            "give records of the same kind that were not trained on: without them nothing can be compared",
        )
    })?;
    let reading = Reading { flag: "test", part: Part::Test, normalize: members.scale, limit: None };
    let others = Source::<T>::read(&files, reading)?.take_data(&subject.model.net)?;
    let folder = out.map(|dir| Folder::open(dir, request.format)).transpose()?;
    if let Some(folder) = &folder {
        let read: Vec<&Path> = request.data.iter().chain(&request.test).map(PathBuf::as_path).collect();
        folder.spare(&read, &["membership.json", "report.html"], &["records"])?;
    }
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let own = OwnEpsilons::beside(&request.model, &subject.model, &members)?;
    let mut outcome = attacked(request, (&subject.model, own), &members, &others, seed, hooks)?;
    if request.seed.is_none() {
        on_seed(seed);
    }
    if let Some(folder) = &folder {
        outcome.written = write_into(&mut outcome, folder)?;
    }
    Ok(outcome)
}

fn write_into(outcome: &mut MembershipOutcome, folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut pending = Pending::default();
    write_tables(folder, &mut pending, &outcome.tables)?;
    outcome.document.tables = pending.table_names();
    folder.text(&mut pending, "membership.json", &to_json(&outcome.document))?;
    folder.page(&mut pending, PageKind::Membership, &membership_page(&outcome.document))?;
    folder.publish(pending)
}

/// Writes into a folder what `leakscope net attack --method membership` leaves there.
///
/// # Errors
/// A folder that cannot be written to.
pub fn write(outcome: &MembershipOutcome, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
    write_into(&mut outcome.clone(), &Folder::open(out, format)?)
}

/// Attacks a network over arrays: the records it was trained on, and others.
///
/// # Errors
/// What is wrong with the request or the records.
pub fn attack<T: Real>(
    request: &MembershipRequest,
    subject: Subject<T>,
    others: NetArrays<T>,
    hooks: &Hooks,
) -> Result<MembershipOutcome> {
    request.check()?;
    let Some(members) = subject.records else {
        return Err(Failure::option("data", "give the records that the model was trained on"));
    };
    let others = others.source("test")?.take_data(&subject.model.net)?;
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    attacked(request, (&subject.model, OwnEpsilons::default()), &members, &others, seed, hooks)
}

fn attacked<T: Real>(
    request: &MembershipRequest,
    (model, own): (&Model<T>, OwnEpsilons),
    members: &Records<T>,
    others: &Data<T>,
    seed: u64,
    hooks: &Hooks,
) -> Result<MembershipOutcome> {
    let started = Instant::now();
    let fewer = members.data.len().min(others.len());
    let wanted = request.records.unwrap_or(fewer);
    let chosen = |n: usize, step: u64| {
        let mut ids = Generator::new(seed, Purpose::Sampling, step).permutation(n);
        ids.truncate(wanted);
        ids.sort_unstable();
        ids
    };
    let (inside, outside) = (chosen(members.data.len(), 1), chosen(others.len(), 2));
    let pool = joined(model.net.input(), members, &inside, others, &outside)?;
    let (k, n) = (inside.len(), pool.len());
    let signals_of_pool = signals(&model.net, &pool)?;
    let scores = scores(request, model, (&pool, &signals_of_pool), seed, hooks)?;
    let promise = model.training.as_ref().and_then(|t| t.privacy.as_ref()).and_then(|p| p.promise.as_ref());
    let promise = promise.map(|p| Stated { epsilon: p.epsilon, delta: p.delta });
    let each = own.of(&inside);
    // at the δ of the promise, without which there are no accounts
    let accounts = each.as_deref().zip(promise.map(|p| p.delta));
    let attacks: Vec<MembershipAttack> = scores
        .iter()
        .map(|(who, s)| judged(*who, (&s[..k], &s[k..]), (promise, accounts), seed))
        .collect::<Result<_>>()?;
    let canaries = match request.canaries {
        0 => None,
        m => {
            let recipe = recipe(model, "canaries", members.data.len() / 2)?;
            Some(audited(request, &recipe, members, m, seed, &watch(hooks, recipe.steps))?)
        }
    };
    if hooks.interrupted() {
        return Err(Failure::Interrupted);
    }
    let document = Membership {
        schema: SCHEMA.into(),
        tables: vec![],
        network: model.facts(),
        data: members.facts(),
        members: k as u64,
        others: (n - k) as u64,
        shadows: request.shadows as u64,
        promise,
        own: accounts.map(|(e, _)| OwnAccounts { accounted: own.accounted(&inside), epsilon: summary(e) }),
        noise: model.training.as_ref().is_some_and(|t| t.privacy.is_some()),
        training: model.training.clone().map(Box::new),
        figures: figures(&attacks, promise, accounts),
        attacks,
        canaries,
        seed,
        seconds: started.elapsed().as_secs_f64(),
        warnings: remarks(model.training.as_ref(), members, k, n - k, request.shadows)
            .into_iter()
            .chain(own.remark.clone())
            .collect(),
        redact: request.redact,
    };
    let document = crate::output::complete(document)?;
    let tables = table(&scores, (&signals_of_pool, each.as_deref()), members, (&inside, &outside))?;
    Ok(MembershipOutcome { document, tables, written: vec![] })
}

/// Reports steps, and stops where the user does.
fn watch(hooks: &Hooks, total: u64) -> impl Fn(u64) -> bool {
    move |done: u64| {
        hooks.report(Stage::Steps, done.min(total), total);
        !hooks.interrupted()
    }
}

/// What each attacker thinks of every record of the pool: the larger, the more likely a member.
fn scores<T: Real>(
    request: &MembershipRequest,
    model: &Model<T>,
    (pool, signals): (&Data<T>, &Signals),
    seed: u64,
    hooks: &Hooks,
) -> Result<Vec<(MembershipAttacker, Vec<f64>)>> {
    let mut scores: Vec<(MembershipAttacker, Vec<f64>)> = vec![
        (MembershipAttacker::Loss, signals.losses.iter().map(|l| -l).collect()),
        (MembershipAttacker::GradientNorm, signals.norms.iter().map(|g| -g).collect()),
    ];
    if request.shadows > 0 {
        let recipe = recipe(model, "shadows", pool.len() / 2)?;
        let watch = watch(hooks, request.shadows as u64);
        let all = shadows(&recipe, pool, request.shadows, seed, &watch)?;
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        scores.push((MembershipAttacker::Lira, lira(&signals.confidences, &all)?));
    }
    Ok(scores)
}

/// Members first, then others.
fn joined<T: Real>(
    shape: leakscope_net::Shape,
    members: &Records<T>,
    inside: &[usize],
    others: &Data<T>,
    outside: &[usize],
) -> Result<Data<T>> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (data, ids) in [(&members.data, inside), (others, outside)] {
        for &i in ids {
            x.extend_from_slice(data.record(i));
            y.extend_from_slice(&data.label(i));
        }
    }
    let outputs = y.len() / (inside.len() + outside.len()).max(1);
    Ok(Data::new(shape, x, outputs, y)?)
}

fn judged(
    attacker: MembershipAttacker,
    (members, others): (&[f64], &[f64]),
    (promise, accounts): (Option<Stated>, Option<(&[f64], f64)>),
    seed: u64,
) -> Result<MembershipAttack> {
    let roc = Roc::new(members, others)?;
    let [k, n] = roc.counts().map(|c| c as u64);
    let point = |rate: f64| {
        let at = roc.at(rate);
        Rate {
            rate,
            false_positive: Observed::of_rare_hits(at.false_positives as u64, n, seed),
            true_positive: Observed::of_rare_hits(at.true_positives as u64, k, seed),
            allowed: promise.map(|p| p.allows(rate)),
            own_allowed: accounts.and_then(|(epsilons, delta)| allowed_to_all(epsilons, delta, rate)),
        }
    };
    let curve = |i: i32| {
        let at = roc.at(10f64.powf(-3.0 + 0.1 * f64::from(i)));
        [at.false_positives as f64 / n as f64, at.true_positives as f64 / k as f64]
    };
    let mut curve: Vec<[f64; 2]> = (0..=30).map(curve).collect();
    curve.dedup();
    Ok(MembershipAttack { attacker, area: roc.area(), points: RATES.map(point).to_vec(), curve })
}

/// How the model was trained, for a set of other size.
fn recipe<T: Real>(model: &Model<T>, flag: &str, records: usize) -> Result<Recipe> {
    let Some(t) = &model.training else {
        let message = "the model’s folder has no training.json, which says how such models are trained";
        return Err(Failure::option(flag, message));
    };
    let optimizer = match &t.optimizer {
        page::Optimizer::Sgd { momentum } => Optimizer::Sgd { momentum: *momentum },
        page::Optimizer::Adam => Optimizer::adam(),
        page::Optimizer::Other(name) => {
            let message = format!("the run’s optimiser, {name}, is not known here");
            return Err(Failure::option(flag, message));
        }
    };
    let n = t.data.records.max(1) as f64;
    let sampling = match t.sampling {
        page::Sampling::Poisson => Sampling::Poisson { rate: (t.batch / n).min(1.0) },
        page::Sampling::Shuffle => Sampling::Shuffle { batch: (t.batch as usize).clamp(1, records.max(1)) },
    };
    let privacy = t.privacy.as_ref().map(|p| Privacy {
        clip: match p.clip_kind {
            page::ClipKind::Gelu => Clip::Gelu { bound: p.clip },
            page::ClipKind::Hard => Clip::Hard { bound: p.clip },
            page::ClipKind::None => Clip::None,
        },
        sigma: p.sigma,
    });
    let config = TrainConfig {
        weight_decay: t.weight_decay,
        privacy,
        delta: t.privacy.as_ref().and_then(|p| p.promise.as_ref()).map_or(DELTA, |p| p.delta),
        ..TrainConfig::open(optimizer, t.learning_rate, sampling)
    };
    Ok(Recipe { spec: model.net.spec().clone(), config, steps: t.steps })
}

/// One more run with canaries.
fn audited<T: Real>(
    request: &MembershipRequest,
    recipe: &Recipe,
    members: &Records<T>,
    canaries: usize,
    seed: u64,
    watch: &dyn Fn(u64) -> bool,
) -> Result<CanaryAudit> {
    let n = members.data.len();
    if canaries >= n {
        let expected = format!("expected fewer than the {n} records, some of which are always in");
        return Err(Failure::number("canaries", canaries, expected));
    }
    let mut ids = Generator::new(seed, Purpose::Sampling, 3).permutation(n);
    ids.truncate(canaries);
    let run = canary_run(recipe, &members.data, &ids, seed, watch)?;
    let delta = recipe.config.delta;
    let refuted = run.refuted(delta, request.confidence)?;
    let stated = TrainConfig { divisor: Some(1.0), ..recipe.config.clone() };
    let promised = account(&stated, recipe.steps, n)?.map(|a| a.epsilon());
    Ok(CanaryAudit {
        canaries: refuted.guesses.canaries,
        guessed: refuted.guesses.guessed,
        right: refuted.guesses.right,
        epsilon: refuted.epsilon,
        confidence: request.confidence,
        delta,
        steps: recipe.steps,
        promised,
    })
}

fn remarks<T: Real>(
    training: Option<&Training>,
    members: &Records<T>,
    k: usize,
    others: usize,
    shadows: usize,
) -> Vec<String> {
    let mut out = Vec::new();
    if others < 1000 {
        out.push(format!(
            "{others} records that were not trained on cannot show a false-positive rate of 0.1%: give 1,000 and more."
        ));
    }
    if let Some(t) = training.filter(|t| t.data.records != members.data.len() as u64) {
        out.push(format!(
            "The model was trained on {} records, these are {}: those it never saw count as its own here.",
            leakscope_report::format::count(t.data.records),
            leakscope_report::format::count(members.data.len() as u64)
        ));
    }
    if let Some(t) = training.filter(|t| shadows > 0 && t.data.records > 2 * k as u64) {
        out.push(format!(
            "Shadow models are trained on half of {} records, the model on {}: attack as many as it has, with as many others.",
            leakscope_report::format::count(2 * k as u64),
            leakscope_report::format::count(t.data.records)
        ));
    }
    out
}

fn table<T: Real>(
    scores: &[(MembershipAttacker, Vec<f64>)],
    (signals, own): (&Signals, Option<&[f64]>),
    members: &Records<T>,
    (inside, outside): (&[usize], &[usize]),
) -> Result<Vec<Arc<Results>>> {
    let lira = scores.iter().find(|(who, _)| *who == MembershipAttacker::Lira).map(|(_, s)| s);
    let mut numbers: Vec<String> = ["member", "loss", "gradient_norm"].map(str::to_owned).to_vec();
    numbers.extend(lira.map(|_| "log_likelihood_ratio".to_owned()));
    numbers.extend(own.map(|_| "own_epsilon".to_owned()));
    let schema = RecordsSchema { id: members.names.id_column(), texts: vec![], numbers };
    let mut writer = Folder::in_memory().table("records", schema)?;
    let mut part = writer.parts().part();
    let ids = inside.iter().map(|&i| (members.names.of(i), 1.0));
    let ids = ids.chain(outside.iter().map(|&i| (format!("test {i}"), 0.0)));
    for (i, (id, member)) in ids.enumerate() {
        let mut row = vec![member, signals.losses[i], signals.norms[i]];
        row.extend(lira.map(|s| s[i]));
        // others took no part, and have no account
        row.extend(own.map(|e| e.get(i).copied().unwrap_or(f64::NAN)));
        part.push(&id, &[], &row)?;
    }
    writer.append(part)?;
    let mut pending = Pending::default();
    pending.tables([writer]);
    Ok(results(pending))
}
