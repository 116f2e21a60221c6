//! The verdict in the situations that matter: it must never sound better than the numbers.

mod common;

use common::{clinic, situations};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_report::audit::{Audit, Limit, SigmaSource};
use leakscope_report::verdict::{Level, verdict};
use leakscope_report::{page, summary};

fn with(change: impl Fn(&mut Audit)) -> Audit {
    let mut audit = clinic(600, 3);
    change(&mut audit);
    audit
}

fn set_min_sd(audit: &mut Audit, name: &str, sd: f64) {
    let attribute = audit.attributes.iter_mut().find(|a| a.name == name).expect("a known attribute");
    attribute.min_sd = Bound::at_least(sd, Theorem::CramerRao);
}

#[test]
fn wide_bounds_are_compared_with_the_most_exposed_number() {
    let v = verdict(&clinic(600, 3));
    assert_eq!(v.level, Level::Protected);
    assert!(v.text().starts_with(
        "An attacker who knows everything else cannot estimate age without bias to better than ±81.6 years, even for \
         the most exposed record, while records differ by ±14.2: the population alone tells more."
    ));
}

#[test]
fn a_bound_below_the_populations_spread_is_not_protection() {
    let v = verdict(&with(|a| set_min_sd(a, "weight", 3.21)));
    assert_eq!(v.level, Level::NotProtected);
    assert!(v.level.is_bad());
    assert!(v.text().starts_with(
        "weight is NOT protected: for the most exposed record nothing rules out an unbiased estimate of weight within \
         ±3.21 kg, and records differ by ±19.1."
    ));
    let v = verdict(&with(|a| {
        set_min_sd(a, "weight", 3.21);
        set_min_sd(a, "age", 14.0);
        set_min_sd(a, "cyp2c9", 0.4);
    }));
    assert!(v.text().starts_with("weight and 2 other attributes are NOT protected"), "{}", v.text());
}

#[test]
fn a_category_that_is_open_is_said_even_where_the_numbers_are_safe() {
    let v = verdict(&with(|a| set_min_sd(a, "vkorc1", 0.21)));
    assert_eq!(v.level, Level::NotProtected);
    assert!(v.text().starts_with("vkorc1 is NOT protected"));
    assert!(v.text().contains("whether a level of vkorc1 applies (0 or 1) within ±0.21"));
}

#[test]
fn a_margin_below_three_is_called_thin() {
    for (sd, level) in
        [(14.1, Level::NotProtected), (14.3, Level::Thin), (42.5, Level::Thin), (42.7, Level::Protected)]
    {
        assert_eq!(verdict(&with(|a| set_min_sd(a, "age", sd))).level, level, "{sd}");
    }
    assert!(verdict(&with(|a| set_min_sd(a, "age", 28.4))).text().contains("only 2.00 times"));
}

#[test]
fn no_noise_is_said_plainly_and_first() {
    let v = verdict(&with(|a| (a.sigma, a.sigma_source) = (1.0, SigmaSource::Default)));
    assert_eq!(v.level, Level::NoNoise);
    assert!(v.text().starts_with("No noise was chosen: numbers are per unit of noise (σ = 1); an attacker"));
    let v = verdict(&with(|a| {
        (a.sigma, a.sigma_source) = (1.0, SigmaSource::Default);
        set_min_sd(a, "age", 2.0);
    }));
    assert_eq!(v.level, Level::NotProtected);
    assert!(
        v.text()
            .starts_with("No noise was chosen: numbers are per unit of noise (σ = 1); age is NOT protected")
    );
}

#[test]
fn a_breached_limit_leads_and_a_kept_one_is_silent() {
    let limit = |ok| Limit { statistic: "p99".into(), limit: 0.1, value: 0.52, ok };
    let v = verdict(&with(|a| {
        a.limits = vec![limit(false), limit(true)];
        set_min_sd(a, "age", 2.0);
    }));
    assert_eq!(v.level, Level::OverLimit);
    assert!(
        v.text()
            .starts_with("The 99th percentile of η is 0.520, above the limit of 0.1; age is NOT protected")
    );
    assert_eq!(v.text().matches("limit").count(), 1);
    let v = verdict(&with(|a| a.limits = vec![limit(true)]));
    assert_eq!(v.level, Level::Protected);
    assert!(!v.text().contains("limit"));
}

#[test]
fn records_that_stand_out_and_the_cost_of_noise_fill_the_second_sentence() {
    let second = |a: &Audit| verdict(a).sentences[1].iter().map(|s| s.text.as_str()).collect::<String>();
    let text = second(&with(|a| a.records.stand_out = 1));
    assert_eq!(
        text,
        "1 of 600 records leaks more than three times as much as the median record; this noise costs 1.1% in mean \
         squared error (0.329, 0.325 without noise)."
    );
    assert!(second(&with(|a| a.records.stand_out = 0)).starts_with("No record leaks more than three times"));
    assert!(second(&with(|a| a.utility = None)).contains("what the noise costs was not measured"));
    let useless = second(&with(|a| {
        a.utility.iter_mut().for_each(|u| u.at_sigma = 0.95);
    }));
    assert!(useless.contains("leaves nothing of the model"), "{useless}");
    let (_, classes) = situations().into_iter().find(|s| s.0 == "two classes").unwrap();
    assert!(
        second(&classes).contains("this noise costs 1.3 points of accuracy (82.1%, 83.4% without noise)")
    );
}

#[test]
fn without_leakage_or_without_a_comparison_nothing_is_claimed() {
    let of = |name: &str| situations().into_iter().find(|s| s.0 == name).unwrap().1;
    let v = verdict(&of("all zero"));
    assert_eq!(v.level, Level::Protected);
    assert!(v.text().starts_with("The model gives nothing away about"));
    let v = verdict(&of("no attributes"));
    assert_eq!(v.level, Level::Incomparable);
    assert!(v.text().starts_with("No attribute could be traced back"));
    let v = verdict(&of("categories only"));
    assert!(v.text().contains("a coin toss is off by ±0.5"));
}

#[test]
fn there_are_two_sentences_and_page_and_terminal_share_them() {
    for (name, audit) in situations().into_iter().filter(|s| s.0 != "hostile names") {
        let v = verdict(&audit);
        for sentence in &v.sentences {
            let text: String = sentence.iter().map(|s| s.text.as_str()).collect();
            assert!(text.ends_with('.') && !text.contains(". "), "{name}: {text}");
        }
        let (html, words) = (page(&audit), summary(&audit, 80, false));
        let flat = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&v.text()), "{name}");
        for span in v.sentences.iter().flatten().filter(|s| s.strong) {
            assert!(html.contains(&format!("<b>{}</b>", span.text)), "{name}: {}", span.text);
        }
        assert!(html.contains(v.level.label()), "{name}");
    }
}
