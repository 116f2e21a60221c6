//! Measures to what people read: the audit's data, its pictures, its tables.

use super::account::summary;
use super::attributes;
use super::clip_facts;
use super::data::{Names, label_column};
use super::exceeds::exceeds;
use super::extremes::{extremes, intervals};
use super::measuring::{AuditLeaks, Leak, Scored, measure_times};
use super::model::Model;
use super::prior;
use crate::Result;
use crate::output::Folder;
use leakscope_core::claim::{Bound, Measured, Theorem};
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;
use leakscope_net::{
    Clip, Data, Loss, Network, Real, Shape,
    leak::{Label, Measure, Plis, RecordLeak, Signal, Trace},
};
use leakscope_report::choice;
use leakscope_report::net::{
    AUDIT_SCHEMA, Compared, DataFacts, Histogram, NetAudit, Picture, Pictures, Record, Release, Score,
    ScoredBy, Shown, TraceKind,
};
use leakscope_table::{RecordsSchema, RecordsWriter};
use std::collections::BTreeMap;

/// Records shown at either end.
pub(super) const SHOWN: usize = 8;

/// A number of a record, by which it is ranked or summarised.
pub(super) type Number = fn(&Leak) -> Option<f64>;

pub(super) fn dfil(l: &Leak) -> Option<f64> {
    l.released.dfil.map(|d| d.value)
}

pub(super) fn eta(l: &Leak) -> Option<f64> {
    l.released.eta.map(|e| e.value)
}

pub(super) fn gradient_norm(l: &Leak) -> Option<f64> {
    Some(l.released.gradient_norm)
}

pub(super) fn plis(l: &Leak) -> Option<f64> {
    l.released.plis
}

/// Intervals of dFIL over these records at once; empty where it is exact or was not measured.
pub(super) fn dfil_intervals(leaks: &[Leak], trace: Trace) -> Vec<Interval> {
    let Trace::Estimate { probes, .. } = trace else { return Vec::new() };
    let dfil: Option<Vec<Measured>> = leaks.iter().map(|l| l.released.dfil).collect();
    dfil.map(|dfil| intervals(&dfil, probes as u64)).unwrap_or_default()
}

pub(super) fn values(leaks: &[Leak], of: Number) -> Vec<f64> {
    leaks.iter().filter_map(of).collect()
}

pub(super) fn summarised(leaks: &[Leak], of: Number) -> Option<Summary> {
    let all = values(leaks, of);
    (!all.is_empty()).then(|| summary(&all))
}

/// JacSens from the plain measure, whose noise is divided out.
fn jacobian_sensitivity(l: &Leak, noise: f64) -> Option<f64> {
    l.plain.as_ref().and_then(|p| p.eta).map(|e| e.value * noise)
}

/// Positions of the records at one end of a ranking.
pub(super) fn ends(leaks: &[Leak], of: Number, most: bool) -> impl Iterator<Item = usize> {
    let mut all: Vec<(f64, usize)> =
        leaks.iter().enumerate().filter_map(|(i, l)| of(l).map(|v| (v, i))).collect();
    all.sort_by(|a, b| if most { b.0.total_cmp(&a.0) } else { a.0.total_cmp(&b.0) }.then(a.1.cmp(&b.1)));
    all.into_iter().take(SHOWN).map(|(_, i)| i)
}

/// What is known of a record beside its measures.
#[derive(Default)]
pub(super) struct RecordFacts {
    /// Its id; absent where it has a number alone.
    pub(super) id: Option<String>,
    /// The attribute that leaks most of it, and its η; absent without a table.
    pub(super) most_exposed_attribute: Option<(String, f64)>,
    pub(super) label: Option<String>,
    pub(super) right: Option<bool>,
}

