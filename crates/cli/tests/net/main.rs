//! `leakscope net train` and `net audit`, end to end, on tiny images.

#![allow(clippy::unwrap_used)]

mod attack;
mod audit;
mod bad_input;
mod data;
mod labels;
mod public;
mod resume;
#[path = "../common/schemas.rs"]
mod schemas;
mod secret;
mod support;
mod table;
mod train;
