//! Training runs on small synthetic data: they learn, keep true accounts, resume exactly and fail cleanly.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_core::special::student_t_quantile;
use leakscope_net::{
    Clip, Data, Error, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::evaluate,
    leak::{Measure, Plis, Trace, measure},
    poisson,
    random::{Generator, Purpose},
    renyi,
    train::{Filter, Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

/// Three clouds in the plane, well apart.
fn clouds(n: usize) -> Data<f32> {
    let mut rng = Generator::new(8, Purpose::Other, 0);
    let labels: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
    let x = labels.iter().flat_map(|&c| {
        let angle = f64::from(c) * 2.1;
        [angle.cos() + 0.3 * rng.normal(), angle.sin() + 0.3 * rng.normal()].map(|v| v as f32)
    });
    Data::classes(Shape::Vector([2]), x.collect(), 3, &labels).unwrap()
}

fn net(seed: u64) -> Network<f32> {
    let layers = vec![L::dense(8), L::Tanh, L::dense(3)];
    let spec = NetSpec::sequential(Shape::Vector([2]), layers, Loss::SoftmaxCrossEntropy);
    Network::new(spec, seed).unwrap()
}

fn private() -> TrainConfig {
    TrainConfig {
        weight_decay: 1e-4,
        privacy: Some(Privacy { clip: Clip::Gelu { bound: 1.0 }, sigma: 1.0 }),
        seed: 3,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.9 }, 0.2, Sampling::Poisson { rate: 0.2 })
    }
}

#[test]
fn runs_learn_in_the_open_and_in_private() {
    let data = clouds(600);
    let open = TrainConfig { privacy: None, sampling: Sampling::Shuffle { batch: 60 }, ..private() };
    let adam = TrainConfig { optimizer: Optimizer::adam(), learning_rate: 0.02, ..open.clone() };
    for config in [open, adam, private()] {
        let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
        let before = evaluate(run.network(), &data).unwrap();
        for _ in 0..60 {
            run.step().unwrap();
        }
        let after = evaluate(run.network(), &data).unwrap();
        assert!(after.loss < 0.6 * before.loss, "{config:?}: {} to {}", before.loss, after.loss);
        assert!(after.accuracy.unwrap() > 0.93, "{config:?}: {:?}", after.accuracy);
        // the noise of these runs follows from a seed
        assert!(run.account().unwrap().is_none());
    }
}

#[test]
fn epsilon_grows_with_the_steps_and_starts_at_zero() {
    let data = clouds(300);
    let system = TrainConfig { randomness: Randomness::System, ..private() };
    let mut run = Trainer::new(net(1), &data, system).unwrap();
    let epsilon = |run: &Trainer<'_, f32>| run.account().unwrap().unwrap().epsilon();
    assert_eq!(epsilon(&run), 0.0);
    let mut last = 0.0;
    for _ in 0..5 {
        run.step().unwrap();
        assert!(epsilon(&run) > last);
        last = epsilon(&run);
    }
    // dp_accounting 0.6.0 (PLD at 1e-5): five steps at q = 0.2 with noise 1/1.115219 of the longest gradient
    assert!((4.7240..4.7325).contains(&last), "{last}");
}

