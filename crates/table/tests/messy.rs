//! Tables as people have them: what is guessed about them is said, and what cannot be guessed is asked.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use arrow_array::*;
use common::*;
use leakscope_table::*;
use std::sync::Arc;

fn plain() -> EncodeOptions {
    EncodeOptions { scale: Scale::None, intercept: false, one_hot: OneHot::Full, ..Default::default() }
}

fn read(table: &Table, roles: &Roles, options: &EncodeOptions) -> (Encoding, Content) {
    let encoding = fit(table, roles, options).unwrap();
    let content = content(&dataset(table, &encoding, Subset::Training));
    (encoding, content)
}

fn opened(folder: &Folder, name: &str, content: impl AsRef<[u8]>, options: ReadOptions) -> Result<Table> {
    Table::open(&ReadOptions { paths: vec![folder.write(name, content)], ..options })
}

fn names(encoding: &Encoding) -> Vec<&str> {
    encoding.attributes.iter().map(|a| a.name.as_str()).collect()
}

#[test]
fn identifiers_and_row_numbers_are_left_out_and_said() {
    let folder = Folder::new();
    let mut text = String::from(",Unnamed: 3,__index_level_0__,email,note,city,x,y\n");
    for i in 0..60 {
        // An address is missing now and then, and that must not cost the row.
        let note = if i % 9 == 0 { String::new() } else { format!("note {i}") };
        text += &format!(
            "{i},{i},{i},p{i}@example.org,{note},{},{},{}\n",
            ["Ulm", "Bonn"][i % 2],
            i * i % 17,
            i % 7
        );
    }
    let table = open(&folder.write("people.csv", text)).unwrap();
    let (encoding, content) = read(&table, &roles("y"), &EncodeOptions { missing: Missing::Drop, ..plain() });
    assert_eq!(names(&encoding), ["city", "x"]);
    assert_eq!((content.y.len(), encoding.rows_dropped), (60, 0));
    let remarks: Vec<(Option<&str>, String)> =
        encoding.remarks.iter().map(|r| (r.column(), r.to_string())).collect();
    for column in ["unnamed_1", "Unnamed: 3", "__index_level_0__", "email", "note"] {
        let of: Vec<&String> = remarks.iter().filter(|(c, _)| *c == Some(column)).map(|(_, t)| t).collect();
        assert!(
            of.len() == 1 && of[0].contains(column) && of[0].contains("left out"),
            "{column}: {remarks:?}"
        );
    }
    assert!(encoding.remarks.contains(&Remark::Identifier {
        column: "email".into(),
        values: Some(53), // rows without a note were dropped while it was still a category
        rows: 53
    }));
    // Somebody who says what they are is believed.
    let by = Roles {
        categorical: vec!["email".into(), "unnamed_1".into()],
        drop: vec!["note".into()],
        ..roles("y")
    };
    let (encoding, _) = read(&table, &by, &plain());
    assert_eq!(names(&encoding), ["unnamed_1", "email", "city", "x"]);
    assert_eq!(encoding.attributes[1].levels.len(), 60);
}

/// A column without a name that holds incomes is no index.
#[test]
fn a_column_without_a_name_is_left_out_only_where_it_counts_rows() {
    let folder = Folder::new();
    let mut text = String::from("age,,Unnamed: 2,y\n");
    for i in 0..60 {
        text += &format!("{},{}.5,{},{}\n", 20 + i % 50, 1000 + i * 7919 % 900, i * 31 % 60, i % 7);
    }
    let table = open(&folder.write("incomes.csv", text)).unwrap();
    let (encoding, _) = read(&table, &roles("y"), &plain());
    assert_eq!(names(&encoding), ["age", "unnamed_2", "Unnamed: 2"]);
    for column in ["unnamed_2", "Unnamed: 2"] {
        assert!(
            encoding.remarks.contains(&Remark::Nameless { column: column.into() }),
            "{:?}",
            encoding.remarks
        );
    }
    // Two files in one: it counts up twice.
    let mut text = String::from(",x,y\n");
    for i in 0..60 {
        text += &format!("{},{},{}\n", i % 30, i * 31 % 60, i % 7);
    }
    let (encoding, _) = read(&open(&folder.write("twice.csv", text)).unwrap(), &roles("y"), &plain());
    assert_eq!(names(&encoding), ["x"]);
}

