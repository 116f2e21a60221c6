//! A record's own account, attacked: whoever sees every step and knows all other records cannot tell better whether the record
//! took part than its own (ε, δ) allows.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::clipped_gradient,
    random::{Generator, Purpose},
    renyi,
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

const RECORDS: usize = 7;
const WIDTH: usize = 3;
const STEPS: u64 = 4;
const DELTA: f64 = 1e-2;
const SIGMA: f64 = 4.0;
const START: [f64; WIDTH] = [0.3, -0.2, 0.1];
const CLIP: Clip = Clip::Hard { bound: 1.0 };

/// All records; of those, one is large and on the wrong side, one small.
fn records() -> Data<f64> {
    let mut rng = Generator::new(5, Purpose::Other, 0);
    let mut x: Vec<f64> = (0..RECORDS * WIDTH).map(|_| rng.normal()).collect();
    x[..WIDTH].iter_mut().for_each(|v| *v *= 6.0);
    x[WIDTH..2 * WIDTH].iter_mut().for_each(|v| *v *= 1e-2);
    let mut y: Vec<f64> = (0..RECORDS).map(|i| f64::from(u8::from(i % 2 == 0))).collect();
    let z: f64 = x[..WIDTH].iter().zip(START).map(|(x, w)| x * w).sum();
    y[0] = f64::from(u8::from(z < 0.0));
    Data::new(Shape::Vector([WIDTH]), x, 1, y).unwrap()
}

fn network() -> Network<f64> {
    let spec = NetSpec::sequential(
        Shape::Vector([WIDTH]),
        vec![L::Dense { outputs: 1, bias: false, frozen: false }],
        Loss::BinaryCrossEntropy,
    );
    Network::with_parameters(spec, &START).unwrap()
}

fn config(seed: u64) -> TrainConfig {
    TrainConfig {
        privacy: Some(Privacy { clip: CLIP, sigma: SIGMA }),
        tracking: Tracking::Every { probes: 2 },
        delta: DELTA,
        seed,
        randomness: Randomness::SeededNotPrivate,
        divisor: Some(RECORDS as f64),
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.3, Sampling::Poisson { rate: 1.0 })
    }
}

/// One run with or without a record: the log likelihood ratio of its steps, and where it took part its own budgets.
fn score(
    all: &Data<f64>,
    target: usize,
    inside: bool,
    seed: u64,
) -> (f64, Option<[f64; renyi::ORDERS.len()]>) {
    let others: Vec<usize> = (0..RECORDS).filter(|i| *i != target).collect();
    let ids: Vec<usize> = if inside { (0..RECORDS).collect() } else { others.clone() };
    let data = all.subset(&ids).unwrap();
    let mut run = Trainer::new(network(), &data, config(seed)).unwrap();
    let mut ratio = 0.0;
    for _ in 0..STEPS {
        let before = run.network().parameters().unwrap();
        let net = Network::with_parameters(run.network().spec().clone(), &before).unwrap();
        let rest = clipped_gradient(&net, all, &others, CLIP).unwrap().sum;
        let own = clipped_gradient(&net, all, &[target], CLIP).unwrap().sum;
        run.step().unwrap();
        let after = run.network().parameters().unwrap();
        for j in 0..WIDTH {
            let seen = (before[j] - after[j]) * RECORDS as f64 / 0.3 - rest[j];
            ratio += own[j] * (seen - 0.5 * own[j]) / (SIGMA * SIGMA);
        }
    }
    let budgets = inside.then(|| run.budgets().unwrap()[target].renyi.unwrap());
    (ratio, budgets)
}

/// The most powerful test of every step together stays below what the own ε of each run allows, for a record that is clipped and
/// for one that hardly moves anything; for the first it comes to a good part of it, so that the test is no empty one.
#[test]
fn the_best_attack_stays_within_the_own_account() {
    let (all, runs) = (records(), 600);
    for (target, least) in [(0, 1.5), (1, 0.0)] {
        let inside: Vec<_> = (0..runs).map(|s| score(&all, target, true, s)).collect();
        let outside: Vec<f64> = (0..runs).map(|s| score(&all, target, false, 10_000 + s).0).collect();
        // the largest of the runs: ε of one that the record's own norms led to
        let epsilon =
            inside.iter().map(|(_, b)| renyi::epsilon(&b.unwrap(), DELTA).unwrap().0).fold(0.0, f64::max);
        let mut sorted = outside.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        for rate in [0.02, 0.1, 0.3] {
            let threshold = sorted[(rate * runs as f64) as usize];
            let hits = inside.iter().filter(|(r, _)| *r > threshold).count() as f64 / runs as f64;
            let allowed = (epsilon.exp() * rate + DELTA).min(1.0 - (-epsilon).exp() * (1.0 - DELTA - rate));
            // three standard errors of both rates
            let slack = 3.0 * (0.25 / runs as f64).sqrt() + 3.0 * epsilon.exp() * (rate / runs as f64).sqrt();
            assert!(
                hits <= allowed + slack.min(0.1),
                "record {target} at {rate}: {hits} of {allowed}, ε {epsilon}"
            );
            assert!(hits >= least * rate, "record {target} at {rate}: {hits}");
        }
        match target {
            0 => assert!((0.5..3.0).contains(&epsilon), "{epsilon}"),
            _ => assert!(epsilon < 0.1, "{epsilon}"),
        }
    }
}
