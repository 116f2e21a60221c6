//! The audit as a screenful of text.

use super::pen::{BOLD, DIM, GREEN, Pen, RED, Side, YELLOW, bar, clean, cut, pad, wrapped};
use crate::document::audit::{Audit, ScalingEffect};
use crate::document::choice::ScalingMode;
use crate::format::{self, sentence};
use crate::noise_words;
use crate::verdict::{Colour, of_audit};
use crate::words;

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
    pen.paragraph(&mut out, "", &words::title_of(audit), Some(BOLD));
    pen.paragraph(&mut out, "", &words::facts(audit).join(" · "), Some(DIM));
    out.push('\n');
    judged(audit, &pen, &mut out);
    numbers(audit, &pen, &mut out);
    attributes(audit, &pen, &mut out);
    groups(audit, &pen, &mut out);
    records(audit, &pen, &mut out);
    remarks("warning", ("!", YELLOW), &audit.warnings, &pen, &mut out);
    remarks("note", ("·", DIM), &audit.notes, &pen, &mut out);
    out
}

fn judged(audit: &Audit, pen: &Pen, out: &mut String) {
    let verdict = of_audit(audit);
    let style = match verdict.colour {
        Colour::Red => RED,
        Colour::Amber => YELLOW,
        Colour::Green => GREEN,
    };
    out.push_str(&format!("{}\n", pen.paint(&verdict.headline.to_uppercase(), style)));
    for spans in &verdict.sentences {
        let text: String = spans.iter().map(|s| s.text.as_str()).collect();
        pen.paragraph(out, "  ", &text, None);
    }
    if let Some(by) = verdict.decided_by() {
        pen.paragraph(out, "  ", &format!("What makes it {}: {by}.", verdict.colour.name()), None);
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
    let differ = |s: &&ScalingEffect| format::number(s.eta_max_given) != format::number(s.eta_max_counted);
    if let Some(s) = audit.scaling.as_ref().filter(differ) {
        let note = if s.exact { "columns scaled by their own data" } else { "a bound" };
        let other = match s.mode {
            ScalingMode::Counted => {
                ["  scaling taken as given".into(), format::number(s.eta_max_given), String::new()]
            }
            ScalingMode::Given => {
                ["  scaling counted".into(), format::number(s.eta_max_counted), note.into()]
            }
        };
        rows.insert(3, other);
    }
    if let Some(ratio) = audit.group_ratio {
        rows.push(["worst group against best".into(), format::times(ratio), "mean η".into()]);
    }
    if let Some(u) = &audit.utility {
        let without = format!("{} without noise", words::metric(u, u.without_noise));
        rows.push([cut(&clean(words::metric_name(u.metric)), 26), words::metric(u, u.at_sigma), without]);
    }
    if let Some(n) = &audit.noise {
        let isotropic = format!("isotropic noise: {}", format::number(n.cost_isotropic));
        rows.push([
            format!("cost of {} noise", noise_words::shape(n.shape)),
            format::number(n.cost),
            isotropic,
        ]);
        if n.covariance_information > 0.0 {
            let share = format!("{} of η²", format::share_at_most(n.covariance_information));
            rows.push(["  given away by its shape".into(), share, "counted in the target".into()]);
        }
    }
    if let Some(s) = &audit.score {
        let above = format::share(s.above_training_p99);
        let note = format!("{above} of {} above the training 99%", format::count(s.n));
        rows.push(["η of scored points, median".into(), format::number(s.eta.p50), note]);
    }
    for l in &audit.limits {
        let name = words::statistic_name(l.statistic);
        let name = name.strip_prefix("the ").unwrap_or(name);
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
    if audit.attributes.is_empty() && audit.label.is_none() {
        return;
    }
    let label = audit.label.as_ref().map(|l| (l, words::label_eta(l)));
    let largest = audit.attributes.iter().map(|a| a.eta_max).chain(label.map(|(_, (_, max))| max));
    let longest = largest.filter(|e| e.is_finite()).fold(0.0, f64::max);
    let part = |x: f64| if longest > 0.0 { x / longest } else { 0.0 };
    let heads = ["attribute", "mean η", "max η", "", "least error", "spread", "told"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let told = |name: &str, label: bool| {
        let tell = audit.tell.as_ref()?;
        let told = tell.attributes.iter().find(|t| t.label == label && t.attribute == name)?;
        Some(words::told_apart(told, tell.protect_at))
    };
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
            told(&a.name, false).unwrap_or_default(),
        ]);
    }
    if let Some((label, (mean, max))) = label {
        let place = audit.attributes.iter().take(ATTRIBUTES).take_while(|a| a.eta_max >= max).count();
        let spread =
            label.population_sd.map_or_else(|| "0 or 1".into(), |s| format!("±{}", format::number(s)));
        let row = vec![
            clean(&format!("{} (label)", label.name)),
            format::number(mean),
            format::number(max),
            bar(part(mean), part(max), 14),
            format::plus_minus(&format::bound(&label.min_sd), None),
            spread,
            told(&label.name, true).unwrap_or_default(),
        ];
        rows.insert(1 + place, row);
    }
    if audit.tell.is_none() {
        rows.iter_mut().for_each(|row| row.truncate(6));
    }
    pen.heading(out, "Attributes, most exposed first");
    use Side::{Left, Right};
    pen.table(out, &[Left, Right, Right, Left, Right, Right, Right][..rows[0].len()], &rows);
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

fn remarks(kind: &str, (mark, style): (&str, &str), all: &[String], pen: &Pen, out: &mut String) {
    if all.is_empty() {
        return;
    }
    pen.heading(out, &format::counted(all.len() as u64, kind));
    for remark in all {
        for (i, line) in wrapped(&clean(&sentence(remark)), pen.width.saturating_sub(4)).iter().enumerate() {
            let mark = if i == 0 { pen.paint(mark, style) } else { " ".to_owned() };
            out.push_str(&format!("  {mark} {line}\n"));
        }
    }
}

fn more(out: &mut String, pen: &Pen, all: usize, shown: usize) {
    if all > shown {
        out.push_str(&format!("  {}\n", pen.paint(&format!("and {} more", all - shown), DIM)));
    }
}
