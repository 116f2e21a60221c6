//! The records with most and least leakage, and why loss alone does not find them.

use crate::audit::{Audit, Record};
use crate::chart::{self, Against, Shown};
use crate::html::{Cell, Kind, card, escape, numbers, table, words as text_column};
use crate::{format, words};

/// A table of records, most of its length hidden in a box that scrolls.
pub(super) fn record_table(audit: &Audit, label: &str, records: &[Record], longest: f64) -> String {
    let median = audit.records.eta.p50;
    let grouped = records.iter().any(|r| r.group.is_some());
    let by = words::series_by(audit).unwrap_or("group").to_owned();
    let id = audit.data.id.as_deref().unwrap_or("row").to_owned();
    let mut heads = vec![text_column(&id)];
    if grouped {
        heads.push(text_column(&by));
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
    let rows: Vec<Vec<Cell>> = records
        .iter()
        .map(|r| {
            let times = if median > 0.0 { r.eta / median } else { 1.0 };
            let mut row = vec![Cell::name(&r.id)];
            if grouped {
                row.push(Cell::text(r.group.as_deref().unwrap_or("")));
            }
            row.extend([
                Cell::number(r.eta),
                Cell::bar(0.0, if longest > 0.0 { r.eta / longest } else { 0.0 }),
                Cell::sorted(format::times(times), times),
                Cell::number(r.dfil),
                Cell::number(r.loss),
                Cell::sorted(format::share(r.loss_rank), r.loss_rank),
                match &r.most_exposed_attribute {
                    Some((name, eta)) => Cell::html(format!(
                        "{} <span class=\"say\">η {}</span>",
                        escape(name),
                        format::number(*eta)
                    )),
                    None => Cell::text(""),
                },
            ]);
            row
        })
        .collect();
    table("sortable filterable tall", label, &heads, &rows)
}

pub(super) fn records(audit: &Audit) -> String {
    let r = &audit.records;
    let longest = r.eta.max;
    let mut out = String::new();
    if !r.most.is_empty() {
        let lead =
            format!("{} Loss rank: share of records whose loss is at most this one’s.", words::missed(audit));
        let body = record_table(audit, "The most exposed records", &r.most, longest);
        out.push_str(&card("most", "The most exposed records", &[Kind::Measured], &escape(&lead), &body));
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
        out.push_str(&card("least", "The least exposed records", &[Kind::Measured], &times, &body));
    }
    out
}

pub(super) fn why_loss_misses(audit: &Audit, series: &[Shown]) -> String {
    if audit.records.sample.is_empty() {
        return String::new();
    }
    let lead = format!(
        "Each dot is a record, {} of {}; rings are the most exposed. A record that is fitted badly need not leak, and \
         one that is fitted well may: shaded are records above the 99th percentile of η whose loss or gradient norm \
         is below its 95th.",
        format::count(audit.records.sample.len() as u64),
        format::count(audit.n)
    );
    let body = format!(
        "{}<div class=\"two\"><div>{}</div><div>{}</div></div>",
        chart::legend(series),
        chart::scatter(audit, series, Against::Loss),
        chart::scatter(audit, series, Against::GradientNorm)
    );
    card("loss", "Why loss alone misses records", &[Kind::Measured], &lead, &body)
}
