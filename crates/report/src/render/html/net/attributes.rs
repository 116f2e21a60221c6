//! Which attributes of a table a network gives away, in their own units.

use crate::document::net::{NetAttribute, NetAudit};
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{
    Cell, LESS_EXPOSED, SHOWN, numbers, rest_of_attributes, table, words as text_column,
};
use crate::render::networks;

/// The card; empty where the records are no rows of a table.
pub(super) fn attributes(a: &NetAudit) -> Html {
    if a.attributes.is_empty() {
        return Html::new();
    }
    let longest = a.attributes.iter().map(|t| t.eta_max).fold(0.0, f64::max);
    let (shown, others) = a.attributes.split_at(a.attributes.len().min(SHOWN));
    let rows: Vec<Vec<Cell>> = shown.iter().map(|t| row(t, longest)).collect();
    let heads = [
        text_column("attribute"),
        numbers("mean η"),
        numbers("largest η"),
        text_column(""),
        text_column("of whom"),
        text_column("what it means"),
    ];
    let lines = others.iter().map(|t| {
        let [mean, largest] = [t.eta_mean, t.eta_max].map(format::number);
        format!("{}  mean η {mean}  largest {largest}", t.name)
    });
    let lead = "What one noisy step tells about each column of the table to somebody who knows all else of the record, over \
                the measured records: dark is the mean, light the most exposed record. A one-hot attribute counts as one. \
                A run of many steps tells more: ε bounds all of them together.";
    let body = table("sortable filterable stack attributes", "Attributes", &heads, &rows)
        .and(rest_of_attributes(LESS_EXPOSED, lines));
    card("attributes", "Which attributes leak", &[Claim::Measured, Claim::Bound], lead, body)
}

fn row(a: &NetAttribute, longest: f64) -> Vec<Cell> {
    let kind = match (a.is_label, a.columns.len()) {
        (true, _) => "the label".to_owned(),
        (false, 0 | 1) => a.kind.name().to_owned(),
        (false, k) => format!("{}, {k} columns", a.kind.name()),
    };
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    vec![
        Cell::remarked_name(&a.name, &kind),
        Cell::number(a.eta_mean),
        Cell::number(a.eta_max),
        Cell::bar(part(a.eta_mean), part(a.eta_max)),
        Cell::text(&a.eta_max_record),
        Cell::html(fill("<div class=\"means\"><p>{}</p></div>", &[&networks::attribute_meaning(a)])),
    ]
}
