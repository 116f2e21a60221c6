//! The verdicts on networks, texts, accounts and attacks: they must never sound better than the numbers.

#![allow(clippy::unwrap_used)]

mod common;

use common::kinds::attacked;
use common::networks::{audit as network, training};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::dp::{Accountant, Adjacency, account};
use leakscope_report::account::Costs;
use leakscope_report::net::{self, NetAudit, Stopped as TrainingStopped, Training, Withheld};
use leakscope_report::verdict::{
    Colour, Facts, Verdict, decide, of_account, of_attack, of_net_audit, of_training,
};

/// How many sentences a verdict has.
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

/// What a run promises is about its own noise: under less, or another clip, the numbers of a step are held by nothing.
#[test]
fn a_promise_calms_no_step_with_other_noise_than_the_runs() {
    let with = |change: &dyn Fn(&mut NetAudit)| {
        let mut a = NetAudit { training: Some(Box::new(training(0.5))), ..network() };
        a.training.as_mut().unwrap().privacy.as_mut().unwrap().promise.as_mut().unwrap().advantage =
            Some(0.05);
        a.eta = None;
        a.dfil.as_mut().unwrap().max = 1e9;
        a.training.as_mut().unwrap().accounts = None;
        change(&mut a);
        of_net_audit(&a)
    };
    // The run as it was: two values are at most twice as far apart as either is from absence.
    assert_eq!(with(&|_| ()).colour, Colour::Green);
    let less = with(&|a| a.release.sigma = 1e-3);
    assert_eq!((less.colour, less.headline.as_str()), (Colour::Red, "Not protected"));
    // The run itself promises what it did, and the page says that this is about something else.
    assert!(less.text().contains("not under those that are measured here (σ = 0.001)"), "{}", less.text());
    assert!(!less.text().contains("protects nobody"), "{}", less.text());
    assert_eq!(with(&|a| a.release.clip = Some(100.0)).colour, Colour::Red);
    // Little is told, and yet nothing covers every attacker.
    let quiet = with(&|a| {
        a.release.sigma = 1.9;
        a.dfil.as_mut().unwrap().max = 1e-9;
    });
    assert_eq!(quiet.colour, Colour::Amber);
    assert_eq!(with(&|a| a.release.sigma = 4.0).colour, Colour::Green);
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
fn what_attacks_did_not_do_is_never_safety() {
    let quiet = attacked(&[(Attacker::WhiteBox, 1.0, 0.5)]);
    assert_eq!(of_attack(&quiet).colour, Colour::Amber);
    // The black box wins: no page says that no attack did.
    let black = attacked(&[(Attacker::WhiteBox, 1.0, 0.5), (Attacker::BlackBox, 1.0, 0.9)]);
    assert_eq!(of_attack(&black).colour, Colour::Red);
    assert_eq!(of_attack(&quiet).headline, "No attack did much better than a guess");
    // Clearly ahead, and not enough for red: the headline is no calmer than the table.
    let ahead = attacked(&[(Attacker::WhiteBox, 1.0, 0.5), (Attacker::BlackBox, 1.0, 0.58)]);
    let v = of_attack(&ahead);
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Amber, "Some attack did better than a guess"));
    // One noise was tried, and nothing is said of a smallest and a largest.
    assert!(!v.text().contains("smallest") && v.text().contains("The black box guessed 58%"), "{}", v.text());
    // A wide interval is no safety: it asks for more trials.
    let mut wide = quiet.clone();
    wide.results[0].advantage.ci_high = 0.4;
    let v = of_attack(&wide);
    assert_eq!(v.headline, "Too few trials to say how attacks do");
    assert!(v.text().contains("⟨trials⟩") && v.text().contains("40%"), "{}", v.text());
}

/// One command, whole, for the iterations whose leakage is most even with the weights counted.
#[test]
fn a_balancing_advises_one_release_that_runs() {
    use leakscope_core::balance::Variant;
    use leakscope_report::balance::{Counted, CountedEta};
    use leakscope_report::choice::Stopped;
    let eta = |spread| CountedEta { mean: 0.5, max: 5.0, spread };
    let mut b = common::kinds::balanced(&[0.5, 0.3, 0.1, 0.01], Variant::Weighted, Stopped::Converged);
    b.attribute = None;
    b.counted = Some(Counted { kept: eta(0.4), most_even: 2, at_most_even: eta(0.2) });
    let text = leakscope_report::verdict::of_balance(&b).text();
    assert_eq!(text.matches("--balance").count() + text.matches("balance=").count(), 1, "{text}");
    assert!(text.contains("--balance 2 --sigma 1 --out release"), "{text}");
    assert!(text.contains("--target ") && text.contains("--l2 ") && text.contains("--model "), "{text}");
}

