//! A run that has ended: its files and its page.

use super::data::{Names, label_column};
use super::extremes::{around, largest};
use super::model::{TRAINING, facts};
use super::notes::notes;
use super::run::{Ended, Plan, epsilon};
use super::table::ENCODING;
use super::{Precision, clip_facts, optimizer_facts};
use crate::Result;
use crate::output::{Folder, Pending};
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::num::{Distribution, Summary};
use leakscope_core::special::student_t_quantile;
use leakscope_net::{
    Backend, Data, Real,
    leak::Label,
    renyi,
    train::{Neighbours, Randomness, RecordBudget, Sampling, Tracking, Trainer},
};
use leakscope_report::PageKind;
use leakscope_report::format;
use leakscope_report::net::{
    self as page, Account, Accounts, Below, DataFacts, Dropout, Filtered, Histogram, Perturbation,
    PrivacyFacts, Promise, TRAINING_SCHEMA, Training, Withheld,
};
use leakscope_report::text::{TextTraining, Unit};
use leakscope_table::{RecordsSchema, RecordsWriter};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// What the run does not know of itself.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) files: Vec<String>,
    /// What records are called.
    pub(crate) names: Names,
    pub(crate) normalize: [f64; 2],
    pub(crate) test_records: Option<u64>,
    /// Whether C was not given.
    pub(crate) clip_assumed: bool,
    /// Names of the files of public records.
    pub(crate) public: Vec<String>,
    pub(crate) precision: Precision,
    /// Which files may leave the house, in words.
    pub(crate) leaves: String,
    /// Of a language model.
    pub(crate) text: Option<TextTraining>,
    /// What to know of a run whose place this one takes.
    pub(crate) replaced: Option<String>,
    /// Whether the page names no record.
    pub(crate) redact: bool,
}

/// What to know of a run that another one takes the place of: it is gone, and what it told is not.
pub(crate) fn replaced(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(TRAINING)).ok()?;
    let earlier = serde_json::from_str::<Training>(&text).ok();
    let promise = earlier.as_ref().and_then(|t| t.privacy.as_ref()).and_then(|p| p.promise.as_ref());
    let promised = promise.map(|p| {
        let (epsilon, delta) = (format::at_most(p.epsilon), format::setting(p.delta));
        format!(", which stated ε = {epsilon} at δ = {delta}")
    });
    Some(format!(
        "This run took the place of an earlier one in this folder{}. If the model of that one left the house, what it told still \
         counts: runs on the same records add up, their ε and their δ too, and this page states its own alone. Give each run a folder \
         of its own.",
        promised.unwrap_or_default()
    ))
}

impl Facts {
    /// What is drawn and clipped as one, in a word.
    fn unit(&self) -> &'static str {
        self.text.as_ref().map_or("record", |t| t.unit.name())
    }
}

/// A file of the trained model: its name in the folder of the run, and what it holds.
pub(crate) type Stored = (String, Vec<u8>);

/// Records shown by name.
const MOST: usize = 20;

/// Writes model, run, records and page.
pub(crate) fn finish<T: Real>(
    ended: &Ended<'_, T>,
    data: &Data<T>,
    facts: &Facts,
    plan: &Plan,
    (folder, model): (&Folder, &[Stored]),
) -> Result<(Training, Vec<PathBuf>)> {
    let budgets = ended.run.budgets()?;
    // The checkpoint is kept whatever comes of this.
    let mut training = crate::output::complete(training(ended, data, facts, plan, &budgets)?)?;
    let mut pending = Pending::default();
    pending.tables(records(folder, data, &budgets, ended, &facts.names)?);
    training.tables = pending.table_names();
    for (name, bytes) in model {
        folder.file(&mut pending, name, bytes)?;
    }
    if let Some(coding) = &facts.names.coding {
        folder.text(&mut pending, ENCODING, &coding.json()?)?;
    }
    folder.text(&mut pending, TRAINING, &page::to_json(&training))?;
    folder.page(&mut pending, PageKind::Training, &page::training_page(&training))?;
    let written = folder.publish(pending)?;
    Ok((training, written))
}

