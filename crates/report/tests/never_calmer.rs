//! Over random documents: no page is calmer than the worst number on it.

#![allow(clippy::unwrap_used)]

mod common;

use common::kinds::{attacked, balanced, guessed, released, stated};
use common::networks::{audit as network, informed, members, training};
use common::{clinic, set_min_sd, told};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::Variant;
use leakscope_report::choice::Stopped;
use leakscope_report::membership::Stated;
use leakscope_report::net::{self, Pictures, Stopped as TrainingStopped, Withheld};
use leakscope_report::page;
use leakscope_report::release::Means;
use leakscope_report::tell::AmongAll;
use leakscope_report::verdict::{
    Colour, EPSILON_ALARM, Facts, Noise, PROTECT_AT, Success, TOLD_AT, Verdict, decide, of_attack, of_audit,
    of_balance, of_bound, of_informed, of_membership, of_net_audit, of_release, of_training,
};
use proptest::prelude::*;

/// The colour that a page shows.
fn shown_on(html: &str) -> Colour {
    let class = html.split_once("<section class=\"verdict ").unwrap().1.split_once('"').unwrap().0;
    match class {
        "good" => Colour::Green,
        "care" => Colour::Amber,
        "bad" => Colour::Red,
        other => panic!("{other}"),
    }
}

/// Half the share of what was left to gain, above one half: by its definition.
fn of_guess(success: f64, baseline: f64) -> f64 {
    0.5 + 0.5 * ((success - baseline) / (1.0 - baseline)).max(0.0)
}

