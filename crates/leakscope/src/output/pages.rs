//! Pages of a folder: the last one is `report.html`, those of other results keep theirs under the name of their
//! document, and `index.html` lists them once there are several.

use super::{Folder, Pending};
use crate::Result;
use leakscope_report::{ResultPage, folder_page, with_navigation};
use std::fs;
use std::path::Path;

/// The page that a command leaves.
pub const PAGE: &str = "report.html";
/// The page that lists the others.
const INDEX: &str = "index.html";
/// Documents whose pages may stand in one folder, in the order in which they are listed.
const KINDS: [&str; 14] = [
    "audit",
    "balance",
    "attack",
    "bound",
    "calibrate",
    "account",
    "training",
    "inversion",
    "membership",
    "informed",
    "canary",
    "reproduce",
    "compare",
    "release",
];

/// A page that is in the folder, with its text.
struct PageFile {
    page: ResultPage,
    text: String,
}

impl Folder {
    /// Writes the page of a document (`audit` of `audit.json`) under a temporary name. The page of another document
    /// that was here stays, under the name of its document, and every page leads to the others.
    pub fn page(&self, pending: &mut Pending, kind: &str, page: &str) -> Result<()> {
        let own = with_navigation(page, kind, &[], PAGE);
        let mut all: Vec<PageFile> = self.pages().into_iter().filter(|f| f.page.kind != kind).collect();
        // What was the page until now makes room.
        for file in all.iter_mut().filter(|f| f.page.file == PAGE) {
            file.page.file = format!("{}.html", file.page.kind);
        }
        all.extend(ResultPage::read(PAGE, &own).map(|page| PageFile { page, text: own.clone() }));
        if all.len() < 2 {
            return self.text(pending, PAGE, &own);
        }
        let earlier = self.path.join(format!("{kind}.html"));
        if is_ours(&earlier) {
            pending.outdated.push(earlier);
        }
        self.navigable(pending, all)
    }

    /// Lists a release, which has a folder of its own and a page that leads nowhere, among the pages here.
    pub fn list_releases(&self, pending: &mut Pending) -> Result<()> {
        let all = self.pages();
        if all.iter().all(|f| f.page.kind == "release") {
            return Ok(());
        }
        self.navigable(pending, all)
    }

    /// Writes all pages with their navigation, and the one that lists them.
    fn navigable(&self, pending: &mut Pending, mut all: Vec<PageFile>) -> Result<()> {
        let place = |f: &PageFile| KINDS.iter().position(|k| *k == f.page.kind).unwrap_or(KINDS.len());
        all.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.page.file.cmp(&b.page.file)));
        let listed: Vec<ResultPage> = all.iter().map(|f| f.page.clone()).collect();
        for PageFile { page, text } in all.iter().filter(|f| f.page.kind != "release") {
            let text = with_navigation(text, &page.kind, &listed, &page.file);
            self.text(pending, &page.file, &text)?;
        }
        self.text(pending, INDEX, &folder_page(&listed))
    }

    /// Our pages in the folder, and those of releases in folders of their own.
    fn pages(&self) -> Vec<PageFile> {
        let here = KINDS.iter().map(|kind| format!("{kind}.html")).chain([PAGE.to_owned()]);
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let releases = entries
            .filter(|e| e.path().join("release.json").is_file())
            .map(|e| format!("{}/{PAGE}", e.file_name().to_string_lossy()));
        let read = |file: String| {
            let text = fs::read_to_string(self.path.join(&file)).ok()?;
            let mut page = ResultPage::read(&file, &text)?;
            // A release's page says nothing of where it stands: it may leave the house.
            if file.contains('/') {
                page.kind = "release".into();
                // The kind stands above the title already.
                if let Some(title) = page.title.strip_prefix("release: ") {
                    page.title = title.to_owned();
                }
            }
            (!page.kind.is_empty()).then_some(PageFile { page, text })
        };
        here.chain(releases).filter_map(read).collect()
    }
}

/// Whether a file is a page of ours, which may be replaced.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    fs::read_to_string(path).is_ok_and(|text| ResultPage::read(&name, &text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_table::RecordsFormat;

    fn shown(title: &str) -> String {
        // A page with the marks that every page has.
        format!("<html><title>{title}</title><main>\n<!--results --><!--/results-->\n</main></html>")
    }

    #[test]
    fn no_result_takes_the_place_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let put = |kind: &str, title: &str| {
            let folder = Folder::open(dir.path(), RecordsFormat::Parquet).unwrap();
            let mut pending = Pending::default();
            folder.page(&mut pending, kind, &shown(title)).unwrap();
            folder.publish(pending).unwrap()
        };
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        put("audit", "Leakscope audit one");
        assert!(read(PAGE).contains("audit one") && !dir.path().join(INDEX).exists());
        put("audit", "Leakscope audit two");
        assert!(read(PAGE).contains("audit two") && !dir.path().join("audit.html").exists());
        put("attack", "Leakscope attack one");
        assert!(read(PAGE).contains("attack one") && read("audit.html").contains("audit two"));
        assert!(read("audit.html").contains("href=\"report.html\">Attack"));
        assert!(read(INDEX).contains("href=\"audit.html\">Audit"));
        // The audit comes back as the last one: its earlier page goes.
        put("audit", "Leakscope audit three");
        assert!(read(PAGE).contains("audit three") && read("attack.html").contains("attack one"));
        assert!(!dir.path().join("audit.html").exists());
        // What somebody else put there is left alone.
        fs::write(dir.path().join("bound.html"), "<p>mine</p>").unwrap();
        put("bound", "Leakscope bound");
        assert_eq!(read("bound.html"), "<p>mine</p>");
        fs::create_dir(dir.path().join("release-1")).unwrap();
        fs::write(dir.path().join("release-1/release.json"), "{}").unwrap();
        fs::write(dir.path().join("release-1/report.html"), shown("Leakscope release: a model")).unwrap();
        let folder = Folder::open(dir.path(), RecordsFormat::Parquet).unwrap();
        let mut pending = Pending::default();
        folder.list_releases(&mut pending).unwrap();
        folder.publish(pending).unwrap();
        assert!(read(INDEX).contains("href=\"release-1/report.html\">Release"));
        assert!(read(INDEX).contains(">a model<"), "{}", read(INDEX));
        // The published page is not touched.
        assert_eq!(read("release-1/report.html"), shown("Leakscope release: a model"));
    }
}
