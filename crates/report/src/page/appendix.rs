//! The appendix: every assumption, the theorems, the model, the data's columns, timings, how to get it again.

use super::glossary;
use crate::audit::Audit;
use crate::html::{Cell, card, escape, list, numbers, table, words as text_column};
use crate::{format, words};
use leakscope_core::claim::{Bound, Theorem};

pub(super) fn appendix(audit: &Audit) -> String {
    let mut out = String::from("<h2 class=\"part\">Appendix</h2>\n");
    out.push_str(&rests_on(audit));
    out.push_str(&card("glossary", "In plain words", &[], "", &glossary::glossary()));
    out.push_str(&model(audit));
    out.push_str(&data(audit));
    out.push_str(&again(audit));
    out
}

/// Theorems that a number of this audit rests on, each once, in the order of first use.
fn theorems(audit: &Audit) -> Vec<Theorem> {
    let of = |b: &Bound| b.theorem;
    let used = audit
        .attributes
        .iter()
        .flat_map(|a| std::iter::once(of(&a.min_sd)).chain(a.min_rmse_with_prior.as_ref().map(of)))
        .chain([of(&audit.records.min_mse), of(&audit.records.min_mse_with_prior)]);
    let mut all = Vec::new();
    for theorem in used {
        if !all.contains(&theorem) {
            all.push(theorem);
        }
    }
    all
}

fn rests_on(audit: &Audit) -> String {
    let mut body = list(&audit.assumptions);
    for theorem in theorems(audit) {
        body.push_str(&format!(
            "<h3>{} <span class=\"kind proved\">bound</span></h3>{}",
            escape(theorem.source()),
            list(theorem.assumptions())
        ));
    }
    card("assumptions", "What this rests on", &[], "", &body)
}

fn facts(rows: &[(&str, String)]) -> String {
    let each: String = rows
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect();
    format!("<dl class=\"facts\">{each}</dl>\n")
}

fn model(audit: &Audit) -> String {
    let m = &audit.model;
    let fitted = match m.iterations {
        0 => "given, not fitted here".to_owned(),
        k => format!("fitted in {}", format::counted(k as u64, "Newton iteration")),
    };
    let mut rows = vec![
        ("family", m.family.clone()),
        ("l2", format::setting(m.l2)),
        ("intercept", if m.intercept { "yes, not regularised" } else { "none" }.to_owned()),
        ("how", fitted),
        (
            "relative gradient",
            format!("{} (tolerance {})", format::number(m.gradient), format::setting(m.tolerance)),
        ),
        ("condition number of the Hessian", format::number(m.condition)),
        ("mean training loss", format::number(m.loss)),
    ];
    if let Some(d) = &m.distance {
        rows.push(("distance from the minimiser", format!("{} relative", format::number(d.relative))));
        rows.push(("largest difference", format!("{} in {}", format::number(d.largest), d.largest_name)));
        rows.push((
            "objective above its minimum",
            format!("{} relative", format::number(d.excess_objective)),
        ));
    }
    let original = m.coefficients_original_units.as_ref();
    let mut heads = vec![text_column("coefficient"), numbers("of the encoded column")];
    if original.is_some() {
        heads.push(numbers("in original units"));
    }
    let named = original.into_iter().flatten().map(|(name, _)| name);
    let mut names: Vec<&String> = m.coefficients.keys().chain(named).collect();
    names.sort_unstable();
    names.dedup();
    let cell = |x: Option<&f64>| x.map_or_else(|| Cell::text("–"), |x| Cell::number(*x));
    let table_rows: Vec<Vec<Cell>> = names
        .into_iter()
        .map(|name| {
            let mut row = vec![Cell::name(name), cell(m.coefficients.get(name))];
            if let Some(o) = original {
                row.push(cell(o.get(name)));
            }
            row
        })
        .collect();
    let lead =
        "The coefficients before the noise. Whoever holds this page holds the model without its protection.";
    let body =
        format!("{}{}", facts(&rows), table("sortable filterable tall", "Coefficients", &heads, &table_rows));
    card("model", "The model", &[], lead, &body)
}

fn data(audit: &Audit) -> String {
    let d = &audit.data;
    let mut rows = vec![
        ("files", d.files.join(", ")),
        ("rows read", format::count(d.rows_read)),
        ("left out, a value missing", format::count(d.rows_dropped)),
        ("held out", format::count(d.rows_held_out)),
        ("scaling of numbers", d.scale.clone()),
        ("one-hot columns", d.one_hot.clone()),
    ];
    if let Some([low, high]) = &d.classes {
        rows.push(("classes, low and high", format!("{low}, {high}")));
    }
    if let Some(k) = d.pca {
        rows.push(("principal components", k.to_string()));
    }
    let table_rows: Vec<Vec<Cell>> = d
        .columns
        .iter()
        .map(|c| {
            let levels = c.levels.map_or_else(|| Cell::text("–"), |k| Cell::count(k as u64));
            vec![
                Cell::name(&c.name),
                Cell::text(&c.kind),
                Cell::text(&c.role),
                levels,
                Cell::count(c.missing),
            ]
        })
        .collect();
    let heads = [
        text_column("column"),
        text_column("kind"),
        text_column("role"),
        numbers("levels"),
        numbers("missing"),
    ];
    let body =
        format!("{}{}", facts(&rows), table("sortable filterable tall", "Columns", &heads, &table_rows));
    card("data", "The data", &[], "Columns and their roles; values and ranges are not shown.", &body)
}

fn again(audit: &Audit) -> String {
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
        ("this page", format::seconds(t.report)),
    ];
    card("again", "How to get it again", &[], "", &facts(&rows))
}
