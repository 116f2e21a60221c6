//! The verdict on tables and releases: it must never sound better than the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use common::kinds::{costs, released, stated};
use common::networks::{audit as network, training};
use common::{clinic, set_min_sd, situations, told};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_report::audit::{Audit, Label, Limit, ReadOff, SigmaSource};
use leakscope_report::choice::Statistic;
use leakscope_report::net::NetAudit;
use leakscope_report::noise::Source;
use leakscope_report::release::{Means, Target};
use leakscope_report::tell::Shows;
use leakscope_report::verdict::{
    Colour, PROTECT_AT, TOLD_AT, of_account, of_audit, of_net_audit, of_release, of_training,
};
use leakscope_report::{page, summary};

fn with(change: impl Fn(&mut Audit)) -> Audit {
    let mut audit = clinic(600, 3);
    change(&mut audit);
    audit
}

#[test]
fn without_a_test_of_two_values_no_page_is_green() {
    let v = of_audit(&clinic(600, 3));
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Amber, "Not shown to be protected"));
    // min_sd 81.6 at a spread of 14.2: Φ(2.563 · 14.2 / (2 · 81.6)) = Φ(0.223) = 0.588, rounded up.
    assert!(
        v.text().starts_with(
            "Somebody who knows everything else about the most exposed record tells two typical values of age apart in about \
             58.9% of cases (a coin toss: 50%), with an estimate that is off by ±81.6 years where records differ by ±14.2."
        ),
        "{}",
        v.text()
    );
    assert!(v.text().contains("have two values of every attribute tried before release (⟨tell_budget=all⟩"));
}

#[test]
fn two_values_that_were_tried_decide() {
    for (worst, colour) in [
        (PROTECT_AT, Colour::Green),
        (PROTECT_AT + 1e-9, Colour::Amber),
        (TOLD_AT, Colour::Amber),
        (TOLD_AT + 1e-9, Colour::Red),
        (1.0, Colour::Red),
    ] {
        for label in [false, true] {
            let v =
                of_audit(&with(|a| a.tell = Some(told(&[("age", worst, label), ("weight", 0.51, false)]))));
            assert_eq!(v.colour, colour, "{worst} {label}");
        }
    }
    let v = of_audit(&with(|a| a.tell = Some(told(&[("age", 0.93, false)]))));
    assert!(
        v.text().starts_with(
            "Somebody who knows everything else tells age 40 from 60 years rightly in at most 93% of cases for record P-14380, \
             and in at most 58.6% for the median record; a coin toss is right in 50%."
        ),
        "{}",
        v.text()
    );
    // Φ⁻¹(0.93)/Φ⁻¹(0.6) = 5.8251, σ = 0.1166: never rounded down.
    assert!(v.text().contains("σ = 0.117, now 0.02, would bring that to 60%"), "{}", v.text());
    // A stricter limit of the user's.
    let mut strict = told(&[("age", 0.58, false)]);
    strict.protect_at = 0.55;
    assert_eq!(of_audit(&with(|a| a.tell = Some(strict.clone()))).colour, Colour::Amber);
}

#[test]
fn what_was_not_tried_and_what_is_not_at_the_minimiser_is_not_green() {
    let calm = |change: &dyn Fn(&mut Audit)| {
        of_audit(&with(|a| {
            a.tell = Some(told(&[("age", 0.51, false)]));
            change(a);
        }))
    };
    assert_eq!(calm(&|_| {}).colour, Colour::Green);
    let left_out = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        calm(&|a| a.tell.iter_mut().for_each(|t| t.left_out.clone_from(&names)))
    };
    let v = left_out(&["weight"]);
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().ends_with("weight was not tried, so nothing is shown about it."), "{}", v.text());
    assert!(left_out(&["weight", "height"]).text().contains("2 attributes were not tried"));
    let distance = |relative: f64| leakscope_report::audit::Distance {
        relative,
        largest: relative,
        largest_name: "age".into(),
        excess_objective: 0.0,
    };
    assert_eq!(calm(&|a| a.model.distance = Some(distance(1e-9))).colour, Colour::Green);
    let v = calm(&|a| a.model.distance = Some(distance(1e-3)));
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("not at the minimiser"), "{}", v.text());
}

