//! The sums of a fit of softmax regression as passes: its classes, and objective, gradient and Hessian at given coefficients.

use super::{contrasts, loss, pairs, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{
    add, add_transposed_times, axpy, gram_add_lower, matmul_by_transposed, mirror_lower, norm,
};
use crate::pass::{self, Merge, Pass, overflowing};
use crate::rows::{Block, Rows};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass that counts the records of every class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCounts {
    /// Classes at most.
    pub most: usize,
}

/// Records of every class so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedClasses {
    /// By class, up to the largest that was seen.
    pub counts: Vec<u64>,
}

impl Merge for CountedClasses {
    fn merge(&mut self, later: Self) {
        if self.counts.len() < later.counts.len() {
            self.counts.resize(later.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&later.counts).for_each(|(a, b)| *a += b);
    }
}

impl Pass for ClassCounts {
    const NAME: &'static str = "the records of every class";
    type State = CountedClasses;

    fn start(&self) -> CountedClasses {
        CountedClasses::default()
    }

    fn step(&self, state: &mut CountedClasses, block: &Block) -> Result<()> {
        for &y in &block.y {
            if !(y >= 0.0 && y.fract() == 0.0) {
                let expected = "a class as a whole number from 0";
                return Err(Error::OutOfRange { subject: "a target", value: y, expected });
            }
            if y >= self.most as f64 {
                let expected = "at most as many classes as allowed: merge rare ones, raise the limit, or is the target a number?";
                return Err(Error::OutOfRange { subject: "the number of classes", value: y + 1.0, expected });
            }
            let class = y as usize;
            if state.counts.len() <= class {
                state.counts.resize(class + 1, 0);
            }
            state.counts[class] += 1;
        }
        Ok(())
    }

    fn fits(&self, state: &CountedClasses) -> bool {
        state.counts.len() <= self.most
    }
}

/// Number of records of every class of the rows.
///
/// # Errors
/// [`Error::OutOfRange`] for a target that is no whole number from 0, for one class alone or more than `most`;
/// [`Error::RareClass`] for a class below the largest with fewer than two records, which nothing but itself determines.
pub fn count_classes(rows: &dyn Rows, most: usize) -> Result<Vec<u64>> {
    let CountedClasses { counts } = pass::run(&ClassCounts { most }, rows)?;
    if counts.is_empty() {
        return Err(Error::Empty);
    }
    if counts.len() < 2 {
        let expected = "at least 2: with one class there is nothing to predict";
        return Err(Error::OutOfRange { subject: "the number of classes", value: 1.0, expected });
    }
    match counts.iter().position(|&c| c < 2) {
        Some(class) => Err(Error::RareClass { class, records: counts[class] }),
        None => Ok(counts),
    }
}

/// The pass of a Newton step: the sums at coefficients W.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftmaxNewton<'a> {
    /// Number of classes K.
    pub classes: usize,
    /// Coefficients, K × p, that sum to zero over classes.
    pub w: Cow<'a, [f64]>,
}

/// Sums of one pass, without the penalty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftmaxNewtonSums {
    #[serde(serialize_with = "overflowing::number")]
    pub(super) loss: f64,
    pub(super) weight: f64,
    #[serde(serialize_with = "overflowing::number")]
    pub(super) scale: f64,
    pub(super) rows: u64,
    #[serde(serialize_with = "overflowing::number")]
    pub(super) margin: f64,
    /// Largest size of a value of each column, over rows that count.
    pub(super) reach: Vec<f64>,
    #[serde(serialize_with = "overflowing::numbers")]
    pub(super) gradient: Vec<f64>,
    #[serde(serialize_with = "overflowing::numbers")]
    pub(super) hessian: Vec<f64>,
    #[serde(skip)]
    scratch: Scratch,
}

/// Buffers of a pass.
#[derive(Debug, Clone, Default, PartialEq)]
struct Scratch {
    z: Vec<f64>,
    reduced: Vec<f64>,
    curvature: Vec<Vec<f64>>,
    weighted: Vec<f64>,
    gram: Vec<f64>,
}

impl SoftmaxNewton<'_> {
    fn width(&self) -> usize {
        self.w.len().checked_div(self.classes).unwrap_or(0)
    }

    fn coefficients(&self) -> usize {
        self.classes.saturating_sub(1) * self.width()
    }
}