/// One record as the document lists it.
pub(super) fn record(l: &Leak, facts: RecordFacts, interval: Option<Interval>, noise: f64) -> Record {
    let r = &l.released;
    Record {
        record: r.record as u64,
        id: facts.id,
        most_exposed_attribute: facts.most_exposed_attribute,
        label: facts.label,
        right: facts.right,
        loss: r.loss,
        gradient_norm: r.gradient_norm,
        dfil: r.dfil,
        dfil_interval: interval,
        eta: eta(l),
        jacobian_sensitivity: jacobian_sensitivity(l, noise),
        plis: plis(l),
        compared_plis: None,
    }
}

/// The records at one end of a ranking.
fn ranked<T: Real>(
    audit_leaks: &AuditLeaks<T>,
    leaks: &[Leak],
    (data, names): (&Data<T>, &Names),
    of: Number,
    most: bool,
) -> Vec<Record> {
    let noise = audit_leaks.subject.plan.released.noise();
    let (trained_on, loss) =
        (std::ptr::eq(data, &audit_leaks.subject.data), audit_leaks.subject.model.net.loss());
    let intervals = dfil_intervals(leaks, audit_leaks.subject.plan.released.trace);
    ends(leaks, of, most)
        .map(|i| {
            let r = &leaks[i].released;
            let other = audit_leaks.other.get(i).filter(|_| trained_on);
            let facts = RecordFacts {
                id: names.id(r.record),
                most_exposed_attribute: attributes::most_exposed(names, &leaks[i]),
                label: names.short_label(data, r.record, loss),
                right: right(r, loss),
            };
            let record = record(&leaks[i], facts, intervals.get(i).copied(), noise);
            Record { compared_plis: other.and_then(plis), ..record }
        })
        .collect()
}

/// Whether the network gets a record right; a prediction of values is not right or wrong.
fn right(r: &RecordLeak, loss: Loss) -> Option<bool> {
    (loss != Loss::SquaredError).then_some(r.right)
}

fn accuracy<T: Real>(net: &Network<T>, leaks: &[Leak]) -> Option<f64> {
    let right = leaks.iter().filter(|l| l.released.right).count();
    match net.loss() {
        Loss::SquaredError => None,
        Loss::SoftmaxCrossEntropy | Loss::BinaryCrossEntropy => {
            Some(right as f64 / leaks.len().max(1) as f64)
        }
    }
}

/// The variance of every value over the measured records.
fn variances<T: Real>(data: &Data<T>, leaks: &[Leak]) -> Vec<f64> {
    let (n, d) = (leaks.len().max(1) as f64, data.input().len());
    let rows = || leaks.iter().map(|l| data.record(l.released.record));
    let mut means = vec![0.0; d];
    rows().for_each(|row| means.iter_mut().zip(row).for_each(|(m, v)| *m += v.to_f64() / n));
    let mut variances = vec![0.0; d];
    for row in rows() {
        for ((s, m), v) in variances.iter_mut().zip(&means).zip(row) {
            *s += (v.to_f64() - m).powi(2) / n;
        }
    }
    variances
}

/// By van Trees, with what the measured records give away on average; the standard error is that of the traces.
fn any_estimate<T: Real>(f: &AuditLeaks<T>, variances: &[f64]) -> Option<Measured> {
    let traces: Vec<Measured> = f.leaks.iter().filter_map(|l| l.released.trace).collect();
    if traces.is_empty() {
        return None;
    }
    let n = traces.len() as f64;
    let information: Vec<f64> =
        f.elements.means(variances.len()).into_iter().map(|e| e.information).collect();
    if !information.is_empty() {
        return Some(Measured::exact(prior::by_value(&information, variances)));
    }
    let mean = traces.iter().map(|t| t.value).sum::<f64>() / n;
    let value = prior::by_trace(mean, variances);
    let errors: Option<Vec<f64>> = traces.iter().map(|t| t.standard_error).collect();
    let error = errors.map(|e| e.iter().map(|e| e * e).sum::<f64>().sqrt() / n);
    Some(Measured { value, standard_error: error.map(|e| value - prior::by_trace(mean + e, variances)) })
}

