//! Files: formats, quoting, several files as one table, and everything that can be wrong with them.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use arrow_array::types::Int32Type;
use arrow_array::*;
use common::*;
use flate2::{Compression, write::GzEncoder};
use leakscope_table::*;
use std::io::Write;
use std::sync::Arc;

fn plain() -> EncodeOptions {
    EncodeOptions { scale: Scale::None, intercept: false, one_hot: OneHot::Full, ..Default::default() }
}

fn encoded(table: &Table, roles: &Roles) -> (Encoding, Content) {
    let encoding = fit(table, roles, &plain()).unwrap();
    let content = content(&dataset(table, &encoding, Subset::Training));
    (encoding, content.uncut())
}

#[test]
fn quoting_delimiters_bom_crlf_and_gzip_read_the_same() {
    let folder = Folder::new();
    let expected = {
        let table =
            open(&folder.write("a.csv", "x,c,y\n1,\"a, \"\"b\"\"\",5\n-2.5,plain,6\n3e2,\"two\nlines\",7\n"))
                .unwrap();
        encoded(&table, &roles("y"))
    };
    assert_eq!(expected.0.attributes[1].levels, ["a, \"b\"", "plain", "two\nlines"]);
    assert_eq!(expected.1.x[..4], [1.0, 1.0, 0.0, 0.0]);
    let bom = "\u{feff} x ;c;y\r\n1;\"a, \"\"b\"\"\"; 5\r\n -2.5 ;plain;6\r\n\r\n3e2;\"two\nlines\";7";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bom.as_bytes()).unwrap();
    let files = [
        folder.write("b.csv", bom),
        folder.write("c.csv.gz", gzip.finish().unwrap()),
        folder.write("d.tsv", bom.replace(';', "\t")),
        folder.write("e.txt", bom.replace(';', "|")),
    ];
    for file in files {
        let table = open(&file).unwrap();
        assert_eq!(table.rows(&Hooks::default()).unwrap(), 3);
        assert_eq!(encoded(&table, &roles("y")), expected, "{}", file.display());
    }
}

#[test]
fn kinds_are_inferred() {
    let folder = Folder::new();
    let table = open(&folder.write("k.csv", ",n,t,e,late\n0,1,a,,\n1,NA,2,,x\n")).unwrap();
    let kinds: Vec<(&str, Kind)> = table.columns().iter().map(|c| (c.name.as_str(), c.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("unnamed_1", Kind::Number),
            ("n", Kind::Number),
            ("t", Kind::Category),
            ("e", Kind::Number),
            ("late", Kind::Category)
        ]
    );
}

