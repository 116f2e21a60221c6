//! The records that bind: one pass in the basis where the noise is white.

use super::{Group, Protected, Target};
use crate::Result;
use crate::fisher::{Directions, Geometry, Records, Release};
use crate::glm::{C, Fit};
use crate::linalg::{Cholesky, dot, matmul, matmul_by_transposed, matmul_transposed, symmetric_eigen};
use crate::rows::{Block, Rows};
use crate::vector::{RowProducts, dispatch};

/// A record and a group of its values, with `√λ₁(JᵀΣ⁻¹J)` over the target.
#[derive(Debug, Clone)]
pub(super) struct Worst {
    pub(super) value: f64,
    pub(super) row: u64,
    pub(super) group: usize,
    pub(super) record: Record,
}

/// One record with what its Jacobian needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) x: Vec<f64>,
    pub(super) y: f64,
    pub(super) omega: f64,
}

/// The `most` worst pairs of record and group under noise whitened by `whitener` (W, p × p), worst first; at least
/// one where there are rows.
pub(super) fn worst(
    rows: &dyn Rows,
    fit: &Fit,
    (targets, groups): (&[Target], &[Group]),
    whitener: &[f64],
    most: usize,
) -> Result<Vec<Worst>> {
    let whole = targets.iter().position(|t| matches!(t.protected, Protected::Record { .. }));
    let label_secret = whole.is_some_and(|k| groups[k].label != 0.0);
    // Groups that are attributes, in the order of the geometry's.
    let attributes: Vec<usize> =
        (0..groups.len()).filter(|&k| Some(k) != whole && groups[k].count > 0).collect();
    let directions: Vec<Directions> = attributes
        .iter()
        .map(|&k| Directions { basis: groups[k].basis.clone(), count: groups[k].count })
        .collect();
    let release = Release { sigma: 1.0, releases: 1, label_secret };
    let geometry = Geometry::prepared(fit, &directions, release, Some(whitener))?;
    let mut top: Vec<Worst> = vec![];
    rows.fold(
        || (vec![], Records::default()),
        |(top, records): &mut (Vec<Worst>, Records), block| {
            match whole {
                Some(_) if attributes.is_empty() => geometry.eta(block, records),
                Some(_) => geometry.records(block, records),
                None => geometry.attributes_alone(block, records),
            }
            let mut offer = |value: f64, i: usize, group: usize| {
                if top.len() < most || value > top[top.len() - 1].value {
                    let record =
                        Record { x: block.row(i).to_vec(), y: block.y[i], omega: block.weight_of(i) };
                    insert(top, Worst { value, row: block.first_row + i as u64, group, record }, most);
                }
            };
            for i in 0..block.len() {
                if let Some(k) = whole {
                    offer(records.eta[i] * groups[k].scale, i, k);
                }
                for (place, &k) in attributes.iter().enumerate() {
                    offer(records.attribute_eta[i * attributes.len() + place], i, k);
                }
                for (k, group) in groups.iter().enumerate().filter(|(_, g)| g.count == 0) {
                    offer(geometry.label_eta(records, i) * group.scale, i, k);
                }
            }
            Ok(())
        },
        |(part, _)| {
            part.into_iter().for_each(|worst| insert(&mut top, worst, most));
            Ok(())
        },
    )?;
    Ok(top)
}

/// Keeps the list sorted, the worst first, earlier rows before later ones of the same value.
fn insert(top: &mut Vec<Worst>, worst: Worst, most: usize) {
    let at = top.partition_point(|t| t.value >= worst.value);
    top.insert(at, worst);
    top.truncate(most);
}

impl Geometry {
    /// η of the attributes of every record of a block, without that of the whole records.
    fn attributes_alone(&self, block: &Block, out: &mut Records) {
        let (n, p) = (block.len(), block.width);
        self.terms(block, out);
        out.v.resize(n * p, 0.0);
        matmul(&block.x, &self.t, (n, p, p), &mut out.v);
        let Records { v, h2, vu, .. } = out;
        dispatch(RowProducts { x: v, w: &self.u, dots: vu, squares: h2 });
        out.projected.resize(n * self.projections_width, 0.0);
        matmul_by_transposed(&block.x, &self.projections, (n, p, self.projections_width), &mut out.projected);
        self.attributes_of_records(block, out);
    }
}

/// `−J = ωH⁻¹[a x(Bᵀw)ᵀ + rB, c x]` of a record and group, transposed: one row a direction, the label last.
pub(super) fn jacobian(fit: &Fit, inverse: &[f64], group: &Group, record: &Record) -> Vec<f64> {
    let (p, m) = (fit.w.len(), group.dimensions());
    let t = fit.family.terms(dot(&record.x, &fit.w), record.y);
    let mut inner = vec![0.0; m * p];
    for k in 0..group.count {
        for j in 0..p {
            let value = t.a * record.x[j] * group.w[k] + t.r * group.basis[j * group.count + k];
            inner[k * p + j] = record.omega * value;
        }
    }
    if group.label != 0.0 {
        let last = group.count * p;
        (0..p).for_each(|j| inner[last + j] = record.omega * group.label * C * record.x[j]);
    }
    let mut out = vec![0.0; m * p];
    matmul(&inner, inverse, (m, p, p), &mut out);
    out
}

/// The direction in which the noise protects a record worst: the top right singular vector of `WJ`.
pub(super) fn direction(
    fit: &Fit,
    inverse: &[f64],
    whitener: &[f64],
    group: &Group,
    record: &Record,
) -> Result<Vec<f64>> {
    let (p, m) = (fit.w.len(), group.dimensions());
    if m == 1 {
        return Ok(vec![1.0]);
    }
    let jacobian = jacobian(fit, inverse, group, record);
    let mut white = vec![0.0; m * p];
    matmul_by_transposed(&jacobian, whitener, (m, p, p), &mut white);
    let mut gram = vec![0.0; m * m];
    matmul_by_transposed(&white, &white, (m, p, m), &mut gram);
    let (_, q) = symmetric_eigen(&gram, m)?;
    let first: Vec<f64> = (0..m).map(|k| q[k * m]).collect();
    // The sign does not matter to the atom; fixed, so that the same input gives the same bits.
    let sign = first.iter().copied().fold(0.0_f64, |s, v| if v.abs() > s.abs() { v } else { s }).signum();
    Ok(first.iter().map(|v| v * sign).collect())
}

/// `Ju` up to its sign.
pub(super) fn along(fit: &Fit, inverse: &[f64], group: &Group, record: &Record, u: &[f64]) -> Vec<f64> {
    let (p, m) = (fit.w.len(), group.dimensions());
    let mut out = vec![0.0; p];
    matmul_transposed(&jacobian(fit, inverse, group, record), u, (p, m, 1), &mut out);
    out
}

/// `H⁻¹` of a fit.
pub(super) fn inverse_hessian(fit: &Fit) -> Result<Vec<f64>> {
    Ok(Cholesky::new(&fit.hessian, fit.w.len())?.inverse())
}
