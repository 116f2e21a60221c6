//! The page of an audit of a network.

use super::attributes::attributes;
use super::elements::elements;
use super::score::score;
use super::training::{normalised, over_training, settings};
use crate::document::net::{Histogram, NetAudit, Record, TraceKind};
use crate::figure::Claim;
use crate::figure::picture::{Picture, Pictures, Shown};
use crate::format;
use crate::redact::redacted;
use crate::render::html::chart::of_network;
use crate::render::html::markup::{Html, fill};
use crate::render::html::page::theorem;
use crate::render::html::parts::{
    card, facts, header, judged, list, notes, shell, tile, tiles, warnings, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::render::networks;
use crate::verdict::{accounts, of_net_audit};
use crate::words;
use leakscope_core::num::Summary;
use std::collections::BTreeMap;

/// The audit as one self-contained HTML page. It makes no request of any kind and needs no script to be read.
///
/// `pictures` are the records themselves: leave them empty for a page without raw values.
pub fn page(audit: &NetAudit, pictures: &Pictures) -> String {
    match audit.redact {
        true => draw(&redacted(audit), &Pictures::default()),
        false => draw(audit, pictures),
    }
}

fn draw(audit: &NetAudit, pictures: &Pictures) -> String {
    let title = format!("{} on {}", audit.network.name, audit.data.files.join(", "));
    let mut own = vec![];
    if !pictures.records.is_empty() {
        own.push("This page shows training records as pictures: it is as private as they are.".to_owned());
    }
    let training = audit.training.as_ref();
    let body = header("Leakscope audit of a network", &title, &meta(audit))
        .and(whose(audit.redact))
        .and(judged(&of_net_audit(audit)))
        .and(head_tiles(audit))
        .and(warnings(&audit.warnings))
        .and(notes(&own))
        .and(who(audit))
        .and(attributes(audit))
        .and(elements(audit))
        .and(extremes(audit, pictures))
        .and(maps(audit, pictures))
        .and(training.map(|t| over_training(t)).unwrap_or_default())
        .and(audit.score.as_ref().map(|s| score(s, pictures)).unwrap_or_default())
        .and(Html::literal("<h2 class=\"part\">Appendix</h2>\n"))
        .and(rests_on(audit))
        .and(training.map(|t| settings(t)).unwrap_or_default());
    shell(&format!("Leakscope audit: {title}"), &body)
}

/// A record in words.
pub(crate) fn described(r: &Record) -> String {
    let label = r.label.as_ref().map(|l| format!(", label {l}")).unwrap_or_default();
    format!("record {}{label}", networks::name(r))
}

/// A picture with a description.
pub(super) fn picture(p: &Picture, described: &str) -> Html {
    let [width, height] = p.size();
    fill(
        "<img alt=\"{}\" width=\"{}\" height=\"{}\" src=\"{}\">",
        &[&described, &width, &height, &p.data_uri()],
    )
}

fn meta(a: &NetAudit) -> String {
    let accuracy = a.accuracy.map(|v| format!(" · {} right", format::share(v))).unwrap_or_default();
    let on = a.network.device.as_ref().map(|d| format!(" · computed on {d}")).unwrap_or_default();
    format!(
        "{} of {} · {}, {} trained · mean loss {}{accuracy}{on}",
        format::count(a.measured),
        format::counted(a.data.records, "record"),
        format::counted(a.network.parameters, "parameter"),
        format::count(a.network.trained),
        format::number(a.loss)
    )
}

fn head_tiles(a: &NetAudit) -> Html {
    let mut all = Vec::new();
    let mut add = |s: &Option<Summary>, quantity: &str, largest: &dyn Fn(&Summary) -> String| {
        if let Some(s) = s {
            all.push(tile(&format::number(s.p50), &format!("median {quantity}; largest {}", largest(s))));
        }
    };
    let exact = |s: &Summary| format::number(s.max);
    add(&a.dfil, "dFIL of a record", &|d| networks::largest_dfil(a, d));
    add(&a.eta, "η of a record", &exact);
    add(&a.jacobian_sensitivity, "JacSens of a record", &exact);
    add(&a.plis, "norm of PLIS", &exact);
    let r = &a.release;
    let clip = r.clip.map_or("nothing is clipped".to_owned(), |c| {
        format!("{} clip at {}", words::clip(r.clip_kind), format::setting(c))
    });
    all.push(tile(&format::setting(r.sigma), &format!("σ, noise; {clip}")));
    tiles(all)
}

/// The name of dFIL among the measures.
const DFIL: &str = "dFIL";

fn who(a: &NetAudit) -> Html {
    let how = match a.trace {
        TraceKind::Skip => String::new(),
        TraceKind::Exact => " dFIL is exact: all basis tangents.".to_owned(),
        TraceKind::Estimate { probes } => {
            format!(
                " dFIL is estimated by {probes} random probes a record; what is the largest of many estimates is so by \
                 chance too, so extremes are intervals (95% over all measured records, by Student’s t). Intervals of \
                 each record on its own are in the table."
            )
        }
    };
    let beside = match accounts(a) {
        Some(_) => {
            " It is told of a record that took part in the step for certain; the run drew each with some probability, so that \
             all its steps together can tell less of a record than this one."
        }
        None => "",
    };
    let lead = format!(
        "What one noisy sum of clipped gradients, at the model’s parameters and without sampling, tells about each \
         record. dFIL is the mean information per value, η that of the worst direction.{how}{beside}"
    );
    let chart = |h: &Option<Histogram>, axis: &str| {
        h.as_ref().map(|h| fill("<div>{}</div>", &[&of_network(h, axis, None)])).unwrap_or_default()
    };
    let charts = chart(&a.dfil_histogram, "dFIL of a record").and(chart(&a.eta_histogram, "η of a record"));
    let rows: Vec<Vec<Cell>> = [
        ("gradient norm", Some(&a.gradient_norm)),
        (DFIL, a.dfil.as_ref()),
        ("η", a.eta.as_ref()),
        ("JacSens", a.jacobian_sensitivity.as_ref()),
        ("norm of PLIS", a.plis.as_ref()),
        ("norm of PLIS, other model", a.compared.as_ref().map(|c| &c.plis)),
    ]
    .into_iter()
    .filter_map(|(name, s)| s.map(|s| (name, s)))
    .map(|(name, s)| {
        let mut cells = vec![Cell::name(name)];
        cells.extend([s.min, s.p50, s.mean, s.p90, s.p99, s.max].map(Cell::number));
        if let Some(e) = a.dfil_extremes.as_ref().filter(|_| name == DFIL) {
            (cells[1], cells[6]) =
                (Cell::text(&networks::interval(&e.smallest)), Cell::text(&networks::interval(&e.largest)));
        }
        cells
    })
    .collect();
    let heads = [
        text_column("measure"),
        numbers("smallest"),
        numbers("median"),
        numbers("mean"),
        numbers("90%"),
        numbers("99%"),
        numbers("largest"),
    ];
    let body = fill("<div class=\"two\">{}</div>{}", &[&charts, &table("", "Measures", &heads, &rows)]);
    let body = body.and(fill("<p class=\"lead\">{}</p>", &[&most_exposed(a)]));
    card("who", "Who is exposed", &[Claim::Measured], lead, body)
}

/// The most exposed record, and the direction that is told best, in words.
fn most_exposed(a: &NetAudit) -> String {
    let mut text = String::new();
    if let (Some(d), Some(most)) = (&a.dfil, a.most_dfil.first()) {
        let times = match d.p50 > 0.0 && a.dfil_extremes.is_none() {
            true => format!(", {} times the median", format::number(d.max / d.p50)),
            false => String::new(),
        };
        text = match networks::candidates(a) {
            Some(several) => format!("{several}. "),
            None => format!(
                "The most exposed record of one step is {}: a dFIL of {}{times}. ",
                most.id.clone().unwrap_or_else(|| format!("number {}", most.record)),
                networks::largest_dfil(a, d)
            ),
        };
    }
    // where the run was added up, the verdict speaks of the run
    if let Some(bound) = a.min_mse.as_ref().filter(|_| accounts(a).is_some()) {
        text.push_str(&format!(
            "No unbiased reconstruction of a record that took part in one step has a mean squared error per value below {}. ",
            format::bound(bound)
        ));
    }
    if let Some(typical) = &a.typical_error {
        text.push_str(&networks::any_estimate(typical, a.spread));
        text.push(' ');
    }
    if let Some(eta) = a.eta.as_ref().map(|e| e.max).filter(|e| *e > 0.0) {
        text.push_str(&format!(
            "Along the direction that one step tells best, an unbiased estimate has a standard deviation of about {} or \
             more; values deviate from their mean by {}.",
            format::number(1.0 / eta),
            format::number(a.spread.max(0.0).sqrt())
        ));
    }
    text
}

/// A record as a figure: its picture where there is one, and its numbers.
fn figure(r: &Record, shown: Option<&Shown>) -> Html {
    let drawn = shown.and_then(|s| s.input.as_ref()).map(|p| picture(p, &described(r))).unwrap_or_default();
    let wrong = match r.right {
        Some(false) => Html::literal(" <span class=\"flag\">wrong</span>"),
        Some(true) | None => Html::new(),
    };
    let label = r.label.as_ref().map(|l| format!(" · {l}")).unwrap_or_default();
    let mut numbers = Html::new();
    if let Some(d) = r.dfil {
        let value = match &r.dfil_interval {
            Some(i) => networks::interval(i),
            None => format::number(d.value),
        };
        numbers.push(fill("dFIL {}<br>", &[&value]));
    }
    if let Some(e) = r.eta {
        numbers.push(fill("η {}<br>", &[&format::number(e)]));
    }
    numbers.push(fill("norm {}", &[&format::number(r.gradient_norm)]));
    if let Some((attribute, eta)) = &r.most_exposed_attribute {
        numbers.push(fill("<br>most exposed: {} (η {})", &[attribute, &format::number(*eta)]));
    }
    fill(
        "<figure>{}<figcaption><b>{}</b>{}{}<br>{}</figcaption></figure>\n",
        &[&drawn, &networks::name(r), &label, &wrong, &numbers],
    )
}

pub(super) fn gallery(heading: &str, records: &[Record], pictures: &BTreeMap<u64, Shown>) -> Html {
    if records.is_empty() {
        return Html::new();
    }
    let each: Html = records.iter().map(|r| figure(r, pictures.get(&r.record))).collect();
    fill("<h3>{}</h3><div class=\"gallery\">{}</div>", &[&heading, &each])
}

fn extremes(a: &NetAudit, pictures: &Pictures) -> Html {
    let (most, least) = match a.trace {
        TraceKind::Estimate { .. } => ("Largest estimates of dFIL", "Smallest estimates of dFIL"),
        TraceKind::Exact | TraceKind::Skip => ("Most dFIL", "Least dFIL"),
    };
    let body: Html =
        [(most, &a.most_dfil), (least, &a.least_dfil), ("Most η", &a.most_eta), ("Least η", &a.least_eta)]
            .into_iter()
            .map(|(heading, records)| gallery(heading, records, &pictures.records))
            .collect();
    if body.is_empty() {
        return body;
    }
    let chosen = match a.dfil_extremes {
        Some(_) => {
            " An interval of dFIL holds for all measured records at once (95%); where those of two records overlap, their \
             order may be chance."
        }
        None => "",
    };
    let lead = format!(
        "Records by number and, where there is one, label, with the norm of their gradient before clipping. What is rare \
         or hard to tell moves the gradient most.{chosen}"
    );
    card("extremes", "The most and the least exposed records", &[Claim::Measured], lead, body)
}

/// A record beside its map, and its map under the other model; nothing where there is no map.
pub(super) fn map(r: &Record, pictures: &BTreeMap<u64, Shown>, other: Option<&str>) -> Html {
    let Some(s) = pictures.get(&r.record).filter(|s| s.plis.is_some()) else { return Html::new() };
    let cell = |p: &Option<Picture>, name: &str, norm: Option<f64>| {
        let Some(p) = p else { return Html::new() };
        let norm = norm.map(|v| fill("<br>norm {}", &[&format::number(v)])).unwrap_or_default();
        let drawn = picture(p, name);
        fill("<figure>{}<figcaption>{}{}</figcaption></figure>", &[&drawn, &name, &norm])
    };
    let compared = other.map_or(String::new(), |name| format!("PLIS, {name}"));
    fill(
        "<div class=\"triple\">{}{}{}</div>\n",
        &[
            &cell(&s.input, &described(r), None),
            &cell(&s.plis, if other.is_some() { "PLIS, this model" } else { "PLIS" }, r.plis),
            &cell(&s.compared_plis, &compared, r.compared_plis),
        ],
    )
}

/// Maps shown of either end.
pub(super) const MAPS: usize = 6;

fn maps(a: &NetAudit, pictures: &Pictures) -> Html {
    let mut rows = Html::new();
    let other = a.compared.as_ref();
    for (heading, records) in [("Most PLIS", &a.most_plis), ("Least PLIS", &a.least_plis)] {
        let each: Html = records
            .iter()
            .take(MAPS)
            .map(|r| map(r, &pictures.records, other.map(|c| c.name.as_str())))
            .collect();
        if !each.is_empty() {
            rows.push(fill("<h3>{}</h3><div class=\"maps\">{}</div>", &[&heading, &each]));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let versus = other.map_or(String::new(), |c| {
        let how = match (c.private, c.epsilon) {
            (Some(true), Some(e)) => format!("trained with ε = {}", format::at_most(e)),
            (Some(true), None) => "trained with noise".to_owned(),
            (Some(false), _) => "trained without noise".to_owned(),
            (None, _) => "whose training is not known".to_owned(),
        };
        let right = c.accuracy.map(|v| format!(", {} right", format::share(v))).unwrap_or_default();
        format!(" Beside it the same under {} ({how}{right}), clipped as in its own training.", c.name)
    });
    let lead = format!(
        "PLIS (Mueller eq. 6–7): how the squared norm of a record’s gradient, {}, over that of the noise moves with each \
         pixel. Dark is most; each map has its own scale, the norm tells maps apart.{versus}",
        networks::plis_of(a.plis_of)
    );
    card("plis", "Where in the record", &[Claim::Measured], lead, rows)
}

fn rests_on(a: &NetAudit) -> Html {
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
        match &a.data.target {
            Some(_) => {
                "Values are those of the encoded columns; attributes are also said in their own units."
                    .to_owned()
            }
            None => format!("Values are in the units the network sees: {}.", normalised(a.data.normalize)),
        },
    ];
    if a.training.as_ref().is_some_and(|t| t.accounts.is_some()) {
        assumed.push(
            "Over the run, information adds up step by step under its sampling: exact for an attacker who knows which other \
             records each step drew, otherwise an upper bound."
                .to_owned(),
        );
    }
    let mut body = list(&assumed);
    body.push(a.min_mse.as_ref().map(|bound| theorem(bound.theorem)).unwrap_or_default());
    body.push(facts(&[("seed", a.seed.to_string()), ("schema", a.schema.clone())]));
    card("assumptions", "What this rests on", &[], "", body)
}
