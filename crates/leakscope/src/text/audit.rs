//! What does one noisy step of fine-tuning tell about every text? Request in, [`TextAudit`] out.

use super::exposure::exposures;
use super::model::{described, language_model, tokenizer};
use super::source::TextSource;
use super::texts::{Fields, Tokens, check_vocabulary, lines, tokens};
use crate::net::audit::{TraceRequest, tick};
use crate::net::device::bounds_hold;
use crate::net::{Device, Precision, ReleaseRequest, clip_facts};
use crate::output::{Folder, Pending, Results, write_tables};
use crate::{Failure, Result};
use leakscope_core::num::{Distribution, Summary};
use leakscope_net::leak::{Measure, Plis, Probe, RecordLeak, Signal, Spectral, Trace, by_position, measure};
use leakscope_net::text::{LanguageModel, Tokenizer, Trained, Tuned};
use leakscope_net::{Clip, Real};
use leakscope_report::net::{Release, TraceKind};
use leakscope_report::text_audit::{Record, SCHEMA, TextAudit, Texts};
use leakscope_report::{PageKind, owners_document, text_audit_page};
use leakscope_table::{Hooks, RecordsFormat, RecordsSchema, RecordsWriter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What an audit of texts is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextAuditRequest {
    /// The model and the texts.
    pub source: TextSource,
    /// Clip and noise.
    pub release: ReleaseRequest,
    /// How the trace is computed.
    pub trace: TraceRequest,
    /// Whether η is measured.
    pub eta: bool,
    /// Of which gradient PLIS is: beyond a hard clip the released norm does not move.
    pub plis: Signal,
    /// Secrets in the texts whose exposure is asked for.
    pub secrets: Vec<String>,
    /// What each of them might be, as a pattern (`leakscope_net::text::canary::pattern`).
    pub secret_pattern: Option<String>,
    /// Whether texts are shown on the page.
    pub show: bool,
    /// Seed of probes and of adapters.
    pub seed: Option<u64>,
    /// Numbers that the model computes with.
    pub precision: Precision,
    /// Where the model computes.
    pub device: Device,
    /// Whether the page names and shows no record.
    pub redact: bool,
}

impl Default for TextAuditRequest {
    fn default() -> Self {
        Self {
            source: TextSource::default(),
            release: ReleaseRequest::default(),
            trace: TraceRequest::Probes(10),
            eta: true,
            plis: Signal::Raw,
            secrets: vec![],
            secret_pattern: None,
            show: true,
            seed: None,
            precision: Precision::default(),
            device: Device::default(),
            redact: false,
        }
    }
}

impl TextAuditRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        self.source.check()?;
        if let TraceRequest::Probes(probes) = self.trace
            && probes < 2
        {
            let expected = "expected exact, skip, or a number of probes from 2";
            return Err(Failure::text("trace", probes, expected));
        }
        match (&self.secret_pattern, self.secrets.is_empty()) {
            (None, false) => {
                let message = "say what each secret might be, for example ⟨secret_pattern=4539 ####⟩";
                Err(Failure::option("secret_pattern", message))
            }
            (Some(_), true) => {
                Err(Failure::option("secret", "name a secret of the texts that the pattern stands for"))
            }
            (None, true) | (Some(_), false) => Ok(()),
        }
    }

    fn measure(&self, seed: u64) -> Result<(Measure, bool)> {
        let (clip, sigma) = (self.release.clip()?, self.release.sigma()?);
        let trace = match self.trace {
            TraceRequest::Exact | TraceRequest::Elements => Trace::Exact,
            TraceRequest::Skip => Trace::Skip,
            TraceRequest::Probes(probes) => Trace::Estimate { probes, probe: Probe::Rademacher },
        };
        let measures = Measure {
            trace,
            eta: self.eta.then(Spectral::default),
            signal: self.plis,
            ..Measure::new(clip.unwrap_or(Clip::None), sigma.unwrap_or(1.0), seed)
        };
        Ok((measures, sigma.is_some()))
    }
}

/// An audit, with the texts that its page shows and its table, still under a temporary name.
#[derive(Debug)]
pub struct TextAuditOutcome {
    /// The audit.
    pub audit: TextAudit,
    /// The texts that its page shows.
    pub texts: Texts,
    /// The table of records, where there is a folder.
    pub pending: Pending,
}

/// The names of what an audit leaves in a folder.
const FILES: (&[&str], &[&str]) = (&["audit.json", "report.html"], &["records"]);

/// Audits as the request says; the folder receives the table.
///
/// # Errors
/// Options that make no sense, models, tokenisers and texts that cannot be read.
pub fn run(request: &TextAuditRequest, folder: Option<&Folder>, hooks: &Hooks) -> Result<TextAuditOutcome> {
    request.check()?;
    match request.precision {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, folder, hooks),
        Precision::F64 => run_in::<f64>(request, folder, hooks),
    }
}

