//! A first schema of a table, for a person to edit.

use crate::column::Kind;
use crate::dates;
use crate::encoding::{EncodeOptions, Missing};
use crate::hooks::Hooks;
use crate::layout::Layout;
use crate::notation::Notation;
use crate::profile::{Column, Profiling};
use crate::schema::{Edge, Schema, SchemaColumn, SchemaKind};
use crate::table::Table;
use crate::{Error, Result};

/// More levels than this are not written down: nobody would read them.
const MAX_DRAFTED: usize = 200;

impl Schema {
    /// Drafts a schema from the data, in one pass: kinds as they look, levels as they occur, bounds rounded outwards
    /// to a number that stands for itself.
    ///
    /// It is marked as a draft, since everything in it was read off the data: a person must check it, replace bounds
    /// and levels by what is known without the data, and remove the mark.
    pub fn draft(table: &Table, hooks: &Hooks) -> Result<Self> {
        let mut layout = Layout::of_all(table);
        if layout.wants.is_empty() {
            return Err(Error::NoFeatures);
        }
        let options = EncodeOptions { missing: Missing::Mean, ..EncodeOptions::default() };
        let profile = loop {
            let profiling = Profiling::of_layout(layout.clone(), &options);
            match profiling.run(table, hooks).and_then(|profile| profiling.settled(profile)) {
                // Neither a category nor an identifier: a person must decide, so it is not used.
                Err(Error::TooManyLevels { column, .. }) if layout.features > 1 => {
                    let at: Vec<usize> = layout.names.iter().position(|n| *n == column).into_iter().collect();
                    layout = layout.without(&at)?;
                }
                other => break other?,
            }
        };
        let mut columns = Vec::with_capacity(table.columns().len());
        for (i, c) in table.columns().iter().enumerate() {
            let at = layout.wants.iter().position(|w| w.column == i);
            columns.push(match at {
                None => SchemaColumn::new(&c.name, SchemaKind::Ignored),
                Some(_) if c.index => SchemaColumn::new(&c.name, SchemaKind::Ignored),
                Some(at) => match c.kind {
                    Kind::Number => number(&c.name, &c.notation, &profile.columns[at]),
                    Kind::Category => category(&c.name, &profile.columns[at]),
                },
            });
        }
        Ok(Self { draft: true, ..Self::new(columns) })
    }
}

fn number(name: &str, notation: &Notation, c: &Column) -> SchemaColumn {
    let values = &c.numbers;
    let known = values.count > 0;
    if !known {
        // Without a value there is nothing to fit, and nothing to say what it would be.
        return SchemaColumn::new(name, SchemaKind::Ignored);
    }
    match notation {
        Notation::Date(_) => {
            // Whole years around the dates.
            let year = |days: f64| -> i64 { dates::iso(days.floor() as i64, 0)[..4].parse().unwrap_or(1970) };
            let edges = [
                Edge::Date(format!("{:04}-01-01", year(values.min))),
                Edge::Date(format!("{:04}-01-01", year(values.max) + 1)),
            ];
            SchemaColumn { bounds: Some(edges), ..SchemaColumn::new(name, SchemaKind::Date) }
        }
        Notation::Plain | Notation::Grouped | Notation::Currency(_) | Notation::Percent => {
            let (low, high) = outwards(values.min, values.max);
            let usable = low.is_finite() && high.is_finite() && (high - low).is_finite();
            SchemaColumn {
                bounds: usable.then_some([Edge::Number(low), Edge::Number(high)]),
                unit: notation.unit(),
                ..SchemaColumn::new(name, SchemaKind::Number)
            }
        }
    }
}

fn category(name: &str, c: &Column) -> SchemaColumn {
    if c.is_identifier() {
        return SchemaColumn::new(name, SchemaKind::Id);
    }
    let few = (1..=MAX_DRAFTED).contains(&c.levels.len());
    let levels = few.then(|| c.levels.keys().map(|l| l.to_string()).collect());
    SchemaColumn { levels, ..SchemaColumn::new(name, SchemaKind::Category) }
}

/// A range around the values whose ends are 0 or 1, 2 or 5 times a power of ten.
fn outwards(min: f64, max: f64) -> (f64, f64) {
    let away = |x: f64| if x > 0.0 { round_up(x) } else { 0.0 };
    // `0 − x`, not `−x`: a zero without a sign.
    match (0.0 - away(-min), away(max)) {
        (0.0, 0.0) => (0.0, 1.0),
        range => range,
    }
}

/// The smallest of 1, 2, 5, 10, … that is at least `x > 0`.
fn round_up(x: f64) -> f64 {
    let exponent = x.log10().floor() as i32;
    // Parsed, so that it is the number that somebody would write.
    let at = |digit: u32, exponent: i32| format!("{digit}e{exponent}").parse().unwrap_or(f64::INFINITY);
    [at(1, exponent), at(2, exponent), at(5, exponent), at(1, exponent + 1), at(2, exponent + 1)]
        .into_iter()
        .find(|b| *b >= x)
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_round() {
        assert_eq!(outwards(17.0, 90.0), (0.0, 100.0));
        assert_eq!(outwards(-3.0, 0.04), (-5.0, 0.05));
        assert_eq!(outwards(0.0, 0.0), (0.0, 1.0));
        assert_eq!(outwards(-2.0, -1.0), (-2.0, 0.0));
        assert_eq!(outwards(1.0, 1000.0), (0.0, 1000.0));
    }

    proptest! {
        #[test]
        fn ranges_hold_the_values(a in -1e300_f64..1e300, b in -1e3_f64..1e3) {
            for (min, max) in [(a.min(b), a.max(b)), (b, b), (a, a)] {
                let (low, high) = outwards(min, max);
                prop_assert!(low <= min && max <= high && low < high, "{low} {min} {max} {high}");
            }
        }
    }
}
