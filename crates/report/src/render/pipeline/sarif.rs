//! A comparison as SARIF 2.1.0: a result for every regression, located in the document that has it.

use crate::comparison_words::{change, of};
use crate::document::comparison::Comparison;
use serde::Serialize;

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
struct Run {
    tool: Tool,
    results: Vec<Finding>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: String,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    id: &'static str,
    #[serde(rename = "shortDescription")]
    description: Message,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
struct Finding {
    #[serde(rename = "ruleId")]
    rule: &'static str,
    level: Level,
    message: Message,
    locations: [Location; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Error,
    Warning,
}

#[derive(Serialize)]
struct Location {
    #[serde(rename = "physicalLocation")]
    physical: Physical,
}

#[derive(Serialize)]
struct Physical {
    #[serde(rename = "artifactLocation")]
    artifact: Artifact,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

const COLOUR: &str = "worse-colour";
const NUMBER: &str = "worse-number";
const DEMAND: &str = "unmet-demand";

/// A comparison as SARIF 2.1.0.
pub fn comparison_sarif(c: &Comparison) -> String {
    let mut results = vec![];
    let mut add = |rule, level, text: String, file: &str| {
        let location = Location { physical: Physical { artifact: Artifact { uri: uri(file) } } };
        results.push(Finding { rule, level, message: Message { text }, locations: [location] });
    };
    let before = c.reference().map_or("", |r| r.colour.name());
    for (_, r) in c.others().filter(|(i, _)| c.is_colour_worse(*i)) {
        let text = format!("{} is {}, the reference is {before}: {}.", r.name, r.colour.name(), r.headline);
        add(COLOUR, Level::Error, text, &r.file);
    }
    for r in c.regressions() {
        let (row, result) = (r.row(), &c.results[r.result]);
        let text = format!(
            "{}: {} in {}, {} in the reference ({}).",
            r.public_name(),
            of(row, r.result),
            result.name,
            of(row, 0),
            change(row, r.result)
        );
        add(NUMBER, Level::Warning, text, &result.file);
    }
    let last = c.results.last().map_or("", |r| r.file.as_str());
    for (demand, why) in c.demands.iter().filter_map(|d| d.unmet.as_ref().map(|why| (&d.demand, why))) {
        add(DEMAND, Level::Error, format!("{demand}: {why}."), last);
    }
    let rule = |id, text: &str| Rule { id, description: Message { text: text.into() } };
    let rules = vec![
        rule(COLOUR, "The page of a result has a worse colour than that of the reference."),
        rule(NUMBER, "A number says that a result gives more away, or is good for less, than the reference."),
        rule(DEMAND, "What was demanded of the results does not hold."),
    ];
    let driver = Driver { name: "leakscope", version: c.leakscope.clone(), rules };
    crate::document(&Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [Run { tool: Tool { driver }, results }],
    })
}

/// A path as a reference to a file: what is no letter, digit or mark of a path is written in percent.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    if path.starts_with('/') {
        out.push_str("file://");
    }
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_is_a_reference() {
        assert_eq!(uri("run 2/ü.json"), "run%202/%C3%BC.json");
        assert_eq!(uri("/a/b:c.json"), "file:///a/b%3Ac.json");
    }
}
