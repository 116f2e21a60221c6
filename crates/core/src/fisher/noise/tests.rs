//! What the covariance gives away against finite differences of refits, and against the variance of the score.

use super::derivative::Columns;
use super::generate::{Dual, Generator};
use super::information::Derivative;
use super::sums::cost_and_uniform;
use super::worst::{Record, jacobian};
use super::{Atom, Group, Protected, Target};
use crate::fisher::Directions;
use crate::glm::{self, Family, Fit, Penalty};
use crate::linalg::{Cholesky, dot, largest_eigenvalue, matmul_by_transposed, times};
use crate::random::Seeded;
use crate::rows::InMemory;

/// A small table, its family and penalty.
#[derive(Clone)]
struct Table {
    family: Family,
    penalty: Penalty,
    p: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(family: Family, intercept: bool, weighted: bool) -> Self {
        let (n, d) = (24, 2);
        let mut random = Seeded::new(11 + u64::from(family.name().as_bytes()[2]));
        let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
        for i in 0..n {
            let v = random.normals(3);
            let z = 0.6 * v[0] - 0.5 * v[1] + 0.2;
            x.extend_from_slice(&v[..d]);
            x.extend(intercept.then_some(1.0));
            y.push(match family {
                Family::Linear => z + 0.4 * v[2],
                Family::Logistic => f64::from(u8::from((z > 0.0) ^ (i % 4 == 0))),
                Family::Poisson => (z.exp() + v[2].abs()).floor(),
                Family::Gamma => (z + 0.5 * v[2]).exp(),
                Family::Tweedie(_) => ((z + 0.5 * v[2]).exp() - 0.5).max(0.0),
                Family::SquaredHinge => f64::from(u8::from((2.5 * z > 0.0) ^ (i % 8 == 0))),
                Family::Huber(_) => z + 1.4 * v[2],
            });
            weight.push(if weighted { 0.5 + random.uniform() } else { 1.0 });
        }
        let weight = if weighted { weight } else { vec![] };
        Self { family, penalty: Penalty::new(0.05, intercept), p: d + usize::from(intercept), x, y, weight }
    }

    fn rows(&self) -> InMemory {
        InMemory::from_matrix(&self.x, &self.y, &self.weight, 7)
    }

    fn fit(&self) -> Fit {
        glm::fit(&self.rows(), self.family, self.penalty).unwrap()
    }

    fn record(&self, i: usize) -> Record {
        let omega = self.weight.get(i).copied().unwrap_or(1.0);
        Record { x: self.x[i * self.p..(i + 1) * self.p].to_vec(), y: self.y[i], omega }
    }

    /// The table with `h` times a direction of a group added to record i.
    fn moved(&self, i: usize, group: &Group, k: usize, h: f64) -> Self {
        let mut out = self.clone();
        if k < group.count {
            (0..self.p).for_each(|j| out.x[i * self.p + j] += h * group.basis[j * group.count + k]);
        } else {
            out.y[i] += h * group.label;
        }
        out
    }

    /// Minimiser and covariance of determinant one, with the weights and directions of `dual` held.
    fn shape(&self, targets: &[Target], dual: &Dual) -> (Vec<f64>, Vec<f64>) {
        let (rows, fit) = (self.rows(), self.fit());
        let groups: Vec<Group> = targets.iter().map(|t| Group::new(t, &fit, 1).unwrap()).collect();
        let (cost, uniform) = cost_and_uniform(&rows, (&fit).into(), &groups).unwrap();
        let generator = Generator::new(&rows, (&fit).into(), (targets, &groups), uniform, &cost).unwrap();
        let mut dual = dual.clone();
        dual.atoms.iter_mut().for_each(|(atom, record)| *record = self.record(atom.row as usize));
        let mut covariance = generator.covariance_of(&dual).unwrap();
        let lower = Cholesky::new(&covariance, self.p).unwrap().lower();
        let mean = (0..self.p).map(|i| 2.0 * lower[i * self.p + i].ln()).sum::<f64>() / self.p as f64;
        covariance.iter_mut().for_each(|v| *v *= (-mean).exp());
        (fit.w, covariance)
    }
}

fn whole(label: bool) -> Vec<Target> {
    vec![Target { protected: Protected::Record { label }, eta: 1.0 }]
}

fn mixed(p: usize) -> Vec<Target> {
    let column = Directions::columns(1..2, p);
    vec![
        Target { protected: Protected::Attribute(column), eta: 0.7 },
        Target { protected: Protected::Label, eta: 2.0 },
    ]
}

/// Equal weights, and a few atoms beside them; of models of either kind.
pub(super) fn duals(groups: &[Group], record: impl Fn(usize) -> Record) -> Vec<Dual> {
    let atoms = [(3_u64, 0.25), (9, 0.4), (3, 0.1)].into_iter().enumerate().map(|(k, (row, weight))| {
        let target = k % groups.len();
        let direction = (0..groups[target].dimensions()).map(|j| 1.0 - 0.75 * ((j + k) % 3) as f64).collect();
        (Atom { row, target, direction, weight }, record(row as usize))
    });
    vec![Dual { uniform: 1.0, atoms: vec![] }, Dual { uniform: 0.25, atoms: atoms.collect() }]
}

