//! The page in a real browser: it opens from disk, its script runs, it asks nothing of the network.
//!
//! Where no browser is installed the test says so and passes; with `CI=true` it fails.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;

#[path = "../../report/tests/common/chrome.rs"]
mod chrome;

use chrome::{browser, open};

#[test]
fn the_page_opens_and_its_script_runs() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    folder.run("demo --rows 800 --seed 3 --out demo").expect(0);
    let page = folder.read("demo/report.html");
    let opened = open(browser, &folder.path("profile"), &folder.path("demo/report.html"));
    let (document, log) = (String::from_utf8_lossy(&opened.stdout), String::from_utf8_lossy(&opened.stderr));
    assert!(opened.status.success(), "{log}");
    for complaint in ["CONSOLE", "Uncaught", "net::ERR"] {
        assert!(!log.contains(complaint), "{log}");
    }
    assert!(document.contains("class=\"verdict "), "no verdict in {document}");
    // What only the script adds to the document: hover texts, headings to click on, a filter.
    for added in ["<div id=\"tip\"", "data-tip=\"", "<button type=\"button\">", "<div class=\"tools\">"] {
        assert!(!page.contains(added), "{added} is there without the script");
        assert!(document.contains(added), "{added} is missing: the script did not run");
    }
    assert!(document.matches("<svg").count() >= 4, "charts are missing");
}

#[test]
fn tables_sort_and_filter() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    folder.run("demo --rows 800 --seed 3 --out demo").expect(0);
    // A reader who clicks on every heading, and filters by the first cell: what each table then shows.
    let reader = r#"<script>
        var said = [];
        document.querySelectorAll("table.sortable").forEach(function (table) {
          table.querySelectorAll("thead button").forEach(function (button) {
            var head = button.parentNode, i = head.cellIndex;
            button.click();
            var rows = Array.prototype.slice.call(table.tBodies[0].rows);
            var values = rows.map(function (r) { return r.cells[i].getAttribute("data-v"); });
            var numbers = values.filter(function (v) { return v !== null; }).map(Number);
            var sign = head.getAttribute("aria-sort") === "descending" ? -1 : 1;
            var ordered = numbers.every(function (v, k) { return k === 0 || sign * (v - numbers[k - 1]) >= 0; });
            said.push(ordered ? "ordered" : "NOT ORDERED");
          });
        });
        document.querySelectorAll(".tools input").forEach(function (input) {
          var rows = input.parentNode.parentNode.querySelectorAll("table.filterable tbody tr");
          input.value = rows[0].textContent.trim().split(/\s+/)[0];
          input.dispatchEvent(new Event("input"));
          var left = Array.prototype.filter.call(rows, function (r) { return !r.hidden; }).length;
          said.push(left >= 1 && left < rows.length && !rows[0].hidden ? "filtered" : "NOT FILTERED");
        });
        document.body.setAttribute("data-said", said.join(" "));
        </script></body>"#;
    let page = folder.read("demo/report.html");
    assert_eq!(page.matches("</body>").count(), 1);
    folder.write("demo/read.html", page.replace("</body>", reader));
    let opened = open(browser, &folder.path("profile"), &folder.path("demo/read.html"));
    let document = String::from_utf8_lossy(&opened.stdout);
    let outcome =
        document.split("data-said=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    assert!(!outcome.contains("NOT"), "{outcome}");
    assert!(outcome.matches("ordered").count() >= 10, "{outcome}");
    assert!(outcome.contains("filtered"), "{outcome}");
}

#[test]
fn an_error_on_the_page_would_be_seen() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new();
    folder.write("broken.html", "<!doctype html><title>x</title><script>undefined_function()</script>");
    let opened = open(browser, &folder.path("profile"), &folder.path("broken.html"));
    let log = String::from_utf8_lossy(&opened.stderr);
    assert!(log.contains("CONSOLE") || log.contains("Uncaught"), "the browser reports no errors: {log}");
}
