//! Which attributes leak and what that means in their own units; the record as a whole; all records together.

use crate::document::audit::{Attribute, Audit, Label};
use crate::document::choice::{Scaling, ScalingMode};
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::verdict::{exposures, facts_of_audit as facts, is_open};
use crate::words;

pub(super) fn attributes(audit: &Audit) -> Html {
    if audit.attributes.is_empty() && audit.label.is_none() {
        return Html::new();
    }
    let label = audit.label.as_ref().map(|l| (l, words::label_eta(l)));
    let largest = audit.attributes.iter().map(|a| a.eta_max).chain(label.map(|(_, (_, max))| max));
    let longest = largest.filter(|e| e.is_finite()).fold(0.0, f64::max);
    let exposures = exposures(audit);
    let open = |a: &Attribute| {
        let estimated = || exposures.iter().find(|e| std::ptr::eq(e.attribute, a)).map(|e| e.told);
        tried(audit, a).or_else(estimated).is_some_and(is_open)
    };
    // Most exposed first, as the document has them.
    let (shown, others) = audit.attributes.split_at(audit.attributes.len().min(SHOWN));
    let mut rows: Vec<Vec<Cell>> = shown.iter().map(|a| row(a, longest, open(a))).collect();
    if let Some((label, (mean, max))) = label {
        let place = shown.iter().take_while(|a| a.eta_max >= max).count();
        let open = facts(audit).label_worst().is_some_and(is_open);
        rows.insert(place, label_row(label, (mean, max), longest, open));
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
        let flag = if open(a) { "  not protected" } else { "" };
        format!(
            "{}  mean η {}  largest {}{flag}",
            a.name,
            format::number(a.eta_mean),
            format::number(a.eta_max)
        )
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
        .and(rest("attributes", lines));
    card("attributes", "Which attributes leak", &[Claim::Measured, Claim::Bound], lead, body)
}

/// How often two values of an attribute are told apart, where they were tried.
fn tried(audit: &Audit, a: &Attribute) -> Option<f64> {
    let tell = audit.tell.as_ref()?;
    let told = tell.attributes.iter().find(|t| !t.label && t.attribute == a.name)?;
    Some(told.told_at_least().filter(|_| told.worst > tell.protect_at).unwrap_or(told.worst))
}

fn row(a: &Attribute, longest: f64, open: bool) -> Vec<Cell> {
    let columns = match a.columns.len() {
        0 | 1 => a.kind.name().to_owned(),
        k => format!("{}, {k} columns", a.kind.name()),
    };
    let over_all = Cell::maybe(a.eta_over_all_records);
    let name = Cell::remarked_name(&a.name, &columns);
    cells(name, (a.eta_mean, a.eta_max), over_all, longest, (open, &words::meaning(a)))
}

fn label_row(label: &Label, eta: (f64, f64), longest: f64, open: bool) -> Vec<Cell> {
    let name = Cell::remarked_name(&label.name, "the label");
    cells(name, eta, Cell::text("–"), longest, (open, &[words::label_meaning(label)]))
}

fn cells(
    name: Cell,
    (mean, max): (f64, f64),
    over_all: Cell,
    longest: f64,
    (open, meaning): (bool, &[String]),
) -> Vec<Cell> {
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let flag = match open {
        true => Html::literal("<span class=\"flag\">not protected</span> "),
        false => Html::new(),
    };
    let sentences: Html = meaning
        .iter()
        .enumerate()
        .map(|(i, s)| fill("<p>{}{}</p>", &[if i == 0 { &flag } else { &"" }, s]))
        .collect();
    vec![
        name,
        Cell::number(mean),
        Cell::number(max),
        Cell::bar(part(mean), part(max)),
        over_all,
        Cell::html(fill("<div class=\"means\">{}</div>", &[&sentences])),
    ]
}

pub(super) fn whole(audit: &Audit) -> Html {
    let (r, dfil) = (&audit.records, &audit.records.dfil);
    let unit = match audit.data.scale {
        Scaling::Standard if audit.data.pca.is_none() => {
            " Numbers are scaled to a spread of one: for those, 1 is what the population alone gives."
        }
        Scaling::Standard | Scaling::UnitBall | Scaling::Bounds | Scaling::None => {
            " In units of the encoded columns."
        }
    };
    let target =
        if audit.label_secret { " The target counts as one more value, in its own units." } else { "" };
    let row =
        |name: &str, value: &str, means: &str| vec![Cell::name(name), Cell::text(value), Cell::say(means)];
    let times = match r.eta.max > 0.0 {
        true => format!(", ×{} the most exposed record", format::number(audit.dataset.eta / r.eta.max)),
        false => String::new(),
    };
    let least = |b: &leakscope_core::claim::Bound| match b.value.is_finite() {
        true => format!("≥ {}", format::bound(b)),
        false => format::bound(b),
    };
    let mut rows = vec![
        row(
            "η of the whole data set",
            &format::number(audit.dataset.eta),
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
        row(
            "dFIL of a record",
            &format!("{} to {}", format::number(dfil.min), format::number(dfil.max)),
            &format!("Mean information per column; median {}.", format::number(dfil.p50)),
        ),
        row(
            "a whole record, unbiased",
            &least(&r.min_mse),
            &format!(
                "Mean squared error per encoded column of any unbiased estimate of the most exposed record.{unit}{target}"
            ),
        ),
        row(
            "a whole record, with a prior",
            &format!("about {}", format::number(r.min_mse_with_prior.value)),
            &format!(
                "What any estimate gets to, biased or not, by someone who knows the population, on average over records: an \
                 estimate, no bound.{unit}{target}"
            ),
        ),
    ];
    if let Some(effect) = &audit.scaling {
        let added = format!("×{}", format::number(effect.eta_max_counted / effect.eta_max_given));
        let value = if effect.eta_max_given > 0.0 { added } else { String::new() };
        rows.push(row("scaling of columns", &value, &words::scaling(effect)));
    }
    let heads = [text_column("quantity"), numbers("value"), text_column("what it means")];
    let body = table("stack plain", "The record and the data set as a whole", &heads, &rows);
    card("whole", "As a whole", &[Claim::Measured, Claim::Bound], "", body)
}
