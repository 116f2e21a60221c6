//! Two values told apart by a model whose weights balance its leakage.
//!
//! Weights are functions of every record, and one value moves all of them, through every iteration. No rank-two update
//! knows that, and η, its derivative, is no bound on what two values that are far apart do. So the whole is done
//! again: for every record and every value, weights from the start, each iteration's model, and the last fit. That is exact,
//! and costs a run of balancing for every record and value. The number of iterations is given; were it chosen on the data, it
//! would have to be chosen again for every value, and seen in the model.

use super::glance::Limits;
use super::worst::{Certainty, Separation, summed_up};
use super::{Candidate, Noise, Question, penalty_change, replaced};
use crate::balance::{Options, weights_after};
use crate::fisher::check_releases;
use crate::glm::{Minimiser, ModelKind, Penalty};
use crate::linalg::{norm, times};
use crate::rows::{Altered, InMemory, Rows};
use crate::units::Units;
use crate::{Error, Result};

/// What fits and sums may have lost, as a share of a distance: models are fitted to twelve digits and more.
const ROUNDING: f64 = 1e-6;

/// A table whose model is balanced, and what questions about its records share.
#[derive(Debug)]
pub struct BalancedTelling<'a> {
    x: Vec<f64>,
    y: Vec<f64>,
    weights: Vec<f64>,
    width: usize,
    model: (ModelKind, Penalty),
    options: &'a Options,
    iterations: usize,
    units: &'a Units,
    whitening: Vec<f64>,
    releases: u32,
    /// The model of the records as they are.
    w: Vec<f64>,
}

