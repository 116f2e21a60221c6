//! Fisher information loss of sets: groups of records, the whole data set, an attribute over all records.
//!
//! For a set G of records `J_G J_Gᵀ = Σ_{i∈G} JᵢJᵢᵀ` is only p × p, so one weighted Gram matrix a set is enough:
//!
//! ```text
//! H⁻¹ [ (Σω²r²)P + s w_Sᵀ + w_S sᵀ + Σω²(a²‖w_S‖² + c²) xxᵀ ] H⁻¹,   s = Σω²ar x
//! ```

use super::secular::{Problem, top_eigenvalues};
use super::{Geometry, Prepared, Records};
use crate::Result;
use crate::linalg::{
    add, axpy, dot, gram_add_lower, largest_eigenvalue, matmul_parallel, matmul_transposed, mirror_lower,
    norm,
};
use crate::linalg::{symmetric_eigen, times};
use crate::rows::Block;
use serde::{Deserialize, Serialize};

/// How many times the penalty may exceed the largest sum of squares of a column before the difference of the
/// two has lost too many digits: it is then known to 1e3·ε = 2e-13.
const DROWNED: f64 = 1e3;

/// Sums over a set of records from which its leakage follows; mergeable, O(p²) numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SetSums {
    p: usize,
    records: u64,
    r2: f64,
    /// `Σω²c²‖H⁻¹x‖²`.
    h2: f64,
    s: Vec<f64>,
    /// Whether what attributes over the set need is kept.
    attributes: bool,
    /// `Σω²(a²‖w_S‖² + c²) xxᵀ`, lower triangle; empty until something is added to it.
    whole: Vec<f64>,
    /// `Σω²a² xxᵀ`, likewise; empty where it is not asked for.
    curved: Vec<f64>,
    /// Whether both are those of the whole training set, had from the Hessian: its eigenvectors are theirs.
    of_hessian: bool,
    #[serde(skip)]
    scratch: Vec<f64>,
    #[serde(skip)]
    weights: Vec<f64>,
    #[serde(skip)]
    gathered: Vec<f64>,
}

impl SetSums {
    /// Sums for the leakage of a set of records; `attributes` keeps also what attributes over the set need.
    pub fn new(p: usize, attributes: bool) -> Self {
        Self { p, attributes, s: vec![0.0; p], ..Self::default() }
    }

    /// Whether these are sums over `p` columns, as [`SetSums::new`] makes them.
    pub(crate) fn has_sizes(&self, p: usize, attributes: bool) -> bool {
        let square = |matrix: &[f64]| matrix.is_empty() || matrix.len() == p * p;
        self.p == p
            && self.attributes == attributes
            && self.s.len() == p
            && square(&self.whole)
            && square(&self.curved)
            && (attributes || self.curved.is_empty())
    }

    /// Records added.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Adds another set.
    pub fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.r2 += other.r2;
        self.of_hessian = false;
        self.h2 += other.h2;
        axpy(1.0, &other.s, &mut self.s);
        for (sum, other) in [(&mut self.whole, &other.whole), (&mut self.curved, &other.curved)] {
            if sum.is_empty() {
                sum.clone_from(other);
            } else if !other.is_empty() {
                add(other, sum);
            }
        }
    }

    /// Both triangles of one of the matrices.
    fn square(&self, lower: &[f64]) -> Vec<f64> {
        let mut all = if lower.is_empty() { vec![0.0; self.p * self.p] } else { lower.to_vec() };
        mirror_lower(&mut all, self.p);
        all
    }
}

impl Geometry {
    /// Adds records of a block to a set; `records` holds their terms from [`Geometry::records`]. `rows` picks some
    /// of them, `None` takes all.
    pub fn add_to_set(&self, block: &Block, records: &Records, rows: Option<&[usize]>, set: &mut SetSums) {
        let p = set.p;
        let count = rows.map_or(block.len(), <[usize]>::len);
        let nth = |k: usize| rows.map_or(k, |rows| rows[k]);
        set.records += count as u64;
        let (mut whole_weights, mut s) = (std::mem::take(&mut set.weights), std::mem::take(&mut set.s));
        whole_weights.clear();
        for k in 0..count {
            let i = nth(k);
            let (r, a, c) = (records.r[i], records.a[i], records.c[i]);
            let omega2 = records.omega[i].powi(2);
            set.r2 += omega2 * r * r;
            set.h2 += omega2 * c * c * records.h2[i];
            axpy(omega2 * a * r, block.row(i), &mut s);
            whole_weights.push(omega2 * (a * a * self.w_data_squared + self.c2(c)));
        }
        let mut gathered = std::mem::take(&mut set.gathered);
        let x = match rows {
            None => block.x.as_slice(),
            Some(rows) => {
                gathered.clear();
                rows.iter().for_each(|&i| gathered.extend_from_slice(block.row(i)));
                gathered.as_slice()
            }
        };
        set.whole.resize(p * p, 0.0);
        gram_add_lower(x, Some(&whole_weights), p, &mut set.scratch, &mut set.whole);
        if set.attributes {
            let curved = (0..count).map(|k| (records.omega[nth(k)] * records.a[nth(k)]).powi(2));
            whole_weights.clear();
            whole_weights.extend(curved);
            set.curved.resize(p * p, 0.0);
            gram_add_lower(x, Some(&whole_weights), p, &mut set.scratch, &mut set.curved);
        }
        set.gathered = gathered;
        set.weights = whole_weights;
        set.s = s;
    }

