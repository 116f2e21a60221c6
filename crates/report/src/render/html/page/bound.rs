//! The page of bounds: what no attacker can beat, beside what attacks achieve.

use super::figure::{figure, figures};
use crate::document::bound::{CurvePoint, FromData, Row, SecretBounds};
use crate::figure::Claim;
use crate::format;
use crate::redact::redacted;
use crate::render::html::markup::Html;
use crate::render::html::parts::{card, header, judged, list, shell, tile, tiles, warnings, whose};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_bound;
use crate::words;
use std::collections::BTreeSet;

/// Bounds as one self-contained HTML page.
pub fn bound_page(f: &SecretBounds) -> String {
    let f = &if f.redact { redacted(f) } else { f.clone() };
    let (title, mut facts) = match &f.data {
        Some(d) => {
            let (subject, facts) = words::subject(&d.subject);
            (format!("Guessing {} from {subject}", d.secret.name), vec![facts])
        }
        None => (format::sentence(&f.setting).trim_end_matches('.').to_owned(), vec![]),
    };
    facts.extend(f.seed.map(|s| format!("seed {s}")));
    let body = header("Leakscope bound", &title, &facts.join(" · "))
        .and(if f.is_owners() { whose(f.redact) } else { Html::new() })
        .and(judged(&of_bound(f)))
        .and(f.data.as_ref().map(|d| main_numbers(f, d)).unwrap_or_default())
        .and(warnings(&f.warnings))
        .and(charts(f))
        .and(bounds(f))
        .and(most_exposed(f))
        .and(attacks(f))
        .and(estimation(f))
        .and(rests_on(f));
    shell(&format!("Leakscope bound: {title}"), &body)
}

fn main_numbers(f: &SecretBounds, d: &FromData) -> Html {
    let at: Option<&CurvePoint> = f.sigma.and_then(|s| d.curve.iter().find(|p| p.sigma == s));
    let guo = at.and_then(|p| p.bounds.iter().find(|b| b.largest_distance));
    let values = format!("values: {}", words::candidates(&d.secret));
    let all = [
        f.sigma.map(|s| tile(&format::setting(s), "σ, noise on every coefficient")),
        f.bounds.first().map(|b| {
            tile(&format::at_most(b.advantage), "advantage over a guess without the model, at most")
        }),
        guo.map(|b| {
            tile(&format::at_most(b.advantage), "the same by Guo’s theorem 2, largest distance for all")
        }),
        at.map(|p| {
            let name = format!("ε of this secret at δ = {}", format::setting(d.delta));
            tile(&format::at_most(p.epsilon_secret), &name)
        }),
        Some(tile(&format::count(d.secret.candidates.len() as u64), &values)),
        Some(tile(&format::number(d.distance.max), "largest distance of two candidate models of one record")),
        Some(tile(&format::count(d.records), "records, each with its own bound")),
        Some(tile(&format::seconds(d.seconds), "for all refits, records and noise scales")),
    ];
    tiles(all.into_iter().flatten().collect())
}

fn charts(f: &SecretBounds) -> Html {
    match f.figures.as_slice() {
        [] => Html::new(),
        [one] => figure(one),
        [first, rest @ ..] => figure(first).and(figures("more", "Beside it", rest)),
    }
}

