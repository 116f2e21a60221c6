//! The audit as plain data: what `audit.json` holds and the page is drawn from. The schema is versioned.

use super::choice::{ColumnKind, Kind, Metric, OneHot, Roles, Scale, ScalingMode, SeriesBy, Statistic};
use super::judged::Judged;
use super::noise::{Inference, Noise};
use super::tell::Tell;
use leakscope_core::claim::{Bound, Measured};
use leakscope_core::glm::ModelKind;
use leakscope_core::num::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the schema of `audit.json`. A field that changes its meaning raises the number.
pub const SCHEMA: &str = "leakscope.audit/2";

/// Everything that one audit found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// What its page comes down to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judged>,
    /// What was read.
    pub data: Data,
    /// Records that the model was fitted to.
    pub n: u64,
    /// Encoded data columns (without the intercept).
    pub d: usize,
    /// Standard deviation of the noise on every coefficient; of noise with a shape, that of isotropic noise which costs as
    /// much.
    pub sigma: f64,
    /// Where σ comes from.
    pub sigma_source: SigmaSource,
    /// The noise, where it was made for targets (`--noise-shape`, several targets).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Standard errors of the coefficients with the noise, where one was chosen. Their sampling part is private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inference>,
    /// How many times the model is released.
    pub releases: u32,
    /// Whether the label counts as part of the record's secret.
    pub label_secret: bool,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
    /// Seed of everything random (the held-out split), where anything was.
    pub seed: Option<u64>,
    /// The model.
    pub model: Model,
    /// Leakage of single records.
    pub records: Records,
    /// Leakage of all records together.
    pub dataset: Dataset,
    /// Leakage of attributes, most exposed first.
    pub attributes: Vec<Attribute>,
    /// Leakage of the label, where it is part of the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// How often somebody who knows all else tells two values of an attribute apart, where that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell: Option<Tell>,
    /// What it adds to η that columns were scaled by their own data; absent where that makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingEffect>,
    /// Leakage by class of a softmax model, in the order of their codes; empty for other models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// Leakage of groups of records, in order of their names; empty without `--group`.
    pub groups: Vec<Group>,
    /// Mean η of the worst group over that of the best.
    pub group_ratio: Option<f64>,
    /// What noise costs on held-out rows.
    pub utility: Option<Utility>,
    /// What any attacker can guess of a chosen secret (`--secret`), and what attacks do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<super::bound::SecretBounds>,
    /// Points that were not in the training set.
    pub score: Option<Score>,
    /// Result of `--fail-above`, one for each limit.
    pub limits: Vec<Limit>,
    /// Things the user should know, in whole sentences.
    pub warnings: Vec<String>,
    /// What was done with the table and asks for nothing, in whole sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What every number rests on, in whole sentences.
    pub assumptions: Vec<String>,
    /// Seconds.
    pub timings: Timings,
}

/// What it adds to η that means and spreads of columns depend on the records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingEffect {
    /// Whether η of records and attributes counts it.
    pub mode: ScalingMode,
    /// Whether the counted η of records is exact; otherwise it is never too small.
    pub exact: bool,
    /// Largest η of a record with the scaling taken as given.
    pub eta_max_given: f64,
    /// The same with the scaling counted.
    pub eta_max_counted: f64,
    /// Columns whose scaling is not counted, because values were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<String>,
}

/// What was read and how it was encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// File names, without folders.
    pub files: Vec<String>,
    /// Rows in the files.
    pub rows_read: u64,
    /// Rows left out because a value was missing.
    pub rows_dropped: u64,
    /// Rows held out for the utility curve.
    pub rows_held_out: u64,
    /// Name of the target column.
    pub target: String,
    /// The classes of a target of classes, in the order of their codes: low and high where there are two.
    pub classes: Option<Vec<String>>,
    /// Name of the id column; without one, records are named by their row number, from 1.
    pub id: Option<String>,
    /// The most rows that have one id, where any has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_of_one: Option<u64>,
    /// Training rows that are equal in every column that is used, where any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
    /// Name of the group column.
    pub group: Option<String>,
    /// Name of the weight column.
    pub weights: Option<String>,
    /// Every column of the files with the role it was given.
    pub columns: Vec<Column>,
    /// How numbers were scaled.
    pub scale: Scale,
    /// Which columns a category became.
    pub one_hot: OneHot,
    /// Principal components kept.
    pub pca: Option<usize>,
    /// Parts of the encoding that were read off the records and are taken as given: what a record does to them is not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_off: Vec<ReadOff>,
}

