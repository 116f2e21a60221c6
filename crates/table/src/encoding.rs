//! How the columns of a table become the columns of a model: plain data, made by
//! [`Encoding::fit`](crate::Encoding::fit).

use crate::column::{Kind, Origin, Role};
use crate::dates::{self, DateOrder};
use crate::duplicates::EqualRows;
use crate::holdout::Holdout;
use crate::notation::DAYS;
use crate::public::Public;
use crate::rare::HangingLevels;
use crate::remark::Remark;
use crate::schema::Bounds;
pub use leakscope_core::choice::{OneHot, Scale};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What an encoding read off the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOff {
    /// The levels of a category.
    Levels,
    /// Centre or scale of a column.
    Scale,
    /// What stands in for a missing value.
    Fill,
    /// The two classes of the target.
    Classes,
    /// The mean of the weights.
    WeightMean,
    /// Principal components.
    Components,
}

/// What was guessed about a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// Whether it holds numbers, dates or texts.
    Kind,
    /// Whether its texts name the rows, so that it is left out.
    Identifier,
}

/// What to do where a value is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Stop, naming columns and counts.
    #[default]
    Fail,
    /// Leave out rows with a missing value in any used column.
    Drop,
    /// Fill in the training mean, or the most frequent level (of equally frequent ones the first). A missing
    /// target, weight, id or group remains an error.
    Mean,
}

/// What the model takes as its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A number.
    Number {
        /// Whether a target with exactly two distinct values, numbers or text, is coded −1 and +1.
        two_class_as_plus_minus_one: bool,
    },
    /// Exactly two distinct values, numbers or text, coded 0 and 1.
    TwoClass01,
    /// Two or more distinct values, numbers or text, coded 0, 1, 2, … in sorted order.
    Classes {
        /// How many there may be.
        most: usize,
    },
    /// A number that is zero or more. It need not be whole: rates are fine for a Poisson model.
    Count,
    /// A number above zero.
    Positive,
}

/// How to encode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodeOptions {
    /// Levels that get a column.
    pub one_hot: OneHot,
    /// Scaling; it comes before the principal components.
    pub scale: Scale,
    /// Number of principal components to keep instead of the columns.
    pub pca: Option<usize>,
    /// What to do where a value is missing.
    pub missing: Missing,
    /// Whether a column of ones is appended.
    pub intercept: bool,
    /// What the model takes as its target.
    pub target: TargetKind,
    /// Rows to hold out from fitting.
    pub holdout: Option<Holdout>,
    /// The class that is coded high; by default the second in sorted order.
    pub positive: Option<String>,
    /// What is known of the columns without looking at the data.
    pub public: Public,
    /// Levels that were not given and that fewer training rows have are merged into `other`; none are by default.
    pub min_level_count: Option<u64>,
    /// Whether several rows may have one id; otherwise that is an error.
    pub repeated_ids: bool,
}

/// `min_level_count` of what is published.
pub const MIN_LEVEL_COUNT: u64 = 10;

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            one_hot: OneHot::default(),
            scale: Scale::default(),
            pca: None,
            missing: Missing::default(),
            intercept: true,
            target: TargetKind::Number { two_class_as_plus_minus_one: true },
            holdout: None,
            positive: None,
            public: Public::default(),
            min_level_count: None,
            repeated_ids: false,
        }
    }
}

/// A feature column of the table and the encoded columns it became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// Name of the column.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Levels of a category, sorted as text; empty for a number.
    pub levels: Vec<String>,
    /// Its encoded columns, before principal components.
    pub columns: Range<usize>,
    /// `x_own = centre + scale · x_encoded`; 0 for categories.
    pub centre: f64,
    /// Own units per encoded unit: the sd under standard scaling, R under unit-ball, 1 otherwise.
    pub scale: f64,
    /// Population standard deviation of a number in its own units, over the training values that are there; 0
    /// for categories.
    pub population_sd: f64,
    /// Mean of a number over the training values that are there; 0 for categories.
    pub mean: f64,
    /// Index of the level that stands in for a missing one: the most frequent, of equals the first.
    pub most_frequent: usize,
    /// Index of the level that rare ones were merged into, and that stands for every level that is not listed.
    #[serde(default)]
    pub other: Option<usize>,
    /// Public bounds of a number.
    #[serde(default)]
    pub bounds: Option<Bounds>,
    /// Whether values outside the bounds are moved to the nearest one.
    #[serde(default)]
    pub clipped: bool,
    /// Unit of a number, where somebody gave it or the table tells it.
    #[serde(default)]
    pub unit: Option<String>,
    /// Where the levels come from.
    #[serde(default)]
    pub levels_origin: Origin,
    /// Where the list of levels, read off the data, would be another if one row had another of them: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels_hang_on_one: Option<HangingLevels>,
    /// Where centre and scale come from.
    #[serde(default)]
    pub scale_origin: Origin,
    /// Where the value comes from that stands in for a missing one.
    #[serde(default)]
    pub fill_origin: Origin,
}

