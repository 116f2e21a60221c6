//! From released parameters to the record: learned on models of the adversary's own, tested on others.

use crate::{
    Data, LayerSpec, Loss, Network, Shape,
    engine::predict,
    error::{Error, Result, check, check_finite, check_len},
    preset::mlp,
    train::{Optimizer, Randomness, Sampling, TrainConfig, Trainer},
};
use leakscope_core::linalg::{Cholesky, matmul, matmul_transposed};

/// Models and their last records.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    /// Parameters `(n, p)`.
    pub features: Vec<f64>,
    /// Labels `(n, k)`.
    pub labels: Vec<f64>,
    /// Records `(n, d)`.
    pub records: Vec<f64>,
    /// n.
    pub count: usize,
}

/// How the network of the adversary is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learning {
    /// Passes over the examples.
    pub epochs: u64,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Added to the gradient times the parameters.
    pub weight_decay: f64,
    /// Seed of its weights and batches.
    pub seed: u64,
}

/// Records in one batch of the adversary's network.
const BATCH: usize = 64;

impl Examples {
    fn widths(&self) -> [usize; 3] {
        [&self.features, &self.labels, &self.records].map(|v| v.len() / self.count.max(1))
    }

    fn check(&self) -> Result<[usize; 3]> {
        let widths = self.widths();
        if self.count == 0 || widths.contains(&0) {
            return Err(Error::Empty);
        }
        for (name, values, w) in [
            ("the parameters of the models", &self.features, widths[0]),
            ("the labels of the targets", &self.labels, widths[1]),
            ("the targets", &self.records, widths[2]),
        ] {
            check_len(name, values.len(), self.count * w)?;
            check_finite(name, values)?;
        }
        Ok(widths)
    }

    /// The class of every example.
    fn classes(&self) -> Vec<usize> {
        let k = self.widths()[1];
        let class = |row: &[f64]| match row {
            [one] => usize::from(*one > 0.5),
            many => (0..many.len()).fold(0, |b, i| if many[i] > many[b] { i } else { b }),
        };
        self.labels.chunks_exact(k.max(1)).map(class).collect()
    }
}

/// Refuses fewer examples than values to learn, and tests of another shape.
fn fit(train: &Examples, test: &Examples) -> Result<[usize; 3]> {
    let widths = train.check()?;
    let others = test.check()?;
    for (name, a, b) in [
        ("the parameters of a tested model", others[0], widths[0]),
        ("the label of a tested target", others[1], widths[1]),
        ("a tested target", others[2], widths[2]),
    ] {
        check_len(name, a, b)?;
    }
    check(
        train.count >= widths[2],
        "the number of targets to learn from",
        train.count as f64,
        "at least as many as a record has values, which are the outputs of the map",
    )?;
    Ok(widths)
}

/// Scales of features, read off the examples to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Standard {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Standard {
    /// Of rows of a width.
    pub fn of(rows: &[f64], width: usize) -> Self {
        let n = (rows.len() / width.max(1)).max(1) as f64;
        let mut mean = vec![0.0; width];
        rows.chunks_exact(width).for_each(|r| mean.iter_mut().zip(r).for_each(|(m, v)| *m += v / n));
        let mut scale = vec![0.0; width];
        for r in rows.chunks_exact(width) {
            scale.iter_mut().zip(r.iter().zip(&mean)).for_each(|(s, (v, m))| *s += (v - m).powi(2) / n);
        }
        // A parameter that never moves says nothing, and one that moves by rounding alone would blow it up.
        let least = 1e-16 * scale.iter().copied().fold(0.0, f64::max);
        scale.iter_mut().for_each(|s| *s = if *s > least { 1.0 / s.sqrt() } else { 0.0 });
        Self { mean, scale }
    }

    /// Rows with mean 0 and variance 1.
    pub fn apply(&self, rows: &[f64]) -> Vec<f64> {
        let each = self.mean.iter().zip(&self.scale).cycle();
        rows.iter().zip(each).map(|(v, (m, s))| (v - m) * s).collect()
    }
}

/// Mean record of each class; of all where a class has none.
fn class_means(train: &Examples, classes: &[usize], d: usize) -> Vec<Vec<f64>> {
    let most = classes.iter().max().copied().unwrap_or(0).max(1);
    let mean = |wanted: Option<usize>| {
        let mut out = vec![0.0; d];
        let mut n = 0.0;
        for (row, c) in train.records.chunks_exact(d).zip(classes) {
            if wanted.is_none_or(|w| w == *c) {
                out.iter_mut().zip(row).for_each(|(o, v)| *o += v);
                n += 1.0;
            }
        }
        (n > 0.0).then(|| out.iter().map(|o| o / n).collect::<Vec<f64>>())
    };
    let all = mean(None).unwrap_or_else(|| vec![0.0; d]);
    (0..=most).map(|c| mean(Some(c)).unwrap_or_else(|| all.clone())).collect()
}

