//! The audit of a network: what one gradient step gives away about every record.

use super::assemble;
use super::data::{Part, Reading, Source, one_array};
use super::measuring::{AuditLeaks, AuditSubject, MeasurePlan, Scored, audit_leaks, comparable};
use super::model::{Model, trained_precision};
use super::table::{Coding, ENCODING, Which, is_table};
use super::{Device, Precision, ReleaseRequest};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_net::io::Array;
use leakscope_net::{
    Clip, Loss, Network, Real, Shape,
    leak::{Label, Measure, Plis, Probe, Signal, Spectral, Trace, grid},
    random::{Generator, Purpose},
};
use leakscope_report::PageKind;
use leakscope_report::net::{self as page, NetAudit, PrivacyFacts};
use leakscope_table::{Hooks, RecordsFormat, Stage, Subset};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an audit of a network is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetAuditRequest {
    /// A folder that a run left.
    pub model: PathBuf,
    /// The training records.
    pub data: Vec<PathBuf>,
    /// Use only the first records of them.
    pub limit: Option<usize>,
    /// How many records to measure, drawn by the seed; absent: all.
    pub records: Option<usize>,
    /// How the trace is computed.
    pub trace: TraceRequest,
    /// Whether η and JacSens are measured too.
    pub eta: bool,
    /// Whether PLIS is measured too, and its maps drawn: of the released gradient, or of the raw one.
    pub plis: Option<Signal>,
    /// Side of the squares of the maps, in pixels; PLIS of each is in the table of records too.
    pub grid: Option<usize>,
    /// A file of region numbers for both instead.
    pub superpixels: Option<PathBuf>,
    /// Whether the label is part of the secret; absent: as in training, else public.
    pub label: Option<Label>,
    /// Clip and noise; absent: those of the run.
    pub release: ReleaseRequest,
    /// Another model, whose PLIS maps are drawn beside.
    pub compare: Option<PathBuf>,
    /// Points that were not trained on.
    pub score: Vec<PathBuf>,
    /// Mean and standard deviation that values are scaled by; absent: as in training.
    pub normalize: Option<[f64; 2]>,
    /// Whether records are shown on the page.
    pub pictures: bool,
    /// Seed of probes and of the choice of records.
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

/// How the trace of the information is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceRequest {
    /// Exactly.
    Exact,
    /// Exactly, and what each value of a record adds to it.
    Elements,
    /// Not at all.
    Skip,
    /// By so many random probes.
    Probes(usize),
}

impl Default for NetAuditRequest {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            data: vec![],
            limit: None,
            records: Some(1000),
            trace: TraceRequest::Probes(10),
            eta: false,
            plis: None,
            grid: None,
            superpixels: None,
            label: None,
            release: ReleaseRequest::default(),
            compare: None,
            score: vec![],
            normalize: None,
            pictures: true,
            seed: None,
            format: RecordsFormat::default(),
            precision: None,
            device: Device::default(),
            redact: false,
        }
    }
}

/// An audit with its files written.
#[derive(Debug, Clone)]
pub struct NetAuditOutcome {
    /// The audit.
    pub audit: NetAudit,
    /// What was written.
    pub written: Vec<PathBuf>,
}

/// Audits as the request says; `out` receives the document, the page and the tables.
pub fn run(
    request: &NetAuditRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<NetAuditOutcome> {
    match request.precision.unwrap_or_else(|| trained_precision(&request.model)) {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, hooks, on_seed),
        Precision::F64 => run_in::<f64>(request, out, hooks, on_seed),
    }
}

