//! What noise costs and what it buys.

use crate::document::audit::{Audit, SigmaSource};
use crate::document::tell::ValuePair;
use crate::figure::Claim;
use crate::format;
use crate::render::html::chart;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, split};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::{PROTECT_AT, TOLD_AT, exposures, more_noise, noise_to_hide};
use crate::words;

pub(super) fn noise(audit: &Audit) -> Html {
    let source = words::sigma_source(audit);
    let choices = choices(audit);
    let (chart, lead) = match &audit.utility {
        Some(u) => {
            let lead = fill(
                "{} On {} the expected {} is {} at this noise, {} without noise, and {} from a model without any columns; \
                 expectations over the noise are exact.",
                &[
                    &follow::as_audited(&source),
                    &format::counted(u.rows, "held-out row"),
                    &words::metric_name(u.metric),
                    &follow::utility(u),
                    &words::metric(u, u.without_noise),
                    &words::metric(u, u.constant_model),
                ],
            );
            (chart::curve(audit, u), lead)
        }
        None => (
            Html::new(),
            fill(
                "{} What it costs was not measured: that needs held-out or test rows.",
                &[&follow::as_audited(&source)],
            ),
        ),
    };
    let body = if chart.is_empty() { choices } else { split(chart, choices) };
    card("noise", "Noise against utility", &[Claim::Measured, Claim::Bound], lead, body)
}

/// Targets and the noise that meets them: η falls as 1/σ, and so does how far two values are apart.
pub(super) fn targets(audit: &Audit) -> Vec<(String, f64)> {
    let (s, eta) = (audit.sigma, &audit.records.eta);
    let mut all = vec![match audit.sigma_source {
        SigmaSource::Default => ("a unit of noise".to_owned(), s),
        SigmaSource::Given
        | SigmaSource::TargetEta { .. }
        | SigmaSource::TargetSd { .. }
        | SigmaSource::Targets => ("as audited".to_owned(), s),
    }];
    let limit = audit.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at);
    for goal in [TOLD_AT, limit] {
        all.extend(hidden_at(audit, goal).map(|(text, times)| (text, s * times)));
    }
    if eta.max > 0.0 {
        all.push(("largest η = 1".to_owned(), s * eta.max));
        all.push(("largest η = 0.1".to_owned(), s * eta.max / 0.1));
    }
    all.retain(|(_, sigma)| *sigma > 0.0 && sigma.is_finite());
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

/// What brings the attribute that needs most noise down to a goal, and how many times the noise that is.
fn hidden_at(audit: &Audit, goal: f64) -> Option<(String, f64)> {
    let text = |name: &str, about: &str| {
        format!("two values of {name} told apart in {about}{}", format::share(goal))
    };
    let Some(tell) = &audit.tell else {
        let e = exposures(audit).into_iter().next()?;
        return more_noise(e.told, goal).map(|times| (text(&e.attribute.name, "about "), times));
    };
    let needed = |t: &ValuePair| {
        let levels = t.among_all.map_or(2, |all| all.levels);
        let times = match t.distance {
            Some(distance) => noise_to_hide(distance, levels, goal),
            None => more_noise(t.worst, goal),
        };
        times.filter(|times| *times > 1.0).map(|times| (text(&t.attribute, ""), times))
    };
    tell.attributes.iter().filter_map(needed).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What to choose.
fn choices(audit: &Audit) -> Html {
    let metric = audit.utility.as_ref().map(|u| words::metric_name(u.metric)).unwrap_or_default();
    let mut heads = vec![text_column("to get"), numbers("σ"), numbers("largest η")];
    if audit.utility.is_some() {
        heads.push(numbers(metric));
    }
    let rows: Vec<Vec<Cell>> = targets(audit)
        .iter()
        .map(|(name, sigma)| {
            let eta = audit.records.eta.max * audit.sigma / sigma;
            // What was audited stands; a goal needs more noise where there are more releases.
            let audited = *sigma == audit.sigma;
            let (noise, eta) = match audited {
                true => (Html::text(&format::number(*sigma)), follow::eta_of_releases(eta)),
                false => (follow::goal(*sigma), Html::text(&format::number(eta))),
            };
            let mut row = vec![
                Cell::name(name),
                Cell::sorted_html(noise, Some(*sigma)),
                Cell::sorted_html(eta, Some(audit.records.eta.max * audit.sigma / sigma)),
            ];
            if let Some(u) = &audit.utility {
                row.push(match audited {
                    true => Cell::sorted(words::metric(u, u.at_sigma), u.at_sigma),
                    false => Cell::sorted_html(follow::utility_at(u, *sigma), words::metric_at(u, *sigma)),
                });
            }
            row
        })
        .collect();
    let shaped = match &audit.noise {
        Some(_) => " σ here is that of isotropic noise which costs as much as this noise, scaled up or down.",
        None => "",
    };
    fill(
        "<h3>What noise to choose</h3>{}<p class=\"lead\">η is inversely proportional to σ, for every record and \
         attribute, so a target fixes σ. K releases of the same data need √K times the noise.{}</p>",
        &[&table("wrap stack even", "What noise to choose", &heads, &rows), &shaped],
    )
}
