//! The sums of a fit as passes: objective, gradient and Hessian at given coefficients.

use super::{Family, Parameter};
use crate::linalg::{add, add_transposed_times, axpy, dot, gram_add_lower, norm};
use crate::pass::{Merge, Pass, overflowing};
use crate::rows::Block;
use crate::vector::{RowProducts, dispatch};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Share of a predictor's size within which it counts as at a kink: a fit leaves less than this.
const KINK: f64 = 1e-9;

/// The pass of a Newton step: the sums at coefficients `w`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newton<'a> {
    /// The family.
    pub family: Family,
    /// The coefficients; an intercept comes last.
    pub w: Cow<'a, [f64]>,
    /// Whether the Hessian is summed: where it is constant, one pass is enough.
    pub with_hessian: bool,
}

/// The pass of the working least-squares problem that starts a fit with a logarithmic link: `z₀ = log μ₀` with weights a at z₀,
/// `μ₀ = y + ½` for counts, `y` for others (and ½ where that is zero).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStart {
    /// The family.
    pub family: Family,
    /// Number of columns.
    pub width: usize,
}

/// The pass of a least-squares problem that starts a Huber fit: unit weights, or at coefficients `w` the weights `min(1, δ/|r|)`, with
/// which the quadratic lies above the loss and touches it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HuberStart<'a> {
    /// δ.
    pub threshold: Parameter,
    /// The coefficients; empty for unit weights.
    pub w: Cow<'a, [f64]>,
    /// Number of columns.
    pub width: usize,
}

/// Sums of one pass of a fit, without the penalty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    #[serde(serialize_with = "overflowing::number")]
    pub(super) loss: f64,
    pub(super) weight: f64,
    /// The size of the gradient if nothing cancelled (see [`super::TOLERANCE`]).
    #[serde(serialize_with = "overflowing::number")]
    pub(super) scale: f64,
    /// Largest size of a value of each column; filled along with the Hessian.
    pub(super) reach: Vec<f64>,
    #[serde(serialize_with = "overflowing::numbers")]
    pub(super) gradient: Vec<f64>,
    /// Lower triangle; empty where it is not asked for.
    #[serde(serialize_with = "overflowing::numbers")]
    pub(super) hessian: Vec<f64>,
    /// Smallest margin (2y − 1)z of a two-class problem over rows with positive weight.
    pub(super) margin: f64,
    pub(super) unit_weights: bool,
    /// Records at a kink of the loss, to rounding.
    pub(super) at_kink: u64,
    pub(super) rows: u64,
    #[serde(skip)]
    scratch: Scratch,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Scratch {
    gram: Vec<f64>,
    curvature: Vec<f64>,
    slopes: Vec<f64>,
    dots: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(p: usize, with_hessian: bool) -> Self {
        Self {
            reach: vec![0.0; p],
            gradient: vec![0.0; p],
            hessian: vec![0.0; if with_hessian { p * p } else { 0 }],
            margin: f64::INFINITY,
            unit_weights: true,
            ..Self::default()
        }
    }

    fn has_sizes(&self, p: usize, with_hessian: bool) -> bool {
        let hessian = if with_hessian { p * p } else { 0 };
        self.gradient.len() == p && self.reach.len() == p && self.hessian.len() == hessian
    }

    fn add_hessian(&mut self, family: Family, block: &Block) {
        if self.hessian.is_empty() {
            return;
        }
        let unweighted = family.constant_curvature() && block.weight.is_empty();
        let weights = if unweighted { None } else { Some(self.scratch.curvature.as_slice()) };
        gram_add_lower(&block.x, weights, block.width, &mut self.scratch.gram, &mut self.hessian);
        for row in block.x.chunks_exact(block.width.max(1)) {
            self.reach.iter_mut().zip(row).for_each(|(reach, x)| *reach = reach.max(x.abs()));
        }
    }
}

impl Merge for Sums {
    fn merge(&mut self, later: Self) {
        self.loss += later.loss;
        self.weight += later.weight;
        self.scale += later.scale;
        axpy(1.0, &later.gradient, &mut self.gradient);
        add(&later.hessian, &mut self.hessian);
        self.reach.iter_mut().zip(&later.reach).for_each(|(reach, x)| *reach = reach.max(*x));
        self.margin = self.margin.min(later.margin);
        self.unit_weights &= later.unit_weights;
        self.at_kink += later.at_kink;
        self.rows += later.rows;
    }
}

