//! Many linear models at once. All have the same records but one; with W the parameters of c models below one another,
//! `(c k, d + 1)`, and X the records with a 1 at the end, a step needs `Z = W Xᵀ`, the slopes `R` of the loss by Z, each
//! record's clipped, and `R X`: two products whatever the number of models.

use super::training::{Batch, KNOWN, Rest, Training};
use crate::{
    Loss,
    clip::Clipped,
    error::{Error, Result, check_finite, check_len},
};
use leakscope_core::linalg::{matmul, matmul_by_transposed};

/// Models that ride together: large enough for the products, small enough to stay near the processor.
const TOGETHER: usize = 64;

/// A linear model and how it is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// d, values of a record.
    pub inputs: usize,
    /// k, outputs.
    pub outputs: usize,
    /// The loss.
    pub loss: Loss,
    /// How it is trained; parameters are `(k, d + 1)`, the bias of an output last in its row.
    pub training: Training,
    /// What is added to every gradient before the clip, `k (d + 1)` numbers for each step; empty: nothing.
    pub shifts: Vec<Vec<f64>>,
}

impl Linear {
    fn width(&self) -> usize {
        self.inputs + 1
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.outputs * self.width()
    }

    /// `‖(x, 1)‖²` of every record over the trained parameters of every output, `(n, k)`: those that are frozen have no
    /// gradient, and no part in the clip.
    fn squares(&self, x: &[f64]) -> Vec<f64> {
        let w = self.width();
        let one = |row: &[f64], o: usize| {
            let values = row.iter().copied().chain([1.0]).zip(&self.training.trained[o * w..][..w]);
            values.filter(|(_, trained)| **trained).map(|(v, _)| v * v).sum::<f64>()
        };
        x.chunks_exact(self.inputs).flat_map(|row| (0..self.outputs).map(move |o| one(row, o))).collect()
    }

    pub(super) fn check(&self, rest: &Rest) -> Result<usize> {
        let n = rest.check([self.inputs, self.outputs], KNOWN)?;
        self.training.check(self.parameters())?;
        if !self.shifts.is_empty() {
            check_len("what is added to gradients", self.shifts.len(), self.training.steps as usize)?;
        }
        for shift in &self.shifts {
            check_len("what is added in a step", shift.len(), self.parameters())?;
            check_finite("what is added in a step", shift)?;
            if let Some(at) =
                shift.iter().zip(&self.training.trained).position(|(c, trained)| *c != 0.0 && !trained)
            {
                let reason = format!("it moves parameter {at}, which is frozen: expected 0 there");
                return Err(Error::Format { subject: "what is added in a step", reason });
            }
        }
        Ok(n)
    }
}

