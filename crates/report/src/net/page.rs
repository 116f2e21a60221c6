//! The page of an audit of a network.

use super::chart::histogram;
use super::data::{NetAudit, Record, TraceKind};
use super::elements::elements;
use super::picture::{Pictures, Shown};
use super::score::score;
use super::training::{clip_name, normalised, over_training, settings};
use super::verdict::verdict;
use crate::chart::patterns;
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, table, words};
use leakscope_core::num::Summary;
use std::collections::BTreeMap;

const STYLE: &str = include_str!("../style.css");
const MORE_STYLE: &str = include_str!("net.css");
const SCRIPT: &str = include_str!("../script.js");

/// The audit as one self-contained HTML page. It makes no request of any kind and needs no script to be read.
///
/// `pictures` are the records themselves: leave them empty for a page without raw values.
pub fn page(audit: &NetAudit, pictures: &Pictures) -> String {
    let title = format!("{} on {}", audit.network.name, audit.data.files.join(", "));
    let mut body = format!(
        "<header><p class=\"eyebrow\">Leakscope audit of a network</p><h1>{}</h1><p class=\"meta\">{}</p></header>\n",
        escape(&title),
        escape(&meta(audit))
    );
    body.push_str(&verdict(audit));
    body.push_str(&head_tiles(audit));
    let mut notes = audit.warnings.clone();
    if !pictures.records.is_empty() {
        notes.push("This page shows training records as pictures: it is as private as they are.".to_owned());
    }
    body.push_str(&warnings(&notes));
    body.push_str(&who(audit));
    body.push_str(&elements(audit));
    body.push_str(&extremes(audit, pictures));
    body.push_str(&maps(audit, pictures));
    if let Some(t) = &audit.training {
        body.push_str(&over_training(t));
    }
    if let Some(s) = &audit.score {
        body.push_str(&score(s, pictures));
    }
    body.push_str("<h2 class=\"part\">Appendix</h2>\n");
    body.push_str(&rests_on(audit));
    if let Some(t) = &audit.training {
        body.push_str(&settings(t));
    }
    shell("Leakscope audit", &title, &body)
}

/// The HTML around a page's body.
pub(super) fn shell(kind: &str, title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{kind}: {}</title>\n\
         <style>\n{STYLE}{MORE_STYLE}</style></head>\n<body>\n{}<main>\n{body}</main>\n\
         <script>\n{SCRIPT}</script>\n</body></html>\n",
        escape(title),
        patterns()
    )
}

pub(super) fn tile(value: &str, what: &str) -> String {
    format!("<div class=\"tile\"><strong>{}</strong><span>{}</span></div>\n", escape(value), escape(what))
}

pub(super) fn tiles(all: &[String]) -> String {
    if all.is_empty() {
        return String::new();
    }
    // five side by side rather than four and one that fills a row
    let across = match all.len() {
        5 => 5,
        n if n.is_multiple_of(3) => 3,
        _ => 4,
    };
    format!("<div class=\"tiles n{across}\">\n{}</div>\n", all.concat())
}

pub(super) fn warnings(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    format!("<section class=\"warnings\" aria-label=\"Notes\"><h2>To know</h2>{}</section>\n", list(notes))
}

pub(super) fn facts(rows: &[(&str, String)]) -> String {
    let each: String = rows
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect();
    format!("<dl class=\"facts\">{each}</dl>\n")
}

fn meta(a: &NetAudit) -> String {
    let accuracy = a.accuracy.map(|v| format!(" · {} right", format::share(v))).unwrap_or_default();
    format!(
        "{} of {} · {}, {} trained · mean loss {}{accuracy}",
        format::count(a.measured),
        format::counted(a.data.records, "record"),
        format::counted(a.network.parameters, "parameter"),
        format::count(a.network.trained),
        format::number(a.loss)
    )
}

