//! Networks: what a training run and an audit found, as plain versioned data, and their pages.
//!
//! | function | gives | for |
//! |---|---|---|
//! | [`page`] | one HTML file: who leaks, pictures, heat maps | a privacy officer |
//! | [`informed_page`] | one HTML file: the last record, from the parameters | |
//! | [`inversion_page`] | one HTML file: original, reconstruction, PLIS side by side | |
//! | [`membership_page`] | one HTML file: who took part, true positives and ε from canaries | |
//! | [`training_page`] | one HTML file: loss, ε and dFIL over training | whoever trained |
//! | [`summary`], [`training_summary`] | a few lines of text | the person at the terminal |
//! | [`to_json`] | versioned JSON | a pipeline |
//!
//! Pictures are the records themselves, so they are no part of the data: [`Pictures`] is given to the page alone.

pub use crate::document::choice::{
    AccuracyOn, ClipKind, Kind, Measure, Neighbours, Optimizer, Precision, Sampling, Signal, Tracked,
};
pub use crate::document::net::{
    AUDIT_SCHEMA, Compared, DataFacts, Element, Extremes, Histogram, NetAttribute, NetAudit, NetworkFacts,
    Record, Release, Score, ScoredBy, TraceKind,
};
pub use crate::document::public::{Perturbation, PerturbationKind, Pretraining, PublicUse};
pub use crate::document::training::{
    Account, Accounts, Below, Dropout, Filtered, Point, PrivacyFacts, Promise, Stopped, TRAINING_SCHEMA,
    Tracking, Training, Withheld,
};
pub use crate::figure::picture::{Picture, Pictures, Shown};
pub use crate::render::html::net::{
    InformedPictures, InversionPictures, Reconstructed, informed_page, inversion_page, membership_page, page,
    training_page,
};
pub use crate::render::terminal::net::{summary, training_summary};
pub use crate::render::terminal::{informed_summary, inversion_summary, membership_summary};

/// Plain data as pretty JSON in the order of its fields, with a newline at the end: measured on records without noise, and so for
/// their owner.
pub fn to_json<T: serde::Serialize>(data: &T) -> String {
    crate::owners_document(data)
}
