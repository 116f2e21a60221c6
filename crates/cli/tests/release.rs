//! The informed attacker against every file that a release publishes: whoever knows all records but one looks at all
//! numbers, their ratios and differences and the lattice they lie on, and at what neighbouring data would have published.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use leakscope::audit::Request;
use leakscope::release::{Amount, Terms, private};
use leakscope_core::glm::Family;
use leakscope_core::random::Seeded;
use leakscope_core::release::Grid;
use leakscope_core::units::public_scale;
use leakscope_report::Release;
use leakscope_report::verdict::{Colour, of_release};
use leakscope_table::{Hooks, ReadOptions, Roles};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a release publishes; everything else in its folder is private.
const PUBLISHED: [&str; 3] = ["model.json", "release.json", "report.html"];
/// Numbers this close (relative) are the same.
const SAME: f64 = 1e-11;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, line: &str) -> Output {
        let binary = env!("CARGO_BIN_EXE_leakscope");
        Command::new(binary).args(line.split(' ')).current_dir(self.dir.path()).output().unwrap()
    }

    fn release(&self, line: &str) -> Value {
        let output = self.run(&format!("release {line} --json"));
        let said = String::from_utf8_lossy(&output.stderr);
        let red = output.status.code() == Some(1) && said.contains("the page of this release is red");
        assert!(output.status.success() || red, "{line}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn statement(&self, name: &str) -> Release {
        serde_json::from_str(&self.text(name)).unwrap()
    }
}

/// Numbers with many digits, a category, addresses that one record each has, a target.
#[derive(Clone)]
struct People {
    numbers: Vec<[f64; 3]>,
    words: Vec<[String; 2]>,
    outcome: Vec<f64>,
}

const NAMES: [&str; 3] = ["age", "height", "income"];

impl People {
    fn draw(seed: u64, n: usize) -> Self {
        let mut random = Seeded::new(seed);
        let mut people = Self { numbers: vec![], words: vec![], outcome: vec![] };
        // So many digits that no difference of rounded numbers on a page is one of them by chance.
        let round = |x: f64| (x * 1e9).round() / 1e9;
        for i in 0..n {
            let z = random.normals(4);
            let [age, height, income] =
                [round(50.0 + 13.7 * z[0]), round(171.3 + 8.9 * z[1]), round(3.1e4 * (0.6 * z[2]).exp())];
            let race = ["asian", "black", "white"][(random.bits() % 3) as usize];
            let home = match i {
                5..17 => format!("{} S. Fresno St.", 1000 + i),
                _ => ["flat", "house"][(random.bits() % 2) as usize].to_owned(),
            };
            let y = 0.03 * age - 0.02 * height + income / 5e4 + f64::from(u8::from(race == "white")) + z[3];
            people.numbers.push([age, height, income]);
            people.words.push([race.to_owned(), home]);
            people.outcome.push(round(y));
        }
        people
    }

    /// The target in three classes.
    fn csv_of_three(&self) -> String {
        let class = |y: f64| {
            if y > 1.2 {
                "high"
            } else if y > 0.2 {
                "middle"
            } else {
                "low"
            }
        };
        let mut text = String::from("age,height,income,race,home,y\n");
        for ((x, words), y) in self.numbers.iter().zip(&self.words).zip(&self.outcome) {
            writeln!(text, "{},{},{},{},{},{}", x[0], x[1], x[2], words[0], words[1], class(*y)).unwrap();
        }
        text
    }

    fn csv(&self, classes: bool) -> String {
        let mut text = String::from("age,height,income,race,home,y\n");
        for ((x, words), y) in self.numbers.iter().zip(&self.words).zip(&self.outcome) {
            let y = if classes { (if *y > 0.4 { "yes" } else { "no" }).to_owned() } else { y.to_string() };
            writeln!(text, "{},{},{},{},{},{y}", x[0], x[1], x[2], words[0], words[1]).unwrap();
        }
        text
    }

    fn column(&self, j: usize) -> Vec<f64> {
        self.numbers.iter().map(|x| x[j]).collect()
    }

