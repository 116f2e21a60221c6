//! What a private run shows beside its noisy parameters: played as attacks on one record.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, Error, LayerSpec as L, Loss, NetSpec, Network, Shape,
    train::{Filter, Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

fn config(sigma: f64) -> TrainConfig {
    TrainConfig {
        privacy: Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma }),
        seed: 3,
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 1.0, Sampling::Poisson { rate: 1.0 })
    }
}

fn linear<T: leakscope_net::Real>(inputs: usize, outputs: usize, theta: f64) -> Network<T> {
    let spec = NetSpec::sequential(Shape::Vector([inputs]), vec![L::dense(outputs)], Loss::SquaredError);
    let theta = vec![T::from_f64(theta); outputs * (inputs + 1)];
    Network::with_parameters(spec, &theta).unwrap()
}

/// All values are 0 but the label of one record, so that the first loss is exactly 0 or not: whether a loss grows a million times
/// is decided on it. A run that stops on exact losses tells the label in every repetition.
#[test]
fn when_a_run_stops_does_not_tell_a_label() {
    for label in [0.0, 1.0] {
        for _ in 0..10 {
            let mut y = vec![0.0; 100];
            y[0] = label;
            let data = Data::<f64>::new(Shape::Vector([1]), vec![0.0; 100], 1, y).unwrap();
            let mut run = Trainer::new(linear(1, 1, 0.0), &data, config(4e6)).unwrap();
            for _ in 0..8 {
                run.step().unwrap();
            }
            assert_eq!((run.steps(), run.released_steps()), (8, 8));
        }
    }
}

/// With weights that start at 0, the low digits of plain floating-point noise tell whether a small number was added to it. On the
/// grid there are none, with the record and without it.
#[test]
fn low_digits_of_weights_do_not_tell_a_record() {
    // the power of two just below 4/2¹⁰, over the 256 that a sum is divided by
    let unit = 2f64.powi(-8) / 256.0;
    let (n, d) = (256, 500);
    for value in [0.0_f32, 1.0] {
        let mut x = vec![0.0; n * d];
        x[..d].fill(value);
        let y = (0..2 * n).map(|i| (i % 2) as f32).collect();
        let data = Data::new(Shape::Vector([d]), x, 2, y).unwrap();
        let config = TrainConfig { divisor: Some(256.0), ..config(4.0) };
        let mut run = Trainer::new(linear::<f32>(d, 2, 0.0), &data, config).unwrap();
        run.step().unwrap();
        let theta = run.network().parameters().unwrap();
        let off = theta.iter().filter(|v| (f64::from(**v) / unit).fract() != 0.0).count();
        assert_eq!(off, 0, "of {} weights", theta.len());
        let distinct: std::collections::BTreeSet<u32> = theta.iter().map(|v| v.to_bits()).collect();
        assert!(distinct.len() > 500, "the grid is fine");
    }
}

/// A record whose gradient is not finite takes part with zero: the run ends as without it, pays nothing for it, keeps no account
/// of it, and nothing but the owner's report tells.
#[test]
fn a_record_without_a_finite_gradient_takes_part_with_zero() {
    let d = 8;
    let wild = |with: bool| {
        let mut x: Vec<f32> = (0..40 * d).map(|i| (i % 7) as f32 / 7.0 - 0.4).collect();
        let mut y: Vec<f32> = (0..40).map(|i| (i % 3) as f32).collect();
        if with {
            // its outputs are above what f32 holds
            x.extend(vec![2e38_f32; d]);
            y.push(1.0);
        }
        Data::new(Shape::Vector([d]), x, 1, y).unwrap()
    };
    let plain = TrainConfig {
        randomness: Randomness::SeededNotPrivate,
        divisor: Some(40.0),
        learning_rate: 1e-3,
        ..config(0.5)
    };
    let filtered = TrainConfig {
        filter: Some(Filter { epsilon: 50.0, budgets: vec![] }),
        tracking: Tracking::Every { probes: 2 },
        ..plain.clone()
    };
    for config in [plain, filtered] {
        let ends = [false, true].map(|with| {
            let data = wild(with);
            let mut run = Trainer::new(linear::<f32>(d, 1, 1.0), &data, config.clone()).unwrap();
            let reports: Vec<_> = (0..3).map(|_| run.step().unwrap()).collect();
            assert!(reports.iter().all(|r| r.not_finite == usize::from(with) && r.loss.unwrap().is_finite()));
            if let (true, Some(last)) = (with, run.budgets().unwrap().last()) {
                assert_eq!((last.measured, last.trace.unwrap().value), (0, 0.0));
                assert!(run.dropped().last().unwrap().is_none());
            }
            run.network().parameters().unwrap()
        });
        // the same noise: what differs is the order of sums, which may move a sum to the next cell of the grid
        let grid = 2f64.powi(-11) / 40.0 * 1e-3;
        let same = |(a, b): (&f32, &f32)| f64::from((a - b).abs()) <= 1.01 * grid + 1e-6;
        assert!(ends[0].iter().zip(&ends[1]).all(same), "{ends:?}");
    }
    // in the open it is an error, as before
    let data = wild(true);
    let open = TrainConfig { privacy: None, ..config(1.0) };
    let error = Trainer::new(linear::<f32>(d, 1, 1.0), &data, open).unwrap().step().unwrap_err();
    assert!(matches!(error, Error::Diverged { step: 0, .. }), "{error}");
}

/// A run that stops on its noisy parameters counts the step that it takes back, also over a checkpoint.
#[test]
fn a_step_that_is_taken_back_is_counted() {
    let data = Data::new(Shape::Vector([1]), vec![0.5_f32; 20], 1, vec![1.0; 20]).unwrap();
    let config = TrainConfig { learning_rate: 1e38, ..config(40.0) };
    let mut run = Trainer::new(linear::<f32>(1, 1, 0.0), &data, config.clone()).unwrap();
    assert_eq!(run.account().unwrap().unwrap().epsilon(), 0.0);
    let error = loop {
        if let Err(error) = run.step() {
            break error;
        }
        assert!(run.steps() < 200, "a learning rate of 1e38 diverges");
    };
    assert!(matches!(error, Error::Diverged { step, .. } if step == run.steps()), "{error}");
    assert_eq!(run.released_steps(), run.steps() + 1);
    let resumed = Trainer::resume(&run.checkpoint().unwrap(), &data, config).unwrap();
    for run in [&run, &resumed] {
        let (epsilon, advantage) =
            (run.account().unwrap().unwrap().epsilon(), run.advantage().unwrap().unwrap());
        assert!(epsilon > 0.02 && advantage > 0.005, "{epsilon} {advantage}");
        assert_eq!(run.released_steps(), run.steps() + 1);
    }
}

/// Noise that has no grid, and clips whose sums are not finite, would make a run stop on what records are.
#[test]
fn noise_without_a_grid_is_refused() {
    let data = Data::new(Shape::Vector([1]), vec![0.5_f32; 20], 1, vec![1.0; 20]).unwrap();
    for (sigma, bound) in [(1e-200, 1e-200), (1e30, 1.0), (1e-30, 1e30)] {
        let privacy = Some(Privacy { clip: Clip::Hard { bound }, sigma });
        let run = Trainer::new(linear::<f32>(1, 1, 0.0), &data, TrainConfig { privacy, ..config(1.0) });
        assert!(matches!(run.unwrap_err(), Error::OutOfRange { .. }), "{sigma} {bound}");
    }
}
