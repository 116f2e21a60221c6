//! Networks: the CNN of Edmunds table B.7 at batch 600 with the GELU clip in f32, side by side with JAX as published.
//!
//! The machine may be shared, so every rate comes twice: by the clock (the best of the runs) and by the processor time
//! of all threads. Both programmes use all cores.

use crate::peak_memory;
use leakscope_net::{
    Clip, Data, LayerSpec, Loss, Network, Result, Shape,
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, Spectral, Trace, measure},
    preset::{Preset, mlp},
    random::{Generator, Purpose},
};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

const BATCH: usize = 600;
pub(crate) const CLIP: Clip = Clip::Gelu { bound: 8.0 };

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Records a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) clock: f64,
    core: f64,
}

/// Ours, then JAX run by `python` where one is named.
pub(crate) fn run(python: Option<&str>) -> Any<()> {
    let input = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?;
    let data = records(1000, input)?;
    let batch: Vec<usize> = (0..BATCH).collect();
    let n = BATCH as f64;
    println!("{} parameters, batch {BATCH}, {} threads", net.parameter_count(), rayon::current_num_threads());
    println!("{:26} {:>12} {:>17}", "records a second", "by the clock", "per core second");
    let of = |trace, plis, eta| {
        let measures = Measure { trace, plis, eta, ..Measure::new(CLIP, 0.5, 1) };
        measure(&net, &data, &batch, &measures).map(|_| ())
    };
    let ten = Trace::Estimate { probes: 10, probe: Probe::Rademacher };
    let gradients = rate("clipped gradients", n, || clipped_gradient(&net, &data, &batch, CLIP).map(|_| ()))?;
    let plis = rate("PLIS", n, || of(Trace::Skip, Plis::Record, None))?;
    let probes = rate("dFIL, each of 10 probes", 10.0 * n, || of(ten, Plis::Skip, None))?;
    rate("eta to 1e-4", n, || of(Trace::Skip, Plis::Skip, Some(Spectral::default())))?;
    println!("PLIS costs {:.2} clipped gradients", gradients.core / plis.core);

    let exact = Measure { trace: Trace::Exact, plis: Plis::Skip, ..Measure::new(CLIP, 0.5, 1) };
    let (clock, before) = (Instant::now(), processor_seconds());
    measure(&net, &data, &(0..1000).collect::<Vec<_>>(), &exact)?;
    let (wall, core) = (clock.elapsed().as_secs_f64(), processor_seconds() - before);
    println!("exact trace of 1,000 images: {wall:.1} s by the clock, {core:.1} core seconds");

    // each in a process of its own: a peak is that of a whole process
    for hidden in [[900, 330], [2600, 3050]] {
        let itself = std::env::current_exe()?;
        let sizes = hidden.map(|h: usize| h.to_string());
        if !Command::new(itself).arg("net-memory").args(sizes).status()?.success() {
            return Err("the measurement of memory failed".into());
        }
    }
    let Some(python) = python else {
        println!("no Python with JAX was named: nothing to compare with");
        return Ok(());
    };
    let theirs = jax(python, BATCH)?;
    // once more after the peer: the machine may have become busier, or less so
    println!("again, ours:");
    let gradients_again =
        rate("clipped gradients", n, || clipped_gradient(&net, &data, &batch, CLIP).map(|_| ()))?;
    let probes_again = rate("dFIL, each of 10 probes", 10.0 * n, || of(ten, Plis::Skip, None))?;
    let both = [("clipped gradients", gradients, gradients_again), ("dFIL probe", probes, probes_again)];
    for (name, before, after) in both {
        let ours = Rate { clock: before.clock.max(after.clock), core: before.core.max(after.core) };
        let Some((_, jax)) = theirs.iter().find(|(theirs, _)| theirs == name) else {
            return Err(format!("the peer did not measure {name}").into());
        };
        println!("{:26} {:12.0} {:17.0}", format!("JAX: {name}"), jax.clock, jax.core);
        let (clock, core) = (ours.clock / jax.clock, ours.core / jax.core);
        println!("{:26} {clock:11.1}x {core:16.1}x", format!("ratio: {name}"));
    }
    Ok(())
}

pub(crate) fn records(n: usize, input: Shape) -> Result<Data<f32>> {
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let x = (0..n * input.len()).map(|_| rng.uniform() as f32).collect();
    Data::classes(input, x, 10, &(0..n as u32).map(|i| i % 10).collect::<Vec<_>>())
}

/// Times `f`, which handles `each` records, at least fifteen times and half a second.
fn rate(name: &str, each: f64, f: impl Fn() -> Result<()>) -> Result<Rate> {
    f()?;
    let (mut best, mut runs, before) = (f64::INFINITY, 0, processor_seconds());
    while runs < 15 || (processor_seconds() - before < 0.5 && runs < 50) {
        let clock = Instant::now();
        f()?;
        best = best.min(clock.elapsed().as_secs_f64());
        runs += 1;
    }
    let core = (processor_seconds() - before) / f64::from(runs);
    let rate = Rate { clock: each / best, core: each / core };
    println!("{name:26} {:12.0} {:17.0}", rate.clock, rate.core);
    Ok(rate)
}

/// A perceptron at batch 256: memory must not grow with parameters times batch.
pub(crate) fn memory(hidden: &[usize]) -> Any<()> {
    let input = Shape::Vector([784]);
    let spec = mlp(input, hidden, &LayerSpec::Relu, 10, Loss::SoftmaxCrossEntropy);
    let net = Network::<f32>::new(spec, 1)?;
    let data = records(256, input)?;
    let batch: Vec<usize> = (0..256).collect();
    let clock = Instant::now();
    clipped_gradient(&net, &data, &batch, CLIP)?;
    let gradient = clock.elapsed().as_secs_f64();
    let clock = Instant::now();
    measure(&net, &data, &batch, &Measure::new(CLIP, 0.5, 1))?;
    let (parameters, megabyte) = (net.parameter_count(), 1024.0 * 1024.0);
    println!(
        "{parameters} parameters ({:.0} MB), batch 256: peak memory {} MB; gradient {gradient:.2} s, ten probes and \
         PLIS {:.2} s",
        4.0 * parameters as f64 / megabyte,
        peak_memory(),
        clock.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The rates of `net_jax.py`.
pub(crate) fn jax(python: &str, batch: usize) -> Any<Vec<(String, Rate)>> {
    peer(python, include_str!("../net_jax.py"), "jax", batch)
}

/// The rates of a script for a Python that has a package.
pub(crate) fn peer(python: &str, script: &str, package: &str, batch: usize) -> Any<Vec<(String, Rate)>> {
    let mut child = Command::new(python)
        .args(["-", &batch.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run {python}: {e}"))?;
    child.stdin.take().ok_or("no standard input")?.write_all(script.as_bytes())?;
    let out = child.wait_with_output()?;
    if !out.status.success() {
        return Err(format!("{python} failed: does it have {package}? (pip install {package})").into());
    }
    let text = String::from_utf8(out.stdout)?;
    let line = |line: &str| {
        let mut parts = line.split('\t');
        let (name, clock, core) = (parts.next()?, parts.next()?, parts.next()?);
        Some((name.to_owned(), Rate { clock: clock.parse().ok()?, core: core.parse().ok()? }))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Processor time of this process so far, in seconds (Linux; 0 elsewhere).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
