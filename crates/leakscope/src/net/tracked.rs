//! A private training run of another framework whose records were kept account of, as our own runs are told.

use super::account::summary;
use super::extremes::{around, largest};
use super::training::NetTraining;
use crate::output::{Folder, Pending, results};
use crate::{Failure, Result};
use leakscope_core::claim::Measured;
use leakscope_core::dp::{Accountant, Adjacency, Interval, Mechanism, rdp};
use leakscope_core::special::student_t_quantile;
use leakscope_net::renyi;
use leakscope_report::net::{
    self, Accounts, AccuracyOn, ClipKind, DataFacts, Histogram, Neighbours, NetworkFacts, Point, Precision,
    PrivacyFacts, Promise, Sampling, Stopped, TRAINING_SCHEMA, Tracked, Tracking, Training,
};
use leakscope_table::{RecordsSchema, RecordsWriter};
use serde::Deserialize;

/// Records shown by name.
const MOST: usize = 20;

/// One record's account.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Its number in the data.
    pub record: u64,
    /// Its label in words; absent where it is not known.
    pub label: Option<String>,
    /// Trace of its information over the run; absent where it was never looked at.
    pub trace: Option<Measured>,
    /// The same with the published factor.
    pub published: Option<f64>,
    /// Its Rényi budgets at [`renyi::ORDERS`], where every step charged it; empty otherwise.
    pub renyi: Vec<f64>,
    /// Largest norm of its gradient before the clip, where one was seen.
    pub gradient_norm: Option<f64>,
}

/// A run of another framework.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The network.
    pub network: NetworkFacts,
    /// Whether it computes in double precision.
    pub double: bool,
    /// Where the records came from, in words.
    pub files: Vec<String>,
    /// Records in all.
    pub records: u64,
    /// The optimiser in words.
    pub optimizer: String,
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Expected records in a batch.
    pub batch: f64,
    /// Seed of the probes.
    pub seed: u64,
    /// C.
    pub clip: f64,
    /// Noise multiplier of the last step.
    pub sigma: f64,
    /// Noise multiplier, sampling rate and number of steps, in the order of the run.
    pub releases: Vec<(f64, f64, u64)>,
    /// δ of the statement.
    pub delta: f64,
    /// What the statement rests on.
    pub statement: String,
    /// Whether a fixed panel of records is measured at the measured steps; otherwise those that a step drew.
    pub panel: bool,
    /// Probes of each trace.
    pub probes: u64,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// Steps measured.
    pub measured_steps: u64,
    /// Points of the run, oldest first.
    pub history: Vec<Point>,
    /// Values of one record that are secret.
    pub dimension: u64,
    /// Accounts of the records that are kept account of.
    pub accounts: Vec<Account>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Wall time of the run.
    pub seconds: f64,
}

/// The document, the page and the table of records.
pub fn training(run: &Run) -> Result<NetTraining> {
    if run.accounts.is_empty() || run.dimension == 0 {
        return Err(Failure::Message(
            "a run without accounts of records, or without values in a record".into(),
        ));
    }
    let promise = promise(run)?;
    let of_run = promise.epsilon;
    let steps = run.releases.iter().map(|r| r.2).sum();
    let training = Training {
        schema: TRAINING_SCHEMA.to_owned(),
        tables: vec![],
        network: run.network.clone(),
        precision: if run.double { Precision::F64 } else { Precision::F32 },
        data: DataFacts {
            files: run.files.clone(),
            records: run.records,
            test_records: None,
            normalize: [0.0, 1.0],
            target: None,
        },
        optimizer: run.optimizer.clone().into(),
        learning_rate: run.learning_rate,
        weight_decay: run.weight_decay,
        sampling: Sampling::Poisson,
        batch: run.batch,
        seed: run.seed,
        privacy: Some(PrivacyFacts {
            clip_kind: ClipKind::Hard,
            clip: run.clip,
            sigma: run.sigma,
            promise: Some(promise),
            withheld: None,
            steps_alone: None,
        }),
        label_secret: run.label_secret,
        tracking: Some(Tracking {
            records: match run.panel {
                true if run.accounts.len() as u64 == run.records => Tracked::Every,
                true => Tracked::Panel,
                false => Tracked::Drawn,
            },
            panel: run.panel.then_some(run.accounts.len() as u64).filter(|n| *n < run.records),
            probes: run.probes,
        }),
        planned_steps: steps,
        steps,
        stopped: Stopped::Finished,
        accuracy_on: AccuracyOn::Training,
        history: run.history.clone(),
        accounts: Some(accounts(run, of_run)?),
        public: None,
        filter: None,
        text: None,
        notes: run.notes.clone(),
        seconds: run.seconds,
        redact: false,
    };
    let mut pending = Pending::default();
    pending.tables([table(run, of_run)?]);
    Ok(NetTraining { training, tables: results(pending), model: None, encoding: None })
}

