//! What noise costs and what it buys.

use crate::audit::{Audit, SigmaSource, Utility};
use crate::chart;
use crate::html::{Cell, Kind, card, escape, numbers, table, words as text_column};
use crate::verdict::exposures;
use crate::{format, words};

pub(super) fn noise(audit: &Audit) -> String {
    let source = escape(&words::sigma_source(audit));
    let choices = choices(audit);
    let (chart, lead) = match &audit.utility {
        Some(u) => {
            let lead = format!(
                "{source} On {} the expected {} is {} at this noise, {} without noise, and {} from a model without \
                 any columns; expectations over the noise are exact.",
                format::counted(u.rows, "held-out row"),
                escape(words::metric_name(u)),
                words::metric(u, u.at_sigma),
                words::metric(u, u.without_noise),
                words::metric(u, u.constant_model)
            );
            (chart::curve(audit, u), lead)
        }
        None => (
            String::new(),
            format!("{source} What it costs was not measured: that needs held-out or test rows."),
        ),
    };
    let body = match chart.is_empty() {
        true => choices,
        false => format!("<div class=\"split\"><div>{chart}</div><div>{choices}</div></div>"),
    };
    card("noise", "Noise against utility", &[Kind::Measured, Kind::Bound], &lead, &body)
}

/// The expected metric at a noise, between the points of the curve; linear in log σ.
fn at(utility: &Utility, sigma: f64) -> Option<f64> {
    let mut points: Vec<_> = utility
        .points
        .iter()
        .filter(|p| p.sigma > 0.0 && p.sigma.is_finite() && p.value.is_finite())
        .collect();
    points.sort_by(|a, b| a.sigma.total_cmp(&b.sigma));
    let right = points.iter().position(|p| p.sigma >= sigma)?;
    let b = points[right];
    let Some(a) = right.checked_sub(1).map(|i| points[i]) else {
        return (b.sigma <= sigma * (1.0 + 1e-12)).then_some(b.value);
    };
    let t = (sigma / a.sigma).ln() / (b.sigma / a.sigma).ln();
    Some(a.value + t * (b.value - a.value))
}

/// What to choose: η falls as 1/σ and errors grow as σ, so every target fixes its σ.
fn choices(audit: &Audit) -> String {
    let s = audit.sigma;
    let eta = &audit.records.eta;
    let mut all = vec![match audit.sigma_source {
        SigmaSource::Default => ("a unit of noise".to_owned(), s),
        _ => ("as audited".to_owned(), s),
    }];
    if let Some(e) = exposures(audit).first().filter(|e| e.multiple > 0.0 && e.multiple.is_finite()) {
        let (name, unit) = (&e.attribute.name, e.attribute.unit.as_deref());
        let spread = words::spread(e.attribute).unwrap_or_default();
        let of = if words::is_category(e.attribute) { "a coin toss" } else { "its spread" };
        let error = |k: f64| format::plus_minus(&format::setting(k * spread), unit);
        all.push((format!("least error of {name} {}, {of}", error(1.0)), s / e.multiple));
        all.push((format!("least error of {name} {}, three times that", error(3.0)), 3.0 * s / e.multiple));
    }
    if eta.max > 0.0 {
        all.push(("largest η = 1".to_owned(), s * eta.max));
        all.push(("largest η = 0.1".to_owned(), s * eta.max / 0.1));
    }
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let metric = audit.utility.as_ref().map(words::metric_name).unwrap_or_default();
    let mut heads = vec![text_column("to get"), numbers("σ"), numbers("largest η")];
    if audit.utility.is_some() {
        heads.push(numbers(metric));
    }
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .filter(|(_, sigma)| *sigma > 0.0 && sigma.is_finite())
        .map(|(name, sigma)| {
            let mut row = vec![Cell::name(name), Cell::number(*sigma), Cell::number(eta.max * s / sigma)];
            if let Some(u) = &audit.utility {
                let (value, about) =
                    if *sigma == s { (Some(u.at_sigma), "") } else { (at(u, *sigma), "≈ ") };
                row.push(match value {
                    Some(v) => Cell::sorted(format!("{about}{}", words::metric(u, v)), v),
                    None => Cell::html("<span class=\"say\">off the curve</span>".to_owned()),
                });
            }
            row
        })
        .collect();
    format!(
        "<h3>What noise to choose</h3>{}<p class=\"lead\">η is inversely proportional to σ, for every record and \
         attribute, so a target fixes σ. K releases of the same data need √K times the noise.</p>",
        table("wrap", "What noise to choose", &heads, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::UtilityPoint;

    #[test]
    fn the_metric_between_two_points_is_linear_in_log_sigma_and_absent_outside() {
        let point = |sigma, value| UtilityPoint { sigma, value, eta_mean: 1.0, eta_max: 2.0 };
        let u = Utility {
            metric: "mse".into(),
            higher_is_better: false,
            rows: 10,
            without_noise: 1.0,
            at_sigma: 1.0,
            constant_model: 5.0,
            points: vec![point(1.0, 3.0), point(0.01, 1.0), point(10.0, f64::INFINITY)],
        };
        assert!((at(&u, 0.1).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(at(&u, 0.01), Some(1.0));
        assert_eq!(at(&u, 0.001), None);
        assert_eq!(at(&u, 2.0), None);
    }
}
