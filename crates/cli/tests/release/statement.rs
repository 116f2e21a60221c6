//! What a release states: to everybody, to its owner alone, and what it refuses.

use super::support::*;
use leakscope_report::verdict::Colour;
use serde_json::Value;

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
    assert_eq!(private, ["ledger.json", "ledger.key", "ledger.lock", "release-1.html", "release-1.json"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("out/private")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    // Next to no noise is red, and the page says what may leave the house.
    assert_eq!(place.owners_colour("out/release-1"), Colour::Red);
    let own = place.text("out/private/release-1.html");
    assert!(own.contains("class=\"verdict bad\"") && own.contains("For the owner of the data only."));
    let page = place.text("out/release-1/report.html");
    assert!(page.contains("Which files may leave the house") && page.contains("What was read off the data"));
    let message = place.run("release people.csv --target y --l2 0.1 --sigma 1 --out out");
    assert!(String::from_utf8_lossy(&message.stdout).contains("never leaves the house"));
    // A ledger from before lies in the open.
    std::fs::rename(place.path("out/private/ledger.json"), place.path("out/ledger.json")).unwrap();
    let message = place.run("release people.csv --target y --l2 0.1 --sigma 1 --out out");
    assert_eq!(message.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&message.stderr).contains("move ledger.json and ledger.key into"));
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
    let colour = |name: &str| place.owners_colour(name);
    // η this small for the whole record, label and all, is calm where σ was given; one that was solved for on the data tells
    // something of its own.
    place.release(&format!("{line} small --target-eta 0.05"));
    assert_eq!(colour("small/release-1"), Colour::Amber);
    let sigma = 2.0 * place.statement("small/release-1/release.json").mechanism.sigma;
    place.release(&format!("{line} quiet --sigma {sigma}"));
    assert_eq!(colour("quiet/release-1"), Colour::Green);
    let owned = place.release(&format!("{line} read-off --sigma 1"));
    assert_eq!(colour("read-off/release-1"), Colour::Red, "{}", owned["tell"]);
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
    assert_eq!(colour("calm/release-1"), Colour::Green, "{}", calm["tell"]);
    // The second release of the same data is told together with the first; one for which there was no time rests
    // on η and is never green.
    place.release(&format!("{line} calm {bounds} --sigma 1e5"));
    let ledger: Value = serde_json::from_str(&place.text("calm/private/ledger.json")).unwrap();
    assert_eq!(ledger["releases"][1]["told"]["y"]["values"].as_array().unwrap().len(), 2);
    let balanced = place.release(&format!("{line} balanced --sigma 1e5 --balance 2 --tell-budget 0"));
    assert_eq!(balanced["tell"]["label"]["by"], "eta");
    assert_ne!(colour("balanced/release-1"), Colour::Green);
    // A pair that was given is public; one outside the bounds is refused.
    let pair = place.release(&format!("{line} given --sigma 1e5 --tell age=40,60"));
    assert_eq!(pair["tell"]["given"][0], serde_json::json!({"attribute": "age", "from": "40", "to": "60"}));
    // Nearer than records differ: nothing is shown about typical values.
    place.release(&format!("{line} near {bounds} --sigma 1e5 --tell age=40,41"));
    assert_eq!(colour("near/release-1"), Colour::Amber);
    assert!(place.text("near/private/release-1.html").contains("nearer to one another than records differ"));
    let message = place.run(&format!("release {line} given {bounds} --sigma 1 --tell age=40,600"));
    assert_eq!(message.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&message.stderr).contains("by its bounds"));
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
    let levels = "The levels of each of `race`, `home`: those that at least 10 records have";
    assert!(r["read_off"].to_string().contains(levels), "{}", r["read_off"]);
    let r = place.release(&format!("{line} --min-level-count 1 --out kept"));
    assert!(r["coefficients"].to_string().contains("Fresno"));
    // Levels and bounds that were given are no longer read off.
    let mut homes: Vec<String> = people.words.iter().map(|w| w[1].clone()).collect();
    homes.sort();
    homes.dedup();
    let levels = serde_json::json!({ "home": homes, "race": ["asian", "black", "white"] });
    place.write("levels.json", &levels.to_string());
    let public = "--levels levels.json --bounds age=-50..150 --bounds height=0..300 --bounds income=0..1e6 --scale bounds";
    let r = place.release(&format!("{line} {public} --out given"));
    assert!(r["coefficients"].to_string().contains("Fresno"));
    let read = r["read_off"].to_string();
    assert!(!read.contains("levels of") && !read.contains("deviation of"), "{read}");
    assert!(r["given"].to_string().contains("The levels of `race`, `home`."), "{}", r["given"]);
    assert_eq!(r["mechanism"]["units"]["income"]["unit"], 524_288.0);
}

