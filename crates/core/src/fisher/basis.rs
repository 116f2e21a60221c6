//! What is computed once about a fitted model: the eigenbasis of its leakage and the directions of its attributes.

use super::Directions;
use crate::linalg::{
    condition, dot, matmul_by_transposed, matmul_parallel, matmul_transposed, matmul_transposed_parallel,
    mirror_lower, symmetric_eigen, times,
};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// One attribute, prepared: the eigenbasis of `BᵀH⁻²B` and what each record needs to be projected on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Prepared {
    /// Eigenvalues of `BᵀH⁻²B`, largest first.
    pub(super) gamma: Vec<f64>,
    /// `QᵀBᵀw`.
    pub(super) w: Vec<f64>,
    /// First of its m columns in the product `X · H⁻²BQ`.
    pub(super) offset: usize,
    /// `QᵀBᵀH⁻¹`, m × p.
    pub(super) hb: Vec<f64>,
}

/// The eigenbasis Q of `H⁻¹PH⁻¹`, as far as leakage needs it.
pub(super) struct Basis {
    /// Eigenvalues, largest first.
    pub(super) g: Vec<f64>,
    /// `T = H⁻¹Q`.
    pub(super) t: Vec<f64>,
    pub(super) condition: f64,
    pub(super) weakest: Vec<f64>,
}

/// Above this condition number the smallest eigenvalue of `H⁻¹` is too much rounding to give it.
const CONDITION_FROM_INVERSE: f64 = 1e8;

impl Basis {
    /// `adjoint` is `H⁻¹Wᵀ` where the noise has a shape W.
    pub(super) fn new(
        hessian: &[f64],
        inverse: &[f64],
        adjoint: Option<&[f64]>,
        (p, d): (usize, usize),
    ) -> Result<Self> {
        if d == p && adjoint.is_none() {
            // P is the identity: the basis is that of H⁻¹ itself, and T only scales its columns.
            let (mut mu, mut t) = symmetric_eigen(inverse, p)?;
            mu.iter_mut().for_each(|v| *v = v.max(0.0));
            let (largest, smallest) = (mu.first().copied(), mu.last().copied());
            let quotient = largest.unwrap_or(1.0) / smallest.unwrap_or(1.0);
            let (condition, weakest) = if quotient <= CONDITION_FROM_INVERSE {
                (quotient, t.chunks_exact(p.max(1)).map(|row| row[0]).collect())
            } else {
                condition(hessian, inverse, p)?
            };
            for row in t.chunks_exact_mut(p.max(1)) {
                row.iter_mut().zip(&mu).for_each(|(q, mu)| *q *= mu);
            }
            return Ok(Self { g: mu.iter().map(|mu| mu * mu).collect(), t, condition, weakest });
        }
        // H⁻¹PH⁻¹ = (PH⁻¹)ᵀ(PH⁻¹): H⁻¹ is symmetric, so PH⁻¹ is its first d rows; with a shape those of its transpose.
        let mut sandwich = vec![0.0; p * p];
        let adjoint = adjoint.unwrap_or(inverse);
        let data_rows = &adjoint[..d * p];
        matmul_transposed_parallel(data_rows, data_rows, (p, d, p), &mut sandwich);
        mirror_lower(&mut sandwich, p);
        let (mut g, q) = symmetric_eigen(&sandwich, p)?;
        g.iter_mut().for_each(|v| *v = v.max(0.0));
        let mut t = vec![0.0; p * p];
        matmul_parallel(adjoint, &q, (p, p, p), &mut t);
        let (condition, weakest) = condition(hessian, inverse, p)?;
        Ok(Self { g, t, condition, weakest })
    }
}

/// The directions of all attributes, rotated so that each is diagonal, with `H⁻¹` and `H⁻²` times them.
pub(super) fn prepare(
    inverse: &[f64],
    adjoint: &[f64],
    w: &[f64],
    attributes: &[Directions],
) -> Result<(Vec<Prepared>, Vec<f64>, usize)> {
    let (p, width) = (w.len(), attributes.iter().map(|a| a.count).sum::<usize>());
    // Single directions first, side by side, so that one loop over a record's projections serves them all.
    let mut offsets = vec![0; attributes.len()];
    let mut next = 0;
    for single in [true, false] {
        for (offset, attribute) in
            offsets.iter_mut().zip(attributes).filter(|(_, a)| (a.count == 1) == single)
        {
            *offset = next;
            next += attribute.count;
        }
    }
    // Directions as rows, so that those of one attribute lie together; then H⁻¹ and H⁻² times all of them.
    let mut all = vec![0.0; width * p];
    for (attribute, &offset) in attributes.iter().zip(&offsets) {
        let m = attribute.count;
        if attribute.basis.len() != p * m {
            let (actual, expected) = (attribute.basis.len(), p * m);
            return Err(Error::Shape { subject: "the directions of an attribute", actual, expected });
        }
        for (ij, &value) in attribute.basis.iter().enumerate() {
            all[(offset + ij % m) * p + ij / m] = value;
        }
    }
    let mut h_all = vec![0.0; width * p];
    if is_identity(&all, p) {
        h_all.copy_from_slice(adjoint);
    } else {
        matmul_parallel(&all, adjoint, (width, p, p), &mut h_all);
    }
    let mut projections = vec![0.0; width * p];
    matmul_parallel(&h_all, inverse, (width, p, p), &mut projections);
    let mut prepared = Vec::with_capacity(attributes.len());
    for (attribute, &offset) in attributes.iter().zip(&offsets) {
        let m = attribute.count;
        let rows = offset * p..(offset + m) * p;
        let (b, hb, h2b) = (&all[rows.clone()], &h_all[rows.clone()], &mut projections[rows]);
        if m == 1 {
            prepared.push(Prepared { gamma: vec![dot(hb, hb)], w: vec![dot(b, w)], offset, hb: hb.to_vec() });
            continue;
        }
        let mut inner = vec![0.0; m * m];
        matmul_by_transposed(hb, hb, (m, p, m), &mut inner);
        let (mut gamma, q) = symmetric_eigen(&inner, m)?;
        gamma.iter_mut().for_each(|v| *v = v.max(0.0));
        let mut rotated_w = vec![0.0; m];
        matmul_transposed(&q, &times(b, w), (m, m, 1), &mut rotated_w);
        let (mut rotated_hb, mut rotated_h2b) = (vec![0.0; m * p], vec![0.0; m * p]);
        matmul_transposed(&q, hb, (m, m, p), &mut rotated_hb);
        matmul_transposed(&q, h2b, (m, m, p), &mut rotated_h2b);
        h2b.copy_from_slice(&rotated_h2b);
        prepared.push(Prepared { gamma, w: rotated_w, offset, hb: rotated_hb });
    }
    Ok((prepared, projections, width))
}

fn is_identity(a: &[f64], p: usize) -> bool {
    a.len() == p * p && a.iter().enumerate().all(|(ij, v)| *v == f64::from(u8::from(ij % p == ij / p)))
}
