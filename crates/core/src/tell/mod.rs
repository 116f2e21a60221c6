//! Two values of a record told apart: what *every* attacker can do at most, biased or not, near or far.
//!
//! η is local. Where the derivative of the model vanishes at a record (x = ±1, y = 3x, ridge) it is zero, and refitting still
//! tells every candidate from every other. Somebody who knows all else, and for whom the value is a or b with equal
//! chances, is right with probability at most
//!
//! ```text
//! P ≤ Φ(δ√K/2),   δ² = (w_a − w_b)ᵀ Σ⁻¹ (w_a − w_b)
//! ```
//!
//! after K releases with noise of covariance Σ, `w_a` and `w_b` being the models fitted with each value in place (Neyman and
//! Pearson: the likelihood ratio attains it). Locally `δ ≈ η|a − b|`. Everything here is in public units
//! ([`crate::units`]); a column scaled by its own data is scaled anew for each candidate, and a candidate under which a rounded
//! unit would have been another is told apart for certain.
//!
//! `step` has the models by rank-two updates: exact for linear regression, with a proven limit on their error for the
//! others. `glance` has the distances of every record from products of these, O(1) a candidate. `refit` has models by Newton's
//! method. `told_apart` glances at every record, and fits those that may be the worst. `balanced` is about models whose weights
//! depend on every record: they are balanced and fitted again, as a whole, for every record and value.

mod balanced;
mod glance;
mod refit;
mod softmax;
mod step;
mod worst;

pub use balanced::BalancedTelling;
pub use softmax::SoftmaxTelling;
pub(crate) use softmax::{reduced_gradients, solve};
pub use worst::{Certainty, Look, Separation, Telling, told_apart};

use crate::claim::{Bound, Theorem};
use crate::linalg::{Cholesky, condition, dot, largest_eigenvalue, matmul, norm, symmetric_eigen, times};
use crate::rows::Rows;
use crate::special::{normal_cdf, normal_quantile};
use crate::units::{FitInUnits, Units};
use crate::{Error, Result};
use std::borrow::Cow;
use std::ops::Range;

/// The noise on the coefficients, in public units.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// The same standard deviation everywhere, independent.
    Isotropic(f64),
    /// A standard deviation a coefficient, independent.
    Columns(Vec<f64>),
    /// Any covariance, by its inverse `Σ⁻¹`, p × p.
    Precision(Vec<f64>),
    /// The same by a matrix W with `WᵀW = Σ⁻¹`, p × p: nothing is lost to rounding however far Σ is from round.
    Whitener(Vec<f64>),
}

impl Noise {
    /// `Σ^{−½}`, p × p.
    fn whitening(&self, p: usize) -> Result<Vec<f64>> {
        let diagonal = |sd: &dyn Fn(usize) -> f64| -> Result<Vec<f64>> {
            let mut out = vec![0.0; p * p];
            for j in 0..p {
                crate::dp::positive("the standard deviation of the noise", sd(j))?;
                out[j * p + j] = 1.0 / sd(j);
            }
            Ok(out)
        };
        let shape = |actual: usize, expected: usize| {
            if actual == expected {
                Ok(())
            } else {
                Err(Error::Shape { subject: "the noise", actual, expected })
            }
        };
        match self {
            Self::Isotropic(sigma) => diagonal(&|_| *sigma),
            Self::Columns(sd) => {
                shape(sd.len(), p)?;
                diagonal(&|j| sd[j])
            }
            Self::Whitener(whitener) => {
                shape(whitener.len(), p * p)?;
                match whitener.iter().find(|v| !v.is_finite()) {
                    Some(&value) => {
                        let expected = "a matrix of finite numbers";
                        Err(Error::OutOfRange { subject: "the noise", value, expected })
                    }
                    None => Ok(whitener.clone()),
                }
            }
            Self::Precision(precision) => {
                shape(precision.len(), p * p)?;
                let (values, q) = symmetric_eigen(precision, p)?;
                if let Some(&value) = values.iter().find(|v| **v < 0.0) {
                    let expected = "a positive definite precision";
                    return Err(Error::OutOfRange { subject: "the noise", value, expected });
                }
                // The transpose of Q diag(√v) is as good as the symmetric root: only lengths count.
                Ok((0..p * p).map(|ij| values[ij / p].sqrt() * q[ij % p * p + ij / p]).collect())
            }
        }
    }
}

/// What is to be told apart, in public units and in the columns of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Two values of a number.
    Number {
        /// Its column.
        column: usize,
        /// The two values.
        values: [f64; 2],
    },
    /// Any two levels of a category.
    Levels {
        /// Its columns.
        columns: Range<usize>,
        /// How each level is encoded: levels × columns.
        encodings: Vec<f64>,
    },
    /// Any two of some classes of a label that is coded from 0.
    Classes {
        /// Their codes.
        codes: Vec<usize>,
    },
    /// Two values of the label.
    Label {
        /// As the model codes them.
        values: [f64; 2],
    },
    /// Any two of some values of a number and of the one that each record has: a value far out is told apart however near typical
    /// ones are, and models need not move one way as a value grows.
    Own {
        /// The column of a number; the label without one.
        column: Option<usize>,
        /// The other values; the record's own comes after them.
        others: Vec<f64>,
    },
}

