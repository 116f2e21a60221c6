//! Every kind of page, from names that try to break out of it.

use super::kinds::{attacked, balanced, canary, compared, costs, guessed, released, reproduced, texts};
use super::networks::{audit, informed, inverted, learned, members, pictures, reconstructed, training};
use super::{hostile, told};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::Variant;
use leakscope_report::audit::Audit;
use leakscope_report::choice::Stopped;
use leakscope_report::explore::{Beside, Explore};
use leakscope_report::release::{Counting, Measured, Owned, Precision};
use leakscope_report::{
    PageKind, ResultPage, account_page, attack_page, balance_page, bound_page, canary_page, comparison_page,
    folder_page, net, owners_release_page, page, page_with, release_page, reproduction_page, text_audit_page,
    with_navigation,
};

/// Every kind of page by its name.
pub(crate) fn every_kind() -> Vec<(&'static str, String)> {
    let attacks =
        [(Attacker::WhiteBox, 0.1, 0.9), (Attacker::WhiteBox, 10.0, 0.5), (Attacker::BlackBox, 0.1, 0.8)];
    vec![
        ("audit", page(&hostile())),
        ("wide audit", wide_and_explored(5_000, 300)),
        ("explored audit", explored()),
        ("balance", balance_page(&balanced(&[0.8, 0.1, 0.01], Variant::Weighted, Stopped::Iterations))),
        ("attack", attack_page(&attacked(&attacks))),
        ("release", release_page(&released(0.5, 0.3))),
        ("published release", release_page(&released(0.5, 0.3).for_publication())),
        ("release for its owner", owners_release_page(&owned(5_000))),
        ("bound", bound_page(&guessed())),
        ("account", account_page(&costs(2.0, 3, true))),
        ("canary", canary_page(&canary(0.3))),
        ("texts", text_audit_page(&texts(4.0).0, &texts(4.0).1)),
        ("network", net::page(&audit(), &pictures())),
        ("inversion", net::inversion_page(&inverted(0.9, &[0.0, 0.01, 0.1]), &reconstructed())),
        ("membership", net::membership_page(&members(0.7, Some(2.0), 0.3))),
        ("informed", net::informed_page(&informed(0.9, 2.0), &learned())),
        ("training", net::training_page(&training(1.0))),
        ("reproduction", reproduction_page(&reproduced())),
        ("comparison", comparison_page(&compared())),
        ("shared audit", page(&Audit { redact: true, ..hostile() })),
        ("index", index()),
    ]
}

/// The owner's copy of a release of a table with so many columns.
pub(crate) fn owned(columns: usize) -> Owned {
    let mut statement = released(0.5, 0.3);
    let audit = wide(columns);
    let coefficients = audit.model.coefficients.clone();
    let unit = *statement.mechanism.units.values().next().unwrap();
    statement.mechanism.units = coefficients.keys().map(|name| (name.clone(), unit)).collect();
    let precise =
        |value: f64| Precision { noise_error: 0.1, low: value - 0.2, high: value + 0.2, p_value: 0.3 };
    statement.precision = coefficients.iter().map(|(name, value)| (name.clone(), precise(*value))).collect();
    statement.coefficients = coefficients.into_iter().collect();
    let measured = Measured {
        files: vec!["<wide>.csv".into()],
        n: 300,
        eta_mean: 0.1,
        eta_max: 0.29,
        counting: Counting::Exact,
        inference: None,
        instead: None,
        gain: None,
        tell: audit.tell,
        duplicates: None,
    };
    Owned {
        statement,
        verdict: None,
        measured,
        remarks: vec!["Column `<id>` was left out, see ⟨id⟩.".into()],
    }
}

/// The page of a folder with several results.
fn index() -> String {
    let of = |kind: PageKind, page: String| {
        let page = with_navigation(&page, kind, &[], "report.html");
        ResultPage::read(&format!("{}.html", kind.stem()), &page).unwrap()
    };
    folder_page(&[
        of(PageKind::Audit, page(&hostile())),
        of(PageKind::Attack, attack_page(&attacked(&[(Attacker::WhiteBox, 0.1, 0.9)]))),
        of(PageKind::Bound, bound_page(&guessed())),
        of(PageKind::Account, account_page(&costs(2.0, 3, true))),
        of(PageKind::Release, release_page(&released(0.5, 0.3))),
    ])
}

