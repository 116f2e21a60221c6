//! The verdict: it must never sound better than the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use common::kinds::{attacked, costs, released, stated};
use common::networks::{audit as network, training};
use common::{clinic, set_min_sd, situations, told};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::claim::{Bound, Theorem};
use leakscope_core::dp::{Accountant, Adjacency, account};
use leakscope_report::account::Costs;
use leakscope_report::audit::{Audit, Label, Limit, ReadOff, SigmaSource};
use leakscope_report::choice::Statistic;
use leakscope_report::net::{self, NetAudit, Stopped as TrainingStopped, Training, Withheld};
use leakscope_report::noise::Source;
use leakscope_report::release::{Means, Target};
use leakscope_report::tell::Shows;
use leakscope_report::verdict::{
    Colour, Facts, PROTECT_AT, TOLD_AT, Verdict, decide, of_account, of_attack, of_audit, of_net_audit,
    of_release, of_training,
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
    assert!(v.text().ends_with("have two values of every attribute tried before release."));
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
             and in 58.6% for the median record; a coin toss is right in 50%."
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
        assert!(html.contains(&v.headline) && html.contains("What decides this colour"), "{name}");
    }
}

/// A sentence ends with a full stop and a space; a decimal point has none.
fn sentences(v: &Verdict) -> usize {
    v.text().matches(". ").count() + 1
}

#[test]
fn verdicts_on_networks_are_short_and_give_one_number_to_a_reconstruction() {
    let withheld = |reason: Withheld| {
        let mut t = training(2.0);
        let p = t.privacy.as_mut().unwrap();
        (p.promise, p.withheld) = (None, Some(reason));
        t
    };
    let read = vec!["mean and spread of age".to_owned(), "the levels of race".to_owned()];
    let mut open = training(2.0);
    open.privacy = None;
    let mut runs = vec![
        training(0.5),
        training(34.0),
        withheld(Withheld::NoiseFromSeed),
        withheld(Withheld::ReadOffRecords(read)),
        open,
    ];
    for stopped in [TrainingStopped::Interrupted, TrainingStopped::Diverged] {
        runs.extend(runs.clone().into_iter().take(5).map(|t| Training { stopped, ..t }));
    }
    for t in runs {
        let v = of_training(&t);
        assert!((1..=3).contains(&sentences(&v)), "{}", v.text());
        let stated = t.privacy.as_ref().is_some_and(|p| p.promise.is_some());
        assert_eq!(v.text().contains("differentially private"), stated, "{}", v.text());
        // accounts of the same secret speak of the run alone, those of another leave one step and say that it adds up
        for (label_secret, exact) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut a = NetAudit { label_secret, training: Some(Box::new(t.clone())), ..network() };
            if !exact {
                (a.min_mse, a.trace) = (None, net::TraceKind::Estimate { probes: 3 });
            }
            let v = of_net_audit(&a);
            assert!((1..=3).contains(&sentences(&v)), "{}", v.text());
            assert!(v.text().matches("mean squared error").count() <= 1, "{}", v.text());
            assert_eq!(v.text().contains("differentially private"), stated, "{}", v.text());
        }
    }
    // noise that is there and secret, but of which no ε is known, is no green page
    let v = of_training(&withheld(Withheld::ReadOffRecords(vec!["the levels of race".into()])));
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Amber, "Trained with noise, nothing promised"));
    assert!(v.text().contains("no ε is stated") && v.text().contains("the levels of race"), "{}", v.text());
    assert_eq!(of_training(&withheld(Withheld::NoiseFromSeed)).colour, Colour::Red);
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

/// A step that lays bare whichever record it draws has ε = 0 where δ is the chance to be drawn.
#[test]
fn a_delta_that_hides_what_is_laid_bare_is_not_green() {
    for (rate, steps, delta) in [(0.01, 10, 0.0957), (9e-4, 1, 1e-3), (1e-5, 1, 1.01e-5)] {
        let accountant = Accountant::dp_sgd(0.01, rate, steps, Adjacency::AddRemove).unwrap();
        let costs = Costs::of(account(&accountant, delta).unwrap(), false);
        assert!(costs.account.epsilon.pld.upper < 0.01, "{rate}");
        assert_ne!(of_account(&costs).colour, Colour::Green, "{rate}");
    }
    let mut run = training(0.0);
    run.privacy.as_mut().unwrap().promise.as_mut().unwrap().delta = 0.011;
    assert_eq!(of_training(&run).colour, Colour::Red);
    run.privacy.as_mut().unwrap().promise.as_mut().unwrap().delta = 1.0 / run.data.records.max(1_000) as f64;
    assert_eq!(of_training(&run).colour, Colour::Amber);
}