fn check_width(block: &Block, expected: usize) -> Result<()> {
    if block.width == expected {
        return Ok(());
    }
    Err(Error::Shape { subject: "a row", actual: block.width, expected })
}

impl Pass for Newton<'_> {
    const NAME: &'static str = "the sums of a Newton step";
    type State = Sums;

    fn start(&self) -> Sums {
        Sums::new(self.w.len(), self.with_hessian)
    }

    fn step(&self, sums: &mut Sums, block: &Block) -> Result<()> {
        check_width(block, self.w.len())?;
        let Scratch { curvature, slopes, dots, squares, .. } = &mut sums.scratch;
        curvature.clear();
        slopes.clear();
        dispatch(RowProducts { x: &block.x, w: &self.w, dots, squares });
        let length = norm(&self.w);
        for i in 0..block.len() {
            let (y, omega, z) = (block.y[i], block.weight_of(i), dots[i]);
            let t = self.family.terms(z, y);
            sums.loss += omega * t.loss;
            sums.weight += omega;
            let size = squares[i].sqrt();
            sums.scale += omega * self.family.slope_size(t, y, size * length) * size;
            sums.unit_weights &= omega == 1.0;
            if omega > 0.0 {
                sums.margin = sums.margin.min((2.0 * y - 1.0) * z);
            }
            let at_kink = self.family.kink(z, y).is_some_and(|d| d <= KINK * (1.0 + z.abs() + y.abs()));
            sums.at_kink += u64::from(at_kink && omega > 0.0);
            slopes.push(omega * t.r);
            curvature.push(omega * t.a);
        }
        add_transposed_times(&block.x, slopes, &mut sums.gradient);
        sums.rows += block.len() as u64;
        sums.add_hessian(self.family, block);
        Ok(())
    }

    fn fits(&self, sums: &Sums) -> bool {
        sums.has_sizes(self.w.len(), self.with_hessian)
    }
}

impl Pass for LogStart {
    const NAME: &'static str = "the sums that start a fit with a logarithmic link";
    type State = Sums;

    fn start(&self) -> Sums {
        Sums::new(self.width, true)
    }

    fn step(&self, sums: &mut Sums, block: &Block) -> Result<()> {
        check_width(block, self.width)?;
        sums.scratch.curvature.clear();
        for i in 0..block.len() {
            let (y, omega) = (block.y[i], block.weight_of(i));
            let counted = self.family == Family::Poisson;
            let mu = if counted { y + 0.5 } else { Some(y).filter(|y| *y > 0.0).unwrap_or(0.5) };
            let (z, a) = (mu.ln(), self.family.terms(mu.ln(), mu).a);
            axpy(omega * a * z, block.row(i), &mut sums.gradient);
            sums.scratch.curvature.push(omega * a);
        }
        sums.rows += block.len() as u64;
        sums.add_hessian(self.family, block);
        Ok(())
    }

    fn fits(&self, sums: &Sums) -> bool {
        sums.has_sizes(self.width, true)
    }
}

impl Pass for HuberStart<'_> {
    const NAME: &'static str = "the sums that start a Huber fit";
    type State = Sums;

    fn start(&self) -> Sums {
        Sums::new(self.width, true)
    }

    fn step(&self, sums: &mut Sums, block: &Block) -> Result<()> {
        check_width(block, self.width)?;
        sums.scratch.curvature.clear();
        let family = Family::Huber(self.threshold);
        for i in 0..block.len() {
            let (x, y, omega) = (block.row(i), block.y[i], block.weight_of(i));
            let mut weight = omega;
            if !self.w.is_empty() {
                let z = dot(x, &self.w);
                sums.loss += omega * family.terms(z, y).loss;
                weight *= (self.threshold.value() / (z - y).abs()).min(1.0);
            }
            axpy(weight * y, x, &mut sums.gradient);
            sums.scratch.curvature.push(weight);
        }
        sums.rows += block.len() as u64;
        sums.add_hessian(family, block);
        Ok(())
    }

    fn fits(&self, sums: &Sums) -> bool {
        sums.has_sizes(self.width, true)
    }
}