#[test]
fn few_rows_do_not_make_an_identifier() {
    let folder = Folder::new();
    let table = open(&folder.write("few.csv", "c,y\na,1\nb,2\nc,3\nd,4\n")).unwrap();
    let (encoding, _) = read(&table, &roles("y"), &plain());
    assert_eq!((names(&encoding), encoding.remarks.len()), (vec!["c"], 0));
}

#[test]
fn dates_are_days_in_every_format() {
    let folder = Folder::new();
    let table = open(&folder.write(
        "d.csv",
        "day,at,y\n1970-01-01,2024-02-29 12:00,1\n2000-03-01,2024-03-01T00:00Z,2\n,1969-12-31T18:00,3\n",
    ))
    .unwrap();
    assert_eq!(table.columns()[0].notation, Notation::Date(DateOrder::YearFirst));
    let options = EncodeOptions { missing: Missing::Mean, ..plain() };
    let (encoding, content) = read(&table, &roles("y"), &options);
    // 30 years of 365 days, 7 leap days before 2000, 31 + 29 days.
    let expected = [0.0, 19_782.5, 11_017.0, 19_783.0, 5508.5, -0.25];
    assert_eq!(content.x, expected);
    assert!(encoding.remarks.contains(&Remark::Dates { column: "day".into(), order: DateOrder::YearFirst }));
    assert_eq!(encoding.attributes[0].unit.as_deref(), Some("days since 1970-01-01"));
    let day: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), Some(11_017), None]));
    let at: ArrayRef = Arc::new(
        TimestampMicrosecondArray::from(vec![1_709_208_000_000_000, 1_709_251_200_000_000, -21_600_000_000])
            .with_timezone("+00:00"),
    );
    let y: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let parquet = open(&folder.parquet("d.parquet", vec![("day", day), ("at", at), ("y", y)], 2)).unwrap();
    assert_eq!(table.columns(), parquet.columns());
    let (_, same) = read(&parquet, &roles("y"), &options);
    assert_eq!(same.x, expected);
    // As categories they are the text of the file.
    let by = Roles { categorical: vec!["day".into(), "at".into()], ..roles("y") };
    let (encoding, _) = read(&parquet, &by, &options);
    assert_eq!(encoding.attributes[0].levels, ["1970-01-01", "2000-03-01"]);
    assert_eq!(encoding.attributes[1].levels[2], "2024-03-01");
    // A date among numbers in another file is no number of days.
    let files = [folder.write("1.csv", "t,y\n2024-01-01,1\n"), folder.write("2.csv", "t,y\n5,1\n")];
    assert!(matches!(open_all(&files), Err(Error::NotationsDiffer { column, .. }) if column == "t"));
}

#[test]
fn currencies_shares_and_separators_are_read_and_said() {
    let folder = Folder::new();
    let csv = "price;share;people;y\n$1,200.50;12.5%;1,234;1\n-$3;7 %;12;2\n15;0%;1,000,000;3\n";
    let table = open(&folder.write("m.csv", csv)).unwrap();
    let (encoding, content) = read(&table, &roles("y"), &plain());
    assert_eq!(content.x, [1200.5, 12.5, 1234.0, -3.0, 7.0, 12.0, 15.0, 0.0, 1_000_000.0]);
    let expected = [
        Remark::Unit { column: "price".into(), unit: "$".into() },
        Remark::Unit { column: "share".into(), unit: "%".into() },
        Remark::Separators { column: "people".into() },
    ];
    assert_eq!(encoding.remarks, expected);
    let units: Vec<Option<&str>> = encoding.attributes.iter().map(|a| a.unit.as_deref()).collect();
    assert_eq!(units, [Some("$"), Some("%"), None]);
}

