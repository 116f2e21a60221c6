//! `leakscope text`, as a user runs it, on the small models of testdata.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
mod common;

mod audit;
mod canary;
mod train;

use std::path::Path;

/// A file or folder of testdata/text.
fn testdata(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/text").join(name);
    path.to_str().unwrap().to_owned()
}
