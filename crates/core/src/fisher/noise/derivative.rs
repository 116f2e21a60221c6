//! The derivative of a shape with one vector of coefficients: its direct part has rank a few.

use super::generate::{Dual, Generator};
use super::group::{Group, squares};
use super::information::{Derivative, Through};
use super::moved::{Sums, slice};
use super::white::{White, add_pair, sandwich};
use super::worst::{Record, jacobian};
use crate::Result;
use crate::glm::Fit;
use crate::linalg::{axpy, dot, norm, times};

/// An atom with what its derivative needs: `k = ω(aθ x + r β + cυ x)`.
struct Bound {
    row: u64,
    weight: f64,
    theta: f64,
    beta: Vec<f64>,
    upsilon: f64,
}

/// The derivative of a shape with respect to any record.
pub(super) struct Columns<'a> {
    fit: &'a Fit,
    p: usize,
    inverse: &'a [f64],
    white: White,
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
    through: Through,
}

impl<'a> Columns<'a> {
    pub(super) fn new(
        generator: &'a Generator<'_>,
        fit: &'a Fit,
        dual: &Dual,
        public_cost: bool,
    ) -> Result<Self> {
        let groups = generator.groups;
        let p = fit.w.len();
        let (white, sums) = (White::new(generator, dual)?, Sums::of(generator.rows, fit)?);
        let dimensions: f64 = groups.iter().map(|g| g.dimensions() as f64).sum();
        let bb = squares(groups, p);
        let (mut bw, mut w2, mut l2) = (vec![0.0; p], 0.0, 0.0);
        for group in groups {
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
            share: dual.uniform / (sums.n as f64 * dimensions),
            nbbn: sandwich(&white.n, &bb, p),
            nbw: times(&white.n, &bw),
            white,
            bb,
            bw,
            w2,
            l2,
            atoms: atoms.collect(),
            cost_share: if public_cost { 0.0 } else { 1.0 / sums.n as f64 },
            through: Through::new(vec![], 0),
        };
        derivative.through = Through::new(derivative.of_coefficients(&sums, dual), p);
        Ok(derivative)
    }

