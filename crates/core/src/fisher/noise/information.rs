//! What the covariance itself gives away: `½ tr(Σ⁻¹∂ₐΣ Σ⁻¹∂_bΣ)` for two values a, b of a record.
//!
//! The shape solves `ΣAΣ = M` (it is the geometric mean of `A⁻¹` and M), so `dΣ AΣ + ΣA dΣ = dM − Σ dA Σ`. Where the noise
//! is white (W) and A diagonal, `W⁻ᵀAW⁻¹ = diag(α) = WMWᵀ`, that is solved entry by entry:
//!
//! ```text
//! X = W dΣ Wᵀ,   Xᵢⱼ = (W dM Wᵀ − W⁻ᵀ dA W⁻¹)ᵢⱼ / (αᵢ + αⱼ),   information ½‖X − (tr X/p) I‖²
//! ```
//!
//! The trace is taken off because the shape is held at determinant one and its scale lies on a public grid. `dM` and `dA`
//! have a direct part, of rank a few, and one through the minimiser, which every record moves: `dw = Ju`, linear in dw,
//! so the p matrices `X⁽ˡ⁾` of unit changes of w are made once (from sums of third order where the curvature varies).
//! Weights and directions of an optimised shape lie on public grids and are held.

use super::classes;
use super::derivative::Columns;
use super::generate::{Dual, Generator};
use super::group::Group;
use super::worst::Record;
use crate::glm::Fitted;
use crate::linalg::{dot, largest_eigenvalue, matmul, matmul_by_transposed, mirror_lower, times};
use crate::rows::Block;
use crate::{Error, Result};

/// Above this many coefficients the p matrices of p × p numbers are not made.
pub(super) const MOST_COEFFICIENTS: usize = 256;
/// Records whose information is computed first, those with the largest bounds: it then excludes most of the others.
const FIRST: usize = 32;

/// Records whose exact information shares one product with the p matrices of p × p numbers.
const AT_ONCE: usize = 32;

/// Largest information of the covariance about the directions of one group of one record, as a share of its target
/// `η²` (directions are scaled by their targets).
///
/// A bound for every record comes first (O(p²) a direction, one number a record and group kept); the information itself
/// (O(p³)) is computed where the bound exceeds the largest found so far, so the answer is exact.
pub(super) fn largest(generator: &Generator<'_>, dual: &Dual, public_cost: bool) -> Result<f64> {
    let p = generator.p();
    if p > MOST_COEFFICIENTS {
        return Err(Error::ShapeTooLarge { coefficients: p, most: MOST_COEFFICIENTS });
    }
    match generator.fit {
        Fitted::Glm(fit) => largest_by(generator, &Columns::new(generator, fit, dual, public_cost)?),
        Fitted::Softmax(fit) => {
            largest_by(generator, &classes::Contrasts::new(generator, fit, dual, public_cost)?)
        }
    }
}

fn largest_by(generator: &Generator<'_>, derivative: &impl Derivative) -> Result<f64> {
    let groups = generator.groups;
    let mut bounds: Vec<f64> = Vec::with_capacity(generator.rows.len() as usize * groups.len());
    generator.rows.fold(
        Vec::new,
        |part, block| {
            for_each(block, groups, |row, record, group| {
                part.push(derivative.bound(row, record, group));
                Ok(())
            })
        },
        |part| {
            bounds.extend(part);
            Ok(())
        },
    )?;
    let mut order = bounds.clone();
    order.sort_by(|a, b| b.total_cmp(a));
    let threshold = order.get(FIRST).copied().unwrap_or(0.0);
    let at = |row: u64, group: &Group| {
        let place = groups.iter().position(|g| std::ptr::eq(g, group)).unwrap_or(0);
        bounds[row as usize * groups.len() + place]
    };
    let mut most = 0.0_f64;
    for first in [true, false] {
        let known = most;
        generator.rows.fold(
            || known,
            |best, block| {
                let mut waiting: Vec<(u64, Record, &Group)> = vec![];
                for_each(block, groups, |row, record, group| {
                    let bound = at(row, group);
                    if (bound >= threshold) == first && bound > *best {
                        waiting.push((row, record.clone(), group));
                    }
                    if waiting.len() == AT_ONCE {
                        *best = best.max(derivative.largest_of(&std::mem::take(&mut waiting))?);
                    }
                    Ok(())
                })?;
                *best = best.max(derivative.largest_of(&waiting)?);
                Ok(())
            },
            |best| {
                most = most.max(best);
                Ok(())
            },
        )?;
    }
    Ok(most)
}

