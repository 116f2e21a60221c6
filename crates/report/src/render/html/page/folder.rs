//! Several results in one folder: the navigation at the top of each page, and the page that lists them.

use crate::render::html::digest::{between, plain};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{NAVIGATION, header, shell};

/// A page in a folder of results, as its own text tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultPage {
    /// The file, as seen from the folder.
    pub file: String,
    /// The document that it shows, without its ending: `audit`, `attack`.
    pub kind: String,
    /// Its title.
    pub title: String,
    /// The class of its verdict's box, and the headline; absent where it has none.
    verdict: Option<(&'static str, String)>,
}

impl ResultPage {
    /// What a page says of itself; `None` where it is none of ours.
    pub fn read(file: &str, page: &str) -> Option<Self> {
        let (open, _) = NAVIGATION;
        let kind = between(page, open, "-->")?.trim().to_owned();
        let title = plain(between(page, "<title>", "</title>")?);
        // The kind stands above the title already.
        let title = title.strip_prefix("Leakscope ").unwrap_or(&title);
        let title = title.strip_prefix(&format!("{kind}: ")).unwrap_or(title).to_owned();
        let class = ["good", "care", "bad"]
            .into_iter()
            .find(|c| page.contains(&format!("<section class=\"verdict {c}\"")));
        let headline = between(page, "<p class=\"level\">", "</p>").map(plain);
        Some(Self { file: file.into(), kind, title, verdict: class.zip(headline) })
    }

    /// What it is, in a word or two.
    fn name(&self) -> String {
        match self.kind.as_str() {
            "reproduce" => "Reproduction".into(),
            kind => {
                let mut letters = kind.chars();
                letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default()
            }
        }
    }
}

/// A page with the navigation of its folder, in place of the one that it had. A page that is alone has none.
pub fn with_navigation(page: &str, kind: &str, folder: &[ResultPage], own: &str) -> String {
    let (open, close) = NAVIGATION;
    let Some((start, rest)) = page.split_once(open) else { return page.to_owned() };
    let Some((_, end)) = rest.split_once(close) else { return page.to_owned() };
    let navigation = if folder.len() > 1 { navigation(folder, own) } else { Html::new() };
    format!("{start}{open} {kind} -->{}{close}{end}", navigation.into_string())
}

fn navigation(folder: &[ResultPage], own: &str) -> Html {
    let link = |page: &ResultPage| match page.file == own {
        true => fill("<span aria-current=\"page\">{}</span>\n", &[&page.name()]),
        false => fill("<a href=\"{}\">{}</a>\n", &[&page.file, &page.name()]),
    };
    let links: Html = folder.iter().map(link).collect();
    fill(
        "\n<nav class=\"results\" aria-label=\"Results in this folder\"><a href=\"index.html\">All results</a>\n{}</nav>\n",
        &[&links],
    )
}

/// The page that lists the results of a folder.
pub fn folder_page(folder: &[ResultPage]) -> String {
    let one = |page: &ResultPage| {
        let verdict = match &page.verdict {
            Some((class, headline)) => {
                fill("<p class=\"dot-{}\"><b>{}</b></p>\n", &[class, &headline.as_str()])
            }
            None => Html::new(),
        };
        fill(
            "<section class=\"card\" id=\"{}\"><h2><a href=\"{}\">{}</a></h2><p class=\"lead\">{}</p>\n{}</section>\n",
            &[&page.file.replace(['/', '.'], "-"), &page.file, &page.name(), &page.title, &verdict],
        )
    };
    let cards: Html = folder.iter().map(one).collect();
    let facts = crate::format::counted(folder.len() as u64, "page");
    shell("Leakscope results", &header("Leakscope", "Results in this folder", &facts).and(cards))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str) -> String {
        let verdict = "<section class=\"verdict bad\" aria-label=\"Verdict\"><p class=\"level\">Not &lt;safe&gt;</p></section>";
        shell(title, &Html::literal(verdict))
    }

    #[test]
    fn a_page_tells_what_it_is_and_carries_the_navigation_of_its_folder() {
        let audit = with_navigation(&page("Leakscope audit: a & b"), "audit", &[], "report.html");
        let first = ResultPage::read("audit.html", &audit).unwrap();
        assert_eq!((first.kind.as_str(), first.title.as_str()), ("audit", "a & b"));
        assert_eq!(first.verdict, Some(("bad", "Not <safe>".into())));
        assert!(!audit.contains("<nav"), "alone, it has nowhere to go");
        let attack = with_navigation(&page("Leakscope attack"), "attack", &[], "report.html");
        let second = ResultPage::read("report.html", &attack).unwrap();
        let both = [first, second];
        let with = with_navigation(&audit, "audit", &both, "audit.html");
        assert!(with.contains("<a href=\"report.html\">Attack</a>"));
        assert!(with.contains("<span aria-current=\"page\">Audit</span>"));
        // What was put in comes out again, whatever was there before.
        assert_eq!(with_navigation(&with, "audit", &both, "audit.html"), with);
        assert_eq!(with_navigation(&with, "audit", &both[..1], "audit.html"), audit);
        let index = folder_page(&both);
        assert!(index.contains("Not &lt;safe&gt;") && index.contains("a &amp; b"));
        assert!(ResultPage::read("x.html", "<html><title>Holiday</title></html>").is_none());
    }
}
