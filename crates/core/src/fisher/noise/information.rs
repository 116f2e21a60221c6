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
use super::worst::{Record, jacobian};
use super::{Group, weights::Spectrum};
use crate::glm::{C, Family, Fit};
use crate::linalg::{
    axpy, dot, gram_add_lower, largest_eigenvalue, matmul, matmul_by_transposed, matmul_transposed,
    mirror_lower, norm, times,
};
use crate::rows::{Block, Rows};
use crate::{Error, Result};

/// Above this many coefficients the p matrices of p × p numbers are not made.
pub(super) const MOST_COEFFICIENTS: usize = 256;
/// Rows whose products of pairs are formed together.
const TOGETHER: usize = 128;

/// `∂a/∂z`.
fn third(family: Family, z: f64, a: f64) -> f64 {
    match family {
        Family::Linear => 0.0,
        // a(1 − 2s) = −a tanh(z/2)
        Family::Logistic => -a * (0.5 * z).tanh(),
        Family::Poisson => a,
    }
}

/// Sums over the rows that a change of w moves.
struct Sums {
    n: u64,
    /// `Σω²ar x`, `Σω²(a² + ra')xxᵀ`, `Σω²a²xxᵀ`.
    s: Vec<f64>,
    slope: Vec<f64>,
    curved: Vec<f64>,
    /// `Σωa'`, `Σa'`, `Σω²aa'` times `x ⊗ (xxᵀ)`, p × p(p+1)/2 each; empty where the curvature is constant.
    cubes: [Vec<f64>; 3],
}

impl Sums {
    fn new(p: usize, constant: bool) -> Self {
        let cube = || vec![0.0; if constant { 0 } else { p * p * (p + 1) / 2 }];
        Self {
            n: 0,
            s: vec![0.0; p],
            slope: vec![0.0; p * p],
            curved: vec![0.0; p * p],
            cubes: [cube(), cube(), cube()],
        }
    }

    fn of(rows: &impl Rows, fit: &Fit) -> Result<Self> {
        let (p, constant) = (fit.w.len(), fit.family.constant_curvature());
        let mut total = Self::new(p, constant);
        rows.fold(
            || (Self::new(p, constant), Scratch::default()),
            |(sums, scratch), block| {
                sums.add(fit, block, scratch);
                Ok(())
            },
            |(sums, _)| {
                total.n += sums.n;
                axpy(1.0, &sums.s, &mut total.s);
                axpy(1.0, &sums.slope, &mut total.slope);
                axpy(1.0, &sums.curved, &mut total.curved);
                total.cubes.iter_mut().zip(&sums.cubes).for_each(|(t, s)| axpy(1.0, s, t));
                Ok(())
            },
        )?;
        mirror_lower(&mut total.slope, p);
        mirror_lower(&mut total.curved, p);
        Ok(total)
    }

    fn add(&mut self, fit: &Fit, block: &Block, scratch: &mut Scratch) {
        let p = block.width;
        scratch.weights.iter_mut().for_each(Vec::clear);
        for i in 0..block.len() {
            let (x, omega) = (block.row(i), block.weight_of(i));
            let z = dot(x, &fit.w);
            let t = fit.family.terms(z, block.y[i]);
            let (a1, omega2) = (third(fit.family, z, t.a), omega * omega);
            axpy(omega2 * t.a * t.r, x, &mut self.s);
            let values =
                [omega2 * (t.a * t.a + t.r * a1), omega2 * t.a * t.a, omega * a1, a1, omega2 * t.a * a1];
            scratch.weights.iter_mut().zip(values).for_each(|(w, v)| w.push(v));
        }
        self.n += block.len() as u64;
        let [slope, curved, cubes @ ..] = &scratch.weights;
        gram_add_lower(&block.x, Some(slope), p, &mut scratch.gram, &mut self.slope);
        gram_add_lower(&block.x, Some(curved), p, &mut scratch.gram, &mut self.curved);
        if self.cubes[0].is_empty() {
            return;
        }
        let width = p * (p + 1) / 2;
        for first in (0..block.len()).step_by(TOGETHER) {
            let last = (first + TOGETHER).min(block.len());
            scratch.pairs.clear();
            for i in first..last {
                let x = block.row(i);
                (0..p).for_each(|j| scratch.pairs.extend(x[..=j].iter().map(|v| v * x[j])));
            }
            for (weights, cube) in cubes.iter().zip(&mut self.cubes) {
                scratch.weighted.clear();
                for (i, weight) in weights[first..last].iter().enumerate() {
                    scratch.weighted.extend(block.row(first + i).iter().map(|v| v * weight));
                }
                scratch.part.resize(p * width, 0.0);
                matmul_transposed(
                    &scratch.weighted,
                    &scratch.pairs,
                    (p, last - first, width),
                    &mut scratch.part,
                );
                axpy(1.0, &scratch.part, cube);
            }
        }
    }
}

