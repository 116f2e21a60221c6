//! A comparison as Markdown.

use crate::comparison_words::{change, of};
use crate::document::comparison::{Change, Comparison, public_name};
use crate::format;
use crate::verdict::of_comparison;
use std::fmt::Write;

/// A comparison as Markdown: the results with their colours, what got worse, how many records, and all that changed.
pub fn comparison_markdown(c: &Comparison) -> String {
    let mut out = format!("### Leakscope: {}\n\n", cell(&of_comparison(c).headline));
    out.push_str("| result | colour | verdict |\n|---|---|---|\n");
    for (i, r) in c.results.iter().enumerate() {
        let role = if i == 0 { " (reference)" } else { "" };
        let _ = writeln!(out, "| {}{role} | {} | {} |", cell(&r.name), r.colour.name(), cell(&r.headline));
    }
    for demand in &c.demands {
        let told =
            demand.unmet.as_deref().map_or_else(|| "met".into(), |why| format!("**failed**: {}", cell(why)));
        let _ = writeln!(out, "\n- `{}`: {told}", demand.demand);
    }
    for r in &c.records {
        let name = c.results.get(r.result).map_or("", |r| r.name.as_str());
        let _ = writeln!(
            out,
            "\n{}: {} in both results; {} give more away, {} less, {} the same; {} new, {} gone.",
            cell(name),
            format::counted(r.matched, "record"),
            format::count(r.worse),
            format::count(r.better),
            format::count(r.same),
            format::count(r.new),
            format::count(r.gone)
        );
    }
    changes(c, &mut out);
    out
}

/// Every number that changed, those that got worse first.
fn changes(c: &Comparison, out: &mut String) {
    let mut rows = vec![];
    for section in &c.sections {
        for (place, row) in section.rows.iter().enumerate() {
            let worst = (1..c.results.len()).map(|i| row.change(i)).min().unwrap_or(Change::Same);
            if worst != Change::Same {
                rows.push((worst, section, place));
            }
        }
    }
    if rows.is_empty() {
        out.push_str("\nNo number changed.\n");
        return;
    }
    rows.sort_by_key(|(worst, ..)| *worst);
    out.push_str("\n| number |");
    c.results.iter().for_each(|r| out.push_str(&format!(" {} |", cell(&r.name))));
    out.push_str("\n|---|");
    c.results.iter().for_each(|_| out.push_str("---:|"));
    out.push('\n');
    for (_, section, place) in rows {
        let row = &section.rows[place];
        let _ = write!(out, "| {} |", cell(&public_name(section, place)));
        for i in 0..c.results.len() {
            let (value, change) = (of(row, i), change(row, i));
            let told = match (change.is_empty(), row.change(i) == Change::Worse) {
                (true, _) => String::new(),
                (false, true) => format!(" (**{change}**)"),
                (false, false) => format!(" ({change})"),
            };
            let _ = write!(out, " {value}{told} |");
        }
        out.push('\n');
    }
}

/// Text in a cell: nothing in it is markup, and no line ends in it.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '!' | '@' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn nothing_in_a_cell_is_markup() {
        assert_eq!(cell("a|b\n<c> *d*"), "a\\|b &lt;c&gt; \\*d\\*");
    }
}
