//! Shapes of noise for softmax regression, in the coordinates Θ of [`crate::glm::softmax`].
//!
//! A record moves the gradient along a direction b of its values, and along a contrast v of its one-hot label, by
//!
//! ```text
//! g(b) = ω(ρ̂ ⊗ b + (ŜΘb) ⊗ x),   g(v) = −ω v ⊗ x
//! ```
//!
//! so that `J = −H⁻¹g`. Sums over the directions of all groups need only `C = ΣBBᵀ`. What is published of Θ are the coefficients
//! `W = UΘ` of the classes, which sum to zero in every column.

mod derivative;
mod moved;
#[cfg(test)]
mod tests;

pub(super) use derivative::Contrasts;

use super::group::{Group, squares};
use super::worst::Record;
use crate::glm::softmax::{SoftmaxFit, contrasts, pairs, reduced_curvature, reduced_residual};
use crate::linalg::{axpy, dot, gram_add_lower, matmul, matmul_transposed, mirror_lower, times};
use crate::rows::{Block, Rows};
use crate::{Error, Result};

/// What a record's loss is like at the model.
struct Terms {
    /// `ρ̂`.
    rho: Vec<f64>,
    /// `Ŝ`, k × k.
    s: Vec<f64>,
    pi: Vec<f64>,
}

impl Terms {
    fn of(fit: &SoftmaxFit, u: &[f64], x: &[f64], y: f64) -> Self {
        let (pi, class) = (fit.probabilities(x), (y as usize).min(fit.classes - 1));
        Self { rho: reduced_residual(&pi, class, u).collect(), s: reduced_curvature(&pi, u), pi }
    }

    /// `T_abc = ∂Ŝ_ab/∂z_c`, the third central moment of the rows of U under π: slice c is k × k.
    fn third(&self, u: &[f64]) -> Vec<f64> {
        let k = self.pi.len() - 1;
        let mut mean = vec![0.0; k];
        self.pi.iter().enumerate().for_each(|(c, v)| axpy(*v, &u[c * k..(c + 1) * k], &mut mean));
        let mut out = vec![0.0; k * k * k];
        for (class, pi) in self.pi.iter().enumerate() {
            let away: Vec<f64> = (0..k).map(|a| u[class * k + a] - mean[a]).collect();
            for c in 0..k {
                for a in 0..k {
                    axpy(pi * away[c] * away[a], &away, &mut out[(c * k + a) * k..(c * k + a + 1) * k]);
                }
            }
        }
        out
    }

    /// `ŜΘ`, k × p.
    fn slopes(&self, fit: &SoftmaxFit) -> Vec<f64> {
        let (k, p) = (fit.classes - 1, fit.width);
        let mut out = vec![0.0; k * p];
        matmul(&self.s, &fit.theta, (k, k, p), &mut out);
        out
    }
}

/// `g` of every direction of a group, one row a direction, those of the label last.
pub(super) fn inner(fit: &SoftmaxFit, group: &Group, record: &Record) -> Vec<f64> {
    let (p, k, q) = (fit.width, fit.classes - 1, fit.coefficients());
    let terms = Terms::of(fit, &contrasts(fit.classes), &record.x, record.y);
    let mut slopes = vec![0.0; k * group.count];
    matmul(&terms.s, &group.w, (k, k, group.count), &mut slopes);
    let mut inner = vec![0.0; group.dimensions() * q];
    for j in 0..group.count {
        for a in 0..k {
            let part = &mut inner[j * q + a * p..][..p];
            axpy(record.omega * slopes[a * group.count + j], &record.x, part);
            (0..p).for_each(|i| part[i] += record.omega * terms.rho[a] * group.basis[i * group.count + j]);
        }
    }
    for l in 0..group.labels {
        let part = &mut inner[(group.count + l) * q + l * p..][..p];
        axpy(-record.omega * group.label, &record.x, part);
    }
    inner
}

/// Sums over rows.
struct Sums {
    rows: u64,
    /// `ΣŜ ⊗ xxᵀ`.
    cost: Vec<f64>,
    /// `Σω²ρ̂ρ̂ᵀ`, k × k.
    rho: Vec<f64>,
    /// `Σω²(Cŝ_b)_j ρ̂_a x_i` at ((b, j), (a, i)).
    mixed: Vec<f64>,
    /// `Σω²(ŝ_aᵀCŝ_b + l[a = b]) xxᵀ`.
    curved: Vec<f64>,
}

impl Sums {
    fn new(k: usize, q: usize) -> Self {
        let square = || vec![0.0; q * q];
        Self { rows: 0, cost: square(), rho: vec![0.0; k * k], mixed: square(), curved: square() }
    }

