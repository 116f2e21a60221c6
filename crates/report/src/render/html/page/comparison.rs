//! The page of a comparison: what got worse first, then every number side by side, and what changed for whom.

use super::trade::trade;
use crate::comparison_words::{change, facts, of, title};
use crate::document::choice::Colour;
use crate::document::comparison::{Change, Comparison, RecordChanges, Row, Section};
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, header, judged, shell, subheading, warnings, whose};
use crate::render::html::table::{Cell, SHOWN, numbers, table, words};
use crate::verdict::of_comparison;

/// Regressions that stand at the top; the sections have all.
const FIRST: usize = 20;
/// With more results than this, a table scrolls.
const ABREAST: usize = 3;

/// A comparison as one self-contained HTML page.
pub fn comparison_page(c: &Comparison) -> String {
    let mut body = header("Leakscope compare", &title(c), &facts(c))
        .and(whose(false))
        .and(judged(&of_comparison(c)))
        .and(demands(c))
        .and(warnings(&c.warnings))
        .and(results(c))
        .and(trade(c))
        .and(regressions(c))
        .and(records(c));
    for (i, section) in c.sections.iter().enumerate() {
        body.push(side_by_side(c, section, &format!("section-{i}")));
    }
    shell(&format!("Leakscope compare: {}", title(c)), &body)
}

fn dot(colour: Colour) -> &'static str {
    match colour {
        Colour::Green => "dot-good",
        Colour::Amber => "dot-care",
        Colour::Red => "dot-bad",
    }
}

fn demands(c: &Comparison) -> Html {
    if c.demands.is_empty() {
        return Html::new();
    }
    let each: Html = c
        .demands
        .iter()
        .map(|d| {
            let (class, sign, text) = match &d.unmet {
                None => ("ok", "✓", format!("{}: met", d.demand)),
                Some(why) => ("over", "✗", format!("{}: {why}", d.demand)),
            };
            fill("<li class=\"{}\"><span aria-hidden=\"true\">{}</span> {}</li>", &[&class, &sign, &text])
        })
        .collect();
    fill("<ul class=\"limits\" aria-label=\"Demands\">{}</ul>\n", &[&each])
}

fn results(c: &Comparison) -> Html {
    let rows: Vec<Vec<Cell>> = c
        .results
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let role = if i == 0 { " (the reference)" } else { "" };
            let date = r.created.as_deref().map(date).unwrap_or_default();
            let added = r.added.map(|a| format!("; adds to gradients: {}", a.name())).unwrap_or_default();
            let colour = fill("<span class=\"{}\">{}</span>", &[&dot(r.colour), &r.colour.name()]);
            vec![
                Cell::remarked_name(&format!("{}{role}", r.name), &format!("{}{date}{added}", r.file)),
                Cell::html(colour),
                Cell::text(&r.headline),
            ]
        })
        .collect();
    let heads = [words("result"), words("colour"), words("verdict")];
    card(
        "results",
        "The results",
        &[],
        "Each with the colour of its own page.",
        table("wrap", "The results", &heads, &rows),
    )
}

/// When a result was made, to the minute, with hyphens at which no line breaks.
fn date(created: &str) -> String {
    let minute: String = created.chars().take("2026-11-16T10:36".len()).collect();
    format!(", {}", minute.replace('-', "\u{2011}").replace('T', " "))
}

/// A number with what became of it below.
fn changed(row: &Row, result: usize) -> Cell {
    let class = match row.change(result) {
        Change::Worse => "dot-bad",
        Change::Better => "dot-good",
        Change::Gone | Change::New | Change::Other | Change::Same => "say",
    };
    let by = row.values.get(result).copied().flatten().map(|v| v.value);
    let text = change(row, result);
    let below = match text.is_empty() {
        true => Html::new(),
        false => fill("<br><span class=\"{} small\">{}</span>", &[&class, &text]),
    };
    Cell::sorted_html(fill("{}{}", &[&of(row, result), &below]), by)
}

