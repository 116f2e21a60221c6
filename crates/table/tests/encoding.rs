//! What the encoded columns are: one-hot order, scaling, components, directions, original units, the target.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use common::*;
use leakscope_core::rows::Rows;
use leakscope_table::*;

const PATIENTS: &str = "age,dose,race,y
30,1.5,white,1
45,2.0,asian,2
27,0.5,black,3
61,3.25,white,4
52,2.75,asian,5
38,1.0,white,6
44,2.25,black,7
70,4.0,white,8
";

fn patients(options: &EncodeOptions) -> (Encoding, Content) {
    let folder = Folder::new();
    let table = open(&folder.write("p.csv", PATIENTS)).unwrap();
    let encoding = fit(&table, &roles("y"), options).unwrap();
    let content = content(&dataset(&table, &encoding, Subset::Training));
    (encoding, content)
}

// The golden numbers of this file come from scikit-learn 1.x on the eight rows above:
//   num = [age, dose]; hot = indicators of sorted(set(race))
//   X = hstack([StandardScaler().fit_transform(num), hot[:, :-1]])
//   U = hstack([num, hot]) / max row norm
//   p = PCA(2, svd_solver="full").fit(·), each component times the sign of its entry of largest magnitude.
const STANDARD: [[f64; 4]; 8] = [
    [-1.1506059058543388, -0.6024640760767094, 0.0, 0.0],
    [-0.06341922315732575, -0.14344382763731175, 1.0, 0.0],
    [-1.3680432423937412, -1.5205045729555045, 0.0, 1.0],
    [1.096246571719488, 1.0041067934611823, 0.0, 0.0],
    [0.44393456210128024, 0.5450865450217847, 1.0, 0.0],
    [-0.5707730084159318, -1.061484324516107, 0.0, 0.0],
    [-0.1358983353371266, 0.08606629658238706, 0.0, 1.0],
    [1.7485585813376958, 1.6926371661202786, 0.0, 0.0],
];
const STANDARD_COMPONENTS: [f64; 8] = [
    0.6994656948034589,
    0.6988888363143179,
    0.04263927211495194,
    -0.14312242571253686,
    -0.07576195135971446,
    -0.09157430413225458,
    0.8083237085094688,
    -0.5766169055884166,
];
const STANDARD_SCORES: [f64; 16] = [
    -1.2007439880344042,
    0.0844156764746799,
    -0.0768508002491987,
    0.7683375405772759,
    -2.137564625978727,
    -0.3916588325321477,
    1.4936666867804644,
    -0.23293086106080588,
    0.7592319585826565,
    0.6668477380261676,
    -1.1159748948342658,
    0.08252086453564147,
    -0.1529070869980099,
    -0.6321291444657744,
    2.431142750731484,
    -0.3454029815550368,
];
const UNIT_RADIUS: f64 = 70.12132343303284;
const UNIT_SCORES: [f64; 16] = [
    -0.22631028851739915,
    0.010440672889214152,
    -0.012596413874125046,
    -0.010543311625484197,
    -0.2703813118961733,
    -0.003663408612224126,
    0.2163357493846139,
    0.006481979801099555,
    0.0877384299773335,
    -0.011597055584299059,
    -0.11310488247639036,
    0.00984775129357322,
    -0.02678797614056039,
    -0.006190324388135163,
    0.34510669354270107,
    0.005223696226255613,
];

