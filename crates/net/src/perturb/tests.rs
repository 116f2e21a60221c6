//! Oracles: finite differences of objectives and of what is released, each from its definition.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

#[path = "../../tests/perturbed/mod.rs"]
mod perturbed;

use perturbed::{D, K, data, gradient, network};

use super::{
    Carried, Lesson, Map, PerturbationKind, Perturbing, constant, dot, map, map_gradient, map_measure,
};
use crate::{
    Clip, Data, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::{Workers, clipped_gradient},
    leak::{Label, Measure, Plis, Probe, Trace},
    random::{Generator, Purpose},
};

fn lesson<'a>(
    workers: &'a Workers<f64>,
    net: &'a Network<f64>,
    public: &'a Data<f64>,
    clip: Clip,
    how: Perturbing,
) -> Lesson<'a, f64> {
    Lesson { workers, net, public, clip, how, step: 0, seed: 5, before: &Carried::Nothing }
}

const CLIPS: [Clip; 3] = [Clip::Gelu { bound: 0.9 }, Clip::Hard { bound: 0.3 }, Clip::None];

#[test]
fn the_slope_of_a_constant_is_that_of_its_objective() {
    let (net, public) = (network(), data(7, 6));
    let workers = Workers::of(&net);
    let mut rng = Generator::new(9, Purpose::Other, 1);
    let trained = net.trained();
    let c: Vec<f64> = trained.iter().map(|t| if *t { 0.2 * rng.normal() } else { 0.0 }).collect();
    let all: Vec<usize> = (0..public.len()).collect();
    for clip in CLIPS {
        let how = Perturbing { probes: 50, ..Perturbing::default() };
        let lesson = lesson(&workers, &net, &public, clip, how);
        let traces = lesson.traces().unwrap();
        let value = |c: &[f64]| constant::value(&lesson, &all, &traces, c).unwrap();
        let here = value(&c);
        let size = dot(&here.slope, &here.slope).sqrt();
        assert!(size > 1e-3);
        for (j, trained) in trained.iter().enumerate() {
            let at = |e: f64| {
                let mut c = c.clone();
                c[j] += e;
                value(&c).relative
            };
            match trained {
                true => {
                    let fd = (at(1e-5) - at(-1e-5)) / 2e-5;
                    assert!((here.slope[j] - fd).abs() < 1e-6 * size, "{clip:?} {j}: {} {fd}", here.slope[j]);
                }
                false => assert_eq!(here.slope[j], 0.0),
            }
        }
        // the value itself, from the definition
        let relative = |i: usize| {
            let g = gradient(&net, &public, i);
            let h: Vec<f64> = g.iter().zip(&c).map(|(g, c)| g + c).collect();
            let n = dot(&h, &h).sqrt();
            let (s, s1) = clip.factor(n);
            let w: f64 = jacobian(&net, &public, i, |_| vec![0.0; g.len()], Clip::None)[..D]
                .iter()
                .map(|column| dot(column, &h).powi(2))
                .sum();
            (s * s * traces[i] + (2.0 * s * s1 / n + s1 * s1) * w) / (s * n).powi(2)
        };
        let expected = all.iter().map(|&i| relative(i)).sum::<f64>() / all.len() as f64;
        assert!((here.relative / expected - 1.0).abs() < 1e-6, "{clip:?}: {} {expected}", here.relative);
    }
}

/// `clip(g + f(x))`, by its definition.
fn released(net: &Network<f64>, data: &Data<f64>, i: usize, f: &[f64], clip: Clip) -> Vec<f64> {
    let h: Vec<f64> = gradient(net, data, i).iter().zip(f).map(|(g, c)| g + c).collect();
    let s = clip.factor(dot(&h, &h).sqrt()).0;
    h.iter().map(|v| s * v).collect()
}

/// The Jacobian of what is released, by columns, by central differences: over the record, then over the label.
fn jacobian(
    net: &Network<f64>,
    data: &Data<f64>,
    i: usize,
    f: impl Fn(&Data<f64>) -> Vec<f64>,
    clip: Clip,
) -> Vec<Vec<f64>> {
    let h = 1e-5;
    let at = |j: usize, e: f64| {
        let (mut x, mut y) = (data.record(i).to_vec(), data.label(i).to_vec());
        if j < D {
            x[j] += e
        } else {
            y[j - D] += e
        }
        let one = Data::new(data.input(), x, K, y).unwrap();
        released(net, &one, 0, &f(&one), clip)
    };
    let column = |j: usize| at(j, h).into_iter().zip(at(j, -h)).map(|(a, b)| (a - b) / (2.0 * h)).collect();
    (0..D + K).map(column).collect()
}

