//! Two values told apart by a balanced model, against balancing spelled out: Jacobians as dense matrices, weights from their norms,
//! models by elimination, for every record and value; an attacker who sees the model; and what η says instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Draws, derivatives, spectral_norm};
use faer::Mat;
use faer::linalg::solvers::Solve;
use leakscope_core::Error;
use leakscope_core::balance::{Level, Options, Sharing, Update, Variant, counted};
use leakscope_core::fisher::Release;
use leakscope_core::glm::{Family, Penalty};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_core::tell::{BalancedTelling, Certainty, Noise, Question, two_values};
use leakscope_core::units::{PublicUnit, Scaling, Units};

/// A table in the units in which its model is fitted: two columns and the intercept.
#[derive(Clone)]
struct Table {
    family: Family,
    x: Vec<[f64; 3]>,
    y: Vec<f64>,
    l2: f64,
}

const P: usize = 3;
const D: usize = 2;

impl Table {
    fn draw(seed: u64, family: Family, n: usize) -> Self {
        let mut draws = Draws(seed);
        let (mut x, mut y) = (vec![], vec![]);
        for i in 0..n {
            let (a, b) = (draws.normal(), f64::from(u8::from(draws.normal() > 0.2)));
            let z = 0.6 * a - 0.8 * b + 0.3;
            x.push([a, b, 1.0]);
            y.push(match family {
                Family::Linear => z + 0.6 * draws.normal(),
                Family::Logistic => f64::from(u8::from((z > 0.0) ^ (i % 4 == 0))),
                Family::Poisson => ((0.7 * z).exp() + 1.5 * draws.uniform()).floor(),
                Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                    unreachable!("not drawn here")
                }
            });
        }
        Self { family, x, y, l2: 0.1 }
    }

    fn rows(&self) -> InMemory {
        let x: Vec<f64> = self.x.iter().flatten().copied().collect();
        InMemory::from_matrix(&x, &self.y, &[], 7)
    }

    fn model(&self) -> (Family, Penalty) {
        (self.family, Penalty::new(self.l2, true))
    }

    fn terms(&self, w: &[f64], i: usize) -> (f64, f64) {
        let z = self.x[i].iter().zip(w).map(|(x, w)| x * w).sum();
        let (r, a, _) = derivatives(self.family, z, self.y[i]);
        (r, a)
    }

    fn hessian(&self, w: &[f64], weights: &[f64]) -> Mat<f64> {
        let mut h = Mat::zeros(P, P);
        for (i, x) in self.x.iter().enumerate() {
            let (_, a) = self.terms(w, i);
            for j in 0..P {
                (0..P).for_each(|k| h[(j, k)] += weights[i] * a * x[j] * x[k]);
            }
        }
        (0..D).for_each(|j| h[(j, j)] += self.y.len() as f64 * self.l2);
        h
    }

    /// Newton's method, spelled out.
    fn fit(&self, weights: &[f64]) -> Vec<f64> {
        let mut w = vec![0.0; P];
        for _ in 0..60 {
            let mut g = Mat::zeros(P, 1);
            for (i, x) in self.x.iter().enumerate() {
                let (r, _) = self.terms(&w, i);
                (0..P).for_each(|j| g[(j, 0)] += weights[i] * r * x[j]);
            }
            (0..D).for_each(|j| g[(j, 0)] += self.y.len() as f64 * self.l2 * w[j]);
            let step = self.hessian(&w, weights).partial_piv_lu().solve(&g);
            (0..P).for_each(|j| w[j] -= step[(j, 0)]);
        }
        w
    }

    /// Hannun's algorithm 1 with secret labels: the model after `iterations` reweightings.
    fn balanced(&self, iterations: usize) -> Vec<f64> {
        let n = self.y.len();
        let mut weights = vec![1.0; n];
        for _ in 0..iterations {
            let w = self.fit(&weights);
            let inverse = self.hessian(&w, &weights).partial_piv_lu().solve(Mat::<f64>::identity(P, P));
            let losses: Vec<f64> = (0..n)
                .map(|i| {
                    let (x, (r, a)) = (self.x[i], self.terms(&w, i));
                    // a x wᵀ + r I over the data columns, and x for the label
                    let inner = Mat::from_fn(P, D + 1, |j, k| match k {
                        D => x[j],
                        k => a * x[j] * w[k] + if j == k { r } else { 0.0 },
                    });
                    spectral_norm(&(&inverse * inner))
                })
                .collect();
            let total: f64 = losses.iter().map(|e| 1.0 / e).sum();
            weights = losses.iter().map(|e| n as f64 / (e * total)).collect();
        }
        self.fit(&weights)
    }

    fn with(&self, i: usize, column: Option<usize>, value: f64) -> Self {
        let mut changed = self.clone();
        match column {
            Some(j) => changed.x[i][j] = value,
            None => changed.y[i] = value,
        }
        changed
    }
}

