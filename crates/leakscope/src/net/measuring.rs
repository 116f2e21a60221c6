//! The measures of an audit: over records, over the other model, over points; from files or from memory.

use super::attributes::{AttributeEta, Attributes};
use super::audit::clip_of;
use super::data::Names;
use super::device::bounds_hold;
use super::elements::Elements;
use super::model::Model;
use crate::{Failure, Result};
use leakscope_net::{
    Backend, Clip, Data, Network, Real,
    leak::{Measure, Plis, RecordLeak, Trace, measure},
};

/// Records measured between two looks at Ctrl-C; a GPU wants many at a time, and is done with them as soon.
fn chunk<T: Real>(net: &Network<T>) -> usize {
    match net.backend() {
        Backend::Cpu => 128,
        Backend::Cuda(_) => 4096,
    }
}

/// What is measured, of every record.
#[derive(Debug, Clone)]
pub(super) struct MeasurePlan {
    /// Under the clip and the noise of the release.
    pub(super) released: Measure,
    /// Nothing clipped, under the same noise: JacSens as the paper defines it.
    pub(super) plain: Option<Measure>,
    /// Whether clip and noise were chosen.
    pub(super) chosen: bool,
    /// The loss is this many times the network's, as where a mean over outputs is meant. Everything is that of it.
    pub(super) factor: f64,
    /// Whether PLIS of every value is kept, record by record.
    pub(super) maps: bool,
}

/// One record's measures.
#[derive(Debug, Clone)]
pub(super) struct Leak {
    pub(super) released: RecordLeak,
    pub(super) plain: Option<RecordLeak>,
    /// Norms of PLIS over the groups of values, where they go into the table.
    pub(super) regions: Vec<f64>,
    /// η of every attribute of a table; empty where there is none.
    pub(super) attributes: Vec<AttributeEta>,
}

/// Points that were not trained on.
pub(super) struct Scored<T> {
    pub(super) files: Vec<String>,
    pub(super) names: Names,
    pub(super) range: [f64; 2],
    pub(super) labelled: bool,
    pub(super) data: Data<T>,
}

/// Everything that an audit is about.
pub(super) struct AuditSubject<T> {
    pub(super) model: Model<T>,
    /// The other model over the same records.
    pub(super) other: Option<Model<T>>,
    pub(super) data: Data<T>,
    /// Where the records come from.
    pub(super) files: Vec<String>,
    /// What they are called.
    pub(super) names: Names,
    /// Values that are shown black and white.
    pub(super) range: [f64; 2],
    /// The records that are measured, ascending.
    pub(super) ids: Vec<usize>,
    pub(super) points: Option<Scored<T>>,
    pub(super) point_ids: Vec<usize>,
    pub(super) plan: MeasurePlan,
    /// Groups of values of the maps; no maps without.
    pub(super) groups: Option<Vec<u32>>,
    /// Whether PLIS of the groups goes into the tables.
    pub(super) tabled: bool,
    pub(super) scale: [f64; 2],
    pub(super) seed: u64,
    /// Whether the page names no record.
    pub(super) redact: bool,
}

/// Everything that was found.
pub(super) struct AuditLeaks<T> {
    pub(super) subject: AuditSubject<T>,
    pub(super) leaks: Vec<Leak>,
    /// Of the other model; empty without one.
    pub(super) other: Vec<Leak>,
    /// Of points; empty without any.
    pub(super) scored: Vec<Leak>,
    pub(super) elements: Elements,
}

/// Values of a record, up to which the exact trace of the rows of a table costs little more than probes.
const FEW: usize = 64;

impl MeasurePlan {
    /// Takes the exact trace where records have few values: an estimate would be no cheaper, and says less.
    pub(super) fn exact_if_few(&mut self, values: usize) {
        if values <= FEW && matches!(self.released.trace, Trace::Estimate { .. }) {
            self.released.trace = Trace::Exact;
        }
    }

    /// Asks for PLIS of every value to be kept, where PLIS is asked for.
    pub(super) fn keep_maps(&mut self) {
        if self.released.plis != Plis::Skip {
            self.released.plis = Plis::Elements;
            self.maps = true;
        }
    }
}

impl<T: Real> AuditSubject<T> {
    /// What is measured of the other model: as much of PLIS, with the clip of its own run under the same noise.
    pub(super) fn of_other(&self, other: &Model<T>) -> MeasurePlan {
        let m = &self.plan.released;
        let clip = clip_of(other.training.as_ref());
        let released = Measure {
            clip,
            sigma: m.noise() / clip.unit(),
            plis: m.plis.clone(),
            signal: m.signal,
            ..skip(m)
        };
        MeasurePlan { released, plain: None, maps: false, ..self.plan.clone() }
    }

    /// The groups whose PLIS goes into the tables.
    fn tabled(&self) -> Option<&[u32]> {
        self.groups.as_deref().filter(|_| self.tabled)
    }

    /// The attributes whose η is measured: those of the table, where there is one.
    fn attributes(&self) -> Option<Attributes> {
        let coding = self.names.coding.as_deref()?;
        Some(Attributes::new(coding, &self.model.net, self.plan.released.label))
    }

    /// Records to measure, all in all.
    pub(super) fn passes(&self) -> u64 {
        (self.ids.len() * (1 + usize::from(self.other.is_some())) + self.point_ids.len()) as u64
    }
}

/// The measure without its costly parts.
pub(super) fn skip(m: &Measure) -> Measure {
    Measure { trace: Trace::Skip, eta: None, plis: Plis::Skip, ..m.clone() }
}

