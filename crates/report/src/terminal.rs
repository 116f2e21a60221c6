//! The audit as a screenful of text.

use crate::audit::Audit;
use crate::html::sentence;
use crate::verdict::{Level, verdict};
use crate::{format, words};

const ATTRIBUTES: usize = 10;
const GROUPS: usize = 12;
const RECORDS: usize = 5;

/// The audit for a terminal of `width` columns: verdict, main numbers, attributes, groups, most exposed records,
/// warnings. With `colour`, ANSI escapes mark what matters; without, it is plain text.
///
/// Names from the data are printed without control characters, so that none of them can drive the terminal.
pub fn summary(audit: &Audit, width: usize, colour: bool) -> String {
    let pen = Pen { width: width.clamp(40, 120), colour };
    let mut out = String::new();
    pen.paragraph(&mut out, "", &words::title(audit), Some(BOLD));
    pen.paragraph(&mut out, "", &words::facts(audit).join(" · "), Some(DIM));
    out.push('\n');
    judged(audit, &pen, &mut out);
    numbers(audit, &pen, &mut out);
    attributes(audit, &pen, &mut out);
    groups(audit, &pen, &mut out);
    records(audit, &pen, &mut out);
    warnings(audit, &pen, &mut out);
    out
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "1;31";
const YELLOW: &str = "1;33";
const GREEN: &str = "1;32";
const CYAN: &str = "36";

/// Which columns of a table are set flush right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

struct Pen {
    width: usize,
    colour: bool,
}

impl Pen {
    fn paint(&self, text: &str, style: &str) -> String {
        if self.colour { format!("\u{1b}[{style}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn heading(&self, out: &mut String, text: &str) {
        out.push_str(&format!("\n{}\n", self.paint(text, BOLD)));
    }

    /// Words wrapped to the width, every line behind `indent` spaces.
    fn paragraph(&self, out: &mut String, indent: &str, text: &str, style: Option<&str>) {
        for line in wrapped(&clean(text), self.width.saturating_sub(indent.chars().count())) {
            let line = style.map_or_else(|| line.clone(), |s| self.paint(&line, s));
            out.push_str(&format!("{indent}{line}\n"));
        }
    }

    /// A table: the first column takes what the others leave and is cut where it does not fit; the first row is a
    /// heading. Columns are dropped from the right where nothing else helps.
    fn table(&self, out: &mut String, sides: &[Side], rows: &[Vec<String>]) {
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
pub(crate) fn clean(text: &str) -> String {
    let harmless =
        |c: char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect()
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn pad(text: &str, to: usize, side: Side) -> String {
    let gap = " ".repeat(to.saturating_sub(text.chars().count()));
    match side {
        Side::Left => format!("{text}{gap}"),
        Side::Right => format!("{gap}{text}"),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
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
fn broken(line: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    match chars.is_empty() {
        true => vec![String::new()],
        false => chars.chunks(width.max(1)).map(|c| c.iter().collect()).collect(),
    }
}

/// A bar of `cells` characters in eighths: full blocks up to `mean`, light ones up to `value`.
fn bar(mean: f64, value: f64, cells: usize) -> String {
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

fn judged(audit: &Audit, pen: &Pen, out: &mut String) {
    let verdict = verdict(audit);
    let style = match verdict.level {
        Level::OverLimit | Level::NotProtected => RED,
        Level::NoNoise | Level::Thin => YELLOW,
        Level::Protected | Level::Incomparable => GREEN,
    };
    out.push_str(&format!("{}\n", pen.paint(&verdict.level.label().to_uppercase(), style)));
    for spans in &verdict.sentences {
        let text: String = spans.iter().map(|s| s.text.as_str()).collect();
        pen.paragraph(out, "  ", &text, None);
    }
}

fn numbers(audit: &Audit, pen: &Pen, out: &mut String) {
    let (eta, r) = (&audit.records.eta, &audit.records);
    let most = r.most.first().map(|m| format!("record {}", cut(&clean(&m.id), 24))).unwrap_or_default();
    let mut rows: Vec<[String; 3]> = vec![
        [
            "η of a record, median".into(),
            format::number(eta.p50),
            format!("mean {}", format::number(eta.mean)),
        ],
        ["η of a record, 99%".into(), format::number(eta.p99), String::new()],
        ["η of a record, largest".into(), format::number(eta.max), most],
        ["η of the whole data set".into(), format::number(audit.dataset.eta), String::new()],
        ["records that stand out".into(), format::count(r.stand_out), "above 3 × the median".into()],
    ];
    if let Some(ratio) = audit.group_ratio {
        rows.push(["worst group against best".into(), format::times(ratio), "mean η".into()]);
    }
    if let Some(u) = &audit.utility {
        let without = format!("{} without noise", words::metric(u, u.without_noise));
        rows.push([cut(&clean(words::metric_name(u)), 26), words::metric(u, u.at_sigma), without]);
    }
    if let Some(s) = &audit.score {
        let above = format::share(s.above_training_p99);
        let note = format!("{above} of {} above the training 99%", format::count(s.n));
        rows.push(["η of scored points, median".into(), format::number(s.eta.p50), note]);
    }
    for l in &audit.limits {
        let name = words::statistic_name(&l.statistic);
        let name = name.strip_prefix("the ").unwrap_or(&name);
        let mark = if l.ok { "✓" } else { "✗" };
        let relation = if l.ok { "within" } else { "above" };
        let limit = format!("{relation} the limit of {}", format::setting(l.limit));
        let name = cut(&clean(name), 26);
        rows.push([format!("{mark} {name}"), format::number(l.value), limit]);
    }
    pen.heading(out, "Numbers");
    let wide = |j: usize| rows.iter().map(|r| r[j].chars().count()).max().unwrap_or(0);
    let (a, b) = (wide(0), wide(1));
    for [name, value, note] in &rows {
        let value = pen.paint(&pad(value, b, Side::Right), BOLD);
        let room = pen.width.saturating_sub(a + b + 6);
        let note = match note.is_empty() || room < 2 {
            true => String::new(),
            false => format!("  {}", pen.paint(&cut(note, room), DIM)),
        };
        out.push_str(&format!("  {}  {value}{note}\n", pad(name, a, Side::Left)));
    }
}

fn attributes(audit: &Audit, pen: &Pen, out: &mut String) {
    if audit.attributes.is_empty() {
        return;
    }
    let longest = audit.attributes.iter().map(|a| a.eta_max).filter(|e| e.is_finite()).fold(0.0, f64::max);
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let heads = ["attribute", "mean η", "max η", "", "least error", "spread"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for a in audit.attributes.iter().take(ATTRIBUTES) {
        let spread = match words::is_category(a) {
            true => "0 or 1".to_owned(),
            false => words::spread(a).map(|s| format!("±{}", format::number(s))).unwrap_or_default(),
        };
        rows.push(vec![
            clean(&a.name),
            format::number(a.eta_mean),
            format::number(a.eta_max),
            bar(part(a.eta_mean), part(a.eta_max), 14),
            cut(&clean(&words::smallest_error(a)), 18),
            spread,
        ]);
    }
    pen.heading(out, "Attributes, most exposed first");
    use Side::{Left, Right};
    pen.table(out, &[Left, Right, Right, Left, Right, Right], &rows);
    more(out, pen, audit.attributes.len(), ATTRIBUTES);
}

fn groups(audit: &Audit, pen: &Pen, out: &mut String) {
    if audit.groups.is_empty() {
        return;
    }
    let by = clean(audit.data.group.as_deref().unwrap_or("group"));
    let worst = audit.groups.iter().map(|g| g.eta_mean).filter(|e| e.is_finite()).fold(0.0, f64::max);
    let mut shown: Vec<_> = audit.groups.iter().collect();
    shown.sort_by(|a, b| b.eta_mean.total_cmp(&a.eta_mean));
    let mut rows = vec![vec![by, "records".into(), "mean η".into(), "max η".into(), String::new()]];
    for g in shown.iter().take(GROUPS) {
        rows.push(vec![
            clean(&g.name),
            format::count(g.n),
            format::number(g.eta_mean),
            format::number(g.eta_max),
            bar(if worst > 0.0 { g.eta_mean / worst } else { 0.0 }, 0.0, 14),
        ]);
    }
    pen.heading(out, "Groups, worst mean first");
    use Side::{Left, Right};
    pen.table(out, &[Left, Right, Right, Right, Left], &rows);
    more(out, pen, audit.groups.len(), GROUPS);
}

fn records(audit: &Audit, pen: &Pen, out: &mut String) {
    let most = &audit.records.most;
    if most.is_empty() {
        return;
    }
    let median = audit.records.eta.p50;
    let heads = ["record", "η", "× median", "loss", "loss rank", "most exposed attribute"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for r in most.iter().take(RECORDS) {
        rows.push(vec![
            clean(&r.id),
            format::number(r.eta),
            format::times(if median > 0.0 { r.eta / median } else { 1.0 }),
            format::number(r.loss),
            format::share(r.loss_rank),
            cut(&clean(r.most_exposed_attribute.as_ref().map_or("", |a| &a.0)), 22),
        ]);
    }
    pen.heading(out, "Most exposed records");
    use Side::{Left, Right};
    pen.table(out, &[Left, Right, Right, Right, Right, Left], &rows);
    pen.paragraph(out, "  ", &words::missed(audit), Some(DIM));
}

fn warnings(audit: &Audit, pen: &Pen, out: &mut String) {
    if audit.warnings.is_empty() {
        return;
    }
    pen.heading(out, &format::counted(audit.warnings.len() as u64, "warning"));
    for w in &audit.warnings {
        for (i, line) in wrapped(&clean(&sentence(w)), pen.width.saturating_sub(4)).iter().enumerate() {
            let mark = if i == 0 { pen.paint("!", YELLOW) } else { " ".to_owned() };
            out.push_str(&format!("  {mark} {line}\n"));
        }
    }
}

fn more(out: &mut String, pen: &Pen, all: usize, shown: usize) {
    if all > shown {
        out.push_str(&format!("  {}\n", pen.paint(&format!("and {} more", all - shown), DIM)));
    }
}
