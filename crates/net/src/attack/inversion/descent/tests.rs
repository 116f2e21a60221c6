use super::*;
use crate::{
    Backend, Clip, Data, LayerSpec as L, NetSpec, Shape,
    attack::{
        inversion::{Objective, first_layer, invert},
        sight::{Mechanism, gradients, half_way},
    },
    leak,
    preset::{Preset, mlp},
    quality::{Range, mse},
};

const UNIT: Range = Range { low: 0.0, high: 1.0 };

fn all(_: u64) -> bool {
    true
}

fn uniform(n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    (0..n).map(|_| rng.uniform()).collect()
}

fn convolutions() -> Network<f64> {
    let layers = vec![
        L::conv(3, 3, 1, 1),
        L::Tanh,
        L::average_pool(2, 1),
        L::conv(8, 4, 2, 1),
        L::batch_norm(),
        L::Sigmoid,
        L::Flatten,
        L::dense(6),
        L::layer_norm(),
        L::Gelu,
        L::dense(4),
    ];
    let spec = NetSpec::sequential(Shape::Image([6, 5, 2]), layers, Loss::SoftmaxCrossEntropy);
    Network::new(spec, 3).unwrap()
}

/// Against central differences of the cost, for both objectives, every clip, one record and several.
#[test]
fn the_slope_is_the_derivative_of_the_cost() {
    let net = convolutions();
    let d = net.input().len();
    let data = Data::classes(net.input(), uniform(5 * d, 1), 4, &[0, 1, 2, 3, 1]).unwrap();
    let batches: [&[&[usize]]; 2] = [&[&[0], &[1], &[2]], &[&[2, 3, 4]]];
    let mut seen_clips = 0;
    for clip in [Clip::None, Clip::Hard { bound: 0.5 }, Clip::Gelu { bound: 1.5 }] {
        for objective in [Objective::Cosine, Objective::Likelihood { noise: 0.7 }] {
            for batches in batches {
                let sights = gradients(&net, &data, batches, Mechanism { clip, sigma: 0.1 }, 1).unwrap();
                let task = |(number, sight)| Task {
                    sight,
                    number,
                    labels: Sight::clone(sight).labels.unwrap(),
                    start: 0,
                };
                let tasks: Vec<Task<'_, f64>> = sights.iter().enumerate().map(task).collect();
                let tasks: Vec<&Task<'_, f64>> = tasks.iter().collect();
                let how =
                    Inversion { objective, clip, total_variation: 0.1, ..Inversion::published(UNIT, 1) };
                let mut dev = Backend::Cpu.device();
                let sights = Sights::new(&net, &mut dev, &tasks);
                let x = uniform(3 * d, 9);
                let at = evaluate(&net, &mut dev, &tasks, &sights, &x, &how).unwrap();
                let mut rng = Generator::new(4, Purpose::Other, 0);
                for _ in 0..3 {
                    let w: Vec<f64> = (0..3 * d).map(|_| rng.normal()).collect();
                    let mut cost = |e: f64| {
                        let moved: Vec<f64> = x.iter().zip(&w).map(|(x, w)| x + e * w).collect();
                        evaluate(&net, &mut dev, &tasks, &sights, &moved, &how)
                            .unwrap()
                            .cost
                            .iter()
                            .sum::<f64>()
                    };
                    let h = 1e-5;
                    let difference = (cost(h) - cost(-h)) / (2.0 * h);
                    let guess: f64 = at.slope.iter().zip(&w).map(|(s, w)| s * w).sum();
                    let size: f64 = at.slope.iter().map(|s| s * s).sum::<f64>().sqrt();
                    assert!(
                        (guess - difference).abs() < 1e-5 * size.max(1e-3),
                        "{clip:?} {objective:?}: {guess} against {difference}"
                    );
                }
                seen_clips += 1;
            }
        }
    }
    assert_eq!(seen_clips, 12);
}

