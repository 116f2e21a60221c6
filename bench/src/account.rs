//! The accountant beside Google's dp-accounting at the same certified width, and calibration beside riskcal, in one
//! run. The peers are Python packages (`pip install dp-accounting riskcal`); `PYTHON` names another interpreter.

use crate::best;
use leakscope_core::dp::{Accountant, Adjacency, Target, Unknown, calibrate};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// σ, q, T: the settings of the issue. δ is 1e-5.
const SETTINGS: [(f64, f64, u64); 4] =
    [(1.0, 0.01, 1000), (0.5, 0.002, 10_000), (1.1, 256.0 / 60_000.0, 14_040), (0.6, 0.2, 500)];
const DELTA: f64 = 1e-5;
/// Width of the certified interval of ε, relative.
const WIDTH: f64 = 1e-3;

/// The peers' process.
struct Peers {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Peers {
    fn start() -> Result<Self, Box<dyn Error>> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let mut child = Command::new(&python)
            .args(["-c", include_str!("peers.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start {python} ({e}): name an interpreter with PYTHON"))?;
        let answers = BufReader::new(child.stdout.take().ok_or("no answers from python")?);
        Ok(Self { child, answers })
    }

    fn ask(&mut self, question: &serde_json::Value) -> Result<serde_json::Value, Box<dyn Error>> {
        let input = self.child.stdin.as_mut().ok_or("python is gone")?;
        writeln!(input, "{question}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| "python gave no answer: see its message above")?;
        match answer.get("missing") {
            Some(missing) => Err(format!("{missing}: pip install dp-accounting riskcal").into()),
            None => Ok(answer),
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Its input closes, and it ends by itself.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Processor seconds that the calling thread has used: on a busy machine the clock on the wall counts others' work.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}

/// The least processor time of several runs; wall time where the system does not tell.
fn least<T>(times: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut fastest = f64::INFINITY;
    let (wall, mut last) = best(1, &mut run);
    for _ in 0..times {
        let before = processor_seconds();
        last = run();
        let after = processor_seconds();
        fastest = fastest.min(before.zip(after).map_or(wall, |(a, b)| b - a));
    }
    (fastest, last)
}

/// Runs both sides and prints the ratios.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let mut peers = Peers::start()?;
    println!("ε at δ = {DELTA:e}; processor time; ratios are dp-accounting's time over ours");
    println!("ours is always certified from both sides to {WIDTH:e}, relative");
    let mut smallest = f64::INFINITY;
    for (sigma, rate, steps) in SETTINGS {
        let ours =
            || Accountant::dp_sgd(sigma, rate, steps, Adjacency::AddRemove)?.precision(WIDTH)?.epsilon(DELTA);
        let (seconds, estimate) = least(9, ours);
        let estimate = estimate?;
        let theirs = peers.ask(&serde_json::json!({
            "kind": "pld", "sigma": sigma, "rate": rate, "steps": steps, "delta": DELTA, "width": WIDTH,
            "reference": estimate.lower
        }))?;
        println!(
            "\nσ = {sigma}, q = {rate:.6}, T = {steps}: Leakscope [{:.4}, {:.4}] in {:.1} ms",
            estimate.lower,
            estimate.upper,
            1e3 * seconds
        );
        for (way, quantity) in [
            ("certified", "certified from both sides"),
            ("usual", "upper end alone, its default grid"),
            ("coarse", "upper end alone, coarsest grid that is near our lower end"),
        ] {
            let of = |name: &str| theirs[way][name].as_f64();
            let (upper, time) = (of("upper").unwrap_or(f64::NAN), of("seconds").unwrap_or(f64::NAN));
            let interval = match of("lower") {
                Some(lower) => format!("[{lower:.4}, {upper:.4}], width {:.1e}", (upper - lower) / upper),
                None => format!("{upper:.4}"),
            };
            let grid = of("grid").unwrap_or(f64::NAN);
            println!(
                "  {quantity:<58} {interval:<36} grid {grid:.1e} {time:>8.3} s {:>7.0}x",
                time / seconds
            );
            if estimate.lower > upper || of("lower").is_some_and(|lower| lower > estimate.upper) {
                return Err(format!("the two sides do not agree at σ = {sigma}").into());
            }
        }
        smallest = smallest.min(theirs["certified"]["seconds"].as_f64().unwrap_or(0.0) / seconds);
    }
    println!("\nsmallest ratio at the same certified width (or a wider one of theirs): {smallest:.0}x");
    let target = Target::Advantage { advantage: 0.1 };
    let ours = || calibrate(target, Unknown::Sigma { rate: 0.002, steps: 10_000 }, Adjacency::AddRemove);
    let (seconds, estimate) = least(3, ours);
    let estimate = estimate?;
    let theirs = peers
        .ask(&serde_json::json!({"kind": "advantage", "rate": 0.002, "steps": 10_000, "target": 0.1}))?;
    let of = |name: &str| theirs[name].as_f64().unwrap_or(f64::NAN);
    println!("\nnoise for a membership advantage of 0.1 at q = 0.002, T = 10,000");
    println!("Leakscope σ = {:.4} in {:.3} s (safe, tight to 0.1%)", estimate.sigma, seconds);
    println!("riskcal   σ = {:.4} in {:.1} s", of("sigma"), of("seconds"));
    println!("ratio {:.0}x", of("seconds") / seconds);
    Ok(())
}