/// The document of the run.
pub(crate) fn training<T: Real>(
    ended: &Ended<'_, T>,
    data: &Data<T>,
    f: &Facts,
    plan: &Plan,
    budgets: &[RecordBudget],
) -> Result<Training> {
    let (run, config) = (&ended.run, ended.run.config());
    let privacy = privacy(run, f)?;
    let tracking = match config.tracking {
        Tracking::Off => None,
        Tracking::Panel { probes, .. } => Some((page::Tracked::Panel, probes)),
        Tracking::Drawn { probes } => Some((page::Tracked::Drawn, probes)),
        Tracking::Every { probes } => Some((page::Tracked::Every, probes)),
    };
    Ok(Training {
        schema: TRAINING_SCHEMA.to_owned(),
        tables: vec![],
        network: facts(run.network(), &f.name),
        precision: f.precision,
        data: DataFacts {
            files: f.files.clone(),
            records: data.units() as u64,
            test_records: f.test_records,
            normalize: f.normalize,
            target: f.names.target(),
        },
        optimizer: optimizer_facts(config.optimizer),
        learning_rate: config.learning_rate,
        weight_decay: config.weight_decay,
        sampling: match config.sampling {
            Sampling::Poisson { .. } => page::Sampling::Poisson,
            Sampling::Shuffle { .. } => page::Sampling::Shuffle,
        },
        batch: config.sampling.expected(data.units()),
        seed: config.seed,
        notes: notes(ended, f),
        privacy,
        label_secret: config.label == Label::Secret,
        tracking: tracking.map(|(records, probes)| page::Tracking {
            records,
            panel: (records == page::Tracked::Panel)
                .then(|| budgets.iter().filter(|b| b.followed).count() as u64),
            probes: probes as u64,
        }),
        planned_steps: plan.steps,
        steps: run.steps(),
        stopped: ended.stopped,
        accuracy_on: match f.test_records {
            Some(_) => page::AccuracyOn::Test,
            None => page::AccuracyOn::Training,
        },
        history: ended.history.clone(),
        accounts: accounts(ended, data, budgets, &f.names)?,
        filter: filtered(ended, data, plan, &f.names),
        public: ended.start.public_use(perturbation(run)),
        text: f.text.clone(),
        seconds: ended.seconds,
        redact: f.redact,
    })
}

/// Clip, noise and what is promised of them.
fn privacy<T: Real>(run: &Trainer<'_, T>, f: &Facts) -> Result<Option<PrivacyFacts>> {
    let Some(p) = run.config().privacy else { return Ok(None) };
    let (clip_kind, bound) = clip_facts(p.clip);
    let read = f.names.read_off();
    let withheld = match run.config().randomness {
        Randomness::SeededNotPrivate => Some(Withheld::NoiseFromSeed),
        Randomness::System => (!read.is_empty()).then(|| Withheld::ReadOffRecords(read.clone())),
    };
    let (promise, steps_alone) = match &withheld {
        None => (promise(run, f)?, None),
        Some(Withheld::ReadOffRecords(_)) => (None, promise(run, f)?),
        Some(Withheld::NoiseFromSeed) => (None, None),
    };
    let clip = bound.unwrap_or(1.0);
    Ok(Some(PrivacyFacts { clip_kind, clip, sigma: p.sigma, promise, withheld, steps_alone }))
}

/// What was added to gradients in the last step.
fn perturbation<T: Real>(run: &Trainer<'_, T>) -> Option<Perturbation> {
    let (how, records) = run.perturbing()?;
    let last = run.perturbed()?;
    Some(Perturbation {
        variant: how.variant,
        lambda: how.lambda,
        records: records as u64,
        norm: last.norm,
        cosine: last.cosine,
        spread: last.spread,
        without: last.without,
        with: last.with,
    })
}