impl Attribute {
    /// Whether its numbers are dates, counted in days.
    pub fn is_date(&self) -> bool {
        self.unit.as_deref() == Some(DAYS)
    }

    /// How people write one of its numbers, where that is not as a number: a date.
    pub fn date_text(&self, value: f64) -> Option<String> {
        if self.is_date() { dates::iso_of_days(value) } else { None }
    }

    /// A value as somebody writes it: a number, or a date such as 2024-12-31 where its numbers are dates.
    pub fn value_of(&self, text: &str) -> Option<f64> {
        let date = || dates::parse(text, DateOrder::YearFirst).filter(|_| self.is_date());
        text.parse::<f64>().ok().filter(|v| v.is_finite()).or_else(date)
    }
}

/// The grouping column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Name of the column.
    pub name: String,
    /// Names of the groups in sorted order; a block's `group` is an index into them.
    pub levels: Vec<String>,
    /// Training rows of each group.
    pub counts: Vec<u64>,
}

/// One of the classes of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The class as it is in the table.
    pub name: String,
    /// The class as a number, where the target is one.
    pub value: Option<f64>,
    /// What stands for it in a block's `y`.
    pub code: f64,
    /// Training rows of it.
    pub count: u64,
}

/// How the target becomes a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetCoding {
    /// As it is.
    Number,
    /// As it is, zero or more.
    Count,
    /// As it is, above zero.
    Positive,
    /// Two classes, each with a code.
    TwoClass {
        /// The class with the low code.
        low: Class,
        /// The class with the high code.
        high: Class,
    },
    /// Two or more classes, coded from 0 in this order.
    Classes(Vec<Class>),
}

/// The target column and its coding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Name of the column.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// How it becomes a number.
    pub coding: TargetCoding,
    /// Public bounds of a number.
    #[serde(default)]
    pub bounds: Option<Bounds>,
    /// Whether values outside the bounds are moved to the nearest one.
    #[serde(default)]
    pub clipped: bool,
    /// Where the two classes come from; a number has none, and nothing to be read off.
    #[serde(default)]
    pub origin: Origin,
}

/// Principal components of the scaled columns, of the training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pca {
    /// Mean of the scaled columns (p).
    pub mean: Vec<f64>,
    /// Orthonormal rows, K × p row-major; in each the entry of largest magnitude is positive.
    pub components: Vec<f64>,
    /// Share of the variance along each component.
    pub explained: Vec<f64>,
}

/// What a column was found to hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnProfile {
    /// Name of the column.
    pub name: String,
    /// What it was read as.
    pub kind: Kind,
    /// What it is for.
    pub role: Role,
    /// Training values that are there.
    pub count: u64,
    /// Missing values in all rows read, held-out ones included.
    pub missing: u64,
    /// Mean of the training values.
    pub mean: Option<f64>,
    /// Population standard deviation of the training values.
    pub sd: Option<f64>,
    /// Smallest training value.
    pub min: Option<f64>,
    /// Largest training value.
    pub max: Option<f64>,
    /// Levels, sorted, with the number of training rows that have them.
    pub levels: Vec<(String, u64)>,
}

