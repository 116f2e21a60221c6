//! A table, a model and what is asked about it, checked before any work.

use crate::failure::present;
use crate::noise::NoiseOptions;
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_core::glm::softmax::MAX_CLASSES;
use leakscope_core::glm::{Family, ModelKind};
use leakscope_core::num::Distribution;
use leakscope_report::verdict::{PROTECT_AT, TOLD_AT};
use leakscope_table::{
    Encoding, Kind, Machines, Missing, OneHot, Public, ReadOptions, Roles, Scale, known_names,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use leakscope_report::choice::ScalingMode;

/// Everything an audit is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// The table.
    pub read: ReadOptions,
    /// What each column is for.
    pub roles: Roles,
    /// Levels that get a column.
    pub one_hot: OneHot,
    /// Scaling.
    pub scale: Scale,
    /// Principal components to keep.
    pub pca: Option<usize>,
    /// What to do where a value is missing.
    pub missing: Missing,
    /// The class that is coded high.
    pub positive: Option<String>,
    /// What is known of the columns without looking at the data.
    pub public: Public,
    /// Levels that fewer training records have are merged into `other`, unless they were given.
    pub min_level_count: Option<u64>,
    /// Whether a linear model takes a target with two values as −1 and +1, where nobody gave its bounds.
    pub two_class_coded: bool,
    /// The model.
    pub family: ModelKind,
    /// Classes that the target of a softmax model may have.
    pub max_classes: usize,
    /// Penalty λ.
    pub l2: f64,
    /// Whether there is an intercept.
    pub intercept: bool,
    /// Share of the penalty that the intercept has, as in models that were trained elsewhere.
    pub intercept_share: f64,
    /// Whether something that was fitted or chosen on the records elsewhere (scales, what fills gaps, components, a penalty) is taken
    /// as given.
    pub read_off_elsewhere: bool,
    /// A model that was trained elsewhere: names and values.
    pub coefficients: Option<Vec<(String, f64)>>,
    /// The noise, or what it must achieve.
    pub noise: Noise,
    /// Number of releases.
    pub releases: u32,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// Rows to measure utility on.
    pub test: Option<ReadOptions>,
    /// Share of rows to hold out for that instead.
    pub holdout: Option<f64>,
    /// Seed of the split.
    pub seed: Option<u64>,
    /// Points to score.
    pub score: Option<ReadOptions>,
    /// Spread of what an attacker knows beforehand, in own units, where it is not the population's.
    pub prior_sd: Vec<(String, f64)>,
    /// Units of attributes, for display.
    pub units: Vec<(String, String)>,
    /// Limits on η.
    pub limits: Vec<Limit>,
    /// An attribute whose guessing is bounded and tried.
    pub secret: Option<String>,
    /// Two values to tell apart, where they are not the usual ones.
    pub tell: Vec<Pair>,
    /// Told apart at most this often, values count as protected.
    pub protect_at: f64,
    /// Seconds, on an ordinary machine, that telling values apart may take; as long as it takes without.
    pub tell_budget: Option<f64>,
    /// Whether leakage counts that columns are scaled by their own data.
    pub scaling: ScalingMode,
    /// Whether the page names no record, for sharing.
    pub redact: bool,
}

/// Seconds that telling values apart takes, unless others are asked for.
pub const TELL_BUDGET: f64 = 10.0;

/// The noise, or what it must achieve.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// σ = 1, as a unit.
    #[default]
    Default,
    /// σ.
    Given(f64),
    /// The noise at which a statistic of η meets a value.
    TargetEta {
        /// The value.
        eta: f64,
        /// The statistic.
        statistic: Statistic,
    },
    /// The noise at which no unbiased estimate of an attribute has a smaller standard deviation, for any record.
    TargetSd {
        /// The attribute.
        attribute: String,
        /// The standard deviation, in the attribute's own units.
        sd: f64,
    },
    /// Noise with a shape, or for several targets: the scale is the smallest on a public grid that meets them all.
    Shaped(Box<NoiseOptions>),
}