#[test]
fn accounts_of_every_step_are_the_sum_of_exact_informations() {
    let data = clouds(24);
    let config = TrainConfig { tracking: Tracking::Every { probes: 400 }, ..private() };
    let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
    let all: Vec<usize> = (0..24).collect();
    let (mut exact, mut published, mut rdp) = (vec![0.0; 24], vec![0.0; 24], vec![0.0; 24]);
    let factor = poisson::published_factor(0.2, 1.0, 1e-5).unwrap();
    for _ in 0..4 {
        let request = Measure {
            trace: Trace::Exact,
            plis: Plis::Record,
            ..Measure::new(Clip::Gelu { bound: 1.0 }, 1.0, 1)
        };
        for r in measure(run.network(), &data, &all, &request).unwrap() {
            let c = poisson::coefficients(0.2, r.released_norm).unwrap();
            exact[r.record] += c.trace(r.trace.unwrap().value, r.along.unwrap());
            published[r.record] += factor * r.trace.unwrap().value;
            rdp[r.record] += renyi::sampled_gaussian(0.2, r.released_norm, 4).unwrap();
        }
        run.step().unwrap();
    }
    for (i, b) in run.budgets().unwrap().iter().enumerate() {
        let (trace, dfil, plain, renyi) =
            (b.trace.unwrap(), b.dfil.unwrap(), b.published.unwrap(), b.renyi.unwrap());
        assert!(b.followed && b.measured == 4 && b.degrees == 4.0 * 399.0);
        let z = (trace.value - exact[i]) / trace.standard_error.unwrap();
        assert!(z.abs() < 4.5, "record {i}: {b:?} against {}", exact[i]);
        assert!(trace.standard_error.unwrap() < 0.1 * exact[i]);
        let z = (plain.value - published[i]) / plain.standard_error.unwrap();
        assert!(z.abs() < 4.5, "record {i}: {b:?} against {}", published[i]);
        assert!(trace.value < plain.value, "the published factor is the looser");
        assert_eq!(run.dfil().unwrap()[i], dfil.value);
        assert!((dfil.value - trace.value / 2.0).abs() < 1e-12 * trace.value);
        // order 4; the table errs on the safe side
        assert!(renyi[2] >= rdp[i] * (1.0 - 1e-6) && renyi[2] <= rdp[i] * 1.01, "{} {}", renyi[2], rdp[i]);
    }
}

#[test]
fn accounts_of_the_drawn_alone_are_unbiased() {
    let data = clouds(60);
    // a learning rate of nearly zero: the parameters, and so every step's information, stay put
    let still = TrainConfig { learning_rate: 1e-9, optimizer: Optimizer::Sgd { momentum: 0.0 }, ..private() };
    let steps = 150;
    let run = |tracking| {
        let mut run = Trainer::new(net(1), &data, TrainConfig { tracking, ..still.clone() }).unwrap();
        (0..steps).for_each(|_| assert!(run.step().is_ok()));
        run.budgets().unwrap()
    };
    let (drawn, every) = (run(Tracking::Drawn { probes: 2 }), run(Tracking::Every { probes: 2 }));
    let z: Vec<f64> = drawn
        .iter()
        .zip(&every)
        .map(|(d, e)| {
            let (d, e) = (d.trace.unwrap(), e.trace.unwrap());
            let (a, b) = (d.standard_error.unwrap(), e.standard_error.unwrap());
            (d.value - e.value) / a.hypot(b)
        })
        .collect();
    assert!(z.iter().all(|z| z.abs() < 4.5), "{z:?}");
    let mean = z.iter().sum::<f64>() / 60.0;
    // the records of a step are drawn independently: sixty scores of spread 1
    assert!(mean.abs() < 4.5 / 60f64.sqrt(), "{mean}");
}

/// A panel is measured at every step, whoever is drawn: its accounts are those of a run that follows everybody. All others
/// are measured where they are drawn.
#[test]
fn a_panel_is_followed_and_the_drawn_are_measured_besides() {
    let data = clouds(60);
    // noise and batches from the seed, so that both runs are the same
    let config = |tracking| TrainConfig { tracking, randomness: Randomness::SeededNotPrivate, ..private() };
    let run = |tracking| {
        let mut run = Trainer::new(net(1), &data, config(tracking)).unwrap();
        (0..40).for_each(|_| assert!(run.step().is_ok()));
        (run.budgets().unwrap(), run.dfil().unwrap().len())
    };
    let (panel, shown) = run(Tracking::Panel { records: 12, probes: 2 });
    let (every, all) = run(Tracking::Every { probes: 2 });
    assert_eq!((shown, all), (12, 60));
    assert_eq!(panel.iter().filter(|b| b.followed).count(), 12);
    let (mut measured, mut covered) = (0, 0);
    for (p, e) in panel.iter().zip(&every) {
        if p.followed {
            assert!(e.followed && (p.measured, p.degrees) == (e.measured, e.degrees));
            // products of another number of records round differently
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs();
            assert!(close(p.trace.unwrap().value, e.trace.unwrap().value), "{p:?} {e:?}");
            assert!(close(p.published.unwrap().value, e.published.unwrap().value), "{p:?} {e:?}");
            assert!(p.renyi.unwrap().iter().zip(e.renyi.unwrap()).all(|(a, b)| close(*a, b)), "{p:?} {e:?}");
            continue;
        }
        assert!(p.renyi.is_none() && p.measured < 40);
        let Some(trace) = p.trace else { continue };
        measured += 1;
        let half = student_t_quantile(0.975, p.degrees) * trace.standard_error.unwrap();
        covered += usize::from((trace.value - e.trace.unwrap().value).abs() <= half);
    }
    // drawn at least twice in forty steps at a rate of a fifth: all but three in a thousand
    assert!(measured >= 46, "{measured}");
    assert!(covered as f64 >= 0.85 * f64::from(measured), "{covered} of {measured}");
}

