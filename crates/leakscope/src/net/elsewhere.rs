//! Measures that another framework computed, as the same document, page and tables.
//!
//! The framework has the network and the records; what comes here is one [`Row`] a record and the facts around them.

use super::account::summary;
use super::assemble::{
    self, Columns, Number, RecordFacts, dfil, dfil_intervals, ends, eta, gradient_norm, plis, record,
    summarised, values,
};
use super::extremes::extremes;
use super::measuring::Leak;
use super::memory::NetMeasured;
use super::prior;
use crate::output::{Folder, Pending, results};
use crate::{Failure, Result};
use leakscope_core::claim::{Bound, Measured, Theorem};
use leakscope_net::leak::{Eta, Probe, RecordLeak, Trace, half_width};
use leakscope_report::net::{
    AUDIT_SCHEMA, DataFacts, Element, Histogram, NetAudit, NetworkFacts, Picture, Pictures, Record, Release,
    Shown, Signal, TraceKind,
};
use serde::Deserialize;

/// One record's measures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its number in the data.
    pub record: usize,
    /// Its label in words; absent where it is several values.
    pub label: Option<String>,
    /// Whether the network gets it right; absent where there is no right or wrong.
    pub right: Option<bool>,
    /// Its loss.
    pub loss: f64,
    /// `‖g‖`.
    pub gradient_norm: f64,
    /// `‖clip(g)‖`.
    pub released_norm: f64,
    /// Trace of the information of one release.
    pub trace: Option<Measured>,
    /// η and its residual.
    pub eta: Option<(f64, f64)>,
    /// JacSens: the spectral norm of the Jacobian, nothing clipped, no noise.
    pub jacobian_sensitivity: Option<f64>,
    /// Norm of PLIS.
    pub plis: Option<f64>,
}

/// What another framework measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// The network.
    pub network: NetworkFacts,
    /// Where the records came from, in words.
    pub files: Vec<String>,
    /// Records in all.
    pub records: u64,
    /// The release.
    pub release: Release,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// How traces were found.
    pub trace: TraceKind,
    /// Of which gradient PLIS is; absent where it was not asked for.
    pub plis_of: Option<Signal>,
    /// Seed of probes and starting vectors.
    pub seed: u64,
    /// Values of one record that are secret.
    pub dimension: u64,
    /// The variance of every value over the measured records.
    pub variances: Vec<f64>,
    /// Mean information about each value; empty where it was not asked for.
    pub information: Vec<f64>,
    /// Mean size of PLIS of each value; empty where it was not asked for.
    pub plis_sizes: Vec<f64>,
    /// Records that were measured, ascending.
    pub rows: Vec<Row>,
    /// What the reader should know.
    pub warnings: Vec<String>,
}

/// Images and maps of the measured records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawn {
    /// Height, width and channels; no pictures without.
    pub shape: Option<[usize; 3]>,
    /// Values of the records, channels last, one after another; empty where they are not to be shown.
    pub x: Vec<f64>,
    /// PLIS of every value in the order of the framework, one record after another; empty where it was not asked for.
    pub maps: Vec<f64>,
    /// Whether the maps have channels first.
    pub channels_first: bool,
}

/// The document, the page and the tables of what was measured elsewhere.
pub fn audit(e: &Elsewhere, drawn: Drawn) -> Result<NetMeasured> {
    check(e)?;
    let leaks: Vec<Leak> = e.rows.iter().map(|row| leak(row, e)).collect();
    let audit = document(e, &leaks);
    let pictures = pictures(e, &drawn, &audit);
    let facts =
        |row: &Row| RecordFacts { label: row.label.clone(), right: row.right, ..RecordFacts::default() };
    let rows: Vec<assemble::Row<'_>> = leaks
        .iter()
        .zip(&e.rows)
        .map(|(leak, row)| assemble::Row { leak, facts: facts(row), compared_plis: None })
        .collect();
    let labelled = e.rows.iter().all(|r| r.label.is_some());
    let texts = if labelled { vec!["label".to_owned()] } else { vec![] };
    let columns = Columns { id: "record".to_owned(), texts, attributes: vec![] };
    let mut pending = Pending::default();
    let table = assemble::written(&Folder::in_memory(), "records", columns, &rows, e.release.noise)?;
    pending.tables([table]);
    Ok(NetMeasured { audit, pictures, tables: results(pending), maps: drawn.maps })
}

