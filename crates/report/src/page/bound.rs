//! The page of bounds: what no attacker can beat, beside what attacks achieve.

use super::figure::{figure, figures};
use super::head::tile;
use super::shell;
use crate::bound::{CurvePoint, Found, FromData, Row};
use crate::chart::patterns;
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, sentence, table, words};
use leakscope_core::bound::table::Optimal;
use std::collections::BTreeSet;

/// Bounds as one self-contained HTML page.
pub fn bound_page(f: &Found) -> String {
    let title = match &f.data {
        Some(d) => format!("Guessing {} from {}", d.secret.name, d.subject.title()),
        None => sentence(&f.setting).trim_end_matches('.').to_owned(),
    };
    let meta = match &f.data {
        Some(d) => d.subject.facts(),
        None => String::new(),
    };
    let warnings = match f.warnings.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"warnings\" aria-label=\"Warnings\"><h2>{}</h2>{}</section>\n",
            format::counted(f.warnings.len() as u64, "warning"),
            list(&f.warnings)
        ),
    };
    let body = format!(
        "{}<main>\n<header><div class=\"top\"><p class=\"eyebrow\">Leakscope bound</p></div><h1>{}</h1>\
         <p class=\"meta\">{}{}</p></header>\n{}{}{warnings}{}{}{}{}{}</main>\n",
        patterns(),
        escape(&title),
        escape(&meta),
        f.seed.map_or_else(String::new, |s| format!("{}seed {s}", if meta.is_empty() { "" } else { " · " })),
        verdict(f),
        f.data.as_ref().map_or_else(String::new, |d| tiles(f, d)),
        charts(f),
        bounds(f),
        most_exposed(f),
        estimation(f),
        rests_on(f)
    );
    shell(&format!("Leakscope bound: {title}"), &body)
}

fn verdict(f: &Found) -> String {
    if !f.said.is_empty() {
        let said: String = f.said.iter().map(|s| format!("<p>{}</p>\n", escape(s))).collect();
        return format!(
            "<section class=\"verdict care\" aria-label=\"Verdict\"><p class=\"level\">In short</p>\n{said}</section>\n"
        );
    }
    let Some(best) = f.bounds.first() else { return String::new() };
    let prior = f.most_likely.unwrap_or(0.0);
    let (class, level) = match best.advantage {
        a if a <= 0.05 => ("good", "Little to gain for any attacker"),
        a if a <= 0.5 => ("care", "An attacker may gain something"),
        _ => ("bad", "No useful bound on what an attacker gains"),
    };
    let mut said = match &f.data {
        Some(d) => {
            let worst = f.bounds.iter().filter_map(|b| b.worst).map(|w| w.success).fold(1.0, f64::min);
            format!(
                "<p>No attacker guesses {} of more than <b>{}</b> of {} right, in expectation; without looking it is {}. The \
                 record that is easiest to guess is guessed with probability <b>{}</b> at most.</p>\n",
                escape(&d.secret.name),
                format::share_at_most(best.success),
                format::counted(d.records, "record"),
                format::share(prior),
                format::share_at_most(worst)
            )
        }
        None => format!(
            "<p>No attacker guesses the secret with a probability above <b>{}</b>; without looking it is {}.</p>\n",
            format::share_at_most(best.success),
            format::share(prior)
        ),
    };
    said.push_str(&format!("<p>This is by {}: {}.</p>\n", escape(&best.title()), escape(&best.source)));
    match &f.optimal {
        Some(Optimal::Exact(x)) => {
            said.push_str(&format!("<p>The best attack achieves {}.</p>\n", format::share(*x)));
        }
        Some(Optimal::Observed(o)) => said.push_str(&format!(
            "<p>The best attack was observed at {} ({} to {}) in {}.</p>\n",
            format::share(o.value),
            format::share(o.ci_low),
            format::share(o.ci_high),
            format::counted(o.trials, "trial")
        )),
        None => {}
    }
    format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"level\">{level}</p>\n{said}</section>\n"
    )
}

