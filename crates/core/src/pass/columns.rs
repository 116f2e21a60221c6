//! What an encoding needs of its columns before it is complete: the largest norm of a row, and the covariance.

use super::{Merge, Pass, overflowing};
use crate::Result;
use crate::linalg::{add, axpy, gram_add_lower, mirror_lower, norm};
use crate::rows::Block;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass for the largest norm of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestNorm;

/// The largest norm so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Largest {
    /// It; 0 without rows.
    pub norm: f64,
}

impl Merge for Largest {
    fn merge(&mut self, later: Self) {
        self.norm = self.norm.max(later.norm);
    }
}

impl Pass for LargestNorm {
    const NAME: &'static str = "the largest norm of a row";
    type State = Largest;

    fn start(&self) -> Largest {
        Largest::default()
    }

    fn step(&self, state: &mut Largest, block: &Block) -> Result<()> {
        state.norm = block.x.chunks_exact(block.width.max(1)).fold(state.norm, |m, row| m.max(norm(row)));
        Ok(())
    }

    fn fits(&self, state: &Largest) -> bool {
        state.norm >= 0.0
    }
}

/// The pass for the covariance of the columns, around means that are known up to rounding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Covariance<'a> {
    /// What is subtracted from every row.
    pub centre: Cow<'a, [f64]>,
}

/// Sums of the covariance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CovarianceSums {
    /// `Σ(x − m)(x − m)ᵀ`, lower triangle.
    #[serde(serialize_with = "overflowing::numbers")]
    gram: Vec<f64>,
    /// `Σ(x − m)`.
    #[serde(serialize_with = "overflowing::numbers")]
    delta: Vec<f64>,
    rows: u64,
    #[serde(skip)]
    centred: Vec<f64>,
    #[serde(skip)]
    scratch: Vec<f64>,
}

impl CovarianceSums {
    /// Mean and covariance `C = Σ(x − m)(x − m)ᵀ/n − δδᵀ` with `δ = Σ(x − m)/n`, p × p.
    pub fn finish(self, centre: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (p, n) = (self.delta.len(), self.rows as f64);
        let (mut gram, delta) = (self.gram, self.delta);
        mirror_lower(&mut gram, p);
        for i in 0..p {
            for j in 0..p {
                gram[i * p + j] = gram[i * p + j] / n - delta[i] / n * (delta[j] / n);
            }
        }
        (centre.iter().zip(&delta).map(|(m, d)| m + d / n).collect(), gram)
    }
}

impl Merge for CovarianceSums {
    fn merge(&mut self, later: Self) {
        add(&later.gram, &mut self.gram);
        axpy(1.0, &later.delta, &mut self.delta);
        self.rows += later.rows;
    }
}

impl Pass for Covariance<'_> {
    const NAME: &'static str = "the covariance of the columns";
    type State = CovarianceSums;

    fn start(&self) -> CovarianceSums {
        let p = self.centre.len();
        CovarianceSums { gram: vec![0.0; p * p], delta: vec![0.0; p], ..CovarianceSums::default() }
    }

    fn step(&self, s: &mut CovarianceSums, block: &Block) -> Result<()> {
        let (p, m) = (self.centre.len(), &self.centre);
        s.centred.clear();
        s.centred.extend(block.x.chunks_exact(p).flat_map(|row| row.iter().zip(&**m).map(|(x, m)| x - m)));
        s.centred.chunks_exact(p).for_each(|row| axpy(1.0, row, &mut s.delta));
        gram_add_lower(&s.centred, None, p, &mut s.scratch, &mut s.gram);
        s.rows += (block.x.len() / p) as u64;
        Ok(())
    }

    fn fits(&self, state: &CovarianceSums) -> bool {
        let p = self.centre.len();
        state.delta.len() == p && state.gram.len() == p * p
    }
}