/// The gradient of a first dense layer is the record, in one step, clipped or not; noise is all that stands before it.
#[test]
fn a_first_dense_layer_gives_the_record_away_exactly() {
    let shape = Shape::Image([5, 4, 1]);
    let spec = mlp(shape, &[7, 5], &L::Relu, 3, Loss::SoftmaxCrossEntropy);
    let net = Network::<f64>::new(spec, 2).unwrap();
    let x = uniform(4 * 20, 5);
    let data = Data::classes(shape, x.clone(), 3, &[0, 1, 2, 0]).unwrap();
    for clip in [Clip::None, Clip::Hard { bound: 0.01 }, Clip::Gelu { bound: 0.3 }] {
        let sights =
            gradients(&net, &data, &[&[0], &[1], &[2], &[3]], Mechanism { clip, sigma: 0.0 }, 1).unwrap();
        for (i, sight) in sights.iter().enumerate() {
            let guess = first_layer(&net, sight).unwrap().unwrap();
            assert!(mse(&x[i * 20..][..20], &guess).unwrap() < 1e-24, "{clip:?}");
        }
    }
    let noisy = |sigma: f64| {
        let how = Mechanism { clip: Clip::Hard { bound: 1.0 }, sigma };
        let sight = &gradients(&net, &data, &[&[0]], how, 1).unwrap()[0];
        mse(&x[..20], &first_layer(&net, sight).unwrap().unwrap()).unwrap()
    };
    assert!(noisy(1e-4) < 1e-3 && noisy(0.3) > 0.01);
    // of several records, of convolutions, of a layer without a bias: not so
    let two = &gradients(&net, &data, &[&[0, 1]], Mechanism { clip: Clip::None, sigma: 0.0 }, 1).unwrap()[0];
    assert_eq!(first_layer(&net, two).unwrap(), None);
    let net = convolutions();
    let sight = Sight { gradient: vec![1.0; net.parameter_count()], records: 1, labels: None };
    assert_eq!(first_layer(&net, &sight).unwrap(), None);
}

/// Open and clipped gradients of a convolutional network give the record back; what a batch does not depends on others.
#[test]
fn records_are_found_from_their_gradients() {
    let shape = Shape::Image([8, 8, 1]);
    let layers =
        vec![L::conv(12, 5, 2, 2), L::Sigmoid, L::conv(12, 5, 1, 2), L::Sigmoid, L::Flatten, L::dense(4)];
    let net = Network::<f32>::new(NetSpec::sequential(shape, layers, Loss::SoftmaxCrossEntropy), 7).unwrap();
    // pictures: a bright spot on a ramp
    let picture = |k: usize| {
        (0..64).map(move |i| {
            let (y, x) = ((i / 8) as f32, (i % 8) as f32);
            let spot = (-((x - 2.0 - k as f32).powi(2) + (y - 4.0).powi(2)) / 4.0).exp();
            0.2 + 0.6 * spot + 0.02 * y
        })
    };
    let x: Vec<f32> = (0..4).flat_map(picture).collect();
    let data = Data::classes(shape, x.clone(), 4, &[3, 1, 2, 0]).unwrap();
    let ids: [&[usize]; 4] = [&[0], &[1], &[2], &[3]];
    let error = |i: usize, guess: &[f64]| {
        let own: Vec<f64> = x[i * 64..][..64].iter().map(|v| f64::from(*v)).collect();
        mse(&own, guess).unwrap()
    };
    for clip in [Clip::None, Clip::Hard { bound: 0.2 }] {
        let sights = gradients(&net, &data, &ids, Mechanism { clip, sigma: 0.0 }, 1).unwrap();
        // labels are not told
        let sights: Vec<Sight<f32>> = sights.into_iter().map(|s| Sight { labels: None, ..s }).collect();
        let how = Inversion { clip, iterations: 600, total_variation: 1e-6, ..Inversion::published(UNIT, 3) };
        let guess = invert(&net, &sights, &how, &all).unwrap();
        for (i, f) in guess.iter().enumerate() {
            assert!(error(i, &f.records) < 2e-3, "{clip:?} {i}: {} {}", error(i, &f.records), f.cost);
            assert!(f.cosine > 0.999 && f.records.iter().all(|v| (0.0..=1.0).contains(v)));
            let label: Vec<f64> = data.label(i).iter().map(|v| f64::from(*v)).collect();
            assert_eq!(f.labels, label);
        }
        let alone = invert(&net, &sights[2..3], &how, &all).unwrap();
        assert!(error(2, &alone[0].records) < 2e-3);
    }
}

