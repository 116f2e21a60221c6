//! Leakage of every record of a block.

use super::crossed::Crossed;
use super::gram::{Gram, Parts, VECTOR};
use super::{Own, SWITCH, SoftmaxGeometry, Sparse};
use crate::fisher::lanczos::Lanczos;
use crate::glm::softmax::{loss, pairs, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{largest_eigenvalue, matmul, matmul_by_transposed, norm};
use crate::rows::Block;
use crate::{Error, Result};
use std::ops::Range;

/// Records whose products are formed together.
const TOGETHER: usize = 64;

/// Leakage of the records of one block, and the space to compute it in.
#[derive(Debug, Clone, Default)]
pub struct SoftmaxRecords {
    /// Fisher information loss η of each record.
    pub eta: Vec<f64>,
    /// dFIL, the mean information per dimension.
    pub dfil: Vec<f64>,
    /// Loss of each record.
    pub loss: Vec<f64>,
    /// Norm of the gradient of each record's loss by the K × p coefficients.
    pub gradient_norm: Vec<f64>,
    /// η of the label alone, by the switch between two classes.
    pub label_eta: Vec<f64>,
    /// η of every attribute, records × attributes.
    pub attribute_eta: Vec<f64>,
    /// Sum over the records of the information about each data column and, where it is secret, about each contrast of the
    /// label.
    pub information: Vec<f64>,
    scratch: Scratch,
}

#[derive(Debug, Clone, Default)]
struct Scratch {
    terms: Terms,
    rho_pairs: Vec<f64>,
    packed: Vec<f64>,
    /// `B` and `F_l x` of columns that are scaled by their own data.
    moved: Vec<f64>,
    moved_row: Vec<f64>,
    crossed: Crossed,
    gram: Gram,
    label: Vec<f64>,
    lanczos: Lanczos,
}

/// π, ρ̂ and ŜΘ of some rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms {
    pi: Vec<f64>,
    /// Rows × (K−1).
    pub(super) rho: Vec<f64>,
    curvature: Vec<f64>,
    /// Rows × (K−1) × the padded width.
    pub(super) s: Vec<f64>,
}

impl SoftmaxGeometry {
    /// Leakage of every record of a block, the scaling of columns taken as given.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where an eigenvalue cannot be had: numbers that are not finite.
    pub fn records(&self, block: &Block, out: &mut SoftmaxRecords) -> Result<()> {
        self.all(block, None, out)
    }

    /// Leakage of every record of a block, with what it does to the scaling of its columns
    /// ([`SoftmaxGeometry::with_units`]): exact.
    ///
    /// # Errors
    /// As for [`SoftmaxGeometry::records`].
    pub fn counted(&self, block: &Block, out: &mut SoftmaxRecords) -> Result<()> {
        self.all(block, self.own.as_ref(), out)
    }