/// What the run promises to every record, by the accountants of core.
fn promise(run: &Run) -> Result<Promise> {
    let mut accountant = Accountant::new(Adjacency::AddRemove);
    for &(sigma, rate, steps) in &run.releases {
        accountant = accountant.with(Mechanism::gaussian(sigma, rate), steps)?;
    }
    let rdp = rdp::epsilon(accountant.steps(), accountant.adjacency(), run.delta)?;
    let pld = accountant.epsilon(run.delta).ok();
    Ok(Promise {
        delta: run.delta,
        epsilon: pld.map_or(f64::INFINITY, |p| p.upper).min(rdp.epsilon),
        epsilon_pld: pld,
        epsilon_rdp: rdp.epsilon,
        rdp_order: rdp.alpha,
        adjacency: Neighbours::ZeroOut,
        advantage: accountant.advantage().ok().map(|a| a.upper).filter(|a| *a < 1.0),
        statement: run.statement.clone(),
        dropped: None,
    })
}

/// A record's own ε, where every step charged it: never above what the run promises to all.
fn own_epsilon(run: &Run, account: &Account, of_run: f64) -> Result<Option<f64>> {
    if account.renyi.is_empty() {
        return Ok(None);
    }
    let budgets = account.renyi.as_slice().try_into().map_err(|_| {
        Failure::Message(format!("record {}: its Rényi budgets are not at our orders", account.record))
    })?;
    let nothing = account.renyi.iter().all(|r| *r == 0.0);
    let own = if nothing { 0.0 } else { renyi::epsilon(budgets, run.delta)?.0 };
    Ok(Some(own.min(of_run)))
}

fn over(m: Measured, dimension: f64) -> Measured {
    Measured { value: m.value / dimension, standard_error: m.standard_error.map(|e| e / dimension) }
}

fn accounts(run: &Run, of_run: f64) -> Result<Accounts> {
    let d = run.dimension as f64;
    let known: Vec<(&Account, Measured)> =
        run.accounts.iter().filter_map(|a| a.trace.map(|t| (a, over(t, d)))).collect();
    let dfil: Vec<f64> = known.iter().map(|(_, m)| m.value).collect();
    let published: Vec<f64> = run.accounts.iter().filter_map(|a| a.published).map(|p| p / d).collect();
    let own: Vec<f64> =
        run.accounts.iter().filter_map(|a| own_epsilon(run, a, of_run).transpose()).collect::<Result<_>>()?;
    let mut order: Vec<usize> = (0..known.len()).collect();
    order.sort_by(|&a, &b| dfil[b].total_cmp(&dfil[a]).then(a.cmp(&b)));
    let intervals: Vec<Interval> = known.iter().map(|(_, m)| around(m, degrees(run), known.len())).collect();
    let shown = |i: usize| -> Result<_> {
        let (account, m) = known[i];
        Ok(net::Account {
            record: account.record,
            id: None,
            label: account.label.clone(),
            dfil: m,
            interval: intervals[i],
            epsilon: own_epsilon(run, account, of_run)?,
        })
    };
    Ok(Accounts {
        followed: if run.panel { run.accounts.len() as u64 } else { 0 },
        accounted: known.len() as u64,
        // the caller may have chosen the panel, which says nothing of the others
        below: None,
        dfil: summary(&dfil),
        largest: largest(&intervals),
        not_drawn: (run.accounts.len() - known.len()) as u64,
        published_dfil: summary(&published),
        epsilon: (!own.is_empty()).then(|| summary(&own)),
        histogram: Histogram::of(&dfil),
        most: order.into_iter().take(MOST).map(shown).collect::<Result<_>>()?,
    })
}

/// Degrees of freedom of the error of a trace: probes of all steps, or the steps that draw a record, as far as they are
/// expected.
fn degrees(run: &Run) -> f64 {
    let steps = run.measured_steps as f64;
    let rate = run.releases.last().map_or(1.0, |r| r.1);
    let all = if run.panel { steps * (run.probes as f64 - 1.0) } else { rate * steps - 1.0 };
    all.max(1.0)
}

fn table(run: &Run, of_run: f64) -> Result<RecordsWriter> {
    let names = [
        "trace",
        "trace_standard_error",
        "dfil",
        "dfil_standard_error",
        "dfil_low",
        "dfil_high",
        "published_dfil",
        "gradient_norm",
        "epsilon",
    ];
    let labelled = run.accounts.iter().all(|a| a.label.is_some());
    let texts = if labelled { vec!["label".to_owned()] } else { vec![] };
    let schema = RecordsSchema { id: "record".into(), texts, numbers: names.map(str::to_owned).to_vec() };
    let mut writer = Folder::in_memory().table("records", schema)?;
    let mut part = writer.parts().part();
    let d = run.dimension as f64;
    let t = student_t_quantile(0.975, degrees(run));
    for a in &run.accounts {
        let trace = a.trace.unwrap_or(Measured { value: f64::NAN, standard_error: None });
        let error = trace.standard_error.unwrap_or(f64::NAN);
        let half = t * error / d;
        let own = own_epsilon(run, a, of_run)?;
        let numbers = [
            trace.value,
            error,
            trace.value / d,
            error / d,
            if half.is_nan() { f64::NAN } else { (trace.value / d - half).max(0.0) },
            trace.value / d + half,
            a.published.map_or(f64::NAN, |p| p / d),
            a.gradient_norm.unwrap_or(f64::NAN),
            own.unwrap_or(of_run),
        ];
        let label = a.label.as_deref().filter(|_| labelled);
        part.push(&a.record.to_string(), label.as_slice(), &numbers)?;
    }
    writer.append(part)?;
    Ok(writer)
}
