//! Results in a folder, written whole or not at all, readable by their owner alone.

use crate::{Failure, Result};
use leakscope_table::{RecordsFormat, RecordsSchema, RecordsWriter};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A folder for results. Nothing appears in it under its own name before [`Folder::publish`].
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    format: RecordsFormat,
}

/// Files that are complete but not yet published.
#[derive(Debug, Default)]
pub struct Pending {
    texts: Vec<(tempfile::NamedTempFile, PathBuf)>,
    tables: Vec<(RecordsWriter, &'static str)>,
}

impl Folder {
    /// Opens the folder, making it if needed, and makes sure that it can be written to before any work is done.
    pub fn open(path: &Path, format: RecordsFormat) -> Result<Self> {
        let fail = |e: std::io::Error| {
            let what = path.display();
            Failure::flag(
                "--out",
                format!("cannot write to {what}: {e}; choose a folder that you may write to"),
            )
        };
        if path.exists() && !path.is_dir() {
            return Err(Failure::flag(
                "--out",
                format!("{} is a file: name a folder (it is made if needed)", path.display()),
            ));
        }
        fs::create_dir_all(path).map_err(fail)?;
        tempfile::tempfile_in(path).map_err(fail)?;
        Ok(Self { path: path.into(), format })
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
        Ok(RecordsWriter::create(&self.table_path(stem), self.format, schema)?)
    }

    /// Writes a text file under a temporary name.
    pub fn text(&self, pending: &mut Pending, name: &str, text: &str) -> Result<()> {
        let target = self.path.join(name);
        let fail = |e: std::io::Error| Failure::Message(format!("cannot write {}: {e}", target.display()));
        let mut file = tempfile::Builder::new()
            .prefix(".leakscope-")
            .suffix(".part")
            .tempfile_in(&self.path)
            .map_err(fail)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
        pending.texts.push((file, target));
        Ok(())
    }

    /// Gives all pending files their names; a table in the other format from an earlier run goes.
    pub fn publish(&self, pending: Pending) -> Result<Vec<PathBuf>> {
        let mut written = vec![];
        for (table, stem) in pending.tables {
            table.finish()?;
            written.push(self.table_path(stem));
            for other in [RecordsFormat::Parquet, RecordsFormat::Csv] {
                if other != self.format {
                    let _ = fs::remove_file(self.path.join(format!("{stem}.{}", Self::extension(other))));
                }
            }
        }
        for (file, target) in pending.texts {
            file.persist(&target)
                .map_err(|e| Failure::Message(format!("cannot write {}: {}", target.display(), e.error)))?;
            written.push(target);
        }
        Ok(written)
    }
}

impl Pending {
    /// Adds a table that is complete.
    pub fn table(&mut self, writer: RecordsWriter, stem: &'static str) {
        self.tables.push((writer, stem));
    }
}