#[test]
fn standard_scaling_and_drop_last_follow_sklearn() {
    let (encoding, content) = patients(&EncodeOptions::default());
    assert_eq!(encoding.columns(), ["age", "dose", "race=asian", "race=black", "(intercept)"]);
    assert_eq!((encoding.width(), encoding.data_width()), (5, 4));
    let expected: Vec<f64> = STANDARD.iter().flat_map(|r| r.iter().copied().chain([1.0])).collect();
    close(&content.x, &expected, 1e-15);
    assert_eq!(content.y, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(content.ids, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    assert_eq!(encoding.attributes[2].levels, ["asian", "black", "white"]);
    assert_eq!(encoding.attributes[2].columns, 2..4);
    // x_own = centre + scale · x_encoded
    let age = &encoding.attributes[0];
    assert!((age.centre + age.scale * content.x[0] - 30.0).abs() < 1e-12);
    assert_eq!(age.population_sd, age.scale);
}

#[test]
fn components_of_standard_columns_follow_sklearn() {
    let options = EncodeOptions { pca: Some(2), intercept: false, ..Default::default() };
    let (encoding, content) = patients(&options);
    assert_eq!(encoding.columns(), ["pc1", "pc2"]);
    let pca = encoding.pca.as_ref().unwrap();
    close(&pca.components, &STANDARD_COMPONENTS, 1e-13);
    close(&content.x, &STANDARD_SCORES, 1e-13);
    close(&pca.explained, &[0.8422938766450042, 0.09344779387233973], 1e-13);
    // A direction of an attribute is its column of the components.
    let age = encoding.directions(0, false);
    close(&age, &[STANDARD_COMPONENTS[0], STANDARD_COMPONENTS[4]], 1e-13);
    assert_eq!(encoding.record_directions(), [1.0, 0.0, 0.0, 1.0]);
    assert!(encoding.original_units(&[1.0, 2.0]).is_none());
}

#[test]
fn unit_ball_then_components_follow_sklearn() {
    let options = EncodeOptions {
        scale: Scale::UnitBall,
        one_hot: OneHot::Full,
        pca: Some(2),
        intercept: true,
        ..Default::default()
    };
    let (encoding, content) = patients(&options);
    assert!((encoding.unit_ball.unwrap() - UNIT_RADIUS).abs() < 1e-13);
    let expected: Vec<f64> = UNIT_SCORES.chunks(2).flat_map(|z| [z[0], z[1], 1.0]).collect();
    close(&content.x, &expected, 1e-13);
    assert!(encoding.attributes.iter().all(|a| a.scale == encoding.unit_ball.unwrap() && a.centre == 0.0));
}

#[test]
fn unit_ball_puts_the_largest_row_on_the_sphere() {
    let options = EncodeOptions { scale: Scale::UnitBall, one_hot: OneHot::Full, ..Default::default() };
    let (encoding, content) = patients(&options);
    let norms = content.x.chunks(encoding.width()).map(|r| r[..5].iter().map(|v| v * v).sum::<f64>().sqrt());
    assert!((norms.fold(0.0, f64::max) - 1.0).abs() < 1e-15);
    assert!((content.x[0] - 30.0 / UNIT_RADIUS).abs() < 1e-15);
    assert!((content.x[4] - 1.0 / UNIT_RADIUS).abs() < 1e-15); // race=white
}

#[test]
fn no_scaling_leaves_numbers_alone() {
    let options = EncodeOptions { scale: Scale::None, intercept: false, ..Default::default() };
    let (encoding, content) = patients(&options);
    assert_eq!(content.x[..8], [30.0, 1.5, 0.0, 0.0, 45.0, 2.0, 1.0, 0.0]);
    assert_eq!(encoding.columns(), ["age", "dose", "race=asian", "race=black"]);
}

#[test]
fn constants_become_zeros_and_a_single_level_has_no_column() {
    let folder = Folder::new();
    let table = open(&folder.write("c.csv", "a,one,b,y\n0.1,x,1,1\n0.1,x,2,2\n0.1,x,4,3\n")).unwrap();
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    assert_eq!(encoding.columns(), ["a", "b", "(intercept)"]);
    let x = content(&dataset(&table, &encoding, Subset::Training)).x;
    assert!(x.chunks(3).all(|r| r[0] == 0.0));
    assert_eq!(encoding.attributes[0].scale, 1.0);
    assert_eq!(encoding.attributes[1].columns, 1..1);
    assert!(encoding.directions(1, false).is_empty() && encoding.directions(1, true).is_empty());
    let full = EncodeOptions { one_hot: OneHot::Full, ..Default::default() };
    assert_eq!(fit(&table, &roles("y"), &full).unwrap().columns(), ["a", "one=x", "b", "(intercept)"]);
    let first = EncodeOptions { one_hot: OneHot::DropFirst, ..Default::default() };
    let encoding = fit(&table, &roles("y"), &first).unwrap();
    assert_eq!(encoding.columns(), ["a", "b", "(intercept)"]);
    assert!(encoding.directions(1, false).is_empty() && encoding.directions(1, true).is_empty());
}

/// Dropping the first level is dropping the last one of the levels in reverse order: names that sort the other way
/// round give the same rows, with the block's columns reversed, for every scaling and for components.
#[test]
fn drop_first_is_drop_last_of_the_levels_in_reverse() {
    let reversed =
        PATIENTS.replace("white", "a-white").replace("asian", "z-asian").replace("black", "m-black");
    let folder = Folder::new();
    let table = open(&folder.write("r.csv", &reversed)).unwrap();
    for scale in [Scale::None, Scale::Standard, Scale::UnitBall] {
        let options = EncodeOptions { one_hot: OneHot::DropFirst, scale, ..Default::default() };
        let (last, expected) = patients(&EncodeOptions { one_hot: OneHot::DropLast, ..options.clone() });
        let first = fit(&table, &roles("y"), &options).unwrap();
        assert_eq!(first.columns(), ["age", "dose", "race=m-black", "race=z-asian", "(intercept)"]);
        assert_eq!(first.raw_columns(), first.columns()[..4]);
        assert_eq!(first.unit_ball, last.unit_ball);
        let x = content(&dataset(&table, &first, Subset::Training)).x;
        let swapped =
            |x: &[f64]| x.chunks(5).flat_map(|r| [r[0], r[1], r[3], r[2], r[4]]).collect::<Vec<_>>();
        close(&x, &swapped(&expected.x), 1e-15);
        // The sum-to-zero directions span the same space: the same projector on the block.
        let projector = |encoding: &Encoding| {
            let b = encoding.directions(2, true);
            let row = |i: usize| &b[i * 2..i * 2 + 2];
            let dot = |i: usize, j: usize| row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum::<f64>();
            [dot(2, 2), dot(2, 3), dot(3, 3)]
        };
        let [a, b, c] = projector(&last);
        close(&projector(&first), &[c, b, a], 1e-15);
    }
    let options = EncodeOptions { pca: Some(2), one_hot: OneHot::DropFirst, ..Default::default() };
    let first = fit(&table, &roles("y"), &options).unwrap();
    let (_, expected) = patients(&EncodeOptions { one_hot: OneHot::DropLast, ..options });
    close(&content(&dataset(&table, &first, Subset::Training)).x, &expected.x, 1e-13);
}

/// B for full coding: orthonormal columns inside the block that sum to zero. For drop-last: adding the row
/// of the dropped level back (minus the column sums) gives the same facts.
#[test]
fn directions_of_categories_keep_the_sum_of_their_indicators() {
    for one_hot in [OneHot::Full, OneHot::DropLast, OneHot::DropFirst] {
        let (encoding, _) = patients(&EncodeOptions { one_hot, ..Default::default() });
        let (d, m) = (encoding.width(), 2);
        let b = encoding.directions(2, true);
        assert_eq!(b.len(), d * m);
        let block = encoding.attributes[2].columns.clone();
        for i in (0..d).filter(|i| !block.contains(i)) {
            assert!(b[i * m..(i + 1) * m].iter().all(|v| *v == 0.0), "row {i} is outside the attribute");
        }
        let mut rows: Vec<Vec<f64>> = block.map(|i| b[i * m..(i + 1) * m].to_vec()).collect();
        if one_hot != OneHot::Full {
            rows.push((0..m).map(|j| -rows.iter().map(|r| r[j]).sum::<f64>()).collect());
        }
        assert_eq!(rows.len(), 3);
        for j in 0..m {
            assert!(rows.iter().map(|r| r[j]).sum::<f64>().abs() < 1e-15);
            for k in 0..m {
                let dot: f64 = rows.iter().map(|r| r[j] * r[k]).sum();
                assert!((dot - f64::from(j == k)).abs() < 1e-15);
            }
        }
        // Without the constraint: unit vectors.
        let k = encoding.attributes[2].columns.len();
        let free = encoding.directions(2, false);
        for (j, column) in encoding.attributes[2].columns.clone().enumerate() {
            assert_eq!(free[column * k + j], 1.0);
        }
        assert_eq!(free.iter().sum::<f64>(), k as f64);
        // A number ignores the constraint.
        assert_eq!(encoding.directions(0, true), encoding.directions(0, false));
    }
}

#[test]
fn original_units_give_the_same_predictor() {
    for (scale, one_hot, intercept) in [
        (Scale::Standard, OneHot::DropLast, true),
        (Scale::Standard, OneHot::DropLast, false),
        (Scale::Standard, OneHot::DropFirst, true),
        (Scale::UnitBall, OneHot::DropFirst, false),
        (Scale::UnitBall, OneHot::Full, true),
        (Scale::None, OneHot::Full, false),
    ] {
        let (encoding, content) =
            patients(&EncodeOptions { scale, one_hot, intercept, ..Default::default() });
        let w: Vec<f64> = (0..encoding.width()).map(|i| 0.3 + i as f64 * 0.7).collect();
        let own = encoding.original_units(&w).unwrap();
        for (line, x) in PATIENTS.lines().skip(1).zip(content.x.chunks(encoding.width())) {
            let cells: Vec<&str> = line.split(',').collect();
            let z: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
            let value = |name: &str| match name {
                "age" => cells[0].parse().unwrap(),
                "dose" => cells[1].parse().unwrap(),
                "(intercept)" => 1.0,
                level => f64::from(level == format!("race={}", cells[2])),
            };
            let own_z: f64 = own.iter().map(|(name, c)| c * value(name)).sum();
            assert!((z - own_z).abs() < 1e-12, "{scale:?}");
        }
        assert!(encoding.original_units(&w[1..]).is_none());
    }
}

#[test]
fn two_class_targets_are_coded() {
    let folder = Folder::new();
    let path = folder.write("t.csv", "x,text,number\n1,yes,10\n2,no,9\n3,yes,10\n");
    let table = open(&path).unwrap();
    let plus_minus = TargetKind::Number { two_class_as_plus_minus_one: true };
    let plain = TargetKind::Number { two_class_as_plus_minus_one: false };
    let y = |target: &str, kind, positive: Option<&str>| {
        let drop = if target == "text" { "number" } else { "text" };
        let roles = Roles { target: target.into(), drop: vec![drop.into()], ..Default::default() };
        let options =
            EncodeOptions { target: kind, positive: positive.map(Into::into), ..Default::default() };
        let encoding = fit(&table, &roles, &options).unwrap();
        content(&dataset(&table, &encoding, Subset::Training)).y
    };
    assert_eq!(y("text", plus_minus, None), [1.0, -1.0, 1.0]);
    assert_eq!(y("text", TargetKind::TwoClass01, None), [1.0, 0.0, 1.0]);
    assert_eq!(y("text", TargetKind::TwoClass01, Some("no")), [0.0, 1.0, 0.0]);
    // As text "10" < "9"; as numbers 9 < 10.
    assert_eq!(y("number", plus_minus, None), [1.0, -1.0, 1.0]);
    assert_eq!(y("number", TargetKind::TwoClass01, Some("9.0")), [0.0, 1.0, 0.0]);
    assert_eq!(y("number", plain, None), [10.0, 9.0, 10.0]);
    assert_eq!(y("number", TargetKind::Count, None), [10.0, 9.0, 10.0]);
}

#[test]
fn groups_weights_and_ids_ride_along() {
    let folder = Folder::new();
    let path = folder.write("g.csv", "who,x,sex,w,y\np1,1,f,1,3\np2,2,m,0.5,1\np3,4,f,2,2\n");
    let table = open(&path).unwrap();
    let mut roles = Roles {
        target: "y".into(),
        id: Some("who".into()),
        group: Some("sex".into()),
        weights: Some("w".into()),
        ..Default::default()
    };
    let encoding = fit(&table, &roles, &EncodeOptions::default()).unwrap();
    assert_eq!(encoding.columns(), ["x", "sex=f", "(intercept)"]);
    let actual = content(&dataset(&table, &encoding, Subset::Training));
    assert_eq!(actual.ids, ["p1", "p2", "p3"]);
    assert_eq!(actual.group, [0, 1, 0]);
    // Divided by their mean, 7/6.
    close(&actual.weight, &[6.0 / 7.0, 3.0 / 7.0, 12.0 / 7.0], 1e-15);
    let group = encoding.group.as_ref().unwrap();
    assert_eq!(
        (group.levels.as_slice(), group.counts.as_slice()),
        (&["f".into(), "m".into()][..], &[2, 1][..])
    );
    roles.drop = vec!["sex".into()];
    let encoding = fit(&table, &roles, &EncodeOptions::default()).unwrap();
    assert_eq!(encoding.columns(), ["x", "(intercept)"]);
    assert_eq!(content(&dataset(&table, &encoding, Subset::Training)).group, [0, 1, 0]);
}

#[test]
fn missing_values_are_dropped_or_filled_in() {
    let folder = Folder::new();
    let path = folder.write("m.csv", "x,c,y\n1,b,1\n,a,2\n4,?,3\nNA,b,4\n7,a,5\n");
    let table = open(&path).unwrap();
    let options =
        |missing| EncodeOptions { missing, scale: Scale::None, intercept: false, ..Default::default() };
    let drop = fit(&table, &roles("y"), &options(Missing::Drop)).unwrap();
    assert_eq!((drop.rows_read, drop.rows_dropped, drop.rows_training), (5, 3, 2));
    for data in [dataset(&table, &drop, Subset::Training), streamed(&table, &drop, Subset::Training)] {
        let actual = content(&data);
        assert_eq!(actual.x, [1.0, 0.0, 7.0, 1.0]);
        assert_eq!(actual.ids, ["1", "5"]);
        assert_eq!((data.len(), data.rows_dropped()), (2, 3));
    }
    let mean = fit(&table, &roles("y"), &options(Missing::Mean)).unwrap();
    // The mean of 1, 4, 7 is 4; a and b are equally frequent, so the first stands in.
    let actual = content(&dataset(&table, &mean, Subset::Training));
    assert_eq!(actual.x, [1.0, 0.0, 4.0, 1.0, 4.0, 1.0, 4.0, 0.0, 7.0, 1.0]);
    assert_eq!(mean.profile[0].missing, 2);
    assert_eq!(mean.profile[1].levels, [("a".to_string(), 2), ("b".to_string(), 2)]);
}

#[test]
fn held_out_rows_do_not_shape_the_encoding() {
    let folder = Folder::new();
    let mut text = String::from("x,c,y\n");
    (0..400).for_each(|i| text += &format!("{i},{},{}\n", if i % 3 == 0 { "a" } else { "b" }, i % 5));
    let path = folder.write("h.csv", &text);
    let table = open(&path).unwrap();
    let holdout = Holdout::seeded(0.25, 5);
    let options = EncodeOptions { holdout: Some(holdout), scale: Scale::None, ..Default::default() };
    let encoding = fit(&table, &roles("y"), &options).unwrap();
    let training = content(&dataset(&table, &encoding, Subset::Training));
    let held = content(&dataset(&table, &encoding, Subset::HeldOut));
    assert_eq!(training.ids.len() + held.ids.len(), 400);
    assert_eq!(held.ids.len() as u64, encoding.rows_held_out);
    assert!(held.ids.iter().all(|id| holdout.holds(id.parse::<u64>().unwrap() - 1)));
    // Fixed for all time: rows with mix(mix(5) ^ row) >> 11 below 0.25·2⁵³, splitmix64 in Python's integers.
    assert_eq!(held.ids[..10], ["3", "12", "13", "15", "17", "23", "25", "27", "30", "39"]);
    let again = content(&streamed(&table, &encoding, Subset::HeldOut));
    assert_eq!(held.ids, again.ids);
    let mean = training.x.iter().step_by(3).sum::<f64>() / training.ids.len() as f64;
    assert!((encoding.attributes[0].mean - mean).abs() < 1e-10);
    assert_eq!(dataset(&table, &encoding, Subset::All).len(), 400);

    // A level that only held-out rows have is left out of them, and counted.
    let odd = (0..400).find(|r| holdout.holds(*r)).unwrap();
    let mark = |(i, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        if i as u64 == odd + 1 { format!("{},rare,{}\n", cells[0], cells[2]) } else { format!("{line}\n") }
    };
    let rare: String = text.lines().enumerate().map(mark).collect();
    let table = open(&folder.write("rare.csv", &rare)).unwrap();
    let encoding = fit(&table, &roles("y"), &options).unwrap();
    assert_eq!(encoding.attributes[1].levels, ["a", "b"]);
    for data in [dataset(&table, &encoding, Subset::HeldOut), streamed(&table, &encoding, Subset::HeldOut)] {
        assert_eq!(data.rows_unseen(), 1);
        assert_eq!(data.len(), encoding.rows_held_out - 1);
        assert_eq!(content(&data).ids.len() as u64, data.len());
    }
    let all = Dataset::new(&table, &encoding, Subset::All, &Hooks::default());
    assert!(matches!(all, Err(Error::UnseenLevel { place, .. }) if place.row == odd + 1));
}

#[test]
fn another_table_is_encoded_by_name() {
    let folder = Folder::new();
    let table = open(&folder.write("train.csv", PATIENTS)).unwrap();
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    let hooks = Hooks::default();
    // Other order, an extra column, no target.
    let score = open(&folder.write("score.csv", "race,extra,dose,age\nblack,z,0.5,27\n")).unwrap();
    assert!(matches!(
        Dataset::new(&score, &encoding, Subset::All, &hooks),
        Err(Error::AbsentColumn { column, .. }) if column == "y"
    ));
    let options = DatasetOptions { allow_missing_target: true, ..Default::default() };
    let data = Dataset::with_options(&score, &encoding, Subset::All, options, &hooks).unwrap();
    assert!(!data.has_target());
    let actual = content(&data);
    close(&actual.x[..4], &STANDARD[2], 1e-15);
    assert_eq!(actual.y, [0.0]);
    let unseen =
        open(&folder.write("unseen.csv", "race,dose,age,y\nblack,0.5,27,1\ngreen,1,30,1\n")).unwrap();
    let error = Dataset::new(&unseen, &encoding, Subset::All, &hooks).unwrap_err();
    assert!(matches!(&error, Error::UnseenLevel { place, column, value, .. }
        if place.row == 2 && column == "race" && value == "green"));
    let absent = open(&folder.write("absent.csv", "race,age,y\nblack,27,1\n")).unwrap();
    assert!(matches!(
        Dataset::new(&absent, &encoding, Subset::All, &hooks),
        Err(Error::AbsentColumn { column, .. }) if column == "dose"
    ));
    let gap = open(&folder.write("gap.csv", "race,age,dose,y\nblack,27,,1\n")).unwrap();
    assert!(matches!(
        Dataset::new(&gap, &encoding, Subset::All, &hooks),
        Err(Error::MissingAt { column, .. }) if column == "dose"
    ));
}

#[test]
fn a_value_that_overflows_when_scaled_is_an_error() {
    let folder = Folder::new();
    let table = open(&folder.write("t.csv", "x,y\n1e-150,1\n2e-150,2\n")).unwrap();
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    let far = open(&folder.write("f.csv", "x,y\n1e-150,1\n1e200,2\n")).unwrap();
    let error = Dataset::new(&far, &encoding, Subset::All, &Hooks::default()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { column, value } if column == "x" && value == 1e200));
}

#[test]
fn an_encoding_survives_json() {
    let (encoding, _) = patients(&EncodeOptions { pca: Some(3), ..Default::default() });
    let text = serde_json::to_string(&encoding).unwrap();
    assert_eq!(serde_json::from_str::<Encoding>(&text).unwrap(), encoding);
}
