//! The pages of networks: whole, safe, without requests.

#![allow(clippy::unwrap_used)]

mod common;

use common::networks::*;
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_report::net::*;

#[test]
fn nothing_from_the_data_becomes_html_and_no_page_asks_for_anything() {
    for page in [page(&audit(), &pictures()), training_page(&training(1.0))] {
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&lt;script&gt;"));
        assert!(!page.contains("http://") && !page.contains("https://"));
        assert!(page.contains("default-src 'none'"));
        // every heading's section is closed
        assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
        assert_eq!(page.matches("<figure").count(), page.matches("</figure>").count());
        assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    }
}

#[test]
fn bounds_are_rounded_to_the_safe_side() {
    let page = page(&audit(), &Pictures::default());
    // no unbiased estimate is better than 3.9999: never shown as 4
    assert!(page.contains("<b>3.99</b>"));
    // (1.2345, 1e-5)-DP: never shown as 1.23
    assert!(page.contains("(1.24, 1×10⁻⁵)"));
    assert!(summary(&audit()).contains("3.99"));
    assert!(training_summary(&training(1.2345)).contains("1.24"));
}

#[test]
fn pictures_are_shown_where_they_are_given_and_only_there() {
    let with = page(&audit(), &pictures());
    // most dFIL, most η, a record with two maps, a scored point and again with its maps
    assert_eq!(with.matches("data:image/png;base64,iVBORw0KGgo").count(), 9);
    assert!(with.contains("as private as they are"));
    let without = page(&audit(), &Pictures::default());
    assert!(!without.contains("<img") && !without.contains("id=\"plis\""));
}

#[test]
fn the_data_come_back_from_json() {
    let a = audit();
    assert_eq!(serde_json::from_str::<NetAudit>(&to_json(&a)).unwrap(), a);
    let t = training(1.0);
    assert_eq!(serde_json::from_str::<Training>(&to_json(&t)).unwrap(), t);
}

#[test]
fn histograms_count_every_value_once() {
    for values in [vec![1.0], vec![0.0; 7], vec![0.0, 1e-9, 1.0, 5.0], (1..300).map(f64::from).collect()] {
        let h = Histogram::of(&values).unwrap();
        assert_eq!(h.edges.len(), h.counts.len() + 1);
        assert_eq!(h.counts.iter().sum::<u64>(), values.len() as u64);
        assert!(h.edges.windows(2).all(|w| w[0] < w[1]), "{h:?}");
        assert_eq!(h.count(&[-1.0, 1e300]).iter().sum::<u64>(), 2);
    }
    assert!(Histogram::of(&[]).is_none());
    assert!(
        Histogram::of(&[0.1, 10.0]).unwrap().logarithmic && !Histogram::of(&[1.0, 2.0]).unwrap().logarithmic
    );
}

#[test]
fn names_cannot_drive_the_terminal() {
    let (mut a, mut t) = (audit(), training(1.0));
    for text in [&mut a.network.name, &mut a.warnings[0], &mut t.network.name, &mut t.notes[0]] {
        *text = "a\u{1b}[31mb\u{202e}c\nd".into();
    }
    for text in [summary(&a), training_summary(&t)] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && !text.contains("\nd"));
    }
}

/// The level of an audit's verdict, and its text.
fn verdict_of(a: &NetAudit) -> (String, String) {
    let page = page(a, &Pictures::default());
    let (_, rest) = page.split_once("<section class=\"verdict ").unwrap();
    let (class, rest) = rest.split_once('"').unwrap();
    (class.to_owned(), rest.split_once("</section>").unwrap().0.to_owned())
}

#[test]
fn the_verdict_on_a_network_rests_on_its_run() {
    // One step tells next to nothing, but nothing is known of the run: no page is green for that.
    let quiet = NetAudit { training: None, eta: Some(spread(0.01)), dfil: Some(spread(1e-4)), ..audit() };
    let (class, text) = verdict_of(&quiet);
    assert_eq!(class, "care");
    assert!(text.contains("How the model was trained is not known"), "{text}");
    // An estimate that is off by less than the values vary is red, bound or not.
    let (class, _) = verdict_of(&NetAudit { training: None, ..audit() });
    assert_eq!(class, "bad");
    // A private run bounds what any step can tell.
    let mut run = training(0.5);
    run.label_secret = false;
    let of = |t: Training| NetAudit { training: Some(Box::new(t)), ..quiet.clone() };
    let (class, text) = verdict_of(&of(Training { accounts: None, ..run.clone() }));
    assert_eq!(class, "good");
    assert!(text.contains("The run made 4 steps") && text.contains("⟨track⟩"), "{text}");
    // Where it was accounted for, that is said; a small advantage bounds it, and without one it decides.
    let mut accounts = run.accounts.clone().unwrap();
    accounts.dfil = spread(100.0);
    accounts.largest = Some(Interval { lower: 60.0, upper: 120.0 });
    let mut accounted = Training { accounts: Some(accounts), ..run };
    let (class, text) = verdict_of(&of(accounted.clone()));
    assert_eq!(class, "care");
    assert!(text.contains("Over all 4 steps"), "{text}");
    accounted.privacy.as_mut().unwrap().promise.as_mut().unwrap().advantage = None;
    assert_eq!(verdict_of(&of(accounted.clone())).0, "bad");
    // but not where it kept account of another secret
    let (_, text) = verdict_of(&of(Training { label_secret: true, ..accounted }));
    assert!(text.contains("The run made 4 steps"), "{text}");
}