#[test]
fn numbers_become_categories_on_request() {
    let folder = Folder::new();
    let table = open(&folder.write("z.csv", "zip,y\n01234,1\n99999,2\n01234,3\n")).unwrap();
    let by = Roles { categorical: vec!["zip".into()], ..roles("y") };
    let (encoding, content) = encoded(&table, &by);
    assert_eq!(encoding.attributes[0].levels, ["01234", "99999"]);
    assert_eq!(content.x, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn own_missing_markers_count_in_both_formats() {
    let folder = Folder::new();
    let csv = folder.write("m.csv", "x,c,y\n-999,u,1\n2,unknown,2\n4,v,3\n");
    let x: ArrayRef = Arc::new(Float64Array::from(vec![-999.0, 2.0, 4.0]));
    let c: ArrayRef = Arc::new(StringArray::from(vec!["u", "unknown", "v"]));
    let y: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let parquet = folder.parquet("m.parquet", vec![("x", x), ("c", c), ("y", y)], 10);
    for path in [csv, parquet] {
        let na = vec!["-999".into(), "unknown".into()];
        let table = Table::open(&ReadOptions { paths: vec![path], na, ..Default::default() }).unwrap();
        let options = EncodeOptions { missing: Missing::Drop, ..plain() };
        let encoding = fit(&table, &roles("y"), &options).unwrap();
        assert_eq!((encoding.profile[0].missing, encoding.profile[1].missing), (1, 1));
        assert_eq!(content(&dataset(&table, &encoding, Subset::Training)).x, [4.0, 1.0]);
    }
}

#[test]
fn several_files_are_one_table() {
    let folder = Folder::new();
    let whole = open(&folder.write("w.csv", "id,x,c,y\na,1,u,1\nb,2,v,2\nc,3,u,3\n")).unwrap();
    let parts = [
        folder.write("1.csv", "id,x,c,y\na,1,u,1\n"),
        folder.write("2.csv", "c;y;x;id\nv;2;2;b\n"),
        folder.write("3.csv", "id,x,c,y\nc,3,u,3\n"),
    ];
    let by = Roles { id: Some("id".into()), ..roles("y") };
    assert_eq!(encoded(&open_all(&parts).unwrap(), &by), encoded(&whole, &by));
    let twice = [parts[0].clone(), folder.write("4.csv", "id,x,c,y\nq,1,u,1\na,1,u,1\n")];
    let error = fit(&open_all(&twice).unwrap(), &by, &plain()).unwrap_err();
    assert!(matches!(&error, Error::DuplicateId { id, first, second, .. }
        if id == "a" && first.row == 1 && second.row == 2 && second.path.ends_with("4.csv")));
    let short = [parts[0].clone(), folder.write("5.csv", "id,x,y\nz,1,1\n")];
    assert!(
        matches!(open_all(&short), Err(Error::ColumnsDiffer { column, missing: true, .. }) if column == "c")
    );
    let long = [parts[0].clone(), folder.write("6.csv", "id,x,y,c,more\nz,1,1,u,0\n")];
    assert!(
        matches!(open_all(&long), Err(Error::ColumnsDiffer { column, missing: false, .. }) if column == "more")
    );
    assert!(matches!(open_all(&[]), Err(Error::NoFiles)));
}

/// The same table in both formats, with every Parquet type that has an encoding.
#[test]
fn parquet_types_read_as_csv_does() {
    let folder = Folder::new();
    let n = 700;
    let code = |i: usize| ["red", "green", "blue"][i % 3];
    let mut csv = String::from("id,i32,u64,f32,f64,dec,flag,text,dict,y\n");
    for i in 0..n {
        let gap = if i % 7 == 0 { String::new() } else { i.to_string() };
        csv += &format!(
            "k{i},{gap},{},{},{},{}.25,{},{},{},{}\n",
            i * 3,
            i as f32 * 0.5,
            i as f64 / 3.0,
            i,
            i % 2 == 0,
            code(i),
            code(i + 1),
            i % 11
        );
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringViewArray::from_iter_values((0..n).map(|i| format!("k{i}"))))),
        (
            "i32",
            Arc::new((0..n).map(|i| if i % 7 == 0 { None } else { Some(i as i32) }).collect::<Int32Array>()),
        ),
        ("u64", Arc::new(UInt64Array::from_iter_values((0..n).map(|i| i as u64 * 3)))),
        ("f32", Arc::new(Float32Array::from_iter_values((0..n).map(|i| i as f32 * 0.5)))),
        ("f64", Arc::new(Float64Array::from_iter_values((0..n).map(|i| i as f64 / 3.0)))),
        (
            "dec",
            Arc::new(
                Decimal128Array::from_iter_values((0..n).map(|i| i as i128 * 100 + 25))
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
        ),
        ("flag", Arc::new(BooleanArray::from_iter((0..n).map(|i| Some(i % 2 == 0))))),
        ("text", Arc::new(LargeStringArray::from_iter_values((0..n).map(code)))),
        ("dict", Arc::new((0..n).map(|i| code(i + 1)).collect::<DictionaryArray<Int32Type>>())),
        ("y", Arc::new(Int16Array::from_iter_values((0..n).map(|i| (i % 11) as i16)))),
    ];
    let csv = open(&folder.write("t.csv", csv)).unwrap();
    let parquet = open(&folder.parquet("t.parquet", columns, 100)).unwrap();
    assert_eq!(csv.columns(), parquet.columns());
    let by = Roles { id: Some("id".into()), group: Some("dict".into()), ..roles("y") };
    for missing in [Missing::Drop, Missing::Mean] {
        let options = EncodeOptions { missing, ..Default::default() };
        let (a, b) = (fit(&csv, &by, &options).unwrap(), fit(&parquet, &by, &options).unwrap());
        // Batches differ between the formats, so statistics may differ in the last digit; encode with one
        // of them.
        close(&[a.attributes[3].mean], &[b.attributes[3].mean], 1e-14);
        assert_eq!((&a.columns(), a.rows_dropped), (&b.columns(), b.rows_dropped));
        let [from_csv, from_parquet] =
            [&csv, &parquet].map(|table| content(&dataset(table, &a, Subset::Training)).uncut());
        assert_eq!(from_csv, from_parquet);
    }
    // Integers as categories and as ids.
    let options = EncodeOptions { missing: Missing::Drop, ..plain() };
    let by = Roles { id: Some("u64".into()), categorical: vec!["y".into(), "i32".into()], ..roles("f64") };
    let (a, b) = (fit(&csv, &by, &options).unwrap(), fit(&parquet, &by, &options).unwrap());
    assert_eq!(a.attributes[1].levels, b.attributes[1].levels);
    assert_eq!(
        content(&dataset(&csv, &a, Subset::Training)).ids,
        content(&dataset(&parquet, &b, Subset::Training)).ids
    );
}

#[test]
fn a_dictionary_value_that_no_row_has_is_no_level() {
    let folder = Folder::new();
    let values = StringArray::from(vec!["never", "b", "a"]);
    let keys = Int32Array::from(vec![Some(1), Some(2), None, Some(1)]);
    let dict: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(values)));
    let y: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let table = open(&folder.parquet("d.parquet", vec![("c", dict), ("y", y)], 10)).unwrap();
    let encoding = fit(&table, &roles("y"), &EncodeOptions { missing: Missing::Mean, ..plain() }).unwrap();
    assert_eq!(encoding.attributes[0].levels, ["a", "b"]);
    let x = content(&dataset(&table, &encoding, Subset::Training)).x;
    assert_eq!(x, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn a_type_without_encoding_is_an_error_only_where_it_is_used() {
    let folder = Folder::new();
    let day: ArrayRef = Arc::new(Time32SecondArray::from(vec![1, 2, 3]));
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 4.0]));
    let path = folder.parquet("d.parquet", vec![("day", day), ("x", x.clone()), ("y", x)], 10);
    let error = failure(&path, &roles("y"), &plain());
    assert!(matches!(&error, Error::UnsupportedType { column, .. } if column == "day"));
    assert!(error.to_string().contains("⟨drop=day⟩"));
    assert!(open(&path).unwrap().columns()[0].unsupported.is_some());
    let by = Roles { drop: vec!["day".into()], ..roles("y") };
    assert_eq!(encoded(&open(&path).unwrap(), &by).1.x, [1.0, 2.0, 4.0]);
}