/// The audit's data.
pub(super) fn audit<T: Real>(f: &AuditLeaks<T>) -> NetAudit {
    let m = &f.subject.plan.released;
    let (clip_kind, clip) = clip_facts(m.clip);
    let dfils = values(&f.leaks, dfil);
    let exact = matches!(m.trace, Trace::Exact | Trace::Elements);
    let most = dfils.iter().copied().fold(0.0, f64::max);
    let jacobians: Vec<f64> = f.leaks.iter().filter_map(|l| jacobian_sensitivity(l, m.noise())).collect();
    let ends = |of: Number, most: bool| ranked(f, &f.leaks, (&f.subject.data, &f.subject.names), of, most);
    let variances = variances(&f.subject.data, &f.leaks);
    NetAudit {
        schema: AUDIT_SCHEMA.to_owned(),
        tables: vec![],
        network: f.subject.model.facts(),
        data: DataFacts {
            files: f.subject.files.clone(),
            records: f.subject.data.len() as u64,
            test_records: None,
            normalize: f.subject.scale,
            target: f.subject.names.target(),
        },
        release: Release { clip_kind, clip, sigma: m.sigma, noise: m.noise(), chosen: f.subject.plan.chosen },
        label_secret: m.label == Label::Secret,
        trace: match m.trace {
            Trace::Skip => TraceKind::Skip,
            Trace::Exact | Trace::Elements => TraceKind::Exact,
            Trace::Estimate { probes, .. } => TraceKind::Estimate { probes: probes as u64 },
        },
        seed: f.subject.seed,
        measured: f.leaks.len() as u64,
        spread: variances.iter().sum::<f64>() / variances.len().max(1) as f64,
        loss: f.leaks.iter().map(|l| l.released.loss).sum::<f64>() / f.leaks.len().max(1) as f64,
        accuracy: accuracy(&f.subject.model.net, &f.leaks),
        gradient_norm: summary(&values(&f.leaks, gradient_norm)),
        dfil: summarised(&f.leaks, dfil),
        dfil_extremes: extremes(&dfil_intervals(&f.leaks, m.trace)),
        eta: summarised(&f.leaks, eta),
        jacobian_sensitivity: (!jacobians.is_empty()).then(|| summary(&jacobians)),
        plis: summarised(&f.leaks, plis),
        plis_of: (m.plis != Plis::Skip).then_some(m.signal),
        typical_error: any_estimate(f, &variances),
        min_mse: (exact && most > 0.0).then(|| Bound::at_least(1.0 / most, Theorem::CramerRaoGradient)),
        score: f.subject.points.as_ref().map(|s| score(f, s)),
        dfil_histogram: Histogram::of(&dfils),
        eta_histogram: Histogram::of(&values(&f.leaks, eta)),
        elements: f.elements.means(f.subject.model.net.input().len()),
        attributes: attributes::summarised(f),
        most_dfil: ends(dfil, true),
        least_dfil: ends(dfil, false),
        most_eta: ends(eta, true),
        least_eta: ends(eta, false),
        most_plis: ends(plis, true),
        least_plis: ends(plis, false),
        compared: f.subject.other.as_ref().map(|o| compared(o, &f.other)),
        training: f.subject.model.training.clone().map(Box::new),
        warnings: warnings(f),
        redact: f.subject.redact,
    }
}

fn compared<T: Real>(o: &Model<T>, leaks: &[Leak]) -> Compared {
    let training = o.training.as_ref();
    Compared {
        name: o.name.clone(),
        private: training.map(|t| t.privacy.is_some()),
        epsilon: training
            .and_then(|t| t.privacy.as_ref())
            .and_then(|p| p.promise.as_ref())
            .map(|p| p.epsilon),
        accuracy: accuracy(&o.net, leaks),
        gradient_norm: summary(&values(leaks, gradient_norm)),
        plis: summary(&values(leaks, plis)),
    }
}

