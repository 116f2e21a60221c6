//! A run that has ended: its files and its page.

use super::data::{label, label_column, short_label};
use super::model::{NETWORK, TRAINING, WEIGHTS, facts};
use super::run::{Ended, Plan};
use super::{Precision, clip_facts};
use crate::Result;
use crate::output::{Folder, Pending};
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::num::{Distribution, Summary};
use leakscope_core::special::{normal_quantile, student_t_quantile};
use leakscope_net::{
    Data, Real,
    leak::Label,
    renyi,
    train::{Neighbours, Optimizer, Randomness, RecordBudget, Sampling, Tracking, Trainer},
};
use leakscope_report::net::{
    self as page, Accounts, DataFacts, Histogram, PrivacyFacts, Promise, TRAINING_SCHEMA, Training,
};
use leakscope_table::{RecordsSchema, RecordsWriter};
use std::path::PathBuf;

/// What the run does not know of itself.
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) files: Vec<String>,
    pub(super) normalize: [f64; 2],
    pub(super) test_records: Option<u64>,
    /// Whether C was not given.
    pub(super) clip_assumed: bool,
    /// Names of the files of public records that batch norms took their statistics from.
    pub(super) public: Vec<String>,
    pub(super) precision: Precision,
}

/// Records shown by name.
const MOST: usize = 20;

/// Writes model, run, records and page.
pub(super) fn finish<T: Real>(
    ended: &Ended<'_, T>,
    data: &Data<T>,
    facts: &Facts,
    plan: &Plan,
    folder: &Folder,
) -> Result<(Training, Vec<PathBuf>)> {
    let budgets = ended.run.budgets();
    // The checkpoint is kept whatever comes of this.
    let mut training = crate::output::complete(training(ended, data, facts, plan, &budgets)?)?;
    let net = ended.run.network();
    let mut pending = Pending::default();
    if !budgets.is_empty() {
        pending.tables([records(folder, data, &budgets, ended)?]);
    }
    training.tables = pending.table_names();
    folder.text(&mut pending, NETWORK, &net.spec().to_json())?;
    folder.file(&mut pending, WEIGHTS, &net.to_tensors()?.to_bytes()?)?;
    folder.text(&mut pending, TRAINING, &page::to_json(&training))?;
    folder.text(&mut pending, "report.html", &page::training_page(&training))?;
    let written = folder.publish(pending)?;
    Ok((training, written))
}

/// The document of the run.
pub(super) fn training<T: Real>(
    ended: &Ended<'_, T>,
    data: &Data<T>,
    f: &Facts,
    plan: &Plan,
    budgets: &[RecordBudget],
) -> Result<Training> {
    let (run, config) = (&ended.run, ended.run.config());
    let privacy = match config.privacy {
        Some(p) => {
            let (kind, bound) = clip_facts(p.clip);
            let promise = promise(run)?;
            Some(PrivacyFacts { clip_kind: kind, clip: bound.unwrap_or(1.0), sigma: p.sigma, promise })
        }
        None => None,
    };
    let tracking = match config.tracking {
        Tracking::Off => None,
        Tracking::Drawn { probes } => Some((page::Tracked::Drawn, probes)),
        Tracking::Every { probes } => Some((page::Tracked::Every, probes)),
    };
    Ok(Training {
        schema: TRAINING_SCHEMA.to_owned(),
        tables: vec![],
        network: facts(run.network(), &f.name),
        precision: match f.precision {
            Precision::F32 => page::Precision::F32,
            Precision::F64 => page::Precision::F64,
        },
        data: DataFacts {
            files: f.files.clone(),
            records: data.len() as u64,
            test_records: f.test_records,
            normalize: f.normalize,
        },
        optimizer: match config.optimizer {
            Optimizer::Sgd { momentum } => format!("SGD with momentum {momentum}"),
            Optimizer::Adam { .. } => "Adam".to_owned(),
        },
        learning_rate: config.learning_rate,
        weight_decay: config.weight_decay,
        sampling: match config.sampling {
            Sampling::Poisson { .. } => page::Sampling::Poisson,
            Sampling::Shuffle { .. } => page::Sampling::Shuffle,
        },
        batch: config.sampling.expected(data.len()),
        seed: config.seed,
        notes: notes(ended, f),
        privacy,
        label_secret: config.label == Label::Secret,
        tracking: tracking.map(|(records, probes)| page::Tracking { records, probes: probes as u64 }),
        planned_steps: plan.steps,
        steps: run.steps(),
        stopped: ended.stopped,
        accuracy_on: match f.test_records {
            Some(_) => page::AccuracyOn::Test,
            None => page::AccuracyOn::Training,
        },
        history: ended.history.clone(),
        accounts: if budgets.is_empty() { None } else { Some(accounts(ended, data, budgets)?) },
        seconds: ended.seconds,
    })
}

