//! A target in the mathematics: directions scaled by `√K/η`, so that every constraint is `≤ 1`.

use super::{Protected, Target, nothing_to_protect};
use crate::fisher::Directions;
use crate::fisher::softmax::SWITCH;
use crate::glm::Fitted;
use crate::linalg::{dot, matmul};
use crate::{Error, Result};

/// The directions of one target.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) p: usize,
    /// p × count, row-major, scaled.
    pub(super) basis: Vec<f64>,
    pub(super) count: usize,
    /// Scale of the label where it is in the group, else 0: of a unit of its code, or of a switch between two classes.
    pub(super) label: f64,
    /// Directions of the label where it is in the group: one, or one a contrast of the classes.
    pub(super) labels: usize,
    /// `ΘB`, one row a contrast; for one vector of coefficients `Bᵀw`.
    pub(super) w: Vec<f64>,
    /// `√K/η`.
    pub(super) scale: f64,
}

impl Group {
    pub(super) fn new<'a>(target: &Target, fit: impl Into<Fitted<'a>>, releases: u32) -> Result<Self> {
        let fit = fit.into();
        let (p, k) = (fit.width(), fit.contrasts());
        if !(target.eta > 0.0 && target.eta.is_finite()) {
            return Err(Error::OutOfRange {
                subject: "the target for eta",
                value: target.eta,
                expected: "a positive number",
            });
        }
        let scale = f64::from(releases).sqrt() / target.eta;
        let switch = match fit {
            Fitted::Glm(_) => scale,
            Fitted::Softmax(_) => scale * SWITCH,
        };
        let (directions, label) = match &target.protected {
            Protected::Record { label } => {
                (Directions::columns(0..fit.penalty().data_width(p), p), if *label { switch } else { 0.0 })
            }
            Protected::Attribute(directions) => (directions.clone(), 0.0),
            Protected::Label => (Directions { basis: vec![], count: 0 }, switch),
        };
        let count = directions.count;
        if directions.basis.len() != p * count {
            let (actual, expected) = (directions.basis.len(), p * count);
            return Err(Error::Shape { subject: "the directions of an attribute", actual, expected });
        }
        if count == 0 && label == 0.0 {
            return Err(nothing_to_protect());
        }
        let basis: Vec<f64> = directions.basis.iter().map(|v| v * scale).collect();
        let mut w = vec![0.0; k * count];
        matmul(fit.coordinates(), &basis, (k, p, count), &mut w);
        let labels = if label == 0.0 { 0 } else { k };
        Ok(Self { p, basis, count, label, labels, w, scale })
    }

    /// Directions, those of the label included.
    pub(super) fn dimensions(&self) -> usize {
        self.count + self.labels
    }

    /// Row i of the basis.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.basis[i * self.count..(i + 1) * self.count]
    }

    /// Direction k as a change of the record's values; none for one of the label.
    pub(super) fn values(&self, k: usize) -> Vec<f64> {
        match k < self.count {
            true => (0..self.p).map(|j| self.row(j)[k]).collect(),
            false => vec![0.0; self.p],
        }
    }

    /// Direction k as a change of a label that is one number.
    pub(super) fn of_label(&self, k: usize) -> f64 {
        if k < self.count { 0.0 } else { self.label }
    }

    /// `Bv`.
    pub(super) fn combined(&self, v: &[f64]) -> Vec<f64> {
        (0..self.p).map(|i| dot(self.row(i), v)).collect()
    }
}

/// `ΣBBᵀ` over groups, p × p.
pub(super) fn squares(groups: &[Group], p: usize) -> Vec<f64> {
    let of = |ij: usize| groups.iter().map(|g| dot(g.row(ij / p), g.row(ij % p))).sum();
    (0..p * p).map(of).collect()
}
