//! How often two values of an attribute are told apart: what the colour rests on.

use crate::document::tell::Tell;
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words};

/// The card; nothing where it was not computed.
pub(super) fn tell(tell: Option<&Tell>) -> Html {
    let Some(tell) = tell.filter(|t| !t.attributes.is_empty()) else { return Html::new() };
    let mut order: Vec<_> = tell.attributes.iter().collect();
    order.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    let (shown, others) = order.split_at(order.len().min(SHOWN));
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|t| {
            vec![
                Cell::remarked_name(&t.attribute, if t.label { "the label" } else { "" }),
                Cell::text(&format!("{} or {}", t.from, t.to)),
                Cell::sorted(format::share_at_most(t.worst), t.worst),
                Cell::sorted(format::share_at_most(t.median), t.median),
                Cell::text(&t.worst_record),
            ]
        })
        .collect();
    let heads = [
        words("attribute"),
        words("which of two values"),
        numbers("most exposed record"),
        numbers("median record"),
        words("most exposed"),
    ];
    let lead = format!(
        "Somebody who knows every other value of the table, and that one of two values is right, names the right one so \
         often; a coin toss has 50%. By refitting the model with either value. Up to {} counts as protected.",
        format::share(tell.protect_at)
    );
    let lines = others
        .iter()
        .map(|t| format!("{}  {} or {}  {}", t.attribute, t.from, t.to, format::share_at_most(t.worst)));
    let body = table("sortable filterable tall", "Two values told apart", &heads, &rows)
        .and(rest("attributes", lines));
    card("tell", "Which values can be told apart", &[Claim::Measured], lead, body)
}
