//! What a page says and advises: that more noise would do, that none does, that it was not settled; and the same on the terminal.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use leakscope_core::random::Seeded;
use std::fmt::Write;

/// Three kinds of flower, told apart nearly perfectly.
fn flowers(folder: &Folder) {
    let mut random = Seeded::new(3);
    let mut text = String::from("length,width,kind\n");
    for i in 0..90 {
        let (z, kind) = (random.normals(2), i % 3);
        let at = [1.4, 4.3, 5.6][kind];
        writeln!(text, "{:.1},{:.1},{}", at + 0.3 * z[0], 0.4 * at + 0.2 * z[1], ["a", "b", "c"][kind])
            .unwrap();
    }
    folder.write("flowers.csv", text);
}

/// Incomes and an illness; one income is far out.
fn outlier(folder: &Folder) {
    let mut random = Seeded::new(5);
    let mut text = String::from("income,age,ill\n");
    for i in 0..200 {
        let z = random.normals(3);
        let income = if i == 0 { 5e5 } else { 50.0 + 10.0 * z[0] };
        writeln!(
            text,
            "{income:.2},{:.0},{}",
            50.0 + 12.0 * z[1],
            if z[0] + z[2] > 0.0 { "yes" } else { "no" }
        )
        .unwrap();
    }
    folder.write("outlier.csv", text);
}

/// Cities of which C has just as many records as a listed level needs.
fn cities(folder: &Folder, of_c: usize) {
    let mut random = Seeded::new(7);
    let mut text = String::from("city,age,y\n");
    for i in 0..200 {
        let z = random.normals(2);
        let city = if i < of_c { "C" } else { ["A", "B"][i % 2] };
        writeln!(text, "{city},{:.0},{:.3}", 50.0 + 12.0 * z[0], z[1]).unwrap();
    }
    folder.write("cities.csv", text);
}

/// The text of a run with every break of a line as a blank.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a page, without tags.
fn words(html: &str) -> String {
    let body = html.split_once("<body").unwrap().1;
    let mut out = String::new();
    let mut inside = true;
    for c in body.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                out.push(' ');
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    flat(&out)
}

fn colour(html: &str) -> &str {
    html.split_once("<section class=\"verdict ").unwrap().1.split_once('"').unwrap().0
}

