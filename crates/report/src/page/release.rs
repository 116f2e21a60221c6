//! The page of a release: the statement that goes with the model.

use super::head::tile;
use super::shell;
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, sentence, table, words};
use crate::release::Release;

/// A release as one self-contained HTML page.
pub fn release_page(r: &Release) -> String {
    let composed = &r.composed;
    let budget = match composed.budget_eta {
        Some(b) => format!(
            "Together with earlier releases of these data that is at most <b>{}</b> of a budget of {}.",
            format::at_most(composed.eta_max),
            format::setting(b)
        ),
        None => format!(
            "With earlier releases of these data ({} in all) that is at most <b>{}</b>; no budget was set.",
            format::count(composed.releases as u64),
            format::at_most(composed.eta_max)
        ),
    };
    let warnings = match r.warnings.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"warnings\" aria-label=\"Warnings\"><h2>{}</h2>{}</section>\n",
            format::counted(r.warnings.len() as u64, "warning"),
            list(&r.warnings)
        ),
    };
    let tiles = [
        tile(&format::setting(r.mechanism.sigma), "σ, noise on every coefficient"),
        tile(&format::number(r.eta.mean), "mean information loss η of a record"),
        tile(&format::number(r.eta.max), "largest η of a record"),
        tile(&format::count(composed.releases as u64), "releases of these data so far, this one included"),
    ]
    .concat();
    let rows: Vec<Vec<Cell>> = r
        .coefficients
        .iter()
        .map(|(name, value)| vec![Cell::name(name), Cell::sorted(format!("{value}"), *value)])
        .collect();
    let coefficients =
        table("sortable", "Released coefficients", &[words("column"), numbers("coefficient")], &rows);
    let mechanism = format!(
        "{} Coefficients lie on multiples of {}; randomness from {}. The noise is exact: no floating-point artefact \
         tells one coefficient from another (Mironov 2012).",
        sentence(&r.mechanism.name),
        power_of_two(r.mechanism.grid),
        r.mechanism.generator
    );
    let body = format!(
        "<main>\n<header><div class=\"top\"><p class=\"eyebrow\">Leakscope release</p></div><h1>{}</h1>\
         <p class=\"meta\">{} · {}</p></header>\n<section class=\"verdict good\" aria-label=\"Statement\">\
         <p class=\"level\">Released with noise</p>\n<p>Gaussian noise of standard deviation <b>{}</b> was added to every \
         coefficient. The information loss η of a record is {} on average and at most <b>{}</b>.</p><p>{budget}</p></section>\n\
         <div class=\"tiles n4\">\n{tiles}</div>\n{warnings}{}{}{}{}</main>\n",
        escape(&r.subject.title()),
        escape(&r.subject.facts()),
        escape(&r.created),
        format::setting(r.mechanism.sigma),
        format::number(r.eta.mean),
        format::at_most(r.eta.max),
        card("mechanism", "The noise", &[Kind::Measured], &escape(&mechanism), ""),
        card("known", "What attackers are taken to know", &[], "", &list(&r.known)),
        card("assumed", "What the numbers rest on", &[], "", &list(&r.assumed)),
        card("coefficients", "Released coefficients", &[Kind::Measured], "", &coefficients),
    );
    shell(&format!("Leakscope release: {}", r.subject.title()), &body)
}

/// The grid is a power of two, and reads best as one.
fn power_of_two(x: f64) -> String {
    let power = x.log2();
    if power.fract() == 0.0 && power.abs() < 1100.0 {
        return format!("2{} = {}", format::superscript(power as i32), format::setting(x));
    }
    format::setting(x)
}
