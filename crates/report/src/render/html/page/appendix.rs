//! The appendix: every assumption, the theorems, the model, the data's columns, timings, how to get it again.

use super::glossary;
use crate::document::audit::Audit;
use crate::document::explore::Beside;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, facts, list, tag};
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::words;
use leakscope_core::claim::{Bound, Theorem};

pub(super) fn appendix(audit: &Audit, beside: &Beside) -> Html {
    Html::literal("<h2 class=\"part\">Appendix</h2>\n")
        .and(rests_on(audit))
        .and(card("glossary", "In plain words", &[], "", glossary::glossary()))
        .and(model(audit))
        .and(data(audit))
        .and(again(audit))
        .and(foot(audit, beside))
}

/// What made the page, and of which data.
fn foot(audit: &Audit, beside: &Beside) -> Html {
    let made = format!("Leakscope {}, {}.", audit.leakscope, audit.created);
    let redacted = match audit.redact {
        true => {
            " For sharing: numbers have three digits, rounded to the safe side; coefficients as fitted, records one by one, scored points, groups and \
             bars of fewer than ten records are left out or merged."
        }
        false => "",
    };
    let command = beside.command.as_ref().map(|c| {
        fill("<p class=\"say\">Made by</p><div class=\"command\"><code tabindex=\"0\">{}</code></div>", &[c])
    });
    let fingerprint = beside.fingerprint.as_ref().map(|f| {
        fill(
            "<p class=\"say\">Data {}: a fingerprint under the key in private/page.key; the same data give the same in this folder, and \
             nobody without the key can try others against it.</p>",
            &[f],
        )
    });
    fill(
        "<footer class=\"foot\"><p class=\"say\">{}{}</p>{}{}</footer>\n",
        &[&made, &redacted, &command.unwrap_or_default(), &fingerprint.unwrap_or_default()],
    )
}

/// Theorems that a number of this audit rests on, each once, in the order of first use.
fn theorems(audit: &Audit) -> Vec<Theorem> {
    let of = |b: &Bound| b.theorem;
    let told = audit.tell.iter().flat_map(|t| {
        let several = t.attributes.iter().any(|a| a.among_all.is_some());
        let two = (!t.attributes.is_empty()).then_some(Theorem::TwoValues);
        two.into_iter().chain(several.then_some(Theorem::OneCentre))
    });
    let used = audit
        .attributes
        .iter()
        .map(|a| of(&a.min_sd))
        .chain([of(&audit.records.min_mse)])
        .chain(audit.label.as_ref().map(|l| of(&l.min_sd)))
        .chain(told);
    let mut all = Vec::new();
    for theorem in used {
        if !all.contains(&theorem) {
            all.push(theorem);
        }
    }
    all
}

/// A theorem with its assumptions.
pub(crate) fn theorem(theorem: Theorem) -> Html {
    let tag = tag(crate::figure::Claim::Bound);
    fill("<h3>{} {}</h3>{}", &[&theorem.source(), &tag, &list(theorem.assumptions())])
}

fn rests_on(audit: &Audit) -> Html {
    let body = list(&audit.assumptions).and(theorems(audit).into_iter().map(theorem).collect());
    card("assumptions", "What this rests on", &[], "", body)
}

fn model(audit: &Audit) -> Html {
    let m = &audit.model;
    let fitted = match m.iterations {
        0 => "given, not fitted here".to_owned(),
        k => format!("fitted in {}", format::counted(k as u64, "Newton iteration")),
    };
    let gradient = format!("{} (tolerance {})", format::number(m.gradient), format::setting(m.tolerance));
    let mut rows = vec![
        ("family", m.family.to_string()),
        ("l2", format::setting(m.l2)),
        ("intercept", if m.intercept { "yes, not regularised" } else { "none" }.to_owned()),
        ("how", fitted),
        ("relative gradient", gradient),
        ("condition number of the Hessian", format::number(m.condition)),
        ("mean training loss", format::number(m.loss)),
    ];
    if let Some(d) = &m.distance {
        let excess = format!("{} relative", format::number(d.excess_objective));
        rows.push(("distance from the minimiser", format!("{} relative", format::number(d.relative))));
        rows.push(("largest difference", format!("{} in {}", format::number(d.largest), d.largest_name)));
        rows.push(("objective above its minimum", excess));
    }
    let (lead, coefficients) = match audit.redact {
        // They would undo the noise, and name levels.
        true => ("Its coefficients are on the owner’s page alone.", Html::new()),
        false => (
            "The coefficients before the noise. Whoever holds this page holds the model without its protection.",
            coefficients(audit),
        ),
    };
    card("model", "The model", &[], lead, facts(&rows).and(coefficients))
}