/// The model with any value in place is known: however small σ is, so is the noise that hides it.
#[test]
fn too_little_noise_is_told_from_what_no_noise_hides() {
    let folder = Folder::new();
    flowers(&folder);
    outlier(&folder);
    for line in [
        "flowers.csv --target kind --model softmax --l2 0.01 --sigma 0.001",
        "outlier.csv --target ill --model logistic --l2 1e-6 --sigma 0.1",
    ] {
        let text = flat(&folder.run(&format!("audit {line}")).expect(0).stdout);
        assert!(
            text.contains("NOT PROTECTED Somebody") && text.contains("times as much), would bring that to"),
            "{text}"
        );
        for wrong in ["read off", "beyond counting", "No noise of any size", "not settled"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
    }
    // The same with the advised noise is calm.
    let line = "audit flowers.csv --target kind --model softmax --l2 0.01 --sigma";
    let text = flat(&folder.run(&format!("{line} 0.001")).expect(0).stdout);
    let sigma = text.split_once("σ = ").unwrap().1;
    let sigma = sigma.rsplit_once("σ = ").map_or(sigma, |s| s.1).split_once(',').unwrap().0.to_owned();
    let then = flat(&folder.run(&format!("{line} {sigma}")).expect(0).stdout);
    assert!(then.contains("PROTECTED AT THIS NOISE"), "{sigma}: {then}");
}

/// What the budget left open is said to be open, is amber, and is said in the same words every time.
#[test]
fn what_the_budget_leaves_open_is_not_settled_and_never_read_off() {
    let folder = Folder::new();
    flowers(&folder);
    let line =
        "audit flowers.csv --target kind --model softmax --l2 0.0001 --sigma 300 --tell-budget 0.1 --out out";
    let run = folder.run(line).expect(0);
    let text = flat(&run.stdout);
    assert!(text.contains("NOT SHOWN TO BE PROTECTED"), "{text}");
    assert!(text.contains("was not settled within the budget") && text.contains("--tell-budget"), "{text}");
    assert!(!text.contains("read off"), "{text}");
    assert_eq!(run.stdout, folder.run(line).expect(0).stdout);
    let page = folder.read("out/report.html");
    assert_eq!(colour(&page), "care");
    assert!(
        words(&page).contains("values that were not settled") && words(&page).contains("or more"),
        "{}",
        words(&page)
    );
    // More work settles it.
    let all = flat(&folder.run(&line.replace("--tell-budget 0.1", "--tell-budget all")).expect(0).stdout);
    assert!(!all.contains("not settled"), "{all}");
    // A release of the same is not passed on, and says why.
    let release =
        "release flowers.csv --target kind --model softmax --l2 0.0001 --sigma 300 --tell-budget 0.1 --out r";
    let text = folder.run(release).expect(1).stdout;
    assert!(text.contains("not settled within the budget") && !text.contains("read off: "), "{text}");
    assert_eq!(colour(&folder.read("r/private/release-1.html")), "bad");
}

/// Where one record decides what is listed, the owner reads which column and level, and what helps.
#[test]
fn what_no_noise_hides_is_named_with_its_remedy() {
    let folder = Folder::new();
    cities(&folder, 10);
    let text = folder.run("release cities.csv --target y --sigma 8 --out levels").expect(1).stdout;
    for right in [
        "Released with something that no noise hides",
        "city C or",
        "No noise of any size hides that",
        "hangs on one record with `C`",
        "--levels",
        "--schema",
        "--min-level-count",
    ] {
        assert!(text.contains(right), "{right}: {text}");
    }
    assert!(!text.contains("several times the noise"), "{text}");
    // With the list given, the same noise does.
    folder.write("levels.json", r#"{"city": ["A", "B", "C", "D"]}"#);
    folder.run("release cities.csv --target y --l2 0.1 --sigma 8 --levels levels.json --bounds age=0..128 --out given").expect(0);
    outlier(&folder);
    let text = folder
        .run("release outlier.csv --target ill --model logistic --l2 0.01 --sigma 8 --out units")
        .expect(1)
        .stdout;
    assert!(
        text.contains("The unit of income was read off the data") && text.contains("in record 1"),
        "{text}"
    );
    assert!(text.contains("--bounds"), "{text}");
    // The page is for everybody: nothing of what was found, and nothing of why.
    let page = words(&folder.read("units/release-1/report.html"));
    assert!(page.contains("stays with its owner") && !page.contains("too little noise"), "{page}");
    assert!(!page.contains("record 1 it would") && !page.contains("no noise hides"), "{page}");
}

/// A level that is public and that no record has is no contradiction; a value that is not listed is.
#[test]
fn a_public_list_may_hold_a_level_that_no_record_has() {
    let folder = Folder::new();
    cities(&folder, 40);
    folder.write("levels.json", r#"{"city": ["A", "AA", "B", "C"]}"#);
    let line = "audit cities.csv --target y --l2 0.1 --sigma 8 --levels levels.json --json";
    let audit = folder.run(line).expect(0).json();
    let names = audit["model"]["coefficients"].as_object().unwrap();
    assert!(names.keys().any(|k| k == "city=AA"), "{names:?}");
    folder.write("levels.json", r#"{"city": ["A", "C"]}"#);
    let refused = folder.run(line).expect(2).stderr;
    assert!(refused.contains("`city` is `B`") && refused.contains("none of its listed levels"), "{refused}");
    let told = folder.run("audit cities.csv --target y --sigma 8 --tell city=A,E").expect(2).stderr;
    assert!(told.contains("has no level `E`"), "{told}");
}

/// Page and terminal have one colour, also where earlier releases of the same data make the difference.
#[test]
fn terminal_and_page_agree_after_a_second_release() {
    let folder = Folder::new();
    cities(&folder, 60);
    let line =
        "release cities.csv --target y --l2 0.1 --bounds age=0..128 --levels levels.json --out out --sigma";
    folder.write("levels.json", r#"{"city": ["A", "B", "C"]}"#);
    let mut seen = std::collections::BTreeSet::new();
    for (k, sigma) in ["8", "6", "4", "0.02"].iter().enumerate() {
        let run = folder.run(&format!("{line} {sigma}")).expect_released();
        let page = folder.read(&format!("out/private/release-{}.html", k + 1));
        let calm = match colour(&page) {
            "good" => "Released with noise that protects\n",
            "care" => "Released with noise\n",
            _ => "Released with too little noise\n",
        };
        assert!(run.stdout.contains(calm), "{sigma} {}: {}", colour(&page), run.stdout);
        assert_eq!(run.code == 1, colour(&page) == "bad");
        seen.insert(colour(&page).to_owned());
    }
    assert!(seen.contains("bad") && seen.len() > 1, "{seen:?}");
}

/// Noise that was solved for is among what decides; noise that fell back to isotropic is not called shaped.
#[test]
fn solved_noise_is_a_line_of_what_decides_and_isotropic_noise_is_called_so() {
    let folder = Folder::new();
    cities(&folder, 60);
    folder
        .run("release cities.csv --target y --l2 0.1 --target-eta 0.05 --noise-shape shaped --out out")
        .expect_released();
    let page = words(&folder.read("out/release-1/report.html"));
    assert!(page.contains("noise whose amount was solved for on the data"), "{page}");
    assert!(
        page.contains("It is isotropic") && page.contains("Gaussian noise of standard deviation"),
        "{page}"
    );
    assert!(
        !page.contains("with a covariance that was made") && !page.contains("covariance Σ = FFᵀ"),
        "{page}"
    );
    folder.run("audit cities.csv --target y --l2 0.1 --target-eta 0.05 --out audit").expect(0);
    let page = words(&folder.read("audit/report.html"));
    assert!(page.contains("noise whose amount was solved for on the data"), "{page}");
}

/// Options read as the command line has them, on pages, on the terminal and in warnings; documents have them in back ticks.
#[test]
fn options_are_spelled_as_the_command_line_has_them() {
    let folder = Folder::new();
    let mut text = String::from("Patient No,when,patient_no_yes,patient_no_no,y\n");
    for i in 0..60 {
        let date = if i % 2 == 0 { "31/12/2001" } else { "12/31/2001" };
        writeln!(text, "{},{date},{},{},{}", 100 + 7 * i % 90, i % 2, 1 - i % 2, (i * i) % 17).unwrap();
    }
    folder.write("t.csv", text);
    let run = folder.run("audit t.csv --target y --l2 0.1 --tell-budget 0 --out out").expect(0);
    let (page, json) = (folder.read("out/report.html"), folder.read("out/audit.json"));
    // On the page names are set as code, without back ticks.
    let as_named = |text: &str, name: &str, rest: &str| {
        text.contains(&format!("`{name}` {rest}")) || text.contains(&format!(" {name} {rest}"))
    };
    for text in [words(&page), flat(&run.stdout)] {
        assert!(!text.contains('⟨') && !text.contains("`id`") && !text.contains("`tell_budget`"), "{text}");
        assert!(text.contains("--id") && text.contains("--drop"), "{text}");
        // Names of identifiers and dates in several orders are remarked on; answers with "no" are not.
        assert!(as_named(&text, "Patient No", "is named like an identifier"), "{text}");
        assert!(
            text.contains("differs from row to row") && !as_named(&text, "patient_no_no", "is named"),
            "{text}"
        );
    }
    assert!(words(&page).contains("--tell-budget"));
    assert!(json.contains("`drop`") && !json.contains('⟨') && !json.contains("--drop"));
}

/// No number has hundreds of digits anywhere.
#[test]
fn tiny_and_huge_numbers_are_short() {
    let folder = Folder::new();
    let mut text = String::from("tiny,huge,y\n");
    let mut random = Seeded::new(9);
    for _ in 0..60 {
        let z = random.normals(3);
        writeln!(text, "{:e},{:e},{:.3}", z[0] * 1e-130, z[1] * 1e120, z[2]).unwrap();
    }
    folder.write("t.csv", text);
    let zeros = "0".repeat(25);
    for line in [
        "audit t.csv --target y --l2 0.1 --sigma 1 --out audit",
        "audit t.csv --target y --l2 1e-300 --sigma 1",
        "release t.csv --target y --l2 0.1 --sigma 8 --out out",
        "audit t.csv --target y --sigma -1e-300",
        "audit t.csv --target y --holdout 1e-300",
        "audit t.csv --target y --bounds tiny=1e-300..2e-300",
        "account --sigma 1 --rate 0.1 --steps 10 --delta -1e-300",
        "calibrate --epsilon 1e-300 --delta 1e-5 --rate 0.1 --steps 10 --adjacency add-remove",
    ] {
        let run = folder.run(line);
        let both = format!("{}{}", run.stdout, run.stderr);
        assert!(!both.contains(&zeros), "{line}: {both}");
    }
    for page in ["audit/report.html", "out/release-1/report.html"] {
        let text = words(&folder.read(page));
        assert!(!text.contains(&zeros), "{page}: {text}");
    }
}

/// A release that never left the house is withdrawn on record, and gives its share of the budget back.
#[test]
fn a_release_is_withdrawn_and_the_budget_is_there_again() {
    let folder = Folder::new();
    cities(&folder, 60);
    let line = "release cities.csv --target y --l2 0.1 --bounds age=0..128 --min-level-count 5 --sigma 1 --budget-eta";
    folder.run(&format!("{line} 1 --out probe --json")).expect_released();
    let eta = folder.json("probe/private/release-1.json")["eta"]["max"].as_f64().unwrap();
    let budget = 1.2 * eta;
    folder.run(&format!("{line} {budget} --out out")).expect_released();
    let refused = folder.run(&format!("{line} {budget} --out out")).expect(1);
    assert!(refused.stderr.contains("refused: "), "{}", refused.stderr);
    let words = ["withdraw", "out", "1", "--reason", "never sent"];
    let run = folder.run_words(words).expect(0);
    assert!(
        run.stdout.contains("Withdrew release-1") && run.stdout.contains("private/withdrawn-1"),
        "{}",
        run.stdout
    );
    assert!(
        !folder.path("out/release-1").exists() && folder.path("out/private/withdrawn-1/model.json").exists()
    );
    folder.run(&format!("{line} {budget} --out out")).expect_released();
    assert!(folder.path("out/release-2/model.json").exists());
    assert!(folder.read("out/private/ledger.json").contains("never sent"));
    let again = folder.run_words(words).expect(2).stderr;
    assert!(again.contains("withdrawn before"), "{again}");
    let elsewhere = folder.run("withdraw nowhere 1 --reason x").expect(2).stderr;
    assert!(elsewhere.contains("there is no ledger"), "{elsewhere}");
}

/// What a release cannot do it does not advise.
#[test]
fn missing_values_are_advised_on_by_what_can_be_done() {
    let folder = Folder::new();
    folder.write("t.csv", "a,b,y\n1,2,3\n,2,4\n3,1,5\n4,2,2\n");
    let text = folder.run("release t.csv --target y --sigma 1 --out out").expect(2).stderr;
    assert!(text.contains("--missing drop"), "{text}");
    assert!(text.contains("where nothing is released also --missing mean"), "{text}");
}

/// After a release that told too much, a second one names it, and no σ; what its advice says ends calm.
#[test]
fn a_release_that_told_too_much_is_named_by_the_next() {
    let folder = Folder::new();
    cities(&folder, 60);
    folder.write("levels.json", r#"{"city": ["A", "B", "C"]}"#);
    let line =
        "release cities.csv --target y --l2 0.1 --bounds age=0..128 --levels levels.json --out out --sigma";
    folder.run(&format!("{line} 0.02")).expect(1);
    let text = flat(&folder.run(&format!("{line} 8")).expect(1).stdout);
    assert!(
        text.contains("No noise on this one holds the limit: release-1 told too much before it"),
        "{text}"
    );
    assert!(!text.contains("would have kept"), "{text}");
    for k in ["1", "2"] {
        folder.command(["withdraw", "out", k, "--reason", "kept on this disk"]).output().unwrap();
    }
    let text = folder.run(&format!("{line} 8")).expect(0).stdout;
    assert!(text.contains("Released with noise that protects"), "{text}");
    // An argument that is wrong is called by its name.
    let wrong = folder.command(["withdraw", "out", "9", "--reason", "x"]).output().unwrap();
    let wrong = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.contains("N = 9") && wrong.contains("release-3"), "{wrong}");
}

/// Targets that a page advises end within the limit, with the scale of the noise on its public grid.
#[test]
fn stricter_targets_end_within_the_limit() {
    let folder = Folder::new();
    cities(&folder, 60);
    folder.write("levels.json", r#"{"city": ["A", "B", "C"]}"#);
    let line = "release cities.csv --target y --l2 0.1 --bounds age=0..128 --levels levels.json";
    let starts = [
        "--target-sd y=0.9",
        "--target-sd y=1.7",
        "--target-sd age=11",
        "--target-sd age=30 --target-sd y=0.6",
    ];
    for (k, start) in starts.iter().enumerate() {
        let run = folder.run(&format!("{line} {start} --out a{k}")).expect_released();
        let text = flat(&run.stdout);
        assert!(
            text.contains("times as strict bring that to 60% or less") && text.contains("leakscope withdraw"),
            "{text}"
        );
        let with = text
            .split("release again with ")
            .nth(1)
            .unwrap()
            .split(". The ledger")
            .next()
            .unwrap()
            .to_owned();
        assert!(with.starts_with("--target-sd "), "{with}");
        let again = flat(&folder.run(&format!("{line} {with} --out b{k}")).expect(0).stdout);
        assert!(
            !again.contains("times as strict") && again.contains("at most 60%"),
            "{start} → {with}: {again}"
        );
    }
}

/// Input that is refused leaves nothing behind, and says what to type.
#[test]
fn what_is_refused_leaves_nothing() {
    let folder = Folder::new();
    cities(&folder, 60);
    folder.run("release cities.csv --target nope --sigma 8 --out out").expect(2);
    assert!(!folder.path("out").exists());
    let text = folder.run("audit cities.csv --target y --sigma much").expect(2).stderr;
    assert!(text.contains("--sigma") && text.contains("expected a number"), "{text}");
    let text = folder.run("reproduce").expect(2).stderr;
    assert!(text.contains("reproduce --list"), "{text}");
    let text = folder.run("bound --mechanism gaussian --prior 0.5,0.6 --sigma 1").expect(2).stderr;
    assert!(text.contains("--prior"), "{text}");
    folder.write("draft.json", folder.run("schema cities.csv").expect(0).stdout);
    let text =
        folder.run("release cities.csv --target y --sigma 8 --schema draft.json --out out").expect(2).stderr;
    assert!(text.contains("--schema") && text.contains("draft"), "{text}");
    let text = folder.run("audit cities.csv --target y --sigma 8 --schema draft.json").expect(0);
    assert!(flat(&text.stdout).contains("The schema is a draft"), "{}", text.stdout);
    folder.write("holes.csv", "a,hollow,y\n1,,2\n2,,\n3,,1\n4,,3\n5,,4\n");
    let text = folder.run("audit holes.csv --target y --sigma 1").expect(2).stderr;
    assert!(text.contains("--drop hollow") && text.contains("Nothing is filled in for `y`"), "{text}");
    assert!(!text.contains("--missing mean"), "{text}");
}

/// A page that is red says so on the terminal.
#[test]
fn every_command_on_a_table_ends_with_its_verdict() {
    let folder = Folder::new();
    cities(&folder, 60);
    for (line, headline) in [
        ("balance cities.csv --target y --l2 0.1 --sigma 0.001 --iterations 2", "not protected"),
        (
            "attack cities.csv --target y --l2 0.1 --secret city --sigmas 0.0001 --trials 3 --seed 1",
            "Attacks succeed",
        ),
        (
            "bound --mechanism gaussian --candidates 2 --sigma 0.01",
            "Not protected: an attacker may gain much",
        ),
        ("account --sigma 0.1 --delta 1e-5", "Easy to say who took part"),
    ] {
        let text = folder.run(line).expect(0).stdout;
        assert!(text.lines().next().is_some_and(|first| first.contains(headline)), "{line}: {text}");
        // An attack's table is long: the verdict stands at its end too.
        let last = text.lines().last().unwrap_or_default();
        assert!(!line.starts_with("attack") || last == format!("Verdict: {headline} (red)."), "{text}");
    }
}
