//! The records that bind: one pass in the basis where the noise is white.

use super::{Group, Protected, Target};
use crate::Result;
use crate::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use crate::fisher::{Directions, Geometry, Records, Release};
use crate::glm::{Fit, Fitted};
use crate::linalg::{dot, matmul, matmul_by_transposed, matmul_transposed, symmetric_eigen};
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

/// η of the groups of a block of records, before their scales.
#[derive(Debug, Default)]
pub(super) struct Etas {
    /// Of whole records, where a target is about them.
    pub(super) whole: Vec<f64>,
    /// Of attributes, records × attributes.
    pub(super) attributes: Vec<f64>,
    /// Of labels, where a target is about them alone.
    pub(super) label: Vec<f64>,
}

/// Which groups are about what.
struct Places<'a> {
    groups: &'a [Group],
    whole: Option<usize>,
    /// Groups that are attributes, in the order of the geometry's.
    attributes: Vec<usize>,
    labels: Vec<usize>,
}

/// The `most` worst pairs of record and group under noise whitened by `whitener` (W, q × q), worst first; at least
/// one where there are rows.
pub(super) fn worst(
    rows: &dyn Rows,
    fit: Fitted<'_>,
    (targets, groups): (&[Target], &[Group]),
    whitener: &[f64],
    most: usize,
) -> Result<Vec<Worst>> {
    let whole = targets.iter().position(|t| matches!(t.protected, Protected::Record { .. }));
    let label_secret = whole.is_some_and(|k| groups[k].label != 0.0);
    let attributes = (0..groups.len()).filter(|&k| Some(k) != whole && groups[k].count > 0).collect();
    let labels = (0..groups.len()).filter(|&k| groups[k].count == 0).collect();
    let places = Places { groups, whole, attributes, labels };
    let of = |&k: &usize| Directions { basis: groups[k].basis.clone(), count: groups[k].count };
    let directions: Vec<Directions> = places.attributes.iter().map(of).collect();
    let release = Release { sigma: 1.0, releases: 1, label_secret };
    match fit {
        Fitted::Glm(fit) => {
            let geometry = Geometry::prepared(fit, &directions, release, Some(whitener))?;
            collected(rows, &places, most, |block, (etas, records): &mut (Etas, Records)| {
                match whole {
                    Some(_) if directions.is_empty() => geometry.eta(block, records),
                    Some(_) => geometry.records(block, records),
                    None => geometry.attributes_alone(block, records),
                }
                etas.whole.clone_from(&records.eta);
                etas.attributes.clone_from(&records.attribute_eta);
                etas.label.clear();
                if !places.labels.is_empty() {
                    etas.label.extend((0..block.len()).map(|i| geometry.label_eta(records, i)));
                }
                Ok(())
            })
        }
        Fitted::Softmax(fit) => {
            let geometry = SoftmaxGeometry::whitened(fit, &directions, release, whitener)?;
            collected(rows, &places, most, |block, (etas, records): &mut (Etas, SoftmaxRecords)| {
                geometry.records(block, records)?;
                etas.whole.clone_from(&records.eta);
                etas.attributes.clone_from(&records.attribute_eta);
                etas.label.clone_from(&records.label_eta);
                Ok(())
            })
        }
    }
}

/// The worst records by what `measure` finds of every block.
fn collected<R: Default + Send>(
    rows: &dyn Rows,
    places: &Places<'_>,
    most: usize,
    measure: impl Fn(&Block, &mut (Etas, R)) -> Result<()> + Sync,
) -> Result<Vec<Worst>> {
    let groups = places.groups;
    let mut top: Vec<Worst> = vec![];
    rows.fold(
        || (vec![], <(Etas, R)>::default()),
        |(top, measured): &mut (Vec<Worst>, (Etas, R)), block| {
            measure(block, measured)?;
            let etas = &measured.0;
            let mut offer = |value: f64, i: usize, group: usize| {
                if top.len() < most || value > top[top.len() - 1].value {
                    let record =
                        Record { x: block.row(i).to_vec(), y: block.y[i], omega: block.weight_of(i) };
                    insert(top, Worst { value, row: block.first_row + i as u64, group, record }, most);
                }
            };
            let count = places.attributes.len();
            for i in 0..block.len() {
                if let Some(k) = places.whole {
                    offer(etas.whole[i] * groups[k].scale, i, k);
                }
                for (place, &k) in places.attributes.iter().enumerate() {
                    offer(etas.attributes[i * count + place], i, k);
                }
                for &k in &places.labels {
                    offer(etas.label[i] * groups[k].scale, i, k);
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

/// `−J` of a record and group, transposed: one row a direction, those of the label last.
pub(super) fn jacobian(fit: Fitted<'_>, inverse: &[f64], group: &Group, record: &Record) -> Vec<f64> {
    let (q, m) = (fit.free(), group.dimensions());
    let inner = match fit {
        Fitted::Glm(fit) => inner(fit, group, record),
        Fitted::Softmax(fit) => super::classes::inner(fit, group, record),
    };
    let mut out = vec![0.0; m * q];
    matmul(&inner, inverse, (m, q, q), &mut out);
    out
}

/// `ω[a x(Bᵀw)ᵀ + rB, c x]`, transposed.
fn inner(fit: &Fit, group: &Group, record: &Record) -> Vec<f64> {
    let (p, m) = (fit.w.len(), group.dimensions());
    let t = fit.family.terms(dot(&record.x, &fit.w), record.y);
    let mut inner = vec![0.0; m * p];
    for k in 0..group.count {
        for j in 0..p {
            let value = t.a * record.x[j] * group.w[k] + t.r * group.basis[j * group.count + k];
            inner[k * p + j] = record.omega * value;
        }
    }
    if group.labels > 0 {
        let last = group.count * p;
        (0..p).for_each(|j| inner[last + j] = record.omega * group.label * t.c * record.x[j]);
    }
    inner
}

/// The direction in which the noise protects a record worst: the top right singular vector of `WJ`.
pub(super) fn direction(
    fit: Fitted<'_>,
    inverse: &[f64],
    whitener: &[f64],
    group: &Group,
    record: &Record,
) -> Result<Vec<f64>> {
    let (q, m) = (fit.free(), group.dimensions());
    if m == 1 {
        return Ok(vec![1.0]);
    }
    let jacobian = jacobian(fit, inverse, group, record);
    let mut white = vec![0.0; m * q];
    matmul_by_transposed(&jacobian, whitener, (m, q, q), &mut white);
    let mut gram = vec![0.0; m * m];
    matmul_by_transposed(&white, &white, (m, q, m), &mut gram);
    let (_, vectors) = symmetric_eigen(&gram, m)?;
    let first: Vec<f64> = (0..m).map(|k| vectors[k * m]).collect();
    // The sign does not matter to the atom; fixed, so that the same input gives the same bits.
    let sign = first.iter().copied().fold(0.0_f64, |s, v| if v.abs() > s.abs() { v } else { s }).signum();
    Ok(first.iter().map(|v| v * sign).collect())
}

/// `Ju` up to its sign.
pub(super) fn along(fit: Fitted<'_>, inverse: &[f64], group: &Group, record: &Record, u: &[f64]) -> Vec<f64> {
    let (q, m) = (fit.free(), group.dimensions());
    let mut out = vec![0.0; q];
    matmul_transposed(&jacobian(fit, inverse, group, record), u, (q, m, 1), &mut out);
    out
}
