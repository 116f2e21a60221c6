//! What the numbers of an attribute mean, in its own units.

use crate::document::audit::{Attribute, Label};
use crate::format;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::words::{is_category, spread};

/// `±81.6 years`.
pub(super) fn smallest_error(a: &Attribute) -> Html {
    if !a.min_sd.value.is_finite() {
        return Html::text(&format::bound(&a.min_sd));
    }
    match a.unit.as_deref().map(str::trim).filter(|u| !u.is_empty()) {
        Some(unit) => fill("±{} {}", &[&follow::error(a.min_sd.value), &unit]),
        None => fill("±{}", &[&follow::error(a.min_sd.value)]),
    }
}

/// What the numbers of an attribute mean, one sentence each.
pub(super) fn meaning(a: &Attribute) -> Vec<Html> {
    if !a.min_sd.value.is_finite() {
        return vec![Html::literal(
            "Small changes of it do not move the model: no estimate that is right on average has a bounded error.",
        )];
    }
    let error = smallest_error(a);
    if is_category(a) {
        return vec![fill(
            "An estimate, right on average, of which level a record has is off by at least {} for the most exposed record, on a \
             scale where 0 is no and 1 is yes (a coin toss: ±0.5).",
            &[&error],
        )];
    }
    let differ = match spread(a) {
        Some(s) => format!(" (records differ by ±{})", format::number(s)),
        None => String::new(),
    };
    let typical = match a.min_sd_typical.is_finite() {
        true => fill("; ±{} for a typical one", &[&follow::error(a.min_sd_typical)]),
        false => Html::new(),
    };
    let mut sentences = vec![fill(
        "An estimate, right on average, is off by at least {} for the most exposed record{}{}.",
        &[&error, &differ, &typical],
    )];
    let with_prior = a.min_rmse_with_prior.filter(|b| b.value.is_finite());
    if let Some(b) = with_prior {
        let best = match a.prior_sd.or(a.population_sd) {
            Some(prior) => follow::with_prior(b.value, prior),
            None => follow::as_audited(&format::number(b.value)),
        };
        sentences.push(match (a.prior_sd, a.population_sd) {
            (Some(p), _) => fill(
                "Someone who already knows it to ±{} gets to about ±{}, on average over records.",
                &[&format::number(p), &best],
            ),
            (None, Some(p)) => fill(
                "Someone who already knows the population (±{}) gets to about ±{}, on average over records.",
                &[&format::number(p), &best],
            ),
            (None, None) => {
                fill("With a prior, an estimate gets to about ±{}, on average over records.", &[&best])
            }
        });
    }
    sentences
}

/// What the numbers of the label mean.
pub(super) fn label_meaning(label: &Label) -> Html {
    if !label.min_sd.value.is_finite() {
        return Html::literal("Small changes of it do not move the model.");
    }
    let error = follow::error(label.min_sd.value);
    match label.population_sd {
        Some(s) => fill(
            "An estimate, right on average, is off by at least ±{} for the most exposed record (records differ by ±{}).",
            &[&error, &format::number(s)],
        ),
        None => fill(
            "An estimate, right on average, of its class is off by at least ±{} for the most exposed record, on a scale where 0 is \
             no and 1 is yes (a coin toss: ±0.5).",
            &[&error],
        ),
    }
}
