//! What is public: schemas, bounds and levels against tables, and where everything else comes from.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use common::*;
use leakscope_table::*;

const PEOPLE: &str = "person,age,sex,seen,city,note,y
p1,30,f,2019-03-01,Ulm,a,1
p2,45,m,2019-12-31,Bonn,b,2
p3,27,f,2020-06-15,Ulm,c,3
p4,61,m,2021-01-01,Bonn,d,4
";

const SCHEMA: &str = r#"{"version": 1, "columns": [
  {"name": "person", "kind": "id"},
  {"name": "age", "kind": "number", "bounds": [0, 120], "unit": "years"},
  {"name": "sex", "kind": "category", "levels": ["m", "f"]},
  {"name": "seen", "kind": "date", "bounds": ["2019-01-01", "2022-01-01"]},
  {"name": "city", "kind": "category"},
  {"name": "note", "kind": "ignored"},
  {"name": "y", "kind": "number", "bounds": [0, 10]}
]}"#;

fn with(public: Public) -> EncodeOptions {
    EncodeOptions { intercept: false, one_hot: OneHot::Full, public, ..Default::default() }
}

fn by_schema(text: &str) -> EncodeOptions {
    with(Public { schema: Some(Schema::from_json(text).unwrap()), ..Default::default() })
}

fn people() -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    let path = folder.write("people.csv", PEOPLE);
    (folder, path)
}

