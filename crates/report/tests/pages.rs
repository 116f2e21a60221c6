//! Pages of balance, attack and release: verdict first, observed stays observed, hostile names stay text.

mod common;

use common::kinds::*;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::Variant;
use leakscope_report::attack::{self, Attack};
use leakscope_report::balance::Balance;
use leakscope_report::bound::SecretBounds;
use leakscope_report::choice::Stopped;
use leakscope_report::figure::Claim;
use leakscope_report::release::Release;
use leakscope_report::{account_page, attack_page, balance_page, bound_page, document, release_page};

fn safe(page: &str) {
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;"));
    assert!(!page.contains("NaN") && !page.contains("http://") && !page.contains("https://"));
    assert!(page.find("class=\"verdict").is_some_and(|v| page.find("class=\"card").is_none_or(|c| v < c)));
}

#[test]
fn a_balance_says_whether_it_worked() {
    for (stds, variant, stopped, level) in [
        (&[0.8, 0.1, 0.001][..], Variant::Weighted, Stopped::Converged, ">Balanced, not protected<"),
        (&[0.8, 0.1, 0.01], Variant::Weighted, Stopped::Iterations, "Balanced within 5%"),
        (&[0.8, 0.5, 0.3], Variant::Weighted, Stopped::Iterations, "Still converging"),
        (&[0.8, 0.1, 0.3], Variant::Weighted, Stopped::Iterations, "Did not converge"),
        (&[0.8, 0.1, 0.3], Variant::Weighted, Stopped::Vanished, "Stopped early"),
        (&[0.8, 0.9, 1.3], Variant::Unweighted, Stopped::Vanished, "Not equalised"),
    ] {
        let b = balanced(stds, variant, stopped);
        let page = balance_page(&b);
        safe(&page);
        assert!(page.contains(level), "{level}");
        let back: Balance = serde_json::from_str(&document(&b)).expect("what was written can be read");
        assert_eq!(back, b);
    }
}

/// Pages with exact numbers about data say that they are not to be published; those that are made for it, or rest on no data,
/// do not.
#[test]
fn every_page_says_whose_it_is() {
    for (kind, page) in common::pages::every_kind() {
        let private = match kind {
            "audit"
            | "wide audit"
            | "explored audit"
            | "balance"
            | "attack"
            | "network"
            | "training"
            | "inversion"
            | "informed"
            | "membership"
            | "texts"
            | "release for its owner"
            | "comparison" => true,
            "bound" => guessed().data.is_some(),
            "release" | "published release" | "account" | "reproduction" | "canary" | "index"
            | "shared audit" => false,
            other => panic!("{other}: is it for publication?"),
        };
        assert_eq!(page.contains("For the owner of the data only."), private, "{kind}");
    }
}

#[test]
fn an_attack_page_tells_leaks_from_what_the_model_says_about_anybody() {
    let quiet = attacked(&[
        (Attacker::WhiteBox, 0.1, 0.5),
        (Attacker::WhiteBox, 10.0, 0.5),
        (Attacker::BlackBox, 0.1, 0.8),
        (Attacker::BlackBox, 10.0, 0.7),
    ]);
    let page = attack_page(&quiet);
    safe(&page);
    assert!(page.contains("Attacks succeed") && page.contains("anybody"));
    let loud = attacked(&[(Attacker::WhiteBox, 0.1, 0.99), (Attacker::WhiteBox, 10.0, 0.5)]);
    assert!(attack_page(&loud).contains("From σ = 10 on"));
    let always = attacked(&[(Attacker::WhiteBox, 0.1, 0.99), (Attacker::Informed, 10.0, 0.9)]);
    let page = attack_page(&always);
    assert!(page.contains("at every noise tried"));
    assert!(page.contains("kind observed") && !page.contains("kind proved") && page.contains("no guarantee"));
}

#[test]
fn results_are_flat_in_json_and_come_back_as_observed() {
    let a = attacked(&[(Attacker::WhiteBox, 0.1, 0.75)]);
    let json: serde_json::Value = serde_json::from_str(&document(&a)).expect("valid JSON");
    let first = &json["results"][0];
    assert_eq!(first["accuracy"], 0.75);
    assert_eq!(first["ci_low"], 0.73);
    assert_eq!(first["advantage"], 0.5);
    assert_eq!(json["baseline"]["accuracy"], 0.5);
    let back: Attack = serde_json::from_value(json).expect("what was written can be read");
    assert_eq!(back, a);
}