#[test]
fn a_decimal_comma_is_asked_for_and_read() {
    let folder = Folder::new();
    let csv = "x;euro;n;y\n1,5;1.200,50 €;1.234;0,25\n-2;3 €;5;1\n";
    let error = opened(&folder, "k.csv", csv, ReadOptions::default())
        .and_then(|t| fit(&t, &roles("y"), &plain()))
        .unwrap_err();
    assert!(
        matches!(&error, Error::DecimalComma { column, value, place } if column == "x" && value == "1,5" && place.row == 1)
    );
    assert!(error.to_string().contains("⟨decimal=,⟩"));
    let options = ReadOptions { decimal: Decimal::Comma, ..Default::default() };
    let (encoding, content) = read(&opened(&folder, "k.csv", csv, options).unwrap(), &roles("y"), &plain());
    assert_eq!(content.x, [1.5, 1200.5, 1234.0, -2.0, 3.0, 5.0]);
    assert_eq!(content.y, [-1.0, 1.0]); // two values: 0.25 and 1
    assert!(encoding.remarks.contains(&Remark::Unit { column: "euro".into(), unit: "€".into() }));
}

#[test]
fn encodings_give_the_same_table() {
    let folder = Folder::new();
    let text = "stadt;größe;y\nKöln;1;1\nBonn;2;2\nKöln;4;3\n";
    let expected = read(&open(&folder.write("u.csv", text)).unwrap(), &roles("y"), &plain());
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let bare = opened(&folder, "l.csv", &latin, ReadOptions::default());
    assert!(bare.unwrap_err().to_string().contains("⟨encoding=latin-1⟩"));
    let options = |encoding| ReadOptions { encoding, ..Default::default() };
    let table = opened(&folder, "l.csv", &latin, options(TextEncoding::Latin1)).unwrap();
    assert_eq!(read(&table, &roles("y"), &plain()), expected);
    let wide = |mark: bool| -> Vec<u8> {
        let mark = if mark { "\u{feff}" } else { "" };
        mark.encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    for (bytes, encoding) in [(wide(true), TextEncoding::Utf8), (wide(false), TextEncoding::Utf16)] {
        let table = opened(&folder, "w.csv", bytes, options(encoding)).unwrap();
        assert_eq!(read(&table, &roles("y"), &plain()), expected);
    }
    assert!(matches!(
        opened(&folder, "w.csv", wide(false), ReadOptions::default()),
        Err(Error::UnknownFormat { .. })
    ));
}

#[test]
fn a_file_without_names_is_recognised_and_read() {
    let folder = Folder::new();
    let adult = "39, State-gov, 77516, <=50K\n50, Private, 83311, >50K\n38, Private, 215646, <=50K\n52, State-gov, 1, >50K\n";
    let table = opened(&folder, "adult.data", adult, ReadOptions::default()).unwrap();
    assert!(table.header_is_data());
    let error = fit(&table, &roles("income"), &plain()).unwrap_err();
    assert!(error.to_string().contains("⟨no_header⟩"), "{error}");
    let (encoding, _) = read(&table, &roles("<=50K"), &plain());
    assert_eq!(encoding.remarks[0], Remark::HeaderIsData);
    let twice = opened(&folder, "t.data", "1,1,a\n2,3,b\n", ReadOptions::default()).unwrap_err();
    assert!(matches!(&twice, Error::DuplicateColumn { header_is_data: true, .. }));
    assert!(twice.to_string().contains("⟨no_header⟩"));

    let options = ReadOptions { no_header: true, ..Default::default() };
    let table = opened(&folder, "adult.data", adult, options.clone()).unwrap();
    assert_eq!((table.rows(&Hooks::default()).unwrap(), table.header_is_data()), (4, false));
    let (encoding, content) = read(&table, &roles("c4"), &plain());
    assert_eq!(names(&encoding), ["c1", "c2", "c3"]);
    assert_eq!(content.x[..4], [39.0, 0.0, 1.0, 77516.0]);
    let late =
        opened(&folder, "l.csv", "1,2\n3,x\n5,6\n7,8\n9,1\n3,2\n1,2\n1,1\n1,3\n1,2\n", options).unwrap();
    let error = fit(&late, &roles("c1"), &plain()).unwrap_err();
    assert!(
        matches!(&error, Error::TextInNumber { place, .. } if place.row == 2 && !place.header),
        "{error}"
    );
    // Ordinary names, and years as names, are names.
    for csv in ["id,2019,2020\n1,5,6\n2,7,8\n", "age,y\n1,2\n", "c\na\nb\n"] {
        assert!(!opened(&folder, "n.csv", csv, ReadOptions::default()).unwrap().header_is_data(), "{csv}");
    }
}

#[test]
fn json_lines_are_csv() {
    let folder = Folder::new();
    let csv = "x,c,flag,late,y\n1.5,\"a, b\",true,,1\n-2,é,false,3,2\n4,\"a, b\",,,3\n";
    let json = "{\"x\": 1.5, \"c\": \"a, b\", \"flag\": true, \"y\": 1}\n\n\
                {\"x\": -2, \"c\": \"\\u00e9\", \"late\": 3, \"flag\": false, \"y\": 2}\n{\"c\": \"a, b\", \"y\": 3, \"x\": 4, \"flag\": null}\n";
    let options = EncodeOptions { missing: Missing::Mean, ..plain() };
    // The column that comes up late stands where it comes up.
    let order = Roles { drop: vec!["late".into()], ..roles("y") };
    let expected = read(&open(&folder.write("a.csv", csv)).unwrap(), &order, &options);
    for name in ["a.jsonl", "a.ndjson", "a.json"] {
        assert_eq!(read(&open(&folder.write(name, json)).unwrap(), &order, &options), expected);
    }
    let error = |json: &str| open(&folder.write("bad.jsonl", json)).unwrap_err();
    let nested = error("{\"x\": 1}\n{\"x\": [1]}\n");
    assert!(matches!(&nested, Error::Nested { place, column } if place.row == 2 && column == "x"));
    assert!(matches!(error("{\"x\": 1}\n{\"x\": \n"), Error::Json { place, .. } if place.row == 2));
    assert!(matches!(error("5\n"), Error::Json { .. }));
    assert!(matches!(error("[{\"x\": 1}]\n"), Error::JsonArray { .. }));
    assert!(matches!(error("{}\n"), Error::EmptyFile { .. }));
}

#[test]
fn feather_is_read_as_parquet_is() {
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    let folder = Folder::new();
    let n = 300;
    let x: ArrayRef =
        Arc::new((0..n).map(|i| (i % 5 != 0).then_some(f64::from(i))).collect::<Float64Array>());
    let c: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..n).map(|i| ["u", "v", "w"][i as usize % 3])));
    let d: ArrayRef = Arc::new(Date32Array::from_iter_values(0..n));
    let y: ArrayRef = Arc::new(Int32Array::from_iter_values((0..n).map(|i| i % 7)));
    let columns = vec![("x", x), ("c", c), ("d", d), ("y", y)];
    let batch = RecordBatch::try_from_iter(columns.clone()).unwrap();
    let parquet = open(&folder.parquet("a.parquet", columns, 100)).unwrap();
    let options = EncodeOptions { missing: Missing::Drop, ..plain() };
    let expected = read(&parquet, &roles("y"), &options).1;
    for compression in
        [None, Some(arrow_ipc::CompressionType::LZ4_FRAME), Some(arrow_ipc::CompressionType::ZSTD)]
    {
        let path = folder.path().join("a.feather");
        let file = std::fs::File::create(&path).unwrap();
        let written = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), written).unwrap();
        writer.write(&batch.slice(0, 120)).unwrap();
        writer.write(&batch.slice(120, 180)).unwrap();
        writer.finish().unwrap();
        let content = read(&open(&path).unwrap(), &roles("y"), &options).1;
        assert_eq!(
            (content.x, content.y, content.ids),
            (expected.x.clone(), expected.y.clone(), expected.ids.clone())
        );
    }
    let bytes = std::fs::read(folder.path().join("a.feather")).unwrap();
    let cut = folder.write("cut.feather", &bytes[..bytes.len() / 2]);
    assert!(matches!(open(&cut), Err(Error::Arrow { .. })));
    let mut failures = 0;
    for k in 0..300_usize {
        let mut damaged = bytes.clone();
        let at = 8 + k * 7919 % (bytes.len() - 16);
        damaged[at..at + 1 + k % 5].fill((k * 37 % 256) as u8);
        let read = open(&folder.write("d.feather", &damaged)).and_then(|t| fit(&t, &roles("y"), &options));
        failures += usize::from(read.is_err());
    }
    assert!(failures > 10, "{failures}");
    assert!(matches!(open(&folder.write("one.feather", b"FEA1....")), Err(Error::OldFeather { .. })));
}

