//! Softmax regression: K classes, `W` (K × p), `π = softmax(Wx)`, loss `−log π_y`.
//!
//! Adding one vector to every class changes no probability. The minimiser of `Σ ωℓ + (nλ/2)‖W‖²` has classes that sum to zero
//! in every penalised column; here they do in every column, intercept and λ = 0 included, by writing `W = UΘ` with U
//! an orthonormal basis of the vectors that sum to zero (K × (K−1), [`contrasts`]). Then `‖W‖ = ‖Θ‖`, and
//!
//! ```text
//! ρ̂ = Uᵀ(π − e_y),   Ŝ = Uᵀ(diag π − ππᵀ)U,   gradient Σ ω ρ̂ ⊗ x + nλΘ,   H = Σ ω Ŝ ⊗ xxᵀ + nλI
//! ```
//!
//! with the intercept not penalised. Two classes are the logistic model with half the penalty: its coefficients are
//! `W₁ − W₀`, and two opposite vectors share the square.
//!
//! A target is the class as a whole number from 0. [`count_classes`] checks them once; [`fit`] trusts nothing and checks again.

mod accuracy;
mod sums;

pub use accuracy::{Accuracies, Accuracy, AccuracySums, expected_accuracy, expected_accuracy_under};
pub use sums::{ClassCounts, CountedClasses, SoftmaxNewton, SoftmaxNewtonSums, count_classes};

use super::Penalty;
use crate::linalg::{Cholesky, axpy, dot, matmul_by_transposed, matmul_transposed, mirror_lower, norm};
use crate::pass;
use crate::rows::Rows;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Relative norm of the gradient that counts as converged: `‖∇‖ / (Σ ω(‖ρ̂‖ + tr Ŝ ‖x‖‖W‖)‖x‖ + nλ‖W‖)`, the denominator its
/// size if nothing cancelled (see [`crate::glm::TOLERANCE`]).
pub const TOLERANCE: f64 = 1e-10;
/// As for the other families: a Newton step that still moves the predictor of some record by this much shows that the
/// minimiser has not been reached, however small the gradient.
const STILL_MOVING: f64 = 1e-3;
/// A relative gradient of this size is rounding alone.
const ROUNDING: f64 = 4.0 * f64::EPSILON;
const MAX_ITERATIONS: usize = 100;
const MAX_HALVINGS: usize = 40;
const ARMIJO: f64 = 1e-4;
/// Classes a model may have unless more are asked for: H has ((K−1)p)² entries.
pub const MAX_CLASSES: usize = 100;

/// A softmax model at its minimiser, with everything that leakage needs of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftmaxFit {
    /// Number of classes K.
    pub classes: usize,
    /// Number of columns p, intercept included.
    pub width: usize,
    /// The penalty.
    pub penalty: Penalty,
    /// Number of rows n.
    pub n: u64,
    /// Coefficients, K × p, classes sum to zero in every column.
    pub w: Vec<f64>,
    /// `Θ = UᵀW`, (K−1) × p.
    pub theta: Vec<f64>,
    /// H in the coordinates of Θ, q × q, q = (K−1)p, both triangles.
    pub hessian: Vec<f64>,
    /// Gradient of the objective in the coordinates of Θ.
    pub gradient: Vec<f64>,
    /// Relative norm of the gradient.
    pub relative_gradient: f64,
    /// How far predictors still are from those of the minimiser, estimated to the safe side: what another Newton step would
    /// move them by, and what rounding may. Only the rounding for given coefficients.
    pub unsettled: f64,
    /// The objective.
    pub objective: f64,
    /// Mean loss over the rows, weighted, without the penalty.
    pub mean_loss: f64,
    /// Newton steps; 0 for given coefficients.
    pub iterations: usize,
}

/// An orthonormal basis U of the vectors of length K that sum to zero, K × (K−1): Helmert's contrasts.
pub fn contrasts(classes: usize) -> Vec<f64> {
    let k = classes - 1;
    let mut u = vec![0.0; classes * k];
    for j in 0..k {
        let length = ((j + 1) as f64 * (j + 2) as f64).sqrt();
        // Class j + 1 against the mean of those before it: with two classes Θ = (W₁ − W₀)/√2.
        (0..=j).for_each(|i| u[i * k + j] = -1.0 / length);
        u[(j + 1) * k + j] = (j + 1) as f64 / length;
    }
    u
}

