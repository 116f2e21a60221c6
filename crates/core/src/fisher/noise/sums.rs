//! One pass over the training rows: the cost matrix A and the parts of M with equal weights.

use super::Group;
use super::generate::inverse_hessian;
use crate::glm::{Fit, Fitted};
use crate::linalg::{axpy, dot, gram_add_lower, matmul_parallel, mirror_lower};
use crate::rows::Rows;
use crate::{Error, Result};

/// A, and M with equal weights on every record and on every direction of the groups, of total trace one.
pub(super) fn cost_and_uniform(
    rows: &dyn Rows,
    fit: Fitted<'_>,
    groups: &[Group],
) -> Result<(Vec<f64>, Vec<f64>)> {
    let q = fit.free();
    let (cost, inner) = match fit {
        Fitted::Glm(fit) => {
            let sums = Sums::of(rows, fit)?;
            (sums.cost(), sums.inner(groups))
        }
        Fitted::Softmax(fit) => super::classes::sums(rows, fit, groups)?,
    };
    let inverse = inverse_hessian(fit)?;
    let (mut half, mut m) = (vec![0.0; q * q], vec![0.0; q * q]);
    matmul_parallel(&inverse, &inner, (q, q, q), &mut half);
    matmul_parallel(&half, &inverse, (q, q, q), &mut m);
    mirror_lower(&mut m, q);
    Ok((cost, m))
}

/// Sums from which A and the equally weighted M follow (MATHS §1.3).
#[derive(Debug, Clone)]
struct Sums {
    p: usize,
    rows: u64,
    /// `Σω²r²`.
    r2: f64,
    /// `Σω²ar x`.
    s: Vec<f64>,
    /// `Σω²a² xxᵀ`.
    curved: Vec<f64>,
    /// `Σω²c² xxᵀ`.
    labels: Vec<f64>,
    /// `Σa xxᵀ`.
    cost: Vec<f64>,
}

impl Sums {
    fn new(p: usize) -> Self {
        let square = || vec![0.0; p * p];
        Self { p, rows: 0, r2: 0.0, s: vec![0.0; p], curved: square(), labels: square(), cost: square() }
    }

    fn of(rows: &dyn Rows, fit: &Fit) -> Result<Self> {
        let p = fit.w.len();
        if rows.width() != p {
            return Err(Error::Shape { subject: "the coefficients", actual: p, expected: rows.width() });
        }
        let mut total = Self::new(p);
        rows.fold(
            || (Self::new(p), Vec::new()),
            |(sums, scratch), block| {
                let n = block.len();
                let (mut a2, mut c2, mut a1) =
                    (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
                for i in 0..n {
                    let t = fit.family.terms(dot(block.row(i), &fit.w), block.y[i]);
                    let omega2 = block.weight_of(i).powi(2);
                    sums.r2 += omega2 * t.r * t.r;
                    axpy(omega2 * t.a * t.r, block.row(i), &mut sums.s);
                    a2.push(omega2 * t.a * t.a);
                    c2.push(omega2 * t.c * t.c);
                    a1.push(t.a);
                }
                sums.rows += n as u64;
                gram_add_lower(&block.x, Some(&a2), p, scratch, &mut sums.curved);
                gram_add_lower(&block.x, Some(&c2), p, scratch, &mut sums.labels);
                gram_add_lower(&block.x, Some(&a1), p, scratch, &mut sums.cost);
                Ok(())
            },
            |(sums, _)| {
                total.rows += sums.rows;
                total.r2 += sums.r2;
                axpy(1.0, &sums.s, &mut total.s);
                axpy(1.0, &sums.curved, &mut total.curved);
                axpy(1.0, &sums.labels, &mut total.labels);
                axpy(1.0, &sums.cost, &mut total.cost);
                Ok(())
            },
        )?;
        if total.rows == 0 {
            return Err(Error::Empty);
        }
        for gram in [&mut total.curved, &mut total.labels, &mut total.cost] {
            mirror_lower(gram, p);
        }
        Ok(total)
    }

    /// `A = Σa xxᵀ/n`: the Hessian of the mean loss, without weights, since that is how predictions are judged.
    fn cost(&self) -> Vec<f64> {
        self.cost.iter().map(|v| v / self.rows as f64).collect()
    }

    /// `K` of `M = H⁻¹KH⁻¹`.
    fn inner(&self, groups: &[Group]) -> Vec<f64> {
        let p = self.p;
        let share = 1.0 / (self.rows as f64 * groups.iter().map(|g| g.dimensions() as f64).sum::<f64>());
        let mut k = vec![0.0; p * p];
        for group in groups {
            let w2 = dot(&group.w, &group.w);
            let bw = group.combined(&group.w);
            for i in 0..p {
                for j in 0..p {
                    let ij = i * p + j;
                    let bb = dot(group.row(i), group.row(j));
                    k[ij] += self.r2 * bb
                        + self.s[i] * bw[j]
                        + bw[i] * self.s[j]
                        + w2 * self.curved[ij]
                        + group.label * group.label * self.labels[ij];
                }
            }
        }
        k.iter_mut().for_each(|v| *v *= share);
        k
    }
}
