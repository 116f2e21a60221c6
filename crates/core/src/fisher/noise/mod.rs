//! Shapes of noise: the cheapest Gaussian covariance that keeps every record at its target.
//!
//! Released `w + N(0, Σ)` has information `JᵢᵀΣ⁻¹Jᵢ` about record i and costs `tr(ΣA)`, A the Hessian of the mean loss. For
//! a target on every record (or on some attributes of every record, each with its own)
//!
//! ```text
//! minimise tr(ΣA)   subject to   λ₁(JᵢᵀΣ⁻¹Jᵢ) ≤ η²  for all i
//! ```
//!
//! is convex in Σ⁻¹. Weights `Λᵢ ⪰ 0` of total trace one, `M = ΣJᵢΛᵢJᵢᵀ`, give a design and a certificate,
//!
//! ```text
//! Σ⁻¹ ∝ A^½(A^½MA^½)^{−½}A^½,   every feasible Σ costs at least (tr(A^½MA^½)^½)²/η²
//! ```
//!
//! [`Shape::Shaped`] takes equal weights (a closed form), [`Shape::Optimal`] generates the records that bind until design and
//! certificate meet. How to use it:
//!
//! 1. [`design`] with a fitted model, its rows and a [`Request`] gives a [`Design`]: the noise, its [`Factor`] on the public grid
//!    for the model file, cost, gain, certificate, gap, and what the covariance itself gives away.
//!    [`design_with_shape`] takes the shape from elsewhere (a public table's [`Design::factor`]): nothing about the
//!    shape is then read off the private rows.
//! 2. [`Geometry::under`](super::Geometry::under) measures records, attributes, groups and sets under that noise.
//! 3. Attacks and bounds for isotropic noise with σ = 1 apply to whitened differences, [`Noise::whiten_rows`].
//! 4. [`Noise::release`] draws exact discrete noise with its covariance, whose shape must be public: no command releases one that is
//!    read off the records. [`standard_errors`] says how far released coefficients are from true ones.
//!
//! The shape and its weights are functions of the data. What they give away is counted (`covariance_information`) and taken off the
//! target before the scale is chosen, and the scale lies on a public grid, powers of `2^¼` rounded up.
//!
//! Related: Farokhi and Sandberg (2019) minimise the trace of the Fisher information over densities; Hayati et al. (2021)
//! choose Gaussian mechanisms by semidefinite programmes. New here: a constraint for every record of a fitted model,
//! solved through its dual with a certificate, the information of the covariance itself, and exact discrete noise.

mod classes;
mod derivative;
mod gaussian;
mod generate;
mod group;
mod inference;
mod information;
mod moved;
mod sums;
#[cfg(test)]
mod tests;
mod weights;
mod white;
mod worst;

pub use gaussian::{Factor, Noise};
pub use inference::{
    Coefficient, Inference, Sampling, ScoreSums, Scores, class_covariances, sampling_covariance,
    softmax_sampling_covariances, standard_errors,
};

use super::Directions;
use crate::glm::Fitted;
use crate::linalg::Cholesky;
use crate::rows::Rows;
use crate::{Error, Result};
use generate::{Generator, Shaped};
use group::Group;
use serde::{Deserialize, Serialize};

/// The shape of the noise on the coefficients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// `σ²I`.
    #[default]
    Isotropic,
    /// The closed form with equal weights on all records.
    Shaped,
    /// The cheapest, up to a gap that is certified.
    Optimal,
}

/// What a target is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Protected {
    /// All values of every record, with its label where that is secret.
    Record {
        /// Whether the label is one of them.
        label: bool,
    },
    /// One attribute of every record; directions in the scale in which the target is meant.
    Attribute(Directions),
    /// The label of every record.
    Label,
}

/// η of something about every record is to be at most `eta`.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What is protected.
    pub protected: Protected,
    /// Largest Fisher information loss.
    pub eta: f64,
}

/// What is asked of a design.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// At least one; at most one about whole records.
    pub targets: Vec<Target>,
    /// Shape of the noise.
    pub shape: Shape,
    /// Independent releases of the same model with this noise: their information adds up.
    pub releases: u32,
    /// Relative gap between cost and certificate at which an optimal shape is good enough.
    pub gap: f64,
    /// Largest share of `η²` that the covariance of an optimal shape may give away: where it would be more, weight goes
    /// from single records back to all alike, which costs some of the gain. 1 leaves the optimum as it is.
    pub shape_budget: f64,
    /// Binary places that the factor of a published shape keeps below its diagonal.
    pub bits: u32,
    /// The cost matrix A, p × p, where it is public; `None` takes `Σ a xxᵀ/n` of the rows (for squared error
    /// `XᵀX/n`, for classes `Σ Ŝ ⊗ xxᵀ/n` in the coordinates of Θ), intercept included.
    pub cost: Option<Vec<f64>>,
}

