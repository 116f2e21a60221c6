//! Who is exposed: the histogram of η, and groups.

use crate::document::audit::Audit;
use crate::document::choice::SeriesBy;
use crate::figure::Claim;
use crate::format;
use crate::render::html::chart::{self, Shown};
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, split};
use crate::render::html::table::{Cell, LESS_EXPOSED, SHOWN, numbers, rest, table, words as text_column};
use crate::words;

pub(super) fn who(audit: &Audit, series: &[Shown]) -> Html {
    let eta = &audit.records.eta;
    let coloured = match (words::series_by(audit), audit.records.histogram.by) {
        (Some(by), SeriesBy::Class) => format!(", coloured by the class of {by}"),
        (Some(by), SeriesBy::Group | SeriesBy::All) => format!(", coloured by {by}"),
        (None, _) => String::new(),
    };
    let [mean, std, min, max] = [eta.mean, eta.std, eta.min, eta.max].map(follow::eta);
    let lead = fill(
        "Each record's information loss η{}. Mean {}, standard deviation {}, from {} to {}.",
        &[&coloured, &mean, &std, &min, &max],
    );
    let chart = chart::series_legend(series).and(chart::histogram(audit, series));
    let mut groups = if audit.groups.is_empty() { by_series(audit, series) } else { groups(audit, series) };
    if !audit.classes.is_empty() {
        groups = groups.and(classes(audit));
    }
    card("who", "Who is exposed", &[Claim::Measured], lead, split(chart, groups))
}

/// The mark of the series that stands for a group by its name.
fn mark(audit: &Audit, series: &[Shown], name: &str) -> Html {
    if audit.records.histogram.by != SeriesBy::Group {
        return Html::new();
    }
    let index = audit.records.histogram.series.iter().position(|s| s.name == name);
    let slot = index.and_then(|i| series.iter().find(|s| s.members.contains(&i))).map(|s| s.slot);
    slot.map(chart::swatch).unwrap_or_default()
}

fn groups(audit: &Audit, series: &[Shown]) -> Html {
    let by = audit.data.group.as_deref().unwrap_or("group");
    let least =
        audit.groups.iter().map(|g| g.eta_mean).filter(|m| m.is_finite()).fold(f64::INFINITY, f64::min);
    let mut order: Vec<_> = audit.groups.iter().collect();
    let most = if order.len() > 2 * SHOWN { SHOWN } else { order.len() };
    if most < order.len() {
        order.sort_by(|a, b| b.eta_mean.total_cmp(&a.eta_mean));
    }
    let (shown, others) = order.split_at(most);
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|g| {
            let ratio = if g.eta_mean > least { g.eta_mean / least } else { 1.0 };
            vec![
                Cell::marked_name(mark(audit, series, &g.name), &g.name),
                Cell::count(g.n),
                Cell::eta(g.eta_mean),
                Cell::sorted(format::times(ratio), ratio),
                Cell::eta(g.eta_median),
                Cell::eta(g.eta_max),
                Cell::eta(g.eta),
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
    let ratio = match audit.group_ratio {
        Some(r) if r.is_finite() => {
            format!("The worst group leaks ×{} what the best one does, on average. ", format::number(r))
        }
        _ => String::new(),
    };
    let note =
        format!("{ratio}Ratio: mean η over that of the best group. Whole: η of all its records together.");
    let lines = others.iter().map(|g| format!("{}  mean η {}", g.name, format::number(g.eta_mean)));
    table("sortable tall stack even", "Groups", &heads, &rows)
        .and(rest("groups", LESS_EXPOSED, lines))
        .and(fill("<p class=\"lead\">{}</p>", &[&note]))
}

/// What varies by class of a softmax model: its records, and how exposed their labels are.
fn classes(audit: &Audit) -> Html {
    let mut order: Vec<_> = audit.classes.iter().collect();
    let most = if order.len() > 2 * SHOWN { SHOWN } else { order.len() };
    if most < order.len() {
        order.sort_by(|a, b| b.eta_mean.total_cmp(&a.eta_mean));
    }
    let (shown, others) = order.split_at(most);
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|c| {
            let of_records = [c.eta_mean, c.eta_median, c.eta_max].map(Cell::eta);
            let of_labels = [c.label_eta_mean, c.label_eta_max].map(Cell::maybe_eta);
            let first = [Cell::name(&c.name), Cell::count(c.n)].into_iter().chain(of_records);
            first.chain([Cell::number(c.loss_mean)]).chain(of_labels).collect()
        })
        .collect();
    let heads = [
        text_column(&audit.data.target),
        numbers("records"),
        numbers("mean η"),
        numbers("median"),
        numbers("largest"),
        numbers("mean loss"),
        numbers("η of the label, mean"),
        numbers("largest"),
    ];
    let lines = others.iter().map(|c| format!("{}  mean η {}", c.name, format::number(c.eta_mean)));
    table("sortable tall stack even", "Leakage by class", &heads, &rows).and(rest(
        "classes",
        LESS_EXPOSED,
        lines,
    ))
}

/// Without groups: the classes, or the quantiles of all records.
fn by_series(audit: &Audit, series: &[Shown]) -> Html {
    if audit.records.histogram.by == SeriesBy::Class && series.len() > 1 {
        let rows: Vec<Vec<Cell>> = series
            .iter()
            .map(|s| {
                let mean = s.members.first().map_or(0.0, |&i| audit.records.histogram.series[i].mean);
                let name = Cell::marked_name(chart::swatch(s.slot), &s.name);
                vec![name, Cell::count(s.total()), Cell::eta(mean)]
            })
            .collect();
        let heads = [text_column(&audit.data.target), numbers("records"), numbers("mean η")];
        return table("", "Classes", &heads, &rows).and(quantiles(audit));
    }
    quantiles(audit)
}

fn quantiles(audit: &Audit) -> Html {
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
    .map(|(name, x)| vec![Cell::name(name), Cell::eta(x), share(x)])
    .collect();
    table("", "Quantiles of η", &[text_column("records"), numbers("η"), numbers("against the median")], &rows)
}