/// How the columns of a table become the columns of a model, fitted on the training rows.
///
/// Plain data: it can be kept, sent and used on another table with the same columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// The features, in the order of the table.
    pub attributes: Vec<Attribute>,
    /// The target.
    pub target: Target,
    /// The id column.
    pub id: Option<String>,
    /// The weights column.
    pub weights: Option<String>,
    /// Mean of the weights over the training rows, by which they are divided; 1 without weights.
    #[serde(default = "one")]
    pub weight_mean: f64,
    /// The grouping column.
    pub group: Option<Group>,
    /// Levels that got a column.
    pub one_hot: OneHot,
    /// How columns were scaled.
    pub scale: Scale,
    /// What happens where a value is missing.
    pub missing: Missing,
    /// Whether the last model column is one of ones.
    pub intercept: bool,
    /// The largest row norm R, under unit-ball scaling.
    pub unit_ball: Option<f64>,
    /// Principal components.
    pub pca: Option<Pca>,
    /// The rows held out.
    pub holdout: Option<Holdout>,
    /// What every used column was found to hold.
    pub profile: Vec<ColumnProfile>,
    /// Rows of the table.
    pub rows_read: u64,
    /// Rows left out because of a missing value.
    pub rows_dropped: u64,
    /// Rows to fit on.
    pub rows_training: u64,
    /// Rows held out (before those with unseen levels are left out).
    pub rows_held_out: u64,
    /// The most rows that have one id, held-out ones included; 1 without an id.
    #[serde(default = "one_row")]
    pub rows_of_one: u64,
    /// Training rows that repeat an earlier one in every column used; `None` where there are too many rows to count.
    #[serde(default)]
    pub copies: Option<u64>,
    /// How often they do; `None` where no row repeats another, or there are too many rows to count.
    #[serde(default)]
    pub equal_rows: Option<EqualRows>,
    /// What was guessed about the table.
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// Columns about which something was guessed that would be guessed otherwise if one row were another, or were not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hang_on_one: Vec<(String, Guess)>,
    /// Where lists of levels hang on one row: a number of rows of a level at which none does, rarer ones merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels_settled_at: Option<u64>,
}

fn one() -> f64 {
    1.0
}

fn one_row() -> u64 {
    1
}

impl Encoding {
    /// Number of encoded columns before principal components, without the intercept.
    pub(crate) fn raw_width(&self) -> usize {
        self.attributes.last().map_or(0, |a| a.columns.end)
    }

    /// Everything that was read off the data, with its column where it has one: what a release must count, or must
    /// not publish.
    pub fn read_off_data(&self) -> Vec<(Option<String>, ReadOff)> {
        let mut list = vec![];
        for a in &self.attributes {
            let mut add = |origin: Origin, read: ReadOff| {
                if origin == Origin::ReadOffData {
                    list.push((Some(a.name.clone()), read));
                }
            };
            add(a.levels_origin, ReadOff::Levels);
            add(a.scale_origin, ReadOff::Scale);
            add(a.fill_origin, ReadOff::Fill);
        }
        if self.target.origin == Origin::ReadOffData {
            list.push((Some(self.target.name.clone()), ReadOff::Classes));
        }
        if let Some(weights) = &self.weights {
            list.push((Some(weights.clone()), ReadOff::WeightMean));
        }
        if self.pca.is_some() {
            list.push((None, ReadOff::Components));
        }
        list
    }

    /// Number of model columns that are data: components, or encoded columns.
    pub fn data_width(&self) -> usize {
        self.pca.as_ref().map_or(self.raw_width(), |pca| pca.explained.len())
    }

    /// Number of model columns, intercept included.
    pub fn width(&self) -> usize {
        self.data_width() + usize::from(self.intercept)
    }

    /// Names of the model columns: `age`, `race=white`, with principal components `pc1`…, last `(intercept)`.
    pub fn columns(&self) -> Vec<String> {
        let mut names = match &self.pca {
            Some(pca) => (1..=pca.explained.len()).map(|k| format!("pc{k}")).collect(),
            None => self.raw_columns(),
        };
        if self.intercept {
            names.push("(intercept)".into());
        }
        names
    }

    /// Names of the encoded columns before principal components.
    pub fn raw_columns(&self) -> Vec<String> {
        let of = |a: &Attribute| match a.kind {
            Kind::Number => vec![a.name.clone()],
            Kind::Category => a.levels[self.one_hot.places(a.levels.len())]
                .iter()
                .map(|l| format!("{}={l}", a.name))
                .collect(),
        };
        self.attributes.iter().flat_map(of).collect()
    }
}
