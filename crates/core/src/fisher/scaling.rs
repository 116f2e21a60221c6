//! Leakage of a model whose columns were scaled by their own data, with the scaling counted.
//!
//! In public units ([`crate::units`]) the minimiser is that of `Σ ωℓ(wᵀx, y) + (nλ/2) Σ t_j² w_j²`, with `t_j` the standard
//! deviation of column j. Record i moves it through the loss *and* through t: `∂t_j²/∂x_ij = 2(x_ij − o_j)/n`, so
//!
//! ```text
//! Jᵢ = −H⁻¹ [ ωᵢ(aᵢ xᵢwᵀ + rᵢ I) + Dᵢ, ωᵢcᵢ xᵢ ],   Dᵢ = diag(2λ w_j (x_ij − o_j))
//! ```
//!
//! with o the means, D zero for the intercept and for columns whose scale is given. Scales count every row once, whatever
//! its weight: D has no factor ω. (Weighted scales would give D that factor and weighted means.) Rows that a mean was
//! filled in for move with the mean of their column; that is not counted here, and such columns must not be called counted.
//!
//! D is diagonal but differs from record to record, so records share no eigenbasis. One column of J costs O(p), its norm
//! is at most `η₀ + ‖H⁻¹D‖/σ` with η₀ of §1.1 of the mathematics, and exactly the root of the largest eigenvalue of `BᵀH⁻²B`,
//! `J = −H⁻¹B`, which Lanczos finds in a few products of O(p²).

use super::{Directions, Geometry, Records, Release};
use crate::linalg::{
    axpy, dot, largest_eigenvalue, matmul, matmul_parallel, norm, scattered, symmetric_eigen, times,
};
use crate::rows::Block;
use crate::units::{FitInUnits, Units};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// How η of whole records is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// `η₀ + ‖H⁻¹D‖/σ`, never too small: O(p) a record on top of η₀.
    Bounded,
    /// Exactly: a few products of O(p²) a record.
    #[default]
    Exact,
}

/// A model in public units, with how its scaling depends on the data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counted {
    geometry: Geometry,
    /// `2λw_j`, zero where the scale is given.
    slope: Vec<f64>,
    offset: Vec<f64>,
    /// `H⁻²`.
    inverse_squared: Vec<f64>,
    /// Its diagonal: `‖H⁻¹e_j‖²`.
    squares: Vec<f64>,
    /// `‖H⁻¹P‖`.
    largest: f64,
    /// The directions of each attribute.
    attributes: Vec<Directions>,
}

/// Counted leakage of the records of one block.
#[derive(Debug, Clone, Default)]
pub struct CountedRecords {
    /// η of each record: exact, or a bound ([`Depth`]).
    pub eta: Vec<f64>,
    /// dFIL of each record, exact.
    pub dfil: Vec<f64>,
    /// η of every attribute, records × attributes, exact.
    pub attribute_eta: Vec<f64>,
    /// The same record with its scaling taken as given: what was not counted is the difference.
    pub plain: Records,
    h: Vec<f64>,
    overlaps: Vec<f64>,
}

/// One record's `B = [ωa xwᵀ + diag(e), ωc x]` without the rows and columns of an intercept.
struct Record<'a> {
    x: &'a [f64],
    /// `H⁻¹x`.
    h: &'a [f64],
    /// `H⁻²x`: what `H⁻¹x` has in common with each column of `H⁻¹`.
    overlaps: &'a [f64],
    /// `‖H⁻¹x‖²`.
    square: f64,
    /// `ωa`.
    curvature: f64,
    /// `ωr + D_jj`, a data column each.
    diagonal: Vec<f64>,
    /// `ωc`, zero where the label is no secret.
    label: f64,
}

/// What the scaling of columns does to an attribute.
#[derive(Debug, Clone, Copy)]
enum Moves {
    /// Nothing: its scales are given.
    Not,
    /// It is one column, whose scale moves.
    Column(usize),
    /// It is directions of columns of which some move.
    Directions,
}

impl Counted {
    /// The model with its scaling taken as given.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Prepares a model in public units; attributes are directions in the same units.
    ///
    /// # Errors
    /// As [`Geometry::new`], and [`Error::Shape`] where units and model do not belong together.
    pub fn new(
        model: &FitInUnits,
        units: &Units,
        attributes: &[Directions],
        release: Release,
    ) -> Result<Self> {
        Self::prepared(model, units, attributes, Geometry::new(&model.fit, attributes, release)?)
    }

