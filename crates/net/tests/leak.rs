//! Measures of a small network against one another and against finite differences of the released gradient.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, Error, LayerSpec as L, Loss, NetSpec, Network, Shape,
    engine::clipped_gradient,
    leak::{Label, Measure, Plis, Probe, Signal, Spectral, Trace, grid, measure, tangent_squares},
    preset::Preset,
    random::{Generator, Purpose},
};

fn setup(n: usize) -> (Network<f64>, Data<f64>) {
    let layers = vec![
        L::conv(3, 3, 1, 0),
        L::Tanh,
        L::average_pool(2, 2),
        L::Flatten,
        L::dense(5),
        L::Gelu,
        L::dense(3),
    ];
    let spec = NetSpec::sequential(Shape::Image([6, 6, 1]), layers, Loss::SoftmaxCrossEntropy);
    let net = Network::new(spec, 3).unwrap();
    let mut rng = Generator::new(4, Purpose::Other, 0);
    let x = (0..n * 36).map(|_| rng.normal()).collect();
    let labels: Vec<u32> = (0..n as u32).map(|i| i % 3).collect();
    (net, Data::classes(Shape::Image([6, 6, 1]), x, 3, &labels).unwrap())
}

/// The released gradient of one record, from the public interface.
fn released(net: &Network<f64>, x: &[f64], y: &[f64], clip: Clip) -> Vec<f64> {
    let data = Data::new(net.input(), x.to_vec(), 3, y.to_vec()).unwrap();
    clipped_gradient(net, &data, &[0], clip).unwrap().sum
}

#[test]
fn squares_of_tangents_are_those_of_differences_under_every_clip() {
    let (net, data) = setup(4);
    let norms = clipped_gradient(&net, &data, &[0, 1, 2, 3], Clip::None).unwrap().norms;
    let middle = 0.5 * (norms[0] + norms[1]);
    let mut rng = Generator::new(6, Purpose::Other, 0);
    let u: Vec<f64> = (0..4 * 36).map(|_| rng.normal()).collect();
    for clip in [Clip::None, Clip::Hard { bound: middle }, Clip::Gelu { bound: middle }] {
        let request = Measure::new(clip, 0.8, 1);
        let actual = tangent_squares(&net, &data, &[0, 1, 2, 3], &u, &request).unwrap();
        for i in 0..4 {
            let h = 1e-5;
            let at = |s: f64| {
                let x: Vec<f64> = data.record(i).iter().zip(&u[i * 36..]).map(|(x, u)| x + s * u).collect();
                released(&net, &x, &data.label(i), clip)
            };
            let (up, down) = (at(h), at(-h));
            let fd: f64 = up.iter().zip(&down).map(|(a, b)| ((a - b) / (2.0 * h)).powi(2)).sum();
            let fd = fd / (request.noise() * request.noise());
            assert!((actual[i] / fd - 1.0).abs() < 1e-6, "{clip:?}: {} against {fd}", actual[i]);
        }
    }
}

/// A record alone and among others has the same numbers, but for the rounding of products of other sizes; η too, which
/// is found step by step.
#[test]
fn a_record_has_its_numbers_in_any_company() {
    let (net, data) = setup(40);
    let eta = Some(Spectral { tolerance: 1e-3, iterations: 60 });
    let request = Measure { eta, ..Measure::new(Clip::Gelu { bound: 1.0 }, 1.0, 1) };
    let all: Vec<usize> = (0..40).collect();
    let together = measure(&net, &data, &all, &request).unwrap();
    for (i, among) in together.iter().enumerate() {
        let alone = &measure(&net, &data, &[i], &request).unwrap()[0];
        for (a, b) in [
            (alone.trace.unwrap().value, among.trace.unwrap().value),
            (alone.eta.unwrap().value, among.eta.unwrap().value),
            (alone.plis.unwrap(), among.plis.unwrap()),
            (alone.along.unwrap(), among.along.unwrap()),
        ] {
            assert!((a / b - 1.0).abs() < 1e-11, "record {i}: {a} against {b}");
        }
    }
}

