//! Pages of balance, attack and release: verdict first, observed stays observed, hostile names stay text.

use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_core::claim::{Bound, Observed, Theorem};
use leakscope_core::dp::{Accountant, Adjacency, account};
use leakscope_report::account::Costs;
use leakscope_report::attack::{self, Attack};
use leakscope_report::balance::{self, Balance, Comparison, Step};
use leakscope_report::bound::{self, Found};
use leakscope_report::figure::{Axis, Claim, Figure, Series};
use leakscope_report::release::{self, Release};
use leakscope_report::subject::Subject;
use leakscope_report::{account_page, attack_page, balance_page, bound_page, document, release_page};

const HOSTILE: &str = "<script>alert('x')</script>&\"";

fn subject() -> Subject {
    Subject {
        files: vec![HOSTILE.into()],
        target: HOSTILE.into(),
        n: 1_000,
        d: 7,
        family: "linear".into(),
        l2: 0.01,
        intercept: true,
    }
}

fn step(iteration: usize, eta_std: f64) -> Step {
    Step {
        iteration,
        eta_mean: 1.0,
        eta_std,
        eta_max: 1.0 + 3.0 * eta_std,
        eta_unweighted_mean: 1.0,
        eta_unweighted_std: 0.9,
        eta_unweighted_max: 4.0,
        train_score: Some(0.5),
        test_score: None,
        weight_min: 0.1,
        weight_max: 3.0,
    }
}

fn balanced(stds: &[f64], variant: Variant, stopped: &str) -> Balance {
    let iterations: Vec<Step> = stds.iter().enumerate().map(|(i, s)| step(i, *s)).collect();
    let best = (0..stds.len()).min_by(|&a, &b| stds[a].total_cmp(&stds[b])).unwrap_or(0);
    Balance {
        schema: balance::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        tables: vec![],
        subject: subject(),
        sigma: 1.0,
        attribute: Some(HOSTILE.into()),
        sharing: Sharing::Sample,
        variant,
        update: Update::Published,
        clamp: None,
        tolerance: 1e-6,
        seed: None,
        metric: "mse".into(),
        higher_is_better: false,
        comparisons: vec![Comparison {
            variant: Variant::Unweighted,
            update: Update::Published,
            iterations: iterations.clone(),
        }],
        iterations,
        best,
        stopped: stopped.into(),
        converging: best + 1 == stds.len(),
        coefficients: [(HOSTILE.to_owned(), 1.0)].into(),
        warnings: vec![HOSTILE.into()],
        seconds: 1.0,
    }
}

fn observed(value: f64) -> Observed {
    Observed { value, ci_low: value - 0.02, ci_high: value + 0.02, trials: 100, seed: 1 }
}

fn attacked(accuracies: &[(&str, f64, f64)]) -> Attack {
    let result = |&(attack, sigma, accuracy): &(&str, f64, f64)| attack::AttackResult {
        attack: attack.into(),
        sigma,
        eta_mean: 1.0 / sigma,
        balanced: false,
        accuracy: observed(accuracy),
        advantage: observed((accuracy - 0.5) / 0.5),
    };
    Attack {
        schema: attack::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        subject: subject(),
        secret: attack::Secret {
            name: HOSTILE.into(),
            candidates: vec![attack::Candidate { name: HOSTILE.into(), prior: 0.5 }; 2],
        },
        records: 1_000,
        left_out: 0,
        trials: 100,
        seed: 1,
        baseline: attack::Baseline { accuracy: 0.5 },
        results: accuracies.iter().map(result).collect(),
        results_balanced: vec![],
        deciles: (1..=10)
            .map(|decile| attack::Decile {
                sigma: 1.0,
                decile,
                balanced: false,
                records: 100,
                accuracy: observed(0.5),
            })
            .collect(),
        eta_mean_at_unit_noise: 1.0,
        balance: None,
        utility: None,
        warnings: vec![],
        seconds: 1.0,
    }
}

fn safe(page: &str) {
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;"));
    assert!(!page.contains("NaN") && !page.contains("http://") && !page.contains("https://"));
    assert!(page.find("class=\"verdict").is_some_and(|v| page.find("class=\"card").is_none_or(|c| v < c)));
}

#[test]
fn a_balance_says_whether_it_worked() {
    for (stds, variant, stopped, level) in [
        (&[0.8, 0.1, 0.001][..], Variant::Weighted, "converged", ">Balanced<"),
        (&[0.8, 0.1, 0.01], Variant::Weighted, "iterations", "Balanced within 5%"),
        (&[0.8, 0.5, 0.3], Variant::Weighted, "iterations", "Still converging"),
        (&[0.8, 0.1, 0.3], Variant::Weighted, "iterations", "Did not converge"),
        (&[0.8, 0.1, 0.3], Variant::Weighted, "vanished", "Stopped early"),
        (&[0.8, 0.9, 1.3], Variant::Unweighted, "vanished", "Not equalised"),
    ] {
        let b = balanced(stds, variant, stopped);
        let page = balance_page(&b);
        safe(&page);
        assert!(page.contains(level), "{level}");
        let back: Balance = serde_json::from_str(&document(&b)).expect("what was written can be read");
        assert_eq!(back, b);
    }
}