#[test]
fn workbooks_are_refused_by_name() {
    let folder = Folder::new();
    for (name, word) in [
        ("a.xlsx", "Excel"),
        ("a.xls", "Excel"),
        ("a.ods", "spreadsheet"),
        ("a.sav", "SPSS"),
        ("a.dta", "Stata"),
    ] {
        let error = open(&folder.write(name, b"PK\x03\x04whatever")).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("CSV") && error.contains(name), "{error}");
    }
    assert!(matches!(open(&folder.write("table.csv", b"PK\x03\x04whatever")), Err(Error::Workbook { .. })));
}

#[test]
fn weights_have_the_mean_one() {
    let folder = Folder::new();
    let by = Roles { weights: Some("w".into()), ..roles("y") };
    let csv = |factor: f64| {
        let row = |(i, w): (usize, f64)| format!("{i},{},{}\n", w * factor, i * i);
        "x,w,y\n".to_string() + &[0.5, 1.0, 0.0, 2.5].into_iter().enumerate().map(row).collect::<String>()
    };
    let (unit, expected) = read(&open(&folder.write("1.csv", csv(1.0))).unwrap(), &by, &plain());
    assert_eq!((unit.weight_mean, unit.remarks.len()), (1.0, 0));
    assert_eq!(expected.weight, [0.5, 1.0, 0.0, 2.5]);
    for factor in [1e4, 0.125, 1e-200] {
        let (encoding, content) = read(&open(&folder.write("f.csv", csv(factor))).unwrap(), &by, &plain());
        close(&content.weight, &expected.weight, 1e-14);
        assert!((encoding.weight_mean / factor - 1.0).abs() < 1e-14);
        assert!(matches!(&encoding.remarks[..], [Remark::Weights { column, .. }] if column == "w"));
        // Other rows keep the scale of the training rows.
        let other = open(&folder.write("o.csv", format!("x,w,y\n1,{},2\n", 3.0 * factor))).unwrap();
        close(&common::content(&dataset(&other, &encoding, Subset::All)).weight, &[3.0], 1e-14);
    }
    let zero = folder.write("z.csv", "x,w,y\n1,0,1\n2,0,2\n");
    assert!(matches!(failure(&zero, &by, &plain()), Error::ZeroWeights { .. }));
    let huge = folder.write("h.csv", "x,w,y\n1,1.7e308,1\n2,1.7e308,2\n");
    assert!(matches!(failure(&huge, &by, &plain()), Error::TooLarge { column, .. } if column == "w"));
}