/// What the run promises; nothing in the open, or with noise from a seed.
fn promise<T: Real>(run: &Trainer<'_, T>) -> Result<Option<Promise>> {
    let Some(account) = run.account()? else { return Ok(None) };
    let dropped = run.dropped();
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
        statement: run.config().statement().to_owned(),
        dropped: (!dropped.is_empty()).then(|| dropped.iter().flatten().count() as u64),
    }))
}

fn notes<T: Real>(ended: &Ended<'_, T>, f: &Facts) -> Vec<String> {
    let config = ended.run.config();
    let mut out = Vec::new();
    if config.privacy.is_some() {
        match config.randomness {
            Randomness::System => out.push(
                "Sampling and noise come from the system's cryptographic generator. Only private/checkpoint.safetensors \
                 holds its key: whoever has that file can take the noise off. model.safetensors and network.json may \
                 leave the house, nothing else."
                    .to_owned(),
            ),
            Randomness::SeededNotPrivate => out.push(
                "Not private: the noise follows from the seed, and whoever knows it can take the noise off. No ε is \
                 stated."
                    .to_owned(),
            ),
        }
        if f.clip_assumed {
            out.push("No `clip` was given: gradients were clipped at C = 1.".to_owned());
        }
        out.push(
            "Losses and dFIL (and accuracies on training records) are computed without noise: the statement covers the \
             model, not these numbers."
                .to_owned(),
        );
    }
    if let (Tracking::Drawn { .. }, Sampling::Poisson { rate: q }) = (config.tracking, config.sampling) {
        let draws = q * ended.run.steps() as f64;
        out.push(format!(
            "Accounts are kept of drawn records, weighted by 1/q: unbiased, but a record was drawn {draws:.1} times on \
             average, and of one that never was nothing is known. `track = every` has no such error."
        ));
    }
    if ended.start.pretrained.is_some() {
        out.push("The run started from given weights, which are taken to be public.".to_owned());
    }
    if !f.public.is_empty() {
        out.push(format!(
            "The statistics of batch norms come from {}, taken to be public: the statement does not cover them.",
            f.public.join(", ")
        ));
    } else if config.privacy.is_none() && ended.run.network().statistics().next().is_some() {
        out.push(
            "The statistics of batch norms are constants: those of the first weights, or given ones."
                .to_owned(),
        );
    }
    if let Some(why) = &ended.failure {
        let seen = match config.privacy {
            Some(_) => {
                " That it stopped was decided on losses and gradients without noise, which the statement does not cover."
            }
            None => "",
        };
        out.push(format!("{why}; the parameters are those of the last good checkpoint.{seen}"));
    }
    out
}

/// Dimension of the secret.
fn dimension<T: Real>(ended: &Ended<'_, T>) -> f64 {
    let net = ended.run.network();
    let label = if ended.run.config().label == Label::Secret { net.outputs() } else { 0 };
    (net.input().len() + label) as f64
}

/// Mean, spread and quantiles of values.
pub(super) fn summary(values: &[f64]) -> Summary {
    let mut all = Distribution::default();
    all.extend(values);
    all.summary()
}

/// Each record's own ε at the run's δ, where its norms were taken at every step; what the run promises to all holds for it
/// too.
fn own_epsilon<T: Real>(ended: &Ended<'_, T>, b: &RecordBudget, of_run: Option<f64>) -> Result<Option<f64>> {
    let config = ended.run.config();
    let every_step = match (config.tracking, config.sampling) {
        (Tracking::Every { .. }, _) | (Tracking::Drawn { .. }, Sampling::Shuffle { .. }) => true,
        (Tracking::Off | Tracking::Drawn { .. }, _) => false,
    };
    let Some(of_run) = of_run.filter(|_| every_step) else { return Ok(None) };
    let nothing = b.renyi.iter().all(|r| *r == 0.0);
    let own = if nothing { 0.0 } else { renyi::epsilon(&b.renyi, config.delta)?.0 };
    Ok(Some(own.min(of_run)))
}

/// ε of the run, for every record; absent where nothing is promised.
fn epsilon_of_run<T: Real>(ended: &Ended<'_, T>) -> Result<Option<f64>> {
    Ok(ended.run.account()?.map(|a| a.epsilon()))
}

/// Whether nothing was measured of a record, because no step drew it.
fn not_drawn(b: &RecordBudget) -> bool {
    b.trace.value == 0.0 && b.published.value == 0.0 && b.trace.standard_error.is_none_or(|e| e == 0.0)
}

