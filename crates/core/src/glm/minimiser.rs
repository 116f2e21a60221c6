//! A fitted model of either kind: one vector of coefficients, or one for each class.

use super::softmax::{self, SoftmaxFit};
use super::{Fit, ModelKind, Penalty, fit};
use crate::Result;
use crate::rows::Rows;

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub enum Minimiser {
    /// One vector of coefficients.
    Glm(Fit),
    /// One for each class.
    Softmax(SoftmaxFit),
}

impl Minimiser {
    /// Fits a model of a kind; `most_classes` limits those of softmax regression.
    ///
    /// # Errors
    /// As [`fit`] and [`softmax::fit`].
    pub fn fit(rows: &dyn Rows, kind: ModelKind, penalty: Penalty, most_classes: usize) -> Result<Self> {
        match kind.family() {
            Some(family) => fit(rows, family, penalty).map(Self::Glm),
            None => softmax::fit(rows, penalty, most_classes).map(Self::Softmax),
        }
    }

    /// The coefficients: one a column, or K × p.
    pub fn w(&self) -> &[f64] {
        match self {
            Self::Glm(fit) => &fit.w,
            Self::Softmax(fit) => &fit.w,
        }
    }

    /// Coordinates in which noise counts: the coefficients, or their (K−1)p contrasts.
    pub fn free(&self) -> usize {
        match self {
            Self::Glm(fit) => fit.w.len(),
            Self::Softmax(fit) => fit.coefficients(),
        }
    }

    /// Number of vectors of coefficients.
    pub fn vectors(&self) -> usize {
        match self {
            Self::Glm(_) => 1,
            Self::Softmax(fit) => fit.classes,
        }
    }

    /// The penalty.
    pub fn penalty(&self) -> Penalty {
        match self {
            Self::Glm(fit) => fit.penalty,
            Self::Softmax(fit) => fit.penalty,
        }
    }
}

/// A fitted model of either kind, borrowed.
#[derive(Debug, Clone, Copy)]
pub enum Fitted<'a> {
    /// One vector of coefficients.
    Glm(&'a Fit),
    /// One for each class.
    Softmax(&'a SoftmaxFit),
}

impl<'a> From<&'a Fit> for Fitted<'a> {
    fn from(fit: &'a Fit) -> Self {
        Self::Glm(fit)
    }
}

impl<'a> From<&'a SoftmaxFit> for Fitted<'a> {
    fn from(fit: &'a SoftmaxFit) -> Self {
        Self::Softmax(fit)
    }
}

impl<'a> From<&'a Minimiser> for Fitted<'a> {
    fn from(fit: &'a Minimiser) -> Self {
        match fit {
            Minimiser::Glm(fit) => Self::Glm(fit),
            Minimiser::Softmax(fit) => Self::Softmax(fit),
        }
    }
}

impl<'a> Fitted<'a> {
    /// Columns p, intercept included.
    pub fn width(self) -> usize {
        match self {
            Self::Glm(fit) => fit.w.len(),
            Self::Softmax(fit) => fit.width,
        }
    }

    /// Vectors of free coefficients: 1, or K − 1 contrasts of classes.
    pub fn contrasts(self) -> usize {
        match self {
            Self::Glm(_) => 1,
            Self::Softmax(fit) => fit.classes - 1,
        }
    }

    /// Coordinates in which noise counts: the coefficients, or their (K−1)p contrasts.
    pub fn free(self) -> usize {
        self.contrasts() * self.width()
    }

    /// The coefficients in these coordinates, one row a contrast.
    pub fn coordinates(self) -> &'a [f64] {
        match self {
            Self::Glm(fit) => &fit.w,
            Self::Softmax(fit) => &fit.theta,
        }
    }

    /// The Hessian in these coordinates.
    pub fn hessian(self) -> &'a [f64] {
        match self {
            Self::Glm(fit) => &fit.hessian,
            Self::Softmax(fit) => &fit.hessian,
        }
    }

    /// The penalty.
    pub fn penalty(self) -> Penalty {
        match self {
            Self::Glm(fit) => fit.penalty,
            Self::Softmax(fit) => fit.penalty,
        }
    }
}
