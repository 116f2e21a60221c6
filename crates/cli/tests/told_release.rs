//! Two values told apart by a release: the whole of it, units, weights and fit, is made again for every record and value, by
//! elimination, and compared with what its owner is told; an attacker plays against the published coefficients; and what shows
//! whatever the noise is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use leakscope::release::{Amount, Terms, private};
use leakscope::request::Request;
use leakscope_core::balance::{Level, Options, Sharing, Update, Variant, balance};
use leakscope_core::fisher::Release as NoiseOf;
use leakscope_core::glm::{Family, Penalty};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_core::special::normal_cdf;
use leakscope_report::Release;
use leakscope_report::verdict::{Colour, of_release};
use leakscope_table::{Bounds, Hooks, Public, ReadOptions, Roles};
use serde_json::Value;
use std::fmt::Write;

const L2: f64 = 0.05;

#[derive(Clone)]
struct People {
    /// Age and income.
    numbers: Vec<[f64; 2]>,
    race: Vec<&'static str>,
    y: Vec<f64>,
    /// Whether public units come from bounds.
    bounded: bool,
}

/// Bounds under which no public unit is read off the data.
const BOUNDS: &str = "--bounds age=0..128 --bounds income=0..65536";

impl People {
    fn draw(seed: u64, n: usize) -> Self {
        let mut random = Seeded::new(seed);
        let mut people = Self { numbers: vec![], race: vec![], y: vec![], bounded: false };
        for i in 0..n {
            let z = random.normals(3);
            let (age, income) = ((50.0 + 11.0 * z[0]).round(), (3e4 * (0.3 * z[1]).exp()).round());
            let race = ["asian", "black", "white"][i % 3];
            people.numbers.push([age, income]);
            people.race.push(race);
            let y = 0.03 * age + income / 5e4 + f64::from(u8::from(race == "white")) + 0.5 * z[2];
            people.y.push((1e4 * y).round() / 1e4);
        }
        people
    }

    fn csv(&self) -> String {
        let mut text = String::from("age,income,race,y\n");
        for ((x, race), y) in self.numbers.iter().zip(&self.race).zip(&self.y) {
            writeln!(text, "{},{},{race},{y}", x[0], x[1]).unwrap();
        }
        text
    }

    fn with(&self, i: usize, attribute: &str, value: &str) -> Self {
        let mut changed = self.clone();
        match attribute {
            "age" => changed.numbers[i][0] = value.parse().unwrap(),
            "income" => changed.numbers[i][1] = value.parse().unwrap(),
            "y" => changed.y[i] = value.parse().unwrap(),
            "race" => {
                changed.race[i] = ["asian", "black", "white"].into_iter().find(|r| *r == value).unwrap()
            }
            other => panic!("{other}"),
        }
        changed
    }

    /// The public unit and centre of a number, from its definition.
    fn unit(&self, j: usize) -> (f64, f64) {
        if self.bounded {
            // Those of [`BOUNDS`]: half the range is a power of two.
            return [(64.0, 64.0), (32_768.0, 32_768.0)][j];
        }
        let n = self.y.len() as f64;
        let mean = self.numbers.iter().map(|x| x[j]).sum::<f64>() / n;
        let sd = (self.numbers.iter().map(|x| (x[j] - mean).powi(2)).sum::<f64>() / n).sqrt();
        let unit = 2_f64.powf(sd.log2().round());
        (unit, (mean / unit).round() * unit)
    }

    /// Rows in public units, in the order of the names of coefficients, the intercept last.
    fn rows(&self, names: &[String]) -> Vec<Vec<f64>> {
        let units = [self.unit(0), self.unit(1)];
        let value = |i: usize, name: &String| match name.as_str() {
            "age" => (self.numbers[i][0] - units[0].1) / units[0].0,
            "income" => (self.numbers[i][1] - units[1].1) / units[1].0,
            "(intercept)" => 1.0,
            level => f64::from(u8::from(level.strip_prefix("race=") == Some(self.race[i]))),
        };
        (0..self.y.len()).map(|i| names.iter().map(|name| value(i, name)).collect()).collect()
    }

