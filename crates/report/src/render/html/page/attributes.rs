//! Which attributes leak and what that means in their own units; the record as a whole; all records together.

use super::meaning::{label_meaning, meaning};
use crate::document::audit::{Attribute, Audit, Label};
use crate::document::choice::{Scale, ScalingMode};
use crate::figure::Claim;
use crate::format;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, SHOWN, numbers, rest_of_attributes, table, words as text_column};
use crate::verdict::{exposures, facts_of_audit as facts, is_open, label_distance};
use crate::words;
use leakscope_core::special::normal_cdf;

pub(super) fn attributes(audit: &Audit) -> Html {
    if audit.attributes.is_empty() && audit.label.is_none() {
        return Html::new();
    }
    let label = audit.label.as_ref().map(|l| (l, words::label_eta(l)));
    let largest = audit.attributes.iter().map(|a| a.eta_max).chain(label.map(|(_, (_, max))| max));
    let longest = largest.filter(|e| e.is_finite()).fold(0.0, f64::max);
    let exposures = exposures(audit);
    // How often its values are told apart, and what Φ is taken of for that.
    let told = |a: &Attribute| {
        let estimated =
            || exposures.iter().find(|e| std::ptr::eq(e.attribute, a)).map(|e| (e.told, 0.5 * e.distance));
        tried(audit, &a.name, false).or_else(estimated)
    };
    let open = |a: &Attribute| told(a).is_some_and(|t| is_open(t.0));
    // Most exposed first, as the document has them.
    let (shown, others) = audit.attributes.split_at(audit.attributes.len().min(SHOWN));
    let mut rows: Vec<Vec<Cell>> = shown.iter().map(|a| row(a, longest, told(a), apart(audit, a))).collect();
    if let Some((label, (mean, max))) = label {
        let place = shown.iter().take_while(|a| a.eta_max >= max).count();
        let estimated = || facts(audit).label_worst().zip(label_distance(audit).map(|d| 0.5 * d));
        let told = tried(audit, &label.name, true).or_else(estimated);
        rows.insert(place, label_row(label, (mean, max), longest, told));
    }
    let heads = [
        text_column("attribute"),
        numbers("mean η"),
        numbers("largest η"),
        text_column(""),
        numbers("all records"),
        text_column("what it means"),
    ];
    let lines = others.iter().map(|a| {
        let tried = audit.tell.as_ref().map(|t| t.of_attribute(&a.name).map(|told| (told, t.protect_at)));
        let apart = match tried {
            Some(Some((told, protect_at))) => format!("  {}", words::told_apart(told, protect_at)),
            Some(None) => "  not tried".to_owned(),
            None => String::new(),
        };
        let flag = if open(a) { "  not protected" } else { "" };
        let [mean, max] = [a.eta_mean, a.eta_max].map(format::number);
        format!("{}  {mean}  {max}{apart}{flag}", a.name)
    });
    let lead = match audit.label {
        Some(_) => {
            "Bars: dark is the mean over records, light the most exposed record. A one-hot attribute counts as one; the label \
             is an attribute like others, in its standard deviations or from one class to the other."
        }
        None => {
            "Bars: dark is the mean over records, light the most exposed record. A one-hot attribute counts as one."
        }
    };
    let body = table("sortable filterable stack attributes", "Attributes", &heads, &rows)
        .and(rest_of_attributes(match audit.tell {
            Some(_) => "Less exposed than those above, most first: mean η, largest η, how often two values are told apart.",
            None => "Less exposed than those above, most first: mean η, largest η.",
        }, lines));
    card("attributes", "Which attributes leak", &[Claim::Measured, Claim::Bound], lead, body)
}

/// How often two values of an attribute, or of the label, are told apart where they were tried, and what Φ is taken of for that.
fn tried(audit: &Audit, name: &str, label: bool) -> Option<(f64, f64)> {
    let tell = audit.tell.as_ref()?;
    let told = tell.attributes.iter().find(|t| t.label == label && t.attribute == name)?;
    let distance = told.distance.filter(|_| told.shows.is_none());
    // What is only not excluded is no reason for a flag.
    match told.at_least.filter(|_| told.worst > tell.protect_at) {
        Some(least) => Some((normal_cdf(0.5 * least), 0.5 * least)),
        None => Some((told.worst, distance.map_or(f64::INFINITY, |d| 0.5 * d))),
    }
}

/// How often two values are told apart, where the table of those has no room for all.
fn apart(audit: &Audit, a: &Attribute) -> Option<Html> {
    let tell = audit.tell.as_ref().filter(|t| t.attributes.len().max(t.left_out.len()) > SHOWN)?;
    Some(match tell.of_attribute(&a.name) {
        Some(told) => {
            fill("Two values are told apart in {} of cases.", &[&follow::told_apart(told, tell.protect_at)])
        }
        None => Html::literal("Whether two values are told apart was not tried."),
    })
}

