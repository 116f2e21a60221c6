//! What every page is built of: shell, header, verdict, tiles, cards, tables, lists.

use super::digest::{sealed, unsealed};
use super::markup::{Html, Part, fill};
use super::table::{Cell, numbers, table, words};
use crate::figure::Claim;
use crate::format;
use crate::verdict::{Colour, Ground, Reservation, Verdict};

const STYLE: &str = include_str!("style.css");
const WHOLE: &str = include_str!("script/whole.js");
const CONTENTS: &str = include_str!("script/contents.js");
const SCRIPT: &str = include_str!("script.js");
const PIECES: &str = include_str!("script/pieces.js");

/// Numbers and the verdict in the script: what moves and what explores rests on them.
pub(crate) const NUMBERS: &str = include_str!("script/numbers.js");
pub(crate) const VERDICT: &str = include_str!("script/verdict.js");
pub(crate) const CHARTS: &str = include_str!("script/charts.js");
pub(crate) const WHAT_IF: &str = include_str!("script/what_if.js");
pub(crate) const SHAPES: &str = include_str!("script/shapes.js");
pub(crate) const EXPLORE: &str = include_str!("script/explore.js");
pub(crate) const PICK: &str = include_str!("script/pick.js");

/// A page of fewer sections has no list of them.
const FEWEST_SECTIONS: usize = 4;

/// Where a page of a folder with several results has its navigation; between the marks stands of which kind it is.
pub(crate) const NAVIGATION: (&str, &str) = ("<!--results", "<!--/results-->");

/// A complete document: one shell for every page. It makes no request of any kind (a content security policy says so to
/// the browser) and needs no script to be read.
pub(crate) fn shell(title: &str, body: &Html) -> String {
    shell_with(title, body, Html::new())
}

/// The same with more for its one script: text of our own, and data that was made for it.
pub(crate) fn shell_with(title: &str, body: &Html, more: Html) -> String {
    let script = Html::literal("\n").and([WHOLE, SCRIPT].map(Html::literal).into_iter().collect());
    let script = script.and(more).and(Html::literal(CONTENTS)).and(Html::literal(PIECES));
    let body = with_contents(body);
    let policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    let head = fill(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\n\
         {}<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n",
        &[&Html::literal(policy), &unsealed(), &title],
    );
    let page = head
        .and(Html::literal(STYLE))
        .and(Html::literal("</style></head>\n<body>\n"))
        .and(super::chart::patterns())
        .and(fill("<main>\n<!--results --><!--/results-->\n{}</main>\n", &[&body]))
        .and(Html::literal("<script>"))
        .and(script)
        .and(Html::literal("</script>\n</body></html>\n"));
    sealed(page.as_str())
}

/// A page with a list of its sections behind its header; a short one needs none.
fn with_contents(body: &Html) -> Html {
    let sections = body.sections();
    if sections.len() < FEWEST_SECTIONS {
        return body.clone();
    }
    let one = |(id, heading, hidden): &(String, Html, bool)| {
        let hidden = if *hidden { Html::literal(" hidden") } else { Html::new() };
        fill("<li{}><a href=\"#{}\">{}</a></li>", &[&hidden, id, heading])
    };
    let list: Html = sections.iter().map(one).collect();
    let contents = fill(
        "<nav class=\"contents\" aria-label=\"Contents\"><details><summary>Contents</summary><ol>{}</ol></details></nav>\n",
        &[&list],
    );
    body.with_after("</header>\n", contents)
}

/// The top of a page: what kind of page it is, of what, and the facts in one line.
pub(crate) fn header(kind: &str, title: &str, facts: &str) -> Html {
    header_of(kind, title, &Html::text(facts))
}

/// The same with facts of markup.
pub(crate) fn header_of(kind: &str, title: &str, facts: &Html) -> Html {
    fill(
        "<header><div class=\"top\"><p class=\"eyebrow\">{}</p>\
         <button type=\"button\" class=\"print\" hidden>Print</button></div>\n\
         <h1>{}</h1><p class=\"meta\">{}</p></header>\n",
        &[&kind, &title, facts],
    )
}