#[test]
fn infinities_are_errors_and_nan_is_missing() {
    let folder = Folder::new();
    let parquet = |values: Vec<f64>| {
        let x: ArrayRef = Arc::new(Float64Array::from(values));
        let y: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
        folder.parquet("i.parquet", vec![("x", x), ("y", y)], 2)
    };
    let bad = |path: &std::path::Path, row: u64| {
        let error = failure(path, &roles("y"), &plain());
        assert!(
            matches!(&error, Error::Infinite { place, column } if place.row == row && column == "x"),
            "{error}"
        );
    };
    bad(&parquet(vec![1.0, 2.0, f64::INFINITY]), 3);
    bad(&folder.write("i.csv", "x,y\n1,1\n-inf,2\n"), 2);
    bad(&folder.write("o.csv", "x,y\n1,1\n1e999,2\n"), 2);
    let error = failure(&parquet(vec![1.0, f64::NAN, 3.0]), &roles("y"), &plain());
    assert!(matches!(&error, Error::Missing { columns, .. } if *columns == [("x".to_string(), 1)]));
}

#[test]
fn broken_files_say_what_is_wrong() {
    let folder = Folder::new();
    let error = |name: &str, content: &[u8]| failure(&folder.write(name, content), &roles("y"), &plain());
    assert!(matches!(error("empty.csv", b""), Error::EmptyFile { .. }));
    assert!(matches!(error("blank.csv", b"\n\r\n\n"), Error::EmptyFile { .. }));
    assert!(matches!(error("header.csv", b"x,y\n"), Error::NoRows { .. }));
    assert!(matches!(error("empty.parquet", b""), Error::EmptyFile { .. }));
    assert!(matches!(error("text.parquet", b"x,y\n1,2\n"), Error::Parquet { .. }));
    assert!(matches!(error("zeros.csv", b"x\0y\n1,2\n"), Error::UnknownFormat { .. }));
    assert!(matches!(error("notgz.csv.gz", b"x,y\n1,2\n"), Error::UnknownFormat { .. }));
    assert!(matches!(error("latin.csv", b"caf\xe9,y\na,2\n"), Error::NotUtf8 { row: 0, .. }));
    assert!(matches!(error("latin2.csv", b"c,y\na,1\ncaf\xe9,2\n"), Error::NotUtf8 { row: 2, .. }));
    let fields = error("fields.csv", b"x,y\n1,2\n1,2,3\n");
    assert!(matches!(&fields, Error::Fields { place, actual: 3, expected: 2 } if place.row == 2));
    // A title above the table, as in the test file of UCI's Adult.
    for title in ["|1x3 Cross validator", "people of 2024"] {
        for no_header in [false, true] {
            let path = folder.write("title.csv", format!("{title}\n25, Private, <=50K.\n38, State, >50K.\n"));
            let read = ReadOptions { paths: vec![path], no_header, ..Default::default() };
            let titled = Table::open(&read).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(
                titled.contains(&format!("the first line, `{title}`"))
                    && titled.contains("3 fields separated by `,`"),
                "{no_header}: {titled}"
            );
        }
    }
    let fields = error("fields.csv", b"x,y\n1,2,3\n1,2\n");
    assert!(matches!(&fields, Error::Fields { place, actual: 3, expected: 2 } if place.row == 1), "{fields}");
    assert!(
        matches!(error("twice.csv", b"x,y,x\n1,2,3\n"), Error::DuplicateColumn { column, .. } if column == "x")
    );
    assert!(matches!(failure(folder.path(), &roles("y"), &plain()), Error::Folder { .. }));
    assert!(matches!(failure(&folder.path().join("nothing.csv"), &roles("y"), &plain()), Error::Read { .. }));

    let y: ArrayRef = Arc::new(Float64Array::from_iter_values((0..5000).map(|i| f64::from(i) * 1.7)));
    let whole = folder.parquet("whole.parquet", vec![("x", y.clone()), ("y", y)], 1000);
    let bytes = std::fs::read(whole).unwrap();
    assert!(matches!(error("cut.parquet", &bytes[..bytes.len() / 2]), Error::Parquet { .. }));
    let mut damaged = bytes.clone();
    damaged[4..40].fill(0xA5); // the header of the first page
    assert!(matches!(error("damaged.parquet", &damaged), Error::Parquet { .. }));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    (0..20_000).for_each(|i| writeln!(gzip, "{},{}", i * 7919 % 10007, i).unwrap());
    let gzip = gzip.finish().unwrap();
    assert!(matches!(error("cut.csv.gz", &gzip[..gzip.len() / 2]), Error::Read { .. }));
}

