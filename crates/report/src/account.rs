//! What `leakscope account` found, as plain data.

use crate::figure::{Axis, Figure, Level, Series};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_core::dp::{Account, Adjacency, Mechanism};
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `account.json`.
pub const SCHEMA: &str = "leakscope.account/1";

/// What a sequence of releases costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// ε by each accountant, advantage, trade-off curve.
    #[serde(flatten)]
    pub account: Account,
    /// Whether the adjacency was assumed because the command line did not say it.
    pub adjacency_assumed: bool,
    /// Curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

impl Costs {
    /// An account with its curve.
    pub fn of(account: Account, adjacency_assumed: bool) -> Self {
        let figures = vec![trade_off(&account)];
        Self {
            schema: SCHEMA.into(),
            leakscope: env!("CARGO_PKG_VERSION").into(),
            account,
            adjacency_assumed,
            figures,
        }
    }

    /// As JSON, ε of the Rényi accountant as a number with its order beside it.
    pub fn json(&self) -> String {
        let mut value = serde_json::to_value(self).expect("plain data with text keys always serialises");
        value["epsilon"]["rdp"] = self.account.epsilon.rdp.epsilon.into();
        value["epsilon"]["rdp_order"] = self.account.epsilon.rdp.alpha.into();
        crate::document(&value)
    }
}

/// The trade-off curve: the least false-negative rate of any test.
fn trade_off(account: &Account) -> Figure {
    let points = &account.trade_off;
    let lower = |p: &leakscope_core::dp::TradeOffPoint| {
        (p.false_positive, Bound::at_least(p.false_negative.lower, Theorem::TradeOff))
    };
    Figure {
        id: "trade-off".into(),
        title: "No test does better".into(),
        caption: "The least false-negative rate of any test that tells the two neighbouring data sets apart, at each \
                  false-positive rate; certified from below. The straight line is a test that does not look."
            .into(),
        x: Axis::linear("false-positive rate").of_shares(),
        y: Axis::linear("false-negative rate, at least").of_shares(),
        series: vec![
            Series::bound("these releases", points.iter().map(lower)),
            Series::measured(
                "without looking",
                points.iter().map(|p| (p.false_positive, 1.0 - p.false_positive)),
            ),
        ],
        levels: Vec::<Level>::new(),
        chosen: None,
    }
}

/// The adjacency in words.
pub fn adjacency(adjacency: Adjacency) -> &'static str {
    match adjacency {
        Adjacency::AddRemove => "add/remove: one record is there or is not",
        Adjacency::Replace => "replace: one record takes another value",
    }
}

/// A release in words.
pub fn release(mechanism: Mechanism, count: u64) -> String {
    use crate::format::{count as whole, setting};
    let what = match mechanism {
        Mechanism::Gaussian { sigma, rate: 1.0 } => format!("Gaussian noise, σ = {}", setting(sigma)),
        Mechanism::Gaussian { sigma, rate } => {
            format!("Gaussian noise, σ = {}, each record with probability {}", setting(sigma), setting(rate))
        }
        Mechanism::Laplace { scale } => format!("Laplace noise of scale {}", setting(scale)),
        Mechanism::RandomisedResponse { categories, noise } => {
            format!("randomised response over {} values, noise {}", whole(categories), setting(noise))
        }
    };
    format!("{what}, {}", if count == 1 { "once".into() } else { format!("{} times", whole(count)) })
}