#[test]
fn a_shape_that_was_read_off_the_records_makes_no_page_green() {
    let of = |source: Option<Source>| {
        of_audit(&with(|a| {
            a.tell = Some(told(&[("age", 0.51, false)]));
            if let Some(source) = &source {
                common::noise::shaped(a, source.clone());
            }
        }))
    };
    assert_eq!(of(None).colour, Colour::Green);
    // Its scale was still solved for on the records.
    let v = of(Some(Source::Bounds));
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("was solved for on these data"), "{}", v.text());
    let v = of(Some(Source::Records));
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("The covariance of the noise was read off the records"), "{}", v.text());
}

#[test]
fn a_value_that_can_be_read_off_is_red_whatever_the_others_are() {
    let v = of_audit(&with(|a| set_min_sd(a, "weight", 3.21)));
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Red, "Not protected"));
    assert!(v.text().contains("two typical values of weight"));
    let v = of_audit(&with(|a| set_min_sd(a, "vkorc1", 0.21)));
    assert_eq!(v.colour, Colour::Red);
    // The diagnosis of the breast cancer table: off by ±0.26 where a class is 0 or 1.
    let v = of_audit(&with(|a| {
        a.data.classes = Some(vec!["benign".into(), "malignant".into()]);
        a.label = Some(Label {
            name: "diagnosis".into(),
            eta_mean: 1.0,
            eta_max: 3.8,
            eta_max_record: "P-14380".into(),
            population_sd: None,
            min_sd: Bound::at_least(0.26, Theorem::CramerRao),
        });
    }));
    assert_eq!(v.colour, Colour::Red);
    assert!(v.text().contains("the label, diagnosis"), "{}", v.text());
}

#[test]
fn no_noise_and_breached_limits_are_said_plainly_and_first() {
    let unit = |a: &mut Audit| (a.sigma, a.sigma_source) = (1.0, SigmaSource::Default);
    let v = of_audit(&with(unit));
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Amber, "No noise chosen"));
    assert!(v.text().starts_with(
        "No noise was chosen: numbers are per unit of noise (σ = 1). Released without any, the model"
    ));
    // Nothing makes a unit of noise green.
    let v = of_audit(&with(|a| {
        unit(a);
        a.tell = Some(told(&[("age", 0.51, false)]));
    }));
    assert_eq!(v.colour, Colour::Amber);
    let limit = |ok| Limit { statistic: Statistic::P99, limit: 0.1, value: 0.52, ok };
    let v = of_audit(&with(|a| {
        a.tell = Some(told(&[("age", 0.51, false)]));
        a.limits = vec![limit(false), limit(true)];
    }));
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Red, "Over the limit"));
    assert!(v.text().starts_with("The 99th percentile of η is 0.520, above the limit of 0.1. Somebody"));
    assert_eq!(v.text().matches("limit").count(), 1);
}

#[test]
fn records_that_stand_out_and_the_cost_of_noise_fill_the_second_sentence() {
    let second = |a: &Audit| of_audit(a).sentences[1].iter().map(|s| s.text.as_str()).collect::<String>();
    assert_eq!(
        second(&with(|a| a.records.stand_out = 1)),
        "1 of 600 records gives away more than three times as much as the median record; this noise costs 1.1% in mean \
         squared error (0.329, 0.325 without noise)."
    );
    assert!(second(&with(|a| a.records.stand_out = 0)).starts_with("No record gives away more than three"));
    assert!(second(&with(|a| a.utility = None)).contains("what the noise costs was not measured"));
    let useless = second(&with(|a| a.utility.iter_mut().for_each(|u| u.at_sigma = 0.95)));
    assert!(useless.contains("leaves nothing of the model"), "{useless}");
    let (_, classes) = situations().into_iter().find(|s| s.0 == "two classes").unwrap();
    assert!(
        second(&classes).contains("this noise costs 1.3 points of accuracy (82.1%, 83.4% without noise)")
    );
}