/// Rows that are equal in every column that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Rows that repeat an earlier one.
    pub rows: u64,
    /// The most rows that are equal.
    pub largest: u64,
    /// Whether no id says whose they are and they are more than rows of as many people would show by chance: no page is green
    /// then.
    pub beyond_chance: bool,
}

/// A part of the encoding that one record can move for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadOff {
    /// The largest norm of a record, which all are divided by.
    LargestNorm,
    /// Principal components.
    Components,
    /// Means and most frequent levels, filled in where values were missing.
    FilledIn,
    /// Which levels a category has: one record decides.
    Levels,
    /// What kind a column is, or whether it names the records: one record decides.
    Guesses,
    /// Means and spreads that columns are scaled by, where no intercept takes the means up.
    Scales,
    /// What was fitted or chosen on the records before the model was, outside of Leakscope: scales, what fills gaps, components,
    /// a penalty.
    Elsewhere,
}

/// A column of the files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// `feature`, `target`, `id`, `group`, `weights`, `dropped`; a column may be `feature, group`.
    #[serde(rename = "role")]
    pub roles: Roles,
    /// Missing values.
    pub missing: u64,
    /// Number of levels of a category.
    pub levels: Option<usize>,
    /// `[min, max]` of a number; never shown on the page.
    pub range: Option<[f64; 2]>,
}

/// Where the noise scale comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SigmaSource {
    /// Nothing was said: σ = 1, as a unit to scale from.
    Default,
    /// `--sigma`.
    Given,
    /// `--target-eta` with `--statistic`.
    TargetEta {
        /// The η to meet.
        eta: f64,
        /// Which statistic of η meets it.
        statistic: Statistic,
    },
    /// `--target-sd`.
    TargetSd {
        /// The attribute.
        attribute: String,
        /// Smallest standard deviation of an unbiased estimate, in its own units.
        sd: f64,
    },
    /// The goals of the audit's `noise`.
    Targets,
}

/// The fitted (or given) model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its family.
    pub family: ModelKind,
    /// λ in `Σ ωℓ + (nλ/2)‖w‖²`.
    pub l2: f64,
    /// Whether there is an (unregularised) intercept.
    pub intercept: bool,
    /// Coefficients of the encoded columns, by name; the intercept is `(intercept)`. Those of a softmax model are named
    /// `class: column`, and sum to zero over the classes.
    pub coefficients: BTreeMap<String, f64>,
    /// The same model for the columns as they stand in the file (no PCA).
    pub coefficients_original_units: Option<BTreeMap<String, f64>>,
    /// Newton iterations; 0 for a given model.
    pub iterations: usize,
    /// Relative norm of the gradient at the coefficients.
    pub gradient: f64,
    /// The tolerance it met.
    pub tolerance: f64,
    /// Condition number of the Hessian.
    #[serde(with = "crate::unbounded::number")]
    pub condition: f64,
    /// Mean training loss.
    pub loss: f64,
    /// For a model that was trained elsewhere: how far it is from the minimiser.
    pub distance: Option<Distance>,
}

/// How far given coefficients are from the minimiser on these data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// ‖w − w*‖ / ‖w*‖.
    pub relative: f64,
    /// The largest difference of a coefficient, and its name.
    pub largest: f64,
    /// Name of that coefficient.
    pub largest_name: String,
    /// Objective above its minimum, relative.
    pub excess_objective: f64,
}