#[test]
fn copies_are_counted() {
    let folder = Folder::new();
    let (mut text, mut rows) = (String::from("id,x,c,y\n"), vec![]);
    for i in 0..3000 {
        let row = (i * 7919 % 50, ["u", "v", "w"][i * 31 % 3], i % 4);
        // −0 is 0, and a number is the same however it is written.
        let x = match row.0 {
            0 if i % 2 == 0 => "-0".into(),
            x if i % 3 == 0 => format!("{x}.0"),
            x => x.to_string(),
        };
        text += &format!("{i},{x},{},{}\n", row.1, row.2);
        rows.push(row);
    }
    let distinct: std::collections::HashSet<_> = rows.iter().collect();
    let copies = (rows.len() - distinct.len()) as u64;
    let by = Roles { id: Some("id".into()), ..roles("y") };
    let table = open(&folder.write("c.csv", text)).unwrap();
    let (encoding, _) = read(&table, &by, &plain());
    assert_eq!(encoding.copies, Some(copies));
    assert!(encoding.remarks.contains(&Remark::Duplicates { copies, rows: 3000 }));
    // Columns that are not used do not tell rows apart; those that are used do.
    let by = Roles { drop: vec!["id".into(), "c".into()], ..roles("y") };
    let fewer: std::collections::HashSet<_> = rows.iter().map(|r| (r.0, r.2)).collect();
    assert_eq!(read(&table, &by, &plain()).0.copies, Some(3000 - fewer.len() as u64));
    assert_eq!(read(&table, &roles("y"), &plain()).0.copies, Some(0));
}