/// A network of the record that says something.
fn mapped(net: &Network<f64>, public: &Data<f64>, size: f64) -> Map<f64> {
    let mut map = Map::new(net, public).unwrap();
    let mut rng = Generator::new(12, Purpose::Other, 1);
    let phi: Vec<f64> = map.net.parameters().unwrap().iter().map(|v| v + size * rng.normal()).collect();
    map.set(&phi).unwrap();
    map
}

fn shift_of(map: &Map<f64>, one: &Data<f64>) -> Vec<f64> {
    let workers = Workers::of(&map.net);
    let f = workers.with(|dev| map.values(dev, one, &[0])).unwrap();
    let mut all = vec![0.0; map.parameters];
    map.places.iter().zip(f).for_each(|(&i, f)| all[i] = f);
    all
}

#[test]
fn measures_count_that_the_perturbation_moves_with_the_record() {
    let (net, public, data) = (network(), data(9, 77), data(3, 6));
    let (map, workers, sigma) = (mapped(&net, &public, 0.03), Workers::of(&net), 0.7);
    for clip in CLIPS {
        let noise = sigma * clip.unit();
        let request = Measure {
            trace: Trace::Elements,
            label: Label::Secret,
            plis: Plis::Record,
            ..Measure::new(clip, sigma, 1)
        };
        let actual = map_measure((&workers, &net), &data, &[0, 1, 2], (&request, &map), None).unwrap();
        let mut sum = vec![0.0; net.parameter_count()];
        for (i, actual) in actual.iter().enumerate() {
            let one = data.subset(&[i]).unwrap();
            let r = released(&net, &one, 0, &shift_of(&map, &one), clip);
            sum.iter_mut().zip(&r).for_each(|(s, r)| *s += r);
            let length = dot(&r, &r).sqrt();
            assert!((actual.released_norm / length - 1.0).abs() < 1e-12, "{clip:?} {i}");
            let j = jacobian(&net, &data, i, |one| shift_of(&map, one), clip);
            let still = jacobian(&net, &data, i, |_| shift_of(&map, &one), clip);
            let whole: f64 = j.iter().map(|c| dot(c, c)).sum();
            let without: f64 = still.iter().map(|c| dot(c, c)).sum();
            assert!((whole / without - 1.0).abs() > 0.01, "that it moves must matter: {whole} {without}");
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
            let plis = j.iter().map(|c| (2.0 * dot(c, &r)).powi(2)).sum::<f64>().sqrt() / (noise * noise);
            assert!(close(actual.plis.unwrap(), plis), "PLIS {clip:?} {i}");
        }
        let batch = map_gradient((&workers, &net), &data, &[0, 1, 2], (clip, &map), None).unwrap();
        for (a, b) in batch.sum.iter().zip(&sum) {
            assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{clip:?}: {a} {b}");
        }
        if let Some(longest) = clip.longest() {
            // the sensitivity: however long f is, a record adds no more than the clip allows
            let long = mapped(&net, &public, 3.0);
            let one = map_gradient((&workers, &net), &data, &[1], (clip, &long), None).unwrap();
            assert!(one.norms[0] > 20.0 && dot(&one.sum, &one.sum).sqrt() <= longest * (1.0 + 1e-12));
        }
        let probes =
            Measure { trace: Trace::Estimate { probes: 3000, probe: Probe::Rademacher }, ..request.clone() };
        let estimate = &map_measure((&workers, &net), &data, &[1], (&probes, &map), None).unwrap()[0];
        let (e, exact) = (estimate.trace.unwrap(), actual[1].trace.unwrap().value);
        assert!((e.value - exact).abs() < 5.0 * e.standard_error.unwrap(), "{e:?} {exact}");
    }
}

#[test]
fn the_gradient_in_phi_is_that_of_the_objective() {
    let (net, public) = (network(), data(5, 6));
    let workers = Workers::of(&net);
    let all: Vec<usize> = (0..public.len()).collect();
    for clip in CLIPS {
        let how = Perturbing { probes: 3, lambda: 2.0, ..Perturbing::default() };
        let lesson = lesson(&workers, &net, &public, clip, how);
        let mut map = mapped(&net, &public, 0.03);
        let (phi, learned) = (map.net.parameters().unwrap(), map.net.trained());
        let here = map::objective(&lesson, &map, &all, (1, true)).unwrap();
        let size = dot(&here.gradient, &here.gradient).sqrt();
        assert!(size > 1e-2);
        let mut rng = Generator::new(3, Purpose::Other, 1);
        for _ in 0..12 {
            let v: Vec<f64> = learned.iter().map(|l| if *l { rng.normal() } else { 0.0 }).collect();
            let mut at = |e: f64| {
                map.set(&phi.iter().zip(&v).map(|(p, v)| p + e * v).collect::<Vec<f64>>()).unwrap();
                map::objective(&lesson, &map, &all, (1, false)).unwrap().objective
            };
            let fd = (at(1e-6) - at(-1e-6)) / 2e-6;
            let exact = dot(&here.gradient, &v);
            assert!((exact - fd).abs() < 1e-5 * size, "{clip:?}: {exact} {fd}");
        }
        map.set(&phi).unwrap();
    }
}

