//! The audit: a table in, an [`Audit`] and a table of records out.
//!
//! ```text
//! read ─ Encoding ─→ rows ─ glm::fit ─→ Geometry ─ one pass ─→ Measured ─→ Audit
//! ```

mod assemble;
mod measure;
mod names;
mod remarks;
mod scaling;
mod score;
mod tell;
mod utility;

pub use crate::request::{Limit, Noise, Pair, Request, ScalingChoice, Statistic};

use crate::bound::data::{Bounding, FIG_4, of_model};
use crate::coefficients::match_coefficients;
use crate::failure::explain;
use crate::model::{Loaded, encode_options, penalty, target_unit, two_class};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::fisher::{Directions, Geometry};
use leakscope_core::glm::{self, Fit};
use leakscope_report::Audit;
use leakscope_report::audit::{SigmaSource, Timings};
use leakscope_report::bound::Found;
use leakscope_table::{Dataset, Encoding, Hooks, Kind, OneHot, Subset, Table};
use measure::Measured;
use scaling::Prepared;
use std::time::Instant;

/// An audit and the files that go with it, not yet published.
pub struct Outcome {
    /// What was found.
    pub audit: Audit,
    /// Files to publish.
    pub pending: Pending,
}

/// The model under audit: fitted here, or given and compared with the fit.
struct Model {
    fit: Fit,
    /// The minimiser, where the coefficients were given.
    best: Option<Fit>,
}

/// One attribute as the passes see it: which of the geometry's attributes are its two variants.
struct AttributeSlot {
    /// Index into the encoding's attributes.
    attribute: usize,
    /// Index into the geometry's attributes.
    free: usize,
    /// The same under the constraint that indicators sum to one.
    constrained: Option<usize>,
    /// ‖P eⱼ‖ = √(1 − 1/k) where all k levels of a category have a column, P projecting on what keeps their sum; 1
    /// elsewhere.
    along: f64,
}

impl AttributeSlot {
    /// The largest λ for which 1/λ still bounds the deviation of every unbiased estimate of a value of the attribute,
    /// from η of its two variants. Whoever knows that exactly one of k indicators applies estimates cⱼ within
    /// `(P eⱼ)ᵀ (P I P)⁺ (P eⱼ) ≥ ‖P eⱼ‖²/η²` with the constrained η, which can lie below 1/η² of the free one.
    fn exposure(&self, eta: impl Fn(usize) -> f64) -> f64 {
        let constrained = match self.constrained {
            Some(k) if self.along < 1.0 => eta(k) / self.along,
            Some(_) | None => 0.0,
        };
        eta(self.free).max(constrained)
    }
}

/// Runs the audit; tables of records go to `folder`, still under temporary names. `on_encoding` is told what the
/// columns were taken for, before anything is fitted to them.
pub fn run(
    request: &Request,
    folder: Option<&Folder>,
    hooks: &Hooks,
    on_encoding: &dyn Fn(&Encoding),
) -> Result<Outcome> {
    request.check()?;
    let mut timings = Timings::default();
    let clock = Instant::now();
    let table = Table::open(&request.read)?;
    let seed = request.holdout.map(|_| request.seed.unwrap_or_else(crate::seed::drawn));
    let encoding = Encoding::fit(&table, &request.roles, &encode_options(request, seed), hooks)?;
    on_encoding(&encoding);
    request.check_names(&encoding)?;
    tell::check(request, &encoding)?;
    let rows = Dataset::new(&table, &encoding, Subset::Training, hooks)?;
    let seed_of_all = seed.or(request.seed).unwrap_or_else(crate::seed::drawn);
    let loaded = Loaded { encoding, rows, test: None, seed: seed_of_all, warnings: vec![] };
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    timings.read = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let model = fit(request, encoding, rows)?;
    timings.fit = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let (slots, directions) = attribute_directions(encoding);
    let prepare = |sigma: f64| scaling::prepare(request, encoding, &model.fit, &directions, sigma);
    let (sigma, source) = choose_sigma(request, encoding, &slots, rows, &prepare)?;
    let prepared = prepare(sigma)?;
    let geometry = &prepared.geometry;
    let mut pending = Pending::default();
    let mut writer = match folder {
        Some(folder) => {
            Some(folder.table("records", measure::schema(encoding, &slots, request.label_secret)?)?)
        }
        None => None,
    };
    let measured = measure::measure(rows, &prepared, &slots, writer.as_mut())?;
    pending.tables(writer);
    let utility = utility::utility(request, &table, encoding, geometry, &measured, hooks)?;
    let score = score::score(request, encoding, geometry, &measured, folder, &mut pending, hooks)?;
    let secret = match &request.secret {
        Some(name) => Some(guessed(request, &loaded, &model, name, sigma)?),
        None => None,
    };
    timings.leakage = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let tell = tell::tell(request, rows, &model, &slots, &measured, sigma)?;
    timings.tell = clock.elapsed().as_secs_f64();

    let found = assemble::Found {
        request,
        encoding,
        model: &model,
        geometry,
        slots: &slots,
        scaling: prepared.effect(encoding, measured.scaling),
        tell,
        measured,
        sigma_source: source,
        seed,
        utility,
        score,
        secret,
        timings,
    };
    Ok(Outcome { audit: crate::output::complete(found.audit()?)?, pending })
}

/// Noise vectors and draws of the panel about a secret.
const SECRET_TRIALS: (usize, u64) = (200, 20_000);

