//! Noise with a shape: what it costs beside the others, and where it goes.

use super::figure::drawing;
use crate::document::audit::Audit;
use crate::document::choice::Metric;
use crate::document::noise::{Coefficient, Noise, Secret};
use crate::figure::{Axis, Claim, Figure, Level, Series};
use crate::format;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, list, narrow};
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::{noise_words, words};
use leakscope_core::special::normal_quantile;

/// Errors this many times that of a model without columns are off the chart.
const OFF_THE_CHART: f64 = 3.0;

pub(super) fn shape(audit: &Audit) -> Html {
    let Some(noise) = &audit.noise else { return Html::new() };
    let lead = format!(
        "Noise of {} shape, made so that {}. {} {}",
        noise_words::shape(noise.shape),
        noise_words::goals(noise),
        noise_words::against_isotropic(audit, noise),
        noise_words::certificate(noise)
    );
    let mut sentences: Vec<String> = noise.instead.iter().cloned().collect();
    sentences.push(noise_words::covariance(noise));
    sentences.extend(noise.directions.iter().map(noise_words::direction));
    let shapes = shapes(noise).and(list(sentences));
    let body = match chart(audit, noise) {
        Some(figure) => narrow(drawing(&figure)).and(shapes),
        None => shapes,
    };
    card("shape", "Shape of the noise", &[Claim::Measured, Claim::Bound], lead, body)
}

/// What each shape costs.
fn shapes(noise: &Noise) -> Html {
    let heads = [
        text_column("shape"),
        numbers("cost"),
        numbers("isotropic costs"),
        numbers("of the cheapest, at most"),
        numbers("given away by the shape"),
    ];
    let rows: Vec<Vec<Cell>> = noise
        .shapes
        .iter()
        .map(|s| {
            let name = noise_words::shape(s.shape);
            let remark = if s.shape == noise.shape { "as audited" } else { "" };
            vec![
                Cell::remarked_name(name, remark),
                Cell::number(s.cost),
                Cell::sorted(format::times(s.gain), s.gain),
                Cell::sorted(noise_words::above_cheapest(s.gap), s.gap),
                Cell::sorted(
                    if s.covariance_information > 0.0 {
                        format!("{} of η²", format::share_at_most(s.covariance_information))
                    } else {
                        "nothing".into()
                    },
                    s.covariance_information,
                ),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Html::new();
    }
    fill(
        "<h3>What each shape costs</h3>{}<p class=\"lead\">Cost is what the noise adds to the error of predictions where the \
         targets are met exactly; it grows as one over the square of η.</p>",
        &[&table("wrap", "What each shape costs", &heads, &rows)],
    )
}

/// Utility against protection, a line a shape.
fn chart(audit: &Audit, noise: &Noise) -> Option<Figure> {
    let utility = audit.utility.as_ref()?;
    let name = words::metric_name(utility.metric);
    // One goal has an η of its own; several are loosened and tightened together.
    let (scale, title) = match noise.goals.as_slice() {
        [one] if one.secret == Secret::Record => (one.eta, "largest η of a record".to_owned()),
        [one] => (one.eta, format!("largest η of {}", one.name.as_deref().unwrap_or("the secret"))),
        _ => (1.0, "η allowed, in multiples of the targets".to_owned()),
    };
    let most = OFF_THE_CHART * utility.constant_model.abs();
    let shown = |value: f64| value.is_finite() && (utility.higher_is_better || value <= most);
    let series: Vec<Series> = noise
        .shapes
        .iter()
        .map(|s| {
            let points = s.points.iter().filter(|p| shown(p.value)).map(|p| (scale * p.multiple, p.value));
            Series::measured(noise_words::shape(s.shape), points)
        })
        .filter(|s| !s.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let y = match utility.metric {
        Metric::Accuracy => Axis::linear(name),
        Metric::Mse | Metric::Deviance => Axis::log(name),
    };
    let level = |value: f64, name: &str| Level { value, name: name.into() };
    Some(Figure {
        id: "shapes".into(),
        title: "Utility against protection".into(),
        caption: String::new(),
        x: Axis::log(&title),
        y,
        series,
        levels: vec![
            level(utility.without_noise, "without noise"),
            level(utility.constant_model, "without any columns"),
        ],
        chosen: Some(scale),
    })
}

/// Standard errors of the coefficients, noise included.
pub(super) fn inference(audit: &Audit) -> Html {
    let Some(inference) = &audit.inference else { return Html::new() };
    let heads = [
        text_column("coefficient"),
        numbers("as fitted"),
        numbers("error from sampling (private)"),
        numbers("error from noise (public)"),
        numbers("both"),
        text_column("interval"),
        numbers("p-value"),
    ];
    let z = normal_quantile(0.5 + 0.5 * inference.level);
    let mut order: Vec<_> = inference.coefficients.iter().collect();
    let most = if order.len() > 2 * SHOWN { SHOWN } else { order.len() };
    if most < order.len() {
        // Of many, those that are surest not to be zero.
        let errors = |c: &Coefficient| (c.estimate / c.standard_error).abs();
        order.sort_by(|a, b| errors(b).total_cmp(&errors(a)));
    }
    let (shown, others) = order.split_at(most);
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|c| {
            let follows = |kind: &'static str, text: &str| {
                follow::coefficient(kind, [c.estimate, c.sampling_error, c.noise_error, z], text)
            };
            let interval = format!("{} to {}", format::number(c.low), format::number(c.high));
            let both = follows("both", &format::number(c.standard_error));
            vec![
                Cell::name(&c.name),
                Cell::number(c.estimate),
                Cell::number(c.sampling_error),
                Cell::sorted_html(follow::noise_error(c.noise_error), Some(c.noise_error)),
                Cell::sorted_html(both, Some(c.standard_error)),
                Cell::html(follows("interval", &interval)),
                Cell::sorted_html(follows("chance", &format::number(c.p_value)), Some(c.p_value)),
            ]
        })
        .collect();
    let units = match inference.original_units {
        true => "of the columns as they stand in the file",
        false => "of the columns as encoded",
    };
    let lead = format!(
        "How far coefficients {units} are from those of the population, once noise is added: {} intervals and two-sided tests, \
         by the sandwich estimate. The part from sampling is read off the records: it belongs to this audit, not to a \
         release. A release centres the interval at its own, noisy coefficient.{}",
        format::share(inference.level),
        if audit.model.l2 > 0.0 { " With a penalty they are about the penalised coefficients." } else { "" }
    );
    let lines = others.iter().map(|c| {
        format!("{}  {} ± {}", c.name, format::number(c.estimate), format::number(c.standard_error))
    });
    let order =
        "Closer to zero than those above, in standard errors, furthest first: as fitted ± both errors.";
    let body = table("sortable filterable stack even", "Standard errors", &heads, &rows).and(rest(
        "coefficients",
        order,
        lines,
    ));
    card("inference", "What coefficients are worth with the noise", &[Claim::Measured], lead, body)
}
