//! Who is exposed: the histogram of η, and groups.

use crate::audit::Audit;
use crate::chart::{self, Shown};
use crate::format;
use crate::html::{Cell, Kind, card, escape, numbers, table, words as text_column};
use crate::words;

pub(super) fn who(audit: &Audit, series: &[Shown]) -> String {
    let eta = &audit.records.eta;
    let coloured = match words::series_by(audit) {
        Some(by) if audit.records.histogram.by == "class" => {
            format!(", coloured by the class of {}", escape(by))
        }
        Some(by) => format!(", coloured by {}", escape(by)),
        None => String::new(),
    };
    let lead = format!(
        "Each record's information loss η{coloured}. Mean {}, standard deviation {}, from {} to {}.",
        format::number(eta.mean),
        format::number(eta.std),
        format::number(eta.min),
        format::number(eta.max)
    );
    let chart = format!("{}{}", chart::legend(series), chart::histogram(audit, series));
    let groups = if audit.groups.is_empty() { by_series(audit, series) } else { groups(audit, series) };
    let body = format!("<div class=\"split\"><div>{chart}</div><div>{groups}</div></div>");
    card("who", "Who is exposed", &[Kind::Measured], &lead, &body)
}

/// The slot of the series that stands for a group by its name.
fn mark(audit: &Audit, series: &[Shown], name: &str) -> String {
    if audit.records.histogram.by != "group" {
        return String::new();
    }
    let index = audit.records.histogram.series.iter().position(|s| s.name == name);
    let slot = index.and_then(|i| series.iter().find(|s| s.members.contains(&i))).map(|s| s.slot);
    slot.map(chart::swatch).unwrap_or_default()
}

fn groups(audit: &Audit, series: &[Shown]) -> String {
    let by = audit.data.group.as_deref().unwrap_or("group");
    let least =
        audit.groups.iter().map(|g| g.eta_mean).filter(|m| m.is_finite()).fold(f64::INFINITY, f64::min);
    let rows: Vec<Vec<Cell>> = audit
        .groups
        .iter()
        .map(|g| {
            let ratio = if g.eta_mean > least { g.eta_mean / least } else { 1.0 };
            vec![
                Cell::marked_name(&mark(audit, series, &g.name), &g.name),
                Cell::count(g.n),
                Cell::number(g.eta_mean),
                Cell::sorted(format::times(ratio), ratio),
                Cell::number(g.eta_median),
                Cell::number(g.eta_max),
                Cell::number(g.eta),
            ]
        })
        .collect();
    let heads = [
        text_column(by),
        numbers("records"),
        numbers("mean η"),
        numbers("ratio"),
        numbers("median"),
        numbers("largest"),
        numbers("whole"),
    ];
    let note = match audit.group_ratio {
        Some(r) if r.is_finite() => format!(
            "<p class=\"lead\">The worst group leaks ×{} what the best one does, on average. Ratio: mean η over that of \
             the best group. Whole: η of all its records together.</p>",
            format::number(r)
        ),
        _ => "<p class=\"lead\">Ratio: mean η over that of the best group. Whole: η of all its records \
                 together.</p>"
            .to_owned(),
    };
    format!("{}{note}", table("sortable tall", "Groups", &heads, &rows))
}

/// Without groups: the classes, or the quantiles of all records.
fn by_series(audit: &Audit, series: &[Shown]) -> String {
    if audit.records.histogram.by == "class" && series.len() > 1 {
        let rows: Vec<Vec<Cell>> = series
            .iter()
            .map(|s| {
                let mean = s.members.first().map_or(0.0, |&i| audit.records.histogram.series[i].mean);
                vec![
                    Cell::marked_name(&chart::swatch(s.slot), &s.name),
                    Cell::count(s.total()),
                    Cell::number(mean),
                ]
            })
            .collect();
        let heads = [text_column(&audit.data.target), numbers("records"), numbers("mean η")];
        return format!("{}{}", table("", "Classes", &heads, &rows), quantiles(audit));
    }
    quantiles(audit)
}

fn quantiles(audit: &Audit) -> String {
    let e = &audit.records.eta;
    let share = |x: f64| Cell::sorted(format::times(if e.p50 > 0.0 { x / e.p50 } else { 1.0 }), x);
    let rows: Vec<Vec<Cell>> = [
        ("smallest", e.min),
        ("median", e.p50),
        ("90% are below", e.p90),
        ("95% are below", e.p95),
        ("99% are below", e.p99),
        ("largest", e.max),
    ]
    .into_iter()
    .map(|(name, x)| vec![Cell::name(name), Cell::number(x), share(x)])
    .collect();
    table("", "Quantiles of η", &[text_column("records"), numbers("η"), numbers("against the median")], &rows)
}