/// Degrees of freedom of the standard error of a record's account: the probes of all steps, or, where a record is looked at
/// only in the steps that draw it, these steps as far as they are expected.
fn degrees<T: Real>(ended: &Ended<'_, T>) -> f64 {
    let (config, steps) = (ended.run.config(), ended.run.steps() as f64);
    let degrees = match (config.tracking, config.sampling) {
        (Tracking::Drawn { .. }, Sampling::Poisson { rate }) => rate * steps - 1.0,
        (Tracking::Drawn { probes }, Sampling::Shuffle { .. }) | (Tracking::Every { probes }, _) => {
            steps * (probes as f64 - 1.0)
        }
        (Tracking::Off, _) => 1.0,
    };
    degrees.max(1.0)
}

/// Where the largest of the true values lies, with 95% confidence over all records at once (Bonferroni, normal errors).
fn largest(dfil: impl Iterator<Item = Measured> + Clone) -> Option<Interval> {
    let n = dfil.clone().count();
    let z = -normal_quantile(0.025 / n.max(1) as f64);
    let ends = dfil.map(|m| (m.value, z * m.standard_error.unwrap_or(0.0)));
    let fold = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let lower = fold(&mut ends.clone().map(|(v, e)| v - e));
    let upper = fold(&mut ends.clone().map(|(v, e)| v + e));
    (n > 0).then_some(Interval { lower, upper })
}

fn accounts<T: Real>(ended: &Ended<'_, T>, data: &Data<T>, budgets: &[RecordBudget]) -> Result<Accounts> {
    let (d, of_run) = (dimension(ended), epsilon_of_run(ended)?);
    let dfil: Vec<f64> = budgets.iter().map(|b| b.dfil.value).collect();
    let published: Vec<f64> = budgets.iter().map(|b| b.published.value / d).collect();
    let epsilon: Vec<Option<f64>> =
        budgets.iter().map(|b| own_epsilon(ended, b, of_run)).collect::<Result<_>>()?;
    let known: Vec<f64> = epsilon.iter().flatten().copied().collect();
    let loss = ended.run.network().loss();
    let mut order: Vec<usize> = (0..budgets.len()).collect();
    order.sort_by(|&a, &b| dfil[b].total_cmp(&dfil[a]).then(a.cmp(&b)));
    let most = order
        .into_iter()
        .take(MOST)
        .map(|i| (i as u64, short_label(data, i, loss), budgets[i].dfil, epsilon[i]))
        .collect();
    Ok(Accounts {
        dfil: summary(&dfil),
        largest: largest(budgets.iter().map(|b| b.dfil)),
        not_drawn: budgets.iter().filter(|b| not_drawn(b)).count() as u64,
        published_dfil: summary(&published),
        epsilon: (!known.is_empty()).then(|| summary(&known)),
        histogram: Histogram::of(&dfil),
        most,
    })
}

/// The table of the accounts of records.
pub(super) fn records<T: Real>(
    folder: &Folder,
    data: &Data<T>,
    budgets: &[RecordBudget],
    ended: &Ended<'_, T>,
) -> Result<RecordsWriter> {
    let mut numbers: Vec<String> = [
        "trace",
        "trace_standard_error",
        "dfil",
        "dfil_standard_error",
        "dfil_low",
        "dfil_high",
        "published_trace",
        "published_dfil",
        "epsilon",
    ]
    .map(str::to_owned)
    .to_vec();
    numbers.extend(renyi::ORDERS.iter().map(|order| format!("renyi_{order}")));
    let loss = ended.run.network().loss();
    let schema = RecordsSchema { id: "record".into(), texts: label_column(data, loss), numbers };
    let mut writer = folder.table("records", schema)?;
    let mut part = writer.parts().part();
    let (d, of_run) = (dimension(ended), epsilon_of_run(ended)?);
    let t = student_t_quantile(0.975, degrees(ended));
    for (i, b) in budgets.iter().enumerate() {
        let error = |m: &leakscope_core::claim::Measured| m.standard_error.unwrap_or(f64::NAN);
        // of a record that no step drew nothing is known: what the run promises to all holds for it
        let known = |v: f64| if not_drawn(b) { f64::NAN } else { v };
        let own = own_epsilon(ended, b, of_run)?;
        let half = t * error(&b.dfil);
        let mut row = vec![
            known(b.trace.value),
            known(error(&b.trace)),
            known(b.dfil.value),
            known(error(&b.dfil)),
            known((b.dfil.value - half).max(0.0)),
            known(b.dfil.value + half),
            known(b.published.value),
            known(b.published.value / d),
            own.or(of_run).unwrap_or(f64::NAN),
        ];
        row.extend(b.renyi.map(|r| if own.is_some() { r } else { f64::NAN }));
        part.push(&i.to_string(), label(data, i, loss).as_deref().as_slice(), &row)?;
    }
    writer.append(part)?;
    Ok(writer)
}
