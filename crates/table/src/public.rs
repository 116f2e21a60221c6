//! What is public about the columns: a schema and options, matched with a table.

use crate::column::Kind;
use crate::column::{Origin, Roles};
use crate::schema::{Bounds, Schema, SchemaColumn, SchemaError, SchemaKind, check_levels};
use crate::table::Table;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// What was given about the columns, and so is public: nothing of it needs to be read off the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Public {
    /// A schema that lists all columns.
    pub schema: Option<Schema>,
    /// Bounds of numbers by column; they go before those of the schema.
    pub bounds: Vec<(String, Bounds)>,
    /// Levels of categories by column; they go before those of the schema.
    pub levels: Vec<(String, Vec<String>)>,
    /// How numbers are scaled by column, whatever the scaling of the others: centre and scale, for a model that was trained
    /// elsewhere; none for a number that is scaled like the others.
    pub scales: Vec<(String, Option<[f64; 2]>)>,
    /// Whether values outside the bounds are moved to the nearest bound; otherwise they are an error.
    pub clip_to_bounds: bool,
}

/// What was given about one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// Whether somebody said what the column is: no guess then overrules it.
    pub(crate) declared: bool,
    pub(crate) bounds: Option<Bounds>,
    /// Centre and scale.
    pub(crate) scale: Option<[f64; 2]>,
    pub(crate) clip: bool,
    /// Sorted.
    pub(crate) levels: Option<Vec<String>>,
    pub(crate) unit: Option<String>,
    pub(crate) bounds_origin: Origin,
    pub(crate) levels_origin: Origin,
}

/// Nothing.
pub(crate) const NO_FACTS: Facts = Facts {
    declared: false,
    bounds: None,
    scale: None,
    clip: false,
    levels: None,
    unit: None,
    bounds_origin: Origin::ReadOffData,
    levels_origin: Origin::ReadOffData,
};

impl Public {
    /// Whether somebody gave bounds of a column, which is then a number however few values it has; those of a draft were read off the data.
    pub fn has_bounds(&self, column: &str) -> bool {
        let schema = self.schema.as_ref().filter(|s| !s.draft);
        self.bounds.iter().any(|(name, _)| name.trim() == column)
            || schema.and_then(|s| s.column(column)).is_some_and(|c| c.bounds.is_some())
    }

    /// Matches everything with a table: facts by column, and the roles that follow from the schema.
    pub(crate) fn matched(&self, table: &Table, roles: &Roles) -> Result<(Roles, Vec<Facts>)> {
        let mut roles = roles.clone();
        let unit = |i: usize| table.columns()[i].notation.unit();
        let mut facts: Vec<Facts> =
            (0..table.columns().len()).map(|i| Facts { unit: unit(i), ..NO_FACTS }).collect();
        if let Some(schema) = &self.schema {
            match_schema(schema, table, &mut roles, &mut facts)?;
        }
        for name in &roles.categorical {
            facts[table.column("categorical", name)?].declared = true;
        }
        for (name, levels) in &self.levels {
            let column = table.column("levels", name)?;
            check_levels(name, levels)?;
            set_levels(&mut facts[column], levels, Origin::Given);
            declare_category(&mut roles, table, column);
        }
        for (name, bounds) in &self.bounds {
            let column = table.column("bounds", name)?;
            let is_number = table.columns()[column].kind == Kind::Number;
            if !is_number || roles.categorical.iter().any(|c| c.trim() == name.trim()) {
                let column = name.trim().to_string();
                return Err(SchemaError::Misplaced { column, fact: "bounds", kind: "category" }.into());
            }
            (facts[column].bounds, facts[column].bounds_origin) = (Some(*bounds), Origin::Given);
        }
        for (name, scale) in &self.scales {
            let column = table.column("scales", name)?;
            if let Some([centre, scale]) = scale
                && !(centre.is_finite() && *scale > 0.0 && scale.is_finite())
            {
                return Err(
                    SchemaError::Scale { column: name.clone(), centre: *centre, scale: *scale }.into()
                );
            }
            (facts[column].scale, facts[column].declared) = (*scale, true);
        }
        facts.iter_mut().for_each(|f| f.clip = self.clip_to_bounds);
        Ok((roles, facts))
    }
}