/// Trains one model for each target on the known records and that target; parameters `(targets, k (d + 1))`. Every model has
/// noise of its own, by the seed and its number. `watch` hears how many are done, and says whether to go on.
pub fn train_many(
    model: &Linear,
    rest: &Rest,
    targets: &Rest,
    seed: u64,
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<f64>> {
    let n = model.check(rest)?;
    let (d, k, w) = (model.inputs, model.outputs, model.width());
    let mut x: Vec<f64> = Vec::with_capacity(n * w);
    for row in rest.x.chunks_exact(d) {
        x.extend_from_slice(row);
        x.push(1.0);
    }
    let squares = model.squares(&rest.x);
    let known = (&x[..], &squares[..], rest);
    model
        .training
        .run((targets, [d, k]), (TOGETHER, n + 1), seed, watch, &|models| Ok(sums(model, known, models)))
}

/// The sums of the clipped gradients of linear models, `(c, k (d + 1))`.
fn sums(
    model: &Linear,
    (x, squares, rest): (&[f64], &[f64], &Rest),
    &Batch { theta: all, own, step }: &Batch<'_>,
) -> Vec<f64> {
    let (d, k, w, p) = (model.inputs, model.outputs, model.width(), model.parameters());
    let (n, c) = (x.len() / w, all.len() / p);
    let shift = model.shifts.get(step as usize).map(|s| Shift::new(s, (k, w), x));
    let mut z = vec![0.0; c * k * n];
    matmul_by_transposed(all, x, (c * k, w, n), &mut z);
    let mut row = Row::new(model);
    // how much of what is added comes through the clips of each model's records
    let mut shares = vec![0.0; c];
    for j in 0..c {
        for i in 0..n {
            (0..k).for_each(|o| row.z[o] = z[(j * k + o) * n + i]);
            let along = shift.as_ref().map(|s| (&s.along[i * k..][..k], s.square));
            shares[j] += row.clipped_slope(model, &rest.y[i * k..][..k], &squares[i * k..][..k], along);
            (0..k).for_each(|o| z[(j * k + o) * n + i] = row.delta[o]);
        }
    }
    let mut sum = vec![0.0; c * p];
    matmul(&z, x, (c * k, n, w), &mut sum);
    let own_squares = model.squares(&own.x);
    for j in 0..c {
        let target = &own.x[j * d..][..d];
        let theta = &all[j * p..][..p];
        for o in 0..k {
            let weights = &theta[o * w..][..w];
            row.z[o] = weights[d] + weights[..d].iter().zip(target).map(|(a, b)| a * b).sum::<f64>();
        }
        let own_along = shift.as_ref().map(|s| s.along(target, (k, w)));
        let along = own_along.as_deref().zip(shift.as_ref().map(|s| s.square));
        shares[j] += row.clipped_slope(model, &own.y[j * k..][..k], &own_squares[j * k..][..k], along);
        let sum = &mut sum[j * p..][..p];
        for o in 0..k {
            let r = row.delta[o];
            sum[o * w..][..d].iter_mut().zip(target).for_each(|(s, v)| *s += r * v);
            sum[o * w + d] += r;
        }
        if let Some(shift) = &shift {
            sum.iter_mut().zip(shift.values).for_each(|(s, v)| *s += shares[j] * v);
        }
    }
    sum
}

/// What a step adds to gradients, the same to all.
struct Shift<'a> {
    values: &'a [f64],
    /// `‖c‖²`.
    square: f64,
    /// `C (x, 1)` of the known records, `(n, k)`.
    along: Vec<f64>,
}

impl<'a> Shift<'a> {
    /// Of known records `(n, d + 1)` that end in 1.
    fn new(values: &'a [f64], (k, w): (usize, usize), x: &[f64]) -> Self {
        let mut along = vec![0.0; x.len() / w * k];
        matmul_by_transposed(x, values, (x.len() / w, w, k), &mut along);
        Self { values, square: values.iter().map(|v| v * v).sum(), along }
    }

    /// `C (x, 1)` of one record.
    fn along(&self, x: &[f64], (k, w): (usize, usize)) -> Vec<f64> {
        let row = |o: usize| {
            let c = &self.values[o * w..][..w];
            c[w - 1] + c.iter().zip(x).map(|(c, x)| c * x).sum::<f64>()
        };
        (0..k).map(row).collect()
    }
}

/// Outputs of one record and the slope of its loss.
pub(super) struct Row {
    pub(super) z: Vec<f64>,
    pub(super) delta: Vec<f64>,
    kept: Vec<f64>,
}

impl Row {
    pub(super) fn new(model: &Linear) -> Self {
        let zeros = || vec![0.0; model.outputs];
        Self { z: zeros(), delta: zeros(), kept: zeros() }
    }

    /// δ, times the factor by which the gradient `δ ⊗ (x, 1)` is clipped, and that factor; `squares` are those of
    /// [`Linear::squares`]. With something c added to the
    /// gradient, `along` is `C (x, 1)`, C its rows, and `‖c‖²`.
    fn clipped_slope(
        &mut self,
        model: &Linear,
        y: &[f64],
        squares: &[f64],
        along: Option<(&[f64], f64)>,
    ) -> f64 {
        self.slope(model.loss, y);
        let mut square: f64 = self.delta.iter().zip(squares).map(|(v, s)| v * v * s).sum();
        if let Some((along, added)) = along {
            let cross: f64 = self.delta.iter().zip(along).map(|(d, a)| d * a).sum();
            square = (square + 2.0 * cross + added).max(0.0);
        }
        let s = Clipped::new(model.training.clip, square.sqrt()).s;
        self.delta.iter_mut().for_each(|v| *v *= s);
        s
    }

