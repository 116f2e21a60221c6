//! Tables, and how long ones stay readable: the worst rows are shown, a filter finds the rest.

use super::follow;
use super::markup::{Html, fill};
use crate::format;

/// Rows that are shown of a long table; the others are kept as text for the filter.
pub(crate) const SHOWN: usize = 50;
/// Bytes that the rows that are not shown may take in one table: a page of 5,000 columns stays under a megabyte.
const MOST_TEXT: usize = 75_000;
/// Those of attributes, which every other table leaves it to them to name.
const MOST_ATTRIBUTES: usize = 300_000;

/// Which cells say their column where a narrow screen shows each row as a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    None,
    Numbers,
    All,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    title: &'a str,
    numeric: bool,
}

/// A column of text.
pub(crate) fn words(title: &str) -> Head<'_> {
    Head { title, numeric: false }
}

/// A column of numbers, set flush right.
pub(crate) fn numbers(title: &str) -> Head<'_> {
    Head { title, numeric: true }
}

/// A cell: its content, and what to sort by where that is a number.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    html: Html,
    sort: Option<f64>,
    header: bool,
}

impl Cell {
    /// The name of the row.
    pub(crate) fn name(text: &str) -> Self {
        Self { html: Html::text(text), sort: None, header: true }
    }

    /// The name of the row with a mark before it.
    pub(crate) fn marked_name(mark: Html, text: &str) -> Self {
        Self { html: mark.and(Html::text(text)), sort: None, header: true }
    }

    /// The name of the row with a remark under it.
    pub(crate) fn remarked_name(text: &str, remark: &str) -> Self {
        let html = fill("{}<br><span class=\"say\">{}</span>", &[&text, &remark]);
        Self { html, sort: None, header: true }
    }

    /// Text.
    pub(crate) fn text(text: &str) -> Self {
        Self::html(Html::text(text))
    }

    /// A remark.
    pub(crate) fn say(text: &str) -> Self {
        Self::html(fill("<span class=\"say\">{}</span>", &[&text]))
    }

    /// Markup.
    pub(crate) fn html(html: Html) -> Self {
        Self { html, sort: None, header: false }
    }

    /// A measured number.
    pub(crate) fn number(x: f64) -> Self {
        Self::sorted(format::number(x), x)
    }

    /// η, which follows the noise.
    pub(crate) fn eta(x: f64) -> Self {
        Self::sorted_html(follow::eta(x), Some(x))
    }

    /// η where there is one.
    pub(crate) fn maybe_eta(x: Option<f64>) -> Self {
        x.map_or_else(|| Self::text("–"), Self::eta)
    }

    /// A number where there is one.
    pub(crate) fn maybe(x: Option<f64>) -> Self {
        x.map_or_else(|| Self::text("–"), Self::number)
    }

    /// A count.
    pub(crate) fn count(n: u64) -> Self {
        Self::sorted(format::count(n), n as f64)
    }

    /// Text that sorts as a number.
    pub(crate) fn sorted(text: String, by: f64) -> Self {
        Self { html: Html::text(&text), sort: Some(by), header: false }
    }

    /// Markup that sorts as a number where there is one.
    pub(crate) fn sorted_html(html: Html, by: Option<f64>) -> Self {
        Self { html, sort: by, header: false }
    }

    /// A bar: the dark part up to `mean`, the light part up to `value`, both shares of the longest.
    pub(crate) fn bar(mean: f64, value: f64) -> Self {
        let part = |x: f64| format!("{:.3}", if x.is_finite() { x.clamp(0.0, 1.0) } else { 0.0 });
        Self::html(fill(
            "<span class=\"bar\" aria-hidden=\"true\" style=\"--m:{};--v:{}\"></span>",
            &[&part(mean), &part(value)],
        ))
    }

