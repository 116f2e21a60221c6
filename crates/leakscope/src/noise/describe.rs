//! The noise as a document: what it costs, and which directions of the coefficients carry it.

use super::{Designed, NoiseOptions, ShapeSource};
use crate::Result;
use crate::classes::{class_count, coefficient_names, contrast_names};
use leakscope_core::fisher::noise::{Design, Noise, class_covariances};
use leakscope_core::linalg::{dot, symmetric_eigen, times};
use leakscope_report::noise::{self as report, Direction, ShapeCost, Source};
use leakscope_table::Encoding;
use std::collections::BTreeMap;

/// Directions are listed until they carry this share of the noise, or this many.
const SHARE_LISTED: f64 = 0.5;
const MOST_LISTED: usize = 3;
/// Attributes of a direction that are named: down to this share of its largest, and this many.
const SHARE_NAMED: f64 = 0.1;
const MOST_NAMED: usize = 4;

/// The noise as documents have it; `shapes` are what others would cost.
pub fn described(
    options: &NoiseOptions,
    designed: &Designed,
    encoding: &Encoding,
    shapes: Vec<ShapeCost>,
) -> Result<report::Noise> {
    let Designed { design, source, goal_targets, instead } = designed;
    let (p, names) = (design.noise.len(), contrast_names(encoding));
    let deviations: BTreeMap<String, f64> = coefficient_names(encoding)
        .into_iter()
        .zip(variances(&design.noise, encoding).iter().map(|v| v.sqrt()))
        .collect();
    Ok(report::Noise {
        shape: design.shape,
        requested: options.shape,
        instead: instead.clone(),
        source: match source {
            ShapeSource::Nowhere => Source::Nowhere,
            ShapeSource::Rows => Source::Records,
            ShapeSource::Table(files) => Source::Table { files: files.clone() },
            ShapeSource::Bounds => Source::Bounds,
        },
        goals: goal_targets.goals.clone(),
        cost: design.exact_cost,
        cost_published: design.cost,
        cost_isotropic: design.cost_isotropic,
        gain: design.gain,
        lower_bound_on_cost: design.lower_bound_on_cost,
        gap: design.gap,
        programme_gap: design.programme_gap,
        covariance_information: design.covariance_information,
        shape_budget: options.shape_budget,
        largest_eta: design.largest_eta.hypot(design.covariance_information.sqrt()),
        sigma_same_cost: isotropic_sigma(&design.cost_matrix, p, design.cost),
        sigma_isotropic: isotropic_sigma(&design.cost_matrix, p, design.cost_isotropic),
        factor: design.factor.clone(),
        coefficients: names,
        deviations,
        directions: directions(&design.noise, &design.cost_matrix, encoding)?,
        shapes,
    })
}

/// What a shape costs, without a curve.
pub fn cost_of(design: &Design) -> ShapeCost {
    ShapeCost {
        shape: design.shape,
        cost: design.exact_cost,
        gain: design.gain,
        gap: design.gap,
        covariance_information: design.covariance_information,
        points: vec![],
    }
}

/// Variance of the noise on every coefficient that a model file has, from that on its free coordinates.
fn variances(noise: &Noise, encoding: &Encoding) -> Vec<f64> {
    let (p, covariance) = (encoding.width(), noise.covariance());
    let vectors = match class_count(encoding) {
        None => vec![covariance],
        Some(classes) => class_covariances(&covariance, classes, p),
    };
    vectors.iter().flat_map(|v| (0..p).map(|j| v[j * p + j]).collect::<Vec<_>>()).collect()
}

/// σ of isotropic noise with `σ² tr A = cost`.
pub(crate) fn isotropic_sigma(a: &[f64], p: usize, cost: f64) -> f64 {
    (cost / (0..p).map(|i| a[i * p + i]).sum::<f64>()).sqrt()
}

/// The eigenvectors of Σ that carry most of it.
fn directions(noise: &Noise, a: &[f64], encoding: &Encoding) -> Result<Vec<Direction>> {
    let p = noise.len();
    let (values, vectors) = symmetric_eigen(&noise.covariance(), p)?;
    let (total, cost) = (values.iter().sum::<f64>(), noise.cost(a));
    let (mut carried, mut all) = (0.0, vec![]);
    for (k, value) in values.iter().enumerate().take(MOST_LISTED) {
        if carried >= SHARE_LISTED {
            break;
        }
        let v: Vec<f64> = (0..p).map(|i| vectors[i * p + k]).collect();
        carried += value / total;
        all.push(Direction {
            noise: value / total,
            cost: value * dot(&v, &times(a, &v)) / cost,
            attributes: weights(&v, encoding),
        });
    }
    Ok(all)
}

/// The attributes of a direction and the share of each, largest first; small ones are left out.
fn weights(v: &[f64], encoding: &Encoding) -> Vec<(String, f64)> {
    let names = encoding.columns();
    let mut shares: Vec<(String, f64)> = vec![];
    // Of classes each contrast has all columns.
    for (j, v) in (0..names.len()).cycle().zip(v) {
        let of = encoding.attributes.iter().find(|a| encoding.pca.is_none() && a.columns.contains(&j));
        let name = of.map_or_else(|| names[j].clone(), |a| a.name.clone());
        match shares.iter_mut().find(|(n, _)| *n == name) {
            Some((_, share)) => *share += v * v,
            None => shares.push((name, v * v)),
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let least = SHARE_NAMED * shares.first().map_or(0.0, |s| s.1);
    shares.retain(|s| s.1 >= least);
    shares.truncate(MOST_NAMED);
    shares
}