#[test]
fn the_information_of_a_shape_is_that_of_finite_differences_of_refits() {
    for family in crate::glm::every_family() {
        for (intercept, weighted) in [(true, true), (false, false)] {
            let table = Table::new(family, intercept, weighted);
            let (rows, fit, p) = (table.rows(), table.fit(), table.p);
            for targets in [whole(true), whole(false), mixed(p)] {
                let groups: Vec<Group> = targets.iter().map(|t| Group::new(t, &fit, 1).unwrap()).collect();
                let (cost, uniform) = cost_and_uniform(&rows, (&fit).into(), &groups).unwrap();
                let generator =
                    Generator::new(&rows, (&fit).into(), (&targets, &groups), uniform, &cost).unwrap();
                for dual in duals(&groups, |i| table.record(i)) {
                    let derivative = Columns::new(&generator, &fit, &dual, false).unwrap();
                    for (i, group) in [3, 9, 17].into_iter().flat_map(|i| groups.iter().map(move |g| (i, g)))
                    {
                        let actual = derivative.information(i as u64, &table.record(i), group).unwrap();
                        let truth = by_differences(&table, &targets, &dual, i, group);
                        assert!(
                            // A record beyond the margin tells nothing; differences of refits leave rounding.
                            (actual - truth).abs() <= 1e-5 * truth + 1e-20,
                            "{family:?}, record {i}: {actual:e}, by refits {truth:e}"
                        );
                    }
                }
            }
        }
    }
}

/// `½λ₁` of `tr(Σ⁻¹∂ₐΣ Σ⁻¹∂_bΣ)` by central differences.
fn by_differences(table: &Table, targets: &[Target], dual: &Dual, i: usize, group: &Group) -> f64 {
    let (p, m, h) = (table.p, group.dimensions(), 1e-4);
    let (_, centre) = table.shape(targets, dual);
    let inverse = Cholesky::new(&centre, p).unwrap().inverse();
    let changes: Vec<Vec<f64>> = (0..m)
        .map(|k| {
            let side = |h: f64| table.moved(i, group, k, h).shape(targets, dual).1;
            let (up, down) = (side(h), side(-h));
            let d: Vec<f64> = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * h)).collect();
            let mut out = vec![0.0; p * p];
            crate::linalg::matmul(&inverse, &d, (p, p, p), &mut out);
            out
        })
        .collect();
    let mut gram = vec![0.0; m * m];
    for a in 0..m {
        for b in 0..m {
            // tr(XY) = Σ XᵢⱼYⱼᵢ
            gram[a * m + b] = (0..p * p).map(|ij| changes[a][ij] * changes[b][ij % p * p + ij / p]).sum();
        }
    }
    0.5 * largest_eigenvalue(&gram, m).unwrap()
}

/// The Fisher information of `N(w, Σ)`, both functions of a record's value, is the variance of the score: drawn.
#[test]
fn information_of_mean_and_covariance_is_the_variance_of_the_score() {
    let table = Table::new(Family::Logistic, true, false);
    let (rows, fit, p) = (table.rows(), table.fit(), table.p);
    let targets = vec![Target { protected: Protected::Attribute(Directions::columns(0..1, p)), eta: 0.5 }];
    let groups = vec![Group::new(&targets[0], &fit, 1).unwrap()];
    let (cost, uniform) = cost_and_uniform(&rows, (&fit).into(), &groups).unwrap();
    let generator = Generator::new(&rows, (&fit).into(), (&targets, &groups), uniform, &cost).unwrap();
    let dual = duals(&groups, |i| table.record(i)).remove(1);
    let derivative = Columns::new(&generator, &fit, &dual, false).unwrap();
    // An atom's own record: here the covariance says as much as the mean does.
    let (i, scale) = (9, 0.7);
    let of_covariance = derivative.information(i as u64, &table.record(i), &groups[0]).unwrap();
    let (w, covariance) = table.shape(&targets, &dual);
    let lower = Cholesky::new(&covariance, p).unwrap().lower();
    let inverse = super::gaussian::triangular_inverse(&lower, p);
    let moved = jacobian((&fit).into(), &generator.inverse, &groups[0], &table.record(i));
    let mut white = vec![0.0; p];
    matmul_by_transposed(&moved, &inverse, (1, p, p), &mut white);
    let expected = dot(&white, &white) / (scale * scale) + of_covariance;

    let h = 1e-4;
    let sides: Vec<(Vec<f64>, Vec<f64>, f64)> = [h, -h]
        .into_iter()
        .map(|h| {
            let (w, covariance) = table.moved(i, &groups[0], 0, h).shape(&targets, &dual);
            let factor = Cholesky::new(&covariance, p).unwrap();
            let log: f64 = factor.lower().iter().step_by(p + 1).map(|v| v.ln()).sum();
            (w, factor.inverse(), log)
        })
        .collect();
    let log_density = |(w, inverse, log): &(Vec<f64>, Vec<f64>, f64), at: &[f64]| {
        let d: Vec<f64> = at.iter().zip(w).map(|(a, w)| (a - w) / scale).collect();
        -0.5 * dot(&d, &times(inverse, &d)) - log
    };
    let mut random = Seeded::new(5);
    let draws = 60_000;
    let squares: Vec<f64> = (0..draws)
        .map(|_| {
            let noise = times(&lower, &random.normals(p));
            let at: Vec<f64> = w.iter().zip(&noise).map(|(w, b)| w + scale * b).collect();
            ((log_density(&sides[0], &at) - log_density(&sides[1], &at)) / (2.0 * h)).powi(2)
        })
        .collect();
    let mean = squares.iter().sum::<f64>() / f64::from(draws);
    let error = (squares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / f64::from(draws)).sqrt()
        / f64::from(draws).sqrt();
    assert!(of_covariance > 5.0 * error, "the covariance's part must be visible: {of_covariance} ± {error}");
    assert!((mean - expected).abs() < 4.0 * error, "{mean} ± {error}, expected {expected}");
}
