//! Shapes for classes against their definitions: soft labels, a Newton of its own, explicit matrices, differences of refits.

use super::super::classes::Contrasts;
use super::super::generate::{Dual, Generator};
use super::super::group::Group;
use super::super::information::Derivative;
use super::super::sums::cost_and_uniform;
use super::super::tests::duals;
use super::super::worst::{Record, jacobian};
use super::super::{Protected, Request, Shape, Target, design};
use crate::fisher::Directions;
use crate::glm::softmax::{MAX_CLASSES, SoftmaxFit, contrasts, fit, reduced_curvature, softmax};
use crate::glm::{self, Family, Penalty};
use crate::linalg::{
    Cholesky, axpy, largest_eigenvalue, matmul, matmul_by_transposed, symmetric_eigen, times,
};
use crate::random::Seeded;
use crate::rows::InMemory;

/// A small table whose labels are distributions over the classes, so that they can be moved.
#[derive(Clone)]
struct Table {
    classes: usize,
    penalty: Penalty,
    p: usize,
    x: Vec<f64>,
    /// n × K.
    label: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(classes: usize, intercept: bool, weighted: bool) -> Self {
        let (n, d) = (10 * classes, 2);
        let mut random = Seeded::new(5 + classes as u64);
        let (mut x, mut label, mut weight) = (vec![], vec![], vec![]);
        for i in 0..n {
            let v = random.normals(3);
            x.extend_from_slice(&v[..d]);
            x.extend(intercept.then_some(1.0));
            let z = 0.8 * v[0] - 0.5 * v[1] + 0.5 * v[2];
            let class = if i % 3 == 0 { i / 3 % classes } else { (z + 1.5).max(0.0) as usize };
            label.extend((0..classes).map(|c| f64::from(u8::from(c == class.min(classes - 1)))));
            weight.push(if weighted { 0.5 + random.uniform() } else { 1.0 });
        }
        let penalty = Penalty::new(0.05, intercept);
        Self { classes, penalty, p: d + usize::from(intercept), x, label, weight }
    }

    fn n(&self) -> usize {
        self.weight.len()
    }

    fn record(&self, i: usize) -> Record {
        let y = (0..self.classes).find(|c| self.label[i * self.classes + c] > 0.5).unwrap() as f64;
        Record { x: self.x[i * self.p..(i + 1) * self.p].to_vec(), y, omega: self.weight[i] }
    }

    fn rows(&self) -> InMemory {
        let y: Vec<f64> = (0..self.n()).map(|i| self.record(i).y).collect();
        InMemory::from_matrix(&self.x, &y, &self.weight, 7)
    }

    fn fit(&self) -> SoftmaxFit {
        fit(&self.rows(), self.penalty, MAX_CLASSES).unwrap()
    }

    /// π, ρ̂ and Ŝ of record i at Θ.
    fn terms(&self, theta: &[f64], i: usize) -> (Vec<f64>, Vec<f64>) {
        let (p, k, u) = (self.p, self.classes - 1, contrasts(self.classes));
        let mut pi = times(&u, &times(theta, &self.x[i * p..(i + 1) * p]));
        softmax(&mut pi);
        let off: Vec<f64> = pi.iter().zip(&self.label[i * self.classes..]).map(|(p, t)| p - t).collect();
        let rho = (0..k).map(|a| (0..self.classes).map(|c| u[c * k + a] * off[c]).sum()).collect();
        (rho, reduced_curvature(&pi, &u))
    }

    /// H, and A of the mean loss.
    fn hessian(&self, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (p, k, n) = (self.p, self.classes - 1, self.n());
        let q = k * p;
        let (mut h, mut a) = (vec![0.0; q * q], vec![0.0; q * q]);
        for i in 0..n {
            let (x, (_, s)) = (&self.x[i * p..(i + 1) * p], self.terms(theta, i));
            for r in 0..q {
                for c in 0..q {
                    let value = s[r / p * k + c / p] * x[r % p] * x[c % p];
                    h[r * q + c] += self.weight[i] * value;
                    a[r * q + c] += value / n as f64;
                }
            }
        }
        let d = self.penalty.data_width(p);
        (0..q).filter(|r| r % p < d).for_each(|r| h[r * q + r] += n as f64 * self.penalty.l2);
        (h, a)
    }

