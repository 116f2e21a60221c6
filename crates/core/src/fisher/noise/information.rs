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

use super::generate::{Dual, Generator};
use super::moved::{Sums, slice, third};
use super::worst::{Record, jacobian};
use super::{Group, weights::Spectrum};
use crate::glm::{C, Fit};
use crate::linalg::{
    axpy, dot, largest_eigenvalue, matmul, matmul_by_transposed, matmul_transposed, mirror_lower, norm, times,
};
use crate::rows::Block;
use crate::{Error, Result};

/// Above this many coefficients the p matrices of p × p numbers are not made.
pub(super) const MOST_COEFFICIENTS: usize = 256;
/// An atom with what its derivative needs: `k = ω(aθ x + r β + cυ x)`.
struct Bound {
    row: u64,
    weight: f64,
    theta: f64,
    beta: Vec<f64>,
    upsilon: f64,
}

/// The derivative of a shape with respect to any record.
pub(super) struct Derivative<'a> {
    fit: &'a Fit,
    p: usize,
    inverse: &'a [f64],
    /// `N = WH⁻¹` and `R = W⁻ᵀ`.
    n: Vec<f64>,
    r: Vec<f64>,
    /// The diagonal of `WMWᵀ` without the floor δ that was added to M as `δA⁻¹`.
    m: Vec<f64>,
    /// Weight of the equal weights on one record and direction.
    share: f64,
    /// Sums over the groups: `ΣBBᵀ`, `ΣBBᵀw`, `Σ‖Bᵀw‖²`, and of the squares of the labels' scales.
    bb: Vec<f64>,
    bw: Vec<f64>,
    w2: f64,
    l2: f64,
    /// `N(ΣBBᵀ)Nᵀ` and `N(ΣBBᵀw)`.
    nbbn: Vec<f64>,
    nbw: Vec<f64>,
    atoms: Vec<Bound>,
    /// One over n where A is that of the training rows, zero where it is public.
    cost_share: f64,
    /// `X⁽ˡ⁾` for unit changes of w, p × p².
    through_w: Vec<f64>,
    /// Their inner products, p × p.
    products: Vec<f64>,
    /// `1/(αᵢ + αⱼ)` and what dA is multiplied with, `(1 + δ/αᵢαⱼ)`.
    over: Vec<f64>,
    raised: Vec<f64>,
}

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
    let p = generator.fit.w.len();
    if p > MOST_COEFFICIENTS {
        return Err(Error::OutOfRange {
            what: "the number of coefficients of a shape from the data",
            value: p as f64,
            expected: "at most 256: take isotropic noise or a shape from a public table",
        });
    }
    let derivative = Derivative::new(generator, dual, public_cost)?;
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

impl<'a> Derivative<'a> {
    pub(super) fn new(generator: &'a Generator<'_>, dual: &Dual, public_cost: bool) -> Result<Self> {
        let (fit, groups) = (generator.fit, generator.groups);
        let p = fit.w.len();
        let spectrum = generator.spectrum_of(dual)?;
        let sums = Sums::of(generator.rows, fit)?;
        let (whitener, r) = (spectrum.whitener(&generator.lower), unwhitener(&spectrum, &generator.lower));
        let mut n = vec![0.0; p * p];
        matmul(&whitener, &generator.inverse, (p, p, p), &mut n);
        let alpha: Vec<f64> = spectrum.mu.iter().map(|mu| mu.sqrt()).collect();
        let floor = spectrum.floor;
        let dimensions: f64 = groups.iter().map(|g| g.dimensions() as f64).sum();
        let (mut bb, mut bw, mut w2, mut l2) = (vec![0.0; p * p], vec![0.0; p], 0.0, 0.0);
        for group in groups {
            (0..p * p).for_each(|ij| bb[ij] += dot(group.row(ij / p), group.row(ij % p)));
            axpy(1.0, &group.combined(&group.w), &mut bw);
            w2 += dot(&group.w, &group.w);
            l2 += group.label * group.label;
        }
        let atoms = dual.atoms.iter().map(|(atom, _)| {
            let group = &groups[atom.target];
            let length = norm(&atom.direction);
            let u: Vec<f64> = atom.direction.iter().map(|v| v / length).collect();
            Bound {
                row: atom.row,
                weight: atom.weight,
                theta: dot(&group.w, &u[..group.count]),
                beta: group.combined(&u[..group.count]),
                upsilon: if group.label == 0.0 { 0.0 } else { group.label * u[group.count] },
            }
        });
        let mut derivative = Self {
            fit,
            p,
            inverse: &generator.inverse,
            m: alpha.iter().map(|a| a - floor / a).collect(),
            share: dual.uniform / (sums.n as f64 * dimensions),
            nbbn: sandwich(&n, &bb, p),
            nbw: times(&n, &bw),
            n,
            r,
            bb,
            bw,
            w2,
            l2,
            atoms: atoms.collect(),
            cost_share: if public_cost { 0.0 } else { 1.0 / sums.n as f64 },
            through_w: vec![],
            products: vec![0.0; p * p],
            over: pairwise(&alpha, |a, b| 1.0 / (a + b)),
            raised: pairwise(&alpha, |a, b| 1.0 + floor / (a * b)),
        };
        derivative.through_w = derivative.of_coefficients(&sums, dual);
        let flat = &derivative.through_w;
        matmul_by_transposed(flat, flat, (p, p * p, p), &mut derivative.products);
        Ok(derivative)
    }