fn score<T: Real>(f: &AuditLeaks<T>, s: &Scored<T>) -> Score {
    let each: [(choice::Measure, Number); 4] = [
        (choice::Measure::GradientNorm, gradient_norm),
        (choice::Measure::Dfil, dfil),
        (choice::Measure::Eta, eta),
        (choice::Measure::Plis, plis),
    ];
    let measured = each.iter().filter(|(_, of)| f.leaks.iter().any(|l| of(l).is_some())).count();
    let by = each.into_iter().filter_map(|(measure, of)| {
        let (training, points) = (summarised(&f.leaks, of)?, summarised(&f.scored, of)?);
        let above = f.scored.iter().filter_map(of).filter(|v| *v > training.p99).count();
        let above_training_p99 = above as f64 / f.scored.len().max(1) as f64;
        let (exceeds_training, exceeds_interval) =
            exceeds(&values(&f.leaks, of), &values(&f.scored, of), measured);
        Some(ScoredBy { measure, training, points, above_training_p99, exceeds_training, exceeds_interval })
    });
    let histogram = Histogram::of(&values(&f.leaks, gradient_norm));
    Score {
        files: s.files.clone(),
        n: f.scored.len() as u64,
        labelled: s.labelled,
        by: by.collect(),
        counts: histogram.as_ref().map(|h| h.count(&values(&f.scored, gradient_norm))).unwrap_or_default(),
        histogram,
        most: ranked(f, &f.scored, (&s.data, &s.names), gradient_norm, true),
    }
}

fn warnings<T: Real>(f: &AuditLeaks<T>) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(t) = &f.subject.model.training {
        if t.data.records != f.subject.data.len() as u64 {
            out.push(format!(
                "The model was trained on {} records, these are {}: the audit speaks of these records at the model’s \
                 parameters.",
                leakscope_report::format::count(t.data.records),
                leakscope_report::format::count(f.subject.data.len() as u64)
            ));
        }
        if t.data.normalize != f.subject.scale {
            out.push("The model was trained on values of another scale (⟨normalize⟩).".to_owned());
        }
    }
    let m = &f.subject.plan.released;
    let beyond = |bound: f64| f.leaks.iter().filter(|l| l.released.gradient_norm > bound).count();
    if let (Clip::Hard { bound }, Signal::Released) = (m.clip, m.signal)
        && m.plis != Plis::Skip
        && beyond(bound) > 0
    {
        out.push(format!(
            "{} of {} gradients are longer than the hard clip C. What is released of them has the length C whatever the \
             record is, so their PLIS is 0: train with ⟨clip_kind=gelu⟩, which leaves a little, or ask for \
             ⟨plis=raw⟩, PLIS before the clip.",
            beyond(bound),
            f.leaks.len()
        ));
    }
    if f.subject.plan.factor != 1.0 {
        out.push(format!(
            "The loss is {} times the one named here, and the audit is of it.",
            leakscope_report::format::number(f.subject.plan.factor)
        ));
    }
    let slow = f.leaks.iter().filter(|l| l.released.eta.is_some_and(|e| e.residual > 1e-3)).count();
    if slow > 0 {
        out.push(format!("For {slow} records η had not settled to 1e-3: it may be slightly too small."));
    }
    out
}