#[test]
fn a_file_with_columns_but_no_rows_in_parquet() {
    let folder = Folder::new();
    let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
    let path = folder.parquet("none.parquet", vec![("x", none.clone()), ("y", none)], 10);
    assert!(matches!(failure(&path, &roles("y"), &plain()), Error::NoRows { .. }));
}

#[test]
fn bad_cells_are_named_by_column_and_row() {
    let folder = Folder::new();
    // The kind is inferred from the first 10,000 rows; the text comes later.
    let mut late = String::from("x,y\n");
    (0..10_050).for_each(|i| late += &format!("{i},{i}\n"));
    late += "oops,1\n";
    let error = failure(&folder.write("late.csv", late), &roles("y"), &plain());
    assert!(matches!(&error, Error::TextInNumber { place, column, value, .. }
        if place.row == 10_051 && column == "x" && value == "oops"));
    assert!(error.to_string().contains("⟨categorical=x⟩"));

    let missing = failure(&folder.write("gaps.csv", "a,b,y\n1,,1\n,,2\n3,x,3\n"), &roles("y"), &plain());
    assert!(matches!(&missing, Error::Missing { columns, .. }
        if *columns == [("a".to_string(), 1), ("b".to_string(), 2)]));
    assert!(missing.to_string().contains("⟨missing=drop⟩") && !missing.to_string().contains("⟨no_header⟩"));
    let headless =
        failure(&folder.write("headless.csv", "39,7,50\n1,,1\n,8,2\n3,9,3\n"), &roles("50"), &plain());
    assert!(matches!(&headless, Error::Missing { header_is_data: true, .. }), "{headless}");
    assert!(headless.to_string().contains("with ⟨no_header⟩ columns are called c1"), "{headless}");

    let mean = EncodeOptions { missing: Missing::Mean, ..plain() };
    let target = failure(&folder.write("t.csv", "a,y\n1,\n2,2\n"), &roles("y"), &mean);
    assert!(matches!(&target, Error::MissingRole { column, role: "target", count: 1 } if column == "y"));
    let hollow = failure(&folder.write("h.csv", "a,b,y\n1,,1\n2,,2\n"), &roles("y"), &mean);
    assert!(matches!(&hollow, Error::NoValues { column } if column == "b"));
    let drop = EncodeOptions { missing: Missing::Drop, ..plain() };
    let gone = failure(&folder.write("g.csv", "a,b,y\n1,,1\n2,,2\n"), &roles("y"), &drop);
    assert!(matches!(gone, Error::AllDropped { rows: 2 }));

    let huge = EncodeOptions::default();
    let error = failure(&folder.write("huge.csv", "a,y\n1e300,1\n-1e300,2\n"), &roles("y"), &huge);
    assert!(matches!(&error, Error::TooLarge { column, .. } if column == "a"));
}

