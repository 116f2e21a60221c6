//! What stays with the owner and what leaves the house, over every command; and a release that is killed at any moment.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;
use leakscope_core::random::Seeded;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

const OWNER: &str = "For the owner of the data only.";

fn patients(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("p.csv", folder.run(&format!("demo --table --rows {rows} --seed 4")).expect(0).stdout);
    folder
}

/// Commands that measure data say on their page that it is not to be published; a release says what may be.
#[test]
fn every_page_says_whose_it_is() {
    let folder = patients(150);
    let table = "p.csv --target dose --id patient --l2 0.1";
    for (line, page, private) in [
        (format!("audit {table} --sigma 1 --out audit"), "audit/report.html", true),
        (format!("balance {table} --iterations 3 --out balance"), "balance/report.html", true),
        (
            format!("attack {table} --secret vkorc1 --trials 2 --sigmas 1 --out attack"),
            "attack/report.html",
            true,
        ),
        (format!("bound --data {table} --secret vkorc1 --sigma 1 --out bound"), "bound/report.html", true),
        (format!("release {table} --sigma 1 --out release"), "release/release-1/report.html", false),
        (
            "account --sigma 2 --rate 0.1 --steps 10 --delta 1e-5 --adjacency add-remove --out account"
                .into(),
            "account/report.html",
            false,
        ),
    ] {
        folder.run(&format!("{line} -q")).expect_released();
        assert_eq!(folder.read(page).contains(OWNER), private, "{line}");
    }
    // What depends on nothing but its arguments is the same on every machine.
    let line = "calibrate --epsilon 1 --delta 1e-5 --rate 0.01 --steps 100 --adjacency add-remove --json";
    let answers: Vec<String> = (0..2).map(|_| folder.run(line).expect(0).stdout).collect();
    assert_eq!(answers[0], answers[1]);
    assert!(!answers[0].contains("p.csv"));
    // A draft of a schema was read off the data, and says so.
    let draft = folder.run("schema p.csv").expect(0);
    let both = format!("{}{}", draft.stdout, draft.stderr);
    assert!(both.contains("\"draft\": true"), "{both}");
}

/// Somebody who knows all records but one compares what a command leaves for every value of the last one. Whatever differs without
/// noise gives that value away: every such file says that it is the owner's, and nobody else can read it.
#[test]
fn what_differs_between_neighbours_is_the_owners() {
    let folder = patients(120);
    let text = folder.read("p.csv");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = lines[0].split(',').position(|c| c == "age").unwrap();
    let mut cells: Vec<String> = lines[8].split(',').map(str::to_owned).collect();
    cells[at] = if cells[at] == "33" { "34".into() } else { "33".into() };
    lines[8] = cells.join(",");
    folder.write("q.csv", lines.join("\n") + "\n");
    let table = "--target dose --id patient --l2 0.1";
    let commands = [
        ("audit", format!("audit DATA {table} --sigma 1 --format csv")),
        ("balance", format!("balance DATA {table} --iterations 3 --format csv")),
        ("attack", format!("attack DATA {table} --secret vkorc1 --trials 2 --sigmas 1 --seed 1")),
        ("bound", format!("bound --data DATA {table} --secret vkorc1 --sigma 1 --seed 1")),
        ("prior", "bound --mechanism gaussian --sigma 1 --data DATA --secret vkorc1 --seed 1".into()),
        ("given", "bound --mechanism gaussian --sigma 1 --candidates 3 --seed 1".into()),
    ];
    for (name, line) in commands {
        let run = |data: &str| {
            let out = format!("{name}-{data}");
            folder.run(&format!("{} --out {out} -q", line.replace("DATA", data))).expect(0);
            let files = folder.files(&out).into_iter();
            files
                .map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes))
                .collect::<BTreeMap<_, _>>()
        };
        let (ours, theirs) = (run("p.csv"), run("q.csv"));
        let page = folder.read(&format!("{name}-p.csv/report.html"));
        let mut differing = 0;
        for (file, bytes) in &ours {
            let (path, other) = (Path::new(file), &theirs[file]);
            // Times and the name of the file tell nothing about records.
            let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("q.csv", "p.csv");
            let json = path.extension().is_some_and(|e| e == "json");
            if plain(bytes) != plain(other) || json {
                let told = name != "given";
                differing += usize::from(plain(bytes) != plain(other));
                assert_eq!(page.contains(OWNER), told, "{name}: {}", path.display());
                if json {
                    let owner = plain(bytes).contains("the owner of the data only");
                    assert_eq!(owner, told, "{name}: {}", path.display());
                }
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let file = folder.path(&format!("{name}-p.csv")).join(path);
                let mode = std::fs::metadata(&file).unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{}", file.display());
            }
        }
        let expected = usize::from(name != "given" && name != "prior");
        assert!(differing >= expected, "{name}: the two tables differ, and so must what is measured");
    }
    // Bounds and levels of a draft follow from extreme records; a release that uses it says so, or is refused.
    for data in ["p.csv", "q.csv"] {
        let draft = folder.run(&format!("schema {data}")).expect(0).stdout;
        folder.write("draft.json", &draft);
        let line =
            format!("release {data} {table} --sigma 1 --schema draft.json --scale bounds --out drafted");
        let refused = folder.run(&line).expect(2).stderr;
        assert!(refused.contains("draft") && refused.contains("read off the data"), "{refused}");
    }
}