#[test]
fn a_release_states_mechanism_loss_and_composition() {
    let r = released(0.5, 0.3);
    let page = release_page(&r);
    safe(&page);
    for part in ["0.5</b>", "0.300", "0.520", "budget of 0.6", "Exact discrete Gaussian"] {
        assert!(page.contains(part), "{part}");
    }
    let back: Release = serde_json::from_str(&document(&r)).expect("what was written can be read");
    assert_eq!(back, r);
}

#[test]
fn a_page_of_bounds_says_the_tightest_first_rounded_up_and_marks_what_was_observed() {
    let answer = guessed();
    let page = bound_page(&answer);
    safe(&page);
    assert!(page.contains("45.1%") && page.contains("chosen: 0.3"));
    assert!(page.find(">45.1%<").unwrap() < page.find(">60%<").unwrap());
    assert!(
        page.contains("(observed)")
            && page.contains("class=\"kind proved\"")
            && page.contains("kind observed")
    );
    assert_eq!(answer.figures[0].series[0].claim, Claim::Bound);
    // Numbers without bound survive the JSON.
    let back: SecretBounds = serde_json::from_str(&document(&answer)).unwrap();
    assert_eq!(back, answer);
    let only_curves = SecretBounds { bounds: vec![], sentences: vec![HOSTILE.into()], ..answer };
    let page = bound_page(&only_curves);
    safe(&page);
    assert!(page.contains("In short"));
}

#[test]
fn a_page_of_an_account_says_what_was_assumed() {
    let costs = |assumed| costs(2.0, 3, assumed);
    let page = account_page(&costs(true));
    assert!(!page.contains("NaN") && !page.contains("http://") && !page.contains("https://"));
    assert!(page.find("class=\"verdict").unwrap() < page.find("class=\"card").unwrap());
    assert!(page.contains("was assumed") && page.contains("add/remove") && page.contains("analytically"));
    assert!(!account_page(&costs(false)).contains("was assumed"));
    let json: serde_json::Value = serde_json::from_str(&costs(true).json()).unwrap();
    assert!(json["epsilon"]["rdp"].is_number() && json["epsilon"]["pld"]["upper"].is_number());
}

/// Attacks with tenths before and after balancing; the k-th tenth is guessed `before(k)`, then `after(k)` of the time.
fn tenths(before: impl Fn(f64) -> f64, after: impl Fn(f64) -> f64) -> Attack {
    let mut a = attacked(&[(Attacker::WhiteBox, 1.0, 0.8)]);
    let of = |balanced: bool, k: usize, accuracy: f64| attack::Decile {
        sigma: 1.0,
        decile: k,
        balanced,
        records: 100,
        accuracy: observed(accuracy),
    };
    a.deciles =
        (1..=10).flat_map(|k| [of(false, k, before(k as f64)), of(true, k, after(k as f64))]).collect();
    a.balance = Some(attack::Balanced {
        iterations: 10,
        spread_before: 0.5,
        spread_after: 0.001,
        eta_mean_at_unit_noise: 1.0,
    });
    a
}

#[test]
fn tenths_that_differ_after_balancing_are_not_called_equal() {
    let apart = attack_page(&tenths(|k| 0.5 + 0.04 * k, |k| 0.9 - 0.04 * k));
    assert!(apart.contains("guessed more often than the one that leaks least"), "{apart}");
    assert!(
        apart.contains("still guessed differently often, from 50% to 86%, by more than chance"),
        "{apart}"
    );
    assert!(apart.contains("too large for it at this scaling and noise"));
    let mut uneven = tenths(|k| 0.5 + 0.04 * k, |k| 0.5 + 0.03 * k);
    uneven.balance.as_mut().unwrap().spread_after = 2.0;
    let uneven = attack_page(&uneven);
    assert!(uneven.contains("η itself is not equal yet") && !uneven.contains("Equal η"), "{uneven}");
    let close = attack_page(&tenths(|k| 0.9 - 0.04 * k, |_| 0.7));
    assert!(close.contains("guessed less often than the one that leaks least"), "{close}");
    assert!(
        close.contains("no proof that there is none") && !close.contains("by more than chance"),
        "{close}"
    );
}