#[test]
fn identifiers_are_recognised() {
    let folder = Folder::new();
    let mut text = String::from("name,y\n");
    (0..10_001).for_each(|i| text += &format!("n{i},{i}\n"));
    let path = folder.write("ids.csv", text);
    // Left out as an identifier, nothing remains; as a category it has too many levels.
    assert!(matches!(failure(&path, &roles("y"), &plain()), Error::NoFeatures));
    let by = Roles { categorical: vec!["name".into()], ..roles("y") };
    let error = failure(&path, &by, &plain());
    assert!(matches!(&error, Error::TooManyLevels { column, limit: 10_000 } if column == "name"));
    let mut text = String::from("name,x,y\n");
    (0..30_000).for_each(|i| text += &format!("n{i},{i},{}\n", i % 701));
    let encoding = fit(&open(&folder.write("more.csv", text)).unwrap(), &roles("y"), &plain()).unwrap();
    assert_eq!(encoding.attributes.len(), 1);
    assert_eq!(encoding.remarks, [Remark::Identifier { column: "name".into(), values: None, rows: 30_000 }]);
    // Many levels that come back are no names of rows: somebody must decide.
    let mut text = String::from("code,x,y\n");
    (0..30_000).for_each(|i| text += &format!("n{},{i},{}\n", i % 12_000, i % 7));
    let error = failure(&folder.write("codes.csv", text), &roles("y"), &plain());
    assert!(matches!(&error, Error::TooManyLevels { column, .. } if column == "code"));
    let by = Roles { id: Some("name".into()), ..roles("y") };
    assert!(matches!(failure(&path, &by, &plain()), Error::NoFeatures));
    let error = failure(
        &folder.write("dup.csv", "id,x,y\na,1,1\nb,2,2\na,3,3\n"),
        &Roles { id: Some("id".into()), ..roles("y") },
        &plain(),
    );
    assert!(matches!(&error, Error::DuplicateId { id, first, second, .. }
        if id == "a" && first.row == 1 && second.row == 3));
}

