//! What is known of a table before anybody looks at it: a file that a person writes, or edits from a draft.

use crate::dates::{self, DateOrder};
use leakscope_core::error::numeral;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Version of the file.
const VERSION: u32 = 1;

/// The columns of a table: kinds, bounds, levels and units, as JSON.
///
/// Everything in it counts as public, unless it is still marked as a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Version of the file, 1.
    pub version: u32,
    /// Whether bounds and levels were read off the data and no person has looked at them yet. Such a schema checks
    /// a table, but makes nothing public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// All columns of the table, in any order.
    pub columns: Vec<SchemaColumn>,
}

/// One column of a [`Schema`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaColumn {
    /// Name of the column.
    pub name: String,
    /// What it holds.
    pub kind: SchemaKind,
    /// The smallest and the largest value that a number or a date can have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[Edge; 2]>,
    /// All values of a category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// Unit of a number, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// What a column holds, as a schema says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaKind {
    /// Numbers.
    Number,
    /// One of a limited number of texts.
    Category,
    /// Dates or times, which become days since 1970-01-01.
    Date,
    /// What names a record. It is used as the id where no other column is.
    Id,
    /// Nothing that is used.
    Ignored,
}

impl SchemaKind {
    /// Name, as in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Category => "category",
            Self::Date => "date",
            Self::Id => "id",
            Self::Ignored => "ignored",
        }
    }
}

/// A bound as it is written: a number, or a date in ISO form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Edge {
    /// A number.
    Number(f64),
    /// A date.
    Date(String),
}

impl Edge {
    fn value(&self) -> Option<f64> {
        match self {
            Self::Number(x) => Some(*x),
            Self::Date(text) => dates::parse(text.trim(), DateOrder::YearFirst),
        }
    }
}

/// The range that the values of a column can have, whatever the data are: finite, `low < high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)", into = "(f64, f64)")]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// A range; an error names the `column` where it is none.
    pub fn new(column: &str, low: f64, high: f64) -> Result<Self, SchemaError> {
        // Half the range must be finite too: it scales.
        let is_range = low < high && (high - low).is_finite() && low.is_finite() && high.is_finite();
        if is_range {
            Ok(Self { low, high })
        } else {
            Err(SchemaError::Range { column: column.into(), low, high })
        }
    }

    /// Smallest value.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Largest value.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Half of the sum: what is subtracted under [`Scale::Bounds`](crate::Scale::Bounds).
    pub fn centre(&self) -> f64 {
        0.5 * self.low + 0.5 * self.high
    }

    /// Half of the difference: what divides then.
    pub fn half_range(&self) -> f64 {
        0.5 * (self.high - self.low)
    }

    /// The value in the range that is closest to `x`; NaN stays NaN.
    pub(crate) fn clip(&self, x: f64) -> f64 {
        x.clamp(self.low, self.high)
    }

    /// Whether `x` lies outside; NaN does not.
    pub(crate) fn excludes(&self, x: f64) -> bool {
        x < self.low || x > self.high
    }
}

impl TryFrom<(f64, f64)> for Bounds {
    type Error = SchemaError;

    fn try_from((low, high): (f64, f64)) -> Result<Self, SchemaError> {
        Self::new("", low, high)
    }
}

impl From<Bounds> for (f64, f64) {
    fn from(bounds: Bounds) -> Self {
        (bounds.low, bounds.high)
    }
}

impl FromStr for Bounds {
    type Err = SchemaError;

    /// `0..100`, `-1.5..1.5`, `2019-01-01..2024-12-31`.
    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let wrong = || SchemaError::RangeText { text: text.into() };
        let (low, high) = text.split_once("..").ok_or_else(wrong)?;
        let value = |edge: &str| {
            let edge = edge.trim();
            edge.parse().ok().or_else(|| dates::parse(edge, DateOrder::YearFirst)).ok_or_else(wrong)
        };
        Self::new("", value(low)?, value(high)?).map_err(|_| wrong())
    }
}