    /// Exact statistics of every column: names and values.
    fn statistics(&self) -> Vec<(String, f64)> {
        let mut all = vec![("n".to_owned(), self.outcome.len() as f64)];
        let columns = (0..3).map(|j| (NAMES[j], self.column(j))).chain([("y", self.outcome.clone())]);
        for (name, values) in columns {
            let n = values.len() as f64;
            let (sum, mean) = (values.iter().sum::<f64>(), values.iter().sum::<f64>() / n);
            let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
            let extreme = |least: bool| {
                values.iter().copied().fold(values[0], |m, x| if (x < m) == least { x } else { m })
            };
            for (what, value) in [
                ("sum", sum),
                ("mean", mean),
                ("sd", (squares / n).sqrt()),
                ("sample sd", (squares / (n - 1.0)).sqrt()),
                ("variance", squares / n),
                ("min", extreme(true)),
                ("max", extreme(false)),
            ] {
                all.push((format!("{what} of {name}"), value));
            }
        }
        all
    }
}

/// Every number that stands anywhere in a text, with thousands separators and without.
fn numbers_in(text: &str) -> Vec<f64> {
    let mut found = vec![];
    for separators in [true, false] {
        let inside = |c: char| c.is_ascii_digit() || "+-.eE".contains(c) || (separators && c == ',');
        for word in text.split(|c| !inside(c)) {
            let word = word.replace(',', "");
            let word = word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-' && c != '.');
            found.extend(word.parse::<f64>().ok().filter(|x| x.is_finite() && *x != 0.0));
        }
    }
    found.sort_by(f64::total_cmp);
    found.dedup();
    found
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs()
}

/// The statistics that stand among numbers, or that two of them have as ratio or difference.
fn given_away(numbers: &[f64], statistics: &[(String, f64)]) -> Vec<String> {
    let mut found = vec![];
    let mut look = |x: f64, how: &str, whole: bool| {
        for (name, value) in statistics {
            // Whole numbers differ by whole numbers: that tells nothing.
            if close(x.abs(), value.abs(), SAME) && (whole || value.fract() != 0.0) {
                found.push(format!("{name} = {value} as {how} {x}"));
            }
        }
    };
    for (i, a) in numbers.iter().enumerate() {
        look(*a, "a number", true);
        look(1.0 / a, "an inverse", true);
        for b in &numbers[..i] {
            look(a / b, "a ratio", true);
            look(b / a, "a ratio", true);
            look(a - b, "a difference", false);
        }
    }
    found
}

/// Files under a folder, but for what is private.
fn published(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    // What is refused leaves no folder behind.
    let entries = if folder.exists() { Some(std::fs::read_dir(folder).unwrap()) } else { None };
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.file_name().unwrap() != "private" => files.extend(published(&path)),
            true => {}
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// What was published before scaling was counted: coefficients as encoded, on the grid, and in original units.
fn as_it_was(people: &People, sigma: f64) -> (f64, Vec<(f64, f64)>) {
    let grid = Grid::new(sigma).unwrap();
    let noisy = grid.release(&[0.4, -0.2, 0.9], &mut Seeded::new(3)).unwrap();
    let sd = |j: usize| people.statistics().iter().find(|s| s.0 == format!("sd of {}", NAMES[j])).unwrap().1;
    (grid.step, noisy.iter().enumerate().map(|(j, w)| (*w, w / sd(j))).collect())
}

#[test]
fn no_published_number_ratio_difference_or_lattice_gives_a_statistic_away() {
    let place = Place::new();
    let people = People::draw(11, 2987);
    place.write("people.csv", &people.csv(false));
    let line = "people.csv --target y --l2 0.3 --out out";
    for noise in ["--target-eta 0.5", "--sigma 0.37", "--target-eta 0.1 --statistic mean"] {
        place.release(&format!("{line} {noise}"));
    }
    let files = published(&place.path("out"));
    let names: Vec<String> =
        files.iter().map(|f| f.strip_prefix(place.path("out")).unwrap().display().to_string()).collect();
    let expected: Vec<String> =
        (1..=3).flat_map(|k| PUBLISHED.map(|name| format!("release-{k}/{name}"))).collect();
    assert_eq!(names, expected);
    let statistics = people.statistics();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let found = given_away(&numbers_in(&text), &statistics);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
        assert!(!text.contains("Fresno") && !text.contains("people.csv"), "{}", file.display());
    }
    // The lattice is public: steps are powers of two over powers of two.
    for k in 1..=3 {
        let r = place.statement(&format!("out/release-{k}/release.json"));
        let power = |x: f64| x > 0.0 && x.log2().fract() == 0.0;
        assert!(power(r.mechanism.grid));
        for (name, unit) in &r.mechanism.units {
            assert!(power(unit.unit) && (unit.centre / unit.unit).fract() == 0.0, "{name}");
            let steps = r.coefficients[name] * unit.unit / r.mechanism.grid;
            assert_eq!(steps.fract(), 0.0, "{name}");
            // Odd and even, as noise has it.
            assert!(steps.abs() > 8.0 || r.coefficients[name] == 0.0, "{name}: {steps}");
        }
        assert_eq!((r.coefficients["(intercept)"] / r.mechanism.grid).fract(), 0.0);
        let quarters = 4.0 * r.mechanism.sigma.log2();
        assert!((quarters - quarters.round()).abs() < 1e-5, "σ = {}", r.mechanism.sigma);
    }
    // The same attacks on what was published before find every standard deviation.
    let (grid, pairs) = as_it_was(&people, 0.37);
    let found = given_away(&pairs.iter().flat_map(|p| [p.0, p.1]).collect::<Vec<_>>(), &statistics);
    for (j, name) in NAMES.iter().enumerate() {
        assert!(found.iter().any(|f| f.starts_with(&format!("sd of {name}"))), "{found:?}");
        let sd = statistics.iter().find(|s| s.0 == format!("sd of {name}")).unwrap().1;
        assert!(on_lattice(&[pairs[j].1], sd, grid));
        let now: Vec<f64> = (1..=3)
            .map(|k| place.statement(&format!("out/release-{k}/release.json")).coefficients[*name])
            .collect();
        assert!(!on_lattice(&now, sd, grid / 64.0), "{name}");
    }
}

