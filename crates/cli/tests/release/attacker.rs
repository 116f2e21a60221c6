//! Whoever knows all records but one looks at all numbers, their ratios and differences and the lattice they lie on, and at what
//! neighbouring data would have published.

use super::support::*;
use leakscope_core::random::Seeded;
use leakscope_core::release::Grid;
use leakscope_report::Release;

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
        let matches = given_away(&numbers_in(&text), &statistics);
        assert!(matches.is_empty(), "{}: {matches:?}", file.display());
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
    let matches = given_away(&pairs.iter().flat_map(|p| [p.0, p.1]).collect::<Vec<_>>(), &statistics);
    for (j, name) in NAMES.iter().enumerate() {
        assert!(matches.iter().any(|f| f.starts_with(&format!("sd of {name}"))), "{matches:?}");
        let sd = statistics.iter().find(|s| s.0 == format!("sd of {name}")).unwrap().1;
        assert!(on_lattice(&[pairs[j].1], sd, grid));
        let now: Vec<f64> = (1..=3)
            .map(|k| place.statement(&format!("out/release-{k}/release.json")).coefficients[*name])
            .collect();
        assert!(!on_lattice(&now, sd, grid / 64.0), "{name}");
    }
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
            let matches = by_ratio(&numbers_in(&place.text(&format!("out/release-{k}/{name}"))));
            assert!(matches.is_empty(), "{name}: {matches:?}");
        }
        values.push(place.statement(&format!("out/release-{k}/release.json")).coefficients["age"]);
    }
    let r = place.statement("out/release-1/release.json");
    for octave in -3..=10 {
        let matches = by_lattice(&values, r.mechanism.grid * 2_f64.powi(octave));
        assert!(matches.is_empty(), "{octave}: {matches:?}");
    }
    assert_eq!((r.eta.max, r.eta.target.unwrap().eta), (Some(0.5), 0.5));
}

/// A published text in pieces, numbers apart from what is between them, without the time of its statement.
fn pieces(text: &str, r: &Release) -> Vec<String> {
    let inside = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // Powers of ten as pages write them: `8.32×10⁻⁶`.
    let lowered =
        |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|s| s == c).and_then(|d| char::from_digit(d as u32, 10));
    // The digest of a page follows from what else is on it.
    let digest = "<meta name=\"leakscope-digest\" content=\"";
    let text = match text.split_once(digest).and_then(|(a, b)| Some((a, b.split_once('"')?.1))) {
        Some((before, after)) => format!("{before}{after}"),
        None => text.to_owned(),
    };
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

/// A target with bounds is a number: that two values are all that it has would show, and that one record has a third.
#[test]
fn a_target_with_bounds_of_which_one_record_has_a_third_value_publishes_the_same_facts() {
    let place = Place::new();
    let people = People::draw(5, 60);
    let publish = |which: &str, third: bool| {
        let mut table = people.clone();
        table.outcome.iter_mut().enumerate().for_each(|(i, y)| *y = 2.0 + (i % 2) as f64);
        table.outcome[7] = if third { 2.5 } else { 3.0 };
        place.write(&format!("{which}.csv"), &table.csv(false));
        place.release(&format!("{which}.csv --target y --l2 0.1 --sigma 1 --bounds y=-10..10 --out {which}"));
        let mut statement = place.statement(&format!("{which}/release-1/release.json"));
        statement.created.clear();
        for precision in statement.precision.values_mut() {
            (precision.low, precision.high, precision.p_value) = (0.0, 0.0, 0.0);
        }
        statement.coefficients.values_mut().for_each(|c| *c = 0.0);
        statement
    };
    assert_eq!(publish("two", false), publish("three", true));
}
