//! Tables in memory: the digits of the CSV file with the same cells, block by block, and errors that name rows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, StringArray};
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{
    Dataset, EncodeOptions, Encoding, Hooks, Matrix, Memory, MemoryColumn, Missing, ReadOptions, Roles,
    Scale, Subset, Table,
};
use std::sync::Arc;

fn value(i: usize, j: usize) -> f64 {
    ((i * 31 + j * 17) % 97) as f64 / 7.0 + (i as f64 * 0.37 + j as f64).sin()
}

fn open(memory: Memory) -> Table {
    Table::open(&ReadOptions { memory: vec![memory], ..Default::default() }).unwrap()
}

fn encoded(
    table: &Table,
    roles: &Roles,
    options: &EncodeOptions,
    subset: Subset,
) -> (Encoding, Vec<Block>, Vec<u64>) {
    let hooks = Hooks::default();
    let encoding = Encoding::fit(table, roles, options, &hooks).unwrap();
    let rows = Dataset::new(table, &encoding, subset, &hooks).unwrap();
    let (mut blocks, mut positions) = (vec![], vec![]);
    rows.fold_labelled(
        Vec::new,
        |actual, block, labels| {
            actual.push((block.clone(), labels.positions.clone()));
            Ok(())
        },
        |actual: Vec<(Block, Vec<u64>)>| {
            for (block, at) in actual {
                blocks.push(block);
                positions.extend(at);
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(rows.len(), positions.len() as u64);
    (encoding, blocks, positions)
}

fn csv(header: &str, rows: impl Iterator<Item = String>) -> (tempfile::TempDir, Table) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let lines: Vec<String> = std::iter::once(header.to_string()).chain(rows).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let table = Table::open(&ReadOptions { paths: vec![path], ..Default::default() }).unwrap();
    (folder, table)
}

#[test]
fn a_matrix_gives_the_digits_of_its_file() {
    let (rows, columns) = (3000, 4);
    let cells: Vec<f64> = (0..rows).flat_map(|i| (0..columns).map(move |j| value(i, j))).collect();
    let y: Vec<f64> = (0..rows).map(|i| value(i, 9)).collect();
    let lines = (0..rows).map(|i| {
        let row: Vec<String> =
            cells[i * columns..(i + 1) * columns].iter().map(|v| format!("{v:?}")).collect();
        format!("{},{:?}", row.join(","), y[i])
    });
    let (_folder, file) = csv("a,b,c,d,y", lines);
    let matrix = Arc::new(Matrix::from_rows(cells, columns));
    let named = ["a", "b", "c", "d"].into_iter().enumerate();
    let mut all: Vec<(String, MemoryColumn)> = named
        .map(|(column, name)| (name.into(), MemoryColumn::Matrix { matrix: Arc::clone(&matrix), column }))
        .collect();
    let halves: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(y[..1234].to_vec())),
        Arc::new(Float64Array::from(y[1234..].to_vec())),
    ];
    all.push(("y".into(), MemoryColumn::Arrow(halves)));
    let memory = open(Memory::new("X", all).unwrap());
    let roles = Roles { target: "y".into(), ..Default::default() };
    for scale in [Scale::Standard, Scale::None, Scale::UnitBall] {
        for intercept in [true, false] {
            let options = EncodeOptions { scale, intercept, ..Default::default() };
            let ours = encoded(&memory, &roles, &options, Subset::Training);
            let theirs = encoded(&file, &roles, &options, Subset::Training);
            assert!(ours == theirs, "{scale:?}, intercept {intercept}");
        }
    }
    let options = EncodeOptions { pca: Some(2), ..Default::default() };
    assert!(
        encoded(&memory, &roles, &options, Subset::Training)
            == encoded(&file, &roles, &options, Subset::Training)
    );
}