impl Request {
    /// One release with the given targets and shape, gap 1%, a budget of 5% for the shape, eight binary places, cost from
    /// the rows.
    pub fn new(targets: Vec<Target>, shape: Shape) -> Self {
        Self { targets, shape, releases: 1, gap: 0.01, shape_budget: 0.05, bits: 8, cost: None }
    }
}

/// A direction of one record with weight in an optimal design, on its public grids.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// The record's row, from 0.
    pub row: u64,
    /// Which target it is about.
    pub target: usize,
    /// The direction in the record's values under that target (the label last), of length about one.
    pub direction: Vec<f64>,
    /// Its weight; all weights add up to about one.
    pub weight: f64,
}

/// A shape of noise at its scale, and what it is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Its shape.
    pub shape: Shape,
    /// The noise as published: factor and scale on their public grids. Meets every target.
    pub noise: Noise,
    /// Its factor, for the model file.
    pub factor: Factor,
    /// `tr(ΣA)` of the noise as published.
    pub cost: f64,
    /// `tr(ΣA)` at the scale that the targets need exactly, before scale and factor are rounded and without what is set
    /// aside for the covariance's own information: what gain and gap compare.
    pub exact_cost: f64,
    /// What isotropic noise costs at the scale that the targets need exactly.
    pub cost_isotropic: f64,
    /// `cost_isotropic/exact_cost`.
    pub gain: f64,
    /// No covariance that meets the targets costs less.
    pub lower_bound_on_cost: f64,
    /// `exact_cost/lower_bound_on_cost − 1`.
    pub gap: f64,
    /// The gap that the search itself reached, before weights were evened out for what the covariance may give away; `gap`
    /// where nothing was searched.
    pub programme_gap: f64,
    /// Largest information of the covariance itself about what a target protects, as a share of its `η²`; 0 for
    /// shapes that are not read off these rows.
    pub covariance_information: f64,
    /// A, p × p: what costs are measured by, `tr(ΣA)`.
    pub cost_matrix: Vec<f64>,
    /// Largest η over its target under the published noise, without the covariance's own information.
    pub largest_eta: f64,
    /// The records and directions that bind (optimal shapes; empty otherwise).
    pub atoms: Vec<Atom>,
    /// Passes that looked for the worst records.
    pub rounds: usize,
}

impl Design {
    /// The same shape at the smallest public scale that is at least `scale`, where targets ask for more than they do of weights that
    /// are held: a largest η over its target of `scale` was measured at scale one. Gain, gap and certificate stay those of the
    /// held weights.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a scale that is not positive or that leaves the range of numbers.
    pub fn at_scale(self, scale: f64) -> Result<Self> {
        if !(scale > 0.0 && scale.is_finite()) {
            let expected = "a positive number";
            return Err(Error::OutOfRange { subject: "the scale of the noise", value: scale, expected });
        }
        let factor = self.factor.with_scale(scale);
        let noise = factor.noise()?;
        let (cost, largest_eta) = (noise.cost(&self.cost_matrix), scale / factor.scale());
        Ok(Self { noise, factor, cost, largest_eta, ..self })
    }
}

/// Single records keep `2^(−j/4)` of their weights to stay within the budget for the shape, a public grid as weights are on one; j
/// grows in these steps until they do, and is then halved in between.
const LOWERED: [usize; 4] = [4, 12, 28, 60];

fn nothing_to_protect() -> Error {
    Error::NotApplicable {
        subject: "a target",
        setting: "an empty set of attributes",
        advice: "name at least one attribute to protect, or set a target for whole records",
    }
}

/// The noise of `request` for a fitted model, its shape read off its training rows.
///
/// # Guarantee
/// For every record and target the information of the published noise is at most
/// `η²(1 − covariance_information)`, and that of the covariance at most `η²·covariance_information`: together at most
/// `η²`, with weights, directions and scale on public grids.
///
/// # Errors
/// [`Error::NotApplicable`] without targets or where nothing leaks; [`Error::OutOfRange`] for a target, gap or number of
/// releases that is no such number; [`Error::Singular`] where A or H has no inverse; [`Error::Unreachable`] where the
/// covariance of a shape from these rows alone gives away more than the target allows.
pub fn design<'a>(rows: &dyn Rows, fit: impl Into<Fitted<'a>>, request: &Request) -> Result<Design> {
    designed(rows, fit.into(), request, None)
}