/// Every record of a block with every group.
fn for_each<'g>(
    block: &Block,
    groups: &'g [Group],
    mut step: impl FnMut(u64, &Record, &'g Group) -> Result<()>,
) -> Result<()> {
    for i in 0..block.len() {
        let record = Record { x: block.row(i).to_vec(), y: block.y[i], omega: block.weight_of(i) };
        for group in groups {
            step(block.first_row + i as u64, &record, group)?;
        }
    }
    Ok(())
}

/// `X⁽ˡ⁾` for unit changes of every coefficient.
pub(super) struct Through {
    /// q × q².
    each: Vec<f64>,
    /// Their inner products, q × q.
    products: Vec<f64>,
}

impl Through {
    pub(super) fn new(each: Vec<f64>, q: usize) -> Self {
        let mut products = vec![0.0; q * q];
        matmul_by_transposed(&each, &each, (q, q * q, q), &mut products);
        Self { each, products }
    }
}

/// The derivative of a shape with respect to any record.
pub(super) trait Derivative: Sync {
    /// Free coefficients q.
    fn size(&self) -> usize;

    /// `X` of unit changes of the coefficients.
    fn through(&self) -> &Through;

    /// `−J` of a record and group, one row a direction.
    fn jacobian(&self, record: &Record, group: &Group) -> Vec<f64>;

    /// What all directions of a record share.
    type Local<'l>
    where
        Self: 'l;

    /// See [`Derivative::Local`].
    fn local<'l>(&'l self, row: u64, record: &'l Record) -> Self::Local<'l>;

    /// What direction k of a group does to A and M with the coefficients held: X, added to the lower triangle of `x`.
    fn add_direct(&self, local: &Self::Local<'_>, group: &Group, k: usize, x: &mut [f64]);

    /// `½λ₁` of the Gram matrix of the X of all directions of a group of a record.
    #[cfg(test)]
    fn information(&self, row: u64, record: &Record, group: &Group) -> Result<f64> {
        self.largest_of(&[(row, record.clone(), group)])
    }

    /// The largest of the information about some records.
    fn largest_of(&self, records: &[(u64, Record, &Group)]) -> Result<f64> {
        let q = self.size();
        // dw = Ju, and jacobian() gives −J.
        let moved: Vec<f64> = records.iter().flat_map(|(_, r, g)| self.jacobian(r, g)).collect();
        let mut changes = vec![0.0; moved.len() * q];
        matmul(&moved, &self.through().each, (moved.len() / q, q, q * q), &mut changes);
        let (mut most, mut rest) = (0.0_f64, changes.as_mut_slice());
        for (row, record, group) in records {
            let m = group.dimensions();
            let (own, others) = rest.split_at_mut(m * q * q);
            rest = others;
            let local = self.local(*row, record);
            for (k, x) in own.chunks_exact_mut(q * q).enumerate() {
                x.iter_mut().for_each(|v| *v = -*v);
                self.add_direct(&local, group, k, x);
                mirror_lower(x, q);
                let mean = (0..q).map(|i| x[i * q + i]).sum::<f64>() / q as f64;
                (0..q).for_each(|i| x[i * q + i] -= mean);
            }
            let mut gram = vec![0.0; m * m];
            matmul_by_transposed(own, own, (m, q * q, m), &mut gram);
            most = most.max(0.5 * if m == 1 { gram[0] } else { largest_eigenvalue(&gram, m)? });
        }
        Ok(most)
    }

    /// At least the information: `½(‖X_w‖ + ‖X_direct‖)²` in norms over all directions of the group.
    fn bound(&self, row: u64, record: &Record, group: &Group) -> f64 {
        let q = self.size();
        let moved = self.jacobian(record, group);
        let through: f64 =
            moved.chunks_exact(q).map(|dw| dot(dw, &times(&self.through().products, dw))).sum();
        let (local, mut x) = (self.local(row, record), vec![0.0; q * q]);
        let mut direct = 0.0;
        for k in 0..group.dimensions() {
            x.fill(0.0);
            self.add_direct(&local, group, k, &mut x);
            for i in 0..q {
                let row = &x[i * q..=i * q + i];
                direct += 2.0 * dot(row, row) - row[i] * row[i];
            }
        }
        // Rounding must not exclude the largest.
        0.5 * (through.max(0.0).sqrt() + direct.sqrt()).powi(2) * (1.0 + 1e-9)
    }
}
