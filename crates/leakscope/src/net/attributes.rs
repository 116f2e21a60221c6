//! What a step of a network gives away of each attribute of a table, in the caller's units.

use super::data::Names;
use super::measuring::{AuditLeaks, Leak, MeasurePlan};
use super::table::Coding;
use crate::Result;
use leakscope_core::bound::estimation;
use leakscope_core::claim::{Bound, Measured, Theorem};
use leakscope_core::fisher::Directions;
use leakscope_core::linalg::largest_eigenvalue;
use leakscope_net::{
    Data, Network, Real,
    leak::{Label, information_along},
};
use leakscope_report::net::NetAttribute;
use leakscope_table::{Kind, OneHot, Role};

/// What products in single precision may be off by, as a share: bounds give that way.
const ROUNDING: f64 = 1e-5;

/// The attributes of a table as directions of a network's values.
pub(super) struct Attributes {
    sets: Vec<Directions>,
    /// Which of the sets are an attribute's two variants: free, and under the constraint that indicators sum to one.
    slots: Vec<(usize, Option<usize>)>,
}

/// η of one attribute of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AttributeEta {
    /// Every encoded column on its own.
    pub(super) free: f64,
    /// Where the indicators of a category keep their sum.
    pub(super) constrained: Option<f64>,
}

/// The attributes that have columns, by their place in the encoding; the label, where it is secret, comes last.
fn with_columns(coding: &Coding) -> impl Iterator<Item = usize> + '_ {
    let all = &coding.encoding.attributes;
    (0..all.len()).filter(|&a| !all[a].columns.is_empty())
}

impl Attributes {
    pub(super) fn new<T: Real>(coding: &Coding, net: &Network<T>, label: Label) -> Self {
        let encoding = &coding.encoding;
        let (d, outputs) = (net.input().len(), net.outputs());
        let dimension = d + if label == Label::Secret { outputs } else { 0 };
        let (mut sets, mut slots): (Vec<Directions>, Vec<(usize, Option<usize>)>) = (vec![], vec![]);
        let mut add = |mut basis: Vec<f64>, count: usize| {
            basis.resize(dimension * count, 0.0);
            sets.push(Directions { basis, count });
            sets.len() - 1
        };
        for attribute in with_columns(coding) {
            let mut variant = |sum_to_one: bool| {
                let basis = encoding.directions(attribute, sum_to_one);
                let count = basis.len() / d.max(1);
                (count > 0).then(|| add(basis, count))
            };
            let Some(free) = variant(false) else { continue };
            let category = encoding.attributes[attribute].kind == Kind::Category;
            let constrained = if category { variant(true) } else { None };
            slots.push((free, constrained));
        }
        if label == Label::Secret {
            let mut basis = vec![0.0; dimension * outputs];
            (0..outputs).for_each(|j| basis[(d + j) * outputs + j] = 1.0);
            let free = add(basis, outputs);
            let constrained = (outputs > 1).then(|| {
                let mut basis = vec![0.0; d * (outputs - 1)];
                basis.extend(zero_sum(outputs));
                add(basis, outputs - 1)
            });
            slots.push((free, constrained));
        }
        Self { sets, slots }
    }

    /// η of every attribute of these records.
    pub(super) fn measure<T: Real>(
        &self,
        net: &Network<T>,
        data: &Data<T>,
        ids: &[usize],
        plan: &MeasurePlan,
    ) -> Result<Vec<Vec<AttributeEta>>> {
        let each = information_along(net, data, ids, &self.sets, &plan.released)?;
        let eta = |matrices: &[Vec<f64>], set: usize| -> Result<f64> {
            Ok(largest_eigenvalue(&matrices[set], self.sets[set].count)?.max(0.0).sqrt())
        };
        each.iter()
            .map(|matrices| {
                let of = |&(free, constrained): &(usize, Option<usize>)| {
                    let constrained = constrained.map(|set| eta(matrices, set)).transpose()?;
                    Ok(AttributeEta { free: eta(matrices, free)?, constrained })
                };
                self.slots.iter().map(of).collect()
            })
            .collect()
    }
}

/// Orthonormal basis of the vectors of length k that sum to zero, k × (k − 1), row-major (Helmert): what a change from one
/// class to another moves of k indicators.
fn zero_sum(k: usize) -> Vec<f64> {
    let entry = |i: usize, j: usize| {
        let n = (j + 1) as f64;
        let norm = (n * (n + 1.0)).sqrt();
        match i {
            i if i <= j => 1.0 / norm,
            i if i == j + 1 => -n / norm,
            _ => 0.0,
        }
    };
    (0..k).flat_map(|i| (0..k - 1).map(move |j| entry(i, j))).collect()
}

/// One attribute of the table, or the label.
struct Described {
    name: String,
    kind: Kind,
    is_label: bool,
    columns: Vec<String>,
    /// Own units of one encoded unit.
    scale: f64,
    /// Spread of a number over the training records, in own units.
    spread: Option<f64>,
    /// ‖P eⱼ‖ where all k levels of a category have a column, see `audit::AttributeSlot`.
    along: f64,
}