impl<'a> BalancedTelling<'a> {
    /// Reads a table (in public units, in which its model is fitted) into memory.
    ///
    /// # Errors
    /// Those of balancing and fit, and [`Error::NotApplicable`] for weights that are not of the published kind, or where a record
    /// leaks nothing.
    pub fn new(
        rows: &dyn Rows,
        model: (impl Into<ModelKind>, Penalty),
        (options, iterations): (&'a Options, usize),
        units: &'a Units,
        (noise, releases): (&Noise, u32),
    ) -> Result<Self> {
        check_releases(releases)?;
        let (mut x, mut y, mut weights) = (vec![], vec![], vec![]);
        rows.fold(
            || (vec![], vec![], vec![]),
            |(x, y, weights): &mut (Vec<f64>, Vec<f64>, Vec<f64>), block| {
                x.extend_from_slice(&block.x);
                y.extend_from_slice(&block.y);
                weights.extend((0..block.len()).map(|i| block.weight_of(i)));
                Ok(())
            },
            |part| {
                x.extend(part.0);
                y.extend(part.1);
                weights.extend(part.2);
                Ok(())
            },
        )?;
        let (width, model) = (rows.width(), (model.0.into(), model.1));
        let (whitening, w) = (vec![], vec![]);
        let mut all =
            Self { x, y, weights, width, model, options, iterations, units, whitening, releases, w };
        all.w = all.refit(&all.x, &all.y)?.ok_or(Error::NotApplicable {
            subject: "telling values apart by balancing again",
            setting: "weights that are not of the published kind, or a record that leaks nothing",
            advice: "take the model without balancing",
        })?;
        all.whitening = noise.whitening(all.w.len())?;
        Ok(all)
    }

    /// Bounds how often somebody who knows all else can answer `question` about each record; `watch` hears how many
    /// records are done, and may stop it.
    ///
    /// # Guarantee
    /// [`super::two_values`] for every record and any two of the values: the attacker knows that and how often the model is
    /// balanced. A value under which a public unit would have been another, or with which there is no model, is told for certain.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::OutOfRange`] for a question that does not fit the model, and whatever `watch` returns.
    pub fn ask(&self, question: &Question, mut watch: impl FnMut(u64) -> Result<()>) -> Result<Separation> {
        let candidates = question.candidates(self.units.len())?;
        let mut limits = Vec::with_capacity(self.y.len());
        for i in 0..self.y.len() {
            watch(i as u64)?;
            let models = candidates.iter().map(|c| self.with(i, c)).collect::<Result<Vec<_>>>()?;
            limits.push(self.limits(&models));
        }
        let told = summed_up(&limits, candidates.len(), self.releases)?;
        Ok(Separation { refitted: self.y.len(), ..told })
    }

    /// The model with a candidate in place of record `i`.
    fn with(&self, i: usize, candidate: &Candidate) -> Result<OtherModel> {
        let p = self.width;
        let (own, n) = (&self.x[i * p..(i + 1) * p], self.y.len() as f64);
        let candidate = &*candidate.of(own, self.y[i]);
        let (row, label) = replaced(own, self.y[i], candidate);
        if row == own && label == self.y[i] {
            return Ok(OtherModel::Model(self.w.clone()));
        }
        if penalty_change(self.units, (n, self.model.1.l2), own, candidate).is_none() {
            return Ok(OtherModel::OtherUnits);
        }
        let (mut x, mut y) = (self.x.clone(), self.y.clone());
        x[i * p..(i + 1) * p].copy_from_slice(&row);
        y[i] = label;
        match self.refit(&x, &y) {
            Ok(Some(w)) => Ok(OtherModel::Model(w)),
            // Without a model there is no release: that it is there shows.
            Ok(None)
            | Err(
                Error::Separable
                | Error::NoConvergence { .. }
                | Error::Singular { .. }
                | Error::RareClass { .. }
                | Error::Weight { .. }
                | Error::Setting { .. }
                | Error::OutOfRange { .. },
            ) => Ok(OtherModel::Nothing),
            Err(e) => Err(e),
        }
    }

    /// Balancing and fit, from the start: the coefficients, or the contrasts of classes, whose distances are those of all
    /// classes' coefficients.
    fn refit(&self, x: &[f64], y: &[f64]) -> Result<Option<Vec<f64>>> {
        let rows = InMemory::from_matrix(x, y, &self.weights, y.len());
        let Some(weights) = weights_after(&rows, self.model, self.options, self.iterations)? else {
            return Ok(None);
        };
        let weighted = Altered::weighted(&rows, &weights)?;
        // How many classes there may be was asked when the table was read.
        Ok(Some(match Minimiser::fit(&weighted, self.model.0, self.model.1, y.len())? {
            Minimiser::Glm(fit) => fit.w,
            Minimiser::Softmax(fit) => fit.theta,
        }))
    }

    fn limits(&self, models: &[OtherModel]) -> Limits {
        let last = models.len().clamp(1, 2) as u32 - 1;
        let mut limits = Limits { least: 0.0, most: 0.0, pair: [0, last], refitted: true, certain: None };
        for (i, a) in models.iter().enumerate() {
            for (j, b) in models[..i].iter().enumerate() {
                let (least, most) = match (a, b) {
                    (OtherModel::Model(a), OtherModel::Model(b)) => {
                        let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
                        let length = norm(&times(&self.whitening, &apart));
                        let most = if length.is_nan() { f64::INFINITY } else { length * (1.0 + ROUNDING) };
                        (length * (1.0 - ROUNDING), most)
                    }
                    (OtherModel::Model(_) | OtherModel::OtherUnits | OtherModel::Nothing, _) => {
                        (0.0, f64::INFINITY)
                    }
                };
                limits.least = limits.least.max(least);
                if most > limits.most {
                    (limits.most, limits.pair) = (most, [j as u32, i as u32]);
                }
            }
        }
        if limits.most.is_infinite() {
            let in_units = models.iter().any(|m| matches!(m, OtherModel::OtherUnits));
            limits.certain = Some(if in_units { Certainty::Units } else { Certainty::NoModel });
        }
        limits
    }
}

/// What another value makes of the model.
enum OtherModel {
    /// Its coefficients.
    Model(Vec<f64>),
    /// A public unit would be another.
    OtherUnits,
    /// There would be none.
    Nothing,
}