#[test]
fn a_canary_is_judged_where_an_attacker_may_gain_most() {
    // 17.8% is no more than a coin toss that is right 6 times in 10, and 108 times the odds of a guess among 500
    for (success, colour) in
        [(0.004, Colour::Green), (0.178, Colour::Amber), (0.3, Colour::Amber), (0.9, Colour::Red)]
    {
        let actual = common::kinds::canary(success);
        let v = leakscope_report::verdict::of_canary(&actual);
        assert_eq!(v.colour, colour, "{}", v.text());
        assert!(v.text().starts_with("At σ = 0.3 and "), "{}", v.text());
        let shown = leakscope_report::format::share_at_most(success);
        assert!(v.text().contains(&format!("above {shown}; without the model it is 0.2%")), "{}", v.text());
        // page and terminal say the same
        let text = leakscope_report::canary_summary(&actual);
        assert!(text.starts_with(&v.headline) && text.contains(&v.text()));
    }
    let calm = leakscope_report::verdict::of_canary(&common::kinds::canary(0.3)).text();
    assert!(calm.contains("Up to 2T/σ² = 0.5 the odds of naming it grow at most 2.72 times"), "{calm}");
    // the rule is on the page, and the terminal has the intervals of attacks
    let page = leakscope_report::canary_page(&common::kinds::canary(0.178));
    assert!(page.contains("odds of naming the secret") && page.contains("from seven candidates on"));
    let text = leakscope_report::canary_summary(&common::kinds::canary(0.3));
    assert!(text.contains("0.269 (0.133 to 0.404)"), "{text}");
    // no bound is no bound, in words that say so
    let open = leakscope_report::verdict::of_canary(&common::kinds::canary(1.0)).text();
    assert!(open.contains("no bound keeps anybody from naming the secret for certain"), "{open}");
    assert!(!open.contains("above 100%") && !open.contains("without bound at most"), "{open}");
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
    // A red page says why it is red.
    assert_eq!(judged(0.95, &[0.1]).headline, "Records are reconstructed from their gradients");
    assert_eq!(judged(0.5, &[0.0, 1.0]).headline, "Nothing hides the records");
    // Less noise than the run had is there for comparison.
    let mut of_run = common::networks::inverted(0.95, &[0.0, 1.0]);
    (of_run.attack.sigma, of_run.levels[1].identified) =
        (Some(1.0), common::networks::inverted(0.5, &[1.0]).levels[0].identified.clone());
    let v = of_inversion(&of_run);
    assert_eq!(v.colour, Colour::Amber, "{}", v.text());
    assert!(v.headline.starts_with("At the noise that counts") && v.text().contains("σ = 1"), "{}", v.text());
    of_run.levels[1].identified = of_run.levels[0].identified.clone();
    assert_eq!(of_inversion(&of_run).colour, Colour::Red);
    // Of one record alone nobody sees what records differ by: what the first layer gives is judged by the range of values.
    let mut alone = common::networks::inverted(0.5, &[0.1]);
    alone.spread = 0.0;
    alone.levels[0].first_layer = Some(leakscope_core::claim::Observed::of_hits(0, 40, 1));
    assert_eq!(of_inversion(&alone).colour, Colour::Red);
    let mut exact = common::networks::inverted(0.5, &[0.1, 1.0]);
    exact.levels[1].first_layer = Some(leakscope_core::claim::Observed::of_hits(0, 40, 1));
    let v = of_inversion(&exact);
    assert_eq!((v.colour, v.headline.as_str()), (Colour::Red, "The first layer gives records away"));
    assert!(v.text().contains("in one step, without any search: at σ = 1"), "{}", v.text());
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
    // What lies above the promise is never passed over.
    let amber = (Colour::Amber, "Not shown to hide who took part");
    let red = (Colour::Red, "An attack found more than the run allows");
    // 60 of 1,000 found are many where one of 1,000 others is taken for a member, and may be chance where one of 50 is
    for (hits, others, verdict, words) in [
        (3, 1000, amber, "by chance"),
        (60, 1000, red, "chance alone does not explain it"),
        (60, 50, amber, "false positives may be"),
    ] {
        let mut m = common::networks::members(0.51, Some(0.5), 0.0);
        let point = &mut m.attacks[1].points[0];
        point.true_positive = leakscope_core::claim::Observed::of_rare_hits(hits, 1000, 1);
        point.false_positive = leakscope_core::claim::Observed::of_rare_hits(1, others, 1);
        let v = of_membership(&m);
        assert_eq!((v.colour, v.headline.as_str()), verdict, "{}", v.text());
        assert!(v.text().contains(words) && v.text().contains("training code"), "{}", v.text());
    }
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
