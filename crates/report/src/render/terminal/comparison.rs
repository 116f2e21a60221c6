//! A comparison as text for a terminal. It may end up in the log of a pipeline, so it names no record.

use super::pen::{BOLD, DIM, GREEN, Pen, RED, Side, YELLOW, clean};
use crate::comparison_words::{change, facts, of, title};
use crate::document::choice::Colour;
use crate::document::comparison::Comparison;
use crate::format;
use crate::verdict::of_comparison;

/// Regressions that are listed.
const LISTED: usize = 15;

/// The comparison for a terminal of `width` columns: the verdict, the results with their colours, what got worse, and how
/// many records. With `colour`, ANSI escapes mark what matters.
pub fn comparison_summary(c: &Comparison, width: usize, colour: bool) -> String {
    let pen = Pen { width: width.clamp(40, 120), colour };
    let mut out = String::new();
    let style = |colour: Colour| match colour {
        Colour::Red => RED,
        Colour::Amber => YELLOW,
        Colour::Green => GREEN,
    };
    pen.paragraph(&mut out, "", &title(c), Some(BOLD));
    pen.paragraph(&mut out, "", &facts(c), Some(DIM));
    let verdict = of_comparison(c);
    out.push_str(&format!(
        "\n{}\n",
        pen.paint(&clean(&verdict.headline).to_uppercase(), style(verdict.colour))
    ));
    pen.paragraph(&mut out, "  ", &verdict.text(), None);
    out.push('\n');
    for result in &c.results {
        let name = pen.paint(&format!("{:<5}", result.colour.name()), style(result.colour));
        out.push_str(&format!("  {name}  {}: {}\n", clean(&result.name), result.headline));
    }
    let all = c.regressions();
    if !all.is_empty() {
        pen.heading(&mut out, &format!("What got worse ({})", format::count(all.len() as u64)));
        let mut rows = vec![["number", "result", "before", "now", ""].map(String::from).to_vec()];
        rows.extend(all.iter().take(LISTED).map(|r| {
            let row = r.row();
            let result = clean(&c.results[r.result].name);
            vec![clean(&r.public_name()), result, of(row, 0), of(row, r.result), change(row, r.result)]
        }));
        let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left];
        pen.table(&mut out, &sides, &rows);
        if all.len() > LISTED {
            out.push_str(&format!("  and {} more\n", format::count((all.len() - LISTED) as u64)));
        }
    }
    if !c.warnings.is_empty() {
        pen.heading(&mut out, "Warnings");
        c.warnings.iter().for_each(|w| pen.paragraph(&mut out, "  ", w, None));
    }
    out
}