#[test]
fn a_run_resumed_from_its_checkpoint_gives_the_same_numbers() {
    let data = clouds(90);
    for optimizer in [Optimizer::adam(), Optimizer::Sgd { momentum: 0.9 }] {
        for sampling in [Sampling::Poisson { rate: 0.2 }, Sampling::Shuffle { batch: 20 }] {
            let config = TrainConfig {
                optimizer,
                sampling,
                tracking: Tracking::Panel { records: 9, probes: 2 },
                ..private()
            };
            let mut whole = Trainer::new(net(1), &data, config.clone()).unwrap();
            let whole_reports: Vec<_> = (0..8).map(|_| whole.step().unwrap()).collect();
            let mut first = Trainer::new(net(1), &data, config.clone()).unwrap();
            (0..3).for_each(|_| assert!(first.step().is_ok()));
            let bytes = first.checkpoint().unwrap();
            let mut second = Trainer::resume(&bytes, &data, config.clone()).unwrap();
            let reports: Vec<_> = (3..8).map(|_| second.step().unwrap()).collect();
            assert_eq!(whole_reports[3..], reports);
            assert_eq!(whole.network().parameters().unwrap(), second.network().parameters().unwrap());
            assert_eq!(whole.budgets().unwrap(), second.budgets().unwrap());
            assert_eq!(whole.checkpoint().unwrap(), second.checkpoint().unwrap());
        }
    }
}

#[test]
fn checkpoints_of_other_runs_are_refused() {
    let data = clouds(90);
    let run = Trainer::new(net(1), &data, private()).unwrap();
    let bytes = run.checkpoint().unwrap();
    // the setting that differs is named
    let noise = |clip, sigma| TrainConfig { privacy: Some(Privacy { clip, sigma }), ..private() };
    for (other, setting) in [
        (TrainConfig { seed: 4, ..private() }, "seed"),
        (TrainConfig { learning_rate: 0.3, ..private() }, "learning rate"),
        (TrainConfig { sampling: Sampling::Poisson { rate: 0.3 }, ..private() }, "sampling or batch size"),
        (noise(Clip::Hard { bound: 1.0 }, 1.0), "clip"),
        (noise(Clip::Gelu { bound: 1.0 }, 1.1), "noise (sigma)"),
        (TrainConfig { privacy: None, ..private() }, "clip"),
    ] {
        assert_eq!(Trainer::resume(&bytes, &data, other).unwrap_err(), Error::OtherRun { setting });
    }
    let more = clouds(93);
    assert_eq!(
        Trainer::resume(&bytes, &more, private()).unwrap_err(),
        Error::OtherRun { setting: "data set" }
    );
    let weights = run.network().to_tensors().unwrap().to_bytes().unwrap();
    assert!(matches!(Trainer::resume(&weights, &data, private()), Err(Error::Format { .. })));
    assert!(matches!(
        Trainer::resume(&bytes[..bytes.len() / 2], &data, private()),
        Err(Error::Format { .. })
    ));
}

