//! Leakage of sets of records of a softmax model: groups, and all of them.

use super::records::Terms;
use super::{SWITCH, SoftmaxGeometry, Sparse};
use crate::Result;
use crate::glm::softmax::pairs;
use crate::linalg::{
    axpy, dot, gram_add_lower, largest_eigenvalue, matmul_by_transposed, matmul_parallel, matmul_transposed,
    mirror_lower,
};
use crate::rows::Block;
use serde::{Deserialize, Serialize};

/// Sums over a set of records from which its leakage follows; mergeable, O(q²) numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftmaxSet {
    /// The sum between `H⁻¹` and `H⁻¹`, q × q, both triangles.
    inner: Vec<f64>,
    records: u64,
}

impl SoftmaxSet {
    /// Records added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds another set.
    pub fn merge(&mut self, other: &Self) {
        self.records += other.records;
        axpy(1.0, &other.inner, &mut self.inner);
    }

    /// Whether it is a set of a model with so many coefficients.
    pub(crate) fn has_sizes(&self, q: usize) -> bool {
        self.inner.len() == q * q
    }
}

/// Sums over all records from which the leakage of each attribute over all of them follows; q² numbers an attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeSets {
    /// Lower triangles, q × q.
    inner: Vec<Vec<f64>>,
}

impl AttributeSets {
    /// Adds the sums of other records.
    pub fn merge(&mut self, other: &Self) {
        self.inner.iter_mut().zip(&other.inner).for_each(|(a, b)| axpy(1.0, b, a));
    }

    /// Whether they are of so many attributes and coefficients.
    pub(crate) fn has_sizes(&self, attributes: usize, q: usize) -> bool {
        self.inner.len() == attributes && self.inner.iter().all(|inner| inner.len() == q * q)
    }
}

impl SoftmaxGeometry {
    /// An empty set.
    pub fn set(&self) -> SoftmaxSet {
        let q = self.fit.coefficients();
        SoftmaxSet { inner: vec![0.0; q * q], records: 0 }
    }

    /// Adds records of a block to a set; `picked` names some of them, `None` takes all.
    ///
    /// Block (a, b) of the sum is `Σω²[ρ̂_aρ̂_b P + ρ̂_a ŝ_b xᵀ + ρ̂_b x ŝ_aᵀ + (ŝ_a·ŝ_b + 2[a = b, label secret]) xxᵀ]`.
    pub fn add_to_set(&self, block: &Block, picked: Option<&[usize]>, set: &mut SoftmaxSet) {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let (d, width, n) = (self.data_width(), self.padded_width(), block.len());
        let mut terms = Terms::default();
        self.terms(block, 0..n, &mut terms, |_, _| ());
        let mut weight: Vec<f64> = vec![if picked.is_some() { 0.0 } else { 1.0 }; n];
        picked.iter().flat_map(|p| p.iter()).for_each(|&i| weight[i] = 1.0);
        (0..n).for_each(|i| weight[i] *= block.weight_of(i).powi(2));
        set.records += picked.map_or(n, <[usize]>::len) as u64;
        // Z[(b, j), (a, i)] = Σω² ŝ_bj ρ̂_a x_i
        let mut spread = Vec::with_capacity(n * q);
        for (i, weight) in weight.iter().enumerate() {
            for a in 0..k {
                let factor = weight * terms.rho[i * k + a];
                spread.extend(block.row(i).iter().map(|x| factor * x));
            }
        }
        let mut z = vec![0.0; k * width * q];
        matmul_transposed(&terms.s, &spread, (k * width, n, q), &mut z);
        let (mut gram, mut weighted, mut weights) = (vec![0.0; p * p], vec![], vec![0.0; n]);
        for (a, b) in pairs(k) {
            let mut rho2 = 0.0;
            for i in 0..n {
                let s = &terms.s[i * k * width..(i + 1) * k * width];
                let label = if self.release.label_secret && a == b { SWITCH * SWITCH } else { 0.0 };
                weights[i] =
                    weight[i] * (dot(&s[a * width..(a + 1) * width], &s[b * width..(b + 1) * width]) + label);
                rho2 += weight[i] * terms.rho[i * k + a] * terms.rho[i * k + b];
            }
            gram.fill(0.0);
            gram_add_lower(&block.x, Some(&weights), p, &mut weighted, &mut gram);
            mirror_lower(&mut gram, p);
            for i in 0..p {
                for j in 0..p {
                    let mut value = gram[i * p + j];
                    if i < d {
                        value += z[(b * width + i) * q + a * p + j] + if i == j { rho2 } else { 0.0 };
                    }
                    if j < d {
                        value += z[(a * width + j) * q + b * p + i];
                    }
                    set.inner[(a * p + i) * q + b * p + j] += value;
                    if a != b {
                        set.inner[(b * p + j) * q + a * p + i] += value;
                    }
                }
            }
        }
    }

