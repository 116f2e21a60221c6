//! Many networks of dense layers trained at once, beside each of them trained alone.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use leakscope_net::{
    Clip, Data, LayerSpec, Loss, NetSpec, Network, Shape,
    attack::informed::{Dense, Examples, Rest, by_label, by_ridge, projected},
    preset::{Preset, mlp},
    random::{Generator, Purpose},
    train::{Optimizer, Privacy, Randomness, Sampling, TrainConfig, Trainer},
};

fn records(n: usize, d: usize, k: usize, seed: u64) -> Rest {
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    let x = (0..n * d).map(|_| rng.normal()).collect();
    let label = |i: usize, o: usize| if k == 1 { i.is_multiple_of(2) } else { i % k == o };
    let y = (0..n).flat_map(|i| (0..k).map(move |o| f64::from(u8::from(label(i, o))))).collect();
    Rest { x, y }
}

/// One model by the ordinary trainer, on the known records and one target.
fn alone(model: &Dense, spec: &NetSpec, rest: &Rest, targets: &Rest, j: usize) -> Vec<f64> {
    let (d, k) = (model.inputs(), model.outputs());
    let x = [&rest.x[..], &targets.x[j * d..][..d]].concat();
    let y = [&rest.y[..], &targets.y[j * k..][..k]].concat();
    let data = Data::new(Shape::Vector([d]), x, k, y).unwrap();
    let mut net = Network::with_parameters(spec.clone(), &model.training.start).unwrap();
    net.freeze(&model.training.trained.iter().map(|t| !t).collect::<Vec<bool>>()).unwrap();
    let config = TrainConfig {
        weight_decay: model.training.weight_decay,
        // noise that does not show, so that gradients are clipped
        privacy: (model.training.clip != Clip::None)
            .then_some(Privacy { clip: model.training.clip, sigma: 1e-18 }),
        seed: 1,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(
            model.training.optimizer,
            model.training.learning_rate,
            Sampling::Poisson { rate: 1.0 },
        )
    };
    let mut trainer = Trainer::new(net, &data, config).unwrap();
    (0..model.training.steps).for_each(|_| {
        trainer.step().unwrap();
    });
    trainer.into_network().parameters().unwrap()
}

/// Every model of a batch is the one that the trainer makes alone: losses, activations, depths, clips, optimisers, frozen
/// parameters.
#[test]
fn shadows_are_the_models_of_the_trainer() {
    let (d, n, m) = (5, 9, 67);
    let sgd = Optimizer::Sgd { momentum: 0.5 };
    let gelu = Clip::Gelu { bound: 0.6 };
    for (hidden, activation, k, loss, optimizer, clip, frozen) in [
        (&[4][..], LayerSpec::Tanh, 1, Loss::BinaryCrossEntropy, Optimizer::adam(), gelu, false),
        (&[6, 3], LayerSpec::Gelu, 3, Loss::SoftmaxCrossEntropy, sgd, Clip::Hard { bound: 0.3 }, false),
        (&[4], LayerSpec::Silu, 2, Loss::SquaredError, sgd, Clip::None, false),
        (&[6, 3], LayerSpec::Relu, 1, Loss::BinaryCrossEntropy, sgd, gelu, true),
        (&[3], LayerSpec::Softplus, 3, Loss::SoftmaxCrossEntropy, Optimizer::adam(), gelu, true),
        (&[], LayerSpec::Tanh, 1, Loss::BinaryCrossEntropy, Optimizer::adam(), gelu, true),
    ] {
        let spec = mlp(Shape::Vector([d]), hidden, &activation, k, loss);
        let start = Network::<f64>::new(spec.clone(), 7).unwrap().parameters().unwrap();
        let mut model = Dense::new(&spec, start).unwrap();
        (model.training.optimizer, model.training.clip, model.training.weight_decay) =
            (optimizer, clip, 0.01);
        if frozen {
            model.training.trained.iter_mut().enumerate().for_each(|(i, t)| *t = i % 3 != 1);
        }
        let (rest, targets) = (records(n, d, k, 1), records(m, d, k, 2));
        let actual = model.train_many(&rest, &targets, 3, &|_| true).unwrap();
        let p = model.parameters();
        assert_eq!(actual.len(), m * p);
        for j in [0, 1, 40, 63, 64, 66] {
            let one = alone(&model, &spec, &rest, &targets, j);
            for (i, (a, b)) in actual[j * p..][..p].iter().zip(&one).enumerate() {
                assert!((a - b).abs() < 1e-10, "{hidden:?} {activation:?} {j} {i}: {a} {b}");
                assert!(model.training.trained[i] || *a == model.training.start[i]);
            }
        }
    }
}

