//! Which values of a record are exposed, on average over records (Mueller fig. 1).

use super::page::picture;
use crate::document::net::{Element, NetAudit};
use crate::figure::Claim;
use crate::figure::picture::Picture;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::render::networks;

/// More values than this are drawn, not listed.
const LISTED: usize = 200;

/// The card; empty where values were not measured one by one.
pub(super) fn elements(a: &NetAudit) -> Html {
    if a.elements.is_empty() {
        return Html::new();
    }
    let plis = match a.plis_of {
        Some(_) => format!(", and the size of PLIS of the gradient {}", networks::plis_of(a.plis_of)),
        None => String::new(),
    };
    let lead = format!(
        "What one noisy step tells about each value of a record on its own, on average over the measured records: the \
         diagonal of the information{plis}. Values that the network does not use give away next to nothing."
    );
    let body = match a.network.input[..] {
        [height, width, channels] => maps(a, [height, width, channels].map(|v| v as usize)),
        _ => list(&a.elements),
    };
    card("elements", "Which values are exposed", &[Claim::Measured], lead, body)
}

fn list(elements: &[Element]) -> Html {
    let most = elements.iter().map(|e| e.information).fold(0.0, f64::max);
    let mut order: Vec<&Element> = elements.iter().collect();
    if order.len() > LISTED {
        order.sort_by(|a, b| b.information.total_cmp(&a.information).then(a.element.cmp(&b.element)));
        order.truncate(LISTED);
    }
    let with_plis = elements.iter().any(|e| e.plis.is_some());
    let mut heads = vec![text_column("value"), numbers("information"), numbers("relative to the most")];
    if with_plis {
        heads.push(numbers("mean |PLIS|"));
    }
    let rows: Vec<Vec<Cell>> = order
        .into_iter()
        .map(|e| {
            let share = if most > 0.0 { e.information / most } else { 0.0 };
            let name = Cell::name(&e.element.to_string());
            let mut row = vec![name, Cell::number(e.information), Cell::bar(share, share)];
            if with_plis {
                row.push(Cell::number(e.plis.unwrap_or(0.0)));
            }
            row
        })
        .collect();
    table("sortable", "Values of a record", &heads, &rows)
}

/// Values of images as maps, channels of a pixel added up.
fn maps(a: &NetAudit, [height, width, channels]: [usize; 3]) -> Html {
    let map = |name: &str, of: &dyn Fn(&Element) -> Option<f64>| {
        let values: Option<Vec<f64>> = a.elements.iter().map(of).collect();
        let Some(values) = values else { return Html::new() };
        let pixels: Vec<f64> = values.chunks(channels.max(1)).map(|c| c.iter().sum()).collect();
        let most = pixels.iter().copied().fold(0.0, f64::max);
        Picture::heat([height, width], &pixels, most).map_or_else(Html::new, |p| {
            fill("<figure>{}<figcaption>{}</figcaption></figure>", &[&picture(&p, name), &name])
        })
    };
    fill(
        "<div class=\"maps\"><div class=\"triple\">{}{}</div></div>",
        &[&map("mean information", &|e| Some(e.information)), &map("mean |PLIS|", &|e| e.plis)],
    )
}
