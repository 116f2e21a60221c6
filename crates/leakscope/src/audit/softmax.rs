//! The audit of a softmax model: the same document, from a geometry with a vector of coefficients for each class.

use super::assemble;
use super::facts::{Facts, distance};
use super::measure::{self, Measured, Records, series_of};
use super::noise::{Chosen, exposure_in_own_units, made, sigma_for};
use super::remarks::away_from_minimiser;
use super::scaling::{self, Spread};
use super::tell::{self, Fitted};
use super::utility::{Cost, TestRows, grid, points, test_rows};
use super::{AttributeSlot, Noise, Outcome, Request, ScalingMode, attribute_directions};
use super::{guessed, inference, score, shapes};
use crate::Result;
use crate::coefficients::match_named;
use crate::failure::explain;
use crate::model::{Loaded, class_names, coefficient_names, penalty};
use crate::output::{Folder, Pending};
use crate::remarks::{few_digits, of_test};
use leakscope_core::fisher::Directions;
use leakscope_core::fisher::softmax::{SoftmaxEta, SoftmaxGeometry};
use leakscope_core::glm::softmax::{
    self, SoftmaxFit, TOLERANCE, contrasts, expected_accuracy, expected_accuracy_under,
};
use leakscope_core::glm::{Metric, Minimiser, ModelKind};
use leakscope_core::measure::{OfClass, SoftmaxMeasure, SoftmaxSums};
use leakscope_core::num::Distribution;
use leakscope_core::pass::Runner as _;
use leakscope_core::rows::Rows as _;
use leakscope_report::audit::{self as report, Timings};
use leakscope_table::{Dataset, Encoding, Hooks, Table};
use std::borrow::Cow;
use std::time::Instant;

/// Multiplications that the curve of utility may take; above, it has fewer points.
const MOST_WORK: f64 = 2e9;
const FEW_POINTS: usize = 13;

type Model = super::Model<SoftmaxFit>;

/// Everything that a pass over the records needs, at a noise.
struct Prepared {
    geometry: SoftmaxGeometry,
    /// Whether there is a scaling of columns to count, and whether leakage counts it.
    counting: Option<bool>,
}

