//! A comparison as JUnit XML: a test case for every number of every result, a failure where it got worse.

use crate::comparison_words::{change, of};
use crate::document::comparison::{Change, Comparison, public_name};
use std::fmt::Write;

struct Case {
    class: String,
    name: String,
    failure: Option<String>,
}

/// A comparison as JUnit XML.
pub fn comparison_junit(c: &Comparison) -> String {
    let cases = cases(c);
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", cases.len());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"leakscope compare\" {counts}>\n\
         <testsuite name=\"leakscope compare {}\" {counts} skipped=\"0\" timestamp=\"{}\">\n",
        c.kind.name(),
        escaped(c.created.trim_end_matches('Z'))
    );
    for case in cases {
        let _ =
            write!(out, "<testcase classname=\"{}\" name=\"{}\"", escaped(&case.class), escaped(&case.name));
        match case.failure {
            None => out.push_str("/>\n"),
            Some(why) => {
                let _ =
                    writeln!(out, "><failure message=\"{}\" type=\"regression\"/></testcase>", escaped(&why));
            }
        }
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

fn cases(c: &Comparison) -> Vec<Case> {
    let mut all = vec![];
    let before = c.reference().map_or("", |r| r.colour.name());
    for (i, result) in c.others() {
        let failure = c
            .is_colour_worse(i)
            .then(|| format!("{}, the reference is {before}: {}", result.colour.name(), result.headline));
        all.push(Case { class: result.name.clone(), name: "colour".into(), failure });
        for section in &c.sections {
            for (place, row) in section.rows.iter().enumerate() {
                let failure = (row.change(i) == Change::Worse).then(|| {
                    format!("{} in the reference, now {} ({})", of(row, 0), of(row, i), change(row, i))
                });
                let name = public_name(section, place);
                all.push(Case { class: result.name.clone(), name, failure });
            }
        }
    }
    let demands = c.demands.iter();
    all.extend(demands.map(|d| Case {
        class: "fail-on".into(),
        name: d.demand.clone(),
        failure: d.unmet.clone(),
    }));
    all
}

/// Text in an attribute; characters that XML has no place for become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\r' | '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_an_attribute_is_markup() {
        assert_eq!(
            escaped("<a b=\"1\" c='2'>&\u{0}\n\u{ffff}"),
            "&lt;a b=&quot;1&quot; c=&apos;2&apos;&gt;&amp;\u{fffd} \u{fffd}"
        );
    }
}