#[test]
fn sentences_that_start_with_a_symbol_keep_it() {
    let mut r = attack_page(&attacked(&[(Attacker::WhiteBox, 1.0, 0.8)]));
    assert!(!r.contains('Η'), "a capital eta");
    let mut a = attacked(&[(Attacker::WhiteBox, 1.0, 0.8)]);
    a.warnings = vec!["η of a record is small".into(), "so is σ".into()];
    r = attack_page(&a);
    assert!(r.contains("η of a record is small.") && r.contains("So is σ."), "{r}");
}

/// A page to share: no id, no label of a record, no picture, no text.
#[test]
fn a_page_to_share_names_and_shows_no_record() {
    use common::networks::{audit, informed, inverted, learned, members, pictures, reconstructed, training};
    use leakscope_report::net;
    const SECRET: &str = "the-record-of-Ada";
    let shared = |kind: &str, page: String, own: String| {
        assert!(own.contains("For the owner of the data only."), "{kind}");
        assert!(page.contains("For readers whom the owner of the data trusts."), "{kind}");
        assert!(!page.contains(SECRET) && !page.contains("<img"), "{kind}");
    };
    let mut a = audit();
    let lists = [&mut a.most_dfil, &mut a.least_dfil, &mut a.most_eta, &mut a.most_plis];
    for record in lists.into_iter().flatten() {
        (record.id, record.label) = (Some(SECRET.into()), Some(format!("{SECRET}, label")));
    }
    let own = net::page(&a, &pictures());
    assert!(own.contains(SECRET) && own.contains("<img"));
    a.redact = true;
    shared("network", net::page(&a, &pictures()), own);
    let mut t = training(1.0);
    for account in t.accounts.iter_mut().flat_map(|a| &mut a.most) {
        account.id = Some(SECRET.into());
    }
    let own = net::training_page(&t);
    assert_eq!(own.contains(SECRET), t.accounts.is_some());
    t.redact = true;
    shared("training", net::training_page(&t), own);
    let mut i = inverted(0.9, &[0.0, 0.01, 0.1]);
    i.shown.iter_mut().for_each(|a| a.id = Some(SECRET.into()));
    let own = net::inversion_page(&i, &reconstructed());
    assert!(own.contains("<img"));
    i.redact = true;
    shared("inversion", net::inversion_page(&i, &reconstructed()), own);
    let mut i = informed(0.9, 2.0);
    let own = net::informed_page(&i, &learned());
    assert!(own.contains("<img"));
    i.redact = true;
    shared("informed", net::informed_page(&i, &learned()), own);
    let mut m = members(0.7, Some(2.0), 0.3);
    let own = net::membership_page(&m);
    m.redact = true;
    shared("membership", net::membership_page(&m), own);
    let (mut a, mut words) = texts(4.0);
    a.records.iter_mut().for_each(|r| r.record = SECRET.into());
    a.exposures.iter_mut().for_each(|e| e.record = SECRET.into());
    words.values_mut().flatten().for_each(|w| *w = SECRET.into());
    let own = leakscope_report::text_audit_page(&a, &words);
    assert!(own.contains(SECRET));
    a.redact = true;
    shared("texts", leakscope_report::text_audit_page(&a, &words), own);
    let mut f = guessed();
    if let Some(most) = f.data.as_mut().and_then(|d| d.most_exposed.as_mut()) {
        most.row = 987_654;
    }
    let own = bound_page(&f);
    f.redact = true;
    let page = bound_page(&f);
    assert_eq!(own.contains("987,654"), f.data.as_ref().is_some_and(|d| d.most_exposed.is_some()));
    assert!(!page.contains("987,654") && page.contains("For readers whom") == f.data.is_some());
    let mut b = balanced(&[0.8, 0.1, 0.01], Variant::Weighted, Stopped::Iterations);
    let own = balance_page(&b);
    b.redact = true;
    shared("balance", balance_page(&b), own);
    let mut a = attacked(&[(Attacker::WhiteBox, 0.1, 0.9)]);
    let own = attack_page(&a);
    a.redact = true;
    shared("attack", attack_page(&a), own);
}
