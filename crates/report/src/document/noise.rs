//! Noise with a shape: what it costs, what it protects, and which directions carry it.

use leakscope_core::fisher::noise::{Factor, Sampling, Shape};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The noise on the coefficients, where it was made for targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Its shape.
    pub shape: Shape,
    /// The shape that was asked for.
    pub requested: Shape,
    /// Why it is another shape, or from elsewhere, than asked for: whole sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Where the shape comes from.
    pub source: Source,
    /// What it protects.
    pub goals: Vec<Goal>,
    /// `tr(ΣA)` at the scale that the targets need exactly: what the noise adds to the error of predictions (squared error: the
    /// mean over training rows; other families: to second order, half of it to the mean loss). Gain and gap compare it.
    pub cost: f64,
    /// The same of the noise as it would be published: factor and scale on their public grids, with room for what the
    /// covariance itself gives away.
    pub cost_published: f64,
    /// What isotropic noise costs at the scale that the targets need exactly.
    pub cost_isotropic: f64,
    /// `cost_isotropic/cost`.
    #[serde(with = "crate::unbounded::number")]
    pub gain: f64,
    /// No covariance that meets the targets costs less.
    pub lower_bound_on_cost: f64,
    /// `cost/lower_bound_on_cost − 1`.
    #[serde(with = "crate::unbounded::number")]
    pub gap: f64,
    /// The gap that the search for the cheapest noise reached, before weights of single records were evened out to stay within
    /// `shape_budget`: what `gap` is above it is the price of that, not of the search.
    #[serde(default, with = "crate::unbounded::number")]
    pub programme_gap: f64,
    /// Largest information of the covariance itself about what a goal protects, as a share of its `η²`; 0 where the shape
    /// is not read off the records.
    pub covariance_information: f64,
    /// Largest share of `η²` that it may have.
    pub shape_budget: f64,
    /// Largest η over its target, the covariance's own information included: at most one.
    pub largest_eta: f64,
    /// σ of isotropic noise that costs as much as this noise as published.
    pub sigma_same_cost: f64,
    /// σ of isotropic noise that meets the same targets exactly.
    pub sigma_isotropic: f64,
    /// The factor of the covariance on its public grid, coefficients in the order of `coefficients`.
    pub factor: Factor,
    /// The coefficients.
    pub coefficients: Vec<String>,
    /// Standard deviation of the noise on each.
    pub deviations: BTreeMap<String, f64>,
    /// Directions that carry most of the noise, largest first.
    pub directions: Vec<Direction>,
    /// What each shape costs for the same targets, if it is taken from the records.
    #[serde(default)]
    pub shapes: Vec<ShapeCost>,
}

/// Where a shape comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Source {
    /// Isotropic noise has none.
    Nowhere,
    /// From the training records.
    Records,
    /// From a public table.
    Table {
        /// Its files.
        files: Vec<String>,
    },
    /// From the public bounds of the columns.
    Bounds,
}

/// What a goal protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// Every whole record.
    Record,
    /// One attribute of every record.
    Attribute,
    /// The label of every record.
    Label,
}

/// A target, as it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What it protects.
    pub secret: Secret,
    /// Name of the attribute or of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Largest η, per encoded unit.
    pub eta: f64,
    /// Smallest standard deviation of an unbiased estimate in own units, where it was given so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
}

/// A direction of the coefficients that carries noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Share of the noise's variance that lies along it.
    pub noise: f64,
    /// Share of what the noise costs that it causes.
    pub cost: f64,
    /// Attributes (or `(intercept)`) with the most weight in it and the share of each, largest first.
    pub attributes: Vec<(String, f64)>,
}

/// What one shape costs for the targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShapeCost {
    /// The shape.
    pub shape: Shape,
    /// `tr(ΣA)` at the scale that the targets need exactly.
    pub cost: f64,
    /// What isotropic noise costs over that.
    #[serde(with = "crate::unbounded::number")]
    pub gain: f64,
    /// Over the certificate, minus one.
    #[serde(with = "crate::unbounded::number")]
    pub gap: f64,
    /// What its covariance gives away, as a share of `η²`.
    pub covariance_information: f64,
    /// What is left of the model's utility against how strict the targets are, where rows to test on were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<ShapePoint>,
}

/// A point of the curve of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShapePoint {
    /// How many times the η asked for is allowed: 1 is as asked, 0.1 ten times stricter.
    pub multiple: f64,
    /// Expected metric where that is met exactly.
    #[serde(with = "crate::unbounded::number")]
    pub value: f64,
}

/// Standard errors of the coefficients as they would be released, noise included.
///
/// The part from sampling is read off the records and is private; the part from noise is public.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inference {
    /// How the spread over samples is estimated.
    pub sampling: Sampling,
    /// Level of the intervals.
    pub level: f64,
    /// Whether coefficients are those of the columns as they stand in the file, or as encoded.
    pub original_units: bool,
    /// One for each coefficient.
    pub coefficients: Vec<Coefficient>,
}

/// One coefficient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its name.
    pub name: String,
    /// As fitted: a release adds noise to it.
    pub estimate: f64,
    /// Standard error from sampling: private, read off the records.
    pub sampling_error: f64,
    /// Standard deviation of the noise: public.
    pub noise_error: f64,
    /// Both together.
    pub standard_error: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided p-value of the hypothesis that the coefficient is zero.
    pub p_value: f64,
}
