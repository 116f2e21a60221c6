//! Audit data to what people read: one self-contained HTML page, JSON, a terminal summary.
//!
//! | function | gives | for |
//! |---|---|---|
//! | [`page`] | one HTML file that opens offline | a privacy officer |
//! | [`summary`] | a screenful of text | the person at the terminal |
//! | [`json`] | `audit.json`, versioned | a pipeline |
//! | [`net`] | the same for networks and their training | |
//!
//! Page and terminal say the same verdict, [`verdict::verdict`], in the same numbers, [`mod@format`].

pub mod audit;
pub mod format;
pub mod net;
pub mod verdict;

mod chart;
mod html;
mod page;
mod svg;
mod terminal;
mod unbounded;
mod words;

pub use audit::Audit;
pub use page::page;
pub use terminal::summary;

/// The audit as pretty JSON in the order of its fields, with a newline at the end.
///
/// JSON has no infinity: numbers without bound are written as `null`.
pub fn json(audit: &Audit) -> String {
    let mut text = serde_json::to_string_pretty(audit).expect("plain data with text keys always serialises");
    text.push('\n');
    text
}