/// Raw PLIS under any clip is that of the same noise without one.
#[test]
fn raw_plis_does_not_see_the_clip() {
    let (net, data) = setup(3);
    let of = |clip: Clip, signal| {
        let request = Measure { signal, plis: Plis::Elements, ..Measure::new(clip, 0.8 / clip.unit(), 1) };
        measure(&net, &data, &[0, 1, 2], &request).unwrap()
    };
    let plain = of(Clip::None, Signal::Released);
    for clip in [Clip::Hard { bound: 0.5 }, Clip::Gelu { bound: 0.5 }] {
        for (raw, plain) in of(clip, Signal::Raw).iter().zip(&plain) {
            assert!((raw.plis.unwrap() / plain.plis.unwrap() - 1.0).abs() < 1e-12);
            raw.plis_parts.iter().zip(&plain.plis_parts).for_each(|(a, b)| assert!((a - b).abs() < 1e-12));
        }
        let released = of(clip, Signal::Released);
        assert!(released.iter().zip(&plain).all(|(r, p)| r.plis < p.plis));
    }
    assert_eq!(Measure::new(Clip::None, 1.0, 1).signal, Signal::Released);
}

#[test]
fn plis_is_the_gradient_of_the_released_signal() {
    let (net, data) = setup(3);
    let clip = Clip::Gelu { bound: 1.0 };
    let groups = grid(net.input(), 3).unwrap();
    let request = Measure { trace: Trace::Skip, plis: Plis::Elements, ..Measure::new(clip, 0.8, 1) };
    let actual = measure(&net, &data, &[0, 1, 2], &request).unwrap();
    let pixels =
        measure(&net, &data, &[0, 1, 2], &Measure { plis: Plis::Superpixels(groups.clone()), ..request })
            .unwrap();
    for i in 0..3 {
        let scale = actual[i].plis.unwrap();
        for j in 0..36 {
            let h = 1e-5;
            let at = |s: f64| {
                let mut x = data.record(i).to_vec();
                x[j] += s;
                released(&net, &x, &data.label(i), clip).iter().map(|v| v * v).sum::<f64>() / (0.8 * 0.8)
            };
            let fd = (at(h) - at(-h)) / (2.0 * h);
            assert!((actual[i].plis_parts[j] - fd).abs() < 1e-6 * scale.max(1e-3));
        }
        assert_eq!(pixels[i].plis_parts.len(), 4);
        for g in 0..4 {
            let part = actual[i].plis_parts.iter().zip(&groups).filter(|(_, k)| **k == g);
            let norm = part.map(|(v, _)| v * v).sum::<f64>().sqrt();
            assert!((pixels[i].plis_parts[g as usize] - norm).abs() < 1e-12 * scale.max(1.0));
        }
    }
}

#[test]
fn estimates_agree_with_the_exact_trace_within_their_standard_errors() {
    let (net, data) = setup(30);
    let records: Vec<usize> = (0..30).collect();
    let clip = Clip::Gelu { bound: 2.0 };
    let base = Measure { label: Label::Secret, ..Measure::new(clip, 0.8, 9) };
    let exact = measure(&net, &data, &records, &Measure { trace: Trace::Exact, ..base.clone() }).unwrap();
    for probe in [Probe::Rademacher, Probe::Gaussian] {
        let request = Measure { trace: Trace::Estimate { probes: 200, probe }, ..base.clone() };
        let actual = measure(&net, &data, &records, &request).unwrap();
        let z: Vec<f64> = actual
            .iter()
            .zip(&exact)
            .map(|(f, e)| {
                (f.trace.unwrap().value - e.trace.unwrap().value) / f.trace.unwrap().standard_error.unwrap()
            })
            .collect();
        // thirty independent z-scores: none beyond 4.5, their mean square near 1 (spread √(2/30))
        assert!(z.iter().all(|z| z.abs() < 4.5), "{z:?}");
        let mean_square = z.iter().map(|z| z * z).sum::<f64>() / 30.0;
        assert!((0.2..2.6).contains(&mean_square), "{mean_square}");
    }
    // what lies between: along ≤ η² ≤ trace
    let request =
        Measure { trace: Trace::Exact, eta: Some(Spectral { tolerance: 1e-8, iterations: 60 }), ..base };
    for r in measure(&net, &data, &records, &request).unwrap() {
        let eta2 = r.eta.unwrap().value.powi(2);
        assert!(r.along.unwrap() <= eta2 * (1.0 + 1e-7) && eta2 <= r.trace.unwrap().value * (1.0 + 1e-12));
        assert!(r.eta.unwrap().residual <= 1e-8);
    }
}

