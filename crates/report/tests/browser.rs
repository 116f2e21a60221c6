//! Every kind of page in a real browser: it opens from disk, its script runs to the end, nothing is complained about.

#![allow(clippy::unwrap_used)]

#[path = "common/chrome.rs"]
mod chrome;
mod common;

use common::pages::every_kind;
use std::path::Path;

/// A reader who sorts by every heading, filters every table, and moves over every chart.
const READER: &str = r#"<script>
    var notes = [];
    document.querySelectorAll("thead button").forEach(function (button) { button.click(); });
    document.querySelectorAll(".tools input").forEach(function (input) {
      input.value = "no such thing"; input.dispatchEvent(new Event("input"));
      var status = input.parentNode.querySelector("[role=status]").textContent;
      notes.push(/^0 of \d+$/.test(status) ? "filtered" : "NOT FILTERED " + status);
    });
    document.querySelectorAll(".chart [data-tip]").forEach(function (mark) {
      mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
      notes.push(document.getElementById("tip").className === "on" ? "hovered" : "NOT HOVERED");
    });
    document.body.setAttribute("data-notes", notes.join(" "));
    document.body.setAttribute("data-end", "reached");
    </script></body>"#;

#[test]
fn every_kind_of_page_runs_its_script_without_a_message() {
    let Some(browser) = chrome::browser() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, html) in every_kind() {
        let file = folder.join(format!("{}.html", name.replace(' ', "-")));
        assert_eq!(html.matches("</body>").count(), 1, "{name}");
        std::fs::write(&file, html.replace("</body>", READER)).unwrap();
        let opened = chrome::open(browser, &folder.join("profile"), &file);
        assert_eq!(chrome::complaint(&opened), None, "{name}");
        let document = String::from_utf8_lossy(&opened.stdout);
        assert!(document.contains("data-end=\"reached\""), "{name}: the script stopped");
        assert!(document.contains("<div id=\"tip\""), "{name}: the page's own script did not run");
        let notes =
            document.split("data-notes=\"").nth(1).and_then(|r| r.split('"').next()).unwrap_or_default();
        assert!(!notes.contains("NOT"), "{name}: {notes}");
    }
}

#[test]
fn an_error_on_a_page_would_be_seen() {
    let Some(browser) = chrome::browser() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-broken");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("broken.html");
    std::fs::write(&file, "<!doctype html><title>x</title><script>undefined_function()</script>").unwrap();
    assert!(chrome::complaint(&chrome::open(browser, &folder.join("profile"), &file)).is_some());
}
