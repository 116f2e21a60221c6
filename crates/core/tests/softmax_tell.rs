//! Two values of a record of a softmax model told apart: against refits of every candidate, and the logistic model.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;

use dense::Draws;
use leakscope_core::glm::softmax::{SoftmaxFit, fit};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::rows::InMemory;
use leakscope_core::tell::{Noise, Question, Separation, SoftmaxTelling, told_apart};
use leakscope_core::units::{Scaling, Units};

const L2: f64 = 0.05;

/// Raw columns (numbers, or one category of three levels in two columns last), classes, weights.
#[derive(Clone)]
struct Table {
    d: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(classes: usize, n: usize, numbers: usize, weighted: bool, seed: u64) -> Self {
        let (mut draws, d) = (Draws(seed), numbers + 2);
        let (mut x, mut y) = (vec![], vec![]);
        for i in 0..n {
            let mut row: Vec<f64> = (0..numbers).map(|j| 3.0 * spread(&mut draws) + j as f64).collect();
            let level = i % 3;
            row.extend([f64::from(u8::from(level == 0)), f64::from(u8::from(level == 1))]);
            let z = row[0] / 3.0 + 0.6 * spread(&mut draws);
            y.push(if i < 2 * classes {
                (i % classes) as f64
            } else {
                ((z + 1.0) * classes as f64 / 3.0).floor().clamp(0.0, (classes - 1) as f64)
            });
            x.extend(row);
        }
        let weight = if weighted { (0..n).map(|_| 1.2 + 0.5 * spread(&mut draws)).collect() } else { vec![] };
        Self { d, x, y, weight }
    }

    fn n(&self) -> usize {
        self.y.len()
    }

