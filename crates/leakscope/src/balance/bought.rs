//! What balancing and the shape of the noise buy, alone and together: the error that each adds for the same targets.
//!
//! Weights move the model away from the minimiser of the mean loss, noise adds `tr(ΣA)`; both are errors of predictions,
//!
//! ```text
//! error = (w_ω − w)ᵀA(w_ω − w) + tr(ΣA),   A = Σ a xxᵀ/n
//! ```
//!
//! exactly for squared error, to second order for the others. Together, weights and shape alternate: a shape for the
//! weighted model, weights that balance leakage under that shape, until the error falls no more. Weights are functions of the
//! data; η is measured here with weights and shape held, as balancing measures it. A *release* counts the weights' part, and takes
//! its shape from public rows alone.

use super::balanced;
use crate::model::Loaded;
use crate::noise::{NoiseOptions, failed};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::balance::{Balanced, Options};
use leakscope_core::fisher::noise::{self as core, Shape, design};
use leakscope_core::glm::{Fitted, Minimiser};
use leakscope_core::linalg::{dot, times};
use leakscope_core::rows::Altered;
use leakscope_report::balance::{Bought, Gain};

/// Rounds of weights and shape, at most.
const ROUNDS: usize = 4;
/// A round that saves less than this share of the error is the last.
const ENOUGH: f64 = 0.01;

/// The four ways.
pub(super) fn bought(
    noise: &NoiseOptions,
    request: &Request,
    loaded: &Loaded,
    options: &Options,
    outcome: &Balanced<Minimiser>,
) -> Result<Bought> {
    if !noise.is_shaped() {
        let message =
            "what it buys beside balancing is compared with ⟨noise_shape=shaped⟩ or ⟨noise_shape=optimal⟩";
        return Err(Failure::option("noise_shape", message));
    }
    let goal_targets = noise.goal_targets(&loaded.encoding, request.label_secret, None)?;
    let plain = loaded.minimiser(request)?;
    let fail = |e| failed(e, &loaded.encoding, request.l2);
    let of = |shape, cost: Option<Vec<f64>>| core::Request {
        releases: request.releases,
        gap: noise.gap,
        shape_budget: noise.shape_budget,
        cost,
        ..core::Request::new(goal_targets.targets.clone(), shape)
    };
    let isotropic = design(&loaded.rows, &plain, &of(Shape::Isotropic, None)).map_err(fail)?;
    let a = isotropic.cost_matrix.clone();
    let shaped = design(&loaded.rows, &plain, &of(noise.shape, Some(a.clone()))).map_err(fail)?;
    let away = |fit: &Minimiser| {
        let (fit, plain) = (Fitted::from(fit).coordinates(), Fitted::from(&plain).coordinates());
        let moved: Vec<f64> = fit.iter().zip(plain).map(|(w, v)| w - v).collect();
        dot(&moved, &times(&a, &moved))
    };
    let under = |weights: &[f64], fit: &Minimiser, shape| -> Result<core::Design> {
        design(&Altered::weighted(&loaded.rows, weights)?, fit, &of(shape, Some(a.clone()))).map_err(fail)
    };
    let alone = under(&outcome.weights, &outcome.fit, Shape::Isotropic)?;
    let mut gains = vec![
        Gain { balanced: false, shape: Shape::Isotropic, weights: 0.0, noise: isotropic.exact_cost },
        Gain {
            balanced: true,
            shape: Shape::Isotropic,
            weights: away(&outcome.fit),
            noise: alone.exact_cost,
        },
        Gain { balanced: false, shape: noise.shape, weights: 0.0, noise: shaped.exact_cost },
    ];
    // Weights for the shape, a shape for the weights.
    let mut held = shaped.noise;
    let mut best: Option<Gain> = None;
    let mut rounds = 0;
    for _ in 0..ROUNDS {
        let options = Options { shape: Some(held.clone()), ..options.clone() };
        let weighted = balanced(request, loaded, &options)?;
        let next = under(&weighted.weights, &weighted.fit, noise.shape)?;
        let weights = away(&weighted.fit);
        let gain = Gain { balanced: true, shape: noise.shape, weights, noise: next.exact_cost };
        rounds += 1;
        let before = best.as_ref().map_or(f64::INFINITY, Gain::error);
        if gain.error() < before {
            best = Some(gain);
        }
        if gain.error() > (1.0 - ENOUGH) * before {
            break;
        }
        held = next.noise;
    }
    gains.extend(best);
    Ok(Bought { goals: goal_targets.goals, rounds, gains })
}