    /// Θ by Newton from zero.
    fn minimiser(&self) -> Vec<f64> {
        let (p, k, n) = (self.p, self.classes - 1, self.n());
        let (d, mut theta) = (self.penalty.data_width(p), vec![0.0; k * p]);
        for _ in 0..60 {
            let mut g = vec![0.0; k * p];
            for i in 0..n {
                let (rho, _) = self.terms(&theta, i);
                for (a, part) in g.chunks_exact_mut(p).enumerate() {
                    axpy(self.weight[i] * rho[a], &self.x[i * p..(i + 1) * p], part);
                }
            }
            (0..k * p).filter(|r| r % p < d).for_each(|r| g[r] += n as f64 * self.penalty.l2 * theta[r]);
            let step = Cholesky::new(&self.hessian(&theta).0, k * p).unwrap().solve(&g);
            axpy(-1.0, &step, &mut theta);
        }
        theta
    }

    /// `g` of record i along values ε and contrasts v of its label.
    fn moved_gradient(&self, theta: &[f64], i: usize, epsilon: &[f64], v: &[f64]) -> Vec<f64> {
        let p = self.p;
        let (rho, s) = self.terms(theta, i);
        let sloped = times(&s, &times(theta, epsilon));
        let mut g = vec![0.0; rho.len() * p];
        for (a, part) in g.chunks_exact_mut(p).enumerate() {
            axpy(self.weight[i] * rho[a], epsilon, part);
            axpy(self.weight[i] * (sloped[a] - v[a]), &self.x[i * p..(i + 1) * p], part);
        }
        g
    }

    /// The covariance of determinant one with the weights and directions of `dual` held, by its definition
    /// `Σ = A^{−½}(A^½MA^½)^½A^{−½}`.
    fn shape(&self, groups: &[Group], dual: &Dual) -> Vec<f64> {
        let theta = self.minimiser();
        let q = theta.len();
        let (h, a) = self.hessian(&theta);
        let inverse = Cholesky::new(&h, q).unwrap().inverse();
        let dimensions: f64 = groups.iter().map(|g| g.dimensions() as f64).sum();
        let mut inner = vec![0.0; q * q];
        let mut add = |weight: f64, g: &[f64]| {
            (0..q * q).for_each(|ij| inner[ij] += weight * g[ij / q] * g[ij % q]);
        };
        let share = dual.uniform / (self.n() as f64 * dimensions);
        for i in 0..self.n() {
            for group in groups {
                for j in 0..group.dimensions() {
                    add(
                        share,
                        &self.moved_gradient(&theta, i, &group.values(j), &label(group, j, q / self.p)),
                    );
                }
            }
        }
        for (atom, _) in &dual.atoms {
            let (group, k) = (&groups[atom.target], q / self.p);
            let length = crate::linalg::norm(&atom.direction);
            let (mut epsilon, mut v) = (vec![0.0; self.p], vec![0.0; k]);
            for (j, u) in atom.direction.iter().enumerate() {
                axpy(u / length, &group.values(j), &mut epsilon);
                axpy(u / length, &label(group, j, k), &mut v);
            }
            add(atom.weight, &self.moved_gradient(&theta, atom.row as usize, &epsilon, &v));
        }
        let m = sandwiched(&inverse, &inner, q);
        let (root, back) = (power(&a, q, 0.5), power(&a, q, -0.5));
        let middle = power(&sandwiched(&root, &m, q), q, 0.5);
        let mut covariance = sandwiched(&back, &middle, q);
        let lower = Cholesky::new(&covariance, q).unwrap().lower();
        let mean = (0..q).map(|i| 2.0 * lower[i * q + i].ln()).sum::<f64>() / q as f64;
        covariance.iter_mut().for_each(|v| *v *= (-mean).exp());
        covariance
    }