/// [`measure`] under a loss that is `factor` times the network's.
///
/// With g the network's gradient the released one is `clip_C(f g) = f clip_{C/f}(g)`, for every kind of clip, and noise
/// σC on it is noise σC/f on `clip_{C/f}(g)`: the same information. Only the loss and the norms have to be told.
pub(super) fn measure_times<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    ids: &[usize],
    m: &Measure,
    factor: f64,
) -> Result<Vec<RecordLeak>> {
    let (clip, sigma) = match m.clip {
        Clip::None => (Clip::None, m.sigma / factor),
        Clip::Hard { bound } => (Clip::Hard { bound: bound / factor }, m.sigma),
        Clip::Gelu { bound } => (Clip::Gelu { bound: bound / factor }, m.sigma),
    };
    let mut audit_leaks = measure(net, data, ids, &Measure { clip, sigma, ..m.clone() })?;
    for leak in &mut audit_leaks {
        leak.loss *= factor;
        leak.gradient_norm *= factor;
        leak.released_norm *= factor;
    }
    Ok(audit_leaks)
}

/// Refuses to compare with a model made for other records.
pub(super) fn comparable<T: Real>(data: &Data<T>, net: &Network<T>, other: &Network<T>) -> Result<()> {
    let made =
        |net: &Network<T>| format!("records of shape {:?} and {} outputs", net.input().dims(), net.outputs());
    data.check(other).map_err(|_| {
        let message = format!(
            "it was made for {}, the model of ⟨model⟩ for {}: compare models of the same records and labels",
            made(other),
            made(net)
        );
        Failure::option("compare", message)
    })
}

/// Measures all that was asked for; `tick` hears how many records are done, and may stop it.
pub(super) fn audit_leaks<T: Real>(
    subject: AuditSubject<T>,
    tick: &dyn Fn(u64) -> Result<()>,
) -> Result<AuditLeaks<T>> {
    let exact = matches!(subject.plan.released.trace, Trace::Exact | Trace::Elements);
    bounds_hold(subject.model.net.backend(), exact, "an exact trace")?;
    bounds_hold(
        subject.model.net.backend(),
        subject.names.coding.is_some(),
        "an audit of a table's attributes",
    )?;
    let mut elements = Elements::keeping(subject.plan.maps);
    let mut passes = Passes { tick, groups: subject.tabled(), attributes: subject.attributes(), done: 0 };
    let leaks =
        passes.leaks(&subject.model.net, &subject.data, &subject.ids, &subject.plan, &mut elements)?;
    passes.attributes = None;
    let other = match &subject.other {
        Some(other) => {
            comparable(&subject.data, &subject.model.net, &other.net)?;
            let plan = subject.of_other(other);
            passes.leaks(&other.net, &subject.data, &subject.ids, &plan, &mut Elements::default())?
        }
        None => Vec::new(),
    };
    let scored = match &subject.points {
        Some(p) => {
            let kept = &mut Elements::default();
            passes.leaks(&subject.model.net, &p.data, &subject.point_ids, &subject.plan, kept)?
        }
        None => Vec::new(),
    };
    Ok(AuditLeaks { subject, leaks, other, scored, elements })
}

/// Where the passes over records stand.
struct Passes<'a> {
    tick: &'a dyn Fn(u64) -> Result<()>,
    /// Groups of values whose PLIS is kept.
    groups: Option<&'a [u32]>,
    /// Attributes of a table that are measured too.
    attributes: Option<Attributes>,
    done: u64,
}

impl Passes<'_> {
    fn leaks<T: Real>(
        &mut self,
        net: &Network<T>,
        data: &Data<T>,
        ids: &[usize],
        plan: &MeasurePlan,
        elements: &mut Elements,
    ) -> Result<Vec<Leak>> {
        let mut out = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(chunk(net)) {
            (self.tick)(self.done)?;
            let start = out.len();
            out.extend(chunk_leaks(net, data, chunk, plan)?);
            if let Some(attributes) = &self.attributes {
                let each = attributes.measure(net, data, chunk, plan)?;
                out[start..].iter_mut().zip(each).for_each(|(leak, eta)| leak.attributes = eta);
            }
            for leak in &mut out[start..] {
                if let Some(groups) = self.groups {
                    leak.regions = group_norms(&leak.released.plis_parts, groups);
                }
                elements.add(leak);
            }
            self.done += chunk.len() as u64;
        }
        (self.tick)(self.done)?;
        Ok(out)
    }
}

fn chunk_leaks<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    ids: &[usize],
    plan: &MeasurePlan,
) -> Result<Vec<Leak>> {
    let measured = |m: &Measure| measure_times(net, data, ids, m, plan.factor);
    let leak = |released, plain| Leak { released, plain, regions: Vec::new(), attributes: Vec::new() };
    let released = measured(&plan.released)?.into_iter();
    match &plan.plain {
        None => Ok(released.map(|l| leak(l, None)).collect()),
        // where nothing is clipped both are the same gradient
        Some(_) if plan.released.clip == Clip::None => {
            Ok(released.map(|l| leak(l.clone(), Some(l))).collect())
        }
        Some(plain) => {
            Ok(released.zip(measured(plain)?).map(|(released, plain)| leak(released, Some(plain))).collect())
        }
    }
}

/// Norms of values over the groups they belong to.
fn group_norms(values: &[f64], groups: &[u32]) -> Vec<f64> {
    let count = groups.iter().max().map_or(0, |g| *g as usize + 1);
    let mut squares = vec![0.0; count];
    groups.iter().zip(values).for_each(|(g, v)| squares[*g as usize] += v * v);
    squares.into_iter().map(f64::sqrt).collect()
}