/// Whether all values times a scale are whole multiples of a step.
fn on_lattice(values: &[f64], scale: f64, step: f64) -> bool {
    values.iter().all(|v| {
        let k = v * scale / step;
        (k - k.round()).abs() < 1e-3
    })
}

/// What the release of the demo gave away: age, height and weight of all of its 3,000 patients, one after the other.
#[test]
fn who_knows_2999_of_3000_patients_does_not_compute_the_last() {
    let place = Place::new();
    let (seed, rows) = leakscope_papers::patients::SHIPPED;
    let table = leakscope_papers::patients::table(seed, rows);
    place.write("patients.csv", &table);
    for _ in 0..3 {
        place.release("patients.csv --target dose --id patient --l2 0.01 --target-eta 0.5 --out out");
    }
    let ages: Vec<f64> =
        table.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(ages.len(), 3000);
    let (truth, known) = ages.split_last().unwrap();
    let sd = |age: f64| {
        let n = ages.len() as f64;
        let all = || known.iter().copied().chain([age]);
        let mean = all().sum::<f64>() / n;
        (all().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
    };
    let candidates: Vec<f64> = (18..=95).map(f64::from).collect();
    let by_ratio = |numbers: &[f64]| -> Vec<f64> {
        let hit = |s: f64| numbers.iter().any(|a| numbers.iter().any(|b| close(a / b, s, 1e-11)));
        candidates.iter().copied().filter(|age| hit(sd(*age))).collect()
    };
    let by_lattice = |values: &[f64], step: f64| -> Vec<f64> {
        candidates.iter().copied().filter(|age| on_lattice(values, sd(*age), step)).collect()
    };
    // The attacks work on what was published before.
    let grid = Grid::new(0.9).unwrap();
    let encoded = grid.release(&[-1.7, -1.7, -1.7], &mut Seeded::new(4)).unwrap();
    let original: Vec<f64> = encoded.iter().map(|w| w / sd(*truth)).collect();
    assert!(by_ratio(&[encoded[0], original[0]]).contains(truth));
    let lattice = by_lattice(&original, grid.step);
    assert!(lattice.contains(truth) && lattice.len() <= 2, "{lattice:?}");
    // And on nothing that is now.
    let mut values = vec![];
    for k in 1..=3 {
        for name in PUBLISHED {
            let found = by_ratio(&numbers_in(&place.text(&format!("out/release-{k}/{name}"))));
            assert!(found.is_empty(), "{name}: {found:?}");
        }
        values.push(place.statement(&format!("out/release-{k}/release.json")).coefficients["age"]);
    }
    let r = place.statement("out/release-1/release.json");
    for octave in -3..=10 {
        let found = by_lattice(&values, r.mechanism.grid * 2_f64.powi(octave));
        assert!(found.is_empty(), "{octave}: {found:?}");
    }
    assert_eq!((r.eta.max, r.eta.target.unwrap().eta), (Some(0.5), 0.5));
}

/// A published text in pieces, numbers apart from what is between them, without the time of its statement.
fn pieces(text: &str, r: &Release) -> Vec<String> {
    let inside = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // Powers of ten as pages write them: `8.32×10⁻⁶`.
    let lowered =
        |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|s| s == c).and_then(|d| char::from_digit(d as u32, 10));
    let text: String = text
        .replace(&r.created, "then")
        .replace("×10", "e")
        .chars()
        .map(|c| if "⁻−".contains(c) { '-' } else { lowered(c).unwrap_or(c) })
        .collect();
    let mut pieces: Vec<String> = vec![];
    let mut number = None;
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if number == Some(inside(c)) => last.push(c),
            Some(_) | None => pieces.push(c.into()),
        }
        number = Some(inside(c));
    }
    pieces
}