/// Probabilities of one row from its K predictors, in place, and the logarithm of their normaliser.
pub(crate) fn softmax(z: &mut [f64]) -> f64 {
    let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for v in z.iter_mut() {
        *v = (*v - largest).exp();
        sum += *v;
    }
    z.iter_mut().for_each(|v| *v /= sum);
    largest + sum.ln()
}

/// `−ln π_y`; `plain` is the same as a difference, which loses its digits where the fit is nearly perfect.
pub(crate) fn loss(pi: &[f64], class: usize, plain: f64) -> f64 {
    let missing: f64 = pi.iter().enumerate().filter(|(c, _)| *c != class).map(|(_, v)| v).sum();
    if missing < 0.5 { -(-missing).ln_1p() } else { plain }
}

/// Pairs (a, b) with `b ≤ a` below k.
pub(crate) fn pairs(k: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..k).flat_map(|a| (0..=a).map(move |b| (a, b)))
}

/// `ρ̂ = Uᵀ(π − e_y)`.
pub(crate) fn reduced_residual<'a>(
    pi: &'a [f64],
    class: usize,
    u: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let k = pi.len() - 1;
    // 1 − π_y as the sum of the others keeps its digits where the fit is nearly perfect.
    let missing: f64 = pi.iter().enumerate().filter(|(c, _)| *c != class).map(|(_, v)| v).sum();
    (0..k).map(move |a| {
        let others: f64 = (0..pi.len()).filter(|c| *c != class).map(|c| pi[c] * u[c * k + a]).sum();
        others - missing * u[class * k + a]
    })
}

/// `Ŝ = Uᵀ(diag π − ππᵀ)U`, (K−1) × (K−1).
pub(crate) fn reduced_curvature(pi: &[f64], u: &[f64]) -> Vec<f64> {
    let k = pi.len() - 1;
    let mut mean = vec![0.0; k];
    pi.iter().enumerate().for_each(|(c, v)| axpy(*v, &u[c * k..(c + 1) * k], &mut mean));
    let mut out = vec![0.0; k * k];
    for (c, v) in pi.iter().enumerate() {
        // Σπ(u − ū)(u − ū)ᵀ: nothing cancels.
        for a in 0..k {
            let left = v * (u[c * k + a] - mean[a]);
            for b in 0..=a {
                out[a * k + b] += left * (u[c * k + b] - mean[b]);
            }
        }
    }
    mirror_lower(&mut out, k);
    out
}

/// What a pass tells besides the model.
struct Signs {
    /// Smallest margin of a row: positive where the minimiser is at infinity.
    margin: f64,
    /// Largest size of a value of each column.
    reach: Vec<f64>,
}

/// The state at Θ.
fn state_at(rows: &dyn Rows, classes: usize, penalty: Penalty, theta: &[f64]) -> Result<(SoftmaxFit, Signs)> {
    let (p, k) = (rows.width(), classes - 1);
    let (q, d) = (k * p, penalty.data_width(p));
    let mut w = vec![0.0; classes * p];
    crate::linalg::matmul(&contrasts(classes), theta, (classes, k, p), &mut w);
    let sums = SoftmaxNewton { classes, w: Cow::Borrowed(&w) };
    let mut total = pass::run(&sums, rows)?;
    if total.weight <= 0.0 {
        let (subject, expected) = ("the sum of the weights", "a positive number");
        return Err(Error::OutOfRange { subject, value: total.weight, expected });
    }
    mirror_lower(&mut total.hessian, q);
    let strength = total.rows as f64 * penalty.l2;
    let (mut square, mut gradient) = (0.0, total.gradient);
    for a in 0..k {
        let part = a * p..a * p + d;
        square += dot(&theta[part.clone()], &theta[part.clone()]);
        axpy(strength, &theta[part.clone()], &mut gradient[part.clone()]);
        part.for_each(|j| total.hessian[j * q + j] += strength);
    }
    let size = total.scale + strength * square.sqrt();
    let fit = SoftmaxFit {
        classes,
        width: p,
        penalty,
        n: total.rows,
        w,
        theta: theta.to_vec(),
        hessian: total.hessian,
        relative_gradient: if size > 0.0 { norm(&gradient) / size } else { 0.0 },
        gradient,
        unsettled: 0.0,
        objective: total.loss + 0.5 * strength * square,
        mean_loss: total.loss / total.weight,
        iterations: 0,
    };
    Ok((fit, Signs { margin: total.margin, reach: total.reach }))
}

