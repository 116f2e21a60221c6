//! The audit: a table in, an [`Audit`] and a table of records out.
//!
//! ```text
//! read ─ Encoding ─→ rows ─ glm::fit ─→ Geometry ─ one pass ─→ Measured ─→ Audit
//! ```

mod assemble;
pub mod explore;
mod facts;
mod inference;
mod measure;
mod measuring;
mod noise;
mod remarks;
mod scaling;
mod score;
mod shapes;
mod softmax;
mod tell;
mod utility;

pub use crate::request::{Limit, Noise, Pair, Request, ScalingMode, Statistic};
pub(crate) use measuring::Measuring;
pub(crate) use noise::solve;
pub(crate) use scaling::count as count_scaling;
pub(crate) use score::Scoring;

use crate::bound::data::{Bounding, FIG_4, of_model};
use crate::coefficients::match_coefficients;
use crate::failure::explain;
use crate::model::{Loaded, encode_options, penalty, target_unit, two_class};
use crate::noise::UnitShape;
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_core::fisher::Directions;
use leakscope_core::glm::{self, Fit, Minimiser, ModelKind};
use leakscope_report::Audit;
use leakscope_report::audit::Timings;
use leakscope_report::bound::SecretBounds;
use leakscope_table::{Dataset, EncodeOptions, Encoding, Hooks, Kind, OneHot, Stage, Subset, Table};
use noise::Chosen;
use scaling::Spread;
use std::time::Instant;
use tell::Fitted;

/// An audit and the files that go with it, not yet published.
pub struct Outcome {
    /// What was found.
    pub audit: Audit,
    /// Files to publish.
    pub pending: Pending,
}

/// The model under audit: fitted here, or given and compared with the fit.
struct Model<F = Fit> {
    fit: F,
    /// The minimiser, where the coefficients were given.
    best: Option<F>,
}

impl<F> Model<F> {
    fn minimiser(&self) -> &F {
        self.best.as_ref().unwrap_or(&self.fit)
    }