/// Whether a number of a text is one of the coefficients, or computed from them and the public noise (intervals and p-values,
/// shortened on the page).
fn noisy(word: &str, r: &Release) -> bool {
    let computed = r.precision.values().flat_map(|p| [p.low, p.high, p.p_value]);
    word.parse::<f64>().is_ok_and(|x| {
        r.coefficients.values().any(|v| close(x, *v, 6e-3))
            || computed.into_iter().any(|v| close(x.abs(), v.abs(), 6e-3))
    })
}

#[test]
fn neighbouring_data_publish_the_same_but_for_noise() {
    let place = Place::new();
    let people = People::draw(5, 400);
    let mut other = people.clone();
    other.numbers[7] = [people.numbers[7][0] + 3.0, people.numbers[7][1] - 2.5, people.numbers[7][2] * 1.1];
    other.words[7][0] = "white".into();
    other.outcome[7] += 0.4;
    assert_ne!(people.words[7][0], "white");
    for (which, table) in [("people", &people), ("other", &other)] {
        place.write(&format!("{which}-number.csv"), &table.csv(false));
        place.write(&format!("{which}-two.csv"), &table.csv(true));
        place.write(&format!("{which}-three.csv"), &table.csv_of_three());
    }
    let cases = [
        ("number", "--l2 0.3 --target-eta 0.5"),
        ("number", "--l2 0.05 --sigma 0.2"),
        ("number", "--l2 0.1 --sigma 0.3 --balance 3"),
        ("number", "--sigma 0.3 --bounds age=-20..120 --bounds income=0..2000000"),
        ("two", "--model logistic --l2 0.1 --target-eta 0.7 --statistic mean"),
        ("three", "--model softmax --l2 0.1 --target-eta 0.7 --statistic mean"),
        ("three", "--model softmax --l2 0.05 --sigma 0.3"),
    ];
    for (i, (classes, more)) in cases.into_iter().enumerate() {
        let mut texts: Vec<(Release, Vec<Vec<String>>)> = vec![];
        for which in ["people", "other"] {
            let out = format!("{which}-{i}");
            place.release(&format!("{which}-{classes}.csv --target y {more} --out {out}"));
            let r = place.statement(&format!("{out}/release-1/release.json"));
            let text = |name: &&str| pieces(&place.text(&format!("{out}/release-1/{name}")), &r);
            let files = PUBLISHED.iter().map(text).collect();
            texts.push((r, files));
        }
        let [(r, ours), (s, theirs)] = &texts[..] else { panic!("two releases") };
        for (name, (a, b)) in PUBLISHED.iter().zip(ours.iter().zip(theirs)) {
            assert_eq!(a.len(), b.len(), "{more}, {name}: other words");
            let mut moved = 0;
            for (i, (x, y)) in a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y) {
                let around = a[i.saturating_sub(4)..(i + 3).min(a.len())].concat();
                assert!(noisy(x, r) && noisy(y, s), "{more}, {name}: {x} and {y} in {around}");
                moved += 1;
            }
            assert!(moved >= r.coefficients.len(), "{more}, {name}: coefficients are noisy");
        }
    }
}

