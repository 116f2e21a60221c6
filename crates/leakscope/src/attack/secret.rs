//! A column as the secret: its candidates, with what is known of them beforehand.

use super::Playing;
use crate::balance::directions;
use crate::failure::explain;
use crate::model::Loaded;
use crate::request::Request;
use crate::scaling::{self, SecretScaling};
use crate::{Failure, Result};
use leakscope_core::attack::Secret;
use leakscope_core::balance::{Level, losses_of};
use leakscope_core::fisher::Release;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::glm::Minimiser;
use leakscope_core::measure::ColumnValues;
use leakscope_core::pass::Runner;
use leakscope_report::attack as report;
use leakscope_report::format;
use leakscope_table::{Attribute, Kind};

/// Values that a secret may have.
struct Candidates {
    names: Vec<String>,
    /// In the encoded columns of the attribute.
    values: Vec<Vec<f64>>,
    counts: Vec<u64>,
}

/// The secret with its candidates: levels of a category, distinct values or bins of a number. What another value does to the scale
/// of its column is counted where it can be.
pub(crate) fn secret(
    request: &Request,
    playing: &Playing,
    loaded: &Loaded,
) -> Result<(Secret, Vec<report::Candidate>)> {
    let (secret, candidates) = with_candidates(playing, loaded)?;
    Ok(match scaling::of_secret(request, &loaded.encoding, &playing.secret) {
        SecretScaling::Counted => (secret.scaled_by_its_records()?, candidates),
        SecretScaling::Nothing | SecretScaling::Given => (secret, candidates),
    })
}

/// η of the secret of every record at σ = 1, or under noise with a shape, its scaling counted where it can be.
pub(crate) fn leakage(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    (name, releases): (&str, u32),
    shape: Option<&Noise>,
) -> Result<Vec<f64>> {
    let release = Release { sigma: 1.0, releases, label_secret: request.label_secret };
    let directions = directions(loaded, "secret", name, false)?;
    match scaling::of_secret(request, &loaded.encoding, name) {
        SecretScaling::Counted => scaling::attribute_eta(request, loaded, fit, (&directions, release), shape),
        SecretScaling::Nothing | SecretScaling::Given => {
            let level = Level::Attribute(directions);
            let eta = losses_of(&loaded.rows, fit, &level, release, shape)
                .map_err(|e| explain(e, &loaded.encoding, request.l2))?;
            super::weighted(loaded, eta)
        }
    }
}

fn with_candidates(playing: &Playing, loaded: &Loaded) -> Result<(Secret, Vec<report::Candidate>)> {
    let name = &playing.secret;
    let (_, attribute) = loaded.attribute("secret", name)?;
    let columns = attribute.columns.clone();
    let candidates = match attribute.kind {
        Kind::Category => of_levels(loaded, attribute)?,
        Kind::Number => {
            let mut column = loaded.rows.run(&ColumnValues { column: columns.start })?.values;
            column.sort_by(f64::total_cmp);
            let own = |v: f64| attribute.centre + attribute.scale * v;
            let mut distinct = column.clone();
            distinct.dedup();
            if distinct.len() < 2 {
                return Err(one_value(name));
            }
            if distinct.len() > playing.bins {
                if !playing.candidates.is_empty() {
                    let message = format!("`{name}` is a number in bins: use ⟨bins⟩ instead");
                    return Err(Failure::option("candidates", message));
                }
                return in_bins(&column, playing.bins, columns.start, own).map_err(|e| match e {
                    leakscope_core::Error::OutOfRange { .. } => one_value(name),
                    other => other.into(),
                });
            }
            of_values(&column, &distinct, own)
        }
    };
    let Candidates { names, values, counts } = candidates.among(name, &playing.candidates)?;
    let secret = Secret::category(columns, values.concat(), &counts)?;
    let listed = with_priors(&secret, names);
    Ok((secret, listed))
}

fn one_value(name: &str) -> Failure {
    Failure::option("secret", format!("`{name}` has one value only: there is nothing to guess"))
}

fn with_priors(secret: &Secret, names: Vec<String>) -> Vec<report::Candidate> {
    let priors = secret.prior().iter().copied();
    names.into_iter().zip(priors).map(|(name, prior)| report::Candidate { name, prior }).collect()
}

