//! Every kind of page as somebody reads it: by its contents, on a narrow screen, on paper, by keys alone; and one that was changed.

#![allow(clippy::unwrap_used)]

#[path = "common/chrome.rs"]
mod chrome;
mod common;
#[path = "common/devtools.rs"]
mod devtools;

use common::kinds::balanced;
use common::pages::every_kind;
use devtools::Page;
use leakscope_core::balance::Variant;
use leakscope_report::balance_page;
use leakscope_report::choice::Stopped;
use std::path::{Path, PathBuf};

/// A page's kind, its text and its file.
type Written = (&'static str, String, PathBuf);

/// A browser, and a file for every kind of page.
fn opened(test: &str) -> Option<(Page, Vec<Written>)> {
    let browser = chrome::browser()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let pages: Vec<_> = every_kind()
        .into_iter()
        .map(|(name, html)| {
            let file = folder.join(format!("{}.html", name.replace(' ', "-")));
            std::fs::write(&file, &html).unwrap();
            (name, html, file)
        })
        .collect();
    let first = pages[0].2.clone();
    Some((Page::open(browser, &folder.join("profile"), &first, 1400), pages))
}

#[test]
fn contents_lead_to_every_section_and_make_room() {
    let Some((mut page, pages)) = opened("contents") else { return };
    for (name, _, file) in &pages {
        page.width(1400);
        page.go(file);
        let ids = "[].map.call(document.querySelectorAll('section'), function (s) { return s.id; })";
        let ids = page.eval(ids);
        let ids: Vec<&str> = ids.as_array().unwrap().iter().map(|i| i.as_str().unwrap()).collect();
        assert!(ids.iter().all(|id| !id.is_empty()), "{name}: {ids:?}");
        let broken = page.eval(
            "[].filter.call(document.querySelectorAll('a[href^=\"#\"]'), function (a) { var t = document.getElementById(a.getAttribute('href').slice(1)); \
             return !t || !a.textContent.trim(); }).length",
        );
        assert_eq!(broken, 0, "{name}");
        let twice = page.eval(
            "(function () { var seen = {}; return [].map.call(document.querySelectorAll('[id]'), function (e) { return e.id; })\
             .filter(function (id) { var was = seen[id]; seen[id] = true; return was; }).join(' '); })()",
        );
        assert_eq!(twice, "", "{name}");
        if page.eval("!document.querySelector('.contents')") == true {
            let cards = page.eval("document.querySelectorAll('section.card:not([hidden])').length");
            assert!(cards.as_u64().unwrap() < 4, "{name} has {cards} cards and no contents");
            continue;
        }
        // Beside the page where there is room, and every visible card is in it.
        let beside = page.eval(
            "document.querySelector('.contents').getBoundingClientRect().right <= document.querySelector('main > section').getBoundingClientRect().left \
             && document.querySelector('.contents details').open",
        );
        assert_eq!(beside, true, "{name}");
        let missing = page.eval(
            "[].filter.call(document.querySelectorAll('section.card:not([hidden])'), function (s) { \
             var a = document.querySelector('.contents a[href=\"#' + s.id + '\"]'); return !a || a.parentNode.hidden; }).length",
        );
        assert_eq!(missing, 0, "{name}");
        page.width(400);
        assert_eq!(page.eval("document.querySelector('.contents details').open"), false, "{name}");
        page.eval("document.querySelector('.contents summary').focus()");
        page.key("Enter");
        assert_eq!(page.eval("document.querySelector('.contents details').open"), true, "{name}");
        page.key("Tab");
        page.key("Enter");
        let target = page.eval("location.hash");
        assert!(target.as_str().unwrap().len() > 1, "{name}: {target}");
        page.paper(true);
        assert_eq!(
            page.eval("document.querySelector('.contents').getBoundingClientRect().height"),
            0,
            "{name}"
        );
        page.paper(false);
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_page_that_was_changed_says_so() {
    let Some((mut page, pages)) = opened("changed") else { return };
    for (name, html, file) in &pages {
        page.go(file);
        assert_eq!(page.eval("document.querySelectorAll('.edited').length"), 0, "{name}");
        let mut changed = |subject: &str, text: String| {
            assert_ne!(&text, html, "{name}: {subject}");
            std::fs::write(file, text).unwrap();
            page.go(file);
            assert_eq!(
                page.eval("document.querySelectorAll('.edited[role=alert]').length"),
                1,
                "{name}: {subject}"
            );
            assert!(
                page.text("body").starts_with("This page was changed after Leakscope wrote it."),
                "{name}: {subject}"
            );
        };
        // A calmer headline, one digit, an attribute, a hidden card, the data of the script.
        changed("the title", html.replacen("<title>", "<title>Fine. ", 1));
        changed("a digit", one_digit_more(html, "<main>"));
        changed("a style", html.replacen(":root{", ":root{--x:0;", 1));
        changed(
            "a card",
            html.replacen("<section class=\"card\" id", "<section hidden class=\"card\" id", 1),
        );
        if html.contains("class=\"level\"") {
            changed("the verdict", html.replacen("<p class=\"level\">", "<p class=\"level\">Not ", 1));
        }
        if html.contains("Leakscope.data = {\"moving\": {") {
            changed("its data", one_digit_more(html, "Leakscope.data = {"));
        }
        std::fs::write(file, html).unwrap();
        page.go(file);
        assert_eq!(page.eval("document.querySelectorAll('.edited').length"), 0, "{name}");
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// The page with the first digit after a mark, that stands in its text, made another.
fn one_digit_more(html: &str, mark: &str) -> String {
    let start = html.find(mark).unwrap() + mark.len();
    let mut inside = mark != "<main>";
    let place = html[start..].char_indices().find(|&(_, c)| {
        inside = match c {
            '>' => true,
            '<' => false,
            _ => inside,
        };
        inside && c.is_ascii_digit()
    });
    let at = start + place.unwrap().0;
    let digit = html.as_bytes()[at] - b'0';
    format!("{}{}{}", &html[..at], (digit + 1) % 10, &html[at + 1..])
}

/// Words that stand on two lines, by what is read: a line may end after a hyphen, a dash or a slash between two words, nowhere else in
/// one. Left out are names from the data that no narrow screen has room for, and blocks of code, which break where they must.
const CUT_WORDS: &str = r##"(function () {
  var bad = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode()) {
    var text = walker.currentNode, owner = text.parentElement;
    if (owner.closest("script, style, svg, pre, code, textarea, option") || !owner.checkVisibility({ visibilityProperty: true })) continue;
    text.data.replace(/\S+/g, function (word, at) {
      // What may end a line ends a piece of the word.
      var pieces = word.split(/(?<=[\p{L})][-–—\/])(?=\p{L})/u);
      pieces.forEach(function (piece) {
        var start = at; at += piece.length;
        if (piece.length > 24 || piece.length < 2) return;
        range.setStart(text, start); range.setEnd(text, at);
        var tops = [].filter.call(range.getClientRects(), function (b) { return b.width > 0.5; }).map(function (b) { return b.top; });
        if (Math.max.apply(null, tops) - Math.min.apply(null, tops) > 6) bad.push(piece + " in " + owner.outerHTML.slice(0, 60));
      });
    });
  }
  return bad.slice(0, 8).join("; ");
})()"##;

/// What the test above looks for is found: a cell that is too narrow for its word, an option, a date.
#[test]
fn a_word_that_is_cut_would_be_seen() {
    let Some(browser) = chrome::browser() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("cut.html");
    let box_of = |width: u32, text: &str| {
        format!(
            "<!doctype html><title>x</title><p style=\"width:{width}px;overflow-wrap:anywhere;font:16px monospace\">{text}</p>"
        )
    };
    std::fs::write(&file, box_of(300, "whole")).unwrap();
    let mut page = Page::open(browser, &folder.join("profile"), &file, 400);
    for (width, text, cut) in [
        (300, "a whole sentence with held-out rows, and more of it", ""),
        (60, "held-out", ""),
        (60, "differentially", "differentially"),
        (70, "--sigma", "--sigma"),
        (70, "2026-11-16", "2026-11-16"),
        (70, "P-23925", "P-23925"),
    ] {
        // Narrow enough that the word, of 9.6 pixels a letter, does not fit.
        let width = if cut.is_empty() { width } else { width.min(6 * cut.len() as u32) };
        std::fs::write(&file, box_of(width, text)).unwrap();
        page.go(&file);
        let seen = page.eval(CUT_WORDS);
        let seen = seen.as_str().unwrap();
        assert!(if cut.is_empty() { seen.is_empty() } else { seen.starts_with(cut) }, "{text}: {seen}");
    }
}

/// Of a long table fifty rows are seen, on every kind of page; a button, by keys, shows the others, and paper has all.
#[test]
fn tables_of_more_than_fifty_rows_fold() {
    let Some((mut page, mut pages)) = opened("folds") else { return };
    let stds: Vec<f64> = (0..80).map(|i| 0.8 / f64::from(i + 1)).collect();
    let long_run = balance_page(&balanced(&stds, Variant::Weighted, Stopped::Iterations));
    let file = pages[0].2.with_file_name("long-run.html");
    std::fs::write(&file, &long_run).unwrap();
    pages.push(("long balance", long_run, file));
    // The table of all records draws the rows that are in sight alone.
    let long = "[].filter.call(document.querySelectorAll('table'), function (t) { \
                return !t.closest('.rows') && t.tBodies[0] && t.tBodies[0].rows.length > 50; })";
    let seen = format!(
        "{long}.map(function (t) {{ return [].filter.call(t.tBodies[0].rows, function (r) {{ return getComputedStyle(r).display !== 'none'; }}).length; }})"
    );
    let mut folded = vec![];
    for (name, _, file) in &pages {
        page.width(1000);
        page.go(file);
        page.eval("document.querySelectorAll('details').forEach(function (d) { d.open = true; })");
        let rows = page.eval(&seen);
        if rows.as_array().unwrap().is_empty() {
            continue;
        }
        assert!(rows.as_array().unwrap().iter().all(|n| *n == 50), "{name}: {rows}");
        let buttons = page.eval("document.querySelectorAll('.fold').length");
        assert_eq!(buttons, rows.as_array().unwrap().len(), "{name}");
        page.eval("document.querySelector('.fold').focus()");
        page.key("Enter");
        let open = page.eval(&seen);
        assert!(open[0].as_u64().unwrap() > 50, "{name}: {open}");
        assert_eq!(
            page.eval("document.querySelector('.fold').getAttribute('aria-expanded')"),
            "true",
            "{name}"
        );
        page.key("Enter");
        assert_eq!(page.eval(&seen)[0], 50, "{name}");
        page.paper(true);
        let paper = page.eval(&seen);
        assert!(paper.as_array().unwrap().iter().all(|n| n.as_u64().unwrap() > 50), "{name}: {paper}");
        page.paper(false);
        folded.push(*name);
    }
    assert!(folded.contains(&"comparison") && folded.contains(&"long balance"), "{folded:?}");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn every_page_fits_a_narrow_screen_and_paper() {
    let Some((mut page, pages)) = opened("narrow") else { return };
    for (name, _, file) in &pages {
        page.width(400);
        page.go(file);
        assert_eq!(page.eval("document.documentElement.scrollWidth <= innerWidth"), true, "{name}");
        let cut = page.eval(CUT_WORDS);
        assert_eq!(cut, "", "{name}: words that are broken in the middle");
        page.eval("document.querySelectorAll('details').forEach(function (d) { d.open = true; })");
        let cut = page.eval(CUT_WORDS);
        assert_eq!(cut, "", "{name}: words that are broken in the middle of what was folded");
        let pdf = page.pdf();
        assert!(pdf.starts_with("JVBERi") && pdf.len() > 10_000, "{name}");
        page.width(1000);
        page.paper(true);
        let shown = page.eval(
            "[].filter.call(document.querySelectorAll('#what-if, .explore, .tools, .print, .fold, .contents, .chips, button, input, select'), \
             function (e) { return !e.closest('thead') && !e.classList.contains('pick') && e.getBoundingClientRect().height > 0; }).map(function (e) { return e.outerHTML.slice(0, 80); }).join(' ')",
        );
        assert_eq!(shown, "", "{name}");
        page.paper(false);
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// By Tab alone a reader comes to everything that can be worked, in the order of the page, and sees where.
#[test]
fn every_page_works_by_keys_alone() {
    let Some((mut page, pages)) = opened("keys") else { return };
    for (name, _, file) in &pages {
        page.width(1000);
        page.go(file);
        let stops = page.eval(
            "(function () { var all = [].filter.call(document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]'), function (e) { \
             return !e.disabled && e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }); }); window.stops = all; return all.length; })()",
        );
        let stops = stops.as_u64().unwrap().min(60);
        for k in 0..stops {
            page.key("Tab");
            let at = page.eval("window.stops.indexOf(document.activeElement)");
            let where_ = page.eval("document.activeElement.outerHTML.slice(0, 120)");
            assert_eq!(at, k, "{name}: {where_}");
            // An outline, or a stroke of a drawing.
            let seen = page.eval(
                "(function () { var s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.stroke !== 'none' && s.stroke !== ''; })()",
            );
            assert_eq!(seen, true, "{name}: {where_}");
        }
        // Nothing that a pointer can work is out of reach.
        let out_of_reach = page.eval(
            "[].filter.call(document.querySelectorAll('[onclick], :not(.rows *) > button[tabindex=\"-1\"], a:not([href])'), function (e) { return e.getClientRects().length > 0; }).length",
        );
        assert_eq!(out_of_reach, 0, "{name}");
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// Of five thousand attributes fifty have rows; every other is found by its name, and the page is small enough to mail.
#[test]
fn a_filter_finds_each_of_five_thousand_attributes() {
    let Some((mut page, pages)) = opened("wide") else { return };
    let (_, html, file) = pages.iter().find(|p| p.0 == "wide audit").unwrap();
    assert!(html.len() < 1_000_000, "{}", html.len());
    page.width(1200);
    page.go(file);
    page.eval("document.querySelector('#attributes .rest').open = true");
    let search = |page: &mut Page, wanted: &str| {
        let typed = format!(
            "(function () {{ var i = document.querySelector('#attributes .rest input'); i.value = '{wanted}'; \
             i.dispatchEvent(new Event('input')); return i.parentNode.querySelector('[role=status]').textContent; }})()"
        );
        page.eval(&typed).as_str().unwrap().to_owned()
    };
    let shown = "[].filter.call(document.querySelectorAll('#attributes .rest pre > span'), function (e) { return e.getClientRects().length; })\
                 .map(function (e) { return e.textContent; }).join('|')";
    assert_eq!(search(&mut page, "number 4999"), "1 of 4950");
    let line = page.eval(shown);
    let line = line.as_str().unwrap();
    assert!(line.starts_with("an ordinary column, number 4999  ") && !line.contains('|'), "{line}");
    assert_eq!(search(&mut page, "no such name"), "0 of 4950");
    let several = search(&mut page, "number 77");
    let several: usize = several.strip_suffix(" of 4950").unwrap().parse().unwrap();
    assert!((111..1_000).contains(&several), "{several}");
    assert_eq!(search(&mut page, ""), "");
    assert_eq!(
        page.eval("document.querySelectorAll('#attributes .rest pre > span:not([hidden])').length"),
        4_950
    );
    // Lines that do not follow the noise say so, and only where another was chosen.
    let remark = "document.querySelector('#attributes .rest .asaudited').getClientRects().length > 0";
    assert_eq!(page.eval(remark), false);
    if page.eval("!!document.querySelector('[data-dial=sigma]')") == true {
        page.dial(123.0, 2);
        assert_eq!(page.eval(remark), true);
    }
    page.width(400);
    assert_eq!(page.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    assert_eq!(page.complaints, Vec::<String>::new());
}
