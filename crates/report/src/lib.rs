//! Audit data to what people read: one self-contained HTML page, JSON, a terminal summary.
//!
//! | function | gives | for |
//! |---|---|---|
//! | [`page`] | one HTML file that opens offline | a privacy officer |
//! | [`summary`] | a screenful of text | the person at the terminal |
//! | [`balance_page`], [`attack_page`], [`release_page`], [`account_page`], [`bound_page`] | the pages of the other commands | |
//! | [`reproduction_page`], [`panel_svg`] | a figure of a paper beside ours, as a page and as files | a researcher |
//! | [`json`] | `audit.json`, versioned | a pipeline |
//! | [`net`] | the same for networks and their training | |
//!
//! Page and terminal say the same verdict, [`verdict::verdict`], in the same numbers, [`mod@format`].

pub mod account;
mod account_terminal;
pub mod attack;
pub mod audit;
pub mod balance;
pub mod bound;
pub mod figure;
pub mod format;
pub mod net;
pub mod release;
pub mod reproduction;
pub mod subject;
pub mod verdict;

mod chart;
mod finite;
mod html;
mod page;
mod svg;
mod terminal;
mod unbounded;
mod words;

pub use account_terminal::{account_summary, five_digits};
pub use attack::Attack;
pub use audit::Audit;
pub use balance::Balance;
pub use finite::{NotFinite, check_finite};
pub use page::{
    account_page, attack_page, balance_page, bound_page, page, panel_svg, release_page, reproduction_page,
};
pub use release::Release;
pub use reproduction::Reproduction;
pub use terminal::summary;

/// The audit as pretty JSON in the order of its fields, with a newline at the end.
///
/// JSON has no infinity: numbers without bound are written as `null`.
pub fn json(audit: &Audit) -> String {
    document(audit)
}

/// Any document of this crate as pretty JSON, with a newline at the end.
pub fn document(data: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(data).expect("plain data with text keys always serialises");
    text.push('\n');
    text
}