    /// Adds only what is not a Gram matrix: where the Hessian already holds it (see
    /// [`Geometry::gram_is_in_hessian`]).
    pub fn add_to_set_without_gram(&self, block: &Block, records: &Records, set: &mut SetSums) {
        set.records += block.len() as u64;
        for i in 0..block.len() {
            let (r, a, c) = (records.r[i], records.a[i], records.c[i]);
            set.r2 += r * r;
            set.h2 += c * c * records.h2[i];
            axpy(a * r, block.row(i), &mut set.s);
        }
    }

    /// Whether `Σω²a² xxᵀ` of the training set can be had as `H − nλI`: unit weights, constant curvature, and
    /// data that do not drown in the penalty.
    pub fn gram_is_in_hessian(&self) -> bool {
        let (p, d, strength) = (self.fit.w.len(), self.data_width(), self.fit.n as f64 * self.fit.penalty.l2);
        let diagonal = |j: usize| self.fit.hessian[j * p + j] - if j < d { strength } else { 0.0 };
        let largest = (0..p).map(diagonal).fold(0.0, f64::max);
        let plain = self.fit.unit_weights && self.fit.penalty.on_intercept(self.fit.n).is_none();
        plain && self.fit.family.constant_curvature() && strength <= DROWNED * largest
    }

    /// Fills the Gram matrices of the whole training set from the Hessian.
    pub fn take_gram_from_hessian(&self, set: &mut SetSums) {
        let (p, d) = (set.p, self.data_width());
        let mut gram = self.fit.hessian.clone();
        (0..d).for_each(|j| gram[j * p + j] -= self.fit.n as f64 * self.fit.penalty.l2);
        // Where the curvature is constant so is c = −1.
        let factor = self.w_data_squared + self.c2(1.0);
        set.whole = gram.iter().map(|v| factor * v).collect();
        set.curved = gram;
        set.of_hessian = d == p && !self.shaped;
    }

    /// `H⁻¹(H − nλI)H⁻¹` where H penalises every column alike: it shares the eigenvectors Q of `H⁻¹`, and each
    /// eigenvalue μ of that gives `μ(1 − nλμ)`, here over the square of the unit of H⁻¹. With Q, column by column in the
    /// order of [`Geometry::t`].
    fn spectrum_of_hessian(&self) -> (Vec<f64>, Vec<f64>) {
        let strength = self.fit.n as f64 * self.fit.penalty.l2;
        let mu: Vec<f64> = self.g.iter().map(|g| g.sqrt()).collect();
        let mut q = self.t.clone();
        for row in q.chunks_exact_mut(mu.len().max(1)) {
            row.iter_mut().zip(&mu).for_each(|(t, mu)| *t /= mu);
        }
        let unit = self.unit;
        (mu.iter().map(|mu| (mu / unit * (1.0 - strength * unit * mu)).max(0.0)).collect(), q)
    }

    /// η of a set of records as a whole.
    pub fn set_eta(&self, set: &SetSums) -> Result<f64> {
        let (p, d) = (set.p, self.data_width());
        if set.of_hessian {
            let (lambda, q) = self.spectrum_of_hessian();
            let factor = self.w_data_squared + self.c2(1.0);
            let poles: Vec<f64> = lambda.iter().zip(&self.g).map(|(l, g)| factor * l + set.r2 * g).collect();
            let in_basis = |x: &[f64]| {
                let mut out = vec![0.0; p];
                matmul_transposed(&q, &times(&self.inverse, x), (p, p, 1), &mut out);
                out
            };
            let order = largest_first(&poles);
            let pick = |x: &[f64]| order.iter().map(|&j| x[j]).collect::<Vec<_>>();
            let (poles, v, w) = (pick(&poles), pick(&in_basis(&set.s)), pick(&in_basis(&self.w_data)));
            // vwᵀ + wvᵀ = αvvᵀ + vuᵀ + uvᵀ with u = w − (α/2)v, for any α: one that keeps both parts of a size.
            let alpha = if norm(&v) > 0.0 { 2.0 * norm(&w) / norm(&v) } else { 0.0 };
            let u: Vec<f64> = w.iter().zip(&v).map(|(w, v)| w - 0.5 * alpha * v).collect();
            let problem = Problem { r2: 1.0, alpha, beta: 1.0, v: &v, u: &u };
            let mut top = 0.0_f64;
            top_eigenvalues(&poles, 1, |_| problem, |_, value| top = value.max(0.0));
            return Ok(self.gain * top.sqrt());
        }
        let mut m = set.square(&set.whole);
        for i in 0..p {
            for j in 0..p {
                m[i * p + j] += set.s[i] * self.w_data[j] + self.w_data[i] * set.s[j];
            }
        }
        (0..d).for_each(|j| m[j * p + j] += set.r2);
        let top = largest_eigenvalue(&self.sandwiched(&m, p), p)?;
        Ok(self.gain * top.sqrt())
    }

