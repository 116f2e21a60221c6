//! Audit data to what people read: one self-contained HTML page, JSON, a terminal summary.

pub mod audit;

pub use audit::Audit;
