//! What is released in private computations, as a person says it: the same for accounting, bounds and calibration.

use crate::{Failure, Result};
use leakscope_core::bound::{Encodings, Prior};
use leakscope_core::dp::{Accountant, Adjacency, Mechanism};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One kind of release and how often it happens; exactly one of `sigma`, `laplace` and `randomised_response` is given.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseStep {
    /// Noise multiplier of the Gaussian mechanism: standard deviation over the clipping norm.
    pub sigma: Option<f64>,
    /// Scale of the Laplace mechanism, over the ℓ₁ sensitivity.
    pub laplace: Option<f64>,
    /// Number of categories of randomised response.
    pub randomised_response: Option<u64>,
    /// Probability of a uniform draw in it.
    pub noise: Option<f64>,
    /// Probability of each record to take part in a step (Poisson sampling).
    pub rate: Option<f64>,
    /// Number of steps; once where nothing is said.
    pub steps: Option<u64>,
}

impl ReleaseStep {
    /// Whether anything was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The mechanism and its number of steps.
    pub fn mechanism(&self) -> Result<(Mechanism, u64)> {
        let Self { sigma, laplace, randomised_response: response, noise, rate, steps } = *self;
        let kinds = u8::from(sigma.is_some()) + u8::from(laplace.is_some()) + u8::from(response.is_some());
        if kinds > 1 {
            return Err(Failure::option("sigma", "several mechanisms at once: give each its own ⟨step⟩"));
        }
        if noise.is_some() && response.is_none() {
            return Err(Failure::option("noise", "it belongs to ⟨randomised_response⟩"));
        }
        if rate.is_some() && sigma.is_none() {
            return Err(Failure::option("rate", "sampling is accounted for with ⟨sigma⟩ only"));
        }
        let mechanism = match (sigma, laplace, response, noise) {
            (Some(sigma), ..) => Mechanism::gaussian(sigma, rate.unwrap_or(1.0)),
            (_, Some(scale), ..) => Mechanism::Laplace { scale },
            (_, _, Some(categories), Some(noise)) => Mechanism::RandomisedResponse { categories, noise },
            (_, _, Some(_), None) => {
                let why = "randomised response needs it: the probability of a uniform draw";
                return Err(Failure::option("noise", why));
            }
            (None, None, None, _) => {
                let why = "say what is released: ⟨sigma⟩, ⟨laplace⟩ or ⟨randomised_response⟩";
                return Err(Failure::option("sigma", why));
            }
        };
        Ok((mechanism, steps.unwrap_or(1)))
    }
}

/// The adjacency, which must be said.
pub(crate) fn stated(adjacency: Option<Adjacency>) -> Result<Adjacency> {
    let why = "say add-remove (a record is there or is not) or replace (it takes another value): the answer depends on it";
    adjacency.ok_or_else(|| Failure::option("adjacency", why))
}

/// Several releases as one composition.
pub(crate) fn composed(steps: &[(Mechanism, u64)], adjacency: Adjacency) -> Result<Accountant> {
    let mut accountant = Accountant::new(adjacency);
    for &(mechanism, count) in steps {
        accountant = accountant.with(mechanism, count)?;
    }
    Ok(accountant)
}

/// Encodings by name (`one-hot`, `line`) or from a file with one vector per candidate.
pub(crate) fn encodings(text: &str, prior: &Prior) -> Result<Encodings> {
    match text {
        "one-hot" => return Ok(Encodings::OneHot),
        "line" => return Ok(Encodings::line(prior.candidates())?),
        _ => {}
    }
    let rows = vectors(Path::new(text))?;
    let m = prior.candidates();
    if rows.len() as u64 != m {
        let count = rows.len();
        return Err(Failure::option("encoding", format!("{text} has {count} vectors for {m} candidates")));
    }
    let width = rows.first().map_or(0, Vec::len);
    Ok(Encodings::vectors(width, rows.concat())?)
}

/// Vectors of a file: rows of a CSV file of numbers, or a JSON array of arrays.
fn vectors(path: &Path) -> Result<Vec<Vec<f64>>> {
    let shown = path.display();
    let wrong = |message: String| Failure::option("encoding", format!("{shown}: {message}"));
    let text = std::fs::read_to_string(path)
        .map_err(|e| wrong(format!("cannot read it ({e}); expected one-hot, line, or a CSV or JSON file")))?;
    let rows: Vec<Vec<f64>> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).map_err(|e| wrong(format!("{e}; expected [[1, 0], [0, 1], …]")))?
    } else {
        let mut rows = vec![];
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let cells = line.split([',', ';', '\t']).map(|c| {
                let n = c.trim().parse::<f64>();
                n.map_err(|_| wrong(format!("line {}: `{}` is no number", i + 1, c.trim())))
            });
            rows.push(cells.collect::<Result<Vec<f64>>>()?);
        }
        rows
    };
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 {
        return Err(wrong("it has no numbers".into()));
    }
    if let Some(i) = rows.iter().position(|r| r.len() != width) {
        let count = rows[i].len();
        return Err(wrong(format!("vector {} has {count} numbers, the first has {width}", i + 1)));
    }
    if let Some(i) = rows.iter().position(|r| r.iter().any(|x| !x.is_finite())) {
        return Err(wrong(format!("vector {} holds a value that is not finite", i + 1)));
    }
    Ok(rows)
}
