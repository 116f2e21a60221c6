//! The toy data sets of AM207 §6, and models of a handful of points.

use crate::images::UNIT;
use leakscope::Result;
use leakscope_core::fisher::{Geometry, Records, SetSums};
use leakscope_core::glm::{self, Family, Fit, Penalty};
use leakscope_core::random::Seeded;
use leakscope_core::rows::{Block, InMemory};

/// Points with their targets.
#[derive(Debug, Clone)]
pub(super) struct Points {
    /// Columns of each point, the intercept's one last.
    pub(super) x: Vec<Vec<f64>>,
    /// Target of each point.
    pub(super) y: Vec<f64>,
}

impl Points {
    /// Points from columns without an intercept, which is added.
    pub(super) fn new(x: Vec<Vec<f64>>, y: Vec<f64>) -> Self {
        let with_one = |mut row: Vec<f64>| {
            row.push(1.0);
            row
        };
        Self { x: x.into_iter().map(with_one).collect(), y }
    }

    /// As rows with weights (none means one each).
    pub(super) fn rows(&self, weights: &[f64]) -> InMemory {
        InMemory::from_matrix(&self.x.concat(), &self.y, weights, self.y.len().max(1))
    }

    /// The model, with an intercept.
    pub(super) fn fit(&self, family: Family, l2: f64) -> Result<Fit> {
        Ok(glm::fit(&self.rows(&[]), family, Penalty::new(l2, true))?)
    }
}

/// η of points under a model, whether they are among its training points or not.
pub(super) fn eta(fit: &Fit, points: &Points) -> Result<Vec<f64>> {
    Ok(measured(fit, points)?.eta)
}

fn block(points: &Points) -> Block {
    let width = points.x.first().map_or(0, Vec::len);
    Block { width, x: points.x.concat(), y: points.y.clone(), ..Block::default() }
}

fn measured(fit: &Fit, points: &Points) -> Result<Records> {
    let geometry = Geometry::new(fit, &[], UNIT)?;
    let mut out = Records::default();
    geometry.records(&block(points), &mut out);
    Ok(out)
}

/// η of all training points as a whole.
pub(super) fn whole(fit: &Fit, points: &Points) -> Result<f64> {
    let geometry = Geometry::new(fit, &[], UNIT)?;
    let (block, mut records) = (block(points), Records::default());
    geometry.records(&block, &mut records);
    let mut set = SetSums::new(block.width, false);
    geometry.add_to_set(&block, &records, None, &mut set);
    Ok(geometry.set_eta(&set)?)
}

/// §6.1.1: nine points about y = 5x, and (0, −8) last.
pub(super) fn line(seed: u64) -> Points {
    let noise = Seeded::new(seed).normals(9);
    let mut x: Vec<Vec<f64>> = (1..10).map(|x| vec![f64::from(x)]).collect();
    let mut y: Vec<f64> = x.iter().zip(&noise).map(|(x, e)| 5.0 * x[0] + e).collect();
    x.push(vec![0.0]);
    y.push(-8.0);
    Points::new(x, y)
}

/// §6.1.2: class 1 on x₁ = x₂, class 0 on x₁ = x₂ + 1, and last a point of class 1 on the far side of class 0.
pub(super) fn two_lines() -> Points {
    let (mut x, mut y) = (vec![], vec![]);
    for k in 0..10 {
        let t = 0.5 * f64::from(k);
        x.push(vec![t, t]);
        y.push(1.0);
        x.push(vec![t + 1.0, t]);
        y.push(0.0);
    }
    x.push(vec![5.0, 1.5]);
    y.push(1.0);
    Points::new(x, y)
}

/// Two round clouds of two classes.
pub(super) fn clouds(seed: u64, each: usize) -> Points {
    let mut random = Seeded::new(seed);
    let (mut x, mut y) = (vec![], vec![]);
    for k in 0..2 * each {
        let n = random.normals(2);
        let class = k % 2;
        let centre = if class == 1 { 1.5 } else { -1.5 };
        x.push(vec![centre + n[0], centre + n[1]]);
        y.push(class as f64);
    }
    Points::new(x, y)
}

/// A cubic with noise, its abscissae in two stretches with a gap between them, all in [−1, 1].
pub(super) fn cubic(seed: u64, count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = Seeded::new(seed);
    let mut x = vec![];
    for k in 0..count {
        let u = 0.3 + 0.7 * random.uniform();
        x.push(if k % 2 == 0 { u } else { -u });
    }
    let noise = random.normals(count);
    let y = x.iter().zip(noise).map(|(x, e)| 2.0 * x * x * x - 0.6 * x + 0.15 * e).collect();
    (x, y)
}

/// Powers x, x², …, of some degree.
pub(super) fn powers(x: &[f64], degree: usize) -> Vec<Vec<f64>> {
    x.iter().map(|x| (1..=degree).map(|k| x.powi(k as i32)).collect()).collect()
}
