//! The measuring pass of core over a table: every record goes to the table of records, and the rows that the page speaks
//! of get their names.

use super::explore::EXPLORED;
use super::measuring::{Measures, Measuring, Named};
use super::scaling::Prepared;
use super::{AttributeSlot, Request};
use crate::labelled::{self, Names};
use crate::model::class_names;
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::fisher::{Eta, Geometry, SetSums};
use leakscope_core::measure::{Measure, Series, Tally};
use leakscope_core::num::Distribution;
use leakscope_core::rows::Rows;
use leakscope_report::choice::SeriesBy;
use leakscope_table::TargetCoding;
use leakscope_table::{Dataset, Encoding, RecordsSchema, RecordsWriter};
use std::borrow::Cow;

/// What the records of a chart are told apart by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesNames {
    /// `group`, `class` or `all`.
    pub(super) by: SeriesBy,
    pub(super) names: Vec<String>,
}

impl SeriesNames {
    pub(super) fn of(encoding: &Encoding) -> Self {
        if let Some(group) = &encoding.group {
            return Self { by: SeriesBy::Group, names: group.levels.clone() };
        }
        match class_names(encoding) {
            Some(names) => Self { by: SeriesBy::Class, names },
            None => Self { by: SeriesBy::All, names: vec!["all records".into()] },
        }
    }
}

pub(super) fn series_of(encoding: &Encoding) -> Series {
    match (&encoding.group, &encoding.target.coding) {
        (Some(group), _) => Series::Group { groups: group.levels.len() },
        (None, TargetCoding::TwoClass { .. }) => Series::Class,
        (None, TargetCoding::Classes(classes)) => Series::Classes { classes: classes.len() },
        (None, TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive) => Series::All,
    }
}

/// What the pass found, and what its series and rows are called.
pub(super) struct Measured {
    pub(super) series: SeriesNames,
    pub(super) names: Names,
    pub(super) tally: Tally,
}

impl std::ops::Deref for Measured {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        &self.tally
    }
}

/// Sums over all records, and over those of each group.
pub(super) struct Sets {
    pub(super) whole: SetSums,
    pub(super) groups: Vec<SetSums>,
}

/// Columns of the table of records.
pub(super) fn schema(
    encoding: &Encoding,
    slots: &[AttributeSlot],
    label_secret: bool,
) -> Result<RecordsSchema> {
    let mut numbers: Vec<String> = ["eta", "dfil", "loss", "gradient_norm"].map(String::from).into();
    for slot in slots {
        numbers.push(format!("eta_{}", encoding.attributes[slot.attribute].name));
    }
    for slot in slots.iter().filter(|s| s.constrained.is_some()) {
        numbers.push(format!("eta_{}_sum_to_one", encoding.attributes[slot.attribute].name));
    }
    if label_secret {
        numbers.push(format!("eta_{}", encoding.target.name));
    }
    let schema = RecordsSchema { id: id_name(encoding), texts: series_column(encoding), numbers };
    let mut names: Vec<&String> =
        [&schema.id].into_iter().chain(&schema.texts).chain(&schema.numbers).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::Message(format!(
            "the table of records would have two columns `{}`: rename that column of the input",
            pair[0]
        )));
    }
    Ok(schema)
}

pub(super) fn id_name(encoding: &Encoding) -> String {
    encoding.id.clone().unwrap_or_else(|| "row".into())
}

fn series_column(encoding: &Encoding) -> Vec<String> {
    match (&encoding.group, class_names(encoding)) {
        (Some(group), _) => vec![group.name.clone()],
        (None, Some(_)) => vec![encoding.target.name.clone()],
        (None, None) => vec![],
    }
}

/// Where the records of a measurement go.
pub(super) enum Records<'a> {
    /// Nowhere.
    None,
    /// To a table here.
    Here(&'a mut RecordsWriter),
    /// To a table of each part, by whoever reads it.
    Elsewhere(RecordsSchema),
}

/// A pass of core over the records of a table, with their names; and what its series are called.
pub(super) fn named<P: Measures>(
    rows: &Dataset,
    pass: P,
    slots: &[AttributeSlot],
    records: Records<'_>,
) -> Result<(Named<P::State>, SeriesNames, P)> {
    let series = SeriesNames::of(rows.encoding());
    let (schema, writer) = match records {
        Records::None => (None, None),
        Records::Here(writer) => (None, Some(writer)),
        Records::Elsewhere(schema) => (Some(schema), None),
    };
    let slots = slots.iter().map(|s| (s.free, s.constrained)).collect();
    let measuring = Measuring { pass, slots, series: series.names.clone(), schema };
    let total = labelled::run(&measuring, rows, writer)?;
    Ok((total, series, measuring.pass))
}

/// [`named`], with the records in a table of the folder where there is one.
pub(super) fn recorded<T>(
    request: &Request,
    rows: &Dataset,
    slots: &[AttributeSlot],
    (folder, pending): (Option<&Folder>, &mut Pending),
    measure: impl FnOnce(Records<'_>) -> Result<T>,
) -> Result<T> {
    let Some(folder) = folder else { return measure(Records::None) };
    let schema = schema(rows.encoding(), slots, request.label_secret)?;
    if rows.away().is_some() {
        return measure(Records::Elsewhere(schema));
    }
    let mut writer = folder.table("records", schema)?.keeping(rows.len(), EXPLORED);
    let total = measure(Records::Here(&mut writer))?;
    pending.tables([writer]);
    Ok(total)
}

/// Measures every record.
pub(super) fn measure(
    rows: &Dataset,
    prepared: &Prepared,
    slots: &[AttributeSlot],
    records: Records<'_>,
) -> Result<(Measured, Sets)> {
    let compared: Vec<usize> = slots.iter().map(|slot| slot.free).collect();
    let pass = Measure {
        geometry: Cow::Borrowed(&prepared.geometry),
        series: series_of(rows.encoding()),
        compared: Cow::Owned(compared),
        counting: prepared.counting.as_ref().map(Cow::Borrowed),
    };
    let (mut total, series, pass) = named(rows, pass, slots, records)?;
    pass.finish(&mut total.sums);
    let (tally, whole, groups) = total.sums.into_parts();
    Ok((Measured { series, names: total.names, tally }, Sets { whole, groups }))
}

/// η alone, for solving for σ.
pub(crate) fn eta_distribution(rows: &dyn Rows, geometry: &Geometry) -> Result<Distribution> {
    Ok(leakscope_core::pass::run(&Eta::new(geometry), rows)?.eta)
}