    /// `X⁽ˡ⁾` for every coefficient l.
    fn of_coefficients(&self, sums: &Sums, dual: &Dual) -> Vec<f64> {
        let p = self.p;
        let mut out = Vec::with_capacity(p * p * p);
        for l in 0..p {
            let dh = slice(&sums.cubes[0], l, p);
            let da: Vec<f64> = slice(&sums.cubes[1], l, p).iter().map(|v| v * self.cost_share).collect();
            let (cube, of_label) = (slice(&sums.cubes[2], l, p), slice(&sums.cubes[3], l, p));
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
                        + 2.0 * self.w2 * cube[ij]
                        + 2.0 * self.l2 * of_label[ij];
                    dk[ij] = self.share * whole;
                }
            }
            for (bound, (_, record)) in self.atoms.iter().zip(&dual.atoms) {
                let (k, z) = (self.kernel(bound, record), dot(&record.x, &self.fit.w));
                let t = self.fit.family.terms(z, record.y);
                let (dz, (a1, c1)) = (record.x[l], self.fit.family.third(z, t));
                let on_x = dz * (a1 * bound.theta + c1 * bound.upsilon) + t.a * bound.beta[l];
                let change: Vec<f64> =
                    (0..p).map(|j| record.omega * (on_x * record.x[j] + t.a * dz * bound.beta[j])).collect();
                add_pair(&mut dk, bound.weight, &k, &change);
            }
            out.extend(self.white.solved(&dh, &da, &dk));
        }
        out
    }

    /// `k = ω(aθ x + r β + cυ x)`: an atom is `−H⁻¹k`.
    fn kernel(&self, bound: &Bound, record: &Record) -> Vec<f64> {
        let t = self.fit.family.terms(dot(&record.x, &self.fit.w), record.y);
        let on_x = t.a * bound.theta + t.c * bound.upsilon;
        record.x.iter().zip(&bound.beta).map(|(x, b)| record.omega * (on_x * x + t.r * b)).collect()
    }

    /// What a change ε of the record's values and dy of its label does to A and M with w held, added to the lower
    /// triangle of X.
    fn add_change(&self, local: &Local<'_>, (epsilon, dy): (Vec<f64>, f64), x: &mut [f64]) {
        let (p, omega) = (self.p, local.omega);
        let (a, r, c) = (local.a, local.r, local.c);
        let dz = dot(&epsilon, &self.fit.w);
        let (da, dr, dc) = (local.a1 * dz + local.c1 * dy, a * dz + c * dy, local.c1 * dz);
        let (eh, er) = (times(&self.white.n, &epsilon), times(&self.white.r, &epsilon));
        let (xh, xr, bh) = (&local.xh, &local.xr, &self.nbw);
        // Symmetric pairs c(uvᵀ + vuᵀ) of dM, and those of dA.
        let scaled = |v: &[f64]| -> Vec<f64> { v.iter().zip(&self.white.m).map(|(v, m)| v * m).collect() };
        let (xm, em) = (scaled(xr), scaled(&er));
        let share = self.share * omega * omega;
        let mut pairs: Vec<(f64, &[f64], &[f64])> = vec![
            (-omega * da, xh, &xm),
            (-omega * a, &eh, &xm),
            (-omega * a, xh, &em),
            (share * (da * r + a * dr), xh, bh),
            (share * a * r, &eh, bh),
            (share * (a * da * self.w2 + c * dc * self.l2), xh, xh),
            (share * (a * a * self.w2 + c * c * self.l2), &eh, xh),
        ];
        let own: Vec<(f64, Vec<f64>)> = local
            .atoms
            .iter()
            .map(|(bound, _, betah)| {
                let on_x = da * bound.theta + dc * bound.upsilon;
                let on_e = a * bound.theta + c * bound.upsilon;
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
            let factors = self.white.raised[row.clone()].iter().zip(&self.white.over[row.clone()]);
            for (((x, dm), cost), (raised, over)) in x[row].iter_mut().zip(&*dm).zip(&*cost).zip(factors) {
                *x += (dm - cost * raised) * over;
            }
        }
    }
}

impl Derivative for Columns<'_> {
    fn size(&self) -> usize {
        self.p
    }

    fn through(&self) -> &Through {
        &self.through
    }

    fn jacobian(&self, record: &Record, group: &Group) -> Vec<f64> {
        jacobian(self.fit.into(), self.inverse, group, record)
    }

    type Local<'l>
        = Local<'l>
    where
        Self: 'l;

    fn local<'l>(&'l self, row: u64, record: &'l Record) -> Local<'l> {
        Local::new(self, row, record)
    }

    fn add_direct(&self, local: &Local<'_>, group: &Group, k: usize, x: &mut [f64]) {
        self.add_change(local, (group.values(k), group.of_label(k)), x);
    }
}

/// A record where the noise is white.
pub(super) struct Local<'a> {
    omega: f64,
    r: f64,
    a: f64,
    c: f64,
    /// `∂a/∂z` and `∂c/∂z`.
    a1: f64,
    c1: f64,
    /// `Nx` and `Rx`.
    xh: Vec<f64>,
    xr: Vec<f64>,
    /// Atoms of this record, with `Nk` and `Nβ`.
    atoms: Vec<(&'a Bound, Vec<f64>, Vec<f64>)>,
}

impl<'a> Local<'a> {
    fn new(derivative: &'a Columns<'_>, row: u64, record: &Record) -> Self {
        let z = dot(&record.x, &derivative.fit.w);
        let t = derivative.fit.family.terms(z, record.y);
        let (a1, c1) = derivative.fit.family.third(z, t);
        let on = |v: &[f64]| times(&derivative.white.n, v);
        let own = derivative.atoms.iter().filter(|b| b.row == row);
        Self {
            omega: record.omega,
            r: t.r,
            a: t.a,
            c: t.c,
            a1,
            c1,
            xh: on(&record.x),
            xr: times(&derivative.white.r, &record.x),
            atoms: own.map(|b| (b, on(&derivative.kernel(b, record)), on(&b.beta))).collect(),
        }
    }
}