/// Two records in one gradient, and weights after local steps.
#[test]
fn batches_and_local_steps_are_attacked_too() {
    let shape = Shape::Vector([6]);
    let spec = mlp(shape, &[24], &L::Tanh, 3, Loss::SoftmaxCrossEntropy);
    let net = Network::<f64>::new(spec, 5).unwrap();
    let x = uniform(12, 8);
    let data = Data::classes(shape, x.clone(), 3, &[0, 2]).unwrap();
    let open = Mechanism { clip: Clip::None, sigma: 0.0 };
    let how =
        Inversion { iterations: 3000, restarts: 3, total_variation: 0.0, ..Inversion::published(UNIT, 1) };
    let sight = gradients(&net, &data, &[&[0, 1]], open, 1).unwrap();
    let guess = &invert(&net, &sight, &how, &all).unwrap()[0];
    assert!(guess.cosine > 0.9999 && mse(&x, &guess.records).unwrap() < 1e-3, "{guess:?}");
    // five steps of gradient descent on one record: half way the gradient is the mean one
    let theta = net.parameters().unwrap();
    let mut local = Network::with_parameters(net.spec().clone(), &theta).unwrap();
    for _ in 0..5 {
        let g = gradients(&local, &data, &[&[0]], open, 1).unwrap().remove(0).gradient;
        let next: Vec<f64> = local.parameters().unwrap().iter().zip(&g).map(|(t, g)| t - 0.05 * g).collect();
        local.set_parameters(&next).unwrap();
    }
    let (middle, moved) = half_way(&net, &local.parameters().unwrap()).unwrap();
    let seen = |gradient| vec![Sight { gradient, records: 1, labels: None }];
    let error = |net: &Network<f64>| {
        let guess = invert(net, &seen(moved.clone()), &how, &all).unwrap().remove(0);
        assert_eq!(guess.labels, [1.0, 0.0, 0.0]);
        mse(&x[..6], &guess.records).unwrap()
    };
    let (better, plain) = (error(&middle), error(&net));
    assert!(better < 1e-3 && better < plain, "{better} {plain}");
}

/// The label of one record of a softmax is the only one whose output should rise.
#[test]
fn labels_are_read_off_the_last_layer() {
    let shape = Shape::Image([28, 28, 1]);
    let net = Network::<f32>::new(Preset::CnnMnist.spec(shape, 10), 1).unwrap();
    let classes: Vec<u32> = (0..20).map(|i| i % 10).collect();
    let x: Vec<f32> = uniform(20 * 784, 2).into_iter().map(|v| v as f32).collect();
    let data = Data::classes(shape, x, 10, &classes).unwrap();
    let singles: Vec<[usize; 1]> = (0..20).map(|i| [i]).collect();
    let singles: Vec<&[usize]> = singles.iter().map(|s| &s[..]).collect();
    let how = Mechanism { clip: Clip::Hard { bound: 0.1 }, sigma: 0.0 };
    for (i, sight) in gradients(&net, &data, &singles, how, 1).unwrap().iter().enumerate() {
        assert_eq!(recovered_labels(&net, sight).unwrap(), *data.label(i));
    }
    // a batch: each class as often as it was there
    let batch =
        gradients(&net, &data, &[&[3, 4, 14]], Mechanism { clip: Clip::None, sigma: 0.0 }, 1).unwrap();
    let guess = recovered_labels(&net, &batch[0]).unwrap();
    let count = |c: usize| guess.chunks(10).filter(|row| row[c] == 1.0).count();
    assert_eq!((count(3), count(4)), (1, 2));
    // tried, the right one fits best
    let tried = Inversion { iterations: 60, labels: UnknownLabels::Try, ..Inversion::published(UNIT, 1) };
    let sight = Sight { labels: None, ..gradients(&net, &data, &[&[7]], how, 1).unwrap().remove(0) };
    assert_eq!(invert(&net, &[sight], &tried, &all).unwrap()[0].labels[7], 1.0);
}

