//! What an audit's page shows at another noise is what the page of that audit shows: every number of every card and every drawing.

#![allow(clippy::unwrap_used)]

#[path = "common/chrome.rs"]
mod chrome;
mod common;
#[path = "common/devtools.rs"]
mod devtools;

use common::{clinic, pages::wide, told};
use devtools::{FOLLOWS, Page, same_numbers};
use leakscope_core::fisher::noise::Shape;
use leakscope_core::special::normal_quantile;
use leakscope_report::audit::SigmaSource;
use leakscope_report::noise::{Inference, Source};
use leakscope_report::verdict::{Colour, decide};
use leakscope_report::what_if::{audit_at, facts_at};
use leakscope_report::{Audit, page};
use std::path::{Path, PathBuf};

fn kept(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("follow");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// Audits with everything that a page can show.
fn audits() -> Vec<(&'static str, Audit)> {
    let mut small = clinic(60, 2);
    small.tell = Some(told(&[("age", 0.7, false), ("height", 0.55, false)]));
    small.inference = shaped_inference();
    let mut twice = clinic(400, 9);
    twice.releases = 2;
    let mut many = wide(120);
    many.releases = 3;
    let mut all = vec![("small", small), ("twice", twice), ("wide", many)];
    // The noise on a page that was moved was chosen.
    all.iter_mut().for_each(|a| a.1.sigma_source = SigmaSource::Given);
    for told in all.iter_mut().filter_map(|a| a.1.tell.as_mut()).flat_map(|t| &mut t.attributes) {
        // Without a distance nothing could follow.
        told.distance = Some(2.0 * normal_quantile(told.worst));
    }
    all
}

fn shaped_inference() -> Option<Inference> {
    let mut audit = clinic(60, 2);
    common::noise::shaped(&mut audit, Source::Bounds);
    audit.inference
}

#[test]
fn every_number_at_another_noise_is_that_of_the_audit_at_that_noise() {
    let Some(browser) = chrome::browser() else { return };
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("follow-profile");
    let _ = std::fs::remove_dir_all(&profile);
    let mut opened =
        Page::open(browser, &profile, &kept("first.html", "<!doctype html><title>x</title>"), 1200);
    for (name, audit) in audits() {
        let moved = kept(&format!("{name}.html"), &page(&audit));
        for (times, releases) in [(0.037, audit.releases), (1.0, 5), (2.9, audit.releases), (410.0, 7)] {
            let sigma: f64 = format!("{:.3e}", audit.sigma * times).parse().unwrap();
            let fresh = page(&audit_at(&audit, sigma, releases).unwrap());
            opened.go(&kept(&format!("{name}-fresh.html"), &fresh));
            let there = opened.eval(FOLLOWS);
            opened.go(&moved);
            let stated = opened.eval(FOLLOWS);
            opened.dial(sigma, releases);
            let here = opened.eval(FOLLOWS);
            same_numbers(&here, &there, &format!("{name} at {sigma}, {releases} releases"));
            let places = opened.eval(PLACES);
            assert_eq!(places, "", "{name} at {sigma}");
            opened.eval("document.querySelector('[data-dial=reset]').click()");
            assert_eq!(opened.eval(FOLLOWS), stated, "{name}: back as audited");
        }
    }
    assert_eq!(opened.complaints, Vec::<String>::new());
}

#[test]
fn a_shape_is_judged_by_the_same_rules() {
    let Some(browser) = chrome::browser() else { return };
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes-profile");
    let _ = std::fs::remove_dir_all(&profile);
    let mut opened =
        Page::open(browser, &profile, &kept("second.html", "<!doctype html><title>x</title>"), 1200);
    let mut seen = vec![];
    for eta in [1e-4, 0.3, 1.4, 9.0] {
        let mut audit = clinic(60, 2);
        common::noise::shaped(&mut audit, Source::Bounds);
        audit.noise.iter_mut().flat_map(|n| &mut n.goals).for_each(|g| g.eta = eta);
        opened.go(&kept("shapes.html", &page(&audit)));
        let stated = opened.text("[data-shape=outcome]");
        for (k, shape) in [Shape::Isotropic, Shape::Shaped].into_iter().enumerate() {
            opened.eval(&format!(
                "(function () {{ var e = document.querySelector('[data-shape=choice]'); e.selectedIndex = {k}; e.dispatchEvent(new Event('change')); }})()"
            ));
            let colour = decide(&facts_at(&audit, shape).unwrap()).colour;
            let class = match colour {
                Colour::Green => "dot-good",
                Colour::Amber => "dot-care",
                Colour::Red => "dot-bad",
            };
            assert_eq!(
                opened.eval("document.querySelector('[data-shape=outcome]').className"),
                format!("outcome {class}")
            );
            assert_ne!(colour, Colour::Green, "nothing was told apart under it");
            seen.push(colour);
            let command = opened.text("[data-shape=command]");
            let name = if shape == Shape::Isotropic { "isotropic" } else { "shaped" };
            assert!(
                command.contains(&format!("--noise-shape {name} --target-sd age=20 --target-eta")),
                "{command}"
            );
        }
        opened.eval("document.querySelector('[data-shape=reset]').click()");
        assert_eq!(opened.text("[data-shape=outcome]"), stated);
    }
    assert!(seen.contains(&Colour::Amber) && seen.contains(&Colour::Red), "{seen:?}");
    assert_eq!(opened.complaints, Vec::<String>::new());
}

/// Rings of the scatter plots, and dots of the curves of η, lie where the labels of their axis say that their η is; what does not
/// is named.
const PLACES: &str = r##"(function () {
  var bad = [], seen = 0;
  document.querySelectorAll("#loss svg.chart, #noise svg.chart").forEach(function (svg) {
    var log = svg.querySelector("[data-ticks=y]").getAttribute("data-scale").indexOf("log") === 0, f = log ? Math.log : Number;
    var ticks = [].map.call(svg.querySelectorAll("[data-ticks=y] text"), function (t) {
      return { v: Number(t.textContent.replace(/,/g, "")), y: Number(t.getAttribute("y")) - 4.5 };
    }).filter(function (t) { return t.v > 0; });
    // Powers of ten in the labels are left to the eye.
    if (ticks.length < 2) { seen += 1; return; }
    var a = ticks[0], b = ticks[ticks.length - 1];
    svg.querySelectorAll(".ring, .largest.dot").forEach(function (ring) {
      var eta = Number(/η ([\d.,]+|.*)(,|$)/.exec(ring.getAttribute("data-tip"))[1].replace(/,/g, "")), cy = Number(ring.getAttribute("cy"));
      var y = a.y + (f(eta) - f(a.v)) / (f(b.v) - f(a.v)) * (b.y - a.y);
      if (eta === eta && Math.abs(y - cy) > 2.5) bad.push(ring.getAttribute("data-tip") + " at " + cy + " not " + y);
      seen += 1;
    });
  });
  return bad.slice(0, 3).join("; ") + (seen || !document.querySelector("#loss svg.chart") ? "" : "no ring was seen");
})()"##;