/// What stands on every page that must not be published: exact numbers about the data, names of records.
fn for_the_owner() -> Html {
    fill(
        "<p class=\"meta\"><strong>{}</strong> {}</p>\n",
        &[
            &"For the owner of the data only.",
            &"This page and the files beside it hold exact numbers about the data, and records by name: keep them as you keep the \
              data. What may leave the house is what leakscope release writes, and of a private training whose ε is small enough \
              model.safetensors and network.json.",
        ],
    )
}

/// Whom a page is for: one that names no record is for more readers.
pub(crate) fn whose(redact: bool) -> Html {
    if redact { for_those_trusted() } else { for_the_owner() }
}

fn for_those_trusted() -> Html {
    fill(
        "<p class=\"meta\"><strong>{}</strong> {}</p>\n",
        &[
            &"For readers whom the owner of the data trusts.",
            &"No record is named: where one is spoken of, a number stands for it. Audits, bounds and attacks on a table leave out or merge \
              what fewer than ten records have in common, and values, levels and remarks that could single one out; pages about \
              networks and texts still list numbers of single records. The owner’s page has all of it. The numbers were computed on the \
              data without noise: this page is no release.",
        ],
    )
}

fn class(colour: Colour) -> &'static str {
    match colour {
        Colour::Green => "good",
        Colour::Amber => "care",
        Colour::Red => "bad",
    }
}

/// The verdict of any page, with what decided its colour.
pub(crate) fn judged(verdict: &Verdict) -> Html {
    let sentences: Html = verdict
        .sentences
        .iter()
        .map(|sentence| {
            let spans: Html = sentence
                .iter()
                .map(|s| {
                    if s.strong { fill("<b>{}</b>", &[&Html::prose(&s.text)]) } else { Html::prose(&s.text) }
                })
                .collect();
            fill("<p>{}</p>\n", &[&spans])
        })
        .collect();
    fill(
        "<section class=\"verdict {}\" id=\"verdict\" aria-label=\"Verdict\"><p class=\"level\">{}</p>\n{}{}</section>\n",
        &[&class(verdict.colour), &verdict.headline, &sentences, &grounds(verdict)],
    )
}

/// The numbers that decided the colour beside their limits.
fn grounds(verdict: &Verdict) -> Html {
    let Some(decided_by) = verdict.decided_by() else { return Html::new() };
    let dot = |c: Colour| Cell::html(fill("<span class=\"dot-{}\">{}</span>", &[&class(c), &c.name()]));
    let of_number = |g: &Ground| {
        vec![
            Cell::remarked_name(g.fact, g.reason),
            Cell::text(&g.shown),
            Cell::text(&g.green),
            Cell::text(&g.red),
            dot(g.colour),
        ]
    };
    let of_reservation = |r: &Reservation| {
        vec![
            Cell::remarked_name(r.fact, r.reason),
            Cell::text("yes"),
            Cell::text(if r.colour == Colour::Green { "" } else { "without any" }),
            Cell::text(if r.colour == Colour::Red { "with any" } else { "" }),
            dot(r.colour),
        ]
    };
    let open = verdict.open.iter().map(of_reservation);
    let rows: Vec<Vec<Cell>> = verdict.grounds.iter().map(of_number).chain(open).collect();
    let heads = [words("what"), numbers("here"), numbers("green"), numbers("red"), words("so")];
    fill(
        "<details class=\"grounds\"><summary>What decides this colour: {}</summary>{}\
         <p class=\"say\">The worst line decides. A page is never calmer than a number on it.</p></details>\n",
        &[&decided_by, &table("wrap stack even", "Numbers that decide this colour", &heads, &rows)],
    )
}

/// A number to remember and what it is.
pub(crate) fn tile(value: &str, name: &str) -> Html {
    tile_of(&Html::text(value), name)
}

/// The same of markup.
pub(crate) fn tile_of(value: &Html, name: &str) -> Html {
    fill("<div class=\"tile\"><strong>{}</strong><span>{}</span></div>\n", &[value, &name])
}