#[test]
fn page_and_terminal_say_the_same_in_one_to_three_sentences() {
    for (name, audit) in situations().into_iter().filter(|s| s.0 != "hostile names") {
        let v = of_audit(&audit);
        assert!((1..=3).contains(&v.sentences.len()), "{name}");
        let (html, words) = (page(&audit), summary(&audit, 80, false));
        let flat = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&v.text()), "{name}: {}", v.text());
        for span in v.sentences.iter().flatten().filter(|s| s.strong) {
            assert!(html.contains(&format!("<b>{}</b>", span.text)), "{name}: {}", span.text);
        }
        // Page and terminal name the same line, with the same digits.
        let by = v.decided_by().unwrap();
        assert!(flat.contains(&format!("What makes it {}: {by}.", v.colour.name())), "{name}: {by}");
        let shown = html.split("What decides this colour: ").nth(1).unwrap();
        assert!(html.contains(&v.headline) && shown.starts_with(&by), "{name}: {by}");
    }
}

/// Where δ decides, the advice is about δ, and following it ends there.
#[test]
fn advice_about_a_run_is_about_what_decides() {
    let with = |epsilon: f64, delta: f64| {
        let mut run = training(epsilon);
        run.privacy.as_mut().unwrap().promise.as_mut().unwrap().delta = delta;
        run
    };
    let records = training(0.5).data.records.max(1_000) as f64;
    for (left_out, colour) in [(2.0, Colour::Amber), (50.0, Colour::Red)] {
        let verdict = of_training(&with(0.5, left_out / records));
        let text = verdict.text();
        assert_eq!(verdict.colour, colour, "{text}");
        assert!(!text.contains("epsilon"), "{text}");
        let advised = text.split("⟨delta=").nth(1).and_then(|t| t.split('⟩').next()).expect(&text);
        assert_eq!(of_training(&with(0.5, advised.parse().unwrap())).colour, Colour::Green, "{text}");
    }
    let text = of_training(&with(34.0, 50.0 / records)).text();
    assert!(text.contains("⟨epsilon=1⟩ and ⟨delta="), "{text}");
    assert!(!of_training(&with(34.0, 1e-9)).text().contains("delta="));
}

#[test]
fn tiny_noise_and_a_large_epsilon_are_red() {
    assert_eq!(of_release(&released(1e-4, 480.0)).colour, Colour::Red);
    assert_eq!(of_release(&released(0.0, 0.1)).headline, "Released without noise");
    assert_eq!(of_release(&released(0.0, 0.1)).colour, Colour::Red);
    assert_eq!(of_release(&released(5.0, 0.05)).colour, Colour::Amber);
    let mut run = training(34.0);
    run.privacy.as_mut().unwrap().promise.as_mut().unwrap().advantage = Some(0.999);
    assert_eq!(of_training(&run).colour, Colour::Red);
    run.privacy.as_mut().unwrap().promise.as_mut().unwrap().advantage = None;
    assert_eq!(of_training(&run).colour, Colour::Red);
    assert_eq!(of_training(&training(0.5)).colour, Colour::Green);
    run.privacy = None;
    assert_eq!(of_training(&run).colour, Colour::Red);
    let open = NetAudit { training: Some(Box::new(run)), ..network() };
    assert_eq!(
        (of_net_audit(&open).colour, of_net_audit(&open).headline.as_str()),
        (Colour::Red, "Trained without noise")
    );
    assert_eq!(of_account(&costs(0.3, 100, false)).colour, Colour::Red);
    assert_eq!(of_account(&costs(80.0, 1, false)).colour, Colour::Green);
}

#[test]
fn an_encoding_that_was_read_off_the_records_makes_no_page_green() {
    let green = with(|a| a.tell = Some(told(&[("age", 0.55, false), ("weight", 0.51, false)])));
    assert_eq!(of_audit(&green).colour, Colour::Green);
    let read_off = with(|a| {
        a.tell = Some(told(&[("age", 0.55, false), ("weight", 0.51, false)]));
        a.data.read_off = vec![ReadOff::LargestNorm];
    });
    let says = of_audit(&read_off);
    assert_eq!(says.colour, Colour::Amber);
    // What was tried with the encoding held is no bound, and the advice says what to do.
    let text = says.judged().text;
    assert!(text.contains("may be told apart more often") && text.contains("largest norm"), "{text}");
    assert!(!of_audit(&green).judged().text.contains("may be told apart more often"));
}

