//! The minimiser of `Σ ωℓ(wᵀx, y) + (nλ/2)(‖w‖² + κb²)` by Newton's method with a line search, in streaming passes.

use super::sums::{HuberStart, LogStart, Newton, Sums};
use super::{Family, Parameter};
use crate::linalg::{Cholesky, axpy, dot, mirror_lower, norm};
use crate::pass::{Pass, Runner};
use crate::rows::Rows;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Relative norm of the gradient, `‖∇‖ / (Σ ω|r|₊‖x‖ + nλ‖w‖)`, that counts as converged: the gradient is
/// `Σ ωrx + nλw`, and the denominator is its size if nothing cancelled (`|r|₊` is `|μ| + |y|`, and where two classes are
/// told apart well the size of r itself: see `Family::slope_size`).
///
/// Newton goes on below it for as long as a step still halves what is left, so that this is rounding.
pub const TOLERANCE: f64 = 1e-10;
/// A relative gradient of this size is rounding alone: no step can improve it.
const ROUNDING: f64 = 4.0 * f64::EPSILON;
const MAX_ITERATIONS: usize = 100;
const MAX_HALVINGS: usize = 40;
/// A Newton step that would still move the prediction of some record by this much shows that the minimiser has not been
/// reached, or is at infinity, however small the gradient has become: slopes of records that are predicted well are small
/// themselves. Not for linear regression, whose predictions have the unit of the target.
const STILL_MOVING: f64 = 1e-3;
/// Passes of reweighted least squares before Newton's method, for Huber's loss.
const MAX_REWEIGHTED: usize = 60;
/// Share of the objective that such a pass must still gain.
const SETTLED_START: f64 = 1e-5;
/// Sufficient decrease of the line search (Armijo).
const ARMIJO: f64 = 1e-4;

/// The quadratic penalty `(nλ/2)(‖w‖² + κb²)`; κ = 0 leaves the intercept b alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// λ.
    pub l2: f64,
    /// Whether the last column is an intercept.
    pub intercept: bool,
    /// κ, the share of the penalty that the intercept has.
    pub intercept_share: f64,
}

impl Penalty {
    /// A penalty that leaves the intercept alone.
    pub const fn new(l2: f64, intercept: bool) -> Self {
        Self { l2, intercept, intercept_share: 0.0 }
    }

    /// `nκλ` where there is an intercept to be penalised.
    pub(crate) fn on_intercept(self, n: u64) -> Option<f64> {
        let strength = n as f64 * self.l2 * self.intercept_share;
        (self.intercept && strength > 0.0).then_some(strength)
    }

    /// Number of penalised columns out of `width`.
    pub fn data_width(self, width: usize) -> usize {
        width - usize::from(self.intercept)
    }
}

/// A model at given coefficients, with everything that leakage needs of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The family.
    pub family: Family,
    /// The penalty.
    pub penalty: Penalty,
    /// Number of rows n.
    pub n: u64,
    /// Coefficients; an intercept comes last.
    pub w: Vec<f64>,
    /// `H = Σ ωa xxᵀ + nλI` at `w`, p × p, both triangles.
    pub hessian: Vec<f64>,
    /// Gradient of the objective at `w`.
    pub gradient: Vec<f64>,
    /// Its relative norm (see [`TOLERANCE`]).
    pub relative_gradient: f64,
    /// How far predictions still are from those of the minimiser, estimated to the safe side: what another Newton step
    /// would move them by, `Σⱼ |H⁻¹∇|ⱼ max|xⱼ|`, and what rounding may. A slope of a model with a link, and with
    /// it η, is off by about this much, relative; for linear and Huber regression it is relative to the predictions themselves.
    /// Only the rounding for given coefficients, which are what they are.
    pub unsettled: f64,
    /// The objective at `w`.
    pub objective: f64,
    /// Mean loss over the rows, weighted, without the penalty.
    pub mean_loss: f64,
    /// Newton steps taken; 0 for given coefficients.
    pub iterations: usize,
    /// Passes over the data.
    pub passes: usize,
    /// Whether all weights are one.
    pub unit_weights: bool,
    /// Records at a kink of the loss, to rounding: the model has no derivative with respect to these, and their η is that of one
    /// side.
    pub at_kink: u64,
}