    /// The model where it is its own minimiser: coefficients that were given may lie elsewhere.
    fn own(&self) -> Option<&F> {
        self.best.is_none().then_some(&self.fit)
    }
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
///
/// Where the request's tables are read by machines ([`ReadOptions::machines`](leakscope_table::ReadOptions)), the passes of the encoding, of
/// the fit, of the noise, of the measurement, of scores and of the utility go to them, and records and scores are written by whoever
/// measures them, where there is a `folder`. What is no pass (values told apart, noise with a shape, the panel of a secret)
/// reads the table here.
pub fn run(
    request: &Request,
    folder: Option<&Folder>,
    hooks: &Hooks,
    on_encoding: &dyn Fn(&Encoding),
) -> Result<Outcome> {
    request.check()?;
    let mut timings = Timings::default();
    let clock = Instant::now();
    let (table, loaded, seed) = read(request, hooks, on_encoding)?;
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    timings.read = clock.elapsed().as_secs_f64();

    if request.family == ModelKind::Softmax {
        return softmax::run(request, (&table, &loaded), (folder, hooks), seed, timings);
    }
    let clock = Instant::now();
    let model = fit(request, encoding, rows)?;
    timings.fit = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let (slots, directions) = attribute_directions(encoding);
    let prepare = |spread: Spread<'_>| scaling::prepare(request, encoding, &model.fit, &directions, spread);
    let p = model.fit.w.len() as u64;
    hooks.step(Stage::Matrices, 0, p)?;
    let chosen = noise::choose(request, &loaded, &model, &slots, &prepare, hooks)?;
    let prepared = prepare(chosen.spread())?;
    hooks.step(Stage::Matrices, p, p)?;
    let geometry = &prepared.geometry;
    let mut pending = Pending::default();
    let (measured, sets) = measure::recorded(request, rows, &slots, (folder, &mut pending), |records| {
        measure::measure(rows, &prepared, &slots, records)
    })?;
    let test = utility::test_rows(request, &table, encoding, hooks)?;
    let utility =
        test.as_ref().map(|t| utility::utility(request, t, geometry, &measured, &chosen)).transpose()?;
    let noise = shapes::described(request, &loaded, (&model.fit).into(), &chosen, test.as_ref())?;
    hooks.step(Stage::Errors, 0, p)?;
    let inference = inference::inference(request, &loaded, model.own().map(Into::into), &chosen)?;
    hooks.step(Stage::Errors, p, p)?;
    let score = score::score(
        request,
        encoding,
        score::of_glm(&prepared, two_class(encoding)),
        &measured,
        folder,
        &mut pending,
        hooks,
    )?;
    let secret = guessed(request, &loaded, || model.own().cloned().map(Minimiser::Glm), &chosen)?;
    timings.leakage = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let tell = tell::tell(request, rows, Fitted::Glm(model.minimiser()), &slots, &measured, &chosen)?;
    timings.tell = clock.elapsed().as_secs_f64();

    let parts = assemble::AuditParts {
        request,
        encoding,
        facts: facts::of_glm(encoding, &model, geometry, &sets)?,
        slots: &slots,
        scaling: prepared.effect(encoding, measured.scaling),
        tell,
        measured,
        sigma: chosen.sigma,
        sigma_source: chosen.source,
        noise,
        inference,
        seed,
        utility,
        score,
        secret,
        timings,
    };
    Ok(Outcome { audit: crate::output::complete(parts.audit())?, pending })
}

/// The table as the model reads it, and the seed of the split where rows are held out.
fn read(
    request: &Request,
    hooks: &Hooks,
    on_encoding: &dyn Fn(&Encoding),
) -> Result<(Table, Loaded, Option<u64>)> {
    let table = Table::open_with(&request.read, hooks)?;
    let seed = request.holdout.map(|_| request.seed.unwrap_or_else(crate::seed::draw));
    // Several rows of one person are audited, and never called protected.
    let options = EncodeOptions { repeated_ids: true, ..encode_options(request, seed) };
    let encoding = Encoding::fit(&table, &request.roles, &options, hooks)?;
    crate::model::check_rows(&encoding)?;
    on_encoding(&encoding);
    request.check_names(&encoding)?;
    crate::telling::check(request, &encoding)?;
    let rows = Dataset::new(&table, &encoding, Subset::Training, hooks)?;
    let seed_of_all = seed.or(request.seed).unwrap_or_else(crate::seed::draw);
    let loaded = Loaded { encoding, rows, test: None, seed: seed_of_all, warnings: vec![] };
    Ok((table, loaded, seed))
}

/// Noise vectors and draws of the panel about a secret.
const SECRET_TRIALS: (usize, u64) = (200, 20_000);

/// What any attacker can guess of a chosen secret, and what attacks do: one panel of the page, where it is asked for.
fn guessed(
    request: &Request,
    loaded: &Loaded,
    minimiser: impl FnOnce() -> Option<Minimiser>,
    chosen: &Chosen,
) -> Result<Option<SecretBounds>> {
    let Some(name) = &request.secret else { return Ok(None) };
    let Some(minimiser) = minimiser() else {
        let message = "bounds on guesses compare minimisers: leave ⟨coefficients⟩ out";
        return Err(Failure::option("secret", message));
    };
    let shape = chosen.shaped.clone().map(UnitShape::of).transpose()?;
    let bounding = Bounding {
        secret: name.clone(),
        bins: 4,
        prior: None,
        sigma: Some(chosen.sigma),
        sigmas: vec![],
        curve: true,
        attacks: FIG_4.to_vec(),
        noise_vectors: SECRET_TRIALS.0,
        draws: SECRET_TRIALS.1,
        confidence: 0.99,
        delta: 1e-5,
    };
    of_model(request, loaded, &minimiser, &bounding, shape.as_ref()).map(Some)
}

fn fit(request: &Request, encoding: &Encoding, rows: &Dataset) -> Result<Model> {
    let penalty = penalty(request);
    let best = glm::fit(rows, request.glm()?, penalty).map_err(|e| explain(e, encoding, request.l2))?;
    let Some(coefficients) = &request.coefficients else { return Ok(Model { fit: best, best: None }) };
    let w = match_coefficients(coefficients, encoding)?;
    let fit =
        glm::evaluate(rows, request.glm()?, penalty, &w).map_err(|e| explain(e, encoding, request.l2))?;
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