/// The attributes in the order of [`AttributeEta`].
fn described(coding: &Coding, label: bool, outputs: usize) -> Vec<Described> {
    let (encoding, names) = (&coding.encoding, coding.encoding.raw_columns());
    let mut all: Vec<Described> = with_columns(coding)
        .map(|at| {
            let a = &encoding.attributes[at];
            let number = a.kind == Kind::Number;
            let k = a.columns.len() as f64;
            let all_levels = !number && encoding.one_hot == OneHot::Full;
            Described {
                name: a.name.clone(),
                kind: a.kind,
                is_label: false,
                columns: names[a.columns.clone()].to_vec(),
                scale: a.scale,
                spread: number.then_some(a.population_sd),
                along: if all_levels { (1.0 - 1.0 / k).sqrt() } else { 1.0 },
            }
        })
        .collect();
    if label {
        let target = &encoding.target;
        let profile = encoding.profile.iter().find(|c| c.role == Role::Target);
        let number = coding.is_regression();
        all.push(Described {
            name: target.name.clone(),
            kind: if number { Kind::Number } else { Kind::Category },
            is_label: true,
            columns: vec![target.name.clone()],
            scale: coding.scale,
            spread: profile.and_then(|p| p.sd).filter(|_| number),
            along: if outputs > 1 { (1.0 - 1.0 / outputs as f64).sqrt() } else { 1.0 },
        });
    }
    all
}

/// What every attribute gives away over the measured records, most exposed first; empty without a table.
pub(super) fn summarised<T: Real>(f: &AuditLeaks<T>) -> Vec<NetAttribute> {
    let Some(coding) = f.subject.names.coding.as_deref() else { return vec![] };
    let label = f.subject.plan.released.label == Label::Secret;
    let n = f.leaks.len().max(1) as f64;
    let mut all: Vec<NetAttribute> = described(coding, label, f.subject.model.net.outputs())
        .into_iter()
        .enumerate()
        .filter(|(at, _)| f.leaks.iter().all(|l| l.attributes.len() > *at))
        .map(|(at, d)| {
            let each = || f.leaks.iter().map(|l| l.attributes[at]);
            let mean = |of: &dyn Fn(AttributeEta) -> f64| each().map(of).sum::<f64>() / n;
            let most = |of: &dyn Fn(AttributeEta) -> f64| each().map(of).fold(0.0, f64::max);
            let constrained = |a: AttributeEta| a.constrained.unwrap_or(0.0);
            // see `audit::AttributeSlot::exposure`: where all levels have a column, whoever knows that one of them applies
            // may do better than the free η says
            let exposure = |a: AttributeEta| match d.along < 1.0 {
                true => a.free.max(constrained(a) / d.along),
                false => a.free,
            };
            let top = each().enumerate().fold(
                (0, -1.0),
                |(b, v), (i, a)| {
                    if a.free > v { (i, a.free) } else { (b, v) }
                },
            );
            let information = mean(&|a| a.free * a.free) / (d.scale * d.scale);
            let sd = d.scale / most(&exposure) * (1.0 - ROUNDING);
            NetAttribute {
                unit: coding.unit(&d.name),
                eta_mean: mean(&|a| a.free),
                eta_max: most(&|a| a.free),
                eta_max_record: f
                    .leaks
                    .get(top.0)
                    .map(|l| f.subject.names.of(l.released.record))
                    .unwrap_or_default(),
                sum_to_one: each()
                    .all(|a| a.constrained.is_some())
                    .then(|| [mean(&constrained), most(&constrained)]),
                min_sd: Bound::at_least(sd, Theorem::CramerRao),
                min_sd_typical: d.scale / mean(&exposure),
                min_rmse_with_prior: d
                    .spread
                    .map(|spread| estimation::typical_deviation(information, spread))
                    .filter(|m: &Measured| m.value.is_finite()),
                population_sd: d.spread,
                name: d.name,
                kind: d.kind,
                is_label: d.is_label,
                columns: d.columns,
            }
        })
        .collect();
    all.sort_by(|a, b| b.eta_max.total_cmp(&a.eta_max));
    all
}

/// Names of the columns of a table of records that hold η of attributes.
pub(super) fn columns<T: Real>(f: &AuditLeaks<T>) -> Vec<String> {
    let label = f.subject.plan.released.label == Label::Secret;
    let coding = f.subject.names.coding.as_deref();
    coding
        .map(|c| described(c, label, 1).into_iter().map(|d| format!("eta_{}", d.name)).collect())
        .unwrap_or_default()
}

/// The attribute that leaks most of a record, and its η; absent without a table.
pub(super) fn most_exposed(names: &Names, leak: &Leak) -> Option<(String, f64)> {
    let coding = names.coding.as_deref()?;
    let (at, eta) =
        leak.attributes.iter().enumerate().map(|(i, a)| (i, a.free)).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let all = described(coding, true, 1);
    all.into_iter().nth(at).map(|d| (d.name, eta))
}
