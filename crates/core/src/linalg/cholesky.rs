//! The Cholesky factor of a symmetric positive definite matrix, and what solves with it.

use super::{PIECES, axpy, check_finite, dot, view};
use crate::{Error, Result};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::{Accum, Mat};

/// A column counts as a combination of the others when at most this share of its square is left without them,
/// times the number of columns: rounding in a Gram matrix leaves about that much of an exactly dependent one.
const DEPENDENT: f64 = 64.0 * f64::EPSILON;

/// Cholesky factor of a symmetric positive definite matrix, with its rows and columns scaled to a unit diagonal
/// first, so that columns in very different units do not look dependent.
#[derive(Debug, Clone)]
pub struct Cholesky {
    p: usize,
    /// Lower factor of `D⁻¹AD⁻¹`, row-major.
    lower: Vec<f64>,
    /// `D`, the square roots of the diagonal.
    scale: Vec<f64>,
}

impl Cholesky {
    /// Factors `a` (p × p, both triangles); a dependent column is named with the columns it depends on.
    pub fn new(a: &[f64], p: usize) -> Result<Self> {
        check_finite("the Hessian", a)?;
        let mut scale = Vec::with_capacity(p);
        for j in 0..p {
            let diagonal = a[j * p + j];
            if diagonal <= 0.0 {
                return Err(Error::Singular { column: j, of: vec![] });
            }
            scale.push(diagonal.sqrt());
        }
        let mut unit = a.to_vec();
        for i in 0..p {
            for j in 0..p {
                unit[i * p + j] /= scale[i] * scale[j];
            }
        }
        let tolerance = DEPENDENT * p as f64;
        let mut lower = vec![0.0; p * p];
        let mut l = view(&unit, p).to_owned();
        let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(p, PIECES, Default::default()));
        let stack = MemStack::new(&mut memory);
        let complete =
            match cholesky_in_place(l.as_mut(), Default::default(), PIECES, stack, Default::default()) {
                Ok(_) => {
                    for i in 0..p {
                        for j in 0..=i {
                            lower[i * p + j] = l[(i, j)];
                        }
                    }
                    (0..p).all(|j| lower[j * p + j].powi(2) > tolerance)
                }
                Err(_) => false,
            };
        if complete { Ok(Self { p, lower, scale }) } else { Err(dependent_column(&unit, p, tolerance)) }
    }

    /// The lower factor L of `A = LLᵀ` in the units of A, row-major.
    pub fn lower(&self) -> Vec<f64> {
        let p = self.p;
        (0..p * p).map(|ij| self.lower[ij] * self.scale[ij / p]).collect()
    }

    /// `A⁻¹ b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let p = self.p;
        let mut x: Vec<f64> = b.iter().zip(&self.scale).map(|(v, d)| v / d).collect();
        forward(&self.lower, p, &mut x);
        backward(&self.lower, p, &mut x);
        x.iter().zip(&self.scale).map(|(v, d)| v / d).collect()
    }

    /// `A⁻¹`, both triangles.
    pub fn inverse(&self) -> Vec<f64> {
        let p = self.p;
        let mut inverse_lower = Mat::<f64>::identity(p, p);
        faer::linalg::triangular_solve::solve_lower_triangular_in_place(
            view(&self.lower, p),
            inverse_lower.as_mut(),
            PIECES,
        );
        // A⁻¹ = D⁻¹ L⁻ᵀ L⁻¹ D⁻¹
        let mut product = Mat::<f64>::zeros(p, p);
        faer::linalg::matmul::matmul(
            product.as_mut(),
            Accum::Replace,
            inverse_lower.transpose(),
            inverse_lower.as_ref(),
            1.0,
            PIECES,
        );
        let mut out = vec![0.0; p * p];
        for i in 0..p {
            for j in 0..p {
                out[i * p + j] = product[(i.max(j), i.min(j))] / (self.scale[i] * self.scale[j]);
            }
        }
        out
    }
}