/// Fits the model by Newton's method with a line search; `most_classes` is usually [`MAX_CLASSES`].
///
/// # Errors
/// As for [`count_classes`]; [`Error::Singular`] names a dependent coefficient of Θ modulo the columns,
/// [`Error::Separable`] says that classes are told apart exactly and there is no penalty, [`Error::NoConvergence`]
/// that the tolerance was not met.
pub fn fit(rows: &dyn Rows, penalty: Penalty, most_classes: usize) -> Result<SoftmaxFit> {
    check(penalty)?;
    let classes = count_classes(rows, most_classes)?.len();
    let start = vec![0.0; (classes - 1) * rows.width()];
    fit_from(rows, classes, penalty, &start)
}

/// Fits a model of so many classes from a start Θ; a class may have lost its only record.
pub(crate) fn fit_from(
    rows: &dyn Rows,
    classes: usize,
    penalty: Penalty,
    start: &[f64],
) -> Result<SoftmaxFit> {
    let (p, k) = (rows.width(), classes - 1);
    let (mut current, Signs { reach, .. }) = state_at(rows, classes, penalty, start)?;
    // The last model that counts as converged, while steps still improve on it.
    let mut best: Option<SoftmaxFit> = None;
    for iteration in 0..MAX_ITERATIONS {
        let factor = match Cholesky::new(&current.hessian, k * p) {
            Ok(factor) => factor,
            // At first only dependent columns make H singular; later the curvature vanished on the way to infinity.
            Err(Error::Singular { .. }) if iteration > 0 => return Err(no_convergence(iteration, &current)),
            Err(Error::Singular { column, of }) => {
                return Err(Error::Singular { column: column % p, of: of.iter().map(|j| j % p).collect() });
            }
            Err(error) => return Err(error),
        };
        let step = factor.solve(&current.gradient);
        let floor = ROUNDING * (1.0 + moved(&current, &current.theta, &reach));
        current.unsettled = moved(&current, &step, &reach) + floor;
        if let Some(mut known) = best.take() {
            let improved = current.unsettled < 0.5 * known.unsettled
                || current.relative_gradient < 0.5 * known.relative_gradient;
            if !improved || !converged(&current) {
                known.unsettled = known.unsettled.max(current.unsettled.min(2.0 * known.unsettled));
                return Ok(SoftmaxFit { iterations: iteration, ..known });
            }
        }
        if converged(&current) {
            if current.relative_gradient <= ROUNDING && current.unsettled <= 2.0 * floor {
                return Ok(SoftmaxFit { iterations: iteration, ..current });
            }
            best = Some(current.clone());
        }
        let decrease = dot(&step, &current.gradient);
        let Some((next, signs)) = line_search(rows, &current, &step, decrease)? else {
            let stuck = || no_convergence(iteration, &current);
            return best.ok_or_else(stuck).map(|fit| SoftmaxFit { iterations: iteration, ..fit });
        };
        if penalty.l2 == 0.0 && signs.margin > 0.0 {
            return Err(Error::Separable);
        }
        current = next;
    }
    let stuck = || no_convergence(MAX_ITERATIONS, &current);
    best.ok_or_else(stuck).map(|fit| SoftmaxFit { iterations: MAX_ITERATIONS, ..fit })
}

fn check(penalty: Penalty) -> Result<()> {
    if penalty.l2 >= 0.0 && penalty.l2.is_finite() {
        return Ok(());
    }
    let expected = "a finite number that is not negative";
    Err(Error::OutOfRange { subject: "l2", value: penalty.l2, expected })
}

/// The model at given coefficients W, classes × p, which need not be the minimiser; their common direction is left out.
///
/// # Errors
/// As for [`count_classes`]; [`Error::Shape`] for another number of coefficients, [`Error::OutOfRange`] for ones that are no
/// numbers or give none.
pub fn evaluate(rows: &dyn Rows, penalty: Penalty, w: &[f64], most_classes: usize) -> Result<SoftmaxFit> {
    check(penalty)?;
    let classes = count_classes(rows, most_classes)?.len();
    let (p, k) = (rows.width(), classes - 1);
    if w.len() != classes * p {
        let (actual, expected) = (w.len(), classes * p);
        return Err(Error::Shape { subject: "the coefficients", actual, expected });
    }
    if let Some(&value) = w.iter().find(|v| !v.is_finite()) {
        return Err(Error::OutOfRange { subject: "a coefficient", value, expected: "a finite number" });
    }
    let mut theta = vec![0.0; k * p];
    matmul_transposed(&contrasts(classes), w, (k, classes, p), &mut theta);
    let (mut fit, signs) = state_at(rows, classes, penalty, &theta)?;
    fit.unsettled = ROUNDING * (1.0 + moved(&fit, &theta, &signs.reach));
    if !fit.objective.is_finite() {
        let expected = "a finite number: are they for these columns, scaled as these are?";
        let subject = "the loss at the given coefficients";
        return Err(Error::OutOfRange { subject, value: fit.objective, expected });
    }
    Ok(fit)
}