/// A record with one candidate in place.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    columns: Range<usize>,
    x: Vec<f64>,
    y: Option<f64>,
    /// Whether it is the value that the record has, whatever stands in `x` and `y`.
    own: bool,
}

impl Candidate {
    /// The candidate as it is for one record.
    fn of(&self, x: &[f64], y: f64) -> Cow<'_, Self> {
        if !self.own {
            return Cow::Borrowed(self);
        }
        let columns = self.columns.clone();
        Cow::Owned(Self { x: x[columns.clone()].to_vec(), y: self.y.map(|_| y), columns, own: false })
    }
}

impl Question {
    fn candidates(&self, d: usize) -> Result<Vec<Candidate>> {
        let number = |x: f64, y: Option<f64>, columns: Range<usize>| Candidate {
            x: if columns.is_empty() { vec![] } else { vec![x] },
            y,
            columns,
            own: false,
        };
        let all = match self {
            Self::Number { column, values } => {
                values.iter().map(|v| number(*v, None, *column..column + 1)).collect()
            }
            Self::Label { values } => values.iter().map(|v| number(0.0, Some(*v), 0..0)).collect(),
            Self::Own { column, others } => {
                let place = |value: f64| match column {
                    Some(column) => number(value, None, *column..column + 1),
                    None => number(0.0, Some(value), 0..0),
                };
                let own = Candidate { own: true, ..place(0.0) };
                others.iter().map(|value| place(*value)).chain([own]).collect()
            }
            Self::Classes { codes } => {
                codes.iter().map(|class| number(0.0, Some(*class as f64), 0..0)).collect()
            }
            Self::Levels { columns, encodings } => {
                let m = columns.len();
                if m == 0 || !encodings.len().is_multiple_of(m) || encodings.len() < 2 * m {
                    let (all, expected) = (encodings.len(), 2 * m.max(1));
                    return Err(Error::Shape { subject: "the encodings of levels", actual: all, expected });
                }
                let each = encodings.chunks_exact(m);
                each.map(|x| Candidate { columns: columns.clone(), x: x.to_vec(), y: None, own: false })
                    .collect::<Vec<_>>()
            }
        };
        if all.len() < 2 {
            let (all, expected) = (all.len(), 2);
            return Err(Error::Shape { subject: "the values to tell apart", actual: all, expected });
        }
        for c in &all {
            if c.columns.end > d {
                return Err(Error::Shape {
                    subject: "the columns of a question",
                    actual: c.columns.end,
                    expected: d,
                });
            }
            if let Some(&value) = c.x.iter().chain(&c.y).find(|v| !v.is_finite()) {
                let expected = "a finite number";
                return Err(Error::OutOfRange { subject: "a value to tell apart", value, expected });
            }
        }
        Ok(all)
    }
}

/// What somebody who asks whether the value is a or b, both equally likely, is right with at most, δ standard deviations of
/// noise apart.
///
/// # Guarantee
/// For every attacker, who may know everything but which of the two it is, and sees `releases` independent releases.
pub fn two_values(delta: f64, releases: u32) -> Bound {
    let z = 0.5 * certain(delta) * f64::from(releases).sqrt();
    Bound::share_at_most(normal_cdf(z), Theorem::TwoValues)
}

/// A distance that is no number tells everything apart (`max` would make it nothing).
fn certain(delta: f64) -> f64 {
    if delta.is_nan() { f64::INFINITY } else { delta.max(0.0) }
}

/// The same for `levels` equally likely values, no two more than δ apart: by Jung's theorem they lie in a ball of radius
/// `δ√((M − 1)/2M)`, and one reference at its centre gives `Φ(Φ⁻¹(1/M) + r)`.
///
/// # Guarantee
/// As [`two_values`], of which it is the case of two levels.
pub fn any_level(levels: usize, delta: f64, releases: u32) -> Bound {
    let m = levels.max(1) as f64;
    let r = certain(delta) * f64::from(releases).sqrt() * ((m - 1.0) / (2.0 * m)).sqrt();
    let value = if r.is_finite() { normal_cdf(normal_quantile(1.0 / m) + r) } else { 1.0 };
    Bound::share_at_most(value, Theorem::OneCentre)
}