    /// Mean over the records of a set of the Fisher information about each data column, and (where the label is
    /// secret) about the label last: the diagonal `E[I_jj]`. The set must have been made with `attributes`.
    ///
    /// `I_jj = ω²(a²w_j²‖H⁻¹x‖² + 2ar w_j(H⁻²x)_j + r²(H⁻²)_jj)/σ²` needs the sums of the set alone, since
    /// `Σω²a²‖H⁻¹x‖² = tr H⁻¹(Σω²a²xxᵀ)H⁻¹`; for the label it is `ω²c²‖H⁻¹x‖²/σ²`, a sum of its own because as a
    /// difference of the others it would cancel.
    pub fn mean_information(&self, set: &SetSums) -> Vec<f64> {
        let (p, d) = (set.p, self.data_width());
        if set.records == 0 {
            return vec![0.0; d + usize::from(self.release.label_secret)];
        }
        // tr H⁻¹MH⁻¹ = Σ M ∘ H⁻²
        let square = {
            let mut out = vec![0.0; p * p];
            matmul_parallel(&self.adjoint, &self.inverse, (p, p, p), &mut out);
            out
        };
        let trace = |lower: &[f64]| -> f64 {
            (0..p)
                .map(|i| {
                    2.0 * dot(&lower[i * p..i * p + i], &square[i * p..i * p + i])
                        + lower[i * p + i] * square[i * p + i]
                })
                .sum()
        };
        let curved = if set.curved.is_empty() { 0.0 } else { trace(&set.curved) };
        let hs = times(&square, &set.s);
        let factor = self.gain.powi(2) / set.records as f64;
        let mut means: Vec<f64> = (0..d)
            .map(|j| {
                let w = self.w_data[j];
                let sum = w * w * curved + 2.0 * w * hs[j] + set.r2 * square[j * p + j];
                factor * sum.max(0.0)
            })
            .collect();
        if self.release.label_secret {
            means.push(factor * set.h2);
        }
        means
    }