/// Files that were made to be published, or depend on nothing but arguments.
fn may_leave(file: &str) -> bool {
    let published = file.contains("release-") && !file.contains("private/");
    published || file.starts_with("account/") || file.starts_with("canary/") || file == "run/network.json"
}

/// A JSON file is what a schema of `docs/schemas` says.
fn is_documented(folder: &Folder, file: &str) {
    let name = file.rsplit('/').next().unwrap();
    match name {
        "encoding.json" => common::schemas::is_a("encoding", &folder.json(file)),
        "network.json" => common::schemas::is_a("network", &folder.json(file)),
        "model.json" if !file.contains("release-") => {
            common::schemas::is_a("balance-model", &folder.json(file));
        }
        _ if name.ends_with(".json") => {
            assert!(folder.json(file)["schema"].is_string(), "{file} does not say what it is");
        }
        _ => {}
    }
}

/// Every file below a folder.
fn below(folder: &Path, name: &str, all: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(name)).unwrap() {
        let entry = entry.unwrap();
        let file = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => below(folder, &file, all),
            false => all.push(file),
        }
    }
}

/// Over every command that leaves files: a document or page says that it is the owner's, or was made to be published; tables and
/// weights lie beside one that does; nothing is readable for anybody else. (Attacks that take arrays alone: `net/attack.rs`.)
#[test]
fn every_file_of_every_command_is_marked_or_was_made_to_be_published() {
    let folder = patients(120);
    let (table, gpt2) = ("--target dose --id patient --l2 0.1", common::root().join("testdata/text/gpt2"));
    let text: Vec<String> = folder.read("p.csv").lines().map(str::to_owned).collect();
    folder.write("train.csv", text[..80].join("\n"));
    folder.write("t.txt", "hello my name is anna\nthe patient was ill\n");
    let model = gpt2.display();
    let net = "--target dose --id patient";
    for line in [
        format!("audit p.csv {table} --sigma 1 --holdout 0.2 --seed 1 --out audit"),
        format!("audit p.csv {table} --sigma 2 --holdout 0.2 --seed 1 --out audit2"),
        format!("balance p.csv {table} --iterations 2 --out balance"),
        format!("attack p.csv {table} --secret vkorc1 --trials 2 --sigmas 1 --out attack"),
        format!("bound --data p.csv {table} --secret vkorc1 --sigma 1 --out bound"),
        format!("release p.csv {table} --sigma 1 --out release"),
        "account --sigma 2 --rate 0.1 --steps 10 --delta 1e-5 --adjacency add-remove --out account".into(),
        "compare audit audit2 --out compare".into(),
        format!("net train --data train.csv {net} --network mlp --steps 3 --batch 10 --lr 0.05 --out run"),
        "net audit --model run --data train.csv --records 3 --sigma 1 --clip 1 --out net-audit".into(),
        "net attack --method inversion --model run --data train.csv --records 2 --iterations 3 --out inversion".into(),
        format!("text audit --model {model} t.txt --no-eta --out text-audit"),
        format!("text canary --model {model} --prompt patient --layers last --steps 1 --sigmas 1 --trials 10 --out canary"),
    ] {
        let run = folder.run(&format!("{line} -q"));
        assert!(run.code == 0 || line.starts_with("release"), "{line}: {}", run.stderr);
        let out = line.rsplit_once(' ').unwrap().1;
        let mut files = vec![];
        below(&folder.path("."), out, &mut files);
        let marked = |f: &str| folder.read(f).contains("he owner of the data only");
        assert!(!files.is_empty(), "{line}");
        for file in &files {
            is_documented(&folder, file);
            match file.rsplit_once('.').unwrap().1 {
                _ if file.contains("private/") => {}
                "json" | "html" => assert!(marked(file) != may_leave(file), "{line}: {file}"),
                // Tables of records; weights, which the page and the run's document are about.
                "parquet" | "safetensors" => {
                    let page = format!("{out}/report.html");
                    assert!(marked(&page) && !may_leave(file), "{line}: {file}");
                }
                other => panic!("{line}: {other} is new: say whose it is"),
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                // The folder of what is private is closed as a whole.
                let closed = match file.split_once("/private/") {
                    Some((before, _)) => format!("{before}/private"),
                    None => file.clone(),
                };
                let mode = std::fs::metadata(folder.path(&closed)).unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{file}");
            }
        }
    }
    common::schemas::is_a("table", &folder.run("schema p.csv").expect(0).json());
    common::schemas::is_a(
        "withdraw",
        &folder.run("withdraw release 1 --reason never-sent --json").expect(0).json(),
    );
    // What is printed as JSON of a table says so too; what is solved from arguments alone does not.
    let owner =
        |line: &str| folder.run(&format!("{line} --json -q")).stdout.contains("he owner of the data only");
    assert!(owner(&format!("calibrate --data p.csv {table} --target-eta 0.5")));
    assert!(owner(&format!("release p.csv {table} --sigma 1 --out release")));
    assert!(!owner("calibrate --epsilon 1 --delta 1e-5 --rate 0.01 --steps 100 --adjacency add-remove"));
}