/// What the run promises; nothing in the open.
fn promise<T: Real>(run: &Trainer<'_, T>, f: &Facts) -> Result<Option<Promise>> {
    let Some(account) = run.account()? else { return Ok(None) };
    let dropped = run.dropped();
    let config = run.config();
    let filter = match &config.filter {
        Some(f) if f.budgets.is_empty() => {
            "; a record takes part until its own Rényi budget is spent and never again (Feldman and Zrnic 2021, theorem \
             4.3), so that the whole run costs no record more than ε, whatever the steps adapt to"
        }
        Some(_) => {
            "; a record takes part until its own Rényi budget is spent and never again (Feldman and Zrnic 2021, theorem \
             4.3), so that the whole run costs no record more than the budget that was given for it, which is public; ε is \
             the largest of these"
        }
        None => "",
    };
    let public = match &f.public[..] {
        [] => String::new(),
        files => format!(
            "; the records of {} are taken to be public: no step on them is counted, and nothing is promised to them",
            files.join(", ")
        ),
    };
    let of_text = match &f.text {
        Some(t) => of_text(t),
        None => String::new(),
    };
    Ok(Some(Promise {
        delta: account.delta,
        epsilon: account.epsilon(),
        epsilon_pld: account.pld,
        epsilon_rdp: account.rdp.epsilon,
        rdp_order: account.rdp.alpha,
        adjacency: match account.neighbours {
            Neighbours::AddRemove => page::Neighbours::AddRemove,
            Neighbours::ZeroOut => page::Neighbours::ZeroOut,
        },
        advantage: run.advantage()?,
        statement: format!("{}{of_text}{filter}{public}{}", config.statement(f.unit()), products(run)),
        dropped: (!dropped.is_empty()).then(|| dropped.iter().flatten().count() as u64),
    }))
}