#[test]
fn noise_is_every_models_own() {
    let spec = mlp(Shape::Vector([4]), &[3], &LayerSpec::Tanh, 1, Loss::BinaryCrossEntropy);
    let start = Network::<f64>::new(spec.clone(), 7).unwrap().parameters().unwrap();
    let mut model = Dense::new(&spec, start).unwrap();
    (model.training.clip, model.training.sigma) = (Clip::Hard { bound: 1.0 }, 0.5);
    let (rest, one) = (records(9, 4, 1, 1), records(1, 4, 1, 2));
    let twice = Rest { x: one.x.repeat(2), y: one.y.repeat(2) };
    let actual = model.train_many(&rest, &twice, 3, &|_| true).unwrap();
    let (a, b) = actual.split_at(model.parameters());
    assert!(a.iter().zip(b).all(|(a, b)| a != b));
    assert_eq!(actual, model.train_many(&rest, &twice, 3, &|_| true).unwrap());
    assert!(model.train_many(&rest, &twice, 3, &|_| false).unwrap_err().to_string().contains("stopped"));
    let bad = Rest { x: vec![f64::NAN; 4], y: vec![1.0] };
    assert!(model.train_many(&rest, &bad, 3, &|_| true).is_err());
    assert!(model.train_many(&Rest { x: vec![], y: vec![] }, &one, 3, &|_| true).is_err());
    model.training.sigma = f64::NAN;
    assert!(model.train_many(&rest, &one, 3, &|_| true).is_err());
}

/// Networks that are no chain of dense layers are refused by the layer.
#[test]
fn other_networks_are_refused_by_name() {
    let cnn = Preset::CnnMnist.spec(Shape::Image([28, 28, 1]), 10);
    let message = Dense::new(&cnn, vec![]).unwrap_err().to_string();
    assert!(message.contains("layer 0 (conv)") && message.contains("dense layers"), "{message}");
    let twice = NetSpec::sequential(
        Shape::Vector([3]),
        vec![LayerSpec::dense(2), LayerSpec::Tanh, LayerSpec::Tanh],
        Loss::SquaredError,
    );
    assert!(Dense::new(&twice, vec![]).unwrap_err().to_string().contains("follows no dense layer"));
    let none = NetSpec::sequential(Shape::Vector([3]), vec![], Loss::SquaredError);
    assert!(Dense::new(&none, vec![]).is_err());
    let one = NetSpec::sequential(Shape::Vector([3]), vec![LayerSpec::dense(2)], Loss::SquaredError);
    assert!(Dense::new(&one, vec![0.0; 7]).is_err());
}

/// The parameters of perceptrons, on their principal components, tell the last record to ridge regression; with much noise they
/// do not.
#[test]
fn the_last_record_is_learned_from_projections() {
    let (d, n, learn, targets) = (4, 12, 160, 40);
    let spec = mlp(Shape::Vector([d]), &[8], &LayerSpec::Tanh, 1, Loss::BinaryCrossEntropy);
    let start = Network::<f64>::new(spec.clone(), 7).unwrap().parameters().unwrap();
    let (rest, all) = (records(n, d, 1, 1), records(learn + targets, d, 1, 2));
    let error = |sigma: f64| {
        let mut model = Dense::new(&spec, start.clone()).unwrap();
        (model.training.optimizer, model.training.learning_rate, model.training.steps) =
            (Optimizer::Sgd { momentum: 0.0 }, 1.0, 2);
        (model.training.clip, model.training.sigma) = (Clip::Gelu { bound: 1.0 }, sigma);
        let theta = model.train_many(&rest, &all, 3, &|_| true).unwrap();
        let p = model.parameters();
        let part = |from: usize, count: usize| Examples {
            features: theta[from * p..][..count * p].to_vec(),
            labels: all.y[from..][..count].to_vec(),
            records: all.x[from * d..][..count * d].to_vec(),
            count,
        };
        let (train, test, _) = projected(&part(0, learn), &part(learn, targets), 24).unwrap();
        let off = |actual: Vec<f64>| {
            actual.iter().zip(&test.records).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / actual.len() as f64
        };
        [off(by_ridge(&train, &test).unwrap()), off(by_label(&train, &test).unwrap())]
    };
    let [ridge, label] = error(0.0);
    assert!(ridge < 0.7 * label, "{ridge} {label}");
    let [ridge, label] = error(50.0);
    assert!(ridge > 0.9 * label, "{ridge} {label}");
}
