//! Made-up people, their releases, and what stands in published files.

use leakscope_core::random::Seeded;
use leakscope_report::Release;
use leakscope_report::release::Owned;
use leakscope_report::verdict::{Colour, of_owned};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a release publishes; everything else in its folder is private.
pub(crate) const PUBLISHED: [&str; 3] = ["model.json", "release.json", "report.html"];
/// Numbers this close (relative) are the same.
pub(crate) const SAME: f64 = 1e-11;

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        let binary = env!("CARGO_BIN_EXE_leakscope");
        Command::new(binary).args(line.split(' ')).current_dir(self.dir.path()).output().unwrap()
    }

    pub(crate) fn release(&self, line: &str) -> Value {
        let output = self.run(&format!("release {line} --json"));
        let message = String::from_utf8_lossy(&output.stderr);
        let red = output.status.code() == Some(1) && message.contains("this release is red");
        assert!(output.status.success() || red, "{line}: {message}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn statement(&self, name: &str) -> Release {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The colour of a release (`out/release-1`) as its owner is told.
    pub(crate) fn owners_colour(&self, name: &str) -> Colour {
        let (folder, release) = name.rsplit_once('/').unwrap();
        let owned: Owned =
            serde_json::from_str(&self.text(&format!("{folder}/private/{release}.json"))).unwrap();
        of_owned(&owned).colour
    }
}

/// Numbers with many digits, a category, addresses that one record each has, a target.
#[derive(Clone)]
pub(crate) struct People {
    pub(crate) numbers: Vec<[f64; 3]>,
    pub(crate) words: Vec<[String; 2]>,
    pub(crate) outcome: Vec<f64>,
}

pub(crate) const NAMES: [&str; 3] = ["age", "height", "income"];

impl People {
    pub(crate) fn draw(seed: u64, n: usize) -> Self {
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
    pub(crate) fn csv_of_three(&self) -> String {
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

    pub(crate) fn csv(&self, classes: bool) -> String {
        let mut text = String::from("age,height,income,race,home,y\n");
        for ((x, words), y) in self.numbers.iter().zip(&self.words).zip(&self.outcome) {
            let y = if classes { (if *y > 0.4 { "yes" } else { "no" }).to_owned() } else { y.to_string() };
            writeln!(text, "{},{},{},{},{},{y}", x[0], x[1], x[2], words[0], words[1]).unwrap();
        }
        text
    }

    pub(crate) fn column(&self, j: usize) -> Vec<f64> {
        self.numbers.iter().map(|x| x[j]).collect()
    }

    /// Exact statistics of every column: names and values.
    pub(crate) fn statistics(&self) -> Vec<(String, f64)> {
        let mut all = vec![("n".to_owned(), self.outcome.len() as f64)];
        let columns = (0..3).map(|j| (NAMES[j], self.column(j))).chain([("y", self.outcome.clone())]);
        for (name, values) in columns {
            let n = values.len() as f64;
            let (sum, mean) = (values.iter().sum::<f64>(), values.iter().sum::<f64>() / n);
            let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
            let extreme = |least: bool| {
                values.iter().copied().fold(values[0], |m, x| if (x < m) == least { x } else { m })
            };
            for (subject, value) in [
                ("sum", sum),
                ("mean", mean),
                ("sd", (squares / n).sqrt()),
                ("sample sd", (squares / (n - 1.0)).sqrt()),
                ("variance", squares / n),
                ("min", extreme(true)),
                ("max", extreme(false)),
            ] {
                all.push((format!("{subject} of {name}"), value));
            }
        }
        all
    }
}

/// Digits of a SHA-256 in hexadecimal, as the page carries its own.
const DIGEST: usize = 64;

/// The text without digests: words of just that many hexadecimal digits, any four of which look like a number now and then.
fn without_digests(text: &str) -> String {
    let is_digest = |word: &str| {
        word.len() == DIGEST && word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|w| !is_digest(w.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))).collect()
}

#[test]
fn digests_are_no_numbers_and_nothing_else_is_left_out() {
    let digest = "2987".repeat(DIGEST / 4 - 1) + "a1b2";
    assert_eq!(numbers_in(&format!("content=\"{digest}\">12 (0.5)")), [0.5, 12.0]);
    // One digit more or less, or a sign that no digest has: read as ever.
    for other in [format!("{digest}a"), digest[1..].to_owned(), digest.replace('b', "g")] {
        assert!(!numbers_in(&other).is_empty(), "{other}");
    }
    assert_eq!(numbers_in("2,987 or 2987;29.87"), [2.0, 29.87, 987.0, 2987.0]);
}

/// Every number that stands anywhere in a text, with thousands separators and without; digests are none.
pub(crate) fn numbers_in(text: &str) -> Vec<f64> {
    let mut numbers = vec![];
    let text = without_digests(text);
    for separators in [true, false] {
        let inside = |c: char| c.is_ascii_digit() || "+-.eE".contains(c) || (separators && c == ',');
        for word in text.split(|c| !inside(c)) {
            let word = word.replace(',', "");
            let word = word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-' && c != '.');
            numbers.extend(word.parse::<f64>().ok().filter(|x| x.is_finite() && *x != 0.0));
        }
    }
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

pub(crate) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs()
}

/// The statistics that stand among numbers, or that two of them have as ratio or difference.
pub(crate) fn given_away(numbers: &[f64], statistics: &[(String, f64)]) -> Vec<String> {
    let mut matches = vec![];
    let mut look = |x: f64, how: &str, whole: bool| {
        for (name, value) in statistics {
            // Whole numbers differ by whole numbers: that tells nothing.
            if close(x.abs(), value.abs(), SAME) && (whole || value.fract() != 0.0) {
                matches.push(format!("{name} = {value} as {how} {x}"));
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
    matches
}

/// Files under a folder, but for what is private.
pub(crate) fn published(folder: &Path) -> Vec<PathBuf> {
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

/// Whether all values times a scale are whole multiples of a step.
pub(crate) fn on_lattice(values: &[f64], scale: f64, step: f64) -> bool {
    values.iter().all(|v| {
        let k = v * scale / step;
        (k - k.round()).abs() < 1e-3
    })
}