fn options() -> Options {
    Options {
        level: Level::Record,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations: 0,
        tolerance: 0.0,
        release: Release { sigma: 1.0, releases: 1, label_secret: true },
        shape: None,
    }
}

fn units() -> Units {
    let unit = PublicUnit { centre: 0.0, unit: 1.0 };
    Units::new(vec![Scaling::NONE; D], vec![unit; D], true).unwrap().fitted_in()
}

fn whitened(a: &[f64], b: &[f64], whitener: &[f64]) -> f64 {
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let square = |row: &[f64]| row.iter().zip(&apart).map(|(w, d)| w * d).sum::<f64>().powi(2);
    whitener.chunks_exact(P).map(square).sum::<f64>().sqrt()
}

#[test]
fn distances_are_those_of_balancing_every_table_again() {
    let whitener = vec![4.0, 0.5, -1.0, 0.0, 2.0, 0.3, 0.1, 0.0, 3.0];
    for (seed, family, iterations) in
        [(3, Family::Linear, 4), (4, Family::Logistic, 3), (5, Family::Poisson, 1), (6, Family::Linear, 0)]
    {
        let table = Table::draw(seed, family, 16);
        let (options, units, noise) = (options(), units(), Noise::Whitener(whitener.clone()));
        let telling =
            BalancedTelling::new(&table.rows(), table.model(), (&options, iterations), &units, (&noise, 1))
                .unwrap();
        let labels = if family == Family::Linear { [-1.0, 1.5] } else { [0.0, 1.0] };
        for (question, column, values) in [
            (Question::Number { column: 0, values: [-1.2, 1.3] }, Some(0), [-1.2, 1.3]),
            (Question::Levels { columns: 1..2, encodings: vec![0.0, 1.0] }, Some(1), [0.0, 1.0]),
            (Question::Label { values: labels }, None, labels),
        ] {
            let mut heard = vec![];
            let told = telling
                .ask(&question, |record| {
                    heard.push(record);
                    Ok(())
                })
                .unwrap();
            assert_eq!(heard, (0..16).collect::<Vec<u64>>());
            let mut largest = 0.0_f64;
            for i in 0..16 {
                let [a, b] = values.map(|v| table.with(i, column, v).balanced(iterations));
                let truth = whitened(&a, &b, &whitener);
                largest = largest.max(truth);
                assert!(
                    told.delta[i] >= truth * (1.0 - 1e-9) && told.delta[i] <= truth * (1.0 + 1e-5) + 1e-9,
                    "{family:?} {iterations} {question:?}, record {i}: {} for {truth}",
                    told.delta[i]
                );
            }
            assert!(told.worst.value >= two_values(largest, 1).value - 1e-12);
            assert!((told.delta[told.worst_row as usize] / largest - 1.0).abs() < 1e-5);
            assert!(told.at_least <= largest * (1.0 + 1e-9) && told.at_least > 0.99 * largest);
        }
    }
}

