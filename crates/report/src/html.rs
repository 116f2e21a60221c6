//! HTML by hand: escaping, cards, tables. Everything that comes from data goes through [`escape`].

use crate::format;

/// Text made safe inside an element or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The three kinds of claim, as a tag beside a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Measured,
    Bound,
    Observed,
}

impl Kind {
    fn tag(self) -> &'static str {
        match self {
            Self::Measured => {
                r#"<span class="kind measured" title="computed from the model and the data">measured</span>"#
            }
            Self::Bound => {
                r#"<span class="kind proved" title="proved for every attacker of the stated kind">bound</span>"#
            }
            Self::Observed => {
                r#"<span class="kind observed" title="what one attack achieved in trials: no guarantee">observed</span>"#
            }
        }
    }
}

/// A panel: heading with its kinds of claim, a lead in plain words (already HTML), the body.
pub(crate) fn card(id: &str, heading: &str, kinds: &[Kind], lead: &str, body: &str) -> String {
    let tags: String = kinds.iter().map(|k| k.tag()).collect();
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>") };
    format!("<section class=\"card\" id=\"{id}\"><h2>{heading} {tags}</h2>{lead}\n{body}</section>\n")
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

/// A cell: its HTML, and what to sort by where that is a number.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    html: String,
    sort: Option<f64>,
    header: bool,
}

impl Cell {
    /// The name of the row.
    pub(crate) fn name(text: &str) -> Self {
        Self { html: escape(text), sort: None, header: true }
    }

    /// The name of the row with something before it, already HTML.
    pub(crate) fn marked_name(mark: &str, text: &str) -> Self {
        Self { html: format!("{mark}{}", escape(text)), sort: None, header: true }
    }

    /// The name of the row with a remark under it.
    pub(crate) fn remarked_name(text: &str, remark: &str) -> Self {
        let html = format!("{}<br><span class=\"say\">{}</span>", escape(text), escape(remark));
        Self { html, sort: None, header: true }
    }

    /// Text from the data.
    pub(crate) fn text(text: &str) -> Self {
        Self::html(escape(text))
    }

    /// What is HTML already.
    pub(crate) fn html(html: String) -> Self {
        Self { html, sort: None, header: false }
    }

    /// A measured number.
    pub(crate) fn number(x: f64) -> Self {
        Self::sorted(format::number(x), x)
    }

    /// A count.
    pub(crate) fn count(n: u64) -> Self {
        Self::sorted(format::count(n), n as f64)
    }

    /// Text (escaped here) that sorts as a number.
    pub(crate) fn sorted(text: String, by: f64) -> Self {
        Self { html: escape(&text), sort: Some(by), header: false }
    }

    /// A bar: the dark part up to `mean`, the light part up to `value`, both shares of the longest.
    pub(crate) fn bar(mean: f64, value: f64) -> Self {
        let part = |x: f64| if x.is_finite() { x.clamp(0.0, 1.0) } else { 0.0 };
        let html = format!(
            "<span class=\"bar\" aria-hidden=\"true\" style=\"--m:{:.3};--v:{:.3}\"></span>",
            part(mean),
            part(value)
        );
        Self { html, sort: None, header: false }
    }

    fn render(&self, head: Head<'_>, stacked: bool) -> String {
        let class = if head.numeric { " class=\"num\"" } else { "" };
        let label = match stacked && head.numeric {
            true => format!(" data-h=\"{}\"", escape(head.title)),
            false => String::new(),
        };
        // Sorting needs more digits than reading does; infinities sort last.
        let by = match self.sort {
            Some(x) if x.is_finite() => format!(" data-v=\"{x:.6e}\""),
            Some(_) => " data-v=\"9e999\"".to_owned(),
            None => String::new(),
        };
        match self.header {
            true => format!("<th scope=\"row\"{class}{by}{label}>{}</th>", self.html),
            false => format!("<td{class}{by}{label}>{}</td>", self.html),
        }
    }
}

/// A table that scrolls inside its card where it is too wide. `class` may hold `sortable` and `filterable`, which the
/// script turns into buttons and a search box, and `stack`, where a narrow screen shows each row as a block.
pub(crate) fn table(class: &str, label: &str, heads: &[Head<'_>], rows: &[Vec<Cell>]) -> String {
    let label = escape(label);
    let stacked = class.split(' ').any(|c| c == "stack");
    let mut out = format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table class=\"{class}\"><thead><tr>"
    );
    for head in heads {
        let class = if head.numeric { " class=\"num\"" } else { "" };
        out.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(head.title)));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (cell, &head) in row.iter().zip(heads) {
            out.push_str(&cell.render(head, stacked));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// A list of sentences.
pub(crate) fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let items: String =
        items.into_iter().map(|s| format!("<li>{}</li>", escape(&sentence(s.as_ref())))).collect();
    format!("<ul>{items}</ul>")
}

/// Text that starts with a capital and ends with a full stop. Symbols (η, σ) stay as they are.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    let symbol = ('\u{370}'..='\u{3ff}').contains(&first);
    let first = if symbol { first.to_string() } else { first.to_uppercase().to_string() };
    format!("{first}{}{end}", chars.as_str())
}