/// Every byte of a checkpoint, changed in one bit or turned over whole, is seen: nothing damaged goes on.
#[test]
fn a_checkpoint_with_any_changed_byte_is_refused() {
    let data = clouds(6);
    let mut run = Trainer::new(net(1), &data, private()).unwrap();
    run.step().unwrap();
    let bytes = run.checkpoint().unwrap();
    assert!(Trainer::resume(&bytes, &data, private()).is_ok());
    for i in 0..bytes.len() {
        for mask in [1 << (i % 8), 0xff] {
            let mut damaged = bytes.clone();
            damaged[i] ^= mask;
            assert!(Trainer::resume(&damaged, &data, private()).is_err(), "byte {i} of {}", bytes.len());
        }
    }
    for changed in [&bytes[..bytes.len() - 1], &[&bytes[..], &[0]].concat()] {
        assert!(Trainer::resume(changed, &data, private()).is_err());
    }
}

#[test]
fn an_empty_batch_releases_its_noise_and_goes_on() {
    let data = clouds(3);
    let config = TrainConfig {
        sampling: Sampling::Poisson { rate: 0.01 },
        tracking: Tracking::Drawn { probes: 2 },
        ..private()
    };
    for config in [config.clone(), TrainConfig { privacy: None, tracking: Tracking::Off, ..config }] {
        let private = config.privacy.is_some();
        let mut run = Trainer::new(net(1), &data, config).unwrap();
        let before = run.network().parameters().unwrap();
        let report = run.step().unwrap();
        assert_eq!((report.drawn, report.loss), (0, None));
        let moved =
            run.network().parameters().unwrap().iter().zip(&before).any(|(a, b)| (a - b).abs() > 1e-3);
        assert_eq!(moved, private, "noise moves the parameters, an empty sum does not");
    }
}

#[test]
fn a_run_that_diverges_stops_and_keeps_the_last_good_parameters() {
    let data = clouds(90);
    let layers = vec![L::dense(8), L::Relu, L::dense(3)];
    let spec = NetSpec::sequential(Shape::Vector([2]), layers, Loss::SquaredError);
    let config = TrainConfig { privacy: None, learning_rate: 1e6, ..private() };
    let mut run = Trainer::new(Network::<f32>::new(spec, 1).unwrap(), &data, config.clone()).unwrap();
    let mut last = (run.network().parameters().unwrap(), run.checkpoint().unwrap());
    let error = loop {
        match run.step() {
            Ok(_) => last = (run.network().parameters().unwrap(), run.checkpoint().unwrap()),
            Err(e) => break e,
        }
        assert!(run.steps() < 100, "a learning rate of a million diverges");
    };
    assert!(matches!(error, Error::Diverged { step, .. } if step == run.steps()), "{error}");
    assert_eq!(run.network().parameters().unwrap(), last.0);
    assert_eq!(run.checkpoint().unwrap(), last.1);
    assert!(run.network().parameters().unwrap().iter().all(|v| v.is_finite()));
}

/// A loss of 1e12 is finite: a run in the open may not end well with it. What is out of proportion is kept over a checkpoint. A
/// private run goes on, for its loss has no noise, and says so to its owner.
#[test]
fn a_loss_out_of_all_proportion_is_divergence_in_the_open_alone() {
    let data = clouds(90);
    let config = TrainConfig { learning_rate: 1e12, privacy: None, ..private() };
    let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
    assert!(run.step().is_ok());
    let mut resumed = Trainer::resume(&run.checkpoint().unwrap(), &data, config).unwrap();
    for run in [&mut run, &mut resumed] {
        let error = run.step().unwrap_err();
        assert!(
            matches!(error, Error::Diverged { step: 1, symptom } if symptom.contains("million")),
            "{error}"
        );
        assert_eq!((run.steps(), run.released_steps()), (1, 1));
    }
    let config = TrainConfig { learning_rate: 1e12, ..private() };
    let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
    assert!(!run.step().unwrap().out_of_proportion);
    let mut resumed = Trainer::resume(&run.checkpoint().unwrap(), &data, config).unwrap();
    assert!(run.step().unwrap().out_of_proportion && resumed.step().unwrap().out_of_proportion);
    // weights that fit start at hardly a loss: a thousand times that is none
    let layers = vec![L::Dense { outputs: 1, bias: false, frozen: false }];
    let spec = NetSpec::sequential(Shape::Vector([2]), layers, Loss::SquaredError);
    let x: Vec<f64> = (0..20).map(|i| f64::from(i % 7) - 3.0).collect();
    let y = x.chunks(2).map(|x| x[0] - x[1] + 1e-6).collect();
    let data = Data::new(Shape::Vector([2]), x, 1, y).unwrap();
    let fitted = Network::with_parameters(spec, &[1.0, -1.0]).unwrap();
    let config = TrainConfig { sampling: Sampling::Poisson { rate: 1.0 }, ..private() };
    let mut run = Trainer::new(fitted, &data, config).unwrap();
    let losses: Vec<f64> = (0..10)
        .map(|_| run.step().unwrap())
        .map(|r| (assert!(!r.out_of_proportion), r.loss.unwrap()).1)
        .collect();
    assert!(losses[0] < 1e-11 && losses[9] > 1e6 * losses[0], "{losses:?}");
}