fn of_levels(loaded: &Loaded, attribute: &Attribute) -> Result<Candidates> {
    let levels = &attribute.levels;
    if levels.len() < 2 {
        return Err(one_value(&attribute.name));
    }
    let profile = loaded.encoding.profile.iter().find(|p| p.name == attribute.name);
    let count = |level: &String| {
        let counted = profile.map(|p| p.levels.as_slice()).unwrap_or_default();
        counted.iter().find(|l| l.0 == *level).map_or(0, |l| l.1)
    };
    let indicator = 1.0 / attribute.scale;
    let kept = loaded.encoding.one_hot.places(levels.len());
    let value = |m: usize| kept.clone().map(|j| if j == m { indicator } else { 0.0 }).collect();
    Ok(Candidates {
        names: levels.clone(),
        values: (0..levels.len()).map(value).collect(),
        counts: levels.iter().map(count).collect(),
    })
}

/// The distinct values of a number; `column` holds all of them.
fn of_values(column: &[f64], distinct: &[f64], own: impl Fn(f64) -> f64) -> Candidates {
    let with = |v: &f64| column.iter().filter(|c| *c == v).count() as u64;
    // As it stands in the table, without the digits that scaling there and back leaves.
    let name = |v: &f64| format!("{}", (own(*v) * 1e9).round() / 1e9);
    Candidates {
        names: distinct.iter().map(name).collect(),
        values: distinct.iter().map(|v| vec![*v]).collect(),
        counts: distinct.iter().map(with).collect(),
    }
}

impl Candidates {
    /// Those that the attacker considers; all where none are named.
    fn among(self, secret: &str, wanted: &[String]) -> Result<Self> {
        if wanted.is_empty() {
            return Ok(self);
        }
        let mut kept = vec![];
        for value in wanted {
            let place = self.names.iter().zip(&self.counts).position(|(n, c)| n == value && *c > 0);
            let at = place.ok_or_else(|| {
                let known = self.names.join(", ");
                let message = format!("`{value}` is no value of `{secret}` in these data; they are {known}");
                Failure::option("candidates", message)
            })?;
            if !kept.contains(&at) {
                kept.push(at);
            }
        }
        if kept.len() < 2 {
            let message = "expected at least two values: there is nothing to guess";
            return Err(Failure::option("candidates", message));
        }
        Ok(Self {
            names: kept.iter().map(|&k| self.names[k].clone()).collect(),
            values: kept.iter().map(|&k| self.values[k].clone()).collect(),
            counts: kept.iter().map(|&k| self.counts[k]).collect(),
        })
    }
}

/// Bins with about equally many records, each tried at its mean; `column` is sorted.
fn in_bins(
    column: &[f64],
    bins: usize,
    at: usize,
    own: impl Fn(f64) -> f64,
) -> leakscope_core::Result<(Secret, Vec<report::Candidate>)> {
    let mut edges: Vec<f64> = (1..bins).map(|k| column[k * column.len() / bins]).collect();
    edges.dedup();
    edges.retain(|e| *e > column[0]);
    let (mut centres, mut counts, mut first) = (vec![], vec![], 0);
    for edge in edges.iter().copied().chain([f64::INFINITY]) {
        let last = column.partition_point(|v| *v < edge);
        let inside = &column[first..last];
        centres.push(inside.iter().sum::<f64>() / inside.len().max(1) as f64);
        counts.push(inside.len() as u64);
        first = last;
    }
    let secret = Secret::bins(at, centres, edges.clone(), &counts)?;
    let mut names = vec![];
    for m in 0..counts.len() {
        names.push(match (m.checked_sub(1).map(|k| own(edges[k])), edges.get(m).map(|e| own(*e))) {
            (None, Some(high)) => format!("below {}", format::number(high)),
            (Some(low), Some(high)) => format!("{} to {}", format::number(low), format::number(high)),
            (Some(low), None) => format!("from {}", format::number(low)),
            (None, None) => "all".into(),
        });
    }
    let listed = with_priors(&secret, names);
    Ok((secret, listed))
}
