//! What η of a release is counted in, and whether that of several may be added up.

use crate::model::target_unit;
use crate::request::Request;
use leakscope_core::units::Units;
use leakscope_net::leak::Label;
use leakscope_report::format;
use leakscope_table::{Encoding, OneHot, Scale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Units this close (relative) are the same: what is left is the order of a sum.
const SAME: f64 = 1e-9;
/// Differences that are named.
const SHOWN: usize = 4;

/// What η of a release is counted in. `√Σ η²` bounds the η of several releases together only where one step of a column
/// is the same step in all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// How numbers are scaled.
    pub scale: Scale,
    /// Which levels of a category have a column.
    pub one_hot: OneHot,
    /// Principal components instead of columns.
    pub pca: Option<usize>,
    /// Whether the label is secret.
    pub label: Label,
    /// Own units of every column (and of a secret label) in one public unit.
    pub columns: BTreeMap<String, f64>,
}

impl Unit {
    /// That of a model: η of a release is counted in public units.
    pub fn of(request: &Request, encoding: &Encoding, units: &Units) -> Self {
        let unit = |j: usize| units.public().get(j).map_or(1.0, |u| u.unit);
        let mut columns: BTreeMap<String, f64> =
            encoding.attributes.iter().map(|a| (a.name.clone(), unit(a.columns.start))).collect();
        if request.label_secret {
            columns.insert(encoding.target.name.clone(), target_unit(encoding));
        }
        let label = if request.label_secret { Label::Secret } else { Label::Public };
        Self { scale: request.scale, one_hot: request.one_hot, pca: request.pca, label, columns }
    }

    /// Whether η in this unit can be bounded in another: the same choices, other scales of the same columns.
    pub(super) fn convertible(&self, other: &Self) -> bool {
        let choices = |u: &Self| (u.scale, u.one_hot, u.pca, u.label);
        choices(self) == choices(other)
            && self.pca.is_none()
            && self.columns.keys().eq(other.columns.keys())
            && self.columns.values().all(|scale| *scale > 0.0)
    }

    /// How many steps of this unit one step of another is, in the column where it is most.
    pub(super) fn steps(&self, other: &Self) -> f64 {
        let ratios = other.columns.iter().filter_map(|(name, theirs)| Some(theirs / self.columns.get(name)?));
        let most = ratios.fold(0.0, f64::max);
        if (most - 1.0).abs() <= SAME || !(most > 0.0 && most.is_finite()) { 1.0 } else { most }
    }

    /// What differs from another, in the words of the command line; empty where η may be added up.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut all = vec![];
        let mut compare = |flag: &str, a: String, b: String| {
            if a != b {
                all.push(format!("{flag} was {a}, now {b}"));
            }
        };
        let pca = |u: &Self| u.pca.map_or_else(|| "absent".into(), |k| k.to_string());
        compare("scale", self.scale.name().into(), other.scale.name().into());
        compare("one_hot", self.one_hot.name().into(), other.one_hot.name().into());
        compare("pca", pca(self), pca(other));
        compare("label", self.label.name().into(), other.label.name().into());
        if !all.is_empty() {
            return all;
        }
        for (name, theirs) in &other.columns {
            match self.columns.get(name) {
                Some(ours) if (ours - theirs).abs() > SAME * ours.abs().max(theirs.abs()) => {
                    all.push(format!(
                        "one unit of `{name}` was {}, now {}",
                        format::number(*ours),
                        format::number(*theirs)
                    ))
                }
                Some(_) => {}
                // Components mix all columns: they are the same only over the same ones.
                None if self.pca.is_some() => all.push(format!("`{name}` was not among the columns")),
                None => {}
            }
        }
        if self.pca.is_some() {
            let gone = self.columns.keys().filter(|name| !other.columns.contains_key(*name));
            all.extend(gone.map(|name| format!("`{name}` is not among the columns any more")));
        }
        if all.len() > SHOWN {
            let more = all.len() - SHOWN;
            all.truncate(SHOWN);
            all.push(format!("and {more} more"));
        }
        all
    }
}