/// Tiles in rows without holes.
pub(crate) fn tiles(all: Vec<Html>) -> Html {
    if all.is_empty() {
        return Html::new();
    }
    let across: usize = match all.len() {
        n if n % 4 == 0 => 4,
        5 => 5,
        n if n % 3 == 0 => 3,
        _ => 4,
    };
    fill("<div class=\"tiles n{}\">\n{}</div>\n", &[&across, &all.into_iter().collect::<Html>()])
}

/// Things the reader should know; nothing where there are none.
pub(crate) fn warnings(all: &[String]) -> Html {
    if all.is_empty() {
        return Html::new();
    }
    let heading = format::counted(all.len() as u64, "warning");
    fill(
        "<section class=\"warnings\" id=\"warnings\" aria-label=\"Warnings\"><h2>{}</h2>{}</section>\n",
        &[&heading, &list(all)],
    )
}

/// What was done and asks for nothing; nothing where there is none.
pub(crate) fn notes(all: &[String]) -> Html {
    if all.is_empty() {
        return Html::new();
    }
    let heading = format::counted(all.len() as u64, "note");
    fill(
        "<section class=\"notes\" id=\"notes\" aria-label=\"Notes\"><h2>{}</h2>{}</section>\n",
        &[&heading, &list(all)],
    )
}

/// The three kinds of claim, as a tag beside a heading.
pub(crate) fn tag(claim: Claim) -> Html {
    Html::literal(match claim {
        Claim::Measured => {
            r#"<span class="kind measured" title="computed from the model and the data">measured</span>"#
        }
        Claim::Bound => {
            r#"<span class="kind proved" title="proved for every attacker of the stated kind">bound</span>"#
        }
        Claim::Observed => {
            r#"<span class="kind observed" title="what one attack achieved in trials: no guarantee">observed</span>"#
        }
    })
}

/// A panel: heading with its kinds of claim, a lead in plain words, the body.
pub(crate) fn card(id: &str, heading: &str, claims: &[Claim], lead: impl Into<Lead>, body: Html) -> Html {
    let tags: Html = claims.iter().map(|c| tag(*c)).collect();
    let lead = lead.into().0;
    let lead = if lead.is_empty() { lead } else { fill("<p class=\"lead\">{}</p>", &[&lead]) };
    fill(
        "<section class=\"card\" id=\"{}\"><h2>{} {}</h2>{}\n{}</section>\n",
        &[&id, &heading, &tags, &lead, &body],
    )
}

/// The lead of a card: text, or markup.
pub(crate) struct Lead(Html);

impl From<&str> for Lead {
    fn from(text: &str) -> Self {
        Self(Html::prose(text))
    }
}

impl From<String> for Lead {
    fn from(text: String) -> Self {
        Self(Html::prose(&text))
    }
}

impl From<Html> for Lead {
    fn from(html: Html) -> Self {
        Self(html)
    }
}

/// Names and values.
pub(crate) fn facts(rows: &[(&str, String)]) -> Html {
    let each: Html =
        rows.iter().map(|(name, value)| fill("<div><dt>{}</dt><dd>{}</dd></div>", &[name, value])).collect();
    fill("<dl class=\"facts\">{}</dl>\n", &[&each])
}

/// A list of sentences.
pub(crate) fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Html {
    let items: Html = items
        .into_iter()
        .map(|s| fill("<li>{}</li>", &[&Html::prose(&format::sentence(s.as_ref()))]))
        .collect();
    fill("<ul>{}</ul>", &[&items])
}

/// A drawing no wider than it needs to be.
pub(crate) fn narrow(drawing: Html) -> Html {
    fill("<div class=\"narrow\">{}</div>", &[&drawing])
}

/// Two things side by side.
pub(crate) fn two(left: Html, right: Html) -> Html {
    fill("<div class=\"two\"><div>{}</div><div>{}</div></div>", &[&left, &right])
}

/// A drawing beside a table.
pub(crate) fn split(left: Html, right: Html) -> Html {
    fill("<div class=\"split\"><div>{}</div><div>{}</div></div>", &[&left, &right])
}

/// A small heading.
pub(crate) fn subheading(text: &dyn Part) -> Html {
    fill("<h3>{}</h3>", &[text])
}