/// What any attacker can guess of a chosen secret, and what attacks do: one panel of the page.
fn guessed(request: &Request, loaded: &Loaded, model: &Model, name: &str, sigma: f64) -> Result<Found> {
    if model.best.is_some() {
        let message = "bounds on guesses compare minimisers: leave ⟨coefficients⟩ out";
        return Err(Failure::option("secret", message));
    }
    let bounding = Bounding {
        secret: name.into(),
        bins: 4,
        prior: None,
        sigma: Some(sigma),
        sigmas: vec![],
        curve: true,
        attacks: FIG_4.to_vec(),
        noise_vectors: SECRET_TRIALS.0,
        draws: SECRET_TRIALS.1,
        confidence: 0.99,
        delta: 1e-5,
    };
    of_model(request, loaded, &model.fit, &bounding)
}

fn fit(request: &Request, encoding: &Encoding, rows: &Dataset) -> Result<Model> {
    let penalty = penalty(request);
    let best = glm::fit(rows, request.family, penalty).map_err(|e| explain(e, encoding, request.l2))?;
    let Some(given) = &request.coefficients else { return Ok(Model { fit: best, best: None }) };
    let w = match_coefficients(given, encoding)?;
    let fit =
        glm::evaluate(rows, request.family, penalty, &w).map_err(|e| explain(e, encoding, request.l2))?;
    Ok(Model { fit, best: Some(best) })
}

/// Every attribute that has columns, with and (for categories) under the constraint that indicators sum to one.
fn attribute_directions(encoding: &Encoding) -> (Vec<AttributeSlot>, Vec<Directions>) {
    let (mut slots, mut directions) = (vec![], vec![]);
    let mut add = |attribute: usize, sum_to_one: bool| -> Option<usize> {
        let basis = encoding.directions(attribute, sum_to_one);
        let count = basis.len() / encoding.width().max(1);
        (count > 0).then(|| {
            directions.push(Directions { basis, count });
            directions.len() - 1
        })
    };
    for (attribute, described) in encoding.attributes.iter().enumerate() {
        if let Some(free) = add(attribute, false) {
            let category = described.kind == Kind::Category;
            let constrained = if category { add(attribute, true) } else { None };
            let all_levels = category && encoding.one_hot == OneHot::Full;
            let along = if all_levels { (1.0 - 1.0 / described.columns.len() as f64).sqrt() } else { 1.0 };
            slots.push(AttributeSlot { attribute, free, constrained, along });
        }
    }
    (slots, directions)
}

/// A target on a statistic fixes σ in closed form, since every η is proportional to 1/σ: one pass at σ = 1.
fn choose_sigma(
    request: &Request,
    encoding: &Encoding,
    slots: &[AttributeSlot],
    rows: &Dataset,
    prepare: &impl Fn(f64) -> Result<Prepared>,
) -> Result<(f64, SigmaSource)> {
    // Rounding must leave the target met.
    const SAFE: f64 = 1.0 + 1e-12;
    match &request.noise {
        Noise::Default => Ok((1.0, SigmaSource::Default)),
        Noise::Given(sigma) => Ok((*sigma, SigmaSource::Given)),
        Noise::TargetEta { eta, statistic } => {
            let unit = prepare(1.0)?.eta_distribution(rows)?;
            let sigma = solved(statistic.of(&unit) / eta * SAFE, request.target_options.eta)?;
            Ok((sigma, SigmaSource::TargetEta { eta: *eta, statistic: statistic.named() }))
        }
        Noise::TargetSd { attribute, sd } => {
            let unit = measure::measure(rows, &prepare(1.0)?, slots, None)?;
            let exposure = exposure_in_own_units(request, attribute, encoding, slots, &unit)?;
            let sigma = solved(sd * exposure * SAFE, request.target_options.sd)?;
            Ok((sigma, SigmaSource::TargetSd { attribute: attribute.clone(), sd: *sd }))
        }
        Noise::Shaped(_) => Err(Failure::option("noise_shape", "shapes have no σ to solve for here")),
    }
}

/// The noise that meets the request's target on a fitted model, and what it achieves there: the statistic of η, or the
/// standard deviation of the attribute in its own units.
pub(crate) fn solve(request: &Request, loaded: &Loaded, fit: &Fit) -> Result<(f64, f64)> {
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    let (slots, directions) = attribute_directions(encoding);
    let prepare = |sigma: f64| scaling::prepare(request, encoding, fit, &directions, sigma);
    let (sigma, _) = choose_sigma(request, encoding, &slots, rows, &prepare)?;
    let prepared = prepare(sigma)?;
    let achieved = match &request.noise {
        Noise::Default | Noise::Given(_) | Noise::Shaped(_) => sigma,
        Noise::TargetEta { statistic, .. } => statistic.of(&prepared.eta_distribution(rows)?),
        Noise::TargetSd { attribute, .. } => {
            let measured = measure::measure(rows, &prepared, &slots, None)?;
            1.0 / exposure_in_own_units(request, attribute, encoding, &slots, &measured)?
        }
    };
    Ok((sigma, achieved))
}

/// 1 over the smallest deviation of an unbiased estimate of an attribute, or of the target, in its own units.
fn exposure_in_own_units(
    request: &Request,
    name: &str,
    encoding: &Encoding,
    slots: &[AttributeSlot],
    measured: &Measured,
) -> Result<f64> {
    if name == encoding.target.name {
        return Ok(measured.label.max / target_unit(encoding));
    }
    let slot = slots.iter().find(|s| encoding.attributes[s.attribute].name == *name);
    let slot = slot.ok_or_else(|| Failure::option(request.target_options.sd, no_columns(name)))?;
    Ok(slot.exposure(|k| measured.attributes[k].max) / encoding.attributes[slot.attribute].scale)
}

fn no_columns(attribute: &str) -> String {
    format!("`{attribute}` has one level only, so it has no encoded column to estimate")
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

impl Measured {
    /// Largest norm of a record's Jacobian: η at σ = 1.
    fn largest_norm(&self, geometry: &Geometry) -> f64 {
        self.eta.max() * geometry.release().sigma
    }
}