/// A page must be red where a number on it is: `told` on the scale of two possibilities.
fn never_calmer(verdict: &Verdict, html: &str, told: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(shown_on(html), verdict.colour);
    if told > TOLD_AT + 1e-9 {
        prop_assert_eq!(verdict.colour, Colour::Red, "{} is told", told);
    }
    if told > PROTECT_AT + 1e-9 {
        prop_assert_ne!(verdict.colour, Colour::Green, "{} is told", told);
    }
    prop_assert!(verdict.grounds.iter().all(|g| g.colour <= verdict.colour));
    Ok(())
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![0.5..1.0_f64, Just(0.5), Just(1.0), 0.99..1.0_f64, 0.58..0.62_f64, 0.73..0.77_f64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_audit_is_never_calmer_than_its_numbers(
        attribute in probability(), label in probability(), k in -3.0..3.0_f64, distances in any::<bool>(),
        among in proptest::option::of((3..20_usize, probability())), left_out in any::<bool>()
    ) {
        let mut audit = clinic(60, 2);
        // An estimate that is off by less than a third of the spread: Φ(2.56/2 · 3) is certainty.
        let sd = 14.2 * 10_f64.powf(k);
        set_min_sd(&mut audit, "age", sd);
        let local = if sd < 14.2 { 1.0 } else { 0.5 };
        if distances {
            let mut tell = told(&[("age", attribute, false), ("dose", label, true)]);
            tell.attributes[0].among_all = among.map(|(levels, worst)| AmongAll { levels, worst });
            tell.left_out = if left_out { vec!["weight".into()] } else { vec![] };
            audit.tell = Some(tell);
        }
        let among = among.map_or(0.5, |(levels, worst)| of_guess(worst, 1.0 / levels as f64));
        // What η says of an attribute whose values were put in place is no number that the colour rests on.
        let worst = if distances { attribute.max(label).max(among) } else { local };
        never_calmer(&of_audit(&audit), &page(&audit), worst)?;
        if !distances || left_out {
            prop_assert_ne!(of_audit(&audit).colour, Colour::Green);
        }
    }

    #[test]
    fn a_release_and_a_balance_are_never_calmer_than_their_eta(k in -3.0..4.0_f64) {
        let eta = 10_f64.powf(k);
        // At η = 1 and a spread of one an estimate is off by the spread.
        let told = if eta >= 1.0 { 1.0 } else { 0.5 };
        let r = released(1.0, eta);
        never_calmer(&of_release(&r), &leakscope_report::release_page(&r), told)?;
        let mut b = balanced(&[0.8, 0.1, 0.001], Variant::Weighted, Stopped::Converged);
        b.iterations.iter_mut().for_each(|s| (s.eta_max, s.eta_unweighted_max) = (eta, eta / 2.0));
        never_calmer(&of_balance(&b), &leakscope_report::balance_page(&b), told)?;
        prop_assert_ne!(of_balance(&b).colour, Colour::Green);
    }

    #[test]
    fn a_release_is_never_calmer_than_what_it_says_is_told(
        attribute in probability(), label in proptest::option::of(probability()), exact in any::<(bool, bool)>()
    ) {
        let by = |exact| if exact { Means::Refits } else { Means::Eta };
        let r = stated((attribute, by(exact.0)), label.map(|p| (p, by(exact.1))));
        never_calmer(&of_release(&r), &leakscope_report::release_page(&r), attribute.max(label.unwrap_or(0.5)))?;
        if label.is_none() || !(exact.0 && exact.1) {
            prop_assert_ne!(of_release(&r).colour, Colour::Green);
        }
    }

    #[test]
    fn guesses_are_never_calmer_than_bound_or_attack(mean in 0.4..1.0_f64, more in 0.0..1.0_f64, attack in 0.5..1.0_f64) {
        let mut f = guessed();
        let worst = mean + more * (1.0 - mean);
        f.bounds[0].success = mean;
        f.bounds[0].worst = Some(leakscope_report::bound::Worst { success: worst, advantage: worst });
        let told = of_guess(worst, 0.4);
        never_calmer(&of_bound(&f), &leakscope_report::bound_page(&f), told)?;
        let a = attacked(&[(Attacker::WhiteBox, 1.0, attack), (Attacker::BlackBox, 2.0, 0.5)]);
        never_calmer(&of_attack(&a), &leakscope_report::attack_page(&a), of_guess(attack, 0.5))?;
    }

    #[test]
    fn runs_and_accounts_are_never_calmer_than_epsilon_and_advantage(
        epsilon in 0.0..40.0_f64, advantage in proptest::option::of(0.0..1.0_f64), dfil in 1e-6..1e3_f64
    ) {
        let mut t = training(epsilon);
        t.privacy.as_mut().unwrap().promise.as_mut().unwrap().advantage = advantage;
        let of_epsilon = if epsilon > EPSILON_ALARM { 1.0 } else { 0.5 };
        let told = advantage.map_or(0.5, |a| 0.5 + 0.5 * a).max(of_epsilon);
        never_calmer(&of_training(&t), &net::training_page(&t), told)?;
        let mut a = network();
        a.dfil.iter_mut().for_each(|d| d.max = dfil);
        // Off by less than the spread per value; two values of a record are told apart at most twice as well as its absence.
        let local: f64 = if 1.0 / dfil < 0.5 * a.spread { 1.0 } else { 0.5 };
        a.training = Some(Box::new(t));
        let capped = local.min(advantage.map_or(1.0, |v| 0.5 + v));
        never_calmer(&of_net_audit(&a), &net::page(&a, &Pictures::default()), told.max(capped))?;
    }

    /// An audit of a run and attacks on it know whatever the run's own page knows against it: δ, an encoding that was read off the
    /// records, noise from a seed, divergence.
    #[test]
    fn a_page_about_a_run_is_never_calmer_than_the_page_of_the_run(
        epsilon in 0.0..10.0_f64, advantage in proptest::option::of(0.0..0.6_f64), delta in -9.0..-1.0_f64,
        kind in 0..4_usize, ended in 0..3_usize, records in 1..2_000_000_u64, dfil in -8.0..3.0_f64,
        chosen in any::<bool>(), area in 0.5..0.8_f64, shown in 0.0..0.4_f64
    ) {
        let mut t = training(epsilon);
        t.data.records = records;
        t.stopped = [TrainingStopped::Finished, TrainingStopped::Interrupted, TrainingStopped::Diverged][ended];
        let p = t.privacy.as_mut().unwrap();
        let promise = p.promise.as_mut().unwrap();
        (promise.advantage, promise.delta) = (advantage, 10f64.powf(delta));
        match kind {
            0 => {}
            1 => {
                (p.promise, p.steps_alone) = (None, p.promise.take());
                p.withheld = Some(Withheld::ReadOffRecords(vec!["the levels of race".into()]));
            }
            2 => (p.promise, p.withheld) = (None, Some(Withheld::NoiseFromSeed)),
            _ => t.privacy = None,
        }
        let run = of_training(&t).colour;
        let mut a = network();
        a.dfil.iter_mut().for_each(|d| d.max = 10f64.powf(dfil));
        (a.release.chosen, a.training) = (chosen, Some(Box::new(t.clone())));
        prop_assert!(of_net_audit(&a).colour >= run, "{:?}", of_net_audit(&a).headline);
        let promise = t.privacy.as_ref().and_then(|p| p.promise.as_ref());
        let mut m = members(area, promise.map(|p| p.epsilon), shown);
        (m.noise, m.data.records) = (t.privacy.is_some(), records);
        m.promise = promise.map(|p| Stated { epsilon: p.epsilon, delta: p.delta });
        // also by the promise alone, as documents of before have it
        if kind == 0 && ended < 2 && advantage.is_none() {
            prop_assert!(of_membership(&m).colour >= run, "{:?}", of_membership(&m).headline);
        }
        m.training = Some(Box::new(t));
        prop_assert!(of_membership(&m).colour >= run, "{:?}", of_membership(&m).headline);
        prop_assert_eq!(shown_on(&net::membership_page(&m)), of_membership(&m).colour);
    }

    /// Whatever is not a number is no reason to be calm, and more of any fact never makes a page calmer.
    #[test]
    fn more_is_never_calmer(
        p in probability(), q in probability(), epsilon in 0.0..20.0_f64, success in 0.3..1.0_f64, which in 0..7_usize
    ) {
        let facts = |x: f64| {
            let mut f = Facts { told: Some(p), epsilon: Some(epsilon), ..Facts::default() };
            let guessed = Some(Success { success: x, baseline: 0.3 });
            match which {
                0 => f.told = Some(x),
                1 => f.label_told = Some(x),
                2 => f.estimated = Some(x),
                3 => f.label_estimated = Some(x),
                4 => f.membership = Some(x),
                5 => f.bounded = guessed,
                _ => f.observed = guessed,
            }
            decide(&f)
        };
        let (low, high) = (q.min(success), q.max(success));
        prop_assert!(facts(low).colour <= facts(high).colour);
        prop_assert_eq!(facts(f64::NAN).colour, Colour::Red);
        let bare = Facts { told: Some(p), epsilon: Some(epsilon), ..Facts::default() };
        prop_assert_eq!(decide(&Facts { noise: Noise::Absent, ..bare }).colour, Colour::Red);
        let unit = decide(&Facts { noise: Noise::Unit, ..bare }).colour;
        prop_assert!(unit >= Colour::Amber);
        let unfinished = decide(&Facts { unfinished: true, ..bare }).colour;
        prop_assert!(unfinished >= Colour::Amber);
    }
}

/// Models of a δ that leaves records out are not green, whatever ε is.
#[test]
fn an_informed_adversary_counts_delta() {
    let mut i = informed(0.5, 2.0);
    assert_eq!(of_informed(&i).colour, Colour::Green);
    i.delta = 1.0 / 1_001.0;
    assert_eq!(of_informed(&i).colour, Colour::Amber);
    i.delta = 0.02;
    assert_eq!(of_informed(&i).colour, Colour::Red);
}

/// What the noise of the steps says about who took part bounds nothing where the encoding was read off the records.
#[test]
fn a_bound_that_leaves_the_encoding_out_hides_no_estimate() {
    let mut t = training(0.1);
    let p = t.privacy.as_mut().unwrap();
    p.promise.as_mut().unwrap().advantage = Some(0.02);
    let mut a = network();
    a.dfil.iter_mut().for_each(|d| d.max = 1e9);
    a.training = Some(Box::new(t.clone()));
    assert_ne!(of_net_audit(&a).colour, Colour::Red);
    let p = t.privacy.as_mut().unwrap();
    (p.promise, p.steps_alone) = (None, p.promise.take());
    p.withheld = Some(Withheld::ReadOffRecords(vec!["the levels of race".into()]));
    a.training = Some(Box::new(t));
    assert_eq!(of_net_audit(&a).colour, Colour::Red);
}

#[test]
fn nothing_on_a_page_is_no_green_page() {
    assert_eq!(decide(&Facts::default()).colour, Colour::Amber);
}