impl Noise {
    /// The options of noise that is made for its targets.
    pub fn options(&self) -> Option<&NoiseOptions> {
        match self {
            Self::Shaped(options) => Some(options),
            Self::Default | Self::Given(_) | Self::TargetEta { .. } | Self::TargetSd { .. } => None,
        }
    }
}

/// A statistic of η over records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The largest
    #[default]
    Max,
    /// The mean
    Mean,
    /// The 99th percentile
    P99,
}

impl Statistic {
    /// Its value.
    pub fn of(self, eta: &Distribution) -> f64 {
        match self {
            Self::Max => eta.max(),
            Self::Mean => eta.mean(),
            Self::P99 => eta.quantile(0.99),
        }
    }

    /// The same as a document names it.
    pub fn named(self) -> leakscope_report::choice::Statistic {
        use leakscope_report::choice::Statistic;
        match self {
            Self::Max => Statistic::Max,
            Self::Mean => Statistic::Mean,
            Self::P99 => Statistic::P99,
        }
    }

    /// Its name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Mean => "mean",
            Self::P99 => "p99",
        }
    }
}

/// A limit of `--fail-above`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The statistic; `eta` means the largest.
    pub statistic: Statistic,
    /// The largest value that passes.
    pub limit: f64,
}

/// Two values of one attribute, as they were written (`--tell age=40,60`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The attribute, or the target.
    pub attribute: String,
    /// The values.
    pub values: [String; 2],
}

impl Default for Request {
    fn default() -> Self {
        Self {
            read: ReadOptions::default(),
            roles: Roles::default(),
            one_hot: OneHot::default(),
            scale: Scale::default(),
            pca: None,
            missing: Missing::default(),
            positive: None,
            public: Public::default(),
            min_level_count: None,
            two_class_coded: true,
            family: ModelKind::default(),
            max_classes: MAX_CLASSES,
            l2: 0.0,
            intercept: true,
            intercept_share: 0.0,
            read_off_elsewhere: false,
            coefficients: None,
            noise: Noise::default(),
            releases: 1,
            label_secret: true,
            test: None,
            holdout: None,
            seed: None,
            score: None,
            prior_sd: vec![],
            units: vec![],
            limits: vec![],
            secret: None,
            tell: vec![],
            protect_at: PROTECT_AT,
            tell_budget: Some(TELL_BUDGET),
            scaling: ScalingMode::default(),
            redact: false,
        }
    }
}

impl Request {
    /// The same with its tables read by machines.
    #[must_use]
    pub fn on(mut self, machines: &Arc<dyn Machines>) -> Self {
        for read in std::iter::once(&mut self.read).chain(&mut self.test).chain(&mut self.score) {
            read.machines = Some(Arc::clone(machines));
        }
        self
    }

    /// The files that are read.
    pub fn inputs(&self) -> Vec<&Path> {
        let shape_from = self.noise.options().and_then(|options| options.shape_from.as_ref());
        let others = self.test.iter().chain(&self.score).chain(shape_from);
        std::iter::once(&self.read).chain(others).flat_map(|r| &r.paths).map(PathBuf::as_path).collect()
    }

    /// The family of a model with one vector of coefficients.
    ///
    /// # Errors
    /// For softmax regression, which has one for each class, where only the others are known.
    pub fn glm(&self) -> Result<Family> {
        self.family.family().ok_or_else(|| {
            Failure::option(
                "model",
                "softmax: this is not available for softmax regression: expected a model with one vector of coefficients, such as \
                 linear, logistic (two classes) or poisson",
            )
        })
    }