#[test]
fn a_release_is_green_where_every_value_was_put_in_place_and_none_shows() {
    use Means::{Eta, Refits};
    let colour = |attributes, label| of_release(&stated(attributes, label)).colour;
    assert_eq!(colour((0.6, Refits), Some((0.55, Refits))), Colour::Green);
    assert_eq!(colour((0.65, Refits), Some((0.55, Refits))), Colour::Amber);
    // A label that can be read off is red, however calm attributes and η are.
    assert_eq!(colour((0.51, Refits), Some((0.99, Refits))), Colour::Red);
    assert_eq!(colour((0.51, Refits), Some((0.99, Eta))), Colour::Red);
    // A secret label that nobody tried, and what rests on η alone, is never green.
    assert_eq!(colour((0.51, Refits), None), Colour::Amber);
    assert_ne!(colour((0.51, Eta), Some((0.51, Refits))), Colour::Green);
    let mut after_others = stated((0.9, Refits), Some((0.55, Refits)));
    after_others.tell.as_mut().unwrap().more_noise = Some(5.0585);
    let v = of_release(&after_others);
    // Φ⁻¹(0.9)/Φ⁻¹(0.6) = 5.0585, and the next power of 2^¼, to which 5.65 is rounded up, is 5.6569.
    assert!(
        v.text()
            .contains("σ = 5.65, now 1, in place of this one, would have kept all releases at 60% or less"),
        "{}",
        v.text()
    );
    assert!(
        v.text().contains("of an attribute of the most exposed record apart in at most 90%"),
        "{}",
        v.text()
    );
    let mut alone = stated((1.0, Refits), Some((1.0, Refits)));
    alone.composed.releases = 1;
    let certain = of_release(&alone);
    assert!(certain.text().contains("release again with several times the noise"), "{}", certain.text());
    assert!(!certain.text().contains("read off: "), "{}", certain.text());
    // After others no noise on this one may do.
    let v = of_release(&stated((1.0, Refits), Some((1.0, Refits))));
    assert!(v.text().contains("With what earlier releases of these data told"), "{}", v.text());
    // How much noise there is was solved for on the data: calm numbers are not all there is.
    let mut solved = stated((0.55, Refits), Some((0.55, Refits)));
    solved.eta.target = Some(Target { eta: 0.3, statistic: Statistic::Max });
    let v = of_release(&solved);
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("⟨sigma⟩ that was chosen without these data"), "{}", v.text());
    assert!(v.open.iter().any(|r| r.fact == "noise whose amount was solved for on the data"), "{:?}", v.open);
    // One number of one thing: what refits say of attributes stands alone.
    let v = of_release(&stated((0.55, Refits), Some((0.58, Eta))));
    assert!(
        !v.grounds.iter().any(|g| g.fact == "two values of an attribute told apart, about"),
        "{:?}",
        v.grounds
    );
}