fn sums<P: Pass<State = Sums>>(rows: &(impl Runner + ?Sized), pass: &P) -> Result<Sums> {
    let total = rows.run(pass)?;
    if total.rows == 0 { Err(Error::Empty) } else { Ok(total) }
}

/// What a pass tells besides the model.
struct Signs {
    /// Smallest margin of a two-class problem: positive where the minimiser is at infinity.
    margin: f64,
    /// Largest size of a value of each column; zeros where the Hessian was known.
    reach: Vec<f64>,
}

/// Objective, gradient and Hessian at `w`; the Hessian of an earlier pass is taken over where it is constant.
fn state_at(
    rows: &(impl Runner + ?Sized),
    family: Family,
    penalty: Penalty,
    w: &[f64],
    known_hessian: Option<&[f64]>,
) -> Result<(Fit, Signs)> {
    let p = rows.columns();
    let pass = Newton { family, w: Cow::Borrowed(w), with_hessian: known_hessian.is_none() };
    let mut sums = sums(rows, &pass)?;
    if sums.weight <= 0.0 {
        return Err(Error::OutOfRange {
            subject: "the sum of the weights",
            value: sums.weight,
            expected: "a positive number",
        });
    }
    let strength = sums.rows as f64 * penalty.l2;
    let d = penalty.data_width(p);
    let on_intercept = penalty.on_intercept(sums.rows);
    let hessian = match known_hessian {
        Some(h) => h.to_vec(),
        None => {
            mirror_lower(&mut sums.hessian, p);
            (0..d).for_each(|j| sums.hessian[j * p + j] += strength);
            on_intercept.iter().for_each(|s| sums.hessian[p * p - 1] += s);
            std::mem::take(&mut sums.hessian)
        }
    };
    axpy(strength, &w[..d], &mut sums.gradient[..d]);
    let mut size = sums.scale + strength * norm(&w[..d]);
    let mut penalised = 0.5 * strength * dot(&w[..d], &w[..d]);
    if let Some(strength) = on_intercept {
        sums.gradient[d] += strength * w[d];
        size += strength * w[d].abs();
        penalised += 0.5 * strength * w[d] * w[d];
    }
    let relative_gradient = if size > 0.0 { norm(&sums.gradient) / size } else { 0.0 };
    let fit = Fit {
        family,
        penalty,
        n: sums.rows,
        w: w.to_vec(),
        hessian,
        relative_gradient,
        unsettled: 0.0,
        objective: sums.loss + penalised,
        mean_loss: sums.loss / sums.weight,
        gradient: sums.gradient,
        iterations: 0,
        passes: 1,
        unit_weights: sums.unit_weights,
        at_kink: sums.at_kink,
    };
    Ok((fit, Signs { margin: sums.margin, reach: sums.reach }))
}

/// The model at given coefficients, which need not be the minimiser.
pub fn evaluate(rows: &dyn Rows, family: Family, penalty: Penalty, w: &[f64]) -> Result<Fit> {
    evaluate_by(rows, family, penalty, w)
}

/// [`evaluate`], with whoever runs the pass.
pub fn evaluate_by(
    rows: &(impl Runner + ?Sized),
    family: Family,
    penalty: Penalty,
    w: &[f64],
) -> Result<Fit> {
    check(rows, penalty)?;
    if w.len() != rows.columns() {
        return Err(Error::Shape { subject: "the coefficients", actual: w.len(), expected: rows.columns() });
    }
    if let Some(&value) = w.iter().find(|v| !v.is_finite()) {
        return Err(Error::OutOfRange { subject: "a coefficient", value, expected: "a finite number" });
    }
    let (mut fit, signs) = state_at(rows, family, penalty, w, None)?;
    fit.unsettled = rounding(family, w, &signs.reach);
    if !fit.objective.is_finite() {
        return Err(Error::OutOfRange {
            subject: "the loss at the given coefficients",
            value: fit.objective,
            expected: "a finite number: are they for these columns, scaled as these are?",
        });
    }
    Ok(fit)
}

