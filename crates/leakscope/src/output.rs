//! Results in a folder, written whole or not at all, readable by their owner alone.

mod pages;

pub use pages::PAGE;

use crate::spelling::for_reader;
use crate::{Failure, Result};
use leakscope_table::{
    Columns, CompleteRecords, RecordsFormat, RecordsSchema, RecordsWriter, temporary_file,
};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Tables that a command may leave, by the document that goes with them.
const TABLES: [(&str, &str); 6] = [
    ("audit.json", "records"),
    ("audit.json", "scores"),
    ("balance.json", "weights"),
    ("training.json", "records"),
    ("inversion.json", "records"),
    ("membership.json", "records"),
];

/// A document all of whose numbers are numbers: to be asked before anything is written or shown.
pub(crate) fn complete<T: serde::Serialize>(document: T) -> Result<T> {
    leakscope_report::check_finite(&document)?;
    Ok(document)
}

/// Whether a file is not there, or a page that an earlier run left.
fn is_ours(path: &Path) -> bool {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).to_lowercase().contains("leakscope"),
        Err(_) => !path.is_file(),
    }
}

/// A folder for results. Nothing appears in it under its own name before [`Folder::publish`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    format: RecordsFormat,
    in_memory: bool,
    /// Folders that did not exist before, outermost first: those that stay empty go again.
    new_folders: Vec<PathBuf>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in self.new_folders.iter().rev() {
            // Refused where it holds anything.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Files that are complete but not yet published.
#[derive(Debug, Default)]
pub struct Pending {
    files: Vec<(tempfile::NamedTempFile, PathBuf)>,
    tables: Vec<RecordsWriter>,
    /// Files of earlier runs that go when these get their names.
    outdated: Vec<PathBuf>,
}

impl Folder {
    /// Opens the folder, making it if needed, and makes sure that it can be written to before any work is done.
    pub fn open(path: &Path, format: RecordsFormat) -> Result<Self> {
        let fail = |e: std::io::Error| {
            let shown = path.display();
            Failure::option(
                "out",
                format!("cannot write to {shown}: {e}; choose a folder that you may write to"),
            )
        };
        if path.exists() && !path.is_dir() {
            return Err(Failure::option(
                "out",
                format!("{} is a file: name a folder (it is made if needed)", path.display()),
            ));
        }
        let mut new_folders: Vec<PathBuf> = path
            .ancestors()
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .map(Path::to_path_buf)
            .collect();
        new_folders.reverse();
        let folder = Self { path: path.into(), format, in_memory: false, new_folders };
        fs::create_dir_all(path).map_err(fail)?;
        tempfile::tempfile_in(path).map_err(fail)?;
        Ok(folder)
    }

    /// No folder at all: tables stay in memory, for [`Pending::into_parts`].
    pub fn in_memory() -> Self {
        Self { path: PathBuf::new(), format: RecordsFormat::Parquet, in_memory: true, new_folders: vec![] }
    }

    /// Whether it holds files, or keeps what is put into it in memory.
    pub fn is_on_disk(&self) -> bool {
        !self.in_memory
    }

    /// Refuses a folder in which results would take the place of something that is read: `texts` are the names of
    /// files, `tables` those of tables without their endings. To be asked before any work is done.
    pub fn spare(&self, inputs: &[&Path], texts: &[&str], tables: &[&str]) -> Result<()> {
        let inputs: Vec<PathBuf> = inputs.iter().filter_map(|p| fs::canonicalize(p).ok()).collect();
        let written: Vec<PathBuf> = texts
            .iter()
            .map(|name| self.path.join(name))
            .chain(tables.iter().map(|stem| self.table_path(stem)))
            .collect();
        if let Some((document, name)) = self.of_another(&written) {
            let message = format!(
                "{} belongs to {document}, and results would take its place: choose another folder",
                self.path.join(name).display()
            );
            return Err(Failure::option("out", message));
        }
        if let Some(page) = written.iter().find(|p| p.ends_with(PAGE) && !is_ours(p)) {
            let message = format!(
                "{} is no page of Leakscope, and a page would take its place: choose another folder, or move it away",
                page.display()
            );
            return Err(Failure::option("out", message));
        }
        let touched = written.iter().cloned().chain(self.stale(&written));
        let same = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|p| inputs.contains(&p));
        match touched.into_iter().find(same) {
            None => Ok(()),
            Some(path) => Err(Failure::option(
                "out",
                format!(
                    "{} is read by this command, and results would take its place: choose another folder",
                    path.display()
                ),
            )),
        }
    }

    /// The same where only the names of what was read are known, not their folder: a file here that has such a name
    /// and that no earlier run left is taken to be it.
    pub fn spare_named(&self, names: &[String], texts: &[&str], tables: &[&str]) -> Result<()> {
        let ours: Vec<String> = texts.iter().flat_map(|document| self.listed(document)).collect();
        let inputs: Vec<PathBuf> =
            names.iter().filter(|n| !ours.contains(n)).map(|n| self.path.join(n)).collect();
        self.spare(&inputs.iter().map(PathBuf::as_path).collect::<Vec<_>>(), texts, tables)
    }

    /// Tables that the documents about to be replaced say they came with, and that this run does not write.
    fn stale(&self, written: &[PathBuf]) -> Vec<PathBuf> {
        let mut stale = vec![];
        for (document, stem) in TABLES.into_iter().filter(|(d, _)| written.contains(&self.path.join(d))) {
            let listed = self.listed(document);
            for format in [RecordsFormat::Parquet, RecordsFormat::Csv] {
                let name = format!("{stem}.{}", Self::extension(format));
                let path = self.path.join(&name);
                if listed.contains(&name) && !written.contains(&path) {
                    stale.push(path);
                }
            }
        }
        stale
    }

    /// A table about to be replaced that another document, which stays, says it came with.
    fn of_another(&self, written: &[PathBuf]) -> Option<(&'static str, String)> {
        let stays = TABLES.into_iter().map(|(d, _)| d).filter(|d| !written.contains(&self.path.join(d)));
        stays.into_iter().find_map(|document| {
            let mut own = self.listed(document).into_iter();
            own.find(|name| written.contains(&self.path.join(name))).map(|name| (document, name))
        })
    }

    /// The tables that a document of an earlier run names as its own; none where there is no such document.
    fn listed(&self, document: &str) -> Vec<String> {
        /// The part of every document that says which tables came with it.
        #[derive(serde::Deserialize)]
        struct Beside {
            #[serde(default)]
            tables: Vec<String>,
        }
        let text = fs::read_to_string(self.path.join(document)).unwrap_or_default();
        serde_json::from_str::<Beside>(&text).map_or_else(|_| vec![], |beside| beside.tables)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn extension(format: RecordsFormat) -> &'static str {
        match format {
            RecordsFormat::Parquet => "parquet",
            RecordsFormat::Csv => "csv",
        }
    }

    /// Full name of a table.
    pub fn table_path(&self, stem: &str) -> PathBuf {
        self.path.join(format!("{stem}.{}", Self::extension(self.format)))
    }

    /// Starts a table of records.
    pub fn table(&self, stem: &str, schema: RecordsSchema) -> Result<RecordsWriter> {
        if self.in_memory {
            return Ok(RecordsWriter::in_memory(stem, schema));
        }
        Ok(RecordsWriter::create(&self.table_path(stem), self.format, schema)?)
    }

    /// Writes a text file under a temporary name.
    pub fn text(&self, pending: &mut Pending, name: &str, text: &str) -> Result<()> {
        let spelled = match name.ends_with(".html") {
            true => leakscope_report::rewritten_page(text, for_reader),
            false => for_reader(text),
        };
        self.file(pending, name, spelled.as_bytes())
    }

    /// Writes a file under a temporary name.
    pub fn file(&self, pending: &mut Pending, name: &str, bytes: &[u8]) -> Result<()> {
        let target = self.path.join(name);
        let fail = |e: std::io::Error| Failure::Message(format!("cannot write {}: {e}", target.display()));
        let mut file = temporary_file(&self.path).map_err(fail)?;
        file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
        pending.files.push((file, target));
        Ok(())
    }

    /// Gives all pending files their names. Tables that an earlier run's document says it left and that this run does
    /// not replace (in the other format, or of points that were not scored this time) go: a folder holds one audit, one
    /// balance, one run. Nothing else is removed.
    pub fn publish(&self, pending: Pending) -> Result<Vec<PathBuf>> {
        // Whatever can fail comes before the first file is replaced.
        let tables: Vec<CompleteRecords> = pending
            .tables
            .into_iter()
            .map(RecordsWriter::complete)
            .collect::<leakscope_table::Result<_>>()?;
        let targets = tables.iter().map(CompleteRecords::path).chain(pending.files.iter().map(|(_, t)| &**t));
        if let Some(folder) = targets.clone().find(|t| t.is_dir()) {
            let message = format!("{} is a folder: move it away, or choose another ⟨out⟩", folder.display());
            return Err(Failure::Message(message));
        }
        let mut written: Vec<PathBuf> = targets.map(PathBuf::from).collect();
        for table in tables {
            table.persist()?;
        }
        for path in self.stale(&written).into_iter().chain(pending.outdated) {
            let _ = fs::remove_file(path);
        }
        for (file, target) in pending.files {
            file.persist(&target)
                .map_err(|e| Failure::Message(format!("cannot write {}: {}", target.display(), e.error)))?;
        }
        // The page is what most people open: it comes first.
        written.sort_by_key(|path| (!path.ends_with(PAGE), path.extension().is_none_or(|e| e != "html")));
        Ok(written)
    }
}