fn tiles(f: &Found, d: &FromData) -> String {
    let values: Vec<String> =
        d.secret.candidates.iter().map(|c| format!("{} {}", c.name, format::share(c.prior))).collect();
    let at: Option<&CurvePoint> = f.sigma.and_then(|s| d.curve.iter().find(|p| p.sigma == s));
    let guo = at.and_then(|p| p.bounds.iter().find(|b| b.largest_distance));
    let all = [
        f.sigma.map(|s| tile(&format::setting(s), "σ, noise on every coefficient")),
        f.bounds
            .first()
            .map(|b| tile(&format::at_most(b.advantage), "advantage over a guess without looking, at most")),
        guo.map(|b| {
            tile(&format::at_most(b.advantage), "the same by Guo’s theorem 2, largest distance for all")
        }),
        at.map(|p| {
            tile(
                &format::number(p.epsilon_secret),
                &format!("ε of this secret at δ = {}", format::setting(d.delta)),
            )
        }),
        Some(tile(&format::count(values.len() as u64), &format!("values: {}", values.join(", ")))),
        Some(tile(&format::number(d.distance.max), "largest distance of two candidate models of one record")),
        Some(tile(&format::count(d.records), "records, each with its own bound")),
        Some(tile(&format::seconds(d.seconds), "for all refits, records and noise scales")),
    ];
    format!("<div class=\"tiles n4\">\n{}</div>\n", all.into_iter().flatten().collect::<String>())
}

fn charts(f: &Found) -> String {
    match f.figures.as_slice() {
        [] => String::new(),
        [one] => figure(one),
        [first, rest @ ..] => {
            let rest: Vec<_> = rest.iter().collect();
            format!("{}{}", figure(first), figures("more", "Beside it", "", &rest))
        }
    }
}

fn row(b: &Row, with_worst: bool) -> Vec<Cell> {
    let remark = match (b.alpha, b.confidence) {
        (Some(alpha), _) => format!("order {}; {}", format::number(alpha), b.source),
        (_, Some(c)) => format!("with confidence {}; {}", format::share(c), b.source),
        (None, None) => b.source.clone(),
    };
    let mut cells = vec![
        Cell::remarked_name(&b.title(), &remark),
        Cell::sorted(format::share_at_most(b.success), b.success),
        Cell::sorted(format::at_most(b.advantage), b.advantage),
    ];
    if with_worst {
        let quantile = |x: Option<f64>| match x {
            Some(x) => Cell::sorted(format::share_at_most(x), x),
            None => Cell::html("<span class=\"say\">–</span>".into()),
        };
        cells.push(quantile(b.over_records.map(|o| o.p50)));
        cells.push(quantile(b.over_records.map(|o| o.p99)));
        cells.push(quantile(b.worst.map(|w| w.success)));
    }
    cells
}

fn bounds(f: &Found) -> String {
    if f.bounds.is_empty() {
        return String::new();
    }
    let from_data = f.data.is_some();
    let mut heads = vec![words("bound"), numbers("success, at most"), numbers("advantage")];
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
    card("bounds", "Every bound that applies", &[Kind::Bound], lead, &table("wrap", "Bounds", &heads, &rows))
}

fn most_exposed(f: &Found) -> String {
    let Some(m) = f.data.as_ref().and_then(|d| d.most_exposed.as_ref()) else { return String::new() };
    let heads = [words("bound"), numbers("success, at most"), numbers("advantage")];
    let rows: Vec<Vec<Cell>> = m.bounds.iter().map(|b| row(b, false)).collect();
    let lead = format!(
        "Training row {}: two of its candidate models are {} apart.",
        format::count(m.row),
        format::number(m.distance)
    );
    card("exposed", "The most exposed record", &[Kind::Bound], &lead, &table("wrap", "Bounds", &heads, &rows))
}

fn estimation(f: &Found) -> String {
    if f.estimation.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<Cell>> = f
        .estimation
        .iter()
        .map(|e| {
            vec![
                Cell::remarked_name(&e.what, &e.source),
                Cell::sorted(format::plus_minus(&format::bound(&e.error), Some(&e.unit)), e.error.value),
            ]
        })
        .collect();
    let body = table("wrap", "Estimates", &[words("estimate"), numbers("off by, at least")], &rows);
    let lead = "Somebody who estimates a value instead of guessing one of a few.";
    card("estimation", "Estimates", &[Kind::Bound], lead, &body)
}

fn rests_on(f: &Found) -> String {
    let of_rows = f.bounds.iter().flat_map(|b| &b.assumptions);
    let all: BTreeSet<&String> = of_rows.chain(f.estimation.iter().flat_map(|e| &e.assumptions)).collect();
    if all.is_empty() {
        return String::new();
    }
    card("rests", "What the bounds rest on", &[], "", &list(all))
}