    fn add(&mut self, fit: &SoftmaxFit, u: &[f64], (c, l2): (&[f64], f64), block: &Block) {
        let (p, k, q, n) = (fit.width, fit.classes - 1, fit.coefficients(), block.len());
        let (mut sloped, mut spread) = (Vec::with_capacity(n * q), Vec::with_capacity(n * q));
        let pair_count = k * (k + 1) / 2;
        let mut weights = vec![Vec::with_capacity(n); 2 * pair_count];
        for i in 0..n {
            let (x, omega2) = (block.row(i), block.weight_of(i).powi(2));
            let terms = Terms::of(fit, u, x, block.y[i]);
            let slopes = terms.slopes(fit);
            let mut weighed = vec![0.0; k * p];
            matmul(&slopes, c, (k, p, p), &mut weighed);
            for (at, (a, b)) in pairs(k).enumerate() {
                let label = if a == b { l2 } else { 0.0 };
                let inner = dot(&weighed[a * p..(a + 1) * p], &slopes[b * p..(b + 1) * p]);
                weights[at].push(terms.s[a * k + b]);
                weights[pair_count + at].push(omega2 * (inner + label));
            }
            for a in 0..k {
                spread.extend(x.iter().map(|x| omega2 * terms.rho[a] * x));
                axpy(omega2 * terms.rho[a], &terms.rho, &mut self.rho[a * k..(a + 1) * k]);
            }
            sloped.extend(weighed);
        }
        self.rows += n as u64;
        let mut part = vec![0.0; q * q];
        matmul_transposed(&sloped, &spread, (q, n, q), &mut part);
        axpy(1.0, &part, &mut self.mixed);
        let (mut gram, mut scratch) = (vec![0.0; p * p], vec![]);
        for (at, (a, b)) in pairs(k).enumerate() {
            for (weights, total) in
                [(&weights[at], &mut self.cost), (&weights[pair_count + at], &mut self.curved)]
            {
                gram.fill(0.0);
                gram_add_lower(&block.x, Some(weights), p, &mut scratch, &mut gram);
                mirror_lower(&mut gram, p);
                for i in 0..p {
                    axpy(1.0, &gram[i * p..(i + 1) * p], &mut total[(a * p + i) * q + b * p..][..p]);
                }
            }
        }
    }

    fn merge(&mut self, later: &Self) {
        self.rows += later.rows;
        axpy(1.0, &later.cost, &mut self.cost);
        axpy(1.0, &later.rho, &mut self.rho);
        axpy(1.0, &later.mixed, &mut self.mixed);
        axpy(1.0, &later.curved, &mut self.curved);
    }
}

/// A, and `K` of `M = H⁻¹KH⁻¹` with equal weights of total trace one.
pub(super) fn sums(rows: &dyn Rows, fit: &SoftmaxFit, groups: &[Group]) -> Result<(Vec<f64>, Vec<f64>)> {
    let (p, k, q) = (fit.width, fit.classes - 1, fit.coefficients());
    if rows.width() != p {
        return Err(Error::Shape { subject: "the coefficients", actual: p, expected: rows.width() });
    }
    let (u, c, l2) = (contrasts(fit.classes), squares(groups, p), label_squares(groups));
    let mut total = Sums::new(k, q);
    rows.fold(
        || Sums::new(k, q),
        |sums, block| {
            sums.add(fit, &u, (&c, l2), block);
            Ok(())
        },
        |sums| {
            total.merge(&sums);
            Ok(())
        },
    )?;
    if total.rows == 0 {
        return Err(Error::Empty);
    }
    let dimensions: f64 = groups.iter().map(|g| g.dimensions() as f64).sum();
    let (n, share) = (total.rows as f64, 1.0 / (total.rows as f64 * dimensions));
    let mut inner = total.curved;
    for (a, b) in pairs(k) {
        for (ij, bb) in c.iter().enumerate() {
            let (i, j) = (ij / p, ij % p);
            inner[(a * p + i) * q + b * p + j] += total.rho[a * k + b] * bb
                + total.mixed[(b * p + i) * q + a * p + j]
                + total.mixed[(a * p + j) * q + b * p + i];
        }
    }
    mirror_lower(&mut inner, q);
    mirror_lower(&mut total.cost, q);
    Ok((total.cost.iter().map(|v| v / n).collect(), inner.iter().map(|v| v * share).collect()))
}

/// Sum over groups of the squares of the labels' scales.
fn label_squares(groups: &[Group]) -> f64 {
    groups.iter().map(|g| g.label * g.label).sum()
}

/// `Θv` of a vector of values.
fn predicted(fit: &SoftmaxFit, v: &[f64]) -> Vec<f64> {
    times(&fit.theta, v)
}
