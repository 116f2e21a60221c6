//! What was guessed about a table and what was done about it, so that nobody has to find out alone.

use crate::dates::DateOrder;
use crate::words;
use leakscope_core::error::numeral;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A guess about the table, or something about it that changes what the numbers mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "remark")]
#[non_exhaustive]
pub enum Remark {
    /// The names of the columns look like values.
    HeaderIsData,
    /// A column that numbers the rows was left out.
    Index {
        /// The column.
        column: String,
    },
    /// A column without a name that does not number the rows was kept.
    Nameless {
        /// The name that it was given.
        column: String,
    },
    /// A schema that nobody has checked was given: everything in it counts as read off the data.
    DraftSchema,
    /// A column of text whose values nearly all differ was left out.
    Identifier {
        /// The column.
        column: String,
        /// Different values; `None` where there were too many to count.
        values: Option<u64>,
        /// Training rows.
        rows: u64,
    },
    /// Dates were read as numbers.
    Dates {
        /// The column.
        column: String,
        /// What stands first in them.
        order: DateOrder,
    },
    /// Dates that do not tell whether the day or the month comes first, or do so in several orders, were read as categories.
    DatesUnclear {
        /// The column.
        column: String,
        /// The first of them.
        cell: String,
    },
    /// A column of numbers has the name of an identifier or of a code.
    NamedLikeCode {
        /// The column.
        column: String,
    },
    /// Numbers with a currency or per cent were read.
    Unit {
        /// The column.
        column: String,
        /// The unit.
        unit: String,
    },
    /// Texts of a table that is no text file are all written as amounts, shares or dates, and were read as categories.
    TextsLikeNumbers {
        /// The column.
        column: String,
        /// One of them.
        cell: String,
    },
    /// Texts that nearly all begin with a number, and are none, count as different values each.
    NumbersInTexts {
        /// The column.
        column: String,
        /// One of them.
        cell: String,
    },
    /// An extreme of the column looks like a marker of missing values.
    Marker {
        /// The column.
        column: String,
        /// The extreme.
        value: f64,
    },
    /// Two levels differ in upper and lower case alone.
    Alike {
        /// The column.
        column: String,
        /// A level.
        one: String,
        /// The other.
        other: String,
    },
    /// Numbers with separators between thousands, or a minus as print has it, were read.
    Separators {
        /// The column.
        column: String,
    },
    /// Rare levels were merged.
    RareLevels {
        /// The column.
        column: String,
        /// How many levels were merged.
        merged: usize,
        /// Training rows that had one of them.
        rows: u64,
        /// The count below which a level is rare.
        min_count: u64,
    },
    /// Values were moved to the bounds.
    Clipped {
        /// The column.
        column: String,
        /// How many values.
        count: u64,
        /// Smallest value that is allowed.
        low: f64,
        /// Largest value that is allowed.
        high: f64,
    },
    /// Weights were divided by their mean.
    Weights {
        /// The column.
        column: String,
        /// Their mean over the training rows.
        mean: f64,
    },
    /// Some training rows are copies of others.
    Duplicates {
        /// Rows that repeat an earlier one.
        copies: u64,
        /// Training rows.
        rows: u64,
    },
    /// Several rows have one id.
    Repeated {
        /// The id column.
        column: String,
        /// The most rows that have one id.
        most: u64,
    },
    /// A target of two texts is fitted as a number.
    TwoClasses {
        /// The target.
        column: String,
        /// The class coded −1.
        low: String,
        /// The class coded +1.
        high: String,
    },
    /// A target with fractions is fitted as a count.
    Fractions {
        /// The target.
        column: String,
    },
    /// A target of a few whole numbers is fitted as a number.
    FewValues {
        /// The target.
        column: String,
        /// How many values.
        values: usize,
    },
}