#[test]
fn a_record_is_measured_alike_in_any_company_and_with_any_number_of_threads() {
    let (net, data) = setup(200);
    let request =
        Measure { eta: Some(Spectral::default()), ..Measure::new(Clip::Hard { bound: 1.0 }, 0.8, 2) };
    let all: Vec<usize> = (0..200).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let gradient = clipped_gradient(&net, &data, &all, Clip::Hard { bound: 1.0 }).unwrap();
            (measure(&net, &data, &all, &request).unwrap(), gradient.sum)
        })
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    let alone = measure(&net, &data, &[150], &request).unwrap();
    let (a, b) = (alone[0].trace.unwrap().value, one.0[150].trace.unwrap().value);
    assert!((a / b - 1.0).abs() < 1e-10, "{a} {b}");
}

#[test]
fn bad_input_is_refused_with_its_name() {
    let (net, data) = setup(2);
    let good = Measure::new(Clip::Hard { bound: 1.0 }, 0.5, 1);
    let refused = |request: &Measure| measure(&net, &data, &[0], request).unwrap_err();
    for clip in [Clip::Hard { bound: 0.0 }, Clip::Gelu { bound: -1.0 }, Clip::Gelu { bound: f64::NAN }] {
        assert!(matches!(
            refused(&Measure { clip, ..good.clone() }),
            Error::OutOfRange { subject: "the clipping bound C", .. }
        ));
    }
    assert!(matches!(
        refused(&Measure { sigma: 0.0, ..good.clone() }),
        Error::OutOfRange { subject: "sigma", .. }
    ));
    let one = Trace::Estimate { probes: 1, probe: Probe::Gaussian };
    assert!(matches!(refused(&Measure { trace: one, ..good.clone() }), Error::OutOfRange { .. }));
    assert!(matches!(
        refused(&Measure { plis: Plis::Superpixels(vec![0; 3]), ..good.clone() }),
        Error::Length { .. }
    ));
    assert!(matches!(
        measure(&net, &data, &[2], &good).unwrap_err(),
        Error::OutOfRange { subject: "a record number", .. }
    ));
    assert_eq!(measure(&net, &data, &[], &good).unwrap(), vec![]);

    // images of the wrong size, labels that do not fit, NaN
    let small = Data::classes(Shape::Image([5, 5, 1]), vec![0.0; 25], 3, &[0]).unwrap();
    assert!(matches!(measure(&net, &small, &[0], &good).unwrap_err(), Error::DoesNotChain { .. }));
    let turned = Data::classes(Shape::Image([6, 1, 6]), vec![0.0; 36], 3, &[0]).unwrap();
    assert!(matches!(measure(&net, &turned, &[0], &good).unwrap_err(), Error::DoesNotChain { .. }));
    let labels = Data::new(Shape::Image([6, 6, 1]), vec![0.0; 36], 2, vec![0.0; 2]).unwrap();
    assert!(matches!(
        measure(&net, &labels, &[0], &good).unwrap_err(),
        Error::Length { subject: "a label", .. }
    ));
    assert!(Data::classes(Shape::Vector([1]), vec![f64::NAN], 3, &[0]).is_err());
    assert!(Data::classes(Shape::Vector([1]), vec![0.0], 3, &[3]).is_err());
    assert!(Data::<f64>::new(Shape::Vector([1]), vec![], 1, vec![]).is_err());

    // numbers that overflow inside the network never come out as NaN
    let huge = Data::classes(Shape::Image([6, 6, 1]), vec![1e308; 36], 3, &[0]).unwrap();
    assert!(matches!(measure(&net, &huge, &[0], &good), Err(Error::NotFinite { .. }) | Ok(_)));
}