    /// η of a set of records as a whole.
    pub fn set_eta(&self, set: &SoftmaxSet) -> Result<f64> {
        self.eta_of(&set.inner)
    }

    /// `λ₁(N A Nᵀ)^½` in standard deviations of the noise.
    fn eta_of(&self, inner: &[f64]) -> Result<f64> {
        let q = self.fit.coefficients();
        let (mut half, mut out) = (vec![0.0; q * q], vec![0.0; q * q]);
        matmul_parallel(&self.n, inner, (q, q, q), &mut half);
        matmul_by_transposed(&half, &self.n, (q, q, q), &mut out);
        mirror_lower(&mut out, q);
        Ok(self.gain() * largest_eigenvalue(&out, q)?.sqrt())
    }

    /// Empty sums of every attribute over all records.
    pub fn attribute_sets(&self) -> AttributeSets {
        let q = self.fit.coefficients();
        AttributeSets { inner: vec![vec![0.0; q * q]; self.attributes.len()] }
    }

    /// Multiplications that [`SoftmaxGeometry::add_to_attribute_sets`] takes for each row.
    pub fn attribute_set_work(&self) -> f64 {
        let directions: usize = self.attributes.iter().map(|a| a.count).sum();
        0.5 * directions as f64 * (self.fit.coefficients() as f64).powi(2)
    }

    /// Adds the records of a block to the sums of every attribute: `Σ (M b)(M b)ᵀ` over records and directions b, with
    /// `M b = ω(ρ̂ ⊗ b + (ŝ·b) ⊗ x)`.
    pub fn add_to_attribute_sets(&self, block: &Block, sets: &mut AttributeSets) {
        let (p, k, q) = (self.fit.width, self.fit.classes - 1, self.fit.coefficients());
        let (width, n) = (self.padded_width(), block.len());
        let (mut terms, mut weighted) = (Terms::default(), vec![]);
        self.terms(block, 0..n, &mut terms, |_, _| ());
        let mut moved = vec![0.0; n * q];
        for (Sparse { entries, count }, inner) in self.attributes.iter().zip(&mut sets.inner) {
            for direction in 0..*count {
                moved.fill(0.0);
                for (i, row) in moved.chunks_exact_mut(q).enumerate() {
                    let (omega, s) = (block.weight_of(i), &terms.s[i * k * width..(i + 1) * k * width]);
                    for (a, part) in row.chunks_exact_mut(p).enumerate() {
                        let along = entries.iter().filter(|(_, c, _)| *c == direction);
                        let slope: f64 = along.clone().map(|(j, _, v)| v * s[a * width + j]).sum();
                        axpy(omega * slope, block.row(i), part);
                        along.for_each(|(j, _, v)| part[*j] += omega * v * terms.rho[i * k + a]);
                    }
                }
                gram_add_lower(&moved, None, q, &mut weighted, inner);
            }
        }
    }

    /// η of every attribute over all records together, by index of the attributes.
    pub fn attributes_over_set(&self, mut sets: AttributeSets) -> Result<Vec<f64>> {
        let q = self.fit.coefficients();
        sets.inner.iter_mut().for_each(|inner| mirror_lower(inner, q));
        sets.inner.iter().map(|inner| self.eta_of(inner)).collect()
    }
}