    /// The model in public units, by elimination.
    fn ridge(&self, names: &[String]) -> Vec<f64> {
        let (rows, p, n) = (self.rows(names), names.len(), self.y.len());
        let mut a = vec![vec![0.0; p + 1]; p];
        for (x, y) in rows.iter().zip(&self.y) {
            for j in 0..p {
                (0..p).for_each(|k| a[j][k] += x[j] * x[k]);
                a[j][p] += x[j] * y;
            }
        }
        (0..p - 1).for_each(|j| a[j][j] += n as f64 * L2);
        for j in 0..p {
            let best = (j..p).max_by(|&b, &c| a[b][j].abs().total_cmp(&a[c][j].abs())).unwrap();
            a.swap(j, best);
            for k in 0..p {
                if k != j {
                    let factor = a[k][j] / a[j][j];
                    (0..=p).for_each(|l| a[k][l] -= factor * a[j][l]);
                }
            }
        }
        (0..p).map(|j| a[j][p] / a[j][j]).collect()
    }

    /// The model in public units after balancing, by the command that balances.
    fn balanced(&self, names: &[String], iterations: usize) -> Vec<f64> {
        let rows: Vec<f64> = self.rows(names).concat();
        let table = InMemory::from_matrix(&rows, &self.y, &[], 64);
        let options = Options {
            level: Level::Record,
            sharing: Sharing::Sample,
            variant: Variant::Weighted,
            update: Update::Published,
            clamp: None,
            iterations,
            tolerance: 0.0,
            release: NoiseOf { sigma: 1.0, releases: 1, label_secret: true },
            shape: None,
        };
        let mut w = vec![];
        let model = (Family::Linear, Penalty::new(L2, true));
        balance(&table, model, &options, |_, fit, _| {
            w.clone_from(&fit.w);
            Ok(())
        })
        .unwrap();
        w
    }
}

/// Names of the coefficients in the order in which models are fitted.
fn names(r: &Release) -> Vec<String> {
    let mut all = vec!["age".to_owned(), "income".to_owned()];
    all.extend(r.mechanism.units.keys().filter(|n| n.starts_with("race=")).cloned());
    all.push("(intercept)".into());
    all
}

fn released(folder: &Folder, line: &str, out: &str) -> (Value, Release) {
    let owned = folder.run(&format!("release {line} --out {out} --json")).expect_released().json();
    let statement = folder.read(&format!("{out}/release-1/release.json"));
    (owned, serde_json::from_str(&statement).unwrap())
}

/// The statement as its owner has it.
fn owners(owned: &Value) -> Release {
    serde_json::from_value(owned.clone()).unwrap()
}

fn told<'a>(owned: &'a Value, name: &str) -> &'a Value {
    let all = owned["measured"]["tell"]["attributes"].as_array().unwrap();
    all.iter().find(|t| t["attribute"] == name).unwrap()
}

/// The largest probability over records of telling two values apart, by making all models again.
fn by_hand(
    people: &People,
    (attribute, values): (&str, [&str; 2]),
    model: impl Fn(&People) -> Vec<f64>,
    length: impl Fn(&[f64]) -> f64,
) -> f64 {
    let units = |p: &People| [p.unit(0), p.unit(1)];
    let of = |i: usize| -> f64 {
        let [a, b] = values.map(|v| people.with(i, attribute, v));
        if units(&a) != units(&b) {
            return 1.0;
        }
        let apart: Vec<f64> = model(&a).iter().zip(&model(&b)).map(|(a, b)| a - b).collect();
        normal_cdf(0.5 * length(&apart))
    };
    (0..people.y.len()).map(of).fold(0.5, f64::max)
}

/// Pairs that leave the public units as they are on this table, and the label.
const ASKED: [(&str, [&str; 2]); 2] = [("age", ["48", "56"]), ("y", ["2", "3.5"])];
/// Values far apart.
const FAR: &str = "--tell age=20,90 --tell y=0,6 --tell income=29000,31000 --tell race=asian,white";
const TELL: &str = "--tell age=48,56 --tell y=2,3.5 --tell income=29000,31000 --tell race=asian,white";