/// What each variant learns is better than nothing, and the constants differ from the average as they should.
#[test]
fn every_variant_lowers_what_public_records_give_away() {
    let (net, public) = (network(), data(12, 6));
    let workers = Workers::of(&net);
    let learned = |variant, epochs| {
        let how = Perturbing {
            variant,
            lambda: 50.0,
            probes: 200,
            epochs,
            learning_rate: 0.02,
            weight_decay: 1e-3,
            ..Perturbing::default()
        };
        let lesson = lesson(&workers, &net, &public, Clip::Gelu { bound: 1.0 }, how);
        lesson.learn().unwrap().report
    };
    let objective = |r: &super::Perturbed| r.norm * r.norm + 50.0 * r.with;
    let average = learned(PerturbationKind::Average, 1);
    let constant = learned(PerturbationKind::Constant, 300);
    let thesis = learned(PerturbationKind::Thesis, 60);
    for (name, r) in [("average", &average), ("constant", &constant), ("thesis", &thesis)] {
        assert!(r.with < 0.9 * r.without && r.spread == 0.0, "{name}: {r:?}");
        assert!((r.without / average.without - 1.0).abs() < 1e-9, "{name}: {r:?}");
    }
    // a number times ḡ is one of the constants
    assert!(objective(&constant) <= 1.001 * objective(&average), "{constant:?} {average:?}");
    assert!((average.cosine.abs() - 1.0).abs() < 1e-12 && constant.cosine.abs() < 1.0);
    let network = learned(PerturbationKind::Network, 12);
    assert!(network.with < 0.9 * network.without && network.spread > 0.0, "{network:?}");
    // what standardises stays as it is, decay or not
    let how = Perturbing { variant: PerturbationKind::Network, epochs: 3, ..Perturbing::default() };
    let lesson = lesson(&workers, &net, &public, Clip::Gelu { bound: 1.0 }, how);
    let state = lesson.learn().unwrap().state.values(&workers).unwrap();
    assert_eq!(state[..2], [1.0, 0.0], "γ and β of one channel");
}

/// Two lessons, the second from where the first ended, are one lesson of as many epochs: the moments of Adam go on too.
#[test]
fn the_thesis_goes_on_where_it_stopped() {
    let (net, public) = (network(), data(12, 6));
    let workers = Workers::of(&net);
    let learned = |epochs, fresh, before| {
        let how = Perturbing {
            variant: PerturbationKind::Thesis,
            lambda: 50.0,
            epochs,
            learning_rate: 0.02,
            weight_decay: 1e-3,
            fresh,
            ..Perturbing::default()
        };
        let lesson = lesson(&workers, &net, &public, Clip::Gelu { bound: 1.0 }, how);
        Lesson { before, ..lesson }.learn().unwrap()
    };
    let apart = |a: &[f64], b: &[f64]| {
        let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
        (square / dot(a, a)).sqrt()
    };
    let nothing = Carried::Nothing;
    let (whole, half) = (learned(6, false, &nothing), learned(3, false, &nothing));
    let values = half.state.values(&workers).unwrap();
    let mut forgotten = values.clone();
    let p = (forgotten.len() - 1) / 3;
    forgotten[p..].fill(0.0);
    let (stored, forgotten) = (Carried::of(values), Carried::of(forgotten));
    let c = |l: &super::Learned<f64>| l.added.constant().unwrap().clone();
    let rest = learned(3, false, &half.state);
    assert!(apart(&c(&whole), &c(&rest)) < 1e-9, "{}", apart(&c(&whole), &c(&rest)));
    // what a checkpoint holds is the same
    let rest = learned(3, false, &stored);
    assert!(apart(&c(&whole), &c(&rest)) < 1e-9, "{}", apart(&c(&whole), &c(&rest)));
    let rest = learned(3, false, &forgotten);
    assert!(apart(&c(&whole), &c(&rest)) > 1e-3, "without moments it goes elsewhere");
    assert!(apart(&c(&half), &c(&learned(3, true, &half.state))) < 1e-9, "fresh starts anew");
}

