//! Shapes of noise for classes against dense Jacobians from refits, against an optimiser that knows nothing of duality, and attacked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod designs;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Draws, inverse, spectral_norm};
use designs::{covariance_of, matrix, nelder_mead, scaled_cost, trace};
use faer::Mat;
use leakscope_core::Error;
use leakscope_core::fisher::Directions;
use leakscope_core::fisher::noise::{Protected, Request, Shape, Target, design, design_with_shape};
use leakscope_core::glm::Penalty;
use leakscope_core::glm::softmax::{MAX_CLASSES, SoftmaxFit, contrasts, fit};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_core::special::normal_cdf;
use leakscope_core::tell::{Noise, Question, SoftmaxTelling};
use leakscope_core::units::{Scaling, Units};

const CLASSES: usize = 3;
const D: usize = 2;

#[derive(Clone)]
struct Table {
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(n: usize, weighted: bool, seed: u64) -> Self {
        let mut draws = Draws(seed);
        let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
        for i in 0..n {
            let shared = draws.normal();
            let row = [0.8 * draws.normal() + 0.6 * shared, 0.5 * draws.normal() + 0.3 * shared];
            let z = row[0] - row[1] + 0.7 * draws.normal();
            x.extend(row);
            y.push(if i % 4 == 0 { (i / 4 % CLASSES) as f64 } else { (z + 1.0).clamp(0.0, 2.0).floor() });
            weight.push(0.5 + draws.uniform());
        }
        Self { x, y, weight: if weighted { weight } else { vec![] } }
    }

    fn n(&self) -> usize {
        self.y.len()
    }

    fn rows(&self) -> InMemory {
        InMemory::from_matrix(&self.x, &self.y, &self.weight, 7)
    }

    fn fit(&self) -> SoftmaxFit {
        fit(&self.rows(), Penalty::new(0.05, false), MAX_CLASSES).unwrap()
    }