    /// The same under noise with a shape: covariance `σ²Σ`, Σ that of `noise`, in the same units.
    ///
    /// # Errors
    /// As [`Geometry::under`], and [`Error::Shape`] where units and model do not belong together.
    pub fn under(
        model: &FitInUnits,
        units: &Units,
        attributes: &[Directions],
        release: Release,
        noise: &super::noise::Noise,
    ) -> Result<Self> {
        Self::prepared(model, units, attributes, Geometry::under(&model.fit, attributes, release, noise)?)
    }

    /// Where the noise has a shape, the geometry's `N = WH⁻¹` stands for `H⁻¹`.
    fn prepared(
        model: &FitInUnits,
        units: &Units,
        attributes: &[Directions],
        geometry: Geometry,
    ) -> Result<Self> {
        let (p, d) = (model.fit.w.len(), geometry.data_width());
        if units.len() != d {
            return Err(Error::Shape { subject: "the units of columns", actual: units.len(), expected: d });
        }
        let l2 = model.fit.penalty.l2;
        let slope = (0..d).map(|j| if units.is_own(j) { 2.0 * l2 * model.fit.w[j] } else { 0.0 }).collect();
        let mut inverse_squared = vec![0.0; p * p];
        matmul_parallel(&geometry.adjoint, &geometry.inverse, (p, p, p), &mut inverse_squared);
        let squares = (0..p).map(|j| inverse_squared[j * p + j]).collect();
        let largest = geometry.g.first().copied().unwrap_or(0.0).sqrt();
        let offset = (0..d).map(|j| units.offset(j)).collect();
        Ok(Self {
            geometry,
            slope,
            offset,
            inverse_squared,
            squares,
            largest,
            attributes: attributes.to_vec(),
        })
    }

    /// Counted leakage of every record of a block in public units.
    ///
    /// # Errors
    /// [`Error::Overflow`] where a record's leakage is no finite number.
    pub fn records(&self, block: &Block, depth: Depth, out: &mut CountedRecords) -> Result<()> {
        let (n, p) = (block.len(), block.width);
        self.geometry.records(block, &mut out.plain);
        let mut h = std::mem::take(&mut out.h);
        h.resize(n * p, 0.0);
        matmul(&block.x, &self.geometry.adjoint, (n, p, p), &mut h);
        let mut overlaps = std::mem::take(&mut out.overlaps);
        overlaps.resize(n * p, 0.0);
        matmul(&h, &self.geometry.inverse, (n, p, p), &mut overlaps);
        out.eta.clear();
        out.dfil.clear();
        out.attribute_eta.resize(n * self.attributes.len(), 0.0);
        let moves: Vec<Moves> = self.attributes.iter().map(|attribute| self.moves(attribute)).collect();
        let mut columns = vec![0.0; self.slope.len()];
        for i in 0..n {
            let record = self.record(block, &out.plain, (&h, &overlaps), i);
            self.column_norms(&record, &mut columns);
            self.whole(&record, &columns, depth, i, out)?;
            self.attributes_of(&record, &columns, (&moves, i), out)?;
        }
        (out.h, out.overlaps) = (h, overlaps);
        for values in [&out.eta, &out.dfil, &out.attribute_eta] {
            // All of them first: a search that may stop early looks at one at a time.
            if !values.iter().fold(true, |all, v| all & v.is_finite())
                && let Some(&value) = values.iter().find(|v| !v.is_finite())
            {
                return Err(Error::Overflow { value });
            }
        }
        Ok(())
    }

    /// What the scaling does to an attribute: it follows from the model alone, and looking for it takes as long as a record does.
    fn moves(&self, attribute: &Directions) -> Moves {
        let m = attribute.count;
        // Columns of DB; an attribute whose scales are given keeps its η.
        let moved =
            self.slope.iter().enumerate().any(|(j, slope)| {
                *slope != 0.0 && attribute.basis[j * m..(j + 1) * m].iter().any(|b| *b != 0.0)
            });
        match unit_column(attribute, self.geometry.fit.w.len()) {
            _ if !moved => Moves::Not,
            Some(j) => Moves::Column(j),
            None => Moves::Directions,
        }
    }

