//! Noise with a shape on the axis of isotropic noise: at "σ" it costs what isotropic noise of that σ costs.
//!
//! Attacks and bounds look at many noise scales. With a shape they are `σ²Σ₁`, `tr(Σ₁A) = tr A`: at the same σ both kinds of noise add
//! the same error to predictions (squared error: exactly; other families: to second order), so their curves can be compared
//! point by point. The noise that was made for the targets is one of them.

use super::describe::isotropic_sigma;
use super::{Designed, Model, NoiseOptions, ShapeSource, design};
use crate::{Failure, Result};
use leakscope_core::fisher::noise::Noise;
use leakscope_core::rows::Rows;
use leakscope_report::format;
use leakscope_table::Hooks;

/// A shape at σ = 1.
#[derive(Debug, Clone)]
pub struct UnitShape {
    /// The noise at σ = 1.
    pub noise: Noise,
    /// σ at which it is the noise that was made for the targets.
    pub sigma: f64,
    /// The design it comes from.
    pub designed: Designed,
}

impl UnitShape {
    /// The shape of the options for a model.
    ///
    /// # Errors
    /// As for [`design`].
    pub fn new(options: &NoiseOptions, model: &Model<'_>, rows: &dyn Rows, hooks: &Hooks) -> Result<Self> {
        Self::of(design(options, model, rows, hooks)?)
    }

    /// The shape of a design.
    ///
    /// # Errors
    /// [`Failure::Option`] where its scale is no number of ordinary size.
    pub fn of(designed: Designed) -> Result<Self> {
        let p = designed.design.noise.len();
        let sigma = isotropic_sigma(&designed.design.cost_matrix, p, designed.design.cost);
        let noise =
            designed.design.noise.scaled(1.0 / sigma).map_err(|e| Failure::option("noise_shape", e))?;
        Ok(Self { noise, sigma, designed })
    }

    /// What the reader of attacks and bounds should know, in whole sentences.
    pub fn remarks(&self) -> Vec<String> {
        let mut all: Vec<String> = self.designed.instead.iter().cloned().collect();
        all.push(format!(
            "The noise has a shape: at every σ it costs as much as isotropic noise of that σ, and distances are measured by it. At σ = {} \
             it meets its targets.",
            format::number(self.sigma)
        ));
        if self.designed.source == ShapeSource::Rows {
            all.push(format!(
                "Attackers and bounds take the covariance as known and the same for every value of the secret; that it moves with \
                 them is counted in η alone (up to {} of η²). A shape from a public table does not move.",
                format::share(self.designed.design.covariance_information)
            ));
        }
        all
    }
}