#[test]
fn networks_that_do_not_chain_are_refused_with_the_layer() {
    let build = |input: Shape, layers: Vec<L>| {
        Network::<f32>::new(NetSpec::sequential(input, layers, Loss::SquaredError), 1).unwrap_err()
    };
    let image = Shape::Image([6, 6, 1]);
    assert!(matches!(
        build(image, vec![L::Tanh, L::dense(3)]),
        Error::DoesNotChain { layer: 1, kind: "dense", .. }
    ));
    assert!(matches!(
        build(image, vec![L::conv(3, 9, 1, 0)]),
        Error::DoesNotChain { layer: 0, kind: "conv", .. }
    ));
    assert!(matches!(build(image, vec![L::conv(3, 2, 0, 0)]), Error::DoesNotChain { .. }));
    assert!(matches!(
        build(image, vec![L::Flatten, L::conv(3, 2, 1, 0)]),
        Error::DoesNotChain { layer: 1, .. }
    ));
    let grows = L::Residual { layers: vec![L::dense(5)] };
    assert!(matches!(build(Shape::Vector([4]), vec![grows]), Error::DoesNotChain { kind: "residual", .. }));
    assert!(matches!(build(Shape::Vector([4]), vec![L::Tanh]), Error::Format { .. }));
    assert!(matches!(build(Shape::Vector([0]), vec![L::dense(2)]), Error::OutOfRange { .. }));
    // sizes that overflow
    let much = usize::MAX / 2;
    assert!(matches!(build(Shape::Vector([much]), vec![L::dense(2)]), Error::OutOfRange { .. }));
    assert!(matches!(
        build(Shape::Image([much, 4, 4]), vec![L::Flatten, L::dense(2)]),
        Error::OutOfRange { .. }
    ));
    assert!(matches!(build(Shape::Vector([4]), vec![L::dense(much)]), Error::DoesNotChain { .. }));
    assert!(matches!(build(image, vec![L::conv(much, 2, 1, 0)]), Error::DoesNotChain { .. }));
    assert!(matches!(build(image, vec![L::conv(2, much, 1, much - 1)]), Error::DoesNotChain { .. }));
    let mut frozen = L::dense(2);
    frozen.set_frozen(true);
    assert!(matches!(build(Shape::Vector([4]), vec![frozen]), Error::Format { .. }));
}

#[test]
fn the_network_file_comes_back_and_other_versions_are_refused() {
    let (net, _) = setup(1);
    let text = net.spec().to_json();
    assert_eq!(&NetSpec::from_json(&text).unwrap(), net.spec());
    let other = text.replacen("\"version\": 1", "\"version\": 2", 1);
    assert!(matches!(NetSpec::from_json(&other), Err(Error::Version { actual: 2, expected: 1, .. })));
    assert!(matches!(NetSpec::from_json("{"), Err(Error::Format { .. })));
    let unknown = text.replacen("tanh", "swish", 1);
    assert!(matches!(NetSpec::from_json(&unknown), Err(Error::Format { .. })));
    let short = r#"{"version":1,"input":[6,6,1],"loss":"softmax-cross-entropy","layers":[
        {"kind":"conv","outputs":3,"kernel":[3,3]},{"kind":"tanh"},{"kind":"flatten"},{"kind":"dense","outputs":3}]}"#;
    assert_eq!(
        Network::<f32>::new(NetSpec::from_json(short).unwrap(), 1).unwrap().parameter_count(),
        30 + 147
    );
}

#[test]
fn the_networks_of_the_papers_have_their_parameters() {
    let count = |preset: Preset, input, outputs| {
        Network::<f32>::new(preset.spec(input, outputs), 1).unwrap().parameter_count()
    };
    let (mnist, cifar) = (Shape::Image([28, 28, 1]), Shape::Image([32, 32, 3]));
    assert_eq!(count(Preset::Linear, mnist, 10), 7_850);
    assert_eq!(count(Preset::CnnMnist, mnist, 10), 26_010);
    assert_eq!(count(Preset::Mlp, mnist, 10), 784 * 512 + 512 + 512 * 256 + 256 + 2570);
    assert_eq!(count(Preset::CnnCifar, cifar, 10), 550_570);
    assert!(Preset::ALL.iter().all(|p| Preset::of_name(p.name()) == Some(*p) && count(*p, cifar, 10) > 0));
    assert_eq!(Preset::of_name("resnet"), None);
}