    /// How Θ moves with the values of record i, by refits: q × D.
    fn jacobian(&self, i: usize) -> Mat<f64> {
        let h = tolerance::REFIT_STEP;
        let columns: Vec<Vec<f64>> = (0..D)
            .map(|j| {
                let side = |h: f64| {
                    let mut other = self.clone();
                    other.x[i * D + j] += h;
                    other.fit().theta
                };
                side(h).iter().zip(side(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
            })
            .collect();
        Mat::from_fn(columns[0].len(), D, |r, c| columns[c][r])
    }

    /// `ΣŜ ⊗ xxᵀ/n` by its definition.
    fn cost(&self) -> Mat<f64> {
        let (fit, u, k) = (self.fit(), contrasts(CLASSES), CLASSES - 1);
        let mut a = Mat::zeros(k * D, k * D);
        for i in 0..self.n() {
            let x = &self.x[i * D..(i + 1) * D];
            let pi = fit.probabilities(x);
            for r in 0..k * D {
                for c in 0..k * D {
                    let (a1, b1) = (r / D, c / D);
                    let mut s = 0.0;
                    for e in 0..CLASSES {
                        for f in 0..CLASSES {
                            let inner = pi[e] * f64::from(u8::from(e == f)) - pi[e] * pi[f];
                            s += u[e * k + a1] * inner * u[f * k + b1];
                        }
                    }
                    a[(r, c)] += s * x[r % D] * x[c % D] / self.n() as f64;
                }
            }
        }
        a
    }
}

fn targets() -> Vec<Vec<Target>> {
    let of = |columns| Protected::Attribute(Directions::columns(columns, D));
    vec![
        vec![Target { protected: Protected::Record { label: false }, eta: 6.0 }],
        vec![Target { protected: of(0..1), eta: 4.0 }, Target { protected: of(1..2), eta: 9.0 }],
    ]
}

/// The constrained Jacobians, scaled so that every `‖WJ‖₂ ≤ 1`.
fn constrained(table: &Table, targets: &[Target]) -> Vec<Mat<f64>> {
    let mut all = vec![];
    for i in 0..table.n() {
        let jacobian = table.jacobian(i);
        for target in targets {
            let part = match &target.protected {
                Protected::Record { .. } => jacobian.clone(),
                Protected::Attribute(directions) => {
                    &jacobian * dense::basis_matrix(&directions.basis, D, directions.count)
                }
                Protected::Label => unreachable!("labels are against soft labels, inside the crate"),
            };
            all.push(faer::Scale(1.0 / target.eta) * part);
        }
    }
    all
}

#[test]
fn designs_for_classes_are_what_a_blind_optimiser_finds_and_none_beats_the_certificate() {
    for (weighted, targets) in [false, true].into_iter().zip(targets()) {
        let table = Table::new(30, weighted, 4);
        let (rows, fitted) = (table.rows(), table.fit());
        let q = fitted.coefficients();
        let (a, jacobians) = (table.cost(), constrained(&table, &targets));
        let request =
            |shape| Request { gap: 0.002, shape_budget: 1.0, ..Request::new(targets.clone(), shape) };
        let optimal = design(&rows, &fitted, &request(Shape::Optimal)).unwrap();
        let shaped = design(&rows, &fitted, &request(Shape::Shaped)).unwrap();
        let objective = |v: &[f64]| scaled_cost(&covariance_of(v, q), &a, &jacobians);
        let blind = nelder_mead(&objective, &vec![0.0; q * (q + 1) / 2]);
        assert!(optimal.gap <= 0.004 && optimal.programme_gap <= 0.004, "gap {}", optimal.gap);
        assert!(blind >= optimal.lower_bound_on_cost * (1.0 - 1e-6), "{blind}");
        assert!(optimal.exact_cost <= blind * 1.005, "{} against {blind}", optimal.exact_cost);
        assert!(blind <= optimal.exact_cost * 1.03, "the optimiser is stuck at {blind}");
        assert!(optimal.exact_cost <= shaped.exact_cost && shaped.exact_cost <= shaped.cost_isotropic);
        let isotropic = scaled_cost(&Mat::identity(q, q), &a, &jacobians);
        assert!((shaped.cost_isotropic / isotropic - 1.0).abs() < 1e-5);
        for actual in [&optimal, &shaped] {
            let covariance = matrix(&actual.noise.covariance(), q);
            assert!((actual.cost / trace(&(&covariance * &a)) - 1.0).abs() < 1e-6);
            let precision = inverse(&covariance).unwrap();
            let worst = jacobians
                .iter()
                .map(|j| spectral_norm(&(j.transpose() * &precision * j)))
                .fold(0.0, f64::max);
            assert!((worst.sqrt() / actual.largest_eta - 1.0).abs() < 1e-5);
            assert!(
                actual.covariance_information > 0.0 && worst + actual.covariance_information <= 1.0 + 1e-9
            );
        }
        let (mut draws, centre) = (Draws(77), matrix(&optimal.noise.covariance(), q));
        for k in 0..100 {
            let spread = if k % 2 == 0 { 0.02 } else { 1.0 };
            let factor = Mat::from_fn(q, q, |i, j| f64::from(u8::from(i == j)) + spread * draws.normal());
            let cost = scaled_cost(&(&factor * &centre * factor.transpose()), &a, &jacobians);
            assert!(cost >= optimal.lower_bound_on_cost * (1.0 - 1e-6), "{cost}");
        }
    }
}

/// Somebody who knows all other records tells two values of one apart no better than the bound by refits says, which is Φ(δ/2) of the
/// models themselves.
#[test]
fn the_white_box_does_not_beat_its_bound_under_shaped_noise_on_classes() {
    let table = Table::new(40, false, 8);
    let fitted = table.fit();
    let request = Request { shape_budget: 1.0, ..Request::new(targets().remove(0), Shape::Optimal) };
    let actual = design(&table.rows(), &fitted, &request).unwrap();
    let (i, values) = (5, [-1.5, 1.5]);
    let changed = |value: f64| {
        let mut other = table.clone();
        other.x[i * D] = value;
        other.fit().theta
    };
    let models = values.map(changed);
    let gap: Vec<f64> = models[0].iter().zip(&models[1]).map(|(a, b)| a - b).collect();
    let delta = actual.noise.distance(&gap);
    let (mut bits, trials, mut right) = (Seeded::new(6), 8_000, 0.0);
    for k in 0..trials {
        let seen = actual.noise.release(&models[k % 2], &mut bits).unwrap();
        let distance =
            |w: &[f64]| actual.noise.distance(&seen.iter().zip(w).map(|(s, w)| s - w).collect::<Vec<_>>());
        right += f64::from(u8::from((distance(&models[0]) < distance(&models[1])) == (k % 2 == 0)));
    }
    let (rate, bound) = (right / trials as f64, normal_cdf(0.5 * delta));
    let error = (bound * (1.0 - bound) / trials as f64).sqrt();
    assert!(delta > 0.3, "a test that could fail: {delta}");
    assert!(rate <= bound + tolerance::STANDARD_ERRORS * error, "{rate} beats {bound}");
    assert!(rate >= bound - 4.0 * error, "the optimal attack attains it: {rate} {bound}");
    // The bound over all records is at least that of this one, and is measured by the same noise.
    let units = Units::of_encoding(vec![Scaling::NONE; D], false).unwrap();
    let model = units.softmax(&fitted).unwrap();
    let (rows, noise) = (table.rows(), Noise::Whitener(actual.noise.whitener().to_vec()));
    let telling = SoftmaxTelling::new(&rows, (&model, &units), (&noise, 1)).unwrap();
    let told = telling.ask(&Question::Number { column: 0, values }, table.n()).unwrap();
    assert!(told.worst.value >= bound * (1.0 - 1e-9), "{} {bound}", told.worst.value);
    let distances: Vec<f64> = (0..table.n())
        .map(|i| {
            let with = |value: f64| {
                let mut other = table.clone();
                other.x[i * D] = value;
                other.fit().theta
            };
            let (a, b) = (with(values[0]), with(values[1]));
            actual.noise.distance(&a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<_>>())
        })
        .collect();
    let worst = distances.iter().copied().fold(0.0, f64::max);
    assert!((told.worst.value - normal_cdf(0.5 * worst)).abs() < 1e-6, "{} {worst}", told.worst.value);
    let short = Noise::Whitener(vec![1.0]);
    assert!(SoftmaxTelling::new(&rows, (&model, &units), (&short, 1)).is_err());
}

#[test]
fn public_shapes_budgets_and_nonsense() {
    let (public, private) = (Table::new(60, false, 1), Table::new(40, false, 2));
    let targets = targets().remove(0);
    let request = Request { shape_budget: 1.0, ..Request::new(targets, Shape::Optimal) };
    let shape = design(&public.rows(), &public.fit(), &request).unwrap().factor;
    let actual = design_with_shape(&private.rows(), &private.fit(), &request, &shape).unwrap();
    assert!(actual.covariance_information == 0.0 && actual.largest_eta <= 1.0);
    assert!(actual.factor.entries == shape.entries && actual.exact_cost >= actual.lower_bound_on_cost);
    // A budget is kept, and used: what it costs is told apart from what the search reached.
    let many = Table::new(200, false, 3);
    let of = |request: &Request| design(&many.rows(), &many.fit(), request).unwrap();
    let best = of(&request);
    let even = of(&Request { shape: Shape::Shaped, ..request.clone() });
    assert!(best.covariance_information > 1.5 * even.covariance_information, "a test that could fail");
    let budget = 0.5 * (best.covariance_information + even.covariance_information);
    let kept = of(&Request { shape_budget: budget, ..request.clone() });
    assert!(kept.covariance_information <= budget && kept.covariance_information > 0.8 * budget);
    assert!(kept.programme_gap == best.programme_gap && kept.gap >= kept.programme_gap);
    // A column that is twice another leaves A without an inverse: both are named, and no contrast of them.
    let mut twins = private.clone();
    (0..twins.n()).for_each(|i| twins.x[i * D + 1] = 2.0 * twins.x[i * D]);
    let error = design(&twins.rows(), &twins.fit(), &request).unwrap_err();
    assert!(matches!(error, Error::Singular { column: 1, ref of } if *of == [0]), "{error:?}");
    let two = Request { targets: vec![], ..request };
    assert!(matches!(
        design(&private.rows(), &private.fit(), &two).unwrap_err(),
        Error::NotApplicable { .. }
    ));
}
