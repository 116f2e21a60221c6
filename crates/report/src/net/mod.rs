//! Networks: what a training run and an audit found, as plain versioned data, and their pages.
//!
//! | function | gives | for |
//! |---|---|---|
//! | [`page`] | one HTML file: who leaks, pictures, heat maps | a privacy officer |
//! | [`training_page`] | one HTML file: loss, ε and dFIL over training | whoever trained |
//! | [`summary`], [`training_summary`] | a few lines of text | the person at the terminal |
//! | [`to_json`] | versioned JSON | a pipeline |
//!
//! Pictures are the records themselves, so they are no part of the data: [`Pictures`] is given to the page alone.

mod chart;
mod data;
mod elements;
mod page;
mod picture;
mod score;
mod terminal;
mod training;
mod verdict;

pub use data::{
    AUDIT_SCHEMA, Accounts, Compared, DataFacts, Element, Histogram, NetAudit, NetworkFacts, Point,
    PrivacyFacts, Record, Release, Score, ScoredBy, Stopped, TRAINING_SCHEMA, TraceKind, Tracking, Training,
};
pub use page::page;
pub use picture::{Picture, Pictures, Shown};
pub use terminal::{summary, training_summary};
pub use training::training_page;

/// Plain data as pretty JSON in the order of its fields, with a newline at the end.
pub fn to_json<T: serde::Serialize>(data: &T) -> String {
    // plain data with text keys: serialisation cannot fail
    let mut text = serde_json::to_string_pretty(data).unwrap_or_default();
    text.push('\n');
    text
}
