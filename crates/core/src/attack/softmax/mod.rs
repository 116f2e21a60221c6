//! Attribute inference against softmax regression: the attackers of [`super`], with a vector of coefficients for each class.
//!
//! Everything is in the coordinates Θ of [`crate::glm::softmax`], in which noise `N(0, σ²I)` on all K × p coefficients is
//! `N(0, σ²I)`: the common direction of the classes tells nothing. The white box compares models with a candidate in place; the
//! black box sees the probabilities that the model gives, and takes `argmax_m p_m π_y(x_m)`; the informed adversary solves
//! `ω ρ̂ ⊗ x = ω ρ̂' ⊗ x − ∇(Θ')` for the record, a matrix of rank one whose last column, the intercept's, is ρ̂ itself.

mod game;
mod refits;

pub use refits::for_each_record_of_classes;

use super::{Attack, Options, Outcomes, Secret};
use crate::glm::softmax::SoftmaxFit;
use crate::random::Seeded;
use crate::rows::Rows;
use crate::{Error, Result};
use game::Game;

/// Plays the attacks on every record of `rows`, whose minimiser `fit` must be; as [`super::attack`]. Keeps the encoded rows.
///
/// # Errors
/// As [`super::attack`]; the informed adversary needs an intercept.
pub fn attack_classes(
    rows: &dyn Rows,
    fit: &SoftmaxFit,
    secret: &Secret,
    options: &Options,
    parts: &[u8],
) -> Result<Outcomes> {
    options.check_noise(fit.coefficients())?;
    if options.attacks.contains(&Attack::Informed) && !fit.penalty.intercept {
        let expected = "a model with an intercept";
        return Err(Error::OutOfRange { subject: "the informed adversary", value: 0.0, expected });
    }
    secret.check(rows.width())?;
    if rows.width() != fit.width {
        return Err(Error::Shape { subject: "the rows", actual: rows.width(), expected: fit.width });
    }
    if !parts.is_empty() && parts.len() as u64 != rows.len() {
        let (actual, expected) = (parts.len(), rows.len() as usize);
        return Err(Error::Shape { subject: "the parts of the records", actual, expected });
    }
    let normals = Seeded::new(options.seed).normals(fit.coefficients() * options.trials);
    let game = Game::new(rows, (fit, secret), options, normals, parts)?;
    Ok(game.play(rows)?.outcomes(options, secret))
}