fn head_tiles(a: &NetAudit) -> String {
    let mut all = Vec::new();
    let mut add = |s: &Option<Summary>, what: &str| {
        if let Some(s) = s {
            all.push(tile(
                &format::number(s.p50),
                &format!("median {what}; largest {}", format::number(s.max)),
            ));
        }
    };
    add(&a.dfil, "dFIL of a record");
    add(&a.eta, "η of a record");
    add(&a.jacobian_sensitivity, "JacSens of a record");
    add(&a.plis, "norm of PLIS");
    let r = &a.release;
    let clip = r.clip.map_or("nothing is clipped".to_owned(), |c| {
        format!("{} clip at {}", clip_name(&r.clip_kind), format::setting(c))
    });
    all.push(tile(&format::setting(r.sigma), &format!("σ, noise; {clip}")));
    tiles(&all)
}

fn who(a: &NetAudit) -> String {
    let how = match a.trace {
        TraceKind::Skip => String::new(),
        TraceKind::Exact => " dFIL is exact: all basis tangents.".to_owned(),
        TraceKind::Estimate { probes } => {
            format!(
                " dFIL is estimated by {probes} random probes a record; standard errors are in the table."
            )
        }
    };
    let lead = format!(
        "What one noisy sum of clipped gradients, at the model’s parameters and without sampling, tells about each \
         record. dFIL is the mean information per value, η that of the worst direction.{how}"
    );
    let chart = |h: &Option<super::Histogram>, axis: &str| {
        h.as_ref().map(|h| format!("<div>{}</div>", histogram(h, axis, None))).unwrap_or_default()
    };
    let charts = format!(
        "{}{}",
        chart(&a.dfil_histogram, "dFIL of a record"),
        chart(&a.eta_histogram, "η of a record")
    );
    let rows: Vec<Vec<Cell>> = [
        ("gradient norm", Some(&a.gradient_norm)),
        ("dFIL", a.dfil.as_ref()),
        ("η", a.eta.as_ref()),
        ("JacSens", a.jacobian_sensitivity.as_ref()),
        ("norm of PLIS", a.plis.as_ref()),
        ("norm of PLIS, other model", a.compared.as_ref().map(|c| &c.plis)),
    ]
    .into_iter()
    .filter_map(|(name, s)| s.map(|s| (name, s)))
    .map(|(name, s)| {
        let values = [s.min, s.p50, s.mean, s.p90, s.p99, s.max];
        std::iter::once(Cell::name(name)).chain(values.map(Cell::number)).collect()
    })
    .collect();
    let heads = [
        words("measure"),
        numbers("smallest"),
        numbers("median"),
        numbers("mean"),
        numbers("90%"),
        numbers("99%"),
        numbers("largest"),
    ];
    let body = format!("<div class=\"two\">{charts}</div>{}", table("", "Measures", &heads, &rows));
    card("who", "Who is exposed", &[Kind::Measured], &lead, &body)
}

/// A record as a figure: its picture where there is one, and its numbers.
fn figure(r: &Record, shown: Option<&Shown>) -> String {
    let picture = shown.and_then(|s| s.input.as_ref()).map(|p| p.html(&r.described())).unwrap_or_default();
    let wrong = if r.right == Some(false) { " <span class=\"flag\">wrong</span>" } else { "" };
    let label = r.label.as_ref().map(|l| format!(" · {}", escape(l))).unwrap_or_default();
    let mut numbers = Vec::new();
    if let Some(d) = r.dfil {
        let error = d.standard_error.map(|e| format!(" ± {}", format::number(e))).unwrap_or_default();
        numbers.push(format!("dFIL {}{error}", format::number(d.value)));
    }
    if let Some(e) = r.eta {
        numbers.push(format!("η {}", format::number(e)));
    }
    numbers.push(format!("norm {}", format::number(r.gradient_norm)));
    format!(
        "<figure>{picture}<figcaption><b>{}</b>{label}{wrong}<br>{}</figcaption></figure>\n",
        r.record,
        numbers.join("<br>")
    )
}

pub(super) fn gallery(heading: &str, records: &[Record], pictures: &BTreeMap<u64, Shown>) -> String {
    if records.is_empty() {
        return String::new();
    }
    let each: String = records.iter().map(|r| figure(r, pictures.get(&r.record))).collect();
    format!("<h3>{heading}</h3><div class=\"gallery\">{each}</div>")
}