fn coefficients(audit: &Audit) -> Html {
    let m = &audit.model;
    let original = m.coefficients_original_units.as_ref();
    let mut heads = vec![text_column("coefficient"), numbers("of the encoded column")];
    if original.is_some() {
        heads.push(numbers("in original units"));
    }
    let named = original.into_iter().flatten().map(|(name, _)| name);
    let mut names: Vec<&String> = m.coefficients.keys().chain(named).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 2 * SHOWN {
        // Of many, those that move predictions most.
        let size = |name: &String| m.coefficients.get(name).map_or(0.0, |c| c.abs());
        names.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    let (shown, others) = names.split_at(if names.len() > 2 * SHOWN { SHOWN } else { names.len() });
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|name| {
            let mut row = vec![Cell::name(name), Cell::maybe(m.coefficients.get(*name).copied())];
            if let Some(o) = original {
                row.push(Cell::maybe(o.get(*name).copied()));
            }
            row
        })
        .collect();
    let lines = others
        .iter()
        .map(|name| format!("{name}  {}", format::number(m.coefficients.get(*name).copied().unwrap_or(0.0))));
    table("sortable filterable tall", "Coefficients", &heads, &rows).and(rest(
        "coefficients",
        "Smaller than those above, largest first.",
        lines,
    ))
}

fn data(audit: &Audit) -> Html {
    let d = &audit.data;
    let mut rows = vec![
        ("files", d.files.join(", ")),
        ("rows read", format::count(d.rows_read)),
        ("left out, a value missing", format::count(d.rows_dropped)),
        ("held out", format::count(d.rows_held_out)),
        ("scaling of numbers", d.scale.name().to_owned()),
        ("one-hot columns", d.one_hot.name().to_owned()),
    ];
    match d.classes.as_deref() {
        Some([low, high]) => rows.push(("classes, low and high", format!("{low}, {high}"))),
        Some(all) => rows.push(("classes", all.join(", "))),
        None => {}
    }
    if let Some(k) = d.pca {
        rows.push(("principal components", k.to_string()));
    }
    let most = if d.columns.len() > 2 * SHOWN { SHOWN } else { d.columns.len() };
    let (shown, others) = d.columns.split_at(most);
    let table_rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|c| {
            let levels = c.levels.map_or_else(|| Cell::text("–"), |k| Cell::count(k as u64));
            let kind = Cell::text(c.kind.name());
            vec![Cell::name(&c.name), kind, Cell::text(&c.roles.to_string()), levels, Cell::count(c.missing)]
        })
        .collect();
    let heads = [
        text_column("column"),
        text_column("kind"),
        text_column("role"),
        numbers("levels"),
        numbers("missing"),
    ];
    // The list of attributes names those already.
    let attributes: std::collections::BTreeSet<&str> =
        audit.attributes.iter().map(|a| a.name.as_str()).collect();
    let (named, others): (Vec<_>, Vec<_>) = others.iter().partition(|c| attributes.contains(c.name.as_str()));
    let lines = others.iter().map(|c| format!("{}  {}  {}", c.name, c.kind.name(), c.roles));
    let note = match named.len() as u64 {
        0 => Html::new(),
        n => fill(
            "<p class=\"say\">{} more are among the <a href=\"#attributes\">attributes</a>.</p>",
            &[&format::counted(n, "column")],
        ),
    };
    let body = facts(&rows)
        .and(table("sortable filterable tall", "Columns", &heads, &table_rows))
        .and(note)
        .and(rest("columns", "In the order of the table.", lines));
    card("data", "The data", &[], "Columns and their roles; values and ranges are not shown.", body)
}

fn again(audit: &Audit) -> Html {
    let t = &audit.timings;
    let rows = [
        ("Leakscope", audit.leakscope.clone()),
        ("schema", audit.schema.clone()),
        ("made", audit.created.clone()),
        ("seed", audit.seed.map_or_else(|| "none: nothing was random".to_owned(), |s| s.to_string())),
        ("noise", words::sigma_source(audit)),
        ("releases", audit.releases.to_string()),
        ("reading", format::seconds(t.read)),
        ("fitting", format::seconds(t.fit)),
        ("leakage", format::seconds(t.leakage)),
        ("telling values apart", format::seconds(t.tell)),
        ("this page", format::seconds(t.report)),
    ];
    card("again", "How to get it again", &[], "", facts(&rows))
}
