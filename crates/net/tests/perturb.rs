//! Gradients that are perturbed before the clip: what is measured is what is released, and what is added follows from the
//! public records as it is defined.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

mod perturbed;

use perturbed::{D, K, data, gradient, network};

use leakscope_net::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::clipped_gradient,
    leak::{Label, Measure, Plis, Spectral, Trace, measure},
    perturb::{PerturbationKind, Perturbing},
    random::{Generator, Purpose},
    train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer},
};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `clip(g + c)`, by its definition.
fn released(g: &[f64], c: &[f64], clip: Clip) -> Vec<f64> {
    let h: Vec<f64> = g.iter().zip(c).map(|(g, c)| g + c).collect();
    let s = clip.factor(dot(&h, &h).sqrt()).0;
    h.iter().map(|v| s * v).collect()
}

/// The Jacobian of what is released, by columns, by central differences: over the record, then over the label.
fn jacobian(net: &Network<f64>, data: &Data<f64>, i: usize, c: &[f64], clip: Clip) -> Vec<Vec<f64>> {
    let h = 1e-5;
    let at = |j: usize, e: f64| {
        let (mut x, mut y) = (data.record(i).to_vec(), data.label(i).to_vec());
        if j < D {
            x[j] += e
        } else {
            y[j - D] += e
        }
        let one = Data::new(data.input(), x, K, y).unwrap();
        released(&gradient(net, &one, 0), c, clip)
    };
    let column = |j: usize| at(j, h).into_iter().zip(at(j, -h)).map(|(a, b)| (a - b) / (2.0 * h)).collect();
    (0..D + K).map(column).collect()
}

fn perturbation(net: &Network<f64>, size: f64) -> Vec<f64> {
    let mut rng = Generator::new(9, Purpose::Other, 1);
    net.trained().iter().map(|t| if *t { size * rng.normal() } else { 0.0 }).collect()
}

#[test]
fn measures_are_those_of_the_perturbed_gradient() {
    let (net, data, sigma) = (network(), data(3, 6), 0.7);
    for (clip, size) in [
        (Clip::Gelu { bound: 0.9 }, 0.1),
        (Clip::Gelu { bound: 20.0 }, 0.4),
        (Clip::Hard { bound: 0.5 }, 0.3),
        (Clip::None, 0.2),
    ] {
        let c = perturbation(&net, size);
        let noise = sigma * clip.unit();
        let request = Measure {
            trace: Trace::Elements,
            label: Label::Secret,
            eta: Some(Spectral { tolerance: 1e-10, iterations: 60 }),
            plis: Plis::Elements,
            shift: Some(c.clone()),
            ..Measure::new(clip, sigma, 1)
        };
        for (i, actual) in measure(&net, &data, &[0, 1, 2], &request).unwrap().iter().enumerate() {
            let r = released(&gradient(&net, &data, i), &c, clip);
            let length = dot(&r, &r).sqrt();
            assert!((actual.released_norm / length - 1.0).abs() < 1e-12, "{clip:?} {i}");
            let j = jacobian(&net, &data, i, &c, clip);
            let whole: f64 = j.iter().map(|c| dot(c, c)).sum();
            let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * (b.abs() + whole / (noise * noise));
            for (k, column) in j.iter().enumerate() {
                assert!(
                    close(actual.information[k], dot(column, column) / (noise * noise)),
                    "{clip:?} {i} {k}"
                );
            }
            assert!(close(actual.trace.unwrap().value, whole / (noise * noise)));
            let along: f64 = j.iter().map(|c| (dot(c, &r) / length).powi(2)).sum();
            assert!(close(actual.along.unwrap(), along / (noise * noise)), "along {clip:?} {i}");
            for (k, column) in j.iter().take(D).enumerate() {
                let plis = 2.0 * dot(column, &r) / (noise * noise);
                assert!(close(actual.plis_parts[k], plis), "PLIS {clip:?} {i} {k}");
            }
            let (mut v, mut value) = (vec![1.0; D + K], 0.0);
            for _ in 0..4000 {
                let mut u = vec![0.0; r.len()];
                j.iter().zip(&v).for_each(|(c, s)| u.iter_mut().zip(c).for_each(|(u, c)| *u += s * c));
                v = j.iter().map(|c| dot(c, &u)).collect();
                value = dot(&v, &v).sqrt();
                v.iter_mut().for_each(|x| *x /= value);
            }
            assert!(
                (actual.eta.unwrap().value / (value.sqrt() / noise) - 1.0).abs() < 1e-4,
                "η {clip:?} {i}"
            );
        }
    }
}