    /// η of every attribute over all records of a set (which must have been made with `attributes`).
    pub fn attributes_over_set(&self, set: &SetSums) -> Result<Vec<f64>> {
        let p = set.p;
        let only_singles = self.singles.index.len() == self.attributes.len();
        let (curved, lambda, q) = if set.of_hessian && only_singles {
            let (lambda, q) = self.spectrum_of_hessian();
            let order = largest_first(&lambda);
            let q = q.chunks_exact(p.max(1)).flat_map(|row| order.iter().map(|&j| row[j])).collect();
            (vec![], order.iter().map(|&j| lambda[j]).collect(), q)
        } else {
            let curved = self.sandwiched(&set.square(&set.curved), p);
            let (mut lambda, q) = symmetric_eigen(&curved, p)?;
            lambda.iter_mut().for_each(|v| *v = v.max(0.0));
            (curved, lambda, q)
        };
        let hs = times(&self.inverse, &set.s);
        // Rows H⁻¹b of all single directions, and H⁻¹s last, in the eigenbasis: one product.
        let mut stacked: Vec<f64> =
            self.singles.index.iter().flat_map(|&k| self.attributes[k].hb.iter().copied()).collect();
        stacked.extend_from_slice(&hs);
        let mut rotated = vec![0.0; stacked.len()];
        matmul_parallel(&stacked, &q, (stacked.len() / p, p, p), &mut rotated);
        let u = &rotated[rotated.len() - p..];
        let mut single_rows = rotated.chunks_exact(p);
        let mut etas = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            let row = if attribute.gamma.len() == 1 { single_rows.next() } else { None };
            let top = if let Some(v) = row {
                // (b·w)² Λ + Σω²r² vvᵀ + (b·w)(vuᵀ + uvᵀ) in the eigenbasis of H⁻¹(Σω²a²xxᵀ)H⁻¹
                let w = attribute.w[0];
                let problem = Problem { r2: w * w, alpha: set.r2, beta: w, v, u };
                let mut top = 0.0;
                top_eigenvalues(&lambda, 1, |_| problem, |_, value| top = value);
                top.max(0.0)
            } else {
                largest_eigenvalue(&self.block_over_set(attribute, set, &curved, &hs), p)?
            };
            etas.push(self.gain * top.sqrt());
        }
        Ok(etas)
    }

    /// `‖Bᵀw‖²A + (Σω²r²) H⁻¹BBᵀH⁻¹ + H⁻¹(s (BBᵀw)ᵀ + BBᵀw sᵀ)H⁻¹`, `A = H⁻¹(Σω²a²xxᵀ)H⁻¹`.
    fn block_over_set(&self, attribute: &Prepared, set: &SetSums, curved: &[f64], hs: &[f64]) -> Vec<f64> {
        let (p, m) = (set.p, attribute.gamma.len());
        let hb = &attribute.hb;
        let w2 = dot(&attribute.w, &attribute.w);
        // H⁻¹BBᵀw = (H⁻¹BQ)(QᵀBᵀw)
        let mut hbw = vec![0.0; p];
        hb.chunks_exact(p).zip(&attribute.w).for_each(|(row, w)| axpy(*w, row, &mut hbw));
        let mut out = vec![0.0; p * p];
        matmul_transposed(hb, hb, (p, m, p), &mut out);
        for i in 0..p {
            for j in 0..p {
                let ij = i * p + j;
                out[ij] = set.r2 * out[ij] + w2 * curved[ij] + hs[i] * hbw[j] + hbw[i] * hs[j];
            }
        }
        out
    }

    /// `H⁻¹ m H⁻¹`.
    fn sandwiched(&self, m: &[f64], p: usize) -> Vec<f64> {
        let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul_parallel(&self.inverse, m, (p, p, p), &mut half);
        matmul_parallel(&half, &self.adjoint, (p, p, p), &mut out);
        // Rounding leaves the two triangles apart by an ulp; decompositions read one of them.
        mirror_lower(&mut out, p);
        out
    }
}

/// Places of `values`, the largest first.
fn largest_first(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fisher::{Directions, Release};
    use crate::glm::{self, Penalty};
    use crate::rows::{InMemory, Rows};

    /// The diagonal from sums alone against the mean over records of each column's η², and its trace against dFIL.
    #[test]
    fn mean_information_is_the_mean_over_records() {
        let hash = |i: u64| {
            let mut h = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (h ^ (h >> 31)) as f64 / u64::MAX as f64 - 0.5
        };
        let (n, p) = (60_u64, 4_usize);
        let x: Vec<f64> = (0..n * p as u64).map(|i| if i % p as u64 == 3 { 1.0 } else { hash(i) }).collect();
        let y: Vec<f64> = (0..n).map(|i| f64::from(u8::from(hash(1000 + i) > 0.0))).collect();
        let weight: Vec<f64> = (0..n).map(|i| 1.5 + hash(2000 + i)).collect();
        let positive: Vec<f64> = y.iter().map(|y| y + 0.25).collect();
        for family in glm::every_family() {
            let y = if family == glm::Family::Gamma { &positive } else { &y };
            let rows = InMemory::from_matrix(&x, y, &weight, 13);
            for label_secret in [true, false] {
                let fit = glm::fit(&rows, family, Penalty::new(0.02, true)).unwrap();
                let directions: Vec<_> = (0..3).map(|j| Directions::columns(j..j + 1, p)).collect();
                let release = Release { sigma: 0.3, releases: 2, label_secret };
                let geometry = Geometry::new(&fit, &directions, release).unwrap();
                let mut set = SetSums::new(p, true);
                let mut records = Records::default();
                let (mut squares, mut dfil) = (vec![0.0; 3], 0.0);
                for block in rows.blocks() {
                    geometry.records(block, &mut records);
                    geometry.add_to_set(block, &records, None, &mut set);
                    dfil += records.dfil.iter().sum::<f64>();
                    for etas in records.attribute_eta.chunks_exact(3) {
                        squares.iter_mut().zip(etas).for_each(|(s, eta)| *s += eta * eta);
                    }
                }
                let means = geometry.mean_information(&set);
                assert_eq!(means.len(), 3 + usize::from(label_secret));
                for (mean, square) in means.iter().zip(&squares) {
                    assert!((mean / (square / rows.len() as f64) - 1.0).abs() < 1e-10, "{family:?}");
                }
                let trace = dfil / rows.len() as f64 * means.len() as f64;
                assert!((means.iter().sum::<f64>() / trace - 1.0).abs() < 1e-10, "{family:?}");
            }
        }
    }
}