fn check(rows: &(impl Runner + ?Sized), penalty: Penalty) -> Result<()> {
    if !(penalty.l2 >= 0.0 && penalty.l2.is_finite()) {
        return Err(Error::OutOfRange {
            subject: "l2",
            value: penalty.l2,
            expected: "a finite number that is not negative",
        });
    }
    if !(penalty.intercept_share >= 0.0 && penalty.intercept_share.is_finite()) {
        return Err(Error::OutOfRange {
            subject: "the share of the penalty on the intercept",
            value: penalty.intercept_share,
            expected: "a finite number that is not negative",
        });
    }
    if rows.count() == 0 {
        return Err(Error::Empty);
    }
    Ok(())
}

/// Fits the model.
///
/// # Errors
/// [`Error::Singular`] names a column that is a combination of others, [`Error::Separable`] says that two classes
/// can be told apart exactly and there is no penalty, [`Error::NoConvergence`] that the tolerance was not met.
pub fn fit(rows: &dyn Rows, family: Family, penalty: Penalty) -> Result<Fit> {
    fit_by(rows, family, penalty)
}

/// [`fit`], with whoever runs its passes.
pub fn fit_by(rows: &(impl Runner + ?Sized), family: Family, penalty: Penalty) -> Result<Fit> {
    check(rows, penalty)?;
    let p = rows.columns();
    let (w, mut passes) = start(rows, family, penalty)?;
    let (mut current, Signs { margin, reach }) = state_at(rows, family, penalty, &w, None)?;
    passes += 1;
    refuse_separable(family, penalty, margin)?;
    let mut factor = None;
    // The last model that counts as converged, while steps still improve on it.
    let mut best: Option<Fit> = None;
    for iteration in 0..MAX_ITERATIONS {
        let known = factor.take().filter(|_| family.constant_curvature());
        let now = match known.map_or_else(|| Cholesky::new(&current.hessian, p), Ok) {
            Ok(factor) => factor,
            // Every record may lie beyond the margin on the way: a step by a Hessian above all others leads back.
            Err(Error::Singular { .. }) if family == Family::SquaredHinge && iteration > 0 => {
                passes += 1;
                majorant(rows, penalty)?
            }
            Err(error @ Error::Singular { .. }) => {
                return Err(singular(error, &current, iteration));
            }
            Err(error) => return Err(error),
        };
        let step = now.solve(&current.gradient);
        factor = Some(now);
        let floor = rounding(family, &current.w, &reach);
        current.unsettled = moved(family, &step, &current.w, &reach) + floor;
        if let Some(mut known) = best.take() {
            let improved = current.unsettled < 0.5 * known.unsettled
                || current.relative_gradient < 0.5 * known.relative_gradient;
            if !improved || !converged(&current) {
                // One of them may have come close by chance: what both say is safe.
                known.unsettled = known.unsettled.max(current.unsettled.min(2.0 * known.unsettled));
                return Ok(Fit { iterations: iteration, passes, ..known });
            }
        }
        if converged(&current) {
            if current.relative_gradient <= ROUNDING && current.unsettled <= 2.0 * floor {
                return Ok(Fit { iterations: iteration, passes, ..current });
            }
            best = Some(current.clone());
        }
        let decrease = dot(&step, &current.gradient);
        let Some((next, margin, tried)) = line_search(rows, &current, &step, decrease)? else {
            // No decrease can be seen any more: either rounding is all that is left, or we are stuck.
            passes += MAX_HALVINGS;
            let stuck = || no_convergence(iteration, current.relative_gradient);
            return best.ok_or_else(stuck).map(|fit| Fit { iterations: iteration, passes, ..fit });
        };
        passes += tried;
        refuse_separable(family, penalty, margin)?;
        current = next;
    }
    let stuck = || no_convergence(MAX_ITERATIONS, current.relative_gradient);
    best.ok_or_else(stuck).map(|fit| Fit { iterations: MAX_ITERATIONS, passes, ..fit })
}