#[test]
fn arrow_columns_of_every_kind_give_the_digits_of_their_file() {
    let rows = 700;
    let level = |i: usize| ["red", "green", "blue"][i * i % 3];
    let lines = (0..rows).map(|i| {
        let missing = if i == 13 { String::new() } else { format!("{:?}", value(i, 0)) };
        format!("{missing},{},{},{},{:?}", i % 5, level(i), i % 2 == 0, value(i, 3))
    });
    let (_folder, file) = csv("number,whole,level,flag,y", lines);
    let one = |array: ArrayRef| MemoryColumn::Arrow(vec![array]);
    let number: Float64Array = (0..rows).map(|i| (i != 13).then(|| value(i, 0))).collect();
    let whole: Int64Array = (0..rows).map(|i| Some((i % 5) as i64)).collect();
    let dictionary: DictionaryArray<Int32Type> = (0..rows).map(level).collect();
    let flag: BooleanArray = (0..rows).map(|i| Some(i % 2 == 0)).collect();
    let y: Float64Array = (0..rows).map(|i| Some(value(i, 3))).collect();
    let texts = StringArray::from_iter_values((0..rows).map(level));
    let columns = |level: ArrayRef| {
        vec![
            ("number".to_string(), one(Arc::new(number.clone()))),
            ("whole".to_string(), one(Arc::new(whole.clone()))),
            ("level".to_string(), one(level)),
            ("flag".to_string(), one(Arc::new(flag.clone()))),
            ("y".to_string(), one(Arc::new(y.clone()))),
        ]
    };
    let roles = Roles { target: "y".into(), group: Some("level".into()), ..Default::default() };
    for (k, level) in [Arc::new(dictionary) as ArrayRef, Arc::new(texts)].into_iter().enumerate() {
        let memory = open(Memory::new("frame", columns(level)).unwrap());
        for missing in [Missing::Drop, Missing::Mean] {
            let options = EncodeOptions { missing, ..Default::default() };
            let ours = encoded(&memory, &roles, &options, Subset::Training);
            let theirs = encoded(&file, &roles, &options, Subset::Training);
            assert!(ours == theirs, "{k}, {missing:?}");
            assert_eq!(
                ours.2.contains(&13),
                missing == Missing::Mean,
                "the position of a dropped row is not there"
            );
        }
    }
}

#[test]
fn errors_name_the_row_and_do_not_speak_of_a_header() {
    let mut cells: Vec<f64> = (0..60).map(|i| value(i, 0)).collect();
    cells[2 * 20 + 1] = f64::INFINITY;
    let matrix = Arc::new(Matrix::from_rows(cells, 2));
    let column = |column| MemoryColumn::Matrix { matrix: Arc::clone(&matrix), column };
    let memory = open(Memory::new("X", vec![("a".into(), column(0)), ("b".into(), column(1))]).unwrap());
    let roles = Roles { target: "a".into(), ..Default::default() };
    let error = Encoding::fit(&memory, &roles, &EncodeOptions::default(), &Hooks::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("X, row 21 (counted from 1)") && text.contains("`b`"), "{text}");

    let short = MemoryColumn::Arrow(vec![Arc::new(Float64Array::from(vec![1.0]))]);
    let error = Memory::new("X", vec![("a".into(), column(0)), ("c".into(), short)]).unwrap_err().to_string();
    assert!(error.contains("`c` has 1 values, but `a` has 30"), "{error}");
    assert!(Memory::new("X", vec![]).unwrap_err().to_string().contains("empty"));
    let twice = Memory::new("X", vec![("a".into(), column(0)), ("a".into(), column(1))]).unwrap();
    let read = ReadOptions { memory: vec![twice], ..Default::default() };
    assert!(Table::open(&read).unwrap_err().to_string().contains("`a` occurs twice"));
}

#[test]
fn a_fingerprint_sees_every_cell() {
    let table = |cell: f64, text: Option<&str>| {
        let column = MemoryColumn::Arrow(vec![Arc::new(StringArray::from(vec![Some("a"), text]))]);
        let matrix = Arc::new(Matrix::from_rows(vec![1.0, cell], 1));
        let memory = Memory::new(
            "X",
            vec![("t".into(), column), ("x".into(), MemoryColumn::Matrix { matrix, column: 0 })],
        );
        let mut bytes = vec![];
        memory.unwrap().feed(&mut |part| bytes.extend_from_slice(part));
        bytes
    };
    let first = table(2.0, None);
    assert_eq!(first, table(2.0, None));
    assert_ne!(first, table(2.5, None));
    assert_ne!(first, table(2.0, Some("")));
}