#[test]
fn roles_are_checked() {
    let folder = Folder::new();
    let path = folder.write("r.csv", "age,sex,w,y\n1,a,1,1\n2,b,1,0\n3,b,-1,1\n");
    let error = failure(&path, &roles("Y"), &plain());
    assert!(matches!(&error, Error::UnknownColumn { flag: "target", closest, .. } if closest[0] == "y"));
    let drop = Roles { drop: vec!["agee".into()], ..roles("y") };
    assert!(
        matches!(failure(&path, &drop, &plain()), Error::UnknownColumn { closest, .. } if closest[0] == "age")
    );
    let both = Roles { id: Some("y".into()), ..roles("y") };
    assert!(matches!(failure(&path, &both, &plain()), Error::RoleConflict { .. }));
    let dropped = Roles { drop: vec!["y".into()], ..roles("y") };
    assert!(matches!(failure(&path, &dropped, &plain()), Error::RoleConflict { second: "drop", .. }));
    let weights = Roles { weights: Some("w".into()), ..roles("y") };
    assert!(matches!(failure(&path, &weights, &plain()), Error::Weight { place, .. } if place.row == 3));
    let zero = folder.write("z.csv", "x,w,y\n1,0,1\n2,0,2\n");
    assert!(matches!(failure(&zero, &weights, &plain()), Error::ZeroWeights { .. }));
    let text = Roles { weights: Some("sex".into()), ..roles("y") };
    assert!(matches!(failure(&path, &text, &plain()), Error::TextWeights { .. }));
}

#[test]
fn one_word_among_numbers_is_an_error_unless_the_column_is_declared() {
    let folder = Folder::new();
    let table = |words: &[usize]| {
        let rows: String = (0..30)
            .map(|i| {
                format!("{},{}\n", if words.contains(&i) { "n.a.".into() } else { i.to_string() }, i % 7)
            })
            .collect();
        format!("x,y\n{rows}")
    };
    let path = folder.write("one.csv", table(&[11, 20]));
    let wrong = |e: Error| match e {
        Error::TextInNumber { place, column, value, .. } => {
            (place.row, &*column, &*value) == (12, "x", "n.a.")
        }
        _ => false,
    };
    assert!(wrong(failure(&path, &roles("y"), &plain())));
    let weights = Roles { weights: Some("x".into()), ..roles("y") };
    assert!(wrong(failure(&path, &weights, &plain())));
    let declared = Roles { categorical: vec!["x".into()], ..roles("y") };
    assert_eq!(fit(&open(&path).unwrap(), &declared, &plain()).unwrap().attributes[0].levels.len(), 29);
    // Five words in thirty cells: codes, not slips.
    let codes = folder.write("codes.csv", table(&[1, 5, 6, 20, 29]));
    assert_eq!(fit(&open(&codes).unwrap(), &roles("y"), &plain()).unwrap().attributes[0].levels.len(), 26);
}

