//! What a person meets before any work is done: the first words, grouped help, completions, manual pages, a
//! configuration file, `--open`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Folder;

const TABLE: &str = "x,y\n1,2\n2,3.9\n3,6.2\n4,7.8\n5,10.1\n";

/// Nothing asked for: three things to do first, and no failure.
#[test]
fn alone_it_says_what_to_do_first() {
    let run = Folder::new().run("").expect(0);
    assert!(run.stdout.contains("Three things to do first") && run.stdout.contains("leakscope demo --open"));
    assert!(run.stdout.lines().count() < 15 && run.stderr.is_empty());
}

/// Every command that does something.
const COMMANDS: &[&str] = &[
    "audit",
    "balance",
    "attack",
    "release",
    "withdraw",
    "account",
    "bound",
    "calibrate",
    "plan",
    "run",
    "merge",
    "worker",
    "compare",
    "demo",
    "reproduce",
    "schema",
    "data list",
    "data get",
    "net train",
    "net audit",
    "net attack",
    "net demo",
    "text train",
    "text audit",
    "text canary",
    "devices",
    "completions",
    "man",
];

/// Lines of a screen.
const SCREEN: usize = 50;

/// No heading of a command holds more than a screen, in short and in full, and every command has an example that starts with its
/// name; the list of commands is whole.
#[test]
fn helps_have_headings_of_one_screen_and_examples() {
    let folder = Folder::new();
    for (command, how) in COMMANDS.iter().flat_map(|c| [(c, "-h"), (c, "--help")]) {
        let text = folder.run(&format!("{command} {how}")).expect(0).stdout;
        let mut sizes: Vec<(String, usize)> = vec![];
        for line in text.lines() {
            match line.strip_suffix(':') {
                Some(heading) if !line.starts_with(' ') => sizes.push((heading.to_owned(), 0)),
                _ => sizes.iter_mut().rev().take(1).for_each(|(_, n)| *n += 1),
            }
        }
        for (heading, lines) in &sizes {
            assert!(*lines <= SCREEN, "{command} {how}, {heading}: {lines} lines");
        }
        if text.lines().count() > SCREEN {
            assert!(sizes.len() >= 4, "{command} {how}: {sizes:?}");
            assert!(sizes.iter().any(|(heading, _)| heading == "Results"), "{command} {how}: {sizes:?}");
        }
        let examples =
            text.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command} {how}: no example")).1;
        assert!(examples.contains(&format!("  leakscope {command}")), "{command}: {examples}");
    }
    for parent in ["", "net ", "text ", "data "] {
        let text = folder.run(&format!("{parent}--help")).expect(0).stdout;
        let list = text.split_once("\nCommands:\n").unwrap().1.split_once("\n\n").unwrap().0;
        for name in list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   ")) {
            let name = format!("{parent}{}", name.split_whitespace().next().unwrap());
            let has = |c: &&str| **c == name || c.starts_with(&format!("{name} "));
            assert!(name.ends_with("help") || COMMANDS.iter().any(has), "{name} is not tested");
        }
    }
}

#[test]
fn shells_and_readers_are_served() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(&format!("completions {shell}")).expect(0).stdout;
        assert!(script.contains("target-eta"), "{shell}");
    }
    folder.run("completions tcsh").expect(2);
    assert!(folder.run("man").expect(0).stdout.contains(".TH leakscope"));
    folder.run("man --out man").expect(0);
    for name in ["leakscope", "leakscope-audit", "leakscope-net-train"] {
        let page = folder.read(&format!("man/{name}.1"));
        assert!(page.contains(".TH ") && (name == "leakscope" || page.contains("sigma")), "{name}");
    }
}