impl SoftmaxNewtonSums {
    fn add(&mut self, (classes, w, u): (usize, &[f64], &[f64]), block: &Block) {
        let (n, p, k) = (block.len(), block.width, classes - 1);
        let (size, mut scratch) = (norm(w), std::mem::take(&mut self.scratch));
        scratch.z.resize(n * classes, 0.0);
        matmul_by_transposed(&block.x, w, (n, p, classes), &mut scratch.z);
        scratch.reduced.clear();
        scratch.curvature.resize(k * classes / 2, vec![]);
        scratch.curvature.iter_mut().for_each(Vec::clear);
        for i in 0..n {
            let (omega, class) = (block.weight_of(i), (block.y[i] as usize).min(classes - 1));
            let z = &mut scratch.z[i * classes..(i + 1) * classes];
            let own = z[class];
            let rival = (0..classes).filter(|c| *c != class).map(|c| z[c]).fold(f64::NEG_INFINITY, f64::max);
            if omega > 0.0 {
                self.margin = self.margin.min(own - rival);
                let columns = self.reach.iter_mut().zip(block.row(i));
                columns.for_each(|(reach, x)| *reach = reach.max(x.abs()));
            }
            let normaliser = softmax(z);
            self.loss += omega * loss(z, class, normaliser - own);
            self.weight += omega;
            let first = scratch.reduced.len();
            scratch.reduced.extend(reduced_residual(z, class, u));
            let s = reduced_curvature(z, u);
            let (length, trace) = (norm(block.row(i)), (0..k).map(|a| s[a * k + a]).sum::<f64>());
            self.scale += omega * length * (norm(&scratch.reduced[first..]) + trace * length * size);
            scratch.reduced[first..].iter_mut().for_each(|v| *v *= omega);
            for (slot, ab) in scratch.curvature.iter_mut().zip(pairs(k)) {
                slot.push(omega * s[ab.0 * k + ab.1]);
            }
        }
        self.rows += n as u64;
        // Gradient blocks Xᵀ(ωρ̂_k).
        let mut column = vec![0.0; n];
        for a in 0..k {
            (0..n).for_each(|i| column[i] = scratch.reduced[i * k + a]);
            add_transposed_times(&block.x, &column, &mut self.gradient[a * p..(a + 1) * p]);
        }
        self.add_hessian(block, k, &mut scratch);
        self.scratch = scratch;
    }

    fn add_hessian(&mut self, block: &Block, k: usize, scratch: &mut Scratch) {
        let (p, q) = (block.width, k * block.width);
        for (weights, (a, b)) in scratch.curvature.iter().zip(pairs(k)) {
            scratch.gram.clear();
            scratch.gram.resize(p * p, 0.0);
            gram_add_lower(&block.x, Some(weights), p, &mut scratch.weighted, &mut scratch.gram);
            mirror_lower(&mut scratch.gram, p);
            for i in 0..p {
                axpy(
                    1.0,
                    &scratch.gram[i * p..(i + 1) * p],
                    &mut self.hessian[(a * p + i) * q + b * p..][..p],
                );
            }
        }
    }
}

impl Merge for SoftmaxNewtonSums {
    fn merge(&mut self, later: Self) {
        self.loss += later.loss;
        self.weight += later.weight;
        self.scale += later.scale;
        self.rows += later.rows;
        self.margin = self.margin.min(later.margin);
        self.reach.iter_mut().zip(&later.reach).for_each(|(a, b)| *a = a.max(*b));
        axpy(1.0, &later.gradient, &mut self.gradient);
        add(&later.hessian, &mut self.hessian);
    }
}

impl Pass for SoftmaxNewton<'_> {
    const NAME: &'static str = "the sums of a Newton step of a softmax model";
    type State = SoftmaxNewtonSums;

    fn start(&self) -> SoftmaxNewtonSums {
        let (p, q) = (self.width(), self.coefficients());
        SoftmaxNewtonSums {
            loss: 0.0,
            weight: 0.0,
            scale: 0.0,
            rows: 0,
            margin: f64::INFINITY,
            reach: vec![0.0; p],
            gradient: vec![0.0; q],
            hessian: vec![0.0; q * q],
            scratch: Scratch::default(),
        }
    }

    fn step(&self, state: &mut SoftmaxNewtonSums, block: &Block) -> Result<()> {
        if self.classes < 2 || block.width * self.classes != self.w.len() {
            return Err(Error::Shape { subject: "a row", actual: block.width, expected: self.width() });
        }
        state.add((self.classes, &self.w, &contrasts(self.classes)), block);
        Ok(())
    }

    fn fits(&self, state: &SoftmaxNewtonSums) -> bool {
        let q = self.coefficients();
        state.reach.len() == self.width() && state.gradient.len() == q && state.hessian.len() == q * q
    }
}