fn check(e: &Elsewhere) -> Result<()> {
    let wrong = |problem: &str| Err(Failure::Message(format!("measures of another framework: {problem}")));
    if e.rows.is_empty() || e.dimension == 0 {
        return wrong("there are no records, or records have no values");
    }
    if !(e.release.noise > 0.0 && e.release.noise.is_finite()) {
        return wrong("the noise is not positive and finite");
    }
    let labels = e.rows.iter().filter(|r| r.label.is_some()).count();
    if labels != 0 && labels != e.rows.len() {
        return wrong("some records have a label and some have none");
    }
    if let TraceKind::Estimate { probes: 0 | 1 } = e.trace {
        return wrong("a trace by fewer than two probes has no standard error");
    }
    Ok(())
}

fn leak(row: &Row, e: &Elsewhere) -> Leak {
    let d = e.dimension as f64;
    let dfil = row
        .trace
        .map(|t| Measured { value: t.value / d, standard_error: t.standard_error.map(|error| error / d) });
    let half = match e.trace {
        TraceKind::Estimate { probes } => {
            dfil.and_then(|m| m.standard_error).map(|error| half_width(error, probes as usize))
        }
        TraceKind::Skip | TraceKind::Exact => None,
    };
    let record_leak = |eta: Option<Eta>| RecordLeak {
        record: row.record,
        loss: row.loss,
        right: row.right.unwrap_or(false),
        gradient_norm: row.gradient_norm,
        released_norm: row.released_norm,
        trace: row.trace,
        information: vec![],
        dfil,
        dfil_half_width: half,
        along: None,
        eta,
        plis: row.plis,
        plis_parts: vec![],
    };
    let released = record_leak(row.eta.map(|(value, residual)| Eta { value, residual }));
    let noise = e.release.noise;
    let plain = row.jacobian_sensitivity.map(|j| record_leak(Some(Eta { value: j / noise, residual: 0.0 })));
    Leak { released, plain, regions: vec![], attributes: vec![] }
}

fn of_probes(trace: TraceKind) -> Trace {
    match trace {
        TraceKind::Skip => Trace::Skip,
        TraceKind::Exact => Trace::Exact,
        TraceKind::Estimate { probes } => {
            Trace::Estimate { probes: probes as usize, probe: Probe::Rademacher }
        }
    }
}

fn document(e: &Elsewhere, leaks: &[Leak]) -> NetAudit {
    let dfils = values(leaks, dfil);
    let most = dfils.iter().copied().fold(0.0, f64::max);
    let jacobians: Vec<f64> = e.rows.iter().filter_map(|r| r.jacobian_sensitivity).collect();
    let intervals = dfil_intervals(leaks, of_probes(e.trace));
    let listed = |of: Number, most: bool| -> Vec<Record> {
        let facts = |i: usize| RecordFacts {
            label: e.rows[i].label.clone(),
            right: e.rows[i].right,
            ..RecordFacts::default()
        };
        ends(leaks, of, most)
            .map(|i| record(&leaks[i], facts(i), intervals.get(i).copied(), e.release.noise))
            .collect()
    };
    let n = leaks.len() as f64;
    let judged: Option<Vec<bool>> = e.rows.iter().map(|r| r.right).collect();
    let element = |(i, &information): (usize, &f64)| Element {
        element: i as u64,
        information,
        plis: e.plis_sizes.get(i).copied(),
    };
    NetAudit {
        schema: AUDIT_SCHEMA.to_owned(),
        tables: vec![],
        network: e.network.clone(),
        data: DataFacts {
            files: e.files.clone(),
            records: e.records,
            test_records: None,
            normalize: [0.0, 1.0],
            target: None,
        },
        release: e.release.clone(),
        label_secret: e.label_secret,
        trace: e.trace,
        seed: e.seed,
        measured: leaks.len() as u64,
        spread: e.variances.iter().sum::<f64>() / e.variances.len().max(1) as f64,
        loss: e.rows.iter().map(|r| r.loss).sum::<f64>() / n,
        accuracy: judged.map(|all| all.iter().filter(|right| **right).count() as f64 / n),
        gradient_norm: summary(&values(leaks, gradient_norm)),
        dfil: summarised(leaks, dfil),
        dfil_extremes: extremes(&intervals),
        eta: summarised(leaks, eta),
        jacobian_sensitivity: (!jacobians.is_empty()).then(|| summary(&jacobians)),
        plis: summarised(leaks, plis),
        plis_of: e.plis_of,
        typical_error: typical_error(e),
        min_mse: (e.trace == TraceKind::Exact && most > 0.0)
            .then(|| Bound::at_least(1.0 / most, Theorem::CramerRaoGradient)),
        score: None,
        dfil_histogram: Histogram::of(&dfils),
        eta_histogram: Histogram::of(&values(leaks, eta)),
        elements: e.information.iter().enumerate().map(element).collect(),
        attributes: vec![],
        most_dfil: listed(dfil, true),
        least_dfil: listed(dfil, false),
        most_eta: listed(eta, true),
        least_eta: listed(eta, false),
        most_plis: listed(plis, true),
        least_plis: listed(plis, false),
        compared: None,
        training: None,
        warnings: e.warnings.clone(),
        redact: false,
    }
}

