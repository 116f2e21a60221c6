//! Speed of the CNN of Edmunds table B.7 in f32: samples a second for a clipped gradient, a dFIL probe, PLIS, the
//! exact trace. `cargo run --release -p leakscope-net --example speed [-- batch]`

#![allow(clippy::print_stdout)]

use leakscope_net::{
    Clip, Data, Network, Result, Shape,
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, Spectral, Trace, measure},
    preset::preset,
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
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let t = Instant::now();
            f()?;
            best = best.min(t.elapsed().as_secs_f64());
        }
        println!("{name:24} {:9.0} a second   {:8.2} ms", each / best, best * 1e3);
        Ok(best)
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
    println!("one more probe           {:9.0} a second", 8.0 * n / (ten - two));
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
    Ok(())
}
