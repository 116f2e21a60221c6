//! The page: well formed, self-contained, escaped, and free of numbers that are none.

mod common;

use common::pages::{every_kind, owned, wide_and_explored};
use common::{clinic, hostile, situations};
use leakscope_report::page;

/// Elements that have no end.
const VOID: [&str; 5] = ["meta", "link", "br", "input", "img"];

/// Checks that every tag is closed in order; returns the names of all elements. Style and script are opaque.
fn well_formed(html: &str) -> Result<Vec<String>, String> {
    let (mut open, mut seen) = (Vec::<String>::new(), Vec::new());
    let mut rest = html.strip_prefix("<!doctype html>").ok_or("no doctype")?;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        if text.contains('>') {
            return Err(format!("stray > in {text:?}"));
        }
        rest = &rest[at + 1..];
        // The two marks between which a folder's navigation goes; there are no other comments.
        if let Some(mark) = rest.strip_prefix("!--") {
            let (mark, after) = mark.split_once("-->").ok_or("unclosed comment")?;
            if !["results ", "/results"].contains(&mark) {
                return Err(format!("a comment: {mark}"));
            }
            rest = after;
            continue;
        }
        // Quoted attributes may hold anything but their quote.
        let mut quoted = false;
        let end = rest
            .char_indices()
            .find(|&(_, c)| {
                quoted ^= c == '"';
                c == '>' && !quoted
            })
            .ok_or("unclosed tag")?
            .0;
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop().ok_or(format!("</{name}> closes nothing"))?;
            if last != name {
                return Err(format!("</{name}> closes <{last}>"));
            }
            continue;
        }
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        if name.is_empty() {
            return Err(format!("no tag: <{tag}>"));
        }
        seen.push(name.clone());
        if name == "style" || name == "script" {
            let close = format!("</{name}>");
            rest = rest.split_once(&close).ok_or("unclosed style or script")?.1;
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    if rest.contains('>') {
        return Err(format!("stray > in {rest:?}"));
    }
    if open.is_empty() { Ok(seen) } else { Err(format!("left open: {open:?}")) }
}