/// Leakage of single records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Fisher information loss η.
    pub eta: Summary,
    /// dFIL, the mean information per dimension.
    pub dfil: Summary,
    /// Loss.
    pub loss: Summary,
    /// Norm of the gradient of the record's loss.
    pub gradient_norm: Summary,
    /// Histograms of η on common bins, one series for each class or group.
    pub histogram: Histogram,
    /// Records with most leakage, most first.
    pub most: Vec<Record>,
    /// Records with least leakage, least first.
    pub least: Vec<Record>,
    /// A sample of records for the scatter plots.
    pub sample: Vec<SamplePoint>,
    /// How many records stand out: their η is above three times the median.
    pub stand_out: u64,
    /// Of the records above the 99th percentile of η (at most the 100 most exposed), the share whose loss is
    /// below the 95th percentile: those that loss alone would have missed.
    pub missed_by_loss: f64,
    /// The same for the gradient norm.
    pub missed_by_gradient: f64,
    /// Mean squared error, per encoded column, of any unbiased estimate of the most exposed record.
    #[serde(with = "crate::unbounded::claim")]
    pub min_mse: Bound,
    /// About what any estimate gets to, on average over records, under a normal prior with the population's spread: van Trees
    /// with the average information of the table, an estimate and no bound.
    pub min_mse_with_prior: Measured,
}

/// Counts of η on common bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Records above it, counted in the last bin.
    #[serde(default)]
    pub beyond: u64,
    /// What the series are.
    pub by: SeriesBy,
    /// One series for each class or group.
    pub series: Vec<Series>,
}

/// One series of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the class or group.
    pub name: String,
    /// Mean η.
    pub mean: f64,
    /// Counts by bin.
    pub counts: Vec<u64>,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The caller's id, or the row number from 1.
    pub id: String,
    /// Class or group of the record.
    pub group: Option<String>,
    /// Information loss.
    pub eta: f64,
    /// Mean information per dimension.
    pub dfil: f64,
    /// Loss.
    pub loss: f64,
    /// Gradient norm.
    pub gradient_norm: f64,
    /// Share of records whose loss is at most this one's.
    pub loss_rank: f64,
    /// The attribute (or the label) that leaks most of this record, and its η in the units of that of the record: never more.
    pub most_exposed_attribute: Option<(String, f64)>,
}

/// A point of the scatter plots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SamplePoint {
    /// Information loss.
    pub eta: f64,
    /// Loss.
    pub loss: f64,
    /// Gradient norm.
    pub gradient_norm: f64,
    /// Index into the histogram's series.
    pub series: u32,
}

/// All records together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// η of the whole data set.
    pub eta: f64,
}

/// Leakage of one attribute: a column of the caller's table, however it was encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The caller's column name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Unit of a number, where the caller gave one.
    pub unit: Option<String>,
    /// Encoded columns it became.
    pub columns: Vec<String>,
    /// Mean η over records.
    pub eta_mean: f64,
    /// Largest η over records.
    pub eta_max: f64,
    /// Id of the record with the largest.
    pub eta_max_record: String,
    /// η of this attribute over all records together; absent where that would take too long.
    pub eta_over_all_records: Option<f64>,
    /// For a category under the constraint that its indicators sum to one: mean and largest η.
    pub sum_to_one: Option<SumToOne>,
    /// Smallest standard deviation that an unbiased estimate can have, for the most exposed record, in the
    /// attribute's own units (a category: of an indicator, 0 to 1).
    #[serde(with = "crate::unbounded::plain_cramer_rao")]
    pub min_sd: Bound,
    /// The same for a record whose η is the mean.
    #[serde(with = "crate::unbounded::number")]
    pub min_sd_typical: f64,
    /// Standard deviation of the attribute over the training records, in its own units: what an attacker is
    /// off by who knows the population alone. Absent for categories.
    pub population_sd: Option<f64>,
    /// About the smallest root mean squared error of any estimate under a normal prior, own units: van Trees with the average
    /// information of the table, an estimate and no bound. Absent for categories.
    pub min_rmse_with_prior: Option<Measured>,
    /// Standard deviation of that prior, where it is not the population's.
    pub prior_sd: Option<f64>,
}