impl Pending {
    /// Adds tables that have all their records.
    pub fn tables(&mut self, writers: impl IntoIterator<Item = RecordsWriter>) {
        self.tables.extend(writers);
    }

    /// File names of its tables, for the document that goes with them.
    pub fn table_names(&self) -> Vec<String> {
        self.tables.iter().map(|t| leakscope_table::display_name(t.path())).collect()
    }

    /// The records of a table that were kept in memory besides, with their schema.
    pub fn take_sample(&mut self, stem: &str) -> Option<(RecordsSchema, Columns)> {
        let of = |t: &&mut RecordsWriter| t.path().file_stem().is_some_and(|name| name == stem);
        self.tables.iter_mut().find(of)?.take_sample()
    }

    /// The tables of a folder in memory, by name, each in parts that follow one another.
    pub fn into_parts(self) -> Vec<(String, RecordsSchema, Vec<Columns>)> {
        let of = |table: RecordsWriter| {
            let name = table.path().display().to_string();
            let (schema, parts) = table.into_parts();
            (name, schema, parts)
        };
        self.tables.into_iter().map(of).collect()
    }
}

/// A table of results in memory.
#[derive(Debug, Clone)]
pub struct Results {
    /// What it is called: `records`, `scores`, `weights`.
    pub name: String,
    /// Names of its columns.
    pub schema: RecordsSchema,
    /// The columns, in parts that follow one another.
    pub parts: Vec<Columns>,
}