fn run_in<T: Real>(
    request: &TextAuditRequest,
    folder: Option<&Folder>,
    hooks: &Hooks,
) -> Result<TextAuditOutcome> {
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let (measures, chosen) = request.measure(seed)?;
    if let Some(folder) = folder {
        let read: Vec<&Path> = request.source.texts.iter().map(PathBuf::as_path).collect();
        folder.spare(&read, FILES.0, FILES.1)?;
    }
    let tuned = Tuned { part: request.source.layers, rank: request.source.rank, seed };
    let model: LanguageModel<T> = {
        let backend = request.device.backend_in(Some(request.precision))?;
        bounds_hold(backend, matches!(measures.trace, Trace::Exact | Trace::Elements), "an exact trace")?;
        language_model(&request.source.model, tuned, backend)?
    };
    let tokenizer = tokenizer(&request.source.model, request.source.tokenizer.as_deref())?;
    let fields = Fields { text: request.source.field.as_deref(), ..Fields::default() };
    let lines = lines(&request.source.texts, &request.source.list, fields)?;
    let texts = tokens(&lines, &tokenizer, model.context(), request.source.long)?;
    check_vocabulary(&texts, &lines, model.vocabulary())?;
    let clock = Instant::now();
    let leaks = measured(&model, &texts, &measures, hooks)?;
    let exposures = exposures(request, &tokenizer, &lines)?;
    let records: Vec<Record> = texts.iter().zip(&leaks).map(|(t, l)| record(t, l)).collect();
    let (clip_kind, clip) = clip_facts(measures.clip);
    let mut audit = crate::output::complete(TextAudit {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: crate::clock::now(),
        tables: vec![],
        model: described(&request.source.model, &model),
        trained: request.source.layers,
        rank: (request.source.layers == Trained::Adapters).then_some(request.source.rank as u64),
        trained_parameters: model.network().trained().iter().filter(|t| **t).count() as u64,
        files: request.source.texts.iter().map(|f| leakscope_table::display_name(f)).collect(),
        release: Release { clip_kind, clip, sigma: measures.sigma, noise: measures.noise(), chosen },
        trace: match measures.trace {
            Trace::Skip => TraceKind::Skip,
            Trace::Exact | Trace::Elements => TraceKind::Exact,
            Trace::Estimate { probes, .. } => TraceKind::Estimate { probes: probes as u64 },
        },
        plis_of: measures.signal,
        seed,
        precision: request.precision,
        spread: spread(&model)?,
        loss: summary(records.iter().map(|r| r.loss)),
        gradient_norm: summary(records.iter().map(|r| r.gradient_norm)),
        dfil: summarised(records.iter().filter_map(|r| r.dfil)),
        eta: summarised(records.iter().filter_map(|r| r.eta)),
        warnings: warnings(&measures, &leaks, lines.len(), records.len()),
        records,
        exposures,
        seconds: clock.elapsed().as_secs_f64(),
        redact: request.redact,
    })?;
    let texts = if request.show { exposed_texts(&audit, &texts, &tokenizer)? } else { Texts::new() };
    let mut pending = Pending::default();
    if let Some(folder) = folder {
        pending.tables([table(&audit, folder)?]);
        if folder.is_on_disk() {
            audit.tables = pending.table_names();
        }
    }
    Ok(TextAuditOutcome { audit, texts, pending })
}

/// The document and the page, beside the table that is there already.
///
/// # Errors
/// Files that cannot be written.
pub fn publish(folder: &Folder, outcome: TextAuditOutcome) -> Result<(TextAudit, Vec<PathBuf>)> {
    let TextAuditOutcome { audit, texts, mut pending } = outcome;
    folder.text(&mut pending, FILES.0[0], &owners_document(&audit))?;
    folder.page(&mut pending, PageKind::Audit, &text_audit_page(&audit, &texts))?;
    Ok((audit, folder.publish(pending)?))
}

/// Writes an audit that was made in memory into a folder.
///
/// # Errors
/// Files that cannot be written.
pub fn write(
    audit: &TextAudit,
    texts: &Texts,
    tables: &[Arc<Results>],
    out: &Path,
    format: RecordsFormat,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    folder.spare_named(&audit.files, FILES.0, FILES.1)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, tables)?;
    let audit = TextAudit { tables: pending.table_names(), ..audit.clone() };
    publish(&folder, TextAuditOutcome { audit, texts: texts.clone(), pending }).map(|done| done.1)
}

/// What every text gives away, in their order; texts of one length are measured together.
fn measured<T: Real>(
    model: &LanguageModel<T>,
    texts: &[Tokens],
    measures: &Measure,
    hooks: &Hooks,
) -> Result<Vec<RecordLeak>> {
    /// Texts measured between two looks at the clock.
    const AT_A_TIME: usize = 16;
    let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    texts.iter().enumerate().for_each(|(i, t)| by_length.entry(t.ids.len()).or_default().push(i));
    let mut out: Vec<Option<RecordLeak>> = vec![None; texts.len()];
    let mut done = 0;
    for (length, members) in by_length {
        let plis = Plis::Superpixels(by_position(length - 1, model.width()));
        let measures = Measure { plis, ..measures.clone() };
        for some in members.chunks(AT_A_TIME) {
            tick(hooks, done, texts.len() as u64)?;
            let ids: Vec<&[u32]> = some.iter().map(|&i| texts[i].ids.as_slice()).collect();
            let data = model.texts(&ids)?;
            let all: Vec<usize> = (0..some.len()).collect();
            for (&i, leak) in some.iter().zip(measure(model.network(), &data, &all, &measures)?) {
                out[i] = Some(leak);
            }
            done += some.len() as u64;
        }
    }
    Ok(out.into_iter().flatten().collect())
}