fn run_in<T: Real>(
    args: &NetAuditRequest,
    out: Option<&Path>,
    hooks: &Hooks,
    on_seed: &dyn Fn(u64),
) -> Result<NetAuditOutcome> {
    let backend = args.device.backend_in(args.precision)?;
    let model = Model::<T>::open(&args.model, "model", backend)?;
    let other = args.compare.as_deref().map(|dir| Model::open(dir, "compare", backend)).transpose()?;
    let seed = args.seed.unwrap_or_else(crate::seed::draw);
    let mut plan = plan(args, &model, seed)?;
    let regions = args.superpixels.as_deref().map(read_regions).transpose()?;
    let groups = map_groups(args, &model.net, regions.as_ref().map(|(name, array)| (&**name, array)))?;
    let folder = out.map(|dir| Folder::open(dir, args.format)).transpose()?;
    if let Some(folder) = &folder {
        let read = args.data.iter().chain(&args.score).chain(&args.superpixels).map(PathBuf::as_path);
        let tables: &[&str] = if args.score.is_empty() { &["records"] } else { &["records", "scores"] };
        folder.spare(&read.collect::<Vec<_>>(), &["audit.json", "report.html"], tables)?;
    }
    let trained_on = model.training.as_ref().map(|t| t.data.normalize);
    let scale = args.normalize.or(trained_on).unwrap_or([0.0, 1.0]);
    if args.limit == Some(0) {
        return Err(Failure::number("limit", 0, "expected at least 1"));
    }
    let coding = Coding::of_model(&args.model)?.map(Arc::new);
    let mut source: Source<T> = match &coding {
        Some(coding) => {
            no_array_options(args)?;
            plan.exact_if_few(model.net.input().len());
            rows(coding, &args.data, ("data", Subset::Training), hooks)?
        }
        None => {
            table_without_encoding(args)?;
            let reading = Reading { flag: "data", part: Part::Train, normalize: scale, limit: args.limit };
            Source::read(&args.data, reading)?
        }
    };
    let data = source.take_data(&model.net)?;
    if let Some(other) = &other {
        comparable(&data, &model.net, &other.net)?;
    }
    let ids = choose(args.records, data.len(), seed)?;
    let points = scored(args, coding.as_ref(), scale, &model.net, hooks)?;
    let point_ids = points.as_ref().map_or(Ok(Vec::new()), |p| choose(args.records, p.data.len(), seed))?;
    if args.seed.is_none() {
        on_seed(seed);
    }
    let (files, range, names) = (source.files, source.range, source.names);
    let tabled = args.grid.is_some() || args.superpixels.is_some();
    let subject = AuditSubject {
        model,
        other,
        data,
        files,
        names,
        range,
        ids,
        points,
        point_ids,
        plan,
        groups,
        tabled,
        scale,
        seed,
        redact: args.redact,
    };
    let total = subject.passes();
    let leaks = audit_leaks(subject, &|done| tick(hooks, done, total))?;
    let mut audit = crate::output::complete(assemble::audit(&leaks))?;
    let written = match &folder {
        Some(folder) => published(args, folder, &leaks, &mut audit)?,
        None => Vec::new(),
    };
    Ok(NetAuditOutcome { audit, written })
}

/// The points that were not trained on, where there are any.
fn scored<T: Real>(
    args: &NetAuditRequest,
    coding: Option<&Arc<Coding>>,
    scale: [f64; 2],
    net: &Network<T>,
    hooks: &Hooks,
) -> Result<Option<Scored<T>>> {
    if args.score.is_empty() {
        return Ok(None);
    }
    let source = match coding {
        Some(coding) => rows(coding, &args.score, ("score", Subset::All), hooks)?,
        None => {
            let reading = Reading { flag: "score", part: Part::Test, normalize: scale, limit: None };
            Source::read(&args.score, reading)?
        }
    };
    Ok(Some(points(source, net)?))
}

/// Writes the document, the page and the tables; the document then names the tables.
fn published<T: Real>(
    args: &NetAuditRequest,
    folder: &Folder,
    leaks: &AuditLeaks<T>,
    audit: &mut NetAudit,
) -> Result<Vec<PathBuf>> {
    let pictures = match args.pictures {
        false => page::Pictures::default(),
        true => assemble::pictures(leaks, audit)?,
    };
    let mut pending = Pending::default();
    pending.tables(assemble::tables(leaks, folder)?);
    audit.tables = pending.table_names();
    texts(folder, &mut pending, audit, &pictures)?;
    folder.publish(pending)
}

