//! Which attributes leak and what that means in their own units; the record as a whole; all records together.

use crate::audit::Audit;
use crate::html::{Cell, Kind, card, escape, numbers, table, words as text_column};
use crate::verdict::exposures;
use crate::{format, words};

pub(super) fn attributes(audit: &Audit) -> String {
    if audit.attributes.is_empty() {
        return String::new();
    }
    let longest = audit.attributes.iter().map(|a| a.eta_max).filter(|e| e.is_finite()).fold(0.0, f64::max);
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let exposures = exposures(audit);
    let rows: Vec<Vec<Cell>> = audit
        .attributes
        .iter()
        .map(|a| {
            let columns = match a.columns.len() {
                0 | 1 => a.kind.clone(),
                k => format!("{}, {k} columns", a.kind),
            };
            let open = exposures.iter().any(|e| std::ptr::eq(e.attribute, a) && e.multiple < 1.0);
            let flag = if open { "<span class=\"flag\">not protected</span> " } else { "" };
            let said: String = words::meaning(a)
                .iter()
                .enumerate()
                .map(|(i, s)| format!("<p>{}{}</p>", if i == 0 { flag } else { "" }, escape(s)))
                .collect();
            vec![
                Cell::remarked_name(&a.name, &columns),
                Cell::number(a.eta_mean),
                Cell::number(a.eta_max),
                Cell::bar(part(a.eta_mean), part(a.eta_max)),
                Cell::number(a.eta_over_all_records),
                Cell::html(format!("<div class=\"means\">{said}</div>")),
            ]
        })
        .collect();
    let heads = [
        text_column("attribute"),
        numbers("mean η"),
        numbers("largest η"),
        text_column(""),
        numbers("all records"),
        text_column("what it means"),
    ];
    let lead = "Bars: dark is the mean over records, light the most exposed record. A one-hot attribute counts as one.";
    let body = table("sortable stack attributes", "Attributes", &heads, &rows);
    card("attributes", "Which attributes leak", &[Kind::Measured, Kind::Bound], lead, &body)
}

pub(super) fn whole(audit: &Audit) -> String {
    let r = &audit.records;
    let dfil = &r.dfil;
    let mse = format::bound(&r.min_mse);
    let prior = format::bound(&r.min_mse_with_prior);
    let unit = match audit.data.scale.as_str() {
        "standard" if audit.data.pca.is_none() => {
            " Numbers are scaled to a spread of one: for those, 1 is what the population alone gives."
        }
        _ => " In units of the encoded columns.",
    };
    let target =
        if audit.label_secret { " The target counts as one more value, in its own units." } else { "" };
    let unit = format!("{unit}{target}");
    let row = |name: &str, value: &str, means: &str| {
        vec![
            Cell::name(name),
            Cell::html(escape(value)),
            Cell::html(format!("<span class=\"say\">{}</span>", escape(means))),
        ]
    };
    let times = match r.eta.max > 0.0 {
        true => format!(", ×{} the most exposed record", format::number(audit.dataset.eta / r.eta.max)),
        false => String::new(),
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
            &match r.min_mse.value.is_finite() {
                true => format!("≥ {mse}"),
                false => mse,
            },
            &format!(
                "Mean squared error per encoded column of any unbiased estimate of the most exposed record.{unit}"
            ),
        ),
        row(
            "a whole record, with a prior",
            &match r.min_mse_with_prior.value.is_finite() {
                true => format!("≥ {prior}"),
                false => prior,
            },
            &format!(
                "The same for any estimate, biased or not, by someone who knows the population, on average over records.{unit}"
            ),
        ),
    ];
    if let Some(label) = &audit.label {
        let means = match label.min_sd.value.is_finite() {
            true => format!(
                "The target alone, to someone who knows all else of the record: an unbiased estimate {}is off by at least \
                 ±{} for the most exposed record. Mean η {}, largest {}.",
                if audit.data.classes.is_some() { "of its class (0 or 1) " } else { "" },
                format::bound(&label.min_sd),
                format::number(label.eta_mean),
                format::number(label.eta_max)
            ),
            false => "The model gives nothing away about the target.".to_owned(),
        };
        rows.push(row(&format!("the label, {}", label.name), &format::number(label.eta_max), &means));
    }
    let heads = [text_column("quantity"), numbers("value"), text_column("what it means")];
    let body = table("stack plain", "The record and the data set as a whole", &heads, &rows);
    card("whole", "As a whole", &[Kind::Measured, Kind::Bound], "", &body)
}
