//! What each column was taken for, in a few lines: inferred types are shown before anything rests on them.

use leakscope::spelling::for_reader;
use leakscope_table::{Attribute, Encoding, Kind, Remark, TargetCoding};

/// Names of a list before it is cut.
const NAMED: usize = 12;
const WIDTH: usize = 80;
/// A blank at which no line ends.
const TIED: char = '\u{a0}';

/// The columns of a table by what they were taken for, wrapped.
pub(super) fn columns(encoding: &Encoding, dropped: &[String]) -> String {
    let of = |kind: Kind| encoding.attributes.iter().filter(move |a| a.kind == kind);
    let levels = |a: &Attribute| {
        let word = if a.levels.len() == 1 { "level" } else { "levels" };
        format!("{}{TIED}({}{TIED}{word})", a.name, a.levels.len())
    };
    let mut parts = vec![];
    let mut add = |heading: &str, names: Vec<String>| {
        if !names.is_empty() {
            parts.push(format!("{heading} {}", listed(&names)));
        }
    };
    add("numbers", of(Kind::Number).map(|a| a.name.clone()).collect());
    add("categories", of(Kind::Category).map(levels).collect());
    let target = &encoding.target;
    let taken = match &target.coding {
        TargetCoding::Number => "number".into(),
        TargetCoding::Count => "count".into(),
        TargetCoding::Positive => "positive number".into(),
        TargetCoding::TwoClass { low, high } => {
            format!("{} = {}, {} = {}", low.name, low.code, high.name, high.code)
        }
        TargetCoding::Classes(classes) => format!("{} classes", classes.len()),
    };
    add("target", vec![format!("{}{TIED}({})", target.name, taken.replace(' ', &TIED.to_string()))]);
    add("groups", encoding.group.iter().map(|g| format!("{}{TIED}({})", g.name, g.levels.len())).collect());
    add("weights", encoding.weights.iter().cloned().collect());
    add("id", encoding.id.iter().cloned().collect());
    add("left out", dropped.to_vec());
    let all = wrapped("columns: ", &parts.join("; "));
    // Whatever goes wrong next goes wrong because of it.
    match encoding.remarks.contains(&Remark::HeaderIsData) {
        true => format!("{all}\n{}", wrapped("warning: ", &for_reader(&Remark::HeaderIsData.to_string()))),
        false => all,
    }
}

fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    // A name must not drive the terminal.
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Words wrapped behind a heading, later lines indented to it; what is tied stays on one line.
fn wrapped(heading: &str, text: &str) -> String {
    let indent = " ".repeat(heading.chars().count());
    let mut out = heading.trim_end().to_string();
    let mut used = out.chars().count();
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > indent.len() && used + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&indent);
            out.push_str(word);
            used = indent.len() + length;
        } else {
            out.push(' ');
            out.push_str(word);
            used += 1 + length;
        }
    }
    out.replace(TIED, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_wrap_under_their_heading_and_are_cut() {
        let names: Vec<String> = (0..40).map(|k| format!("pixel_number_{k}")).collect();
        let text = wrapped("columns: ", &format!("numbers {}", listed(&names)));
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.ends_with(&["pixel_number_11", "and", "28", "more"]), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(9)) && line.as_bytes()[9] != b' ')
        );
    }
}