    /// `X` from `dH`, `dA`, `dK` as matrices.
    fn solved(&self, dh: &[f64], da: &[f64], dk: &[f64]) -> Vec<f64> {
        let p = self.p;
        let transposed: Vec<f64> = (0..p * p).map(|ij| self.r[ij % p * p + ij / p]).collect();
        // N dH W⁻¹ · WMWᵀ
        let (mut half, mut moved) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&self.n, dh, (p, p, p), &mut half);
        matmul(&half, &transposed, (p, p, p), &mut moved);
        let (k, a) = (sandwich(&self.n, dk, p), sandwich(&self.r, da, p));
        let mut x = vec![0.0; p * p];
        for i in 0..p {
            for j in 0..p {
                let ij = i * p + j;
                let dm = k[ij] - moved[ij] * self.m[j] - moved[j * p + i] * self.m[i];
                x[ij] = (dm - a[ij] * self.raised[ij]) * self.over[ij];
            }
        }
        x
    }

    /// `X⁽ˡ⁾` for every coefficient l.
    fn of_coefficients(&self, sums: &Sums, dual: &Dual) -> Vec<f64> {
        let p = self.p;
        let mut out = Vec::with_capacity(p * p * p);
        for l in 0..p {
            let dh = slice(&sums.cubes[0], l, p);
            let da: Vec<f64> = slice(&sums.cubes[1], l, p).iter().map(|v| v * self.cost_share).collect();
            let cube = slice(&sums.cubes[2], l, p);
            let ds = &sums.slope[l * p..(l + 1) * p];
            let dbw = &self.bb[l * p..(l + 1) * p];
            let mut dk = vec![0.0; p * p];
            for i in 0..p {
                for j in 0..p {
                    let ij = i * p + j;
                    let pairs =
                        ds[i] * self.bw[j] + self.bw[i] * ds[j] + sums.s[i] * dbw[j] + dbw[i] * sums.s[j];
                    let whole = 2.0 * sums.s[l] * self.bb[ij]
                        + pairs
                        + 2.0 * self.bw[l] * sums.curved[ij]
                        + 2.0 * self.w2 * cube[ij];
                    dk[ij] = self.share * whole;
                }
            }
            for (bound, (_, record)) in self.atoms.iter().zip(&dual.atoms) {
                let (k, z) = (self.kernel(bound, record), dot(&record.x, &self.fit.w));
                let t = self.fit.family.terms(z, record.y);
                let (dz, a1) = (record.x[l], third(self.fit.family, z, t.a));
                let on_x = a1 * dz * bound.theta + t.a * bound.beta[l];
                let change: Vec<f64> =
                    (0..p).map(|j| record.omega * (on_x * record.x[j] + t.a * dz * bound.beta[j])).collect();
                add_pair(&mut dk, bound.weight, &k, &change);
            }
            out.extend(self.solved(&dh, &da, &dk));
        }
        out
    }

    /// `k = ω(aθ x + r β + cυ x)`: an atom is `−H⁻¹k`.
    fn kernel(&self, bound: &Bound, record: &Record) -> Vec<f64> {
        let t = self.fit.family.terms(dot(&record.x, &self.fit.w), record.y);
        let on_x = t.a * bound.theta + C * bound.upsilon;
        record.x.iter().zip(&bound.beta).map(|(x, b)| record.omega * (on_x * x + t.r * b)).collect()
    }

    /// `½λ₁` of the Gram matrix of the X of all directions of a group of a record.
    #[cfg(test)]
    pub(super) fn information(&self, row: u64, record: &Record, group: &Group) -> Result<f64> {
        self.largest_of(&[(row, record.clone(), group)])
    }

    /// The largest of the information about some records.
    fn largest_of(&self, records: &[(u64, Record, &Group)]) -> Result<f64> {
        let p = self.p;
        // dw = Ju, and jacobian() gives −J.
        let moved: Vec<f64> =
            records.iter().flat_map(|(_, r, g)| jacobian(self.fit, self.inverse, g, r)).collect();
        let mut changes = vec![0.0; moved.len() * p];
        matmul(&moved, &self.through_w, (moved.len() / p, p, p * p), &mut changes);
        let (mut most, mut rest) = (0.0_f64, changes.as_mut_slice());
        for (row, record, group) in records {
            let m = group.dimensions();
            let (own, others) = rest.split_at_mut(m * p * p);
            rest = others;
            let local = Local::new(self, *row, record);
            for (k, x) in own.chunks_exact_mut(p * p).enumerate() {
                x.iter_mut().for_each(|v| *v = -*v);
                self.add_direct(&local, record, group.change(k), x);
                mirror_lower(x, p);
                let mean = (0..p).map(|i| x[i * p + i]).sum::<f64>() / p as f64;
                (0..p).for_each(|i| x[i * p + i] -= mean);
            }
            let mut gram = vec![0.0; m * m];
            matmul_by_transposed(own, own, (m, p * p, m), &mut gram);
            most = most.max(0.5 * if m == 1 { gram[0] } else { largest_eigenvalue(&gram, m)? });
        }
        Ok(most)
    }

    /// At least the information: `½(‖X_w‖ + ‖X_direct‖)²` in norms over all directions of the group.
    fn bound(&self, row: u64, record: &Record, group: &Group) -> f64 {
        let p = self.p;
        let moved = jacobian(self.fit, self.inverse, group, record);
        let through: f64 = moved.chunks_exact(p).map(|dw| dot(dw, &times(&self.products, dw))).sum();
        let local = Local::new(self, row, record);
        let mut x = vec![0.0; p * p];
        let mut direct = 0.0;
        for k in 0..group.dimensions() {
            x.fill(0.0);
            self.add_direct(&local, record, group.change(k), &mut x);
            for i in 0..p {
                let row = &x[i * p..=i * p + i];
                direct += 2.0 * dot(row, row) - row[i] * row[i];
            }
        }
        // Rounding must not exclude the largest.
        0.5 * (through.max(0.0).sqrt() + direct.sqrt()).powi(2) * (1.0 + 1e-9)
    }

    /// What a change ε of the record's values and dy of its label does to A and M with w held, added to the lower
    /// triangle of X.
    fn add_direct(&self, local: &Local, record: &Record, (epsilon, dy): (Vec<f64>, f64), x: &mut [f64]) {
        let (p, omega) = (self.p, record.omega);
        let (a, r) = (local.a, local.r);
        let dz = dot(&epsilon, &self.fit.w);
        let (da, dr) = (local.a1 * dz, a * dz + C * dy);
        let (eh, er) = (times(&self.n, &epsilon), times(&self.r, &epsilon));
        let (xh, xr, bh) = (&local.xh, &local.xr, &self.nbw);
        // Symmetric pairs c(uvᵀ + vuᵀ) of dM, and those of dA.
        let scaled = |v: &[f64]| -> Vec<f64> { v.iter().zip(&self.m).map(|(v, m)| v * m).collect() };
        let (xm, em) = (scaled(xr), scaled(&er));
        let share = self.share * omega * omega;
        let mut pairs: Vec<(f64, &[f64], &[f64])> = vec![
            (-omega * da, xh, &xm),
            (-omega * a, &eh, &xm),
            (-omega * a, xh, &em),
            (share * (da * r + a * dr), xh, bh),
            (share * a * r, &eh, bh),
            (share * a * da * self.w2, xh, xh),
            (share * (a * a * self.w2 + self.l2), &eh, xh),
        ];
        let own: Vec<(f64, Vec<f64>)> = local
            .atoms
            .iter()
            .map(|(bound, _, betah)| {
                let on_x = da * bound.theta;
                let on_e = a * bound.theta + C * bound.upsilon;
                let change = (0..p).map(|j| omega * (on_x * xh[j] + on_e * eh[j] + dr * betah[j])).collect();
                (bound.weight, change)
            })
            .collect();
        for ((weight, change), (_, k, _)) in own.iter().zip(&local.atoms) {
            pairs.push((*weight, k, change));
        }
        let diagonal = 2.0 * share * r * dr;
        let (mut dm, mut cost) = (vec![0.0; p], vec![0.0; p]);
        for i in 0..p {
            let row = i * p..=i * p + i;
            let (dm, cost) = (&mut dm[..=i], &mut cost[..=i]);
            dm.iter_mut().zip(&self.nbbn[row.clone()]).for_each(|(d, n)| *d = diagonal * n);
            for (c, u, v) in &pairs {
                axpy(c * u[i], &v[..=i], dm);
                axpy(c * v[i], &u[..=i], dm);
            }
            cost.fill(0.0);
            axpy(self.cost_share * (da * xr[i] + a * er[i]), &xr[..=i], cost);
            axpy(self.cost_share * a * xr[i], &er[..=i], cost);
            let factors = self.raised[row.clone()].iter().zip(&self.over[row.clone()]);
            for (((x, dm), cost), (raised, over)) in x[row].iter_mut().zip(&*dm).zip(&*cost).zip(factors) {
                *x += (dm - cost * raised) * over;
            }
        }
    }
}

