//! An audit at another noise: what the page's script says is what Rust says, and neither is calmer than it may be.

#![allow(clippy::unwrap_used)]

#[path = "common/chrome.rs"]
mod chrome;
mod common;

use chrome::{browser, complaint, open};
use common::{clinic, told};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_report::Audit;
use leakscope_report::audit::{Label, Limit, SigmaSource};
use leakscope_report::bound::Worst;
use leakscope_report::choice::Statistic;
use leakscope_report::tell::{AmongAll, Shows};
use leakscope_report::verdict::{
    Colour, Decision, EPSILON_ALARM, EPSILON_CALM, Facts, Noise, RULES, Reservations, Success, TOLD_AT,
    decide, of_audit,
};
use leakscope_report::what_if::{Moving, audit_at};
use serde_json::{Value, json};

const NUMBERS: &str = include_str!("../src/render/html/script/numbers.js");
const VERDICT: &str = include_str!("../src/render/html/script/verdict.js");

/// A generator without pattern that matters here.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 11
    }

    fn uniform(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 53) as f64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// From 10^low to 10^high.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        10_f64.powf(low + (high - low) * self.uniform())
    }
}

/// Runs the script on cases; each is handed to `check`, an expression of `c` that gives true or a complaint.
fn agree(name: &str, cases: &[Value], check: &str) {
    let Some(browser) = browser() else { return };
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let data = serde_json::to_string(cases).unwrap().replace('<', "\\u003c");
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>x</title><body><script type=\"application/json\" id=cases>{data}</script>\
         <script>{NUMBERS}</script><script>{VERDICT}</script><script>\
         var L = Leakscope, bad = [], seen = [0, 0, 0], cases = JSON.parse(document.getElementById('cases').textContent);\
         cases.forEach(function (c, i) {{ var said = (function () {{ {check} }})(); if (said !== true) bad.push(i + ': ' + said); }});\
         document.body.textContent = cases.length + ' cases, ' + bad.length + ' bad, colours ' + seen.join(' ') + '. ' + bad.slice(0, 5).join(' | ');\
         </script></body>"
    );
    let path = folder.join("cases.html");
    std::fs::write(&path, page).unwrap();
    let opened = open(browser, &folder.join("profile"), &path);
    assert_eq!(complaint(&opened), None);
    let document = String::from_utf8_lossy(&opened.stdout);
    let body = document.split("<body>").nth(1).unwrap_or_default().to_owned();
    assert!(body.starts_with(&format!("{} cases, 0 bad", cases.len())), "{body}");
    // Every colour was there.
    let colours = body.split("colours ").nth(1).and_then(|s| s.split('.').next()).unwrap_or_default();
    assert!(colours.split(' ').all(|n| n.parse::<u32>().is_ok_and(|n| n > 20)), "{body}");
}

/// What a decision says, for the script to compare with.
fn decision_json(d: &Decision) -> Value {
    let grounds: Vec<Value> = d
        .grounds
        .iter()
        .map(|g| {
            let value = match g.value {
                v if v.is_nan() => json!("NaN"),
                v if v.is_infinite() => json!("Infinity"),
                v => json!(v),
            };
            json!([g.fact, value, g.shown, g.green, g.red, index(g.colour)])
        })
        .collect();
    json!({ "colour": index(d.colour), "grounds": grounds })
}

fn index(colour: Colour) -> usize {
    match colour {
        Colour::Green => 0,
        Colour::Amber => 1,
        Colour::Red => 2,
    }
}

const SAME: &str = "seen[d.colour] += 1; \
    if (d.colour !== c.says.colour) return 'colour ' + d.colour + ' not ' + c.says.colour + ' ' + JSON.stringify(c); \
    if (d.grounds.length !== c.says.grounds.length) return 'grounds ' + d.grounds.length; \
    for (var k = 0; k < d.grounds.length; k++) { var a = d.grounds[k], b = c.says.grounds[k], v = Number(b[1]); \
      if (a.fact !== b[0] || a.green !== b[3] || a.red !== b[4] || a.colour !== b[5]) return a.fact + ' ' + a.colour + ' ' + JSON.stringify(b); \
      if (!(a.value === v || (a.value !== a.value && v !== v) || Math.abs(a.value - v) <= 1e-13 * Math.max(1, v))) return a.fact + ' ' + a.value + ' not ' + v; \
      if (a.shown !== b[2]) return a.shown + ' not ' + b[2]; } return true;";

