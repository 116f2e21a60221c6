//! What `leakscope net audit` found, as plain data: `audit.json` of a network.

use super::choice::{ClipKind, Kind, Measure, Signal};
use super::training::Training;
use leakscope_core::claim::{Bound, Measured};
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;
use serde::{Deserialize, Serialize};

/// Schema of [`NetAudit`].
pub const AUDIT_SCHEMA: &str = "leakscope.net-audit/1";

/// What an audit of a network found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetAudit {
    /// [`AUDIT_SCHEMA`].
    pub schema: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The network.
    pub network: NetworkFacts,
    /// The records.
    pub data: DataFacts,
    /// The release whose leakage is measured: one noisy sum of clipped gradients.
    pub release: Release,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// How the traces were found.
    pub trace: TraceKind,
    /// Seed of probes, starting vectors and the choice of records.
    pub seed: u64,
    /// Records measured.
    pub measured: u64,
    /// Mean squared distance of a value from its mean over the measured records: what guessing the mean achieves.
    pub spread: f64,
    /// Mean loss over the measured records.
    pub loss: f64,
    /// Share of measured records that the network gets right.
    pub accuracy: Option<f64>,
    /// Norms of the gradients before clipping.
    pub gradient_norm: Summary,
    /// dFIL: trace of the information over the dimension.
    pub dfil: Option<Summary>,
    /// Where its extremes lie, where it is estimated: the largest of noisy numbers is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dfil_extremes: Option<Extremes>,
    /// η.
    pub eta: Option<Summary>,
    /// JacSens: the spectral norm of the Jacobian, nothing clipped, no noise.
    pub jacobian_sensitivity: Option<Summary>,
    /// Norm of PLIS.
    pub plis: Option<Summary>,
    /// Of which gradient PLIS is, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plis_of: Option<Signal>,
    /// For the most exposed record: least mean squared error per value of an unbiased estimate. Only where traces are
    /// exact; an estimate is no bound.
    pub min_mse: Option<Bound>,
    /// Mean squared error per value of any estimate, biased or not, by van Trees, were the expected information over a
    /// normal prior with the spread of the measured records that of these records: an estimate, no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_error: Option<Measured>,
    /// Histogram of dFIL.
    pub dfil_histogram: Option<Histogram>,
    /// Histogram of η.
    pub eta_histogram: Option<Histogram>,
    /// What each value of a record gives away, on average; empty where it was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<Element>,
    /// What each attribute of a table gives away, most first; empty where the records are no rows of a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<NetAttribute>,
    /// Records with most dFIL, most first.
    pub most_dfil: Vec<Record>,
    /// Records with least dFIL, least first.
    pub least_dfil: Vec<Record>,
    /// Records with most η, most first.
    pub most_eta: Vec<Record>,
    /// Records with least η, least first.
    pub least_eta: Vec<Record>,
    /// Records with most PLIS, most first.
    pub most_plis: Vec<Record>,
    /// Records with least PLIS, least first.
    pub least_plis: Vec<Record>,
    /// Another model over the same records.
    pub compared: Option<Compared>,
    /// Points that were not trained on.
    pub score: Option<Score>,
    /// The run that made the model, where it is known.
    pub training: Option<Box<Training>>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// What one noisy step tells about an attribute of a table: a column of the caller's, however it was encoded, to somebody
/// who knows all else of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetAttribute {
    /// The caller's column name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether it is the label, which is part of the secret then.
    pub is_label: bool,
    /// Unit of a number, where somebody gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Encoded columns it became.
    pub columns: Vec<String>,
    /// Mean η over the measured records, in units of the encoded columns.
    pub eta_mean: f64,
    /// Largest η over the measured records.
    pub eta_max: f64,
    /// The record that has it: the caller's id, or its number.
    pub eta_max_record: String,
    /// For a category under the constraint that its indicators sum to one: mean and largest η.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_to_one: Option<[f64; 2]>,
    /// Smallest standard deviation that an unbiased estimate from one step can have, for the most exposed of the measured
    /// records, in the attribute's own units (a category: of an indicator, 0 to 1).
    #[serde(with = "crate::unbounded::plain_cramer_rao")]
    pub min_sd: Bound,
    /// The same for a record whose η is the mean.
    #[serde(with = "crate::unbounded::number")]
    pub min_sd_typical: f64,
    /// Standard deviation over the training records, in own units; absent for categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population_sd: Option<f64>,
    /// About the smallest root mean squared error of any estimate under a normal prior, own units: van Trees with the
    /// average information of the measured records, an estimate and no bound. Absent for categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rmse_with_prior: Option<Measured>,
}

/// The network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkFacts {
    /// Name of the preset, or of the file.
    pub name: String,
    /// Parameters in all.
    pub parameters: u64,
    /// Parameters that are trained (released).
    pub trained: u64,
    /// Extents of one record.
    pub input: Vec<u64>,
    /// Outputs.
    pub outputs: u64,
    /// The loss, by its name in the network file.
    pub loss: String,
    /// What computed, where it was not the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// The records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFacts {
    /// Names of the files, without folders.
    pub files: Vec<String>,
    /// Number of records.
    pub records: u64,
    /// Number of test records, where there are any.
    pub test_records: Option<u64>,
    /// Values are `(x − mean)/sd` of those in the file (images in bytes: of those in [0, 1]).
    pub normalize: [f64; 2],
    /// The column that is predicted, where the records are rows of a table, which are encoded as its audit does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The release under audit: `Σ clip(gᵢ) + N(0, noise²I)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// How gradients are clipped.
    pub clip_kind: ClipKind,
    /// C; absent where nothing is clipped.
    pub clip: Option<f64>,
    /// Noise multiplier σ.
    pub sigma: f64,
    /// Standard deviation of the noise, σC (σ where nothing is clipped).
    pub noise: f64,
    /// Whether it was chosen (by flags or by the training run); otherwise a unit of noise stands in.
    pub chosen: bool,
}