/// Pictures of the records that the page shows, with PLIS maps where `groups` are given.
pub(super) fn pictures<T: Real>(f: &AuditLeaks<T>, audit: &NetAudit) -> Result<Pictures> {
    let Shape::Image(shape) = f.subject.model.net.input() else { return Ok(Pictures::default()) };
    let mut out = Pictures::default();
    let a = audit;
    let shown = [&a.most_dfil, &a.least_dfil, &a.most_eta, &a.least_eta, &a.most_plis, &a.least_plis];
    for r in shown.into_iter().flatten() {
        out.records
            .entry(r.record)
            .or_insert_with(|| input(&f.subject.data, r.record, shape, f.subject.range));
    }
    if let (Some(scored), Some(s)) = (&f.subject.points, &audit.score) {
        for r in &s.most {
            out.scored.entry(r.record).or_insert_with(|| input(&scored.data, r.record, shape, scored.range));
        }
    }
    if let Some(groups) = &f.subject.groups {
        let draw = |net: &Network<T>, data: &Data<T>, shown: &BTreeMap<u64, Shown>, m: &Measure| {
            let ids: Vec<usize> = shown.keys().map(|&i| i as usize).collect();
            let plan = Measure {
                trace: Trace::Skip,
                eta: None,
                plis: Plis::Superpixels(groups.clone()),
                ..m.clone()
            };
            maps(f, net, data, &ids, &plan, groups, shape)
        };
        let (net, m) = (&f.subject.model.net, &f.subject.plan.released);
        let mut mine = draw(net, &f.subject.data, &out.records, m)?;
        let mut others = match &f.subject.other {
            Some(o) => draw(&o.net, &f.subject.data, &out.records, &f.subject.of_other(o).released)?,
            None => BTreeMap::new(),
        };
        for (id, shown) in &mut out.records {
            shown.plis = mine.remove(id);
            shown.compared_plis = others.remove(id);
        }
        if let Some(scored) = &f.subject.points {
            let mut theirs = draw(net, &scored.data, &out.scored, m)?;
            out.scored.iter_mut().for_each(|(id, shown)| shown.plis = theirs.remove(id));
        }
    }
    Ok(out)
}

fn input<T: Real>(data: &Data<T>, record: u64, shape: [usize; 3], range: [f64; 2]) -> Shown {
    let values: Vec<f64> = data.record(record as usize).iter().map(|v| v.to_f64()).collect();
    Shown { input: Picture::image(shape, &values, range), ..Shown::default() }
}

/// PLIS maps by record: a pixel shows the norm over its group, all channels together.
fn maps<T: Real>(
    f: &AuditLeaks<T>,
    net: &Network<T>,
    data: &Data<T>,
    ids: &[usize],
    plan: &Measure,
    groups: &[u32],
    [height, width, channels]: [usize; 3],
) -> Result<BTreeMap<u64, Picture>> {
    let mut out = BTreeMap::new();
    for leak in measure_times(net, data, ids, plan, f.subject.plan.factor)? {
        let pixels: Vec<f64> = groups
            .chunks(channels.max(1))
            .map(|g| g.first().and_then(|&g| leak.plis_parts.get(g as usize)).map_or(0.0, |v| v.abs()))
            .collect();
        let most = pixels.iter().copied().fold(0.0, f64::max);
        out.extend(Picture::heat([height, width], &pixels, most).map(|p| (leak.record as u64, p)));
    }
    Ok(out)
}

/// The tables: every measured record, every scored point.
pub(super) fn tables<T: Real>(f: &AuditLeaks<T>, folder: &Folder) -> Result<Vec<RecordsWriter>> {
    let mut out = vec![table(f, folder, "records", (&f.subject.data, &f.subject.names), &f.leaks, &f.other)?];
    if let Some(s) = &f.subject.points {
        out.push(table(f, folder, "scores", (&s.data, &s.names), &f.scored, &[])?);
    }
    Ok(out)
}