#[test]
fn the_script_decides_by_the_same_rules_on_thousands_of_facts() {
    let mut dice = Dice(11);
    let rules = serde_json::to_value(RULES).unwrap();
    let edges = [0.5, 0.6, 0.55, TOLD_AT, TOLD_AT + 1e-15, 0.600_000_000_000_1, 1.0, 0.0, f64::NAN];
    let cases: Vec<Value> = (0..5_000)
        .map(|_| {
            let calm = dice.one_in(3);
            let mut share = |most: f64| match dice.next() % 4 {
                0 | 1 => None,
                2 => Some(edges[(dice.next() % edges.len() as u64) as usize]).filter(|_| !calm).or(Some(0.52)),
                _ => Some(0.5 + (most - 0.5) * dice.uniform()),
            };
            let most = if calm { 0.6 } else { 1.0 };
            let (told, label_told, told_at_least) = (share(most), share(most), share(most));
            let (estimated, label_estimated) = (share(most), share(most));
            let membership = share(most).map(|p| p - 0.5);
            let success = |p: Option<f64>, dice: &mut Dice| {
                p.map(|success| Success { success, baseline: if dice.one_in(9) { 1.0 } else { dice.uniform() } })
            };
            let (bounded, observed) = (share(1.0).filter(|_| !calm), share(1.0).filter(|_| !calm));
            let epsilon = match dice.next() % 4 {
                0 if !calm => Some(dice.magnitude(-2.0, 2.0)),
                1 => Some(if calm { EPSILON_CALM } else { EPSILON_ALARM }),
                _ => None,
            };
            let left_out = match dice.next() % 5 {
                0 if !calm => Some(dice.magnitude(-2.0, 2.0)),
                1 => Some(0.9),
                _ => None,
            };
            let facts = Facts {
                noise: match dice.next() % 12 {
                    0 => Noise::Unit,
                    1 => Noise::Absent,
                    _ => Noise::Chosen,
                },
                over_limit: dice.one_in(12),
                unfinished: dice.one_in(8),
                open: Reservations { rows_of_one: dice.one_in(12), ..Reservations::default() },
                told_at_least,
                protect_at: [0.6, 0.55, 0.4, 0.9, 0.7][(dice.next() % 5) as usize],
                told,
                label_told,
                estimated,
                label_estimated,
                epsilon,
                left_out,
                membership,
                bounded: success(bounded, &mut dice),
                observed: success(observed, &mut dice),
            };
            let number = |x: Option<f64>| x.map_or(Value::Null, |x| if x.is_nan() { json!("NaN") } else { json!(x) });
            let guess = |s: Option<Success>| {
                s.map_or(Value::Null, |s| json!({ "success": number(Some(s.success)), "baseline": s.baseline }))
            };
            json!({
                "facts": {
                    "noise": match facts.noise { Noise::Unit => "unit", Noise::Absent => "absent", Noise::Chosen => "chosen" },
                    "over_limit": facts.over_limit, "unfinished": facts.unfinished || facts.open.rows_of_one, "told_at_least": number(told_at_least), "protect_at": facts.protect_at,
                    "told": number(told), "label_told": number(label_told), "estimated": number(estimated),
                    "label_estimated": number(label_estimated), "epsilon": number(epsilon), "left_out": number(left_out), "membership": number(membership),
                    "bounded": guess(facts.bounded), "observed": guess(facts.observed),
                },
                "says": decision_json(&decide(&facts)),
            })
        })
        .collect();
    let read = "Object.keys(c.facts).forEach(function (n) { var v = c.facts[n]; if (v === 'NaN') c.facts[n] = NaN; \
                if (v && v.success === 'NaN') v.success = NaN; });";
    agree("rules", &cases, &format!("{read} var rules = {rules}; var d = L.decide(rules, c.facts); {SAME}"));
}