/// Why a Hessian is singular. The first one of these data is so only if columns are dependent; a later one because the
/// curvature vanished on the way to infinity, or because too few records lie within the threshold of Huber's loss.
fn singular(error: Error, at: &Fit, iteration: usize) -> Error {
    match at.family {
        Family::Linear => error,
        // Columns were found independent at the start.
        Family::Huber(threshold) => Error::OutOfRange {
            subject: "the threshold of Huber's loss",
            value: threshold.value(),
            expected: "one that the errors of more records than there are coefficients stay below, or a penalty (l2)",
        },
        Family::Logistic | Family::Poisson | Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge => {
            if iteration > 0 {
                no_convergence(iteration, at.relative_gradient)
            } else {
                error
            }
        }
    }
}

/// How far a step moves the prediction of any record, at most: `Σⱼ |stepⱼ| max|xⱼ|`; for linear and Huber regression relative to
/// what the coefficients themselves predict at most.
fn moved(family: Family, step: &[f64], w: &[f64], reach: &[f64]) -> f64 {
    let by = |v: &[f64]| v.iter().zip(reach).map(|(v, reach)| v.abs() * reach).sum::<f64>();
    match family {
        Family::Linear | Family::Huber(_) => by(step) / by(w).max(by(step)).max(f64::MIN_POSITIVE),
        Family::Logistic | Family::Poisson | Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge => {
            by(step)
        }
    }
}

/// What rounding does to predictions, in the unit of [`moved`].
fn rounding(family: Family, w: &[f64], reach: &[f64]) -> f64 {
    ROUNDING * (1.0 + moved(family, w, w, reach))
}

fn converged(fit: &Fit) -> bool {
    fit.relative_gradient <= TOLERANCE && (fit.family.constant_curvature() || fit.unsettled <= STILL_MOVING)
}

fn no_convergence(iterations: usize, gradient: f64) -> Error {
    Error::NoConvergence { iterations, gradient, tolerance: TOLERANCE }
}

fn refuse_separable(family: Family, penalty: Penalty, margin: f64) -> Result<()> {
    if family.two_classes() && penalty.l2 == 0.0 && margin > 0.0 {
        return Err(Error::Separable);
    }
    Ok(())
}

/// The full Newton step, halved until the objective decreases enough; `None` if it never does.
fn line_search(
    rows: &(impl Runner + ?Sized),
    current: &Fit,
    step: &[f64],
    decrease: f64,
) -> Result<Option<(Fit, f64, usize)>> {
    let known = current.family.constant_curvature().then_some(current.hessian.as_slice());
    let mut length = 1.0;
    for tried in 1..=MAX_HALVINGS {
        let mut w = current.w.clone();
        axpy(-length, step, &mut w);
        let (next, signs) = state_at(rows, current.family, current.penalty, &w, known)?;
        // Near the minimum the decrease drowns in the rounding of the objective; the gradient then decides.
        let rounding = 1e-13 * current.objective.abs().max(current.mean_loss.abs() * current.n as f64);
        let enough = next.objective <= current.objective - ARMIJO * length * decrease + rounding;
        if next.objective.is_finite() && next.relative_gradient.is_finite() && enough {
            return Ok(Some((next, signs.margin, tried)));
        }
        length *= 0.5;
    }
    Ok(None)
}