#[derive(Default)]
struct Scratch {
    weights: [Vec<f64>; 5],
    gram: Vec<f64>,
    pairs: Vec<f64>,
    weighted: Vec<f64>,
    part: Vec<f64>,
}

/// Slice `l` of a cube as a symmetric matrix.
fn slice(cube: &[f64], l: usize, p: usize) -> Vec<f64> {
    let mut out = vec![0.0; p * p];
    if cube.is_empty() {
        return out;
    }
    let width = p * (p + 1) / 2;
    let mut next = cube[l * width..(l + 1) * width].iter();
    for j in 0..p {
        for i in 0..=j {
            let value = next.next().copied().unwrap_or(0.0);
            out[j * p + i] = value;
            out[i * p + j] = value;
        }
    }
    out
}

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
    alpha: Vec<f64>,
    /// The diagonal of `WMWᵀ`, and the floor δ that was added to M as `δA⁻¹`.
    m: Vec<f64>,
    floor: f64,
    /// Weight of the equal weights on one record and direction.
    share: f64,
    /// Sums over the groups: `ΣBBᵀ`, `ΣBBᵀw`, `Σ‖Bᵀw‖²`, and of the squares of the labels' scales.
    bb: Vec<f64>,
    bw: Vec<f64>,
    w2: f64,
    l2: f64,
    /// `N(ΣBBᵀ)Nᵀ`.
    nbbn: Vec<f64>,
    atoms: Vec<Bound>,
    /// One over n where A is that of the training rows, zero where it is public.
    cost_share: f64,
    /// `X⁽ˡ⁾` for unit changes of w, p × p².
    through_w: Vec<f64>,
}

/// Largest information of the covariance about the directions of one group of one record, as a share of its target
/// `η²` (directions are scaled by their targets).
pub(super) fn largest<R: Rows>(generator: &Generator<'_, R>, dual: &Dual, public_cost: bool) -> Result<f64> {
    let p = generator.fit.w.len();
    if p > MOST_COEFFICIENTS {
        return Err(Error::OutOfRange {
            what: "the number of coefficients of a shape from the data",
            value: p as f64,
            expected: "at most 256: take isotropic noise or a shape from a public table",
        });
    }
    let derivative = Derivative::new(generator, dual, public_cost)?;
    let mut most = 0.0_f64;
    generator.rows.fold(
        || 0.0_f64,
        |best, block| {
            for i in 0..block.len() {
                let record = Record { x: block.row(i).to_vec(), y: block.y[i], omega: block.weight_of(i) };
                for group in generator.groups {
                    *best = best.max(derivative.information(block.first_row + i as u64, &record, group)?);
                }
            }
            Ok(())
        },
        |best| {
            most = most.max(best);
            Ok(())
        },
    )?;
    Ok(most)
}

