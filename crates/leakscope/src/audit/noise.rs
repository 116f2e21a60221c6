//! The noise of an audit: σ as given or solved for, or noise with a shape for its targets.

use super::measure::{self, Measured, Records};
use super::scaling::{self, Prepared, Spread};
use super::{AttributeSlot, Model, Noise, Request, attribute_directions, target_unit};
use crate::model::Loaded;
use crate::noise::{self, Designed, NoiseOptions, isotropic_sigma};
use crate::{Failure, Result};
use leakscope_core::fisher::noise::Noise as Gaussian;
use leakscope_core::glm::{Fitted, Minimiser};
use leakscope_core::num::Distribution;
use leakscope_core::tell;
use leakscope_report::audit::SigmaSource;
use leakscope_table::{Dataset, Encoding, Hooks};

/// The noise that was chosen.
pub(super) struct Chosen {
    /// σ; of noise with a shape, that of isotropic noise which costs as much.
    pub(super) sigma: f64,
    pub(super) source: SigmaSource,
    pub(super) shaped: Option<Designed>,
}

impl Chosen {
    pub(super) fn spread(&self) -> Spread<'_> {
        match &self.shaped {
            Some(designed) => Spread::Shaped(&designed.design.noise),
            None => Spread::Isotropic(self.sigma),
        }
    }

    /// The noise on p coefficients.
    pub(super) fn gaussian(&self, p: usize) -> Result<Gaussian> {
        match &self.shaped {
            Some(designed) => Ok(designed.design.noise.clone()),
            None => Ok(Gaussian::isotropic(self.sigma, p)?),
        }
    }

    /// The factor of the covariance over σ; empty for isotropic noise.
    pub(super) fn factor(&self) -> Vec<f64> {
        self.shaped
            .iter()
            .flat_map(|designed| designed.design.noise.factor())
            .map(|f| f / self.sigma)
            .collect()
    }

    /// The noise as telling values apart takes it.
    pub(super) fn for_telling(&self) -> tell::Noise {
        match &self.shaped {
            Some(designed) => tell::Noise::Whitener(designed.design.noise.whitener().to_vec()),
            None => tell::Noise::Isotropic(self.sigma),
        }
    }
}

/// Chooses the noise of a request.
pub(super) fn choose(
    request: &Request,
    loaded: &Loaded,
    model: &Model,
    slots: &[AttributeSlot],
    prepare: &impl Fn(Spread<'_>) -> Result<Prepared>,
    hooks: &Hooks,
) -> Result<Chosen> {
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    let Some(options) = request.noise.options() else {
        let (sigma, source) = choose_sigma(request, encoding, slots, rows, prepare)?;
        return Ok(Chosen { sigma, source, shaped: None });
    };
    made(options, request, encoding, (&model.fit).into(), rows, hooks)
}

/// Noise that is made for its targets.
pub(super) fn made(
    options: &NoiseOptions,
    request: &Request,
    encoding: &Encoding,
    fit: Fitted<'_>,
    rows: &Dataset,
    hooks: &Hooks,
) -> Result<Chosen> {
    let mut designed = noise::design(options, &fitted(request, encoding, fit), rows, hooks)?;
    scaling::count(request, encoding, fit, rows, &mut designed)?;
    let design = &designed.design;
    let sigma = isotropic_sigma(&design.cost_matrix, design.noise.len(), design.cost);
    Ok(Chosen { sigma, source: SigmaSource::Targets, shaped: Some(designed) })
}

/// The model as shapes take it.
pub(super) fn fitted<'a>(request: &'a Request, encoding: &'a Encoding, fit: Fitted<'a>) -> noise::Model<'a> {
    noise::Model {
        encoding,
        fit,
        units: None,
        l2: request.l2,
        label_secret: request.label_secret,
        releases: request.releases,
        public: &request.public,
    }
}