    /// Checks what needs no table.
    pub fn check(&self) -> Result<()> {
        let positive = |flag: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(())
            } else {
                Err(Failure::number(flag, numeral(value), "expected a positive number"))
            }
        };
        if !(self.l2 >= 0.0 && self.l2.is_finite()) {
            return Err(Failure::number("l2", self.l2, "expected zero or a positive number"));
        }
        if !(self.intercept_share >= 0.0 && self.intercept_share.is_finite()) {
            let expected = "expected zero or a positive number";
            return Err(Failure::number("intercept_share", numeral(self.intercept_share), expected));
        }
        if self.intercept_share > 0.0 && (self.scale != Scale::None || self.family == ModelKind::Softmax) {
            let message = "a penalty on the intercept needs columns as they are, ⟨scale=none⟩, and is not for softmax models";
            return Err(Failure::option("intercept_share", message));
        }
        match &self.noise {
            Noise::Default => {}
            Noise::Given(0.0) => {
                let message = "a model released without noise lets somebody who knows everything else compute each value \
                               that moves it exactly, so there is nothing to measure: expected a positive number";
                return Err(Failure::number("sigma", 0, message));
            }
            Noise::Given(sigma) => positive("sigma", *sigma)?,
            Noise::TargetEta { eta, .. } => positive("target_eta", *eta)?,
            Noise::TargetSd { sd, .. } => positive("target_sd", *sd)?,
            Noise::Shaped(options) => options.check()?,
        }
        for (option, read) in [("test", &self.test), ("score", &self.score)] {
            read.iter().try_for_each(|read| present(option, &read.paths))?;
        }
        let public = &self.public;
        if public.clip_to_bounds && public.schema.is_none() && public.bounds.is_empty() {
            let message = "there are no bounds: give them with ⟨bounds⟩ or a ⟨schema⟩";
            return Err(Failure::option("clip_to_bounds", message));
        }
        if self.max_classes < 2 {
            return Err(Failure::number("max_classes", self.max_classes, "expected at least 2"));
        }
        if self.releases == 0 {
            return Err(Failure::number("releases", 0, "expected at least 1"));
        }
        if self.test.is_some() && self.holdout.is_some() {
            return Err(Failure::option(
                "holdout",
                "⟨test⟩ names rows to test on already: use one of the two",
            ));
        }
        if !(self.protect_at > 0.5 && self.protect_at <= TOLD_AT) {
            let expected = format!(
                "expected a share above 0.5, a coin toss that no noise goes below, and at most {TOLD_AT}, from which on values count as told apart"
            );
            return Err(Failure::number("protect_at", self.protect_at, expected));
        }
        if let Some(seconds) = self.tell_budget.filter(|s| !(*s >= 0.0 && s.is_finite())) {
            return Err(Failure::number("tell_budget", numeral(seconds), "expected seconds, or `all`"));
        }
        for limit in &self.limits {
            positive("fail_above", limit.limit)?;
        }
        for (name, sd) in &self.prior_sd {
            positive("prior_sd", *sd).map_err(|_| {
                Failure::option("prior_sd", format!("{name}={sd}: expected a positive number"))
            })?;
        }
        Ok(())
    }

    /// Checks names of attributes against the table.
    pub fn check_names(&self, encoding: &Encoding) -> Result<()> {
        let names = || encoding.attributes.iter().map(|a| a.name.as_str());
        let find = |flag: &str, name: &str| {
            encoding.attributes.iter().find(|a| a.name == name).ok_or_else(|| {
                let known = known_names(name, names());
                Failure::option(flag, format!("`{name}` is not an attribute of this model; {known}"))
            })
        };
        for (name, _) in &self.units {
            find("unit", name)?;
        }
        for (name, _) in &self.prior_sd {
            if find("prior_sd", name)?.kind == Kind::Category {
                let message = format!("`{name}` is a category: a spread is for numbers");
                return Err(Failure::option("prior_sd", message));
            }
        }
        match &self.noise {
            Noise::TargetSd { attribute, .. } if *attribute != encoding.target.name => {
                find("target_sd", attribute)?;
            }
            Noise::TargetSd { attribute, .. } if !self.label_secret => {
                let message = format!("`{attribute}` is the target, which ⟨label=public⟩ takes as known");
                return Err(Failure::option("target_sd", message));
            }
            Noise::Shaped(options) => {
                options.goal_targets(encoding, self.label_secret, None)?;
            }
            Noise::TargetSd { .. } | Noise::Default | Noise::Given(_) | Noise::TargetEta { .. } => {}
        }
        Ok(())
    }
}

/// The delimiter of CSV files as a person writes it: a character, or `tab`.
pub fn delimiter(text: &str) -> Result<u8> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, [byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(Failure::text("delimiter", text, "expected one ASCII character, or `tab`")),
    }
}