#[test]
fn points_differ_only_where_chance_does_not_explain_it() {
    let sentence = |pairs: f64, interval: [f64; 2]| {
        let mut a = audit();
        let by = &mut a.score.as_mut().unwrap().by[0];
        (by.exceeds_training, by.exceeds_interval) = (pairs, interval);
        assert!(summary(&a).contains("95% interval"));
        page(&a, &Pictures::default())
    };
    assert!(sentence(0.621, [0.49, 0.75]).contains("not shown to differ"));
    assert!(sentence(0.621, [0.49, 0.75]).contains("49% to 75%"));
    assert!(sentence(0.7, [0.6, 0.8]).contains("They differ from"));
    assert!(sentence(0.3, [0.2, 0.4]).contains("They differ from"));
    assert!(sentence(0.52, [0.51, 0.53]).contains("differ a little"));
    assert!(sentence(0.97, [0.9, 1.0]).contains("unlike"));
    // of two measures, the one that shows a difference, though the other is further off
    let mut a = audit();
    let by = &mut a.score.as_mut().unwrap().by;
    let mut eta = by[0].clone();
    (eta.measure, eta.exceeds_training, eta.exceeds_interval) = (Measure::Eta, 0.62, [0.55, 0.69]);
    (by[0].exceeds_training, by[0].exceeds_interval) = (0.7, [0.45, 0.95]);
    by.push(eta);
    assert!(page(&a, &Pictures::default()).contains("They differ from the training records</b>: by the η"));
}

/// Predictions of several values have no class, and are neither right nor wrong.
#[test]
fn records_of_a_regression_have_no_label_and_no_verdict() {
    let mut a = audit();
    let lists = [&mut a.most_dfil, &mut a.least_dfil, &mut a.most_eta, &mut a.least_eta];
    lists.into_iter().flatten().for_each(|r| (r.label, r.right) = (None, None));
    (a.score, a.most_plis, a.least_plis) = (None, vec![], vec![]);
    let page = page(&a, &pictures());
    assert!(
        !page.contains("class=\"flag\"")
            && page.contains("<b>2</b><br>dFIL")
            && page.contains("alt=\"record 2\"")
    );
    assert!(summary(&a).contains("record 2\n"));
    // the accounts of the run name labels of their own
    a.training = None;
    let json = to_json(&a);
    assert!(!json.contains("\"label\"") && !json.contains("\"right\""));
    let mut t = training(1.0);
    let with = training_page(&t);
    t.accounts.as_mut().unwrap().most[0].label = None;
    let without = training_page(&t);
    assert!(with.contains(">label</th>") && !without.contains(">label</th>"));
}

/// Five tiles stand side by side: none fills a row alone.
#[test]
fn five_tiles_are_five_across() {
    let page = page(&audit(), &Pictures::default());
    assert!(
        page.contains("<div class=\"tiles n5\">")
            && page.contains(".tiles.n5{grid-template-columns:repeat(5,1fr)}")
    );
}

#[test]
fn a_run_without_noise_promises_nothing() {
    let mut t = training(1.0);
    t.privacy = None;
    t.accounts = None;
    t.history.iter_mut().for_each(|p| (p.epsilon, p.dfil_p90, p.dfil_median) = (None, None, None));
    let page = training_page(&t);
    assert!(page.contains("nothing is promised") && !page.contains("id=\"over\""));
    assert!(!page.contains("differentially private"));
    t.stopped = Stopped::Diverged;
    assert!(training_page(&t).contains("last good parameters"));
}

/// No extreme of estimates is named without where it lies, on the page and at the terminal.
#[test]
fn the_largest_of_estimates_is_an_interval() {
    let mut a = audit();
    let (smallest, largest) =
        (Interval { lower: 0.0, upper: 0.0123 }, Interval { lower: 0.1234, upper: 0.7654 });
    a.trace = TraceKind::Estimate { probes: 10 };
    a.min_mse = None;
    a.dfil_extremes = Some(Extremes { smallest, largest, candidates: 3 });
    for r in a.most_dfil.iter_mut().chain(&mut a.least_dfil) {
        r.dfil = Some(Measured { value: 0.251_9, standard_error: Some(0.1) });
        r.dfil_interval = Some(largest);
    }
    let (page, text) = (page(&a, &Pictures::default()), summary(&a));
    for shown in [&page, &text] {
        assert!(shown.contains("0.123 to 0.766"), "{shown}");
        assert!(shown.contains("which record has it is not known: 3 of 3 may"), "{shown}");
        assert!(!shown.contains("0.252"), "an estimate without its interval");
    }
    assert!(page.contains("0 to 0.0123") && page.contains("Largest estimates of dFIL"));
    assert!(!page.contains("The most exposed record of one step is number"));
    // the verdict stands on the upper end
    assert!(page.contains(&leakscope_report::format::number(1.0 / 0.7654)));
    // one that stands clear of all others is named
    a.dfil_extremes = Some(Extremes { smallest, largest, candidates: 1 });
    assert!(
        leakscope_report::net::page(&a, &Pictures::default())
            .contains("is number 2: a dFIL of 0.123 to 0.766")
    );
}