#[test]
fn shaped_noise_tells_values_apart_as_refits_under_its_covariance_do() {
    let folder = Folder::new();
    let people = People::draw(4, 90);
    folder.write("p.csv", people.csv());
    folder.write("public.csv", People::draw(50, 200).csv());
    let line = format!("p.csv --target y --l2 {L2} --min-level-count 5 {TELL}");
    for (k, more) in [
        "--target-eta 2 --protect age",
        "--noise-shape shaped --target-eta 2 --shape-from public.csv",
        "--noise-shape optimal --target-sd age=9 --shape-from public.csv",
    ]
    .into_iter()
    .enumerate()
    {
        let (owned, r) = released(&folder, &format!("{line} {more}"), &format!("out{k}"));
        let shape = r.mechanism.shape.as_ref().unwrap();
        let noise = shape.factor.noise().unwrap();
        let length = |v: &[f64]| noise.whiten(v).iter().map(|x| x * x).sum::<f64>().sqrt();
        assert_eq!(shape.coefficients, names(&r));
        let mut largest = 0.5_f64;
        for (attribute, values) in
            ASKED.into_iter().chain([("income", ["29000", "31000"]), ("race", ["asian", "white"])])
        {
            let truth = by_hand(&people, (attribute, values), |p| p.ridge(&shape.coefficients), length);
            let worst = told(&owned, attribute)["worst"].as_f64().unwrap();
            assert!((worst - truth).abs() < 1e-7 && truth > 0.5, "{more}, {attribute}: {worst} for {truth}");
            largest = largest.max(if attribute == "y" { 0.5 } else { truth });
        }
        let stated = owners(&owned).tell.unwrap();
        let (attributes, label) = (stated.attributes.unwrap(), stated.label.unwrap());
        assert_eq!(serde_json::to_value(attributes.by).unwrap(), "refits");
        assert_eq!(serde_json::to_value(label.by).unwrap(), "refits");
        assert!(
            attributes.at_most >= largest && attributes.at_most <= largest + 0.06,
            "{stated:?} {largest}"
        );
        // Its scale was solved for on the data, and that is not counted.
        assert_ne!(of_release(&owners(&owned)).colour, Colour::Green);
    }
}

#[test]
fn a_balanced_release_is_balanced_again_for_every_value() {
    let folder = Folder::new();
    let people = People { bounded: true, ..People::draw(6, 45) };
    folder.write("p.csv", people.csv());
    let line = format!("p.csv --target y --l2 {L2} --min-level-count 5 {FAR} {BOUNDS} --balance 3");
    let (owned, r) = released(&folder, &format!("{line} --sigma 0.25"), "near");
    let (names, sigma) = (names(&r), r.mechanism.sigma);
    let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt() / sigma;
    for (attribute, values) in [("age", ["20", "90"]), ("y", ["0", "6"])] {
        let truth = by_hand(&people, (attribute, values), |p| p.balanced(&names, 3), length);
        let worst = told(&owned, attribute)["worst"].as_f64().unwrap();
        assert!((worst - truth).abs() < 1e-5 && truth > 0.5, "{attribute}: {worst} for {truth}");
    }
    assert_eq!(owned["tell"]["attributes"]["by"], "refits");
    // Enough noise, given and not solved for, is green: balancing is no reason to worry by itself.
    let calm = owners(&released(&folder, &format!("{line} --sigma 64"), "calm").0);
    assert_eq!(of_release(&calm).colour, Colour::Green, "{:?}", calm.tell);
    let (hasty, _) = released(&folder, &format!("{line} --sigma 64 --tell-budget 0"), "hasty");
    let calm = owners(&hasty);
    assert_eq!(of_release(&calm).colour, Colour::Amber);
    assert_eq!(hasty["measured"]["tell"]["left_out"].as_array().unwrap().len(), 4);
    assert!(of_release(&calm).text().contains("⟨tell_budget⟩ allows more work"));
}

/// [`BOUNDS`], for the library.
fn bounds() -> Vec<(String, Bounds)> {
    let of = |name: &str, high: f64| (name.to_owned(), Bounds::new(name, 0.0, high).unwrap());
    vec![of("age", 128.0), of("income", 65_536.0)]
}

