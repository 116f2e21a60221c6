//! Small tables on disk, and what a data set holds, for the tests of this crate.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // every test file uses its own part

use arrow_array::{ArrayRef, RecordBatch};
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{
    Dataset, DatasetOptions, EncodeOptions, Encoding, Error, Hooks, ReadOptions, Result, Roles, Subset, Table,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that goes away with the test.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn parquet(&self, name: &str, columns: Vec<(&str, ArrayRef)>, group_rows: usize) -> PathBuf {
        let path = self.0.path().join(name);
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub fn open(path: &Path) -> Result<Table> {
    Table::open(&ReadOptions { paths: vec![path.into()], ..Default::default() })
}

pub fn open_all(paths: &[PathBuf]) -> Result<Table> {
    Table::open(&ReadOptions { paths: paths.to_vec(), ..Default::default() })
}

pub fn roles(target: &str) -> Roles {
    Roles { target: target.into(), ..Default::default() }
}

pub fn fit(table: &Table, roles: &Roles, options: &EncodeOptions) -> Result<Encoding> {
    Encoding::fit(table, roles, options, &Hooks::default())
}

/// Opens, fits, and returns the error that one of them must give.
pub fn failure(path: &Path, roles: &Roles, options: &EncodeOptions) -> Error {
    open(path).and_then(|table| fit(&table, roles, options)).map(|_| ()).expect_err("this input is bad")
}

/// Everything in a data set, in order.
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Content {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub weight: Vec<f64>,
    pub group: Vec<u32>,
    pub ids: Vec<String>,
    pub blocks: Vec<(u64, usize)>,
}

impl Content {
    /// The same, however it was cut into blocks: that follows from the files.
    pub fn uncut(self) -> Self {
        Self { blocks: vec![], ..self }
    }
}

pub fn content(dataset: &Dataset) -> Content {
    let mut all = Content::default();
    let add = |c: &mut Content, b: &Block, ids: &[String]| {
        assert_eq!(b.x.len(), b.len() * b.width);
        assert_eq!(ids.len(), b.len());
        c.x.extend(&b.x);
        c.y.extend(&b.y);
        c.weight.extend(&b.weight);
        c.group.extend(&b.group);
        c.ids.extend_from_slice(ids);
        c.blocks.push((b.first_row, b.len()));
    };
    dataset
        .fold_labelled(
            Content::default,
            |c, b, labels| {
                add(c, b, &labels.ids);
                Ok(())
            },
            |c| {
                all.x.extend(c.x);
                all.y.extend(c.y);
                all.weight.extend(c.weight);
                all.group.extend(c.group);
                all.ids.extend(c.ids);
                all.blocks.extend(c.blocks);
                Ok(())
            },
        )
        .unwrap();
    let mut next = 0;
    for (first, len) in &all.blocks {
        assert_eq!(*first, next, "blocks follow one another");
        next += *len as u64;
    }
    assert_eq!(next, dataset.len());
    // The pass without labels sees the same rows.
    let mut bare = Content::default();
    dataset
        .as_rows()
        .fold(
            Content::default,
            |c, b| {
                c.x.extend(&b.x);
                c.y.extend(&b.y);
                Ok(())
            },
            |c| {
                bare.x.extend(c.x);
                bare.y.extend(c.y);
                Ok(())
            },
        )
        .unwrap();
    assert_eq!((&bare.x, &bare.y), (&all.x, &all.y));
    all
}

pub fn dataset(table: &Table, encoding: &Encoding, subset: Subset) -> Dataset {
    Dataset::new(table, encoding, subset, &Hooks::default()).unwrap()
}

pub fn streamed(table: &Table, encoding: &Encoding, subset: Subset) -> Dataset {
    let options = DatasetOptions { cache_bytes: 0, ..Default::default() };
    let dataset = Dataset::with_options(table, encoding, subset, options, &Hooks::default()).unwrap();
    assert!(!dataset.is_in_memory());
    dataset
}

pub fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "entry {i}: {x} against {y}");
    }
}