/// Where products were shortened, and why that changes no promise.
fn products<T: Real>(run: &Trainer<'_, T>) -> &'static str {
    match run.network().backend() {
        Backend::Cuda(card) if card.shortens() => {
            "; products inside passes were rounded to tf32, norms and sums of clipped gradients were not, so that every \
             gradient was clipped with the digits it was computed in"
        }
        Backend::Cpu | Backend::Cuda(_) => "",
    }
}

/// To whom the promise is, where a language model was fine-tuned, and what it says of held-out texts.
fn of_text(t: &TextTraining) -> String {
    let unit = match t.unit {
        Unit::User => {
            "; a user is all texts with one name: the mean of their gradients is clipped, and whoever writes under two \
             names is promised less"
        }
        Unit::Text if t.pieces > t.texts => {
            "; a text that was cut is clipped whole, by the mean gradient of its pieces; texts of one person add up"
        }
        Unit::Text => "; texts of one person add up",
    };
    let held_out = match &t.holdout {
        Some(_) => "; held-out texts chose nothing in the run, and nothing is promised to them",
        None => "",
    };
    format!("{unit}{held_out}")
}

/// Points of the curve of those that take part.
const CURVE: u64 = 200;
/// Records that dropped out, by name.
const DROPPED: usize = 50;

/// Who dropped out when; absent without a filter.
fn filtered<T: Real>(ended: &Ended<'_, T>, data: &Data<T>, plan: &Plan, names: &Names) -> Option<Filtered> {
    let filter = ended.run.config().filter.as_ref()?;
    let dropped = ended.run.dropped();
    let (n, steps) = (dropped.len() as u64, ended.run.steps());
    let every = steps.div_ceil(CURVE).max(1);
    let taking_part = |step: u64| n - dropped.iter().flatten().filter(|d| **d < step).count() as u64;
    let mut order: Vec<(u64, usize)> =
        dropped.iter().enumerate().filter_map(|(i, d)| d.map(|step| (step, i))).collect();
    order.sort_unstable();
    let loss = ended.run.network().loss();
    let lowest = filter.budgets.iter().copied().fold(filter.largest(), f64::min);
    debug_assert!(steps <= plan.steps);
    Some(Filtered {
        budgets: [lowest, filter.largest()],
        dropped: order.len() as u64,
        taking_part: (0..=steps)
            .step_by(every as usize)
            .chain([steps])
            .map(|s| (s, taking_part(s)))
            .collect(),
        first: order
            .into_iter()
            .take(DROPPED)
            .map(|(steps, i)| Dropout {
                record: i as u64,
                id: names.id(i),
                label: names.short_label(data, i, loss),
                steps,
            })
            .collect(),
    })
}

/// Dimension of the secret of a record.
fn dimension<T: Real>(ended: &Ended<'_, T>, record: usize) -> f64 {
    ended.run.dimension(record) as f64
}

/// Mean, spread and quantiles of values.
pub(crate) fn summary(values: &[f64]) -> Summary {
    let mut all = Distribution::default();
    all.extend(values);
    all.summary()
}

/// Each record's own ε at the run's δ, where its norms were taken at every step; what the run promises to all holds for it
/// too.
fn own_epsilon(delta: f64, b: &RecordBudget, of_run: Option<f64>) -> Result<Option<f64>> {
    let (Some(of_run), Some(budgets)) = (of_run, &b.renyi) else { return Ok(None) };
    let nothing = budgets.iter().all(|r| *r == 0.0);
    let own = if nothing { 0.0 } else { renyi::epsilon(budgets, delta)?.0 };
    Ok(Some(own.min(of_run)))
}

/// ε of the run, for every record; absent where nothing is promised.
fn epsilon_of_run<T: Real>(ended: &Ended<'_, T>, names: &Names) -> Result<Option<f64>> {
    epsilon(&ended.run, names.read_off().is_empty())
}

/// The records that a page speaks of: those that were followed, or, where none was, those whose estimates have an interval.
fn accounted(budgets: &[RecordBudget]) -> Vec<(usize, Measured, f64)> {
    let any = budgets.iter().any(|b| b.followed);
    let known = |(i, b): (usize, &RecordBudget)| {
        let spoken_of = if any { b.followed && b.measured > 0 } else { b.measured > 1 };
        b.dfil.filter(|_| spoken_of).map(|dfil| (i, dfil, b.degrees))
    };
    budgets.iter().enumerate().filter_map(known).collect()
}

fn accounts<T: Real>(
    ended: &Ended<'_, T>,
    data: &Data<T>,
    budgets: &[RecordBudget],
    names: &Names,
) -> Result<Option<Accounts>> {
    if budgets.is_empty() {
        return Ok(None);
    }
    let (of_run, delta) = (epsilon_of_run(ended, names)?, ended.run.config().delta);
    let spoken_of = accounted(budgets);
    let dfil: Vec<f64> = spoken_of.iter().map(|(_, m, _)| m.value).collect();
    let published: Vec<f64> = spoken_of
        .iter()
        .filter_map(|&(i, ..)| Some(budgets[i].published?.value / dimension(ended, i)))
        .collect();
    let epsilon: Vec<Option<f64>> =
        budgets.par_iter().map(|b| own_epsilon(delta, b, of_run)).collect::<Result<_>>()?;
    let known: Vec<f64> = epsilon.iter().flatten().copied().collect();
    let followed = budgets.iter().filter(|b| b.followed).count();
    // a quantile of Student's t for each: seconds for many records on one core
    let intervals: Vec<Interval> =
        spoken_of.par_iter().map(|(_, m, degrees)| around(m, *degrees, spoken_of.len())).collect();
    let top = largest(&intervals);
    let chosen_at_random =
        matches!(ended.run.config().tracking, Tracking::Panel { .. }) && followed < budgets.len();
    let loss = ended.run.network().loss();
    let mut order: Vec<usize> = (0..spoken_of.len()).collect();
    order.sort_by(|&a, &b| dfil[b].total_cmp(&dfil[a]).then(a.cmp(&b)));
    let account = |at: usize| {
        let (i, dfil, _) = spoken_of[at];
        Account {
            record: i as u64,
            id: names.id(i),
            label: names.short_label(data, i, loss),
            dfil,
            interval: intervals[at],
            epsilon: epsilon[i],
        }
    };
    Ok(Some(Accounts {
        followed: followed as u64,
        accounted: spoken_of.len() as u64,
        dfil: summary(&dfil),
        largest: top,
        // half of the 5% for the choice of the panel, half for the upper ends of its intervals
        below: top
            .filter(|_| chosen_at_random)
            .map(|i| Below { share: 0.025_f64.powf(1.0 / followed as f64), value: i.upper }),
        not_drawn: budgets.iter().filter(|b| b.measured == 0).count() as u64,
        published_dfil: summary(&published),
        epsilon: (!known.is_empty()).then(|| summary(&known)),
        histogram: Histogram::of(&dfil),
        most: order.into_iter().take(MOST).map(account).collect(),
    }))
}

/// The table of records: their accounts, and when they dropped out. Absent where neither was kept.
pub(crate) fn records<T: Real>(
    folder: &Folder,
    data: &Data<T>,
    budgets: &[RecordBudget],
    ended: &Ended<'_, T>,
    names: &Names,
) -> Result<Option<RecordsWriter>> {
    let dropped = ended.run.dropped();
    if budgets.is_empty() && dropped.is_empty() {
        return Ok(None);
    }
    let mut numbers: Vec<String> = Vec::new();
    if !budgets.is_empty() {
        let accounts = [
            "followed",
            "steps_measured",
            "trace",
            "trace_standard_error",
            "dfil",
            "dfil_standard_error",
            "dfil_low",
            "dfil_high",
            "published_trace",
            "published_dfil",
            "epsilon",
        ];
        numbers.extend(accounts.map(str::to_owned));
        numbers.extend(renyi::ORDERS.iter().map(|order| format!("renyi_{order}")));
    }
    if !dropped.is_empty() {
        numbers.push("dropped_after_steps".into());
    }
    let loss = ended.run.network().loss();
    let schema = RecordsSchema { id: names.id_column(), texts: label_column(data, loss), numbers };
    let mut writer = folder.table("records", schema)?;
    let mut part = writer.parts().part();
    let (of_run, delta) = (epsilon_of_run(ended, names)?, ended.run.config().delta);
    let dimensions: Vec<f64> = (0..budgets.len()).map(|i| dimension(ended, i)).collect();
    let accounted = budgets.par_iter().zip(&dimensions);
    let accounted: Vec<Vec<f64>> = accounted
        .map(|(b, d)| Ok(account_row(b, *d, own_epsilon(delta, b, of_run)?, of_run)))
        .collect::<Result<_>>()?;
    let mut accounted = accounted.into_iter();
    for i in 0..data.units() {
        let mut row = accounted.next().unwrap_or_default();
        if let Some(step) = dropped.get(i) {
            row.push(step.map_or(f64::NAN, |s| s as f64));
        }
        part.push(&names.of(i), names.label(data, i, loss).as_deref().as_slice(), &row)?;
    }
    writer.append(part)?;
    Ok(Some(writer))
}

/// The account of a record as a row. Of a record that was not followed and drawn less than twice nothing is known: what the
/// run promises to all holds for it.
fn account_row(b: &RecordBudget, dimension: f64, own: Option<f64>, of_run: Option<f64>) -> Vec<f64> {
    // a shuffled order that has not come to it yet
    let known = |m: Option<Measured>| m.filter(|_| b.measured > 0);
    let value = |m: Option<Measured>| known(m).map_or(f64::NAN, |m| m.value);
    let error = |m: Option<Measured>| known(m).and_then(|m| m.standard_error).unwrap_or(f64::NAN);
    let half = student_t_quantile(0.975, b.degrees) * error(b.dfil);
    let mut row = vec![
        f64::from(u8::from(b.followed)),
        b.measured as f64,
        value(b.trace),
        error(b.trace),
        value(b.dfil),
        error(b.dfil),
        (value(b.dfil) - half).max(if half.is_nan() { f64::NAN } else { 0.0 }),
        value(b.dfil) + half,
        value(b.published),
        value(b.published) / dimension,
        own.or(of_run).unwrap_or(f64::NAN),
    ];
    let renyi = b.renyi.filter(|_| own.is_some());
    row.extend((0..renyi::ORDERS.len()).map(|j| renyi.map_or(f64::NAN, |r| r[j])));
    row
}