/// Somebody who knows everything but which of two ages it is sees the published coefficients.
#[test]
fn an_attacker_who_reads_the_model_is_right_no_more_often_than_is_said() {
    let folder = Folder::new();
    let people = People { bounded: true, ..People::draw(6, 45) };
    folder.write("p.csv", people.csv());
    let line =
        format!("p.csv --target y --l2 {L2} --min-level-count 5 {FAR} {BOUNDS} --balance 3 --sigma 0.125");
    let (owned, r) = released(&folder, &line, "out");
    let (entry, names) = (told(&owned, "age"), names(&r));
    let record = entry["worst_record"].as_str().unwrap().parse::<usize>().unwrap() - 1;
    let tables = ["20", "90"].map(|v| people.with(record, "age", v));
    let models = tables.each_ref().map(|t| t.balanced(&names, 3));
    let units = [people.unit(0), people.unit(1)];
    let request = |k: usize| {
        let name = format!("{k}.csv");
        folder.write(&name, tables[k].csv());
        Request {
            read: ReadOptions { paths: vec![folder.path(&name)], ..Default::default() },
            roles: Roles { target: "y".into(), ..Default::default() },
            l2: L2,
            min_level_count: Some(5),
            public: Public { bounds: bounds(), ..Default::default() },
            ..Default::default()
        }
    };
    let requests = [request(0), request(1)];
    let terms = Terms { noise: Amount::Sigma(0.125), balance: 3, ..Default::default() };
    let (trials, mut right) = (160_u64, 0_u32);
    for trial in 0..trials {
        let truth = (trial % 2) as usize;
        let answer = private(&requests[truth], &terms, Some(trial), &Hooks::default()).unwrap();
        // Published in original units; the attacker goes back to public ones.
        let value = |name: &str| answer.coefficients.iter().find(|(n, _)| n == name).unwrap().1;
        let mut seen: Vec<f64> = names.iter().map(|n| value(n)).collect();
        let last = seen.len() - 1;
        for (j, (unit, centre)) in units.into_iter().enumerate() {
            seen[last] += seen[j] * centre;
            seen[j] *= unit;
        }
        let far = |model: &Vec<f64>| seen.iter().zip(model).map(|(s, m)| (s - m).powi(2)).sum::<f64>();
        right += u32::from((far(&models[1]) < far(&models[0])) == (truth == 1));
    }
    let (success, bound) = (f64::from(right) / trials as f64, entry["worst"].as_f64().unwrap());
    let error = (bound * (1.0 - bound) / trials as f64).sqrt();
    assert!(success <= bound + 4.0 * error, "{success} > {bound}");
    assert!(success >= bound - 4.0 * error && bound > 0.6, "the best test attains it: {success} {bound}");
}

#[test]
fn what_no_noise_hides_is_red_with_its_cause() {
    let folder = Folder::new();
    let mut people = People::draw(9, 60);
    folder.write("p.csv", people.csv());
    let line = format!("p.csv --target y --l2 {L2}");
    // Columns as they are: their public units are still rounded from the data.
    let raw = format!("{line} --scale none --sigma 1e9 --tell age=50,5000");
    let (owned, r) = released(&folder, &raw, "raw");
    assert_eq!(
        (told(&owned, "age")["worst"].as_f64(), &told(&owned, "age")["shows"]),
        (Some(1.0), &"unit".into())
    );
    assert_eq!(of_release(&owners(&owned)).colour, Colour::Red);
    // What was found, and what helps, is for the owner; who reads the published page hears neither.
    assert!(of_release(&r).text().contains("stays with its owner"), "{}", of_release(&r).text());
    let run = folder.run(&format!("release {raw} --out again"));
    assert!(run.code == 1 && run.stderr.contains("this release is red"), "{}", run.stderr);
    assert!(run.stdout.contains("give its --bounds"), "{}", run.stdout);
    let public = format!("{raw} --bounds age=0..10000 --bounds income=0..100000");
    let (owned, _) = released(&folder, &public, "given");
    assert!(
        told(&owned, "age").get("shows").is_none() && told(&owned, "age")["worst"].as_f64().unwrap() < 0.51
    );
    // A level that ten records have is listed because of each of them.
    people
        .race
        .iter_mut()
        .enumerate()
        .for_each(|(i, r)| *r = if i < 10 { "asian" } else { ["black", "white"][i % 2] });
    folder.write("p.csv", people.csv());
    let bounds = "--bounds age=0..110 --bounds income=0..100000 --scale bounds --sigma 1e6";
    let (owned, _) = released(&folder, &format!("{line} {bounds}"), "listed");
    let race = told(&owned, "race");
    assert_eq!((race["worst"].as_f64(), &race["shows"]), (Some(1.0), &"levels".into()));
    let record: usize = race["worst_record"].as_str().unwrap().parse().unwrap();
    assert_eq!((of_release(&owners(&owned)).colour, people.race[record - 1]), (Colour::Red, "asian"));
    let (owned, _) = released(&folder, &format!("{line} {bounds} --min-level-count 9"), "fewer");
    assert!(told(&owned, "race").get("shows").is_none(), "{owned}");
    assert_eq!(of_release(&owners(&owned)).colour, Colour::Green, "{}", owned["tell"]);
}