impl SchemaColumn {
    /// A column of which nothing but its kind is known.
    pub fn new(name: &str, kind: SchemaKind) -> Self {
        Self { name: name.into(), kind, bounds: None, levels: None, unit: None }
    }

    /// The bounds, checked.
    pub fn range(&self) -> Result<Option<Bounds>, SchemaError> {
        let Some([low, high]) = &self.bounds else { return Ok(None) };
        let value = |edge: &Edge| {
            edge.value()
                .ok_or_else(|| SchemaError::RangeText { text: format!("{edge:?} of `{}`", self.name) })
        };
        Bounds::new(&self.name, value(low)?, value(high)?).map(Some)
    }
}

impl Schema {
    /// A schema of these columns.
    pub fn new(columns: Vec<SchemaColumn>) -> Self {
        Self { version: VERSION, draft: false, columns }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, SchemaError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SchemaError::Read { path: path.into(), message: source.to_string() })?;
        Self::from_json(&text).map_err(|error| match error {
            SchemaError::Read { message, .. } => SchemaError::Read { path: path.into(), message },
            other => other,
        })
    }

    /// Reads the text of a file, and checks what can be checked without a table.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let schema: Self = serde_json::from_str(text)
            .map_err(|e| SchemaError::Read { path: PathBuf::new(), message: e.to_string() })?;
        schema.check()?;
        Ok(schema)
    }

    /// The text of a file.
    pub fn to_json(&self) -> String {
        // Strings and finite numbers alone: nothing that JSON cannot hold.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&SchemaColumn> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// What is wrong with it, whatever the table.
    pub(crate) fn check(&self) -> Result<(), SchemaError> {
        if self.version != VERSION {
            return Err(SchemaError::Version { version: self.version });
        }
        for (i, c) in self.columns.iter().enumerate() {
            let column = || c.name.clone();
            if self.columns[..i].iter().any(|other| other.name == c.name) {
                return Err(SchemaError::Twice { column: column() });
            }
            c.range()?;
            let (bounds, levels) = (c.bounds.is_some(), c.levels.is_some());
            match c.kind {
                SchemaKind::Number | SchemaKind::Date if levels => {
                    return Err(SchemaError::Misplaced {
                        column: column(),
                        fact: "levels",
                        kind: c.kind.name(),
                    });
                }
                SchemaKind::Category | SchemaKind::Id | SchemaKind::Ignored if bounds => {
                    return Err(SchemaError::Misplaced {
                        column: column(),
                        fact: "bounds",
                        kind: c.kind.name(),
                    });
                }
                SchemaKind::Id | SchemaKind::Ignored if levels => {
                    return Err(SchemaError::Misplaced {
                        column: column(),
                        fact: "levels",
                        kind: c.kind.name(),
                    });
                }
                SchemaKind::Number
                | SchemaKind::Date
                | SchemaKind::Category
                | SchemaKind::Id
                | SchemaKind::Ignored => {}
            }
            if let Some(levels) = &c.levels {
                check_levels(&c.name, levels)?;
            }
        }
        Ok(())
    }
}

/// Levels must be there, and differ.
pub(crate) fn check_levels(column: &str, levels: &[String]) -> Result<(), SchemaError> {
    let mut sorted: Vec<&str> = levels.iter().map(|l| l.trim()).collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|w| w[0] == w[1]) {
        return Err(SchemaError::LevelTwice { column: column.into(), level: pair[0].into() });
    }
    if sorted.is_empty() { Err(SchemaError::NoLevels { column: column.into() }) } else { Ok(()) }
}