fn record(text: &Tokens, leak: &RecordLeak) -> Record {
    Record {
        record: text.name.clone(),
        tokens: text.ids.len() as u64,
        loss: leak.loss,
        gradient_norm: leak.gradient_norm,
        released_norm: leak.released_norm,
        dfil: leak.dfil.map(|d| d.value),
        dfil_standard_error: leak.dfil.and_then(|d| d.standard_error),
        eta: leak.eta.map(|e| e.value),
        plis: leak.plis.unwrap_or(0.0),
        plis_tokens: leak.plis_parts.iter().map(|p| p.abs()).collect(),
    }
}

/// Mean squared distance of an embedded value from its mean over the vocabulary.
fn spread<T: Real>(model: &LanguageModel<T>) -> Result<f64> {
    let (v, d) = (model.vocabulary(), model.width());
    let net = model.network();
    let Some(table) = net.tensors().into_iter().next().filter(|t| t.shape == [v, d]) else { return Ok(0.0) };
    let theta = net.parameters()?;
    let rows = theta[table.offset..][..v * d].chunks_exact(d);
    let mut sums = vec![(0.0, 0.0); d];
    for row in rows {
        for ((sum, square), x) in sums.iter_mut().zip(row) {
            *sum += x.to_f64();
            *square += x.to_f64() * x.to_f64();
        }
    }
    let n = v as f64;
    Ok(sums.iter().map(|(s, q)| (q / n - (s / n).powi(2)).max(0.0)).sum::<f64>() / d as f64)
}

fn summary(values: impl Iterator<Item = f64>) -> Summary {
    let mut all = Distribution::default();
    values.for_each(|v| all.add(v));
    all.summary()
}

fn summarised(values: impl Iterator<Item = f64>) -> Option<Summary> {
    let mut values = values.peekable();
    values.peek().is_some().then(|| summary(values))
}

fn warnings(measures: &Measure, leaks: &[RecordLeak], lines: usize, records: usize) -> Vec<String> {
    let mut out = vec![];
    if records > lines {
        out.push(format!(
            "Texts that are longer than the model's context were cut: {lines} lines are {records} texts, each measured on its \
             own. The lines of one person add up."
        ));
    }
    if let (Clip::Hard { bound }, Signal::Released) = (measures.clip, measures.signal) {
        let beyond = leaks.iter().filter(|l| l.gradient_norm > bound).count();
        if beyond > 0 {
            out.push(format!(
                "{beyond} of {records} gradients are longer than the hard clip C, and what is released of them has the length C \
                 whatever the text is: their PLIS is 0. Ask for PLIS of the raw gradient."
            ));
        }
    }
    let slow = leaks.iter().filter(|l| l.eta.is_some_and(|e| e.residual > 1e-3)).count();
    if slow > 0 {
        out.push(format!("For {slow} texts η had not settled to 1e-3: it may be slightly too small."));
    }
    out
}

/// The texts that the page shows, token by token.
fn exposed_texts(audit: &TextAudit, texts: &[Tokens], tokenizer: &Tokenizer) -> Result<Texts> {
    let mut out = Texts::new();
    for i in audit.most_exposed() {
        let pieces =
            texts[i].ids.iter().map(|&id| tokenizer.piece(id)).collect::<std::result::Result<_, _>>()?;
        out.insert(i, pieces);
    }
    Ok(out)
}

/// The table of all texts.
fn table(audit: &TextAudit, folder: &Folder) -> Result<RecordsWriter> {
    let names =
        ["tokens", "loss", "gradient_norm", "released_norm", "dfil", "dfil_standard_error", "eta", "plis"];
    let numbers = |r: &Record| {
        let number = |x: Option<f64>| x.unwrap_or(f64::NAN);
        [
            r.tokens as f64,
            r.loss,
            r.gradient_norm,
            r.released_norm,
            number(r.dfil),
            number(r.dfil_standard_error),
            number(r.eta),
            r.plis,
        ]
    };
    let kept: Vec<usize> =
        (0..names.len()).filter(|&j| audit.records.iter().any(|r| !numbers(r)[j].is_nan())).collect();
    let columns = kept.iter().map(|&j| names[j].to_owned()).collect();
    let mut writer =
        folder.table("records", RecordsSchema { id: "record".into(), texts: vec![], numbers: columns })?;
    let mut rows = writer.parts().part();
    for r in &audit.records {
        let all = numbers(r);
        rows.push(&r.record, &[], &kept.iter().map(|&j| all[j]).collect::<Vec<f64>>())?;
    }
    writer.append(rows)?;
    Ok(writer)
}