/// Leakage of the label alone, to someone who knows all else of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// The target column.
    pub name: String,
    /// Mean η over records, in units of the coded target.
    pub eta_mean: f64,
    /// Largest η over records.
    pub eta_max: f64,
    /// Id of the record with the largest.
    #[serde(default)]
    pub eta_max_record: String,
    /// Standard deviation of the target over the training records, where it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population_sd: Option<f64>,
    /// Smallest standard deviation that an unbiased estimate can have, for the most exposed record: in the target's own
    /// units, for two classes of an indicator, 0 to 1.
    #[serde(with = "crate::unbounded::plain_cramer_rao")]
    pub min_sd: Bound,
}

/// Leakage of a category whose indicators must sum to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SumToOne {
    /// Mean η.
    pub eta_mean: f64,
    /// Largest η.
    pub eta_max: f64,
    /// η over all records together; absent where that would take too long.
    pub eta_over_all_records: Option<f64>,
}

/// Leakage of the records of one class of a softmax model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Records of it.
    pub n: u64,
    /// Mean η of its records.
    pub eta_mean: f64,
    /// Median η of its records.
    pub eta_median: f64,
    /// Largest η of a record.
    pub eta_max: f64,
    /// Mean loss of its records.
    pub loss_mean: f64,
    /// Mean η of the labels alone, by the switch to another class; absent where the label is public.
    pub label_eta_mean: Option<f64>,
    /// Largest η of a label.
    pub label_eta_max: Option<f64>,
}

/// Leakage of a group of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Records in it.
    pub n: u64,
    /// η of the group as a whole.
    pub eta: f64,
    /// Mean η of its members.
    pub eta_mean: f64,
    /// Median η of its members.
    pub eta_median: f64,
    /// Largest η of a member.
    pub eta_max: f64,
}

/// What noise costs on rows that the model was not fitted to. Expectations over the noise are exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utility {
    /// What is measured.
    pub metric: Metric,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Rows it was measured on.
    pub rows: u64,
    /// Without noise.
    pub without_noise: f64,
    /// At the chosen σ.
    #[serde(with = "crate::unbounded::number")]
    pub at_sigma: f64,
    /// What a model without any columns gets (majority class, mean target).
    pub constant_model: f64,
    /// The curve.
    pub points: Vec<UtilityPoint>,
}

/// A point of the utility curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UtilityPoint {
    /// Noise.
    pub sigma: f64,
    /// Expected metric.
    #[serde(with = "crate::unbounded::number")]
    pub value: f64,
    /// Mean η of the records at this noise.
    pub eta_mean: f64,
    /// Largest η at this noise.
    pub eta_max: f64,
}

/// Points that were not in the training set (`--score`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// File names.
    pub files: Vec<String>,
    /// Points.
    pub n: u64,
    /// Whether the file had the target; without it the model's own prediction stands in.
    pub labelled: bool,
    /// Their η.
    pub eta: Summary,
    /// Share of them above the 99th percentile of the training records' η.
    pub above_training_p99: f64,
    /// The points with most η.
    pub most: Vec<Record>,
    /// Counts on the bins of the records' histogram.
    pub counts: Vec<u64>,
}

/// A limit of `--fail-above`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The statistic of η.
    pub statistic: Statistic,
    /// The limit.
    pub limit: f64,
    /// What was found.
    pub value: f64,
    /// Whether it is within.
    pub ok: bool,
}

/// Seconds that each stage took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Reading, type inference, encoding.
    pub read: f64,
    /// Fitting.
    pub fit: f64,
    /// Leakage at every granularity, and writing the records.
    pub leakage: f64,
    /// Two values of every attribute told apart, by refits.
    #[serde(default)]
    pub tell: f64,
    /// Drawing the page.
    pub report: f64,
}
