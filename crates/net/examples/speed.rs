//! Speed of the CNN of Edmunds table B.7 in f32: samples a second for a clipped gradient, a dFIL probe, PLIS, the
//! exact trace. `cargo run --release -p leakscope-net --example speed [-- batch]`

#![allow(clippy::print_stdout)]

use leakscope_net::{
    Clip, Data, LayerSpec, Loss, Network, Result, Shape,
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, Spectral, Trace, measure},
    preset::{mlp, preset},
    random::{Generator, Purpose},
};
use std::time::Instant;

fn main() -> Result<()> {
    let batch: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(600);
    let input = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(preset("cnn-mnist", input, 10)?, 1)?;
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let x = (0..batch * 784).map(|_| rng.uniform() as f32).collect();
    let labels: Vec<u32> = (0..batch as u32).map(|i| i % 10).collect();
    let data = Data::classes(input, x, 10, &labels)?;
    let records: Vec<usize> = (0..batch).collect();
    let clip = Clip::Gelu { bound: 8.0 };
    println!("{} parameters, batch {batch}, {} threads", net.parameter_count(), rayon::current_num_threads());

    let time = |name: &str, each: f64, f: &dyn Fn() -> Result<()>| -> Result<f64> {
        f()?;
        let (mut best, mut runs, before) = (f64::INFINITY, 0, processor_seconds());
        while runs < 5 || processor_seconds() - before < 0.5 && runs < 50 {
            let t = Instant::now();
            f()?;
            best = best.min(t.elapsed().as_secs_f64());
            runs += 1;
        }
        // on a machine that is shared, the processor's time says more than the clock
        let core = (processor_seconds() - before) / f64::from(runs);
        println!("{name:24} {:9.0} a second {:9.0} per core second", each / best, each / core);
        Ok(core)
    };
    let n = batch as f64;
    let gradient =
        time("clipped gradients", n, &|| clipped_gradient(&net, &data, &records, clip).map(|_| ()))?;
    let run = |trace, plis: Plis, eta| {
        let what = Measure { trace, plis, eta, ..Measure::new(clip, 0.5, 1) };
        measure(&net, &data, &records, &what).map(|_| ())
    };
    let probes = |probes| Trace::Estimate { probes, probe: Probe::Rademacher };
    let plis = time("PLIS", n, &|| run(Trace::Skip, Plis::Record, None))?;
    let two = time("dFIL, 2 probes", 2.0 * n, &|| run(probes(2), Plis::Skip, None))?;
    let ten = time("dFIL, 10 probes", 10.0 * n, &|| run(probes(10), Plis::Skip, None))?;
    println!("one more probe           {:29.0} per core second", 8.0 * n / (ten - two));
    println!("PLIS costs {:.2} clipped gradients", plis / gradient);
    let few: Vec<usize> = (0..batch.min(24)).collect();
    let t = Instant::now();
    measure(
        &net,
        &data,
        &few,
        &Measure { trace: Trace::Exact, plis: Plis::Skip, ..Measure::new(clip, 0.5, 1) },
    )?;
    println!("exact trace of 1,000     {:9.1} s", t.elapsed().as_secs_f64() * 1000.0 / few.len() as f64);
    let t = Instant::now();
    let what = Measure { trace: Trace::Skip, eta: Some(Spectral::default()), ..Measure::new(clip, 0.5, 1) };
    measure(&net, &data, &few, &what)?;
    println!("eta of 1,000             {:9.1} s", t.elapsed().as_secs_f64() * 1000.0 / few.len() as f64);
    large_mlp()
}

/// A perceptron of ten million parameters at batch 256: memory must not grow with parameters times batch.
fn large_mlp() -> Result<()> {
    let input = Shape::Vector([784]);
    let spec = mlp(input, &[2600, 3050], &LayerSpec::Relu, 10, Loss::SoftmaxCrossEntropy);
    let net = Network::<f32>::new(spec, 1)?;
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let x = (0..256 * 784).map(|_| rng.uniform() as f32).collect();
    let labels: Vec<u32> = (0..256).map(|i| i % 10).collect();
    let data = Data::classes(input, x, 10, &labels)?;
    let records: Vec<usize> = (0..256).collect();
    let clip = Clip::Gelu { bound: 1.0 };
    let t = Instant::now();
    clipped_gradient(&net, &data, &records, clip)?;
    let gradient = t.elapsed().as_secs_f64();
    let t = Instant::now();
    measure(&net, &data, &records, &Measure::new(clip, 0.5, 1))?;
    println!(
        "{} parameters, batch 256: gradient {gradient:.2} s, ten probes and PLIS {:.2} s, peak memory {:.0} MB",
        net.parameter_count(),
        t.elapsed().as_secs_f64(),
        peak_megabytes()
    );
    Ok(())
}

/// Processor time of this process so far, in seconds (Linux; 0 elsewhere).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Largest resident memory of this process so far (Linux; 0 elsewhere).
fn peak_megabytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|v| v.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