/// What earlier releases told cannot be taken back by noise on this one: no σ is named that does not do it.
#[test]
fn after_a_release_that_told_too_much_no_noise_is_advised() {
    use Means::{Eta, Refits};
    let of = |attributes, first: &[&str], eta: (f64, f64), more_noise| {
        let mut r = stated(attributes, Some((0.55, Refits)));
        let tell = r.tell.as_mut().unwrap();
        tell.withdraw_first = first.iter().map(|f| (*f).to_owned()).collect();
        tell.more_noise = more_noise;
        (r.composed.releases, r.eta.max, r.composed.eta_max) = (2, Some(eta.0), Some(eta.1));
        of_release(&r)
    };
    for p in [0.62, 0.7, 0.9, 1.0] {
        let v = of((p, Refits), &["release-1"], (0.1, 3.0), None);
        assert!(
            v.text().contains("No noise on this one holds the limit: release-1 told too much before it"),
            "{}",
            v.text()
        );
        assert!(
            v.text().contains("withdraw release-1 and this one") && !v.text().contains("σ = "),
            "{}",
            v.text()
        );
        let v = of((p, Refits), &["release-2", "release-1"], (0.1, 3.0), None);
        assert!(v.text().contains("release-2 and release-1 told too much together"), "{}", v.text());
    }
    // By η the same: what is left for this one is the limit less what was told before.
    let told = |eta: f64| leakscope_core::special::normal_cdf(eta);
    for (own, before) in [(1.0, 0.2_f64), (1.0, 0.25), (0.3, 0.4), (0.1, 3.0), (2.0, 0.01)] {
        let all = before.hypot(own);
        let v = of((told(all), Eta), &[], (own, all), None);
        let left = 0.253_347_103_f64.powi(2) - before * before;
        assert_eq!(
            v.text().contains("would have kept all releases"),
            left > 0.0,
            "{own} {before}: {}",
            v.text()
        );
        if left > 0.0 {
            let sigma: f64 =
                v.text().split("σ = ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
            let sigma = leakscope_core::units::public_sigma(sigma).unwrap();
            assert!(before.hypot(own / sigma) <= 0.253_348, "{own} {before} {sigma}");
        }
    }
    // None of it is published.
    let mut r = stated((0.9, Refits), Some((0.55, Refits)));
    r.tell.as_mut().unwrap().withdraw_first = vec!["release-1".into()];
    assert!(r.for_publication().tell.unwrap().withdraw_first.is_empty());
}

/// A headline is no calmer than the table below it, and no median is above the worst.
#[test]
fn what_was_not_settled_is_said_beside_the_largest_number() {
    let mut tell = told(&[("age", 1.0, false), ("weight", 0.598, false), ("height", 1.0, false)]);
    for (k, at_least) in [0.41, 0.17, 0.44].into_iter().enumerate() {
        (tell.attributes[k].at_least, tell.attributes[k].median) = (Some(at_least), 0.51 + 0.2 * k as f64);
    }
    tell.budget = Some(leakscope_report::tell::Allowance::All);
    let audit = with(|a| a.tell = Some(tell.clone()));
    let v = of_audit(&audit);
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("weight 40 from 60") && v.text().contains("at most 59.8%"), "{}", v.text());
    // Φ(0.44/2) = 0.587.
    assert!(
        v.text().contains("How often height and 1 other attribute are told apart was not settled within the budget: in 58.7% of cases or more"),
        "{}",
        v.text()
    );
    let medians: Vec<Option<f64>> = tell.attributes.iter().map(|t| t.settled_median(0.6)).collect();
    assert_eq!(medians, [Some(0.51), Some(0.71), None]);
    assert!(page(&audit).contains(">not settled<"));
    // Advice that was found with more work is found again with as much.
    let mut settled = told(&[("age", 0.7, false)]);
    settled.budget = tell.budget;
    let v = of_audit(&with(|a| a.tell = Some(settled.clone())));
    assert!(v.text().contains("run it again with that and ⟨tell_budget=all⟩"), "{}", v.text());
}

/// A σ that drowns the model is not advised as if it were one among others.
#[test]
fn advice_that_leaves_nothing_of_the_model_says_so() {
    let of = |constant: f64| {
        of_audit(&with(|a| {
            a.tell = Some(told(&[("age", 0.93, false)]));
            a.utility.iter_mut().for_each(|u| u.constant_model = constant);
        }))
        .text()
    };
    let audit = clinic(600, 3);
    let u = audit.utility.unwrap();
    let (best, worst) = (u.without_noise, if u.higher_is_better { 1.0 } else { u.without_noise });
    let calm = if u.higher_is_better { 0.0 } else { 1e9 };
    assert!(of(calm).contains(" and costs "), "{}", of(calm));
    let drowned = of(if u.higher_is_better { worst } else { best });
    assert!(drowned.contains("and leaves nothing of the model"), "{drowned}");
}