/// Runs the audit of a softmax model.
pub(super) fn run(
    request: &Request,
    (table, loaded): (&Table, &Loaded),
    (folder, hooks): (Option<&Folder>, &Hooks),
    seed: Option<u64>,
    mut timings: Timings,
) -> Result<Outcome> {
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    let clock = Instant::now();
    let model = fit(request, encoding, rows)?;
    timings.fit = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let (slots, directions) = attribute_directions(encoding);
    let prepare = |spread: Spread<'_>| prepare(request, encoding, &model.fit, &directions, spread);
    let chosen = match request.noise.options() {
        Some(options) => made(options, request, encoding, (&model.fit).into(), rows, hooks)?,
        None => {
            let unit = || prepare(Spread::Isotropic(1.0));
            let (sigma, source) = sigma_for(
                request,
                || eta_distribution(&unit()?, rows),
                |attribute| {
                    let (unit, _) = measured(rows, &unit()?, &slots, Records::None)?;
                    exposure_in_own_units(attribute, encoding, &slots, &unit)
                },
            )?;
            Chosen { sigma, source, shaped: None }
        }
    };
    let prepared = prepare(chosen.spread())?;
    let mut pending = Pending::default();
    let (measured, sums) = measure::recorded(request, rows, &slots, (folder, &mut pending), |records| {
        measured(rows, &prepared, &slots, records)
    })?;
    let test = test_rows(request, table, encoding, hooks)?;
    let utility = test.as_ref().map(|t| utility(t, &model.fit, &measured, &chosen)).transpose()?;
    let noise = shapes::described(request, loaded, (&model.fit).into(), &chosen, test.as_ref())?;
    let inference = inference::inference(request, loaded, model.own().map(Into::into), &chosen)?;
    let scoring = score::of_classes(&prepared.geometry, prepared.counting);
    let score = score::score(request, encoding, scoring, &measured, folder, &mut pending, hooks)?;
    let secret = guessed(request, loaded, || model.own().cloned().map(Minimiser::Softmax), &chosen)?;
    timings.leakage = clock.elapsed().as_secs_f64();

    let clock = Instant::now();
    let tell = tell::tell(request, rows, Fitted::Softmax(model.minimiser()), &slots, &measured, &chosen)?;
    timings.tell = clock.elapsed().as_secs_f64();
    let scaling =
        prepared.counting.map(|replaces| scaling::effect(encoding, replaces, true, measured.scaling));
    let parts = assemble::AuditParts {
        request,
        encoding,
        facts: facts(encoding, &model, &prepared.geometry, sums)?,
        slots: &slots,
        scaling,
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

/// The noise that meets the request's target on a fitted model, and what it achieves there.
pub(super) fn solve(request: &Request, loaded: &Loaded, fit: &SoftmaxFit) -> Result<(f64, f64)> {
    let (encoding, rows) = (&loaded.encoding, &loaded.rows);
    let (slots, directions) = attribute_directions(encoding);
    let exposure = |sigma: f64, attribute: &str| {
        let prepared = prepare(request, encoding, fit, &directions, Spread::Isotropic(sigma))?;
        let (tally, _) = measured(rows, &prepared, &slots, Records::None)?;
        exposure_in_own_units(attribute, encoding, &slots, &tally)
    };
    let eta = |sigma: f64| {
        eta_distribution(&prepare(request, encoding, fit, &directions, Spread::Isotropic(sigma))?, rows)
    };
    let (sigma, _) = sigma_for(request, || eta(1.0), |attribute| exposure(1.0, attribute))?;
    let achieved = match &request.noise {
        Noise::Default | Noise::Given(_) | Noise::Shaped(_) => sigma,
        Noise::TargetEta { statistic, .. } => statistic.of(&eta(sigma)?),
        Noise::TargetSd { attribute, .. } => 1.0 / exposure(sigma, attribute)?,
    };
    Ok((sigma, achieved))
}

fn fit(request: &Request, encoding: &Encoding, rows: &Dataset) -> Result<Model> {
    let explained = |e| explain(e, encoding, request.l2);
    let best = softmax::fit(rows, penalty(request), request.max_classes).map_err(explained)?;
    let Some(coefficients) = &request.coefficients else { return Ok(Model { fit: best, best: None }) };
    let w = match_named(coefficients, &coefficient_names(encoding))?;
    let fit = softmax::evaluate(rows, penalty(request), &w, request.max_classes).map_err(explained)?;
    Ok(Model { fit, best: Some(best) })
}

fn prepare(
    request: &Request,
    encoding: &Encoding,
    fit: &SoftmaxFit,
    directions: &[Directions],
    spread: Spread<'_>,
) -> Result<Prepared> {
    let release = spread.release(request);
    let explained = |e| explain(e, encoding, request.l2);
    let geometry = match spread {
        Spread::Isotropic(_) => SoftmaxGeometry::new(fit, directions, release),
        Spread::Shaped(noise) => SoftmaxGeometry::under(fit, directions, release, noise),
    }
    .map_err(explained)?;
    match scaling::units_that_count(request, encoding)? {
        None => Ok(Prepared { geometry, counting: None }),
        Some(units) => Ok(Prepared {
            geometry: geometry.with_units(&units).map_err(explained)?,
            counting: Some(request.scaling == ScalingMode::Counted),
        }),
    }
}

/// η alone, for solving for σ.
fn eta_distribution(prepared: &Prepared, rows: &Dataset) -> Result<Distribution> {
    let counted = prepared.counting.unwrap_or(false);
    Ok(rows.run(&SoftmaxEta { geometry: Cow::Borrowed(&prepared.geometry), counted })?.eta)
}

/// Measures every record.
fn measured(
    rows: &Dataset,
    prepared: &Prepared,
    slots: &[AttributeSlot],
    records: Records<'_>,
) -> Result<(Measured, SoftmaxSums)> {
    let pass = SoftmaxMeasure {
        geometry: Cow::Borrowed(&prepared.geometry),
        series: series_of(rows.encoding()),
        compared: slots.iter().map(|slot| slot.free).collect(),
        counting: prepared.counting,
    };
    let (total, series, _) = measure::named(rows, pass, slots, records)?;
    let (tally, sums) = total.sums.into_parts();
    Ok((Measured { series, names: total.names, tally }, sums))
}

/// The expected accuracy on held-out rows at each noise: an integral, and no simulation.
fn utility(test: &TestRows, fit: &SoftmaxFit, measured: &Measured, chosen: &Chosen) -> Result<Cost> {
    let (rows, sigma) = (&test.rows, chosen.sigma);
    let mut sigmas = grid(sigma, measured.eta.max() * sigma);
    let work = rows.len() as f64 * fit.classes as f64 * sigmas.len() as f64 * 1000.0;
    if work > MOST_WORK {
        let step = (sigmas.len() - 1) / (FEW_POINTS - 1);
        sigmas = sigmas.into_iter().step_by(step).collect();
    }
    let on_grid = sigmas.len();
    sigmas.extend([0.0, sigma]);
    let factor = chosen.factor();
    let scores = match factor.is_empty() {
        true => expected_accuracy(rows, &fit.w, fit.classes, &sigmas)?,
        false => expected_accuracy_under(rows, &fit.w, fit.classes, (&sigmas, &factor))?,
    };
    let utility = report::Utility {
        metric: Metric::Accuracy.into(),
        higher_is_better: true,
        rows: scores.rows,
        without_noise: scores.values[on_grid],
        at_sigma: scores.values[on_grid + 1],
        constant_model: scores.constant_model,
        points: points(&sigmas[..on_grid], &scores.values, sigma, measured),
    };
    Ok(Cost { utility, warnings: of_test(rows, test.own_file) })
}

fn facts(encoding: &Encoding, model: &Model, geometry: &SoftmaxGeometry, sums: SoftmaxSums) -> Result<Facts> {
    let (fit, release) = (&model.fit, geometry.release());
    let (condition, weakest) = geometry.condition();
    let weakest = || weakest.to_vec();
    let mut warnings: Vec<String> =
        few_digits(encoding, condition, fit.unsettled, weakest).into_iter().collect();
    let names = coefficient_names(encoding);
    let away = model.best.as_ref().map(|best| (softmax::distance(fit, best), best));
    warnings.extend(away.and_then(|((relative, _), _)| away_from_minimiser(relative)));
    let groups = sums.groups.iter().map(|set| Ok((set.records(), geometry.set_eta(set)?)));
    let n = fit.n.max(1) as f64;
    let counts: Vec<u64> = sums.by_class.iter().map(|c| c.eta.count()).collect();
    Ok(Facts {
        n: fit.n,
        release,
        model: report::Model {
            family: ModelKind::Softmax,
            l2: fit.penalty.l2,
            intercept: fit.penalty.intercept,
            coefficients: names.iter().cloned().zip(fit.w.iter().copied()).collect(),
            coefficients_original_units: original_units(encoding, fit),
            iterations: fit.iterations,
            gradient: fit.relative_gradient,
            tolerance: TOLERANCE,
            condition,
            loss: fit.mean_loss,
            distance: away
                .map(|((relative, excess), best)| distance(&names, (&fit.w, &best.w), relative, excess)),
        },
        whole: geometry.set_eta(&sums.whole)?,
        groups: groups.collect::<Result<_>>()?,
        over_all: sums.over_all.map(|sets| geometry.attributes_over_set(sets)).transpose()?,
        information: sums.information.iter().map(|v| v / n).collect(),
        label_variances: Some(label_variances(&counts)),
        classes: by_class(encoding, &sums.by_class, release.label_secret),
        warnings,
    })
}

/// `class: column` of the columns as they stand in the file.
fn original_units(encoding: &Encoding, fit: &SoftmaxFit) -> Option<std::collections::BTreeMap<String, f64>> {
    let classes = class_names(encoding)?;
    let mut all = std::collections::BTreeMap::new();
    for (class, w) in classes.iter().zip(fit.w.chunks_exact(fit.width)) {
        let of_class = encoding.original_units(w)?;
        all.extend(of_class.into_iter().map(|(column, value)| (format!("{class}: {column}"), value)));
    }
    Some(all)
}

/// Variances of the label along each contrast of the classes, in switches.
fn label_variances(counts: &[u64]) -> Vec<f64> {
    let (k, n) = (counts.len() - 1, counts.iter().sum::<u64>().max(1) as f64);
    let u = contrasts(counts.len());
    let moment = |l: usize, power: i32| -> f64 {
        counts.iter().enumerate().map(|(c, count)| *count as f64 / n * u[c * k + l].powi(power)).sum()
    };
    (0..k).map(|l| 0.5 * (moment(l, 2) - moment(l, 1).powi(2)).max(0.0)).collect()
}

fn by_class(encoding: &Encoding, classes: &[OfClass], label_secret: bool) -> Vec<report::Class> {
    let names = class_names(encoding).unwrap_or_default();
    let class = |(name, of): (String, &OfClass)| {
        let n = of.eta.count();
        report::Class {
            name,
            n,
            eta_mean: of.eta.mean(),
            eta_median: of.eta.quantile(0.5),
            eta_max: of.eta.max(),
            loss_mean: of.loss.mean(),
            label_eta_mean: label_secret.then(|| of.label.sum / n.max(1) as f64),
            label_eta_max: label_secret.then_some(of.label.max),
        }
    };
    names.into_iter().zip(classes).map(class).collect()
}
