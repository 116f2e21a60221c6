//! Every kind of page by the rules of axe-core, in the light and in the dark: contrast, names, roles, order of headings.
//!
//! `test.sh` puts axe-core under `target/axe`. Where it, or a browser, is missing the test says so and passes; with `CI=true` it
//! fails.

#![allow(clippy::unwrap_used)]

#[path = "common/chrome.rs"]
mod chrome;
mod common;
#[path = "common/devtools.rs"]
mod devtools;

use common::pages::every_kind;
use devtools::Page;
use std::io::Write;
use std::path::Path;

/// The script of axe-core, where it is installed.
fn axe() -> Option<String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let file = target.join("axe/node_modules/axe-core/axe.min.js");
    let script = std::fs::read_to_string(&file).ok();
    if script.is_none() {
        let ci = std::env::var("CI").is_ok_and(|v| v == "true");
        assert!(!ci, "no axe-core at {}: test.sh installs it with npm", file.display());
        // Past the harness, which keeps what passing tests print to itself.
        let text = "SKIPPED: axe-core is not installed (./test.sh does it, where there is npm); pages were not checked by it\n";
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    script
}

const COMPLAINTS: &str = "axe.run(document, { resultTypes: ['violations'] }).then(function (found) { return found.violations.map(function (v) { \
    return v.id + ': ' + v.help + ' (' + v.nodes.length + ') ' + v.nodes.slice(0, 3).map(function (n) { return n.html.slice(0, 200) + ' ' + \
    n.any.concat(n.all, n.none).map(function (c) { return c.message; }).join('; '); }).join(' | '); }); })";

#[test]
fn every_kind_of_page_passes_axe() {
    let (Some(browser), Some(axe)) = (chrome::browser(), axe()) else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe-pages");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (mut page, mut complaints) = (None::<Page>, vec![]);
    for (name, html) in every_kind() {
        let file = folder.join(format!("{}.html", name.replace(' ', "-")));
        std::fs::write(&file, html).unwrap();
        let page = page.get_or_insert_with(|| Page::open(browser, &folder.join("profile"), &file, 1300));
        for dark in [false, true] {
            page.go(&file);
            page.dark(dark);
            // What is folded counts too.
            page.eval("document.querySelectorAll('details').forEach(function (d) { d.open = true; })");
            if !dark && page.eval("!!document.querySelector('.rows .pick')") == true {
                page.eval("document.querySelector('.rows .pick').click()");
                page.eval("document.querySelector('#who .bin').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))");
            }
            page.eval(&format!("{axe}; 0"));
            let actual = page.eval(COMPLAINTS);
            let scheme = if dark { "dark" } else { "light" };
            let actual = actual
                .as_array()
                .unwrap()
                .iter()
                .map(|v| format!("{name}, {scheme}: {}", v.as_str().unwrap()));
            complaints.extend(actual);
        }
    }
    assert!(complaints.is_empty(), "{} complaints\n{}", complaints.len(), complaints.join("\n"));
}
