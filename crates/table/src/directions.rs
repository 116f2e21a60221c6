//! Directions of attributes in the space of model columns, and the way back to original units.

use crate::column::Kind;
use crate::encoding::Encoding;

impl Encoding {
    /// Directions of one attribute: `width × m`, row-major, orthogonal to the intercept.
    ///
    /// Column j is what a unit change of the attribute's j-th encoded column does to the model columns: a
    /// unit vector, or with principal components `components · e_j`. With `sum_to_one` a category moves
    /// only so that its indicators keep their sum: `E_S U`, the columns of U (k × (k−1)) an orthonormal
    /// basis of the vectors that sum to zero; where a level is dropped the rows of U of the levels that have
    /// a column, since the dropped indicator absorbs the rest. Empty for an attribute without columns (one
    /// level, dropped).
    pub fn directions(&self, attribute: usize, sum_to_one: bool) -> Vec<f64> {
        let Some(a) = self.attributes.get(attribute) else { return Vec::new() };
        let k = a.columns.len();
        // V: k × m in the attribute's own encoded columns.
        let (v, m) = if sum_to_one && a.kind == Kind::Category {
            let levels = a.levels.len();
            let m = levels.saturating_sub(1);
            let kept = self.one_hot.places(levels);
            (zero_sum_basis(levels)[kept.start * m..kept.end * m].to_vec(), m)
        } else {
            let mut identity = vec![0.0; k * k];
            (0..k).for_each(|i| identity[i * k + i] = 1.0);
            (identity, k)
        };
        let mut b = vec![0.0; self.width() * m];
        match &self.pca {
            None => b[a.columns.start * m..a.columns.end * m].copy_from_slice(&v),
            Some(pca) => {
                let p = self.raw_width();
                for (row, component) in b.chunks_exact_mut(m.max(1)).zip(pca.components.chunks_exact(p)) {
                    for (c, v_row) in component[a.columns.clone()].iter().zip(v.chunks_exact(m.max(1))) {
                        row.iter_mut().zip(v_row).for_each(|(out, x)| *out += c * x);
                    }
                }
            }
        }
        b
    }

    /// Directions of the whole record: `width × data_width`, the identity on the data columns. With principal
    /// components too: they are orthonormal, so the record's movement within their span has that basis.
    pub fn record_directions(&self) -> Vec<f64> {
        let (d, m) = (self.width(), self.data_width());
        let mut b = vec![0.0; d * m];
        (0..m).for_each(|i| b[i * m + i] = 1.0);
        b
    }

    /// The same linear predictor for the columns in their own units (indicators 0 and 1): names and
    /// coefficients, `(intercept)` last where there is one or where centring makes one. `None` with
    /// principal components, or where there are not `width` coefficients.
    pub fn original_units(&self, coefficients: &[f64]) -> Option<Vec<(String, f64)>> {
        if self.pca.is_some() || coefficients.len() != self.width() {
            return None;
        }
        // Σ wⱼ (xⱼ − cⱼ)/sⱼ + b = Σ (wⱼ/sⱼ) xⱼ + (b − Σ wⱼ cⱼ/sⱼ).
        let mut constant = if self.intercept { coefficients[self.raw_width()] } else { 0.0 };
        let mut out = Vec::with_capacity(coefficients.len() + 1);
        let mut names = self.raw_columns().into_iter();
        let mut centred = false;
        for a in &self.attributes {
            for j in a.columns.clone() {
                let w = coefficients[j] / a.scale;
                constant -= w * a.centre;
                centred |= a.centre != 0.0;
                out.push((names.next()?, w));
            }
        }
        if self.intercept || centred {
            out.push(("(intercept)".into(), constant));
        }
        Some(out)
    }
}

/// Orthonormal basis of the vectors of length `k` that sum to zero: k × (k−1), row-major (Helmert).
fn zero_sum_basis(k: usize) -> Vec<f64> {
    let m = k.saturating_sub(1);
    let mut u = vec![0.0; k * m];
    for j in 0..m {
        // Column j: 1 in rows 0..=j, −(j+1) in row j+1, over √((j+1)(j+2)).
        let n = (j + 1) as f64;
        let norm = (n * (n + 1.0)).sqrt();
        (0..=j).for_each(|i| u[i * m + j] = 1.0 / norm);
        u[(j + 1) * m + j] = -n / norm;
    }
    u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basis_is_orthonormal_and_sums_to_zero() {
        for k in 1..9 {
            let (u, m) = (zero_sum_basis(k), k - 1);
            for a in 0..m {
                assert!((0..k).map(|i| u[i * m + a]).sum::<f64>().abs() < 1e-15);
                for b in 0..m {
                    let dot: f64 = (0..k).map(|i| u[i * m + a] * u[i * m + b]).sum();
                    assert!((dot - f64::from(a == b)).abs() < 1e-14, "{k} {a} {b}");
                }
            }
        }
    }
}