fn set_levels(facts: &mut Facts, levels: &[String], origin: Origin) {
    let mut sorted: Vec<String> = levels.iter().map(|l| l.trim().to_string()).collect();
    sorted.sort_unstable();
    (facts.levels, facts.levels_origin, facts.declared) = (Some(sorted), origin, true);
}

fn declare_category(roles: &mut Roles, table: &Table, column: usize) {
    let name = &table.columns()[column].name;
    if !roles.categorical.iter().any(|c| c.trim() == name) {
        roles.categorical.push(name.clone());
    }
}

fn match_schema(schema: &Schema, table: &Table, roles: &mut Roles, facts: &mut [Facts]) -> Result<()> {
    schema.check()?;
    if let Some(c) = schema.columns.iter().find(|c| table.position(&c.name).is_none()) {
        return Err(SchemaError::Absent { column: c.name.clone() }.into());
    }
    let origin = if schema.draft { Origin::ReadOffData } else { Origin::Given };
    let mut ids = vec![];
    for (i, facts) in facts.iter_mut().enumerate() {
        let name = &table.columns()[i].name;
        let column = schema.column(name).ok_or_else(|| SchemaError::Unlisted { column: name.clone() })?;
        match column.kind {
            SchemaKind::Number | SchemaKind::Date => check_kind(column, table, i)?,
            SchemaKind::Category => declare_category(roles, table, i),
            SchemaKind::Id | SchemaKind::Ignored => {
                check_role(column, roles)?;
                if column.kind == SchemaKind::Id {
                    ids.push(name.clone());
                } else if roles.group.as_deref() != Some(name) || !roles.drop.contains(name) {
                    roles.drop.push(name.clone());
                }
            }
        }
        facts.declared = true;
        (facts.bounds, facts.bounds_origin) = (column.range()?, origin);
        if let Some(levels) = &column.levels {
            set_levels(facts, levels, origin);
        }
        facts.unit = column.unit.clone().or(facts.unit.take());
    }
    // One id names the records; where an option names another column, or there are several, the rest is left out.
    if roles.id.is_none() && ids.len() == 1 {
        roles.id = ids.pop();
    }
    roles.drop.extend(ids.into_iter().filter(|id| roles.id.as_deref().map(str::trim) != Some(id)));
    Ok(())
}

/// A column that is not used, or names records, cannot be something else.
fn check_role(column: &SchemaColumn, roles: &Roles) -> Result<()> {
    let is = |role: Option<&String>| role.is_some_and(|r| r.trim() == column.name);
    let ignored = column.kind == SchemaKind::Ignored;
    let flag = if is(Some(&roles.target)) {
        "target"
    } else if is(roles.weights.as_ref()) {
        "weights"
    } else if ignored && is(roles.id.as_ref()) {
        "id"
    } else {
        return Ok(());
    };
    Err(SchemaError::Role { column: column.name.clone(), kind: column.kind.name(), flag }.into())
}

/// A column of numbers or dates must hold such.
fn check_kind(column: &SchemaColumn, table: &Table, i: usize) -> Result<()> {
    let own = &table.columns()[i];
    let dates = own.notation.is_date();
    let content = match (own.kind, &own.unsupported) {
        (_, Some(_)) => "values of a type without an encoding",
        (Kind::Category, None) => "text",
        (Kind::Number, None) if dates == (column.kind == SchemaKind::Date) => return Ok(()),
        (Kind::Number, None) if dates => "dates",
        // A column without a value in the rows looked at can be anything.
        (Kind::Number, None) if table.is_empty(i) => return Ok(()),
        (Kind::Number, None) => "numbers",
    };
    let cell = table.odd_cell(i).or_else(|| table.comma_cell(i));
    let example = cell.map(|(place, cell)| format!(": `{cell}` in {place}")).unwrap_or_default();
    Err(Error::Schema(SchemaError::Kind {
        column: own.name.clone(),
        kind: column.kind.name(),
        content,
        example,
    }))
}