fn row(a: &Attribute, longest: f64, told: Option<(f64, f64)>, apart: Option<Html>) -> Vec<Cell> {
    let columns = match a.columns.len() {
        0 | 1 => a.kind.name().to_owned(),
        k => format!("{}, {k} columns", a.kind.name()),
    };
    let over_all = Cell::maybe_eta(a.eta_over_all_records);
    let name = Cell::remarked_name(&a.name, &columns);
    let sentences: Vec<Html> = meaning(a).into_iter().chain(apart).collect();
    cells(name, (a.eta_mean, a.eta_max), over_all, longest, (told, &sentences))
}

fn label_row(label: &Label, eta: (f64, f64), longest: f64, told: Option<(f64, f64)>) -> Vec<Cell> {
    let name = Cell::remarked_name(&label.name, "the label");
    cells(name, eta, Cell::text("–"), longest, (told, &[label_meaning(label)]))
}

fn cells(
    name: Cell,
    (mean, max): (f64, f64),
    over_all: Cell,
    longest: f64,
    (told, meaning): (Option<(f64, f64)>, &[Html]),
) -> Vec<Cell> {
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let flag = told.map(|(p, depth)| follow::flag(is_open(p), depth)).unwrap_or_default();
    let sentences: Html = meaning
        .iter()
        .enumerate()
        .map(|(i, s)| fill("<p>{}{}</p>", &[if i == 0 { &flag } else { &"" }, s]))
        .collect();
    vec![
        name,
        Cell::eta(mean),
        Cell::eta(max),
        Cell::bar(part(mean), part(max)),
        over_all,
        Cell::html(fill("<div class=\"means\">{}</div>", &[&sentences])),
    ]
}

pub(super) fn whole(audit: &Audit) -> Html {
    let (r, dfil) = (&audit.records, &audit.records.dfil);
    let unit = match audit.data.scale {
        Scale::Standard if audit.data.pca.is_none() => {
            " Numbers are scaled to a spread of one: for those, 1 is what the population alone gives."
        }
        Scale::Standard | Scale::UnitBall | Scale::Bounds | Scale::None => {
            " In units of the encoded columns."
        }
    };
    let target =
        if audit.label_secret { " The target counts as one more value, in its own units." } else { "" };
    let row =
        |name: &str, value: Html, means: &str| vec![Cell::name(name), Cell::html(value), Cell::say(means)];
    let times = match r.eta.max > 0.0 {
        true => format!(", ×{} the most exposed record", format::number(audit.dataset.eta / r.eta.max)),
        false => String::new(),
    };
    let least = |b: &leakscope_core::claim::Bound| match b.value.is_finite() {
        true => fill("≥ {}", &[&follow::squared_error(b.value)]),
        false => Html::text(&format::bound(b)),
    };
    let mut rows = vec![
        row(
            "η of the whole data set",
            follow::eta(audit.dataset.eta),
            &match &audit.scaling {
                Some(s) if s.mode == ScalingMode::Counted => {
                    format!(
                        "All records taken as one secret{times}. The scaling of columns is not counted in it."
                    )
                }
                Some(_) | None => format!(
                    "All records taken as one secret{times}. No record, group or attribute has a larger one."
                ),
            },
        ),
        vec![
            Cell::name("dFIL of a record"),
            Cell::html(fill("{} to {}", &[&follow::square(dfil.min), &follow::square(dfil.max)])),
            Cell::html(fill(
                "<span class=\"say\">Mean information per column; median {}.</span>",
                &[&follow::square(dfil.p50)],
            )),
        ],
        row(
            "a whole record, unbiased",
            least(&r.min_mse),
            &format!(
                "Mean squared error per encoded column of any unbiased estimate of the most exposed record.{unit}{target}"
            ),
        ),
        row(
            "a whole record, with a prior",
            fill("about {}", &[&follow::as_audited(&format::number(r.min_mse_with_prior.value))]),
            &format!(
                "What any estimate gets to, biased or not, by someone who knows the population, on average over records: an \
                 estimate, no bound.{unit}{target}"
            ),
        ),
    ];
    if let Some(effect) = &audit.scaling {
        let added = format!("×{}", format::number(effect.eta_max_counted / effect.eta_max_given));
        let value = if effect.eta_max_given > 0.0 { added } else { String::new() };
        let [before, between, after] = words::scaling(effect);
        let [counted, plain] = [effect.eta_max_counted, effect.eta_max_given].map(follow::eta);
        let means = Cell::html(fill(
            "<span class=\"say\">{}{}{}{}{}</span>",
            &[&before, &counted, &between, &plain, &after],
        ));
        rows.push(vec![Cell::name("scaling of columns"), Cell::text(&value), means]);
    }
    let heads = [text_column("quantity"), numbers("value"), text_column("what it means")];
    let body = table("stack plain", "The record and the data set as a whole", &heads, &rows);
    card("whole", "As a whole", &[Claim::Measured, Claim::Bound], "", body)
}