    /// The table with `h` times direction j of a group added to record i.
    fn moved(&self, i: usize, group: &Group, j: usize, h: f64) -> Self {
        let (mut out, k, u) = (self.clone(), self.classes - 1, contrasts(self.classes));
        axpy(h, &group.values(j), &mut out.x[i * self.p..(i + 1) * self.p]);
        let v = label(group, j, k);
        for c in 0..self.classes {
            out.label[i * self.classes + c] += h * (0..k).map(|a| u[c * k + a] * v[a]).sum::<f64>();
        }
        out
    }
}

/// Direction j of a group as contrasts of the label.
fn label(group: &Group, j: usize, k: usize) -> Vec<f64> {
    (0..k).map(|l| if j == group.count + l { group.label } else { 0.0 }).collect()
}

fn sandwiched(n: &[f64], m: &[f64], q: usize) -> Vec<f64> {
    let (mut half, mut out) = (vec![0.0; q * q], vec![0.0; q * q]);
    matmul(n, m, (q, q, q), &mut half);
    matmul_by_transposed(&half, n, (q, q, q), &mut out);
    out
}

/// A power of a positive definite matrix.
fn power(a: &[f64], q: usize, exponent: f64) -> Vec<f64> {
    let (values, v) = symmetric_eigen(a, q).unwrap();
    let entry = |i: usize, j: usize| {
        (0..q).map(|l| v[i * q + l] * values[l].max(0.0).powf(exponent) * v[j * q + l]).sum()
    };
    (0..q * q).map(|ij| entry(ij / q, ij % q)).collect()
}

fn targets(p: usize) -> Vec<Vec<Target>> {
    let attribute = Target { protected: Protected::Attribute(Directions::columns(1..2, p)), eta: 0.7 };
    vec![
        vec![Target { protected: Protected::Record { label: true }, eta: 1.0 }],
        vec![Target { protected: Protected::Record { label: false }, eta: 2.0 }],
        vec![attribute, Target { protected: Protected::Label, eta: 1.5 }],
    ]
}

/// Covariances, Jacobians and what the covariance gives away, all against the definition and refits of it.
#[test]
fn shapes_for_classes_are_those_of_their_definitions_and_of_refits() {
    for (classes, intercept, weighted) in [(2, true, true), (3, true, true), (4, false, false)] {
        let table = Table::new(classes, intercept, weighted);
        let (rows, fit, p) = (table.rows(), table.fit(), table.p);
        let q = fit.coefficients();
        for targets in targets(p) {
            let groups: Vec<Group> = targets.iter().map(|t| Group::new(t, &fit, 1).unwrap()).collect();
            let (cost, uniform) = cost_and_uniform(&rows, (&fit).into(), &groups).unwrap();
            let generator =
                Generator::new(&rows, (&fit).into(), (&targets, &groups), uniform, &cost).unwrap();
            for dual in duals(&groups, |i| table.record(i)) {
                let truth = table.shape(&groups, &dual);
                let mut actual = generator.covariance_of(&dual).unwrap();
                let lower = Cholesky::new(&actual, q).unwrap().lower();
                let mean = (0..q).map(|i| 2.0 * lower[i * q + i].ln()).sum::<f64>() / q as f64;
                actual.iter_mut().for_each(|v| *v *= (-mean).exp());
                let size = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                for (actual, truth) in actual.iter().zip(&truth) {
                    assert!((actual - truth).abs() < 1e-5 * size, "{classes} classes: {actual} {truth}");
                }
                let derivative = Contrasts::new(&generator, &fit, &dual, false).unwrap();
                for (i, group) in [3, 9, 14].into_iter().flat_map(|i| groups.iter().map(move |g| (i, g))) {
                    let record = table.record(i);
                    let actual = derivative.information(i as u64, &record, group).unwrap();
                    let truth = by_differences(&table, &groups, &dual, i, group);
                    assert!(
                        (actual - truth).abs() <= 2e-5 * truth,
                        "{classes} classes, record {i}: {actual:e}, by refits {truth:e}"
                    );
                    assert!(derivative.bound(i as u64, &record, group) >= actual);
                    let moved = jacobian((&fit).into(), &generator.inverse, group, &record);
                    for (j, moved) in moved.chunks_exact(q).enumerate() {
                        let h = 1e-5;
                        let side = |h: f64| table.moved(i, group, j, h).minimiser();
                        for ((up, down), actual) in side(h).iter().zip(side(-h)).zip(moved) {
                            let truth = -(up - down) / (2.0 * h);
                            assert!((actual - truth).abs() < 1e-6 * (1.0 + truth.abs()), "{actual} {truth}");
                        }
                    }
                }
            }
        }
    }
}