/// Steps with too little noise are not calmer because the encoding was read off the records too.
#[test]
fn to_know_less_of_a_run_calms_nobody() {
    let withheld = |epsilon: f64| {
        let mut run = training(epsilon);
        let privacy = run.privacy.as_mut().unwrap();
        privacy.steps_alone = privacy.promise.take();
        privacy.withheld = Some(Withheld::ReadOffRecords(vec!["the scaling of age".into()]));
        of_training(&run)
    };
    assert_eq!(withheld(0.5).colour, Colour::Amber);
    assert_eq!(withheld(25_000.0).colour, Colour::Red);
}

#[test]
fn an_encoding_that_was_read_off_the_records_makes_no_page_green() {
    let green = with(|a| a.tell = Some(told(&[("age", 0.55, false), ("weight", 0.51, false)])));
    assert_eq!(of_audit(&green).colour, Colour::Green);
    let read_off = with(|a| {
        a.tell = Some(told(&[("age", 0.55, false), ("weight", 0.51, false)]));
        a.data.read_off = vec![ReadOff::LargestNorm];
    });
    assert_eq!(of_audit(&read_off).colour, Colour::Amber);
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
    let v = of_release(&stated((0.9, Refits), Some((0.55, Refits))));
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
    assert!(v.text().contains("σ of at least 0.0395") && v.text().contains("⟨tell_budget⟩"), "{}", v.text());
    // An upper limit that is known suffices.
    assert!(of(1.0, Some(40.0), 0.51).text().contains("would bring that to 60%"));
    // What is below the limit whatever it is leaves nothing open.
    let mut tell = told(&[("age", 0.58, false)]);
    tell.attributes[0].at_least = Some(0.01);
    let v = of_audit(&with(|a| (a.tell, a.sigma_source) = (Some(tell.clone()), SigmaSource::Given)));
    assert_eq!(v.colour, Colour::Green);
}

#[test]
fn what_attacks_did_not_do_is_never_safety() {
    let quiet = attacked(&[(Attacker::WhiteBox, 1.0, 0.5)]);
    assert_eq!(of_attack(&quiet).colour, Colour::Amber);
    // The black box wins: no page says that no attack did.
    let black = attacked(&[(Attacker::WhiteBox, 1.0, 0.5), (Attacker::BlackBox, 1.0, 0.9)]);
    assert_eq!(of_attack(&black).colour, Colour::Red);
}

#[test]
fn a_canary_is_judged_where_an_attacker_may_gain_most() {
    // 17.8% is no more than a coin toss that is right 6 times in 10, and 108 times the odds of a guess among 500
    for (success, colour) in
        [(0.004, Colour::Green), (0.178, Colour::Amber), (0.3, Colour::Amber), (0.9, Colour::Red)]
    {
        let found = common::kinds::canary(success);
        let v = leakscope_report::verdict::of_canary(&found);
        assert_eq!(v.colour, colour, "{}", v.text());
        assert!(v.text().starts_with("At σ = 0.3 and "), "{}", v.text());
        let shown = leakscope_report::format::share_at_most(success);
        assert!(v.text().contains(&format!("above {shown}; without the model it is 0.2%")), "{}", v.text());
        // page and terminal say the same
        let text = leakscope_report::canary_summary(&found);
        assert!(text.starts_with(&v.headline) && text.contains(&v.text()));
    }
    let calm = leakscope_report::verdict::of_canary(&common::kinds::canary(0.3)).text();
    assert!(calm.contains("Up to 2T/σ² = 0.5 the odds of naming it grow at most 2.72 times"), "{calm}");
    // the rule is on the page, and the terminal has the intervals of attacks
    let page = leakscope_report::canary_page(&common::kinds::canary(0.178));
    assert!(page.contains("odds of naming the secret") && page.contains("from seven candidates on"));
    let text = leakscope_report::canary_summary(&common::kinds::canary(0.3));
    assert!(text.contains("0.269 (0.133 to 0.404)"), "{text}");
    // an attack that was played can only make it worse
    let mut played = common::kinds::canary(0.004);
    played.points[0].attacks[0].success.value = 0.9;
    assert_eq!(leakscope_report::verdict::of_canary(&played).colour, Colour::Red);
}

#[test]
fn texts_are_never_green_and_say_what_words_are_off_by() {
    use leakscope_report::verdict::of_text_audit;
    for (dfil, colour) in [(1e-6, Colour::Amber), (1e4, Colour::Red)] {
        let (audit, _) = common::kinds::texts(dfil);
        let v = of_text_audit(&audit);
        assert_eq!(v.colour, colour, "{}", v.text());
        assert!(v.text().contains("number 12 by likelihood"), "{}", v.text());
        let summary = leakscope_report::text_audit_summary(&audit);
        assert!(summary.contains(&v.text()) && summary.contains("2.1"));
    }
    let (mut audit, _) = common::kinds::texts(1e-6);
    audit.release.chosen = false;
    assert_eq!(of_text_audit(&audit).headline, "A unit of noise");
    audit.exposures[0].rank = 1;
    assert!(of_text_audit(&audit).text().contains("can pull it out"));
}

