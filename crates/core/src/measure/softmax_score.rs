//! η of points that a softmax model was not trained on.

use super::Extremes;
use crate::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass that scores points of a softmax model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxScore<'a> {
    /// The model and its release.
    pub geometry: Cow<'a, SoftmaxGeometry>,
    /// Whether the scaling of columns is counted, as in the records that points are compared with.
    pub counted: bool,
    /// Whether the points have labels; where not, the most probable class stands in.
    pub labelled: bool,
    /// Points of largest η that are kept.
    pub most: usize,
}

/// Scores of points.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoftmaxScores {
    /// Information loss.
    pub eta: Distribution,
    /// Points of largest η.
    pub most: Extremes,
    #[serde(skip)]
    records: SoftmaxRecords,
}

impl SoftmaxScores {
    /// Leakage of the points of the last block that was added.
    pub fn last(&self) -> &SoftmaxRecords {
        &self.records
    }
}

impl Merge for SoftmaxScores {
    fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
        self.most.merge(later.most);
    }
}

impl Pass for SoftmaxScore<'_> {
    const NAME: &'static str = "the scores of points by a softmax model";
    type State = SoftmaxScores;

    fn start(&self) -> SoftmaxScores {
        let most = Extremes::new(self.most, true);
        SoftmaxScores { eta: Distribution::default(), most, records: SoftmaxRecords::default() }
    }

    fn step(&self, state: &mut SoftmaxScores, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let mut own = block.clone();
        if !self.labelled {
            let fit = self.geometry.fit();
            let pi = fit.probabilities(&block.x);
            for (y, pi) in own.y.iter_mut().zip(pi.chunks_exact(fit.classes)) {
                *y = (0..pi.len()).fold(0, |best, c| if pi[c] > pi[best] { c } else { best }) as f64;
            }
        }
        match self.counted {
            true => self.geometry.counted(&own, &mut state.records)?,
            false => self.geometry.records(&own, &mut state.records)?,
        }
        let records = &state.records;
        if let Some(&value) = records.eta.iter().find(|eta| !eta.is_finite()) {
            let (subject, expected) = ("the leakage of a point", "a finite number: is a column very large?");
            return Err(Error::OutOfRange { subject, value, expected });
        }
        state.eta.extend(&records.eta);
        state.most.add_points(
            block.first_row,
            [&records.eta, &records.dfil, &records.loss, &records.gradient_norm],
        );
        Ok(())
    }

    fn fits(&self, state: &SoftmaxScores) -> bool {
        state.most.has_sizes(&Extremes::new(self.most, true), 1, 0)
    }
}
