//! DP-SGD on MNIST with the CNN of Edmunds table B.7 to (1, 1e-5), keeping what every drawn record gives away.
//!
//! `cargo run --release -p leakscope-net --example mnist -- DIR [steps] [probes]`, DIR with the four idx files,
//! unpacked (`gunzip -k`).

#![allow(clippy::print_stdout)]

use leakscope_core::num::Distribution;
use leakscope_net::{
    Clip, Data, Error, Network, Result, Shape,
    engine::evaluate,
    leak::{Label, Measure, Spectral, Trace, measure},
    preset::preset,
    train::{Optimizer, Privacy, Sampling, Tracking, TrainConfig, Trainer},
};
use std::{path::Path, time::Instant};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let Some(dir) = args.next() else {
        println!("usage: mnist DIR [steps] [probes]");
        return Ok(());
    };
    let steps: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(500);
    let probes: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(0);
    let (train, test) = (load(Path::new(&dir), "train")?, load(Path::new(&dir), "t10k")?);
    let net = Network::<f32>::new(preset("cnn-mnist", train.input(), 10)?, 1)?;
    let config = TrainConfig {
        optimizer: Optimizer::Sgd { momentum: 0.9 },
        learning_rate: 0.5,
        weight_decay: 0.0,
        sampling: Sampling::Poisson { rate: 1024.0 / 60_000.0 },
        privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 2.0 }),
        tracking: if probes >= 2 { Tracking::Drawn { probes } } else { Tracking::Off },
        label: Label::Public,
        delta: 1e-5,
        seed: 1,
    };
    let mut run = Trainer::new(net, &train, config)?;
    let started = Instant::now();
    for step in 1..=steps {
        let report = run.step()?;
        if step % 50 == 0 || step == steps {
            let test = evaluate(run.network(), &test)?;
            println!(
                "step {step:5}  loss {:.3}  clipped {:3.0}%  test accuracy {:.4}  epsilon {:.3}  {:.0} s",
                report.loss.unwrap_or(0.0),
                100.0 * report.clipped,
                test.accuracy.unwrap_or(0.0),
                run.account()?.map_or(0.0, |a| a.epsilon()),
                started.elapsed().as_secs_f64(),
            );
        }
    }
    let budgets = run.budgets();
    if !budgets.is_empty() {
        let (mut exact, mut published) = (Distribution::default(), Distribution::default());
        for b in &budgets {
            exact.add(b.dfil.value);
            published.add(b.published.value / 784.0);
        }
        println!("dFIL of the run, exact: {:?}", exact.summary());
        println!("dFIL of the run, published factor: {:?}", published.summary());
    }
    let what = Measure {
        trace: Trace::Estimate { probes: 10, probe: leakscope_net::leak::Probe::Rademacher },
        eta: Some(Spectral::default()),
        ..Measure::new(Clip::Hard { bound: 1.0 }, 2.0, 1)
    };
    let leaks = measure(run.network(), &train, &(0..1000).collect::<Vec<_>>(), &what)?;
    let mut eta = Distribution::default();
    leaks.iter().filter_map(|l| l.eta).for_each(|e| eta.add(e.value));
    println!("eta of one release at the end, first 1,000 records: {:?}", eta.summary());
    Ok(())
}

/// Reads a pair of idx files: images scaled to [0, 1], then standardised as is usual for MNIST.
fn load(dir: &Path, part: &str) -> Result<Data<f32>> {
    let read = |name: String| {
        std::fs::read(dir.join(&name))
            .map_err(|e| Error::Format { what: "an idx file", reason: format!("{name}: {e}") })
    };
    let images = read(format!("{part}-images-idx3-ubyte"))?;
    let labels = read(format!("{part}-labels-idx1-ubyte"))?;
    let x = images.iter().skip(16).map(|&v| (f32::from(v) / 255.0 - 0.1307) / 0.3081).collect();
    let labels: Vec<u32> = labels.iter().skip(8).map(|&v| u32::from(v)).collect();
    Data::classes(Shape::Image([28, 28, 1]), x, 10, &labels)
}