/// A function of every pair.
fn pairwise(values: &[f64], of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    values.iter().flat_map(|a| values.iter().map(|b| of(*a, *b)).collect::<Vec<_>>()).collect()
}

/// A record where the noise is white.
struct Local<'a> {
    r: f64,
    a: f64,
    a1: f64,
    /// `Nx` and `Rx`.
    xh: Vec<f64>,
    xr: Vec<f64>,
    /// Atoms of this record, with `Nk` and `Nβ`.
    atoms: Vec<(&'a Bound, Vec<f64>, Vec<f64>)>,
}

impl<'a> Local<'a> {
    fn new(derivative: &'a Derivative<'_>, row: u64, record: &Record) -> Self {
        let z = dot(&record.x, &derivative.fit.w);
        let t = derivative.fit.family.terms(z, record.y);
        let on = |v: &[f64]| times(&derivative.n, v);
        let own = derivative.atoms.iter().filter(|b| b.row == row);
        Self {
            r: t.r,
            a: t.a,
            a1: third(derivative.fit.family, z, t.a),
            xh: on(&record.x),
            xr: times(&derivative.r, &record.x),
            atoms: own.map(|b| (b, on(&derivative.kernel(b, record)), on(&b.beta))).collect(),
        }
    }
}

/// `out += c(uvᵀ + vuᵀ)`.
fn add_pair(out: &mut [f64], c: f64, u: &[f64], v: &[f64]) {
    let p = u.len();
    for i in 0..p {
        for j in 0..p {
            out[i * p + j] += c * (u[i] * v[j] + v[i] * u[j]);
        }
    }
}

/// `N m Nᵀ`.
fn sandwich(n: &[f64], m: &[f64], p: usize) -> Vec<f64> {
    let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
    matmul(n, m, (p, p, p), &mut half);
    matmul_by_transposed(&half, n, (p, p, p), &mut out);
    out
}

/// `R = W⁻ᵀ = diag(μ^¼) VᵀL⁻¹`.
fn unwhitener(spectrum: &Spectrum, lower: &[f64]) -> Vec<f64> {
    let p = spectrum.mu.len();
    let inverse = super::gaussian::triangular_inverse(lower, p);
    let mut out = vec![0.0; p * p];
    matmul_transposed(&spectrum.v, &inverse, (p, p, p), &mut out);
    for (row, mu) in out.chunks_exact_mut(p.max(1)).zip(&spectrum.mu) {
        row.iter_mut().for_each(|v| *v *= mu.sqrt().sqrt());
    }
    out
}
