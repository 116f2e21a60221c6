//! Documents to what people read: one self-contained HTML page, JSON, a terminal summary.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@document`] | the schemas of every JSON file, versioned |
//! | [`figure`] | what a chart shows, as data |
//! | [`mod@verdict`] | [`verdict::decide`]: the colour of every page from the numbers on it |
//! | [`what_if`] | an audit at another noise, without measuring again |
//! | [`mod@format`] | numbers as people read them, bounds rounded to the safe side |
//!
//! | function | gives | for |
//! |---|---|---|
//! | [`page`] | one HTML file that opens offline | a privacy officer |
//! | [`summary`] | a screenful of text | the person at the terminal |
//! | [`balance_page`], [`attack_page`], [`release_page`], [`owners_release_page`], [`account_page`], [`bound_page`], [`canary_page`], [`text_audit_page`] | the pages of the other commands | |
//! | [`reproduction_page`], [`panel_svg`] | a figure of a paper beside ours, as a page and as files | a researcher |
//! | [`comparison_page`], [`comparison_summary`] | results side by side | somebody who decides between them |
//! | [`comparison_markdown`], [`comparison_junit`], [`comparison_sarif`] | the same without any record or value | a pipeline |
//! | [`calibration`] | what a calibration found, in two lines | |
//! | [`json`], [`fn@document`] | versioned JSON | a pipeline |
//! | [`net`] | the same for networks and their training | |
//!
//! Page and terminal say the same verdict in the same numbers.

pub mod document;
pub mod figure;
pub mod format;
pub mod net;
pub mod verdict;
pub mod what_if;
pub mod words;

mod comparison_words;
mod finite;
mod noise_words;
pub mod options;
mod redact;
mod render;
mod unbounded;

pub use document::attack::Attack;
pub use document::audit::Audit;
pub use document::balance::Balance;
pub use document::calibrate::Calibration;
pub use document::canary::Canary;
pub use document::comparison::Comparison;
pub use document::release::Release;
pub use document::reproduction::Reproduction;
pub use document::text_audit::TextAudit;
pub use document::{
    account, attack, audit, balance, bound, calibrate, canary, choice, comparison, explore, informed,
    inversion, membership, noise, release, reproduction, subject, tell, text, text_audit,
};
pub use finite::{NotFinite, check_finite};
pub use format::{five_digits, quoted};
pub use render::html::page::{
    PageKind, ResultPage, account_page, attack_page, balance_page, bound_page, canary_page, comparison_page,
    folder_page, is_ours, owners_release_page, page, page_with, panel_svg, release_page, reproduction_page,
    rewritten_page, text_audit_page, with_navigation,
};
pub use render::pipeline::{comparison_junit, comparison_markdown, comparison_sarif};
pub use render::terminal::{
    account_summary, calibration, canary_summary, comparison_summary, laid_out, summary, text_audit_summary,
};

/// The audit as pretty JSON in the order of its fields, with a newline at the end.
///
/// JSON has no infinity: numbers without bound are written as `null`.
pub fn json(audit: &Audit) -> String {
    owners_document(audit)
}

/// What a document says that was computed on the data without noise: whoever reads the file alone must see it.
pub const FOR_THE_OWNER: &str = "the owner of the data only: it was computed on the records, without noise";

/// Such a document as pretty JSON: `for` says whose it is.
pub fn owners_document(data: &impl serde::Serialize) -> String {
    #[derive(serde::Serialize)]
    struct Owners<'a, T> {
        r#for: &'static str,
        #[serde(flatten)]
        data: &'a T,
    }
    document(&Owners { r#for: FOR_THE_OWNER, data })
}

/// The same with the fields in the order of their names.
pub fn sorted_owners_document(data: &impl serde::Serialize) -> String {
    let mut value = serde_json::to_value(data).expect("plain data with text keys always serialises");
    if let Some(fields) = value.as_object_mut() {
        fields.insert("for".into(), FOR_THE_OWNER.into());
    }
    sorted_document(&value)
}

/// Any document of this crate with the fields in the order of their names.
pub fn sorted_document(data: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(data).expect("plain data with text keys always serialises");
    options::quoted(&format!("{value:#}\n"))
}

/// Any document of this crate as pretty JSON, with a newline at the end.
pub fn document(data: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(data).expect("plain data with text keys always serialises");
    text.push('\n');
    options::quoted(&text)
}