/// The tables of a folder in memory, to be shared by whoever reads them.
pub fn results(pending: Pending) -> Vec<Arc<Results>> {
    let of = |(name, schema, parts)| Arc::new(Results { name, schema, parts });
    pending.into_parts().into_iter().map(of).collect()
}

/// Writes tables in memory into a folder, still under temporary names.
pub fn write_tables(folder: &Folder, pending: &mut Pending, tables: &[Arc<Results>]) -> Result<()> {
    for table in tables {
        let mut writer = folder.table(&table.name, table.schema.clone())?;
        for Columns { ids, texts, numbers, .. } in &table.parts {
            let mut part = writer.parts().part();
            for (i, id) in ids.iter().enumerate() {
                let texts: Vec<&str> = texts.iter().map(|t| t[i].as_str()).collect();
                let numbers: Vec<f64> = numbers.iter().map(|n| n[i]).collect();
                part.push(id, &texts, &numbers)?;
            }
            writer.append(part)?;
        }
        pending.tables([writer]);
    }
    Ok(())
}

/// Writes one text file whole or not at all, readable by its owner alone.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let Some(name) = name.filter(|_| !path.is_dir()) else {
        return Err(Failure::Message(format!("{} is no file name: name a file to write", path.display())));
    };
    let folder = Folder::open(parent, RecordsFormat::Parquet)?;
    let mut pending = Pending::default();
    folder.text(&mut pending, &name, text)?;
    folder.publish(pending).map(|_| ())
}
