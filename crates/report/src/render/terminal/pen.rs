//! How text is laid out in a terminal: colours, wrapping, tables, bars.

pub(super) const BOLD: &str = "1";
pub(super) const DIM: &str = "2";
pub(super) const RED: &str = "1;31";
pub(super) const YELLOW: &str = "1;33";
pub(super) const GREEN: &str = "1;32";
pub(super) const CYAN: &str = "36";

/// Which columns of a table are set flush right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

pub(super) struct Pen {
    pub(super) width: usize,
    pub(super) colour: bool,
}

impl Pen {
    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        if self.colour { format!("\u{1b}[{style}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn heading(&self, out: &mut String, text: &str) {
        out.push_str(&format!("\n{}\n", self.paint(text, BOLD)));
    }

    /// Words wrapped to the width, every line behind `indent` spaces.
    pub(super) fn paragraph(&self, out: &mut String, indent: &str, text: &str, style: Option<&str>) {
        for line in wrapped(&clean(text), self.width.saturating_sub(indent.chars().count())) {
            let line = style.map_or_else(|| line.clone(), |s| self.paint(&line, s));
            out.push_str(&format!("{indent}{line}\n"));
        }
    }

    /// A table: the first column takes what the others leave and is cut where it does not fit; the first row is a
    /// heading. Columns are dropped from the right where nothing else helps.
    pub(super) fn table(&self, out: &mut String, sides: &[Side], rows: &[Vec<String>]) {
        let mut columns = sides.len();
        let wide = |j: usize| rows.iter().map(|r| r[j].chars().count()).max().unwrap_or(0);
        let rest = |columns: usize| (1..columns).map(|j| wide(j) + 2).sum::<usize>();
        while columns > 2 && rest(columns) + 12 > self.width {
            columns -= 1;
        }
        let first = wide(0).min(self.width.saturating_sub(rest(columns) + 2).max(8));
        for (i, row) in rows.iter().enumerate() {
            let mut line = format!("  {}", pad(&cut(&row[0], first), first, sides[0]));
            for j in 1..columns {
                line.push_str("  ");
                let cell = pad(&row[j], wide(j), sides[j]);
                let bar = cell.starts_with(['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '░']);
                let text = cell.trim_end();
                line.push_str(&if bar { self.paint(text, CYAN) } else { text.to_owned() });
                line.push_str(&" ".repeat(cell.chars().count() - text.chars().count()));
            }
            let line = line.trim_end().to_owned();
            out.push_str(&if i == 0 { self.paint(&line, DIM) } else { line });
            out.push('\n');
        }
    }
}

/// Text without what could drive a terminal: control characters and the marks that turn the reading direction.
pub(super) fn clean(text: &str) -> String {
    let harmless =
        |c: char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect()
}

pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

pub(super) fn pad(text: &str, to: usize, side: Side) -> String {
    let gap = " ".repeat(to.saturating_sub(text.chars().count()));
    match side {
        Side::Left => format!("{text}{gap}"),
        Side::Right => format!("{gap}{text}"),
    }
}

pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let used = lines[last].chars().count();
        if used > 0 && used + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if used > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines.into_iter().flat_map(|line| broken(&line, width)).collect()
}

/// A word that is longer than a line, in pieces.
pub(super) fn broken(line: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    match chars.is_empty() {
        true => vec![String::new()],
        false => chars.chunks(width.max(1)).map(|c| c.iter().collect()).collect(),
    }
}

/// A bar of `cells` characters in eighths: full blocks up to `mean`, light ones up to `value`.
pub(super) fn bar(mean: f64, value: f64, cells: usize) -> String {
    let part = |x: f64| if x.is_finite() { x.clamp(0.0, 1.0) * cells as f64 } else { 0.0 };
    let (m, v) = (part(mean), part(value));
    let full = m.floor() as usize;
    let eighths = ((m - full as f64) * 8.0).round() as usize;
    let mut out = "█".repeat(full);
    if eighths > 0 {
        out.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'][eighths - 1]);
    }
    let used = full + usize::from(eighths > 0);
    out.push_str(&"░".repeat((v.round() as usize).max(usize::from(v > 0.0)).saturating_sub(used)));
    out
}
