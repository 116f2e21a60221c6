//! Gradient inversion: iterations a second of 100 records of MNIST's shape against the same attack in PyTorch, and thousands of
//! linear models trained at once.

use leakscope_net::{
    Clip, Data, Loss, Network, Shape,
    attack::informed::{Linear, Rest, Training, train_many},
    attack::inversion::{Inversion, invert},
    attack::sight::{Mechanism, gradients},
    preset::Preset,
    quality::Range,
    random::{Generator, Purpose},
};
use std::process::Command;
use std::time::Instant;

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RECORDS: usize = 100;
const ITERATIONS: usize = 100;

/// Ours, then PyTorch run by `python` where one is named.
pub(crate) fn run(python: Option<&str>) -> Any<()> {
    let input = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?;
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let x = (0..RECORDS * 784).map(|_| rng.uniform() as f32).collect();
    let data = Data::classes(input, x, 10, &(0..RECORDS as u32).map(|i| i % 10).collect::<Vec<_>>())?;
    let ids: Vec<usize> = (0..RECORDS).collect();
    let singles: Vec<&[usize]> = ids.chunks(1).collect();
    let sights = gradients(&net, &data, &singles, Mechanism { clip: Clip::None, sigma: 0.0 }, 1)?;
    let published = Inversion::published(Range { low: 0.0, high: 1.0 }, 1);
    let how = Inversion { iterations: ITERATIONS, ..published };
    let clock = Instant::now();
    invert(&net, &sights, &how, &|_| true)?;
    let ours = (RECORDS * ITERATIONS) as f64 / clock.elapsed().as_secs_f64();
    println!(
        "{} parameters, {RECORDS} records, {} threads",
        net.parameter_count(),
        rayon::current_num_threads()
    );
    println!("inversion, iterations of a record a second: {ours:.0}");
    println!("100 records, 1,000 iterations each: {:.1} s", 100_000.0 / ours);
    many()?;
    let Some(python) = python else {
        println!("no Python with torch was named: nothing to compare with");
        return Ok(());
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/inversion_torch.py");
    let done = Command::new(python).arg(script).arg(rayon::current_num_threads().to_string()).output()?;
    if !done.status.success() {
        return Err(format!("the peer failed: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    for line in String::from_utf8(done.stdout)?.lines() {
        let Some((name, rate)) = line.split_once('\t') else { continue };
        let theirs: f64 = rate.parse()?;
        println!(
            "PyTorch, {name}: {theirs:.0} iterations of a record a second; ours is {:.1} times that",
            ours / theirs
        );
    }
    Ok(())
}

/// The thesis's shadow models: 1,000 known records of 784 values, five full-batch steps of Adam, 10,000 models.
fn many() -> Any<()> {
    let (d, n, m) = (784, 1000, 10_000);
    let mut rng = Generator::new(2, Purpose::Other, 0);
    let mut records = |n: usize| Rest {
        x: (0..n * d).map(|_| rng.uniform()).collect(),
        y: (0..n).map(|i| (i % 2) as f64).collect(),
    };
    let (rest, targets) = (records(n), records(m));
    let model = Linear {
        inputs: d,
        outputs: 1,
        loss: Loss::BinaryCrossEntropy,
        training: Training {
            clip: Clip::Gelu { bound: 10.0 },
            sigma: 0.05,
            ..Training::new(vec![0.01; d + 1])
        },
        shifts: vec![],
    };
    let clock = Instant::now();
    train_many(&model, &rest, &targets, 1, &|_| true)?;
    println!("{m} linear models on {n} records, 5 steps: {:.1} s", clock.elapsed().as_secs_f64());
    Ok(())
}