/// An audit that could be: some attributes tried and some not, values that no noise hides, limits, a secret, several rows a person.
fn drawn(dice: &mut Dice, base: &Audit) -> Audit {
    let mut a = base.clone();
    a.sigma = dice.magnitude(-4.0, 3.0);
    a.releases = 1 + (dice.next() % 4) as u32;
    a.sigma_source = match dice.next() % 4 {
        0 => SigmaSource::Default,
        1 => SigmaSource::TargetEta { eta: 0.1, statistic: Statistic::Max },
        _ => SigmaSource::Given,
    };
    for attribute in &mut a.attributes {
        let sd = if dice.one_in(20) { f64::INFINITY } else { dice.magnitude(-1.0, 4.0) };
        attribute.min_sd = Bound::at_least(if dice.one_in(40) { 0.0 } else { sd }, Theorem::CramerRao);
    }
    if !dice.one_in(4) {
        let names: Vec<String> = a.attributes.iter().map(|x| x.name.clone()).collect();
        let tried = names.iter().take(if dice.one_in(4) { 3 } else { names.len() });
        let mut tell = told(&tried.map(|n| (n.as_str(), 0.5, false)).collect::<Vec<_>>());
        for t in &mut tell.attributes {
            let distance = dice.magnitude(-3.0, 1.0);
            t.distance = Some(distance);
            t.worst = leakscope_core::tell::two_values(distance, 1).value;
            t.median = leakscope_core::tell::two_values(0.3 * distance, 1).value;
            if dice.one_in(3) {
                let levels = 2 + (dice.next() % 8) as usize;
                let worst = leakscope_core::tell::any_level(levels, distance, 1).value;
                t.among_all = Some(AmongAll { levels, worst });
            }
            if dice.one_in(40) {
                (t.distance, t.worst, t.shows) = (None, 1.0, Some(Shows::Unit));
            } else if dice.one_in(40) {
                t.distance = None;
            } else if dice.one_in(15) {
                t.at_least = Some(0.3 * distance);
            }
        }
        if dice.one_in(10) {
            tell.left_out = vec!["height".into()];
        }
        tell.protect_at = if dice.one_in(5) { 0.55 } else { 0.6 };
        a.tell = Some(tell);
        a.data.rows_of_one = dice.one_in(10).then_some(3);
    }
    if dice.one_in(3) {
        a.label = Some(Label {
            name: "dose".into(),
            eta_mean: 0.1,
            eta_max: 0.3,
            eta_max_record: "P-1".into(),
            population_sd: dice.one_in(2).then_some(2.0),
            min_sd: Bound::at_least(dice.magnitude(-1.0, 3.0), Theorem::CramerRao),
        });
    }
    if dice.one_in(4) {
        let value = a.records.eta.max;
        let limit = value * dice.magnitude(-1.0, 1.0);
        a.limits = vec![Limit { statistic: Statistic::Eta, limit, value, ok: value <= limit }];
    }
    if dice.one_in(6) {
        let mut actual = common::kinds::guessed();
        let worst = 0.4 + 0.6 * dice.uniform();
        actual.bounds[0].worst = dice.one_in(2).then_some(Worst { success: worst, advantage: worst / 2.0 });
        a.secret = Some(actual);
    }
    a
}

#[test]
fn the_script_moves_thousands_of_audits_as_rust_does_and_never_calmer() {
    let mut dice = Dice(23);
    let base = clinic(40, 2);
    let mut cases = vec![];
    for _ in 0..1_500 {
        let audit = drawn(&mut dice, &base);
        let mut moving = serde_json::from_str::<Value>(&Moving::of(&audit, vec![]).unwrap().json()).unwrap();
        moving["rules"] = json!(null);
        for _ in 0..2 {
            let (sigma, releases) = (audit.sigma * dice.magnitude(-1.5, 2.5), 1 + (dice.next() % 5) as u32);
            let verdict = of_audit(&audit_at(&audit, sigma, releases).unwrap());
            let decision = Decision { colour: verdict.colour, grounds: verdict.grounds, open: vec![] };
            cases.push(
                json!({ "model": moving, "sigma": sigma, "releases": releases, "says": decision_json(&decision) }),
            );
        }
    }
    let rules = serde_json::to_value(RULES).unwrap();
    agree(
        "moved",
        &cases,
        &format!(
            "var rules = {rules}; var d = L.decide(rules, L.facts(c.model, c.sigma, c.releases)); {SAME}"
        ),
    );
}