    pub(super) fn slope(&mut self, loss: Loss, y: &[f64]) {
        loss.rule().primal(&self.z, y, &mut self.delta, &mut self.kept);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        Clip, Data, Network, Shape,
        preset::mlp,
        random::{Generator, Purpose},
        train::{Optimizer, Privacy, Randomness, Sampling, TrainConfig, Trainer},
    };

    pub(crate) fn records(n: usize, d: usize, k: usize, seed: u64) -> Rest {
        let mut rng = Generator::new(seed, Purpose::Other, 0);
        let x = (0..n * d).map(|_| rng.normal()).collect();
        let y = (0..n)
            .flat_map(|i| {
                (0..k).map(move |o| f64::from(u8::from(if k == 1 { i % 2 == 0 } else { i % k == o })))
            })
            .collect();
        Rest { x, y }
    }

    pub(crate) fn model(d: usize, k: usize, loss: Loss) -> Linear {
        let p = k * (d + 1);
        Linear {
            inputs: d,
            outputs: k,
            loss,
            training: Training {
                weight_decay: 0.01,
                clip: Clip::Gelu { bound: 0.7 },
                ..Training::new((0..p).map(|i| 0.1 * (i as f64 * 1.3).sin()).collect())
            },
            shifts: vec![],
        }
    }

    /// Against the trainer, one model at a time.
    #[test]
    fn many_at_once_are_the_same_models_one_by_one() {
        let (d, n, m) = (6, 11, 70);
        for (k, loss, optimizer) in [
            (1, Loss::BinaryCrossEntropy, Optimizer::adam()),
            (3, Loss::SoftmaxCrossEntropy, Optimizer::Sgd { momentum: 0.5 }),
            (2, Loss::SquaredError, Optimizer::adam()),
        ] {
            let mut model = model(d, k, loss);
            model.training.optimizer = optimizer;
            let (rest, targets) = (records(n, d, k, 1), records(m, d, k, 2));
            let actual = train_many(&model, &rest, &targets, 3, &|_| true).unwrap();
            for j in [0, 1, 63, 64, 69] {
                let mut x = rest.x.clone();
                x.extend_from_slice(&targets.x[j * d..][..d]);
                let mut y = rest.y.clone();
                y.extend_from_slice(&targets.y[j * k..][..k]);
                let data = Data::new(Shape::Vector([d]), x, k, y).unwrap();
                let spec = mlp(Shape::Vector([d]), &[], &crate::LayerSpec::Tanh, k, loss);
                let rows = model.training.start.chunks_exact(d + 1);
                let theta: Vec<f64> =
                    rows.clone().flat_map(|r| &r[..d]).chain(rows.map(|r| &r[d])).copied().collect();
                let net = Network::with_parameters(spec, &theta).unwrap();
                let config = TrainConfig {
                    weight_decay: model.training.weight_decay,
                    // noise that does not show, so that gradients are clipped
                    privacy: Some(Privacy { clip: model.training.clip, sigma: 1e-14 }),
                    seed: 1,
                    randomness: Randomness::SeededNotPrivate,
                    ..TrainConfig::open(
                        optimizer,
                        model.training.learning_rate,
                        Sampling::Poisson { rate: 1.0 },
                    )
                };
                let mut trainer = Trainer::new(net, &data, config).unwrap();
                (0..model.training.steps).for_each(|_| {
                    trainer.step().unwrap();
                });
                let one = trainer.into_network().parameters().unwrap();
                let own = &actual[j * model.parameters()..][..model.parameters()];
                for o in 0..k {
                    for i in 0..=d {
                        let other = if i < d { one[o * d + i] } else { one[k * d + o] };
                        assert!((own[o * (d + 1) + i] - other).abs() < 1e-8, "{loss:?} {j}: {own:?} {one:?}");
                    }
                }
            }
        }
    }

