//! The one chart specification: what a drawing shows, as plain data.
//!
//! A [`Figure`] holds curves and is part of a document's JSON. Every curve is one kind of claim, and its constructor takes
//! that kind alone, so that no attack is drawn as a guarantee. A [`panel::Panel`] is anything that can be drawn, and also
//! gives its numbers as CSV.

pub mod panel;
pub mod picture;
mod trade_off;

pub use trade_off::trade_off;

use leakscope_core::claim::{Bound, Observed};
use serde::{Deserialize, Serialize};

/// Curves over one pair of axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Short name, unique in its document.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// Levels to compare with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// A chosen value of the horizontal axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<f64>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Natural ends, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<[f64; 2]>,
}

/// A level with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Where it is on the vertical axis.
    pub value: f64,
    /// What it is.
    pub name: String,
}

/// What kind of number a curve shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// Computed from model and data.
    Measured,
    /// Proved for every attacker of the stated kind.
    Bound,
    /// What an attack achieved.
    Observed,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// What kind of number it shows.
    pub claim: Claim,
    /// Its points.
    pub points: Vec<Place>,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where it is on the horizontal axis.
    pub x: f64,
    /// Its value.
    #[serde(with = "crate::unbounded::number")]
    pub y: f64,
    /// Its interval, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(title: &str) -> Self {
        Self { title: title.into(), log: false, ends: None }
    }

    /// A logarithmic axis.
    pub fn log(title: &str) -> Self {
        Self { title: title.into(), log: true, ends: None }
    }

    /// The same from 0 to 1.
    pub fn of_shares(mut self) -> Self {
        self.ends = Some([0.0, 1.0]);
        self
    }
}

impl Series {
    /// Numbers computed from model and data.
    pub fn measured(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Place { x, y, interval: None }).collect();
        Self { name: name.into(), claim: Claim::Measured, points }
    }

    /// Bounds.
    pub fn bound(name: &str, points: impl IntoIterator<Item = (f64, Bound)>) -> Self {
        let points = points.into_iter().map(|(x, b)| Place { x, y: b.value, interval: None }).collect();
        Self { name: name.into(), claim: Claim::Bound, points }
    }

    /// What an attack achieved.
    pub fn observed(name: &str, points: impl IntoIterator<Item = (f64, Observed)>) -> Self {
        let place = |(x, o): (f64, Observed)| Place { x, y: o.value, interval: Some([o.ci_low, o.ci_high]) };
        Self { name: name.into(), claim: Claim::Observed, points: points.into_iter().map(place).collect() }
    }
}