fn regressions(c: &Comparison) -> Html {
    let all = c.regressions();
    if all.is_empty() {
        return Html::new();
    }
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .take(FIRST)
        .map(|r| {
            let row = r.row();
            let remark = match c.results.len() > 2 {
                true => format!("{}, in {}", r.section.title, c.results[r.result].name),
                false => r.section.title.clone(),
            };
            vec![Cell::remarked_name(&row.name, &remark), Cell::text(&of(row, 0)), changed(row, r.result)]
        })
        .collect();
    let reference = c.reference().map_or("", |r| r.name.as_str());
    let other = match &c.results[..] {
        [_, other] => other.name.as_str(),
        _ => "there",
    };
    let heads = [words("what"), numbers(reference), numbers(other)];
    let rest = match all.len().saturating_sub(FIRST) as u64 {
        0 => String::new(),
        n => format!(" {} more are in the tables below.", format::count(n)),
    };
    let lead = format!("Those that decide the colour first, then those that changed most.{rest}");
    let heading = format!("What got worse: {}", format::counted(all.len() as u64, "number"));
    card("worse", &heading, &[], lead, table("wrap", "What got worse", &heads, &rows))
}

/// All numbers of a section; those that got worse come first.
fn side_by_side(c: &Comparison, section: &Section, id: &str) -> Html {
    let mut order: Vec<&Row> = section.rows.iter().collect();
    let worst = |row: &Row| (1..c.results.len()).map(|i| row.change(i)).min();
    order.sort_by_key(|row| worst(row) != Some(Change::Worse));
    let mut heads = vec![words("what")];
    heads.extend(c.results.iter().map(|r| numbers(&r.name)));
    let class = if c.results.len() > ABREAST { "" } else { "wrap" };
    let drawn = |rows: &[&Row], name: &str| {
        let cells: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| {
                let values = (0..c.results.len()).map(|i| changed(row, i));
                std::iter::once(Cell::name(&row.name)).chain(values).collect()
            })
            .collect();
        table(class, name, &heads, &cells)
    };
    let (shown, others) = order.split_at(order.len().min(SHOWN));
    let mut body = drawn(shown, &section.title);
    if !others.is_empty() {
        let more = format!("{} more", format::count(others.len() as u64));
        body.push(fill(
            "<details class=\"grounds\"><summary>{}</summary>{}</details>\n",
            &[&more, &drawn(others, &format!("{}, {more}", section.title))],
        ));
    }
    card(id, &section.title, &[], section.about.as_str(), body)
}

fn records(c: &Comparison) -> Html {
    if c.records.is_empty() {
        return Html::new();
    }
    let rows: Vec<Vec<Cell>> = c
        .records
        .iter()
        .map(|r| {
            let mut cells = vec![Cell::name(&c.results[r.result].name)];
            cells.extend([r.matched, r.worse, r.better, r.same, r.new, r.gone].map(Cell::count));
            cells
        })
        .collect();
    let heads = [
        words("result"),
        numbers("in both"),
        numbers("more"),
        numbers("less"),
        numbers("same"),
        numbers("new"),
        numbers("gone"),
    ];
    let mut body = table("stack", "What changed for whom", &heads, &rows);
    body.push(c.records.iter().map(|r| increases(c, r)).collect());
    let measure = c.records.first().map_or("", |r| crate::words::measure(r.measure));
    let lead = format!(
        "Records are matched by their id. More is worse: the {measure} of the record is larger than in the reference."
    );
    card("records", "For whom", &[], lead, body)
}

fn increases(c: &Comparison, r: &RecordChanges) -> Html {
    if r.increases.is_empty() {
        return Html::new();
    }
    let rows: Vec<Vec<Cell>> = r
        .increases
        .iter()
        .map(|record| {
            let up = record.after - record.before;
            vec![
                Cell::name(&record.id),
                Cell::number(record.before),
                Cell::number(record.after),
                Cell::sorted(format!("+{}", format::number(up)), up),
            ]
        })
        .collect();
    let reference = c.reference().map_or("", |r| r.name.as_str());
    let other = c.results[r.result].name.as_str();
    let heads = [words("record"), numbers(reference), numbers(other), numbers("more")];
    let heading = format!("Largest increases of {} in {other}", crate::words::measure(r.measure));
    subheading(&heading).and(table("wrap", &heading, &heads, &rows))
}