/// The rows of a table, encoded as those that the model was trained on.
pub(super) fn rows<T: Real>(
    coding: &Arc<Coding>,
    files: &[PathBuf],
    (flag, subset): (&str, Subset),
    hooks: &Hooks,
) -> Result<Source<T>> {
    let table = coding.table(files, flag)?;
    let which = Which { flag, target_optional: subset == Subset::All, subset };
    let names = files.iter().map(|f| leakscope_table::display_name(f)).collect();
    Ok(Source::of_rows(coding.rows(&table, which, hooks)?, coding, names))
}

/// Refuses what is for arrays where the model was trained on rows.
fn no_array_options(args: &NetAuditRequest) -> Result<()> {
    for (flag, is_set) in [("normalize", args.normalize.is_some()), ("limit", args.limit.is_some())] {
        if is_set {
            let message = "the model was trained on the rows of a table, which are encoded as in training: leave it out";
            return Err(Failure::option(flag, message));
        }
    }
    Ok(())
}

/// Refuses a table where nothing says how its columns became values.
fn table_without_encoding(args: &NetAuditRequest) -> Result<()> {
    match args.data.iter().chain(&args.score).find(|p| is_table(p)) {
        None => Ok(()),
        Some(path) => Err(Failure::option(
            "data",
            format!(
                "{}: {} has no {ENCODING}, which says how the columns of a table become values: train on the table with \
                 ⟨target⟩, or give the arrays that the model was trained on",
                path.display(),
                args.model.display()
            ),
        )),
    }
}

/// Tells how far a pass over records is; an error where it is to stop.
pub fn tick(hooks: &Hooks, done: u64, total: u64) -> Result<()> {
    if hooks.interrupted() {
        return Err(Failure::Interrupted);
    }
    hooks.report(Stage::Records, done, total);
    Ok(())
}

/// The audit and its page.
pub(super) fn texts(
    folder: &Folder,
    pending: &mut Pending,
    audit: &page::NetAudit,
    pictures: &page::Pictures,
) -> Result<()> {
    folder.text(pending, "audit.json", &page::to_json(audit))?;
    folder.page(pending, PageKind::Audit, &page::page(audit, pictures))
}

/// What the words ask for, of a model.
pub(super) fn plan<T: Real>(args: &NetAuditRequest, model: &Model<T>, seed: u64) -> Result<MeasurePlan> {
    let trained = model.training.as_ref().and_then(|t| t.privacy.as_ref());
    let (clip, sigma) = (args.release.clip()?, args.release.sigma()?);
    let chosen = sigma.is_some() || trained.is_some();
    let clip = clip.or_else(|| trained.map(trained_clip)).unwrap_or(Clip::None);
    let sigma = sigma.or(trained.map(|p| p.sigma)).unwrap_or(1.0);
    let trace = match args.trace {
        TraceRequest::Exact => Trace::Exact,
        TraceRequest::Elements => Trace::Elements,
        TraceRequest::Skip => Trace::Skip,
        TraceRequest::Probes(probes) if probes >= 2 => Trace::Estimate { probes, probe: Probe::Rademacher },
        TraceRequest::Probes(probes) => {
            let expected = "expected exact, elements, skip, or a number of probes from 2";
            return Err(Failure::number("trace", probes, expected));
        }
    };
    let label = match (args.label, &model.training) {
        (Some(label), _) => label,
        (None, Some(t)) if t.label_secret => Label::Secret,
        (None, _) => Label::Public,
    };
    let eta = args.eta.then(Spectral::of::<T>);
    let plis = match (args.plis, trace) {
        (None, _) => Plis::Skip,
        (Some(_), Trace::Elements) => Plis::Elements,
        (Some(_), _) if args.grid.is_some() || args.superpixels.is_some() => Plis::Elements,
        (Some(_), _) => Plis::Record,
    };
    let signal = args.plis.unwrap_or_default();
    let released = Measure { label, trace, eta, plis, signal, ..Measure::new(clip, sigma, seed) };
    let plain = args.eta.then(|| Measure {
        clip: Clip::None,
        sigma: released.noise(),
        trace: Trace::Skip,
        plis: Plis::Skip,
        ..released.clone()
    });
    Ok(MeasurePlan { released, plain, chosen, factor: 1.0, maps: false })
}