#[test]
fn options_come_from_a_file_and_the_command_line_wins() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("leakscope.toml", "[audit]\ntarget = \"y\"\nsigma = 0.5\nl2 = 0.1\njson = true\n");
    let sigma = |words: &str| folder.run(words).expect(0).json()["sigma"].as_f64().unwrap();
    assert_eq!(sigma("audit t.csv --config leakscope.toml"), 0.5);
    assert_eq!(sigma("audit t.csv --config leakscope.toml --sigma 2"), 2.0);
    // What excludes an option of the file wins over it too.
    assert_ne!(sigma("audit t.csv --config leakscope.toml --target-eta 0.01"), 0.5);
    for (text, complaint) in [
        ("[audit]\nsigmma = 1\n", "did you mean `sigma`?"),
        ("[audti]\nsigma = 1\n", "did you mean `audit`?"),
        ("[audit]\nsigma = \"much\"\n", "much"),
        ("sigma = 1\n", "no option `sigma`"),
    ] {
        folder.write("bad.toml", text);
        let run = folder.run("audit t.csv --target y --config bad.toml --out out").expect(2);
        assert!(run.stderr.contains(complaint), "{}", run.stderr);
        assert!(!folder.path("out").exists());
    }
    folder.run("audit t.csv --target y --config none.toml").expect(2);
}