/// Where Newton's method starts, and the passes that it took to get there.
fn start(rows: &(impl Runner + ?Sized), family: Family, penalty: Penalty) -> Result<(Vec<f64>, usize)> {
    let p = rows.columns();
    match family {
        Family::Linear | Family::Logistic | Family::SquaredHinge => Ok((vec![0.0; p], 0)),
        Family::Poisson | Family::Gamma | Family::Tweedie(_) => {
            let sums = sums(rows, &LogStart { family, width: p })?;
            Ok((normal_equations(sums, penalty)?, 1))
        }
        Family::Huber(threshold) => {
            // Least squares, then least squares with weights δ/|r| beyond the threshold: each lowers the objective, from wherever
            // it starts, where Newton's method may find no record within the threshold and so no curvature.
            let (mut w, mut before) = (vec![], f64::INFINITY);
            for pass in 0..=MAX_REWEIGHTED {
                let start = HuberStart { threshold, w: Cow::Borrowed(&w), width: p };
                let sums = sums(rows, &start)?;
                let data = &w[..penalty.data_width(p).min(w.len())];
                let penalised = 0.5 * sums.rows as f64 * penalty.l2 * dot(data, data);
                let objective = if w.is_empty() { f64::INFINITY } else { sums.loss + penalised };
                if before.is_finite() && objective > before * (1.0 - SETTLED_START) {
                    return Ok((w, pass + 1));
                }
                before = objective;
                w = normal_equations(sums, penalty)?;
            }
            Ok((w, MAX_REWEIGHTED + 1))
        }
    }
}

/// `Σωxxᵀ` with the penalty: above the Hessian wherever the curvature is at most one.
fn majorant(rows: &(impl Runner + ?Sized), penalty: Penalty) -> Result<Cholesky> {
    let start = HuberStart { threshold: Parameter::ONE, w: Cow::Borrowed(&[]), width: rows.columns() };
    factor(&mut sums(rows, &start)?, penalty)
}

/// The minimiser of a weighted least-squares problem from its sums.
fn normal_equations(mut sums: Sums, penalty: Penalty) -> Result<Vec<f64>> {
    Ok(factor(&mut sums, penalty)?.solve(&sums.gradient))
}

/// The Hessian of such a problem.
fn factor(sums: &mut Sums, penalty: Penalty) -> Result<Cholesky> {
    let p = sums.gradient.len();
    mirror_lower(&mut sums.hessian, p);
    for j in 0..penalty.data_width(p) {
        sums.hessian[j * p + j] += sums.rows as f64 * penalty.l2;
    }
    penalty.on_intercept(sums.rows).iter().for_each(|s| sums.hessian[p * p - 1] += s);
    Cholesky::new(&sums.hessian, p)
}