fn extremes(a: &NetAudit, pictures: &Pictures) -> String {
    let body: String = [
        ("Most dFIL", &a.most_dfil),
        ("Least dFIL", &a.least_dfil),
        ("Most η", &a.most_eta),
        ("Least η", &a.least_eta),
    ]
    .into_iter()
    .map(|(heading, records)| gallery(heading, records, &pictures.records))
    .collect();
    if body.is_empty() {
        return String::new();
    }
    let lead = "Records by number and, where there is one, label, with the norm of their gradient before clipping. What is rare or hard to tell moves the \
                gradient most.";
    card("extremes", "The most and the least exposed records", &[Kind::Measured], lead, &body)
}

/// A record beside its map, and its map under the other model; nothing where there is no map.
fn map(r: &Record, pictures: &Pictures, other: Option<&str>) -> String {
    let Some(s) = pictures.records.get(&r.record).filter(|s| s.plis.is_some()) else { return String::new() };
    let cell = |p: &Option<super::Picture>, what: &str, norm: Option<f64>| {
        p.as_ref().map_or(String::new(), |p| {
            let norm = norm.map(|v| format!("<br>norm {}", format::number(v))).unwrap_or_default();
            format!("<figure>{}<figcaption>{}{norm}</figcaption></figure>", p.html(what), escape(what))
        })
    };
    format!(
        "<div class=\"triple\">{}{}{}</div>\n",
        cell(&s.input, &r.described(), None),
        cell(&s.plis, if other.is_some() { "PLIS, this model" } else { "PLIS" }, r.plis),
        cell(&s.compared_plis, &other.map_or(String::new(), |name| format!("PLIS, {name}")), r.compared_plis)
    )
}

/// Maps shown of either end.
const MAPS: usize = 6;

fn maps(a: &NetAudit, pictures: &Pictures) -> String {
    let mut rows = String::new();
    let other = a.compared.as_ref();
    for (heading, records) in [("Most PLIS", &a.most_plis), ("Least PLIS", &a.least_plis)] {
        let each: String =
            records.iter().take(MAPS).map(|r| map(r, pictures, other.map(|c| c.name.as_str()))).collect();
        if !each.is_empty() {
            rows.push_str(&format!("<h3>{heading}</h3><div class=\"maps\">{each}</div>"));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let versus = other.map_or(String::new(), |c| {
        let how = match (c.private, c.epsilon) {
            (Some(true), Some(e)) => format!("trained with ε = {}", format::at_most(e)),
            (Some(true), None) => "trained with noise".to_owned(),
            (Some(false), _) => "trained in the open".to_owned(),
            (None, _) => "whose training is not known".to_owned(),
        };
        let right = c.accuracy.map(|v| format!(", {} right", format::share(v))).unwrap_or_default();
        format!(" Beside it the same under {} ({how}{right}).", escape(&c.name))
    });
    let lead = format!(
        "PLIS (Mueller eq. 6–7): how the squared norm of a record’s gradient, before clipping, over that of the noise \
         moves with each pixel. Dark is most; each map has its own scale, the norm tells maps apart.{versus}"
    );
    card("plis", "Where in the record", &[Kind::Measured], &lead, &rows)
}

fn rests_on(a: &NetAudit) -> String {
    let mut assumed = vec![
        format!(
            "The release is one step: the sum of clipped gradients at the model’s parameters plus Gaussian noise of \
             standard deviation {} in every trained parameter; the record took part in it.",
            format::setting(a.release.noise)
        ),
        match a.label_secret {
            true => "The label counts as part of a record’s secret.".to_owned(),
            false => "The label is taken to be known: it is not part of a record’s secret.".to_owned(),
        },
        format!("Values are in the units the network sees: {}.", normalised(a.data.normalize)),
    ];
    if a.training.as_ref().is_some_and(|t| t.accounts.is_some()) {
        assumed
            .push("Over the run, information adds up step by step, exactly under its sampling.".to_owned());
    }
    let mut body = list(&assumed);
    if let Some(bound) = &a.min_mse {
        body.push_str(&format!(
            "<h3>{} <span class=\"kind proved\">bound</span></h3>{}",
            escape(bound.theorem.source()),
            list(bound.theorem.assumptions())
        ));
    }
    body.push_str(&facts(&[("seed", a.seed.to_string()), ("schema", a.schema.clone())]));
    card("assumptions", "What this rests on", &[], "", &body)
}