/// `a⁻¹ b` for a 2 × 2 matrix; none where its determinant is rounding alone.
pub(crate) fn solve2(a: [f64; 4], b: [f64; 2]) -> Option<[f64; 2]> {
    let det = a[0] * a[3] - a[1] * a[2];
    let size = (a[0] * a[3]).abs() + (a[1] * a[2]).abs();
    if det.is_nan() || det.abs() <= 1e-13 * size {
        return None;
    }
    Some([(b[0] * a[3] - a[1] * b[1]) / det, (a[0] * b[1] - b[0] * a[2]) / det])
}

/// `x ← L⁻¹x` with the leading rows of a factor whose rows are p long.
fn forward(lower: &[f64], p: usize, x: &mut [f64]) {
    for i in 0..x.len() {
        let row = &lower[i * p..i * p + i];
        x[i] = (x[i] - dot(row, &x[..i])) / lower[i * p + i];
    }
}

/// `x ← L⁻ᵀx`, likewise.
fn backward(lower: &[f64], p: usize, x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        x[i] /= lower[i * p + i];
        let (head, tail) = x.split_at_mut(i);
        axpy(-tail[0], &lower[i * p..i * p + i], head);
    }
}

/// The first column of a unit-diagonal matrix that depends on earlier ones, and those it depends on.
fn dependent_column(unit: &[f64], p: usize, tolerance: f64) -> Error {
    let mut lower = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..=i {
            let s = unit[i * p + j] - dot(&lower[i * p..i * p + j], &lower[j * p..j * p + j]);
            if j < i {
                lower[i * p + j] = s / lower[j * p + j];
            } else if s > tolerance {
                lower[i * p + i] = s.sqrt();
            } else {
                // Row i is L₁₁⁻¹a; the combination itself is c = L₁₁⁻ᵀ(L₁₁⁻¹a).
                let mut c = lower[i * p..i * p + i].to_vec();
                backward(&lower, p, &mut c);
                let of = (0..i).filter(|&k| c[k].abs() > 1e-6).collect();
                return Error::Singular { column: i, of };
            }
        }
    }
    // Unreachable in exact arithmetic: the blocked factorisation found a bad pivot where this one did not.
    Error::Singular { column: p - 1, of: (0..p - 1).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dense_gram, example};
    use super::super::{matmul, times};
    use super::*;

    #[test]
    fn cholesky_solves_and_inverts_even_in_wild_units() {
        let p = 12;
        let mut x = example(60, p);
        for row in x.chunks_exact_mut(p) {
            row[0] *= 1e9;
            row[5] *= 1e-7;
        }
        let a = dense_gram(&x, &[1.0; 60], p);
        let factor = Cholesky::new(&a, p).unwrap();
        let truth: Vec<f64> = (0..p).map(|i| (i as f64 - 3.0) / a[i * p + i].sqrt()).collect();
        let solved = factor.solve(&times(&a, &truth));
        assert!((0..p).all(|i| (solved[i] - truth[i]).abs() * a[i * p + i].sqrt() < 1e-11));
        let inverse = factor.inverse();
        let mut identity = vec![0.0; p * p];
        matmul(&a, &inverse, (p, p, p), &mut identity);
        for i in 0..p {
            for j in 0..p {
                let unit = identity[i * p + j] * (a[j * p + j] / a[i * p + i]).sqrt();
                assert!((unit - f64::from(u8::from(i == j))).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn a_dependent_column_is_named_with_what_it_depends_on() {
        let p = 5;
        let mut x = example(30, p);
        for row in x.chunks_exact_mut(p) {
            row[3] = 2.0 * row[0] - row[2];
        }
        let a = dense_gram(&x, &[1.0; 30], p);
        assert_eq!(Cholesky::new(&a, p).unwrap_err(), Error::Singular { column: 3, of: vec![0, 2] });
        for row in x.chunks_exact_mut(p) {
            row[3] = 0.0;
        }
        let a = dense_gram(&x, &[1.0; 30], p);
        assert_eq!(Cholesky::new(&a, p).unwrap_err(), Error::Singular { column: 3, of: vec![] });
    }
}