#[test]
fn targets_are_checked() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "x,one,three,neg,two\n1,a,p,1,u\n2,a,q,-2,v\n3,a,r,3,v\n");
    let error = |target: &str, kind, positive: Option<&str>| {
        let drop =
            ["one", "three", "neg", "two"].iter().filter(|c| **c != target).map(|c| c.to_string()).collect();
        let options = EncodeOptions { target: kind, positive: positive.map(Into::into), ..plain() };
        failure(&path, &Roles { drop, ..roles(target) }, &options)
    };
    let number = TargetKind::Number { two_class_as_plus_minus_one: true };
    assert!(
        matches!(error("one", TargetKind::TwoClass01, None), Error::Target(TargetError::OneClass { class, .. }) if class == "a")
    );
    assert!(matches!(error("one", number, None), Error::Target(TargetError::OneClass { .. })));
    assert!(
        matches!(error("three", TargetKind::TwoClass01, None), Error::Target(TargetError::ManyClasses { classes, more: false, .. })
        if classes == ["p", "q", "r"])
    );
    assert!(
        matches!(error("neg", TargetKind::TwoClass01, None), Error::Target(TargetError::ManyClasses { classes, .. })
        if classes == ["-2", "1", "3"])
    );
    assert!(matches!(error("three", number, None), Error::Target(TargetError::TextTarget { .. })));
    assert!(matches!(
        error("two", TargetKind::Number { two_class_as_plus_minus_one: false }, None),
        Error::Target(TargetError::TextTarget { .. })
    ));
    assert!(matches!(error("three", TargetKind::Count, None), Error::Target(TargetError::TextTarget { .. })));
    assert!(
        matches!(error("neg", TargetKind::Count, None), Error::Target(TargetError::NegativeCount { place, value, .. })
        if place.row == 2 && value == -2.0)
    );
    assert!(
        matches!(error("two", TargetKind::TwoClass01, Some("w")), Error::Target(TargetError::Positive { low, high, .. })
        if low == "u" && high == "v")
    );
    assert!(matches!(error("neg", number, Some("1")), Error::Target(TargetError::PositiveUnused { .. })));
    // More than two classes: what to choose instead.
    for kind in [number, TargetKind::TwoClass01, TargetKind::Count] {
        assert!(error("three", kind, None).to_string().contains("⟨model=softmax⟩"));
    }
    // A few whole numbers may be classes; many, fractions or single rows are not taken for them.
    let column = |value: &dyn Fn(usize) -> f64, rows: usize| {
        (0..rows).fold(String::from("x,y\n"), |text, i| text + &format!("{},{}\n", i * i, value(i)))
    };
    let remarked = |text: String| {
        let path = folder.write("few.csv", text);
        let options = EncodeOptions { target: number, ..plain() };
        let actual = fit(&open(&path).unwrap(), &roles("y"), &options).unwrap();
        actual.remarks.iter().any(|r| matches!(r, Remark::FewValues { values: 3, .. }))
    };
    assert!(remarked(column(&|i| (i % 3) as f64, 30)));
    assert!(!remarked(column(&|i| (i % 3) as f64, 6)));
    assert!(!remarked(column(&|i| (i % 3) as f64 / 2.0, 30)));
    assert!(!remarked(column(&|i| (i % 20) as f64, 60)));
}

#[test]
fn options_are_checked() {
    let folder = Folder::new();
    let path = folder.write("o.csv", "x,c,y\n1,a,1\n2,a,2\n4,a,3\n");
    for k in [0, 3] {
        let options = EncodeOptions { pca: Some(k), ..plain() };
        assert!(matches!(failure(&path, &roles("y"), &options), Error::Components { columns: 2, .. }));
    }
    for fraction in [0.0, 1.0, -0.1, f64::NAN] {
        let options = EncodeOptions { holdout: Some(Holdout::seeded(fraction, 1)), ..plain() };
        assert!(matches!(failure(&path, &roles("y"), &options), Error::Holdout { .. }));
    }
    let options = EncodeOptions { holdout: Some(Holdout::seeded(1e-9, 1)), ..plain() };
    assert!(matches!(failure(&path, &roles("y"), &options), Error::HoldoutEmpty { side: "to test on", .. }));
    let by = Roles { drop: vec!["x".into()], ..roles("y") };
    assert!(matches!(failure(&path, &by, &EncodeOptions::default()), Error::NoColumns));
    let read = ReadOptions { paths: vec![path], delimiter: Some(b'"'), ..Default::default() };
    assert!(matches!(Table::open(&read), Err(Error::Delimiter)));
}

/// Whatever bytes are overwritten, the answer is a result or an error, never a panic.
#[test]
fn a_damaged_parquet_file_never_panics() {
    let folder = Folder::new();
    let n = 500;
    let x: ArrayRef =
        Arc::new(Float64Array::from_iter((0..n).map(|i| if i % 9 == 0 { None } else { Some(f64::from(i)) })));
    let c: ArrayRef = Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("level {}", i % 5))));
    let y: ArrayRef = Arc::new(Int32Array::from_iter_values((0..n).map(|i| i % 7)));
    let bytes = std::fs::read(folder.parquet("w.parquet", vec![("x", x), ("c", c), ("y", y)], 200)).unwrap();
    let options = EncodeOptions { missing: Missing::Mean, ..plain() };
    let mut failures = 0;
    for k in 0..800_usize {
        let mut damaged = bytes.clone();
        let at = 4 + k * 7919 % (bytes.len() - 12);
        damaged[at..at + 1 + k % 5].fill((k * 37 % 256) as u8);
        let path = folder.write("d.parquet", &damaged);
        let read = open(&path).and_then(|t| fit(&t, &roles("y"), &options));
        failures += usize::from(read.is_err());
    }
    assert!(failures > 50);
}
