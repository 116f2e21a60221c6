//! Leakscope side by side with the published algorithms, in one run on the same data. Timings never decide a test.
//!
//! ```text
//! cargo run --release -p leakscope-bench -- glm            per-record η against Jacobians and SVDs, and one product
//! cargo run --release -p leakscope-bench -- wide           12,665 × 784 end to end against its three products
//! cargo run --release -p leakscope-bench -- account        ε and calibration against dp-accounting and riskcal (Python)
//! cargo run --release -p leakscope-bench -- stream [ROWS]  Parquet × 50 columns: memory, and passes against reading
//! ```
#![allow(clippy::print_stdout)]

mod account;
mod glm;
mod parallel;
mod stream;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("glm") => glm::run(),
        Some("wide") => glm::wide(),
        Some("account") => account::run(),
        Some("stream") => {
            let rows = arguments.get(1).map_or(Ok(10_000_000), |text| text.parse());
            rows.map_err(Into::into).and_then(stream::run)
        }
        _ => Err("usage: leakscope-bench glm|wide|account|stream [ROWS]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The best of `times` runs, in seconds.
fn best<T>(times: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut fastest = f64::INFINITY;
    let mut last = None;
    for _ in 0..times.max(1) {
        let clock = Instant::now();
        let value = run();
        fastest = fastest.min(clock.elapsed().as_secs_f64());
        last = Some(value);
    }
    (fastest, last.expect("at least one run"))
}