    fn record<'a>(
        &self,
        block: &'a Block,
        records: &Records,
        (h, overlaps): (&'a [f64], &'a [f64]),
        i: usize,
    ) -> Record<'a> {
        let (p, x, omega) = (block.width, block.row(i), records.omega[i]);
        let h = &h[i * p..(i + 1) * p];
        let scaling = self.slope.iter().zip(&self.offset).zip(x).map(|((s, o), x)| s * (x - o));
        Record {
            x,
            h,
            overlaps: &overlaps[i * p..(i + 1) * p],
            square: dot(h, h),
            curvature: omega * records.a[i],
            diagonal: scaling.map(|d| omega * records.r[i] + d).collect(),
            label: if self.geometry.release.label_secret { omega * records.c[i] } else { 0.0 },
        }
    }

    /// `‖H⁻¹Be_j‖` of every data column: its square multiplied out, or, where little is left of the parts, summed term by
    /// term, so that nothing cancels that need not.
    fn column_norms(&self, record: &Record<'_>, out: &mut [f64]) {
        let p = record.x.len();
        let mut cancels = false;
        let columns =
            record.diagonal.iter().zip(&self.geometry.fit.w).zip(&self.squares).zip(record.overlaps);
        // Without a branch or a call, so that several columns are computed at once.
        for (norm, (((along_j, w), square), overlap)) in out.iter_mut().zip(columns) {
            let along_x = record.curvature * w;
            let parts = along_x * along_x * record.square + along_j * along_j * square;
            let sum = parts + 2.0 * along_x * along_j * overlap;
            let keeps = sum > LEFT * parts;
            cancels |= !keeps;
            *norm = if keeps { sum.sqrt() } else { f64::NAN };
        }
        if !cancels {
            return;
        }
        for (j, norm) in out.iter_mut().enumerate().filter(|(_, norm)| norm.is_nan()) {
            let (along_x, along_j) = (record.curvature * self.geometry.fit.w[j], record.diagonal[j]);
            let row = &self.geometry.adjoint[j * p..(j + 1) * p];
            *norm = record
                .h
                .iter()
                .zip(row)
                .map(|(h, b)| (along_x * h + along_j * b).powi(2))
                .sum::<f64>()
                .sqrt();
        }
    }

    fn whole(
        &self,
        record: &Record<'_>,
        columns: &[f64],
        depth: Depth,
        i: usize,
        out: &mut CountedRecords,
    ) -> Result<()> {
        let gain = self.geometry.gain;
        let label = record.label * norm(record.h);
        let trace = dot(columns, columns) + label * label;
        let dimensions = columns.len() + usize::from(self.geometry.release.label_secret);
        out.dfil.push(gain * gain * trace / dimensions.max(1) as f64);
        let shift = record.diagonal.iter().zip(&self.slope).filter(|(_, s)| **s != 0.0).count();
        out.eta.push(match depth {
            Depth::Exact if shift > 0 => gain * self.top_singular_value(record)?,
            // Nothing of this record's scaling moves: η is that of the given scaling.
            Depth::Exact => out.plain.eta[i],
            Depth::Bounded => out.plain.eta[i] + gain * self.scaling_norm(record),
        });
        Ok(())
    }

    /// At least `‖H⁻¹D‖`: the smaller of its Frobenius norm and `‖H⁻¹P‖ max |D_jj|`.
    fn scaling_norm(&self, record: &Record<'_>) -> f64 {
        let (mut frobenius, mut most) = (0.0, 0.0_f64);
        let columns = self.slope.iter().zip(&self.offset).zip(record.x).zip(&self.squares);
        for (((slope, offset), x), square) in columns {
            let d = slope * (x - offset);
            frobenius += d * d * square;
            most = most.max(d.abs());
        }
        f64::sqrt(frobenius).min(self.largest * most)
    }

    /// `‖H⁻¹B‖` by Lanczos on `BᵀH⁻²B`.
    fn top_singular_value(&self, record: &Record<'_>) -> Result<f64> {
        let (d, p) = (record.diagonal.len(), record.x.len());
        let w = &self.geometry.fit.w[..d];
        let mut image = vec![0.0; p];
        let apply = |q: &[f64]| -> Vec<f64> {
            // Bq, H⁻²Bq, BᵀH⁻²Bq
            let along_x = record.curvature * dot(w, &q[..d]) + record.label * q[d];
            image.iter_mut().zip(record.x).for_each(|(o, x)| *o = along_x * x);
            for ((o, e), q) in image.iter_mut().zip(&record.diagonal).zip(q) {
                *o += e * q;
            }
            let sent = times(&self.inverse_squared, &image);
            let on_x = dot(&sent, record.x);
            let mut back: Vec<f64> =
                (0..d).map(|j| record.curvature * on_x * w[j] + record.diagonal[j] * sent[j]).collect();
            back.push(record.label * on_x);
            back
        };
        // Where one part of B dominates, its own top direction; and a little of every coordinate.
        let mut start: Vec<f64> = (0..=d)
            .map(|j| {
                let generic = 1.0 + scattered(j);
                match w.get(j) {
                    Some(w) => {
                        generic
                            + (d as f64).sqrt() * w / norm(&self.geometry.fit.w[..d]).max(f64::MIN_POSITIVE)
                    }
                    None => generic,
                }
            })
            .collect();
        let length = norm(&start);
        start.iter_mut().for_each(|v| *v /= length);
        Ok(lanczos(start, apply)?.max(0.0).sqrt())
    }

    /// Of record `i`; `moves` has an entry for each attribute.
    fn attributes_of(
        &self,
        record: &Record<'_>,
        columns: &[f64],
        (moves, i): (&[Moves], usize),
        out: &mut CountedRecords,
    ) -> Result<()> {
        let (gain, p, d) = (self.geometry.gain, record.x.len(), columns.len());
        let count = self.attributes.len();
        let plain = &out.plain.attribute_eta[i * count..(i + 1) * count];
        let etas = &mut out.attribute_eta[i * count..(i + 1) * count];
        for (((attribute, moves), plain), eta) in self.attributes.iter().zip(moves).zip(plain).zip(etas) {
            match moves {
                Moves::Not => {
                    *eta = *plain;
                    continue;
                }
                Moves::Column(j) => {
                    *eta = gain * columns[*j];
                    continue;
                }
                Moves::Directions => {}
            }
            let m = attribute.count;
            // JB as rows of p numbers, one a direction.
            let mut jacobian = vec![0.0; m * p];
            for (c, row) in jacobian.chunks_exact_mut(p).enumerate() {
                let b = |j: usize| attribute.basis[j * m + c];
                let along_x: f64 = (0..d).map(|j| self.geometry.fit.w[j] * b(j)).sum();
                axpy(record.curvature * along_x, record.h, row);
                for j in (0..d).filter(|&j| b(j) != 0.0) {
                    axpy(record.diagonal[j] * b(j), &self.geometry.adjoint[j * p..(j + 1) * p], row);
                }
            }
            let mut gram = vec![0.0; m * m];
            for (ij, g) in gram.iter_mut().enumerate() {
                *g = dot(&jacobian[ij / m * p..][..p], &jacobian[ij % m * p..][..p]);
            }
            *eta = gain * largest_eigenvalue(&gram, m)?.sqrt();
        }
        Ok(())
    }
}

