//! What a page says it is made of, so that one that was changed says so.
//!
//! SHA-256 of the style, the title, the elements of the page (names, attributes and text, in their order, as a browser reads them) and the script.
//! `script/whole.js` computes the same in the browser. A digest finds an accident or a careless edit; it is no signature.

use super::markup::Html;
use sha2::{Digest, Sha256};

/// Elements that have no end.
const VOID: [&str; 8] = ["br", "col", "hr", "img", "input", "link", "meta", "wbr"];

/// Where a page carries its digest.
const CARRIED: &str = "<meta name=\"leakscope-digest\" content=\"";
/// The navigation, which comes and goes with other results in the folder.
const NAVIGATION: &str = "nav class=\"results\"";

/// The place of a digest in the head of a page that is to be sealed.
pub(crate) fn unsealed() -> Html {
    Html::literal("<meta name=\"leakscope-digest\" content=\"\">\n")
}

/// A whole page with its digest; one that has no place for it stays as it is.
pub(crate) fn sealed(page: &str) -> String {
    match (
        digest(page),
        page.split_once(CARRIED).and_then(|(head, rest)| Some((head, rest.split_once('"')?.1))),
    ) {
        (Some(digest), Some((head, rest))) => format!("{head}{CARRIED}{digest}\"{rest}"),
        (_, _) => page.to_owned(),
    }
}

/// A page written anew, as an interface spells options. Its digest follows where it was right before: a page that was changed stays one.
pub fn rewritten_page(page: &str, write: impl Fn(&str) -> String) -> String {
    let text = write(page);
    if text == page || carried(page) != digest(page) { text } else { sealed(&text) }
}

fn carried(page: &str) -> Option<String> {
    between(page, CARRIED, "\"").map(str::to_owned)
}

/// The digest of a page in hexadecimal digits; nothing where it is none of ours.
fn digest(page: &str) -> Option<String> {
    let (head, rest) = page.split_once("<main>")?;
    let (main, rest) = rest.rsplit_once("</main>")?;
    let (style, title) = (between(head, "<style>", "</style>")?, between(head, "<title>", "</title>")?);
    let script = between(rest, "<script>", "</script>")?;
    let mut hash = Sha256::new();
    for (i, part) in [style, &plain(title), &elements(main), script].into_iter().enumerate() {
        if i > 0 {
            hash.update("\u{5}");
        }
        hash.update(part);
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The text between two marks, of which the second is sought after the first.
pub(crate) fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
}

/// Names, attributes and text of markup of our own, in the order in which they stand.
fn elements(markup: &str) -> String {
    let (mut out, mut depth, mut rest) = (String::with_capacity(markup.len()), 0_usize, markup);
    while let Some((text, after)) = rest.split_once('<') {
        // Between the cards of a page there are line ends alone.
        out.push_str(if depth > 0 { text } else { text.trim() });
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let (tag, after) = after.split_once('>').unwrap_or((after, ""));
        rest = after;
        if tag.starts_with('/') {
            depth = depth.saturating_sub(1);
            continue;
        }
        if depth == 0 && tag.starts_with(NAVIGATION) {
            rest = rest.split_once("</nav>").map_or("", |(_, rest)| rest);
            continue;
        }
        let closed = tag.ends_with('/');
        let name = start(tag.trim_end_matches('/'), &mut out);
        depth += usize::from(!closed && !VOID.contains(&name));
    }
    out.push_str(if depth > 0 { rest } else { rest.trim() });
    plain(&out)
}

/// The name of an element and its attributes; gives the name.
fn start<'a>(tag: &'a str, out: &mut String) -> &'a str {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    out.push('\u{1}');
    out.push_str(name);
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (attribute, after) = rest.split_at(end);
        let (value, after) = match after.strip_prefix("=\"") {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => ("", after),
        };
        rest = after;
        for piece in ["\u{2}", attribute, "\u{3}", value] {
            out.push_str(piece);
        }
    }
    out.push('\u{4}');
    name
}

/// Escaped text as it reads.
pub(crate) fn plain(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::html::markup::fill;
    use crate::render::html::parts::shell;

    #[test]
    fn elements_are_read_as_a_browser_reads_them() {
        let body = fill(
            "<p class=\"a\" hidden>x {}<br>y</p>\n<!-- c --><svg viewBox=\"0 0\"><path d=\"M1\"/></svg>\n",
            &[&"<&\"'>"],
        );
        let markup = "\u{1}p\u{2}class\u{3}a\u{2}hidden\u{3}\u{4}x <&\"'>\u{1}br\u{4}y\u{1}svg\u{2}viewBox\u{3}0 0\u{4}\u{1}path\u{2}d\u{3}M1\u{4}";
        assert_eq!(elements(body.as_str()), markup);
    }

    #[test]
    fn any_change_is_another_digest_but_the_navigation_is_none() {
        let page =
            sealed(&shell("t & t", &fill("<header></header>\n<p title=\"1\">0.5 or ⟨l2⟩ {}</p>\n", &[&"<"])));
        let own = digest(&page).unwrap();
        assert_eq!((own.len(), carried(&page)), (64, Some(own.clone())));
        for (was, is) in [
            ("title=\"1\"", "title=\"2\""),
            ("0.5", "0.6"),
            ("<title>t", "<title>T"),
            ("use strict", "use strict "),
            ("*{", "*  {"),
            ("<p title", "<p hidden title"),
            ("</main>", "more</main>"),
        ] {
            let changed = page.replacen(was, is, 1);
            assert!(changed != page && digest(&changed).is_some_and(|d| d != own), "{was}");
            // And stays one, however it is spelled.
            let spelled = rewritten_page(&changed, |t| t.replace("⟨l2⟩", "--l2"));
            assert_eq!(carried(&spelled), Some(own.clone()));
        }
        let with = page.replace(
            "<!--results -->",
            "<!--results audit -->\n<nav class=\"results\" aria-label=\"x\"><a href=\"y\">z</a></nav>\n",
        );
        assert_eq!(digest(&with), Some(own.clone()));
        let spelled = rewritten_page(&page, |t| t.replace("⟨l2⟩", "--l2"));
        assert!(carried(&spelled) == digest(&spelled) && digest(&spelled) != Some(own));
    }
}