/// Updates that wait for nothing are those whose numbers pass through the host, batch by batch of two sizes.
#[test]
fn updates_that_wait_for_nothing_are_the_others() {
    let (net, public) = (network(), data(12, 6));
    let workers = Workers::of(&net);
    let kinds = [PerturbationKind::Thesis, PerturbationKind::Constant];
    for (clip, variant) in CLIPS.into_iter().flat_map(|clip| kinds.map(|v| (clip, v))) {
        let how = Perturbing {
            variant,
            lambda: 50.0,
            epochs: 4,
            batch: 5,
            learning_rate: 0.02,
            ..Perturbing::default()
        };
        let lesson = lesson(&workers, &net, &public, clip, how);
        let through_the_host = lesson.learn().unwrap().added.into_constant().unwrap();
        let there = constant::learn_there(&lesson).unwrap();
        let size = dot(&through_the_host, &through_the_host).sqrt();
        assert!(size > 1e-3, "{clip:?}");
        for (a, b) in there.iter().zip(&through_the_host) {
            assert!((a - b).abs() < 1e-9 * size, "{clip:?}: {a} {b}");
        }
    }
}

/// A GPU learns what the processor does, whatever the clip; its second lesson goes on from what stayed there.
#[test]
fn a_gpu_learns_what_the_processor_does() {
    let Ok(backend) = crate::Backend::cuda(0) else {
        assert!(std::env::var_os("LEAKSCOPE_REQUIRE_GPU").is_none(), "a GPU is required");
        eprintln!("SKIPPED on a GPU: there is none");
        return;
    };
    let public = data(12, 6);
    let kinds = [PerturbationKind::Thesis, PerturbationKind::Constant];
    for (clip, variant) in CLIPS.into_iter().flat_map(|clip| kinds.map(|v| (clip, v))) {
        let how = Perturbing {
            variant,
            lambda: 50.0,
            epochs: 6,
            batch: 5,
            learning_rate: 0.02,
            ..Perturbing::default()
        };
        let both = |net: Network<f64>| {
            let workers = Workers::of(&net);
            let first = lesson(&workers, &net, &public, clip, how).learn().unwrap();
            let state = first.state.values(&workers).unwrap();
            let second =
                Lesson { before: &first.state, step: 1, ..lesson(&workers, &net, &public, clip, how) };
            let second = second.learn().unwrap();
            ([first.report, second.report], [state, second.added.into_constant().unwrap()])
        };
        let (near, values) = both(network());
        let (far, there) = both(network().on(backend).unwrap());
        for (a, b) in far.iter().zip(&near) {
            for (a, b) in [(a.norm, b.norm), (a.cosine, b.cosine), (a.with, b.with), (a.without, b.without)] {
                assert!((a - b).abs() < 1e-6 * b.abs(), "{clip:?}: {far:?} {near:?}");
            }
        }
        for (there, values) in there.iter().zip(&values) {
            let size = dot(values, values).sqrt();
            assert!(there.len() == values.len() && size > 1e-3);
            for (a, b) in there.iter().zip(values) {
                assert!((a - b).abs() < 1e-6 * size, "{clip:?}: {a} {b}");
            }
        }
    }
}

#[test]
fn epochs_and_lambda_fall_as_published() {
    let how = Perturbing::default();
    let epochs: Vec<u64> = (0..6).map(|t| how.epochs_at(t)).collect();
    assert_eq!(epochs, [200, 150, 100, 50, 20, 20]);
    assert_eq!(Perturbing { fresh: true, ..how }.epochs_at(4), 200);
    assert_eq!(Perturbing { epochs: 1, ..how }.epochs_at(9), 1);
    let fall = Perturbing { lambda_fall: 100.0, ..how };
    assert_eq!([0, 1, 9, 10, 50].map(|t| fall.lambda_at(t)), [1000.0, 900.0, 100.0, 10.0, 10.0]);
    assert_eq!(how.lambda_at(50), 1000.0);
}

#[test]
fn networks_of_sequences_are_refused() {
    let layers = vec![L::dense(2)];
    let spec = NetSpec::sequential(Shape::Sequence([3, 2]), layers, Loss::SquaredError);
    let net = Network::<f64>::new(spec, 1).unwrap();
    let public = Data::new(Shape::Sequence([3, 2]), vec![0.5; 12], 2, vec![0.0; 12]).unwrap();
    let workers = Workers::of(&net);
    let how = Perturbing { variant: PerturbationKind::Network, ..Perturbing::default() };
    let e = lesson(&workers, &net, &public, Clip::Hard { bound: 1.0 }, how).learn().unwrap_err();
    assert!(e.to_string().contains("not sequences"), "{e}");
}