#[test]
fn statements_name_their_neighbours() {
    let data = clouds(90);
    let system = TrainConfig { randomness: Randomness::System, ..private() };
    let poisson = Sampling::Poisson { rate: 0.2 };
    for (sampling, divisor, name) in [
        (poisson, Some(18.0), "add-remove"),
        (poisson, None, "zero-out"),
        (Sampling::Shuffle { batch: 20 }, None, "zero-out"),
    ] {
        let config = TrainConfig { sampling, divisor, ..system.clone() };
        let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
        assert_eq!(run.account().unwrap().unwrap().neighbours.name(), name);
        run.step().unwrap();
        assert_eq!(run.account().unwrap().unwrap().neighbours.name(), name);
        assert!(config.statement("record").replace('/', "-").contains(&format!("({name} adjacency)")));
    }
}

#[test]
fn noise_from_a_seed_states_no_epsilon_and_noise_from_the_system_never_repeats() {
    let data = clouds(90);
    let weights = |config: TrainConfig| {
        let mut run = Trainer::new(net(1), &data, config).unwrap();
        run.step().unwrap();
        (run.network().parameters().unwrap(), run.account().unwrap(), run.advantage().unwrap())
    };
    let (seeded, account, advantage) = weights(private());
    assert_eq!(seeded, weights(private()).0);
    assert_eq!((account, advantage), (None, None));
    let system = || TrainConfig { randomness: Randomness::System, ..private() };
    let (first, account, advantage) = weights(system());
    assert!(account.is_some() && advantage.is_some());
    // the same seed, and other noise: on a grid of a thousandth of it, two draws are equal once in a while
    let equal = first.iter().zip(&weights(system()).0).filter(|(a, b)| a == b).count();
    assert!(equal <= 3, "{equal} of {}", first.len());
}

/// The attacker of the threat model: all records but one, the seed, the configuration and the weights before and after a step.
/// With noise from the seed the difference of the data sets appears exactly; with noise from the system it does not.
#[test]
fn whoever_knows_the_seed_cannot_take_the_noise_off() {
    let (all, fewer) = (clouds(90), clouds(89));
    let step = |data: &Data<f32>, randomness| {
        let sampling = Sampling::Poisson { rate: 1.0 };
        // a common divisor, so that only the record differs
        let config = TrainConfig {
            sampling,
            randomness,
            divisor: Some(90.0),
            optimizer: Optimizer::Sgd { momentum: 0.0 },
            ..private()
        };
        let mut run = Trainer::new(net(1), data, config).unwrap();
        run.step().unwrap();
        run.network().parameters().unwrap().iter().map(|p| f64::from(*p)).collect::<Vec<f64>>()
    };
    let distance = |randomness| {
        let (a, b) = (step(&all, randomness), step(&fewer, randomness));
        a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    };
    let scale = private().learning_rate / 90.0;
    let Some(Privacy { clip, sigma }) = private().privacy else { panic!("it is private") };
    let longest = clip.longest().unwrap();
    // the clipped gradient of one record, and nothing else
    assert!(distance(Randomness::SeededNotPrivate) <= scale * longest * 1.001);
    // √(2p) σC, to a third
    let noise = (2.0 * net(1).parameter_count() as f64).sqrt() * sigma * clip.unit() * scale;
    let seen = distance(Randomness::System);
    assert!(seen > 0.66 * noise && seen < 1.5 * noise, "{seen} {noise}");
}

