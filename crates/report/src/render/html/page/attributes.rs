//! Which attributes leak and what that means in their own units; the record as a whole; all records together.

use crate::document::audit::{Attribute, Audit};
use crate::document::choice::Scaling;
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::render::words;
use crate::verdict::{exposures, is_open};

pub(super) fn attributes(audit: &Audit) -> Html {
    if audit.attributes.is_empty() {
        return Html::new();
    }
    let longest = audit.attributes.iter().map(|a| a.eta_max).filter(|e| e.is_finite()).fold(0.0, f64::max);
    let exposures = exposures(audit);
    let open = |a: &Attribute| exposures.iter().any(|e| std::ptr::eq(e.attribute, a) && is_open(e.told));
    // Most exposed first, as the document has them.
    let (shown, others) = audit.attributes.split_at(audit.attributes.len().min(SHOWN));
    let rows: Vec<Vec<Cell>> = shown.iter().map(|a| row(a, longest, open(a))).collect();
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
    let lead = "Bars: dark is the mean over records, light the most exposed record. A one-hot attribute counts as one.";
    let body = table("sortable filterable stack attributes", "Attributes", &heads, &rows)
        .and(rest("attributes", lines));
    card("attributes", "Which attributes leak", &[Claim::Measured, Claim::Bound], lead, body)
}

fn row(a: &Attribute, longest: f64, open: bool) -> Vec<Cell> {
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let columns = match a.columns.len() {
        0 | 1 => a.kind.name().to_owned(),
        k => format!("{}, {k} columns", a.kind.name()),
    };
    let flag = match open {
        true => Html::literal("<span class=\"flag\">not protected</span> "),
        false => Html::new(),
    };
    let sentences: Html = words::meaning(a)
        .iter()
        .enumerate()
        .map(|(i, s)| fill("<p>{}{}</p>", &[if i == 0 { &flag } else { &"" }, s]))
        .collect();
    vec![
        Cell::remarked_name(&a.name, &columns),
        Cell::number(a.eta_mean),
        Cell::number(a.eta_max),
        Cell::bar(part(a.eta_mean), part(a.eta_max)),
        Cell::number(a.eta_over_all_records),
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
            &format!(
                "All records taken as one secret{times}. No record, group or attribute has a larger one."
            ),
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
            &least(&r.min_mse_with_prior),
            &format!(
                "The same for any estimate, biased or not, by someone who knows the population, on average over \
                 records.{unit}{target}"
            ),
        ),
    ];
    rows.extend(label(audit).map(|(name, value, means)| row(&name, &value, &means)));
    let heads = [text_column("quantity"), numbers("value"), text_column("what it means")];
    let body = table("stack plain", "The record and the data set as a whole", &heads, &rows);
    card("whole", "As a whole", &[Claim::Measured, Claim::Bound], "", body)
}

/// The label: its name, largest η, and what that means.
fn label(audit: &Audit) -> Option<(String, String, String)> {
    let label = audit.label.as_ref()?;
    let means = match label.min_sd.value.is_finite() {
        true => format!(
            "The target alone, to someone who knows all else of the record: an estimate, right on average, {}is off by at \
             least ±{} for the most exposed record. Mean η {}, largest {}.",
            if audit.data.classes.is_some() { "of its class, from 0 for no to 1 for yes, " } else { "" },
            format::bound(&label.min_sd),
            format::number(label.eta_mean),
            format::number(label.eta_max)
        ),
        false => "Small changes of the target do not move the model.".to_owned(),
    };
    Some((format!("the label, {}", label.name), format::number(label.eta_max), means))
}
