//! The page of a release: the statement that goes with the model.

use super::tell::tell;
use crate::document::release::Release;
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::parts::{card, header, judged, list, shell, tile, tiles, warnings};
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::render::words;
use crate::verdict::of_release;

/// A release as one self-contained HTML page.
pub fn release_page(r: &Release) -> String {
    let (title, facts) = words::subject(&r.subject);
    let numbers = tiles(vec![
        tile(&format::setting(r.mechanism.sigma), "σ, noise on every coefficient"),
        tile(&format::number(r.eta.mean), "mean information loss η of a record"),
        tile(&format::number(r.eta.max), "largest η of a record"),
        tile(&format::count(r.composed.releases as u64), "releases of these data so far, this one included"),
    ]);
    let mechanism = format!(
        "{} Coefficients lie on multiples of {}; randomness from {}. The noise is exact: no floating-point artefact tells \
         one coefficient from another (Mironov 2012).",
        format::sentence(&r.mechanism.name),
        power_of_two(r.mechanism.grid),
        r.mechanism.generator
    );
    let body = header("Leakscope release", &title, &format!("{facts} · {}", r.created))
        .and(judged(&of_release(r)))
        .and(numbers)
        .and(warnings(&r.warnings))
        .and(tell(r.tell.as_ref()))
        .and(card("mechanism", "The noise", &[Claim::Measured], mechanism, Html::new()))
        .and(card("known", "What attackers are taken to know", &[], "", list(&r.known)))
        .and(card("assumed", "What the numbers rest on", &[], "", list(&r.assumed)))
        .and(coefficients(r));
    shell(&format!("Leakscope release: {title}"), &body)
}

fn coefficients(r: &Release) -> Html {
    let mut all: Vec<(&String, f64)> = r.coefficients.iter().map(|(name, value)| (name, *value)).collect();
    let most = if all.len() > 2 * SHOWN { SHOWN } else { all.len() };
    if most < all.len() {
        all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    }
    let (shown, others) = all.split_at(most);
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|(name, value)| vec![Cell::name(name), Cell::sorted(format!("{value}"), *value)])
        .collect();
    let heads = [text_column("column"), numbers("coefficient")];
    let lines = others.iter().map(|(name, value)| format!("{name}  {value}"));
    let body =
        table("sortable filterable", "Released coefficients", &heads, &rows).and(rest("coefficients", lines));
    card("coefficients", "Released coefficients", &[Claim::Measured], "", body)
}

/// The grid is a power of two, and reads best as one.
fn power_of_two(x: f64) -> String {
    let power = x.log2();
    if power.fract() == 0.0 && power.abs() < 1100.0 {
        return format!("2{} = {}", format::superscript(power as i32), format::setting(x));
    }
    format::setting(x)
}