fn schema_error(path: &std::path::Path, roles: &Roles, options: &EncodeOptions) -> SchemaError {
    match failure(path, roles, options) {
        Error::Schema(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_schema_gives_roles_bounds_and_levels() {
    let (_folder, path) = people();
    let table = open(&path).unwrap();
    let options = EncodeOptions { scale: Scale::Bounds, ..by_schema(SCHEMA) };
    let encoding = fit(&table, &roles("y"), &options).unwrap();
    assert_eq!(encoding.id.as_deref(), Some("person"));
    let names: Vec<&str> = encoding.attributes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["age", "sex", "seen", "city"]);
    let content = content(&dataset(&table, &encoding, Subset::Training));
    // By hand: (x − 60)/60; f, m; days of 2019 … 2021 are 365 + 366 + 365; Bonn, Ulm.
    let half = 1096.0 / 2.0;
    let expected = [
        [-0.5, 1.0, 0.0, (59.0 - half) / half, 0.0, 1.0],
        [-0.25, 0.0, 1.0, (364.0 - half) / half, 1.0, 0.0],
        [-0.55, 1.0, 0.0, (531.0 - half) / half, 0.0, 1.0],
        [1.0 / 60.0, 0.0, 1.0, (731.0 - half) / half, 1.0, 0.0],
    ];
    close(&content.x, &expected.concat(), 1e-14);
    assert_eq!(content.ids, ["p1", "p2", "p3", "p4"]);
    assert_eq!(encoding.attributes[0].unit.as_deref(), Some("years"));
    // Nothing but the levels nobody listed was read off the data.
    assert_eq!(encoding.read_off_data(), [(Some("city".into()), ReadOff::Levels)]);
    assert_eq!(encoding.attributes[0].scale_origin, Origin::Given);
    // The encoding is plain data.
    let kept: Encoding = serde_json::from_str(&serde_json::to_string(&encoding).unwrap()).unwrap();
    assert_eq!(kept, encoding);
    // Another id, and the one of the schema is left out.
    let by = Roles { id: Some("note".into()), ..roles("y") };
    assert!(matches!(schema_error(&path, &by, &options), SchemaError::Role { flag: "id", .. }));
}

#[test]
fn origins_follow_the_options() {
    let (_folder, path) = people();
    let table = open(&path).unwrap();
    let drop = Roles { drop: vec!["note".into(), "person".into()], ..roles("y") };
    let read = |options: &EncodeOptions| fit(&table, &drop, options).unwrap().read_off_data();
    let of = |name: &str, read: ReadOff| (Some(name.to_string()), read);
    use ReadOff::*;
    let none = with(Public::default());
    assert_eq!(read(&none), [of("age", Scale), of("sex", Levels), of("seen", Scale), of("city", Levels)]);
    assert_eq!(
        read(&EncodeOptions { scale: leakscope_table::Scale::None, ..none.clone() }),
        [of("sex", Levels), of("city", Levels)]
    );
    let ball = read(&EncodeOptions { scale: leakscope_table::Scale::UnitBall, pca: Some(2), ..none.clone() });
    assert!(ball.contains(&of("sex", Scale)) && ball.contains(&(None, Components)), "{ball:?}");
    let filled = read(&EncodeOptions { missing: Missing::Mean, ..none.clone() });
    assert!(filled.contains(&of("age", Fill)) && filled.contains(&of("sex", Fill)));
    let classes = Roles { target: "sex".into(), weights: Some("age".into()), ..drop.clone() };
    let logistic = EncodeOptions { target: TargetKind::TwoClass01, ..none };
    let read = fit(&table, &classes, &logistic).unwrap().read_off_data();
    assert!(read.contains(&of("sex", Classes)) && read.contains(&of("age", WeightMean)), "{read:?}");
    let public = Public { levels: vec![("sex".into(), vec!["f".into(), "m".into()])], ..Default::default() };
    let read = fit(&table, &classes, &EncodeOptions { public, ..logistic }).unwrap().read_off_data();
    assert!(!read.contains(&of("sex", Classes)));
}

#[test]
fn a_draft_checks_but_makes_nothing_public() {
    let (_folder, path) = people();
    let text = SCHEMA.replace("\"version\": 1", "\"version\": 1, \"draft\": true");
    let options = EncodeOptions { scale: Scale::Bounds, ..by_schema(&text) };
    let encoding = fit(&open(&path).unwrap(), &roles("y"), &options).unwrap();
    let of = |name: &str, read: ReadOff| (Some(name.to_string()), read);
    let expected = [
        of("age", ReadOff::Scale),
        of("sex", ReadOff::Levels),
        of("seen", ReadOff::Scale),
        of("city", ReadOff::Levels),
    ];
    assert_eq!(encoding.read_off_data(), expected);
}

#[test]
fn what_contradicts_the_table_is_an_error() {
    let (folder, path) = people();
    let wrong = |from: &str, to: &str| {
        assert!(SCHEMA.contains(from));
        schema_error(&path, &roles("y"), &by_schema(&SCHEMA.replace(from, to)))
    };
    let absent = wrong(r#"{"name": "city","#, r#"{"name": "town", "kind": "number"}, {"name": "city","#);
    assert!(matches!(absent, SchemaError::Absent { column } if column == "town"));
    let unlisted = wrong("  {\"name\": \"note\", \"kind\": \"ignored\"},\n", "");
    assert!(matches!(unlisted, SchemaError::Unlisted { column } if column == "note"));
    let text = wrong(r#""city", "kind": "category""#, r#""city", "kind": "number""#);
    assert!(matches!(text, SchemaError::Kind { content: "text", kind: "number", .. }), "{text}");
    let dates = wrong(r#""kind": "date", "bounds": ["2019-01-01", "2022-01-01"]"#, r#""kind": "number""#);
    assert!(matches!(dates, SchemaError::Kind { content: "dates", .. }));
    let numbers = wrong(r#""kind": "number", "bounds": [0, 10]"#, r#""kind": "date""#);
    assert!(matches!(numbers, SchemaError::Kind { content: "numbers", .. }));
    let target = wrong(r#""kind": "number", "bounds": [0, 10]"#, r#""kind": "ignored""#);
    assert!(matches!(target, SchemaError::Role { flag: "target", .. }));
    let no_level = wrong(r#"["m", "f"]"#, r#"["f"]"#);
    assert!(
        matches!(&no_level, SchemaError::NotALevel { place, value, .. } if place.row == 2 && value == "m")
    );
    let outside = wrong("[0, 120]", "[0, 40]");
    assert_eq!(outside, SchemaError::OutOfBounds { column: "age".into(), low: 0.0, high: 40.0, count: 2 });
    assert!(outside.to_string().contains("⟨clip_to_bounds⟩"));
    let target = wrong("[0, 10]", "[2, 10]");
    assert!(matches!(target, SchemaError::OutOfBounds { column, count: 1, .. } if column == "y"));
    let scale =
        EncodeOptions { scale: Scale::Bounds, ..by_schema(&SCHEMA.replace(r#""bounds": [0, 120], "#, "")) };
    assert!(
        matches!(schema_error(&path, &roles("y"), &scale), SchemaError::NoBounds { column } if column == "age")
    );
    // An odd cell is named.
    let rows: String = (0..20).map(|i| if i == 7 { "oops,1\n".into() } else { format!("{i},1\n") }).collect();
    let path = folder.write("odd.csv", format!("x,y\n{rows}"));
    let schema =
        r#"{"version": 1, "columns": [{"name": "x", "kind": "number"}, {"name": "y", "kind": "number"}]}"#;
    let error = schema_error(&path, &roles("y"), &by_schema(schema)).to_string();
    assert!(error.contains("`oops`") && error.contains("row 8"), "{error}");
}

#[test]
fn bounds_and_levels_without_a_schema() {
    let (_folder, path) = people();
    let drop = Roles { drop: ["note", "person", "seen"].map(Into::into).to_vec(), ..roles("y") };
    let bounds = |name: &str, text: &str| (name.to_string(), text.parse::<Bounds>().unwrap());
    let public = Public { bounds: vec![bounds("age", "30..50")], ..Default::default() };
    let error = schema_error(&path, &drop, &with(public.clone()));
    assert!(matches!(error, SchemaError::OutOfBounds { count: 2, .. }));
    // Moved to the bounds they are 30, 45, 30, 50: everything is that of the moved values.
    let public = Public { clip_to_bounds: true, ..public };
    let table = open(&path).unwrap();
    let encoding = fit(&table, &drop, &with(public)).unwrap();
    let age = &encoding.attributes[0];
    let sd = ((8.75_f64.powi(2) * 2.0 + 6.25_f64.powi(2) + 11.25_f64.powi(2)) / 4.0).sqrt();
    close(&[age.mean, age.population_sd], &[38.75, sd], 1e-14);
    let expected = [30.0, 45.0, 30.0, 50.0].map(|x| (x - 38.75) / sd);
    for dataset in
        [dataset(&table, &encoding, Subset::Training), streamed(&table, &encoding, Subset::Training)]
    {
        let content = content(&dataset);
        let column: Vec<f64> = content.x.chunks(encoding.width()).map(|row| row[0]).collect();
        close(&column, &expected, 1e-14);
    }
    assert!(encoding.remarks.contains(&Remark::Clipped {
        column: "age".into(),
        count: 2,
        low: 30.0,
        high: 50.0
    }));
    let wrong = |public: Public| failure(&path, &drop, &with(public));
    let unknown = wrong(Public { bounds: vec![bounds("agee", "0..1")], ..Default::default() });
    assert!(matches!(unknown, Error::UnknownColumn { flag: "bounds", .. }));
    let text = wrong(Public { bounds: vec![bounds("sex", "0..1")], ..Default::default() });
    assert!(matches!(text, Error::Schema(SchemaError::Misplaced { fact: "bounds", .. })));
    let levels = |list: &[&str]| vec![("sex".to_string(), list.iter().map(|l| l.to_string()).collect())];
    let missing = wrong(Public { levels: levels(&["f"]), ..Default::default() });
    assert!(matches!(missing, Error::Schema(SchemaError::NotALevel { .. })));
    let twice = wrong(Public { levels: levels(&["f", "m", "m"]), ..Default::default() });
    assert!(matches!(twice, Error::Schema(SchemaError::LevelTwice { .. })));
}

/// The target is moved too, and a matrix in memory, which is read in place, as a file is.
#[test]
fn clipping_in_memory_is_clipping_in_a_file() {
    use std::sync::Arc;
    let folder = Folder::new();
    let values: Vec<f64> = (0..600).map(|i| f64::from(i * 37 % 101)).collect();
    let rows: String = values.chunks(3).map(|r| format!("{},{},{}\n", r[0], r[1], r[2])).collect();
    let csv = open(&folder.write("v.csv", format!("a,b,y\n{rows}"))).unwrap();
    let column = |k: usize| -> Vec<f64> { values.iter().skip(k).step_by(3).copied().collect() };
    let arrow = |k: usize| MemoryColumn::Arrow(vec![Arc::new(arrow_array::Float64Array::from(column(k)))]);
    let columns = vec![("a".into(), arrow(0)), ("b".into(), arrow(1)), ("y".into(), arrow(2))];
    let memory = Memory::new("frame", columns).unwrap();
    let memory = Table::open(&ReadOptions { memory: vec![memory], ..Default::default() }).unwrap();
    let bounds = |name: &str| (name.to_string(), "20..60".parse::<Bounds>().unwrap());
    let public =
        Public { bounds: vec![bounds("a"), bounds("y")], clip_to_bounds: true, ..Default::default() };
    let options = EncodeOptions { scale: Scale::None, ..with(public) };
    let expected = content(&dataset(&csv, &fit(&csv, &roles("y"), &options).unwrap(), Subset::Training));
    let by_hand: Vec<f64> = column(0).iter().map(|x| x.clamp(20.0, 60.0)).collect();
    assert_eq!(expected.x.iter().step_by(2).copied().collect::<Vec<_>>(), by_hand);
    assert_eq!(expected.y, column(2).iter().map(|x| x.clamp(20.0, 60.0)).collect::<Vec<_>>());
    let encoding = fit(&memory, &roles("y"), &options).unwrap();
    let same = content(&dataset(&memory, &encoding, Subset::Training));
    assert_eq!((same.x, same.y), (expected.x, expected.y));
}

#[test]
fn rare_levels_become_other() {
    let folder = Folder::new();
    let mut text = String::from("c,x,y\n");
    for i in 0..60 {
        let c = match i {
            0..=24 => "a",
            25..=48 => "b",
            49..=55 => "secret street 5",
            _ => "q",
        };
        text += &format!("{c},{},{}\n", i % 11, i % 5);
    }
    let table = open(&folder.write("r.csv", text)).unwrap();
    let all = fit(&table, &roles("y"), &with(Public::default())).unwrap();
    assert_eq!(all.attributes[0].levels.len(), 4);
    let options = EncodeOptions { min_level_count: Some(MIN_LEVEL_COUNT), ..with(Public::default()) };
    let encoding = fit(&table, &roles("y"), &options).unwrap();
    assert_eq!(encoding.attributes[0].levels, ["a", "b", "other"]);
    assert_eq!(encoding.attributes[0].other, Some(2));
    let remark = Remark::RareLevels { column: "c".into(), merged: 2, rows: 11, min_count: 10 };
    assert!(encoding.remarks.contains(&remark));
    // The rare ones stand nowhere in what is kept.
    let kept = serde_json::to_string(&encoding).unwrap();
    assert!(!kept.contains("secret street") && !kept.contains("\"q\""));
    let content = content(&dataset(&table, &encoding, Subset::Training));
    let other: f64 = content.x.chunks(encoding.width()).map(|row| row[2]).sum();
    assert_eq!(other, 11.0);
    // A level that no training row had is rare too.
    let more = open(&folder.write("m.csv", "c,x,y\nnew,1,1\na,1,1\n")).unwrap();
    let x = common::content(&dataset(&more, &encoding, Subset::All)).x;
    assert_eq!(
        x.chunks(encoding.width()).map(|row| row[..3].to_vec()).collect::<Vec<_>>(),
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    );
    // Principal components take the merged levels, too.
    let pca = EncodeOptions { pca: Some(2), ..options.clone() };
    assert_eq!(fit(&table, &roles("y"), &pca).unwrap().width(), 2);
    // Public levels stay, however rare.
    let levels = ["a", "b", "q", "secret street 5"].map(String::from).to_vec();
    let public = Public { levels: vec![("c".into(), levels)], ..Default::default() };
    let encoding = fit(&table, &roles("y"), &EncodeOptions { public, ..options }).unwrap();
    assert_eq!((encoding.attributes[0].levels.len(), encoding.attributes[0].other), (4, None));
    assert_eq!(encoding.attributes[0].levels_origin, Origin::Given);
}

#[test]
fn a_draft_fits_its_own_table() {
    let folder = Folder::new();
    let mut text = String::from(",name,age,price,sex,seen,hollow,y\n");
    for i in 0..40 {
        text += &format!(
            "{i},n{i},{},\"${},000\",{},20{}-06-01,,{}\n",
            18 + i,
            i + 1,
            ["f", "m"][i % 2],
            10 + i % 9,
            i as f64 / 7.0
        );
    }
    let path = folder.write("t.csv", text);
    let table = open(&path).unwrap();
    let draft = Schema::draft(&table, &Hooks::default()).unwrap();
    assert!(draft.draft);
    let kinds: Vec<(&str, SchemaKind)> = draft.columns.iter().map(|c| (c.name.as_str(), c.kind)).collect();
    use SchemaKind::*;
    assert_eq!(
        kinds,
        [
            ("unnamed_1", Ignored),
            ("name", Id),
            ("age", Number),
            ("price", Number),
            ("sex", Category),
            ("seen", Date),
            // without a value there is nothing to fit
            ("hollow", Ignored),
            ("y", Number)
        ]
    );
    assert_eq!(draft.columns[2].bounds, Some([Edge::Number(0.0), Edge::Number(100.0)]));
    assert_eq!(draft.columns[3].unit.as_deref(), Some("$"));
    assert_eq!(draft.columns[4].levels, Some(vec!["f".into(), "m".into()]));
    assert_eq!(
        draft.columns[5].bounds,
        Some([Edge::Date("2010-01-01".into()), Edge::Date("2019-01-01".into())])
    );
    assert_eq!(draft.columns[6].bounds, None);
    // Written, read and edited by a person, it fits the table that it came from.
    let mut schema = Schema::from_json(&draft.to_json()).unwrap();
    assert_eq!(schema, draft);
    schema.draft = false;
    let options = with(Public { schema: Some(schema), ..Default::default() });
    let encoding = fit(&table, &roles("y"), &EncodeOptions { scale: Scale::Bounds, ..options }).unwrap();
    assert!(encoding.read_off_data().is_empty(), "{:?}", encoding.read_off_data());
    assert_eq!(encoding.id.as_deref(), Some("name"));
    assert!(fit(&table, &roles("y"), &by_schema(&draft.to_json())).is_ok(), "as it was drafted");
}
