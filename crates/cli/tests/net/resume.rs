//! `net train --resume`: a run goes on as it was started, or not at all; what is said about its start stays true.

use super::support::*;
use std::fs;
use std::path::Path;

const SAME: [&str; 10] = ["--batch", "12", "--lr", "0.3", "--sigma", "0.8", "--clip", "1", "--seed", "5"];

fn args<'a>(data: &'a Path, net: &'a Path, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["train", "--data", text(data), "--network", text(net), "--out", text(out)];
    [&base[..], more].concat()
}

fn notes(out: &Path) -> String {
    json(&out.join("training.json"))["notes"].to_string()
}

#[test]
fn a_run_keeps_the_weights_it_started_from() {
    let data = folder(36);
    let (dir, net) = (data.path(), network(data.path()));
    let (drawn, pretrained, other) = (dir.join("drawn"), dir.join("given"), dir.join("other"));
    let run = |out: &Path, more: &[&str]| answered(&args(dir, &net, out, &[&SAME[..], more].concat()));
    let message = |out: &Path, more: &[&str]| {
        let before = fs::read(out.join("private/checkpoint.safetensors")).unwrap();
        let message =
            refused(&args(dir, &net, out, &[&SAME[..], &["--steps", "8", "--resume"], more].concat()));
        assert!(
            fs::read(out.join("private/checkpoint.safetensors")).unwrap() == before,
            "{more:?} left something"
        );
        message
    };
    // from random weights: no others come in later, and nothing says they did
    run(&drawn, &["--steps", "4"]);
    let weights = dir.join("weights.safetensors");
    fs::copy(drawn.join("model.safetensors"), &weights).unwrap();
    let from = text(&weights);
    assert!(
        message(&drawn, &["--pretrain", from]).contains("--pretrain: the run started from random weights")
    );
    assert!(!notes(&drawn).contains("given weights"));

    // from given weights, half of them frozen: neither is forgotten
    run(&pretrained, &["--steps", "4", "--pretrain", from, "--freeze-smallest", "0.5"]);
    run(&other, &["--steps", "3", "--pretrain", from]);
    let elsewhere = other.join("model.safetensors");
    for (more, says) in [
        (&[][..], "--pretrain: the run started from given weights: name the same file again"),
        (&["--pretrain", text(&elsewhere), "--freeze-smallest", "0.5"], "started from other weights"),
        (&["--pretrain", from], "--freeze-smallest: none; the run was started with 0.5"),
        (
            &["--pretrain", from, "--freeze-smallest", "0.9"],
            "--freeze-smallest: 0.9; the run was started with 0.5",
        ),
        (
            &["--pretrain", from, "--freeze-smallest", "0.5", "--freeze", "0"],
            "--freeze: the run froze other layers",
        ),
    ] {
        let message = message(&pretrained, more);
        assert!(message.contains(says), "{more:?}: {message}");
    }
    let trained = |out: &Path| json(&out.join("training.json"))["network"]["trained"].as_u64().unwrap();
    let before = trained(&pretrained);
    run(&pretrained, &["--steps", "8", "--resume", "--pretrain", from, "--freeze-smallest", "0.5"]);
    assert!(notes(&pretrained).contains("The run started from given weights"));
    assert_eq!(trained(&pretrained), before);
    assert_eq!(json(&pretrained.join("training.json"))["steps"], 8);
}

#[test]
fn the_setting_that_differs_is_named() {
    let data = folder(36);
    let (dir, net, out) = (data.path(), network(data.path()), data.path().join("run"));
    answered(&args(dir, &net, &out, &[&SAME[..], &["--steps", "2"]].concat()));
    for (changed, to, says) in [
        ("--lr", "0.4", "--lr: 0.4; the run to go on with has 0.3"),
        ("--batch", "6", "--batch: every record drawn with probability 0.16"),
        ("--sigma", "0.9", "--sigma: 0.9; the run to go on with has 0.8"),
        ("--seed", "6", "--seed: 6"),
        ("--clip", "2", "--clip: Hard"),
    ] {
        let mut now = SAME;
        let at = now.iter().position(|a| *a == changed).unwrap();
        now[at + 1] = to;
        let message = refused(&args(dir, &net, &out, &[&now[..], &["--steps", "4", "--resume"]].concat()));
        assert!(message.contains(says), "{changed}: {message}");
    }
    let message =
        refused(&args(dir, &net, &out, &[&SAME[..], &["--steps", "4", "--resume", "--adam"]].concat()));
    assert!(message.contains("--adam: Adam; the run to go on with has SGD"), "{message}");
    let seeded = ["--steps", "4", "--resume", "--not-private-noise-from-seed"];
    let message = refused(&args(dir, &net, &out, &[&SAME[..], &seeded].concat()));
    assert!(message.contains("--not-private-noise-from-seed: noise from the seed; the run"), "{message}");
}

/// The noise of an ε belongs to a number of steps: more of them are another noise.
#[test]
fn an_epsilon_is_not_stretched_over_more_steps() {
    let data = folder(36);
    let (dir, net, out) = (data.path(), network(data.path()), data.path().join("run"));
    let fixed = ["--batch", "12", "--clip", "1", "--seed", "5"];
    let with = |more: &[&'static str]| [&fixed[..], more].concat();
    answered(&args(dir, &net, &out, &with(&["--epsilon", "3", "--steps", "4"])));
    let sigma = json(&out.join("training.json"))["privacy"]["sigma"].to_string();
    let message = refused(&args(dir, &net, &out, &with(&["--epsilon", "3", "--steps", "8", "--resume"])));
    assert!(message.contains(&format!("Go on with --sigma {sigma} instead")), "{message}");
    assert!(message.contains("--steps 4") && !message.contains("configuration"), "{message}");
    // both ways that it names work
    answered(&args(dir, &net, &out, &with(&["--epsilon", "3", "--steps", "4", "--resume"])));
    let more = with(&["--steps", "8", "--resume"]);
    answered(&args(dir, &net, &out, &[&more[..], &["--sigma", &sigma]].concat()));
    assert!(json(&out.join("training.json"))["privacy"]["epsilon"].as_f64().unwrap() > 3.0);
}
