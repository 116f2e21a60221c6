//! An encoding that one record moves or decides, and that nothing counts, leaves no page green.

use super::common::Folder;

/// One column of numbers, a category and two classes, nine of ten in one of them: without an intercept residuals do not sum to zero.
fn rows() -> Vec<[String; 3]> {
    let number = |i: u32| f64::from(i * 37 % 101) / 50.0 - 1.0;
    let class = |i: u32| u32::from(i % 10 != 3);
    (0..60)
        .map(|i| [number(i).to_string(), ["u", "v", "w"][i as usize % 3].into(), class(i).to_string()])
        .collect()
}

fn table(rows: &[[String; 3]]) -> String {
    rows.iter().fold("x,c,y\n".to_owned(), |text, row| text + &row.join(",") + "\n")
}

/// The coefficient of the standardised x, without an intercept, by Newton's method on its one number.
fn fitted(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let deviation = (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    let z: Vec<f64> = x.iter().map(|v| (v - mean) / deviation).collect();
    (0..60).fold(0.0, |w, _| {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for (z, y) in z.iter().zip(y) {
            let s = 1.0 / (1.0 + (-w * z).exp());
            slope += (s - y) * z;
            curvature += s * (1.0 - s) * z * z;
        }
        w - slope / curvature
    })
}

#[test]
fn means_that_no_intercept_takes_up_leave_no_page_green() {
    let folder = Folder::new();
    let rows = rows();
    folder.write("t.csv", table(&rows));
    let line = "audit t.csv --target y --drop c --model logistic --label public --sigma 0.35 --tell x=-0.8,0.8 --json --quiet";
    let counted = folder.run(line).expect(0).json();
    let uncounted = folder.run(&format!("{line} --no-intercept")).expect(0).json();
    // Scaled anew for each value, the model of some record moves further than the page says: it is no bound.
    let told = uncounted["tell"]["attributes"][0]["distance"].as_f64().unwrap();
    let x: Vec<f64> = rows.iter().map(|r| r[0].parse().unwrap()).collect();
    let y: Vec<f64> = rows.iter().map(|r| r[2].parse().unwrap()).collect();
    let apart = |i: usize| {
        let with = |value: f64| {
            let mut x = x.clone();
            x[i] = value;
            fitted(&x, &y)
        };
        (with(-0.8) - with(0.8)).abs() / 0.35
    };
    let furthest = (0..x.len()).map(apart).fold(0.0, f64::max);
    assert!(furthest > 1.05 * told, "{furthest} {told}");
    assert_eq!(uncounted["verdict"]["colour"], "amber");
    assert_eq!(uncounted["data"]["read_off"][0], "scales");
    let says = uncounted["verdict"]["text"].as_str().unwrap();
    assert!(says.contains("without an intercept"), "{says}");
    // With an intercept, and where somebody says that means are public, nothing is left open.
    assert!(counted["data"]["read_off"].as_array().is_none_or(Vec::is_empty));
    let given = folder.run(&format!("{line} --no-intercept --scaling given")).expect(0).json();
    assert_eq!(given["verdict"]["colour"], "green");
}

#[test]
fn a_level_that_one_record_alone_has_leaves_no_page_green() {
    let folder = Folder::new();
    let mut rows = rows();
    folder.write("many.csv", table(&rows));
    rows[7][1] = "unique".into();
    folder.write("one.csv", table(&rows));
    let of = |table: &str, more: &str| {
        let line =
            format!("audit {table} --target y --model logistic --l2 0.01 --sigma 9 --json --quiet {more}");
        folder.run(&line).expect(0).json()
    };
    assert_eq!(of("many.csv", "")["verdict"]["colour"], "green");
    // Its column is there because of that record, whatever the noise on its coefficient.
    let one = of("one.csv", "");
    assert_eq!((&one["verdict"]["colour"], &one["data"]["read_off"][0]), (&"amber".into(), &"levels".into()));
    folder.write("levels.json", r#"{"c": ["u", "v", "w", "unique"]}"#);
    assert_eq!(of("one.csv", "--levels levels.json")["verdict"]["colour"], "green");
}

#[test]
fn a_calibration_says_what_its_target_is_not_met_for() {
    let folder = Folder::new();
    folder.write("t.csv", table(&rows()));
    let line = "calibrate --data t.csv --target y --model logistic --l2 0.01 --quiet";
    let said = |more: &str| folder.run(&format!("{line} {more}")).expect(0).stdout;
    // A category is not binned, and its values move no scale.
    assert!(!said("--secret c --success 0.5").contains("taken as given"));
    let binned = said("--secret x --success 0.5 --bins 3");
    assert!(
        binned.contains("Bins of x are tried at their means") && !binned.contains("taken as given"),
        "{binned}"
    );
    assert!(said("--secret x --success 0.5 --bins 3 --no-intercept").contains("taken as given"));
    assert!(!said("--target-eta 0.5").contains("taken as given"));
    for more in ["--no-intercept", "--scale unit-ball", "--pca 2"] {
        assert!(said(&format!("--target-eta 0.5 {more}")).contains("taken as given"), "{more}");
    }
    let document = folder.run(&format!("{line} --secret x --success 0.5 --bins 3 --json")).expect(0).json();
    assert!(document["warnings"][0].as_str().unwrap().contains("at their means"));
}