#[test]
fn gradients_that_cannot_be_one_of_the_network_are_refused() {
    let net = convolutions();
    let p = net.parameter_count();
    let how = Inversion::published(UNIT, 1);
    let refused = |gradient: Vec<f64>, labels: Option<Vec<f64>>| {
        let sight = Sight { gradient, records: 1, labels };
        invert(&net, &[sight], &how, &all).unwrap_err().to_string()
    };
    assert!(refused(vec![1.0; p - 1], None).contains("gradient of another network"));
    assert!(refused(vec![0.0; p], None).contains("zero everywhere"));
    let mut bad = vec![1.0; p];
    bad[4] = f64::NAN;
    assert!(refused(bad, None).contains("position 4"));
    assert!(refused(vec![1.0; p], Some(vec![1.0; 3])).contains("labels"));
    let wrong = |how: Inversion| {
        let sight = Sight { gradient: vec![1.0; p], records: 1, labels: None };
        invert(&net, &[sight], &how, &all).unwrap_err().to_string()
    };
    let published = || Inversion::published(UNIT, 1);
    assert!(wrong(Inversion { iterations: 0, ..published() }).contains("iterations"));
    assert!(wrong(Inversion { restarts: 0, ..published() }).contains("restarts"));
    assert!(wrong(Inversion { learning_rate: f64::NAN, ..published() }).contains("learning rate"));
    assert!(wrong(Inversion { total_variation: -1.0, ..published() }).contains("total variation"));
    assert!(
        wrong(Inversion { objective: Objective::Likelihood { noise: 0.0 }, ..published() })
            .contains("cosine")
    );
    assert!(half_way(&net, &[0.0]).unwrap_err().to_string().contains("after the steps"));
    let spec = NetSpec::sequential(Shape::Sequence([4, 3]), vec![L::dense(2)], Loss::SoftmaxCrossEntropy);
    let sequences = Network::<f64>::new(spec, 1).unwrap();
    let sight = Sight { gradient: vec![1.0; 8], records: 1, labels: None };
    assert!(invert(&sequences, &[sight], &how, &all).unwrap_err().to_string().contains("sequences"));
}

/// Records drawn from a normal prior, a released gradient with noise: no attack is closer on average than van Trees allows.
#[test]
fn no_attack_beats_the_bound() {
    let d = 6;
    let spec = mlp(Shape::Vector([d]), &[10], &L::Tanh, 2, Loss::SquaredError);
    let net = Network::<f64>::new(spec, 11).unwrap();
    let (n, spread) = (60, 0.5);
    let mut rng = Generator::new(21, Purpose::Other, 0);
    let x: Vec<f64> = (0..n * d).map(|_| spread * rng.normal()).collect();
    let data = Data::new(Shape::Vector([d]), x.clone(), 2, vec![1.0; 2 * n]).unwrap();
    let ids: Vec<usize> = (0..n).collect();
    let singles: Vec<&[usize]> = ids.chunks(1).collect();
    // so wide that its ends say nothing
    let range = Range { low: -4.0, high: 4.0 };
    let mut near = f64::INFINITY;
    for (clip, sigma) in [
        (Clip::Hard { bound: 1.0 }, 0.05),
        (Clip::Hard { bound: 1.0 }, 0.3),
        (Clip::Gelu { bound: 2.0 }, 0.1),
        (Clip::None, 0.2),
    ] {
        let request = leak::Measure { trace: leak::Trace::Exact, ..leak::Measure::new(clip, sigma, 1) };
        let leaks = leak::measure(&net, &data, &ids, &request).unwrap();
        let dfil = leaks.iter().map(|l| l.dfil.unwrap().value).sum::<f64>() / n as f64;
        let bound = 1.0 / (dfil + 1.0 / (spread * spread));
        let mechanism = Mechanism { clip, sigma };
        let sights = gradients(&net, &data, &singles, mechanism, 5).unwrap();
        let mut attacks: Vec<(&str, Vec<Vec<f64>>)> = Vec::new();
        let noise = mechanism.noise();
        for (name, objective) in
            [("cosine", Objective::Cosine), ("likelihood", Objective::Likelihood { noise })]
        {
            let how = Inversion {
                objective,
                clip,
                iterations: 300,
                learning_rate: 0.02,
                ..Inversion::published(range, 2)
            };
            let guess = invert(&net, &sights, &how, &all).unwrap();
            attacks.push((name, guess.into_iter().map(|f| f.records).collect()));
        }
        let first = sights.iter().map(|s| first_layer(&net, s).unwrap().unwrap()).collect();
        attacks.push(("first layer", first));
        attacks.push(("a guess of the mean", vec![vec![0.0; d]; n]));
        for (name, guesses) in attacks {
            let errors: Vec<f64> =
                guesses.iter().enumerate().map(|(i, g)| mse(&x[i * d..][..d], g).unwrap()).collect();
            let mean = errors.iter().sum::<f64>() / n as f64;
            let deviation = (errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
            let slack = 3.0 * deviation / (n as f64).sqrt();
            assert!(mean + slack >= bound, "{name} {clip:?} {sigma}: {mean} ± {slack} below {bound}");
            near = near.min(mean / bound);
        }
    }
    // the bound is not idle: some attack comes within a factor of ten of it
    assert!(near < 10.0, "{near}");
}