impl Remark {
    /// Whether it says what was done and asks for nothing: a note. Others may mean that another reading was meant, or that the
    /// numbers say less than they seem to.
    pub fn is_note(&self) -> bool {
        match self {
            Self::Index { .. }
            | Self::Nameless { .. }
            | Self::Identifier { .. }
            | Self::Dates { .. }
            | Self::Unit { .. }
            | Self::Separators { .. }
            | Self::RareLevels { .. }
            | Self::Weights { .. } => true,
            Self::HeaderIsData
            | Self::DraftSchema
            | Self::DatesUnclear { .. }
            | Self::NamedLikeCode { .. }
            | Self::TextsLikeNumbers { .. }
            | Self::NumbersInTexts { .. }
            | Self::Marker { .. }
            | Self::Alike { .. }
            | Self::Clipped { .. }
            | Self::Duplicates { .. }
            | Self::Repeated { .. }
            | Self::TwoClasses { .. }
            | Self::Fractions { .. }
            | Self::FewValues { .. } => false,
        }
    }

    /// The column it is about; none where it is about the whole table.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::HeaderIsData | Self::DraftSchema | Self::Duplicates { .. } => None,
            Self::Index { column }
            | Self::Nameless { column }
            | Self::Identifier { column, .. }
            | Self::Dates { column, .. }
            | Self::DatesUnclear { column, .. }
            | Self::NamedLikeCode { column }
            | Self::Unit { column, .. }
            | Self::Separators { column }
            | Self::TextsLikeNumbers { column, .. }
            | Self::NumbersInTexts { column, .. }
            | Self::Marker { column, .. }
            | Self::Alike { column, .. }
            | Self::RareLevels { column, .. }
            | Self::Clipped { column, .. }
            | Self::Weights { column, .. }
            | Self::Repeated { column, .. }
            | Self::TwoClasses { column, .. }
            | Self::Fractions { column }
            | Self::FewValues { column, .. } => Some(column),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderIsData => f.write_str(
                "The names of the columns look like a row of data. If the file has no line of names, read it with \
                 ⟨no_header⟩: columns are then called c1, c2, ….",
            ),
            Self::Index { column } => write!(
                f,
                "Column `{column}` numbers the rows and was left out. To use it, give it a name of its own or list it in \
                 a schema; to name records by it, name it as the ⟨id⟩."
            ),
            Self::Nameless { column } => write!(
                f,
                "Column `{column}` has no name in the file. It does not number the rows, so it was kept: give it a name, or leave it \
                 out with ⟨drop={column}⟩."
            ),
            Self::DraftSchema => f.write_str(
                "The schema is a draft that was read off these data: its bounds and levels count as read off the data, not as \
                 given. Check it, put in what is known without the data, and remove the line `\"draft\": true`.",
            ),
            Self::Identifier { column, values, rows } => {
                let share = match values {
                    Some(values) => format!("{} different values in {} rows", words::count(*values), words::count(*rows)),
                    None => "a different value in nearly every row".into(),
                };
                write!(
                    f,
                    "Column `{column}` looks like an identifier ({share}) and was left out. Name it as the ⟨id⟩ to name \
                     records by it. If it is none, name it among ⟨categorical⟩: it is then used, each value a category of its own."
                )
            }
            Self::Dates { column, order } => {
                let order = match order {
                    DateOrder::YearFirst => "",
                    DateOrder::DayFirst => " with the day first",
                    DateOrder::MonthFirst => " with the month first",
                };
                write!(f, "Column `{column}` holds dates{order}; they were read as days since 1970-01-01.")
            }
            Self::DatesUnclear { column, cell } => write!(
                f,
                "Column `{column}` holds dates such as `{cell}` whose order of day and month is unclear, or differs from row to \
                 row: they were read as texts. Write all of them as 2024-12-31 (or 31.12.2024) to use them as dates."
            ),
            Self::NamedLikeCode { column } => write!(
                f,
                "Column `{column}` is named like an identifier or a code and is used as a number, as if larger meant \
                 more. Name it as the ⟨id⟩ if it says whose record a row is, among ⟨categorical⟩ if it is a code, or \
                 among ⟨drop⟩ to leave it out."
            ),
            Self::Unit { column, unit } => {
                write!(f, "Column `{column}` holds numbers in {unit}; the sign was taken as their unit.")
            }
            Self::Separators { column } => write!(
                f,
                "Column `{column}` has numbers as print has them: separators between thousands were removed, and a long minus sign or \
                 parentheses make a number negative. If the separators are decimal commas, say so by ⟨decimal⟩."
            ),
            Self::NumbersInTexts { column, cell } => write!(
                f,
                "Nearly all texts of column `{column}` begin with a number, such as `{cell}`, and are none as they stand: each that \
                 differs counts as a value of its own. Where numbers or dates are meant, write them plainly (12.5, 2024-12-31)."
            ),
            Self::Marker { column, value } => {
                let (value, reaches) = (numeral(*value), if *value < 0.0 { "goes down" } else { "goes up" });
                write!(
                    f,
                    "Column `{column}` {reaches} to {value}, far from its other values, and that was taken for a number. If it marks \
                     a missing value, say ⟨na={value}⟩."
                )
            }
            Self::Alike { column, one, other } => write!(
                f,
                "Column `{column}` has the levels `{one}` and `{other}`, which differ in upper and lower case alone and count as two. \
                 Write them alike if they are one."
            ),
            Self::RareLevels { column, merged, rows, min_count } => write!(
                f,
                "Column `{column}`: {} levels ({} records together) were merged into `other`: those that fewer \
                 than {min_count} records have, and the next rarest as long as `other` itself had fewer.",
                words::count(*merged as u64),
                words::count(*rows)
            ),
            Self::Clipped { column, count, low, high } => write!(
                f,
                "Column `{column}`: {} {} outside {} to {} and {} moved to the nearest bound.",
                words::count(*count),
                if *count == 1 { "value lay" } else { "values lay" },
                numeral(*low),
                numeral(*high),
                if *count == 1 { "was" } else { "were" }
            ),
            Self::Weights { column, mean } => write!(
                f,
                "The weights in `{column}` have the mean {}; they were divided by it. Noise and penalty are then \
                 meant for the same number of records, whatever the unit of the weights.",
                // Its digits are of no use, and many.
                format!("{mean:.3e}").parse().map_or_else(|_| numeral(*mean), numeral)
            ),
            Self::TextsLikeNumbers { column, cell } => write!(
                f,
                "Column `{column}` holds texts that are all written as amounts, shares or dates, such as `{cell}`; they were read as texts. \
                 Where numbers are meant, write numbers into the file, or save it as CSV, where such texts are read as numbers."
            ),
            Self::Duplicates { copies, rows } => write!(
                f,
                "{} of {} training rows {} an earlier row in every column that is used. η is that of one \
                 row: whoever stands behind k equal rows moves the model k times as far.",
                words::count(*copies),
                words::count(*rows),
                if *copies == 1 { "repeats" } else { "repeat" }
            ),
            Self::Repeated { column, most } => write!(
                f,
                "Up to {} rows have one `{column}`. η and what is told apart are those of one row: whoever stands behind k rows \
                 moves the model up to about k times as far.",
                words::count(*most)
            ),
            Self::TwoClasses { column, low, high } => write!(
                f,
                "The target `{column}` has two classes and is fitted as a number ({low} = −1, {high} = 1). For two \
                 classes ⟨model=logistic⟩ is usually meant."
            ),
            Self::Fractions { column } => write!(
                f,
                "The target `{column}` has fractions, and the Poisson model is one of counts: for other numbers ⟨model=linear⟩ is \
                 usually meant."
            ),
            Self::FewValues { column, values } => write!(
                f,
                "The target `{column}` has {values} values, all whole, and is fitted as a number. If they are classes, \
                 ⟨model={}⟩ is meant.",
                if *values == 2 { "logistic" } else { "softmax" }
            ),
        }
    }
}