#[test]
fn a_filtered_run_drops_records_and_goes_on_from_its_checkpoint() {
    let data = clouds(60);
    let filter = Some(Filter { epsilon: 3.0, budgets: vec![] });
    let config = TrainConfig { filter, sampling: Sampling::Poisson { rate: 0.5 }, ..private() };
    let mut run = Trainer::new(net(1), &data, config.clone()).unwrap();
    for _ in 0..40 {
        run.step().unwrap();
    }
    let resumed = Trainer::resume(&run.checkpoint().unwrap(), &data, config.clone()).unwrap();
    assert_eq!(resumed.dropped(), run.dropped());
    for _ in 0..400 {
        run.step().unwrap();
    }
    let dropped = run.dropped();
    assert_eq!(dropped.len(), 60);
    assert!(dropped.iter().any(Option::is_some), "{dropped:?}");
    // what a dropped record says changes nothing: the run over the others alone is the same from there on
    let system = TrainConfig { randomness: Randomness::System, ..config };
    let mut stated = Trainer::new(net(1), &data, system).unwrap();
    for _ in 0..5 {
        stated.step().unwrap();
    }
    assert!(stated.account().unwrap().unwrap().epsilon() <= 3.0);
}

#[test]
fn frozen_layers_stay_and_receive_no_noise() {
    let data = clouds(90);
    let mut layers = vec![L::dense(8), L::Tanh, L::dense(3)];
    layers[0].set_frozen(true);
    let spec = NetSpec::sequential(Shape::Vector([2]), layers, Loss::SoftmaxCrossEntropy);
    let pretrained = net(1);
    let frozen = Network::with_parameters(spec, &pretrained.parameters().unwrap()).unwrap();
    let mut run = Trainer::new(frozen, &data, private()).unwrap();
    (0..5).for_each(|_| assert!(run.step().is_ok()));
    let (before, after) = (pretrained.parameters().unwrap(), run.network().parameters().unwrap());
    assert_eq!(before[..24], after[..24]);
    assert!(before[24..].iter().zip(&after[24..]).all(|(a, b)| a != b));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let data = clouds(30);
    let refused = |config: TrainConfig| Trainer::new(net(1), &data, config).unwrap_err();
    let with = |clip, sigma| TrainConfig { privacy: Some(Privacy { clip, sigma }), ..private() };
    for config in [
        with(Clip::Hard { bound: 0.0 }, 1.0),
        with(Clip::Gelu { bound: -2.0 }, 1.0),
        with(Clip::None, 1.0),
        with(Clip::Hard { bound: 1.0 }, 0.0),
        with(Clip::Hard { bound: 1.0 }, f64::NAN),
        TrainConfig { learning_rate: f64::NAN, ..private() },
        TrainConfig { weight_decay: -1.0, ..private() },
        TrainConfig { optimizer: Optimizer::Sgd { momentum: 1.0 }, ..private() },
        TrainConfig { sampling: Sampling::Poisson { rate: 0.0 }, ..private() },
        TrainConfig { sampling: Sampling::Shuffle { batch: 31 }, ..private() },
        TrainConfig { tracking: Tracking::Drawn { probes: 1 }, ..private() },
        TrainConfig { tracking: Tracking::Drawn { probes: 2 }, delta: 0.0, ..private() },
    ] {
        assert!(matches!(refused(config), Error::OutOfRange { .. }));
    }
    let untracked = TrainConfig { tracking: Tracking::Drawn { probes: 2 }, privacy: None, ..private() };
    assert!(matches!(refused(untracked), Error::Format { .. }));
}