/// What does not depend on the record.
#[derive(Debug)]
struct Models<'a> {
    model: &'a FitInUnits,
    units: &'a Units,
    inverse: Vec<f64>,
    /// `Σ^{−½}`.
    whitening: Vec<f64>,
    isotropic: Option<f64>,
    /// `max ‖x‖²` in the norm of H⁻¹, over rows that count.
    reach: f64,
    /// `max ‖v‖_{Σ⁻¹}/‖v‖_H`.
    strain: f64,
    /// What the fit left of its gradient, in the norm of H⁻¹.
    rest: f64,
    /// Lengths are rounded up by this share: rounding grows with the condition of H.
    slack: f64,
}

impl<'a> Models<'a> {
    fn new(rows: &dyn Rows, model: &'a FitInUnits, units: &'a Units, noise: &Noise) -> Result<Self> {
        let fit = &model.fit;
        let p = fit.w.len();
        if rows.width() != p || units.len() != fit.penalty.data_width(p) {
            return Err(Error::Shape { subject: "the rows", actual: rows.width(), expected: p });
        }
        if !fit.family.self_concordant() {
            return Err(Error::NotApplicable {
                subject: "telling two values apart by refits",
                setting: "a loss whose curvature jumps",
                advice: "how far a refit is from exact is not known: take another model",
            });
        }
        let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
        let whitening = noise.whitening(p)?;
        let mut reach = 0.0_f64;
        rows.fold(
            || (0.0_f64, vec![]),
            |(most, h), block| {
                h.resize(block.len() * p, 0.0);
                matmul(&block.x, &inverse, (block.len(), p, p), h);
                for i in (0..block.len()).filter(|&i| block.weight_of(i) > 0.0) {
                    *most = most.max(dot(block.row(i), &h[i * p..(i + 1) * p]));
                }
                Ok(())
            },
            |(most, _)| {
                reach = reach.max(most);
                Ok(())
            },
        )?;
        let strain = match noise {
            Noise::Isotropic(sigma) => largest_eigenvalue(&inverse, p)?.sqrt() / sigma,
            Noise::Columns(_) | Noise::Precision(_) | Noise::Whitener(_) => {
                let (mut half, mut sandwich) = (vec![0.0; p * p], vec![0.0; p * p]);
                matmul(&whitening, &inverse, (p, p, p), &mut half);
                crate::linalg::matmul_by_transposed(&half, &whitening, (p, p, p), &mut sandwich);
                largest_eigenvalue(&sandwich, p)?.sqrt()
            }
        };
        let rest = dot(&fit.gradient, &times(&inverse, &fit.gradient)).max(0.0).sqrt();
        let (condition, _) = condition(&fit.hessian, &inverse, p)?;
        Ok(Self {
            strain,
            rest: if fit.family.constant_curvature() { 0.0 } else { rest },
            isotropic: match noise {
                Noise::Isotropic(sigma) => Some(*sigma),
                Noise::Columns(_) | Noise::Precision(_) | Noise::Whitener(_) => None,
            },
            slack: 1.0 + 16.0 * f64::EPSILON * condition,
            model,
            units,
            inverse,
            whitening,
            reach,
        })
    }

    fn p(&self) -> usize {
        self.model.fit.w.len()
    }

    /// `√(vᵀΣ⁻¹v)`, rounded up.
    fn length(&self, v: &[f64]) -> f64 {
        let plain = match self.isotropic {
            Some(sigma) => norm(v) / sigma,
            None => norm(&times(&self.whitening, v)),
        };
        plain * self.slack
    }

    /// How much the penalty on one column grows: [`penalty_change`].
    fn penalty_change(&self, x: &[f64], candidate: &Candidate) -> Option<Option<(usize, f64)>> {
        let fit = &self.model.fit;
        penalty_change(self.units, (fit.n as f64, fit.penalty.l2), x, candidate)
    }
}

/// How much the penalty on one column grows: `nλ(t'² − t²)`, with its column. `None` for the candidate shows that
/// public units would have been others.
fn penalty_change(
    units: &Units,
    (n, l2): (f64, f64),
    x: &[f64],
    candidate: &Candidate,
) -> Option<Option<(usize, f64)>> {
    let mut change = None;
    for (j, &to) in candidate.columns.clone().zip(&candidate.x) {
        if !units.survive(j, n, x[j], to) {
            return None;
        }
        if units.is_own(j) && to != x[j] {
            // Only numbers are scaled by their own data, and they have one column.
            let (_, variance) = units.moments_after(j, n, x[j], to);
            if candidate.columns.len() > 1 {
                return None;
            }
            change = Some((j, n * l2 * (variance - units.stretch(j).powi(2))));
        }
    }
    Some(change)
}

/// A record with a candidate in place.
fn replaced(x: &[f64], y: f64, candidate: &Candidate) -> (Vec<f64>, f64) {
    let mut changed = x.to_vec();
    changed[candidate.columns.clone()].copy_from_slice(&candidate.x);
    (changed, candidate.y.unwrap_or(y))
}