/// How far `given` is from the minimiser `best`: `‖w − w*‖/‖w*‖`, and the relative excess of the objective.
pub fn distance(fit: &Fit, best: &Fit) -> (f64, f64) {
    let difference: Vec<f64> = fit.w.iter().zip(&best.w).map(|(a, b)| a - b).collect();
    let size = norm(&best.w);
    let relative = if size > 0.0 { norm(&difference) / size } else { norm(&difference) };
    let excess = (fit.objective - best.objective).max(0.0) / best.objective.abs().max(f64::MIN_POSITIVE);
    (relative, if best.objective == 0.0 && fit.objective == 0.0 { 0.0 } else { excess })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::InMemory;

    fn table(n: usize, p: usize, family: Family) -> (Vec<f64>, Vec<f64>) {
        // A hash rather than a lattice: lattices make accidental dependencies between columns.
        let noise = |i: usize| {
            let mut h = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (h ^ (h >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
        };
        let x: Vec<f64> = (0..n * p).map(|i| if i % p == p - 1 { 1.0 } else { noise(i) }).collect();
        let y = (0..n)
            .map(|i| {
                let z = 0.8 * x[i * p] - 0.3 + 0.9 * noise(i + 1_000_000);
                match family {
                    Family::Linear => z,
                    Family::Huber(_) => z + if i % 9 == 0 { 40.0 } else { 0.0 },
                    Family::Logistic | Family::SquaredHinge => f64::from(u8::from(z > 0.0)),
                    Family::Poisson => (z + 2.0).exp().floor(),
                    Family::Gamma => (3.0 * z).exp(),
                    Family::Tweedie(_) => (z + 2.0).exp() - 5.0_f64.min((z + 2.0).exp()),
                }
            })
            .collect();
        (x, y)
    }

    #[test]
    fn every_family_reaches_a_stationary_point_whatever_the_blocks() {
        for family in crate::glm::every_family() {
            for (intercept, share) in [(true, 0.0), (true, 2.5), (false, 0.0)] {
                let (x, y) = table(200, 4, family);
                let weight: Vec<f64> = (0..200).map(|i| 0.5 + (i % 3) as f64).collect();
                let penalty = Penalty { intercept_share: share, ..Penalty::new(0.01, intercept) };
                let free = Penalty::new(0.0, intercept);
                fit(&InMemory::from_matrix(&x, &y, &weight, 50), family, free).unwrap();
                let a = fit(&InMemory::from_matrix(&x, &y, &weight, 200), family, penalty).unwrap();
                let b = fit(&InMemory::from_matrix(&x, &y, &weight, 17), family, penalty).unwrap();
                assert!(a.relative_gradient < 1e-13, "{family:?} {}", a.relative_gradient);
                assert!(a.w.iter().zip(&b.w).all(|(u, v)| (u - v).abs() < 1e-12));
                // The objective from its definition, at the minimiser and around it.
                let objective = |w: &[f64]| -> f64 {
                    let d = penalty.data_width(4);
                    let loss: f64 = (0..200)
                        .map(|i| weight[i] * family.terms(dot(&x[i * 4..i * 4 + 4], w), y[i]).loss)
                        .sum();
                    let of_intercept = if d < 4 { share * w[3] * w[3] } else { 0.0 };
                    loss + 200.0 * 0.01 / 2.0 * (w[..d].iter().map(|v| v * v).sum::<f64>() + of_intercept)
                };
                assert!((objective(&a.w) - a.objective).abs() < 1e-10 * a.objective.abs());
                for j in 0..4 {
                    for h in [-1e-3, 1e-3] {
                        let mut w = a.w.clone();
                        w[j] += h;
                        assert!(objective(&w) > a.objective);
                    }
                }
            }
        }
    }

    #[test]
    fn separable_classes_and_dependent_columns_are_refused_without_a_penalty() {
        let x = [-2.0, 1.0, -1.0, 1.0, 1.0, 1.0, 2.0, 1.0];
        let y = [0.0, 0.0, 1.0, 1.0];
        let rows = InMemory::from_matrix(&x, &y, &[], 2);
        let free = Penalty::new(0.0, true);
        assert_eq!(fit(&rows, Family::Logistic, free).unwrap_err(), Error::Separable);
        assert_eq!(fit(&rows, Family::SquaredHinge, free).unwrap_err(), Error::Separable);
        // A small penalty: on the way every record is beyond the margin, and the Hessian singular.
        for l2 in [1e-1, 1e-3, 1e-6] {
            let actual = fit(&rows, Family::SquaredHinge, Penalty::new(l2, true)).unwrap();
            assert!(actual.relative_gradient < 1e-10, "{l2}");
        }
        for family in [Family::Logistic, Family::SquaredHinge] {
            assert!(fit(&rows, family, Penalty::new(0.1, true)).is_ok());
        }

        let x: Vec<f64> = (0..10).flat_map(|i| [f64::from(i), 3.0, 1.0]).collect();
        let y: Vec<f64> = (0..10).map(f64::from).collect();
        let rows = InMemory::from_matrix(&x, &y, &[], 4);
        let error = fit(&rows, Family::Linear, free).unwrap_err();
        assert_eq!(error, Error::Singular { column: 2, of: vec![1] });
    }

    #[test]
    fn quasi_separable_classes_do_not_pass_for_a_fit() {
        // x = 0 holds both classes, all others are separated: the minimiser is at infinity all the same.
        let x = [-1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0];
        let y = [0.0, 0.0, 1.0, 1.0];
        for intercept in [true, false] {
            let rows = InMemory::from_matrix(&x, &y, &[], 4);
            let error = fit(&rows, Family::Logistic, Penalty::new(0.0, intercept)).unwrap_err();
            assert!(matches!(error, Error::NoConvergence { .. }), "{error:?}");
        }
    }

    #[test]
    fn a_huber_fit_starts_from_anywhere() {
        // A target far from zero in units of the threshold: no record lies within it where w is zero, and with the
        // smallest threshold few do at the minimiser.
        let (x, y) = table(200, 4, Family::Linear);
        let y: Vec<f64> =
            y.iter().enumerate().map(|(i, y)| 1e6 + 50.0 * y + if i % 7 == 0 { 3e4 } else { 0.0 }).collect();
        let rows = InMemory::from_matrix(&x, &y, &[], 64);
        for threshold in [1e9, 1e3, 30.0, 3.0] {
            let family = Family::Huber(Parameter::new(threshold).unwrap());
            for l2 in [0.0, 1e-3] {
                let actual = fit(&rows, family, Penalty::new(l2, true)).unwrap();
                assert!(actual.relative_gradient < 1e-10, "{threshold} {l2}: {}", actual.relative_gradient);
            }
        }
        let free = Penalty::new(0.0, true);
        // Least squares where nothing is beyond the threshold.
        let far = fit(&rows, Family::Huber(Parameter::new(1e9).unwrap()), free).unwrap();
        let plain = fit(&rows, Family::Linear, free).unwrap();
        assert!(far.w.iter().zip(&plain.w).all(|(a, b)| (a - b).abs() < 1e-6));
        // Every third value is the same and the others lie beyond: the columns are not determined within the threshold.
        let x: Vec<f64> = (0..30).flat_map(|i| [f64::from(i % 3 * i), 1.0]).collect();
        let y: Vec<f64> = (0..30).map(|i| f64::from(i % 3 * (i % 2 * 2 - 1)) * 1e3).collect();
        let narrow = Family::Huber(Parameter::new(1e-3).unwrap());
        let error = fit(&InMemory::from_matrix(&x, &y, &[], 30), narrow, free);
        assert!(matches!(error, Err(Error::OutOfRange { .. } | Error::NoConvergence { .. })), "{error:?}");
        // Dependent columns are named all the same.
        let x: Vec<f64> = (0..10).flat_map(|i| [f64::from(i), 3.0, 1.0]).collect();
        let error = fit(&InMemory::from_matrix(&x, &y[..10], &[], 4), narrow, free).unwrap_err();
        assert_eq!(error, Error::Singular { column: 2, of: vec![1] });
    }

    #[test]
    fn a_log_link_survives_any_unit_of_the_target() {
        let (x, _) = table(80, 3, Family::Linear);
        for family in [Family::Gamma, Family::Tweedie(Parameter::new(1.5).unwrap())] {
            for unit in [1e-9, 1.0, 1e9] {
                let target = |i: usize| unit * (2.0 * x[i * 3] + 0.2 * (i % 5) as f64).exp();
                let zero = |i: usize| family != Family::Gamma && i.is_multiple_of(3);
                let y: Vec<f64> = (0..80).map(|i| if zero(i) { 0.0 } else { target(i) }).collect();
                let rows = InMemory::from_matrix(&x, &y, &[], 33);
                let actual = fit(&rows, family, Penalty::new(0.0, true)).unwrap();
                assert!(actual.relative_gradient < 1e-12, "{family:?} {unit}: {}", actual.relative_gradient);
            }
        }
    }

    #[test]
    fn a_poisson_fit_survives_large_counts() {
        let x: Vec<f64> = (0..50).flat_map(|i| [f64::from(i) / 10.0, 1.0]).collect();
        let y: Vec<f64> = (0..50).map(|i| (f64::from(i) / 5.0 + 3.0).exp().round()).collect();
        let rows = InMemory::from_matrix(&x, &y, &[], 50);
        let fit = fit(&rows, Family::Poisson, Penalty::new(0.0, true)).unwrap();
        assert!((fit.w[0] - 2.0).abs() < 1e-3 && (fit.w[1] - 3.0).abs() < 1e-2);
    }
}