/// The column of an attribute that is one unit vector.
fn unit_column(attribute: &Directions, p: usize) -> Option<usize> {
    if attribute.count != 1 {
        return None;
    }
    let mut entries = (0..p).filter(|&j| attribute.basis[j] != 0.0);
    let j = entries.next()?;
    (attribute.basis[j].abs() == 1.0 && entries.next().is_none()).then_some(j)
}

/// Of a sum of squares and a product that may cancel them, the least share that must be left for one digit not to be lost.
const LEFT: f64 = 0.1;
/// A residual of this share of the eigenvalue bounds its relative error, and is usually far above it.
const ENOUGH: f64 = 1e-10;
/// Steps between looks at the residual.
const LOOK: usize = 4;

/// Largest eigenvalue of a positive semidefinite operator by Lanczos with full reorthogonalisation, from a start of length
/// one; exact after as many steps as there are dimensions.
fn lanczos(start: Vec<f64>, mut apply: impl FnMut(&[f64]) -> Vec<f64>) -> Result<f64> {
    let most = start.len();
    let mut basis = vec![start];
    let (mut alpha, mut beta): (Vec<f64>, Vec<f64>) = (vec![], vec![]);
    loop {
        let k = alpha.len();
        let mut next = apply(&basis[k]);
        alpha.push(dot(&next, &basis[k]));
        for _ in 0..2 {
            for b in &basis {
                let overlap = dot(&next, b);
                axpy(-overlap, b, &mut next);
            }
        }
        let (steps, length) = (k + 1, norm(&next));
        let size = alpha.iter().fold(0.0_f64, |m, a| m.max(a.abs()));
        let exhausted = steps == most || length <= 1e-15 * size;
        if exhausted || steps.is_multiple_of(LOOK) {
            let mut t = vec![0.0; steps * steps];
            for j in 0..steps {
                t[j * steps + j] = alpha[j];
                if j + 1 < steps {
                    (t[j * steps + j + 1], t[(j + 1) * steps + j]) = (beta[j], beta[j]);
                }
            }
            let (values, vectors) = symmetric_eigen(&t, steps)?;
            if exhausted || length * vectors[k * steps].abs() <= ENOUGH * values[0] {
                return Ok(values[0]);
            }
        }
        beta.push(length);
        next.iter_mut().for_each(|v| *v /= length);
        basis.push(next);
    }
}
