//! Markup that escapes by construction. Text that comes from anywhere becomes [`Html`] only by being escaped; markup
//! itself comes only from literals of our own.

use std::fmt::Write;

/// A piece of a page: well-formed markup with everything from the data escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Html(String);

/// Signs of an option that is kept on one line; a longer one would be wider than a small screen.
const UNBROKEN: usize = 32;

/// What may fill a hole of [`fill`].
pub(crate) trait Part {
    /// Writes itself, escaped unless it is markup already.
    fn write(&self, out: &mut String);
}

/// Markup of our own with holes: every `{}` takes the next part. The template is a literal, so nothing from the data can
/// become markup.
pub(crate) fn fill(template: &'static str, parts: &[&dyn Part]) -> Html {
    let mut out = String::with_capacity(template.len() + 16 * parts.len());
    let mut parts = parts.iter();
    let mut pieces = template.split("{}");
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let part = parts.next();
        debug_assert!(part.is_some(), "a hole without its part: {template}");
        if let Some(part) = part {
            part.write(&mut out);
        }
        out.push_str(piece);
    }
    debug_assert!(parts.next().is_none(), "a part without its hole: {template}");
    Html(out)
}

impl Html {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Markup that is a literal of our own.
    pub(crate) fn literal(markup: &'static str) -> Self {
        Self(markup.to_owned())
    }

    /// Text, escaped.
    pub(crate) fn text(text: &str) -> Self {
        let mut out = Self::new();
        text.write(&mut out.0);
        out
    }

    /// Prose, escaped: what stands in back ticks is set as code, and an option (`⟨l2=1e-3⟩`) is not broken across lines.
    pub(crate) fn prose(text: &str) -> Self {
        let mut out = Self::new();
        let mut rest = text;
        while let Some(start) = rest.find(['`', '⟨']) {
            let (before, after) = rest.split_at(start);
            out.push(Self::text(before));
            let close = if after.starts_with('`') { '`' } else { '⟩' };
            let mut signs = after.chars();
            signs.next();
            let inside = signs.as_str();
            let Some((inside, tail)) = inside.split_once(close).filter(|(inside, _)| !inside.is_empty())
            else {
                // A mark without its other half is a sign like others.
                out.push(Self::text(&after[..after.len() - inside.len()]));
                rest = inside;
                continue;
            };
            out.push(match (close, inside.chars().count() <= UNBROKEN) {
                ('`', _) => fill("<code>{}</code>", &[&inside]),
                (_, true) => fill("<span class=\"option\">⟨{}⟩</span>", &[&inside]),
                (_, false) => fill("⟨{}⟩", &[&inside]),
            });
            rest = tail;
        }
        out.push(Self::text(rest));
        out
    }

    /// JSON inside of a script: nothing in it can end the script, or be markup or a line of it.
    pub(crate) fn json(json: &str) -> Self {
        let mut out = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                '<' | '>' | '&' | '\'' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        Self(out)
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: Self) {
        self.0.push_str(&piece.0);
    }

    /// This and then another.
    pub(crate) fn and(mut self, piece: Self) -> Self {
        self.push(piece);
        self
    }

    /// The same on one line, whatever names in it hold.
    pub(crate) fn on_one_line(&self) -> Self {
        Self(self.0.replace(['\n', '\t'], "\u{fffd}"))
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The markup.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The same with a piece after the first of a mark of our own; at the front where there is none.
    pub(crate) fn with_after(&self, mark: &'static str, piece: Self) -> Self {
        match self.0.split_once(mark) {
            Some((before, after)) => Self(format!("{before}{mark}{}{after}", piece.0)),
            None => piece.and(self.clone()),
        }
    }

    /// Sections of a page that have a heading: their ids, what the headings say, and whether they are hidden without a script.
    pub(crate) fn sections(&self) -> Vec<(String, Self, bool)> {
        let of = |section: &str| {
            let (tag, rest) = section.split_once('>')?;
            let id = tag.split_once("id=\"")?.1.split_once('"')?.0;
            let own = rest.split_once("</section>").map_or(rest, |(own, _)| own);
            let (_, heading) = own.split_once("<h2>")?;
            let (heading, _) = heading.split_once("</h2>")?;
            let heading = heading.split("<span class=\"kind").next().unwrap_or(heading).trim();
            // What it says, without what it does: a link has no place in a link.
            let words = heading.split('<').enumerate();
            let words =
                words.map(|(i, p)| if i == 0 { p } else { p.split_once('>').map_or("", |(_, text)| text) });
            Some((id.to_owned(), Self(words.collect()), tag.ends_with(" hidden")))
        };
        self.0.split("<section ").skip(1).filter_map(of).collect()
    }

    /// The markup.
    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Self {
        let mut out = Self::new();
        pieces.into_iter().for_each(|p| out.push(p));
        out
    }
}

impl Part for Html {
    fn write(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl Part for str {
    fn write(&self, out: &mut String) {
        for c in self.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                // No control character means anything on a page, and some are not allowed in one.
                c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
                c => out.push(c),
            }
        }
    }
}

impl Part for &str {
    fn write(&self, out: &mut String) {
        (**self).write(out);
    }
}

impl Part for String {
    fn write(&self, out: &mut String) {
        self.as_str().write(out);
    }
}

/// A place in a drawing, to a tenth.
impl Part for f64 {
    fn write(&self, out: &mut String) {
        let x = if self.is_finite() { *self } else { 0.0 };
        // Writing to a string cannot fail.
        let _ = write!(out, "{x:.1}");
    }
}

impl Part for usize {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "{self}");
    }
}

impl Part for u64 {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "{self}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_sets_code_and_keeps_options_whole() {
        let html = |text: &str| Html::prose(text).into_string();
        assert_eq!(
            html("column `a<b`: ⟨drop=a⟩."),
            "column <code>a&lt;b</code>: <span class=\"option\">⟨drop=a⟩</span>."
        );
        for text in ["a ` b", "``", "⟨", "x⟩ ` y", "⟨⟩", "no marks"] {
            assert_eq!(html(text), text);
        }
        assert_eq!(html("` ⟨l2⟩"), "` <span class=\"option\">⟨l2⟩</span>");
        assert_eq!(html("`⟨l2⟩`<"), "<code>⟨l2⟩</code>&lt;");
        let long = format!("⟨tell={}⟩", "x".repeat(40));
        assert_eq!(html(&long), long);
    }

    #[test]
    fn text_is_escaped_and_markup_is_not_escaped_twice() {
        let bad = "<script>\"'&\u{1b}\0";
        let safe = "&lt;script&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}";
        assert_eq!(Html::text(bad).into_string(), safe);
        let inner = fill("<b title=\"{}\">{}</b>", &[&bad, &bad.to_owned()]);
        let outer = fill("<p>{}{}</p>", &[&inner, &1.25_f64]);
        assert_eq!(outer.into_string(), format!("<p><b title=\"{safe}\">{safe}</b>1.2</p>"));
        // A hole in the data is no hole.
        assert_eq!(fill("{}-{}", &[&"{}", &"x"]).into_string(), "{}-x");
    }
}