/// What an attack did not find makes nothing green, and no noise at all is red.
#[test]
fn reconstructions_are_judged_by_how_often_they_are_known_again() {
    use leakscope_report::verdict::of_inversion;
    let judged =
        |identified: f64, sigmas: &[f64]| of_inversion(&common::networks::inverted(identified, sigmas));
    assert_eq!(judged(0.5, &[0.1, 1.0]).colour, Colour::Amber);
    assert_eq!(judged(0.95, &[0.1, 1.0]).colour, Colour::Red);
    assert_eq!(judged(0.5, &[0.0, 1.0]).colour, Colour::Red);
    let text = judged(0.95, &[0.1, 1.0]).text();
    assert!(text.contains("σ = 0.1") && text.contains("95%") && text.contains("choose more"), "{text}");
    assert!(judged(0.55, &[0.1]).text().contains("does not clearly beat the coin"));
    assert!(judged(0.5, &[0.1]).text().contains("no guarantee"));
    let summary = leakscope_report::net::inversion_summary(&common::networks::inverted(0.9, &[0.0, 0.1]));
    assert!(summary.contains("known again") && summary.contains("norm of PLIS and SSIM"), "{summary}");
}

/// A small ε hides who took part whatever an attack does not find; a run that canaries refute is red.
#[test]
fn membership_is_judged_by_epsilon_attacks_and_canaries() {
    use leakscope_report::verdict::of_membership;
    let judged = |area, epsilon, shown| of_membership(&common::networks::members(area, epsilon, shown));
    assert_eq!(judged(0.51, Some(0.5), 0.0).colour, Colour::Green);
    assert_eq!(judged(0.51, Some(4.0), 0.0).colour, Colour::Amber);
    assert_eq!(judged(0.51, None, 0.0).colour, Colour::Red);
    assert_eq!(judged(0.9, Some(0.5), 0.0).colour, Colour::Red);
    let broken = judged(0.51, Some(0.5), 1.0);
    assert_eq!(
        (broken.colour, broken.headline.as_str()),
        (Colour::Red, "The training code breaks its promise")
    );
    assert!(broken.text().contains("above the 0.5"), "{}", broken.text());
    let text = leakscope_report::net::membership_summary(&common::networks::members(0.51, Some(0.5), 0.0));
    assert!(text.contains("likelihood ratio attack") && text.contains("no guarantee"), "{text}");
}

/// The informed adversary: ε may cover, reconstructions that are known again warn, and no noise is red.
#[test]
fn the_last_record_is_judged_by_epsilon_and_by_what_was_known_again() {
    use leakscope_report::verdict::of_informed;
    let judged = |identified, sigma| of_informed(&common::networks::informed(identified, sigma));
    assert_eq!(judged(0.5, 2.0).colour, Colour::Green);
    assert_eq!(judged(0.5, 0.5).colour, Colour::Amber);
    assert_eq!(judged(0.95, 2.0).colour, Colour::Red);
    assert_eq!(judged(0.5, 0.0).colour, Colour::Red);
    let text = judged(0.95, 2.0).text();
    assert!(
        text.contains("0.011") && text.contains("clearly less than the 0.044") && text.contains("95"),
        "{text}"
    );
    let text = leakscope_report::net::informed_summary(&common::networks::informed(0.9, 2.0));
    assert!(text.contains("label alone") && text.contains("10,000 models"), "{text}");
}

/// By hand: of two candidates the rule of odds says no more than that of a coin toss, of many it is the stricter one.
#[test]
fn of_many_candidates_the_odds_decide() {
    use leakscope_report::verdict::Success;
    let of = |success: f64, baseline: f64| {
        decide(&Facts { bounded: Some(Success { success, baseline }), ..Facts::default() })
    };
    for m in [2.0, 3.0, 6.0] {
        // right as often as 60% at even odds, just below
        let baseline = 1.0 / m;
        assert_eq!(of(baseline + 0.199 * (1.0 - baseline), baseline).colour, Colour::Green, "{m}");
    }
    assert_eq!(of(1.0 / 7.0 + 0.199 * 6.0 / 7.0, 1.0 / 7.0).colour, Colour::Amber);
    assert_eq!(of(0.178, 1.0 / 420.0).colour, Colour::Amber);
    assert_eq!(of(0.0064, 1.0 / 420.0).colour, Colour::Green);
    assert_eq!(of(0.0066, 1.0 / 420.0).colour, Colour::Amber);
    // half of all secrets among a million
    assert_eq!(of(0.4, 1e-6).colour, Colour::Red);
    for (success, baseline, odds) in
        [(0.5, 0.5, 1.0), (0.75, 0.5, 3.0), (0.2, 0.5, 1.0), (1.0, 1.0, 1.0), (1.0, 0.5, f64::INFINITY)]
    {
        assert_eq!(Success { success, baseline }.odds(), odds);
    }
    assert_eq!(of(0.5, 0.0).colour, Colour::Red);
    assert_eq!(of(f64::NAN, 0.1).colour, Colour::Red);
}
