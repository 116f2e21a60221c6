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
            Some(what) => Err(format!("{what}: pip install dp-accounting riskcal").into()),
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

/// Runs both sides and prints the ratios.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let mut peers = Peers::start()?;
    println!(
        "ε at δ = {DELTA:e}, certified from both sides to {WIDTH:e} (relative). dp-accounting is timed for its upper end"
    );
    println!(
        "alone, at the coarsest grid where that lies within the same width of our lower end; its own lower end is shown."
    );
    println!(
        "{:<28} {:>20} {:>10} {:>20} {:>10} {:>9} {:>8}",
        "σ, q, T", "Leakscope", "time", "dp-accounting", "time", "grid", "ratio"
    );
    let mut smallest = f64::INFINITY;
    for (sigma, rate, steps) in SETTINGS {
        let ours =
            || Accountant::dp_sgd(sigma, rate, steps, Adjacency::AddRemove)?.precision(WIDTH)?.epsilon(DELTA);
        let (seconds, found) = best(5, ours);
        let found = found?;
        let theirs = peers.ask(&serde_json::json!({
            "kind": "pld", "sigma": sigma, "rate": rate, "steps": steps, "delta": DELTA, "width": WIDTH,
            "reference": found.lower
        }))?;
        let of = |name: &str| theirs[name].as_f64().unwrap_or(f64::NAN);
        let ratio = of("seconds") / seconds;
        smallest = smallest.min(ratio);
        println!(
            "{:<28} {:>20} {:>8.2}ms {:>20} {:>8.2} s {:>9.1e} {:>7.0}x",
            format!("{sigma}, {rate:.6}, {steps}"),
            format!("[{:.4}, {:.4}]", found.lower, found.upper),
            1e3 * seconds,
            format!("[{:.4}, {:.4}]", of("lower"), of("upper")),
            of("seconds"),
            of("grid"),
            ratio
        );
        println!(
            "{:<59} {:>20} {:>8.2} s {:>9.1e} {:>7.0}x",
            "  its upper end alone, at its default grid",
            format!("{:.4}", of("usual")),
            of("usual_seconds"),
            1e-4,
            of("usual_seconds") / seconds
        );
        if found.lower > of("upper") || of("lower") > found.upper {
            return Err(format!("the two intervals of σ = {sigma} do not meet").into());
        }
    }
    println!("smallest ratio {smallest:.0}x");
    let target = Target::Advantage { advantage: 0.1 };
    let ours = || calibrate(target, Unknown::Sigma { rate: 0.002, steps: 10_000 }, Adjacency::AddRemove);
    let (seconds, found) = best(3, ours);
    let found = found?;
    let theirs = peers
        .ask(&serde_json::json!({"kind": "advantage", "rate": 0.002, "steps": 10_000, "target": 0.1}))?;
    let of = |name: &str| theirs[name].as_f64().unwrap_or(f64::NAN);
    println!("\nnoise for a membership advantage of 0.1 at q = 0.002, T = 10,000");
    println!("Leakscope σ = {:.4} in {:.3} s (safe, tight to 0.1%)", found.sigma, seconds);
    println!("riskcal   σ = {:.4} in {:.1} s", of("sigma"), of("seconds"));
    println!("ratio {:.0}x", of("seconds") / seconds);
    Ok(())
}