/// The noise of `request` with a shape that is public (`shape.quarters` is ignored): only its scale is read off the rows,
/// and that lies on a public grid.
///
/// # Errors
/// As for [`design`]; [`Error::Shape`] for a shape of another number of coefficients.
pub fn design_with_shape<'a>(
    rows: &dyn Rows,
    fit: impl Into<Fitted<'a>>,
    request: &Request,
    shape: &Factor,
) -> Result<Design> {
    designed(rows, fit.into(), request, Some(shape))
}

fn designed(rows: &dyn Rows, fit: Fitted<'_>, request: &Request, public: Option<&Factor>) -> Result<Design> {
    check(request)?;
    let p = fit.free();
    let groups: Vec<Group> =
        request.targets.iter().map(|t| Group::new(t, fit, request.releases)).collect::<Result<_>>()?;
    let pair = (request.targets.as_slice(), groups.as_slice());
    let (own, uniform) = sums::cost_and_uniform(rows, fit, &groups)?;
    let a = match &request.cost {
        Some(a) if a.len() == p * p => a.clone(),
        Some(a) => return Err(Error::Shape { subject: "the cost matrix", actual: a.len(), expected: p * p }),
        None => own,
    };
    let generator = Generator::new(rows, fit, pair, uniform, &a)?;
    let needed = |noise: &Noise| -> Result<f64> {
        let top = worst::worst(rows, fit, pair, noise.whitener(), 1)?;
        top.first().map(|w| w.value).filter(|v| *v > 0.0).ok_or_else(nothing_leaks)
    };
    let isotropic = needed(&Noise::isotropic(1.0, p)?)?;
    let cost_isotropic = isotropic * isotropic * (0..p).map(|i| a[i * p + i]).sum::<f64>();

    let from_rows = public.is_none() && request.shape != Shape::Isotropic;
    let (shaped, covariance_information, searched) = covariance(&generator, request, public.is_none())?;
    let factor = match (public, request.shape) {
        (Some(shape), _) => Factor { quarters: 0, ..shape.clone() },
        (None, Shape::Isotropic) => Factor::isotropic(p),
        (None, Shape::Shaped | Shape::Optimal) => unit_factor(&shaped, p, request.bits)?,
    };
    let unit = factor.noise()?;
    if unit.len() != p {
        return Err(Error::Shape { subject: "the shape of the noise", actual: unit.len(), expected: p });
    }
    let at_unit = needed(&unit)?;
    let exact_cost = match (from_rows, request.shape) {
        (true, _) => shaped.cost,
        (false, Shape::Isotropic) if public.is_none() => cost_isotropic,
        (false, _) => at_unit * at_unit * unit.cost(&a),
    };
    let factor = factor.with_scale(at_unit / (1.0 - covariance_information).sqrt());
    let noise = factor.noise()?;
    Ok(Design {
        shape: request.shape,
        cost: noise.cost(&a),
        exact_cost,
        cost_isotropic,
        gain: cost_isotropic / exact_cost,
        lower_bound_on_cost: shaped.lower_bound,
        gap: (exact_cost / shaped.lower_bound - 1.0).max(0.0),
        programme_gap: searched.unwrap_or((exact_cost / shaped.lower_bound - 1.0).max(0.0)),
        covariance_information,
        largest_eta: needed(&noise)?,
        atoms: shaped.dual.atoms.into_iter().map(|(atom, _)| atom).collect(),
        rounds: shaped.rounds,
        noise,
        factor,
        cost_matrix: a,
    })
}

