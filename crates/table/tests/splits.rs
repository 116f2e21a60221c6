//! Splits as values: read one by one, elsewhere and in any order, they give the bits of a pass over the whole table.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use arrow_array::*;
use common::*;
use leakscope_core::fisher::{Directions, Eta, Geometry, Release};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::measure::{self, Measure, Series};
use leakscope_core::pass::{self, LargestNorm, Merge, Pass, Runner};
use leakscope_core::rows::Rows;
use leakscope_table::*;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

fn noise(i: usize, j: usize) -> f64 {
    let z = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (j as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let z = (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

/// Two Parquet files with missing values, groups, weights and ids; row groups of 700 rows.
fn parquet(folder: &Folder) -> Vec<PathBuf> {
    let file = |name: &str, rows: std::ops::Range<usize>| {
        let number = |j: usize, scale: f64| -> ArrayRef {
            let value = |i: usize| (noise(i, 50 + j) > 0.02).then(|| scale * noise(i, j));
            Arc::new(Float64Array::from_iter(rows.clone().map(value)))
        };
        let text = |levels: usize, j: usize| -> ArrayRef {
            let level = |i: usize| format!("l{}", (noise(i, j) * levels as f64) as u32);
            Arc::new(StringArray::from_iter_values(rows.clone().map(level)))
        };
        let weight = Float64Array::from_iter_values(rows.clone().map(|i| 0.5 + noise(i, 8)));
        let y = rows.clone().map(|i| if noise(i, 0) + noise(i, 9) > 1.0 { "yes" } else { "no" });
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", number(0, 1.0)),
            ("b", number(1, 1e4)),
            ("c", text(4, 2)),
            ("g", text(3, 3)),
            ("w", Arc::new(weight)),
            ("id", Arc::new(Int64Array::from_iter_values(rows.clone().map(|i| i as i64)))),
            ("y", Arc::new(StringArray::from_iter_values(y))),
        ];
        folder.parquet(name, columns, 700)
    };
    vec![file("one.parquet", 0..3000), file("two.parquet", 3000..4100)]
}

/// A CSV file of three splits.
fn csv(folder: &Folder) -> Vec<PathBuf> {
    let mut text = String::from("a;b;c;g;w;id;y\n");
    for i in 0..140_000 {
        let b = if noise(i, 51) > 0.01 { (1e4 * noise(i, 1)).to_string() } else { "-999".into() };
        let y = if noise(i, 0) + noise(i, 9) > 1.0 { "yes" } else { "no" };
        let (c, g) = ((noise(i, 2) * 4.0) as u32, (noise(i, 3) * 3.0) as u32);
        text += &format!("{};{b};\"l\n{c}\";l{g};{};{i};{y}\n", noise(i, 0), 0.5 + noise(i, 8));
    }
    vec![folder.write("long.csv", text)]
}

fn by_roles() -> Roles {
    Roles { id: Some("id".into()), group: Some("g".into()), weights: Some("w".into()), ..roles("y") }
}

/// Numbers of the splits, in an order that is not theirs.
fn shuffled(count: usize, seed: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| noise(*a, seed + 1000).total_cmp(&noise(*b, seed + 1000)));
    order
}

/// Other machines. All they get is bytes and text: the splits, the encoding, the pass, and where their rows begin.
struct Cluster {
    splits: String,
    encoding: String,
    subset: Subset,
    first_rows: Vec<u64>,
    rows: u64,
    width: usize,
}

impl Cluster {
    fn new(splits: &Splits, encoding: &Encoding, subset: Subset) -> Self {
        let mut cluster = Self {
            splits: serde_json::to_string(splits).unwrap(),
            encoding: serde_json::to_string(encoding).unwrap(),
            subset,
            first_rows: vec![0; splits.splits.len()],
            rows: 0,
            width: encoding.width(),
        };
        for k in 0..splits.splits.len() {
            cluster.first_rows[k] = cluster.rows;
            cluster.rows += cluster.worker(k).len();
        }
        cluster
    }

    fn worker(&self, k: usize) -> Dataset {
        let splits: Splits = serde_json::from_str(&self.splits).unwrap();
        let encoding: Encoding = serde_json::from_str(&self.encoding).unwrap();
        let table = Table::of_split(&splits, k).unwrap();
        let options = DatasetOptions { first_row: self.first_rows[k], ..Default::default() };
        Dataset::with_options(&table, &encoding, self.subset, options, &Hooks::default()).unwrap()
    }
}

impl Runner for Cluster {
    fn columns(&self) -> usize {
        self.width
    }

    fn count(&self) -> u64 {
        self.rows
    }

    fn run<P: Pass>(&self, pass: &P) -> leakscope_core::Result<P::State> {
        let sent = pass::to_bytes(pass)?;
        let mut answers = vec![vec![]; self.first_rows.len()];
        for k in shuffled(answers.len(), self.rows as usize) {
            let theirs: P = pass::from_bytes(&sent)?;
            answers[k] = pass::state_to_bytes(&theirs, &pass::run(&theirs, &self.worker(k))?)?;
        }
        let mut total = pass.start();
        for answer in answers {
            total.merge(pass::state_from_bytes(pass, &answer)?);
        }
        Ok(total)
    }
}

/// The encoding by splits: profile, largest norm, components.
fn fitted_by_splits(table: &Table, roles: &Roles, options: &EncodeOptions) -> Encoding {
    let hooks = Hooks::default();
    let splits = table.cut(&hooks).unwrap();
    let mut profiling = Profiling::new(table, roles, options).unwrap();
    let mut encoding = loop {
        let mut answers = vec![vec![]; splits.splits.len()];
        for k in shuffled(answers.len(), 7) {
            let part = Table::of_split(&splits, k).unwrap();
            let theirs = Profiling::new(&part, roles, options).unwrap();
            let theirs = theirs.without(profiling.left_out()).unwrap();
            answers[k] = theirs.to_bytes(&theirs.run(&part, &hooks).unwrap()).unwrap();
        }
        let mut profile = profiling.start();
        for answer in &answers {
            profiling.merge(&mut profile, profiling.from_bytes(answer).unwrap()).unwrap();
        }
        match Encoding::of_profile(&profiling, profile, table, &hooks).unwrap() {
            Profiled::Encoding(encoding) => break *encoding,
            Profiled::Identifiers(without) => profiling = *without,
        }
    };
    let bare = |encoding: &Encoding| Cluster::new(&splits, &encoding.before_components(), Subset::Training);
    if options.scale == Scale::UnitBall {
        encoding = encoding.clone().with_largest_norm(bare(&encoding).run(&LargestNorm).unwrap()).unwrap();
    }
    if let Some(k) = options.pca {
        let sums = bare(&encoding).run(&encoding.covariance(k).unwrap()).unwrap();
        encoding = encoding.clone().with_components(k, sums).unwrap();
    }
    encoding
}

fn same_bits(paths: &[PathBuf], options: &EncodeOptions) {
    let na = vec!["-999".to_string()];
    let read = ReadOptions { paths: paths.to_vec(), na, ..Default::default() };
    let table = Table::open(&read).unwrap();
    let encoding = Encoding::fit(&table, &by_roles(), options, &Hooks::default()).unwrap();
    assert_eq!(fitted_by_splits(&table, &by_roles(), options), encoding);
    let splits = table.cut(&Hooks::default()).unwrap();
    assert!(splits.splits.len() >= 3);
    let (here, there) =
        (dataset(&table, &encoding, Subset::Training), Cluster::new(&splits, &encoding, Subset::Training));
    assert!(here.is_in_memory());
    assert_eq!(there.count(), here.len());
    let penalty = Penalty::new(1e-3, options.intercept);
    let fit = glm::fit(&here, Family::Logistic, penalty).unwrap();
    assert_eq!(glm::fit_by(&there, Family::Logistic, penalty).unwrap(), fit);
    let p = encoding.width();
    let release = Release { sigma: 0.1, releases: 1, label_secret: true };
    let geometry =
        Geometry::new(&fit, &[Directions::columns(0..1, p), Directions::columns(1..3, p)], release).unwrap();
    let series = Series::Group { groups: 3 };
    let pass = Measure {
        geometry: Cow::Borrowed(&geometry),
        series,
        compared: Cow::Owned(vec![0, 1]),
        counting: None,
    };
    let bytes = |rows: &dyn Fn() -> measure::Measured| pass::state_to_bytes(&pass, &rows()).unwrap();
    assert!(bytes(&|| here.run(&pass).unwrap()) == bytes(&|| there.run(&pass).unwrap()));
    if options.holdout.is_some() {
        let held = streamed(&table, &encoding, Subset::HeldOut);
        let elsewhere = Cluster::new(&splits, &encoding, Subset::HeldOut);
        let eta = Eta::new(&geometry);
        assert_eq!(held.run(&eta).unwrap().eta, elsewhere.run(&eta).unwrap().eta);
    }
}

#[test]
fn parquet_by_splits_is_the_table() {
    let folder = Folder::new();
    let paths = parquet(&folder);
    let options =
        EncodeOptions { missing: Missing::Drop, target: TargetKind::TwoClass01, ..Default::default() };
    same_bits(&paths, &options);
    let holdout = Some(Holdout::seeded(0.3, 5));
    same_bits(
        &paths,
        &EncodeOptions { missing: Missing::Mean, scale: Scale::UnitBall, pca: Some(3), holdout, ..options },
    );
}

#[test]
fn csv_by_splits_is_the_table() {
    let folder = Folder::new();
    let options =
        EncodeOptions { missing: Missing::Drop, target: TargetKind::TwoClass01, ..Default::default() };
    same_bits(&csv(&folder), &options);
}

#[test]
fn what_cannot_be_read_elsewhere_is_an_error_that_says_so() {
    let folder = Folder::new();
    let hooks = Hooks::default();
    let path = folder.write("small.csv", "x,y\n1,2\n3,4\n");
    let splits = open(&path).unwrap().cut(&hooks).unwrap();
    assert_eq!(splits.splits.len(), 1);
    assert!(matches!(Table::of_split(&splits, 1), Err(Error::NoSplit { number: 1, count: 1 })));
    // Grown, then with other columns, then gone.
    folder.write("small.csv", "x,y\n1,2\n3,4\n5,6\n");
    assert!(matches!(Table::of_split(&splits, 0), Err(Error::ChangedSincePlanned { .. })));
    folder.write("small.csv", "x,z\n1,2\n3,4\n");
    assert!(matches!(Table::of_split(&splits, 0), Err(Error::ChangedSincePlanned { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(Table::of_split(&splits, 0).unwrap_err().to_string().contains("small.csv"));
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let memory = Memory::new("frame", vec![("x".into(), MemoryColumn::Arrow(vec![column]))]).unwrap();
    let table = Table::open(&ReadOptions { memory: vec![memory], ..Default::default() }).unwrap();
    assert!(table.cut(&hooks).unwrap_err().to_string().contains("frame"));
    // Nor what is turned into another text in memory when it is opened.
    let utf16: Vec<u8> = "\u{feff}x,y\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for path in [folder.write("wide.csv", utf16), folder.write("lines.jsonl", "{\"x\": 1, \"y\": 2}\n")] {
        let error = open(&path).unwrap().cut(&hooks).unwrap_err();
        assert!(matches!(&error, Error::NotInFiles { name } if *name == path), "{error}");
    }
}

/// No names, a decimal comma, separators between thousands, Latin letters of one byte, a column that names the rows and
/// rows that come back: what a worker is told of a file is all it needs to read its part as the whole is read.
#[test]
fn a_messy_file_by_splits_is_the_table() {
    let folder = Folder::new();
    let mut text = vec![];
    for i in 0..70_000 {
        let (price, c) = (1000 + (noise(i, 1) * 9.0) as u32, (noise(i, 2) * 3.0) as u32);
        let price = format!("{}.{:03},5 \u{80}", price / 1000, price % 1000);
        let line = format!(
            "{price};caf\u{e9}{c};{:x}-{i}@x;{}\n",
            noise(i, 3).to_bits(),
            u32::from(noise(i, 4) < 0.5)
        );
        text.extend(line.chars().map(|c| c as u8));
    }
    let read = ReadOptions {
        paths: vec![folder.write("messy.csv", text)],
        encoding: TextEncoding::Latin1,
        decimal: Decimal::Comma,
        no_header: true,
        ..Default::default()
    };
    let table = Table::open(&read).unwrap();
    let options = EncodeOptions { target: TargetKind::TwoClass01, ..Default::default() };
    let encoding = fit(&table, &roles("c4"), &options).unwrap();
    let names: Vec<&str> = encoding.attributes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["c1", "c2"]);
    assert_eq!(encoding.attributes[0].unit.as_deref(), Some("€"));
    assert_eq!(encoding.attributes[1].levels, ["café0", "café1", "café2"]);
    // 9 prices, 3 words, 2 classes: all other rows are copies.
    assert_eq!(encoding.copies, Some(70_000 - 9 * 3 * 2));
    assert!(
        encoding.remarks.iter().any(|r| matches!(r, Remark::Identifier { column, .. } if column == "c3"))
    );
    assert_eq!(fitted_by_splits(&table, &roles("c4"), &options), encoding);
    let splits = table.cut(&Hooks::default()).unwrap();
    assert_eq!(splits.splits.len(), 2);
    let (here, there) =
        (streamed(&table, &encoding, Subset::Training), Cluster::new(&splits, &encoding, Subset::Training));
    assert_eq!(here.run(&LargestNorm).unwrap().norm, there.run(&LargestNorm).unwrap().norm);
    let penalty = Penalty::new(1e-3, true);
    assert_eq!(
        glm::fit_by(&there, Family::Logistic, penalty).unwrap(),
        glm::fit(&here, Family::Logistic, penalty).unwrap()
    );
}

/// Too many levels that are no identifier are refused, by splits as by the table: a split alone cannot tell.
#[test]
fn too_many_levels_by_splits_are_the_error_of_the_table() {
    let folder = Folder::new();
    let mut text = String::from("c,y\n");
    (0..70_000).for_each(|i| text += &format!("v{},{}\n", i % 20_000, i % 7));
    let table = open(&folder.write("levels.csv", text)).unwrap();
    let options = EncodeOptions::default();
    let here = fit(&table, &roles("y"), &options).unwrap_err().to_string();
    let (splits, hooks) = (table.cut(&Hooks::default()).unwrap(), Hooks::default());
    let profiling = Profiling::new(&table, &roles("y"), &options).unwrap();
    let mut total = profiling.start();
    let parts = (0..splits.splits.len()).map(|k| {
        let part = Table::of_split(&splits, k).unwrap();
        let theirs = Profiling::new(&part, &roles("y"), &options).unwrap();
        profiling.from_bytes(&theirs.to_bytes(&theirs.run(&part, &hooks).unwrap()).unwrap()).unwrap()
    });
    let mut merged = parts.map(|part| profiling.merge(&mut total, part));
    let there = merged.find_map(Result::err).unwrap().to_string();
    assert!(here.contains("`c`") && there == here, "{here}\n{there}");
}

#[test]
fn damaged_profiles_are_refused() {
    let folder = Folder::new();
    let table = open_all(&parquet(&folder)).unwrap();
    let options =
        EncodeOptions { missing: Missing::Drop, target: TargetKind::TwoClass01, ..Default::default() };
    let profiling = Profiling::new(&table, &by_roles(), &options).unwrap();
    let bytes = profiling.to_bytes(&profiling.run(&table, &Hooks::default()).unwrap()).unwrap();
    assert!(profiling.from_bytes(&bytes).is_ok());
    for i in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[i] ^= 4;
        assert!(profiling.from_bytes(&damaged).is_err() && profiling.from_bytes(&bytes[..i]).is_err());
    }
    let fewer = Roles { drop: vec!["c".into()], ..by_roles() };
    let other = Profiling::new(&table, &fewer, &options).unwrap();
    assert!(other.from_bytes(&bytes).unwrap_err().to_string().contains("another pass"));
    let held = EncodeOptions { holdout: Some(Holdout::seeded(0.5, 1)), ..options };
    assert!(Profiling::new(&table, &by_roles(), &held).unwrap().from_bytes(&bytes).is_err());
}
