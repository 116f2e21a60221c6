//! A fitted encoding, matched with a table: everything that the inner loops need, looked up once.

use crate::Result;
use crate::column::Kind;
use crate::encoding::{Class, Encoding, Missing, TargetCoding};
use crate::holdout::Holdout;
use crate::layout::{Layout, block_rows};
use crate::schema::Bounds;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Which rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subset {
    /// Those that the encoding was fitted on.
    Training,
    /// Those that it was not.
    HeldOut,
    /// All; for another table than the one that the encoding was fitted on.
    All,
}

/// An encoding, matched with a table: everything that the inner loops need, looked up once.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) width: usize,
    pub(crate) batch_rows: usize,
    pub(crate) raw_width: usize,
    pub(crate) intercept: bool,
    pub(crate) missing: Missing,
    pub(crate) subset: Subset,
    holdout: Option<Holdout>,
    pub(crate) numbers: Vec<NumberStep>,
    pub(crate) categories: Vec<CategoryStep>,
    pub(crate) target: TargetStep,
    /// Index of each group by name.
    pub(crate) groups: Option<HashMap<String, u32>>,
    pub(crate) pca: Option<Projection>,
    /// What weights are divided by.
    pub(crate) weight_mean: f64,
}

#[derive(Debug)]
pub(crate) struct NumberStep {
    pub(crate) cell: usize,
    pub(crate) column: usize,
    pub(crate) centre: f64,
    pub(crate) scale: f64,
    pub(crate) mean: f64,
    pub(crate) clip: Option<Bounds>,
}

#[derive(Debug)]
pub(crate) struct CategoryStep {
    pub(crate) cell: usize,
    pub(crate) first_column: usize,
    /// Levels that have a column.
    pub(crate) places: std::ops::Range<usize>,
    /// What stands for "yes".
    pub(crate) one: f64,
    pub(crate) most_frequent: u32,
    /// What a level that is not listed counts as.
    pub(crate) other: Option<u32>,
    pub(crate) levels: HashMap<String, u32>,
}

#[derive(Debug)]
pub(crate) enum TargetStep {
    Absent,
    Number {
        clip: Option<Bounds>,
    },
    Count {
        clip: Option<Bounds>,
    },
    Positive {
        clip: Option<Bounds>,
    },
    /// Numbers: (value, code) of the classes.
    Values(Vec<(f64, f64)>),
    /// Text: code by level.
    Levels {
        index: HashMap<String, u32>,
        codes: Vec<f64>,
    },
}

/// Mean (p) and transposed components (p × K).
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) mean: Vec<f64>,
    pub(crate) transposed: Vec<f64>,
    pub(crate) components: usize,
}

/// How a target of classes is read: numbers by value, text by level.
fn classes(all: &[&Class]) -> TargetStep {
    let values: Option<Vec<(f64, f64)>> = all.iter().map(|c| Some((c.value?, c.code))).collect();
    match values {
        Some(values) => TargetStep::Values(values),
        None => TargetStep::Levels {
            index: index(&all.iter().map(|c| c.name.clone()).collect::<Vec<_>>()),
            codes: all.iter().map(|c| c.code).collect(),
        },
    }
}

fn index(levels: &[String]) -> HashMap<String, u32> {
    levels.iter().enumerate().map(|(i, l)| (l.clone(), i as u32)).collect()
}

impl Plan {
    pub(crate) fn new(
        table: &Table,
        encoding: &Encoding,
        subset: Subset,
        target_optional: bool,
        with_id: bool,
    ) -> Result<Self> {
        let layout = Layout::from_encoding(table, encoding, target_optional, with_id)?;
        let (mut numbers, mut categories) = (vec![], vec![]);
        for (cell, a) in encoding.attributes.iter().enumerate() {
            match a.kind {
                Kind::Number => numbers.push(NumberStep {
                    cell,
                    column: a.columns.start,
                    centre: a.centre,
                    scale: a.scale,
                    mean: a.mean,
                    clip: a.bounds.filter(|_| a.clipped),
                }),
                Kind::Category => categories.push(CategoryStep {
                    cell,
                    first_column: a.columns.start,
                    places: encoding.one_hot.places(a.levels.len()),
                    one: 1.0 / a.scale,
                    most_frequent: a.most_frequent as u32,
                    other: a.other.map(|o| o as u32),
                    levels: index(&a.levels),
                }),
            }
        }
        let clip = encoding.target.bounds.filter(|_| encoding.target.clipped);
        let target = match (&encoding.target.coding, layout.target) {
            (_, None) => TargetStep::Absent,
            (TargetCoding::Number, _) => TargetStep::Number { clip },
            (TargetCoding::Count, _) => TargetStep::Count { clip },
            (TargetCoding::Positive, _) => TargetStep::Positive { clip },
            (TargetCoding::TwoClass { low, high }, _) => classes(&[low, high]),
            (TargetCoding::Classes(all), _) => classes(&all.iter().collect::<Vec<_>>()),
        };
        let raw_width = encoding.raw_width();
        let pca = encoding.pca.as_ref().map(|pca| {
            let k = pca.explained.len();
            let mut transposed = vec![0.0; raw_width * k];
            for (i, component) in pca.components.chunks_exact(raw_width).enumerate() {
                component.iter().enumerate().for_each(|(j, c)| transposed[j * k + i] = *c);
            }
            Projection { mean: pca.mean.clone(), transposed, components: k }
        });
        let groups = encoding.group.as_ref().filter(|_| layout.group.is_some()).map(|g| index(&g.levels));
        let width = encoding.width();
        Ok(Self {
            layout,
            width,
            batch_rows: block_rows(width.max(raw_width)),
            raw_width,
            intercept: encoding.intercept,
            missing: encoding.missing,
            subset,
            holdout: encoding.holdout,
            numbers,
            categories,
            target,
            groups,
            pca,
            weight_mean: encoding.weight_mean,
        })
    }

    pub(crate) fn has_target(&self) -> bool {
        !matches!(self.target, TargetStep::Absent)
    }

    /// Whether the row belongs to the subset, before anything is known about its values.
    pub(crate) fn takes(&self, row: u64) -> bool {
        match (self.subset, &self.holdout) {
            (Subset::All, _) => true,
            (Subset::Training, holdout) => !holdout.is_some_and(|h| h.holds(row)),
            (Subset::HeldOut, holdout) => holdout.is_some_and(|h| h.holds(row)),
        }
    }

    /// Whether the rows of the subset can be counted without reading them.
    pub(crate) fn countable(&self) -> bool {
        let levels = !self.categories.is_empty() || self.groups.is_some();
        let classes = matches!(self.target, TargetStep::Values(_) | TargetStep::Levels { .. });
        self.missing != Missing::Drop && (self.subset != Subset::HeldOut || !(levels || classes))
    }
}
