//! What `leakscope release` did, as plain data: the statement that goes with a released model, and its owner's copy.
//!
//! A [`Release`] may leave the house: it holds noisy coefficients, what was given, and numbers rounded to grids that do not
//! depend on the data. Whatever was measured stands in [`Owned`] alone.

use super::audit::Duplicates;
use super::choice::Statistic;
use super::judged::Judged;
use super::noise::{Goal, Inference, Source};
use super::tell::Tell;
use leakscope_core::fisher::noise::{Factor, Shape};
use leakscope_core::glm::ModelKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the schema of `release.json`.
pub const SCHEMA: &str = "leakscope.release/2";
/// Name and version of the schema of `model.json`.
pub const MODEL_SCHEMA: &str = "leakscope.model/1";

/// The statement of one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// What was fitted.
    pub subject: Subject,
    /// The noise.
    pub mechanism: Mechanism,
    /// Whether the label counts as part of the record's secret.
    pub label_secret: bool,
    /// η of this release alone.
    pub eta: Eta,
    /// How often somebody who knows all else tells two values apart, as it may be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell: Option<Stated>,
    /// η of all releases of these data so far, this one included.
    pub composed: Composed,
    /// What was given, and so is public, in whole sentences.
    #[serde(rename = "given")]
    pub public_inputs: Vec<String>,
    /// What was read off the data, and what became of it, in whole sentences.
    pub read_off: Vec<String>,
    /// What an attacker is taken to know, in whole sentences.
    pub known: Vec<String>,
    /// What the numbers rest on, in whole sentences.
    pub assumed: Vec<String>,
    /// The released coefficients of the columns in their original units, noise included.
    pub coefficients: BTreeMap<String, f64>,
    /// How well each tells the fitted one. How far that is from the truth, sampling included, stays with the owner.
    #[serde(default)]
    pub precision: BTreeMap<String, Precision>,
    /// Things the reader should know, in whole sentences.
    pub warnings: Vec<String>,
}

impl Release {
    /// The statement without what only the owner may see: an η that was measured, how often values are told apart, and even whether a
    /// limit holds show on which side of a step a record puts them to whoever knows the others. What is left depends on the data
    /// through the noise alone, and through what [`Release::read_off`] lists.
    pub fn for_publication(&self) -> Self {
        let is_target = self.eta.is_target();
        let mut published = self.clone();
        published.eta.max = self.eta.max.filter(|_| is_target);
        published.composed.eta_max =
            self.composed.eta_max.filter(|_| is_target && self.composed.releases == 1);
        if let Some(tell) = &mut published.tell {
            (tell.attributes, tell.label, tell.more_noise) = (None, None, None);
            tell.withdraw_first.clear();
            tell.kept_back = true;
        }
        published
    }
}

/// What somebody needs who uses a released model: `model.json` beside the statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedModel {
    /// [`MODEL_SCHEMA`].
    pub schema: String,
    /// Name of the target column.
    pub target: String,
    /// The classes of the target in the order of their codes, where it has classes.
    pub classes: Option<Vec<String>>,
    /// Its family.
    pub family: ModelKind,
    /// The released coefficients of the columns in their original units, noise included.
    pub coefficients: BTreeMap<String, f64>,
    /// Standard deviation of the noise on every coefficient of columns in public units.
    pub sigma: f64,
    /// The covariance of noise that was made for its targets, where it has a shape.
    pub noise: Option<PublishedShape>,
    /// The public unit of every column: `x̃ = (x − centre)/unit`.
    pub units: BTreeMap<String, Unit>,
    /// Standard deviation of the noise on each of `coefficients`.
    pub noise_error: BTreeMap<String, f64>,
}

impl PublishedModel {
    /// The model of a statement.
    pub fn of(statement: &Release) -> Self {
        let (s, m) = (&statement.subject, &statement.mechanism);
        Self {
            schema: MODEL_SCHEMA.into(),
            target: s.target.clone(),
            classes: s.classes.clone(),
            family: s.family,
            coefficients: statement.coefficients.clone(),
            sigma: m.sigma,
            noise: m.shape.clone(),
            units: m.units.clone(),
            noise_error: statement.precision.iter().map(|(name, p)| (name.clone(), p.noise_error)).collect(),
        }
    }
}

/// The model without anything that tells about its data: no file, no number of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the target column.
    pub target: String,
    /// The classes of the target in the order of their codes, the one of a low prediction first, where it has classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Its family.
    pub family: ModelKind,
    /// Penalty λ.
    pub l2: f64,
    /// Whether there is an intercept.
    pub intercept: bool,
}

/// The noise that was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mechanism {
    /// Its name.
    pub name: String,
    /// Standard deviation of the noise on every coefficient of columns in public units.
    pub sigma: f64,
    /// Distance of the points that these coefficients lie on.
    pub grid: f64,
    /// Where the randomness came from.
    pub generator: String,
    /// The public unit of every column: `x̃ = (x − centre)/unit`.
    pub units: BTreeMap<String, Unit>,
    /// The covariance of noise that was made for its targets; σ is then the root of its mean variance, and the grid that of the
    /// coordinates of its factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<PublishedShape>,
}

