//! The audit over arrays: a request with arrays and networks in the place of files.

use super::assemble;
use super::audit::{NetAuditRequest, map_groups, plan, points, texts, tick};
use super::data::Source;
use super::measuring::{AuditSubject, audit_leaks};
use super::model::{self, Model};
use super::table::{Coding, Which};
use crate::output::{Folder, Pending, Results, results, write_tables};
use crate::{Failure, Result};
use leakscope_net::io::Array;
use leakscope_net::{Data, Network, Real};
use leakscope_report::net::{NetAudit, Pictures, Training};
use leakscope_table::{Hooks, ReadOptions, RecordsFormat, Subset};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records and labels.
#[derive(Debug, Clone)]
pub struct NetArrays<T> {
    /// Shape of one record: a length, or height, width and channels.
    pub dims: Vec<usize>,
    /// Values, record by record.
    pub x: Vec<T>,
    /// How many values a label has, and the values; a class is one value.
    pub y: Option<(usize, Vec<T>)>,
}

/// Records in the place of files.
#[derive(Debug)]
pub enum NetData<T> {
    /// Arrays.
    Arrays(NetArrays<T>),
    /// Rows of a table, by the encoding that a training run left.
    Rows {
        /// The encoding.
        encoding: String,
        /// The table.
        read: ReadOptions,
    },
}

/// What stands in the place of the files of an audit.
#[derive(Debug)]
pub struct NetMemory<T> {
    /// The network with its weights.
    pub net: Network<T>,
    /// The training records.
    pub data: NetData<T>,
    /// Which of them are measured; all where nothing is said.
    pub records: Option<Vec<usize>>,
    /// Points that were not trained on.
    pub score: Option<NetData<T>>,
    /// Another network, whose PLIS is shown beside.
    pub compare: Option<Network<T>>,
    /// Region numbers, height × width, with their shape.
    pub superpixels: Option<(Vec<usize>, Vec<f64>)>,
    /// The loss is this many times the network's.
    pub factor: f64,
    /// The run that made the network, where it is known: clip and noise are its own where the request says nothing else.
    pub training: Option<Training>,
}

/// What an audit over arrays found.
#[derive(Debug, Clone)]
pub struct NetMeasured {
    /// The audit.
    pub audit: NetAudit,
    /// Pictures of its page.
    pub pictures: Pictures,
    /// `records` and, where there are points, `scores`.
    pub tables: Vec<Arc<Results>>,
    /// PLIS of every value of every measured record; empty where PLIS was not asked for.
    pub maps: Vec<f64>,
}

impl<T: Real> NetArrays<T> {
    pub(super) fn source(self, name: &str) -> Result<Source<T>> {
        let each: usize = self.dims.iter().product();
        let n = self.x.len() / each.max(1);
        let shape = std::iter::once(n).chain(self.dims).collect();
        let labels = self.y.map(|(each, values)| Array { shape: vec![n, each], values, bytes: false });
        Source::of_arrays(Array { shape, values: self.x, bytes: false }, labels, name)
    }

    /// The records with their labels as a network takes them.
    pub fn into_data(self, net: &Network<T>) -> Result<Data<T>> {
        self.source("x, y")?.take_data(net)
    }
}

impl<T: Real> NetData<T> {
    fn source(self, flag: &str, subset: Subset, hooks: &Hooks) -> Result<Source<T>> {
        match self {
            Self::Arrays(arrays) => arrays.source(if flag == "data" { "x, y" } else { flag }),
            Self::Rows { encoding, read } => {
                let coding = Arc::new(Coding::of_text(&encoding)?);
                let which = Which { flag, target_optional: subset == Subset::All, subset };
                let rows = coding.rows(&coding.open(&read)?, which, hooks)?;
                Ok(Source::of_rows(rows, &coding, read.names()))
            }
        }
    }
}

/// The same network again, with layers (by position) and a share of its parameters (the smallest) frozen.
pub fn frozen<T: Real>(net: &Network<T>, layers: &[usize], smallest: Option<f64>) -> Result<Network<T>> {
    let mut spec = net.spec().clone();
    model::freeze(&mut spec, layers)?;
    let mut copy = Network::new(spec, 0)?.on(net.backend())?;
    copy.load_tensors(&net.to_tensors()?)?;
    if let Some(share) = smallest {
        model::freeze_smallest(&mut copy, share)?;
    }
    Ok(copy)
}

/// Audits a network over arrays; files that the request names are not read.
pub fn audit<T: Real>(args: &NetAuditRequest, memory: NetMemory<T>, hooks: &Hooks) -> Result<NetMeasured> {
    let seed = args.seed.unwrap_or_else(crate::seed::draw);
    let model = |net, name: &str, training| Model { net, name: name.to_owned(), training };
    let model_here = model(memory.net, "network", memory.training);
    let mut plan = plan(args, &model_here, seed)?;
    plan.factor = memory.factor;
    // every value's PLIS is kept, so that those of regions follow
    plan.keep_maps();
    let superpixels = memory.superpixels.map(|(shape, values)| Array { shape, values, bytes: false });
    if args.grid.is_some() && args.plis.is_none() {
        return Err(Failure::option(
            "grid",
            "it is a grid of the maps that ⟨plis⟩ draws, which is not asked for",
        ));
    }
    if superpixels.is_some() && (args.grid.is_some() || args.plis.is_none()) {
        return Err(Failure::option("superpixels", "they go with ⟨plis⟩, and without ⟨grid⟩"));
    }
    let tabled = args.grid.is_some() || superpixels.is_some();
    let groups = map_groups(args, &model_here.net, superpixels.as_ref().map(|array| ("the array", array)))?;
    let mut source = memory.data.source("data", Subset::Training, hooks)?;
    let data = source.take_data(&model_here.net)?;
    if source.names.coding.is_some() {
        plan.exact_if_few(model_here.net.input().len());
    }
    let ids = memory.records.unwrap_or_else(|| (0..data.len()).collect());
    let score =
        memory.score.map(|s| points(s.source("score", Subset::All, hooks)?, &model_here.net)).transpose()?;
    let subject = AuditSubject {
        other: memory.compare.map(|net| model(net, "the other network", None)),
        point_ids: (0..score.as_ref().map_or(0, |p| p.data.len())).collect(),
        model: model_here,
        data,
        files: source.files,
        names: source.names,
        range: source.range,
        ids,
        points: score,
        plan,
        groups,
        tabled,
        scale: [0.0, 1.0],
        seed,
        redact: args.redact,
    };
    let total = subject.passes();
    let leaks = audit_leaks(subject, &|done| tick(hooks, done, total))?;
    let audit = crate::output::complete(assemble::audit(&leaks))?;
    let pictures = match args.pictures {
        false => Pictures::default(),
        true => assemble::pictures(&leaks, &audit)?,
    };
    let mut pending = Pending::default();
    pending.tables(assemble::tables(&leaks, &Folder::in_memory())?);
    Ok(NetMeasured { audit, pictures, tables: results(pending), maps: leaks.elements.into_maps() })
}

/// Writes an audit into a folder: what `leakscope net audit --out` leaves.
pub fn write(measured: &NetMeasured, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, &measured.tables)?;
    let audit = NetAudit { tables: pending.table_names(), ..measured.audit.clone() };
    texts(&folder, &mut pending, &audit, &measured.pictures)?;
    folder.publish(pending)
}
