//! Networks on a GPU: the CNN of Edmunds table B.7 at batch 8,192 with the GELU clip in f32, beside JAX as published on
//! the same card.

use crate::net::{CLIP, jax, records};
use leakscope_net::{
    Backend, Data, Network, Result, Shape,
    engine::clipped_gradient,
    leak::{Measure, Plis, Probe, Spectral, Trace, measure},
    preset::preset,
};
use std::time::Instant;

const BATCH: usize = 8192;

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Ours, then JAX run by `python` where one is named.
pub(crate) fn run(python: Option<&str>) -> Any<()> {
    let backend = Backend::cuda(0)?;
    let Backend::Cuda(card) = backend else { return Err("no GPU".into()) };
    let input = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(preset("cnn-mnist", input, 10)?, 1)?.on(backend)?;
    let data: Data<f32> = records(BATCH, input)?;
    let batch: Vec<usize> = (0..BATCH).collect();
    let n = BATCH as f64;
    println!("{}: {} parameters, batch {BATCH}, f32", card.name(), net.parameter_count());
    let of = |trace, plis, eta| {
        let what = Measure { trace, plis, eta, ..Measure::new(CLIP, 0.5, 1) };
        measure(&net, &data, &batch, &what).map(|_| ())
    };
    let ten = Trace::Estimate { probes: 10, probe: Probe::Rademacher };
    let gradients = rate("clipped gradients", n, || clipped_gradient(&net, &data, &batch, CLIP).map(|_| ()))?;
    rate("PLIS", n, || of(Trace::Skip, Plis::Record, None))?;
    let probes = rate("dFIL, each of 10 probes", 10.0 * n, || of(ten, Plis::Skip, None))?;
    let spectral = Spectral { iterations: 20, tolerance: 1e-15 };
    rate("eta, each of 20 iterations", 20.0 * n, || of(Trace::Skip, Plis::Skip, Some(spectral)))?;
    let Some(python) = python else {
        println!("no Python with JAX was named: nothing to compare with");
        return Ok(());
    };
    let theirs = jax(python, BATCH)?;
    for (name, ours) in [("clipped gradients", gradients), ("dFIL probe", probes)] {
        let Some((_, jax)) = theirs.iter().find(|(theirs, _)| theirs == name) else {
            return Err(format!("the peer did not measure {name}").into());
        };
        println!(
            "{:26} {:12.0} a second: ours is {:.1} times that",
            format!("JAX: {name}"),
            jax.clock,
            ours / jax.clock
        );
    }
    Ok(())
}

/// Records a second, the best of twenty runs.
fn rate(name: &str, each: f64, f: impl Fn() -> Result<()>) -> Result<f64> {
    f()?;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let clock = Instant::now();
        f()?;
        best = best.min(clock.elapsed().as_secs_f64());
    }
    println!("{name:26} {:12.0} a second", each / best);
    Ok(each / best)
}