    fn moments(&self, j: usize) -> (f64, f64) {
        let (n, column) = (self.n() as f64, |i: usize| self.x[i * self.d + j]);
        let mean = (0..self.n()).map(column).sum::<f64>() / n;
        (mean, ((0..self.n()).map(|i| (column(i) - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    /// Numbers standardised, indicators as they are, an intercept last.
    fn encoded(&self) -> InMemory {
        let mut x = vec![];
        let moments: Vec<_> =
            (0..self.d).map(|j| if j < self.d - 2 { self.moments(j) } else { (0.0, 1.0) }).collect();
        for row in self.x.chunks_exact(self.d) {
            x.extend(row.iter().zip(&moments).map(|(v, (m, s))| (v - m) / s));
            x.push(1.0);
        }
        InMemory::from_matrix(&x, &self.y, &self.weight, 11)
    }

    fn units(&self) -> Units {
        let scaling = (0..self.d)
            .map(|j| {
                if j < self.d - 2 {
                    let (mean, deviation) = self.moments(j);
                    Scaling::Own { mean, deviation }
                } else {
                    Scaling::NONE
                }
            })
            .collect();
        Units::rounded(scaling, true).unwrap()
    }

    fn fit(&self) -> SoftmaxFit {
        fit(&self.encoded(), Penalty::new(L2, true), 20).unwrap()
    }

    /// W in the given units, from a fit of these data from scratch.
    fn in_units(&self, units: &Units) -> Vec<f64> {
        let (fitted, p) = (self.fit(), self.d + 1);
        let mut w = fitted.w;
        for row in w.chunks_exact_mut(p) {
            for j in 0..self.d {
                let (mean, sd) = if j < self.d - 2 { self.moments(j) } else { (0.0, 1.0) };
                let unit = units.public()[j];
                row[j] /= sd;
                row[self.d] -= row[j] * mean - row[j] * unit.centre;
                row[j] *= unit.unit;
            }
        }
        w
    }

    fn told(&self, question: &Question, sigma: f64, refits: usize) -> Separation {
        let (encoded, units) = (self.encoded(), self.units());
        let (rows, model) = (units.rows(&encoded), units.softmax(&self.fit()).unwrap());
        SoftmaxTelling::new(&rows, (&model, &units), (&Noise::Isotropic(sigma), 1))
            .unwrap()
            .ask(question, refits)
            .unwrap()
    }

    /// The tables with each candidate of a question in place of record i; values of numbers in public units.
    fn with_candidates(&self, i: usize, question: &Question, units: &Units) -> Vec<Self> {
        let put = |columns: std::ops::Range<usize>, x: &[f64]| {
            let mut other = self.clone();
            for (j, v) in columns.zip(x) {
                other.x[i * self.d + j] = units.public()[j].centre + units.public()[j].unit * v;
            }
            other
        };
        match question {
            Question::Number { column, values } => {
                values.iter().map(|v| put(*column..column + 1, &[*v])).collect()
            }
            Question::Levels { columns, encodings } => {
                encodings.chunks_exact(columns.len()).map(|x| put(columns.clone(), x)).collect()
            }
            Question::Classes { codes } => codes
                .iter()
                .map(|&class| {
                    let mut other = self.clone();
                    other.y[i] = class as f64;
                    other
                })
                .collect(),
            Question::Own { column: Some(column), others } => {
                let placed = others.iter().map(|value| put(*column..column + 1, &[*value]));
                placed.chain([self.clone()]).collect()
            }
            Question::Label { .. } | Question::Own { column: None, .. } => {
                unreachable!("no question of these tests")
            }
        }
    }

    /// The largest distance of any two candidates of record i, and a model of each.
    fn truth(&self, i: usize, question: &Question, units: &Units, sigma: f64) -> (f64, Vec<Vec<f64>>) {
        let models: Vec<Vec<f64>> =
            self.with_candidates(i, question, units).iter().map(|t| t.in_units(units)).collect();
        let mut most = 0.0_f64;
        for a in &models {
            for b in &models {
                let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                most = most.max(square.sqrt() / sigma);
            }
        }
        (most, models)
    }
}

/// Uniform in (−1, 1).
fn spread(draws: &mut Draws) -> f64 {
    2.0 * draws.uniform() - 1.0
}

fn questions(classes: usize, d: usize) -> Vec<Question> {
    vec![
        Question::Number { column: 0, values: [-0.4, 0.7] },
        Question::Levels { columns: d - 2..d, encodings: vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0] },
        Question::Classes { codes: (0..classes).collect() },
        Question::Own { column: Some(0), others: vec![0.1, -0.4] },
    ]
}

#[test]
fn every_record_is_bounded_and_the_worst_is_exact() {
    for (classes, n, weighted, seed) in [(3, 48, false, 5), (4, 60, true, 9), (2, 40, true, 3)] {
        let table = Table::new(classes, n, 2, weighted, seed);
        let (units, sigma) = (table.units(), 0.3);
        for question in questions(classes, table.d) {
            let (few, all) = (table.told(&question, sigma, 0), table.told(&question, sigma, n));
            let mut worst = 0.0_f64;
            for i in 0..n {
                if all.delta[i].is_infinite() {
                    // A candidate that would have changed the public units.
                    assert!(few.delta[i].is_infinite());
                    continue;
                }
                let (truth, _) = table.truth(i, &question, &units, sigma);
                for (told, subject) in [(&few, "first look"), (&all, "refitted")] {
                    assert!(
                        told.delta[i] >= truth * (1.0 - 1e-7),
                        "{classes} {question:?} {i} {subject}: {} below {truth}",
                        told.delta[i]
                    );
                }
                worst = worst.max(truth);
            }
            assert!(all.refitted > 0 && few.refitted == 0);
            if all.delta.iter().all(|d| d.is_finite()) {
                let largest = all.delta.iter().copied().fold(0.0, f64::max);
                assert!(largest <= worst * 1.0011, "{classes} {question:?}: {largest} {worst}");
                assert!(all.at_least <= worst * (1.0 + 1e-7) && all.at_least >= worst * (1.0 - 2e-3));
            }
            assert!(few.worst.value >= all.worst.value && all.worst_among_all.value <= 1.0);
        }
    }
}

#[test]
fn two_classes_are_told_apart_as_by_the_logistic_model() {
    let table = Table::new(2, 50, 2, true, 17);
    let (encoded, units, sigma) = (table.encoded(), table.units(), 0.4);
    let rows = units.rows(&encoded);
    let logistic = glm::fit(&encoded, Family::Logistic, Penalty::new(0.5 * L2, true)).unwrap();
    let model = units.fit(&logistic).unwrap();
    let noise = Noise::Isotropic(sigma * 2_f64.sqrt());
    for question in questions(2, table.d) {
        let actual = table.told(&question, sigma, 50);
        let same = match question {
            Question::Classes { .. } => Question::Label { values: [0.0, 1.0] },
            other => other,
        };
        let truth = told_apart(&rows, (&model, &units), (&noise, 1), &same, 50).unwrap();
        assert_eq!(actual.worst_row, truth.worst_row);
        assert!((actual.worst.value - truth.worst.value).abs() < 1e-7);
        assert!((actual.median.value - truth.median.value).abs() < 2e-2);
    }
}

/// Whoever knows both models and all else, and picks the nearer one, does not beat the bound.
#[test]
fn the_best_attack_stays_below_the_bound() {
    let table = Table::new(3, 40, 2, false, 23);
    let units = table.units();
    let question = Question::Classes { codes: vec![0, 1, 2] };
    for sigma in [0.05, 0.2] {
        let told = table.told(&question, sigma, 40);
        let i = told.worst_row as usize;
        let (_, models) = table.truth(i, &question, &units, sigma);
        let [a, b] = told.worst_pair;
        let (mut draws, trials, mut right) = (Draws(4), 4000, 0);
        for trial in 0..trials {
            let actual = if trial % 2 == 0 { a } else { b };
            let released: Vec<f64> = models[actual].iter().map(|w| w + sigma * draws.normal()).collect();
            let away =
                |m: usize| -> f64 { models[m].iter().zip(&released).map(|(w, r)| (w - r).powi(2)).sum() };
            let guess = if away(a) <= away(b) { a } else { b };
            right += usize::from(guess == actual);
        }
        let share = right as f64 / trials as f64;
        let error = (0.25 / trials as f64).sqrt();
        assert!(share <= told.worst.value + 3.0 * error, "{share} beats {}", told.worst.value);
        assert!(
            share >= told.worst.value - 4.0 * error - 0.002,
            "{share}: the bound {} is loose",
            told.worst.value
        );
    }
}

#[test]
fn questions_that_do_not_fit_are_refused() {
    let table = Table::new(3, 30, 1, false, 2);
    let (encoded, units) = (table.encoded(), table.units());
    let (rows, model) = (units.rows(&encoded), units.softmax(&table.fit()).unwrap());
    let telling = SoftmaxTelling::new(&rows, (&model, &units), (&Noise::Isotropic(1.0), 1)).unwrap();
    for question in [
        Question::Label { values: [0.0, 1.0] },
        Question::Classes { codes: vec![0, 3] },
        Question::Classes { codes: vec![0] },
        Question::Number { column: 3, values: [0.0, 1.0] },
        Question::Number { column: 0, values: [f64::NAN, 1.0] },
    ] {
        assert!(telling.ask(&question, 3).is_err(), "{question:?}");
    }
    assert!(SoftmaxTelling::new(&rows, (&model, &units), (&Noise::Isotropic(0.0), 1)).is_err());
    assert!(SoftmaxTelling::new(&rows, (&model, &units), (&Noise::Isotropic(1.0), 0)).is_err());
}