#[test]
fn numbers_are_written_by_the_script_as_in_rust() {
    use leakscope_report::format;
    let mut dice = Dice(5);
    let mut cases: Vec<Value> = (0..4_000)
        .map(|_| dice.magnitude(-9.0, 9.0))
        .chain([0.0, 0.001, 999.5, 999.499, 1e5, 99_999.4, 0.5, 1.0, 81.0, 100.0, 1000.0])
        .map(|x| {
            let p = x.fract();
            json!({
                "x": x, "p": p,
                "says": [
                    format::number(x), format::at_least(x), format::at_most(x), format::setting(x), format::share(p),
                    format::share_at_most(p), format::typed_at_least(x),
                ],
                "phi": leakscope_core::special::normal_cdf(x.ln().max(-30.0)), "at": x.ln().max(-30.0),
            })
        })
        .collect();
    cases.iter_mut().enumerate().for_each(|(i, c)| c["seen"] = json!(i % 3));
    let check = "seen[c.seen] += 1; var t = c.x === 0 ? c.says[6] : L.typed(c.x); \
        var s = [L.number(c.x), L.atLeast(c.x), L.atMost(c.x), L.setting(c.x), L.share(c.p), L.shareAtMost(c.p), t]; \
        for (var k = 0; k < 7; k++) if (s[k] !== c.says[k]) return c.x + ': ' + s[k] + ' not ' + c.says[k]; \
        return Math.abs(L.normal(c.at) - c.phi) <= 1e-15 ? true : c.at + ': ' + L.normal(c.at) + ' not ' + c.phi;";
    agree("numbers", &cases, check);
}

#[test]
fn more_noise_is_never_worse_and_what_no_noise_hides_stays() {
    let mut dice = Dice(77);
    let base = clinic(40, 2);
    for _ in 0..500 {
        let audit = drawn(&mut dice, &base);
        let colours: Vec<Colour> = [0.01, 0.1, 1.0, 10.0, 100.0]
            .map(|times| of_audit(&audit_at(&audit, audit.sigma * times, audit.releases).unwrap()).colour)
            .into();
        assert!(colours.windows(2).all(|w| w[1] <= w[0]), "{colours:?}");
        if audit.tell.iter().flat_map(|t| &t.attributes).any(|t| t.shows.is_some()) {
            assert_eq!(colours[4], Colour::Red);
        }
    }
    // As audited, where a noise was chosen.
    let mut audit = clinic(60, 2);
    audit.tell = Some(told(&[("age", 0.7, false)]));
    audit
        .tell
        .iter_mut()
        .flat_map(|t| &mut t.attributes)
        .for_each(|t| t.distance = Some(1.048_801_025_416_079_5));
    let same = audit_at(&audit, audit.sigma, audit.releases).unwrap();
    assert_eq!(of_audit(&same).colour, of_audit(&audit).colour);
    assert!((same.records.eta.max / audit.records.eta.max - 1.0).abs() < 1e-12);
    assert!((same.tell.unwrap().attributes[0].worst - 0.7).abs() < 1e-9);
}

#[test]
fn noise_with_a_shape_is_not_moved() {
    let mut audit = clinic(60, 2);
    common::noise::shaped(&mut audit, leakscope_report::noise::Source::Bounds);
    assert!(audit_at(&audit, 1.0, 1).is_none());
    assert!(Moving::of(&audit, vec![]).is_err());
    // Shapes that the document holds can be chosen.
    let page = leakscope_report::page(&audit);
    assert!(page.contains("data-shape=\"choice\"") && page.contains("--noise-shape"));
    audit.noise.as_mut().unwrap().shapes.truncate(1);
    assert!(leakscope_report::page(&audit).contains("run the audit again with other targets"));
    let audit = clinic(60, 2);
    for (sigma, releases) in [(0.0, 1), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (1.0, 0)] {
        assert!(audit_at(&audit, sigma, releases).is_none(), "{sigma} {releases}");
    }
}