/// How traces were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TraceKind {
    /// Not at all.
    Skip,
    /// By all basis tangents.
    Exact,
    /// By random probes.
    Estimate {
        /// How many.
        probes: u64,
    },
}

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number in the data, counted from 0.
    pub record: u64,
    /// The caller's id, where the records are rows of a table: the id column, or the row number from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The attribute that leaks most of this record and its η, where the records are rows of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_exposed_attribute: Option<(String, f64)>,
    /// Its label: the class, or the value of a regression; absent where a label is several values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether the network gets it right; absent for regressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
    /// Its loss.
    pub loss: f64,
    /// Norm of its gradient before clipping.
    pub gradient_norm: f64,
    /// dFIL.
    pub dfil: Option<Measured>,
    /// Where it lies where it is estimated: 95% over all measured records at once (Student's t, Bonferroni), since who is
    /// shown was chosen by the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dfil_interval: Option<Interval>,
    /// η.
    pub eta: Option<f64>,
    /// JacSens.
    pub jacobian_sensitivity: Option<f64>,
    /// Norm of PLIS.
    pub plis: Option<f64>,
    /// The same under the other model.
    pub compared_plis: Option<f64>,
}

/// Where the extremes of an estimated measure lie, with 95% confidence over all measured records at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extremes {
    /// The smallest true value.
    pub smallest: Interval,
    /// The largest true value.
    pub largest: Interval,
    /// Records of which each may be the largest: their intervals reach that of the record with the largest lower end.
    pub candidates: u64,
}

/// What one value of a record gives away, on average over the measured records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// Its place in a record, counted from 0.
    pub element: u64,
    /// Mean of the information about it alone: the diagonal, `η²` of the value.
    pub information: f64,
    /// Mean size of PLIS.
    pub plis: Option<f64>,
}

/// A histogram: `counts[i]` values from `edges[i]` to `edges[i + 1]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Edges, ascending, one more than counts.
    pub edges: Vec<f64>,
    /// Whether the edges are evenly spaced by their logarithms.
    pub logarithmic: bool,
    /// Counts.
    pub counts: Vec<u64>,
}

/// Most bars of a histogram.
const BARS: usize = 40;

impl Histogram {
    /// The histogram of finite values that are at least 0: logarithmic where positive values span more than a factor of
    /// twenty. A value of 0 on a logarithmic axis is counted in the first bar. Absent without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let positive = values.iter().copied().filter(|v| *v > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
        if values.is_empty() {
            return None;
        }
        let logarithmic = high > 20.0 * low;
        let bars = BARS.min(2 * (values.len() as f64).sqrt().ceil() as usize).max(1);
        let at = |i: usize| i as f64 / bars as f64;
        let edges: Vec<f64> = match logarithmic {
            true => (0..=bars).map(|i| low * (high / low).powf(at(i))).collect(),
            false => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = if high > least { high } else { least + 1.0 };
                (0..=bars).map(|i| least + (most - least) * at(i)).collect()
            }
        };
        let mut out = Self { counts: vec![0; bars], edges, logarithmic };
        out.counts = out.count(values);
        Some(out)
    }

    /// Counts of other values in the same bars; what lies outside counts in the first or the last.
    pub fn count(&self, values: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; self.counts.len()];
        let last = counts.len().saturating_sub(1);
        for v in values {
            let i = self.edges.partition_point(|e| e <= v).saturating_sub(1).min(last);
            if let Some(c) = counts.get_mut(i) {
                *c += 1;
            }
        }
        counts
    }
}

/// Another model over the same records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Whether it was trained with noise; absent where its run is not known.
    pub private: Option<bool>,
    /// ε of its run.
    pub epsilon: Option<f64>,
    /// Share of measured records that it gets right.
    pub accuracy: Option<f64>,
    /// Norms of its gradients.
    pub gradient_norm: Summary,
    /// Norm of PLIS, under the same noise and the clip of its own run.
    pub plis: Summary,
}

/// Points that were not trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Names of the files, without folders.
    pub files: Vec<String>,
    /// Number of points.
    pub n: u64,
    /// Whether they have labels; otherwise the network's own answer stands in.
    pub labelled: bool,
    /// Measure by measure, how they compare with the training records.
    pub by: Vec<ScoredBy>,
    /// Histogram of the training records' gradient norms.
    pub histogram: Option<Histogram>,
    /// Gradient norms of the points in the same bars.
    pub counts: Vec<u64>,
    /// The points with the longest gradients, longest first.
    pub most: Vec<Record>,
}

/// One measure of points that were not trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoredBy {
    /// The measure.
    pub measure: Measure,
    /// Of the training records.
    pub training: Summary,
    /// Of the points.
    pub points: Summary,
    /// Share of points above the 99th percentile of the training records.
    pub above_training_p99: f64,
    /// How often a point has more than a training record, over all pairs (ties count half): ½ where the two are alike, 1
    /// where every point stands out.
    pub exceeds_training: f64,
    /// Where that share lies, by Mann and Whitney: with a confidence of 95% for all measures together (Bonferroni).
    pub exceeds_interval: [f64; 2],
}