/// The attacks that were played at the noise asked for: all that the verdict may name.
fn attacks(f: &SecretBounds) -> Html {
    let played = f.data.iter().flat_map(|d| &d.attacks).filter(|a| Some(a.sigma) == f.sigma);
    let rows: Vec<Vec<Cell>> = played
        .map(|a| {
            let o = &a.accuracy;
            vec![
                Cell::name(words::attacker(a.attack)),
                Cell::sorted(format::share(o.value), o.value),
                Cell::text(&format!("{} – {}", format::share(o.ci_low), format::share(o.ci_high))),
                Cell::number(a.advantage.value),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Html::new();
    }
    let heads = [text_column("attack"), numbers("right"), numbers("95% interval"), numbers("advantage")];
    let body = table("wrap stack even", "Attacks", &heads, &rows);
    card("attacks", "What attacks achieved at this noise", &[Claim::Observed], "", body)
}

fn row(b: &Row, with_worst: bool) -> Vec<Cell> {
    let gloss = words::gloss(b.name).map(|g| format!("{g}; ")).unwrap_or_default();
    let remark = match (b.alpha, b.confidence) {
        (Some(alpha), _) => format!("order {}; {}", format::number(alpha), b.source),
        (_, Some(c)) => format!("with confidence {}; {}", format::share(c), b.source),
        (None, None) => format!("{gloss}{}", b.source),
    };
    let mut cells = vec![
        Cell::remarked_name(&words::bound(b), &remark),
        Cell::sorted(format::share_at_most(b.success), b.success),
        Cell::sorted(format::at_most(b.advantage), b.advantage),
    ];
    if with_worst {
        let quantile = |x: Option<f64>| match x {
            Some(x) => Cell::sorted(format::share_at_most(x), x),
            None => Cell::say("–"),
        };
        cells.push(quantile(b.over_records.map(|o| o.p50)));
        cells.push(quantile(b.over_records.map(|o| o.p99)));
        cells.push(quantile(b.worst.map(|w| w.success)));
    }
    cells
}

fn bounds(f: &SecretBounds) -> Html {
    if f.bounds.is_empty() {
        return Html::new();
    }
    let from_data = f.data.is_some();
    let mut heads = vec![text_column("bound"), numbers("success, at most"), numbers("advantage")];
    if from_data {
        heads.extend([numbers("median record"), numbers("99%"), numbers("easiest record")]);
    }
    let rows: Vec<Vec<Cell>> = f.bounds.iter().map(|b| row(b, from_data)).collect();
    let lead = match from_data {
        true => {
            "Success is the share of records guessed right, in expectation: the mean of the records’ own bounds. All bounds \
             hold at once, so the smallest counts."
        }
        false => "All bounds hold at once, so the smallest counts.",
    };
    card(
        "bounds",
        "Every bound that applies",
        &[Claim::Bound],
        lead,
        table("wrap stack even", "Bounds", &heads, &rows),
    )
}

fn most_exposed(f: &SecretBounds) -> Html {
    let Some(m) = f.data.as_ref().and_then(|d| d.most_exposed.as_ref()) else { return Html::new() };
    let heads = [text_column("bound"), numbers("success, at most"), numbers("advantage")];
    let rows: Vec<Vec<Cell>> = m.bounds.iter().map(|b| row(b, false)).collect();
    let lead = format!(
        "Training row {}: two of its candidate models are {} apart.",
        format::count(m.row),
        format::number(m.distance)
    );
    card(
        "exposed",
        "The most exposed record",
        &[Claim::Bound],
        lead,
        table("wrap stack even", "Bounds", &heads, &rows),
    )
}

fn estimation(f: &SecretBounds) -> Html {
    if f.estimation.is_empty() && f.typical.is_empty() {
        return Html::new();
    }
    let bounds = f.estimation.iter().map(|e| {
        let shown = format!("at least {}", format::plus_minus(&format::bound(&e.error), Some(&e.unit)));
        vec![Cell::remarked_name(&e.attacker, &e.source), Cell::sorted(shown, e.error.value)]
    });
    let typical = f.typical.iter().map(|e| {
        let error = format::plus_minus(&format::number(e.error.value), Some(&e.unit));
        let remark = "van Trees with the average information of the table: an estimate, no bound";
        vec![Cell::remarked_name(&e.attacker, remark), Cell::sorted(format!("about {error}"), e.error.value)]
    });
    let rows: Vec<Vec<Cell>> = bounds.chain(typical).collect();
    let body = table("wrap stack even", "Estimates", &[text_column("estimate"), numbers("off by")], &rows);
    let lead = "Somebody who estimates a value instead of guessing one of a few.";
    let claims: &[Claim] =
        if f.typical.is_empty() { &[Claim::Bound] } else { &[Claim::Bound, Claim::Measured] };
    card("estimation", "Estimates", claims, lead, body)
}

fn rests_on(f: &SecretBounds) -> Html {
    let of_rows = f.bounds.iter().flat_map(|b| &b.assumptions);
    let all: BTreeSet<&String> = of_rows.chain(f.estimation.iter().flat_map(|e| &e.assumptions)).collect();
    if all.is_empty() {
        return Html::new();
    }
    card("rests", "What the bounds rest on", &[], "", list(all))
}