/// A target on a statistic fixes σ in closed form, since every η is proportional to 1/σ: one pass at σ = 1.
fn choose_sigma(
    request: &Request,
    encoding: &Encoding,
    slots: &[AttributeSlot],
    rows: &Dataset,
    prepare: &impl Fn(Spread<'_>) -> Result<Prepared>,
) -> Result<(f64, SigmaSource)> {
    let unit = || prepare(Spread::Isotropic(1.0));
    sigma_for(
        request,
        || unit()?.eta_distribution(rows),
        |attribute| {
            let (measured, _) = measure::measure(rows, &unit()?, slots, Records::None)?;
            exposure_in_own_units(attribute, encoding, slots, &measured)
        },
    )
}

/// σ from the distribution of η at σ = 1, or from how exposed an attribute is there, in its own units.
pub(super) fn sigma_for(
    request: &Request,
    eta_at_one: impl Fn() -> Result<Distribution>,
    exposure_at_one: impl Fn(&str) -> Result<f64>,
) -> Result<(f64, SigmaSource)> {
    // Rounding must leave the target met.
    const SAFE: f64 = 1.0 + 1e-12;
    match &request.noise {
        Noise::Default => Ok((1.0, SigmaSource::Default)),
        Noise::Given(sigma) => Ok((*sigma, SigmaSource::Given)),
        Noise::TargetEta { eta, statistic } => {
            let sigma = solved(statistic.of(&eta_at_one()?) / eta * SAFE, "target_eta")?;
            Ok((sigma, SigmaSource::TargetEta { eta: *eta, statistic: statistic.named() }))
        }
        Noise::TargetSd { attribute, sd } => {
            let sigma = solved(sd * exposure_at_one(attribute)? * SAFE, "target_sd")?;
            Ok((sigma, SigmaSource::TargetSd { attribute: attribute.clone(), sd: *sd }))
        }
        // Made for its targets by `noise::design`.
        Noise::Shaped(_) => Err(Failure::option("noise_shape", "noise with a shape has no σ")),
    }
}

/// The noise that meets the request's target on a fitted model, and what it achieves there: the statistic of η, or the
/// standard deviation of the attribute in its own units.
pub(crate) fn solve(request: &Request, loaded: &Loaded, fit: &Minimiser) -> Result<(f64, f64)> {
    let fit = match fit {
        Minimiser::Glm(fit) => fit,
        Minimiser::Softmax(fit) => return super::softmax::solve(request, loaded, fit),
    };
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    let (slots, directions) = attribute_directions(encoding);
    let prepare = |spread: Spread<'_>| scaling::prepare(request, encoding, fit, &directions, spread);
    let (sigma, _) = choose_sigma(request, encoding, &slots, rows, &prepare)?;
    let prepared = prepare(Spread::Isotropic(sigma))?;
    let achieved = match &request.noise {
        Noise::Default | Noise::Given(_) | Noise::Shaped(_) => sigma,
        Noise::TargetEta { statistic, .. } => statistic.of(&prepared.eta_distribution(rows)?),
        Noise::TargetSd { attribute, .. } => {
            let (measured, _) = measure::measure(rows, &prepared, &slots, Records::None)?;
            1.0 / exposure_in_own_units(attribute, encoding, &slots, &measured)?
        }
    };
    Ok((sigma, achieved))
}

/// 1 over the smallest deviation of an unbiased estimate of an attribute, or of the target, in its own units.
pub(super) fn exposure_in_own_units(
    name: &str,
    encoding: &Encoding,
    slots: &[AttributeSlot],
    measured: &Measured,
) -> Result<f64> {
    if name == encoding.target.name {
        return Ok(measured.label.max / target_unit(encoding));
    }
    let slot = slots.iter().find(|s| encoding.attributes[s.attribute].name == *name);
    let slot = slot.ok_or_else(|| Failure::option("target_sd", crate::telling::no_columns(name)))?;
    Ok(slot.exposure(|k| measured.attributes[k].max) / encoding.attributes[slot.attribute].scale)
}

fn solved(sigma: f64, flag: &str) -> Result<f64> {
    if sigma > 0.0 && sigma.is_finite() {
        return Ok(sigma);
    }
    Err(Failure::option(
        flag,
        "nothing leaks at any noise here (every η is zero), so no σ can be solved for: use ⟨sigma⟩",
    ))
}