impl<'a> Derivative<'a> {
    pub(super) fn new<R: Rows>(
        generator: &'a Generator<'_, R>,
        dual: &Dual,
        public_cost: bool,
    ) -> Result<Self> {
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
            alpha,
            floor,
            share: dual.uniform / (sums.n as f64 * dimensions),
            nbbn: sandwich(&n, &bb, p),
            n,
            r,
            bb,
            bw,
            w2,
            l2,
            atoms: atoms.collect(),
            cost_share: if public_cost { 0.0 } else { 1.0 / sums.n as f64 },
            through_w: vec![],
        };
        derivative.through_w = derivative.of_coefficients(&sums, dual);
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
                x[ij] = self.entry(i, j, dm, a[ij]);
            }
        }
        x
    }

    fn entry(&self, i: usize, j: usize, dm: f64, da: f64) -> f64 {
        let (ai, aj) = (self.alpha[i], self.alpha[j]);
        (dm - da * (1.0 + self.floor / (ai * aj))) / (ai + aj)
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
    pub(super) fn information(&self, row: u64, record: &Record, group: &Group) -> Result<f64> {
        let (p, m) = (self.p, group.dimensions());
        let changes = self.changes(row, record, group);
        if m == 1 {
            return Ok(0.5 * dot(&changes, &changes));
        }
        let mut gram = vec![0.0; m * m];
        matmul_by_transposed(&changes, &changes, (m, p * p, m), &mut gram);
        Ok(0.5 * largest_eigenvalue(&gram, m)?)
    }

    /// X without its trace for every direction of a group of a record, one a row.
    fn changes(&self, row: u64, record: &Record, group: &Group) -> Vec<f64> {
        let (p, m) = (self.p, group.dimensions());
        // dw = Ju, and jacobian() gives −J.
        let moved = jacobian(self.fit, self.inverse, group, record);
        let mut out = vec![0.0; m * p * p];
        matmul(&moved, &self.through_w, (m, p, p * p), &mut out);
        let local = Local::new(self, row, record);
        for (k, x) in out.chunks_exact_mut(p * p).enumerate() {
            x.iter_mut().for_each(|v| *v = -*v);
            let (epsilon, dy): (Vec<f64>, f64) = if k < group.count {
                ((0..p).map(|j| group.basis[j * group.count + k]).collect(), 0.0)
            } else {
                (vec![0.0; p], group.label)
            };
            self.add_direct(&local, record, &epsilon, dy, x);
            let mean = (0..p).map(|i| x[i * p + i]).sum::<f64>() / p as f64;
            (0..p).for_each(|i| x[i * p + i] -= mean);
        }
        out
    }

    /// What a change ε of the record's values and dy of its label does to A and M with w held.
    fn add_direct(&self, local: &Local, record: &Record, epsilon: &[f64], dy: f64, x: &mut [f64]) {
        let (p, omega) = (self.p, record.omega);
        let (a, r) = (local.a, local.r);
        let dz = dot(epsilon, &self.fit.w);
        let (da, dr) = (local.a1 * dz, a * dz + C * dy);
        let (eh, er) = (times(&self.n, epsilon), times(&self.r, epsilon));
        let (xh, xr, bh) = (&local.xh, &local.xr, &local.bh);
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
        for i in 0..p {
            for j in 0..=i {
                let ij = i * p + j;
                let dm: f64 = diagonal * self.nbbn[ij]
                    + pairs.iter().map(|(c, u, v)| c * (u[i] * v[j] + v[i] * u[j])).sum::<f64>();
                let cost = self.cost_share * (da * xr[i] * xr[j] + a * (er[i] * xr[j] + xr[i] * er[j]));
                let value = self.entry(i, j, dm, cost);
                x[ij] += value;
                if i != j {
                    x[j * p + i] += value;
                }
            }
        }
    }
}

/// A record where the noise is white.
struct Local<'a> {
    r: f64,
    a: f64,
    a1: f64,
    /// `Nx`, `Rx`, `N(ΣBBᵀw)`.
    xh: Vec<f64>,
    xr: Vec<f64>,
    bh: Vec<f64>,
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
            bh: on(&derivative.bw),
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