fn table<T: Real>(
    f: &AuditLeaks<T>,
    folder: &Folder,
    stem: &str,
    (data, names): (&Data<T>, &Names),
    leaks: &[Leak],
    others: &[Leak],
) -> Result<RecordsWriter> {
    let (noise, loss) = (f.subject.plan.released.noise(), f.subject.model.net.loss());
    let rows: Vec<Row<'_>> = leaks
        .iter()
        .enumerate()
        .map(|(i, leak)| {
            let r = &leak.released;
            let facts = RecordFacts {
                id: names.id(r.record),
                label: names.label(data, r.record, loss),
                right: right(r, loss),
                ..RecordFacts::default()
            };
            Row { leak, facts, compared_plis: others.get(i).and_then(plis) }
        })
        .collect();
    let measured = leaks.first().is_some_and(|l| !l.attributes.is_empty());
    let columns = Columns {
        id: names.id_column(),
        texts: label_column(data, loss),
        attributes: if measured { attributes::columns(f) } else { vec![] },
    };
    written(folder, stem, columns, &rows, noise)
}

/// Names of columns that differ from table to table.
pub(super) struct Columns {
    pub(super) id: String,
    /// The label, where records have one.
    pub(super) texts: Vec<String>,
    /// η of attributes; empty without a table.
    pub(super) attributes: Vec<String>,
}

/// A record as the tables list it.
pub(super) struct Row<'a> {
    pub(super) leak: &'a Leak,
    pub(super) facts: RecordFacts,
    pub(super) compared_plis: Option<f64>,
}

impl Row<'_> {
    fn numbers(&self, noise: f64) -> [(&'static str, Option<f64>); 15] {
        let (l, r) = (self.leak, &self.leak.released);
        [
            ("right", self.facts.right.map(|r| f64::from(u8::from(r)))),
            ("loss", Some(r.loss)),
            ("gradient_norm", Some(r.gradient_norm)),
            ("released_norm", Some(r.released_norm)),
            ("trace", r.trace.map(|t| t.value)),
            ("trace_standard_error", r.trace.and_then(|t| t.standard_error)),
            ("dfil", dfil(l)),
            ("dfil_standard_error", r.dfil.and_then(|t| t.standard_error)),
            ("dfil_low", dfil(l).zip(r.dfil_half_width).map(|(v, half)| (v - half).max(0.0))),
            ("dfil_high", dfil(l).zip(r.dfil_half_width).map(|(v, half)| v + half)),
            ("eta", eta(l)),
            ("eta_residual", r.eta.map(|e| e.residual)),
            ("jacobian_sensitivity", jacobian_sensitivity(l, noise)),
            ("plis", plis(l)),
            ("compared_plis", self.compared_plis),
        ]
    }
}

/// A table of records, with the columns of what was measured.
pub(super) fn written(
    folder: &Folder,
    stem: &str,
    columns: Columns,
    rows: &[Row<'_>],
    noise: f64,
) -> Result<RecordsWriter> {
    let all: Vec<_> = rows.iter().map(|row| row.numbers(noise)).collect();
    let count = all.first().map_or(0, |row| row.len());
    let kept: Vec<usize> = (0..count).filter(|&j| all.iter().any(|row| row[j].1.is_some())).collect();
    let mut numbers: Vec<String> = kept.iter().map(|&j| all[0][j].0.to_owned()).collect();
    let regions = rows.first().map_or(0, |row| row.leak.regions.len());
    numbers.extend((0..regions).map(|g| format!("plis_region_{g}")));
    numbers.extend(columns.attributes.iter().cloned());
    let schema = RecordsSchema { id: columns.id, texts: columns.texts, numbers };
    let mut writer = folder.table(stem, schema)?;
    let mut part = writer.parts().part();
    for (row, measures) in rows.iter().zip(&all) {
        let mut numbers: Vec<f64> = kept.iter().map(|&j| measures[j].1.unwrap_or(f64::NAN)).collect();
        numbers.extend(&row.leak.regions);
        numbers.extend(row.leak.attributes.iter().map(|a| a.free));
        let id = row.facts.id.clone().unwrap_or_else(|| row.leak.released.record.to_string());
        part.push(&id, row.facts.label.as_deref().as_slice(), &numbers)?;
    }
    writer.append(part)?;
    Ok(writer)
}