/// The covariance that meets the targets, what its shape alone gives away, and the gap that a search ended with; `own` where
/// the shape comes from these rows.
fn covariance(generator: &Generator<'_>, request: &Request, own: bool) -> Result<(Shaped, f64, Option<f64>)> {
    let mut shaped = match (request.shape, own) {
        (Shape::Optimal, true) => generator.optimal(request.gap)?,
        // The certificate of the equal weights holds for any covariance.
        (Shape::Shaped | Shape::Isotropic, true) | (_, false) => generator.closed_form()?,
    };
    let from_rows = own && request.shape != Shape::Isotropic;
    let given_away = |shaped: &Shaped| -> Result<f64> {
        if !from_rows {
            return Ok(0.0);
        }
        information::largest(generator, &shaped.dual, request.cost.is_some())
    };
    let mut covariance_information = given_away(&shaped)?;
    let searched = match (request.shape, own) {
        (Shape::Optimal, true) => Some((shaped.cost / shaped.lower_bound - 1.0).max(0.0)),
        (Shape::Shaped | Shape::Isotropic, _) | (_, false) => None,
    };
    if !shaped.dual.atoms.is_empty() && covariance_information > request.shape_budget {
        (shaped, covariance_information) =
            within_budget(generator, &shaped, request.shape_budget, given_away)?;
    }
    if covariance_information.is_nan() || covariance_information >= 1.0 {
        return Err(Error::Unreachable {
            subject: "eta, of which the covariance of a shape from these rows alone gives away more",
            target: 1.0,
            unknown: "scale of the noise",
            lowest: 0.0,
            highest: f64::INFINITY,
            advice: "take isotropic noise, a shape from a public table, or a larger target",
        });
    }
    Ok((shaped, covariance_information, searched))
}

/// The shape nearest to an optimal one whose covariance gives away no more than the budget, and what it does: weight goes from single
/// records back to all alike, as little as is needed; all of it, whatever that gives away, where nothing else is found.
fn within_budget(
    generator: &Generator<'_>,
    optimal: &Shaped,
    budget: f64,
    given_away: impl Fn(&Shaped) -> Result<f64>,
) -> Result<(Shaped, f64)> {
    let kept = |j: usize| -> Result<(Shaped, f64)> {
        let shaped = generator.evened(optimal, (-0.25 * j as f64).exp2())?;
        let information = given_away(&shaped)?;
        Ok((shaped, information))
    };
    let (mut above, mut bracket) = (0, None);
    for j in LOWERED {
        let (shaped, information) = kept(j)?;
        if information <= budget {
            bracket = Some((j, shaped, information));
            break;
        }
        above = j;
    }
    let Some((mut below, mut shaped, mut information)) = bracket else {
        let closed = generator.closed_form()?;
        let lower_bound = optimal.lower_bound.max(closed.lower_bound);
        let shaped = Shaped { lower_bound, rounds: optimal.rounds, ..closed };
        let information = given_away(&shaped)?;
        return Ok((shaped, information));
    };
    while below - above > 1 {
        let between = usize::midpoint(above, below);
        match kept(between)? {
            (next, less) if less <= budget => (below, shaped, information) = (between, next, less),
            _ => above = between,
        }
    }
    Ok((shaped, information))
}

/// The factor of a shape at determinant one, on its public grid.
fn unit_factor(shaped: &Shaped, p: usize, bits: u32) -> Result<Factor> {
    let mut lower = Cholesky::new(&shaped.covariance, p)?.lower();
    let mean_log = (0..p).map(|i| lower[i * p + i].ln()).sum::<f64>() / p as f64;
    lower.iter_mut().for_each(|v| *v *= (-mean_log).exp());
    Factor::rounded(&lower, p, bits)
}

fn nothing_leaks() -> Error {
    Error::NotApplicable {
        subject: "a shape of noise",
        setting: "a model that no protected value moves",
        advice: "release it as it is, or protect values that enter the model",
    }
}

fn check(request: &Request) -> Result<()> {
    let out_of_range = |subject, value, expected| Err(Error::OutOfRange { subject, value, expected });
    if request.targets.is_empty() {
        return Err(nothing_to_protect());
    }
    let whole = request.targets.iter().filter(|t| matches!(t.protected, Protected::Record { .. })).count();
    if whole > 1 {
        return out_of_range("the number of targets for whole records", whole as f64, "at most one");
    }
    if request.releases == 0 {
        return out_of_range("releases", 0.0, "at least 1");
    }
    if !(request.gap >= 1e-4 && request.gap.is_finite()) {
        return out_of_range("the gap", request.gap, "a number of at least 0.0001");
    }
    if !(request.shape_budget > 0.0 && request.shape_budget <= 1.0) {
        return out_of_range("the budget for the shape", request.shape_budget, "a share above 0, at most 1");
    }
    if !(1..=40).contains(&request.bits) {
        return out_of_range("the binary places of the shape", f64::from(request.bits), "1 to 40");
    }
    Ok(())
}