/// Why a schema is none, or contradicts the table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The file cannot be read.
    #[error(
        "{}: no schema can be read from it: {message}. `leakscope schema TABLE` drafts one to edit", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The file is of another version.
    #[error(
        "the schema is of version {version}, expected {VERSION}: draft it again with `leakscope schema TABLE`"
    )]
    Version {
        /// Its version.
        version: u32,
    },
    /// A column is listed twice.
    #[error("the schema lists column `{column}` twice: remove one of them")]
    Twice {
        /// The column.
        column: String,
    },
    /// The table lacks a column of the schema.
    #[error("the schema lists column `{column}`, which the table does not have: remove it from the schema")]
    Absent {
        /// The column.
        column: String,
    },
    /// The schema lacks a column of the table.
    #[error(
        "the table has column `{column}`, which the schema does not list: add it there, of kind `ignored` if it is \
         not to be used"
    )]
    Unlisted {
        /// The column.
        column: String,
    },
    /// The kind contradicts the table.
    #[error(
        "column `{column}` is of kind {kind} in the schema, but the table holds {content} there{example}"
    )]
    Kind {
        /// The column.
        column: String,
        /// Kind in the schema.
        kind: &'static str,
        /// What the table holds.
        content: &'static str,
        /// The first cell that shows it, in words, or nothing.
        example: String,
    },
    /// The kind contradicts what an option says.
    #[error(
        "column `{column}` is of kind {kind} in the schema, but ⟨{flag}⟩ gives it another role: change one of them"
    )]
    Role {
        /// The column.
        column: String,
        /// Kind in the schema.
        kind: &'static str,
        /// The option.
        flag: &'static str,
    },
    /// Bounds or levels where there can be none.
    #[error("column `{column}` is of kind {kind} and can have no {fact}: remove them")]
    Misplaced {
        /// The column.
        column: String,
        /// `bounds` or `levels`.
        fact: &'static str,
        /// Its kind.
        kind: &'static str,
    },
    /// Bounds that are no range.
    #[error(
        "{}{} to {} is no range: expected two finite numbers, the smaller one first",
        // who reads a pair by itself knows where it stands
        if column.is_empty() { String::new() } else { format!("bounds of `{column}`: ") },
        numeral(*low),
        numeral(*high)
    )]
    Range {
        /// The column.
        column: String,
        /// The first bound.
        low: f64,
        /// The second.
        high: f64,
    },
    /// Bounds that cannot be read.
    #[error(
        "bounds {text}: expected the smallest and the largest value, such as 0..100 or 2019-01-01..2024-12-31"
    )]
    RangeText {
        /// The text.
        text: String,
    },
    /// Values outside the bounds.
    #[error(
        "column `{column}`: {count} {} outside the bounds {} to {}: correct them or the bounds, or move such \
         values to the nearest bound with ⟨clip_to_bounds⟩",
        if *count == 1 { "value lies" } else { "values lie" },
        numeral(*low),
        numeral(*high)
    )]
    OutOfBounds {
        /// The column.
        column: String,
        /// Smallest value that is allowed.
        low: f64,
        /// Largest value that is allowed.
        high: f64,
        /// How many values lie outside.
        count: u64,
    },
    /// Scaling by bounds needs some.
    #[error(
        "⟨scale=bounds⟩: column `{column}` has no bounds: give them in the schema or with ⟨bounds⟩ {column}=LOW..HIGH"
    )]
    NoBounds {
        /// The column.
        column: String,
    },
    /// A scale that no column can have.
    #[error(
        "column `{column}`: ({column} − {})/{}: expected two finite numbers, the second above 0",
        numeral(*centre),
        numeral(*scale)
    )]
    Scale {
        /// The column.
        column: String,
        /// What is subtracted.
        centre: f64,
        /// What is divided by.
        scale: f64,
    },
    /// A list of levels is empty.
    #[error("column `{column}`: the list of levels is empty: name every value that it can have")]
    NoLevels {
        /// The column.
        column: String,
    },
    /// A level is listed twice.
    #[error("column `{column}`: level `{level}` is listed twice: remove one of them")]
    LevelTwice {
        /// The column.
        column: String,
        /// The level.
        level: String,
    },
    /// Classes of the target that no record has.
    #[error(
        "the target `{column}`: no training record has the {} {}, so there is no model of it: remove it from the list",
        if classes.len() == 1 { "class" } else { "classes" },
        classes.iter().map(|l| format!("`{l}`")).collect::<Vec<_>>().join(", ")
    )]
    UnusedClasses {
        /// The target.
        column: String,
        /// The classes.
        classes: Vec<String>,
    },
    /// A value that is no level.
    #[error(
        "{place}: column `{column}` is `{value}`, which is none of its listed levels: correct it, or list it"
    )]
    NotALevel {
        /// Where.
        place: Box<crate::Place>,
        /// The column.
        column: String,
        /// The value, truncated.
        value: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_written_and_read() {
        let mut schema = Schema::new(vec![
            SchemaColumn {
                bounds: Some([Edge::Number(0.0), Edge::Number(100.0)]),
                unit: Some("years".into()),
                ..SchemaColumn::new("age", SchemaKind::Number)
            },
            SchemaColumn {
                bounds: Some([Edge::Date("2019-01-01".into()), Edge::Date("2020-01-01".into())]),
                ..SchemaColumn::new("seen", SchemaKind::Date)
            },
            SchemaColumn {
                levels: Some(vec!["f".into(), "m".into()]),
                ..SchemaColumn::new("sex", SchemaKind::Category)
            },
            SchemaColumn::new("patient", SchemaKind::Id),
            SchemaColumn::new("note", SchemaKind::Ignored),
        ]);
        assert_eq!(Schema::from_json(&schema.to_json()), Ok(schema.clone()));
        schema.draft = true;
        assert!(schema.to_json().contains("\"draft\": true"));
        assert_eq!(Schema::from_json(&schema.to_json()), Ok(schema.clone()));
        let seen = schema.columns[1].range().unwrap().unwrap();
        assert_eq!((seen.low(), seen.high()), (17_897.0, 18_262.0));
        assert_eq!((seen.centre(), seen.half_range()), (18_079.5, 182.5));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |columns: &str| {
            Schema::from_json(&format!("{{\"version\": 1, \"columns\": [{columns}]}}")).unwrap_err()
        };
        let twice = r#"{"name": "a", "kind": "number"}"#;
        assert!(
            matches!(wrong(&format!("{twice}, {twice}")), SchemaError::Twice { column } if column == "a")
        );
        let range = r#"{"name": "a", "kind": "number", "bounds": [3, 3]}"#;
        assert!(matches!(wrong(range), SchemaError::Range { low: 3.0, high: 3.0, .. }));
        let date = r#"{"name": "a", "kind": "date", "bounds": ["2019-02-30", "2020-01-01"]}"#;
        assert!(matches!(wrong(date), SchemaError::RangeText { .. }));
        let levels = r#"{"name": "a", "kind": "number", "levels": ["x"]}"#;
        assert!(matches!(wrong(levels), SchemaError::Misplaced { fact: "levels", .. }));
        let bounds = r#"{"name": "a", "kind": "category", "bounds": [0, 1]}"#;
        assert!(matches!(wrong(bounds), SchemaError::Misplaced { fact: "bounds", .. }));
        let repeated = r#"{"name": "a", "kind": "category", "levels": ["x", " x"]}"#;
        assert!(matches!(wrong(repeated), SchemaError::LevelTwice { .. }));
        let none = r#"{"name": "a", "kind": "category", "levels": []}"#;
        assert!(matches!(wrong(none), SchemaError::NoLevels { .. }));
        let typo = r#"{"name": "a", "kind": "number", "bound": [0, 1]}"#;
        assert!(wrong(typo).to_string().contains("bound"));
        assert!(matches!(
            Schema::from_json(r#"{"version": 2, "columns": []}"#),
            Err(SchemaError::Version { version: 2 })
        ));
    }

    #[test]
    fn bounds_are_read_from_words() {
        let read = |text: &str| text.parse::<Bounds>().map(|b| (b.low(), b.high()));
        assert_eq!(read("0..100"), Ok((0.0, 100.0)));
        assert_eq!(read("-1.5 .. -.5"), Ok((-1.5, -0.5)));
        assert_eq!(read("1970-01-01..1970-01-11"), Ok((0.0, 10.0)));
        for wrong in ["", "5", "1..", "..1", "2..1", "1..1", "0..inf", "nan..1", "a..b", "-1.7e308..1.7e308"]
        {
            assert!(matches!(read(wrong), Err(SchemaError::RangeText { .. })), "{wrong}");
        }
    }
}
