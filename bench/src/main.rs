//! Leakscope side by side with the published algorithms, in one run on the same data. Timings never decide a test.
//!
//! ```text
//! cargo run --release -p leakscope-bench -- glm            per-record η against Jacobians and SVDs, and one product
//! cargo run --release -p leakscope-bench -- wide [ROWS COLUMNS]  12,665 × 784 end to end against its three products
//! cargo run --release -p leakscope-bench -- attack         the white box against refitting in a loop
//! cargo run --release -p leakscope-bench -- account        ε and calibration against dp-accounting and riskcal (Python)
//! cargo run --release -p leakscope-bench -- stream [ROWS]  Parquet × 50 columns: memory, and passes against reading
//! cargo run --release -p leakscope-bench -- net [PYTHON]   the CNN of Edmunds table B.7 against JAX (pip install jax)
//! cargo run --release -p leakscope-bench -- gpu [PYTHON]   the same on a GPU of NVIDIA's, at batch 8,192, and PyTorch with pairs
//! cargo run --release -p leakscope-bench -- gpu-profile [SECONDS]  each kind of work alone, with LEAKSCOPE_CUDA_TIMES=1 by kernel
//! cargo run --release -p leakscope-bench -- gpu-large      a residual CNN and GPT-2 small on it, against its arithmetic
//! cargo run --release -p leakscope-bench -- gpu-small      private steps and measures of few records on it
//! cargo run --release -p leakscope-bench -- gpu-streamed [GB]  records that stay on it against such that are copied in pieces
//! cargo run --release -p leakscope-bench -- gpu-track [STEPS]  a private run on it with accounts of 60,000 records at every step
//! cargo run --release -p leakscope-bench -- inversion [PYTHON]  gradient inversion against PyTorch; 10,000 linear models at once
//! cargo run --release -p leakscope-bench -- text [blocks=12 …] [PYTHON]  clipped gradients of GPT-2 small against plain ones, and Opacus
//! cargo run --release -p leakscope-bench -- noise          shapes of noise to their certificate
//! cargo run --release -p leakscope-bench -- softmax [PYTHON]  η of softmax regression against Jacobians and SVDs, also numpy's
//! cargo run --release -p leakscope-bench -- scaling        the same work on 1, 2, 4, … cores
//! ```
#![allow(clippy::print_stdout)]

mod account;
mod attack;
mod glm;
mod gpu;
mod inversion;
mod net;
mod noise;
mod parallel;
mod scaling;
mod softmax;
mod stream;
mod text;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("glm") => glm::run(),
        Some("wide") => {
            let sizes: Result<Vec<usize>, _> = arguments[1..].iter().map(|text| text.parse()).collect();
            sizes.map_err(Into::into).and_then(|sizes| match sizes[..] {
                [] => glm::wide([12_665, 784]),
                [n, d] => glm::wide([n, d]),
                _ => Err("give rows and columns".into()),
            })
        }
        Some("account") => account::run(),
        Some("attack") => attack::run(),
        Some("noise") => noise::run(),
        Some("softmax") => softmax::run(arguments.get(1).map(String::as_str)),
        Some("scaling") => scaling::run(),
        Some("gpu") => gpu::run(arguments.get(1).map(String::as_str)),
        Some("gpu-large") => gpu::large(),
        Some("gpu-small") => gpu::small(),
        Some("gpu-streamed") => {
            let gigabytes = arguments.get(1).map_or(Ok(2.0), |text| text.parse());
            gigabytes.map_err(Into::into).and_then(gpu::streamed)
        }
        Some("gpu-profile") => {
            let seconds = arguments.get(1).map_or(Ok(1.2), |text| text.parse());
            seconds.map_err(Into::into).and_then(gpu::profile)
        }
        Some("gpu-track") => {
            let steps = arguments.get(1).map_or(Ok(500), |text| text.parse());
            steps.map_err(Into::into).and_then(gpu::track)
        }
        Some("stream") => {
            let rows = arguments.get(1).map_or(Ok(10_000_000), |text| text.parse());
            rows.map_err(Into::into).and_then(stream::run)
        }
        Some("inversion") => inversion::run(arguments.get(1).map(String::as_str)),
        Some("net") => net::run(arguments.get(1).map(String::as_str)),
        // what `net` runs in a process of its own
        Some("net-memory") => {
            let hidden: Result<Vec<usize>, _> = arguments[1..].iter().map(|text| text.parse()).collect();
            hidden.map_err(Into::into).and_then(|hidden| net::memory(&hidden))
        }
        Some("text") => text::run(&arguments[1..]),
        // what `text` runs in processes of their own
        Some("text-part") => text::part(&arguments[1..]),
        _ => {
            Err("usage: leakscope-bench glm|wide|attack|noise|softmax [PYTHON]|scaling|account|inversion [PYTHON]|stream [ROWS]|net [PYTHON]|gpu [PYTHON]|gpu-large|gpu-small|gpu-streamed [GB]|gpu-profile [SECONDS]|gpu-track [STEPS]|text \
                 [blocks=N] [width=N] [heads=N] [vocabulary=N] [length=N] [batch=N] [PYTHON]"
                .into())
        }
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

/// Lets [`peak_memory`] count from here, where Linux allows it.
fn forget_peak_memory() {
    // Where it does not, a line has the peak of all before it.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak resident memory in MB, as Linux counts it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    line.and_then(|l| l.split_whitespace().nth(1))
        .and_then(|kb| kb.parse::<u64>().ok())
        .map_or(0, |kb| kb >> 10)
}