/// The page that was written is handed to the browser; where there is none, nothing is lost.
#[cfg(unix)]
#[test]
fn the_page_is_opened() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("browser.sh", "#!/bin/sh\necho \"$1\" > opened.tmp && mv opened.tmp opened\n");
    let browser = folder.path("browser.sh");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |line: &str, browser: &std::path::Path| {
        let output = folder.command(line.split_whitespace()).env("BROWSER", browser).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let audit = "audit t.csv --target y --sigma 1 --open";
    assert_eq!(run(&format!("{audit} --out out"), &browser).0, Some(0));
    for _ in 0..400 {
        if folder.path("opened").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(folder.read("opened").trim(), "out/report.html");
    // Several results at once: the page that lists them.
    std::fs::remove_file(folder.path("opened")).unwrap();
    assert_eq!(run("reproduce guo --synthetic --trials 1 -q --open --out guo", &browser).0, Some(0));
    for _ in 0..400 {
        if folder.path("opened").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(folder.read("opened").trim(), "guo/index.html");
    let (code, words) = run(&format!("{audit} --out out"), std::path::Path::new("no-such-browser"));
    assert!(code == Some(0) && words.contains("open it in a browser"), "{words}");
    for (line, complaint) in [(audit, "--out"), ("completions bash --open", "leaves no page")] {
        let (code, words) = run(line, &browser);
        assert!(code == Some(2) && words.contains(complaint), "{words}");
    }
}

/// A folder that was made for results that never came is not left behind; one that was there stays.
#[test]
fn no_empty_folder_stays() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    for out in ["new", "a/b/c"] {
        folder.run(&format!("audit none.csv --target y --out {out}")).expect(2);
        folder.run(&format!("audit t.csv --target z --out {out}")).expect(2);
    }
    assert!(!folder.path("new").exists() && !folder.path("a").exists());
    std::fs::create_dir(folder.path("mine")).unwrap();
    folder.run("audit none.csv --target y --out mine").expect(2);
    assert!(folder.path("mine").exists());
}

/// What an option was called before every command had one name for it still works, and is shown nowhere.
#[test]
fn options_have_one_name_and_answer_to_their_old_ones() {
    let folder = Folder::new();
    folder.write("t.csv", TABLE);
    folder.write("t.txt", "one text\nand another\n");
    let gpt2 = common::root().join("testdata/text/gpt2").display().to_string();
    let text = "text train t.txt --batch 1 --steps 1 --layers last --seed 1 -q --out";
    let canary = "text canary --prompt P --layers last --steps 1 --trials 0 -q";
    for (command, now, before) in [
        ("calibrate --data t.csv --target y --l2 1", "--target-eta 1", "--eta 1"),
        ("calibrate --data t.csv --target y --l2 1", "--target-sd x=1", "--sd x=1"),
        ("audit t.csv --target y --l2 1 -q --sigma 9", "--fail-above max=1e9", "--fail-above eta=1e9"),
        ("attack t.csv --target y --l2 1 --secret x --trials 2 --seed 1 -q", "--sigmas 1,2", "--sigma 1,2"),
        (&format!("{canary} --model {gpt2}"), "--secret-pattern 4# --sigmas 1", "--pattern 4# --sigma 1"),
        (&format!("{text} run --model {gpt2}"), "--test t.txt", "--holdout t.txt"),
    ] {
        folder.run(&format!("{command} {now}")).expect(0);
        folder.run(&format!("{command} {before}")).expect(0);
        let name = command.split_whitespace().take(if command.starts_with("text") { 2 } else { 1 });
        let help = folder.run(&format!("{} --help", name.collect::<Vec<_>>().join(" "))).expect(0).stdout;
        for option in before.split_whitespace().filter(|w| w.starts_with("--") && !now.contains(*w)) {
            assert!(!help.contains(&format!("  {option} <")), "{command}: {option} is shown");
        }
    }
}

/// What a machine has to compute with is a document with a schema like the others.
#[test]
fn devices_are_a_document() {
    let folder = Folder::new();
    let answer = folder.run("devices --json").expect(0).json();
    assert_eq!(answer["schema"], "leakscope.devices/1");
    assert!(answer["cpu"]["threads"].as_u64().unwrap() > 0);
    assert!(answer["gpus"].is_array());
}

/// A page's text as it reads, without markup and in one line.
fn as_text(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text += part.split_once('>').map_or(part, |p| p.1);
    }
    for (code, sign) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(code, sign);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Headline numbers of the terminal and of the page are the same digits: the whole verdict, sentence by sentence, and the tiles that
/// both show.
#[test]
fn terminal_and_page_show_the_same_digits() {
    let folder = Folder::new();
    folder.run("demo --rows 300 --seed 3 --out demo").expect(0);
    let of = "demo/patients.csv --target dose --id patient --l2 0.01 --seed 4";
    let verdict = |page: &str| -> Vec<String> {
        let section =
            page.split_once("<section class=\"verdict").unwrap().1.split_once("</section>").unwrap().0;
        let section = section.split_once("<details").map_or(section, |s| s.0);
        section.split("<p").skip(1).map(|p| as_text(&format!("<p{p}"))).collect()
    };
    let numbers = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !(c.is_ascii_digit() || ".,%×".contains(c)));
        parts
            .map(|n| n.trim_matches(['.', ',']).to_owned())
            .filter(|n| n.contains(|c: char| c.is_ascii_digit()))
            .collect()
    };
    for (line, page) in [
        (format!("audit {of} --group race --holdout 0.2 --sigma 30 --out audit"), "audit/report.html"),
        (format!("bound --data {of} --secret vkorc1 --sigma 0.5 --out bound"), "bound/report.html"),
        (format!("attack {of} --secret vkorc1 --trials 2 --sigmas 0.5 --out attack"), "attack/report.html"),
        (format!("balance {of} --iterations 3 --out balance"), "balance/report.html"),
        (
            "account --sigma 2 --rate 0.1 --steps 10 --delta 1e-5 --adjacency add-remove --out account"
                .to_owned(),
            "account/report.html",
        ),
    ] {
        let run = folder.run(&line).expect(0);
        let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let page = folder.read(page);
        for sentence in verdict(&page) {
            for number in numbers(&sentence) {
                assert!(
                    numbers(&text).contains(&number),
                    "{line}: {number} of “{sentence}” is not in {text}"
                );
            }
        }
        // Iterations of a balancing: every number of the terminal's line is in the row of the page.
        if line.starts_with("balance") {
            let table =
                page.split_once("aria-label=\"Iterations\"").unwrap().1.split_once("</table>").unwrap().0;
            let rows: Vec<Vec<String>> = table
                .split("<tr")
                .skip(2)
                .map(|r| numbers(&as_text(&format!("<tr{r}").replace("</t", " </t"))))
                .collect();
            let lines: Vec<Vec<String>> =
                run.stdout.lines().filter(|l| l.contains("  mean η ")).map(numbers).collect();
            assert!(lines.len() == 4 && rows.len() == 4, "{lines:?} {rows:?}");
            for (line, row) in lines.iter().zip(&rows) {
                assert!(line.len() >= 6 && line.iter().all(|n| row.contains(n)), "{line:?} {row:?}");
            }
        }
    }
}