/// A table whose column `code` has so many different texts in 100 rows, and whose column `mixed` so many numbers among texts.
fn guessed(different: usize, numbers: usize) -> String {
    let mut text = String::from("x,code,mixed,y\n");
    for i in 0..100 {
        let mixed = if i < numbers { format!("{}", i % 4) } else { "none".into() };
        writeln!(text, "{},a{},{mixed},{}", i % 13, i.min(different - 1), (i * 7) % 11).unwrap();
    }
    text
}

/// Columns that a release has because of one record show how that record is: the neighbouring tables would publish other columns.
/// Nothing is published until somebody says which.
#[test]
fn a_guess_that_one_record_decides_is_refused_by_name() {
    let folder = Folder::new();
    let line = "--bounds x=0..16 --l2 0.05 --sigma 400 --min-level-count 0 --target y";
    for (text, column, refused) in [
        (guessed(40, 0), "code", false),
        (guessed(89, 0), "code", false),
        (guessed(90, 0), "code", true),
        (guessed(91, 0), "code", true),
        (guessed(95, 0), "code", false),
        (guessed(40, 50), "mixed", false),
        (guessed(40, 89), "mixed", true),
    ] {
        folder.write("t.csv", &text);
        let run = folder.run(&format!("release t.csv {line} --out guessed"));
        let named = run.stderr.contains(&format!("`{column}`: one record decides"))
            && run.stderr.contains(&format!("--categorical {column}"))
            && run.stderr.contains(&format!("--drop {column}"));
        assert_eq!((run.code == 2, named), (refused, refused), "{column}: {}", run.stderr);
        assert_eq!(folder.path("guessed").join("release-1").exists(), !refused);
        let _ = std::fs::remove_dir_all(folder.path("guessed"));
        // What was said is not guessed.
        for option in [format!("--categorical {column}"), format!("--drop {column}")] {
            let run = folder.run(&format!("release t.csv {line} {option} --out said"));
            assert!(run.code <= 1 && !run.stderr.contains("one record decides"), "{option}: {}", run.stderr);
            let columns = folder.json("said/release-1/model.json")["coefficients"].to_string();
            assert_eq!(columns.contains(&format!("\"{column}=")), option.contains("categorical"));
            std::fs::remove_dir_all(folder.path("said")).unwrap();
        }
    }
}

/// What is published of a release, without what the noise made: coefficients, their intervals, the time.
fn but_for_noise(folder: &Folder, out: &str, r: &Release) -> [String; 3] {
    let json = |name: &str| {
        let mut value = folder.json(&format!("{out}/release-1/{name}"));
        let fields = value.as_object_mut().unwrap();
        let mut precision = fields.remove("precision").unwrap_or_default();
        for of_one in precision.as_object_mut().into_iter().flat_map(|p| p.values_mut()) {
            *of_one = of_one["noise_error"].take();
        }
        fields.insert("noise errors of all".into(), precision);
        assert!(fields.remove("coefficients").is_some());
        fields.remove("created");
        value.to_string()
    };
    let page = folder.read(&format!("{out}/release-1/report.html")).replace(&r.created, "then");
    let (before, after) = page.split_once("<meta name=\"leakscope-digest\" content=\"").unwrap();
    let page = format!("{before}{}", after.split_once('"').unwrap().1);
    let (before, table) = page.split_once("<section class=\"card\" id=\"coefficients\">").unwrap();
    let after = table.split_once("</section>").unwrap().1;
    [json("release.json"), json("model.json"), format!("{before}{after}")]
}