#[test]
fn noise_that_was_solved_for_and_what_no_noise_hides_are_said() {
    let of = |shows: Option<Shows>, worst: f64, source: SigmaSource| {
        of_audit(&with(|a| {
            let mut tell = told(&[("age", worst, false)]);
            tell.attributes[0].shows = shows;
            (a.tell, a.sigma_source) = (Some(tell), source.clone());
        }))
    };
    let target = SigmaSource::TargetEta { eta: 0.3, statistic: Statistic::Max };
    let v = of(None, 0.51, target);
    assert_eq!(v.colour, Colour::Amber);
    assert!(v.text().contains("was solved for on these data"), "{}", v.text());
    for (shows, words) in [
        (
            Some(Shows::Unit),
            "No noise of any size hides that: do not release it. The unit of age was read off the data",
        ),
        (Some(Shows::Levels), "⟨levels⟩ or a ⟨schema⟩"),
        (Some(Shows::NoModel), "there would be no model"),
        (None, "More noise helps; how much cannot be told from a number this close to certainty"),
    ] {
        let v = of(shows, 1.0, SigmaSource::Given);
        assert_eq!(v.colour, Colour::Red);
        assert!(v.text().contains(words), "{}", v.text());
        let head = if shows.is_some() { "Not protected, and no noise would" } else { "Not protected" };
        assert_eq!(v.headline, head);
        assert!(!v.text().contains("read off, "), "{}", v.text());
    }
    // Where it is known how far apart the models are, so is what hides them: 5,000/(2 Φ⁻¹(0.6)) = 9,868 times.
    let v = of_audit(&with(|a| {
        let mut tell = told(&[("age", 1.0, false)]);
        tell.attributes[0].distance = Some(5000.0);
        (a.tell, a.sigma_source) = (Some(tell), SigmaSource::Given);
    }));
    assert!(
        v.text().contains("as much), would bring that to 60%") && v.text().contains("σ = 198"),
        "{}",
        v.text()
    );
}

/// Advice holds for the split that it was found on, and the same table with copies of a row is no calmer than without them.
#[test]
fn advice_names_its_split_and_equal_rows_are_never_green() {
    use leakscope_report::audit::Duplicates;
    let red = of_audit(&with(|a| a.tell = Some(told(&[("age", 0.9, false)]))));
    assert!(red.text().contains("⟨seed=42⟩"), "{}", red.text());
    let none = of_audit(&with(|a| (a.tell, a.seed) = (Some(told(&[("age", 0.9, false)])), None)));
    assert!(!none.text().contains("seed"), "{}", none.text());
    let equal = |beyond_chance| {
        of_audit(&with(|a| {
            let mut tell = told(&[("age", 0.51, false)]);
            tell.attributes[0].distance = Some(0.05);
            a.tell = Some(tell);
            a.data.duplicates = Some(Duplicates { rows: 30, largest: 31, beyond_chance });
        }))
    };
    assert_eq!(equal(false).colour, Colour::Green);
    let v = equal(true);
    assert_eq!(v.colour, Colour::Amber);
    // Φ(31 · 0.05/2) = 0.781.
    assert!(v.text().contains("31 rows are equal") && v.text().contains("about 78.1%"), "{}", v.text());
    assert!(v.text().contains("⟨id⟩") && v.open.iter().any(|r| r.fact.contains("equal")), "{}", v.text());
}

/// Attributes that there was no time for are tried before anybody is told to add noise for them.
#[test]
fn what_was_not_tried_asks_for_work_and_not_for_noise() {
    use leakscope_report::tell::Allowance;
    let of = |more_work| {
        of_audit(&with(|a| {
            let mut tell = told(&[("age", 0.51, false)]);
            (tell.left_out, tell.more_work) = (vec!["weight".into()], more_work);
            a.tell = Some(tell);
            set_min_sd(a, "weight", 5.0);
        }))
    };
    let v = of(Some(Allowance::Seconds(100.0)));
    assert!(v.text().contains("run it again with ⟨tell_budget=100⟩"), "{}", v.text());
    assert!(!v.text().contains("would bring that"), "{}", v.text());
    // Where no work helps, η says how much noise would.
    assert!(of(None).text().contains("would bring that to about"), "{}", of(None).text());
}