/// `½λ₁` of `tr(Σ⁻¹∂ₐΣ Σ⁻¹∂_bΣ)` by central differences.
fn by_differences(table: &Table, groups: &[Group], dual: &Dual, i: usize, group: &Group) -> f64 {
    let (q, m, h) = ((table.classes - 1) * table.p, group.dimensions(), 1e-4);
    let inverse = Cholesky::new(&table.shape(groups, dual), q).unwrap().inverse();
    let changes: Vec<Vec<f64>> = (0..m)
        .map(|j| {
            let side = |h: f64| table.moved(i, group, j, h).shape(groups, dual);
            let (up, down) = (side(h), side(-h));
            let d: Vec<f64> = up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * h)).collect();
            let mut out = vec![0.0; q * q];
            matmul(&inverse, &d, (q, q, q), &mut out);
            out
        })
        .collect();
    let entry = |a: usize, b: usize| -> f64 {
        (0..q * q).map(|ij| changes[a][ij] * changes[b][ij % q * q + ij / q]).sum()
    };
    let gram: Vec<f64> = (0..m * m).map(|ab| entry(ab / m, ab % m)).collect();
    0.5 * largest_eigenvalue(&gram, m).unwrap()
}

/// Two classes are the logistic model: the same cost, gain, certificate and information, Σ half as large.
#[test]
fn two_classes_have_the_shape_of_the_logistic_model() {
    for intercept in [true, false] {
        let mut table = Table::new(2, intercept, true);
        // Twice the penalty for the half that two opposite vectors share.
        let rows = table.rows();
        let logistic = glm::fit(&rows, Family::Logistic, table.penalty).unwrap();
        table.penalty.l2 *= 2.0;
        let classes = table.fit();
        for targets in targets(table.p) {
            let targets: Vec<Target> =
                targets.into_iter().map(|t| Target { eta: 8.0 * t.eta, ..t }).collect();
            for shape in [Shape::Isotropic, Shape::Shaped, Shape::Optimal] {
                let request =
                    Request { gap: 1e-3, shape_budget: 1.0, ..Request::new(targets.clone(), shape) };
                let (one, two) =
                    (design(&rows, &logistic, &request).unwrap(), design(&rows, &classes, &request).unwrap());
                let close = |a: f64, b: f64, subject: &str| {
                    assert!((a - b).abs() <= 2e-3 * b.abs(), "{shape:?} {subject}: {a} {b}");
                };
                close(two.exact_cost, one.exact_cost, "cost");
                close(two.cost_isotropic, one.cost_isotropic, "cost of isotropic noise");
                close(two.lower_bound_on_cost, one.lower_bound_on_cost, "certificate");
                if shape != Shape::Optimal {
                    close(two.covariance_information, one.covariance_information, "information");
                    let scale = two.largest_eta / one.largest_eta;
                    for (a, b) in two.noise.covariance().iter().zip(one.noise.covariance()) {
                        assert!(
                            (a * 2.0 * scale * scale - b).abs()
                                < 0.02 * one.noise.covariance()[0].max(b.abs())
                        );
                    }
                }
            }
        }
    }
}