fn config(rate: f64, sigma: f64, probes: usize) -> TrainConfig {
    TrainConfig {
        privacy: Some(Privacy { clip: Clip::Gelu { bound: 1.0 }, sigma }),
        tracking: Tracking::Every { probes },
        seed: 4,
        randomness: Randomness::SeededNotPrivate,
        divisor: Some(1.0),
        ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 1.0, Sampling::Poisson { rate })
    }
}

/// One step with all records and hardly any noise shows what was released; all of it is computed again from definitions.
#[test]
fn a_step_releases_and_accounts_for_the_perturbed_gradients() {
    let (net, private, public) = (network(), data(4, 6), data(9, 77));
    let (clip, lambda) = (Clip::Gelu { bound: 1.0 }, 50.0);
    let mut run = Trainer::new(network(), &private, config(1.0, 1e-9, 2000)).unwrap();
    run.perturb(Perturbing { lambda, probes: 4000, ..Perturbing::default() }, &public).unwrap();
    run.step().unwrap();
    let perturbation = run.perturbed().unwrap();

    let mut mean = vec![0.0; net.parameter_count()];
    for i in 0..public.len() {
        let g = gradient(&net, &public, i);
        mean.iter_mut().zip(&g).for_each(|(m, g)| *m += g / public.len() as f64);
    }
    let c: Vec<f64> = mean.iter().map(|m| perturbation.scale * m).collect();
    assert!(
        (perturbation.norm / dot(&c, &c).sqrt() - 1.0).abs() < 1e-10
            && (perturbation.cosine.abs() - 1.0).abs() < 1e-12
    );
    let mut expected = net.parameters().unwrap();
    for i in 0..private.len() {
        let r = released(&gradient(&net, &private, i), &c, clip);
        expected.iter_mut().zip(&r).for_each(|(e, r)| *e -= r);
    }
    for (a, b) in run.network().parameters().unwrap().iter().zip(&expected) {
        assert!((a - b).abs() < 1e-7, "{a} {b}");
    }

    // the number is where the objective, computed densely, is least, but for the error of the probes
    let relative = |a: f64| {
        let c: Vec<f64> = mean.iter().map(|m| a * m).collect();
        let of = |i: usize| {
            let r = released(&gradient(&net, &public, i), &c, clip);
            let j = jacobian(&net, &public, i, &c, clip);
            j.iter().take(D).map(|c| dot(c, c)).sum::<f64>() / dot(&r, &r)
        };
        (0..public.len()).map(of).sum::<f64>() / public.len() as f64
    };
    let objective = |a: f64| a * a * dot(&mean, &mean) + lambda * relative(a);
    assert!(
        (perturbation.with / relative(perturbation.scale) - 1.0).abs() < 0.05,
        "{perturbation:?} {}",
        relative(perturbation.scale)
    );
    assert!((perturbation.without / relative(0.0) - 1.0).abs() < 0.05, "{perturbation:?} {}", relative(0.0));
    assert!(perturbation.with < perturbation.without);
    let here = objective(perturbation.scale);
    for factor in [-1.0, 0.0, 0.5, 0.8, 1.25, 2.0] {
        assert!(here < 1.001 * objective(factor * perturbation.scale), "{factor}: {perturbation:?}");
    }

    for (i, budget) in run.budgets().unwrap().iter().enumerate() {
        let j = jacobian(&net, &private, i, &c, clip);
        let dfil = j.iter().take(D).map(|c| dot(c, c)).sum::<f64>() / (1e-18 * D as f64);
        let actual = budget.dfil.unwrap();
        let error = actual.standard_error.unwrap();
        assert!((actual.value - dfil).abs() < 5.0 * error, "{} {dfil} {error}", actual.value);
        assert!(error < 0.05 * dfil);
    }
}