/// How far a change of Θ moves the difference of two predictors of any record, at most: `√2 Σⱼ ‖Θ_·ⱼ‖ max|xⱼ|`.
fn moved(fit: &SoftmaxFit, change: &[f64], reach: &[f64]) -> f64 {
    let p = fit.width;
    let length = |j: usize| change.iter().skip(j).step_by(p).map(|v| v * v).sum::<f64>().sqrt();
    std::f64::consts::SQRT_2 * (0..p).map(|j| length(j) * reach[j]).sum::<f64>()
}

fn converged(fit: &SoftmaxFit) -> bool {
    fit.relative_gradient <= TOLERANCE && fit.unsettled <= STILL_MOVING
}

/// How far `given` is from the minimiser `best`: `‖W − W*‖/‖W*‖`, and the relative excess of the objective.
pub fn distance(fit: &SoftmaxFit, best: &SoftmaxFit) -> (f64, f64) {
    let difference: Vec<f64> = fit.theta.iter().zip(&best.theta).map(|(a, b)| a - b).collect();
    let size = norm(&best.theta);
    let relative = if size > 0.0 { norm(&difference) / size } else { norm(&difference) };
    let excess = (fit.objective - best.objective).max(0.0) / best.objective.abs().max(f64::MIN_POSITIVE);
    (relative, if best.objective == 0.0 && fit.objective == 0.0 { 0.0 } else { excess })
}

fn line_search(
    rows: &dyn Rows,
    current: &SoftmaxFit,
    step: &[f64],
    decrease: f64,
) -> Result<Option<(SoftmaxFit, Signs)>> {
    let mut length = 1.0;
    for _ in 0..MAX_HALVINGS {
        let mut theta = current.theta.clone();
        axpy(-length, step, &mut theta);
        let next = state_at(rows, current.classes, current.penalty, &theta)?;
        let rounding = 1e-13 * current.objective.abs().max(current.n as f64 * current.mean_loss.abs());
        let enough = next.0.objective <= current.objective - ARMIJO * length * decrease + rounding;
        if next.0.objective.is_finite() && next.0.relative_gradient.is_finite() && enough {
            return Ok(Some(next));
        }
        length *= 0.5;
    }
    Ok(None)
}

fn no_convergence(iterations: usize, at: &SoftmaxFit) -> Error {
    Error::NoConvergence { iterations, gradient: at.relative_gradient, tolerance: TOLERANCE }
}

impl SoftmaxFit {
    /// Number of free coefficients `(K−1)p`.
    pub fn coefficients(&self) -> usize {
        (self.classes - 1) * self.width
    }

    /// Probabilities of every row of `x` (n × p), n × K.
    pub fn probabilities(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len().checked_div(self.width).unwrap_or(0);
        let mut z = vec![0.0; n * self.classes];
        matmul_by_transposed(x, &self.w, (n, self.width, self.classes), &mut z);
        z.chunks_exact_mut(self.classes).for_each(|z| {
            softmax(z);
        });
        z
    }

    /// `UᵀV` of coefficients V (K × p): the coordinates in which noise is independent of the common direction.
    pub fn reduced(&self, v: &[f64]) -> Vec<f64> {
        let k = self.classes - 1;
        let mut out = vec![0.0; k * self.width];
        matmul_transposed(&contrasts(self.classes), v, (k, self.classes, self.width), &mut out);
        out
    }

    /// `UΘ` of contrasts Θ: the coefficients of the classes, K × p, which sum to zero in every column.
    pub fn of_classes(&self, theta: &[f64]) -> Vec<f64> {
        let k = self.classes - 1;
        let mut out = vec![0.0; self.classes * self.width];
        crate::linalg::matmul(&contrasts(self.classes), theta, (self.classes, k, self.width), &mut out);
        out
    }
}