/// How often values are told apart was measured: even on a grid, and even as a colour, it shows on which side of a step a record
/// puts it. Who knows all other records tries every value of the last one: all that is published but for the noise is the same
/// for each of them, whatever its owner is told.
#[test]
fn no_published_byte_depends_on_what_was_measured() {
    let folder = Folder::new();
    let people = People::draw(9, 60);
    folder.write("levels.json", "{\"race\": [\"asian\", \"black\", \"white\"]}");
    let line = format!("p.csv --target y --l2 {L2} {BOUNDS} --scale bounds --levels levels.json");
    let (mut colours, mut published) = (vec![], vec![]);
    // σ from one that protects down to one that does not, on its grid; an ordinary age and one far outside.
    let sigmas: Vec<f64> = (2..14).map(|k| 2_f64.powf(-0.25 * f64::from(k))).collect();
    for (k, (sigma, age)) in sigmas.iter().flat_map(|s| ["30", "110"].map(|age| (s, age))).enumerate() {
        folder.write("p.csv", people.with(7, "age", age).csv());
        let out = format!("out{k}");
        let (owned, r) = released(&folder, &format!("{line} --sigma {sigma}"), &out);
        colours.push((sigma, of_release(&owners(&owned)).colour));
        assert_eq!(of_release(&r).colour, Colour::Amber);
        published.push((sigma.to_string(), but_for_noise(&folder, &out, &r)));
    }
    let seen: std::collections::BTreeSet<String> = colours.iter().map(|c| format!("{c:?}")).collect();
    assert!(
        seen.len() > sigmas.len(),
        "at some noise one value makes another colour for the owner: {seen:?}"
    );
    published.dedup();
    assert_eq!(published.len(), sigmas.len(), "one for each noise that was given");
    // Values that somebody named are public.
    let (_, r) = released(&folder, &format!("{line} --sigma 400 --tell age=40,50"), "named");
    let pair = &r.tell.unwrap().public_pairs[0];
    assert_eq!((pair.attribute.as_str(), pair.from.as_str(), pair.to.as_str()), ("age", "40", "50"));
    assert!(folder.read("named/release-1/report.html").contains("values that were named: age 40 or 50"));
}