    fn all(&self, block: &Block, own: Option<&Own>, out: &mut SoftmaxRecords) -> Result<()> {
        if block.width != self.fit.width {
            let (actual, expected) = (block.width, self.fit.width);
            return Err(Error::Shape { subject: "a row", actual, expected });
        }
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information, .. } =
            out;
        for buffer in [eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information] {
            buffer.clear();
        }
        for first in (0..block.len()).step_by(TOGETHER) {
            self.some(block, first..(first + TOGETHER).min(block.len()), own, out)?;
        }
        Ok(())
    }

    /// π, ρ̂ and ŜΘ of some rows; their losses and the norms of their gradients are noted.
    pub(super) fn terms(
        &self,
        block: &Block,
        rows: Range<usize>,
        terms: &mut Terms,
        mut note: impl FnMut(f64, f64),
    ) {
        let (p, classes) = (self.fit.width, self.fit.classes);
        let (k, width, n) = (classes - 1, self.padded_width(), rows.len());
        let Terms { pi, rho, curvature, s } = terms;
        pi.resize(n * classes, 0.0);
        let x = &block.x[rows.start * p..rows.end * p];
        matmul_by_transposed(x, &self.fit.w, (n, p, classes), pi);
        rho.clear();
        curvature.clear();
        for (i, pi) in pi.chunks_exact_mut(classes).enumerate() {
            let class = (block.y[rows.start + i] as usize).min(k);
            let own = pi[class];
            let normaliser = softmax(pi);
            let first = rho.len();
            rho.extend(reduced_residual(pi, class, &self.u));
            note(loss(pi, class, normaliser - own), norm(&rho[first..]) * norm(block.row(rows.start + i)));
            curvature.extend(reduced_curvature(pi, &self.u));
        }
        s.resize(n * k * width, 0.0);
        matmul(curvature, &self.theta, (n * k, k, width), s);
    }

    /// `Σ_ab diag(δ_a) G_ab diag(δ_b)` of every record, lower triangles; `δ_a = ρ̂_a`, and `t ∘ φ_a` more where it is `own`.
    fn pairs_of_residuals(&self, x: &[f64], own: Option<&Own>, scratch: &mut Scratch) {
        let (p, k, d) = (self.fit.width, self.fit.classes - 1, self.data_width());
        let (pair_count, triangle, n) = (k * (k + 1) / 2, d * (d + 1) / 2, x.len() / p);
        let Scratch { terms: Terms { rho, .. }, rho_pairs, packed, moved, .. } = scratch;
        rho_pairs.clear();
        for rho in rho.chunks_exact(k) {
            rho_pairs.extend(pairs(k).map(|(a, b)| rho[a] * rho[b]));
        }
        packed.resize(n * triangle, 0.0);
        matmul(rho_pairs, &self.packed, (n, pair_count, triangle), packed);
        let Some(own) = own else { return };
        moved.resize(n * d * p, 0.0);
        matmul(rho, &own.f, (n, k, d * p), moved);
        let mut t = vec![0.0; d];
        let records = packed.chunks_exact_mut(triangle).zip(moved.chunks_exact(d * p)).zip(x.chunks_exact(p));
        for ((packed, b), x) in records {
            own.means.iter().for_each(|&(j, mean)| t[j] = x[j] - mean);
            let mut next = packed.iter_mut();
            for i in 0..d {
                for (j, slot) in (0..=i).zip(&mut next) {
                    *slot += t[i] * b[i * p + j] + t[j] * b[j * p + i] + t[i] * t[j] * own.t[i * d + j];
                }
            }
        }
    }

    /// c and Q of every record, with `t ∘ F_l x` in `c_l` where it is `own`.
    fn crossed_terms(&self, x: &[f64], own: Option<&Own>, scratch: &mut Scratch) {
        let (p, k, d) = (self.fit.width, self.fit.classes - 1, self.data_width());
        let (width, n) = (self.padded_width(), x.len() / p);
        let Scratch { terms: Terms { rho, .. }, crossed, moved_row, .. } = scratch;
        crossed.fill(&self.g, x, rho, (d, width));
        let Some(own) = own else { return };
        moved_row.resize(n * k * d, 0.0);
        matmul_by_transposed(x, &own.f, (n, p, k * d), moved_row);
        for (i, x) in x.chunks_exact(p).enumerate() {
            for (l, &(j, mean)) in (0..k).flat_map(|l| own.means.iter().map(move |m| (l, m))) {
                crossed.c[(i * k + l) * width + j] += (x[j] - mean) * moved_row[(i * k + l) * d + j];
            }
        }
    }

    fn some(
        &self,
        block: &Block,
        rows: Range<usize>,
        own: Option<&Own>,
        out: &mut SoftmaxRecords,
    ) -> Result<()> {
        let (p, k, d) = (self.fit.width, self.fit.classes - 1, self.data_width());
        let (width, triangle, gain) = (self.padded_width(), d * (d + 1) / 2, self.gain());
        let x = &block.x[rows.start * p..rows.end * p];
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, label_eta, attribute_eta, information, scratch } =
            out;
        self.terms(block, rows.clone(), &mut scratch.terms, |l, g| {
            loss.push(l);
            gradient_norm.push(g);
        });
        // From here on ρ̂ and ŝ carry the weight.
        if !block.weight.is_empty() {
            for (i, omega) in block.weight[rows.clone()].iter().enumerate() {
                scratch.terms.rho[i * k..(i + 1) * k].iter_mut().for_each(|v| *v *= omega);
                scratch.terms.s[i * k * width..(i + 1) * k * width].iter_mut().for_each(|v| *v *= omega);
            }
        }
        self.pairs_of_residuals(x, own, scratch);
        self.crossed_terms(x, own, scratch);
        let Scratch { terms, packed, crossed, gram, label, lanczos, .. } = scratch;
        let label_stride = k.next_multiple_of(VECTOR);
        label.resize(k * label_stride, 0.0);
        for i in 0..rows.len() {
            let switch = block.weight_of(rows.start + i) * SWITCH;
            let quadratic = &crossed.quadratic[i * k * k..(i + 1) * k * k];
            let parts = Parts {
                packed: &packed[i * triangle..(i + 1) * triangle],
                c: &crossed.c[i * k * width..(i + 1) * k * width],
                s: &terms.s[i * k * width..(i + 1) * k * width],
                quadratic,
                shape: (k, d, width),
            };
            gram.fill(parts, self.release.label_secret.then_some(switch));
            information.resize(gram.m, 0.0);
            let mut trace = 0.0;
            for (sum, of_record) in information.iter_mut().zip(gram.diagonal()) {
                trace += of_record;
                *sum += gain * gain * of_record.max(0.0);
            }
            eta.push(gain * lanczos.top(&gram.values, gram.m, gram.stride)?.sqrt());
            dfil.push(gain * gain * trace.max(0.0) / gram.m.max(1) as f64);
            for (row, q) in label.chunks_exact_mut(label_stride).zip(quadratic.chunks_exact(k)) {
                row[..k].copy_from_slice(q);
            }
            label_eta.push(gain * switch * lanczos.top(label, k, label_stride)?.sqrt());
            for Sparse { entries, count } in &self.attributes {
                attribute_eta.push(gain * attribute_top(entries, *count, gram)?.sqrt());
            }
        }
        Ok(())
    }
}

/// `λ₁(BᵀJᵀJB)` for the directions of one attribute.
fn attribute_top(entries: &[(usize, usize, f64)], count: usize, gram: &Gram) -> Result<f64> {
    let at = |i: &usize, j: &usize| gram.values[i * gram.stride + j];
    if let ([(j, _, v)], 1) = (entries, count) {
        return Ok((v * v * at(j, j)).max(0.0));
    }
    let mut small = vec![0.0; count * count];
    for (i, a, v) in entries {
        for (j, b, w) in entries {
            small[a * count + b] += v * w * at(i, j);
        }
    }
    largest_eigenvalue(&small, count)
}