/// The clip that a run trained with; nothing is clipped where it is not known.
pub(super) fn clip_of(training: Option<&page::Training>) -> Clip {
    training.and_then(|t| t.privacy.as_ref()).map_or(Clip::None, trained_clip)
}

fn trained_clip(p: &PrivacyFacts) -> Clip {
    use leakscope_report::net::ClipKind;
    match p.clip_kind {
        ClipKind::Gelu => Clip::Gelu { bound: p.clip },
        ClipKind::None => Clip::None,
        ClipKind::Hard => Clip::Hard { bound: p.clip },
    }
}

/// The records to measure, ascending.
pub(super) fn choose(records: Option<usize>, n: usize, seed: u64) -> Result<Vec<usize>> {
    let wanted = match records {
        None => n,
        Some(0) => return Err(Failure::option("records", "`0`: expected a number from 1, or all")),
        Some(k) => k.min(n),
    };
    let mut ids = match wanted == n {
        true => (0..n).collect(),
        false => Generator::new(seed, Purpose::Sampling, 0).permutation(n),
    };
    ids.truncate(wanted);
    ids.sort_unstable();
    Ok(ids)
}

/// Groups of pixels of the maps; every pixel on its own without --grid, and none where records are no images.
pub(super) fn map_groups<T: Real>(
    args: &NetAuditRequest,
    net: &Network<T>,
    superpixels: Option<(&str, &Array<f64>)>,
) -> Result<Option<Vec<u32>>> {
    match (args.plis.is_some(), net.input(), args.grid, superpixels) {
        (true, Shape::Image(shape), _, Some((name, array))) => Ok(Some(regions(name, array, shape)?)),
        (true, Shape::Image(_), size, None) => {
            Ok(Some(grid(net.input(), size.unwrap_or(1)).map_err(|e| Failure::option("grid", e))?))
        }
        (true, Shape::Vector(_) | Shape::Sequence(_) | Shape::Tokens { .. }, Some(_), _) => {
            Err(Failure::option("grid", "records are no images: leave it out"))
        }
        (true, Shape::Vector(_) | Shape::Sequence(_) | Shape::Tokens { .. }, _, Some(_)) => {
            Err(Failure::option("superpixels", "records are no images: leave it out"))
        }
        (true, Shape::Vector(_) | Shape::Sequence(_) | Shape::Tokens { .. }, None, None) | (false, ..) => {
            Ok(None)
        }
    }
}

fn read_regions(file: &Path) -> Result<(String, Array<f64>)> {
    let array = one_array(file).map_err(|e| Failure::option("superpixels", e))?;
    Ok((file.display().to_string(), array))
}

/// The region of every value of an image, all channels of a pixel together.
fn regions(name: &str, array: &Array<f64>, [height, width, channels]: [usize; 3]) -> Result<Vec<u32>> {
    let bad = |reason: String| Failure::option("superpixels", format!("{name}: {reason}"));
    if array.shape != [height, width] {
        return Err(bad(format!("it has shape {:?}, expected [{height}, {width}]", array.shape)));
    }
    let most = height * width * channels;
    if let Some(v) = array.values.iter().find(|v| !(v.fract() == 0.0 && (0.0..most as f64).contains(*v))) {
        return Err(bad(format!("a region is {v}: expected whole numbers from 0, below {most}")));
    }
    Ok(array.values.iter().flat_map(|&v| std::iter::repeat_n(v as u32, channels)).collect())
}

/// Points to score; without labels the network's own answers stand in.
pub(super) fn points<T: Real>(mut source: Source<T>, net: &Network<T>) -> Result<Scored<T>> {
    let labelled = source.labelled();
    let data = match (labelled, net.loss()) {
        (true, _) => source.take_data(net)?,
        (false, Loss::SquaredError) => {
            return Err(Failure::option("score", "the network predicts values: give their targets as y"));
        }
        (false, Loss::SoftmaxCrossEntropy | Loss::BinaryCrossEntropy) => source.with_own_answers(net)?,
    };
    Ok(Scored { files: source.files, names: source.names, range: source.range, labelled, data })
}