/// By van Trees, as for networks of our own; absent without traces, or where the spread of values is not known.
fn typical_error(e: &Elsewhere) -> Option<Measured> {
    let traces: Vec<Measured> = e.rows.iter().filter_map(|r| r.trace).collect();
    if traces.is_empty() || e.variances.is_empty() {
        return None;
    }
    if !e.information.is_empty() {
        return Some(Measured::exact(prior::by_value(&e.information, &e.variances)));
    }
    let n = traces.len() as f64;
    let mean = traces.iter().map(|t| t.value).sum::<f64>() / n;
    let value = prior::by_trace(mean, &e.variances);
    let errors: Option<Vec<f64>> = traces.iter().map(|t| t.standard_error).collect();
    let error = errors.map(|all| all.iter().map(|error| error * error).sum::<f64>().sqrt() / n);
    let standard_error = error.map(|error| value - prior::by_trace(mean + error, &e.variances));
    Some(Measured { value, standard_error })
}

/// Pictures of the records that the page shows, with the sizes of PLIS over all channels of a pixel.
fn pictures(e: &Elsewhere, drawn: &Drawn, a: &NetAudit) -> Pictures {
    let Some(shape @ [height, width, channels]) = drawn.shape else { return Pictures::default() };
    let size = height * width * channels;
    let of = |all: &[f64], at: usize, each: usize| all.get(at * each..at * each + size).map(<[f64]>::to_vec);
    let each = drawn.maps.len() / e.rows.len().max(1);
    let low = drawn.x.iter().copied().fold(f64::INFINITY, f64::min);
    let high = drawn.x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let listed = [&a.most_dfil, &a.least_dfil, &a.most_eta, &a.least_eta, &a.most_plis, &a.least_plis];
    let mut out = Pictures::default();
    for shown in listed.into_iter().flatten() {
        let Some(at) = e.rows.iter().position(|r| r.record as u64 == shown.record) else { continue };
        out.records.entry(shown.record).or_insert_with(|| Shown {
            input: of(&drawn.x, at, size).and_then(|values| Picture::image(shape, &values, [low, high])),
            plis: of(&drawn.maps, at, each).and_then(|values| heat(shape, &values, drawn.channels_first)),
            compared_plis: None,
        });
    }
    out
}

fn heat([height, width, channels]: [usize; 3], values: &[f64], channels_first: bool) -> Option<Picture> {
    let pixels = height * width;
    let at = |pixel: usize, c: usize| if channels_first { c * pixels + pixel } else { pixel * channels + c };
    let norm = |pixel: usize| (0..channels).map(|c| values[at(pixel, c)].powi(2)).sum::<f64>().sqrt();
    let sizes: Vec<f64> = (0..pixels).map(norm).collect();
    let most = sizes.iter().copied().fold(0.0, f64::max);
    Picture::heat([height, width], &sizes, most)
}