fn ledger(folder: &Folder) -> Option<Value> {
    let text = std::fs::read_to_string(folder.path("out/private/ledger.json")).ok()?;
    Some(serde_json::from_str(&text).expect("a ledger is there whole or not at all"))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let all = std::fs::read_dir(folder).into_iter().flatten();
    all.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Whatever moment a process dies at, a release is there and charged, or neither, and the next one works.
#[test]
#[cfg(unix)]
fn a_release_that_is_killed_is_there_and_charged_or_neither() {
    let folder = patients(300);
    let words = "release p.csv --target dose --id patient --l2 0.1 --sigma 1 --budget-eta 1e6 --out out -q";
    let clock = Instant::now();
    folder.run(words).expect_released();
    let whole = clock.elapsed().as_secs_f64();
    let mut random = Seeded::new(9);
    for kill in 0..24 {
        let mut child = folder.command(words.split(' ')).spawn().unwrap();
        // More of them towards the end, where files are written.
        let share = 1.1 * (random.bits() as f64 / u64::MAX as f64).sqrt();
        std::thread::sleep(Duration::from_secs_f64(whole * share));
        // SIGKILL.
        let _ = child.kill();
        let _ = child.wait();
        let released: BTreeSet<String> =
            names(&folder.path("out")).into_iter().filter(|n| n.starts_with("release-")).collect();
        for name in &released {
            let files = names(&folder.path("out").join(name));
            assert_eq!(
                files.into_iter().collect::<Vec<_>>(),
                ["model.json", "release.json", "report.html"],
                "{kill}"
            );
            let statement = folder.json(&format!("out/{name}/release.json"));
            let model = folder.json(&format!("out/{name}/model.json"));
            assert_eq!(statement["coefficients"], model["coefficients"], "{kill}: they belong together");
        }
        // Every folder has its line, but for one that the ledger still intends.
        let ledger = ledger(&folder).unwrap();
        let lines = |field: &Value| {
            field
                .as_array()
                .into_iter()
                .flatten()
                .map(|l| l["folder"].as_str().unwrap().to_owned())
                .collect::<BTreeSet<_>>()
        };
        let intended = ledger["intention"]["folder"].as_str().map(str::to_owned);
        let charged = lines(&ledger["releases"]);
        assert!(charged.is_subset(&released), "{kill}: {charged:?} {released:?}");
        let uncharged: Vec<&String> = released.difference(&charged).collect();
        assert!(
            uncharged.iter().all(|name| Some(*name) == intended.as_ref()),
            "{kill}: {uncharged:?} {intended:?}"
        );
    }
    // No lock and nothing half-written is left, and all is added up.
    let last = folder.run(&format!("{words} --json")).expect_released().json();
    let all = names(&folder.path("out"));
    let released = all.iter().filter(|n| n.starts_with("release-")).count();
    assert!(all.iter().all(|n| n.starts_with("release-") || n == "private"), "{all:?}");
    assert_eq!(last["composed"]["releases"].as_u64().unwrap() as usize, released);
    let private = names(&folder.path("out/private"));
    assert!(private.iter().all(|n| !n.starts_with('.')), "{private:?}");
    let ledger = ledger(&folder).unwrap();
    assert_eq!(ledger["releases"].as_array().unwrap().len(), released);
    assert!(ledger["intention"].is_null());
}

/// Somebody reads every string and number of the pages that were made to be shared, scripts and their data too, for what could
/// single out a person.
#[test]
fn a_page_to_share_holds_no_id_no_rare_value_and_no_value_of_a_record() {
    let folder = Folder::new();
    let mut table = String::from("who,region,trade,income,height,kind,sick\n");
    let mut secrets: Vec<String> = vec!["Zanzibar".into(), "bell-founder".into(), "wandering".into()];
    for i in 0..240_u32 {
        // Values that nothing else on a page has by chance.
        let (income, height) =
            (20_011.37 + 173.31 * f64::from(i * 7919 % 240), 150.013 + f64::from(i * 37 % 97) * 0.517);
        let region = if i == 17 { "Zanzibar" } else { ["north", "south"][i as usize % 2] };
        let trade = if i == 30 { "bell-founder" } else { ["smith", "miller", "baker"][i as usize % 3] };
        let kind = if i == 44 { "wandering" } else { ["a", "b"][i as usize / 3 % 2] };
        let sick = if (i * 31 + 7) % 5 < 2 { "yes" } else { "no" };
        table += &format!("person-{i:04}x,{region},{trade},{income:.2},{height:.3},{kind},{sick}\n");
        secrets.extend([format!("person-{i:04}x"), format!("{income:.2}"), format!("{height:.3}")]);
    }
    folder.write("t.csv", table);
    let of = "t.csv --target sick --id who --model logistic --l2 0.05 --seed 3";
    folder
        .run(&format!("audit {of} --group region --secret kind --holdout 0.2 --sigma 0.3 --out own -q"))
        .expect(0);
    folder
        .run(&format!(
            "audit {of} --group region --secret kind --holdout 0.2 --sigma 0.3 --redact --out shared -q"
        ))
        .expect(0);
    folder.run(&format!("bound --data {of} --secret trade --sigma 0.3 --redact --out bound -q")).expect(0);
    folder
        .run(&format!("attack {of} --secret trade --trials 2 --sigmas 0.3 --redact --out attack -q"))
        .expect(0);
    let own = folder.read("own/report.html");
    assert!(["person-0018x", "Zanzibar"].iter().all(|s| own.contains(s)), "the test looks at nothing");
    // Exact numbers of single records, as a document has them.
    let audit = folder.json("own/audit.json");
    let mut exact: Vec<f64> = vec![];
    let lists = ["most", "least"].map(|list| audit["records"][list].as_array().unwrap().clone());
    for record in lists.iter().flatten() {
        for measure in ["eta", "dfil", "loss", "gradient_norm"] {
            let x = record[measure].as_f64().unwrap();
            exact.push(x);
        }
    }
    exact.extend(audit["model"]["coefficients"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()));
    // As many digits as nobody else's number has by chance.
    let digits =
        |x: &f64| format!("{:e}", x.abs()).split_once('e').unwrap().0.chars().take(8).collect::<String>();
    let exact: Vec<String> = exact.iter().map(digits).filter(|d| d.len() == 8).collect();
    assert!(exact.len() > 100 && exact.iter().any(|d| own.contains(d)), "the test looks at nothing");
    secrets.extend(exact);
    for page in ["shared/report.html", "bound/report.html", "attack/report.html"] {
        let html = folder.read(page);
        assert!(html.contains("For readers whom the owner of the data trusts."), "{page}");
        for secret in &secrets {
            if let Some(at) = html.find(secret.as_str()) {
                let from = html.floor_char_boundary(at.saturating_sub(120));
                panic!("{page} holds {secret}: …{}", &html[from..html.ceil_char_boundary(at + 60)]);
            }
        }
    }
    // Bars of fewer than ten records, and dots, are not drawn.
    let html = folder.read("shared/report.html");
    for title in html.split("<title>").skip(2) {
        let count = title
            .split_once(" record")
            .and_then(|t| t.0.rsplit([' ', '>']).next()?.replace(',', "").parse::<u64>().ok());
        assert!(count.is_none_or(|c| c >= 10), "{title:.80}");
    }
    assert!(
        !html.contains("class=\"dots") && !html.contains("id=\"most\"") && html.contains("\"store\": null")
    );
    // The verdict is as grave as that of the owner's page.
    let colour =
        |html: &str| html.split_once("class=\"verdict ").unwrap().1.split_once('"').unwrap().0.to_owned();
    assert_eq!(colour(&html), colour(&own));
}
