//! Several results in one folder: the navigation at the top of each page, and the page that lists them.

use crate::render::html::digest::{between, plain};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{NAVIGATION, header, shell};

/// What a page shows. Pages of different kinds may stand in one folder, and are listed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageKind {
    /// What a model gives away, of a table, a network or texts.
    Audit,
    /// Records reweighted.
    Balance,
    /// Attacks on a secret of a table.
    Attack,
    /// What any attacker can guess.
    Bound,
    /// Noise for a target.
    Calibrate,
    /// ε of mechanisms.
    Account,
    /// A training run.
    Training,
    /// Records reconstructed from gradients.
    Inversion,
    /// Who took part.
    Membership,
    /// The last record, by who knows all others.
    Informed,
    /// Secrets in texts.
    Canary,
    /// A paper's tables and figures.
    Reproduction,
    /// Results side by side.
    Comparison,
    /// A model that is published.
    Release,
}

impl PageKind {
    /// All of them, in order.
    pub const ALL: [Self; 14] = [
        Self::Audit,
        Self::Balance,
        Self::Attack,
        Self::Bound,
        Self::Calibrate,
        Self::Account,
        Self::Training,
        Self::Inversion,
        Self::Membership,
        Self::Informed,
        Self::Canary,
        Self::Reproduction,
        Self::Comparison,
        Self::Release,
    ];

    /// The name of its document, without the ending.
    pub fn stem(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Balance => "balance",
            Self::Attack => "attack",
            Self::Bound => "bound",
            Self::Calibrate => "calibrate",
            Self::Account => "account",
            Self::Training => "training",
            Self::Inversion => "inversion",
            Self::Membership => "membership",
            Self::Informed => "informed",
            Self::Canary => "canary",
            Self::Reproduction => "reproduce",
            Self::Comparison => "compare",
            Self::Release => "release",
        }
    }

    /// What it is, in a word.
    fn name(self) -> String {
        match self {
            Self::Reproduction => "Reproduction".into(),
            other => capitalised(other.stem()),
        }
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A page in a folder of results, as its own text tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultPage {
    /// The file, as seen from the folder.
    pub file: String,
    /// What it shows.
    pub kind: PageKind,
    /// What it is called in lists.
    name: String,
    /// Its title.
    pub title: String,
    /// The class of its verdict's box, and the headline; absent where it has none.
    verdict: Option<(&'static str, String)>,
}

impl ResultPage {
    /// What a page says of itself; `None` where it is none of ours, or says nothing of its kind.
    pub fn read(file: &str, page: &str) -> Option<Self> {
        let (open, _) = NAVIGATION;
        let stem = between(page, open, "-->")?.trim().to_owned();
        let kind = PageKind::ALL.into_iter().find(|k| k.stem() == stem)?;
        Self::of(kind, file, page)
    }

    /// The same of a page that is known to be of a kind; `None` where it is none of ours.
    pub fn of(kind: PageKind, file: &str, page: &str) -> Option<Self> {
        if !is_ours(page) {
            return None;
        }
        let title = plain(between(page, "<title>", "</title>")?);
        // The kind stands above the title already.
        let title = title.strip_prefix("Leakscope ").unwrap_or(&title);
        let title = title.strip_prefix(&format!("{}: ", kind.stem())).unwrap_or(title).to_owned();
        let class = ["good", "care", "bad"]
            .into_iter()
            .find(|c| page.contains(&format!("<section class=\"verdict {c}\"")));
        let headline = between(page, "<p class=\"level\">", "</p>").map(plain);
        let verdict = class.zip(headline);
        Some(Self { file: file.into(), kind, name: kind.name(), title, verdict })
    }

    /// The page under a name of its own, where several of one kind are listed.
    pub fn named(self, name: &str) -> Self {
        Self { name: capitalised(name), ..self }
    }
}

/// Whether a text is a page of ours, which another may replace.
pub fn is_ours(page: &str) -> bool {
    page.contains(NAVIGATION.0) && page.contains("<title>")
}

/// A page with the navigation of its folder, in place of the one that it had. A page that is alone has none.
pub fn with_navigation(page: &str, kind: PageKind, folder: &[ResultPage], own: &str) -> String {
    let (open, close) = NAVIGATION;
    let Some((start, rest)) = page.split_once(open) else { return page.to_owned() };
    let Some((_, end)) = rest.split_once(close) else { return page.to_owned() };
    let navigation = if folder.len() > 1 { navigation(folder, own) } else { Html::new() };
    format!("{start}{open} {} -->{}{close}{end}", kind.stem(), navigation.into_string())
}

fn navigation(folder: &[ResultPage], own: &str) -> Html {
    let link = |page: &ResultPage| match page.file == own {
        true => fill("<span aria-current=\"page\">{}</span>\n", &[&page.name]),
        false => fill("<a href=\"{}\">{}</a>\n", &[&page.file, &page.name]),
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
            &[&page.file.replace(['/', '.'], "-"), &page.file, &page.name, &page.title, &verdict],
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
        let audit = with_navigation(&page("Leakscope audit: a & b"), PageKind::Audit, &[], "report.html");
        let first = ResultPage::read("audit.html", &audit).unwrap();
        assert_eq!((first.kind, first.title.as_str()), (PageKind::Audit, "a & b"));
        assert_eq!(first.verdict, Some(("bad", "Not <safe>".into())));
        assert!(!audit.contains("<nav"), "alone, it has nowhere to go");
        let attack = with_navigation(&page("Leakscope attack"), PageKind::Attack, &[], "report.html");
        let second = ResultPage::read("report.html", &attack).unwrap();
        let both = [first, second];
        let with = with_navigation(&audit, PageKind::Audit, &both, "audit.html");
        assert!(with.contains("<a href=\"report.html\">Attack</a>"));
        assert!(with.contains("<span aria-current=\"page\">Audit</span>"));
        // What was put in comes out again, whatever was there before.
        assert_eq!(with_navigation(&with, PageKind::Audit, &both, "audit.html"), with);
        assert_eq!(with_navigation(&with, PageKind::Audit, &both[..1], "audit.html"), audit);
        let index = folder_page(&both);
        assert!(index.contains("Not &lt;safe&gt;") && index.contains("a &amp; b"));
        let holiday = "<html><title>Holiday</title></html>";
        assert!(ResultPage::read("x.html", holiday).is_none() && !is_ours(holiday));
        // A release's page says nothing of where it stands.
        let release = page("Leakscope release: a model");
        assert!(ResultPage::read("report.html", &release).is_none() && is_ours(&release));
        let release = ResultPage::of(PageKind::Release, "release-1/report.html", &release).unwrap();
        assert_eq!((release.name.as_str(), release.title.as_str()), ("Release", "a model"));
        assert_eq!(release.named("guo-fig4").name, "Guo-fig4");
    }
}