/// One record decides which levels are listed, whether a column is refused as constant, whether there are enough of a class, or
/// how the target is coded: who knows the others sees that without any coefficient, whatever the noise.
#[test]
fn what_one_record_decides_is_told_whatever_the_noise() {
    let table = |change: &dyn Fn(usize, &mut [String; 4])| {
        let mut text = String::from("x,c,d,y\n");
        for i in 0..120 {
            let level = ["u", "v", "w"][i % 3];
            let mut row =
                [format!("{}", i % 17), level.into(), format!("{}", i % 5), format!("{}.5", (i * 7) % 23)];
            change(i, &mut row);
            writeln!(text, "{}", row.join(",")).unwrap();
        }
        text
    };
    let one = |k: usize, value: &'static str| {
        move |i: usize, row: &mut [String; 4]| {
            if i == 8 {
                row[k] = value.into();
            }
        }
    };
    let plain = "--bounds x=0..16 --bounds d=0..4 --l2 0.05 --sigma 400";
    let folder = Folder::new();
    folder.write("levels.json", "{\"c\": [\"u\", \"v\", \"w\", \"z\"]}");
    let nearly = |i: usize, row: &mut [String; 4]| {
        row[1] = if i < 9 { "r" } else { ["u", "v"][i % 2] }.into();
    };
    let almost_constant = |i: usize, row: &mut [String; 4]| row[2] = if i == 8 { "1" } else { "0" }.into();
    let two_but_one =
        |i: usize, row: &mut [String; 4]| row[3] = if i == 8 { "0.5" } else { ["0", "1"][i % 2] }.into();
    let cases: [(&str, String, String, &str, bool); 7] = [
        ("calm", table(&|_, _| ()), plain.into(), "c", false),
        ("a rare level pulls another into `other`", table(&one(1, "z")), plain.into(), "c", true),
        ("one below the threshold", table(&nearly), plain.into(), "c", true),
        ("no threshold", table(&one(1, "z")), format!("{plain} --min-level-count 0"), "c", true),
        (
            // The list is public, and holds it whether anybody has it or not.
            "a given level of one record",
            table(&one(1, "z")),
            format!("{plain} --levels levels.json"),
            "c",
            false,
        ),
        (
            "constant but for one, balanced",
            table(&almost_constant),
            format!("{plain} --balance 1"),
            "d",
            true,
        ),
        ("the coding of the target", table(&two_but_one), plain.into(), "y", true),
    ];
    for (at, (case, text, options, attribute, tells)) in cases.into_iter().enumerate() {
        folder.write("t.csv", text);
        let out = format!("out{at}");
        let (owned, r) = released(&folder, &format!("t.csv --target y {options}"), &out);
        let worst = told(&owned, attribute)["worst"].as_f64().unwrap();
        assert_eq!(worst == 1.0, tells, "{case}: {worst}");
        assert_eq!(of_release(&owners(&owned)).colour == Colour::Red, tells, "{case}");
        assert_eq!(of_release(&r).colour, Colour::Amber, "{case}");
        // η was measured: the owner is told, nobody else.
        assert!(owned["eta"]["max"].as_f64().unwrap() > 0.0);
        assert_eq!((r.eta.max, r.composed.eta_max), (None, None), "{case}");
    }
}

/// A mean just below zero rounds to zero like one just above it: no published byte tells which.
#[test]
fn no_file_says_on_which_side_of_zero_a_mean_lies() {
    let mut random = Seeded::new(17);
    let x = random.normals(400);
    let mean = x.iter().sum::<f64>() / 400.0;
    for side in [-1e-3, 1e-3] {
        let rows: String = x.iter().map(|v| format!("{},{}\n", v - mean + side, 2.0 * v)).collect();
        let folder = Folder::new();
        folder.write("t.csv", format!("x,y\n{rows}"));
        folder.run("release t.csv --target y --l2 0.01 --sigma 8 --label public --out o").expect_released();
        for file in ["release.json", "model.json"] {
            let text = folder.read(&format!("o/release-1/{file}"));
            assert!(text.contains("\"centre\""), "{file}");
            assert!(
                !text.contains("-0.0,") && !text.contains("-0.0\n") && !text.contains("-0,"),
                "{file}: {text}"
            );
        }
    }
}

/// The label of an earlier release was told of there even where it was called public, and so was a column of weights.
#[test]
fn what_an_earlier_release_took_as_public_is_not_forgotten() {
    let mut random = Seeded::new(5);
    let rows: String = (0..150)
        .map(|_| {
            let z = random.normals(3);
            format!("{:.2},{:.2},{:.2},{:.2}\n", z[0], z[0] + z[1], z[1] + 0.5 * z[2], 1.0 + z[2].abs())
        })
        .collect();
    let bounds = "--bounds x=-8..8 --bounds y=-8..8 --bounds z=-8..8 --bounds w=0..8";
    for first in ["--target y --label public --drop w", "--target z --label public --weights w --drop y"] {
        let folder = Folder::new();
        folder.write("t.csv", format!("x,y,z,w\n{rows}"));
        let later =
            format!("release t.csv --target z --label public {bounds} --l2 0.1 --sigma 64 --out o --json");
        let alone = owners(&folder.run(&later.replace("--out o", "--out p")).expect_released().json());
        assert_eq!(of_release(&alone).colour, Colour::Green);
        folder.run(&format!("release t.csv {first} {bounds} --l2 0.1 --sigma 1 --out o")).expect_released();
        let owned = folder.run(&later).expect_released().json();
        assert_ne!(of_release(&owners(&owned)).colour, Colour::Green, "{first}: {owned}");
    }
}
