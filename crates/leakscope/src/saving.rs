//! What each question leaves in a folder: documents, pages, models, tables.

use crate::Result;
use crate::output::{Folder, Pending, Results, write_tables};
use crate::release::ledger;
use leakscope_report::balance::BalancedModel;
use leakscope_report::explore::Beside;
use leakscope_report::{Attack, Audit, Balance, PageKind, Release, page_with};
use leakscope_table::{ReadOptions, RecordsFormat};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that an answer leaves: their names, and tables without their endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Files {
    /// Texts.
    pub texts: &'static [&'static str],
    /// Tables.
    pub tables: &'static [&'static str],
}

/// Those of a balancing.
pub const BALANCE: Files =
    Files { texts: &["report.html", "balance.json", "model.json"], tables: &["weights"] };
/// Those of attacks.
pub const ATTACK: Files = Files { texts: &["report.html", "attack.json"], tables: &[] };
/// Those of releases in the folder itself; each has a folder of its own for the others.
pub const RELEASE: Files = Files { texts: &[ledger::FILE], tables: &[] };

/// Those of an audit, where points were scored too or not.
pub fn audit_files(scored: bool) -> Files {
    let tables: &[&str] = if scored { &["records", "scores"] } else { &["records"] };
    Files { texts: &["report.html", "audit.json"], tables }
}

/// Writes an audit, with its page and its tables, into a folder.
pub fn audit(
    audit: &Audit,
    tables: &[Arc<Results>],
    out: &Path,
    format: RecordsFormat,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    let scored = audit.score.iter().flat_map(|s| &s.files);
    let read: Vec<String> = audit.data.files.iter().chain(scored).cloned().collect();
    let files = audit_files(audit.score.is_some());
    folder.spare_named(&read, files.texts, files.tables)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, tables)?;
    let audit = &Audit { tables: pending.table_names(), ..audit.clone() };
    let records = crate::audit::explore::in_memory(audit, tables);
    folder.page(
        &mut pending,
        PageKind::Audit,
        &page_with(audit, &Beside { records, ..Beside::default() }),
    )?;
    folder.text(&mut pending, "audit.json", &leakscope_report::json(audit))?;
    folder.publish(pending)
}

/// Data above this, and data in an object store, are not read a second time for their fingerprint.
const MOST_FINGERPRINTED: u64 = 2 << 30;

/// A fingerprint of the data for a page: HMAC-SHA256 of their contents under a key of the folder, which lies in `private/`; none
/// where there is no such folder (a release makes one). Two pages of one folder tell by it whether they are about the same data;
/// without the key nobody can try data against it.
pub fn fingerprint(folder: &Folder, read: &ReadOptions) -> Result<Option<String>> {
    let local = read.paths.iter().all(|p| !leakscope_table::is_remote(p));
    let size: u64 = read.paths.iter().filter_map(|p| std::fs::metadata(p).ok()).map(|m| m.len()).sum();
    if !folder.path().join(ledger::PRIVATE).is_dir() || !local || size > MOST_FINGERPRINTED {
        return Ok(None);
    }
    crate::release::keyed_fingerprint(folder.path(), read).map(Some)
}

/// Writes a balancing into a folder.
pub fn balance(
    balance: &Balance,
    tables: &[Arc<Results>],
    out: &Path,
    format: RecordsFormat,
) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    folder.spare_named(&balance.subject.files, BALANCE.texts, BALANCE.tables)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, tables)?;
    let balance = &Balance { tables: pending.table_names(), ..balance.clone() };
    balance_texts(&folder, &mut pending, balance)?;
    folder.publish(pending)
}

/// What a balancing leaves besides its weights, still under temporary names.
pub fn balance_texts(folder: &Folder, pending: &mut Pending, balance: &Balance) -> Result<()> {
    folder.page(pending, PageKind::Balance, &leakscope_report::balance_page(balance))?;
    folder.text(pending, "balance.json", &leakscope_report::owners_document(balance))?;
    let model = BalancedModel { coefficients: balance.coefficients.clone() };
    folder.text(pending, "model.json", &leakscope_report::owners_document(&model))
}

/// Writes attacks into a folder.
pub fn attack(attack: &Attack, out: &Path) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, RecordsFormat::Parquet)?;
    folder.spare_named(&attack.subject.files, ATTACK.texts, ATTACK.tables)?;
    let mut pending = Pending::default();
    attack_texts(&folder, &mut pending, attack)?;
    folder.publish(pending)
}

/// What attacks leave, still under temporary names.
pub fn attack_texts(folder: &Folder, pending: &mut Pending, attack: &Attack) -> Result<()> {
    folder.page(pending, PageKind::Attack, &leakscope_report::attack_page(attack))?;
    folder.text(pending, "attack.json", &leakscope_report::owners_document(attack))
}

/// Writes the files of a release again, without the ledger.
pub fn release(statement: &Release, out: &Path) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, RecordsFormat::Parquet)?;
    let mut pending = Pending::default();
    for (name, text) in crate::release::files(statement) {
        folder.text(&mut pending, name, &text)?;
    }
    folder.publish(pending)
}

/// Writes a document under the name of its kind, and its page where it has one.
pub fn answer(out: &Path, kind: PageKind, document: &str, page: Option<&str>) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, RecordsFormat::Parquet)?;
    let mut pending = Pending::default();
    if let Some(page) = page {
        folder.page(&mut pending, kind, page)?;
    }
    folder.text(&mut pending, &format!("{}.json", kind.stem()), document)?;
    folder.publish(pending)
}