#[test]
fn a_perturbed_run_goes_on_with_the_same_perturbation_alone() {
    for variant in [
        PerturbationKind::Average,
        PerturbationKind::Constant,
        PerturbationKind::Network,
        PerturbationKind::Thesis,
    ] {
        goes_on(Perturbing { variant, epochs: 2, ..Perturbing::default() });
    }
}

fn goes_on(how: Perturbing) {
    let (private, public) = (data(20, 6), data(9, 77));
    let config = config(0.4, 1.0, 2);
    let mut run = Trainer::new(network(), &private, config.clone()).unwrap();
    run.perturb(how, &public).unwrap();
    for _ in 0..2 {
        run.step().unwrap();
    }
    let stored = run.checkpoint().unwrap();
    let again = || Trainer::resume(&stored, &private, config.clone()).unwrap();
    assert_eq!(again().perturbed(), run.perturbed());
    assert!(again().step().is_err(), "the perturbation was left out");
    assert!(again().perturb(Perturbing { lambda: 1.0, ..how }, &public).is_err());
    let other = data(9, 78);
    assert!(again().perturb(how, &other).is_err());
    let mut resumed = again();
    resumed.perturb(how, &public).unwrap();
    for _ in 0..2 {
        run.step().unwrap();
        resumed.step().unwrap();
    }
    assert_eq!(run.network().parameters().unwrap(), resumed.network().parameters().unwrap());
    assert_eq!(run.budgets().unwrap(), resumed.budgets().unwrap());
    // a run that was not perturbed is not from some step on
    let mut plain = Trainer::new(network(), &private, config).unwrap();
    plain.step().unwrap();
    assert!(plain.perturb(how, &public).is_err());
}

/// A gradient that c takes away altogether: nothing is released, and nothing of it is not finite.
#[test]
fn degenerate_perturbations_are_measured_or_refused() {
    let (net, data) = (network(), data(2, 6));
    let opposite: Vec<f64> = gradient(&net, &data, 0).iter().map(|g| -g).collect();
    let request = |shift| Measure { shift: Some(shift), ..Measure::new(Clip::Hard { bound: 1.0 }, 1.0, 1) };
    let actual = &measure(&net, &data, &[0], &request(opposite)).unwrap()[0];
    assert!(actual.released_norm < 1e-6 && actual.trace.unwrap().value.is_finite());
    let frozen = net.trained().iter().position(|t| !t).unwrap();
    let mut stray = perturbation(&net, 0.1);
    stray[frozen] = 0.1;
    assert!(measure(&net, &data, &[0], &request(stray)).unwrap_err().to_string().contains("frozen"));
    assert!(measure(&net, &data, &[0], &request(vec![0.0; 3])).is_err());
    let open = TrainConfig { privacy: None, tracking: Tracking::Off, ..config(0.5, 1.0, 2) };
    assert!(Trainer::new(network(), &data, open).unwrap().perturb(Perturbing::default(), &data).is_err());
    let mut run = Trainer::new(network(), &data, config(0.5, 1.0, 2)).unwrap();
    for lambda in [0.0, -1.0, f64::NAN] {
        assert!(run.perturb(Perturbing { lambda, ..Perturbing::default() }, &data).is_err());
    }
    for wrong in [
        Perturbing { probes: 1, ..Perturbing::default() },
        Perturbing { epochs: 0, ..Perturbing::default() },
        Perturbing { batch: 0, ..Perturbing::default() },
        Perturbing { learning_rate: 0.0, ..Perturbing::default() },
        Perturbing { weight_decay: -1.0, ..Perturbing::default() },
        Perturbing { lambda_fall: f64::NAN, ..Perturbing::default() },
    ] {
        assert!(run.perturb(wrong, &data).is_err(), "{wrong:?}");
    }
}
