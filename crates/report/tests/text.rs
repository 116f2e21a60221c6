//! The terminal summary and the JSON.

mod common;

use common::{clinic, hostile, situations};
use leakscope_report::{Audit, json, summary};

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, audit) in situations() {
        for width in [50, 80, 100] {
            for line in summary(&audit, width, false).lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: {line}");
                assert_eq!(line.trim_end(), line, "{name}: trailing blanks");
            }
        }
    }
}

#[test]
fn no_number_that_is_none_is_printed_and_names_cannot_drive_the_terminal() {
    for (name, audit) in situations() {
        let text = summary(&audit, 80, false);
        assert!(!text.contains("NaN") && !text.contains('\u{1b}'), "{name}");
        assert!(!text.split(|c: char| !c.is_alphanumeric()).any(|w| w == "inf" || w == "nan"), "{name}");
    }
    let coloured = summary(&hostile(), 80, true);
    assert!(!coloured.contains("\u{1b}[31m"));
    assert_eq!(coloured.matches('\u{1b}').count(), 2 * coloured.matches("\u{1b}[0m").count());
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let audit = clinic(600, 3);
    let coloured = summary(&audit, 80, true);
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, summary(&audit, 80, false));
}

#[test]
fn the_summary_holds_what_matters() {
    let audit = clinic(3_198, 3);
    let text = summary(&audit, 80, false);
    for part in [
        "warfarin-demo.csv, predicting dose",
        "3,198 records",
        "Attributes",
        "Groups",
        "asian",
        "cyp2c9",
        "█",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for r in &audit.records.most[..5] {
        assert!(text.contains(&r.id));
    }
    assert!(!text.contains(&audit.records.most[5].id));
}

#[test]
fn the_json_has_the_fields_that_pipelines_rely_on() {
    let audit = clinic(600, 3);
    let value: serde_json::Value = serde_json::from_str(&json(&audit)).unwrap();
    let paths = [
        "/schema",
        "/sigma",
        "/n",
        "/d",
        "/dataset/eta",
        "/model/coefficients/age",
        "/model/coefficients/(intercept)",
        "/records/eta/mean",
        "/records/eta/std",
        "/records/eta/min",
        "/records/eta/max",
        "/records/eta/p50",
        "/records/eta/p99",
        "/attributes/0/name",
        "/attributes/0/eta_mean",
        "/attributes/0/eta_max",
        "/attributes/0/eta_over_all_records",
        "/attributes/0/min_sd",
        "/groups/0/name",
        "/groups/0/n",
        "/groups/0/eta",
        "/groups/0/eta_mean",
        "/groups/0/eta_max",
        "/timings/read",
        "/timings/fit",
        "/timings/leakage",
        "/timings/report",
    ];
    for path in paths {
        let at = value.pointer(path).unwrap_or_else(|| panic!("{path}"));
        assert!(path.ends_with("name") || path == "/schema" || at.is_number(), "{path}: {at}");
    }
}

#[test]
fn the_json_reads_back_as_the_same_audit_and_is_stable() {
    for (name, audit) in situations() {
        let text = json(&audit);
        let back: Audit = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(back, audit, "{name}");
        assert_eq!(json(&back), text, "{name}");
    }
}

/// Prints a summary to look at: `cargo test -p leakscope-report -- --ignored --nocapture`.
#[test]
#[ignore = "prints text to look at"]
#[allow(clippy::print_stdout)]
fn print_summaries() {
    for (name, audit) in situations() {
        println!("──── {name}\n{}", summary(&audit, 80, false));
    }
}
