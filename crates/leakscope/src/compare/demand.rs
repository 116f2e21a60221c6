//! What a pipeline fails on.

use crate::{Failure, Result};
use leakscope_report::choice::Colour;
use leakscope_report::comparison::{Comparison, Demand, EtaOver};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What makes a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FailOn {
    /// A result is red.
    Red,
    /// A result is amber or red.
    Amber,
    /// The colour of a result is worse than that of the reference.
    Worse,
    /// Any number of a result is worse than in the reference.
    Regression,
    /// The mean or the largest η is larger than in the reference by more than this share of it.
    Eta {
        /// The share: 0.1 is 10%.
        by: f64,
    },
}

/// What may be said.
const CHOICES: &str = "red, amber (or red), worse (a worse colour), regression (any number worse) or eta=10% (mean or largest η up by more)";

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = |why: &str| format!("`{text}`{why}: expected {CHOICES}");
        match text {
            "red" => return Ok(Self::Red),
            "amber" => return Ok(Self::Amber),
            "worse" => return Ok(Self::Worse),
            "regression" => return Ok(Self::Regression),
            _ => {}
        }
        let Some(share) = text.strip_prefix("eta=") else { return Err(wrong("")) };
        let (digits, unit) = share.strip_suffix('%').map_or((share, 1.0), |digits| (digits, 0.01));
        match digits.trim().parse::<f64>() {
            Ok(by) if by.is_finite() && by >= 0.0 => Ok(Self::Eta { by: by * unit }),
            _ => Err(wrong(" has no share of at least 0")),
        }
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Red => f.write_str("red"),
            Self::Amber => f.write_str("amber"),
            Self::Worse => f.write_str("worse"),
            Self::Regression => f.write_str("regression"),
            // Digits that came from 10 × 0.01 are not shown.
            Self::Eta { by } => write!(f, "eta={}%", (by * 1e11).round() / 1e9),
        }
    }
}

impl From<FailOn> for String {
    fn from(fail_on: FailOn) -> Self {
        fail_on.to_string()
    }
}

impl TryFrom<String> for FailOn {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl FailOn {
    /// Whether the results meet it.
    pub(super) fn demand(&self, c: &Comparison) -> Result<Demand> {
        let unmet = match self {
            Self::Red => coloured(c, Colour::Red),
            Self::Amber => coloured(c, Colour::Amber),
            Self::Worse => {
                let reference = c.reference().map_or("", |r| r.colour.name());
                let worse = c.others().find(|(i, _)| c.is_colour_worse(*i));
                worse.map(|(_, r)| format!("{} is {}, the reference is {reference}", r.name, r.colour.name()))
            }
            Self::Regression => c.regressions().first().map(|r| {
                format!("{} is worse in {} than in the reference", r.public_name(), c.results[r.result].name)
            }),
            Self::Eta { by } => eta_up(c, *by)?,
        };
        Ok(Demand { demand: self.to_string(), unmet })
    }
}

/// The first result, after the reference, with this colour or a worse one.
fn coloured(c: &Comparison, least: Colour) -> Option<String> {
    let (_, result) = c.others().find(|(_, r)| r.colour >= least)?;
    Some(format!("{} is {}: {}", result.name, result.colour.name(), result.headline))
}

fn eta_up(c: &Comparison, by: f64) -> Result<Option<String>> {
    let no_eta = |file: &str| {
        let message = format!("{file} states no η to compare; use red, worse or regression instead");
        Failure::text("fail_on", "eta", message)
    };
    let of = |result: &leakscope_report::comparison::Compared| result.eta.ok_or_else(|| no_eta(&result.file));
    let Some(reference) = c.reference() else { return Ok(None) };
    let before = of(reference)?;
    for (_, result) in c.others() {
        let after = of(result)?;
        let pairs = |get: fn(EtaOver) -> Option<f64>| get(before).zip(get(after));
        for (name, pair) in [("mean", pairs(|e| e.mean)), ("largest", pairs(|e| e.largest))] {
            let Some((a, b)) = pair else { continue };
            // A reference that gives nothing away is exceeded by anything.
            if b > a * (1.0 + by) * (1.0 + 1e-9) {
                let up = match a > 0.0 {
                    true => format!("up by {}", leakscope_report::format::share(b / a - 1.0)),
                    false => "up from 0".into(),
                };
                let limit = leakscope_report::format::share(by);
                return Ok(Some(format!("the {name} η of {} is {up}, more than {limit}", result.name)));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_read_or_refused_with_the_choices() {
        assert_eq!("red".parse(), Ok(FailOn::Red));
        assert_eq!("eta=10%".parse(), Ok(FailOn::Eta { by: 0.1 }));
        assert_eq!("eta=0.25".parse(), Ok(FailOn::Eta { by: 0.25 }));
        for text in ["", "blue", "eta", "eta=", "eta=-1%", "eta=x", "eta=inf", "Red"] {
            let error = text.parse::<FailOn>().unwrap_err();
            assert!(error.contains("regression") && error.contains("eta=10%"), "{text}: {error}");
        }
        for fail_on in
            [FailOn::Red, FailOn::Amber, FailOn::Worse, FailOn::Regression, FailOn::Eta { by: 0.5 }]
        {
            assert_eq!(fail_on.to_string().parse(), Ok(fail_on));
        }
    }
}
