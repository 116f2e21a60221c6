//! η of points that were not in the training set: how far a record is from what the model was made from (AM207 §7).

use super::{Counting, Extremes};
use crate::Result;
use crate::fisher::scaling::CountedRecords;
use crate::fisher::{Geometry, Records};
use crate::glm::Family;
use crate::linalg::dot;
use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass that scores points.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Score<'a> {
    /// The model and its release.
    pub geometry: Cow<'a, Geometry>,
    /// The same with the scaling of columns counted, where the training records are measured so: points are compared with
    /// them.
    pub counting: Option<Cow<'a, Counting>>,
    /// Whether the points have labels; where not, the model's own prediction stands in.
    pub labelled: bool,
    /// Whether the target is two classes.
    pub two_class: bool,
    /// Points of largest η that are kept.
    pub most: usize,
}

/// Scores of points.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scores {
    /// Information loss.
    pub eta: Distribution,
    /// Points of largest η.
    pub most: Extremes,
    #[serde(skip)]
    records: Records,
    #[serde(skip)]
    counted: CountedRecords,
    #[serde(skip)]
    block: Block,
}

impl Scores {
    /// Leakage of the points of the last block that was added.
    pub fn last(&self) -> &Records {
        &self.records
    }
}

impl Merge for Scores {
    fn merge(&mut self, later: Self) {
        self.eta.merge(later.eta);
        self.most.merge(later.most);
    }
}

impl Score<'_> {
    /// The class that the model would give, or the value.
    fn predict(&self, block: &mut Block) {
        let fit = self.geometry.fit();
        for i in 0..block.len() {
            let z = dot(block.row(i), &fit.w);
            block.y[i] = match fit.family {
                Family::Linear if !self.two_class => z,
                Family::Linear => {
                    if z >= 0.0 {
                        1.0
                    } else {
                        -1.0
                    }
                }
                Family::Logistic | Family::SquaredHinge => f64::from(u8::from(z >= 0.0)),
                Family::Poisson | Family::Gamma | Family::Tweedie(_) => z.exp(),
                Family::Huber(_) => z,
            };
        }
    }
}

impl Pass for Score<'_> {
    const NAME: &'static str = "the scores of points";
    type State = Scores;

    fn start(&self) -> Scores {
        Scores {
            eta: Distribution::default(),
            most: Extremes::new(self.most, true),
            records: Records::default(),
            counted: CountedRecords::default(),
            block: Block::default(),
        }
    }

    fn step(&self, state: &mut Scores, block: &Block) -> Result<()> {
        self.geometry.check_width(block)?;
        let mut own = std::mem::take(&mut state.block);
        let labelled = if self.labelled {
            block
        } else {
            own.clone_from(block);
            self.predict(&mut own);
            &own
        };
        match self.counting.as_deref().filter(|c| c.replaces) {
            Some(counting) => {
                let into = (&mut state.records, &mut state.counted);
                super::records(&self.geometry, Some(counting), labelled, into)?;
            }
            None => self.geometry.eta(labelled, &mut state.records),
        }
        state.block = own;
        let records = &state.records;
        records.check()?;
        state.eta.extend(&records.eta);
        state.most.add_points(
            block.first_row,
            [&records.eta, &records.dfil, &records.loss, &records.gradient_norm],
        );
        Ok(())
    }

    fn fits(&self, state: &Scores) -> bool {
        state.most.has_sizes(&Extremes::new(self.most, true), 1, 0)
    }
}
