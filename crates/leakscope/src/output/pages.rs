//! Pages of a folder: the last one is `report.html`, those of other results keep theirs under the name of their
//! document, and `index.html` lists them once there are several.

use super::{Folder, Pending};
use crate::Result;
use leakscope_report::{PageKind, ResultPage, folder_page, is_ours, with_navigation};
use std::fs;

/// The page that a command leaves.
pub const PAGE: &str = "report.html";
/// The page that lists the others.
const INDEX: &str = "index.html";
/// A page that is in the folder, with its text.
struct PageFile {
    page: ResultPage,
    text: String,
}

impl Folder {
    /// Writes the page of a document (`audit` of `audit.json`) under a temporary name. The page of another document
    /// that was here stays, under the name of its document, and every page leads to the others.
    pub fn page(&self, pending: &mut Pending, kind: PageKind, page: &str) -> Result<()> {
        let own = with_navigation(page, kind, &[], PAGE);
        let mut all: Vec<PageFile> = self.pages().into_iter().filter(|f| f.page.kind != kind).collect();
        // What was the page until now makes room.
        for file in all.iter_mut().filter(|f| f.page.file == PAGE) {
            file.page.file = file_of(file.page.kind);
        }
        all.extend(ResultPage::read(PAGE, &own).map(|page| PageFile { page, text: own.clone() }));
        if all.len() < 2 {
            return self.text(pending, PAGE, &own);
        }
        let earlier = self.path.join(file_of(kind));
        if fs::read_to_string(&earlier).is_ok_and(|text| is_ours(&text)) {
            pending.outdated.push(earlier);
        }
        self.navigable(pending, all)
    }

    /// Lists a release, which has a folder of its own and a page that leads nowhere, among the pages here.
    pub fn list_releases(&self, pending: &mut Pending) -> Result<()> {
        let all = self.pages();
        if all.iter().all(|f| f.page.kind == PageKind::Release) {
            return Ok(());
        }
        self.navigable(pending, all)
    }

    /// Writes all pages with their navigation, and the one that lists them.
    fn navigable(&self, pending: &mut Pending, mut all: Vec<PageFile>) -> Result<()> {
        all.sort_by(|a, b| a.page.kind.cmp(&b.page.kind).then_with(|| a.page.file.cmp(&b.page.file)));
        let listed: Vec<ResultPage> = all.iter().map(|f| f.page.clone()).collect();
        for PageFile { page, text } in all.iter().filter(|f| f.page.kind != PageKind::Release) {
            let text = with_navigation(text, page.kind, &listed, &page.file);
            self.text(pending, &page.file, &text)?;
        }
        self.text(pending, INDEX, &folder_page(&listed))
    }

    /// Our pages in the folder, and those of releases in folders of their own.
    fn pages(&self) -> Vec<PageFile> {
        let read = |file: &str| fs::read_to_string(self.path.join(file)).ok();
        let here = PageKind::ALL.map(file_of).into_iter().chain([PAGE.to_owned()]).filter_map(|file| {
            let text = read(&file)?;
            ResultPage::read(&file, &text).map(|page| PageFile { page, text })
        });
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        // A release's page says nothing of where it stands: it may leave the house.
        let releases = entries.filter(|e| e.path().join("release.json").is_file()).filter_map(|e| {
            let file = format!("{}/{PAGE}", e.file_name().to_string_lossy());
            let text = read(&file)?;
            ResultPage::of(PageKind::Release, &file, &text).map(|page| PageFile { page, text })
        });
        here.chain(releases).collect()
    }
}

/// The file of a page that is not the last one of its folder.
fn file_of(kind: PageKind) -> String {
    format!("{}.html", kind.stem())
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
        let put = |kind: PageKind, title: &str| {
            let folder = Folder::open(dir.path(), RecordsFormat::Parquet).unwrap();
            let mut pending = Pending::default();
            folder.page(&mut pending, kind, &shown(title)).unwrap();
            folder.publish(pending).unwrap()
        };
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        put(PageKind::Audit, "Leakscope audit one");
        assert!(read(PAGE).contains("audit one") && !dir.path().join(INDEX).exists());
        put(PageKind::Audit, "Leakscope audit two");
        assert!(read(PAGE).contains("audit two") && !dir.path().join("audit.html").exists());
        put(PageKind::Attack, "Leakscope attack one");
        assert!(read(PAGE).contains("attack one") && read("audit.html").contains("audit two"));
        assert!(read("audit.html").contains("href=\"report.html\">Attack"));
        assert!(read(INDEX).contains("href=\"audit.html\">Audit"));
        // The audit comes back as the last one: its earlier page goes.
        put(PageKind::Audit, "Leakscope audit three");
        assert!(read(PAGE).contains("audit three") && read("attack.html").contains("attack one"));
        assert!(!dir.path().join("audit.html").exists());
        // What somebody else put there is left alone.
        fs::write(dir.path().join("bound.html"), "<p>mine</p>").unwrap();
        put(PageKind::Bound, "Leakscope bound");
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