/// The mean record of the label.
pub fn by_label(train: &Examples, test: &Examples) -> Result<Vec<f64>> {
    let [_, _, d] = fit(train, test)?;
    let means = class_means(train, &train.classes(), d);
    Ok(test.classes().into_iter().flat_map(|c| means[c.min(means.len() - 1)].clone()).collect())
}

/// Penalties that are tried, in units of the mean of the Gram matrix' diagonal.
const PENALTIES: [f64; 6] = [1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Ridge regression of the record on the parameters, class by class; the penalty is the one that does best on a tenth of the
/// examples, which are not learned from meanwhile.
pub fn by_ridge(train: &Examples, test: &Examples) -> Result<Vec<f64>> {
    let [p, _, d] = fit(train, test)?;
    let standard = Standard::of(&train.features, p);
    let (x, t) = (standard.apply(&train.features), standard.apply(&test.features));
    let classes = train.classes();
    let means = class_means(train, &classes, d);
    let mut out = vec![0.0; test.count * d];
    let tested = test.classes();
    for (class, mean) in means.iter().enumerate() {
        let rows: Vec<usize> = (0..train.count).filter(|&i| classes[i] == class).collect();
        let wanted: Vec<usize> =
            (0..test.count).filter(|&i| tested[i].min(means.len() - 1) == class).collect();
        if wanted.is_empty() {
            continue;
        }
        let gather = |from: &[f64], rows: &[usize], w: usize| -> Vec<f64> {
            rows.iter().flat_map(|&i| &from[i * w..][..w]).copied().collect()
        };
        let guesses = match rows.len() {
            0..=9 => mean.repeat(wanted.len()),
            n => {
                let (learned, held) = rows.split_at(n - n / 10);
                let off = |rows: &[usize]| -> Vec<f64> {
                    let all = gather(&train.records, rows, d);
                    all.iter().zip(mean.iter().cycle()).map(|(v, m)| v - m).collect()
                };
                let gram = Gram::new(&gather(&x, learned, p), &off(learned), p, d);
                let (held_x, held_y) = (gather(&x, held, p), off(held));
                let error = |penalty: f64| -> Result<f64> {
                    let guesses = gram.predict(penalty, &held_x)?;
                    Ok(guesses.iter().zip(&held_y).map(|(a, b)| (a - b).powi(2)).sum())
                };
                let mut best = (f64::INFINITY, PENALTIES[0]);
                for penalty in PENALTIES {
                    let e = error(penalty)?;
                    if e < best.0 {
                        best = (e, penalty);
                    }
                }
                let gram = Gram::new(&gather(&x, &rows, p), &off(&rows), p, d);
                let guesses = gram.predict(best.1, &gather(&t, &wanted, p))?;
                guesses.iter().zip(mean.iter().cycle()).map(|(v, m)| v + m).collect()
            }
        };
        for (&i, row) in wanted.iter().zip(guesses.chunks_exact(d)) {
            out[i * d..][..d].copy_from_slice(row);
        }
    }
    Ok(out)
}

/// The equations of least squares.
struct Gram {
    /// `XᵀX`, with the mean of the features taken off.
    square: Vec<f64>,
    /// `XᵀY`.
    cross: Vec<f64>,
    mean: Vec<f64>,
    p: usize,
    d: usize,
}

impl Gram {
    fn new(x: &[f64], y: &[f64], p: usize, d: usize) -> Self {
        let n = x.len() / p;
        let mut mean = vec![0.0; p];
        x.chunks_exact(p).for_each(|r| mean.iter_mut().zip(r).for_each(|(m, v)| *m += v / n as f64));
        let off: Vec<f64> = x.iter().zip(mean.iter().cycle()).map(|(v, m)| v - m).collect();
        let (mut square, mut cross) = (vec![0.0; p * p], vec![0.0; p * d]);
        matmul_transposed(&off, &off, (p, n, p), &mut square);
        matmul_transposed(&off, y, (p, n, d), &mut cross);
        Self { square, cross, mean, p, d }
    }

    fn predict(&self, penalty: f64, x: &[f64]) -> Result<Vec<f64>> {
        let (p, d) = (self.p, self.d);
        let trace: f64 = (0..p).map(|i| self.square[i * p + i]).sum::<f64>() / p as f64;
        let mut a = self.square.clone();
        (0..p).for_each(|i| a[i * p + i] += penalty * trace.max(f64::MIN_POSITIVE));
        let inverse = Cholesky::new(&a, p)?.inverse();
        let mut b = vec![0.0; p * d];
        matmul(&inverse, &self.cross, (p, p, d), &mut b);
        let off: Vec<f64> = x.iter().zip(self.mean.iter().cycle()).map(|(v, m)| v - m).collect();
        let mut out = vec![0.0; x.len() / p * d];
        matmul(&off, &b, (x.len() / p, p, d), &mut out);
        Ok(out)
    }
}

/// A network of parameters and label, 512 and 256 rectified units, least squares by Adam: the adversary of the thesis. `watch`
/// hears how many steps are made, and says whether to go on.
pub fn by_network(
    train: &Examples,
    test: &Examples,
    how: &Learning,
    watch: &dyn Fn(u64, u64) -> bool,
) -> Result<Vec<f64>> {
    let [p, k, d] = fit(train, test)?;
    let joined = |e: &Examples| -> Vec<f64> {
        let rows = e.features.chunks_exact(p).zip(e.labels.chunks_exact(k));
        rows.flat_map(|(f, l)| f.iter().chain(l)).copied().collect()
    };
    let standard = Standard::of(&joined(train), p + k);
    let single = |v: Vec<f64>| v.into_iter().map(|v| v as f32).collect::<Vec<f32>>();
    let shape = Shape::Vector([p + k]);
    let y = single(train.records.clone());
    let data = Data::new(shape, single(standard.apply(&joined(train))), d, y)?;
    let spec = mlp(shape, &[512, 256], &LayerSpec::Relu, d, Loss::SquaredError);
    let batch = BATCH.min(train.count);
    let config = TrainConfig {
        weight_decay: how.weight_decay,
        seed: how.seed,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::adam(), how.learning_rate, Sampling::Shuffle { batch })
    };
    let mut trainer = Trainer::new(Network::<f32>::new(spec, how.seed)?, &data, config)?;
    let steps = how.epochs * (train.count / batch) as u64;
    for step in 0..steps {
        trainer.step()?;
        if !watch(step + 1, steps) {
            break;
        }
    }
    let predictions = predict(trainer.network(), &single(standard.apply(&joined(test))))?;
    Ok((0..predictions.len()).flat_map(|i| predictions.outputs(i).to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::many::{
        tests::{model, records},
        train_many,
    };
    use super::super::training::Rest;
    use super::*;
    use crate::{Clip, quality::mse};

    fn examples(sigma: f64, m: usize, seed: u64) -> Examples {
        let (d, n) = (4, 30);
        let mut model = model(d, 1, Loss::BinaryCrossEntropy);
        (model.training.sigma, model.training.clip) = (sigma, Clip::Hard { bound: 1.0 });
        model.training.optimizer = Optimizer::Sgd { momentum: 0.0 };
        let (rest, targets): (Rest, Rest) = (records(n, d, 1, 1), records(m, d, 1, seed));
        let features = train_many(&model, &rest, &targets, seed, &|_| true).unwrap();
        Examples { features, labels: targets.y, records: targets.x, count: m }
    }

    /// Without noise the parameters tell the record; with much noise no adversary is better than the label; both adversaries
    /// beat the label where there is something to learn.
    #[test]
    fn what_is_learned_is_what_noise_leaves() {
        let how = Learning { epochs: 30, learning_rate: 3e-3, weight_decay: 0.0, seed: 1 };
        let errors = |sigma: f64| {
            let (train, test) = (examples(sigma, 600, 5), examples(sigma, 100, 6));
            let of = |actual: Vec<f64>| mse(&test.records, &actual).unwrap();
            [
                of(by_label(&train, &test).unwrap()),
                of(by_ridge(&train, &test).unwrap()),
                of(by_network(&train, &test, &how, &|_, _| true).unwrap()),
            ]
        };
        let [label, ridge, network] = errors(0.0);
        assert!(ridge < 0.5 * label && network < 0.3 * label, "{label} {ridge} {network}");
        let [label, ridge, network] = errors(20.0);
        assert!(ridge > 0.9 * label && network > 0.9 * label, "{label} {ridge} {network}");
    }

    #[test]
    fn too_few_targets_are_refused() {
        let (train, test) = (examples(0.0, 3, 5), examples(0.0, 4, 6));
        for refused in [by_label(&train, &test), by_ridge(&train, &test)] {
            let text = refused.unwrap_err().to_string();
            assert!(
                text.contains("the number of targets to learn from is 3") && text.contains("outputs"),
                "{text}"
            );
        }
        let other = Examples { records: vec![0.0; 12], ..test.clone() };
        assert!(by_label(&examples(0.0, 8, 5), &other).unwrap_err().to_string().contains("a tested target"));
        assert!(by_label(&Examples { count: 0, ..train }, &test).is_err());
    }
}