/// Weights held fixed, or η, say something else: neither is a bound on what two values do.
#[test]
fn an_attacker_who_sees_the_model_is_right_as_often_as_is_said() {
    let (n, iterations, sigma) = (16, 5, 0.08);
    let table = Table::draw(11, Family::Linear, n);
    let (options, units, noise) = (options(), units(), Noise::Isotropic(sigma));
    let telling =
        BalancedTelling::new(&table.rows(), table.model(), (&options, iterations), &units, (&noise, 1))
            .unwrap();
    let question = Question::Number { column: 0, values: [-3.0, 3.0] };
    let told = telling.ask(&question, |_| Ok(())).unwrap();
    let worst = told.worst_row as usize;
    let [a, b] = [-3.0, 3.0].map(|v| table.with(worst, Some(0), v).balanced(iterations));
    let (trials, mut draws, mut right) = (20_000, Seeded::new(5), 0);
    for trial in 0..trials {
        let truth = if trial % 2 == 0 { &a } else { &b };
        let mut lead = 0.0;
        for ((z, t), (a, b)) in draws.normals(P).iter().zip(truth).zip(a.iter().zip(&b)) {
            let seen = t + sigma * z;
            lead += (seen - b).powi(2) - (seen - a).powi(2);
        }
        right += u32::from((lead > 0.0) == (trial % 2 == 0));
    }
    let success = f64::from(right) / f64::from(trials);
    let error = (success * (1.0 - success) / f64::from(trials)).sqrt();
    assert!(
        (success - told.worst.value).abs() <= tolerance::STANDARD_ERRORS * error + 1e-3,
        "{success} {told:?}"
    );
    // η of the records as they are, times the distance, is off for some record by half and more.
    let counted = counted(&table.rows(), table.model(), &options, &[], iterations).unwrap().unwrap();
    let ratio = |i: usize| told.delta[i] / (6.0 * counted.eta[i] / sigma);
    assert!((0..n).any(|i| !(0.67..1.5).contains(&ratio(i))), "{:?}", (0..n).map(ratio).collect::<Vec<_>>());
}

#[test]
fn what_shows_for_certain_and_what_cannot_be_asked() {
    let table = Table::draw(21, Family::Linear, 14);
    let (options, noise) = (options(), Noise::Isotropic(1e6));
    let column: Vec<f64> = table.x.iter().map(|x| x[0]).collect();
    let mean = column.iter().sum::<f64>() / 14.0;
    let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 14.0).sqrt();
    let unit = PublicUnit::rounded(mean, deviation);
    let public = PublicUnit { centre: 0.0, unit: 1.0 };
    // A column that is taken as it is, in a unit that was rounded from it.
    let of = |rounded: bool| {
        let units = Units::new(vec![Scaling::NONE; D], vec![unit, public], true).unwrap();
        if rounded { units.rounded_from(0, (mean, deviation), true).fitted_in() } else { units.fitted_in() }
    };
    let far = Question::Number { column: 0, values: [0.0, 100.0] };
    for (rounded, certain) in [(true, true), (false, false)] {
        let units = of(rounded);
        let rows = table.rows();
        let in_units = units.rows(&rows);
        let telling =
            BalancedTelling::new(&in_units, table.model(), (&options, 2), &units, (&noise, 1)).unwrap();
        let told = telling.ask(&far, |_| Ok(())).unwrap();
        assert_eq!((told.worst.value == 1.0, told.certain == Some(Certainty::Units)), (certain, certain));
    }
    let units = units();
    let rows = table.rows();
    let new = |options: &Options, releases: u32| {
        BalancedTelling::new(&rows, table.model(), (options, 2), &units, (&noise, releases)).map(|_| ())
    };
    assert!(matches!(new(&options, 0), Err(Error::OutOfRange { .. })));
    let clamped = Options { clamp: Some((0.5, 2.0)), ..options.clone() };
    assert!(matches!(new(&clamped, 1), Err(Error::NotApplicable { .. })));
    let telling = BalancedTelling::new(&rows, table.model(), (&options, 2), &units, (&noise, 1)).unwrap();
    assert!(telling.ask(&Question::Number { column: 7, values: [0.0, 1.0] }, |_| Ok(())).is_err());
    let stopped = telling.ask(&Question::Label { values: [0.0, 1.0] }, |_| Err(Error::Interrupted));
    assert!(matches!(stopped, Err(Error::Interrupted)));
    // One record decides everything: a table of one row has no neighbours that differ from it but by it.
    let one = Table { x: table.x[..1].to_vec(), y: table.y[..1].to_vec(), ..table.clone() };
    let telling = BalancedTelling::new(&one.rows(), one.model(), (&options, 1), &units, (&noise, 1)).unwrap();
    assert!(telling.ask(&Question::Label { values: [0.0, 1.0] }, |_| Ok(())).unwrap().worst.value >= 0.5);
}
