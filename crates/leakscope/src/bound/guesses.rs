//! Bounds on guesses of a column of a linear regression, as a pass: the models with each candidate in a record's place follow from
//! that record alone.

use super::data::Game;
use leakscope_core::Result;
use leakscope_core::attack::{Deltas, Secret, refits_of_block};
use leakscope_core::bound::RecordBounds;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::glm::Fit;
use leakscope_core::linalg::Cholesky;
use leakscope_core::pass::{Merge, Pass};
use leakscope_core::rows::Block;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass that bounds what can be guessed of every record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Guesses<'a> {
    fit: Cow<'a, Fit>,
    /// `H⁻¹`.
    inverse: Vec<f64>,
    secret: Cow<'a, Secret>,
    /// The noise by which distances are measured, where it has a shape.
    shape: Option<Cow<'a, Noise>>,
    /// Bounds of no record.
    none: RecordBounds,
}

/// Bounds so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Guessed {
    pub(super) bounds: RecordBounds,
    /// Records whose value is no candidate.
    pub(super) left_out: u64,
    #[serde(skip)]
    deltas: Deltas,
}

impl<'a> Guesses<'a> {
    /// For the game about a column of a model.
    pub(super) fn new(game: &'a Game, fit: &'a Fit, none: RecordBounds) -> Result<Self> {
        let inverse = Cholesky::new(&fit.hessian, fit.w.len())?.inverse();
        let (secret, shape) = (Cow::Borrowed(&game.secret), game.shape.as_ref().map(Cow::Borrowed));
        Ok(Self { fit: Cow::Borrowed(fit), inverse, secret, shape, none })
    }
}

impl Merge for Guessed {
    fn merge(&mut self, later: Self) {
        self.bounds.merge(later.bounds);
        self.left_out += later.left_out;
    }
}

impl Pass for Guesses<'_> {
    const NAME: &'static str = "bounds on guesses of records";
    type State = Guessed;

    fn start(&self) -> Guessed {
        Guessed { bounds: self.none.clone(), left_out: 0, deltas: Deltas::default() }
    }

    fn step(&self, state: &mut Guessed, block: &Block) -> Result<()> {
        let Guessed { bounds, left_out, deltas } = state;
        let (p, model) = (self.fit.w.len(), (&*self.fit, self.inverse.as_slice()));
        refits_of_block(model, &self.secret, block, deltas, |refits| {
            if self.secret.truth(refits.x).is_none() {
                *left_out += 1;
                return Ok(());
            }
            match &self.shape {
                Some(shape) => bounds.add(refits.row, p, &shape.whiten_rows(refits.delta)),
                None => bounds.add(refits.row, p, refits.delta),
            }
        })
    }

    fn fits(&self, state: &Guessed) -> bool {
        state.bounds.has_sizes(&self.none)
    }
}