    /// With parameters frozen and something added to gradients: what the trainer added is given to all models at once.
    #[test]
    fn frozen_and_perturbed_models_are_those_of_the_trainer() {
        use crate::perturb::Perturbing;
        let (d, n) = (6, 11);
        let (rest, targets, public) = (records(n, d, 1, 1), records(1, d, 1, 2), records(8, d, 1, 9));
        let mut model = model(d, 1, Loss::BinaryCrossEntropy);
        for at in [1, 4] {
            model.training.trained[at] = false;
        }
        let vectors = |r: &Rest| Data::new(Shape::Vector([d]), r.x.clone(), 1, r.y.clone()).unwrap();
        let both = Rest { x: [&rest.x[..], &targets.x].concat(), y: [&rest.y[..], &targets.y].concat() };
        let (data, public) = (vectors(&both), vectors(&public));
        let spec = mlp(Shape::Vector([d]), &[], &crate::LayerSpec::Tanh, 1, Loss::BinaryCrossEntropy);
        let mut net = Network::with_parameters(spec, &model.training.start).unwrap();
        net.freeze(&model.training.trained.iter().map(|t| !t).collect::<Vec<bool>>()).unwrap();
        let config = TrainConfig {
            weight_decay: model.training.weight_decay,
            privacy: Some(Privacy { clip: model.training.clip, sigma: 1e-14 }),
            seed: 1,
            randomness: Randomness::SeededNotPrivate,
            ..TrainConfig::open(
                model.training.optimizer,
                model.training.learning_rate,
                Sampling::Poisson { rate: 1.0 },
            )
        };
        let mut trainer = Trainer::new(net, &data, config).unwrap();
        trainer.perturb(Perturbing { lambda: 20.0, ..Perturbing::default() }, &public).unwrap();
        for _ in 0..model.training.steps {
            trainer.step().unwrap();
            model.shifts.push(trainer.added().unwrap().to_vec());
        }
        assert!(model.shifts.iter().all(|s| s.iter().any(|v| v.abs() > 1e-3)));
        let actual = train_many(&model, &rest, &targets, 3, &|_| true).unwrap();
        for (a, b) in actual.iter().zip(trainer.into_network().parameters().unwrap()) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
        model.shifts[2][4] = 0.1;
        assert!(
            train_many(&model, &rest, &targets, 3, &|_| true).unwrap_err().to_string().contains("frozen")
        );
        model.shifts.pop();
        assert!(train_many(&model, &rest, &targets, 3, &|_| true).is_err());
    }

    #[test]
    fn noise_is_every_models_own_and_frozen_parameters_stay() {
        let mut model = model(4, 1, Loss::BinaryCrossEntropy);
        model.training.sigma = 0.5;
        model.training.trained[2] = false;
        let rest = records(9, 4, 1, 1);
        // the same target twice
        let one = records(1, 4, 1, 2);
        let targets = Rest { x: one.x.repeat(2), y: one.y.repeat(2) };
        let actual = train_many(&model, &rest, &targets, 3, &|_| true).unwrap();
        assert!(
            actual[0] != actual[5]
                && actual[2] == model.training.start[2]
                && actual[7] == model.training.start[2]
        );
        let again = train_many(&model, &rest, &targets, 3, &|_| true).unwrap();
        assert_eq!(actual, again);
        assert!(train_many(&model, &Rest { x: vec![], y: vec![] }, &targets, 3, &|_| true).is_err());
        assert!(
            train_many(&model, &rest, &targets, 3, &|_| false).unwrap_err().to_string().contains("stopped")
        );
        let bad = Rest { x: vec![f64::NAN; 4], y: vec![1.0] };
        assert!(train_many(&model, &rest, &bad, 3, &|_| true).is_err());
    }
}
