//! Files of records: order, both formats, permissions, and nothing left behind.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use common::*;
use leakscope_table::*;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rayon::prelude::*;
use std::path::Path;

fn schema() -> RecordsSchema {
    RecordsSchema {
        id: "id".into(),
        texts: vec!["class".into()],
        numbers: vec!["eta".into(), "eta_age".into()],
    }
}

type Row = (String, String, Option<f64>, f64);

fn row(i: usize) -> Row {
    let eta = if i % 1000 == 7 { None } else { Some(1.0 / (i as f64 + 3.0)) };
    (format!("r,{i}"), if i.is_multiple_of(2) { "sick" } else { "well" }.into(), eta, -(i as f64) * 0.1)
}

fn push(part: &mut RecordsPart, i: usize) {
    let (id, class, eta, age) = row(i);
    part.push(&id, &[&class], &[eta.unwrap_or(f64::NAN), age]).unwrap();
}

/// Parts of very different sizes, filled in parallel, appended in order.
fn write(path: &Path, format: RecordsFormat, sizes: &[usize]) -> u64 {
    let mut writer = RecordsWriter::create(path, format, schema()).unwrap();
    let maker = writer.parts();
    let ranges: Vec<(usize, usize)> = sizes
        .iter()
        .scan(0, |at, size| {
            *at += size;
            Some((*at - size, *at))
        })
        .collect();
    let parts: Vec<RecordsPart> = ranges
        .par_iter()
        .map(|(a, b)| {
            let mut part = maker.part();
            (*a..*b).for_each(|i| push(&mut part, i));
            part
        })
        .collect();
    parts.into_iter().for_each(|p| writer.append(p).unwrap());
    writer.finish().unwrap()
}

fn read_parquet(path: &Path) -> (Vec<Row>, usize) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let groups = builder.metadata().num_row_groups();
    let mut rows = vec![];
    for batch in builder.build().unwrap() {
        let batch = batch.unwrap();
        let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, ["id", "class", "eta", "eta_age"]);
        let (id, class) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let eta = batch.column(2).as_primitive::<Float64Type>();
        let age = batch.column(3).as_primitive::<Float64Type>();
        for i in 0..batch.num_rows() {
            let eta = if eta.is_null(i) { None } else { Some(eta.value(i)) };
            rows.push((id.value(i).to_string(), class.value(i).to_string(), eta, age.value(i)));
        }
    }
    (rows, groups)
}

fn read_csv(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    assert_eq!(reader.headers().unwrap(), vec!["id", "class", "eta", "eta_age"]);
    let number = |s: &str| s.parse::<f64>().ok();
    reader
        .records()
        .map(|r| {
            let r = r.unwrap();
            (r[0].to_string(), r[1].to_string(), number(&r[2]), number(&r[3]).unwrap())
        })
        .collect()
}

#[test]
fn records_come_back_in_order_from_both_formats() {
    let folder = Folder::new();
    // Two parts spill; many are small, some empty.
    let mut sizes = vec![10, 0, 70_000, 5, 140_000, 0];
    sizes.extend([300; 40]);
    let n: usize = sizes.iter().sum();
    let expected: Vec<Row> = (0..n).map(row).collect();
    let path = folder.path().join("records.parquet");
    assert_eq!(write(&path, RecordsFormat::Parquet, &sizes), n as u64);
    let (rows, groups) = read_parquet(&path);
    assert!(rows == expected);
    assert!(groups < 10, "small parts share a row group: {groups}");
    let path = folder.path().join("records.csv");
    assert_eq!(write(&path, RecordsFormat::Csv, &sizes), n as u64);
    assert!(read_csv(&path) == expected);
    assert_eq!(folder.names(), ["records.csv", "records.parquet"]);
}

#[test]
fn a_file_without_records_is_still_a_file() {
    let folder = Folder::new();
    let path = folder.path().join("none.parquet");
    assert_eq!(write(&path, RecordsFormat::Parquet, &[]), 0);
    assert!(read_parquet(&path).0.is_empty());
    let path = folder.path().join("none.csv");
    assert_eq!(write(&path, RecordsFormat::Csv, &[0, 0]), 0);
    assert!(read_csv(&path).is_empty());
}

#[test]
fn without_finish_nothing_is_left_and_the_old_file_stays() {
    let folder = Folder::new();
    for (name, format) in [("a.parquet", RecordsFormat::Parquet), ("a.csv", RecordsFormat::Csv)] {
        let path = folder.write(name, "precious");
        let mut writer = RecordsWriter::create(&path, format, schema()).unwrap();
        let maker = writer.parts();
        let mut part = maker.part();
        (0..70_000).for_each(|i| push(&mut part, i));
        let mut open = maker.part();
        (0..70_000).for_each(|i| push(&mut open, i));
        writer.append(part).unwrap();
        drop(writer);
        drop(open);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
    assert_eq!(folder.names(), ["a.csv", "a.parquet"]);
}

#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    for (name, format) in [("p.parquet", RecordsFormat::Parquet), ("p.csv", RecordsFormat::Csv)] {
        let path = folder.write(name, "old and readable by all");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, format, &[3]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    let folder = Folder::new();
    let nowhere = folder.path().join("no/such/folder/r.csv");
    let error = RecordsWriter::create(&nowhere, RecordsFormat::Csv, schema()).unwrap_err();
    assert!(matches!(&error, Error::Write { path, .. } if *path == nowhere));
    let writer = RecordsWriter::create(&folder.path().join("r.csv"), RecordsFormat::Csv, schema()).unwrap();
    let mut part = writer.parts().part();
    assert!(matches!(part.push("a", &[], &[1.0, 2.0]), Err(Error::RecordShape { subject: "texts", .. })));
    assert!(matches!(part.push("a", &["x"], &[1.0]), Err(Error::RecordShape { subject: "numbers", .. })));
    assert!(part.is_empty());
}

#[test]
fn a_pass_writes_its_records() {
    let folder = Folder::new();
    let mut text = String::from("who,x,y\n");
    (0..5_000).for_each(|i| text += &format!("w{i},{i},{}\n", i % 3));
    let table = open(&folder.write("t.csv", text)).unwrap();
    let by = Roles { id: Some("who".into()), ..roles("y") };
    let options = EncodeOptions { scale: Scale::None, intercept: false, ..Default::default() };
    let encoding = fit(&table, &by, &options).unwrap();
    let data = dataset(&table, &encoding, Subset::Training);
    let path = folder.path().join("r.parquet");
    let mut writer = RecordsWriter::create(&path, RecordsFormat::Parquet, schema()).unwrap();
    let maker = writer.parts();
    data.fold_labelled(
        || maker.part(),
        |part, block, labels| {
            for i in 0..block.len() {
                part.push(&labels.ids[i], &["c"], &[block.row(i)[0], block.y[i]])?;
            }
            Ok(())
        },
        |part| writer.append(part).map_err(Into::into),
    )
    .unwrap();
    assert_eq!(writer.finish().unwrap(), 5_000);
    let (rows, _) = read_parquet(&path);
    assert!(
        rows.iter()
            .enumerate()
            .all(|(i, r)| { *r == (format!("w{i}"), "c".to_string(), Some(i as f64), (i % 3) as f64) })
    );
}