#[test]
fn two_classes_of_text_suggest_a_logistic_model() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "x,y\n1,no\n2,yes\n3,no\n");
    let (encoding, _) = read(&open(&path).unwrap(), &roles("y"), &plain());
    assert!(
        matches!(&encoding.remarks[..], [Remark::TwoClasses { low, high, .. }] if low == "no" && high == "yes")
    );
    assert!(encoding.remarks[0].to_string().contains("⟨model=logistic⟩"));
    let logistic = EncodeOptions { target: TargetKind::TwoClass01, ..plain() };
    assert!(read(&open(&path).unwrap(), &roles("y"), &logistic).0.remarks.is_empty());
    for target in [TargetKind::Count, TargetKind::Number { two_class_as_plus_minus_one: false }] {
        let error = failure(&path, &roles("y"), &EncodeOptions { target, ..plain() });
        assert!(error.to_string().contains("⟨model=logistic⟩"), "{error}");
    }
}

#[test]
fn dates_are_read_in_the_order_that_the_column_tells() {
    let folder = Folder::new();
    let text = "due,seen,born,zip,y\n05.01.2022,12/25/2020,03/04/2021,10115,1\n06.01.2022,01/02/2021,03/04/2021,10117,2\n\
                07.02.2022,1/3/2021,04/05/2021,20095,3\n08.02.2022,1/4/2021,04/05/2021,80331,4\n";
    let table = open(&folder.write("dates.csv", text)).unwrap();
    let (encoding, content) = read(&table, &roles("y"), &plain());
    let remark = |column: &str, order| Remark::Dates { column: column.into(), order };
    assert!(encoding.remarks.contains(&remark("due", DateOrder::DayFirst)), "{:?}", encoding.remarks);
    assert!(encoding.remarks.contains(&remark("seen", DateOrder::MonthFirst)));
    let unclear = Remark::DatesUnclear { column: "born".into(), cell: "03/04/2021".into() };
    assert!(encoding.remarks.contains(&unclear));
    assert!(encoding.remarks.contains(&Remark::NamedLikeCode { column: "zip".into() }));
    // 2022-01-05 and 2020-12-25 by the calendar of another programme (date -d … +%s).
    assert_eq!(content.x[..2], [18_997.0, 18_621.0]);
}

#[test]
fn numbers_and_dates_as_print_has_them_are_read() {
    let folder = Folder::new();
    let csv = "change,result,day,seen,met,y\n\
               \u{2212}1.5,\"(1,200.50)\",2021/02/28,2/28/2021 3:04 PM,28 Feb 2021,1\n\
               2,300.25,2021/03/01,3/1/2021 12:30 AM,\"March 1, 2021\",2\n";
    let table = open(&folder.write("print.csv", csv)).unwrap();
    let (_, content) = read(&table, &roles("y"), &plain());
    // 2021-02-28 is day 18,686 by the calendar of another programme (date -d … +%s).
    let (afternoon, night) = ((15.0 * 60.0 + 4.0) / 1440.0, 0.5 / 24.0);
    let expected = [
        [-1.5, -1200.5, 18_686.0, 18_686.0 + afternoon, 18_686.0],
        [2.0, 300.25, 18_687.0, 18_687.0 + night, 18_687.0],
    ];
    for (x, e) in content.x.iter().zip(expected.as_flattened()) {
        assert!((x - e).abs() < 1e-9, "{:?}", content.x);
    }
}