/// What is published of a release has one colour and one set of words, whatever was measured; its owner is told what is settled.
#[test]
fn what_was_measured_changes_nothing_that_is_published_and_its_owner_is_told() {
    use Means::Refits;
    use leakscope_report::release::{Counting, Measured, Owned};
    let statement = stated((0.99, Refits), Some((0.55, Refits)));
    let published = statement.for_publication();
    for (attribute, label) in [(0.51, 0.51), (0.6, 0.65), (0.99, 0.55), (1.0, 1.0)] {
        for by in [Refits, Means::Eta] {
            let mut other = stated((attribute, by), Some((label, by)));
            (other.eta.max, other.composed.eta_max) = (Some(3.0 * attribute), Some(4.0 * label));
            let tell = other.tell.as_mut().unwrap();
            (tell.more_noise, tell.withdraw_first) = (Some(attribute), vec!["release-1".into()]);
            assert_eq!(other.for_publication(), published);
        }
    }
    let v = of_release(&published);
    assert_eq!(
        (v.colour, v.decided_by().as_deref()),
        (Colour::Amber, Some("numbers that stay with the owner"))
    );
    assert!(v.grounds.is_empty() && v.text().contains("stays with its owner"), "{}", v.text());
    // A target is public: one under which values are read off is red.
    let mut target = statement.clone();
    (target.eta.target, target.eta.max) = (Some(Target { eta: 3.0, statistic: Statistic::Max }), Some(3.0));
    assert_eq!(of_release(&target.for_publication()).colour, Colour::Red);
    let owned = |at_least: f64| {
        let mut tell = told(&[("age", 1.0, false)]);
        tell.attributes[0].at_least = Some(at_least);
        let measured = Measured {
            files: vec![],
            n: 600,
            eta_mean: 0.1,
            eta_max: 0.3,
            counting: Counting::Exact,
            inference: None,
            instead: None,
            gain: None,
            tell: Some(tell),
            duplicates: None,
        };
        leakscope_report::verdict::of_owned(&Owned {
            statement: statement.clone(),
            verdict: None,
            measured,
            remarks: vec![],
        })
    };
    // Φ(1.5/2) = 77%: that is settled, and 1.5/(2 Φ⁻¹(0.6)) = 2.96 times the noise is the least, on the grid 3.36.
    let v = owned(1.5);
    assert_eq!(v.headline, "Released with too little noise");
    assert!(
        v.text().contains("it takes σ = 3.36 at least") && v.text().contains("⟨tell_budget=all⟩"),
        "{}",
        v.text()
    );
    let v = owned(0.1);
    assert!(v.headline.contains("not settled") && !v.text().contains("it takes σ"), "{}", v.text());
}

/// What refits did not settle is amber, or red where they show enough; never green, and never said to be read off.
#[test]
fn what_was_not_settled_is_said_and_is_never_green() {
    let of = |at_least: f64, distance: Option<f64>, others: f64| {
        let mut tell = told(&[("age", 1.0, false), ("weight", others, false)]);
        (tell.attributes[0].at_least, tell.attributes[0].distance) = (Some(at_least), distance);
        of_audit(&with(|a| (a.tell, a.sigma_source) = (Some(tell.clone()), SigmaSource::Given)))
    };
    for (at_least, others, colour) in [
        (0.1, 0.51, Colour::Amber),
        (1.0, 0.51, Colour::Amber),
        // Φ(1.5) = 0.93.
        (3.0, 0.51, Colour::Red),
        (0.1, 0.9, Colour::Red),
    ] {
        for distance in [None, Some(40.0)] {
            let v = of(at_least, distance, others);
            assert_eq!(v.colour, colour, "{at_least} {others}");
            assert!(!v.text().contains("read off") && !v.text().contains("No noise"), "{}", v.text());
            assert!(v.open.iter().any(|r| r.fact == "values that were not settled"), "{:?}", v.open);
        }
    }
    let v = of(1.0, None, 0.51);
    // Φ(0.5) = 0.691; 1/(2 Φ⁻¹(0.6)) = 1.9736 times the noise at least.
    assert!(
        v.text().contains("in at least 69.1% of cases") && v.text().contains("was not settled"),
        "{}",
        v.text()
    );
    assert!(
        v.text().contains("σ of at least 0.0395") && v.text().contains("⟨tell_budget=all⟩"),
        "{}",
        v.text()
    );
    // What is merely not excluded is no reason for noise: what refits have shown is, and below the limit nothing is.
    assert!(of(1.0, Some(40.0), 0.51).text().contains("σ of at least 0.0395"));
    let v = of(0.2, Some(40.0), 0.51);
    assert!(
        v.text().contains("run it again with ⟨tell_budget=all⟩") && !v.text().contains("σ = 1"),
        "{}",
        v.text()
    );
    // What is below the limit whatever it is leaves nothing open.
    let mut tell = told(&[("age", 0.58, false)]);
    tell.attributes[0].at_least = Some(0.01);
    let v = of_audit(&with(|a| (a.tell, a.sigma_source) = (Some(tell.clone()), SigmaSource::Given)));
    assert_eq!(v.colour, Colour::Green);
}