    fn render(&self, head: Head<'_>, labels: Labels) -> Html {
        let class = if head.numeric { Html::literal(" class=\"num\"") } else { Html::new() };
        let label = match labels == Labels::All && !self.header && !head.title.is_empty()
            || labels != Labels::None && head.numeric
        {
            true => fill(" data-h=\"{}\"", &[&head.title]),
            false => Html::new(),
        };
        // Sorting needs more digits than reading does; infinities sort last.
        let by = match self.sort {
            Some(x) if x.is_finite() => fill(" data-v=\"{}\"", &[&format!("{x:.6e}")]),
            Some(_) => Html::literal(" data-v=\"9e999\""),
            None => Html::new(),
        };
        let parts: [&dyn super::markup::Part; 4] = [&class, &by, &label, &self.html];
        match self.header {
            true => fill("<th scope=\"row\"{}{}{}>{}</th>", &parts),
            false => fill("<td{}{}{}>{}</td>", &parts),
        }
    }
}

/// A table that scrolls inside its card where it is too wide. `class` may hold `sortable` and `filterable`, which the
/// script turns into buttons and a search box, and `stack`, where a narrow screen shows each row as a block: with `even`,
/// of cells that are all alike.
pub(crate) fn table(class: &'static str, label: &str, heads: &[Head<'_>], rows: &[Vec<Cell>]) -> Html {
    let has = |name: &str| class.split(' ').any(|c| c == name);
    let labels = match (has("stack"), has("even")) {
        (true, true) => Labels::All,
        (true, false) => Labels::Numbers,
        (false, _) => Labels::None,
    };
    let titles: Html = heads
        .iter()
        .map(|head| match head.numeric {
            true => fill("<th scope=\"col\" class=\"num\">{}</th>", &[&head.title]),
            // A column of bars: drawn, it needs no title.
            false if head.title.is_empty() => {
                Html::literal("<th scope=\"col\"><span class=\"heard\">as a bar</span></th>")
            }
            false => fill("<th scope=\"col\">{}</th>", &[&head.title]),
        })
        .collect();
    let body: Html = rows
        .iter()
        .map(|row| {
            let cells: Html = row.iter().zip(heads).map(|(cell, &head)| cell.render(head, labels)).collect();
            fill("<tr>{}</tr>\n", &[&cells])
        })
        .collect();
    fill(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table class=\"{}\"><thead><tr>{}\
         </tr></thead><tbody>\n{}</tbody></table></div>",
        &[&label, &class, &titles, &body],
    )
}

/// What stands for the rows that a long table does not show: one line of text each, found by a filter. Text alone, so that
/// thousands of them fit: their numbers are those of the audit, and the page says so where its dials were moved.
pub(crate) fn rest(label: &str, order: &str, lines: impl ExactSizeIterator<Item = String>) -> Html {
    rest_within(MOST_TEXT, label, order, lines)
}

/// The same of attributes.
pub(crate) fn rest_of_attributes(order: &str, lines: impl ExactSizeIterator<Item = String>) -> Html {
    rest_within(MOST_ATTRIBUTES, "attributes", order, lines)
}

fn rest_within(most: usize, label: &str, order: &str, lines: impl ExactSizeIterator<Item = String>) -> Html {
    let all = lines.len() as u64;
    if all == 0 {
        return Html::new();
    }
    let (mut text, mut length, mut kept) = (Html::new(), 0, 0_u64);
    for line in lines {
        let line = Html::text(&line).on_one_line().and(Html::literal("\n"));
        length += line.as_str().len();
        if length > most {
            break;
        }
        text.push(line);
        kept += 1;
    }
    let left_out = match all - kept {
        0 => String::new(),
        n => format!(" The last {} are in the JSON file alone.", format::count(n)),
    };
    fill(
        "<details class=\"rest\" data-label=\"{}\"><summary>{} more</summary><p class=\"say asaudited\">As audited: these lines do not \
         follow the noise chosen above.</p><pre tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</pre><p class=\"say\">{}{}</p></details>\n",
        &[&label, &format::count(all), &label, &text, &order, &left_out],
    )
}

/// How a list of those that leak less is ordered.
pub(crate) const LESS_EXPOSED: &str = "Less exposed than those above, most first.";