#[test]
fn what_only_the_owner_may_see_is_in_its_own_folder() {
    let place = Place::new();
    place.write("people.csv", &People::draw(2, 500).csv(false));
    let owned = place.release("people.csv --target y --l2 0.1 --sigma 1e-4 --out out");
    let eta = owned["measured"]["eta_max"].as_f64().unwrap();
    let stated = owned["eta"]["max"].as_f64().unwrap();
    assert!(eta <= stated && stated < 1.19 * eta);
    assert_eq!(owned["measured"]["n"], 500);
    assert!(owned["remarks"].to_string().contains("`home`"), "{}", owned["remarks"]);
    let copy: Value = serde_json::from_str(&place.text("out/private/release-1.json")).unwrap();
    assert_eq!(copy, owned);
    let mut private: Vec<String> = std::fs::read_dir(place.path("out/private"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    private.sort();
    assert_eq!(private, ["ledger.json", "ledger.key", "ledger.lock", "release-1.json"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("out/private")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    // Next to no noise is red, and the page says what may leave the house.
    assert_eq!(of_release(&place.statement("out/release-1/release.json")).colour, Colour::Red);
    let page = place.text("out/release-1/report.html");
    assert!(page.contains("Which files may leave the house") && page.contains("What was read off the data"));
    let said = place.run("release people.csv --target y --l2 0.1 --sigma 1 --out out");
    assert!(String::from_utf8_lossy(&said.stdout).contains("never leaves the house"));
    // A ledger from before lies in the open.
    std::fs::rename(place.path("out/private/ledger.json"), place.path("out/ledger.json")).unwrap();
    let said = place.run("release people.csv --target y --l2 0.1 --sigma 1 --out out");
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("move ledger.json and ledger.key into"));
}

/// A label of a large spread that can be read off is red, however small η is; noise that hides everything is green; and what is
/// published of it names neither record nor value nor exact number.
#[test]
fn how_often_values_are_told_apart_decides_the_page() {
    let place = Place::new();
    let mut people = People::draw(3, 600);
    people.outcome.iter_mut().for_each(|y| *y *= 1e4);
    place.write("people.csv", &people.csv(false));
    let line = "people.csv --target y --l2 0.1 --out";
    let colour = |name: &str| of_release(&place.statement(name)).colour;
    // η this small for the whole record, label and all, is calm where σ was given; one that was solved for on the data tells
    // something of its own.
    place.release(&format!("{line} small --target-eta 0.05"));
    assert_eq!(colour("small/release-1/release.json"), Colour::Amber);
    let sigma = 2.0 * place.statement("small/release-1/release.json").mechanism.sigma;
    place.release(&format!("{line} quiet --sigma {sigma}"));
    assert_eq!(colour("quiet/release-1/release.json"), Colour::Green);
    let owned = place.release(&format!("{line} read-off --sigma 1"));
    assert_eq!(colour("read-off/release-1/release.json"), Colour::Red, "{}", owned["tell"]);
    assert_eq!(owned["tell"]["label"]["by"], "refits");
    assert!(owned["tell"]["label"]["at_most"].as_f64().unwrap() > 0.75);
    // The owner has every attribute with its values and its record; the statement has one number.
    let told = owned["measured"]["tell"]["attributes"].as_array().unwrap();
    assert_eq!(told.len(), 6);
    let text = place.text("read-off/release-1/release.json");
    for t in told {
        let worst = t["worst"].as_f64().unwrap();
        assert!(worst == 1.0 || !text.contains(&worst.to_string()), "{t}");
    }
    assert!(!text.contains("worst_record") && !text.contains("\"measured\":"));
    let grid = [0.51, 0.53, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0];
    assert!(grid.contains(&owned["tell"]["attributes"]["at_most"].as_f64().unwrap()));
    // Much noise, all bounds given so that no unit moves with a value: green.
    let bounds = "--bounds age=-50..150 --bounds height=0..300 --bounds income=0..1e6 --scale bounds";
    let calm = place.release(&format!("{line} calm {bounds} --sigma 1e5"));
    assert_eq!(colour("calm/release-1/release.json"), Colour::Green, "{}", calm["tell"]);
    // The second release of the same data is told together with the first; one for which there was no time rests
    // on η and is never green.
    place.release(&format!("{line} calm {bounds} --sigma 1e5"));
    let ledger: Value = serde_json::from_str(&place.text("calm/private/ledger.json")).unwrap();
    assert_eq!(ledger["releases"][1]["told"]["y"]["values"].as_array().unwrap().len(), 2);
    let balanced = place.release(&format!("{line} balanced --sigma 1e5 --balance 2 --tell-budget 0"));
    assert_eq!(balanced["tell"]["label"]["by"], "eta");
    assert_ne!(colour("balanced/release-1/release.json"), Colour::Green);
    // A pair that was given is public; one outside the bounds is refused.
    let given = place.release(&format!("{line} given --sigma 1e5 --tell age=40,60"));
    assert_eq!(given["tell"]["given"][0], serde_json::json!({"attribute": "age", "from": "40", "to": "60"}));
    let said = place.run(&format!("release {line} given {bounds} --sigma 1 --tell age=40,600"));
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("by its bounds"));
}

#[test]
fn levels_are_those_that_many_have_unless_they_were_given() {
    let place = Place::new();
    let people = People::draw(9, 600);
    place.write("people.csv", &people.csv(false));
    let line = "people.csv --target y --l2 0.1 --sigma 0.5";
    let r = place.release(&format!("{line} --out merged"));
    let columns: Vec<&String> = r["coefficients"].as_object().unwrap().keys().collect();
    assert_eq!(
        columns,
        ["(intercept)", "age", "height", "home=flat", "home=house", "income", "race=asian", "race=black"]
    );
    assert!(r["read_off"].to_string().contains("The levels of `home`: those that at least 10 records have"));
    let r = place.release(&format!("{line} --min-level-count 1 --out kept"));
    assert!(r["coefficients"].to_string().contains("Fresno"));
    // Levels and bounds that were given are no longer read off.
    let mut homes: Vec<String> = people.words.iter().map(|w| w[1].clone()).collect();
    homes.sort();
    homes.dedup();
    let levels = serde_json::json!({ "home": homes, "race": ["asian", "black", "white"] });
    place.write("levels.json", &levels.to_string());
    let given = "--levels levels.json --bounds age=-50..150 --bounds height=0..300 --bounds income=0..1e6 --scale bounds";
    let r = place.release(&format!("{line} {given} --out given"));
    assert!(r["coefficients"].to_string().contains("Fresno"));
    let read = r["read_off"].to_string();
    assert!(!read.contains("levels of") && !read.contains("deviation of"), "{read}");
    assert!(r["given"].to_string().contains("The levels of `race`, `home`."), "{}", r["given"]);
    assert_eq!(r["mechanism"]["units"]["income"]["unit"], 524_288.0);
}

#[test]
fn what_is_not_counted_is_refused_with_what_to_do() {
    let place = Place::new();
    let mut people = People::draw(1, 120);
    place.write("people.csv", &people.csv(false));
    people.outcome.iter_mut().for_each(|y| *y = -5.0);
    people.outcome[3] = 5.0;
    place.write("rare.csv", &people.csv(true));
    people.numbers.iter_mut().for_each(|x| x[1] = 170.0);
    place.write("flat.csv", &people.csv(false));
    let run = place.run("schema people.csv --out draft.json");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for (line, parts) in [
        ("people.csv --pca 2", ["--pca", "not counted"]),
        ("people.csv --scale unit-ball", ["--scale", "--scale standard"]),
        ("people.csv --missing mean", ["--missing", "--missing drop"]),
        ("people.csv --no-intercept", ["--scale", "--scale none"]),
        ("flat.csv", ["`height` is constant", "--drop"]),
        ("rare.csv --model logistic", ["--min-level-count", "class `yes`"]),
        ("people.csv --schema draft.json --scale bounds", ["--schema", "draft"]),
    ] {
        let output = place.run(&format!("release {line} --target y --l2 0.1 --sigma 1 --out out"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{line}: {said}");
        assert!(published(&place.path("out")).is_empty(), "{line}");
    }
}

/// The estimators of other languages take the same path.
#[test]
fn a_private_model_is_in_original_units_on_the_public_lattice() {
    let place = Place::new();
    let mut people = People::draw(21, 700);
    place.write("a.csv", &people.csv(false));
    people.numbers[4][0] += 2.0;
    place.write("b.csv", &people.csv(false));
    let request = |name: &str| Request {
        read: ReadOptions { paths: vec![place.path(name)], ..ReadOptions::default() },
        roles: Roles { target: "y".into(), drop: vec!["race".into(), "home".into()], ..Roles::default() },
        family: Family::Linear.into(),
        l2: 0.2,
        ..Request::default()
    };
    let terms = Terms { noise: Amount::Sigma(0.3), ..Terms::default() };
    let of = |name: &str, seed| private(&request(name), &terms, Some(seed), &Hooks::default()).unwrap();
    let (a, b) = (of("a.csv", 1), of("b.csv", 1));
    assert_eq!((a.sigma, a.eta), (b.sigma, b.eta));
    let grid = Grid::new(a.sigma).unwrap();
    assert_eq!(grid.sigma(), a.sigma);
    for m in [&a, &b] {
        for (j, name) in NAMES.iter().enumerate() {
            let value = m.coefficients.iter().find(|c| c.0 == *name).unwrap().1;
            let sd = people.statistics().iter().find(|s| s.0 == format!("sd of {name}")).unwrap().1;
            assert_eq!((value * public_scale(sd) / grid.step).fract(), 0.0, "{name}");
            assert!(!on_lattice(&[value, of("a.csv", 2).coefficients[j].1], sd, grid.step), "{name}");
        }
    }
    assert_ne!(a.coefficients, of("a.csv", 2).coefficients);
}

/// Largest singular value of a 3 × 3 matrix of columns, by powers of `JᵀJ`.
fn spectral_norm(columns: &[[f64; 3]; 3]) -> f64 {
    let mut v = [0.6, 0.5, 0.62];
    let mut length = 0.0;
    for _ in 0..500 {
        let image: [f64; 3] = std::array::from_fn(|r| (0..3).map(|k| columns[k][r] * v[k]).sum());
        let back: [f64; 3] = std::array::from_fn(|k| (0..3).map(|r| columns[k][r] * image[r]).sum());
        length = back.iter().map(|x| x * x).sum::<f64>().sqrt();
        v = back.map(|x| x / length);
    }
    length.sqrt()
}

/// No formula of leakage: change a value in the file, release again with the same noise, and see how what is published
/// moved. Scaling and balancing move with it.
#[test]
fn loss_is_how_published_coefficients_move_with_each_value() {
    let place = Place::new();
    let mut random = Seeded::new(8);
    let table: Vec<[f64; 3]> = (0..28)
        .map(|_| {
            let z = random.normals(3);
            [40.0 + 11.0 * z[0], 3.0 * z[1], 2.0 + z[0] - 0.7 * z[1] + 0.6 * z[2]]
        })
        .collect();
    let write = |table: &[[f64; 3]]| {
        let rows: String = table.iter().map(|r| format!("{},{},{}\n", r[0], r[1], r[2])).collect();
        place.write("t.csv", &format!("a,b,y\n{rows}"));
    };
    for (i, (l2, balance)) in [(0.3, 0), (0.05, 0), (0.1, 2)].into_iter().enumerate() {
        write(&table);
        let found =
            place.release(&format!("t.csv --target y --l2 {l2} --sigma 1 --balance {balance} --out out-{i}"));
        let r = place.statement(&format!("out-{i}/release-1/release.json"));
        let measured = found["measured"]["eta_max"].as_f64().unwrap() * r.mechanism.sigma;
        let [a, b] = ["a", "b"].map(|name| r.mechanism.units[name]);
        let request = Request {
            read: ReadOptions { paths: vec![place.path("t.csv")], ..ReadOptions::default() },
            roles: Roles { target: "y".into(), ..Roles::default() },
            l2,
            ..Request::default()
        };
        let terms = Terms { noise: Amount::Sigma(1e-6), balance, ..Terms::default() };
        let at = |i: usize, k: usize, step: f64| -> [f64; 3] {
            let mut changed = table.clone();
            changed[i][k] += step * [a.unit, b.unit, 1.0][k];
            write(&changed);
            let m = private(&request, &terms, Some(1), &Hooks::default()).unwrap();
            let of = |name: &str| m.coefficients.iter().find(|c| c.0 == name).unwrap().1;
            let w = [of("a"), of("b")];
            [w[0] * a.unit, w[1] * b.unit, of("(intercept)") + a.centre * w[0] + b.centre * w[1]]
        };
        let h = 1e-3;
        let norms = (0..table.len()).map(|i| {
            let columns: [[f64; 3]; 3] = std::array::from_fn(|k| {
                let (up, down) = (at(i, k, h), at(i, k, -h));
                std::array::from_fn(|j| (up[j] - down[j]) / (2.0 * h))
            });
            spectral_norm(&columns)
        });
        let most = norms.fold(0.0, f64::max);
        assert!((most / measured - 1.0).abs() < 1e-4, "λ = {l2}, {balance}: moved {most}, stated {measured}");
    }
}