#[test]
fn texts_that_begin_with_numbers_are_said() {
    let folder = Folder::new();
    let mut text = String::from("income,lab,street,home,age,y\n");
    for i in 0..60 {
        let lab = if i % 3 == 0 { "<5".into() } else { format!("{}.{}", 5 + i % 25, i % 4) };
        text += &format!(
            "{}.{}k,{lab},Street {},{i} Fresno St.,{}0-{}9,{}\n",
            20 + i,
            i % 7,
            i % 25,
            i % 8,
            i % 8,
            i % 11
        );
    }
    let (encoding, _) = read(&open(&folder.write("k.csv", text)).unwrap(), &roles("y"), &plain());
    let said = |column: &str, cell: &str| Remark::NumbersInTexts { column: column.into(), cell: cell.into() };
    let about =
        |column| encoding.remarks.iter().filter(move |r| r.column() == Some(column)).collect::<Vec<_>>();
    // The incomes differ in every row, which by itself looks like an identifier.
    assert_eq!(about("income").len(), 2, "{:?}", encoding.remarks);
    assert_eq!(about("income")[1], &said("income", "20.0k"));
    assert_eq!(about("lab"), [&said("lab", "<5")]);
    // Places, and a few bands, are what they are.
    assert!(about("street").is_empty() && about("age").is_empty(), "{:?}", encoding.remarks);
    assert_eq!(about("home").len(), 1, "{:?}", encoding.remarks);
}

#[test]
fn markers_of_missing_values_and_levels_written_in_two_ways_are_said() {
    let folder = Folder::new();
    let mut text = String::from("age,gain,wide,sex,y\n");
    for i in 0..60 {
        let age = if i % 20 == 3 { -999 } else { 20 + i };
        let gain = if i == 7 { 99_999 } else { i * i % 31 };
        text += &format!("{age},{gain},{},{},{}.5\n", 985 + i % 15, ["f", "m", "F"][i as usize % 3], i % 7);
    }
    let (encoding, _) = read(&open(&folder.write("m.csv", text)).unwrap(), &roles("y"), &plain());
    let expected = [
        Remark::Alike { column: "sex".into(), one: "F".into(), other: "f".into() },
        Remark::Marker { column: "age".into(), value: -999.0 },
        Remark::Marker { column: "gain".into(), value: 99_999.0 },
    ];
    // 999 is one of many of its size in `wide`.
    assert_eq!(encoding.remarks, expected);
}

#[test]
fn a_quote_that_takes_rows_is_an_error() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y\n");
    for i in 0..10 {
        text += &format!("{i},{}x{},{}\n", if i > 3 { "\"" } else { "" }, i % 3, i % 4);
    }
    let path = folder.write("torn.csv", &text);
    // The first quote is closed by the second, in the row after it; both rows are one.
    let error = |path| fit(&open(path).unwrap(), &roles("y"), &plain()).unwrap_err();
    let torn = error(&path);
    assert!(matches!(&torn, Error::Torn { place } if place.row == 5), "{torn}");
    let open_to_the_end = folder.write("open.csv", "a,b,y\n1,x,2\n2,x,\"3\n3,z,4\n");
    assert!(matches!(error(&open_to_the_end), Error::Torn { place } if place.row == 2));
    // Lines inside of a field, and a quote inside of a line, are as they were.
    let fine = folder
        .write("fine.csv", "a,b,y\n1,\"two\nlines, and a \"\"word\"\"\",2\n2,5\" pipe,3\n3,\"x\" y,4\n");
    assert_eq!(fit(&open(&fine).unwrap(), &roles("y"), &plain()).unwrap().rows_training, 3);
    // So are blanks after the quote that ends them.
    let blanks = folder.write("blanks.csv", "a,b,y\n1,\"two\nlines\" ,2\n2,\"two\nlines\"\t ,3\n3,z,4\n");
    assert_eq!(fit(&open(&blanks).unwrap(), &roles("y"), &plain()).unwrap().rows_training, 3);
}

#[test]
fn a_spread_whose_squares_vanish_is_an_error() {
    let folder = Folder::new();
    let rows: String = (0..20).map(|i| format!("{i}e-310,{}\n", i % 7)).collect();
    let table = open(&folder.write("tiny.csv", format!("t,y\n{rows}"))).unwrap();
    for target in ["y", "t"] {
        let error = fit(&table, &roles(target), &plain()).unwrap_err();
        assert!(matches!(&error, Error::TooSmall { column, .. } if column == "t"), "{error}");
    }
}