#[test]
fn an_attack_page_tells_leaks_from_what_the_model_says_about_anybody() {
    let quiet = attacked(&[
        ("white-box", 0.1, 0.5),
        ("white-box", 10.0, 0.5),
        ("black-box", 0.1, 0.8),
        ("black-box", 10.0, 0.7),
    ]);
    let page = attack_page(&quiet);
    safe(&page);
    assert!(page.contains("No attack beat the guess") && page.contains("anybody"));
    let loud = attacked(&[("white-box", 0.1, 0.99), ("white-box", 10.0, 0.5)]);
    assert!(attack_page(&loud).contains("From σ = 10 on"));
    let always = attacked(&[("white-box", 0.1, 0.99), ("informed", 10.0, 0.9)]);
    let page = attack_page(&always);
    assert!(page.contains("at every noise tried"));
    assert!(page.contains("kind observed") && !page.contains("kind proved") && page.contains("no guarantee"));
}

#[test]
fn results_are_flat_in_json_and_come_back_as_observed() {
    let a = attacked(&[("white-box", 0.1, 0.75)]);
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
    let r = Release {
        schema: release::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        subject: subject(),
        mechanism: release::Mechanism {
            name: "exact discrete Gaussian".into(),
            sigma: 0.5,
            grid: 2_f64.powi(-21),
            generator: "the system".into(),
        },
        label_secret: true,
        eta: release::Eta { mean: 0.1, max: 0.3 },
        composed: release::Composed { releases: 3, eta_max: 0.52, budget_eta: Some(0.6) },
        known: vec![HOSTILE.into()],
        assumed: vec![HOSTILE.into()],
        coefficients: [(HOSTILE.to_owned(), -1.0)].into(),
        coefficients_original_units: None,
        warnings: vec![],
    };
    let page = release_page(&r);
    safe(&page);
    for part in ["0.5</b>", "0.300", "0.520", "budget of 0.6", "Exact discrete Gaussian"] {
        assert!(page.contains(part), "{part}");
    }
    let back: Release = serde_json::from_str(&document(&r)).expect("what was written can be read");
    assert_eq!(back, r);
}

fn found() -> Found {
    let figure = Figure {
        id: "x".into(),
        title: HOSTILE.into(),
        caption: HOSTILE.into(),
        x: Axis::log(HOSTILE),
        y: Axis::linear("advantage").of_shares(),
        series: vec![
            Series::bound(
                HOSTILE,
                [
                    (0.1, Bound::at_most(0.9, Theorem::OneCentre)),
                    (1.0, Bound::at_most(0.2, Theorem::OneCentre)),
                ],
            ),
            Series::observed(HOSTILE, [(0.1, observed(0.5)), (1.0, observed(0.1))]),
            Series::measured("nothing", [(1.0, f64::INFINITY)]),
        ],
        levels: vec![],
        chosen: Some(0.3),
    };
    let row = |theorem, success: f64| bound::Row {
        name: theorem,
        success,
        advantage: success / 2.0,
        alpha: None,
        confidence: Some(0.99),
        worst: None,
        over_records: None,
        largest_distance: false,
        assumptions: vec![HOSTILE.into()],
        source: HOSTILE.into(),
    };
    Found {
        schema: bound::SCHEMA.into(),
        leakscope: "0".into(),
        setting: HOSTILE.into(),
        said: vec![],
        candidates: Some(3),
        most_likely: Some(0.4),
        sigma: Some(0.3),
        bounds: vec![row(Theorem::OneCentre, 0.4501), row(Theorem::Balle, 0.6)],
        optimal: None,
        estimation: vec![],
        data: None,
        figures: vec![figure.clone(), figure],
        seed: Some(1),
        warnings: vec![HOSTILE.into()],
    }
}

#[test]
fn a_page_of_bounds_says_the_tightest_first_rounded_up_and_marks_what_was_observed() {
    let found = found();
    let page = bound_page(&found);
    safe(&page);
    assert!(page.contains("45.1%") && page.contains("chosen: 0.3"));
    assert!(page.find(">45.1%<").unwrap() < page.find(">60%<").unwrap());
    assert!(
        page.contains("(observed)")
            && page.contains("class=\"kind proved\"")
            && page.contains("kind observed")
    );
    assert_eq!(found.figures[0].series[0].claim, Claim::Bound);
    // Numbers without bound survive the JSON.
    let back: Found = serde_json::from_str(&document(&found)).unwrap();
    assert_eq!(back, found);
    let only_curves = Found { bounds: vec![], said: vec![HOSTILE.into()], ..found };
    let page = bound_page(&only_curves);
    safe(&page);
    assert!(page.contains("In short"));
}

#[test]
fn a_page_of_an_account_says_what_was_assumed() {
    let accountant = Accountant::dp_sgd(2.0, 1.0, 3, Adjacency::AddRemove).unwrap();
    let costs = |assumed| Costs::of(account(&accountant, 1e-6).unwrap(), assumed);
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
    let mut a = attacked(&[("white-box", 1.0, 0.8)]);
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
    let mut r = attack_page(&attacked(&[("white-box", 1.0, 0.8)]));
    assert!(!r.contains('Η'), "a capital eta");
    let mut a = attacked(&[("white-box", 1.0, 0.8)]);
    a.warnings = vec!["η of a record is small".into(), "so is σ".into()];
    r = attack_page(&a);
    assert!(r.contains("η of a record is small.") && r.contains("So is σ."), "{r}");
}