impl Mechanism {
    /// Whether the noise is the same on every coefficient in public units, also where it was made for targets.
    pub fn is_isotropic(&self) -> bool {
        self.shape.as_ref().is_none_or(|s| s.shape == Shape::Isotropic)
    }
}

/// A covariance, as it is published: what it was made for, and its factor, whose shape is public.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedShape {
    /// Its shape.
    pub shape: Shape,
    /// Where that comes from.
    pub source: Source,
    /// What it protects; η in public units.
    pub goals: Vec<Goal>,
    /// The coefficients that the factor is about, of columns in public units, in its order.
    pub coefficients: Vec<String>,
    /// The factor of the covariance.
    pub factor: Factor,
}

/// How well a published coefficient tells the fitted one: from the noise alone, which is public.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Standard deviation of its noise.
    pub noise_error: f64,
    /// Lower end of an interval that holds the coefficient without noise in 95% of releases.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Two-sided p-value of the hypothesis that the coefficient without noise is zero.
    pub p_value: f64,
}

/// The public unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// A whole multiple of the unit.
    pub centre: f64,
    /// A power of two.
    pub unit: f64,
}

/// η of one release over records, as it may be said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Eta {
    /// The largest is at most this: the target where that was set, otherwise a power of 2^¼ not below what was measured, which
    /// the owner alone is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What σ was solved for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

impl Eta {
    /// Whether the largest is the target, which was given, and not what was measured.
    pub fn is_target(&self) -> bool {
        self.target.is_some_and(|t| t.statistic == Statistic::Max)
    }
}

/// A target that σ was solved for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// η.
    pub eta: f64,
    /// The statistic over records that is at most that.
    pub statistic: Statistic,
}

/// How often somebody who knows all else, and that one of two values is right, names the right one for the most exposed record,
/// all releases of these data seen, rounded up to a grid. All of it but the limit and the values that were given stays with the
/// owner ([`Release::for_publication`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// Two values of any attribute; absent where the model has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Ceiling>,
    /// Two values of the label, where it is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Ceiling>,
    /// Values that were given; elsewhere they are the 10% and 90% quantiles of a number, each record's own and the
    /// median, and any two levels of a category.
    #[serde(rename = "given", default, skip_serializing_if = "Vec::is_empty")]
    pub public_pairs: Vec<PublicPair>,
    /// Told apart at most this often, values count as protected.
    pub protect_at: f64,
    /// How many times the noise brings all of it within that limit, for the owner alone; absent where it is, or where no noise does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_noise: Option<f64>,
    /// Earlier releases that tell so much that no noise on this one holds the limit, as the ledger names them, the one that tells
    /// most first; for the owner alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdraw_first: Vec<String>,
    /// Whether what was found stays with the owner: neither ceiling is stated then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_back: bool,
}

/// A probability of telling two values apart that is not exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// On a public grid; a coin toss has ½.
    pub at_most: f64,
    /// How it was found.
    pub by: Means,
}

/// How a ceiling was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// By fitting the model with either value in place: it covers every attacker.
    Refits,
    /// From η, which looks at small changes alone: an approximation.
    Eta,
}

/// Two values that somebody gave, and so are public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicPair {
    /// The attribute, or the target.
    pub attribute: String,
    /// One value.
    pub from: String,
    /// The other.
    pub to: String,
}

/// Several releases of the same data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Composed {
    /// Releases so far.
    pub releases: usize,
    /// Upper bound of the largest η of all together, `√Σ η²`; for the owner alone unless it is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_max: Option<f64>,
    /// What it may be at most.
    pub budget_eta: Option<f64>,
}

/// A statement with what only the owner of the data may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Owned {
    /// What was published.
    #[serde(flatten)]
    pub statement: Release,
    /// What it comes down to for the owner; the published page says no more than what is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Judged>,
    /// What was measured.
    pub measured: Measured,
    /// Things the owner should know, in whole sentences.
    pub remarks: Vec<String>,
}

/// η of records as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Files, without folders.
    pub files: Vec<String>,
    /// Records that the model was fitted to.
    pub n: u64,
    /// Mean of η.
    pub eta_mean: f64,
    /// Largest η.
    pub eta_max: f64,
    /// How it was found.
    pub counting: Counting,
    /// Standard errors of the released coefficients in original units, sampling included; absent for balanced models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inference>,
    /// Why the noise is not the one asked for: whole sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// What isotropic noise for the same targets would add to the error of predictions, over what this noise adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Which values of which records this release lets somebody tell apart, where that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell: Option<Tell>,
    /// Training rows that are equal in every column that is used, where any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
}

/// How η of a release was found. What the model was made of besides its records is counted in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Exactly, scaling counted.
    Exact,
    /// From above, scaling counted.
    Bounded,
    /// Exactly, with weights that balance leakage counted.
    Weights,
    /// Exactly: columns are scaled by their public units, so that nothing of the scaling is left to count.
    Units,
}
