//! A softmax model in public units: the change of basis of one weight vector, for each of them.

use super::Units;
use crate::glm::Penalty;
use crate::glm::softmax::{SoftmaxFit, contrasts};
use crate::linalg::matmul;
use crate::{Error, Result};

/// A softmax model in public units.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftmaxInUnits {
    /// Coefficients, Hessian and gradient in public units. Its `penalty.l2` is λ; the strength of the penalty on each
    /// column is not λ but in `strength`, and stands in the Hessian.
    pub fit: SoftmaxFit,
    /// `nλt²` of each data column.
    pub strength: Vec<f64>,
}

impl Units {
    /// A softmax model in public units: no pass over the data. With `x̃ = M x`, `Θ̃ = ΘM⁻¹`, `H̃ = (I ⊗ M) H (I ⊗ Mᵀ)`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a model of other columns.
    pub fn softmax(&self, encoded: &SoftmaxFit) -> Result<SoftmaxInUnits> {
        let (p, d, k, q) = (encoded.width, self.len(), encoded.classes - 1, encoded.coefficients());
        let expected = encoded.penalty.data_width(p);
        if d != expected || encoded.penalty.intercept != self.intercept {
            return Err(Error::Shape { subject: "the scalings of columns", actual: d, expected });
        }
        let (t, o) = (&self.stretch, &self.offset);
        let mut theta = encoded.theta.clone();
        for row in theta.chunks_exact_mut(p) {
            row.iter_mut().zip(t).for_each(|(v, t)| *v /= t);
            if self.intercept {
                row[d] -= o.iter().zip(&*row).map(|(o, v)| o * v).sum::<f64>();
            }
        }
        // M from the left on every column, then from the right on every row.
        let apply = |v: &mut [f64], stride: usize| {
            for a in 0..k {
                let last = if self.intercept { v[(a * p + d) * stride] } else { 0.0 };
                (0..d).for_each(|j| v[(a * p + j) * stride] = t[j] * v[(a * p + j) * stride] + o[j] * last);
            }
        };
        let mut gradient = encoded.gradient.clone();
        apply(&mut gradient, 1);
        let mut hessian = encoded.hessian.clone();
        (0..q).for_each(|column| apply(&mut hessian[column..], q));
        hessian.chunks_exact_mut(q).for_each(|row| apply(row, 1));
        let mut w = vec![0.0; encoded.classes * p];
        matmul(&contrasts(encoded.classes), &theta, (encoded.classes, k, p), &mut w);
        let base = encoded.n as f64 * encoded.penalty.l2;
        let strength = t.iter().map(|t| base * t * t).collect();
        let penalty = Penalty { intercept: self.intercept, ..encoded.penalty };
        let fit = SoftmaxFit { w, theta, hessian, gradient, penalty, ..encoded.clone() };
        Ok(SoftmaxInUnits { fit, strength })
    }
}
