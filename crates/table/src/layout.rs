//! Which columns a pass reads, in which order, and what each is for.

use crate::batch::{Reading, Want};
use crate::encoding::{Encoding, Roles};
use crate::table::{Kind, Table};
use crate::{Error, Result};

/// What a cell column of a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Feature,
    Target,
    Id,
    Weights,
    Group,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Target => "target",
            Self::Id => "id",
            Self::Weights => "weights",
            Self::Group => "group",
        }
    }
}

/// The cell columns of every batch of a pass: the features first, then what else is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) wants: Vec<Want>,
    pub(crate) names: Vec<String>,
    pub(crate) roles: Vec<Role>,
    pub(crate) features: usize,
    pub(crate) target: Option<usize>,
    pub(crate) id: Option<usize>,
    pub(crate) weights: Option<usize>,
    pub(crate) group: Option<usize>,
}

impl Layout {
    /// Checks the roles against the table.
    pub(crate) fn from_roles(table: &Table, roles: &Roles) -> Result<Self> {
        let target = table.column("--target", &roles.target)?;
        let find = |flag, name: &Option<String>| name.as_ref().map(|n| table.column(flag, n)).transpose();
        let id = find("--id", &roles.id)?;
        let weights = find("--weights", &roles.weights)?;
        let group = find("--group", &roles.group)?;
        let all =
            |flag, names: &[String]| names.iter().map(|n| table.column(flag, n)).collect::<Result<Vec<_>>>();
        let drop = all("--drop", &roles.drop)?;
        let categorical = all("--categorical", &roles.categorical)?;

        let given = [("--target", Some(target)), ("--id", id), ("--weights", weights)];
        let conflict = |column: usize, first, second| {
            Err(Error::RoleConflict { column: table.columns()[column].name.clone(), first, second })
        };
        for (i, (first, column)) in given.iter().enumerate() {
            let Some(column) = *column else { continue };
            for (second, other) in &given[i + 1..] {
                if *other == Some(column) {
                    return conflict(column, first, second);
                }
            }
            if drop.contains(&column) {
                return conflict(column, first, "--drop");
            }
        }
        if let Some(w) = weights
            && categorical.contains(&w)
        {
            return conflict(w, "--weights", "--categorical");
        }
        if let Some(w) = weights
            && table.columns()[w].kind == Kind::Category
        {
            return Err(Error::TextWeights { column: table.columns()[w].name.clone() });
        }

        let mut layout = Self::default();
        let mut push = |column: usize, reading, role| {
            layout.wants.push(Want { column, reading });
            layout.names.push(table.columns()[column].name.clone());
            layout.roles.push(role);
            layout.wants.len() - 1
        };
        let own_reading = |column: usize| {
            let number = table.columns()[column].kind == Kind::Number && !categorical.contains(&column);
            if number { Reading::Number } else { Reading::Level }
        };
        let role_of_its_own =
            |c: &usize| *c == target || Some(*c) == id || Some(*c) == weights || drop.contains(c);
        let features: Vec<usize> = (0..table.columns().len()).filter(|c| !role_of_its_own(c)).collect();
        // One cell of text must not turn a column of numbers into one with a level for every number.
        for &c in features.iter().chain([&target]).filter(|c| !categorical.contains(c)) {
            if let Some((place, value)) = table.odd_cell(c) {
                let column = table.columns()[c].name.clone();
                return Err(Error::TextInNumber { place, column, value: value.into() });
            }
        }
        features.iter().for_each(|c| {
            push(*c, own_reading(*c), Role::Feature);
        });
        let target = Some(push(target, own_reading(target), Role::Target));
        let id = id.map(|c| push(c, Reading::Text, Role::Id));
        let weights = weights.map(|c| push(c, Reading::Number, Role::Weights));
        let group = group.map(|c| push(c, Reading::Level, Role::Group));
        if features.is_empty() {
            return Err(Error::NoFeatures);
        }
        Ok(Self { features: features.len(), target, id, weights, group, ..layout })
    }

    /// Matches a fitted encoding with a table by name. The features must be there, and the target unless
    /// `target_optional`; an id, weights or groups that are not there are done without.
    pub(crate) fn from_encoding(
        table: &Table,
        encoding: &Encoding,
        target_optional: bool,
        with_id: bool,
    ) -> Result<Self> {
        let mut layout = Self::default();
        let mut push = |name: &str, reading, role, optional: bool| match table.position(name) {
            Some(column) => {
                layout.wants.push(Want { column, reading });
                layout.names.push(name.to_string());
                layout.roles.push(role);
                Ok(Some(layout.wants.len() - 1))
            }
            None if optional => Ok(None),
            None => Err(Error::AbsentColumn { path: table.first_path(), column: name.into() }),
        };
        let reading = |kind| match kind {
            Kind::Number => Reading::Number,
            Kind::Category => Reading::Level,
        };
        for a in &encoding.attributes {
            push(&a.name, reading(a.kind), Role::Feature, false)?;
        }
        let target = &encoding.target;
        let target = push(&target.name, reading(target.kind), Role::Target, target_optional)?;
        let mut optional = |name: Option<&String>, reading, role| match name {
            Some(name) => push(name, reading, role, true),
            None => Ok(None),
        };
        let id = optional(encoding.id.as_ref().filter(|_| with_id), Reading::Text, Role::Id)?;
        let weights = optional(encoding.weights.as_ref(), Reading::Number, Role::Weights)?;
        let group = optional(encoding.group.as_ref().map(|g| &g.name), Reading::Level, Role::Group)?;
        Ok(Self { features: encoding.attributes.len(), target, id, weights, group, ..layout })
    }
}

/// Rows of a batch or block of this width: about a megabyte, so that it stays in the second-level cache.
pub(crate) fn block_rows(width: usize) -> usize {
    (131_072 / width.max(1)).clamp(256, 8192)
}