/// Public bounds are the public units also where there is no intercept: nothing is read off the data then.
#[test]
fn bounds_give_the_units_without_an_intercept_too() {
    let place = Place::new();
    let people = People::draw(4, 300);
    let mut other = people.clone();
    // Far enough to double the spread of the column.
    other.numbers[7][0] = 990.0;
    place.write("people.csv", &people.csv(false));
    place.write("other.csv", &other.csv(false));
    let line = "--target y --l2 0.1 --sigma 0.5 --scale none --no-intercept --drop race,home";
    let bounds = "--bounds age=-1000..1000 --bounds height=0..300 --bounds income=0..1e6";
    let released = |file: &str, more: &str, out: &str| {
        place.release(&format!("{file} {line}{more} --out {out}"));
        let r = place.statement(&format!("{out}/release-1/release.json"));
        (r.mechanism.units.clone(), r.read_off.join(" "))
    };
    let (ours, read_off) = released("people.csv", &format!(" {bounds}"), "a");
    let (theirs, _) = released("other.csv", &format!(" {bounds}"), "b");
    assert_eq!(ours, theirs);
    assert_eq!((ours["age"].centre, ours["age"].unit, ours["height"].unit), (0.0, 1024.0, 128.0));
    assert!(!read_off.contains("public unit"), "{read_off}");
    // Without them one record decides, and the statement says what was read.
    let (ours, read_off) = released("people.csv", "", "c");
    assert_ne!(ours, released("other.csv", "", "d").0);
    // Columns share the sentence.
    assert!(read_off.contains("The public unit of each of `age`, `height`, `income`"), "{read_off}");
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
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{line}: {message}");
        assert!(published(&place.path("out")).is_empty(), "{line}");
    }
}

/// A ledger that is gone, or older than the folder, would forget what was released.
#[test]
fn a_ledger_that_does_not_know_a_release_is_refused() {
    let place = Place::new();
    place.write("people.csv", &People::draw(4, 300).csv(false));
    let release = |sigma: &str| {
        place
            .run(&format!("release people.csv --target y --l2 0.1 --tell-budget 0 --sigma {sigma} --out out"))
    };
    release("64");
    let older = place.text("out/private/ledger.json");
    release("64");
    let newest = place.text("out/private/ledger.json");
    std::fs::write(place.path("out/private/ledger.json"), &older).unwrap();
    let refused = release("64");
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("does not know release-2") && message.contains("newest copy"), "{message}");
    assert!(!place.path("out/release-3").exists());
    // Without its first release and its ledger the folder still says that there were some.
    std::fs::remove_file(place.path("out/private/ledger.json")).unwrap();
    std::fs::remove_dir_all(place.path("out/release-1")).unwrap();
    let refused = release("64");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is gone"));
    std::fs::write(place.path("out/private/ledger.json"), &newest).unwrap();
    assert_ne!(release("64").status.code(), Some(2));
    assert!(place.path("out/release-3").exists());
}

/// What an earlier release alone tells stays told.
#[test]
fn an_attribute_that_a_later_release_leaves_out_still_counts() {
    let place = Place::new();
    place.write("people.csv", &People::draw(5, 300).csv(false));
    let colour = |name: &str| place.owners_colour(name);
    let bounds = "--bounds age=0..128 --bounds height=0..256 --bounds income=0..1048576 --scale bounds";
    let line = format!("people.csv --target y --label public --l2 0.1 {bounds}");
    let all_but_age = "--drop height --drop income --drop race --drop home";
    place.release(&format!("{line} {all_but_age} --sigma 0.01 --out out"));
    assert_eq!(colour("out/release-1"), Colour::Red);
    // Alone it would be calm.
    place.release(&format!("{line} --drop age --drop home --sigma 4096 --out alone"));
    assert_eq!(colour("alone/release-1"), Colour::Green);
    place.release(&format!("{line} --drop age --drop home --sigma 4096 --out out"));
    assert_eq!(colour("out/release-2"), Colour::Red);
}