/// What a reader sees: the text outside tags, styles and scripts.
fn visible(html: &str) -> String {
    let body = html.split_once("<body>").map_or(html, |b| b.1);
    let body = body.split_once("<script>").map_or(body, |b| b.0);
    // A number that follows the noise stands in its sentence as any other.
    let mut numbers = body.split("<span data-w");
    let first = numbers.next().unwrap_or_default().to_owned();
    let plain = |piece: &str| piece.split_once('>').map_or("", |p| p.1).replacen("</span>", "", 1);
    let body = numbers.fold(first, |text, piece| text + &plain(piece));
    let mut out = String::new();
    let mut inside = false;
    for c in body.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                out.push(' ');
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

#[test]
fn the_checker_itself_finds_faults() {
    assert!(well_formed("<!doctype html><p>a<b>c</b></p><br>").is_ok());
    for bad in [
        "<!doctype html><p>",
        "<!doctype html><p></b>",
        "<!doctype html></p>",
        "<!doctype html>1 > 0",
        "<p></p>",
    ] {
        assert!(well_formed(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_page_is_well_formed_self_contained_and_of_a_size_to_mail() {
    for (name, audit) in situations() {
        let html = page(&audit);
        let seen = well_formed(&html).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(seen.iter().filter(|s| *s == "script").count(), 1, "{name}");
        for request in ["http:", "https:", "//cdn", "@import", "src=", "<img", "<iframe", "url(h"] {
            assert!(!html.contains(request), "{name}: {request}");
        }
        assert!(html.len() < 400_000, "{name}: {} bytes", html.len());
    }
}

#[test]
fn no_number_that_is_none_is_shown_or_drawn() {
    for (name, audit) in situations() {
        let html = page(&audit);
        let body = html.split_once("<body>").unwrap().1.split_once("<script>").unwrap().0;
        assert!(!body.contains("NaN"), "{name}");
        let words = body.split(|c: char| !c.is_alphanumeric());
        for word in words {
            assert!(!["inf", "Infinity", "nan", "null"].contains(&word), "{name}: {word}");
        }
        assert!(!body.contains("±unbounded") && !body.contains("×unbounded"), "{name}");
    }
}

#[test]
fn names_from_the_data_are_escaped_everywhere() {
    let html = page(&hostile());
    well_formed(&html).unwrap();
    assert!(!html.contains("<script>alert"));
    assert!(!html.contains("alert('x')"));
    assert!(html.matches("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;").count() > 50);
}

#[test]
fn hostile_names_stay_text_on_every_kind_of_page() {
    for (name, html) in every_kind() {
        well_formed(&html).unwrap_or_else(|e| panic!("{name}: {e}"));
        let body = html.split_once("<body>").unwrap().1.rsplit_once("<script>\n").unwrap().0;
        assert!(!body.contains("<script") && !body.contains("alert('x')"), "{name}");
        assert!(!body.contains(['\u{1b}', '\u{7}', '\0']), "{name}: a control character");
        assert!(name == "account" || body.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{name}");
        for request in ["http:", "https:", "//cdn", "@import", "<iframe", "url(h"] {
            assert!(!html.contains(request), "{name}: {request}");
        }
        // The page of a folder repeats the verdicts of others.
        assert!(
            name == "index"
                || html
                    .find("class=\"verdict")
                    .is_some_and(|v| html.find("class=\"card").is_none_or(|c| v < c))
        );
    }
}

#[test]
fn five_thousand_columns_give_a_page_to_mail() {
    let html = wide_and_explored(5_000, 500);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    well_formed(&html).unwrap();
    // The worst fifty in the table, the others as lines that the filter finds.
    let card = html.split_once("id=\"attributes\"").unwrap().1.split_once("</section>").unwrap().0;
    assert_eq!(card.matches("<tr>").count(), 51);
    assert!(card.contains("4,950 more") && card.contains("number 49</") || card.contains("number 49<"));
    let inference = html.split_once("id=\"inference\"").unwrap().1.split_once("</section>").unwrap().0;
    assert_eq!(inference.matches("<tr>").count(), 51);
    // Every attribute is on the page, by name and with its numbers.
    for k in [0, 49, 50, 2_500, 4_999] {
        assert!(card.contains(&format!("number {k}")), "{k}");
    }
    assert!(
        visible(&html).contains("Of attributes, those that leak most: η of the other 4,950 is in the table")
    );
}

#[test]
fn the_owners_page_of_a_wide_release_is_one_to_mail_too() {
    let html = leakscope_report::owners_release_page(&owned(5_000));
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    let card =
        |id: &str| html.split_once(&format!("id=\"{id}\"")).unwrap().1.split_once("</section>").unwrap().0;
    for id in ["tell", "coefficients"] {
        assert!(card(id).matches("<tr>").count() <= 101 && card(id).contains("more"), "{id}");
        let whole = card(id).contains("number 4999") || card(id).contains("are in the JSON file alone");
        assert!(whole && card(id).contains("number 300"), "{id}");
    }
    // A remark about the data is a note, and no warning.
    assert!(html.contains("<section class=\"notes\"") && !html.contains("<section class=\"warnings\""));
    assert!(card("notes").contains("<code>&lt;id&gt;</code>"));
}

/// What makes a page red, amber or green stands on it without a click.
#[test]
fn every_kind_of_page_names_what_decides_its_colour() {
    for (name, html) in every_kind().into_iter().filter(|(name, _)| *name != "index") {
        let verdict =
            html.split_once("<section class=\"verdict ").unwrap().1.split_once("</section>").unwrap().0;
        let by = verdict.split_once("<summary>What decides this colour: ").map(|(_, rest)| rest);
        let by = by.unwrap_or_else(|| panic!("{name}: {verdict}")).split_once("</summary>").unwrap().0;
        assert!(by.len() > 3 && verdict.contains(by.split(": ").next().unwrap()), "{name}: {by}");
        let colour = verdict.split_once('"').unwrap().0;
        assert!(verdict.contains(&format!("<span class=\"dot-{colour}\"")), "{name}: {colour}");
    }
}

#[test]
fn ranges_and_values_of_the_data_are_not_shown() {
    let html = page(&clinic(600, 3));
    for end in ["18.1", "97.8"] {
        assert!(!visible(&html).contains(end), "{end}");
    }
}

#[test]
fn panels_come_in_order_and_absent_ones_are_left_out() {
    let all = &situations()[1];
    assert_eq!(all.0, "everything");
    let html = page(&all.1);
    let at = |id: &str| html.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    let order = [
        "who",
        "most",
        "least",
        "loss",
        "attributes",
        "whole",
        "noise",
        "score",
        "assumptions",
        "glossary",
        "model",
        "data",
        "again",
    ];
    assert!(order.windows(2).all(|w| at(w[0]) < at(w[1])));
    let html = page(&clinic(600, 3));
    assert!(!html.contains("id=\"score\"") && !html.contains("class=\"warnings\""));
    let (_, empty) = situations().into_iter().find(|s| s.0 == "nothing to list").unwrap();
    let html = page(&empty);
    for id in ["most", "least", "loss"] {
        assert!(!html.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn the_histogram_draws_every_record_and_tables_name_every_group() {
    let audit = clinic(5_000, 23);
    let html = page(&audit);
    let chart = html
        .split_once("id=\"who\"")
        .unwrap()
        .1
        .split_once("class=\"chart\"")
        .unwrap()
        .1
        .split_once("</svg>")
        .unwrap()
        .0;
    let drawn: u64 = chart
        .split("<title>")
        .skip(1)
        .map(|t| {
            let text = t.split_once(": ").unwrap().1;
            text.split_once(" record").unwrap().0.replace(',', "").parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(drawn, 5_000);
    assert!(html.contains("other (16 groups)"));
    for g in &audit.groups {
        assert!(html.contains(&format!("{}</th>", g.name)), "{}", g.name);
    }
}

#[test]
fn every_theorem_in_use_is_named_with_its_assumptions() {
    use leakscope_core::claim::Theorem;
    let text = page(&clinic(600, 3));
    for theorem in [Theorem::CramerRao, Theorem::CramerRaoRecord] {
        assert!(text.contains(theorem.source()));
    }
    assert!(text.contains("The estimate is unbiased."));
}

#[test]
fn attributes_say_what_they_mean_in_their_own_units() {
    let text = visible(&page(&clinic(600, 3)));
    assert!(text.contains(
        "An estimate, right on average, is off by at least ±81.6 years for the most exposed record (records differ by ±14.2); \
         ±364 for a typical one."
    ));
    assert!(
        text.contains("Someone who already knows the population (±14.2) gets to about ±14.2, on average")
    );
    assert!(text.contains(
        "An estimate, right on average, of which level a record has is off by at least ±2.32 for the most exposed record, \
         on a scale where 0 is no and 1 is yes (a coin toss: ±0.5)."
    ));
}

/// Writes the pages where a person can look at them: `cargo test -p leakscope-report -- --ignored`.
#[test]
#[ignore = "writes files to look at"]
fn write_pages() {
    let kinds = every_kind().into_iter();
    let situations = situations().into_iter().map(|(name, audit)| (name, page(&audit)));
    for (name, html) in situations.chain(kinds) {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{}.html", name.replace(' ', "-")));
        std::fs::write(&path, html).unwrap();
    }
}
