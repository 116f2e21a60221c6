//! The records with most and least leakage, and why loss alone does not find them.

use crate::document::audit::{Audit, Record};
use crate::figure::Claim;
use crate::format;
use crate::render::html::chart::{self, Against, Shown};
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, two};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::words;

/// A table of records, most of its length hidden in a box that scrolls.
pub(super) fn record_table(audit: &Audit, label: &str, records: &[Record], longest: f64) -> Html {
    let median = audit.records.eta.p50;
    let grouped = records.iter().any(|r| r.group.is_some());
    let by = words::series_by(audit).unwrap_or("group");
    let mut heads = vec![text_column(audit.data.id.as_deref().unwrap_or("row"))];
    if grouped {
        heads.push(text_column(by));
    }
    heads.extend([
        numbers("η"),
        text_column(""),
        numbers("× median"),
        numbers("dFIL"),
        numbers("loss"),
        numbers("loss rank"),
        text_column("most exposed attribute"),
    ]);
    let row = |r: &Record| {
        let times = if median > 0.0 { r.eta / median } else { 1.0 };
        let mut row = vec![Cell::name(&r.id)];
        if grouped {
            row.push(Cell::text(r.group.as_deref().unwrap_or("")));
        }
        row.extend([
            Cell::eta(r.eta),
            Cell::bar(0.0, if longest > 0.0 { r.eta / longest } else { 0.0 }),
            Cell::sorted(format::times(times), times),
            Cell::sorted_html(follow::square(r.dfil), Some(r.dfil)),
            Cell::number(r.loss),
            Cell::sorted(format::share(r.loss_rank), r.loss_rank),
            match &r.most_exposed_attribute {
                Some((name, eta)) => {
                    Cell::html(fill("{} <span class=\"say\">η {}</span>", &[name, &follow::eta(*eta)]))
                }
                None => Cell::text(""),
            },
        ]);
        row
    };
    table("sortable filterable tall stack even", label, &heads, &records.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn records(audit: &Audit) -> Html {
    let r = &audit.records;
    let longest = r.eta.max;
    let mut out = Html::new();
    if !r.most.is_empty() {
        let lead =
            format!("{} Loss rank: share of records whose loss is at most this one’s.", words::missed(audit));
        let body = record_table(audit, "The most exposed records", &r.most, longest);
        out.push(card("most", "The most exposed records", &[Claim::Measured], lead, body));
    }
    if !r.least.is_empty() {
        let times = match r.eta.min > 0.0 {
            true => format!(
                "The most exposed record leaks ×{} what the least exposed one does.",
                format::number(r.eta.max / r.eta.min)
            ),
            false => "The model gives nothing away about the first of them.".to_owned(),
        };
        let body = record_table(audit, "The least exposed records", &r.least, longest);
        out.push(card("least", "The least exposed records", &[Claim::Measured], times, body));
    }
    out
}

pub(super) fn why_loss_misses(audit: &Audit, series: &[Shown]) -> Html {
    if audit.records.sample.is_empty() {
        return Html::new();
    }
    let lead = format!(
        "Each dot is a record, {} of {}; rings are the most exposed. A record that is fitted badly need not leak, and \
         one that is fitted well may: shaded are records above the 99th percentile of η whose loss or gradient norm \
         is below its 95th.",
        format::count(audit.records.sample.len() as u64),
        format::count(audit.n)
    );
    let charts = two(
        chart::scatter(audit, series, Against::Loss),
        chart::scatter(audit, series, Against::GradientNorm),
    );
    let body = chart::series_legend(series).and(charts);
    card("loss", "Why loss alone misses records", &[Claim::Measured], lead, body)
}