/// An audit with its records one by one.
fn explored() -> String {
    let audit = hostile();
    let n = 300;
    let eta = |i: usize| 0.02 + 0.9 * (i as f64 / n as f64).powi(6);
    let values = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    let records = Explore {
        rows: n as u64,
        ids: (0..n).map(|i| format!("P-{i:03}")).collect(),
        series: (0..n).map(|i| if i % 3 == 0 { "asian" } else { "black" }.to_owned()).collect(),
        eta: values(&eta),
        dfil: values(&|i| eta(i).powi(2) / 7.0),
        loss: values(&|i| (i as f64 * 0.7).sin().abs()),
        gradient_norm: values(&|i| 0.1 + (i as f64 * 0.3).cos().abs()),
        attributes: vec![("age".to_owned(), values(&|i| 0.5 * eta(i)))],
        left_out: 0,
    };
    let beside = Beside {
        records: Some(records),
        release: None,
        command: Some("leakscope audit x.csv".into()),
        fingerprint: Some("ab12".into()),
    };
    page_with(&audit, &beside)
}

/// An audit of a table with very many columns.
pub(crate) fn wide(columns: usize) -> Audit {
    let mut audit = hostile();
    let attribute = audit.attributes[0].clone();
    let name = |k: usize| format!("an ordinary column, number {k}");
    audit.attributes = (0..columns)
        .map(|k| leakscope_report::audit::Attribute {
            name: name(k),
            eta_max: 1.0 / (k + 1) as f64,
            ..attribute.clone()
        })
        .collect();
    let column = audit.data.columns[1].clone();
    audit.data.columns =
        (0..columns).map(|k| leakscope_report::audit::Column { name: name(k), ..column.clone() }).collect();
    audit.model.coefficients = (0..columns).map(|k| (name(k), 1.0 / (k + 1) as f64)).collect();
    audit.model.coefficients_original_units = Some(audit.model.coefficients.clone());
    let mut tell = told(&[("x", 0.6, false)]);
    let one = tell.attributes[0].clone();
    tell.attributes = (0..columns)
        .map(|k| leakscope_report::tell::ValuePair {
            attribute: name(k),
            worst: 0.5 + 0.4 / (k + 1) as f64,
            ..one.clone()
        })
        .collect();
    audit.tell = Some(tell);
    audit.inference = Some(leakscope_report::noise::Inference {
        sampling: leakscope_core::fisher::noise::Sampling::Sandwich,
        level: 0.95,
        original_units: true,
        coefficients: (0..columns)
            .map(|k| leakscope_report::noise::Coefficient {
                name: name(k),
                estimate: 1.0 / (k + 1) as f64,
                sampling_error: 0.1,
                noise_error: 0.1,
                standard_error: 0.02_f64.sqrt(),
                low: -0.3,
                high: 1.3,
                p_value: 0.1,
            })
            .collect(),
    });
    audit
}

/// The same with its records one by one: as many attributes as an audit keeps.
pub(crate) fn wide_and_explored(columns: usize, n: usize) -> String {
    let audit = wide(columns);
    let values = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    let eta = |i: usize| 0.02 + 0.9 * (i as f64 / n as f64).powi(6);
    let kept = audit.attributes.iter().take(leakscope_report::explore::ATTRIBUTES);
    let records = Explore {
        rows: n as u64,
        ids: (0..n).map(|i| format!("P-{i:03}")).collect(),
        eta: values(&eta),
        dfil: values(&|i| eta(i).powi(2) / 7.0),
        loss: values(&|i| (i as f64 * 0.7).sin().abs()),
        gradient_norm: values(&|i| 0.1 + (i as f64 * 0.3).cos().abs()),
        attributes: kept.map(|a| (a.name.clone(), values(&|i| 0.5 * eta(i)))).collect(),
        left_out: columns.saturating_sub(leakscope_report::explore::ATTRIBUTES),
        ..Explore::default()
    };
    page_with(&audit, &Beside { records: Some(records), ..Beside::default() })
}
